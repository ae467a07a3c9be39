#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs clang-tidy with the checks of .clang-tidy on all that build/native compiles.

# timeout: 1800
"""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import lint
from lint import BUILD, TOP

TOOL = "clang-tidy-19"
NATIVE = BUILD / "native"
SETTINGS = TOP / ".clang-tidy"


def inputs():
    """{object: files that it was made from}, as the compiler told ninja."""
    known, target = {}, ""
    for line in lint.run(["ninja", "-C", NATIVE, "-t", "deps"]).stdout.splitlines():
        if line.startswith("    "):
            known[target].append(line.strip())
        elif ":" in line:
            target = line.split(":")[0]
            known[target] = []
    return known


def units():
    """{source: key} of all translation units of the tree, one for each source."""
    database = NATIVE / "compile_commands.json"
    if not database.exists():
        raise lint.Missing("%s is missing: run make native" % database)
    about = (lint.version(TOOL), SETTINGS)
    needs, digests, keys = inputs(), {}, {}
    for entry in json.loads(database.read_text()):
        source = os.path.relpath(NATIVE / entry["file"], TOP)
        if source.startswith("..") or source in keys:
            continue
        paths = [NATIVE / name for name in needs.get(entry["output"], [])]
        for path in paths:
            if path not in digests:
                digests[path] = lint.key(path) if path.exists() else ""
        command = entry["command"].replace(str(BUILD), "").replace(str(TOP), "")
        keys[source] = lint.key(source, command, *about, *(digests[p] for p in paths))
    return keys


def look(source):
    """Findings of one translation unit."""
    done = subprocess.run(
        [TOOL, "-p", NATIVE, "--quiet", TOP / source],
        cwd=NATIVE,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.replace("../../", "").replace(str(TOP) + "/", "").splitlines()
    found = [line for line in lines if " error: " in line or " warning: " in line]
    if done.returncode and not found:
        found = ["%s: %s: status %d %s" % (source, TOOL, done.returncode, done.stderr[-300:])]
    return found


def tidy():
    """clang-tidy finds nothing in the core, its tests and the firmware"""
    keys = units()
    todo = lint.unknown(keys)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(todo, pool.map(look, todo)))
    lint.clean(keys, [source for source, found in results.items() if not found])
    return sorted({line for found in results.values() for line in found})


if __name__ == "__main__":
    sys.exit(lint.main([tidy]))
