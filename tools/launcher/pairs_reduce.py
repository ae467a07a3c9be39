# SPDX-License-Identifier: GPL-2.0-or-later
"""Minimal examples of bugs of pairs: which deviations of both VMs does the verdict need?

As reduce.py does it for one image, at the pair of crash points of the bug's example.  These stay as
they are, because others need not be a consistent cut.  At one consistent cut the two machines
answer their questions independently, and the images are all pairs of theirs ("Which of them are
explored" of docs/crash-laboratory-points.md, pair_at() of hw/explore/together.c): hw/core/crash/
pairs.c asks for the instants only.  So deviations of both may be taken away in any combination.
"""
import contextlib
import json

from . import check_report, pairs, plans, reduce


class PairReducer(reduce.Reducer):
    """Makes a bug's example smaller with two VMs that check (pairs_lab.PairVM)."""

    def __init__(self, found, vm, timeout):
        super().__init__(found, vm, timeout)
        self.made = [{} for _ in found.sides]  # of each side: plan, as text, to occurrence

    def items(self, example):
        rows = example["deviations"]
        return rows and pairs.with_sides(rows)

    def _wanted(self, example, items):
        """A plan of each side."""
        found = []
        for k, behind in enumerate(example["behind"]):
            mine = [each for each in items if each["side"] == k]
            found.append(plans.plan(behind, self.platform, mine, example["arrivals"][k]))
        return found

    def _side(self, k, wanted):
        """The occurrences of one side's plans; each is made once, because most tries differ in the
        other side only."""
        names = [json.dumps(each) for each in wanted]
        new = {name: each for name, each in zip(names, wanted) if name not in self.made[k]}
        if new:
            made = plans.make_each(self.explored.sides[k], list(new.values()))
            self.made[k].update(zip(new, made))
        return [self.made[k][name] for name in names]

    def _make(self, wanted):
        sides = [self._side(k, row) for k, row in enumerate(zip(*wanted))]
        return [
            None if None in two else pairs.joined(self.explored.names, list(two), [self.platform])
            for two in zip(*sides)
        ]

    def _minimal(self, occurrence, found):
        two = occurrence["sides"]
        rows = [[each for each in found if each["side"] == k] for k in range(len(two))]
        return {
            "images": [side["image"] for side in two],
            "behind": occurrence["behind"],
            "platform": self.platform,
            "plan": occurrence["plan"],
            "deviations": [side.get("deviations", row) for side, row in zip(two, rows)],
        }

    def with_events(self, one):
        sides = zip(self.explored.sides, one["deviations"])
        rows = [reduce.lost_rows(side, {"deviations": row}) for side, row in sides]
        return dict(one, lost=rows)


def reduce_all(found, checker, told, judge, say):
    """Makes the minimal examples that are missing; returns whether there are new ones.

    judge(): the PairLab, which has begun."""
    reducer = PairReducer(found, None, checker.timeout)
    path = found.folder / check_report.MINIMAL
    return reduce.make_missing(
        path, told["bugs"], reducer, lambda: contextlib.nullcontext(judge()), say
    )
