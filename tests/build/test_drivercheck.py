#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests how VM tests notice the reports of the driver checker, without a VM."""
import ast
import os
import sys
import tempfile
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests" / "vm" / "lib"))
sys.path.insert(0, str(TOP / "tools"))
import drivercheck  # noqa: E402
from launcher import snapshot  # noqa: E402

CASES = []
ARM = (
    "01:27:37.365 staghorn_check r0: check: CQ-ARM: cq 1: completion queue 1: consumer index 9, "
    "producer index 0, cpu 3 at 0xffffffff81001234 (registers.md#doorbells)"
)
LEFT = "01:27:38.001 staghorn_check r1: check: RESET-LEFT: adapter: reset with 1 QPs (driver.md)"
QUIET = """01:25:53.022 QEMU starts, 2026-11-23 UTC
01:27:37.365 staghorn_peer r0: peer error: conn 2: write: out of bounds (1/1/01)
01:27:37.366 staghorn_failure r0: failure: qp 2: RTS -> TERMINATE: check: what follows
"""


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def log(folder, vm, text, name="device.log"):
    """Appends to a VM's device log in a lab's folder."""
    Path(folder, vm).mkdir(exist_ok=True)
    with open(Path(folder, vm, name), "a") as file:
        file.write(text)


@case
def lines(_folder):
    """reports are found in a device log, and nothing else is"""
    assert drivercheck.found_in(QUIET) == []
    text = QUIET + ARM + "\n" + QUIET + LEFT + "\n"
    assert drivercheck.found_in(text) == [(ARM, "CQ-ARM"), (LEFT, "RESET-LEFT")]


@case
def once(_folder):
    """each report is given once, also when the log was rotated; an absent lab has none"""
    with tempfile.TemporaryDirectory() as folder:
        assert drivercheck.Reports(folder + "/none").new() == []
        reports = drivercheck.Reports(folder)
        log(folder, "alpha", QUIET)
        assert reports.new() == []
        log(folder, "alpha", ARM + "\n")
        assert reports.new() == ["alpha: " + ARM]
        assert reports.new() == []
        os.rename(folder + "/alpha/device.log", folder + "/alpha/device.log.1")
        log(folder, "alpha", LEFT + "\n")
        log(folder, "beta", ARM + "\n")
        assert reports.new() == ["alpha: " + LEFT, "beta: " + ARM]


@case
def permitted(_folder):
    """a rule that a class breaks on purpose is permitted, others are not"""
    with tempfile.TemporaryDirectory() as folder:
        reports = drivercheck.Reports(folder)
        log(folder, "alpha", ARM + "\n" + LEFT + "\n")
        assert reports.new(("CQ-ARM",)) == ["alpha: " + LEFT]
        assert reports.new() == []


@case
def mode(_folder):
    """the mode is that of SG_CHECK, then that of the class, then off; a class may want none"""
    before = os.environ.pop("SG_CHECK", None)
    try:
        assert [drivercheck.mode(x) for x in (None, "strict")] == ["off", "strict"]
        os.environ["SG_CHECK"] = "warn"
        assert [drivercheck.mode(x) for x in (None, "strict")] == ["warn", "warn"]
        assert drivercheck.mode("off") == "off"
        os.environ["SG_CHECK"] = "on"
        try:
            drivercheck.mode(None)
        except SystemExit as error:
            assert "off, warn, strict" in str(error)
        else:
            raise AssertionError("SG_CHECK=on is accepted")
    finally:
        os.environ.pop("SG_CHECK", None)
        if before is not None:
            os.environ["SG_CHECK"] = before


@case
def settings(_folder):
    """no class of a VM test has a method with the name of a setting of labtest.LabCase"""
    names = {"driver_check", "mistakes", "up_arguments"}
    library = (TOP / "tests" / "vm" / "lib" / "labtest.py").read_text()
    found, classes = [], 0
    for path in sorted((TOP / "tests" / "vm").rglob("*.py")):
        for one in ast.walk(ast.parse(path.read_text())):
            if isinstance(one, ast.ClassDef):
                classes += 1
                methods = [part.name for part in one.body if isinstance(part, ast.FunctionDef)]
                found += ["%s: %s" % (path.name, name) for name in methods if name in names]
    assert classes > 20, classes
    assert all("\n    %s = " % name in library for name in names), names
    assert not found, found


@case
def arguments(_folder):
    """all adapters get the property, unless the test gives it itself"""
    assert drivercheck.words("off", ()) == ()
    assert drivercheck.words("strict", ("--mtu", 9000)) == ("--device-prop", "check=strict")
    assert drivercheck.words("strict", ("--device-prop", "alpha:check=warn")) == ()


@case
def snapshots(_folder):
    """a boot snapshot fits VMs with and without a checker"""
    plain = ["-m", "256", "-device", "staghorn,netdev=up0,id=r0", "-device", "x,y"]
    watched = [word.replace("id=r0", "id=r0,check=strict") for word in plain]
    assert watched != plain
    # pylint: disable=protected-access
    assert list(snapshot._visible(watched)) == list(snapshot._visible(plain)) == plain


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
