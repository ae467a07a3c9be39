#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Records for `make compdb` how the guest's software is compiled.  Into $SG_BUILD/compdb go:
#
#   kernel/*.cmd                      Kbuild's record of each object of the driver
#   provider/compile_commands.json    as CMake writes it for rdma-core
#   provider/include                  the headers that CMake made
#   work                              the folder in the guest's tree of that build, now removed
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"
. "$SG_TOP/tools/guest/tree.sh"

out=$SG_BUILD/compdb

note_driver() {
    local kernel
    kernel=/usr/lib/modules/$(cat "$(sg_product guest-tree)/KERNEL")/build
    mkdir -p "$in_tree_work/guest-driver" "$in_tree_work/include" "$out/kernel"
    cp -r "$SG_TOP/guest-driver/kernel" "$in_tree_work/guest-driver/kernel"
    cp -r "$SG_TOP/include/staghorn" "$in_tree_work/include/staghorn"
    ln -s guest-driver/kernel "$in_tree_work/driver"
    in_tree make -j "$SG_JOBS" -C "$kernel" "M=${in_tree_work#"$tree"}/driver" modules
    for file in "$in_tree_work"/driver/.*.o.cmd; do
        cp "$file" "$out/kernel/$(basename "$file" | sed 's/^\.//')"
    done
}

note_provider() {
    cp -r "$(sg_product src-rdma-core)/src" "$in_tree_work/src"
    cp -r "$SG_TOP/guest-driver/provider" "$in_tree_work/src/providers/staghorn"
    cp -r "$SG_TOP/include" "$in_tree_work/src/providers/staghorn/include"
    sed -i 's|^add_subdirectory(providers/siw)|&\nadd_subdirectory(providers/staghorn)|' \
        "$in_tree_work/src/CMakeLists.txt"
    in_tree cmake -S src -B out -G Ninja -DCMAKE_BUILD_TYPE=Release -DNO_MAN_PAGES=1 \
        -DNO_PYVERBS=1 -DENABLE_STATIC=0 -DCMAKE_EXPORT_COMPILE_COMMANDS=1
    mkdir -p "$out/provider"
    cp "$in_tree_work/out/compile_commands.json" "$out/provider/"
    # These are links into the source, which is removed; paths become those of the tree.
    in_tree cp -rL out/include headers
    cp -r "$in_tree_work/headers" "$out/provider/include"
}

note_all() {
    rm -rf "$out"
    mkdir -p "$out"
    enter_tree
    echo "${in_tree_work#"$tree"}" > "$out/work"
    note_driver
    note_provider
}

sg_plan 3
guest_tree
sg_source_rdma_core
sg_local compdb-guest "asking Kbuild and CMake" "@$(sg_product guest-tree)" \
    "@$(sg_product src-rdma-core)" "$SG_TOP/guest-driver/kernel/Kbuild" \
    "$SG_TOP/guest-driver/provider/CMakeLists.txt" "$SG_TOP/tools/guest/compdb.sh" -- note_all
