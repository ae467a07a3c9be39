# SPDX-License-Identifier: GPL-2.0-or-later
"""What files of a Linux kernel say: its image, its configuration, its exported symbols.

An image for x86 begins with a boot sector whose header (Linux, Documentation/arch/x86/boot.rst)
names the release, and where the compressed kernel is.  With CONFIG_IKCONFIG that kernel has its
configuration between two marks.
"""
import bz2
import gzip
import lzma
import os
import re
import struct
import subprocess
import zlib
from pathlib import Path

from .errors import LabError, UsageError
from .paths import TOP

FRAGMENT = TOP / "guest-driver" / "staghorn.config"
IMAGE_MAX = 1 << 30  # octets
CONFIG_MAX = 4 << 20
KERNEL_MAX = 1 << 30  # of the kernel that an image unpacks
IKCONFIG = (b"IKCFG_ST", b"IKCFG_ED")
RELEASE = re.compile(r"[0-9]+\.[0-9]+[A-Za-z0-9._+~-]{0,100}\Z")
# First octets of what is not an image for x86, and what it is.
OTHERS = (
    (0, b"\x7fELF", "an ELF file; the image is arch/x86/boot/bzImage"),
    (0, b"\x1f\x8b", "packed with gzip, which x86 cannot boot"),
    (0, b"!<arch>\n", "an archive; a Debian package must be named *.deb"),
    (56, b"ARMd", "a kernel for arm64"),
    (48, b"RSC\x05", "a kernel for RISC-V"),
)


def require_file(path, option):
    """An error unless the path is a file: a pipe or a device may never end."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError("%s: %s is not a file" % (option, path), "Give a file")


def read(path, limit):
    """The file's content; an error if it is longer than the limit."""
    require_file(path, "--kernel")
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise UsageError("--kernel: %s: %s" % (path, error.strerror))
    if len(data) > limit:
        raise UsageError("--kernel: %s is larger than %d MiB" % (path, limit >> 20))
    return data


class Image:
    """A kernel image for x86-64."""

    def __init__(self, path):
        self.path = Path(path)
        self.data = read(path, IMAGE_MAX)
        if self.data[0x202:0x206] != b"HdrS":
            for at, mark, words in OTHERS:
                if self.data[at : at + len(mark)] == mark:
                    raise UsageError("--kernel: %s is %s" % (path, words))
            raise UsageError(
                "--kernel: %s is no Linux kernel for x86" % path,
                "Give a built tree, its arch/x86/boot/bzImage, or a Debian kernel package",
            )
        if self._field("<H", 0x206) < 0x20C or not self._field("<H", 0x236) & 1:
            raise UsageError("--kernel: %s is a kernel for 32-bit x86; the VMs are x86-64" % path)

    def _field(self, form, at):
        try:
            return struct.unpack_from(form, self.data, at)[0]
        except struct.error:
            raise UsageError("--kernel: %s is cut short" % self.path)

    def release(self):
        """What `uname -r` will say."""
        at = self._field("<H", 0x20E) + 0x200
        word = self.data[at : at + 200].split(b"\0")[0].split(b" ")[0].decode(errors="replace")
        if not RELEASE.match(word):
            raise UsageError("--kernel: %s does not name its release" % self.path)
        return word

    def config(self):
        """The text of its configuration, or None if it has none."""
        start = (self._field("<B", 0x1F1) or 4) * 512 + 512 + self._field("<I", 0x248)
        packed = self.data[start : start + self._field("<I", 0x24C)]
        kernel = unpacked(packed)
        if kernel is None:
            return None
        at, end = (kernel.find(mark) for mark in IKCONFIG)
        if at < 0 or end < at:
            return None
        try:
            text = zlib.decompressobj(31).decompress(kernel[at + 8 : end], CONFIG_MAX)
        except zlib.error:
            return None
        return text.decode(errors="replace")


def unpacked(packed):
    """The content of a kernel's payload, or None if its packing is not known."""
    try:
        if packed[:2] == b"\x1f\x8b":
            return zlib.decompressobj(31).decompress(packed, KERNEL_MAX)
        if packed[:6] == b"\xfd7zXZ\0":
            return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(packed, KERNEL_MAX)
        if packed[:3] == b"BZh":
            return bz2.BZ2Decompressor().decompress(packed, KERNEL_MAX)
        if packed[:4] == b"\x28\xb5\x2f\xfd":
            # The last four octets are the length, which zstd takes for another frame.
            done = subprocess.run(
                ["zstd", "-dcq", "-M128MB"],
                input=packed,
                capture_output=True,
                timeout=60,
                check=False,
            )
            return done.stdout[:KERNEL_MAX] or None
    except (zlib.error, lzma.LZMAError, OSError, subprocess.TimeoutExpired, EOFError):
        pass
    return None


def config_of(path):
    """The text of a configuration, which may be packed with gzip."""
    data = read(path, CONFIG_MAX)
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise UsageError("--kernel: %s is damaged" % path)
    return data.decode(errors="replace")


def options_of(text):
    """{name without CONFIG_: value} of a configuration."""
    return dict(re.findall(r"^CONFIG_([A-Z0-9_a-z]+)=(.*)$", text, re.M))


def parts():
    """{part: {option: "y" or "m"}} of the fragment that Staghorn ships."""
    found, part = {}, None
    try:
        text = FRAGMENT.read_text()
    except OSError as error:
        raise LabError("%s: %s" % (FRAGMENT, error.strerror), "The source tree is incomplete")
    for line in text.splitlines():
        heading = re.match(r"# \[([a-z]+)\]", line)
        if heading:
            part = found.setdefault(heading[1], {})
        elif line.startswith("CONFIG_"):
            name, _, value = line[7:].partition("=")
            part[name] = value
    return found


# Options that later kernels have under another name.
RENAMED = {"PROC_SYSCTL": "SYSCTL"}  # Linux 7


def lacking(options, wanted):
    """The lines of a part of the fragment that a configuration does not fulfil."""
    for name, value in wanted.items():
        there = options.get(name) or options.get(RENAMED.get(name))
        if there != "y" and not (value == "m" and there == "m"):
            yield "CONFIG_%s=%s" % (name, value)


def architecture(text):
    """The architecture that a configuration's first lines name, such as arm64."""
    match = re.search(r"^# Linux/(\S+) ", text, re.M)
    return match[1] if match else "unknown"


def exports(path, symbol):
    """Whether a Module.symvers names the symbol."""
    try:
        with open(path, errors="replace") as file:
            return any(line.split("\t")[1:2] == [symbol] for line in file)
    except OSError:
        return False
