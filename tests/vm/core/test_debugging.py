#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/debugging.md promises: reasons in the device log, trace events, gdb, --qemu-arg.
# timeout: 600
# suite: full

The device log says why a queue pair went to error.  All of this also works after a VM was switched
off and on.
"""
import json
import re
import socket
import time
import unittest

import labtest
import programs

ADDRESS = programs.ADDRESS["alpha"]
PRODUCT = "looked at"
GOES_ON = "$D#44"  # gdb's detach


class Debugging(labtest.LabCase):
    up_arguments = (
        "--vms",
        "alpha",
        "--trace",
        "staghorn_state",
        "--trace",
        "alpha:staghorn_g*",
        "--gdb",
        "alpha",
        "--qemu-arg=alpha:-smbios 'type=1,product=%s'" % PRODUCT,
    )

    def provoke(self, part, good):
        """Drives queue pairs into error, by a program whose cases all pass."""
        programs.install(self.lab, "alpha", "verbs_events")
        words = ("exec", "-n", "alpha", "--", "verbs_events", ADDRESS, part)
        done = self.lab.run(*words, timeout=200)
        self.assertEqual(len(re.findall(r"(?m)^ok \d+ - ", done.out)), good, done.out)

    def device_log(self, *patterns):
        """The output of log --device, once it has them; it lags behind the device by a moment."""
        deadline = time.monotonic() + 20
        while True:
            text = self.lab.run("log", "alpha", "--device").out
            missing = [each for each in patterns if not re.search(each, text)]
            if not missing:
                return text
            self.assertLess(time.monotonic(), deadline, "%s is missing in\n%s" % (missing, text))
            time.sleep(0.2)

    def test_queue_pair__why_it_failed(self):
        """One line at each end says why."""
        self.provoke("peer:", 2)
        why = r"(?m)^\d\d:\d\d:\d\d\.\d{3} staghorn_failure r0: failure: qp \d+: RTS -> "
        tagged = r"TERMINATE: Terminate %s: DDP, tagged buffer, "
        self.device_log(
            why + tagged % "sent" + "base or bounds violation",
            why + tagged % "received" + "base or bounds violation",
            why + tagged % "sent" + "invalid STag",
            why + r"TERMINATE: Terminate sent: DDP, untagged buffer, no buffer available",
            r"staghorn_peer r0: peer error: conn \d+: ",
            r"staghorn_state r0: conn \d+: ",
        )

    def test_guest_error__once(self):
        """A guest error is logged once, and so is its consequence."""
        self.provoke("doorbell: beyond the queues", 1)
        text = self.device_log(
            r"r0: qp \d+: send doorbell 65536 beyond the queue",
            r"failure: qp \d+: RTS -> ERROR: send doorbell beyond the queue",
        )
        self.assertEqual(len(re.findall(r"send doorbell 65536 beyond", text)), 1, text)

    def gdb(self, *packets):
        """Answers of QEMU's gdbstub; the guest is stopped from here until gdb detaches."""
        found = json.loads(self.lab.run("status", "--json").out)["vms"]["alpha"]["gdb"]
        self.assertIn("gdb of alpha: target remote " + found, self.lab.run("status").out)
        answers = []
        with socket.socket(socket.AF_UNIX) as server:
            server.settimeout(30)
            server.connect(found)
            for packet in packets:
                server.sendall(packet.encode())
                data = b""
                while not re.search(rb"\$[^#]*#..", data):
                    piece = server.recv(4096)
                    self.assertTrue(piece, "the gdbstub hangs up after %r" % data)
                    data += piece
                server.sendall(b"+")
                answers.append(re.search(rb"\$([^#]*)#", data)[1].decode())
        return answers

    def test_gdb__attaches(self):
        """The guest stops, shows its registers, and continues."""
        why, registers, ends = self.gdb("$?#3f", "$g#67", GOES_ON)
        self.assertRegex(why, r"^[ST]05")
        self.assertRegex(registers, r"^[0-9a-fx]{128,}$")
        self.assertEqual(ends, "OK")
        self.assertEqual(self.lab.sh("alpha", "echo here"), "here\n")

    def product(self):
        return self.lab.sh("alpha", "cat /sys/class/dmi/id/product_name").strip()

    def test_zz_on_again__as_before(self):
        """A VM that was off has all of it again, and keeps its earlier log."""
        self.assertEqual(self.product(), PRODUCT)
        self.lab.run("cut", "alpha", "--hard")
        self.assertRegex(self.lab.run("log", "alpha", "--device").out, r"QEMU starts, \d{4}-")
        self.lab.run("on", "alpha", "--timeout", labtest.UP_LIMIT)
        self.assertEqual(self.product(), PRODUCT)
        text = self.device_log(r"QEMU starts, [\s\S]*QEMU starts, [\s\S]*staghorn_state r0: ")
        self.assertEqual(len(re.findall("QEMU starts, ", text)), 2)
        self.assertEqual(self.gdb("$?#3f", GOES_ON)[1], "OK")


class Refused(unittest.TestCase):
    def test_up__what_qemu_does_not_know(self):
        """QEMU's own message is shown."""
        done = labtest.Lab("refused").run("up", "--qemu-arg=alpha:-nonsense", status=1)
        self.assertIn("QEMU of VM alpha did not start", done.err)
        self.assertIn("nonsense", done.err)


if __name__ == "__main__":
    labtest.main()
