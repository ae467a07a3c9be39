#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite big-endian of tools/build/check: unit tests and simulator as programs for s390x.

Usage: tools/build/big_endian.py    prints the ninja targets of SELECTED

tools/build/big-endian.sh builds them, and $SG_BUILD/bin/s390x-run runs one in QEMU.
"""
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

SUITE = "big-endian"
# What runs without being asked for: a second each, and each has another kind of octets: headers,
# entries of queues, commands, TCP's options, files, random numbers that a seed gives.
SELECTED = (
    *("base/bytes", "base/crc32c", "base/crc32m", "base/hash", "base/masked_atomic"),
    *("wire/ddp", "wire/fpdu", "wire/mpa_frame", "wire/mpe", "wire/rdma_tcp", "wire/rdmap"),
    *("wire/terminate", "wire/vectors", "proto/rt_setup", "proto/atomic_resp", "flash/image"),
    *("net/checksum", "net/stall", "provider/wqe", "trace/round_trip", "verbs/admin"),
    *("verbs/data", "verbs/mw", "verbs/imm"),
)
SLOWER = 20  # than without emulation, on a busy machine
TESTS = "big-endian-provider/obj/bin"  # where the provider's are


def emulated(build, programs, everything):
    """The programs of this suite; programs: those of meson."""
    run = str(build / "bin" / "s390x-run")
    found = []
    for program in programs:
        if everything or program.name in SELECTED:
            words = program.fast.split() or program.command[1:]
            command = [run, program.command[0], *words]
            limit = program.timeout * SLOWER
            found.append(
                replace(program, suite=SUITE, command=command, timeout=limit, fast="", cases=[])
            )
    for path in sorted((build / TESTS).glob("staghorn-test-*")) if found and everything else ():
        name = "provider/" + path.name.rpartition("-")[2]
        command = [run, str(path)]
        found.append(replace(found[0], name=name, command=command, tap=True))
    return found


def targets(tests):
    """Their names for ninja, from meson's list of all."""
    found = {test["name"]: Path(test["cmd"][0]) for test in tests}
    missing = [name for name in SELECTED if name not in found]
    if missing:
        raise SystemExit("big_endian.py: no test has the name " + ", ".join(missing))
    return ["tests/" + found[name].name for name in SELECTED]


if __name__ == "__main__":
    listed = Path(os.environ["SG_BUILD"], "big-endian/meson-info/intro-tests.json")
    sys.stdout.write("\n".join(targets(json.loads(listed.read_text()))) + "\n")
