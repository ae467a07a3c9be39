#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes a disk image with more of Debian, for ./staghorn up --packages:
#
#     tools/guest/packages.sh base|consumers PACKAGE...
#
# The product guest-packages has packages.img: the packages of that image (of base without compiler
# and headers), those named, all that they depend on, and the modules of guest-tree's kernel.
# tools/guest/build.sh must have run.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"
. "$SG_TOP/tools/guest/tree.sh"

[ $# -ge 2 ] || sg_die "usage: packages.sh base|consumers PACKAGE..."
base=$1
shift
more=$(printf '%s\n' "$@" | LC_ALL=C sort -u)

# Names first what Debian does not have; mmdebstrap would say it in its own way, and late.
check_packages() {
    local name missing=()
    sg_apt_update
    for name in $more; do
        sg_apt apt-cache show "$name" > "$SG_OUT/found" 2> "$SG_OUT/error"
        [ -s "$SG_OUT/found" ] || missing+=("$name")
        rm -f "$SG_OUT/found" "$SG_OUT/error"
    done
    [ ${#missing[@]} -eq 0 ] || {
        echo "Debian's $SG_SUITE has no package: ${missing[*]}"
        return 1
    }
}

# The lists are those of the images that we build.
wanted_packages() {
    {
        if [ "$base" = consumers ]; then
            consumers_packages | tr , '\n'
        else
            packages_of packages |
                grep -vxF -f <(packages_of packages.consumers | sed -n 's/^-//p')
            printf '%s\n' libpmem1 libpmem2 libprotobuf-c1 zlib1g e2fsprogs
        fi
        echo "$more"
    } | LC_ALL=C sort -u | paste -s -d ,
}

make_packages() {
    local size
    check_packages || return 1
    check_namespaces
    run_mmdebstrap "$(wanted_packages)" customize.consumers
    # Half as much again as the files have, for what a file system needs besides.
    size=$(($(stat -c %s "$SG_OUT/tree.tar") * 3 / 2 / 1048576 + 400))
    export -f make_image
    as_owner bash -e -c 'make_image packages.img "$0" "$1"' \
        "$(sg_product guest-tree)/tree/usr/lib/modules/$(cat "$(sg_product guest-tree)/KERNEL")" \
        "${size}M"
    rm "$SG_OUT/tree.tar" "$SG_OUT/sources.list"
}

sg_plan 1
sg_step guest-packages "installing ${more//$'\n'/, } for the guest" "@$(sg_product guest-tree)" \
    "$SG_TOP/tools/guest/packages" "$SG_TOP/tools/guest/packages.consumers" \
    "$SG_TOP/tools/guest/customize.consumers" "@$base" "@$more" @packages-1 -- make_packages
echo "product: $SG_OUT"
