# SPDX-License-Identifier: GPL-2.0-only
# What the counts of locks.tsv predict for 32 processors, in Markdown.
#
# usage: awk -f bench/locks.awk locks.tsv
#
# The locks that readers share are those of memory, one for each node (and, for
# the list of pages, for each cgroup), and, if they read the same file, those of
# the file.  A lock that is held for 0.1 us, each time another processor had it
# last, is busy all of a second after 10 million.

BEGIN {
	FS = "\t"
	gb_s = 155
	hold_us = 0.1
	what["lru_lock"] = "list of pages"
	what["zone->lock"] = "free pages"
	what["xa_lock"] = "page cache of a file"
	what["invalidate_lock"] = "truncation of a file"
	n = split("lru_lock zone->lock xa_lock invalidate_lock", lock, " ")
}

FNR == 1 {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

{
	threads = $(column["threads"])
	if (threads > most)
		most = threads
	place = $(column["layout"]) FS $(column["buffer"])
	if (!(place in seen)) {
		seen[place] = 1
		places[++nr_places] = place
	}
	for (i = 1; i <= n; i++)
		if (index($(column["class"]), lock[i]))
			taken[place, threads, $(column["mode"]), lock[i]] += \
				$(column["per_mib"])
}

function cell(mode,    per_mib, rate) {
	per_mib = taken[places[j], most, mode, lock[i]] + 0
	rate = per_mib * gb_s * 1e9 / 1048576
	return sprintf(" %.2f | %.0f %% |", rate / 1e6, rate * hold_us / 1e4)
}

END {
	printf "What that predicts for 32 readers that read %d GB/s together" \
		" (the figure of the report that\n", gb_s
	print "this row comes from): how often a lock that they share is taken" \
		" in a second, in millions, and"
	printf "what part of the time it is held, at %.1f us each time. Above" \
		" some 50 %% readers wait for each\nother. A file's own locks" \
		" are shared where all read the same file.\n\n", hold_us
	print "| files | buffer | lock | plain | held | dontcache | held |" \
		" O_DIRECT | held |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (j = 1; j <= nr_places; j++) {
		split(places[j], part, FS)
		for (i = 1; i <= n; i++) {
			if (part[1] == "own" && (lock[i] == "xa_lock" || \
			    lock[i] == "invalidate_lock"))
				continue
			printf "| %s | %dk | %s (`%s`) |%s%s%s\n", part[1], \
				part[2] / 1024, what[lock[i]], lock[i], \
				cell("plain"), cell("dontcache"), cell("direct")
		}
	}
}
