# SPDX-License-Identifier: GPL-2.0-only
# From the runs of bench/virtual-guest to a line for each kernel, disk, buffer
# and mode: its fastest run.
#
# usage: awk -f bench/virtual.awk virtual.tsv...
#
#   ns_kib      time for a KiB, in ns; on the disk none, instructions
#   spread      how much longer the slowest run took, in percent
#   requests    read requests of the disk, and
#   device_kib  KiB that were read from it, of the fastest run

BEGIN {
	FS = OFS = "\t"
}

$1 == "kernel" {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

{
	id = $1 OFS $2 OFS $(column["buffer"]) OFS $(column["mode"])
	ns = $(column["seconds"]) * 1e9 / ($(column["bytes"]) / 1024)
	if (!(id in best)) {
		order[++cells] = id
		worst[id] = ns
	}
	if (!(id in best) || ns < best[id]) {
		best[id] = ns
		counters[id] = $(column["requests"]) OFS \
			$(column["device_bytes"]) / 1024
	}
	if (ns > worst[id])
		worst[id] = ns
}

END {
	print "kernel", "disk", "buffer", "mode", "ns_kib", "spread", \
		"requests", "device_kib"
	for (i = 1; i <= cells; i++) {
		id = order[i]
		printf "%s\t%.1f\t%.2f\t%s\n", id, best[id], \
			100 * (worst[id] / best[id] - 1), counters[id]
	}
}
