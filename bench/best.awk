# SPDX-License-Identifier: GPL-2.0-only
# From sequential.tsv, a line for each run, to summary.tsv, a line for each
# case: its fastest run, as all that disturbs a run makes it slower.  Behind it
# the number of runs, the median and the lowest mib_s, and how many runs had
# other counters (amp, requests, res_pages, peak_pages) than the fastest.
#
# usage: awk -f bench/best.awk sequential.tsv

BEGIN {
	FS = OFS = "\t"
}

NR == 1 {
	print $0, "runs", "mib_s_median", "mib_s_min", "varied"
	next
}

{
	name = $1 OFS $2 OFS $3 OFS $4 OFS $5 OFS $6
	counters = $8 OFS $9 OFS $10 OFS $11
	if (!(name in runs))
		order[++cases] = name
	n = ++runs[name]
	seen[name, n] = counters
	if (n == 1 || $7 > best[name]) {
		best[name] = $7
		line[name] = $0
		usual[name] = counters
	}
	# Kept in order, fastest first.
	for (i = n; i > 1 && speed[name, i - 1] < $7; i--)
		speed[name, i] = speed[name, i - 1]
	speed[name, i] = $7
}

END {
	for (c = 1; c <= cases; c++) {
		name = order[c]
		n = runs[name]
		varied = 0
		for (i = 1; i <= n; i++)
			varied += seen[name, i] != usual[name]
		print line[name], n, speed[name, int(n / 2) + 1], \
			speed[name, n], varied
	}
}
