# SPDX-License-Identifier: GPL-2.0-only
# From sequential.tsv, a line for each run, to summary.tsv, a line for each
# case with the median of each value, and the number and range of its runs.
#
# usage: awk -f bench/median.awk sequential.tsv

BEGIN {
	FS = OFS = "\t"
}

NR == 1 {
	for (i = 1; i <= NF; i++)
		if ($i == "mib_s")
			speed = i
	columns = NF
	print $0, "runs", "mib_s_min", "mib_s_max"
	next
}

# The columns before mib_s name the case.
{
	name = $1
	for (i = 2; i < speed; i++)
		name = name OFS $i
	if (!(name in runs))
		order[++cases] = name
	n = ++runs[name]
	for (i = speed; i <= columns; i++)
		value[name, i, n] = $i
}

# Put the values of one column in order, as they were printed.
function sort(name, i,    j, k, v) {
	for (j = 2; j <= runs[name]; j++) {
		v = value[name, i, j]
		for (k = j - 1; k && value[name, i, k] + 0 > v + 0; k--)
			value[name, i, k + 1] = value[name, i, k]
		value[name, i, k + 1] = v
	}
}

# With an even number of runs, the lower of the two in the middle.
END {
	for (c = 1; c <= cases; c++) {
		name = order[c]
		n = runs[name]
		line = name
		for (i = speed; i <= columns; i++) {
			sort(name, i)
			line = line OFS value[name, i, int((n + 1) / 2)]
		}
		print line, n, value[name, speed, 1], value[name, speed, n]
	}
}
