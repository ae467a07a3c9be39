# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of recoveries that were cut: the member `nested` of check.json.

It is made of the journals' lines alone, so `crash merge` makes the same of the journals of shards.
"""
import json

from . import check_report, recoveries, verdicts


def place_of(folder, recovery):
    """The folder of a recovery's recording and exploration."""
    return folder / recoveries.FOLDER / recoveries.key(recovery)


def known_minimal(place):
    """{key: minimal example or None} of a recovery's folder, as far as they were made."""
    path = place / check_report.MINIMAL
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


class Result:
    """Makes the result of levels whose lines are there.

    mine(recovery): whether it counts; minimal(number, recovery, row): the minimal example of a row,
    or None."""

    def __init__(self, levels, settings, folder, mine=lambda _: True, minimal=None):
        self.levels, self.lines, self.settings = levels, levels.lines, settings
        self.folder = folder
        self.rows = [
            [each for each in level if mine(each) and recoveries.key(each) in self.lines]
            for level in levels.all
        ]
        self.absent = sum(mine(each) for level in levels.all for each in level)
        self.absent -= sum(len(row) for row in self.rows)
        self.minimal = minimal or self._known

    def _known(self, _number, recovery, row):
        known = known_minimal(place_of(self.folder, recovery))
        return known.get(verdicts.key_of(row["example"]))

    def _line(self, recovery):
        return self.lines[recoveries.key(recovery)]

    def _groups(self):
        """[(recovery, row)] of each bug: what and why are the same."""
        groups = {}
        for recovery in (each for level in self.rows for each in level):
            for row in self._line(recovery).get("nested", {}).get("bugs", ()):
                name = (row["verdict"], str(row["status"]), tuple(row["cause"]))
                groups.setdefault(name, []).append((recovery, row))
        return list(groups.values())

    def _bug(self, number, members):
        recovery, row = min(members, key=lambda each: len(each[1]["example"]["deviations"] or ()))
        earlier = recoveries.cuts(recovery.unit.occurrences[0])
        return {
            "number": number,
            "verdict": row["verdict"],
            "status": row["status"],
            "step": row["step"],
            "allowed": row["allowed"],
            "cause": row["cause"],
            "depth": len(earlier),
            "recoveries": len({recoveries.key(each[0]) for each in members}),
            "images": sum(each[1]["images"] for each in members),
            "recovered": {**recoveries.cut_row(earlier[-1]), "promises": recovery.unit.promises},
            "cuts": [recoveries.cut_row(each) for each in earlier],
            "folder": "%s/%s" % (recoveries.FOLDER, recoveries.key(recovery)),
            "example": row["example"],
            "minimal": self.minimal(number, recovery, row),
        }

    def _depth(self, level, again):
        """Sums over the recoveries of a depth, and how many had no good recording."""
        parts = [self._line(each) for each in level]
        found = _counted([one["nested"] for one in parts if "nested" in one])
        return {**found, **again}, sum("nested" not in one for one in parts)

    def result(self):
        """The member `nested`."""
        pairs = [self._depth(*each) for each in zip(self.rows, self.levels.again)]
        depths, unsteady = [each[0] for each in pairs], sum(each[1] for each in pairs)
        limits = {"images": self.settings.images, "recoveries": self.settings.recoveries}
        found = {"strategy": self.settings.strategy, "depth": self.settings.depth}
        found.update({name: sum(x[name] for x in depths) for name in depths[0] if name[0] != "v"})
        counts = {}
        for name, count in (each for one in depths for each in one["verdicts"].items()):
            counts[name] = counts.get(name, 0) + count
        found["limits"] = limits
        found["verdicts"] = counts
        found["depths"] = depths
        found["doubt"] = unsteady + counts.get("unsteady", 0) + counts.get("failed", 0)
        found["bugs"] = [self._bug(n, members) for n, members in enumerate(self._groups(), 1)]
        found["notes"] = _notes(found, unsteady)
        if self.absent:
            found["doubt"] += self.absent
            found["notes"].append("%d recoveries have not been recorded." % self.absent)
        return found


def _counted(rows):
    """Sums over what the journal has of some recoveries."""
    names = {}
    for row in rows:
        for name, count in row["verdicts"].items():
            names[name] = names.get(name, 0) + count
    return {
        "recoveries": len(rows),
        "verdicts": names,
        **{name: sum(row[name] for row in rows) for name in ("events", "images", "left-out")},
    }


def _notes(found, unsteady):
    """What makes the result less than it seems, as sentences."""
    sentences = []
    if not found["recoveries"]:
        sentences.append("No recovery was recorded, because no image is good.")
    if unsteady:
        sentences.append("%d recoveries were not good when they were recorded." % unsteady)
    if found["doubt"] > unsteady:
        sentences.append(
            "%d images of recoveries have no certain verdict." % (found["doubt"] - unsteady)
        )
    if found["left-out"]:
        sentences.append(
            "%d crash points of recoveries were left out (--nested-images)." % found["left-out"]
        )
    if found["again-left-out"]:
        sentences.append(
            "%d recoveries of images of recoveries were left out (--nested-recoveries)."
            % found["again-left-out"]
        )
    return sentences
