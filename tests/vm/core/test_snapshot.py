#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot snapshots: VMs that resume behind the boot of their kernel.
# timeout: 600
# suite: full
"""
import json
import os
import tempfile
import time
import unittest
from pathlib import Path

import labtest
import programs

MADE = "once for a snapshot"
UUID = "cat /proc/sys/kernel/random/uuid"
CLOCK_S = 10  # by how much a guest's clock may be wrong; TCG on a busy machine
# A VM without RDMA.
PLAIN = ("--vms", "alpha", "--mem", "512M", "--cpus", "1", "--driver", "none")


class Snapshot(labtest.Claims, unittest.TestCase):
    def setUp(self):
        labtest.state_folder()
        self.place = tempfile.TemporaryDirectory(dir=os.environ["STAGHORN_STATE"])
        os.environ["STAGHORN_SNAPSHOTS"] = self.place.name
        self.lab = labtest.Lab("snapshot")
        self.addCleanup(os.environ.pop, "STAGHORN_SNAPSHOTS")
        self.addCleanup(self.place.cleanup)
        self.addCleanup(self.lab.down)

    def up(self, *more):
        """What `up --boot-snapshot` says."""
        return self.lab.up("--boot-snapshot", *more).err

    def files(self):
        return sorted(Path(self.place.name).iterdir())

    def rping(self):
        server = self.lab.start("beta", "rping", "-s", "-C", "3", "-v")
        programs.wait_listening(self.lab, "beta", server)
        self.lab.sh("alpha", "rping -c -a 10.77.0.2 -C 3 -v")
        self.assertEqual(server.wait(), 0, server.output)

    def test_resume(self):
        """The second up resumes, and so does on; clock, random numbers and RDMA are right

        With other firmware in its adapter a VM boots when it is switched on."""
        said = self.up()
        self.assertIn(MADE, said)
        self.assertEqual(len(self.files()), 2)
        seen = {self.lab.sh(vm, UUID) for vm in ("alpha", "beta")}
        self.rping()
        self.lab.down()
        said = self.up()
        self.assertNotIn(MADE, said)
        self.assertNotIn("Linux version", self.lab.run("log", "alpha").out)
        clock = float(self.lab.sh("alpha", "date +%s.%N"))
        self.assertLess(abs(time.time() - clock), CLOCK_S)
        seen |= {self.lab.sh(vm, UUID) for vm in ("alpha", "beta")}
        self.assertEqual(len(seen), 4)
        self.rping()
        self.assertIn("sg.pause", self.lab.sh("alpha", "cat /proc/cmdline"))
        self.lab.run("cut", "alpha")
        self.lab.run("on", "alpha")
        self.assertNotIn("Linux version", self.lab.run("log", "alpha").out)
        clock = float(self.lab.sh("alpha", "date +%s.%N"))
        self.assertLess(abs(time.time() - clock), CLOCK_S)
        self.assertNotIn(self.lab.sh("alpha", UUID), seen)
        self.rping()
        self.other_firmware()

    def other_firmware(self):
        """A VM that has resumed boots if there is other firmware in its adapter."""
        self.lab.run("cut", "alpha")
        for flash in Path(self.lab.state, "labs", self.lab.name, "alpha").glob("flash*.img"):
            flash.touch()
        self.lab.run("on", "alpha")
        self.assertNotIn("sg.pause", self.lab.sh("alpha", "cat /proc/cmdline"))

    def test_other_hardware(self):
        """Other hardware is another snapshot, and a VM whose snapshot is damaged boots"""
        self.up(*PLAIN)
        (first,) = self.files()
        self.lab.down()
        self.assertIn(MADE, self.up(*PLAIN, "--cpus", "2"))
        self.assertEqual(len(self.files()), 2)
        self.lab.down()
        others = set(self.files()) - {first}
        os.truncate(first, 1 << 20)
        said = self.up(*PLAIN)
        self.assertIn("its snapshot cannot be used", said)
        self.assertEqual(set(self.files()), others)

    def test_persistent_memory(self):
        """A VM with a persistence domain resumes, also after a cut, if it is as it was"""
        pmem = (*PLAIN, "--pmem", "64M,domain=adr")
        self.up(*pmem)
        self.assertIn("dax0.0", self.lab.sh("alpha", "ls /dev"))
        self.lab.down()
        self.assertNotIn(MADE, self.up(*pmem))
        self.assertIn("dax0.0", self.lab.sh("alpha", "ls /dev"))
        self.lab.run("cut", "alpha")
        self.assertIn("dax0.0", self.lab.sh("alpha", "ls /dev"))
        self.assertEqual(self.resumed(), 1)
        clock = float(self.lab.sh("alpha", "date +%s.%N"))
        self.assertLess(abs(time.time() - clock), CLOCK_S)
        # The snapshot does not know of a cable that is pulled.
        self.lab.run("link", "alpha", "down")
        self.lab.run("link", "alpha", "up")
        self.lab.run("cut", "alpha")
        self.assertEqual(self.resumed(), 1)

    def resumed(self):
        """How often alpha has resumed after a power cut."""
        return json.loads(self.lab.run("pmem", "alpha", "--json").out)["state"]["resumed"]

    def test_no_folder(self):
        """A VM boots if its snapshot cannot be written"""
        file = Path(self.place.name) / "file"
        file.touch()
        os.environ["STAGHORN_SNAPSHOTS"] = str(file / "folder")
        said = self.up(*PLAIN)
        self.assertIn("no boot snapshot of alpha", said)

    def test_no_room(self):
        """A VM boots if the file system has no room for its snapshot"""
        os.environ["STAGHORN_SNAPSHOTS"] = "/proc/no-such-folder"
        said = self.up(*PLAIN)
        self.assertIn("has less than 4 GiB free", said)

    def test_obstacle(self):
        """A VM that cannot be saved boots, and up says why"""
        said = self.up(*PLAIN, "--pmem", "64M,domain=off")
        self.assertIn("alpha boots: its NVDIMM has no domain", said)
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    labtest.main()
