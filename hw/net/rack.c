/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RACK: which segments are lost, by time (RFC 8985, section 6).
 *
 * A segment is lost when one that was sent later has been delivered and more time has passed than
 * reordering can explain.
 */
#include "net_priv.h"

enum {
    DUP_THRESH = 3,
    MULT_PERSIST = 16, /* recoveries; section 6.2, step 4 */
    MULT_MAX = 64,     /* the smoothed round trip bounds the window anyway */
};

void rack_init(struct rack *k)
{
    k->window_mult = 1;
}

static bool sent_after(uint64_t t1, uint32_t end1, uint64_t t2, uint32_t end2)
{
    return t1 > t2 || (t1 == t2 && TCP_SEQ_GT(end1, end2));
}

/* Steps 2 and 3. */
void rack_delivered(struct recovery *r, const struct sent_segment *s, uint64_t now)
{
    struct rack *k = &r->rack;
    uint64_t rtt = now - s->sent;

    if (TCP_SEQ_GT(s->end, r->fack)) {
        r->fack = s->end;
    } else if (!s->again && TCP_SEQ_LT(s->end, k->fack)) {
        k->reordered = true;
    }
    if (s->again) {
        /* Which of its transmissions arrived?  Not this one if it was too short a time ago. */
        if (rtt < r->min_rtt ||
            (r->in.has_echo && TCP_SEQ_LT(r->in.echo, (uint32_t)(s->sent / NS_PER_MS)))) {
            return;
        }
    }
    if (sent_after(s->sent, s->end, k->sent, k->end)) {
        k->sent = s->sent;
        k->end = s->end;
        k->rtt = rtt;
    }
}

void rack_spurious(struct recovery *r)
{
    struct rack *k = &r->rack;

    k->reordered = true;
    k->window_persist = MULT_PERSIST;
    if (TCP_SEQ_GEQ(r->una, k->mult_until) && k->window_mult < MULT_MAX) {
        k->window_mult++;
        k->mult_until = r->high;
    }
}

/* Step 4. */
static uint64_t reordering_window(const struct recovery *r)
{
    const struct rack *k = &r->rack;

    if (!k->reordered &&
        (r->state != RECOVERY_OPEN || r->sent.list[SEGMENT_SACKED].count >= DUP_THRESH)) {
        return 0;
    }
    return MIN(k->window_mult * r->min_rtt / 4, r->srtt);
}

/* Step 5. */
void rack_detect(struct recovery *r, uint64_t now)
{
    uint64_t patience = r->rack.rtt + reordering_window(r);
    struct sent_segment *s;

    r->reorder_at = SG_NEVER;
    while ((s = scoreboard_first(&r->sent, SEGMENT_IN_FLIGHT)) &&
           sent_after(r->rack.sent, r->rack.end, s->sent, s->end)) {
        if (s->sent + patience > now) {
            r->reorder_at = s->sent + patience;
            return;
        }
        scoreboard_lose(&r->sent, s);
    }
}
