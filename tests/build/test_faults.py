#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the verb faults without a VM: what it asks of QEMU, and what it shows."""
import argparse
import json
import sys
from pathlib import Path

import cases

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from launcher import cli, errors, faults  # noqa: E402

CASES = []
RULE = {"rule": "command fail nth=3", "point": "command", "seen": 7, "applied": 1, "spent": True}


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


class Folder:
    """A lab with a VM that has two adapters, and one with siw."""

    data = {
        "alpha": {"driver": "staghorn", "adapters": [{}]},
        "beta": {"driver": "siw", "adapters": []},
    }

    def running(self, name):
        return self.data[name]


class Monitor:
    """QEMU's answers; `asked` has what was set."""

    asked, state, refusal = [], {"rules": [], "late": 0}, None

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, command, path, property, value=None):  # pylint: disable=redefined-builtin
        if command == "qom-set":
            assert property == "faults"
            if self.refusal:
                raise errors.LabError(self.refusal)
            self.asked.append((path, value))
            return {}
        assert (command, property) == ("qom-get", "faults-state")
        return json.dumps(self.state)


def faults_of(*words):
    """(what was set, the result, its text) of `faults WORDS`."""
    faults.Monitor, Monitor.asked = Monitor, []
    args = cli.make_parser([]).parse_args(["faults", *words])
    assert isinstance(args, argparse.Namespace)
    found = faults.run(Folder(), args)
    return Monitor.asked, found, faults.text_of(found)


def refusal(*words):
    """The text of the error of `faults WORDS`."""
    try:
        faults_of(*words)
    except errors.LabError as error:
        assert error.status == errors.USAGE
        return error.text()
    raise AssertionError("no error: %r" % (words,))


@case
def rules(folder):
    """rules of the command line and of a file replace the old ones; --clear ends them"""
    file = folder / "rules"
    file.write_text("# comment\nregisters ones for=1ms\n")
    assert faults_of("alpha", "command fail", "interrupt lost")[0] == [
        ("r0", "command fail\ninterrupt lost")
    ]
    asked = faults_of("alpha", "command fail", "--file", str(file), "--adapter", "1")[0]
    assert asked == [("r1", "command fail\n# comment\nregisters ones for=1ms\n")]
    assert faults_of("alpha", "--clear")[0] == [("r0", "")]
    for words in (["alpha"], ["alpha", "--show"]):
        assert faults_of(*words)[0] == []


@case
def shown(_folder):
    """the rules and their counts, as text and as an object"""
    assert faults_of("alpha")[2] == "alpha, adapter 0: no faults"
    Monitor.state = {"rules": [RULE, dict(RULE, seen=0, applied=0, spent=False)], "late": 2}
    _, found, text = faults_of("alpha", "--adapter", "1")
    assert found == dict(Monitor.state, vm="alpha", adapter=1)
    assert text.splitlines() == [
        "alpha, adapter 1: 2 fault rules",
        "  command fail nth=3: applied 1 of 7, spent",
        "  command fail nth=3: applied 0",
        "  interrupts that wait: 2",
    ]
    Monitor.state = {"rules": [], "late": 0}


@case
def refused(folder):
    """nonsense: the message of QEMU, contradictory options, no such adapter or file"""
    Monitor.refusal = "fault rule 1, 'x': it begins with x"
    text = refusal("alpha", "x")
    assert "fault rule 1, 'x'" in text and "docs/manual/faults.md" in text
    Monitor.refusal = None
    assert "one of them" in refusal("alpha", "command fail", "--clear")
    assert "one of them" in refusal("alpha", "--show", "--clear")
    assert "no Staghorn adapter 2" in refusal("alpha", "--adapter", "2")
    assert "no Staghorn adapter 0" in refusal("beta")
    assert "none" in refusal("alpha", "--file", str(folder / "none"))
    (folder / "octets").write_bytes(b"\xff\xfe")
    assert "octets" in refusal("alpha", "--file", str(folder / "octets"))


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
