#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Aggregates leave, whatever the underlay is and can do, and what is on the wire
# are the records of the per-record path.

set -eE

source ./gso-common.sh

# 24 segments, the last one shorter
GSO_BATCH_LEN=30000
GSO_BATCH_SEG=1300
# opcode DATA_V2, key 0, and peer 0 has the ID 10 at peer 1
GSO_BATCH_HEADER=0x4800000a

gso_require ethtool jq nft python3 ss tcpdump

gso_batch_udp() {
	gso_udp_transfer 0 1 "$1" "${GSO_BATCH_LEN}" "${GSO_BATCH_SEG}" \
		"${2:-5}"
}

gso_batch_tcp() {
	gso_tcp_transfer 0 1 "$1" 500000
}

# gso_batch_transfer: both kinds of bursts, IPv4 and IPv6 inside, leave in few
# skbs and arrive
gso_batch_transfer() {
	gso_mark_received 0 1

	# one skb for each call
	gso_mark 0
	gso_batch_udp 4
	gso_batch_udp 6
	gso_expect_batched 0
	if [ "${GSO_RECORDS}" -ne 240 ] || [ "${GSO_SKBS}" -ne 10 ]; then
		gso_fail "${GSO_RECORDS} records in ${GSO_SKBS} skbs"
	fi

	gso_mark 0
	gso_batch_tcp 4
	gso_batch_tcp 6
	# it starts with short bursts
	gso_expect_fewer 0

	gso_expect_received 0 1
}

# gso_batch_variant whole|single|any [FEATURE off]...: with these features of
# the underlay off, and whether it gets aggregates or single datagrams then
gso_batch_variant() {
	local wire=$1
	local packets records

	shift
	[ $# -eq 0 ] || gso_offload 0 "${GSO_DEV}" "$@"

	packets=$(gso_dev_stat 0 "${GSO_DEV}" tx_packets)
	records=$(gso_peer_stat 0 LINK TX packets)
	gso_batch_transfer
	packets=$(($(gso_dev_stat 0 "${GSO_DEV}" tx_packets) - packets))
	records=$(($(gso_peer_stat 0 LINK TX packets) - records))

	case "${wire}" in
	whole)
		[ $((2 * packets)) -le "${records}" ] ||
			gso_fail "${records} records in ${packets} packets"
		;;
	single)
		[ "${packets}" -ge "${records}" ] ||
			gso_fail "${records} records in ${packets} packets"
		;;
	esac

	[ $# -eq 0 ] || gso_offload 0 "${GSO_DEV}" "${@/off/on}"
}

# gso_batch_capture_start PEER in|out
gso_batch_capture_start() {
	local file="${GSO_TMP}/$1.pcap"
	local i

	rm -f "${file}"
	gso_on "$1" tcpdump -i "${GSO_DEV}" -Q "$2" -s 0 -B 16384 -U \
		--immediate-mode -w "${file}" udp src port "${GSO_PORT}" \
		2>"${file}.log" &
	GSO_BATCH_PIDS+=($!)
	for i in $(seq 100); do
		grep -q "listening on" "${file}.log" && return
		sleep 0.1
	done
	gso_fail "tcpdump does not start (${i} tries): $(cat "${file}.log")"
}

# gso_batch_capture_check PEER RECORDS [OPTION]...
gso_batch_capture_check() {
	local file="${GSO_TMP}/$1.pcap"
	local n=0
	local i

	for i in $(seq 50); do
		n=$(./gso-wire.py count "${file}" "${GSO_PORT}")
		[ "${n}" -lt "$2" ] || break
		sleep 0.2
	done
	[ "${n}" -eq "$2" ] ||
		gso_fail "$2 records, ${n} at peer $1 (${i} tries)"
	GSO_BATCH_LENGTHS=$(./gso-wire.py check "${file}" "${GSO_PORT}" \
		"${GSO_BATCH_HEADER}" "${@:3}") ||
		gso_fail "peer $1: ${GSO_BATCH_LENGTHS}"
}

gso_batch_capture() {
	GSO_BATCH_PIDS=()
	gso_batch_capture_start 0 out
	gso_batch_capture_start 1 in
	gso_mark 0
	gso_mark_received 0 1
}

gso_batch_capture_stop() {
	kill "${GSO_BATCH_PIDS[@]}"
	wait "${GSO_BATCH_PIDS[@]}" || true
}

# gso_batch_wire COMMON_OPTION FEATURE off: what is on the wire after aggregates
# have been cut in software
gso_batch_wire() {
	local want=()
	local af i rec rest
	local option=()

	[ "$1" = none ] || option=("$1")
	shift
	gso_offload 0 "${GSO_DEV}" "$@"

	# the capture on the way out tells the order, the one on the way in what
	# the other side gets
	gso_batch_capture
	for af in 4 6; do
		gso_batch_udp "${af}"
		rec=$((GSO_BATCH_SEG + 8 + 20 * (af / 2 - 1) + 24))
		rest=$((rec - GSO_BATCH_SEG + GSO_BATCH_LEN % GSO_BATCH_SEG))
		for i in $(seq 5); do
			want+=("${rec}x$((GSO_BATCH_LEN / GSO_BATCH_SEG))")
			want+=("${rest}x1")
		done
	done
	gso_expect_batched 0
	gso_expect_received 0 1
	gso_batch_capture_check 1 "${GSO_RECORDS}" "${option[@]}"
	gso_batch_capture_check 0 "${GSO_RECORDS}" order "${option[@]}"
	gso_batch_capture_stop
	[ "${GSO_BATCH_LENGTHS}" = "${want[*]}" ] ||
		gso_fail "lengths ${GSO_BATCH_LENGTHS}, not ${want[*]} (${i})"

	# two senders: aggregates between each other
	gso_batch_capture
	gso_batch_tcp 4 &
	i=$!
	GSO_DATA_PORT=4001 gso_batch_udp 6 40
	wait "${i}"
	gso_expect_batched 0
	gso_expect_received 0 1
	gso_read 0
	gso_batch_capture_check 0 "${GSO_RECORDS}" "${option[@]}"
	gso_batch_capture_check 1 "${GSO_RECORDS}" "${option[@]}"
	gso_batch_capture_stop

	gso_offload 0 "${GSO_DEV}" "${@/off/on}"
	gso_batch_transfer
}

gso_batch_setup() {
	GSO_OUTER=$1
	gso_teardown
	gso_setup_underlay
	gso_quiet 0
	gso_quiet 1
	gso_setup_tunnel
}

gso_batch_variants() {
	local v="IPv$1 outside"

	ovpn_run_stage "${v}: setup" gso_batch_setup "$1"
	ovpn_run_stage "${v}: batches" gso_batch_variant whole
	ovpn_run_stage "${v}: no UDP segmentation below" \
		gso_batch_variant single tx-udp-segmentation off
	ovpn_run_stage "${v}: no checksum offload below" \
		gso_batch_variant single tx off
	ovpn_run_stage "${v}: no scatter-gather below" \
		gso_batch_variant any sg off
	ovpn_run_stage "${v}: no GSO below" gso_batch_variant any gso off
	ovpn_run_stage "${v}: no offload below" gso_batch_variant single \
		tx off sg off tso off gso off tx-udp-segmentation off
	ovpn_run_stage "${v}: records on the wire" gso_batch_wire none tx off
	ovpn_run_stage "${v}: records on the wire, checksum offload" \
		gso_batch_wire partial tx-udp-segmentation off
}

# gso_batch_upper KIND: move the addresses of the underlay to another device
gso_batch_upper() {
	local ns p

	for p in 0 1; do
		ns="ovpn_peer${p}"
		ip -n "${ns}" addr flush dev "${GSO_DEV}"
		case $1 in
		VLAN)
			ip -n "${ns}" link add link "${GSO_DEV}" name upper \
				type vlan id 7
			;;
		macvlan)
			ip -n "${ns}" link add link "${GSO_DEV}" name upper \
				type macvlan mode bridge
			;;
		bridge)
			ip -n "${ns}" link add upper type bridge
			ip -n "${ns}" link set "${GSO_DEV}" master upper
			;;
		"pair of macvlans")
			# what one of them sends is received by the other as
			# it is
			ip -n "${GSO_NS0}" link add link "${GSO_DEV}" \
				name upper netns "${ns}" \
				type macvlan mode bridge
			;;
		esac
		ip -n "${ns}" addr add "10.10.1.$((p + 1))/24" dev upper
		ip -n "${ns}" addr add "fd00:0:0:1::$((p + 1))/64" dev upper \
			nodad
		ip -n "${ns}" link set upper up
	done
}

# gso_batch_kind KIND 4|6
gso_batch_kind() {
	GSO_OUTER=$2
	gso_teardown
	gso_setup_underlay
	gso_quiet 0
	gso_quiet 1
	gso_batch_upper "$1"
	gso_setup_tunnel
	gso_batch_transfer
}

# a cipher makes no difference to the underlay: what counts is on the wire
if [ "${OVPN_ALG}" != aes ]; then
	gso_start 4
	ovpn_run_stage "setup" gso_batch_setup 4
	ovpn_run_stage "batches" gso_batch_variant whole
	ovpn_run_stage "records on the wire" gso_batch_wire none tx off
	ovpn_run_stage "records on the wire, checksum offload" \
		gso_batch_wire partial tx-udp-segmentation off
	gso_finish
fi

gso_start 22

gso_batch_variants 4
gso_batch_variants 6
ovpn_run_stage "underlay: VLAN" gso_batch_kind VLAN 4
ovpn_run_stage "underlay: macvlan" gso_batch_kind macvlan 6
ovpn_run_stage "underlay: bridge" gso_batch_kind bridge 4
ovpn_run_stage "underlay: pair of macvlans" \
	gso_batch_kind "pair of macvlans" 6

gso_finish
