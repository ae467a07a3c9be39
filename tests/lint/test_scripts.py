#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks scripts with flake8 and shellcheck."""
import sys

import lint
from lint import TOP, files


def python():
    """Python passes flake8"""
    return lint.each(
        files.python_files(),
        "flake8",
        (TOP / ".flake8",),
        lambda names: lint.run(["flake8", *names]).stdout.splitlines(),
    )


def shell():
    """shell scripts pass shellcheck"""
    names = files.shell_files()
    # It follows what a script sources, so a change of one may spoil another.
    others = lint.key(*(TOP / name for name in names))
    return lint.each(
        names,
        "shellcheck",
        (TOP / ".shellcheckrc", others),
        lambda todo: lint.run(["shellcheck", "-x", "-f", "gcc", *todo]).stdout.splitlines(),
    )


if __name__ == "__main__":
    sys.exit(lint.main([python, shell]))
