# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts about crash images: a file with one JSON object a line, which only grows.

Each line is written at once and is on the disk before the image counts as checked.  A killed
checker leaves whole lines and at most one half line, which is dropped: its image is checked again.
So a check goes on where it ended, and files of several checkers can be merged.

A line has these members: image (its hash), verdict (one of VERDICTS), status (exit status of the
checker, or null), output (its last octets), ms (time of the check), attempts.  Lines of `crash
check` also have check (which checker it was), digest (of the whole output), and promises if it was
told how many promises were in force: the same image with other demands is another check.  With
--reads they have reads (lines that earlier checks of the same journal did not read) and round.
"""
import contextlib
import errno
import fcntl
import json
import os
import re
import stat
import zlib
from pathlib import Path

from .errors import LabError, UsageError

# From harmless to bad.  "unsteady": two checks of one image had different verdicts.
BUGS = ("bug", "hang", "off", "reboot", "oops", "machine-check", "panic")
VERDICTS = ("good", "unsteady", *BUGS, "failed")
HASH = 32  # digits of the hash of an image
IMAGE = re.compile(r"[0-9a-f]{16,64}\Z")
SHARD = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})\Z")
OUTPUT_MAX = 4096  # characters of a checker's output that are kept


def shard_of(text):
    """(i, n) of "i/n", 1 to n."""
    match = SHARD.match(text)
    if not match or int(match[1]) > int(match[2]):
        raise UsageError("%s is no shard: i/n, with i from 1 to n" % text)
    return int(match[1]), int(match[2])


def in_shard(image, shard):
    """Whether an image belongs to a shard; each belongs to exactly one.  Of a pair (pairs.py) both
    images count: many pairs have the same first one."""
    number = int(image[:15], 16) if len(image) <= HASH else zlib.crc32(image.encode())
    return number % shard[1] == shard[0] - 1


def key_of(one):
    """What a line is about: "IMAGE", or "IMAGE+PROMISES"; of a recovery that is compared with the
    states behind some marks (check_nested.py) with "@MARKS"."""
    promises, steps = one.get("promises"), one.get("steps")
    key = one["image"] if promises is None else "%s+%d" % (one["image"], promises)
    return key if steps is None else "%s@%s" % (key, "-".join("%d" % each for each in steps))


def _checked(line, where):
    try:
        found = json.loads(line)
        if IMAGE.match(found["image"]) and found["verdict"] in VERDICTS:
            key_of(found)
            return found
    except (ValueError, KeyError, TypeError):
        pass
    raise LabError("%s has a line that is no verdict: %.60s" % (where, line))


def read(path):
    """{image, as key_of(): verdict} of a file; a half line at the end is no error."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise LabError("%s is no file of verdicts" % path) from error
    found = {}
    for line in text.split("\n")[:-1]:
        one = _checked(line, path)
        found[key_of(one)] = joined(found.get(key_of(one)), one)
    return found


def joined(one, other):
    """One verdict from two about the same image.  What one of them has read does not get lost."""
    if one is None or other is None or one == other:
        return one or other
    more = {}
    if "reads" in one or "reads" in other:
        more["reads"] = one.get("reads", []) + other.get("reads", [])
    if "round" in one and "round" in other:
        more["round"] = min(one["round"], other["round"])
    return {**_chosen(one, other), **more}


def _chosen(one, other):
    """The verdict of two about the same image."""
    if "failed" in (one["verdict"], other["verdict"]):  # the tool's failure is no verdict
        return other if one["verdict"] == "failed" else one
    both = one if VERDICTS.index(one["verdict"]) > VERDICTS.index(other["verdict"]) else other
    attempts = one.get("attempts", 1) + other.get("attempts", 1)
    verdict = both["verdict"] if one["verdict"] == other["verdict"] else "unsteady"
    return {**both, "verdict": verdict, "attempts": attempts}


def _shortened(text):
    return text if len(text) <= OUTPUT_MAX else "[...] " + text[-OUTPUT_MAX:]


class Journal:
    """A file of verdicts that one checker writes."""

    def __init__(self, path):
        self.path = Path(path)
        self.done = {}
        self._file = None

    def __enter__(self):
        try:
            self._file = open(self.path, "a+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LabError("another check is writing %s" % self.path) from error
        except OSError as error:
            raise LabError("cannot write %s: %s" % (self.path, error.strerror)) from error
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise LabError("%s is not a regular file" % self.path)
        self._cut_half_line()
        self.done = read(self.path)
        return self

    def __exit__(self, *unused):
        self._file.close()

    def _cut_half_line(self):
        self._file.seek(0)
        text = self._file.read()
        self._file.truncate(text.rfind(b"\n") + 1)

    def add(self, image, verdict, status=None, output="", ms=0.0, attempts=1, **more):
        """Writes a verdict; it is on the disk on return.  more: further members."""
        one = {"image": image, "verdict": verdict, "status": status}
        one.update(output=_shortened(output), ms=round(ms, 3), attempts=attempts, **more)
        line = json.dumps(one).encode() + b"\n"
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._cut_half_line()
            raise LabError("cannot write %s: %s" % (self.path, error.strerror)) from error
        self.done[key_of(one)] = one


def merge(out, paths):
    """Writes the union of files to out, sorted by image; returns it."""
    found = {}
    for path in paths:
        if not Path(path).is_file():
            raise UsageError("there is no file %s" % path)
        for image, one in read(path).items():
            found[image] = joined(found.get(image), one)
    lines = [json.dumps(found[image]) + "\n" for image in sorted(found)]
    new = Path("%s.new" % out)
    try:
        with open(new, "w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, out)
    except OSError as error:
        raise LabError("cannot write %s: %s" % (out, error.strerror)) from error
    return found
