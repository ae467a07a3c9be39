# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the tests of an adapter's life cycle: traffic from alpha to beta, and its end.

A case does something to an adapter.  The traffic has to end on both sides, and RDMA has to work
again afterwards."""
import time

import labtest
import programs
import rdmatest
import ulptest
from launcher.qmp import Monitor

BETA = "10.77.0.2"
FOREVER = 1000000
# Seconds: the default of peer-timeout, after which a silent peer is considered dead, and a reserve
# for a slow machine.
TOLD = 60 + 60
OVER = r"DISCONNECT EVENT|device removal|wait for \w+ state|completion failed|post send error"


class LifeCase(labtest.LabCase):
    def tearDown(self):
        super().tearDown()
        self.check_kernels()

    def check_kernels(self):
        """Neither kernel complains; recoveries() needs the whole log, so it is kept."""
        for vm in ("alpha", "beta"):
            ulptest.check_kernel(self.lab, vm, keep=True)

    def monitor(self, vm):
        """A monitor that waits long: QEMU does not answer while it saves or loads a machine."""
        return Monitor(rdmatest.folder(self.lab), vm, limit=120)

    def traffic(self):
        """An endless rping: server on beta, client on alpha."""
        server = self.lab.start("beta", "rping", "-s", "-a", BETA, "-v", "-S", "4096")
        programs.wait_listening(self.lab, "beta", server)
        client = self.lab.start("alpha", "rping", "-c", "-a", BETA, "-S", "4096", "-C", FOREVER)
        server.expect("server ping data", 60)
        return server, client

    def works(self, limit=120):
        """Checks RDMA from alpha to beta, once both are ready."""
        for vm in ("alpha", "beta"):
            self.wait(vm, "/usr/lib/staghorn/rdma staghorn >/dev/null 2>&1", limit)
        self.lab.sh("alpha", "ping -c 1 -W 30 beta")
        rdmatest.rping(self.lab, "beta", "alpha", count=5, size=20000)

    def wait(self, vm, script, limit=120):
        """Waits until a script succeeds; meanwhile the VM may be unreachable."""
        deadline = time.monotonic() + limit * labtest.SLOW
        while self.lab.run("exec", vm, "--", "sh", "-c", script, status=None).returncode:
            self.assertLess(time.monotonic(), deadline, script)
            time.sleep(0.2)

    def ends(self, *started):
        for each in started:
            each.wait(90)

    def hears(self, process):
        """The program is told in time that its connection is over, and ends by itself."""
        process.wait(TOLD)
        self.assertRegex(process.output, OVER)

    def recoveries(self, vm):
        return int(self.lab.sh(vm, "dmesg | grep -c 'adapter is up again' || :"))

    def recovered(self, vm, before):
        self.wait(vm, "[ $(dmesg | grep -c 'adapter is up again') -gt %d ]" % before)

    def fresh(self, vm="beta"):
        """Reloads the driver, because it gives up an adapter that is lost too often in a minute."""
        self.lab.sh(vm, "modprobe -r staghorn && modprobe staghorn")
        self.wait(vm, "/usr/lib/staghorn/rdma staghorn >/dev/null 2>&1")
