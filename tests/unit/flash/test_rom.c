/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flash/rom.h: the chain of images, built and checked; each field malformed in turn. */
#include <glib.h>

#include "flash/rom.h"
#include "flash_make.h"
#include "staghorn/regs.h"
#include "tap.h"

enum { UNIT = 512, BIOS_LEN = UNIT - 1, PE_LEN = 700, EFI = UNIT, PE = EFI + 0x40, PE_AT = 0x80 };

/* The parts that make a PE file one of ours. */
static uint8_t *make_pe(size_t len)
{
    uint8_t *p = g_malloc0(len);

    p[0] = 'M', p[1] = 'Z';
    sg_put_le32(p + 0x3c, PE_AT);
    memcpy(p + PE_AT, "PE\0\0", 4);
    sg_put_le16(p + PE_AT + 4, 0x8664);
    sg_put_le16(p + PE_AT + 24, 0x20b);
    sg_put_le16(p + PE_AT + 24 + 68, 11);
    return p;
}

static uint8_t *make_both(size_t pe_len, size_t *len, const char **why)
{
    uint8_t *bios = make_rom(1), *pe = make_pe(pe_len);
    uint8_t *rom = sg_rom_make(sg_span_of(bios, BIOS_LEN), sg_span_of(pe, pe_len), len, why);

    g_free(bios);
    g_free(pe);
    return rom;
}

static uint8_t sum_of(const uint8_t *p, size_t len)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < len; i++) {
        sum += p[i];
    }
    return sum;
}

static void both_images(void)
{
    const char *why;
    size_t len;
    uint8_t *rom = make_both(PE_LEN, &len, &why);

    T_TRUE(rom);
    T_EQ_U64(len, 3 * UNIT);
    T_TRUE(sg_rom_ok(sg_span_of(rom, len)));
    T_EQ_U64(rom[2], 1);
    T_EQ_U64(sum_of(rom, UNIT), 0);
    T_EQ_U64(rom[0x1c + 0x15], 0); /* another image follows */
    T_EQ_U64(sg_get_le16(rom + EFI), 0xaa55);
    T_EQ_U64(sg_get_le16(rom + EFI + 2), 2);
    T_EQ_U64(sg_get_le32(rom + EFI + 4), 0x0ef1);
    T_EQ_U64(sg_get_le16(rom + EFI + 8), 11);
    T_EQ_U64(sg_get_le16(rom + EFI + 10), 0x8664);
    T_EQ_U64(sg_get_le16(rom + EFI + 0x16), PE - EFI);
    T_EQ_U64(sg_get_le16(rom + EFI + 0x18), 0x1c);
    T_EQ_MEM(rom + EFI + 0x1c, "PCIR", 4);
    T_EQ_U64(sg_get_le16(rom + EFI + 0x1c + 4), SG_PCI_VENDOR_ID);
    T_EQ_U64(sg_get_le16(rom + EFI + 0x1c + 6), SG_PCI_DEVICE_ID);
    T_EQ_U64(sg_get_le16(rom + EFI + 0x1c + 16), 2);
    T_EQ_U64(rom[EFI + 0x1c + 20], 3);
    T_EQ_U64(rom[EFI + 0x1c + 21], 0x80);
    T_EQ_MEM(rom + PE, "MZ", 2);
    g_free(rom);
}

static void one_image(void)
{
    uint8_t *bios = make_rom(1), *rom;
    const char *why;
    size_t len;

    rom = sg_rom_make(sg_span_of(bios, BIOS_LEN), SG_SPAN_NONE, &len, &why);
    T_TRUE(rom);
    T_EQ_U64(len, UNIT);
    T_EQ_U64(rom[0x1c + 0x15], 0x80);
    T_TRUE(sg_rom_ok(sg_span_of(rom, len)));
    g_free(rom);
    /* The last octet is the checksum: an image that fills it needs one more unit. */
    rom = sg_rom_make(sg_span_of(bios, UNIT), SG_SPAN_NONE, &len, &why);
    T_TRUE(rom);
    T_EQ_U64(len, 2 * UNIT);
    T_EQ_U64(sum_of(rom, len), 0);
    g_free(rom);
    g_free(bios);
    T_TRUE(sg_rom_ok(SG_SPAN_NONE));
}

static const struct {
    const char *what;
    size_t offset;
    uint8_t size;
    uint32_t value;
} bad_fields[] = {
    { "BIOS's image is the last", 0x1c + 0x15, 1, 0x80 },
    { "BIOS's image has no length", 0x1c + 0x10, 2, 0 },
    { "BIOS's image is longer than it says", 0x1c + 0x10, 2, 2 },
    { "BIOS's image is of another kind", 0x1c + 0x14, 1, 1 },
    { "BIOS's image is of UEFI's kind", 0x1c + 0x14, 1, 3 },
    { "signature", EFI, 2, 0xaa56 },
    { "length 0", EFI + 2, 2, 0 },
    { "length beyond the image", EFI + 2, 2, 3 },
    { "length far beyond the image", EFI + 2, 2, 0x8000 },
    { "UEFI's signature", EFI + 4, 4, 0x0ef2 },
    { "subsystem", EFI + 8, 2, 12 },
    { "machine", EFI + 10, 2, 0x014c },
    { "compressed", EFI + 12, 2, 1 },
    { "place of the PE file at the end", EFI + 22, 2, 2 * UNIT },
    { "place of the PE file beyond the end", EFI + 22, 2, 0xffff },
    { "place of the PE file elsewhere", EFI + 22, 2, 0x44 },
    { "pointer to PCIR", EFI + 0x18, 2, 0xffff },
    { "pointer to PCIR near the end", EFI + 0x18, 2, 2 * UNIT - 8 },
    { "PCIR", EFI + 0x1c, 1, 'Q' },
    { "vendor", EFI + 0x20, 2, 0x8086 },
    { "device", EFI + 0x22, 2, 1 },
    { "image length 0", EFI + 0x2c, 2, 0 },
    { "image length beyond the ROM", EFI + 0x2c, 2, 3 },
    { "image length too short", EFI + 0x2c, 2, 1 },
    { "kind", EFI + 0x30, 1, 1 },
    { "kind of a BIOS", EFI + 0x30, 1, 0 },
    { "another image announced", EFI + 0x31, 1, 0 },
    { "MZ", PE, 1, 'N' },
    { "pointer to PE", PE + 0x3c, 4, 0xffffffff },
    { "pointer to PE near the end", PE + 0x3c, 4, 2 * UNIT - 0x40 - 100 },
    { "PE", PE + PE_AT, 4, 0x4551 },
    { "PE: machine", PE + PE_AT + 4, 2, 0xaa64 },
    { "PE: PE32", PE + PE_AT + 24, 2, 0x10b },
    { "PE: an application", PE + PE_AT + 24 + 68, 2, 10 },
};

static void each_field_malformed(void)
{
    const char *why;
    size_t len;
    uint8_t *good = make_both(PE_LEN, &len, &why);

    T_TRUE(good);
    for (size_t i = 0; i < G_N_ELEMENTS(bad_fields); i++) {
        uint8_t *rom = g_memdup2(good, len);

        T_CONTEXT("%s", bad_fields[i].what);
        for (unsigned b = 0; b < bad_fields[i].size; b++) {
            rom[bad_fields[i].offset + b] = bad_fields[i].value >> (8 * b);
        }
        rom[UNIT - 1] -= sum_of(rom, UNIT);
        T_TRUE(!sg_rom_ok(sg_span_of(rom, len)));
        g_free(rom);
    }
    for (size_t n = 1; n < len; n++) {
        uint8_t *part = g_memdup2(good, n);

        T_CONTEXT("%zu octets", n);
        T_TRUE(!sg_rom_ok(sg_span_of(part, n)));
        g_free(part);
    }
    good[100]++;
    T_TRUE(!sg_rom_ok(sg_span_of(good, len)));
    g_free(good);
}

static void too_large(void)
{
    const size_t room = SG_ROM_SIZE_MAX - UNIT - (PE - EFI);
    const char *why = NULL;
    size_t len;
    uint8_t *rom = make_both(room, &len, &why), *bios = make_rom(1);

    T_TRUE(rom);
    T_EQ_U64(len, SG_ROM_SIZE_MAX);
    g_free(rom);
    T_TRUE(!make_both(room + 1, &len, &why));
    T_EQ_STR(why, "the images are too large for the expansion ROM");
    why = NULL;
    T_TRUE(!sg_rom_make(sg_span_of(bios, SIZE_MAX), SG_SPAN_NONE, &len, &why));
    T_TRUE(why);
    T_TRUE(!sg_rom_make(sg_span_of(bios, BIOS_LEN), sg_span_of(bios, SIZE_MAX), &len, &why));
    g_free(bios);
    bios = make_rom(SG_ROM_SIZE_MAX / UNIT + 1);
    T_TRUE(!sg_rom_ok(sg_span_of(bios, SG_ROM_SIZE_MAX + UNIT)));
    g_free(bios);
}

static void maker_refuses(void)
{
    uint8_t *bios = make_rom(1), *pe = make_pe(PE_LEN);
    const char *why = NULL;
    size_t len;

    T_TRUE(!sg_rom_make(SG_SPAN_NONE, sg_span_of(pe, PE_LEN), &len, &why));
    T_EQ_STR(why, "the BIOS's image has no PCI data structure");
    T_TRUE(!sg_rom_make(sg_span_of(bios, 0x20), SG_SPAN_NONE, &len, &why));
    T_EQ_STR(why, "the BIOS's image has no PCI data structure");
    pe[PE_AT + 4] ^= 1;
    T_TRUE(!sg_rom_make(sg_span_of(bios, BIOS_LEN), sg_span_of(pe, PE_LEN), &len, &why));
    T_EQ_STR(why, "the UEFI driver is no PE32+ boot service driver for x86-64");
    bios[0x20] ^= 1;
    T_TRUE(!sg_rom_make(sg_span_of(bios, BIOS_LEN), SG_SPAN_NONE, &len, &why));
    T_EQ_STR(why, "the BIOS's image is not one for this adapter");
    g_free(bios);
    g_free(pe);
}

static const struct t_case cases[] = {
    { "images for BIOS and UEFI", both_images },
    { "an image for a BIOS alone", one_image },
    { "each field malformed, each length", each_field_malformed },
    { "too large", too_large },
    { "what makes no ROM", maker_refuses },
};

T_MAIN(cases)
