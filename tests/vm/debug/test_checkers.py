#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite debug can fail: each checker of the debug kernel reports a deliberate mistake.

A module makes the mistakes (tests/guest-programs/kernel-faults); the reports are searched for as
after any lab.
# timeout: 300
"""
import os
import unittest

import debugkernel
import labtest
import programs

# lockdep comes first: a report of KASAN turns lockdep off.
MISTAKES = ("lockdep", "sleep", "ODEBUG", "DMA-API", "refcount", "WARN", "KASAN")


class Checkers(unittest.TestCase):
    def setUp(self):
        self.lab = labtest.Lab("checkers")
        self.lab.up("--vms", "alpha")
        self.addCleanup(self.end)

    def end(self):
        """Takes the lab down without a check for the provoked reports."""
        self.lab.run("down")

    def insert(self, mistake, stays=False):
        self.lab.sh("alpha", "insmod /tmp/sg_fault.ko mistake=" + mistake)
        if not stays:
            self.lab.sh("alpha", "rmmod sg_fault")

    def test_each__reports(self):
        """A sound kernel reports nothing; each mistake adds a report of its kind."""
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
