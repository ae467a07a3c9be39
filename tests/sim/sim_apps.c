/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The applications of the simulator: memory of a side, and random operations, most of them valid,
 * some of them deliberately wrong.  A wrong one is the last of its side.
 */
#include <glib.h>

#include "sim.h"

void sim_side_init(struct sim_side *s)
{
    struct sim_world *w = s->pair->w;
    unsigned i;

    s->area = g_malloc0(SIM_AREA);
    s->shadow = g_malloc0(SIM_AREA);
    s->remote = g_malloc0(SIM_AREA);
    s->source = g_malloc(SIM_SOURCE);
    s->sink = g_malloc0(SIM_SOURCE);
    s->recv = g_malloc0(SIM_RECV);
    for (i = 0; i < SIM_SOURCE; i++) {
        s->source[i] = (uint8_t)(i * 11 + (i >> 8) * 3 + s->node + s->pair->index * 17);
    }
    for (i = 0; i < SIM_EXTRA; i++) {
        s->extra_valid[i] = true;
    }
    s->pdata_len = (uint16_t)(1 + sim_below(w, SIM_PDATA));
    for (i = 0; i < s->pdata_len; i++) {
        s->pdata[i] = (uint8_t)sim_prng(w);
    }
    s->pdata[0] = (uint8_t)s->pair->index;
}

void sim_side_free(struct sim_side *s)
{
    g_free(s->area);
    g_free(s->shadow);
    g_free(s->remote);
    g_free(s->source);
    g_free(s->sink);
    g_free(s->recv);
}

/* Makes an operation wrong. */
static void spoil(struct sim_world *w, struct sim_op *op)
{
    struct sg_msg *m = &op->msg;

    switch (m->kind) {
    case SG_MSG_SEND:
        op->fault = sim_chance(w, 50) || w->wire != SG_ENGINE_IWARP ? SIM_SEND_TOO_LONG
                                                                    : SIM_BAD_INVALIDATE;
        if (op->fault == SIM_SEND_TOO_LONG) {
            m->send.length = SIM_RECV + 1 + sim_below(w, 3000);
            m->send.invalidate = false;
        } else {
            m->send.invalidate = true;
            m->send.inv_stag = SIM_STAG_NONE;
        }
        break;
    case SG_MSG_WRITE:
        m->write.length = m->write.length ? m->write.length : 1;
        op->fault = sim_chance(w, 50) ? SIM_BAD_WRITE_STAG : SIM_BAD_WRITE_BOUNDS;
        if (op->fault == SIM_BAD_WRITE_STAG) {
            m->write.stag = SIM_STAG_NONE;
        } else {
            m->write.to = SIM_AREA;
        }
        break;
    case SG_MSG_FETCH_ADD:
    case SG_MSG_CMP_SWAP:
        op->fault = sim_chance(w, 33)   ? SIM_MISALIGNED
                    : sim_chance(w, 50) ? SIM_BAD_READ_STAG
                                        : SIM_BAD_READ_BOUNDS;
        if (op->fault == SIM_BAD_READ_STAG) {
            m->atomic.stag = SIM_STAG_NONE;
        } else {
            m->atomic.to = op->fault == SIM_MISALIGNED ? 1 + sim_below(w, 7) : SIM_WORDS * 8;
        }
        break;
    default:
        m->read.length = m->read.length ? m->read.length : 1;
        op->fault = sim_chance(w, 50) ? SIM_BAD_READ_STAG : SIM_BAD_READ_BOUNDS;
        if (op->fault == SIM_BAD_READ_STAG) {
            m->read.stag = SIM_STAG_NONE;
        } else {
            m->read.to = SIM_SOURCE;
        }
        break;
    }
}

static uint32_t random_length(struct sim_world *w, uint32_t most)
{
    switch (sim_below(w, 4)) {
    case 0:
        return sim_below(w, 4);
    case 1:
        return sim_below(w, SG_MIN(most, 200) + 1);
    default:
        return sim_below(w, most + 1);
    }
}

static void make_send(struct sim_world *w, struct sim_side *s, struct sim_op *op)
{
    unsigned i;

    op->msg.send.length = random_length(w, SG_MIN(w->sc.size_max, SIM_RECV));
    op->msg.send.solicited = sim_chance(w, 20);
    if (sim_chance(w, 10) && w->wire == SG_ENGINE_IWARP) {
        for (i = 0; i < SIM_EXTRA && !s->peer->extra_valid[i]; i++) {
        }
        if (i < SIM_EXTRA) {
            s->peer->extra_valid[i] = false; /* our Writes do not use it again */
            op->msg.send.invalidate = true;
            op->msg.send.inv_stag = SIM_STAG_EXTRA + i;
        }
    }
}

static void make_write(struct sim_world *w, struct sim_side *s, struct sim_op *op)
{
    unsigned i = sim_below(w, SIM_EXTRA);

    op->msg.write.length = random_length(w, SG_MIN(w->sc.size_max, SIM_AREA));
    op->at = sim_below(w, SIM_AREA - op->msg.write.length + 1);
    op->msg.write.to = op->at;
    op->msg.write.stag = s->peer->extra_valid[i] ? SIM_STAG_EXTRA + i : SIM_STAG_AREA;
}

static uint64_t random_mask(struct sim_world *w)
{
    return sim_chance(w, 30) ? 0 : sim_chance(w, 50) ? UINT64_MAX : sim_prng(w);
}

/* Small numbers, so that a CmpSwap often matches. */
static void make_atomic(struct sim_world *w, struct sim_side *s, struct sim_op *op)
{
    struct sg_atomic_args *a = &op->msg.atomic.args;

    (void)s;
    op->words = true;
    op->msg.atomic.stag = SIM_STAG_WORDS;
    op->msg.atomic.to = 8 * sim_below(w, SIM_WORDS);
    a->data = sim_chance(w, 70) ? sim_below(w, 4) : sim_prng(w);
    a->mask = random_mask(w);
    if (op->msg.kind == SG_MSG_CMP_SWAP) {
        a->cmp = sim_chance(w, 70) ? sim_below(w, 4) : sim_prng(w);
        a->cmp_mask = random_mask(w);
    }
}

static void make_imm(struct sim_world *w, struct sim_op *op)
{
    op->msg.imm.solicited = sim_chance(w, 20);
    sg_put_be64(op->msg.imm.octets, sim_prng(w));
}

static void make_read(struct sim_world *w, struct sim_side *s, struct sim_op *op)
{
    if (sim_chance(w, 20)) {
        op->words = true;
        op->msg.read.length = 8 * SIM_WORDS;
        op->msg.read.stag = SIM_STAG_WORDS;
        op->msg.read.sink_stag = SIM_STAG_SINK;
        op->msg.read.sink_to = sim_below(w, SIM_SOURCE - op->msg.read.length + 1);
        return;
    }
    op->read_back = sim_chance(w, 25);
    op->msg.read.length =
        random_length(w, SG_MIN(w->sc.size_max, op->read_back ? SIM_AREA : SIM_SOURCE));
    op->at = sim_below(w, (op->read_back ? SIM_AREA : SIM_SOURCE) - op->msg.read.length + 1);
    op->msg.read.to = op->at;
    op->msg.read.stag = op->read_back ? SIM_STAG_AREA : SIM_STAG_SOURCE;
    op->msg.read.sink_stag = SIM_STAG_SINK;
    op->msg.read.sink_to = sim_below(w, SIM_SOURCE - op->msg.read.length + 1);
}

static enum sg_msg_kind random_kind(struct sim_world *w, const struct sim_side *s)
{
    static const enum sg_msg_kind kinds[] = { SG_MSG_SEND,  SG_MSG_WRITE,     SG_MSG_SEND,
                                              SG_MSG_WRITE, SG_MSG_READ_REQ,  SG_MSG_READ_REQ,
                                              SG_MSG_IMM,   SG_MSG_FETCH_ADD, SG_MSG_CMP_SWAP };
    enum { PLAIN = 4, READS = 6 };
    bool reads = w->sc.depth[0] && w->sc.depth[1];
    unsigned n = w->sc.config[s->node].rfc7306 ? SG_ARRAY_SIZE(kinds) : READS, i;

    do {
        i = sim_below(w, n);
    } while (!reads && i >= PLAIN && kinds[i] != SG_MSG_IMM);
    return kinds[i];
}

static void make_wrong(struct sim_world *w, struct sim_side *s, struct sim_op *op)
{
    enum sg_msg_kind kind = op->msg.kind;

    if ((kind == SG_MSG_SEND || kind == SG_MSG_WRITE) && sg_msg_length(&op->msg) &&
        sim_chance(w, 20)) {
        op->fault = SIM_GATHER_FAILS;
    } else if (kind == SG_MSG_IMM) {
        return; /* it has no field that could be wrong */
    } else {
        spoil(w, op);
    }
    s->fatal = op; /* the list ends here */
    s->pair->disturbed = true;
}

void sim_post(struct sim_side *s)
{
    struct sim_world *w = s->pair->w;
    struct sim_op *op = &s->ops[s->posted];
    bool extension;

    if (s->posted >= w->sc.ops || s->fatal) {
        return;
    }
    memset(op, 0, sizeof(*op));
    op->seq = s->posted;
    op->msg.kind = random_kind(w, s);
    extension = op->msg.kind > SG_MSG_READ_REQ;
    if (extension && !w->sc.config[!s->node].rfc7306 && !w->sc.faults) {
        op->msg.kind = SG_MSG_SEND;
        extension = false;
    }
    op->msg.cookie = op->seq;
    switch (op->msg.kind) {
    case SG_MSG_SEND:
        make_send(w, s, op);
        break;
    case SG_MSG_WRITE:
        make_write(w, s, op);
        break;
    case SG_MSG_IMM:
        make_imm(w, op);
        break;
    case SG_MSG_FETCH_ADD:
    case SG_MSG_CMP_SWAP:
        make_atomic(w, s, op);
        break;
    default:
        make_read(w, s, op);
        break;
    }
    if (extension && !w->sc.config[!s->node].rfc7306) {
        op->fault = SIM_UNSPOKEN;
        s->fatal = op;
        s->pair->disturbed = true;
    } else if (w->sc.faults && sim_chance(w, 3)) {
        make_wrong(w, s, op);
    }
    s->posted++;
    if (s->c && s->up) {
        sg_conn_wake(s->c);
    }
}
