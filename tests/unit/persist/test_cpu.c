/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU rules (E6, E7, E8) as litmus tests: a few stores to x (offset 0) and y, a cut, and the exact
 * set of permitted results, written as x + 4 y.
 */
#include "base/bytes.h"
#include "rig.h"

enum { X = 0, Y = 64, X2 = 8, X3 = 16, SEEDS = 300 };

static unsigned xy(const struct dom_rig *r)
{
    return rig_media(r, X) + 4 * rig_media(r, Y);
}

static unsigned xx2(const struct dom_rig *r)
{
    return rig_media(r, X) + 4 * rig_media(r, X2);
}

#define XY(x, y) SET1((x) + 4 * (y))
#define ALL4 (XY(0, 0) | XY(1, 0) | XY(0, 1) | XY(1, 1))

static uint64_t outcomes(enum sg_persist_domain domain, bool store_buffer, rig_scene *scene,
                         unsigned (*of)(const struct dom_rig *r))
{
    struct dom_rig proto;

    rig_init(&proto);
    proto.config.domain = domain;
    proto.config.store_buffer = store_buffer;
    return rig_outcomes_of(&proto, scene, of, SEEDS);
}

static void same_line(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_store(r, 0, X2, 1);
}

static void other_line(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_store(r, 0, Y, 1);
}

static void stores(void)
{
    /* Within a line in program order, between lines any order. */
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, same_line, xx2), XY(0, 0) | XY(1, 0) | XY(1, 1));
    T_EQ_U64(outcomes(SG_PERSIST_ADR, true, same_line, xx2), XY(0, 0) | XY(1, 0) | XY(1, 1));
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, other_line, xy), ALL4);
    T_EQ_U64(outcomes(SG_PERSIST_ADR, true, other_line, xy), ALL4);
    /* If the cache survives, so does everything in it, in the order of the stores. */
    T_EQ_U64(outcomes(SG_PERSIST_EADR, false, other_line, xy), XY(1, 1));
    T_EQ_U64(outcomes(SG_PERSIST_EADR, true, other_line, xy), XY(0, 0) | XY(1, 0) | XY(1, 1));
}

static enum sg_persist_cpu_flush flush_kind;
static enum sg_persist_cpu_fence fence_kind;

static void fence(struct dom_rig *r, unsigned vcpu)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_CPU, .unit = vcpu };

    sg_persist_cpu_fence(r->p, &who, fence_kind);
}

static void flush_fence_flag(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_cpu_flush(r, 0, X + 17, flush_kind);
    fence(r, 0);
    rig_store(r, 0, Y, 1);
}

static void flush_flag(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_cpu_flush(r, 0, X, flush_kind);
    rig_store(r, 0, Y, 1);
}

static void flushes(void)
{
    for (unsigned sb = 0; sb < 2; sb++) {
        for (unsigned k = 0; k < SG_PERSIST_CPU_FLUSHES; k++) {
            uint64_t without = k == SG_PERSIST_CLFLUSH ? 0 : XY(0, 0) | XY(0, 1);

            flush_kind = k;
            for (unsigned f = 0; f < SG_PERSIST_WBINVD; f++) {
                T_CONTEXT("flush %u, fence %u, store buffer %u", k, f, sb);
                fence_kind = f;
                T_EQ_U64(outcomes(SG_PERSIST_ADR, sb, flush_fence_flag, xy), XY(1, 0) | XY(1, 1));
            }
            /* CLFLUSH is ordered with stores: a later store never survives without it. */
            if (k == SG_PERSIST_CLFLUSH && sb) {
                without = XY(0, 0);
            }
            T_EQ_U64(outcomes(SG_PERSIST_ADR, sb, flush_flag, xy), XY(1, 0) | XY(1, 1) | without);
        }
    }
}

static void store_after_clwb(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_cpu_flush(r, 0, X, SG_PERSIST_CLWB);
    rig_store(r, 0, X2, 1);
    rig_sfence(r, 0);
}

static void overwrite_after_clwb(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_cpu_flush(r, 0, X, SG_PERSIST_CLWB);
    rig_store(r, 0, X, 2);
    rig_sfence(r, 0);
}

static void foreign_fence(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_cpu_flush(r, 0, X, SG_PERSIST_CLWB);
    rig_store(r, 1, Y, 1);
    rig_cpu_flush(r, 1, Y, SG_PERSIST_CLWB);
    rig_sfence(r, 1);
}

static void covers(void)
{
    /* The flush covers what was stored before it. */
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, store_after_clwb, xx2), XY(1, 0) | XY(1, 1));
    T_EQ_U64(outcomes(SG_PERSIST_ADR, true, store_after_clwb, xx2), XY(1, 0) | XY(1, 1));
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, overwrite_after_clwb, xy), XY(1, 0) | XY(2, 0));
    /* A fence of another vCPU guarantees nothing. */
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, foreign_fence, xy), XY(0, 1) | XY(1, 1));
}

static void clwb_of_foreign_store(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_cpu_flush(r, 1, X, SG_PERSIST_CLWB);
    rig_sfence(r, 1);
}

static void foreign_store(void)
{
    /* A flush covers the line, whoever wrote it. */
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, clwb_of_foreign_store, xy), XY(1, 0));
    T_EQ_U64(outcomes(SG_PERSIST_ADR, true, clwb_of_foreign_store, xy), XY(1, 0));
}

static void nt_flag(struct dom_rig *r)
{
    rig_store_nt(r, 0, X, 1);
    rig_store(r, 0, Y, 1);
}

static void nt_fence_flag(struct dom_rig *r)
{
    rig_store_nt(r, 0, X, 1);
    rig_sfence(r, 0);
    rig_store(r, 0, Y, 1);
}

static void nt_nt(struct dom_rig *r)
{
    rig_store_nt(r, 0, X, 1);
    rig_store_nt(r, 0, Y, 1);
}

static void cached_then_nt(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_store_nt(r, 0, X2, 1);
    rig_sfence(r, 0);
}

static void non_temporal(void)
{
    /* Not ordered with other stores, even if the cache survives. */
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, nt_flag, xy), ALL4);
    T_EQ_U64(outcomes(SG_PERSIST_EADR, false, nt_flag, xy), XY(0, 1) | XY(1, 1));
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, nt_nt, xy), ALL4);
    T_EQ_U64(outcomes(SG_PERSIST_EADR, false, nt_nt, xy), ALL4);
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, nt_fence_flag, xy), XY(1, 0) | XY(1, 1));
    /* It also writes the content that its line had in the cache. */
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, cached_then_nt, xx2), XY(1, 1));
    T_EQ_U64(outcomes(SG_PERSIST_ADR, true, cached_then_nt, xx2), XY(1, 1));
}

static void plain_nt_same_line(struct dom_rig *r)
{
    rig_store(r, 0, Y, 1);
    rig_store(r, 0, X, 1);
    rig_store_nt(r, 0, X2, 1);
}

static unsigned y_x2(const struct dom_rig *r)
{
    return rig_media(r, Y) + 4 * rig_media(r, X2);
}

static void buffer_order(void)
{
    /* A non-temporal store behind a buffered one of its line leaves after all before that. */
    T_EQ_U64(outcomes(SG_PERSIST_EADR, true, plain_nt_same_line, y_x2) & XY(0, 1), 0);
}

static void seen_by_other(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    /* vCPU 1 may have read x now; its own store follows. */
    rig_store(r, 1, Y, 1);
}

static void seen_by_device(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_write_u64(r, 1, Y, 1);
}

static void nt_and_other(struct dom_rig *r)
{
    rig_store_nt(r, 0, X, 1);
    rig_store(r, 1, Y, 1);
    rig_cpu_flush(r, 1, Y, SG_PERSIST_CLWB);
    rig_sfence(r, 1);
}

static void nt_and_device(struct dom_rig *r)
{
    rig_store_nt(r, 0, X, 1);
    rig_write_u64(r, 1, Y, 1);
    rig_flush(r, 1, Y, 8, SG_FLUSH_PERSISTENT);
}

static void nt_and_its_line(struct dom_rig *r)
{
    rig_store_nt(r, 0, X, 1);
    rig_store(r, 1, X2, 1);
}

static void synced(struct dom_rig *r)
{
    rig_store(r, 0, X, 1);
    rig_store_nt(r, 0, Y, 1);
    sg_persist_cpu_sync(r->p);
}

static void causality(void)
{
    T_EQ_U64(outcomes(SG_PERSIST_EADR, true, seen_by_other, xy), XY(1, 0) | XY(1, 1));
    T_EQ_U64(outcomes(SG_PERSIST_EADR, true, seen_by_device, xy), XY(1, 1));
    /* Non-temporal stores are not ordered with what anybody does elsewhere. */
    for (unsigned sb = 0; sb < 2; sb++) {
        T_EQ_U64(outcomes(SG_PERSIST_ADR, sb, nt_and_other, xy), XY(0, 1) | XY(1, 1));
        T_EQ_U64(outcomes(SG_PERSIST_ADR, sb, nt_and_device, xy), XY(0, 1) | XY(1, 1));
        T_EQ_U64(outcomes(SG_PERSIST_ADR, sb, nt_and_its_line, xy), XY(1, 0));
        T_EQ_U64(outcomes(SG_PERSIST_ADR, sb, synced, xy), ALL4);
        T_EQ_U64(outcomes(SG_PERSIST_EADR, sb, synced, xy), XY(1, 0) | XY(1, 1));
    }
}

/* If the cache survives, plain stores of one vCPU survive as a prefix, whatever else happens. */
static void prefix_of_stores(void)
{
    enum { STORES = 400, ATOMS = 32 };

    for (unsigned seed = 1; seed <= 400; seed++) {
        uint64_t x = seed * 0x9e3779b97f4a7c15ull, state[ATOMS] = { 0 };
        uint8_t place[STORES];
        unsigned n = 0, certain = 0, survived = 0;
        struct dom_rig r;

        T_CONTEXT("seed %u", seed);
        rig_init(&r);
        r.config.domain = SG_PERSIST_EADR;
        r.config.store_buffer = true;
        r.config.eviction = seed % 3;
        r.limits.line_stores = 8 + seed % 8;
        r.limits.seed = seed;
        r.limits.stores = seed % 2 ? 16 : 10000;
        rig_up(&r, 65536);
        for (unsigned stores = 20 + seed % (STORES - 20); n < stores;) {
            x = x * 6364136223846793005ull + 1442695040888963407ull;
            if (x >> 58 == 0) {
                rig_sfence(&r, 0);
                certain = n;
            } else if (x >> 58 == 1) {
                rig_cpu_flush(&r, 0, x >> 32 & 255,
                              x >> 20 & 1 ? SG_PERSIST_CLFLUSH : SG_PERSIST_CLWB);
            } else {
                place[n] = (x >> 33) % ATOMS;
                rig_store(&r, 0, place[n] * 8, n + 1);
                n++;
            }
        }
        rig_cut(&r, SG_PERSIST_OUTCOME_RANDOM, seed);
        for (unsigned a = 0; a < ATOMS; a++) {
            survived = SG_MAX(survived, rig_media(&r, a * 8));
        }
        T_TRUE(survived >= certain);
        for (unsigned i = 0; i < survived; i++) {
            state[place[i]] = i + 1;
        }
        for (unsigned a = 0; a < ATOMS; a++) {
            T_EQ_U64(rig_media(&r, a * 8), state[a]);
        }
        rig_down(&r);
    }
}

/* Buffers are finite: data evicted from them are in the next stage. */
static void overflow(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.domain = SG_PERSIST_EADR;
    r.config.store_buffer = true;
    rig_up(&r, 65536);
    for (unsigned i = 0; i < 100; i++) {
        rig_store(&r, 0, i * 64, 1);
    }
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    for (unsigned i = 0; i < 100; i++) {
        T_EQ_U64(rig_media(&r, i * 64), i < 100 - 56);
    }
    for (unsigned i = 0; i < 100; i++) {
        rig_store_nt(&r, 0, i * 64, 2);
    }
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    for (unsigned i = 0; i < 100; i++) {
        T_TRUE((rig_media(&r, i * 64) == 2) == (i < 100 - 64));
    }
    rig_down(&r);
}

/* A write-combining buffer that is evicted writes its line, with all earlier stores to it. */
static void overflow_in_order(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.domain = SG_PERSIST_EADR;
    r.config.store_buffer = true;
    rig_up(&r, 65536);
    plain_nt_same_line(&r);
    for (unsigned i = 0; i < 64; i++) {
        rig_store_nt(&r, 0, 4096 + i * 64, 1);
    }
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, X2), 1);
    T_EQ_U64(rig_media(&r, X), 1);
    T_EQ_U64(rig_media(&r, Y), 1);
    rig_down(&r);
}

/* Stores to one line share a write-combining buffer, so 63 other lines evict none. */
static void combined(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.domain = SG_PERSIST_EADR;
    r.config.store_buffer = true;
    rig_up(&r, 65536);
    for (unsigned i = 0; i < 8; i++) {
        rig_store_nt(&r, 0, i * 8, 1);
    }
    for (unsigned i = 0; i < 63; i++) {
        rig_store_nt(&r, 0, 4096 + i * 64, 1);
    }
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    for (unsigned i = 0; i < 8; i++) {
        T_EQ_U64(rig_media(&r, i * 8), 0);
    }
    T_EQ_U64(rig_media(&r, 4096), 0);
    rig_down(&r);
}

static void many_flushes(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.limits.check = false;
    rig_up(&r, 65536);
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < 1024; i++) {
            rig_store(&r, 0, i * 64, round + 1);
            rig_cpu_flush(&r, 0, i * 64, SG_PERSIST_CLWB);
        }
    }
    rig_sfence(&r, 0);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    for (unsigned i = 0; i < 1024; i++) {
        T_EQ_U64(rig_media(&r, i * 64), 200);
    }
    rig_down(&r);
}

/* A pending flush that is displaced by newer ones is executed, not dropped. */
static void oldest_flush(void)
{
    enum { NOTES = 65536 };
    struct dom_rig r;

    rig_init(&r);
    r.limits.check = false;
    rig_up(&r, 65536);
    rig_store(&r, 0, X, 1);
    rig_cpu_flush(&r, 0, X, SG_PERSIST_CLWB);
    for (unsigned i = 0; i < NOTES; i++) {
        rig_cpu_flush(&r, 0, Y, SG_PERSIST_CLWB);
    }
    rig_sfence(&r, 0);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, X), 1);
    rig_down(&r);
}

/* Merged stores persist together: one after the CLWB goes with those before it. */
static void flush_of_a_group(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.limits.line_stores = 8;
    rig_up(&r, 65536);
    for (unsigned i = 0; i < 9; i++) { /* the ninth makes one group of all */
        rig_store(&r, 0, i % 8 * 8, i + 1);
        if (i == 2) {
            rig_cpu_flush(&r, 0, X, SG_PERSIST_CLWB);
        }
    }
    rig_sfence(&r, 0);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    for (unsigned i = 0; i < 8; i++) {
        T_EQ_U64(rig_media(&r, i * 8), i ? i + 1 : 9);
    }
    rig_down(&r);
}

/* The CPU has written already when the store is reported; the line had no history. */
static void reported_late(struct dom_rig *r)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_CPU };
    uint8_t line[64] = { 1 }, three[8] = { 3 };

    rig_write(r, 1, 0, line, sizeof(line));
    rig_cpu_flush(r, 0, 0, SG_PERSIST_CLWB);
    memcpy(r->visible + X2, three, 8);
    T_TRUE(sg_persist_cpu_store(r->p, &who, RIG_BASE + X2, three, 8, 0));
}

static void reported_late_fenced(struct dom_rig *r)
{
    reported_late(r);
    rig_sfence(r, 0);
}

static void reported_late_twice(struct dom_rig *r)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_CPU };
    uint8_t two[8] = { 2 };

    reported_late(r);
    memcpy(r->visible + X3, two, 8);
    T_TRUE(sg_persist_cpu_store(r->p, &who, RIG_BASE + X3, two, 8, 0));
}

static unsigned xx2x3(const struct dom_rig *r)
{
    return rig_media(r, X) + 4 * rig_media(r, X2) + 16 * rig_media(r, X3);
}

static void written_before(void)
{
    /* Stores after the line has a history are separate: the last one alone may be lost. */
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, reported_late_twice, xx2x3),
             SET3(0, 1 + 4 * 3, 1 + 4 * 3 + 16 * 2));
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, reported_late, xx2), XY(0, 0) | XY(1, 3));
    /* The CLWB was before the store: the store may survive, the first octets must. */
    T_EQ_U64(outcomes(SG_PERSIST_ADR, false, reported_late_fenced, xx2) & ~(XY(1, 0) | XY(1, 3)),
             0);
}

static void tracking_off(void)
{
    struct dom_rig r;
    struct sg_persist_source who = { .agent = SG_PERSIST_CPU };
    uint8_t byte = 5;

    rig_init(&r);
    r.config.cpu_tracking = false;
    rig_up(&r, 65536);
    T_TRUE(sg_persist_cpu_store(r.p, &who, RIG_BASE, &byte, 1, SG_PERSIST_STORE_WRITE));
    T_EQ_U64(rig_visible(&r, 0), 5);
    T_EQ_U64(sg_persist_events(r.p), 0);
    T_FALSE(sg_persist_cpu_store(r.p, &who, RIG_BASE + 65536, &byte, 1, 0));
    T_FALSE(sg_persist_cpu_store(r.p, &who, RIG_BASE - 1, &byte, 1, 0));
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "E6 stores: in order within a line, not between lines", stores },
    { "E7 CLWB, CLFLUSHOPT, CLFLUSH with and without each fence", flushes },
    { "E7 a flush covers the stores before it, a fence its own vCPU's flushes", covers },
    { "E7 a flush is of the line, whoever stored", foreign_store },
    { "E8 non-temporal stores", non_temporal },
    { "S2' the store buffer is a FIFO, also towards non-temporal stores", buffer_order },
    { "S2' stores survive as a prefix where the cache survives", prefix_of_stores },
    { "S2' what another agent may have seen has left the processor", causality },
    { "S2' buffers are finite", overflow },
    { "E8 a buffer that is pushed out goes in order", overflow_in_order },
    { "E8 stores to one line share a buffer", combined },
    { "E7 more flushes than notes before a fence", many_flushes },
    { "E7 the oldest of too many notes is carried out", oldest_flush },
    { "E7 a flush takes merged stores together", flush_of_a_group },
    { "a store reported after the fact", written_before },
    { "without tracking stores are written and not noted", tracking_off },
};

T_MAIN(cases)
