# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders of the host that all VMs of a lab show, by 9p over virtio.

QEMU opens the files, so a guest can do there what the user of the launcher can.  The guest caches
nothing: what one side writes the other side sees at once.
"""
import os
import re
from pathlib import Path

from .errors import UsageError

MOST = 8
TARGET = re.compile(r"/[A-Za-z0-9._+/-]+\Z")
# Folders of the guest that its own file systems cover.
TAKEN = ("/proc", "/sys", "/dev", "/run", "/usr", "/bin", "/sbin", "/lib", "/etc", "/lib64")


def _split(item):
    """(folder, path in the guest or "", whether it is read-only)"""
    read_only = item.endswith(",ro")
    text = item[:-3] if read_only else item
    folder, colon, target = text.rpartition(":")
    if not colon or not target.startswith("/"):
        folder, target = text, ""
    return folder, target, read_only


def _one(item):
    folder, target, read_only = _split(item)
    path = Path(os.path.expanduser(folder)).absolute()
    if not folder or not path.exists():
        raise UsageError("--share: there is no folder %s" % (folder or item))
    if not path.is_dir():
        raise UsageError("--share: %s is not a folder" % folder, "Copy a file with: copy FILE VM:")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError("--share: you may not read %s" % folder)
    if not read_only and not os.access(path, os.W_OK):
        raise UsageError("--share: you may not write in %s" % folder, "Add ,ro for reading only")
    if not target:
        target = "/mnt/" + path.resolve().name
        if not TARGET.match(target):
            raise UsageError(
                "--share: %s has no name that can be a path in the VM" % folder,
                "Name the path, as in --share %s:/mnt/mine" % folder,
            )
    if not TARGET.match(target) or ".." in target.split("/") or os.path.normpath(target) == "/":
        raise UsageError("--share: %s cannot be a path in the VM" % target)
    target = os.path.normpath(target)
    if any(target == each or target.startswith(each + "/") for each in TAKEN):
        raise UsageError(
            "--share: %s is the guest's own" % target, "Choose a path such as /mnt/mine"
        )
    return {"folder": str(path), "target": target, "read_only": read_only}


def parse(items, diskless):
    """['DIR:PATH,ro'] to a list of dictionaries.  diskless: VMs that have no module for it."""
    found = [_one(item) for item in items or []]
    if len(found) > MOST:
        raise UsageError("--share: %d folders are more than %d" % (len(found), MOST))
    targets = [each["target"] for each in found]
    for target in targets:
        if targets.count(target) > 1:
            raise UsageError("--share: two folders would be at %s" % target, "Name another :PATH")
    if found and diskless:
        raise UsageError("--share: VM %s has no disk and cannot mount it" % sorted(diskless)[0])
    return found


def arguments(shares):
    """QEMU's arguments."""
    for number, each in enumerate(shares):
        yield from (
            "-fsdev",
            "local,id=share%d,path=%s,security_model=none,multidevs=remap%s"
            % (
                number,
                each["folder"].replace(",", ",,"),
                ",readonly=on" if each["read_only"] else "",
            ),
            "-device",
            "virtio-9p-pci,fsdev=share%d,mount_tag=share%d" % (number, number),
        )


def kernel_arguments(shares):
    words = [each["target"] + (":ro" if each["read_only"] else "") for each in shares]
    return " sg.share=" + ",".join(words) if words else ""
