# SPDX-License-Identifier: GPL-2.0-only
# Compare a run of bench/virtual with the published one; print the table.
#
# usage: awk [-v worse=1 -v control=0.5] -f bench/virtual-gate.awk \
#		PUBLISHED RUN
#
# Lines of either file: "# name: value" says where the figures come from, the
# others are those of bench/virtual.awk.  An empty PUBLISHED (/dev/null): the
# table alone.
#
# How a figure is judged depends on the line "# key", a checksum of all that
# changes the number of instructions beside the patches (see bench/virtual):
#
#   same key     ns_kib against the published ns_kib.  The stock kernel is the
#                control: each of its figures is within "control" percent, up
#                or down, or nothing here can be compared.
#                (On the disk hdd twice that: its figures come in steps of
#                0.3 %, as null_blk transfers whole requests per tick.)
#   another key  the same, but each figure first divided by that of plain reads
#                on the stock kernel, same disk and buffer, of its own run.
#                There is no control.
#
# Exit code 1: a figure of the patched kernel, or its requests, are more than
# "worse" percent above what was published; the control failed; a figure is
# missing; or the runs of one figure differ by more than the control may.

BEGIN {
	FS = "\t"
	if (worse == "")
		worse = 1
	if (control == "")
		control = 0.5
	published = ARGV[1]
}

/^# / {
	name = $0
	sub(/^# /, "", name)
	value = name
	sub(/:.*/, "", name)
	sub(/^[^:]*: */, "", value)
	meta[FILENAME == published, name] = value
	if (FILENAME != published)
		metas[++nr_metas] = name
	next
}

$1 == "kernel" {
	next
}

{
	old = FILENAME == published
	id = $1 "\t" $2 "\t" $3 "\t" $4
	ns[old, id] = $5
	requests[old, id] = $7
	if (!(id in known)) {
		known[id] = 1
		order[++cells] = id
	}
	if (old) {
		have_published = 1
		next
	}
	if (!($2 in seen_disk)) {
		seen_disk[$2] = 1
		disk[++disks] = $2
	}
	if (!($3 in seen_buffer)) {
		seen_buffer[$3] = 1
		buffer[++buffers] = $3
	}
	if ($6 > allowed(id))
		complain("unsteady", id, sprintf("its runs differ by %.2f %%",
			$6))
}

# How far a figure may move that should not.
function allowed(id) {
	return control * (id ~ /\thdd\t/ ? 2 : 1)
}

function complain(what, id, text) {
	gsub("\t", " ", id)
	complaint[++complaints] = sprintf("FAIL  %s: %s: %s", what, id, text)
}

# What is compared: nothing if it is not there.
function measure(old, id,    part) {
	if (!((old, id) in ns))
		return 0
	if (same)
		return ns[old, id]
	split(id, part, "\t")
	unit = "stock\t" part[2] "\t" part[3] "\tplain"
	return (old, unit) in ns && ns[old, unit] > 0 ? \
		ns[old, id] / ns[old, unit] : 0
}

function judge(id,    now, then, change) {
	now = measure(0, id)
	then = measure(1, id)
	if (!now || !then) {
		complain("missing", id, !then ? "nothing was published" : \
			"was not measured")
		return
	}
	change = 100 * (now / then - 1)
	if (id ~ /^stock/) {
		if (!same)
			return
		if (change > allowed(id) || change < -allowed(id))
			complain("control", id, sprintf("%.1f, published" \
				" %.1f (%+.2f %%)", ns[0, id], ns[1, id],
				change))
		if (change * change > control_most * control_most)
			control_most = change
		return
	}
	judged++
	if (change > worse)
		complain("slower", id, sprintf(same ? \
			"%.1f, published %.1f (%+.2f %%)" : \
			"%.4f of plain on stock, published %.4f (%+.2f %%)",
			now, then, change))
	if (requests[0, id] > requests[1, id] * (1 + worse / 100))
		complain("requests", id, sprintf("%d, published %d",
			requests[0, id], requests[1, id]))
	if (judged == 1 || change > most) {
		most = change
		most_id = id
	}
	if (judged == 1 || change < least)
		least = change
}

function cell(kernel, mode,    id) {
	id = kernel "\t" d "\t" b "\t" mode
	return (0, id) in ns ? sprintf("%.1f", ns[0, id]) : "-"
}

function over(kernel,    id) {
	id = kernel "\t" d "\t" b "\t"
	if (!((0, id "plain") in ns) || !((0, id "dontcache") in ns))
		return "-"
	return sprintf("%+.1f (%+.1f %%)", ns[0, id "dontcache"] - \
		ns[0, id "plain"], 100 * (ns[0, id "dontcache"] / \
		ns[0, id "plain"] - 1))
}

function size(bytes) {
	return bytes % 1024 ? bytes : bytes / 1024 "k"
}

END {
	if (!disks) {
		print "virtual-gate: there is no run" >"/dev/stderr"
		exit 1
	}
	print "Reads of a cold file in virtual time, ns for a KiB"
	print ""
	for (i = 1; i <= nr_metas; i++)
		printf "  %-9s %s\n", metas[i], meta[0, metas[i]]
	for (i = 1; i <= disks; i++) {
		d = disk[i]
		print ""
		print d (d == "none" ? ": no delay; these are instructions" : \
			"")
		printf "%6s | %8s %9s | %8s %9s | %20s %18s\n", "buffer", \
			"stock:", "", "patched:", "", "dontcache - plain:", ""
		printf "%6s | %8s %9s | %8s %9s | %20s %18s\n", "", \
			"plain", "dontcache", "plain", "dontcache", "stock", \
			"patched"
		for (j = 1; j <= buffers; j++) {
			b = buffer[j]
			printf "%6s | %8s %9s | %8s %9s | %20s %18s\n", \
				size(b), cell("stock", "plain"), \
				cell("stock", "dontcache"), \
				cell("patched", "plain"), \
				cell("patched", "dontcache"), \
				over("stock"), over("patched")
		}
	}
	print ""

	same = meta[0, "key"] != "" && meta[0, "key"] == meta[1, "key"]
	if (have_published)
		for (i = 1; i <= cells; i++)
			judge(order[i])
	for (i = 1; i <= complaints; i++)
		print complaint[i]
	if (!have_published)
		print "note  nothing was published to compare this with"
	else if (same)
		printf "note  control: stock moved by at most %+.2f %%\n", \
			control_most
	else
		print "note  published with another key: compared are ratios" \
			" to plain reads on stock"
	if (judged) {
		gsub("\t", " ", most_id)
		printf "note  patched against what was published: %+.2f to" \
			" %+.2f %% (%s)\n", least, most, most_id
		if (least < -worse && !complaints)
			print "note  that is better: consider to publish it"
	}
	if (have_published && !complaints)
		printf "PASS  none of %d figures is worse by more than %s" \
			" %%\n", judged, worse
	exit complaints > 0
}
