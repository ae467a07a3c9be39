#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of call chains in reports of the driver checker: stacks and ORC tables of a kernel that is
described here, and what becomes of them if the guest lies."""
import random
import re
import struct
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import call_chain, guest_orc, guest_reads, lint, symbols  # noqa: E402
from launcher.call_chain import BP, CALL, END, PREV_SP, REGS, REGS_PARTIAL, SP  # noqa: E402
from launcher.call_chain import SP_INDIRECT, Frame, Table, Window, callers  # noqa: E402

CASES = []
TEXT = 0xFFFFFFFF81000000  # functions of 0x100 octets each
STACK = 0xFFFFC90000003E00
TABLE = 0xFFFFFFFF82000000  # where the kernel has its tables
NAMES = ("leaf", "middle", "outer", "entry", "handler")
KALLSYMS = "".join("%x T %s\n" % (TEXT + 0x100 * i, name) for i, name in enumerate(NAMES))
MODULE = 0xFFFFFFFFC0000000
KALLSYMS += "%x t sgh_ring\t[staghorn]\n" % MODULE
KERNEL = symbols.Kernel(KALLSYMS)
LATER = (6, 12)


# A stack of Linux 6.12.117 of Debian 13, as the adapter has recorded it: write() of a process, in
# vfs_write() behind its call of the file's own function.  These are the kernel's entries for it.
RECORDED_SP = 0xFF3F239080503C98
RECORDED = (
    "2000000000000000100000000000000000ed03867fa811ff00469c987fa811ff000000000000000000000000"
    "0000000000d1f6e208820fec00b6e9987fa811ff3800000000000000807a41a3fc7f00000000000000000000"
    "00d1f6e208820fec00b6e9987fa811ff00b6e9987fa811ff3800000000000000807a41a3fc7f000000a17986"
    "7fa811ff896ca4a2ffffffff000000000000000000d1f6e208820fec583f508090233fff483f508090233fff"
    "0100000000000000010000000000000027a930a3ffffffff00d1f6e208820fec00b6e9987fa811ff00b6e998"
    "7fa811ff3800000000000000807a41a3fc7f000000a179867fa811ff583f508090233fffd61d79a2ffffffff"
    "0000000000000000b70231a3ffffffff583f508090233fff483f508090233fff010000000000000033a930a3"
    "ffffffff00d1f6e208820fec00b6e9987fa811ff00b6e9987fa811ff3800000000000000807a41a3fc7f0000"
    "00a179867fa811ff583f508090233fffd61d79a2ffffffff0000000000000000b70231a3ffffffff583f5080"
    "90233fff483f508090233fff010000000000000033a930a3ffffffff887c41a3fc7f00000000000000000000"
    "a03e508090233fff408fa6a2ffffffff00000000000000000000000000000000583f508090233fffd61d79a2"
    "ffffffff0000000000000000b70231a3ffffffff583f508090233fff483f508090233fff0700000000000000"
    "33a930a3ffffffff010000000000000033a930a3ffffffff00000000000000007e1e65a2ffffffff00400000"
    "00000000583f508090233fff00a179867fa811ff351e79a2ffffffff0040000000000000b70231a3ffffffff"
    "583f508090233fff483f508090233fff010000000000000033a930a3ffffffffd61d79a2ffffffff00000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000002f0140a3ffffffff"
    "90384103b3550000030000000000000010000000000000002000000000000000c07c41a3fc7f000040d7c461"
    "b27f00000202000000000000000000000000000000000000000000000000000000000000daffffffffffffff"
    "a773d961b27f00003800000000000000807a41a3fc7f000004000000000000000100000000000000a773d961"
    "b27f000033000000000000000202000000000000307a41a3fc7f00002b00000000000000"
)
RECORDED_ENTRIES = [
    (0xFFFFFFFFA2A46714, CALL, SP, 144, PREV_SP, -40),  # vfs_write()
    (0xFFFFFFFFA2A46C88, CALL, SP, 56, PREV_SP, -32),  # ksys_write()
    (0xFFFFFFFFA330A926, CALL, BP, 16, PREV_SP, -16),  # do_syscall_64()
    (0xFFFFFFFFA340012E, REGS, SP, 0, 0, 0),  # entry_SYSCALL_64()
]


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def at(name, offset=0x20):
    return TEXT + 0x100 * NAMES.index(name) + offset


def bits(kind, sp, bp=0, version=LATER):
    """An entry's third member."""
    if version >= (6, 4):
        return sp | bp << 4 | kind << 8
    end = 11 if version >= (6, 3) else 10
    return sp | bp << 4 | (1 << end if kind == END else (kind - CALL) << 8)


def packed(base, entries, version=LATER):
    """(places, entries) of [(address, kind, base of SP, offset, base of BP, offset)]."""
    places = b"".join(
        struct.pack("<i", address - (base + 4 * i)) for i, (address, *_) in enumerate(entries)
    )
    rest = b"".join(
        struct.pack("<hhH", offset, bp_offset, bits(kind, sp, bp, version))
        for _, kind, sp, offset, bp, bp_offset in entries
    )
    return places, rest


# leaf has pushed nothing; middle has BP of its caller on the stack, and begins at BP; outer has 24
# octets, and entry has none above it.
ENTRIES = [
    (at("leaf", 0), CALL, SP, 8, 0, 0),
    (at("middle", 0), CALL, SP, 8, 0, 0),
    (at("middle", 4), CALL, BP, 16, PREV_SP, -16),
    (at("outer", 0), CALL, SP, 32, 0, 0),
    (at("entry", 0), END, 0, 0, 0, 0),
]


def tables(entries, version=LATER):
    found = Table(TABLE, *packed(TABLE, entries, version), version)
    return lambda pc: [found]


def stack(*words):
    return Window(STACK, b"".join(struct.pack("<Q", word) for word in words))


WORDS = (
    at("middle"),  # leaf's return
    at("handler"),  # of an earlier call
    0x77,  # middle: BP of outer
    at("outer"),
    *(1, 2, 3),
    at("entry"),
)
CHAIN = [Frame(at(name), "orc") for name in ("middle", "outer", "entry")]


def names(found):
    return [KERNEL.caller(frame.pc).split("+")[0] for frame in found]


@case
def orc__whole(_folder):
    """frames of functions with and without a frame pointer, to the entry of the kernel"""
    for version in ((6, 1), (6, 3), (6, 4), (6, 12), (7, 3)):
        table = tables(ENTRIES, version)
        found = callers(stack(*WORDS), at("leaf"), STACK + 16, table, KERNEL.caller)
        assert found == (CHAIN, True), (version, found)


@case
def orc__recorded(_folder):
    """the stack of a real kernel, with left-overs of earlier calls between the frames"""
    window = Window(RECORDED_SP, bytes.fromhex(RECORDED))
    start, *calls = (address + 1 for address, *_ in RECORDED_ENTRIES)

    def is_code(pc):
        return 0xFFFFFFFFA2600000 <= pc < 0xFFFFFFFFA3600000

    found = callers(window, start, 0, tables(RECORDED_ENTRIES), is_code)
    assert found == ([Frame(pc, "orc") for pc in calls], True), found
    left, _ = callers(window, start, 0, lambda pc: [], is_code)
    assert set(calls) < {frame.pc for frame in left} and len(left) > 15, left


@case
def orc__behind_the_end_of_a_function(_folder):
    """an address behind a call that is the last instruction belongs to the caller"""
    words = list(WORDS)
    words[0] = at("outer", 0)  # middle ends with a call
    found, whole = callers(stack(*words), at("leaf"), STACK + 16, tables(ENTRIES), KERNEL.caller)
    assert whole and names(found[1:]) == ["outer", "entry"], found
    assert KERNEL.caller(found[0].pc) == "middle+0x100"


@case
def orc__window_ends(_folder):
    """behind the window is nothing: the chain ends, and says that it goes on"""
    for octets in range(0, 8 * len(WORDS)):
        window = Window(STACK, stack(*WORDS).octets[:octets])
        found, whole = callers(window, at("leaf"), STACK + 16, tables(ENTRIES), KERNEL.caller)
        assert not whole and found == CHAIN[: len(found)], (octets, found)
        assert len(found) == (octets >= 8) + (octets >= 32), (octets, found)


@case
def orc__interrupts(_folder):
    """an interrupt left all registers, or those of IRET; in a process the chain ends"""
    regs = [0] * 21
    regs[4], regs[16], regs[17], regs[19] = STACK + 8 * 24, at("middle"), 0x10, STACK + 8 * 24
    whole = [(at("handler", 0), REGS, SP, 0, 0, 0)]
    words = [*regs, 9, 9, 9, 0x77, at("outer"), 1, 2, 3, at("entry")]
    found = callers(stack(*words), at("handler"), 5, tables(ENTRIES + whole), KERNEL.caller)
    assert found == (CHAIN, True), found
    regs[17] = 0x33
    words = [*regs, 9]
    found = callers(stack(*words), at("handler"), 5, tables(ENTRIES + whole), KERNEL.caller)
    assert found == ([], True), found
    part = [(at("handler", 0), REGS_PARTIAL, SP, 8, 0, 0)]
    words = [0, at("middle"), 0x10, 2, STACK + 48, 0, 0x77, at("outer"), 1, 2, 3, at("entry")]
    found = callers(stack(*words), at("handler"), STACK + 48, tables(ENTRIES + part), KERNEL.caller)
    assert found == (CHAIN, True), found


@case
def orc__other_stack(_folder):
    """from the stack of interrupts to one that is not in the window"""
    entries = [*ENTRIES[:-1], (at("entry", 0), CALL, SP_INDIRECT, 8, 0, 0)]
    words = [at("entry"), 0xFFFFC90000777000, 7]
    found = callers(stack(*words), at("leaf"), 0, tables(entries), KERNEL.caller)
    assert found == ([Frame(at("entry"), "orc")], False), found


@case
def guesses(_folder):
    """where the tables say nothing, words that are code are guesses, above the last frame only"""
    hole = [entry for entry in ENTRIES if entry[0] != at("outer", 0)]
    hole.insert(3, (at("outer", 0), 0, 0, 0, 0, 0))
    found, whole = callers(stack(*WORDS), at("leaf"), STACK + 16, tables(hole), KERNEL.caller)
    assert not whole and found == [*CHAIN[:2], Frame(at("entry"), "guess")], found
    found, whole = callers(stack(*WORDS), at("leaf"), 0, lambda pc: [], KERNEL.caller)
    assert names(found) == ["middle", "handler", "outer", "entry"] and not whole
    assert {frame.by for frame in found} == {"guess"}


@case
def frame_pointers(_folder):
    """a kernel without tables: frame pointers, or guesses if there are none"""
    words = [5, STACK + 32, at("middle"), 6, STACK + 56, at("outer"), 7, 0, at("entry"), 8]
    found = callers(stack(*words), at("leaf"), STACK + 8, None, KERNEL.caller)
    assert found == ([frame._replace(by="frame pointer") for frame in CHAIN], False), found
    for bp in (0, STACK + 9, STACK - 8, STACK + 8 * 9, 0xFFFFFFFFFFFFFFF8):
        found, whole = callers(stack(*words), at("leaf"), bp, None, KERNEL.caller)
        assert names(found) == ["middle", "outer", "entry"] and not whole
        assert {frame.by for frame in found} == {"guess"}, bp


@case
def lies__bounded(_folder):
    """stacks and tables of nonsense: the chain is bounded, and only of known code"""
    dice = random.Random(7)
    addresses = [at(name, dice.randrange(0x100)) for name in NAMES]
    lengths = set()
    for _ in range(3000):
        pool = [*addresses, STACK + 8 * dice.randrange(300), STACK, 0, dice.getrandbits(64)]
        words = [dice.choice(pool) for _ in range(dice.randrange(260))]
        entries = [
            (address, dice.randrange(8), dice.choice((1, 4, 5, 8, 9, dice.randrange(16))))
            + (dice.choice((0, 8, 16, -8, dice.randrange(-32768, 32768))), dice.choice((0, 1, 4)))
            + (dice.choice((-16, 0, dice.randrange(-32768, 32768))),)
            for address in sorted(addresses)
        ]
        table = tables(entries)
        bp = dice.choice(pool)
        for some in (table, None):
            found, _whole = callers(stack(*words), addresses[0], bp, some, KERNEL.caller)
            assert len(found) <= call_chain.FRAMES_MAX and all(map(names, ([f] for f in found)))
            lengths.add(len(found))
    assert {0, 1, call_chain.FRAMES_MAX} <= lengths, lengths
    for octets in (b"", b"\0", b"\xff" * 7, b"\0" * 64):
        assert Table(TABLE, octets, octets[:5], LATER).find(at("leaf")) is None


class Guest:
    """A guest whose /proc/kcore has one segment with the tables of kernel and module."""

    def __init__(self, version="6.12.117+deb13-amd64"):
        places, entries = packed(TABLE, ENTRIES)
        self.memory, self.version, self.asked = places + entries, version, []
        self.module = len(self.memory)
        mine = [(MODULE, CALL, SP, 16, 0, 0)]
        start = TABLE + self.module + 6
        self.sections = (TABLE + self.module, start)
        self.memory += packed(start, mine)[1] + packed(start, mine)[0]
        limits = (TABLE, TABLE + len(places), TABLE + len(places))
        self.kallsyms = KALLSYMS + "".join(
            "%x R %s\n" % pair for pair in zip(limits, guest_orc.LIMITS)
        )

    def ask(self, _folder, _name, argv, most, *_):
        script = argv[-1]
        self.asked.append(script)
        if argv == ["cat", "/proc/kallsyms"]:
            return self.kallsyms.encode()
        assert argv[:2] == ["sh", "-c"]
        if script.startswith("uname"):
            lines = [self.version]
            if "staghorn" in script:
                lines += ["%#x" % section for section in self.sections]
            return "\n".join(lines).encode()
        if script.startswith("head"):
            head = bytearray(b"\x7fELF\x02\x01".ljust(120, b"\0"))
            struct.pack_into("<Q", head, 32, 64)
            struct.pack_into("<H", head, 56, 1)
            size = len(self.memory)
            struct.pack_into("<IIQQQQ", head, 64, 1, 0, 0x1000, TABLE, 0, size)
            return bytes(head)
        found = b""
        for skip, count in re.findall(r"skip=(\d+) count=(\d+) ", script):
            offset = int(skip) - 0x1000
            found += self.memory[offset : offset + int(count)]
        return found if len(found) <= most else b""


REPORT = {
    **{"number": 1, "rule": "DB-RESET", "section": "x.md", "strict": "fatal", "object": "qp 1"},
    **{"text": "a doorbell", "ns": 5, "last_ns": 5, "count": 1, "cpu": 0, "adapter": "r0"},
    **{"events": [], "pc": "%#x" % (MODULE + 0x10), "sp": "%#x" % STACK, "bp": "0x1"},
    "stack": stack(0, at("outer"), 1, 2, 3, at("entry")).octets.hex(),
}


def given(guest, **members):
    """A report as lint gives it."""
    before = guest_reads.ask
    guest_reads.ask = guest.ask
    try:
        return lint.Names(None, "alpha", ()).give([{**REPORT, **members}])[0]
    finally:
        guest_reads.ask = before


@case
def lint__callers(_folder):
    """lint shows the callers in kernel and module, and not the stack"""
    found = given(Guest())
    assert found["symbol"] == "sgh_ring+0x10" and found["callers_whole"]
    assert [(x["symbol"], x["by"]) for x in found["callers"]] == [
        ("outer+0x20", "orc"),
        ("entry+0x20", "orc"),
    ], found
    assert found["callers"][0]["pc"] == "%#x" % at("outer")
    assert not {"stack", "sp", "bp"} & found.keys()
    lines = lint.text_of(found).splitlines()
    assert lines[3:] == ["    called by   outer+0x20", "                entry+0x20"], lines
    found = given(Guest(), stack=stack(0, at("outer"), 1).octets.hex())
    lines = lint.text_of(found).splitlines()
    assert lines[3:] == ["    called by   outer+0x20", "                ..."], lines


@case
def lint__no_tables(_folder):
    """a guest whose tables cannot be read: guesses, which are marked"""
    broken = [Guest(version="x"), Guest(), Guest(), Guest()]
    broken[1].memory = b""
    broken[2].ask = lambda *words: (
        broken[3].ask(*words) if words[2][-1] == "/proc/kallsyms" else b"\xff" * 100
    )
    for guest in broken[:3]:
        found = given(guest)
        assert [x["by"] for x in found["callers"]] == ["guess"] * 2, found
        assert lint.text_of(found).splitlines()[3] == "    called by ? outer+0x20"
    silent = Guest()
    silent.ask = lambda *_: b""
    found = given(silent)
    assert "callers" not in found and "stack" not in found and "symbol" not in found


@case
def tables__kept(_folder):
    """the kernel's tables are read once, those of modules each time"""
    guest, before = Guest(), guest_reads.ask
    guest_reads.ask = guest.ask
    try:
        names_ = lint.Names(None, "alpha", ())
        for number in range(2):
            found = names_.give([dict(REPORT, number=number)])[0]
            assert found["callers_whole"], found
    finally:
        guest_reads.ask = before
    reads = [script.count("dd ") for script in guest.asked if script.startswith("dd ")]
    assert reads == [4, 2], reads


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
