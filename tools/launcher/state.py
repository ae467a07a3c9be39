# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab's folder.

labs/NAME/
  lab.json      options, processes; written atomically
  lock          held while a verb changes the lab
  segment/      files of the Ethernet segments, if they have a process
  VM/           console, qmp, x0..x11, gdb (sockets), qemu.log, *.lock; console.log, device.log and
                the older part of each, *.log.1, which keeper.py writes; pmem*.img, pmem.bad,
                report.json, flash*.img, uefi.fd, if the VM has them

The path of a socket may be longer than the 107 octets of a socket address.  So QEMU starts in the
lab's folder and gets relative names, and `connect` goes through /proc/self/fd.
"""
import contextlib
import copy
import fcntl
import json
import os
import re
import shutil
import socket
import time

from . import paths, proc
from .errors import AbsentError, LabError, UsageError

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}\Z")
CREATE_MAX = 100  # attempts to make a lab's folder
# Members of lab.json, of a lab and of each VM, that the first launchers did not write, and the
# meaning of their absence.  A new member of a lab's state has to be added here.
LATER = {"image": "base", "kernel": "base", "impair": {}, "boot_snapshot": False, "check": False}
LATER.update(own_kernel=None, shares=[], packages=[])
LATER_OF_VM = {
    **{"addr6": None, "pmem": None, "profile": None, "adapters": [], "netboot": False},
    **{"uefi": False, "iommu": False, "trace": [], "gdb": None, "qemu_args": [], "flash": []},
}


def completed(data):
    """The content of lab.json, with all members that this launcher expects."""
    vms = {name: {**copy.deepcopy(LATER_OF_VM), **vm} for name, vm in data["vms"].items()}
    return {**copy.deepcopy(LATER), **data, "vms": vms}


def check_name(kind, name):
    if not NAME.match(name):
        raise UsageError(
            "%r is not a %s name: lower-case letters, digits and hyphens, a letter first, "
            "at most 31" % (name, kind)
        )
    return name


class LabFolder:
    """Access to one lab's folder; `data` is the content of lab.json or None."""

    def __init__(self, name):
        self.name = check_name("lab", name)
        self.path = paths.labs() / name
        self.data = None
        self.load()

    def load(self):
        try:
            self.data = completed(json.loads((self.path / "lab.json").read_text()))
        except FileNotFoundError:
            self.data = None
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise LabError(
                "the state of lab %s cannot be read: %s" % (self.name, error),
                "Remove the folder %s once no QEMU of it runs" % self.path,
            )
        return self.data

    def save(self):
        new = self.path / "lab.json.new"
        new.write_text(json.dumps(self.data, indent=1) + "\n")
        os.replace(new, self.path / "lab.json")

    def create(self):
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)
        for folder in (self.path.parent, self.path.parent.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def clear(self):
        """Removes everything but the lock, which the caller holds."""
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != "lock":
                entry.unlink()

    def _lock_file(self):
        """Opens the file of the lock.  A lab that is removed meanwhile takes the folder of all labs
        with it, if there is no other lab."""
        for _ in range(CREATE_MAX):
            try:
                self.create()
                return open(self.path / "lock", "a")
            except FileNotFoundError:
                time.sleep(0.001)
        raise LabError(
            "the folder %s cannot be made: something removes it" % self.path,
            "Name another folder for labs in STAGHORN_STATE",
        )

    @contextlib.contextmanager
    def lock(self, wait=0):
        """Lets one changing verb run at a time; waits `wait` seconds for another one.  The lock's
        file is removed with the lab, so the lock is taken again if the file was replaced
        meanwhile."""
        deadline = time.monotonic() + wait
        while True:
            file = self._lock_file()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                if time.monotonic() < deadline:
                    time.sleep(0.1)
                    continue
                raise LabError(
                    "another command is changing lab %s" % self.name,
                    "Wait for it, or use another lab: ./staghorn --lab OTHER ...",
                )
            try:
                same = os.path.samestat(os.fstat(file.fileno()), os.stat(self.path / "lock"))
            except FileNotFoundError:
                same = False
            if same:
                break
            file.close()
        try:
            self.load()
            yield self
        finally:
            file.close()
            if not self.data:
                self.remove()

    # -- members

    def require(self):
        if not self.data:
            others = [lab for lab in all_names() if lab != self.name]
            hint = "Start it:  ./staghorn%s up" % (
                "" if self.name == "lab" else " --lab " + self.name
            )
            if others:
                hint += "   (there are: %s)" % ", ".join(others)
            raise AbsentError("lab %s is not up" % self.name, hint)
        return self.data

    def vm(self, name):
        """The state of a VM, running or not."""
        vms = self.require()["vms"]
        if name not in vms:
            raise AbsentError(
                "lab %s has no VM %s" % (self.name, name), "It has: " + ", ".join(vms)
            )
        return vms[name]

    def running(self, name):
        vm = self.vm(name)
        if not proc.alive(vm.get("process")):
            raise AbsentError(
                "VM %s is off" % name,
                "Switch it on:  ./staghorn --lab %s on %s" % (self.name, name),
            )
        return vm

    def processes(self):
        """All QEMUs that the lab has started and that may still run."""
        data = self.data or {}
        found = [vm.get("process") for vm in data.get("vms", {}).values()]
        found.append(data.get("segment", {}).get("process"))
        return [ident for ident in found if ident]

    def keepers(self):
        """The keepers of the QEMUs' logs; each ends with its QEMU."""
        found = [vm.get("keeper") for vm in (self.data or {}).get("vms", {}).values()]
        return [ident for ident in found if ident]


def all_names():
    try:
        return sorted(p.name for p in paths.labs().iterdir() if (p / "lab.json").exists())
    except FileNotFoundError:
        return []


def connect(path, timeout=None):
    """A connection to a UNIX socket, however long its path is."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout)
    folder = None
    try:
        if len(os.fsencode(str(path))) < 100:
            sock.connect(str(path))
        else:
            folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
            sock.connect("/proc/self/fd/%d/%s" % (folder, path.name))
    except OSError:
        sock.close()
        raise
    finally:
        if folder is not None:
            os.close(folder)
    return sock
