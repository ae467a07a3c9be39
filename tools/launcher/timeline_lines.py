# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter's trace events, line by line: what `trace` reads from QEMU.

QEMU writes THREAD@SECONDS.MICROSECONDS:EVENT ARGUMENTS; hw/device/trace-events has the formats of
the arguments, and what the core says in them is in hw/core/verbs.  tests/build/test_timeline.py
reads these sources, so an event that changes there is noticed.
"""
import re
from collections import namedtuple

# What happens, in the order of a report's columns and legends.
KINDS = {
    "register": "the driver reads or writes a register",
    "command": "a command of the admin queue was executed",
    "doorbell": "the driver or a program rings a doorbell",
    "fetch": "the adapter fetches an entry of a queue",
    "sent": "a segment was handed to TCP",
    "received": "a segment arrived",
    "completion": "the adapter writes a completion",
    "interrupt": "the adapter sends an interrupt",
    "state": "a queue pair, a connection or the adapter changes its state",
    "guest": "a tracepoint of the guest's kernel (--guest)",
    "error": "a mistake of the guest or the peer, or a queue pair goes to TERMINATE or ERROR",
}
GUEST = "guest"  # the lane of a VM's kernel, in the place of an adapter
# Each event of the adapter, and what it tells; None: its text says.
EVENTS = {
    "staghorn_guest": "error",
    "staghorn_peer": "error",
    "staghorn_failure": "error",
    "staghorn_check": "error",
    "staghorn_state": "state",
    "staghorn_detail": None,
    "staghorn_flow": None,
    "staghorn_reg_read": "register",
    "staghorn_reg_write": "register",
    "staghorn_doorbell": "doorbell",
    "staghorn_interrupt": "interrupt",
}
LINE = re.compile(r"\d+@(\d+)\.(\d{6}):(\w+) (.*)\Z", re.DOTALL)
FIRST = {"fetched": "fetch", "sent": "sent", "received": "received", "completed": "completion"}
FLOW = re.compile(r"qp (\d+): (\w+) (.*)\Z", re.DOTALL)
QP = re.compile(r"\bqp (\d+)\b")
REGISTER = re.compile(r"register 0x([0-9a-f]+) (reads as|becomes) (0x[0-9a-f]+), (\d+) octets\Z")
DOORBELL = re.compile(r"doorbell page (\d+), offset 0x([0-9a-f]+), 0x([0-9a-f]+), (\d+) octets\Z")
# Of a completion the first word is its status; the receive of a fetch has none.
ENTRY = re.compile(r"(send|receive) entry (\d+)(?: of srq \d+)?(?:, (\w[\w ]*))?(?:, .*)?\Z")

# Names of include/staghorn/regs.h without their prefixes.
REGISTERS = {
    **{0x000: "MAGIC", 0x004: "VERSION", 0x008: "CTRL", 0x00C: "STATUS", 0x010: "FATAL"},
    **{0x014: "VECTORS", 0x018: "MAC_LO", 0x01C: "MAC_HI", 0x020: "GUID_LO", 0x024: "GUID_HI"},
    **{0x028: "LINK_SPEED", 0x02C: "LINK_MTU", 0x030: "FW_VERSION", 0x034: "POWER_CUTS"},
    **{0x038: "POWER_KEPT", 0x03C: "POWER_LOST", 0x040: "TEST_SCRATCH", 0x044: "TEST_IRQ"},
    **{0x048: "TEST_DMA_LO", 0x04C: "TEST_DMA_HI", 0x050: "TEST_DMA_LEN", 0x054: "TEST_DMA_CMD"},
    **{0x058: "TEST_DMA_STATUS", 0x080: "ASQ_BASE_LO", 0x084: "ASQ_BASE_HI"},
    **{0x088: "ACQ_BASE_LO", 0x08C: "ACQ_BASE_HI", 0x090: "ADMIN_SIZE", 0x094: "ADMIN_DB"},
    **{0x098: "ADMIN_CI", 0x0A0: "AEQ_BASE_LO", 0x0A4: "AEQ_BASE_HI", 0x0A8: "AEQ_SIZE"},
}
EQ_DB, EQ_COUNT = 0x1000, 64
DOORBELLS = {0x00: "SQ", 0x08: "RQ", 0x10: "SRQ", 0x18: "CQ_ARM"}
CQ_ARM_CQN_MASK, CQ_ARM_SOLICITED = 0x00FFFFFF, 0x80000000


class Damaged(Exception):
    """A line that is no whole event, or that does not have the form of its event."""


class Unknown(Exception):
    """An event of the adapter that this launcher does not know; its name."""


# How a segment's line ends, in the same words where it is sent and where it is received: which one
# of the connection's it is.
SEGMENT = re.compile(
    r"\b\d+ octets(?:, last)?(, segment \d+, [\w.:\[\]]+ > [\w.:\[\]]+)?\Z", re.ASCII
)

# One event.  time: microseconds since 1970 by the host's clock.  name: short, the same for all that
# are alike.  qp: None if it is the adapter's.  entry: the queue's entry that was fetched or
# completed, as ("send" or "receive", index).  segment: what both ends call a segment, or None.
Event = namedtuple(
    "Event", "time vm adapter kind name text qp entry segment", defaults=(None, None, None)
)


def register_name(addr):
    if EQ_DB <= addr < EQ_DB + 4 * EQ_COUNT and addr % 4 == 0:
        return "EQ_DB[%d]" % ((addr - EQ_DB) // 4)
    return REGISTERS.get(addr, "register 0x%03x" % addr)


def _register(text):
    found = REGISTER.match(text)
    if not found:
        raise Damaged
    name = register_name(int(found[1], 16))
    wide = ", 64 bits" if found[4] == "8" else ""
    return {"name": name, "text": "%s %s %s%s" % (name, found[2], found[3], wide)}


def _doorbell(text):
    """A doorbell names a queue in its lower half and an index in its upper one (regs.h)."""
    found = DOORBELL.match(text)
    if not found:
        raise Damaged
    offset, value = int(found[2], 16), int(found[3], 16)
    number, index = value & 0xFFFFFFFF, value >> 32
    bell = DOORBELLS.get(offset)
    page = "page %s" % found[1]
    if bell is None or found[4] != "8":
        said = "write of %s octets at 0x%02x, 0x%x, %s" % (found[4], offset, value, page)
        return {"name": "doorbell", "text": said}
    if bell == "CQ_ARM":
        kind = "solicited only" if number & CQ_ARM_SOLICITED else "any completion"
        said = "arms cq %d: %s, consumer index %d" % (number & CQ_ARM_CQN_MASK, kind, index)
    elif bell == "SRQ":
        said = "srq %d: producer index %d" % (number, index)
    else:
        queue = "send" if bell == "SQ" else "receive"
        said = "qp %d: %s queue, producer index %d" % (number, queue, index)
    qp = number if bell in ("SQ", "RQ") else None
    return {"name": bell, "text": "%s, %s" % (said, page), "qp": qp}


def _flow(text):
    found = FLOW.match(text)
    if not found or found[2] not in FIRST:
        raise Damaged
    kind, rest = FIRST[found[2]], found[3]
    parts = {"kind": kind, "qp": int(found[1]), "text": text}
    if kind in ("fetch", "completion"):
        entry = ENTRY.match(rest)
        if not entry:
            raise Damaged
        parts["entry"] = (entry[1], int(entry[2]))
        parts["name"] = entry[3] or "receive"
    else:
        parts["name"], comma, numbers = rest.partition(", ")
        segment = SEGMENT.search(numbers)
        if not comma or not segment:
            raise Damaged
        parts["segment"] = rest if segment[1] else None
    return parts


def _detail(text):
    admin = re.match(r"admin: (\w+): status (-?\d+), id 0x[0-9a-f]+\Z", text)
    if admin:
        return {"kind": "command", "name": admin[1], "text": text}
    return {"kind": "state", "name": "detail", "text": text}


def _error(text):
    """A line about an error begins with whose it is; the checker's does not."""
    whose = re.match(r"(guest error|peer error|failure|check): ", text)
    return {"name": whose[1] if whose else "error", "text": text}


def _state(text):
    moved = re.search(r"-> ([A-Z_]+)", text)
    return {"name": moved[1] if moved else "state", "text": text}


def _interrupt(text):
    found = re.match(r"interrupt, vector (\d+)\Z", text)
    if not found:
        raise Damaged
    return {"name": "vector " + found[1], "text": text}


FORMS = {
    "staghorn_flow": _flow,
    "staghorn_detail": _detail,
    "staghorn_state": _state,
    "staghorn_reg_read": _register,
    "staghorn_reg_write": _register,
    "staghorn_doorbell": _doorbell,
    "staghorn_interrupt": _interrupt,
}


def parse(vm, line):
    """The Event of a line, without its end; None: a line that is no event of the adapter.

    Raises Damaged or Unknown."""
    found = LINE.match(line)
    if not found:
        if re.match(r"(\d+@\d*\.?\d*:?)?staghorn_", line) or re.match(r"\d+@[\d.]*:?\Z", line):
            raise Damaged
        return None
    seconds, micros, event, rest = found.groups()
    if not event.startswith("staghorn_"):
        return None
    if event not in EVENTS:
        raise Unknown(event)
    adapter, colon, text = rest.partition(": ")
    if not colon or not adapter or not text:
        raise Damaged
    parts = {"kind": EVENTS[event], **FORMS.get(event, _error)(text)}
    if "qp" not in parts:
        qp = QP.search(text)
        parts["qp"] = int(qp[1]) if qp else None
    return Event(int(seconds) * 1000000 + int(micros), vm, adapter, **parts)
