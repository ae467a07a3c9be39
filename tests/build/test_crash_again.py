#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `crash check --reads` and `--nested` with explorers and judges that are no machines;
tests/vm/core has real ones."""
import contextlib
import io
import json
import random
import shutil
import sys

import cases

sys.dont_write_bytecode = True
from again import DEEP, Explorer, Never, Reader, Recovering, Second  # noqa: E402
from again import explored_by, read, recover  # noqa: E402
from judges import ADR, IMAGES, Judge, judged_by, make_explored  # noqa: E402
from judges import occurrence, placeless, refused  # noqa: E402
from launcher import check_report, check_verbs, cli, compare, explore, explored  # noqa: E402
from launcher import merge, read_lines, reduce, verdicts  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


@case
def sets_of_lines(_folder):
    """A set of lines says which of those that are added are new"""
    rng, bits = random.Random(3), set()
    lines = read_lines.Lines()
    for _ in range(300):
        ranges = [(rng.randrange(6000), rng.randrange(1, 300)) for _ in range(rng.randrange(4))]
        more = {n for at, size in ranges for n in range(at // 64, (at + size - 1) // 64 + 1)}
        new = lines.add([list(each) for each in ranges])
        assert {at // 64 + n for at, size in new for n in range(size // 64)} == more - bits
        bits |= more
        assert len(lines) == len(bits)
        found = lines.ranges()
        assert all(x[0] + x[1] < y[0] for x, y in zip(found, found[1:])), found
    assert lines.text().splitlines()[0] == "%#x %d" % tuple(lines.ranges()[0])
    for wrong in ([[0, 0]], [[-64, 64]], [["a", 1]], [[1 << 64, 64]], 7):
        assert "cannot be" in refused(LabError, lines.add, wrong), wrong


@case
def reading(folder):
    """Images are made of what the checker reads, until it reads nothing new"""
    found, judge, explorer = Never.make(folder / "e"), Reader(), Explorer()
    rounds = read(found, judge, explorer)
    assert explorer.calls == [[], [0], [0, 1], [0, 1, 2]], explorer.calls
    assert sorted(set(judge.seen), key=IMAGES.index) == IMAGES[:8], judge.seen
    assert judge.seen.count(IMAGES[7]) == 2  # a bad one is checked twice, others once
    assert len(judge.seen) == 9
    info = rounds.info
    assert (info["rounds"], info["lines"], info["ranges"]) == (4, 3, 3), info
    assert info["complete"] and not info["notes"], info
    assert (folder / "e" / "reads" / "reads.txt").read_text() == rounds.lines.text()
    more = {"reads": info}
    parts = (rounds.explored, rounds.checker, rounds.selection, rounds.done)
    result = check_report.result(*parts, more=more)
    assert result["verdict"] == "bugs" and result["reads"]["rounds"] == 4
    assert any("reads 3 lines" in line for line in check_report.lines(result))
    # The same command checks nothing again.
    again = Reader()
    assert read(found, again, Explorer()).info["lines"] == 3 and not again.seen


@case
def reading_goes_on(folder):
    """A check with --reads that was ended knows what it has read, and does nothing twice"""
    for ends_after in range(9):
        found = Never.make(folder / str(ends_after))
        first = Reader(ends_after)
        with contextlib.suppress(KeyboardInterrupt):
            read(found, first, Explorer())
            raise AssertionError("it did not end")
        judge = Reader()
        rounds = read(found, judge, Explorer())
        assert len(rounds.lines) == 3 and rounds.info["complete"]
        done = verdicts.read(rounds.folder / "verdicts.jsonl")
        assert sorted(done, key=IMAGES.index) == IMAGES[:8]
        twice = set(first.seen) & set(judge.seen)
        assert twice <= {IMAGES[7]}, (ends_after, twice)


@case
def reading_limits(folder):
    """What --limit and --max-images leave out is said; other journals are refused"""
    found = Never.make(folder / "a")
    rounds = read(found, Reader(), Explorer(), limit=3)
    assert len(rounds.done) == 3 and rounds.info["images-left-out"] == 1, rounds.info
    assert "Not all that the checker reads was explored" in rounds.info["notes"][0]
    rounds = read(Never.make(folder / "b"), Reader(), Explorer(left_out=2))
    assert rounds.info["points-left-out"] == 4 and "--max-images" in rounds.info["notes"][0]
    for more in ({"journal": "x"}, {"nested": True}, {"nested_depth": 2}):
        words = refused(UsageError, lambda more=more: read(found, Reader(), Explorer(), **more))
        assert "goes with none" in words
    (folder / "beta.trace").unlink()
    assert "is not there" in refused(LabError, read, found, Reader(), Explorer())


class OtherVM:
    """Stands for explore.explore: 3 images of the VM that --target names; gamma has no NVDIMM."""

    def __init__(self, meanwhile=None):
        self.words, self.meanwhile = [], meanwhile

    def __call__(self, recording, output, words, programs, quiet):
        self.words.append(words)
        if words[-1] == "gamma":
            return explore.WRONG, None, output
        make_explored(output, [occurrence(n, ADR, deviations=[]) for n in (1, 2, 3)])
        found = json.loads((output / "images.json").read_text())
        (output / "images.json").write_text(json.dumps({**found, "target": words[-1]}))
        if self.meanwhile:
            self.meanwhile()
        return explore.NO_VERDICT, {"platforms": []}, output


@case
def other_vm(folder):
    """With --vm images of another VM are explored once, and checked in a folder of their own"""
    found = Never.make(folder / "e")
    for name in ("alpha", "gamma"):
        (folder / (name + ".trace")).write_bytes(b"")
    source = json.loads((folder / "e" / "result.json").read_text())
    names = ("alpha", "beta", "gamma")
    source["source"]["traces"] = ["../%s.trace" % name for name in names]
    source["source"]["options"] += ["--target", "beta"]
    (folder / "e" / "result.json").write_text(json.dumps(source))
    explorer, place = OtherVM(), folder / "e" / "vm-alpha"
    words = ("check", "--no-reduce", "--script", "x", "--vm")

    def command(judge, *more):
        args = cli.make_parser().parse_args(
            ["crash", *map(str, (*words, *more)), str(folder / "e")]
        )
        with judged_by(judge), explored_by(explorer), contextlib.redirect_stderr(io.StringIO()):
            with contextlib.redirect_stdout(io.StringIO()):
                return check_verbs.do_check(args)

    judge = Judge({2: ("exit", 1)})
    for shard in ("1/2", "2/2"):
        command(judge, "alpha", "--shard", shard)
    assert explorer.words == [["--domain", "adr", "--strategy", "only", "--target", "alpha"]]
    assert sorted(set(judge.seen)) == sorted(IMAGES[:3]) and not list(found.folder.glob("ver*"))
    result, _ = merge.merge(place, [place])
    assert (result["target"], result["verdicts"]) == ("alpha", {"good": 2, "bug": 1}), result
    judge = Judge({})
    assert command(judge, "beta") == 0 and len(judge.seen) == 40  # the one that was explored
    assert "has no such VM" in refused(UsageError, command, judge, "delta")
    assert "needs NVDIMMs" in refused(LabError, command, judge, "gamma")
    assert not [x.name for x in found.folder.iterdir() if "gamma" in x.name]
    # Another shard is faster.
    (folder / "e" / "vm-alpha").rename(folder / "before")
    explorer = OtherVM(lambda: shutil.copytree(folder / "before", place))
    assert command(Judge({}), "alpha") == 1  # the merged verdicts are there
    assert not list(found.folder.glob(".vm*"))


@case
def recovering(folder):
    """Recoveries of good images are cut; a bad image of one of them is a bug of the recovery"""
    images = [occurrence(n, ADR[1:], deviations=[]) for n in (1, 2, 3, 30)]
    images.append(occurrence(2, ADR[:1], deviations=[]))  # by other answers
    found, judge, explorer = make_explored(folder / "e", images), Recovering(), Second()
    found.result["arrivals"] = "late"
    result = recover(found, judge, explorer)
    assert judge.traces == IMAGES[:3], judge.traces  # a bad image has no recovery
    info = result["nested"]
    assert (info["recoveries"], info["images"], info["left-out"]) == (3, 4, 6), info
    (bug,) = info["bugs"]
    assert bug["recovered"]["image"] == IMAGES[1] and bug["example"]["image"] == IMAGES[29], bug
    assert bug["cause"] == ["a line"] and result["verdict"] == "bugs" and len(result["bugs"]) == 1
    words = list(zip(explorer.words[1], explorer.words[1][1:]))
    assert explorer.onto[1] == b"image " + IMAGES[1].encode(), explorer.onto
    base = "pmem0=%s" % found.extents[0].file.absolute()
    rows = (("--base", base), ("--domain", "adr"), ("--ddio", "off,on"), ("--arrivals", "late"))
    for row in rows:
        assert row in words, (row, words)
    # The script knows of both cuts.
    scripts = [script for script, _ in judge.orders if "CRASH_RECOVERY" in script]
    assert len(scripts) == 5 and "CRASH_BEHIND=10 " in scripts[0], scripts
    assert "CRASH_RECOVERY=210" in scripts[0], scripts
    # What shows a bug is kept, and nothing is done again.
    kept = [path.name for path in (found.folder / "nested").iterdir()]
    assert kept == [IMAGES[1]], kept
    again = Recovering()
    assert recover(found, again, Second()) == result and not again.seen
    text = "\n".join(check_report.lines(result))
    assert "3 recoveries" in text and "Recovery bug 1" in text and IMAGES[29] in text, text
    assert "Recovery 1" in check_report.section(result)
    assert check_report.junit(result).count("<failure") == 2


@case
def recovering_promises(folder):
    """Images of a recovery are judged under the promises of the first cut"""
    images = [dict(occurrence(2, ADR, deviations=[]), promises=n) for n in (1, 2)]
    judge = Recovering({})
    result = recover(make_explored(folder / "e", images), judge, Second(), promises=True)
    assert result["verdict"] == "good" and result["nested"]["images"] == 4
    counts = [data.decode().count("durable") for _, data in judge.orders]
    assert sorted(counts) == [1] * 4 + [2] * 4, counts


@case
def recovering_doubt(folder):
    """A recovery that fails when it is recorded is no verdict, and exclusive options are refused"""
    images = [occurrence(n, ADR, deviations=[]) for n in (1, 2)]
    judge = Recovering({2: lambda n: ("exit", int(n > 1))})
    found = make_explored(folder / "e", images)
    result = recover(found, judge, Second())
    assert result["verdict"] == "none" and "when they were recorded" in result["notes"][0], result
    words = refused(UsageError, lambda: recover(found, judge, Second(), reads=True))
    assert "does not go with --reads" in words
    words = refused(UsageError, lambda: recover(found, judge, Second(), nested_images=7))
    assert "another checker" in words


@case
def recovering_again(folder):
    """With --nested-depth recoveries of recoveries are cut, each once; what is left out is said"""
    images = [occurrence(n, ADR, deviations=[]) for n in (1, 2)]
    wanted = {
        # depth: (recoveries, images, bad images, left out, the same as others)
        1: (2, 6, 0, 0, 0),
        2: (6, 12, 1, 0, 2),
        3: (7, 13, 2, 0, 6),
        9: (7, 13, 2, 0, 6),
    }
    for depth, row in wanted.items():
        found = make_explored(folder / str(depth), images)
        judge, explorer = Recovering(), Second(DEEP)
        info = recover(found, judge, explorer, nested_depth=depth)["nested"]
        names = ("recoveries", "images", "again-left-out", "again-same")
        assert tuple(info[x] for x in names) == row[:2] + row[3:], (depth, info)
        assert info["verdicts"].get("bug", 0) == row[2], (depth, info)
        assert len(judge.traces) == len(set(judge.traces)) == row[0], judge.traces
        assert [x.decode() for x in explorer.onto] == ["image " + x for x in judge.traces]
        assert len(info["depths"]) == min(depth, 3), info["depths"]
        assert not (found.folder / "nested" / "again").exists()
    # Of the last of these: the two bugs have one cause; its example is the one of fewer cuts.
    (bug,) = info["bugs"]
    assert (bug["depth"], bug["recoveries"]) == (2, 2), bug
    assert [cut["behind"] for cut in bug["cuts"]] == [20, 220] and bug["example"]["behind"] == 300
    assert any("CRASH_BEHIND=20 " in x and "CRASH_RECOVERY=220,300;" in x for x, _ in judge.orders)
    assert any("CRASH_RECOVERY=230,250,300;" in x for x, _ in judge.orders)
    # At most one of each recovery, the first one that is new.
    found, judge = make_explored(folder / "few", images), Recovering()
    few = recover(found, judge, Second(DEEP), nested_depth=3, nested_recoveries=1)
    info = few["nested"]
    assert judge.traces == [IMAGES[n - 1] for n in (1, 2, 21, 22, 23)], judge.traces
    assert info["again-left-out"] == 2 and "--nested-recoveries" in few["notes"][-1], few["notes"]


@case
def recovering_again_goes_on(folder):
    """A check with --nested-depth that was ended goes on: nothing that is done is recorded again"""
    images = [occurrence(n, ADR, deviations=[]) for n in (1, 2)]
    whole = make_explored(folder / "w", images)
    wanted = recover(whole, Recovering(), Second(DEEP), nested_depth=3)
    wanted = placeless(wanted, whole.folder)

    class Ended(Recovering):
        """Is interrupted after so many checks."""

        left = 0

        def check(self, *words):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().check(*words)

    for checks in range(2, 24, 3):
        found, traces = make_explored(folder / str(checks), images), []
        for _ in range(40):
            judge = Ended()
            judge.left = checks
            before = set(verdicts.read(found.folder / "nested.jsonl"))
            try:
                result = recover(found, judge, Second(DEEP), nested_depth=3)
            except KeyboardInterrupt:
                traces += judge.traces
                assert not set(judge.traces) & before, (checks, before)
                judge.left = checks = checks + 1  # so it gets on at last
                continue
            break
        assert placeless(result, found.folder) == wanted, (checks, result)


@case
def recovering_compared(folder):
    """With --compare an image of a recovery has to be of a state that was right at the first cut"""
    made = [dict(occurrence(n, ADR), behind=b) for n, b in ((11, 100), (12, 200), (13, 300))]
    states = {0: 0, 11: 1, 12: 2, 13: 3, 1: 1, 2: 1, 3: 3, 21: 0, 22: 1, 23: 2, 24: 3}
    table = {n: ("exit", 0, state) for n, state in states.items()}
    table[30] = lambda n: ("exit", 0, 7 + n)  # each time something else
    # 1: behind mark 0 and behind mark 1, so only the state of mark 1 is right; 3: in a wrong state
    images = [dict(occurrence(n, ADR, deviations=[]), behind=b) for n, b in ((1, 50), (2, 150))]
    images.append(dict(occurrence(3, ADR, deviations=[]), behind=50))
    images.append(dict(images[0], behind=150))
    left = {1: (21, 22, 23), 2: (21, 22, 23, 24, 30), 22: (24,)}
    found, judge = make_explored(folder / "e", images), Recovering(table)
    marks = compare.Marks([100, 200], made)
    result = recover(found, judge, Second(left), marks, nested_depth=2)
    info = result["nested"]
    # Image 22 is recovered for what was right behind each of the two first cuts.
    assert judge.traces == [IMAGES[n - 1] for n in (1, 2, 22, 22, 23)], judge.traces
    assert {bug["verdict"] for bug in info["bugs"]} == {"state"} and result["verdict"] == "bugs"
    assert check_report.describe(info["bugs"][0]).startswith("neither the state of mark 0")
    lines = verdicts.read(found.folder / "nested.jsonl")
    wrong = {
        name: sorted(x for bug in line["nested"]["bugs"] for x in bug["all-images"])
        for name, line in lines.items()
    }
    rows = {"1@0-1": (21, 23), "2@1": (21, 24), "22@0-1": (24,), "22@1": (24,), "23@1": (21,)}
    for name, numbers in rows.items():
        number, steps = name.split("@")
        images = sorted(IMAGES[n - 1] for n in numbers)
        assert wrong.pop("%s@%s" % (IMAGES[int(number) - 1], steps)) == images, name
    assert not wrong and info["verdicts"]["unsteady"] == 1, (wrong, info)


@case
def recovering_minimal(folder):
    """The minimal example of a second cut is made on top of the image of the first one"""
    source = {"options": ["--onto", "/i", "--domain", "adr", "--base", "pmem0=/b"]}
    make_explored(folder / "e")
    (folder / "e" / "result.json").write_text(json.dumps({"source": source}))
    found = explored.Explored(folder / "e")
    assert found.content() == ["--onto", "/i", "--base", "pmem0=/b"]
    judge = Judge({})
    reducer = reduce.Reducer(found, judge, 1.0)
    reducer.outer = occurrence(7, ADR)
    bug = {"verdict": "bug", "status": 1, "example": {"promises": None}}
    reducer._is_bad(occurrence(3, ADR), bug)  # pylint: disable=protected-access
    assert "CRASH_BEHIND=70 " in judge.orders[0][0], judge.orders
    assert check_verbs.do_check


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
