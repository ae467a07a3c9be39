# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM in which the judged module is the only driver of the adapter, and what both say."""
import json
import re
import subprocess
import sys
import time

from launcher import agent, lint, paths, transfer
from launcher.errors import LabError, UsageError
from launcher.qmp import Monitor
from launcher.state import LabFolder
from launcher.symbols import Kernel

VM, ADAPTER = "alpha", "r0"
PLACE = "/run/staghorn/judged.ko"
EVENTS = ("reg_read", "reg_write", "doorbell", "interrupt", "detail", "state")
QUIET_S, QUIET_LIMIT_S = 0.2, 5.0  # the device's log comes through another process
# What the kernel says about a driver that it finds faulty.
COMPLAINT = re.compile(
    r"WARNING: |BUG: |Oops|general protection fault|Call Trace:|nobody cared|refcount_t: |"
    r"blocked for more than|DMA-API: |Trying to free|has invalid|page allocation failure|leaked"
)
# Takes the adapter from the drivers that come with the VM, and prints its folder in sysfs.
TAKE = """
rmmod staghorn 2>/dev/null
cd /sys/bus/pci/devices
for d in *; do
    grep -q 0x5347 $d/device 2>/dev/null || continue
    [ ! -e $d/driver ] || { echo "$d has the driver $(readlink $d/driver)" >&2; exit 1; }
    echo /sys/bus/pci/devices/$d
    exit 0
done
echo "there is no adapter" >&2
exit 1
"""
# The function as it is without a driver, whatever the last one left.
FRESH = """
while [ "$(cat "$1/enable")" != 0 ]; do echo 0 > "$1/enable"; done
echo 1 > "$1/reset"
dmesg -C
"""
# What a driver has of the kernel and of the function, one thing a line.
STATE = r"""
echo "driver: $(readlink "$1/driver")"
echo "enable count: $(cat "$1/enable")"
echo "bus master: $(( (0x$(od -An -tx1 -j4 -N1 "$1/config" | tr -d ' ') >> 2) & 1 ))"
echo "MSI-X vectors: $(ls "$1/msi_irqs" 2>/dev/null | wc -l)"
sed 's/^/memory region: /' /proc/iomem
sed -n 's/^[^ ]* *[0-9]* \(.*phys=.*\)/mapping: \1/p' /proc/vmallocinfo
sed -nE 's/^ *[0-9]+:[ 0-9]*/interrupt: /p' /proc/interrupts
ls /sys/kernel/debug | sed 's/^/debugfs: /'
"""


class Bench:
    """The VM of a lab; its lab is brought up if it is not."""

    def __init__(self, lab):
        self.lab = lab
        self.folder = LabFolder(lab)
        self.symbols = Kernel("")
        if not (self.folder.data and VM in self.folder.data["vms"]):
            self._up()
        self.place = self._prepare()

    def _staghorn(self, *words):
        return subprocess.run([str(paths.TOP / "staghorn"), "--lab", self.lab, *words], check=False)

    def _up(self):
        print("# bringing up the lab %s, which stays up" % self.lab, flush=True)
        words = ("up", "--vms", VM, "--device-prop", "check=strict")
        if self._staghorn(*words).returncode:
            raise LabError("the lab %s did not come up" % self.lab)
        self.folder.load()

    def down(self):
        """For a kernel that is not to be trusted any more."""
        self._staghorn("down")

    def _prepare(self):
        if not lint.is_on(self.folder, VM):
            raise UsageError(
                "the driver checker of lab %s is off" % self.lab,
                "./staghorn --lab %s down; the judge then brings it up itself" % self.lab,
            )
        status, out, error = agent.capture(self.folder, VM, ["sh", "-c", TAKE], timeout=60)
        if status:
            raise LabError("the adapter of %s is not free: %s" % (VM, error.strip()))
        with Monitor(self.folder, VM) as monitor:
            for event in EVENTS:
                monitor.run("trace-event-set-state", name="staghorn_" + event, enable=True)
        return out.strip()

    def sh(self, script, *words, timeout=60):
        """A shell script in the VM: (status, output, errors)."""
        return agent.capture(self.folder, VM, ["sh", "-c", script, "sh", *words], timeout=timeout)

    def get(self, name):
        """A property of the adapter."""
        with Monitor(self.folder, VM) as monitor:
            return monitor.run("qom-get", path=ADAPTER, property=name)

    def faults(self, rules):
        """Sets fault rules (docs/manual/faults.md); "" ends them."""
        with Monitor(self.folder, VM) as monitor:
            monitor.run("qom-set", path=ADAPTER, property="faults", value=rules)

    def put(self, module):
        """Copies the module into the VM."""
        transfer.put(self.folder, str(module), VM, PLACE)

    def state(self):
        """What drivers have: lines."""
        return self.sh(STATE, self.place)[1].splitlines()

    # -- what was said since begin()

    def learn(self, name):
        """Learns where the functions of a module are, as long as it is loaded."""
        self.symbols = Kernel(self.sh('grep -F "[$1]" /proc/kallsyms', name)[1])

    def begin(self):
        """From here on messages, device log and reports belong to the module."""
        self.faults("")
        self.sh(FRESH, self.place)
        self.device()
        self.mark = self._sizes()
        self.known = self._reports()
        self.symbols = Kernel("")

    def messages(self):
        """What the kernel said."""
        return self.sh("dmesg -t")[1]

    def complaints(self):
        """What the kernel has against the driver."""
        return [line for line in self.messages().splitlines() if COMPLAINT.search(line)]

    def _logs(self):
        for name in ("device.log.1", "device.log"):
            path = self.folder.path / VM / name
            if path.exists():
                yield path

    def _sizes(self):
        return {path.stat().st_ino: path.stat().st_size for path in self._logs()}

    def device(self):
        """The lines of the device's log, when no more come."""
        limit = time.monotonic() + QUIET_LIMIT_S
        before = None
        while before != self._sizes() and time.monotonic() < limit:
            before = self._sizes()
            time.sleep(QUIET_S)
        found = b""
        for path in self._logs():
            skip = getattr(self, "mark", {}).get(path.stat().st_ino, 0)
            found += path.read_bytes()[skip:]
        return found.decode(errors="replace")

    def _reports(self):
        with Monitor(self.folder, VM) as monitor:
            text = monitor.run("qom-get", path=ADAPTER, property=lint.PROPERTY)
        return {one["number"]: dict(one, adapter=ADAPTER) for one in json.loads(text)}

    def reports(self):
        """New reports of the driver checker, and old ones that were repeated."""
        found = [
            one
            for number, one in self._reports().items()
            if one["count"] > self.known.get(number, {"count": 0})["count"]
        ]
        for report in found:
            if report["number"] in self.known:  # the adapter keeps what was said the first time
                report["text"] += " (again; these are the words of the first time)"
                report["events"] = []
                report.pop("pc", None)
                report.pop("cpu", None)
            name = self.symbols.name(int(report["pc"], 16)) if "pc" in report else None
            if name:
                report["symbol"] = name
        return found


def show(text):
    """A text as TAP's comments."""
    for line in text.splitlines():
        print("# " + line)
    sys.stdout.flush()
