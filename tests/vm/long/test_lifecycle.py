# SPDX-License-Identifier: GPL-2.0-or-later
"""The life cycle of an adapter: hot unplug and plug, unload, failure, suspend, reboot, save.
# timeout: 1200

Each happens under traffic.  The traffic has to end on both sides, and RDMA has to work again
afterwards.
"""
import os
import re
import tempfile
import time

import labtest
import lifetest
import rdmatest
from launcher import paths
from lifetest import BETA, FOREVER, TOLD

INJECTED = 5  # SG_FATAL_INJECTED
# SeaBIOS's values of PMBASE, ACPI_CNTL and RCBA of q35's LPC bridge (device 31) and of PCIEXBAR of
# the host bridge, by their addresses for port 0xcf8.
CHIPSET = {
    0x8000F840: 0x601,
    0x8000F844: 0x80,
    0x8000F8F0: 0xFED1C001,
    0x80000064: 0,
    0x80000060: 0xB0000001,
}

SLEEP = "echo mem > /sys/power/state; touch /run/awake"

# kexec_file_load() and reboot(LINUX_REBOOT_CMD_KEXEC), in Perl, which every Debian has.
KEXEC = r"""
open(K, "<", "/tmp/vmlinuz") or die; open(I, "<", "/tmp/initrd") or die;
open(C, "<", "/proc/cmdline") or die; chomp(my $line = <C>);
syscall(320, fileno(K), fileno(I), length($line) + 1, $line, 0) == 0 or die "load: $!";
syscall(169, 0xfee1dead, 672274793, 0x45584543, 0);
die "reboot: $!";
"""


class Lifecycle(lifetest.LifeCase):
    up_arguments = ("--mem", "512M")

    def test_unplug__under_traffic(self):
        """The adapter of each side in turn is unplugged, and plugged in again."""
        for vm in ("alpha", "beta"):
            server, client = self.traffic()
            self.lab.run("unplug", vm)
            self.assertIn("already unplugged", self.lab.run("unplug", vm, status=1).err)
            self.ends(client, server)
            self.assertEqual(self.lab.sh(vm, "ls /sys/class/infiniband"), "")
            self.lab.run("plug", vm)
            self.assertIn("already plugged in", self.lab.run("plug", vm, status=1).err)
            self.works()

    def test_module__reload_under_traffic(self):
        for vm in ("alpha", "beta"):
            server, client = self.traffic()
            self.lab.sh(vm, "modprobe -r staghorn")
            self.ends(client, server)
            self.lab.sh(vm, "modprobe staghorn")
            self.works()

    def test_reset__is_recovered_from(self):
        """The function is reset through sysfs; the driver starts anew by itself."""
        before = self.recoveries("beta")
        server, client = self.traffic()
        path = "/sys/class/infiniband/staghorn0/device/reset"
        self.lab.sh("beta", "echo 1 > " + path)
        self.ends(client, server)
        self.recovered("beta", before)
        self.works()

    def losses(self, vm):
        words = "dmesg | grep -c 'adapter is lost: it reports a fatal error.*reason %d)' || :"
        return int(self.lab.sh(vm, words % INJECTED))

    def broken(self, vm):
        """The adapter fails; the driver notices it, tells all users and starts anew."""
        self.fresh(vm)
        server, client = self.traffic()
        watch = self.lab.start(vm, "ibv_asyncwatch", "-d", "staghorn0")
        watch.expect("async event FD", 60)
        losses, recoveries = self.losses(vm), self.recoveries(vm)
        with self.monitor(vm) as monitor:
            where = {"path": "r0", "property": "fatal"}
            self.assertIs(monitor.run("qom-get", **where), False)
            monitor.run("qom-set", value=True, **where)
            watch.expect("IBV_EVENT_DEVICE_FATAL", TOLD)
            self.hears(client)
            self.hears(server)
            self.recovered(vm, recoveries)
            self.assertIs(monitor.run("qom-get", **where), False)
        self.assertEqual(self.losses(vm), losses + 1)
        self.works()

    def test_fault__under_traffic(self):
        """The property `fatal`, set on the server's adapter and on the client's."""
        for vm in ("beta", "alpha"):
            with self.subTest(vm=vm):
                self.broken(vm)

    def test_reboot(self):
        server, client = self.traffic()
        self.check_kernels()  # the reboot ends beta's log
        with self.monitor("beta") as monitor:
            monitor.run("set-action", reboot="reset")
        self.lab.sh("beta", "touch /run/before")
        gone = self.lab.start("beta", "sh", "-c", "echo b > /proc/sysrq-trigger; sleep 1000")
        self.hears(client)
        self.wait("beta", "test ! -e /run/before -a -e /run/staghorn/rdma", 240)
        for each in (gone, server):
            each.stop()
        self.works()

    def test_kexec(self):
        """kexec does not reset the machine; the driver's shutdown() has silenced the adapter."""
        for name in ("vmlinuz", "initrd"):
            path = paths.guest(name, rdmatest.folder(self.lab).require()["kernel"])
            self.lab.run("copy", os.path.realpath(path), "beta:/tmp/" + name)
        server, client = self.traffic()
        self.check_kernels()
        self.lab.sh("beta", "touch /run/before")
        # The machine is not reset, so the launcher does not notice that the agent is gone.
        gone = self.lab.start("beta", "perl", "-e", KEXEC)
        self.hears(client)
        self.wait("beta", "test ! -e /run/before -a -e /run/staghorn/rdma", 240)
        for each in (gone, server):
            each.stop()
        self.works()

    def wake(self, monitor):
        """Wakes the machine, and does SeaBIOS's part.

        A wake-up resets q35's registers, also those of the window into configuration space, through
        which SeaBIOS 1.16 would restore them.  So all of them are lost, also the ACPI timer, which
        Linux may use as its clock.  This has nothing to do with the adapter."""

        def say(text):
            return monitor.run("human-monitor-command", **{"command-line": text})

        monitor.run("system_wakeup")
        monitor.run("stop")
        address = re.search(r"= (0x[0-9a-f]+)", say("i /w 0xcf8"))[1]
        for register, value in CHIPSET.items():
            say("o /w 0xcf8 0x%x" % register)
            say("o /w 0xcfc 0x%x" % value)
        say("o /w 0xcf8 " + address)
        monitor.run("cont")

    def test_suspend__to_memory(self):
        """The peer is told while the machine sleeps, the machine's own program when it wakes.

        Neither program on beta is a child of the agent: since Linux 7.3 a virtio console forgets,
        while it sleeps, that the host is connected, so commands from before say no more."""
        client = self.service()
        self.lab.sh("beta", "echo deep > /sys/power/mem_sleep; rm -f /run/awake")
        self.lab.start("beta", "sh", "-c", "setsid sh -c '%s' </dev/null >/dev/null 2>&1 &" % SLEEP)
        with self.monitor("beta") as monitor:
            deadline = time.monotonic() + 120 * labtest.SLOW
            while monitor.run("query-status")["status"] != "suspended":
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            self.hears(client)
            self.wake(monitor)
        self.wait("beta", "test -e /run/awake")
        self.is_told()
        self.works()

    def service(self):
        """Traffic whose server on beta is not a child of the agent, so it is saved with its VM."""
        words = "stdbuf -oL rping -s -a %s -S 4096 >/tmp/served 2>&1; echo over >>/tmp/served"
        script = "rm -f /tmp/served; setsid sh -c '%s' </dev/null >/dev/null 2>&1 &"
        self.lab.sh("beta", script % (words % BETA))
        self.wait("beta", "rdma resource show cm_id | grep -q LISTEN", 60)
        words = ("rping", "-c", "-v", "-a", BETA, "-S", "4096", "-C", FOREVER)
        client = self.lab.start("alpha", *words)
        client.expect("ping data", 60)
        return client

    def is_told(self):
        """The server, whose adapter was replaced by a new one, saw its connection end and ended."""
        self.wait("beta", "grep -q over /tmp/served")
        self.assertRegex(self.lab.sh("beta", "cat /tmp/served"), "DISCONNECT EVENT|device removal")

    def test_save_and_load(self):
        """The machine continues, saved live or not; the connection is gone on both sides."""
        with tempfile.TemporaryDirectory(prefix="sg-state-") as folder:
            path = os.path.join(folder, "beta.state")
            for words, connected in ((), True), (("--live",), True), (("--live",), False):
                with self.subTest(words=words, connected=connected):
                    self.fresh()
                    client = self.service() if connected else None
                    self.lab.sh("beta", "touch /run/before")
                    before = self.recoveries("beta")
                    self.lab.run("save", *words, "beta", path)
                    self.lab.run("load", "beta", path)
                    self.lab.sh("beta", "rm /run/before")
                    if connected:
                        self.ends(client)
                        self.is_told()
                    self.recovered("beta", before)
                    self.works()

    def job(self, monitor, command, **arguments):
        monitor.run(command, **{"job-id": "j", **arguments})
        deadline = time.monotonic() + 120 * labtest.SLOW
        while True:
            (found,) = monitor.run("query-jobs")
            if found["status"] == "concluded":
                break
            self.assertLess(time.monotonic(), deadline, found)
            time.sleep(0.1)
        monitor.run("job-dismiss", id="j")
        self.assertNotIn("error", found)

    def test_snapshots__taken_and_gone_back_to(self):
        """A snapshot disturbs no connection; going back to it ends the present ones."""
        with tempfile.NamedTemporaryFile(prefix="sg-snap-") as file, self.monitor(
            "beta"
        ) as monitor:
            node = {"driver": "file", "node-name": "snapfile", "filename": file.name}
            monitor.run("blockdev-add", **node)
            options = {"driver": "qcow2", "file": "snapfile", "size": 1 << 30}
            self.job(monitor, "blockdev-create", options=options)
            monitor.run("blockdev-add", driver="qcow2", **{"node-name": "snap", "file": "snapfile"})
            for connected in False, True:
                with self.subTest(connected=connected):
                    where = {"tag": "c%d" % connected, "vmstate": "snap", "devices": ["snap"]}
                    self.fresh()
                    client = self.service() if connected else None
                    before = self.recoveries("beta")
                    self.job(monitor, "snapshot-save", **where)
                    if connected:
                        pings = client.output.count("ping data")
                        deadline = time.monotonic() + 90 * labtest.SLOW
                        while client.output.count("ping data") < pings + 3:
                            self.assertLess(time.monotonic(), deadline)
                            time.sleep(0.1)
                    else:
                        client = self.service()
                    self.lab.sh("beta", "touch /run/later")
                    self.job(monitor, "snapshot-load", **where)
                    monitor.run("cont")
                    self.wait("beta", "true")
                    self.lab.sh("beta", "test ! -e /run/later")
                    self.ends(client)
                    if connected:
                        self.is_told()
                    self.recovered("beta", before)
                    self.works()
            monitor.run("blockdev-del", **{"node-name": "snap"})
            monitor.run("blockdev-del", **{"node-name": "snapfile"})


if __name__ == "__main__":
    labtest.main()
