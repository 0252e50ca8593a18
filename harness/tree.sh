#!/bin/bash
# usage: tree.sh [-h]
# Make the git tree from series/: branch "series" with a commit for each patch on
# top of tag "base", and a tag at the last commit of each folder. Does nothing when
# series/ has not changed; refuses to lose local work unless FORCE=1.
# BASE=7.3|7.2 or KERNEL=/path/to/tree chooses the base, TREE=/path where it goes.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/patches.sh"

# "HASH_OF_SERIES COMMIT" when series/ and the branch last agreed
stamp_file() { printf '%s/ovpn-gso-stamp\n' "$(sgit rev-parse --absolute-git-dir)"; }

# what make tree would throw away, in words; nothing when there is none
local_work() {
	local head=$1 last=$2

	[ -z "$(sgit status --porcelain --untracked-files=no)" ] || { echo 'changes that are not committed'; return; }
	[ "$head" = "$last" ] || [ "$head" = "$(sgit rev-parse "$BASE_TAG^{commit}")" ] ||
		echo 'commits that are not in series/'
}

make_tree() {
	local hash head='' stamp old_hash='' old_head='' bounds new lost

	"$TOP/harness/base.sh" || exit 1
	hash=$(series_hash)
	stamp=$(stamp_file)
	head=$(sgit rev-parse -q --verify "refs/heads/$SERIES_BRANCH^{commit}") || head=
	[ ! -r "$stamp" ] || read -r old_hash old_head < "$stamp"
	if [ "$hash" = "$old_hash" ] && [ -n "$head" ] && [ "${FORCE:-0}" != 1 ]; then
		say "up to date: $SRC, $(sgit rev-list --count "$BASE_TAG..$head") patches on $(sgit log -1 --format=%s "$BASE_TAG")"
		return
	fi
	bounds=$(series_apply "$BASE_TAG") || exit 1
	new=$(tail -n 1 <<< "$bounds" | cut -d ' ' -f 2)
	[ -n "$new" ] || new=$(sgit rev-parse "$BASE_TAG^{commit}")
	if [ -n "$head" ] && [ "$(sgit log --format='%T %s' "$BASE_TAG..$head")" = "$(sgit log --format='%T %s' "$BASE_TAG..$new")" ] &&
	   [ "${FORCE:-0}" != 1 ]; then
		printf '%s %s\n' "$hash" "$head" > "$stamp"
		say "up to date: $SRC has these patches already"
		return
	fi
	if [ -n "$head" ]; then
		lost=$(local_work "$head" "$old_head")
		if [ -n "$lost" ]; then
			[ "${FORCE:-0}" = 1 ] ||
				die "$SRC has $lost; next: make series to keep them, or make tree FORCE=1"
			[ "$head" = "$old_head" ] ||
				sgit update-ref "refs/heads/$SERIES_BRANCH-before-$(date +%Y%m%d-%H%M%S)" "$head"
			sgit reset -q --hard
		fi
	fi
	sgit checkout -q -B "$SERIES_BRANCH" "$new"
	sgit tag --list '[0-9]*-*' | xargs -r git -C "$SRC" tag -d > /dev/null
	while read -r folder commit; do
		[ -z "$folder" ] || sgit tag -f "$folder" "$commit" > /dev/null
	done <<< "$bounds"
	printf '%s %s\n' "$hash" "$new" > "$stamp"
	say "$SRC: branch $SERIES_BRANCH, $(sgit rev-list --count "$BASE_TAG..$new") patches on $(sgit log -1 --format=%s "$BASE_TAG")"
}

case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
'')	;;
*)	die "unknown argument '$1'; next: $0 -h" ;;
esac
need_cmd git git
with_lock "tree-$BASE_KEY" make_tree
