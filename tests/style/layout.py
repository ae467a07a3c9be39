#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the hardware contract of include/staghorn as its users compile it.

Each header is compiled alone (it must include what it needs), with its layout
assertions: as user space does, as a program without Linux headers does, as the
kernel does, and for processors of other word sizes and byte orders.  All of
them together are compiled as C++.  manual.py compares them with the manual.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
HEADERS = sorted((TOP / "include" / "staghorn").glob("*.h"))
TARGETS = ("i686", "aarch64", "riscv64", "powerpc64", "s390x")

# The parts of kernel and C library that the headers use, for compilations without either.
FAKES = {
    "linux/types.h": "".join(
        "typedef unsigned %s __u%d;\ntypedef __u%d __le%d, __be%d;\n" % (c, n, n, n, n)
        for n, c in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    )
    + "typedef __u64 __attribute__((aligned(8))) __aligned_u64;\n",
    "asm/byteorder.h": "".join(
        "#define cpu_to_le%d(x) (x)\n#define le%d_to_cpu(x) (x)\n" % (n, n) for n in (16, 32, 64)
    ),
    "linux/build_bug.h": "#define static_assert _Static_assert\n",
    "linux/stddef.h": "#define offsetof(t, m) __builtin_offsetof(t, m)\n",
    "assert.h": "#define static_assert _Static_assert\n",
}


def compile_header(header, command):
    """Diagnoses of compiling one header alone; "" if it compiles."""
    run = subprocess.run(
        command + ["-fsyntax-only", "-Werror", "-Wall", "-Wextra", "-x", "c", "-"],
        input='#include "%s"\nint unused_;\n' % header,
        text=True,
        capture_output=True,
        check=False,
    )
    return run.stderr if run.returncode else ""


def all_headers(command, headers=None):
    """Diagnoses of all headers."""
    return "\n".join(filter(None, (compile_header(h, command) for h in headers or HEADERS)))


def no_padding(_fakes):
    """structs have no hidden padding, as user space compiles them"""
    return all_headers(["gcc", "-std=gnu11", "-Wpadded", "-Wpedantic"])


def without_linux(_fakes):
    """headers compile in C11 without Linux's headers"""
    # abi.h is a contract between two Linux programs.
    return all_headers(
        ["gcc", "-std=c11", "-U__linux__", "-Wpedantic"], [h for h in HEADERS if h.name != "abi.h"]
    )


def as_kernel(fakes):
    """headers compile as in the kernel"""
    return all_headers(
        [
            "gcc",
            "-std=gnu11",
            "-D__KERNEL__",
            "-nostdinc",
            "-ffreestanding",
            "-I" + fakes,
            "-Wdeclaration-after-statement",
        ]
    )


def as_cplusplus(_fakes):
    """headers compile in C++"""
    text = "".join('#include "%s"\n' % h for h in HEADERS)
    run = subprocess.run(
        ["clang", "-std=c++17", "-fsyntax-only", "-Werror", "-Wall", "-x", "c++", "-"],
        input=text,
        text=True,
        capture_output=True,
        check=False,
    )
    return run.stderr if run.returncode else ""


def elsewhere(fakes):
    """layouts hold with other word sizes and byte orders"""
    found = ""
    for target in TARGETS:
        found += all_headers(
            [
                "clang",
                "--target=%s-linux-gnu" % target,
                "-std=gnu11",
                "-ffreestanding",
                "-Wpadded",
                "-I" + fakes,
            ]
        )
    return found


RULES = (no_padding, without_linux, as_kernel, as_cplusplus, elsewhere)


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
