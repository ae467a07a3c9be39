# SPDX-License-Identifier: GPL-2.0-or-later
"""Power cuts of VMs with persistent memory: what remains of stores, and what the launcher reports.
# timeout: 1200

CPU stores are not tracked here (test_litmus.py does that): the property untracked decides their
fate.
"""
import json
import os
import subprocess
import tempfile
import time
import unittest

import labtest
import programs
from launcher import domain
from launcher.state import LabFolder

DAX = "/dev/dax0.0"


def wait_up(test, vm):
    """Waits until a VM is back that has lost its power."""
    deadline = time.monotonic() + 60
    while test.lab.run("exec", vm, "--", "true", status=None).returncode:
        test.assertLess(time.monotonic(), deadline)


class Cut(labtest.LabCase):
    up_arguments = ("--vms", "solo,plain", "--driver", "plain=none", "--mem", "512M") + (
        "--pmem",
        "solo:64M,policy=lose-all,untracked=at-risk,cpu-tracking=off",
        "--pmem",
        "solo:32M",
        "--pmem",
        "plain:32M,domain=off",
    )

    def setUp(self):
        programs.install(self.lab, "solo", "dax_store")

    def store(self, offset, text, vm="solo"):
        self.lab.run("exec", vm, "--", "dax_store", DAX, "write", offset, text)

    def read(self, offset, length, vm="solo"):
        done = self.lab.run("exec", vm, "--", "dax_store", DAX, "read", offset, length)
        return done.out.rstrip("\n")

    def set(self, *settings):
        words = [word for setting in settings for word in ("--set", setting)]
        self.lab.run("pmem", "solo", *words)

    def state(self):
        return json.loads(self.lab.run("pmem", "solo", "--json").out)

    def cut(self, *options):
        """Cuts the power, waits, and installs the program again."""
        done = self.lab.run("cut", "solo", *options)
        programs.install(self.lab, "solo", "dax_store")
        return done

    def test_cut__by_policy(self):
        self.set("untracked=at-risk")
        self.store(0, "persisted")
        self.lab.run("pmem", "solo", "--persist")
        self.store(4096, "stored")
        self.assertEqual(self.read(4096, 6), "stored")
        self.lab.sh("solo", "echo lost > /root/note")
        done = self.cut("--policy", "lose-all")
        self.assertRegex(done.out, r"solo lost its power for [0-9.]+ ms and is ready after")
        self.assertEqual(self.read(0, 9), "persisted")
        self.assertEqual(self.read(4096, 6), "......")
        self.assertEqual(self.lab.sh("solo", "ls /root/note 2>/dev/null || true"), "")
        self.store(4096, "stored")
        self.cut("--policy", "keep-all")
        self.assertEqual(self.read(4096, 6), "stored")
        self.set("untracked=keep")
        self.store(8192, "stored")
        self.cut()  # the property says lose-all
        self.assertEqual(self.read(8192, 6), "stored")

    @labtest.long
    def test_cut__by_domain(self):
        self.set("untracked=at-risk", "domain=eadr")
        self.store(12288, "cached")
        self.cut()
        self.assertEqual(self.read(12288, 6), "cached")
        self.set("domain=none")
        self.store(12288, "CACHED")
        self.cut()
        self.assertEqual(self.read(12288, 6), "cached")
        self.set("domain=adr")

    @labtest.long
    def test_cut__followed_stores(self):
        """With cpu-tracking=on it matters whether a line was flushed."""
        self.set("untracked=at-risk", "cpu-tracking=on")
        self.lab.run("exec", "solo", "--", "dax_store", DAX, "persist", 40960, "flushed")
        self.store(45056, "stored")
        self.cut()
        self.assertEqual(self.read(40960, 7), "flushed")
        self.assertEqual(self.read(45056, 6), "......")
        cuts = self.state()["state"]["cuts"]
        self.lab.run("pmem", "solo", "--arm", "event:100")
        done = self.lab.run(
            *("exec", "solo", "--", "dax_store", DAX, "fill", 49152, 65536, 77), status=125
        )
        self.assertIn("lost its power", done.err)
        self.assertEqual(self.state()["state"]["cuts"], cuts + 1)
        wait_up(self, "solo")
        programs.install(self.lab, "solo", "dax_store")
        words = ("exec", "solo", "--", "dax_store", DAX, "count", 49152, 65536, 77)
        self.assertEqual(self.lab.run(*words).out, "0\n")
        self.set("cpu-tracking=off")

    @labtest.long
    def test_cut__worst_for_a_range(self):
        """The range is lost, a running exec ends, and RDMA is back."""
        self.set("untracked=at-risk")
        self.store(16384, "inside")
        self.store(20480, "elsewhere")
        started = self.lab.start("solo", "sh", "-c", "echo go; sleep 1000")
        started.expect("go")
        before = json.loads(self.lab.run("status", "--json").out)["vms"]["solo"]
        # The guest's device begins at 2 MiB of the NVDIMM.
        self.cut("--policy", "worst-for:pmem0@%#x+4096" % (16384 + (2 << 20)))
        self.assertEqual(self.read(16384, 6), "......")
        self.assertEqual(self.read(20480, 9), "elsewhere")
        self.assertEqual(started.wait(20), 125)
        self.assertIn("lost its power", started.output)
        after = json.loads(self.lab.run("status", "--json").out)["vms"]["solo"]
        self.assertEqual(after["pid"], before["pid"])
        self.assertEqual(after["starts"], before["starts"] + 1)
        self.assertEqual(after["device"], "staghorn0")
        self.assertIn("staghorn0", self.lab.sh("solo", "ls /sys/class/infiniband"))

    def test_cut__report(self):
        cuts = self.state()["state"]["cuts"]
        self.store(24576, "stored")
        self.cut("--policy", "random:7")
        found = self.state()
        self.assertEqual(found["state"]["cuts"], cuts + 1)
        print("# 96 MiB: power to power %.1f ms" % (found["state"]["cut-us"] / 1e3))
        self.assertIn("policy random", self.lab.run("pmem", "solo", "--report").out)
        report = json.loads(self.lab.run("pmem", "solo", "--report", "--json").out)
        self.assertEqual(report["policy"]["outcome"], "random")

    def test_kill__is_a_cut(self):
        self.set("untracked=at-risk")
        self.store(28672, "persisted")
        self.lab.run("pmem", "solo", "--persist")
        self.store(32768, "stored")
        self.lab.run("cut", "solo", "--hard")
        self.assertIn("is off", self.lab.run("pmem", "solo", status=3).err)
        self.lab.run("on", "solo")
        programs.install(self.lab, "solo", "dax_store")
        self.assertEqual(self.read(28672, 9), "persisted")
        self.assertEqual(self.read(32768, 6), "......")

    @labtest.long
    def test_kill__caches_survive(self):
        """A domain that keeps caches does so here, too; then the command line's domain applies."""
        self.set("untracked=at-risk", "domain=eadr")
        self.store(57344, "cached")
        self.lab.run("cut", "solo", "--hard")
        self.lab.run("on", "solo")
        programs.install(self.lab, "solo", "dax_store")
        self.assertEqual(self.read(57344, 6), "cached")
        self.assertEqual(self.state()["properties"]["domain"], "adr")

    @labtest.long
    def test_poweroff__keeps_all(self):
        self.set("untracked=at-risk")
        self.store(36864, "stored")
        self.lab.run("exec", "solo", "--", "sh", "-c", "kill -TERM 1; sleep 20", status=125)
        self.lab.run("on", "solo")
        programs.install(self.lab, "solo", "dax_store")
        self.assertEqual(self.read(36864, 6), "stored")

    @labtest.long
    def test_plain__keeps_all(self):
        programs.install(self.lab, "plain", "dax_store")
        self.store(0, "stored", "plain")
        self.lab.run("cut", "plain")
        self.lab.run("on", "plain")
        programs.install(self.lab, "plain", "dax_store")
        self.assertEqual(self.read(0, 6, "plain"), "stored")

    def test_memory__all_of_it_is_there(self):
        found = self.state()["state"]["nvdimms"]
        self.assertEqual([found[dimm]["size"] >> 20 for dimm in sorted(found)], [64, 32])
        said = self.lab.sh("solo", "cat /sys/bus/nd/devices/region0/persistence_domain")
        self.assertEqual(said, "memory_controller\n")
        sizes = self.lab.sh("solo", "cat /sys/bus/dax/devices/*/size").split()
        self.assertEqual([int(size) >> 20 for size in sizes], [62, 30])

    def test_errors(self):
        for words, status, text in (
            (("pmem", "plain"), 1, "domain=off"),
            (("pmem", "solo", "--set", "domain"), 2, "is not PROPERTY=VALUE"),
            (("pmem", "solo", "--set", "colour=red"), 2, "no property colour"),
            (("pmem", "solo", "--set", "domain=some"), 1, "none, adr, eadr or whole"),
            (("pmem", "solo", "--set", "ddio=2"), 2, "on or off"),
            (("pmem", "solo", "--set", "seed=x"), 2, "takes a number"),
            (("pmem", "solo", "--arm", "noon"), 1, "event:N"),
            (("cut", "solo", "--policy", "gently"), 1, "lose-all, keep-all"),
            (("cut", "solo", "--policy", "worst-for:pmem7@0+64"), 1, "pmem7"),
            (("cut", "plain", "--policy", "lose-all"), 1, "domain=off"),
            (("cut", "solo", "--hard", "--policy", "lose-all"), 2, "takes no --policy"),
        ):
            with self.subTest(words=words):
                self.assertIn(text, self.lab.run(*words, status=status).err)
        self.assertEqual(self.state()["properties"]["domain"], "adr")


@labtest.long
class Silence(unittest.TestCase):
    """A machine that loses its power sends nothing more, not even a FIN or RST."""

    def setUp(self):
        self.lab = labtest.Lab("lab")
        folder = tempfile.TemporaryDirectory(prefix="sg-cut-")
        self.addCleanup(folder.cleanup)
        self.capture = os.path.join(folder.name, "silence.pcap")
        self.lab.up("--capture", self.capture, "--pmem", "beta:64M,domain=adr")
        # A machine that resumed within a second would answer for connections that it has lost: so
        # after its power cut it boots.
        domain.resume_from(LabFolder(self.lab.name), "beta", "")

    def tearDown(self):
        self.lab.down()

    def frames(self, test):
        done = subprocess.run(
            ["tshark", "-r", self.capture, "-Y", test, "-T", "fields", "-e", "frame.time_epoch"],
            capture_output=True,
            text=True,
            check=False,
        )
        return [float(line) for line in done.stdout.split()]

    def test_cut__connections_vanish(self):
        server = self.lab.start("beta", "rping", "-s", "-a", "10.77.0.2", "-v")
        programs.wait_listening(self.lab, "beta", server)
        client = self.lab.start(
            "alpha", "rping", "-c", "-a", "10.77.0.2", "-S", "64", "-C", "1000000"
        )
        server.expect("server ping data")
        before = time.time()
        self.lab.run("cut", "beta", "--no-wait")
        time.sleep(1)
        self.assertTrue(self.frames("ip.src == 10.77.0.2 && tcp && frame.time_epoch < %f" % before))
        ends = "ip.src == 10.77.0.2 && (tcp.flags.reset == 1 || tcp.flags.fin == 1)"
        self.assertEqual(self.frames(ends + " && frame.time_epoch < %f" % (before + 2)), [])
        self.assertIsNone(client.process.poll(), client.output)
        self.assertEqual(server.wait(30), 125)
        wait_up(self, "beta")
        self.lab.sh("alpha", "ping -c 1 -W 10 beta")


if __name__ == "__main__":
    labtest.main()
