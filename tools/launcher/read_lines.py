# SPDX-License-Identifier: GPL-2.0-or-later
"""Sets of lines of persistent memory: what checkers read."""
from .errors import LabError

LINE = 64
END = 1 << 64


def _checked(ranges):
    """[(start, end)] of [[address, length]], ascending and apart."""
    found = []
    try:
        for address, length in sorted(map(tuple, ranges)):
            start, end = address // LINE * LINE, -(-(address + length) // LINE) * LINE
            if not 0 <= start < end <= END or not length:
                raise ValueError
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], end))
            else:
                found.append((start, end))
    except (TypeError, ValueError) as error:
        raise LabError("what a checker reads has a range that cannot be") from error
    return found


class Lines:
    """A set of lines."""

    def __init__(self):
        self._all = []  # (start, end), ascending and apart

    def __len__(self):
        return sum(end - start for start, end in self._all) // LINE

    def ranges(self):
        """[[address, length]], in ascending order."""
        return [[start, end - start] for start, end in self._all]

    def text(self):
        """The file for `staghorn-explore --reads`."""
        return "".join("%#x %d\n" % (address, length) for address, length in self.ranges())

    def add(self, ranges):
        """Adds ranges, [[address, length]]; returns what is new, likewise."""
        more = _checked(ranges)
        new = _without(more, self._all)
        if new:
            self._all = _checked([[x, y - x] for x, y in self._all + more])
        return [[start, end - start] for start, end in new]


def _without(ranges, others):
    """The parts of ranges that are in none of the others."""
    found, at = [], 0
    for start, end in ranges:
        while at < len(others) and others[at][1] <= start:
            at += 1
        k = at
        while k < len(others) and others[k][0] < end:
            if start < others[k][0]:
                found.append((start, others[k][0]))
            start = max(start, others[k][1])
            k += 1
        if start < end:
            found.append((start, end))
    return found
