#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the timelines of bugs of `crash check`, with an explorer of their own; the real one is
in tests/unit/crash/test_lost_stores.c and tests/vm."""
import contextlib
import io
import json
import sys

import cases

sys.dont_write_bytecode = True
from both import make_pairs  # noqa: E402
from judges import ADR, BAD, IMAGES, Judge, judged_by, make_explored, occurrence  # noqa: E402
from test_explore import RESULT  # noqa: E402
from test_messages import event, traces  # noqa: E402
from launcher import check_report, check_timeline, cli, explored, pairs, pairs_report  # noqa: E402

CASES = []
# Notes how it was called; tells the first store, and others of the same past.
EXPLORER = """#!%s
import json, sys
words = sys.argv[1:]
out, file = (words[words.index(name) + 1] for name in ("--out", "--timelines"))
stores = json.load(open(file))["stores"]
with open(%r, "a") as log:
    log.write(json.dumps({"words": words, "stores": stores}) + "\\n")
target = words[words.index("--target") + 1]
def step(event, what, **more):
    event = {"machine": target, "event": event, "kind": "store", "text": "<i>", **more}
    return {"machine": target, "what": what, "stage-behind": "S2", "event": event}
rows = []
for one in stores:
    found = {"event": one["event"], "addr": one["addr"]}
    if one["arrivals"] == stores[0]["arrivals"]:
        steps = [step(one["event"], "the store"), step(one["behind"], "it moves on")]
        found.update({"timeline": steps, "timeline-omitted": 0, "frames": {}})
    rows.append(found)
json.dump({"version": 1, "stores": rows}, open(out + "/timelines.json", "w"))
sys.exit(%d)
"""


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def explorer(folder, status=0):
    """A program in the explorer's place; returns the file of its calls."""
    path, log = folder / "explorer", folder / "calls"
    path.write_text(EXPLORER % (sys.executable, str(log), status))
    path.chmod(0o755)
    check_timeline.paths.explorer = lambda: path
    return log


def calls(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def lost(number, addr, issuer="a store"):
    return {"number": number, "kind": "store", "addr": addr, "len": 100, "issuer": issuer}


def bug(rows, deviations=(), arrivals=(), minimal=None, behind=50):
    """A bug with this example, as in check.json."""
    example = {"image": IMAGES[0], "promises": None, "behind": behind, "in-force": 2}
    example.update(plan="p", platform=ADR[1], platforms=ADR, deviations=list(deviations))
    example.update(arrivals=list(arrivals), lost=rows, output="")
    return {"number": 1, "verdict": "bug", "status": 1, "step": None, "images": 1}, example, minimal


def told(*bugs):
    return [{**one, "example": example, "minimal": small} for one, example, small in bugs]


def recording(folder, **source):
    """An exploration with two traces."""
    found = make_explored(folder / "explored", [occurrence(1, ADR)])
    for name in ("alpha", "beta"):
        (folder / (name + ".trace")).touch()
    traces = ["../alpha.trace", "../beta.trace"]
    result = {"source": {"traces": traces, "options": [], **source}}
    (found.folder / "result.json").write_text(json.dumps(result))
    return explored.Explored(found.folder)


@case
def chosen(folder):
    """The first lost store of each issuer is told, then further lines; at the octet that is lost"""
    log = explorer(folder)
    place = recording(folder, options=["--acks", "write", "--domain", "adr", "--base", "p=/x"])
    rows = [lost(n, 0x1000 + 64 * (n // 2)) for n in range(10, 20)]
    rows += [lost(30, 0x2010, "another"), lost(31, 0x1008, "a third")]
    line = {"addr": "0x2040", "question": 1, "answer": 0, "lost": [30]}
    found = {"bugs": told(bug(rows, [line])), "notes": []}
    check_timeline.add(place, found)
    (call,) = calls(log)
    assert [each["event"] for each in call["stores"]] == [10, 12, 30, 31], call
    assert [each["addr"] for each in call["stores"]] == ["0x1140", "0x1180", "0x2040", "0x1008"]
    first = call["stores"][0]
    assert (first["behind"], first["platform"], first["promises"]) == (50, ADR[1], 2), first
    words = " ".join(call["words"])
    assert "--target beta --acks write --base p=/x" in words and "--domain" not in words, words
    assert words.endswith("beta.trace") and "alpha.trace" in words, words
    one = found["bugs"][0]["timelines"][2]
    assert (one["machine"], one["event"], one["issuer"]) == ("beta", 30, "another"), one
    assert [step.get("power-fails") for step in one["timeline"]] == [None, True], one
    assert found["notes"] == []


@case
def minimal_example(folder):
    """A minimal example is told in place of the example, at its own crash point and platform"""
    log, place = explorer(folder), recording(folder)
    small = {"image": IMAGES[1], "platform": ADR[0], "behind": 40, "plan": "plans 0"}
    small.update(deviations=[], lost=[lost(20, 0x1000)])
    arrivals = [{"question": 3, "answer": 1}]
    found = {"bugs": told(bug([lost(10, 0)], (), arrivals, small)), "notes": []}
    check_timeline.add(place, found)
    (store,) = calls(log)[0]["stores"]
    assert (store["event"], store["behind"], store["platform"]) == (20, 40, ADR[0]), store
    assert store["arrivals"] == arrivals, store


@case
def pasts(folder):
    """Stores of other pasts are told by further calls of the explorer"""
    log, place = explorer(folder), recording(folder)
    rows = [bug([lost(10, 0)], (), [{"question": n % 2, "answer": 1}]) for n in range(4)]
    found = {"bugs": told(*rows), "notes": []}
    check_timeline.add(place, found)
    assert [len(each["stores"]) for each in calls(log)] == [4, 2], calls(log)
    assert all(len(each["timelines"]) == 1 for each in found["bugs"]), found


@case
def limits(folder):
    """Bugs and stores that limits leave out are counted in notes"""
    log, place = explorer(folder), recording(folder)
    rows = [bug([lost(10, 0)]) for _ in range(check_timeline.BUGS_MAX + 2)]
    found = {"bugs": told(*rows), "notes": []}
    check_timeline.add(place, found)
    assert ["first 20 bugs of 22" in note for note in found["notes"]] == [True], found["notes"]
    assert sum(len(each["timelines"]) for each in found["bugs"][:20]) == 20, found
    log.unlink()
    before, check_timeline.CALLS_MAX = check_timeline.CALLS_MAX, 1
    rows = [bug([lost(10, 0)], (), [{"question": n % 2, "answer": 1}]) for n in range(4)]
    found = {"bugs": told(*rows), "notes": []}
    try:
        check_timeline.add(place, found)
    finally:
        check_timeline.CALLS_MAX = before
    assert found["notes"] == ["Of 2 lost stores no timeline was found."], found["notes"]


@case
def none(folder):
    """Without traces or lost stores there is nothing to tell; an explorer that fails is a note"""
    log = explorer(folder, 3)
    place = recording(folder)
    found = {"bugs": told(bug([])), "notes": []}
    check_timeline.add(place, found)
    assert found["bugs"][0]["timelines"] == [] == found["notes"] and not log.exists(), found
    found = {"bugs": told(bug([lost(10, 0)])), "notes": []}
    check_timeline.add(place, found)
    assert "no timelines" in found["notes"][0], found
    assert found["bugs"][0]["timelines"] == []
    (folder / "beta.trace").unlink()
    found["notes"].clear()
    check_timeline.add(place, found)
    assert found["notes"] == [] and len(calls(log)) == 1, found
    assert not list(check_timeline.parts({}))  # an older result


@case
def recoveries(folder):
    """A bug of a recovery is told of the recovery's trace"""
    log, place = explorer(folder), recording(folder)
    place.folder.joinpath("nested", "x").mkdir(parents=True)
    inner = recording(place.folder / "nested" / "x", options=["--onto", "/i", "--acks", "f"])
    (second,) = told(bug([lost(10, 0x40)]))
    nested = {"bugs": [{**second, "folder": "nested/x"}]}
    found = {"bugs": [], "notes": [], "nested": nested}
    check_timeline.add(place, found)
    (call,) = calls(log)
    assert "--onto" in call["words"] and str(inner.traces()[1]) in call["words"][-1], call
    assert call["stores"][0]["promises"] == 0, call
    assert found["nested"]["bugs"][0]["timelines"], found


@case
def both_machines(folder):
    """A bug of a pair has the timelines of what either VM lost, each with its crash point"""
    log = explorer(folder)
    make_pairs(folder / "together-alpha-beta")
    for name in ("alpha", "beta"):
        (folder / (name + ".trace")).touch()
    place = pairs.Pairs(folder / "together-alpha-beta")
    one, example, _ = bug([[lost(10, 0x40)], [lost(7, 0x80)]], ([], []), ([], []), None, [50, 60])
    found = {"bugs": told((one, example, None)), "notes": []}
    check_timeline.add_pairs(place, found)
    rows = found["bugs"][0]["timelines"]
    assert [(x["machine"], x["event"], x["behind"]) for x in rows] == [
        ("alpha", 10, 50),
        ("beta", 7, 60),
    ], rows
    assert [each["stores"][0]["promises"] for each in calls(log)] == [0, 0]
    (one,) = found["bugs"]
    one.update({"cause": ["c"], "platforms": ADR, "least-platform": ADR[0], "again": "a"})
    one.update({"promised": {"count": 0, "last": []}, "pairs": 1})
    one["example"]["images"] = IMAGES[:2]
    found.update(target="t", machines=["alpha", "beta"], platforms=ADR, checked=1, verdicts={})
    found["explored"] = {"platforms": [], "image-pairs": "1"}
    found["checker"] = {"script": "s", "checker-vm": None}
    page = pairs_report.page(found)
    for words in ("event 10 of alpha", "event 7 of beta"):
        assert page.count("What became of " + words) == 1, page


@case
def report(folder):
    """The report has the timelines, with the row behind which the power fails; texts are escaped"""
    explorer(folder)
    place = recording(folder)
    (one,) = told(bug([lost(10, 0, "<b>x")]))
    one.update({"cause": ["c"], "platforms": ADR, "least-platform": ADR[0], "again": "a"})
    one["promised"] = {"count": 0, "last": []}
    found = {"bugs": [one], "notes": [], "checked": 1, "images": 1, "platforms": ADR}
    found.update({"checker": {"script": "s"}, "verdicts": {}})
    check_timeline.add(place, found)
    text = check_report.section(found)
    assert "What became of event 10 of beta, &lt;b&gt;x, on adr,ddio=off. The power fails" in text
    assert text.count('<tr class="fails">') == 1 == text.count("<b>the power fails</b>"), text
    assert "<th>S2'</th>" in text and "text=&lt;i&gt;" in text and "<i>" not in text, text


@case
def verb(folder):
    """A check that is over tells its bugs, in check.json and in the report"""
    log = explorer(folder)
    traces(folder, [], [event(9, "store", addr=0x100, len=8, at=0x401000)])
    deviation = {"question": 0, "answer": 0, "what": "line", "lost": [9]}
    make_explored(folder / "explored", [occurrence(1, ADR, 1, [deviation])])
    source = {"traces": ["../alpha.trace", "../beta.trace"], "options": []}
    text = json.dumps({**RESULT, "source": source})
    (folder / "explored" / "result.json").write_text(text)
    words = ["crash", "check", "--json", "--no-reduce", "--script", "s", str(folder / "explored")]
    args, output = cli.make_parser().parse_args(words), io.StringIO()
    with judged_by(Judge({1: BAD[3]})), contextlib.redirect_stdout(output):
        assert args.run(args) == 1
    (call,) = calls(log)
    assert call["stores"][0]["addr"] == "0x100" and call["stores"][0]["promises"] == 1, call
    for text in (output.getvalue(), (folder / "explored" / "check.json").read_text()):
        assert json.loads(text)["bugs"][0]["timelines"][0]["event"] == 9, text
    assert "the power fails" in (folder / "explored" / "report.html").read_text()


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
