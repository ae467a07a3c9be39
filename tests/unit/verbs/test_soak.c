/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random work on two connected adapters over a stream that delays, cuts, corrupts and breaks.
 *
 * Whatever happens, each entry that was posted completes exactly once and in order; a queue's
 * statuses are successes, then at most one error, then flushes; what completed with success is
 * correct to the octet: received Sends, Immediate Data, Reads of constant memory, and the results
 * of Atomics: each side increments a word of the other.  At the end nothing is left.
 */
#include "pair.h"
#include "tap.h"

enum {
    SEEDS = 400,
    QUEUE = 64,
    SLOT = 2048,
    MAX_LEN = 20000,
    /* layout of the buffers: receives, constant source, sink of Reads, target of Writes */
    RECV_AT = 0,
    SOURCE_AT = QUEUE * SLOT,
    SINK_AT = SOURCE_AT + 2 * MAX_LEN,
    TARGET_AT = SINK_AT + MAX_LEN,
    WORD_AT = TARGET_AT + MAX_LEN + 8 - MAX_LEN % 8,
    FOUND_AT = WORD_AT + 8, /* original values that Atomics returned, by entry */
};

struct soak_op {
    uint8_t opcode;
    uint32_t len;
    uint32_t at; /* Read: offset in the source */
    uint64_t add;
};

struct soak_end {
    struct soak_op ops[4096];
    uint32_t posted, completed; /* send queue */
    uint32_t recv_posted, recv_done;
    uint32_t sends, arrived;       /* messages sent to the peer; received from it */
    uint32_t stag;                 /* of the word */
    uint64_t counted;              /* the peer's word after all completed Atomics */
    bool send_broken, recv_broken; /* an entry failed: only flushes may follow */
};

static struct pair p;
static struct soak_end ends[2];
static uint64_t rng;
static unsigned total_ok, total_flushed, total_recv;

static uint32_t rnd(uint32_t below)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((rng >> 33) % below);
}

static uint8_t source_octet(int side, uint32_t i)
{
    return (uint8_t)(i * 5 + (i >> 8) * 3 + side * 91);
}

static uint8_t send_octet(int side, uint32_t seq, uint32_t i)
{
    return (uint8_t)(seq * 31 + i + side * 101);
}

static void post_recv(int side)
{
    struct pair_side *s = &p.side[side];
    struct soak_end *e = &ends[side];

    if (e->recv_posted - e->recv_done < QUEUE) {
        md_post_recv(&s->qp, e->recv_posted, s->buf + RECV_AT + e->recv_posted % QUEUE * SLOT, SLOT,
                     s->stag);
        e->recv_posted++;
    }
}

/* Increments the peer's word. */
static void post_atomic(int side, struct soak_op *op)
{
    struct pair_side *s = &p.side[side];
    struct sg_wqe_hdr *h = md_sq_entry(&s->qp);
    struct sg_wqe_atomic *a = (struct sg_wqe_atomic *)(h + 1);
    struct sg_sge *sge = (struct sg_sge *)(a + 1);

    op->opcode = h->opcode = SG_WR_FETCH_ADD;
    op->len = 8;
    op->add = rnd(1000);
    sg_put_le64(&h->wr_id, ends[side].posted);
    h->flags = SG_WQE_SIGNALED | (rnd(4) ? 0 : SG_WQE_FENCE);
    h->num_sge = 1;
    sg_put_le64(&h->remote_addr, p.side[!side].buf + WORD_AT);
    sg_put_le32(&h->rkey, ends[!side].stag);
    sg_put_le64(&a->data, op->add);
    sg_put_le64(&sge->addr, s->buf + FOUND_AT + 8 * (ends[side].posted % QUEUE));
    sg_put_le32(&sge->length, 8);
    sg_put_le32(&sge->lkey, s->stag);
    md_sq_doorbell(&s->qp);
}

/* Sends the message's number as Immediate Data, alone or behind a Write. */
static void post_imm(int side, struct soak_op *op)
{
    struct pair_side *s = &p.side[side], *peer = &p.side[!side];
    struct sg_wqe_hdr *h = md_sq_entry(&s->qp);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);

    op->opcode = h->opcode = rnd(2) ? SG_WR_SEND_IMM : SG_WR_WRITE_IMM;
    op->len = 0;
    sg_put_le64(&h->wr_id, ends[side].posted);
    h->flags = SG_WQE_SIGNALED;
    sg_put_le32(&h->imm, ends[side].sends++);
    if (op->opcode == SG_WR_WRITE_IMM) {
        op->len = rnd(MAX_LEN);
        h->num_sge = 1;
        sg_put_le64(&h->remote_addr, peer->buf + TARGET_AT);
        sg_put_le32(&h->rkey, peer->stag);
        sg_put_le64(&sge->addr, s->buf + SOURCE_AT);
        sg_put_le32(&sge->length, op->len);
        sg_put_le32(&sge->lkey, s->stag);
        sg_put_le32((uint8_t *)&h->imm + 4, op->len + 1);
    }
    md_sq_doorbell(&s->qp);
}

static void post_send(int side)
{
    struct pair_side *s = &p.side[side], *peer = &p.side[!side];
    struct soak_end *e = &ends[side];
    struct soak_op *op = &e->ops[e->posted % 4096];
    struct md_wr w = { .wr_id = e->posted, .lkey = s->stag, .rkey = peer->stag };
    struct sg_wqe_hdr *h;
    uint32_t i;

    if (e->posted - e->completed >= QUEUE) {
        return;
    }
    switch (rnd(pair_wire()->rfc7306 ? 5 : 3)) {
    case 3:
        post_atomic(side, op);
        break;
    case 4:
        post_imm(side, op);
        break;
    case 0: /* inline, so that its octets are the entry's own */
        op->opcode = SG_WR_SEND;
        op->len = rnd(200);
        h = md_sq_entry(&s->qp);
        sg_put_le64(&h->wr_id, e->posted);
        h->flags = SG_WQE_SIGNALED | SG_WQE_INLINE;
        sg_put_le16(&h->inline_len, (uint16_t)op->len);
        for (i = 0; i < op->len; i++) {
            ((uint8_t *)(h + 1))[i] = send_octet(side, e->sends, i);
        }
        e->sends++;
        md_sq_doorbell(&s->qp);
        break;
    case 1:
        op->opcode = w.opcode = SG_WR_WRITE;
        op->len = w.len = rnd(MAX_LEN);
        w.addr = s->buf + SOURCE_AT;
        w.raddr = peer->buf + TARGET_AT;
        md_post_send(&s->qp, &w);
        break;
    default:
        op->opcode = w.opcode = SG_WR_READ;
        op->len = w.len = rnd(MAX_LEN);
        op->at = rnd(MAX_LEN);
        w.addr = s->buf + SINK_AT;
        w.raddr = peer->buf + SOURCE_AT + op->at;
        w.flags = SG_WQE_FENCE; /* one sink, so one Read at a time */
        md_post_send(&s->qp, &w);
        break;
    }
    e->posted++;
}

static void took_recv(int side, const struct sg_cqe *c)
{
    struct soak_end *e = &ends[side];
    const uint8_t *buf = pair_buf(&p, side) + RECV_AT + e->recv_done % QUEUE * SLOT;
    uint32_t i, len = sg_get_le32(&c->byte_len);

    T_EQ_U64(sg_get_le64(&c->wr_id), e->recv_done);
    T_EQ_U64(sg_get_le32(&c->wr_index), e->recv_done);
    if (c->status == SG_WC_SUCCESS) {
        T_FALSE(e->recv_broken);
        T_EQ_U64(c->opcode == SG_WC_RECV_IMM, !!(c->flags_phase & SG_CQE_WITH_IMM));
        if (c->opcode == SG_WC_RECV_IMM) {
            T_EQ_U64(sg_get_le32(&c->imm), e->arrived);
            if (sg_get_le32((const uint8_t *)&c->imm + 4)) { /* of a WRITE_IMM */
                T_EQ_U64(len, sg_get_le32((const uint8_t *)&c->imm + 4) - 1);
            }
        }
        for (i = 0; i < len && c->opcode == SG_WC_RECV; i++) {
            T_EQ_U64(buf[i], send_octet(!side, e->arrived, i));
        }
        e->arrived++;
        total_recv++;
    } else {
        T_TRUE(!e->recv_broken || c->status == SG_WC_FLUSH_ERR);
        e->recv_broken = true;
        total_flushed++;
    }
    e->recv_done++;
}

static void took_send(int side, const struct sg_cqe *c)
{
    struct soak_end *e = &ends[side];
    const struct soak_op *op = &e->ops[e->completed % 4096];
    uint32_t i;

    T_EQ_U64(sg_get_le64(&c->wr_id), e->completed);
    T_EQ_U64(sg_get_le32(&c->wr_index), e->completed);
    if (c->status == SG_WC_SUCCESS) {
        T_FALSE(e->send_broken);
        T_EQ_U64(c->opcode, op->opcode);
        if (op->opcode == SG_WR_FETCH_ADD) {
            const uint8_t *found = pair_buf(&p, side) + FOUND_AT + 8 * (e->completed % QUEUE);

            T_EQ_U64(sg_get_le64(found), e->counted);
            e->counted += op->add;
        }
        if (op->opcode == SG_WR_READ) {
            T_EQ_U64(sg_get_le32(&c->byte_len), op->len);
        }
        /* A younger Read may have overwritten the sink, so only the last entry is checked. */
        for (i = 0; op->opcode == SG_WR_READ && e->completed + 1 == e->posted && i < op->len; i++) {
            T_EQ_U64(pair_buf(&p, side)[SINK_AT + i], source_octet(!side, op->at + i));
        }
        total_ok++;
    } else {
        T_TRUE(!e->send_broken || c->status == SG_WC_FLUSH_ERR);
        e->send_broken = true;
        total_flushed++;
    }
    e->completed++;
}

static void poll(int side)
{
    struct sg_cqe c;
    struct sg_eqe ev;

    while (md_poll(&p.side[side].cq, &c)) {
        T_EQ_U64(sg_get_le32(&c.qpn), p.side[side].qp.qpn);
        if (c.flags_phase & SG_CQE_RECV) {
            took_recv(side, &c);
        } else {
            took_send(side, &c);
        }
    }
    while (md_next_async(&p.side[side].md, &ev)) {
        T_TRUE(ev.event != SG_EV_CQ_ERROR && ev.event != SG_EV_DEVICE_FATAL);
    }
}

/* Setup over a bad stream may fail; then there is nothing to do. */
static bool try_connect(void)
{
    enum sg_status status;
    struct sg_eqe e;
    int n, up = 0;

    pair_connect_cmd(&p, &p.side[0].qp, 1 + rnd(8), 1 + rnd(8), "soak", &status);
    T_EQ_U64(status, SG_OK);
    for (n = 0; n < 40 && up < 2; n++) {
        pair_pass(&p, 1000000000);
        while (md_next_async(&p.side[1].md, &e)) {
            if (e.event == SG_EV_CM_REQUEST) {
                pair_answer(&p, SG_ADMIN_ACCEPT, p.side[1].qp.qpn, sg_get_le32(&e.conn), 1 + rnd(8),
                            1 + rnd(8), NULL);
            }
            up += e.event == SG_EV_CM_ESTABLISHED && e.cm_status == SG_CM_OK;
        }
        while (md_next_async(&p.side[0].md, &e)) {
            up += e.event == SG_EV_CM_REPLY && e.cm_status == SG_CM_OK;
        }
    }
    return up == 2;
}

static void work(void)
{
    uint32_t steps = 100 + rnd(200), i;

    for (i = 0; i < steps; i++) {
        int side = (int)rnd(2);

        switch (rnd(10)) {
        case 0:
            pair_pass(&p, rnd(100000));
            break;
        case 1:
            poll(side);
            break;
        case 2:
        case 3:
        case 4:
        case 5:
            post_recv(side);
            break;
        case 6:
            if (rnd(60) == 0) {
                md_modify_qp(&p.side[side].qp, rnd(2) ? SG_QP_CLOSING : SG_QP_ERROR);
            }
            break;
        default:
            /* A receiver must be ready for each Send, or the stream ends. */
            if (rnd(50) == 0 || ends[!side].recv_posted > ends[side].sends) {
                post_send(side);
            }
        }
    }
}

static void soak(uint32_t seed)
{
    static const struct sg_mem_options nets[] = {
        { .emss = 1448 },
        { .queued = true, .delay_max_ns = 200000, .piece_max = 700, .emss = 1448, .room = 8192 },
        { .queued = true,
          .delay_max_ns = 50000,
          .emss = 8948,
          .corrupt_ppm = 3000,
          .corrupt_from = 200 },
        { .queued = true, .delay_max_ns = 50000, .emss = 1448, .break_ppm = 3000 },
    };
    struct sg_mem_options net = nets[seed % 4];
    struct sg_adapter_census census;
    uint32_t i;
    int side;

    rng = seed * 0x9e3779b97f4a7c15ull + 1;
    for (i = 0; i < 4; i++) {
        rnd(2);
    }
    net.seed = seed;
    memset(ends, 0, sizeof(ends));
    pair_start(&p, NULL, &net);
    pair_open(
        &p, &(struct md_qp_params){
                .entries = QUEUE,
                .flags = rnd(2),
                .access = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC,
            });
    for (side = 0; side < 2; side++) {
        ends[side].stag = md_reg_mr(&p.side[side].md, p.side[side].pd, p.side[side].buf + WORD_AT,
                                    8, SG_ACCESS_REMOTE_ATOMIC);
        for (i = 0; i < 2 * MAX_LEN; i++) {
            pair_buf(&p, side)[SOURCE_AT + i] = source_octet(side, i);
        }
    }
    if (try_connect()) {
        work();
    }
    pair_pass(&p, 1000000000);
    for (side = 0; side < 2; side++) {
        md_modify_qp(&p.side[side].qp, rnd(2) ? SG_QP_CLOSING : SG_QP_ERROR);
    }
    pair_pass(&p, 1000000000);
    for (side = 0; side < 2; side++) {
        md_modify_qp(&p.side[side].qp, SG_QP_ERROR);
    }
    pair_pass(&p, 20000000000ull);
    for (side = 0; side < 2; side++) {
        poll(side);
        T_EQ_U64(ends[side].completed, ends[side].posted);
        T_EQ_U64(ends[side].recv_done, ends[side].recv_posted);
        T_EQ_U64(md_cmd_id(&p.side[side].md, SG_ADMIN_DESTROY_QP, p.side[side].qp.qpn), SG_OK);
    }
    pair_pass(&p, 20000000000ull);
    for (side = 0; side < 2; side++) {
        sg_adapter_census(p.side[side].md.a, &census);
        T_EQ_U64(census.conns + census.qps, 0);
        T_EQ_INT(p.side[side].h.mapped, 0);
    }
    pair_stop(&p);
}

static void soak_all(void)
{
    const char *only = getenv("SG_SEED");
    uint32_t seed, seeds = t_seeds(SEEDS, SEEDS);

    if (only) {
        soak((uint32_t)atoi(only));
        return;
    }
    for (seed = 1; seed <= seeds; seed++) {
        T_CONTEXT("seed %u: set SG_SEED to replay", seed);
        soak(seed);
    }
    T_NOTE("%u sends ok, %u receives ok, %u flushed", total_ok, total_recv, total_flushed);
    T_TRUE(total_ok > seeds && total_recv > seeds && total_flushed > seeds);
}

static const struct t_case cases[] = {
    { "RDM-58 every entry completes once, in order, whatever the stream does", soak_all },
};

T_MAIN(cases)
