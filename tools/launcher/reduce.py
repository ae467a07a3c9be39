# SPDX-License-Identifier: GPL-2.0-or-later
"""Minimal examples: which of the deviations of a bad image does its verdict need?

A plan says how a cut deviates from "everything survives".  Delta debugging (ddmin) takes deviations
away as long as the image stays bad in the same way; at the end none can be removed.  Each round is
one call of the explorer, and the images of one round are checked in one go.
"""
import contextlib
import json

from . import check_report, explore, plans, verdicts
from .check_run import check_unit
from .explored import Unit, load, promise_line

ROUNDS_MAX = 200
BUGS_MAX = 20  # so many bugs get a minimal example


def _parts(items, n):
    """Splits a list into n parts of nearly the same length."""
    size, rest = divmod(len(items), n)
    found, at = [], 0
    for i in range(n):
        end = at + size + (i < rest)
        found.append(items[at:end])
        at = end
    return found


def ddmin(items, bad_ones):
    """The shortest list that ddmin finds, its rounds, and whether it is shown to be minimal: no
    item can be removed.  It is not if the rounds do not suffice.

    bad_ones([list, ...]) returns for each list whether it is still bad.  Often none is needed: the
    program's data were not in persistent memory at all."""
    if items and bad_ones([[]])[0]:
        return [], 1, True
    current, n, rounds = list(items), 2, 1 if items else 0
    while current:
        if rounds == ROUNDS_MAX:
            return current, rounds, False
        n = min(n, len(current))
        parts = _parts(current, n)
        # With two parts, or one, each part is the rest of the other one.
        rests = [sum(parts[:i] + parts[i + 1 :], []) for i in range(n)]
        tries = (parts if n > 2 else []) + rests
        rounds += 1
        answers = bad_ones(tries)
        best = [each for each, bad in zip(tries, answers) if bad]
        if best:
            smallest = min(best, key=len)
            n = 2 if len(smallest) <= len(current) // n else max(n - 1, 2)
            current = smallest
        elif n >= len(current):
            break
        else:
            n = min(2 * n, len(current))
    return current, rounds, True


class Reducer:
    """Makes a bug's example smaller with a VM that checks.  pairs_reduce.py has one for two VMs.

    vm.check is that of CheckerVM; promises: lines of text if the checker gets them."""

    def __init__(self, explored, vm, timeout, promises=None, marks=None, done=None):
        self.explored, self.vm, self.timeout = explored, vm, timeout
        self.promises, self.marks, self.done = promises, marks, done
        self.outer = None  # of an image of a recovery: the occurrence that was recovered
        self.checks, self.platform = 0, None
        self.known = {}  # deviations to (occurrence, bad)

    def can_make(self):
        """Whether the traces are there that images are made of."""
        return bool(self.explored.traces())

    def items(self, example):
        """The deviations of an example; None if they are not listed."""
        return example["deviations"]

    def _wanted(self, example, items):
        """The plan with these deviations in place of the example's."""
        early = example.get("arrivals", ())
        return plans.plan(example["behind"], self.platform, items, early)

    def _make(self, wanted):
        """The occurrences of plans; None for one that cannot be made."""
        return plans.make_each(self.explored, wanted)

    def _minimal(self, occurrence, found):
        """What becomes of the bug's member `minimal`."""
        return {
            "image": occurrence["image"],
            "platform": self.platform,
            "deviations": occurrence.get("deviations", found),
            "behind": occurrence["behind"],
            "plan": occurrence["plan"],
        }

    def with_events(self, one):
        """Adds the lost stores, with their issuers."""
        return with_events(self.explored, one)

    def _is_bad(self, occurrence, bug):
        number = bug["example"]["promises"]
        if self.outer:
            occurrence = dict(occurrence, outer=self.outer)
        unit = Unit(occurrence["image"], number, (occurrence,))
        one = check_unit(self.vm, self.explored, unit, self.promises or [], self.timeout, 1)
        self.checks += 1
        if bug["verdict"] == check_report.STATE:
            return one["verdict"] == "good" and not self.marks.allows(
                occurrence["behind"], one["digest"], self.done
            )
        return (one["verdict"], one["status"]) == (bug["verdict"], bug["status"])

    def _try(self, tries, bug):
        """Whether each list of deviations makes an image that is as bad."""
        keys = [_key(one) for one in tries]
        new = [i for i, key in enumerate(keys) if key not in self.known]
        new = [i for i in new if keys[i] not in {keys[k] for k in new if k < i}]
        wanted = [self._wanted(bug["example"], tries[i]) for i in new]
        if wanted:
            made = self._make(wanted)
            for i, occurrence in zip(new, made):
                bad = occurrence is not None and self._is_bad(occurrence, bug)
                self.known[keys[i]] = (occurrence, bad)
        return [self.known[key][1] for key in keys]

    def _again(self, example):
        """Takes the platform on which the example's plan makes its image again: an occurrence has
        the plan of one of its platforms only.  False: there is none."""
        for self.platform in example["platforms"]:
            occurrence = self._make([self._wanted(example, self.items(example))])[0]
            if occurrence and occurrence["image"] == example["image"]:
                return True
        return False

    def reduce(self, bug):
        """The minimal example of a bug, or None if its image is not made again."""
        self.known, self.checks = {}, 0
        items = self.items(bug["example"])
        if not self._again(bug["example"]) or not self._try([items], bug)[0]:
            return None
        found, rounds, shown = ddmin(items, lambda tries: self._try(tries, bug))
        if _key(found) not in self.known:
            self._try([found], bug)
        one = self._minimal(self.known[_key(found)][0], found)
        return {**one, "rounds": rounds, "from": len(items), "shown": shown}


def notes(bugs):
    """Sentences about the bugs that get no minimal example."""
    if len(bugs) > BUGS_MAX:
        yield "Minimal examples are made of the first %d bugs of %d." % (BUGS_MAX, len(bugs))


def _key(items):
    """A list of deviations as a key; with two VMs each has its side."""
    return tuple((each.get("side"), each["question"], each["answer"]) for each in items)


def lost_rows(explored, one):
    """The stores that an occurrence lost, with their issuers."""
    numbers = check_report.lost_of(one)
    events = check_report.events_of(explored, numbers)
    return [check_report.event_row(events[n]) for n in sorted(numbers) if n in events]


def with_events(explored, one):
    """Adds the lost stores, with their issuers."""
    return dict(one, lost=lost_rows(explored, one))


def make_missing(path, bugs, reducer, lab, say):
    """Makes the minimal examples that the file does not have; returns whether there are new ones.

    lab: returns what judges, for `with`."""
    known = load(path, "crash check") or {}
    todo = [bug for bug in bugs[:BUGS_MAX] if reducer.items(bug["example"]) and not bug["minimal"]]
    todo = [bug for bug in todo if key_of(bug) not in known]
    if not todo or not reducer.can_make():
        return False
    say("looking for minimal examples of %d bugs" % len(todo))
    with lab() as judge:
        reducer.vm = judge.start(judge.vms[0])
        for bug in todo:
            one = reducer.reduce(bug)
            if not one:
                say("bug %d: its image cannot be made again from its plan" % bug["number"])
                known[key_of(bug)] = None
                continue
            say(
                "bug %d: %d of %d deviations are needed (%d checks)"
                % (bug["number"], len(reducer.items(one)), one["from"], reducer.checks)
            )
            known[key_of(bug)] = reducer.with_events(one)
            explore.write(path, json.dumps(known, indent=1) + "\n")
    return True


def reduce_all(explored, checker, selection, found, marks, done, say, judges):
    """Makes the minimal examples that are missing; returns whether there are new ones.

    judges: check.Judges, whose lab goes on."""
    promises = [promise_line(each) for each in explored.promises()] if selection.promises else None
    reducer = Reducer(explored, None, checker.timeout, promises, marks, done)

    def lab():
        if any(one["verdict"] == "failed" for one in done.values()):
            judges.renew()  # the VM may be broken
        return contextlib.nullcontext(judges.get())

    path = explored.folder / check_report.MINIMAL
    return make_missing(path, found["bugs"], reducer, lab, say)


def key_of(bug):
    """The example's key in minimal.json: as in the journal."""
    return verdicts.key_of(bug["example"])
