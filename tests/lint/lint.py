# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the programs of this folder: cases, tools, and a record of what was found clean.

A case is a function that returns findings, lines "file:line: what"; its docstring is its name.  A
missing tool fails the case.  A file that a tool has found clean is not checked again as long as
file, settings and tool are the same: a stamp in the cache, for all clones, records this.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "build"))

import files  # noqa: E402

TOP = files.TOP
BUILD = Path(os.environ.get("SG_BUILD", TOP / "build"))
MONTH = 30 * 86400


class Missing(Exception):
    """A tool, or a product that has to be built first, is missing."""


def run(command, **how):
    """Runs a command in the top folder; returns output and errors as one text."""
    return subprocess.run(
        [str(word) for word in command],
        **{"cwd": TOP, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **how},
        text=True,
        check=False,
    )


def version(tool):
    """A tool's version."""
    if not shutil.which(tool):
        raise Missing("%s is missing; ./configure installs it or says how" % tool)
    return run([tool, "--version"]).stdout


def cache():
    """The folder of the stamps."""
    settings = BUILD / "config.json"
    if settings.exists():
        return Path(json.loads(settings.read_text())["cache"]) / "lint"
    return BUILD / "lint"


def key(*parts):
    """A key that depends on these texts, octets and files (paths that exist)."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            part = part.read_bytes()
        if isinstance(part, str):
            part = part.encode()
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:32]


def unknown(keys):
    """Those names in {name: key} that were not found clean yet."""
    folder = cache()
    return sorted(name for name, k in keys.items() if not (folder / k).exists())


def clean(keys, names):
    """Records that these are clean; removes records that were not used for a month."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / keys[name]).touch()
    old = time.time() - MONTH
    for path in folder.iterdir():
        if path.stat().st_mtime < old:
            path.unlink(missing_ok=True)


def each(names, tool, settings, look):
    """Findings in files that are checked one by one.

    `look` takes a list of names and returns the lines that its tool prints about them; the result
    also depends on `settings`, which are files and words.
    """
    about = [version(tool), *settings]
    keys = {name: key(name, TOP / name, *about) for name in names}
    todo = unknown(keys)
    found = look(todo) if todo else []
    clean(keys, [n for n in todo if not any(line.startswith(n + ":") for line in found)])
    return found


def main(cases):
    """Runs the cases; returns the exit status of the program."""
    print("1..%d" % len(cases))
    good = True
    for number, case in enumerate(cases, 1):
        try:
            findings = case()
        except Missing as error:
            findings = [str(error)]
        for finding in findings:
            print("# " + finding)
        print("%s %d - %s" % ("not ok" if findings else "ok", number, case.__doc__))
        good = good and not findings
    return 0 if good else 1
