/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processors that nobody follows: what they change in lines that adapters have dirtied as well. */
#include "base/bytes.h"
#include "rig.h"

#define P SG_PERSIST_FLUSH_P

enum { FIRST = 32, SECOND = 16, OWN = 48 };

static const struct sg_persist_ops staying = { .may_stay = true };

static void up(struct rig *r, enum sg_persist_domain domain, enum sg_persist_untracked untracked)
{
    rig_init(r);
    r->config.cpu_tracking = false;
    r->config.domain = domain;
    r->config.untracked = untracked;
    rig_up(r, 65536);
}

/* Two stores that go downwards are told apart; then a processor stores, of which nobody hears. */
static void shared_line(struct rig *r)
{
    rig_write_u64(r, 1, FIRST, 1);
    rig_write_u64(r, 1, SECOND, 1);
    r->visible[OWN] = 1;
}

/* Which of the three are on the media. */
static unsigned survivors(const struct rig *r)
{
    return r->media[FIRST] + 2 * r->media[SECOND] + 4 * r->media[OWN];
}

static void flush_takes_all(void)
{
    for (unsigned domain = 0; domain < SG_PERSIST_DOMAINS; domain++) {
        struct rig r;

        T_CONTEXT("domain %u", domain);
        up(&r, domain, SG_PERSIST_UNTRACKED_S2);
        shared_line(&r);
        T_EQ_INT(rig_flush(&r, 1, OWN, 8, P), SG_PM_DONE);
        T_EQ_U64(survivors(&r), 7);
        r.visible[OWN] = 2; /* and what comes later is found later */
        T_EQ_INT(rig_flush(&r, 1, OWN, 8, P), SG_PM_DONE);
        T_EQ_U64(r.media[OWN], 2);
        rig_down(&r);
    }
}

static void orderly_end(void)
{
    struct rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_S2);
    shared_line(&r);
    r.visible[FIRST] = 9; /* over an adapter's octet, too */
    sg_persist_orderly(r.p);
    T_EQ_MEM(r.media, r.visible, 64);
    T_EQ_U64(r.media[FIRST], 9);
    rig_down(&r);
}

static void surviving_cache(void)
{
    for (unsigned domain = SG_PERSIST_EADR; domain < SG_PERSIST_DOMAINS; domain++) {
        struct rig proto;

        T_CONTEXT("domain %u", domain);
        rig_init(&proto);
        proto.config.cpu_tracking = false;
        proto.config.domain = domain;
        T_EQ_U64(rig_outcomes_of(&proto, shared_line, survivors, 50), SET1(7));
    }
}

/* Where visible memory outlives the cut, it may not turn back either. */
static void surviving_cache_stays(void)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_LOSE_ALL };
    struct sg_persist_report *report;
    struct rig r;

    up(&r, SG_PERSIST_EADR, SG_PERSIST_UNTRACKED_S2);
    sg_persist_free(r.p);
    r.p = sg_persist_new(&r.config, &r.limits, &staying, NULL);
    T_EQ_INT(sg_persist_add(r.p, &(struct sg_persist_extent) {
        .base = RIG_BASE, .size = r.size, .visible = r.visible, .media = r.media,
    }), 0);
    shared_line(&r);
    report = sg_persist_cut(r.p, &policy);
    T_TRUE(report->stays);
    T_EQ_U64(r.visible[OWN], 1);
    T_EQ_U64(survivors(&r), 7);
    sg_persist_report_free(report);
    rig_down(&r);
}

/* The processor's store is one more store to the line, the last. */
static void at_risk(void)
{
    struct rig proto;

    rig_init(&proto);
    proto.config.cpu_tracking = false;
    T_EQ_U64(rig_outcomes_of(&proto, shared_line, survivors, 300),
             SET3(0, 1, 3) | SET1(7));
    proto.config.domain = SG_PERSIST_NONE;
    proto.config.ddio = false;
    T_EQ_U64(rig_outcomes_of(&proto, shared_line, survivors, 300),
             SET3(0, 3, 7));
}

/* The queue drains: what the processor did to the line since is not forgotten. */
static void drained(void)
{
    struct rig r;

    rig_init(&r);
    r.config.cpu_tracking = false;
    r.config.domain = SG_PERSIST_NONE;
    r.config.ddio = false;
    rig_up(&r, 65536);
    shared_line(&r);
    sg_persist_deep_flush(r.p, RIG_BASE, 64);
    T_EQ_INT(rig_flush(&r, 1, 0, 64, P), SG_PM_DONE);
    T_EQ_U64(survivors(&r), 7);
    rig_down(&r);
}

static void tracking_begins(void)
{
    struct rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_S2);
    shared_line(&r);
    r.config.cpu_tracking = true;
    rig_configure(&r);
    sg_assert_persist_state(r.p, true);
    rig_cpu_flush(&r, 0, OWN, SG_PERSIST_CLWB);
    rig_sfence(&r, 0);
    T_EQ_U64(survivors(&r), 7);
    rig_down(&r);
}

/* A medium that refuses leaves the line as it was, all of it. */
static void refused(void)
{
    struct sg_persist_faults faults = { .read_only = true };
    struct rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_S2);
    shared_line(&r);
    sg_persist_set_faults(r.p, 0, &faults);
    T_EQ_INT(rig_flush(&r, 1, 0, 64, P), SG_PM_FAILED);
    T_EQ_U64(survivors(&r), 0);
    faults.read_only = false;
    sg_persist_set_faults(r.p, 0, &faults);
    r.visible[OWN] = 3;
    T_EQ_INT(rig_flush(&r, 1, 0, 64, P), SG_PM_DONE);
    T_EQ_U64(r.media[OWN], 3);
    T_EQ_MEM(r.media, r.visible, 64);
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "E10 a Flush takes what a processor did to a line told apart", flush_takes_all },
    { "an orderly end does", orderly_end },
    { "a cut does where the cache survives", surviving_cache },
    { "a cut does where visible memory stays", surviving_cache_stays },
    { "at risk it is the line's last store", at_risk },
    { "E13 a queue that drains leaves it to be found", drained },
    { "it counts when tracking begins", tracking_begins },
    { "a medium that refuses", refused },
};

T_MAIN(cases)
