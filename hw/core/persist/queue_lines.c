/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is in the queue or buffer that a question of a cut is about, in the order of its answers. */
#include "persist/certain.h"
#include "persist/domain_impl.h"

/* only: of the piece with this event; 0: of all. */
static uint32_t fifo_lines(const struct fifo *f, uint64_t only, sg_persist_queue_line *line,
                           void *opaque)
{
    uint32_t n = 0;

    for (const struct piece *x = f->head; x; x = x->next) {
        uint64_t last = (x->addr + x->len - 1) / SG_PERSIST_ATOM;

        for (uint64_t atom = x->addr / SG_PERSIST_ATOM; atom <= last && (!only || only == x->seq);
             atom++) {
            uint64_t addr = atom * SG_PERSIST_ATOM;

            line(opaque, n++, sg_align_down(addr, SG_PERSIST_LINE));
        }
    }
    return n;
}

static uint32_t buffer_lines(const struct cpu *c, sg_persist_queue_line *line, void *opaque)
{
    for (unsigned i = 0; i < c->sb.count; i++) {
        line(opaque, i, sg_align_down(sg_dom_ring_at(&c->sb, i)->addr, SG_PERSIST_LINE));
    }
    return c->sb.count;
}

uint32_t sg_persist_queue_lines(const struct sg_persist *p, const struct sg_persist_choice *q,
                                sg_persist_queue_line *line, void *opaque)
{
    uint64_t only = 0;
    uint32_t n = 0;

    switch (q->what) {
    case SG_PERSIST_CHOICE_BUFFER:
        return p->cpu[q->unit] ? buffer_lines(p->cpu[q->unit], line, opaque) : 0;
    case SG_PERSIST_CHOICE_POSTED:
        return fifo_lines(&p->s1[q->unit], 0, line, opaque);
    case SG_PERSIST_CHOICE_SEGMENT:
        n = fifo_lines(&p->s1[q->unit], q->addr, line, opaque);
        only = q->addr;
        /* fall through */
    case SG_PERSIST_CHOICE_PLACED:
        for (unsigned i = 0; i < p->conn_order->len; i++) {
            const struct sg_dom_conn *conn = g_ptr_array_index(p->conn_order, i);

            if (conn->device == q->unit && conn->qpn == q->qpn) {
                return n + fifo_lines(&conn->s0, only, line, opaque);
            }
        }
        return n;
    default:
        return 0;
    }
}
