# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --nested`: a power cut while the program recovers from a power cut.

What the checker's VM does while the script runs on a good image is recorded, and explored on top of
that image; the script then has to judge the images of this exploration as good, too.  So a recovery
that cannot be repeated is found: one that has changed what it needs when it begins anew.

A second cut is the last one: what a recovery of such an image does is not recorded.

EXPLORED/nested.jsonl has a line for each recovery, EXPLORED/nested/IMAGE its recording and its
exploration if they show a bug.
"""
import json
import shutil

from . import check, check_report, explore, reduce, verdicts
from .check_run import Run, order, verdict_of
from .errors import LabError, UsageError
from .explored import Explored, promise_line

FOLDER, JOURNAL, TRACE = "nested", "nested.jsonl", "recovery.trace"
STRATEGY, IMAGES = "only,all-but", 1000
ELF = b"\x7fELF"


def _programs(checker):
    """The program of the recovery, for names: if it is one."""
    found = []
    for path, _ in checker.copies:
        with open(path, "rb") as file:
            if file.read(len(ELF)) == ELF:
                found.append(path)
    return found if len(found) == 1 else []


def _platforms(unit):
    """All platforms that have the image, each once."""
    return list(dict.fromkeys(x for one in unit.occurrences for x in one["platforms"]))


def _platform_options(platforms):
    """Options of the explorer for platforms such as adr,ddio=on."""
    rows = [name.split(",ddio=") for name in platforms]
    names = (("--domain", {row[0] for row in rows}), ("--ddio", {row[1] for row in rows}))
    return [word for option, words in names for word in (option, ",".join(sorted(words)))]


class Nested:
    """Recoveries of the good images of a check."""

    def __init__(self, explored, checker, selection, options, say):
        if options.shard or options.compare or options.reads:
            raise UsageError("crash check: --nested goes with none of --shard, --compare, --reads")
        self.explored, self.checker, self.selection = explored, checker, selection
        self.options, self.say = options, say
        self.identity = checker.identity(explored) + options.nested_strategy
        self.identity += ":%d" % options.nested_images
        self.programs = _programs(checker)
        self.promises = []
        if selection.promises:
            self.promises = [promise_line(each) for each in explored.promises()]

    def _place(self, unit):
        return self.explored.folder / FOLDER / check.key(unit)

    def _record(self, vm, unit, trace):
        """Records the script on the image; None, or why there is no good recovery."""
        script, data = order(unit, self.promises)
        path = self.explored.path(unit.image)
        path = path.absolute() if path else ""
        found = vm.check(path, script, data, self.checker.timeout, trace)
        verdict, status, output = verdict_of(found)
        if verdict == "good":
            return None
        text = "it was good, and while it was recorded: %s, status %s\n%s"
        return text % (verdict, status, output)

    def _explore(self, unit, place):
        """The Explored of what the recovery did."""
        image = self.explored.path(unit.image)
        words = _platform_options(_platforms(unit))
        words += ["--strategy", self.options.nested_strategy]
        words += ["--max-images", str(self.options.nested_images)]
        words += ["--onto", str(image.absolute())] if image else []
        for extent in self.explored.extents if image else ():
            words += ["--base", "%s=%s" % (extent.name, extent.file.absolute())]
        status, result, out = explore.explore(
            place / TRACE, place / "explored", words, self.programs, quiet=True
        )
        if not result or status not in (explore.GOOD, explore.BUGS, explore.NO_VERDICT):
            raise LabError(
                "the recovery of image %s cannot be explored: status %d" % (unit.image, status)
            )
        return Explored(out)

    def _units(self, found, unit):
        """The images of a recovery, with what was in force at the first cut."""
        outer = unit.occurrences[0]
        units = found.units(_platforms(unit))
        return [
            each._replace(
                promises=unit.promises,
                occurrences=tuple(dict(one, outer=outer) for one in each.occurrences),
            )
            for each in units
        ]

    def _judge(self, judge, unit, place):
        """Members of the journal's line about a recovery that was recorded."""
        found = self._explore(unit, place)
        units = self._units(found, unit)
        with verdicts.Journal(place / check.VERDICTS) as journal:
            rest = (self.checker.timeout, self.options.repeat, self.identity)
            run = Run(judge, found, self.promises, *rest)
            run.run(check.left(units, journal.done), journal, lambda text: None, len(units))
            done = dict(journal.done)
        counts = {}
        for each in units:
            name = done[check.key(each)]["verdict"]
            counts[name] = counts.get(name, 0) + 1
        rows = check_report.bugs(list(check_report.findings(units, done)), found, {}, None, done)
        doubt = [name for name in ("failed", "unsteady") if name in counts]
        return {
            "verdict": "bug" if rows else doubt[0] if doubt else "good",
            "nested": {
                "events": found.events(),
                "images": len(units),
                "verdicts": counts,
                "bugs": rows,
                "left-out": left_out(found),
            },
        }

    def _recovery(self, judges, unit):
        place = self._place(unit)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        judge = judges.get()
        why = self._record(judge.start(judge.vms[0]), unit, (place / TRACE).absolute())
        one = {"verdict": "unsteady", "output": why} if why else self._judge(judge, unit, place)
        if one["verdict"] != "bug":
            shutil.rmtree(place)
        return one

    def run(self, judges, done):
        """What there is about all recoveries: the member `nested` of check.json."""
        units = [
            unit
            for unit in self.selection.mine
            if done.get(check.key(unit), {}).get("verdict") == "good"
        ]
        path = self.explored.folder / JOURNAL
        with verdicts.Journal(path) as journal:
            check.require_same(journal.done, self.identity, path)
            todo = check.left(units, journal.done)
            for number, unit in enumerate(todo, len(units) - len(todo) + 1):
                one = self._recovery(judges, unit)
                more = {} if unit.promises is None else {"promises": unit.promises}
                journal.add(unit.image, check=self.identity, **one, **more)
                images = one.get("nested", {}).get("images", 0)
                self.say("recovery %d of %d: %d images" % (number, len(units), images))
            lines = dict(journal.done)
        return self._result(units, lines, judges)

    # -- the result

    def _groups(self, units, lines):
        """{what and why: [(unit, row)]} of all bugs."""
        groups = {}
        for unit in units:
            for row in lines[check.key(unit)].get("nested", {}).get("bugs", ()):
                key = (row["verdict"], str(row["status"]), tuple(row["cause"]))
                groups.setdefault(key, []).append((unit, row))
        return list(groups.values())

    def _minimal(self, judges, unit, row):
        """The minimal example of a row, or None; from the file, if it was made before."""
        place = self._place(unit)
        path, key = place / check_report.MINIMAL, verdicts.key_of(row["example"])
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if key not in known:
            found, judge = Explored(place / "explored"), judges.get()
            vm = judge.start(judge.vms[0])
            reducer = reduce.Reducer(found, vm, self.checker.timeout, self.promises)
            reducer.outer = unit.occurrences[0]
            one = reducer.reduce(row)
            known[key] = one and reduce.with_events(found, one)
            explore.write(path, json.dumps(known, indent=1) + "\n")
        return known[key]

    def _bug(self, number, members, judges):
        unit, row = min(members, key=lambda each: len(each[1]["example"]["deviations"] or ()))
        minimal = None
        if (
            not self.options.no_reduce
            and number <= reduce.BUGS_MAX
            and row["example"]["deviations"]
        ):
            minimal = self._minimal(judges, unit, row)
        first = unit.occurrences[0]
        return {
            "number": number,
            "verdict": row["verdict"],
            "status": row["status"],
            "cause": row["cause"],
            "recoveries": len({check.key(each[0]) for each in members}),
            "images": sum(each[1]["images"] for each in members),
            "recovered": {
                "image": unit.image,
                "promises": unit.promises,
                "behind": first["behind"],
                "platform": first["platforms"][0],
                "plan": first["plan"],
            },
            "folder": "%s/%s" % (FOLDER, check.key(unit)),
            "example": row["example"],
            "minimal": minimal,
        }

    def _result(self, units, lines, judges):
        parts = [lines[check.key(unit)] for unit in units if check.key(unit) in lines]
        rows = [one["nested"] for one in parts if "nested" in one]
        counts = {}
        for row in rows:
            for name, count in row["verdicts"].items():
                counts[name] = counts.get(name, 0) + count
        unsteady = sum("nested" not in one for one in parts)
        groups = self._groups(units, lines)
        found = {
            "strategy": self.options.nested_strategy,
            "recoveries": len(rows),
            "events": sum(row["events"] for row in rows),
            "images": sum(row["images"] for row in rows),
            "verdicts": counts,
            "doubt": unsteady + counts.get("unsteady", 0) + counts.get("failed", 0),
            "bugs": [self._bug(n, members, judges) for n, members in enumerate(groups, 1)],
            "left-out": sum(row["left-out"] for row in rows),
        }
        found["notes"] = _notes(found, unsteady)
        return found


def left_out(found):
    """How many crash points were not explored, or not to the end."""
    rows = [row.get("images", {}) for row in found.result.get("platforms") or ()]
    return sum(row.get("points-left-out") or 0 for row in rows)


def _notes(found, unsteady):
    notes = []
    if not found["recoveries"]:
        notes.append("No recovery was recorded, because no image is good.")
    if unsteady:
        notes.append("%d recoveries were not good when they were recorded." % unsteady)
    if found["doubt"] > unsteady:
        notes.append(
            "%d images of recoveries have no certain verdict." % (found["doubt"] - unsteady)
        )
    if found["left-out"]:
        notes.append(
            "%d crash points of recoveries were left out (--nested-images)." % found["left-out"]
        )
    return notes
