#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What can not be batched leaves one by one, nothing of it is lost, and batching
# is back as soon as the reason is gone.

set -eE

source ./gso-common.sh

GSO_FALLBACK_SEG=1300
GSO_FALLBACK_CRYPTD=""

gso_require ethtool jq nft nstat python3 ss tcpdump

# gso_fallback_expect batched|single [SEG]: transfer something, and see how
gso_fallback_expect() {
	local seg=${2:-${GSO_FALLBACK_SEG}}

	gso_mark_received 0 1
	gso_mark 0
	gso_udp_transfer 0 1 4 $((23 * seg + 100)) "${seg}" 2
	gso_udp_transfer 0 1 6 $((23 * seg + 100)) "${seg}" 2
	gso_expect_received 0 1
	"gso_expect_$1" 0
}

# gso_fallback_expect_tcp batched|single
gso_fallback_expect_tcp() {
	gso_mark_received 0 1
	gso_mark 0
	gso_tcp_transfer 0 1 4 300000
	gso_tcp_transfer 0 1 6 300000
	gso_expect_received 0 1
	# it starts with short bursts
	"gso_expect_$1" 0 2
}

gso_fallback_setup() {
	GSO_OUTER=$1
	gso_teardown
	gso_setup_underlay
	gso_quiet 0
	gso_quiet 1
	gso_setup_tunnel
	gso_fallback_expect batched
	gso_fallback_expect_tcp batched
}

# gso_fallback_no_check PEER OPTION on|off [TIMES]: gso-sockopt.py for the
# transport socket, which is one for both families
gso_fallback_no_check() {
	local pid fd

	read -r pid fd < <(gso_on "$1" ss -Hnuap "sport = :${GSO_PORT}" |
		sed -n 's/.*pid=\([0-9]*\),fd=\([0-9]*\).*/\1 \2/p')
	[ -n "${fd}" ] || gso_fail "no process holds the socket of peer $1"
	./gso-sockopt.py "${pid}" "${fd}" "${@:2}"
}

# gso_fallback_count_zero: start to count what is sent without a checksum
gso_fallback_count_zero() {
	gso_on 0 nft -f - <<-END
	table inet gso_zero
	delete table inet gso_zero
	table inet gso_zero {
		counter zero { }
		chain output {
			type filter hook output priority 0; policy accept;
			udp sport ${GSO_PORT} udp checksum 0 counter name zero
		}
	}
	END
}

gso_fallback_zero() {
	gso_on 0 nft -j list counter inet gso_zero zero |
		jq '.nftables[] | .counter? | select(.) | .packets'
}

gso_fallback_socket() {
	local opt=no-check-tx
	local other=no-check6-tx
	local zero

	if [ "${GSO_OUTER}" -eq 6 ]; then
		opt=no-check6-tx
		other=no-check-tx
		gso_fallback_no_check 1 no-check6-rx on
	fi

	# the one of the other family does not matter
	gso_fallback_no_check 0 "${other}" on
	gso_fallback_expect batched
	gso_fallback_no_check 0 "${other}" off

	gso_fallback_no_check 0 "${opt}" on
	gso_fallback_count_zero
	gso_fallback_expect single
	zero=$(gso_fallback_zero)
	[ "${zero}" -eq "${GSO_RECORDS}" ] ||
		gso_fail "${zero} of ${GSO_RECORDS} without a checksum"
	gso_fallback_expect_tcp single

	gso_fallback_no_check 0 "${opt}" off
	gso_fallback_count_zero
	gso_fallback_expect batched
	zero=$(gso_fallback_zero)
	[ "${zero}" -eq 0 ] || gso_fail "${zero} without a checksum"
}

# gso_fallback_toggle: while it is switched, a checksum is right or not there,
# and an aggregate has one
gso_fallback_toggle() {
	local opt=no-check-tx
	local errors pid zero

	[ "${GSO_OUTER}" -eq 4 ] || opt=no-check6-tx
	# to be finished by the sender and to be checked by the receiver
	gso_offload 0 "${GSO_DEV}" tx off
	errors=$(gso_csum_errors 1)
	gso_fallback_count_zero
	gso_mark_received 0 1
	gso_mark 0

	gso_fallback_no_check 0 "${opt}" off 400 &
	pid=$!
	while kill -0 "${pid}" 2>/dev/null; do
		gso_udp_transfer 0 1 4 30000 "${GSO_FALLBACK_SEG}" 40
		gso_tcp_transfer 0 1 6 500000
	done
	wait "${pid}"

	gso_read 0
	zero=$(gso_fallback_zero)
	if [ "${zero}" -eq 0 ] || [ "${GSO_SKBS}" -ge "${GSO_RECORDS}" ]; then
		gso_fail "not both: ${GSO_RECORDS} records in ${GSO_SKBS}" \
			"skbs, ${zero} without a checksum"
	fi
	gso_expect_received 0 1
	errors=$(($(gso_csum_errors 1) - errors))
	[ "${errors}" -eq 0 ] || gso_fail "${errors} bad checksums"

	gso_offload 0 "${GSO_DEV}" tx on
	gso_fallback_expect batched
}

# gso_fallback_route MTU: of a route to peer 1 alone, or none with 0
gso_fallback_route() {
	local dst=10.10.1.2/32
	local cmd=add

	[ "${GSO_OUTER}" -eq 4 ] || dst=fd00:0:0:1::2/128
	[ "$1" -ne 0 ] || cmd=del
	set -- "$1" "${dst}" dev "${GSO_DEV}"
	[ "$1" -eq 0 ] || set -- "$@" mtu lock "$1"
	ip -n "${GSO_NS0}" route "${cmd}" "${@:2}"
}

# gso_fallback_fragments: datagrams of peer 0 that were fragmented, and could
# not be
gso_fallback_fragments() {
	local prefix=Ip

	[ "${GSO_OUTER}" -eq 4 ] || prefix=Ip6
	gso_on 0 nstat -asz | awk -v p="${prefix}" \
		'$1 == p "FragOKs" { ok = $2 } $1 == p "FragFails" { bad = $2 }
		END { print ok + 0, bad + 0 }'
}

# gso_fallback_fragmented: what is too long for the path is fragmented, what is
# not is batched
gso_fallback_fragmented() {
	local before after

	read -r -a before < <(gso_fallback_fragments)
	gso_fallback_expect single
	read -r -a after < <(gso_fallback_fragments)
	# but for the short one at the end of each burst
	[ $((after[0] - before[0])) -eq $((GSO_RECORDS - 4)) ] ||
		gso_fail "$((after[0] - before[0])) of ${GSO_RECORDS} records" \
			"were fragmented"
	gso_fallback_expect_tcp single
	read -r -a after < <(gso_fallback_fragments)
	[ "${after[1]}" -eq "${before[1]}" ] ||
		gso_fail "$((after[1] - before[1])) could not be fragmented"

	gso_fallback_expect batched 1000
}

gso_fallback_mtu() {
	gso_fallback_expect batched
	gso_fallback_route 1300
	gso_fallback_fragmented
	gso_fallback_route 0
	gso_fallback_expect batched

	ip -n "${GSO_NS0}" link set "${GSO_DEV}" mtu 1300
	gso_fallback_fragmented
	ip -n "${GSO_NS0}" link set "${GSO_DEV}" mtu 1500
	gso_fallback_expect batched
	gso_fallback_expect_tcp batched
}

gso_fallback_geometry() {
	gso_fallback_expect batched
	ip -n "${GSO_NS0}" link set "${GSO_DEV}" gso_max_segs 1
	gso_fallback_expect single
	gso_fallback_expect_tcp single
	ip -n "${GSO_NS0}" link set "${GSO_DEV}" gso_max_segs 65535
	gso_fallback_expect batched

	# no room for two
	ip -n "${GSO_NS0}" link set "${GSO_DEV}" gso_max_size 2600
	gso_fallback_expect single
	gso_fallback_expect_tcp single
	ip -n "${GSO_NS0}" link set "${GSO_DEV}" gso_max_size 65536

	# not GSO at all
	gso_mark 0
	gso_udp_transfer 0 1 4 1300 0 40
	gso_udp_transfer 0 1 6 1300 0 40
	gso_expect_single 0

	gso_fallback_expect batched
}

# gso_fallback_xfrm_state PEER: for records from peer 0 to peer 1
gso_fallback_xfrm_state() {
	local src dst key

	src=$(gso_outer_addr 0)
	dst=$(gso_outer_addr 1)
	key=0x$(printf 'a5%.0s' $(seq 16))
	# what the kernel has of these
	ip -n "ovpn_peer$1" xfrm state add src "${src}" dst "${dst}" \
		proto esp spi 0x1001 reqid 1 mode transport \
		aead "rfc4106(gcm(aes))" "${key}deadbeef" 128 2>/dev/null ||
	ip -n "ovpn_peer$1" xfrm state add src "${src}" dst "${dst}" \
		proto esp spi 0x1001 reqid 1 mode transport \
		enc "cbc(aes)" "${key}" auth "hmac(sha256)" "${key}${key#0x}"
}

gso_fallback_have_xfrm() {
	gso_fallback_xfrm_state 0 2>/dev/null || return 1
	ip -n "${GSO_NS0}" xfrm state deleteall
}

# gso_fallback_capture_lines FILTER: packets in the capture that match
gso_fallback_capture_lines() {
	tcpdump -nr "${GSO_TMP}/esp.pcap" "$1" 2>/dev/null | wc -l
}

gso_fallback_xfrm() {
	local file="${GSO_TMP}/esp.pcap"
	local clear esp
	local pid i

	gso_fallback_expect batched

	gso_fallback_xfrm_state 1
	gso_fallback_xfrm_state 0
	ip -n "${GSO_NS0}" xfrm policy add \
		src "$(gso_outer_addr 0)" dst "$(gso_outer_addr 1)" \
		proto udp sport "${GSO_PORT}" dport "${GSO_PORT}" dir out \
		tmpl src "$(gso_outer_addr 0)" dst "$(gso_outer_addr 1)" \
		proto esp reqid 1 mode transport

	gso_on 1 tcpdump -i "${GSO_DEV}" -Q in -s 128 -U --immediate-mode \
		-w "${file}" "esp or udp src port ${GSO_PORT}" \
		2>"${file}.log" &
	pid=$!
	for i in $(seq 100); do
		! grep -q "listening on" "${file}.log" || break
		[ "${i}" -lt 100 ] || gso_fail "tcpdump does not start"
		sleep 0.1
	done

	# the hook sees a packet before and after the transform
	gso_fallback_expect single
	for i in $(seq 50); do
		esp=$(gso_fallback_capture_lines esp)
		[ "${esp}" -lt "${GSO_RECORDS}" ] || break
		sleep 0.2
	done
	clear=$(gso_fallback_capture_lines udp)
	if [ "${esp}" -ne "${GSO_RECORDS}" ] || [ "${clear}" -ne 0 ]; then
		gso_fail "${GSO_RECORDS} records, ${esp} ESP and ${clear}" \
			"plain packets"
	fi
	kill "${pid}"
	wait "${pid}" || true
	gso_fallback_expect_tcp single

	for i in 0 1; do
		ip -n "ovpn_peer${i}" xfrm policy deleteall
		ip -n "ovpn_peer${i}" xfrm state deleteall
	done
	gso_fallback_expect batched
	gso_fallback_expect_tcp batched
}

# gso_fallback_encap PEER: a tunnel that one side sends to, and what the other
# needs to receive from it
gso_fallback_encap() {
	local ns="ovpn_peer$1"
	local type=(ipip)
	local net=10.10.2.
	local encap=ip
	local bits=24

	if [ "${GSO_OUTER}" -eq 6 ]; then
		type=(ip6tnl mode ip6ip6)
		net=fd00:0:0:2::
		encap=ip6
		bits=64
	fi

	ip -n "${ns}" addr add "${net}$(($1 + 1))/${bits}" dev "${GSO_DEV}" ||
		return
	if [ "$1" -eq 1 ]; then
		ip -n "${ns}" link add encap type "${type[@]}" \
			local "${net}2" remote "${net}1"
		gso_on 1 sysctl -qw net.ipv4.conf.all.rp_filter=0
		gso_on 1 sysctl -qw net.ipv4.conf.encap.rp_filter=0
		ip -n "${ns}" link set encap up
		return
	fi
	ip -n "${ns}" link add encap type "${type[@]}" external || return
	ip -n "${ns}" link set encap up || return
	ip -n "${ns}" route add "$(gso_outer_addr 1)" encap "${encap}" id 1 \
		src "${net}1" dst "${net}2" dev encap
}

gso_fallback_encap_off() {
	ip -n "${GSO_NS0}" link del encap 2>/dev/null || true
	ip -n "${GSO_NS1}" link del encap 2>/dev/null || true
}

gso_fallback_have_encap() {
	local rc=0

	gso_fallback_encap 0 2>/dev/null || rc=1
	gso_fallback_encap_off
	ip -n "${GSO_NS0}" addr del 10.10.2.1/24 dev "${GSO_DEV}" \
		2>/dev/null || true
	ip -n "${GSO_NS0}" addr del fd00:0:0:2::1/64 dev "${GSO_DEV}" \
		2>/dev/null || true
	return "${rc}"
}

gso_fallback_lwtunnel() {
	# short, to fit the path with the header of the tunnel
	gso_fallback_expect batched 1000
	gso_fallback_encap 1
	gso_fallback_encap 0
	gso_fallback_expect single 1000
	gso_fallback_encap_off
	gso_fallback_expect batched 1000
}

# gso_fallback_rekey KEY_ID: with whatever implementation is the best now
gso_fallback_rekey() {
	gso_add_key 0 1 "$1"
	gso_add_key 1 1 "$1"
}

# gso_fallback_cryptd_del: keys are freed with a delay
gso_fallback_cryptd_del() {
	local i

	[ -n "${GSO_FALLBACK_CRYPTD}" ] || return 0
	for i in $(seq 100); do
		./gso-cryptd.py del "${GSO_FALLBACK_CRYPTD}" 2>/dev/null &&
			break
		[ "${i}" -lt 100 ] ||
			gso_fail "${GSO_FALLBACK_CRYPTD} can not be removed"
		sleep 0.2
	done
	GSO_FALLBACK_CRYPTD=""
}

gso_fallback_have_cryptd() {
	GSO_FALLBACK_CRYPTD=$(./gso-cryptd.py add 2>/dev/null) || return 1
	gso_fallback_cryptd_del
}

gso_fallback_async() {
	local p

	gso_fallback_expect batched

	# nobody has keys with it: still batched
	GSO_FALLBACK_CRYPTD=$(./gso-cryptd.py add)
	gso_fallback_expect batched

	gso_fallback_rekey 1
	gso_fallback_expect single
	gso_fallback_expect_tcp single

	for p in 0 1; do
		gso_on "${p}" "${OVPN_CLI}" del_key "tun${p}" $((1 + 9 * p)) 1
	done
	gso_fallback_cryptd_del
	gso_fallback_rekey 2
	gso_fallback_expect batched
	gso_fallback_expect_tcp batched
}

gso_fallback_exit() {
	gso_exit
	gso_fallback_cryptd_del || true
}

v="IPv${GSO_OUTER} outside"
gso_start $((GSO_OUTER == 4 ? 8 : 5))
trap gso_fallback_exit EXIT

ovpn_run_stage "${v}: setup" gso_fallback_setup "${GSO_OUTER}"
ovpn_run_stage "${v}: no UDP checksum" gso_fallback_socket
ovpn_run_stage "${v}: path MTU" gso_fallback_mtu
if gso_fallback_have_xfrm; then
	ovpn_run_stage "${v}: IPsec" gso_fallback_xfrm
else
	gso_skip_stage "${v}: IPsec" "the kernel has no ESP"
fi
if gso_fallback_have_encap; then
	ovpn_run_stage "${v}: lightweight tunnel" gso_fallback_lwtunnel
else
	gso_skip_stage "${v}: lightweight tunnel" "the kernel has none"
fi
if [ "${GSO_OUTER}" -ne 4 ]; then
	gso_finish
fi

# the same for both families
ovpn_run_stage "UDP checksum switched" gso_fallback_toggle
ovpn_run_stage "geometry" gso_fallback_geometry
if gso_fallback_have_cryptd; then
	ovpn_run_stage "asynchronous cipher" gso_fallback_async
else
	gso_skip_stage "asynchronous cipher" "the kernel has no cryptd"
fi

gso_finish
