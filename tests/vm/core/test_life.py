# SPDX-License-Identifier: GPL-2.0-or-later
"""The life of labs: power, several at once, three VMs, and nothing left behind.
# timeout: 900
# suite: full
"""
import json
import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import labtest

# RDMA is not the subject.  VMs of the same name and shape share boot snapshots.
PLAIN = ("--driver", "none", "--mem", "512M")


class Power(labtest.LabCase):
    up_arguments = PLAIN

    def test_power__cut_and_on(self):
        self.lab.sh("beta", "echo lost > /root/note")
        for vm in ("beta", "alpha"):
            self.lab.run("cut", vm)
            found = json.loads(self.lab.run("status", "--json").out)
            self.assertEqual(found["vms"][vm]["state"], "off")
            self.assertIn("is off", self.lab.run("exec", vm, "--", "true", status=125).err)
            self.assertIn("is off", self.lab.run("cut", vm, status=3).err)
            self.lab.run("on", vm)
            self.assertIn("is already on", self.lab.run("on", vm, status=1).err)
            # The segment works again, whichever side of the link went away.
            self.lab.sh("alpha", "ping -c 1 -W 10 beta")
        self.assertEqual(
            self.lab.sh("beta", "cat /root/note 2>&1 || true"),
            "cat: /root/note: No such file or directory\n",
        )

    def test_power__cut_ends_a_running_exec(self):
        started = self.lab.start("alpha", "sh", "-c", "echo go; sleep 1000")
        started.expect("go")
        self.lab.run("cut", "alpha")
        self.assertEqual(started.wait(20), 125)
        self.assertIn("went off", started.output)
        self.lab.run("on", "alpha")

    def test_power__guest_powers_itself_off(self):
        self.lab.run("exec", "beta", "--", "sh", "-c", "kill -TERM 1; sleep 20", status=125)
        found = json.loads(self.lab.run("status", "--json").out)
        self.assertEqual(found["vms"]["beta"]["state"], "off")
        self.lab.run("on", "beta")


class Leftovers(unittest.TestCase):
    def setUp(self):
        self.lab = labtest.Lab("left")

    def tearDown(self):
        self.lab.down()

    def nothing_left(self):
        self.assertEqual(labtest.processes_with(self.lab.state + "/labs/" + self.lab.name), [])
        self.assertFalse(os.path.exists(self.lab.state + "/labs/" + self.lab.name))

    def start_up(self):
        with labtest.booting():  # a VM that resumes might be up before it is interrupted
            started = subprocess.Popen(
                self.lab.command("up", *PLAIN), stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.stderr.close)
        self.addCleanup(started.kill)
        return started

    def interrupted(self, number, delay):
        started = self.start_up()
        time.sleep(delay)
        started.send_signal(number)
        _, error = started.communicate(timeout=30)
        # -2: the interpreter had not reached our code yet
        self.assertIn(started.returncode, (130, -2), error)
        self.nothing_left()

    def test_up__ctrl_c_while_booting(self):
        self.interrupted(signal.SIGINT, 2.5)

    def test_up__ctrl_c_early(self):
        self.interrupted(signal.SIGINT, 0.4)

    def test_up__sigterm(self):
        self.interrupted(signal.SIGTERM, 1.5)

    def test_up__time_limit(self):
        with labtest.booting():
            done = self.lab.run("up", *PLAIN, "--timeout", "1", status=4)
        self.assertIn("was not ready within 1 s", done.err)
        self.nothing_left()

    def test_up__killed_launcher_is_cleared_by_down(self):
        started = self.start_up()
        time.sleep(2)
        started.kill()
        started.wait()
        self.assertEqual(json.loads(self.lab.run("status", "--json").out)["state"], "abandoned")
        self.lab.run("down")
        self.nothing_left()

    def test_down__while_up_runs(self):
        started = self.start_up()
        time.sleep(2)
        self.lab.run("down")
        started.communicate(timeout=30)
        self.assertEqual(started.returncode, 130)
        self.nothing_left()

    def test_up__after_its_qemus_were_killed(self):
        self.lab.up(*PLAIN, "--vms", "alpha")
        for pid in labtest.processes_with(self.lab.state + "/labs/left"):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        self.assertEqual(json.loads(self.lab.run("status", "--json").out)["state"], "dead")
        done = self.lab.up(*PLAIN, "--vms", "alpha")
        self.assertIn("clearing what is left", done.err)
        self.lab.run("down")
        self.nothing_left()


class Segments(unittest.TestCase):
    def test_three_vms_and_a_capture(self):
        """Three VMs reach each other; the capture has every frame and survives a cut."""
        lab = labtest.Lab("three")
        with tempfile.TemporaryDirectory() as folder:
            lab.up(*PLAIN, "--vms", "alpha,beta,gamma", "--capture", folder + "/x.pcap")
            try:
                lab.sh("alpha", "ping -c 1 -W 10 beta && ping -c 1 -W 10 gamma")
                lab.run("cut", "alpha")
                lab.sh("beta", "ping -c 1 -W 10 gamma")
                lab.run("on", "alpha")
                lab.sh("alpha", "ping -c 1 -W 10 beta")
            finally:
                lab.down()
            with open(folder + "/x.pcap", "rb") as file:
                data = file.read()
        self.assertEqual(struct.unpack("<I", data[:4])[0], 0xA1B2C3D4)
        pairs = {
            (src, dst)
            for src in (1, 2, 3)
            for dst in (1, 2, 3)
            if bytes([10, 77, 0, src, 10, 77, 0, dst]) in data
        }
        self.assertLessEqual({(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)}, pairs)

    def test_up__without_rdma(self):
        """A VM without an RDMA device becomes ready without one."""
        lab = labtest.Lab("plain")
        lab.up(*PLAIN, "--vms", "alpha")
        try:
            self.assertEqual(lab.sh("alpha", "ls /sys/class/infiniband 2>/dev/null || :"), "")
        finally:
            lab.down()

    def test_labs__two_at_once(self):
        """Labs with the same VM names do not see each other."""
        one, two = labtest.Lab("one"), labtest.Lab("two")
        one.up(*PLAIN, "--vms", "alpha")
        two.up(*PLAIN, "--vms", "alpha")
        try:
            one.sh("alpha", "echo one > /root/name")
            two.sh("alpha", "[ ! -e /root/name ]")
            self.assertEqual(len(json.loads(one.run("status", "--all", "--json").out)), 2)
            one.down()
            two.sh("alpha", "true")
        finally:
            one.down()
            two.down()


if __name__ == "__main__":
    labtest.main()
