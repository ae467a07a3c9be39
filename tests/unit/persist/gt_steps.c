/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an event makes of each machine of the ground truth: steps for gt_step().  A step that
 * returns false removes its machine, where the event has not happened.
 */
#include <string.h>

#include "gt_steps.h"

static bool buffer_is_empty(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    return m->drained[x->cpu] == w->buffered[x->cpu];
}

static bool forget_buffer(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)w;
    m->drained[x->cpu] = 0;
    return true;
}

/* The store buffers of all CPUs but this one are empty. */
void gt_others_drain(struct gt_world *w, int but)
{
    for (unsigned cpu = 0; cpu < GT_CPUS; cpu++) {
        struct gt_part x = { .cpu = cpu };

        if ((int)cpu == but || !w->buffered[cpu]) {
            continue;
        }
        gt_step(w, buffer_is_empty, &x);
        w->buffered[cpu] = 0;
        for (unsigned i = 0; i < w->nts; i++) {
            w->nt[i].after = w->nt[i].cpu == cpu ? 0 : w->nt[i].after;
        }
        gt_step(w, forget_buffer, &x);
    }
}

/* An adapter acts. */
void gt_adapter_acts(struct gt_world *w)
{
    if (w->t->exact == GT_LIVE || w->t->slip == GT_ADAPTERS_DRAIN_BUFFERS) {
        gt_others_drain(w, -1);
    }
}

/* Another agent acts: a CPU (-1: another device). */
void gt_another_acts(struct gt_world *w, int cpu)
{
    if (w->t->exact != GT_ALL_LOADS) {
        gt_others_drain(w, cpu);
    }
}

bool gt_all_left(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)x;
    return m->left == (w->nts == 32 ? ~0u : (1u << w->nts) - 1);
}

bool gt_line_has_left(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    int own = x->cpu == UINT8_MAX ? -1 : x->cpu;

    return gt_line_left(w, m, gt_line_of(x), -1, own) &&
           (w->t->slip == GT_LINES_STAY_IN_BUFFERS || gt_stores_left(w, m, gt_line_of(x), own));
}

bool gt_step_fold(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_fold(w, m, x);
    return true;
}

bool gt_step_store(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)w;
    gt_reach_cache(m, x);
    return true;
}

bool gt_step_arrive(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_arrive_one(w, m, x);
    return true;
}

bool gt_step_come(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    if (w->segment[x->segment].arrived + m->came[x->segment] > x->number) {
        return true; /* it was early */
    }
    m->came[x->segment]++;
    gt_arrive_one(w, m, x);
    return gt_line_left(w, m, gt_line_of(x), -1, -1) &&
           (w->t->slip == GT_LINES_STAY_IN_BUFFERS || gt_stores_left(w, m, gt_line_of(x), -1));
}

bool gt_step_exchange(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    if (m->cache[x->at] != x->value || m->cache[x->at + 1] != x->value) {
        gt_arrive_one(w, m, x);
    }
    return true;
}

bool gt_step_evict(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_evict(w, m, gt_line_of(x));
    return true;
}

bool gt_step_drain(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_drain(w, m, gt_line_of(x));
    return true;
}

bool gt_step_note(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_note(w, m, x->cpu, gt_line_of(x));
    return true;
}

bool gt_step_own_left(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    return gt_line_left(w, m, gt_line_of(x), x->cpu, -1);
}

bool gt_step_fence(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    for (unsigned line = 0; line < GT_LINES; line++) {
        if (!gt_line_left(w, m, line, x->cpu, -1) && w->t->slip != GT_FENCE_FORGETS_NT) {
            return false;
        }
        if (m->note[x->cpu][line]) {
            uint8_t least = m->note[x->cpu][line];

            if (w->t->slip == GT_CLWB_OF_LATER_STORES) {
                least = m->version[line];
            }
            if (m->queued[line] < least) {
                return false;
            }
        }
        m->note[x->cpu][line] = 0;
    }
    return m->drained[x->cpu] == w->buffered[x->cpu];
}

/* Does a store of this CPU to a half still wait in it?  Then a load has that. */
static bool own_waits(const struct gt_world *w, const struct gt_machine *m, unsigned cpu,
                      unsigned half)
{
    for (unsigned i = m->drained[cpu]; i < w->buffered[cpu]; i++) {
        const struct gt_part *x = &w->buffer[cpu][i];

        if (x->kind == BUFFERED_STORE && half - x->at < x->units) {
            return true;
        }
    }
    for (unsigned i = 0; i < w->nts; i++) {
        if (w->nt[i].cpu == cpu && half - w->nt[i].at < w->nt[i].units && !gt_has_left(m, i)) {
            return true;
        }
    }
    return false;
}

/* A CPU has loaded x, all of which has come: it saw what the run had there. */
bool gt_step_saw(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    for (unsigned half = x->at; half < x->at + x->units; half++) {
        if (m->cache[half] != w->memory[half] && !own_waits(w, m, x->cpu, half) &&
            gt_stores_left(w, m, half / GT_LINE, x->cpu) &&
            gt_line_left(w, m, half / GT_LINE, -1, x->cpu)) {
            return false;
        }
    }
    return true;
}

/* Who has read the lines of x saw what others than x->cpu stored there. */
bool gt_step_read(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    unsigned first = x->at / GT_LINE, last = (x->at + x->units - 1) / GT_LINE;
    int own = x->cpu == UINT8_MAX ? -1 : x->cpu;

    for (unsigned line = first; line <= last; line++) {
        if (!gt_stores_left(w, m, line, own) ||
            (w->t->slip != GT_NT_KEPT_FROM_READERS && !gt_line_left(w, m, line, -1, own))) {
            return false;
        }
    }
    return true;
}

/* Of the machines only those in which nothing of the line has moved on that could still wait. */
bool gt_step_poison(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    unsigned line = gt_line_of(x);

    m->poisoned[line] = 1;
    return w->t->slip == GT_POISON_AT_ANY_TIME ||
           (m->queued[line] == w->least_queued[line] && m->written[line] == w->least_written[line]);
}

bool gt_step_clear(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)w;
    m->poisoned[gt_line_of(x)] = 0;
    return true;
}
