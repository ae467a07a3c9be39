#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An arm64 VM beside an x86-64 VM on one segment.

Alpha is x86-64, beta is arm64.  The verbs programs run in both, over each one's own address.
# timeout: 5400
"""
import os
import re
import subprocess

import labtest
import programs
import rdmatest
from launcher import paths

PATIENCE = 4  # how much longer an emulated processor of another kind takes
ARM64 = programs.BUILD + "/guest-arm64/programs"
TO_BETA, TO_ALPHA = ("beta", "alpha"), ("alpha", "beta")  # server, client
TOOLS = (
    *(("ib_write_bw", 65536), ("ib_read_bw", 65536), ("ib_send_bw", 65536)),
    *(("ib_write_lat", 8), ("ib_read_lat", 8), ("ib_send_lat", 8)),
)
VERBS = ("cm_edges", "verbs_abi", "verbs_events", "verbs_memory", "verbs_queues")


class Beside:
    """The cases, for a size of pages."""

    arch = ""
    page_size = 0
    driver_check = "strict"

    @classmethod
    def setUpClass(cls):
        cls.up_arguments = ("--arch", "beta=" + cls.arch, "--mtu", "9000")
        super().setUpClass()
        programs.install(cls.lab, "beta", *VERBS, folder=ARM64)

    def test_device__is_seen_by_its_users(self):
        self.assertEqual(self.lab.sh("alpha", "uname -m"), "x86_64\n")
        self.assertEqual(self.lab.sh("beta", "uname -m"), "aarch64\n")
        self.assertEqual(int(self.lab.sh("beta", "getconf PAGESIZE")), self.page_size)
        self.assertRegex(self.lab.sh("beta", "rdma link"), "link staghorn0/1 state ACTIVE .*netdev")
        text = self.lab.sh("beta", "ibv_devinfo -v -d staghorn0")
        self.assertRegex(text, r"transport:\s+iWARP")
        self.assertRegex(text, r"state:\s+PORT_ACTIVE")

    def test_rping__both_directions_and_sizes(self):
        for server, client in (TO_BETA, TO_ALPHA):
            for size in (23, 4096, 65535):
                with self.subTest(active=client, size=size):
                    rdmatest.rping(self.lab, server, client, count=5, size=size)

    def test_perftest__both_directions(self):
        for server, client in (TO_BETA, TO_ALPHA):
            for tool, size in TOOLS:
                with self.subTest(tool=tool, active=client):
                    rdmatest.perftest(self.lab, tool, server, client, size, 100)

    def test_perftest__several_queue_pairs(self):
        rdmatest.perftest(self.lab, "ib_write_bw", "beta", "alpha", 4096, 100, ("-q", "8"))

    def verbs(self, program, part, count):
        """Runs the cases of a program in beta whose names contain the part; all must pass."""
        words = ("exec", "-n", "beta", "--", program, programs.ADDRESS["beta"], part)
        done = self.lab.run(*words, status=None, timeout=200 * PATIENCE)
        good = re.findall(r"^ok \d+ - (?!.*# SKIP)", done.out, re.M)
        self.assertEqual((done.returncode, len(good)), (0, count), done.out + done.err)

    @labtest.breaks("ADMIN-FIELD")
    def test_verbs__wrong_fields_from_a_process(self):
        self.verbs("verbs_abi", "abi:", 10)

    def test_verbs__connections(self):
        self.verbs("cm_edges", "reply:", 1)
        self.verbs("cm_edges", "port:", 2)

    @labtest.breaks("ADMIN-FIELD", "CQ-OVERRUN")
    def test_verbs__queues(self):
        self.verbs("verbs_queues", "srq:", 6)
        self.verbs("verbs_queues", "cq:", 4)
        self.verbs("verbs_queues", "domains:", 1)
        self.verbs("verbs_queues", "qp:", 1)
        self.verbs("verbs_queues", "read:", 1)
        self.verbs("verbs_queues", "large:", 1)

    @labtest.breaks("RING-BEYOND")
    def test_verbs__events(self):
        self.verbs("verbs_events", "peer:", 2)
        self.verbs("verbs_events", "doorbell:", 2)
        self.verbs("verbs_events", "completion:", 1)

    @labtest.breaks("ENTRY-ACCESS")
    def test_verbs__memory(self):
        self.verbs("verbs_memory", "atomic:", 3)
        self.verbs("verbs_memory", "imm:", 1)
        self.verbs("verbs_memory", "mr:", 5)
        self.verbs("verbs_memory", "window:", 3)

    def test_verbs__on_demand(self):
        self.verbs("verbs_memory", "odp: a region", 1)
        self.verbs("verbs_memory", "odp: the address space", 1)
        self.verbs("verbs_memory", "odp: prefetch", 1)


class Pages4K(Beside, labtest.LabCase):
    arch, page_size = "arm64", 4096


class Domain(labtest.unittest.TestCase):
    def test_domain__is_refused_with_its_reason(self):
        words = ["-M", "virt", "-accel", "qtest", "-nodefaults", "-nographic"]
        words += ["-object", "staghorn-domain,id=dom0"]
        os.environ.setdefault("STAGHORN_BUILD", programs.BUILD)
        done = subprocess.run(
            [paths.qemu(True), *words], capture_output=True, text=True, timeout=60, check=False
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("a persistence domain needs x86 processors", done.stderr)
        self.assertIn("use qemu-system-x86_64", done.stderr)


if __name__ == "__main__":
    labtest.main()
