#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `crash explore` with an explorer of their own; the real one is in tests/vm."""
import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import cases

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from launcher import cli, crash, explore, explore_report  # noqa: E402
from launcher.errors import TIMEOUT, LabError, UsageError  # noqa: E402

CASES = []
EVENT = {"machine": "a", "event": 7, "kind": "mark", "name": "<script>", "at": "0x1", "root": "0x2"}
BUG = {
    "acknowledgement": "durable",
    "issuer": {"kind": "cpu", "text": "a store", "pc": "0x401000", "root": "0x2"},
    "example": {"promised-to": "a", "acknowledgement": EVENT, "lost": None},
    "platforms": [
        {
            "platform": "adr,ddio=on",
            "claimed": True,
            "count": 3,
            "stage": "S2",
            "missing": "a fence",
            "certain-behind": None,
        }
    ],
    "story": [{"event": EVENT, "what": "promised", "stage-behind": "S2"}],
}


def platform(name, claimed, broken):
    """A row of a result: 4 promises by marks, of which so many are broken."""
    counts = {"durable": broken} if broken else {}
    return {
        "platform": name,
        "claimed": claimed,
        "promises": {"durable": 4},
        "broken" if claimed else "not-claimed": counts,
        "crash-points": 0,
    }


RESULT = {
    "verdict": "bugs",
    "target": 'a<b>"\x01\x7f',
    "told": "cpu",
    "acknowledgements": ["durable"],
    "traces": [{"machine": "a", "events": 9, "message": "whole"}],
    "promises": {"promises": 4, "acknowledgements": 4},
    "platforms": [
        platform("none,ddio=on", False, 4),
        platform("adr,ddio=on", True, 3),
        platform("eadr,ddio=on", True, 0),
    ],
    "bugs": [BUG],
    "not-claimed": [],
    "notes": ["<i>"],
}


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def explorer(folder, status, result=None):
    """A program in the explorer's place: writes the result, if any, and ends so."""
    text = "#!/bin/sh\nmkdir -p $2\n"
    if result:
        (folder / "canned").write_text(json.dumps(result), encoding="utf-8")
        text += "cp %s/canned $2/result.json\n" % folder
    path = folder / "explorer"
    path.write_text(text + "%s\n" % status, encoding="utf-8")
    path.chmod(0o755)
    explore.paths.explorer = lambda: path


@case
def statuses(folder):
    """The explorer's status is the verb's; what an earlier run wrote is gone if it fails"""
    (folder / "a.trace").touch()
    names = ["junit.xml", "report.html", "result.json"]
    explorer(folder, "exit 1", RESULT)
    status, result, out = explore.explore(folder)
    assert (status, result["verdict"], out) == (1, "bugs", folder / "explored")
    assert sorted(os.listdir(out)) == names
    explorer(folder, "exit 3")
    assert explore.explore(folder) == (3, None, out)
    assert not os.listdir(out)
    explorer(folder, "exit 1", RESULT)
    explore.explore(folder)
    explorer(folder, "kill -9 $$")
    try:
        explore.explore(folder)
    except LabError as error:
        assert "9" in str(error)
    else:
        raise AssertionError("a killed explorer is no failure")
    assert not os.listdir(out)


@case
def not_followed(folder):
    """A bug that the explorer did not follow to its end has a row as others have"""
    del folder
    on = {name: value for name, value in BUG["platforms"][0].items() if name != "certain-behind"}
    text = explore_report.page({**RESULT, "bugs": [{**BUG, "platforms": [on]}]})
    assert "<td>not known</td>" in text
    assert "<td>nothing in this run</td>" in explore_report.page(RESULT)


@case
def images(folder):
    """A bug of --strategy bugs has its image in the report, if there is one"""
    del folder
    words = "Image that shows it"
    for image, wanted in (("<0a>", True), (None, False)):
        text = explore_report.page({**RESULT, "bugs": [{**BUG, "image": image}]})
        assert (words in text) == wanted and "<0a>" not in text, text
    assert words not in explore_report.page(RESULT)


@case
def digits(folder):
    """A number of images has all of its digits, however many, and a line may end between them"""
    del folder
    number = str(7**150)
    row = {**platform("adr,ddio=on", True, 3), "images": {"ways": number}}
    text = explore_report.page({**RESULT, "platforms": [row]})
    assert "<span" in text and number not in text
    assert number in text.replace("<wbr>", "")
    assert max(map(len, text.split('digits">')[1].split("</span>")[0].split("<wbr>"))) == 3


@case
def failures(folder):
    """No failure has the status of a verdict"""
    (folder / "a.trace").touch()
    explorer(folder, "kill -9 $$")
    explores = ["crash", "explore", str(folder)]
    expected = explore.BROKEN
    assert cli.main(explores) == expected
    explorer(folder, "exit 1", RESULT)
    assert cli.main(explores) == explore.BUGS
    (folder / "explored" / "report.html").unlink()
    (folder / "explored" / "report.html").mkdir()
    assert cli.main(explores) == expected
    (folder / "explored" / "report.html").rmdir()
    explorer(folder, "exit 1", {"bugs": 7})
    assert cli.main(explores) == expected
    for error, status in (
        (LabError("a disk is full"), expected),
        (LabError("the VM does not boot", None, TIMEOUT), expected),
        (UsageError("no script"), 2),
    ):
        try:
            crash.judging(_raiser(error))(None)
        except LabError as found:
            assert found.status == status, found
        else:
            raise AssertionError("no error")


@case
def starts(folder):
    """What the trace begins with is given to the explorer, and is known from anywhere later"""
    (folder / "a.trace").touch()
    explorer(folder, 'echo "$@" > %s/words; exit 0' % folder, {**RESULT, "bugs": []})
    before = os.getcwd()
    os.chdir(folder)
    try:
        words = ["--onto", "an.image", "--base", "pmem0=base/x=y.raw", "--base", "pmem1=/b"]
        assert cli.main(["crash", "explore", *words, "."]) == explore.GOOD
    finally:
        os.chdir(before)
    wanted = ["--onto", "%s/an.image" % folder, "--base", "pmem0=%s/base/x=y.raw" % folder]
    wanted += ["--base", "pmem1=/b"]
    assert " ".join(wanted) in (folder / "words").read_text()
    result = json.loads((folder / "explored" / "result.json").read_text())
    assert result["source"]["options"] == wanted, result["source"]
    for wrong in ("pmem0", "=file", "pmem0="):
        assert cli.main(["crash", "explore", "--base", wrong, str(folder)]) == 2


def _raiser(error):
    def work(_args):
        raise error

    return work


@case
def messages(folder):
    """A bug whose store is a message's has no program counter; its events may have some"""
    (folder / "a.trace").touch()
    issuer = {"kind": "write", "text": "an RDMA Write to port 7000"}
    explorer(folder, "exit 1", {**RESULT, "bugs": [{**REMOTE, "issuer": issuer}]})
    status, result, _ = explore.explore(folder)
    assert (status, result["bugs"][0]["issuer"]) == (1, issuer)


@case
def page(_folder):
    """The report shows texts of a trace as they are, never as HTML"""
    found = explore_report.page(RESULT)
    assert "<script" not in found and "&lt;script&gt;" in found
    assert "<i>" not in found and "a<b>" not in found
    assert "Bug 1: a store may be lost" in found and "nothing in this run" in found


REMOTE = {
    **BUG,
    "timeline": [
        {"machine": "<c>", "what": "the request is sent", "stage-behind": None, "event": EVENT},
        {"machine": "a", "what": "the store", "stage-behind": "S0", "event": EVENT, "cause": 0},
        {"machine": "<c>", "what": "the acknowledgement", "stage-behind": "S0", "cause": 99},
    ],
    "timeline-omitted": 12,
    "frames": {"lost": {"machine": "a", "packet": {"event": 5, "numbers": [7, 9]}}},
}


@case
def timeline(_folder):
    """A timeline has a column for each machine, and says where a message came from"""
    found = explore_report.page({**RESULT, "bugs": [REMOTE]})
    head = found[found.index("<tr><th>&lt;c&gt;</th><th>a</th><th>S0</th>") :]
    rows = head[: head.index("</table>")].split("<tr")[2:]
    assert len(rows) == 3, rows
    assert rows[0].count("&#9679;") == 0 and rows[1].count("&#9679;") == 1, rows
    assert rows[1].startswith("><td></td><td class=") and "event 7 of &lt;c&gt;" in rows[1], rows[1]
    assert rows[2].startswith(' class="said"><td class=') and "&#8592;" not in rows[2], rows[2]
    assert "12 more events are left out" in found
    assert "packet 7 or 9 brought what may be lost to a" in found


@case
def repeated(_folder):
    """Rows that say the same are one, unless a message comes from one of them"""

    def store(number, **more):
        event = {"event": number, "kind": "store"}
        return {"machine": "a", "what": "x", "stage-behind": "S2", "event": event, **more}

    def rows_of(*steps):
        found = explore_report.page({**RESULT, "bugs": [{**REMOTE, "timeline": list(steps)}]})
        table = found[found.index("<tr><th>a</th>") :]
        return table[: table.index("</table>")].split("<tr")[2:]

    rows = rows_of(store(1), store(2), store(3), store(4, what="y"))
    assert len(rows) == 2 and "3 times, the last is event 3" in rows[0], rows
    assert "times" not in rows[1], rows
    assert len(rows_of(store(1), store(2), store(3, cause=1))) == 3
    assert len(rows_of(store(1), store(2), store(3, what="y", cause=0))) == 3
    assert len(rows_of(store(1), {**store(2), "event": {**EVENT, "kind": "mark"}})) == 2


@case
def junit(_folder):
    """JUnit has a case for each platform, and is XML whatever the target's name is"""
    suite = ElementTree.fromstring(explore_report.junit(RESULT))
    assert suite.get("name") == 'crash a<b>"\x7f', suite.get("name")
    numbers = [suite.get(name) for name in ("tests", "failures", "skipped")]
    assert numbers == ["3", "1", "1"], numbers
    found = [[child.tag for child in each] for each in suite]
    assert found == [["skipped"], ["failure"], []], found
    suite = ElementTree.fromstring(explore_report.junit({**RESULT, "verdict": "none"}))
    assert suite[-1][0].tag == "error"


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
