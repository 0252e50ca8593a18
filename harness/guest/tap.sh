# shellcheck shell=bash
# Results as KTAP: one line a case, "ok|not ok N SUITE: NAME [# SKIP REASON]".
# Sourced by the host's and the guest's scripts. Cases are kept in FILE.part, so
# that those of a guest that dies are not lost; tap_end makes FILE of it.

# tap_begin FILE SUITE
tap_begin() {
	TAP_FILE=$1 TAP_SUITE=$2
	mkdir -p "$(dirname "$TAP_FILE")"
	rm -f "$TAP_FILE"
	: > "$TAP_FILE.part"
}

# tap_resume FILE SUITE: go on with what another process began
tap_resume() {
	TAP_FILE=$1 TAP_SUITE=$2
	[ -e "$TAP_FILE.part" ] || : > "$TAP_FILE.part"
}

# tap_case ok|not|skip NAME [DETAIL]: DETAIL is the reason of a skip, or lines
# about a failure
tap_case() {
	local status=$1 name=${2//#/} detail=${3:-}

	case $status in
	ok) printf 'ok %s: %s\n' "$TAP_SUITE" "$name" ;;
	skip) printf 'ok %s: %s # SKIP %s\n' "$TAP_SUITE" "$name" "${detail:-no reason given}" ;;
	*)
		printf 'not ok %s: %s\n' "$TAP_SUITE" "$name"
		[ -z "$detail" ] || printf '%s\n' "$detail" | sed 's/^/# /'
		;;
	esac >> "$TAP_FILE.part"
}

# tap_check NAME cmd...: the command's output is the detail of a failure
tap_check() {
	local name=$1 out

	shift
	if out=$("$@" 2>&1); then
		tap_case ok "$name"
		printf 'ok %s\n' "$name"
	else
		tap_case not "$name" "$out"
		printf 'not ok %s\n%s\n' "$name" "$out"
		return 1
	fi
}

tap_failures() {
	grep -c '^not ok' "$TAP_FILE.part" || true
}

# tap_end: number the cases, write the plan; false when one failed
tap_end() {
	awk -v plan="$(grep -cE '^(not )?ok' "$TAP_FILE.part")" '
		BEGIN { print "KTAP version 1"; print "1.." plan }
		/^ok / { sub(/^ok /, "ok " ++n " ") }
		/^not ok / { sub(/^not ok /, "not ok " ++n " ") }
		{ print }' "$TAP_FILE.part" > "$TAP_FILE"
	rm -f "$TAP_FILE.part"
	! grep -q '^not ok' "$TAP_FILE"
}
