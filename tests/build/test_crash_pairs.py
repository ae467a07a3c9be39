#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of shards of `crash check --together`, and of `crash merge` of them, with an explorer and
judges that are no machines."""
import json
import shutil
import sys
import threading
import time

import cases

sys.dont_write_bytecode = True
from both import NAMES, Lab, arguments, command, explorer_of, make_pairs  # noqa: E402
from both import pair, verb, without_machines  # noqa: E402
from judges import ADR, EADR, IMAGES, make_explored, refused  # noqa: E402
from launcher import pairs, verdicts  # noqa: E402
from launcher.errors import UsageError  # noqa: E402

CASES = []
FILES = ("check.json", "check-junit.xml", "report.html")
PLACE = "together-alpha-beta"


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def whole_and_shards(folder, count, *words):
    """(results of one check, those of shards that are merged, shards' labs); both without minimal
    examples."""
    texts, labs = [], []
    for name in ("whole", "parts"):
        (folder / name).mkdir()
    assert command(folder / "whole", Lab({(1, 2), (3, 3)}), "--no-reduce", *words)[0] == 1
    for i in range(1, count + 1):
        labs.append(Lab({(1, 2), (3, 3)}))
        status, text = command(
            *(folder / "parts", labs[-1], *words, "--shard", "%d/%d" % (i, count))
        )
        texts.append((status, text))
    return texts, labs


def results(folder):
    return [(folder / PLACE / name).read_bytes() for name in FILES]


@case
def shards(folder):
    """Shards check each pair once; merged, they have the results of one check"""
    for count, words in ((2, ()), (3, ("--promises", "--checker-vm", "alpha")), (9, ())):
        where = folder / str(count)
        where.mkdir()
        texts, labs = whole_and_shards(where, count, *words)
        place = where / "parts" / PLACE
        assert not any((place / name).exists() for name in FILES), count
        once = [set(lab.seen) for lab in labs]
        assert sum(map(len, once)) == len(set().union(*once)) == 4, once
        for (status, text), lab in zip(texts, labs):
            if not lab.seen:
                assert status == 0 and not text and "has no pairs" in lab.said, (status, text)
                continue
            bad = {(1, 2), (3, 3)} & set(lab.seen)
            assert status == int(bool(bad)), (status, text)
            assert "%d pairs of images of alpha and beta" % len(set(lab.seen)) in text, text
            assert "minimal:" not in text and len(lab.seen) == len(set(lab.seen)) + len(bad), text
        assert count == 9 or all(lab.seen for lab in labs[:2])
        status, text = verb(where, None, "merge", place, place)
        assert status == 1 and "4 pairs of images" in text, text
        assert results(where / "parts") == results(where / "whole")


@case
def parts_of_copies(folder):
    """Folders of several hosts are merged; what is missing is said, others are refused"""
    folders = [folder / "a", folder / "b"]
    for number, where in enumerate(folders, 1):
        where.mkdir()
        command(where, Lab({(1, 2)}), "--shard", "%d/2" % number)
    places = [where / PLACE for where in folders]
    status, text = verb(folder, None, "merge", folder / "out", places[0])
    done = len(verdicts.read(folder / "out" / "verdicts.jsonl"))
    assert 0 < done < 4 and "%d pairs have not been checked" % (4 - done) in text, text
    status, text = verb(folder, None, "merge", "--json", folder / "out", *places)
    found = json.loads(text)
    assert status == 1 and (found["checked"], found["pairs"]) == (4, 4), found
    assert (folder / "out" / "report.html").exists()
    assert not (folder / "out" / "checker").exists()  # it has no pairs

    def message(*words):
        return refused(UsageError, verb, folder, None, "merge", *words)

    make_explored(folder / "one")
    (folder / "one" / "verdicts.jsonl").write_text("")
    assert "one has no pairs of images" in message(folder / "o", places[0], folder / "one")
    assert "crash check --together" in message("--reads", folder / "o", places[0])
    make_pairs(folder / "other", [pair(1, 1)])
    (folder / "other" / "verdicts.jsonl").write_text("")
    assert "have other images" in message(folder / "o", places[0], folder / "other")
    shutil.rmtree(places[1] / "checker")
    (folder / "k").mkdir()
    shutil.copytree(places[1], folder / "k" / PLACE)
    assert "was not checked" in message(folder / "o", folder / "k" / PLACE)
    command(folders[0], Lab(), "--checker-vm", "beta", "--journal", folder / "j")
    assert "another checker" in message(folder / "o", *places, folder / "j")


@case
def explored_once(folder):
    """Shards that begin at the same time have one exploration"""
    for name in NAMES:
        (folder / (name + ".trace")).write_bytes(b"")
    made, running, most, found = [], [], [], []

    def run(words, **more):
        running.append(1)
        most.append(len(running))
        time.sleep(0.05)
        done = explorer_of(made)(words, **more)
        running.pop()
        return done

    def begin():
        args = arguments(folder)
        one = pairs.make(args, pairs.Source(folder), NAMES, lambda text: None)
        found.append(len(one.units(ADR + EADR)))

    with without_machines(folder, None, run):
        threads = [threading.Thread(target=begin) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(made) == 1 and most == [1] and found == [5] * 4, (made, most, found)


@case
def fair(_folder):
    """Pairs of one image with many others are in all shards; single images are where they were"""
    first = IMAGES[0]
    for count in (2, 3, 7):
        rows = [
            [verdicts.in_shard(first + image, (i, count)) for i in range(1, count + 1)]
            for image in IMAGES
        ]
        assert all(row.count(True) == 1 for row in rows)
        assert all(any(row[i] for row in rows) for i in range(count)), count
        for image in IMAGES:
            wanted = int(image[:15], 16) % count + 1
            assert verdicts.in_shard(image, (wanted, count))


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
