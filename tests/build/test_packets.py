#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of packets.py: captures that this program writes, and captures that are none."""
import ipaddress
import struct
import sys
from pathlib import Path

import cases

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from launcher import packets  # noqa: E402
from launcher.errors import UsageError  # noqa: E402

CASES = []
A, B = "10.77.0.1", "10.77.0.2"


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def frame(source, destination, payload):
    """A TCP segment; each end is (address, port)."""
    ends = [ipaddress.ip_address(each[0]) for each in (source, destination)]
    octets = b"".join(each.packed for each in ends)
    if ends[0].version == 4:
        head = bytes((8, 0, 0x45)) + bytes(8) + bytes((6, 0, 0)) + octets
    else:
        head = bytes((0x86, 0xDD, 0x60)) + bytes(5) + bytes((6, 64)) + octets
    ports = struct.pack(">HH", source[1], destination[1])
    return bytes(12) + head + ports + bytes(16) + payload


def capture(path, frames, order="<", cut=()):
    """Frames as a capture; those whose numbers are in cut are not whole."""
    octets = struct.pack(order + "IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    for number, each in enumerate(frames, 1):
        octets += struct.pack(order + "IIII", 0, 0, len(each), len(each) + (number in cut))
        octets += each
    path.write_bytes(octets)
    return path


def bug(own, peer, received):
    """A bug that names these frames."""
    named = [
        {"event": 10 * n, "len": len(each), "crc32c": hex(packets.crc32c(each))}
        for n, each in enumerate(received, 1)
    ]
    ends = [{"address": end[0], "port": end[1]} for end in (own, peer)]
    return {
        "frames": {"lost": {"machine": "b", "own": ends[0], "peer": ends[1], "received": named}}
    }


def packet(found):
    return found["frames"]["lost"].get("packet")


@case
def checksum(_folder):
    """CRC32c of the usual nine digits"""
    assert packets.crc32c(b"123456789") == 0xE3069283


@case
def newest(folder):
    """The newest frame of the connection, whatever others follow; both orders of octets, IPv6"""
    for own, peer in (((B, 7000), (A, 5)), (("fd00::2", 7000), ("fd00::1", 5))):
        wanted = [frame(peer, own, b"one"), frame(peer, own, b"two")]
        other = frame((peer[0], 6), own, b"two")
        frames = [wanted[0], frame(own, peer, b"two"), wanted[1], other, frame(peer, own, b"end")]
        for order in "<>":
            path = capture(folder / "a.pcap", frames, order)
            found = bug(own, peer, [*wanted, other])
            assert packets.find([found], path) == 0
            assert packet(found) == {"event": 20, "numbers": [3]}, packet(found)


@case
def repeated(folder):
    """A packet with the same octets may be it as well; one that is missing is counted"""
    one, two = frame((A, 5), (B, 7), b"one"), frame((A, 5), (B, 7), b"two")
    path = capture(folder / "a.pcap", [one, b"short", one], cut=(2,))
    found = [bug((B, 7), (A, 5), [one]), bug((B, 7), (A, 5), [two]), {"frames": {}}, {}]
    assert packets.find(found, path) == 1
    assert packet(found[0])["numbers"] == [1, 3] and not packet(found[1])


@case
def cut_short(folder):
    """A capture without its last octets, and a packet that was not captured whole"""
    one = frame((A, 5), (B, 7), b"one")
    path = capture(folder / "a.pcap", [one, one, one], cut=(1,))
    path.write_bytes(path.read_bytes()[:-1])
    found = bug((B, 7), (A, 5), [one])
    assert packets.find([found], path) == 0
    assert packet(found)["numbers"] == [2]


@case
def refused(folder):
    """What is no capture is refused with a sentence"""
    good = capture(folder / "a.pcap", [b"frame"]).read_bytes()
    table = (
        (b"", "no capture"),
        (good[:23], "no capture"),
        (b"\x0a\x0d\x0d\x0a" + good[4:], "editcap"),
        (good[:20] + b"\x71" + good[21:], "Ethernet"),
        (good[:32] + b"\xff\xff\xff\x00" + good[36:], "packet 1 is damaged"),
    )
    for octets, words in table:
        path = folder / "b.pcap"
        path.write_bytes(octets)
        try:
            packets.check(path)
        except UsageError as error:
            assert words in error.text(), error.text()
        else:
            raise AssertionError("not refused: %s" % words)
    try:
        packets.check(folder / "missing")
    except UsageError as error:
        assert "missing" in error.text()
    else:
        raise AssertionError("a missing file is not refused")


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
