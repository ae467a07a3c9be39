# SPDX-License-Identifier: GPL-2.0-or-later
"""The time line of a trace in the JSON trace event format of Perfetto and chrome://tracing.

A VM is a process, its adapter and each queue pair a thread.  Events are instants on these threads.
A segment that one VM has sent and another one received is a flow, an arrow from one event to the
other; viewers draw arrows between spans only, so these two events take a microsecond.
A work request is a span beside them, from the fetch of its entry to its completion: spans of one
queue pair overlap, so they are asynchronous ones, with an id of their own.
"""
import json

from .timeline_html import lane_of, lanes
from .timeline_lines import GUEST
from .timeline_links import links

HALF = 1 << 31  # indices run freely, modulo 2^32


class Spans:
    """Work requests that are open, by queue pair and direction, in the order of their fetches."""

    def __init__(self):
        self.open, self.number = {}, 0

    def fetched(self, event):
        """The id of a new span; None: the entry is fetched again, because it had to wait."""
        side, index = event.entry
        there = self.open.setdefault((lane_of(event), side), {})
        if index in there:
            return None
        self.number += 1
        there[index] = (self.number, event.name)
        return self.number

    def completed(self, event):
        """[(id, name, whether it has a completion of its own)] of what a completion ends: a send
        also ends the unsignaled ones before it, a receive whatever its queue pair had taken."""
        side, index = event.entry
        there = self.open.get((lane_of(event), side), {})
        ended = []
        for at in list(there):
            if side == "receive" or (index - at) % (1 << 32) < HALF:
                ended.append((*there.pop(at), side == "receive" or at == index))
        return ended

    def rest(self):
        """[(lane, id, name)] of what is still open."""
        for (lane, _), there in self.open.items():
            for number, name in there.values():
                yield lane, number, name


def _metadata(names, vms):
    """Names and order of the tracks; {lane: its process and thread}."""
    places, records = {}, []
    for pid, vm in enumerate(vms, 1):
        records.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": vm}})
        order = {"sort_index": pid}
        records.append({"ph": "M", "pid": pid, "name": "process_sort_index", "args": order})
        mine = [lane for lane in names if lane[0] == vm]
        for tid, lane in enumerate(mine, 1):
            places[lane] = {"pid": pid, "tid": tid}
            title = names[lane].partition(", ")[2]
            if lane[1] not in ("r0", GUEST):
                title = "%s %s" % (lane[1], title)
            for key, value in (("thread_name", {"name": title}), ("thread_sort_index", {})):
                value = value or {"sort_index": tid}
                records.append({"ph": "M", **places[lane], "name": key, "args": value})
    return places, records


def _span(phase, place, time, number, name, **details):
    return {
        "ph": phase,
        **place,
        "ts": time,
        "cat": "work request",
        "id": number,
        "name": name,
        "args": details,
    }


def _instant(event, place, time):
    title = "%s %s" % (event.kind, event.name)
    found = {"ph": "i", "s": "t", **place, "ts": time, "cat": event.kind, "name": title}
    return {**found, "args": {"text": event.text}}


class Flows:
    """Segments with both ends in the trace, as flows."""

    def __init__(self, events):
        self.numbers, self.begun, self.ends = {}, set(), {}
        for number, pair in enumerate(links(events), 1):
            self.numbers.update(dict.fromkeys(pair, number))

    def records(self, index, event, place, time):
        """The event as a span, and the ends of flows behind it.  Of two events of one microsecond
        the one that receives may be the first, but no flow ends before it has begun."""
        number = self.numbers[index]
        span = {**_instant(event, place, time), "ph": "X", "dur": 1}
        del span["s"]
        flow = {**place, "ts": time, "cat": "segment", "id": number, "name": "segment"}
        if event.kind == "sent":
            self.begun.add(number)
            return [span, {"ph": "s", **flow}, *self.ends.pop(number, ())]
        end = {"ph": "f", "bp": "e", **flow}
        if number in self.begun:
            return [span, end]
        self.ends[number] = [end]
        return [span]


def records(result):
    """All records: those about tracks, then events in the order of their times."""
    events = result["events"]
    flows = Flows(events)
    names = lanes(events)
    places, found = _metadata(names, result["vms"])
    spans, begin = Spans(), result["began_us"]
    last = 0
    for index, event in enumerate(events):
        place, last = places[lane_of(event)], event.time - begin
        if event.kind == "fetch":
            number = spans.fetched(event)
            if number:
                entry = "%s entry %d" % event.entry
                found.append(_span("b", place, last, number, event.name, entry=entry))
        if index in flows.numbers:
            found += flows.records(index, event, place, last)
        else:
            found.append(_instant(event, place, last))
        if event.kind == "completion":
            for number, name, own in spans.completed(event):
                status = event.name if own else "unsignaled"
                found.append(_span("e", place, last, number, name, status=status))
    for lane, number, name in spans.rest():
        found.append(_span("e", places[lane], last, number, name, status="open at the end"))
    return found


def text(result):
    """The file's content."""
    about = {
        "lab": result["lab"],
        "began": result["began"],
        "clock": "CLOCK_REALTIME of the host, microseconds since began",
        "guest clocks": result["clocks"],
        "notes": result["notes"],
    }
    whole = {"traceEvents": records(result), "displayTimeUnit": "ns", "otherData": about}
    return json.dumps(whole, indent=None, separators=(",", ":")) + "\n"
