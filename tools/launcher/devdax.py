# SPDX-License-Identifier: GPL-2.0-or-later
"""The info block that makes a whole NVDIMM one devdax device.

A guest could write it with ndctl.  The host writes it to the media before the first boot, so no
power cut can lose it, and no boot spends time on it.  Layout: struct nd_pfn_sb of Linux, version
1.4, at 4 KiB into the namespace.
"""
import struct
import uuid

PLACE = 4096
SIZE = 4096
PAGE = 4096
PAGE_STRUCT = 64
ALIGN = 2 << 20  # alignment of data and mappings
MODE_RAM = 1  # the kernel's page structures are in ordinary memory
LAYOUT = "<16s16s16sIHHQQIIIIIH"


def _fletcher64(block):
    low = high = 0
    for (word,) in struct.iter_unpack("<I", block):
        low = (low + word) & 0xFFFFFFFF
        high += low
    return (high & 0xFFFFFFFF) << 32 | low


def info_block(size, ident=None):
    """The block for an NVDIMM of that many octets, without labels; its data begins at ALIGN."""
    block = bytearray(SIZE)
    struct.pack_into(
        LAYOUT,
        block,
        0,
        b"NVDIMM_DAX_INFO\0",
        (ident or uuid.uuid4()).bytes,
        bytes(16),  # no parent: the namespace has no label
        0,  # flags
        1,
        4,
        ALIGN,  # where data begins
        (size - ALIGN) // PAGE,
        MODE_RAM,
        0,  # nothing cut off at the start
        0,  # nor at the end
        ALIGN,
        PAGE,
        PAGE_STRUCT,
    )
    struct.pack_into("<Q", block, SIZE - 8, _fletcher64(block))
    return bytes(block)


def write(file, size):
    """Writes the block into a media file, which is as long as the NVDIMM."""
    file.seek(PLACE)
    file.write(info_block(size))
