#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Features of an ovpn device: bursts arrive whole, until they are switched off.

set -eE

source ./gso-common.sh

# gso_base_expect on|off FEATURE...
gso_base_expect() {
	local want=$1
	local all feature

	shift
	all=$(gso_on 0 ethtool -k tun0)
	for feature in "$@"; do
		[[ ${all} =~ [[:space:]]"${feature}: ${want}" ]] ||
			gso_fail "${feature} is not ${want}"
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

gso_base_tso() {
	gso_offload 0 tun0 tso off
	gso_base_expect off tx-tcp-segmentation tx-tcp6-segmentation
	gso_bursts_single 0 tcp4 tcp6
	# which is not about UDP
	gso_bursts_batched 0 udp4
	gso_offload 0 tun0 tso on
	gso_bursts_batched 0 tcp4
}

gso_base_uso() {
	gso_offload 0 tun0 tx-udp-segmentation off
	gso_base_expect off tx-udp-segmentation
	gso_bursts_single 0 udp4 udp6
	gso_bursts_batched 0 tcp6
	gso_offload 0 tun0 tx-udp-segmentation on
	gso_bursts_batched 0 udp6
}

# the generic switch takes all those with it that are done in software
gso_base_gso() {
	gso_offload 0 tun0 gso off
	gso_base_expect off tcp-segmentation-offload tx-udp-segmentation \
		tx-sctp-segmentation tx-gso-list
	gso_bursts_single 0 tcp4 udp4 udp6
	gso_offload 0 tun0 gso on
	gso_base_features
	gso_bursts_batched 0 tcp6 udp4
}

# no segmentation without checksum offload
gso_base_tx() {
	gso_offload 0 tun0 tx off
	gso_base_expect off tcp-segmentation-offload tx-udp-segmentation
	gso_bursts_single 0 tcp4 tcp6 udp4
	gso_offload 0 tun0 tx on
	gso_base_features
	gso_bursts_batched 0 tcp4 udp6
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
	while :; do
		gso_tcp_transfer 0 1 4 2000001
		gso_udp_transfer 0 1 6 20501 1001 20
		[ ! -e "${GSO_TMP}/toggled" ] || break
		kill -0 "${pid}" || gso_fail "the switches do not work"
	done
	rm "${GSO_TMP}/toggle"
	wait "${pid}" || gso_fail "the switches do not work"

	gso_base_features
	gso_bursts_batched 0 tcp4 udp6
	gso_expect_no_csum_errors
}

gso_require ethtool nft nstat ss
gso_start 7

ovpn_run_stage "set up two peers" gso_setup
ovpn_run_stage "a fresh device advertises segmentation" gso_base_features
ovpn_run_stage "tso off and on" gso_base_tso
ovpn_run_stage "tx-udp-segmentation off and on" gso_base_uso
ovpn_run_stage "gso off and on" gso_base_gso
ovpn_run_stage "tx off and on" gso_base_tx
ovpn_run_stage "all of them under traffic" gso_base_live

gso_finish
