# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps the newest part of a VM's logs: keeper.py {INPUT FILE LIMIT stamped|plain}...

One such process runs beside each VM's QEMU and ends with it.  From pipes it reads QEMU's log of
devices and the output of the VM's console; INPUT is a file descriptor.  A guest or a peer decides
how much that is, so only two files of each are kept: FILE, and FILE.1 before it, of LIMIT octets
each.  "stamped" puts the time before each line.  Whatever happens to the files, the keeper goes on
reading, because QEMU must not wait.  The process does not load the launcher's other modules,
because it starts with each VM.
"""
import contextlib
import os
import select
import sys
import time

PIECE = 65536
LINE_MAX = 4096  # a file may exceed its limit by this much to end with a whole line


class Log:
    """One input and its two files."""

    def __init__(self, source, path, limit, form):
        self.source, self.path, self.limit = int(source), path, int(limit)
        self.stamps = form == "stamped"
        self.begin = True  # whether the input is at the start of a line
        self.size, self.whole = 0, True  # size of the file, and whether it ends with a whole line
        self.file = None  # None: the file is not open
        if self.stamps:
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
        """The data with the time before each line."""
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.gmtime(now)) + ".%03d " % (now % 1 * 1000)
        stamp = stamp.encode()
        whole = data.endswith(b"\n")
        text = data[: -1 if whole else None].replace(b"\n", b"\n" + stamp)
        text = (stamp if self.begin else b"") + text + (b"\n" if whole else b"")
        self.begin = whole
        return text

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
        text = self.stamped(data) if self.stamps else data
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
    logs = {}
    for at in range(0, len(words), 4):
        log = Log(*words[at : at + 4])
        logs[log.source] = log
    while logs:
        for source in select.select(list(logs), [], [])[0]:
            data = os.read(source, PIECE)
            if data:
                logs[source].keep(data)
            else:
                del logs[source]


if __name__ == "__main__":
    main(sys.argv[1:])
