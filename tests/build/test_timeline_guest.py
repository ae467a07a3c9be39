#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the guests' tracepoints on a time line without a VM: a guest's shell and its clock are
played by a thread."""
import json
import os
import random
import sys
import time

import cases
import timeline_rig
from timeline_rig import conversation, raises, read_page

from launcher import timeline_clock, timeline_guest, timeline_html
from launcher.errors import LabError
from launcher.timeline_clock import INF, Clock
from launcher.timeline_lines import parse

CASES = []
HEAD = """# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def traced(micros, name, text, task="kworker/0:1-events-17"):
    return "%16s  [001] d..1. %6d.%06d: %s: %s" % (
        task,
        micros // 1000000,
        micros % 1000000,
        name,
        text,
    )


class Machine:
    """A guest whose clock is `offset` microseconds behind the host's and `drift` too fast; in the
    place of agent.Session."""

    offset, drift, slow = 1.7e15, 0.0, 0.002
    lines, lost, status, mute, systems = (), 0, 0, False, " staghorn rdma_cma"

    def __init__(self, _folder, _name, _argv, stdin, on_output):
        self.stdin, self.say, self.base = stdin, on_output, time.time_ns() / 1000

    def clock(self, host):
        return (host - self.base) * (1 + self.drift) + self.base - self.offset

    def run(self):
        if self.status:
            self.say(2, b"mount: not today\n")
            return self.status
        self.say(1, b"ready" + self.systems.encode() + b"\n")
        marks = []
        with open(os.dup(self.stdin), encoding="ascii") as file:
            for word in iter(file.readline, ""):
                if word == "end\n":
                    break
                time.sleep(random.uniform(0, self.slow))
                marks.append((self.clock(time.time_ns() / 1000), word.strip()))
                time.sleep(random.uniform(0, self.slow))
                if not self.mute:
                    self.say(1, b"mark %s\n" % word.strip().encode())
        lines = [traced(int(at), "tracing_mark_write", "mark " + n) for at, n in marks]
        text = "".join("lost %d\n" % n for n in (self.lost, 0))
        lines += [each(self) if callable(each) else each for each in self.lines]
        for piece in (text, HEAD, "\n".join(lines), "\nwhole\n"):
            self.say(1, piece.encode())
        return 0


def machine(**members):
    """A kind of machine, put in the place of sessions."""
    timeline_guest.agent.Session = type("Other", (Machine,), members)


def recorded(events=(), alone=True, **members):
    """A guest that was recorded for a moment."""
    machine(**members)
    guest = timeline_guest.Guest(None, "alpha")
    guest.start()
    guest.finish()
    guest.place(list(events), alone)
    return guest


@case
def points__lines_of_ftrace(_folder):
    """names of tasks with spaces and brackets, several processors, lines that are none"""
    text = HEAD + "\n".join(
        (
            "           <...>-1     [000] ..... 3.000001: cm_send_req: cm.id=1 src=10.77.0.1:1",
            " a b-(x) [2]-4711    [012] d..1. 3.000002: sgh_doorbell: 0000:01:00.0: SQ number 0x1",
            "       rping-88      (    55) [001] ..... 3.000003: sgh_upcall: x",
            "CPU:1 [LOST 12 EVENTS]",
        )
    )
    found, damaged = timeline_guest.points(text)
    assert [point.task for point in found] == ["<...>", "a b-(x) [2]", "rping"], found
    assert [(point.pid, point.cpu) for point in found] == [(1, 0), (4711, 12), (88, 1)]
    assert [point.time for point in found] == [3000001, 3000002, 3000003] and damaged == 1


@case
def clock__bound_holds(_folder):
    """whatever offset and drift are, the error is within the bound that is stated"""
    for seed in range(200):
        chance = random.Random(seed)
        offset, drift = chance.uniform(-1e15, 1e15), chance.uniform(-5e-4, 5e-4)
        limits, span = [], chance.uniform(1e5, 1e7)

        def true(at):
            return offset + drift * at

        for _ in range(chance.randint(2, 40)):
            at = chance.uniform(0, span)
            limits.append((at, true(at) - chance.expovariate(1e-3), true(at) + 300))
        for _ in range(chance.randint(0, 40)):
            at = chance.uniform(0, span)
            lower = chance.random() < 0.5
            limits.append((at, true(at) - 20, INF) if lower else (at, -INF, true(at) + 20))
        clock = Clock(limits)
        assert not clock.torn
        for _ in range(50):
            at = chance.uniform(-1e5, span + 1e5)
            found, bound = clock.at(at)
            assert abs(found - true(at)) <= bound + 0.5, (seed, at, found - true(at), bound)


@case
def clock__nothing_known(_folder):
    """without limits there is no offset; limits that contradict each other are noticed"""
    assert Clock([]).at(5) == (0.0, INF)
    assert Clock([(1, 4, INF)]).at(5)[1] == INF
    assert Clock([(1, 10, 20), (2, 100, 110)]).torn
    assert not Clock([(1, 10, 20), (2, 19, 30)]).torn


@case
def commands__narrow_it(_folder):
    """commands that both sides saw give closer limits than the marks; one taken for another none"""
    samples = [(0, -1000, 1000), (1e6, -1000, 1000)]
    begins, ends = {5: 100, 6: 500}, {5: (300, "NOP"), 6: (700, "NOP")}
    bells, commands = {5: 110, 6: 510}, [(180, "NOP"), (620, "NOP")]
    limits = timeline_clock.of_commands(begins, ends, bells, commands)
    good = timeline_clock.agree(samples, limits)
    assert len(good) == 4 and Clock(samples + good).at(400)[1] < 60
    bells[6] = 900000  # of another time around
    limits = timeline_clock.of_commands(begins, ends, bells, commands)
    assert len(timeline_clock.agree(samples, limits)) == 3
    assert timeline_guest.once([(1, "a"), (2, "b"), (1, "c")]) == {2: "b"}


@case
def guest__recorded(_folder):
    """marks tell the offset; the error is within the bound"""
    at = []

    def event(which):
        at.append(time.time_ns() / 1000)
        return traced(int(which.clock(at[0])), "cm_add_one", "device staghorn0")

    guest = recorded(lines=(event,), lost=12)
    assert guest.systems == ("staghorn", "rdma_cma") and guest.lost == 12
    (found,) = guest.events
    assert abs(found.time - at[0]) <= guest.bound + 2 < 5000, (found.time - at[0], guest.bound)
    assert found.adapter == found.kind == "guest" and found.qp is None
    assert found.text.startswith("cm_add_one: device staghorn0 (kworker/0:1-events-17, cpu 1)")
    assert list(guest.notes()) == [
        "12 events of the guest alpha are left out: its buffer was full."
    ]
    assert guest.result()["marks"] == 2 * timeline_guest.MARKS


@case
def guest__order_of_a_command(_folder):
    """a command of the driver is around what the adapter does for it, however long marks take"""
    begun = time.time_ns() // 1000
    lines = []
    for number in range(1, 5):
        away = begun + 2000 * number

        def command(which, away=away, number=number):
            begin = "0000:01:00.0: CREATE_PD index %d" % number
            end = begin + " id 0x1 status 0, 70000 ns"
            return "\n".join(
                (
                    traced(int(which.clock(away)), "sgh_command_begin", begin),
                    traced(int(which.clock(away + 70)), "sgh_command_end", end),
                )
            )

        lines.append(command)
    events = []
    for number in range(1, 5):
        for after, form, rest in (
            (10, "staghorn_reg_write", "r0: register 0x94 becomes 0x%x, 4 octets" % number),
            (40, "staghorn_detail", "r0: admin: CREATE_PD: status 0, id 0x1"),
        ):
            micros = begun + 2000 * number + after
            text = "4711@%d.%06d:%s %s" % (micros // 1000000, micros % 1000000, form, rest)
            events.append(parse("alpha", text))
    guest = recorded(events, lines=lines, slow=0.02)
    assert guest.limits == (2 * timeline_guest.MARKS, 8), guest.limits
    assert guest.bound < 60, guest.bound
    merged = sorted(events + guest.events, key=lambda event: event.time)
    names = [event.name for event in merged]
    assert names == ["sgh_command_begin", "ADMIN_DB", "CREATE_PD", "sgh_command_end"] * 4, names
    several = recorded(events, alone=False, lines=lines)
    assert several.limits[1] == 0


@case
def guest__fails(_folder):
    """a guest without tracefs, one that does not answer, and one without our tracepoints"""
    machine(status=1)
    guest = timeline_guest.Guest(None, "alpha")
    said = raises(LabError, guest.start)
    assert "tracepoints of VM alpha cannot be recorded" in said and "not today" in said, said
    timeline_guest.ANSWER_LIMIT, kept = 0.3, timeline_guest.ANSWER_LIMIT
    mute = recorded(mute=True)
    timeline_guest.ANSWER_LIMIT = kept
    assert mute.bound is None and mute.result()["bound_us"] is None
    other = recorded(systems="")
    assert "has no tracepoints" in " ".join(other.notes())


@case
def verb__with_guest(folder):
    """the verb merges both kinds of events, within the limit, and all its outputs have them"""

    def event(which):
        return traced(int(which.clock(which.base + 1.5e6)), "cm_add_one", "device <staghorn0>")

    machine(lines=(event, event))
    page, perfetto = folder / "a.html", folder / "a.json"
    lines = conversation()
    now = int(time.time())
    for name in lines:
        lines[name] = [each.replace("1732612345", str(now)) for each in lines[name]]
    with timeline_rig.Lab(folder, lines) as lab:
        words = ["--html", str(page), "--perfetto", str(perfetto), "--json", "--for", "2"]
        status, out, err = lab.trace("alpha", "beta", "--guest", *words)
        assert status == 0, err
        found = json.loads(out)
        assert found["vms"]["alpha"]["kinds"]["guest"] == 2, found["vms"]
        assert found["clocks"]["beta"]["bound_us"] < 5000, found["clocks"]
        said = "".join(read_page(page.read_text()).said)
        assert "alpha, guest" in said and "known to within" in said
        assert "device <staghorn0>" in said
        tracks = json.loads(perfetto.read_text())["traceEvents"]
        names = {x["args"]["name"] for x in tracks if x["name"] == "thread_name"}
        assert {"guest", "adapter", "qp 1"} <= names, names
        status, out, err = lab.trace("alpha", "--guest", "--html", str(page), "--for", "2")
        assert status == 0 and "times of the guest are known to within" in out, (out, err)


@case
def page__unknown_clock(_folder):
    """a guest whose clock is not known is said to be missing"""
    clock = {"bound_us": None}
    assert "no tracepoint" in timeline_html.clock_text(clock)
    clock["bound_us"] = 12.4
    assert timeline_html.clock_text(clock).endswith("to within 12 us")


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
