# SPDX-License-Identifier: GPL-2.0-or-later
"""Tracepoints of the guests for `trace --guest`: an ftrace instance in each VM, read at the end.

A shell in the guest makes the instance, with the clock mono_raw, and writes a mark whenever it is
asked to.  The host notes when it asked and when it got the answer: between the two the guest wrote
the mark, whose time is in the instance's buffer.  timeline_clock.py makes the host's time of these.
"""
import collections
import os
import re
import threading
import time

from . import agent, timeline_clock
from .errors import LabError
from .timeline_lines import GUEST, Event

SYSTEMS = ("staghorn", "rdma_cma", "rdma_core")
START_LIMIT, ANSWER_LIMIT, READ_LIMIT = 30.0, 10.0, 60.0
SIZE_MAX = 64 << 20  # octets of text that are taken from a guest
BUFFER_KB = 4096  # of each processor
MARKS, EVERY = 8, 0.5  # marks at both ends; seconds between those in the middle
SCRIPT = r"""
t=/sys/kernel/tracing
[ -d $t/instances ] || mount -t tracefs tracefs $t || exit 1
i=$t/instances/staghorn-trace
[ ! -d $i ] || rmdir $i || exit 1
mkdir $i && cd $i || exit 1
trap 'cd / && rmdir $i' EXIT
trap 'exit 1' HUP INT TERM
echo mono_raw > trace_clock && echo %d > buffer_size_kb || exit 1
echo 0 > options/overwrite
on=
for s in %s; do
    [ ! -e events/$s/enable ] || { echo 1 > events/$s/enable && on="$on $s"; }
done
echo "ready$on"
while read -r n && [ "$n" != end ]; do
    echo "mark $n" > trace_marker
    echo "mark $n"
done
echo 0 > tracing_on
cat per_cpu/cpu*/stats | sed -n 's/^\(overrun\|dropped events\): /lost /p'
cat trace
echo whole
"""
LINE = re.compile(
    r" *(?P<task>.*)-(?P<pid>\d+) +(?:\(.*?\) +)?\[(?P<cpu>\d+)\] +\S+ +"
    r"(?P<seconds>\d+)\.(?P<micros>\d{6}): (?P<name>\w+): (?P<text>.*)\Z"
)
MARK = re.compile(r"mark (\d+)\Z")
BEGIN = re.compile(r"\S+: (\w+) index (\d+)\Z")
END = re.compile(r"\S+: (\w+) index (\d+) id 0x[0-9a-f]+ status (-?\d+), \d+ ns\Z")
BELL = re.compile(r"ADMIN_DB becomes 0x([0-9a-f]+)")
ADMIN = re.compile(r"admin: (\w+): status ")

# A line of the guest's buffer; time: microseconds of the guest's clock.
Point = collections.namedtuple("Point", "time task pid cpu name text")


def points(text):
    """([Point], number of lines that are none) of the file `trace`."""
    found, damaged = [], 0
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            damaged += 1
            continue
        when = int(match["seconds"]) * 1000000 + int(match["micros"])
        task = (match["task"].strip(), int(match["pid"]), int(match["cpu"]))
        found.append(Point(when, *task, match["name"], match["text"]))
    return found, damaged


def once(pairs):
    """A dictionary of the pairs whose key is there once."""
    counts = collections.Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}


class Guest:
    """The tracepoints of one VM, from start() to finish()."""

    def __init__(self, folder, name):
        self.name, self.asked = name, {}  # asked: {number of a mark: (before, after)}
        self.text, self.failure, self.systems = b"", None, ()
        self.events, self.clock, self.bound, self.limits = [], None, None, (0, 0)
        self.lost = self.damaged = 0
        self._said = threading.Condition()
        self._answers, self._over, self._errors = b"", False, b""
        self._asking = threading.Lock()
        input_end, self._input = os.pipe()
        script = SCRIPT % (BUFFER_KB, " ".join(SYSTEMS))
        self._session = agent.Session(folder, name, ["sh", "-c", script], input_end, self._take)
        self._thread = threading.Thread(target=self._run, args=(input_end,), daemon=True)

    def _run(self, input_end):
        try:
            status = self._session.run()
            if status:
                said = self._errors.decode(errors="replace").strip()
                self.failure = self.failure or "VM %s: %s" % (
                    self.name,
                    said or "status %d" % status,
                )
        except (LabError, OSError) as error:
            self.failure = self.failure or str(error)
        finally:
            os.close(input_end)
            with self._said:
                self._over = True
                self._said.notify_all()

    def _take(self, stream, data):
        with self._said:
            if stream == 2:
                self._errors = (self._errors + data)[-1000:]
            elif len(self._answers) < SIZE_MAX:
                self._answers += data
            self._said.notify_all()

    def _wait(self, ends, limit):
        """What the guest says until `ends`, which is left out; None: it does not come."""
        until = time.monotonic() + limit
        with self._said:
            while ends not in self._answers:
                left = until - time.monotonic()
                if self._over or left <= 0:
                    return None
                self._said.wait(left)
            said, _, self._answers = self._answers.partition(ends)
        return said

    def _say(self, word):
        try:
            os.write(self._input, b"%s\n" % word.encode())
        except OSError:
            pass  # it is over; the next wait says so

    def start(self):
        self._thread.start()
        begun = self._wait(b"ready", START_LIMIT)
        systems = self._wait(b"\n", ANSWER_LIMIT) if begun is not None else None
        if systems is None:
            self.close()
            raise LabError(
                "the tracepoints of VM %s cannot be recorded: %s"
                % (self.name, self.failure or "it does not answer")
            )
        self.systems = tuple(systems.decode(errors="replace").split())
        self.mark(MARKS)

    def mark(self, count=1):
        """Has the guest write marks."""
        with self._asking:
            for _ in range(count):
                number = len(self.asked)
                before = time.time_ns()
                self._say(str(number))
                if self._wait(b"mark %d\n" % number, ANSWER_LIMIT) is None:
                    return
                self.asked[number] = before / 1000, time.time_ns() / 1000

    def finish(self):
        """Ends the recording and takes what was recorded."""
        self.mark(MARKS)
        self._say("end")
        text = self._wait(b"\nwhole\n", READ_LIMIT)
        if text is None:
            self.failure = self.failure or "the events of VM %s did not come whole" % self.name
        self.text = text or b""
        self.close()

    def close(self):
        """Also ends a guest that does not answer: its shell sees the end of its input."""
        if self._input is not None:
            os.close(self._input)
            self._input = None
        self._thread.join(ANSWER_LIMIT)

    def place(self, adapter_events, alone, begin=0, end=timeline_clock.INF):
        """Makes events of what was recorded from begin to end, microseconds since 1970.
        adapter_events: those of this VM; alone: it has one adapter, so that all commands are its.
        """
        text = self.text.decode(errors="replace")
        counts, newline, rest = text.partition("#")
        self.lost = sum(map(int, re.findall(r"(?m)^lost (\d+)$", counts)))
        found, self.damaged = points(newline + rest)
        marks = {}
        for point in found:
            mark = MARK.match(point.text)
            if mark and point.name == "tracing_mark_write":
                marks[int(mark[1])] = point.time
        samples = [
            (marks[number], before - marks[number] - 1, after - marks[number])
            for number, (before, after) in self.asked.items()
            if number in marks
        ]
        commands = _commands(found, adapter_events) if alone else []
        limits = timeline_clock.agree(samples, commands)
        self.limits = len(samples), len(limits)
        self.clock = timeline_clock.Clock(samples + limits)
        for point in found:
            offset, bound = self.clock.at(point.time)
            if not _is_mark(point) and begin <= point.time + offset <= end:
                self.bound = max(self.bound or 0.0, bound)
                self.events.append(self._event(point, offset))

    def _event(self, point, offset):
        said = "%s: %s (%s-%d, cpu %d)" % (
            point.name,
            point.text,
            point.task,
            point.pid,
            point.cpu,
        )
        return Event(round(point.time + offset), self.name, GUEST, GUEST, point.name, said)

    def result(self):
        """What a reader has to know about the clock."""
        known = self.bound is not None and self.bound < timeline_clock.INF
        return {
            "systems": list(self.systems),
            "bound_us": round(self.bound, 1) if known else None,
            "marks": self.limits[0],
            "limits": self.limits[1],
            "lost": self.lost,
            "damaged": self.damaged,
        }

    def notes(self):
        """What is missing or wrong, as sentences."""
        if self.failure:
            yield self.failure[:1].upper() + self.failure[1:] + "."
        if "staghorn" not in self.systems:
            yield "The driver of %s has no tracepoints: it is an older one, or not loaded." % (
                self.name
            )
        if self.lost:
            yield "%d events of the guest %s are left out: its buffer was full." % (
                self.lost,
                self.name,
            )
        if self.damaged:
            yield "%d lines of the guest %s could not be read." % (self.damaged, self.name)
        if self.clock and self.clock.torn:
            yield "The clocks of %s and the host were not steady: its guest's times are wrong." % (
                self.name
            )


def _is_mark(point):
    return point.name == "tracing_mark_write"


def _commands(found, events):
    """Limits from the driver's commands, which both sides have seen."""
    begins, ends = [], []
    for point in found:
        begin = point.name == "sgh_command_begin" and BEGIN.match(point.text)
        if begin:
            begins.append((int(begin[2]), point.time))
        end = point.name == "sgh_command_end" and END.match(point.text)
        if end and end[3] == "0":
            ends.append((int(end[2]), (point.time, end[1])))
    bells, commands = [], []
    for event in events:
        bell = event.kind == "register" and BELL.match(event.text)
        if bell:
            bells.append((int(bell[1], 16), event.time))
        admin = event.kind == "command" and ADMIN.match(event.text)
        if admin:
            commands.append((event.time, admin[1]))
    return timeline_clock.of_commands(once(begins), once(ends), once(bells), commands)


class Guests:
    """The tracepoints of several VMs; with `with`."""

    def __init__(self, folder, names):
        self.guests = [Guest(folder, name) for name in names]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._mark, daemon=True)

    def __enter__(self):
        try:
            for guest in self.guests:
                guest.start()
        except BaseException:
            for guest in self.guests:
                guest.close()
            raise
        self._thread.start()
        return self

    def _mark(self):
        while not self._stop.wait(EVERY):
            for guest in self.guests:
                guest.mark()

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        for guest in self.guests:
            guest.finish()

    def merge(self, taps):
        """Puts the guests' events between those of the adapters, within the time of the trace and
        its limit."""
        capture = taps.capture
        events = capture.sorted()
        last = events[-1].time if capture.is_full() and events else taps.ended * 1e6
        for guest in self.guests:
            vm = taps.folder.data["vms"][guest.name]
            own = [event for event in events if event.vm == guest.name]
            guest.place(own, not vm["adapters"], taps.began * 1e6, last)
        merged = [event for guest in self.guests for event in guest.events] + events
        merged.sort(key=lambda event: event.time)
        capture.left_out += max(0, len(merged) - capture.limit)
        if len(merged) > capture.limit:
            taps.full.set()
        capture.events = merged[: capture.limit]
