#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the guest: tools/guest/build.sh [--without PART]... [--with consumers] [--only driver]
#                                        [--arch arm64]
#
# PART is left out: driver or provider, for work on the rest of the tree; programs (fio and those of
# tests) and firmware (QEMU's), for installed packages.  With consumers, the image of that name and
# the SMB modules are built, too; only the long tests need them.
#
#   guest-tree      Debian 13 tree and disk image (see tree.sh); made rarely
#   guest-boot      the first-stage initramfs
#   guest-agent     the guest's init and command agent
#   guest-mark      the program staghorn-mark and its header, for users
#   guest-siw       siw, built out of tree, a peer in the tests
#   guest-driver    our kernel module
#   guest-provider  our rdma-core provider
#   guest-fio       fio with its librpma engines, which Debian's package lacks
#   guest-programs  the programs of tests/guest-programs, which tests and demo copy into VMs
#   guest-test-module  a kernel module of tests that uses the adapter
#   guest-overlay   our parts of the above, as the overlay of the image
#   guest-consumers another disk image, with upper-layer protocols of kernel and user space
#   guest-smb       SMB client and server with SMB Direct, which Debian's kernel leaves out
#
# With --arch arm64, the guest of that architecture (arm64.sh; docs/other-machines.md): its products
# have names that end with -arm64, and it has no marks, no fio and no test module, and of the
# programs those of RDMA.  The QEMU for arm64 must have been built.
#
# Results are linked in $SG_BUILD/guest (or guest-arm64), where the launcher looks: root.img,
# vmlinuz, initrd, programs, consumers.img, smb.  The disk images do not change with our code: our
# parts are in the initramfs, whose first stage mounts them over the image.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"
. "$SG_TOP/tools/guest/tree.sh"
. "$SG_TOP/tools/guest/arm64.sh"

guest=$SG_TOP/tools/guest
parts=" siw driver provider programs firmware "
only=
while [ $# -gt 0 ]; do
    case "$1 ${2:-}" in
    "--without driver" | "--without provider" | "--without programs" | "--without firmware")
        parts=${parts/ $2 / }
        ;;
    "--with consumers") parts="$parts$2 " ;;
    "--only driver") only=$2 ;;
    "--arch arm64") guest_arm64 ;;
    *)
        sg_die "unknown argument $1 ${2:-}; usage:" \
            "build.sh [--without driver|provider|programs|firmware]... [--with consumers]" \
            "[--only driver] [--arch arm64]"
        ;;
    esac
    shift 2
done

has() {
    [ "$parts" != "${parts/ $1 /}" ]
}

make_boot() {
    local module tree modules version
    tree=$(sg_product "guest-tree$of")/tree
    version=$(cat "$(sg_product "guest-tree$of")/KERNEL")
    modules=$tree/usr/lib/modules/$version/kernel
    mkdir -p "$SG_OUT"/root/{bin,modules/"$version",proc,dev,rw,image,new}
    if [ -n "$of" ]; then
        boot_files_arm64 "$tree" "$version" "$SG_OUT/root"
        pack_boot
        return
    fi
    cp "$tree/usr/bin/busybox" "$SG_OUT/root/bin/busybox"
    ln -s busybox "$SG_OUT/root/bin/sh"
    for module in lib/crc16 crypto/crc32c_generic fs/mbcache fs/jbd2/jbd2 fs/ext4/ext4 \
        fs/overlayfs/overlay drivers/block/virtio_blk; do
        cp "$modules/$module.ko" "$SG_OUT/root/modules/$version/"
    done
    pack_boot
}

pack_boot() {
    install -m 755 "$guest/boot-init" "$SG_OUT/root/init"
    pack "$SG_OUT/root" > "$SG_OUT/boot.cpio"
    rm -rf "$SG_OUT/root"
}

make_agent() {
    enter_tree
    cp "$guest"/agent/* "$in_tree_work"
    in_tree "${cross}gcc" -std=gnu11 -O2 -Wall -Wextra -Werror -static -s -o staghorn-agent \
        agent.c buffer.c session.c
    cp "$in_tree_work/staghorn-agent" "$SG_OUT/"
}

make_mark() {
    enter_tree
    cp "$SG_TOP"/guest-driver/mark/* "$in_tree_work"
    in_tree gcc -std=gnu11 -O2 -Wall -Wextra -Werror -s -o staghorn-mark staghorn-mark.c
    mkdir -p "$SG_OUT/usr/bin" "$SG_OUT/usr/include"
    cp "$in_tree_work/staghorn-mark" "$SG_OUT/usr/bin/"
    cp "$in_tree_work/staghorn_mark.h" "$SG_OUT/usr/include/"
}

# build_module NAME [MAKE-ARGUMENT...]: Kbuild in $in_tree_work/src.
build_module() {
    local version name=$1
    shift
    version=$(cat "$(sg_product "guest-tree$of")/KERNEL")
    in_tree make -j "$SG_JOBS" -C "$(kernel_build "$version")" "${kbuild[@]}" \
        "M=${in_tree_work#"$tree"}/src" "$@" modules
    in_tree "${cross}strip" --strip-debug "src/$name.ko"
    cp "$in_tree_work/src/$name.ko" "$SG_OUT/"
}

make_siw() {
    local source
    source=$(sg_product src-siw)/src
    enter_tree
    cp -r "$source/drivers/infiniband/sw/siw" "$in_tree_work/src"
    echo 'ccflags-y += -I$(src)' >> "$in_tree_work/src/Makefile"
    sed -i 's/\$(CONFIG_RDMA_SIW)/m/' "$in_tree_work/src/Makefile"
    build_module siw
}

# Without this patch the server uses files after it has freed them.  Newer kernels have it.
ksmbd_patch=$SG_TOP/docs/upstream/linux-0005-ksmbd-closed-file-in-list.patch

# The kernel's header packages lack the ASN.1 compiler; without it Kbuild uses the output files that
# exist already.
make_smb() {
    local asn1 kernel on=-DCONFIG_
    enter_tree
    kernel=/usr/lib/modules/$(cat "$(sg_product guest-tree)/KERNEL")/build
    cp -r "$(sg_product src-smb)/src" "$in_tree_work/src"
    patch -s -R -f --dry-run -p1 -d "$in_tree_work/src" < "$ksmbd_patch" > /dev/null ||
        patch -s -p1 -d "$in_tree_work/src" < "$ksmbd_patch"
    mkdir -p "$in_tree_work/include/linux"
    cp "$tree"/usr/src/linux-headers-*-common/include/linux/asn1*.h "$in_tree_work/include/linux/"
    in_tree gcc -O1 -w -idirafter include -o asn1_compiler src/scripts/asn1_compiler.c
    for asn1 in "$in_tree_work"/src/fs/smb/*/*.asn1; do
        asn1=${asn1#"$in_tree_work/"}
        in_tree ./asn1_compiler "$asn1" "$asn1.c" "$asn1.h"
    done
    echo "obj-m := fs/smb/client/ fs/smb/server/" > "$in_tree_work/src/Kbuild"
    in_tree make -j "$SG_JOBS" -C "$kernel" "M=${in_tree_work#"$tree"}/src" \
        CONFIG_CIFS_SMB_DIRECT=y CONFIG_SMB_SERVER_SMBDIRECT=y \
        "KCFLAGS=${on}CIFS_SMB_DIRECT=1 ${on}SMB_SERVER_SMBDIRECT=1" modules
    in_tree strip --strip-debug src/fs/smb/client/cifs.ko src/fs/smb/server/ksmbd.ko
    cp "$in_tree_work"/src/fs/smb/{client/cifs,server/ksmbd}.ko "$SG_OUT/"
}

make_driver() {
    enter_tree
    mkdir -p "$in_tree_work/guest-driver" "$in_tree_work/include"
    cp -r "$SG_TOP/guest-driver/kernel" "$in_tree_work/guest-driver/kernel"
    cp -r "$SG_TOP/include/staghorn" "$in_tree_work/include/staghorn"
    ln -s guest-driver/kernel "$in_tree_work/src"
    build_module staghorn W=1
}

make_provider() {
    enter_tree
    build_provider "$(sg_product src-rdma-core)/src"
}

make_fio() {
    enter_tree
    cp -r "$(sg_product src-fio)/src" "$in_tree_work/src"
    in_tree sh -e -c 'cd src; ./configure --disable-native'
    grep -q CONFIG_LIBRPMA_APM "$in_tree_work/src/config-host.h"
    grep -q CONFIG_LIBRPMA_GPSPM "$in_tree_work/src/config-host.h"
    # With libpmem2 this version's GPSPM server asks for a mapping's functions before it maps it.
    in_tree sed -i /LIBPMEM2/d src/config-host.h src/config-host.mak
    in_tree make -j "$SG_JOBS" -C src fio
    in_tree strip src/fio
    cp "$in_tree_work/src/fio" "$SG_OUT/"
}

make_programs() {
    enter_tree
    cp -r "$SG_TOP/tests/guest-programs" "$in_tree_work/src"
    cp -r "$SG_TOP/include" "$SG_TOP/tests/lib" "$SG_TOP/guest-driver/mark" \
        "$SG_TOP/examples/vfio" "$in_tree_work/"
    ! has provider || cp -r "$(sg_product "guest-provider$of")/usr" "$in_tree_work/usr"
    in_tree make -j "$SG_JOBS" -C src OUT=../out DV="$(has provider && echo ../usr)" \
        "CC=${cross}gcc" "TRIPLET=$triplet" $program_set
    cp "$in_tree_work"/out/* "$SG_OUT/"
}

# A test module that uses the adapter.
make_test_module() {
    enter_tree
    cp -r "$SG_TOP/tests/guest-programs/kernel-mpe" "$in_tree_work/src"
    cp "$SG_TOP/tests/guest-programs/mpe/mpe_wire.h" "$SG_TOP/guest-driver/kernel/flush_wr.h" \
        "$in_tree_work/src"
    build_module kmpe W=1
}

# Our modules are added to the indexes of the image's modules, so that modprobe, modinfo and
# `modprobe -r` treat them like all others.
make_overlay() {
    local version root=$SG_OUT/root index base=$SG_OUT/base
    tree=$(sg_product "guest-tree$of")/tree
    version=$(cat "$(sg_product "guest-tree$of")/KERNEL")
    mkdir -p "$root/overlay/usr/lib/modules/$version/updates" "$base/usr/lib/modules/$version"
    cp -r "$guest/files/." "$root/overlay"
    install -m 755 "$(sg_product "guest-agent$of")/staghorn-agent" "$root/overlay/usr/sbin/"
    [ -n "$of" ] || cp -r "$(sg_product guest-mark)/usr" "$root/overlay"
    mkdir "$root/overlay/boot"
    cp "$tree/boot/config-$version" "$root/overlay/boot/"
    cp "$(sg_product "guest-siw$of")/siw.ko" "$root/overlay/usr/lib/modules/$version/updates/"
    if has driver; then
        cp "$(sg_product "guest-driver$of")/staghorn.ko" \
            "$root/overlay/usr/lib/modules/$version/updates/"
    fi
    ! has provider || cp -r "$(sg_product "guest-provider$of")"/{usr,etc} "$root/overlay"

    ln -s usr/lib "$base/lib"
    ln -s "$tree/usr/lib/modules/$version/kernel" "$base/usr/lib/modules/$version/kernel"
    cp "$tree/usr/lib/modules/$version"/modules.{builtin,builtin.modinfo,order} \
        "$base/usr/lib/modules/$version/"
    cp -r "$root/overlay/usr/lib/modules/$version/updates" "$base/usr/lib/modules/$version/updates"
    depmod -b "$base" "$version"
    for index in dep dep.bin alias.bin symbols.bin softdep; do
        cp "$base/usr/lib/modules/$version/modules.$index" "$root/overlay/usr/lib/modules/$version/"
    done
    rm -rf "$base"
    chmod -R u=rwX,go=rX "$root"
    chmod 755 "$root"/overlay/usr/sbin/* "$root"/overlay/usr/lib/staghorn/*
    [ -n "$of" ] || chmod 755 "$root"/overlay/usr/bin/*
    pack "$root" > "$SG_OUT/overlay.cpio"
    rm -rf "$root"
}

step_driver() {
    sg_step "guest-driver$of" "compiling our kernel module" "${tree_key[@]}" \
        "$SG_TOP/guest-driver/kernel" "$SG_TOP/include/staghorn" @driver-1 -- make_driver
}

# The kernel unpacks concatenated archives one after the other.
link_guest() {
    local to=$SG_BUILD/guest$of
    mkdir -p "$to"
    ln -sfn "$(sg_product "guest-tree$of")/root.img" "$to/root.img"
    ln -sfn "$(sg_product "guest-tree$of")/vmlinuz" "$to/vmlinuz"
    cat "$(sg_product "guest-boot$of")/boot.cpio" "$(sg_product "guest-overlay$of")/overlay.cpio" \
        > "$to/initrd.new"
    mv "$to/initrd.new" "$to/initrd"
    sg_product "guest-tree$of" > "$to/tree"
    rm -rf "$to/programs"
    has programs || return 0
    mkdir "$to/programs"
    ln -s "$(sg_product "guest-programs$of")"/* "$to/programs/"
    [ -n "$of" ] || ln -s "$(sg_product guest-fio)/fio" "$(sg_product guest-test-module)/kmpe.ko" \
        "$to/programs/"
}

trees() {
    if [ -n "$of" ]; then
        [ -x "$guest_qemu" ] || sg_die "run tools/build/qemu.sh arm64 first"
        guest_tree_arm64
        tree_key=("@$(sg_product guest-tree-arm64)" "@$(sg_product arm64-cross)")
    else
        guest_tree
        tree_key=("@$(sg_product guest-tree)")
    fi
}

if [ "$only" = driver ]; then
    sg_plan 2
    trees
    step_driver
    exit 0
fi
[ -z "$of" ] || ! has consumers || sg_die "there is no image consumers for arm64"
if [ -n "$of" ]; then
    sg_plan 14
else
    sg_plan $((11 + $(has consumers && echo 3 || echo 0) + $(has programs && echo 4 || echo 0) +
        $(has firmware && echo 1 || echo 0)))
fi
sg_source_rdma_core
sg_source_siw
[ -n "$of" ] || ! has programs || sg_source_fio
! has firmware || sg_tool_firmware
trees
sg_step "guest-boot$of" "packing the first-stage initramfs" "${tree_key[@]}" "$guest/boot-init" \
    @boot-4 -- make_boot
sg_step "guest-agent$of" "compiling the guest agent" "${tree_key[@]}" "$guest/agent" @agent-1 \
    -- make_agent
[ -n "$of" ] || sg_step guest-mark "compiling the program for marks" "${tree_key[@]}" \
    "$SG_TOP/guest-driver/mark" @mark-1 -- make_mark
sg_step "guest-siw$of" "compiling siw for the guest" "${tree_key[@]}" "@$(sg_product src-siw)" \
    @siw-1 -- make_siw
! has driver || step_driver
! has provider ||
    sg_step "guest-provider$of" "compiling our rdma-core provider" "${tree_key[@]}" \
        "@$(sg_product src-rdma-core)" "$SG_TOP/guest-driver/provider" "$SG_TOP/include/staghorn" \
        "$SG_TOP/tests/unit/provider" "$SG_TOP/tests/lib/tap.h" "@provider-3$of" -- make_provider
ours=$(for part in siw driver provider; do ! has $part || sg_product "guest-$part$of"; done)
mark=()
[ -n "$of" ] || mark=("@$(sg_product guest-mark)")
sg_step "guest-overlay$of" "packing the overlay of the image" "${tree_key[@]}" "$guest/files" \
    "@$(sg_product "guest-agent$of")" "${mark[@]}" "@$ours" @overlay-4 -- make_overlay
more=()
if has programs; then
    [ -n "$of" ] || sg_step guest-fio "compiling fio for the guest" "${tree_key[@]}" \
        "@$(sg_product src-fio)" @fio-2 -- make_fio
    sg_step "guest-programs$of" "compiling test programs for the guest" "${tree_key[@]}" \
        "$SG_TOP/tests/guest-programs" "$SG_TOP/examples/vfio/vfio_driver.c" \
        "$SG_TOP/include/staghorn" "$SG_TOP/tests/lib/tap.h" "$SG_TOP/guest-driver/mark" "@$ours" \
        @programs-3 -- make_programs
    more=("@$(sg_product "guest-programs$of")")
fi
if [ -z "$of" ] && has programs; then
    sg_step guest-test-module "compiling a test module for the guest" "${tree_key[@]}" \
        "$SG_TOP/tests/guest-programs/kernel-mpe" "$SG_TOP/tests/guest-programs/mpe/mpe_wire.h" \
        "$SG_TOP/guest-driver/kernel/flush_wr.h" @test-module-1 -- make_test_module
    more=("@$(sg_product guest-fio)" "${more[@]}" "@$(sg_product guest-test-module)")
fi
sg_local "guest-links$of" "linking the guest" "${tree_key[@]}" "@$(sg_product "guest-boot$of")" \
    "@$(sg_product "guest-overlay$of")" "${more[@]}" "@$SG_BUILD" @links-2 -- link_guest
if has consumers; then
    guest_consumers
    sg_source_smb
    sg_step guest-smb "compiling SMB Direct for the guest" "${tree_key[@]}" \
        "@$(sg_product src-smb)" @smb-2 "$ksmbd_patch" -- make_smb
    ln -sfn "$(sg_product guest-consumers)/consumers.img" "$SG_BUILD/guest/consumers.img"
    ln -sfn "$(sg_product guest-smb)" "$SG_BUILD/guest/smb"
fi
