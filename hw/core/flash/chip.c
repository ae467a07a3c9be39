/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flash chip.
 *
 * The slot that runs is never written.  An update first erases the record of the other slot, then
 * writes the firmware behind it, piece by piece, and last of all, once the whole has been read back
 * and found good, the record.  So at every moment, whatever the last write has left of itself, the
 * running slot is valid, and the other one is either not valid or complete:
 *
 *                    other slot
 *   idle             old firmware, or empty
 *   first write      record erased                     -> empty
 *   further writes   firmware grows                    -> empty
 *   commit           checked, then record written      -> valid, later sequence: "stored"
 *   reset            it runs, and what ran becomes the slot of the next update
 *
 * A record that is torn has a wrong checksum, and a record that is complete vouches for the
 * checksum of what lies behind it.
 */
#include <glib.h>

#include "base/crc32c.h"
#include "flash/chip.h"

enum { ERASED = 0xff };

struct sg_flash {
    struct sg_flash_ops ops;
    uint8_t octets[SG_FLASH_SIZE];
    struct sg_identity identity;
    struct sg_slot_state slot[SG_FLASH_SLOTS];
    unsigned running;
    uint32_t written;  /* octets of the update under way; 0: none */
};

static uint32_t slot_offset(unsigned slot)
{
    return SG_FLASH_SLOT_BASE + slot * SG_FLASH_SLOT_SIZE;
}

static bool is_erased(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != ERASED) {
            return false;
        }
    }
    return true;
}

static enum sg_flash_reason slot_parse(const uint8_t *at, struct sg_slot_state *s)
{
    const struct sg_flash_slot *record = (const void *)at;
    enum sg_flash_reason reason;

    if (is_erased(at, sizeof(*record))) {
        return SG_FLASH_EMPTY;
    }
    if (memcmp(record->magic, SG_SLOT_MAGIC, sizeof(record->magic))) {
        return SG_FLASH_NOT_OURS;
    }
    if (sg_crc32c(0, record, offsetof(struct sg_flash_slot, crc)) != sg_get_le32(&record->crc)) {
        return SG_FLASH_CHECKSUM;
    }
    if (sg_get_le32(&record->reserved_160[0]) || sg_get_le32(&record->reserved_160[1])) {
        return SG_FLASH_RESERVED;
    }
    s->sequence = sg_get_le32(&record->sequence);
    reason = sg_firmware_parse(sg_span_of(at + SG_FLASH_FW_OFFSET, SG_FW_SIZE_MAX), &s->fw);
    if (!reason && (s->fw.length != sg_get_le32(&record->length) ||
                    s->fw.crc != sg_get_le32(&record->fw_crc))) {
        reason = SG_FLASH_CHECKSUM;
    }
    return reason;
}

static void slot_look(struct sg_flash *f, unsigned slot)
{
    struct sg_slot_state *s = &f->slot[slot];

    memset(s, 0, sizeof(*s));
    s->reason = slot_parse(f->octets + slot_offset(slot), s);
}

/* The later one of those that are valid; the first one of equals.  Negative: none is. */
static int choose(const struct sg_flash *f)
{
    int best = -1;

    for (int i = 0; i < SG_FLASH_SLOTS; i++) {
        if (f->slot[i].reason == SG_FLASH_GOOD &&
            (best < 0 || (int32_t)(f->slot[i].sequence - f->slot[best].sequence) > 0)) {
            best = i;
        }
    }
    return best;
}

struct sg_flash *sg_flash_new(struct sg_span image, const struct sg_flash_ops *ops, char **why)
{
    struct sg_flash *f = g_new0(struct sg_flash, 1);
    enum sg_flash_reason reason = sg_identity_parse(image, &f->identity);
    int best;

    if (!reason && image.len != SG_FLASH_SIZE) {
        reason = image.len < SG_FLASH_SIZE ? SG_FLASH_SHORT : SG_FLASH_LENGTH;
    }
    if (reason) {
        *why = g_strdup(sg_flash_reason_text(reason));
        g_free(f);
        return NULL;
    }
    f->ops = *ops;
    memcpy(f->octets, image.p, SG_FLASH_SIZE);
    for (unsigned i = 0; i < SG_FLASH_SLOTS; i++) {
        slot_look(f, i);
    }
    best = choose(f);
    if (best < 0) {
        *why = g_strdup_printf("no slot has firmware that can run (slot 0: %s; slot 1: %s)",
                               sg_flash_reason_text(f->slot[0].reason),
                               sg_flash_reason_text(f->slot[1].reason));
        g_free(f);
        return NULL;
    }
    f->running = best;
    return f;
}

void sg_flash_free(struct sg_flash *f)
{
    g_free(f);
}

const struct sg_identity *sg_flash_identity(const struct sg_flash *f)
{
    return &f->identity;
}

unsigned sg_flash_running(const struct sg_flash *f)
{
    return f->running;
}

unsigned sg_flash_stored(const struct sg_flash *f)
{
    int best = choose(f);

    sg_assert(best >= 0); /* the running slot is never written */
    return best;
}

const struct sg_slot_state *sg_flash_slot(const struct sg_flash *f, unsigned slot)
{
    sg_assert(slot < SG_FLASH_SLOTS);
    return &f->slot[slot];
}

const struct sg_firmware *sg_flash_firmware(const struct sg_flash *f)
{
    return &f->slot[f->running].fw;
}

bool sg_flash_boot(struct sg_flash *f)
{
    unsigned before = f->running;

    f->running = sg_flash_stored(f);
    f->written = 0; /* an update under way has lost its driver */
    return f->running != before;
}

const uint8_t *sg_flash_octets(const struct sg_flash *f, uint32_t offset, uint32_t len)
{
    return sg_range_ok(offset, len, SG_FLASH_SIZE) ? f->octets + offset : NULL;
}

static bool program(struct sg_flash *f, uint32_t offset, const void *buf, uint32_t len)
{
    if (f->ops.program && !f->ops.program(f->ops.opaque, offset, buf, len)) {
        return false;
    }
    memcpy(f->octets + offset, buf, len);
    return true;
}

static bool erase_record(struct sg_flash *f, unsigned slot)
{
    uint8_t record[sizeof(struct sg_flash_slot)];
    bool ok;

    memset(record, ERASED, sizeof(record));
    ok = program(f, slot_offset(slot), record, sizeof(record));
    slot_look(f, slot);
    return ok;
}

enum sg_flash_result sg_flash_write(struct sg_flash *f, uint32_t offset, const void *buf,
                                    uint32_t len)
{
    unsigned slot = !f->running;

    if (len == 0 || len > SG_FLASH_CHUNK_MAX || !sg_range_ok(offset, len, SG_FW_SIZE_MAX)) {
        return SG_FLASH_RANGE;
    }
    if (offset == 0) {
        f->written = 0;
        if (!erase_record(f, slot)) {
            return SG_FLASH_BROKEN;
        }
    } else if (f->written == 0 || offset != f->written) {
        return SG_FLASH_ORDER;
    }
    if (!program(f, slot_offset(slot) + SG_FLASH_FW_OFFSET + offset, buf, len)) {
        f->written = 0;
        return SG_FLASH_BROKEN;
    }
    f->written += len;
    return SG_FLASH_OK;
}

enum sg_flash_reason sg_flash_commit(struct sg_flash *f, uint32_t len,
                                     bool (*judge)(void *opaque, const struct sg_firmware *fw),
                                     void *opaque)
{
    unsigned slot = !f->running;
    uint32_t at = slot_offset(slot), written = f->written;
    struct sg_flash_slot record;
    struct sg_firmware fw;
    enum sg_flash_reason reason;

    f->written = 0;
    if (written == 0 || len != written) {
        return SG_FLASH_SHORT;
    }
    reason = sg_firmware_parse(sg_span_of(f->octets + at + SG_FLASH_FW_OFFSET, written), &fw);
    if (!reason && fw.length != written) {
        reason = SG_FLASH_LENGTH;
    }
    if (!reason && judge && !judge(opaque, &fw)) {
        reason = SG_FLASH_PROFILE;
    }
    if (reason) {
        return reason;
    }
    sg_slot_make(&fw, f->slot[f->running].sequence + 1, &record);
    if (!program(f, at, &record, sizeof(record))) {
        return SG_FLASH_MEDIUM;
    }
    slot_look(f, slot);
    sg_assert(f->slot[slot].reason == SG_FLASH_GOOD);
    return SG_FLASH_GOOD;
}
