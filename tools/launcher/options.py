# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's options, checked before anything starts."""
import argparse
import hashlib
import os
import re
from pathlib import Path

from . import own_kernel
from .errors import UsageError
from .state import check_name

DRIVERS = ("staghorn", "siw", "none")
KERNELS = ("base", "debug")
# The debug kernel keeps a history of each object, and checks each access to memory.
DEBUG_MEMORY_MIB = 1024
DEBUG_PATIENCE = 6
READY_LIMIT = 120.0
MAX_VMS = 16
MTU_RANGE = (576, 65521)
# Networks of a VM's first, second, ... adapter; the last number is the VM's.
NET = "10.77.%d.%d"
NET_BITS = 24
NET6 = "fd77::%x:0:0:0:%x"
NET6_BITS = 64
MAX_ADAPTERS = 8
MAIN = "main"  # the segment of each VM's first adapter
NIC = "virtio-net-pci"


def vm_names(text):
    names = [check_name("VM", name.strip()) for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError("--vms names no VM")
    if len(names) > MAX_VMS:
        raise UsageError("%d VMs are more than %d" % (len(names), MAX_VMS))
    for name in names:
        if names.count(name) > 1:
            raise UsageError("--vms names %s twice" % name)
        if name == "segment":
            raise UsageError("a VM cannot be called segment")
    return names


def some(option, text, names):
    """Turns 'alpha,beta', or '' for all, into the set of VMs; None: no VM."""
    if text is None:
        return set()
    wanted = [name.strip() for name in text.split(",") if name.strip()] or list(names)
    for name in wanted:
        if name not in names:
            raise UsageError("%s: there is no VM %s" % (option, name))
    return set(wanted)


def drivers(text, names):
    """Parses alpha=staghorn,beta=siw, or one driver for all."""
    chosen = dict.fromkeys(names, "staghorn")
    for item in filter(None, (part.strip() for part in (text or "").split(","))):
        name, equals, driver = item.rpartition("=")
        if driver not in DRIVERS:
            raise UsageError(
                "--driver: there is no driver %s; there are %s" % (driver, ", ".join(DRIVERS))
            )
        if equals and name not in chosen:
            raise UsageError("--driver: there is no VM %s; there are %s" % (name, ", ".join(names)))
        for vm in [name] if equals else names:
            chosen[vm] = driver
    return chosen


def _property(option, item, setting):
    """'crc=off' to ('crc', 'off')."""
    key, equals, value = setting.partition("=")
    if not equals or not re.match(r"[a-z][a-z0-9-]*\Z", key) or not value or "," in value:
        raise UsageError("%s %s is not [VM:]PROPERTY=VALUE" % (option, item))
    if key in ("netdev", "mac", "id"):
        raise UsageError("%s: %s is the launcher's to choose" % (option, key))
    return key, value


def adapters(items, driver_of):
    """Further adapters: ['beta:segment=west,crc=off'] to {'beta': [{...}]}.

    Without a VM each VM gets the adapter.  segment=NAME is the segment of its uplink (default:
    main, that of the first adapters), nic=MODEL the NIC that shares its port; the rest are its
    properties."""
    found = {name: [] for name in driver_of}
    for item in items or []:
        head = item.split("=")[0]
        target, settings = (None, item) if "=" in item else (item, "")
        if ":" in head:
            target, _, settings = item.partition(":")
        if target is not None and target not in found:
            raise UsageError("--adapter: there is no VM %s" % target)
        if target and driver_of[target] != "staghorn":
            raise UsageError("--adapter: VM %s has no staghorn adapter" % target)
        new = {"segment": MAIN, "nic": NIC, "properties": {}}
        for setting in filter(None, settings.split(",")):
            key, value = _property("--adapter", item, setting)
            if key == "segment":
                new[key] = check_name("segment", value)
            elif key == "nic":
                new[key] = value
            else:
                new["properties"][key] = value
        for name in [target] if target else found:
            if driver_of[name] == "staghorn":
                found[name].append(dict(new, properties=dict(new["properties"])))
            if len(found[name]) >= MAX_ADAPTERS:
                raise UsageError("more than %d adapters for VM %s" % (MAX_ADAPTERS, name))
    return found


def device_properties(items, driver_of):
    """['alpha:mpa-rev=1', 'crc=off'] to {'alpha': {...}}; without a VM, for every adapter."""
    found = {name: {} for name in driver_of}
    for item in items or []:
        target, colon, setting = (
            item.partition(":") if ":" in item.split("=")[0] else ("", "", item)
        )
        key, value = _property("--device-prop", item, setting)
        if colon and target not in found:
            raise UsageError("--device-prop: there is no VM %s" % target)
        if colon and driver_of[target] != "staghorn":
            raise UsageError("--device-prop: VM %s has no staghorn adapter" % target)
        for name in [target] if colon else found:
            if driver_of[name] == "staghorn":
                found[name][key] = value
    return found


def mtu(value):
    if not MTU_RANGE[0] <= value <= MTU_RANGE[1]:
        raise UsageError("--mtu %d is not within %d to %d" % ((value,) + MTU_RANGE))
    return value


def kernel(text):
    """The kernel of a lab: the option's, or the environment's STAGHORN_KERNEL."""
    chosen = text or os.environ.get("STAGHORN_KERNEL") or KERNELS[0]
    if chosen not in KERNELS and not own_kernel.is_path(chosen):
        raise UsageError(
            "%s: there is no kernel %s" % ("--kernel" if text else "STAGHORN_KERNEL", chosen),
            "Choose from %s, or give a built tree, a bzImage with --modules DIR, or a Debian "
            "kernel package" % ", ".join(KERNELS),
        )
    return chosen


def is_slow(lab):
    """Whether the lab's kernel checks itself."""
    return lab["kernel"] == "debug" or bool((lab["own_kernel"] or {}).get("slow"))


def patience(lab):
    """How many times as long things may take in this lab."""
    return DEBUG_PATIENCE if is_slow(lab) else 1


def memory(text):
    """'1G' to MiB."""
    match = re.match(r"(\d+)([MG])?\Z", text.upper())
    size = int(match[1]) * (1024 if match[2] == "G" else 1) if match else 0
    if not 256 <= size <= 1 << 20:
        raise UsageError("--mem %s is not a size such as 768M or 2G (256M at least)" % text)
    return size


def cpus(value):
    if not 1 <= value <= 64:
        raise UsageError("--cpus %d is not within 1 to 64" % value)
    return value


def repeats(text):
    """A number of runs of a measurement; for argparse."""
    if not re.match(r"[0-9]{1,4}\Z", text) or int(text) < 1:
        raise argparse.ArgumentTypeError("%s is not a number of runs, 1 to 9999" % text)
    return int(text)


def seconds(text):
    """The length of a measurement; for argparse."""
    if not re.match(r"[0-9]{0,4}(\.[0-9]+)?\Z", text) or not 0.01 <= float(text or 0) <= 3600:
        raise argparse.ArgumentTypeError("%s is not a length in seconds, 0.01 to 3600" % text)
    return float(text)


def writable(option, text):
    """The absolute path of a file that will be written; its folder must exist."""
    path = Path(text).absolute()
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError("%s %s: cannot be written there" % (option, text))
    return str(path)


def capture(text):
    """The absolute path of the capture, if there is to be one."""
    return writable("--capture", text) if text else None


def mac(name, number=0):
    """A locally administered MAC address, always the same for the same VM and adapter.

    The segments of two labs are apart, and boot snapshots have the address in them: VMs of the
    same name share them, whatever their lab is called."""
    text = "%s/%d" % (name, number) if number else name
    digest = hashlib.sha256(text.encode()).digest()
    return ":".join("%02x" % octet for octet in (0x02, *digest[:5]))
