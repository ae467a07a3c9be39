/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is certain: cases that random traces do not have. */
#include "persist/certain.h"

#include "rig.h"

static struct sg_persist_uncertain why;

/* Is it certain as it is now? */
static bool is_certain(const struct dom_rig *r, uint64_t off, uint64_t len)
{
    uint64_t addr = RIG_BASE + off;

    return sg_persist_uncertain(r->p, addr, len, 0, sg_persist_seq(r->p), &why) == addr + len;
}

static void equal_values(void)
{
    const uint8_t octets[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, zero[8] = { 0 };
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    rig_store(&r, 0, 0, 0);
    T_TRUE(is_certain(&r, 0, 8)); /* an image cannot show that it is lost */
    rig_write(&r, 7, 8, octets, 8);
    rig_store(&r, 0, 8, 0);
    T_FALSE(is_certain(&r, 8, 8)); /* what is in between may be left */
    T_EQ_U64(why.len, 8);
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_PENDING);
    rig_write(&r, 7, 64, zero, 8);
    T_TRUE(is_certain(&r, 64, 64));
    rig_down(&r);
}

/* What comes behind a store in its queue does not come without it. */
static void order_of_queues(void)
{
    for (unsigned order = SG_PERSIST_IN_ORDER; order < SG_PERSIST_ORDERS; order++) {
        uint64_t first;
        struct dom_rig r;

        rig_init(&r);
        r.config.placement_delay_ns = 1000;
        r.config.placement_order = order;
        rig_up(&r, 65536);
        rig_write_u64(&r, 7, 0, 0); /* as it is */
        first = sg_persist_seq(r.p);
        rig_write_u64(&r, 7, 0, 1);
        T_EQ_INT(sg_persist_uncertain(r.p, RIG_BASE, 8, 0, first, &why) == RIG_BASE + 8,
                 order == SG_PERSIST_IN_ORDER);
        rig_down(&r);
    }
}

/* An untracked CPU's change survives with DMA's or not at all: no state in between. */
static void merged_stores(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.cpu_tracking = false;
    rig_up(&r, 65536);
    rig_write_u64(&r, 7, 8, 3);
    rig_write_u64(&r, 7, 0, 1); /* not upwards: a history */
    r.visible[0] = r.visible[8] = 0;
    T_TRUE(is_certain(&r, 64, 64));
    T_FALSE(is_certain(&r, 0, 16));
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_UNTRACKED);
    T_EQ_U64(why.lost, 0);
    T_EQ_INT(rig_flush(&r, 7, 0, 64, SG_FLUSH_PERSISTENT), SG_PM_DONE);
    T_TRUE(is_certain(&r, 0, 64));
    rig_down(&r);
}

static void untracked(void)
{
    for (unsigned domain = 0; domain < SG_PERSIST_DOMAINS; domain++) {
        for (unsigned keep = 0; keep < 2; keep++) {
            struct dom_rig r;

            T_CONTEXT("domain %u, keep %u", domain, keep);
            rig_init(&r);
            r.config.domain = domain;
            r.config.cpu_tracking = false;
            r.config.untracked = keep ? SG_PERSIST_UNTRACKED_KEEP : SG_PERSIST_UNTRACKED_AT_RISK;
            rig_up(&r, 65536);
            r.visible[130] = 1;
            T_EQ_INT(is_certain(&r, 0, 4096), keep || domain >= SG_PERSIST_EADR);
            if (why.len) {
                T_EQ_U64(why.len, 1);
                T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_UNTRACKED);
            }
            rig_down(&r);
        }
    }
}

static void bad_lines(void)
{
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_EADR);
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE, 64, SG_PERSIST_UNCORRECTABLE));
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + 128, 64, SG_PERSIST_POISONED));
    T_FALSE(is_certain(&r, 8, 256));
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_BAD);
    T_EQ_INT(why.stage, SG_PERSIST_STAGES);
    T_EQ_U64(why.len, 56);
    T_FALSE(is_certain(&r, 64, 128));
    rig_store(&r, 0, 0, 1);
    rig_store(&r, 0, 128, 1);
    T_FALSE(is_certain(&r, 0, 8));
    T_TRUE(is_certain(&r, 128, 64)); /* each cut writes it anew */
    r.config.domain = SG_PERSIST_ADR;
    rig_configure(&r);
    T_FALSE(is_certain(&r, 128, 64));
    sg_persist_clear_bad(r.p, RIG_BASE, 4096);
    T_TRUE(is_certain(&r, 136, 56));
    rig_down(&r);
}

static void edges(void)
{
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    T_TRUE(is_certain(&r, 0, 0));
    T_TRUE(is_certain(&r, 0, 65536));
    T_FALSE(is_certain(&r, 65530, 64));
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_OUTSIDE);
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE + 65530, 64, 0, 9, &why), RIG_BASE + 65536);
    T_EQ_U64(sg_persist_uncertain(r.p, UINT64_MAX - 3, 4, 0, 9, &why), UINT64_MAX - 3);
    rig_down(&r);
}

/* Numbers of inputs stay known, however many writes have arrived since. */
static void arrivals(void)
{
    uint64_t first;
    struct dom_rig r;

    rig_init(&r);
    r.config.posted_drain = SG_PERSIST_NEVER;
    r.limits.check = false;
    r.limits.exact = true;
    rig_up(&r, 65536);
    rig_write_u64(&r, 7, 0, 1);
    first = sg_persist_seq(r.p);
    for (unsigned i = 0; i < 20000; i++) {
        rig_write_u64(&r, 7, 64 + i % 64 * 64, i + 1);
        if (i % 8 == 0) {
            sg_persist_device_fence(r.p, 0);
        }
        if (i % 1000 == 0) {
            T_EQ_INT(rig_flush(&r, 7, 64, 4096, SG_FLUSH_PERSISTENT), SG_PM_DONE);
        }
    }
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE, 4096, 0, first, &why), RIG_BASE);
    T_TRUE(why.lost && why.lost <= first);
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE + 64, 4096, 0, first, &why), RIG_BASE + 64 + 4096);
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "stores of the value that is there", equal_values },
    { "what comes behind a store in its queue", order_of_queues },
    { "changes of untracked CPUs over DMA", merged_stores },
    { "changes of untracked CPUs, in each domain", untracked },
    { "bad lines", bad_lines },
    { "empty ranges, and ranges beyond extents", edges },
    { "numbers of writes that arrived late", arrivals },
};

T_MAIN(cases)
