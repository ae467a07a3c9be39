# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutants of C sources: one small change of meaning each, chosen by a seed.

A mutant replaces a few characters of one line.  Comments, strings, preprocessor lines, declarations
of constants and assertions are never changed, because no test is expected to notice.
"""
import random
import re
from dataclasses import dataclass

# Name, pattern, replacement.  This tree's style has spaces around an operator; they tell it from
# `<` of an include, `*` of a pointer and `-` of a sign.
SWAPS = [
    ("comparison", r" <= ", " < "),
    ("comparison", r" < ", " <= "),
    ("comparison", r" >= ", " > "),
    ("comparison", r" > ", " >= "),
    ("comparison", r" == ", " != "),
    ("comparison", r" != ", " == "),
    ("logic", r" && ", " || "),
    ("logic", r" \|\| ", " && "),
    ("arithmetic", r" \+ ", " - "),
    ("arithmetic", r" - ", " + "),
    ("arithmetic", r" \* ", " + "),
    ("arithmetic", r" / ", " * "),
    ("arithmetic", r" % ", " + "),
    ("bits", r" & ", " | "),
    ("bits", r" \| ", " & "),
    ("bits", r" << ", " >> "),
    ("bits", r" \|= ", " &= "),
    ("bits", r" &= ~", " |= "),
    ("step", r" \+= ", " -= "),
    ("step", r" -= ", " += "),
    ("step", r"\+\+", "--"),
    ("step", r"--", "++"),
    ("constant", r"\btrue\b", "false"),
    ("constant", r"\bfalse\b", "true"),
    ("bound", r" \+ 1\b", ""),
    ("bound", r" - 1\b", ""),
    ("condition", r"(?<=\bif \()!(?=\w)", ""),
    ("condition", r"(?<= )!(?=\w)", ""),
    ("order", r"\bMIN\(", "MAX("),
    ("order", r"\bMAX\(", "MIN("),
    ("loop", r"\bbreak;", "continue;"),
    ("loop", r"\bcontinue;", "break;"),
]
SWAPS = [(kind, re.compile(pattern), new) for kind, pattern, new in SWAPS]
NUMBER = re.compile(r"(?<![\w.\"'\[])(\d+)(?![\w.])")
CALL = re.compile(r"^\s+(\w+(?:(?:->|\.)\w+)*)\((.*)\);$")
STORE = re.compile(r"^\s+\*?\w+(?:(?:->|\.)\w+|\[[^]]*\])+ [-+|&^]?=(?!=) .*;$")
CHECK = re.compile(r"^(\s+(?:\} else )?if \()(.*)(\) \{)$")
# Lines that do not affect behaviour.
PASSED_OVER = re.compile(
    r"\b(sg_)?assert|_log\w*\(|\btrace_|g_assert|LWIP_ASSERT|"
    r"\b(static_assert|enum|typedef|sizeof)\b|"
    r"^\s*(case .*|default):$|^\s+(static )?(const|struct|enum|union)\b[^=]*;$"
)


@dataclass(frozen=True)
class Mutant:
    """One change: characters [start, end) of line `line` (from 1) of `file` become `new`."""

    file: str
    line: int
    start: int
    end: int
    new: str
    kind: str

    def apply(self, text):
        """The file's text with the change."""
        lines = text.split("\n")
        old = lines[self.line - 1]
        lines[self.line - 1] = old[: self.start] + self.new + old[self.end :]
        return "\n".join(lines)

    def describe(self, text):
        """Two lines as in a diff."""
        old = text.split("\n")[self.line - 1]
        new = self.apply(text).split("\n")[self.line - 1]
        return "-%s\n+%s" % (old, new)


def masked(text):
    """The text with comments, strings, and preprocessor lines as spaces, of the same length."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))

    pattern = r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*"
    return re.sub(pattern, blank, text, flags=re.S | re.M)


def _function_lines(lines):
    """Numbers (from 1) of the lines within function bodies."""
    found, inside = set(), False
    for number, line in enumerate(lines, 1):
        if line == "{":
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside:
            found.add(number)
    return found


def of_text(name, text):
    """All mutants of one file, in order."""
    lines = masked(text).split("\n")
    inside = _function_lines(lines)
    found = []

    def add(number, start, end, new, kind):
        found.append(Mutant(name, number, start, end, new, kind))

    for number, line in enumerate(lines, 1):
        if number not in inside or not line.strip() or PASSED_OVER.search(line):
            continue
        for kind, pattern, new in SWAPS:
            for match in pattern.finditer(line):
                add(number, match.start(), match.end(), new, kind)
        for match in NUMBER.finditer(line):
            add(number, match.start(), match.end(), str(int(match[1]) + 1), "number")
        check = CHECK.match(line)
        if check:
            # Only conditions on one line: one that continues on the next line has an open bracket
            # here.
            if check[2].count("(") == check[2].count(")"):
                for new, kind in (("false && (", "check dropped"), ("!(", "check turned")):
                    whole = new + check[2] + ")"
                    add(number, check.end(1), check.end(2), whole, kind)
        call = CALL.match(line)
        if call and call[2].count("(") == call[2].count(")") and call[1] != "return":
            kind = "free left out" if "free" in call[1] else "call left out"
            add(number, len(line) - len(line.lstrip()), len(line), ";", kind)
        if STORE.match(line):
            add(number, len(line) - len(line.lstrip()), len(line), ";", "store left out")
    return found


def draw(files, seed, count):
    """`count` mutants (all if there are fewer) of {name: text}.  First a file is chosen by its
    share of lines, so that files with many operators do not dominate, then one of its mutants."""
    chance = random.Random(seed)
    pools = {name: of_text(name, text) for name, text in sorted(files.items())}
    pools = {name: pool for name, pool in pools.items() if pool}
    chosen = []
    while pools and len(chosen) < count:
        names = sorted(pools)
        weights = [files[name].count("\n") for name in names]
        name = chance.choices(names, weights)[0]
        pool = pools[name]
        chosen.append(pool.pop(chance.randrange(len(pool))))
        if not pool:
            del pools[name]
    return chosen
