#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GSO batching while keys, peers, sockets, links and offloads come and go

set -eE

source ./gso-lifetime.sh

gso_lifetime_swap() {
	local i

	for i in 1 2 3; do
		gso_lifetime_keys 2
		gso_lifetime_load 5
		gso_on 0 "${OVPN_CLI}" swap_keys tun0 1
		gso_on 1 "${OVPN_CLI}" swap_keys tun1 10
		gso_lifetime_load 5
	done
	gso_lifetime_check
}

gso_lifetime_del_key() {
	local i

	for i in 1 2 3; do
		gso_on 0 "${OVPN_CLI}" del_key tun0 1 1
		gso_on 1 "${OVPN_CLI}" del_key tun1 10 1
		gso_lifetime_keys 1
		gso_lifetime_load 5
	done
	gso_lifetime_check
}

gso_lifetime_peer() {
	local i

	for i in 1 2; do
		gso_on 0 "${OVPN_CLI}" del_peer tun0 1
		gso_lifetime_close 0
		gso_lifetime_next_key
		gso_add_key 1 1 "${GSO_LIFETIME_KEY}"
		gso_lifetime_new_peer 0
		gso_lifetime_load 5

		gso_on 1 "${OVPN_CLI}" del_peer tun1 10
		gso_lifetime_close 1
		gso_lifetime_next_key
		gso_lifetime_new_peer 1
		gso_add_key 0 1 "${GSO_LIFETIME_KEY}"
		gso_lifetime_load 5
	done
	gso_lifetime_check
}

# the peers go with their sockets
gso_lifetime_socket() {
	local i

	for i in 1 2; do
		gso_lifetime_close 0
		gso_lifetime_close 1
		gso_lifetime_next_key
		gso_lifetime_new_peer 1
		gso_lifetime_new_peer 0
		gso_lifetime_load 5
	done
	gso_lifetime_check
}

gso_lifetime_link() {
	local p

	for p in 0 1; do
		ip -n "ovpn_peer${p}" link set "tun${p}" down
		ip -n "ovpn_peer${p}" link set "tun${p}" up
		gso_lifetime_readdress "${p}"
		gso_lifetime_load 5
	done
	for p in 0 1; do
		ip -n "ovpn_peer${p}" link set "${GSO_DEV}" down
		ip -n "ovpn_peer${p}" link set "${GSO_DEV}" up
		ip -n "ovpn_peer${p}" addr replace fd00:0:0:1::$((p + 1))/64 \
			dev "${GSO_DEV}" nodad
		gso_lifetime_load 5
	done
	gso_lifetime_check
}

gso_lifetime_features() {
	local off

	for off in gso tso tx-udp-segmentation tx; do
		gso_offload 0 tun0 "${off}" off
		gso_lifetime_load 5
		gso_offload 0 tun0 gso on tso on tx-udp-segmentation on tx on
		gso_lifetime_load 5
	done
	for off in tx-udp-segmentation gso tx sg; do
		gso_offload 0 "${GSO_DEV}" "${off}" off
		gso_lifetime_load 5
		gso_offload 0 "${GSO_DEV}" sg on tx on gso on tso on \
			tx-udp-segmentation on
		gso_lifetime_load 5
	done
	gso_lifetime_check
}

gso_require ethtool jq nft nstat ss tc

gso_start 8

ovpn_run_stage "eight flows" gso_lifetime_setup
ovpn_run_stage "keys are swapped" gso_lifetime_swap
ovpn_run_stage "keys are deleted" gso_lifetime_del_key
ovpn_run_stage "peers are deleted" gso_lifetime_peer
ovpn_run_stage "sockets are closed" gso_lifetime_socket
ovpn_run_stage "links go down" gso_lifetime_link
ovpn_run_stage "offloads change" gso_lifetime_features
ovpn_run_stage "nothing is left behind" gso_lifetime_end

gso_finish
