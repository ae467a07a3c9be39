# SPDX-License-Identifier: GPL-2.0-or-later
"""Callers of an instruction of the guest's kernel, from the window of its stack in a report.

Linux's ORC tables say for each instruction where the caller's stack begins (the kernel's
Documentation/arch/x86/orc-unwinder.rst).  A kernel without them may have frame pointers.  Where
neither leads on, the words of the stack that are addresses of functions are guesses, as in the
kernel's own dumps.  Stack and tables are the guest's, who may lie: a chain goes up the window only,
so it ends.
"""
import struct
from array import array
from collections import namedtuple

FRAMES_MAX = 48
WORD = 8
MASK = (1 << 64) - 1
UNDEFINED, END, CALL, REGS, REGS_PARTIAL = range(5)  # types of an entry, as from Linux 6.4 on
PREV_SP, BP, SP, BP_INDIRECT, SP_INDIRECT = 1, 4, 5, 8, 9  # what an offset is relative to
ENTRY = struct.Struct("<hhH")
REGS_BP, REGS_IP = 0x20, 0x80  # offsets in what an interrupt leaves on the stack: struct pt_regs
IRET_CS, IRET_SP = 0x08, 0x18  # behind the instruction pointer there

# by: "orc", "frame pointer" or "guess"
Frame = namedtuple("Frame", "pc by")


class Window:
    """The octets of a stack from its stack pointer on."""

    def __init__(self, sp, octets):
        self.sp, self.octets = sp, octets

    def word(self, at):
        """The word at an address; None: it is outside."""
        offset = at - self.sp
        if not 0 <= offset <= len(self.octets) - WORD:
            return None
        return struct.unpack_from("<Q", self.octets, offset)[0]

    def words(self, start):
        """Aligned words from an address on."""
        at = max(start, self.sp) + WORD - 1 & -WORD
        while True:
            word = self.word(at)
            if word is None:
                return
            yield word
            at += WORD


class Table:
    """ORC entries for the code from `start` on, which are in the order of their addresses.

    base: where the kernel has `places`, of 32 bits each, relative to themselves."""

    def __init__(self, base, places, entries, version):
        self.base, self.entries, self.version = base, entries, version
        self.places = array("i")
        self.places.frombytes(places[: len(places) // 4 * 4])
        self.count = min(len(self.places), len(entries) // ENTRY.size)

    def address(self, index):
        """Of the first instruction of an entry."""
        return self.base + 4 * index + self.places[index] & MASK

    def find(self, pc):
        """(type, base of SP, offset, base of BP, offset) of an instruction, or None."""
        if not self.count or not self.address(0) <= pc:
            return None
        low, high = 0, self.count
        while high - low > 1:
            middle = (low + high) // 2
            if self.address(middle) <= pc:
                low = middle
            else:
                high = middle
        sp_offset, bp_offset, bits = ENTRY.unpack_from(self.entries, low * ENTRY.size)
        return self._type(bits), bits & 15, sp_offset, bits >> 4 & 15, bp_offset

    def _type(self, bits):
        """Before Linux 6.4 types began with CALL, and the end of a stack was a bit of its own."""
        if self.version >= (6, 4):
            return bits >> 8 & 7
        if bits >> (11 if self.version >= (6, 3) else 10) & 1:
            return END
        return CALL + (bits >> 8 & 3)


class Ended(Exception):
    """The chain is complete: the kernel was entered there."""


class Outside(Exception):
    """The stack goes on behind the window."""


class Lost(Exception):
    """Nothing says where the caller is."""


class Walk:
    """Goes from a function to its caller."""

    def __init__(self, window, tables, pc, bp):
        self.window, self.tables = window, tables
        self.pc, self.sp, self.bp = pc, window.sp, bp
        self.exact = True  # pc is an instruction, and not the one behind a call

    def _word(self, at):
        word = self.window.word(at)
        if word is None:
            raise Outside if at >= self.window.sp else Lost
        return word

    def _entry(self):
        pc = self.pc if self.exact else self.pc - 1
        for table in self.tables(pc):
            found = table.find(pc)
            if found:
                return found
        raise Lost

    def _previous(self, base, offset):
        """The caller's stack pointer, before its call."""
        if base == SP:
            return self.sp + offset
        if base == BP:
            return self.bp + offset
        if base == BP_INDIRECT:
            return self._word(self.bp + offset)
        if base == SP_INDIRECT:
            return self._word(self.sp) + offset
        raise Lost

    def step(self):
        """To the caller."""
        kind, sp_base, sp_offset, bp_base, bp_offset = self._entry()
        if kind == END:
            raise Ended
        if kind not in (CALL, REGS, REGS_PARTIAL):
            raise Lost
        previous = at = self._previous(sp_base, sp_offset)
        bp = self.bp
        if kind == CALL:
            pc = self._word(at - WORD)
        else:  # an interrupt, or an exception
            if kind == REGS:
                bp = self._word(at + REGS_BP)
                at += REGS_IP
            pc, previous = self._word(at), self._word(at + IRET_SP)
            if self._word(at + IRET_CS) & 3:
                raise Ended  # from a process
        if bp_base == PREV_SP:
            bp = self._word(previous + bp_offset)
        elif bp_base == BP:
            bp = self._word(self.bp + bp_offset)
        if previous <= self.sp:
            raise Lost
        self.pc, self.sp, self.bp, self.exact = pc, previous, bp, kind != CALL


def _by_pointers(window, bp, is_code):
    """Frames of a kernel that keeps frame pointers, and where they end."""
    while bp % WORD == 0 and window.word(bp) is not None:
        pc, above = window.word(bp + WORD), window.word(bp)
        if pc is None or not is_code(pc):
            return
        yield Frame(pc, "frame pointer"), bp + 2 * WORD
        if above <= bp:
            return
        bp = above


def _guesses(window, start, is_code):
    return [Frame(word, "guess") for word in window.words(start) if is_code(word)]


def callers(window, pc, bp, tables, is_code):
    """([Frame], whether the first caller of all is there).

    tables: a function from a program counter to the Tables that may know it; None: the kernel has
    none.  is_code: whether an address is behind a call in the kernel's code, as far as known."""
    found, start = [], window.sp
    if tables is None:
        for frame, start in _by_pointers(window, bp, is_code):
            found.append(frame)
        if not found:
            found = _guesses(window, start, is_code)
        return found[:FRAMES_MAX], False
    walk = Walk(window, tables, pc, bp)
    try:
        while len(found) < FRAMES_MAX:
            walk.step()
            if not is_code(walk.pc):
                raise Lost
            found.append(Frame(walk.pc, "orc"))
    except Ended:
        return found, True
    except Outside:
        return found, False
    except Lost:
        found += _guesses(window, walk.sp, is_code)
    return found[:FRAMES_MAX], False
