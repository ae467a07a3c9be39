#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the fuzz target "guest":  tools/fuzz_guest.py TOP QEMU-BUILD OUT [--fast]

The program is the QEMU of the VMs as a library in the process of libFuzzer.  QEMU's own objects are
used as they are; our files are compiled again by clang, with coverage, ASan and UBSan (with --fast
without the sanitizers).  So an input's coverage is that of the device alone, and the build takes a
minute, because it does not build a second QEMU.  This script only writes OUT/build.ninja; ninja
does the rest.
"""
import json
import re
import shlex
import sys
from pathlib import Path

FLAGS = "-g1 -O1 -fsanitize=fuzzer-no-link -fno-omit-frame-pointer -w"
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
# Flags that gcc knows and Debian 12's clang does not.
UNKNOWN = ("-ftrivial-auto-var-init=zero", "-fzero-call-used-regs=used-gpr")
TESTS = (
    "tests/fuzz/guest_client.c",
    "tests/fuzz/guest_command.c",
    "tests/fuzz/guest_target.c",
    "tests/fuzz/guest_world.c",
    "tests/qtest/driver.c",
    "tests/qtest/machine.c",
    "tests/lib/flash_make.c",
    "tests/lib/mini_driver.c",
    "tests/lib/test_host.c",
)
MAIN = "system_main.c.o"  # libFuzzer has its own main()
INPROC, LIKE = "hw/device/inproc.c", "hw_staghorn_device_host.c.o"


def is_ours(path):
    return "staghorn" in path


def compiler_words(entry):
    """The flags of a compile command, without compiler, input and outputs."""
    words, rest = shlex.split(entry["command"]), []
    words = words[next(i for i, word in enumerate(words) if word.startswith("-")) :]
    skip = 0
    for word in words:
        if skip:
            skip -= 1
        elif word in ("-o", "-MF", "-MQ", "-c"):
            skip = 1
        elif word != "-MD" and word not in UNKNOWN and not word.startswith("-W"):
            rest.append(word)
    return rest


def link_line(build):
    """The objects and arguments of QEMU's link command."""
    text = (build / "build.ninja").read_text()
    block = re.search(r"^build qemu-system-x86_64: \S+ ([\s\S]*?)\n\n", text, re.M).group(1)
    inputs = block.split("\n")[0].split(" | ")[0].split()
    arguments = re.search(r"^ LINK_ARGS = (.*)$", block, re.M).group(1).split()
    return inputs, arguments


class Rules:
    def __init__(self, build, fast):
        self.build = build
        self.sanitizers = "" if fast else SANITIZERS
        self.lines = [
            "rule cc",
            "  command = cd %s && clang %s %s $words -MD -MF $out.d -c $in -o $out"
            % (build, FLAGS, self.sanitizers),
            "  description = compiling $in",
            "  depfile = $out.d",
            "  deps = gcc",
            "rule link",
            "  command = cd %s && clang -fsanitize=fuzzer %s -o $out @$out.rsp"
            % (build, self.sanitizers),
            "  description = linking $out",
            "  rspfile = $out.rsp",
            "  rspfile_content = $words",
        ]
        self.objects = []

    def compile(self, out, source, words):
        self.objects.append(str(out))
        self.lines.append("build %s: cc %s" % (out, source))
        text = " ".join(shlex.quote(word) for word in words)
        self.lines.append("  words = %s" % text.replace("$", "$$"))

    def link(self, out, inputs, arguments):
        mine = " ".join(self.objects)
        inputs = [word for word in inputs if not is_ours(word) and not word.endswith(MAIN)]
        arguments = [word for word in arguments if not is_ours(word)]
        others = " ".join(str(self.build / word) for word in inputs)
        self.lines.append("build %s: link %s | %s" % (out, mine, others))
        self.lines.append("  words = %s %s %s" % (mine, others, " ".join(arguments)))


def main():
    top, build, out = (Path(word).resolve() for word in sys.argv[1:4])
    rules = Rules(build, "--fast" in sys.argv)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if not is_ours(entry["output"]) or "trace-hw_staghorn" in entry["output"]:
            continue
        name = entry["output"].replace("/", "_")
        source = (build / entry["file"]).resolve()
        words = compiler_words(entry)
        rules.compile(out / name, source, words)
        if entry["output"].endswith(LIKE):
            rules.compile(out / "inproc.o", top / INPROC, words)
            glib = [word for word in words if "glib" in word]
    folders = ["hw/core", "hw/device", "include", "tests/lib", "tests/qtest"]
    words = ["-std=gnu11", "-D_GNU_SOURCE", "-fPIE"]
    words += ["-I%s" % (top / folder) for folder in folders] + glib
    for source in TESTS:
        rules.compile(out / ("tests_" + Path(source).name + ".o"), top / source, words)
    rules.link(out / "fuzz-guest", *link_line(build))
    out.mkdir(parents=True, exist_ok=True)
    (out / "build.ninja").write_text("\n".join(rules.lines) + "\n")


if __name__ == "__main__":
    main()
