#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The packet IDs of a key end in the middle of a burst: the last ones are used,
# none is used twice, userspace is told once, and a new key resumes traffic.

set -eE

source ./gso-common.sh

# not a multiple of what a burst has, so that the end falls into one
GSO_EXHAUST_LEFT=311
GSO_EXHAUST_SEG=1300
GSO_EXHAUST_SEGS=24
GSO_EXHAUST_BURSTS=20
# opcode DATA_V2, key 0, and peer 0 has the ID 10 at peer 1
GSO_EXHAUST_HEADER=0x4800000a

gso_require ethtool jq nft python3 ss tcpdump

# gso_exhaust_burst N
gso_exhaust_burst() {
	gso_udp_transfer 0 1 4 $((GSO_EXHAUST_SEG * GSO_EXHAUST_SEGS)) \
		"${GSO_EXHAUST_SEG}" "$1"
}

gso_exhaust_setup() {
	gso_setup 1500
	gso_quiet 0
	# where nobody listens, nobody shall complain
	gso_on 1 nft -f - <<-END
	table inet gso_exhaust {
		chain input {
			type filter hook input priority 0; policy accept;
			udp dport 9 drop
		}
	}
	END
	# the capture is to see records, not aggregates
	gso_offload 0 "${GSO_DEV}" tx-udp-segmentation off
	gso_mark 0
	gso_exhaust_burst 5
	gso_expect_batched 0 10
}

# the key has sent all that the link statistics count, and a packet more
gso_exhaust_wind() {
	local now rc=0

	now=$(($(gso_peer_stat 0 LINK TX packets) + 2))
	gso_on 0 ./gso-wind.py "${now}" $(((1 << 32) - GSO_EXHAUST_LEFT)) \
		ping -q -c 1 -w 10 "$(gso_inner_addr 1)" \
		>"${GSO_TMP}/wind" 2>&1 || rc=$?
	[ "${rc}" -ne 4 ] || GSO_EXHAUST_SKIP=$(cat "${GSO_TMP}/wind")
	[ "${rc}" -eq 0 ] || [ "${rc}" -eq 4 ] ||
		gso_fail "$(cat "${GSO_TMP}/wind")"
}

# gso_exhaust_captured N: wait for as many datagrams
gso_exhaust_captured() {
	local n=0
	local i

	for i in $(seq 100); do
		n=$(./gso-wire.py count "${GSO_TMP}/pcap" "${GSO_PORT}")
		[ "${n}" -lt "$1" ] || return 0
		sleep 0.1
	done
	gso_fail "${n} records on the wire, not $1 (${i} tries)"
}

gso_exhaust_end() {
	local sent=$((GSO_EXHAUST_SEGS * GSO_EXHAUST_BURSTS))
	local burst=$((GSO_EXHAUST_SEG * GSO_EXHAUST_SEGS))
	local capture dropped lengths n

	ovpn_setup_listener 0
	gso_on 1 tcpdump -i "${GSO_DEV}" -Q in -s 0 -B 16384 -U \
		--immediate-mode -w "${GSO_TMP}/pcap" \
		udp src port "${GSO_PORT}" 2>"${GSO_TMP}/pcap.log" &
	capture=$!
	until grep -q "listening on" "${GSO_TMP}/pcap.log"; do
		sleep 0.1
	done
	# the listener says nothing when it is ready
	sleep 3

	dropped=$(gso_dev_stat 0 tun0 tx_dropped)
	gso_mark 0
	gso_on 0 "${GSO_TRAFFIC}" udp-send "$(gso_inner_addr 1)" 9 "${burst}" \
		"${GSO_EXHAUST_SEG}" "${GSO_EXHAUST_BURSTS}" >/dev/null
	gso_read 0
	dropped=$(($(gso_dev_stat 0 tun0 tx_dropped) - dropped))
	[ "${GSO_RECORDS}" -eq "${GSO_EXHAUST_LEFT}" ] ||
		gso_fail "${GSO_RECORDS} records with ${GSO_EXHAUST_LEFT} IDs"
	[ "${dropped}" -eq $((sent - GSO_EXHAUST_LEFT)) ] ||
		gso_fail "${dropped} of ${sent} segments counted as dropped"
	# whole bursts as aggregates, what is left of the IDs one by one
	n=$((GSO_EXHAUST_LEFT / GSO_EXHAUST_SEGS))
	n=$((n + GSO_EXHAUST_LEFT % GSO_EXHAUST_SEGS))
	[ "${GSO_SKBS}" -eq "${n}" ] ||
		gso_fail "${GSO_RECORDS} records in ${GSO_SKBS} skbs, not ${n}"

	# as many IDs as there were, none twice, none missing: the last one is
	# 2^32 - 1
	gso_exhaust_captured "${GSO_EXHAUST_LEFT}"
	kill "${capture}"
	wait "${capture}" || true
	n=$(./gso-wire.py count "${GSO_TMP}/pcap" "${GSO_PORT}")
	[ "${n}" -eq "${GSO_EXHAUST_LEFT}" ] ||
		gso_fail "${n} records on the wire"
	lengths=$(./gso-wire.py check "${GSO_TMP}/pcap" "${GSO_PORT}" \
		"${GSO_EXHAUST_HEADER}") || gso_fail "${lengths}"
}

gso_exhaust_told() {
	local file=${OVPN_TMP_JSONS[0]}
	local i n

	for i in $(seq 100); do
		grep -q key-swap-ntf "${file}" && break
		sleep 0.1
	done
	sleep 1
	ovpn_stop_listener 0 1
	n=$(grep -c key-swap-ntf "${file}" || true)
	[ "${n}" -eq 1 ] || gso_fail "told ${n} times (${i} tries)"
	rm -f "${file}"
}

gso_exhaust_resume() {
	gso_add_key 0 1 1
	gso_add_key 1 1 1
	gso_mark 0
	gso_exhaust_burst 5
	gso_expect_batched 0 10
}

# gso_exhaust_stage LABEL FUNCTION: unless IDs can not be wound forward here
gso_exhaust_stage() {
	if [ -n "${GSO_EXHAUST_SKIP}" ]; then
		gso_skip_stage "$1" "${GSO_EXHAUST_SKIP}"
		return
	fi
	ovpn_run_stage "$@"
}

GSO_EXHAUST_SKIP=
gso_start 4

ovpn_run_stage "bursts are batched" gso_exhaust_setup
gso_exhaust_wind
gso_exhaust_stage "the IDs end in a burst" gso_exhaust_end
gso_exhaust_stage "userspace is told once" gso_exhaust_told
gso_exhaust_stage "a new key resumes traffic" gso_exhaust_resume

gso_finish
