#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the commands that show bugs again, and of `crash check --image`, with judges that are no
VMs."""
import contextlib
import io
import json
import os
import shlex
import sys

import cases

sys.dont_write_bytecode = True
from again import Recovering, Second, recover  # noqa: E402
from again import explored_by  # noqa: E402
from judges import (  # noqa: E402
    ADR,
    BAD,
    EADR,
    IMAGES,
    TOOLS,
    Judge,
    judged_by,
    make_explored,
    occurrence,
    options,
    refused,
    run,
)
from launcher import again, check, check_report, cli, compare  # noqa: E402
from launcher import explored, keep, merge, plans  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

CASES = []
PROGRAM = str(TOOLS.parent / "staghorn")


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def typed(line, judge):
    """(status, what it prints) of a command line of this program, typed elsewhere."""
    words, output, before = shlex.split(line), io.StringIO(), os.getcwd()
    assert words[0] == PROGRAM, words
    os.chdir("/")
    try:
        args = cli.make_parser().parse_args(words[1:])
        with judged_by(judge), contextlib.redirect_stdout(output):
            return args.run(args), output.getvalue()
    finally:
        os.chdir(before)


def files(folder):
    """{name: octets} of the files of a folder, journals and results among them."""
    return {x.name: x.read_bytes() for x in folder.iterdir() if x.is_file()}


@case
def again_judged(folder):
    """The command of a bug judges its image alone, by the saved checker, and writes nothing"""
    place = folder / "a 'b'"
    make_explored(place)
    (folder / "tool").write_text("a program")
    copy = ["%s:/usr/bin/tool" % (folder / "tool")]
    found = run(place, Judge({3: BAD[3], 5: BAD[5]}), copy=copy, setup="true")
    (folder / "tool").unlink()
    before, lines = files(place), [bug["again"] for bug in found["bugs"]]
    assert len(lines) == 2, lines
    for line, image, words in zip(lines, (IMAGES[2], IMAGES[4]), ("status 1", "did not end")):
        for judge, status in ((Judge(BAD), check.BUGS), (Judge({}), check.GOOD)):
            got, text = typed(line, judge)
            assert (got, set(judge.seen)) == (status, {image}), (line, got, judge.seen)
            assert len(judge.seen) == (2 if status else 1)  # bad ones are judged twice
            assert (words in text) == bool(status) and image in text, text
            assert "CRASH_IMAGE=" + image in judge.orders[0][0]
    assert files(place) == before
    for each in (*check_report.lines(found), (place / "check-junit.xml").read_text()):
        assert "check --image" not in each or "again: " in each, each
    shown = list(check_report.lines(found)), (place / "report.html").read_text()
    assert "  again: " + lines[0] in shown[0] and "<td>again</td>" in shown[1]
    assert "check --image %s" % IMAGES[4] in (place / "check-junit.xml").read_text()


@case
def doubtful(folder):
    """An image that is judged differently, or not at all, has no verdict; others are refused"""
    make_explored(folder)
    run(folder, Judge({3: BAD[3]}))
    line = shlex.join([PROGRAM, "crash", "check", "--image", IMAGES[2], str(folder)])
    assert typed(line, Judge({3: lambda n: ("exit", n == 1)}))[0] == check.NO_VERDICT
    assert typed(line, Judge({3: BAD[13]}))[0] == check.NO_VERDICT
    assert typed(line + " --repeat 1", Judge({3: lambda n: ("exit", n == 1)}))[0] == check.BUGS
    status, text = typed(line + " --json", Judge({3: BAD[3]}))
    row = json.loads(text)["images"][0]
    assert status == 1 and (row["verdict"], row["status"], row["behind"]) == ("bug", 1, 30), row
    assert row["platform"] == ADR[0]
    judge = Judge({3: BAD[3]})
    typed(line + " --platform eadr,ddio=off", judge)
    assert "CRASH_PLATFORM=eadr,ddio=off" in judge.orders[0][0], judge.orders
    # Another script, as of a kept bug.
    typed(line + " --script other", judge)
    for more, words in (
        ("--shard 1/2", "goes without --shard"),
        ("--nested", "goes without --nested"),
        ("--nested-depth 2", "goes without --nested-depth"),
        ("--reads", "goes without --reads"),
        ("--compare", "goes without --compare"),
        ("--limit 3", "goes without --limit"),
        ("--journal x", "goes without --journal"),
        ("--vm beta", "EXPLORED/vm-NAME"),
        ("--together --vm a --vm b", "goes without --together"),
        ("--image 12", "is no image"),
        ("--image " + "0" * 31 + "1", "has no image"),
        ("--image %s+7" % IMAGES[2], "has no image"),
        ("--platform adr,ddio=up", "is no platform"),
    ):
        message = refused(UsageError, typed, line + " " + more, Judge({}))
        assert words in message, (more, message)
    fresh = str(make_explored(folder / "new").folder)
    message = refused(UsageError, typed, line.replace(str(folder), fresh), Judge({}))
    assert "was not checked" in message, message


@case
def with_promises(folder):
    """With promises the command says how many are in force, and the checker gets these"""
    images = [occurrence(1, ADR), dict(occurrence(1, ADR), promises=2, behind=30)]
    make_explored(folder, images)
    judge = Judge({1: lambda n: ("exit", n > 1)})  # the second check, with promises, and its repeat
    found = run(folder, judge, promises=True)
    (bug,) = found["bugs"]
    assert bug["again"].endswith("--image %s+2 %s" % (IMAGES[0], folder)), bug["again"]
    judge = Judge({1: BAD[3]})
    assert typed(bug["again"], judge)[0] == check.BUGS
    assert [each[1].count(b"event=") for each in judge.orders] == [2, 2], judge.orders
    # Without a number all are judged.
    status, text = typed(bug["again"].replace("+2", ""), Judge({}))
    assert status == check.GOOD and IMAGES[0] + "+0" in text and IMAGES[0] + "+2" in text, text


@case
def minimal(folder):
    """The minimal example is what is judged, also if the exploration does not have its image"""
    deviations = [{"question": n, "answer": 1, "what": "line"} for n in range(3)]
    make_explored(folder, [occurrence(1, ADR, deviations=deviations)])
    one = {"image": IMAGES[7], "platform": ADR[1], "behind": 10, "plan": "plans 0", "lost": []}
    (folder / "minimal.json").write_text(json.dumps({IMAGES[0]: one, IMAGES[1]: None}))
    found = run(folder, Judge({1: BAD[3]}))
    line = found["bugs"][0]["again"]
    assert "--image %s " % IMAGES[7] in line, line
    judge = Judge({8: BAD[3]})
    assert typed(line, judge)[0] == check.BUGS and set(judge.seen) == {IMAGES[7]}
    assert "CRASH_BEHIND=10 CRASH_PLATFORM=" + ADR[1] in judge.orders[0][0]
    (folder / "minimal.json").write_text(json.dumps({IMAGES[0]: dict(one, platform="x")}))
    assert "is not what" in refused(LabError, typed, line, judge)


def states(folder):
    """A checked folder whose image 3 shows a state of no mark; images 21 to 23 are the run's."""
    made = [dict(occurrence(n, ADR), behind=b) for n, b in ((21, 100), (22, 200), (23, 300))]
    table = {21: ("exit", 0, 1), 22: ("exit", 0, 2), 23: ("exit", 0, 3), 3: ("exit", 0, 2)}
    found = make_explored(folder, [dict(occurrence(3, ADR), behind=50)])
    args, marks = options(), compare.Marks([100, 200], made)
    checker = check.checker_of(args, found)
    selection = check.Selection(found, (), False, None, None)
    with judged_by(Judge(table)):
        done = check.check(found, checker, selection, marks, args, lambda text: None)
    return table, check_report.result(found, checker, selection, done, marks)


@case
def compared(folder):
    """A wrong state is judged again with the states of the run around its crash point"""
    table, found = states(folder)
    line = found["bugs"][0]["again"]
    (folder / "verdicts.jsonl").unlink()  # old verdicts do not count
    judge = Judge(table)
    status, text = typed(line, judge)
    assert status == check.BUGS and "neither the state of mark 0 nor" in text, text
    # The content at the start, and what the program has at the first mark.
    assert sorted(set(judge.seen)) == sorted([IMAGES[2], IMAGES[20], explored.START]), judge.seen
    assert typed(line, Judge({**table, 3: ("exit", 0, 1)}))[0] == check.GOOD
    unsteady = Judge({**table, 3: lambda n: ("exit", 0, 6 + n)})
    assert typed(line, unsteady)[0] == check.NO_VERDICT
    message = refused(LabError, typed, line, Judge({**table, 21: BAD[3]}))
    assert "the run's own state at mark 1" in message, message


@case
def texts(folder):
    """With --compare-texts the right states are the texts of the marks, not those of the run"""
    # Image: (behind, output, whether it is right); 0: the content at the start.
    rows = {1: (50, "state 0", 1), 2: (50, "state 1", 1), 3: (99, "state 2", 0)}
    rows.update({4: (100, "state 0", 0), 5: (100, "state 1", 1), 6: (150, "state 2", 1)})
    rows.update({7: (200, "state 1", 0), 8: (250, "state 2", 1), 9: (250, "state 0", 0)})
    table = {n: ("exit", 0, int(text[-1])) for n, (_, text, _) in rows.items()}
    images = [dict(occurrence(n, ADR), behind=behind) for n, (behind, _, _) in rows.items()]
    found = make_explored(folder, images)
    (folder / "beta.trace").touch()
    (folder / "result.json").write_text(
        json.dumps({"source": {"traces": ["beta.trace"], "options": [], "symbols": []}})
    )
    found, before = explored.Explored(folder), plans.marks
    plans.marks = lambda _: [(90, "durable", "1+2"), (100, "state", "state 1")] + [
        (200, "state", "state 2")
    ]
    try:
        marks = compare.states(found, ADR[0], how=compare.TEXTS)
        plans.marks = lambda _: [(90, "durable", "1+2")]
        assert "has no marks" in refused(LabError, compare.states, found, "", False, compare.TEXTS)
    finally:
        plans.marks = before
    args = options()
    checker = check.checker_of(args, found)
    selection = check.Selection(found, (), False, None, None)
    for start in (("exit", 0, 0), ("exit", 1, 0)):  # nothing may have been there
        (folder / "verdicts.jsonl").unlink(missing_ok=True)
        judge = Judge({**table, 0: start})
        with judged_by(judge):
            done = check.check(found, checker, selection, marks, args, lambda text: None)
        result = check_report.result(found, checker, selection, done, marks)
        bad = {bug["example"]["image"] for bug in result["bugs"]}
        assert bad == {IMAGES[n - 1] for n, row in rows.items() if not row[2]}, bad
        assert {bug["verdict"] for bug in result["bugs"]} == {"state"}
        assert merge.merge(folder / "m", [folder])[0] == result
    for bug in result["bugs"]:
        judge = Judge(table)
        assert typed(bug["again"], judge)[0] == check.BUGS
        assert set(judge.seen) <= {bug["example"]["image"], explored.START}, judge.seen
    for wrong in ({"texts": ["x"]}, {"texts": [1, 2]}, {"events": [1, "x"]}, {"occurrences": [1]}):
        try:
            compare.restored({**marks.settings(), **wrong}, False)
            assert "occurrences" in wrong
        except KeyError:
            assert "occurrences" not in wrong


@case
def recoveries(folder):
    """The command of a recovery's bug keeps it as a file, and judges this"""
    found = make_explored(folder, [occurrence(n, ADR, deviations=[]) for n in (1, 2)])
    result = recover(found, Recovering(), Second())
    check_report.write(folder, result)
    (bug,) = result["nested"]["bugs"]
    first, second = (shlex.split(part) for part in bug["again"].split("&&"))
    assert first[:3] == [PROGRAM, "crash", "keep"] and second[:3] == [PROGRAM, "crash", "check"]
    assert "again: " + bug["again"] in "\n".join(check_report.lines(result))
    assert bug["least-platform"] == ADR[0] and bug["promised"]["count"] == 0, bug
    with explored_by(Second()):
        assert cli.main(first[1:]) == 0
    (folder / "u").mkdir()
    head, _ = keep.unpack(second[-1], folder / "u")
    assert head["recovery"]["cuts"][0]["image"] == bug["cuts"][0]["image"], head
    words = ["crash", "check", "--image", IMAGES[0], second[-1]]
    assert cli.main(words) == 125  # a kept bug has one image


PROMISES = [
    {"acknowledgement": "durable", "machine": "beta", "event": 5, "text": "old"},
    {"acknowledgement": "flush", "machine": "<a>", "event": 7, "wr-id": "0x9", "qpn": 3},
    {"acknowledgement": "durable", "machine": "beta", "event": 9, "text": "key 7\nof <all>"},
    {"acknowledgement": "state", "machine": "beta", "event": 11, "text": "later"},
]
BEHIND = [
    "behind: completion (flush) of <a>, event 7, wr_id 0x9, QP 3",
    "behind: mark durable of beta, event 9: key 7 of <all>",
]


@case
def promised(folder):
    """A bug names the last promise of each kind that was in force, with or without --promises"""
    make_explored(folder, [dict(occurrence(1, ADR), promises=3), occurrence(2, ADR)])
    (folder / "promises.json").write_text(json.dumps({"promises": PROMISES}))
    for more in ({"promises": True}, {}):
        found = run(folder, Judge({1: BAD[3], 2: BAD[5]}), **more)
        first, second = found["bugs"]
        assert first["promised"]["count"] == 3 == first["example"]["in-force"], first
        assert [each["event"] for each in first["promised"]["last"]] == [7, 9], first
        assert second["promised"] == {"count": 0, "last": []}, second
        text = [line.strip() for line in check_report.lines(found)]
        assert [line for line in text if line[:6] == "behind"] == [*BEHIND, "behind: no promise"]
        page = (folder / "report.html").read_text()
        assert "of &lt;all&gt;</td>" in page and "<all>" not in page
        assert "event 9: key 7 of &lt;all&gt;" in (folder / "check-junit.xml").read_text()
        (folder / "verdicts.jsonl").unlink()


@case
def least_platform(folder):
    """The least platform is the weakest that claims what was promised, or the weakest"""
    images = [occurrence(1, [EADR[0], ADR[1], "none,ddio=on"]), occurrence(2, EADR[::-1])]
    make_explored(folder, images)
    for claimed, wanted in (
        ([*ADR, *EADR], [ADR[1], EADR[0]]),
        (EADR, [EADR[0], EADR[0]]),
        ([], ["none,ddio=on", EADR[0]]),
    ):
        rows = [{"platform": name, "claimed": name in claimed} for name in explored.PLATFORMS]
        (folder / "result.json").write_text(json.dumps({"platforms": rows}))
        args = {"platform": ["none,ddio=on", "adr", "eadr"]}
        args.update(journal=str(folder / "x"), jobs=1)
        loaded, checks = explored.Explored(folder), options(**args)
        checker = check.checker_of(checks, loaded)
        selection = check.Selection(loaded, checks.platform, False, None, None)
        with judged_by(Judge({1: BAD[3], 2: BAD[5]})):
            done = check.check(loaded, checker, selection, None, checks, lambda text: None)
        found = check_report.result(loaded, checker, selection, done)
        assert [bug["least-platform"] for bug in found["bugs"]] == wanted, (claimed, found["bugs"])
        assert "  least platform: " + wanted[0] in list(check_report.lines(found))


PROMISE = {
    "acknowledgement": "durable",
    "issuer": {"kind": "cpu", "text": "a store"},
    "example": {"promised-to": "a", "acknowledgement": None, "lost": None},
    "least-platform": "adr,ddio=off",
    "platforms": [{"platform": name, "claimed": True} for name in (ADR[1], EADR[0])],
}


@case
def promise_bugs(folder):
    """A promise's bug is explored again on its least platform, with what decides about bugs"""
    (folder / "run").mkdir()
    for name in ("a", "b"):
        (folder / "run" / (name + ".trace")).touch()
    traces = [folder / "run" / "a.trace", folder / "run" / "b.trace"]
    words = ["--target", "a", "--domain", "adr,eadr", "--acks", "write", "--strategy", "only"]
    words += ["--onto", "/x/y", "--base", "pmem0=/z", "--max-images", "7"]
    source = {"traces": traces, "options": words, "symbols": ["prog"], "capture": "c.pcap"}
    result = {"bugs": [dict(PROMISE)], "not-claimed": [dict(PROMISE)]}
    again.name_promises(result, folder / "out", folder / "run", source)
    line = result["bugs"][0]["again"]
    assert result["not-claimed"][0]["again"] == line
    here = os.getcwd()
    wanted = "--target a --acks write --onto /x/y --base pmem0=/z --symbols %s/prog" % here
    wanted += " --capture %s/c.pcap --domain adr --ddio off --output " % here
    wanted += "%s/out/again/adr,ddio=off %s/run" % (folder, folder)
    assert line == "%s crash explore %s" % (PROGRAM, wanted), line
    args = cli.make_parser().parse_args(shlex.split(line)[1:])
    assert (args.domain, args.ddio, args.strategy) == ("adr", "off", None)
    again.name_promises(result, folder, folder / "run", {**source, "traces": traces[:1]})
    assert result["bugs"][0]["again"].endswith("/run/a.trace")
    again.name_promises(result, folder, folder, {**source, "traces": [folder / "b.trace"]})
    assert result["bugs"][0]["again"].endswith("/b.trace")


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
