/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ordinals (base/host.h): both ends must give a message the same number.
 *
 * The sender's model notes the number of each operation when its first segment is sent, and that of
 * each response when all of it is; the receiver's looks up what arrives in the sender's notes.
 */
#include "sim.h"

/* The operation of this side with that number, or NULL. */
static struct sim_op *find(struct sim_side *s, uint64_t ordinal)
{
    unsigned i;

    for (i = s->taken; ordinal && i-- > 0;) {
        if (s->ops[i].ordinal == ordinal) {
            return &s->ops[i];
        }
    }
    return NULL;
}

void sim_up_started(void *user, const struct sg_msg *msg, uint64_t ordinal)
{
    struct sim_side *s = sim_heard(user, "started", false);
    struct sim_op *op = &s->ops[msg->cookie];

    SIM_CHECK(s->pair->w, op->seq == msg->cookie && op->seq + 1 == s->taken && !op->ordinal,
              "%u.%u: op %u starts again", s->pair->index, s->node, op->seq);
    SIM_CHECK(s->pair->w, ordinal > s->started, "%u.%u: op %u is number %" PRIu64 " after %" PRIu64,
              s->pair->index, s->node, op->seq, ordinal, s->started);
    s->started = op->ordinal = ordinal;
}

void sim_up_answered(void *user, const struct sg_answer *r)
{
    struct sim_side *s = sim_heard(user, "answered", false);
    struct sim_op *op = find(s->peer, r->ordinal);

    if (op) { /* else an RTR message */
        SIM_CHECK(s->pair->w, op->msg.kind == r->kind && !op->response,
                  "%u.%u: the answer to number %" PRIu64, s->pair->index, s->node, r->ordinal);
        op->response = r->response;
    }
}

const struct sim_op *sim_arriving(struct sim_side *s)
{
    struct sim_op *op = find(s->peer, sg_conn_ordinal(s->c));

    SIM_CHECK(s->pair->w, op, "%u.%u: number %" PRIu64 " was never sent", s->pair->index, s->node,
              sg_conn_ordinal(s->c));
    return op;
}

void sim_check_response(struct sim_side *s, const struct sim_op *op)
{
    SIM_CHECK(s->pair->w, op->response == sg_conn_ordinal(s->c),
              "%u.%u: op %u: the response was number %" PRIu64 " and arrives as %" PRIu64,
              s->pair->index, s->node, op->seq, op->response, sg_conn_ordinal(s->c));
}
