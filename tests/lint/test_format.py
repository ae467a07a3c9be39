#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that C and Python are as `make format` writes them."""
import re
import sys

import lint
from lint import TOP, files

FORMAT = TOP / "tools" / "build" / "format"
SETTINGS = (TOP / ".clang-format", TOP / "guest-driver" / ".clang-format", TOP / "pyproject.toml")


def changes(names):
    """The files that the formatters would change, as findings."""
    done = lint.run([FORMAT, "--check", *names])
    if done.returncode not in (0, 1):
        raise lint.Missing(done.stdout)
    return [name + ": make format would change it" for name in done.stdout.split()]


def formatted():
    """Whether the tree has been formatted as a whole: the commit that did so is listed."""
    return re.search(r"^[0-9a-f]{40}$", (TOP / ".git-blame-ignore-revs").read_text(), re.M)


def c_files():
    """C is as clang-format 19 writes it"""
    return lint.each(files.c_files(), "clang-format-19", (*SETTINGS, FORMAT), changes)


def python_files():
    """Python is as black writes it"""
    return lint.each(files.python_files(), "black", (*SETTINGS, FORMAT), changes)


if __name__ == "__main__":
    if not formatted():
        print("1..0 # SKIP .git-blame-ignore-revs names no commit that formatted the tree")
        sys.exit(0)
    sys.exit(lint.main([c_files, python_files]))
