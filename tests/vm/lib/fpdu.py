# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what was on the wire from a capture, without any other program.

Frames (pcap, Ethernet, IPv4, TCP) become octet streams, streams become FPDUs (RFC 5044, without
markers), FPDUs become DDP segments with the five opcode bits of draft-talpey-rdma-commit. Lengths,
padding and CRCs are checked on the way; an error raises Bad.
"""
import struct
from dataclasses import dataclass

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10
DEPTH = 0x3FFF  # mask of IRD and ORD; the bits above them are the flags A to D of RFC 6581
ETHERNET, IPV4, TCP = 1, 0x0800, 6

NAMES = {
    0x00: "write",
    0x01: "read request",
    0x02: "read response",
    0x03: "send",
    0x04: "send invalidate",
    0x05: "send se",
    0x06: "send se invalidate",
    0x07: "terminate",
    0x08: "immediate",
    0x09: "immediate se",
    0x0A: "atomic",
    0x0B: "atomic response",
    0x0C: "flush",
    0x0D: "flush response",
    0x0E: "verify",
    0x0F: "verify response",
    0x10: "atomic write",
    0x11: "atomic write response",
}
FLUSH_PERSISTENT, FLUSH_GLOBAL, FLUSH_REGION = 1, 2, 4


class Bad(AssertionError):
    """The capture has something that must not be on the wire."""


@dataclass
class Segment:
    """One DDP segment: where it was seen, and its fields."""

    source: str
    target: str
    opcode: int
    last: bool
    tagged: bool
    queue: int  # untagged only
    msn: int
    payload: bytes

    @property
    def name(self):
        return NAMES.get(self.opcode, "opcode %#x" % self.opcode)

    def place(self):
        """(STag, length, TO, the octets after them) of a Flush, Verify or Atomic Write Request."""
        return (*struct.unpack_from(">IIQ", self.payload), self.payload[16:])


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def crc32c(data):
    value = 0xFFFFFFFF
    for octet in data:
        value = value >> 8 ^ _TABLE[(value ^ octet) & 0xFF]
    return value ^ 0xFFFFFFFF


def _frames(path):
    with open(path, "rb") as file:
        data = file.read()
    magic, *_, link = struct.unpack_from("<IHHiIII", data)
    if magic not in (0xA1B2C3D4, 0xA1B23C4D) or link != ETHERNET:
        raise Bad("%s is no capture of Ethernet" % path)
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        if at + 16 + length > len(data):
            return  # another process is still writing it
        yield data[at + 16 : at + 16 + length]
        at += 16 + length


def _segments_of_tcp(path):
    """(source, target, sequence number, flags, payload), addresses as "10.77.0.1:4791"."""
    for frame in _frames(path):
        if len(frame) < 34 or struct.unpack_from(">H", frame, 12)[0] != IPV4 or frame[23] != TCP:
            continue
        header = 14 + (frame[14] & 15) * 4
        end = 14 + struct.unpack_from(">H", frame, 16)[0]
        ports = struct.unpack_from(">HH", frame, header)
        sequence = struct.unpack_from(">I", frame, header + 4)[0]
        payload = header + (frame[header + 12] >> 4) * 4
        names = [
            "%s:%d" % (".".join(map(str, frame[place : place + 4])), port)
            for place, port in zip((26, 30), ports)
        ]
        yield (*names, sequence, frame[header + 13], frame[payload:end])


class _Stream:
    """One direction of a connection: its octets in order, each once."""

    def __init__(self, sequence):
        self.next = (sequence + 1) & 0xFFFFFFFF
        self.data = bytearray()
        self.early = {}

    def add(self, sequence, payload):
        self.early[sequence] = max(payload, self.early.get(sequence, b""), key=len)
        found = True
        while found:
            found = False
            for sequence in list(self.early):
                payload = self.early[sequence]
                old = (self.next - sequence) & 0xFFFFFFFF
                if old >= 1 << 31:
                    continue
                del self.early[sequence]
                if old < len(payload):
                    self.data += payload[old:]
                    self.next = (self.next + len(payload) - old) & 0xFFFFFFFF
                    found = True


def streams(path):
    """[(source, target, octets)] of all TCP connections whose start is in the capture."""
    found, order = {}, []
    for source, target, sequence, flags, payload in _segments_of_tcp(path):
        key = (source, target)
        if flags & 2:  # SYN: a second connection with the same ports is separate
            if key not in found or found[key].next != (sequence + 1) & 0xFFFFFFFF:
                found[key] = _Stream(sequence)
                order.append((source, target, found[key]))
        elif payload and key in found:
            found[key].add(sequence, payload)
    return [(source, target, bytes(stream.data)) for source, target, stream in order]


def _startup(data):
    """(octets of the MPA startup frame, its flags), or None if there is none."""
    if data[:16] not in (REQUEST, REPLY) or len(data) < 20:
        return None
    return 20 + struct.unpack_from(">H", data, 18)[0], data[16]


@dataclass
class Startup:
    """An MPA startup frame (RFC 5044 section 7.1, RFC 6581); revision 1 has no depths."""

    revision: int
    flags: int
    depths: tuple = ()  # IRD, ORD
    peer_to_peer: bool = False
    ready: tuple = ()  # kinds of ready-to-receive message, in the order of their bits

    @classmethod
    def of(cls, data):
        found = cls(data[17], data[16])
        if found.revision >= 2 and found.flags & ENHANCED:
            if len(data) < 24:
                raise Bad("an enhanced startup frame without its header")
            first, second = struct.unpack_from(">HH", data, 20)
            bits = (first & 0x4000, "send"), (second & 0x8000, "write"), (second & 0x4000, "read")
            found.depths = first & DEPTH, second & DEPTH
            found.peer_to_peer = bool(first & 0x8000)
            found.ready = tuple(name for bit, name in bits if bit)
        return found


@dataclass
class Setup:
    """How one connection began.  None: it did not happen, or (first) cannot be read here."""

    initiator: str
    responder: str
    request: Startup
    reply: Startup = None
    first: "Segment" = None  # the initiator's first segment

    @property
    def first_kind(self):
        """The first message's name, with "empty " before it if it has no payload; "": none."""
        if not self.first:
            return ""
        octets = len(self.first.payload)
        if self.first.name == "read request":
            octets = struct.unpack_from(">I", self.first.payload, 12)[0]
        return self.first.name if octets else "empty " + self.first.name


def _first(data, setup):
    """The initiator's first segment, or None."""
    if not setup.reply or setup.reply.flags & (MARKERS | REJECT):
        return None
    with_crc = (setup.request.flags | setup.reply.flags) & CRC
    for ulpdu in _fpdus(data, with_crc):
        return _parse(setup.initiator, setup.responder, ulpdu)
    return None


def setups(path):
    """The setups of all connections whose Request is in the capture, in their order."""
    all_streams = streams(path)
    replies = {}
    for source, target, data in all_streams:
        if data.startswith(REPLY) and _startup(data):
            replies.setdefault((target, source), []).append(Startup.of(data))
    found = []
    for source, target, data in all_streams:
        start = _startup(data)
        if not start or not data.startswith(REQUEST) or len(data) < start[0]:
            continue
        answers = replies.get((source, target))
        setup = Setup(source, target, Startup.of(data), answers.pop(0) if answers else None)
        setup.first = _first(data[start[0] :], setup)
        found.append(setup)
    return found


def _parse(source, target, ulpdu):
    control, rdmap = ulpdu[0], ulpdu[1]
    tagged = bool(control & 0x80)
    if control & 3 != 1 or rdmap >> 6 != 1:
        raise Bad("DDP or RDMAP version: %02x %02x" % (control, rdmap))
    if len(ulpdu) < (14 if tagged else 18):
        raise Bad("a DDP segment of %d octets" % len(ulpdu))
    queue, msn = (0, 0) if tagged else struct.unpack_from(">II", ulpdu, 6)
    return Segment(
        source,
        target,
        rdmap & 0x1F,
        bool(control & 0x40),
        tagged,
        queue,
        msn,
        ulpdu[14 if tagged else 18 :],
    )


def _fpdus(data, with_crc):
    """The ULPDUs; an incomplete one at the end (where the capture or the VM ended) is left out."""
    at = 0
    while at + 2 <= len(data):
        length = struct.unpack_from(">H", data, at)[0]
        body = (2 + length + 3) // 4 * 4
        if at + body + 4 > len(data):
            return
        crc = struct.unpack_from("<I", data, at + body)[0]
        if with_crc and crc != crc32c(data[at : at + body]):
            raise Bad("CRC of the FPDU at octet %d" % at)
        if length < 14:
            raise Bad("an FPDU of %d octets" % length)
        yield data[at + 2 : at + 2 + length]
        at += body + 4


def segments(path):
    """All DDP segments of all iWARP connections of a capture, direction by direction."""
    found = []
    all_streams = streams(path)
    flags_of = {}
    for source, target, data in all_streams:
        start = _startup(data)
        if start:
            flags_of.setdefault(frozenset((source, target)), []).append(start[1])
    for source, target, data in all_streams:
        start = _startup(data)
        if not start:
            continue
        length, flags = start
        if flags & MARKERS:
            raise Bad("markers are beyond this reader")
        both = flags_of[frozenset((source, target))]
        with_crc = any(each & CRC for each in both)
        found += [_parse(source, target, ulpdu) for ulpdu in _fpdus(data[length:], with_crc)]
    return found


def opcodes(found):
    """{name: segments}"""
    counts = {}
    for segment in found:
        counts[segment.name] = counts.get(segment.name, 0) + 1
    return counts
