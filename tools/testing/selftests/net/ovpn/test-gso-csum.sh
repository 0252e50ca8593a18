#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Checksums of the packets inside, of every kind and on all ways through the
# driver: IPv4 and IPv6, inside and outside.

set -eE

source ./gso-common.sh

GSO_CSUM_CAPTURE="${GSO_TMP}/inner.pcap"

# gso_csum_captured OPTION: packets as text
gso_csum_captured() {
	tcpdump -r "${GSO_CSUM_CAPTURE}" "$1" >"${GSO_TMP}/inner.txt" \
		2>/dev/null || true
}

gso_csum_count() {
	grep -cE "$1" "${GSO_TMP}/inner.txt" || true
}

# gso_csum_capture: start tcpdump where packets come out. Without GRO, which
# would change them.
gso_csum_capture() {
	local i

	gso_offload 1 tun1 gro off
	ip netns exec "${GSO_NS1}" tcpdump -Z root -i tun1 -Q in -U -B 32768 \
		-w "${GSO_CSUM_CAPTURE}" 2>"${GSO_TMP}/tcpdump" &
	GSO_CSUM_TCPDUMP=$!
	for ((i = 0; i < 200; i++)); do
		grep -q "listening on" "${GSO_TMP}/tcpdump" && break
		sleep 0.1
	done
	GSO_CSUM_PACKETS=$(gso_dev_stat 1 tun1 rx_packets)
}

# gso_csum_judge: and let it judge their checksums. ICMP is mentioned only when
# it is wrong.
gso_csum_judge() {
	local bad good i packets

	packets=$(gso_dev_stat 1 tun1 rx_packets)
	packets=$((packets - GSO_CSUM_PACKETS))
	# it reads behind
	for ((i = 0; i < 200; i++)); do
		gso_csum_captured -nnq
		[ "$(gso_csum_count .)" -lt "${packets}" ] || break
		sleep 0.1
	done
	kill "${GSO_CSUM_TCPDUMP}"
	wait "${GSO_CSUM_TCPDUMP}" || true
	gso_offload 1 tun1 gro on

	gso_csum_captured -nnvv
	bad=$(gso_csum_count \
		'\(incorrect|bad ((udp|icmp6) )?cksum|wrong icmp cksum')
	good=$(gso_csum_count '\(correct\)|(udp|icmp6) sum ok|ICMP echo')
	[ "${bad}" -eq 0 ] ||
		gso_fail "${bad} of ${packets} packets with a wrong checksum"
	[ "${good}" -eq "${packets}" ] ||
		gso_fail "${good} of ${packets} packets with a good checksum"
}

# gso_csum_paths: every kind of packet arrives, with its checksum
gso_csum_paths() {
	local af

	gso_csum_capture
	for af in 4 6; do
		gso_bursts_batched 0 "tcp${af}" "udp${af}"
		# no GSO
		gso_tcp_transfer 0 1 "${af}" 1
		gso_tcp_transfer 0 1 "${af}" 1302
		gso_udp_transfer 0 1 "${af}" 999 0 30
		gso_ping 0 1 "${af}" 501
	done
	gso_csum_judge

	# fragmented inside
	gso_ping 0 1 4 5001
	gso_ping 0 1 6 5001
	gso_expect_no_csum_errors
}

gso_csum_again_outer6() {
	gso_teardown
	GSO_OUTER=6
	gso_setup 1500
}

gso_require ethtool nft nstat ss tcpdump
gso_start 4

ovpn_run_stage "set up two peers, IPv4 outside" gso_setup
ovpn_run_stage "IPv4 outside" gso_csum_paths
ovpn_run_stage "set up two peers, IPv6 outside" gso_csum_again_outer6
ovpn_run_stage "IPv6 outside" gso_csum_paths

gso_finish
