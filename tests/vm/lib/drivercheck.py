# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver checker in VM tests: its mode, and its reports, each of which fails a case.

SG_CHECK=off, warn or strict in the environment is the mode of all adapters of a program, except in
classes that want none.  Without it a class chooses (LabCase.driver_check).  Reports are read from
the device logs, so those of a VM that has been killed count as well.  Rules that are broken on
purpose are in LabCase.mistakes and labtest.breaks()."""
import os
import re

MODES = ("off", "warn", "strict")
# "TIME staghorn_check r0: check: RULE: object: text (section)"
LINE = re.compile(r"staghorn_check (\S+): check: ([A-Z][A-Z-]+): (.*)")


def mode(wanted):
    """The mode of a lab whose class wants this one; None: it does not care, off: never."""
    found = os.environ.get("SG_CHECK") or wanted or "off"
    if found not in MODES:
        raise SystemExit("SG_CHECK is %s; choose from %s" % (found, ", ".join(MODES)))
    return "off" if wanted == "off" else found


def words(chosen, arguments):
    """Arguments of `up` for this mode; a lab that says itself what it wants gets none."""
    if chosen == "off" or any("check=" in str(word) for word in arguments):
        return ()
    return ("--device-prop", "check=" + chosen)


def found_in(text):
    """The reports in a device log, as (whole line, rule)."""
    return [(line, seen[2]) for line in text.splitlines() if (seen := LINE.search(line))]


class Reports:
    """The reports of a lab's adapters, each of which is given once."""

    def __init__(self, place):
        self.place = place  # the lab's folder
        self.seen = set()

    def _logs(self):
        for vm in sorted(os.listdir(self.place)) if os.path.isdir(self.place) else []:
            folder = os.path.join(self.place, vm)
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                if name.startswith("device.log"):
                    with open(os.path.join(folder, name), errors="replace") as file:
                        yield vm, file.read()

    def new(self, permitted=()):
        """Those since the last call whose rule is not permitted, as texts."""
        fresh = []
        for vm, text in self._logs():
            for line, rule in found_in(text):
                if (vm, line) not in self.seen:
                    self.seen.add((vm, line))
                    fresh += ["%s: %s" % (vm, line)] if rule not in permitted else []
        return fresh
