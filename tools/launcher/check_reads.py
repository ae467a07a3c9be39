# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --reads`: images that differ in what the checker reads, and no others.

A checker cannot tell images apart that differ only in lines that it does not read.  So the rounds
begin with the images in which everything survived, one of each crash point; what their checks read
decides which images the explorer makes for the next round (--strategy reads), until checks read
nothing new.  Then each image that any cut could leave is equal, in all that the checker reads, to
one that was checked (docs/crash-laboratory-points.md).

The folder EXPLORED/reads is an exploration of its own.  Its journal has with each verdict in which
round it was, and what its checks were the first to read.  A round depends on nothing but the lines
of the rounds before it, so a check that was killed goes on in the round in which it was.

A shard has a folder of its own, EXPLORED/reads-I-of-N, and checks the images that belong to it by
their hash.  It knows the journals of all shards beside it.  If one of these has not finished a
round, it waits (--wait) or ends, and goes on when the command is given again.
"""
import time

from . import check, compare, explore, verdicts
from .errors import LabError, UsageError
from .explored import Explored, evenly
from .read_lines import Lines

FOLDER, FILE = "reads", "reads.txt"
FOLDERS = "reads*"
ROUNDS_MAX = 1000
PAUSE_S = 2.0
DROPPED = ("--strategy", "--reads")  # of the exploration's own options


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


def _round_of(one):
    """The round of a line of a journal."""
    number = one.get("round", 1)
    if not isinstance(number, int) or not 1 <= number <= ROUNDS_MAX:
        raise LabError("a line about image %s has a round that cannot be" % one["image"])
    return number


def _lines(known, end):
    """The Lines that were read in the rounds before this one."""
    found = Lines()
    for one in known.values():
        if _round_of(one) < end:
            found.add(one.get("reads", ()))
    return found


class Rounds:
    """The rounds of a check; after run(): explored, selection, marks, done and info.

    out: the folder of results, in place of EXPLORED; journals: those of all shards, to merge them:
    nothing is checked then."""

    def __init__(self, explored, checker, options, say, out=None, journals=None):
        self.checker, self.options, self.say = checker, options, say
        self.identity = checker.identity(explored)
        self.shard = verdicts.shard_of(options.shard) if options.shard else None
        if options.journal or options.nested or options.nested_depth:
            raise UsageError("crash check: --reads goes with none of --journal, --nested")
        name = "%s-%d-of-%d" % (FOLDER, *self.shard) if self.shard else FOLDER
        self.folder, self.journals = (out or explored.folder) / name, journals
        self.recording = explored.recording("crash check --reads explores its traces again")
        self.words = explored.options(DROPPED)
        self.words += ["--strategy", "reads", "--reads", str(self.folder / FILE)]
        self.programs, self.kallsyms = explored.symbols(), explored.kallsyms()
        self.lines = Lines()
        self.explored = self.selection = self.marks = self.done = self.info = None
        self.units = []  # of all shards, in this round
        self.left = 0

    def _known(self):
        """{key: line} of all that was checked."""
        paths = self.journals
        if paths is None:
            paths = [self.folder / check.VERDICTS]
            if self.shard:
                paths = sorted(self.folder.parent.glob("%s/%s" % (FOLDERS, check.JOURNALS)))
        return check.known(paths, self.identity)

    def _explore(self, known, number):
        """Images of what was read in the rounds before this one."""
        self.lines = _lines(known, number)
        explore.write(self.folder / FILE, self.lines.text())
        status, result, _ = explore.explore(
            *(self.recording, self.folder, self.words, self.programs, self.kallsyms), quiet=True
        )
        if not result or status not in (explore.GOOD, explore.BUGS, explore.NO_VERDICT):
            raise LabError("the explorer ended with status %d" % status)
        self.explored = Explored(self.folder)
        options = self.options
        self.selection = check.Selection(
            self.explored, options.platform, options.promises, None, options.shard
        )
        self.selection.limit = options.limit
        if options.compare:
            platform = self.selection.platforms[0]
            self.marks = compare.states(self.explored, platform, options.promises, options.compare)

    def _choose(self, known, number):
        """At most --limit images of all rounds, those of earlier ones among them.  Returns how many
        are new."""
        units = self.selection.units
        old = {name for name, one in known.items() if _round_of(one) < number}
        new = [unit for unit in units if check.key(unit) not in old]
        if self.options.limit:
            count = len(units) - len(new)
            chosen = evenly(new, max(0, self.options.limit - count))
            self.left = len(new) - len(chosen)
            wanted = old | {check.key(unit) for unit in chosen}
            self.selection.choose([unit for unit in units if check.key(unit) in wanted])
            new = chosen
        self.units = self.selection.units
        return len(new)

    def _missing(self, known):
        """How many verdicts of this round are not there."""
        wanted = [*self.units, *(self.marks.units() if self.marks else ())]
        found = sum(check.key(unit) not in known for unit in wanted)
        if not found and self.marks:
            found = len(self.marks.doubtful(self.units, known))
        return found

    def _round(self, number, judges):
        """Checks what is this shard's; returns how many verdicts are missing."""
        known = self._known()
        self._explore(known, number)
        count, before = self._choose(known, number), len(self.lines)
        if judges:
            self.say("round %d: %d lines are read, %d new images" % (number, before, count))
            self.done = check.check(
                *(self.explored, self.checker, self.selection, self.marks, self.options, self.say),
                judges=judges,
                lines=self.lines,
                more={"round": number},
            )
        limit = time.monotonic() + self.options.wait
        while (missing := self._missing(self._known())) and time.monotonic() < limit:
            time.sleep(PAUSE_S)
        return missing

    def run(self, judges=None):
        """judges: None: nothing is checked."""
        self.folder.mkdir(parents=True, exist_ok=True)
        number = max(map(_round_of, self._known().values()), default=1)
        while True:
            missing = self._round(number, judges)
            known = self._known()
            before, self.lines = _lines(known, number), _lines(known, number + 1)
            new = len(self.lines) > len(before)
            if missing or not new or self.left or number == ROUNDS_MAX:
                break
            number += 1
        if not judges:
            self.done = known
        explore.write(self.folder / FILE, self.lines.text())
        why = "--limit" if self.left else "after %d rounds" % number if new else ""
        if missing:
            why = "%d verdicts of round %d are missing" % (missing, number)
        self._tell(number, why, missing)

    def _tell(self, number, why, missing):
        """Makes what the result says of the rounds."""
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
        if missing:
            self.info["doubt"] = missing
            if self.shard:
                self.info["notes"].append("Give this command again when other shards have ended.")


def judges_of(explored, checker, options, say):
    """The Judges of all rounds."""
    platform = check.Selection(explored, options.platform, False, None, None).platforms[:1]
    if not platform:
        raise UsageError("there is nothing to check: no platform claims what was promised")
    return check.Judges(explored, checker, platform[0], options.jobs, say, reads=True)


def run(explored, checker, options, say, judges):
    """All rounds; returns the Rounds.  judges: from judges_of()."""
    rounds = Rounds(explored, checker, options, say)
    rounds.run(judges)
    return rounds
