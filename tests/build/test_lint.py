#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the verb lint without a VM: reports of the driver checker as text and as a status."""
import argparse
import contextlib
import io
import itertools
import json
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import errors, lint  # noqa: E402

CASES = []
REPORT = {
    "number": 3,
    "rule": "CQ-ARM",
    "section": "registers.md#doorbells",
    "strict": "ends",
    "object": "cq 1",
    "text": "completion queue 1: consumer index 9, producer index 0",
    "ns": 5000000,
    "last_ns": 6000000,
    "count": 2,
    "cpu": 3,
    "pc": "0xffffffff81001234",
    "events": [{"ns": 3000000, "text": "command, opcode 0x18, status 0"}],
}


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


class Folder:
    """A lab with one VM that runs."""

    data = {"vms": {"alpha": {"driver": "staghorn", "adapters": [], "process": None}}}

    def running(self, name):
        return self.data["vms"][name]


class Monitor:
    """QEMU's answers: the adapter's mode and its reports."""

    mode, reports = "warn", []

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, command, path, property):  # pylint: disable=redefined-builtin
        assert command == "qom-get" and path == "r0"
        return {"check": self.mode, "check-reports": json.dumps(self.reports)}[property]


class Guest:
    """The guest's answer to `cat /proc/kallsyms`."""

    answer = []  # pieces of octets, or an exception at last

    def __init__(self, _folder, _name, argv, _stdin, on_output):
        assert argv == ["cat", "/proc/kallsyms"]
        self.on_output = on_output

    def run(self, timeout, answer_timeout):
        assert answer_timeout < timeout
        for piece in self.answer:
            if isinstance(piece, Exception):
                raise piece
            self.on_output(1, piece)
        return 0


def lint_of(mode, reports, as_json=False, answer=(), symbols=None):
    """(status, what was printed) of `lint alpha`."""
    lint.Monitor, lint.agent.Session = Monitor, Guest
    Monitor.mode, Monitor.reports = mode, reports
    Guest.answer = answer
    out = io.StringIO()
    args = argparse.Namespace(vm="alpha", follow=False, json=as_json, symbols=symbols)
    with contextlib.redirect_stdout(out):
        status = lint.run(
            Folder(), args, lambda a, found, text: print(json.dumps(found) if a.json else text)
        )
    return status, out.getvalue()


@case
def text(_folder):
    """a report as text: rule, object, processor, number of times, section, history"""
    status, shown = lint_of("warn", [REPORT])
    assert status == 1
    assert shown.splitlines()[0] == "r0: CQ-ARM, cq 1, cpu 3 at 0xffffffff81001234, 2 times"
    assert "section: docs/manual/registers.md#doorbells" in shown
    assert "2.000 ms before: command, opcode 0x18, status 0" in shown
    assert shown.splitlines()[-1] == "1 reports: CQ-ARM"


@case
def as_json(_folder):
    """as JSON, with the adapter"""
    status, shown = lint_of("strict", [REPORT], True)
    assert status == 1
    assert json.loads(shown) == [dict(REPORT, adapter="r0")]


@case
def named(_folder):
    """the program counter has the name that the guest's kernel has for it"""
    answer = [b"ffffffff81001000 T sgh_cq_arm\t[stag", b"horn]\n"]
    shown = lint_of("warn", [REPORT], False, answer)[1]
    assert "cpu 3 at sgh_cq_arm+0x234 (0xffffffff81001234), 2 times" in shown, shown
    found = json.loads(lint_of("warn", [REPORT], True, answer)[1])
    assert found == [dict(REPORT, adapter="r0", symbol="sgh_cq_arm+0x234")]


@case
def guest_that_lies(_folder):
    """a guest that is silent, sends no end of symbols or none that is one: the number is shown"""
    endless = (b"ffffffff81001000 T x\n" * 50000 for _ in itertools.count())
    for answer in ([errors.LabError("silent")], [b"\xff\0\x1b[2J\n" * 9], endless, []):
        shown = lint_of("warn", [REPORT], False, answer)[1]
        assert "cpu 3 at 0xffffffff81001234, 2 times" in shown, shown
        assert "\x1b" not in shown


@case
def program_of_user(_folder):
    """a program counter of a program is no reason to ask the guest"""
    report = dict(REPORT, pc="0x401234")
    answer = [AssertionError("it is asked")]
    assert "cpu 3 at 0x401234," in lint_of("warn", [report], False, answer)[1]


@case
def good_driver(_folder):
    """no reports, or advice alone: the status is 0"""
    assert lint_of("warn", []) == (0, "no reports\n")
    assert lint_of("warn", [dict(REPORT, strict="advice")])[0] == 0


@case
def off(_folder):
    """a checker that is off is an error that says how to switch it on"""
    for mode in ("off", "", None):
        try:
            lint_of(mode, [REPORT])
        except errors.UsageError as error:
            assert "check=warn" in error.text()
        else:
            raise AssertionError("no error with check=%s" % mode)


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
