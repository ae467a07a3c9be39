# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of the driver checker (docs/manual/checker.md): the verb lint."""
import json
import time

from . import proc
from .errors import LabError, UsageError
from .qmp import Monitor

PROPERTY = "check-reports"
PAUSE = 1.0  # seconds between two looks with --follow
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


def text_of(report):
    """A report as lines of text."""
    times = ", %d times" % report["count"] if report["count"] > 1 else ""
    where = ", cpu %d at %s" % (report["cpu"], report["pc"]) if "cpu" in report else ""
    lines = [
        "%s: %s, %s%s%s" % (report["adapter"], report["rule"], report["object"], where, times),
        "    %s" % report["text"],
        "    rule: docs/manual/checker.md; section: docs/manual/%s" % report["section"],
    ]
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


def follow(folder, name, show):
    """Passes each new report to show() until the VM ends."""
    seen = set()
    while proc.alive(folder.data["vms"][name]["process"]):
        try:
            found = reports(folder, name)
        except LabError:
            if proc.alive(folder.data["vms"][name]["process"]):
                raise
            return
        for report in found:
            key = report["adapter"], report["number"]
            if key not in seen:
                seen.add(key)
                show(report)
        time.sleep(PAUSE)


def run(folder, args, emit):
    """The verb: 0: no mistakes were reported."""
    if not is_on(folder, args.vm):
        raise UsageError("the driver checker of %s is off" % args.vm, HOW)
    if args.follow:
        follow(
            folder,
            args.vm,
            lambda one: print(json.dumps(one) if args.json else text_of(one), flush=True),
        )
        return 0
    found = reports(folder, args.vm)
    emit(args, found, "\n".join([*map(text_of, found), summary(found)]))
    return 1 if mistakes(found) else 0
