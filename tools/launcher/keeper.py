# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps the newest part of what QEMU logs: keeper.py FILE LIMIT

One such process runs beside each VM's QEMU, whose log is this one's input, and ends with it.  A
guest or a peer decides how much is logged, so two files are all that stays: FILE, and FILE.1, the
one before it, of LIMIT octets each.  Whatever happens to the files, the input is read on: QEMU must
not wait.  Run by itself, without the launcher's other modules: it is started with each VM.
"""
import contextlib
import os
import sys
import time

PIECE = 65536


class Keeper:
    def __init__(self, path, limit):
        self.path, self.limit = path, limit
        self.begin = True  # of a line
        self.size = 0
        self.file = None  # not open, or not any more

    def open(self):
        self.file = open(self.path, "ab", buffering=0)  # pylint: disable=consider-using-with
        self.size = os.fstat(self.file.fileno()).st_size

    def turn_over(self):
        self.file.close()
        self.file = None
        os.replace(self.path, self.path + ".1")
        self.open()

    def stamped(self, data):
        """The data, with the time before each line."""
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.gmtime(now)) + ".%03d " % (now % 1 * 1000)
        stamp = stamp.encode()
        whole = data.endswith(b"\n")
        text = data[: -1 if whole else None].replace(b"\n", b"\n" + stamp)
        text = (stamp if self.begin else b"") + text + (b"\n" if whole else b"")
        self.begin = whole
        return text

    def keep(self, data):
        fresh = self.begin
        text = self.stamped(data)
        with contextlib.suppress(OSError):  # no room, or the lab's folder is gone
            if not self.file:
                self.open()
            if self.size + len(text) > self.limit and (fresh or self.size > 2 * self.limit):
                self.turn_over()
            self.file.write(text)
            self.size += len(text)


def main(path, limit):
    keeper = Keeper(path, int(limit))
    keeper.keep(time.strftime("QEMU starts, %Y-%m-%d UTC\n", time.gmtime()).encode())
    while True:
        data = os.read(0, PIECE)
        if not data:
            return
        keeper.keep(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
