#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests which VM tests `make check` runs, and that `make check-full` runs all of them."""
import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
CASES = []
FOLDERS = ("core", "ulp", "long")
# What a change can break: programs of suite vm, each of which has short cases.
AREAS = {
    "launcher": ("test_lab", "test_arguments"),
    "adapter, kernel driver": ("test_rdma",),
    "provider": ("test_verbs",),
    "a peer that is not ours": ("test_interop",),
    "memory placement extensions": ("test_mpe",),
    "the second wire": ("test_wire_2000",),
    "driver checker": ("test_checker",),
    "persistent memory": ("test_pmem",),
    "power cuts": ("test_cut",),
    "order of stores": ("test_litmus",),
    "crash laboratory: record": ("test_record",),
    "crash laboratory: explore": ("test_crash",),
    "crash laboratory: check": ("test_crash_check",),
}


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


check = cases.load_check()


def programs(*words):
    """What check runs with these arguments: {name: Program} of the VM tests."""
    before, sys.argv = sys.argv, ["check", *words]
    try:
        found, wrong, _ = check.programs_for(check.arguments(), {"build": str(TOP / "build")})
    finally:
        sys.argv = before
    assert not wrong, wrong
    return {p.name: p for p in found if p.suite in ("vm", "full")}


def listed(name):
    """The cases of a program of suite vm, as ("long" or "short", name)."""
    env = {**os.environ, "PYTHONPATH": str(TOP / "tests/vm/lib"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, str(TOP / "tests/vm/core" / (name + ".py")), "-l"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split() for line in done.stdout.splitlines()]


def names_of_methods(path):
    """The names of test methods in a file."""
    tree = ast.parse(path.read_text())
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@case
def full__is_everything(_folder):
    """check-full runs each program, with its long cases"""
    found = programs("--full")
    files = {path.stem for folder in FOLDERS for path in (TOP / "tests/vm" / folder).glob("test_*")}
    assert files and files <= set(found), files - set(found)
    assert not any("SG_CASES" in p.env for p in found.values())


@case
def check__leaves_out_long_cases(_folder):
    """without suite full, programs run their short cases only"""
    found = programs()
    assert {p.suite for p in found.values()} == {"vm"}
    assert {p.env["SG_CASES"] for p in found.values()} == {"short"}
    found = programs("--suite", "vm", "--suite", "full", "test_rdma")
    assert not any("SG_CASES" in p.env for p in found.values())


@case
def areas__are_in_check(_folder):
    """each area has a program in suite vm, and each of them short cases"""
    found, named = programs(), {name for names in AREAS.values() for name in names}
    assert named <= set(found), named - set(found)
    for name in named:
        rows = listed(name)
        assert "short" in {kind for kind, _ in rows}, name
        methods = names_of_methods(TOP / "tests/vm/core" / (name + ".py"))
        missing = methods - {case.split(".")[-1] for _, case in rows}
        assert not missing, (name, missing)


def ids_shown(path):
    """{method: (ids that its assertions name, is it long)} of a file's methods that name some."""
    found = {}
    for kind in ast.walk(ast.parse(path.read_text())):
        if not isinstance(kind, ast.ClassDef):
            continue
        for method in filter(lambda node: isinstance(node, ast.FunctionDef), kind.body):
            calls = [node for node in ast.walk(method) if isinstance(node, ast.Call)]
            ids = [
                call.args[0].value
                for call in calls
                if isinstance(call.func, ast.Attribute) and call.func.attr == "shows"
            ]
            marks = [ast.unparse(mark) for mark in method.decorator_list + kind.decorator_list]
            if ids:
                found[method.name] = ids, "labtest.long" in marks
    return found


# An id of the checklist.
ID = re.compile(r"\b[A-Z][A-Z0-9]{1,4}-\d+[a-z]?\b")


@case
def checklist__whole_in_check(_folder):
    """no id of the checklist is shown by a long case only: the coverage of check is complete"""
    suites, short, rest = programs("--full"), set(), []
    for path in (TOP / "tests/unit").rglob("*.c"):
        short |= set(ID.findall(path.read_text()))
    assert short, "no unit test names an id"
    for folder in FOLDERS:
        for path in (TOP / "tests/vm" / folder).glob("test_*.py"):
            for method, (ids, long) in ids_shown(path).items():
                ids = set(ID.findall(" ".join(ids)))
                if suites[path.stem].suite == "vm" and not long:
                    short |= ids
                else:
                    rest.append((path.name, method, ids))
    for name, method, ids in rest:
        assert ids <= short, (name, method, ids - short)


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
