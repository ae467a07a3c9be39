#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of how tools/build/check reads results: TAP, second runs, the checklist."""
import contextlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def outcomes(check, text, status=0, died=""):
    """The outcomes that the TAP reader finds in a program's output."""
    return [c.outcome for c in check.parse_tap(text, status, died)]


@case
def tap__plain(_folder):
    """TAP: passed, failed and skipped cases are told apart"""
    check = cases.load_check()
    text = "1..3\nok 1 - a\n# why\nnot ok 2 - b\nok 3 - c # SKIP no device\n"
    found = check.parse_tap(text, 1, "")
    assert [c.outcome for c in found] == ["passed", "failed", "skipped"]
    assert found[1].detail == "# why" and found[2].detail == "no device"
    assert found[2].name == "c"


@case
def tap__defects(_folder):
    """TAP: a program that dies, breaks its plan or prints nothing has failed"""
    check = cases.load_check()
    assert outcomes(check, "1..3\nok 1 - a\n", 0, "killed by SIGSEGV") == [
        "passed",
        "failed",
        "failed",
    ]
    assert outcomes(check, "1..2\nok 1 - a\n") == ["passed", "failed"]
    assert outcomes(check, "1..1\nok 1 - a\nok 2 - b\n") == ["passed", "passed", "failed"]
    assert outcomes(check, "") == ["failed"]
    assert outcomes(check, "ok 1 - a\n") == ["passed", "failed"]
    assert outcomes(check, "1..1\nok 1 - a\n", 1) == ["passed", "failed"]
    assert outcomes(check, "1..0 # SKIP no such machine\n") == ["skipped"]
    assert outcomes(check, "1..1\nok 1 - a\nBail out! no\n") == ["passed", "failed"]


@case
def tap__ids(_folder):
    """TAP: checklist ids are found in names"""
    check = cases.load_check()
    assert list(check.ids_of("MPA-30 and RDM-12/14a, not mpa-1")) == ["MPA-30", "RDM-12", "RDM-14a"]


@case
def runner__second_run(folder):
    """runner: a real-time program that fails runs again, and then is unsteady or has failed"""
    check = cases.load_check()
    script = (
        "mkdir -p $D; n=$(ls $D | wc -l); touch $D/$n; echo 1..1; "
        "[ $n -ge $GOOD ] && echo ok 1 - a || echo not ok 1 - a"
    )
    ends = {}
    for suite, good in (("vm", 0), ("vm", 1), ("vm", 2), ("unit", 1)):
        name = "%s%d" % (suite, good)
        program = check.Program(
            name, suite, ["sh", "-c", script], {"D": str(folder / name), "GOOD": str(good)}
        )
        with contextlib.redirect_stdout(io.StringIO()):
            check.Runner(folder, False).run(program)
        ends[name] = (
            program.cases[0].outcome,
            len(program.unsteady),
            len(program.cases),
            (folder / (suite + "-" + name + ".first.log")).exists(),
        )
    assert ends == {
        "vm0": ("passed", 0, 1, False),
        "vm1": ("passed", 1, 1, True),
        "vm2": ("failed", 0, 1, True),
        "unit1": ("failed", 0, 1, False),
    }, ends


@case
def runner__until(folder):
    """runner: after SG_CHECK_UNTIL no long run starts, with a message; other suites do"""
    check = cases.load_check()
    ends = []
    try:
        for after in (-5, 1000):
            os.environ["SG_CHECK_UNTIL"] = str(int(time.time()) + after)
            for suite in ("full", "vm"):
                program = check.Program("p", suite, ["sh", "-c", "echo 1..1; echo ok 1 - a"])
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    check.Runner(folder, False).run(program)
                ends.append((program.cases[0].outcome, "SG_CHECK_UNTIL" in said.getvalue()))
        os.environ["SG_CHECK_UNTIL"] = "soon"
        done = subprocess.run(
            [sys.executable, str(TOP / "tools/build/check"), "--list"],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        del os.environ["SG_CHECK_UNTIL"]
    assert ends == [("skipped", True)] + 3 * [("passed", False)], ends
    assert done.returncode == 2 and "must be seconds" in done.stderr, done


@case
def runner__choice(_folder):
    """runner: a name that no program has is an error, not a run of nothing"""
    check = cases.load_check()
    programs = [check.Program(n, s, []) for n, s in (("a/one", "unit"), ("b", "style"))]
    assert check.choose(programs, ["unit", "style"], []) == (programs, [])
    assert check.choose(programs, ["unit", "style", "sim"], ["a/"]) == (programs[:1], [])
    assert check.choose(programs, ["unit"], ["one", "b"])[1] == [
        "no program has b in its name; --list shows them"
    ]
    assert check.choose(programs, ["sim"], []) == (
        [],
        ["suite sim has no programs; make check builds it"],
    )


@case
def checklist__levels(_folder):
    """checklist: MUSTs are counted, those of others and lower levels are not"""
    check = cases.load_check()
    text = (
        "| Id | Section | Level | Side | Requirement | Tests |\n|---|---|---|---|---|---|\n"
        "| AB-01 | 1 | MUST | both | a thing | |\n| AB-02 | 1 | SHOULD | both | a MUST | |\n"
        "| AB-03 | 1 | MUST (not ours: the user does it) | user | a thing | |\n"
        "| AB-04 | 1 | MUST NOT | both | a thing | |\n"
        "| AB-05 | 1 | MUST (not ours: ) | both | no reason given | |\n"
        "see AB-06 MUST\n"
    )
    musts, others, known = check.checklist(text)
    assert musts == ["AB-01", "AB-04"], musts
    assert others == {"AB-03": "the user does it"}, others
    assert known == {"AB-01", "AB-02", "AB-03", "AB-04", "AB-05"}, known


@case
def checklist__coverage(_folder):
    """checklist: covered means shown by a passed case and refuted by none"""
    check = cases.load_check()
    real = check.checklist((TOP / "docs" / "conformance.md").read_text())
    assert len(real[0]) > 200 and all(real[1].values())
    ids = real[0][:6]
    text = (
        "1..6\n# shows: %s %s\nok 1 - x\n# does not show: %s\nnot ok 2 - y\n"
        "# shows: %s\nok 3 - z # SKIP no device\n# shows: %s\nnot ok 4 - u\n"
        "ok 5 - %s only in its name\n# shows: %s\nok 6 - t\n"
        % (ids[0], ids[1], ids[1], ids[2], ids[3], ids[4], ids[5])
    )
    program = check.Program("p", "unit", [])
    program.cases = check.parse_tap(text, 1, "")
    assert [c.detail for c in program.cases if c.outcome == "failed"] == ["", ""]
    cover = check.coverage([program])
    assert cover.covered == [ids[0], ids[5]], cover.covered
    assert len(cover.uncovered) == len(real[0]) - 2 and cover.others == real[1]


@case
def checklist__failed_name(_folder):
    """checklist: an id in the name of a failed case is uncovered, even if another case shows it"""
    check = cases.load_check()
    first = check.checklist((TOP / "docs" / "conformance.md").read_text())[0][0]
    programs = [check.Program("p", "unit", []), check.Program("q", "sim", [])]
    programs[0].cases = check.parse_tap("1..1\n# shows: %s\nok 1 - x\n" % first, 0, "")
    assert check.coverage(programs).covered == [first]
    programs[1].cases = check.parse_tap("1..1\nnot ok 1 - %s y\n" % first, 1, "")
    assert check.coverage(programs).covered == []


@case
def checklist__notes(_folder):
    """checklist: notes that only look like claims stay notes"""
    check = cases.load_check()
    text = "1..1\n# shows: what it is\n# shows:\n# it shows: AB-01\nnot ok 1 - a\n"
    case = check.parse_tap(text, 1, "")[0]
    assert case.shows == [] and case.detail.count("\n") == 1, case


VM_CASES = """
import unittest
import labtest

class A(labtest.Claims, unittest.TestCase):
    def test_a(self):
        with self.shows("RDM-54 RDM-50"):
            self.assertEqual(1, 1)
    def test_b(self):
        with self.shows("RDM-54"):
            self.assertEqual(1, 2)
    def test_c(self):
        with self.shows("RDM-54"):
            pass
    def test_d(self):
        with self.shows("RDM-54"):
            self.assertEqual(1, 1)
        self.skipTest("no device")

labtest.main()
"""


@case
def checklist__vm_tests(folder):
    """checklist: a claim of a VM test counts if its case passed and made an assertion"""
    check = cases.load_check()
    (folder / "claims.py").write_text(VM_CASES)
    environment = dict(os.environ, PYTHONPATH=str(TOP / "tests" / "vm" / "lib"))
    command = [sys.executable, str(folder / "claims.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = check.parse_tap(done.stdout, done.returncode, "")
    assert [(c.outcome, c.shows, c.refutes) for c in found] == [
        ("passed", ["RDM-54", "RDM-50"], []),
        ("failed", [], ["RDM-54"]),
        ("failed", [], ["RDM-54"]),
        ("skipped", [], []),
    ], done.stdout


def many_unsteady(check, folder, count):
    """(totals, output) of a summary with `count` cases that failed once."""
    programs = [check.Program("p%d" % i, "vm", []) for i in range(count)]
    for program in programs:
        program.cases = [check.Case("a", "passed")]
        program.unsteady = [check.Case("a", "failed")]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        cover = check.Coverage([], [], [], {})
        totals = check.summary(programs, cover, folder)
        check.write_results(folder, programs, totals, cover)
    return totals, said.getvalue()


@case
def unsteady__limit(folder):
    """unsteady: three cases that failed once are listed, four fail the run"""
    check = cases.load_check()
    totals, said = many_unsteady(check, folder, 0)
    assert totals == [0, 0, 0] and "first run" not in said
    totals, said = many_unsteady(check, folder, 3)
    assert totals == [3, 0, 0] and "3 failed in a first run" in said, said
    assert "p2: a" in said and str(folder / "vm-p2.first.log") in said, said
    totals, said = many_unsteady(check, folder, 4)
    assert totals == [4, 1, 0] and "FAILED: more than 3" in said, said
    found = json.loads((folder / "results.json").read_text())
    assert found["failed"] == 1 and len(found["unsteady"]) == 4, found
    assert found["unsteady"][0] == {
        "suite": "vm",
        "program": "p0",
        "case": "a",
        "log": str(folder / "vm-p0.first.log"),
    }, found


@case
def unsteady__what_counts(_folder):
    """unsteady: a case that failed twice is not one; all cases that did not run are one"""
    check = cases.load_check()
    first = check.parse_tap("1..5\nnot ok 1 - a\nnot ok 2 - b\nok 3 - c\n", 0, "killed")
    assert len(first) == 5
    text = "1..5\nok 1 - a\nnot ok 2 - b\nok 3 - c\nok 4 - d\nok 5 - e\n"
    second = check.parse_tap(text, 1, "")
    failed = [c for c in first if c.outcome == "failed"]
    names = [c.name for c in check.unsteady(failed, second)]
    assert names == ["a", "(case 4 of 5 did not run)"], names


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
