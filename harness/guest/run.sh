#!/bin/bash
# Inside the guest, with instruction counting: traffic through an ovpn tunnel
# between two namespaces, batching off and on. One JSON object a measurement goes
# to /mnt/out/run.jsonl.
# usage: run.sh SECONDS FROM TO      FROM, TO: a b, or b a

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SECS=$1 FROM=$2 TO=$3
MTU=1408
UDP_LEN=1380
BURST=$((45 * UDP_LEN))
OUT=/mnt/out/run.jsonl

# Each workload_NAME FROM ADDRESS SECONDS prints bit/s of payload, in the
# guest's time, without the first second.
workload_tcp() { iperf "$@"; }
workload_udp() { iperf "$@" -u -b 0 -l $UDP_LEN; }

workload_udp_segment() {
	local from=$1 addr=$2 secs=$3

	# one line a second: "udp tx: MB/s calls/s msg/s"; the first is dropped
	busy 2000000 "$secs" "$from" udpgso_bench_tx -4 -D "$addr" -p 8000 -s $BURST -S $UDP_LEN \
		-l $((secs + 1)) 2> /tmp/gso.log || { cat /tmp/gso.log >&2; return 1; }
	awk -v bits=$((BURST * 8)) '/ tx: / && n++ { s += $5 * bits }
		END { if (n < 2) exit 1; printf "%.0f\n", s / (n - 1) }' /tmp/gso.log
}

# measure WORKLOAD FROM TO MODE
measure() {
	local work=$1 from=$2 to=$3 mode=$4 secs=$SECS
	local addr=5.5.5.2 bps r0 r1 s0 s1 c0 c1 idle

	[ "$to" = b ] || addr=5.5.5.1
	r0=$(records "$from") s0=$(outer_skbs "$from")
	c0="$(counters "$from") $(counters "$to")"
	bps=$("workload_$work" "$from" "$addr" "$secs") || die "$work from $from to $to, batching $mode: failed"
	idle=$(cat /tmp/idle)
	r1=$(records "$from") s1=$(outer_skbs "$from")
	c1="$(counters "$from") $(counters "$to")"
	jq -nc --arg workload "$work" --arg from "$from" --arg to "$to" --arg batching "$mode" \
		--argjson bps "$bps" --argjson ipb "$(insn_per_byte "$bps")" --argjson idle "$idle" \
		--argjson records $((r1 - r0)) --argjson skbs $((s1 - s0)) \
		--arg c0 "$c0" --arg c1 "$c1" '
		($c0 | split(" ") | map(tonumber)) as $a | ($c1 | split(" ") | map(tonumber)) as $b |
		{ workload: $workload, from: $from, to: $to, batching: $batching,
		  bits_per_second: $bps, instructions_per_byte: $ipb, idle_percent: $idle,
		  records: $records, outer_skbs: $skbs,
		  errors: ($b[0] - $a[0] + $b[3] - $a[3]), drops: ($b[1] - $a[1] + $b[4] - $a[4]),
		  retransmits: ($b[2] - $a[2]) }' | tee -a $OUT |
		jq -r '"  \(.workload) \(.from) to \(.to), batching \(.batching): \(.instructions_per_byte) instructions/byte, \(.bits_per_second / 1e6 | round) Mbit/s, idle \(.idle_percent)%"'
}

measure_all() {
	local work

	for work in tcp udp udp_segment; do
		measure $work "$FROM" "$TO" "$1"
	done
}

: > $OUT
sysctl -qw net.core.rmem_max=$((64 << 20)) net.core.rmem_default=$((16 << 20)) \
	net.core.wmem_max=$((4 << 20))
fast_programs bash iperf3 jq nft nstat ip ethtool awk sed cat \
	"$SELFTESTS/net/ovpn/ovpn-cli" "$SELFTESTS/net/udpgso_bench_tx" "$SELFTESTS/net/udpgso_bench_rx"
pair_up 1500
tunnel_up aes $MTU
for ns in a b; do
	outer_counter $ns
	on $ns iperf3 -s -D
	on $ns udpgso_bench_rx -4 -p 8000 > /dev/null 2>&1 &
done
sleep 0.5
say "tunnel up: $(aead 'gcm(aes)'), tunnel MTU $MTU, kernel $(uname -r)"

# each program once, so that nothing is read over 9p later
to=5.5.5.2
[ "$TO" = b ] || to=5.5.5.1
warm on "$FROM" iperf3 -c $to -Z -n 1M
warm on "$FROM" iperf3 -c $to -Z -u -b 0 -l $UDP_LEN -n 1M
warm on "$FROM" udpgso_bench_tx -4 -D $to -p 8000 -s $BURST -S $UDP_LEN -M 10 -l 1
records "$FROM" > /dev/null

if [ "$(batching "$FROM")" = unavailable ]; then
	say "batching is not available: this kernel's ovpn does not advertise checksum offload"
	measure_all unavailable
else
	set_batching off
	measure_all off
	set_batching on
	measure_all on
fi
