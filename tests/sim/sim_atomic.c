/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model of verbs: Atomics.  Each side has a few words that only the peer's Atomics
 * change, so the value that each of them must find is known when it is requested.
 */
#include "sim.h"

bool sim_is_atomic(const struct sim_op *op)
{
    return op->msg.kind == SG_MSG_FETCH_ADD || op->msg.kind == SG_MSG_CMP_SWAP;
}

/* Bit by bit, as RFC 7306 section 5.1 describes it. */
uint64_t sim_atomic_result(enum sg_msg_kind kind, const struct sg_atomic_args *a, uint64_t v)
{
    uint64_t out = 0, b;
    unsigned carry = 0, sum;

    for (b = 1; b; b <<= 1) {
        if (kind == SG_MSG_FETCH_ADD) {
            sum = !!(v & b) + !!(a->data & b) + carry;
            out |= sum & 1 ? b : 0;
            carry = a->mask & b ? 0 : sum >> 1;
        } else {
            if (a->cmp_mask & b && (a->cmp ^ v) & b) {
                return v;
            }
            out |= (a->mask & b ? a->data : v) & b;
        }
    }
    return out;
}

/* The peer's next Atomic, which must be this one. */
static const struct sim_op *next_atomic(struct sim_side *s)
{
    const struct sim_side *from = s->peer;

    while (s->executed < from->taken && !sim_is_atomic(&from->ops[s->executed])) {
        s->executed++;
    }
    SIM_CHECK(s->pair->w, s->executed < from->taken, "%u.%u: an Atomic that was never asked for",
              s->pair->index, s->node);
    return &from->ops[s->executed];
}

enum sg_exec_result sim_up_atomic(void *user, const struct sg_atomic_call *r, uint64_t *original,
                                  enum sg_mem_status *why, uint64_t *token, uint64_t *again_ns)
{
    struct sim_side *s = sim_heard(user, "atomic", false);
    struct sim_world *w = s->pair->w;
    const struct sim_op *op;
    uint8_t *at;

    if (s->left) {
        return SG_EXEC_CLOSED;
    }
    op = next_atomic(s);
    SIM_CHECK(w, *token == s->later, "%u.%u: asked for the %uth time with token %u", s->pair->index,
              s->node, s->later, (unsigned)*token);
    SIM_CHECK(
        w,
        op->ordinal == sg_conn_ordinal(s->c) && op->msg.kind == r->kind &&
            op->msg.atomic.stag == r->stag && op->msg.atomic.to == r->to &&
            op->msg.atomic.args.data == r->args.data && op->msg.atomic.args.mask == r->args.mask &&
            (r->kind == SG_MSG_FETCH_ADD || (op->msg.atomic.args.cmp == r->args.cmp &&
                                             op->msg.atomic.args.cmp_mask == r->args.cmp_mask)),
        "%u.%u: Atomic op %u came otherwise", s->pair->index, s->node, op->seq);
    if (sim_tantrum(s)) {
        return SG_EXEC_FAILED;
    }
    if (sim_chance(w, 15)) {
        *again_ns = w->now_ns + sim_below(w, 50000);
        *token = ++s->later;
        return SG_EXEC_LATER;
    }
    s->later = 0;
    *why = sim_area_of(s, r->stag, r->to, 8, &at);
    if (*why != SG_MEM_OK) {
        return SG_EXEC_MEM;
    }
    if (r->to % 8) {
        return SG_EXEC_UNALIGNED;
    }
    s->executed++;
    *original = sg_get_le64(at);
    sg_put_le64(at, sim_atomic_result(r->kind, &r->args, *original));
    return SG_EXEC_DONE;
}
