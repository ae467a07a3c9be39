/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store_order.h"

enum { HALF = SG_PERSIST_ATOM / 2 };

void store_order_init(struct store_order *s, const struct gt_trace *trace)
{
    *s = (struct store_order){ .trace = trace };
}

static bool is_input(const struct sg_persist_event *e)
{
    return e->kind == SG_PERSIST_EV_DMA_WRITE || e->kind == SG_PERSIST_EV_ATOM_STORE ||
           e->kind == SG_PERSIST_EV_OTHER_WRITE || e->kind == SG_PERSIST_EV_CPU_STORE;
}

static void take_in(struct store_order *s, const struct sg_persist_event *e)
{
    unsigned from = (e->addr - RIG_BASE) / HALF, end = from + e->len / HALF;

    if (e->msn == 0 || e->msn > GT_EVENTS) {
        return;
    }
    if (is_input(e)) {
        s->seq[e->msn] = e->seq;
        for (unsigned i = from; i < end; i++) {
            s->writes[e->msn][i] = true;
        }
    } else if (e->kind == SG_PERSIST_EV_POSTED) {
        s->post[e->msn] = e->seq;
    } else if (e->kind == SG_PERSIST_EV_VISIBLE) {
        for (unsigned i = from; i < end; i++) {
            s->visible[e->msn][i] = 2 * e->seq;
        }
    }
}

/* Of what the log does not say: it was the last event before this one. */
static void arrived_before(struct store_order *s, unsigned value, unsigned half)
{
    unsigned kind = s->trace->event[value - 1].kind;

    for (unsigned v = 1; v < value && (kind == GT_SWAP || kind >= GT_OTHER); v++) {
        if (s->writes[v][half] && !s->visible[v][half]) {
            s->visible[v][half] = 2 * s->seq[v];
        }
    }
}

void store_order_add(struct store_order *s, const struct dom_rig *r, unsigned value)
{
    uint64_t oldest, newest;
    struct sg_persist_event e;

    sg_persist_log_bounds(r->p, &oldest, &newest);
    while (s->logged < newest) {
        T_TRUE(sg_persist_log_event(r->p, ++s->logged, &e));
        take_in(s, &e);
    }
    for (unsigned i = 0; i < GT_WORLD; i++) {
        unsigned there = r->visible[i * HALF];

        if (s->writes[value][i] && s->trace->exact) {
            arrived_before(s, value, i);
        }
        if (there && !s->visible[there][i]) { /* at once, after what it made arrive */
            s->visible[there][i] = there == value ? 2 * newest + 1 : 2 * s->seq[there];
        }
    }
}

/* If both are under way: has t arrived whenever x has? */
static bool comes_before(const struct store_order *s, unsigned t, unsigned x)
{
    bool sets = s->trace->reorder && s->trace->exact != GT_LIVE;
    const struct gt_event *of_t = &s->trace->event[t - 1], *of_x = &s->trace->event[x - 1];

    if (s->post[t]) {
        return (s->trace->domain == SG_PERSIST_WHOLE && s->trace->medium == GT_SOUND) ||
               (of_t->who == of_x->who && (sets          ? s->post[t] < s->seq[x]
                                           : !s->post[x] ? true
                                                         : s->post[t] < s->post[x]));
    }
    return !s->post[x] && of_t->who == of_x->who && of_t->conn == of_x->conn && t < x &&
           !s->trace->reorder;
}

bool store_order_is_lost(const struct store_order *s, unsigned half, unsigned t, unsigned x)
{
    uint64_t when = s->visible[t][half];

    if (x == 0 || x == t) {
        return x == 0;
    }
    if (s->visible[x][half]) {
        return !when || s->visible[x][half] < when;
    }
    return !when && !comes_before(s, t, x);
}
