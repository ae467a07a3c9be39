# SPDX-License-Identifier: GPL-2.0-or-later
"""The life of an adapter in a VM: pulled out and plugged in, unloaded, suspended, rebooted, saved.

# timeout: 900

Each with traffic under way, which has to end on both sides, and to work again afterwards.
"""
import os
import tempfile
import time

import labtest
import programs
import rdmatest
from launcher.qmp import Monitor

BETA = "10.77.0.2"
FOREVER = 1000000

# kexec_file_load() and reboot(LINUX_REBOOT_CMD_KEXEC), in Perl, which each Debian has.
KEXEC = r"""
open(K, "<", "/tmp/vmlinuz") or die; open(I, "<", "/tmp/initrd") or die;
open(C, "<", "/proc/cmdline") or die; chomp(my $line = <C>);
syscall(320, fileno(K), fileno(I), length($line) + 1, $line, 0) == 0 or die "load: $!";
syscall(169, 0xfee1dead, 672274793, 0x45584543, 0);
die "reboot: $!";
"""


class Lifecycle(labtest.LabCase):
    up_arguments = ("--mem", "512M")

    def monitor(self, vm):
        return Monitor(rdmatest.folder(self.lab), vm)

    def traffic(self):
        """An rping that goes on and on: server on beta, client on alpha."""
        server = self.lab.start("beta", "rping", "-s", "-a", BETA, "-v", "-S", "4096")
        programs.wait_listening(self.lab, "beta", server)
        client = self.lab.start("alpha", "rping", "-c", "-a", BETA, "-S", "4096", "-C", FOREVER)
        server.expect("server ping data", 60)
        return server, client

    def works(self, limit=120):
        """RDMA from alpha to beta, once both are ready."""
        for vm in ("alpha", "beta"):
            self.wait(vm, "/usr/lib/staghorn/rdma staghorn >/dev/null 2>&1", limit)
        self.lab.sh("alpha", "ping -c 1 -W 30 beta")
        rdmatest.rping(self.lab, "beta", "alpha", count=5, size=20000)

    def wait(self, vm, script, limit=120):
        """Until a script succeeds; meanwhile the VM may be away."""
        deadline = time.monotonic() + limit
        while self.lab.run("exec", vm, "--", "sh", "-c", script, status=None).returncode:
            self.assertLess(time.monotonic(), deadline, script)
            time.sleep(0.2)

    def ends(self, *started):
        for each in started:
            each.wait(90)

    def test_unplug__under_traffic(self):
        """Both sides, one after the other."""
        for vm in ("alpha", "beta"):
            server, client = self.traffic()
            self.lab.run("unplug", vm)
            self.assertIn("unplugged already", self.lab.run("unplug", vm, status=1).err)
            self.ends(client, server)
            self.assertEqual(self.lab.sh(vm, "ls /sys/class/infiniband"), "")
            self.lab.run("plug", vm)
            self.assertIn("plugged in already", self.lab.run("plug", vm, status=1).err)
            self.works()

    def test_module__reload_under_traffic(self):
        for vm in ("alpha", "beta"):
            server, client = self.traffic()
            self.lab.sh(vm, "modprobe -r staghorn")
            self.ends(client, server)
            self.lab.sh(vm, "modprobe staghorn")
            self.works()

    def test_reset__is_recovered_from(self):
        """Somebody resets the function through sysfs: the driver starts anew by itself."""
        server, client = self.traffic()
        path = "/sys/class/infiniband/staghorn0/device/reset"
        self.lab.sh("beta", "echo 1 > " + path)
        self.ends(client, server)
        self.wait("beta", "dmesg | grep -q 'adapter is up again'")
        self.works()

    def test_reboot(self):
        server, client = self.traffic()
        with self.monitor("beta") as monitor:
            monitor.run("set-action", reboot="reset")
        self.lab.sh("beta", "touch /run/before")
        gone = self.lab.start("beta", "sh", "-c", "echo b > /proc/sysrq-trigger; sleep 1000")
        self.wait("beta", "test ! -e /run/before -a -e /run/staghorn/rdma", 240)
        for each in (gone, server, client):
            each.stop()
        self.works()

    def test_kexec(self):
        """A new kernel without a reset of the machine: shutdown() has silenced the adapter."""
        build = os.environ.get("SG_BUILD", str(labtest.TOP / "build"))
        for name in ("vmlinuz", "initrd"):
            self.lab.run("copy", os.path.realpath(build + "/guest/" + name), "beta:/tmp/" + name)
        server, client = self.traffic()
        self.lab.sh("beta", "touch /run/before")
        # The machine is not reset, so the launcher does not see its agent go.
        gone = self.lab.start("beta", "perl", "-e", KEXEC)
        self.wait("beta", "test ! -e /run/before -a -e /run/staghorn/rdma", 240)
        for each in (gone, server, client):
            each.stop()
        self.works()

    def test_suspend__to_memory(self):
        server, client = self.traffic()
        self.lab.sh("beta", "echo deep > /sys/power/mem_sleep")
        sleeper = self.lab.start("beta", "sh", "-c", "echo mem > /sys/power/state; echo awake")
        with self.monitor("beta") as monitor:
            deadline = time.monotonic() + 60
            while monitor.run("query-status")["status"] != "suspended":
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            monitor.run("system_wakeup")
        sleeper.expect("awake", 60)
        server.stop()
        client.stop()
        self.works()

    def test_save_and_load(self):
        """The connection is gone afterwards, on both sides, and the machine goes on."""
        with tempfile.TemporaryDirectory(prefix="sg-state-") as folder:
            path = os.path.join(folder, "beta.state")
            server, client = self.traffic()
            self.lab.sh("beta", "touch /run/before")
            self.lab.run("save", "beta", path)
            self.ends(client)
            server.stop()
            self.lab.run("load", "beta", path)
        self.lab.sh("beta", "test -e /run/before")
        self.wait("beta", "dmesg | grep -q 'adapter is up again'")
        self.works()


if __name__ == "__main__":
    labtest.main()
