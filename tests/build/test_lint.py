#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the verb lint without a VM: reports of the driver checker as text and as a status."""
import argparse
import contextlib
import io
import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import agent, elf_names, errors, lint, processes  # noqa: E402

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
    """The guest's answers to `cat FILE`, and to the question for the maps of its processes."""

    answer = []  # of /proc/kallsyms: pieces of octets, or an exception at last
    maps, files = (), {}

    def __init__(self, _folder, _name, argv, _stdin, on_output):
        if argv[0] == "sh":
            assert argv[2] == processes.MAPS
            self.pieces = self.maps
        else:
            assert argv[0] == "cat" and len(argv) == 2
            kernel = argv[1] == "/proc/kallsyms"
            self.pieces = self.answer if kernel else self.files.get(argv[1], ())
        self.on_output = on_output

    def run(self, timeout, answer_timeout):
        assert answer_timeout < timeout
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            self.on_output(1, piece)
        return 0


def lint_of(mode, reports, as_json=False, answer=(), symbols=None):
    """(status, what was printed) of `lint alpha`."""
    lint.Monitor, agent.Session = Monitor, Guest
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


LIBRARY = """__attribute__((noinline)) static int twice(int x) { return 2 * x; }
int shown(int x);
int shown(int x) { return twice(x) + 1; }
"""


def library(folder, *flags):
    """(octets of a shared library, offset of shown() in the file)."""
    (folder / "l.c").write_text(LIBRARY)
    path = folder / "libl.so.1"
    words = ["cc", "-O1", "-shared", "-fPIC", *flags, "-o", str(path), str(folder / "l.c")]
    subprocess.run(words, check=True)
    code = elf_names.ElfNames(path.read_bytes())
    address = next(
        start for start, _, at in code.functions if path.read_bytes()[at:][:6] == b"shown\0"
    )
    offset, _, start = code.segments[0]
    return path.read_bytes(), address - start + offset


def line_of(start, offset, path, size=0x4000):
    """A line of /proc/PID/maps."""
    return b"%x-%x r-xp %08x fe:00 17    %s\n" % (start, start + size, offset, path)


@case
def library_of_process(folder):
    """a program counter of a process's shared library has the function's name, also if stripped"""
    base, path = 0x7F0000001000, b"/usr/lib/libl.so.1"
    for flags in ((), ("-s",)):
        octets, offset = library(folder, *flags)
        page = offset & ~0xFFF
        Guest.maps = [b"7f00-7fff r--p 0 fe:00 17 /dev/null\n", line_of(base, page, path)]
        Guest.files = {path.decode(): [octets[:1000], octets[1000:]]}
        report = dict(REPORT, pc="%#x" % (base + offset - page + 2))
        shown = lint_of("warn", [report])[1]
        assert "cpu 3 at shown+0x2 in libl.so.1 (0x7f" in shown, shown


@case
def process_that_is_gone(_folder):
    """without a process, without its file, or with two files at the address: what is known"""
    base = 0x7F0000001000
    report = dict(REPORT, pc="%#x" % (base + 0x10))
    one, two = line_of(base, 0x1000, b"/lib/a.so"), line_of(base, 0x1000, b"/lib/b.so")
    plain = "cpu 3 at %#x, 2 times" % (base + 0x10)
    for maps, expected in (
        ([], plain),
        ([one, two], plain),
        ([one, one], "cpu 3 at a.so, offset 0x1010 (%#x)" % (base + 0x10)),
        ([errors.LabError("silent")], plain),
        ([line_of(base, 0, b"/lib/\x1b[2J.so")], plain),
    ):
        Guest.maps, Guest.files = maps, {}
        shown = lint_of("warn", [report])[1]
        assert expected in shown, (maps, shown)


SECTION_TABLE = ((40, 48), (58, 60), (60, 62))  # its place, an entry's size, how many; ELF64
STRTAB = 3  # type of a section


@case
def damaged_files(folder):
    """a file of the guest that is cut off or damaged at any place ends nothing"""
    octets, offset = library(folder)
    rng = random.Random(17)
    for _ in range(400):
        bad = bytearray(octets[: rng.choice((len(octets), rng.randrange(len(octets))))])
        for _ in range(rng.randrange(8)):
            at = rng.choice((rng.randrange(64), rng.randrange(len(bad) or 1)))
            if at < len(bad):
                bad[at] = rng.randrange(256)
        code = elf_names.ElfNames(bytes(bad))
        code.name(code.address(offset) or 0)


@case
def names_far_outside(folder):
    """tables of names that begin at the end of all offsets have no names"""
    octets, _ = library(folder)
    sections, step, count = (int.from_bytes(octets[a:b], "little") for a, b in SECTION_TABLE)
    bad = bytearray(octets)
    for at in range(sections, sections + step * count, step):
        if int.from_bytes(bad[at + 4 : at + 8], "little") == STRTAB:
            bad[at + 24 : at + 32] = (1 << 63).to_bytes(8, "little")
    assert bad != octets
    code = elf_names.ElfNames(bytes(bad))
    assert code.functions == [], code.functions


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
