# shared by the reports

# as many decimals, also where they are zeros; not negative
def fixed($decimals):
	(. * pow(10; $decimals) | round | tostring) as $s
	| ("0" * ([$decimals + 1 - ($s | length), 0] | max) // "") + $s
	| .[:-$decimals] + "." + .[-$decimals:];

def figure: if . == null then "-" elif . >= 1000 then round | tostring else fixed(2) end;

def per_cent:
	if . == null then ""
	else (. * 10 | round / 10) as $p
		| (if $p > 0 then "+" elif $p < 0 then "-" else "" end) + ($p | fabs | fixed(1)) + "%" end;

def unit_note: if .unit == "instructions/byte" then "" else " (\(.unit))" end;

def max_idle_percent: [.kernels[].idle_percent | numbers] | max | if . == null then "-" else fixed(1) end;

def line: "| " + (map(tostring) | join(" | ")) + " |";
