#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds QEMU with the device: tools/build/qemu.sh [--compile] [plain] [sanitized]
#
# The tree $SG_BUILD/qemu-src is Debian's source with our patches and two links into this clone
# (hw/staghorn and include/staghorn).  The build folder is $SG_BUILD/qemu, or $SG_BUILD/qemu-san for
# the sanitizer build (ASan and UBSan) that the qtest suite and tests/vm/core/test_hostile.py use.
#
# A binary of committed files is kept in the cache.  A clone that has no build folder yet takes it
# from there, unless --compile says that the folder itself is wanted.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"

compile=no
if [ "${1:-}" = --compile ]; then
    compile=yes
    shift
fi
sg_plan $((4 + 3 * ($# ? $# : 1)))
tree=$SG_BUILD/qemu-src

# Copies Debian's tree or the user's, and adds our parts.
make_tree() {
    local from=$1 devices
    case $(cat "$from/VERSION") in
    10.0.*) ;;
    *)
        echo "$from holds QEMU $(cat "$from/VERSION"); 10.0.x is needed"
        exit 1
        ;;
    esac
    rm -rf "$tree.new"
    mkdir "$tree.new"
    tar -C "$from" --exclude=./.git --exclude=./build --exclude='./roms/*/*' -cf - . |
        tar -C "$tree.new" -xf -
    sg_apply_patches "$tree.new" "$SG_TOP"/hw/device/qemu-patches/*.patch
    ln -s "$SG_TOP/hw" "$tree.new/hw/staghorn"
    ln -s "$SG_TOP/include/staghorn" "$tree.new/include/staghorn"
    ln -s "$lwip" "$tree.new/lwip"
    devices=$tree.new/configs/devices/x86_64-softmmu
    cp "$SG_TOP/tools/build/qemu-devices.mak" "$devices/staghorn.mak"
    # Without the file system library there is no 9p device.
    grep -v 9P "$SG_TOP/tools/build/qemu-devices.mak" > "$devices/staghorn-san.mak"
    keep_times
    rm -rf "$tree"
    mv -T "$tree.new" "$tree"
}

# An unchanged file keeps its time, so that ninja does not rebuild it.
keep_times() {
    local file
    [ -d "$tree" ] || return 0
    # shellcheck disable=SC2013  # a path has no blanks
    for file in $(sed -n 's,^+++ b/,,p' "$SG_TOP"/hw/device/qemu-patches/*.patch); do
        if cmp -s "$tree/$file" "$tree.new/$file"; then
            touch -r "$tree/$file" "$tree.new/$file"
        fi
    done
}

common=(
    --target-list=x86_64-softmmu --without-default-features --without-default-devices
    --enable-system --disable-tools --disable-docs --disable-install-blobs --disable-werror
    --enable-fdt=system --enable-kvm
)
plain=(
    --with-devices-x86_64=staghorn --enable-tcg --enable-slirp --enable-plugins --enable-virtfs
    --enable-attr --enable-vhost-user
)
if [ "$SG_SANITIZERS" = 1 ]; then
    plain+=(--enable-asan --enable-ubsan)
else
    plain+=(--disable-debug-info)
fi
# Only as much debug information as reports need for source lines.  qtest starts this QEMU very
# often, and a third of each start went to the relocations of a position-independent program.
sanitized=(
    --disable-pie --extra-ldflags=-no-pie
    --with-devices-x86_64=staghorn-san --enable-asan --enable-ubsan --enable-tcg
    --disable-debug-info --extra-cflags=-g1 -Doptimization=1
)

# Configures in place; empties a folder that an older configuration has made unusable.
configure_build() {
    mkdir -p "$out"
    cd "$out"
    if ! run_configure; then
        echo "trying again in an empty folder"
        cd /
        rm -rf "$out"
        mkdir -p "$out"
        cd "$out"
        run_configure
    fi
}

run_configure() {
    "$tree/configure" --python="$meson/bin/python3" --cc="$SG_BUILD/bin/cc" \
        --ninja=/usr/bin/ninja "${flags[@]}"
}

build() {
    ninja -C "$out" -j "$SG_JOBS" qemu-system-x86_64
}

sg_tool_meson
meson=$SG_OUT
sg_source_lwip
lwip=$SG_OUT/src
if [ -n "$SG_QEMU_SRC" ]; then
    from=$SG_QEMU_SRC
    [ -r "$from/VERSION" ] || sg_die "--qemu-src=$from is not a QEMU source tree"
else
    sg_source_qemu
    from=$SG_OUT/src
fi
sg_write_cc
# @tree-N counts changes of make_tree.
sg_local qemu-src "preparing QEMU's source tree" @tree-3 "@$from" "@$lwip" "@$SG_TOP" \
    "$SG_TOP/hw/device/qemu-patches" "$SG_TOP/tools/build/qemu-devices.mak" -- make_tree "$from"

# Whether what goes into QEMU is what git has: experiments do not fill the cache.
is_committed() {
    [ -z "$(git -C "$SG_TOP" status --porcelain hw include tools/build 2>&1)" ]
}

keep_binary() {
    cp --reflink=auto "$out/qemu-system-x86_64" "$SG_OUT"
}

# build_variant NAME FLAG...: configures and builds in $SG_BUILD/NAME, or takes a kept binary.
build_variant() {
    local name=$1 keys key
    shift
    out=$SG_BUILD/$name
    flags=("${common[@]}" "$@")
    keys=("@$from" "@$lwip" "@$meson" "@${flags[*]}" "@$host" "$SG_TOP/hw" "$SG_TOP/include"
        "$SG_TOP/tools/build/qemu-devices.mak")
    key=$(sg_key "$name-binary" "${keys[@]}") || sg_die "cannot compute the key of QEMU's binary"
    if [ $compile = no ] && [ ! -e "$out/build.ninja" ] && [ -d "$SG_CACHE/$name-binary-$key" ]
    then
        sg_step "$name-binary" "keeping QEMU" "${keys[@]}" -- keep_binary
        mkdir -p "$out"
        cp --reflink=auto "$SG_OUT/qemu-system-x86_64" "$out"
        return
    fi
    sg_local "$name-configure" "configuring QEMU" "@$from" "@$meson" "@$SG_TOP" "@${flags[*]}" \
        "$SG_TOP/hw/device/qemu-patches" "$SG_TOP/tools/build/qemu-devices.mak" -- configure_build
    sg_run "$name" "building QEMU" -- build
    ! is_committed || sg_step "$name-binary" "keeping QEMU" "${keys[@]}" -- keep_binary
}

# A binary is for this compiler and these versions of libraries.
host=$(gcc --version | head -n 1
    dpkg-query -W -f '${Package} ${Version}\n' 'libglib2.0-*' 'libpixman-1-*' 'libslirp*' \
        'libfdt*' libc6 2>&1 | sort)

for variant in "${@:-plain}"; do
    case $variant in
    plain) build_variant qemu "${plain[@]}" ;;
    sanitized) build_variant qemu-san "${sanitized[@]}" ;;
    *) sg_die "unknown variant $variant" ;;
    esac
done
