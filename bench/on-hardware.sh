#!/bin/bash
# usage: on-hardware.sh receive
#        on-hardware.sh run ADDRESS [--lower DEVICE] [--rounds N] [--seconds N] [--out FILE]
#        on-hardware.sh report FILE...
#        on-hardware.sh rehearse [--rounds N] [--seconds N] [--out FILE]
# Cycles and instructions per byte of an ovpn tunnel between two real hosts;
# bench/on-hardware.md says how. "run" measures on this host: TCP to and from
# ADDRESS, which is inside the tunnel, batching on and off, UDP segmentation of the
# lower device on and off, one after another and round by round, so that what
# changes slowly (heat, other load) meets all alike. One JSON object a measurement is
# added to FILE (default on-hardware.jsonl). "report" prints medians of the files
# of one or more kernels. "rehearse" does the same between two namespaces of this
# machine; it needs a kernel with ovpn, and the selftests' ovpn-cli in $PATH or
# $OVPN_CLI. Its figures tell nothing.

set -euo pipefail

ROUNDS=5 SECS=10 OUT=on-hardware.jsonl
TUNNEL='' LOWER='' SAVED=()
# a command that enters the namespace of a rehearsal
ENTER=()

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

need() {
	local c

	for c in "$@"; do
		command -v "$c" > /dev/null || die "$c is missing; next: install it"
	done
}

here() { "${ENTER[@]}" "$@"; }

# devices ADDRESS: TUNNEL, which has to be of kind ovpn, and LOWER, below it
devices() {
	local remote

	TUNNEL=$(here ip -j route get "$1" | jq -r '.[0].dev')
	[ "$(here ip -j -d link show "$TUNNEL" | jq -r '.[0].linkinfo.info_kind')" = ovpn ] ||
		die "$1 is reached by $TUNNEL, which is no ovpn device; next: is the tunnel up, without --disable-dco?"
	[ -n "$LOWER" ] && return
	# no tool prints a peer's address: of the transport socket, or by --lower
	remote=$(here ss -Hun state established 2> /dev/null | awk 'NR == 1 { sub(/:[0-9]+$/, "", $NF); print $NF }')
	[ -z "$remote" ] || LOWER=$(here ip -j route get "$remote" | jq -r '.[0].dev')
	[ -n "$LOWER" ] || die "the device below $TUNNEL is not known; next: name it with --lower DEVICE"
}

feature() { here ethtool -k "$1" | awk -v f="$2:" '$1 == f { print $2 }'; }

# remember, and put back when this ends however it ends
remember() {
	local d f

	for d in "$TUNNEL" "$LOWER"; do
		for f in tx-udp-segmentation tcp-segmentation-offload generic-segmentation-offload; do
			SAVED+=("$d $f $(feature "$d" "$f")")
		done
	done
	SAVED+=("$TUNNEL tx $(feature "$TUNNEL" tx-checksumming)")
}

restore() {
	local s

	for s in "${SAVED[@]}"; do
		# shellcheck disable=SC2086 # device, feature, value
		here ethtool -K $s > /dev/null 2>&1 || true
	done
}

# set_mode BATCHING SEGMENTATION: false where the kernel or device has none
set_mode() {
	here ethtool -K "$TUNNEL" tx "$1" tso "$1" gso "$1" tx-udp-segmentation "$1" > /dev/null 2>&1 || true
	here ethtool -K "$LOWER" tx-udp-segmentation "$2" > /dev/null 2>&1 || true
	[ "$(feature "$TUNNEL" tx-udp-segmentation)" = "$1" ] && [ "$(feature "$LOWER" tx-udp-segmentation)" = "$2" ]
}

# measure ADDRESS DIRECTION BATCHING SEGMENTATION ROUND
measure() {
	local addr=$1 direction=$2 batching=$3 segmentation=$4 round=$5 tmp reverse=()

	tmp=$(mktemp -d)
	[ "$direction" = send ] || reverse=(-R)
	# whole machine: softirqs and ksoftirqd belong to it
	here perf stat -a -x , -o "$tmp/perf" -e cycles,instructions,cpu-clock -- \
		iperf3 -c "$addr" -Z -t "$SECS" -J "${reverse[@]}" > "$tmp/iperf" || {
		jq -r '.error // empty' "$tmp/iperf" >&2
		rm -r "$tmp"
		die "iperf3 failed; next: is on-hardware.sh receive running on the other host?"
	}
	jq -c --rawfile perf "$tmp/perf" --arg kernel "$(uname -r)" --arg direction "$direction" --arg batching "$batching" \
		--arg segmentation "$segmentation" --argjson round "$round" --arg cpu "$(awk -F ': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)" \
		--arg lower "$(here ethtool -i "$LOWER" 2> /dev/null | sed -n 's/^driver: //p')" '
		($perf | split("\n") | map(split(",") | select(length > 2) | { key: .[2], value: (.[0] | tonumber? // null) }) | from_entries) as $p
		| (if $direction == "send" then .end.sum_sent else .end.sum_received end) as $sum
		| { kernel: $kernel, cpu: $cpu, lower: $lower, round: $round, direction: $direction, batching: $batching,
		    segmentation: $segmentation, bytes: $sum.bytes, mbit_per_second: ($sum.bits_per_second / 1e6),
		    cycles: $p.cycles, instructions: $p.instructions, retransmits: .end.sum_sent.retransmits }
		| . + { cycles_per_byte: (if .cycles then .cycles / .bytes else null end),
			instructions_per_byte: (if .instructions then .instructions / .bytes else null end) }' "$tmp/iperf" |
		tee -a "$OUT" | jq -r '"round \(.round), \(.direction), batching \(.batching), segmentation \(.segmentation): \(.mbit_per_second | round) Mbit/s, \(.cycles_per_byte // "no") cycles/byte, \(.instructions_per_byte // "no") instructions/byte"'
	rm -r "$tmp"
}

run() {
	local addr=$1 round direction batching segmentation

	need iperf3 jq perf ethtool ip
	devices "$addr"
	say "tunnel $TUNNEL, lower device $LOWER, kernel $(uname -r): $ROUNDS rounds of 8 times $SECS s, to $OUT"
	remember
	trap restore EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	for ((round = 1; round <= ROUNDS; round++)); do
		for segmentation in on off; do
			for batching in on off; do
				set_mode $batching $segmentation || {
					[ "$round" -gt 1 ] || say "batching $batching, segmentation $segmentation: not available here, left out"
					continue
				}
				for direction in send receive; do
					measure "$addr" $direction $batching $segmentation $round
				done
			done
		done
	done
	report "$OUT"
}

report() {
	need jq
	jq -rs '
		def median: map(numbers) | sort | if length > 0 then .[length / 2 | floor] else null end;
		def spread: map(numbers) | if length > 0 and min > 0 then (max / min - 1) * 100 | round else null end;
		def show: if . == null then "-" else . * 100 | round / 100 | tostring end;
		["kernel", "this host", "batching", "segmentation", "rounds", "Mbit/s", "cycles/B", "spread %", "instr/B", "spread %", "retrans"],
		(group_by([.kernel, .direction, .segmentation, .batching])[] |
		 [.[0].kernel, .[0].direction + "s", .[0].batching, .[0].segmentation, (length | tostring),
		  (map(.mbit_per_second) | median | round | tostring),
		  (map(.cycles_per_byte) | median | show), (map(.cycles_per_byte) | spread | show),
		  (map(.instructions_per_byte) | median | show), (map(.instructions_per_byte) | spread | show),
		  (map(.retransmits // 0) | add | tostring)]) | @tsv' "$@" | column -t -s $'\t'
}

# rehearse: two namespaces, joined by a veth pair, a tunnel between them
rehearse() {
	local cli=${OVPN_CLI:-ovpn-cli} dir ns n=1

	need "$cli" iperf3 jq perf ethtool ip
	dir=$(mktemp -d)
	trap 'ip netns pids ovpn-hw1 2> /dev/null | xargs -r kill 2> /dev/null; ip netns del ovpn-hw1 2> /dev/null; ip netns del ovpn-hw2 2> /dev/null; rm -rf "$dir"' EXIT
	ip netns add ovpn-hw1
	ip netns add ovpn-hw2
	ip link add lower netns ovpn-hw1 type veth peer name lower netns ovpn-hw2
	head -c 256 /dev/urandom | base64 -w 0 > "$dir/key"
	for ns in ovpn-hw1 ovpn-hw2; do
		ip -n $ns addr add 10.90.0.$n/24 dev lower
		ip -n $ns link set lower up
		ip netns exec $ns "$cli" new_iface tun0 P2P > /dev/null
		ip netns exec $ns "$cli" new_peer tun0 $n $((3 - n)) 1194 10.90.0.$((3 - n)) 1194
		ip netns exec $ns "$cli" new_key tun0 $n 1 0 aes $((n - 1)) "$dir/key"
		ip -n $ns addr add 10.91.0.$n/24 dev tun0
		ip -n $ns link set tun0 mtu 1408 up
		n=$((n + 1))
	done
	ip netns exec ovpn-hw2 iperf3 -s -D
	sleep 1
	ENTER=(ip netns exec ovpn-hw1) LOWER=lower
	# "run" puts the devices back, which are gone with their namespaces
	(run 10.91.0.2)
	ip netns pids ovpn-hw2 | xargs -r kill 2> /dev/null || true
	say "that was a rehearsal: both ends on one machine, figures without a meaning"
}

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
receive)
	need iperf3
	exec iperf3 -s
	;;
report)
	[ $# -ge 2 ] || die "report needs a file; next: on-hardware.sh -h"
	shift
	report "$@"
	exit
	;;
run|rehearse) ;;
*) die "unknown command '${1:-}'; next: on-hardware.sh -h" ;;
esac
[ "$(id -u)" -eq 0 ] || die "must run as root (ethtool, perf); next: sudo $0 $*"
what=$1 addr=''
shift
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) ROUNDS=${2:?}; shift 2 ;;
	--seconds) SECS=${2:?}; shift 2 ;;
	--out) OUT=${2:?}; shift 2 ;;
	--lower) LOWER=${2:?}; shift 2 ;;
	-*) die "unknown option $1; next: on-hardware.sh -h" ;;
	*) addr=$1; shift ;;
	esac
done
if [ "$what" = rehearse ]; then
	rehearse
else
	[ -n "$addr" ] || die "run needs the address of the other host inside the tunnel; next: on-hardware.sh -h"
	run "$addr"
fi
