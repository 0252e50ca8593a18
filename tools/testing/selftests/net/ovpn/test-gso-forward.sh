#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Traffic that a peer forwards from a network behind it: bursts that GRO has put
# together, as lists or not, SCTP bursts, and packets that were reassembled.

set -eE

source ./gso-common.sh

# namespace ovpn_peer2 is the network behind peer 0
GSO_FWD_LAN=2
GSO_FWD_NET4=10.20.0.
GSO_FWD_NET6=fd07::
# and in a tunnel to it
GSO_FWD_BIG4=10.21.0.
GSO_FWD_BIG6=fd08::

# packets come in as they are on a wire
gso_fwd_wire() {
	gso_offload "${GSO_FWD_LAN}" lan tso off gso off \
		tx-udp-segmentation off tx off
}

# or as those of containers and guests
gso_fwd_virtual() {
	gso_offload "${GSO_FWD_LAN}" lan tx on gso on tso on \
		tx-udp-segmentation on
}

# gso_fwd_setup [MTU of the underlay [MTU of the network behind]]
gso_fwd_setup() {
	local p

	gso_setup "${1:-1500}"
	ovpn_create_ns "${GSO_FWD_LAN}"
	gso_on "${GSO_FWD_LAN}" sysctl -qw net.ipv6.conf.default.accept_dad=0
	ip link add lan netns "${GSO_NS0}" type veth \
		peer name lan netns "ovpn_peer${GSO_FWD_LAN}"
	for p in 0 "${GSO_FWD_LAN}"; do
		ip -n "ovpn_peer${p}" addr add \
			"${GSO_FWD_NET4}$((p + 1))/24" dev lan
		ip -n "ovpn_peer${p}" addr add \
			"${GSO_FWD_NET6}$((p + 1))/64" dev lan nodad
		ip -n "ovpn_peer${p}" link set lan mtu "${2:-${GSO_MTU}}" up
	done
	ip -n "ovpn_peer${GSO_FWD_LAN}" route add default \
		via "${GSO_FWD_NET4}1"
	ip -n "ovpn_peer${GSO_FWD_LAN}" route add default \
		via "${GSO_FWD_NET6}1"
	ip -n "${GSO_NS1}" route add "${GSO_FWD_NET4}0/24" dev tun1
	ip -n "${GSO_NS1}" route add "${GSO_FWD_NET6}/64" dev tun1
	gso_on 0 sysctl -qw net.ipv4.ip_forward=1 \
		net.ipv6.conf.all.forwarding=1

	gso_fwd_wire
	gso_ping "${GSO_FWD_LAN}" 1 4 100
	gso_ping "${GSO_FWD_LAN}" 1 6 100
}

# gso_fwd_gro on|off: GRO where packets come in, and nothing special about it
gso_fwd_gro() {
	gso_offload 0 lan rx-gro-list off rx-udp-gro-forwarding off gro "$1"
}

gso_fwd_batched() {
	gso_bursts_batched "${GSO_FWD_LAN}" "$@"
	gso_expect_no_csum_errors
}

gso_fwd_single() {
	gso_bursts_single "${GSO_FWD_LAN}" "$@"
	gso_expect_no_csum_errors
}

# all that follows is what GRO makes of it
gso_fwd_no_gro() {
	gso_fwd_gro off
	gso_fwd_single tcp4 udp6
}

gso_fwd_plain_gro() {
	gso_fwd_gro on
	gso_fwd_batched tcp4 tcp6
	# GRO leaves it alone without a socket that wants it
	gso_fwd_single udp4
	gso_fwd_gro off
}

# without the feature, lists are cut by the stack: this tells that they are
gso_fwd_gro_list() {
	gso_fwd_gro on
	gso_offload 0 lan rx-gro-list on
	gso_fwd_batched tcp4 tcp6 udp4 udp6
	gso_offload 0 tun0 tx-gso-list off
	gso_fwd_single tcp4 udp4
	gso_offload 0 tun0 tx-gso-list on
	gso_fwd_batched tcp6 udp4
	gso_fwd_gro off
}

gso_fwd_udp_gro() {
	gso_fwd_gro on
	gso_offload 0 lan rx-udp-gro-forwarding on
	gso_fwd_batched udp4 udp6
	gso_fwd_gro off
}

# bursts that have never been cut
gso_fwd_no_wire() {
	gso_fwd_virtual
	gso_fwd_batched tcp4 tcp6 udp4 udp6
	gso_fwd_wire
}

# list and no list at the same time
gso_fwd_mixed() {
	local pid

	gso_fwd_gro on
	gso_offload 0 lan rx-gro-list on
	(
		trap - ERR
		GSO_DATA_PORT=4001
		gso_tcp_transfer 0 1 4 2000001
	) &
	pid=$!
	gso_fwd_batched tcp4 udp6
	wait "${pid}" || gso_fail "the flow of the router has failed"
	gso_fwd_gro off
}

# gso_fwd_sctp_errors PEER
gso_fwd_sctp_errors() {
	gso_on "$1" cat /proc/net/sctp/snmp |
		awk '/ChecksumErrors/ { print $2 }'
}

# gso_fwd_sctp FROM 4|6: its bursts have segments of any size: no aggregates
gso_fwd_sctp() {
	local addr n p pid

	addr=$(gso_inner_addr 1 "$2")
	[ "$2" -eq 4 ] || addr="[${addr}]"
	gso_on 0 nft -f - <<-END
	table inet gso_fwd
	delete table inet gso_fwd
	table inet gso_fwd {
		counter bursts { }
		chain output {
			type filter hook postrouting priority 0;
			oifname tun0 meta l4proto sctp counter name bursts
		}
	}
	END
	head -c 500001 /dev/urandom >"${GSO_TMP}/sent"

	gso_mark 0
	gso_on 1 socat -u "SCTP$2-LISTEN:4002" \
		"CREATE:${GSO_TMP}/received" 2>"${GSO_TMP}/socat.recv" &
	pid=$!
	gso_on "$1" socat -u "OPEN:${GSO_TMP}/sent" \
		"SCTP$2:${addr}:4002,retry=100,interval=0.1" \
		2>"${GSO_TMP}/socat.send" ||
		gso_fail "SCTP: $(cat "${GSO_TMP}/socat.send")"
	wait "${pid}" || gso_fail "SCTP: $(cat "${GSO_TMP}/socat.recv")"
	cmp -s "${GSO_TMP}/sent" "${GSO_TMP}/received" ||
		gso_fail "SCTP: $(wc -c <"${GSO_TMP}/received") bytes received"

	gso_expect_single 0
	n=$(gso_on 0 nft list counter inet gso_fwd bursts)
	n=${n#*packets }
	n=${n%% *}
	[ "${n}" -lt "${GSO_RECORDS}" ] ||
		gso_fail "${n} packets, ${GSO_RECORDS} records: no burst"
	for p in "$1" 1; do
		n=$(gso_fwd_sctp_errors "${p}")
		[ "${n}" -eq 0 ] || gso_fail "peer ${p}: ${n} checksum errors"
	done
}

gso_fwd_sctp_bursts() {
	gso_fwd_sctp 0 4
	gso_fwd_sctp 0 6
	# forwarded, with checksums that nobody has completed yet
	gso_fwd_virtual
	gso_fwd_sctp "${GSO_FWD_LAN}" 4
	gso_fwd_sctp "${GSO_FWD_LAN}" 6
	gso_fwd_wire
}

# A packet of many fragments, and not GSO: it has come through a tunnel whose
# own packets were fragmented and are put together here. What comes out of the
# tunnel fits the MTU of ovpn.
gso_fwd_big_setup() {
	local p

	gso_teardown
	GSO_MTU=9000
	gso_fwd_setup 9200 1280
	for p in 0 "${GSO_FWD_LAN}"; do
		ip -n "ovpn_peer${p}" link add big type gre \
			local "${GSO_FWD_NET4}$((p + 1))" \
			remote "${GSO_FWD_NET4}$((GSO_FWD_LAN - p + 1))" \
			nopmtudisc ignore-df
		ip -n "ovpn_peer${p}" link set big mtu 8900 up
		ip -n "ovpn_peer${p}" addr add \
			"${GSO_FWD_BIG4}$((p + 1))/24" dev big
		ip -n "ovpn_peer${p}" addr add \
			"${GSO_FWD_BIG6}$((p + 1))/64" dev big nodad
	done
	ip -n "ovpn_peer${GSO_FWD_LAN}" route replace default \
		via "${GSO_FWD_BIG4}1"
	ip -n "ovpn_peer${GSO_FWD_LAN}" -6 route replace default \
		via "${GSO_FWD_BIG6}1"
	ip -n "${GSO_NS1}" route add "${GSO_FWD_BIG4}0/24" dev tun1
	ip -n "${GSO_NS1}" route add "${GSO_FWD_BIG6}/64" dev tun1
	# 8 KB in more than 17 fragments
	ip -n "${GSO_NS0}" link set lan mtu 300
	ip -n "ovpn_peer${GSO_FWD_LAN}" link set lan mtu 300
}

# gso_fwd_reassembled: "fragments packets" that peer 0 has put together
gso_fwd_reassembled() {
	gso_on 0 nstat -asz IpReasmReqds IpReasmOKs |
		awk '/Ip/ { printf "%d ", $2 } END { print "" }'
}

gso_fwd_big() {
	local af after before

	for af in 4 6; do
		read -r -a before < <(gso_fwd_reassembled)
		gso_mark 0
		gso_udp_transfer "${GSO_FWD_LAN}" 1 "${af}" 8001 0 30
		gso_read 0
		read -r -a after < <(gso_fwd_reassembled)
		[ $((after[0] - before[0])) -ge 600 ] ||
			gso_fail "$((after[0] - before[0])) fragments"
		[ $((after[1] - before[1])) -ge 30 ] ||
			gso_fail "$((after[1] - before[1])) reassembled"
		# not fragmented again
		[ "${GSO_RECORDS}" -eq 30 ] ||
			gso_fail "${GSO_RECORDS} records for 30 packets"
		gso_ping "${GSO_FWD_LAN}" 1 "${af}" 8001
	done
	gso_expect_no_csum_errors
}

gso_require ethtool nft nstat socat ss
gso_start 10

ovpn_run_stage "set up two peers and a network behind" gso_fwd_setup
ovpn_run_stage "single packets" gso_fwd_no_gro
ovpn_run_stage "GRO" gso_fwd_plain_gro
ovpn_run_stage "GRO as lists" gso_fwd_gro_list
ovpn_run_stage "GRO of UDP" gso_fwd_udp_gro
ovpn_run_stage "bursts that were not cut" gso_fwd_no_wire
ovpn_run_stage "forwarded lists and local bursts" gso_fwd_mixed
ovpn_run_stage "SCTP bursts go one by one" gso_fwd_sctp_bursts
ovpn_run_stage "set up a network with fragments" gso_fwd_big_setup
ovpn_run_stage "packets with long lists of fragments" gso_fwd_big

gso_finish
