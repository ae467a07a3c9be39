/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ordered completions, with the meaning that they have on InfiniBand (SG_CONNECT_CONFIRM).
 *
 * A Send or Write of iWARP is complete when TCP has its octets; the sender is not told whether they
 * were placed or refused.  Programs written for InfiniBand then read the peer's memory, or expect
 * the peer's refusal in exactly this completion.  So on connections that are made for such programs
 * an entry that was sent waits for a confirmation.
 *
 * The adapter gets the confirmation by a probe: a Read of no octets, which needs no STag and no
 * help of the peer's software.  Its Response follows everything that was placed before (RFC
 * 5040 section 5.5), or a Terminate replaces it.  One probe at a time is outstanding.  It
 * covers all entries that were sent before it; the answer to any other request confirms what was
 * sent before that request.  A probe is sent when there is nothing else to send, or when
 * CONFIRM_BATCH entries were sent since the last one.  So a full queue has one probe per round
 * trip, and a single message has one behind it in the same segment of TCP.
 *
 * Probes share ORD with the owner's requests that the peer answers.  If the peer grants no Reads,
 * there are no confirmations, and completions mean what they mean on iWARP.
 */
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

enum { CONFIRM_BATCH = 16 };

void sg_sq_confirm_start(struct sg_qp *qp)
{
    struct sg_sq *sq = &qp->sq;

    sq->confirming = qp->conn->confirm;
    sq->probing = sq->probe_needed = false;
    sq->sent = sq->probe_end = sq->next;
}

bool sg_sq_confirm_later(struct sg_qp *qp, uint32_t index)
{
    struct sg_sq *sq = &qp->sq;

    if (!sq->confirming || !qp->conn->ord) {
        return false;
    }
    sq->sent = index + 1;
    sq->probe_needed = true;
    return true;
}

bool sg_sq_probe(struct sg_qp *qp, struct sg_msg *msg, unsigned reads_room)
{
    struct sg_sq *sq = &qp->sq;
    bool closing = qp->state == SG_QP_CLOSING;

    if (!sq->probe_needed || sq->probing || !reads_room || (qp->state != SG_QP_RTS && !closing) ||
        (sq->next != sq->ring.prod && !(closing && sq->next == sq->close_at) &&
         sq->next - sq->probe_end < CONFIRM_BATCH)) {
        return false;
    }
    *msg = (struct sg_msg){
        .kind = SG_MSG_READ_REQ,
        .read = { .confirm = true, .sink_stag = 1, .stag = 1 }, /* some reject 0 */
    };
    sq->probe_end = sq->next;
    sq->probing = true;
    sq->probe_needed = false;
    return true;
}

void sg_sq_confirm_until(struct sg_qp *qp, uint32_t end)
{
    struct sg_sq *sq = &qp->sq;
    uint32_t i;

    if (end - sq->ring.cons > sq->next - sq->ring.cons) {
        return; /* done already */
    }
    for (i = sq->ring.cons; i != end; i++) {
        struct sg_sq_rec *rec = sg_sq_rec(sq, i);

        rec->done = rec->done || !rec->answered;
    }
    sg_sq_drain(qp);
    sq->probe_needed = sq->probe_needed && sq->ring.cons != sq->next;
}

void sg_sq_probe_done(struct sg_qp *qp)
{
    struct sg_sq *sq = &qp->sq;

    if (qp->state == SG_QP_ERROR || !sq->probing) {
        return; /* being flushed */
    }
    sq->probing = false;
    sg_sq_confirm_until(qp, sq->probe_end);
    if (sq->probe_needed && qp->conn) {
        qp->adapter->conn_ops->ready(qp->conn);
    }
}

void sg_sq_confirm_earlier_now(struct sg_qp *qp)
{
    struct sg_sq *sq = &qp->sq;
    uint32_t i = sq->ring.cons;

    if (qp->state == SG_QP_ERROR) {
        return;
    }
    while (i != sq->next && (sg_sq_rec(sq, i)->done || !sg_sq_rec(sq, i)->answered)) {
        i++;
    }
    if (i != sq->next && i != sq->ring.cons) {
        sg_sq_confirm_until(qp, i);
    }
}

bool sg_sq_all_sent(struct sg_sq *sq)
{
    uint32_t i = sq->sent;

    if (sq->ring.cons == sq->next) {
        return true;
    }
    if (!sq->confirming || sq->reads || i - sq->ring.cons > sq->next - sq->ring.cons) {
        return false;
    }
    while (i != sq->next && sg_sq_rec(sq, i)->done) {
        i++; /* a local operation */
    }
    return i == sq->next;
}
