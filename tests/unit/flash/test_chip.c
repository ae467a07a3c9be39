/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flash/chip.h: which slot runs, updates, and power cuts in the middle of them. */
#include <glib.h>

#include "flash/chip.h"
#include "flash_make.h"
#include "tap.h"

/* A chip in external storage, such as a file, whose writes may fail after 'left' octets. */
struct medium {
    uint8_t octets[SG_FLASH_SIZE];
    uint32_t left; /* octets that can still be written */
    bool torn;     /* the write that fails stores its first octets */
    unsigned programs;
    unsigned delay; /* number of polls before each write is done */
    unsigned asked;
};

static enum sg_flash_medium medium_program(void *opaque, uint32_t offset, const void *buf,
                                           uint32_t len)
{
    struct medium *m = opaque;
    uint32_t n = len < m->left ? len : m->left;

    if (m->asked++ < m->delay) {
        return SG_FLASH_BUSY;
    }
    m->asked = 0;
    m->programs++;
    if (n == len || m->torn) {
        memcpy(m->octets + offset, buf, n);
    }
    m->left -= n;
    return n == len ? SG_FLASH_TAKEN : SG_FLASH_REFUSED;
}

static uint8_t *old_fw, *new_fw;
static size_t old_len, new_len;

static struct sg_flash *fresh(struct medium *m)
{
    struct sg_flash_ops ops = { medium_program, m };
    uint8_t *chip;
    struct sg_flash *f;
    char *why = NULL;

    g_free(old_fw), g_free(new_fw);
    old_fw = make_firmware("1.0.0", "old", 1, &old_len);
    new_fw = make_firmware("1.1.0", "new", 12, &new_len);
    chip = make_chip(old_fw, old_len);
    memcpy(m->octets, chip, SG_FLASH_SIZE);
    m->left = UINT32_MAX;
    f = sg_flash_new(sg_span_of(chip, SG_FLASH_SIZE), &ops, &why);
    g_free(chip);
    return f;
}

static struct sg_flash *reopen(const struct medium *m)
{
    struct sg_flash_ops none = { 0 };
    char *why = NULL;
    struct sg_flash *f = sg_flash_new(sg_span_of(m->octets, SG_FLASH_SIZE), &none, &why);

    g_free(why);
    return f;
}

static enum sg_flash_result write_all(struct sg_flash *f, const uint8_t *fw, size_t len,
                                      uint32_t piece)
{
    for (uint32_t at = 0; at < len; at += piece) {
        uint32_t n = len - at < piece ? len - at : piece;
        enum sg_flash_result result = sg_flash_write(f, at, fw + at, n);

        if (result) {
            return result;
        }
    }
    return SG_FLASH_OK;
}

static const char *version(const struct sg_flash *f)
{
    return sg_flash_firmware(f)->version;
}

static void update(void)
{
    struct medium m = { .programs = 0 };
    struct sg_flash *f = fresh(&m), *again;

    T_TRUE(f);
    T_EQ_STR(version(f), "1.0.0");
    T_EQ_INT(write_all(f, new_fw, new_len, SG_FLASH_CHUNK_MAX), SG_FLASH_OK);
    T_EQ_INT(sg_flash_slot(f, 1)->reason, SG_FLASH_EMPTY);
    T_EQ_INT(sg_flash_commit(f, new_len, NULL, NULL), SG_FLASH_GOOD);
    T_EQ_U64(sg_flash_running(f), 0);
    T_EQ_U64(sg_flash_stored(f), 1);
    T_EQ_STR(version(f), "1.0.0");
    again = reopen(&m);
    T_EQ_STR(version(again), "1.1.0");
    sg_flash_free(again);
    T_TRUE(sg_flash_boot(f));
    T_EQ_STR(version(f), "1.1.0");
    T_TRUE(!sg_flash_boot(f));

    /* And again, into the other slot. */
    T_EQ_INT(write_all(f, old_fw, old_len, 100), SG_FLASH_OK);
    T_EQ_INT(sg_flash_commit(f, old_len, NULL, NULL), SG_FLASH_GOOD);
    T_TRUE(sg_flash_boot(f));
    T_EQ_STR(version(f), "1.0.0");
    T_EQ_U64(sg_flash_slot(f, 0)->sequence, 3);
    sg_flash_free(f);
}

/* The medium fails after each octet of an update in turn, the last one among them; the chip boots
   each time. */
static void cut(bool torn)
{
    struct medium m = { .torn = torn };
    uint32_t total = 2 * sizeof(struct sg_flash_slot);
    unsigned stride = t_stride(7) | 1; /* odd: no multiple of a field */
    unsigned news = 0;

    sg_flash_free(fresh(&m));
    total += new_len;
    for (uint32_t left = total % stride; left <= total; left += stride) {
        struct sg_flash *f = fresh(&m);
        enum sg_flash_reason reason = SG_FLASH_MEDIUM;

        m.left = left;
        T_CONTEXT("after %u octets of %u", left, total);
        if (write_all(f, new_fw, new_len, 1000) == SG_FLASH_OK) {
            reason = sg_flash_commit(f, new_len, NULL, NULL);
        }
        T_EQ_INT(reason, left == total ? SG_FLASH_GOOD : SG_FLASH_MEDIUM);
        T_EQ_STR(version(f), "1.0.0");
        sg_flash_free(f);
        f = reopen(&m);
        T_TRUE(f);
        news += !strcmp(version(f), "1.1.0");
        T_TRUE(!strcmp(version(f), left == total ? "1.1.0" : "1.0.0"));
        sg_flash_free(f);
    }
    T_EQ_U64(news, 1);
}

static void cut_whole_writes(void)
{
    cut(false);
}

static void cut_torn_writes(void)
{
    cut(true);
}

static void reset_forgets_update(void)
{
    struct medium m = { .programs = 0 };
    struct sg_flash *f = fresh(&m);

    T_EQ_INT(sg_flash_write(f, 0, new_fw, 1000), SG_FLASH_OK);
    T_TRUE(!sg_flash_boot(f));
    T_EQ_INT(sg_flash_write(f, 1000, new_fw + 1000, 1000), SG_FLASH_ORDER);
    T_EQ_INT(sg_flash_commit(f, new_len, NULL, NULL), SG_FLASH_SHORT);
    T_EQ_STR(version(f), "1.0.0");
    sg_flash_free(f);
}

static void bad_order(void)
{
    struct medium m = { .programs = 0 };
    struct sg_flash *f = fresh(&m);

    T_EQ_INT(sg_flash_write(f, 4, new_fw, 4), SG_FLASH_ORDER);
    T_EQ_INT(sg_flash_write(f, 0, new_fw, 0), SG_FLASH_RANGE);
    T_EQ_INT(sg_flash_write(f, 0, new_fw, SG_FLASH_CHUNK_MAX + 1), SG_FLASH_RANGE);
    T_EQ_INT(sg_flash_write(f, SG_FW_SIZE_MAX, new_fw, 1), SG_FLASH_RANGE);
    T_EQ_INT(sg_flash_write(f, UINT32_MAX, new_fw, 1), SG_FLASH_RANGE);
    T_EQ_U64(m.programs, 0);
    T_EQ_INT(sg_flash_write(f, 0, new_fw, 100), SG_FLASH_OK);
    T_EQ_INT(sg_flash_write(f, 101, new_fw, 100), SG_FLASH_ORDER);
    T_EQ_INT(sg_flash_write(f, 99, new_fw, 100), SG_FLASH_ORDER);
    T_EQ_INT(sg_flash_write(f, 100, new_fw + 100, 100), SG_FLASH_OK);
    T_EQ_INT(sg_flash_commit(f, 201, NULL, NULL), SG_FLASH_SHORT);
    T_EQ_INT(sg_flash_commit(f, 200, NULL, NULL), SG_FLASH_SHORT);
    sg_flash_free(f);
}

static bool refuse(void *opaque, const struct sg_firmware *fw)
{
    *(bool *)opaque = !strcmp(fw->profile.name, "new");
    return false;
}

static void bad_updates(void)
{
    struct medium m = { .programs = 0 };
    struct sg_flash *f = fresh(&m), *again;
    bool asked = false;

    new_fw[new_len - 1] ^= 1;
    T_EQ_INT(write_all(f, new_fw, new_len, 4096), SG_FLASH_OK);
    T_EQ_INT(sg_flash_commit(f, new_len, NULL, NULL), SG_FLASH_CHECKSUM);
    new_fw[new_len - 1] ^= 1;
    T_EQ_INT(write_all(f, new_fw, new_len - 4, 4096), SG_FLASH_OK);
    T_EQ_INT(sg_flash_commit(f, new_len - 4, NULL, NULL), SG_FLASH_SHORT);
    /* Remains of a longer update behind the end are ignored. */
    T_EQ_INT(write_all(f, new_fw, new_len, 4096), SG_FLASH_OK);
    T_EQ_INT(sg_flash_write(f, new_len, "more", 4), SG_FLASH_OK);
    T_EQ_INT(sg_flash_commit(f, new_len + 4, NULL, NULL), SG_FLASH_LENGTH);
    T_EQ_INT(write_all(f, new_fw, new_len, 4096), SG_FLASH_OK);
    T_EQ_INT(sg_flash_commit(f, new_len, refuse, &asked), SG_FLASH_PROFILE);
    T_TRUE(asked);
    T_EQ_U64(sg_flash_stored(f), 0);
    again = reopen(&m);
    T_EQ_STR(version(again), "1.0.0");
    sg_flash_free(again);
    sg_flash_free(f);
}

struct choice {
    int64_t first, second; /* sequence numbers; negative: the slot is damaged */
    int running;           /* negative: refused */
};

static void choices(void)
{
    static const struct choice rows[] = {
        { 1, 2, 1 },          { 2, 1, 0 },          { 5, 5, 0 },
        { 0xffffffff, 0, 1 }, { 0, 0xffffffff, 0 }, { -1, 7, 1 },
        { 7, -1, 0 },         { -1, -1, -1 },       { 0x7fffffff, 0x80000000, 1 },
    };
    struct medium m = { .programs = 0 };

    sg_flash_free(fresh(&m));
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        int64_t sequence[2] = { rows[i].first, rows[i].second };
        struct sg_flash *f;

        T_CONTEXT("%" PRId64 " and %" PRId64, sequence[0], sequence[1]);
        for (unsigned slot = 0; slot < 2; slot++) {
            fill_slot(m.octets, slot, sequence[slot], old_fw, old_len);
            if (sequence[slot] < 0) {
                m.octets[SG_FLASH_SLOT_BASE + slot * SG_FLASH_SLOT_SIZE + 9] ^= 1;
            }
        }
        f = reopen(&m);
        T_EQ_INT(f ? (int)sg_flash_running(f) : -1, rows[i].running);
        sg_flash_free(f);
    }
}

/* Each octet of the record damaged in turn; then a firmware that does not match the record. */
static void hostile_slots(void)
{
    struct medium m = { .programs = 0 };
    uint8_t *slot = m.octets + SG_FLASH_SLOT_BASE;

    sg_flash_free(fresh(&m));
    for (size_t i = 0; i < sizeof(struct sg_flash_slot); i++) {
        T_CONTEXT("octet %zu of the record", i);
        slot[i] ^= 0x20;
        T_TRUE(!reopen(&m));
        slot[i] ^= 0x20;
    }
    T_CONTEXT("another firmware");
    memcpy(slot + SG_FLASH_FW_OFFSET, new_fw, new_len);
    T_TRUE(!reopen(&m));
}

static void hostile_chips(void)
{
    struct medium m = { .programs = 0 };
    struct sg_flash_ops none = { 0 };
    static const struct {
        uint32_t len;
        const char *part;
    } rows[] = {
        { 0, "too early" },
        { 127, "too early" },
        { 128, "too early" },
        { SG_FLASH_SIZE - 1, "too early" },
        { SG_FLASH_SIZE + 1, "impossible" },
    };
    uint8_t *octets = g_malloc0(SG_FLASH_SIZE + 1);
    char *why = NULL;

    sg_flash_free(fresh(&m));
    memcpy(octets, m.octets, SG_FLASH_SIZE);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("%u octets", rows[i].len);
        T_TRUE(!sg_flash_new(sg_span_of(octets, rows[i].len), &none, &why));
        T_TRUE(strstr(why, rows[i].part));
        g_free(why);
    }
    memset(octets + SG_FLASH_SLOT_BASE, 0xff, SG_FLASH_SIZE - SG_FLASH_SLOT_BASE);
    T_TRUE(!sg_flash_new(sg_span_of(octets, SG_FLASH_SIZE), &none, &why));
    T_TRUE(strstr(why, "no slot has firmware that can run"));
    g_free(why);
    g_free(octets);
}

static void reading(void)
{
    struct medium m = { .programs = 0 };
    struct sg_flash *f = fresh(&m);

    T_TRUE(!memcmp(sg_flash_octets(f, 0, 8), SG_FLASH_MAGIC, 8));
    T_TRUE(sg_flash_octets(f, SG_FLASH_SIZE - 1, 1));
    T_TRUE(!sg_flash_octets(f, SG_FLASH_SIZE - 1, 2));
    T_TRUE(!sg_flash_octets(f, UINT32_MAX, 2));
    sg_flash_free(f);
}

/* ---- a slow medium ---- */

/* The data of a repeated call do not count, because a guest may have changed them. */
static enum sg_flash_result slow_write(struct sg_flash *f, uint32_t at, const uint8_t *p, size_t n)
{
    static const uint8_t other[SG_FLASH_CHUNK_MAX];
    enum sg_flash_result result = sg_flash_write(f, at, p, n);

    while (result == SG_FLASH_LATER) {
        T_TRUE(sg_flash_waits(f));
        result = sg_flash_write(f, at, other, n);
    }
    T_FALSE(sg_flash_waits(f));
    return result;
}

static void slow_update(void)
{
    struct medium m = { .delay = 3 };
    struct sg_flash *f = fresh(&m), *again;
    enum sg_flash_reason reason = SG_FLASH_PENDING;
    unsigned n;

    for (uint32_t at = 0; at < new_len; at += 1000) {
        T_EQ_INT(slow_write(f, at, new_fw + at, MIN(1000, new_len - at)), SG_FLASH_OK);
    }
    for (n = 0; reason == SG_FLASH_PENDING; n++) {
        T_EQ_U64(sg_flash_stored(f), 0);
        reason = sg_flash_commit(f, new_len, NULL, NULL);
    }
    T_EQ_INT(reason, SG_FLASH_GOOD);
    T_EQ_U64(n, m.delay + 1);
    again = reopen(&m);
    T_EQ_STR(version(again), "1.1.0");
    sg_flash_free(again);
    T_TRUE(sg_flash_boot(f));
    T_EQ_STR(version(f), "1.1.0");
    sg_flash_free(f);
}

/*
 * Reset while the medium begins a second update: the slot of the first one, which is being erased,
 * must not run, and pending writes finish before anything else.
 */
static void slow_and_reset(void)
{
    struct medium m = { .delay = 0 };
    struct sg_flash *f = fresh(&m), *again;

    T_EQ_INT(write_all(f, new_fw, new_len, 4096), SG_FLASH_OK);
    T_EQ_INT(sg_flash_commit(f, new_len, NULL, NULL), SG_FLASH_GOOD);
    T_EQ_U64(sg_flash_stored(f), 1);
    m.delay = 3;
    T_EQ_INT(sg_flash_write(f, 0, new_fw, 100), SG_FLASH_LATER);
    T_FALSE(sg_flash_boot(f));
    T_EQ_STR(version(f), "1.0.0");
    T_FALSE(sg_flash_waits(f));
    T_EQ_INT(sg_flash_commit(f, 100, NULL, NULL), SG_FLASH_PENDING);
    T_EQ_INT(sg_flash_commit(f, 100, NULL, NULL), SG_FLASH_SHORT);
    T_EQ_INT(slow_write(f, 0, new_fw, 4096), SG_FLASH_OK);
    T_EQ_U64(sg_flash_stored(f), 0);
    again = reopen(&m);
    T_EQ_STR(version(again), "1.0.0");
    sg_flash_free(again);
    sg_flash_free(f);
}

/* The record is written after the reset, so a later reset uses it. */
static void slow_commit_and_reset(void)
{
    struct medium m = { .delay = 0 };
    struct sg_flash *f = fresh(&m);

    T_EQ_INT(write_all(f, new_fw, new_len, 4096), SG_FLASH_OK);
    m.delay = 3;
    T_EQ_INT(sg_flash_commit(f, new_len, NULL, NULL), SG_FLASH_PENDING);
    T_FALSE(sg_flash_boot(f));
    T_EQ_STR(version(f), "1.0.0");
    T_FALSE(sg_flash_boot(f));
    T_TRUE(sg_flash_boot(f));
    T_EQ_STR(version(f), "1.1.0");
    sg_flash_free(f);
}

/* A failed erasure leaves the stored firmware. */
static void slow_and_broken(void)
{
    struct medium m = { .delay = 0 };
    struct sg_flash *f = fresh(&m);

    T_EQ_INT(write_all(f, new_fw, new_len, 4096), SG_FLASH_OK);
    T_EQ_INT(sg_flash_commit(f, new_len, NULL, NULL), SG_FLASH_GOOD);
    m.delay = 1;
    m.left = 0;
    T_EQ_INT(slow_write(f, 0, new_fw, 100), SG_FLASH_BROKEN);
    T_EQ_U64(sg_flash_stored(f), 1);
    T_EQ_INT(slow_write(f, 100, new_fw, 100), SG_FLASH_ORDER);
    T_TRUE(sg_flash_boot(f));
    T_EQ_STR(version(f), "1.1.0");
    sg_flash_free(f);
}

static const struct t_case cases[] = {
    { "update, boot, update again", update },
    { "a cut after each octet: writes that do not come", cut_whole_writes },
    { "a cut after each octet: writes torn", cut_torn_writes },
    { "a reset forgets an update under way", reset_forgets_update },
    { "pieces out of order or out of range", bad_order },
    { "bad updates are refused", bad_updates },
    { "which slot runs", choices },
    { "records damaged", hostile_slots },
    { "chips damaged", hostile_chips },
    { "reading", reading },
    { "slow: an update", slow_update },
    { "slow: a reset while it is written", slow_and_reset },
    { "slow: a reset while the record is written", slow_commit_and_reset },
    { "slow: the medium breaks", slow_and_broken },
};

T_MAIN(cases)
