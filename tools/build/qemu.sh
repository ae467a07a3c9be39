#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds QEMU with the device: tools/build/qemu.sh [--compile] [plain] [sanitized] [arm64] [targets]
#
# plain and sanitized emulate x86-64, arm64 emulates that (docs/other-machines.md); targets only
# compiles the device for each target of QEMU that has PCI, and looks for missing functions.
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
    cp "$SG_TOP/tools/build/qemu-devices-arm64.mak" \
        "$tree.new/configs/devices/aarch64-softmmu/staghorn.mak"
    # With PCI, but by default without devices for it.
    devices=$tree.new/configs/devices/s390x-softmmu
    (cat "$devices/default.mak" && echo CONFIG_STAGHORN=y) > "$devices/staghorn.mak"
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
    --without-default-features --enable-system --disable-tools --disable-docs
    --disable-install-blobs --disable-werror --enable-fdt=system
)
x86=(--target-list=x86_64-softmmu --without-default-devices --enable-kvm)
plain=(
    "${x86[@]}" --with-devices-x86_64=staghorn --enable-tcg --enable-slirp --enable-plugins
    --enable-virtfs --enable-attr --enable-vhost-user
)
arm64=(
    --target-list=aarch64-softmmu --without-default-devices --with-devices-aarch64=staghorn
    --enable-tcg --enable-slirp --enable-virtfs --enable-attr --disable-debug-info
)
if [ "$SG_SANITIZERS" = 1 ]; then
    plain+=(--enable-asan --enable-ubsan)
else
    plain+=(--disable-debug-info)
fi
# Only as much debug information as reports need for source lines.  qtest starts this QEMU very
# often, and a third of each start went to the relocations of a position-independent program.
sanitized=(
    "${x86[@]}" --disable-pie --extra-ldflags=-no-pie
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
    ninja -C "$out" -j "$SG_JOBS" "$program"
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
configs=("$SG_TOP/hw/device/qemu-patches" "$SG_TOP"/tools/build/qemu-devices*.mak)
sg_local qemu-src "preparing QEMU's source tree" @tree-5 "@$from" "@$lwip" "@$SG_TOP" \
    "${configs[@]}" -- make_tree "$from"

# Whether what goes into QEMU is what git has: experiments do not fill the cache.
is_committed() {
    [ -z "$(git -C "$SG_TOP" status --porcelain hw include tools/build 2>&1)" ]
}

keep_binary() {
    cp --reflink=auto "$out/$program" "$SG_OUT"
}

# build_variant NAME PROGRAM FLAG...: configures and builds in $SG_BUILD/NAME, or takes a kept
# binary.
build_variant() {
    local name=$1 keys key
    program=$2
    shift 2
    out=$SG_BUILD/$name
    flags=("${common[@]}" "$@")
    keys=("@$from" "@$lwip" "@$meson" "@${flags[*]}" "@$host" "$SG_TOP/hw" "$SG_TOP/include"
        "$SG_TOP/tools/build/qemu-devices$([ "$name" != qemu-arm64 ] || echo -arm64).mak")
    key=$(sg_key "$name-binary" "${keys[@]}") || sg_die "cannot compute the key of QEMU's binary"
    if [ $compile = no ] && [ ! -e "$out/build.ninja" ] && [ -d "$SG_CACHE/$name-binary-$key" ]
    then
        sg_step "$name-binary" "keeping QEMU" "${keys[@]}" -- keep_binary
        mkdir -p "$out"
        cp --reflink=auto "$SG_OUT/$program" "$out"
        return
    fi
    sg_local "$name-configure" "configuring QEMU" "@$from" "@$meson" "@$SG_TOP" "@${flags[*]}" \
        "${configs[@]}" -- configure_build
    sg_run "$name" "building QEMU" -- build
    ! is_committed || sg_step "$name-binary" "keeping QEMU" "${keys[@]}" -- keep_binary
}

# ---- targets ----

# The objects that QEMU would link for a target: its own ones of the device.
objects_of() {
    ninja -C "$out" -t inputs "qemu-system-$1" | grep -E '^[^ ]*(hw_staghorn_|libsg_)[^ ]*\.[oa]$' |
        sort -u
}

# What the objects of a target need of the device, and none of them has.
missing_in() {
    (cd "$out" && objects_of "$1" | xargs nm -g) |
        awk '$1 == "U" { needed[$2] = 1 } NF == 3 { found[$3] = 1 }
            END { for (name in needed)
                if (name ~ /^(staghorn|sg)_/ && !(name in found)) print name }' | sort
}

compile_targets() {
    local target config missing with=() without=() objects=() status=0
    for config in "$out"/*-softmmu-config-devices.mak; do
        target=${config##*/}
        target=${target%-softmmu-config-devices.mak}
        if ! grep -qx CONFIG_PCI=y "$config"; then
            without+=("$target")
            continue
        fi
        with+=("$target")
        grep -qx CONFIG_STAGHORN=y "$config" || {
            echo "$target has PCI, and is configured without the device"
            status=1
        }
        mapfile -t -O ${#objects[@]} objects < <(objects_of "$target")
    done
    mapfile -t objects < <(printf '%s\n' "${objects[@]}" | sort -u)
    ninja -C "$out" -j "$SG_JOBS" "${objects[@]}" || return
    for target in "${with[@]}"; do
        missing=$(missing_in "$target" | tr '\n' ' ')
        [ -z "$missing" ] || {
            echo "$target lacks: $missing"
            status=1
        }
    done
    echo "compiled for ${#with[@]} targets with PCI: ${with[*]}"
    echo "targets without PCI: ${without[*]}"
    return $status
}

# Each target has all of its devices and machines, because these decide whether it has PCI.
build_targets() {
    local list
    out=$SG_BUILD/qemu-targets
    list=$(cd "$tree/configs/targets" && printf '%s,' *-softmmu.mak)
    list=${list//.mak/}
    flags=("${common[@]}" "--target-list=${list%,}" --enable-tcg --disable-debug-info
        --with-devices-s390x=staghorn)
    sg_local qemu-targets-configure "configuring QEMU for all targets" "@$from" "@$meson" \
        "@$SG_TOP" "@${flags[*]}" "${configs[@]}" -- configure_build
    sg_run qemu-targets "compiling the device for all targets with PCI" -- compile_targets
    tail -n 2 "$SG_LOGS/qemu-targets.log" | sed 's/^/        /'
}

# A binary is for this compiler and these versions of libraries.
host=$(gcc --version | head -n 1
    dpkg-query -W -f '${Package} ${Version}\n' 'libglib2.0-*' 'libpixman-1-*' 'libslirp*' \
        'libfdt*' libc6 2>&1 | sort)

for variant in "${@:-plain}"; do
    case $variant in
    plain) build_variant qemu qemu-system-x86_64 "${plain[@]}" ;;
    sanitized) build_variant qemu-san qemu-system-x86_64 "${sanitized[@]}" ;;
    arm64) build_variant qemu-arm64 qemu-system-aarch64 "${arm64[@]}" ;;
    targets) build_targets ;;
    *) sg_die "unknown variant $variant" ;;
    esac
done
