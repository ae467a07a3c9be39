/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams over lwIP: octets behind a gap.
 *
 * lwIP queues a segment behind a gap until its turn.  The user may see it at once, and may then say
 * that it needs the octets no more (proto/stream.h, receive_early).  If so, nothing is kept of them
 * but their place in lwIP's queue (rx_frame.c), and they take nothing of the window, which bounds
 * what this end has to keep: its right edge advances by as many octets, as if they had been
 * received.  A sender that waits for the peer to fill the gap does not run out of window meanwhile.
 *
 * 'ahead' is how far the edge has advanced for octets that have not had their turn.  In their turn
 * they do not advance it again.  Some may come again from the peer, and lwIP may prefer these or
 * drop its queue.  So when nothing waits any more, the rest of 'ahead' is taken from what comes
 * next: the edge then stays for a while, but never moves back (RFC 9293, section 3.8.6).
 */
#include "net_priv.h"

/*
 * At most by one more window.  Not for a peer without SACK: it recognises duplicates of an
 * acknowledgement by an unchanged window (RFC 5681, section 2).  The acknowledgement of this
 * segment has been sent; the next one announces the edge.
 */
static void advance(struct stream *s, size_t n)
{
    struct tcp_pcb *pcb = s->pcb;
    size_t room = s->port->config.window - s->ahead;

    if (s->held || !(pcb->flags & TF_SACK)) {
        return;
    }
    n = MIN(n, MIN(room, (size_t)(TCP_WND - MIN(pcb->rcv_wnd, TCP_WND))));
    s->ahead += (uint32_t)n;
    pcb->rcv_wnd += (tcpwnd_size_t)n;
    tcp_update_rcv_ann_wnd(pcb);
}

bool stream_take_early(struct stream *s, uint32_t seq, const uint8_t *p, size_t n)
{
    const struct tcp_seg *q = s->pcb ? s->pcb->ooseq : NULL;
    bool taken;

    /* If lwIP has queued it as it is, it was sound and within the window. */
    while (q && (q->tcphdr->seqno != seq || q->len != n)) {
        q = q->next;
    }
    if (!q || !n || !s->base.events->receive_early) {
        return false;
    }
    s->busy++;
    taken = s->base.events->receive_early(&s->base, seq - s->pcb->rcv_nxt, p, n);
    if (taken && s->pcb) {
        advance(s, n);
    }
    stream_upcall_done(s);
    return taken;
}

uint32_t stream_opens_window(struct stream *s, const struct pbuf *p)
{
    uint32_t all = p->tot_len, taken = s->pcb->ooseq ? 0 : all, before;
    const struct pbuf *q;

    for (q = p; q && s->pcb->ooseq; q = q->next) {
        taken += rx_frame_was_taken(q->payload) ? q->len : 0;
    }
    before = MIN(s->ahead, taken);
    s->ahead -= before;
    return all - before;
}
