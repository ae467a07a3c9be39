#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Our driver, compiled for the kernels of other Debian releases: tools/guest/kernels.sh."""

# Only make check-full builds them.
# suite: full
import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SG_BUILD", TOP / "build"))
SUITES = ("bookworm", "trixie-backports")


def product(name, suite):
    """The folder of what was made for a suite."""
    link = BUILD / "products" / ("kernel-%s-%s" % (name, suite))
    return Path(link.read_text().strip()) if link.is_file() else link.resolve()


def known():
    """The patterns of releases for which the driver has to compile."""
    script = (TOP / "tools" / "guest" / "kernels.sh").read_text()
    return re.search(r"^known='(.*)'$", script, re.M)[1].split()


def problems(suite):
    """What is wrong with the module for a suite."""
    folder = product("driver", suite)
    if not (folder / "KERNEL").exists():
        return ["%s is missing; run: tools/guest/kernels.sh" % folder]
    release = (folder / "KERNEL").read_text().strip()
    log = (folder / "log").read_text()
    module = folder / "staghorn.ko"
    if not module.exists():
        print(
            "# %s: %s is newer than those that are known, and does not compile" % (suite, release)
        )
        return ["it is known"] if any(fnmatch.fnmatch(release, one) for one in known()) else []
    found = [line for line in log.splitlines() if re.search(r"guest-driver/.*warning:", line)]
    words = ["/usr/sbin/modinfo", "-F", "vermagic", str(module)]
    magic = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return found + ([] if magic.startswith(release + " ") else ["vermagic is " + magic])


def main():
    """One case for each suite."""
    print("1..%d" % len(SUITES))
    bad = 0
    for number, suite in enumerate(SUITES, 1):
        what = "%d - the driver compiles for Linux of %s" % (number, suite)
        if not product("headers", suite).exists():
            print("ok %s # SKIP its headers were not fetched: run tools/guest/kernels.sh" % what)
            continue
        found = problems(suite)
        for line in found:
            print("# " + line)
        bad += bool(found)
        print("%sok %s" % ("not " * bool(found), what))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
