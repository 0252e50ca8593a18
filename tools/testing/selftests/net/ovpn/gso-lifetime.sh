#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Shared by the tests that change keys, peers, devices and namespaces below
# eight flows: the flows, and what has to be well afterwards

source ./gso-common.sh

# a namespace that the device of peer 0 is moved to
GSO_LIFETIME_NS=ovpn_peer2
GSO_LIFETIME_PORT=5000
GSO_LIFETIME_PIDS=()
GSO_LIFETIME_SINK=
# ID of the current key. Each one that is installed gets another, of the three
# that ovpn-cli takes: late packets of an old key cannot move the replay window
# of a new one, which is the same key otherwise
GSO_LIFETIME_KEY=0

gso_lifetime_sink() {
	ip netns exec "${GSO_NS1}" "${GSO_TRAFFIC}" sink :: \
		"${GSO_LIFETIME_PORT}" >/dev/null 2>&1 &
	GSO_LIFETIME_SINK=$!
	# the shell shall not tell when it is killed
	disown
	gso_wait_listen 1 tcp "${GSO_LIFETIME_PORT}"
}

# gso_lifetime_flow ARG...: a sender that does not give up, but leaves the
# machine time for the rest
gso_lifetime_flow() {
	ip netns exec "${GSO_NS0}" "${GSO_TRAFFIC}" -r 500000 "$@" \
		>/dev/null 2>&1 &
	GSO_LIFETIME_PIDS+=($!)
	disown
}

# eight flows from peer 0 to peer 1
gso_lifetime_flows() {
	local af addr

	gso_lifetime_sink
	for af in 4 4 6 6; do
		addr=$(gso_inner_addr 1 "${af}")
		gso_lifetime_flow tcp-flood "${addr}" "${GSO_LIFETIME_PORT}"
		gso_lifetime_flow udp-flood "${addr}" "${GSO_LIFETIME_PORT}" \
			60000 1200
	done
}

# gso_lifetime_kill PID...
gso_lifetime_kill() {
	local pid i

	kill -KILL "$@" 2>/dev/null || true
	for pid in "$@"; do
		for i in $(seq 100); do
			kill -0 "${pid}" 2>/dev/null || break
			sleep 0.1
		done
	done
}

gso_lifetime_stop_flows() {
	gso_lifetime_kill "${GSO_LIFETIME_PIDS[@]}" "${GSO_LIFETIME_SINK}"
	GSO_LIFETIME_PIDS=()
	GSO_LIFETIME_SINK=
}

# what the kernel complains about when references are lost
gso_lifetime_complaints() {
	dmesg | grep -c -e 'unregister_netdevice: waiting' -e 'refcount_t:' \
		-e 'WARNING: ' -e 'BUG: ' || true
}

# gso_lifetime_uncharged PEER: no socket is charged when its data is gone
gso_lifetime_uncharged() {
	local charged i

	for i in $(seq 600); do
		charged=$(gso_on "$1" ss -Haumtn |
			grep -o 'skmem:([^)]*,t[1-9][^)]*)' || true)
		[ -n "${charged}" ] || return 0
		sleep 0.1
	done
	gso_fail "charged after ${i} tries: ${charged}"
}

# gso_lifetime_ping: until the tunnel works, again
gso_lifetime_ping() {
	local i

	for i in $(seq 60); do
		gso_on 0 ping -q -c 1 -W 1 "$(gso_inner_addr 1)" >/dev/null &&
			return
	done
	gso_fail "no ping after ${i} tries"
}

# all is well with the tunnel, and it batches. The flows pause, so that their
# data drains and there is time for the transfer.
gso_lifetime_check() {
	local complaints

	gso_lifetime_ping
	kill -STOP "${GSO_LIFETIME_PIDS[@]}"
	gso_lifetime_uncharged 0
	gso_mark 0
	gso_tcp_transfer 0 1 4 500000
	gso_expect_fewer 0
	kill -CONT "${GSO_LIFETIME_PIDS[@]}"

	complaints=$(gso_lifetime_complaints)
	[ "${complaints}" -eq "${GSO_LIFETIME_COMPLAINTS}" ] ||
		gso_fail "$((complaints - GSO_LIFETIME_COMPLAINTS)) new" \
			"complaints of the kernel"
}

# gso_lifetime_load RECORDS: let the flows send
gso_lifetime_load() {
	local start i

	start=$(gso_dev_stat 0 tun0 tx_packets)
	for i in $(seq 600); do
		[ $(($(gso_dev_stat 0 tun0 tx_packets) - start)) -lt "$1" ] ||
			return 0
		sleep 0.1
	done
	gso_fail "the flows do not send (${i} tries)"
}

gso_lifetime_setup() {
	gso_setup 1500
	GSO_LIFETIME_COMPLAINTS=$(gso_lifetime_complaints)
	gso_lifetime_flows
	gso_lifetime_load 20
	gso_lifetime_check
}

gso_lifetime_next_key() {
	GSO_LIFETIME_KEY=$(((GSO_LIFETIME_KEY + 1) % 3))
}

# gso_lifetime_keys SLOT: install the next one on both sides
gso_lifetime_keys() {
	gso_lifetime_next_key
	gso_add_key 1 "$1" "${GSO_LIFETIME_KEY}"
	gso_add_key 0 "$1" "${GSO_LIFETIME_KEY}"
}

# gso_lifetime_sockets PEER: the processes that hold the transport sockets
gso_lifetime_sockets() {
	local pid

	for pid in $(ip netns pids "ovpn_peer$1"); do
		[ "$(cat "/proc/${pid}/comm" 2>/dev/null)" = ovpn-cli ] &&
			echo "${pid}"
	done
	return 0
}

# gso_lifetime_close PEER: close its transport socket
gso_lifetime_close() {
	local i

	# shellcheck disable=SC2046 # words
	kill $(gso_lifetime_sockets "$1")
	for i in $(seq 100); do
		[ -n "$(gso_lifetime_sockets "$1")" ] || return 0
		sleep 0.1
	done
	gso_fail "the socket of peer $1 remains (${i} tries)"
}

# gso_lifetime_new_peer PEER: with a key of the current ID
gso_lifetime_new_peer() {
	local id=$((1 + 9 * $1))

	gso_on "$1" "${OVPN_CLI}" new_peer "tun$1" "${id}" $((11 - id)) \
		"${GSO_PORT}" "$(gso_outer_addr $((1 - $1)))" "${GSO_PORT}"
	gso_add_key "$1" 1 "${GSO_LIFETIME_KEY}"
}

# gso_lifetime_readdress PEER: IPv6 addresses go when a device goes down
gso_lifetime_readdress() {
	ip -n "ovpn_peer$1" addr replace "$(gso_inner_addr "$1" 6)/64" \
		dev "tun$1" nodad
}

# gso_lifetime_del_ns NAME: with all that runs in it, until it is being cleaned
# up. That is done one after the other: one that hangs stops those behind it.
gso_lifetime_del_ns() {
	local pids i

	ip link add gsoprobe type veth peer name gsoprobe netns "$1"
	pids=$(ip netns pids "$1")
	ip netns del "$1"
	# shellcheck disable=SC2086 # words
	[ -z "${pids}" ] || kill -KILL ${pids} 2>/dev/null || true
	for i in $(seq 600); do
		ip link show gsoprobe >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	gso_fail "the namespace $1 remains (${i} tries)"
}

# what shows late, such as a device that waits for a lost reference
gso_lifetime_end() {
	local complaints

	gso_lifetime_stop_flows
	gso_lifetime_uncharged 0
	gso_lifetime_uncharged 1
	ip netns add "${GSO_LIFETIME_NS}"
	gso_lifetime_del_ns "${GSO_NS0}"
	gso_lifetime_del_ns "${GSO_NS1}"
	gso_lifetime_del_ns "${GSO_LIFETIME_NS}"
	# the first complaint comes after ten seconds
	sleep 11
	complaints=$(gso_lifetime_complaints)
	[ "${complaints}" -eq "${GSO_LIFETIME_COMPLAINTS}" ] ||
		gso_fail "$(dmesg | tail -n 20)"
}
