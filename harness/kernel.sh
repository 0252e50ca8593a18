#!/bin/bash
# usage: kernel.sh [--make ARGS | --where] CONFIG [COMMIT]
# Build COMMIT (default: branch "series"; "base" is the base kernel) with CONFIG: run, or
# debug (configs/). Prints the directory with bzImage, config, System.map (and modules/);
# what was built once is not built again. --make runs make ARGS at that commit in the
# same object directory instead (all of its output: $LOGS/kernel-make.log), --where
# only prints where the result would be.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/patches.sh"

# objects that a build from nothing compiles, roughly: for the progress report
OBJECTS=1850

# the kernel's make, always with the same variables: another set rebuilds all
kmake() {
	make -C "$BUILD" -j "$JOBS" O="$OBJ" CC='ccache gcc' KBUILD_BUILD_TIMESTAMP=@0 "$@"
}

# one fragment out of those of CONFIG; the last value of a symbol counts
fragment() {
	local files=("$TOP/configs/run.config")

	[ "$1" = run ] || files+=("$TOP/configs/$1.config")
	awk '
		/^CONFIG_[A-Za-z0-9_]+=/ { name = $0; sub(/=.*/, "", name) }
		/^# CONFIG_[A-Za-z0-9_]+ is not set/ { name = $2 }
		name { if (!(name in value)) order[++n] = name; value[name] = $0; name = "" }
		END { for (i = 1; i <= n; i++) print value[order[i]] }' "${files[@]}"
}

# has_symbol COMMIT NAME: some Kconfig file defines it
has_symbol() {
	git -C "$BUILD" grep -qE "^[[:space:]]*(menu)?config $2\$" "$1" -- '*Kconfig*'
}

# every line of the fragment must be in the configuration that came out. A
# symbol that the series adds may be missing in commits before.
check_config() {
	local frag=$1 line name bad=''

	while read -r line; do
		name=$(grep -oE 'CONFIG_[A-Za-z0-9_]+' <<< "$line" | head -n 1)
		if [[ $line == '#'* ]]; then
			! grep -q "^$name=" "$OBJ/.config" || bad+=" ${name}(is set)"
		elif ! grep -qxF "$line" "$OBJ/.config"; then
			if ! has_symbol "$COMMIT" "${name#CONFIG_}" && [ -n "$HEAD_COMMIT" ] &&
			   [ "$HEAD_COMMIT" != "$COMMIT" ] && has_symbol "$HEAD_COMMIT" "${name#CONFIG_}"; then
				continue
			fi
			bad+=" $line"
		fi
	done < "$frag"
	[ -z "$bad" ] ||
		die "configs/: these lines did not survive:$bad; next: add what they depend on, or take them out"
}

# progress PID: until the build ends
progress() {
	local count last=$SECONDS

	while kill -0 "$1" 2> /dev/null; do
		sleep 1
		if [ $((SECONDS - last)) -ge 10 ]; then
			last=$SECONDS
			count=$(grep -cE '^  (CC|AS|CC \[M\]) ' "$LOG" || true)
			say "$count objects${COLD:+ of about $OBJECTS}: $(tail -n 1 "$LOG" | tr -s ' ' | cut -c 1-70)"
		fi
	done
}

checkout() {
	if ! git -C "$BUILD" cat-file -e "$COMMIT^{commit}" 2> /dev/null; then
		git -C "$BUILD" fetch -q --no-tags "$SRC" "$COMMIT"
	fi
	rm -f "$(git -C "$BUILD" rev-parse --absolute-git-dir)/index.lock"
	git -C "$BUILD" checkout -q -f --detach "$COMMIT"
}

configure() {
	local frag=$OBJ/fragment key

	mkdir -p "$OBJ"
	key=$({ fragment "$CONFIG"; git -C "$BUILD" ls-tree -r "$COMMIT" | grep Kconfig; gcc --version; } | sha256sum)
	[ "$(cat "$OBJ/.ovpn-gso-config" 2> /dev/null)" != "$key" ] || [ ! -s "$OBJ/.config" ] || return 0
	rm -f "$OBJ/.ovpn-gso-config"
	fragment "$CONFIG" > "$frag"
	kmake -s KCONFIG_ALLCONFIG="$frag" allnoconfig > "$LOG" 2>&1 || {
		tail -n 10 "$LOG" >&2
		die "make allnoconfig failed; next: see $LOG"
	}
	check_config "$frag"
	printf '%s\n' "$key" > "$OBJ/.ovpn-gso-config"
}

build() {
	local new pid targets=bzImage

	[ -n "$MAKE_ARGS" ] || [ ! -e "$IMG/bzImage" ] || return 0
	COLD=
	[ -e "$OBJ/vmlinux" ] || COLD=1
	need_space "$CACHE" 4
	checkout
	configure
	if [ -n "$MAKE_ARGS" ]; then
		# several, quoted as for the shell
		eval "kmake -k $MAKE_ARGS" > "$LOG" 2>&1
		return
	fi
	! grep -q '^CONFIG_MODULES=y' "$OBJ/.config" || targets='bzImage modules'
	say "build $CONFIG kernel of $(git -C "$BUILD" log -1 --format='%h %s' "$COMMIT") ($LOG)"
	# shellcheck disable=SC2086  # two targets
	kmake $targets > "$LOG" 2>&1 &
	pid=$!
	# shellcheck disable=SC2064  # the value of now
	trap "kill $pid 2> /dev/null || true" EXIT
	progress "$pid"
	if ! wait "$pid"; then
		grep -E -m 10 '(error|Error [0-9]|\*\*\*)' "$LOG" >&2 || tail -n 20 "$LOG" >&2
		die "the build of $COMMIT failed; next: see $LOG"
	fi
	mkdir -p "$(dirname "$IMG")"
	new=$(mktemp -d "$(dirname "$IMG")/new.XXXXXX")
	# shellcheck disable=SC2064  # the value of now
	trap "rm -rf '$new'" EXIT
	cp "$OBJ/arch/x86/boot/bzImage" "$OBJ/System.map" "$new/"
	cp "$OBJ/.config" "$new/config"
	if grep -q '^CONFIG_MODULES=y' "$OBJ/.config"; then
		kmake -s INSTALL_MOD_PATH="$new/modules" modules_install >> "$LOG" 2>&1 ||
			die "make modules_install failed; next: see $LOG"
		rm -f "$new"/modules/lib/modules/*/build
	fi
	chmod 755 "$new"
	rm -rf "$IMG"
	mv "$new" "$IMG"
	trap - EXIT
	say "built $IMG in $SECONDS s"
}

# source_key: of what a kernel is built from; tests and documents make no difference
source_key() {
	{
		git -C "$SRC" ls-tree "$COMMIT" | grep -vE '[[:space:]](Documentation|MAINTAINERS|tools)$'
		git -C "$SRC" ls-tree "$COMMIT" tools/ | grep -vE '[[:space:]]tools/testing$'
	} | sha256sum | cut -c 1-12
}

MAKE_ARGS='' WHERE=''
case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
--make)	MAKE_ARGS=${2:-}
	[ -n "$MAKE_ARGS" ] || die "--make needs an argument; next: $0 -h"
	shift 2
	;;
--where)
	WHERE=1
	shift
	;;
esac
CONFIG=${1:-}
case $CONFIG in
run|debug) ;;
*)	die "CONFIG must be run or debug, not '$CONFIG'; next: $0 -h" ;;
esac
need_cmd make make
need_cmd ccache ccache
"$TOP/harness/base.sh"
COMMIT=$(git -C "$SRC" rev-parse -q --verify "${2:-$SERIES_BRANCH}^{commit}") ||
	die "no commit ${2:-$SERIES_BRANCH} in $SRC; next: make tree"
HEAD_COMMIT=$(git -C "$SRC" rev-parse -q --verify "$SERIES_BRANCH^{commit}" || true)
OBJ=$CACHE/obj/$BASE_KEY/$CONFIG
LOG=$LOGS/kernel-$CONFIG.log
IMG=$CACHE/img/$BASE_KEY/$CONFIG-$(source_key)-$(fragment "$CONFIG" | sha256sum | cut -c 1-8)
if [ -n "$MAKE_ARGS" ]; then
	LOG=$LOGS/kernel-make.log
	with_lock build build
	exit
fi
if [ -n "$WHERE" ]; then
	:
elif [ -e "$IMG/bzImage" ]; then
	say "built already: $IMG"
else
	with_lock build build
fi
printf '%s\n' "$IMG"
