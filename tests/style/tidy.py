#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Style rules as tests, one TAP case per rule, over all files of the tree.

Run it alone: tests/style/tidy.py [FILE...]; each finding is a line "file:line: what".
"""
import ast
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LINES_MAX, LINES_WARN, FUNCTION_MAX, COLUMNS_MAX = 900, 600, 70, 100
C = (".c", ".h")
CODE = C + (".py", ".sh")

# The words are split, because this file would be a finding otherwise.
LEFTOVERS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK|not imple" r"mented)\b")
MACHINE = re.compile(r"(?<![\w.$}/])/(?:wo" r"rk|ro" r"ot|home/\w+|tmp/(?:brief|infra))(?:/|\b)")
# Folder of hw/ -> folders whose headers it may include.
LAYERS = {
    "hw/core/base": {"base"},
    "hw/core/wire": {"base", "wire"},
    "hw/core/proto": {"base", "wire", "proto"},
    "hw/core/proto/rdma_tcp": {"base", "wire", "proto", "proto/rdma_tcp"},
    "hw/core/flash": {"base", "flash"},
    "hw/core/faults": {"base", "faults"},
    "hw/core/persist": {"base", "persist"},
    "hw/core/trace": {"base", "trace"},
    "hw/core/crash": {"base", "persist", "trace", "crash"},
}
# Subfolders of hw/core/verbs from the bottom up; the folder's own files are on top.
ROOMS = ("check", "state", "memory", "events", "queues", "connections", "commands")
for _number, _room in enumerate((*ROOMS, "")):
    LAYERS[f"hw/core/verbs/{_room}".rstrip("/")] = {
        "base",
        "wire",
        "proto",
        "flash",
        "faults",
        f"verbs/{_room}".rstrip("/"),
        *(f"verbs/{below}" for below in ROOMS[:_number]),
    }
LAYERS["hw/core/verbs/check"] = {"base", "verbs/check"}
LAYER_NAMES = {
    "base",
    "wire",
    "proto",
    "flash",
    "faults",
    "persist",
    "trace",
    "crash",
    "verbs",
    "net",
    "device",
}
QEMU_FOLDERS = {
    "qemu",
    "qapi",
    "qom",
    "hw",
    "exec",
    "system",
    "sysemu",
    "migration",
    "block",
    "chardev",
    "monitor",
    "trace",
    "io",
}
OCTETS = ("tests/fuzz/corpus/", "tests/fuzz/inputs/")  # not text, even where it looks like text
LICENSES = (
    ("include/staghorn/", "GPL-2.0 OR BSD-3-Clause"),
    ("guest-driver/", "GPL-2.0 OR BSD-3-Clause"),
    ("", "GPL-2.0-or-later"),
)


def text_files():
    """Paths (relative) of all files that git tracks or would track."""
    if len(sys.argv) > 1:
        return [str(Path(a).resolve().relative_to(TOP)) for a in sys.argv[1:]]
    listed = subprocess.run(
        ["git", "-C", str(TOP), "ls-files", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:
        skip = {".git", "build"}
        names = [
            str(p.relative_to(TOP))
            for p in TOP.rglob("*")
            if p.is_file() and p.relative_to(TOP).parts[0] not in skip
        ]
    return sorted(
        n
        for n in set(names)
        if (TOP / n).is_file() and not (TOP / n).is_symlink() and not n.startswith(OCTETS)
    )


def load():
    """{name: lines} of the text files."""
    files = {}
    for name in text_files():
        data = (TOP / name).read_bytes()
        if b"\0" not in data[:4096]:
            files[name] = data.decode(errors="replace").split("\n")
    return files


def is_script(name, lines):
    return name.endswith(CODE) or lines[0].startswith("#!")


# Written from the manual alone, in one piece; it stays as its author left it.
LONG = {"tests/lib/second_driver.c"}


def file_length(files):
    """files are at most 900 lines"""
    for name, lines in files.items():
        if is_script(name, lines):
            if len(lines) > LINES_MAX and name not in LONG:
                yield "%s: %d lines" % (name, len(lines))
            elif len(lines) > LINES_WARN:
                print("# warning: %s: %d lines, more than %d" % (name, len(lines), LINES_WARN))


def c_functions(lines):
    """(name, first line, length) of the bodies that open and close in column 0."""
    start, name = None, ""
    for number, line in enumerate(lines, 1):
        m = re.match(r"(?:[A-Za-z_].*?\b)?(\w+)\s*\(", line)
        if m and not line.rstrip().endswith(";"):
            name = m[1]
        if line == "{":
            start = number
        elif line == "}" and start:
            yield name, start, number - start - 1
            start = None


def python_functions(lines):
    """(name, first line, length) of all functions."""
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno


def shell_functions(lines):
    """(name, first line, length) of functions in the form `name() {`."""
    start, name = None, ""
    for number, line in enumerate(lines, 1):
        m = re.match(r"(\w+)\(\) [{(]$", line)
        if m:
            start, name = number, m[1]
        elif line in ("}", ")") and start:
            yield name, start, number - start - 1
            start = None


def function_length(files):
    """functions are at most 70 lines"""
    for name, lines in files.items():
        if name.endswith(C):
            functions = c_functions(lines)
        elif name.endswith(".py") or "python3" in lines[0]:
            functions = python_functions(lines)
        elif is_script(name, lines):
            functions = shell_functions(lines)
        else:
            continue
        for function, line, length in functions:
            if length > FUNCTION_MAX:
                yield "%s:%d: %s has %d lines" % (name, line, function, length)


def line_length(files):
    """lines of code are at most 100 columns"""
    for name, lines in files.items():
        if is_script(name, lines) or name.endswith(("meson.build", "Kconfig")):
            for number, line in enumerate(lines, 1):
                # A tab is 8 columns wide; a URL cannot be broken.
                if len(line.expandtabs(8)) > COLUMNS_MAX and "://" not in line:
                    yield "%s:%d: %d columns" % (name, number, len(line.expandtabs(8)))


def trailing_space(files):
    """no trailing space, no missing newline at the end"""
    for name, lines in files.items():
        if name.endswith((".patch", ".hex", ".svg")):
            continue
        for number, line in enumerate(lines, 1):
            if line != line.rstrip():
                yield "%s:%d: trailing space" % (name, number)
        if lines[-1]:
            yield "%s: no newline at the end" % name


def tabs(files):
    """tabs only where the kernel's style applies, and in makefiles"""
    folders = ("guest-driver/", "include/", "tests/guest-programs/kernel-")
    for name, lines in files.items():
        allowed = name.startswith(folders) or name == "debian/rules"
        if is_script(name, lines) and not allowed:
            for number, line in enumerate(lines, 1):
                if line.startswith("\t"):
                    yield "%s:%d: tab" % (name, number)


def leftovers(files):
    """no words of unfinished work"""
    for name, lines in files.items():
        for number, line in enumerate(lines, 1):
            m = LEFTOVERS.search(line)
            if m:
                yield "%s:%d: %s" % (name, number, m[1])


def machine_paths(files):
    """no paths of one machine"""
    for name, lines in files.items():
        for number, line in enumerate(lines, 1):
            m = MACHINE.search(line)
            if m and not (name == "tests/style/tidy.py" or "/root" in m[0] and vm_path(name)):
                yield "%s:%d: %s" % (name, number, m[0])


def vm_path(name):
    """Whether a script may name folders inside a guest, whose root user has a home."""
    folders = ("tools/", "tests/vm/", "staghorn")
    return name.startswith(folders) or name == "configure"


def spdx(files):
    """each file of code names its license in the first lines"""
    for name, lines in files.items():
        if not (is_script(name, lines) or name.endswith(("meson.build", "Kconfig", "Makefile"))):
            continue
        wanted = next(text for prefix, text in LICENSES if name.startswith(prefix))
        tag = "SPDX-License-" "Identifier: "
        found = next((x.split(tag)[1] for x in lines[:4] if tag in x), None)
        if found is None:
            yield "%s: no SPDX line" % name
        elif found.replace("*/", "").strip().strip("()") != wanted:
            yield "%s: license %s, expected %s" % (name, found.strip(), wanted)


def includes(lines):
    """(line number, path) of the includes in quotes."""
    for number, line in enumerate(lines, 1):
        m = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if m:
            yield number, m[1]


def layers(files):
    """includes point down"""
    for name, lines in files.items():
        folder = str(Path(name).parent)
        for number, path in includes(lines) if name.endswith(C) else ():
            first = path.split("/")[0] if "/" in path else ""
            layer = str(Path(path).parent)
            where = "%s:%d: includes %s" % (name, number, path)
            if folder in LAYERS and first in LAYER_NAMES and layer not in LAYERS[folder]:
                yield where
            if folder.startswith("hw/core") and first == ".." or ".." in path.split("/"):
                yield where
            if name.startswith(("hw/core/", "hw/net/")) and first in QEMU_FOLDERS - LAYERS.get(
                folder, set()
            ):
                yield where
            if name.startswith("include/") and first not in ("", "asm", "linux", "staghorn"):
                yield where


# Two implementations of one interface, of which a program links one.
TWO_IMPLEMENTATIONS = {"qtest"}


def marks(files):
    """marks for tools/build/check stand on lines of their own"""
    for name, lines in files.items():
        for number, line in enumerate(lines, 1) if name.startswith("tests/vm/") else ():
            if re.search(r"\S.*# (?:timeout|alone): ", line):
                yield "%s:%d: %s" % (name, number, line.strip())


def tags(files):
    """a tag names one struct, union or enum"""
    first = {}
    for name, lines in files.items():
        for number, line in enumerate(lines, 1) if name.endswith(C) else ():
            m = re.match(r"(?:typedef )?(?:static )?(?:const )?(?:struct|union|enum) (\w+) {", line)
            if m and m[1] not in TWO_IMPLEMENTATIONS:
                where = first.setdefault(m[1], "%s:%d" % (name, number))
                if where != "%s:%d" % (name, number):
                    yield "%s:%d: %s is at %s, too" % (name, number, m[1], where)


def file_names(files):
    """no two sources of hw/ have the same name"""
    first = {}
    for name in files:
        if name.startswith("hw/") and name.endswith(C):
            other = first.setdefault(Path(name).name, name)
            if other != name:
                yield "%s: %s has that name, too" % (name, other)


def header_guards(files):
    """each header has an include guard"""
    for name, lines in files.items():
        text = "\n".join(lines)
        if (
            name.endswith(".h")
            and not re.search(r"^#ifndef (\w+)\n#define \1\b", text, re.M)
            and "#pragma once" not in text
        ):
            # QEMU's convention for trace.h is one line that includes the generated header.
            if not name.endswith("/trace.h"):
                yield "%s: no include guard" % name


def one_title(files):
    """each document has exactly one title"""
    for name, lines in files.items():
        if name.endswith(".md"):
            code, titles = False, 0
            for line in lines:
                code ^= line.startswith("```")
                titles += line.startswith("# ") and not code
            if titles != 1:
                yield "%s: %d titles" % (name, titles)


def module_lists(files):
    """a package's opening names each of its modules"""
    for name, lines in files.items():
        if name.endswith("/__init__.py"):
            folder = name[: -len("__init__.py")]
            there = {p.name for p in (TOP / folder).glob("*.py")} - {"__init__.py"}
            named = set(re.findall(r"^(\w+\.py) ", "\n".join(lines), re.M))
            for module in sorted(there - named):
                yield "%s: does not name %s" % (name, module)
            for module in sorted(named - there):
                yield "%s: names %s, which is not there" % (name, module)


RULES = (
    file_length,
    function_length,
    line_length,
    trailing_space,
    tabs,
    leftovers,
    machine_paths,
    spdx,
    layers,
    tags,
    file_names,
    header_guards,
    one_title,
    module_lists,
)


def main():
    files = load()
    print("1..%d" % len(RULES))
    good = True
    for number, rule in enumerate(RULES, 1):
        findings = list(rule(files))
        for finding in findings:
            print("# " + finding)
        print("%s %d - %s" % ("not ok" if findings else "ok", number, rule.__doc__))
        good = good and not findings
    if not files:
        print("Bail out! no files found")
        good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
