#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests which texts of a debug kernel's console are reports, and which leaks are ours."""
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests" / "vm" / "lib"))
import debugkernel  # noqa: E402

QUIET = """[    0.000000] Linux version 6.12.107-staghorn-debug (staghorn@staghorn) (gcc 12.2.0)
[    0.010000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
[    0.020000] kasan: KernelAddressSanitizer initialized
[    0.500000] DMA-API: preallocated 262144 debug entries
[    0.500000] DMA-API: debugging enabled by kernel config
[    0.600000] clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable
[    3.000000] kmemleak: Kernel memory leak detector initialized (mem pool available: 31000)
[    4.000000] staghorn 0000:01:00.0 staghorn0: adapter is lost: it reports a fatal error
staghorn: alpha is up
"""
TRACE = """CPU: 0 UID: 0 PID: 88 Comm: rping Tainted: G           O       6.12.107-staghorn-debug #1
Call Trace:
 <TASK>
 dump_stack_lvl+0x6e/0xa0
 sgh_something+0x1c/0x50 [staghorn]
 </TASK>
"""
KASAN = (
    "=" * 66
    + """
BUG: KASAN: slab-use-after-free in sgh_something+0x1c/0x50 [staghorn]
Read of size 8 at addr ffff888003f4d018 by task rping/88

"""
    + TRACE
    + """
Freed by task 88:
 kfree+0xd6/0x2b0
 sgh_other+0x40/0x90 [staghorn]
"""
    + "=" * 66
    + "\n"
)
LOCKDEP = (
    """
======================================================
WARNING: possible circular locking dependency detected
6.12.107-staghorn-debug #1 Tainted: G           O
------------------------------------------------------
rping/88 is trying to acquire lock:
ffff888001 (&qp->lock){+.+.}-{3:3}, at: sgh_something+0x1c/0x50 [staghorn]

stack backtrace:
"""
    + TRACE
)
WARN = (
    """------------[ cut here ]------------
%sWARNING: CPU: 1 PID: 88 at kernel/dma/debug.c:1004 check_unmap+0x700/0xd60
Modules linked in: staghorn(O)
"""
    + TRACE
    + "---[ end trace 0000000000000000 ]---\n"
)
SLEEP = (
    "BUG: sleeping function called from invalid context at mm/slab.h:337\n"
    "in_atomic(): 1, irqs_disabled(): 0, non_block: 0, pid: 88, name: rping\n" + TRACE
)
OOPS = (
    "BUG: unable to handle page fault for address: ffffed1000000000\n"
    "#PF: supervisor read access in kernel mode\n"
    "Oops: Oops: 0000 [#1] PREEMPT SMP KASAN NOPTI\n" + TRACE + "---[ end trace 0 ]---\n"
)
DMA = WARN % "DMA-API: staghorn 0000:01:00.0: device driver frees DMA memory with different size\n"
LEAK = """unreferenced object 0xffff888005a8d000 (size 1024):
  comm "insmod", pid 91, jiffies 4294902871
  hex dump (first 32 bytes):
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
  backtrace (crc 0):
    __kmalloc_cache_noprof+0x27c/0x2f0
    %s
    do_one_initcall+0xa0/0x340
"""
CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def stamped(text):
    """The text as in a console, with time stamps and a terminal's line ends."""
    lines = ["[  101.%06d] %s" % (n, line) for n, line in enumerate(text.splitlines())]
    return "\r\n".join(lines) + "\r\n"


def kinds(text):
    return [kind for kind, _ in debugkernel.reports(text)]


@case
def quiet__no_report(_folder):
    """a console without a report yields none"""
    assert kinds(QUIET) == [], kinds(QUIET)


@case
def each_kind__found(_folder):
    """each kind of report is found once, with all its lines, whatever comes before and after"""
    samples = {"KASAN": KASAN, "lockdep": LOCKDEP, "WARN": WARN % "", "sleep": SLEEP}
    samples.update({"oops": OOPS, "DMA-API": DMA})
    samples["ODEBUG"] = WARN % "ODEBUG: free active (active state 0) object: 00000000\n"
    samples["refcount"] = WARN % "refcount_t: underflow; use-after-free.\n"
    for kind, sample in samples.items():
        found = debugkernel.reports(stamped(QUIET + sample + "what follows\n" + QUIET))
        assert [name for name, _ in found] == [kind], (kind, found)
        assert "sgh_something" in found[0][1] and "what follows" not in found[0][1], found[0][1]


@case
def several__told_apart(_folder):
    """reports in a row are told apart"""
    text = stamped(LOCKDEP + KASAN + KASAN + DMA + WARN % "")
    assert kinds(text) == ["lockdep", "KASAN", "KASAN", "DMA-API", "WARN"], kinds(text)


@case
def cut_off__still_found(_folder):
    """a report that the end of the console cuts off is found"""
    assert kinds(stamped(KASAN)[:200]) == ["KASAN"]


@case
def lockdep__switched_off(_folder):
    """a lock checker that gives up is a report: what comes after it is not checked"""
    assert kinds("[ 9.0] turning off the locking correctness validator.\n") == ["lockdep"]


@case
def known__passed_over(_folder):
    """memory that is registered or paged in twice is no report; another about DMA is"""
    twice = "DMA-API: staghorn 0000:01:00.0: cacheline tracking EEXIST, overlapping mappings "
    found = debugkernel.reports(stamped(WARN % (twice + "aren't supported\n") + DMA))
    assert [kind for kind, _ in found] == ["DMA-API", "DMA-API"], found
    assert [text for _, text in debugkernel.judged(found)] == [found[1][1]]
    many = WARN % "DMA-API: DMA-API: exceeded 7 overlapping mappings of cacheline 0xd7d80\n"
    paged = many.replace("sgh_something", "ib_umem_odp_map_dma_and_lock")
    assert many != paged
    found = debugkernel.reports(stamped(paged + many))
    assert [text for _, text in debugkernel.judged(found)] == [found[1][1]]
    mapped = "DMA-API: DMA-API: Mapped at:\n debug_dma_map_sg+0x313/0x4e0\n"
    assert debugkernel.reports(stamped(mapped)) == []
    files = "WARNING: CPU: 1 PID: 146 at fs/proc/generic.c:733 remove_proc_entry+0x21a/0x3f0\n"
    files += TRACE.replace("sgh_something", "unregister_irq_proc")
    assert not list(debugkernel.judged(debugkernel.reports(stamped(files))))
    torn = """WARNING: CPU: 0 PID: 484 at kernel/dma/debug.c:601 add_dma_entry+0x3bd/0x570
Modules linked in: staghorn(O)
RIP: 0010:add_dma_entry+0x3bd/0x570
---[ end trace 0000000000000000 ]---
"""
    assert kinds(torn) == ["WARN"] and not list(debugkernel.judged(debugkernel.reports(torn)))
    other = torn.replace("debug.c:601 add_dma_entry", "debug.c:1040 check_unmap")
    assert list(debugkernel.judged(debugkernel.reports(other)))
    srpt = "drivers/infiniband/ulp/srpt/ib_srpt.c:132 srpt_cache_put"
    cache = torn.replace("kernel/dma/debug.c:601 add_dma_entry", srpt)
    assert not list(debugkernel.judged(debugkernel.reports(cache)))
    other = cache.replace("srpt_cache_put", "srpt_release_channel")
    assert list(debugkernel.judged(debugkernel.reports(other)))


@case
def leaks__whose(_folder):
    """a leak is ours if its trace names a module of ours, or one that is no longer there"""
    ours = ["sgh_probe+0x1c/0x50 [staghorn]", "leak+0x10/0x20 [sg_fault]", "0xffffffffc0123456"]
    others = ["siw_create_qp+0x1c/0x50 [siw]", "kernel_init+0x15/0x120"]
    text = "".join(LEAK % line for line in [*ours, *others])
    found = debugkernel.leaks(text)
    assert [len(part) for part in found] == [len(ours), len(others)], found
    assert debugkernel.leaks("") == ([], [])


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
