# SPDX-License-Identifier: GPL-2.0-only
# The short table of a scenario, in Markdown, for the report and the README.
#
# usage: awk -v what=cgroup|workingset|readers|cpu|writes|locks
#            [-v short=1] -f bench/table.awk SCENARIO.tsv
#
# Of several runs of a case the fastest counts.  Speeds are ratios to plain
# reads (or writes) of the same kernel.  A dash: not measured.  With short=1 only
# the lines that the README shows.

BEGIN {
	FS = "\t"
}

FNR == 1 {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

function col(name) {
	if (!(name in column)) {
		print "table.awk: no column " name " in " FILENAME \
			>"/dev/stderr"
		missing = 1
		exit 1
	}
	return $(column[name])
}

# A row of the table, and a case in it: what is compared there.
{
	if (what == "cgroup") {
		row = col("device") " " col("fs") FS col("buffer")
		id = col("cgroup") FS col("mode")
	} else if (what == "workingset") {
		row = col("op") FS col("buffer") FS col("mode")
		id = ""
	} else if (what == "readers") {
		row = col("layout") FS col("buffer") FS col("threads")
		id = col("mode")
	} else if (what == "cpu") {
		row = col("layout") FS col("buffer") FS col("threads")
		id = col("mode")
	} else if (what == "writes") {
		row = col("device") " " col("fs") FS col("how") FS col("piece")
		id = col("mode")
	} else if (what == "locks") {
		# All callers that take the same lock, of all that was counted.
		row = col("layout") FS col("buffer") FS col("lock")
		per_mib[row, col("kernel"), col("mode")] += col("per_mib")
		per_mib[col("layout") FS col("buffer") FS "(all)", \
			col("kernel"), col("mode")] += col("per_mib")
	}
	if (!(row in seen)) {
		seen[row] = 1
		order[++rows] = row
	}
	id = row SUBSEP col("kernel") FS id
	if (what == "workingset")
		rescanned(id, col("kernel"), col("rescan_device_bytes") / 1048576, \
			col("rescan_majflt"), col("rescan_ms"), col("warm_ms"))
	# In virtual time fast is what takes few instructions.
	good = what == "cpu" ? -col("cpu_ms_gib") : \
		what == "locks" ? 0 : col("mib_s")
	if (id in line && speed[id] >= good)
		next
	line[id] = $0
	speed[id] = good
}

# Whether a working set is lost is a matter of chance: of several runs, the least
# and the most.  The time is that of the run that lost most.
function rescanned(id, kernel, mib, faults, ms, warm) {
	if (!(id in most) || mib > most[id] || (mib == most[id] && \
	    ms < rescan_ms[id])) {
		most[id] = mib
		rescan_ms[id] = ms
	}
	if (!(id in least) || mib < least[id])
		least[id] = mib
	if (!(id in most_faults) || faults > most_faults[id])
		most_faults[id] = faults
	if (!(id in least_faults) || faults < least_faults[id])
		least_faults[id] = faults
	if (!(kernel in cached_ms) || warm < cached_ms[kernel])
		cached_ms[kernel] = warm
}

# from TO of a case of this row, one number if they are the same
function range(from, to, one, format,    a, b) {
	if (!((row SUBSEP one) in from))
		return "-"
	a = sprintf(format, from[row SUBSEP one])
	b = sprintf(format, to[row SUBSEP one])
	return a == b ? a : a "–" b
}

function size(bytes) {
	if (bytes >= 1048576 && bytes % 1048576 == 0)
		return bytes / 1048576 "m"
	return bytes % 1024 ? bytes : bytes / 1024 "k"
}

# value ONE COLUMN: of one case of this row; empty if there is none
function value(one, name,    part) {
	if (!((row SUBSEP one) in line))
		return ""
	split(line[row SUBSEP one], part, FS)
	return part[column[name]]
}

function cell(one, name, format, unit,    v) {
	v = value(one, name)
	return v == "" ? "-" : sprintf(format, v / unit)
}

function ratio(above, below, name,    a, b) {
	a = value(above, name)
	b = value(below, name)
	return a == "" || b == "" || b + 0 == 0 ? "-" : sprintf("%.2f", a / b)
}

function head(text,    n, i, names) {
	print "| " text " |"
	n = split(text, names, " [|] ")
	for (i = 1; i <= n; i++)
		printf "|---"
	print "|"
}

function cgroup(    i, part) {
	head("disk | buffer | speed outside, stock | patched |" \
		" speed in the cgroup, stock | patched |" \
		" pages scanned, plain | patched |" \
		(short ? "" : " memory.events high, plain | patched |") \
		" peak cache, plain |" (short ? "" : " stock |") " patched")
	for (i = 1; i <= rows; i++) {
		row = order[i]
		split(row, part, FS)
		printf "| %s | %s | %s | %s | %s | %s | %s | %s |", \
			part[1], size(part[2]), \
			ratio("stock" FS "none" FS "dontcache", \
				"stock" FS "none" FS "plain", "mib_s"), \
			ratio("patched" FS "none" FS "dontcache", \
				"patched" FS "none" FS "plain", "mib_s"), \
			ratio("stock" FS "limits" FS "dontcache", \
				"stock" FS "limits" FS "plain", "mib_s"), \
			ratio("patched" FS "limits" FS "dontcache", \
				"patched" FS "limits" FS "plain", "mib_s"), \
			cell("patched" FS "limits" FS "plain", "pgscan", \
				"%d", 1), \
			cell("patched" FS "limits" FS "dontcache", "pgscan", \
				"%d", 1)
		if (!short)
			printf " %s | %s |", \
				cell("patched" FS "limits" FS "plain", "ev_high", \
					"%d", 1), \
				cell("patched" FS "limits" FS "dontcache", "ev_high", \
					"%d", 1)
		printf " %s |", cell("patched" FS "limits" FS "plain", \
			"peak_pages", "%.1f", 256)
		if (!short)
			printf " %s |", cell("stock" FS "limits" FS \
				"dontcache", "peak_pages", "%.1f", 256)
		printf " %s |\n", cell("patched" FS "limits" FS "dontcache", \
			"peak_pages", "%.1f", 256)
	}
	print ""
	print "Speed of reads with RWF_DONTCACHE, plain reads on the same" \
		" kernel and in the same place"
	print "being 1.00.  Pages scanned by reclaim" (short ? "" : ", events") \
		" and peak (MiB of" \
		" the file in the page cache)"
	print "are those in the cgroup."
}

function workingset(    i, part, plain) {
	head("stream |" (short ? "" : " buffer |") \
		" how | rescan / cached scan, stock | patched |" \
		" major faults, stock | patched | MiB from disk, stock |" \
		" patched |" \
		(short ? "" : " pages scanned, stock | patched |") \
		" stream speed, stock | patched")
	for (i = 1; i <= rows; i++) {
		row = order[i]
		split(row, part, FS)
		if (short && part[2] != 65536)
			continue
		printf "| %s |" (short ? "" : " " size(part[2]) " |") " %s |", \
			part[1], part[3]
		rescan("stock")
		rescan("patched")
		printf " %s | %s | %s | %s |", \
			range(least_faults, most_faults, "stock" FS, "%d"), \
			range(least_faults, most_faults, "patched" FS, "%d"), \
			range(least, most, "stock" FS, "%.1f"), \
			range(least, most, "patched" FS, "%.1f")
		if (!short)
			printf " %s | %s |", \
				cell("stock" FS, "pgscan", "%d", 1), \
				cell("patched" FS, "pgscan", "%d", 1)
		beside("stock", part)
		beside("patched", part)
		print ""
	}
	print ""
	print "A working set was mapped and scanned until it was cached; a" \
		" file was streamed; then the scan"
	print "was repeated.  Stream speed: plain reads or copies on the same" \
		" kernel being 1.00, with fsync(2)."
	print "dontcache reads with RWF_DONTCACHE, dontcache-rw writes with" \
		" it, too.  Of several runs, the"
	print "least and the most: chance decides what plain streams evict."
}

function rescan(kernel,    one) {
	one = row SUBSEP kernel FS
	printf " %s |", ((one in rescan_ms) && cached_ms[kernel] > 0) ? \
		sprintf("%.1f", rescan_ms[one] / cached_ms[kernel]) : "-"
}

# The speed of this row's case beside that of plain.
function beside(kernel, part,    a, b) {
	a = row SUBSEP kernel FS
	b = part[1] FS part[2] FS "plain" SUBSEP kernel FS
	printf " %s |", (a in line && b in line && speed[b] > 0) ? \
		sprintf("%.2f", speed[a] / speed[b]) : "-"
}

function readers(    i, part) {
	head("files | buffer | threads | speed, stock | patched | O_DIRECT |" \
		(short ? "" : " CPU per byte, stock | patched |" \
		" O_DIRECT |") \
		" pages scanned, plain | patched |" \
		(short ? "" : " of these kswapd, plain |") \
		" slowest sample %, plain | patched | peak cache, plain |" \
		" patched")
	for (i = 1; i <= rows; i++) {
		row = order[i]
		split(row, part, FS)
		if (short && part[3] != 1 && part[3] != 8 && part[3] != 32)
			continue
		printf "| %s | %s | %s | %s | %s | %s |", \
			part[1], size(part[2]), part[3], \
			ratio("stock" FS "dontcache", "stock" FS "plain", \
				"mib_s"), \
			ratio("patched" FS "dontcache", "patched" FS "plain", \
				"mib_s"), \
			ratio("patched" FS "direct", "patched" FS "plain", \
				"mib_s")
		if (!short)
			printf " %s | %s | %s |", \
				cpu("stock", "dontcache"), \
				cpu("patched", "dontcache"), \
				cpu("patched", "direct")
		printf " %s | %s |", scanned("plain"), scanned("dontcache")
		if (!short)
			printf " %s |", cell("patched" FS "plain", \
				"pgscan_kswapd", "%d", 1)
		printf " %s | %s | %s | %s |\n", \
			cell("patched" FS "plain", "low_pct", "%d", 1), \
			cell("patched" FS "dontcache", "low_pct", "%d", 1), \
			cell("patched" FS "plain", "peak_cached_kib", "%.1f", \
				1024), \
			cell("patched" FS "dontcache", "peak_cached_kib", \
				"%.1f", 1024)
	}
	print ""
	print "Speed of reads with RWF_DONTCACHE and O_DIRECT" (short ? "" : \
		", and processor time per byte") ", plain reads on the"
	print "same kernel being 1.00." \
		"  Files: each thread its own, or parts"
	print "of one.  Slowest sample: in percent of the median one.  Peak" \
		" cache: MiB, of all the guest."
}

function scanned(mode,    a) {
	a = value("patched" FS mode, "pgscan_kswapd")
	return a == "" ? "-" : a + value("patched" FS mode, "pgscan_direct")
}

function cost(kernel, mode) {
	return value(kernel FS mode, "cpu_ms_gib") + \
		value(kernel FS mode, "cpu_kswapd_ms_gib")
}

function cpu(kernel, mode,    below) {
	below = cost(kernel, "plain")
	return value(kernel FS mode, "mib_s") == "" || !below ? "-" : \
		sprintf("%.2f", cost(kernel, mode) / below)
}

# 1 ns of processor time is an instruction.
function beyond(kernel, mode,    v) {
	v = value(kernel FS mode, "cpu_ms_gib")
	return v == "" ? -1 : \
		v - (mode == "direct" ? 0 : 1024 * 1024 * 1024 / 1e6)
}

function number(v) {
	return v < 0 ? "-" : sprintf("%d", v)
}

function cpu_table(    i, part, below, d) {
	head("files | buffer | threads | plain: readers | kswapd |" \
		" RWF_DONTCACHE: stock | patched | O_DIRECT |" \
		" patched / plain with kswapd")
	for (i = 1; i <= rows; i++) {
		row = order[i]
		split(row, part, FS)
		below = beyond("patched", "plain") + \
			value("patched" FS "plain", "cpu_kswapd_ms_gib")
		d = beyond("patched", "dontcache")
		printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", \
			part[1], size(part[2]), part[3], \
			number(beyond("patched", "plain")), \
			cell("patched" FS "plain", "cpu_kswapd_ms_gib", \
				"%d", 1), \
			number(beyond("stock", "dontcache")), number(d), \
			number(beyond("patched", "direct")), \
			d < 0 || below <= 0 ? "-" : sprintf("%.2f", d / below)
	}
	print ""
	print "Million instructions for a GiB, without the one that copies a" \
		" byte to the reader;"
	print "kswapd ran beside plain readers alone."
}

function writes(    i, part) {
	head("disk | how | piece | written, plain | stock | patched |" \
		" read, plain | stock | patched |" \
		" write requests, plain | stock | patched |" \
		" speed, stock | patched")
	for (i = 1; i <= rows; i++) {
		row = order[i]
		split(row, part, FS)
		if (short && part[3] > 4096)
			continue
		printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |" \
			" %s | %s | %s | %s |\n", part[1], part[2], \
			size(part[3]), \
			cell("patched" FS "plain", "write_amp", "%.2f", 1), \
			cell("stock" FS "dontcache", "write_amp", "%.2f", 1), \
			cell("patched" FS "dontcache", "write_amp", "%.2f", \
				1), \
			cell("patched" FS "plain", "read_amp", "%.2f", 1), \
			cell("stock" FS "dontcache", "read_amp", "%.2f", 1), \
			cell("patched" FS "dontcache", "read_amp", "%.2f", 1), \
			cell("patched" FS "plain", "write_requests", "%d", 1), \
			cell("stock" FS "dontcache", "write_requests", "%d", \
				1), \
			cell("patched" FS "dontcache", "write_requests", \
				"%d", 1), \
			ratio("stock" FS "dontcache", "stock" FS "plain", \
				"mib_s"), \
			ratio("patched" FS "dontcache", "patched" FS "plain", \
				"mib_s")
	}
	print ""
	print "Writes in pieces with RWF_DONTCACHE, and their fsync(2):" \
		" written, read: bytes of the device /"
	print "bytes of the file.  The patches change reads alone."
}

function taken(kernel, mode) {
	return (row, kernel, mode) in per_mib ? \
		sprintf("%.1f", per_mib[row, kernel, mode]) : "-"
}

function locks(    i, j, k, n, part, lock, place, done) {
	n = split("i_pages lru_lock zone->lock i_lock invalidate_lock" \
		" (compaction) (disk) (file?system) (other) (all)", lock, " ")
	head("files | buffer | lock | plain | RWF_DONTCACHE, stock |" \
		" patched | O_DIRECT")
	for (i = 1; i <= rows; i++) {
		split(order[i], part, FS)
		place = part[1] FS part[2]
		if (place in done)
			continue
		done[place] = 1
		for (j = 1; j <= n; j++) {
			sub(/[?]/, " ", lock[j])
			row = place FS lock[j]
			printf "| %s | %s | %s | %s | %s | %s | %s |\n", \
				part[1], size(part[2]), lock[j], \
				taken("patched", "plain"), \
				taken("stock", "dontcache"), \
				taken("patched", "dontcache"), \
				taken("patched", "direct")
		}
	}
	print ""
	print "How often a lock was taken, for a MiB.  i_pages, i_lock and" \
		" invalidate_lock are those of a"
	print "file, lru_lock and zone->lock those of a node of memory; in" \
		" parentheses: all locks there."
}

END {
	if (missing)
		exit 1
	if (!rows) {
		print "table.awk: nothing in " FILENAME >"/dev/stderr"
		exit 1
	}
	if (what == "cgroup")
		cgroup()
	else if (what == "workingset")
		workingset()
	else if (what == "readers")
		readers()
	else if (what == "cpu")
		cpu_table()
	else if (what == "writes")
		writes()
	else if (what == "locks")
		locks()
}
