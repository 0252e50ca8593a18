#!/bin/bash
# usage: test-mail.sh [--quick]
# Tests of "make mail": every check refuses what it is there for (--quick: only
# that), and mail.sh as a whole, on a small tree of its own with a broken or a good
# series: what it refuses, what it writes, what it says of the base. Results:
# $LOGS/results/test-mail.tap.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/patches.sh"
. "$(dirname "$0")/guest/tap.sh"

quick=0
case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
--quick) quick=1 ;;
'') ;;
*) die "unknown argument '$1'; next: $0 -h" ;;
esac

SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT
AUTHOR='Bob Author <bob@author.org>'
SENDER='Ada Sender <ada@sender.org>'
NET_NEXT=https://git.kernel.org/pub/scm/linux/kernel/git/netdev/net-next.git

# ---- a kernel tree, small ----

# as BOB COMMAND...: with his name in commits
as_bob() {
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME='Bob Author' GIT_AUTHOR_EMAIL=bob@author.org \
		GIT_COMMITTER_NAME='Bob Author' GIT_COMMITTER_EMAIL=bob@author.org "$@"
}

# small_tree DIR: what checkpatch, kernel-doc and get_maintainer.pl need of a kernel
small_tree() {
	local dir=$1 name

	mkdir -p "$dir/drivers/net/ovpn" "$dir/scripts"
	for name in COPYING CREDITS Kbuild Makefile README; do
		echo "$name" > "$dir/$name"
	done
	mkdir "$dir"/{arch,include,fs,init,ipc,kernel,lib}
	for name in checkpatch.pl get_maintainer.pl spelling.txt const_structs.checkpatch; do
		cp "$SRC/scripts/$name" "$dir/scripts/"
	done
	cp -L "$SRC/scripts/kernel-doc" "$dir/scripts/"
	[ ! -L "$SRC/scripts/kernel-doc" ] || {
		rm "$dir/scripts/kernel-doc"
		ln -s "$(realpath "$SRC/scripts/kernel-doc")" "$dir/scripts/kernel-doc"
	}
	ln -s "$SRC/Documentation" "$dir/Documentation"
	echo 'obj-y := old.o' > "$dir/drivers/net/ovpn/Makefile"
	printf '%s\n' 'List of maintainers' '' 'OPENVPN DATA CHANNEL OFFLOAD' 'M:	Mia Maintainer <mia@kernel.org>' \
		'R:	Rob Reviewer <rob@kernel.org>' 'L:	openvpn-devel@lists.sourceforge.net (subscribers-only)' \
		'L:	netdev@vger.kernel.org' 'S:	Supported' 'F:	drivers/net/ovpn/' '' \
		'SELFTESTS' 'M:	"T. Ester" <tester@kernel.org>' 'L:	linux-kselftest@vger.kernel.org' 'S:	Maintained' 'F:	tools/testing/' \
		> "$dir/MAINTAINERS"
	as_bob git -C "$dir" init -q -b main
	as_bob git -C "$dir" add -A
	as_bob git -C "$dir" commit -q -m 'net: a small tree'
}

# commit TREE SUBJECT FILE: its content is standard input
commit() {
	mkdir -p "$1/$(dirname "$3")"
	cat > "$1/$3"
	as_bob git -C "$1" add -A
	printf '%s\n' "$2" '' 'There is a problem, and it costs something. This is how it is solved,' \
		'and this is the downside.' '' 'Assisted-by: LLM [tools]' | as_bob git -C "$1" commit -q -F -
}

# good_commits TREE: two on top of tag "base", as make tree leaves them
good_commits() {
	as_bob git -C "$1" tag base
	as_bob git -C "$1" checkout -q -b series
	commit "$1" 'ovpn: add a file' drivers/net/ovpn/new.c << 'END'
// SPDX-License-Identifier: GPL-2.0

/**
 * ovpn_new - do what is new
 * @count: how often
 *
 * Return: what there was before
 */
int ovpn_new(int count)
{
	return count - 1;
}
END
	commit "$1" 'selftests: ovpn: test it' tools/testing/selftests/net/ovpn/new.txt <<< 'a test'
	as_bob git -C "$1" tag 1-new
}

# cover DIR: give the exported series a cover letter
cover() {
	sed -i -e 's/\*\*\* SUBJECT HERE \*\*\*/ovpn: do something new/' \
		-e 's/^\*\*\* BLURB HERE \*\*\*$/What and why.\n\nBase\n====\n\nThe source package of a distribution./' "$1/0000-cover-letter.patch"
}

# ---- what mail.sh does ----

# mail ARG...: mail.sh on the small tree, its words in $SCRATCH/said. Nothing of the
# cache or the settings of the user takes part.
mail() {
	env -u COMMIT OVPN_GSO_CACHE="$SCRATCH/cache" LOGS="$SCRATCH/log" OUT="$SCRATCH/out" TREE="$SCRATCH/tree" KERNEL= BASE="$HOME_BASE" \
		SUBMITTER="$SENDER" REAUTHOR=1 VERSION=1 SERIES_DIR="$SCRATCH/series" "$@" "$TOP/harness/mail.sh" > "$SCRATCH/said" 2>&1
}

fail() {
	echo "$*"
	tail -n 15 "$SCRATCH/said"
	return 1
}

# refuses TEXT ARG...: it ends with an error that has TEXT, and writes nothing
refuses() {
	local text=$1

	shift
	rm -rf "$SCRATCH/out"
	! mail "$@" || { fail "it did not refuse"; return 1; }
	grep -qF -- "$text" "$SCRATCH/said" || { fail "it did not say '$text'"; return 1; }
	[ ! -e "$SCRATCH/out" ] || { fail "it wrote mails all the same"; return 1; }
}

# with_series NUMBER SED_SCRIPT COMMAND...: with one mail edited, or all
with_series() {
	local number=$1 script=$2 rc=0

	shift 2
	cp -r "$SCRATCH/series" "$SCRATCH/kept"
	sed -i "$script" "$SCRATCH/series/1-new/$number"*
	! diff -rq "$SCRATCH/series" "$SCRATCH/kept" > /dev/null || { echo "the case changes nothing"; rc=1; }
	[ "$rc" -ne 0 ] || "$@" || rc=1
	rm -rf "$SCRATCH/series"
	mv "$SCRATCH/kept" "$SCRATCH/series"
	return "$rc"
}

# has FILE LINE...: each of them, as a whole line
has() {
	local file=$1 line

	shift
	for line in "$@"; do
		grep -qxF -- "$line" "$file" || { echo "$(basename "$file") lacks '$line':"; sed '/^diff/,$d' "$file"; return 1; }
	done
}

writes_mails() {
	local out=$SCRATCH/out/1-new

	rm -rf "$SCRATCH/out"
	mail || { fail "it refused"; return 1; }
	has "$out/0001-ovpn-add-a-file.patch" "From: $SENDER" 'To: Mia Maintainer <mia@kernel.org>' 'Cc: Rob Reviewer <rob@kernel.org>,' \
		$'\tnetdev@vger.kernel.org' "Signed-off-by: $SENDER" || return 1
	has "$out/0002-selftests-ovpn-test-it.patch" 'To: "T. Ester" <tester@kernel.org>' "Signed-off-by: $SENDER" || return 1
	has "$out/0000-cover-letter.patch" "From: $SENDER" 'To: "T. Ester" <tester@kernel.org>,' $'\tMia Maintainer <mia@kernel.org>' 'Ada Sender (2):' || return 1
	grep -q 'NOT READY TO SEND' "$SCRATCH/said" || { fail "takes the source of a distribution for an official base"; return 1; }
	grep -q '3 mails through a server on 127.0.0.1, to 6 addresses' "$SCRATCH/said" || { fail "no rehearsal"; return 1; }
	grep -q '^Dry-Sent \[PATCH net-next 2/2\]' "$SCRATCH/out/1-new.dry-run" || grep -q '^Dry-OK' "$SCRATCH/out/1-new.dry-run" ||
		{ tail -n 5 "$SCRATCH/out/1-new.dry-run"; return 1; }
}

# what was mailed gives the tree that the commits gave
mbox_applies() {
	rm -rf "$SCRATCH/am"
	git clone -q "$SCRATCH/tree" "$SCRATCH/am" 2> /dev/null
	as_bob git -C "$SCRATCH/am" checkout -q base
	as_bob git -C "$SCRATCH/am" am -q --empty=drop "$SCRATCH/out/1-new.mbox" || return 1
	git -C "$SCRATCH/am" diff --exit-code --stat HEAD origin/series
}

keeps_author() {
	with_series '' "s/^Assisted-by.*/&\nSigned-off-by: $AUTHOR/" mail REAUTHOR=0 || { fail "it refused"; return 1; }
	has "$SCRATCH/out/1-new/0001-ovpn-add-a-file.patch" "From: $AUTHOR" "Signed-off-by: $AUTHOR" "Signed-off-by: $SENDER"
}

new_version() {
	with_series 0000 's/^What and why./&\n\nChanges since v1: none./' mail VERSION=2 || { fail "it refused"; return 1; }
	grep -q '^Subject: \[PATCH net-next v2 1/2\]' "$SCRATCH/out/1-new/0001-ovpn-add-a-file.patch"
}

# on_base URL: the same commits in a clone that has its base from there
on_base() {
	rm -rf "$SCRATCH/kernel" "$SCRATCH/worktree"
	git clone -q -b main "$SCRATCH/tree" "$SCRATCH/kernel" 2> /dev/null
	git -C "$SCRATCH/kernel" remote set-url origin "$1"
	mail KERNEL="$SCRATCH/kernel" || { fail "it refused"; return 1; }
}

knows_net_next() {
	on_base "$NET_NEXT" || return 1
	! grep -q 'NOT READY' "$SCRATCH/said" || { fail "takes net-next for something else"; return 1; }
	has "$SCRATCH/out/1-new/0000-cover-letter.patch" "base-commit: $(git -C "$SCRATCH/tree" rev-parse base)" || return 1
	! grep -q 'distribution' "$SCRATCH/out/1-new/0000-cover-letter.patch" || { echo "still says that the base is a distribution's"; return 1; }
}

knows_no_other() {
	on_base "$1" || return 1
	grep -q 'NOT READY TO SEND' "$SCRATCH/said" || { fail "takes $1 for official"; return 1; }
}

whole() {
	tap_check 'writes mails with recipients and sign-off' writes_mails || true
	tap_check 'the mbox applies and gives the same tree' mbox_applies || true
	tap_check 'keeps an author who signed off' keeps_author || true
	tap_check 'version 2' new_version || true
	tap_check 'an official base' knows_net_next || true
	tap_check 'no official base: somebody else has it' knows_no_other https://example.org/netdev/net-next.git || true
	tap_check 'no official base: stable is not net-next' knows_no_other https://git.kernel.org/pub/scm/linux/kernel/git/stable/linux.git || true
	tap_check 'refuses: nobody sends' refuses "who sends?" SUBMITTER= || true
	tap_check 'refuses: no address' refuses "who sends?" SUBMITTER='Ada Sender' || true
	tap_check 'refuses: mails in the checkout' refuses "is in the checkout" OUT="$TOP/mails" || true
	tap_check 'refuses: the author has not signed off' refuses 'fails: 1-new: signed off by author' REAUTHOR=0 || true
	tap_check 'refuses: version 2 without changes' refuses 'fails: 1-new: changes since last version' VERSION=2 || true
	tap_check 'refuses: no cover letter text' with_series 0000 's/^What and why./*** BLURB HERE ***/' refuses 'fails: 1-new: no placeholders' || true
	tap_check 'refuses: checkpatch' with_series 0001 's/^+\treturn.*/+\treturn (count-1);/' refuses 'fails: checkpatch 1-new/0001-ovpn-add-a-file.patch' || true
	tap_check 'refuses: line of 81 columns' with_series 0001 "s/^+\treturn.*/+\treturn count - $(printf '%059d' 1);/" refuses 'fails: checkpatch 1-new/0001-ovpn-add-a-file.patch' || true
	tap_check 'refuses: kernel-doc' with_series 0001 's/@count:/@counts:/' refuses 'fails: kernel-doc' || true
	tap_check 'refuses: does not apply' with_series 0002 '/^new file mode/d; s,^--- /dev/null,--- a/tools/testing/selftests/net/ovpn/new.txt,; s/^@@.*/@@ -1 +1 @@\n-b test/' \
		refuses 'does not apply' || true
}

tap_begin "$LOGS/results/test-mail.tap" test-mail
line=
while IFS= read -r line; do
	case $line in
	'not ok '*) tap_case not "${line#not ok }" 'next: harness/test_mail_checks.py'; echo "$line" ;;
	'ok '*) tap_case ok "${line#ok }" ;;
	end) break ;;
	esac
done < <(python3 "$TOP/harness/test_mail_checks.py" 2>&1 || true)
[ "$line" = end ] || tap_case not 'test_mail_checks.py came to its end' 'next: harness/test_mail_checks.py'
if [ "$quick" = 1 ]; then
	:
elif ! sgit rev-parse -q --verify "refs/tags/$BASE_TAG" > /dev/null 2>&1; then
	tap_case skip 'mail.sh as a whole' 'no git tree: make tree'
elif [ ! -x "$(git --exec-path)/git-send-email" ]; then
	tap_case skip 'mail.sh as a whole' 'git send-email is not installed: harness/deps.sh'
else
	small_tree "$SCRATCH/tree"
	good_commits "$SCRATCH/tree"
	mkdir "$SCRATCH/series"
	REPO=$SCRATCH/tree SERIES_DIR=/nonexistent series_write "$SCRATCH/series" <(printf '1-new %s\n' "$(git -C "$SCRATCH/tree" rev-parse series)")
	cover "$SCRATCH/series/1-new"
	whole
fi
rc=0
tap_end || rc=1
say "$(grep -c '^ok' "$LOGS/results/test-mail.tap" || true) ok, $(grep -c '^not ok' "$LOGS/results/test-mail.tap" || true) not ok in $SECONDS s ($LOGS/results/test-mail.tap)"
exit "$rc"
