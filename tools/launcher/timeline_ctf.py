# SPDX-License-Identifier: GPL-2.0-or-later
"""The time line of a trace in the Common Trace Format 1.8, for babeltrace2 and Trace Compass.

The folder has two files: `metadata`, the description of all fields as text in TSDL, and `events`,
one stream of packets with the events of all VMs in the order of the time line.  An event's class is
its kind.  Times are nanoseconds since 1970 by the host's clock.
"""
import contextlib
import os
import struct
import uuid
from pathlib import Path

from .errors import LabError, UsageError
from .timeline_lines import KINDS

MAGIC = 0xC1FC1FC1
NO_QP = -1
PACKET_MAX = 1 << 16  # octets of events of a packet, unless one event is longer
HEADER = struct.Struct("<I16sI")  # of a packet: magic, UUID of the trace, number of the stream
CONTEXT = struct.Struct("<QQQQQQ")  # begin, end, content and size in bits, packet, discarded
EVENT = struct.Struct("<HQ")  # number of the class, time
QP = struct.Struct("<q")

METADATA = """/* CTF 1.8 */

typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;

trace {
    major = 1;
    minor = 8;
    uuid = "%(uuid)s";
    byte_order = le;
    packet.header := struct {
        uint32_t magic;
        integer { size = 8; align = 8; signed = false; } uuid[16];
        uint32_t stream_id;
    };
};

env {
%(env)s
};

clock {
    name = host;
    description = "CLOCK_REALTIME of the host, read in microseconds";
    freq = 1000000000;
    precision = 1000;
    offset = 0;
    absolute = true;
};

typealias integer {
    size = 64; align = 8; signed = false; map = clock.host.value;
} := host_time_t;

stream {
    id = 0;
    packet.context := struct {
        host_time_t timestamp_begin;
        host_time_t timestamp_end;
        uint64_t content_size;
        uint64_t packet_size;
        uint64_t packet_seq_num;
        uint64_t events_discarded;
    };
    event.header := struct {
        uint16_t id;
        host_time_t timestamp;
    };
    event.context := struct {
        string { encoding = UTF8; } vm;
        string { encoding = UTF8; } adapter;
        int64_t qp; /* -1: the event belongs to no queue pair */
    };
};
"""
EVENT_CLASS = """
event { /* %(meaning)s */
    id = %(id)d;
    name = "%(kind)s";
    stream_id = 0;
    fields := struct {
        string { encoding = UTF8; } name;
        string { encoding = UTF8; } text;
    };
};
"""


def _quoted(text):
    """A string of TSDL: control characters, which may come from a stranger, become blanks."""
    plain = "".join(letter if letter.isprintable() else " " for letter in str(text))
    return '"%s"' % plain.replace("\\", "\\\\").replace('"', '\\"')


def _env(result):
    """What is true of the whole trace, by name; notes say what is missing."""
    yield "tracer_name", _quoted("staghorn")
    for key in ("lab", "began", "command", "command_vm"):
        if result[key]:
            yield key, _quoted(result[key])
    if result["status"] is not None:
        yield "status", "%d" % result["status"]
    for number, note in enumerate(result["notes"], 1):
        yield "note_%d" % number, _quoted(note)


def metadata(result, number):
    """The description of all fields; number: the UUID of the trace."""
    env = "\n".join("    %s = %s;" % pair for pair in _env(result))
    classes = [
        EVENT_CLASS % {"id": at, "kind": kind, "meaning": meaning}
        for at, (kind, meaning) in enumerate(KINDS.items())
    ]
    return METADATA % {"uuid": number, "env": env} + "".join(classes)


def _string(text):
    """A string of an event ends with an octet of 0, so it cannot have one."""
    return text.replace("\0", "\ufffd").encode(errors="replace") + b"\0"


def _event(event, classes):
    return b"".join(
        (
            EVENT.pack(classes[event.kind], event.time * 1000),
            _string(event.vm),
            _string(event.adapter),
            QP.pack(NO_QP if event.qp is None else event.qp),
            _string(event.name),
            _string(event.text),
        )
    )


class Stream:
    """Packets, one after the other."""

    def __init__(self, number):
        self.number, self.packets = number, []

    def add(self, events, begin, end, discarded=0):
        """A packet with events that are packed already; begin and end: microseconds."""
        bits = 8 * (HEADER.size + CONTEXT.size + len(events))
        times = begin * 1000, end * 1000
        self.packets.append(HEADER.pack(MAGIC, self.number.bytes, 0))
        count = len(self.packets) // 2
        self.packets.append(CONTEXT.pack(*times, bits, bits, count, discarded) + events)


def stream(result, number):
    """The file of events.  The last packet has none, and says how many lines were lost: readers
    show them as discarded somewhere behind the packet before it."""
    classes = {kind: at for at, kind in enumerate(KINDS)}
    found, begin, end, waiting = Stream(number), result["began_us"], result["began_us"], bytearray()
    for event in result["events"]:
        packed = _event(event, classes)
        if waiting and len(waiting) + len(packed) > PACKET_MAX:
            found.add(bytes(waiting), begin, end)
            begin, waiting = event.time, bytearray()
        waiting += packed
        end = event.time
    found.add(bytes(waiting), begin, end)
    last = max(end, result["began_us"] + int(result["seconds"] * 1e6))
    found.add(b"", end, last, sum(vm["lost"] for vm in result["vms"].values()))
    return b"".join(found.packets)


def place(text):
    """The absolute path of the folder that will be written: a new one, or an empty one."""
    path = Path(text).absolute()
    try:
        if path.is_dir():
            usable = os.access(path, os.W_OK | os.X_OK)
            if any(path.iterdir()):
                raise UsageError("--ctf %s: the folder is not empty" % text)
        else:
            usable = path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)
            usable = usable and not os.path.lexists(path)
    except OSError:
        usable = False
    if not usable:
        raise UsageError("--ctf %s: cannot be written there" % text)
    return str(path)


def write(path, result):
    """Writes the folder; nothing is left of it if that fails."""
    number = uuid.uuid4()
    folder, made, written = Path(path), False, []
    try:
        if not folder.is_dir():
            folder.mkdir()
            made = True
        # Without its metadata a folder is no trace, so this file comes last.
        for name, content in (
            ("events", stream(result, number)),
            ("metadata", metadata(result, number).encode(errors="replace")),
        ):
            written.append(folder / name)
            with open(folder / name, "xb") as file:
                file.write(content)
    except OSError as error:
        for file in written if not isinstance(error, FileExistsError) else written[:-1]:
            with contextlib.suppress(OSError):
                file.unlink()
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise LabError("%s cannot be written: %s" % (path, error.strerror))
