#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the tests of the core and of the provider for a big-endian machine:
#
# the suites unit and sim, in $SG_BUILD/big-endian, and the provider's tests, in
# $SG_BUILD/big-endian-provider/obj/bin.
#
# The machine is s390x: Debian has compiler and libraries for it, and QEMU runs its programs on
# Linux (user emulation).  The product "s390x" has all of them, as far as this machine does not.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"

[ $# -eq 0 ] || sg_die "takes no arguments"

triplet=s390x-linux-gnu
tools="gcc-$triplet qemu-user"
libraries='libc6-dev libglib2.0-dev nettle-dev libnl-3-dev libnl-route-3-dev libudev-dev
    libtirpc-dev libpcap-dev libibverbs-dev librdmacm-dev'

# The emulators of other machines take most of the space.
make_tools() {
    mkdir tools
    # shellcheck disable=SC2086  # packages' names, blanks between them
    sg_apt_extract_missing "$SG_OUT/tools" $tools
    find tools -path '*/bin/qemu-*' ! -name qemu-s390x -delete
    rm -rf tools/usr/share
}

# Debian's libraries name /lib, which is a link there, and a few links are absolute.
make_sysroot() {
    local link
    mkdir sysroot
    # shellcheck disable=SC2086  # as above
    sg_apt_extract_foreign s390x "$SG_OUT/sysroot" $libraries
    cd sysroot || return
    rm -rf bin sbin etc var usr/bin usr/sbin usr/share/doc usr/share/locale usr/share/man \
        usr/lib/python3*
    cp -a lib/. usr/lib/
    rm -rf lib
    ln -s usr/lib lib
    find . -type l -lname '/*' | while read -r link; do
        ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "./$(readlink "$link")")" "$link"
    done
    [ -r "usr/lib/$triplet/libglib-2.0.so" ] && [ -e "lib/ld64.so.1" ]
}

make_product() {
    cd "$SG_OUT" || return
    make_tools
    make_sysroot
}

# Prints the directories of the libraries that the product's own programs need.
library_path() {
    find "$product/tools" -name '*.so*' -printf '%h\n' 2>/dev/null | sort -u | paste -s -d :
}

# tool NAME: path of a program of the product, or of the machine.
tool() {
    if [ -x "$product/tools/usr/bin/$1" ]; then
        echo "$product/tools/usr/bin/$1"
    else
        command -v "$1" || sg_die "there is no $1, in $product either"
    fi
}

# $SG_BUILD/bin/s390x-cc compiles and s390x-run runs; the files for meson and cmake name them.
write_tools() {
    local path compiler emulator
    path=$(library_path)
    compiler=$(tool $triplet-gcc) || exit
    emulator=$(tool qemu-s390x) || exit
    sg_write_program s390x-cc << END
#!/bin/sh
$(sg_ccache_settings)
export LD_LIBRARY_PATH="$path"
exec ccache "$compiler" --sysroot="$product/sysroot" "\$@"
END
    sg_write_program s390x-run << END
#!/bin/sh
export LD_LIBRARY_PATH="$path"
exec "$emulator" -L "$product/sysroot" -E LD_LIBRARY_PATH= "\$@"
END
    sg_write_program s390x-ar << END
#!/bin/sh
export LD_LIBRARY_PATH="$path"
exec "$(tool $triplet-ar)" "\$@"
END
    sg_write_program s390x-strip << END
#!/bin/sh
export LD_LIBRARY_PATH="$path"
exec "$(tool $triplet-strip)" "\$@"
END
    write_meson > "$SG_BUILD/bin/s390x.ini"
    write_cmake > "$SG_BUILD/bin/s390x.cmake"
}

write_meson() {
    cat << END
[binaries]
c = '$SG_BUILD/bin/s390x-cc'
ar = '$SG_BUILD/bin/s390x-ar'
strip = '$SG_BUILD/bin/s390x-strip'
pkg-config = 'pkg-config'
exe_wrapper = '$SG_BUILD/bin/s390x-run'

[properties]
sys_root = '$product/sysroot'
pkg_config_libdir = '$product/sysroot/usr/lib/$triplet/pkgconfig'

[host_machine]
system = 'linux'
cpu_family = 's390x'
cpu = 's390x'
endian = 'big'
END
}

write_cmake() {
    cat << END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(CMAKE_C_COMPILER "$SG_BUILD/bin/s390x-cc")
set(CMAKE_AR "$SG_BUILD/bin/s390x-ar" CACHE FILEPATH "ar")
set(CMAKE_STRIP "$SG_BUILD/bin/s390x-strip" CACHE FILEPATH "strip")
set(CMAKE_CROSSCOMPILING_EMULATOR "$SG_BUILD/bin/s390x-run")
set(CMAKE_FIND_ROOT_PATH "$product/sysroot")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE $triplet)
END
}

configure() {
    local folder=$SG_BUILD/big-endian
    rm -rf "$folder"
    sg_meson setup "$folder" "$SG_TOP" --cross-file "$SG_BUILD/bin/s390x.ini" "$@"
}

# Its build script passes the environment on to cmake.
build_provider() {
    PKG_CONFIG_SYSROOT_DIR=$product/sysroot \
        PKG_CONFIG_LIBDIR=$product/sysroot/usr/lib/$triplet/pkgconfig \
        CMAKE_TOOLCHAIN_FILE=$SG_BUILD/bin/s390x.cmake \
        "$SG_TOP/guest-driver/provider/build" "$(sg_product src-rdma-core)/src" \
        "$SG_BUILD/big-endian-provider" tests
}

sg_plan 7
# shellcheck disable=SC2086  # packages' names, blanks between them
missing=$(sg_missing $tools | tr '\n' ' ')
sg_step s390x "fetching Debian's compiler and libraries for s390x" @1 "@$(sg_host_suite)" \
    "@$tools" "@$libraries" "@$missing" -- make_product
product=$(sg_product s390x)
sg_tool_meson
sg_source_lwip
write_tools
files=$(cd "$SG_TOP" && find hw include tests tools -name meson.build | sort | tr '\n' ' ')
options=("-Dsuites=unit,sim" "-Dlwip_dir=$(sg_product src-lwip)/src")
sg_local big-endian-configure "configuring" "@$(sg_product meson)" "@$SG_TOP" "@$files" \
    "@$product" "@${options[*]}" "$SG_BUILD/bin/s390x.ini" -- configure "${options[@]}"
sg_run big-endian "building for s390x" -- ninja -C "$SG_BUILD/big-endian" -j "$SG_JOBS"
sg_source_rdma_core
sg_run big-endian-provider "building the provider for s390x" -- build_provider
