# for bench/chart.gp: a line of titles, then one a group of bars, separated by tabs
if .mode == "per-patch" then
	. as $d
	| (["patch"] + (.rows | map(.name))),
	  (.kernels[] | .label as $l | [$l] + [ $d.rows[] | .kernels[$l].median // 0 ])
else
	(["row", "base", "series"]),
	(.rows[] | select(.unit == "instructions/byte")
		| [.name, (.kernels.base.median // 0), (.kernels.series.median // 0)])
end | map(tostring) | join("\t")
