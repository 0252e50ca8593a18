#!/bin/bash
# usage: kunit.sh [--config run|debug] [GLOB]
# Boot the kernel with its KUnit suites (all that the configuration builds in, or
# those that GLOB selects, such as 'ovpn*' or 'net_core.*gso*') and collect their
# results in $LOGS/results/kunit.tap. A suite that the series adds and that did
# not run is a failure.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=prepare.sh
. "$TOP/harness/prepare.sh"
# shellcheck source=guest/tap.sh
. "$TOP/harness/guest/tap.sh"

config=run
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
	--config) config=${2:?}; shift 2 ;;
	-*) die "unknown option $1; next: kunit.sh --help" ;;
	*) break ;;
	esac
done
glob=${1:-}

# suites in the files that the series touches
expected() {
	local f

	git -C "$SRC" diff --name-only --diff-filter=d base "$COMMIT" -- '*.c' | while read -r f; do
		git -C "$SRC" show "$COMMIT:$f" | awk '
			/struct kunit_suite .*=[[:space:]]*\{/ { in_suite = 1 }
			in_suite && /\.name[[:space:]]*=[[:space:]]*"/ { split($0, q, "\""); print q[2] }
			/^\}/ { in_suite = 0 }'
	done | sort -u
}

# cases CONSOLE: "status<TAB>suite: case[: parameter]<TAB>detail" a line. KUnit
# indents by 4 a level: suite 0, case 4, parameter of a case 8.
cases() {
	# a serial console ends lines with CR as well
	sed -E 's/\r+$//; s/^(<[0-9]+>)?\[ *[0-9.]+\](\[[^]]*\])? ?//' "$1" | awk '
		function emit(status, name, detail) { printf "%s\t%s\t%s\n", status, name, detail }
		function parse(line) {
			status = line ~ /^not ok/ ? "not" : line ~ /# SKIP/ ? "skip" : "ok"
			detail = ""
			if (status == "skip") { detail = line; sub(/.*# SKIP ?/, "", detail) }
			sub(/^(not )?ok [0-9]+ ?(- )?/, "", line)
			sub(/ *# SKIP.*/, "", line)
			return line
		}
		/^    # Subtest: / { suite = $3; pending = 0; notes = ""; next }
		/^ *# Subtest: / { params = 0; next }
		/^ *(KTAP|1\.\.|# module:)/ { next }
		/^        (not )?ok / {
			sub(/^ +/, ""); p = parse($0)
			++params; pstat[params] = status; pname[params] = p; pdetail[params] = detail
			next
		}
		/^    (not )?ok / {
			sub(/^ +/, ""); c = parse($0)
			bad = 0
			for (i = 1; i <= params; i++) {
				emit(pstat[i], suite ": " c ": " pname[i], pstat[i] == "not" ? notes : pdetail[i])
				bad += pstat[i] == "not"
			}
			# a case without parameters, or one that failed beside them
			if (!params || (status == "not" && !bad))
				emit(status, suite ": " c, status == "not" ? notes : detail)
			params = 0; notes = ""
			next
		}
		/^(not )?ok / {
			s = parse($0)
			print "suite\t" s "\t"
			suite = ""; notes = ""
			next
		}
		/^ +/ && suite != "" { sub(/^ +/, ""); notes = notes (notes == "" ? "" : "\001") $0 }
	'
}

prepare "$config" 1
OUT=$LOGS/kunit
rm -rf "$OUT"
mkdir -p "$OUT"
tap_begin "$LOGS/results/kunit.tap" kunit

step "KUnit${glob:+ $glob}, kernel configuration $config"
mem=1500M limit=600
[ "$config" = run ] || mem=2500M limit=1500
rc=0
"$TOP/harness/vm.sh" --cpus 2 --mem "$mem" --timeout "$limit" --quiet --image "$IMG" --log "$OUT/guest.log" \
	--append "kunit.enable=1 kunit.autorun=1${glob:+ kunit.filter_glob=$glob}" \
	-- sh -c 'find /lib/modules/ -name "*_kunit.ko*" | sed "s,.*/,,; s,\.ko.*,," | xargs -r -n 1 modprobe' || rc=$?
cases "$OUT/guest.log.console" > "$OUT/cases"
while IFS=$'\t' read -r status name detail; do
	case $status in
	suite) ;;
	not) tap_case not "$name" "log: $OUT/guest.log.console"$'\n'"${detail//$'\001'/$'\n'}" ;;
	*) tap_case "$status" "$name" "$detail" ;;
	esac
done < "$OUT/cases"

ran=$(sed -n 's/^suite\t\([^\t]*\)\t$/\1/p' "$OUT/cases")
if [ -z "$ran" ]; then
	tap_case not "a suite ran" "log: $OUT/guest.log.console"$'\n'"no KTAP on the console: CONFIG_KUNIT and a suite in configs/$config.config?"
elif [ -z "$glob" ]; then
	for s in $(expected); do
		grep -qx "$s" <<< "$ran" ||
			tap_case not "suite $s ran" "the series adds it, the kernel did not run it; next: enable its option in configs/run.config"
	done
fi
[ "$rc" -eq 0 ] ||
	tap_case not "guest ended with status $rc" "log: $OUT/guest.log.console"$'\n'"$(tail -n 40 "$OUT/guest.log.console")"
say "suites: $(tr '\n' ' ' <<< "$ran"); $(grep -c '^ok' "$TAP_FILE.part" || true) ok, $(tap_failures) failed: $LOGS/results/kunit.tap"
tap_end
