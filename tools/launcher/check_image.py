# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --image`: an image of a folder that was checked is judged again, alone.

Checker, platforms, promises and marks are those of the check.  No verdict of its journal counts,
and none is written.  What a check with --compare says is compared with states that are judged anew,
too.
"""
import json
import re

from . import check, check_report, merge, verdicts
from .check_run import check_unit
from .errors import LabError, UsageError
from .explored import Explored, Unit, is_occurrence, load
from .keep_judge import changed

IMAGE = re.compile(r"([0-9a-f]{32})(?:\+([0-9]{1,9}))?\Z")
# What chooses other images than this one, or another journal.
REFUSED = ("together", "vm", "shard", "reads", "nested", "nested_depth", "compare", "limit")
REFUSED += ("journal",)


def require(args):
    """Refuses what --image does not go with."""
    for name in REFUSED:
        if getattr(args, name):
            raise UsageError(
                "crash check: --image goes without --%s" % name.replace("_", "-"),
                "It judges one image of a folder that was checked, as that check did; the folder "
                "of --reads is EXPLORED/reads, and that of --vm NAME is EXPLORED/vm-NAME",
            )
    if args.jobs != 1:
        raise UsageError("crash check: --image goes without --jobs: it is one image")
    if not IMAGE.match(args.image):
        raise UsageError(
            "crash check: --image %s is no image" % args.image,
            "It is a hash of 32 digits, as in check.json, or HASH+N with N promises in force",
        )


def _minimal(explored, with_promises):
    """The occurrences of minimal examples, whose images the exploration may not have."""
    known = load(explored.folder / check_report.MINIMAL, "crash check") or {}
    for key, one in known.items():
        number = key.partition("+")[2]
        if not one or bool(number) != with_promises:
            continue
        row = {name: one.get(name) for name in ("image", "behind", "plan")}
        row.update(promises=int(number or 0), platforms=[one.get("platform")])
        if not number.isdigit() and with_promises or not is_occurrence(row):
            raise LabError(
                "%s is not what crash check writes" % (explored.folder / check_report.MINIMAL)
            )
        yield row


def units_of(text, explored, selection):
    """The units of an image: with promises one for each number that it occurs with."""
    image, number = IMAGE.match(text).groups()
    with_promises = selection.promises or number is not None
    units = explored.units(selection.platforms, with_promises)
    groups = {(x.image, x.promises): list(x.occurrences) for x in units}
    for one in _minimal(explored, with_promises):
        key = one["image"], one["promises"] if with_promises else None
        groups.setdefault(key, []).append(one)
    found = [Unit(*key, tuple(each)) for key, each in groups.items() if key[0] == image]
    found = [unit for unit in found if number is None or unit.promises == int(number)]
    if not found:
        raise UsageError(
            "%s has no image %s on %s" % (explored.folder, text, ", ".join(selection.platforms)),
            "check.json has the images of its bugs",
        )
    return found


class Again:
    """Judges units in a VM.  marks: compare.Marks, or None."""

    def __init__(self, vm, explored, checker, marks, repeat):
        self.vm, self.explored, self.checker = vm, explored, checker
        self.marks, self.repeat = marks, repeat
        self.promises = [check.promise_line(each) for each in explored.promises()]
        self.states = {}  # lines about the run's own states, as in a journal

    def _one(self, unit, repeat):
        return check_unit(
            *(self.vm, self.explored, unit, self.promises, self.checker.timeout, repeat)
        )

    def _judge_states(self, unit):
        """Judges the run's states around the crash points of the unit."""
        for one in unit.occurrences:
            for at in self.marks.needed(one["behind"]):
                state = self.marks.unit(at)
                if check.key(state) not in self.states:
                    found = self._one(state, 1)
                    if at and found["verdict"] != "good":
                        raise LabError(
                            "the run's own state at %s is judged as %s: %s"
                            % (self.marks.name(at), found["verdict"], found["output"].strip()),
                            "Give the script and the programs of the check",
                        )
                    self.states[check.key(state)] = found

    def judge(self, unit):
        """The verdict about a unit, with what `crash check --json` prints of it."""
        one = self._one(unit, self.repeat)
        step = None
        if self.marks and one["verdict"] == "good":
            self._judge_states(unit)
            wrong = self.marks.wrong(unit, one, self.states)
            if wrong and self._one(unit, 1)["digest"] != one["digest"]:
                one["verdict"] = "unsteady"
            elif wrong:
                one["verdict"], step = check_report.STATE, self.marks.step(wrong[0]["behind"])
        first = unit.occurrences[0]
        return {
            "image": unit.image,
            "promises": unit.promises,
            "behind": first["behind"],
            "platform": first["platforms"][0],
            **{name: one[name] for name in ("verdict", "status", "attempts", "output")},
            "step": step,
        }


def _status(rows):
    found = {row["verdict"] for row in rows}
    if found & {*verdicts.BUGS, check_report.STATE}:
        return check.BUGS
    return check.GOOD if found == {"good"} else check.NO_VERDICT


def _lines(row):
    """A verdict as text for a terminal."""
    words = row["verdict"]
    if words in check_report.WHAT:
        words = "%s: %s" % (words, check_report.describe(row))
    key = verdicts.key_of(row)
    yield "image %s, behind event %d, %s: %s" % (key, row["behind"], row["platform"], words)
    for line in row["output"].strip().splitlines()[-3:]:
        yield "  printed: " + line[:200]


def judge(args, say):
    """The verb; returns the exit status."""
    require(args)
    explored, checker, selection, marks = merge.checked([Explored(args.explored)])
    checker = changed(checker, args)
    if args.platform:
        selection.take(check.platforms_named(args.platform))
    units = units_of(args.image, explored, selection)
    quiet = (lambda text: None) if args.json else say
    platform = units[0].occurrences[0]["platforms"][0]
    with check.Judges(explored, checker, platform, 1, quiet) as judges:
        lab = judges.get()
        again = Again(lab.start(lab.vms[0]), explored, checker, marks, args.repeat)
        rows = [again.judge(unit) for unit in units]
    if args.json:
        print(json.dumps({"version": 1, "images": rows}, indent=1))
    else:
        for line in (line for row in rows for line in _lines(row)):
            print(line)
    return _status(rows)
