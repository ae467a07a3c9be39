# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Third-party sources and tools.  Each function is one step, whose product is in the cache.  Source
# this file after lib.sh; call sg_source_NAME, then use "$(sg_product src-NAME)/src" (tools: see
# each function).

. "$SG_TOP/tools/build/apt.sh"

# Counts the changes of this file or apt.sh that make a different product.  Their text is not a key,
# because every edit would then fetch and rebuild everything.
sg__fetch_keys=(@fetch-1)

sg__fetch() {
    cd "$SG_OUT" || return
    SG_TAR_OPTIONS=${3:-} sg_apt_source "$1" "$2"
}

# QEMU 10.0.  The firmware sources beneath roms/ are two thirds of the tarball and are not built.
sg_source_qemu() {
    sg_step src-qemu "fetching Debian's source of QEMU 10.0" "${sg__fetch_keys[@]}" \
        @1:10.0.* -- sg__fetch qemu '1:10.0.*' '--exclude=*/roms/*/*'
}

sg_source_lwip() {
    sg_step src-lwip "fetching Debian's source of lwIP 2.2" "${sg__fetch_keys[@]}" \
        @2.2.* -- sg__fetch lwip '2.2.*'
}

sg_source_rdma_core() {
    sg_step src-rdma-core "fetching Debian's source of rdma-core 56.1" "${sg__fetch_keys[@]}" \
        @56.1-* -- sg__fetch rdma-core '56.1-*'
}

# sg_source_rdma_core_of SUITE: the newest of another release.  The cache keeps it.
sg__fetch_rdma_core() {
    local sg__apt_dir=$SG_CACHE/apt-src-$1
    sg__fetch rdma-core '*'
}

sg_source_rdma_core_of() {
    sg_step "src-rdma-core-$1" "fetching the source of rdma-core of $1" "${sg__fetch_keys[@]}" \
        -- sg__fetch_rdma_core "$1"
}

# Debian packages fio without its librpma engines; its source has them.  This is Debian 12's source,
# because not all mirrors have that of Debian 13.
sg_source_fio() {
    sg_step src-fio "fetching Debian's source of fio 3.33" "${sg__fetch_keys[@]}" \
        @3.33-* -- sg__fetch fio '3.33-*'
}

# sg__fetch_kernel TAR-OPTIONS: the guest's kernel source, Debian's patches applied, in ./src.  It
# comes from the binary package, because a mirror that has the kernel has that package of the same
# version, too.  The source package may come later.
sg__fetch_kernel() {
    cd "$SG_OUT" || return
    sg_apt_extract "$SG_OUT/deb" linux-source-6.12 || return
    mkdir src
    # shellcheck disable=SC2086  # options, blanks between them
    tar -xf deb/usr/src/linux-source-6.12.tar.xz -C src --strip-components=1 $1 || return
    rm -rf deb
}

# Parts of it: siw for the tests, and the script that checks kernel patches.
sg__fetch_siw() {
    sg__fetch_kernel \
        "--wildcards */drivers/infiniband/sw/siw/* */include/uapi/rdma/siw-abi.h
            */scripts/checkpatch.pl */scripts/spelling.txt */scripts/const_structs.checkpatch"
    [ -r src/drivers/infiniband/sw/siw/siw_main.c ] && [ -r src/include/uapi/rdma/siw-abi.h ] &&
        [ -r src/scripts/checkpatch.pl ]
}

sg_source_siw() {
    sg_step src-siw "fetching siw from Debian's source of Linux 6.12" "${sg__fetch_keys[@]}" \
        @6.12.* @siw-3 -- sg__fetch_siw
}

# Likewise the SMB client and server: Debian's kernel has them without RDMA.
sg__fetch_smb() {
    sg__fetch_kernel \
        "--wildcards */fs/smb/* */fs/nls/nls_ucs2* */scripts/asn1_compiler.c"
    [ -r src/fs/smb/client/smbdirect.c ] && [ -r src/fs/smb/server/transport_rdma.c ]
}

sg_source_smb() {
    sg_step src-smb "fetching SMB from Debian's source of Linux 6.12" "${sg__fetch_keys[@]}" \
        @6.12.* @smb-3 -- sg__fetch_smb
}

# The guest's kernel source, for a build of our own.  Drivers and architectures that no VM needs are
# left out, except for their Kconfig files, which the configuration reads.
sg__fetch_linux() {
    local no
    no="--exclude=*/drivers/gpu/*.[ch] --exclude=*/drivers/media/*.[ch] --exclude=*/sound/*.[ch]"
    no="$no --exclude=*/drivers/net/wireless/*.[ch] --exclude=*/drivers/net/ethernet/*.[ch]"
    no="$no --exclude=*/drivers/staging/*.[ch] --exclude=*/drivers/infiniband/hw/*.[ch]"
    no="$no --exclude=*/arch/[!x]*/*.[chS] --exclude=*.dts --exclude=*.dtsi"
    no="$no --exclude=*/Documentation/*/* --exclude=*/tools/testing/*"
    sg__fetch_kernel "$no"
    [ -r src/drivers/infiniband/core/cma.c ] && [ -r src/arch/x86/Makefile ]
}

sg_source_linux() {
    sg_step src-linux "fetching Debian's source of Linux 6.12" "${sg__fetch_keys[@]}" \
        @6.12.* @linux-2 -- sg__fetch_linux
}

# Meson 1.7 in a virtual environment: Debian 12 has 1.0, QEMU wants 1.5.  Run
# it as `sg_meson ARGS`; QEMU's configure takes "$(sg_product meson)/bin/python3".
sg__make_meson() {
    cd "$SG_OUT" || return
    sg_apt_extract "$SG_OUT/deb" meson
    /usr/bin/python3 -m venv --without-pip .
    cp -r deb/usr/lib/python3/dist-packages/. lib/python3*/site-packages/
    rm -rf deb
    bin/python3 -m mesonbuild.mesonmain --version
}

sg_tool_meson() {
    sg_step meson "fetching Debian 13's meson" "${sg__fetch_keys[@]}" \
        "@$(/usr/bin/python3 --version)" -- sg__make_meson
}

sg_meson() {
    "$(sg_product meson)/bin/python3" -m mesonbuild.mesonmain "$@"
}

# BIOS, UEFI, option and boot ROMs for QEMU's -L: "$(sg_product firmware)/share".
sg__make_firmware() {
    cd "$SG_OUT" || return
    sg_apt_extract "$SG_OUT/deb" seabios ovmf qemu-system-data ipxe-qemu
    mkdir share
    cp -rL deb/usr/share/seabios/. share/
    cp deb/usr/share/OVMF/OVMF_{CODE,VARS}_4M.fd share/
    (cd deb/usr/share/qemu &&
        cp kvmvapic.bin linuxboot*.bin multiboot*.bin pvh.bin pxe-*.rom efi-*.rom \
            "$SG_OUT/share/")
    rm -rf deb
    [ -r share/bios-256k.bin ] && [ -r share/linuxboot_dma.bin ] && [ -r share/pxe-virtio.rom ]
}

sg_tool_firmware() {
    sg_step firmware "fetching Debian's boot firmware" "${sg__fetch_keys[@]}" @ovmf \
        -- sg__make_firmware
}

# GNU parallel and Slurm, for tests of the examples in docs/crash-laboratory.md:
# "$(sg_product schedulers)/root" has what the machine itself lacks.
sg__schedulers='parallel slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge'

sg__make_schedulers() {
    cd "$SG_OUT" || return
    mkdir root
    # shellcheck disable=SC2086  # packages' names, blanks between them
    sg_apt_extract_missing "$SG_OUT/root" $sg__schedulers
    rm -rf root/usr/share/doc root/usr/share/man
}

# Its keys name the release and what is missing, because the programs run on this machine.
sg_tool_schedulers() {
    local missing
    # shellcheck disable=SC2086  # as above
    missing=$(sg_missing $sg__schedulers | tr '\n' ' ')
    sg_step schedulers "fetching Debian's GNU parallel and Slurm" @1 "@$(sg_host_suite)" \
        "@$sg__schedulers" "@$missing" -- sg__make_schedulers
}

# sg_write_program NAME: writes standard input to $SG_BUILD/bin/NAME; an unchanged file keeps its
# time.
sg_write_program() {
    local file=$SG_BUILD/bin/$1 new=$SG_BUILD/bin/$1.new.$BASHPID
    mkdir -p "$SG_BUILD/bin"
    cat > "$new"
    chmod +x "$new"
    if cmp -s "$file" "$new"; then
        rm "$new"
    else
        mv "$new" "$file"
    fi
}

# sg_ccache_settings: the lines of a script that set ccache up; its store is in the cache and does
# not depend on the clone's path.
sg_ccache_settings() {
    cat << END
export CCACHE_DIR="$SG_CACHE/ccache" CCACHE_BASEDIR="$SG_BUILD" CCACHE_NOHASHDIR=1
export CCACHE_COMPILERCHECK=content CCACHE_MAXSIZE=4G CCACHE_SLOPPINESS=time_macros
END
}

# The compiler of both meson projects, $SG_BUILD/bin/cc: gcc behind ccache.
sg_write_cc() {
    sg_write_program cc << END
#!/bin/sh
$(sg_ccache_settings)
exec ccache gcc "\$@"
END
}
