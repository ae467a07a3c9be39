# SPDX-License-Identifier: GPL-2.0-or-later
"""Program counters of a recording as functions, files and lines.

`crash record` runs its scripts without address space randomisation, so a position-independent
program is at PIE_BASE, and others are where they were linked.  The kernel's symbols are those of
the guest's /proc/kallsyms at the end of the recording.  Which process a program counter belongs to
is not known: the first of the files that has code there is taken.
"""
import bisect
import re
import subprocess
from pathlib import Path

from .errors import LabError, UsageError

PIE_BASE = 0x555555554000  # Linux, x86-64, personality ADDR_NO_RANDOMIZE
KERNEL = 0xFFFF800000000000  # program counters from here on are the kernel's
# A line about code.  The guest wrote it: what does not look like one is no symbol.
SYMBOL = re.compile(r"([0-9a-f]{1,16}) [tTwW] ([\w.$]{1,128})(?:\s+\[(\w{1,64})\])?", re.ASCII)
FAR = 1 << 20  # octets behind a symbol of the kernel that do not belong to it any more


def _run(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError as error:
        raise LabError("%s is missing: install binutils" % words[0]) from error
    if done.returncode:
        raise UsageError((done.stderr or done.stdout).strip() or "%s failed" % words[0])
    return done.stdout


class Program:
    """An ELF file with the addresses of its code."""

    def __init__(self, path):
        self.path = str(path)
        if not Path(path).is_file():
            raise UsageError("there is no program %s" % path)
        self.base, self.ranges = 0, []
        header = _run("readelf", "-hlW", self.path)
        if "DYN (" in header:
            self.base = PIE_BASE
        for line in header.splitlines():
            words = line.split()
            if words[:1] == ["LOAD"] and "E" in "".join(words[6:-1]):
                start = self.base + int(words[2], 16)
                self.ranges.append((start, start + int(words[5], 16)))

    def has(self, pc):
        """Whether the program has code at this address."""
        return any(start <= pc < end for start, end in self.ranges)

    def names(self, pcs):
        """{pc: "function at file:line"} for the addresses that are known."""
        if not pcs:
            return {}
        words = ["addr2line", "-fse", self.path, *("%#x" % (pc - self.base) for pc in pcs)]
        lines = _run(*words).splitlines()
        found = {}
        for pc, function, place in zip(pcs, lines[::2], lines[1::2]):
            place = place.split(" (")[0]
            if function != "??":
                found[pc] = function + ("" if place.startswith("??") else " at " + place)
        return found


class Kernel:
    """The text of /proc/kallsyms."""

    def __init__(self, text):
        found = []
        for line in text.splitlines():
            symbol = SYMBOL.fullmatch(line.strip())
            if symbol:
                found.append((int(symbol[1], 16), symbol[2], symbol[3] or ""))
        found = sorted(each for each in found if each[0])
        self.starts = [start for start, _, _ in found]
        self.symbols = [name for _, name, _ in found]
        self.modules = [module for _, _, module in found]

    def _index(self, pc):
        """Of the symbol that the address belongs to, or None."""
        i = bisect.bisect_right(self.starts, pc) - 1
        return i if i >= 0 and pc - self.starts[i] < FAR else None

    def name(self, pc):
        """Symbol and offset, or None."""
        i = self._index(pc)
        return None if i is None else "%s+%#x" % (self.symbols[i], pc - self.starts[i])

    def caller(self, pc):
        """The same of an address behind a call, which may be the end of its function."""
        i = self._index(pc - 1)
        return None if i is None else "%s+%#x" % (self.symbols[i], pc - self.starts[i])

    def module(self, pc):
        """The module that has this code, "" for the kernel itself, or None."""
        i = self._index(pc)
        return None if i is None else self.modules[i]


class Symbols:
    """Names for program counters, from programs and a kernel's symbols."""

    def __init__(self, programs=(), kallsyms=""):
        self.programs = [Program(path) for path in programs]
        self.kernel = Kernel(kallsyms)

    def resolve(self, pcs):
        """{pc: name}; the hexadecimal number where nothing is known."""
        found = {pc: "%#x" % pc for pc in pcs}
        rest = []
        for pc in found:
            name = self.kernel.name(pc) if pc >= KERNEL else None
            if name:
                found[pc] = name
            elif pc < KERNEL:
                rest.append(pc)
        for program in self.programs:
            mine = [pc for pc in rest if program.has(pc)]
            rest = [pc for pc in rest if pc not in mine]
            found.update(program.names(mine))
        return found
