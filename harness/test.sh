#!/bin/bash
# usage: test.sh
# All tests: static checks, every patch builds alone, KUnit, selftests, OpenVPN
# interoperability, and KUnit and some selftests again on the debug kernel.
# Builds and guests run side by side, the builds at low priority. Prints what
# failed with its log, why cases were skipped, and as last line "N passed, N
# failed, N skipped". Results: $LOGS/results/*.tap. SUITES="kunit interop": only
# these. PER_PATCH=1: KUnit and selftests at every patch too. LIMIT_MIN=n: the
# debug kernel is left out, as a skip, when it could not end within n minutes from
# the start.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=prepare.sh
. "$TOP/harness/prepare.sh"
# shellcheck source=guest/tap.sh
. "$TOP/harness/guest/tap.sh"

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
'') ;;
*) die "unknown argument $1; next: test.sh --help" ;;
esac

SUITES=${SUITES:-check build-each kunit kselftest interop debug}
RESULTS=$LOGS/results
for s in $SUITES; do
	[ -x "$TOP/harness/$s.sh" ] || die "no suite $s; next: SUITES of check build-each kunit kselftest interop bench-guard debug"
done

wants() { [[ " $SUITES " == *" $1 "* ]]; }

# suite NAME [LOGDIR PREFIX]: run harness/NAME.sh, see to it that it has a result
suite() {
	local name=$1 dir=${2:-$LOGS} label=${2:+${3:-}-}$1 rc=0 begin=$SECONDS tap log
	tap=$dir/results/$name.tap log=$dir/test-$name.log

	wants "$name" || return 0
	say "$label: started ($log)"
	mkdir -p "$dir"
	rm -f "$tap" "$tap.part"
	LOGS=$dir "$TOP/harness/$name.sh" > "$log" 2>&1 || rc=$?
	if [ ! -e "$tap" ]; then
		tap_resume "$tap" "$name"
		tap_case not "did not come to an end (status $rc)" "log: $log"$'\n'"$(tail -n 40 "$log")"
		tap_end || true
	elif [ "$rc" -ne 0 ] && ! grep -q '^not ok' "$tap"; then
		mv "$tap" "$tap.part"
		sed -i -E '/^(KTAP|1\.\.)/d; s/^(not )?ok [0-9]+ /\1ok /' "$tap.part"
		tap_resume "$tap" "$name"
		tap_case not "ended with status $rc" "log: $log"$'\n'"$(tail -n 40 "$log")"
		tap_end || true
	fi
	[ "$dir" = "$LOGS" ] || sed -E "s/^((not )?ok [0-9]+ )/\1$3 /" "$tap" > "$RESULTS/$label.tap"
	say "$label: $(grep -c '^ok' "$tap" || true) ok, $(grep -c '^not ok' "$tap" || true) not ok, $((SECONDS - begin)) s"
}

guests() {
	local c n=0

	suite kunit
	suite kselftest
	suite interop
	suite bench-guard
	[ "${PER_PATCH:-0}" = 1 ] || return 0
	for c in $(git -C "$SRC" rev-list --reverse "base..${COMMIT:-series}"); do
		n=$((n + 1))
		say "patch $n: $(git -C "$SRC" log -1 --format=%s "$c")"
		IMG='' STAGE='' COMMIT=$c suite kunit "$LOGS/patch-$n" "patch-$n"
		IMG='' STAGE='' COMMIT=$c suite kselftest "$LOGS/patch-$n" "patch-$n"
	done
}

# minutes that the debug kernel takes to build from nothing, and its guest, beside
# the guests of the release kernel
DEBUG_BUILD_MIN=40
DEBUG_GUEST_MIN=60

# debug_in_time MINUTES: are they left?
debug_in_time() {
	local need=$1

	[ -z "${LIMIT_MIN:-}" ] || [ $((SECONDS / 60 + need)) -le "$LIMIT_MIN" ]
}

debug() {
	local img why=''

	wants debug || return 0
	img=$("$TOP/harness/kernel.sh" --where debug "$COMMIT")
	if [ ! -e "$img/bzImage" ] && ! debug_in_time $((DEBUG_BUILD_MIN + DEBUG_GUEST_MIN)); then
		why="no time for its kernel"
	else
		say "debug kernel ($LOGS/test-debug-kernel.log)"
		"$TOP/harness/kernel.sh" debug "$COMMIT" > "$LOGS/test-debug-kernel.log" 2>&1 || true
		debug_in_time "$DEBUG_GUEST_MIN" || why="no time for its guest"
	fi
	if [ -z "$why" ]; then
		suite debug
		return
	fi
	tap_begin "$RESULTS/debug.tap" debug
	tap_case skip "KUnit and selftests on the debug kernel" \
		"$why: $((SECONDS / 60)) of $LIMIT_MIN min are over; next: harness/debug.sh, or again with what is built by now"
	tap_end
}

builds() {
	renice -n 15 -p $BASHPID > /dev/null
	suite check
	suite build-each
	debug
}

prepare run 1
export IMG STAGE COMMIT
rm -rf "$RESULTS"
mkdir -p "$RESULTS"
pids=()
# each lane is a process group, so that what it runs ends with it
trap '[ ${#pids[@]} -eq 0 ] || kill -TERM -- "${pids[@]/#/-}" 2> /dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

step "suites: $SUITES"
set -m
builds & pids+=($!)
guests & pids+=($!)
set +m
lanes=0
for p in "${pids[@]}"; do
	wait "$p" || lanes=$?
done
pids=()

cat "$RESULTS"/*.tap > "$RESULTS/all" 2> /dev/null || true
passed=$(grep -E '^ok ' "$RESULTS/all" | grep -vc '# SKIP' || true)
failed=$(grep -c '^not ok ' "$RESULTS/all" || true)
skipped=$(grep -cE '^ok .*# SKIP' "$RESULTS/all" || true)
if [ "$lanes" -ne 0 ]; then
	echo "not ok harness: a lane ended with status $lanes"
	failed=$((failed + 1))
fi
[ "$skipped" -eq 0 ] || { echo; echo "skipped:"; grep -hE '^ok .*# SKIP' "$RESULTS/all" | sed -E 's/^ok [0-9]+ /  /'; }
[ "$failed" -eq 0 ] || { echo; echo "failed:"; awk '/^not ok/ { show = 1 } /^ok|^1\.\.|^KTAP/ { show = 0 } show' "$RESULTS/all" | sed 's/^/  /'; }
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
