#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of what VM tests share (tests/vm/lib/labtest.py), with a guest that is a shell here."""
import contextlib
import io
import os
import subprocess
import sys
import unittest
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests" / "vm" / "lib"))
import labtest  # noqa: E402
import usage  # noqa: E402

CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


class Folder:
    """Stands for the launcher's LabFolder: one VM, alpha, runs."""

    def __init__(self, name):
        self.name = name

    def running(self, vm):
        if vm != "alpha":
            raise labtest.LabError("VM %s is off" % vm, "Switch it on", 3)


def capture(_folder, _vm, argv, stdin=None, timeout=None):
    """Stands for agent.capture: runs the command here."""
    assert stdin is None
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise labtest.LabError("it took too long", None, labtest.TIMEOUT)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def lab():
    """A Lab whose guest is this machine; yields it and the list of copies."""
    found, copies = object.__new__(labtest.Lab), []
    found.name = "lab"
    saved = labtest.LabFolder, labtest.agent.capture, labtest.transfer.put
    labtest.LabFolder, labtest.agent.capture = Folder, capture
    labtest.transfer.put = lambda _folder, path, vm, target: copies.append((path, vm, target))
    try:
        yield found, copies
    finally:
        labtest.LabFolder, labtest.agent.capture, labtest.transfer.put = saved


def refused(call, *words, **keywords):
    """The text of the AssertionError that the call raises."""
    try:
        call(*words, **keywords)
    except AssertionError as error:
        return str(error)
    raise AssertionError("nothing was raised")


@case
def sh__status_and_output(_folder):
    """sh gives the output, and fails for another status, a VM that is off, or too much time"""
    with lab() as (found, _):
        assert found.sh("alpha", "echo out; echo err >&2") == "out\n"
        assert found.sh("alpha", "echo out; exit 3", status=3) == "out\n"
        assert found.sh("alpha", "exit 3", status=None) == ""
        text = refused(found.sh, "alpha", "echo out; echo err >&2; exit 3")
        assert "status 3 instead of 0" in text and "out\nerr" in text, text
        assert "status 0 instead of 1" in refused(found.sh, "alpha", "true", status=1)
        text = refused(found.sh, "beta", "true")
        assert "status 125 instead of 0" in text and "beta is off" in text, text
        assert found.sh("beta", "true", status=None) == ""
        text = refused(found.sh, "alpha", "sleep 9", timeout=0.1)
        assert "status 4 instead of 0" in text and "too long" in text, text


@case
def install__what_is_missing(folder):
    """install copies programs that the VM lacks, and those of another size"""
    here, there = folder / "here", folder / "there"
    for place in (here, there):
        place.mkdir()
    for name in ("same", "changed", "new"):
        (here / name).write_text(name)
    (there / "same").write_text("same")
    (there / "changed").write_text("change")
    with lab() as (found, copies):
        found.install("alpha", {str(there / p.name): str(p) for p in here.iterdir()})
        assert sorted(path.rsplit("/", 1)[1] for path, _, _ in copies) == ["changed", "new"], copies
        assert {vm for _, vm, _ in copies} == {"alpha"}


class Some(unittest.TestCase):
    """Cases of which one is long."""

    def test_short(self):
        pass

    @labtest.long
    def test_long(self):
        pass


@labtest.long
class All(unittest.TestCase):
    """A class that is long."""

    def test_any(self):
        pass


@case
def long__left_out(_folder):
    """long cases and classes are left out if only short cases are wanted, and counted"""
    rows = [Some("test_short"), Some("test_long"), All("test_any")]
    assert labtest.chosen(rows, []) == rows
    os.environ["SG_CASES"] = "short"
    try:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            assert labtest.chosen(rows, []) == rows[:1]
        assert said.getvalue() == "# left out: 2 long cases\n", said.getvalue()
        assert labtest.chosen(rows, ["test_long"]) == rows[1:2]
    finally:
        del os.environ["SG_CASES"]


@case
def processor__of_orphans(_folder):
    """the processor time of a program has that of a process whose parent ended before it"""
    script = (
        "import subprocess, sys, time; sys.path.insert(0, %r); import usage; usage.adopt();"
        "words = ['sh', '-c', '(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; rm %%s) &'];"
        "import os, tempfile; there = tempfile.mkstemp()[1];"
        "words[2] %%= there; subprocess.run(words);"
        "[time.sleep(0.05) for _ in iter(lambda: os.path.exists(there), False)];"
        "end, used = time.monotonic() + 20, 0\n"
        "while used <= 0.1 and time.monotonic() < end:\n"
        "    time.sleep(0.05); used = usage.processor_seconds() - sum(os.times()[:2])\n"
        "print(used)"
    ) % str(Path(usage.__file__).parent)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0.1, done.stdout


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
