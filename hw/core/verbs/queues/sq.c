/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send queues: from entries of guest memory to messages of the engine and completions.
 *
 * The engine asks for the next message (sg_sq_next) when it may start one.  The entry is copied
 * once, the copy is validated, its opcode looked up in the table below; local operations are done
 * on the spot, the others become a message.  While it is sent the engine asks for its payload
 * (sg_sq_gather).  WRITE_IMM is two messages: its Immediate Data is the next one after its Write.
 * There is one current message at most, and a record for each entry between 'cons' and 'next'.
 * How entries complete: sq_complete.c.
 *
 * Protection is checked when an entry is started and again in 'gather' if the protection table
 * changed since, so revoking memory takes effect in the middle of a message.
 *
 * A faulty entry completes in error in its turn, the queue pair goes to TERMINATE and the stream
 * ends with a Terminate that names no message of the peer (RFC 5040 section 7.1, rule 1).
 */
#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/memory/tpt.h"
#include "verbs/events/eq.h"
#include "verbs/queues/sq_impl.h"
#include "verbs/state/adapter_state.h"

enum { LOCAL_OPS_PER_CALL = 64, RECS_MIN = 16 };

/* Properties of an opcode. */
enum op_flags {
    OP_LOCAL = 1,   /* done at once, no message */
    OP_READ = 2,    /* shares ORD, completes with the peer's answer; only READ has many elements */
    OP_INLINE = 4,  /* SG_WQE_INLINE is allowed */
    OP_MPE = 8,     /* struct sg_wqe_place precedes the elements */
    OP_ATOMIC = 16, /* struct sg_wqe_atomic precedes the element */
    OP_REG = 32,    /* struct sg_wqe_reg follows the header */
    OP_BIND = 64,   /* struct sg_wqe_bind follows the header */
};

/* Requirements for the use of an opcode. */
enum op_needs {
    NEEDS_KERNEL = 1, /* a kernel queue pair */
    NEEDS_MPE = 2,    /* the memory placement extensions */
    NEEDS_7306 = 4,   /* RFC 7306 */
    NEEDS_INV = 8,    /* a wire that has Send with Invalidate */
};

struct op_row {
    const char *name;
    sg_sq_start *start; /* NULL: reserved */
    uint8_t flags;
    uint8_t wc; /* enum sg_wc_opcode */
    uint8_t needs;
    uint32_t features; /* required SG_FEATURE_* */
};

static sg_sq_start start_send, start_write, start_read;

static const struct op_row rows[] = {
    [SG_WR_SEND] = { "SEND", start_send, OP_INLINE, SG_WC_SEND },
    [SG_WR_SEND_INV] = { "SEND_INV", start_send, OP_INLINE, SG_WC_SEND, NEEDS_INV,
                         SG_FEATURE_SEND_INV },
    [SG_WR_WRITE] = { "WRITE", start_write, OP_INLINE, SG_WC_WRITE },
    [SG_WR_READ] = { "READ", start_read, OP_READ, SG_WC_READ },
    [SG_WR_READ_INV] = { "READ_INV", start_read, OP_READ, SG_WC_READ,
                         .features = SG_FEATURE_READ_INV },
    [SG_WR_LOCAL_INV] = { "LOCAL_INV", sg_mr_start_local_inv, OP_LOCAL, SG_WC_LOCAL_INV },
    [SG_WR_REG_MR] = { "REG_MR", sg_mr_start_reg, OP_LOCAL | OP_REG, SG_WC_REG_MR, NEEDS_KERNEL,
                       SG_FEATURE_FAST_REG },
    [SG_WR_BIND_MW] = { "BIND_MW", sg_mw_start_bind, OP_LOCAL | OP_BIND, SG_WC_BIND_MW,
                        .features = SG_FEATURE_MW },
    [SG_WR_SEND_IMM] = { "SEND_IMM", sg_atomic_start_imm, 0, SG_WC_SEND_IMM, NEEDS_7306 },
    [SG_WR_WRITE_IMM] = { "WRITE_IMM", start_write, OP_INLINE, SG_WC_WRITE_IMM, NEEDS_7306 },
    [SG_WR_FETCH_ADD] = { "FETCH_ADD", sg_atomic_start, OP_READ | OP_ATOMIC, SG_WC_FETCH_ADD,
                          NEEDS_7306 },
    [SG_WR_CMP_SWAP] = { "CMP_SWAP", sg_atomic_start, OP_READ | OP_ATOMIC, SG_WC_CMP_SWAP,
                         NEEDS_7306 },
    [SG_WR_FLUSH] = { "FLUSH", sg_mpe_start_flush, OP_READ | OP_MPE, SG_WC_FLUSH, NEEDS_MPE },
    [SG_WR_VERIFY] = { "VERIFY", sg_mpe_start_verify, OP_READ | OP_MPE, SG_WC_VERIFY, NEEDS_MPE },
    [SG_WR_ATOMIC_WRITE] = { "ATOMIC_WRITE", sg_mpe_start_atomic_write, OP_READ | OP_INLINE,
                             SG_WC_ATOMIC_WRITE, NEEDS_MPE },
};

static const struct op_row *op_row(uint8_t opcode)
{
    return opcode < SG_ARRAY_SIZE(rows) && rows[opcode].start ? &rows[opcode] : NULL;
}

uint8_t sg_sq_wc_opcode(uint8_t opcode)
{
    const struct op_row *row = op_row(opcode);

    return row ? row->wc : opcode;
}

static bool cur_inline(const struct sg_sq *sq)
{
    return cur_hdr(sq)->flags & SG_WQE_INLINE;
}

static bool grow_recs(struct sg_account *acc, struct sg_sq *sq)
{
    uint32_t room = sq->rec_room ? 2 * sq->rec_room : RECS_MIN, i;
    struct sg_sq_rec *recs;

    if (sq->next - sq->ring.cons < sq->rec_room) {
        return true;
    }
    recs = sg_account_new(acc, room * sizeof(*recs));
    if (!recs) {
        return false;
    }
    for (i = sq->ring.cons; i != sq->next; i++) {
        recs[i & (room - 1)] = *sg_sq_rec(sq, i);
    }
    sg_account_free(acc, sq->recs, sq->rec_room * sizeof(*recs));
    sq->recs = recs;
    sq->rec_room = room;
    return true;
}

/* Octets of elements or inline data of the entry in cur, whose form is checked. */
static enum sg_wc_status body_len(struct sg_sq *sq, const struct op_row *row, size_t *len)
{
    const struct sg_wqe_hdr *h = cur_hdr(sq);
    const struct sg_wqe_place *place = (const void *)(h + 1);

    sq->cur_body = sizeof(*h);
    if (row->flags & (OP_BIND | OP_REG)) {
        *len = row->flags & OP_BIND ? sizeof(struct sg_wqe_bind) : sizeof(struct sg_wqe_reg);
        return SG_WC_SUCCESS;
    }
    if (h->flags & SG_WQE_INLINE) {
        *len = sg_get_le16(&h->inline_len);
        return *len <= sq->max_inline ? SG_WC_SUCCESS : SG_WC_LOC_LEN_ERR;
    }
    if (h->num_sge > sq->max_sge ||
        (row->flags & OP_READ && h->num_sge > 1 && h->opcode != SG_WR_READ)) {
        return SG_WC_LOC_LEN_ERR;
    }
    *len = h->num_sge * sizeof(struct sg_sge);
    if (row->flags & OP_MPE) {
        if (place->hash_len > SG_HASH_MAX) {
            return SG_WC_LOC_LEN_ERR;
        }
        sq->cur_body += sizeof(*place);
        *len += place->hash_len;
    }
    if (row->flags & OP_ATOMIC) {
        sq->cur_body += sizeof(struct sg_wqe_atomic);
    }
    return SG_WC_SUCCESS;
}

/* Why this queue pair cannot have entries of this opcode; NULL: it can. */
static const char *missing(const struct sg_qp *qp, const struct op_row *row)
{
    const struct sg_engine_config *engine = &qp->adapter->config.engine;

    if (row->needs & NEEDS_KERNEL && !(qp->flags & SG_QP_KERNEL)) {
        return "the queue pair is not the kernel's";
    }
    if (row->needs & NEEDS_MPE && engine->mpe_draft == SG_MPE_DRAFT_OFF) {
        return "the memory placement extensions are off";
    }
    if (row->needs & NEEDS_7306 && !engine->rfc7306) {
        return "RFC 7306 is off";
    }
    if (row->needs & NEEDS_INV && !sg_engine_wire_invalidates(engine->wire)) {
        return "the wire has no Send with Invalidate";
    }
    return sg_adapter_may(qp->adapter, row->features) ? NULL : "the firmware does not have it";
}

/* What is wrong with the header in 'cur'; NULL: nothing. */
static const char *header_fault(const struct sg_qp *qp, const struct op_row *row)
{
    const uint8_t known = SG_WQE_SIGNALED | SG_WQE_SOLICITED | SG_WQE_FENCE | SG_WQE_INLINE;
    const struct sg_wqe_hdr *h = cur_hdr(&qp->sq);

    if (!row) {
        return "unknown opcode";
    }
    if (sg_get_le32(&h->index) != qp->sq.next) {
        return "the index in it is another one";
    }
    if (h->reserved_88) {
        return "a reserved field is not 0";
    }
    if (h->flags & ~known) {
        return "unknown flags";
    }
    if (h->flags & SG_WQE_INLINE && !(row->flags & OP_INLINE)) {
        return "no inline data with this opcode";
    }
    return missing(qp, row);
}

/*
 * Copies the entry at 'next' and checks everything that does not depend on the opcode.  *fault, if
 * it is set, says more than the status.
 */
static enum sg_wc_status fetch(struct sg_qp *qp, const struct op_row **row, const char **fault)
{
    struct sg_sq *sq = &qp->sq;
    const struct sg_host *host = &qp->adapter->host;
    size_t body, have = SG_WQE_STRIDE_MIN;
    enum sg_wc_status status;

    if (!sg_ring_fetch(&sq->ring, host, sq->next, 0, sq->cur, have)) {
        return SG_WC_FATAL_ERR;
    }
    *row = op_row(cur_hdr(sq)->opcode);
    *fault = header_fault(qp, *row);
    if (*fault) {
        return SG_WC_LOC_QP_OP_ERR;
    }
    status = body_len(sq, *row, &body);
    if (status != SG_WC_SUCCESS) {
        return status;
    }
    body += sq->cur_body;
    if (body > (1u << sq->ring.stride_shift)) {
        *fault = "it is longer than its slot";
        return SG_WC_LOC_LEN_ERR;
    }
    if (body > have &&
        !sg_ring_fetch(&sq->ring, host, sq->next, have, sq->cur + have, body - have)) {
        return SG_WC_FATAL_ERR;
    }
    return SG_WC_SUCCESS;
}

enum sg_wc_status sg_sq_check_elements(struct sg_qp *qp, uint32_t rights, uint32_t *len)
{
    struct sg_sq *sq = &qp->sq;
    const struct sg_sge *sge = cur_sge(sq);
    uint64_t sum = 0;
    unsigned i;

    if (cur_inline(sq)) {
        *len = sg_get_le16(&cur_hdr(sq)->inline_len);
        return SG_WC_SUCCESS;
    }
    sq->cur_epoch = qp->adapter->tpt->epoch;
    for (i = 0; i < cur_hdr(sq)->num_sge; i++, sge++) {
        uint32_t n = sg_get_le32(&sge->length);

        sum += n;
        if (n && sg_tpt_check_local(&qp->mem, sg_get_le32(&sge->lkey), sg_get_le64(&sge->addr), n,
                                    rights, &sq->cur_mr[i]) != SG_MEM_OK) {
            return SG_WC_LOC_PROT_ERR;
        }
    }
    *len = sum;
    return sum > UINT32_MAX ? SG_WC_LOC_LEN_ERR : SG_WC_SUCCESS;
}

static enum sg_wc_status start_send(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                    struct sg_msg *msg)
{
    msg->kind = SG_MSG_SEND;
    msg->send.solicited = h->flags & SG_WQE_SOLICITED;
    msg->send.invalidate = h->opcode == SG_WR_SEND_INV;
    msg->send.inv_stag = msg->send.invalidate ? sg_get_le32(&h->inv_stag) : 0;
    return sg_sq_check_elements(qp, 0, &msg->send.length);
}

static enum sg_wc_status start_write(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                     struct sg_msg *msg)
{
    msg->kind = SG_MSG_WRITE;
    msg->write.stag = sg_get_le32(&h->rkey);
    msg->write.to = sg_get_le64(&h->remote_addr);
    return sg_sq_check_elements(qp, 0, &msg->write.length);
}

static enum sg_wc_status start_read(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                    struct sg_msg *msg)
{
    msg->kind = SG_MSG_READ_REQ;
    msg->read.stag = sg_get_le32(&h->rkey);
    msg->read.to = sg_get_le64(&h->remote_addr);
    sg_scatter_name(cur_sge(&qp->sq), h->num_sge, msg);
    return sg_sq_check_elements(qp, SG_ACCESS_LOCAL_WRITE, &msg->read.length);
}

/* Opens the record of the entry at 'next', which is then started. */
static struct sg_sq_rec *open_rec(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                  const struct op_row *row)
{
    struct sg_sq *sq = &qp->sq;
    struct sg_sq_rec *rec = sg_sq_rec(sq, sq->next);

    *rec = (struct sg_sq_rec){
        .wr_id = sg_get_le64(&h->wr_id),
        .opcode = h->opcode,
        .wc_opcode = row ? row->wc : h->opcode,
        .answered = row && row->flags & OP_READ,
        .signaled = (h->flags & SG_WQE_SIGNALED) || (qp->flags & SG_QP_SIGNAL_ALL),
    };
    sq->cur_index = sq->next++;
    return rec;
}

/* An entry that was reported already is not reported for what follows from it. */
static enum sg_rule fault_rule(struct sg_qp *qp, enum sg_wc_status status)
{
    if (sg_check_sq_changed(qp)) {
        return SG_RULE_ENTRY_CHANGED;
    }
    if (sg_get_le32(&cur_hdr(&qp->sq)->index) != qp->sq.cur_index) {
        return SG_RULE_ENTRY_INDEX;
    }
    if (sg_check_was_silent(qp->adapter)) {
        return SG_RULE_DMA_MEMORY;
    }
    return status == SG_WC_LOC_PROT_ERR || status == SG_WC_MW_BIND_ERR ? SG_RULE_ENTRY_ACCESS
                                                                       : SG_RULE_ENTRY_FORM;
}

/* why: NULL, or more than the status says. */
static SG_COLD void fail_rec(struct sg_qp *qp, struct sg_sq_rec *rec, enum sg_wc_status status,
                             const char *why)
{
    sg_sq_confirm_until(qp, qp->sq.cur_index); /* no probe will, because the stream ends */
    rec->status = status;
    rec->done = true;
    sg_guest_error(qp->adapter, fault_rule(qp, status), sg_qp_object(qp),
                   "qp %u: send entry %u, opcode %u: %s%s%s", qp->qpn, qp->sq.cur_index,
                   rec->opcode, sg_wc_status_name(status), why ? ", " : "", why ? why : "");
    sg_qp_local_error(qp, "faulty work request");
    sg_sq_drain(qp);
}

/* Must the entry in 'cur' wait? */
static bool must_wait(const struct sg_qp *qp, const struct op_row *row, unsigned reads_room)
{
    if (cur_hdr(&qp->sq)->flags & SG_WQE_FENCE && qp->sq.reads) {
        return true;
    }
    return (row->flags & OP_READ) && !reads_room;
}

/* Pages of an element that is used as a whole, at the start or when the answer arrives. */
static enum sg_odp_status small_element(struct sg_qp *qp, const struct op_row *row)
{
    const struct sg_wqe_hdr *h = cur_hdr(&qp->sq);
    bool result = row->flags & (OP_MPE | OP_ATOMIC);

    if ((!result && h->opcode != SG_WR_ATOMIC_WRITE) || cur_inline(&qp->sq) || !h->num_sge) {
        return SG_ODP_READY;
    }
    return sg_odp_element(&qp->mem, cur_sge(&qp->sq), result);
}

enum step { STEP_MESSAGE, STEP_AGAIN, STEP_STOP };

/* May the entry in 'cur', whose form is good, start now? */
static enum sg_odp_status admit(struct sg_qp *qp, const struct op_row *row, unsigned reads_room)
{
    return must_wait(qp, row, reads_room) ? SG_ODP_WAIT : small_element(qp, row);
}

/* Records what a request needs when its answer comes; false: no memory. */
static bool record_request(struct sg_qp *qp, struct sg_sq_rec *rec, const struct sg_msg *msg)
{
    qp->sq.reads++;
    if (msg->kind != SG_MSG_READ_REQ) {
        return true; /* its start has noted where the answer goes */
    }
    rec->byte_len = msg->read.length;
    rec->sink_stag = msg->read.sink_stag;
    rec->sink_to = msg->read.sink_to;
    return sg_scatter_keep(qp, rec, cur_sge(&qp->sq), cur_hdr(&qp->sq)->num_sge);
}

/* Work without a message; messages: sg_sq_started(). */
static void observe_local(const struct sg_qp *qp, const struct sg_sq_rec *rec)
{
    const struct sg_host *host = &qp->adapter->host;

    if (host->ops->observe) {
        host->ops->observe(host->opaque, &(const struct sg_observed){
                                             .kind = SG_OBSERVED_WORK,
                                             .qpn = qp->qpn,
                                             .wr_id = rec->wr_id,
                                             .opcode = rec->opcode,
                                         });
    }
}

/* Starts the entry in 'cur', or fails it; status and why are the result of the checks so far. */
static enum step start(struct sg_qp *qp, const struct op_row *row, enum sg_wc_status status,
                       const char *why, struct sg_msg *msg)
{
    const struct sg_wqe_hdr *h = cur_hdr(&qp->sq);
    struct sg_sq_rec *rec = open_rec(qp, h, row);

    if (status == SG_WC_SUCCESS) {
        memset(msg, 0, sizeof(*msg));
        status = row->start(qp, h, msg);
    }
    if (status != SG_WC_SUCCESS) {
        fail_rec(qp, rec, status, why);
        sg_qp_defer(qp, SG_DEFER_TERMINATE);
        return STEP_STOP;
    }
    if (row->flags & OP_LOCAL) {
        qp->adapter->executed += SG_TURN_LOCAL_COST;
        observe_local(qp, rec);
        rec->done = true;
        sg_sq_drain(qp);
        return STEP_AGAIN;
    }
    qp->sq.cur_imm = h->opcode == SG_WR_WRITE_IMM;
    if (row->flags & OP_READ && !record_request(qp, rec, msg)) {
        sg_qp_fail(qp, SG_EV_QP_FATAL, "no memory for elements of a Read");
        return STEP_STOP;
    }
    msg->cookie = qp->sq.cur_index;
    qp->counters.tx_requests++;
    return STEP_MESSAGE;
}

/* The entry at 'next': it is fetched, admitted, started and recorded. */
static enum step step(struct sg_qp *qp, struct sg_msg *msg, unsigned reads_room)
{
    const struct op_row *row = NULL;
    const char *fault = NULL;
    enum sg_wc_status status;
    enum sg_odp_status pages = SG_ODP_READY;

    if (!grow_recs(&qp->adapter->account, &qp->sq)) {
        sg_qp_fail(qp, SG_EV_QP_FATAL, "no memory for records of requests");
        return STEP_STOP;
    }
    status = fetch(qp, &row, &fault);
    if (status == SG_WC_FATAL_ERR) {
        sg_qp_unreadable(qp, "send queue cannot be read");
        return STEP_STOP;
    }
    if (sg_checking(qp->adapter)) {
        sg_check_sq_fetched(qp);
    }
    if (sg_flows(&qp->adapter->host)) {
        sg_flow(&qp->adapter->host, "qp %u: fetched send entry %u, %s", qp->qpn, qp->sq.next,
                row ? row->name : "unknown opcode");
    }
    if (status == SG_WC_SUCCESS) {
        pages = admit(qp, row, reads_room);
    }
    if (pages == SG_ODP_WAIT) {
        return STEP_STOP;
    }
    if (pages == SG_ODP_FAILED) {
        status = SG_WC_LOC_PROT_ERR;
        fault = "its pages cannot be had";
    }
    return start(qp, row, status, fault, msg);
}

/* The second message of a WRITE_IMM, whose Write has just been sent. */
static bool next_is_immediate(struct sg_qp *qp, struct sg_msg *msg)
{
    struct sg_sq *sq = &qp->sq;

    if (!sq->cur_imm || (qp->state != SG_QP_RTS && qp->state != SG_QP_CLOSING)) {
        return false;
    }
    sq->cur_imm = false;
    if (sq->cur_index - sq->ring.cons >= sq->next - sq->ring.cons) {
        return false; /* flushed, on an earlier connection */
    }
    memset(msg, 0, sizeof(*msg));
    sg_atomic_set_imm(cur_hdr(sq), msg);
    msg->cookie = sq->cur_index;
    return true;
}

bool sg_sq_next(struct sg_qp *qp, struct sg_msg *msg, unsigned reads_room)
{
    const uint64_t before = qp->adapter->executed;
    unsigned n;

    if (next_is_immediate(qp, msg) || sg_sq_probe(qp, msg, reads_room)) {
        return true;
    }
    for (n = 0; n < LOCAL_OPS_PER_CALL && qp->adapter->executed - before < SG_TURN_QUANTUM &&
                (!n || !sg_turn_over(qp->adapter));
         n++) {
        if (qp->sq.next == qp->sq.ring.prod ||
            (qp->state != SG_QP_RTS &&
             (qp->state != SG_QP_CLOSING || qp->sq.next == qp->sq.close_at))) {
            return n && sg_sq_probe(qp, msg, reads_room); /* local operations were the last */
        }
        switch (step(qp, msg, reads_room)) {
        case STEP_MESSAGE:
            return true;
        case STEP_STOP:
            return false;
        case STEP_AGAIN:
            break;
        }
    }
    qp->adapter->conn_ops->ready(qp->conn); /* continue with local operations in the next turn */
    return false;
}

/* False: *pages tells whether to wait for pages, else the payload is inaccessible. */
static bool gather_elements(struct sg_qp *qp, uint32_t off, uint32_t len, struct sg_gather *g,
                            enum sg_odp_status *pages)
{
    struct sg_sq *sq = &qp->sq;
    const struct sg_sge *sge = cur_sge(sq);
    uint64_t at;
    unsigned i;

    for (i = 0; len && i < cur_hdr(sq)->num_sge; i++, sge++) {
        uint32_t n = sg_get_le32(&sge->length), part;

        if (off >= n) {
            off -= n;
            continue;
        }
        part = SG_MIN(n - off, len);
        at = sg_get_le64(&sge->addr) + off;
        *pages = sg_odp_ready(&qp->mem, SG_ODP_SEND, sq->cur_mr[i], at, part, false);
        if (*pages != SG_ODP_READY || !sg_mem_gather(qp->adapter, g, sq->cur_mr[i], at, part)) {
            return false;
        }
        len -= part;
        off = 0;
    }
    return len == 0;
}

int sg_sq_gather(struct sg_qp *qp, const struct sg_msg *msg, uint32_t off, uint32_t len,
                 struct iovec *iov)
{
    struct sg_gather g = { .iov = iov, .max = SG_ENGINE_IOV_MAX };
    struct sg_sq *sq = &qp->sq;
    enum sg_wc_status status = SG_WC_SUCCESS;
    enum sg_odp_status pages = SG_ODP_READY;
    uint32_t all = sg_msg_length(msg);

    if ((qp->state != SG_QP_RTS && qp->state != SG_QP_CLOSING) || msg->cookie != sq->cur_index) {
        return SG_GATHER_CLOSED; /* a close or a Terminate is deferred to the next turn */
    }
    if (sq->cur_epoch != qp->adapter->tpt->epoch) {
        status = sg_sq_check_elements(qp, 0, &all);
    }
    if (status == SG_WC_SUCCESS) {
        sg_assert(sg_range_ok(off, len, all));
        if (cur_inline(sq)
                ? sg_mem_gather_bytes(qp->adapter, &g, (const uint8_t *)cur_sge(sq) + off, len)
                : gather_elements(qp, off, len, &g, &pages)) {
            return g.n;
        }
        status = SG_WC_LOC_PROT_ERR;
    }
    sg_mem_release(qp->adapter, iov, g.n);
    if (pages == SG_ODP_WAIT) {
        return SG_GATHER_LATER;
    }
    fail_rec(qp, sg_sq_rec(sq, sq->cur_index), status, NULL);
    return -1;
}

static SG_COLD void beyond(struct sg_qp *qp, uint32_t prod)
{
    const struct sg_ring *r = &qp->sq.ring;

    sg_guest_error(qp->adapter, sg_ring_rule(r, prod), sg_qp_object(qp),
                   "qp %u: send doorbell %u beyond the queue (%u to %u)", qp->qpn, prod, r->cons,
                   r->prod);
    sg_qp_fail(qp, SG_EV_QP_FATAL, "send doorbell beyond the queue");
}

void sg_sq_doorbell(struct sg_qp *qp, uint32_t prod)
{
    struct sg_sq *sq = &qp->sq;

    switch (sg_ring_take(&sq->ring, SG_RING_PROD, prod)) {
    case SG_RING_LATE:
        return;
    case SG_RING_BAD:
        beyond(qp, prod);
        return;
    case SG_RING_NEW:
        break;
    }
    if (qp->peer_left && qp->state == SG_QP_RTS) {
        sg_qp_unreachable(qp, "the peer left before");
    } else if (qp->state == SG_QP_ERROR) {
        sg_qp_flush_later(qp);
    } else {
        sg_qp_wake(qp);
    }
}
