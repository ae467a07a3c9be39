# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite big-endian of tools/build/check: unit tests and simulator as programs for s390x.

tools/build/big-endian.sh builds them, and $SG_BUILD/bin/s390x-run runs one in QEMU.
"""
import shlex
from dataclasses import replace

SUITE = "big-endian"
SLOWER = 20  # than without emulation, on a busy machine
TESTS = "big-endian-provider/obj/bin"  # where the provider's are
# Environment variables with a program that a test runs.
PROGRAMS = ("SG_EXPLORE", "SG_RPCRDMA")


def emulated(build, programs):
    """The programs of this suite; programs: those of meson."""
    run = str(build / "bin" / "s390x-run")
    found = []
    for program in programs:
        words = shlex.split(program.fast) or program.command[1:]
        command = [run, program.command[0], *words]
        limit = program.timeout * SLOWER
        env = {k: run + " " + v if k in PROGRAMS else v for k, v in program.env.items()}
        found.append(
            replace(
                program, suite=SUITE, command=command, env=env, timeout=limit, fast="", cases=[]
            )
        )
    for path in sorted((build / TESTS).glob("staghorn-test-*")) if found else ():
        name = "provider/" + path.name.rpartition("-")[2]
        command = [run, str(path)]
        found.append(replace(found[0], name=name, command=command, tap=True))
    return found
