# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the VM tests: a lab driven through ./staghorn, and TAP.

Each test program has its own state folder, so it never touches a user's labs, and leftovers are
noticed.  The names of cases are those of their methods.  An assertion names the row of the
checklist that it proves: with self.shows("RDM-54").
"""
import atexit
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import debugkernel
import drivercheck
import usage

TOP = Path(__file__).resolve().parents[3]
STAGHORN = str(TOP / "staghorn")
sys.path.insert(0, str(TOP / "tools"))

from launcher import agent, options, transfer  # noqa: E402
from launcher.errors import EXEC_FAILED, TIMEOUT, LabError  # noqa: E402
from launcher.state import LabFolder  # noqa: E402

DEBUG = os.environ.get("STAGHORN_KERNEL") == "debug"
SLOW = options.DEBUG_PATIENCE if DEBUG else 1  # how much longer everything takes
UP_LIMIT = 280 * SLOW  # seconds; other work may share the machine
BUSY = 2 * SLOW  # factor of the time limits that cases give, for the same reason

_state = None
_labs = []


def state_folder():
    """The folder of this program's labs.  They are taken down, and it is removed, at the end."""
    global _state
    if _state is None:
        _state = tempfile.mkdtemp(prefix="sg-vm-")
        os.environ["STAGHORN_STATE"] = _state
        os.environ.setdefault("STAGHORN_BOOT_SNAPSHOT", "1")
        os.environ.setdefault(
            "STAGHORN_KEEP_LOGS",
            os.path.join(
                os.environ.get("SG_BUILD", str(TOP / "build")),
                "check",
                "vm-logs",
                os.path.basename(sys.argv[0]).removesuffix(".py"),
            ),
        )
        if os.environ.get("SG_BUILD"):
            os.environ.setdefault("STAGHORN_BUILD", os.environ["SG_BUILD"])
        atexit.register(_clean)
        usage.adopt()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit(1))
    return _state


@contextlib.contextmanager
def booting():
    """VMs that come up inside boot from the reset vector, not from a boot snapshot."""
    state_folder()
    before = os.environ["STAGHORN_BOOT_SNAPSHOT"]
    os.environ["STAGHORN_BOOT_SNAPSHOT"] = "0"
    try:
        yield
    finally:
        os.environ["STAGHORN_BOOT_SNAPSHOT"] = before


def _examine_rest():
    """Examines the kernels of labs that no case took down; returns whether they have no report."""
    found = [text for lab in _labs for text in debugkernel.examine(lab)] if DEBUG else []
    for text in found:
        print("# " + text.replace("\n", "\n# "), flush=True)
    return not found


def _clean():
    for lab in _labs:
        lab.kill_started()
    for lab in os.listdir(_state + "/labs") if os.path.isdir(_state + "/labs") else []:
        subprocess.run([STAGHORN, "--lab", lab, "down"], capture_output=True, check=False)
    shutil.rmtree(_state, ignore_errors=True)
    print("# processor time: %.1f s" % usage.processor_seconds(), flush=True)


def processes_with(text):
    """Ids of processes (not zombies) whose working folder or command line contains the text."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open("/proc/%s/cmdline" % entry, "rb") as file:
                line = file.read().decode(errors="replace")
            if line and (text in line or text in os.readlink("/proc/%s/cwd" % entry)):
                found.append(int(entry))
        except OSError:
            continue
    return found


class Started:
    """A command that runs in a VM, in the background."""

    def __init__(self, command):
        self.output = ""
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.output += line

    def expect(self, pattern, timeout=30):
        """Waits until the output matches the pattern."""
        deadline = time.monotonic() + timeout * BUSY
        while not re.search(pattern, self.output):
            if self.process.poll() is not None:
                self.thread.join(2)
                if re.search(pattern, self.output):
                    return
                raise AssertionError("ended without %r:\n%s" % (pattern, self.output))
            if time.monotonic() > deadline:
                raise AssertionError("no %r in %d s:\n%s" % (pattern, timeout * BUSY, self.output))
            time.sleep(0.02)

    def wait(self, timeout=60):
        """Waits for its end and returns its exit status."""
        try:
            status = self.process.wait(timeout * BUSY)
        except subprocess.TimeoutExpired:
            raise AssertionError("still runs after %d s:\n%s" % (timeout * BUSY, self.output))
        self.thread.join(2)
        return status

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Lab:
    """One lab, used through the command line."""

    def __init__(self, name, driver_check=None, mistakes=()):
        self.name = name
        self.state = state_folder()
        self.started = []
        self.driver_check, self.mistakes = drivercheck.mode(driver_check), mistakes
        self.reports = drivercheck.Reports(os.path.join(self.state, "labs", name))
        _labs.append(self)

    def command(self, *arguments):
        return [STAGHORN, "--lab", self.name, *map(str, arguments)]

    def run(self, *arguments, status=0, timeout=300, **keywords):
        """Runs ./staghorn; checks the exit status unless it is None."""
        keywords.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout * BUSY,
            check=False,
            **keywords
        )
        done.out = done.stdout.decode(errors="replace")
        done.err = done.stderr.decode(errors="replace")
        if status is not None and done.returncode != status:
            raise AssertionError(
                "staghorn %s: status %d instead of %d\n%s%s"
                % (" ".join(map(str, arguments)), done.returncode, status, done.out, done.err)
            )
        return done

    def up(self, *arguments):
        words = drivercheck.words(self.driver_check, arguments)
        return self.run("up", "--timeout", UP_LIMIT, *words, *arguments)

    def expect_good_driver(self, mistakes=()):
        """Fails if the driver checker has reported something since the last call."""
        found = self.reports.new((*self.mistakes, *mistakes))
        if found:
            raise AssertionError("the driver checker reports:\n" + "\n".join(found))

    def down(self):
        """Ends the lab; fails if the debug kernel or the driver checker has found something."""
        self.kill_started()
        found = debugkernel.examine(self) if DEBUG else []
        found += self.reports.new(self.mistakes)
        done = self.run("down")
        if found:
            raise AssertionError("\n".join(found))
        return done

    def sh(self, vm, script, status=0, timeout=120):
        """Runs a shell script in the VM and returns its standard output.

        As `./staghorn exec` does, but in this process, since tests do so hundreds of times."""
        try:
            folder = LabFolder(self.name)
            folder.running(vm)
            words = ["sh", "-c", script]
            found, out, error = agent.capture(folder, vm, words, timeout=timeout * BUSY)
        except LabError as failure:
            found = failure.status if failure.status == TIMEOUT else EXEC_FAILED
            out, error = "", failure.text()
        if status is not None and found != status:
            raise AssertionError(
                "%s: %s: status %d instead of %d\n%s%s" % (vm, script, found, status, out, error)
            )
        return out

    def linux(self, vm):
        """Version and patch level of the VM's kernel, (6, 12) for 6.12.107."""
        version, level = self.sh(vm, "uname -r").split(".")[:2]
        return int(version), int(level)

    def install(self, vm, files):
        """Copies programs, {path in the VM: file here}, unless the VM has them: a power cut takes
        them away."""
        found = self.sh(vm, "stat -L -c '%%s %%n' %s 2>/dev/null || :" % shlex.join(files))
        there = {path: int(size) for size, path in map(str.split, found.splitlines())}
        for path, file in files.items():
            if there.get(path) != os.path.getsize(file):
                transfer.put(LabFolder(self.name), file, vm, path)

    def start(self, vm, *command):
        """Starts a command in the background; its output is line-buffered, although into a pipe."""
        words = ("exec", "-n", vm, "--", "stdbuf", "-oL", *command)
        found = Started(self.command(*words))
        self.started.append(found)
        return found

    def kill_started(self):
        for each in self.started:
            each.stop()
        self.started.clear()


class Claims:
    """Assertions that name rows of the checklist; a mixin for unittest.TestCase."""

    claimed = None  # ids whose assertions are running
    checks = 0  # assertions made

    def __getattribute__(self, name):
        if name.startswith("assert"):
            self.checks += 1
        return super().__getattribute__(name)

    @contextlib.contextmanager
    def shows(self, ids):
        """The assertions within this context show these rows."""
        assert not self.claimed, "shows(%r) within shows(%r)" % (ids, self.claimed)
        self.claimed, before = ids, self.checks
        yield
        if self.checks == before:
            raise AssertionError("shows(%r) without an assertion" % ids)
        self.shown = [*getattr(self, "shown", []), *ids.split()]
        self.claimed = None


def long(what):
    """A decorator: the case, or the class, runs only with suite full (make check-full)."""
    what.long = True
    return what


def breaks(*rules):
    """A decorator: the case breaks these rules of the driver checker on purpose."""

    def mark(method):
        method.mistakes = rules
        return method

    return mark


class LabCase(Claims, unittest.TestCase):
    """Cases that share one lab, brought up with `up_arguments`."""

    up_arguments = ()
    driver_check = None  # mode of the driver checker, unless SG_CHECK says otherwise
    mistakes = ()  # its rules that the cases break on purpose
    lab = None

    @classmethod
    def setUpClass(cls):
        # One name for all: MAC addresses derive from it, and boot snapshots contain them.  For the
        # same reason programs have VMs of few shapes.
        cls.lab = Lab("lab", cls.driver_check, cls.mistakes)
        cls.lab.up(*cls.up_arguments)

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def tearDown(self):
        self.lab.kill_started()
        self.lab.expect_good_driver(getattr(getattr(self, self._testMethodName), "mistakes", ()))


class _TapResult(unittest.TestResult):
    def __init__(self, total):
        super().__init__()
        self.number = 0
        self.sub_failed = None
        self.began = time.monotonic()
        print("1..%d" % total, flush=True)

    def _line(self, word, test, suffix=""):
        self.number += 1
        name = test.id().split(".", 1)[-1] if hasattr(test, "id") else str(test)
        text = (test.shortDescription() or "") if hasattr(test, "shortDescription") else ""
        if word == "ok" and not suffix and getattr(test, "shown", None):
            print("# shows: " + " ".join(dict.fromkeys(test.shown)))
        elif word != "ok" and getattr(test, "claimed", None):
            print("# does not show: " + test.claimed)
        before, self.began = self.began, time.monotonic()
        print("# after %.1f s:" % (self.began - before))
        print(
            "%s %d - %s%s%s" % (word, self.number, name, ": " + text if text else "", suffix),
            flush=True,
        )

    def _trouble(self, test, error):
        for line in self._exc_info_to_string(error, test).splitlines():
            print("# " + line[:300])
        if isinstance(test, unittest.TestCase):
            self._line("not ok", test)
            self.sub_failed = None
        else:
            # If a class cannot be set up its cases are missing, which is a failure too.
            print("# %s" % test.description, flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            print("# " + subtest.id())
            for line in self._exc_info_to_string(err, test).splitlines():
                print("# " + line[:300])
            self.sub_failed = test

    def startTest(self, test):
        super().startTest(test)
        self.sub_failed = None

    def stopTest(self, test):
        super().stopTest(test)
        if self.sub_failed is test:
            self._line("not ok", test)
        self.sub_failed = None

    def addSuccess(self, test):
        super().addSuccess(test)
        self._line("ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self._trouble(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._trouble(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line("ok", test, " # SKIP " + reason)


def is_long(case):
    """Whether it or its class is marked by long()."""
    return getattr(getattr(case, case._testMethodName), "long", False) or getattr(
        case, "long", False
    )


def is_short_run():
    """Whether long cases are left out, as in make check."""
    return os.environ.get("SG_CASES") == "short"


def chosen(cases, words):
    """Those whose name has one of the words; without words all, or the short ones if
    tools/build/check wants only these (SG_CASES)."""
    if words:
        return [case for case in cases if any(part in case.id() for part in words)]
    if not is_short_run():
        return cases
    short = [case for case in cases if not is_long(case)]
    if len(short) < len(cases):
        print("# left out: %d long cases" % (len(cases) - len(short)))
    return short


def main():
    """Runs the cases of the calling program; arguments select them by parts of names.

    With -l it only lists them."""
    found = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    cases = [case for group in found for case in group]
    if sys.argv[1:] == ["-l"]:
        for case in cases:
            print("%-5s %s" % ("long" if is_long(case) else "short", case.id().split(".", 1)[-1]))
        return
    state_folder()
    cases = chosen(cases, sys.argv[1:])
    result = _TapResult(len(cases))
    unittest.TestSuite(cases).run(result)
    clean = _examine_rest()
    sys.exit(0 if result.wasSuccessful() and clean else 1)
