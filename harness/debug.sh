#!/bin/bash
# usage: debug.sh [TEST]...
# KUnit, and the selftests named in TESTS below (or on the command line), on the
# debug kernel: KASAN, lockdep, kmemleak, reference trackers, failing
# allocations. Results: $LOGS/results/debug.tap, logs in $LOGS/debug/.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=guest/tap.sh
. "$TOP/harness/guest/tap.sh"

# everything that races or runs out of something, and each source of the batch;
# the others would only repeat those, slowly
TESTS='test-gso-fault.sh test-gso-exhaust.sh test-gso-lifetime.sh test-gso-forward.sh test-gso-tunnel.sh'

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
-*) die "unknown option $1; next: debug.sh --help" ;;
esac
[ $# -gt 0 ] || read -ra TESTS <<< "$TESTS"
[ $# -eq 0 ] || TESTS=("$@")

need_root
COMMIT=${COMMIT:-series}
IMG=$("$TOP/harness/kernel.sh" debug "$COMMIT")
STAGE=${STAGE:-$("$TOP/harness/stage.sh" "$COMMIT")}
export COMMIT IMG STAGE
OUT=$LOGS/debug
rm -rf "$OUT"
mkdir -p "$OUT"

# part NAME cmd...: a suite on the debug kernel, its cases become ours
part() {
	local name=$1 rc=0

	shift
	say "$name ($OUT/$name.log)"
	LOGS=$OUT "$TOP/harness/$name.sh" --config debug "$@" > "$OUT/$name.log" 2>&1 || rc=$?
	[ ! -s "$OUT/results/$name.tap" ] ||
		sed -nE "s/^((not )?ok) [0-9]+ /\1 debug: /p; /^#/p" "$OUT/results/$name.tap" >> "$TAP_FILE.part"
	if [ "$rc" -ne 0 ] && ! grep -q '^not ok' "$OUT/results/$name.tap" 2> /dev/null; then
		tap_case not "$name ended with status $rc" "log: $OUT/$name.log"$'\n'"$(tail -n 40 "$OUT/$name.log")"
	fi
}

tap_begin "$LOGS/results/debug.tap" debug
part kunit
part kselftest --guests 1 "${TESTS[@]}"
say "$(grep -c '^ok' "$TAP_FILE.part" || true) ok, $(tap_failures) failed: $LOGS/results/debug.tap"
tap_end
