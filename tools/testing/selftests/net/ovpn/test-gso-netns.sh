#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GSO batching while devices and namespaces are moved and deleted

set -eE

source ./gso-lifetime.sh

gso_netns_device() {
	local p

	for p in 0 1; do
		gso_on "${p}" "${OVPN_CLI}" del_iface "tun${p}" >/dev/null
		gso_lifetime_close "${p}"
		gso_on "${p}" "${OVPN_CLI}" new_iface "tun${p}" P2P >/dev/null
		gso_lifetime_next_key
		gso_lifetime_new_peer "${p}"
		gso_setup_dev "${p}"
		gso_add_key $((1 - p)) 1 "${GSO_LIFETIME_KEY}"
		gso_lifetime_load 5
	done
	gso_lifetime_check
}

# the transport socket stays where it is
gso_netns_move() {
	local records skbs

	ip netns add "${GSO_LIFETIME_NS}"
	ip -n "${GSO_LIFETIME_NS}" link set lo up
	ip -n "${GSO_NS0}" link set tun0 netns "${GSO_LIFETIME_NS}" name tun2
	ip -n "${GSO_LIFETIME_NS}" addr add "$(gso_inner_addr 0)/24" dev tun2
	ip -n "${GSO_LIFETIME_NS}" link set tun2 up

	gso_count_skbs 0
	records=$(gso_peer_stat 2 LINK TX packets)
	gso_tcp_transfer 2 1 4 500000
	skbs=$(gso_skbs 0)
	records=$(($(gso_peer_stat 2 LINK TX packets) - records))
	[ "${skbs}" -gt 0 ] || gso_fail "no skbs"
	[ $((skbs * 3)) -le "${records}" ] ||
		gso_fail "${records} records in ${skbs} skbs"

	ip -n "${GSO_LIFETIME_NS}" link set tun2 netns "${GSO_NS0}" name tun0
	gso_setup_dev 0
	gso_lifetime_load 20
	gso_lifetime_check

	# and go together with a namespace
	ip -n "${GSO_NS0}" link set tun0 netns "${GSO_LIFETIME_NS}"
	ip -n "${GSO_LIFETIME_NS}" addr add "$(gso_inner_addr 0)/24" dev tun0
	ip -n "${GSO_LIFETIME_NS}" link set tun0 up
	ip netns exec "${GSO_LIFETIME_NS}" "${GSO_TRAFFIC}" udp-flood \
		"$(gso_inner_addr 1)" "${GSO_LIFETIME_PORT}" 60000 1200 \
		>/dev/null 2>&1 &
	disown
	gso_lifetime_del_ns "${GSO_LIFETIME_NS}"
	gso_lifetime_close 0
	gso_on 0 "${OVPN_CLI}" new_iface tun0 P2P >/dev/null
	gso_lifetime_next_key
	gso_lifetime_new_peer 0
	gso_setup_dev 0
	gso_add_key 1 1 "${GSO_LIFETIME_KEY}"
	gso_lifetime_load 20
	gso_lifetime_check
}

gso_netns_delete() {
	local peer

	for peer in 1 0; do
		gso_lifetime_load 20
		gso_lifetime_del_ns "ovpn_peer${peer}"
		gso_lifetime_stop_flows
		gso_teardown
		gso_setup 1500
		gso_lifetime_flows
		gso_lifetime_load 20
		gso_lifetime_check
	done
}

gso_require ethtool jq nft nstat ss tc

gso_start 5

ovpn_run_stage "eight flows" gso_lifetime_setup
ovpn_run_stage "devices are deleted" gso_netns_device
ovpn_run_stage "a device moves to another namespace" gso_netns_move
ovpn_run_stage "namespaces are deleted" gso_netns_delete
ovpn_run_stage "nothing is left behind" gso_lifetime_end

gso_finish
