#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Flush, Verify and Atomic Write between two VMs, by programs that use verbs and staghorndv.h.

The programs (tests/guest-programs/mpe) print TAP: a case that fails there is a failure here.
# timeout: 900
"""
import os
import re

import labtest
import programs


class MpeCase(labtest.LabCase):
    """A lab in which beta serves regions; each method runs cases of `program` in alpha."""

    driver_check = "strict"
    program = "mpe"
    device = ()  # the device of the server's memory
    server = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for vm, name in (("beta", "mpe_server"), ("alpha", cls.program)):
            programs.install(cls.lab, vm, name)

    def setUp(self):
        self.server = self.lab.start("beta", "mpe_server", "10.77.0.2", *self.device)
        self.server.expect("ready")

    def cases(self, part, count):
        """Runs the cases whose names contain the part; all must pass."""
        words = ("exec", "alpha", "--", "env", "MPE_SERVER=10.77.0.2", self.program, part)
        done = self.lab.run(*words, status=None, timeout=300)
        good = re.findall(r"^ok \d+ - (?!.*# SKIP)", done.out, re.M)
        self.assertEqual((done.returncode, len(good)), (0, count), done.out + done.err)
        return done.out


class Mpe(MpeCase):
    """Ordinary memory."""

    def test_device__says_what_it_can(self):
        self.assertIn("draft 2,", self.cases("device:", 1))
        text = self.lab.sh("alpha", "ibv_devinfo -v -d staghorn0")
        self.assertRegex(text, r"device_cap_flags_ex:\s+0x1C0[0-9A-F]{8}\n")

    def test_registration__refusals(self):
        self.cases("reg:", 1)

    def test_flush(self):
        """FLU-04 FLU-05 FLU-08 FLU-09 FLU-10 FLU-11 FLU-32"""
        self.cases("flush:", 4)

    @labtest.breaks("ENTRY-ACCESS", "ENTRY-FORM")
    def test_verify(self):
        """FLU-13 FLU-14 FLU-15 FLU-17 FLU-18 FLU-32"""
        self.cases("verify:", 5)

    def test_atomic_write(self):
        """FLU-20 FLU-21 FLU-22 FLU-24 FLU-25"""
        self.cases("atomic:", 2)

    def test_pipeline(self):
        """FLU-26 FLU-30 FLU-34 FLU-36"""
        self.cases("pipeline:", 2)

    @labtest.breaks("ENTRY-ACCESS")
    def test_kernel__consumer(self):
        """A kernel module flushes, registers, and modifies a queue pair that is being destroyed."""
        module = os.path.realpath(programs.MODULES + "/kmpe.ko")
        self.lab.run("copy", module, "alpha:/tmp/kmpe.ko")
        try:
            self.lab.sh("alpha", "insmod /tmp/kmpe.ko server=10.77.0.2")
        finally:
            log = self.lab.sh("alpha", "dmesg | tail -n 40")
            self.assertNotRegex(log, "kmpe: .*not true|Call Trace")
        self.assertIn("all is well", log)
        self.lab.sh("alpha", "rmmod kmpe")

    def test_counters__move(self):
        """beta has received what alpha sent."""

        def counters(vm):
            text = self.lab.sh(vm, "sleep 0.1; rdma statistic show link staghorn0/1")
            return {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", text)}

        before = {vm: counters(vm) for vm in ("alpha", "beta")}
        self.cases("pipeline: a log", 1)
        after = {vm: counters(vm) for vm in ("alpha", "beta")}
        for what in ("flushes", "verifies", "atomic_writes"):
            with self.subTest(what):
                sent = after["alpha"]["tx_" + what] - before["alpha"]["tx_" + what]
                come = after["beta"]["rx_" + what] - before["beta"]["rx_" + what]
                self.assertEqual((sent, come), (200, 200))


@labtest.long
class Draft01(MpeCase):
    """The older draft has no flush of a region."""

    up_arguments = ("--device-prop", "commit=01")

    def test_device__says_what_it_can(self):
        self.assertIn("draft 1,", self.cases("device:", 1))

    def test_flush(self):
        """FLU-02"""
        self.cases("flush:", 4)

    def test_invalidate(self):
        self.cases("invalidate:", 1)

    def test_pipeline(self):
        self.cases("pipeline:", 2)


@labtest.long
class Off(MpeCase):
    """An adapter without the extension offers none of it."""

    up_arguments = ("--device-prop", "commit=off")

    def setUp(self):
        pass

    def test_device__offers_nothing(self):
        text = self.lab.sh("alpha", "ibv_devinfo -v -d staghorn0")
        self.assertRegex(text, r"device_cap_flags_ex:\s+0x[0-9A-F]{1,8}\n")
        done = self.lab.run(
            "exec", "beta", "--", "mpe_server", "10.77.0.2", status=None, timeout=60
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("Operation not supported", done.out)


class Persistent(MpeCase):
    """Persistent memory, behind a volatile cache."""

    program = "mpe_pmem"
    device = ("/dev/dax0.0",)
    up_arguments = ("--pmem", "64M,domain=adr,ddio=on,eviction=never")

    def test_registration__of_memory_that_is_not_persistent(self):
        """Memory without persistence on a machine that also has persistent memory."""
        programs.install(self.lab, "alpha", "mpe")
        text = self.lab.sh("alpha", "ibv_devinfo -v -d staghorn0")
        self.assertRegex(text, r"device_cap_flags_ex:\s+0x1C0[0-9A-F]{8}\n")
        self.program = "mpe"
        self.cases("reg:", 1)

    def test_flush__to_persistence(self):
        """FLU-07 FLU-12"""
        self.cases("flush of", 2)

    def test_regions__over_one_memory(self):
        """FLU-11 FLU-18"""
        self.cases("two regions", 1)

    def test_verify__sees_the_medium(self):
        """FLU-19"""
        self.cases("unflushed", 1)

    def test_verify__what_mismatches_is_poisoned(self):
        """The guest's kernel is told; processes that map this memory get SIGBUS."""
        self.lab.run("pmem", "beta", "--set", "poison-on-mismatch=on")
        words = ("exec", "alpha", "--", "env", "MPE_SERVER=10.77.0.2", self.program, "unflushed")
        script = (
            "n=0; until grep -q . /sys/bus/nd/devices/region0/badblocks; do "
            "n=$((n + 1)); [ $n -lt 200 ] || exit 1; sleep 0.05; done"
        )
        # A machine check waits until the processor's bank is free, so they come one after the
        # other.
        for _ in range(3):
            said = self.lab.run(*words, status=None, timeout=300).out
            if self.lab.run("exec", "beta", "--", "sh", "-c", script, status=None).returncode == 0:
                break
        else:
            self.fail("no bad block in beta; the program in alpha said:\n" + said)
        self.lab.sh("alpha", "ping -c 1 -W 10 beta")


if __name__ == "__main__":
    labtest.main()
