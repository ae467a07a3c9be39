# SPDX-License-Identifier: GPL-2.0-or-later
"""What a round of torture demands, judged from what guests print.

Each failure has a kind:
  kernel    a kernel has complained: an oops, a report of a checker, a task that hangs
  hang      a program has not ended, although it was told to
  machine   a VM has ended, or does not answer
  recovery  RDMA does not work again, although the manual promises it
  leak      objects are left that `rdma resource` did not have before
  data      a file that was written without an error has another content
  memory    memory that nobody has a pointer to (kernels with kmemleak), after all rounds
"""
import re

MARK = "staghorn-torture: seed "
# Lock-ups that the watchdog reports are left out: a virtual CPU that the host does not run for some
# time looks like one.
TROUBLE = re.compile(
    r"WARNING: |kernel BUG|(?<!watchdog: )BUG: |Oops|general protection fault|refcount_t: |KASAN: |"
    r"UBSAN: |ODEBUG: |INFO: task .* blocked for more than|list_(?:add|del) corruption|"
    r"unregister_netdevice: waiting|"
    r"DMA-API: (?!(?:DMA-API: )?(?:preallocated|debugging enabled|\S+ enabled|Mapped at))"
)
# Programs may register the same memory twice, which the debug kernel reports for any adapter.
# perftest dies when its connection is refused, which is a line of the kernel's log (traps).
KNOWN = re.compile(
    r"traps: |"
    r"cacheline tracking EEXIST|exceeded \d+ overlapping mappings|"
    r"kernel/dma/debug\.c:\d+ (?:at )?add_dma_entry"
)
AROUND = 30  # lines of a report
REPORTS = 5  # of a round that are shown
LOST = "adapter is lost: "
NOT_UP = "adapter does not come up again"
NO_LINK = "AER: device recovery failed"  # Linux has not reset the link (faults.md)
ATTEMPTS = 3  # to bring an adapter up, in a minute (driver.md)
CORRUPT = "torture: other content"
SHOWN = 2000  # octets of a failure's text on the terminal


def since_mark(text):
    """The part of a kernel's log behind the last mark."""
    return text.rpartition(MARK)[2]


def reports(text):
    """The complaints in a kernel's log: each with some lines behind it."""
    lines, found, until = text.splitlines(), [], 0
    for number, line in enumerate(lines):
        if number < until or not TROUBLE.search(line):
            continue
        until = number + AROUND
        if not any(KNOWN.search(near) for near in lines[number : number + 3]):
            found.append("\n".join(lines[number:until]))
    return found[:REPORTS]


def losses(text):
    """How often the driver has given the adapter up."""
    return text.count(LOST)


def given_up(text):
    """Has the driver used the attempts that it has?  Then only a reload helps."""
    return losses(text) + text.count(NOT_UP) > ATTEMPTS or NO_LINK in text


def is_mute(rules):
    """Has a rule silenced a connection?  Kernel consumers wait for its end, up to `close-limit`."""
    return any(" mute" in rule["rule"] and rule["applied"] for rule in rules)


def resources(text, device):
    """The objects of a device in `rdma resource show`: {"qp": 1, ...}."""
    line = re.search(r"^\d+: %s: (.*)$" % re.escape(device), text, re.M) if device else None
    return {
        name: int(count) for name, count in re.findall(r"([a-z_]+) (\d+)", line[1] if line else "")
    }


def left(before, after):
    """The kinds of objects of which there are more than before, as text; "" if there are none."""
    more = {kind: n - before.get(kind, 0) for kind, n in after.items() if n > before.get(kind, 0)}
    return ", ".join("%d %s" % (n, kind) for kind, n in sorted(more.items()))


def corruptions(output):
    """Lines of a program about wrong content."""
    return [line for line in output.splitlines() if line.startswith(CORRUPT)]


def line_of(number, found):
    """A round as a line of progress."""
    applied = sum(1 for rule in found["rules"] if rule["applied"])
    text = "round %d, seed %d: %d of %d rules applied" % (
        number,
        found["seed"],
        applied,
        len(found["rules"]),
    )
    if found["losses"]:
        text += ", adapter lost %d times" % found["losses"]
    if found.get("given_up"):
        text += " and given up"
    if found["recovered_s"] is not None:
        text += ", works after %.1f s" % found["recovered_s"]
    kinds = sorted({failure["kind"] for failure in found["failures"]})
    return text + (": FAILED, " + ", ".join(kinds) if kinds else "")


def text_of(result):
    """All rounds as text: each failure with its rules and the command that has it again."""
    lines = []
    for found in result["rounds"]:
        for failure in found["failures"]:
            lines.append(
                "seed %d: %s: %s" % (found["seed"], failure["kind"], failure["text"][:SHOWN])
            )
            lines += [
                "    rule: %s, applied %d" % (r["rule"], r["applied"]) for r in found["rules"]
            ]
            lines.append("    again: " + failure["replay"])
    lines += ["%(kind)s: %(text)s" % failure for failure in result["memory"]]
    bad = sum(1 for found in result["rounds"] if found["failures"])
    lines.append("%d rounds, %d failed, %.0f s" % (len(result["rounds"]), bad, result["seconds"]))
    return "\n".join(lines)
