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
	what["i_pages"] = "page cache of a file"
	what["i_lock"] = "a file"
	what["invalidate_lock"] = "truncation of a file"
	n = split("lru_lock zone->lock i_pages i_lock invalidate_lock", lock, " ")
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
	taken[place, threads, $1, $(column["mode"]), \
		$(column["lock"])] += $(column["per_mib"])
}

function cell(kernel, mode,    per_mib, rate) {
	per_mib = taken[places[j], most, kernel, mode, lock[i]] + 0
	rate = per_mib * gb_s * 1e9 / 1048576
	return sprintf(" %.2f | %.0f %% |", rate / 1e6, rate * hold_us / 1e4)
}

END {
	printf "What that predicts for 32 readers that read %d GB/s together" \
		" (the figure of the report that\n", gb_s
	print "these scenarios come from): how often a lock that they share is taken" \
		" in a second, in millions, and"
	printf "what part of the time it is held, at %.1f us each time. Above" \
		" some 50 %% readers wait for each\nother. A file's own locks" \
		" are shared where all read the same file.\n\n", hold_us
	print "| files | buffer | lock | plain | held |" \
		" RWF_DONTCACHE, stock | held | patched | held |" \
		" O_DIRECT | held |"
	print "|---|---|---|---|---|---|---|---|---|---|---|"
	for (j = 1; j <= nr_places; j++) {
		split(places[j], part, FS)
		for (i = 1; i <= n; i++) {
			if (part[1] == "own" && i > 2)
				continue
			printf "| %s | %dk | %s (`%s`) |%s%s%s%s\n", part[1], \
				part[2] / 1024, what[lock[i]], lock[i], \
				cell("patched", "plain"), \
				cell("stock", "dontcache"), \
				cell("patched", "dontcache"), \
				cell("patched", "direct")
		}
	}
}
