# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher's verbs on a running lab, whose RDMA device is siw: the adapter is not used.
# timeout: 600
"""
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time

import labtest


class Basic(labtest.LabCase):
    up_arguments = ("--driver", "siw")

    def test_status__json(self):
        found = json.loads(self.lab.run("status", "--json").out)
        self.assertEqual(found["state"], "up")
        self.assertEqual(list(found["vms"]), ["alpha", "beta"])
        for vm in found["vms"].values():
            self.assertEqual((vm["state"], vm["driver"], vm["device"]), ("on", "siw", "siw0"))
            self.assertGreater(vm["ready_s"], 0)

    def test_status__table(self):
        self.assertRegex(self.lab.run("status").out, r"alpha +on +siw +siw0 +10\.77\.0\.1")

    def test_up__twice(self):
        self.assertIn("is up already", self.lab.run("up", status=1).err)

    def test_segment__vms_reach_each_other_by_name(self):
        self.lab.sh("alpha", "ping -c 1 -W 5 beta")
        self.lab.sh("beta", "ping -c 1 -W 5 alpha")

    def test_exec__status_of_the_command(self):
        self.lab.run("exec", "alpha", "--", "sh", "-c", "exit 42", status=42)

    def test_exec__status_after_a_signal(self):
        self.lab.run("exec", "alpha", "--", "sh", "-c", "kill -9 $$", status=137)

    def test_exec__no_such_command(self):
        done = self.lab.run("exec", "alpha", "--", "no-such-command", status=127)
        self.assertIn("no-such-command", done.err)

    def test_exec__not_executable(self):
        self.lab.run("exec", "alpha", "--", "/etc/hosts", status=126)

    def test_exec__no_such_vm(self):
        done = self.lab.run("exec", "gamma", "--", "true", status=125)
        self.assertIn("has no VM gamma", done.err)

    def test_exec__is_root(self):
        self.assertEqual(self.lab.sh("beta", "id -u; hostname").split(), ["0", "beta"])

    def test_exec__streams_are_apart(self):
        done = self.lab.run("exec", "alpha", "--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual((done.out, done.err), ("out\n", "err\n"))

    def test_exec__input_and_its_end(self):
        done = self.lab.run("exec", "alpha", "--", "wc", "-c", stdin=None, input=b"x" * 300000)
        self.assertEqual(done.out.strip(), "300000")

    def test_exec__output_is_streamed(self):
        started = self.lab.start("alpha", "sh", "-c", "echo first; sleep 30")
        started.expect("first", 10)

    def test_exec__arguments_arrive_unchanged(self):
        words = ["a b", "", "'\"$HOME\\", "\u00e4\n", "*", "-x"]
        done = self.lab.run("exec", "alpha", "--", "printf", "<%s>", *words)
        self.assertEqual(done.out, "".join("<%s>" % word for word in words))

    def test_exec__environment_and_folder(self):
        done = self.lab.run(
            "exec",
            "-e",
            "COLOUR=blue",
            "-w",
            "/usr",
            "alpha",
            "--",
            "sh",
            "-c",
            "echo $COLOUR; pwd",
        )
        self.assertEqual(done.out.split(), ["blue", "/usr"])

    def test_exec__on_a_terminal(self):
        self.assertIn("/dev/pts/", self.lab.run("exec", "-t", "alpha", "--", "tty").out)

    def test_exec__binary_output(self):
        done = self.lab.run("exec", "alpha", "--", "head", "-c", "3000000", "/dev/zero")
        self.assertEqual(done.stdout, bytes(3000000))

    def test_exec__many_at_once(self):
        started = [
            self.lab.start("alpha", "sh", "-c", "sleep 1; echo %d; exit %d" % (i, i))
            for i in range(8)
        ]
        for i, each in enumerate(started):
            self.assertEqual(each.wait(60), i)
            self.assertEqual(each.output, "%d\n" % i)

    def test_exec__more_than_there_are_channels(self):
        started = [self.lab.start("beta", "sh", "-c", "sleep 1; echo done") for i in range(16)]
        for each in started:
            self.assertEqual(each.wait(90), 0)

    def test_exec__client_gone_ends_the_command(self):
        started = self.lab.start("alpha", "sh", "-c", "echo go; exec sleep 4321")
        started.expect("go")
        started.process.kill()
        started.process.wait()
        self.assertEqual(
            self.lab.sh(
                "alpha",
                "for i in 1 2 3 4 5 6 7 8 9 10; do "
                "pgrep -f '^sleep 4321' > /dev/null || { echo gone; exit; }; sleep 0.5; done",
            ),
            "gone\n",
        )

    def test_exec__interrupt_reaches_the_command(self):
        started = self.lab.start(
            "alpha",
            "sh",
            "-c",
            "trap 'echo caught; exit 7' INT; echo go; " "while :; do sleep 0.1; done",
        )
        started.expect("go")
        started.process.send_signal(signal.SIGINT)
        self.assertEqual(started.wait(20), 7)
        self.assertIn("caught", started.output)

    def test_exec__time_limit(self):
        done = self.lab.run("exec", "--timeout", "1", "alpha", "--", "sleep", "30", status=4)
        self.assertIn("took too long", done.err)

    def test_exec__after_broken_sessions(self):
        """Channels can be used again after a client died at any point."""
        for delay in (0, 0.01, 0.05, 0.1, 0.2, 0.3):
            started = self.lab.start("alpha", "cat", "/dev/zero")
            time.sleep(delay)
            started.process.kill()
            started.process.wait()
        for _ in range(14):
            self.assertEqual(self.lab.sh("alpha", "echo fine"), "fine\n")

    def test_copy__large_file_there_and_back(self):
        with tempfile.TemporaryDirectory() as folder:
            data = os.urandom(5000001)
            with open(folder + "/there", "wb") as file:
                file.write(data)
            os.chmod(folder + "/there", 0o750)
            self.lab.run("copy", folder + "/there", "alpha:/tmp/")
            digest, mode = self.lab.sh(
                "alpha", "sha256sum < /tmp/there; stat -c %a /tmp/there"
            ).split("-\n")
            self.assertEqual(digest.strip(), hashlib.sha256(data).hexdigest())
            self.assertEqual(mode.strip(), "750")
            self.lab.run("copy", "alpha:/tmp/there", folder + "/back")
            with open(folder + "/back", "rb") as file:
                self.assertEqual(file.read(), data)

    def test_copy__between_vms(self):
        self.lab.sh("alpha", "echo hello > /tmp/note")
        self.lab.run("copy", "alpha:/tmp/note", "beta:/tmp/letter")
        self.assertEqual(self.lab.sh("beta", "cat /tmp/letter"), "hello\n")

    def test_copy__folder(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(folder + "/tree/deep")
            with open(folder + "/tree/deep/file", "w") as file:
                file.write("content")
            self.lab.run("copy", folder + "/tree", "alpha:/tmp/copied")
            self.assertEqual(self.lab.sh("alpha", "cat /tmp/copied/deep/file"), "content")
            self.lab.run("copy", "alpha:/tmp/copied", folder)
            with open(folder + "/copied/deep/file") as file:
                self.assertEqual(file.read(), "content")

    def test_copy__errors(self):
        for source, target, text in (
            ("/nonexistent", "alpha:/tmp/x", "No such file"),
            ("alpha:/nonexistent", "/tmp/sg-x", "no such file"),
            ("/etc/hosts", "alpha:/nonexistent/x", "nonexistent"),
            ("alpha:/etc/hosts", "/nonexistent/x", "No such file"),
        ):
            self.assertIn(text, self.lab.run("copy", source, target, status=1).err)
        self.assertIn("neither side", self.lab.run("copy", "/etc/hosts", "/tmp/x", status=2).err)
        self.assertIn(
            "has no VM gamma", self.lab.run("copy", "/etc/hosts", "gamma:/tmp/x", status=3).err
        )
        self.assertFalse(os.path.exists("/tmp/sg-x"))

    def test_clock__is_cheap(self):
        """Neither kind of VM asks a timer behind an I/O port for the time."""
        source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        for name in ("alpha", "beta"):
            self.assertIn(self.lab.sh(name, "cat " + source).strip(), ("tsc", "kvm-clock"))

    def test_log__has_the_boot(self):
        self.assertIn("staghorn: alpha is up", self.lab.run("log", "alpha").out)

    def test_console__runs_a_shell(self):
        console = subprocess.Popen(
            self.lab.command("console", "alpha"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            console.stdin.write(b"echo $((6 * 7))-answer\n")
            console.stdin.flush()
            seen, deadline = b"", time.monotonic() + 20
            os.set_blocking(console.stdout.fileno(), False)
            while b"42-answer" not in seen and time.monotonic() < deadline:
                seen += console.stdout.read() or b""
                time.sleep(0.05)
            self.assertIn(b"42-answer", seen)
            busy = self.lab.run("console", "alpha", status=1)
            self.assertIn("is open elsewhere", busy.err)
            console.stdin.write(b"\x1d")
            console.stdin.flush()
            self.assertEqual(console.wait(10), 0)
        finally:
            console.kill()
            console.wait()
            console.stdin.close()
            console.stdout.close()


if __name__ == "__main__":
    labtest.main()
