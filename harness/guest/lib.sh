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
		[ "$p" -ef "/tmp/bin/${p##*/}" ] || cp "$p" /tmp/bin/
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

# outer_addr NS FAMILY
outer_addr() {
	local n=1

	[ "$1" = a ] || n=2
	if [ "$2" = 6 ]; then
		echo fd00:10::$n
	else
		echo 10.10.1.$n
	fi
}

# tunnel_end NS CIPHER MTU [FAMILY]: device, peer (1 in a, 10 in b), key and
# address of one end, over UDP
tunnel_end() {
	local ns=$1 cipher=$2 mtu=$3 family=${4:-4} id=1 tx_id=10 peer=b

	[ "$ns" = a ] || { id=10; tx_id=1; peer=a; }
	on "$ns" ovpn-cli new_iface tun0 P2P > /dev/null
	on "$ns" ovpn-cli new_peer tun0 $id $tx_id $PORT "$(outer_addr $peer "$family")" $PORT
	tunnel_key "$ns" "$cipher" "$mtu"
}

# tunnel_key NS CIPHER MTU: what is the same over UDP and TCP
tunnel_key() {
	local ns=$1 cipher=$2 mtu=$3 id=1 n=1

	[ "$ns" = a ] || { id=10; n=2; }
	# ovpn-cli reads it over and over: from tmpfs
	[ -e /tmp/data64.key ] || cp "$SELFTESTS/net/ovpn/data64.key" /tmp/
	on "$ns" ovpn-cli new_key tun0 $id 1 0 "$cipher" $((n - 1)) /tmp/data64.key
	ip -n "$ns" addr add 5.5.5.$n/24 dev tun0
	ip -n "$ns" link set tun0 mtu "$mtu" up
}

tunnel_ping() {
	on a ping -q -c 2 -i 0.2 -w 10 5.5.5.2 > /tmp/ping.log || {
		cat /tmp/ping.log
		die "no ping through the tunnel"
	}
}

# tunnel_up CIPHER MTU [FAMILY]: ovpn devices tun0 in a and b, 5.5.5.1 and .2
tunnel_up() {
	tunnel_end a "$@"
	tunnel_end b "$@"
	tunnel_ping
}

# tunnel_up_tcp CIPHER MTU: the same with TCP transport. Only a device with many
# peers listens, and it has to know what is behind them.
tunnel_up_tcp() {
	local pid ns

	echo '1 10 5.5.5.2' > /tmp/peers
	for ns in a b; do
		# records that find no room in the socket are lost
		on $ns sysctl -qw net.ipv4.tcp_wmem='4096 8388608 8388608'
	done
	on a ovpn-cli new_iface tun0 MP > /dev/null
	on b ovpn-cli new_iface tun0 P2P > /dev/null
	on a ovpn-cli listen tun0 $PORT ASYMM /tmp/peers > /tmp/listen.log 2>&1 & pid=$!
	until on a ss -Hltn "sport = :$PORT" | grep -q .; do sleep 0.1; done
	on b ovpn-cli connect tun0 10 1 10.10.1.1 $PORT > /tmp/connect.log 2>&1
	# it goes to the background with its peer
	wait $pid || { cat /tmp/listen.log /tmp/connect.log; die "no connection of the TCP transport"; }
	tunnel_key a "$1" "$2"
	tunnel_key b "$1" "$2"
	tunnel_ping
}

# aead NAME: the implementation that a new key gets
aead() {
	awk -v name="$1" -F ' *: ' '
		$1 == "name" { n = $2 } $1 == "driver" { d = $2 }
		$1 == "priority" && n == name && $2 + 0 > best { best = $2; driver = d }
		END { print driver }' /proc/crypto
}

# warm cmd...: once, so that nothing is read over 9p later
warm() {
	"$@" > /tmp/warm.log 2>&1 || { cat /tmp/warm.log; die "failed: $*"; }
}

# iperf FROM ADDRESS SECONDS [ARG]...: bit/s of received payload, in the guest's
# time, without the first second. All that iperf3 says: /tmp/iperf.json; how
# many per cent of it the CPU was idle: /tmp/idle.
iperf() {
	local from=$1 addr=$2 secs=$3

	shift 3
	# iperf3 warns on stderr of UDP payloads above the TCP MSS; these just fit
	busy 2000000 "$secs" "$from" iperf3 -c "$addr" -Z -t "$secs" -O 1 -J "$@" > /tmp/iperf.json 2> /tmp/iperf.err || {
		cat /tmp/iperf.err >&2
		jq -r '.error // empty' /tmp/iperf.json >&2
		return 1
	}
	jq -e '.end.sum_received.bits_per_second // .end.sum.bits_per_second' /tmp/iperf.json
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
		on $ns ethtool -K tun0 tx "$1" tso "$1" gso "$1" tx-udp-segmentation "$1" > /dev/null
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

# busy BYTES SECONDS NS cmd...: run it there; /tmp/idle gets for how many per cent
# of so many seconds the CPU was idle, from when so many bytes have been sent.
# Before that programs wait for the disk, and the clock jumps. "null" when the
# command had ended before that time was over.
busy() {
	local bytes=$1 secs=$2 ns=$3 rc=0

	shift 3
	[ -p /tmp/never ] || mkfifo /tmp/never
	rm -f /tmp/idle /tmp/idle.ticks
	# shellcheck disable=SC2016 # expanded by the inner shell
	on "$ns" bash -c '
		sent() {
			local f
			n=0
			while read -ra f; do
				[[ ${f[0]} != *: ]] || n=$((n + f[9]))
			done < /proc/net/dev
		}
		runs() { read -ra s 2> /dev/null < /proc/$pid/stat && [ "${s[2]}" != Z ]; }
		sent
		begin=$n
		"${@:3}" & pid=$!
		while runs && sent && [ $((n - begin)) -lt "$1" ]; do
			read -rt 0.01 _ <> /tmp/never
		done
		read -ra a < /proc/stat
		! runs || read -rt "$2" _ <> /tmp/never
		read -ra b < /proc/stat
		runs && printf "%s\n%s\n" "${a[*]:1:8}" "${b[*]:1:8}" > /tmp/idle.ticks
		wait $pid' bash "$bytes" "$secs" "$@" || rc=$?
	awk '{ for (i = 1; i <= NF; i++) total += NR == 1 ? -$i : $i
		idle += NR == 1 ? -$4 - $5 : $4 + $5 }
		END { if (total > 0) printf "%.1f\n", 100 * idle / total; else print "null" }' \
		"$([ -e /tmp/idle.ticks ] && echo /tmp/idle.ticks || echo /dev/null)" > /tmp/idle
	return $rc
}

# insn_per_byte BPS
insn_per_byte() {
	awk -v bps="$1" -v ns="$NS_PER_INSN" 'BEGIN { printf "%.3f\n", (bps > 0 ? 8e9 / ns / bps : 0) }'
}
