#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of device log and console log without a VM: what is kept, how it is shown, and QEMU's
options for them."""
import contextlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import console, debugging, keeper, lab, proc  # noqa: E402

STAMP = re.compile(r"(?m)^\d\d:\d\d:\d\d\.\d\d\d ")
CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def start(folder, limit, *others):
    """A keeper process with a pipe for the device log; others: arguments for more logs."""
    words = [sys.executable, "-IBS", keeper.__file__, "0", "device.log", str(limit), "stamped"]
    inherited = [int(word) for word in others[::4]]
    return subprocess.Popen(
        [*words, *others], cwd=folder, stdin=subprocess.PIPE, bufsize=0, pass_fds=inherited
    )


def finish(process):
    """Ends its input and returns its exit status."""
    process.stdin.close()
    return process.wait(20)


def text(folder, name="device.log"):
    return (folder / name).read_text()


@case
def lines__stamped(folder):
    """each line has the time before it, whatever pieces it comes in"""
    process = start(folder, 10000)
    for piece in (b"one\ntw", b"o", b"\n", b"three\n\nfive\n"):
        process.stdin.write(piece)
        time.sleep(0.1)
    assert finish(process) == 0
    lines = text(folder).splitlines()
    assert all(map(STAMP.match, lines)), lines
    plain = [STAMP.sub("", line) for line in lines]
    assert plain[0].startswith("QEMU starts, 2"), plain
    assert plain[1:] == ["one", "two", "three", "", "five"], plain


@case
def size__bounded(folder):
    """two files of the limit stay, and they have the newest lines, each once"""
    limit, lines = 100000, 20000
    process = start(folder, limit)
    for number in range(0, lines, 10):
        process.stdin.write(b"".join(b"line %d\n" % (number + i) for i in range(10)))
    assert finish(process) == 0
    assert sorted(p.name for p in folder.iterdir()) == ["device.log", "device.log.1"]
    for name in ("device.log", "device.log.1"):
        assert (folder / name).stat().st_size < limit + 1000, name
    found = re.findall(r" line (\d+)", text(folder, "device.log.1") + text(folder))
    assert list(map(int, found)) == list(range(lines - len(found), lines)), found[:3]
    assert len(found) >= limit // 40


@case
def one_endless_line__bounded(folder):
    """a line without an end is bounded, too"""
    limit = 100000
    process = start(folder, limit)
    for _ in range(100):
        process.stdin.write(b"x" * 10000)
    assert finish(process) == 0
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert total < 4 * limit + 2 * keeper.PIECE, total


@case
def console__bounded(folder):
    """the console's log has the newest lines as they came, and is bounded as well"""
    limit, lines = 100000, 20000
    reader, writer = os.pipe()
    process = start(folder, limit, str(reader), "console.log", str(limit), "plain")
    os.close(reader)
    with open(writer, "wb", buffering=0) as console_end:
        process.stdin.write(b"of a device\n")
        for number in range(0, lines, 10):
            # Pieces end anywhere, as on a serial line.
            data = b"".join(b"%09d\r\n" % (number + i) for i in range(10))
            console_end.write(data[:55])
            console_end.write(data[55:])
        process.stdin.close()
    assert process.wait(20) == 0
    found = text(folder, "console.log.1") + text(folder, "console.log")
    for name in ("console.log", "console.log.1"):
        assert (folder / name).stat().st_size < limit + 1000, name
    numbers = [int(line) for line in found.split()]
    assert numbers == list(range(lines - len(numbers), lines)), numbers[:3]
    assert len(numbers) > limit // 11
    assert "of a device" in text(folder) and "of a device" not in found


@case
def folder_gone__read_on(folder):
    """a folder that is gone does not make QEMU wait"""
    place = folder / "vm"
    place.mkdir()
    process = start(place, 5000)
    process.stdin.write(b"first\n")
    shutil.rmtree(place)
    for _ in range(100):
        process.stdin.write(b"more than a pipe holds\n" * 100)
    assert finish(process) == 0


EVENT = b"7@1732612345.012345:staghorn_%s r0: line %d\n"


def tapped(folder, names=b""):
    """A connection to a keeper's tap, after its answer."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(20)
    for _ in range(200):
        if (folder / "tap").exists():
            break
        time.sleep(0.02)
    client.connect(str(folder / "tap"))
    with contextlib.suppress(BrokenPipeError):  # refused already
        client.sendall(names + b"\n")
    return client, client.makefile("rb")


@case
def event__time_taken_off(folder):
    """the log has the keeper's time before an event, not QEMU's as well, also in pieces"""
    process = start(folder, 10000)
    line = EVENT % (b"state", 1)
    for piece in (line[:3], line[3:20], line[20:]):
        process.stdin.write(piece)
        time.sleep(0.1)
    assert finish(process) == 0
    last = text(folder).splitlines()[-1]
    assert STAMP.sub("", last) == "staghorn_state r0: line 1", last


@case
def tap__lines_as_they_come(folder):
    """a client of the tap gets whole lines; events that it names are not kept in the file"""
    process = start(folder, 100000)
    client, lines = tapped(folder, b"staghorn_flow staghorn_interrupt")
    assert lines.readline() == keeper.READY
    sent = [EVENT % (b"flow", 1), EVENT % (b"state", 2), b"of another device\n"]
    process.stdin.write(b"".join(sent)[:-3])
    time.sleep(0.1)
    process.stdin.write(b"".join(sent)[-3:])
    assert [lines.readline() for _ in sent] == sent
    client.shutdown(socket.SHUT_WR)
    assert lines.readline() == b""
    process.stdin.write(EVENT % (b"flow", 3))  # it was killed: nobody has switched them off
    assert finish(process) == 0
    kept = text(folder)
    assert "line 2" in kept and "another device" in kept, kept
    assert "line 1" not in kept and "line 3" not in kept, kept
    assert not (folder / "tap").exists()


@case
def tap__one_at_a_time(folder):
    """a second client is refused; when the first has left, another is served"""
    process = start(folder, 10000)
    first, lines = tapped(folder)
    assert lines.readline() == keeper.READY
    _, others = tapped(folder)
    assert others.readline() == keeper.BUSY
    lines.close()
    first.close()
    until = time.monotonic() + 20
    while tapped(folder)[1].readline() != keeper.READY:
        assert time.monotonic() < until, "the client that has left is still served"
    assert finish(process) == 0


@case
def tap__name_when_it_listens(folder):
    """who finds the tap's name can connect: it appears when the keeper listens, not before"""
    tried, before = [], os.getcwd()

    def rename(old, new):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(old)
        tried.append((old, new, os.path.exists(new)))

    os.chdir(folder)
    try:
        with mock.patch("os.rename", rename):
            keeper.Tap()
    finally:
        os.chdir(before)
    assert tried == [(keeper.TAP_NEW, keeper.TAP, False)], tried


@case
def tap__does_not_read(folder):
    """a client that does not read makes nobody wait, and is told how many lines it misses"""
    process = start(folder, 1000000)
    client, lines = tapped(folder, b"staghorn_flow")
    assert lines.readline() == keeper.READY
    line, count = EVENT % (b"flow", 5), 200000
    process.stdin.write(line * count)
    time.sleep(0.3)
    client.shutdown(socket.SHUT_WR)
    found = lines.readlines()
    assert finish(process) == 0
    told = [int(each.split()[1]) for each in found if each.startswith(b"lost ")]
    whole = found.count(line)
    assert told and whole + sum(told) == count, (whole, told)
    assert whole + len(told) == len(found)
    assert whole * len(line) < 2 * keeper.WAITING_MAX


@case
def tap__qemu_ends(folder):
    """the last lines reach the client although QEMU has ended"""
    process = start(folder, 10000)
    _, lines = tapped(folder)
    assert lines.readline() == keeper.READY
    process.stdin.write((EVENT % (b"state", 1)) * 1000)
    assert finish(process) == 0
    assert len(lines.readlines()) == 1000


class Folder:
    """The parts of a lab's folder that `log` needs: one VM, whose QEMU is process 1."""

    def __init__(self, path):
        self.path = path
        self.state = {"process": proc.identify(1)}
        (path / "alpha").mkdir()

    def vm(self, _name):
        return self.state


def shown(folder, follow=False):
    """The output of `log --device`."""
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())) as out:
        console.show_log(folder, "alpha", follow, device=True)
        return out.buffer.getvalue().decode()


@case
def log__both_files(folder):
    """log shows the older file before the newer one"""
    lab = Folder(folder)
    (folder / "alpha" / "device.log").write_text("new\n")
    assert shown(lab) == "new\n"
    (folder / "alpha" / "device.log.1").write_text("old\n")
    assert shown(lab) == "old\nnew\n"


@case
def follow__over_the_turn(folder):
    """log --follow goes on in the next file, and ends with the VM"""
    lab = Folder(folder)
    place = folder / "alpha"
    (place / "device.log").write_text("1\n")

    def go_on():
        time.sleep(0.4)
        with open(place / "device.log", "a") as file:
            file.write("2\n")
        (place / "device.log").rename(place / "device.log.1")
        (place / "device.log").write_text("3\n")
        time.sleep(0.4)
        lab.state["process"] = None

    thread = threading.Thread(target=go_on)
    thread.start()
    found = shown(lab, follow=True)
    thread.join()
    assert found == "1\n2\n3\n", found


def words(**state):
    vm = dict({"trace": [], "gdb": None, "qemu_args": []}, **state)
    return list(debugging.arguments(vm, "alpha"))


@case
def qemu_words__without_times(folder):
    """the reason why QEMU did not start is shown without the times that it writes"""
    lab_folder = Folder(folder)
    said = "2026-11-26T14:00:00.123456Z qemu-system-x86_64: -mtu: no\nof the loader\n"
    (folder / "alpha" / "qemu.log").write_text(said)
    found = lab._qemu_words(lab_folder, "alpha")
    assert found == "qemu-system-x86_64: -mtu: no / of the loader", found


@case
def words__by_default(_folder):
    """guest errors, peers' errors and failures are logged without being asked for"""
    found = words()
    assert found[:4] == ["-d", "guest_errors", "-msg", "timestamp=on"]
    assert {"enable=staghorn_peer", "enable=staghorn_failure"} < set(found), found
    assert "-gdb" not in found


@case
def words__traces(_folder):
    """no pattern makes a guest error appear twice"""
    found = words(trace=["staghorn_*", "pci_*"])
    at = [found.index("enable=" + x) for x in ("staghorn_*", "pci_*", "-staghorn_guest")]
    assert at == sorted(at), found


@case
def words__gdb(_folder):
    """a gdbstub is at a socket of the VM's folder, or at a port of this machine only"""
    assert "unix:alpha/gdb,server=on,wait=off" in words(gdb="/somewhere/alpha/gdb")
    assert "tcp:127.0.0.1:1234" in words(gdb="127.0.0.1:1234")


@case
def words__masks_are_joined(_folder):
    """the user's -d masks join guest_errors in one -d; other arguments stay as they were"""
    found = words(qemu_args=["-S", "-d", "int", "-device", "edu", "-d", "unimp"])
    assert found[:2] == ["-d", "guest_errors,int,unimp"] and found.count("-d") == 1
    assert found[-3:] == ["-S", "-device", "edu"]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
