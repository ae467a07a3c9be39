#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs that judge crash images, and are put back for each.
# timeout: 600
# suite: full
# waits: for guests that hang
"""
import json
import os
import struct
from pathlib import Path

import crashimage
import labtest
import programs
from launcher import domain
from launcher.checker import CheckerVM
from launcher.errors import LabError
from launcher.state import LabFolder

LINE = crashimage.LINE
ROUNDS = 100
GROWTH = 8 << 20  # octets that a VM's QEMU may take more after these rounds
MEMORY = 640 << 20  # likewise, with 1 GiB of RAM in which Linux has booted and a kept state
PLACE = 1 << 20  # of the line that images change, in the block device
READ = "dd if=/dev/pmem0 bs=64 count=1 skip=%d status=none" % (PLACE // LINE)
# Reads the line and a file in memory, and changes both for all who look later.
SCRIPT = (
    "cat /run/seen 2> /dev/null; %s; echo seen > /run/seen; "
    "echo changed | dd of=/dev/pmem0 bs=64 seek=%d conv=sync,fsync,notrunc status=none"
    % (READ, PLACE // LINE)
)
SECONDS = 4  # of the guest's own time between two moments that are one for it, on a busy machine
TICKS = 4e9  # a second, or less, of the processor's time stamp counter


# In place: the new code is where the old one was.
FALSE = "dd if=/bin/false of=/run/code conv=notrunc status=none"


class Rewind(labtest.LabCase):
    up_arguments = ("--vms", "alpha", "--driver", "none", "--cpus", "1") + (
        "--pmem",
        "alpha:32M,domain=adr",
    )

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.sh("alpha", "ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem")
        cls.folder = LabFolder(cls.lab.name)
        cls.media = cls.folder.path / "alpha" / "pmem0.img"
        resource = cls.lab.sh("alpha", "cat /sys/block/pmem0/device/resource")
        cls.line = int(resource, 16) + PLACE

    def checker(self, script=SCRIPT, warm=SCRIPT + "; rm /run/seen"):
        """A checker with a kept state; the VM goes on at the end of the case."""
        found = CheckerVM(self.folder, "alpha", script)
        found.__enter__()
        self.addCleanup(found.__exit__)
        found.prepare(warm)
        self.addCleanup(found.end)
        state = json.loads(found.monitor.run("qom-get", path=domain.OBJECT, property="state"))
        nvdimm = state["nvdimms"]["pmem0"]
        self.extent = (
            nvdimm["base"],
            nvdimm["size"],
            "pmem0",
            crashimage.base_hash(self.media.read_bytes()),
        )
        return found

    def image(self, name, runs, **options):
        path = self.folder.path / name
        path.write_bytes(crashimage.image([self.extent], runs, **options))
        return path

    def good(self, checker, image="", seen=None):
        """The checker is right about the image."""
        verdict = checker.check(image)
        self.assertEqual((verdict.kind, verdict.status), ("exit", 0), verdict)
        if seen:
            self.assertEqual(verdict.output, seen)
        return verdict.output

    def resident(self):
        pid = self.folder.data["vms"]["alpha"]["process"]
        pid = pid[0] if isinstance(pid, list) else pid["pid"]
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def test_alternating(self):
        """Each rewind gives the image's content, and nothing of the run before"""
        checker = self.checker()
        base = self.media.read_bytes()
        kept = self.good(checker)
        self.assertEqual(len(kept), LINE)
        contents = [bytes([65 + n]) * LINE for n in range(2)]
        images = [self.image("i%d" % n, {self.line: contents[n]}) for n in range(2)]
        for number in range(ROUNDS):
            self.good(checker, images[number % 2], contents[number % 2])
            if number % 10 == 0:
                self.good(checker, "", kept)
            if number == ROUNDS // 5:
                resident = self.resident()
        self.assertLess(self.resident() - resident, GROWTH)
        self.assertEqual(checker.costs()["rewinds"], 1 + ROUNDS + ROUNDS // 10)
        self.assertEqual(self.media.read_bytes(), base)

    def times(self, verdict):
        """The guest's times in seconds: since its boot, of day, of its processor."""
        since_boot, _, of_day, ticks = verdict.output.split()
        return [float(since_boot), float(of_day), int(ticks) / TICKS]

    def test_clock(self):
        """Each run begins at the same time for the guest, by all of its clocks"""
        programs.install(self.lab, "alpha", "ticks")
        checker = self.checker("cat /proc/uptime; date +%s; ticks; sleep 0.5", "")
        first = self.times(checker.check())
        for _ in range(4 * SECONDS):
            verdict = checker.check()
            self.assertEqual((verdict.kind, verdict.console), ("exit", b""))
            for now, then in zip(self.times(verdict), first):
                self.assertLess(abs(now - then), SECONDS)

    def test_verdicts(self):
        """Panic, hang, reboot and end are verdicts, and the next check is right again"""
        checker = self.checker()
        kept = self.good(checker)
        for kind, script in (
            ("panic", "echo c > /proc/sysrq-trigger; sleep 60"),
            ("hang", "sleep 60"),
            ("hang", "while :; do echo more; done"),
            ("reboot", "echo b > /proc/sysrq-trigger; sleep 60"),
            ("off", "echo o > /proc/sysrq-trigger; sleep 60"),
        ):
            verdict = checker.check("", script, timeout=3 * labtest.SLOW)
            self.assertEqual((verdict.kind, verdict.status), (kind, None), verdict.console)
            self.good(checker, "", kept)
        verdict = checker.check("", "cat; exit 7", b"some input\n" * 9000)
        self.assertEqual((verdict.kind, verdict.status), ("exit", 7))
        self.assertEqual(verdict.output, b"some input\n" * 9000)
        self.good(checker, "", kept)

    def test_translations(self):
        """Code that the last run changed is what it was when the state was kept"""
        self.lab.sh("alpha", "cp /bin/true /run/code")
        script = "/run/code; echo $?; %s; /run/code; echo $?" % FALSE
        checker = self.checker(script, "/run/code")
        for _ in range(5):
            self.good(checker, "", b"0\n1\n")

    def test_bad_line(self):
        """A line that cannot be read is found by who reads it, and is good the next time"""
        checker = self.checker(READ)
        kept = self.good(checker)
        bad = [(self.line, LINE, crashimage.UNCORRECTABLE)]
        for _ in range(3):
            verdict = checker.check(self.image("bad", {}, bad=bad))
            self.assertNotEqual(verdict.status, 0, verdict)
            self.assertEqual(verdict.kind, "exit", verdict)
            self.assertEqual(verdict.output.count(kept), 0)
            self.good(checker, "", kept)

    def test_refused(self):
        """Images that do not fit are refused, and the kept state stays"""
        checker = self.checker()
        kept = self.good(checker)
        base, size, name, digest = self.extent
        run = {self.line: bytes(LINE)}
        for wrong, extent in (
            ("another base", (base, size, name, bytes(32))),
            ("other NVDIMMs", (base - size, 2 * size, name, digest)),
            ("other NVDIMMs", (base, 2 * size, name, digest)),
        ):
            path = self.folder.path / "wrong"
            path.write_bytes(crashimage.image([extent], run))
            with self.assertRaisesRegex(LabError, wrong):
                checker.check(path)
        path.write_bytes(path.read_bytes()[:-1])
        with self.assertRaisesRegex(LabError, "cut short or damaged"):
            checker.check(path)
        with self.assertRaisesRegex(LabError, "No such file"):
            checker.check(Path("/nowhere"))
        self.good(checker, "", kept)

    def test_end(self):
        """At the end the VM goes on with its media; while a state is kept it cannot be saved"""
        checker = self.checker()
        kept = self.good(checker)
        with self.assertRaisesRegex(LabError, "is kept"):
            checker.monitor.run("migrate", uri="file:" + str(self.folder.path / "moved"))
        self.doCleanups()
        self.assertEqual(self.lab.sh("alpha", READ).encode(), kept)
        self.lab.sh("alpha", SCRIPT + "; rm /run/seen")
        self.lab.run("pmem", "alpha", "--set", "persist=on")
        offset = self.line - self.extent[0]
        self.assertEqual(self.media.read_bytes()[offset:][:LINE], b"changed\n".ljust(LINE, b"\0"))
        self.assertEqual(struct.unpack("<Q", kept[:8]), (0,))

    def test_memory(self):
        """A VM that resumes, and its kept state, take memory for what the guest uses"""
        self.lab.down()
        self.lab.up(*self.up_arguments)  # of which the first one has left a boot snapshot
        type(self).folder = LabFolder(self.lab.name)
        self.assertLess(self.resident(), MEMORY)
        self.lab.sh("alpha", "ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem")
        checker = self.checker()
        self.assertLess(self.resident(), MEMORY)
        self.good(checker)


if __name__ == "__main__":
    labtest.main()
