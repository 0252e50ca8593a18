# the terminal's table, separated by tabs
def show: if . == null then "-" elif . >= 1000 then round | tostring else . * 100 | round / 100 | tostring end;
def per_cent: if . == null then "" else (. * 10 | round / 10) as $p | "\(if $p > 0 then "+" else "" end)\($p)%" end;

if .mode == "per-patch" then
	(.rows | map(.name)) as $names
	| (["patch", "what"] + $names),
	  (. as $d | .kernels[] | .label as $l
		| [$l, (.subject | .[:58])] + [ $d.rows[] | .kernels[$l].median | show ])
else
	(["row", "base", "series", "change", "must / aim", "reached", "idle %", "what"]),
	(.rows[] | [.name, (.kernels.base.median | show), (.kernels.series.median | show), (.change_percent | per_cent),
		.targets, (.reached // ""),
		([.kernels[].idle_percent | numbers] | max // "-" | tostring),
		.title + (if .unit == "instructions/byte" then "" else " (\(.unit))" end)])
end | join("\t")
