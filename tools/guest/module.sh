#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compiles a kernel module of the user for the guest's kernel, in the guest's tree:
#
#     tools/guest/module.sh FOLDER OUT [SUBFOLDER]
#
# FOLDER has a Kbuild (with SUBFOLDER: FOLDER/SUBFOLDER has it, and may name files of its
# siblings).  $(STAGHORN_INCLUDE) in it is the folder of <staghorn/regs.h>.  The modules go to the
# folder OUT, and what the compiler says (W=1) to standard output.  make guest must have run.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/guest/tree.sh"

[ $# -ge 2 ] || sg_die "usage: module.sh FOLDER OUT [SUBFOLDER]"
[ -d "$1" ] || sg_die "$1 is no folder"
[ -e "$1${3:+/$3}/Kbuild" ] || [ -e "$1${3:+/$3}/Makefile" ] ||
    sg_die "$1${3:+/$3} has neither Kbuild nor Makefile"
[ -d "$2" ] || sg_die "$2 is no folder"

build() (
    set -e
    enter_tree
    version=$(cat "$(sg_product guest-tree)/KERNEL")
    cp -rL "$1" "$in_tree_work/module"
    mkdir "$in_tree_work/include"
    cp -r "$SG_TOP/include/staghorn" "$in_tree_work/include/staghorn"
    inside=${in_tree_work#"$tree"}
    in_tree make -s -j "$SG_JOBS" -C "/usr/lib/modules/$version/build" W=1 \
        "M=$inside/module${3:+/$3}" "STAGHORN_INCLUDE=$inside/include" modules
    cp "$in_tree_work/module${3:+/$3}"/*.ko "$2/"
    strip --strip-debug "$2"/*.ko
)

# gcc says where an error is by the path in the tree; Debian's kernel has no BTF for modules.
build "$@" 2>&1 | sed -E '/Skipping BTF generation/d; s,/?build\.[A-Za-z0-9]{6}/module/,,g'
exit "${PIPESTATUS[0]}"
