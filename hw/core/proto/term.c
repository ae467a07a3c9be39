/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Terminate message (RFC 5040 sections 4.8, 5.4, 6.2 and 7): the abortive end of a stream.
 *
 * Sending.  term_raise() takes the row of the first error; from then on inbound data are ignored
 * and nothing else is sent.  sg_conn_transmit() then sends the Terminate after the last whole FPDU,
 * tells verbs, and sends a FIN so that TCP delivers it.  The peer has the close timeout to answer
 * with its FIN, then the stream is reset.
 *
 * A responder that has seen no valid FPDU cannot send a Terminate (RFC 5044 section 7.1.2);
 * then the stream is reset at once.  Nor can a Terminate follow our FIN.  A reset in its place
 * could destroy data that were reported as sent and have not reached the peer yet; and the cause
 * may be our owner, who closed and took its memory back without waiting for the peer's FIN.  So
 * arriving data are dropped, and the peer has the close timeout as above.
 *
 * Receiving.  Verbs get 'terminated', our sending stops at the next FPDU boundary, a FIN follows.
 */
#include "proto/conn.h"

enum sg_term_cond term_of_tagged(enum sg_mem_status st)
{
    static const enum sg_term_cond row[] = {
        [SG_MEM_STAG] = SG_TERM_TAGGED_BAD_STAG, [SG_MEM_BOUNDS] = SG_TERM_TAGGED_BOUNDS,
        [SG_MEM_ACCESS] = SG_TERM_WRITE_ACCESS,  [SG_MEM_ASSOC] = SG_TERM_TAGGED_NOT_ASSOCIATED,
        [SG_MEM_WRAP] = SG_TERM_TAGGED_WRAP,     [SG_MEM_FAULT] = SG_TERM_DDP_CATASTROPHE,
    };

    return row[st];
}

enum sg_term_cond term_of_source(enum sg_mem_status st)
{
    static const enum sg_term_cond row[] = {
        [SG_MEM_OK] = SG_TERM_PROT_UNSPECIFIED,       [SG_MEM_STAG] = SG_TERM_READ_BAD_STAG,
        [SG_MEM_BOUNDS] = SG_TERM_READ_BOUNDS,        [SG_MEM_ACCESS] = SG_TERM_READ_ACCESS,
        [SG_MEM_ASSOC] = SG_TERM_READ_NOT_ASSOCIATED, [SG_MEM_WRAP] = SG_TERM_READ_WRAP,
        [SG_MEM_FAULT] = SG_TERM_LOCAL_CATASTROPHE,
    };

    return row[st];
}

enum sg_term_cond term_of_invalidate(enum sg_mem_status st)
{
    return st == SG_MEM_ASSOC ? SG_TERM_INV_NOT_ASSOCIATED : SG_TERM_INV_BAD_STAG;
}

static bool terminable(const struct sg_conn *c)
{
    return c->state == CONN_WAIT_FIRST || c->state == CONN_STREAMING || c->state == CONN_CLOSING;
}

/* In the pause before our first FPDU a Terminate waits, like everything else. */
static bool may_terminate(const struct sg_conn *c)
{
    return c->initiator || conn_is(c, CONN_IS_VALID);
}

/* c->term is filled in: from now on only it is sent. */
static void start(struct sg_conn *c)
{
    c->end = SG_CONN_TERMINATED;
    conn_flag(c, CONN_TERM_DUE, true);
    stall_drop(c);
    c->tx.active = false;
    c->tx.rtr = 0;
    conn_set_state(c, CONN_TERMINATING);
    close_due(c);
}

/* An error after our FIN. */
static void stop_receiving(struct sg_conn *c, enum sg_conn_end why)
{
    c->end = why;
    stall_drop(c);
    conn_set_state(c, CONN_TERMINATING);
    close_watch(c);
    conn_tell_down(c, why);
}

static void count(struct sg_conn *c, enum sg_term_cond cond)
{
    const struct sg_term_row *row = sg_term_row(cond);

    if (cond == SG_TERM_MPA_CRC || cond == SG_TERM_LOCAL_CATASTROPHE ||
        cond == SG_TERM_DDP_CATASTROPHE) {
        return; /* counted by the caller, or no mistake of the peer */
    }
    if (sg_term_classify(row->layer, row->etype, row->code) == SG_TERM_CLASS_ACCESS &&
        cond != SG_TERM_TAGGED_VERSION) {
        c->e->stats.protection_errors++;
    } else {
        c->e->stats.protocol_errors++;
    }
}

void term_raise(struct sg_conn *c, enum sg_term_cond cond, const struct sg_ddp_hdr *ddp,
                uint16_t seg_len, const struct sg_read_req *read)
{
    const struct sg_term_row *row = sg_term_row(cond);

    if (!terminable(c)) {
        return; /* the first error is the one reported */
    }
    conn_log(c, SG_LOG_PEER_ERROR, "%s (%u/%u/%02x)", row->name, row->layer, row->etype, row->code);
    count(c, cond);
    if (c->close.state >= CLOSE_SENT) {
        stop_receiving(c, SG_CONN_PROTOCOL);
        return;
    }
    if (!may_terminate(c)) {
        conn_drop(c, SG_CONN_PROTOCOL);
        return;
    }
    sg_term_build(&c->term, cond, ddp, seg_len, read);
    start(c);
}

void term_raise_code(struct sg_conn *c, uint8_t layer, uint8_t type, uint8_t code)
{
    if (!terminable(c)) {
        if (c->state < CONN_WAIT_FIRST) {
            conn_drop_later(c, SG_CONN_RESET);
        }
        return;
    }
    if (c->close.state >= CLOSE_SENT) {
        stop_receiving(c, SG_CONN_RESET);
        return;
    }
    if (!may_terminate(c)) {
        conn_drop_later(c, SG_CONN_RESET);
        return;
    }
    memset(&c->term, 0, sizeof(c->term));
    c->term.layer = layer;
    c->term.etype = type;
    c->term.code = code;
    start(c);
}

/* False: the stream is blocked. */
bool term_transmit(struct sg_conn *c)
{
    const struct sg_ddp_hdr h = {
        .last = true,
        .version = SG_DDP_VERSION,
        .qn = SG_QN_TERMINATE,
        .msn = c->msn.tx[SG_QN_TERMINATE],
        .ulp_ctrl = SG_RDMAP_VERSION << 6 | SG_OP_TERMINATE,
    };
    const struct sg_term_info info = {
        .sent = true,
        .layer = c->term.layer,
        .type = c->term.etype,
        .code = c->term.code,
    };
    uint8_t payload[SG_TERM_MAX];
    struct seg_out out;

    out.iov[1].iov_base = payload;
    out.iov[1].iov_len = sg_term_emit(&c->term, payload);
    if (!fpdu_send(c, &out, &h, 1, out.iov[1].iov_len)) {
        return false;
    }
    c->msn.tx[SG_QN_TERMINATE]++;
    c->tx.begun++;
    c->e->stats.tx_terminates++;
    conn_flag(c, CONN_TERM_DUE, false);
    if (c->user) {
        c->e->ops->terminated(c->user, &info);
    }
    conn_tell_down(c, SG_CONN_TERMINATED);
    return true;
}

void term_received(struct sg_conn *c, const struct sg_term *t)
{
    const struct sg_term_info info = {
        .layer = t->layer,
        .type = t->etype,
        .code = t->code,
    };

    conn_log(c, SG_LOG_PEER_ERROR, "Terminate received: %s, %s, %s", sg_term_layer_name(t->layer),
             sg_term_type_name(t->layer, t->etype), sg_term_code_name(t->layer, t->etype, t->code));
    c->e->stats.rx_terminates++;
    c->end = SG_CONN_TERMINATED;
    c->tx.active = false;
    c->tx.rtr = 0;
    conn_set_state(c, CONN_TERMINATING);
    close_due(c);
    if (c->user) {
        c->e->ops->terminated(c->user, &info);
    }
    conn_tell_down(c, SG_CONN_TERMINATED);
}
