# shellcheck shell=bash
# Between series/*/ (mailable patches) and git commits, both ways, without a
# working tree. Sourced after lib.sh, never run.

# shellcheck disable=SC2034  # for the scripts that read this file
SERIES_BRANCH=series
BASE_TAG=base
# the base that series/ is kept against: the first one of series/base
HOME_BASE=$(awk '/^[0-9]/ { print $1; exit }' "$TOP/series/base")
SUBJECT_PREFIX=${SUBJECT_PREFIX:-PATCH net-next}
# the patches as mails, a folder for each series
SERIES_DIR=${SERIES_DIR:-$TOP/series}

# git without the configuration of the user, so that output is the same everywhere
sgit() {
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git -c safe.directory='*' \
		-c core.abbrev=12 -c core.quotePath=false -c diff.noprefix=false \
		-c diff.mnemonicPrefix=false -c diff.algorithm=myers -c diff.renames=true \
		-c diff.context=3 -c diff.interHunkContext=0 -c diff.statGraphWidth=0 \
		-c gc.auto=0 -C "${REPO:-$SRC}" "$@"
}

# the folders of series/ in the order in which they apply
series_folders() {
	find "$SERIES_DIR" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort -V
}

# the patches of one folder, without the cover letter
folder_patches() {
	find "$SERIES_DIR/$1" -maxdepth 1 -name '[0-9]*.patch' ! -name '0000-*' | sort
}

# changes when any patch does
series_hash() {
	local folder

	for folder in $(series_folders); do
		printf '%s\n' "$folder"
		folder_patches "$folder" | xargs -r sha256sum | cut -d ' ' -f 1
	done | sha256sum | cut -c 1-16
}

# patch_refused PATCH INDEX: say which hunk of which file, and what to do
patch_refused() {
	local patch=$1 out file line hunk

	out=$(GIT_INDEX_FILE=$2 sgit apply --cached --check "$patch" 2>&1) || true
	file=$(sed -n 's/^error: patch failed: \(.*\):\([0-9]*\)$/\1/p' <<< "$out" | head -n 1)
	line=$(sed -n 's/^error: patch failed: \(.*\):\([0-9]*\)$/\2/p' <<< "$out" | head -n 1)
	if [ -n "$file" ]; then
		hunk=$(awk -v f="+++ b/$file" -v l="$line" '
			/^\+\+\+ / { in_file = $0 == f }
			in_file && $0 ~ "^@@ -" l "[, ]" { print; exit }' "$patch")
		out="$file, hunk ${hunk:-at line $line}"
	else
		out=$(sed -n 's/^error: //p' <<< "$out" | head -n 1)
	fi
	die "${patch#"$TOP"/} does not apply to base ${KERNEL:-$BASE} ($out); next: another base (BASE=$(awk '/^[0-9]/ { printf "%s%s", s, $1; s = " or BASE=" }' "$TOP/series/base"), or KERNEL=/path/to/tree), or rebase: make tree BASE=$HOME_BASE, git rebase, make series"
}

# series_apply BASE_COMMIT: make the commits; prints "FOLDER COMMIT" for each
# folder. Nothing but objects is written, so a failure leaves nothing behind.
series_apply() {
	local commit folder patch tmp tree name email

	tmp=$(mktemp -d)
	# shellcheck disable=SC2064  # the value of now
	trap "rm -rf '$tmp'" EXIT
	commit=$(sgit rev-parse "$1^{commit}")
	name=$(git config user.name 2> /dev/null) || name='ovpn-gso'
	email=$(git config user.email 2> /dev/null) || email='ovpn-gso@localhost'
	GIT_INDEX_FILE=$tmp/index sgit read-tree "$commit"
	for folder in $(series_folders); do
		for patch in $(folder_patches "$folder"); do
			sgit mailinfo -b "$tmp/msg" "$tmp/diff" < "$patch" > "$tmp/info" ||
				die "$patch is not a mail with a patch; next: make series, or git checkout -- series"
			GIT_INDEX_FILE=$tmp/index sgit apply --cached --whitespace=nowarn "$tmp/diff" 2> /dev/null ||
				patch_refused "$patch" "$tmp/index"
			tree=$(GIT_INDEX_FILE=$tmp/index sgit write-tree)
			commit=$({ sed -n 's/^Subject: //p' "$tmp/info"; echo; cat "$tmp/msg"; } | sgit stripspace |
				GIT_AUTHOR_NAME=$(sed -n 's/^Author: //p' "$tmp/info") \
				GIT_AUTHOR_EMAIL=$(sed -n 's/^Email: //p' "$tmp/info") \
				GIT_AUTHOR_DATE=$(sed -n 's/^Date: //p' "$tmp/info") \
				GIT_COMMITTER_NAME=$name GIT_COMMITTER_EMAIL=$email \
				GIT_COMMITTER_DATE=$(sed -n 's/^Date: //p' "$tmp/info") \
				sgit commit-tree "$tree" -p "$commit")
		done
		printf '%s %s\n' "$folder" "$commit"
	done
	rm -rf "$tmp"
	trap - EXIT
}

# series_bounds HEAD: prints "FOLDER LAST_COMMIT" for each folder. A tag named
# like a folder is at its last commit; when a rebase has left the tag behind, the
# commit with the same subject takes its place. What comes after the last tag
# belongs to the next folder of series/ that has none, else to the last.
series_bounds() {
	local head=$1 tags tag commit subject pos last=0 total folder rest

	total=$(sgit rev-list --count "$BASE_TAG..$head")
	[ "$total" -gt 0 ] || return 0
	[ "$(sgit rev-list --merges --count "$BASE_TAG..$head")" -eq 0 ] ||
		die "there is a merge between $BASE_TAG and $head; next: git rebase $BASE_TAG"
	tags=$(sgit tag --list '[0-9]*-*' | sort -V)
	local -a order found=()
	mapfile -t order < <(sgit rev-list --reverse "$BASE_TAG..$head")
	for tag in $tags; do
		commit=$(sgit rev-parse "$tag^{commit}")
		pos=$(position "$commit" "${order[@]}")
		if [ "$pos" -eq 0 ]; then
			subject=$(sgit log -1 --format=%s "$commit")
			commit=$(sgit log --format='%H %s' "$BASE_TAG..$head" |
				S=$subject awk '{ h = $1; sub(/^[^ ]* /, "") } $0 == ENVIRON["S"] { print h }')
			[ "$(wc -w <<< "$commit")" -eq 1 ] ||
				die "tag $tag points at '$subject', which is no longer on $head; next: git tag -f $tag LAST_COMMIT_OF_THAT_FOLDER"
			pos=$(position "$commit" "${order[@]}")
		fi
		[ "$pos" -gt "$last" ] ||
			die "tag $tag is not after the tag before it; next: git tag -f $tag LAST_COMMIT_OF_THAT_FOLDER"
		last=$pos
		found+=("$tag $commit")
	done
	if [ "$last" -lt "$total" ]; then
		rest=
		for folder in $(series_folders); do
			grep -qxF "$folder" <<< "$tags" || { rest=$folder; break; }
		done
		if [ -n "$rest" ]; then
			found+=("$rest ${order[-1]}")
		elif [ ${#found[@]} -gt 0 ]; then
			found[-1]="${found[-1]%% *} ${order[-1]}"
		else
			die "no folder in series/ and no tag to name one; next: git -C $SRC tag 1-NAME $head"
		fi
	fi
	printf '%s\n' "${found[@]}"
}

# position COMMIT LIST...: 1 for the first, 0 when it is not there
position() {
	local want=$1 i=0

	shift
	for commit in "$@"; do
		i=$((i + 1))
		[ "$commit" != "$want" ] || { printf '%s\n' "$i"; return; }
	done
	printf '0\n'
}

# cover_letter OLD FROM TO N: the text is written by hand and kept; number of
# patches, shortlog and diffstat are made new
cover_letter() {
	local old=$1 from=$2 to=$3 n=$4 zero

	zero=$(printf '%0*d' "${#n}" 0)

	if [ -r "$old" ]; then
		awk -v n="$n" -v zero="$zero" -v prefix="$SUBJECT_PREFIX" '
			!subject && sub(/^Subject: \[[^]]*\]/, "Subject: [" prefix " " zero "/" n "]") { subject = 1 }
			# the shortlog begins: "Name (N):", then lines that are set in
			{ line[NR] = $0 }
			/^[^ ].* \([0-9]+\):$/ { start = NR }
			/^-- $/ { end = NR }
			END {
				if (start)
					last = start - 1
				else if (end)
					last = end - 1
				else
					last = NR
				while (last && line[last] == "")
					last--
				for (i = 1; i <= last; i++)
					print line[i]
			}' "$old"
	else
		printf 'From %040d Mon Sep 17 00:00:00 2001\n' 0
		sgit log -1 --format='From: %an <%ae>%nDate: %aD' "$to"
		printf 'Subject: [%s %s/%s] *** SUBJECT HERE ***\n\n*** BLURB HERE ***\n' "$SUBJECT_PREFIX" "$zero" "$n"
	fi
	printf '\n'
	sgit shortlog -w72,2,4 "$from..$to"
	sgit diff -M --stat=72 --summary "$from" "$to"
	printf '\n-- \n'
}

# series_write DIR BOUNDS: write DIR/FOLDER/*.patch; BOUNDS is a file with what
# series_bounds printed; the text of cover letters is that of series/
FORMAT_PATCH=()
series_write() {
	local out=$1 bounds=$2 from=$BASE_TAG folder to n

	while read -r folder to; do
		mkdir -p "$out/$folder"
		n=$(sgit rev-list --count "$from..$to")
		sgit format-patch -q -o "$out/$folder" --subject-prefix="$SUBJECT_PREFIX" --numbered \
			--zero-commit --no-signature --no-thread --no-attach --no-base --no-notes \
			--no-ext-diff --no-textconv -M --stat=72 --suffix=.patch "${FORMAT_PATCH[@]}" "$from..$to"
		cover_letter "$SERIES_DIR/$folder/0000-cover-letter.patch" "$from" "$to" "$n" \
			> "$out/$folder/0000-cover-letter.patch"
		from=$to
	done < "$bounds"
}

# mirror_write DIR HEAD: the files that the series adds, and for each file that
# it edits NAME.diff against the base
mirror_write() {
	local out=$1 head=$2 status path

	while read -r status path; do
		mkdir -p "$out/$(dirname "$path")"
		case $status in
		A)	sgit cat-file blob "$head:$path" > "$out/$path"
			[ "$(sgit ls-tree "$head" -- "$path" | cut -c 1-6)" != 100755 ] || chmod 755 "$out/$path"
			;;
		*)	sgit diff --no-renames --no-ext-diff --no-textconv "$BASE_TAG" "$head" -- "$path" > "$out/$path.diff"
			;;
		esac
	done < <(sgit diff --no-renames --name-status "$BASE_TAG" "$head")
}

# mirror_paths: the mirrored paths that are in the checkout now: all below the
# directories that a kernel tree has at its top, and NAME.diff beside README.md
MIRROR_DIRS='Documentation arch block certs crypto drivers fs include init io_uring ipc kernel
	lib mm net rust samples scripts security sound tools usr virt'
mirror_paths() {
	local dir

	for dir in $MIRROR_DIRS; do
		[ ! -d "$TOP/$dir" ] || (cd "$TOP" && find "$dir" ! -type d)
	done
	(cd "$TOP" && find . -maxdepth 1 -type f -name '*.diff' -printf '%f\n')
}
