# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --nested`: a power cut while the program recovers from a power cut.

What the checker's VM does while the script runs on a good image is recorded, and explored on top of
that image; the script then has to judge the images of this exploration as good, too.  So a recovery
that cannot be repeated is found: one that has changed what it needs when it begins anew.

With --nested-depth 2 the recoveries of these images are cut in turn, and so on.  All recoveries of
one depth come before those of the next, so one that occurs at several is recorded at the first.

EXPLORED/nested.jsonl has a line for each recovery, EXPLORED/nested/KEY its recording and its
exploration if they show a bug, and EXPLORED/nested/again the images of the next depth.
"""
import hashlib
import json
import os
import shutil

from . import check, check_report, compare, explore, recoveries, reduce, verdicts
from .check_run import Run, order, verdict_of
from .errors import LabError, UsageError
from .explored import START, Explored, evenly, promise_line
from .recoveries import FOLDER, Recovery

JOURNAL, TRACE, ONTO = "nested.jsonl", "recovery.trace", "onto.image"
STRATEGY, IMAGES, RECOVERIES, DEPTH_MAX = "only,all-but", 1000, 10, 16
ELF = b"\x7fELF"


def _programs(checker):
    """The program of the recovery, for names: if it is one."""
    found = []
    for path, _ in checker.copies:
        with open(path, "rb") as file:
            if file.read(len(ELF)) == ELF:
                found.append(path)
    return found if len(found) == 1 else []


def _platform_options(platforms):
    """Options of the explorer for platforms such as adr,ddio=on."""
    rows = [name.split(",ddio=") for name in platforms]
    names = (("--domain", {row[0] for row in rows}), ("--ddio", {row[1] for row in rows}))
    return [word for option, words in names for word in (option, ",".join(sorted(words)))]


class Nested:
    """Recoveries of the good images of a check."""

    def __init__(self, explored, checker, selection, options, say):
        if options.shard or options.reads:
            raise UsageError("crash check: --nested goes with none of --shard, --reads")
        self.explored, self.checker, self.selection = explored, checker, selection
        self.options, self.say = options, say
        self.identity = checker.identity(explored) + options.nested_strategy
        self.depth = options.nested_depth or 1
        self.identity += ":%d" % options.nested_images
        if self.depth > 1:
            self.identity += ":%d:%d" % (self.depth, options.nested_recoveries)
        self.programs = _programs(checker)
        self.marks = self.done = None  # of the check
        self.promises = []
        if selection.promises:
            self.promises = [promise_line(each) for each in explored.promises()]

    def _place(self, recovery):
        return self.explored.folder / FOLDER / recoveries.key(recovery)

    def _window(self, recovery):
        """With --compare: the states that are right for it; else None."""
        return self.marks and compare.Window(self.marks, recovery.steps, self.done)

    # -- one recovery

    def _record(self, vm, recovery, trace):
        """Records the script on the image; None, or why there is no good recovery."""
        script, data = order(recovery.unit, self.promises)
        path = recovery.path and recovery.path.absolute()
        found = vm.check(path, script, data, self.checker.timeout, trace)
        verdict, status, output = verdict_of(found)
        window = self._window(recovery)
        digest = hashlib.sha256(found.output).hexdigest()[:16]
        if verdict == "good" and (not window or window.allows(None, digest, self.done)):
            return None
        text = "it was good, and while it was recorded: %s, status %s\n%s"
        return text % (verdict, status, output)

    def _explore(self, recovery, place):
        """The Explored of what the recovery did."""
        words = _platform_options(recoveries.platforms(recovery.unit))
        words += ["--strategy", self.options.nested_strategy]
        words += ["--max-images", str(self.options.nested_images)]
        words += ["--onto", str((place / ONTO).absolute())] if recovery.path else []
        for extent in self.explored.extents if recovery.path else ():
            words += ["--base", "%s=%s" % (extent.name, extent.file.absolute())]
        status, result, out = explore.explore(
            place / TRACE, place / "explored", words, self.programs, quiet=True
        )
        if not result or status not in (explore.GOOD, explore.BUGS, explore.NO_VERDICT):
            raise LabError(
                "the recovery of image %s cannot be explored: status %d"
                % (recovery.unit.image, status)
            )
        return Explored(out)

    def _units(self, found, unit):
        """The images of a recovery, with what was in force at the first cut."""
        outer = unit.occurrences[0]
        return [
            each._replace(
                promises=unit.promises,
                occurrences=tuple(dict(one, outer=outer) for one in each.occurrences),
            )
            for each in found.units(recoveries.platforms(unit))
        ]

    def _checked(self, judge, found, units, window, place):
        """{key: verdict} of the images of a recovery."""
        with verdicts.Journal(place / check.VERDICTS) as journal:
            rest = (self.checker.timeout, self.options.repeat, self.identity)
            run = Run(judge, found, self.promises, *rest)
            run.run(check.left(units, journal.done), journal, lambda text: None, len(units))
            doubtful = window.doubtful(units, journal.done) if window else []
            if doubtful:
                run.run(doubtful, journal, lambda text: None, before=dict(journal.done))
            return dict(journal.done)

    def _judge(self, judge, recovery, place, seen):
        """Members of the journal's line about a recovery that was recorded."""
        found, window = self._explore(recovery, place), self._window(recovery)
        units = self._units(found, recovery.unit)
        done = self._checked(judge, found, units, window, place)
        counts = {}
        for each in units:
            name = done[check.key(each)]["verdict"]
            counts[name] = counts.get(name, 0) + 1
        bad = list(check_report.findings(units, done, window))
        rows = check_report.bugs(bad, found, {}, window, done)
        doubt = [name for name in ("failed", "unsteady") if name in counts]
        wrong = {check.key(each[2]) for each in bad}
        good = [each for each in units if done[check.key(each)]["verdict"] == "good"]
        good = [each for each in good if check.key(each) not in wrong]
        return {
            "verdict": "bug" if rows else doubt[0] if doubt else "good",
            "nested": {
                "events": found.events(),
                "images": len(units),
                "verdicts": counts,
                "bugs": rows,
                "left-out": left_out(found),
                **self._again(recovery, found, good, seen),
            },
        }

    def _again(self, recovery, found, good, seen):
        """Of which good images the recoveries are cut, too; their files are kept."""
        if len(recoveries.cuts(recovery.unit.occurrences[0])) >= self.depth:
            return {"again": [], "again-left-out": 0, "again-same": 0}
        new = {recoveries.key(recovery._replace(unit=each)): each for each in good}
        same = [name for name in new if name in seen]
        rest = [unit for name, unit in new.items() if name not in seen]
        chosen = evenly(rest, self.options.nested_recoveries)
        folder = self.explored.folder / FOLDER / recoveries.IMAGES
        folder.mkdir(parents=True, exist_ok=True)
        for image in {unit.image for unit in chosen} - {START}:
            target = folder / (image + ".image")
            shutil.copy(found.path(image), str(target) + ".new")
            os.replace(str(target) + ".new", target)
        return {
            "again": [recoveries.again(unit) for unit in chosen],
            "again-left-out": len(rest) - len(chosen),
            "again-same": len(same),
        }

    def _recovery(self, judges, recovery, seen):
        place = self._place(recovery)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        if recovery.path:  # what is kept of a bug is complete
            shutil.copy(recovery.path, place / ONTO)
        judge = judges.get()
        vm = judge.start(judge.vms[0])
        why = self._record(vm, recovery, (place / TRACE).absolute())
        if why:
            one = {"verdict": "unsteady", "output": why}
        else:
            one = self._judge(judge, recovery, place, seen)
        if one["verdict"] != "bug":
            shutil.rmtree(place)
        return one

    # -- all of them

    def _first(self):
        """The recoveries of the check's good images."""
        found = []
        for unit in self.selection.mine:
            one = self.done.get(check.key(unit))
            if not one or one["verdict"] != "good":
                continue
            if self.marks and self.marks.wrong(unit, one, self.done):
                continue
            steps = None
            if self.marks:
                steps = tuple(sorted({self.marks.step(x["behind"]) for x in unit.occurrences}))
            found.append(Recovery(unit, steps, self.explored.path(unit.image)))
        return found

    def _depth(self, level, depth, judges, journal, seen):
        """Records the recoveries of a depth that are left; those of the next one."""
        following = []
        for number, recovery in enumerate(level, 1):
            name = recoveries.key(recovery)
            if check.is_left(name, journal.done):
                one = self._recovery(judges, recovery, seen)
                more = recoveries.members(recovery)
                journal.add(more.pop("image"), check=self.identity, **one, **more)
                images = one.get("nested", {}).get("images", 0)
                place = (depth, number, len(level), images)
                self.say("depth %d, recovery %d of %d: %d images" % place)
            for each in journal.done[name].get("nested", {}).get("again", ()):
                further = recoveries.again_restored(each, recovery, self.explored.folder)
                seen.add(recoveries.key(further))
                following.append(further)
        return following

    def run(self, judges, done, marks=None):
        """What there is about all recoveries: the member `nested` of check.json.

        done, marks: verdicts of the check about the first cuts, and its states."""
        self.done, self.marks = done, marks
        path, level, levels = self.explored.folder / JOURNAL, self._first(), []
        seen = {recoveries.key(each) for each in level}
        with verdicts.Journal(path) as journal:
            check.require_same(journal.done, self.identity, path)
            while level or not levels:
                levels.append(level)
                level = self._depth(level, len(levels), judges, journal, seen)
            lines = dict(journal.done)
        result = self._result(levels, lines, judges)
        if all(one["verdict"] != "failed" for one in lines.values()):
            shutil.rmtree(self.explored.folder / FOLDER / recoveries.IMAGES, ignore_errors=True)
        return result

    # -- the result

    def _groups(self, levels, lines):
        """{what and why: [(recovery, row)]} of all bugs."""
        groups = {}
        for recovery in (each for level in levels for each in level):
            for row in lines[recoveries.key(recovery)].get("nested", {}).get("bugs", ()):
                key = (row["verdict"], str(row["status"]), tuple(row["cause"]))
                groups.setdefault(key, []).append((recovery, row))
        return list(groups.values())

    def _minimal(self, judges, recovery, row):
        """The minimal example of a row, or None; from the file, if it was made before."""
        place = self._place(recovery)
        path, key = place / check_report.MINIMAL, verdicts.key_of(row["example"])
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if key not in known:
            found, judge = Explored(place / "explored"), judges.get()
            vm = judge.start(judge.vms[0])
            rest = (self.promises, self._window(recovery), self.done)
            reducer = reduce.Reducer(found, vm, self.checker.timeout, *rest)
            reducer.outer = recovery.unit.occurrences[0]
            one = reducer.reduce(row)
            known[key] = one and reduce.with_events(found, one)
            explore.write(path, json.dumps(known, indent=1) + "\n")
        return known[key]

    def _bug(self, number, members, judges):
        recovery, row = min(members, key=lambda each: len(each[1]["example"]["deviations"] or ()))
        minimal = None
        if (
            not self.options.no_reduce
            and number <= reduce.BUGS_MAX
            and row["example"]["deviations"]
        ):
            minimal = self._minimal(judges, recovery, row)
        earlier = recoveries.cuts(recovery.unit.occurrences[0])
        return {
            "number": number,
            "verdict": row["verdict"],
            "status": row["status"],
            "step": row["step"],
            "cause": row["cause"],
            "depth": len(earlier),
            "recoveries": len({recoveries.key(each[0]) for each in members}),
            "images": sum(each[1]["images"] for each in members),
            "recovered": {**recoveries.cut_row(earlier[-1]), "promises": recovery.unit.promises},
            "cuts": [recoveries.cut_row(each) for each in earlier],
            "folder": "%s/%s" % (FOLDER, recoveries.key(recovery)),
            "example": row["example"],
            "minimal": minimal,
        }

    def _result(self, levels, lines, judges):
        depths = []
        unsteady = 0
        for level in levels:
            parts = [lines[recoveries.key(each)] for each in level]
            unsteady += sum("nested" not in one for one in parts)
            depths.append(recoveries.counted([x["nested"] for x in parts if "nested" in x]))
        found = {"strategy": self.options.nested_strategy, "depth": self.depth}
        found.update({name: sum(x[name] for x in depths) for name in depths[0] if name[0] != "v"})
        counts = {}
        for name, count in (each for one in depths for each in one["verdicts"].items()):
            counts[name] = counts.get(name, 0) + count
        groups = self._groups(levels, lines)
        found["verdicts"] = counts
        found["depths"] = depths
        found["doubt"] = unsteady + counts.get("unsteady", 0) + counts.get("failed", 0)
        found["bugs"] = [self._bug(n, members, judges) for n, members in enumerate(groups, 1)]
        found["notes"] = recoveries.notes(found, unsteady)
        return found


def left_out(found):
    """How many crash points were not explored, or not to the end."""
    rows = [row.get("images", {}) for row in found.result.get("platforms") or ()]
    return sum(row.get("points-left-out") or 0 for row in rows)
