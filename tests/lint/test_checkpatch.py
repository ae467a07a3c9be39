#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the kernel driver and the modules of docs/course with the kernel's own checkpatch.pl.

# timeout: 1200
"""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import lint
from lint import BUILD, files

# From Debian's source of the guest's kernel.
SCRIPT = BUILD / "products" / "src-siw" / "src" / "scripts" / "checkpatch.pl"
# checkpatch.pl knows no exceptions in the source, so they are here: (file, kind, why it may stay).
EXCEPTIONS = (
    ("compat.h", "LINUX_VERSION_CODE", "the one file that knows versions of the kernel"),
    ("compat.h", "CONSTANT_COMPARISON", "the version stands left, as in the kernel's own macros"),
    ("compat.h", "NEW_TYPEDEFS", "names for types of which kernels have one or the other"),
    ("odp.c", "UNNECESSARY_ELSE", "it ends a chain, of which only one branch returns"),
    ("stats.c", "COMPLEX_MACRO", "a row of a table, made from the list of counters"),
    ("cq.c", "BRACKET_SPACE", "an array's designator at the beginning of such a row"),
    ("cq.h", "SPACING", "a type that compat.h defines is taken for a factor"),
    ("wr.c", "TRAILING_SEMICOLON", "each row is a case of a switch"),
    ("cq.c", "MACRO_ARG_UNUSED", "a list has columns that only others use"),
    ("stats.c", "MACRO_ARG_UNUSED", "likewise"),
    ("wr.c", "MACRO_ARG_UNUSED", "likewise"),
    ("trace.h", "COMPLEX_MACRO", "lists of names, and members of tracepoints"),
    ("trace.h", "MACRO_ARG_REUSE", "a list names the macro for each of its rows"),
    ("trace.h", "TRAILING_SEMICOLON", "each row of such a list is a declaration"),
    ("trace.h", "PARENTHESIS_ALIGNMENT", "the form of the kernel's own tracepoints"),
    ("trace.h", "OPEN_ENDED_LINE", "likewise"),
)


def allowed(line):
    """Whether a finding is one of EXCEPTIONS."""
    return any("/%s:" % name in line and ":%s:" % kind in line for name, kind, _ in EXCEPTIONS)


def look_at(name):
    """Findings in one file."""
    command = [SCRIPT, "--no-tree", "--strict", "--quiet", "--terse", "--show-types"]
    done = lint.run([*command, "--max-line-length=100", "-f", name])
    lines = done.stdout.splitlines()
    return [x for x in lines if not x.startswith("total:") and x.strip() and not allowed(x)]


def look(names):
    """Findings in these files."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [line for found in pool.map(look_at, names) for line in found]


def checkpatch():
    """the kernel driver and the modules of docs/course pass checkpatch.pl --strict"""
    if not SCRIPT.exists():
        raise lint.Missing("%s is missing: make lint fetches it" % SCRIPT)
    names = files.c_files("guest-driver/kernel/") + files.c_files("guest-driver/course/")
    return lint.each(names, "perl", (SCRIPT, str(EXCEPTIONS)), look)


if __name__ == "__main__":
    sys.exit(lint.main([checkpatch]))
