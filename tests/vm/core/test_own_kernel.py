#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel of the user, a folder of the host, a driver that is loaded anew, udev in the guest.
# timeout: 900
# suite: full

The kernel is that of the guest's Debian, in packages that the test makes: with those modules that
the guest needs, and with its headers.  So the driver is built and the modules are packed as for any
other package.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import labtest

sys.dont_write_bytecode = True
from launcher import paths  # noqa: E402

NEEDED = """virtio_blk virtio_net virtio_rng ext4 overlay crc32c_generic libcrc32c ib_uverbs
rdma_ucm ib_umad 9p 9pnet_virtio configfs qemu_fw_cfg udp_tunnel ip6_udp_tunnel""".split()


def guest_tree():
    return (paths.build() / "products" / "guest-tree").resolve()


def modules_of(tree, release):
    """The files of the modules that the guest needs, without their dependencies twice."""
    found = set()
    for name in NEEDED:
        words = ["/sbin/modprobe", "-d", tree, "-S", release, "--show-depends", name]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        found.update(re.findall(r"insmod (\S+)", done.stdout))
    return sorted(found)


def pack(folder, name, root, depends=""):
    """Makes the package NAME of the folder root; always the same octets for the same files."""
    control = root / "DEBIAN"
    control.mkdir()
    text = (
        "Package: %s\nVersion: 1\nArchitecture: amd64\nMaintainer: test <test@test.test>\n" % name
    )
    text += "Depends: %s\n" % depends if depends else ""
    (control / "control").write_text(text + "Description: test\n")
    path = folder / (name + "_1_amd64.deb")
    subprocess.run(
        ["dpkg-deb", "-Znone", "--root-owner-group", "-b", root, path],
        env={**os.environ, "SOURCE_DATE_EPOCH": "0"},
        check=True,
        capture_output=True,
        timeout=120,
    )
    shutil.rmtree(root)
    return path


def packages(folder):
    """Packages of the guest's kernel in the folder; returns that of the image."""
    tree, root = guest_tree() / "tree", folder / "root"
    release = (guest_tree() / "KERNEL").read_text().strip()
    version = release.removesuffix("-amd64")
    for source in modules_of(tree, release):
        target = root / Path(source).resolve().relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    place = "usr/lib/modules/%s/" % release
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy2(tree / place / name, root / place / name)
    (root / "boot").mkdir()
    for name in ("vmlinuz", "config"):
        shutil.copy2(tree / "boot" / ("%s-%s" % (name, release)), root / "boot")
    image = pack(folder, "linux-image-" + release, root)
    common, kbuild = "linux-headers-%s-common" % version, "linux-kbuild-" + version
    for name, path, depends in (
        ("linux-headers-" + release, "usr/src/linux-headers-" + release, common + ", " + kbuild),
        (common, "usr/src/" + common, ""),
        (kbuild, "usr/lib/" + kbuild, ""),
    ):
        (root / path).parent.mkdir(parents=True)
        shutil.copytree(tree / path, root / path, symlinks=True)
        pack(folder, name, root, depends)
    return image


class OwnKernel(labtest.LabCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="sg-own-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        (cls.folder / "work").mkdir()
        (cls.folder / "work" / "file").write_text("from the host\n")
        (cls.folder / "debs").mkdir()
        cls.image = packages(cls.folder / "debs")
        cls.up_arguments = (
            *("--vms", "alpha", "--kernel", str(cls.image)),
            *("--share", "%s:/mnt/mine" % (cls.folder / "work")),
            *("--share", "%s:/mnt/read,ro" % (cls.folder / "work")),
        )
        super().setUpClass()

    def alpha(self, *words, status=0):
        """What a command in the VM prints."""
        return self.lab.run("exec", "-n", "alpha", "--", *words, status=status, timeout=120).out

    def test_kernel__boots_with_its_driver(self):
        """The VM runs the package's kernel, with modules of the second disk and a driver for it."""
        release = self.image.name.removeprefix("linux-image-").removesuffix("_1_amd64.deb")
        self.assertEqual(self.alpha("uname", "-r").strip(), release)
        driver = (paths.build() / "products" / "guest-own-driver" / "staghorn.ko").read_bytes()
        name = "/usr/lib/modules/%s/updates/staghorn.ko" % release
        said = self.alpha("sha256sum", name).split()[0]
        self.assertEqual(said, hashlib.sha256(driver).hexdigest())
        self.assertIn("staghorn0/1 state ACTIVE", self.alpha("rdma", "link"))
        self.assertIn("/own:/image", self.alpha("cat", "/proc/mounts"))
        found = json.loads(self.lab.run("status", "--json").out)
        self.assertEqual((found["release"], found["kernel"]), (release, str(self.image)))

    def test_guest__has_what_programs_expect(self):
        """Configuration, standard streams, debugfs and configfs are there."""
        self.alpha("sh", "-c", "grep -q CONFIG_INFINIBAND=m /boot/config-$(uname -r)")
        self.assertEqual(self.alpha("sh", "-c", "echo to > /dev/stdout"), "to\n")
        mounts = self.alpha("cat", "/proc/mounts")
        for kind in ("debugfs", "configfs"):
            self.assertRegex(mounts, "(?m)^%s /sys/kernel/" % kind)

    def test_share__both_ways(self):
        """Both sides see at once what the other one writes; a folder with ro is not written."""
        work = self.folder / "work"
        self.assertEqual(self.alpha("cat", "/mnt/mine/file"), "from the host\n")
        self.alpha("sh", "-c", "echo from the guest > /mnt/mine/new")
        self.assertEqual((work / "new").read_text(), "from the guest\n")
        (work / "file").write_text("changed\n")
        self.assertEqual(self.alpha("cat", "/mnt/read/file"), "changed\n")
        self.alpha("touch", "/mnt/read/other", status=1)
        self.assertFalse((work / "other").exists())

    def test_udev__names_stay(self):
        """With udev an adapter is plugged in again, and status names the device that is there."""
        self.alpha("/usr/lib/systemd/systemd-udevd", "--daemon")
        self.lab.run("unplug", "alpha")
        self.lab.run("plug", "alpha", timeout=120)
        self.alpha("udevadm", "settle")
        found = json.loads(self.lab.run("status", "--json").out)["vms"]["alpha"]["device"]
        self.assertIn("link %s/1 state ACTIVE" % found, self.alpha("rdma", "link"))

    def test_reload__and_refused_in_use(self):
        """A driver is loaded anew; a process that uses it is named, and ended with --kill."""
        before = self.alpha("stat", "-c", "%i", "/sys/module/staghorn")
        self.lab.run("reload", "alpha", timeout=300)
        self.assertIn("ACTIVE", self.alpha("rdma", "link"))
        self.assertNotEqual(self.alpha("stat", "-c", "%i", "/sys/module/staghorn"), before)
        user = self.lab.start("alpha", "ibv_asyncwatch")
        user.expect("async event")
        done = self.lab.run("reload", "alpha", status=1, timeout=300)
        self.assertRegex(done.err, r"in use by ibv_asyncwatch \(\d+\)")
        self.assertIn("--kill", done.err)
        self.assertIn("ACTIVE", self.alpha("rdma", "link"))
        found = json.loads(self.lab.run("reload", "alpha", "--kill", "--json", timeout=300).out)
        self.assertEqual(found["device"], "staghorn0")
        self.assertNotEqual(user.wait(), 0)

    def test_reload__wrong_module(self):
        """Another module than the driver is refused, and the driver stays."""
        other = next(guest_tree().glob("tree/usr/lib/modules/*/kernel/lib/crc16.ko"))
        words = ("reload", "alpha", "--module", other)
        done = self.lab.run(*words, status=1, timeout=120)
        self.assertIn("it is the module crc16", done.err)
        self.assertIn("ACTIVE", self.alpha("rdma", "link"))


if __name__ == "__main__":
    labtest.main()
