# SPDX-License-Identifier: GPL-2.0-or-later
"""What each exercise of docs/course demands, beside what every module of its step has to do: load,
unload, leave nothing behind, and give kernel and checker nothing to report."""
import re
from collections import namedtuple

from . import steps

# words: of insmod; faults: rules that are in force before it, after: those that begin when the
# driver is loaded.
Exercise = namedtuple("Exercise", "demands words faults after", defaults=((), "", ""))


# -- step 1


def bars(run):
    """it prints the sizes of the BARs 0, 2 and 4"""
    lines = run.bench.sh('cat "$1/resource"', run.bench.place)[1].splitlines()
    for number in (0, 2, 4):
        start, end = (int(word, 16) for word in lines[number].split()[:2])
        found = run.says(r"\bbar %d: (\d+)" % number)
        if not found or int(found[0]) != end - start + 1:
            return "bar %d: %s, and it has %d octets" % (number, found, end - start + 1)
    return ""


# -- step 2


def clock(run):
    """it prints how far the adapter's clock went in a millisecond or more"""
    found = run.says(r"\bclock (\d+) ns later")
    if not found:
        return "it printed no clock N ns later"
    return "" if 1e6 <= int(found[0]) <= 1e10 else "%s ns" % found[0]


def refuses(run):
    """it is not bound to an adapter that it does not know"""
    found = run.bench.sh('readlink "$1/driver"', run.bench.place)[1].strip()
    return "the adapter has the driver %s" % found if found else ""


# -- step 3


def inverts(run):
    """it tests DMA with 1, 4,096 and 65,536 octets, both ways"""
    lengths, ways = set(run.written(0x50)), set(run.written(0x54))
    missing = sorted({1, 4096, 65536} - lengths)
    if missing:
        return "TEST_DMA_LEN was never %d" % missing[0]
    return "" if {1, 2} <= ways else "TEST_DMA_CMD had %s: FILL is 1, INVERT 2" % sorted(ways)


# -- step 4


def together(run):
    """one doorbell covers eight commands"""
    values = [0, *run.written(steps.ADMIN_DB)]
    most = max(b - a for a, b in zip(values, values[1:])) if len(values) > 1 else 0
    return "" if most >= 8 else "the largest step of ADMIN_DB is %d" % most


def gives_up(run):
    """it does not wait longer than its limit, and resets the adapter"""
    values = run.written(steps.CTRL)
    after = run.device.rfind("register 0x94 becomes")
    last = run.device.rfind("register 0x8 becomes")
    if after < 0:
        return "it gave no command"
    return "" if last > after and values[-1] & 2 else "no reset follows the last command"


# -- step 5


def all_complete(run):
    """all commands complete, although interrupts are lost"""
    return steps.many(run)


# -- step 6


def long_list(run):
    """a region of 600 pages has a list of two levels"""
    found = run.says(r"\bstag (0x[0-9a-f]+) pages 600 levels 2\b")
    if not found:
        return "it printed no stag S pages 600 levels 2"
    given = re.findall(r"admin: REG_MR: status 0, id (0x[0-9a-f]+)", run.device)
    return "" if found[0] in given else "the adapter gave no STag %s" % found[0]


# -- step 7


def moderated(run):
    """the completion queue is moderated"""
    return "" if run.commands("MODIFY_CQ") else "the adapter executed no MODIFY_CQ"


# -- step 8


def again(run):
    """the queue pair went back to IDLE, and more was posted than a ring holds"""
    bells = [value >> 32 for value in run.doorbells(0)]
    if run.commands("MODIFY_QP") < 3:
        return "MODIFY_QP %d times: ERROR, IDLE, ERROR are 3" % run.commands("MODIFY_QP")
    return "" if bells and bells[-1] > 16 else "the last index of the send queue is %s" % bells[-1:]


# -- step 9


def private(run):
    """private data of CONNECT arrives: it prints private data: hello"""
    if not run.commands("CM_DATA"):
        return "the adapter executed no CM_DATA"
    return "" if run.says(r"\bprivate data: hello\b") else "it did not print private data: hello"


# -- step 10


def notices(run):
    """the driver is bound when the adapter vanishes"""
    return steps.claims(run)


EXERCISES = {
    1: {1: Exercise((steps.claims, bars))},
    2: {
        1: Exercise((steps.claims, clock)),
        2: Exercise((refuses,), faults="registers ones offset=0 times=always"),
    },
    3: {
        1: Exercise((steps.claims, steps.is_reset, inverts)),
        2: Exercise((refuses,), faults="dma refuse times=always"),
    },
    4: {
        1: Exercise((steps.claims, together, steps.consumed)),
        2: Exercise((refuses, gives_up), ("limit_ms=500",), "command op=NOP nth=5 stuck"),
    },
    5: {1: Exercise((all_complete,), faults="interrupt vector=0 lost nth=20 every=50 times=3")},
    6: {1: Exercise((steps.registered, long_list))},
    7: {1: Exercise((steps.queue, moderated))},
    8: {1: Exercise((steps.flushed, again))},
    9: {1: Exercise((steps.connected, private))},
    10: {1: Exercise((notices,), after="registers ones")},
}
