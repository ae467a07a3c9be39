#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `crash check --reads` and `--nested` in shards, and of `crash merge`, with explorers and
judges that are no machines: the shards together give the results of one check."""

# timeout: 600
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import threading
import time

import cases

sys.dont_write_bytecode = True
from again import DEEP, Explorer, Never, Reader, Recovering, Second  # noqa: E402
from again import address, explored_by  # noqa: E402
from judges import ADR, IMAGES, files_of, judged_by, make_explored  # noqa: E402
from judges import occurrence, refused  # noqa: E402
from launcher import check, check_nested, check_verbs, cli, compare  # noqa: E402
from launcher import explored, keep, reduce, verdicts  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

os.fdatasync = lambda fd: None  # programs are killed here, and no machines
check_nested.PAUSE_S = 0.05
CASES = []
PARSER = cli.make_parser()


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def command(judge, explorer, *words):
    """(status, what it says) of a command `crash`."""
    args, said = PARSER.parse_args(["crash", *map(str, words)]), io.StringIO()
    work = check_verbs.do_check if args.crash_verb == "check" else check_verbs.do_merge
    with judged_by(judge), explored_by(explorer), contextlib.redirect_stderr(said):
        with contextlib.redirect_stdout(said):
            status = work(args)
    return status, said.getvalue()


class Ended:
    """Is interrupted after so many checks."""

    left = 1 << 30

    def check(self, *words):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().check(*words)


class EndedRecovering(Ended, Recovering):
    pass


class RandomReader(Ended, Reader):
    """Reads lines in an order that depends on what it finds in those before."""

    def __init__(self, seed, lines):
        super().__init__()
        self.seed, self.count = seed, lines
        rng = random.Random(seed)
        self.table = {n + 1: ("exit", 1) for n in range(1, 1 << lines) if rng.random() < 0.1}

    def reads(self):
        lost, found = IMAGES.index(self.seen[-1]), []
        while True:
            rng = random.Random("%d %s" % (self.seed, [(n, lost >> n & 1) for n in found]))
            rest = [n for n in range(self.count) if n not in found]
            if not rest or (found and rng.random() < 0.3):
                return [[address(n), 64] for n in found]
            found.append(rng.choice(rest))


def rounds_of(folder, count, make, explorer, words, rng=None):
    """Gives the commands of all shards until nothing is missing; returns (judges, how often).

    rng: commands end early, and come in any order."""
    judges = []
    for number in range(1, 200):
        order = list(range(1, count + 1))
        if rng:
            rng.shuffle(order)
        for i in order:
            judge = make()
            judges.append(judge)
            if rng and rng.random() < 0.4 and number < 100:
                judge.left = rng.randrange(12)
            with contextlib.suppress(KeyboardInterrupt):
                shard = ("--shard", "%d/%d" % (i, count))
                command(judge, explorer(), "check", "--no-reduce", *words, *shard, folder)
        merging = ("merge", "--reads") if "--reads" in words else ("merge",)
        with contextlib.suppress(UsageError):  # so far, nothing was checked
            command(None, explorer(), *merging, folder, folder)
            place = folder / "reads" if "--reads" in words else folder
            found = json.loads((place / "check.json").read_text())
            text = " ".join(found["notes"])
            if "have not been" not in text and "are missing" not in text:
                return judges, number
    raise AssertionError("it does not end")


def random_nested(rng):
    """(images, table, options) of a check with --nested."""
    images = [occurrence(n, ADR, deviations=[]) for n in range(1, rng.randrange(3, 12))]
    table = {n: tuple(rng.sample(range(1, 41), rng.randrange(5))) for n in range(1, 41)}
    depth, few = rng.randrange(1, 5), rng.randrange(1, 4)
    words = ("--nested-depth", depth, "--nested-recoveries", few, "--script", "x")
    return images, table, words


@case
def nested_shards(folder):
    """Shards with --nested give the files of one check, in any order, interrupted or not"""
    bugs = depths = 0
    for seed in range(14):
        rng = random.Random(seed)
        images, table, words = random_nested(rng)
        whole = make_explored(folder / ("w%d" % seed), images).folder
        judge = Recovering()
        command(judge, Second(table), "check", "--no-reduce", *words, whole)
        place = make_explored(folder / ("s%d" % seed), images).folder
        count = rng.randrange(1, 5)
        judges, number = rounds_of(
            *(place, count, EndedRecovering, lambda table=table: Second(table), words),
            rng=rng if seed % 2 else None,
        )
        assert files_of(place) == files_of(whole), seed
        traces = [each for one in judges for each in one.traces]
        assert set(traces) == set(judge.traces), seed
        if not seed % 2:  # nothing is done twice
            assert len(traces) == len(judge.traces), seed
            seen = [each for one in judges for each in one.seen]
            assert sorted(seen) == sorted(judge.seen), seed
            assert number <= words[1], (seed, number)
        found = json.loads((whole / "check.json").read_text())["nested"]
        bugs, depths = bugs + len(found["bugs"]), max(depths, len(found["depths"]))
    assert bugs > 3 and depths > 2, (bugs, depths)


@case
def nested_owners(folder):
    """A recovery that two shards reach is recorded by the one to which its image's hash belongs"""
    images = [occurrence(n, ADR, deviations=[]) for n in (1, 2)]
    place = make_explored(folder / "e", images).folder
    words = ("--nested-depth", 3, "--script", "x")
    judges, _ = rounds_of(place, 3, Recovering, lambda: Second(DEEP), words)
    for i in (1, 2, 3):
        lines = verdicts.read(place / ("nested-%d-of-3.jsonl" % i))
        assert all(verdicts.in_shard(one["image"], (i, 3)) for one in lines.values())
    traces = sorted(each for one in judges for each in one.traces)
    assert traces == sorted(IMAGES[n - 1] for n in (1, 2, 21, 22, 23, 24, 25)), traces
    # What follows is there, and a check without shards does nothing again.
    judge = Recovering()
    status, _ = command(judge, Second(DEEP), "check", "--no-reduce", *words, place)
    assert status == 1 and not judge.seen and not (place / "nested" / "again").exists()


@case
def nested_waiting(folder):
    """A shard says what it waits for, and with --wait goes on when the others have come so far"""
    images = [occurrence(n, ADR, deviations=[]) for n in (1, 2)]
    place = make_explored(folder / "e", images).folder
    words = ("check", "--no-reduce", "--nested-depth", 3, "--script", "x")
    count = next(n for n in range(2, 9) if len({int(x[:15], 16) % n for x in IMAGES[:2]}) == 2)
    first = next(i for i in range(1, count + 1) if verdicts.in_shard(IMAGES[0], (i, count)))
    status, said = command(
        Recovering(), Second(DEEP), *words, "--shard", "%d/%d" % (first, count), place
    )
    assert status == check.NO_VERDICT and "of other shards come first" in said, (status, said)
    found = []

    def work(i):
        one = ("--wait", 60, "--shard", "%d/%d" % (i, count), place)
        args = PARSER.parse_args(["crash", *map(str, (*words, *one))])
        found.append(check_verbs.do_check(args))

    begun, said = time.monotonic(), io.StringIO()
    with judged_by(Recovering()), explored_by(Second(DEEP)):
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            threads = [threading.Thread(target=work, args=(i,)) for i in range(1, count + 1)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
    assert time.monotonic() - begun < 30 and set(found) <= {0, 1}, (found, said.getvalue())
    status, said = command(None, None, "merge", place, place)
    assert status == 1 and "have not been recorded" not in said, said


def rounds_of_copies(folder, images, table, shards):
    """Copies of an exploration; each time it is asked, each of them has had a shard's check."""
    words = ("--nested-depth", 3, "--script", "x")
    copies = [make_explored(folder / ("copy%d" % i), images).folder for i in range(1, shards + 1)]
    for _ in range(3):
        for i, place in enumerate(copies, 1):
            shard = ("--shard", "%d/%d" % (i, shards))
            command(Recovering(), Second(table), "check", "--no-reduce", *words, *shard, place)
        yield copies


@case
def nested_copies(folder):
    """Shards may have copies of the folder, which merges bring together; recordings come, too"""
    images = [occurrence(n, ADR, deviations=[]) for n in (1, 2)]
    words = ("--nested-depth", 3, "--script", "x")
    whole = make_explored(folder / "whole", images).folder
    command(Recovering(), Second(DEEP), "check", "--no-reduce", *words, whole)
    out = make_explored(folder / "out", images).folder
    for copies in rounds_of_copies(folder, images, DEEP, 3):
        command(None, None, "merge", out, *copies)
        for place in copies:  # what the merge found goes to the hosts
            for name in ("verdicts.jsonl", "nested.jsonl"):
                shutil.copy(out / name, place / name)
            shutil.copytree(out / "nested", place / "nested", dirs_exist_ok=True)
    assert files_of(out) == files_of(whole)
    kept = {path.name for path in (whole / "nested").iterdir()}
    assert kept and kept <= {path.name for path in (out / "nested").iterdir()}, kept
    for name in kept:
        files = [x.relative_to(whole) for x in (whole / "nested" / name).rglob("*") if x.is_file()]
        assert all((out / x).is_file() for x in files) and len(files) > 3
        base = out / "nested" / name / "explored" / "base" / "pmem0.raw"
        assert base.stat().st_blocks < 100  # holes stay holes
        assert base.read_bytes() == (whole / base.relative_to(out)).read_bytes()
    assert keep.keep(explored.Explored(out), 1, folder / "kept", True) < 4000
    # Minimal examples are made of what is in this folder.
    starts, before = [], reduce.plans.make

    def make(found, _wanted):
        starts.append(found.content())
        raise LabError("question 1 does not exist")

    reduce.plans.make = make
    try:
        command(Recovering(), Second(DEEP), "check", *words, out)
    finally:
        reduce.plans.make = before
    assert starts and all(x[1].startswith(str(out / "nested")) for x in starts), starts
    base = "pmem0=%s" % (out / "base" / "pmem0.raw")
    assert all(x[0] == "--onto" and x[2:] == ["--base", base] for x in starts), starts


@case
def nested_compared(folder):
    """Shards that compare the states of recoveries have the results of one check"""
    made = [dict(occurrence(n, ADR), behind=b) for n, b in ((11, 100), (12, 200), (13, 300))]
    states = {0: 0, 11: 1, 12: 2, 13: 3, 1: 1, 2: 1, 3: 3, 21: 0, 22: 1, 23: 2, 24: 3}
    table = {n: ("exit", 0, state) for n, state in states.items()}
    images = [dict(occurrence(n, ADR, deviations=[]), behind=b) for n, b in ((1, 50), (2, 150))]
    images += [dict(occurrence(3, ADR, deviations=[]), behind=50), dict(images[0], behind=150)]
    left = {1: (21, 22, 23), 2: (21, 22, 23, 24), 22: (24,)}
    words, before = ("--compare", "--nested-depth", 2, "--script", "x"), compare.states
    compare.states = lambda *_: compare.Marks([100, 200], made)
    try:
        whole = make_explored(folder / "w", images).folder
        judge = Recovering(table)
        command(judge, Second(left), "check", "--no-reduce", *words, whole)
        place = make_explored(folder / "s", images).folder
        judges, _ = rounds_of(place, 3, lambda: Recovering(table), lambda: Second(left), words)
    finally:
        compare.states = before
    assert files_of(place) == files_of(whole)
    traces = sorted(each for one in judges for each in one.traces)
    assert traces == sorted(judge.traces) and len(traces) > len(set(traces)), traces
    assert '"step"' in (whole / "check.json").read_text()


def die_at(number):
    """The process kills itself when it is about to open, link or rename its number-th file."""
    left = [number]

    def hook(event, _words):
        if event in ("open", "os.rename", "os.link"):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def killed_at(number, work):
    """Whether work, in a process that is killed at a number, was killed."""
    child = os.fork()
    if not child:
        status = 1
        with contextlib.suppress(BaseException):
            die_at(number)
            work()
            status = 0
        os._exit(status)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return bool(status)


def killed_everywhere(step, prepare, work, verify):
    """Kills work at every step-th file; verify() goes on."""
    number, kills = 1, 0
    while True:
        place = prepare(number)
        if not killed_at(number, lambda place=place: work(place)):
            break
        verify(place)
        number, kills = number + step, kills + 1
    assert kills > 8, kills


@case
def nested_killed(folder):
    """A shard or a merge that is killed at any point loses nothing: the results are the same"""
    images = [occurrence(n, ADR, deviations=[]) for n in (1, 2)]
    words = ("--nested-depth", 3, "--script", "x")
    whole = make_explored(folder / "whole", images).folder
    command(Recovering(), Second(DEEP), "check", "--no-reduce", *words, whole)

    def prepare(number):
        return make_explored(folder / ("k%d" % number), images).folder

    def both(place):
        for i in (1, 2, 1, 2):
            shard = ("--shard", "%d/2" % i)
            command(Recovering(), Second(DEEP), "check", "--no-reduce", *words, *shard, place)
        command(None, None, "merge", place, place)

    def verify(place):
        rounds_of(place, 2, Recovering, lambda: Second(DEEP), words)
        assert files_of(place) == files_of(whole), place
        shutil.rmtree(place)

    killed_everywhere(41, prepare, both, verify)


# -- what the checker reads


@case
def reads_shards(folder):
    """Shards with --reads give the files of one check, in any order, interrupted or not"""
    most = 0
    for seed in range(12):
        rng, lines = random.Random(seed), 5
        limit = ("--limit", rng.randrange(2, 12)) if seed % 4 == 3 else ()
        words = ("--reads", "--script", "x", *limit)
        (folder / ("w%d" % seed)).mkdir()
        (folder / ("s%d" % seed)).mkdir()
        whole = Never.make(folder / ("w%d" % seed) / "e").folder
        judge = RandomReader(seed, lines)
        command(judge, Explorer(lines=lines), "check", "--no-reduce", *words, whole)
        place = Never.make(folder / ("s%d" % seed) / "e").folder
        count = rng.randrange(1, 5)
        judges, _ = rounds_of(
            *(place, count, lambda seed=seed: RandomReader(seed, lines)),
            *(lambda: Explorer(lines=lines), words, rng if seed % 2 else None),
        )
        assert files_of(place / "reads") == files_of(whole / "reads"), seed
        seen = [each for one in judges for each in one.seen]
        assert set(seen) == set(judge.seen), seed
        if not seed % 2:  # nothing is done twice
            assert sorted(seen) == sorted(judge.seen), seed
        found = json.loads((whole / "reads" / "check.json").read_text())["reads"]
        most = max(most, found["rounds"])
        assert (place / "reads" / "reads.txt").read_text() == (
            whole / "reads" / "reads.txt"
        ).read_text()
        # A check without shards goes on from there, and has nothing to do.
        again = RandomReader(seed, lines)
        command(again, Explorer(lines=lines), "check", "--no-reduce", *words, place)
        assert not again.seen and files_of(place / "reads") == files_of(whole / "reads"), seed
    assert most > 3, most


@case
def reads_interrupted(folder):
    """A check with --reads that is ended early, and goes on, has the results of one that was not"""
    for seed in range(8):
        rng, lines = random.Random(seed), 5
        limit = ("--limit", rng.randrange(2, 12)) if seed % 2 else ()
        words = ("check", "--no-reduce", "--reads", "--script", "x", *limit)
        places = []
        for name in ("w%d" % seed, "s%d" % seed):
            (folder / name).mkdir()
            places.append(Never.make(folder / name / "e").folder)
        command(RandomReader(seed, lines), Explorer(lines=lines), *words, places[0])
        for left in range(1, 100):
            judge = RandomReader(seed, lines)
            judge.left = rng.randrange(1, 4) + left // 10
            with contextlib.suppress(KeyboardInterrupt):
                command(judge, Explorer(lines=lines), *words, places[1])
                break
        assert files_of(places[0] / "reads") == files_of(places[1] / "reads"), seed


@case
def reads_missing(folder):
    """A merge of rounds that are not complete says so, and so does a shard"""
    found = Never.make(folder / "e")
    words = ("check", "--no-reduce", "--reads", "--script", "x")
    merging = ("merge", "--reads", found.folder, found.folder)
    assert "has no verdicts" in refused(UsageError, command, None, Explorer(), *merging)
    mine = [i for i in (1, 2) if verdicts.in_shard(IMAGES[0], (i, 2))][0]
    status, _ = command(Reader(), Explorer(), *words, "--shard", "%d/2" % mine, found.folder)
    status, said = command(None, Explorer(), *merging)
    info = json.loads((found.folder / "reads" / "check.json").read_text())["reads"]
    assert status == check.NO_VERDICT and "are missing" in said, (status, said)
    assert not info["complete"] and info["doubt"] > 0, info
    other = ("--shard", "%d/2" % (3 - mine))
    status, said = command(Reader(), Explorer(), *words, *other, found.folder)
    path = found.folder / ("reads-%d-of-2" % mine) / ("verdicts-%d-of-2.jsonl" % mine)
    path.write_text(path.read_text().replace('"round": 1', '"round": 0'))
    assert "a round that cannot be" in refused(LabError, command, None, Explorer(), *merging)


@case
def reads_copies(folder):
    """Shards with --reads may have copies of the folder; they need the merged journal, no more"""
    words = ("check", "--no-reduce", "--reads", "--script", "x")
    places = []
    for name in ("whole", "out", "copy1", "copy2"):
        (folder / name).mkdir()
        places.append(Never.make(folder / name / "e").folder)
    whole, out, *copies = places
    command(RandomReader(1, 5), Explorer(lines=5), *words, whole)
    for _ in range(20):
        for i, place in enumerate(copies, 1):
            shard = ("--shard", "%d/2" % i, place)
            command(RandomReader(1, 5), Explorer(lines=5), *words, *shard)
        command(None, Explorer(lines=5), "merge", "--reads", out, *copies)
        for place in copies:
            (place / "reads").mkdir(exist_ok=True)
            shutil.copy(out / "reads" / "verdicts.jsonl", place / "reads")
        found = json.loads((out / "reads" / "check.json").read_text())["reads"]
        if found["complete"]:
            break
    assert files_of(out / "reads") == files_of(whole / "reads") and found["rounds"] > 2, found


@case
def reads_killed(folder):
    """A shard with --reads, or its merge, that is killed at any point loses nothing"""
    words = ("--reads", "--script", "x")
    (folder / "w").mkdir()
    whole = Never.make(folder / "w" / "e").folder
    command(RandomReader(3, 5), Explorer(lines=5), "check", "--no-reduce", *words, whole)

    def prepare(number):
        (folder / ("k%d" % number)).mkdir()
        return Never.make(folder / ("k%d" % number) / "e").folder

    def both(place):
        for _ in range(6):
            for i in (1, 2):
                shard = ("--shard", "%d/2" % i)
                command(
                    *(RandomReader(3, 5), Explorer(lines=5)),
                    *("check", "--no-reduce", *words, *shard, place),
                )
        command(None, Explorer(lines=5), "merge", "--reads", place, place)

    def verify(place):
        rounds_of(place, 2, lambda: RandomReader(3, 5), lambda: Explorer(lines=5), words)
        assert files_of(place / "reads") == files_of(whole / "reads"), place
        shutil.rmtree(place)

    killed_everywhere(97, prepare, both, verify)


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
