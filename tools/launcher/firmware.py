# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapters' firmware: capability profiles, and each adapter's own copy of a flash image.

The copy is in the lab's folder, so what `devlink dev flash` writes survives a power cut, and is
gone with the lab.
"""
import shutil
import subprocess

from . import paths
from .errors import LabError, UsageError

NONE = "none"
DEFAULT = "full"


def profiles():
    """{name: description}, in the order of firmware/profiles.ini."""
    import configparser

    found = configparser.ConfigParser(interpolation=None)
    found.read_string(paths.adapter_firmware("profiles.ini").read_text())
    return {name: found[name].get("description", "") for name in found.sections()}


def parse(items, driver_of):
    """['alpha=small', 'full'] to {'alpha': 'small', ...}; None: an adapter without an image."""
    known = profiles()
    chosen = {vm: DEFAULT if driver == "staghorn" else None for vm, driver in driver_of.items()}
    for item in items or []:
        target, equals, name = item.rpartition("=")
        if name not in known and name != NONE:
            raise UsageError(
                "--profile: there is no profile %s; there are %s, %s"
                % (name, ", ".join(known), NONE)
            )
        if equals and target not in chosen:
            raise UsageError("--profile: there is no VM %s" % target)
        if equals and driver_of[target] != "staghorn":
            raise UsageError("--profile: VM %s has no staghorn adapter" % target)
        for vm in [target] if equals else chosen:
            if driver_of[vm] == "staghorn":
                chosen[vm] = None if name == NONE else name
    return chosen


def _file(name, number):
    """The image's path, relative to the lab's folder."""
    return "%s/flash%d.img" % (name, number)


def prepare(folder, name, vm):
    """Makes the copies that do not exist, each with its adapter's identity."""
    if not vm.get("profile"):
        return
    for number, port in enumerate([vm, *vm["adapters"]]):
        path = folder.path / _file(name, number)
        if path.exists():
            continue
        new = path.with_suffix(".new")
        shutil.copyfile(paths.adapter_firmware(vm["profile"] + ".flash"), new)
        octets = port["mac"].replace(":", "")
        eui64 = "%02x%sfffe%s" % (int(octets[:2], 16) ^ 2, octets[2:6], octets[6:])
        done = subprocess.run(
            [
                paths.flash_tool(),
                "identity",
                new,
                "serial=SG" + octets.upper(),
                "mac=" + port["mac"],
                "guid=0x" + eui64,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LabError("the flash image of VM %s: %s" % (name, done.stderr.strip()))
        new.rename(path)
        vm["flash"].append(path.stat().st_mtime_ns)


def changed(folder, name):
    """Whether somebody has written to the flash of one of the VM's adapters since it was made."""
    vm = folder.data["vms"][name]
    paths_of = (folder.path / _file(name, number) for number in range(len(vm["adapters"]) + 1))
    now = [path.stat().st_mtime_ns for path in paths_of if path.exists()]
    return now != vm["flash"]


def properties(name, vm, number):
    """The device's properties that name the image."""
    if not vm.get("profile"):
        return {}
    return {"romfile": _file(name, number), "flash-write": "on"}
