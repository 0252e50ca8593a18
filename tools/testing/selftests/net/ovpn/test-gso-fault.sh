#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GSO batching while memory cannot be had: nothing leaks, and it recovers

set -eE

source ./gso-lifetime.sh

GSO_FAULT_DEBUG=/sys/kernel/debug

gso_fault_require() {
	local dir

	[ -d "${GSO_FAULT_DEBUG}/block" ] || [ -d "${GSO_FAULT_DEBUG}/bdi" ] ||
		mount -t debugfs none "${GSO_FAULT_DEBUG}" 2>/dev/null || true
	for dir in failslab fail_page_alloc; do
		[ -e "${GSO_FAULT_DEBUG}/${dir}/task-filter" ] && continue
		ktap_skip_all "no fault injection: ${dir}"
		exit "${KSFT_SKIP}"
	done
}

# gso_fault_set NAME PERCENT: of the atomic allocations of tasks that ask for it
gso_fault_set() {
	local dir="${GSO_FAULT_DEBUG}/$1"

	echo 0 >"${dir}/probability"
	echo Y >"${dir}/task-filter"
	echo Y >"${dir}/ignore-gfp-wait"
	echo 0 >"${dir}/verbose"
	echo 1 >"${dir}/interval"
	echo 0 >"${dir}/space"
	echo -1 >"${dir}/times"
	echo "$2" >"${dir}/probability"
}

# gso_fault_all SLAB PAGE MIN_ORDER
gso_fault_all() {
	gso_fault_set failslab "$1"
	gso_fault_set fail_page_alloc "$2"
	echo "$3" >"${GSO_FAULT_DEBUG}/fail_page_alloc/min-order"
}

# gso_fault_send COUNT: bursts of 50 datagrams that meet the faults. The sender
# waits until it is charged for nothing.
gso_fault_send() {
	local dropped

	dropped=$(gso_dev_stat 0 tun0 tx_dropped)
	gso_mark 0
	gso_on 0 "${GSO_SEND_PREFIX[@]}" "${GSO_TRAFFIC}" -w udp-send \
		"$(gso_inner_addr 1)" "${GSO_LIFETIME_PORT}" 60000 1200 "$1" \
		>"${GSO_TMP}/send" 2>&1 || gso_fail "$(cat "${GSO_TMP}/send")"
	gso_read 0
	GSO_FAULT_DROPPED=$(($(gso_dev_stat 0 tun0 tx_dropped) - dropped))
	echo "# ${GSO_RECORDS} records in ${GSO_SKBS} skbs," \
		"${GSO_FAULT_DROPPED} dropped"
}

gso_fault_setup() {
	local prefix="${GSO_TMP}/faulty"

	gso_setup 1500
	GSO_LIFETIME_COMPLAINTS=$(gso_lifetime_complaints)
	gso_lifetime_sink
	cat >"${prefix}" <<-END
	#!/bin/sh
	echo 1 >/proc/self/make-it-fail
	exec "\$@"
	END
	chmod +x "${prefix}"
	GSO_SEND_PREFIX=("${prefix}")

	gso_fault_all 0 0 1
	gso_fault_send 20
	gso_expect_batched 0 20
}

gso_fault_order() {
	gso_fault_all 0 100 1
	gso_fault_send 20
	gso_expect_batched 0 10
	[ "${GSO_RECORDS}" -eq 1000 ] || gso_fail "${GSO_RECORDS} records"
}

# a slab that needs a page gets none, either: many may be lost, but counted
gso_fault_page() {
	gso_fault_all 0 100 0
	gso_fault_send 20
	[ "${GSO_RECORDS}" -gt 0 ] || gso_fail "no records"
	[ "${GSO_SKBS}" -eq "${GSO_RECORDS}" ] ||
		gso_fail "${GSO_RECORDS} records in ${GSO_SKBS} skbs"
	[ $((GSO_RECORDS + GSO_FAULT_DROPPED)) -eq 1000 ] ||
		gso_fail "$((1000 - GSO_RECORDS - GSO_FAULT_DROPPED)) are lost"
}

gso_fault_everything() {
	gso_fault_all 100 100 0
	gso_fault_send 20
	[ "${GSO_RECORDS}" -eq 0 ] || gso_fail "${GSO_RECORDS} records"
	[ "${GSO_FAULT_DROPPED}" -gt 0 ] || gso_fail "no drops"
}

# at any step, also of the segmentation below
gso_fault_random() {
	local uso percent

	for uso in on off; do
		gso_offload 0 "${GSO_DEV}" tx-udp-segmentation "${uso}"
		for percent in 30 5; do
			gso_fault_all "${percent}" "${percent}" 0
			gso_fault_send 100
			[ "${GSO_RECORDS}" -gt 0 ] || gso_fail "no records"
		done
		gso_fault_all 3 3 0
		gso_tcp_transfer 0 1 4 500000
		gso_lifetime_uncharged 0
	done
	gso_offload 0 "${GSO_DEV}" tx-udp-segmentation on
}

gso_fault_recover() {
	gso_fault_all 0 0 1
	gso_mark 0
	gso_udp_transfer 0 1 4 60000 1200 20
	gso_expect_batched 0 20
	gso_mark 0
	gso_tcp_transfer 0 1 6 500000
	gso_expect_fewer 0
}

gso_fault_require

gso_require ethtool jq nft nstat ss tc

gso_start 7

ovpn_run_stage "set up two peers, batching" gso_fault_setup
ovpn_run_stage "small pages only: batched" gso_fault_order
ovpn_run_stage "no pages: one by one" gso_fault_page
ovpn_run_stage "no memory at all: dropped" gso_fault_everything
ovpn_run_stage "any allocation fails" gso_fault_random
ovpn_run_stage "traffic recovers" gso_fault_recover
ovpn_run_stage "nothing is left behind" gso_lifetime_end

gso_finish
