#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel driver against Debian's kernel headers: no warning of gcc or sparse.

# timeout: 400
"""
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SG_BUILD", TOP / "build"))

# Compiles a copy inside the guest's tree; the same way as tools/guest/build.sh.
SCRIPT = r"""
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/guest/tree.sh"
(
    set -e
    enter_tree
    version=$(cat "$(sg_product guest-tree)/KERNEL")
    mkdir -p "$in_tree_work/guest-driver" "$in_tree_work/include"
    cp -r "$SG_TOP/guest-driver/kernel" "$in_tree_work/guest-driver/kernel"
    cp -r "$SG_TOP/include/staghorn" "$in_tree_work/include/staghorn"
    [ -z "$SPOIL" ] || printf '%s\n' "$SPOIL" >> "$in_tree_work/guest-driver/kernel/main.c"
    ln -s guest-driver/kernel "$in_tree_work/src"
    in_tree make -C "/usr/lib/modules/$version/build" "M=${in_tree_work#"$tree"}/src" \
        W=1 C=2 CF=-D__CHECK_ENDIAN__ modules
)
"""
# One defect for the compiler, one for sparse: proof that both look.
DEFECTS = ("static int spoilt(void) { int unused; return 0; }\n"
           "__le32 spoilt_order(u32 x); __le32 spoilt_order(u32 x) { return x; }\n")


def compile_driver(spoil=""):
    """Output and status of the build."""
    run = subprocess.run(["bash", "-c", SCRIPT], capture_output=True, text=True, check=False,
                         env={**os.environ, "SG_TOP": str(TOP), "SG_BUILD": str(BUILD),
                              "SPOIL": spoil})
    return run.stdout + run.stderr, run.returncode


def complaints(output):
    """Lines that are warnings or errors; Debian's kernel has no BTF to add, which is no matter."""
    return [x for x in output.splitlines() if re.search(r"\b(warning|error)\b:?", x)
            and "BTF" not in x and "the compiler differs" not in x]


def main():
    if not (BUILD / "products" / "guest-tree").exists():
        print("1..0 # SKIP the guest is not built; run make guest")
        return 0
    print("1..2")
    output, status = compile_driver()
    clean = status == 0 and not complaints(output)
    if not clean:
        print("\n".join("# " + x for x in complaints(output) or output.splitlines()[-20:]))
    print("%s 1 - the driver compiles without a warning of gcc W=1 and sparse"
          % ("ok" if clean else "not ok"))
    output, _ = compile_driver(DEFECTS)
    found = "\n".join(complaints(output))
    seen = "unused" in found and "incorrect type" in found
    if not seen:
        print("\n".join("# " + x for x in output.splitlines()[-20:]))
    print("%s 2 - defects added to it are seen by both" % ("ok" if seen else "not ok"))
    return 0 if clean and seen else 1


if __name__ == "__main__":
    sys.exit(main())
