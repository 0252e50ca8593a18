# the terminal's table, separated by tabs
include "lib";

if .mode == "per-patch" then
	(.rows | map(.name)) as $names
	| (["patch", "what"] + $names),
	  (. as $d | .kernels[] | .label as $l
		| [$l, (.subject | .[:58])] + [ $d.rows[] | .kernels[$l].median | figure ])
else
	(["row", "base", "series", "change", "must / aim", "reached", "idle %", "what"]),
	(.rows[] | [.name, (.kernels.base.median | figure), (.kernels.series.median | figure), (.change_percent | per_cent),
		.targets, (.reached // ""),
		max_idle_percent,
		.title + unit_note])
end | join("\t")
