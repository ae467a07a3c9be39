# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The arm64 guest's Debian 13, made on this machine, whose processors cannot execute it.  Source it
# after tree.sh.
#
#   arm64-debs        Debian's packages of the guest, and those of its kernel's headers
#   arm64-cross       tree/: a Debian 13 of this machine's architecture with a compiler and the
#                     libraries for arm64, in which everything of ours is compiled
#   guest-tree-arm64  what guest-tree has (tree.sh), but tree/ has only what initramfs and overlay
#                     are made of
#
# The packages are unpacked here, and configured where they can be: in a VM that the QEMU for arm64
# emulates (arm64-configure).  So neither root nor an emulator that the kernel knows of is needed.

guest_qemu=$SG_BUILD/qemu-arm64/qemu-system-aarch64

# From now on all of tree.sh and build.sh is for arm64.
# shellcheck disable=SC2034  # these scripts use the variables
guest_arm64() {
    of=-arm64
    triplet=aarch64-linux-gnu
    cross=$triplet-
    compile_tree=arm64-cross
    kbuild=(ARCH=arm64 "CROSS_COMPILE=$cross" CONFIG_DEBUG_INFO_BTF_MODULES=)
    cmake_cross=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
        "-DCMAKE_C_COMPILER=${cross}gcc" "-DCMAKE_LIBRARY_ARCHITECTURE=$triplet")
    tree_env=("PKG_CONFIG_LIBDIR=/usr/lib/$triplet/pkgconfig")
    program_set=rdma
}

# ---- packages ----

# The kernel's release that the mirror has now.
newest_arm64() {
    sg_apt apt-cache depends linux-image-arm64 | sed -n 's/^ *Depends: linux-image-//p' | head -n 1
}

make_debs() {
    local sg__apt_dir=$SG_CACHE/apt-arm64 sg__apt_arch=arm64 release
    cd "$SG_OUT" || return
    mkdir -p debs/partial headers
    sg_apt_update
    release=$(newest_arm64)
    [ -n "$release" ] || {
        echo "the mirror has no linux-image-arm64 of $SG_SUITE"
        return 1
    }
    # shellcheck disable=SC2046  # packages' names
    sg_apt apt-get -y --no-install-recommends --download-only -o Debug::NoLocking=true \
        -o "Dir::Cache::archives=$PWD/debs" install $(packages_of packages.arm64)
    rm -rf debs/partial debs/lock
    (cd headers && sg_apt apt-get download "linux-headers-$release" \
        "linux-headers-${release%-arm64}-common")
    echo "$release" > KERNEL
    # Kbuild's programs run here.
    # shellcheck disable=SC2034  # apt.sh uses them
    sg__apt_dir=$SG_CACHE/apt sg__apt_arch=amd64
    sg_apt_update
    (cd headers && sg_apt apt-get download "linux-kbuild-${release%-arm64}")
}

# ---- the tree to compile in ----

make_cross() {
    local deb
    check_namespaces
    run_mmdebstrap "$(packages_of packages.cross | paste -s -d ,)" customize.cross \
        --architectures=amd64,arm64
    unpack_tree
    rm "$SG_OUT/tree.tar" "$SG_OUT/sources.list"
    for deb in "$(sg_product arm64-debs)"/headers/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -xf - -C "$SG_OUT/tree" --no-same-owner
    done
}

# ---- the guest's image ----

# dpkg's record of a package that is unpacked, and not configured yet.
record_package() {
    local deb=$1 root=$2 name file base=$2/var/lib/dpkg/info/
    dpkg-deb -f "$deb" > "$SG_OUT/control.fields"
    name=$(sed -n 's/^Package: //p' "$SG_OUT/control.fields")
    if grep -qx 'Multi-Arch: same' "$SG_OUT/control.fields"; then
        name=$name:$(sed -n 's/^Architecture: //p' "$SG_OUT/control.fields")
    fi
    {
        sed 's/^\(Package: .*\)/\1\nStatus: install ok unpacked/' "$SG_OUT/control.fields"
        echo
    } >> "$root/var/lib/dpkg/status"
    dpkg-deb --fsys-tarfile "$deb" | tar -tf - | sed 's,^\./*,/,; s,\(.\)/$,\1,; s,^/$,/.,' \
        > "$base$name.list"
    rm -rf "$SG_OUT/control"
    dpkg-deb -e "$deb" "$SG_OUT/control"
    for file in "$SG_OUT"/control/*; do
        [ "${file##*/}" = control ] || cp "$file" "$base$name.${file##*/}"
    done
}

# base-files has the links /bin, /lib and /sbin, which all others expect.
unpack_packages() {
    local deb root=$1 debs
    debs=$(sg_product arm64-debs)/debs
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
    echo 1 > "$root/var/lib/dpkg/info/format"
    : > "$root/var/lib/dpkg/status"
    for deb in "$debs"/base-files_*.deb "$debs"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -xpf - -C "$root" --keep-directory-symlink \
            --exclude=./usr/share/man --exclude=./usr/share/doc --exclude=./usr/share/info \
            --exclude=./usr/share/locale
    done
    for deb in "$debs"/*.deb; do
        record_package "$deb" "$root"
    done
    rm -rf "$SG_OUT/control" "$SG_OUT/control.fields"
}

# What maintainer scripts expect of a system that is being installed.
prepare_second_stage() {
    local root=$1
    cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
    cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
    ln -s mawk "$root/usr/bin/awk"
    mkdir -p "$root/etc/initramfs-tools"
    echo update_initramfs=no > "$root/etc/initramfs-tools/update-initramfs.conf"
}

# Under as_owner, so that files keep their owners; the caller has exported what it needs.
make_unconfigured() {
    local root=$SG_OUT/root
    mkdir "$root"
    unpack_packages "$root"
    prepare_second_stage "$root"
    "$SG_TOP/tools/guest/customize" "$root"
    collect_from "$root"
    mke2fs -q -t ext4 -O ^metadata_csum,^has_journal,^ea_inode -m 0 -E root_owner=0:0 \
        -L staghorn -d "$root" "$SG_OUT/root.img" 1000M
    rm -rf "$root"
}

# For initramfs and overlay, and for depmod.
collect_from() {
    local root=$1 version to=$SG_OUT/tree
    version=$(cat "$SG_OUT/KERNEL")
    mkdir -p "$to/usr/lib/modules" "$to/usr/bin" "$to/boot"
    ln -s usr/lib "$to/lib"
    cp -r --no-preserve=ownership "$root/usr/lib/modules/$version" "$to/usr/lib/modules/"
    cp --no-preserve=ownership "$root/usr/bin/busybox" "$to/usr/bin/"
    cp --no-preserve=ownership "$root/boot/config-$version" "$to/boot/"
    cp --no-preserve=ownership "$root/boot/vmlinuz-$version" "$SG_OUT/vmlinuz"
    cp --no-preserve=ownership "$root/usr/share/staghorn/PACKAGES" "$SG_OUT/PACKAGES"
    rm -rf "${root:?}"/boot/*
}

# Boots the image, which configures its packages and powers off.
configure_in_vm() {
    make_stage
    timeout --foreground 1800 "$guest_qemu" -L "$(sg_product firmware)/share" \
        -M virt,gic-version=3 -cpu neoverse-n1 -accel tcg,thread=multi -smp 2 -m 1G \
        -nodefaults -nographic -no-reboot \
        -serial stdio -kernel "$SG_OUT/vmlinuz" -initrd "$SG_OUT/stage.cpio" \
        -append "console=ttyAMA0 loglevel=4 rdinit=/init panic=-1" \
        -drive "file=$SG_OUT/root.img,format=raw,if=none,id=root,cache=unsafe" \
        -device virtio-blk-pci,drive=root < /dev/null | tee "$SG_OUT/console"
    grep -q '^staghorn: configured' "$SG_OUT/console" || {
        echo "the packages are not configured"
        return 1
    }
    e2fsck -fp "$SG_OUT/root.img" || [ $? -eq 1 ]
    rm -rf "$SG_OUT/stage.cpio" "$SG_OUT/console"
}

make_stage() {
    local stage=$SG_OUT/stage
    mkdir -p "$stage/image"
    boot_files_arm64 "$SG_OUT/tree" "$(cat "$SG_OUT/KERNEL")" "$stage"
    install -m 755 "$SG_TOP/tools/guest/arm64-configure" "$stage/init"
    pack "$stage" > "$SG_OUT/stage.cpio"
    rm -rf "$stage"
}

# boot_files_arm64 TREE RELEASE TO: busybox and the modules that a boot needs, not compressed; LOAD
# has these in the order of their needs.
boot_files_arm64() {
    local tree=$1 release=$2 to=$3 path name
    mkdir -p "$to/bin" "$to/modules/$release" "$to/proc" "$to/dev"
    cp "$tree/usr/bin/busybox" "$to/bin/busybox"
    ln -s busybox "$to/bin/sh"
    for name in virtio_pci virtio_blk ext4 overlay; do
        modprobe -d "$tree" -S "$release" --show-depends "$name" | sed -n 's/^insmod *//p'
    done | awk '!seen[$1]++ { print $1 }' | while read -r path; do
        name=${path##*/}
        name=${name%%.ko*}
        case $path in
        *.xz) xz -dc "$path" > "$to/modules/$release/$name.ko" ;;
        *) cp "$path" "$to/modules/$release/" ;;
        esac
        echo "$name"
    done > "$to/modules/$release/LOAD"
}

make_tree_arm64() {
    check_namespaces
    cp "$(sg_product arm64-debs)/KERNEL" "$SG_OUT/KERNEL"
    export -f make_unconfigured unpack_packages record_package prepare_second_stage \
        collect_from sg_product sg_die
    as_owner bash -e -c make_unconfigured
    configure_in_vm
}

guest_tree_arm64() {
    check_mmdebstrap
    sg_step arm64-debs "fetching Debian's packages for arm64" "$SG_TOP/tools/guest/packages.arm64" \
        @debs-1 -- make_debs
    sg_step arm64-cross "installing Debian 13 with a compiler for arm64" \
        "@$(sg_product arm64-debs)" "$SG_TOP/tools/guest/packages.cross" @cross-1 -- make_cross
    sg_step guest-tree-arm64 "configuring Debian 13 in an arm64 VM" "@$(sg_product arm64-debs)" \
        "$SG_TOP/tools/guest/customize" "$SG_TOP/tools/guest/boot-init" \
        "$SG_TOP/tools/guest/arm64-configure" @tree-1 -- make_tree_arm64
}
