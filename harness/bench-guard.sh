#!/bin/bash
# usage: bench-guard.sh
# Measure the QUICK rows of the series, and fail when one takes more than 3%
# more instructions than docs/results/quick.json says. Skipped where those figures
# do not apply: another base, kernel configuration, compiler, emulator or guest.
# Results: $LOGS/results/bench-guard.tap.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=prepare.sh
. "$TOP/harness/prepare.sh"
# shellcheck source=guest/tap.sh
. "$TOP/harness/guest/tap.sh"

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
'') ;;
*) die "unknown argument $1; next: bench-guard.sh --help" ;;
esac

COMMITTED=$TOP/docs/results/quick.json
LIMIT_PERCENT=3
OUT=$LOGS/bench-guard

# measure [ROW]...: $OUT/N/bench-quick.json
measure() {
	local n=$1 rows

	shift
	rows=$(IFS='|'; echo "$*")
	LOGS=$OUT/$n QUICK=1 BENCH_KERNELS=series "$TOP/harness/bench.sh" ${rows:+--rows "^($rows)\$"}
}

# differences: what of that which the figures depend on is not as it was
differences() {
	jq -rn --slurpfile a "$COMMITTED" --slurpfile b "$1" '
		def relevant: .environment | { base, config, compiler, qemu, seconds, cpu, iperf3, aes: .aead["gcm(aes)"] };
		($a[0] | relevant) as $a | ($b[0] | relevant) as $b
		| [ $a | keys[] | select($a[.] != $b[.]) | "\(.): \($a[.]) then, \($b[.]) now" ] | join("; ")'
}

# compare FILE: "row then now per-cent idle unit" of each row that is in both
compare() {
	jq -rn --slurpfile a "$COMMITTED" --slurpfile b "$1" '
		($a[0].rows | map({ key: .name, value: .kernels.series.median }) | from_entries) as $was
		| $b[0].rows[] | select($was[.name])
		| [.name, $was[.name], .kernels.series.median, (.kernels.series.median / $was[.name] - 1) * 100,
		   .kernels.series.idle_percent, .unit] | @tsv'
}

over() { awk -F '\t' -v l=$LIMIT_PERCENT '$4 > l { print $1 }' "$1"; }

[ -s "$COMMITTED" ] || die "no $COMMITTED; next: make bench QUICK=1, then harness/bench.sh --commit-results"
prepare run 1
rm -rf "$OUT"
mkdir -p "$OUT"
tap_begin "$LOGS/results/bench-guard.tap" bench-guard
step "the QUICK rows of the series against docs/results/quick.json"
measure 1
why=$(differences "$OUT/1/bench-quick.json")
if [ -n "$why" ]; then
	tap_case skip "instructions per byte" "the committed figures are of something else: $why"
	tap_end
	exit
fi
compare "$OUT/1/bench-quick.json" > "$OUT/rows"
mapfile -t again < <(over "$OUT/rows")
if [ ${#again[@]} -gt 0 ]; then
	# idle time counts as instructions: not twice in a row
	say "more than $LIMIT_PERCENT% over, measured again: ${again[*]}"
	measure 2 "${again[@]}"
	compare "$OUT/2/bench-quick.json" > "$OUT/rows.2"
	awk -F '\t' 'NR == FNR { better[$1] = $0; next }
		$1 in better { split(better[$1], b, "\t"); if (b[4] < $4) $0 = better[$1] } { print }' "$OUT/rows.2" "$OUT/rows" > "$OUT/rows.new"
	mv "$OUT/rows.new" "$OUT/rows"
fi
[ -s "$OUT/rows" ] || tap_case not "a row was compared" "log: $OUT/1/bench-quick.json has none of the committed rows"
while IFS=$'\t' read -r name was now percent idle unit; do
	figures=$(printf '%.2f %s, committed %.2f: %+.1f%%, idle %s%%' "$now" "$unit" "$was" "$percent" "$idle")
	say "$name: $figures"
	if awk -v p="$percent" -v l=$LIMIT_PERCENT 'BEGIN { exit !(p > l) }'; then
		tap_case not "$name" "$figures; limit +$LIMIT_PERCENT%; next: make bench QUICK=1 ($OUT)"
	else
		tap_case ok "$name"
	fi
done < "$OUT/rows"
tap_end
