# SPDX-License-Identifier: GPL-2.0-only
# The table of the README, as far as this machine can fill it in.
#
# usage: awk -f bench/on-this-machine.awk sequential.tsv...
#
# The files are of one directory, on one kernel or two.  Of several runs the
# fastest counts.  With -v name=1, print only what the kernel of a file is,
# judged by what it does: "stock" if reads with the flag read more from the
# disk than is in the file, or in more than twice as many requests as plain
# reads, with any buffer below 128k; else "patched".

BEGIN {
	FS = "\t"
}

FNR == 1 {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

{
	disk = $(column["device"]) " " $(column["fs"])
	buffer = $(column["buffer"])
	mode = $(column["mode"])
	if (!(buffer in seen)) {
		seen[buffer] = 1
		buffers[++nr] = buffer
	}
	id = $1 SUBSEP buffer SUBSEP mode
	bytes = $(column["bytes"])
	if (!(id in speed) || $(column["mib_s"]) > speed[id]) {
		speed[id] = $(column["mib_s"])
		amp[id] = $(column["amp"])
		requests[id] = $(column["requests"])
	}
	if (mode == "dontcache" && buffer < 131072) {
		judged = 1
		plain = $1 SUBSEP buffer SUBSEP "plain"
		if ($(column["amp"]) > 1.05 || ((plain in requests) && \
		    $(column["requests"]) > 2 * requests[plain]))
			fault = 1
	}
}

function ratio(kernel, mode,    plain, id) {
	plain = kernel SUBSEP b SUBSEP "plain"
	id = kernel SUBSEP b SUBSEP mode
	return plain in speed && id in speed ? \
		sprintf("%.2f", speed[id] / speed[plain]) : "-"
}

function cell(array, kernel, mode, format,    id) {
	id = kernel SUBSEP b SUBSEP mode
	return id in array ? sprintf(format, array[id]) : "-"
}

# The plain reads of either kernel: they are the control, and alike.
function plain_cell(array, format,    text) {
	text = cell(array, "patched", "plain", format)
	return text != "-" ? text : cell(array, "stock", "plain", format)
}

END {
	if (!nr || !judged)
		exit 1
	if (name) {
		print fault ? "stock" : "patched"
		exit 0
	}
	print "| disk | buffer | plain MiB/s | speed, stock | speed, patched |" \
		" amp, stock | amp, patched | requests, plain | stock |" \
		" patched |"
	print "|---|---|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= nr; i++) {
		b = buffers[i]
		printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			disk, b % 1024 ? b : b / 1024 "k", \
			plain_cell(speed, "%.0f"), \
			ratio("stock", "dontcache"), \
			ratio("patched", "dontcache"), \
			cell(amp, "stock", "dontcache", "%.2f"), \
			cell(amp, "patched", "dontcache", "%.2f"), \
			plain_cell(requests, "%d"), \
			cell(requests, "stock", "dontcache", "%d"), \
			cell(requests, "patched", "dontcache", "%d")
	}
	print ""
	print "speed: of reads with RWF_DONTCACHE, plain reads on the same" \
		" kernel being 1.00."
	print "amp: bytes from the disk / bytes read.  A file of " \
		bytes / 1048576 " MiB, fastest run."
}
