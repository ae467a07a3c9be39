/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loss recovery: the states of a sender, its window, its timers; see recovery.h.
 *
 *   OPEN   the window grows: slow start, then CUBIC
 *   FAST   the window shrinks to 'ssthresh' at the pace of deliveries (RFC 6937)
 *   RTO    slow start from one segment; SACKed segments are not sent again
 *
 * There are three deadlines; the connection's timer is armed for the earliest one:
 *
 *   reorder_at   a segment that reordering no longer explains is lost (RFC 8985, section 6.3)
 *   probe_at     nothing has been heard for two round trips: a tail loss probe (section 7)
 *   rto_at       the retransmission timeout (RFC 6298)
 */
#include "net_priv.h"

#define CWND_OFF (UINT32_MAX / 2)     /* for lwIP's window, so that it never limits */
#define LATE_NS (20 * NS_PER_MS)      /* a timer that is this late: this machine has stalled */
#define NO_MEMORY_NS (50 * NS_PER_MS) /* retry after this time */
#define LATE_GRACE_NS (5 * NS_PER_MS) /* time to read what has arrived meanwhile */

enum {
    BACKOFF_MAX = 11, /* timeouts in a row without progress, in some four minutes, end it */
};

static uint64_t rto_min(const struct flow *f)
{
    return f->port->config.rto_min_ms * NS_PER_MS;
}

static uint32_t stamp_now(void)
{
    return (uint32_t)(sg_stack.now / NS_PER_MS);
}

/*
 * A postponed deadline, the usual case with each acknowledgement, leaves the timer unchanged; the
 * timer is armed again when it fires.
 */
static void set_timer(struct flow *f)
{
    struct recovery *r = &f->recovery;
    uint64_t at = MIN(r->reorder_at, MIN(r->probe_at, r->rto_at));

    if (at != SG_NEVER && (!sg_timer_armed(&r->timer) || at < r->timer.deadline_ns)) {
        sg_timerq_arm(&f->port->timers, &r->timer, at);
    }
}

void recovery_try_again(struct flow *f)
{
    struct sg_timer *t = &f->recovery.timer;
    uint64_t at = sg_stack.now + NO_MEMORY_NS;

    if (!sg_timer_armed(t) || at < t->deadline_ns) {
        sg_timerq_arm(&f->port->timers, t, at);
    }
}

/* RFC 8985, section 7.2: if a probe is useful and due before the timeout. */
static void schedule_probe(struct flow *f)
{
    struct recovery *r = &f->recovery;
    uint64_t at;

    r->probe_at = SG_NEVER;
    if (r->state != RECOVERY_OPEN || r->probing || !r->srtt || !(f->pcb->flags & TF_SACK) ||
        r->sent.list[SEGMENT_SACKED].count || scoreboard_count(&r->sent) == 0) {
        return;
    }
    at = sg_stack.now + rtt_probe(r);
    if (at < r->rto_at) {
        r->probe_at = at;
    }
}

static void restart_rto(struct flow *f)
{
    struct recovery *r = &f->recovery;

    r->rto_at = scoreboard_count(&r->sent) ? sg_stack.now + rtt_timeout(r, rto_min(f)) : SG_NEVER;
}

/* Called by the scoreboard. */
static void delivered(void *user, const struct sent_segment *s)
{
    struct recovery *r = user;

    r->delivered += s->end - s->seq;
    if (!s->again) { /* RFC 6298, section 3: Karn's algorithm */
        r->sample = MIN(r->sample, sg_stack.now - s->sent);
    }
    rack_delivered(r, s, sg_stack.now);
}

/* RFC 6298, section 2.2; RFC 6928, section 2.  A second SYN makes the time ambiguous. */
void recovery_handshake(struct flow *f, const struct tcp_pcb *pcb)
{
    uint64_t rtt = sg_stack.now - f->created;

    if (!f->recovery.srtt && pcb->nrtx == 0 && rtt < 1000 * NS_PER_MS) {
        rtt_sample(&f->recovery, rtt);
    }
}

static void first_segment(struct flow *f, uint32_t seq)
{
    struct recovery *r = &f->recovery;

    if (!r->cwnd) {
        congestion_begin(f);
        r->rack.fack = r->rack.end = r->rack.mult_until = r->fack = seq;
    }
    r->una = f->pcb->lastack;
    r->high = seq;
}

void recovery_segment_out(struct flow *f, const struct tcp_pcb *pcb, const struct tcp_hdr *hdr,
                          uint32_t len)
{
    struct recovery *r = &f->recovery;
    uint32_t seq = lwip_ntohl(hdr->seqno);
    const struct sent_segment *s;

    /* Not from lwIP's queues: a window probe, a keep-alive. */
    if (len == 0 || !pcb->unsent || pcb->unsent->tcphdr != hdr) {
        return;
    }
    if (scoreboard_count(&r->sent) == 0) {
        first_segment(f, seq);
    }
    s = scoreboard_sent(&r->sent, seq, seq + len, sg_stack.now, pcb->unsent);
    if (!s && !scoreboard_reserve(&r->sent, scoreboard_count(&r->sent) + 1)) {
        r->starved = true;
        sg_timerq_arm(&f->port->timers, &r->timer, sg_stack.now);
    }
    if (!s) {
        return;
    }
    r->handed -= !s->again && r->handed;
    r->prr_out += len;
    if (s->again) {
        r->undo_segments++;
        if (!r->again) {
            r->again = true;
            r->again_stamp = stamp_now();
        }
    }
    if (TCP_SEQ_GT(s->end, r->high)) {
        r->high = s->end;
    }
    if (r->rto_at == SG_NEVER || s == scoreboard_at(&r->sent, r->sent.tail)) {
        restart_rto(f);
    }
    if (!s->again) {
        schedule_probe(f);
    }
    set_timer(f);
}

bool recovery_has_room(struct flow *f)
{
    struct recovery *r = &f->recovery;
    const uint32_t others = 2; /* a FIN, and one that lwIP splits in two */

    return scoreboard_reserve(&r->sent, scoreboard_count(&r->sent) + r->handed + 1 + others);
}

void recovery_segment_in(struct flow *f, struct tcp_pcb *pcb, const struct tcp_hdr *hdr,
                         uint32_t len)
{
    struct ack_seen *in = &f->recovery.in;

    pcb->dupacks = 0;
    pcb->cwnd = CWND_OFF;
    in->valid = (TCPH_FLAGS(hdr) & TCP_ACK) != 0;
    in->bare = len == 0 && !(TCPH_FLAGS(hdr) & (TCP_SYN | TCP_FIN));
    in->window = pcb->snd_wnd;
    sack_read_options(in, hdr);
    if (!(pcb->flags & TF_TIMESTAMP)) {
        in->has_echo = false;
    }
}

static bool fits_window(const struct flow *f, const struct tcp_seg *seg)
{
    return lwip_ntohl(seg->tcphdr->seqno) - f->pcb->lastack + seg->len <= f->pcb->snd_wnd;
}

/* lwIP sends what is unsent, so it gets a queue with just this segment. */
static bool resend(struct flow *f, struct sent_segment *s)
{
    struct tcp_pcb *pcb = f->pcb;
    struct tcp_seg *seg = s->owner, *unsent = pcb->unsent, *unacked = pcb->unacked;
    struct tcp_seg *next = seg->next;
    uint64_t before = f->port->count.retransmits;

    if (!fits_window(f, seg)) {
        return false;
    }
    if (seg == unsent) { /* not sent yet, because there was no route or no memory */
        tcp_output(pcb);
        return false;
    }
    seg->next = NULL;
    pcb->unsent = seg;
    pcb->unacked = NULL;
    pcb->cwnd = CWND_OFF;
    tcp_output(pcb);
    pcb->unsent = unsent;
    pcb->unacked = unacked;
    seg->next = next;
    return f->port->count.retransmits != before;
}

static void transmit_lost(struct flow *f)
{
    struct recovery *r = &f->recovery;
    struct sent_segment *s;

    while ((s = scoreboard_first(&r->sent, SEGMENT_LOST)) != NULL) {
        uint32_t flight = congestion_flight(r);

        if (!r->urgent && flight && flight + (s->end - s->seq) > r->cwnd) {
            r->limited = true;
            return;
        }
        r->urgent = false;
        if (!resend(f, s)) {
            return;
        }
    }
}

/* RFC 8985, section 7.4: has the probe repaired a loss that nothing else revealed? */
static void judge_probe(struct flow *f, bool advanced, bool duplicate)
{
    struct recovery *r = &f->recovery;

    if (!r->probing || TCP_SEQ_LT(r->una, r->probe_end)) {
        return;
    }
    if (!r->probe_again || duplicate || (!advanced && r->in.bare) ||
        (r->in.has_echo && TCP_SEQ_LT(r->in.echo, r->probe_stamp))) {
        r->probing = false; /* the peer has received both, or the first one */
    } else if (TCP_SEQ_GT(r->una, r->probe_end)) {
        r->probing = false;
        r->ssthresh = cubic_reduce(&r->cubic, r->cwnd, congestion_mss(f));
        r->cwnd = MIN(r->cwnd, r->ssthresh);
    }
}

/* RFC 5681, section 3.2, and RFC 6582, for a peer without SACK. */
static void count_duplicates(struct flow *f, bool advanced)
{
    struct recovery *r = &f->recovery;
    struct sent_segment *oldest;
    bool lost = false;

    if (f->pcb->flags & TF_SACK) {
        return;
    }
    if (advanced) {
        r->duplicates = 0;
        r->left -= MIN(r->left, r->delivered);
        lost = r->state == RECOVERY_FAST; /* a partial acknowledgement: the next hole */
    } else if (r->in.bare && r->in.window == f->pcb->snd_wnd && scoreboard_count(&r->sent)) {
        r->left += congestion_mss(f);
        lost = ++r->duplicates == 3 && r->state == RECOVERY_OPEN;
    }
    if (r->state == RECOVERY_OPEN && !r->duplicates) {
        r->left = 0;
    }
    oldest = scoreboard_count(&r->sent) ? scoreboard_at(&r->sent, r->sent.tail) : NULL;
    if (lost && oldest && oldest->state == SEGMENT_IN_FLIGHT) {
        scoreboard_lose(&r->sent, oldest);
    }
}

/* Updates the state and the window after an acknowledgement. */
static void react(struct flow *f, uint32_t flight, bool advanced)
{
    struct recovery *r = &f->recovery;

    if (f->pcb->flags & TF_SACK) {
        rack_detect(r, sg_stack.now);
    }
    if (r->state != RECOVERY_OPEN && TCP_SEQ_GEQ(r->una, r->point)) {
        congestion_leave(r);
    }
    if (r->state == RECOVERY_OPEN && r->sent.list[SEGMENT_LOST].count) {
        congestion_enter_fast(f);
    }
    if (r->state == RECOVERY_FAST) {
        congestion_reduce(f, advanced);
    } else {
        congestion_grow(f, flight);
    }
}

static bool take_ack(struct flow *f, bool *oldest_again)
{
    struct recovery *r = &f->recovery;
    const struct sent_segment *oldest = scoreboard_at(&r->sent, r->sent.tail);
    uint32_t una = f->pcb->lastack;

    *oldest_again = oldest->again && TCP_SEQ_GEQ(una, oldest->end);
    if (!TCP_SEQ_GT(una, r->una)) {
        return false;
    }
    r->una = una;
    scoreboard_ack(&r->sent, f->pcb->unacked || f->pcb->unsent ? una : r->high);
    r->backoff = 0;
    return true;
}

void recovery_input_done(struct flow *f)
{
    struct recovery *r = &f->recovery;
    bool advanced, duplicate, oldest_again;
    uint32_t flight;

    if (!r->in.valid || scoreboard_count(&r->sent) == 0) {
        return;
    }
    r->in.valid = false;
    r->delivered = 0;
    r->sample = SG_NEVER;
    flight = congestion_flight(r);
    advanced = take_ack(f, &oldest_again);
    duplicate = f->pcb->flags & TF_SACK && r->in.blocks ? sack_read_blocks(r) : false;
    r->rack.fack = r->fack;
    if (r->sample != SG_NEVER) {
        rtt_sample(r, r->sample);
    }
    congestion_check_echo(r, oldest_again);
    if (duplicate) {
        congestion_check_duplicate(r);
    }
    judge_probe(f, advanced, duplicate);
    count_duplicates(f, advanced);
    react(f, flight, advanced);
    r->limited = false;
    if (advanced) {
        restart_rto(f);
    }
    if (advanced || r->sent.list[SEGMENT_SACKED].count) {
        schedule_probe(f);
    }
    transmit_lost(f);
    set_timer(f);
}

bool recovery_allows(struct flow *f, uint32_t handed, uint32_t len)
{
    struct recovery *r = &f->recovery;

    f->pcb->cwnd = CWND_OFF;
    if (scoreboard_count(&r->sent) == 0 && !r->cwnd) {
        first_segment(f, f->pcb->snd_nxt);
    }
    if (r->extra) {
        r->extra = false;
        return true;
    }
    if (r->sent.list[SEGMENT_LOST].count || congestion_flight(r) + handed + len > r->cwnd) {
        r->limited = true;
        return false;
    }
    return true;
}

/*
 * tcp_output() walks to the last of the segments in flight, which the scoreboard knows.  So its
 * list is empty during the call, unless an empty list might start the persist timer.
 */
void recovery_output(struct flow *f)
{
    struct sent_segment *newest = scoreboard_newest(&f->recovery.sent);
    struct tcp_pcb *pcb = f->pcb;
    struct tcp_seg *first = pcb->unsent, *unacked = pcb->unacked, *last;

    pcb->cwnd = CWND_OFF;
    last = newest ? newest->owner : NULL;
    if (tcp_input_pcb == pcb || !first || !unacked || !last || last->next || last == first ||
        lwip_ntohl(first->tcphdr->seqno) - pcb->lastack + first->len > pcb->snd_wnd) {
        tcp_output(pcb);
        return;
    }
    pcb->unacked = NULL;
    tcp_output(pcb);
    last->next = pcb->unacked;
    pcb->unacked = unacked;
}

/* RFC 8985, section 7.3: new data if there is any, else the last segment. */
static void send_probe(struct flow *f)
{
    struct recovery *r = &f->recovery;
    uint32_t high = r->high;

    r->probe_at = SG_NEVER;
    r->probing = true;
    r->probe_stamp = stamp_now();
    if (f->stream) {
        r->extra = true;
        stream_pump(f->stream);
        r->extra = false;
    }
    r->probe_again = r->high == high;
    if (r->probe_again) {
        r->probing = resend(f, scoreboard_newest(&r->sent));
    }
    r->probe_end = r->high;
    restart_rto(f);
}

bool recovery_withdraw(struct flow *f)
{
    struct recovery *r = &f->recovery;

    if (tcp_rexmit_rto_prepare(f->pcb) != ERR_OK) {
        return false;
    }
    scoreboard_ack(&r->sent, r->high);
    r->rto_at = SG_NEVER;
    r->state = RECOVERY_OPEN;
    r->backoff = 0;
    return true;
}

/* RFC 6298, section 5; RFC 2018, section 8: a SACKed segment that the peer drops is not SACKed. */
static void expire(struct flow *f)
{
    struct recovery *r = &f->recovery;
    const struct sent_segment *oldest = scoreboard_at(&r->sent, r->sent.tail);

    if (oldest->state == SEGMENT_SACKED) {
        scoreboard_renege(&r->sent);
    } else {
        scoreboard_lose_all(&r->sent);
    }
    if (r->state == RECOVERY_OPEN) {
        congestion_remember(r);
        r->ssthresh = cubic_reduce(&r->cubic, r->cwnd, congestion_mss(f));
    }
    r->state = RECOVERY_RTO;
    r->point = r->high;
    r->cwnd = congestion_mss(f);
    r->duplicates = 0;
    r->left = 0;
    r->probing = false;
    r->probe_at = r->reorder_at = SG_NEVER;
    r->backoff++;
    restart_rto(f); /* whatever happens next */
    if (r->backoff >= BACKOFF_MAX) {
        f->pcb->nrtx = TCP_MAXRTX; /* the next slow tick ends the connection */
    }
    /*
     * The peer has shrunk its window below what was sent.  This must not end the connection
     * (RFC 9293, section 3.8.6, SHLD-17): lwIP's persist timer probes.
     */
    if (!fits_window(f, oldest->owner)) {
        if (recovery_withdraw(f)) {
            tcp_output(f->pcb);
        }
        return;
    }
    r->urgent = true;
    transmit_lost(f);
    restart_rto(f);
}

/*
 * Segments that wait in a congested uplink are not lost, up to a limit (clock.c).  And after a
 * pause of this machine, acknowledgements may still wait to be read.
 */
static bool postpone(struct flow *f)
{
    struct recovery *r = &f->recovery;
    struct sg_port *port = f->port;
    uint64_t due = MIN(r->rto_at, r->probe_at);

    if (clock_waits_for_uplink(port)) {
        r->probe_at = SG_NEVER;
        restart_rto(f);
        return true;
    }
    if (due < sg_stack.now - MIN(LATE_NS, sg_stack.now) && !r->postponed) {
        r->postponed = true;
        r->rto_at = MAX(r->rto_at, sg_stack.now + LATE_GRACE_NS);
        if (r->probe_at != SG_NEVER) {
            r->probe_at = MAX(r->probe_at, sg_stack.now + LATE_GRACE_NS);
        }
        return true;
    }
    r->postponed = false;
    return false;
}

/* Called by the port's queue of timers: at the earliest of the times, or before. */
static void timer_expired(struct sg_timer *t, uint64_t now)
{
    struct flow *f = t->opaque;
    struct recovery *r = &f->recovery;

    r->delivered = 0;
    if (r->starved) {
        if (f->stream) {
            stream_end(f->stream, SG_STREAM_NORES);
        }
        tcp_abort(f->pcb);
        return;
    }
    if (scoreboard_count(&r->sent) == 0) {
        r->rto_at = r->probe_at = r->reorder_at = SG_NEVER;
    } else if (r->reorder_at <= now) {
        react(f, congestion_flight(r), false);
        transmit_lost(f);
    } else if (MIN(r->rto_at, r->probe_at) <= now && !postpone(f)) {
        if (r->rto_at <= now) {
            expire(f);
        } else {
            send_probe(f);
        }
    }
    set_timer(f);
    if (f->stream) {
        stream_settle(f->stream);
    }
}

void recovery_init(struct flow *f)
{
    struct recovery *r = &f->recovery;

    r->sent.account = f->port->net.account;
    r->sent.delivered = delivered;
    r->sent.user = r;
    r->ssthresh = SG_CWND_MAX;
    r->rto_at = r->probe_at = r->reorder_at = SG_NEVER;
    sg_timer_init(&r->timer, timer_expired, f);
    rack_init(&r->rack);
}

void recovery_free(struct flow *f)
{
    sg_timerq_cancel(&f->port->timers, &f->recovery.timer);
    scoreboard_free(&f->recovery.sent);
}
