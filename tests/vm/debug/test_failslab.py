#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Allocations in the driver fail: each one of its start in turn, then random ones under verbs.
# timeout: 900

Only allocations fail whose call trace has a function of the driver.  Programs may fail; the kernel
must neither complain nor leak (labtest.Lab.down), and afterwards everything works as before.
"""
import re

import labtest
import programs
import rdmatest
from launcher.errors import LabError

INJECT = "/sys/kernel/debug/%s"
KINDS = ("failslab", "fail_page_alloc")
# Sets the range of addresses of the driver's functions, which changes with each load.
AIM = r"""
set -e
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null || :
grep -E '^[0-9a-f]+ [tT] .*\[staghorn\]$' /proc/kallsyms | sort > /tmp/text
for kind in failslab fail_page_alloc; do
    cd /sys/kernel/debug/$kind
    echo 0 > probability
    echo 0x$(head -n 1 /tmp/text | cut -d ' ' -f 1) > require-start
    echo 0x$(tail -n 1 /tmp/text | cut -d ' ' -f 1) > require-end
    echo 32 > stacktrace-depth
    echo N > ignore-gfp-wait
    [ ! -e ignore-gfp-highmem ] || echo N > ignore-gfp-highmem
    [ ! -e min-order ] || echo 0 > min-order
    [ ! -e cache-filter ] || echo N > cache-filter
    echo N > task-filter
    echo 1 > interval
    echo 0 > verbose
    echo -1 > times
done
"""
# The n-th allocation of this shell in the driver fails; prints the final counter.
BIND = r"""
echo %(n)d > /proc/self/fail-nth
echo %(device)s > /sys/bus/pci/drivers/staghorn/bind 2>/tmp/bound && bound=yes || bound=no
read left < /proc/self/fail-nth
echo 0 > /proc/self/fail-nth
echo "bound $bound left $left"
[ $bound = no ] || echo %(device)s > /sys/bus/pci/drivers/staghorn/unbind
"""
MOST = 400  # allocations during a start
LOOK = (
    "ip -br address; rdma link; rdma resource; grep -v '^0000:0000:0000:0000:0000:0000' "
    "/sys/class/infiniband/*/ports/1/gids/*; dmesg | tail -n 40"
)
PROGRAMS = ("verbs_abi", "verbs_events", "verbs_memory", "verbs_queues")


class Failslab(labtest.LabCase):
    def device(self, vm):
        path = "/sys/class/infiniband/staghorn0/device"
        return self.lab.sh(vm, "basename $(readlink %s)" % path).strip()

    def works(self):
        try:
            for vm in ("alpha", "beta"):
                self.lab.sh(vm, "/usr/lib/staghorn/rdma staghorn >/dev/null")
            rdmatest.rping(self.lab, "beta", "alpha", count=5, size=20000)
        except (AssertionError, LabError):
            for vm in ("alpha", "beta"):
                done = self.lab.run("exec", "-n", vm, "--", "sh", "-c", LOOK, status=None)
                print("# %s:\n# %s" % (vm, done.out.replace("\n", "\n# ")), flush=True)
            raise

    def test_start__each_allocation_fails(self):
        """A start in which an allocation fails may fail or succeed; afterwards a start succeeds."""
        where = {"device": self.device("alpha")}
        self.lab.sh("alpha", AIM)
        self.lab.sh("alpha", "echo %(device)s > /sys/bus/pci/drivers/staghorn/unbind" % where)
        refused = 0
        for n in range(1, MOST):
            text = self.lab.sh("alpha", BIND % dict(where, n=n))
            bound, left = re.search(r"bound (\w+) left (\d+)", text).groups()
            refused += bound == "no"
            if int(left):
                self.assertEqual(bound, "yes", text)
                break
        else:
            self.fail("a start has %d allocations?" % MOST)
        print("# %d allocations in a start, %d of which it cannot do without" % (n - 1, refused))
        self.assertGreater(refused, 10)
        self.lab.sh("alpha", "echo %(device)s > /sys/bus/pci/drivers/staghorn/bind" % where)
        self.works()

    def inject(self, vm, probability):
        for kind in KINDS:
            self.lab.sh(vm, "echo %d > %s/probability" % (probability, INJECT % kind))

    def test_verbs__random_allocations_fail(self):
        """Programs run while one in ten, then one in three, of their allocations fail."""
        programs.install(self.lab, "alpha", *PROGRAMS)
        self.lab.sh("alpha", AIM)
        for probability in (10, 33):
            self.inject("alpha", probability)
            for name in PROGRAMS:
                words = "timeout 200 %s %s > /tmp/%s.out 2>&1; echo $?"
                self.lab.sh("alpha", words % (name, programs.ADDRESS["alpha"], name), timeout=240)
            self.inject("alpha", 0)
        for name in PROGRAMS:
            done = self.lab.sh("alpha", "timeout 200 %s %s" % (name, programs.ADDRESS["alpha"]))
            self.assertNotIn("\nnot ok", "\n" + done)

    def test_connections__random_allocations_fail(self):
        """Allocations fail on both sides, while connections come and go."""
        for vm in ("alpha", "beta"):
            self.lab.sh(vm, AIM)
            self.inject(vm, 10)
        # Runs until the file exists; the VM's processes outlive the launcher's.
        loop = "until [ -e /tmp/enough ]; do timeout 10 rping -s -a 10.77.0.2 -C 3; done"
        server = self.lab.start("beta", "sh", "-c", "rm -f /tmp/enough; %s; echo ended" % loop)
        words = "for n in 1 2 3 4 5 6 7 8 9 10; do timeout 10 rping -c -a 10.77.0.2 -C 3; done"
        self.lab.sh("alpha", words + " >/dev/null 2>&1; :", timeout=240)
        for vm in ("alpha", "beta"):
            self.inject(vm, 0)
        self.lab.sh("beta", "touch /tmp/enough")
        server.expect("ended")
        self.works()


if __name__ == "__main__":
    labtest.main()
