/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <glib.h>

#include "base/crc32c.h"
#include "flash_make.h"
#include "staghorn/regs.h"

uint8_t *make_rom(unsigned units)
{
    size_t len = units * 512;
    uint8_t *rom = g_malloc0(len), sum = 0;

    rom[0] = 0x55, rom[1] = 0xaa, rom[2] = units;
    sg_put_le16(rom + 0x18, 0x1c);
    memcpy(rom + 0x1c, "PCIR", 4);
    sg_put_le16(rom + 0x20, SG_PCI_VENDOR_ID);
    sg_put_le16(rom + 0x22, SG_PCI_DEVICE_ID);
    sg_put_le16(rom + 0x2c, units);
    rom[0x31] = 0x80;
    for (size_t i = 0; i < len; i++) {
        sum += rom[i];
    }
    rom[len - 1] -= sum;
    return rom;
}

uint8_t *make_firmware(const char *version, const char *profile, unsigned rom_units, size_t *len)
{
    uint8_t *rom = rom_units ? make_rom(rom_units) : NULL, *fw;
    struct sg_profile_info p;

    sg_profile_init(&p, profile);
    fw = sg_firmware_make(version, &p, sg_span_of(rom, rom_units * 512), len);
    g_free(rom);
    return fw;
}

void reseal_firmware(uint8_t *fw, size_t len)
{
    size_t at = offsetof(struct sg_fw_header, crc);
    uint32_t crc = sg_crc32c(0, fw, at);

    crc = sg_crc32c(crc, fw + sizeof(struct sg_fw_header), len - sizeof(struct sg_fw_header));
    sg_put_le32(fw + at, crc);
}

void fill_slot(uint8_t *chip, unsigned slot, uint32_t sequence, const uint8_t *fw, size_t len)
{
    uint8_t *at = chip + SG_FLASH_SLOT_BASE + slot * SG_FLASH_SLOT_SIZE;
    struct sg_firmware parsed;

    memcpy(at + SG_FLASH_FW_OFFSET, fw, len);
    if (sg_firmware_parse(sg_span_of(fw, len), &parsed)) {
        abort();
    }
    sg_slot_make(&parsed, sequence, (void *)at);
}

uint8_t *make_chip(const uint8_t *fw, size_t len)
{
    uint8_t *chip = g_malloc(SG_FLASH_SIZE);
    struct sg_identity id = {
        .product = "Staghorn iWARP RDMA adapter",
        .part = "SG-1",
        .serial = "SN0001",
        .mac = { 0x02, 0, 0, 0, 0, 9 },
        .guid = 0x1122334455667788,
    };

    memset(chip, 0xff, SG_FLASH_SIZE);
    if (!sg_identity_make(&id, (void *)chip)) {
        abort();
    }
    fill_slot(chip, 0, 1, fw, len);
    return chip;
}
