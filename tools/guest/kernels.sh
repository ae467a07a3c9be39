#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compiles our driver for the kernels of other Debian releases (docs/kernels.md), with warnings as
# errors:
#
#     tools/guest/kernels.sh [--images] [SUITE...]      [bookworm trixie-backports]
#
#   kernel-headers-SUITE   packages of the suite's newest headers; KERNEL is their release
#   kernel-image-SUITE     with --images: these packages and that of the kernel, for up --kernel
#   kernel-driver-SUITE    staghorn.ko, KERNEL and the compiler's output (log).  If it cannot be
#                          compiled for a kernel that is newer than those of $known, there is no
#                          staghorn.ko, and the step says so.
#
# The cache keeps the packages that it has; without kernel-headers-SUITE-* there, the newest are
# fetched.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"
. "$SG_TOP/tools/guest/tree.sh"
. "$SG_TOP/tools/guest/known.sh"

# Kernels that the driver is known to compile for.
known='6.1.* 6.12.* 7.2.* 7.3.*'

# depends PACKAGE PATTERN: the packages that it depends on and that match the pattern.
depends() {
    sg_apt apt-cache depends "$1" | sed -n 's/^ *Depends: //p' | grep -E "$2"
}

make_headers() {
    local sg__apt_dir=$SG_CACHE/apt-$1 newest
    cd "$SG_OUT" || return
    sg_apt_update
    newest=$(depends linux-headers-amd64 '^linux-headers-.*-amd64$' | head -n 1)
    [ -n "$newest" ] || {
        echo "the mirror has no linux-headers-amd64 of $1"
        return 1
    }
    # shellcheck disable=SC2046  # packages' names
    sg_apt apt-get download "$newest" $(depends "$newest" '^linux-(headers|kbuild)-')
    echo "${newest#linux-headers-}" > KERNEL
}

# The mirror may have gone on to another release since.
make_image_packages() {
    local sg__apt_dir=$SG_CACHE/apt-$1 headers release
    headers=$(sg_product "kernel-headers-$1")
    cd "$SG_OUT" || return
    sg_apt_update
    release=$(cat "$headers/KERNEL")
    # Since Linux 7 the package of the image only depends on others.
    # shellcheck disable=SC2046  # packages' names
    sg_apt apt-get download "linux-image-$release" \
        $(depends "linux-image-$release" '^linux-(base|binary|modules)-[0-9]') || {
        echo "To use the newest kernel of $1, remove $headers."
        return 1
    }
    cp "$headers"/*.deb .
}

# Headers of a kernel that a newer compiler built may have attributes that ours does not know.
compile() {
    local headers
    headers=$(packaged_headers "$1") || return
    in_tree make -C "$headers" -j "$SG_JOBS" "KCFLAGS=-Werror $2" \
        "M=${in_tree_work#"$tree"}/guest-driver/kernel" modules
}

make_driver() {
    local product release deb flags=
    product=$(sg_product "kernel-headers-$1")
    release=$(cat "$product/KERNEL")
    [ "$1" != sid ] || flags=-Wno-attributes
    enter_tree
    for deb in "$product"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -C "$in_tree_work" -xf - --no-same-owner
    done
    driver_sources "$in_tree_work"
    echo "$release" > "$SG_OUT/KERNEL"
    if (compile "$release" "$flags") > "$SG_OUT/log" 2>&1; then
        cp "$in_tree_work/guest-driver/kernel/staghorn.ko" "$SG_OUT/"
        strip --strip-debug "$SG_OUT/staghorn.ko"
        return
    fi
    cat "$SG_OUT/log"
    is_known "$release" "$known" && return 1
    echo "Linux $release is newer than those that the driver is known to compile for."
}

images=
if [ "${1:-}" = --images ]; then
    images=yes
    shift
fi
[ $# -gt 0 ] || set -- bookworm trixie-backports
guest_tree
for suite; do
    sg_step "kernel-headers-$suite" "fetching the kernel headers of $suite" @headers-2 \
        -- make_headers "$suite"
    rm -f "$SG_BUILD/products/kernel-driver-$suite" # as in providers.sh
    sg_step "kernel-driver-$suite" \
        "compiling our driver for Linux $(cat "$(sg_product "kernel-headers-$suite")/KERNEL")" \
        "@$(sg_product guest-tree)" "@$(sg_product "kernel-headers-$suite")" \
        "$SG_TOP/guest-driver/kernel" "$SG_TOP/include/staghorn" @driver-2 \
        -- make_driver "$suite"
    [ -z "$images" ] || sg_step "kernel-image-$suite" "fetching the kernel of $suite" \
        "@$(sg_product "kernel-headers-$suite")" @image-2 -- make_image_packages "$suite"
done
