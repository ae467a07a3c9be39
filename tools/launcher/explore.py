# SPDX-License-Identifier: GPL-2.0-or-later
"""Exploring a recording: runs staghorn-explore on its traces, names program counters, and writes
the report."""
import json
import os
import secrets
import subprocess
from pathlib import Path

from . import again, explore_report, packets, paths, record
from .errors import LabError, UsageError
from .symbols import Symbols

# Exit statuses of staghorn-explore, and of the verb.
GOOD, BUGS, WRONG, BAD_TRACE, NO_VERDICT, BROKEN = 0, 1, 2, 3, 4, 5
RESULT, PAGE, JUNIT = "result.json", "report.html", "junit.xml"


def traces_of(recording):
    """The traces of a folder that `crash record` wrote, or one trace."""
    path = Path(recording)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError("there is no recording %s" % recording)
    found = sorted(path.glob("*.trace"))
    if not found:
        raise UsageError("%s has no traces" % recording, "./staghorn crash record makes some")
    return found


def run_aside(command):
    """Runs the explorer for files alone; returns its status, and what it said."""
    done = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stderr.strip()


def _counters(bugs):
    """All program counters that bugs name."""
    for bug in bugs:
        if "pc" in bug["issuer"]:
            yield bug["issuer"]
        steps = [*bug.get("story", ()), *bug.get("timeline", ())]
        for event in [step.get("event") for step in steps] + [
            bug["example"]["acknowledgement"],
            bug["example"]["lost"],
        ]:
            if event and "root" in event and "at" in event:
                yield event


def name_places(places, symbols):
    """Adds `symbol` beside each program counter (`pc` or `at`) that has a name."""
    key = {id(each): int(each.get("pc") or each["at"], 16) for each in places}
    names = symbols.resolve(sorted(set(key.values())))
    for each in places:
        name = names[key[id(each)]]
        if not name.startswith("0x"):
            each["symbol"] = name


def name_counters(result, symbols):
    """Names the program counters of a result."""
    name_places([*_counters(result["bugs"]), *_counters(result["not-claimed"])], symbols)
    for bug in [*result["bugs"], *result["not-claimed"]]:
        if "symbol" in bug["issuer"]:
            bug["issuer"]["text"] = "the store by " + bug["issuer"]["symbol"]


def named(result):
    """The issuers of lost stores that have names: (program counter, name)."""
    issuers = [bug["issuer"] for bug in [*result["bugs"], *result["not-claimed"]]]
    return sorted({(each["pc"], each["symbol"]) for each in issuers if "symbol" in each})


def write(path, text):
    """Writes a file of results, whole or not at all; others may write it, too."""
    new = path.with_name("%s.%s.new" % (path.name, secrets.token_hex(4)))
    try:
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)
    except OSError as error:
        raise LabError("cannot write %s: %s" % (path, error.strerror)) from error


def kernel_symbols(path):
    """The text of a file that has the guest's /proc/kallsyms; "" if there is none."""
    try:
        return Path(path).read_text(encoding="utf-8") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("cannot read the kernel's symbols from %s" % path) from error


def _name_packets(result, capture):
    missing = packets.find([*result["bugs"], *result["not-claimed"]], capture)
    if missing:
        result["notes"].append(
            "%d of the messages that bugs name are not in the capture %s." % (missing, capture)
        )


def explore(
    recording, output=None, options=(), programs=(), kallsyms=None, quiet=False, capture=None
):
    """Explores; returns (status, result, folder of the results).  The result is None if there is
    none."""
    traces = traces_of(recording)
    symbols = Symbols(programs, kernel_symbols(kallsyms))
    base = Path(recording) if Path(recording).is_dir() else Path(recording).parent
    out = Path(output) if output else base / "explored"
    if capture:
        packets.check(capture)
    # What is there afterwards is of this run, also if it fails.
    for name in (RESULT, PAGE, JUNIT):
        (out / name).unlink(missing_ok=True)
    command = [str(paths.explorer()), "--out", str(out), *options, *map(str, traces)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL if quiet else None, check=False)
    if done.returncode < 0:
        raise LabError("staghorn-explore was killed by signal %d" % -done.returncode)
    if not (out / RESULT).exists():
        return done.returncode, None, out
    source = {"traces": traces, "options": options, "symbols": programs}
    source.update(kallsyms=kallsyms, capture=capture)
    return done.returncode, complete(out, base, source, symbols), out


def complete(out, base, source, symbols):
    """Completes the result of the explorer in a folder, and writes its reports; returns it.

    base: the folder of the recording; source: traces, options and symbols of the exploration, and
    its files kallsyms and capture, if it had them."""
    result = json.loads((out / RESULT).read_text(encoding="utf-8"))
    name_counters(result, symbols)
    if source.get("capture"):
        _name_packets(result, source["capture"])
    again.name_promises(result, out, base, source)
    result["recording"] = _recording(base)
    result["source"] = {
        "traces": [os.path.relpath(trace, out) for trace in source["traces"]],
        "options": list(source["options"]),
        "symbols": [os.path.relpath(program, out) for program in source["symbols"]],
    }
    for name in ("kallsyms", "capture"):
        if source.get(name):
            result["source"][name] = os.path.relpath(source[name], out)
    write(out / RESULT, json.dumps(result, indent=1) + "\n")
    write(out / PAGE, explore_report.page(result))
    write(out / JUNIT, explore_report.junit(result))
    return result


def _recording(base):
    """What record.json says of the scripts and problems; null without it."""
    try:
        found = json.loads((base / record.RESULT).read_text(encoding="utf-8"))
        names = ("lab", "began", "seconds", "scripts", "problems")
        return {**{name: found[name] for name in names}, "memory": found.get("memory")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
