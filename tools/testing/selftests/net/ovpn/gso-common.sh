#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Shared by the tests of GSO input (test-gso*.sh): two peers, joined by a veth
# pair, and counters of what the stack sends outside against the records that
# are on the wire. An aggregate is one skb there and many records here.

source ./common.sh

GSO_NS0=ovpn_peer0
GSO_NS1=ovpn_peer1
# underlay device, the same name on both sides
GSO_DEV=veth1
GSO_PORT=1194
GSO_MTU=${GSO_MTU:-1408}
# address family outside: 4 or 6
GSO_OUTER=${GSO_OUTER:-4}
# addresses inside, without the last part. A test of what is stacked on the
# tunnel changes them for a while.
GSO_INNER4=5.5.5.
GSO_INNER6=fd05::
GSO_TRAFFIC=${GSO_TRAFFIC:-${OVPN_COMMON_DIR}/ovpn-traffic}
GSO_TMP=$(mktemp -d)

# gso_on PEER cmd...: run in the namespace of a peer
gso_on() {
	local peer=$1

	shift
	ip netns exec "ovpn_peer${peer}" "$@"
}

# gso_fail MESSAGE: say why a stage failed, and fail it
gso_fail() {
	printf '# %s\n' "$*"
	return 1
}

# gso_require TOOL...: skip all without one of them
gso_require() {
	local tool

	for tool in "$@"; do
		command -v "${tool}" >/dev/null && continue
		ktap_skip_all "${tool} is not installed"
		exit "${KSFT_SKIP}"
	done
}

# gso_skip_stage LABEL REASON: instead of ovpn_run_stage
gso_skip_stage() {
	__ktap_test ok "$1" "SKIP $2"
	KTAP_CNT_SKIP=$((KTAP_CNT_SKIP + 1))
}

gso_outer_addr() {
	if [ "${GSO_OUTER}" -eq 6 ]; then
		printf 'fd00:0:0:1::%d' $(($1 + 1))
	else
		printf '10.10.1.%d' $(($1 + 1))
	fi
}

# gso_inner_addr PEER [4|6]
gso_inner_addr() {
	if [ "${2:-4}" -eq 6 ]; then
		printf '%s%d' "${GSO_INNER6}" $(($1 + 1))
	else
		printf '%s%d' "${GSO_INNER4}" $(($1 + 1))
	fi
}

# gso_silence PEER: what IPv6 says on its own when a device comes up must not
# get into exact counters
gso_silence() {
	gso_on "$1" nft -f - <<-END
	table ip6 gso_silence {
		chain output {
			type filter hook output priority -100; policy accept;
			oifname "tun*" icmpv6 type { mld-listener-report,
				mld-listener-done, mld2-listener-report,
				nd-router-solicit } drop
		}
	}
	END
}

# gso_setup_underlay [MTU]: namespaces of the peers, joined by a veth pair
gso_setup_underlay() {
	local mtu=${1:-1500}
	local p

	ovpn_create_ns 0
	ovpn_create_ns 1
	ip link add "${GSO_DEV}" netns "${GSO_NS0}" type veth \
		peer name "${GSO_DEV}" netns "${GSO_NS1}"
	for p in 0 1; do
		gso_on ${p} sysctl -qw net.ipv6.conf.default.accept_dad=0
		# TCP sends small bursts when the round trip is long, as it is
		# on a slow machine
		gso_on ${p} sysctl -qw net.ipv4.tcp_min_tso_segs=16
		gso_silence ${p}
		ip -n ovpn_peer${p} link set lo up
		ip -n ovpn_peer${p} addr add 10.10.1.$((p + 1))/24 \
			dev "${GSO_DEV}"
		ip -n ovpn_peer${p} addr add fd00:0:0:1::$((p + 1))/64 \
			dev "${GSO_DEV}" nodad
		ip -n ovpn_peer${p} link set "${GSO_DEV}" mtu "${mtu}" up
	done
}

# gso_setup_dev PEER: device tun0 of peer 0, tun1 of peer 1
gso_setup_dev() {
	local p=$1

	ip -n "ovpn_peer${p}" link set "tun${p}" mtu "${GSO_MTU}" up
	ip -n "ovpn_peer${p}" addr add "$(gso_inner_addr "${p}")/24" \
		dev "tun${p}"
	ip -n "ovpn_peer${p}" addr add "$(gso_inner_addr "${p}" 6)/64" \
		dev "tun${p}" nodad
}

# gso_add_key PEER [SLOT [KEY_ID]]: peer 0 has the ID 10, peer 1 the ID 1
gso_add_key() {
	local id=$((1 + 9 * $1))

	gso_on "$1" "${OVPN_CLI}" new_key "tun$1" "${id}" "${2:-1}" "${3:-0}" \
		"${OVPN_ALG}" "$1" data64.key
}

# gso_setup_tunnel: devices, peers and keys on top of the underlay. Peer 1 has
# the ID 1 at peer 0, peer 0 has the ID 10 at peer 1.
gso_setup_tunnel() {
	local p

	for p in 0 1; do
		gso_on ${p} "${OVPN_CLI}" new_iface tun${p} P2P >/dev/null
	done
	gso_on 0 "${OVPN_CLI}" new_peer tun0 1 10 "${GSO_PORT}" \
		"$(gso_outer_addr 1)" "${GSO_PORT}"
	gso_on 1 "${OVPN_CLI}" new_peer tun1 10 1 "${GSO_PORT}" \
		"$(gso_outer_addr 0)" "${GSO_PORT}"
	for p in 0 1; do
		gso_add_key ${p}
		gso_setup_dev ${p}
	done
	gso_on 0 ping -q -c 1 -w 10 "$(gso_inner_addr 1)" >/dev/null ||
		gso_fail "no ping through the tunnel"
}

gso_setup() {
	gso_setup_underlay "$@"
	gso_setup_tunnel
}

# gso_setup_tcp [MTU]: the same with TCP transport, which is IPv4 outside. Only
# a device with many peers listens, and it has to know what is behind them.
gso_setup_tcp() {
	local peers="${GSO_TMP}/peers"
	local p pid

	gso_setup_underlay "$@"
	# records that find no room in the socket are lost: have enough
	for p in 0 1; do
		gso_on ${p} sysctl -qw \
			net.ipv4.tcp_wmem="4096 8388608 8388608"
	done
	gso_on 0 "${OVPN_CLI}" new_iface tun0 MP >/dev/null
	gso_on 1 "${OVPN_CLI}" new_iface tun1 P2P >/dev/null

	printf '1 10 %s\n' "$(gso_inner_addr 1)" >"${peers}"
	gso_on 0 "${OVPN_CLI}" listen tun0 "${GSO_PORT}" ASYMM "${peers}" \
		>/dev/null 2>&1 &
	pid=$!
	gso_wait_listen 0 tcp "${GSO_PORT}"
	gso_on 1 "${OVPN_CLI}" connect tun1 10 1 10.10.1.1 "${GSO_PORT}" \
		>/dev/null 2>&1
	# it goes to the background with its peer
	wait "${pid}" || gso_fail "no connection"

	gso_on 0 "${OVPN_CLI}" set_peer tun0 1 3600 7200 \
		"$(gso_inner_addr 1 6)"
	for p in 0 1; do
		gso_add_key ${p}
		gso_setup_dev ${p}
	done
	gso_on 0 ping -q -c 1 -w 10 "$(gso_inner_addr 1)" >/dev/null ||
		gso_fail "no ping through the tunnel"
}

# gso_teardown: all of it, to set up another variant
gso_teardown() {
	ovpn_cleanup
}

# gso_offload PEER DEV FEATURE on|off [FEATURE on|off]...
gso_offload() {
	local peer=$1
	local dev=$2

	shift 2
	gso_on "${peer}" ethtool -K "${dev}" "$@" >/dev/null
}

# gso_feature PEER DEV FEATURE: on or off, as ethtool -k prints it
gso_feature() {
	gso_on "$1" ethtool -k "$2" | awk -v f="$3:" '$1 == f { print $2 }'
}

# gso_count_skbs PEER: count what the stack of a peer sends outside
gso_count_skbs() {
	gso_on "$1" nft -f - <<-END
	table inet gso
	delete table inet gso
	table inet gso {
		counter skbs { }
		chain output {
			type filter hook output priority 0; policy accept;
			udp sport ${GSO_PORT} counter name skbs
			tcp sport ${GSO_PORT} counter name skbs
		}
	}
	END
}

# gso_skbs PEER: skbs since gso_count_skbs
gso_skbs() {
	local out

	out=$(gso_on "$1" nft list counter inet gso skbs)
	out=${out#*packets }
	printf '%s\n' "${out%% *}"
}

# gso_peer_stat PEER VPN|LINK RX|TX packets|bytes
gso_peer_stat() {
	local out

	out=$(gso_on "$1" "${OVPN_CLI}" get_peer "tun$1" 2>&1)
	[[ ${out} =~ "$2 $3 $4: "([0-9]+) ]] || return 0
	printf '%s\n' "${BASH_REMATCH[1]}"
}

# gso_dev_stat PEER DEV NAME: such as tx_bytes
gso_dev_stat() {
	gso_on "$1" cat "/sys/class/net/$2/statistics/$3"
}

# gso_mark PEER: start to count skbs and records
gso_mark() {
	gso_count_skbs "$1"
	GSO_RECORDS_START=$(gso_peer_stat "$1" LINK TX packets)
}

# gso_read PEER: GSO_SKBS and GSO_RECORDS since gso_mark
gso_read() {
	GSO_SKBS=$(gso_skbs "$1")
	GSO_RECORDS=$(gso_peer_stat "$1" LINK TX packets)
	GSO_RECORDS=$((GSO_RECORDS - GSO_RECORDS_START))
}

# gso_expect_batched PEER [RATIO]: at least RATIO records an skb on average
gso_expect_batched() {
	gso_read "$1"
	[ "${GSO_RECORDS}" -ge 20 ] ||
		gso_fail "only ${GSO_RECORDS} records: nothing to judge"
	[ $((GSO_SKBS * ${2:-3})) -le "${GSO_RECORDS}" ] ||
		gso_fail "${GSO_RECORDS} records in ${GSO_SKBS} skbs"
}

# gso_expect_fewer PEER: the same, where the length of bursts depends on how
# fast the machine is: what GRO finds together, what TCP may send at once.
# Without batching there are exactly as many skbs as records.
gso_expect_fewer() {
	gso_read "$1"
	[ "${GSO_RECORDS}" -ge 20 ] ||
		gso_fail "only ${GSO_RECORDS} records: nothing to judge"
	[ $((GSO_SKBS * 5)) -le $((GSO_RECORDS * 4)) ] ||
		gso_fail "${GSO_RECORDS} records in ${GSO_SKBS} skbs"
}

# gso_expect_single PEER: each record left in an skb of its own
gso_expect_single() {
	gso_read "$1"
	[ "${GSO_RECORDS}" -ge 20 ] ||
		gso_fail "only ${GSO_RECORDS} records: nothing to judge"
	[ "${GSO_SKBS}" -eq "${GSO_RECORDS}" ] ||
		gso_fail "${GSO_RECORDS} records in ${GSO_SKBS} skbs"
}

# gso_quiet PEER: keep what IPv6 itself multicasts (MLD, router solicitations)
# out of the tunnel, for tests that know each packet
gso_quiet() {
	gso_on "$1" nft -f - <<-END
	table inet gso_quiet {
		chain output {
			type filter hook output priority 0; policy accept;
			oifname "tun*" meta l4proto ipv6-icmp drop
		}
	}
	END
}

# gso_mark_received FROM TO: start to compare what one sends and one receives
gso_mark_received() {
	GSO_LINK_TX_START=$(gso_peer_stat "$1" LINK TX packets)
	GSO_LINK_RX_START=$(gso_peer_stat "$2" LINK RX packets)
	GSO_VPN_RX_START=$(gso_peer_stat "$2" VPN RX packets)
	GSO_RX_DROPPED_START=$(gso_dev_stat "$2" "tun$2" rx_dropped)
}

# gso_expect_received FROM TO: each record of FROM has come to TO, and its
# packet out of the device
gso_expect_received() {
	local dropped rx tx vpn
	local i

	for i in $(seq 100); do
		tx=$(gso_peer_stat "$1" LINK TX packets)
		rx=$(gso_peer_stat "$2" LINK RX packets)
		vpn=$(gso_peer_stat "$2" VPN RX packets)
		tx=$((tx - GSO_LINK_TX_START))
		rx=$((rx - GSO_LINK_RX_START))
		vpn=$((vpn - GSO_VPN_RX_START))
		[ "${tx}" -eq "${rx}" ] && [ "${rx}" -eq "${vpn}" ] && break
		[ "${i}" -lt 100 ] ||
			gso_fail "${tx} records sent, ${rx} received," \
				"${vpn} delivered"
		sleep 0.1
	done
	dropped=$(gso_dev_stat "$2" "tun$2" rx_dropped)
	[ "${dropped}" -eq "${GSO_RX_DROPPED_START}" ] ||
		gso_fail "tun$2 dropped $((dropped - GSO_RX_DROPPED_START))"
}

# gso_csum_errors PEER: all counters of checksum errors of a namespace
gso_csum_errors() {
	gso_on "$1" nstat -asz | awk '/InCsumErrors/ { n += $2 }
		END { print n + 0 }'
}

gso_expect_no_csum_errors() {
	local n p

	for p in 0 1; do
		n=$(gso_csum_errors ${p})
		[ "${n}" -eq 0 ] || gso_fail "peer ${p}: ${n} checksum errors"
	done
}

# gso_ping FROM TO 4|6 SIZE
gso_ping() {
	gso_on "$1" ping -q -c 3 -i 0.2 -w 30 -s "$4" \
		"$(gso_inner_addr "$2" "$3")" >"${GSO_TMP}/ping" 2>&1 ||
		gso_fail "ping of $4 bytes: $(cat "${GSO_TMP}/ping")"
}

# gso_wait_listen PEER tcp|udp PORT: until somebody does
gso_wait_listen() {
	local i

	for ((i = 0; i < 100; i++)); do
		[ -z "$(gso_on "$1" ss -Hln "--$2" "sport = :$3")" ] || return 0
		sleep 0.1
	done
	gso_fail "nobody listens on $2 port $3 (${i} tries)"
}

# port of the transfers below; set it to run several at a time
GSO_DATA_PORT=${GSO_DATA_PORT:-4000}
# options of ovpn-traffic for them
GSO_SEND_OPTS=()
GSO_RECV_OPTS=()
# what to run the sender with
GSO_SEND_PREFIX=()

# gso_transfer FROM TO udp|tcp SENDER_ARG... -- RECEIVER_ARG...: run the
# receiver, then the sender; both shall print the same line. What else they say
# is in ${GSO_TMP}/PORT.send.err and PORT.recv.err
gso_transfer() {
	local from=$1
	local to=$2
	local proto=$3
	local out="${GSO_TMP}/${GSO_DATA_PORT}"
	local send=()
	local rc=0
	local pid

	shift 3
	while [ "$1" != -- ]; do
		send+=("$1")
		shift
	done
	shift

	# not gso_on: no shell in between, for kill and the ERR trap
	ip netns exec "ovpn_peer${to}" "${GSO_TRAFFIC}" "${GSO_RECV_OPTS[@]}" \
		"${proto}-recv" "$@" >"${out}.recv" 2>"${out}.recv.err" &
	pid=$!
	gso_wait_listen "${to}" "${proto}" "${GSO_DATA_PORT}"
	gso_on "${from}" "${GSO_SEND_PREFIX[@]}" "${GSO_TRAFFIC}" \
		"${GSO_SEND_OPTS[@]}" "${proto}-send" "${send[@]}" \
		>"${out}.send" 2>"${out}.send.err" || rc=$?
	[ "${rc}" -eq 0 ] || kill "${pid}" 2>/dev/null || true
	wait "${pid}" || rc=$?
	[ "${rc}" -eq 0 ] && cmp -s "${out}.send" "${out}.recv" && return
	gso_fail "${proto} transfer (${rc}):" \
		"sent $(cat "${out}.send" "${out}.send.err")," \
		"received $(cat "${out}.recv" "${out}.recv.err")"
}

# gso_udp_transfer FROM TO 4|6 LEN SEG COUNT: COUNT sends of LEN bytes, cut
# every SEG bytes (0: not)
gso_udp_transfer() {
	local datagrams=$6
	local addr

	addr=$(gso_inner_addr "$2" "$3")
	[ "$5" -eq 0 ] || datagrams=$(($6 * (($4 + $5 - 1) / $5)))
	gso_transfer "$1" "$2" udp "${addr}" "${GSO_DATA_PORT}" "$4" "$5" "$6" \
		-- "${addr}" "${GSO_DATA_PORT}" "${datagrams}"
}

# gso_tcp_transfer FROM TO 4|6 BYTES [MSS]
gso_tcp_transfer() {
	local addr

	addr=$(gso_inner_addr "$2" "$3")
	gso_transfer "$1" "$2" tcp "${addr}" "${GSO_DATA_PORT}" "${@:4}" \
		-- "${addr}" "${GSO_DATA_PORT}"
}

# gso_burst FROM tcp4|tcp6|udp4|udp6: bursts to peer 1, by way of peer 0, the
# last segment of which is an odd one
gso_burst() {
	gso_mark 0
	case $2 in
	tcp*)
		gso_tcp_transfer "$1" 1 "${2#tcp}" 500001
		;;
	udp*)
		gso_udp_transfer "$1" 1 "${2#udp}" 20501 1001 6
		;;
	esac
}

# gso_bursts_batched FROM KIND...
gso_bursts_batched() {
	local kind

	for kind in "${@:2}"; do
		gso_burst "$1" "${kind}"
		case "$1 ${kind}" in
		"0 udp"*)
			gso_expect_batched 0
			;;
		*)
			gso_expect_fewer 0
			;;
		esac
	done
}

# gso_bursts_single FROM KIND...
gso_bursts_single() {
	local kind

	for kind in "${@:2}"; do
		gso_burst "$1" "${kind}"
		gso_expect_single 0
	done
}

gso_exit() {
	ovpn_cleanup
	rm -rf "${GSO_TMP}"
	modprobe -r ovpn 2>/dev/null || true

	[ "${GSO_FINISHED:-0}" -eq 1 ] || ktap_print_totals
}

# gso_start STAGES
gso_start() {
	trap gso_exit EXIT
	trap ovpn_stage_err ERR

	ktap_print_header
	ktap_set_plan "$1"

	ovpn_cleanup
	modprobe -q ovpn || true
}

gso_finish() {
	GSO_FINISHED=1
	ktap_finished
}
