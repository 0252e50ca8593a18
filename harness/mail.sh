#!/bin/bash
# usage: SUBMITTER='Name <address>' mail.sh [FOLDER]...
# Make the series in FOLDER (a name in series/, or a path; default: all of series/)
# ready for netdev: signed off by the submitter, To and Cc of each patch by
# scripts/get_maintainer.pl, checked as netdev checks them. What fails is listed,
# and then nothing is written. Else: $OUT/FOLDER/*.patch for git send-email,
# $OUT/FOLDER.mbox for git am and mail programs, the command that sends them, and
# a rehearsal of it with --dry-run and with a mail server of its own on 127.0.0.1.
# Nothing is ever sent anywhere else.
#   REAUTHOR=1      the submitter becomes the author as well
#   VERSION=2       [PATCH net-next v2 ...]
#   OUT=/path       default: $CACHE/mail
#   KERNEL=/path    the commits of the tree that "make tree KERNEL=/path" made, for
#                   an official base

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/patches.sh"
. "$(dirname "$0")/guest/tap.sh"
. "$(dirname "$0")/patch-checks.sh"

REBASE_ON='net-next (git.kernel.org, netdev/net-next.git) or ovpn-net-next (github.com/OpenVPN/ovpn-net-next)'

case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
-*)	die "unknown option $1; next: $0 -h" ;;
esac

# ---- the base ----

# official_tree URL: the short name of a tree that netdev knows
official_tree() {
	case ${1%/} in
	*[/.@]kernel.org[:/]*/netdev/net-next.git|*[/.@]kernel.org[:/]*/netdev/net-next) echo net-next ;;
	*[/.@]kernel.org[:/]*/netdev/net.git|*[/.@]kernel.org[:/]*/netdev/net) echo net ;;
	*[/.@]kernel.org[:/]*/torvalds/linux.git|*[/.@]kernel.org[:/]*/torvalds/linux) echo linux ;;
	*[/.@]kernel.org[:/]*/linux/kernel/git/stable/*) echo stable ;;
	*[/.@]kernel.org[:/]*/next/linux-next*) echo linux-next ;;
	*[/.@]github.com[:/]OpenVPN/ovpn-net-next|*[/.@]github.com[:/]OpenVPN/ovpn-net-next.git) echo ovpn-net-next ;;
	esac
}

# base_tree COMMIT: the official tree that has the commit, as far as the remotes
# of KERNEL know (nobody is asked); empty when none does
base_tree() {
	local remote name other=''

	[ -n "$KERNEL" ] && [ -e "$KERNEL/.git" ] || return 0
	for remote in $(REPO=$KERNEL sgit remote); do
		name=$(official_tree "$(REPO=$KERNEL sgit remote get-url "$remote")")
		[ -n "$name" ] || continue
		[ -n "$(REPO=$KERNEL sgit for-each-ref --count=1 --contains "$1" "refs/remotes/$remote/" 2> /dev/null)" ] || continue
		case $name in
		net-next|ovpn-net-next) echo "$name"; return ;;
		esac
		other=$name
	done
	echo "$other"
}

# base_verdict COMMIT: sets BASE_READY and BASE_SAYS
base_verdict() {
	local tree

	BASE_READY=0
	tree=$(base_tree "$1")
	case $tree in
	net-next|ovpn-net-next)
		BASE_READY=1
		BASE_SAYS="base: $tree at $(sgit log -1 --format='%h ("%s")' "$1")"
		return
		;;
	?*)	BASE_SAYS="base: $(sgit log -1 --format='%h ("%s")' "$1"), in $tree and not in net-next" ;;
	*)	if [ -z "$KERNEL" ]; then
			BASE_SAYS="base: $(sgit log -1 --format=%s "$1"), the source package of a distribution: no commit that netdev could apply to"
		else
			BASE_SAYS="base: $(sgit log -1 --format='%h ("%s")' "$1") of $KERNEL, which no remote of it on kernel.org is known to have"
		fi
		;;
	esac
}

# ---- the mails ----

# sign BOUNDS: all commits again, signed off; prints new bounds
sign() {
	local parent from=$BASE_TAG folder to commit
	local name=${SUBMITTER%% <*} address=${SUBMITTER##*<}
	local -a author

	address=${address%>}
	parent=$(sgit rev-parse "$BASE_TAG^{commit}")
	while read -r folder to; do
		for commit in $(sgit rev-list --reverse "$from..$to"); do
			mapfile -t author < <(sgit log -1 --format='%an%n%ae' "$commit")
			[ "${REAUTHOR:-0}" != 1 ] || author=("$name" "$address")
			parent=$(sgit log -1 --format=%B "$commit" |
				git interpret-trailers --no-divider --if-exists addIfDifferent --trailer "Signed-off-by: $SUBMITTER" |
				sgit stripspace |
				GIT_AUTHOR_NAME=${author[0]} GIT_AUTHOR_EMAIL=${author[1]} \
				GIT_AUTHOR_DATE=$(sgit log -1 --format=%aD "$commit") \
				GIT_COMMITTER_NAME=$name GIT_COMMITTER_EMAIL=$address \
				sgit commit-tree "$commit^{tree}" -p "$parent")
		done
		printf '%s %s\n' "$folder" "$parent"
		from=$to
	done < "$1"
}

# encoded: lines "NAME <ADDRESS>" as they may stand in a header
encoded() {
	"$PYTHON" -c 'import sys, email.utils as u
print(",\n\t".join(u.formataddr(u.parseaddr(line.strip())) for line in sys.stdin))'
}

# cover_sent FILE BASE_COMMIT: a cover letter is from whoever sends it; on an official
# base it names that instead of what its section "Base" says
cover_sent() {
	local file=$1 base=''

	[ "$BASE_READY" = 0 ] || base=$(sgit rev-parse "$2^{commit}")
	awk -v from="$(encoded <<< "$SUBMITTER")" -v base="$base" -v says="${BASE_SAYS#base: }" '
		!body && /^From: / { print "From: " from; folded = 1; next }
		!body && folded && /^[ \t]/ { next }
		{ folded = 0 }
		!NF { body = 1 }
		base && /^Base$/ { section = 1; print; next }
		section && /^=+$/ { print; print ""; print says; print ""; next }
		section && /^[^ ].* \([0-9]+\):$/ { section = 0 }
		section { next }
		base && /^-- $/ { print "base-commit: " base; print "" }
		{ print }' "$file" > "$file.new"
	mv "$file.new" "$file"
}

# a directory in which get_maintainer.pl runs: the names of the tree, and
# MAINTAINERS as the series leaves it. No git in it: the history of a packaged
# kernel names nobody.
maintainer_root() {
	local root=$SCRATCH/root file

	mkdir -p "$root/scripts"
	find "$SRC" -mindepth 1 -maxdepth 1 ! -name .git ! -name scripts ! -name MAINTAINERS -exec ln -s -t "$root" {} +
	for file in MAINTAINERS scripts/get_maintainer.pl .get_maintainer.ignore .mailmap; do
		rm -f "$root/$file"
		! sgit cat-file -e "$HEAD_COMMIT:$file" 2> /dev/null || sgit show "$HEAD_COMMIT:$file" > "$root/$file"
	done
}

# get_maintainers MAIL...: MAIL.people gets lines "NAME <ADDRESS> (ROLE:SECTION)"
get_maintainers() {
	# shellcheck disable=SC2016  # for the inner shell
	(cd "$SCRATCH/root" && printf '%s\0' "$@" | xargs -0 -n 1 -P "$JOBS" sh -c '
		perl scripts/get_maintainer.pl --nogit --nogit-fallback --rolestats "$0" > "$0.people"') ||
		die "get_maintainer.pl failed; next: see its message above"
}

# people ROLE FILE: those of get_maintainer's lines who have it, as "To:" wants them
people() {
	grep -E "$1" "$2" | sed -E 's/ +\((maintainer|supporter|reviewer|[a-z ]*list)\b.*//' | sort -u | encoded
}

# address_mails FOLDER: To and Cc for each of its mails, the cover letter goes to all;
# whose address is whose, for the check, goes to maintainers
address_mails() {
	local cover=$SERIES_DIR/$1/0000-cover-letter.patch mail
	local -a mails

	mapfile -t mails < <(folder_patches "$1")
	get_maintainers "${mails[@]}"
	cat "${mails[@]/%/.people}" > "$cover.people"
	for mail in "$cover" "${mails[@]}"; do
		with_recipients "$mail" "$(people '\((maintainer|supporter)' "$mail.people")" "$(people '\((reviewer|.*list)' "$mail.people")"
		[ "$mail" = "$cover" ] ||
			grep -oE '[^<> ()]+@[^<> ()]+' "$mail.people" | sed "s,^,$(basename "$mail")\t," >> "$SCRATCH/maintainers"
		rm "$mail.people"
	done
}

# with_recipients MAIL TO CC: write the two headers
with_recipients() {
	TO=$2 CC=$3 awk '
		!body && !NF {
			if (ENVIRON["TO"]) print "To: " ENVIRON["TO"]
			if (ENVIRON["CC"]) print "Cc: " ENVIRON["CC"]
			body = 1
		}
		{ print }' "$1" > "$1.new"
	mv "$1.new" "$1"
}

# ---- sending ----

# the same options for the rehearsal and for the real thing: the headers say who
# gets it, not the text
SEND=(git send-email --suppress-cc=author --suppress-cc=sob --suppress-cc=misc-by --suppress-cc=bodycc
	--thread --no-chain-reply-to)

# rehearse FOLDER: what git send-email would do, then all of it with our own server
rehearse() {
	local folder=$1 sink=$SCRATCH/sink-$1 port n want in name=${SUBMITTER%% <*} address
	local -a send

	want=$(find "$OUT/$folder" -name '*.patch' | wc -l)
	address=${SUBMITTER##*<} address=${address%>}
	coproc SINK { exec "$PYTHON" "$TOP/harness/smtp-sink.py" "$sink"; }
	read -r port <&"${SINK[0]}"
	in=${SINK[1]}
	# neither the settings of the user nor those of a repository
	send=(env -u GIT_DIR GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CEILING_DIRECTORIES="$OUT"
		GIT_AUTHOR_NAME="$name" GIT_AUTHOR_EMAIL="$address" GIT_COMMITTER_NAME="$name" GIT_COMMITTER_EMAIL="$address"
		"${SEND[@]}" --from="$SUBMITTER" --confirm=never --smtp-server=127.0.0.1 --smtp-server-port="$port" --smtp-encryption=none --smtp-auth=none)
	(cd "$OUT" && "${send[@]}" --dry-run "$folder"/*.patch < /dev/null) > "$OUT/$folder.dry-run" 2>&1 ||
		die "git send-email --dry-run failed: $(tail -n 1 "$OUT/$folder.dry-run"); next: see $OUT/$folder.dry-run"
	(cd "$OUT" && "${send[@]}" "$folder"/*.patch < /dev/null) > "$SCRATCH/sent" 2>&1 ||
		die "git send-email to 127.0.0.1 failed: $(tail -n 1 "$SCRATCH/sent"); next: see $OUT/$folder.dry-run"
	exec {in}>&-
	wait "$SINK_PID"
	n=$(find "$sink" -name '*.eml' | wc -l)
	[ "$n" -eq "$want" ] || die "$n of $want mails came through; next: see $OUT/$folder.dry-run"
	[ "$want" -eq 1 ] || [ "$(grep -l '^In-Reply-To: ' "$sink"/*.eml | wc -l)" -eq $((want - 1)) ] ||
		die "the mails are no thread; next: see $OUT/$folder.dry-run"
	say "$folder: $n mails through a server on 127.0.0.1, to $(cat "$sink"/*.to | sort -u | wc -l) addresses; $OUT/$folder.dry-run is what --dry-run says"
}

# ---- all of it ----

[[ ${SUBMITTER:-} =~ ^[^\<\>]+\ \<[^@\<\>\ ]+@[^@\<\>\ ]+\>$ ]] ||
	die "who sends? next: make mail SUBMITTER='Name <address>'"
[[ ${VERSION:-1} =~ ^[1-9][0-9]*$ ]] || die "VERSION=$VERSION is no number; next: VERSION=2"
OUT=${OUT:-$CACHE/mail}
OUT=$(realpath -m "$OUT")
case $OUT/ in
"$TOP"/*) die "OUT=$OUT is in the checkout; next: OUT=/another/path" ;;
esac
need_cmd git git
need_cmd perl perl
if [ ! -x "$(git --exec-path)/git-send-email" ] || ! perl -MMail::Address -e 1 2> /dev/null; then
	die "git send-email is missing, or its Perl modules; next: harness/deps.sh, or apt-get install git-email libmailtools-perl"
fi
sgit rev-parse -q --verify "refs/tags/$BASE_TAG" > /dev/null 2>&1 ||
	die "no git tree in $SRC; next: make tree${KERNEL:+ KERNEL=$KERNEL}"
SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT

# what is mailed, as commits on the base
folders=()
if [ $# -gt 0 ] && [ -d "$1" ] && [ ! -d "$SERIES_DIR/$1" ]; then
	mkdir "$SCRATCH/given"
	for path in "$@"; do
		[ -d "$path" ] || die "no directory $path; next: $0 -h"
		cp -r "$path" "$SCRATCH/given/"
		folders+=("$(basename "$path")")
	done
	SERIES_DIR=$SCRATCH/given
else
	for path in "$@"; do
		[ -d "$SERIES_DIR/$path" ] || die "no series/$path; next: one of $(series_folders | tr '\n' ' ')"
		folders+=("$path")
	done
	[ ${#folders[@]} -gt 0 ] || mapfile -t folders < <(series_folders)
fi
if [ -n "$KERNEL" ]; then
	series_bounds "$(sgit rev-parse "refs/heads/$SERIES_BRANCH^{commit}")" > "$SCRATCH/applied"
else
	# its trap for EXIT is not ours
	(series_apply "$BASE_TAG") > "$SCRATCH/applied"
fi
base_verdict "$BASE_TAG"
sign "$SCRATCH/applied" > "$SCRATCH/bounds"
HEAD_COMMIT=$(tail -n 1 "$SCRATCH/bounds" | cut -d ' ' -f 2)
[ "${VERSION:-1}" -eq 1 ] || SUBJECT_PREFIX="$SUBJECT_PREFIX v$VERSION"
mkdir "$SCRATCH/mails"
series_write "$SCRATCH/mails" "$SCRATCH/bounds"
maintainer_root

# To, Cc, and all checks
tap_begin "$LOGS/results/mail.tap" mail
: > "$SCRATCH/maintainers"
SERIES_DIR=$SCRATCH/mails
patches=()
for folder in "${folders[@]}"; do
	say "$folder: recipients and checks"
	cover_sent "$SCRATCH/mails/$folder/0000-cover-letter.patch" "$BASE_TAG"
	mapfile -t -O ${#patches[@]} patches < <(folder_patches "$folder")
	: > "$SCRATCH/maintainers"
	address_mails "$folder"
	mail_cases "$folder" --submitter "$SUBMITTER" --maintainers "$SCRATCH/maintainers" "$SCRATCH/mails/$folder"
done
mapfile -t files < <(touched 'drivers/net/ovpn/*.[ch]' 'net/*.[ch]' 'include/net/*.h')
extract "$BASE_TAG" "$SCRATCH/base" "${files[@]}"
extract "$HEAD_COMMIT" "$SCRATCH/head" "${files[@]}"
tap_check kernel-doc kernel_doc "${files[@]}" || true
say "checkpatch of ${#patches[@]} patches: remembered, or up to a minute each"
checkpatch_all "${patches[@]}"
failed=$(tap_failures)
tap_end || true
if [ "$failed" -gt 0 ]; then
	echo
	grep '^not ok' "$LOGS/results/mail.tap" | sed -E 's/^not ok [0-9]+ mail: /  fails: /'
	die "$failed of $(grep -cE '^(not )?ok' "$LOGS/results/mail.tap") checks fail, nothing is written; next: what the lines above say ($LOGS/results/mail.tap)"
fi

mkdir -p "$OUT"
for folder in "${folders[@]}"; do
	rm -rf "${OUT:?}/$folder" "$OUT/$folder.mbox" "$OUT/$folder.dry-run"
	cp -r "$SCRATCH/mails/$folder" "$OUT/$folder"
	cat "$OUT/$folder"/*.patch > "$OUT/$folder.mbox"
	rehearse "$folder"
done
say "$(grep -c '^ok' "$LOGS/results/mail.tap") checks passed ($LOGS/results/mail.tap). Builds and guests are not among them: make test"

again=
[ "${REAUTHOR:-0}" != 1 ] || again+=' REAUTHOR=1'
[ "${VERSION:-1}" = 1 ] || again+=" VERSION=$VERSION"
echo
echo "$BASE_SAYS"
if [ "$BASE_READY" = 0 ]; then
	cat <<- END
		NOT READY TO SEND. Patches for netdev are on $REBASE_ON:
		  make tree KERNEL=/path/to/net-next     # a clone from there; says what does not apply
		  make test KERNEL=/path/to/net-next
		  make mail KERNEL=/path/to/net-next SUBMITTER='$SUBMITTER'$again
		After that, to send:
	END
else
	echo "to send:"
fi
for folder in "${folders[@]}"; do
	printf "  %s \\\\\n    --from='%s' --confirm=always %q/*.patch\n" "${SEND[*]}" "$SUBMITTER" "$OUT/$folder"
done
[ ${#folders[@]} -eq 1 ] ||
	echo "one after the other: netdev takes $(sed -n 's/^MAX_PATCHES = //p' "$TOP/harness/mail_checks.py") patches at a time, and each series needs those before it"
[ -z "$(sed -n '/^OPENVPN DATA CHANNEL/,/^$/s/^L:.*openvpn-devel.*/x/p' "$SCRATCH/root/MAINTAINERS")" ] ||
	echo "openvpn-devel@lists.sourceforge.net takes mail of subscribers only: subscribe, then add --cc=openvpn-devel@lists.sourceforge.net"
