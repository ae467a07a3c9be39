# SPDX-License-Identifier: GPL-2.0-or-later
"""Crash images (docs/image-format.md), written without the code that reads them."""
import hashlib
import struct

LINE, PAGE = 64, 4096
UNCORRECTABLE, POISONED = 1, 2


def _table():
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        yield value


TABLE = tuple(_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for octet in data:
        crc = crc >> 8 ^ TABLE[(crc ^ octet) & 0xFF]
    return crc ^ 0xFFFFFFFF


def base_hash(content):
    """The hash of an extent's content: its pages that are not zero, each behind its number."""
    found = hashlib.sha256()
    for at in range(0, len(content), PAGE):
        page = content[at : at + PAGE].ljust(PAGE, b"\0")
        if page.strip(b"\0"):
            found.update(struct.pack("<Q", at // PAGE) + page)
    found.update(struct.pack("<Q", len(content)))
    return found.digest()


def image(extents, runs, bad=(), text=""):
    """The file of an image.

    extents: [(address, size, name, hash)]; runs: {address: whole lines}; bad: [(address, length,
    kind)]."""
    out = struct.pack("<8sII32s", b"SGIMAG\r\n", 1, 0, bytes(32))
    out += struct.pack("<IIQQ", len(extents), len(text), len(runs), len(bad))
    for address, size, name, digest in extents:
        out += struct.pack("<QQ32s64s", address, size, digest, name.encode())
    out += text.encode()
    for address, lines in sorted(runs.items()):
        assert lines and len(lines) % LINE == 0
        out += struct.pack("<QQ", address, len(lines)) + lines
    for each in sorted(bad):
        out += struct.pack("<QQQ", *each)
    return out + struct.pack("<I", crc32c(out))
