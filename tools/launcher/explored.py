# SPDX-License-Identifier: GPL-2.0-or-later
"""What an exploration left for a check: images, what is demanded of them, and the NVDIMMs that they
belong to (docs/crash-laboratory-points.md).

An occurrence is an image at a crash point, with the promises in force there.  A unit is what is
checked: an image, or with promises an image and their number, because the same content may be right
under fewer demands.
"""
import json
import re
from collections import namedtuple
from pathlib import Path

from . import pmem
from .errors import LabError, UsageError

MADE = "made"  # the folder of further images, made of plans (plans.py)
START = "0" * 32  # the image of no differences
IMAGES, PROMISES, RESULT = "images.json", "promises.json", "result.json"
PAIRS = "pairs.json"  # of two VMs whose power fails at once (pairs.py)
ARRIVALS = ("late", "any")  # "early" makes no images
IMAGE = re.compile(r"[0-9a-f]{32}\Z")
DOMAINS, DDIO = ("none", "adr", "eadr", "whole"), ("ddio=on", "ddio=off")
PLATFORMS = tuple("%s,%s" % (domain, ddio) for domain in DOMAINS for ddio in DDIO)
MIB = 1 << 20
SIZE_MAX = 256 << 20  # octets of images.json and the like

# occurrences: those of the image (and, with promises, of their number), the first one first
Unit = namedtuple("Unit", "image promises occurrences")
# An NVDIMM: file is the path of its content at the start.
Extent = namedtuple("Extent", "name address size hash file")


def platforms_of(text):
    """The platforms of "adr,ddio=on,eadr": a domain without ddio stands for both."""
    found = []
    for word in text.split(","):
        if word in DOMAINS:
            found.append([word, None])
        elif word in DDIO and found and not found[-1][1]:
            found[-1][1] = word
        else:
            raise UsageError(
                "--platform %s: %s is no platform: DOMAIN or DOMAIN,ddio=on, with a domain of %s"
                % (text, word or "nothing", ", ".join(DOMAINS))
            )
    return [",".join((name, each)) for name, ddio in found for each in ([ddio] if ddio else DDIO)]


def load(path, what="the explorer"):
    """A file of JSON with an object; None if it does not exist."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(SIZE_MAX + 1)
        found = json.loads(text) if len(text) <= SIZE_MAX else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LabError("%s is not what %s writes" % (path, what))
    return found


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def is_occurrence(one):
    """Whether it has the members of an occurrence, of their types."""
    return (
        isinstance(one, dict)
        and isinstance(one.get("image"), str)
        and bool(IMAGE.match(one["image"]))
        and _is_count(one.get("behind"))
        and _is_count(one.get("promises"))
        and isinstance(one.get("plan"), str)
        and isinstance(one.get("platforms"), list)
        and bool(one["platforms"])
        and all(name in PLATFORMS for name in one["platforms"])
        and isinstance(one.get("deviations", []), list)
        and all(isinstance(each, dict) for each in one.get("deviations", []))
    )


def extent_of(one, folder):
    """An Extent of its JSON."""
    try:
        address, size = (
            int(one[key], 0) if isinstance(one[key], str) else one[key]
            for key in ("address", "size")
        )
        good = _is_count(address) and _is_count(size) and re.match(r"[0-9a-f]{64}\Z", one["hash"])
        name, file = str(one["name"]), Path(folder) / one["file"]
    except (KeyError, TypeError, ValueError):
        good = False
    if not good:
        raise LabError("%s describes an NVDIMM that cannot be" % (Path(folder) / IMAGES))
    low, high = pmem.RANGE
    if not low * MIB <= size <= high * MIB or size % (pmem.UNIT * MIB):
        raise LabError(
            "NVDIMM %s has %d octets: no VM of the launcher can have that" % (name, size),
            "up --pmem takes even numbers of MiB, from %d on" % low,
        )
    return Extent(name, address, size, one["hash"], file)


def evenly(items, limit):
    """At most so many of a list, taken evenly, the first and the last among them."""
    if limit >= len(items):
        return items
    if limit <= 1:
        return items[:limit]
    return [items[at * (len(items) - 1) // (limit - 1)] for at in range(limit)]


class Explored:
    """A folder of results of `crash explore --strategy`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise UsageError("there is no folder %s" % folder)
        if (self.folder / PAIRS).exists():
            raise UsageError(
                "%s has pairs of images" % folder,
                "Name the recording and both VMs:  ./staghorn crash check --together --vm A --vm B "
                "RECORDING",
            )
        found = load(self.folder / IMAGES)
        if found is None:
            raise UsageError(
                "%s has no images" % folder,
                "Make some:  ./staghorn crash explore --strategy only,all-but RECORDING",
            )
        self.images = found.get("images")
        if not isinstance(self.images, list) or not all(map(is_occurrence, self.images)):
            raise LabError("%s is not what the explorer writes" % (self.folder / IMAGES))
        self.extents = self._extents(found)
        self.result = load(self.folder / RESULT) or {}
        self.run, self.target = (str(found.get(name, "")) for name in ("run", "target"))
        self.start = None  # in place of content(), after the folder was moved

    def _extents(self, found):
        extents = found.get("extents")
        if not isinstance(extents, list) or not 1 <= len(extents) <= pmem.MAX_DIMMS:
            raise LabError(
                "%s does not say which NVDIMMs its images belong to" % (self.folder / IMAGES),
                "Explore the recording again, with this version of Staghorn",
            )
        return [extent_of(each, self.folder) for each in extents]

    def path(self, image):
        """The file of an image: one of the exploration, or of what was made for the check.  "": the
        content at the start has none."""
        for folder in (self.folder, self.folder / MADE):
            path = folder / "images" / (image + ".image")
            if path.exists():
                return path
        return "" if image == START else self.folder / "images" / (image + ".image")

    def promises(self):
        """All promises, in the order in which they bind."""
        found = (load(self.folder / PROMISES) or {}).get("promises", [])
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise LabError("%s is not what the explorer writes" % (self.folder / PROMISES))
        return found

    def claimed(self):
        """The platforms that keep what the guest was told; all of the images if nobody knows."""
        rows = self.result.get("platforms")
        if isinstance(rows, list):
            return [row["platform"] for row in rows if row.get("claimed")]
        return list(dict.fromkeys(name for one in self.images for name in one["platforms"]))

    def traces(self):
        """The traces that were explored, as far as they are still there."""
        found = self.result.get("source")
        paths = found.get("traces") if isinstance(found, dict) else None
        paths = [self.folder / str(each) for each in paths or ()]
        return paths if all(path.is_file() for path in paths) else []

    def recording(self, why):
        """What `crash explore` was given: a folder of traces, or one trace.  why: what for."""
        traces = self.traces()
        if not traces:
            raise LabError("the recording that %s was made from is not there" % self.folder, why)
        folder = traces[0].parent
        found = {path.resolve() for path in folder.glob("*.trace")}
        if found == {path.resolve() for path in traces}:
            return folder
        if len(traces) > 1:
            raise LabError("%s has other traces than those that were explored" % folder)
        return traces[0]

    def options(self, dropped=()):
        """The options of the exploration, without those of these names."""
        given = self.result["source"].get("options") or []
        rows = [row for row in zip(given[::2], given[1::2]) if row[0] not in dropped]
        return [word for row in rows for word in row]

    def content(self):
        """The options of the exploration that say what the trace begins with."""
        if self.start is not None:
            return self.start
        found = self.result.get("source")
        words = found.get("options") if isinstance(found, dict) else None
        rows = zip((words or ())[::2], (words or ())[1::2])
        return [word for row in rows if row[0] in ("--onto", "--base") for word in row]

    def arrivals(self):
        """The option for the orders of data under way that were explored: crash points depend on
        them."""
        found = self.result.get("arrivals")
        return ["--arrivals", found] if found in ARRIVALS else []

    def symbols(self):
        """The programs whose names `crash explore` was given, as far as they are still there."""
        found = self.result.get("source")
        paths = found.get("symbols") if isinstance(found, dict) else None
        return [self.folder / each for each in paths or () if (self.folder / each).is_file()]

    def _given(self, what):
        """A file that `crash explore` was given, or None if there is none any more."""
        found = self.result.get("source")
        name = found.get(what) if isinstance(found, dict) else None
        return self.folder / name if name and (self.folder / name).is_file() else None

    def capture(self):
        """The capture of the lab, as _given()."""
        return self._given("capture")

    def kallsyms(self):
        """The symbols of the guest's kernel, as _given()."""
        return self._given("kallsyms")

    def events(self):
        """How many events the target's trace has, or 0."""
        rows = [each for each in self.result.get("traces") or () if isinstance(each, dict)]
        found = [row.get("events") for row in rows if row.get("machine") == self.target]
        return found[0] if found and _is_count(found[0]) else 0

    def trace(self):
        """The target's trace, or None."""
        named = [path for path in self.traces() if path.name == self.target + ".trace"]
        return named[0] if named else None

    def units(self, platforms, promises=False, limit=None):
        """What is to be checked, in the order of crash points.

        platforms: an image counts if it occurs on one of them; limit: at most so many, taken
        evenly, the first and the last among them."""
        groups = {}
        for one in self.images:
            here = [name for name in one["platforms"] if name in platforms]
            if here:
                key = one["image"], one["promises"] if promises else None
                groups.setdefault(key, []).append(dict(one, platforms=here))
        found = [Unit(*key, tuple(occurrences)) for key, occurrences in groups.items()]
        return found if limit is None else evenly(found, limit)


def promise_line(promise):
    """A promise as the line of text that a checker reads."""
    words = [str(promise.get("acknowledgement", ""))]
    words += [
        "%s=%s" % (name, promise[name])
        for name in ("machine", "event", "wr-id", "qpn")
        if promise.get(name) is not None
    ]
    ranges = promise.get("ranges") or ()
    words += ["%s+%s" % (each.get("addr"), each.get("len")) for each in ranges]
    if promise.get("text"):
        words.append("text=" + " ".join(str(promise["text"]).split("\n")))
    return " ".join(words)
