#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Bursts in tunnels that are stacked on ovpn, and which leave checksums to it.

set -eE

source ./gso-common.sh

# inside of the stacked tunnel
GSO_TUNNEL_INNER4=10.60.0.
GSO_TUNNEL_INNER6=fd06::
GSO_TUNNEL_MTU=1300

# gso_tunnel_up PEER: addresses for the device tunstk
gso_tunnel_up() {
	local p=$1

	ip -n "ovpn_peer${p}" link set tunstk mtu "${GSO_TUNNEL_MTU}" up
	ip -n "ovpn_peer${p}" addr add "${GSO_TUNNEL_INNER4}$((p + 1))/24" \
		dev tunstk
	ip -n "ovpn_peer${p}" addr add "${GSO_TUNNEL_INNER6}$((p + 1))/64" \
		dev tunstk nodad
}

# gso_tunnel_add 4|6 KIND [OPTION...]: a tunnel between the addresses in ovpn
gso_tunnel_add() {
	local local_addr p remote_addr

	for p in 0 1; do
		local_addr=$(gso_inner_addr "${p}" "$1")
		remote_addr=$(gso_inner_addr $((1 - p)) "$1")
		case $2 in
		geneve)
			ip -n "ovpn_peer${p}" link add tunstk type geneve id 7 \
				remote "${remote_addr}" "${@:3}"
			;;
		vxlan)
			ip -n "ovpn_peer${p}" link add tunstk type vxlan id 7 \
				dstport 4789 local "${local_addr}" \
				remote "${remote_addr}" "${@:3}"
			;;
		*)
			ip -n "ovpn_peer${p}" link add tunstk type "$2" \
				local "${local_addr}" \
				remote "${remote_addr}" "${@:3}"
			;;
		esac
	done
	# not before both are there: there is nobody to take what comes
	gso_tunnel_up 0
	gso_tunnel_up 1
}

gso_tunnel_del() {
	local p

	for p in 0 1; do
		ip -n "ovpn_peer${p}" link del tunstk
	done
}

# gso_tunnel_traffic 4|6...: inside of the stacked tunnel
gso_tunnel_traffic() {
	local GSO_INNER4=${GSO_TUNNEL_INNER4}
	local GSO_INNER6=${GSO_TUNNEL_INNER6}
	local af

	for af in "$@"; do
		gso_tcp_transfer 0 1 "${af}" 500001
		gso_udp_transfer 0 1 "${af}" 20001 1000 5
		gso_ping 0 1 "${af}" 3001
	done
	gso_expect_no_csum_errors
}

# gso_tunnel_run FAMILIES 4|6 KIND [OPTION...]: FAMILIES inside the tunnel
gso_tunnel_run() {
	local families=$1

	gso_tunnel_add "${@:2}"
	# shellcheck disable=SC2086 # a list
	gso_tunnel_traffic ${families}
	gso_tunnel_del
}

gso_tunnel_vxlan() {
	gso_tunnel_run "4 6" 4 vxlan noudpcsum
	gso_tunnel_run "4 6" 4 vxlan udpcsum
	gso_tunnel_run "4" 6 vxlan udp6zerocsumtx udp6zerocsumrx
	gso_tunnel_run "4" 6 vxlan noudp6zerocsumtx
}

gso_tunnel_geneve() {
	gso_tunnel_run "4" 4 geneve noudpcsum
	gso_tunnel_run "6" 4 geneve udpcsum
	gso_tunnel_run "4" 6 geneve noudp6zerocsumtx
}

gso_tunnel_gre() {
	gso_tunnel_run "4 6" 4 gre
	gso_tunnel_run "4 6" 4 gre csum
	gso_tunnel_run "4 6" 6 ip6gre csum encaplimit none
}

gso_tunnel_ip() {
	gso_tunnel_run "4" 4 ipip
	gso_tunnel_run "6" 4 sit
}

# its aggregates are what the outer one batches again
gso_tunnel_ovpn() {
	local id p

	for p in 0 1; do
		id=$((2 + 18 * p))
		gso_on "${p}" "${OVPN_CLI}" new_iface tunstk P2P >/dev/null
		gso_on "${p}" "${OVPN_CLI}" new_peer tunstk "${id}" \
			$((22 - id)) 1195 "$(gso_inner_addr $((1 - p)))" 1195
		gso_on "${p}" "${OVPN_CLI}" new_key tunstk "${id}" 1 0 \
			"${OVPN_ALG}" "${p}" data64.key
		gso_tunnel_up "${p}"
	done

	gso_mark 0
	gso_tunnel_traffic 4
	gso_expect_fewer 0
	gso_mark 0
	gso_tunnel_traffic 6
	gso_expect_fewer 0
	gso_tunnel_del
}

gso_require ethtool nft nstat ss
gso_start 6

ovpn_run_stage "set up two peers" gso_setup
ovpn_run_stage "VXLAN" gso_tunnel_vxlan
ovpn_run_stage "Geneve" gso_tunnel_geneve
ovpn_run_stage "GRE" gso_tunnel_gre
ovpn_run_stage "IPIP and SIT" gso_tunnel_ip
ovpn_run_stage "ovpn over ovpn" gso_tunnel_ovpn

gso_finish
