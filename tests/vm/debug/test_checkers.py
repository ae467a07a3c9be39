#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The debug lane can fail: each checker of the debug kernel reports a mistake made for it.

The mistakes are a module's (tests/guest-programs/kernel-faults); the reports are looked
for as after any lab.
# timeout: 300
"""
import os
import unittest

import debugkernel
import labtest
import programs

# Lock orders first: lockdep is no more to be trusted, says the kernel, after KASAN's report.
MISTAKES = ("lockdep", "sleep", "ODEBUG", "DMA-API", "refcount", "WARN", "KASAN")


class Checkers(unittest.TestCase):
    def setUp(self):
        self.lab = labtest.Lab("checkers")
        self.lab.up("--vms", "alpha")
        self.addCleanup(self.end)

    def end(self):
        """Down, with no look at what was provoked."""
        self.lab.run("down")

    def insert(self, mistake, stays=False):
        self.lab.sh("alpha", "insmod /tmp/sg_fault.ko mistake=" + mistake)
        if not stays:
            self.lab.sh("alpha", "rmmod sg_fault")

    def test_each__reports(self):
        """A sound kernel has nothing to report; each mistake adds a report of its kind."""
        module = os.path.realpath(programs.MODULES + "/sg_fault.ko")
        self.lab.run("copy", module, "alpha:/tmp/sg_fault.ko")
        self.assertEqual(debugkernel.examine(self.lab), [])
        for mistake in MISTAKES:
            with self.subTest(mistake=mistake):
                self.insert(mistake)
                found = debugkernel.examine(self.lab)
                begin = "alpha: %s: " % mistake
                self.assertTrue([text for text in found if text.startswith(begin)], found)
        self.insert("leak", stays=True)
        found = [text for text in debugkernel.examine(self.lab) if text.startswith("alpha: leak")]
        self.assertGreaterEqual(len(found), 6)
        self.assertRegex(found[0], r"sg_fault_init|leak.*\[sg_fault\]")


if __name__ == "__main__":
    labtest.main()
