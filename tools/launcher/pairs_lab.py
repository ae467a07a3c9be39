# SPDX-License-Identifier: GPL-2.0-or-later
"""What judges pairs of crash images: a checker, and two VMs on one Ethernet.

Both are put back before either gets its order, so none talks to what the other one was.  The
verdict is bad as soon as one of them is; it is good when all whose status counts have ended well.
"""
import concurrent.futures
import shlex
import time

from . import check
from .check_lab import NOTHING, CheckLab
from .check_run import BROKEN
from .checker import Verdict, select
from .errors import LabError, UsageError
from .pairs import environment

WARM_S = 60.0
BAD_FIRST = ("panic", "machine-check", "oops", "reboot", "off", "exit", "hang")


class PairChecker(check.Checker):
    """What judges a pair.  vm: the only VM whose script's status counts, or None; peer: what runs
    in the other one then."""

    def __init__(self, script, setup, copies, vm, peer, **settings):
        super().__init__(script, setup, copies, **settings)
        self.vm, self.peer = vm, peer
        check.Checker(peer)  # has no wrong lines

    def counts(self, name):
        return self.vm in (None, name)

    def script_of(self, name):
        return self.script if self.counts(name) else self.peer

    def settings(self):
        return {**super().settings(), "checker-vm": self.vm, "peer-script": self.peer}


def for_two(one, vm, peer):
    """The PairChecker that judges with the script, programs and VMs of a Checker."""
    return PairChecker(
        *(one.script, one.setup, one.copies, vm, peer),
        timeout=one.timeout,
        memory=one.memory,
        cpus=one.cpus,
        vm_arguments=one.vm_arguments,
    )


def restored(found, copies):
    """The PairChecker of its settings(), as check.restored()."""
    return for_two(check.restored(found, copies), found["checker-vm"], found["peer-script"])


def peer_of(args):
    """The script of the other VM that the options have, or None."""
    if args.peer_script is not None and args.peer_script_file is not None:
        raise UsageError("crash check: --peer-script and --peer-script-file exclude each other")
    if args.peer_script_file is not None:
        return check.read_text(args.peer_script_file, "--peer-script-file")
    return args.peer_script


class PairVM:
    """Two CheckerVMs.  counts: whether each one's end is waited for, and its status judged."""

    def __init__(self, vms, names, counts):
        self.vms, self.names, self.counts = vms, names, counts

    def check(self, images, scripts, inputs, timeout):
        """The verdict about a pair of images; two of each."""
        start = time.monotonic()
        for vm, image in zip(self.vms, images):
            vm.put_back(image)
        for vm, script, data in zip(self.vms, scripts, inputs):
            vm.begin(script, data)
        begun = time.monotonic()
        kinds = self._run(begun + timeout)
        done = time.monotonic()
        times = tuple(round(each * 1e3, 3) for each in (begun - start, done - begun))
        return self._joined([vm.verdict(kind, times) for vm, kind in zip(self.vms, kinds)], times)

    def _run(self, limit):
        """How each VM ended; None: it goes on."""
        kinds = [None] * len(self.vms)
        while True:
            left = [k for k, kind in enumerate(kinds) if kind is None]
            ready = select([each for k in left for each in self.vms[k].listened()], limit)
            for k in left:
                mine = {sock for sock, _ in self.vms[k].listened()}
                part = {sock: events for sock, events in ready.items() if sock in mine}
                if part or not ready:
                    kinds[k] = self.vms[k].look(part, limit)
            if any(self._is_bad(k, kind) for k, kind in enumerate(kinds) if kind):
                return kinds
            if all(kind for kind, counts in zip(kinds, self.counts) if counts):
                return kinds

    def _is_bad(self, k, kind):
        if kind == "hang":
            return self.counts[k]
        return kind != "exit" or self._is_wrong(k, self.vms[k].session.status)

    def _is_wrong(self, k, status):
        """A script that cannot run is never right."""
        return status != 0 if self.counts[k] else status in BROKEN

    def _joined(self, found, times):
        """One Verdict of two: the gravest end that counts."""
        bad = []
        for k, each in enumerate(found):
            if each.kind is None or (each.kind == "hang" and not self.counts[k]):
                continue
            if each.kind != "exit" or self._is_wrong(k, each.status):
                bad.append((BAD_FIRST.index(each.kind), k))
        kind, status = "exit", 0
        if bad:
            worst = found[min(bad)[1]]
            kind, status = worst.kind, worst.status
        return Verdict(
            *(kind, status, self._lines(found, "output"), sum(each.written for each in found)),
            *(self._lines(found, "console") if kind != "exit" else b"", times),
        )

    def _lines(self, found, which):
        """What both said, each line behind the VM's name."""
        lines = []
        for name, each in zip(self.names, found):
            text = getattr(each, which)
            lines += [b"%s: %s\n" % (name.encode(), line) for line in text.splitlines()]
        return b"".join(lines)


class PairLab(CheckLab):
    """The lab of a check of pairs; use with `with`.

    checker: a PairChecker.  As a judge it has one worker, for both VMs."""

    def __init__(self, pairs, platform, checker, say):
        self.reads, self.names = False, pairs.names
        memories = {name: side.extents for name, side in zip(pairs.names, pairs.sides)}
        # In this order two VMs have the addresses that `up` gives them.
        memories = {name: memories[name] for name in sorted(memories)}
        self._plan(memories, platform, checker, say)
        self.both = None

    def places(self):
        return list(self.memories)

    def __enter__(self):
        super().__enter__()
        self.vms = ["both"]
        return self

    def start(self, name):
        """The PairVM, ready to check."""
        if self.both:
            return self.both
        scripts = [self.checker.script_of(vm) for vm in self.names]
        try:
            self.both = self._begin([self._warm(k, script) for k, script in enumerate(scripts)])
        except LabError as error:
            self.say("the scripts do not get on with the contents at the start: %s" % error)
            self.restart(name)
            self.both = self._begin([""] * len(scripts))
        return self.both

    def prelude(self, name):
        return "export %s %s\n" % environment(self.names, self.names.index(name))

    def _warm(self, k, script):
        text = NOTHING + self.prelude(self.names[k]) + script
        if self.checker.counts(self.names[k]):
            return text
        # It may be a server.
        limit = max(1, int(self.checker.timeout))
        return "timeout %d sh -c %s || :" % (limit, shlex.quote(text))

    def _begin(self, warm):
        for vm in self.names:
            self._install(vm)
        vms = [self._open(vm, self.checker.script_of(vm)) for vm in self.names]
        limit = self.checker.timeout + WARM_S
        with concurrent.futures.ThreadPoolExecutor(len(vms)) as pool:
            tasks = [pool.submit(vm.warm, text, limit) for vm, text in zip(vms, warm)]
            for task in tasks:
                task.result()
        for vm in vms:
            vm.keep(limit)
        return PairVM(vms, self.names, [self.checker.counts(vm) for vm in self.names])

    def restart(self, _name):
        self.both = None
        for vm in self.names:
            super().restart(vm)
