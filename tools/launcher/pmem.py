# SPDX-License-Identifier: GPL-2.0-or-later
"""Persistent memory of VMs: the option --pmem, and QEMU's arguments for it.

Each --pmem gives a VM one NVDIMM.  Its content is the file VM/pmemN.img in the lab's folder; it
survives the VM's power cuts and is removed with the lab.  All NVDIMMs of a VM are in one
persistence domain (domain.py).
"""
import errno
import os
import re

from . import devdax
from .errors import LabError, UsageError

UNIT = 2  # MiB: what the guest's kernel can map
RANGE = (16, 1 << 20)  # MiB
MAX_DIMMS = 16
PIECE = 1 << 16


def parse(items, names):
    """['beta:256M,domain=adr'] to {'beta': {'sizes': [256], 'domain': {'domain': 'adr'}}}."""
    found = {}
    for item in items or []:
        target, size, settings = _split(item)
        if target and target not in names:
            raise UsageError("--pmem: there is no VM %s" % target)
        for name in [target] if target else names:
            pmem = found.setdefault(name, {"sizes": [], "domain": {}})
            pmem["sizes"].append(size)
            if len(pmem["sizes"]) > MAX_DIMMS:
                raise UsageError("--pmem: more than %d NVDIMMs for VM %s" % (MAX_DIMMS, name))
            for key, value in settings.items():
                if pmem["domain"].setdefault(key, value) != value:
                    raise UsageError("--pmem: %s is given twice for VM %s" % (key, name))
            if pmem["domain"].get("domain") == "off" and len(pmem["domain"]) > 1:
                raise UsageError("--pmem: with domain=off there are no other properties")
    return found


def _split(item):
    """'beta:256M,domain=adr' to ('beta', 256, {'domain': 'adr'})."""
    head, *rest = item.split(",")
    target, _, size = head.rpartition(":")
    match = re.match(r"(\d+)([MG])\Z", size.upper())
    mib = int(match[1]) * (1024 if match[2] == "G" else 1) if match else 0
    if not RANGE[0] <= mib <= RANGE[1] or mib % UNIT:
        raise UsageError(
            "--pmem %s: %s is not a size such as 256M or 2G (even, %dM at least)"
            % (item, size or "nothing", RANGE[0])
        )
    settings = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or not re.match(r"[a-z][a-z0-9-]*\Z", key) or not value:
            raise UsageError("--pmem %s: %s is not PROPERTY=VALUE" % (item, part or "nothing"))
        if key in ("memdevs", "id", "qom-type", "report-file", "bad-file"):
            raise UsageError("--pmem: %s is the launcher's to choose" % key)
        settings[key] = value
    return target, mib, settings


def image(name, number):
    """The file of the NVDIMM's content, relative to the lab's folder."""
    return "%s/pmem%d.img" % (name, number)


def copy(source, path):
    """Copies a file; what is a hole, or zeros, becomes a hole."""
    with open(source, "rb") as file, open(path, "wb") as out:
        size, at = os.fstat(file.fileno()).st_size, 0
        out.truncate(size)
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:  # no data behind this place
                    raise
                break
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            while at < end:
                part = os.pread(file.fileno(), min(PIECE, end - at), at)
                if part.strip(b"\0"):
                    os.pwrite(out.fileno(), part, at)
                at += len(part) or end


def prepare(folder, name, vm):
    """Makes the media files that do not exist yet; the others keep their content.

    pmem["content"], if there: files with what the media have at each start instead."""
    content = (vm["pmem"] or {}).get("content") or ()
    for number, mib in enumerate(vm["pmem"]["sizes"] if vm["pmem"] else []):
        path = folder.path / image(name, number)
        try:
            if number < len(content):
                copy(content[number], path)
                continue
            if path.exists() and path.stat().st_size:
                continue
            with open(path, "wb") as file:
                file.truncate(mib << 20)
                devdax.write(file, mib << 20)
        except OSError as error:
            raise LabError("%s cannot be written: %s" % (error.filename or path, error.strerror))


def machine(vm, memory):
    """The machine's options for its NVDIMMs: an addition to -M, and the value of -m."""
    if not vm["pmem"]:
        return "", str(memory)
    sizes = vm["pmem"]["sizes"]
    # QEMU aligns each slot to 1 GiB.
    room = sum((mib + 1023) // 1024 * 1024 for mib in sizes)
    persistence = PERSISTENCE.get(vm["pmem"]["domain"].get("domain", "adr"))
    said = ",nvdimm-persistence=" + persistence if persistence else ""
    return ",nvdimm=on" + said, "%dM,slots=%d,maxmem=%dM" % (memory, len(sizes), memory + room)


def report_file(name):
    """The file that QEMU writes at each power cut, so its time changes with each cut."""
    return name + "/report.json"


def bad_file(name):
    """The file with the bad lines of the NVDIMMs; it belongs to the media."""
    return name + "/pmem.bad"


def cpu(vm):
    """An addition to -cpu: Linux takes reports of bad memory from Intel's processors."""
    return ",vendor=GenuineIntel,family=6,model=106,stepping=6" if vm["pmem"] else ""


# What the platform claims to flush at a power cut (ACPI's NFIT).
PERSISTENCE = {"adr": "mem-ctrl", "eadr": "cpu", "whole": "cpu"}


def arguments(name, vm):
    """The words of -object and -device for QEMU.

    domain=off: plain NVDIMMs, whose memory is the media file."""
    if not vm["pmem"]:
        return
    settings = vm["pmem"]["domain"]
    plain = settings.get("domain") == "off"
    if not plain:
        yield from (
            "-object",
            "staghorn-domain,id=dom0,report-file=%s,bad-file=%s%s"
            % (
                report_file(name),
                bad_file(name),
                "".join(",%s=%s" % item for item in sorted(settings.items())),
            ),
        )
    for number, mib in enumerate(vm["pmem"]["sizes"]):
        yield from (
            "-object",
            "memory-backend-file,id=pmem%d,size=%dM,share=%s,mem-path=%s"
            % (number, mib, "on" if plain else "off", image(name, number)),
            "-device",
            "nvdimm,id=nv%d,memdev=pmem%d" % (number, number),
        )
