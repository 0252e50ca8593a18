#!/bin/bash
# Inside the guest: run ovpn selftests one after another. For each test NAME,
# /mnt/out gets NAME.log, NAME.dmesg (reports of the kernel) and, when it has
# ended, NAME.rc ("status seconds").
# usage: kselftest.sh LIMIT_SECONDS TEST...

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=report.sh
. "$(dirname "${BASH_SOURCE[0]}")/report.sh"

limit=$1
shift

# what a test that was ended by force left behind
tidy() {
	local ns

	for ns in $(ip netns list | awk '{ print $1 }'); do
		ip netns pids "$ns" | xargs -r kill -9 2> /dev/null || true
		ip netns del "$ns"
	done
}

# leaks: what kmemleak finds now goes to the kernel log, and is reported as a
# warning there. It doubts what is younger than 5 s, and what it saw once.
leaks() {
	local file=/sys/kernel/debug/kmemleak

	[ -w "$file" ] || return 0
	sleep 6
	echo scan > "$file"
	sleep 1
	echo scan > "$file"
	cat "$file" >> "/mnt/out/$1.kmemleak"
	echo clear > "$file"
}

mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
cd "$SELFTESTS/net/ovpn"
# for those in which a test times itself
export KSFT_MACHINE_SLOW=yes
# where timeout(1) has patience
export PATH=${BASH_SOURCE[0]%/*}/bin:$PATH
dmesg -C

# run TEST: sets rc
run() {
	rc=0
	# pings of these tests flood: their dots are no result
	timeout -k 30 "$limit" "./$1" > "/mnt/out/$1.log" 2>&1 < /dev/null || rc=$?
	[ $rc -ne 124 ] && [ $rc -ne 137 ] || echo "# time limit of $limit s" >> "/mnt/out/$1.log"
	tidy
}

for t in "$@"; do
	say "start $t"
	begin=$SECONDS
	run "$t"
	# the tests wait for conditions, not for time, but a host that does not run
	# the guest for a minute breaks any limit: once more
	if [ $rc -ne 0 ] && [ $rc -ne 4 ]; then
		say "$t: status $rc: $(grep '^not ok' "/mnt/out/$t.log" | head -n 1); again"
		mv "/mnt/out/$t.log" "/mnt/out/$t.log.1"
		run "$t"
	fi
	leaks "$t"
	dmesg > /tmp/dmesg
	dmesg -C
	grep -aE -A 25 "$REPORT" /tmp/dmesg > "/mnt/out/$t.dmesg" || rm -f "/mnt/out/$t.dmesg"
	echo "$rc $((SECONDS - begin))" > "/mnt/out/$t.rc"
	say "end $t: status $rc, $((SECONDS - begin)) s, $(grep -c '^ok' "/mnt/out/$t.log" || true) ok, $(grep -c '^not ok' "/mnt/out/$t.log" || true) not ok"
done
