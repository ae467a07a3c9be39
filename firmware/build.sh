#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the adapter's firmware: firmware/build.sh
#
# $SG_BUILD/firmware gets sg-flash (see its usage), staghorn.rom (the expansion ROM, with an image
# for a BIOS and one for UEFI), staghorn.efi (the UEFI driver alone), and for each section NAME of
# profiles.ini NAME.fw (an update) and NAME.flash (a flash image, the device's romfile).
SG_TOP=$(cd "$(dirname "$0")/.." && pwd)
. "$SG_TOP/tools/build/lib.sh"

VERSION=1.0.0

here=$SG_TOP/firmware

# Both images: no C library, only the compiler's own headers and rom/assert.h.
freestanding=(-Os -ffreestanding -fno-builtin -fno-stack-protector -fno-asynchronous-unwind-tables
    -fcf-protection=none -nostdinc -U__linux__ -isystem "$(gcc -print-file-name=include)"
    "-I$here/rom" "-I$SG_TOP/include" -Wall -Wextra -Werror)

# For a PC's BIOS: 16-bit code.
build_rom() {
    local flags=("${freestanding[@]}" -m16 -march=i386 -fno-pic -mregparm=3) part
    for part in start.S main.c lines.c; do
        gcc "${flags[@]}" -c "$here/rom/$part" -o "${part%.*}.o"
    done
    ld -m elf_i386 -T "$here/rom/rom.ld" -o rom.elf start.o main.o lines.o
    objcopy -O binary -j .rom rom.elf rom.bin
    rm start.o main.o lines.o rom.elf
}

# For UEFI: a driver that runs at any address.
build_uefi() {
    local flags=("${freestanding[@]}" -m64 -march=x86-64 -fshort-wchar -fpie -fvisibility=hidden
        -mno-red-zone -mgeneral-regs-only)
    gcc "${flags[@]}" -c "$here/uefi/main.c" -o main.o
    gcc "${flags[@]}" -c "$here/rom/lines.c" -o lines.o
    ld -m elf_x86_64 -pie --no-dynamic-linker --build-id=none -z noexecstack \
        -T "$here/uefi/uefi.ld" -o uefi.elf main.o lines.o
    objcopy -O binary -j .head -j .text -j .data -j .reloc uefi.elf staghorn.efi
    rm main.o lines.o uefi.elf
}

build_tool() {
    local core=$SG_TOP/hw/core
    # shellcheck disable=SC2046  # options, blanks between them
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
    build_uefi
    ./sg-flash rom rom.bin staghorn.rom staghorn.efi
    rm rom.bin
    cp "$here/profiles.ini" .
    # shellcheck disable=SC2013  # a name has no blanks
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
    "$SG_TOP/hw/core/base" "$SG_TOP/include/staghorn" @firmware-2 -- build_firmware
