#!/bin/bash
# usage: kselftest.sh [--config run|debug] [--guests N] [TEST]...
# Run the kernel's ovpn selftests (all of net/ovpn, or those named, such as
# test-mark.sh) in guests side by side. Results: $LOGS/results/kselftest.tap,
# each test's output in $LOGS/kselftest/.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=prepare.sh
. "$TOP/harness/prepare.sh"
# shellcheck source=guest/tap.sh
. "$TOP/harness/guest/tap.sh"

config=run guests=2
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
	--config) config=${2:?}; shift 2 ;;
	--guests) guests=${2:?}; shift 2 ;;
	-*) die "unknown option $1; next: kselftest.sh --help" ;;
	*) break ;;
	esac
done
# one test may take this long; the guest's own limit is the sum of its tests
limit=900 mem=2G
[ "$config" = run ] || limit=1500 mem=3G

prepare "$config" 1
DIR=$STAGE/tools/testing/selftests/net/ovpn
OUT=$LOGS/kselftest
DURATIONS=$CACHE/kselftest-seconds

# the tests that the Makefile runs
listed() {
	sed -n '/^TEST_PROGS/,/end of TEST_PROGS/s/^[[:space:]]*\([^[:space:]]*\.sh\).*/\1/p' "$DIR/Makefile"
}

# seconds TEST: as of its last run here, or a guess
seconds() {
	awk -v k="$config $1" '$1 " " $2 == k { s = $3 } END { print s ? s : 130 }' "$DURATIONS" 2> /dev/null || echo 130
}

# share N TEST...: "GUEST TEST" a line; the longest first, each to the guest with least to do
share() {
	local n=$1 t

	shift
	for t in "$@"; do
		printf '%s %s\n' "$(seconds "$t")" "$t"
	done | sort -k1,1nr -k2 | awk -v n="$n" '{
		g = 1
		for (i = 2; i <= n; i++)
			if (sum[i] + 0 < sum[g] + 0)
				g = i
		sum[g] += $1
		print g, $2
	}'
}

# collect TEST DIR: its cases, and what only the harness sees
collect() {
	local t=$1 dir=$2 log=$2/$1.log rc secs plan n line desc reason

	if [ ! -e "$dir/$t.rc" ]; then
		tap_case not "$t: did not end" "log: $log"$'\n'"$(tail -n 20 "$log" 2>&1)"
		return
	fi
	read -r rc secs < "$dir/$t.rc"
	printf '%s %s %s\n' "$config" "$t" "$secs" >> "$DURATIONS"
	plan=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$log" | head -n 1)
	n=$(grep -cE '^(not )?ok [0-9]+' "$log" || true)
	while read -r line; do
		desc=$(sed -E 's/^(not )?ok [0-9]+ *(- )?//; s/ *# *(SKIP|XFAIL).*//' <<< "$line")
		case $line in
		*'# SKIP'*)
			reason=${line#*# SKIP}
			tap_case skip "$t: $desc" "${reason# }"
			;;
		'ok '*) tap_case ok "$t: $desc" ;;
		*) tap_case not "$t: $desc" "log: $log"$'\n'"$(grep -vE '^(ok|1\.\.)' "$log" | tail -n 20)" ;;
		esac
	done < <(grep -E '^(not )?ok [0-9]+' "$log" || true)
	if [ "$rc" -eq 4 ] && [ "$n" -eq 0 ]; then
		tap_case skip "$t" "$(sed -n 's/.*SKIP:\? *//p' "$log" | tail -n 1)"
	elif [ "$rc" -ne 0 ] && [ "$rc" -ne 4 ] && ! grep -q '^not ok' "$log"; then
		tap_case not "$t: exit status $rc" "log: $log"$'\n'"$(tail -n 20 "$log")"
	elif [ "$n" -ne "${plan:-0}" ] || [ "$n" -eq 0 ]; then
		tap_case not "$t: $n of ${plan:-no} planned cases ran" "log: $log"
	fi
	[ ! -s "$dir/$t.dmesg" ] ||
		tap_case not "$t: the kernel reported a problem" "log: $dir/$t.dmesg"$'\n'"$(head -n 30 "$dir/$t.dmesg")"
}

tests=("$@")
unlisted=()
if [ ${#tests[@]} -eq 0 ]; then
	mapfile -t tests < <(listed)
	[ ${#tests[@]} -gt 0 ] || die "no TEST_PROGS in $DIR/Makefile; next: look at it"
	mapfile -t unlisted < <(cd "$DIR" && for t in test*.sh; do listed | grep -qx "$t" || echo "$t"; done)
fi
for t in "${tests[@]}"; do
	[ -x "$DIR/$t" ] || die "no test $t; next: one of $(listed | tr '\n' ' ')"
done
[ "$guests" -le ${#tests[@]} ] || guests=${#tests[@]}

rm -rf "$OUT"
tap_begin "$LOGS/results/kselftest.tap" kselftest
shares=$(share "$guests" "${tests[@]}")
pids=() status=()
trap '[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2> /dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

step "${#tests[@]} tests in $guests guests, kernel configuration $config"
for ((g = 1; g <= guests; g++)); do
	mapfile -t mine < <(awk -v g="$g" '$1 == g { print $2 }' <<< "$shares")
	mkdir -p "$OUT/guest$g"
	"$TOP/harness/vm.sh" --cpus 2 --mem "$mem" --timeout $((120 + limit * ${#mine[@]})) --image "$IMG" \
		--ro "stage=$STAGE" --rw "out=$OUT/guest$g" --log "$OUT/guest$g.log" \
		-- bash /mnt/harness/guest/kselftest.sh "$limit" "${mine[@]}" &
	pids+=($!)
done
for p in "${pids[@]}"; do
	rc=0
	wait "$p" || rc=$?
	status+=("$rc")
done
pids=()

while read -r g t; do
	[ ! -e "$OUT/guest$g/$t.log.1" ] ||
		say "$t failed at first: $(grep -hm 1 '^not ok' "$OUT/guest$g/$t.log.1" || echo 'no verdict') ($OUT/guest$g/$t.log.1)"
	collect "$t" "$OUT/guest$g"
done < <(sort -k2 <<< "$shares")
for t in "${unlisted[@]}"; do
	tap_case not "$t: listed in TEST_PROGS" "$DIR/Makefile does not name it"
done
for ((g = 1; g <= guests; g++)); do
	rc=${status[g - 1]}
	[ "$rc" -eq 0 ] ||
		tap_case not "guest $g: ended with status $rc" "log: $OUT/guest$g.log and .console"$'\n'"$(tail -n 40 "$OUT/guest$g.log")"
done
[ ! -e "$DURATIONS" ] || { tail -n 200 "$DURATIONS" > "$DURATIONS.new" && mv "$DURATIONS.new" "$DURATIONS"; }
failed=$(tap_failures)
say "${#tests[@]} tests, $failed cases failed: $LOGS/results/kselftest.tap"
tap_end
