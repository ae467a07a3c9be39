/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flash/image.h: firmware and identity, built and parsed; each field malformed in turn. */
#include <glib.h>

#include "flash_make.h"
#include "staghorn/regs.h"
#include "tap.h"

static void round_trip(void)
{
    struct sg_firmware fw;
    size_t len;
    uint8_t *octets = make_firmware("1.2.3", "full", 2, &len);

    T_TRUE(octets);
    T_EQ_INT(sg_firmware_parse(sg_span_of(octets, len), &fw), SG_FLASH_GOOD);
    T_EQ_STR(fw.version, "1.2.3");
    T_EQ_U64(fw.version_word, 0x010203);
    T_EQ_U64(fw.length, len);
    T_EQ_U64(fw.rom.len, 1024);
    T_EQ_STR(fw.profile.name, "full");
    T_EQ_U64(fw.profile.max_sge, SG_PROFILE_ANY);
    T_EQ_U64(fw.profile.crc, SG_PROFILE_ANY_8);
    g_free(octets);
}

static void profile_travels(void)
{
    struct sg_profile_info p;
    struct sg_firmware fw;
    uint8_t *octets;
    size_t len;

    sg_profile_init(&p, "sixteen-letters.");
    p.features = 0x55, p.mpa_rev = 1, p.crc = 1, p.markers = 0, p.commit = 2, p.peer_to_peer = 1;
    p.max_qp = 7, p.max_cq = 8, p.max_mr = 9, p.max_pd = 10, p.max_qp_wr = 64, p.max_cqe = 65;
    p.max_sge = 3, p.max_inline = 0, p.max_ird = 1, p.max_ord = 2, p.max_conns = 11;
    p.max_listeners = 12, p.max_mr_size = 30;
    octets = sg_firmware_make("0.0.255", &p, SG_SPAN_NONE, &len);
    T_TRUE(octets);
    sg_profile_init(&fw.profile, ""); /* zeroes the padding, too */
    T_EQ_INT(sg_firmware_parse(sg_span_of(octets, len), &fw), SG_FLASH_GOOD);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): both were zeroed, padding included */
    T_TRUE(!memcmp(&fw.profile, &p, sizeof(p)));
    T_EQ_U64(fw.rom.len, 0);
    g_free(octets);
}

struct bad_field {
    const char *what;
    size_t offset;
    uint8_t size; /* 1, 2 or 4 octets, little-endian */
    uint32_t value;
    bool seal; /* gets a valid checksum */
    enum sg_flash_reason reason;
};

#define FW(field) offsetof(struct sg_fw_header, field)
#define PROFILE(field) (FW(profile) + offsetof(struct sg_profile, field))
#define ROM(offset) (sizeof(struct sg_fw_header) + (offset))

static const struct bad_field bad_fields[] = {
    { "magic", FW(magic), 1, 's', true, SG_FLASH_NOT_OURS },
    { "format 0", FW(format), 4, 0, true, SG_FLASH_FORMAT_NEW },
    { "format 2", FW(format), 4, 2, true, SG_FLASH_FORMAT_NEW },
    { "length 0", FW(length), 4, 0, true, SG_FLASH_LENGTH },
    { "length of the header less one word", FW(length), 4, 156, true, SG_FLASH_LENGTH },
    { "length no multiple of 4", FW(length), 4, 1182, true, SG_FLASH_LENGTH },
    { "length beyond a slot", FW(length), 4, SG_FW_SIZE_MAX + 4, true, SG_FLASH_LENGTH },
    { "length 2^32 - 4", FW(length), 4, 0xfffffffc, true, SG_FLASH_LENGTH },
    { "length beyond the octets", FW(length), 4, 2048, true, SG_FLASH_SHORT },
    { "length shorter than it is", FW(length), 4, 1180, false, SG_FLASH_CHECKSUM },
    { "vendor", FW(vendor_id), 2, 0x8086, true, SG_FLASH_DEVICE },
    { "device", FW(device_id), 2, 0x5348, true, SG_FLASH_DEVICE },
    { "version empty", FW(version), 4, 0, true, SG_FLASH_TEXT },
    { "version control character", FW(version), 1, 7, true, SG_FLASH_TEXT },
    { "version of letters", FW(version), 1, 'a', true, SG_FLASH_TEXT },
    { "version goes on behind its end", FW(version) + 9, 1, '1', true, SG_FLASH_TEXT },
    { "version with four parts", FW(version) + 5, 1, '.', true, SG_FLASH_TEXT },
    { "version part 999", FW(version) + 4, 4, 0x393939, true, SG_FLASH_TEXT },
    { "reserved field", FW(reserved_352), 4, 1, true, SG_FLASH_RESERVED },
    { "reserved field at the end", FW(reserved_1152) + 8, 4, 1, true, SG_FLASH_RESERVED },
    { "checksum", FW(crc), 1, 0x5a, false, SG_FLASH_CHECKSUM },
    { "rom_offset in the header", FW(rom_offset), 4, 156, true, SG_FLASH_LENGTH },
    { "rom_offset 0", FW(rom_offset), 4, 0, true, SG_FLASH_LENGTH },
    { "rom_offset beyond the end", FW(rom_offset), 4, 0x10000, true, SG_FLASH_LENGTH },
    { "rom_offset 2^32 - 4", FW(rom_offset), 4, 0xfffffffc, true, SG_FLASH_LENGTH },
    { "rom_offset misaligned", FW(rom_offset), 4, 161, true, SG_FLASH_LENGTH },
    { "rom_length 0", FW(rom_length), 4, 0, true, SG_FLASH_LENGTH },
    { "rom_length no multiple of 512", FW(rom_length), 4, 1000, true, SG_FLASH_ROM },
    { "rom_length beyond the end", FW(rom_length), 4, 1536, true, SG_FLASH_LENGTH },
    { "rom_length 2^32 - 512", FW(rom_length), 4, 0xfffffe00, true, SG_FLASH_LENGTH },
    { "ROM signature", ROM(0), 1, 0x54, true, SG_FLASH_ROM },
    { "ROM length byte", ROM(2), 1, 3, true, SG_FLASH_ROM },
    { "ROM pointer to PCIR", ROM(0x18), 2, 0xffff, true, SG_FLASH_ROM },
    { "ROM pointer to PCIR near the end", ROM(0x18), 2, 1020, true, SG_FLASH_ROM },
    { "ROM PCIR signature", ROM(0x1c), 1, 'Q', true, SG_FLASH_ROM },
    { "ROM vendor", ROM(0x20), 2, 0x8086, true, SG_FLASH_ROM },
    { "ROM not the last image", ROM(0x31), 1, 0, true, SG_FLASH_ROM },
    { "ROM does not add up", ROM(0x100), 1, 1, true, SG_FLASH_ROM },
    { "profile without a name", PROFILE(name), 4, 0, true, SG_FLASH_PROFILE },
    { "profile name control character", PROFILE(name), 1, 0x80, true, SG_FLASH_TEXT },
    { "profile mpa_rev 0", PROFILE(mpa_rev), 1, 0, true, SG_FLASH_PROFILE },
    { "profile mpa_rev 3", PROFILE(mpa_rev), 1, 3, true, SG_FLASH_PROFILE },
    { "profile crc 2", PROFILE(crc), 1, 2, true, SG_FLASH_PROFILE },
    { "profile markers 2", PROFILE(markers), 1, 2, true, SG_FLASH_PROFILE },
    { "profile peer_to_peer 2", PROFILE(peer_to_peer), 1, 2, true, SG_FLASH_PROFILE },
    { "profile commit 3", PROFILE(commit), 1, 3, true, SG_FLASH_PROFILE },
    { "profile max_mr_size 64", PROFILE(max_mr_size), 4, 64, true, SG_FLASH_PROFILE },
    { "profile reserved", PROFILE(reserved_200), 1, 1, true, SG_FLASH_RESERVED },
    { "profile reserved at the end", PROFILE(reserved_640) + 12, 4, 1, true, SG_FLASH_RESERVED },
};

static void each_field_malformed(void)
{
    size_t len;
    uint8_t *good = make_firmware("1.0.0", "full", 2, &len);

    for (size_t i = 0; i < G_N_ELEMENTS(bad_fields); i++) {
        const struct bad_field *row = &bad_fields[i];
        uint8_t *octets = g_memdup2(good, len);
        struct sg_firmware fw;

        T_CONTEXT("%s", row->what);
        for (unsigned b = 0; b < row->size; b++) {
            octets[row->offset + b] = row->value >> (8 * b);
        }
        if (row->seal) {
            reseal_firmware(octets, len);
        }
        T_EQ_INT(sg_firmware_parse(sg_span_of(octets, len), &fw), row->reason);
        g_free(octets);
    }
    g_free(good);
}

/* Every changed octet of a firmware is detected, and so is every missing one. */
static void each_octet_counts(void)
{
    size_t len;
    uint8_t *octets = make_firmware("1.0.0", "full", 1, &len);
    struct sg_firmware fw;

    for (size_t i = 0; i < len; i++) {
        T_CONTEXT("octet %zu", i);
        octets[i] ^= 0x10;
        T_TRUE(sg_firmware_parse(sg_span_of(octets, len), &fw) != SG_FLASH_GOOD);
        octets[i] ^= 0x10;
        T_EQ_INT(sg_firmware_parse(sg_span_of(octets, i), &fw), SG_FLASH_SHORT);
    }
    T_EQ_INT(sg_firmware_parse(sg_span_of(octets, len), &fw), SG_FLASH_GOOD);
    g_free(octets);
}

static void maker_refuses(void)
{
    struct sg_profile_info p;
    uint8_t *rom = make_rom(1);
    size_t len;

    sg_profile_init(&p, "full");
    T_TRUE(!sg_firmware_make("1.0", &p, SG_SPAN_NONE, &len));
    T_TRUE(!sg_firmware_make("1.0.256", &p, SG_SPAN_NONE, &len));
    T_TRUE(!sg_firmware_make("1.0.0-rc", &p, SG_SPAN_NONE, &len));
    T_TRUE(!sg_firmware_make("1.0.0", &p, sg_span_of(rom, 511), &len));
    rom[100]++;
    T_TRUE(!sg_firmware_make("1.0.0", &p, sg_span_of(rom, 512), &len));
    p.crc = 2;
    T_TRUE(!sg_firmware_make("1.0.0", &p, SG_SPAN_NONE, &len));
    g_free(rom);
}

static void identity(void)
{
    struct sg_identity id = { .product = "P", .part = "sixteen-letters.", .serial = "S" }, back;
    struct sg_flash_header h;

    T_TRUE(sg_identity_make(&id, &h));
    T_EQ_INT(sg_identity_parse(sg_span_of(&h, sizeof(h)), &back), SG_FLASH_GOOD);
    T_EQ_STR(back.part, "sixteen-letters.");
    for (size_t i = 0; i < sizeof(h); i++) {
        T_CONTEXT("octet %zu", i);
        ((uint8_t *)&h)[i] ^= 0x81;
        T_TRUE(sg_identity_parse(sg_span_of(&h, sizeof(h)), &back) != SG_FLASH_GOOD);
        T_EQ_INT(sg_identity_parse(sg_span_of(&h, i), &back), SG_FLASH_SHORT);
        ((uint8_t *)&h)[i] ^= 0x81;
    }
    id.mac[0] = 1;
    T_TRUE(!sg_identity_make(&id, &h));
    id.mac[0] = 0;
    strcpy(id.serial, "tab\t");
    T_TRUE(!sg_identity_make(&id, &h));
}

static void reasons_have_words(void)
{
    for (int i = 0; i < SG_FLASH_REASONS; i++) {
        T_CONTEXT("reason %d", i);
        T_TRUE(sg_flash_reason_text(i) && *sg_flash_reason_text(i));
    }
    T_EQ_STR(sg_flash_reason_text(SG_FLASH_REASONS), "unknown");
}

static const struct t_case cases[] = {
    { "firmware round trip", round_trip },
    { "profile round trip", profile_travels },
    { "each field of a firmware malformed", each_field_malformed },
    { "each octet of a firmware counts", each_octet_counts },
    { "what makes no firmware", maker_refuses },
    { "identity, each octet malformed", identity },
    { "each reason has words", reasons_have_words },
};

T_MAIN(cases)
