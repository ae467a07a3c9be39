/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Codec of the expansion ROM (PCI Firmware Specification 3.0, section 5.1; UEFI Specification 2.10,
 * section 14.4.2).
 *
 * Each image begins with 55 AA and points to a data structure "PCIR" with the image's length
 * and kind, and a flag for the last image.  A BIOS requires that its image's octets add up to
 * zero; UEFI requires a header of its own and a PE file behind it.
 */
#include <glib.h>
#include <string.h>

#include "base/bytes.h"
#include "flash/rom.h"
#include "staghorn/regs.h"

enum { UNIT = 512, SIGNATURE = 0xaa55, AT_PCIR = 0x18, HEADER_LEN = 0x1c };

/* In the data structure. */
enum {
    PCIR_LEN = 0x18,
    PCIR_VENDOR = 4,
    PCIR_DEVICE = 6,
    PCIR_OWN_LEN = 10,
    PCIR_CLASS = 13,
    PCIR_IMAGE_LEN = 16,
    PCIR_REVISION = 18,
    PCIR_KIND = 20,
    PCIR_LAST = 21,
    LAST = 0x80,
};

enum { KIND_BIOS = 0, KIND_EFI = 3 };

/* UEFI's header.  PE_PLACE: where sg_rom_make() puts the PE file. */
enum {
    BIOS_LEN = 2,
    EFI_LEN = 2,
    EFI_SIGNATURE = 4,
    EFI_SUBSYSTEM = 8,
    EFI_MACHINE = 10,
    EFI_COMPRESSION = 12,
    EFI_PLACE = 22,
    EFI_MAGIC = 0x0ef1,
    PE_PLACE = 0x40,
};

/* Offsets in a PE file. */
enum {
    PE_POINTER = 0x3c,
    PE_HEADER_LEN = 24 + 112,
    PE_AT_MACHINE = 4,
    PE_AT_MAGIC = 24,
    PE_AT_SUBSYSTEM = 24 + 68,
    PE32_PLUS = 0x20b,
    PE_X86_64 = 0x8664,
    PE_BOOT_DRIVER = 11,
};

/* Is it a boot service driver for x86-64? */
static bool pe_ok(struct sg_span s)
{
    const uint8_t *p = sg_span_get(s, 0, 0x40);

    if (!p || p[0] != 'M' || p[1] != 'Z') {
        return false;
    }
    p = sg_span_get(s, sg_get_le32(p + PE_POINTER), PE_HEADER_LEN);
    return p && !memcmp(p, "PE\0\0", 4) && sg_get_le16(p + PE_AT_MACHINE) == PE_X86_64 &&
           sg_get_le16(p + PE_AT_MAGIC) == PE32_PLUS &&
           sg_get_le16(p + PE_AT_SUBSYSTEM) == PE_BOOT_DRIVER;
}

static uint8_t sum_of(const uint8_t *p, size_t len)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < len; i++) {
        sum += p[i];
    }
    return sum;
}

static bool bios_ok(struct sg_span image)
{
    return image.p[BIOS_LEN] * UNIT == image.len && sum_of(image.p, image.len) == 0;
}

static bool efi_ok(struct sg_span image)
{
    const uint8_t *p = image.p;
    size_t used = sg_get_le16(p + EFI_LEN) * UNIT, place = sg_get_le16(p + EFI_PLACE);

    return sg_get_le32(p + EFI_SIGNATURE) == EFI_MAGIC && used <= image.len && place < used &&
           sg_get_le16(p + EFI_SUBSYSTEM) == PE_BOOT_DRIVER &&
           sg_get_le16(p + EFI_MACHINE) == PE_X86_64 && !sg_get_le16(p + EFI_COMPRESSION) &&
           pe_ok(sg_span_of(p + place, used - place));
}

/* Length of the image that @rom begins with; 0: not valid.  *last: no further image follows. */
static size_t image_len(struct sg_span rom, bool *last)
{
    const uint8_t *p = sg_span_get(rom, 0, UNIT), *pcir;
    struct sg_span image;

    if (!p || sg_get_le16(p) != SIGNATURE) {
        return 0;
    }
    pcir = sg_span_get(rom, sg_get_le16(p + AT_PCIR), PCIR_LEN);
    if (!pcir || memcmp(pcir, "PCIR", 4) || sg_get_le16(pcir + PCIR_VENDOR) != SG_PCI_VENDOR_ID ||
        sg_get_le16(pcir + PCIR_DEVICE) != SG_PCI_DEVICE_ID) {
        return 0;
    }
    image = sg_span_of(p, sg_get_le16(pcir + PCIR_IMAGE_LEN) * UNIT);
    if (!image.len || image.len > rom.len) {
        return 0;
    }
    *last = pcir[PCIR_LAST] & LAST;
    switch (pcir[PCIR_KIND]) {
    case KIND_BIOS:
        return bios_ok(image) ? image.len : 0;
    case KIND_EFI:
        return efi_ok(image) ? image.len : 0;
    default:
        return 0;
    }
}

bool sg_rom_ok(struct sg_span rom)
{
    bool last = rom.len == 0;

    if (rom.len > SG_ROM_SIZE_MAX) {
        return false;
    }
    while (!last) {
        size_t len = image_len(rom, &last);

        if (!len) {
            return false;
        }
        rom = sg_span_of(rom.p + len, rom.len - len);
    }
    return rom.len == 0;
}

static void efi_header(uint8_t *p, size_t size)
{
    uint8_t *pcir = p + HEADER_LEN;

    sg_put_le16(p, SIGNATURE);
    sg_put_le16(p + EFI_LEN, size / UNIT);
    sg_put_le32(p + EFI_SIGNATURE, EFI_MAGIC);
    sg_put_le16(p + EFI_SUBSYSTEM, PE_BOOT_DRIVER);
    sg_put_le16(p + EFI_MACHINE, PE_X86_64);
    sg_put_le16(p + EFI_PLACE, PE_PLACE);
    sg_put_le16(p + AT_PCIR, HEADER_LEN);
    memcpy(pcir, "PCIR", 4);
    sg_put_le16(pcir + PCIR_VENDOR, SG_PCI_VENDOR_ID);
    sg_put_le16(pcir + PCIR_DEVICE, SG_PCI_DEVICE_ID);
    sg_put_le16(pcir + PCIR_OWN_LEN, PCIR_LEN);
    sg_put_le16(pcir + PCIR_CLASS + 1, SG_PCI_CLASS);
    sg_put_le16(pcir + PCIR_IMAGE_LEN, size / UNIT);
    sg_put_le16(pcir + PCIR_REVISION, 1);
    pcir[PCIR_KIND] = KIND_EFI;
    pcir[PCIR_LAST] = LAST;
}

uint8_t *sg_rom_make(struct sg_span bios, struct sg_span efi, size_t *len, const char **why)
{
    /* The last octet of the BIOS's image is the checksum. */
    size_t bios_size = sg_align_up(bios.len + 1, UNIT);
    size_t efi_size = efi.len ? sg_align_up(PE_PLACE + efi.len, UNIT) : 0;
    uint8_t *rom;
    uint32_t pcir;

    if (bios.len > SG_ROM_SIZE_MAX || efi.len > SG_ROM_SIZE_MAX ||
        bios_size + efi_size > SG_ROM_SIZE_MAX) {
        *why = "the images are too large for the expansion ROM";
        return NULL;
    }
    pcir = bios.len < HEADER_LEN ? 0 : sg_get_le16(bios.p + AT_PCIR);
    if (!pcir || pcir + PCIR_LEN > bios.len) {
        *why = "the BIOS's image has no PCI data structure";
        return NULL;
    }
    *len = bios_size + efi_size;
    rom = g_malloc0(*len);
    memcpy(rom, bios.p, bios.len);
    rom[BIOS_LEN] = bios_size / UNIT;
    sg_put_le16(rom + pcir + PCIR_IMAGE_LEN, bios_size / UNIT);
    rom[pcir + PCIR_LAST] = efi.len ? 0 : LAST;
    rom[bios_size - 1] = 0;
    rom[bios_size - 1] = -sum_of(rom, bios_size);
    if (efi.len) {
        memcpy(rom + bios_size + PE_PLACE, efi.p, efi.len);
        efi_header(rom + bios_size, efi_size);
    }
    if (!sg_rom_ok(sg_span_of(rom, *len))) {
        g_free(rom);
        *why = efi.len && !pe_ok(efi) ? "the UEFI driver is no PE32+ boot service driver for x86-64"
                                      : "the BIOS's image is not one for this adapter";
        return NULL;
    }
    return rom;
}
