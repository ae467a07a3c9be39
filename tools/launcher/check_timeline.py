# SPDX-License-Identifier: GPL-2.0-or-later
"""The timelines of bugs that a checker found: what all machines did about the stores that an image
lost, until the power failed.

The explorer makes them of the traces (`staghorn-explore --timelines`,
docs/crash-laboratory-points.md).  Of a bug, stores of its minimal example are told, or of its
example if there is none.
"""
import json
import tempfile
from pathlib import Path

from . import explore, explore_timeline, packets, pages, paths
from .errors import LabError
from .explored import Explored, load
from .symbols import Symbols

FILE, RESULT = "stores.json", "timelines.json"
BUGS_MAX = 20  # bugs that get timelines
STORES_MAX = 4  # lost stores of a bug
TOLD_MAX = 64  # stores that the explorer takes at a time
CALLS_MAX = 16  # of the explorer: each tells one past of a platform
LINE = 64  # octets
KEPT = ("timeline", "timeline-omitted", "frames")


# -- which stores


def _address(row, deviations):
    """The first octet of a lost store in a line that lost it."""
    for each in deviations or ():
        if "addr" in each and row["number"] in each.get("lost", ()):
            return max(row["addr"], int(each["addr"], 16))
    return row["addr"]


def _chosen(rows):
    """Some of the lost stores: the first one of each issuer, then of further lines."""
    rows = [row for row in rows if "addr" in row]
    firsts = list({row["issuer"]: row for row in reversed(rows)}.values())
    lines = {row["addr"] // LINE: row for row in reversed(rows)}
    seen = {row["addr"] // LINE for row in firsts}
    more = [row for line, row in lines.items() if line not in seen]
    chosen = [*sorted(firsts, key=_number), *sorted(more, key=_number)][:STORES_MAX]
    return sorted(chosen, key=_number)


def _number(row):
    return row["number"]


def _stores(bug, side=None):
    """The stores of a bug, as the explorer gets them, each with its issuer.  side: of a pair, the
    VM."""

    def of(value):
        return value if side is None else value[side]

    example, small = bug["example"], bug["minimal"]
    shown = small or example
    deviations, arrivals = (
        one.get(name) and of(one[name])
        for one, name in ((shown, "deviations"), (example, "arrivals"))
    )
    for row in _chosen(of(shown["lost"])):
        store = {"event": row["number"], "addr": "%#x" % _address(row, deviations)}
        store.update(behind=of(shown["behind"]), platform=shown["platform"])
        store.update(promises=0, arrivals=arrivals or [])
        yield store, row["issuer"]


# -- the explorer


def _call(explored, stores):
    """What the explorer says of these stores, in their order."""
    given = explored.result.get("source", {}).get("options") or []
    acks = [word for row in zip(given[::2], given[1::2]) if row[0] == "--acks" for word in row]
    with tempfile.TemporaryDirectory(prefix="timelines-") as place:
        file = Path(place) / FILE
        explore.write(file, json.dumps({"version": 1, "stores": stores}))
        command = [str(paths.explorer()), "--out", place, "--timelines", str(file)]
        command += ["--target", explored.target, *acks, *explored.content()]
        command += map(str, explored.traces())
        status, words = explore.run_aside(command)
        rows = (load(Path(place) / RESULT) or {}).get("stores")
    if status or not isinstance(rows, list) or len(rows) != len(stores):
        raise LabError("timelines cannot be made: %s" % words)
    return rows


def _told(explored, stores):
    """What the explorer says of each store; None: nothing."""
    found, left = [None] * len(stores), list(range(len(stores)))
    for _ in range(CALLS_MAX):
        part = left[:TOLD_MAX]
        if not part:
            break
        rows = _call(explored, [stores[n] for n in part])
        for n, row in zip(part, rows):
            if "timeline" in row:
                found[n] = {name: row[name] for name in KEPT if name in row}
        left = [n for n in left if found[n] is None]
    return found


def _mark_end(steps, target, behind):
    """Notes behind which row the power failed."""
    for step in steps:
        if step["machine"] == target and step.get("event", {}).get("event") == behind:
            step["power-fails"] = True


def _name(explored, rows):
    """Adds names of program counters, and packets."""
    events = [step.get("event") for row in rows for step in row["timeline"]]
    places = [event for event in events if event and "root" in event and "at" in event]
    kernel = explore.kernel_symbols(explored.kallsyms())
    explore.name_places(places, Symbols(explored.symbols(), kernel))
    if explored.capture():
        packets.find(rows, explored.capture())


def _tell(explored, wanted):
    """The timelines of (store, issuer), as members of a bug; None: it has none."""
    if not wanted or not explored.traces():
        return [None] * len(wanted)
    found = _told(explored, [store for store, _ in wanted])
    for n, (store, issuer) in enumerate(wanted):
        if found[n] is not None:
            _mark_end(found[n]["timeline"], explored.target, store["behind"])
            shown = {name: store[name] for name in ("event", "addr", "behind", "platform")}
            found[n] = {"machine": explored.target, **shown, "issuer": issuer, **found[n]}
    _name(explored, [row for row in found if row])
    return found


# -- bugs


def _add(explored, bugs, side=None, in_force=False):
    """Adds the timelines about one VM to bugs.  in_force: they have their promises.  Returns how
    many stores have none although there are traces."""
    wanted = []
    for bug in bugs[:BUGS_MAX]:
        bug.setdefault("timelines", [])
        for store, issuer in _stores(bug, side):
            store["promises"] = bug["example"]["in-force"] if in_force else 0
            wanted.append((bug, (store, issuer)))
    rows = _tell(explored, [each for _, each in wanted])
    for (bug, _), row in zip(wanted, rows):
        bug["timelines"] += [row] if row else []
    return sum(row is None for row in rows) if explored.traces() else 0


def _try(found, function, *words):
    """Timelines are no part of the verdict: without them there is a note."""
    bugs = words[1]
    if len(bugs) > BUGS_MAX:
        text = "Timelines are made for the first %d bugs of %d."
        found["notes"].append(text % (BUGS_MAX, len(bugs)))
    try:
        missing = function(*words)
        if missing:
            found["notes"].append("Of %d lost stores no timeline was found." % missing)
    except LabError as error:
        found["notes"].append("Bugs have no timelines: %s" % error)
    except (AttributeError, KeyError, TypeError, ValueError):
        found["notes"].append("Bugs have no timelines: their images say nothing of lost stores.")


def _add_recoveries(explored, bugs):
    return sum(
        _add(Explored(explored.folder / bug["folder"] / "explored"), [bug])
        for bug in bugs[:BUGS_MAX]
    )


def add(explored, found):
    """Adds `timelines` to the bugs of a check."""
    _try(found, _add, explored, found["bugs"], None, True)
    if found.get("nested"):
        _try(found, _add_recoveries, explored, found["nested"]["bugs"])


def _add_pairs(found, bugs):
    return sum(_add(side, bugs, k) for k, side in enumerate(found.sides))


def add_pairs(found, told):
    """The same for pairs of images, whose timelines are those of both VMs."""
    _try(told, _add_pairs, found, told["bugs"])


# -- HTML


def parts(bug):
    """The timelines of a bug, for its report."""
    for one in bug.get("timelines") or ():
        names = ("event", "machine", "issuer", "platform", "behind")
        words = "What became of event %s of %s, %s, on %s. The power fails behind event %s."
        yield "<p>%s</p>" % (words % tuple(pages.text(one[name]) for name in names))
        yield from explore_timeline.packets(one)
        yield from explore_timeline.table(one)
