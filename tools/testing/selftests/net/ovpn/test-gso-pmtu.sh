#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Records that exceed the path MTU, as with OpenVPN's default: the MTU of the
# tunnel is that of the path. TCP is cut to fit, nothing else is.

set -eE

GSO_MTU=1500

source ./gso-common.sh

# a path on which IPv6 still works
GSO_PMTU_SMALL=1300
# namespace ovpn_peer2 is a network behind peer 0
GSO_PMTU_LAN=2
GSO_PMTU_NET4=10.20.0.
GSO_PMTU_NET6=fd07::

gso_require awk ethtool jq nft nstat ss

# gso_pmtu_fragments PEER: "fragmented received", datagrams of the family
# outside that a peer had to fragment, and fragments that it got
gso_pmtu_fragments() {
	local prefix=Ip

	[ "${GSO_OUTER}" -eq 4 ] || prefix=Ip6
	gso_on "$1" nstat -asz | awk -v p="${prefix}" \
		'$1 == p "FragOKs" { ok = $2 } $1 == p "ReasmReqds" { in_ = $2 }
		END { print ok + 0, in_ + 0 }'
}

# gso_pmtu_mark: start to count skbs, records, fragments, and the lengths of
# packets that come out of the tunnel
gso_pmtu_mark() {
	gso_on 1 nft -f - <<-END
	table inet gso_pmtu
	delete table inet gso_pmtu
	table inet gso_pmtu {
		set lengths {
			typeof meta length
			flags dynamic
			size 65535
		}
		chain prerouting {
			type filter hook prerouting priority 0; policy accept;
			iifname tun1 add @lengths { meta length }
		}
	}
	END
	read -r GSO_PMTU_SENT_START _ < <(gso_pmtu_fragments 0)
	read -r _ GSO_PMTU_GOT_START < <(gso_pmtu_fragments 1)
	gso_mark_received 0 1
	gso_mark 0
}

# gso_pmtu_read: all of these since then
gso_pmtu_read() {
	gso_expect_received 0 1
	gso_read 0
	read -r GSO_PMTU_SENT _ < <(gso_pmtu_fragments 0)
	read -r _ GSO_PMTU_GOT < <(gso_pmtu_fragments 1)
	GSO_PMTU_SENT=$((GSO_PMTU_SENT - GSO_PMTU_SENT_START))
	GSO_PMTU_GOT=$((GSO_PMTU_GOT - GSO_PMTU_GOT_START))
	GSO_PMTU_LONGEST=$(gso_on 1 nft -j list set inet gso_pmtu lengths |
		jq '[.nftables[].set? | select(.) | .elem[]?] | max')
}

# gso_pmtu_fit MTU: the longest packet whose record fits
gso_pmtu_fit() {
	printf '%d' $(($1 - (GSO_OUTER == 6 ? 48 : 28) - 24))
}

# gso_pmtu_expect_whole MTU: no record was fragmented, and the packets are as
# long as they may be
gso_pmtu_expect_whole() {
	local fit

	gso_pmtu_read
	fit=$(gso_pmtu_fit "$1")
	[ "${GSO_PMTU_SENT}" -eq 0 ] ||
		gso_fail "${GSO_PMTU_SENT} of ${GSO_RECORDS} fragmented"
	[ "${GSO_PMTU_GOT}" -eq 0 ] ||
		gso_fail "${GSO_PMTU_GOT} fragments received"
	[ "${GSO_PMTU_LONGEST}" -eq "${fit}" ] ||
		gso_fail "packets of ${GSO_PMTU_LONGEST} bytes, ${fit} fit"
	gso_expect_no_csum_errors
}

# gso_pmtu_cut MTU AF [BYTES]: a transfer arrives in batches of whole records
gso_pmtu_cut() {
	gso_pmtu_mark
	gso_tcp_transfer 0 1 "$2" "${3:-500001}"
	gso_pmtu_expect_whole "$1"
	gso_expect_fewer 0
}

# gso_pmtu_not_cut LEN TYPE ARG...: a transfer by gso_TYPE_transfer arrives in
# packets of LEN bytes, each of which leaves in a record of its own
gso_pmtu_not_cut() {
	gso_pmtu_mark
	"gso_$2_transfer" "${@:3}"
	gso_pmtu_read
	gso_expect_single 0
	[ "${GSO_PMTU_LONGEST}" -eq "$1" ] ||
		gso_fail "packets of ${GSO_PMTU_LONGEST} bytes, not $1"
	# but for those without data, and short ones at the end
	[ $((GSO_PMTU_SENT * 2)) -ge "${GSO_RECORDS}" ] ||
		gso_fail "${GSO_PMTU_SENT} of ${GSO_RECORDS} fragmented"
	gso_expect_no_csum_errors
}

# gso_pmtu_route MTU: of a route to peer 1 alone, or none with 0
gso_pmtu_route() {
	local dst=10.10.1.2/32

	[ "${GSO_OUTER}" -eq 4 ] || dst=fd00:0:0:1::2/128
	if [ "$1" -eq 0 ]; then
		ip -n "${GSO_NS0}" route del "${dst}" dev "${GSO_DEV}"
		return
	fi
	ip -n "${GSO_NS0}" route replace "${dst}" dev "${GSO_DEV}" \
		mtu lock "$1"
}

gso_pmtu_setup() {
	GSO_OUTER=$1
	gso_teardown
	gso_setup_underlay
	gso_quiet 0
	gso_quiet 1
	gso_setup_tunnel
	# to see each packet
	gso_offload 1 tun1 gro off
}

gso_pmtu_tcp() {
	gso_pmtu_cut 1500 4
	gso_pmtu_cut 1500 6

	# nothing to cut: there is room for a full packet
	ip -n "${GSO_NS0}" link set tun0 mtu "$(gso_pmtu_fit 1500)"
	gso_pmtu_cut 1500 4
	ip -n "${GSO_NS0}" link set tun0 mtu 1500
	gso_pmtu_cut 1500 6
}

# gso_pmtu_udp: fragmented as ever, by the very same number of records
gso_pmtu_udp() {
	local af

	for af in 4 6; do
		gso_pmtu_not_cut $((1450 + (af == 6 ? 48 : 28))) \
			udp 0 1 "${af}" $((23 * 1450)) 1450 2
		[ "${GSO_RECORDS} ${GSO_PMTU_SENT}" = "46 46" ] ||
			gso_fail "${GSO_RECORDS} records of 46," \
				"${GSO_PMTU_SENT} fragmented"
		# one by one
		gso_pmtu_not_cut $((1450 + (af == 6 ? 48 : 28))) \
			udp 0 1 "${af}" 1450 0 40
		[ "${GSO_RECORDS} ${GSO_PMTU_SENT}" = "40 40" ] ||
			gso_fail "${GSO_RECORDS} records of 40," \
				"${GSO_PMTU_SENT} fragmented"
	done
}

gso_pmtu_changes() {
	local af

	for af in 4 6; do
		gso_pmtu_route "${GSO_PMTU_SMALL}"
		gso_pmtu_cut "${GSO_PMTU_SMALL}" "${af}"
		gso_pmtu_route 1400
		gso_pmtu_cut 1400 "${af}"
		gso_pmtu_route 0
		gso_pmtu_cut 1500 "${af}"

		ip -n "${GSO_NS0}" link set "${GSO_DEV}" \
			mtu "${GSO_PMTU_SMALL}"
		gso_pmtu_cut "${GSO_PMTU_SMALL}" "${af}"
		ip -n "${GSO_NS0}" link set "${GSO_DEV}" mtu 1500
		gso_pmtu_cut 1500 "${af}"
	done
}

# gso_pmtu_live: the MTU changes while data flows
gso_pmtu_live() {
	local before after mtu pid
	local rounds=0

	(
		trap - ERR
		# for as long as a slow machine takes for some changes
		GSO_SEND_OPTS=(-r 1000000)
		gso_tcp_transfer 0 1 4 24000001
	) &
	pid=$!
	while kill -0 "${pid}" 2>/dev/null; do
		for mtu in "${GSO_PMTU_SMALL}" 1400 1500; do
			gso_pmtu_route "${mtu}"
			# what was on its way
			sleep 0.2
			read -r before _ < <(gso_pmtu_fragments 0)
			gso_mark 0
			sleep 0.5
			gso_read 0
			read -r after _ < <(gso_pmtu_fragments 0)
			kill -0 "${pid}" 2>/dev/null || break
			[ "${GSO_RECORDS}" -ge 20 ] || continue
			[ "${after}" -eq "${before}" ] ||
				gso_fail "MTU ${mtu}: $((after - before))" \
					"of ${GSO_RECORDS} fragmented"
			rounds=$((rounds + 1))
		done
	done
	wait "${pid}" || gso_fail "the transfer has failed"
	gso_pmtu_route 0
	[ "${rounds}" -ge 2 ] || gso_fail "only ${rounds} changes"
	gso_pmtu_cut 1500 4
}

# gso_pmtu_no_df: TCP has reserved an ID for each packet that may be fragmented
gso_pmtu_no_df() {
	gso_on 0 sysctl -qw net.ipv4.ip_no_pmtu_disc=1
	gso_pmtu_not_cut 1500 tcp 0 1 4 500001
	# IPv6 has no such IDs
	gso_pmtu_cut 1500 6
	gso_on 0 sysctl -qw net.ipv4.ip_no_pmtu_disc=0
	gso_pmtu_cut 1500 4
}

# gso_pmtu_off: what arrives in single packets, already cut, is not cut again
gso_pmtu_off() {
	gso_offload 0 tun0 tso off
	gso_pmtu_not_cut 1500 tcp 0 1 4 500001
	gso_pmtu_not_cut 1500 tcp 0 1 6 500001
	gso_offload 0 tun0 tso on
	gso_pmtu_cut 1500 4
	gso_pmtu_cut 1500 6
}

# gso_pmtu_soft: the underlay has no UDP segmentation
gso_pmtu_soft() {
	local packets

	gso_offload 0 "${GSO_DEV}" tx-udp-segmentation off
	packets=$(gso_dev_stat 0 "${GSO_DEV}" tx_packets)
	gso_pmtu_cut 1500 4
	packets=$(($(gso_dev_stat 0 "${GSO_DEV}" tx_packets) - packets))
	# but for what neighbour discovery adds
	packets=$((packets - GSO_RECORDS))
	if [ "${packets}" -lt 0 ] || [ "${packets}" -ge 10 ]; then
		gso_fail "${packets} more packets than records"
	fi
	gso_pmtu_cut 1500 6
	gso_offload 0 "${GSO_DEV}" tx-udp-segmentation on
}

# gso_pmtu_single: TCP sends one packet at a time, each becomes two
gso_pmtu_single() {
	local af

	ip -n "${GSO_NS0}" link set tun0 gso_max_segs 1
	for af in 4 6; do
		gso_pmtu_mark
		gso_tcp_transfer 0 1 "${af}" 200001
		gso_pmtu_expect_whole 1500
		# 140 packets, which leave in one skb each
		[ "${GSO_RECORDS}" -ge 260 ] ||
			gso_fail "${GSO_RECORDS} records"
		gso_expect_fewer 0
	done

	gso_on 0 sysctl -qw net.ipv4.ip_no_pmtu_disc=1
	gso_pmtu_not_cut 1500 tcp 0 1 4 200001
	gso_on 0 sysctl -qw net.ipv4.ip_no_pmtu_disc=0
	ip -n "${GSO_NS0}" link set tun0 gso_max_segs 65535
	gso_pmtu_cut 1500 4
}

# gso_pmtu_tiny: TCP has to carry 48 bytes, including 12 of options
gso_pmtu_tiny() {
	local af hdr

	for af in 4 6; do
		hdr=$((28 + 24 + (af == 6 ? 40 : 20) + 20))
		gso_pmtu_route $((hdr + 48))
		gso_pmtu_cut $((hdr + 48)) "${af}" 60001
		gso_pmtu_route $((hdr + 47))
		gso_pmtu_not_cut 1500 tcp 0 1 "${af}" 60001
	done
	gso_pmtu_route 0
}

# packets come in as they are on a wire
gso_pmtu_wire() {
	gso_offload "${GSO_PMTU_LAN}" lan tso off gso off tx off
	gso_offload 0 lan gro on
}

gso_pmtu_forward_setup() {
	local p

	ovpn_create_ns "${GSO_PMTU_LAN}"
	gso_on "${GSO_PMTU_LAN}" sysctl -qw net.ipv6.conf.default.accept_dad=0
	gso_on "${GSO_PMTU_LAN}" sysctl -qw net.ipv4.tcp_min_tso_segs=16
	ip link add lan netns "${GSO_NS0}" type veth \
		peer name lan netns "ovpn_peer${GSO_PMTU_LAN}"
	for p in 0 "${GSO_PMTU_LAN}"; do
		ip -n "ovpn_peer${p}" addr add \
			"${GSO_PMTU_NET4}$((p + 1))/24" dev lan
		ip -n "ovpn_peer${p}" addr add \
			"${GSO_PMTU_NET6}$((p + 1))/64" dev lan nodad
		ip -n "ovpn_peer${p}" link set lan up
	done
	ip -n "ovpn_peer${GSO_PMTU_LAN}" route add default \
		via "${GSO_PMTU_NET4}1"
	ip -n "ovpn_peer${GSO_PMTU_LAN}" route add default \
		via "${GSO_PMTU_NET6}1"
	ip -n "${GSO_NS1}" route add "${GSO_PMTU_NET4}0/24" dev tun1
	ip -n "${GSO_NS1}" route add "${GSO_PMTU_NET6}/64" dev tun1
	gso_on 0 sysctl -qw net.ipv4.ip_forward=1 \
		net.ipv6.conf.all.forwarding=1
	gso_ping "${GSO_PMTU_LAN}" 1 4 100
	gso_ping "${GSO_PMTU_LAN}" 1 6 100
}

# gso_pmtu_forward_gro: packets that GRO has put together are cut, those that it
# has left alone are not
gso_pmtu_forward_gro() {
	local af

	for af in 4 6; do
		gso_pmtu_mark
		gso_tcp_transfer "${GSO_PMTU_LAN}" 1 "${af}" 500001
		gso_pmtu_read
		gso_expect_fewer 0
		[ $((GSO_PMTU_SENT * 2)) -le "${GSO_RECORDS}" ] ||
			gso_fail "${GSO_PMTU_SENT} of ${GSO_RECORDS} fragmented"
		gso_expect_no_csum_errors
	done
}

gso_pmtu_forward() {
	local af

	# bursts that were never cut
	for af in 4 6; do
		gso_pmtu_mark
		gso_tcp_transfer "${GSO_PMTU_LAN}" 1 "${af}" 500001
		gso_pmtu_expect_whole 1500
		gso_expect_fewer 0
	done

	gso_pmtu_wire
	gso_pmtu_forward_gro
	gso_offload 0 lan rx-gro-list on
	gso_pmtu_forward_gro
}

gso_start 19

for outer in 4 6; do
	v="IPv${outer} outside"
	ovpn_run_stage "${v}: setup" gso_pmtu_setup ${outer}
	ovpn_run_stage "${v}: TCP is cut" gso_pmtu_tcp
	ovpn_run_stage "${v}: UDP is not" gso_pmtu_udp
	ovpn_run_stage "${v}: changes of the MTU" gso_pmtu_changes
	ovpn_run_stage "${v}: changes under load" gso_pmtu_live
	ovpn_run_stage "${v}: without DF" gso_pmtu_no_df
	ovpn_run_stage "${v}: single packets" gso_pmtu_single
	# what follows does not depend on the header outside
	[ ${outer} -eq 4 ] || break
	ovpn_run_stage "${v}: switched off" gso_pmtu_off
	ovpn_run_stage "${v}: software segmentation" gso_pmtu_soft
	ovpn_run_stage "${v}: the smallest MTU" gso_pmtu_tiny
	ovpn_run_stage "${v}: a network behind" gso_pmtu_forward_setup
	ovpn_run_stage "${v}: forwarded TCP" gso_pmtu_forward
done

gso_finish
