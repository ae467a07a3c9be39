#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compiles our provider for rdma-core of other Debian releases (docs/kernels.md), with warnings as
# errors, and runs its tests:
#
#     tools/guest/providers.sh [--libraries] [SUITE...]      [sid bookworm]
#
#   src-rdma-core-SUITE   the source of the suite's rdma-core; VERSION is that of its package
#   provider-SUITE        the provider, VERSION, log (what was said) and tap (of the tests).  If it
#                         cannot be compiled for an rdma-core that is newer than those of $known,
#                         there is no tap, and the step says so.
#   guest-rdma-core-SUITE  with --libraries: the suite's libibverbs and librdmacm, programs of it
#                         that tests run, and our provider, for VMs (SG_RDMA_CORE, own-kernel.sh):
#                         root/ is put over the guest's image; VERSION as above
#
# The compiler is that of the guest's tree.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"
. "$SG_TOP/tools/guest/tree.sh"
. "$SG_TOP/tools/guest/known.sh"

# Versions for which the provider is known to compile.
known='44.* 56.* 65.*'

compile() {
    local program
    enter_tree
    build_provider "$1"
    for program in "$in_tree_work"/out/bin/staghorn-test-*; do
        echo "# ${program##*/}"
        in_tree "out/bin/${program##*/}"
    done > "$SG_OUT/tap"
}

make_provider() {
    local source version
    source=$(sg_product "src-rdma-core-$1")
    version=$(cat "$source/VERSION")
    echo "$version" > "$SG_OUT/VERSION"
    # A command of a condition would go on after an error.
    (compile "$source/src") > "$SG_OUT/log" 2>&1 &
    wait $! && return
    cat "$SG_OUT/log"
    [ ! -e "$SG_OUT/tap" ] || cat "$SG_OUT/tap"
    is_known "$version" "$known" && return 1
    rm -f "$SG_OUT/tap"
    echo "rdma-core $version is newer than those that the provider is known to compile for."
}

# Debian's providers of the image are of another version, so these libraries read the names of
# providers in a folder that has only ours.
programs='rping ucmatose ibv_devinfo ibv_asyncwatch ibv_rc_pingpong ibv_srq_pingpong'

make_libraries() {
    local source program root=$SG_OUT/root libdir=usr/lib/x86_64-linux-gnu
    source=$(sg_product "src-rdma-core-$1")
    enter_tree
    build_provider "$source/src" "-DCMAKE_INSTALL_SYSCONFDIR=/etc/rdma-core-$1"
    # shellcheck disable=SC2086  # words: names of targets
    in_tree ninja -C out -j "$SG_JOBS" $programs
    mkdir -p "$root/usr/bin" "$root/etc"
    mv "$SG_OUT/usr/lib" "$root/usr/lib"
    mv "$SG_OUT/etc" "$root/etc/rdma-core-$1"
    rm -rf "${SG_OUT:?}"/{tests,usr}
    cp -a "$in_tree_work"/out/lib/lib{ibverbs,rdmacm}.so.1* "$root/$libdir/"
    for program in $programs; do
        in_tree strip "out/bin/$program"
        cp "$in_tree_work/out/bin/$program" "$root/usr/bin/"
    done
    cp "$source/VERSION" "$SG_OUT/VERSION"
}

libraries=
if [ "${1:-}" = --libraries ]; then
    libraries=yes
    shift
fi
[ $# -gt 0 ] || set -- sid bookworm
guest_tree
for suite; do
    sg_source_rdma_core_of "$suite"
    version=$(cat "$SG_OUT/VERSION")
    rm -f "$SG_BUILD/products/provider-$suite" # if this fails, the test is not to find the last one
    sg_step "provider-$suite" "compiling our provider for rdma-core $version" \
        "@$(sg_product guest-tree)" "@$(sg_product "src-rdma-core-$suite")" \
        "$SG_TOP/guest-driver/provider" "$SG_TOP/include/staghorn" "$SG_TOP/tests/unit/provider" \
        "$SG_TOP/tests/lib/tap.h" @provider-1 -- make_provider "$suite"
    [ -z "$libraries" ] || sg_step "guest-rdma-core-$suite" \
        "compiling rdma-core $version for VMs" "@$(sg_product "provider-$suite")" \
        "@$programs" @libraries-1 -- make_libraries "$suite"
done
