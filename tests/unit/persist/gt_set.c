/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of machines: none twice, and closed over the spontaneous moves. */
#include <string.h>

#include "gt_machine.h"

static guint machine_hash(gconstpointer m)
{
    return gt_hash((const uint8_t *)m, sizeof(struct gt_machine));
}

static gboolean machine_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(struct gt_machine)) == 0;
}

void gt_add(struct gt_world *w, const struct gt_machine *m)
{
    if (w->machines->len >= w->most) {
        w->too_many = true;
    } else if (!g_hash_table_contains(w->known, m)) {
        struct gt_machine *copy = g_memdup2(m, sizeof(*m));

        g_hash_table_add(w->known, copy);
        g_array_append_val(w->machines, copy);
    }
}

const struct gt_machine *gt_machine_at(const struct gt_world *w, unsigned i)
{
    return g_array_index(w->machines, struct gt_machine *, i);
}

typedef bool may_move(const struct gt_world *w, const struct gt_machine *m, unsigned segment);

static void segments_move(struct gt_world *w, const struct gt_machine *from, may_move *may)
{
    for (unsigned i = 0; i < w->segments; i++) {
        const struct gt_segment *s = &w->segment[i];
        struct gt_machine m = *from;

        if (may(w, from, i)) {
            gt_arrive_one(w, &m, &s->part[s->arrived + m.came[i]++]);
            gt_add(w, &m);
        }
    }
}

/* At the cut: what is in S0 and S1 arrives, or does not. */
static void posted_moves(struct gt_world *w, const struct gt_machine *from)
{
    struct gt_machine m;

    for (unsigned d = 0; d < GT_DEVICES; d++) {
        if (from->arrived[d] < w->s1_count[d]) {
            m = *from;
            gt_arrive_one(w, &m, &w->s1[d][m.arrived[d]++]);
            gt_add(w, &m);
            if (w->t->slip == GT_POSTED_ANY_ORDER) {
                m = *from;
                m.arrived[d]++;
                gt_add(w, &m);
            }
        }
    }
    segments_move(w, from, gt_may_come);
    for (unsigned q = 0; q < GT_QUEUES; q++) {
        for (unsigned i = 0; i < w->s0_count[q]; i++) {
            if (gt_may_place(w, from, q, i)) {
                m = *from;
                m.placed[q] |= 1ull << i;
                gt_arrive_one(w, &m, &w->s0[q][i]);
                gt_add(w, &m);
            }
        }
    }
}

static void spontaneous(struct gt_world *w, const struct gt_machine *from)
{
    struct gt_machine m;

    for (unsigned line = 0; line < GT_LINES && gt_has_queue(w); line++) {
        m = *from;
        gt_evict(w, &m, line);
        if (w->t->domain == SG_PERSIST_NONE && w->t->slip == GT_QUEUE_HOLDS_LINES) {
            gt_drain(w, &m, line);
        }
        gt_add(w, &m);
        if (w->t->slip == GT_LINES_TEAR) {
            m = *from;
            memcpy(m.queue + line * GT_LINE + 2, m.cache + line * GT_LINE + 2, 2);
            gt_add(w, &m);
        }
        if (w->t->domain == SG_PERSIST_NONE && w->t->slip != GT_QUEUE_HOLDS_LINES) {
            m = *from;
            gt_drain(w, &m, line);
            gt_add(w, &m);
        }
    }
    if (w->cutting) {
        posted_moves(w, from);
        return;
    }
    if (w->between) {
        segments_move(w, from, gt_may_be_early);
    }
    for (unsigned cpu = 0; cpu < GT_CPUS; cpu++) {
        m = *from;
        if (m.drained[cpu] < w->buffered[cpu] && gt_leave_buffer(w, &m, cpu)) {
            gt_add(w, &m);
            if (w->t->slip == GT_BUFFER_ANY_ORDER) {
                m = *from;
                m.drained[cpu]++;
                gt_add(w, &m);
            }
        }
    }
    for (unsigned i = 0; i < w->nts; i++) {
        if (gt_may_leave(w, from, i)) {
            m = *from;
            gt_leave(w, &m, i);
            gt_add(w, &m);
        }
    }
}

void gt_close(struct gt_world *w)
{
    for (unsigned i = 0; i < w->machines->len && !w->too_many; i++) {
        spontaneous(w, gt_machine_at(w, i));
    }
}

void gt_step(struct gt_world *w, machine_step *what, const struct gt_part *x)
{
    GArray *old = w->machines;
    GHashTable *known = w->known;

    w->machines = g_array_new(FALSE, FALSE, sizeof(struct gt_machine *));
    w->known = g_hash_table_new_full(machine_hash, machine_equal, g_free, NULL);
    for (unsigned i = 0; i < old->len; i++) {
        struct gt_machine m = *g_array_index(old, struct gt_machine *, i);

        if (what(w, &m, x)) {
            gt_add(w, &m);
        }
    }
    g_array_free(old, TRUE);
    g_hash_table_destroy(known);
    gt_close(w);
}

void gt_copy_all(const struct gt_world *w, GArray *to)
{
    for (unsigned i = 0; i < w->machines->len; i++) {
        g_array_append_vals(to, gt_machine_at(w, i), 1);
    }
}

void gt_replace_all(struct gt_world *w, const GArray *by)
{
    gt_end(w);
    gt_begin(w);
    for (unsigned i = 0; i < by->len; i++) {
        gt_add(w, &g_array_index(by, struct gt_machine, i));
    }
}

void gt_begin(struct gt_world *w)
{
    w->machines = g_array_new(FALSE, FALSE, sizeof(struct gt_machine *));
    w->known = g_hash_table_new_full(machine_hash, machine_equal, g_free, NULL);
}

void gt_end(struct gt_world *w)
{
    g_array_free(w->machines, TRUE);
    g_hash_table_destroy(w->known);
}
