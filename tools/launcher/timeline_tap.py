# SPDX-License-Identifier: GPL-2.0-or-later
"""Where `trace` gets its events: the taps of the VMs' keepers (keeper.py), and QEMU's switches.

Events that are off in a VM are switched on in its QEMU for as long as the trace runs.  Their lines
are read, parsed and counted as they come; only so many events are kept.
"""
import collections
import contextlib
import fnmatch
import selectors
import socket
import threading
import time

from . import debugging, keeper, proc
from .errors import ABSENT, LabError, UsageError
from .qmp import Monitor
from .state import connect
from .timeline_lines import EVENTS, Damaged, Unknown, parse

PIECE = 1 << 16
LINE_MAX = 1 << 13  # a longer one is damaged
ANSWER_LIMIT = 10.0  # seconds for the keeper's answer
END_LIMIT = 20.0  # and for the rest of the lines


def own_events(vm):
    """Events that are on for the trace alone: neither the launcher nor `up --trace` wants them."""
    wanted = [*debugging.ALWAYS, *vm["trace"]]
    return [
        name
        for name in EVENTS
        if name == debugging.TWICE or not any(fnmatch.fnmatch(name, each) for each in wanted)
    ]


def switch(folder, name, events, on):
    """Switches the events of a VM's QEMU on or off."""
    with Monitor(folder, name) as monitor:
        for event in events:
            try:
                monitor.run("trace-event-set-state", name=event, enable=on)
            except LabError as error:
                if "event" not in str(error):
                    raise
                raise LabError(
                    "the QEMU of VM %s has no trace event %s" % (name, event),
                    "It is older than this launcher: build it, and switch the VM off and on",
                )


class Capture:
    """The events so far, at most `limit` of all VMs together, and what was left out."""

    def __init__(self, names, limit):
        self.limit, self.events = limit, []
        self.left_out = 0  # events behind the limit
        self.lost = dict.fromkeys(names, 0)  # lines that came faster than they were read
        self.damaged = dict.fromkeys(names, 0)
        self.unknown = {name: collections.Counter() for name in names}

    def is_full(self):
        return len(self.events) >= self.limit

    def take(self, vm, line):
        """One line of a VM, without its end."""
        if line.startswith("lost "):
            self.lost[vm] += int(line[5:])
            return
        try:
            event = parse(vm, line)
        except Damaged:
            self.damaged[vm] += 1
            return
        except Unknown as name:
            self.unknown[vm][str(name)] += 1
            return
        if event and self.is_full():
            self.left_out += 1
        elif event:
            self.events.append(event)

    def sorted(self):
        """The events by time; those of a VM with the same time in QEMU's order."""
        return sorted(self.events, key=lambda event: event.time)


class Tap:
    """A connection to the keeper of one VM."""

    def __init__(self, folder, name, events):
        self.name, self.rest, self.skips = name, b"", False
        try:
            self.sock = connect(folder.path / name / keeper.TAP, ANSWER_LIMIT)
        except OSError as error:
            raise LabError(
                "the device log of VM %s cannot be followed (%s)" % (name, error.strerror or error),
                "An older launcher has started the VM: switch it off and on",
                ABSENT,
            )
        try:
            self._ask(events)
        except BaseException:
            self.sock.close()
            raise

    def _ask(self, events):
        answer = b""
        with contextlib.suppress(OSError):  # refused already: the answer says why
            self.sock.sendall(" ".join(events).encode() + b"\n")
        try:
            while not answer.endswith(b"\n") and len(answer) < len(keeper.READY):
                data = self.sock.recv(1)
                if not data:
                    break
                answer += data
        except OSError as error:
            answer = answer or str(error.strerror or error).encode()
        if answer == keeper.BUSY:
            raise LabError(
                "another trace of VM %s runs" % self.name, "Wait for its end, or end it with Ctrl-C"
            )
        if answer != keeper.READY:
            raise LabError(
                "the keeper of VM %s does not answer: %s"
                % (self.name, answer.decode(errors="replace").strip() or "it has ended")
            )
        self.sock.setblocking(False)

    def lines(self):
        """Whole lines that have come; None: there will be no more."""
        try:
            data = self.sock.recv(PIECE)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            return None
        *lines, self.rest = (self.rest + data).split(b"\n")
        if self.skips and lines:  # the end of one that was too long
            lines[0], self.skips = b"", False
        if len(self.rest) > LINE_MAX:
            lines.append(self.rest if not self.skips else b"")
            self.rest, self.skips = b"", True
        return [line.decode(errors="replace") for line in lines if line]

    def finish(self):
        """Asks for the rest; the keeper closes the connection behind it."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)


class Taps:
    """The taps of several VMs.  A thread reads them while something else runs."""

    def __init__(self, folder, names, limit):
        self.folder, self.names = folder, names
        self.capture = Capture(names, limit)
        self.taps, self.on, self.problems = [], {}, []
        self.full = threading.Event()
        self.began = self.ended = None  # seconds since 1970
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._switching = threading.Lock()

    def __enter__(self):
        try:
            vms = {name: self.folder.running(name) for name in self.names}
            for name, vm in vms.items():
                if vm["driver"] != "staghorn":
                    raise UsageError("%s has no Staghorn adapter" % name)
                self.taps.append(Tap(self.folder, name, own_events(vm)))
            self.began = time.time()
            self._thread.start()
            for name, vm in vms.items():
                self.on[name] = own_events(vm)
                switch(self.folder, name, self.on[name], True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.off()
        for tap in self.taps:
            tap.finish()
        if self._thread.is_alive():
            self._thread.join(END_LIMIT)
            if self._thread.is_alive():
                self.problems.append("the last events did not come within %d s" % END_LIMIT)
        for tap in self.taps:
            tap.sock.close()

    def off(self):
        """Switches off what was switched on.  A VM that has gone off needs it no more."""
        with self._switching:
            self.ended = self.ended or time.time()
            for name, events in list(self.on.items()):
                del self.on[name]
                try:
                    switch(self.folder, name, events, False)
                except LabError as error:
                    if proc.alive(self.folder.data["vms"][name]["process"]):
                        self.problems.append("events of VM %s stay on: %s" % (name, error))
                    else:
                        self.problems.append("VM %s went off" % name)

    def _read(self):
        with selectors.DefaultSelector() as selector:
            for tap in self.taps:
                selector.register(tap.sock, selectors.EVENT_READ, tap)
            while selector.get_map():
                for key, _ in selector.select():
                    lines = key.data.lines()
                    if lines is None:
                        selector.unregister(key.fileobj)
                    for line in lines or ():
                        self.capture.take(key.data.name, line)
                if self.capture.is_full() and not self.full.is_set():
                    self.full.set()
                    threading.Thread(target=self.off, daemon=True).start()
