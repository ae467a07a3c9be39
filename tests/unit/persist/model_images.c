/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model_images.h"

#include "base/bytes.h"
#include "base/prng.h"
#include "persist/certain.h"

enum { HALF = SG_PERSIST_ATOM / 2, SIZE = SG_PERSIST_PAGE, DEPTH = 256 };

/* The answers of the present run, and those that it begins with. */
struct answers {
    uint32_t taken[DEPTH], n[DEPTH];
    unsigned given, asked;
};

static uint32_t answer(void *opaque, const struct sg_persist_choice *choice)
{
    struct answers *w = opaque;

    T_TRUE(w->asked < DEPTH && choice->n >= 2);
    if (w->asked == w->given) {
        w->taken[w->given] = 0;
        w->n[w->given++] = choice->n;
    }
    T_EQ_U64(w->n[w->asked], choice->n);
    return w->taken[w->asked++];
}

/* The next run's answers; false: all were given. */
static bool next_answers(struct answers *w)
{
    while (w->given && w->taken[w->given - 1] + 1 == w->n[w->given - 1]) {
        w->given--;
    }
    if (!w->given) {
        return false;
    }
    w->taken[w->given - 1]++;
    return true;
}

static struct sg_persist_source source_of(const struct gt_event *e)
{
    bool cpu = e->kind >= GT_STORE && e->kind <= GT_CPU_FENCE;

    return (struct sg_persist_source){
        .agent = cpu                   ? SG_PERSIST_CPU
                 : e->kind == GT_OTHER ? SG_PERSIST_OTHER
                                       : SG_PERSIST_ADAPTER,
        .unit = e->who,
        .qpn = cpu ? 0 : 7 + e->conn,
        .msn = e->value,
    };
}

static void store(struct dom_rig *r, const struct gt_event *e, const uint8_t *data)
{
    struct sg_persist_source who = source_of(e);
    unsigned flags = e->kind == GT_STORE_NT ? SG_PERSIST_STORE_NT : 0;
    size_t off = e->at * HALF, len = e->units * HALF;

    if (e->how == GT_TOLD_BEFORE) {
        flags |= SG_PERSIST_STORE_WRITE;
    } else {
        if (e->how == GT_TOLD_BOTH) {
            sg_persist_will_change(r->p, RIG_BASE + off, len);
        }
        memcpy(r->visible + off, data, len);
    }
    T_TRUE(sg_persist_cpu_store(r->p, &who, RIG_BASE + off, data, len, flags));
}

static void swap(struct dom_rig *r, const struct gt_event *e, const uint8_t *data)
{
    struct sg_persist_source who = source_of(e);
    uint64_t found = UINT64_MAX, addr = RIG_BASE + e->at * HALF; /* not what is there */

    T_TRUE(sg_persist_atomic(r->p, &who, addr, &found, sg_get_le64(data)));
    if (!e->how) {
        T_TRUE(sg_persist_atomic(r->p, &who, addr, &found, sg_get_le64(data)));
    }
}

static bool is_faulty(const struct dom_rig *r)
{
    struct sg_persist_faults faults;
    struct sg_persist_bad bad;

    sg_persist_get_faults(r->p, 0, &faults);
    return faults.read_only || faults.wears_out || sg_persist_bad_range(r->p, 0, &bad);
}

static void dma(struct dom_rig *r, const struct gt_event *e, const uint8_t *data)
{
    struct sg_persist_source who = source_of(e);
    uint64_t addr = RIG_BASE + e->at * HALF, len = e->units * HALF;
    struct sg_pm_op op = { .len = len, .flags = e->how };

    switch (e->kind) {
    case GT_WRITE:
        T_TRUE(sg_persist_dma_write(r->p, &who, addr, data, len));
        break;
    case GT_ATOM:
        sg_persist_settle(r->p, e->who, who.qpn);
        T_TRUE(sg_persist_atom_store(r->p, &who, addr, data));
        break;
    case GT_SWAP:
        swap(r, e, data);
        break;
    case GT_SETTLE:
        sg_persist_settle(r->p, e->who, who.qpn);
        break;
    case GT_FENCE_DEVICE:
        sg_persist_device_fence(r->p, e->who);
        break;
    case GT_READ:
        sg_persist_dma_read(r->p, e->who, addr, len);
        break;
    case GT_FLUSH:
        T_TRUE(sg_persist_flush(r->p, &who, addr, &op) == SG_PM_DONE || is_faulty(r));
        break;
    default:
        sg_persist_will_change(r->p, addr, len);
        memcpy(r->visible + e->at * HALF, data, len);
        T_TRUE(sg_persist_other_write(r->p, &who, addr, len));
    }
}

void model_event(struct dom_rig *r, const struct gt_event *e)
{
    struct sg_persist_source who = source_of(e);
    uint8_t data[GT_WORLD * HALF];

    memset(data, e->value, sizeof(data));
    switch (e->kind) {
    case GT_STORE:
    case GT_STORE_NT:
        store(r, e, data);
        break;
    case GT_LOAD:
        sg_persist_cpu_load(r->p, &who, RIG_BASE + e->at * HALF, e->units * HALF);
        break;
    case GT_CPU_FLUSH:
        sg_persist_cpu_flush(r->p, &who, RIG_BASE + e->at * HALF, e->how);
        break;
    case GT_CPU_FENCE:
        sg_persist_cpu_fence(r->p, &who, e->how);
        break;
    case GT_SYNC:
        sg_persist_cpu_sync(r->p);
        break;
    case GT_DEEP_FLUSH:
        sg_persist_deep_flush(r->p, RIG_BASE + e->at * HALF, e->units * HALF);
        break;
    case GT_POISON:
    case GT_UNCORRECTABLE:
        T_TRUE(sg_persist_mark_bad(r->p, RIG_BASE + e->at * HALF, e->units * HALF,
                                   e->kind == GT_POISON ? SG_PERSIST_POISONED
                                                        : SG_PERSIST_UNCORRECTABLE));
        break;
    case GT_CLEAR_BAD:
        sg_persist_clear_bad(r->p, RIG_BASE + e->at * HALF, e->units * HALF);
        break;
    default:
        dma(r, e, data);
    }
}

/* As a plan has it, which is a number. */
static uint32_t planned(void *opaque, const struct sg_persist_choice *q)
{
    const struct gt_trace *t = opaque;
    uint64_t random = (q->addr << 8) + t->plan;

    return t->plan == 1 ? 0 : sg_prng(&random) % q->n;
}

void model_begin(struct dom_rig *r, const struct gt_trace *t, bool check)
{
    rig_init(r);
    r->config.domain = t->domain;
    r->config.ddio = t->ddio;
    r->config.store_buffer = t->store_buffer;
    r->config.placement_delay_ns = t->s0 ? 1000 : 0;
    r->config.placement_order = t->reorder ? SG_PERSIST_RANDOM_ORDER : SG_PERSIST_IN_ORDER;
    r->config.posted_drain = t->s1 ? SG_PERSIST_NEVER : SG_PERSIST_EAGER;
    r->limits.log_events = 256;
    r->limits.exact = t->exact != GT_LIVE;
    r->limits.all_loads = t->exact == GT_ALL_LOADS;
    r->limits.check = check;
    rig_up(r, SIZE);
    if (t->plan) {
        sg_persist_arrivals(r->p, planned, (void *)t);
    }
    if (t->medium != GT_SOUND) {
        struct sg_persist_faults faults = {
            .read_only = t->medium == GT_READ_ONLY,
            .wears_out = t->medium >= GT_WORN_OUT,
            .lines_left = t->medium - GT_WORN_OUT,
        };

        sg_persist_set_faults(r->p, 0, &faults);
    }
}

/* False: a load contradicts the answers. */
static bool run(struct dom_rig *r, const struct gt_trace *t, bool check)
{
    for (unsigned i = 0; i < t->count; i++) {
        const struct gt_event *e = &t->event[i];

        model_event(r, e);
        if (e->kind == GT_LOAD &&
            sg_persist_contradicts(r->p, RIG_BASE + e->at * HALF, e->units * HALF)) {
            return false;
        }
    }
    if (check) {
        sg_assert_persist_state(r->p, true);
    }
    return true;
}

static void read_image(const uint8_t *media, uint8_t image[GT_WORLD])
{
    for (unsigned i = 0; i < GT_WORLD; i++) {
        image[i] = media[i * HALF];
        for (unsigned k = 1; k < HALF; k++) {
            T_EQ_INT(media[i * HALF + k], image[i]);
        }
    }
}

/* Nobody can read bad lines. */
static void hide_bad(const struct dom_rig *r, uint8_t image[GT_WORLD])
{
    struct sg_persist_bad bad;

    for (unsigned i = 0; sg_persist_bad_range(r->p, i, &bad); i++) {
        for (uint64_t at = bad.addr; at < bad.addr + bad.len && at < RIG_BASE + GT_WORLD * HALF;
             at += HALF) {
            image[(at - RIG_BASE) / HALF] = GT_BAD;
        }
    }
}

bool model_image(const struct gt_trace *trace, const struct sg_persist_policy *policy, bool preview,
                 uint8_t image[GT_WORLD])
{
    bool happened;
    uint8_t media[GT_WORLD * HALF];
    struct dom_rig r;

    model_begin(&r, trace, true);
    happened = run(&r, trace, true);
    if (preview) {
        T_TRUE(sg_persist_preview(r.p, policy, RIG_BASE, media, sizeof(media)));
        read_image(media, image);
    } else {
        sg_persist_report_free(sg_persist_cut(r.p, policy));
        read_image(r.media, image);
        hide_bad(&r, image);
    }
    rig_down(&r);
    return happened;
}

GHashTable *model_images(const struct gt_trace *trace, unsigned most, unsigned *cuts)
{
    struct answers w = { .given = 0 };
    struct sg_persist_policy policy = { .choose = answer, .opaque = &w };
    GHashTable *set = gt_set_new();
    uint8_t image[GT_WORLD];

    *cuts = 0;
    do {
        struct dom_rig r;
        bool happened;

        w.asked = 0;
        model_begin(&r, trace, *cuts == 0);
        if (!trace->plan) {
            sg_persist_arrivals(r.p, answer, &w);
        }
        happened = run(&r, trace, *cuts == 0);
        if (happened) {
            sg_persist_report_free(sg_persist_cut(r.p, &policy));
            read_image(r.media, image);
            hide_bad(&r, image);
            gt_set_add(set, image);
        }
        rig_down(&r);
        if (++*cuts == most) {
            g_hash_table_destroy(set);
            return NULL;
        }
    } while (next_answers(&w));
    return set;
}
