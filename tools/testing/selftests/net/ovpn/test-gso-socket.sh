#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the sending socket sees of GSO batching: write memory, TCP Small Queues,
# pacing, timestamps, zerocopy, priority and mark

set -eE

source ./gso-common.sh

# slow enough for the data to wait in the qdisc, also on a slow machine
GSO_SOCKET_TBF="tbf rate 16mbit burst 8kb limit 8mb"
GSO_SOCKET_FQ="fq maxrate 16mbit limit 10000 flow_limit 10000"
GSO_SOCKET_RATE=2000000
GSO_SOCKET_MARK=1056

# gso_socket_qdisc KIND [ARG...]: of the underlay of peer 0; none: its default
gso_socket_qdisc() {
	tc -n "${GSO_NS0}" qdisc del dev "${GSO_DEV}" root 2>/dev/null || true
	[ "$1" = none ] ||
		tc -n "${GSO_NS0}" qdisc add dev "${GSO_DEV}" root "$@"
}

# gso_socket_uso on|off: let the underlay of peer 0 take aggregates, or not
gso_socket_uso() {
	gso_offload 0 "${GSO_DEV}" tx-udp-segmentation "$1"
}

# gso_socket_batching on|off: off: the stack cuts bursts, as without batching
gso_socket_batching() {
	gso_offload 0 tun0 tso "$1" tx-udp-segmentation "$1"
}

gso_socket_setup() {
	gso_setup 1500
	# grows without a loss until something else stops it
	gso_on 0 sysctl -qw net.ipv4.tcp_congestion_control=reno
	gso_mark 0
	gso_udp_transfer 0 1 4 62100 1380 10
	gso_expect_batched 0 20
}

# gso_socket_charged: what a socket was charged for when it had sent all
gso_socket_charged() {
	awk '$1 == "charged" { print $2 }' \
		"${GSO_TMP}/${GSO_DATA_PORT}.send.err"
}

# gso_socket_some_batched: TCP sends few segments at once at a low rate
gso_socket_some_batched() {
	gso_read 0
	[ "${GSO_RECORDS}" -ge 20 ] ||
		gso_fail "only ${GSO_RECORDS} records: nothing to judge"
	[ $((GSO_SKBS * 4)) -le $((GSO_RECORDS * 3)) ] ||
		gso_fail "${GSO_RECORDS} records in ${GSO_SKBS} skbs"
}

# the sender fails unless it is charged for nothing in the end
gso_socket_wmem() {
	local GSO_SEND_OPTS=(-w)
	local uso qdisc charged

	for uso in on off; do
		gso_socket_uso "${uso}"
		for qdisc in "tbf rate 1mbit burst 8kb limit 8mb" \
			"fq maxrate 1mbit"; do
			# shellcheck disable=SC2086 # arguments
			gso_socket_qdisc ${qdisc}

			gso_mark 0
			gso_udp_transfer 0 1 4 62100 1380 3
			gso_expect_batched 0 20
			charged=$(gso_socket_charged)
			[ "${charged}" -ge 60000 ] || gso_fail "uso ${uso}," \
				"${qdisc}: only ${charged} charged"

			gso_mark 0
			gso_tcp_transfer 0 1 4 200000
			gso_socket_some_batched
			charged=$(gso_socket_charged)
			[ "${charged}" -ge 5000 ] || gso_fail "uso ${uso}," \
				"${qdisc}: only ${charged} charged"
		done
		gso_socket_qdisc none
		gso_udp_transfer 0 1 6 60000 1200 20
		gso_tcp_transfer 0 1 6 1000000
	done
	gso_socket_uso on
}

# gso_socket_max_backlog: of the qdisc, in bytes, during a TCP transfer
gso_socket_max_backlog() {
	local samples="${GSO_TMP}/samples"
	local batch="${GSO_TMP}/batch"
	local pid

	yes "qdisc show dev ${GSO_DEV}" | head -n 50 >"${batch}" || true
	touch "${samples}.on"
	while [ -e "${samples}.on" ]; do
		gso_on 0 tc -s -j -b "${batch}" || true
	done >"${samples}" 2>&1 &
	pid=$!
	gso_tcp_transfer 0 1 4 4000000
	rm "${samples}.on"
	wait "${pid}"
	[ "$(grep -o '"backlog":' "${samples}" | wc -l)" -ge 100 ] ||
		gso_fail "too few samples"
	GSO_SOCKET_BACKLOG=$(grep -o '"backlog":[0-9]*' "${samples}" |
		cut -d: -f2 | sort -n | tail -n 1)
}

# TCP must not be told that data has left before it is out of the qdisc: it
# would queue all that the windows allow
gso_socket_tsq() {
	local uso qdisc off

	for uso in on off; do
		gso_socket_uso "${uso}"
		for qdisc in "${GSO_SOCKET_TBF}" "${GSO_SOCKET_FQ}"; do
			# shellcheck disable=SC2086 # arguments
			gso_socket_qdisc ${qdisc}

			gso_socket_batching off
			gso_socket_max_backlog
			off=${GSO_SOCKET_BACKLOG}

			gso_socket_batching on
			gso_mark 0
			gso_socket_max_backlog
			gso_socket_some_batched
			# what has no owner gets above a megabyte here
			[ "${GSO_SOCKET_BACKLOG}" -le $((2 * off + 131072)) ] ||
				gso_fail "uso ${uso}, ${qdisc}:" \
					"${GSO_SOCKET_BACKLOG} bytes wait," \
					"not batched ${off}"
		done
	done
	gso_socket_uso on
	gso_socket_qdisc none
}

# each request is answered once, the sender checks
gso_socket_tstamp() {
	local GSO_SEND_OPTS=(-t)
	local uso

	for uso in on off; do
		gso_socket_uso "${uso}"
		gso_mark 0
		# two aggregates each
		gso_udp_transfer 0 1 4 65000 1380 20
		gso_expect_batched 0 20
		gso_mark 0
		gso_udp_transfer 0 1 6 40000 1000 20
		gso_expect_batched 0 20
		gso_mark 0
		gso_tcp_transfer 0 1 4 2000000
		gso_expect_fewer 0
		gso_mark 0
		gso_tcp_transfer 0 1 6 1000000
		gso_expect_fewer 0
	done
	gso_socket_uso on
}

# gso_socket_arrived BYTES: the rate at which they came, in bytes per second
gso_socket_arrived() {
	awk -v n="$1" '$1 == "arrived" { print int(n * 1e6 / ($5 - $3)) }' \
		"${GSO_TMP}/${GSO_DATA_PORT}.recv.err"
}

# gso_socket_paced BYTES cmd...: never faster than the rate. Not slower, either,
# but on a machine that is too slow without batching as well.
gso_socket_paced() {
	local bytes=$1
	local rate try off

	shift
	for try in 1 2 3 4 5; do
		gso_mark 0
		"$@"
		gso_socket_some_batched
		rate=$(gso_socket_arrived "${bytes}")
		[ "${rate}" -le $((GSO_SOCKET_RATE * 11 / 10)) ] ||
			gso_fail "$*: ${rate} bytes/s"
		[ "${rate}" -lt $((GSO_SOCKET_RATE * 9 / 10)) ] || return 0

		gso_socket_batching off
		"$@"
		gso_socket_batching on
		off=$(gso_socket_arrived "${bytes}")
		echo "# try ${try}, $*: ${rate} bytes/s, not batched ${off}"
		[ $((rate * 10)) -lt $((off * 9)) ] || return 0
	done
	gso_fail "$*: only ${rate} bytes/s, not batched ${off}"
}

# a rate is kept by TCP itself, or by fq that sees socket and delivery time
gso_socket_pacing() {
	local GSO_SEND_OPTS=(-r "${GSO_SOCKET_RATE}")
	local GSO_RECV_OPTS=(-e)
	local uso

	for uso in on off; do
		gso_socket_uso "${uso}"
		gso_socket_paced 3000000 gso_tcp_transfer 0 1 4 3000000
		gso_socket_qdisc fq flow_limit 10000
		gso_socket_paced 3000000 gso_tcp_transfer 0 1 4 3000000
		# fq counts all headers
		gso_socket_paced $((45 * 45 * (1300 + 28 + 24 + 42))) \
			gso_udp_transfer 0 1 4 58500 1300 45
		gso_socket_qdisc none
	done
	gso_socket_uso on
}

# a delivery time and its clock reach fq: nothing comes before it
gso_socket_txtime() {
	local GSO_SEND_OPTS=(-x 1000)
	local GSO_RECV_OPTS=(-e)
	local sent arrived

	gso_socket_qdisc fq
	gso_mark 0
	gso_udp_transfer 0 1 4 62100 1380 1
	gso_expect_batched 0 20
	gso_socket_qdisc none

	sent=$(awk '$1 == "sent" { print $3 }' \
		"${GSO_TMP}/${GSO_DATA_PORT}.send.err")
	arrived=$(awk '$1 == "arrived" { print $3 }' \
		"${GSO_TMP}/${GSO_DATA_PORT}.recv.err")
	[ $((arrived - sent)) -ge 1000000 ] ||
		gso_fail "arrived after $((arrived - sent)) us"
}

# the sender checks that its data stays as it is, and for completions
gso_socket_methods() {
	local file="${GSO_TMP}/file"
	local GSO_SEND_OPTS
	local method uso

	for uso in on off; do
		gso_socket_uso "${uso}"
		for method in zerocopy sendfile splice vmsplice; do
			GSO_SEND_OPTS=(-m "${method}" -f "${file}")
			gso_mark 0
			gso_udp_transfer 0 1 4 60000 1200 10
			gso_expect_batched 0 20
			gso_mark 0
			gso_tcp_transfer 0 1 4 1000000
			gso_expect_fewer 0
		done
		gso_mark 0
		gso_udp_transfer 0 1 6 60000 1200 10
		gso_expect_batched 0 20
	done
	gso_socket_uso on
}

# the checksum must be that of the data which is encrypted
gso_socket_scribble() {
	local GSO_RECV_OPTS=(-s)
	local GSO_SEND_OPTS
	local errors method

	errors=$(gso_csum_errors 1)
	for method in zerocopy splice; do
		GSO_SEND_OPTS=(-s -m "${method}" -f "${GSO_TMP}/file")
		gso_mark 0
		gso_udp_transfer 0 1 4 60000 1200 40
		gso_expect_batched 0 20
		gso_mark 0
		gso_tcp_transfer 0 1 4 2000000
		gso_expect_fewer 0

		# the same on the way of single packets
		gso_udp_transfer 0 1 4 1200 0 500
		gso_socket_batching off
		gso_mark 0
		gso_tcp_transfer 0 1 4 1000000
		gso_expect_single 0
		gso_socket_batching on
	done
	[ "$(gso_csum_errors 1)" -eq "${errors}" ] ||
		gso_fail "$(($(gso_csum_errors 1) - errors)) checksum errors"
}

# gso_socket_count_meta EXPRESSION: count aggregates, and those that match
gso_socket_count_meta() {
	gso_on 0 nft -f - <<-END
	table inet gso_meta
	delete table inet gso_meta
	table inet gso_meta {
		counter seen { }
		counter matching { }
		chain output {
			type filter hook output priority 1; policy accept;
			udp sport ${GSO_PORT} meta length > 3000 \
				counter name seen
			udp sport ${GSO_PORT} meta length > 3000 \
				$1 counter name matching
		}
	}
	END
}

# gso_socket_expect_meta WHAT: all aggregates have matched
gso_socket_expect_meta() {
	local seen matching

	seen=$(gso_on 0 nft -j list counter inet gso_meta seen |
		jq '.nftables[] | .counter? | select(.) | .packets')
	matching=$(gso_on 0 nft -j list counter inet gso_meta matching |
		jq '.nftables[] | .counter? | select(.) | .packets')
	[ "${seen}" -ge 10 ] || gso_fail "only ${seen} aggregates"
	[ "${matching}" -eq "${seen}" ] ||
		gso_fail "${matching} of ${seen} aggregates have the $1"
}

gso_socket_priority() {
	local GSO_SEND_OPTS=(-p $((0x10007)))

	gso_socket_count_meta "meta priority 1:7"
	gso_udp_transfer 0 1 4 62100 1380 10
	gso_tcp_transfer 0 1 4 1000000
	gso_udp_transfer 0 1 6 60000 1200 10
	gso_socket_expect_meta priority
}

# of the transport socket, which only "new_multi_peer" can set
gso_socket_mark() {
	local peers="${GSO_TMP}/peers"
	local p

	gso_teardown
	gso_setup_underlay 1500
	printf '1 10 %s %s %s %s %s\n' "$(gso_outer_addr 0)" "${GSO_PORT}" \
		"$(gso_outer_addr 1)" "${GSO_PORT}" "$(gso_inner_addr 1)" \
		>"${peers}"
	gso_on 0 "${OVPN_CLI}" new_iface tun0 MP >/dev/null
	gso_on 1 "${OVPN_CLI}" new_iface tun1 P2P >/dev/null
	gso_on 0 "${OVPN_CLI}" new_multi_peer tun0 "${GSO_PORT}" ASYMM \
		"${peers}" "${GSO_SOCKET_MARK}"
	gso_on 1 "${OVPN_CLI}" new_peer tun1 10 1 "${GSO_PORT}" \
		"$(gso_outer_addr 0)" "${GSO_PORT}"
	for p in 0 1; do
		gso_add_key "${p}"
		gso_setup_dev "${p}"
	done

	gso_socket_count_meta "meta mark ${GSO_SOCKET_MARK}"
	gso_udp_transfer 0 1 4 62100 1380 10
	gso_tcp_transfer 0 1 4 1000000
	gso_socket_expect_meta mark
}

gso_require ethtool jq nft nstat ss tc

gso_start 10

ovpn_run_stage "set up two peers, batching" gso_socket_setup
ovpn_run_stage "a socket is charged until its data has left" gso_socket_wmem
ovpn_run_stage "TCP Small Queues bounds the backlog" gso_socket_tsq
ovpn_run_stage "each timestamp request is answered once" gso_socket_tstamp
ovpn_run_stage "pacing keeps its rate" gso_socket_pacing
ovpn_run_stage "nothing leaves before its delivery time" gso_socket_txtime
ovpn_run_stage "zerocopy, sendfile and splice" gso_socket_methods
ovpn_run_stage "data that changes while it is sent" gso_socket_scribble
ovpn_run_stage "the qdisc sees the priority" gso_socket_priority
ovpn_run_stage "the mark of the transport socket" gso_socket_mark

gso_finish
