/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A transmit queue in front of one of QEMU's network queues: order and congestion.
 */
#ifndef SG_DEVICE_TXQ_H
#define SG_DEVICE_TXQ_H

/* QEMU's build only warns about this; newer compilers make it an error. */
#pragma GCC diagnostic error "-Wimplicit-function-declaration"

#include "net/net.h"
#include "qemu/queue.h"

typedef struct StaghornFrame StaghornFrame;
typedef QSIMPLEQ_HEAD(, StaghornFrame) StaghornFrames;

typedef struct StaghornTxq {
    NetClientState *nc;  /* the sender; NULL: closed */
    NetPacketSent *sent; /* has to call staghorn_txq_sent() */
    unsigned queued;     /* frames in QEMU's queue: 1, or more if the queue was entered twice */
    bool reliable;
    StaghornFrames offered;    /* reliable: copies of what is in QEMU's queue */
    StaghornFrames frames;     /* those behind it */
    size_t octets, max_octets; /* of 'frames' */
} StaghornTxq;

void staghorn_txq_init(StaghornTxq *txq, NetClientState *nc, NetPacketSent *sent, size_t max_octets,
                       bool reliable);
/*
 * Drops all waiting frames, also those in QEMU's queue; later frames are dropped as well.  A zeroed
 * transmit queue is closed, too.
 */
void staghorn_txq_close(StaghornTxq *txq);

/*
 * Drops waiting frames, except those in QEMU's queue: a part of one may have been sent, and a
 * stream that carries frames needs the rest.
 */
void staghorn_txq_empty(StaghornTxq *txq);

/* Would the frame be dropped? */
bool staghorn_txq_full(const StaghornTxq *txq, const struct iovec *iov, unsigned n);
/* Sends the frame or queues a copy; false: it was dropped. */
bool staghorn_txq_send(StaghornTxq *txq, const struct iovec *iov, unsigned n);
/* A frame has left QEMU's queue, unsent if len is 0.  True: the queue is empty and free. */
bool staghorn_txq_sent(StaghornTxq *txq, ssize_t len);

static inline bool staghorn_txq_busy(const StaghornTxq *txq)
{
    return txq->queued || txq->octets;
}

#endif
