# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps the newest part of a VM's logs: keeper.py {INPUT FILE LIMIT stamped|plain}...

One such process runs beside each VM's QEMU and ends with it.  From pipes it reads QEMU's log of
devices and the output of the VM's console; INPUT is a file descriptor.  A guest or a peer decides
how much that is, so only two files of each are kept: FILE, and FILE.1 before it, of LIMIT octets
each.  "stamped" puts the time before each line, and is what a tap gets as well (below).  Whatever
happens to the files, the keeper goes on reading, because QEMU must not wait.  The process does not
load the launcher's other modules, because it starts with each VM.

The tap.  One client at a time connects to the socket TAP and sends a line with names of trace
events, separated by spaces.  It is answered READY; from then on it gets every whole line of the
stamped log as QEMU writes it, and events of these names are not kept in the file: they were
switched on for the client alone.  That holds until another client comes, so that one that was
killed leaves nothing in the log.  A client that does not read fast enough misses lines; it is told
how many by a line LOST.  It shuts its side down to get the rest, and the end of the file.
"""
import contextlib
import os
import re
import select
import socket
import sys
import time

PIECE = 65536
LINE_MAX = 4096  # a file may exceed its limit by this much to end with a whole line
TAP, TAP_NEW = "tap", "tap.new"
LOST = b"lost %d\n"
READY, BUSY = b"ready\n", b"busy\n"
WAITING_MAX = 4 << 20  # octets that wait for the tap's client
NAMES_MAX = 4096
# A trace event as QEMU writes it with -msg timestamp=on: thread, time, name.
EVENT = re.compile(rb"\d+@\d+\.\d{6}:(\w+) ")


class Tap:
    """The socket for a client that wants the lines as they come, and that client."""

    def __init__(self):
        self.listener = self.client = None
        self.names, self.asked = frozenset(), b""  # asked: what the client has sent so far
        self.waiting, self.lost = bytearray(), 0
        self.ends = False  # the client wants what waits, and no more
        with contextlib.suppress(OSError):  # the folder is gone: no tap, but a log
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(TAP_NEW)
            listener.bind(TAP_NEW)
            listener.listen(4)
            listener.setblocking(False)
            os.rename(TAP_NEW, TAP)  # who finds the name can connect
            self.listener = listener

    def inputs(self):
        return [each for each in (self.listener, not self.ends and self.client) if each]

    def outputs(self):
        return [self.client] if self.client and self.waiting else []

    def accept(self):
        with contextlib.suppress(OSError):
            client, _ = self.listener.accept()
            if self.client:
                client.send(BUSY)
                client.close()
                return
            client.setblocking(False)
            self.client, self.asked, self.ends = client, b"", False

    def leave(self):
        self.client.close()
        self.client, self.ends, self.lost = None, False, 0
        self.waiting.clear()

    def listen(self):
        """The client has sent something, or will send no more."""
        try:
            data = self.client.recv(PIECE)
        except OSError:
            data = b""
        if not data:
            self.finish()
            return
        if len(self.asked) > NAMES_MAX:
            self.leave()
            return
        known = b"\n" in self.asked
        self.asked += data
        if not known and b"\n" in self.asked:
            self.names = frozenset(self.asked.partition(b"\n")[0].split())
            self.waiting += READY

    def finish(self):
        self.ends = True
        self.tell_lost()
        if not self.waiting:
            self.leave()

    def tell_lost(self):
        if self.lost:
            self.waiting += LOST % self.lost
            self.lost = 0

    def give(self, line):
        """Passes a line on; true: it is the client's alone."""
        if self.client and not self.ends and b"\n" in self.asked:
            if len(self.waiting) + len(line) > WAITING_MAX:
                self.lost += 1
            else:
                self.tell_lost()
                self.waiting += line
        found = EVENT.match(line) if self.names else None
        return bool(found) and found[1] in self.names

    def send(self):
        try:
            del self.waiting[: self.client.send(self.waiting[:PIECE])]
        except BlockingIOError:
            pass
        except OSError:
            self.leave()
            return
        if self.ends and not self.waiting:
            self.leave()

    def close(self):
        """There will be no more lines: QEMU has ended."""
        with contextlib.suppress(OSError):
            if self.client:
                self.tell_lost()
                self.client.settimeout(1.0)
                self.client.sendall(self.waiting)
            os.unlink(TAP)

    def serve(self, readable, writable):
        if self.listener in readable:
            self.accept()
        if self.client and self.client in readable:
            self.listen()
        if self.client and self.client in writable:
            self.send()


class Log:
    """One input and its two files."""

    def __init__(self, source, path, limit, tap):
        self.source, self.path, self.limit, self.tap = int(source), path, int(limit), tap
        self.rest = b""  # of a stamped log: the beginning of a line
        self.begin = True  # whether that is its beginning
        self.size, self.whole = 0, True  # size of the file, and whether it ends with a whole line
        self.file = None  # None: the file is not open
        if self.tap:
            self.keep(time.strftime("QEMU starts, %Y-%m-%d UTC\n", time.gmtime()).encode())

    def open(self):
        self.file = open(self.path, "ab", buffering=0)  # pylint: disable=consider-using-with
        self.size, self.whole = os.fstat(self.file.fileno()).st_size, True

    def turn_over(self):
        self.file.close()
        self.file = None
        os.replace(self.path, self.path + ".1")
        self.open()

    def stamped(self, data):
        """The whole lines so far that belong into the file, with the time before each."""
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.gmtime(now)) + ".%03d " % (now % 1 * 1000)
        stamp = stamp.encode()
        *lines, self.rest = (self.rest + data).split(b"\n")
        text = b"".join(self.entry(line + b"\n", stamp) for line in lines)
        if len(self.rest) > LINE_MAX:  # what does not end is no event
            text += (stamp if self.begin else b"") + self.rest
            self.rest, self.begin = b"", False
        return text

    def entry(self, line, stamp):
        if not self.begin:  # the end of one that was too long
            self.begin = True
            return line
        if self.tap.give(line):
            return b""
        found = EVENT.match(line)  # its own time is for the tap
        return stamp + (line[found.start(1) :] if found else line)

    def end(self):
        """The input has ended."""
        if self.rest:
            self.keep(b"\n")

    def fitting(self, text):
        """How much of the text goes into the present file: whole lines, if possible."""
        room = max(self.limit - self.size, 0)
        if len(text) <= room:
            return len(text)
        cut = text.rfind(b"\n", 0, room) + 1
        if not cut and (self.size == 0 or not self.whole):
            cut = min(text.find(b"\n") + 1 or len(text), room + LINE_MAX)
        return cut

    def keep(self, data):
        text = self.stamped(data) if self.tap else data
        with contextlib.suppress(OSError):  # no room, or the lab's folder is gone
            if not self.file:
                self.open()
            while text:
                cut = self.fitting(text)
                self.file.write(text[:cut])
                self.size += cut
                self.whole = text[cut - 1 : cut] == b"\n" if cut else self.whole
                text = text[cut:]
                if text:
                    self.turn_over()


def main(words):
    tap, logs = Tap(), {}
    for at in range(0, len(words), 4):
        source, path, limit, form = words[at : at + 4]
        log = Log(source, path, limit, tap if form == "stamped" else None)
        logs[log.source] = log
    while logs:
        readable, writable, _ = select.select([*logs, *tap.inputs()], tap.outputs(), [])
        for source in [each for each in readable if each in logs]:
            data = os.read(source, PIECE)
            if data:
                logs[source].keep(data)
            else:
                logs.pop(source).end()
        tap.serve(readable, writable)
    tap.close()


if __name__ == "__main__":
    main(sys.argv[1:])
