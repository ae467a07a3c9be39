# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb trace: what the adapters of several VMs do, on one time line (docs/debugging.md)."""
import argparse
import collections
import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

from . import agent, options, timeline_ctf, timeline_guest, timeline_html, timeline_perfetto
from .errors import EXEC_FAILED, LabError, UsageError
from .state import LabFolder
from .timeline_lines import KINDS
from .timeline_tap import Taps

EVENTS_DEFAULT, EVENTS_MAX = 20000, 1000000
LOOK_EVERY = 0.2  # seconds between two looks whether the trace is to end


def _number(word):
    """How many events are kept; for argparse."""
    if not word.isdecimal() or not 1 <= int(word) <= EVENTS_MAX:
        raise argparse.ArgumentTypeError(
            "%s is not a number of events, 1 to %d" % (word, EVENTS_MAX)
        )
    return int(word)


def add(parser):
    """The options of the verb.  What follows -- is the guest's, whatever it looks like."""
    parser.description += "; the status is COMMAND's, as with exec"
    parser.usage = "staghorn [--lab NAME] trace VM... [options] [-- COMMAND...]"
    parser.add_argument("vms", nargs="+", metavar="VM", help="COMMAND runs in the first one")
    parser.add_argument(
        "--for",
        dest="seconds",
        type=options.seconds,
        metavar="SECONDS",
        help="end after this time [when COMMAND ends; without one, at Ctrl-C]",
    )
    parser.add_argument("--html", metavar="FILE", help="write one HTML file, with a picture")
    parser.add_argument(
        "--perfetto", metavar="FILE", help="write JSON that Perfetto and chrome://tracing open"
    )
    parser.add_argument(
        "--ctf",
        metavar="FOLDER",
        help="write a new folder in the Common Trace Format, for babeltrace2 and Trace Compass",
    )
    parser.add_argument(
        "--limit",
        type=_number,
        default=EVENTS_DEFAULT,
        metavar="N",
        help="keep so many events of all VMs, the first ones [%(default)s]",
    )
    parser.add_argument(
        "--guest",
        action="store_true",
        help="also the tracepoints of the VMs' kernels: the driver's, rdma_cma's, the RDMA core's",
    )
    parser.set_defaults(command=[])
    whole = parser.parse_known_args

    def parse(words=None, namespace=None):
        words = list(words)
        at = words.index("--") if "--" in words else len(words)
        found, extra = whole(words[:at], namespace)
        found.command = words[at + 1 :]
        if at < len(words) and not found.command:
            parser.error("there is no COMMAND behind --")
        return found, extra

    parser.parse_known_args = parse


def _check(folder, args):
    """Finds mistakes before anything is recorded."""
    if not (args.html or args.perfetto or args.ctf or args.json):
        raise UsageError(
            "trace: no result is asked for: --html FILE, --perfetto FILE, --ctf FOLDER or --json"
        )
    if args.command and args.seconds:
        raise UsageError("trace: --for and a COMMAND exclude each other")
    for name in args.vms:
        folder.running(name)
        if args.vms.count(name) > 1:
            raise UsageError("trace names %s twice" % name)
    for option in ("html", "perfetto"):
        path = getattr(args, option)
        setattr(args, option, options.writable("--" + option, path) if path else None)
    if args.html and args.html == args.perfetto:
        raise UsageError("--html and --perfetto name the same file")
    if args.ctf:
        args.ctf = timeline_ctf.place(args.ctf)
        for path in filter(None, (args.html, args.perfetto)):
            if Path(args.ctf) in (Path(path), Path(path).parent):
                raise UsageError("--ctf names the folder of another result, or its file")


class End:
    """Ctrl-C ends the trace and is passed to the command; a second one is not caught."""

    def __init__(self):
        self.asked = threading.Event()
        self.session = None

    def __enter__(self):
        self.before = {
            each: signal.signal(each, self._take) for each in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _take(self, number, _frame):
        signal.signal(number, self.before[number])
        self.asked.set()
        if self.session:
            self.session.signals.append(int(number))


def _command(folder, args, end, shown):
    """Runs the guest's command; its status."""

    def show(stream, data):
        file = shown if stream == 1 else sys.stderr
        file.buffer.write(data)
        file.flush()

    end.session = agent.Session(folder, args.vms[0], args.command, None, show)
    try:
        return end.session.run()
    except LabError as error:
        error.status = EXEC_FAILED
        raise


def _wait(taps, seconds, end):
    """Waits until the time is over, the limit is reached, or somebody asks for the end."""
    until = time.monotonic() + seconds if seconds else None
    while not end.asked.is_set() and not taps.full.is_set():
        left = until - time.monotonic() if until else LOOK_EVERY
        if left <= 0:
            break
        end.asked.wait(min(left, LOOK_EVERY))


def _notes(taps, guests):
    """What the reader has to know, as sentences: first of all what is missing."""
    capture = taps.capture
    if taps.full.is_set():
        after = capture.sorted()[-1].time / 1e6 - taps.began
        yield (
            "The limit of %d events was reached after %.3f s; later ones are left out (--limit)."
            % (capture.limit, after)
        )
    for name in taps.names:
        if capture.lost[name]:
            yield "%d lines of %s are left out: they came too fast." % (capture.lost[name], name)
        if capture.damaged[name]:
            yield "%d lines of %s could not be read." % (capture.damaged[name], name)
        for event, count in sorted(capture.unknown[name].items()):
            yield "%d events %s of %s are unknown to this launcher." % (count, event, name)
    for problem in taps.problems:
        yield problem[:1].upper() + problem[1:] + "."
    for guest in guests:
        yield from guest.notes()


def result_of(taps, args, status, guests=()):
    """All that was found; the events are still objects."""
    events = taps.capture.sorted()
    began = min([int(taps.began * 1e6), *(event.time for event in events[:1])])
    kinds = {name: collections.Counter() for name in taps.names}
    for event in events:
        kinds[event.vm][event.kind] += 1
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(began / 1e6))
    return {
        "lab": args.lab,
        "began": "%s.%06d UTC" % (stamp, began % 1000000),
        "began_us": began,
        "seconds": round(taps.ended - began / 1e6, 6),
        "command": " ".join(args.command),
        "command_vm": args.vms[0] if args.command else None,
        "status": status,
        "notes": list(_notes(taps, guests)),
        "vms": {
            name: {
                "events": sum(kinds[name].values()),
                "kinds": {kind: kinds[name][kind] for kind in KINDS if kinds[name][kind]},
                "lost": taps.capture.lost[name],
                "damaged": taps.capture.damaged[name],
            }
            for name in taps.names
        },
        "clocks": {guest.name: guest.result() for guest in guests},
        "events": events,
    }


def as_json(result):
    """The result with its events as plain data."""
    names = ("vm", "adapter", "qp", "kind", "name", "text")
    events = [
        {"us": event.time - result["began_us"], **{name: getattr(event, name) for name in names}}
        for event in result["events"]
    ]
    return {**result, "events": events}


def write(path, content):
    """Writes a file, all of it or nothing."""
    try:
        with open(path + ".new", "w", encoding="utf-8", errors="replace") as file:
            file.write(content)
        os.replace(path + ".new", path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(path + ".new")
        raise LabError("%s cannot be written: %s" % (path, error.strerror))


def summary(result, files):
    """The result as text for the terminal."""
    lines = []
    for name, vm in result["vms"].items():
        kinds = ", ".join("%d %s" % (count, kind) for kind, count in vm["kinds"].items())
        lines.append("%s: %d events%s" % (name, vm["events"], ": " + kinds if kinds else ""))
    for name, clock in result["clocks"].items():
        lines.append("%s: %s" % (name, timeline_html.clock_text(clock)))
    lines += result["notes"]
    lines += ["written: %s" % file for file in files]
    return "\n".join(lines)


def record(folder, args):
    """Records; (Taps, status of the command or None, the guests)."""
    status = None
    shown = sys.stderr if args.json else sys.stdout
    guests = timeline_guest.Guests(folder, args.vms if args.guest else ())
    with End() as end, guests, Taps(folder, args.vms, args.limit) as taps:
        if args.command:
            status = _command(folder, args, end, shown)
        else:
            _wait(taps, args.seconds, end)
    guests.merge(taps)
    return taps, status, guests.guests


def run(args, emit):
    folder = LabFolder(args.lab)
    folder.require()
    _check(folder, args)
    taps, status, guests = record(folder, args)
    result = result_of(taps, args, status, guests)
    files = []
    for path, content in (
        (args.html, timeline_html.page),
        (args.perfetto, timeline_perfetto.text),
    ):
        if path:
            write(path, content(result))
            files.append(path)
    if args.ctf:
        timeline_ctf.write(args.ctf, result)
        files.append(args.ctf)
    emit(args, as_json(result) if args.json else None, summary(result, files))
    return status or 0
