#!/bin/bash
# Boot a kernel image with virtme-ng on the guest root and run one command in it.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=guest/report.sh
. "$TOP/harness/guest/report.sh"

usage() {
	cat <<- END
	usage: vm.sh [option]... --image IMGDIR --log FILE -- COMMAND [ARG]...

	  --image DIR       directory with bzImage (harness/kernel.sh prints one)
	  --log FILE        output of the command; the kernel console goes to FILE.console
	  --cpus N          virtual CPUs (default 2)
	  --mem SIZE        memory (default 2G)
	  --timeout SECONDS limit for boot and command (default 600)
	  --ro NAME=DIR     host directory, read-only at /mnt/NAME in the guest
	  --rw NAME=DIR     host directory, writable at /mnt/NAME
	  --append ARGS     kernel command line
	  --allow REGEX     console lines that do not count as a kernel report
	  --icount          one CPU whose clock advances 1 ns per executed instruction
	  --quiet           guest output goes to the log only

	/mnt/harness/guest is a copy of harness/guest. The root is read-only and shared by all guests,
	/tmp and /mnt are tmpfs. Exit status: that of COMMAND; 124 time limit;
	255 the guest ended without a status (panic); 90 COMMAND succeeded, but the
	kernel reported a problem.
	END
}

image='' log='' cpus=2 mem=2G limit=600 icount=0 quiet=0 allow=''
append=() shares=()

while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) usage; exit 0 ;;
	--icount) icount=1; cpus=1; shift; continue ;;
	--quiet) quiet=1; shift; continue ;;
	--) shift; break ;;
	--*) [ $# -ge 2 ] || die "$1 needs a value; next: vm.sh --help" ;;
	esac
	case $1 in
	--image) image=$2 ;;
	--log) log=$2 ;;
	--cpus) cpus=$2 ;;
	--mem) mem=$2 ;;
	--timeout) limit=$2 ;;
	--ro) shares+=("ro $2") ;;
	--rw) shares+=("rw $2") ;;
	--append) append+=("$2") ;;
	--allow) allow=$2 ;;
	*) die "unknown option $1; next: vm.sh --help" ;;
	esac
	shift 2
done

need_root
if [ -z "$image" ] || [ -z "$log" ] || [ $# -eq 0 ]; then
	usage >&2
	exit 2
fi
[ -s "$image/bzImage" ] || die "no kernel in $image; next: harness/kernel.sh run"
[ -x "$ROOTFS/bin/bash" ] || die "no guest root in $ROOTFS; next: harness/rootfs.sh"
need_cmd vng virtme-ng
need_cmd qemu-system-x86_64 qemu-system-x86
[ "$icount" -eq 0 ] || cpus=1

mkdir -p "$(dirname "$log")"
console=$log.console
ctl=$(mktemp -d "${TMPDIR:-/tmp}/ovpn-gso-vm.XXXXXX")
pid=''

# shellcheck disable=SC2317 # called by the trap
cleanup() {
	trap - EXIT
	# "timeout" is the leader of the group that holds vng and QEMU
	[ -z "$pid" ] || kill -TERM "$pid" 2> /dev/null || true
	rm -rf "$ctl"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# modules of this very kernel, where it has some
[ ! -d "$image/modules/lib/modules" ] || shares+=("ro modules=$image/modules/lib/modules")

# kvm_boots: does a kernel get as far as the search for its root under KVM? Some
# machines have a /dev/kvm on which it does not. Asked once a boot of the host.
kvm_boots() {
	local verdict

	verdict=$CACHE/kvm-$(cat /proc/sys/kernel/random/boot_id)
	if [ ! -s "$verdict" ]; then
		rm -f "$CACHE"/kvm-*
		timeout -k 2 30 qemu-system-x86_64 -machine accel=kvm -cpu host -m 512M -nodefaults -no-reboot \
			-display none -serial stdio -kernel "$image/bzImage" -append "console=ttyS0 panic=-1" \
			< /dev/null > "$ctl/kvm" 2>&1 || true
		if grep -qa 'Unable to mount root' "$ctl/kvm"; then
			echo yes > "$verdict"
		else
			echo no > "$verdict"
		fi
	fi
	[ "$(cat "$verdict")" = yes ]
}

# as they are now: an edit must not reach a script that a guest is running
mkdir "$ctl/harness"
cp -r "$TOP/harness/guest" "$ctl/harness/"

# The guest's first script: mounts the shares, then runs the command. Its
# output is piped, because only one process may hold a virtio port open.
qemu=''
n=0
# shellcheck disable=SC2016 # for the guest
{
	printf '%s\n' '#!/bin/bash' 'set -e' 'mount -t tmpfs -o mode=1777 tmpfs /tmp' \
		'ln -s ctl/harness /mnt/harness'
	for s in "ro ctl=$ctl" "${shares[@]}"; do
		mode=${s%% *} s=${s#* }
		name=${s%%=*} dir=${s#*=}
		[ -d "$dir" ] || die "--$mode $name: no directory $dir"
		dir=$(realpath "$dir")
		qemu+=" -fsdev local,id=share$n,security_model=none,multidevs=remap,path=$(printf %q "${dir//,/,,}")"
		[ "$mode" = rw ] || qemu+=,readonly=on
		qemu+=" -device virtio-9p-pci,fsdev=share$n,mount_tag=$name"
		opts=trans=virtio,version=9p2000.L,access=any,msize=262144
		[ "$mode" = rw ] || opts+=,cache=loose,ro
		[ "$name" = ctl ] ||
			printf 'mkdir -p /mnt/%s\nmount -t 9p -o %s %s /mnt/%s\n' "$name" "$opts" "$name" "$name"
		n=$((n + 1))
	done
	[ ! -d "$image/modules/lib/modules" ] || printf 'mount --bind /mnt/modules /lib/modules\n'
	printf '%s\n' \
		'ln -sfn /proc/self/fd/1 /dev/stdout' \
		'ln -sfn /proc/self/fd/2 /dev/stderr' \
		'export HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8' \
		'cd /tmp' 'mkfifo /tmp/.out' 'cat < /tmp/.out &' 'out=$!' 'set +e'
	printf '%q ' "$@"
	# what the command left running may hold the pipe: do not wait for it
	printf '%s\n' '< /dev/null > /tmp/.out 2>&1' 'status=$?' \
		'for i in {1..20}; do kill -0 $out 2> /dev/null || break; sleep 0.1; done' \
		'exit $status'
} > "$ctl/run" || exit 1

args=(--run "$image/bzImage" --root "$ROOTFS" --user root --cpus "$cpus" --memory "$mem"
	--force-9p --disable-microvm --verbose
	--append "rootflags=version=9p2000.L,trans=virtio,access=any,cache=loose"
	--append "loglevel=7 console_msg_format=syslog")
[ ${#append[@]} -eq 0 ] || args+=("${append[@]/#/--append=}")

if [ "$icount" -eq 1 ]; then
	how="TCG, instruction counting"
	args+=(--disable-kvm)
	qemu+=" -cpu max -icount shift=0,sleep=off"
elif [ ! -r /dev/kvm ] || [ ! -w /dev/kvm ]; then
	how="TCG (no usable /dev/kvm)"
	args+=(--disable-kvm)
	qemu+=" -cpu max"
elif with_lock kvm kvm_boots; then
	how="KVM"
else
	how="TCG (/dev/kvm is there, but a kernel does not boot on it)"
	args+=(--disable-kvm)
	qemu+=" -cpu max"
fi
args+=("--qemu-opts=$qemu"
	--exec "mount -t tmpfs mnt /mnt && mkdir /mnt/ctl && mount -t 9p -o trans=virtio,version=9p2000.L ctl /mnt/ctl && exec bash /mnt/ctl/run")

say "booting $(basename "$image"), $cpus CPU, $mem, $how, limit $limit s: ${*##*/}"
: > "$console"
mkfifo "$ctl/out" "$ctl/con"
cat < "$ctl/con" >> "$console" & con=$!
if [ "$quiet" -eq 1 ]; then
	cat < "$ctl/out" > "$log" & out=$!
else
	tee "$log" < "$ctl/out" & out=$!
fi

timeout -k 10 "$limit" vng "${args[@]}" < /dev/null > "$ctl/out" 2> "$ctl/con" & pid=$!
status=0
wait "$pid" || status=$?
pid=''
wait "$con" "$out" || true

# virtme-run passes the guest's status on; vng turns each failure into its own
# message on stderr and a status of 1 or the command's
reports=$(grep -aE "$REPORT" "$console" | { [ -n "$allow" ] && grep -avE "$allow" || cat; }) || true
if [ -n "$reports" ]; then
	say "the kernel reported a problem ($console):"
	grep -aE -A 30 -m 3 "$REPORT" "$console" | head -n 80 >&2
	[ "$status" -ne 0 ] || status=90
fi
if [ "$status" -ne 0 ] && [ "$status" -ne 90 ]; then
	case $status in
	124|137) say "time limit of $limit s; next: read $log and $console, or give more with --timeout"; status=124 ;;
	255) say "the guest ended without a status (panic, or it did not boot); next: read $console" ;;
	*) say "the command failed with status $status" ;;
	esac
	say "last 40 lines of output:"
	tail -n 40 "$log" >&2
	say "last kernel warnings:"
	grep -aE '^<[0-4]>' "$console" | tail -n 20 >&2 || true
	case $status in 124|255) tail -n 40 "$console" >&2 ;; esac
fi
exit "$status"
