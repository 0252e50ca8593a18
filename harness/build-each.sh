#!/bin/bash
# usage: build-each.sh [-h]
# Build what the series touches at every patch: as =y, as =m, without IPv6, and for 32
# bits, each with W=1. A warning is an error. What was built once is not built again.
# Results: $LOGS/results/build-each.tap.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/patches.sh"
. "$(dirname "$0")/guest/tap.sh"

VARIANTS='y m noipv6 i386'
# a checkout of its own, so that kernels can be built meanwhile
BUILD=$CACHE/build/$BASE_KEY-each

# what is different from configs/run.config
variant_config() {
	case $1 in
	y)	;;
	m)	printf '%s\n' CONFIG_MODULES=y CONFIG_OVPN=m ;;
	noipv6)	printf '%s\n' '# CONFIG_IPV6 is not set' ;;
	i386)	printf '%s\n' CONFIG_X86_32=y CONFIG_HIGHMEM4G=y '# CONFIG_64BIT is not set' ;;
	esac
}

# lines that must be in the configuration that comes out, else the variant is none
variant_expects() {
	case $1 in
	y)	printf '%s\n' CONFIG_OVPN=y CONFIG_IPV6=y CONFIG_64BIT=y ;;
	m)	printf '%s\n' CONFIG_OVPN=m CONFIG_IPV6=y CONFIG_64BIT=y ;;
	noipv6)	printf '%s\n' CONFIG_OVPN=y '# CONFIG_IPV6 is not set' ;;
	i386)	printf '%s\n' CONFIG_OVPN=y CONFIG_IPV6=y CONFIG_X86_32=y ;;
	esac
}

# vmake VARIANT ARGS...
vmake() {
	local obj=$CACHE/obj/$BASE_KEY/each-$1 arch=x86_64

	[ "$1" != i386 ] || arch=i386
	shift
	make -C "$BUILD" O="$obj" ARCH="$arch" CC='ccache gcc' HOSTCC='ccache gcc' \
		KBUILD_BUILD_TIMESTAMP=@0 "$@" < /dev/null
}

# object_targets COMMIT: what there is at that commit of all that the series touches
object_targets() {
	local file

	printf 'drivers/net/ovpn/\n'
	for file in $SOURCES; do
		! sgit cat-file -e "$1:$file" 2> /dev/null || printf '%s\n' "${file%.c}.o"
	done
}

# changes when anything does that may change what the compiler says
state_key() {
	{
		sgit ls-tree "$1" | grep -vP '\t(tools|Documentation|MAINTAINERS|samples|rust)$'
		variant_config "$2"
		cat "$TOP/configs/run.config"
		gcc --version
	} | sha256sum | cut -c 1-20
}

configure() {
	local variant=$1 commit=$2 obj=$CACHE/obj/$BASE_KEY/each-$1 key line

	key=$({ sgit ls-tree -r "$commit" -- drivers/net/Kconfig drivers/net/ovpn net/Kconfig net/core lib/Kconfig lib/Kconfig.debug |
		grep Kconfig; cat "$TOP/configs/run.config"; variant_config "$variant"; } | sha256sum)
	[ "$(cat "$obj/.ovpn-gso-config" 2> /dev/null)" != "$key" ] || return 0
	mkdir -p "$obj"
	if [ "$variant" = i386 ]; then
		grep -v '^CONFIG_64BIT' "$TOP/configs/run.config"
	else
		cat "$TOP/configs/run.config"
	fi > "$obj/fragment"
	variant_config "$variant" >> "$obj/fragment"
	vmake "$variant" -s KCONFIG_ALLCONFIG="$obj/fragment" allnoconfig || return 1
	while read -r line; do
		grep -qxF "$line" "$obj/.config" || { echo "$line did not survive in variant $variant"; return 1; }
	done < <(variant_expects "$variant")
	printf '%s\n' "$key" > "$obj/.ovpn-gso-config"
}

# symbols that the module needs from elsewhere
undefined() {
	local obj=$CACHE/obj/$BASE_KEY/each-m/drivers/net/ovpn

	find "$obj" -name '*.o' ! -name '.*' -exec nm {} + 2> /dev/null |
		awk '$1 == "U" { u[$2] } $2 ~ /^[TDRBVW]$/ { d[$3] } END { for (s in u) if (!(s in d)) print s }' | sort
}

# a module can use only what is exported; all but what the base uses is looked up
all_exported() {
	local commit=$1 now symbol bad=0

	now=$(undefined)
	if [ "$commit" = "$BASE_COMMIT" ]; then
		printf '%s\n' "$now" > "$KEPT/undefined-$BASE_KEY"
		return 0
	fi
	while read -r symbol; do
		[ -n "$symbol" ] || continue
		# static calls are exported by the name of the function
		symbol=${symbol#__SC[TK]__}
		sgit grep -qE "EXPORT_[A-Z0-9_]+\([[:space:]]*${symbol}[[:space:]]*[,)]" "$commit" -- \
			arch/x86 crypto drivers/net fs include kernel lib mm net security ||
			{ echo "drivers/net/ovpn uses $symbol, which no module can: not exported"; bad=1; }
	done < <(comm -13 "$KEPT/undefined-$BASE_KEY" - <<< "$now")
	return "$bad"
}

# build_one COMMIT VARIANT: leaves $(kept ...), or, with .failed behind it, the reason
build_one() {
	local commit=$1 variant=$2 log=$LOGS/build-each-$2.log kept targets

	kept=$(kept "$commit" "$variant")
	rm -f "$kept.failed"
	# what is not part of such a kernel can not be compiled for it
	mapfile -t targets < <(object_targets "$commit" |
		if [ "$variant" = noipv6 ]; then grep -v '^net/ipv6/'; else cat; fi)
	# objects of sources that another commit has would be looked at, too
	[ "$variant" != m ] || find "$CACHE/obj/$BASE_KEY/each-m/drivers/net/ovpn" -name '*.o' -delete 2> /dev/null || true
	if ! configure "$variant" "$commit" > "$log" 2>&1; then
		tail -n 20 "$log" > "$kept.failed"
	# "e": warnings are errors, so that an object with one is never made, and
	# says it again in the next build
	elif ! vmake "$variant" -k W=1e "${targets[@]}" >> "$log" 2>&1; then
		{ grep -aE -A 4 -m 5 '(warning|error): ' "$log" || tail -n 20 "$log"; } | sed "s,$BUILD/,,; s,^[./]*/build/$BASE_KEY-each/,," > "$kept.failed"
	elif [ "$variant" = m ] && ! all_exported "$commit" > "$kept.failed"; then
		:
	else
		rm -f "$kept.failed"
		: > "$kept"
	fi
}

# build COMMIT VARIANT...: side by side, as the start of each make uses one CPU
build() {
	local commit=$1 variant

	shift
	if ! git -C "$BUILD" rev-parse -q --verify HEAD > /dev/null 2>&1; then
		rm -rf "$BUILD"
		git -C "$SRC" worktree prune
		git -C "$SRC" worktree add -q --detach "$BUILD" "$commit"
	fi
	git -C "$BUILD" cat-file -e "$commit^{commit}" 2> /dev/null || git -C "$BUILD" fetch -q --no-tags "$SRC" "$commit"
	rm -f "$(git -C "$BUILD" rev-parse --absolute-git-dir)/index.lock"
	git -C "$BUILD" checkout -q -f --detach "$commit"
	for variant in "$@"; do
		while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do
			wait -n || true
		done
		build_one "$commit" "$variant" &
	done
	wait
}

# kept COMMIT VARIANT: the file that says that this has been built
kept() {
	printf '%s/each-%s-%s\n' "$KEPT" "$2" "$(state_key "$1" "$2")"
}

# cases_of COMMIT NAME
cases_of() {
	local commit=$1 name=$2 variant kept todo=()

	for variant in $VARIANTS; do
		[ -e "$(kept "$commit" "$variant")" ] || todo+=("$variant")
	done
	if [ ${#todo[@]} -gt 0 ]; then
		with_lock "build-each-$BASE_KEY" build "$commit" "${todo[@]}"
		BUILT=$((BUILT + ${#todo[@]}))
	fi
	for variant in $VARIANTS; do
		kept=$(kept "$commit" "$variant")
		if [ -e "$kept" ]; then
			tap_case ok "$variant: $name"
		else
			tap_case not "$variant: $name" "$(cat "$kept.failed" 2>&1)"
			say "not ok: $variant: $name"
			cat "$kept.failed" >&2 || true
		fi
	done
}

case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
'')	;;
*)	die "unknown argument '$1'; next: $0 -h" ;;
esac
need_cmd gcc gcc
need_cmd ccache ccache
"$TOP/harness/base.sh"
need_space "$CACHE" 5
HEAD_COMMIT=$(sgit rev-parse -q --verify "${COMMIT:-$SERIES_BRANCH}^{commit}") || die "no commit ${COMMIT:-$SERIES_BRANCH} in $SRC; next: make tree"
BASE_COMMIT=$(sgit rev-parse "$BASE_TAG^{commit}")
KEPT=$CACHE/check
mkdir -p "$KEPT"
SOURCES=$(sgit diff --no-renames --name-only --diff-filter=AM "$BASE_COMMIT" "$HEAD_COMMIT" -- '*.c' |
	grep -vE '^(drivers/net/ovpn|tools|samples|Documentation)/' || true)
mapfile -t commits < <(sgit rev-list --reverse "$BASE_COMMIT..$HEAD_COMMIT")
[ ${#commits[@]} -gt 0 ] || die "no patches on $BASE_TAG in $SRC; next: make tree"
tap_begin "$LOGS/results/build-each.tap" build-each
BUILT=0
[ -e "$KEPT/undefined-$BASE_KEY" ] || rm -f "$(kept "$BASE_COMMIT" m)"
cases_of "$BASE_COMMIT" 'base kernel'
n=0
for commit in "${commits[@]}"; do
	n=$((n + 1))
	say "patch $n of ${#commits[@]}: $(sgit log -1 --format=%s "$commit")"
	cases_of "$commit" "$(printf '%02d' "$n") $(sgit log -1 --format=%s "$commit")"
done
failed=$(tap_failures)
rc=0
tap_end || rc=1
say "$(grep -c '^ok' "$LOGS/results/build-each.tap" || true) ok, $failed not ok, $BUILT built in $SECONDS s"
exit "$rc"
