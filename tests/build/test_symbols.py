#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the names that the crash laboratory finds for program counters."""
import json
import subprocess
import sys

import cases

sys.dont_write_bytecode = True
from judges import make_explored  # noqa: E402
from launcher import check_report, explore, explored, plans  # noqa: E402
from launcher.errors import UsageError  # noqa: E402
from launcher.symbols import Symbols  # noqa: E402

CASES = []
SOURCE = """#include <stdio.h>
__attribute__((noinline)) int twice(int x)
{
    return 2 * x;
}
int main(void)
{
    printf("%p %d\\n", (void *)twice, twice(3));
}
"""
KALLSYMS = """0000000000000000 A fixed
ffffffff81000000 T _stext
ffffffff81000100 t clean_cache_range [nd_pmem]
ffffffff82000000 D not_code
"""


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def build(folder, name, *flags):
    """A program that prints where twice() is; returns its path and this address."""
    (folder / "t.c").write_text(SOURCE)
    path = folder / name
    words = ["cc", "-g", "-O1", *flags, "-o", str(path), str(folder / "t.c")]
    subprocess.run(words, check=True)
    done = subprocess.run(["setarch", "-R", str(path)], check=True, capture_output=True, text=True)
    return path, int(done.stdout.split()[0], 16)


@case
def program(folder):
    """A program counter becomes function, file and line, wherever the program was linked"""
    for name, *flags in (("moved", "-fPIE", "-pie"), ("fixed", "-fno-pie", "-no-pie")):
        path, twice = build(folder, name, *flags)
        found = Symbols([path]).resolve([twice, 0x10])
        assert found == {twice: "twice at t.c:4", 0x10: "0x10"}, (name, found)


@case
def several(folder):
    """The program that has code at the address is asked"""
    moved, at = build(folder, "moved", "-fPIE", "-pie")
    fixed, other = build(folder, "fixed", "-fno-pie", "-no-pie")
    found = Symbols([fixed, moved]).resolve([at, other])
    assert set(found.values()) == {"twice at t.c:4"}, found


@case
def kernel(folder):
    """A program counter of the kernel becomes symbol and offset"""
    first, second = 0xFFFFFFFF81000010, 0xFFFFFFFF81000104
    found = Symbols(kallsyms=KALLSYMS).resolve([first, second, 0xFFFFFFFF90000000])
    assert found[first] == "_stext+0x10", found
    assert found[second] == "clean_cache_range+0x4", found
    assert found[0xFFFFFFFF90000000] == "0xffffffff90000000", found


@case
def of_images(folder):
    """The kernel's symbols that an exploration was given name the stores that images lost"""
    printer, symbols, out = folder / "printer", folder / "symbols", folder / "explored"
    printer.write_text('#!/bin/sh\nfor file; do :; done\nexec cat "$file"\n')
    printer.chmod(0o755)
    symbols.write_text(KALLSYMS)
    row = {"kind": "store", "root": 0, "at": 0xFFFFFFFF81000104}
    rows = [{"number": n, **row} for n in (4, 5)]
    trace = folder / "beta.trace"
    trace.write_text("".join(json.dumps(each) + "\n" for each in rows))
    make_explored(out)
    result = {name: [] for name in ("bugs", "not-claimed", "notes", "platforms", "traces")}
    result.update(target="beta", verdict="good", run="12" * 16, promises={})
    (out / "result.json").write_text(json.dumps(result))
    source = {"traces": [trace], "options": [], "symbols": [], "kallsyms": str(symbols)}
    before, plans.paths.trace_printer = plans.paths.trace_printer, lambda: printer
    pages, explore.explore_report.page = explore.explore_report.page, lambda result: ""
    try:
        explore.complete(out, folder, source, Symbols())
        events = check_report.events_of(explored.Explored(out), {5})
        symbols.unlink()
        nameless = check_report.events_of(explored.Explored(out), {5})
    finally:
        plans.paths.trace_printer, explore.explore_report.page = before, pages
    assert plans.issuer(events[5]) == "the store by clean_cache_range", events
    assert events[5]["symbol"] == "clean_cache_range+0x4", events
    assert plans.issuer(nameless[5]) == "the store at 0xffffffff81000104", nameless


@case
def lies(_folder):
    """What is no symbol is passed over, whatever the guest wrote: no number, no name, no text"""
    text = "\n".join(
        (
            "ffffffff81000000 T good",
            "ffffffff81000010 T \x1b[2Jcleared",
            "ffffffff81000020 T " + "x" * 100000,
            "ffffffffffffffffffffffff81000030 T long",
            "not-a-number T word",
            "-1 T negative",
            "ffffffff81000040 T",
            "\0" * 1000,
            "ffffffff81000050 T two words",
            "ffffffff81000060 t fine [staghorn]",
        )
    )
    found = Symbols(kallsyms=text).resolve([0xFFFFFFFF8100005F, 0xFFFFFFFF81000061])
    assert list(found.values()) == ["good+0x5f", "fine+0x1"], found


@case
def wrong(folder):
    """A file that is not there, or is no program, is an error of the user"""
    text = folder / "text"
    text.write_text("no program")
    for path in (folder / "absent", text):
        try:
            Symbols([path])
            raise AssertionError("%s was accepted" % path)
        except UsageError:
            pass


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
