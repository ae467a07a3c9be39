/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: frames on their way into one of QEMU's network queues.
 *
 * QEMU's queues rely on a sender that stops when it is refused.  A frame that is offered from the
 * callback of another one goes ahead of those still waiting, and a stream socket that had written
 * half of a frame would go on with octets of the wrong one.  So of each lane at most one frame lies
 * in QEMU's queue; what comes meanwhile waits here, in order, up to a limit, beyond which it is
 * dropped: TCP repairs that.
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
                        size_t max_octets)
{
    *lane = (StaghornLane) { .nc = nc, .sent = sent, .max_octets = max_octets };
    QSIMPLEQ_INIT(&lane->frames);
}

void staghorn_lane_close(StaghornLane *lane)
{
    StaghornFrame *f;

    lane->nc = NULL;
    while (lane->octets) {
        f = QSIMPLEQ_FIRST(&lane->frames);
        QSIMPLEQ_REMOVE_HEAD(&lane->frames, next);
        lane->octets -= f->len;
        g_free(f);
    }
}

static bool keep(StaghornLane *lane, const struct iovec *iov, unsigned n)
{
    size_t len = iov_size(iov, n);
    StaghornFrame *f;

    if (lane->octets + len > lane->max_octets || !len) {
        return false;
    }
    f = g_malloc(sizeof(*f) + len);
    f->len = len;
    iov_to_buf(iov, n, 0, f->data, len);
    QSIMPLEQ_INSERT_TAIL(&lane->frames, f, next);
    lane->octets += len;
    return true;
}

bool staghorn_lane_send(StaghornLane *lane, const struct iovec *iov, unsigned n)
{
    if (!lane->nc) {
        return false;
    }
    if (staghorn_lane_busy(lane)) {
        return keep(lane, iov, n);
    }
    if (qemu_sendv_packet_async(lane->nc, iov, n, lane->sent) == 0) {
        lane->queued++;
    }
    return true;
}

bool staghorn_lane_sent(StaghornLane *lane)
{
    StaghornFrame *f;

    lane->queued--;
    while (lane->nc && !lane->queued && lane->octets) {
        f = QSIMPLEQ_FIRST(&lane->frames);
        QSIMPLEQ_REMOVE_HEAD(&lane->frames, next);
        lane->octets -= f->len;
        if (qemu_send_packet_async(lane->nc, f->data, f->len, lane->sent) == 0) {
            lane->queued++;
        }
        g_free(f);
    }
    return !staghorn_lane_busy(lane);
}
