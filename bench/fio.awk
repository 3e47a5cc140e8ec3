# SPDX-License-Identifier: GPL-2.0-only
# The table of fio.tsv: for each case, reads with RWF_DONTCACHE beside plain
# reads on the same kernel, on each kernel there is.  Of several runs the
# fastest counts, and of several readers the slowest.
#
# usage: awk -f bench/fio.awk fio.tsv

BEGIN {
	FS = "\t"
}

FNR == 1 {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

{
	group = $(column["device"]) " " $(column["fs"]) \
		", read_ahead_kb " $(column["ra_kb"])
	case_ = $(column["job"]) " " $(column["case"])
	if (!(group in seen_group)) {
		seen_group[group] = 1
		groups[++nr_groups] = group
	}
	if (!((group, case_) in seen)) {
		seen[group, case_] = 1
		cases[group, ++nr_cases[group]] = case_
	}
	if (!($1 in seen_kernel)) {
		seen_kernel[$1] = 1
		kernels[++nr_kernels] = $1
	}
	id = group SUBSEP case_ SUBSEP $1 SUBSEP $(column["mode"])
	if (!(id in speed) || $(column["lowest_mib_s"]) > speed[id]) {
		speed[id] = $(column["lowest_mib_s"])
		amp[id] = $(column["amp"])
		requests[id] = $(column["requests"])
		res[id] = $(column["res_pages"])
	}
}

function ratio(plain, flag) {
	return plain in speed && flag in speed && speed[plain] > 0 ? \
		sprintf("%.2f", speed[flag] / speed[plain]) : "-"
}

function cell(array, id, format) {
	return id in array ? sprintf(format, array[id]) : "-"
}

END {
	print "fio: readers with uncached=1 beside the same without, each kernel"
	print "speed: of the slowest reader, without the flag 1.00; left: pages" \
		" of the files"
	for (g = 1; g <= nr_groups; g++) {
		print ""
		print groups[g]
		printf "%-24s", ""
		for (k = 1; k <= nr_kernels; k++)
			printf " | %-40s", kernels[k]
		print ""
		printf "%-24s", "case"
		for (k = 1; k <= nr_kernels; k++)
			printf " | %5s %5s %8s %8s %10s", "speed", "amp", \
				"requests", "(plain)", "left"
		print ""
		for (c = 1; c <= nr_cases[groups[g]]; c++) {
			case_ = cases[groups[g], c]
			printf "%-24s", case_
			for (k = 1; k <= nr_kernels; k++) {
				id = groups[g] SUBSEP case_ SUBSEP kernels[k]
				p = id SUBSEP "plain"
				d = id SUBSEP "dontcache"
				printf " | %5s %5s %8s %8s %10s", ratio(p, d), \
					cell(amp, d, "%.2f"), \
					cell(requests, d, "%d"), \
					cell(requests, p, "%d"), \
					cell(res, d, "%d")
			}
			print ""
		}
	}
}
