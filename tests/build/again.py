# SPDX-License-Identifier: GPL-2.0-or-later
"""Explorers and judges that are no machines, for tests of `crash check --reads` and `--nested`."""
import contextlib
import json
import os
import tempfile
from pathlib import Path

from judges import ADR, IMAGES, Judge, judged_by, make_explored, occurrence, options
from launcher import check, check_nested, check_reads, check_report, explore, explored

# Thousands of small files are written, and a busy disk would take minutes for that.
MEMORY = "/dev/shm"
if os.access(MEMORY, os.W_OK):
    tempfile.tempdir = MEMORY

BASE = 0x100000000
# What a report needs of an exploration that has found nothing.
EMPTY = {"verdict": "none", "target": "beta", "told": "adr", "notes": [], "traces": []}
EMPTY.update({"bugs": [], "not-claimed": [], "acknowledgements": []})
EMPTY["promises"] = {"promises": 0, "acknowledgements": 0}
EMPTY_ROW = {"promises": {}, "crash-points": 1}
# Of 1 and 2, the images of the first cut; 30 is bad.
DEEP = {1: (21, 2, 23, 24), 2: (22, 1), 21: (23, 22), 22: (30, 23), 23: (25,), 24: (25,), 25: (30,)}


def address(line):
    return BASE + 64 * 5 * line


class Reader(Judge):
    """Reads line 0; line 1 if 0 is lost; line 2 if both are, which is bad if it is lost, too.  It
    never reads line 3."""

    def __init__(self, ends_after=None):
        super().__init__({8: ("exit", 1), 16: ("exit", 1)})
        self.ends_after = ends_after

    def check(self, *words):
        if self.ends_after is not None and len(self.seen) >= self.ends_after:
            raise KeyboardInterrupt
        return super().check(*words)

    def reads(self):
        lost = IMAGES.index(self.seen[-1])
        count = 1
        while count < 3 and lost >> (count - 1) & 1:
            count += 1
        return [[address(line), 64] for line in range(count)]


class Explorer:
    """Stands for explore.explore: images of the lines that the file names, all else survives.
    Image n + 1 has lost the lines of the bits of n."""

    def __init__(self, left_out=0, lines=4):
        self.calls, self.left_out, self.lines = [], left_out, lines

    def __call__(self, recording, output, words, programs, kallsyms, quiet):
        assert words[-4:-1] == ["--strategy", "reads", "--reads"] and quiet, words
        assert ("--domain", "adr") in list(zip(words, words[1:])) and "only" not in words
        text = Path(words[-1]).read_text()
        known = {int(line.split()[0], 16) for line in text.splitlines()}
        lines = [n for n in range(self.lines) if address(n) in known]
        self.calls.append(lines)
        images = []
        for bits in range(1 << self.lines):
            if all(bits >> n & 1 <= (n in lines) for n in range(self.lines)):
                lost = [{"question": n, "answer": 0} for n in lines if bits >> n & 1]
                images.append(dict(occurrence(bits + 1, ADR, deviations=lost), behind=10))
        make_explored(output, images)
        row = {"images": {"points-left-out": self.left_out, "points-cut-short": 0}}
        rows = [{"platform": name, "claimed": True, **row} for name in ADR]
        found = {**EMPTY, "platforms": [{**EMPTY_ROW, **row} for row in rows]}
        (output / "result.json").write_text(json.dumps(found))
        return explore.NO_VERDICT, found, output


class Never:
    """An exploration of a recording that is there."""

    @staticmethod
    def make(folder):
        make_explored(folder)
        (folder.parent / "beta.trace").write_bytes(b"")
        source = {
            "traces": ["../beta.trace"],
            "options": ["--domain", "adr", "--strategy", "only"],
            "symbols": [],
        }
        rows = [{**EMPTY_ROW, "platform": name, "claimed": True} for name in ADR]
        found = {**EMPTY, "source": source, "platforms": rows}
        (folder / "result.json").write_text(json.dumps(found))
        return explored.Explored(folder)


@contextlib.contextmanager
def explored_by(explorer):
    before, explore.explore = explore.explore, explorer
    try:
        yield explorer
    finally:
        explore.explore = before


def read(found, judge, explorer, **more):
    """A check with --reads; returns its Rounds."""
    args = options(reads=True, **more)
    checker = check.checker_of(args, found)
    with judged_by(judge), explored_by(explorer):

        def quiet(_):
            pass

        with check_reads.judges_of(found, checker, args, quiet) as judges:
            return check_reads.run(found, checker, args, quiet, judges)


# -- recoveries


class Recovering(Judge):
    """Good about all images but 30; a recording is a file with the name of the image."""

    def __init__(self, table=None):
        super().__init__({30: ("exit", 1)} if table is None else table)
        self.traces = []

    def check(self, path, script, data, timeout, trace=None):
        if trace:
            self.traces.append(Path(path).stem)
            Path(trace).write_text(Path(path).stem)
        return super().check(path, script, data, timeout)


class Second:
    """Stands for explore.explore: a recovery of image 2 leaves images 21 and 30, others 21.

    table: {number of an image: those that its recovery leaves}, in place of that."""

    def __init__(self, table=None):
        self.words, self.onto = [], []
        self.table = {2: (21, 30)} if table is None else table

    def __call__(self, recording, output, words, programs, quiet):
        self.words.append(words)
        number = IMAGES.index(Path(recording).read_text()) + 1
        self.onto.append(Path(words[words.index("--onto") + 1]).read_bytes())
        numbers = self.table.get(number, (21,))
        line = [{"question": 1, "answer": 0, "what": "line"}]
        make_explored(output, [occurrence(n, ADR, deviations=line) for n in numbers])
        row = {"images": {"points-left-out": 1}}
        found = {"platforms": [{"platform": name, "claimed": True, **row} for name in ADR]}
        (output / "result.json").write_text(json.dumps(found))
        return explore.NO_VERDICT, found, output


def recover(found, judge, explorer, marks=None, **more):
    """A check with --nested; returns its result."""
    args = options(nested=True, no_reduce=True, **more)
    checker = check.checker_of(args, found)
    selection = check.Selection(found, args.platform, args.promises, args.limit, args.shard)
    with judged_by(judge), explored_by(explorer):
        nested = check_nested.Nested(found, checker, selection, args, lambda text: None)
        with check.Judges(found, checker, "adr,ddio=on", 1, print) as judges:
            done = check.check(found, checker, selection, marks, args, lambda text: None, judges)
            info = nested.run(judges, done, marks)
    return check_report.result(found, checker, selection, done, marks, {"nested": info})
