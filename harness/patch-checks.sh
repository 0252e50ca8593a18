# shellcheck shell=bash
# Checks of patches for check.sh and mail.sh. Sourced after lib.sh, patches.sh and
# guest/tap.sh by scripts that set SCRATCH (a directory of their own) and, for what
# needs a kernel tree, HEAD_COMMIT; never run.

# the one that Debian's packages belong to
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=python3
# as netdev's patch checks run it; mail_checks.py looks at the sign-off
# shellcheck disable=SC2054  # the commas are checkpatch's
CHECKPATCH=(--strict --max-line-length=80 --no-signoff --terse --show-types --no-summary
	--ignore=COMMIT_LOG_LONG_LINE,MACRO_ARG_REUSE,ALLOC_SIZEOF_STRUCT,NO_AUTHOR_SIGN_OFF,GIT_COMMIT_ID,CAMELCASE,FILE_PATH_CHANGES,BAD_REPORTED_BY_LINK)

# new_lines OLD NEW: lines of NEW that are not in OLD, each as often as it is
# more often there; "FILE:LINE[:COLUMN]:" is taken as "FILE:"
new_lines() {
	awk '
		{ key = $0; gsub(/:[0-9]+/, "", key) }
		NR == FNR && FILENAME == ARGV[1] { seen[key]++; next }
		seen[key]-- <= 0 { print; bad = 1 }
		END { exit bad }' "$1" "$2"
}

# mail_cases LABEL ARG...: a case for each check of mail_checks.py, which gets ARG...
mail_cases() {
	local label=$1 status='' line name='' detail=''

	shift
	while IFS= read -r line; do
		case $line in
		'# '*)	detail+=${line#\# }$'\n'
			continue
			;;
		esac
		[ -z "$name" ] || mail_case "$label" "$status" "$name" "$detail"
		name=${line#not } name=${name#ok } detail=''
		case $line in 'ok '*) status=ok ;; *) status=not ;; esac
	done < <("$PYTHON" "$TOP/harness/mail_checks.py" "$@" 2>&1 || true)
	[ "$name" = end ] || tap_case not "$label: mail_checks.py came to its end" "$name"
}

# mail_case LABEL STATUS NAME DETAIL
mail_case() {
	local name="$1: ${3//_/ }" more

	if [ "$2" = ok ]; then
		tap_case ok "$name"
		return
	fi
	more=$(($(wc -l <<< "${4%$'\n'}") - 5))
	set -- "$(head -n 5 <<< "$4")"
	[ "$more" -le 0 ] || set -- "$1"$'\n'"and $more more"
	tap_case not "$name" "$1"
	printf 'not ok %s\n%s\n' "$name" "$1"
}

# what checkpatch looks at in a patch: neither its number, sender and recipients,
# nor the sign-off, nor the hashes of its context
checkpatch_sees() {
	awk '
		!body && /^[^ \t]/ { subject = /^Subject:/ }
		!body && !NF { body = 1 }
		!body && !subject { next }
		!body { sub(/^Subject: \[[^]]*\]/, "") }
		/^index / || /^Signed-off-by: / { next }
		{ print }' "$1"
}

# checkpatch writes a cache into its directory: give it one of links to the tree.
# What it said about a patch is kept by the hash of all that it depends on.
checkpatch_all() {
	local root=$SCRATCH/checkpatch kept=$CACHE/check patch key words deadline

	deadline=$(($(date +%s) + 100000))
	[ "${quick:-0}" = 0 ] || deadline=$(($(date +%s) - SECONDS + QUICK_SECONDS))
	local -a todo=()
	local -A keys=()
	words=$("$PYTHON" -c 'import os, codespell_lib; print(os.path.dirname(codespell_lib.__file__) + "/data/dictionary.txt")' 2> /dev/null) || true
	if [ -r "$words" ]; then
		CHECKPATCH+=(--codespell "--codespellfile=$words")
	else
		say "checkpatch without --codespell: codespell is not installed"
	fi
	mkdir -p "$root" "$kept"
	find "$SRC" -mindepth 1 -maxdepth 1 ! -name '.git' -exec ln -s -t "$root" {} +
	for patch in "$@"; do
		key=checkpatch-$({ checkpatch_sees "$patch"; cat "$SRC/scripts/checkpatch.pl" "$SRC/scripts/spelling.txt"; echo "${CHECKPATCH[@]}"; } | sha256sum | cut -c 1-16)
		keys[$patch]=$kept/$key
		[ -e "$kept/$key" ] || todo+=("$patch" "$kept/$key")
	done
	# shellcheck disable=SC2016  # for the inner shell
	[ ${#todo[@]} -eq 0 ] || printf '%s\0' "${todo[@]}" | (cd "$root" && xargs -0 -n 2 -P "$JOBS" bash -c '
		patch=${*: -2:1} out=${!#}
		[ "$(date +%s)" -lt "$1" ] || exit 0
		if perl scripts/checkpatch.pl "${@:2:$#-3}" "$patch" > "$out.$$" 2>&1; then
			: > "$out.$$"
		else
			echo "checkpatch: status $?" >> "$out.$$"
		fi
		mv "$out.$$" "$out"' checkpatch "$deadline" "${CHECKPATCH[@]}") || true
	for patch in "$@"; do
		key=${keys[$patch]}
		if [ ! -e "$key" ] && [ "${quick:-0}" = 1 ]; then
			skip_case "checkpatch ${patch#"$SERIES_DIR"/}" 'no time left: make check'
		elif [ -e "$key" ] && [ ! -s "$key" ]; then
			tap_case ok "checkpatch ${patch#"$SERIES_DIR"/}"
		else
			sed "s,^$TOP/,,; s,^$SERIES_DIR/,," "$key" | head -n 20 > "$SCRATCH/checkpatch.out"
			tap_case not "checkpatch ${patch#"$SERIES_DIR"/}" "$(cat "$SCRATCH/checkpatch.out")"
			cat "$SCRATCH/checkpatch.out"
		fi
	done
}

# extract COMMIT DIR PATH...: those that exist there
extract() {
	local commit=$1 dir=$2 path

	shift 2
	mkdir -p "$dir"
	for path in "$@"; do
		! sgit cat-file -e "$commit:$path" 2> /dev/null || printf '%s\0' "$path"
	done | GIT_CONFIG_GLOBAL=/dev/null xargs -0 -r git -c safe.directory='*' -C "$SRC" archive "$commit" | tar -x -C "$dir" 2> /dev/null || true
}

# touched PATTERN...: files that the series adds or edits
touched() {
	sgit diff --no-renames --name-only --diff-filter=AM "$BASE_TAG" "$HEAD_COMMIT" -- "$@"
}

kernel_doc() {
	local file bad=0 state

	for state in base head; do
		(
			cd "$SCRATCH/$state" || exit
			files=()
			for file in "$@"; do
				[ ! -e "$file" ] || files+=("$file")
			done
			"$PYTHON" "$SRC/scripts/kernel-doc" -none -Wall "${files[@]}"
		) > "$SCRATCH/kernel-doc.$state" 2>&1 || true
	done
	! grep -E 'Traceback|No such file' "$SCRATCH/kernel-doc.head" || bad=1
	new_lines "$SCRATCH/kernel-doc.base" "$SCRATCH/kernel-doc.head" || bad=1
	return "$bad"
}

