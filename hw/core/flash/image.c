/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Codec of the flash's structures (include/staghorn/flash.h).
 *
 * Order of the checks: size, magic, format, lengths, checksum, then each field.  So the reason
 * distinguishes a damaged image from one that was built wrongly.
 */
#include <glib.h>

#include "base/crc32c.h"
#include "flash/image.h"
#include "flash/rom.h"
#include "staghorn/regs.h"

static const char *const reasons[SG_FLASH_REASONS] = {
    [SG_FLASH_GOOD] = "it is good",
    [SG_FLASH_SHORT] = "it ends too early",
    [SG_FLASH_NOT_OURS] = "it is not one of Staghorn's",
    [SG_FLASH_FORMAT_NEW] = "its format is not known here",
    [SG_FLASH_LENGTH] = "a length or an offset in it is impossible",
    [SG_FLASH_CHECKSUM] = "its checksum is wrong",
    [SG_FLASH_DEVICE] = "it is for another adapter",
    [SG_FLASH_TEXT] = "its version or a name is malformed",
    [SG_FLASH_ROM] = "its expansion ROM is malformed",
    [SG_FLASH_PROFILE] = "a value of its profile is out of range",
    [SG_FLASH_RESERVED] = "a reserved field is not zero",
    [SG_FLASH_MEDIUM] = "the flash does not take it",
    [SG_FLASH_EMPTY] = "it is empty",
};

const char *sg_flash_reason_text(enum sg_flash_reason reason)
{
    return (unsigned)reason < SG_FLASH_REASONS ? reasons[reason] : "unknown";
}

static bool all_zero(const void *p, size_t n)
{
    const uint8_t *octets = p;

    for (size_t i = 0; i < n; i++) {
        if (octets[i]) {
            return false;
        }
    }
    return true;
}

/* Printable octets, then zeros only; @out has room for one more. */
static bool get_text(char *out, const uint8_t *field, size_t size)
{
    size_t len = 0;

    while (len < size && field[len] > ' ' - 1 && field[len] < 0x7f) {
        len++;
    }
    memcpy(out, field, len);
    memset(out + len, 0, size + 1 - len);
    return all_zero(field + len, size - len);
}

static bool put_text(uint8_t *field, size_t size, const char *text)
{
    size_t len = strlen(text);
    char back[64];

    if (len > size) {
        return false;
    }
    memcpy(field, text, len);
    memset(field + len, 0, size - len);
    return get_text(back, field, size);
}

/* Three decimal numbers to 255, no signs, no spaces; 0: not a version. */
static bool parse_version(const char *text, uint32_t *word)
{
    *word = 0;
    for (int part = 0; part < 3; part++) {
        unsigned value = 0, digits = 0;

        for (; *text >= '0' && *text <= '9' && digits < 4; text++, digits++) {
            value = value * 10 + (*text - '0');
        }
        if (!digits || value > 255 || *text++ != (part < 2 ? '.' : '\0')) {
            return false;
        }
        *word = *word << 8 | value;
    }
    return true;
}

/* ---- profile ---- */

void sg_profile_init(struct sg_profile_info *p, const char *name)
{
    memset(p, 0xff, sizeof(*p)); /* SG_PROFILE_ANY in each */
    memset(p->name, 0, sizeof(p->name));
    g_strlcpy(p->name, name, sizeof(p->name));
}

static bool bit_or_any(uint8_t v)
{
    return v <= 1 || v == SG_PROFILE_ANY_8;
}

/* The checks that do not depend on the adapter's ranges. */
static bool profile_sane(const struct sg_profile_info *p)
{
    return p->name[0] && bit_or_any(p->crc) && bit_or_any(p->markers) &&
           bit_or_any(p->peer_to_peer) && (p->commit <= 2 || p->commit == SG_PROFILE_ANY_8) &&
           (p->mpa_rev == 1 || p->mpa_rev == 2 || p->mpa_rev == SG_PROFILE_ANY_8) &&
           (p->max_mr_size < 64 || p->max_mr_size == SG_PROFILE_ANY);
}

#define PROFILE_OCTETS(X) X(mpa_rev) X(crc) X(markers) X(commit) X(peer_to_peer)
/* clang-format off */
#define PROFILE_WORDS(X) \
    X(features) X(max_qp) X(max_cq) X(max_mr) X(max_pd) X(max_qp_wr) X(max_cqe) X(max_sge) \
    X(max_inline) X(max_ird) X(max_ord) X(max_conns) X(max_listeners) X(max_mr_size)
/* clang-format on */

static enum sg_flash_reason profile_parse(const struct sg_profile *in, struct sg_profile_info *p)
{
    if (!get_text(p->name, in->name, sizeof(in->name))) {
        return SG_FLASH_TEXT;
    }
    if (!all_zero(in->reserved_200, sizeof(in->reserved_200)) ||
        !all_zero(in->reserved_640, sizeof(in->reserved_640))) {
        return SG_FLASH_RESERVED;
    }
#define X(name) p->name = in->name;
    PROFILE_OCTETS(X)
#undef X
#define X(name) p->name = sg_get_le32(&in->name);
    PROFILE_WORDS(X)
#undef X
    return profile_sane(p) ? SG_FLASH_GOOD : SG_FLASH_PROFILE;
}

static bool profile_make(const struct sg_profile_info *p, struct sg_profile *out)
{
#define X(name) out->name = p->name;
    PROFILE_OCTETS(X)
#undef X
#define X(name) sg_put_le32(&out->name, p->name);
    PROFILE_WORDS(X)
#undef X
    return put_text(out->name, sizeof(out->name), p->name) && profile_sane(p);
}

/* ---- firmware ---- */

static uint32_t firmware_crc(const uint8_t *p, size_t len)
{
    size_t at = offsetof(struct sg_fw_header, crc);
    uint32_t crc = sg_crc32c(0, p, at);

    return sg_crc32c(crc, p + sizeof(struct sg_fw_header), len - sizeof(struct sg_fw_header));
}

/* Magic, format, lengths and checksum: after this the octets are undamaged. */
static enum sg_flash_reason firmware_frame(struct sg_span s, struct sg_firmware *out)
{
    const struct sg_fw_header *h = (const void *)sg_span_get(s, 0, sizeof(*h));

    if (!h) {
        return SG_FLASH_SHORT;
    }
    if (memcmp(h->magic, SG_FW_MAGIC, sizeof(h->magic))) {
        return SG_FLASH_NOT_OURS;
    }
    if (sg_get_le32(&h->format) != SG_FLASH_FORMAT) {
        return SG_FLASH_FORMAT_NEW;
    }
    out->length = sg_get_le32(&h->length);
    out->crc = sg_get_le32(&h->crc);
    if (out->length < sizeof(*h) || out->length > SG_FW_SIZE_MAX || out->length % 4) {
        return SG_FLASH_LENGTH;
    }
    if (out->length > s.len) {
        return SG_FLASH_SHORT;
    }
    return firmware_crc(s.p, out->length) == out->crc ? SG_FLASH_GOOD : SG_FLASH_CHECKSUM;
}

static enum sg_flash_reason firmware_rom(const struct sg_fw_header *h, struct sg_span s,
                                         struct sg_firmware *out)
{
    uint32_t offset = sg_get_le32(&h->rom_offset), len = sg_get_le32(&h->rom_length);

    out->rom = SG_SPAN_NONE;
    if (offset == 0 && len == 0) {
        return SG_FLASH_GOOD;
    }
    if (offset % 4 || offset < sizeof(*h) || !len || !sg_range_ok(offset, len, out->length)) {
        return SG_FLASH_LENGTH;
    }
    out->rom = sg_span_of(s.p + offset, len);
    return sg_rom_ok(out->rom) ? SG_FLASH_GOOD : SG_FLASH_ROM;
}

enum sg_flash_reason sg_firmware_parse(struct sg_span s, struct sg_firmware *out)
{
    const struct sg_fw_header *h = (const void *)s.p;
    enum sg_flash_reason reason = firmware_frame(s, out);

    if (reason) {
        return reason;
    }
    if (sg_get_le16(&h->vendor_id) != SG_PCI_VENDOR_ID ||
        sg_get_le16(&h->device_id) != SG_PCI_DEVICE_ID) {
        return SG_FLASH_DEVICE;
    }
    if (!get_text(out->version, h->version, sizeof(h->version)) ||
        !parse_version(out->version, &out->version_word)) {
        return SG_FLASH_TEXT;
    }
    if (!all_zero(&h->reserved_352, sizeof(h->reserved_352)) ||
        !all_zero(h->reserved_1152, sizeof(h->reserved_1152))) {
        return SG_FLASH_RESERVED;
    }
    reason = firmware_rom(h, s, out);
    return reason ? reason : profile_parse(&h->profile, &out->profile);
}

uint8_t *sg_firmware_make(const char *version, const struct sg_profile_info *profile,
                          struct sg_span rom, size_t *len)
{
    size_t size = sizeof(struct sg_fw_header) + sg_align_up(rom.len, 4);
    uint8_t *octets = g_malloc0(size);
    struct sg_fw_header *h = (void *)octets;
    struct sg_firmware back;
    bool ok;

    memcpy(h->magic, SG_FW_MAGIC, sizeof(h->magic));
    sg_put_le32(&h->format, SG_FLASH_FORMAT);
    sg_put_le32(&h->length, size);
    sg_put_le16(&h->vendor_id, SG_PCI_VENDOR_ID);
    sg_put_le16(&h->device_id, SG_PCI_DEVICE_ID);
    ok = put_text(h->version, sizeof(h->version), version) && profile_make(profile, &h->profile);
    if (rom.len) {
        sg_put_le32(&h->rom_offset, sizeof(*h));
        sg_put_le32(&h->rom_length, rom.len);
        memcpy(octets + sizeof(*h), rom.p, rom.len);
    }
    sg_put_le32(&h->crc, firmware_crc(octets, size));
    if (!ok || sg_firmware_parse(sg_span_of(octets, size), &back)) {
        g_free(octets);
        return NULL;
    }
    *len = size;
    return octets;
}

/* ---- identity and slots ---- */

enum sg_flash_reason sg_identity_parse(struct sg_span s, struct sg_identity *out)
{
    const struct sg_flash_header *h = (const void *)sg_span_get(s, 0, sizeof(*h));

    if (!h) {
        return SG_FLASH_SHORT;
    }
    if (memcmp(h->magic, SG_FLASH_MAGIC, sizeof(h->magic))) {
        return SG_FLASH_NOT_OURS;
    }
    if (sg_get_le32(&h->format) != SG_FLASH_FORMAT) {
        return SG_FLASH_FORMAT_NEW;
    }
    if (sg_get_le32(&h->size) != SG_FLASH_SIZE) {
        return SG_FLASH_LENGTH;
    }
    if (sg_crc32c(0, h, offsetof(struct sg_flash_header, crc)) != sg_get_le32(&h->crc)) {
        return SG_FLASH_CHECKSUM;
    }
    if (!get_text(out->product, h->vpd.product, sizeof(h->vpd.product)) ||
        !get_text(out->part, h->vpd.part, sizeof(h->vpd.part)) ||
        !get_text(out->serial, h->vpd.serial, sizeof(h->vpd.serial))) {
        return SG_FLASH_TEXT;
    }
    if (!all_zero(h->reserved_832, sizeof(h->reserved_832)) ||
        !all_zero(h->vpd.reserved_624, sizeof(h->vpd.reserved_624)) || (h->vpd.mac[0] & 1)) {
        return SG_FLASH_RESERVED;
    }
    memcpy(out->mac, h->vpd.mac, sizeof(out->mac));
    out->guid = sg_get_le64(&h->vpd.guid);
    return SG_FLASH_GOOD;
}

bool sg_identity_make(const struct sg_identity *id, struct sg_flash_header *h)
{
    struct sg_identity back;

    memset(h, 0, sizeof(*h));
    memcpy(h->magic, SG_FLASH_MAGIC, sizeof(h->magic));
    sg_put_le32(&h->format, SG_FLASH_FORMAT);
    sg_put_le32(&h->size, SG_FLASH_SIZE);
    memcpy(h->vpd.mac, id->mac, sizeof(id->mac));
    sg_put_le64(&h->vpd.guid, id->guid);
    if (!put_text(h->vpd.product, sizeof(h->vpd.product), id->product) ||
        !put_text(h->vpd.part, sizeof(h->vpd.part), id->part) ||
        !put_text(h->vpd.serial, sizeof(h->vpd.serial), id->serial)) {
        return false;
    }
    sg_put_le32(&h->crc, sg_crc32c(0, h, offsetof(struct sg_flash_header, crc)));
    return sg_identity_parse(sg_span_of(h, sizeof(*h)), &back) == SG_FLASH_GOOD;
}

void sg_slot_make(const struct sg_firmware *fw, uint32_t sequence, struct sg_flash_slot *slot)
{
    memset(slot, 0, sizeof(*slot));
    memcpy(slot->magic, SG_SLOT_MAGIC, sizeof(slot->magic));
    sg_put_le32(&slot->sequence, sequence);
    sg_put_le32(&slot->length, fw->length);
    sg_put_le32(&slot->fw_crc, fw->crc);
    sg_put_le32(&slot->crc, sg_crc32c(0, slot, offsetof(struct sg_flash_slot, crc)));
}
