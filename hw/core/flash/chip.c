/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flash chip.
 *
 * The running slot is never written.  An update first erases the record of the other slot, then
 * writes the firmware behind the record, piece by piece.  It reads all of it back, checks it, and
 * writes the record last.  So at every moment, whatever part of the last write has happened, the
 * running slot is valid, and the other one is either invalid or complete:
 *
 *                    other slot
 *   idle             old firmware, or empty
 *   first write      record erased                     -> empty
 *   further writes   firmware grows                    -> empty
 *   commit           checked, then record written      -> valid, later sequence: "stored"
 *   reset            it runs, and the slot that ran before takes the next update
 *
 * The medium may be slow.  The caller then repeats its call.  A reset in between does not wait: it
 * takes the slot that is valid so far, and the pending write finishes later.  A record that is
 * being erased is invalid from the beginning of its erasure, so that a reset cannot take a slot
 * that is about to vanish; a written record is valid from the end of the write.
 *
 * A torn record has a wrong checksum, and a complete record contains the checksum of the firmware
 * behind it.
 */
#include <glib.h>

#include "base/crc32c.h"
#include "flash/chip.h"

enum { ERASED = 0xff };

enum job_kind { JOB_NONE, JOB_ERASE, JOB_PIECE, JOB_RECORD };

/* The medium's current write. */
struct job {
    enum job_kind kind;
    bool abandoned;
    unsigned slot;
    uint32_t offset, len;
    uint8_t octets[SG_FLASH_CHUNK_MAX];
};

struct sg_flash {
    struct sg_flash_ops ops;
    uint8_t octets[SG_FLASH_SIZE];
    struct sg_identity identity;
    struct sg_slot_state slot[SG_FLASH_SLOTS];
    unsigned running;
    uint32_t written; /* octets of the update in progress; 0: none */
    struct job job;
    struct sg_flash_slot erased;       /* the record that the job erases, in case it fails */
    uint8_t piece[SG_FLASH_CHUNK_MAX]; /* to be written after the erasure */
    uint32_t piece_len;
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

/* The valid slot with the later sequence; the first one of equals.  Negative: none is valid. */
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

/* ---- the medium ---- */

static void begin(struct sg_flash *f, enum job_kind kind, uint32_t offset, const void *buf,
                  uint32_t len)
{
    struct job *job = &f->job;

    job->kind = kind;
    job->slot = !f->running;
    job->offset = slot_offset(job->slot) + offset;
    job->len = len;
    memcpy(job->octets, buf, len);
}

static void begin_erasure(struct sg_flash *f)
{
    uint8_t *record = f->octets + slot_offset(!f->running);
    uint8_t blank[sizeof(f->erased)];

    memset(blank, ERASED, sizeof(blank));
    memcpy(&f->erased, record, sizeof(f->erased));
    memcpy(record, blank, sizeof(blank));
    slot_look(f, !f->running);
    begin(f, JOB_ERASE, 0, blank, sizeof(blank));
}

/* BUSY: the job continues; else it is over, and our copy shows its outcome. */
static enum sg_flash_medium run_job(struct sg_flash *f)
{
    struct job *job = &f->job;
    enum sg_flash_medium result = SG_FLASH_TAKEN;

    if (f->ops.program) {
        result = f->ops.program(f->ops.opaque, job->offset, job->octets, job->len);
    }
    if (result == SG_FLASH_BUSY) {
        return result;
    }
    if (result == SG_FLASH_TAKEN) {
        memcpy(f->octets + job->offset, job->octets, job->len);
    } else if (job->kind == JOB_ERASE) {
        memcpy(f->octets + job->offset, &f->erased, sizeof(f->erased));
    }
    if (job->kind != JOB_PIECE) {
        slot_look(f, job->slot);
    }
    job->kind = JOB_NONE;
    job->abandoned = false;
    return result;
}

/* False: the job of an earlier caller is not finished. */
static bool is_free(struct sg_flash *f)
{
    return !f->job.abandoned || run_job(f) != SG_FLASH_BUSY;
}

bool sg_flash_waits(const struct sg_flash *f)
{
    return f->job.kind != JOB_NONE && !f->job.abandoned;
}

void sg_flash_abandon(struct sg_flash *f)
{
    if (f->job.kind != JOB_NONE) {
        f->job.abandoned = true;
        f->written = 0;
    }
}

bool sg_flash_boot(struct sg_flash *f)
{
    unsigned before = f->running;

    sg_flash_abandon(f);
    is_free(f); /* it may have finished by now */
    f->running = sg_flash_stored(f);
    f->written = 0; /* the driver of an update in progress is gone */
    return f->running != before;
}

const uint8_t *sg_flash_octets(const struct sg_flash *f, uint32_t offset, uint32_t len)
{
    return sg_range_ok(offset, len, SG_FLASH_SIZE) ? f->octets + offset : NULL;
}

/* ---- updates ---- */

static enum sg_flash_result begin_write(struct sg_flash *f, uint32_t offset, const void *buf,
                                        uint32_t len)
{
    if (len == 0 || len > SG_FLASH_CHUNK_MAX || !sg_range_ok(offset, len, SG_FW_SIZE_MAX)) {
        return SG_FLASH_RANGE;
    }
    if (offset == 0) {
        f->written = 0;
        memcpy(f->piece, buf, len);
        f->piece_len = len;
        begin_erasure(f);
        return SG_FLASH_OK;
    }
    if (f->written == 0 || offset != f->written) {
        return SG_FLASH_ORDER;
    }
    begin(f, JOB_PIECE, SG_FLASH_FW_OFFSET + offset, buf, len);
    return SG_FLASH_OK;
}

enum sg_flash_result sg_flash_write(struct sg_flash *f, uint32_t offset, const void *buf,
                                    uint32_t len)
{
    enum sg_flash_medium result = SG_FLASH_TAKEN;
    enum sg_flash_result wrong;

    if (!is_free(f)) {
        return SG_FLASH_LATER;
    }
    if (f->job.kind == JOB_NONE) {
        wrong = begin_write(f, offset, buf, len);
        if (wrong) {
            return wrong;
        }
    }
    if (f->job.kind == JOB_ERASE) {
        result = run_job(f);
        if (result == SG_FLASH_TAKEN) {
            begin(f, JOB_PIECE, SG_FLASH_FW_OFFSET, f->piece, f->piece_len);
        }
    }
    if (f->job.kind == JOB_PIECE) {
        len = f->job.len;
        result = run_job(f);
        f->written = result == SG_FLASH_REFUSED ? 0 : f->written;
        f->written += result == SG_FLASH_TAKEN ? len : 0;
    }
    if (result == SG_FLASH_BUSY) {
        return SG_FLASH_LATER;
    }
    return result == SG_FLASH_TAKEN ? SG_FLASH_OK : SG_FLASH_BROKEN;
}

/* GOOD: its record is being written. */
static enum sg_flash_reason begin_commit(struct sg_flash *f, uint32_t len,
                                         bool (*judge)(void *opaque, const struct sg_firmware *fw),
                                         void *opaque)
{
    uint32_t at = slot_offset(!f->running), written = f->written;
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
    if (!reason) {
        sg_slot_make(&fw, f->slot[f->running].sequence + 1, &record);
        begin(f, JOB_RECORD, 0, &record, sizeof(record));
    }
    return reason;
}

enum sg_flash_reason sg_flash_commit(struct sg_flash *f, uint32_t len,
                                     bool (*judge)(void *opaque, const struct sg_firmware *fw),
                                     void *opaque)
{
    enum sg_flash_reason reason;
    unsigned slot;

    if (!is_free(f)) {
        return SG_FLASH_PENDING;
    }
    if (f->job.kind == JOB_NONE) {
        reason = begin_commit(f, len, judge, opaque);
        if (reason) {
            return reason;
        }
    }
    slot = f->job.slot;
    switch (run_job(f)) {
    case SG_FLASH_BUSY:
        return SG_FLASH_PENDING;
    case SG_FLASH_REFUSED:
        return SG_FLASH_MEDIUM;
    default:
        sg_assert(f->slot[slot].reason == SG_FLASH_GOOD);
        return SG_FLASH_GOOD;
    }
}
