# shellcheck shell=bash
# A private apt state: packages of newer Debian releases without a change to
# the machine's own apt configuration. Sourced after lib.sh, never run.

APT_SUITES='trixie trixie-backports'
APT_DIR=$CACHE/apt
APT_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# print the address of the Debian mirror that apt of this machine uses
debian_mirror() {
	local uri format

	need_cmd apt-get apt
	# shellcheck disable=SC2016  # apt's, not the shell's
	format='$(REPO_URI)'
	# by its label once there are package lists, before that by its name
	uri=$(apt-get indextargets --format "$format" 'Created-By: Packages' 'Label: Debian' 2> /dev/null | head -n 1) || true
	[ -n "$uri" ] ||
		uri=$(apt-get indextargets --format "$format" 'Created-By: Packages' 2> /dev/null | grep -m 1 '/debian/\?$') ||
		die "apt names no Debian mirror; next: add one (deb MIRROR/debian SUITE main) to /etc/apt and run apt-get update, or use KERNEL=/path/to/tree for the kernel"
	printf '%s\n' "$uri"
}

# apt-get, apt-cache with the private state
private_apt() {
	local cmd=$1

	shift
	"$cmd" -q -o Dir::State::Lists="$APT_DIR/lists" -o Dir::Cache="$APT_DIR" \
		-o Dir::Etc::SourceList="$APT_DIR/sources.list" \
		-o Dir::Etc::SourceParts=/dev/null -o APT::Architectures=amd64 \
		-o APT::Sandbox::User=root "$@"
}

# fetch the package lists, at most once in 12 hours
private_apt_init() {
	local mirror suite tmp log=$LOGS/apt.log

	[ -r "$APT_KEYRING" ] ||
		die "$APT_KEYRING is missing; next: apt-get install debian-archive-keyring"
	mirror=$(debian_mirror) || exit 1
	mkdir -p "$APT_DIR/lists/partial" "$APT_DIR/archives/partial"
	tmp=$(mktemp "$APT_DIR/sources.XXXXXX")
	for suite in $APT_SUITES; do
		printf 'deb [signed-by=%s] %s %s main\n' "$APT_KEYRING" "$mirror" "$suite"
	done > "$tmp"
	if cmp -s "$tmp" "$APT_DIR/sources.list" &&
	   [ -n "$(find "$APT_DIR/stamp" -mmin -720 2> /dev/null)" ]; then
		rm -f "$tmp"
		return
	fi
	mv "$tmp" "$APT_DIR/sources.list"
	rm -f "$APT_DIR/stamp"
	say "package lists of $APT_SUITES"
	if ! private_apt apt-get update > "$log" 2>&1 || grep -q '^[EW]: ' "$log"; then
		die "apt-get update failed ($(grep -m 1 '^[EW]: ' "$log" | cut -c 1-160)); next: see $log, check the network and the mirror in /etc/apt"
	fi
	touch "$APT_DIR/stamp"
}
