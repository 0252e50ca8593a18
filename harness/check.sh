#!/bin/bash
# usage: check.sh [--quick] [-h]
# Static checks of series/, the mirrored paths and the scripts. --quick leaves out what
# needs a configured kernel (sparse): no network, no build. Without a git tree (make
# tree) it checks what it can and says what not. Results: $LOGS/results/check.tap.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/patches.sh"
. "$(dirname "$0")/guest/tap.sh"
. "$(dirname "$0")/patch-checks.sh"

# --quick starts no checkpatch after this time; what is not done is said
QUICK_SECONDS=35
SHELLCHECK=(shellcheck -x -e SC2317 -e SC2329)

quick=0
case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
--quick) quick=1 ;;
'')	;;
*)	die "unknown argument '$1'; next: $0 -h" ;;
esac

# need_tool NAME CASE: skip the case when the command is not installed
need_tool() {
	! command -v "$1" > /dev/null 2>&1 || return 0
	tap_case skip "$2" "$1 is not installed: harness/deps.sh"
	say "skip $2: $1 is not installed"
	return 1
}

skip_case() {
	tap_case skip "$1" "$2"
	say "skip $1: $2"
}

# once for each state of them
shellcheck_harness() {
	local kept

	kept=$CACHE/check/shellcheck-$({ shellcheck --version; cat "$TOP/.shellcheckrc" "$@"; } | sha256sum | cut -c 1-16)
	[ ! -e "$kept" ] || return 0
	shellcheck -x "$@" || return 1
	mkdir -p "$CACHE/check"
	: > "$kept"
}

# ---- patches as mails ----

all_patches() {
	local folder

	for folder in $(series_folders); do
		folder_patches "$folder"
	done
}

# tags that only a person may add
no_tags_of_persons() {
	! grep -nE '^[[:space:]]*(Signed-off-by|Reviewed-by|Tested-by|Acked-by|Co-developed-by):' "$@"
}

# what the patches say and add, without context and removed lines
added_text() {
	local patch

	for patch in "$@"; do
		awk '/^diff --git / { diff = 1 } !diff || /^\+/ { sub(/^\+/, ""); print; next } { print "" }' "$patch" \
			> "$SCRATCH/text/$(basename "$(dirname "$patch")")-$(basename "$patch")"
	done
}

spelling() {
	# words that are names here
	codespell -L ans,te,ro,fo,ot "$SCRATCH"/text/* "$TOP"/README.md "$TOP"/docs "$TOP"/harness "$TOP"/configs 2>&1 |
		sed "s,$SCRATCH/text/,,; s,$TOP/,," > "$SCRATCH/spelling"
	cat "$SCRATCH/spelling"
	[ ! -s "$SCRATCH/spelling" ]
}

# ---- the series on the base, without a working tree ----

applies() {
	series_apply "$BASE_TAG" > "$SCRATCH/bounds"
}

round_trip() {
	local folder

	mkdir -p "$SCRATCH/series" "$SCRATCH/patches"
	series_write "$SCRATCH/series" "$SCRATCH/bounds"
	for folder in $(series_folders); do
		cp -r "$TOP/series/$folder" "$SCRATCH/patches/"
	done
	(cd "$SCRATCH" && diff -rq patches series)
}

mirror_in_step() {
	mkdir -p "$SCRATCH/mirror" "$SCRATCH/now"
	mirror_write "$SCRATCH/mirror" "$HEAD_COMMIT"
	mirror_paths | (cd "$TOP" && xargs -r -d '\n' cp --parents -P -t "$SCRATCH/now")
	(cd "$SCRATCH" && diff -rq now mirror)
}

# without a tree: names of all mirrored files, content of those that the series adds
mirror_in_step_no_tree() {
	local dir=$SCRATCH/added patch include

	mkdir -p "$dir"
	git -C "$dir" init -q
	all_patches | xargs -r sed -n 's,^diff --git a/.* b/,,p' | sort -u > "$SCRATCH/touched"
	# shellcheck disable=SC2016  # for awk
	all_patches | xargs -r awk '/^diff --git / { sub(/^.* b\//, ""); f = $0 } /^new file mode/ { print f }' | sort -u > "$SCRATCH/new"
	mapfile -t include < <(sed 's/^/--include=/' "$SCRATCH/new")
	for patch in $(all_patches); do
		# those that touch none of these files fail, which the comparison allows for
		git -C "$dir" apply --whitespace=nowarn "${include[@]}" "$patch" 2> /dev/null || true
	done
	while read -r patch; do
		cmp "$dir/$patch" "$TOP/$patch" || return 1
	done < "$SCRATCH/new"
	{
		cat "$SCRATCH/new"
		comm -23 "$SCRATCH/touched" "$SCRATCH/new" | sed 's/$/.diff/'
	} | sort > "$SCRATCH/expected"
	mirror_paths | sort | diff "$SCRATCH/expected" -
}

# a new script has no finding at any level, an edited one none more than before
shellcheck_selftest() {
	local file=$1 state bad=0 kept

	# once for each state of it and of what it may source
	kept=$CACHE/check/shellcheck-$({ echo "$file"; shellcheck --version; cat "$SCRATCH/head/$file" "$SCRATCH/head/$(dirname "$file")"/*common*.sh \
		"$SCRATCH/head/$(dirname "$file")"/gso-*.sh "$SCRATCH/head/$(dirname "$file")"/test-gso-*.sh; } 2> /dev/null | sha256sum | cut -c 1-16)
	[ ! -e "$kept" ] || return 0
	for state in base head; do
		: > "$SCRATCH/sc.$state"
		[ ! -e "$SCRATCH/$state/$file" ] ||
			(cd "$SCRATCH/$state/$(dirname "$file")" && "${SHELLCHECK[@]}" -f gcc "$(basename "$file")") \
				> "$SCRATCH/sc.$state" 2>&1 || true
	done
	new_lines "$SCRATCH/sc.base" "$SCRATCH/sc.head" || bad=1
	[ "$bad" -ne 0 ] || { mkdir -p "$CACHE/check"; : > "$kept"; }
	return "$bad"
}

# a test program is listed (one a line, sorted) and executable
selftest_listed() {
	local file=$1 dir list

	dir=$(dirname "$file")
	list=$(sed -n '/^TEST_PROGS\( *\|.*\):\?= *\\$/,/^#/p' "$SCRATCH/head/$dir/Makefile" | grep -oE '[A-Za-z0-9._-]+\.(sh|py)')
	[ "$(sgit ls-tree "$HEAD_COMMIT" -- "$file" | cut -c 1-6)" = 100755 ] || { echo "$file is not executable"; return 1; }
	grep -qxF "$(basename "$file")" <<< "$list" || { echo "$file is not in TEST_PROGS of $dir/Makefile"; return 1; }
	LC_ALL=C sort -c <<< "$list"
}

# ---- sparse ----

# sparse_run COMMIT OUT OBJECT...: what it says about the objects at that commit
sparse_run() {
	local commit=$1 out=$2 key

	shift 2
	key=$CACHE/check/sparse-$BASE_KEY-$(sgit ls-tree "$commit" | grep -vP "\t(tools|Documentation|MAINTAINERS)\$" | sha256sum | cut -c 1-12)-$(printf '%s ' "$@" | sha256sum | cut -c 1-8)
	if [ ! -e "$key" ]; then
		mkdir -p "$CACHE/check"
		# what Debian has (0.6.4) does not know __typeof_unqual__, which only drops
		# qualifiers
		"$TOP/harness/kernel.sh" --make "C=2 CHECK=sparse\\ -D__typeof_unqual__=__typeof__ $*" run "$commit" || {
			tail -n 20 "$LOGS/kernel-make.log"
			return 1
		}
		grep -q '^  CHECK ' "$LOGS/kernel-make.log" || { echo "sparse did not run"; return 1; }
		# nor MODULE_AUTHOR() and the like
		grep -E '^[^ ]+:[0-9]+:[0-9]+: ' "$LOGS/kernel-make.log" | grep -v 'error: bad constant expression$' | sed "s,^$BUILD/,,; s,^[./]*/build/$BASE_KEY/,," > "$key.new" || true
		mv "$key.new" "$key"
	fi
	cp "$key" "$out"
}

sparse_new() {
	local file objects=(drivers/net/ovpn/)

	for file in $(touched '*.c'); do
		case $file in
		drivers/net/ovpn/*|tools/*|samples/*) ;;
		*)	objects+=("${file%.c}.o") ;;
		esac
	done
	sparse_run "$(sgit rev-parse "$BASE_TAG^{commit}")" "$SCRATCH/sparse.base" "${objects[@]}" || return 1
	sparse_run "$HEAD_COMMIT" "$SCRATCH/sparse.head" "${objects[@]}" || return 1
	new_lines "$SCRATCH/sparse.base" "$SCRATCH/sparse.head"
}

# ---- all of it ----

need_cmd git git
SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/text"
tap_begin "$LOGS/results/check.tap" check

mapfile -t patches < <(all_patches)
[ ${#patches[@]} -gt 0 ] || die "no patches in series/; next: make series, or git checkout -- series"
for folder in $(series_folders); do
	mail_cases "$folder" "$SERIES_DIR/$folder"
done
tap_check 'no tags that only a person may add' no_tags_of_persons "${patches[@]}" || true
if need_tool codespell spelling; then
	added_text "${patches[@]}"
	tap_check spelling spelling || true
fi
if need_tool shellcheck 'shellcheck of the harness'; then
	mapfile -t scripts < <(find "$TOP/harness" "$TOP/.ci" -type f \( -name '*.sh' -o -name run -o -path '*/bin/*' \))
	tap_check 'shellcheck of the harness' shellcheck_harness "${scripts[@]}" || true
fi

# make mail refuses what it has to: cases of test-mail.sh become ours
test_mail() {
	local rc=0 args=()

	[ "$quick" = 0 ] || args=(--quick)
	LOGS=$SCRATCH/log "$TOP/harness/test-mail.sh" "${args[@]}" > "$SCRATCH/test-mail" 2>&1 || rc=$?
	sed -nE 's/^((not )?ok) [0-9]+ (test-mail)/\1 check: \3/p; /^#/p' "$SCRATCH/log/results/test-mail.tap" >> "$TAP_FILE.part"
	[ "$rc" -eq 0 ] || cat "$SCRATCH/test-mail"
	[ -s "$SCRATCH/log/results/test-mail.tap" ] || tap_case not "test-mail.sh ended with status $rc" "$(tail -n 20 "$SCRATCH/test-mail")"
}
test_mail

tap_check 'docs: the picture is made from its source' "$TOP/harness/docs.sh" --check || true

no_tree='no git tree: make tree'
if sgit rev-parse -q --verify "refs/tags/$BASE_TAG" > /dev/null 2>&1; then
	HEAD_COMMIT=
	if tap_check 'series applies to the base' applies; then
		HEAD_COMMIT=$(tail -n 1 "$SCRATCH/bounds" | cut -d ' ' -f 2)
		branch=$(sgit rev-parse -q --verify "refs/heads/$SERIES_BRANCH^{tree}" || true)
		[ "$branch" = "$(sgit rev-parse "$HEAD_COMMIT^{tree}")" ] ||
			warn "branch $SERIES_BRANCH of $SRC differs from series/, which is what is checked; next: make series"
		if [ -n "$KERNEL" ] || [ "$BASE" != "$HOME_BASE" ]; then
			skip_case 'round trip: patches' "series/ is kept against base $HOME_BASE"
			skip_case 'mirrored paths in step with series/' "they are kept against base $HOME_BASE"
		else
			tap_check 'round trip: patches' round_trip || true
			tap_check 'mirrored paths in step with series/' mirror_in_step || true
		fi
		mapfile -t files < <(touched 'drivers/net/ovpn/*.[ch]' 'net/*.[ch]' 'include/net/*.h')
		mapfile -t tests < <(touched 'tools/testing/selftests/*.sh')
		for state in base head; do
			commit=$BASE_TAG
			[ "$state" = base ] || commit=$HEAD_COMMIT
			extract "$commit" "$SCRATCH/$state" "${files[@]}" tools/testing/selftests/net/ovpn \
				tools/testing/selftests/net/lib.sh tools/testing/selftests/lib.sh tools/testing/selftests/kselftest
		done
		tap_check 'kernel-doc' kernel_doc "${files[@]}" || true
		tap_check 'docs: the table of the contract is right' "$TOP/harness/contract.py" "$TOP/series" "$SCRATCH/head" || true
		for file in "${tests[@]}"; do
			name=${file#tools/testing/selftests/}
			! need_tool shellcheck "shellcheck $name" || tap_check "shellcheck $name" shellcheck_selftest "$file" || true
			case $(basename "$file") in
			test*.sh) tap_check "$name is listed and executable" selftest_listed "$file" || true ;;
			esac
		done
	fi
	need_tool perl checkpatch && checkpatch_all "${patches[@]}"
	if [ "$quick" = 0 ] && [ -n "$HEAD_COMMIT" ]; then
		! need_tool sparse 'sparse: no new warning' || tap_check 'sparse: no new warning' sparse_new || true
	fi
else
	for name in 'series applies to the base' 'round trip: patches' kernel-doc checkpatch 'shellcheck of the selftests'; do
		skip_case "$name" "$no_tree"
	done
	[ "$quick" = 1 ] || skip_case 'sparse: no new warning' "$no_tree"
	tap_check 'mirrored paths: names, and content of the files that the series adds' mirror_in_step_no_tree || true
	tap_check 'docs: the table of the contract is right' "$TOP/harness/contract.py" "$TOP/series" || true
fi

failed=$(tap_failures)
rc=0
tap_end || rc=1
say "$(grep -c '^ok' "$LOGS/results/check.tap" || true) ok, $failed not ok in $SECONDS s ($LOGS/results/check.tap)"
exit "$rc"
