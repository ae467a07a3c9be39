#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the spelling of code, comments and documents."""
import sys

import lint
from lint import TOP, files


def spelling():
    """codespell finds no misspelt word"""
    names = [n for n in files.text() if not n.endswith((".svg", ".patch"))]
    return lint.each(
        names,
        "codespell",
        (TOP / ".codespellrc",),
        lambda todo: lint.run(["codespell", *todo]).stdout.splitlines(),
    )


if __name__ == "__main__":
    sys.exit(lint.main([spelling]))
