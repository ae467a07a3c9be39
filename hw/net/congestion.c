/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The congestion window of a connection: growth, reduction, and undoing a reduction.
 */
#include "net_priv.h"

uint32_t congestion_mss(const struct flow *f)
{
    return MAX(f->pcb->mss, 64);
}

uint32_t congestion_flight(const struct recovery *r)
{
    uint32_t octets = r->sent.list[SEGMENT_IN_FLIGHT].octets;

    return octets - MIN(octets, r->left);
}

/* RFC 6928, section 2. */
void congestion_begin(struct flow *f)
{
    uint32_t mss = congestion_mss(f);

    f->recovery.cwnd = MIN(10 * mss, MAX(2 * mss, 14600));
}

/* Records what is needed to undo the reduction. */
void congestion_remember(struct recovery *r)
{
    r->may_undo = true;
    r->undo_cwnd = r->cwnd;
    r->undo_ssthresh = r->ssthresh;
    r->undo_cubic = r->cubic;
    r->again = false;
    r->undo_segments = 0;
}

static void undo(struct recovery *r)
{
    r->may_undo = false;
    r->cwnd = MAX(r->cwnd, r->undo_cwnd);
    r->ssthresh = MAX(r->ssthresh, r->undo_ssthresh);
    r->cubic = r->undo_cubic;
    r->cubic.epoch = 0;
    r->state = RECOVERY_OPEN;
    r->backoff = 0;
    scoreboard_restore(&r->sent);
    rack_spurious(r);
}

void congestion_enter_fast(struct flow *f)
{
    struct recovery *r = &f->recovery;

    congestion_remember(r);
    r->state = RECOVERY_FAST;
    r->point = r->high;
    r->ssthresh = cubic_reduce(&r->cubic, r->cwnd, congestion_mss(f));
    r->prr_delivered = r->prr_out = 0;
    r->prr_flight = MAX(congestion_flight(r) + r->sent.list[SEGMENT_LOST].octets, 1);
    r->urgent = true;
    r->probing = false;
}

/* RFC 6937, section 3. */
void congestion_reduce(struct flow *f, bool progress)
{
    struct recovery *r = &f->recovery;
    uint32_t flight = congestion_flight(r), mss = congestion_mss(f);
    int64_t count;

    r->prr_delivered += r->delivered;
    if (flight > r->ssthresh) {
        count = (int64_t)(((uint64_t)r->prr_delivered * r->ssthresh + r->prr_flight - 1) /
                          r->prr_flight) -
                r->prr_out;
    } else {
        count = MAX((int64_t)r->prr_delivered - r->prr_out, r->delivered) + (progress ? mss : 0);
        count = MIN(count, (int64_t)r->ssthresh - flight);
    }
    r->cwnd = flight + (uint32_t)CLAMP(count, 0, SG_CWND_MAX - flight);
    r->cwnd = MAX(r->cwnd, mss);
}

/* 'flight': before the acknowledgement.  A window that was not filled does not grow. */
void congestion_grow(struct flow *f, uint32_t flight)
{
    struct recovery *r = &f->recovery;
    bool slow_start = r->cwnd < r->ssthresh;
    uint32_t mss = congestion_mss(f);

    if (!r->delivered || !(r->limited || (slow_start && flight > r->cwnd / 2))) {
        return;
    }
    if (slow_start) {
        r->cwnd += MIN(r->delivered, r->ssthresh - r->cwnd);
    } else {
        r->cwnd = cubic_grow(&r->cubic, r->cwnd, r->delivered, mss, sg_stack.now, r->srtt);
    }
    r->cwnd = MIN(r->cwnd, SG_CWND_MAX);
}

/*
 * RFC 3522, section 3.2: the oldest segment was retransmitted, but the acknowledged one carries a
 * timestamp from before the retransmission.
 */
void congestion_check_echo(struct recovery *r, bool oldest_again)
{
    if (!r->may_undo || !oldest_again || !r->again || !r->in.has_echo) {
        return;
    }
    if (TCP_SEQ_LT(r->in.echo, r->again_stamp)) {
        undo(r);
    } else {
        r->may_undo = false;
    }
}

void congestion_check_duplicate(struct recovery *r)
{
    rack_spurious(r);
    if (r->undo_segments && --r->undo_segments == 0 && r->may_undo) {
        undo(r);
    }
}

void congestion_leave(struct recovery *r)
{
    if (r->state == RECOVERY_FAST) {
        r->cwnd = r->ssthresh;
    }
    r->state = RECOVERY_OPEN;
    r->duplicates = 0;
    r->left = 0;
    if (r->rack.window_persist && --r->rack.window_persist == 0) {
        r->rack.window_mult = 1;
    }
}
