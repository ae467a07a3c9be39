#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the Wireshark dissector of RDMA/TCP of 2000 with captures made here.

The segments are framed by code of their own, the third implementation of docs/wire-2000.md.
"""
import importlib
import shutil
import struct
import sys

import cases
import test_wireshark

SCRIPT = test_wireshark.TOP / "tools" / "wireshark" / "rdma_tcp_2000.lua"
FIELDS = (
    "version setup solicited begin end type length conn_id number order clen offset buffer "
    "buffer_offset rdma_length upper kind ird ord control payload crc crc.status crc.bad"
).split()
CONN_ID = 0x0123456789ABCDEF
SEND, WRITE, READ_REQUEST, READ_RESPONSE = range(4)
BEGIN, END, SETUP, SOLICITED = 8, 4, 0x80, 0x40
CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def crc(data):
    """The remainder of a division of polynomials; octets enter least significant bit first."""
    rest = 0xFFFFFFFF
    for octet in data:
        for bit in range(8):
            top = rest >> 31 ^ (octet >> bit & 1)
            rest = rest << 1 & 0xFFFFFFFF ^ (0xDB710641 if top else 0)
    return int("{:032b}".format(rest)[::-1], 2) ^ 0xFFFFFFFF


def segment(kind, flags, number, order=0, target=(0,), control=b"", payload=b""):
    """A whole segment; target: Data Offset, or Buffer ID, Buffer Offset and RDMA Length."""
    rest = struct.pack(">%dI" % len(target), *target) + control + payload
    data = struct.pack(
        ">BBHQIHBB", 1, flags | kind, 20 + len(rest), CONN_ID, number, order, 0, len(control) // 4
    )
    data += rest
    data += bytes(-len(data) % 4)
    return data + struct.pack(">I", crc(data))


def setup(kind, pdata=b""):
    """A message of connection setup."""
    control = struct.pack(">BBHHH", 1, kind, 0, 7, 5)
    return segment(SEND, SETUP | BEGIN | END, 99, control=control, payload=pdata)


class Capture(test_wireshark.Capture):
    """A connection on this wire."""

    script = SCRIPT

    def __init__(self, folder):
        super().__init__(folder, startup=False)
        self.add(0, setup(1, b"hello"))
        self.add(1, setup(2))

    def fields(self):
        """{frame: {field: values}}"""
        arguments = [word for name in FIELDS for word in ("-e", "rdma_tcp_2000." + name)]
        text = self.tshark("-T", "fields", "-e", "frame.number", *arguments)
        found = {}
        for line in text.splitlines():
            number, *values = line.split("\t")
            found[int(number)] = {n: v.split(",") for n, v in zip(FIELDS, values) if v}
        return found


@case
def vectors(_folder):
    """the golden segment and the check value of the document"""
    assert crc(b"123456789") == 0xE07E661E
    golden = "010c001b0123456789abcdef00000010ffff00000000000061626300" "59def35a"
    assert segment(SEND, BEGIN | END, 16, 0xFFFF, payload=b"abc").hex() == golden


@case
def setup_messages(folder):
    """dissector: setup"""
    found = Capture(folder).fields()
    first, second = found[4], found[5]
    assert first["kind"] == ["1"] and second["kind"] == ["2"], found
    assert first["ird"] == ["7"] and first["ord"] == ["5"], found
    assert first["payload"] == [b"hello".hex()] and first["length"] == ["37"], found
    assert first["conn_id"] == ["0x0123456789abcdef"], found


@case
def every_type(folder):
    """dissector: each type, each field"""
    capture = Capture(folder)
    frames = [
        capture.add(0, segment(SEND, BEGIN | SOLICITED, 100, 3, payload=b"abcde")),
        capture.add(
            0, segment(WRITE, END, 101, 4, (0xA1, 0xA2, 0xA3), struct.pack(">I", 0xA4), b"xyz")
        ),
        capture.add(0, segment(READ_REQUEST, BEGIN | END, 102, 0, (1, 2, 3), bytes(4))),
        capture.add(1, segment(READ_RESPONSE, BEGIN | END, 102, 0xFFFF, (9,), payload=b"q")),
    ]
    found = capture.fields()
    send, write, request, response = (found[frame] for frame in frames)
    assert send["type"] == ["0"] and send["number"] == ["100"] and send["order"] == ["3"], send
    assert [send[n][0] in ("1", "True") for n in ("begin", "end", "solicited", "setup")] == [
        True,
        False,
        True,
        False,
    ], send
    assert send["payload"] == [b"abcde".hex()] and send["offset"] == ["0"], send
    assert write["buffer"] == ["0x000000a1"] and write["buffer_offset"] == ["0x000000a2"], write
    assert write["rdma_length"] == ["163"] and write["upper"] == ["0x000000a4"], write
    assert write["payload"] == [b"xyz".hex()] and write["clen"] == ["1"], write
    assert request["type"] == ["2"] and "payload" not in request, request
    assert response["type"] == ["3"] and response["offset"] == ["9"], response
    assert response["order"] == ["65535"], response


@case
def pieces(folder):
    """dissector: a segment in two TCP segments, and two in one"""
    capture = Capture(folder)
    whole = segment(SEND, BEGIN, 100, payload=b"abc") + segment(
        SEND, END, 100, target=(3,), payload=b"def"
    )
    capture.add(0, whole[:10])
    frame = capture.add(0, whole[10:])
    got = capture.fields()[frame]
    assert got["payload"] == [b"abc".hex(), b"def".hex()], got
    assert got["offset"] == ["0", "3"], got


@case
def info_column(folder):
    """dissector: the line of a packet names the message; bad lengths are reported"""
    capture = Capture(folder)
    capture.add(0, segment(READ_REQUEST, BEGIN | END, 102, 0, (0x11, 2, 3), bytes(4)))
    capture.add(0, b"\1\x0c\0\x10" + bytes(16))
    text = capture.tshark("-V")
    assert "Segment Length too short" in text, text
    text = capture.tshark()
    assert "[Setup]" in text and "[Read Request 102 buffer 0x00000011 length 3]" in text, text


@case
def checks_crc(folder):
    """dissector: good and bad CRCs, of segments of all lengths; captures that lack the end"""
    capture = Capture(folder)
    good = [capture.add(0, segment(SEND, BEGIN, 100, payload=bytes(range(n)))) for n in range(9)]
    whole = segment(WRITE, BEGIN | END, 101, 0, (1, 2, 3), bytes(4), b"damage")
    bad = []
    for bit in 12, 85, 231, 270, 304, 350, 383:  # header, control data, payload, padding, CRC
        octets = bytearray(whole)
        octets[bit // 8] ^= 1 << bit % 8
        bad.append(capture.add(0, bytes(octets)))
    found = capture.fields()
    for frame in good:
        assert found[frame]["crc.status"] == ["1"] and "crc.bad" not in found[frame], found[frame]
    for frame in bad:
        assert found[frame]["crc.status"] == ["0"] and "crc.bad" in found[frame], found[frame]
    text = capture.tshark("-Y", "rdma_tcp_2000.crc.bad", "-T", "fields", "-e", "frame.number")
    assert [int(word) for word in text.split()] == bad, text
    last = Capture(folder)
    frame = last.add(0, whole)
    last.captured = {frame: -7}
    assert last.fields()[frame]["crc.status"] == ["2"], last.fields()[frame]


@case
def segments(folder):
    """dissector: what the VM tests ask of a capture"""
    sys.path.insert(0, str(test_wireshark.TOP / "tests" / "vm" / "lib"))
    sys.dont_write_bytecode = True
    wire = importlib.import_module("wire")
    capture = Capture(folder)
    capture.add(0, segment(READ_REQUEST, BEGIN | END, 102, 0, (1, 2, 3), bytes(4)))
    capture.add(1, segment(READ_RESPONSE, BEGIN, 102, 0xFFFF, (0,), payload=b"q") * 2)
    bad = capture.add(0, b"\1\x0c\0\x10" + bytes(16))
    capture.write()
    found = wire.Segments2000(capture.path)
    assert found.setups == [1, 2] and found.streams == 1, found.__dict__
    assert found.types == {SEND: 2, READ_REQUEST: 1, READ_RESPONSE: 2}, found.types
    assert found.malformed == [bad], found.malformed


def main():
    if not shutil.which("tshark"):
        print("1..0 # SKIP no tshark")
        return 0
    return cases.run(CASES)


if __name__ == "__main__":
    sys.exit(main())
