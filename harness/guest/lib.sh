# shellcheck shell=bash
# Shared by the scripts that run inside the guest: two namespaces with an ovpn
# tunnel between them, counters, and instructions per byte. Sourced, never run.

set -euo pipefail

STAGE=/mnt/stage
SELFTESTS=$STAGE/tools/testing/selftests
PORT=1194
# instruction counting: the clock advances this much per executed instruction
NS_PER_INSN=1

say() { printf '[guest %6.1f s] %s\n' "$(cut -d ' ' -f 1 /proc/uptime)" "$*"; }
die() { say "error: $*"; exit 1; }

# on NS cmd...
on() { ip netns exec "$@"; }

# fast_programs NAME...: programs into tmpfs, each run once: a page fault over
# 9p inside a timed window would let the clock jump
fast_programs() {
	local p

	mkdir -p /tmp/bin
	export PATH=/tmp/bin:$PATH
	for p in "$@"; do
		[[ $p == */* ]] || p=$(command -v "$p")
		cp "$p" /tmp/bin/
		"/tmp/bin/${p##*/}" --help > /dev/null 2>&1 < /dev/null || true
	done
}

# pair_up MTU: namespaces a and b, joined by a veth pair
pair_up() {
	local ns n=1

	ip netns add a
	ip netns add b
	ip link add veth0 netns a type veth peer name veth0 netns b
	for ns in a b; do
		ip -n $ns link set lo up
		ip -n $ns addr add 10.10.1.$n/24 dev veth0
		ip -n $ns addr add fd00:10::$n/64 dev veth0 nodad
		ip -n $ns link set veth0 mtu "$1" up
		n=$((n + 1))
	done
}

# tunnel_up CIPHER MTU: ovpn devices tun0 in a and b, with keys, 5.5.5.1 and .2
tunnel_up() {
	local cipher=$1 mtu=$2 key=/tmp/data64.key

	cp "$SELFTESTS/net/ovpn/data64.key" $key
	on a ovpn-cli new_iface tun0 P2P > /dev/null
	on b ovpn-cli new_iface tun0 P2P > /dev/null
	on a ovpn-cli new_peer tun0 1 10 $PORT 10.10.1.2 $PORT
	on b ovpn-cli new_peer tun0 10 1 $PORT 10.10.1.1 $PORT
	on a ovpn-cli new_key tun0 1 1 0 "$cipher" 0 $key
	on b ovpn-cli new_key tun0 10 1 0 "$cipher" 1 $key
	ip -n a addr add 5.5.5.1/24 dev tun0
	ip -n b addr add 5.5.5.2/24 dev tun0
	ip -n a link set tun0 mtu "$mtu" up
	ip -n b link set tun0 mtu "$mtu" up
	on a ping -q -c 2 -i 0.2 -w 10 5.5.5.2 > /tmp/ping.log || {
		cat /tmp/ping.log
		die "no ping through the tunnel"
	}
}

# counters of what the stack sends outside: one skb may carry many records
outer_counter() {
	on "$1" nft -f - <<- END
	table inet outer {
		chain output {
			type filter hook output priority 0; policy accept;
			udp sport $PORT counter
		}
	}
	END
}

outer_skbs() {
	on "$1" nft list table inet outer | sed -n 's/.*counter packets \([0-9]*\).*/\1/p'
}

# records NS: ovpn packets that the peer statistics count as sent
records() {
	on "$1" ovpn-cli get_peer tun0 2>&1 | sed -n 's/.*LINK TX packets: *//p' | head -n 1
}

# batching NS: available|unavailable (a kernel without the series)
batching() {
	local f

	f=$(on "$1" ethtool -k tun0)
	if grep -q '^tx-checksumming: on' <<< "$f" && grep -q '^tcp-segmentation-offload: on' <<< "$f"; then
		echo available
	else
		echo unavailable
	fi
}

# set_batching on|off: the standard switches, in both namespaces, and checked
set_batching() {
	local ns want=unavailable

	[ "$1" = off ] || want=available
	for ns in a b; do
		on $ns ethtool -K tun0 tx "$1" tso "$1" gso "$1" tx-udp-segmentation "$1"
		[ "$(batching $ns)" = $want ] || {
			on $ns ethtool -k tun0 | grep -E 'checksum|segmentation'
			die "ethtool -K tun0 tx/tso/gso/tx-udp-segmentation $1 had no effect in $ns"
		}
	done
}

# counters NS: "errors drops retransmits" since boot
counters() {
	local ns=$1

	{
		on "$ns" nstat -asz
		on "$ns" ip -j -s link show | jq -r '.[] | .stats64 |
			"LinkErrors \(.rx.errors + .tx.errors)\nLinkDrops \(.rx.dropped + .tx.dropped)"'
	} | awk '
		/InCsumErrors/ || $1 == "LinkErrors" { err += $2 }
		$1 ~ /^Udp6?InErrors$/ { err += $2 }
		# counted in UdpInErrors too: a full receive buffer is a drop
		$1 ~ /^Udp6?RcvbufErrors$/ { err -= $2; drop += $2 }
		# and so is a wrong checksum, which must not count twice
		$1 ~ /^Udp6?InCsumErrors$/ { err -= $2 }
		$1 ~ /^Ip6?(In|Out)Discards$/ || $1 ~ /ReasmFails$/ || $1 == "LinkDrops" { drop += $2 }
		$1 == "TcpRetransSegs" { re = $2 }
		END { printf "%d %d %d\n", err, drop, re }'
}

# idle_watch DELAY SECONDS FILE &: per cent of the time that the CPU was idle
idle_watch() {
	local a b

	sleep "$1"
	read -ra a < /proc/stat
	sleep "$2"
	read -ra b < /proc/stat
	awk -v a="${a[*]:1}" -v b="${b[*]:1}" 'BEGIN {
		n = split(a, x, " "); split(b, y, " ")
		for (i = 1; i <= n && i <= 8; i++)
			total += y[i] - x[i]
		printf "%.1f\n", (total ? 100 * (y[4] - x[4] + y[5] - x[5]) / total : 100)
	}' > "$3"
}

# insn_per_byte BPS
insn_per_byte() {
	awk -v bps="$1" -v ns="$NS_PER_INSN" 'BEGIN { printf "%.3f\n", (bps > 0 ? 8e9 / ns / bps : 0) }'
}
