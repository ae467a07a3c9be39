# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --nested`: a power cut while the program recovers from a power cut.

What the checker's VM does while the script runs on a good image is recorded, and explored on top of
that image; the script then has to judge the images of this exploration as good, too.  So a recovery
that cannot be repeated is found: one that has changed what it needs when it begins anew.

With --nested-depth 2 the recoveries of these images are cut in turn, and so on.  All recoveries of
one depth come before those of the next, so one that occurs at several is recorded at the first.

EXPLORED/nested.jsonl has a line for each recovery, EXPLORED/nested/KEY its recording and its
exploration if they show a bug, and EXPLORED/nested/again the images of the next depth.

A shard has a journal of its own, nested-I-of-N.jsonl.  It records the recoveries that belong to it
by their image's hash, of a depth that it knows from the journals of all shards in the folder.  If
one of these has not finished the depth before, it waits (--wait) or ends, and goes on when the
command is given again.
"""
import hashlib
import json
import os
import secrets
import shutil
import time

from . import check, check_report, compare, explore, nested_result, recoveries, reduce, verdicts
from .check_run import Run, order, verdict_of
from .errors import LabError, UsageError
from .explored import START, Explored, promise_line
from .recoveries import FOLDER

JOURNAL, TRACE, ONTO = "nested.jsonl", "recovery.trace", "onto.image"
JOURNALS = "nested*.jsonl"
ELF = b"\x7fELF"
PAUSE_S = 2.0


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
        if options.reads:
            raise UsageError("crash check: --nested does not go with --reads")
        self.explored, self.checker, self.selection = explored, checker, selection
        self.options, self.say = options, say
        self.settings = selection.nested = recoveries.settings_of(options)
        self.shard = selection.shard
        self.identity = checker.identity(explored) + self.settings.identity()
        self.programs = _programs(checker)
        self.marks = self.done = None  # of the check
        self.window = None  # of a kept bug, whose run's states are not there
        self.promises = []
        if selection.promises:
            self.promises = [promise_line(each) for each in explored.promises()]

    def _place(self, recovery):
        return nested_result.place_of(self.explored.folder, recovery)

    def _mine(self, recovery):
        return not self.shard or verdicts.in_shard(recovery.unit.image, self.shard)

    def _start(self, recovery, place):
        """Options of the explorer: what the recording of a recovery begins with."""
        if not recovery.path:
            return []
        words = ["--onto", str((place / ONTO).absolute())]
        for extent in self.explored.extents:
            words += ["--base", "%s=%s" % (extent.name, extent.file.absolute())]
        return words

    def _window(self, recovery):
        """With --compare: the states that are right for it; else None."""
        if self.window:
            return self.window
        return self.marks and compare.Window.of(self.marks, recovery.steps, self.done)

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
        words += ["--strategy", self.settings.strategy]
        words += ["--max-images", str(self.settings.images)]
        words += self.explored.arrivals() + self._start(recovery, place)
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

    def _judge(self, judge, recovery, place):
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
                "candidates": self._candidates(recovery, found, good),
            },
        }

    def _candidates(self, recovery, found, good):
        """The good images of which the recoveries may be cut, too; their files are kept."""
        if len(recoveries.cuts(recovery.unit.occurrences[0])) >= self.settings.depth:
            return []
        folder = self.explored.folder / FOLDER / recoveries.IMAGES
        folder.mkdir(parents=True, exist_ok=True)
        for image in {unit.image for unit in good} - {START}:
            _keep(found.path(image), folder / (image + ".image"))
        return [recoveries.candidate(unit) for unit in good]

    def _recovery(self, judges, recovery):
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
            one = self._judge(judge, recovery, place)
        if one["verdict"] != "bug":
            shutil.rmtree(place)
        return one

    # -- all of them

    def _known(self, done):
        """Verdicts about the images of the first cut: those of all shards."""
        if not self.shard:
            return done
        paths = sorted(self.explored.folder.glob(check.JOURNALS))
        return {**check.known(paths, self.checker.identity(self.explored)), **done}

    def _levels(self, journal):
        """All recoveries that are known to this shard."""
        lines = dict(journal.done)
        if self.shard:
            others = sorted(self.explored.folder.glob(JOURNALS))
            lines = {**check.known(others, self.identity), **lines}
        first = recoveries.first_level(
            *(self.explored, self.selection.units, self.done, self.marks)
        )
        return recoveries.Levels(first, self.settings, lines, self.explored.folder)

    def _record_all(self, levels, judges, journal, tried):
        """Records what is left of the first depth of which something is; False if nothing is."""
        for depth, level in enumerate(levels.all, 1):
            names = {recoveries.key(each): each for each in level if self._mine(each)}
            todo = [name for name in names if check.is_left(name, levels.lines)]
            todo = [name for name in todo if name not in tried]
            for number, name in enumerate(todo, len(names) - len(todo) + 1):
                one = self._recovery(judges, names[name])
                tried.add(name)
                more = recoveries.members(names[name])
                journal.add(more.pop("image"), check=self.identity, **one, **more)
                images = one.get("nested", {}).get("images", 0)
                place = (depth, number, len(names), images)
                self.say("depth %d, recovery %d of %d: %d images" % place)
            if todo:
                return True
        return False

    def _absent(self, levels):
        """How many verdicts and recoveries of other shards have to be known before the rest is."""
        if not self.shard or self.settings.depth == 1:
            return 0
        units = [unit for unit in self.selection.units if check.key(unit) not in self.done]
        return len(units) + levels.missing

    def run(self, judges, done, marks=None):
        """What there is about all recoveries, or those of this shard: the member `nested`.

        done, marks: verdicts of the check about the first cuts, and its states."""
        self.marks, tried = marks, set()
        path = self.explored.folder / JOURNAL
        if self.shard:
            path = path.with_name("nested-%d-of-%d.jsonl" % self.shard)
        with verdicts.Journal(path) as journal:
            check.require_same(journal.done, self.identity, path)
            limit = time.monotonic() + self.options.wait
            while True:
                self.done = self._known(done)
                levels = self._levels(journal)
                if self._record_all(levels, judges, journal, tried):
                    limit = time.monotonic() + self.options.wait
                    continue
                absent = self._absent(levels)
                if not absent or time.monotonic() >= limit:
                    break
                time.sleep(PAUSE_S)
            return self._result(levels, judges, absent)

    # -- the result

    def _minimal(self, judges, recovery, row):
        """The minimal example of a row, or None; from the file, if it was made before."""
        place = self._place(recovery)
        known, name = nested_result.known_minimal(place), verdicts.key_of(row["example"])
        if name not in known:
            found, judge = Explored(place / "explored"), judges.get()
            found.start = self._start(recovery, place)
            vm = judge.start(judge.vms[0])
            rest = (self.promises, self._window(recovery), self.done)
            reducer = reduce.Reducer(found, vm, self.checker.timeout, *rest)
            reducer.outer = recovery.unit.occurrences[0]
            one = reducer.reduce(row)
            known[name] = one and reduce.with_events(found, one)
            explore.write(place / check_report.MINIMAL, json.dumps(known, indent=1) + "\n")
        return known[name]

    def _result(self, levels, judges, absent):
        def minimal(number, recovery, row):
            if self.options.no_reduce or number > reduce.BUGS_MAX:
                return None
            return row["example"]["deviations"] and self._minimal(judges, recovery, row) or None

        folder = self.explored.folder
        if not self.shard:
            found = nested_result.Result(levels, self.settings, folder, minimal=minimal).result()
            if all(one["verdict"] != "failed" for one in levels.lines.values()):
                shutil.rmtree(folder / FOLDER / recoveries.IMAGES, ignore_errors=True)
            return found
        found = nested_result.Result(levels, self.settings, folder, self._mine).result()
        if absent:
            found["doubt"] += absent
            text = "%d verdicts or recoveries of other shards come first; then give it again."
            found["notes"].append(text % absent)
        return found


def _keep(path, target):
    """Keeps an image of a recovery; others may do this at once."""
    try:
        os.link(path, target)
    except FileExistsError:  # the same one: its name is that of its content
        return
    except OSError:  # a file system without links
        new = "%s.%s.new" % (target, secrets.token_hex(4))
        shutil.copy(path, new)
        os.replace(new, target)


def left_out(found):
    """How many crash points were not explored, or not to the end."""
    rows = [row.get("images", {}) for row in found.result.get("platforms") or ()]
    return sum(row.get("points-left-out") or 0 for row in rows)
