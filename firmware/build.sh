#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the adapter's firmware: firmware/build.sh
#
# Into $SG_BUILD/firmware: sg-flash (see its usage), staghorn.rom (the expansion ROM), and for each
# section NAME of profiles.ini NAME.fw (an update) and NAME.flash (a chip, the device's romfile).
SG_TOP=$(cd "$(dirname "$0")/.." && pwd)
. "$SG_TOP/tools/build/lib.sh"

VERSION=1.0.0

here=$SG_TOP/firmware

# 16-bit code without a C library: only the compiler's own headers, and rom/assert.h.
build_rom() {
    local flags=(-m16 -march=i386 -Os -ffreestanding -fno-builtin -fno-pic -fno-stack-protector
        -fno-asynchronous-unwind-tables -fcf-protection=none -mregparm=3 -nostdinc -U__linux__
        -isystem "$(gcc -print-file-name=include)" "-I$here/rom" "-I$SG_TOP/include"
        -Wall -Wextra -Werror)
    gcc "${flags[@]}" -c "$here/rom/start.S" -o start.o
    gcc "${flags[@]}" -c "$here/rom/main.c" -o main.o
    ld -m elf_i386 -T "$here/rom/rom.ld" -o rom.elf start.o main.o
    objcopy -O binary -j .rom rom.elf rom.bin
    rm start.o main.o rom.elf
}

build_tool() {
    local core=$SG_TOP/hw/core
    gcc -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-parameter "-I$core" "-I$SG_TOP/include" \
        -o sg-flash "$here/sg_flash.c" "$core"/flash/*.c "$core"/base/crc32c*.c \
        $(pkg-config --cflags --libs glib-2.0)
}

build_firmware() {
    local name
    rm -rf "$SG_BUILD/firmware.new"
    mkdir -p "$SG_BUILD/firmware.new"
    cd "$SG_BUILD/firmware.new"
    build_rom
    build_tool
    ./sg-flash rom rom.bin staghorn.rom
    rm rom.bin
    cp "$here/profiles.ini" .
    for name in $(sed -n 's/^\[\(.*\)\]$/\1/p' profiles.ini); do
        ./sg-flash firmware "$name.fw" profiles.ini "$name" "$VERSION" staghorn.rom
        ./sg-flash chip "$name.flash" "$name.fw"
    done
    ./sg-flash show full.flash
    rm -rf "$SG_BUILD/firmware"
    mv "$SG_BUILD/firmware.new" "$SG_BUILD/firmware"
}

sg_plan 1
sg_local firmware-image "building the adapter's firmware" "$here" "$SG_TOP/hw/core/flash" \
    "$SG_TOP/hw/core/base" "$SG_TOP/include/staghorn" @firmware-1 -- build_firmware
