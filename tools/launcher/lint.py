# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of the driver checker (docs/manual/checker.md): the verb lint."""
import json
import time

from . import guest_reads, proc
from .call_chain import Window, callers
from .errors import LabError, UsageError
from .guest_orc import GuestOrc, limits
from .processes import Processes
from .qmp import Monitor
from .symbols import KERNEL, Kernel, Symbols

PROPERTY = "check-reports"
PAUSE = 1.0  # seconds between two looks with --follow
SYMBOLS_MAX = 32 << 20  # octets of /proc/kallsyms that are read
HOW = "docs/manual/checker.md; switch it on with: ./staghorn up --device-prop check=warn"


def adapters(folder, name):
    """Numbers of the VM's adapters; the VM runs and has our adapter."""
    vm = folder.running(name)
    if vm["driver"] != "staghorn":
        raise UsageError("%s has no Staghorn adapter" % name, "./staghorn status shows the VMs")
    return range(1 + len(vm["adapters"]))


def reports(folder, name):
    """The reports that the VM's adapters keep, each with the member "adapter"."""
    found = []
    numbers = adapters(folder, name)
    with Monitor(folder, name) as monitor:
        for number in numbers:
            path = "r%d" % number
            if monitor.run("qom-get", path=path, property="check") in (None, "", "off"):
                continue
            text = monitor.run("qom-get", path=path, property=PROPERTY)
            found += [dict(one, adapter=path) for one in json.loads(text)]
    return found


def is_on(folder, name):
    """Does any adapter of the VM have a checker?"""
    with Monitor(folder, name) as monitor:
        return any(
            monitor.run("qom-get", path="r%d" % number, property="check") not in (None, "", "off")
            for number in adapters(folder, name)
        )


def kallsyms(folder, name):
    """The guest's /proc/kallsyms; "" if it does not answer in time, or sends too much."""
    octets = guest_reads.ask(folder, name, ["cat", "/proc/kallsyms"], SYMBOLS_MAX)
    return octets.decode("ascii", errors="replace")


class Names:
    """Names for program counters: of the guest's kernel and processes as they are now."""

    def __init__(self, folder, vm, programs):
        self.folder, self.vm = folder, vm
        self.symbols = Symbols(programs)
        self.processes = Processes(folder, vm)
        self.known = {}  # by program counter
        self.kallsyms = ""
        self.orc = GuestOrc(folder, vm)

    def give(self, found):
        """Adds the member "symbol" to the reports whose program counter has a name."""
        counters = {int(report["pc"], 16) for report in found if "pc" in report}
        new = counters - self.known.keys()
        if any(pc >= KERNEL for pc in new):  # modules may have been loaded since
            self.kallsyms = kallsyms(self.folder, self.vm)
            self.symbols.kernel = Kernel(self.kallsyms)
        self.known.update(self.symbols.resolve(new))
        rest = {pc for pc in new if pc < KERNEL and self.known[pc].startswith("0x")}
        self.known.update(self.processes.names(rest))
        for report in found:
            name = self.known[int(report["pc"], 16)] if "pc" in report else None
            if name and not name.startswith("0x"):
                report["symbol"] = name
        self._give_callers(found)
        return found

    def _give_callers(self, found):
        """Instead of the stack's octets the reports get the member "callers"."""
        kernel, stacks = self.symbols.kernel, []
        for report in found:
            octets, sp, bp = (report.pop(name, "") for name in ("stack", "sp", "bp"))
            if octets and "symbol" in report:
                window = Window(int(sp, 16), bytes.fromhex(octets))
                stacks.append((report, window, int(report["pc"], 16), int(bp, 16)))
        if not stacks:
            return
        tables = None
        if limits(self.kallsyms):
            words = {word for _, window, _, _ in stacks for word in window.words(window.sp)}
            words.update(pc for _, _, pc, _ in stacks)
            modules = {kernel.module(word) for word in words if word >= KERNEL} - {None, ""}
            known = self.orc.tables(self.kallsyms, modules)

            def tables(pc):
                table = known.get(kernel.module(pc))
                return [table] if table else []

        for report, window, pc, bp in stacks:
            frames, whole = callers(window, pc, bp, tables, kernel.caller)
            report["callers"] = [
                {"pc": "%#x" % frame.pc, "symbol": kernel.caller(frame.pc), "by": frame.by}
                for frame in frames
            ]
            report["callers_whole"] = whole


def place_of(report):
    """The instruction of a report: its symbol if it has one, and its address."""
    if "symbol" in report:
        return "%s (%s)" % (report["symbol"], report["pc"])
    return report["pc"]


def callers_of(report):
    """Lines about the functions that have called the one of the report, the nearest first."""
    frames = report.get("callers", ())
    for number, frame in enumerate(frames):
        head = "called by" if not number else ""
        guess = "?" if frame["by"] == "guess" else " "
        yield "    %-9s %s %s" % (head, guess, frame["symbol"])
    if frames and not report["callers_whole"] and frames[-1]["by"] != "guess":
        yield "    %-9s   ..." % ""


def text_of(report):
    """A report as lines of text."""
    times = ", %d times" % report["count"] if report["count"] > 1 else ""
    where = ", cpu %d at %s" % (report["cpu"], place_of(report)) if "cpu" in report else ""
    lines = [
        "%s: %s, %s%s%s" % (report["adapter"], report["rule"], report["object"], where, times),
        "    %s" % report["text"],
        "    rule: docs/manual/checker.md; section: docs/manual/%s" % report["section"],
    ]
    lines += callers_of(report)
    for event in report["events"]:
        before = (report["ns"] - event["ns"]) / 1e6
        lines.append("    %12.3f ms before: %s" % (before, event["text"]))
    return "\n".join(lines)


def summary(found):
    """One line about all reports."""
    if not found:
        return "no reports"
    rules = sorted({report["rule"] for report in found})
    return "%d reports: %s" % (len(found), ", ".join(rules))


def mistakes(found):
    """The reports that are more than advice."""
    return [report for report in found if report["strict"] != "advice"]


def follow(folder, name, names, show):
    """Passes each new report to show() until the VM ends."""
    seen = set()
    while proc.alive(folder.data["vms"][name]["process"]):
        try:
            found = reports(folder, name)
        except LabError:
            if proc.alive(folder.data["vms"][name]["process"]):
                raise
            return
        new = [one for one in found if (one["adapter"], one["number"]) not in seen]
        for report in names.give(new):
            seen.add((report["adapter"], report["number"]))
            show(report)
        time.sleep(PAUSE)


def run(folder, args, emit):
    """The verb: 0: no mistakes were reported."""
    if not is_on(folder, args.vm):
        raise UsageError("the driver checker of %s is off" % args.vm, HOW)
    names = Names(folder, args.vm, args.symbols or ())
    if args.follow:
        follow(
            folder,
            args.vm,
            names,
            lambda one: print(json.dumps(one) if args.json else text_of(one), flush=True),
        )
        return 0
    found = names.give(reports(folder, args.vm))
    emit(args, found, "\n".join([*map(text_of, found), summary(found)]))
    return 1 if mistakes(found) else 0
