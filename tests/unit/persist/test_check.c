/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sg_assert_persist_state() detects each invariant when it is broken by hand.  (All other cases,
 * such as test_random, check after each event that the invariants hold.)
 */

#include "aborts.h"
#include "persist/domain_impl.h"
#include "rig.h"

struct damaging {
    struct sg_persist *p;
    void (*damage)(struct sg_persist *p);
};

static void damage_and_check(void *arg)
{
    const struct damaging *d = arg;

    d->damage(d->p);
    sg_assert_persist_state(d->p, true);
}

/* Whether the check aborts after this. */
static bool noticed(struct dom_rig *r, void (*damage)(struct sg_persist *p))
{
    struct damaging d = { r->p, damage };

    sg_assert_persist_state(r->p, true);
    return t_aborts(damage_and_check, &d);
}

static struct page *page0(struct sg_persist *p)
{
    return p->extent[0].pages[0];
}

static struct line *line0(struct sg_persist *p)
{
    return sg_dom_line(p, page0(p), 0);
}

static struct rec *first_rec(struct sg_persist *p)
{
    return sg_dom_rec(p, line0(p)->first);
}

static void map_bit(struct sg_persist *p)
{
    p->extent[0].map[0] ^= 1;
}

static void top_bit(struct sg_persist *p)
{
    p->extent[0].top[0] ^= 1;
}

static void empty_page(struct sg_persist *p)
{
    sg_dom_page(p, &p->extent[0], 5);
}

static void history_of_clean(struct sg_persist *p)
{
    page0(p)->has_history |= 1ull << 50;
}

static void in_wpq_alone(struct sg_persist *p)
{
    page0(p)->in_wpq |= 1ull << 1;
}

static void count_wrong(struct sg_persist *p)
{
    line0(p)->count++;
}

static void empty_store(struct sg_persist *p)
{
    first_rec(p)->mask = 0;
}

static void glued_end(struct sg_persist *p)
{
    sg_dom_rec(p, line0(p)->last)->flags |= REC_GLUE;
}

static void wpq_in_adr(struct sg_persist *p)
{
    line0(p)->wpq_count = 1;
}

static void buffered_first(struct sg_persist *p)
{
    first_rec(p)->flags |= REC_WC;
}

static void two_busy(struct sg_persist *p)
{
    for (unsigned i = 0; i < 2; i++) {
        sg_dom_cpu_at(p, i)->sb.count = 1;
        p->busy[0] |= 1u << i;
    }
    p->busy_cpus = 2;
}

static void secretly_busy(struct sg_persist *p)
{
    sg_dom_cpu_at(p, 1)->sb.count = 1;
}

static void s1_not_known(struct sg_persist *p)
{
    p->s1_devices = 2;
}

static void nt_count(struct sg_persist *p)
{
    p->nt_lines++;
}

static void nt_of_nobody(struct sg_persist *p)
{
    p->nt_lines++;
    line0(p)->nt_cpu = 1;
}

static void loose_end(struct sg_persist *p)
{
    sg_dom_rec(p, line0(p)->last)->flags |= REC_LOOSE;
}

static void s1_count(struct sg_persist *p)
{
    p->s1[0].octets = 8;
}

static void s1_eager(struct sg_persist *p)
{
    struct piece *x = g_malloc0(sizeof(*x));

    p->s1[0].head = p->s1[0].tail = x;
    p->s1[0].count = 1;
}

static void bad_order(struct sg_persist *p)
{
    p->bad[0].range[0].addr = p->bad[0].range[1].addr;
}

static void clean_differs(struct sg_persist *p)
{
    p->extent[0].visible[8000] ^= 1;
}

static void history_differs(struct sg_persist *p)
{
    first_rec(p)->data[7] ^= 1;
}

static const struct {
    const char *name;
    void (*damage)(struct sg_persist *p);
} damages[] = {
    { "1 map", map_bit },
    { "1 top", top_bit },
    { "1 page without dirty line", empty_page },
    { "2 history", history_of_clean },
    { "2 in S3", in_wpq_alone },
    { "3 count", count_wrong },
    { "3 store of nothing", empty_store },
    { "3 last store glued", glued_end },
    { "4 queue in ADR", wpq_in_adr },
    { "5 buffer before cache", buffered_first },
    { "5 a run that does not end", loose_end },
    { "6 two vCPUs", two_busy },
    { "6 a vCPU that is not known to be busy", secretly_busy },
    { "7 S1 of a device that has none", s1_not_known },
    { "6 lines that wait", nt_count },
    { "6 vCPU of a line", nt_of_nobody },
    { "7 S1 octets", s1_count },
    { "8 S1 eager", s1_eager },
    { "9 bad ranges", bad_order },
    { "10 clean line", clean_differs },
    { "10 history", history_differs },
};

static void each_invariant(void)
{
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    rig_store(&r, 0, 0, 1);
    rig_store(&r, 0, 8, 1);
    rig_write_u64(&r, 1, 64, 1);
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE, 64, SG_PERSIST_UNCORRECTABLE));
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + 256, 64, SG_PERSIST_UNCORRECTABLE));
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        T_CONTEXT("invariant %s", damages[i].name);
        T_TRUE(noticed(&r, damages[i].damage));
    }
    rig_down(&r);
}

static void nothing(struct sg_persist *p)
{
}

static void no_false_alarm(void)
{
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    rig_store(&r, 0, 0, 1);
    T_FALSE(noticed(&r, nothing));
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "each broken invariant is noticed", each_invariant },
    { "a sound state passes", no_false_alarm },
};

T_MAIN(cases)
