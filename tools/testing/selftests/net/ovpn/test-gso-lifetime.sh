#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GSO batching while keys, peers, sockets, devices and namespaces come and go,
# and while memory cannot be had

set -eE

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
GSO_LIFETIME_DEBUG=/sys/kernel/debug

gso_lifetime_sink() {
	ip netns exec "${GSO_NS1}" "${GSO_TRAFFIC}" sink :: \
		"${GSO_LIFETIME_PORT}" >/dev/null 2>&1 &
	GSO_LIFETIME_SINK=$!
	gso_wait_listen 1 tcp "${GSO_LIFETIME_PORT}"
}

# gso_lifetime_flow ARG...: a sender that does not give up, but leaves the
# machine time for the rest
gso_lifetime_flow() {
	ip netns exec "${GSO_NS0}" "${GSO_TRAFFIC}" -r 500000 "$@" \
		>/dev/null 2>&1 &
	GSO_LIFETIME_PIDS+=($!)
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

gso_lifetime_kill() {
	kill -KILL "$@" 2>/dev/null || true
	wait "$@" 2>/dev/null || true
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
	gso_expect_batched 0
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
		gso_on 0 "${OVPN_CLI}" del_key tun0 1
		gso_on 1 "${OVPN_CLI}" del_key tun1 10
		gso_lifetime_keys 1
		gso_lifetime_load 5
	done
	gso_lifetime_check
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

# gso_lifetime_readdress PEER: IPv6 addresses go when a device goes down
gso_lifetime_readdress() {
	ip -n "ovpn_peer$1" addr replace "$(gso_inner_addr "$1" 6)/64" \
		dev "tun$1" nodad
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

gso_lifetime_device() {
	local p

	for p in 0 1; do
		gso_on "${p}" "${OVPN_CLI}" del_iface "tun${p}"
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

# the transport socket stays where it is
gso_lifetime_move() {
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

gso_lifetime_netns() {
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

# gso_lifetime_fault NAME PERCENT: of what the atomic allocations of tasks
# that ask for it do
gso_lifetime_fault() {
	local dir="${GSO_LIFETIME_DEBUG}/$1"

	echo Y >"${dir}/task-filter"
	echo Y >"${dir}/ignore-gfp-wait"
	echo 0 >"${dir}/verbose"
	echo 1 >"${dir}/interval"
	echo 0 >"${dir}/space"
	echo -1 >"${dir}/times"
	echo "$2" >"${dir}/probability"
}

# gso_lifetime_faulty SLAB PAGE MIN_ORDER
gso_lifetime_faulty() {
	gso_lifetime_fault failslab "$1"
	gso_lifetime_fault fail_page_alloc "$2"
	echo "$3" >"${GSO_LIFETIME_DEBUG}/fail_page_alloc/min-order"
}

# gso_lifetime_failing COUNT: bursts of 50 datagrams that meet the faults; the
# sender waits until it is charged for nothing
gso_lifetime_failing() {
	local dropped

	dropped=$(gso_dev_stat 0 tun0 tx_dropped)
	gso_mark 0
	gso_on 0 "${GSO_SEND_PREFIX[@]}" "${GSO_TRAFFIC}" -w udp-send \
		"$(gso_inner_addr 1)" "${GSO_LIFETIME_PORT}" 60000 1200 "$1" \
		>"${GSO_TMP}/failing" 2>&1 ||
		gso_fail "$(cat "${GSO_TMP}/failing")"
	gso_read 0
	GSO_LIFETIME_DROPPED=$(($(gso_dev_stat 0 tun0 tx_dropped) - dropped))
	echo "# ${GSO_RECORDS} records in ${GSO_SKBS} skbs," \
		"${GSO_LIFETIME_DROPPED} dropped"
}

gso_lifetime_faults() {
	local prefix="${GSO_TMP}/faulty"
	local GSO_SEND_PREFIX=()

	gso_lifetime_stop_flows
	gso_lifetime_sink
	cat >"${prefix}" <<-END
	#!/bin/sh
	echo 1 >/proc/self/make-it-fail
	exec "\$@"
	END
	chmod +x "${prefix}"
	GSO_SEND_PREFIX=("${prefix}")

	gso_lifetime_failing 20
	gso_expect_batched 0 20

	# large pages only: it is batched in small ones
	gso_lifetime_faulty 0 100 1
	gso_lifetime_failing 20
	gso_expect_batched 0 10
	[ "${GSO_RECORDS}" -eq 1000 ] || gso_fail "${GSO_RECORDS} records"

	# no pages for an aggregate: one by one. A slab that needs a page gets
	# none, either.
	gso_lifetime_faulty 0 100 0
	gso_lifetime_failing 20
	gso_expect_single 0
	[ "${GSO_RECORDS}" -ge 500 ] || gso_fail "${GSO_RECORDS} records"
	[ $((GSO_RECORDS + GSO_LIFETIME_DROPPED)) -eq 1000 ] ||
		gso_fail "${GSO_RECORDS} records, ${GSO_LIFETIME_DROPPED} drops"

	# nothing at all
	gso_lifetime_faulty 100 100 0
	gso_lifetime_failing 20
	[ "${GSO_RECORDS}" -eq 0 ] || gso_fail "${GSO_RECORDS} records"
	[ "${GSO_LIFETIME_DROPPED}" -gt 0 ] || gso_fail "no drops"

	# anything, at any step
	gso_lifetime_faulty 30 30 0
	gso_lifetime_failing 100
	[ "${GSO_RECORDS}" -gt 0 ] || gso_fail "no records"
	[ "${GSO_LIFETIME_DROPPED}" -gt 0 ] || gso_fail "no drops"
	gso_lifetime_faulty 5 10 0
	gso_tcp_transfer 0 1 4 500000
	gso_lifetime_uncharged 0

	gso_lifetime_faulty 0 0 1
	gso_mark 0
	gso_udp_transfer 0 1 4 60000 1200 20
	gso_tcp_transfer 0 1 4 500000
	gso_expect_batched 0 5
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

gso_start 12

ovpn_run_stage "eight flows" gso_lifetime_setup
ovpn_run_stage "keys are swapped" gso_lifetime_swap
ovpn_run_stage "keys are deleted" gso_lifetime_del_key
ovpn_run_stage "peers are deleted" gso_lifetime_peer
ovpn_run_stage "sockets are closed" gso_lifetime_socket
ovpn_run_stage "links go down" gso_lifetime_link
ovpn_run_stage "offloads change" gso_lifetime_features
ovpn_run_stage "devices are deleted" gso_lifetime_device
ovpn_run_stage "a device moves to another namespace" gso_lifetime_move
ovpn_run_stage "namespaces are deleted" gso_lifetime_netns

[ -d "${GSO_LIFETIME_DEBUG}/tracing" ] ||
	mount -t debugfs none "${GSO_LIFETIME_DEBUG}" 2>/dev/null || true
if [ -d "${GSO_LIFETIME_DEBUG}/failslab" ] &&
	[ -d "${GSO_LIFETIME_DEBUG}/fail_page_alloc" ]; then
	ovpn_run_stage "allocations fail" gso_lifetime_faults
else
	echo "# CONFIG_FAILSLAB and CONFIG_FAIL_PAGE_ALLOC are not set"
	ktap_test_skip "allocations fail"
fi

ovpn_run_stage "nothing is left behind" gso_lifetime_end

gso_finish
