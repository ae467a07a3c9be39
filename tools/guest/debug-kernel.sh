#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the debug kernel, for ./staghorn up --kernel debug: tools/guest/debug-kernel.sh
# [--only driver]
#
#   src-linux            Debian's source of the guest's kernel, without files that the configuration
#                        never compiles
#   guest-debug-kernel   kernel and modules of debug.config, and the files to build modules with
#   guest-debug-modules  our modules and those of tests, and ib_isert, ib_srp, ksmbd and cifs with a
#                        patch each, for that kernel
#   guest-debug-overlay  all modules, as the overlay of the image
#
# The machine's own compiler compiles everything, which takes half an hour on two processors the
# first time.  Results are linked in $SG_BUILD/guest/debug, where the launcher looks: vmlinuz,
# initrd, and the tests' modules.  tools/guest/build.sh must have run.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"
. "$SG_TOP/tools/guest/tree.sh"

config=$SG_TOP/tools/guest/debug.config
programs=$SG_TOP/tests/guest-programs
# Without these patches each response of an iSER target and of an SMB server is a report, the loss
# of an SRP target under traffic is one, and an SMB client whose server is lost may hang.
isert_patch=$SG_TOP/docs/upstream/linux-0007-isert-sync-unmapped.patch
srp_patch=$SG_TOP/docs/upstream/linux-0008-srp-completion-outlives-request.patch
ksmbd_patch=$SG_TOP/docs/upstream/linux-0009-ksmbd-unmap-as-mapped.patch
cifs_patch=$SG_TOP/docs/upstream/linux-0010-cifs-receives-after-failure.patch
# The result contains neither builder nor time, so that the compiler's cache serves all clones.
export KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=staghorn KBUILD_BUILD_HOST=staghorn

# The build folder is in the source folder, so paths are short and the same on all machines.
make_kernel() {
    local build=$SG_OUT/linux/out
    cp -al "$(sg_product src-linux)/src" "$SG_OUT/linux"
    mkdir "$build"
    cd "$SG_OUT/linux"
    make O=out KCONFIG_ALLCONFIG="$config" allnoconfig
    check_config "$config" out/.config
    make O=out -j "$SG_JOBS" CC="$SG_BUILD/bin/cc" bzImage modules
    make O=out INSTALL_MOD_PATH="$SG_OUT/install" DEPMOD=true modules_install
    cp out/arch/x86/boot/bzImage "$SG_OUT/vmlinuz"
    cp out/include/config/kernel.release "$SG_OUT/KERNEL"
    mv "$SG_OUT/install/lib/modules/$(cat "$SG_OUT/KERNEL")" "$SG_OUT/modules"
    rm -rf "$SG_OUT/install" "$SG_OUT/modules/build" "$SG_OUT/modules/source"
    # The files to build modules with, as in the packages of kernel headers.
    find out \( -name '*.o' -o -name '*.a' -o -name '*.cmd' -o -name '*.ko' -o -name '*.mod*' \
        -o -name 'vmlinux*' -o -name '*.order' \) ! -name auto.conf.cmd -type f -delete
    rm -rf out/arch/x86/boot out/source
    mv out "$SG_OUT/build"
    cd "$SG_OUT"
    rm -rf linux
}

# build_module FOLDER NAME: Kbuild for that kernel.
build_module() {
    make -C "$(sg_product src-linux)/src" "O=$(sg_product guest-debug-kernel)/build" \
        CC="$SG_BUILD/bin/cc" -j "$SG_JOBS" "M=$1" modules
    cp "$1/$2.ko" "$SG_OUT/"
}

# patched_module FOLDER NAME PATCH: a module of the kernel's own, with a patch of docs/upstream.
# The parent's files come along, because some modules include them.
patched_module() {
    local work=$SG_OUT/work/linux
    mkdir -p "$work/$(dirname "$1")"
    cp -r "$(sg_product src-linux)/src/$(dirname "$1")/." "$work/$(dirname "$1")"
    patch -s -p1 -d "$work" < "$3"
    build_module "$work/$1" "$2"
}

make_modules() {
    local work=$SG_OUT/work
    mkdir -p "$work/guest-driver" "$work/include"
    cp -r "$SG_TOP/guest-driver/kernel" "$work/guest-driver/kernel"
    cp -r "$SG_TOP/include/staghorn" "$work/include/staghorn"
    build_module "$work/guest-driver/kernel" staghorn
    cp -r "$programs/kernel-mpe" "$work/kmpe"
    cp "$programs/mpe/mpe_wire.h" "$SG_TOP/guest-driver/kernel/flush_wr.h" "$work/kmpe"
    build_module "$work/kmpe" kmpe
    cp -r "$programs/kernel-faults" "$work/debug"
    build_module "$work/debug" sg_fault
    patched_module drivers/infiniband/ulp/isert ib_isert "$isert_patch"
    patched_module drivers/infiniband/ulp/srp ib_srp "$srp_patch"
    mkdir -p "$work/linux/fs/nls"
    cp "$(sg_product src-linux)"/src/fs/nls/*.h "$work/linux/fs/nls/"
    patched_module fs/smb/server ksmbd "$ksmbd_patch"
    patched_module fs/smb/client cifs "$cifs_patch"
    rm -rf "$work"
}

make_overlay() {
    local version root=$SG_OUT/root folder
    version=$(cat "$(sg_product guest-debug-kernel)/KERNEL")
    folder=$root/overlay/usr/lib/modules/$version
    mkdir -p "$folder"
    cp -r "$(sg_product guest-debug-kernel)/modules/." "$folder"
    mkdir "$folder/updates"
    cp "$(sg_product guest-debug-modules)"/{staghorn,ib_isert,ib_srp,ksmbd,cifs}.ko \
        "$folder/updates/"
    mkdir "$root/overlay/boot"
    cp "$(sg_product guest-debug-kernel)/build/.config" "$root/overlay/boot/config-$version"
    ln -s usr/lib "$root/overlay/lib"
    depmod -b "$root/overlay" "$version"
    rm "$root/overlay/lib"
    chmod -R u=rwX,go=rX "$root"
    (cd "$root" && find . -mindepth 1 | LC_ALL=C sort |
        cpio --quiet --create --format=newc --owner=0:0 --reproducible) > "$SG_OUT/overlay.cpio"
    rm -rf "$root"
}

# The kernel unpacks concatenated archives one after the other.
link_debug() {
    local to=$SG_BUILD/guest/debug
    mkdir -p "$to"
    ln -sfn "$(sg_product guest-debug-kernel)/vmlinuz" "$to/vmlinuz"
    ln -sfn "$(sg_product guest-debug-modules)/kmpe.ko" "$to/kmpe.ko"
    ln -sfn "$(sg_product guest-debug-modules)/sg_fault.ko" "$to/sg_fault.ko"
    cat "$(sg_product guest-boot)/boot.cpio" "$(sg_product guest-overlay)/overlay.cpio" \
        "$(sg_product guest-debug-overlay)/overlay.cpio" > "$to/initrd.new"
    mv "$to/initrd.new" "$to/initrd"
}

only=
case "$*" in
'') ;;
"--only driver") only=driver ;;
*) sg_die "unknown argument $1; usage: debug-kernel.sh [--only driver]" ;;
esac

sg_plan 5
sg_write_cc
[ -e "$SG_BUILD/products/guest-overlay" ] || sg_die "run tools/guest/build.sh first"
sg_source_linux
sg_step guest-debug-kernel "compiling Linux with its checkers on" "@$(sg_product src-linux)" \
    "$config" "@$(gcc --version | head -n 1)" @debug-kernel-1 -- make_kernel
sg_step guest-debug-modules "compiling our modules for it" "@$(sg_product guest-debug-kernel)" \
    "$SG_TOP/guest-driver/kernel" "$SG_TOP/include/staghorn" "$programs/kernel-mpe" \
    "$programs/kernel-faults" "$programs/mpe/mpe_wire.h" "$isert_patch" "$srp_patch" \
    "$ksmbd_patch" "$cifs_patch" @debug-modules-3 -- make_modules
[ "$only" != driver ] || exit 0
sg_step guest-debug-overlay "packing its modules" "@$(sg_product guest-debug-kernel)" \
    "@$(sg_product guest-debug-modules)" @debug-overlay-4 -- make_overlay
sg_local guest-debug-links "linking the debug kernel" "@$(sg_product guest-debug-kernel)" \
    "@$(sg_product guest-debug-modules)" "@$(sg_product guest-debug-overlay)" \
    "@$(sg_product guest-boot)" "@$(sg_product guest-overlay)" "@$SG_BUILD" @debug-links-1 \
    -- link_debug
