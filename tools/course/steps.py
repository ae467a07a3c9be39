# SPDX-License-Identifier: GPL-2.0-or-later
"""What each step of docs/course demands.

A demand is a function that gets a Run and returns what is wrong, "" if nothing is; its docstring is
the name of its TAP line.  STEPS has those that are examined while the driver is loaded, GONE those
that are examined when it was unloaded.
"""
import re

REGISTER = r"staghorn_reg_%s \S+: register 0x%x "
CTRL, ADMIN_SIZE, ADMIN_DB, ADMIN_CI, EQ_DB = 0x8, 0x90, 0x94, 0x98, 0x1000
ARM = 0x80000000


class Run:
    """What is known about a module that was loaded."""

    def __init__(self, bench, name):
        self.bench, self.name = bench, name
        self.said = self.device = ""

    def look(self):
        """Reads what kernel and device said so far."""
        self.said, self.device = self.bench.messages(), self.bench.device()

    def says(self, pattern):
        """The groups of what the driver printed last in this form (without groups all of it)."""
        found = list(re.finditer(pattern, self.said))
        return (found[-1].groups() or (found[-1][0],)) if found else None

    def written(self, register):
        """The values that were written to a register."""
        form = REGISTER % ("write", register) + r"becomes (0x[0-9a-f]+)"
        return [int(value, 16) for value in re.findall(form, self.device)]

    def commands(self, name):
        """How many commands of this name succeeded."""
        return len(re.findall(r"admin: %s: status 0\b" % name, self.device))

    def doorbells(self, offset):
        """The values of the doorbells at this offset of page 0."""
        form = r"doorbell page 0, offset 0x%x, (0x[0-9a-f]+)" % offset
        return [int(value, 16) for value in re.findall(form, self.device)]


def _number(run, what, name):
    found = run.says(r"\b%s (\d+)" % what)
    wanted = run.bench.get(name)
    if not found:
        return "it printed no %s" % what
    return (
        ""
        if int(found[0]) == wanted
        else "%s %s, and the adapter has %s"
        % (
            what,
            found[0],
            wanted,
        )
    )


# -- step 1


def claims(run):
    """the driver is bound to the adapter, and the function is enabled"""
    script = 'basename "$(readlink -f "$1/driver/module")"; cat "$1/enable"'
    name, count = (run.bench.sh(script, run.bench.place)[1].split() + ["", ""])[:2]
    if name != run.name:
        return "the adapter's driver is not of the module %s" % run.name
    return "" if count == "1" else "the enable count of the function is %s, not 1" % count


def alias(run):
    """the module names the adapter, so that udev and modprobe find it"""
    found = run.bench.sh("modinfo -F alias /run/staghorn/judged.ko")[1]
    if "pci:v00001234d00005347" in found:
        return ""
    return "modinfo shows no alias for 1234:5347: MODULE_DEVICE_TABLE is missing"


# -- step 2


def regions(run):
    """BAR 0 belongs to the driver"""
    script = r"""read -r start end flags < "$1/resource"
grep -i -A 2 "^ *${start#0x00000000}-" /proc/iomem"""
    found = run.bench.sh(script, run.bench.place)[1].splitlines()
    owners = [line.split(" : ")[-1].strip() for line in found]
    own = [x for x in owners if x and not re.match(r"[0-9a-f]{4}:", x) and "PCI" not in x]
    return "" if own else "/proc/iomem shows no owner of BAR 0: pci_request_regions() is missing"


def mac(run):
    """the MAC address that it prints is the port's"""
    found = run.says(r"\bmac ((?:[0-9a-f]{2}:){5}[0-9a-f]{2})\b")
    wanted = run.bench.get("mac")
    if not found:
        return "it printed no mac xx:xx:xx:xx:xx:xx"
    return "" if found[0] == wanted else "mac %s, and the port has %s" % (found[0], wanted)


def vectors(run):
    """the number of vectors that it prints is the adapter's"""
    return _number(run, "vectors", "vectors")


def scratch(run):
    """it tests register access by TEST_SCRATCH"""
    values = set(run.written(0x40))
    reads = re.findall(REGISTER % ("read", 0x40), run.device)
    if len(values) < 2 or len(reads) < 2:
        return "it wrote %d values and read %d: at least 2" % (len(values), len(reads))
    return ""


# -- step 3


def is_reset(run):
    """it resets the adapter before it sets the rings up"""
    first = re.search(REGISTER % ("write", CTRL), run.device)
    rings = re.search(REGISTER % ("write", 0x80), run.device)
    if not (run.written(CTRL) and run.written(CTRL)[0] & 2):
        return "the first value written to CTRL is not RESET"
    return (
        "" if rings and first.start() < rings.start() else "ASQ_BASE was written before the reset"
    )


def tests_dma(run):
    """it tests DMA"""
    return "" if 1 in run.written(0x54) else "TEST_DMA_CMD was not written"


def enabled(run):
    """the adapter is READY with its three rings"""
    if 1 not in run.written(CTRL):
        return "CTRL.ENABLE was not written"
    sizes = run.written(ADMIN_SIZE)[-1:] + run.written(0xA8)[-1:]
    if len(sizes) < 2:
        return "ADMIN_SIZE or AEQ_SIZE was not written"
    return "" if run.says(r"\bready\b") else "it did not print that it is ready"


def ends_in_reset(run):
    """the last thing that it did with the adapter is a reset"""
    values = run.written(CTRL)
    return "" if values and not values[-1] & 1 else "CTRL.ENABLE is still set"


# -- step 4


def commands(run):
    """the adapter executed more than two rings of commands"""
    size = (run.written(ADMIN_SIZE) or [0])[-1]
    found = run.commands("NOP")
    return "" if found > 2 * size else "%d NOPs, and the ring has %d entries" % (found, size)


def consumed(run):
    """each completion was given back by ADMIN_CI"""
    given, taken = run.written(ADMIN_DB)[-1:], run.written(ADMIN_CI)[-1:]
    if given and given == taken:
        return ""
    return "ADMIN_DB is %s, ADMIN_CI %s at the end" % (given or "not used", taken or "not used")


def caps(run):
    """max_qp as it prints it is the adapter's"""
    if not run.commands("QUERY_CAPS"):
        return "the adapter executed no QUERY_CAPS"
    return _number(run, "max_qp", "max-qp")


# -- steps 5 to 10


def interrupts(run):
    """the test interrupt and those of commands were handled"""
    script = r"grep -E ' (%s|course)' /proc/interrupts" % re.escape(run.name)
    lines = run.bench.sh(script)[1].splitlines()
    counts = [sum(int(x) for x in line.split()[1:] if x.isdigit()) for line in lines]
    if 0 not in run.written(0x44):
        return "TEST_IRQ was not written"
    if not lines:
        return "/proc/interrupts has no line of the driver"
    return "" if max(counts) > 1 else "no interrupts were counted: %s" % counts


def armed(run):
    """event queue 0 was armed again after its events"""
    values = run.written(EQ_DB)
    found = [value for value in values if value & ARM]
    return "" if len(found) > 1 else "EQ_DB[0] was armed %d times" % len(found)


def event_queue(run):
    """an event queue for completions was made and armed"""
    if not run.commands("CREATE_EQ"):
        return "the adapter executed no CREATE_EQ"
    return "" if any(v & ARM for v in run.written(EQ_DB + 4)) else "EQ_DB[1] was not armed"


def many(run):
    """200 commands completed by interrupts"""
    found = run.commands("NOP")
    return "" if found >= 200 else "the adapter executed %d NOPs" % found


def registered(run):
    """a domain and two regions were made"""
    made = run.commands("CREATE_PD"), run.commands("REG_MR")
    return "" if made[0] >= 1 and made[1] >= 2 else "%d domains, %d regions" % made


def stags(run):
    """it printed the STags that the adapter gave"""
    given = re.findall(r"admin: REG_MR: status 0, id (0x[0-9a-f]+)", run.device)
    missing = [x for x in given if not re.search(r"\bstag %s\b" % x, run.said)]
    return "it did not print stag %s" % missing[0] if missing else ""


def _undone(run, make, end):
    counts = run.commands(make), run.commands(end)
    return (
        ""
        if counts[0] == counts[1]
        else "%s %d times, %s %d times"
        % (
            make,
            counts[0],
            end,
            counts[1],
        )
    )


def memory_gone(run):
    """regions and domains were destroyed"""
    return _undone(run, "REG_MR", "DEREG_MR") or _undone(run, "CREATE_PD", "DESTROY_PD")


def queue(run):
    """a completion queue was made and armed"""
    if not run.commands("CREATE_CQ"):
        return "the adapter executed no CREATE_CQ"
    return "" if run.doorbells(0x18) else "CQ_ARM was not written"


def queues_gone(run):
    """completion and event queues were destroyed"""
    return _undone(run, "CREATE_CQ", "DESTROY_CQ") or _undone(run, "CREATE_EQ", "DESTROY_EQ")


def flushed(run):
    """what was posted to the queue pair came back flushed"""
    found = run.says(r"\bflushed (\d+) sends (\d+) receives")
    if not found:
        return "it printed no flushed N sends N receives"
    posted = [bell >> 32 for bell in (run.doorbells(0)[-1:] + run.doorbells(8)[-1:])]
    return "" if [int(x) for x in found] == posted else "posted %s, flushed %s" % (posted, found)


def pairs_gone(run):
    """queue pairs were destroyed"""
    return _undone(run, "CREATE_QP", "DESTROY_QP")


def connected(run):
    """two queue pairs were connected"""
    missing = [x for x in ("SET_ADDR", "LISTEN", "CONNECT", "ACCEPT") if not run.commands(x)]
    return "the adapter executed no %s" % missing[0] if missing else ""


def received(run):
    """200 messages arrived as they were sent"""
    found = run.says(r"\breceived (\d+) messages, (\d+) octets, all right")
    if not found:
        return "it printed no received N messages, N octets, all right"
    return "" if int(found[0]) >= 200 else "received %s messages" % found[0]


def written_and_read(run):
    """a Write and a Read moved the same 256 KiB"""
    found = run.says(r"\bwrite (\d+) octets, read (\d+) octets, all right")
    if not found:
        return "it printed no write N octets, read N octets, all right"
    return "" if min(map(int, found)) >= 256 << 10 else "%s and %s octets" % found


def closed(run):
    """the connection ended in order"""
    return "" if run.says(r"\bclosed\b") else "it did not print that the connection closed"


def listener_gone(run):
    """the listener was ended"""
    return _undone(run, "LISTEN", "UNLISTEN")


STEPS = {
    1: (claims, alias),
    2: (claims, regions, mac, vectors, scratch),
    3: (claims, is_reset, tests_dma, enabled),
    4: (claims, is_reset, commands, consumed, caps),
    5: (claims, interrupts, armed, event_queue, many),
    6: (claims, registered, stags),
    7: (claims, event_queue, queue),
    8: (claims, flushed),
    9: (claims, connected, received),
    10: (claims, connected, written_and_read),
}
# Examined when the driver was unloaded; each step demands those of the steps before it, too.
GONE = {
    3: (ends_in_reset,),
    6: (memory_gone,),
    7: (queues_gone,),
    8: (pairs_gone,),
    9: (listener_gone,),
    10: (closed,),
}
# From this step on, RESET-LEFT and other advice of the checker counts, too.
STRICT_ADVICE = 6


def gone(step):
    """The demands on a driver that was unloaded."""
    return [demand for first, demands in GONE.items() if first <= step for demand in demands]
