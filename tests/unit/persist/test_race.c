/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adapters, and connections of one adapter, that race: for the same octets, and for a Flush.  As an
 * explorer has them: S0 and S1 are sets, and a Flush has two ends.
 */
#include "persist/certain.h"

#include "rig.h"

enum { OWN = 7, RACER = 9, BESIDE = SG_PERSIST_LINE };

static struct sg_persist_uncertain why;

static void up(struct dom_rig *r, unsigned domain)
{
    rig_init(r);
    r->limits.exact = true;
    r->config.domain = domain;
    r->config.posted_drain = SG_PERSIST_NEVER;
    r->config.placement_order = SG_PERSIST_RANDOM_ORDER;
    rig_up(r, 65536);
}

/* The racer writes; its adapter may be another one. */
static void racer_writes(struct dom_rig *r, unsigned unit, uint64_t off, uint64_t value)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .unit = unit, .qpn = RACER };

    T_TRUE(sg_persist_dma_write(r->p, &who, RIG_BASE + off, &value, 8));
}

/* Is the store with this number certain? */
static bool is_kept(const struct dom_rig *r, uint64_t off, uint64_t seq)
{
    uint64_t addr = RIG_BASE + off;

    return sg_persist_uncertain(r->p, addr, 8, seq - 1, seq, &why) == addr + 8;
}

static bool all_certain(const struct dom_rig *r, uint64_t off)
{
    uint64_t addr = RIG_BASE + off;

    return sg_persist_uncertain(r->p, addr, 8, 0, sg_persist_seq(r->p), &why) == addr + 8;
}

/* What the one who flushes wrote is certain; what the other one wrote is not, wherever it comes. */
static void same_octets(unsigned unit, bool racer_first, unsigned domain)
{
    uint64_t seq[2];
    struct dom_rig r;

    up(&r, domain);
    for (unsigned i = 0; i < 2; i++) {
        bool racer = (i == 0) == racer_first;

        if (racer) {
            racer_writes(&r, unit, 0, 2);
        } else {
            rig_write_u64(&r, OWN, 0, 1);
        }
        seq[racer] = sg_persist_seq(r.p);
    }
    T_FALSE(is_kept(&r, 0, seq[0]) || is_kept(&r, 0, seq[1]));
    T_EQ_INT(rig_flush(&r, OWN, 0, 8, SG_FLUSH_PERSISTENT), SG_PM_DONE);
    T_TRUE(is_kept(&r, 0, seq[0]));
    T_FALSE(is_kept(&r, 0, seq[1]));
    T_EQ_INT(why.stage, SG_PERSIST_S0);
    T_EQ_U64(why.lost, seq[1]);
    T_FALSE(all_certain(&r, 0));
    sg_persist_settle(r.p, unit, RACER);
    sg_persist_device_fence(r.p, unit);
    T_TRUE(is_kept(&r, 0, seq[0]));
    T_EQ_INT(is_kept(&r, 0, seq[1]), domain >= SG_PERSIST_EADR);
    T_EQ_INT(all_certain(&r, 0), domain >= SG_PERSIST_EADR);
    rig_down(&r);
}

static void one_flushes(void)
{
    for (unsigned domain = 0; domain < SG_PERSIST_DOMAINS; domain++) {
        for (unsigned row = 0; row < 4; row++) {
            T_CONTEXT("domain %u, row %u", domain, row);
            same_octets(row / 2, row % 2, domain);
        }
    }
}

/* Only the number of a store counts, and without exact limits nobody knows it. */
static void merged(void)
{
    uint64_t seq;
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    rig_write_u64(&r, OWN, 0, 1);
    rig_write_u64(&r, OWN, 8, 2); /* one line without a history, by its oldest store's number */
    seq = sg_persist_seq(r.p);
    T_FALSE(is_kept(&r, 8, seq));
    rig_down(&r);
}

enum when { NEVER, BEFORE, BETWEEN };

/*
 * The racer's write beside the range's own one was in S0 or S1 when a Flush of the whole range
 * began, and became visible before its end.
 */
static bool flush_covers(unsigned unit, enum when settles, enum when arrives, unsigned domain)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = OWN };
    struct sg_pm_op op = { .len = 2 * SG_PERSIST_LINE, .flags = SG_FLUSH_PERSISTENT };
    struct sg_persist_flush_note note;
    uint64_t own, racer;
    struct dom_rig r;
    bool covers;

    up(&r, domain);
    rig_write_u64(&r, OWN, 0, 1);
    own = sg_persist_seq(r.p);
    racer_writes(&r, unit, BESIDE, 2);
    racer = sg_persist_seq(r.p);
    for (enum when now = BEFORE; now <= BETWEEN; now++) {
        if (now == BETWEEN) {
            sg_persist_flush_begins(r.p, 0, &note);
        }
        if (settles == now) {
            sg_persist_settle(r.p, unit, RACER);
        }
        if (arrives == now) {
            sg_persist_device_fence(r.p, unit);
        }
    }
    T_EQ_INT(sg_persist_flush_ends(r.p, &who, RIG_BASE, &op, &note), SG_PM_DONE);
    T_TRUE(is_kept(&r, 0, own));
    covers = is_kept(&r, BESIDE, racer);
    rig_down(&r);
    return covers;
}

static void between_its_ends(void)
{
    static const struct {
        unsigned unit;
        enum when settles, arrives;
        bool covered;
    } rows[] = {
        { 0, NEVER, NEVER, false },
        { 0, BEFORE, NEVER, true }, /* in the adapter's own S1: the Flush pushes it out */
        { 0, BEFORE, BEFORE, true },
        { 0, BEFORE, BETWEEN, true },
        { 0, BETWEEN, NEVER, false },
        { 0, BETWEEN, BETWEEN, false }, /* it may have come when the Flush had been done */
        { 1, BEFORE, NEVER, false },
        { 1, BEFORE, BEFORE, true }, /* it was in the cache */
        { 1, BEFORE, BETWEEN, false },
        { 1, BETWEEN, BETWEEN, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (unsigned domain = SG_PERSIST_NONE; domain <= SG_PERSIST_ADR; domain++) {
            T_CONTEXT("row %u, domain %u", i, domain);
            T_EQ_INT(flush_covers(rows[i].unit, rows[i].settles, rows[i].arrives, domain),
                     rows[i].covered);
        }
    }
}

/* Who changes the racer's octets between the ends of a Flush, and so proves that they have come. */
enum changer { CHANGER_CPU, CHANGER_ADAPTER, CHANGERS };

static void change(struct dom_rig *r, uint64_t off, enum changer who)
{
    struct sg_persist_source cpu = { .agent = SG_PERSIST_CPU };
    struct sg_persist_source adapter = { .agent = SG_PERSIST_ADAPTER, .unit = 2, .qpn = 1 };
    uint64_t was = 2, is = 3;

    if (who == CHANGER_ADAPTER) {
        T_TRUE(sg_persist_atomic(r->p, &adapter, RIG_BASE + off, &was, is));
        return;
    }
    sg_persist_will_change(r->p, RIG_BASE + off, 8);
    memcpy(r->visible + off, &is, 8);
    T_TRUE(sg_persist_cpu_store(r->p, &cpu, RIG_BASE + off, &is, 8, 0));
}

/* Nothing but the write, and perhaps its settling, happened before the Flush began. */
static bool covers_what_is_changed(const struct sg_persist_source *writer, bool settled,
                                   unsigned order, enum changer who)
{
    struct sg_persist_source flusher = { .agent = SG_PERSIST_ADAPTER, .qpn = OWN };
    struct sg_pm_op op = { .len = SG_PERSIST_LINE, .flags = SG_FLUSH_PERSISTENT };
    uint64_t value = 2, number;
    struct sg_persist_flush_note note;
    struct dom_rig r;
    bool covers;

    rig_init(&r);
    r.limits.exact = true;
    r.config.posted_drain = SG_PERSIST_NEVER;
    r.config.placement_order = order;
    r.config.placement_delay_ns = 1000;
    rig_up(&r, 65536);
    T_TRUE(sg_persist_dma_write(r.p, writer, RIG_BASE, &value, 8));
    number = sg_persist_seq(r.p);
    if (settled) {
        sg_persist_settle(r.p, writer->unit, writer->qpn);
    }
    sg_persist_flush_begins(r.p, flusher.unit, &note);
    change(&r, 0, who);
    T_EQ_INT(sg_persist_flush_ends(r.p, &flusher, RIG_BASE, &op, &note), SG_PM_DONE);
    covers = is_kept(&r, 0, number);
    rig_down(&r);
    return covers;
}

static void changed_between_its_ends(void)
{
    static const struct {
        struct sg_persist_source writer;
        bool settled, covered;
    } rows[] = {
        { { .agent = SG_PERSIST_ADAPTER, .unit = 0, .qpn = OWN }, false, true },
        { { .agent = SG_PERSIST_ADAPTER, .unit = 0, .qpn = OWN }, true, true },
        { { .agent = SG_PERSIST_ADAPTER, .unit = 0, .qpn = RACER }, false, false },
        { { .agent = SG_PERSIST_ADAPTER, .unit = 0, .qpn = RACER }, true, true },
        { { .agent = SG_PERSIST_ADAPTER, .unit = 1, .qpn = RACER }, false, false },
        { { .agent = SG_PERSIST_ADAPTER, .unit = 1, .qpn = RACER }, true, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (unsigned order = SG_PERSIST_IN_ORDER; order < SG_PERSIST_ORDERS; order++) {
            for (enum changer who = CHANGER_CPU; who < CHANGERS; who++) {
                T_CONTEXT("row %u, order %u, changer %u", i, order, who);
                T_EQ_INT(covers_what_is_changed(&rows[i].writer, rows[i].settled, order, who),
                         rows[i].covered);
            }
        }
    }
}

/* Stores of a line beyond a limit share one number: then no store is judged alone. */
static void merged_by_a_limit(void)
{
    enum { STORES = 40 };
    uint64_t seq[STORES];
    struct dom_rig r;

    rig_init(&r);
    r.limits.exact = true;
    r.limits.line_stores = 16;
    rig_up(&r, 65536);
    for (unsigned i = 0; i < STORES; i++) {
        rig_write_u64(&r, OWN, 0, i + 1);
        seq[i] = sg_persist_seq(r.p);
    }
    for (unsigned i = 0; i < STORES; i++) {
        T_CONTEXT("store %u", i);
        T_FALSE(is_kept(&r, 0, seq[i]));
    }
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "writes to the same octets, of which one is flushed", one_flushes },
    { "writes that share a line without a history", merged },
    { "what a Flush covers of others that arrive between its ends", between_its_ends },
    { "and of what somebody else changes between its ends", changed_between_its_ends },
    { "stores of a line beyond a limit", merged_by_a_limit },
};

T_MAIN(cases)
