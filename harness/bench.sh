#!/bin/bash
# usage: bench.sh [option]...
# Instructions per byte of the unpatched base and of the series, measured in one
# run: guests whose clock advances 1 ns per executed instruction, one for each
# kernel and group of rows (bench/rows). Prints a table; everything needed to
# repeat it is in $LOGS/bench.json, or bench-quick.json, bench-per-patch.json,
# bench-profile.json.
#
#   QUICK=1            the rows of the contract only, once, for one second each
#   PER_PATCH=1        the rows marked so, at the base and after every patch
#   PROFILE=1          the TCP rows with perf: sender and receiver apart, top 20
#   --rows REGEX       only rows whose name matches
#   --guests N         guests side by side (default 2; the figures do not depend on it)
#   --repeats N        of each row (default 3; 1 if not all rows are wanted)
#   --seconds N        guest's time of each measurement (default 1)
#   --resume           keep what an earlier run with the same kernels has measured
#   --report           nothing but the report of what has been measured
#   --commit-results   write docs/results/ from $LOGS: JSON, tables, pictures
#   GUEST_PREFIX=cmd   guests are run by it, e.g. 'nice -n 10'

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=prepare.sh
. "$TOP/harness/prepare.sh"

rows='' guests=2 repeats='' secs=1 resume='' report='' commit=''
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
	--resume) resume=1; shift; continue ;;
	--report) report=1; shift; continue ;;
	--commit-results) commit=1; shift; continue ;;
	--rows|--guests|--repeats|--seconds) [ $# -ge 2 ] || die "$1 needs a value; next: bench.sh --help" ;;
	*) die "unknown option $1; next: bench.sh --help" ;;
	esac
	case $1 in
	--rows) rows=$2 ;;
	--guests) guests=$2 ;;
	--repeats) repeats=$2 ;;
	--seconds) secs=$2 ;;
	esac
	shift 2
done

mode=full set=''
[ "${QUICK:-0}" = 0 ] || mode=quick set=q
[ "${PER_PATCH:-0}" = 0 ] || mode=per-patch set=p
[ "${PROFILE:-0}" = 0 ] || mode=profile set=f
repeats=${repeats:-$([ $mode = full ] && echo 3 || echo 1)}
name=bench
[ $mode = full ] || name=bench-$mode
OUT=$LOGS/$name
JSON=$LOGS/$name.json
# the suite bench-guard has no use for the base
KERNELS=${BENCH_KERNELS:-base series}
[ $mode != per-patch ] || KERNELS=''

# selected [GROUP]: "group<TAB>name=setup=workload" of the rows that are wanted
selected() {
	awk -F '\t' -v group="${1:-}" -v set="$set" -v rows="$rows" '
		/^#/ || NF < 8 { next }
		(group == "" || $1 == group) && (set == "" ? $2 != "f" : index($2, set)) && $3 ~ rows {
			print $1 "\t" $3 "=" $4 "=" $5 }' "$TOP/bench/rows"
}

# labels, commits and images of what is measured, in this order
labels=() commits=() images=()
kernel() {
	labels+=("$1")
	commits+=("$(git -C "$SRC" rev-parse "$2^{commit}")")
	images+=("$("$TOP/harness/kernel.sh" run "$2")")
}

kernels() {
	local c k n=0

	for k in $KERNELS; do
		case $k in
		base) kernel base base ;;
		series) kernel series "$COMMIT" ;;
		*) kernel "$k" "$k" ;;
		esac
	done
	[ $mode = per-patch ] || return 0
	kernel base base
	for c in $(git -C "$SRC" rev-list --reverse "base..$COMMIT"); do
		n=$((n + 1))
		kernel "$(printf '%02d' $n)" "$c"
	done
}

# first_of INDEX: the first kernel with the same image; patches of tests have that
# of the one before
first_of() {
	local i=0

	while [ "${images[i]}" != "${images[$1]}" ]; do i=$((i + 1)); done
	echo $i
}

# what a figure depends on besides the kernel's source; the guard compares it
environment() {
	local guest

	guest=$(find "$OUT" -name guest.json | sort | head -n 1)
	jq -n --arg base "$BASE_KEY" --arg config "$(sha256sum < "$TOP/configs/run.config" | cut -c 1-12)" \
		--arg compiler "$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\(.*\)"/\1/p' "${images[0]}/config")" \
		--arg qemu "$(qemu-system-x86_64 --version | head -n 1)" --argjson seconds "$secs" \
		--slurpfile guest "$guest" '
		{ base: $base, config: $config, compiler: $compiler, qemu: $qemu, seconds: $seconds }
		+ ($guest[0] | { cpu, iperf3, openvpn, ethtool, wireguard_tools, aead })'
}

# meta: all that is needed to repeat it
meta() {
	local i

	for i in "${!labels[@]}"; do
		jq -n --arg name "${labels[i]}" --arg commit "${commits[i]}" --arg image "$(basename "${images[i]}")" \
			--arg subject "$(git -C "$SRC" log -1 --format=%s "${commits[i]}")" \
			'{ label: $name, commit: $commit, subject: $subject, image: $image }'
	done | jq -s --argjson environment "$(environment)" --arg mode "$mode" --argjson repeats "$repeats" --arg rows "$rows" \
		--arg date "$(date -u +%F)" --arg repo "$(git -C "$TOP" describe --always --dirty 2> /dev/null || true)" '
		{ mode: $mode, date: $date, repository: $repo,
		  command: ("make bench" + { full: "", quick: " QUICK=1", "per-patch": " PER_PATCH=1", profile: " PROFILE=1" }[$mode]
			+ if $rows != "" then " (--rows \($rows))" else "" end),
		  guest: "harness/vm.sh --icount --mem 1500M (-smp 1 -icount shift=0,sleep=off)",
		  configuration: "configs/run.config", repeats: $repeats, environment: $environment, kernels: . }'
}

# run_guest LABEL IMAGE GROUP: ends at once when it has been measured already
run_guest() {
	local dir=$OUT/$1/${3:-all} image=$2 specs=() key

	mapfile -t specs < <(selected "$3" | cut -f 2)
	key="$(basename "$image") $(basename "$STAGE") $secs $repeats ${specs[*]}"
	if [ -n "$resume" ] && [ "$(cat "$dir/done" 2> /dev/null)" = "$key" ]; then
		return
	fi
	rm -rf "$dir"
	mkdir -p "$dir"
	# shellcheck disable=SC2086 # a command
	${GUEST_PREFIX:-} "$TOP/harness/vm.sh" --quiet --icount --mem 1500M --timeout 2400 --image "$image" \
		--ro "stage=$STAGE" --rw "out=$dir" --log "$dir/guest.log" \
		-- bash /mnt/harness/guest/bench.sh "$secs" "$repeats" "${specs[@]}" || {
		say "$1, $3: the guest failed; next: read $dir/guest.log and .console"
		return 1
	}
	printf '%s\n' "$key" > "$dir/done"
	say "$1, $3: $(wc -l < "$dir/bench.jsonl") measurements"
}

measure_all() {
	local group i running=0 failed=0 groups=()

	mapfile -t groups < <(selected | cut -f 1 | uniq)
	[ ${#groups[@]} -gt 0 ] || die "no row is selected; next: see bench/rows"
	[ $mode = full ] || groups=('')
	set -m
	trap 'jobs -pr | sed s/^/-/ | xargs -r kill -TERM -- 2> /dev/null || true' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	for group in "${groups[@]}"; do
		for i in "${!labels[@]}"; do
			[ "$(first_of "$i")" = "$i" ] || continue
			if [ $running -ge "$guests" ]; then
				wait -n || failed=1
				running=$((running - 1))
			fi
			run_guest "${labels[i]}" "${images[i]}" "$group" & running=$((running + 1))
		done
	done
	while [ $running -gt 0 ]; do
		wait -n || failed=1
		running=$((running - 1))
	done
	trap - EXIT
	set +m
	return $failed
}

collect() {
	local i

	for i in "${!labels[@]}"; do
		find "$OUT/${labels[$(first_of "$i")]}" -name bench.jsonl -exec cat {} + |
			jq -c --arg kernel "${labels[i]}" '{ kernel: $kernel } + .'
	done > "$OUT/measurements.jsonl"
	meta > "$OUT/meta.json"
	jq -n --slurpfile meta "$OUT/meta.json" --rawfile rows "$TOP/bench/rows" \
		--slurpfile measurements "$OUT/measurements.jsonl" -f "$TOP/bench/collect.jq" > "$JSON.new"
	mv "$JSON.new" "$JSON"
}

# columns: align what is separated by tabs, text to the left, figures to the right
columns() {
	awk -F '\t' '
		{ for (i = 1; i <= NF; i++) { c[NR, i] = $i; if (length($i) > w[i]) w[i] = length($i) }
		  if (NF > n) n = NF }
		END { for (r = 1; r <= NR; r++) { line = ""
			for (i = 1; i <= n; i++)
				line = line sprintf(c[2, i] ~ /^[-+0-9.]/ ? "%*s  " : "%-*s  ", w[i], c[r, i])
			sub(/ +$/, "", line)
			print line } }'
}

# commit_results: docs/results/ from the JSON files that are there
commit_results() {
	local m json name to=$TOP/docs/results

	need_cmd gnuplot gnuplot-nox
	mkdir -p "$to"
	for m in quick full per-patch; do
		json=$LOGS/bench-$m.json
		[ $m != full ] || json=$LOGS/bench.json
		[ -s "$json" ] || continue
		cp "$json" "$to/$m.json"
		jq -r -L "$TOP/bench" -f "$TOP/bench/markdown.jq" "$json" > "$to/$m.md"
		jq -r -L "$TOP/bench" -f "$TOP/bench/chart.jq" "$json" > "$OUT.dat"
		for name in svg png; do
			gnuplot -e "data='$OUT.dat'; out='$to/$m.$name'; kind='$name'" "$TOP/bench/chart.gp"
		done
		rm -f "$OUT.dat"
		say "docs/results/$m.{json,md,svg,png}"
	done
}

# commit_profile: by the profiles, and the figures of the same rows without perf
commit_profile() {
	local f kernel row value

	compgen -G "$LOGS/bench-profile/*/all/*.perf" > /dev/null || return 0
	for f in "$LOGS"/bench-profile/*/all/*.perf; do
		kernel=$(basename "$(dirname "$(dirname "$f")")")
		row=$(basename "$f" .perf)
		row=${row#profile-}
		value=$(jq --arg row "$row" --arg kernel "$kernel" '.rows[] | select(.name == $row).kernels[$kernel].median' \
			"$TOP/docs/results/full.json" 2> /dev/null || true)
		[ -n "$value" ] || value=$(jq --arg row "$row" --arg kernel "$kernel" \
			'.rows[] | select(.name == $row).kernels[$kernel].median' "$TOP/docs/results/quick.json")
		awk -f "$TOP/bench/profile.awk" "$f" |
			jq -Rs --arg row "$row" --arg kernel "$kernel" --argjson value "$value" \
				'{ row: $row, kernel: $kernel, value: $value, lines: . }'
	done | jq -rs 'sort_by(.row, .kernel)' | jq -r -L "$TOP/bench" -f "$TOP/bench/profile.jq" > "$LOGS/profile.md"
	cp "$LOGS/profile.md" "$TOP/docs/results/profile.md"
	say "docs/results/profile.md"
}

need_cmd jq jq
if [ -n "$commit" ]; then
	"$TOP/harness/deps.sh" gnuplot-nox
	commit_results
	commit_profile
	exit
fi
if [ -z "$report" ]; then
	prepare run 2
	step "kernels: ${KERNELS:-base and every patch}"
	kernels
	n=$(selected | wc -l)
	step "$n rows, $repeats of each, ${#labels[@]} kernels, $guests guests side by side ($OUT)"
	begin=$SECONDS
	mkdir -p "$OUT"
	[ -n "$resume" ] || rm -rf "${OUT:?}"/*
	measure_all || die "a guest failed; next: read its log, then again with --resume"
	collect
	say "measured in $((SECONDS - begin)) s"
fi
[ -s "$JSON" ] || die "no $JSON; next: run it without --report"
echo
jq -r -L "$TOP/bench" -f "$TOP/bench/table.jq" "$JSON" | columns
jq -r -L "$TOP/bench" -f "$TOP/bench/notes.jq" "$JSON"
say "as JSON: $JSON"
