#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile programs on several CPUs at once, under a QEMU with sanitizers.

qtest has one thread that waits for each access to end; here four CPUs of TCG touch the adapter's
registers, rings and lists while it reads them.  Whatever they do, QEMU must survive, and neither
ASan nor UBSan may report anything.
# timeout: 600
# suite: full
"""
import os
import re
from pathlib import Path

import labtest
import programs

QEMU = Path(programs.BUILD) / "qemu-san" / "qemu-system-x86_64"
ADDRESS = programs.ADDRESS["alpha"]
SECONDS = 15
REPORT = re.compile(r"^.*(Sanitizer:|runtime error:|Assertion|assertion).*$", re.M)


class Hostile(labtest.LabCase):
    up_arguments = ("--vms", "alpha", "--cpus", "4", "--mem", "512M", "--accel", "tcg")
    driver_check = "off"  # all that these programs do is a mistake

    @classmethod
    def setUpClass(cls):
        os.environ["STAGHORN_QEMU"] = str(QEMU)
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
        os.environ["UBSAN_OPTIONS"] = "print_stacktrace=1"
        super().setUpClass()
        programs.install(cls.lab, "alpha", "hostile", "verbs_abi", "verbs_events", "verbs_queues")

    def no_report(self):
        """Checks that QEMU's log has no report of a sanitizer and no failed assertion."""
        log = Path(self.lab.state) / "labs" / self.lab.name / "alpha" / "qemu.log"
        found = REPORT.search(log.read_text(errors="replace"))
        self.assertIsNone(found, found and found.string[found.start() : found.start() + 4000])

    def test_processes__beside_each_other(self):
        """Wrong fields, wrong doorbells and other processes' numbers from several processes."""
        started = [
            self.lab.start("alpha", program, ADDRESS, part)
            for program, part in (
                ("verbs_abi", "abi:"),
                ("verbs_events", "doorbell:"),
                ("verbs_events", "peer:"),
                ("verbs_queues", "srq:"),
            )
        ]
        for process in started:
            process.wait(150)
        self.no_report()

    def test_zz_kernel__that_is_hostile(self):
        """A program of root has the adapter: one thread drives it, three disturb it."""
        folder = self.lab.sh(
            "alpha",
            "cd /sys/bus/pci/devices; for d in *; do grep -q 0x5347 $d/device || continue; "
            "[ ! -e $d/driver ] || echo $d > $d/driver/unbind; echo 1 > $d/enable; "
            "echo /sys/bus/pci/devices/$d; done",
        ).strip()
        for seed in 1, 2:
            with self.subTest(seed=seed):
                words = ("exec", "-n", "alpha", "--", "hostile", folder, SECONDS, seed)
                done = self.lab.run(*words, status=None, timeout=150)
                self.no_report()
                self.assertEqual(done.returncode, 0, done.out + done.err)
                print("# " + done.out.replace("\n", "; "), flush=True)
                self.assertIn("alive", done.out)
                for what in "good", "events", "connections":
                    self.assertRegex(done.out, r"[1-9]\d* %s" % what)


if __name__ == "__main__":
    labtest.main()
