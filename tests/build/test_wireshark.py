#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the Wireshark dissector of RDMAP's extensions with captures made here.

Each case writes a capture of one connection (Ethernet, IP, TCP; MPA Request and Reply first) with
FPDUs of its own framing code, and checks the fields that tshark finds with the script.
"""
import importlib
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
SCRIPT = TOP / "tools" / "wireshark" / "staghorn.lua"
CASES = []

MPA_REQUEST = bytes.fromhex("4d504120494420526571204672616d655002000480084008")
MPA_REPLY = bytes.fromhex("4d504120494420526570204672616d655002000480084008")
RTR_WRITE = bytes.fromhex("000ec140000000010000000000000000ebd34c5f")
FLUSH_GOLDEN = bytes.fromhex(
    "0026414c000000000000000100000002" "00000000b0000002000010000000000000002000000000016a09cd11"
)
ATOM_GOLDEN = bytes.fromhex(
    "002a4150000000000000000100000003"
    "00000000b00000020000000800000000000020000123456789abcdef9ad58ce1"
)
TARGET = struct.pack(">IIQ", 0xB0000002, 4096, 0x2000)
ATOM = struct.pack(">IIQQ", 0xB0000002, 8, 0x2000, 0x0123456789ABCDEF)
FIELDS = (
    "opcode inv_stag qn msn stag length to flags flags.r flags.g flags.p hash data request_in "
    "imm aop id rstag rto operand mask compare compare_mask original"
).split()
WRONG = "short long header value".split()
# As root, tshark 4.4 silently ignores all scripts.
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def crc32c(data):
    """The CRC of MPA, bit by bit."""
    crc = 0xFFFFFFFF
    for octet in data:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def fpdu(ulpdu):
    """Length field, ULPDU, pad, CRC."""
    data = struct.pack(">H", len(ulpdu)) + ulpdu
    data += bytes(-len(data) % 4)
    return data + struct.pack("<I", crc32c(data))


def message(opcode, qn, msn, body=b"", ddp=0x41, rv=0x40, inv=0):
    """An FPDU with an untagged message."""
    return fpdu(bytes([ddp, rv | opcode]) + struct.pack(">IIII", inv, qn, msn, 0) + body)


def ones_sum(data):
    """The checksum of IP."""
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Capture:
    """A connection as a list of TCP segments: add() them, then ask tshark."""

    script = SCRIPT

    def __init__(self, folder, startup=True):
        self.path = folder / "c.pcap"
        self.seq = [1000, 5000]
        self.frames = []
        self.captured = {}  # by frame number, the end of what the capture has of it
        self._segment(0, 0x02, b"")
        self._segment(1, 0x12, b"")
        self._segment(0, 0x10, b"")
        if startup:
            self.add(0, MPA_REQUEST)
            self.add(1, MPA_REPLY)
            self.add(0, RTR_WRITE)

    def _segment(self, side, flags, payload):
        ports = (40000, 4791) if side == 0 else (4791, 40000)
        hosts = (b"\x0a\0\0\1", b"\x0a\0\0\2") if side == 0 else (b"\x0a\0\0\2", b"\x0a\0\0\1")
        ack = 0 if flags == 0x02 else self.seq[1 - side]
        tcp = struct.pack(">HHIIBBHHH", *ports, self.seq[side], ack, 0x50, flags, 65535, 0, 0)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), 1, 0x4000, 64, 6, 0)
        ip += hosts[0] + hosts[1]
        ip = ip[:10] + struct.pack(">H", ones_sum(ip)) + ip[12:]
        macs = bytes([2, 0, 0, 0, 0, 2 - side, 2, 0, 0, 0, 0, 1 + side])
        self.frames.append(macs + b"\x08\x00" + ip + tcp + payload)
        self.seq[side] += len(payload) + (flags >> 1 & 1)

    def add(self, side, payload):
        """A segment from `side` (0: who connects); returns its frame number."""
        self._segment(side, 0x18, payload)
        return len(self.frames)

    def write(self):
        """The capture as a file."""
        data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        for number, frame in enumerate(self.frames):
            there = frame[: self.captured.get(number + 1)]
            data += struct.pack("<IIII", 1, number * 100, len(there), len(frame)) + there
        self.path.write_bytes(data)

    def tshark(self, *arguments):
        """The output of tshark; any complaint of Lua is a failure."""
        self.write()
        script = self.path.with_name(self.script.name)
        shutil.copy(self.script, script)
        for path, mode in (script.parent, 0o755), (script, 0o644), (self.path, 0o644):
            path.chmod(mode)
        done = subprocess.run(
            ["tshark", "-X", "lua_script:%s" % script, "-r", self.path, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
            env={**os.environ, "HOME": str(script.parent)},
            **NOBODY,
        )
        errors = done.stderr.decode(errors="replace")
        text = done.stdout.decode(errors="replace")
        assert done.returncode == 0 and "lua" not in errors.lower(), errors
        assert "Lua Error" not in text, text
        return text

    def fields(self, *options):
        """{frame: {field: values of all messages in it}}; "wrong": names of expert infos."""
        arguments = [word for name in FIELDS + WRONG for word in ("-e", "staghorn." + name)]
        text = self.tshark("-T", "fields", "-e", "frame.number", *arguments, *options)
        found = {}
        for line in text.splitlines():
            number, *values = line.split("\t")
            got = {n: v.split(",") for n, v in zip(FIELDS + WRONG, values) if v}
            wrong = [name for name in WRONG if got.pop(name, None)]
            found[int(number)] = dict(got, wrong=wrong) if got or wrong else {}
        return found


def judge(folder, payloads, *options):
    """The fields of each segment (side, octets) of one capture."""
    capture = Capture(folder)
    frames = [capture.add(side, payload) for side, payload in payloads]
    found = capture.fields(*options)
    return [found[frame] for frame in frames]


@case
def requests(folder):
    """dissector: requests, every field"""
    flush, plain, hashed, atom = judge(
        folder,
        [
            (0, FLUSH_GOLDEN),
            (0, message(0x0E, 1, 4, TARGET)),
            (0, message(0x0E, 1, 5, TARGET + bytes.fromhex("e3069283"))),
            (0, ATOM_GOLDEN),
        ],
    )
    bits = [flush.pop("flags." + letter)[0] in ("1", "True") for letter in "rgp"]
    assert bits == [False, False, True], bits
    assert flush == {
        "opcode": ["0x0c"],
        "inv_stag": ["0x00000000"],
        "qn": ["1"],
        "msn": ["2"],
        "stag": ["0xb0000002"],
        "length": ["4096"],
        "to": ["0x0000000000002000"],
        "flags": ["0x00000001"],
        "wrong": [],
    }, flush
    assert plain["opcode"] == ["0x0e"] and "hash" not in plain and not plain["wrong"], plain
    assert hashed["hash"] == ["e3069283"] and hashed["length"] == ["4096"], hashed
    assert atom["opcode"] == ["0x10"] and atom["msn"] == ["3"] and not atom["wrong"], atom
    assert atom["data"] == ["0x0123456789abcdef"] and atom["length"] == ["8"], atom
    assert atom["to"] == ["0x0000000000002000"], atom


@case
def responses(folder):
    """dissector: responses, and the request that each answers"""
    capture = Capture(folder)
    first = capture.add(0, message(0x0C, 1, 1, TARGET + b"\0\0\0\3"))
    second = capture.add(0, message(0x0E, 1, 2, TARGET) + message(0x10, 1, 3, ATOM))
    third = capture.add(0, message(0x0E, 1, 4, TARGET + bytes(range(64))))
    frame = capture.add(
        1,
        message(0x0D, 3, 1)
        + message(0x0F, 3, 2, b"\1\2\3\4")
        + message(0x11, 3, 3)
        + message(0x0F, 3, 4, bytes(range(64))),
    )
    got = capture.fields()[frame]
    assert got["opcode"] == ["0x0d", "0x0f", "0x11", "0x0f"], got
    assert got["hash"] == ["01020304", bytes(range(64)).hex()], got
    assert [int(x) for x in got["request_in"]] == [first, second, second, third], got
    assert not got["wrong"], got


@case
def pieces(folder):
    """dissector: a message in two TCP segments, and two in one"""
    capture = Capture(folder)
    whole = message(0x0C, 1, 1, TARGET + b"\0\0\0\3") + message(0x10, 1, 2, ATOM)
    capture.add(0, whole[:30])
    frame = capture.add(0, whole[30:])
    got = capture.fields()[frame]
    assert got["opcode"] == ["0x0c", "0x10"] and got["flags"] == ["0x00000003"], got
    assert got["data"] == ["0x0123456789abcdef"] and not got["wrong"], got


@case
def markers(folder):
    """dissector: an FPDU with a marker in front of it"""
    capture = Capture(folder, startup=False)
    capture.add(0, MPA_REQUEST[:16] + b"\xd0" + MPA_REQUEST[17:])
    capture.add(1, MPA_REPLY[:16] + b"\xd0" + MPA_REPLY[17:])
    framed = bytes(4) + FLUSH_GOLDEN[:-4]
    frame = capture.add(0, framed + struct.pack("<I", crc32c(framed)))
    got = capture.fields()[frame]
    assert got["opcode"] == ["0x0c"] and got["length"] == ["4096"], got
    assert not got["wrong"], got


@case
def info_column(folder):
    """dissector: the line of a packet names the message"""
    capture = Capture(folder)
    capture.add(0, FLUSH_GOLDEN)
    capture.add(0, message(0x10, 1, 3, ATOM))
    capture.add(1, message(0x0D, 3, 1))
    text = capture.tshark()
    target = "STag 0xb0000002 TO 0x0000000000002000 length "
    assert "[RDMA Flush Request %s4096 P]" % target in text, text
    assert "[Atomic Write Request %s8 data 0x0123456789abcdef]" % target in text, text
    assert "[RDMA Flush Response]" in text and "malformed" not in text, text


@case
def truncated(folder):
    """dissector: messages cut short, or with too many octets"""
    rows = [
        (0, message(0x0C, 1, 1), "short"),
        (0, message(0x0C, 1, 1, TARGET), "short"),
        (0, message(0x0C, 1, 1, TARGET + b"\0\0\0"), "short"),
        (0, message(0x0C, 1, 1, TARGET + b"\0\0\0\1\0"), "long"),
        (0, message(0x0E, 1, 1, TARGET[:15]), "short"),
        (0, message(0x0E, 1, 1, TARGET + bytes(65)), "long"),
        (0, message(0x10, 1, 1, ATOM[:23]), "short"),
        (0, message(0x10, 1, 1, ATOM + b"\0"), "long"),
        (1, message(0x0D, 3, 1, b"\0"), "long"),
        (1, message(0x0F, 3, 1), "short"),
        (1, message(0x0F, 3, 1, bytes(65)), "long"),
        (1, message(0x11, 3, 1, b"\0"), "long"),
    ]
    for row, got in zip(rows, judge(folder, [row[:2] for row in rows])):
        assert got["wrong"] == [row[2]], (row, got)
        assert row[2] == "long" or ("stag" not in got and "data" not in got), (row, got)


@case
def bad_headers(folder):
    """dissector: headers that do not fit, values that are not allowed"""
    flush = TARGET + b"\0\0\0\1"
    rows = [
        (message(0x0C, 3, 1, flush), "header"),
        (message(0x0C, 1, 1, flush, ddp=0x01), "header"),
        (message(0x0C, 1, 1, flush, rv=0x00), "header"),
        (fpdu(bytes([0xC1, 0x50]) + bytes(24)), "header"),
        (message(0x0C, 1, 1, TARGET + b"\0\0\0\x08"), "value"),
        (message(0x10, 1, 1, struct.pack(">IIQQ", 1, 7, 0, 0)), "value"),
        (message(0x0C, 1, 1, flush, inv=0x300), "value"),
    ]
    for row, got in zip(rows, judge(folder, [(0, row[0]) for row in rows])):
        assert got["wrong"] == [row[1]], (row, got)


# Golden vectors of RFC 7306.
ADD_GOLDEN = bytes.fromhex(
    "0046414a 00000000 00000001 00000002 00000000 00000000 00000007 b0000002 00000000 00002000 "
    "00000000 00000005 00000000 00000000 00000000 00000000 ffffffff ffffffff b46cf8b5"
)
ORIGINAL_GOLDEN = bytes.fromhex(
    "001e414b 00000000 00000003 00000001 00000000 00000007 00000000 0000002a 4d18fffb"
)
IMM_GOLDEN = bytes.fromhex(
    "001a4148 00000000 00000000 00000003 00000000 01020304 05060708 ccb28c64"
)


@case
def atomics(folder):
    """dissector: Atomic Requests and Responses, every field"""
    swap = message(0x0A, 1, 3, struct.pack(">IIIQQQQQ", 0xFFFFFFF2, 8, 1, 2, 3, 4, 5, 6))
    add, got, original = judge(folder, [(0, ADD_GOLDEN), (0, swap), (1, ORIGINAL_GOLDEN)])
    assert add == {
        "opcode": ["0x0a"],
        "inv_stag": ["0x00000000"],
        "qn": ["1"],
        "msn": ["2"],
        "aop": ["0"],
        "id": ["0x00000007"],
        "rstag": ["0xb0000002"],
        "rto": ["0x0000000000002000"],
        "operand": ["0x0000000000000005"],
        "mask": ["0x0000000000000000"],
        "compare": ["0x0000000000000000"],
        "compare_mask": ["0xffffffffffffffff"],
        "wrong": [],
    }, add
    assert got["aop"] == ["2"] and got["mask"] == ["0x0000000000000004"] and not got["wrong"], got
    assert got["compare"] == ["0x0000000000000005"], got
    assert got["compare_mask"] == ["0x0000000000000006"], got
    assert original["id"] == ["0x00000007"] and original["qn"] == ["3"], original
    assert original["original"] == ["0x000000000000002a"] and not original["wrong"], original
    assert original["request_in"] == ["7"], original


@case
def immediates(folder):
    """dissector: Immediate Data, with and without Solicited Event"""
    both = IMM_GOLDEN + message(0x09, 0, 4, b"abcdefgh")
    (got,) = judge(folder, [(0, both)])
    assert got["opcode"] == ["0x08", "0x09"] and got["msn"] == ["3", "4"], got
    assert got["imm"] == ["0102030405060708", "6162636465666768"], got
    assert not got["wrong"], got


@case
def atomic_order(folder):
    """dissector: answers of queue 3 find their requests among those of both kinds"""
    capture = Capture(folder)
    asked = [
        capture.add(0, message(0x0A, 1, 1, ADD_GOLDEN[20:72])),
        capture.add(0, message(0x0C, 1, 3, TARGET + b"\0\0\0\1")),
        capture.add(0, message(0x0A, 1, 4, ADD_GOLDEN[20:72])),
    ]
    answers = [
        capture.add(1, message(0x0B, 3, 1, bytes(12))),
        capture.add(1, message(0x0D, 3, 2)),
        capture.add(1, message(0x0B, 3, 3, bytes(12))),
    ]
    found = capture.fields()
    assert [found[n]["request_in"] for n in answers] == [[str(n)] for n in asked], found


@case
def bad_7306(folder):
    """dissector: malformed Atomics and Immediate Data"""
    add = ADD_GOLDEN[20:72]
    rows = [
        (message(0x0A, 1, 1, add[:-1]), "short"),
        (message(0x0A, 1, 1, add + b"x"), "long"),
        (message(0x0A, 0, 1, add), "header"),
        (message(0x0A, 1, 1, add, ddp=0x01), "header"),
        (message(0x0A, 1, 1, b"\0\0\0\1" + add[4:]), "value"),
        (message(0x0A, 1, 1, b"\0\0\0\x0f" + add[4:]), "value"),
        (message(0x0B, 3, 1, bytes(11)), "short"),
        (message(0x0B, 1, 1, bytes(12)), "header"),
        (message(0x08, 0, 1, bytes(7)), "short"),
        (message(0x09, 0, 1, bytes(9)), "long"),
        (message(0x08, 1, 1, bytes(8)), "header"),
        (fpdu(bytes([0xC1, 0x48]) + bytes(24)), "header"),
    ]
    for row, got in zip(rows, judge(folder, [(0, row[0]) for row in rows])):
        assert got["wrong"] == [row[1]], (row, got)
    # The word that the draft requires to be zero is not checked.
    (got,) = judge(folder, [(0, message(0x0A, 1, 1, add, inv=0x300))])
    assert not got["wrong"], got


@case
def drafts(folder):
    """dissector: draft -01 has no flag R, but an STag to invalidate and empty hashes"""
    rows = [
        (0, message(0x0C, 1, 1, TARGET + b"\0\0\0\5")),
        (0, message(0x0C, 1, 2, TARGET + b"\0\0\0\1", inv=0x300)),
        (1, message(0x0F, 3, 1)),
    ]
    wrong = [got["wrong"] for got in judge(folder, rows)]
    assert wrong == [[], ["value"], ["short"]], wrong
    found = judge(folder, rows, "-o", "staghorn.draft:-01")
    wrong = [got["wrong"] for got in found]
    assert wrong == [["value"], [], []], wrong
    assert found[1]["inv_stag"] == ["0x00000300"], found


@case
def narrow(folder):
    """dissector: with four bits of opcode Flush is seen, Atomic Write is not"""
    off = ("-o", "staghorn.wide:FALSE")
    flush, atom = judge(folder, [(0, FLUSH_GOLDEN), (0, ATOM_GOLDEN)], *off)
    assert flush["opcode"] == ["0x0c"] and atom == {}, (flush, atom)


@case
def others(folder):
    """dissector: messages of RFC 5040 and connections without MPA are left alone"""
    old = message(0x03, 0, 1, b"hello") + message(0x01, 1, 1, bytes(28))
    assert judge(folder, [(0, old)]) == [{}]
    plain = Capture(folder, startup=False)
    frame = plain.add(0, FLUSH_GOLDEN)
    assert plain.fields()[frame] == {}


@case
def placement(folder):
    """dissector: what the VM tests ask of a capture"""
    sys.path.insert(0, str(TOP / "tests" / "vm" / "lib"))
    sys.dont_write_bytecode = True
    wire = importlib.import_module("wire")
    capture = Capture(folder)
    capture.add(0, message(0x0C, 1, 1, TARGET + b"\0\0\0\1") + message(0x10, 1, 2, ATOM))
    capture.add(0, message(0x0C, 1, 3, TARGET + b"\0\0\0\3") + message(0x0E, 1, 4, TARGET))
    capture.add(1, message(0x0D, 3, 1) + message(0x11, 3, 2) + message(0x0D, 3, 3))
    capture.add(1, message(0x0F, 3, 4, b"\1\2\3\4"))
    bad = capture.add(0, message(0x0C, 1, 5, TARGET + b"\0\0\0\x10"))
    capture.write()
    found = wire.Placement(capture.path)
    assert found.messages == {
        "flush request": 3,
        "flush response": 2,
        "verify request": 1,
        "verify response": 1,
        "atomic write request": 1,
        "atomic write response": 1,
    }, found.messages
    assert found.flags == {1: 1, 3: 1, 16: 1}, found.flags
    assert found.malformed == [bad], found.malformed


def main():
    if not shutil.which("tshark"):
        print("1..0 # SKIP no tshark")
        return 0
    return cases.run(CASES)


if __name__ == "__main__":
    sys.exit(main())
