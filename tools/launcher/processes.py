# SPDX-License-Identifier: GPL-2.0-or-later
"""Program counters of processes in a VM: the function of the program or shared library.

Which process wrote a doorbell is not known.  The processes that have an RDMA device mapped are
asked for their memory maps; an address that two of them map from different files has no name.
"""
import re
from collections import OrderedDict

from . import guest_reads
from .elf_names import ElfNames

MAPS = (
    "for d in /proc/[0-9]*; do grep -q /dev/infiniband/ $d/maps 2> /dev/null && cat $d/maps; done;"
    " true"
)
MAPS_MAX = 4 << 20  # octets of all maps
FILE_MAX = 32 << 20  # octets of a program or library
FILES_MAX = 8  # files that are kept, and that are fetched for one call
MAP = re.compile(
    r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) ..x. ([0-9a-f]{1,16}) [0-9a-f:]+ \d+\s+(/[!-~]{1,500})"
)


class Processes:
    """Names for program counters of a VM's processes, as long as these live."""

    def __init__(self, folder, vm):
        self.folder, self.vm = folder, vm
        self.files = OrderedDict()  # path: ElfNames

    def _maps(self):
        """(start, end, offset in the file, path) of all code."""
        answer = guest_reads.ask(self.folder, self.vm, ["sh", "-c", MAPS], MAPS_MAX)
        for line in answer.decode("ascii", errors="replace").splitlines():
            found = MAP.fullmatch(line)
            if found:
                yield (*(int(found[i], 16) for i in (1, 2, 3)), found[4])

    def _file(self, path):
        if path not in self.files:
            octets = guest_reads.ask(self.folder, self.vm, ["cat", path], FILE_MAX)
            self.files[path] = ElfNames(octets)
            if len(self.files) > FILES_MAX:
                self.files.popitem(last=False)
        return self.files[path]

    def names(self, counters):
        """{pc: name} of those that are in exactly one file."""
        if not counters:
            return {}
        places = {}
        for start, end, offset, path in self._maps():
            for pc in counters:
                if start <= pc < end:
                    places.setdefault(pc, set()).add((path, pc - start + offset))
        single = {pc: next(iter(each)) for pc, each in places.items() if len(each) == 1}
        paths = sorted({path for path, _ in single.values()})[:FILES_MAX]
        found = {}
        for pc, (path, offset) in single.items():
            if path in paths:
                found[pc] = self._name(path, offset)
        return found

    def _name(self, path, offset):
        """Without a function: the file and the address in it, as addr2line takes it."""
        code, base = self._file(path), path.rpartition("/")[2]
        address = code.address(offset)
        if address is None:
            return "%s, offset %#x" % (base, offset)
        name = code.name(address)
        return "%s in %s" % (name, base) if name else "%s+%#x" % (base, address)
