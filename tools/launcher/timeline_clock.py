# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's clock in terms of the host's, for the time line of `trace --guest`.

host = guest + offset.  The offset is not known, but there are limits for it, because some things
cannot have happened in another order:

* A mark that the guest writes when it is asked to lies between the question and the answer.
* The guest announces a command (sgh_command_begin) before its doorbell reaches the adapter, and
  sees its end (sgh_command_end) after the adapter has executed it.

Each limit holds at one time of the guest's clock.  The two clocks run at almost the same rate,
which is taken to be constant; how far it may differ follows from the limits at both ends of the
trace.  So a limit at one time is also a limit, a little wider, at any other.  The offset used is
the middle of what remains, and the bound of its error the distance to either end.
"""
import bisect

# The rates may differ by so much: Linux measures that of the TSC itself when it boots.
DRIFT = 2e-3
# Times are cut to microseconds, the guest's and QEMU's.
CUT = 2.0
INF = float("inf")


class Clock:
    """limits: (time of the guest, least offset, greatest offset), in microseconds; each of the
    two may be infinite."""

    def __init__(self, limits):
        limits = sorted(limits)
        self.times = [at for at, _, _ in limits]
        self.low = [low for _, low, _ in limits]
        self.high = [high for _, _, high in limits]
        self.slowest, self.fastest = self._rates(limits)
        self._narrow()
        gaps = [high - low for low, high in zip(self.low, self.high)]
        self.torn = bool(gaps) and min(gaps) < -CUT

    @staticmethod
    def _rates(limits):
        """How much the offset may shrink or grow in each microsecond."""
        both = [one for one in limits if one[1] > -INF and one[2] < INF]
        if not both or both[-1][0] <= both[0][0]:
            return -DRIFT, DRIFT
        (first, low, high), (last, later_low, later_high) = both[0], both[-1]
        slowest = (later_low - high) / (last - first)
        fastest = (later_high - low) / (last - first)
        if fastest < -DRIFT or slowest > DRIFT:
            return -DRIFT, DRIFT
        return max(slowest, -DRIFT), min(fastest, DRIFT)

    def _narrow(self):
        """Passes each limit on to its neighbours, in both directions."""
        times, low, high = self.times, self.low, self.high
        for i in range(1, len(times)):
            passed = times[i] - times[i - 1]
            low[i] = max(low[i], low[i - 1] + self.slowest * passed)
            high[i] = min(high[i], high[i - 1] + self.fastest * passed)
        for i in range(len(times) - 2, -1, -1):
            passed = times[i + 1] - times[i]
            low[i] = max(low[i], low[i + 1] - self.fastest * passed)
            high[i] = min(high[i], high[i + 1] - self.slowest * passed)

    def at(self, time):
        """(offset, bound of its error) at this time of the guest."""
        after = bisect.bisect_left(self.times, time)
        low, high = -INF, INF
        if after:
            passed = time - self.times[after - 1]
            low = self.low[after - 1] + self.slowest * passed
            high = self.high[after - 1] + self.fastest * passed
        if after < len(self.times):
            left = self.times[after] - time
            low = max(low, self.low[after] - self.fastest * left)
            high = min(high, self.high[after] - self.slowest * left)
        if INF in (-low, high):
            return 0.0, INF
        return (low + high) / 2, abs(high - low) / 2 + CUT


def of_commands(begins, ends, bells, commands):
    """Limits from commands of the admin queue.

    begins: {index: guest's time}; ends: {index: (guest's time, name)} of those that succeeded;
    bells: {index: host's time} of the register writes; commands: [(host's time, name)] as the
    adapter executed them, in order.  Indices that are there twice are left out by the caller."""
    limits = []
    times = [at for at, _ in commands]
    for index, rung in bells.items():
        if index in begins:
            limits.append((begins[index], -INF, rung - 1 - begins[index]))
        if index not in ends:
            continue
        seen, name = ends[index]
        # The first one of this name behind the doorbell is this command, or an earlier one.
        place = bisect.bisect_left(times, rung)
        while place < len(commands) and commands[place][1] != name:
            place += 1
        if place < len(commands):
            limits.append((seen, times[place] + 1 - seen, INF))
    return limits


def agree(samples, limits):
    """Those of the limits that the samples allow.  Others come from a command that was taken for
    another one, because the driver has started its ring anew."""
    if not samples:
        return []
    clock = Clock(samples)
    good = []
    for at, low, high in limits:
        offset, bound = clock.at(at)
        if low <= offset + bound and high >= offset - bound:
            good.append((at, low, high))
    return good
