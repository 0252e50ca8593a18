#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# How many records an aggregate has: the exact lengths of all that is sent, at
# and beyond each limit.

set -eE

source ./gso-common.sh

# what UDP refuses to cut any finer, and the limits that devices start with
GSO_SIZE_UDP_SEGS=128
GSO_SIZE_DEFAULT=65536
GSO_SIZE_DEFAULT_SEGS=65535
# the underlay has no UDP segmentation
GSO_SIZE_SOFT=0
GSO_SIZE_CASES=()

gso_require awk ethtool jq nft ss

# gso_size_limit [BYTES [RECORDS]]: run the cases so far, then set limits of the
# underlay
gso_size_limit() {
	gso_size_run
	GSO_SIZE_MAX=${1:-${GSO_SIZE_DEFAULT}}
	GSO_SIZE_SEGS=${2:-${GSO_SIZE_DEFAULT_SEGS}}
	ip -n "${GSO_NS0}" link set "${GSO_DEV}" \
		gso_max_size "${GSO_SIZE_MAX}" gso_max_segs "${GSO_SIZE_SEGS}"
}

# gso_size_count: start to count the lengths of what is sent
gso_size_count() {
	gso_on 0 nft -f - <<-END
	table inet gso_size
	delete table inet gso_size
	table inet gso_size {
		set lengths {
			typeof meta length
			flags dynamic
			size 65535
			counter
		}
		chain output {
			type filter hook output priority 0; policy accept;
			udp sport ${GSO_PORT} add @lengths { \
				meta length counter }
		}
	}
	END
}

# gso_size_lengths: "LENGTHxCOUNT" of each length, the shortest first
gso_size_lengths() {
	gso_on 0 nft -j list set inet gso_size lengths |
		jq -r '.nftables[].set? | select(.) | .elem[]?.elem |
			"\(.val)x\(.counter.packets)"' |
		sort -n | paste -sd ' '
}

# gso_size_outer: length of the outer headers
gso_size_outer() {
	printf '%d' $((GSO_OUTER == 6 ? 48 : 28))
}

# gso_size_room: bytes that all records of an aggregate may have: the device
# wants less than its limit, including the largest link header there is
gso_size_room() {
	printf '%d' $((GSO_SIZE_MAX - 1 - GSO_SIZE_LL - $(gso_size_outer)))
}

# gso_size_cap RECORD: records of that length that fit an aggregate
gso_size_cap() {
	local cap

	cap=$(($(gso_size_room) / $1))
	cap=$((cap < GSO_SIZE_UDP_SEGS ? cap : GSO_SIZE_UDP_SEGS))
	printf '%d' $((cap < GSO_SIZE_SEGS ? cap : GSO_SIZE_SEGS))
}

# gso_size_expected AF LEN SEG COUNT: "LENGTH COUNT" of what COUNT sends of LEN
# bytes, cut every SEG bytes, become
gso_size_expected() {
	local over=$((24 + 8 + ($1 == 6 ? 40 : 20)))
	local segs=$((($2 + $3 - 1) / $3))
	local rec=$(($3 + over))
	local tail=$(($2 - (segs - 1) * $3 + over))
	local aggs cap left n outer

	outer=$(gso_size_outer)
	cap=$(gso_size_cap "${rec}")
	# less than two: the per-record path
	cap=$((cap > 1 ? cap : 1))

	for ((left = segs; left; left -= n)); do
		aggs=$(((left + cap - 1) / cap))
		n=$(((left + aggs - 1) / aggs))
		printf '%d %d\n' \
			$((outer + n * rec - (n == left ? rec - tail : 0))) "$4"
	done
}

# gso_size_case AF LEN SEG [COUNT]: for the next gso_size_run
gso_size_case() {
	GSO_SIZE_CASES+=("$1 $2 $3 ${4:-2}")
}

# gso_size_send AF: send all cases of a family, print the sum of what
# ovpn-traffic prints for each
gso_size_send() {
	local af len seg count entry line
	local datagrams=0
	local bytes=0
	local hash=0

	for entry in "${GSO_SIZE_CASES[@]}"; do
		read -r af len seg count <<<"${entry}"
		[ "${af}" -eq "$1" ] || continue
		line=$(gso_on 0 "${GSO_TRAFFIC}" udp-send \
			"$(gso_inner_addr 1 "${af}")" "${GSO_DATA_PORT}" \
			"${len}" "${seg}" "${count}")
		read -r -a line <<<"${line}"
		datagrams=$((datagrams + line[0]))
		bytes=$((bytes + line[2]))
		hash=$((hash + 0x${line[5]}))
	done
	printf '%d datagrams %d bytes hash %016x\n' \
		"${datagrams}" "${bytes}" "${hash}"
}

# gso_size_transfer AF DATAGRAMS: one receiver for all cases of a family
gso_size_transfer() {
	local addr pid received sent

	addr=$(gso_inner_addr 1 "$1")
	gso_on 1 "${GSO_TRAFFIC}" udp-recv "${addr}" "${GSO_DATA_PORT}" "$2" \
		>"${GSO_TMP}/recv" 2>&1 &
	pid=$!
	gso_wait_listen 1 udp "${GSO_DATA_PORT}"
	sent=$(gso_size_send "$1")
	wait "${pid}" || true
	received=$(cat "${GSO_TMP}/recv")
	[ "${sent}" = "${received}" ] ||
		gso_fail "IPv$1: sent ${sent}, received ${received}"
}

# gso_size_run: all cases since the last time
gso_size_run() {
	local af count entry expected len lengths name packets seg segs total
	local -A datagrams=([4]=0 [6]=0)

	[ "${#GSO_SIZE_CASES[@]}" -gt 0 ] || return 0

	expected=$(for entry in "${GSO_SIZE_CASES[@]}"; do
		read -r -a entry <<<"${entry}"
		gso_size_expected "${entry[@]}"
	done | awk '{ n[$1] += $2 } END { for (i in n) print i "x" n[i] }' |
		sort -n | paste -sd ' ')
	for entry in "${GSO_SIZE_CASES[@]}"; do
		read -r af len seg count <<<"${entry}"
		segs=$(((len + seg - 1) / seg))
		datagrams[${af}]=$((datagrams[${af}] + segs * count))
	done
	total=$((datagrams[4] + datagrams[6]))

	gso_size_count
	gso_mark 0
	gso_mark_received 0 1
	packets=$(gso_dev_stat 0 "${GSO_DEV}" tx_packets)
	for af in 4 6; do
		[ "${datagrams[${af}]}" -eq 0 ] ||
			gso_size_transfer "${af}" "${datagrams[${af}]}"
	done
	packets=$(($(gso_dev_stat 0 "${GSO_DEV}" tx_packets) - packets))
	lengths=$(gso_size_lengths)

	name="limits ${GSO_SIZE_MAX}, ${GSO_SIZE_SEGS}:"
	name+=" ${GSO_SIZE_CASES[*]/%/,}"
	[ "${lengths}" = "${expected}" ] ||
		gso_fail "${name} sent ${lengths}, not ${expected}"
	gso_expect_received 0 1
	gso_read 0
	[ "${GSO_RECORDS}" -eq "${total}" ] ||
		gso_fail "${name} ${GSO_RECORDS} records, not ${total}"

	# small enough for the device to get aggregates as they are, but for
	# what neighbour discovery adds
	[ $((GSO_RECORDS - GSO_SKBS)) -lt 20 ] ||
		[ "${GSO_SIZE_SOFT}" -eq 1 ] ||
		[ $((packets - GSO_SKBS)) -lt 10 ] ||
		gso_fail "${name} device got ${packets} for ${GSO_SKBS} skbs"

	GSO_SIZE_CASES=()
}

# gso_size_max AF: the longest payload that is within the gso_max_size of a
# device. What UDP over IPv6 can have beyond that, the stack cuts up itself.
gso_size_max() {
	printf '%d' $((65535 - ($1 == 6 ? 48 : 28)))
}

# gso_size_edges AF SEG: around the number of records that fit an aggregate, and
# around twice that
gso_size_edges() {
	local over=$((24 + 8 + ($1 == 6 ? 40 : 20)))
	local cap max n

	max=$(gso_size_max "$1")
	cap=$(gso_size_cap $(($2 + over)))
	[ "${cap}" -ge 2 ] || gso_fail "no aggregates of $2 bytes"
	for n in $((cap - 1)) ${cap} $((cap + 1)) $((2 * cap)) \
		$((2 * cap + 1)); do
		[ "${n}" -gt 1 ] || continue
		[ "${n}" -le "${GSO_SIZE_UDP_SEGS}" ] || continue
		[ $((n * $2)) -le "${max}" ] || continue
		gso_size_case "$1" $((n * $2)) "$2"
	done
}

# gso_size_probe: what the driver sets aside for the link header depends on the
# configuration of the kernel. Two records fit exactly, or else are sent alone.
gso_size_probe() {
	local rec=$((1000 + 24 + 28))

	for GSO_SIZE_LL in 32 96 128; do
		gso_size_limit $((2 * rec + $(gso_size_outer) + \
				  GSO_SIZE_LL + 1)) ""
		gso_mark 0
		gso_udp_transfer 0 1 4 2000 1000 10
		gso_read 0
		[ "${GSO_RECORDS}" -eq 20 ] ||
			gso_fail "${GSO_RECORDS} records instead of 20"
		[ "${GSO_SKBS}" -ne 10 ] || break
	done
	[ "${GSO_SKBS}" -eq 10 ] || gso_fail "two records never fit"

	gso_size_case 4 2000 1000 10
	gso_size_limit $((GSO_SIZE_MAX - 1)) ""
	gso_size_case 4 2000 1000 10
	gso_size_limit
	gso_expect_single 0
}

gso_size_setup() {
	GSO_OUTER=$1
	GSO_MTU=$2
	gso_teardown
	gso_setup_underlay "$3"
	gso_quiet 0
	gso_quiet 1
	gso_setup_tunnel
	gso_size_probe
}

# gso_size_default AF: the limits of a device as it is
gso_size_default() {
	local seg

	for seg in 88 536 1000 1350; do
		gso_size_edges "$1" "${seg}"
	done
	# full, one byte more, one byte less, and as long as can be
	gso_size_case "$1" $((10 * 1350)) 1350
	gso_size_case "$1" $((10 * 1350 + 1)) 1350
	gso_size_case "$1" $((10 * 1350 - 1)) 1350
	gso_size_case "$1" $((1350 + 1)) 1350 20
	gso_size_case "$1" "$(gso_size_max "$1")" 1350
	# split, with a short one at the end
	gso_size_case "$1" $((45 * 1350 + 1)) 1350
	gso_size_run
}

# gso_size_segs AF: 128 segments are what UDP can do at once
gso_size_segs() {
	local addr

	gso_size_case "$1" $((128 * 88)) 88
	gso_size_case "$1" $((127 * 88 + 1)) 88
	# one by two calls
	gso_size_case "$1" $((65 * 88)) 88 2
	gso_size_case "$1" 128 1
	gso_size_run

	addr=$(gso_inner_addr 1 "$1")
	gso_mark 0
	ovpn_cmd_fail "129 segments" gso_on 0 "${GSO_TRAFFIC}" udp-send \
		"${addr}" "${GSO_DATA_PORT}" $((129 * 88)) 88 1 ||
		gso_fail "129 segments in one call"
	gso_read 0
	[ "${GSO_RECORDS}" -eq 0 ] ||
		gso_fail "${GSO_RECORDS} records from a call that failed"
}

# gso_size_limits AF: lower limits
gso_size_limits() {
	local limit

	for limit in 2 3 10; do
		gso_size_limit "" "${limit}"
		gso_size_edges "$1" 1350
	done
	# one after another all the way, and the last one alone
	gso_size_limit "" 9
	gso_size_case "$1" $((128 * 88)) 88
	gso_size_limit "" 2
	gso_size_case "$1" $((4 * 1350 + 1)) 1350
	gso_size_limit "" 1
	gso_size_case "$1" $((10 * 1350)) 1350

	for limit in 4000 9000 32768; do
		gso_size_limit "${limit}" ""
		gso_size_edges "$1" 1350
	done
	gso_size_limit 2500 ""
	gso_size_case "$1" $((10 * 1350)) 1350
	gso_size_case "$1" $((10 * 300)) 300
	gso_size_limit
}

# gso_size_one_left: a record that is left alone is a plain skb, software
# segmentation would refuse anything else
gso_size_one_left() {
	gso_offload 0 "${GSO_DEV}" tx-udp-segmentation off
	GSO_SIZE_SOFT=1
	gso_size_limit "" 2
	gso_size_case "$1" $((3 * 1350)) 1350 10
	gso_size_case "$1" $((2 * 1350 + 1)) 1350 10
	gso_size_limit "" 10
	gso_size_edges "$1" 1350
	gso_size_limit
	gso_size_edges "$1" 1350
	gso_size_edges "$1" 88
	gso_size_run
	gso_offload 0 "${GSO_DEV}" tx-udp-segmentation on
	GSO_SIZE_SOFT=0
}

# gso_size_tcp AF MSS [BYTES]: nothing longer than the limits
gso_size_tcp() {
	local rec=$(($2 + ($1 == 6 ? 60 : 40) + 24))
	local lengths longest max

	gso_size_count
	gso_mark 0
	gso_mark_received 0 1
	gso_tcp_transfer 0 1 "$1" "${3:-400000}" "$2"
	gso_expect_fewer 0
	gso_expect_received 0 1

	lengths=$(gso_size_lengths)
	longest=${lengths##* }
	longest=${longest%x*}
	max=$(($(gso_size_cap "${rec}") * rec + $(gso_size_outer)))
	[ "${longest}" -le "${max}" ] ||
		gso_fail "IPv$1 MSS $2: ${longest} bytes, at most ${max} fit"
}

# gso_size_tcp_all AF
gso_size_tcp_all() {
	gso_size_limit
	gso_size_tcp "$1" 88 150000
	gso_size_tcp "$1" 536
	gso_size_limit "" 7
	gso_size_tcp "$1" 536
	gso_size_limit 9000 ""
	gso_size_tcp "$1" 536
	gso_size_limit
}

gso_size_large() {
	local af

	for af in 4 6; do
		gso_size_limit
		gso_size_edges "${af}" 8900
		gso_size_edges "${af}" 8000
		gso_size_case "${af}" 64001 8000
		gso_size_case "${af}" 65000 8900
		gso_size_limit 19000 ""
		gso_size_edges "${af}" 8900
		gso_size_limit "" 3
		gso_size_edges "${af}" 8900
	done
	gso_size_limit
}

gso_size_large_mtu() {
	gso_size_setup "$1" 9000 9100
	gso_size_large
	gso_size_tcp "$1" 8900 2000000
}

gso_start 9

for outer in 4 6; do
	v="IPv${outer} outside"
	ovpn_run_stage "${v}: setup, two records" \
		gso_size_setup ${outer} 1408 1500
	ovpn_run_stage "${v}: limits of a device as it is" \
		gso_size_default ${outer}
	# what follows does not depend on the header outside
	[ ${outer} -eq 4 ] || break
	# the other family inside
	ovpn_run_stage "${v}: 128 segments" \
		gso_size_segs $((10 - outer))
	ovpn_run_stage "${v}: lower limits" \
		gso_size_limits $((10 - outer))
	ovpn_run_stage "${v}: one record left, in software" \
		gso_size_one_left ${outer}
	ovpn_run_stage "${v}: TCP" gso_size_tcp_all ${outer}
	ovpn_run_stage "${v}: large MTU" gso_size_large_mtu ${outer}
done

gso_finish
