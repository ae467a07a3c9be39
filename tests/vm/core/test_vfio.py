#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""examples/vfio: a program of alpha drives the adapter through VFIO, behind an IOMMU, under the
strict checker.  Its peers are its own second queue pair and beta's ordinary rping.
# timeout: 300
"""
import time
import unittest

import labtest
import programs
import rdmatest

HERE = programs.ADDRESS["alpha"] + "/24"
PORT = "7174"
EXCHANGES = ["exchange %d: %%d octets were read and written back" % n for n in (1, 2, 3)]
# What a killed process leaves is reset with its objects.
KILLED = ("RESET-LEFT",)


@unittest.skipIf(labtest.DEBUG, "the debug kernel has neither a driver for an IOMMU nor VFIO")
class Vfio(labtest.LabCase):
    up_arguments = ("--iommu", "--accel", "tcg", "--device-prop", "check=strict")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        programs.install(cls.lab, "alpha", "vfio_driver")
        script = labtest.TOP / "examples" / "vfio" / "bind.sh"
        cls.lab.install("alpha", {"/usr/bin/bind.sh": str(script)})
        cls.device = cls.bind("vfio-pci")

    @classmethod
    def bind(cls, driver):
        """Gives alpha's adapter the driver; returns the adapter's name."""
        return cls.lab.sh("alpha", "bind.sh " + driver).strip()

    def drive(self, *role, status=0):
        """What the example prints."""
        words = " ".join(("vfio_driver", self.device, HERE, *role))
        return self.lab.sh("alpha", words + " 2>&1", status=status, timeout=60)

    def serving(self):
        """The example as a server, in the background."""
        server = self.lab.start("alpha", "vfio_driver", self.device, HERE, "serve", PORT)
        server.expect("waiting for a client")
        return server

    def client(self, count):
        address = programs.ADDRESS["alpha"]
        return self.lab.start("beta", "rping", "-c", "-a", address, "-p", PORT, "-v", "-C", count)

    def assert_exchanges(self, text, octets):
        for line in EXCHANGES:
            self.assertIn(line % octets, text)
        self.assertIn("torn down", text)

    def test_1_iommu(self):
        """The guest's IOMMU is on, alone with the adapter in a group; status names the VMs."""
        place = "/sys/bus/pci/devices/" + self.device
        group = self.lab.sh("alpha", "ls %s/iommu_group/devices" % place)
        self.assertEqual(group.split(), [self.device])
        self.assertIn("IOMMU: alpha, beta", self.lab.run("status").out)

    def test_2_loop(self):
        """Two queue pairs of one adapter: Send, Read, Write; the data is compared."""
        self.assert_exchanges(self.drive("loop"), 4096)

    def test_3_client(self):
        """The example reads from and writes to beta's rping -s, an ordinary verbs program."""
        server = self.lab.start("beta", "rping", "-s", "-a", programs.ADDRESS["beta"], "-v")
        programs.wait_listening(self.lab, "beta", server)
        found = self.drive("connect", programs.ADDRESS["beta"], PORT)
        self.assert_exchanges(found, 64)
        server.expect("server ping data: BCDEFG")

    def test_4_server(self):
        """beta's rping -c, which checks the data, has the example as its server."""
        server = self.serving()
        client = self.client("3")
        self.assertEqual(client.wait(60), 0, client.output)
        self.assertEqual(client.output.count("ping data: rdma-ping-"), 3, client.output)
        self.assertEqual(server.wait(60), 0, server.output)
        self.assert_exchanges(server.output, 64)

    @labtest.breaks("ADMIN-MEMORY")
    def test_5_unmapped(self):
        """DMA to memory that the program has not mapped: status 6, EFAULT."""
        found = self.drive("unmapped")
        self.assertIn("test register: status 6", found)
        self.assertIn("command: status 6", found)

    @labtest.breaks(*KILLED)
    def test_6_killed(self):
        """The process is killed while it serves; beta learns of it, and the next run is good."""
        server = self.serving()
        client = self.client("1000000")
        server.expect("exchange 5:")
        self.lab.sh("alpha", "kill -9 $(pidof vfio_driver)")
        server.wait(30)
        self.assertNotIn("torn down", server.output)
        client.wait(90)
        self.assert_exchanges(self.drive("loop"), 4096)

    def test_7_kernel_driver(self):
        """The kernel's driver takes the adapter back, behind the IOMMU, too."""
        self.assertEqual(self.bind("staghorn"), self.device)
        deadline = time.monotonic() + 30
        while "ACTIVE" not in (shown := self.lab.sh("alpha", "rdma link")):
            self.assertLess(time.monotonic(), deadline, shown)
            time.sleep(0.3)
        rdmatest.rping(self.lab, "alpha", "beta", count=3)
        rdmatest.rping(self.lab, "beta", "alpha", count=3)


if __name__ == "__main__":
    labtest.main()
