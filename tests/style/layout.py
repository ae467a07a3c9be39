#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The hardware contract of include/staghorn, compiled as its users compile it.

Each header is compiled alone (it must include what it needs), with its layout
assertions, as user space does, as a program without Linux headers does, as the
kernel does, and for processors of other word sizes and byte orders; the
registers are compared with the tables of docs/manual/registers.md, commands,
rights, features and counters with those of docs/manual/admin.md.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
HEADERS = sorted((TOP / "include" / "staghorn").glob("*.h"))
MANUAL = TOP / "docs" / "manual" / "registers.md"
ADMIN_MANUAL = TOP / "docs" / "manual" / "admin.md"
TARGETS = ("i686", "aarch64", "riscv64", "powerpc64", "s390x")

# What the headers take from the kernel and the C library, for compilations
# that have neither.
FAKES = {
    "linux/types.h": "".join(
        "typedef unsigned %s __u%d;\ntypedef __u%d __le%d, __be%d;\n" % (c, n, n, n, n)
        for n, c in ((8, "char"), (16, "short"), (32, "int"), (64, "long long")))
    + "typedef __u64 __attribute__((aligned(8))) __aligned_u64;\n",
    "linux/build_bug.h": "#define static_assert _Static_assert\n",
    "linux/stddef.h": "#define offsetof(t, m) __builtin_offsetof(t, m)\n",
    "assert.h": "#define static_assert _Static_assert\n",
}


def compile_header(header, command):
    """Diagnosis of compiling one header alone; "" if it compiles."""
    run = subprocess.run(command + ["-fsyntax-only", "-Werror", "-Wall", "-Wextra", "-x", "c", "-"],
                         input='#include "%s"\nint unused_;\n' % header, text=True,
                         capture_output=True, check=False)
    return run.stderr if run.returncode else ""


def all_headers(command, headers=None):
    """Diagnoses of all headers."""
    return "\n".join(filter(None, (compile_header(h, command) for h in headers or HEADERS)))


def no_padding(_fakes):
    """structs have no hidden padding, as user space compiles them"""
    return all_headers(["gcc", "-std=gnu11", "-Wpadded", "-Wpedantic"])


def without_linux(_fakes):
    """headers compile in C11 without Linux's headers"""
    # abi.h is a contract of two Linux programs.
    return all_headers(["gcc", "-std=c11", "-U__linux__", "-Wpedantic"],
                       [h for h in HEADERS if h.name != "abi.h"])


def as_kernel(fakes):
    """headers compile as in the kernel"""
    return all_headers(["gcc", "-std=gnu11", "-D__KERNEL__", "-nostdinc", "-ffreestanding",
                        "-I" + fakes, "-Wdeclaration-after-statement"])


def as_cplusplus(_fakes):
    """headers compile in C++"""
    text = "".join('#include "%s"\n' % h for h in HEADERS)
    run = subprocess.run(["clang", "-std=c++17", "-fsyntax-only", "-Werror", "-Wall", "-x", "c++",
                          "-"], input=text, text=True, capture_output=True, check=False)
    return run.stderr if run.returncode else ""


def elsewhere(fakes):
    """layouts hold with other word sizes and byte orders"""
    found = ""
    for target in TARGETS:
        found += all_headers(["clang", "--target=%s-linux-gnu" % target, "-std=gnu11",
                              "-ffreestanding", "-Wpadded", "-I" + fakes])
    return found


def registers_in_header():
    """Name -> offset, of the enumerators SG_REG_*."""
    text = (TOP / "include" / "staghorn" / "regs.h").read_text()
    return {m[1]: int(m[2], 0) for m in re.finditer(r"\bSG_REG_(\w+) = (0x[0-9a-f]+)", text)}


def registers_in_manual():
    """Name -> offset, of the tables' rows "| 0x000 | NAME | ..."."""
    rows = re.finditer(r"^\| (0x[0-9a-f]{3,})[^|]*\| (\w+)", MANUAL.read_text(), re.M)
    return {m[2]: int(m[1], 0) for m in rows}


def manual_agrees(_fakes):
    """the manual and regs.h have the same registers"""
    header, manual = registers_in_header(), registers_in_manual()
    found = []
    for name, offset in manual.items():
        # A register of 64 bits is one row and two enumerators.
        half = name.removesuffix("_ADDR")
        wide = header.get(half + "_LO")
        if wide is not None and name not in header:
            if header.get(half + "_HI") != wide + 4:
                found.append("%s: halves are not neighbours" % name)
        if header.get(name, wide) != offset:
            found.append("%s: manual 0x%x, header %s" % (name, offset, header.get(name, wide)))
    for name in header:
        half = re.sub(r"_(LO|HI)$", "", name)
        if not {name, half, half + "_ADDR"} & manual.keys():
            found.append("%s: not in the manual" % name)
    if not header or not manual:
        found.append("no registers found")
    return "\n".join(found)


def numbers_in_manual(digits):
    """Name -> number, of the rows "| 0x10, 0x11 | NAME, NAME | ...", also "0x10 to 0x13"."""
    number = "0x[0-9a-f]{%d}" % digits
    rows = re.finditer(r"^\| (%s(?:(?:, | to )%s)*) \| ([A-Z0-9_, ]+) \|" % (number, number),
                       ADMIN_MANUAL.read_text(), re.M)
    found = {}
    for row in rows:
        numbers = [int(text, 16) for text in re.findall(number, row[1])]
        if " to " in row[1]:
            numbers = range(numbers[0], numbers[1] + 1)
        names = row[2].split(", ")
        found.update(zip(names, numbers) if len(names) == len(numbers) else {row[2]: row[1]})
    return found


def admin_agrees(_fakes):
    """the manual and admin.h have the same commands, rights and features"""
    text = (TOP / "include" / "staghorn" / "admin.h").read_text()
    found = []
    # The manual's tables are told apart by the digits of their numbers.
    for kind, digits in (("ADMIN", 2), ("ACCESS", 3), ("FEATURE", 4)):
        header = {m[1]: int(m[2], 16) for m in
                  re.finditer(r"\bSG_%s_(\w+)(?: =)? (0x[0-9a-f]+)" % kind, text)}
        header.pop("OPCODE_COUNT", None)
        manual = numbers_in_manual(digits)
        found += ["SG_%s_%s: manual %s, header %s" % (kind, n, manual.get(n), header.get(n))
                  for n in sorted(header.keys() | manual.keys()) if header.get(n) != manual.get(n)]
        if not header:
            found.append("SG_%s_*: none found" % kind)
    return "\n".join(found)


def counters_agree(_fakes):
    """the manual and admin.h have the same counters in the same order"""
    text = (TOP / "include" / "staghorn" / "admin.h").read_text()
    found = []
    for answer, heading in (("STATS", "Counters of the adapter"),
                            ("QP_STATS", "Counters of a queue pair"),
                            ("MR_STATS", "Counters of a region or window")):
        listed = re.search(r"^#define SG_%s\(X\)((?:.*\\\n)*.*)" % answer, text, re.M)
        header = re.findall(r"X\((\w+)\)", listed[1]) if listed else []
        section = re.search(r"^### %s\n(.*?)(?=^#)" % heading, ADMIN_MANUAL.read_text(),
                            re.M | re.S)
        rows = re.findall(r"^\| (`[^|]*`) \|", section[1], re.M) if section else []
        manual = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
        if header != manual or not header:
            found.append("%s: header %s" % (answer, ", ".join(header)))
            found.append("%s: manual %s" % (answer, ", ".join(manual)))
    return "\n".join(found)


RULES = (no_padding, without_linux, as_kernel, as_cplusplus, elsewhere, manual_agrees,
         admin_agrees, counters_agree)


def main():
    good = bool(HEADERS)
    print("1..%d" % len(RULES))
    with tempfile.TemporaryDirectory() as fakes:
        for name, text in FAKES.items():
            path = Path(fakes) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for number, rule in enumerate(RULES, 1):
            found = rule(fakes)
            for line in found.splitlines():
                print("# " + line)
            print("%s %d - %s" % ("not ok" if found else "ok", number, rule.__doc__))
            good = good and not found
    if not HEADERS:
        print("Bail out! no headers found")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
