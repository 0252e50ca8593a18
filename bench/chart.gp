# clustered bars. In: data (bench/chart.jq), out, kind (svg or png)
if (kind eq "svg") {
	set terminal svg size 1100,560 font "Helvetica,13" background "white"
} else {
	set terminal pngcairo size 1100,560 font "Helvetica,11"
}
set output out
set datafile separator "\t"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set boxwidth 0.9
set yrange [0:*]
set ylabel "instructions per byte"
set grid ytics lc rgb "#dddddd"
set xtics rotate by -40 scale 0 noenhanced
set key top left horizontal noenhanced
set linetype 1 lc rgb "#999999"
set linetype 2 lc rgb "#2a6fb0"
set linetype 3 lc rgb "#5aa469"
set linetype 4 lc rgb "#d08c2e"
set linetype 5 lc rgb "#8e5ea2"
set linetype 6 lc rgb "#c0504d"
set linetype 7 lc rgb "#4f9da6"
stats data using 0 skip 1 nooutput
columns = STATS_columns
plot for [i=2:columns] data using i:xtic(1) title columnheader(i)
