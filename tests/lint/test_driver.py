#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the kernel driver, and the modules of docs/course, with Debian's kernel headers: no
warning of gcc or sparse.

What was found clean is not compiled again.

# timeout: 1200
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import lint
from lint import BUILD, TOP, files

# Compiles a copy inside the guest's tree, in the same way as tools/guest/build.sh.
SCRIPT = r"""
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/guest/tree.sh"
(
    set -e
    enter_tree
    version=$(cat "$(sg_product guest-tree)/KERNEL")
    mkdir -p "$in_tree_work/guest-driver" "$in_tree_work/include"
    cp -r "$SG_TOP/guest-driver/$WHAT" "$in_tree_work/guest-driver/$WHAT"
    cp -r "$SG_TOP/include/staghorn" "$in_tree_work/include/staghorn"
    [ -z "$SPOIL" ] || printf '%s\n' "$SPOIL" >> "$in_tree_work/guest-driver/$WHAT/main.c"
    ln -s "guest-driver/$WHAT" "$in_tree_work/src"
    in_tree make -C "/usr/lib/modules/$version/build" "M=${in_tree_work#"$tree"}/src" \
        "STAGHORN_INCLUDE=${in_tree_work#"$tree"}/include" \
        W=1 C=2 CF=-D__CHECK_ENDIAN__ modules
)
"""
# One defect for the compiler and one for sparse prove that both run.
DEFECTS = (
    "static int spoilt(void) { int unused; return 0; }\n"
    "__le32 spoilt_order(u32 x); __le32 spoilt_order(u32 x) { return x; }\n"
)


def compiled(what, spoil=""):
    """Builds a folder of guest-driver; returns output and status."""
    run = subprocess.run(
        ["bash", "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "SG_TOP": str(TOP),
            "SG_BUILD": str(BUILD),
            "WHAT": what,
            "SPOIL": spoil,
        },
    )
    return run.stdout + run.stderr, run.returncode


def complaints(output):
    """Lines that are warnings or errors; a note that Debian's kernel has no BTF does not matter."""
    return [
        x
        for x in output.splitlines()
        if re.search(r"\b(warning|error)\b:?", x)
        and "BTF" not in x
        and "the compiler differs" not in x
    ]


def known(what):
    """The one key of all that the result depends on."""
    folders = ("guest-driver/%s/" % what, "include/staghorn/")
    names = [n for n in files.tracked() if n.startswith(folders)]
    tree = os.readlink(BUILD / "products" / "guest-tree")
    sources = [part for n in names for part in (n, TOP / n)]
    return {what: lint.key(Path(__file__), lint.version("sparse"), tree, *sources)}


def examined(what):
    """What is wrong with a folder; [] at once if it was found clean before."""
    if not (BUILD / "products" / "guest-tree").exists():
        raise lint.Missing("the guest's tree is not built: run make lint or make guest")
    keys = known(what)
    if not lint.unknown(keys):
        return []
    output, status = compiled(what)
    found = complaints(output) or (output.splitlines()[-20:] if status else [])
    if not found and what == "kernel":
        output, _ = compiled(what, DEFECTS)
        seen = "\n".join(complaints(output))
        if "unused" not in seen or "incorrect type" not in seen:
            found += ["defects that were added are not seen:", *output.splitlines()[-20:]]
    lint.clean(keys, [] if found else [what])
    return found


def driver():
    """the driver compiles without a warning of gcc W=1 and sparse, and a defect is seen"""
    return examined("kernel")


def course():
    """the modules of docs/course compile without a warning of gcc W=1 and sparse"""
    return examined("course")


if __name__ == "__main__":
    sys.exit(lint.main([driver, course]))
