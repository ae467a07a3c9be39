# SPDX-License-Identifier: GPL-2.0-or-later
"""The packets of a capture that brought a lost message and its acknowledgement.

A trace knows a frame by its length and CRC32c.  The explorer names the last frames that a machine
received before an event, and the connection; the newest one of this connection brought what made
the event happen (docs/crash-laboratory.md)."""
import ipaddress
import struct

from .errors import UsageError

MAGIC = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
}
PCAPNG = b"\x0a\x0d\x0d\x0a"
ETHERNET, FRAME_MAX = 1, 262144
TYPE_IP4, TYPE_IP6, TCP = 0x0800, 0x86DD, 6


def _table():
    for octet in range(256):
        for _ in range(8):
            octet = octet >> 1 ^ (0x82F63B78 if octet & 1 else 0)
        yield octet


TABLE = tuple(_table())


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = TABLE[(crc ^ octet) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def read_capture(path):
    """Yields (number, frame), as Wireshark counts; None instead of a frame that is not whole."""
    try:
        with open(path, "rb") as file:
            head = file.read(24)
            order = MAGIC.get(head[:4])
            if head[:4] == PCAPNG:
                raise UsageError("%s is pcapng" % path, "editcap -F pcap converts it")
            if not order or len(head) < 24:
                raise UsageError("%s is no capture (pcap)" % path)
            if struct.unpack(order + "I", head[20:])[0] & 0xFFFF != ETHERNET:
                raise UsageError("%s is no capture of Ethernet frames" % path)
            number = 0
            while len(words := file.read(16)) == 16:
                length, whole = struct.unpack(order + "8xII", words)
                if length > FRAME_MAX:
                    raise UsageError("%s: packet %d is damaged" % (path, number + 1))
                frame = file.read(length)
                if len(frame) < length:
                    return  # the capture goes on, or was cut short
                number += 1
                yield number, frame if length == whole else None
    except OSError as error:
        raise UsageError("cannot read %s: %s" % (path, error.strerror)) from error


def check(path):
    """Is it a capture?  UsageError says why not."""
    for _ in read_capture(path):
        break


def connection_of(frame):
    """((source, port), (destination, port)) of a TCP segment, otherwise None."""
    if len(frame) < 54:
        return None
    kind = struct.unpack_from(">H", frame, 12)[0]
    if kind == TYPE_IP4 and frame[23] == TCP:
        size, at, behind = 4, 26, 14 + (frame[14] & 15) * 4
    elif kind == TYPE_IP6 and frame[20] == TCP:
        size, at, behind = 16, 22, 54
    else:
        return None
    if len(frame) < behind + 4:
        return None
    ports = struct.unpack_from(">HH", frame, behind)
    ends = (frame[at : at + size], frame[at + size : at + 2 * size])
    return tuple((ipaddress.ip_address(end), port) for end, port in zip(ends, ports))


def _end(where):
    return ipaddress.ip_address(where["address"]), where["port"]


def _wanted(bugs):
    """All places of a result that name frames."""
    return [frames for bug in bugs for frames in (bug.get("frames") or {}).values()]


def find(bugs, path):
    """Adds `packet` to the frames of each bug whose packet is in the capture; returns how many
    are not."""
    wanted = _wanted(bugs)
    lengths = {frame["len"] for each in wanted for frame in each["received"]}
    connections = {(_end(each["peer"]), _end(each["own"])) for each in wanted}
    seen = {}
    for number, frame in read_capture(path):
        if frame and len(frame) in lengths and (ends := connection_of(frame)) in connections:
            seen.setdefault((ends, len(frame), crc32c(frame)), []).append(number)
    missing = 0
    for each in wanted:
        ends = (_end(each["peer"]), _end(each["own"]))
        for frame in reversed(each["received"]):
            numbers = seen.get((ends, frame["len"], int(frame["crc32c"], 16)))
            if numbers:
                each["packet"] = {"event": frame["event"], "numbers": numbers}
                break
        missing += "packet" not in each
    return missing
