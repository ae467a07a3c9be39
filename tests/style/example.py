#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the code in docs/manual/example.md and docs/course is the tree's code.

A block that begins with "```c FILE: NAME, NAME" shows these functions, structures and initialised
variables of a file, each with the comment before it.  "tests/style/example.py --write" updates the
blocks.
"""
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGES = [TOP / "docs" / "manual" / "example.md", *sorted(TOP.glob("docs/course/[0-9]*.md"))]
BLOCK = re.compile(r"^```c (\S+): (.*)\n((?:(?!```).*\n)*)```$", re.M)


def definition(text, name):
    """The definition of a function, structure or variable that begins and ends in column 0, or
    None."""
    heads = (
        r"struct %s \{",
        r"[a-z][\w \*]*\b%s\((?:[^;{]|\n)*?\)\n\{",
        r"static [\w ]+ %s(?:\[\])? = \{",
    )
    head = "^(?:%s)" % "|".join(one % name for one in heads)
    m = re.search(r"(?:^/\*(?:(?!\*/)[\s\S])*\*/\n)?" + head + r"[\s\S]*?^\};?$", text, re.M)
    if not m:
        return None
    # A section title is not a comment of the definition.
    return re.sub(r"\A/\* ---[^\n]*\n\n?", "", m[0])


def renewed(page):
    """The page with blocks as in the sources, and a list of what cannot be found."""
    missing = []

    def block(m):
        parts = []
        for name in m[2].split(", "):
            found = definition((TOP / m[1]).read_text(), name) if (TOP / m[1]).is_file() else None
            if found is None:
                missing.append("%s has no %s that begins in column 0" % (m[1], name))
            parts.append(found or "")
        return "```c %s: %s\n%s\n```" % (m[1], m[2], "\n\n".join(parts))

    return BLOCK.sub(block, page), missing


def examine(page):
    """What is wrong with a page."""
    text = page.read_text()
    new, found = renewed(text)
    for old, now in zip(BLOCK.finditer(text), BLOCK.finditer(new)):
        if old[0] != now[0]:
            found.append("%s: %s is not as in %s" % (page.relative_to(TOP), old[2], old[1]))
    if not BLOCK.search(text):
        found.append("%s has no code" % page.relative_to(TOP))
    return found


def main():
    if sys.argv[1:] == ["--write"]:
        missing = []
        for page in PAGES:
            new, found = renewed(page.read_text())
            page.write_text(new)
            missing += found
        print("\n".join(missing))
        return 1 if missing else 0
    found = [line for page in PAGES for line in examine(page)]
    print("1..1")
    for line in found:
        print("# " + line)
    if found:
        print("# tests/style/example.py --write copies the code of the tree")
    print(
        "%s 1 - the examples of manual and course are the code of the tree"
        % ("not ok" if found else "ok")
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
