#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests which programs tools/build/check runs for a file, in which order and how."""
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import cases

TOP = Path(__file__).resolve().parents[2]
CHECK = str(TOP / "tools" / "build" / "check")
CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def load_files():
    """tools/build/files.py as a module."""
    spec = importlib.util.spec_from_file_location("files", TOP / "tools" / "build" / "files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = cases.load_check()


@case
def file__its_tests(_folder):
    """a file has the tests of its folder, and a test file is its own test"""
    for path, test in (
        ("hw/core/verbs/queues/sq.c", "unit/verbs/*"),
        ("hw/core/proto/mpa_start.c", "sim/sim/engine"),
        ("hw/net/listener.c", "unit/net/*"),
        ("hw/explore/main.c", "unit/crash/program"),
        ("tests/unit/verbs/test_odp.c", "unit/verbs/odp"),
        ("tests/unit/verbs/rig.h", "unit/verbs/*"),
        ("tests/build/test_logs.py", "build/test_logs"),
        ("include/staghorn/regs.h", "style/layout"),
        ("staghorn", "build/*"),
    ):
        assert test in check.tests_of.tests_of(path), (path, check.tests_of.tests_of(path))
    assert check.tests_of.tests_of("docs/testing.md") == []
    assert check.tests_of.hint("tests/vm/ulp/test_nfs.py").endswith(" test_nfs")


@case
def file__targets(folder):
    """what a test runs is built with it"""
    native = folder / "native"
    env = {"SG_EXPLORE": str(native / "hw" / "explorer"), "SG_SANITIZED": "0", "SG_TOP": str(TOP)}
    programs = [
        check.Program("a", "unit", [str(native / "tests" / "a")], env),
        check.Program("b", "style", [str(native / "b")], {}),
    ]
    assert check.native_targets(programs, folder) == ["hw/explorer", "tests/a"]


@case
def file__every_folder_has_tests(_folder):
    """no folder of hw/ is without a row"""
    for path in sorted((TOP / "hw").rglob("*.c")):
        name = str(path.relative_to(TOP))
        assert check.tests_of.tests_of(name) or check.tests_of.hint(name), name


@case
def file__style_of_itself(_folder):
    """the style of the file is checked, and of no other"""
    programs = list(check.script_programs({"build": str(TOP / "build")}))
    chosen = check.of_files(programs, ["tests/build/cases.py", "gone.c"])
    assert [p.command[2:] for p in chosen if p.name == "tidy"] == [["tests/build/cases.py"]]
    assert {p.suite for p in chosen} == {"build", "style"}


@case
def script__suite_of_its_own(folder):
    """a script's suite is its folder's, unless it names another; an unknown one is refused"""
    tests = folder / "tests" / "build"
    tests.mkdir(parents=True)
    top, check.TOP = check.TOP, folder
    try:
        (tests / "test_a.py").write_text('"""A test."""\n')
        (tests / "test_b.py").write_text('"""A test."""\n\n# suite: full\n')
        found = {p.name: p.suite for p in check.script_programs({"build": "b"})}
        assert found == {"test_a": "build", "test_b": "full"}, found
        (tests / "test_c.py").write_text("# suite: slow\n")
        try:
            list(check.script_programs({"build": "b"}))
        except AssertionError as refusal:
            assert str(refusal).endswith("test_c.py: no suite slow"), refusal
        else:
            raise AssertionError("an unknown suite was taken")
    finally:
        check.TOP = top


@case
def order__longest_first(folder):
    """new programs start first, then those that took longest"""
    programs = [check.Program(name, "unit", []) for name in ("short", "new", "long")]
    programs[0].seconds, programs[2].seconds = 1, 7
    check.note_seconds([programs[0], programs[2]], folder)
    check.longest_first(programs, folder)
    assert [p.name for p in programs] == ["new", "long", "short"]
    programs[1].seconds = 0.5
    check.note_seconds(programs[1:2], folder)
    programs[1].seconds = 0
    check.note_seconds(programs, folder)
    assert json.loads((folder / "seconds.json").read_text()) == {"unit/long": 0.5, "unit/short": 1}


@case
def order__after_a_time_limit(folder):
    """those that were not started start first next time; ties are another order with each salt"""
    programs = [check.Program(name, "full", []) for name in ("short", "late", "long")]
    for program, seconds in zip(programs, (1, 5, 7)):
        program.seconds = seconds
    check.note_seconds(programs, folder)
    programs[1].seconds, programs[1].late = 0, True
    check.note_seconds(programs, folder)
    check.longest_first(programs, folder)
    assert [p.name for p in programs] == ["late", "long", "short"], programs
    programs = [check.Program("p%d" % i, "full", []) for i in range(20)]
    orders = []
    for salt in ("a", "b", "a"):
        check.longest_first(programs, folder / "none", salt=salt)
        orders.append([p.name for p in programs])
    assert orders[0] == orders[2] != orders[1], orders


@case
def order__of_a_clean_clone(folder):
    """a build folder that knows no times takes those of the cache, where all runs note them"""
    clone, cache = folder / "clone", folder / "cache"
    programs = [check.Program(name, "unit", []) for name in ("short", "long")]
    programs[0].seconds, programs[1].seconds = 1, 7
    for place in (clone, cache):
        place.mkdir()
    check.note_seconds(programs, clone, cache)
    check.longest_first(programs, folder / "new", cache)
    assert [p.name for p in programs] == ["long", "short"], programs
    programs[0].seconds = 0.5
    check.note_seconds(programs, clone)
    check.longest_first(programs, clone, cache)
    assert [p.name for p in programs] == ["short", "long"], programs


# Each waits for the other one's file, so both end well only if they run at once.
MEET = (
    "touch $D/$ME; n=0; "
    "until [ -e $D/$OTHER ] || [ $n -ge 100 ]; do n=$((n + 1)); sleep 0.1; done; "
    "echo 1..1; [ $n -lt 100 ] && echo ok 1 - met || echo not ok 1 - alone"
)
# Fails at first; the second time nothing else may run.
TWICE = (
    "echo 1..1; [ -e $D/first ] || { touch $D/first; echo not ok 1 - first; exit 1; }; "
    "[ -e $D/busy ] && echo not ok 1 - busy && exit 1; echo ok 1 - again"
)
BUSY = "touch $D/busy; sleep 1; rm $D/busy; echo 1..1; echo ok 1 - done"


@case
def labs__at_once(folder):
    """two programs with labs run at once; one that failed runs again when the others are done"""
    programs = [
        check.Program(name, "vm", ["sh", "-c", text], {"D": str(folder), **env}, parallel=False)
        for name, text, env in (
            ("a", MEET, {"ME": "a", "OTHER": "b"}),
            ("b", MEET, {"ME": "b", "OTHER": "a"}),
            ("twice", TWICE, {}),
            ("busy", BUSY, {}),
        )
    ]
    for program in programs:
        program.lab = True
    with contextlib.redirect_stdout(io.StringIO()):
        check.Runner(folder, False).run_all(programs, 2, 2)
    assert [p.cases[0].outcome for p in programs] == 4 * ["passed"], programs
    assert [len(p.unsteady) for p in programs] == [0, 0, 1, 0], programs


@case
def labs__that_wait(folder):
    """one program that waits runs beside two other labs and beside programs without one"""
    meet = [MEET, {"ME": "a", "OTHER": "b"}], [MEET, {"ME": "b", "OTHER": "a"}]
    for others in (
        [("b", "unit", True), ("x", "unit", True)],
        [("x", "vm", False), ("b", "vm", False)],
    ):
        programs = [check.Program("a", "full", ["sh", "-c", meet[0][0]], parallel=False)]
        programs[0].env = {"D": str(folder), **meet[0][1]}
        programs[0].lab = programs[0].waits = True
        for name, suite, parallel in others:
            text, env = meet[1] if name == "b" else (BUSY, {})
            program = check.Program(name, suite, ["sh", "-c", text], parallel=parallel)
            program.env = {"D": str(folder), **env}
            program.lab = suite == "vm"
            programs.append(program)
        with contextlib.redirect_stdout(io.StringIO()):
            check.Runner(folder, False).run_all(programs, 2, 2)
        assert [p.cases[0].outcome for p in programs] == 3 * ["passed"], programs
        for name in "ab":
            (folder / name).unlink()


@case
def short__programs_in_c(_folder):
    """without suite full, C programs run in part; whole if they are named, or with suite full"""
    for words, short in (([], True), (["--full"], False), (["x/y"], False)):
        before, sys.argv = sys.argv, ["check", *words]
        try:
            args = check.arguments()
        finally:
            sys.argv = before
        programs = [check.Program("x/y", suite, []) for suite in ("unit", "sim-san", "qtest")]
        if not args.full:
            check.make_short(programs, args)
        shown = [(p.short, p.env.get("SG_CASES") == "short") for p in programs]
        assert shown == 3 * [(short, short)], (words, shown)


@case
def short__times_are_not_noted(folder):
    """the time of a short run does not replace that of a whole one"""
    programs = [check.Program(name, "unit", []) for name in ("whole", "part")]
    programs[0].seconds, programs[1].seconds = 3, 2
    programs[1].short = True
    check.note_seconds(programs, folder)
    assert json.loads((folder / "seconds.json").read_text()) == {"unit/whole": 3}


@case
def labs__what_they_say(folder):
    """what a program says about its processor time and cases that it left out is reported"""
    text = "echo '# left out: 3 long cases'; echo 1..1; echo ok 1; echo '# processor time: 12.3 s'"
    program = check.Program("x", "vm", ["sh", "-c", text], parallel=False)
    program.lab = True
    with contextlib.redirect_stdout(io.StringIO()) as said:
        check.Runner(folder, False).run_all([program], 1, 1)
        check.summary([program], check.Coverage([], [], [], {}), folder)
    assert (program.processor, program.left_out) == (12.3, 3), program
    assert "(processor 12 s)" in said.getvalue(), said.getvalue()
    assert "long cases that only make check-full runs: 3" in said.getvalue(), said.getvalue()


@case
def labs__too_late(folder):
    """long after SG_CHECK_UNTIL a program that failed is not run again, and a message says so"""
    text = "echo 1..1; echo not ok 1 - x; exit 1"
    program = check.Program("x", "vm", ["sh", "-c", text], parallel=False)
    program.lab = True
    os.environ["SG_CHECK_UNTIL"] = str(int(time.time()) - check.SECOND_GRACE - 1)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            check.Runner(folder, False).run_all([program], 2, 2)
    finally:
        del os.environ["SG_CHECK_UNTIL"]
    assert program.count("failed") == 1 and not program.unsteady, program
    assert "not run again, for lack of time: x" in said.getvalue(), said.getvalue()


@case
def arguments__refused(_folder):
    """a choice that makes no sense has status 2 and a reason"""
    for words, reason in (
        (("--file", "nosuch.c"), "no file nosuch.c"),
        (("--changed", "--debug"), "choose the tests"),
        (("--changed", "verbs/"), "choose the tests"),
        (("--labs", "-1"), "must not be negative"),
    ):
        done = subprocess.run(
            [sys.executable, CHECK, *words, "--list"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and reason in done.stderr, (words, done)


@case
def labs__how_many(_folder):
    """one processor has one lab at a time, two have two; a short run has one more"""
    assert check.most_labs(1, True) == 1
    assert 1 <= check.most_labs(2, True) <= 2
    assert check.most_labs(2, True) <= check.most_labs(2) <= 3
    assert check.most_labs(2) <= check.most_labs(64)


@case
def fast__arguments(folder):
    """--fast replaces the arguments of programs that have "fast" ones"""
    info = folder / "meson-info"
    info.mkdir()
    test = {
        **{"name": "sim/x", "suite": ["staghorn:sim"], "cmd": ["/x", "--seeds", "1..9"]},
        **{"env": {"SG_FAST_ARGS": "--seeds 1..2"}, "workdir": None, "timeout": 60},
        **{"is_parallel": True, "protocol": "tap"},
    }
    (info / "intro-tests.json").write_text(json.dumps([test]))
    (program,) = check.meson_programs(folder, "")
    assert program.fast == "--seeds 1..2" and program.env == {}, program


@case
def deb__only_with_packages(folder):
    """suite deb belongs to all only if configure had --enable-deb; it may be named in any case"""
    for words, deb, wanted in (([], 0, False), ([], 1, True), (["--suite", "deb"], 0, True)):
        with mock.patch.object(sys, "argv", ["check", *words]):
            args = check.arguments()
        programs, wrong, _ = check.programs_for(args, {"build": str(folder), "deb": deb})
        assert ("test_debs" in [p.name for p in programs]) == wanted, (words, deb, wrong)
    assert check.tests_of.tests_of("tests/build/test_debs.py") == ["deb/test_debs"]


@case
def files__scripts(_folder):
    """formatters and linters see each script without a suffix, whatever options it has"""
    names = load_files().python_files()
    for name in ("staghorn", "tools/build/check", "tools/bench/bench-pmem"):
        assert name in names, name


@case
def big_endian__commands(folder):
    """big-endian: programs of meson and of the provider, in the emulator, and with time for it"""
    build = Path(folder)
    programs = [
        check.Program("sim/engine", "sim", ["/b/engine"], fast="'--seeds' '1..9'", timeout=5),
        check.Program("wire/ddp", "unit", ["/b/wire"], timeout=5),
        check.Program(
            "crash/program", "unit", ["/b/crash"], {"SG_EXPLORE": "/b/explore"}, timeout=5
        ),
    ]
    (build / check.big_endian.TESTS).mkdir(parents=True)
    (build / check.big_endian.TESTS / "staghorn-test-mpe").touch()
    run = str(build / "bin/s390x-run")
    found = check.big_endian.emulated(build, programs)
    assert {(p.suite, p.timeout) for p in found} == {("big-endian", 100)}
    words = [p.command for p in found]
    assert words[0] == [run, "/b/engine", "--seeds", "1..9"], words
    assert words[1] == [run, "/b/wire"], words
    assert found[2].env == {"SG_EXPLORE": run + " /b/explore"}, found[2].env
    assert words[3][0] == run and words[3][1].endswith("staghorn-test-mpe"), words
    assert check.big_endian.emulated(build, []) == []


@case
def file__without_tests(_folder):
    """a file without tests here is no error"""
    words = [sys.executable, CHECK, "--file", str(TOP / "LICENSE"), "--list"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.split() == ["style", "tidy"], done


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
