# SPDX-License-Identifier: GPL-2.0-or-later
"""Debugging of a VM's QEMU: device log, gdbstub, extra arguments.

The device log has guest errors and trace events: always the adapter's events about peers' errors
and about queue pairs that fail, and others if the user asks for them.  QEMU writes it to keeper.py,
which bounds it.  The console's log goes the same way.
"""
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

from . import paths, proc
from .errors import UsageError

LOG, CONSOLE = "device.log", "console.log"
# Limit of each file in octets; the file before it may be as long.
LOG_LIMIT, CONSOLE_LIMIT = 4 << 20, 32 << 20
ALWAYS = ("staghorn_peer", "staghorn_failure", "staghorn_check")
# This event repeats the adapter's guest errors, which are logged in any case.
TWICE = "staghorn_guest"
SOCKET_PATH_MAX = 107  # what gdb can connect to
OURS = ("-D", "-daemonize", "-gdb", "-name", "-s")


def _target(option, item, names):
    """'[VM:]REST' to (names of VMs, REST)."""
    name, colon, rest = item.partition(":")
    if not colon:
        return names, item
    if name not in names:
        raise UsageError("%s: there is no VM %s; there are %s" % (option, name, ", ".join(names)))
    return [name], rest


def _events():
    """Names of all trace events of QEMU."""
    words = [paths.qemu(), "-trace", "help"]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def traces(items, names):
    """['alpha:staghorn_*', 'pci_cfg_*'] to {'alpha': [...], ...}."""
    found = {name: [] for name in names}
    events = _events() if items else []
    for item in items:
        vms, pattern = _target("--trace", item, names)
        if not re.match(r"[A-Za-z0-9_*?]+\Z", pattern):
            raise UsageError("--trace %s is not [VM:]PATTERN, such as staghorn_*" % item)
        form = re.compile(pattern.replace("*", ".*").replace("?", ".") + r"\Z")
        if not any(map(form.match, events)):
            raise UsageError(
                "--trace %s: QEMU has no such trace event" % item,
                "%s -trace help lists them; the adapter's are staghorn_*" % paths.qemu(),
            )
        for name in vms:
            found[name].append(pattern)
    return found


def _port(item, text):
    if not re.match(r"[0-9]{1,5}\Z", text) or not 1 <= int(text) <= 65535:
        raise UsageError("--gdb %s: %s is not a port, 1 to 65535" % (item, text or "nothing"))
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(text)))
        except OSError as error:
            raise UsageError("--gdb %s: the port cannot be used: %s" % (item, error.strerror))
    return int(text)


def gdbstubs(items, names, place):
    """['alpha', 'beta=1234'] to {'alpha': what gdb connects to, ...}; place: the lab's folder."""
    found = dict.fromkeys(names)
    for item in items:
        name, equals, port = item.partition("=")
        if name not in found:
            there = ", ".join(names)
            raise UsageError("--gdb: there is no VM %s; there are %s" % (name or "''", there))
        if found[name]:
            raise UsageError("--gdb names %s twice" % name)
        where = "127.0.0.1:%d" % _port(item, port) if equals else str(place / name / "gdb")
        if len(os.fsencode(where)) > SOCKET_PATH_MAX:
            raise UsageError(
                "--gdb %s: the path of its socket is too long for gdb: %s" % (item, where),
                "Give it a port:  --gdb %s=1234" % name,
            )
        if where in found.values():
            raise UsageError("--gdb: two VMs cannot have port %s" % port)
        found[name] = where
    return found


def qemu_words(items, names):
    """['-device edu', 'alpha:-S'] to {'alpha': ['-device', 'edu', '-S'], ...}."""
    found = {name: [] for name in names}
    for item in items:
        vms, text = (names, item) if item.startswith("-") else _target("--qemu-arg", item, names)
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError("--qemu-arg %s: %s" % (item, str(error).lower()))
        if not words or not re.match(r"--?[A-Za-z]", words[0]):
            raise UsageError("--qemu-arg %s is not [VM:]-OPTION [VALUE]" % item)
        for word in words:
            if re.sub("^--", "-", word) in OURS:
                raise UsageError("--qemu-arg %s: %s is the launcher's to choose" % (item, word))
        for name in vms:
            found[name] += words
    return found


def _masks(words):
    """The words without -d, and one mask of all -d, because QEMU uses only the last -d."""
    rest, masks = [], ["guest_errors"]
    words = iter(words)
    for word in words:
        if word in ("-d", "--d"):
            masks.append(next(words, ""))
        else:
            rest.append(word)
    return rest, ",".join(filter(None, masks))


def arguments(vm, name):
    """Words of the VM's command line; paths are relative to the lab's folder."""
    rest, masks = _masks(vm["qemu_args"])
    yield from ("-d", masks)
    yield from ("-msg", "timestamp=on")  # of trace events: keeper.py takes it off again
    for pattern in (*ALWAYS, *vm["trace"], "-" + TWICE):
        yield from ("-trace", "enable=" + pattern)
    if vm["gdb"]:
        tcp = "/" not in vm["gdb"]
        yield "-gdb"
        yield "tcp:" + vm["gdb"] if tcp else "unix:%s/gdb,server=on,wait=off" % name
    yield from rest


def spawn(folder, name, command):
    """Starts the VM's QEMU and the keeper of its logs, and records the keeper in the VM's state.

    command(PATH) are QEMU's words, with the path to which it writes the console's log."""
    vm, place = folder.data["vms"][name], folder.path / name
    if not proc.wait_end(vm.get("keeper"), 1.0):  # of the previous QEMU: it has read everything
        proc.kill(vm["keeper"])
    said = place / "qemu.log"
    readers, writers = zip(*(os.pipe() for _ in range(2)))
    device, console = ("/dev/fd/%d" % writer for writer in writers)
    keeper = [sys.executable, "-IBS", Path(__file__).with_name("keeper.py")]
    keeper += [readers[0], LOG, LOG_LIMIT, "stamped", readers[1], CONSOLE, CONSOLE_LIMIT, "plain"]
    try:
        vm["keeper"], _ = proc.spawn(keeper, place, said, inherited=readers)
        words = [*command(console), "-D", device]
        return proc.spawn(words, folder.path, said, inherited=writers)
    finally:
        for pipe in (*readers, *writers):
            os.close(pipe)


def log_files(folder, name, log=LOG):
    """The log's files, the older part first."""
    return [folder.path / name / (log + ".1"), folder.path / name / log]


def gdb_lines(vms):
    """Text: how to attach gdb to each VM that has a gdbstub; vms as in `status`."""
    stubs = {name: vm["gdb"] for name, vm in vms.items() if vm["gdb"]}
    return ["gdb of %s: target remote %s" % stub for stub in stubs.items()]
