#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the rules of the driver checker with docs/manual/checker.md.

The table of rules.c and those of the manual have the same rules, in one order, with the same
section and the same effect of check=strict.  Each section exists.
"""
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SOURCE = TOP / "hw" / "core" / "verbs" / "check" / "rules.c"
MANUAL = TOP / "docs" / "manual"
ROW = re.compile(
    r'\[SG_RULE_(\w+)\]\s*=\s*\{\s*"([\w-]+)",\s*(\w+|"[^"]+"),\s*SG_RULE_(\w+)\s*\}', re.S
)


def coded():
    """[(rule, effect, section)] of the source."""
    text = SOURCE.read_text()
    short = dict(re.findall(r'#define (\w+) ("[^"]+")', text))
    found = []
    for symbol, name, section, end in ROW.findall(text):
        if symbol.replace("_", "-") != name:
            raise SystemExit("rules.c: %s has the name %s" % (symbol, name))
        if name != "NONE":
            found.append((name, end.lower(), short.get(section, section).strip('"')))
    return found


def documented():
    """The same of the manual."""
    text = (MANUAL / "checker.md").read_text()
    return re.findall(r"^\| ([A-Z]+(?:-[A-Z]+)+) \| (\w+) \| (\S+) \|", text, re.M)


def anchors(path):
    """The anchors of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def main():
    wrong = []
    code, manual = coded(), documented()
    if len(code) < 40:
        wrong.append("%s: only %d rules were found" % (SOURCE, len(code)))
    if code != manual:
        for one in [each for each in code if each not in manual]:
            wrong.append("docs/manual/checker.md: no row %s | %s | %s" % one)
        for one in [each for each in manual if each not in code]:
            wrong.append("rules.c: no rule %s | %s | %s" % one)
        if not wrong:
            wrong.append("docs/manual/checker.md: rules in another order than in rules.c")
    for name, _, section in code:
        file, _, anchor = section.partition("#")
        path = MANUAL / file
        if not path.is_file() or anchor not in anchors(path):
            wrong.append("rules.c: %s: there is no section %s" % (name, section))
    print("1..1")
    for line in wrong:
        print("# " + line)
    print(
        "%s 1 - the rules of the driver checker are those of the manual"
        % ("not ok" if wrong else "ok")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
