# SPDX-License-Identifier: GPL-2.0-or-later
"""ORC tables of a VM's kernel and modules, as they are in its memory: /proc/kcore.

So they belong to whatever kernel runs there, wherever it was loaded.  All is bounded, and what does
not look right is not there: the guest wrote it.
"""
import re
import struct

from . import guest_reads
from .call_chain import ENTRY, Table

HEADER_MAX = 8192  # octets of /proc/kcore with its table of segments
TABLE_MAX = 32 << 20  # octets of all tables that are read at once
MODULES_MAX = 24
LIMITS = ("__start_orc_unwind_ip", "__stop_orc_unwind_ip", "__start_orc_unwind")
LIMIT = re.compile(r"(?m)^([0-9a-f]{1,16}) \w (%s)\s*$" % "|".join(LIMITS), re.ASCII)
SECTIONS = (".orc_unwind", ".orc_unwind_ip")
ASK = (
    "uname -r; for m in %s; do for s in %s; do cat /sys/module/$m/sections/$s || echo none; done;"
    " done 2> /dev/null"
)
READ = (
    "dd if=/proc/kcore bs=1M iflag=skip_bytes,count_bytes,fullblock skip=%d count=%d status=none"
    " || exit\n"
)


def limits(kallsyms):
    """(places, their end, entries) of the kernel's own tables; None: it has no ORC tables."""
    found = {name: int(address, 16) for address, name in LIMIT.findall(kallsyms)}
    places, end, entries = (found.get(name, 0) for name in LIMITS)
    return (places, end, entries) if 0 < places < end and entries else None


class GuestOrc:
    """Tables of one VM.  The kernel's own are kept as long as they are where they were."""

    def __init__(self, folder, vm):
        self.folder, self.vm = folder, vm
        self.kept = None  # (limits, Table)

    def _ask(self, script, most):
        return guest_reads.ask(self.folder, self.vm, ["sh", "-c", script], most)

    def _segments(self):
        """(address, octets, offset) of what /proc/kcore shows."""
        head = self._ask("head -c %d /proc/kcore" % HEADER_MAX, HEADER_MAX)
        if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
            return
        start, count = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<H", head, 56)[0]
        for at in range(start, start + 56 * count, 56):
            if at + 56 > len(head):
                return
            kind, _, offset, address, _, octets = struct.unpack_from("<IIQQQQ", head, at)
            if kind == 1:
                yield address, octets, offset

    def _read(self, ranges):
        """Octets of the ranges (address, octets) of the kernel's memory; None: not to be had."""
        segments, script, total = list(self._segments()), "", 0
        for address, octets in ranges:
            inside = [
                offset + address - start
                for start, size, offset in segments
                if start <= address and address + octets <= start + size
            ]
            if not inside or octets <= 0:
                return None
            script += READ % (inside[0], octets)
            total += octets
        if total > TABLE_MAX:
            return None
        got, parts, at = self._ask(script, total), [], 0
        for _, octets in ranges:
            parts.append(got[at : at + octets])
            at += octets
        return parts if len(got) == total else None

    def _modules(self, names):
        """(version of the kernel, {name: (places, their end, entries)})."""
        names = sorted(names)[:MODULES_MAX]
        answer = self._ask(ASK % (" ".join(names), " ".join(SECTIONS)), 1 << 16)
        lines = answer.decode("ascii", errors="replace").splitlines()
        version = re.match(r"(\d{1,4})\.(\d{1,4})\b", lines[0] if lines else "")
        if not version:
            return None, {}
        numbers = [int(x, 16) if re.fullmatch("0x[0-9a-f]{1,16}", x) else 0 for x in lines[1:]]
        found = {}
        for name, entries, places in zip(names, numbers[::2], numbers[1::2]):
            count = (places - entries) // ENTRY.size  # one is behind the other in memory
            if 0 < count < 1 << 20:
                found[name] = (places, places + 4 * count, entries)
        return tuple(map(int, version.groups())), found

    def tables(self, kallsyms, modules):
        """{"": the kernel's Table, module: its Table}; {}: they cannot be had."""
        own = limits(kallsyms)
        version, wanted = self._modules(modules)
        if not own or not version:
            return {}
        known = {}
        if self.kept and self.kept[0] == (own, version):
            known[""] = self.kept[1]
        else:
            wanted = {"": own, **wanted}
        ranges = []
        for places, end, entries in wanted.values():
            ranges += [(places, end - places), (entries, (end - places) // 4 * ENTRY.size)]
        parts = self._read(ranges) if ranges else []
        if parts is None:
            return known
        for name, start, places, entries in zip(wanted, ranges[::2], parts[::2], parts[1::2]):
            known[name] = Table(start[0], places, entries, version)
        self.kept = ((own, version), known[""])
        return known
