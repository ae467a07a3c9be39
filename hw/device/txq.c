/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: a transmit queue in front of one of QEMU's network queues.
 *
 * QEMU's queues rely on a sender that stops when it is refused.  A frame that is offered from the
 * callback of another one overtakes those that still wait, and a stream socket that had written
 * half of a frame would continue with octets of the wrong one.  So each transmit queue has at most
 * one frame in QEMU's queue; later ones wait here, in order, up to a limit, beyond which they are
 * dropped: TCP repairs that.
 *
 * When the machine stops, QEMU drops the content of its queues.  A stream socket that had written
 * half of a frame needs the other half nevertheless, so a reliable transmit queue keeps a copy and
 * offers it again.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "net/net.h"
#include "txq.h"

struct StaghornFrame {
    QSIMPLEQ_ENTRY(StaghornFrame) next;
    size_t len;
    uint8_t data[];
};

void staghorn_txq_init(StaghornTxq *txq, NetClientState *nc, NetPacketSent *sent, size_t max_octets,
                       bool reliable)
{
    *txq = (StaghornTxq){
        .nc = nc,
        .sent = sent,
        .max_octets = max_octets,
        .reliable = reliable,
    };
    QSIMPLEQ_INIT(&txq->frames);
    QSIMPLEQ_INIT(&txq->offered);
}

static StaghornFrame *frame_new(const struct iovec *iov, unsigned n)
{
    size_t len = iov_size(iov, n);
    StaghornFrame *f = g_malloc(sizeof(*f) + len);

    f->len = len;
    iov_to_buf(iov, n, 0, f->data, len);
    return f;
}

static StaghornFrame *take(StaghornFrames *list)
{
    StaghornFrame *f = QSIMPLEQ_FIRST(list);

    if (f) {
        QSIMPLEQ_REMOVE_HEAD(list, next);
    }
    return f;
}

void staghorn_txq_empty(StaghornTxq *txq)
{
    StaghornFrame *f;

    while ((f = take(&txq->frames))) {
        g_free(f);
    }
    txq->octets = 0;
}

void staghorn_txq_close(StaghornTxq *txq)
{
    NetClientState *nc = txq->nc;
    StaghornFrame *f;

    if (!nc) {
        return;
    }
    txq->nc = NULL;
    staghorn_txq_empty(txq);
    while ((f = take(&txq->offered))) {
        g_free(f);
    }
    qemu_purge_queued_packets(nc); /* they refer to the sender, which is removed now */
}

static void keep(StaghornTxq *txq, const struct iovec *iov, unsigned n)
{
    StaghornFrame *f = frame_new(iov, n);

    QSIMPLEQ_INSERT_TAIL(&txq->frames, f, next);
    txq->octets += f->len;
}

bool staghorn_txq_full(const StaghornTxq *txq, const struct iovec *iov, unsigned n)
{
    size_t len = iov_size(iov, n);

    return !txq->nc || (staghorn_txq_busy(txq) && (txq->octets + len > txq->max_octets || !len));
}

bool staghorn_txq_send(StaghornTxq *txq, const struct iovec *iov, unsigned n)
{
    StaghornFrame *f;

    if (staghorn_txq_full(txq, iov, n)) {
        return false;
    }
    if (staghorn_txq_busy(txq)) {
        keep(txq, iov, n);
        return true;
    }
    if (qemu_sendv_packet_async(txq->nc, iov, n, txq->sent) == 0) {
        txq->queued++;
        if (txq->reliable) {
            f = frame_new(iov, n);
            QSIMPLEQ_INSERT_TAIL(&txq->offered, f, next);
        }
    }
    return true;
}

/* Takes ownership of the frame. */
static void offer(StaghornTxq *txq, StaghornFrame *f)
{
    if (qemu_send_packet_async(txq->nc, f->data, f->len, txq->sent) == 0) {
        txq->queued++;
        if (txq->reliable) {
            QSIMPLEQ_INSERT_TAIL(&txq->offered, f, next);
            return;
        }
    }
    g_free(f);
}

bool staghorn_txq_sent(StaghornTxq *txq, ssize_t len)
{
    StaghornFrame *f = take(&txq->offered);

    txq->queued--;
    if (f && len == 0) {
        offer(txq, f);
    } else {
        g_free(f);
    }
    while (txq->nc && !txq->queued && (f = take(&txq->frames))) {
        txq->octets -= f->len;
        offer(txq, f);
    }
    return !staghorn_txq_busy(txq);
}
