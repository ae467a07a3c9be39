#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the root file system of VMs without a disk: tools/guest/netboot.sh
#
# $SG_BUILD/guest/netroot.gz is an initramfs archive, loaded after initrd: a small ext4 image,
# made of files of the guest's tree (tools/guest/netroot), and the module that mounts it.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"
. "$SG_TOP/tools/guest/tree.sh"

guest=$SG_TOP/tools/guest
packages="base-files libc-bin bash coreutils dash grep sed mawk findutils util-linux mount procps
    kmod iproute2 iputils-ping ethtool tar rdma-core ibverbs-utils ibverbs-providers librdmacm1t64
    rdmacm-utils perftest"

# Root owns all files, whoever builds.
fill_image() {
    mke2fs -q -t ext4 -O ^metadata_csum,^has_journal,^ea_inode -m 0 -E root_owner=0:0 \
        -L netroot -d "$SG_OUT/root" "$SG_OUT/boot/netroot.img" 112M
}

make_netroot() {
    local tree version
    tree=$(sg_product guest-tree)/tree
    version=$(cat "$(sg_product guest-tree)/KERNEL")
    mkdir -p "$SG_OUT/root" "$SG_OUT/boot/modules/$version"
    # shellcheck disable=SC2086
    "$guest/netroot" "$tree" $packages > "$SG_OUT/FILES"
    tar -C "$tree" --no-recursion -cf - -T "$SG_OUT/FILES" | tar -C "$SG_OUT/root" -xf -
    chmod -R u+rwX "$SG_OUT/root"
    export -f fill_image
    export SG_OUT
    as_owner bash -e -c fill_image
    xz -dc "$tree/usr/lib/modules/$version/kernel/drivers/block/loop.ko.xz" \
        > "$SG_OUT/boot/modules/$version/loop.ko"
    (cd "$SG_OUT/boot" && find . -mindepth 1 | LC_ALL=C sort |
        cpio --quiet --create --format=newc --owner=0:0 --reproducible) | gzip -6 -n \
        > "$SG_OUT/netroot.gz"
    rm -rf "${SG_OUT:?}/root" "${SG_OUT:?}/boot"
}

sg_plan 2
guest_tree
sg_step guest-netroot "packing the root of VMs without a disk" "@$(sg_product guest-tree)" \
    "$guest/netroot" @netroot-2 "@$packages" -- make_netroot
ln -sfn "$(sg_product guest-netroot)/netroot.gz" "$SG_BUILD/guest/netroot.gz"
