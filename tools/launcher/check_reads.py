# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --reads`: images that differ in what the checker reads, and no others.

A checker cannot tell images apart that differ only in lines that it does not read.  So the rounds
begin with the images in which everything survived, one of each crash point; what their checks read
decides which images the explorer makes for the next round (--strategy reads), until checks read
nothing new.  Then each image that any cut could leave is equal, in all that the checker reads, to
one that was checked (docs/crash-laboratory-points.md).

The folder EXPLORED/reads is an exploration of its own.  Its journal has with each verdict what its
checks were the first to read, so a check that was killed goes on.
"""
import json

from . import check, compare, explore, verdicts
from .errors import LabError, UsageError
from .explored import Explored, evenly
from .read_lines import Lines

FOLDER, FILE = "reads", "reads.txt"
ROUNDS_MAX = 1000
DROPPED = ("--strategy", "--reads")  # of the exploration's own options


def _recording(explored):
    """What `crash explore` was given: a folder of traces, or one trace."""
    traces = explored.traces()
    if not traces:
        raise LabError(
            "the recording that %s was made from is not there" % explored.folder,
            "crash check --reads explores its traces again",
        )
    folder = traces[0].parent
    if {path.resolve() for path in folder.glob("*.trace")} == {path.resolve() for path in traces}:
        return folder
    if len(traces) > 1:
        raise LabError("%s has other traces than those that were explored" % folder)
    return traces[0]


def _options(explored):
    """Those of the exploration, with another strategy."""
    given = explored.result["source"].get("options") or []
    rows = [row for row in zip(given[::2], given[1::2]) if row[0] not in DROPPED]
    rows += [("--strategy", "reads"), ("--reads", str(explored.folder / FOLDER / FILE))]
    return [word for row in rows for word in row]


def _restore(lines, path):
    """What the checks of a journal read.  All of its lines count: a second verdict about an image
    does not repeat what was known."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except UnicodeDecodeError as error:
        raise LabError("%s is no file of verdicts" % path) from error
    for line in text.split("\n")[:-1]:
        try:
            lines.add(json.loads(line).get("reads", ()))
        except (ValueError, AttributeError) as error:
            raise LabError("%s has a line that is no verdict: %.60s" % (path, line)) from error


def _left_out(found):
    """{what: number} of crash points that were not explored, or not to the end."""
    rows = [row.get("images", {}) for row in found.result.get("platforms") or ()]
    names = ("points-left-out", "points-cut-short")
    return {name: sum(row.get(name) or 0 for row in rows) for name in names}


def _note(info):
    """What makes the result less than it seems, as sentences."""
    notes = []
    if not info["complete"]:
        notes.append("Not all that the checker reads was explored: %s." % info["why"])
    if info["images-left-out"]:
        notes.append("%d images were not checked (--limit)." % info["images-left-out"])
    if info["points-left-out"]:
        notes.append("%d crash points were left out (--max-images)." % info["points-left-out"])
    if info["points-cut-short"]:
        notes.append(
            "%d crash points have more images than --reads-per-point." % info["points-cut-short"]
        )
    return notes


class Rounds:
    """The rounds of a check; after run(): explored, selection, marks, done and info."""

    def __init__(self, explored, checker, options, say):
        self.checker, self.options, self.say = checker, options, say
        self.folder = explored.folder / FOLDER
        self.recording, self.words = _recording(explored), _options(explored)
        self.programs = explored.symbols()
        self.lines = Lines()
        self.explored = self.selection = self.marks = self.done = self.info = None
        self.left = 0
        if options.shard or options.journal or options.nested or options.nested_depth:
            raise UsageError("crash check: --reads goes with none of --shard, --journal, --nested")

    def _explore(self):
        """Images of what is known to be read."""
        explore.write(self.folder / FILE, self.lines.text())
        status, result, _ = explore.explore(
            self.recording, self.folder, self.words, self.programs, quiet=True
        )
        if not result or status not in (explore.GOOD, explore.BUGS, explore.NO_VERDICT):
            raise LabError("the explorer ended with status %d" % status)
        self.explored = Explored(self.folder)
        options = self.options
        self.selection = check.Selection(
            self.explored, options.platform, options.promises, None, None
        )
        self.selection.limit = options.limit
        if options.compare:
            platform = self.selection.platforms[0]
            self.marks = compare.states(self.explored, platform, options.promises)

    def _choose(self):
        """At most --limit images of all rounds, those of earlier ones among them."""
        known = verdicts.read(self.folder / check.VERDICTS)
        new = check.left(self.selection.mine, known)
        if self.options.limit:
            old = [unit for unit in self.selection.mine if check.key(unit) in known]
            chosen = evenly(new, max(0, self.options.limit - len(old)))
            self.left = len(new) - len(chosen)
            wanted = {check.key(unit) for unit in old + chosen}
            self.selection.mine = [x for x in self.selection.mine if check.key(x) in wanted]
            return len(chosen)
        return len(new)

    def _round(self, number, judges):
        """False: nothing new was read."""
        self._explore()
        count, before = self._choose(), len(self.lines)
        self.say("round %d: %d lines are read, %d new images" % (number, before, count))
        self.done = check.check(
            *(self.explored, self.checker, self.selection, self.marks, self.options, self.say),
            judges=judges,
            lines=self.lines,
        )
        return len(self.lines) > before

    def run(self, judges):
        self.folder.mkdir(exist_ok=True)
        _restore(self.lines, self.folder / check.VERDICTS)
        number = 1
        while (new := self._round(number, judges)) and not self.left and number < ROUNDS_MAX:
            number += 1
        why = "--limit" if self.left else "after %d rounds" % number if new else ""
        explore.write(self.folder / FILE, self.lines.text())
        self.info = {
            "rounds": number,
            "lines": len(self.lines),
            "ranges": len(self.lines.ranges()),
            "complete": not why,
            "why": why,
            "images-left-out": self.left,
            **_left_out(self.explored),
        }
        self.info["notes"] = _note(self.info)


def run(explored, checker, options, say):
    """All rounds; returns the Rounds."""
    rounds = Rounds(explored, checker, options, say)
    platform = check.Selection(explored, options.platform, False, None, None).platforms[:1]
    if not platform:
        raise UsageError("there is nothing to check: no platform claims what was promised")
    with check.Judges(explored, checker, platform[0], options.jobs, say, reads=True) as judges:
        rounds.run(judges)
    return rounds
