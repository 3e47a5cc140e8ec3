# SPDX-License-Identifier: GPL-2.0-only
# The tables of bench/report.
#
# usage: awk -v markdown=0|1 -f bench/report.awk meta.tsv summary.tsv

BEGIN {
	FS = "\t"
}

# meta.tsv: name, value
FILENAME ~ /meta\.tsv$/ {
	meta[++metas] = sprintf("%-9s %s", $1, $2)
	if ($2 ~ /emulation/)
		emulated = 1
	next
}

FNR == 1 {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

# A group is a disk at a readahead size; in it, buffer sizes; for each of
# these, kernels and modes.
{
	g = $2 "\t" $3 "\t" $4
	if (!(g in seen_group)) {
		seen_group[g] = 1
		group[++groups] = g
	}
	if (!((g, $5) in seen_buffer)) {
		seen_buffer[g, $5] = 1
		buffers[g]++
		buffer[g, buffers[g]] = $5
	}
	id = g SUBSEP $5 SUBSEP $1 SUBSEP $6
	have[id] = 1
	speed[id] = $7
	amp[id] = $8
	requests[id] = $9
	res[id] = $10
	peak[id] = $11
	if ("runs" in column) {
		if ($(column["runs"]) > runs)
			runs = $(column["runs"])
		spread = $7 > 0 ? 1 - $(column["mib_s_median"]) / $7 : 0
		spreads++
		if (spread > worst_spread) {
			worst_spread = spread
			worst_place = $1 " " $2 " " $3 " " size($5) " " $6
		}
		sum_spread += spread
		varied += $(column["varied"])
	}
	if ("bytes" in column)
		bytes = $(column["bytes"])
}

function key(kernel, mode) {
	return g SUBSEP b SUBSEP kernel SUBSEP mode
}

function size(bytes) {
	if (bytes >= 1048576 && bytes % 1048576 == 0)
		return bytes / 1048576 "m"
	return bytes % 1024 ? bytes : bytes / 1024 "k"
}

# A value of the table, or a dash where nothing was measured.
function cell(array, id, format) {
	return id in have ? sprintf(format, array[id]) : "-"
}

function ratio(above, below) {
	return above in have && below in have && speed[below] > 0 ? \
		speed[above] / speed[below] : -1
}

function ratio_cell(above, below,    r) {
	r = ratio(above, below)
	return r < 0 ? "-" : sprintf("%.2f", r)
}

function how_often() {
	return (runs > 1) ? "best of " runs " runs" : "one run"
}

function title(g,    part) {
	split(g, part, "\t")
	return part[1] " " part[2] ", read_ahead_kb " part[3]
}

# One claim about one line; what fails is named in the line's last column.
function claim(name, true) {
	checked[name]++
	if (true)
		passed[name]++
	else
		wrong = wrong " " name
}

# What this line of a table compares: reads with and without the flag, on
# both kernels.
function set_ids() {
	p0 = key("stock", "plain")
	d0 = key("stock", "dontcache")
	p = key("patched", "plain")
	d = key("patched", "dontcache")
}

function close_to(a, b, part) {
	return a - b <= part * b && b - a <= part * b
}

function check_claims() {
	wrong = ""
	claim("complete", d in have && p in have && d0 in have && \
		p0 in have)
	if (d in have && p in have) {
		claim("amp", amp[d] < 1.01)
		claim("requests", close_to(requests[d], requests[p], 0.01))
		claim("res", res[d] == 0)
	}
	if (p in have && p0 in have)
		claim("control", close_to(requests[p], requests[p0],
			0.01) && peak[p] == peak[p0])
	if (d0 in have && amp[d0] > worst_amp)
		worst_amp = amp[d0]
	if (d0 in have && p0 in have && \
	    requests[d0] / requests[p0] > worst_requests)
		worst_requests = requests[d0] / requests[p0]
	return wrong == "" ? "ok" : "FAIL:" wrong
}

function counters(    i, j) {
	print "A. Counters (the claim)"
	print ""
	print "   plain: read without the flag, on the patched kernel.  stock," \
		" patched: read with"
	print "   RWF_DONTCACHE.  amp: bytes from the disk / bytes read." \
		"  left, peak: pages of"
	print "   the file in the page cache after the read, and at most during" \
		" it."
	for (i = 1; i <= groups; i++) {
		g = group[i]
		print ""
		print title(g)
		printf "%6s | %14s | %22s | %13s | %20s |\n", "", \
			"amp", "requests", "left", "peak"
		printf "%6s | %6s %7s | %6s %7s %7s | %5s %7s | " \
			"%6s %5s %7s |\n", "buffer", "stock", "patched", \
			"plain", "stock", "patched", "stock", "patched", \
			"plain", "stock", "patched"
		for (j = 1; j <= buffers[g]; j++) {
			b = buffer[g, j]
			set_ids()
			printf "%6s | %6s %7s | %6s %7s %7s | %5s %7s | " \
				"%6s %5s %7s | %s\n", size(b), \
				cell(amp, d0, "%.2f"), cell(amp, d, "%.2f"), \
				cell(requests, p, "%d"), \
				cell(requests, d0, "%d"), \
				cell(requests, d, "%d"), \
				cell(res, d0, "%d"), cell(res, d, "%d"), \
				cell(peak, p, "%d"), cell(peak, d0, "%d"), \
				cell(peak, d, "%d"), check_claims()
		}
	}
	print ""
}

function verdict(name, text) {
	printf "%-4s  %s (%d of %d)\n", \
		checked[name] && passed[name] == checked[name] ? \
		"PASS" : "FAIL", text, passed[name], checked[name]
	if (!checked[name] || passed[name] != checked[name])
		failed = 1
}

function verdicts() {
	verdict("complete", "every line was measured on both kernels")
	verdict("amp", "patched, RWF_DONTCACHE: amp 1.00")
	verdict("requests", "patched, RWF_DONTCACHE: the requests of a plain" \
		" read, within 1 %")
	verdict("res", "patched, RWF_DONTCACHE: no page left")
	verdict("control", "plain reads: the same counters on both kernels")
	if (varied)
		printf "note  the counters of %d runs differ from those of" \
			" the fastest of their kind\n", varied
	printf "note  stock, RWF_DONTCACHE: amp up to %.2f, requests up to" \
		" %.0f times those of plain\n", worst_amp, worst_requests
	print ""
}

# Remember a size at which something was lost.
function lose(what, r, b) {
	if (r < 0 || r >= 0.95)
		return
	if (!(what in lost))
		losses[++nr_losses] = what
	lost[what] = lost[what] " " size(b) sprintf(" (%.2f)", r)
}

function times(    i, j, f, o, r) {
	print "B. Times, as ratios of throughput (1.00: as fast; above:" \
		" faster)"
	print ""
	print "   stock, patched: reads with RWF_DONTCACHE against plain reads" \
		" on the same kernel."
	print "   fadvise, direct: plain reads with posix_fadvise(DONTNEED)" \
		" behind the reader, and"
	print "   O_DIRECT, against plain reads, on the patched kernel." \
		"  control: plain reads,"
	print "   patched against stock."
	for (i = 1; i <= groups; i++) {
		g = group[i]
		print ""
		print title(g)
		printf "%6s | %6s %7s | %7s %7s | %7s%s\n", "buffer", \
			"stock", "patched", "fadvise", "direct", "control", \
			emulated ? "" : " | plain MiB/s"
		for (j = 1; j <= buffers[g]; j++) {
			b = buffer[g, j]
			set_ids()
			f = key("patched", "fadvise")
			o = key("patched", "direct")
			printf "%6s | %6s %7s | %7s %7s | %7s%s\n", size(b), \
				ratio_cell(d0, p0), ratio_cell(d, p), \
				ratio_cell(f, p), ratio_cell(o, p), \
				ratio_cell(p, p0), emulated ? "" : \
				" | " cell(speed, p, "%11.1f")
			lose(title(g) ": patched below plain", \
				ratio(d, p), b)
			lose(title(g) ": patched below stock", \
				ratio(d, d0), b)
			lose(title(g) ": patched below fadvise", \
				ratio(d, f), b)
			lose(title(g) ": patched below O_DIRECT", \
				ratio(d, o), b)
			r = ratio(p, p0)
			if (r > 0 && (!low || r < low))
				low = r
			if (r > high)
				high = r
		}
	}
	print ""
	print "Losses of RWF_DONTCACHE reads on the patched kernel (ratio" \
		" below 0.95):"
	for (i = 1; i <= nr_losses; i++)
		print "  " losses[i] ":" lost[losses[i]]
	if (!nr_losses)
		print "  none"
	print ""
	print "How far to trust the times:"
	printf "  control between %.2f and %.2f\n", low, high
	if (runs > 1)
		printf "  each figure is the best of %d runs; the median is" \
			" %.0f %% lower on average,\n  %.0f %% at most (%s)\n", \
			runs, 100 * sum_spread / spreads, \
			100 * worst_spread, worst_place
	else
		print "  one run of each: no spread"
	if (emulated)
		print "  the guests were emulated: times compare modes with" \
			" each other, and say\n  nothing about the speed of" \
			" hardware"
}

# The lowest readahead of each disk, one disk of each kind, the two of the
# first report: ext4 on NVMe, xfs on a rotational disk.
function table(    i, j, part) {
	print "| disk | buffer | speed, stock | speed, patched | amp, stock |" \
		" amp, patched | requests, plain | stock | patched |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= groups; i++) {
		g = group[i]
		split(g, part, "\t")
		if ((part[1] " " part[2]) in done || \
		    (part[1] " " part[2] != "nvme ext4" && \
		     part[1] " " part[2] != "hdd xfs"))
			continue
		done[part[1] " " part[2]] = 1
		for (j = 1; j <= buffers[g]; j++) {
			b = buffer[g, j]
			set_ids()
			printf "| %s %s | %s | %s | %s | %s | %s | %s | %s |" \
				" %s |\n", part[1], part[2], size(b), \
				ratio_cell(d0, p0), ratio_cell(d, p), \
				cell(amp, d0, "%.2f"), cell(amp, d, "%.2f"), \
				cell(requests, p, "%d"), \
				cell(requests, d0, "%d"), \
				cell(requests, d, "%d")
		}
	}
	print ""
	printf "Speed of reads with RWF_DONTCACHE, plain reads on the same" \
		" kernel being 1.00;\namp is bytes from the disk / bytes read;" \
		" a file of %d MiB, %s.", bytes / 1048576, \
		how_often()
	if (emulated)
		printf "\nThe guests were emulated: times compare modes with" \
			" each other, no more."
	print ""
	print ""
	for (i = 1; i <= metas; i++)
		print "    " meta[i]
}

END {
	if (!groups) {
		print "report: summary.tsv is empty" >"/dev/stderr"
		exit 1
	}
	if (markdown) {
		table()
		exit 0
	}
	print "Sequential reads of a cold file: RWF_DONTCACHE beside plain" \
		" reads"
	print ""
	for (i = 1; i <= metas; i++)
		print "  " meta[i]
	printf "  %-9s %d MiB, %s\n\n", "file", bytes / 1048576, \
		how_often()
	counters()
	verdicts()
	times()
	exit failed
}
