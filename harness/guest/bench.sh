#!/bin/bash
# Inside the guest, with instruction counting: the rows of bench/rows. One JSON
# object a measurement goes to /mnt/out/bench.jsonl, what it ran on to
# /mnt/out/guest.json.
# usage: bench.sh SECONDS REPEATS NAME=SETUP=WORKLOAD...
#
# SETUP, its parts separated by colons:
#   tx CIPHER               one end, its underlay a dummy device: nothing comes back
#   pair CIPHER MTU [4|6]   two ends over a veth pair; IPv4 or IPv6 outside
#   tcp CIPHER MTU          the same with TCP transport
#   async CIPHER MTU        pair, with an asynchronous AES-GCM
#   forward CIPHER MTU      pair, and a network "c" behind a, from which traffic comes
#   wireguard MTU, plain    for reference, over the same veth pair
#   openvpn dco|user CIPHER MTU    OpenVPN 2.7 with its driver, or without
# WORKLOAD:
#   seg on|off|nocsum       UDP_SEGMENT, 45 x 1380 bytes a call; what the underlay offloads
#   udp SIZE                one datagram a call
#   burst slab|total        kernel memory per payload byte of what is queued below
#   tcp on|off [ARG]        iperf3, UDP segmentation of the underlay on or off
#   iudp on|off             iperf3 with UDP, 1380 bytes
#   rr SIZE PERCENTILE      round trip of a datagram, in instructions
#   profile on|off          tcp with perf: each sample with its call chain goes to
#                           /mnt/out/NAME.perf, for bench/profile.awk

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=openvpn.sh
. "$(dirname "${BASH_SOURCE[0]}")/openvpn.sh"

HERE=$(dirname "${BASH_SOURCE[0]}")
OUT=/mnt/out/bench.jsonl
UDP_LEN=1380
SEGS=45
BURST_CALLS=200
RR_COUNT=5000

# where the traffic comes from, and goes to
FROM='' TO='' ADDR=''
# of the row
NAME=''

# --- setups ---------------------------------------------------------------

setup_tx() {
	ip netns add a
	ip -n a link set lo up
	ip -n a link add veth0 type dummy
	ip -n a addr add "$(outer_addr a 4)/24" dev veth0
	ip -n a link set veth0 mtu 1500 up
	ip -n a neigh add "$(outer_addr b 4)" lladdr 02:00:00:00:00:02 dev veth0 nud permanent
	tunnel_end a "$1" 1408
	FROM=a TO='' ADDR=5.5.5.2
}

setup_pair() {
	pair_up 1500
	tunnel_up "$@"
	FROM=a TO=b ADDR=5.5.5.2
}

setup_tcp() {
	pair_up 1500
	tunnel_up_tcp "$@"
	FROM=a TO=b ADDR=5.5.5.2
}

# an algorithm stays until its keys are gone: such rows have a guest of their own
setup_async() {
	"$SELFTESTS/net/ovpn/gso-cryptd.py" add > /tmp/cryptd.log
	setup_pair "$@"
	[[ $(aead 'gcm(aes)') == cryptd* ]] || die "the key did not get the asynchronous AES-GCM"
}

# packets come in from c as they are on a wire, and a's NAPI is woken as by a NIC
# that coalesces interrupts: every 50 us
setup_forward() {
	setup_pair "$@"
	ip netns add c
	ip link add lan netns a type veth peer name lan netns c
	ip -n a addr add 10.20.0.1/24 dev lan
	ip -n c addr add 10.20.0.2/24 dev lan
	ip -n c link set lo up
	ip -n a link set lan mtu "$2" up
	ip -n c link set lan mtu "$2" up
	ip -n c route add default via 10.20.0.1
	ip -n b route add 10.20.0.0/24 dev tun0
	on a sysctl -qw net.ipv4.ip_forward=1
	on c ethtool -K lan tso off gso off tx-udp-segmentation off tx off
	on a ethtool -K lan gro on rx-udp-gro-forwarding on
	on a sh -c 'echo 50000 > /sys/class/net/lan/gro_flush_timeout; echo 2 > /sys/class/net/lan/napi_defer_hard_irqs'
	FROM=c TO=b ADDR=5.5.5.2
}

setup_plain() {
	pair_up 1500
	FROM=a TO=b ADDR=10.10.1.2
}

setup_wireguard() {
	local mtu=$1 ns peer n=1

	pair_up 1500
	for ns in a b; do
		(umask 077; wg genkey > /tmp/wg.$ns)
		ip -n $ns link add wg0 type wireguard
	done
	for ns in a b; do
		peer=b
		[ $ns = a ] || peer=a
		on $ns wg set wg0 listen-port 51820 private-key /tmp/wg.$ns \
			peer "$(wg pubkey < /tmp/wg.$peer)" allowed-ips 5.5.5.0/24 endpoint "$(outer_addr $peer 4):51820"
		ip -n $ns addr add 5.5.5.$n/24 dev wg0
		ip -n $ns link set wg0 mtu "$mtu" up
		n=$((n + 1))
	done
	tunnel_ping
	FROM=a TO=b ADDR=5.5.5.2
}

setup_openvpn() {
	local mode=$1 cipher=$2 mtu=$3

	pair_up 1500
	[ -e /tmp/server.fp ] || openvpn_certificates
	openvpn_pair "$mode" "$mode" "$cipher" --tun-mtu "$mtu"
	openvpn_handshake "$cipher" || die "OpenVPN did not connect"
	FROM=a TO=b ADDR=10.8.0.2
	on a ping -q -c 2 -i 0.2 -w 10 "$ADDR" > /dev/null || die "no ping through OpenVPN's tunnel"
}

teardown() {
	local ns

	openvpn_stop
	for ns in $(ip netns list | awk '{ print $1 }'); do
		ip netns pids "$ns" | xargs -r kill 2> /dev/null || true
		ip netns del "$ns"
	done
}

CURRENT=''
# set_up SETUP: unless it stands already
set_up() {
	local part

	[ "$CURRENT" != "$1" ] || return 0
	teardown
	IFS=: read -ra part <<< "$1"
	"setup_${part[0]}" "${part[@]:1}"
	CURRENT=$1
	warm_up
	say "$1: $(aead 'gcm(aes)')"
}

# servers where there is somebody to receive, and each program once for real
warm_up() {
	if [ -z "$TO" ]; then
		warm busy 0 0.01 "$FROM" udpgso_bench_tx -4 -D "$ADDR" -p 8000 -s $((SEGS * UDP_LEN)) -S $UDP_LEN -M 10 -l 1 -a
		return
	fi
	on "$TO" iperf3 -s -D
	[ ! -x /tmp/bin/rr ] || on "$TO" rr server 7000 > /tmp/rr.log 2>&1 &
	until on "$TO" ss -Hltn 'sport = :5201' | grep -q .; do sleep 0.1; done
	warm busy 0 0.01 "$FROM" iperf3 -c "$ADDR" -Z -J -n 1M
}

# offload on|off|nocsum: of the underlay, in both namespaces
offload() {
	local ns

	for ns in a ${TO:+b}; do
		case $1 in
		on) on "$ns" ethtool -K veth0 tx on tso on tx-udp-segmentation on ;;
		off) on "$ns" ethtool -K veth0 tx on tso on tx-udp-segmentation off ;;
		nocsum) on "$ns" ethtool -K veth0 tx off ;;
		*) die "offload $1?" ;;
		esac > /dev/null
	done
}

# --- workloads: each sets VALUE, UNIT and RAW, what the program said ----------

# bench_tx PAYLOAD [ARG]...: SECS of udpgso_bench_tx. Bytes by the exact time, in
# ms, that it took.
bench_tx() {
	local payload=$1

	shift
	busy 2000000 "$(awk -v s="$SECS" 'BEGIN { print s * 0.7 }')" "$FROM" udpgso_bench_tx -4 -D "$ADDR" -p 8000 -s "$payload" -l "$SECS" -a "$@" 2> /tmp/tx.log ||
		{ cat /tmp/tx.log; return 1; }
	RAW=$(grep -A 1 ^Summary /tmp/tx.log)
	UNIT=instructions/byte
	VALUE=$(awk -v payload="$payload" -v ns="$NS_PER_INSN" '
		/^Summary/ { ms = $3 * 1000 }
		/^sum/ { for (i = 2; i <= NF; i++) if ($i == "msgs") msgs = $(i - 1) }
		END { if (!msgs) exit 1; printf "%.4f\n", ms * 1e6 / ns / (msgs * payload) }' <<< "$RAW")
}

workload_seg() {
	offload "$1"
	bench_tx $((SEGS * UDP_LEN)) -S $UDP_LEN
}

workload_udp() {
	offload on
	bench_tx "$1"
}

# meminfo NAME: bytes
meminfo() { awk -v n="$1:" '$1 == n { printf "%d\n", $2 * 1024 }' /proc/meminfo; }

# all that is sent stays in a queue below, and so does its memory
workload_burst() {
	local bytes=$((BURST_CALLS * SEGS * UDP_LEN)) slab free

	offload on
	sysctl -qw net.core.wmem_default=$((64 << 20))
	on a tc qdisc replace dev veth0 root netem limit 1000000 delay 1000s
	sync
	echo 3 > /proc/sys/vm/drop_caches
	slab=$(meminfo Slab) free=$(meminfo MemFree)
	on "$FROM" udpgso_bench_tx -4 -D "$ADDR" -p 8000 -s $((SEGS * UDP_LEN)) -S $UDP_LEN -M $BURST_CALLS -l 10 > /tmp/tx.log 2>&1
	slab=$(($(meminfo Slab) - slab)) free=$((free - $(meminfo MemFree)))
	RAW=$(on a tc -s qdisc show dev veth0 | tr -s '\n ' ' ')
	on a tc qdisc del dev veth0 root
	sysctl -qw net.core.wmem_default=212992
	UNIT=bytes/byte
	[ "$1" = slab ] || slab=$free
	VALUE=$(awk -v m="$slab" -v b=$bytes 'BEGIN { printf "%.4f\n", m / b }')
	RAW="$slab bytes for $bytes of payload; $RAW"
}

# iperf_row ARG...
iperf_row() {
	local bps

	bps=$(iperf "$FROM" "$ADDR" "$SECS" "$@") || return 1
	RAW=$(jq -c '.end | { sum_sent, sum_received, sum } | del(..|nulls)' /tmp/iperf.json)
	UNIT=instructions/byte
	VALUE=$(insn_per_byte "$bps")
}

workload_tcp() {
	local mode=$1

	shift
	offload "$mode"
	iperf_row "$@"
}

workload_iudp() {
	offload "$1"
	iperf_row -u -b 0 -l $UDP_LEN
}

# The clock is that of the instructions, so that cpu-clock samples every so many
# of them; not a round number, which could be in step with the traffic.
workload_profile() {
	offload "$1"
	perf record -q -a -g -e cpu-clock -F 4999 -o /tmp/perf.data -- true > /tmp/perf.log 2>&1 || { cat /tmp/perf.log; return 1; }
	rm -f /tmp/perf.data
	on "$FROM" perf record -q -a -g -e cpu-clock -F 4999 -m 512 -o /tmp/perf.data -- \
		iperf3 -c "$ADDR" -Z -t "$SECS" -J > /tmp/iperf.json 2> /tmp/perf.log || { cat /tmp/perf.log; return 1; }
	{
		echo "# receiver $(on "$TO" pgrep -o iperf3)"
		echo "# records $(records a) $(records b)"
		perf script -i /tmp/perf.data -F comm,pid,ip,sym 2> /dev/null
	} > "/mnt/out/$NAME.perf"
	UNIT=instructions/byte
	RAW=$(jq -c '.end | { sum_sent, sum_received }' /tmp/iperf.json)
	VALUE=$(insn_per_byte "$(jq '.end.sum_received.bits_per_second' /tmp/iperf.json)")
}

workload_rr() {
	local size=$1 percentile=$2

	offload on
	warm on "$FROM" rr client "$ADDR" 7000 "$size" 50
	busy 50000 0.05 "$FROM" rr client "$ADDR" 7000 "$size" $RR_COUNT > /tmp/rr.raw
	sort -n /tmp/rr.raw > /tmp/rr.out
	UNIT=instructions
	RAW="of $(wc -l < /tmp/rr.out): $(sed -n '1p;$p' /tmp/rr.out | tr '\n' ' ')"
	VALUE=$(awk -v p="$percentile" -v ns="$NS_PER_INSN" '{ v[NR] = $1 }
		END { i = int((NR * p + 99) / 100); printf "%d\n", v[i] / ns }' /tmp/rr.out)
}

# lost: "errors drops retransmits" of all namespaces
lost() {
	local ns

	for ns in a ${TO:+b}; do counters "$ns"; done | awk '{ e += $1; d += $2; r += $3 } END { print e, d, r }'
}

# measure NAME WORKLOAD REPEAT
measure() {
	local name=$1 part c0 c1

	NAME=$name
	IFS=: read -ra part <<< "$2"
	rm -f /tmp/idle /tmp/idle.ticks
	c0=$(lost)
	"workload_${part[0]}" "${part[@]:1}" || die "$name failed"
	c1=$(lost)
	jq -nc --arg name "$name" --argjson repeat "$3" --argjson value "$VALUE" --arg unit "$UNIT" \
		--argjson idle "$(cat /tmp/idle 2> /dev/null || echo null)" --arg raw "$RAW" --arg ticks "$(cat /tmp/idle.ticks 2> /dev/null)" --arg c0 "$c0" --arg c1 "$c1" '
		($c0 | split(" ") | map(tonumber)) as $a | ($c1 | split(" ") | map(tonumber)) as $b |
		{ name: $name, repeat: $repeat, value: $value, unit: $unit, idle_percent: $idle,
		  errors: ($b[0] - $a[0]), drops: ($b[1] - $a[1]), retransmits: ($b[2] - $a[2]), raw: $raw, cpu_ticks: ($ticks | split("\n") | map(select(. != ""))) }' |
		tee -a $OUT | jq -r '"  \(.name) \(.repeat): \(.value) \(.unit), idle \(.idle_percent // "-")%, \(.drops) drops, \(.retransmits) retransmits"'
}

# guest_facts: what the figures depend on besides the kernel
guest_facts() {
	jq -n --arg release "$(uname -r)" --arg version "$(uname -v)" --arg iperf3 "$(iperf3 --version | head -n 1)" \
		--arg openvpn "$(openvpn --version | head -n 1)" --arg ethtool "$(ethtool --version)" \
		--arg wg "$(wg --version | cut -d ' ' -f 1-2)" \
		--arg cpu "$(awk -F ': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)" \
		--arg aes "$AES" --arg chacha "$CHACHA" \
		'{ release: $release, version: $version, cpu: $cpu, iperf3: $iperf3, openvpn: $openvpn, ethtool: $ethtool,
		   wireguard_tools: $wg, aead: { "gcm(aes)": $aes, "rfc7539(chacha20,poly1305)": $chacha } }' > /mnt/out/guest.json
}

SECS=$1 REPEATS=$2
shift 2
: > $OUT
AES=$(aead 'gcm(aes)') CHACHA=$(aead 'rfc7539(chacha20,poly1305)')
guest_facts
sysctl -qw net.core.rmem_max=$((64 << 20)) net.core.rmem_default=$((16 << 20)) \
	net.core.wmem_max=$((4 << 20))
programs=(bash iperf3 jq nstat ip ss tc ethtool wg awk sed cat sort sysctl ping
	"$SELFTESTS/net/ovpn/ovpn-cli" "$SELFTESTS/net/udpgso_bench_tx")
if [[ " $* " == *=rr:* ]]; then
	gcc -O2 -Wall -o /tmp/rr "$HERE/rr.c"
	programs+=(/tmp/rr)
fi
[[ " $* " != *=profile:* ]] || programs+=(pgrep perf)
fast_programs "${programs[@]}"
trap openvpn_stop EXIT
for row in "$@"; do
	IFS='=' read -r name setup workload <<< "$row"
	set_up "$setup"
	for ((i = 1; i <= REPEATS; i++)); do
		measure "$name" "$workload" "$i"
	done
done
