# shellcheck shell=bash
# Everything that a guest needs, step by step. Sourced after lib.sh, never run.

STEP=0 STEPS=0

step() {
	STEP=$((STEP + 1))
	say "step $STEP of $STEPS: $*"
}

# prepare CONFIG [MORE]: sets IMG (kernel image) and STAGE (selftests) for
# COMMIT (default: the branch "series"). MORE is how many steps of its own the
# caller adds. With IMG and STAGE in the environment nothing is made.
prepare() {
	local config=$1
	COMMIT=${COMMIT:-series}

	need_root
	if [ -n "${IMG:-}" ] && [ -n "${STAGE:-}" ]; then
		STEPS=${2:-0}
		return
	fi
	STEPS=$((6 + ${2:-0}))
	step "packages of this machine"
	"$TOP/harness/deps.sh"
	step "base kernel source: ${KERNEL:-$BASE}"
	"$TOP/harness/base.sh"
	step "git tree with the series"
	"$TOP/harness/tree.sh"
	step "kernel of $COMMIT, configuration $config"
	IMG=$("$TOP/harness/kernel.sh" "$config" "$COMMIT")
	step "guest root"
	"$TOP/harness/rootfs.sh"
	step "selftests for the guest"
	STAGE=$("$TOP/harness/stage.sh" "$COMMIT")
	export IMG STAGE COMMIT
}
