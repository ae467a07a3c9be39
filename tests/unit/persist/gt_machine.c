/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gt_machine.h"

#include <string.h>

unsigned gt_line_of(const struct gt_part *x)
{
    return x->at / GT_LINE;
}

bool gt_keeps_cache(const struct gt_world *w)
{
    return w->t->domain >= SG_PERSIST_EADR;
}

bool gt_has_queue(const struct gt_world *w)
{
    return !gt_keeps_cache(w) || w->bad;
}

/* A poisoned line is written to the media: it is readable again. */
static void heal(const struct gt_world *w, struct gt_machine *m, unsigned line)
{
    m->poisoned[line] &= w->t->slip == GT_POISON_STAYS;
}

void gt_evict(const struct gt_world *w, struct gt_machine *m, unsigned line)
{
    if (gt_has_queue(w)) {
        if (m->queued[line] < m->version[line] && w->t->domain != SG_PERSIST_NONE) {
            heal(w, m, line);
        }
        memcpy(m->queue + line * GT_LINE, m->cache + line * GT_LINE, GT_LINE);
        m->queued[line] = m->version[line];
        for (unsigned c = 0; c < GT_CPUS; c++) {
            if (w->t->slip != GT_CLWB_OF_LATER_STORES) {
                m->note[c][line] = 0; /* done */
            }
        }
    }
}

void gt_drain(const struct gt_world *w, struct gt_machine *m, unsigned line)
{
    memcpy(m->media + line * GT_LINE, m->queue + line * GT_LINE, GT_LINE);
    if (w->bad && m->written[line] < m->queued[line]) {
        m->written[line] = m->queued[line];
        heal(w, m, line);
    }
}

void gt_reach_cache(struct gt_machine *m, const struct gt_part *x)
{
    memset(m->cache + x->at, x->value, x->units);
    m->version[gt_line_of(x)]++;
}

bool gt_has_left(const struct gt_machine *m, unsigned nt)
{
    return m->left >> nt & 1;
}

static bool same_atom(const struct gt_part *a, const struct gt_part *b)
{
    return a->at / 2 == b->at / 2;
}

bool gt_may_leave(const struct gt_world *w, const struct gt_machine *m, unsigned nt)
{
    if (gt_has_left(m, nt) || m->drained[w->nt[nt].cpu] < w->nt[nt].after) {
        return false;
    }
    for (unsigned i = 0; i < nt; i++) {
        if (!gt_has_left(m, i) && w->nt[i].cpu == w->nt[nt].cpu &&
            (w->t->slip == GT_NT_IN_ORDER ? gt_line_of(&w->nt[i]) == gt_line_of(&w->nt[nt])
                                          : same_atom(&w->nt[i], &w->nt[nt]))) {
            return false;
        }
    }
    return true;
}

void gt_leave(const struct gt_world *w, struct gt_machine *m, unsigned nt)
{
    m->left |= 1u << nt;
    gt_reach_cache(m, &w->nt[nt]);
    gt_evict(w, m, gt_line_of(&w->nt[nt]));
}

/* A plain store of the same CPU to the line goes to the cache: its older ones are there then. */
void gt_fold(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    for (unsigned i = 0; i < w->nts; i++) {
        const struct gt_part *nt = &w->nt[i];

        if (!gt_has_left(m, i) && nt->cpu == x->cpu && gt_line_of(nt) == gt_line_of(x) &&
            nt->event < x->event) {
            m->left |= 1u << i;
            gt_reach_cache(m, nt);
            m->note[x->cpu][gt_line_of(x)] = gt_has_queue(w) ? m->version[gt_line_of(x)] : 0;
        }
    }
}

/* All non-temporal stores of a CPU to a line have left (cpu -1: of all CPUs, but not of @but). */
bool gt_line_left(const struct gt_world *w, const struct gt_machine *m, unsigned line, int cpu,
                  int but)
{
    for (unsigned i = 0; i < w->nts; i++) {
        if (!gt_has_left(m, i) && gt_line_of(&w->nt[i]) == line && w->nt[i].cpu != but &&
            (cpu < 0 || w->nt[i].cpu == cpu)) {
            return false;
        }
    }
    return true;
}

void gt_note(const struct gt_world *w, struct gt_machine *m, unsigned cpu, unsigned line)
{
    if (gt_has_queue(w)) {
        m->note[cpu][line] =
            m->queued[line] < m->version[line] || w->t->slip == GT_CLWB_OF_LATER_STORES
                ? m->version[line]
                : 0;
        if (w->t->slip == GT_CLWB_AT_ONCE) {
            gt_evict(w, m, line);
        }
    }
}

bool gt_stores_left(const struct gt_world *w, const struct gt_machine *m, unsigned line, int but)
{
    for (int cpu = 0; cpu < GT_CPUS; cpu++) {
        for (unsigned i = m->drained[cpu]; cpu != but && i < w->buffered[cpu]; i++) {
            if (w->buffer[cpu][i].kind == BUFFERED_STORE &&
                gt_line_of(&w->buffer[cpu][i]) == line) {
                return false;
            }
        }
    }
    return true;
}

bool gt_leave_buffer(const struct gt_world *w, struct gt_machine *m, unsigned cpu)
{
    const struct gt_part *x = &w->buffer[cpu][m->drained[cpu]];

    switch (x->kind) {
    case BUFFERED_STORE:
        gt_fold(w, m, x);
        gt_reach_cache(m, x);
        break;
    case BUFFERED_NOTE:
        gt_note(w, m, x->cpu, gt_line_of(x));
        break;
    default:
        for (unsigned i = 0; i < w->nts; i++) {
            if (!gt_has_left(m, i) && w->nt[i].cpu == x->cpu &&
                gt_line_of(&w->nt[i]) == gt_line_of(x) && w->nt[i].event < x->event) {
                return false;
            }
        }
        gt_evict(w, m, gt_line_of(x));
    }
    m->drained[cpu]++;
    return true;
}

bool gt_may_place(const struct gt_world *w, const struct gt_machine *m, unsigned queue, unsigned i)
{
    const struct gt_part *s0 = w->s0[queue];
    uint64_t placed = m->placed[queue];
    unsigned device = queue / GT_CONNS;

    if (placed >> i & 1 || w->t->slip == GT_ADAPTER_LOSES_S0 ||
        (m->arrived[device] < w->s1_count[device] && w->t->slip != GT_S0_OVERTAKES_S1)) {
        return false;
    }
    for (unsigned k = 0; k < w->s0_count[queue]; k++) {
        bool begun = k && placed >> (k - 1) & 1 && s0[k - 1].event == s0[k].event;

        if (!(placed >> k & 1) && k != i &&
            ((k < i && (!w->t->reorder || s0[k].event == s0[i].event)) || begun)) {
            return false; /* an earlier one waits, or another Write is not complete */
        }
    }
    return true;
}

void gt_arrive_one(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_reach_cache(m, x);
    if (!w->t->ddio || w->t->slip == GT_DDIO_NEVER) {
        gt_evict(w, m, gt_line_of(x));
    }
}
