#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the provider as built for the guest: its unit tests, its symbols, its manual.

# timeout: 300
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SG_BUILD", TOP / "build"))
PROVIDER = TOP / "guest-driver/provider"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
MANUAL = "usr/share/man"

# The programs were linked for the guest, so they run in its tree.
RUN = r"""
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/guest/tree.sh"
(
    set -e
    enter_tree
    cp "$(sg_product guest-provider)/tests/$1" "$in_tree_work/program"
    in_tree ./program
)
"""


def product():
    link = BUILD / "products" / "guest-provider"
    return Path(link.read_text().strip()) if link.is_file() else link.resolve()


def run_tests(name):
    """Number of good cases and the bad lines of a program that prints TAP."""
    env = {**os.environ, "SG_TOP": str(TOP), "SG_BUILD": str(BUILD)}
    done = subprocess.run(
        ["bash", "-c", RUN, "run", name], capture_output=True, text=True, check=False, env=env
    )
    lines = done.stdout.splitlines()
    bad = [x for x in lines if x.startswith(("not ok", "# "))]
    planned = next((int(x[3:]) for x in lines if re.match(r"1\.\.\d+$", x)), -1)
    good = sum(x.startswith("ok ") for x in lines)
    if done.returncode or good != planned:
        bad += ["status %d, %d of %d" % (done.returncode, good, planned), done.stderr[-2000:]]
    return good, bad


def symbols():
    """The library exports what the header declares and nothing else."""
    library = (product() / LIBRARIES / "libstaghorn.so").resolve()
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    found = set(re.findall(r" T (\w+)@@STAGHORN_1\.\d$", listed, re.M))
    header = (PROVIDER / "staghorndv.h").read_text()
    inline = set(re.findall(r"^static inline [\w ]*?(sgdv_\w+)\(", header, re.M))
    declared = set(re.findall(r"^[a-z].*?\b(sgdv_\w+)\(", header, re.M)) - inline
    others = re.findall(r" [A-Z] (\w+)$", listed, re.M)
    bad = ["%s: not in both header and library" % x for x in sorted(found ^ declared)]
    bad += ["exported: %s" % x for x in others if x not in ("STAGHORN_1.0", "STAGHORN_1.1")]
    plugin = next((product() / LIBRARIES / "libibverbs").iterdir())
    if plugin.resolve() != library:
        bad.append("%s is not %s" % (plugin, library))
    return len(found), bad


def manual():
    """Each function has a page."""
    header = (PROVIDER / "staghorndv.h").read_text()
    functions = set(re.findall(r"^[a-z].*?\b(sgdv_\w+)\(", header, re.M))
    pages = list((product() / MANUAL).glob("man?/*"))
    text = "".join(x.read_text() for x in pages)
    return len(pages), ["%s: no page names it" % x for x in sorted(functions) if x not in text]


def manual_form():
    """groff reports nothing about any page."""
    if not shutil.which("groff"):
        return 0, "groff is missing (Debian's groff-base)"
    pages = product() / MANUAL
    files = sorted(pages.glob("man?/*"))
    bad = []
    for file in files:
        said = subprocess.run(
            ["groff", "-t", "-man", "-ww", "-Tutf8", "-I", pages, file],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        ).stderr
        # ".so" names a file that man finds and groff may not.
        bad += [x for x in said.splitlines() if "can't open" not in x]
    return len(files), bad


CASES = (
    ("posting, polling, creation against models", lambda: run_tests("staghorn-test-verbs")),
    ("Flush, Verify, Atomic Write against models", lambda: run_tests("staghorn-test-mpe")),
    ("the same without Flush in rdma-core", lambda: run_tests("staghorn-test-noflush")),
    ("regions against models", lambda: run_tests("staghorn-test-regions")),
    ("shared receive queues against models", lambda: run_tests("staghorn-test-queues")),
    ("atomics, immediates, windows against models", lambda: run_tests("staghorn-test-ops")),
    ("the library's symbols are those of staghorndv.h", symbols),
    ("the manual pages are complete", manual),
    ("the manual pages are clean", manual_form),
)


def main():
    if not (BUILD / "products" / "guest-provider").exists():
        print("1..0 # SKIP the guest is not built; run make guest")
        return 0
    print("1..%d" % len(CASES))
    failed = 0
    for number, (name, check) in enumerate(CASES, 1):
        count, bad = check()
        if isinstance(bad, str):
            print("ok %d - %s # SKIP %s" % (number, name, bad))
            continue
        for line in bad:
            print("# " + line.replace("\n", "\n# "))
        good = count > 0 and not bad
        failed += not good
        print("%s %d - %s (%d)" % ("ok" if good else "not ok", number, name, count))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
