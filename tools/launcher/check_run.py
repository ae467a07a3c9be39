# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of images: several VMs side by side, a journal, and a line of progress.

`Judge` is what a worker needs: start(name) returns something that checks, restart(name) makes it
anew; reads: it notes what checks read.  Here that is a VM (check_lab.py); tests have judges without
VMs.
"""
import queue
import threading
import time

from . import recoveries, verdicts
from .checker import RUN_OWN
from .compare import digest_of
from .errors import LabError
from .read_lines import Lines

FAILURES_MAX = 5  # one after the other: then the tool is what fails
PROGRESS_S = 2.0
BROKEN = (126, 127)  # a shell's status if a command cannot be executed, or is not there
REFUSED = ("another base", "other NVDIMMs")


def order(unit, promises):
    """(script, input) that a checker gets for a unit."""
    one = unit.occurrences[0]
    first, *further = recoveries.cuts(one)  # further ones: of recoveries (check_nested.py)
    lines = "export CRASH_BEHIND=%d CRASH_PLATFORM=%s CRASH_IMAGE=%s" % (
        *(first["behind"], one["platforms"][0], unit.image),
    )
    if further:
        lines += " CRASH_RECOVERY=%s" % ",".join("%d" % each["behind"] for each in further)
    if unit.promises is None:
        return "%s; %s" % (lines, RUN_OWN), b""
    text = "".join(line + "\n" for line in promises[: unit.promises]) or "\n"
    return "%s; cat > /run/crash/promises; %s" % (lines, RUN_OWN), text.encode()


def verdict_of(found):
    """(verdict, status, output) of a checker.Verdict."""
    output = found.output.decode(errors="replace")
    if found.kind != "exit":
        console = found.console.decode(errors="replace").replace("\r", "")
        return found.kind, found.status, output + ("\n" if output and console else "") + console
    if found.status in BROKEN:
        reason = "the script ended with status %d: it could not run a command\n" % found.status
        return "failed", found.status, reason + output
    return "bug" if found.status else "good", found.status, output


def request(explored, unit, promises):
    """(image, script, input) for a judge.  An exploration of two VMs has its own (pairs.py)."""
    if hasattr(explored, "request"):
        return explored.request(unit)
    path = explored.path(unit.image)
    return (path.absolute() if path else "", *order(unit, promises))


def check_unit(vm, explored, unit, promises, timeout, repeat, reads=None):
    """The members of a line of the journal about a unit.  A bad verdict is checked again.

    reads: a Lines that gets what the checks read."""
    words = request(explored, unit, promises)
    first, attempts, ms = None, 0, 0.0
    while attempts < repeat:
        found = vm.check(*words, timeout)
        if reads is not None:
            reads.add(vm.reads())
        attempts += 1
        ms += sum(found.milliseconds)
        verdict, status, output = verdict_of(found)
        one = {"verdict": verdict, "status": status, "output": output}
        # Output of a bad end may have cut lines: the verdict counts.
        one["digest"] = digest_of(found.output)
        if first and (one["verdict"], one["status"]) != (first["verdict"], first["status"]):
            text = "check %d: %s, status %s\n%s" % (attempts, verdict, status, output)
            first.update(verdict="unsteady", output=first["output"] + "\n" + text)
            break
        first = first or one
        if verdict in ("good", "failed"):
            break
    return dict(first, attempts=attempts, ms=ms)


def confirmed(one, before):
    """The second line about a good unit whose output is of no right state."""
    if one["verdict"] == "good" and one["digest"] != before["digest"]:
        text = "a second check printed something else:\n"
        return dict(one, verdict="unsteady", output=before["output"] + text + one["output"])
    return dict(one, confirmed=True)


class Progress:
    """A line now and then: how many, how many bugs, how fast."""

    def __init__(self, total, done, say):
        self.total, self.done, self.say = total, done, say
        self.begun, self.before, self.bugs = time.monotonic(), done, 0
        self.next = self.begun + PROGRESS_S

    def add(self, verdict):
        self.done += 1
        self.bugs += verdict in verdicts.BUGS
        if time.monotonic() >= self.next or self.done == self.total:
            self.next = time.monotonic() + PROGRESS_S
            self.show()

    def show(self):
        seconds = max(time.monotonic() - self.begun, 1e-3)
        self.say(
            "%d of %d images, %d bad so far, %.1f images/s"
            % (self.done, self.total, self.bugs, (self.done - self.before) / seconds)
        )


class Run:
    """Checks units in the VMs of a judge, and writes each verdict to a journal.

    lines: the Lines that earlier checks read; a line of the journal has what is new in it; more:
    members of each line."""

    def __init__(self, judge, explored, promises, timeout, repeat, identity, lines=None, more=None):
        self.judge, self.explored, self.promises = judge, explored, promises
        self.lines, self.more = lines, more or {}
        self.timeout, self.repeat, self.identity = timeout, repeat, identity
        self.todo, self.found = queue.SimpleQueue(), queue.SimpleQueue()
        self.stop = threading.Event()

    def _one(self, name, vm, unit):
        """(VM, members of the line): a VM that broke is made anew, and the unit checked again."""
        reads = Lines() if self.lines is not None else None
        for last in (False, True):
            try:
                one = check_unit(
                    vm, self.explored, unit, self.promises, self.timeout, self.repeat, reads
                )
                return vm, one if reads is None else dict(one, reads=reads.ranges())
            except (LabError, OSError) as error:
                if any(words in str(error) for words in REFUSED):
                    raise LabError(
                        "image %s: %s" % (unit.image, error),
                        "What the VM's boot or the setup wrote to persistent memory is not in the "
                        "content at the start; a setup must not write there",
                    )
                if last or self.stop.is_set():
                    return vm, {"verdict": "failed", "output": str(error)}
                self.judge.restart(name)
                vm = self.judge.start(name)
        raise AssertionError

    def _work(self, name):
        try:
            vm = self.judge.start(name)
            while not self.stop.is_set():
                try:
                    unit = self.todo.get_nowait()
                except queue.Empty:
                    break
                vm, one = self._one(name, vm, unit)
                self.found.put((unit, one))
        except BaseException as error:  # pylint: disable=broad-except
            self.found.put((None, error))
        else:
            self.found.put((None, None))

    def run(self, units, journal, say, total=None, before=None):
        """Checks units; returns how many that were.

        total: of which they are the rest; before: lines of the journal that are to be confirmed."""
        self.stop.clear()
        for unit in units:
            self.todo.put(unit)
        progress = Progress(total or len(units), (total or len(units)) - len(units), say)
        names = self.judge.vms[: max(1, len(units))]
        for name in names:
            threading.Thread(target=self._work, args=(name,), name=name, daemon=True).start()
        left, failures = len(names), 0
        try:
            while left:
                unit, one = self.found.get()
                if unit is None:
                    left -= 1
                    if one:
                        raise one
                    continue
                more = {} if unit.promises is None else {"promises": unit.promises}
                if self.lines is not None:
                    one = dict(one, reads=self.lines.add(one.get("reads", ())))
                if before is not None:
                    one = confirmed(one, before[verdicts.key_of({"image": unit.image, **more})])
                journal.add(unit.image, check=self.identity, **one, **more, **self.more)
                progress.add(one["verdict"])
                failures = failures + 1 if one["verdict"] == "failed" else 0
                if failures >= FAILURES_MAX:
                    raise LabError(
                        "%d checks in a row failed: %s" % (failures, one["output"].strip())
                    )
        finally:
            self.stop.set()
        return len(units)
