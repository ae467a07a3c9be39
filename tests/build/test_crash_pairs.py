#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of minimal examples and shards of `crash check --together`, and of `crash merge` of them,
with an explorer and judges that are no machines."""
import json
import shlex
import shutil
import sys
import threading
import time

import cases

sys.dont_write_bytecode = True
from both import NAMES, Lab, arguments, command, explorer_of, make_pairs  # noqa: E402
from both import make_plans, pair, verb, without_machines  # noqa: E402
from judges import ADR, EADR, IMAGES, files_of, make_explored, refused  # noqa: E402
from launcher import pairs, verdicts  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

CASES = []
FILES = ("check.json", "check-junit.xml", "report.html")
PLACE = "together-alpha-beta"
# Images of a side, by number: 8 lacks the answers 1 to 3, 25 lacks 4 and 5, 2 lacks 1.
NUMBERS = (1, 8, 25, 2)


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def lacks(number, question):
    return number - 1 >> (question - 1) & 1


def needs_two(first, second):
    """Bad is what lacks the second answer of alpha and the fourth one of beta."""
    return lacks(first, 2) and lacks(second, 4)


def result(folder):
    return json.loads((folder / PLACE / "check.json").read_text())


def questions(rows):
    return [[each["question"] for each in row] for row in rows]


@case
def minimal(folder):
    """Deviations of both VMs are taken away together; what is left is named in the results"""
    lab, rows = Lab(needs_two), [pair(1, 1), pair(2, 3)]
    status, text = command(folder, lab, rows=rows, numbers=NUMBERS)
    assert status == 1, text
    (bug,) = result(folder)["bugs"]
    assert questions(bug["example"]["deviations"]) == [[1, 2, 3], [4, 5]], bug
    small = bug["minimal"]
    assert questions(small["deviations"]) == [[2], [4]] and small["from"] == 5, small
    assert small["images"] == [IMAGES[2], IMAGES[8]] and small["behind"] == [80, 250], small
    assert [[row["issuer"] for row in lost] for lost in small["lost"]] == [
        ["the store by put2"],
        ["the store by put4"],
    ], small
    assert small["platform"] == ADR[0] and small["rounds"] > 1 and "alpha: plans" in small["plan"]
    assert bug["cause"] == ["alpha: the store by put2", "beta: the store by put4"], bug
    # The journal's key; the same command makes nothing again.
    key = IMAGES[7] + IMAGES[24]
    assert list(json.loads((folder / PLACE / "minimal.json").read_text())) == [key]
    assert key in verdicts.read(folder / PLACE / "verdicts.jsonl")
    again = Lab(needs_two)
    assert command(folder, again, rows=rows, numbers=NUMBERS)[0] == 1 and not again.seen
    words = "minimal: alpha: image %s, behind event 80; beta: image %s" % tuple(small["images"])
    assert words in text and "all of these have to be lost:" in text, text
    shown = [line.strip() for line in text.splitlines() if "lost by" in line]
    assert shown == [
        "lost by alpha: event 200: the store by put2",
        "lost by beta: event 400: the store by put4",
    ], shown
    page = (folder / PLACE / "report.html").read_text()
    assert "<td>minimal</td><td>alpha: image %s" % small["images"][0] in page
    assert "put4" in page and "put5" not in page and "bug 1: 2 of 5 deviations" in lab.said


@case
def explained(folder):
    """A bug names its least platform, what was promised to both VMs, and a command for a shell"""
    status, text = command(folder, Lab(needs_two), rows=[pair(1, 1), pair(2, 3)], numbers=NUMBERS)
    (bug,) = result(folder)["bugs"]
    assert status == 1 and bug["least-platform"] == ADR[0], bug
    # Both memories have two promises; the ends of the example are behind one of the other VM's.
    place = folder / PLACE
    found = pairs.Pairs(place).in_force(bug["example"]["behind"])
    assert bug["promised"]["count"] == sum(map(len, found)) > 0, (bug, found)
    assert [one["event"] for one in bug["promised"]["last"]] == [25], bug["promised"]
    first, second = (shlex.split(part) for part in bug["again"].split("&&"))
    file = str(place / "pair-1.bug")
    assert first[1:] == ["crash", "keep", "--bug", "1", "--output", file, str(place)], first
    assert second == [first[0], "crash", "check", file], second
    assert "  again: " + bug["again"] in text and "least platform: " + ADR[0] in text, text
    for name in ("report.html", "check-junit.xml"):
        assert "pair-1.bug" in (place / name).read_text(), name


@case
def one_cause(folder):
    """Bugs whose minimal examples need the same are one; what needs nothing is a wrong order"""
    rows = [pair(1, 1), pair(2, 3), pair(2, 1), pair(4, 3)]

    def bad(first, second):  # the fourth image is bad whatever the others lack
        return (lacks(first, 2) and not lacks(first, 4)) or (first == 2 and lacks(second, 5))

    assert command(folder, Lab(bad), "--no-reduce", rows=rows, numbers=NUMBERS)[0] == 1
    causes = [bug["cause"] for bug in result(folder)["bugs"]]
    assert len(causes) == 3, causes
    assert command(folder, Lab(bad), rows=rows, numbers=NUMBERS)[0] == 1
    found = result(folder)["bugs"]
    assert [(bug["cause"], bug["pairs"]) for bug in found] == [
        (["alpha: the store by put1", "beta: the store by put5"], 1),
        (["alpha: the store by put2"], 2),
    ], found
    shutil.rmtree(folder / PLACE)
    rows = [pair(2, 3), pair(2, 1)]
    status, text = command(folder, Lab(lambda *_: True), rows=rows, numbers=NUMBERS)
    (bug,) = result(folder)["bugs"]
    assert status == 1 and bug["cause"] == ["nothing is lost"] and bug["pairs"] == 2, bug
    assert bug["minimal"]["deviations"] == [[], []] and "nothing has to be lost" in text, text


@case
def made_again(folder):
    """A platform is taken on which both plans make their images again; else the check goes on"""
    rows, calls = [pair(1, 1), pair(2, 3, ADR)], []

    def second_only(explored, wanted):
        calls.append((explored.target, [one["platform"] for one in wanted]))
        made = make_plans(explored, wanted)
        if explored.target == "beta" and wanted[0]["platform"] == ADR[0]:
            return [dict(one, image=IMAGES[39]) for one in made]
        return made

    words = ("--platform", "adr")
    lab = Lab(needs_two)
    assert command(folder, lab, *words, make=second_only, rows=rows, numbers=NUMBERS)[0] == 1
    (bug,) = result(folder)["bugs"]
    assert bug["example"]["platform"] == ADR[0], bug
    assert bug["minimal"]["platform"] == ADR[1], bug
    assert questions(bug["minimal"]["deviations"]) == [[2], [4]], bug
    # A try that differs in one VM only asks for images of this VM only.
    asked = [len(row) for _, row in calls]
    assert sum(asked) < 2 * len(lab.seen), (calls, lab.seen)
    shutil.rmtree(folder / PLACE)

    def never(explored, wanted):
        raise LabError("question 2 does not exist")

    lab = Lab(needs_two)
    status, _ = command(folder, lab, make=never, rows=rows, numbers=NUMBERS)
    assert status == 1 and result(folder)["bugs"][0]["minimal"] is None
    assert "cannot be made again" in lab.said, lab.said
    # Without the traces nothing can be made, and nothing is said.
    for name in NAMES:
        (folder / (name + ".trace")).rename(folder / (name + ".moved"))
    lab = Lab(needs_two)
    with without_machines(folder, lab, explorer_of([])):
        assert not pairs.Pairs(folder / PLACE).traces()


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
    return files_of(folder / PLACE)


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
    # A whole check of what is merged makes minimal examples only.
    lab = Lab({(1, 2), (3, 3)})
    assert command(where / "parts", lab)[0] == 1
    bugs = result(where / "parts")["bugs"]
    assert [len(bug["minimal"]["images"]) for bug in bugs] == [2, 2], bugs
    assert not set(lab.seen) & {(2, 1)} and (3, 1) in lab.seen, lab.seen
    assert command(where / "whole", Lab({(1, 2), (3, 3)}))[0] == 1
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
