#!/bin/bash
# usage: run.sh [SECONDS]
# From nothing to traffic: base kernel, series, kernel image, guest root; then an
# ovpn tunnel between two namespaces of a guest and TCP and UDP through it both
# ways, batching off against on. Prints a table; the same as JSON in
# $LOGS/run.json. SECONDS (default 3) is the guest's time for each row.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=prepare.sh
. "$TOP/harness/prepare.sh"

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
-*) die "unknown option $1; next: run.sh --help" ;;
esac

table() {
	jq -r '
		def round_to(n): . * pow(10; n) | round / pow(10; n);
		def name: { tcp: "TCP", udp: "UDP 1380", udp_segment: "UDP_SEGMENT 45x1380" }[.];
		(map(select(.batching != "on") | { key: (.workload + .from), value: .instructions_per_byte })
			| from_entries) as $off |
		["workload", "direction", "batching", "Mbit/s", "instr/byte", "change", "records",
		 "skbs sent", "records/skb", "retrans", "errors", "drops", "idle %"],
		(sort_by([.workload, .from, .batching])[] |
		 $off[.workload + .from] as $base |
		 [(.workload | name), "\(.from) to \(.to)", .batching, (.bits_per_second / 1e6 | round),
		  (.instructions_per_byte | round_to(2)),
		  (if .batching == "on" then "\((.instructions_per_byte / $base - 1) * 100 | round_to(1))%" else "" end),
		  .records, .outer_skbs, (.records / ([.outer_skbs, 1] | max) | round_to(1)),
		  .retransmits, .errors, .drops, .idle_percent]) | map(tostring) | join("\t")' "$1" |
		awk -F '\t' '
		{ for (i = 1; i <= NF; i++) { c[NR, i] = $i; if (length($i) > w[i]) w[i] = length($i) } }
		END { for (r = 1; r <= NR; r++) { line = ""
			for (i = 1; i <= NF; i++)
				line = line sprintf(i <= 3 ? "%-*s  " : "%*s  ", w[i], c[r, i])
			print line } }'
}

secs=${1:-3}
prepare run 1
need_cmd jq jq
OUT=$LOGS/run
rm -rf "$OUT" "$LOGS/run.json"
mkdir -p "$OUT"

# a guest for each direction, side by side: what else runs on this machine, and
# how fast it is, makes no difference to a count of instructions
directions=(a:b b:a)
pids=()
trap '[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2> /dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
step "traffic in two guests, one a direction (about $((secs + 2)) min; $OUT/*/guest.log)"
begin=$SECONDS
for d in "${directions[@]}"; do
	mkdir -p "$OUT/${d/:/-}"
	"$TOP/harness/vm.sh" --icount --mem 1500M --timeout 1800 --image "$IMG" \
		--ro "stage=$STAGE" --rw "out=$OUT/${d/:/-}" --log "$OUT/${d/:/-}/guest.log" \
		-- bash /mnt/harness/guest/run.sh "$secs" "${d%:*}" "${d#*:}" &
	pids+=($!)
done
failed=0
for p in "${pids[@]}"; do
	wait "$p" || failed=$?
done
pids=()
[ "$failed" -eq 0 ] || die "a guest ended with status $failed; next: read $OUT/*/guest.log and .console"
cat "$OUT"/*/run.jsonl > "$OUT/run.jsonl"
jq -s . "$OUT/run.jsonl" > "$LOGS/run.json"
say "done in $((SECONDS - begin)) s; as JSON: $LOGS/run.json"

cat <<- END

	ovpn tunnel over a veth pair, AES-256-GCM, tunnel MTU 1408, both ends on one CPU
	whose clock advances 1 ns per instruction; "skbs sent" is what the outer output
	hook saw, "records" the ovpn packets in them

END
table "$LOGS/run.json"
echo

bad=$(jq '[.[].errors] | add' "$LOGS/run.json")
idle=$(jq '[.[].idle_percent] | max' "$LOGS/run.json")
jq -e 'map(.idle_percent) | max < 2' "$LOGS/run.json" > /dev/null ||
	warn "the CPU was idle for up to $idle% of a row: its instructions per byte are too high; run again"
if jq -e 'all(.[]; .batching == "unavailable")' "$LOGS/run.json" > /dev/null; then
	say "batching is not available: this kernel's ovpn does not advertise checksum offload (no series in it?)"
elif jq -e 'all(.[] | select(.batching == "on" and .workload != "udp"); .records < 2 * .outer_skbs)' "$LOGS/run.json" > /dev/null; then
	say "bursts reach ovpn whole, but records are sent one by one: this kernel does not make aggregates"
fi
[ "$bad" -eq 0 ] || die "$bad packet errors in the guest; next: read $OUT/*/guest.log and $LOGS/run.json"
