# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot snapshots: VMs that resume behind the boot of their kernel.

With `up --boot-snapshot` a VM whose like has not been seen boots once with sg.pause on its kernel's
command line.  The guest's init stops before it configures network and RDMA, and says so on the
console.  Then the state of this machine is written to a file, and its QEMU ends.  The VM itself,
and each later one with the same hardware and arguments, is a QEMU that loads this state.  The
launcher tells init the time, and init goes on.  The adapter and the NVDIMMs have no driver before
that, so the adapter's state is that of a reset adapter, and nobody knows the NVDIMMs' content.

A snapshot's name is a hash of all that the guest could have seen: QEMU's words, and the identity of
QEMU, kernel, initramfs and image.  QEMU and the initramfs, which each clone builds, count by their
content, so clones with the same sources share snapshots.  `on` resumes such a VM as well, if a
snapshot is there and the firmware of its adapters is still the one that they came with.  After
a power cut of a VM with a persistence domain its QEMU loads the snapshot (boot-state in
docs/manual/properties.md).

STAGHORN_SNAPSHOTS      a folder for them other than $XDG_CACHE_HOME/staghorn/boot-snapshots
STAGHORN_BOOT_SNAPSHOT  1: as if each `up` had --boot-snapshot
"""
import contextlib
import functools
import hashlib
import os
import re
import time
from pathlib import Path

from . import arch, debugging, domain, firmware, paths, plug, proc, qemu
from .errors import TIMEOUT, LabError
from .qmp import Monitor
from .state import connect

PAUSED = b"staghorn: waits to go on"
UP = b"staghorn: %s is up"
# Octets of files: about 80 of VMs with 1 GiB.  A run of all tests makes 60, and must not remove
# those that the next run needs first.
KEPT = 10 << 30
HALF_S = 3600  # a file that has not been completed for so long will never be
ROOM = 4 << 30  # octets of the file system that stay free
# Properties of the adapter that its PCI function does not show: nobody sees them before a driver
# asks the adapter, and they are not in the saved state.
BEHIND_DRIVER = (
    *("check", "wire", "mpa-rev", "crc", "markers", "peer-to-peer", "rnr", "commit", "rfc7306"),
    *("rtr-send", "rtr-write", "rtr-read", "first-fpdu-delay", "peer-timeout", "close-timeout"),
    *("linger-timeout", "close-limit", "tcp-window", "tcp-send-buffer", "tcp-rto-min"),
)
UNSEEN = re.compile(",(%s)=[^,]*" % "|".join(BEHIND_DRIVER))
# What a linker writes into a program: a hash of its content.
BUILD_ID = re.compile(rb"\x7fELF.*?\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", re.S)
# Options whose values only the host sees; kernel and initramfs count by themselves.
HOST_ONLY = (
    "-kernel",
    "-initrd",
    "-name",
    "-netdev",
    "-chardev",
    "-mon",
    "-object",
    "-trace",
    "-d",
    "-D",
    "-L",
    "-fsdev",
)


def folder():
    chosen = os.environ.get("STAGHORN_SNAPSHOTS")
    if chosen:
        return Path(chosen).absolute()
    return paths.cache() / "boot-snapshots"


def wanted(args):
    return bool(args.boot_snapshot or os.environ.get("STAGHORN_BOOT_SNAPSHOT") == "1")


def obstacle(lab, name):
    """Why a VM boots in any case, or ""."""
    vm = lab["vms"][name]
    for there, reason in (
        (arch.is_arm64(vm), "it is arm64"),
        (lab["accel"] != "tcg", "it runs with KVM"),
        (vm["pmem"] and vm["pmem"]["domain"].get("domain") == "off", "its NVDIMM has no domain"),
        (vm["netboot"], "it boots through the network"),
        (vm["uefi"], "it boots with UEFI"),
        (vm["gdb"] or vm["qemu_args"], "it has --gdb or --qemu-arg"),
    ):
        if there:
            return reason
    return ""


def _identity(path):
    """Changes with the file's content, if not on purpose."""
    path = Path(path).resolve()
    found = path.stat()
    return "%s %d %d" % (path, found.st_size, found.st_mtime_ns)


def _content(path):
    """Changes with the content of a program or of a small file, wherever it is."""
    with open(path, "rb") as file:
        found = BUILD_ID.match(file.read(1 << 16))
        if found:
            return found[1].hex()
        file.seek(0)
        return hashlib.sha256(file.read()).hexdigest()


def _visible(words):
    """QEMU's words without what only the host sees."""
    rest = iter(words)
    for word in rest:
        if word in HOST_ONLY:
            next(rest, None)
        else:
            yield UNSEEN.sub("", word) if word.startswith("staghorn,") else word


def file_of(lab, name):
    """The path of the VM's snapshot, whether it exists or not."""
    vm = lab["vms"][name]
    text = [*_visible(map(str, qemu.command(lab, name, "", pause=True)[1:])), str(vm["profile"])]
    text.append(str(vm["pmem"] and vm["pmem"]["sizes"]))
    text += [_content(paths.qemu()), _content(paths.guest("initrd", lab["kernel"]))]
    for path in (
        paths.guest("vmlinuz", lab["kernel"]),
        paths.image(lab["image"]),
        *([paths.guest("modules.img", lab["kernel"])] if lab["own_kernel"] else []),
        paths.firmware("bios-256k.bin"),
    ):
        text.append(_identity(path))
    return folder() / (hashlib.sha256("\0".join(text).encode()).hexdigest()[:32] + ".state")


def _console(lab_folder, name):
    text = b""
    for path in debugging.log_files(lab_folder, name, debugging.CONSOLE):
        with contextlib.suppress(OSError):
            text += path.read_bytes()
    return text


def wait_paused(lab_folder, name, limit):
    """Waits until the guest's init stops."""
    vm = lab_folder.data["vms"][name]
    deadline = time.monotonic() + limit
    while PAUSED not in (text := _console(lab_folder, name)):
        if UP % name.encode() in text:
            raise LabError("its guest does not wait (no qemu_fw_cfg in its kernel?)")
        if not proc.alive(vm["process"]):
            raise LabError("VM %s went off while it booted" % name)
        if time.monotonic() > deadline:
            raise LabError("VM %s did not boot within %d s" % (name, limit), None, TIMEOUT)
        time.sleep(0.02)


def take(lab_folder, name, path, limit):
    """Writes the state of the paused VM to the file; its QEMU ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _make_room(path.parent)
    new = path.with_name("%s.%d.new" % (path.name, os.getpid()))
    try:
        plug.save(lab_folder, name, new, limit)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _is_room():
    """Whether the folder's file system has room for more."""
    place = folder()
    while not place.exists():
        place = place.parent
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize >= ROOM


def _make_room(place):
    """Removes the snapshots that were not used for the longest time, and what killed launchers
    left."""
    for half in place.glob("*.new"):
        with contextlib.suppress(FileNotFoundError):  # another launcher has completed it
            if time.time() - half.stat().st_mtime > HALF_S:
                half.unlink()
    found, kept = [], 0
    for path in place.glob("*.state"):
        with contextlib.suppress(FileNotFoundError):  # another launcher makes room, too
            found.append((path.stat().st_mtime_ns, path.stat().st_size, path))
    for _, size, path in sorted(found, reverse=True):
        kept += size
        if kept > KEPT:
            path.unlink(missing_ok=True)


def _make_one(lab_folder, name, path, limit):
    """Boots the VM until it pauses, and saves its state."""
    try:
        wait_paused(lab_folder, name, limit)
        take(lab_folder, name, path, limit)
    finally:
        vm = lab_folder.data["vms"][name]
        if vm["process"]:
            proc.kill(vm["process"])
        vm.update(process=None, starts=0)


def _each(calls, complain):
    """Runs the calls {NAME: function} at once; complain(NAME, error) for those that fail."""
    import concurrent.futures

    pool = concurrent.futures.ThreadPoolExecutor(max(1, len(calls)))
    try:
        running = {pool.submit(call): name for name, call in calls.items()}
        for done in concurrent.futures.as_completed(running):
            try:
                done.result()
            except (LabError, OSError) as error:
                complain(running[done], error)
    finally:
        # After an interrupt the threads end by themselves once their QEMU is gone.
        pool.shutdown(wait=False, cancel_futures=True)


def prepare(lab_folder, power_on, limit, say):
    """Makes the snapshots that are missing; returns {NAME: path} of the VMs that have one.

    power_on(folder, NAME, pause=True) starts a VM."""
    lab, found, missing = lab_folder.data, {}, {}
    for name in lab["vms"]:
        reason = obstacle(lab, name)
        if reason:
            say("%s boots: %s" % (name, reason))
            continue
        found[name] = file_of(lab, name)
        if not found[name].exists():
            missing[name] = found[name]
    if missing and not _is_room():
        say("%s: no boot snapshot: %s has less than 4 GiB free" % (", ".join(missing), folder()))
        found = {name: path for name, path in found.items() if name not in missing}
        missing = {}
    if missing:
        say("booting %s once for a snapshot in %s" % (", ".join(missing), folder()))

    def complain(name, error):
        say("no boot snapshot of %s: %s" % (name, error))
        del found[name]

    for name in missing:
        power_on(lab_folder, name, pause=True)
    _each(
        {
            name: functools.partial(_make_one, lab_folder, name, path, limit)
            for name, path in missing.items()
        },
        complain,
    )
    return found


def present(lab_folder, name):
    """The path of the snapshot from which the VM resumes when it is switched on; None: it boots."""
    lab = lab_folder.data
    if not lab["boot_snapshot"] or obstacle(lab, name) or firmware.changed(lab_folder, name):
        return None
    path = file_of(lab, name)
    return path if path.exists() else None


def _resume(lab_folder, name, path, limit):
    """Loads the file into the VM's QEMU, which waits for it, and lets the guest's init go on."""
    os.utime(path)
    with Monitor(lab_folder, name) as monitor:
        # Nobody has seen this VM before, so nobody has to learn where it is now.  Not 0: QEMU 10.0
        # would die at the next reset of a virtio NIC.
        monitor.run("migrate-set-parameters", **{"announce-rounds": 1})
    plug.load(lab_folder, name, path, limit)
    _tell(lab_folder, name, b"go %d" % time.time())
    if domain.has_one(lab_folder.data["vms"][name]):
        domain.resume_from(lab_folder, name, path.absolute())


def _tell(lab_folder, name, line):
    """Types a line on the VM's console, and waits until the guest has repeated it."""
    sock = connect(lab_folder.path / name / "console", timeout=20)
    said = b""
    try:
        sock.sendall(line + b"\n")
        while line + b"\r\n" not in said:
            part = sock.recv(4096)
            if not part:
                raise LabError("VM %s went off" % name)
            said += part
    except TimeoutError:
        raise LabError("VM %s does not answer on its console" % name, None, TIMEOUT)
    finally:
        sock.close()


def resume(lab_folder, files, limit, say):
    """Resumes the VMs, {NAME: path}.  Returns the names of those that failed: their QEMUs have
    ended, and their snapshots are removed."""
    failed = []

    def complain(name, error):
        say("%s boots: its snapshot cannot be used: %s" % (name, error))
        files[name].unlink(missing_ok=True)
        proc.kill(lab_folder.data["vms"][name]["process"])
        failed.append(name)

    _each(
        {
            name: functools.partial(_resume, lab_folder, name, path, limit)
            for name, path in files.items()
        },
        complain,
    )
    return failed
