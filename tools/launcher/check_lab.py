# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab of a check: VMs that judge crash images, with the NVDIMMs that the images belong to.

The lab is called check-HOST-PID, with a hash of the host's name, because hosts may share the folder
of labs.  It is removed at the end of the command; what a killed command left is removed by the next
one on the same host.
"""
import argparse
import contextlib
import json
import os
import re
import shlex
import threading
import zlib

from . import accel, agent, domain, lab, options, proc, transfer, up_options
from .checker import CheckerVM
from .errors import LabError, UsageError
from .qmp import Monitor
from .state import LabFolder, all_names

SETUP_S = 300.0
PROMISES = "/run/crash/promises"
# Program counters of recorded recoveries have names without address space randomisation.
# WARN() has the level of warnings, which the kernel's command line keeps off the console.
PREPARE = "mkdir -p /run/crash; : > %s; echo 0 > /proc/sys/kernel/randomize_va_space\n" % PROMISES
PREPARE += "echo 5 > /proc/sys/kernel/printk\n"
# What a checker finds in its environment; "" for the content at the start.
NOTHING = "export CRASH_BEHIND= CRASH_PLATFORM= CRASH_IMAGE=; "


def name_on(host):
    """How the names of a host's labs begin; only that host knows whether their owners live."""
    return "check-%08x-" % zlib.crc32(host.encode())


def clear_dead():
    """Removes the labs of this host's checks that were killed."""
    mine = re.compile(re.escape(name_on(os.uname().nodename)) + r"[0-9]+\Z")
    for name in all_names():
        if mine.match(name):
            data = LabFolder(name).data
            if data and data["check"] and not proc.alive(data["owner"]):
                lab.down(name, lambda text: None)


def _words(memories, platform, checker):
    """The options of `up` for the lab."""
    words = ["--vms", ",".join(memories), "--driver", "none"]
    words += ["--cpus", str(checker.cpus), "--mem", checker.memory]
    for name, extents in memories.items():
        for extent in extents:
            # A check does not depend on what the checker's own machine would lose.
            what = (name, extent.size >> 20, platform.split(",")[0])
            words += ["--pmem", "%s:%dM,domain=%s" % what]
    try:
        return words + [word for text in checker.vm_arguments for word in shlex.split(text)]
    except ValueError as error:
        raise UsageError("--vm-arg: %s" % error)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError("--vm-arg, --memory, --cpus: " + message)


def _arguments(memories, platform, checker):
    words = _words(memories, platform, checker)
    parser = _Parser(add_help=False)
    up_options.add(parser)
    args = parser.parse_args(words)
    for kept, value in (("vms", ",".join(memories)), ("driver", "none")):
        if getattr(args, kept) != value:
            raise UsageError("--vm-arg: --%s is the checker's to choose" % kept)
    if len(args.pmem) != sum(map(len, memories.values())):
        raise UsageError("--vm-arg: --pmem is the images' to choose")
    return args


class CheckLab:
    """VMs for checks; use with `with`.

    checker: script, setup, copies, memory, cpus, vm_arguments (check.Checker)."""

    def __init__(self, extents, platform, checker, jobs, say, reads=False):
        if jobs > options.MAX_VMS:
            raise UsageError("--jobs %d: more than %d VMs" % (jobs, options.MAX_VMS))
        self.reads = reads  # what checks read is noted
        memories = {"judge%d" % (i + 1): extents for i in range(jobs)}
        self._plan(memories, platform, checker, say)

    def _plan(self, memories, platform, checker, say):
        """What the lab will be.  memories: {VM: its Extents}."""
        self.memories, self.checker, self.say = memories, checker, say
        self.name = name_on(os.uname().nodename) + str(os.getpid())
        self.vms = list(memories)
        for extent in (each for extents in memories.values() for each in extents):
            if not extent.file.is_file():
                raise LabError(
                    "there is no %s, the content at the start" % extent.file,
                    "Explore the recording again, with this version of Staghorn",
                )
        self.args = _arguments(memories, platform, checker)
        self.open, self.changing = {}, threading.Lock()

    def __enter__(self):
        clear_dead()
        try:
            lab.up(self.name, self.args, accel.choose, self.say, self._change)
            for name in self.places():
                self._require_places(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in list(self.open):
            self._close(name)
        with contextlib.suppress(LabError):
            lab.down(self.name, lambda text: None)

    def _change(self, plan):
        plan["check"] = True
        for name, extents in self.memories.items():
            content = [str(each.file.absolute()) for each in extents]
            plan["vms"][name]["pmem"]["content"] = content

    def places(self):
        """VMs of which each other one has the same NVDIMMs as one of them."""
        return self.vms[:1]

    def _require_places(self, name):
        """The NVDIMMs have to be where the images expect them."""
        folder = LabFolder(self.name)
        with Monitor(folder, name) as monitor:
            state = json.loads(monitor.run("qom-get", path=domain.OBJECT, property="state"))
        places = sorted((each["base"], each["size"]) for each in state["nvdimms"].values())
        wanted = sorted((each.address, each.size) for each in self.memories[name])
        if places != wanted:
            raise LabError(
                "the checker's NVDIMMs are at %s, but the recorded VM's were at %s"
                % tuple(
                    ", ".join("%#x (%d MiB)" % (at, size >> 20) for at, size in each)
                    for each in (places, wanted)
                ),
                "Where they are depends on the memory: give the recorded VM's with --memory",
            )

    def start(self, name):
        """Returns the CheckerVM of that name, ready to check; called by the thread that uses it.
        A VM that was started before is as it was then: each check puts it back."""
        if name in self.open:
            return self.open[name]
        self._install(name)
        try:
            return self._ready(name, NOTHING + self.checker.script)
        except LabError as error:
            self.say(
                "%s: the script does not get on with the content at the start: %s" % (name, error)
            )
        # The VM may have panicked.
        self.restart(name)
        self._install(name)
        return self._ready(name, "")

    def _open(self, name, script):
        vm = CheckerVM(LabFolder(self.name), name, script)
        vm.__enter__()
        self.open[name] = vm
        return vm

    def _ready(self, name, warm):
        vm = self._open(name, self.checker.script)
        try:
            vm.prepare(warm, self.checker.timeout + 60.0, self.reads)
        except BaseException:
            self._close(name)
            raise
        return vm

    def _close(self, name):
        vm = self.open.pop(name, None)
        if vm:
            with contextlib.suppress(OSError):
                vm.__exit__()

    def restart(self, name):
        """A VM that cannot be used any more begins anew, with its media."""
        self._close(name)
        with self.changing:  # one change of a lab at a time
            lab.restart(self.name, name)

    def prelude(self, _name):
        """What goes before the setup of a VM."""
        return ""

    def _install(self, name):
        folder = LabFolder(self.name)
        for source, path in self.checker.copies:
            transfer.put(folder, str(source), name, path)
        setup = PREPARE + self.prelude(name) + self.checker.setup
        status, out, error = agent.capture(folder, name, ["sh", "-c", setup], timeout=SETUP_S)
        if status:
            raise LabError("the setup ended with status %d: %s" % (status, (out + error).strip()))
