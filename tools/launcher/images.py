# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images of VMs: ours, one with more packages of Debian, or a file of the user.

The launcher mounts nothing: e2fsprogs' debugfs says what a file has.
"""
import argparse
import os
import re
from pathlib import Path

from . import own_kernel, paths, proc
from .errors import UsageError

IMAGES = ("base", "consumers")
MOST = 200  # packages
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}\Z")
SCRIPT = paths.TOP / "tools" / "guest" / "packages.sh"
# What the guest's scripts call.
PROGRAMS = ("sh", "mount", "ip", "rdma", "find", "modprobe", "insmod")
FOLDERS = ("/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/")
OTHERS = (
    (0, b"QFI\xfb", "a qcow2 image", "qemu-img convert -O raw %s FILE.img"),
    (0, b"hsqs", "a squashfs image", "unsquashfs %s, and mke2fs -t ext4 -d FOLDER FILE.img"),
    (0, b"KDMV", "a VMDK image", "qemu-img convert -O raw %s FILE.img"),
    (510, b"\x55\xaa", "a disk with partitions", "copy the partition with the root out of %s"),
)


def packages(text):
    """'a,b' to a sorted list of packages."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise UsageError("--packages names no package")
    for name in names:
        if not PACKAGE.match(name):
            raise UsageError("--packages: %s is no name of a Debian package" % name)
    if len(names) > MOST:
        raise UsageError("--packages: %d packages are more than %d" % (len(names), MOST))
    return sorted(set(names))


def word(text):
    """The value of --image, which names something; for argparse."""
    if text not in IMAGES and "/" not in text and not os.path.exists(text):
        raise argparse.ArgumentTypeError(
            "there is no image %s; choose from %s, or give a file" % (text, ", ".join(IMAGES))
        )
    return text


def chosen(text, names, own):
    """The image's name or path, checked.  names: further packages; own: facts of a kernel."""
    if text in IMAGES:
        return text
    path = Path(os.path.expanduser(text)).absolute()
    if names:
        raise UsageError("--packages: a file has the packages that it has", "Leave --image out")
    if not path.is_file():
        raise UsageError("--image: there is no file %s" % path)
    _check_format(path)
    _check_content(path, own)
    return str(path)


def _check_format(path):
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise UsageError("--image: %s: %s" % (path, error.strerror))
    if start[1080:1082] == b"\x53\xef":
        return
    for at, mark, what, how in OTHERS:
        if start[at : at + len(mark)] == mark:
            raise UsageError(
                "--image: %s is %s; the VMs need an ext4 file system" % (path, what), how % path
            )
    raise UsageError(
        "--image: %s has no ext4 file system" % path,
        "Make one of a folder:  mke2fs -t ext4 -d FOLDER FILE.img SIZE",
    )


def has(path, name):
    """Whether the file system has the file, which may be a link."""
    done = proc.ask(
        ["debugfs", "-R", "stat " + name, path],
        env={**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"},
    )
    return "Inode:" in done.stdout


def _check_content(path, own):
    lacks = [x for x in PROGRAMS if not any(has(path, folder + x) for folder in FOLDERS)]
    if lacks:
        raise UsageError(
            "--image: %s lacks %s" % (path, ", ".join(lacks)),
            "It must have Debian's packages rdma-core, ibverbs-providers, iproute2, kmod, mount",
        )
    if own:
        return
    release = paths.guest_release()
    if not has(path, "/usr/lib/modules/" + release):
        raise UsageError(
            "--image: %s has no modules of the kernel %s" % (path, release),
            "Copy them to /usr/lib/modules in it, or boot another kernel with --kernel",
        )


def build(image, names, say):
    """Makes the image with further packages, if it is not in the cache; returns its path."""
    said = own_kernel.run_script([str(SCRIPT), image, *names], "the image with these packages", say)
    return os.path.join(own_kernel.product_of(said), "packages.img")
