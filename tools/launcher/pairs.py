# SPDX-License-Identifier: GPL-2.0-or-later
"""Pairs of crash images: what one power failure of two VMs may leave of both.

The explorer makes them (`staghorn-explore --together`, docs/crash-laboratory-points.md): a folder
with an exploration of each VM, first/ and second/, and pairs.json.  A unit of a check is a pair of
images; the journal calls it by both hashes, the one behind the other.
"""
import contextlib
import fcntl
import json
import subprocess
import zlib
from pathlib import Path

from . import explore, paths
from .check_run import RUN_OWN
from .errors import LabError, UsageError
from .explored import PAIRS, Explored, Unit, evenly, load, platforms_of, promise_line
from .symbols import Symbols

FOLDER, SIDES, OPTIONS = "together-%s-%s", ("first", "second"), "together.json"
LOCK = "together.lock"
STRATEGY, PAIRS_MOST, SEED = "only,all-but", 1000, 1
KEPT = ("--acks", "--base", "--max-images")  # of the options of an exploration


class Source:
    """What is explored: a recording, or that of an exploration, whose options count then."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.options, self.symbols, self.strategy = [], [], None
        if not self.folder.is_dir():
            raise UsageError("there is no recording %s" % folder)
        if not list(self.folder.glob("*.trace")):
            explored = Explored(folder)
            self.folder = Path(explored.recording("crash check --together explores its traces"))
            given = explored.options()
            for name, value in zip(given[::2], given[1::2]):
                if name in KEPT:
                    self.options += [name, value]
                elif name == "--strategy":
                    self.strategy = value
            self.symbols = explored.symbols()
        self.traces = explore.traces_of(self.folder)

    def require(self, names):
        """The VMs have to be in the recording."""
        known = [path.stem for path in self.traces]
        for name in names:
            if name not in known:
                raise UsageError(
                    "--vm %s: the recording has no such VM" % name, "It has " + ", ".join(known)
                )


def words_of(args, source, names):
    """The options of the explorer."""
    strategy = args.pair_strategy or source.strategy or STRATEGY
    words = ["--target", names[0], "--together", names[1], "--strategy", strategy]
    words += ["--max-pairs", str(args.limit or PAIRS_MOST), "--pair-seed", str(args.pair_seed)]
    platforms = [name for text in args.platform for name in platforms_of(text)]
    if platforms:
        parts = [name.split(",") for name in platforms]
        domains = dict.fromkeys(domain for domain, _ in parts)
        ddio = dict.fromkeys(each.partition("=")[2] for _, each in parts)
        words += ["--domain", ",".join(domains), "--ddio", ",".join(ddio)]
    return words + list(source.options), platforms


def make(args, source, names, say):
    """Explores, unless that is done already; returns the Pairs."""
    words, platforms = words_of(args, source, names)
    place = source.folder / (FOLDER % tuple(names))
    with _alone(place):
        done = load(place / OPTIONS, "crash check --together")
        if done is None or done.get("options") != words or not (place / PAIRS).exists():
            say("exploring what one power failure of %s and %s leaves" % tuple(names))
            _explore(place, words, platforms, source)
    return Pairs(place)


@contextlib.contextmanager
def _alone(place):
    """Shards begin at the same time: the first one explores, and the others wait for it."""
    try:
        place.mkdir(exist_ok=True)
        file = open(place / LOCK, "ab")  # pylint: disable=consider-using-with
    except OSError as error:
        raise LabError("cannot write %s: %s" % (error.filename, error.strerror)) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _explore(place, words, platforms, source):
    for name in (OPTIONS, PAIRS):  # what is there afterwards is of this run, also if it fails
        (place / name).unlink(missing_ok=True)
    more = ["--not-claimed"] if platforms else []
    command = [str(paths.explorer()), "--out", str(place), *more, *words]
    done = subprocess.run(
        command + [str(trace) for trace in source.traces],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode not in (explore.GOOD, explore.BUGS, explore.NO_VERDICT):
        raise LabError(
            "pairs of images cannot be explored: %s" % done.stderr.strip(),
            "Both VMs need NVDIMMs in the recorded run",
            explore.WRONG if done.returncode == explore.WRONG else explore.BROKEN,
        )
    for side in SIDES:
        given = {"traces": source.traces, "options": words, "symbols": source.symbols}
        explore.complete(place / side, source.folder, given, Symbols(source.symbols))
    explore.write(place / OPTIONS, json.dumps({"version": 1, "options": words}, indent=1) + "\n")


def _is_pair(one, sides):
    images = one.get("images") if isinstance(one, dict) else None
    return (
        isinstance(images, list)
        and len(images) == len(sides)
        and all(isinstance(n, int) and 0 <= n < len(x.images) for n, x in zip(images, sides))
        and isinstance(one.get("platforms"), list)
        and all(isinstance(name, str) for name in one["platforms"])
    )


def is_folder(path):
    """Whether this is a folder of pairs."""
    return (Path(path) / PAIRS).exists()


def joined(names, two, platforms):
    """Two occurrences, one of each VM, as one.  Each of its deviations has its side."""
    one = {
        "image": "".join(each["image"] for each in two),
        "behind": [each["behind"] for each in two],
        "plan": "; ".join("%s: %s" % (n, each["plan"]) for n, each in zip(names, two)),
        "platforms": platforms,
        "sides": two,
    }
    rows = [each.get("deviations") for each in two]
    return one if None in rows else dict(one, deviations=with_sides(rows))


def with_sides(rows):
    """The deviations of both sides as one list."""
    return [dict(each, side=k) for k, row in enumerate(rows) for each in row]


class Pairs:
    """A folder of pairs.  A check takes it in the place of an Explored."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.found = load(self.folder / PAIRS)
        if self.found is None:
            raise UsageError(
                "%s has no pairs of images" % folder,
                "crash check --together makes some, in RECORDING/together-VM-VM",
            )
        self.sides = [Explored(self.folder / side) for side in SIDES]
        self.names = [side.target for side in self.sides]
        self.run = self.sides[0].run
        self.extents = [extent for side in self.sides for extent in side.extents]
        rows = self.found.get("pairs")
        if not isinstance(rows, list) or not all(_is_pair(row, self.sides) for row in rows):
            raise LabError("%s is not what the explorer writes" % (self.folder / PAIRS))
        self.images = [*(side.images for side in self.sides), rows]  # what copies have in common
        self._promises = [side.promises() for side in self.sides]
        self._lines = {}  # of a unit with promises: the texts for both VMs

    def claimed(self):
        """The platforms that have pairs: without --platform those that both VMs claim."""
        return [row["platform"] for row in self.found["platforms"] if row["point-pairs"]]

    def traces(self):
        """The traces that were explored, as far as they are still there."""
        return self.sides[0].traces() and self.sides[1].traces()

    def promises(self):
        """None that go by their number: request() tells each VM its own."""
        return []

    def in_force(self, behind):
        """Of each VM's memory, the promises in force if the power fails behind these events."""
        return [
            [
                each
                for each in promises
                if each["binds-behind"] <= behind[k] and each["binds-behind-other"] <= behind[1 - k]
            ]
            for k, promises in enumerate(self._promises)
        ]

    def _number(self, behind):
        """The promises in force as a number, by which request() finds their texts."""
        lines = [[promise_line(each) for each in row] for row in self.in_force(behind)]
        texts = tuple("".join(line + "\n" for line in row) or "\n" for row in lines)
        number = zlib.crc32("\0".join(texts).encode())
        self._lines[number] = texts
        return number

    def units(self, platforms, promises=False, limit=None):
        """What is to be checked: pairs of contents; with promises also by what is in force."""
        groups = {}
        for row in self.found["pairs"]:
            here = [name for name in row["platforms"] if name in platforms]
            if here:
                two = [side.images[n] for side, n in zip(self.sides, row["images"])]
                one = joined(self.names, two, here)
                key = one["image"], self._number(one["behind"]) if promises else None
                groups.setdefault(key, []).append(one)
        found = [Unit(*key, tuple(group)) for key, group in groups.items()]
        return found if limit is None else evenly(found, limit)

    def path(self, k, image):
        """The file of a side's image, as Explored.path() has it, from wherever."""
        path = self.sides[k].path(image)
        return path.absolute() if path else ""

    def request(self, unit):
        """(images, scripts, inputs) for a judge of two VMs (pairs_lab.py)."""
        one = unit.occurrences[0]
        found, scripts, inputs = [], [], []
        for k, side in enumerate(one["sides"]):
            found.append(self.path(k, side["image"]))
            words = (*environment(self.names, k), side["behind"], one["platforms"][0])
            text = "export %s %s CRASH_BEHIND=%d CRASH_PLATFORM=%s CRASH_IMAGE=%s; " % (
                *words,
                side["image"],
            )
            if unit.promises is not None:
                text += "cat > /run/crash/promises; "
            scripts.append(text + RUN_OWN)
            lines = b"" if unit.promises is None else self._lines[unit.promises][k].encode()
            inputs.append(lines)
        return found, scripts, inputs


def environment(names, k):
    """What tells a script in which VM it is."""
    return "CRASH_VM=%s" % names[k], "CRASH_PEER=%s" % names[1 - k]
