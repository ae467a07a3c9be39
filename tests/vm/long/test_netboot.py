# SPDX-License-Identifier: GPL-2.0-or-later
"""Network boot: a VM without a disk gets kernel and root through the adapter's port.
# timeout: 600
"""
import json
import unittest

import labtest
import rdmatest
import ulptest


class Diskless(unittest.TestCase):
    """alpha boots from the network, beta from its disk."""

    lab = None

    @classmethod
    def setUpClass(cls):
        cls.lab = labtest.Lab("netboot")
        cls.lab.up("--netboot", "alpha")

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def setUp(self):
        self.addCleanup(self.check_kernels)

    def check_kernels(self):
        for vm in ("alpha", "beta"):
            ulptest.check_kernel(self.lab, vm)

    def test_1_came_over_the_wire(self):
        text = self.lab.run("log", "alpha").out
        for part in ("tftp://10.78.0.2/boot.ipxe... ok", "vmlinuz...", "netroot.gz..."):
            self.assertIn(part, text)

    def test_2_has_no_disk(self):
        disks = self.lab.sh("alpha", "ls /sys/block").split()
        self.assertTrue(disks and all(name.startswith("loop") for name in disks), disks)
        self.assertIn("vda", self.lab.sh("beta", "ls /sys/block").split())

    def test_3_rdma(self):
        rdmatest.rping(self.lab, "alpha", "beta")
        rdmatest.rping(self.lab, "beta", "alpha")
        for tool in ("ib_write_bw", "ib_read_bw", "ib_send_lat"):
            rdmatest.perftest(self.lab, tool, "alpha", "beta", 4096, 200)

    def test_4_again_after_a_power_cut(self):
        self.check_kernels()
        self.lab.run("cut", "--hard", "alpha")
        self.lab.run("on", "alpha", "--timeout", labtest.UP_LIMIT)
        rdmatest.rping(self.lab, "alpha", "beta")

    def test_5_boot_server_is_of_no_concern_later(self):
        address = json.loads(
            self.lab.sh("alpha", "ip -j -4 addr show dev $(cat /run/staghorn/port)")
        )
        self.assertEqual([info["local"] for info in address[0]["addr_info"]], ["10.77.0.1"])


class Arguments(unittest.TestCase):
    def test_unknown_vm(self):
        done = labtest.Lab("none").run("up", "--netboot", "gamma", status=2)
        self.assertIn("--netboot: there is no VM gamma", done.err)


if __name__ == "__main__":
    labtest.main()
