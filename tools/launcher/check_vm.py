# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --vm NAME`: crash images of another VM of the recording than the explored one.

The requester of a remote write may have persistent memory of its own, and lose it as the target
does.  What its power cuts leave is explored with the options of EXPLORED, in EXPLORED/vm-NAME: an
exploration of its own, with journals and results.  Shards share it; the first one makes it.
"""
import os
import secrets
import shutil

from . import explore
from .errors import LabError, UsageError
from .explored import IMAGES, Explored

FOLDER = "vm-%s"
DROPPED = ("--target", "--onto", "--base")  # of the exploration's own options


def _make(explored, name, place):
    """Explores for this VM; the folder is there as a whole, or not at all."""
    recording = explored.recording("crash check --vm explores its traces again")
    new = place.with_name(".%s.%s" % (place.name, secrets.token_hex(4)))
    words = [*explored.options(DROPPED), "--target", name]
    try:
        status, result, _ = explore.explore(recording, new, words, explored.symbols(), quiet=True)
        if not result or status not in (explore.GOOD, explore.BUGS, explore.NO_VERDICT):
            raise LabError(
                "the images of VM %s cannot be explored: status %d" % (name, status),
                "It needs NVDIMMs in the recorded run",
            )
        try:
            os.rename(new, place)
        except OSError:
            if not (place / IMAGES).exists():  # else another shard was faster
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def of(explored, name, say):
    """The Explored of a VM."""
    names = [path.stem for path in explored.traces()]
    if name == explored.target:
        return explored
    if names and name not in names:
        raise UsageError(
            "--vm %s: the recording has no such VM" % name, "It has " + ", ".join(sorted(names))
        )
    place = explored.folder / (FOLDER % name)
    if not (place / IMAGES).exists():
        say("exploring what power cuts leave of %s" % name)
        _make(explored, name, place)
    found = Explored(place)
    if (found.run, found.target) != (explored.run, name):
        raise LabError("%s is of another recording or VM; remove it" % place)
    return found
