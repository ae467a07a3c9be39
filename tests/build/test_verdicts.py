#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the files with verdicts about crash images."""
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import cases

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
from launcher import verdicts  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

CASES = []
WRITER = """import sys
sys.path.insert(0, %r)
from launcher import verdicts
with verdicts.Journal(sys.argv[1]) as journal:
    for i in range(10 ** 6):
        image = "%%016x" %% i
        if image not in journal.done:
            journal.add(image, "good", 0, "x" * 1000)
            print(image, flush=True)
"""


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def refused(error, function, *words):
    """The message with which a call is refused."""
    try:
        function(*words)
    except error as found:
        return str(found)
    raise AssertionError("it was accepted")


@case
def killed(folder):
    """A checker that is killed loses no verdict that it reported, and no other is made up"""
    path, reported = folder / "v", []
    for seconds in (0.0, 0.05, 0.1):
        words = [sys.executable, "-c", WRITER % str(TOOLS), str(path)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
            reported += [child.stdout.readline().strip() for _ in range(5)]
            time.sleep(seconds)
            child.send_signal(signal.SIGKILL)
            reported += child.stdout.read().split()
        with open(path, "ab") as file:
            file.write(b'{"image": "00000')  # as if it had been killed in the middle
    found = verdicts.read(path)
    assert len(reported) > 10 and len(reported) == len(set(reported)), reported
    assert set(reported) <= set(found) and len(found) <= len(reported) + 3, (reported, found)


@case
def shards(folder):
    """Each image belongs to exactly one of n shards"""
    rng = random.Random(1)
    images = ["%032x" % rng.getrandbits(128) for _ in range(300)]
    for n in (1, 2, 7):
        for image in images:
            mine = [i for i in range(1, n + 1) if verdicts.in_shard(image, (i, n))]
            assert len(mine) == 1, (image, n, mine)
    for text in ("0/2", "3/2", "1", "1/0", "-1/2", "1/2/3", "a/b"):
        assert "is no shard" in refused(UsageError, verdicts.shard_of, text)
    assert verdicts.shard_of("2/3") == (2, 3)


@case
def merging(folder):
    """Merged files have each image once; contradictions are unsteady, failures no verdict"""
    names = "%016x" % 1, "%016x" % 2, "%016x" % 3
    rows = {
        "a": ((names[0], "good"), (names[1], "bug"), (names[2], "failed")),
        "b": ((names[1], "good"), (names[0], "good"), (names[2], "hang")),
    }
    for name, lines in rows.items():
        with verdicts.Journal(folder / name) as journal:
            for image, verdict in lines:
                journal.add(image, verdict)
    found = verdicts.merge(folder / "all", [folder / "a", folder / "b"])
    assert [found[name]["verdict"] for name in names] == ["good", "unsteady", "hang"], found
    assert found == verdicts.read(folder / "all")
    first = (folder / "all").read_bytes()
    verdicts.merge(folder / "all", [folder / "b", folder / "a", folder / "a"])
    assert [verdicts.read(folder / "all")[name]["verdict"] for name in names] == [
        *("good", "unsteady", "hang")
    ], first
    assert "no file" in refused(UsageError, verdicts.merge, folder / "x", [folder / "absent"])


@case
def reading(folder):
    """What a check has read is not lost when a second verdict joins it, whichever counts"""
    rows = (("failed", 1, [[0, 64]]), ("good", 3, [[64, 64]]), ("bug", 2, [[128, 64]]))
    for i, first in enumerate(rows):
        for second in rows[:i] + rows[i + 1 :]:
            for number, (verdict, turn, reads) in enumerate((first, second)):
                with verdicts.Journal(folder / str(number)) as journal:
                    journal.add("%016x" % i, verdict, reads=reads, round=turn)
            found = verdicts.merge(folder / "all", [folder / "0", folder / "1"])["%016x" % i]
            assert found["reads"] == first[2] + second[2], found
            assert found["round"] == min(first[1], second[1]), found
            for number in range(2):
                (folder / str(number)).unlink()


@case
def wrong(folder):
    """Other files, two writers and a full disk are errors that say so"""
    for text in (b"text\n", b'{"image": "zz", "verdict": "good"}\n', b'{"image": 5}\n', b"[]\n"):
        (folder / "f").write_bytes(text)
        assert "is no verdict" in refused(LabError, verdicts.read, folder / "f")
    (folder / "f").write_bytes(b"\xff\xfe\n")
    assert "no file of verdicts" in refused(LabError, verdicts.read, folder / "f")
    with verdicts.Journal(folder / "v") as journal:
        assert "another check" in refused(LabError, verdicts.Journal(folder / "v").__enter__)
        journal.add("%016x" % 1, "bug", 1, "y" * 10000)
    assert len(verdicts.read(folder / "v")["%016x" % 1]["output"]) < 5000
    os.symlink("/dev/full", folder / "device")
    device = verdicts.Journal(folder / "device")
    assert "not a regular file" in refused(LabError, device.__enter__)


@case
def full(folder):
    """When no more can be written, the error says so, and what is there stays readable"""
    path, before = folder / "v", resource.getrlimit(resource.RLIMIT_FSIZE)
    with verdicts.Journal(path) as journal:
        journal.add("%016x" % 1, "good")
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, before[1]))
        try:
            message = refused(LabError, journal.add, "%016x" % 2, "good")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot write" in message, message
    with verdicts.Journal(path) as journal:
        assert list(journal.done) == ["%016x" % 1], journal.done
        journal.add("%016x" % 2, "bug")
    assert list(verdicts.read(path)) == ["%016x" % 1, "%016x" % 2]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
