#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Prepares a kernel of the user for VMs, for ./staghorn up --kernel:
#
#     tools/guest/own-kernel.sh [--only driver] kind=KIND release=RELEASE ... id=ID
#
#   guest-own-driver   our driver, and siw if siw=yes, for that kernel
#   guest-own-kernel   vmlinuz, initrd, config, and modules.img, a disk with its modules
#
# tools/launcher/own_kernel.py has checked the kernel; its `find` explains the words: image, config,
# modules, build are paths, id is a hash of the kernel.  KIND is tree, files or package; a package's
# image is the list of the packages of the kernel, its build that of the packages of its headers,
# with colons in between.
#
# For a tree or files the machine's own compiler builds, as it did the kernel.  For a package that
# of the guest's Debian does: programs of the header packages need Debian's C library.
#
# SG_RDMA_CORE, a product of providers.sh --libraries, gives VMs the libraries of another rdma-core.
#
# The last line of the output names the product.  tools/guest/build.sh must have run.  The cache
# keeps the newest $keep kernels.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"
. "$SG_TOP/tools/guest/tree.sh"

keep=6
only=
kind='' release='' image='' config='' modules='' build='' siw='' llvm='' id=''
while [ $# -gt 0 ]; do
    case $1 in
    --only) only=$2 && shift ;;
    kind=* | release=* | image=* | config=* | modules=* | build=* | siw=* | llvm=* | id=*)
        printf -v "${1%%=*}" %s "${1#*=}"
        ;;
    *) sg_die "unknown argument $1" ;;
    esac
    shift
done
[ -n "$kind$release$id" ] || sg_die "usage: see the head of $0"

# Unpacks the packages of the kernel, its modules and configuration into $SG_OUT/package.
unpack_package() {
    local package
    mkdir "$SG_OUT/package"
    while read -r package; do
        dpkg-deb --fsys-tarfile "$package" | tar -C "$SG_OUT/package" -xf - --no-same-owner
    done < <(tr : '\n' <<< "$image")
}

# module_sources FOLDER: our driver's in FOLDER/guest-driver/kernel, siw's in FOLDER/siw.
module_sources() {
    driver_sources "$1"
    [ -n "$siw" ] || return 0
    cp -r "$(sg_product src-siw)/src/drivers/infiniband/sw/siw" "$1/siw"
    echo 'ccflags-y += -I$(src)' >> "$1/siw/Makefile"
    sed -i 's/\$(CONFIG_RDMA_SIW)/m/' "$1/siw/Makefile"
}

# Neither the names of the folders nor the flags of a make above reach the kernel's make.
kernel_make() {
    env -u MAKEFLAGS -u MAKELEVEL make -C "$build" -j "$SG_JOBS" ${llvm:+"LLVM=$llvm"} "$@"
}

make_driver() {
    local folder
    if [ "$kind" = package ]; then
        make_package_driver
        return
    fi
    module_sources "$SG_OUT/work"
    for folder in guest-driver/kernel ${siw:+siw}; do
        kernel_make "M=$SG_OUT/work/$folder" modules
        cp "$SG_OUT/work/$folder"/{staghorn,siw}.ko "$SG_OUT/" 2>/dev/null || :
    done
    rm -rf "$SG_OUT/work"
    strip_modules strip
}

make_package_driver() {
    local folder headers package
    enter_tree
    while read -r package; do
        dpkg-deb --fsys-tarfile "$package" | tar -C "$in_tree_work" -xf - --no-same-owner
    done < <(tr : '\n' <<< "$build")
    headers=$(packaged_headers "$release") || exit 1
    module_sources "$in_tree_work"
    for folder in guest-driver/kernel ${siw:+siw}; do
        in_tree make -C "$headers" -j "$SG_JOBS" "M=${in_tree_work#"$tree"}/$folder" modules
        cp "$in_tree_work/$folder"/{staghorn,siw}.ko "$SG_OUT/" 2>/dev/null || :
    done
    strip_modules strip
}

strip_modules() {
    [ -f "$SG_OUT/staghorn.ko" ] || { echo "staghorn.ko was not made"; return 1; }
    "$1" --strip-debug "$SG_OUT"/*.ko
}

# collect_modules FOLDER: the kernel's own modules in FOLDER/usr/lib/modules/RELEASE.
collect_modules() {
    local to=$1/usr/lib/modules/$release from
    mkdir -p "$1/usr/lib/modules"
    ln -s usr/lib "$1/lib"
    case $kind in
    tree)
        kernel_make "INSTALL_MOD_PATH=$1" INSTALL_MOD_STRIP=1 DEPMOD=true modules_install
        ;;
    files) cp -r "$modules" "$to" ;;
    package)
        unpack_package
        for from in "$SG_OUT"/package/{usr/lib,lib}/modules/"$release"; do
            [ ! -d "$from" ] || { mv "$from" "$to" && break; }
        done
        if [ -e "$SG_OUT/package/boot/config-$release" ]; then
            cp "$SG_OUT/package/boot/vmlinuz-$release" "$SG_OUT/vmlinuz"
            cp "$SG_OUT/package/boot/config-$release" "$SG_OUT/config"
        else
            cp "$to/vmlinuz" "$to/config" "$SG_OUT/"
        fi
        rm -rf "$SG_OUT/package"
        ;;
    esac
    [ -d "$to" ] || { echo "there are no modules of $release"; return 1; }
    rm -rf "$to"/{build,source,vmlinuz,config,vdso}
    mkdir -p "$to/updates"
    rm -f "$to/updates"/{staghorn,siw}.ko*
    cp "$(sg_product guest-own-driver)"/*.ko "$to/updates/"
}

# plain MODULE: its content without xz, zstd or gzip.
plain() {
    case $1 in
    *.xz) xz -dc "$1" ;;
    *.zst) zstd -dcq "$1" ;;
    *.gz) gzip -dc "$1" ;;
    *) cat "$1" ;;
    esac
}

# boot_modules ROOT TO: modules that the first stage loads, and LOAD, their names in order.
boot_modules() {
    local word path rest
    mkdir -p "$2"
    for word in virtio_pci virtio_blk virtio_console ext4 overlay; do
        modprobe -d "$1" -S "$release" --show-depends "$word"
    done | while read -r word path rest; do
        [ "$word" = insmod ] || continue
        word=$(basename "$path" | sed 's/\.ko.*//')
        [ ! -e "$2/$word.ko" ] || continue
        plain "$path" > "$2/$word.ko"
        echo "$word" >> "$2/LOAD"
    done
    [ -e "$2/LOAD" ] || : > "$2/LOAD"
}

# Root owns all files, whoever builds.
fill_image() {
    local size
    size=$(du -sm --apparent-size "$SG_OUT/root" | cut -f 1)
    mke2fs -q -t ext4 -O ^metadata_csum,^has_journal,^ea_inode -m 0 -E root_owner=0:0 -L modules \
        -d "$SG_OUT/root" "$SG_OUT/modules.img" $((size * 5 / 4 + 32))M
}

make_kernel() {
    local root=$SG_OUT/root boot=$SG_OUT/boot
    collect_modules "$root"
    if [ "$kind" != package ]; then
        cp "$image" "$SG_OUT/vmlinuz"
        cp "$config" "$SG_OUT/config"
    fi
    echo "$release" > "$SG_OUT/KERNEL"
    chmod -R u=rwX,go=rX "$root"
    depmod -b "$root" "$release"
    boot_modules "$root" "$boot/modules/$release"
    mkdir -p "$boot/overlay/boot"
    cp "$SG_OUT/config" "$boot/overlay/boot/config-$release"
    # The overlay has our driver for the base kernel, which may be of the same release.
    if [ "$release" = "$(cat "$(sg_product guest-tree)/KERNEL")" ]; then
        mkdir -p "$boot/overlay/usr/lib/modules"
        cp -r "$root/usr/lib/modules/$release" "$boot/overlay/usr/lib/modules/"
        find "$boot/overlay/usr/lib/modules/$release" -mindepth 1 -maxdepth 1 \
            ! -name 'modules.*' ! -name updates -exec rm -rf {} +
    fi
    [ -z "${SG_RDMA_CORE:-}" ] || cp -r "$SG_RDMA_CORE/root/." "$boot/overlay/"
    chmod -R u=rwX,go=rX "$boot"
    # The image has the same link.
    rm "$root/lib"
    export -f fill_image
    export SG_OUT
    as_owner bash -e -c fill_image
    # The kernel unpacks concatenated archives one after the other.
    {
        cat "$(sg_product guest-boot)/boot.cpio" "$(sg_product guest-overlay)/overlay.cpio"
        cd "$boot" && find . -mindepth 1 | LC_ALL=C sort |
            cpio --quiet --create --format=newc --owner=0:0 --reproducible
    } > "$SG_OUT/initrd"
    rm -rf "$root" "$boot"
}

# Removes all but the newest kernels.
prune_kernels() {
    local old
    # shellcheck disable=SC2012  # names of products have no special characters
    ls -dt "$SG_CACHE"/guest-own-kernel-* 2>/dev/null | tail -n +$((keep + 1)) |
        while read -r old; do rm -rf "$old"; done
}

# The id changes with the kernel.  Where it is decides about nothing.
sg_plan 2
[ -e "$SG_BUILD/products/guest-overlay" ] || sg_die "run make guest first"
[ "$kind" != tree ] || modules=$build
sg_step guest-own-driver "compiling our driver for $release" "@$id" "$SG_TOP/guest-driver/kernel" \
    "$SG_TOP/include/staghorn" "@$siw $(sg_product src-siw)" @own-driver-1 -- make_driver
if [ "$only" = driver ]; then
    echo "product: $SG_OUT"
    exit 0
fi
sg_step guest-own-kernel "packing the modules of $release" "@$id" \
    "@$(sg_product guest-own-driver)" "@$(sg_product guest-boot)" \
    "@$(sg_product guest-overlay)" "@${SG_RDMA_CORE:-}" @own-kernel-2 -- make_kernel
product=$SG_OUT
prune_kernels
echo "product: $product"
