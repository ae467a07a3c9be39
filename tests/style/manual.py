#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the tables of docs/manual with the headers of include/staghorn.

All definitions of the hardware in the headers are compiled and measured.  The manual must have the
same, no more and no less:

structures   a table with the columns "offset", "width" and "field", below a
             line that says "`struct NAME`, N octets, written by ..."; one row
             for each field.
constants    a table whose second column is headed by the prefix of the names,
             as "`SG_WC_`"; enumerators and object-like macros alike.

A row may hold several fields or names: the lists of its first and of its name
column are then of equal length.  A register of 64 bits is one row NAME where
the header has NAME_LO and NAME_HI.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CONTRACT = [
    TOP / "include" / "staghorn" / (name + ".h")
    for name in ("regs", "io", "admin", "stats", "flash")
]
MANUAL = TOP / "docs" / "manual"

# Not part of the hardware: sizes of C tables, and names that only group others.
NOT_IN_THE_MANUAL = {
    "SG_ADMIN_OPCODE_COUNT",
    "SG_HASH_COUNT",
    "SG_FLASH_REASONS",
    "SG_QP_MOD_KNOWN",
    "SG_VERSION",
}
SCALARS = r"__(?:u8|le16|le32|le64|be16|be32|be64)"


def preprocessed():
    """The definitions in the contract's headers, as text without comments and macros."""
    text = "".join('#include "%s"\n' % path for path in CONTRACT)
    run = subprocess.run(
        ["gcc", "-std=gnu11", "-E", "-x", "c", "-"],
        input=text,
        text=True,
        capture_output=True,
        check=True,
    )
    kept, ours = [], False
    for line in run.stdout.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = Path(marker[1]) in CONTRACT
        elif ours:
            kept.append(line)
    return "\n".join(kept)


def structures(text):
    """{name: fields} of the structures that consist of the hardware's types only."""
    found = {}
    for m in re.finditer(r"\bstruct (\w+)\s*\{([^{}]*)\}\s*;", text):
        fields, hardware = [], True
        for declaration in filter(None, (d.strip() for d in m[2].split(";"))):
            d = re.fullmatch(r"(?:(%s)|struct (\w+))\s+([\w\s,\[\]*+()-]+)" % SCALARS, declaration)
            hardware = hardware and bool(d) and (not d[2] or d[2] in found)
            if d:
                fields += [re.match(r"\s*(\w+)", part)[1] for part in d[3].split(",")]
        if hardware:
            found[m[1]] = fields
    return found


def constants(text):
    """Names of the enumerators and of the macros that are numbers."""
    names = []
    for m in re.finditer(r"\benum\b[^{};()]*\{([^{}]*)\}", text):
        names += re.findall(r"(?:^|,)\s*(SG_\w+)", m[1])
    for path in CONTRACT:
        names += re.findall(r"^#define (SG_\w+)[ \t]+(?!\")\S", path.read_text(), re.M)
    return sorted(set(names) - NOT_IN_THE_MANUAL)


def measure():
    """The contract: {struct: (size, {field: (offset, width)})}, {constant: value}."""
    text = preprocessed()
    structs, names = structures(text), constants(text)
    lines = ["#include <stdio.h>"] + ['#include "%s"' % path for path in CONTRACT]
    lines.append("int main(void) {")
    for struct, fields in structs.items():
        lines.append('printf("S %s %%zu 0\\n", sizeof(struct %s));' % (struct, struct))
        for f in fields:
            lines.append(
                'printf("%s.%s %%zu %%zu\\n", offsetof(struct %s, %s), '
                "sizeof(((struct %s *)0)->%s));" % (struct, f, struct, f, struct, f)
            )
    for name in names:
        lines.append('printf("V %s %%llu 0\\n", (unsigned long long)(%s));' % (name, name))
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "measure"
        subprocess.run(
            ["gcc", "-std=gnu11", "-w", "-x", "c", "-o", program, "-"],
            input="\n".join(lines),
            text=True,
            check=True,
        )
        out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    sizes, values = {}, {}
    for line in out.splitlines():
        words = line.split()
        if words[0] == "S":
            sizes[words[1]] = (int(words[2]), {})
        elif words[0] == "V":
            values[words[1]] = int(words[2])
        else:
            struct, field = words[0].split(".")
            sizes[struct][1][field] = (int(words[1]), int(words[2]))
    return sizes, values


def tables():
    """(place, lines above, cells of the heading, rows of cells) of each table of the manual."""
    for path in sorted(MANUAL.glob("*.md")):
        lines, above = path.read_text().split("\n"), []
        number = 0
        while number < len(lines):
            if not lines[number].startswith("|"):
                above.append(lines[number])
                number += 1
                continue
            place = "%s:%d" % (path.relative_to(TOP), number + 1)
            block = []
            while number < len(lines) and lines[number].startswith("|"):
                block.append([cell.strip() for cell in lines[number].strip("| ").split("|")])
                number += 1
            yield place, above, block[0], block[2:]
            above = []


def several(cell):
    """The members of a list in a cell, without backquotes."""
    return [part.strip().strip("`") for part in cell.split(",")]


def number_of(text):
    """The number that a cell begins with, or None: "0x1000 + 4n" is 0x1000."""
    m = re.match(r"0x[0-9a-f]+|[0-9]+", text.replace(",", ""))
    return int(m[0], 0) if m else None


def check_structure(place, above, rows, sizes, seen):
    """Findings about one table of a structure."""
    title = next(
        (
            m
            for m in (
                re.search(r"`struct (\w+)`, (\d+) octets, written by ", line)
                for line in reversed(above)
            )
            if m
        ),
        None,
    )
    if not title or title[1] not in sizes:
        return ["%s: no line above says `struct NAME`, N octets, written by ..." % place]
    if title[1] in seen:
        return ["%s: struct %s has a table already" % (place, title[1])]
    seen.add(title[1])
    size, fields = sizes[title[1]]
    found = []
    if int(title[2]) != size:
        found.append("%s: struct %s has %d octets" % (place, title[1], size))
    told = {}
    for row in rows:
        names = several(row[2]) if len(row) > 3 else []
        offsets = several(row[0])
        if len(names) != len(offsets) or not all(row[3:]):
            found.append("%s: struct %s: a row is malformed: %s" % (place, title[1], row))
            continue
        told.update({n: (number_of(o), number_of(row[1])) for n, o in zip(names, offsets)})
    for name in list(fields) + [n for n in told if n not in fields]:
        if fields.get(name) != told.get(name):
            found.append(
                "%s: struct %s, %s: manual %s, header %s (offset, width)"
                % (place, title[1], name, told.get(name, "nothing"), fields.get(name, "nothing"))
            )
    return found


def halves(name, values):
    """The names with _LO and _HI of a register of 64 bits, or nothing."""
    for stem in (name, name.removesuffix("_ADDR")):
        if stem + "_LO" in values and values.get(stem + "_HI") == values[stem + "_LO"] + 4:
            return [stem + "_LO", stem + "_HI"]
    return []


def check_constants(place, prefix, rows, values, seen):
    """Findings about one table of constants."""
    found = []
    for row in rows:
        numbers, names = several(row[0]), several(row[1])
        if len(numbers) != len(names):
            found.append(
                "%s: a row has %d numbers and %d names: %s"
                % (place, len(numbers), len(names), row[:2])
            )
            continue
        for text, name in zip(numbers, names):
            full = prefix + re.sub(r"\[n\]$", "", name)
            known = [full] if full in values else halves(full, values)
            if not known or values[known[0]] != number_of(text):
                found.append(
                    "%s: %s: manual %s, header %s"
                    % (place, full, text, values[known[0]] if known else "nothing")
                )
            seen.update(known)
    return found


def check():
    """Findings about (structures, constants)."""
    sizes, values = measure()
    in_structs, in_constants, structs, names = [], [], set(), set()
    for place, above, head, rows in tables():
        prefix = re.fullmatch(r"`(SG_\w*)`", head[1])
        if head[:3] == ["offset", "width", "field"]:
            in_structs += check_structure(place, above, rows, sizes, structs)
        elif prefix:
            in_constants += check_constants(place, prefix[1], rows, values, names)
    in_structs += ["struct %s: not in the manual" % s for s in sizes if s not in structs]
    in_constants += ["%s: not in the manual" % n for n in values if n not in names]
    if len(sizes) < 40 or len(values) < 300:
        in_structs.append(
            "the headers were not understood: %d structures, %d constants"
            % (len(sizes), len(values))
        )
    return in_structs, in_constants


def anchors(path):
    """The anchors of a page's headings, as links name them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def check_links():
    """Findings about links from the manual to its own pages, and to headings."""
    found = []
    for path in sorted(MANUAL.glob("*.md")):
        for m in re.finditer(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text()):
            page = (path.parent / m[1]).resolve() if m[1] else path
            if not page.is_file():
                found.append("%s: %s is not there" % (path.relative_to(TOP), m[1]))
            elif m[2] and m[2] not in anchors(page):
                found.append(
                    "%s: %s has no heading #%s"
                    % (path.relative_to(TOP), page.relative_to(TOP), m[2])
                )
    return found


def main():
    results = zip(
        (*check(), check_links()),
        (
            "every field of every structure is in the manual, with its offset and width",
            "every constant is in the manual with its value",
            "links in the manual lead to pages and headings",
        ),
    )
    good = True
    print("1..3")
    for number, (found, title) in enumerate(results, 1):
        for line in found:
            print("# " + line)
        print("%s %d - %s" % ("not ok" if found else "ok", number, title))
        good = good and not found
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
