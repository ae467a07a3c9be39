/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interaction of agents: writes of other devices into persistent memory, an adapter's reads of
 * CPUs' stores, and ranges over two adjacent NVDIMMs.
 */
#include "base/bytes.h"
#include "rig.h"

enum { X = 0, Y = 64, X2 = 8, SEEDS = 300, HALF = 32768 };

#define XY(x, y) SET1((x) + 4 * (y))
#define ALL4 (XY(0, 0) | XY(1, 0) | XY(0, 1) | XY(1, 1))

static unsigned xy(const struct dom_rig *r)
{
    return rig_media(r, X) + 4 * rig_media(r, Y);
}

static unsigned xx2(const struct dom_rig *r)
{
    return rig_media(r, X) + 4 * rig_media(r, X2);
}

/* ---- Other devices ---- */

/* As a QEMU device does it: memory first, then the report. */
static void other_write(struct dom_rig *r, uint64_t off, uint64_t value)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_OTHER };

    sg_put_le64(r->visible + off, value);
    T_TRUE(sg_persist_other_write(r->p, &who, RIG_BASE + off, 8));
}

static void other_only(struct dom_rig *r)
{
    other_write(r, X, 1);
}

static void other_then_fenced(struct dom_rig *r)
{
    other_write(r, X, 1);
    rig_cpu_flush(r, 0, X, SG_PERSIST_CLWB);
    rig_sfence(r, 0);
}

static void other_then_flush(struct dom_rig *r)
{
    other_write(r, X, 1);
    T_EQ_INT(rig_flush(r, 1, X, 8, SG_FLUSH_PERSISTENT), SG_PM_DONE);
}

static void store_then_other(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    other_write(r, X2, 1);
}

/* What makes data certain that another device, such as a disk, wrote. */
static void other_devices(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    T_EQ_U64(rig_outcomes(&proto, other_only, X, SEEDS), SET2(0, 1));
    T_EQ_U64(rig_outcomes(&proto, other_then_fenced, X, SEEDS), SET1(1));
    T_EQ_U64(rig_outcomes(&proto, other_then_flush, X, SEEDS), SET1(1));
    /* It came after the store to the same line. */
    T_EQ_U64(rig_outcomes_of(&proto, store_then_other, xx2, SEEDS), XY(0, 0) | XY(1, 0) | XY(1, 1));
    proto.config.ddio = false;
    T_EQ_U64(rig_outcomes(&proto, other_only, X, SEEDS), SET1(1));
    proto.config.ddio = true;
    for (unsigned d = SG_PERSIST_EADR; d < SG_PERSIST_DOMAINS; d++) {
        proto.config.domain = d;
        T_EQ_U64(rig_outcomes(&proto, other_only, X, SEEDS), SET1(1));
    }
}

static void other_and_orderly_end(void)
{
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    other_write(&r, X, 1);
    sg_persist_orderly(r.p);
    T_EQ_U64(rig_media(&r, X), 1);
    rig_down(&r);
}

/* ---- What an adapter reads ---- */

static void movnti_read(struct dom_rig *r)
{
    rig_store_nt(r, 0, X, 1);
    rig_store_nt(r, 0, Y, 1);
    sg_persist_dma_read(r->p, 0, RIG_BASE + X, 8);
}

static void store_read(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_store(r, 0, Y, 1);
    sg_persist_dma_read(r->p, 0, RIG_BASE + X, 8);
}

static void store_read_later(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_store(r, 0, Y, 1);
    sg_persist_dma_read(r->p, 0, RIG_BASE + Y + 60, 4);
}

static void read_elsewhere(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_store(r, 0, Y, 1);
    sg_persist_dma_read(r->p, 0, RIG_BASE + 128, 4096);
}

static void read_proves(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    /* A non-temporal store that a device has read is in memory: devices do not snoop its buffer. */
    for (unsigned d = SG_PERSIST_ADR; d < SG_PERSIST_WHOLE; d++) {
        proto.config.domain = d;
        T_EQ_U64(rig_outcomes_of(&proto, movnti_read, xy, SEEDS), XY(1, 0) | XY(1, 1));
    }
    /* A line without a history that a device has read is in the cache, with all earlier stores. */
    proto.config.domain = SG_PERSIST_EADR;
    proto.config.store_buffer = true;
    T_EQ_U64(rig_outcomes_of(&proto, store_read, xy, SEEDS), XY(1, 0) | XY(1, 1));
    T_EQ_U64(rig_outcomes_of(&proto, store_read_later, xy, SEEDS), XY(1, 1));
    T_EQ_U64(rig_outcomes_of(&proto, read_elsewhere, xy, SEEDS), XY(0, 0) | XY(1, 0) | XY(1, 1));
    proto.config.domain = SG_PERSIST_ADR;
    T_EQ_U64(rig_outcomes_of(&proto, store_read, xy, SEEDS), ALL4);
}

static void read_is_in_the_log(void)
{
    struct dom_rig r;
    struct sg_persist_event e;
    uint64_t oldest, newest, before;

    rig_simple(&r, SG_PERSIST_ADR);
    rig_store_nt(&r, 0, X, 1);
    T_TRUE(sg_persist_cpu_waits(r.p));
    before = sg_persist_events(r.p);
    sg_persist_dma_read(r.p, 3, RIG_BASE + 4096, 64); /* no data wait there */
    T_EQ_U64(sg_persist_events(r.p), before);
    sg_persist_dma_read(r.p, 3, RIG_BASE - 64, 128);
    T_FALSE(sg_persist_cpu_waits(r.p));
    sg_persist_log_bounds(r.p, &oldest, &newest);
    T_TRUE(sg_persist_log_event(r.p, newest, &e));
    T_EQ_STR(sg_persist_event_name(e.kind), "dma-read");
    T_EQ_INT(e.unit, 3);
    rig_down(&r);
}

/* Verify hashes what a cut would leave, so it reads the stores, too. */
static void store_nt_verified(struct dom_rig *r)
{
    uint64_t found = 0;

    rig_store_nt(r, 0, X, 1);
    T_EQ_INT(sg_persist_media_read(r->p, RIG_BASE + X, &found, 8), SG_PM_DONE);
    T_EQ_U64(sg_get_le64(&found), 1);
}

static void verify_proves(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    T_EQ_U64(rig_outcomes(&proto, store_nt_verified, X, SEEDS), SET1(1));
    proto.config.domain = SG_PERSIST_EADR;
    proto.config.store_buffer = true;
    T_EQ_U64(rig_outcomes(&proto, store_nt_verified, X, SEEDS), SET1(1));
}

/* ---- Two NVDIMMs side by side ---- */

/* The second half of the memories as an NVDIMM of its own. */
static void up_twice(struct dom_rig *r)
{
    struct sg_persist_extent second = { .base = RIG_BASE + HALF, .size = HALF };

    rig_init(r);
    rig_up(r, HALF);
    r->visible = g_realloc(r->visible, 2 * HALF);
    r->media = g_realloc(r->media, 2 * HALF);
    memset(r->visible, 0, 2 * HALF);
    memset(r->media, 0, 2 * HALF);
    sg_persist_remove(r->p, 0);
    T_EQ_INT(sg_persist_add(r->p,
                            &(struct sg_persist_extent){
                                .base = RIG_BASE,
                                .size = HALF,
                                .visible = r->visible,
                                .media = r->media,
                            }),
             0);
    second.visible = r->visible + HALF;
    second.media = r->media + HALF;
    T_EQ_INT(sg_persist_add(r->p, &second), 1);
    r->size = 2 * HALF;
}

static void verify_over_the_seam(void)
{
    uint8_t buf[128], found[128];
    struct dom_rig r;

    up_twice(&r);
    memset(buf, 0x5a, sizeof(buf));
    rig_write(&r, 1, HALF - 64, buf, sizeof(buf));
    T_EQ_INT(rig_flush(&r, 1, HALF - 64, 128, SG_FLUSH_PERSISTENT), SG_PM_DONE);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + HALF - 64, found, 128), SG_PM_DONE);
    T_EQ_MEM(found, buf, sizeof(buf));
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + 2 * HALF - 64, found, 128), SG_PM_FAILED);
    /* A line that cannot be read counts on either side. */
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + HALF, 64, SG_PERSIST_UNCORRECTABLE));
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + HALF - 64, found, 128), SG_PM_FAILED);
    sg_persist_clear_bad(r.p, RIG_BASE + HALF, 64);
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + HALF - 64, 64, SG_PERSIST_UNCORRECTABLE));
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + HALF - 64, found, 128), SG_PM_FAILED);
    rig_down(&r);
}

/* A Flush is answered with success only if every part of its range is persistent. */
static void flush_over_the_seam(void)
{
    struct sg_persist_faults faults = { .read_only = true }, none = { 0 };
    uint8_t buf[128] = { 1 };
    struct dom_rig r;

    for (int bad = 0; bad < 2; bad++) {
        T_CONTEXT("NVDIMM %d refuses", bad);
        up_twice(&r);
        buf[64] = 1;
        rig_write(&r, 1, HALF - 64, buf, sizeof(buf));
        sg_persist_set_faults(r.p, bad, &faults);
        T_EQ_INT(rig_flush(&r, 1, HALF - 64, 128, SG_FLUSH_PERSISTENT), SG_PM_FAILED);
        sg_persist_set_faults(r.p, bad, &none);
        T_EQ_INT(rig_flush(&r, 1, HALF - 64, 128, SG_FLUSH_PERSISTENT), SG_PM_DONE);
        rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
        T_EQ_U64(rig_media(&r, HALF - 64), 1);
        T_EQ_U64(rig_media(&r, HALF), 1);
        rig_down(&r);
    }
}

static const struct t_case cases[] = {
    { "another device's write is in the cache, or the queue, until it is flushed", other_devices },
    { "another device's write survives an orderly end", other_and_orderly_end },
    { "E4 what an adapter has read has left the processor", read_proves },
    { "E4 a read is logged where it moved something", read_is_in_the_log },
    { "what a Verify has seen survives", verify_proves },
    { "a Verify over two NVDIMMs side by side", verify_over_the_seam },
    { "E10 a Flush over two NVDIMMs fails if either does", flush_over_the_seam },
};

T_MAIN(cases)
