# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of a lab: traces that replay to the media, and whatever goes wrong meanwhile.
# timeout: 1200
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import labtest
import programs

REPLAY = programs.BUILD + "/native/tests/trace_replay"
SERVER = """#!/bin/sh
exec rpma_server 10.77.0.2 /dev/dax0.0
"""
CLIENT = """
until ping -c 1 -W 1 10.77.0.2 > /dev/null; do :; done
n=0
until rpma_client 10.77.0.2; do
    n=$((n + 1)); [ $n -lt 20 ] || exit 1; sleep 0.5
done
"""


class Record(labtest.LabCase):
    up_arguments = ("--pmem", "beta:64M,domain=adr")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sg-record-")
        self.addCleanup(self.folder.cleanup)
        self.target = self.folder.name + "/run"

    def script(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755 if text.startswith("#!") else 0o644)
        return path

    def record(self, *arguments, status=0):
        done = self.lab.run("crash", "record", "--output", self.target, *arguments, status=status)
        if os.path.exists(self.target + "/record.json"):
            with open(self.target + "/record.json", encoding="utf-8") as file:
                done.record = json.load(file)
        return done

    def replay(self, vm, status="end"):
        path = "%s/%s.trace" % (self.target, vm)
        found = json.loads(
            subprocess.run([REPLAY, path], stdout=subprocess.PIPE, check=True).stdout
        )
        self.assertEqual(found["wrong"], "")
        self.assertIn(found["status"], status.split())
        return found

    def stays_recorded(self, vm="beta"):
        """Begins a recording that runs until its command is ended."""
        words = ("crash", "record", "--output", self.target, "--", vm, "sleep", "1000")
        child = subprocess.Popen(
            self.lab.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertIn(b"recording alpha, beta", child.stderr.readline())
        time.sleep(2.5)  # what happened before is in the files
        return child

    def test_record__replays(self):
        programs.install(self.lab, "alpha", "rpma_client")
        programs.install(self.lab, "beta", "rpma_server")
        server, client = self.script("server", SERVER), self.script("client", CLIENT)
        done = self.record("beta:" + server, "alpha:" + client)
        self.assertIn("all right", done.out)
        self.assertEqual(done.record["problems"], [])
        for vm in "alpha", "beta":
            self.assertEqual(done.record["vms"][vm]["state"], "complete")
            self.assertGreater(done.record["vms"][vm]["events"], 100)
        self.assertEqual([each["status"] for each in done.record["scripts"]], [0, 0])
        alpha, beta = self.replay("alpha"), self.replay("beta")
        self.assertEqual((alpha["extents"], beta["extents"]), (0, 1))
        self.assertTrue(beta["end-hash-fits"])
        for kind in "place", "settle", "device-fence", "flush-begin", "flush-end", "milestone":
            self.assertGreater(beta[kind], 0, kind)
        self.same_frames(alpha, beta)

    def same_frames(self, alpha, beta):
        """What one sends the other receives; the first and last ones may be on their way."""

        def passed(found, sent):
            return [tuple(frame[1:]) for frame in found["frames"] if frame[0] == sent]

        for one, other in (alpha, beta), (beta, alpha):
            sent, received = passed(one, 1), passed(other, 0)
            self.assertGreater(len(received), 50)
            missing = [frame for frame in received if frame not in set(sent)]
            self.assertLess(len(missing), 3)

    def test_record__script_fails(self):
        done = self.record("--", "beta", "sh", "-c", "echo out; exit 3", status=1)
        self.assertIn("beta: out", done.out)
        self.assertIn("in VM beta ended with status 3", done.err)
        self.assertEqual(done.record["scripts"][0]["status"], 3)
        self.replay("beta")

    @labtest.long
    def test_record__server_and_limit(self):
        words = ("--server", "beta", "--", "beta", "sleep", "1000", "--", "alpha", "true")
        done = self.record(*words)
        self.assertTrue(done.record["scripts"][0]["told-to-end"])
        self.target += "2"
        done = self.record("--timeout", "1", "--", "alpha", "sleep", "1000", status=1)
        self.assertIn("took too long", done.err)
        self.replay("alpha")

    def test_record__wrong_arguments(self):
        for words in (
            (),
            ("beta",),
            ("beta:/no/such/script",),
            ("--", "beta"),
            ("--", "beta", "true", "--", "beta", "true"),
            ("--server", "alpha", "--", "beta", "true"),
            ("--server", "beta", "--", "beta", "true"),
        ):
            with self.subTest(words):
                done = self.record(*words, status=2)
                self.assertIn("crash record:", done.err)
        self.assertIn("no VM gamma", self.record("--", "gamma", "true", status=3).err)
        self.assertFalse(os.path.exists(self.target))
        self.script("something", "")
        self.target = self.folder.name
        self.assertIn("is not empty", self.record("--", "beta", "true", status=2).err)

    @labtest.long
    def test_record__cut(self):
        child = self.stays_recorded()
        self.lab.run("cut", "beta", "--policy", "random")
        self.assertEqual(child.wait(60), 1)
        beta = self.replay("beta")
        self.assertEqual((beta["cut"], beta["restart"]), (1, 1))
        self.assertTrue(beta["end-hash-fits"])

    @labtest.long
    def test_record__vm_dies(self):
        child = self.stays_recorded()
        self.lab.run("cut", "beta", "--hard")
        self.assertEqual(child.wait(60), 125)
        self.assertGreater(self.replay("beta", "cut-short")["tick"], 0)
        self.replay("alpha")
        self.lab.run("on", "beta")

    @labtest.long
    def test_record__interrupted(self):
        child = self.stays_recorded()
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(60), 130)
        self.replay("alpha")
        self.assertTrue(self.replay("beta")["end-hash-fits"])

    @labtest.long
    def test_record__command_killed(self):
        child = self.stays_recorded()
        child.kill()
        child.wait(60)
        old, self.target = self.target, self.folder.name + "/other"
        done = self.record("--", "beta", "true", status=1)
        self.assertIn("a recording runs already", done.err)
        self.assertIn("crash record --stop", done.err)
        self.lab.run("crash", "record", "--stop")
        self.record("--", "beta", "true")
        self.target = old
        self.replay("alpha")
        self.replay("beta")

    @labtest.long
    def test_record__disk_full(self):
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=32k", "none", self.folder.name], check=True
        )
        self.addCleanup(subprocess.run, ["umount", self.folder.name], check=True)
        load = "while :; do ping -c 10 -i 0.01 10.77.0.1 > /dev/null; done"
        done = self.record("--", "beta", "sh", "-c", load, status=125)
        self.assertIn("No space left on device", done.err)
        # Either VM may have had the last free page.
        found = [self.replay(vm, "end cut-short")["status"] for vm in ("alpha", "beta")]
        self.assertIn("cut-short", found)
        self.assertEqual(self.lab.sh("beta", "echo well"), "well\n")


def may_mount():
    """Goes on as root of a namespace, where any user may mount a small file system."""
    if os.getuid():
        words = ("unshare", "--user", "--map-root-user", "--mount", "--", sys.executable, "-B")
        os.execvp(words[0], [*words, *sys.argv])


if __name__ == "__main__":
    may_mount()
    labtest.main()
