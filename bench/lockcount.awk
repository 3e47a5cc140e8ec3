# SPDX-License-Identifier: GPL-2.0-only
# Which locks the callers that lockcount.c counted take, and how often for a MiB.
#
# usage: awk -f bench/lockcount.awk COUNTS RUNS
#
# COUNTS is what the plugin wrote, RUNS the lines that readers.sh made in the
# same guest: pair N belongs to line N.  Prints lines for bench/locks.tsv.

BEGIN {
	FS = OFS = "\t"
}

# The lock, by the function that takes it and the one that calls this.
function lock_of(taker, caller) {
	if (taker == "queued_spin_lock_slowpath")
		return "(contended)"
	if (taker ~ /^down_/ && caller ~ /^(page_cache_ra|filemap_)/)
		return "invalidate_lock"
	if (caller ~ /^(folio_lruvec_|shrink_lruvec|shrink_.*active_list)/ ||
	    caller ~ /^(move_folios_to_lru|lru_note_cost|folio_batch_move)/)
		return "lru_lock"
	# Both take the lock of the inode around that of its pages.
	if (caller ~ /^(__remove_mapping|folio_unmap_invalidate)$/)
		return taker == "_raw_spin_lock" ? "i_lock" : "i_pages"
	if (caller ~ /^(__filemap_|filemap_|page_cache_delete)/ ||
	    caller ~ /^(delete_from_page_cache|workingset_)/)
		return "i_pages"
	if (caller ~ /^(get_page_from_freelist|free_one_page|rmqueue)/ ||
	    caller ~ /^(__rmqueue|free_pcppages|free_frozen|__free_|drain_)/)
		return "zone->lock"
	if (caller ~ /^(compact|isolate_|fast_isolate|__folio_migrate)/)
		return "(compaction)"
	if (caller ~ /^(dd_|nvme_|sbitmap|blk_|bio_|__blk|dma_pool|scsi)/ ||
	    caller ~ /^(handle_|irq_|submit_|lock_timer_base)/)
		return "(disk)"
	if (caller ~ /^(xfs_|iomap_|ext4_|jbd2_)/)
		return "(file system)"
	return "(other)"
}

# COUNTS comes first, and may be empty.
FILENAME == ARGV[1] {
	n[$1]++
	line[$1, n[$1]] = $0
	next
}

$1 == "kernel" {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	print "kernel", "fs", "layout", "threads", "mode", "buffer", "mib", \
		"lock", "function", "caller", "count", "per_mib"
	next
}

{
	pair++
	mib = $(column["bytes"]) / 1048576
	before = $1 OFS $(column["fs"]) OFS $(column["layout"]) OFS \
		$(column["threads"]) OFS $(column["mode"]) OFS \
		$(column["buffer"]) OFS mib
	if (!n[pair]) {
		print "lockcount.awk: no counts for run " pair >"/dev/stderr"
		failed = 1
		exit 1
	}
	split("", taken)
	split("", function_of)
	for (i = 1; i <= n[pair]; i++) {
		split(line[pair, i], part, FS)
		key = part[2] OFS part[3]
		taken[key] += part[4]
		all += part[4]
	}
	rest = 0
	for (key in taken) {
		split(key, part, FS)
		if (taken[key] >= mib / 4)
			print before, lock_of(part[1], part[2]), key, \
				taken[key], sprintf("%.3f", taken[key] / mib)
		else
			rest += taken[key]
	}
	print before, "(other)", "-", "rare", rest, sprintf("%.3f", rest / mib)
}

END {
	if (!failed && !pair) {
		print "lockcount.awk: no runs" >"/dev/stderr"
		exit 1
	}
}
