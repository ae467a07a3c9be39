# SPDX-License-Identifier: GPL-2.0-or-later
"""Images of chosen plans, made by the explorer (--plans, docs/crash-laboratory-points.md), and the
events of a trace."""
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from . import explore, paths
from .errors import LabError
from .explored import IMAGES, MADE, is_occurrence, load
from .symbols import Symbols

VERSION = 1
OFFSET = re.compile(r"\+0x[0-9a-f]+\Z")  # of a program counter behind a symbol of the kernel


def plan(behind, platform, deviations=(), arrivals=()):
    """A plan: what a cut behind this event answers otherwise than "everything survives", and what
    arrived early before it."""
    wanted = {"behind": behind, "platform": platform}
    for name, answers in (("deviations", deviations), ("arrivals", arrivals)):
        wanted[name] = [{key: each[key] for key in ("question", "answer")} for each in answers]
    return wanted


def _explorer(explored, folder, wanted):
    """Runs the explorer; returns what it said if it failed."""
    file = folder / "plans.json"
    explore.write(file, json.dumps({"version": VERSION, "plans": wanted}))
    command = [str(paths.explorer()), "--out", str(folder), "--plans", str(file)]
    if explored.target:
        command += ["--target", explored.target]
    command += explored.arrivals() + explored.content()
    command += map(str, explored.traces())
    return explore.run_aside(command)[1]


def make(explored, wanted):
    """The occurrences of these plans, in their order.  Their images join those of the folder."""
    if not explored.traces():
        raise LabError(
            "the recording that %s was made from is not there" % explored.folder,
            "Its traces are needed to make further images",
        )
    made = explored.folder / MADE / "images"
    made.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="plans-", dir=made.parent) as place:
        words = _explorer(explored, Path(place), wanted)
        found = (load(Path(place) / IMAGES) or {}).get("images")
        if not isinstance(found, list) or not all(map(is_occurrence, found)):
            raise LabError("the explorer cannot make images of plans: %s" % words)
        for path in (Path(place) / "images").glob("*.image"):
            os.replace(path, made / path.name)
    return found


def make_each(explored, wanted):
    """As make(); None for a plan whose answers do not exist any more, because an answer before them
    is another now."""
    try:
        made = make(explored, wanted)
        if len(made) == len(wanted):
            return made
    except LabError:
        if len(wanted) == 1:
            return [None]
    return [make_each(explored, [each])[0] for each in wanted]


def events(trace, numbers, symbols=(), kallsyms=None):
    """{number: event} of a trace, with `symbol` where the program counter has a name.

    kallsyms: the file of the kernel's symbols, or None."""
    wanted, found = set(numbers), {}
    if not wanted or not trace:
        return found
    command = [str(paths.trace_printer()), "--json", str(trace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as printer:
        for line in printer.stdout:
            one = json.loads(line)
            if one.get("number") in wanted:
                found[one["number"]] = one
    counters = sorted({one["at"] for one in found.values() if "root" in one and "at" in one})
    names = Symbols(symbols, explore.kernel_symbols(kallsyms)).resolve(counters)
    for one in found.values():
        name = names.get(one.get("at") if "root" in one else None, "0x")
        if not name.startswith("0x"):
            one["symbol"] = name
    return found


def marks(trace):
    """The marks of a trace: [(event, kind, text)]."""
    command = [str(paths.trace_printer()), "--json", "--kinds", "mark", str(trace)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [(one["number"], one["name"], one["text"]) for one in rows if "number" in one]


def issuer(event):
    """Who made a store, in words; of a message not which one, so that all of a kind are alike.  The
    kernel's functions have no lines, and the places in one of its copying loops are alike."""
    if "symbol" in event:
        return "the store by " + OFFSET.sub("", event["symbol"])
    if "at" in event and "root" in event:
        return "the store at %#x" % event["at"]
    if "message" in event:
        what = "the response to the %s" if event["message"]["response"] else "the %s"
        where = event["message"]["machine"], event["qpn"]
        return "%s of %s, in QP %d" % (what % event["message"]["opcode"], *where)
    words = [str(event.get("kind", "an event"))]
    words += ["%s=%s" % (name, event[name]) for name in ("qpn", "opcode") if name in event]
    return " ".join(words)
