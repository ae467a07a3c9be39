# SPDX-License-Identifier: GPL-2.0-or-later
"""Pairs of crash images: what one power failure of two VMs may leave of both.

The explorer makes them (`staghorn-explore --together`, docs/crash-laboratory-points.md): a folder
with an exploration of each VM, first/ and second/, and pairs.json.  A unit of a check is a pair of
images; the journal calls it by both hashes, the one behind the other.
"""
import json
import subprocess
import zlib
from pathlib import Path

from . import explore, paths
from .check_run import RUN_OWN
from .errors import LabError, UsageError
from .explored import PAIRS, Explored, Unit, load, platforms_of, promise_line
from .symbols import Symbols

FOLDER, SIDES, OPTIONS = "together-%s-%s", ("first", "second"), "together.json"
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
    done = load(place / OPTIONS, "crash check --together")
    if done is None or done.get("options") != words or not (place / PAIRS).exists():
        say("exploring what one power failure of %s and %s leaves" % tuple(names))
        _explore(place, words, platforms, source)
    return Pairs(place, platforms)


def _explore(place, words, platforms, source):
    place.mkdir(exist_ok=True)
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


class Pairs:
    """A folder of pairs.

    named: the platforms that the user named; without them those of the folder."""

    def __init__(self, folder, named=()):
        self.folder = Path(folder)
        self.sides = [Explored(self.folder / side) for side in SIDES]
        self.names = [side.target for side in self.sides]
        self.run = self.sides[0].run
        self.extents = [extent for side in self.sides for extent in side.extents]
        self.found = load(self.folder / PAIRS)
        rows = self.found.get("pairs") if self.found else None
        if not isinstance(rows, list) or not all(_is_pair(row, self.sides) for row in rows):
            raise LabError("%s is not what the explorer writes" % (self.folder / PAIRS))
        self.platforms = list(named) or [
            row["platform"] for row in self.found["platforms"] if row["point-pairs"]
        ]
        self._promises = [side.promises() for side in self.sides]
        self._lines = {}  # of a unit with promises: the texts for both VMs

    def _in_force(self, behind):
        """The promises in force in each VM, as texts, if the power fails behind these events."""
        texts = []
        for k, promises in enumerate(self._promises):
            found = [
                promise_line(each)
                for each in promises
                if each["binds-behind"] <= behind[k] and each["binds-behind-other"] <= behind[1 - k]
            ]
            texts.append("".join(line + "\n" for line in found) or "\n")
        return tuple(texts)

    def _occurrence(self, row):
        """A pair as an occurrence; None: it is on no platform that counts."""
        two = [side.images[n] for side, n in zip(self.sides, row["images"])]
        here = [name for name in row["platforms"] if name in self.platforms]
        if not here:
            return None
        return {
            "image": "".join(one["image"] for one in two),
            "behind": [one["behind"] for one in two],
            "plan": "; ".join("%s: %s" % (n, one["plan"]) for n, one in zip(self.names, two)),
            "platforms": here,
            "sides": two,
        }

    def units(self, with_promises=False):
        """What is to be checked: pairs of contents; with promises also by what is in force."""
        groups = {}
        for row in self.found["pairs"]:
            one = self._occurrence(row)
            if not one:
                continue
            number = None
            if with_promises:
                texts = self._in_force(one["behind"])
                number = zlib.crc32("\0".join(texts).encode())
                self._lines[number] = texts
            groups.setdefault((one["image"], number), []).append(one)
        return [Unit(*key, tuple(group)) for key, group in groups.items()]

    def _path(self, k, image):
        path = self.sides[k].path(image)
        return path.absolute() if path else ""

    def request(self, unit):
        """(images, scripts, inputs) for a judge of two VMs (pairs_lab.py)."""
        one = unit.occurrences[0]
        found, scripts, inputs = [], [], []
        for k, side in enumerate(one["sides"]):
            found.append(self._path(k, side["image"]))
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
