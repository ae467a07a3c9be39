/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A writer: its connection to another machine, its completions, and what has reached its target.
 *
 * The target takes segments in order, so the octets that it places are those of the writer's Writes
 * in sequence: each placement is compared with what must come next, and goes to the oracle with the
 * number of its request.  Atomic Writes are in order too, after all Writes before them, but later
 * Writes may overtake them.
 *
 * If the proof is valid on this machine (pw_may_lose), the oracle counts it as an acknowledgement;
 * else as a belief.
 *
 * A connection ends when a machine loses power, by damage, or by a Terminate.  Both ends are
 * created anew when the old queue pairs are gone, so that nothing of the old one arrives late.
 */
#include "power.h"

enum { CQ_ENTRIES = 128, QP_STRIDE = 256, RETRY_NS = 20000 };

enum {
    AREA_RIGHTS = SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_FLUSH_PERSISTENT |
                  SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_VERIFY | SG_ACCESS_REMOTE_ATOMIC,
};

enum pw_proof pw_flow_proof(const struct pw_flow *f)
{
    static const uint8_t proofs[PW_HABITS] = {
        [PW_FLUSH] = PW_MEDIA,      [PW_FLUSH_ONLY] = PW_MEDIA, [PW_VERIFY] = PW_MEDIA,
        [PW_NOTHING] = PW_ANYWHERE, [PW_GLOBAL] = PW_VISIBLE,   [PW_READ] = PW_VISIBLE,
        [PW_SEND] = PW_VISIBLE,     [PW_SEND_CPU] = PW_QUEUED,  [PW_ATOMIC] = PW_POSTED,
    };

    return f->habit == PW_SEND_CPU && f->deep ? PW_MEDIA : proofs[f->habit];
}

struct pw_flow *pw_flow_of(struct pw_host *to, uint32_t qpn)
{
    unsigned i;

    for (i = 0; i < to->w->flows; i++) {
        struct pw_flow *f = &to->w->flow[i];

        if (f->to == to && f->b.made && f->b.qp.qpn == qpn) {
            return f;
        }
    }
    return NULL;
}

/* ---- the target's work ---- */

void pw_flow_settled(struct pw_flow *f)
{
    f->epoch++;
}

static bool same_octets(const struct pw_flow *f, const struct pw_wait *wait, const uint8_t *buf,
                        size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (buf[i] != pw_octet(f, wait->seq, (uint32_t)(wait->done + i))) {
            return false;
        }
    }
    return true;
}

static struct pw_wait *first_of(struct pw_waits *q)
{
    return q->head == q->tail ? NULL : &q->wait[q->head % SG_ARRAY_SIZE(q->wait)];
}

uint64_t pw_flow_missing(const struct pw_flow *f)
{
    uint64_t seq = UINT64_MAX;
    unsigned i;

    for (i = 0; i < 2; i++) {
        const struct pw_wait *wait = first_of((struct pw_waits *)&f->waits[i]);

        seq = wait ? SG_MIN(seq, wait->seq) : seq;
    }
    return seq;
}

void pw_flow_placed(struct pw_flow *f, uint64_t off, const uint8_t *buf, size_t len, bool atom,
                    bool traced)
{
    struct pw_wait *wait = first_of(&f->waits[atom]);

    if (!wait || off != f->area + wait->off + wait->done || len > wait->len - wait->done ||
        (atom ? pw_flow_missing(f) != wait->seq : !same_octets(f, wait, buf, len))) {
        pw_fail(f->w, "writer %u: %zu octets placed at 0x%" PRIx64 " that do not come next",
                f->index, len, off);
        return;
    }
    pw_model_store(&f->to->model, off, buf, len, wait->seq, f->epoch);
    pw_known_placed(f, off, len, wait->seq, traced);
    wait->done += (uint32_t)len;
    f->waits[atom].head += wait->done == wait->len;
}

/* ---- the writer's completions ---- */

static bool may_lose(const struct pw_flow *f)
{
    return pw_may_lose(&f->to->config, pw_flow_proof(f));
}

static void acknowledged(struct pw_flow *f, uint32_t off, uint32_t len, uint64_t seq, bool hard)
{
    if (!hard) {
        f->believed_seq = seq;
        pw_model_believe(&f->to->model, f->area + off, len, seq);
        return;
    }
    PW_CHECK(f->w, pw_flow_missing(f) >= seq,
             "writer %u: request %" PRIu64 " is acknowledged, %" PRIu64 " has not arrived",
             f->index, seq, pw_flow_missing(f));
    pw_model_ack(&f->to->model, f->area + off, len, seq);
    f->w->sums->acks++;
}

/* The writer accepts this as the proof. */
static void committed(struct pw_flow *f, uint64_t tx_number, uint64_t seq)
{
    const struct pw_tx *tx = &f->tx[tx_number % PW_TXS];

    sg_assert(tx->number == tx_number);
    acknowledged(f, tx->off, tx->len, seq, !may_lose(f));
    f->commits++;
    f->w->sums->commits++;
}

static void completed(struct pw_flow *f, const struct pw_op *op)
{
    bool pointer = op->opcode == SG_WR_FLUSH && op->off == 0 && op->len == SG_PERSIST_ATOM;

    pw_known_flushed(f, op);
    if (pointer || (op->opcode == SG_WR_FLUSH && op->len == PW_AREA)) {
        acknowledged(f, op->off, op->len, op->seq, true);
    }
    if (op->opcode == SG_WR_VERIFY && !op->last) {
        acknowledged(f, op->off, op->len, op->seq, true);
    }
    if (f->habit == PW_FLUSH ? op->opcode == SG_WR_FLUSH && !pointer : op->last) {
        committed(f, op->tx, op->seq + (f->habit == PW_NOTHING));
    }
    if (op->last) {
        PW_CHECK(f->w, op->tx == f->tx_done + 1, "writer %u: transaction out of turn", f->index);
        f->tx_done = op->tx;
    }
}

/* The target's program has answered. */
static void answered(struct pw_flow *f, const struct sg_cqe *c)
{
    uint32_t slot = (uint32_t)sg_get_le64(&c->wr_id);
    uint64_t tx = sg_get_le64(pw_ptr(f->from, f->a.buf + PW_RECV_AT + slot * PW_MESSAGE));

    PW_CHECK(f->w, tx == f->tx_done + 1 && tx < f->tx_next, "writer %u: answer out of turn",
             f->index);
    f->tx_done = tx;
    committed(f, tx, f->tx[tx % PW_TXS].data_seq);
    pw_post_recv(&f->a, slot);
    md_rq_doorbell(&f->a.qp);
}

/* Fails on Terminates without a reason. */
static void check_error(struct pw_flow *f, const struct pw_op *op, const struct sg_cqe *c)
{
    bool refused = c->status == SG_WC_REM_OP_ERR || c->status == SG_WC_REM_ACCESS_ERR ||
                   c->status == SG_WC_REM_INV_REQ_ERR;
    bool differs = op->opcode == SG_WR_VERIFY && f->habit == PW_VERIFY;
    bool failed = op->opcode == SG_WR_FLUSH && f->w->faults;

    pw_note(f->w, "writer %u: request %" PRIu64 " ends with status %u", f->index, op->seq,
            c->status);
    PW_CHECK(f->w, !refused || (c->status == SG_WC_REM_OP_ERR && (differs || failed)),
             "writer %u: opcode 0x%02x, request %" PRIu64 ", is refused with status %u", f->index,
             op->opcode, op->seq, c->status);
}

bool pw_flow_poll(struct pw_flow *f)
{
    struct sg_cqe c;
    bool good = true;

    while (f->a.made && good && md_poll(&f->a.cq, &c)) {
        const struct pw_op *op = &f->op[f->polled % PW_OPS];

        if (c.flags_phase & SG_CQE_RECV) {
            good = c.status == SG_WC_SUCCESS;
            if (good) {
                answered(f, &c);
            }
            continue;
        }
        PW_CHECK(f->w, f->polled < f->posted && sg_get_le64(&c.wr_id) == f->polled,
                 "writer %u: completion out of turn", f->index);
        f->polled++;
        good = c.status == SG_WC_SUCCESS;
        if (good) {
            completed(f, op);
        } else {
            check_error(f, op, &c);
        }
    }
    return good;
}

/* ---- the target's program ---- */

static void answer(struct pw_flow *f, const struct sg_cqe *c)
{
    uint32_t slot = (uint32_t)sg_get_le64(&c->wr_id);
    uint64_t msg = f->b.buf + PW_RECV_AT + slot * PW_MESSAGE;
    uint64_t out = f->b.buf + PW_SEND_AT + slot * PW_MESSAGE;
    const uint8_t *p = pw_ptr(f->to, msg);

    if (f->habit == PW_SEND_CPU) {
        pw_cpu_flush(f->to, f->area + sg_get_le32(p + 8), sg_get_le32(p + 12), f->deep);
    }
    memcpy(pw_ptr(f->to, out), p, PW_MESSAGE);
    pw_post_recv(&f->b, slot);
    md_rq_doorbell(&f->b.qp);
    md_post_send(&f->b.qp, &(struct md_wr){
                               .opcode = SG_WR_SEND,
                               .wr_id = slot,
                               .addr = out,
                               .len = PW_MESSAGE,
                               .lkey = f->b.stag,
                           });
}

/* False: the connection is broken. */
static bool serve(struct pw_flow *f)
{
    struct sg_cqe c;

    while (f->b.made && md_poll(&f->b.cq, &c)) {
        if (c.status != SG_WC_SUCCESS) {
            return false;
        }
        if (c.flags_phase & SG_CQE_RECV) {
            answer(f, &c);
        }
    }
    return true;
}

/* ---- the connection ---- */

static uint32_t must(struct md *md, const void *cmd, size_t len)
{
    struct sg_admin_rsp rsp;

    enum sg_status status = md_cmd(md, cmd, len, &rsp);

    if (status != SG_OK) {
        fprintf(stderr, "command 0x%02x: status %d\n", *(const uint8_t *)cmd, status);
    }
    sg_assert(status == SG_OK);
    return sg_get_le32(&rsp.id);
}

static void register_area(struct pw_flow *f)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(f->to->pd, f->to->pm + f->area, PW_AREA, AREA_RIGHTS);

    c.hash_alg = f->hash_alg;
    if (f->hash_alg == SG_HASH_HMAC_SHA256) {
        memcpy(c.hash_key, (uint8_t[]){ 11, 22, 33 }, 3);
        c.hash_key_len = 20;
    }
    c.mem_type = SG_MEM_TYPE_PERSISTENT;
    c.mem_mode = (uint8_t)pw_below(f->w, 3);
    f->rkey = must(&f->to->md, &c, sizeof(c));
}

static void listen_for(struct pw_flow *f)
{
    struct sg_cmd_listen c = { .hdr.opcode = SG_ADMIN_LISTEN };

    c.local = md_addr(&f->to->at, PW_PORT + f->index);
    sg_put_le32(&c.backlog, 4);
    f->listener = must(&f->to->md, &c, sizeof(c));
}

/* Gives an end its objects while its machine has power. */
static void furnish(struct pw_flow *f, struct pw_host *x, struct pw_end *e)
{
    if (e->brk) {
        return;
    }
    x->h.brk = PW_BOOT + f->index * PW_ARENA;
    md_create_cq(&x->md, &e->cq, CQ_ENTRIES);
    e->buf = test_host_alloc(&x->h, PW_BUF, SG_PAGE_SIZE);
    e->stag = md_reg_mr(&x->md, x->pd, e->buf, PW_BUF, SG_ACCESS_LOCAL_WRITE);
    e->brk = x->h.brk;
    if (e == &f->b) {
        register_area(f);
        listen_for(f);
    }
}

static void make_qp(struct pw_flow *f, struct pw_host *x, struct pw_end *e)
{
    struct md_qp_params params = {
        .pd = x->pd,
        .scq = &e->cq,
        .rcq = &e->cq,
        .entries = PW_OPS,
        .stride = QP_STRIDE,
        .access = AREA_RIGHTS,
    };
    unsigned i;

    furnish(f, x, e);
    x->h.brk = e->brk;
    md_create_qp(&x->md, &e->qp, &params);
    sg_assert(x->h.brk <= PW_BOOT + (f->index + 1) * PW_ARENA);
    e->made = true;
    e->conn = 0;
    for (i = 0; i < PW_RECVS; i++) {
        pw_post_recv(e, i);
    }
    md_rq_doorbell(&e->qp);
}

static void forget_waits(struct pw_flow *f)
{
    f->waits[0].head = f->waits[0].tail = f->waits[1].head = f->waits[1].tail = 0;
}

static void connect_flow(struct pw_flow *f)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };

    make_qp(f, f->to, &f->b);
    make_qp(f, f->from, &f->a);
    sg_put_le32(&c.qpn, f->a.qp.qpn);
    c.local = md_addr(&f->from->at, 0);
    c.remote = md_addr(&f->to->at, PW_PORT + f->index);
    sg_put_le16(&c.ird, 16);
    sg_put_le16(&c.ord, 1 + pw_below(f->w, 16));
    f->posted = f->polled = 0;
    forget_waits(f);
    f->tx_done = f->tx_next - 1;
    f->ring = f->ring ? f->ring : PW_TAIL;
    pw_host_listen(f->from); /* drop old entries of the event queue */
    f->state = PW_CONNECTING;
    f->a.conn = must(&f->from->md, &c, sizeof(c));
}

static void destroy_end(struct pw_host *x, struct pw_end *e, bool power)
{
    struct sg_cqe c;

    if (power && e->made) {
        sg_assert(md_cmd_id(&x->md, SG_ADMIN_DESTROY_QP, e->qp.qpn) == SG_OK);
        while (md_poll(&e->cq, &c)) {
        }
    }
    e->made = false;
    e->conn = 0;
    if (!power) {
        e->brk = 0;
    }
}

void pw_flow_down(struct pw_flow *f, const struct pw_host *without_power)
{
    if (f->from != without_power && f->state == PW_UP) {
        pw_flow_poll(f);
    }
    if (f->state != PW_DOWN) {
        f->w->sums->broken += !without_power;
        pw_note(f->w, "writer %u: connection lost", f->index);
    }
    f->state = PW_DOWN;
    f->connection++;
    destroy_end(f->from, &f->a, f->from != without_power);
    destroy_end(f->to, &f->b, f->to != without_power);
    f->epoch++;
    forget_waits(f);
    f->retry_ns = f->w->now_ns + pw_below(f->w, RETRY_NS);
}

static void requested(struct pw_host *x, uint32_t listener, uint32_t conn)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_REJECT };
    struct pw_flow *f = NULL;
    unsigned i;

    sg_put_le32(&c.conn, conn);
    for (i = 0; i < x->w->flows; i++) {
        if (x->w->flow[i].to == x && x->w->flow[i].b.brk && x->w->flow[i].listener == listener) {
            f = &x->w->flow[i];
        }
    }
    if (!f || f->state != PW_CONNECTING || f->b.conn) {
        md_cmd(&x->md, &c, sizeof(c), NULL);
        return;
    }
    c.hdr.opcode = SG_ADMIN_ACCEPT;
    sg_put_le32(&c.qpn, f->b.qp.qpn);
    sg_put_le16(&c.ird, 16);
    sg_put_le16(&c.ord, 16);
    f->b.conn = conn;
    if (md_cmd(&x->md, &c, sizeof(c), NULL) != SG_OK) {
        pw_flow_down(f, NULL);
    }
}

static void conn_event(struct pw_host *x, const struct sg_eqe *e)
{
    uint32_t conn = sg_get_le32(&e->conn);
    unsigned i;

    for (i = 0; i < x->w->flows; i++) {
        struct pw_flow *f = &x->w->flow[i];
        bool a = f->from == x && f->a.conn == conn, b = f->to == x && f->b.conn == conn;

        if (!conn || f->state == PW_DOWN || !(a || b)) {
            continue;
        }
        if (e->event == SG_EV_CM_REPLY && e->cm_status == SG_CM_OK) {
            f->state = PW_UP;
            f->w->sums->connections++;
        } else if (e->event != SG_EV_CM_ESTABLISHED || e->cm_status != SG_CM_OK) {
            pw_flow_down(f, NULL);
        }
        return;
    }
}

void pw_host_listen(struct pw_host *x)
{
    struct sg_eqe e;

    while (x->enabled && md_next_async(&x->md, &e)) {
        switch (e.event) {
        case SG_EV_CM_REQUEST:
            requested(x, sg_get_le32(&e.aux), sg_get_le32(&e.conn));
            break;
        case SG_EV_CM_REPLY:
        case SG_EV_CM_ESTABLISHED:
        case SG_EV_CM_DISCONNECT:
        case SG_EV_CM_CLOSED:
            conn_event(x, &e);
            break;
        default:
            break; /* completions report it */
        }
    }
}

void pw_flow_step(struct pw_flow *f)
{
    if (f->state == PW_DOWN) {
        if (f->w->now_ns >= f->retry_ns && f->from->enabled && f->to->enabled) {
            connect_flow(f);
        }
        return;
    }
    if (pw_chance(f->w, 70) && (!pw_flow_poll(f) || !serve(f))) {
        pw_flow_down(f, NULL);
        return;
    }
    if (pw_chance(f->w, 50)) {
        pw_flow_post(f);
    }
}

/* ---- judgement ---- */

/* A reader that finds the pointer relies on the record, whose Flush or Verify came before. */
static void follow_pointer(struct pw_flow *f, const uint8_t *now)
{
    uint64_t number = sg_get_le64(now);
    const struct pw_tx *tx = &f->tx[number % PW_TXS];

    if ((f->habit == PW_FLUSH || f->habit == PW_VERIFY) && number && tx->number == number) {
        pw_model_ack(&f->to->model, f->area + tx->off, tx->len, tx->data_seq);
    }
}

void pw_flow_judge(struct pw_flow *f, const uint8_t *now, bool for_good)
{
    const struct sg_persist_config *config = &f->to->config;
    struct pw_sums *sums = f->w->sums;
    struct pw_verdict v = { .wrong = NULL };

    follow_pointer(f, now);
    pw_model_judge(&f->to->model, now, f->area, PW_AREA, !pw_may_lose(config, PW_VISIBLE), &v);
    PW_CHECK(f->w, !v.wrong, "writer %u, line 0x%" PRIx64 " of machine %u%s: %s", f->index, v.off,
             f->to->index, for_good ? "" : " (a cut here)", v.wrong);
    if (!for_good) {
        return;
    }
    v.believed_lost |= pw_flow_missing(f) < f->believed_seq;
    sums->dropped += v.dropped;
    if (f->commits && may_lose(f)) {
        sums->lost[f->habit][config->domain][config->ddio] += v.believed_lost;
    } else {
        sums->safe[f->habit][config->domain][config->ddio] += f->commits != 0;
    }
    pw_model_rebase(&f->to->model, now, f->area, PW_AREA);
    f->commits = f->believed_seq = 0;
    f->tx_first = f->tx_next;
}
