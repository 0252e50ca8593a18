#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Features of an ovpn device, its off switches, and the checksums of the packets
# inside, on all ways through the driver.

set -eE

source ./gso-common.sh

GSO_BASE_CAPTURE="${GSO_TMP}/inner.pcap"

# gso_base_expect on|off FEATURE...
gso_base_expect() {
	local want=$1
	local feature got

	shift
	for feature in "$@"; do
		got=$(gso_feature 0 tun0 "${feature}")
		[ "${got}" = "${want}" ] ||
			gso_fail "${feature} is ${got:-unknown}, not ${want}"
	done
}

gso_base_features() {
	gso_base_expect on \
		tx-checksumming tx-checksum-ip-generic \
		scatter-gather tx-scatter-gather tx-scatter-gather-fraglist \
		tcp-segmentation-offload tx-tcp-segmentation \
		tx-tcp6-segmentation tx-tcp-ecn-segmentation \
		tx-udp-segmentation tx-sctp-segmentation tx-gso-list \
		generic-segmentation-offload
	# nothing can be done about the checksums of hardware that is not there
	gso_base_expect off tx-checksum-ipv4 tx-checksum-ipv6 tx-checksum-sctp
}

# gso_base_send tcp4|tcp6|udp4|udp6: bursts from peer 0, the last segment of
# which is an odd one
gso_base_send() {
	gso_mark 0
	case $1 in
	tcp*)	gso_tcp_transfer 0 1 "${1#tcp}" 1000001 ;;
	udp*)	gso_udp_transfer 0 1 "${1#udp}" 20501 1001 6 ;;
	esac
}

gso_base_batched() {
	local kind

	for kind in "$@"; do
		gso_base_send "${kind}"
		gso_expect_batched 0
	done
}

gso_base_single() {
	local kind

	for kind in "$@"; do
		gso_base_send "${kind}"
		gso_expect_single 0
	done
}

# gso_base_switch FEATURE KIND...: what a switch is about arrives all the same,
# and is batched again afterwards
gso_base_switch() {
	gso_offload 0 tun0 "$1" off
	gso_base_single "${@:2}"
	gso_offload 0 tun0 "$1" on
	gso_base_batched "${@:2}"
}

gso_base_tso() {
	gso_offload 0 tun0 tso off
	gso_base_expect off tx-tcp-segmentation tx-tcp6-segmentation
	# UDP goes on
	gso_base_batched udp4
	gso_base_switch tso tcp4 tcp6
}

gso_base_uso() {
	gso_offload 0 tun0 tx-udp-segmentation off
	gso_base_expect off tx-udp-segmentation
	# TCP goes on
	gso_base_batched tcp4
	gso_base_switch tx-udp-segmentation udp4 udp6
}

# the generic switch takes those with it that are done in software
gso_base_gso() {
	gso_offload 0 tun0 gso off
	gso_base_expect off tcp-segmentation-offload tx-udp-segmentation \
		tx-sctp-segmentation tx-gso-list
	gso_base_switch gso tcp4 udp6
	gso_base_features
}

# no segmentation without checksum offload
gso_base_tx() {
	gso_offload 0 tun0 tx off
	gso_base_expect off tcp-segmentation-offload tx-udp-segmentation
	gso_base_switch tx tcp6 udp4
	gso_base_features
}

# gso_base_toggle: use all switches until told to stop
gso_base_toggle() {
	local sw

	while [ -e "${GSO_TMP}/toggle" ]; do
		for sw in tso tx-udp-segmentation gso tx; do
			gso_offload 0 tun0 "${sw}" off
			gso_offload 0 tun0 "${sw}" on
		done
		echo >>"${GSO_TMP}/toggled"
	done
}

gso_base_live() {
	local pid

	touch "${GSO_TMP}/toggle"
	(trap - ERR; gso_base_toggle) &
	pid=$!
	# until all switches have been used at least once
	while gso_tcp_transfer 0 1 4 4000000; do
		gso_udp_transfer 0 1 6 20501 1001 20
		[ ! -e "${GSO_TMP}/toggled" ] || break
	done
	rm "${GSO_TMP}/toggle"
	wait "${pid}" || gso_fail "the switches do not work"

	gso_base_features
	gso_base_batched tcp4 udp6
	gso_expect_no_csum_errors
}

# gso_base_paths: every kind of packet, all of them arrive
gso_base_paths() {
	local af len

	for af in 4 6; do
		gso_base_batched "tcp${af}" "udp${af}"
		# few bytes: packets that are no GSO
		for len in 1 2 535 1301; do
			gso_tcp_transfer 0 1 "${af}" "${len}"
		done
		gso_udp_transfer 0 1 "${af}" 1 0 10
		gso_udp_transfer 0 1 "${af}" 999 0 50
		# the last one is fragmented inside
		for len in 16 1301 5001; do
			gso_ping 0 1 "${af}" "${len}"
		done
	done
	gso_expect_no_csum_errors
}

gso_base_captured() {
	gso_on 1 tcpdump -r "${GSO_BASE_CAPTURE}" -nnvv 2>/dev/null
}

gso_base_count() {
	grep -cE "$1" "${GSO_TMP}/inner.txt" || true
}

# gso_base_capture: let tcpdump judge the checksums of all that comes out at the
# other end. Without GRO there, which would change the packets.
gso_base_capture() {
	local before packets good bad i pid

	gso_offload 1 tun1 gro off
	gso_on 1 tcpdump -Z root -i tun1 -Q in -B 32768 \
		-w "${GSO_BASE_CAPTURE}" 2>"${GSO_TMP}/tcpdump" &
	pid=$!
	for i in $(seq 200); do
		grep -q "listening on" "${GSO_TMP}/tcpdump" && break
		sleep 0.1
	done
	before=$(gso_dev_stat 1 tun1 rx_packets)

	for af in 4 6; do
		gso_base_batched "tcp${af}" "udp${af}"
		gso_udp_transfer 0 1 "${af}" 999 0 20
		gso_ping 0 1 "${af}" 501
	done

	# it reads behind
	packets=$(($(gso_dev_stat 1 tun1 rx_packets) - before))
	for i in $(seq 200); do
		gso_on 1 tcpdump -r "${GSO_BASE_CAPTURE}" -nn 2>/dev/null |
			wc -l >"${GSO_TMP}/captured" || true
		[ "$(cat "${GSO_TMP}/captured")" -lt "${packets}" ] || break
		sleep 0.1
	done
	kill "${pid}"
	wait "${pid}" || true
	gso_offload 1 tun1 gro on

	gso_base_captured >"${GSO_TMP}/inner.txt"
	bad=$(gso_base_count '\(incorrect|bad (udp|icmp6|tcp)? ?cksum|wrong icmp')
	good=$(gso_base_count '\(correct\)|(udp|icmp6) sum ok|ICMP echo')
	[ "${bad}" -eq 0 ] ||
		gso_fail "${bad} of ${packets} packets with a wrong checksum"
	[ "${good}" -eq "${packets}" ] ||
		gso_fail "${good} of ${packets} packets with a good checksum"
}

gso_base_again_outer6() {
	gso_teardown
	GSO_OUTER=6
	gso_setup
}

gso_require ethtool nft tcpdump jq
gso_start 11

ovpn_run_stage "set up two peers, IPv4 outside" gso_setup
ovpn_run_stage "a fresh device advertises segmentation" gso_base_features
ovpn_run_stage "tso off and on" gso_base_tso
ovpn_run_stage "tx-udp-segmentation off and on" gso_base_uso
ovpn_run_stage "gso off and on" gso_base_gso
ovpn_run_stage "tx off and on" gso_base_tx
ovpn_run_stage "all of them under traffic" gso_base_live
ovpn_run_stage "no checksum errors, IPv4 outside" gso_base_paths
ovpn_run_stage "checksums as captured" gso_base_capture
ovpn_run_stage "set up two peers, IPv6 outside" gso_base_again_outer6
ovpn_run_stage "no checksum errors, IPv6 outside" gso_base_paths

gso_finish
