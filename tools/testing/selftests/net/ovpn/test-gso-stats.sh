#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Statistics are exact to the packet and byte, at both ends, whether or not
# records are batched.

set -eE

source ./gso-common.sh

# per record: opcode, key and peer 4, packet ID 4, tag 16
GSO_STATS_OVERHEAD=24
# now, at the last look, and what has changed in between
declare -A GSO_STATS GSO_STATS_LAST GSO_STATS_DELTA

# gso_stats_read: all counters of both ends, and the skbs that peer 0 has sent
gso_stats_read() {
	local value what p

	for p in 0 1; do
		while IFS=: read -r what value; do
			what=${what#$'\t'}
			case ${what} in
			VPN\ [RT]X\ *|LINK\ [RT]X\ *)
				GSO_STATS["peer${p} ${what}"]=${value}
				;;
			esac
		done < <(gso_on "${p}" "${OVPN_CLI}" get_peer "tun${p}" 2>&1)
		while IFS=: read -r what value; do
			GSO_STATS["tun${p} ${what##*/}"]=${value}
		done < <(gso_on "${p}" grep -r . \
			"/sys/class/net/tun${p}/statistics/")
	done
	GSO_STATS[skbs]=$(gso_skbs 0)
}

# gso_stats_delta: what has changed since the last call
gso_stats_delta() {
	local i k

	for k in "${!GSO_STATS[@]}"; do
		GSO_STATS_LAST[${k}]=${GSO_STATS[${k}]}
	done
	gso_stats_read
	GSO_STATS_DELTA=()
	for k in "${!GSO_STATS[@]}"; do
		i=$((GSO_STATS[${k}] - GSO_STATS_LAST[${k}]))
		[ "${i}" -eq 0 ] || GSO_STATS_DELTA[${k}]=${i}
	done
}

# gso_stats_expect COUNTER VALUE: and take it off the list
gso_stats_expect() {
	local got=${GSO_STATS_DELTA[$1]:-0}

	[ "${got}" -eq "$2" ] || gso_fail "$1: ${got} instead of $2"
	unset "GSO_STATS_DELTA[$1]"
}

# gso_stats_nothing_else: no other counter has moved
gso_stats_nothing_else() {
	local k

	for k in "${!GSO_STATS_DELTA[@]}"; do
		gso_fail "$k: ${GSO_STATS_DELTA[${k}]} instead of 0"
	done
}

# gso_stats_transfer 4|6 LEN SEG COUNT SKBS: SKBS to send it with
gso_stats_transfer() {
	local bytes link n

	n=$(($3 ? $4 * (($2 + $3 - 1) / $3) : $4))
	bytes=$(($2 * $4 + n * (8 + ($1 == 4 ? 20 : 40))))
	link=$((bytes + n * GSO_STATS_OVERHEAD))

	gso_udp_transfer 0 1 "$1" "$2" "$3" "$4"
	gso_stats_delta
	gso_stats_expect "peer0 VPN TX packets" "${n}"
	gso_stats_expect "peer0 VPN TX bytes" "${bytes}"
	gso_stats_expect "peer0 LINK TX packets" "${n}"
	gso_stats_expect "peer0 LINK TX bytes" "${link}"
	gso_stats_expect "peer1 LINK RX packets" "${n}"
	gso_stats_expect "peer1 LINK RX bytes" "${link}"
	gso_stats_expect "peer1 VPN RX packets" "${n}"
	gso_stats_expect "peer1 VPN RX bytes" "${bytes}"
	gso_stats_expect "tun1 rx_packets" "${n}"
	gso_stats_expect "tun1 rx_bytes" "${bytes}"
	# what is handed to the outer stack: records without outer headers
	gso_stats_expect "tun0 tx_bytes" "${link}"
	gso_stats_expect "tun0 tx_packets" "$5"
	gso_stats_expect skbs "$5"
	gso_stats_nothing_else
}

# gso_stats_udp on|off: LEN SEG COUNT, skbs with batching, skbs without. The
# records of 64000 bytes do not fit one aggregate.
gso_stats_udp() {
	local af len seg count batched single

	gso_offload 0 tun0 gso "$1"
	gso_count_skbs 0
	gso_stats_read
	while read -r len seg count batched single; do
		[ "$1" = off ] || single=${batched}
		for af in 4 6; do
			gso_stats_transfer "${af}" "${len}" "${seg}" \
				"${count}" "${single}" </dev/null
		done
	done <<-END
	20000 1000 5 5 100
	20001 1000 5 5 105
	64000 500 2 4 256
	999 0 30 30 30
	END
	gso_offload 0 tun0 gso on
}

gso_stats_batched() {
	gso_stats_udp on
}

gso_stats_single() {
	gso_stats_udp off
}

# gso_stats_equal COUNTER COUNTER [PLUS]
gso_stats_equal() {
	local a=${GSO_STATS_DELTA[$1]:-0}
	local b=${GSO_STATS_DELTA[$2]:-0}

	[ "${a}" -eq $((b + ${3:-0})) ] ||
		gso_fail "$1 ${a}, $2 ${b}, difference not ${3:-0}"
}

# gso_stats_tcp 4|6: both ends agree about a stream, in both directions
gso_stats_tcp() {
	local from n to unit

	gso_stats_read
	gso_tcp_transfer 0 1 "$1" 1000001
	gso_stats_delta
	for from in 0 1; do
		to=$((1 - from))
		n=${GSO_STATS_DELTA["peer${from} LINK TX packets"]:-0}
		[ "${n}" -ge 10 ] || gso_fail "only ${n} records"
		for unit in packets bytes; do
			gso_stats_equal "peer${from} VPN TX ${unit}" \
				"peer${to} VPN RX ${unit}"
			gso_stats_equal "peer${from} LINK TX ${unit}" \
				"peer${to} LINK RX ${unit}"
		done
		gso_stats_equal "peer${from} VPN TX packets" \
			"peer${from} LINK TX packets"
		gso_stats_equal "peer${from} LINK TX bytes" \
			"peer${from} VPN TX bytes" $((n * GSO_STATS_OVERHEAD))
		gso_stats_equal "tun${from} tx_bytes" \
			"peer${from} LINK TX bytes"
		gso_stats_equal "tun${to} rx_packets" \
			"peer${to} VPN RX packets"
		gso_stats_equal "tun${to} rx_bytes" "peer${to} VPN RX bytes"
		gso_stats_expect "tun${from} tx_dropped" 0
		gso_stats_expect "tun${from} rx_dropped" 0
	done
	gso_stats_equal "tun0 tx_packets" skbs
}

gso_stats_stream() {
	local af

	for af in 4 6; do
		gso_stats_tcp "${af}"
	done
	gso_offload 0 tun0 gso off
	gso_stats_tcp 4
	gso_stats_equal "tun0 tx_packets" "peer0 LINK TX packets"
	gso_offload 0 tun0 gso on
}

# gso_stats_lost on|off: each packet that cannot be sent counts
gso_stats_lost() {
	gso_offload 0 tun0 gso "$1"
	gso_stats_read
	gso_on 0 "${GSO_TRAFFIC}" udp-send "$(gso_inner_addr 1)" 4000 \
		20001 1000 3 >/dev/null
	gso_stats_delta
	gso_offload 0 tun0 gso on
	gso_stats_expect "tun0 tx_dropped" 63
	gso_stats_expect "tun0 tx_packets" 0
	gso_stats_expect "peer0 LINK TX packets" 0
	gso_stats_expect skbs 0
}

gso_stats_no_key() {
	gso_on 0 "${OVPN_CLI}" del_key tun0 1 1
	gso_stats_lost on
	gso_stats_lost off
	# packet IDs start again: both need to know
	gso_add_key 0
	gso_add_key 1
	gso_ping 0 1 4 100
}

gso_stats_outer6() {
	gso_teardown
	GSO_OUTER=6
	gso_setup 1500
}

gso_require ethtool nft ss
gso_start 7

ovpn_run_stage "set up two peers, IPv4 outside" gso_setup
ovpn_run_stage "datagrams in aggregates" gso_stats_batched
ovpn_run_stage "datagrams one by one" gso_stats_single
ovpn_run_stage "streams" gso_stats_stream
ovpn_run_stage "packets that are dropped" gso_stats_no_key
ovpn_run_stage "set up two peers, IPv6 outside" gso_stats_outer6
ovpn_run_stage "datagrams in aggregates, IPv6 outside" gso_stats_batched

gso_finish
