# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of an ELF file that a guest gave: 64 bits, little-endian.

The file may be anything, so no program of the host reads it.  What is outside of it, or beyond the
bounds here, does not exist.
"""
import re
import struct

LOAD, EXECUTE = 1, 1  # type and flag of a segment
SYMTAB, DYNSYM = 2, 11  # types of a section
FUNCTION = 2  # type of a symbol
ENTRIES_MAX = 1 << 18  # of a table
NAME = re.compile(rb"[A-Za-z_.$][\w.$]{0,127}\0")


class ElfNames:
    """The executable segments and functions of a file's octets."""

    def __init__(self, data):
        self.data = data
        self.segments, self.functions = [], []
        if data[:6] == b"\x7fELF\x02\x01":
            self._read()

    def _table(self, form, start, step, count):
        """Unpacked entries, as far as the file has them."""
        size = struct.calcsize(form)
        for at in range(start, start + step * min(count, ENTRIES_MAX), max(step, size)):
            if at + size > len(self.data):
                return
            yield struct.unpack_from(form, self.data, at)

    def _read(self):
        head = next(self._table("<16xHHIQQQIHHHHHH", 0, 64, 1), None)
        if not head:
            return
        _, _, _, _, programs, sections, _, _, step, count, section_step, section_count, _ = head
        for kind, flags, offset, start, _, size in self._table("<IIQQQQ", programs, step, count):
            if kind == LOAD and flags & EXECUTE:
                self.segments.append((offset, size, start))
        listed = list(self._table("<4xI16xQQI12xQ", sections, section_step, section_count))
        for wanted in (SYMTAB, DYNSYM):
            for kind, offset, size, link, step in listed:
                if kind == wanted and link < len(listed) and not self.functions:
                    self._symbols(offset, size, step, listed[link][1])

    def _symbols(self, offset, size, step, names):
        found = self._table("<IBxHQQ", offset, max(step, 24), size // max(step, 24))
        for name, info, section, start, octets in found:
            inside = names + name < len(self.data)
            if info & 15 == FUNCTION and section and octets and inside:
                self.functions.append((start, octets, names + name))

    def address(self, offset):
        """The address that the octet at this offset of the file was linked to, or None."""
        for begin, size, start in self.segments:
            if begin <= offset < begin + size:
                return start + offset - begin
        return None

    def name(self, address):
        """Function and offset, or None."""
        for start, octets, at in self.functions:
            name = NAME.match(self.data, at) if start <= address < start + octets else None
            if name:
                return "%s+%#x" % (name[0][:-1].decode("ascii"), address - start)
        return None
