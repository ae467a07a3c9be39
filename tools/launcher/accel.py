# SPDX-License-Identifier: GPL-2.0-or-later
"""KVM or TCG.

/dev/kvm may exist although it cannot run a guest.  So KVM is chosen only after the guest's kernel
has reached user space with it.  The answer is kept in the build folder for this boot of the machine
and this QEMU.
"""
import json
import os
import subprocess
import time

from . import paths
from .errors import LabError

MARK = b"staghorn: probe ok"
LIMIT = 15.0


def _boot_id():
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def probe():
    """Whether a guest boots with KVM."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    command = [
        paths.qemu(),
        "-L",
        paths.firmware(),
        "-M",
        "q35",
        "-cpu",
        "max",
        "-accel",
        "kvm",
        "-m",
        "512",
        "-nodefaults",
        "-nographic",
        "-no-reboot",
        "-serial",
        "stdio",
        "-kernel",
        paths.guest("vmlinuz"),
        "-initrd",
        paths.guest("initrd"),
        "-append",
        "console=ttyS0 quiet sg.probe panic=-1",
    ]
    child = subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    os.set_blocking(child.stdout.fileno(), False)
    seen, deadline = b"", time.monotonic() + LIMIT
    try:
        while time.monotonic() < deadline:
            part = child.stdout.read()
            if part == b"":
                break
            seen += part or b""
            if MARK in seen or b"KVM internal error" in seen:
                break
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()
    return MARK in seen


def _remembered_probe():
    qemu = paths.qemu()
    key = "%s %s %d" % (_boot_id(), qemu, qemu.stat().st_mtime_ns)
    memory = paths.build() / "kvm-probe.json"
    try:
        known = json.loads(memory.read_text())
        if known["key"] == key:
            return known["works"]
    except (OSError, ValueError, KeyError):
        pass
    works = probe()
    try:
        memory.write_text(json.dumps({"key": key, "works": works}))
    except OSError:
        pass
    return works


def choose(wanted):
    """Turns 'auto', 'tcg' or 'kvm' into 'tcg' or 'kvm'."""
    if wanted == "auto":
        wanted = {"on": "kvm", "off": "tcg"}.get(paths.config().get("SG_KVM", "auto"), "auto")
    if wanted == "tcg":
        return "tcg"
    works = _remembered_probe()
    if wanted == "kvm" and not works:
        raise LabError("KVM does not boot a guest here", "Use --accel tcg (or auto)")
    return "kvm" if works else "tcg"
