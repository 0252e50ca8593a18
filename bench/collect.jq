# measurements and rows to one document. In: $meta, $rows (bench/rows as text), $measurements

# more than this is flagged, per cent
def max_idle: 2;
def max_spread: 2;

def median:
	sort | length as $n
	| if $n % 2 == 1 then .[($n - 1) / 2] else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

# a target: a figure, or so many per cent from the base
def target($base):
	if . == "-" then null
	elif endswith("%") then if $base then (1 + (rtrimstr("%") | tonumber) / 100) * $base else null end
	else tonumber end;

def summary:
	map(.value) as $v
	| { median: ($v | median), min: ($v | min), max: ($v | max),
	    spread_percent: (if ($v | min) > 0 then (($v | max) / ($v | min) - 1) * 100 else 0 end),
	    idle_percent: (map(.idle_percent | numbers) | max),
	    errors: (map(.errors) | add), drops: (map(.drops) | add), retransmits: (map(.retransmits) | add),
	    repeats: map(del(.kernel, .name, .unit)) };

def flags:
	[ (if (.idle_percent // 0) > max_idle then "idle \(.idle_percent)%" else empty end),
	  (if .spread_percent > max_spread then "spread \(.spread_percent * 10 | round / 10)%" else empty end),
	  (if .errors > 0 then "\(.errors) errors" else empty end) ];

($meta[0].kernels | map(.label)) as $labels
| ($measurements | group_by(.name) | map({ key: .[0].name, value: . }) | from_entries) as $by_name
| $meta[0] + { rows: [
	$rows | split("\n")[] | select(startswith("#") | not) | split("\t") | select(length >= 8)
	| { group: .[0], name: .[2], setup: .[3], workload: .[4], must_text: .[5], aim_text: .[6], title: .[7] }
	| . as $row
	| $by_name[.name] // empty
	| . as $m
	| ([ $labels[] as $l | { key: $l, value: ($m | map(select(.kernel == $l)) | select(length > 0) | summary) } ]
		| from_entries) as $k
	| ($k.base.median // null) as $base
	| ($k.series.median // null) as $series
	| ($row.must_text | target($base)) as $must
	| ($row.aim_text | target($base)) as $aim
	| $row + { unit: $m[0].unit, kernels: $k,
		change_percent: (if $base and $series and $base > 0 then ($series / $base - 1) * 100 else null end),
		must: $must, aim: $aim,
		reached: (if $series == null or $must == null then null
			elif $series <= $aim then "aim" elif $series <= $must then "must" else "missed" end),
		flags: [ $labels[] as $l | $k[$l] // empty | flags[] | "\($l): \(.)" ] }
	| del(.must_text, .aim_text) + { targets: (if .must then "\($row.must_text) / \($row.aim_text)" else "" end) }
  ] }
