# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings of the debug kernel's checkers: reports in consoles, and leaked memory.

A lab on that kernel is examined before it goes down (labtest.Lab.down), and a report fails the
program, whatever its cases said.  Consoles are read as QEMU wrote them, so reports from before a
power cut, or before the start of another kernel, count too."""
import collections
import os
import re
import subprocess

UNANSWERED = (3, 4, 125)  # exit statuses of ./staghorn: the VM is off, or does not answer
# The first line of a report, and its last line.
_TRACE_END = r"^ *</TASK>"
_CUT_END = r"---\[ end trace"
KINDS = {
    "KASAN": (r"BUG: KASAN: ", r"^={20,}$"),
    "ODEBUG": (r"ODEBUG: ", _CUT_END),
    "DMA-API": (
        r"DMA-API: (?!(?:DMA-API: )?(?:preallocated|debugging enabled|\S+ enabled|Mapped at))",
        _CUT_END,
    ),
    "refcount": (r"refcount_t: ", _CUT_END),
    "sleep": (
        r"BUG: sleeping function called|BUG: scheduling while atomic|"
        r"BUG: using \S+ in preemptible|Voluntary context switch within RCU",
        _TRACE_END,
    ),
    "lockdep": (
        r"WARNING: possible (?:circular|recursive|irq lock inversion)|"
        r"WARNING: (?:inconsistent lock state|bad unlock balance|suspicious RCU usage|"
        r"held lock freed|lock held when returning|Nested lock was not taken)|"
        r"WARNING: \S+-safe -> \S+-unsafe lock order|INFO: trying to register non-static key|"
        r"BUG: (?:held lock freed|MAX_LOCK|MAX_STACK|Invalid wait context)|\[ BUG: |"
        r"DEBUG_LOCKS_WARN_ON|turning off the locking correctness validator",
        _TRACE_END,
    ),
    "oops": (
        r"Oops: |kernel BUG at |BUG: (?:unable to handle|kernel NULL|Bad |workqueue)|"
        r"general protection fault|Kernel panic|list_(?:add|del) corruption|"
        r"BUG \S+ .*: |unregister_netdevice: waiting",
        _CUT_END,
    ),
    "hung": (r"INFO: task .* blocked for more than", _TRACE_END),
    "WARN": (r"WARNING: CPU: ", _CUT_END),
}
BEGINS = [(kind, re.compile(begin), re.compile(end)) for kind, (begin, end) in KINDS.items()]
STAMP = re.compile(r"^\[ *\d+\.\d+\](?:\[ *[CT]\d+\])? ?")
LONGEST = 150  # lines of a report
HEADING = 4  # in so many lines at its beginning, a report may name another kind
# Reports that are exempted, but printed.
KNOWN = (
    # Programs may register the same memory twice, with any adapter; ib_core maps it each time.  On
    # x86 DMA is coherent, so this is harmless.
    r"cacheline tracking EEXIST, overlapping mappings aren't supported",
    # The same, if lines of another report came between this message and the rest: that function has
    # no other warning.
    r"\AWARNING: [^\n]* at kernel/dma/debug\.c:\d+ add_dma_entry\+",
    # All pages of a paged region that were never written are one page of zeroes.
    r"exceeded \d+ overlapping mappings[^\n]*\n(?:[^\n]*\n)*?[^\n]*ib_umem_odp_map_dma_and_lock\+",
    # If an allocation fails while an interrupt gets its files in /proc, some remain when it is
    # freed.
    r"remove_proc_entry\+[^\n]*\n(?:[^\n]*\n)*?[^\n]*unregister_irq_proc\+",
    # The SRP target with a shared receive queue, on any adapter: tests/vm/ulp/test_srp.py.
    r"\AWARNING: [^\n]* at drivers/infiniband/ulp/srpt/ib_srpt\.c:\d+ srpt_cache_put\+",
)
LEAK = r"^unreferenced object "
# Leaks whose call trace has neither these modules nor an unloaded one are not ours; they are only
# printed.
OURS = r"\[(?:staghorn|kmpe|sg_fault)\]|^ +0xffffffff[ac]"
# Two scans with a pause: an object that is younger than five seconds, or whose only pointer was in
# a register, is not a leak.
SCAN = (
    "mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null; cd /sys/kernel/debug && "
    "echo scan > kmemleak && sleep 6 && echo scan > kmemleak && cat kmemleak"
)


def _beginning(line):
    for kind, begin, end in BEGINS:
        if begin.search(line):
            return kind, end
    return None, None


def reports(text):
    """The reports in a console, as (kind, text)."""
    found, lines, kind, end = [], None, None, None
    for raw in text.replace("\r", "").splitlines():
        line = STAMP.sub("", raw)
        new, new_end = _beginning(line)
        if new and (lines is None or len(lines) >= HEADING):
            lines, kind, end = [], new, new_end
            found.append((kind, lines))
        if lines is not None:
            lines.append(line)
            if len(lines) >= LONGEST or (len(lines) > 1 and end.search(line)):
                lines = None
    return [(kind, "\n".join(lines)) for kind, lines in found]


def judged(found):
    """Reports without those that are exempted; those are counted and printed once."""
    known = collections.Counter()
    for kind, text in found:
        if any(re.search(pattern, text) for pattern in KNOWN):
            known["%s: %s" % (kind, text.splitlines()[0])] += 1
        else:
            yield kind, text
    for line, times in known.items():
        print("# known: %s%s" % (line, " (%d times)" % times if times > 1 else ""))


def leaks(text):
    """The unreferenced objects in kmemleak's list: (ours, others)."""
    objects = [part for part in re.split("(?m)(?=%s)" % LEAK, text) if re.match(LEAK, part)]
    ours = [part for part in objects if re.search(OURS, part, re.M)]
    return ours, [part for part in objects if part not in ours]


def _leaks_of(lab, vm):
    """The leaks of a VM, if it is on and answers."""
    try:
        done = lab.run("exec", "-n", vm, "--", "sh", "-c", SCAN, status=None, timeout=30)
    except subprocess.TimeoutExpired:
        return []
    if done.returncode:
        gone = done.returncode in UNANSWERED
        return [] if gone else ["%s: no scan for leaks: %s" % (vm, (done.out + done.err).strip())]
    ours, others = leaks(done.out)
    for leak in others:
        print("# a leak of others in %s:\n# %s" % (vm, leak.strip().replace("\n", "\n# ")))
    return ["%s: leak:\n%s" % (vm, leak) for leak in ours]


def examine(lab):
    """All findings of the kernels of a lab that is still up, as a list of texts."""
    place = os.path.join(lab.state, "labs", lab.name)
    found = []
    for vm in sorted(os.listdir(place)) if os.path.isdir(place) else []:
        if os.path.exists(os.path.join(place, vm, "console.log")):
            found += _leaks_of(lab, vm)
            text = lab.run("log", vm).out
            found += ["%s: %s: %s" % (vm, *report) for report in judged(reports(text))]
    return found
