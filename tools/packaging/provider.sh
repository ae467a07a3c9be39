#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the provider for the machine's rdma-core: tools/packaging/provider.sh [fetch]
#
# $SG_BUILD/deb/provider gets root, the files to be installed, and VERSION, that of rdma-core.  The
# source is Debian's of the machine's release, or the folder in RDMA_CORE: the interface between
# libibverbs and its providers is private to one version.  Exit status 77: the mirror does not have
# that source.  With "fetch" it only fetches it.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"

suite=$(sg_host_suite)
if [ "${1:-}" = fetch ]; then
    sg_source_rdma_core_of "$suite"
    exit
fi
sg_plan 2
version=$(dpkg-query -W -f '${Version}' libibverbs-dev 2>/dev/null | sed 's/-[^-]*$//')
[ -n "$version" ] || sg_die "libibverbs-dev is missing; ./configure installs it"
out=$SG_BUILD/deb/provider

if [ -n "${RDMA_CORE:-}" ]; then
    [ -r "$RDMA_CORE/CMakeLists.txt" ] || sg_die "RDMA_CORE=$RDMA_CORE has no source of rdma-core"
    source=$RDMA_CORE
else
    "$0" fetch || exit 77
    source=$(sg_product "src-rdma-core-$suite")/src
fi
found=$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' "$source/CMakeLists.txt")
[ "$found" = "$version" ] ||
    sg_die "$source is rdma-core ${found:-of an unknown version}; libibverbs is $version"

# The flags are Debian's for packages.
build_provider() {
    local flag
    rm -rf "$out"
    mkdir -p "$out"
    for flag in CFLAGS CPPFLAGS LDFLAGS; do
        export "$flag=$(dpkg-buildflags --get $flag)"
    done
    export CFLAGS="$CFLAGS $CPPFLAGS"
    "$SG_TOP/guest-driver/provider/build" "$source" "$out"
    echo "$version" > "$out/VERSION"
}

sg_local deb-provider "compiling the provider for rdma-core $version" "@$source" "@$version" \
    "$SG_TOP/guest-driver/provider" "$SG_TOP/include/staghorn" "$SG_TOP/tests/unit/provider" \
    @1 -- build_provider
