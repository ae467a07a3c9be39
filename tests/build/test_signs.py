#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the verdicts that a checker takes from what the guest's kernel says on its console.

The lines are those of Linux 6.12."""
import sys
from pathlib import Path

import cases

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from launcher import checker, verdicts  # noqa: E402
from launcher.check_run import verdict_of  # noqa: E402

CASES = []
# A verdict, and lines each of which means it by itself.
LINES = {
    "panic": (
        "Kernel panic - not syncing: sysrq triggered crash",
        "Kernel panic - not syncing: Fatal exception in interrupt",
        "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b",
    ),
    "machine-check": (
        "mce: [Hardware Error]: Machine check events logged",
        "mce: [Hardware Error]: CPU 0: Machine Check: 4 Bank 9: bd80000000100134",
        "mce: Uncorrected hardware memory error in user-access at 100205000",
        "Memory failure: 0x100205: Sending SIGBUS to sh:211 due to hardware memory corruption",
        "Memory failure: 0x100205: recovery action for dax page: Recovered",
    ),
    "oops": (
        "Oops: Oops: 0002 [#1] PREEMPT SMP NOPTI",
        "Oops: invalid opcode: 0000 [#1] PREEMPT SMP NOPTI",
        "Oops: general protection fault, probably for non-canonical address 0x6b6b6b6b6b6b6b6b",
        "BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "BUG: unable to handle page fault for address: ffff8881000fffff",
        "BUG: Bad page state in process sh  pfn:100205",
        "kernel BUG at fs/ext4/inode.c:2721!",
        "general protection fault: 0000 [#1] SMP",
        "WARNING: CPU: 0 PID: 211 at fs/dax.c:380 dax_insert_entry+0x2a2/0x2d0",
        "WARNING: fs/dax.c:380 at dax_insert_entry+0x2a2/0x2d0, CPU#0: mount/211",  # Linux 7
        "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [mount:211]",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "INFO: task mount:211 blocked for more than 120 seconds.",
    ),
    None: (
        "EXT4-fs (pmem0): mounted filesystem 0b6c6f52 r/w with ordered data mode.",
        "EXT4-fs (pmem0): DAX enabled. Warning: EXPERIMENTAL, use at your own risk",
        "EXT4-fs error (device pmem0): ext4_lookup:1813: inode #2: comm sh: deleted inode",
        "EXT4-fs warning (device pmem0): ext4_clear_journal_err:6274: Filesystem error recorded",
        "JBD2: journal checksum error",
        "JBD2: recovery failed",
        "nd_pmem namespace0.0: DEBUG: unable to guarantee persistence of writes",
        "sh (211): drop_caches: 3",
        "panic: not by the kernel",
    ),
}


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def judged(said, kind="exit"):
    """The verdict about a run that ended so, with this text on the console."""
    vm = object.__new__(checker.CheckerVM)
    vm.said = said.encode()
    return vm._judged(kind)  # pylint: disable=protected-access


def stamped(line):
    return "[   12.345678] %s\r\n" % line


@case
def each_line(_folder):
    """A line of the kernel is the verdict that it means, whatever the script's end was"""
    for verdict, lines in LINES.items():
        for line in lines:
            for kind in ("exit", "hang", "reboot"):
                wanted = verdict or kind
                assert judged(stamped(line), kind) == wanted, (line, kind, judged(line, kind))
                assert judged("(sh)\r\n" + stamped(line) * 2 + "more\r\n", kind) == wanted, line


@case
def all_signs(_folder):
    """Each sign has a line here that no other one has, so none is without a test"""
    rows = checker.SIGNS
    assert [kind for kind, _ in rows] == [kind for kind in LINES if kind], rows
    for kind, form in rows:
        for part in form.pattern.split(b"|"):
            alone = checker.re.compile(part)
            assert any(alone.search(line.encode()) for line in LINES[kind]), (kind, part)
            assert not any(alone.search(line.encode()) for line in LINES[None]), (kind, part)


@case
def gravest(_folder):
    """Of several signs the gravest counts, in whatever order they came"""
    kinds = [kind for kind, _ in checker.SIGNS]
    assert kinds == ["panic", "machine-check", "oops"]
    for first in LINES:
        for second in LINES:
            said = stamped(LINES[first][0]) + stamped(LINES[second][-1])
            found = [kind for kind in kinds if kind in (first, second)]
            assert judged(said) == (found or ["exit"])[0], said


@case
def in_the_journal(_folder):
    """A sign makes a good end a bug, and the console is kept with it"""
    for kind in LINES:
        said = stamped(LINES[kind][0])
        found = checker.Verdict(judged(said), 0, b"done\n", 5, said.encode(), (1, 1))
        verdict, status, output = verdict_of(found)
        assert status == 0 and "done\n" in output, output
        assert verdict == (kind or "good"), verdict
        assert (verdict in verdicts.BUGS) == bool(kind)
        assert bool(kind) == (LINES[kind][0] in output), output


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
