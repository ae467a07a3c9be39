# SPDX-License-Identifier: GPL-2.0-or-later
"""The messages that lost DMA came in, and their work requests at the sender.

A placement has adapter, queue pair and ordinal: which message of its connection and direction it
belongs to.  The trace of the sender has the same connection, seen from its other end, and the work
request whose first message has this ordinal (docs/trace-format.md).  A message that answers a
request has none: the sender's `answered` names it.
"""
import collections
import ipaddress
import json
import subprocess

from . import packets, paths

KINDS = ("place", "atomic-write", "atomic")  # of events that an adapter's messages make
PACKETS_MAX = 256  # lost events whose packets are looked for
FRAMES = 16  # received before an event, as the explorer names them
PORTS, ENDS = 64, 72  # digits of a connection's addresses, and with its ports
# enum sg_wr_opcode (include/staghorn/io.h) of requests that write at the peer, or make it write
OPCODES = {
    0x00: "Send",
    0x01: "Send with Invalidate",
    0x02: "RDMA Write",
    0x03: "RDMA Read",
    0x04: "RDMA Read with Invalidate",
    0x08: "Immediate Data",
    0x09: "RDMA Write with Immediate Data",
    0x0A: "Fetch-and-Add",
    0x0B: "Compare-and-Swap",
    0x0C: "Flush",
    0x0E: "Atomic Write",
}


def _events(trace, kinds):
    """The events of these kinds in a trace."""
    command = [str(paths.trace_printer()), "--json", "--kinds", ",".join(kinds), str(trace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as printer:
        for line in printer.stdout:
            one = json.loads(line)
            if "number" in one:
                yield one


def _swapped(ends):
    """The addresses and ports of a connection, seen from its other end."""
    half, port = PORTS // 2, (ENDS - PORTS) // 2
    return ends[half:PORTS] + ends[:half] + ends[PORTS + port : ENDS] + ends[PORTS : PORTS + port]


class _Machine:
    """Connections and messages of a trace.  A connection is a number, in the trace's order."""

    def __init__(self, trace):
        self.name = trace.stem
        self.ends, self.begins = [], {}  # of each connection; of each queue pair: [(event, number)]
        self.works, self.answers = {}, {}  # (connection, ordinal) to an event
        for one in _events(trace, ("connected", "work", "answered")):
            if one["kind"] == "connected":
                rows = self.begins.setdefault((one["unit"], one["qpn"]), [])
                rows.append((one["number"], len(self.ends)))
                self.ends.append(one.get("data", "")[:ENDS])
                continue
            connection = self.connection(one)
            if connection is None:
                continue
            if one["kind"] == "work":
                self.works.setdefault((connection, one["ordinal"]), one)
            else:
                self.answers.setdefault((connection, one["value"]), one)

    def connection(self, event):
        """That of a queue pair when an event happened, or None."""
        rows = self.begins.get((event.get("unit"), event.get("qpn")), ())
        return next((at for number, at in reversed(rows) if number < event["number"]), None)

    def occurrence(self, connection):
        """(its ends, how many with the same ends there were before it)."""
        ends = self.ends[connection]
        return ends, self.ends[:connection].count(ends)

    def find(self, ends, before):
        """The connection with these ends that so many were before, or None."""
        found = [at for at, each in enumerate(self.ends) if each == ends]
        return found[before] if before < len(found) else None


def _request(machine, work, requester=True):
    """What is said of a work request."""
    return {
        "machine": machine.name,
        "event": work["number"],
        "wr-id": "%#x" % work["value"],
        "qpn": work["qpn"],
        "ordinal": work["ordinal"],
        "opcode": OPCODES.get(work["arg"], "opcode %d" % work["arg"]),
        "response": not requester,
    }


def _message(event, target, machines):
    """The message of an event of the target, or None if the traces do not tell."""
    connection = target.connection(event)
    if connection is None or not event.get("ordinal"):
        return None
    ends, before = target.occurrence(connection)
    for peer in machines:
        other = peer.find(_swapped(ends), before)
        if other is None or (peer is target and other == connection):
            continue
        work = peer.works.get((other, event["ordinal"]))
        if work:
            return _request(peer, work)
        answer = peer.answers.get((other, event["ordinal"]))
        asked = answer and target.works.get((connection, answer["ordinal"]))
        if asked:
            return _request(target, asked, False)
    return None


def find(traces, target, events):
    """{number: message} of those of the target's events that an adapter's messages made.

    traces: of all machines; target: that of these events, {number: event}."""
    wanted = {n: one for n, one in events.items() if one.get("kind") in KINDS}
    if not wanted or not target:
        return {}
    machines = [_Machine(trace) for trace in traces]
    mine = next(each for each in machines if each.name == target.stem)
    found = {n: _message(one, mine, machines) for n, one in wanted.items()}
    return {n: one for n, one in found.items() if one}


def text(message):
    """A message in words."""
    what = "the %s of %s, wr_id %s, QP %d, message %d" % (
        *(message["opcode"], message["machine"]),
        *(message["wr-id"], message["qpn"], message["ordinal"]),
    )
    return "the response to " + what if message["response"] else what


def name(explored, events):
    """Adds `message` to the target's lost events, and `packets` if the exploration had a capture
    that is still there; or `packets-sought`, which is false, if there are too many events."""
    trace = explored.trace()
    for number, message in find(explored.traces(), trace, events).items():
        events[number]["message"] = message
    capture = explored.capture()
    wanted = [n for n in sorted(events) if events[n].get("kind") in KINDS]
    if not capture or not wanted:
        return
    for number in wanted[PACKETS_MAX:]:
        events[number]["packets-sought"] = False
    wanted = wanted[:PACKETS_MAX]
    carriers = frames(trace, wanted)
    packets.find([{"frames": {"lost": each}} for each in carriers.values()], capture)
    for number, each in carriers.items():
        if "packet" in each:
            events[number]["packets"] = each["packet"]["numbers"]


# -- frames, for packets.py


def _end(ends, at, port):
    """An end of a connection as in result.json."""
    address = ipaddress.IPv6Address(int(ends[at : at + PORTS // 2], 16))
    return {
        "address": str(address.ipv4_mapped or address),
        "port": int(ends[port : port + 4], 16),
    }


def frames(target, numbers):
    """{number: frames} of events: what result.json has as frames of a lost store."""
    machine, last, found = _Machine(target), collections.deque(maxlen=FRAMES), {}
    left = sorted(numbers, reverse=True)
    for one in _events(target, ("frame", *KINDS)):
        if one["kind"] == "frame" and not one["arg"]:
            row = {"event": one["number"], "len": one["len"], "crc32c": "%#x" % one["value"]}
            last.append(row)
        while left and left[-1] < one["number"]:
            left.pop()
        if not left or left[-1] != one["number"]:
            continue
        connection = machine.connection(one)
        if connection is not None:
            ends = machine.ends[connection]
            found[one["number"]] = {
                "machine": machine.name,
                "own": _end(ends, 0, PORTS),
                "peer": _end(ends, PORTS // 2, PORTS + 4),
                "received": list(last),
            }
    return found
