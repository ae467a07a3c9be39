#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the expansion ROM of firmware/build.sh as a BIOS and as UEFI do."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
UNIT = 512
ROM_MAX = 0x8000
BIOS, UEFI = 0, 3
CASES = []
IDS = 0x1234, 0x5347

_built = None


def case(function):
    CASES.append(function)
    return function


def built():
    """The folder of a build for this test; the same for all cases."""
    global _built
    if _built is None:
        _built = tempfile.mkdtemp(prefix="sg-firmware-")
        env = {k: v for k, v in os.environ.items() if not k.startswith("SG_")}
        done = subprocess.run(
            [TOP / "firmware" / "build.sh"],
            env={**env, "SG_BUILD": _built},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
    return Path(_built) / "firmware"


def images(rom):
    """Walks the chain of images: (kind, octets) of each."""
    at, last, found = 0, False, []
    while not last:
        assert rom[at : at + 2] == b"\x55\xaa", "image %d has no signature" % len(found)
        pcir = at + struct.unpack_from("<H", rom, at + 0x18)[0]
        assert pcir % 4 == 0
        fields = struct.unpack_from("<4sHHHHB3sHHBB", rom, pcir)
        sign, vendor, device, _, own, _, kind_of, units, _, kind, indicator = fields
        assert (sign, vendor, device, own) == (b"PCIR", *IDS, 24), fields
        assert kind_of == b"\x00\x06\x0c", kind_of
        last = bool(indicator & 0x80)
        assert 0 < units * UNIT <= len(rom) - at, "image %d is too long" % len(found)
        found.append((kind, rom[at : at + units * UNIT]))
        at += units * UNIT
    assert at == len(rom), "octets after the last image"
    return found


@case
def rom__chain(_folder):
    """ROM: an image for a BIOS, then one for UEFI, which is the last"""
    rom = (built() / "staghorn.rom").read_bytes()
    found = images(rom)
    assert [kind for kind, _ in found] == [BIOS, UEFI], found
    assert len(rom) <= ROM_MAX


@case
def rom__bios(_folder):
    """ROM: the image for a BIOS has its length, and its octets add up to zero"""
    _, image = images((built() / "staghorn.rom").read_bytes())[0]
    assert image[2] * UNIT == len(image)
    assert sum(image) % 256 == 0


@case
def rom__uefi(_folder):
    """ROM: the image for UEFI has a header, followed by the driver's file"""
    _, image = images((built() / "staghorn.rom").read_bytes())[1]
    fields = struct.unpack_from("<HHIHHH8sH", image, 0)
    _, units, magic, subsystem, machine, compression, reserved, place = fields
    assert (magic, subsystem, machine, compression) == (0x0EF1, 11, 0x8664, 0), fields
    assert units * UNIT == len(image) and reserved == bytes(8)
    driver = (built() / "staghorn.efi").read_bytes()
    assert image[place : place + len(driver)] == driver
    assert not any(image[place + len(driver) :])


@case
def driver__sections(_folder):
    """UEFI driver: PE32+, sections in the file and in pages of their own, none both W and X"""
    pe = (built() / "staghorn.efi").read_bytes()
    head = struct.unpack_from("<I", pe, 0x3C)[0]
    machine, count, optional = struct.unpack_from("<4xHH12xH", pe, head)
    assert pe[:2] == b"MZ" and pe[head : head + 4] == b"PE\0\0" and machine == 0x8664
    magic, entry = struct.unpack_from("<H14xI", pe, head + 24)
    align, file_align = struct.unpack_from("<II", pe, head + 24 + 32)
    image_size, head_size = struct.unpack_from("<II", pe, head + 24 + 56)
    assert (magic, align, file_align) == (0x20B, 4096, 512)
    at, end, sections = head_size, 4096, {}
    for number in range(count):
        row = struct.unpack_from("<8sIIII12xI", pe, head + 24 + optional + 40 * number)
        name, size, address, raw_size, raw, flags = row
        assert (raw, address, raw_size % 512) == (at, end, 0) and 0 < size <= raw_size, row
        assert flags & 0xA0000000 != 0xA0000000, row
        at, end = at + raw_size, address + (size + 4095) // 4096 * 4096
        sections[name.rstrip(b"\0")] = (address, size)
    assert (at, end) == (len(pe), image_size)
    address, size = sections[b".text"]
    assert address <= entry < address + size


@case
def rom__limits(folder):
    """ROM: images that are too large together are refused, and so is a file that is no driver"""
    tool, rom = built() / "sg-flash", (built() / "staghorn.rom").read_bytes()
    bios, driver = images(rom)[0][1][:-1], (built() / "staghorn.efi").read_bytes()
    (folder / "bios").write_bytes(bios)
    room = ROM_MAX - len(bios) - 1 - 0x40
    rows = (
        (driver, None),
        (driver + bytes(room - len(driver)), None),
        (driver + bytes(room - len(driver) + 1), "too large for the expansion ROM"),
        (b"\x7fELF" + driver[4:], "no PE32+ boot service driver"),
        (driver[:100], "no PE32+ boot service driver"),
    )
    for octets, refusal in rows:
        (folder / "efi").write_bytes(octets)
        done = subprocess.run(
            [tool, "rom", "bios", "out", "efi"],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == (1 if refusal else 0), (len(octets), done.stderr)
        assert (refusal or "") in done.stderr, done.stderr
        if refusal is None:
            assert [kind for kind, _ in images((folder / "out").read_bytes())] == [BIOS, UEFI]
    (folder / "bios").write_bytes(bios + bytes(ROM_MAX))
    done = subprocess.run(
        [tool, "rom", "bios", "out"], cwd=folder, stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 1 and "too large" in done.stderr, done.stderr


@case
def firmware__has_it(_folder):
    """each firmware and each flash image contains the ROM and is valid"""
    rom = (built() / "staghorn.rom").read_bytes()
    files = sorted(built().glob("*.fw")) + sorted(built().glob("*.flash"))
    assert files
    for path in files:
        assert rom in path.read_bytes(), path
        shown = subprocess.run(
            [built() / "sg-flash", "show", path], stdout=subprocess.PIPE, text=True, check=False
        )
        assert shown.returncode == 0 and "rom %d" % len(rom) in shown.stdout, shown.stdout


def main():
    try:
        return cases.run(CASES)
    finally:
        if _built:
            shutil.rmtree(_built, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
