# SPDX-License-Identifier: GPL-2.0-or-later
"""What the user asked for, checked before anything starts."""
import hashlib
import os
import re
from pathlib import Path

from .errors import UsageError
from .state import check_name

DRIVERS = ("staghorn", "siw", "none")
MAX_VMS = 16
MTU_RANGE = (576, 65521)
NET = "10.77.0.%d"
NET_BITS = 24


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


def drivers(text, names):
    """alpha=staghorn,beta=siw, or one driver for all."""
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


def device_properties(items, driver_of):
    """['alpha:mpa-rev=1', 'crc=off'] to {'alpha': {...}}; without a VM, for every adapter."""
    found = {name: {} for name in driver_of}
    for item in items or []:
        target, colon, setting = (
            item.partition(":") if ":" in item.split("=")[0] else ("", "", item)
        )
        key, equals, value = setting.partition("=")
        if not equals or not re.match(r"[a-z][a-z0-9-]*\Z", key) or not value or "," in value:
            raise UsageError("--device-prop %s is not [VM:]PROPERTY=VALUE" % item)
        if key in ("netdev", "mac", "id"):
            raise UsageError("--device-prop: %s is the launcher's to choose" % key)
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


def capture(text):
    """The absolute path of the capture; its folder must be there."""
    if not text:
        return None
    path = Path(text).absolute()
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError("--capture %s: cannot be written there" % text)
    return str(path)


def mac(lab, name):
    """Locally administered, the same for the same lab and VM."""
    digest = hashlib.sha256(("%s/%s" % (lab, name)).encode()).digest()
    return ":".join("%02x" % octet for octet in (0x02, *digest[:5]))
