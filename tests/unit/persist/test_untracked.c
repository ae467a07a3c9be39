/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Untracked CPUs: their changes, also in lines that adapters made dirty. */
#include "base/bytes.h"
#include "rig.h"

#define P SG_FLUSH_PERSISTENT

enum { FIRST = 32, SECOND = 16, OWN = 48 };

static const struct sg_persist_ops staying = { .may_stay = true };

static void up(struct dom_rig *r, enum sg_persist_domain domain,
               enum sg_persist_untracked untracked)
{
    rig_init(r);
    r->config.cpu_tracking = false;
    r->config.domain = domain;
    r->config.untracked = untracked;
    rig_up(r, 65536);
}

/* As up(), with memory that may stay visible through a cut. */
static void up_staying(struct dom_rig *r, enum sg_persist_domain domain,
                       enum sg_persist_untracked untracked)
{
    up(r, domain, untracked);
    sg_persist_free(r->p);
    r->p = sg_persist_new(&r->config, &r->limits, &staying, NULL);
    T_EQ_INT(sg_persist_add(r->p,
                            &(struct sg_persist_extent){
                                .base = RIG_BASE,
                                .size = r->size,
                                .visible = r->visible,
                                .media = r->media,
                            }),
             0);
}

/* Two stores to descending addresses give the line a history; then an untracked CPU stores. */
static void shared_line(struct dom_rig *r)
{
    rig_write_u64(r, 1, FIRST, 1);
    rig_write_u64(r, 1, SECOND, 1);
    r->visible[OWN] = 1;
}

/* Which of the three are on the media. */
static unsigned survivors(const struct dom_rig *r)
{
    return r->media[FIRST] + 2 * r->media[SECOND] + 4 * r->media[OWN];
}

static void flush_takes_all(void)
{
    for (unsigned domain = 0; domain < SG_PERSIST_DOMAINS; domain++) {
        struct dom_rig r;

        T_CONTEXT("domain %u", domain);
        up(&r, domain, SG_PERSIST_UNTRACKED_AT_RISK);
        shared_line(&r);
        T_EQ_INT(rig_flush(&r, 1, OWN, 8, P), SG_PM_DONE);
        T_EQ_U64(survivors(&r), 7);
        r.visible[OWN] = 2; /* a later store is found later */
        T_EQ_INT(rig_flush(&r, 1, OWN, 8, P), SG_PM_DONE);
        T_EQ_U64(r.media[OWN], 2);
        rig_down(&r);
    }
}

static void orderly_end(void)
{
    struct dom_rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_AT_RISK);
    shared_line(&r);
    r.visible[FIRST] = 9; /* also over an adapter's octet */
    sg_persist_orderly(r.p);
    T_EQ_MEM(r.media, r.visible, 64);
    T_EQ_U64(r.media[FIRST], 9);
    rig_down(&r);
}

static void surviving_cache(void)
{
    for (unsigned domain = SG_PERSIST_EADR; domain < SG_PERSIST_DOMAINS; domain++) {
        struct dom_rig proto;

        T_CONTEXT("domain %u", domain);
        rig_init(&proto);
        proto.config.cpu_tracking = false;
        proto.config.domain = domain;
        T_EQ_U64(rig_outcomes_of(&proto, shared_line, survivors, 50), SET1(7));
    }
}

/* Where visible memory survives the cut, it must not revert either. */
static void surviving_cache_stays(void)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_LOSE_ALL };
    struct sg_persist_report *report;
    struct dom_rig r;

    up_staying(&r, SG_PERSIST_EADR, SG_PERSIST_UNTRACKED_AT_RISK);
    shared_line(&r);
    report = sg_persist_cut(r.p, &policy);
    T_TRUE(report->stays);
    T_EQ_U64(r.visible[OWN], 1);
    T_EQ_U64(survivors(&r), 7);
    sg_persist_report_free(report);
    rig_down(&r);
}

/* The processor's store counts as the last store to the line. */
static void at_risk(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    proto.config.cpu_tracking = false;
    T_EQ_U64(rig_outcomes_of(&proto, shared_line, survivors, 300), SET3(0, 1, 3) | SET1(7));
    proto.config.domain = SG_PERSIST_NONE;
    proto.config.ddio = false;
    T_EQ_U64(rig_outcomes_of(&proto, shared_line, survivors, 300), SET3(0, 1, 3) | SET1(7));
}

/* When the queue drains, the processor's later store to the line is not lost. */
static void drained(void)
{
    struct dom_rig r;

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
    struct dom_rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_AT_RISK);
    shared_line(&r);
    r.config.cpu_tracking = true;
    rig_configure(&r);
    sg_assert_persist_state(r.p, true);
    rig_cpu_flush(&r, 0, OWN, SG_PERSIST_CLWB);
    rig_sfence(&r, 0);
    T_EQ_U64(survivors(&r), 7);
    rig_down(&r);
}

/* A medium that refuses the write leaves the whole line unchanged. */
static void refused(void)
{
    struct sg_persist_faults faults = { .read_only = true };
    struct dom_rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_AT_RISK);
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

/* ---- untracked = keep: what a processor stored survives ---- */

static const enum sg_persist_domain losing[] = { SG_PERSIST_NONE, SG_PERSIST_ADR };

static void kept_in_lines_with_history(void)
{
    for (unsigned n = 0; n < SG_ARRAY_SIZE(losing); n++) {
        struct dom_rig proto;

        T_CONTEXT("domain %u", losing[n]);
        rig_init(&proto);
        proto.config.cpu_tracking = false;
        proto.config.domain = losing[n];
        proto.config.untracked = SG_PERSIST_UNTRACKED_KEEP;
        T_EQ_U64(rig_outcomes_of(&proto, shared_line, survivors, 100), SET1(7));
    }
}

/* A processor's store, then a DMA store: the cut that loses all keeps the processor's. */
static void before_dma(uint64_t own, uint64_t dma)
{
    for (unsigned n = 0; n < SG_ARRAY_SIZE(losing); n++) {
        struct dom_rig r;

        T_CONTEXT("domain %u, at %u and %u", losing[n], (unsigned)own, (unsigned)dma);
        up(&r, losing[n], SG_PERSIST_UNTRACKED_KEEP);
        r.visible[own] = 1;
        rig_write_u64(&r, 1, dma, 2);
        T_EQ_U64(r.visible[dma], 2);
        rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
        T_EQ_U64(r.media[own], 1);
        T_TRUE(dma == own || !r.media[dma]);
        rig_down(&r);
    }
}

static void kept_before_dma(void)
{
    before_dma(OWN, 0);
    before_dma(OWN, OWN); /* the DMA store overwrites it */
}

static void kept_between_dma(void)
{
    struct dom_rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_KEEP);
    shared_line(&r);
    rig_write_u64(&r, 1, OWN, 2);
    rig_write_u64(&r, 1, 0, 2);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(survivors(&r), 7);
    T_EQ_U64(r.media[0], 0);
    rig_down(&r);
}

static void kept_before_an_atomic(void)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    uint64_t value = 0;
    struct dom_rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_KEEP);
    r.visible[OWN] = 1;
    T_TRUE(sg_persist_atomic(r.p, &who, RIG_BASE, &value, 2));
    T_EQ_U64(rig_visible(&r, 0), 2);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(r.media[OWN], 1);
    T_EQ_U64(rig_media(&r, 0), 0);
    rig_down(&r);
}

/* A cut keeps a store in visible memory only, and DMA dirties its line before the write-back. */
static void kept_twice(void)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_LOSE_ALL };
    struct dom_rig r;

    up_staying(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_KEEP);
    r.visible[OWN] = 1;
    for (unsigned cut = 0; cut < 2; cut++) {
        sg_persist_report_free(sg_persist_cut(r.p, &policy));
        sg_persist_restart(r.p);
        T_EQ_U64(r.visible[OWN], 1);
        rig_write_u64(&r, 1, 0, 2);
    }
    T_EQ_U64(r.media[OWN], 1);
    rig_down(&r);
}

/* With AT_RISK, DMA does not move a processor's store to the media; and a medium may refuse it. */
static void nothing_else_is_kept(void)
{
    struct sg_persist_faults faults = { .read_only = true };
    struct dom_rig r;

    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_AT_RISK);
    r.visible[OWN] = 1;
    rig_write_u64(&r, 1, 0, 2);
    T_EQ_U64(r.media[OWN], 0);
    rig_down(&r);
    up(&r, SG_PERSIST_ADR, SG_PERSIST_UNTRACKED_KEEP);
    sg_persist_set_faults(r.p, 0, &faults);
    r.visible[OWN] = 1;
    rig_write_u64(&r, 1, 0, 2);
    T_EQ_U64(r.visible[0], 2);
    T_EQ_U64(r.media[OWN], 0);
    rig_down(&r);
}

/* A Verify sees what is certain to survive: a processor's store with KEEP, but not the DMA. */
static void kept_for_a_verify(void)
{
    for (unsigned kind = 0; kind < SG_PERSIST_UNTRACKED_KINDS; kind++) {
        uint8_t buf[128];
        struct dom_rig r;

        T_CONTEXT("kind %u", kind);
        up(&r, SG_PERSIST_ADR, kind);
        r.visible[OWN] = 1;
        rig_write_u64(&r, 1, 64, 2);
        T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, buf, sizeof(buf)), SG_PM_DONE);
        T_EQ_U64(buf[OWN], kind == SG_PERSIST_UNTRACKED_KEEP);
        T_EQ_U64(buf[64], 0);
        rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
        T_EQ_MEM(r.media, buf, sizeof(buf));
        rig_down(&r);
    }
}

/* ---- Random histories ---- */

enum { LINES = 128, ATOMS = LINES * 8, SIZE = LINES * SG_PERSIST_LINE, STEPS = 300 };

/* Atoms contain increasing numbers: none may be found below its floor. */
struct untracked_world {
    struct dom_rig r;
    uint64_t rng, value, lost;
    uint64_t floor[ATOMS];
    bool adapters[LINES]; /* perhaps dirty by DMA: a processor's store may be lost */
};

static uint64_t below(struct untracked_world *w, uint64_t n)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return w->rng % n;
}

/* Mostly in a few lines. */
static unsigned atom_of(struct untracked_world *w)
{
    return below(w, 4) ? below(w, 24) : below(w, ATOMS);
}

static void write_atoms(struct untracked_world *w)
{
    unsigned first = atom_of(w), count = 1 + below(w, below(w, 4) ? 3 : 30);
    uint8_t buf[30 * 8];

    count = SG_MIN(count, ATOMS - first);
    for (unsigned i = 0; i < count; i++) {
        sg_put_le64(buf + i * 8, ++w->value);
        w->adapters[(first + i) / 8] = true;
    }
    rig_write(&w->r, 1, first * 8, buf, count * 8);
}

static void store_atom(struct untracked_world *w)
{
    unsigned atom = atom_of(w);

    sg_put_le64(w->r.visible + atom * 8, ++w->value);
    if (w->r.config.untracked == SG_PERSIST_UNTRACKED_KEEP && !w->adapters[atom / 8]) {
        w->floor[atom] = w->value;
    }
}

static void swap_atom(struct untracked_world *w)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    unsigned atom = atom_of(w);
    uint64_t value = rig_visible(&w->r, atom * 8);

    w->adapters[atom / 8] = true;
    T_TRUE(sg_persist_atomic(w->r.p, &who, RIG_BASE + atom * 8, &value, ++w->value));
}

static void persisted(struct untracked_world *w, unsigned first_line, unsigned end_line)
{
    for (unsigned atom = first_line * 8; atom < end_line * 8; atom++) {
        w->floor[atom] = rig_visible(&w->r, atom * 8);
        T_EQ_U64(rig_media(&w->r, atom * 8), w->floor[atom]);
        w->adapters[atom / 8] = false;
    }
}

static void flush(struct untracked_world *w)
{
    unsigned first = atom_of(w), count = 1 + below(w, 40);

    count = SG_MIN(count, ATOMS - first);
    T_EQ_INT(rig_flush(&w->r, 1, first * 8, count * 8, P), SG_PM_DONE);
    persisted(w, first / 8, (first + count + 7) / 8);
}

static void cut(struct untracked_world *w)
{
    struct sg_persist_policy policy = {
        .outcome = below(w, SG_PERSIST_OUTCOMES),
        .seed = w->rng,
        .addr = RIG_BASE + below(w, SIZE),
        .len = below(w, SIZE),
    };
    uint64_t *before = g_memdup2(w->r.visible, SIZE);
    struct sg_persist_report *report = sg_persist_cut(w->r.p, &policy);

    if (!report->stays) {
        memcpy(w->r.visible, w->r.media, SIZE);
    }
    sg_persist_report_free(report);
    sg_persist_restart(w->r.p);
    for (unsigned atom = 0; atom < ATOMS; atom++) {
        uint64_t was = sg_get_le64((uint8_t *)(before + atom));
        uint64_t found = rig_visible(&w->r, atom * 8);

        if (found < w->floor[atom] || found > was ||
            (w->r.config.domain >= SG_PERSIST_EADR && found != was)) {
            T_FAIL("atom %u: %" PRIu64 " of %" PRIu64 ", not below %" PRIu64, atom, found, was,
                   w->floor[atom]);
        }
        w->lost += found != was;
        w->floor[atom] = found;
    }
    memset(w->adapters, 0, sizeof(w->adapters));
    g_free(before);
}

static void step(struct untracked_world *w)
{
    switch (below(w, 40)) {
    case 0:
        cut(w);
        break;
    case 1:
        sg_persist_orderly(w->r.p);
        persisted(w, 0, LINES);
        break;
    case 2:
        sg_persist_write_back(w->r.p, RIG_BASE, SIZE);
        break;
    case 3:
        sg_persist_deep_flush(w->r.p, RIG_BASE, SIZE);
        break;
    case 4 ... 7:
        flush(w);
        break;
    case 8 ... 9:
        swap_atom(w);
        break;
    case 10 ... 22:
        store_atom(w);
        break;
    default:
        write_atoms(w);
    }
}

static void run(struct untracked_world *w, uint64_t seed)
{
    struct sg_persist_config *c = &w->r.config;

    T_CONTEXT("seed %" PRIu64, seed);
    w->rng = seed * 0x9e3779b97f4a7c15ull + 1;
    w->value = 0;
    memset(w->floor, 0, sizeof(w->floor));
    memset(w->adapters, 0, sizeof(w->adapters));
    rig_init(&w->r);
    c->cpu_tracking = false;
    c->domain = below(w, SG_PERSIST_DOMAINS);
    c->untracked = below(w, SG_PERSIST_UNTRACKED_KINDS);
    c->ddio = below(w, 4) > 0;
    c->eviction = below(w, SG_PERSIST_PACES);
    c->drain = below(w, SG_PERSIST_PACES);
    w->r.limits.seed = seed;
    w->r.limits.line_stores = below(w, 2) ? 8 : 64;
    rig_up(&w->r, SIZE);
    if (below(w, 2)) {
        sg_persist_free(w->r.p);
        w->r.p = sg_persist_new(c, &w->r.limits, &staying, NULL);
        T_EQ_INT(sg_persist_add(w->r.p,
                                &(struct sg_persist_extent){
                                    .base = RIG_BASE,
                                    .size = SIZE,
                                    .visible = w->r.visible,
                                    .media = w->r.media,
                                }),
                 0);
    }
    for (unsigned n = 0; n < STEPS; n++) {
        step(w);
    }
    cut(w);
    rig_down(&w->r);
}

static void histories(void)
{
    unsigned seeds = getenv("SG_SANITIZED") && getenv("SG_SANITIZED")[0] == '1' ? 300 : 3000;
    struct untracked_world *w = g_new0(struct untracked_world, 1);

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run(w, seed);
    }
    T_NOTE("%u histories, %" PRIu64 " atoms lost that might be", seeds, w->lost);
    T_TRUE(w->lost > seeds);
    g_free(w);
}

static const struct t_case cases[] = {
    { "E10 a Flush takes what a processor did to a line with a history", flush_takes_all },
    { "an orderly end does", orderly_end },
    { "a cut does where the cache survives", surviving_cache },
    { "a cut does where visible memory stays", surviving_cache_stays },
    { "at risk it is the line's last store", at_risk },
    { "E13 a queue that drains leaves it to be found", drained },
    { "it counts when tracking begins", tracking_begins },
    { "a medium that refuses", refused },
    { "kept: in a line with a history", kept_in_lines_with_history },
    { "kept: stored before the adapter's store to the line", kept_before_dma },
    { "kept: stored between two of them", kept_between_dma },
    { "E15 kept: stored before an atomic to the line", kept_before_an_atomic },
    { "kept by a cut, and by the next", kept_twice },
    { "kept: a Verify knows it", kept_for_a_verify },
    { "at risk, or refused: not kept", nothing_else_is_kept },
    { "random histories: what was promised is there, and no more than was visible", histories },
};

T_MAIN(cases)
