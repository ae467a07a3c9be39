#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver checker and `./staghorn lint` on a VM: no reports about our driver, then those about
mistakes: of a process whose wrong fields the driver passes on, and of root behind its back.
# timeout: 300
"""
import json
import os
import re
import time

import labtest
import programs

RING = os.path.join(programs.FOLDER, "ring_doorbell")
MISTAKES = ("ADMIN-FIELD", "DB-RESET")
# Of the mistake that a process makes through the driver, the nearest first.
CALLERS = ("sgh_create_srq", "ib_uverbs_write", "vfs_write", "do_syscall_64")
# Takes the adapter from its driver; prints its folder in sysfs.
TAKE = """cd /sys/bus/pci/devices
for d in *; do
    grep -q 0x5347 $d/device || continue
    [ ! -e $d/driver ] || echo $d > $d/driver/unbind
    echo 1 > $d/enable
    echo /sys/bus/pci/devices/$d
done"""


class Checker(labtest.LabCase):
    up_arguments = ("--vms", "alpha", "--accel", "tcg", "--device-prop", "check=warn")
    mistakes = MISTAKES

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        programs.install(cls.lab, "alpha", "ring_doorbell", "verbs_abi", "verbs_queues")

    def run_program(self, name, part):
        """Runs cases of a program, which pass."""
        words = ("exec", "-n", "alpha", "--", name, programs.ADDRESS["alpha"], part)
        self.assertIn("ok 1", self.lab.run(*words, timeout=150).out)

    def reports(self, *options, status=1):
        """What `lint` reports, by rule."""
        done = self.lab.run("lint", "--json", *options, "alpha", status=status)
        return {report["rule"]: report for report in json.loads(done.out)}

    def take(self):
        """The folder of the adapter, which has no driver any more."""
        return self.lab.sh("alpha", TAKE).strip()

    def test_1_our_driver(self):
        """Our driver and provider keep to the rules while a program uses queues."""
        self.run_program("verbs_queues", "srq: resized")
        self.assertEqual(self.lab.run("lint", "alpha").out, "no reports\n")

    def test_2_kernel(self):
        """What a process gives the driver is wrong: rule, processor, function of the kernel."""
        self.run_program("verbs_abi", "abi:")
        shown = self.lab.run("lint", "alpha", status=1).out
        first = r"(?m)^r0: ADMIN-FIELD, admin queue, cpu \d+ at (\w+)\+0x[0-9a-f]+ \((0xf\w+)\)"
        self.assertRegex(shown, first)
        function, counter = re.search(first, shown).groups()
        report = self.reports()["ADMIN-FIELD"]
        self.assertEqual(report["pc"], counter)
        self.assertEqual(report["symbol"].split("+")[0], function)
        line = self.lab.sh("alpha", "grep -wm 1 %s /proc/kallsyms" % function).split()
        behind = int(counter, 16) - int(line[0], 16)
        self.assertEqual(report["symbol"], "%s+%#x" % (function, behind))
        self.check_callers(report, shown)

    def check_callers(self, report, shown):
        """From the driver through uverbs to the system call, by the ORC tables of the kernel."""
        self.assertEqual({caller["by"] for caller in report["callers"]}, {"orc"}, report)
        self.assertTrue(report["callers_whole"], report["callers"])
        functions = [caller["symbol"].split("+")[0] for caller in report["callers"]]
        for earlier, later in zip(CALLERS, CALLERS[1:]):
            self.assertLess(functions.index(earlier), functions.index(later), functions)
        self.assertRegex(shown, r"(?m)^    called by   \w+\+0x[0-9a-f]+$")

    def test_3_program(self):
        """A mistake in a program of root: its function and line, if lint has the program."""
        folder = self.take()
        self.lab.sh("alpha", "ring_doorbell %s 0 0x500000003" % folder)
        report = self.reports()["DB-RESET"]
        self.assertNotIn("symbol", report)
        self.assertLess(int(report["pc"], 16), 1 << 47)
        named = self.reports("--symbols", RING)["DB-RESET"]
        self.assertRegex(named["symbol"], r"^ring at ring_doorbell\.c:\d+$")

    def test_4_follow(self):
        """--follow shows what was reported so far, and new reports as they come."""
        following = labtest.Started(self.lab.command("lint", "--follow", "alpha"))
        self.lab.started.append(following)
        following.expect(r"r0: ADMIN-FIELD, (.*\n)*r0: DB-RESET, ")
        self.assertEqual(following.output.count("ADMIN-FIELD"), 1)

    def test_5_device_log(self):
        """Each report is a line of the device log, too."""
        deadline = time.monotonic() + 20
        text = ""
        while not all("check: %s: " % rule in text for rule in MISTAKES):
            self.assertLess(time.monotonic(), deadline, text)
            text = self.lab.run("log", "alpha", "--device").out
        self.assertEqual(len(re.findall("staghorn_check r0: check: ", text)), len(MISTAKES))


if __name__ == "__main__":
    labtest.main()
