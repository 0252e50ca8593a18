#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GSO input over TCP transport: no aggregates, but complete checksums and exact
# statistics.

set -eE

OVPN_PROTO="TCP"

source ./gso-common.sh

# opcode, key and peer 4, packet ID 4, tag 16
GSO_STREAM_OVERHEAD=24

gso_stream_mark() {
	local p

	for p in 0 1; do
		gso_on "${p}" "${OVPN_CLI}" get_peer "tun${p}" \
			>"${GSO_TMP}/peer${p}" 2>&1
		GSO_STREAM_DEV[p]=$(gso_dev_stat "${p}" "tun${p}" tx_bytes)
	done
}

# gso_stream_stat PEER VPN|LINK RX|TX packets|bytes: since gso_stream_mark
gso_stream_stat() {
	local before

	before=$(awk -F: -v k="$2 $3 $4" 'index($1, k) { print $2 + 0 }' \
		"${GSO_TMP}/peer$1")
	echo $(($(gso_peer_stat "$@") - before))
}

# gso_stream_expect PEER LEVEL DIRECTION PACKETS BYTES
gso_stream_expect() {
	local got

	got="$(gso_stream_stat "${@:1:3}" packets)"
	got="${got} $(gso_stream_stat "${@:1:3}" bytes)"
	[ "${got}" = "$4 $5" ] ||
		gso_fail "peer $1 $2 $3: ${got} packets and bytes, not $4 $5"
}

# gso_stream_udp 4|6 LEN SEG COUNT
gso_stream_udp() {
	local n=$(($4 * (($2 + $3 - 1) / $3)))
	local bytes dev link

	bytes=$(($2 * $4 + n * (8 + ($1 == 4 ? 20 : 40))))
	link=$((bytes + n * GSO_STREAM_OVERHEAD))
	gso_stream_mark
	gso_udp_transfer 0 1 "$1" "$2" "$3" "$4"
	gso_stream_expect 0 VPN TX "${n}" "${bytes}"
	gso_stream_expect 1 VPN RX "${n}" "${bytes}"
	gso_stream_expect 0 LINK TX "${n}" "${link}"
	gso_stream_expect 1 LINK RX "${n}" "${link}"
	# each record has its length in front of it
	dev=$(($(gso_dev_stat 0 tun0 tx_bytes) - GSO_STREAM_DEV[0]))
	[ "${dev}" -eq $((link + 2 * n)) ] ||
		gso_fail "${dev} TX bytes for ${n} records of ${link} bytes"
}

gso_stream_datagrams() {
	local af

	for af in 4 6; do
		gso_stream_udp "${af}" 20001 1000 5
		gso_stream_udp "${af}" 20000 1000 5
		gso_udp_transfer 0 1 "${af}" 999 0 20
	done
	gso_expect_no_csum_errors
}

# gso_stream_agree FROM TO: what one sent the other has received
gso_stream_agree() {
	local level unit
	local a b

	for level in VPN LINK; do
		for unit in packets bytes; do
			a=$(gso_stream_stat "$1" "${level}" TX "${unit}")
			b=$(gso_stream_stat "$2" "${level}" RX "${unit}")
			[ "${a}" -eq "${b}" ] ||
				gso_fail "${level} ${unit}: ${a} sent," \
					"${b} received"
		done
	done
}

gso_stream_streams() {
	local af len

	for af in 4 6; do
		gso_stream_mark
		gso_tcp_transfer 0 1 "${af}" 2000001
		gso_stream_agree 0 1
		gso_stream_agree 1 0
		for len in 1 535 1301; do
			gso_tcp_transfer 0 1 "${af}" "${len}"
		done
	done
	gso_expect_no_csum_errors
}

gso_stream_pings() {
	local af len

	for af in 4 6; do
		for len in 16 1301 5001; do
			gso_ping 0 1 "${af}" "${len}"
		done
	done
	gso_expect_no_csum_errors
}

declare -a GSO_STREAM_DEV

gso_require ethtool nft nstat ss
gso_start 4

ovpn_run_stage "set up two peers, TCP transport" gso_setup_tcp
ovpn_run_stage "datagrams" gso_stream_datagrams
ovpn_run_stage "streams" gso_stream_streams
ovpn_run_stage "pings" gso_stream_pings

gso_finish
