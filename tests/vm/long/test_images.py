#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs with more of Debian: `up --packages`, and the same image as a file of the user's, `--image`.
# timeout: 900

The first run makes the image, which the cache keeps.
"""
import unittest

import labtest
import rdmatest

# Small, and in no image that the build makes.
PACKAGE, PROGRAM = "tree", "/usr/bin/tree"
VMS = ("--vms", "alpha,beta")
IMAGE_LIMIT = 600  # seconds until the image is there


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = labtest.Lab("lab")
        words = (*VMS, "--packages", PACKAGE)
        cls.lab.run("up", "--timeout", labtest.UP_LIMIT, *words, timeout=IMAGE_LIMIT)
        cls.image = rdmatest.folder(cls.lab).data["image"]

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def test_1_packages__are_in_the_vms(self):
        for vm in ("alpha", "beta"):
            self.assertRegex(self.lab.sh(vm, "tree --version"), r"^tree v\d")
            self.assertIn("install ok", self.lab.sh(vm, "dpkg-query -s %s" % PACKAGE))

    def test_1_packages__rdma_works(self):
        rdmatest.rping(self.lab, "alpha", "beta")

    def test_2_image__is_as_good_as_a_file(self):
        """The VMs write into it, and the file stays as it is"""
        with open(self.image, "rb") as file:
            before = file.read(1 << 20)
        self.lab.sh("alpha", "echo mine > /root/mine; rm %s; sync" % PROGRAM)
        self.lab.down()
        self.lab.up(*VMS, "--image", self.image)
        self.assertRegex(self.lab.sh("alpha", "tree --version; ls /root"), r"^tree v\d[^\n]*\n$")
        rdmatest.rping(self.lab, "beta", "alpha")
        with open(self.image, "rb") as file:
            self.assertEqual(file.read(1 << 20), before)

    def test_3_image__with_packages_is_refused(self):
        words = ("up", *VMS, "--image", self.image, "--packages", PACKAGE)
        done = labtest.Lab("none").run(*words, status=2)
        self.assertIn("a file has the packages that it has", done.err)


if __name__ == "__main__":
    labtest.main()
