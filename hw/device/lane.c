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
#include "lane.h"

struct StaghornFrame {
    QSIMPLEQ_ENTRY(StaghornFrame) next;
    size_t len;
    uint8_t data[];
};

void staghorn_lane_init(StaghornLane *lane, NetClientState *nc, NetPacketSent *sent,
                        size_t max_octets, bool insist)
{
    *lane = (StaghornLane) {
        .nc = nc, .sent = sent, .max_octets = max_octets, .insist = insist,
    };
    QSIMPLEQ_INIT(&lane->frames);
    QSIMPLEQ_INIT(&lane->offered);
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

void staghorn_lane_empty(StaghornLane *lane)
{
    StaghornFrame *f;

    while ((f = take(&lane->frames))) {
        g_free(f);
    }
    lane->octets = 0;
}

void staghorn_lane_close(StaghornLane *lane)
{
    NetClientState *nc = lane->nc;
    StaghornFrame *f;

    if (!nc) {
        return;
    }
    lane->nc = NULL;
    staghorn_lane_empty(lane);
    while ((f = take(&lane->offered))) {
        g_free(f);
    }
    qemu_purge_queued_packets(nc); /* they refer to the sender, which is removed now */
}

static bool keep(StaghornLane *lane, const struct iovec *iov, unsigned n)
{
    size_t len = iov_size(iov, n);
    StaghornFrame *f;

    if (lane->octets + len > lane->max_octets || !len) {
        return false;
    }
    f = frame_new(iov, n);
    QSIMPLEQ_INSERT_TAIL(&lane->frames, f, next);
    lane->octets += len;
    return true;
}

bool staghorn_lane_send(StaghornLane *lane, const struct iovec *iov, unsigned n)
{
    StaghornFrame *f;

    if (!lane->nc) {
        return false;
    }
    if (staghorn_lane_busy(lane)) {
        return keep(lane, iov, n);
    }
    if (qemu_sendv_packet_async(lane->nc, iov, n, lane->sent) == 0) {
        lane->queued++;
        if (lane->insist) {
            f = frame_new(iov, n);
            QSIMPLEQ_INSERT_TAIL(&lane->offered, f, next);
        }
    }
    return true;
}

/* Takes ownership of the frame. */
static void offer(StaghornLane *lane, StaghornFrame *f)
{
    if (qemu_send_packet_async(lane->nc, f->data, f->len, lane->sent) == 0) {
        lane->queued++;
        if (lane->insist) {
            QSIMPLEQ_INSERT_TAIL(&lane->offered, f, next);
            return;
        }
    }
    g_free(f);
}

bool staghorn_lane_sent(StaghornLane *lane, ssize_t len)
{
    StaghornFrame *f = take(&lane->offered);

    lane->queued--;
    if (f && len == 0) {
        offer(lane, f);
    } else {
        g_free(f);
    }
    while (lane->nc && !lane->queued && (f = take(&lane->frames))) {
        lane->octets -= f->len;
        offer(lane, f);
    }
    return !staghorn_lane_busy(lane);
}
