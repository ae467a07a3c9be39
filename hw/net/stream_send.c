/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams over lwIP: sending.
 *
 * A send is copied once, into the stream's ring, and divided into segments at once: a send that
 * fits into the rest of the last segment joins it, else it begins a new one.  So every segment
 * begins where a send began, as RFC 5044, section 5.1, recommends for FPDUs, unless a send is
 * larger than a segment.
 *
 * Segments are passed to lwIP (by reference into the ring, one tcp_write() each) only when windows
 * allow them to be sent.  The exception: one waits in lwIP if nothing is in flight, for its persist
 * timer.  Until then sends can still join, and the list that lwIP has to walk stays short.
 *
 *       tail           next            head
 *        |  with lwIP    |   cuts[]      |
 *   -----+---------------+---------------+-----
 *
 * Writers: head stream_send(), next stream_pump(), tail sent_cb() in stream_lwip.c.
 */
#include <string.h>

#include "net_priv.h"

enum {
    FIRST_CUTS = 64,
    CUTS_MAX = 65536,
    IP4_TCP_HEADERS = 40,
    IP6_TCP_HEADERS = 60,
    MSS_MIN = 256,        /* a smaller one of the peer is ignored: RFC 9293, section 3.7.1 */
    QUEUELEN_MAX = 60000, /* pbufs of a connection; lwIP counts in 16 bits */
    PBUFS_PER_CUT = 4,
    FIRST_TAKEN = 16 * 1024,   /* initial part of the ring; more than any segment */
    BATCH_OCTETS = 128 * 1024, /* then check again whether the uplink can send */
};

static struct stream *of_base(struct sg_stream *base)
{
    return link_entry(base, struct stream, base);
}

/* q->ring is NULL when there is no memory. */
void send_queue_init(struct send_queue *q, size_t size, struct sg_account *account)
{
    q->size = (uint32_t)size;
    q->taken = account ? MIN(q->size, FIRST_TAKEN) : q->size;
    if (!sg_account_take(account, q->taken)) {
        return;
    }
    q->ring = g_try_malloc(size); /* the host only provides the pages that are touched */
    q->cuts = q->ring ? sg_account_new(account, FIRST_CUTS * sizeof(*q->cuts)) : NULL;
    q->cuts_mask = FIRST_CUTS - 1;
    if (!q->cuts) {
        g_free(q->ring);
        q->ring = NULL;
        sg_account_give(account, q->taken);
    }
}

void send_queue_free(struct send_queue *q, struct sg_account *account)
{
    if (q->ring) {
        sg_account_give(account, q->taken);
    }
    g_free(q->ring);
    sg_account_free(account, q->cuts, (q->cuts_mask + 1ull) * sizeof(*q->cuts));
}

static unsigned cut_count(const struct send_queue *q)
{
    return q->cuts_head - q->cuts_tail;
}

static size_t place_of(const struct send_queue *q, uint64_t octet)
{
    return (size_t)((octet - q->base) & (q->size - 1));
}

/* While only a part of the ring is used, nothing wraps. */
static size_t free_octets(const struct send_queue *q)
{
    if (q->head == q->tail) {
        return q->taken;
    }
    return q->taken == q->size ? q->size - (size_t)(q->head - q->tail)
                               : q->taken - place_of(q, q->head - 1) - 1;
}

/*
 * Extends the used part of the ring.  A connection charges the adapter's account for the part of
 * its ring that it has used so far.  If the account has no room, the present part must do: it is
 * filled, and restarted when all of it is acknowledged.
 */
static void make_room(struct stream *s, size_t want)
{
    struct send_queue *q = &s->tx;

    if (q->taken == q->size) {
        return;
    }
    if (q->head == q->tail) {
        q->base = (uint32_t)q->head;
    }
    while (q->taken < q->size && free_octets(q) < want &&
           sg_account_take(s->port->net.account, q->taken)) {
        q->taken *= 2;
    }
}

/*
 * The segment size, at most the MTU of the port and of the path: lwIP would accept any MSS option
 * at any time.  Options are not part of the MSS and are deducted here (RFC 9293, section 3.7.1).
 */
size_t stream_emss(struct sg_stream *base)
{
    struct stream *s = of_base(base);
    unsigned headers = s->flow && s->flow->key.family == 6 ? IP6_TCP_HEADERS : IP4_TCP_HEADERS;
    unsigned mtu_mss = (s->flow ? path_mtu(s->flow) : s->port->config.mtu) - headers;
    struct tcp_pcb *pcb = s->pcb;
    unsigned mss;

    if (!pcb || !s->connected) {
        return mtu_mss - LWIP_TCP_OPT_LEN_TS_OUT;
    }
    pcb->mss = (u16_t)CLAMP(pcb->mss, MIN(MSS_MIN, mtu_mss), mtu_mss);
    mss = MIN(pcb->mss, pcb->snd_wnd_max / 2);
    if (mss < MSS_MIN) {
        /* tcp_write() would split segments for a tiny window, so pretend that it is larger. */
        pcb->snd_wnd_max = MAX(pcb->snd_wnd_max, 2 * MSS_MIN);
        mss = MIN(pcb->mss, pcb->snd_wnd_max / 2);
    }
    return mss - (pcb->flags & TF_TIMESTAMP ? LWIP_TCP_OPT_LEN_TS_OUT : 0);
}

size_t stream_room(struct sg_stream *base)
{
    struct stream *s = of_base(base);
    size_t room;

    if (s->ended || s->gone || s->shut || cut_count(&s->tx) >= CUTS_MAX) {
        return 0;
    }
    make_room(s, 2 * stream_emss(base));
    room = free_octets(&s->tx);
    /* A caller that sees too little room for a segment gets 'writable', as after a refusal. */
    if (room < stream_emss(base)) {
        s->wanted = MAX(s->wanted, 1);
    }
    return room;
}

/* Octets that are not acknowledged to lwIP, plus those that it does not have yet. */
size_t stream_unacked(struct sg_stream *base)
{
    const struct send_queue *q = &of_base(base)->tx;

    return (size_t)(q->head - q->tail);
}

/* A quarter of the ring, so that the user is not woken for a few octets. */
bool stream_is_writable_again(const struct stream *s)
{
    return s->wanted && s->connected && !s->shut && cut_count(&s->tx) < CUTS_MAX &&
           free_octets(&s->tx) >= MAX(MIN(s->wanted, s->tx.taken), s->tx.taken / 4);
}

static void ring_write(struct send_queue *q, const struct iovec *iov, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        const uint8_t *p = iov[i].iov_base;
        size_t left = iov[i].iov_len;

        while (left) {
            size_t at = place_of(q, q->head);
            size_t piece = MIN(left, q->size - at);

            memcpy(q->ring + at, p, piece);
            p += piece;
            left -= piece;
            q->head += piece;
        }
    }
}

/* Makes room for one more; false: no memory.  There is room when a segment has been sent. */
static bool make_cut(struct send_queue *q, struct sg_account *account)
{
    unsigned i, n = cut_count(q);
    size_t octets = (q->cuts_mask + 1ull) * sizeof(*q->cuts);
    uint32_t *cuts;

    if (n <= q->cuts_mask) {
        return true;
    }
    cuts = sg_account_new(account, 2 * octets);
    if (!cuts) {
        return false;
    }
    for (i = 0; i < n; i++) {
        cuts[i] = q->cuts[(q->cuts_tail + i) & q->cuts_mask];
    }
    sg_account_free(account, q->cuts, octets);
    q->cuts = cuts;
    q->cuts_mask = q->cuts_mask * 2 + 1;
    q->cuts_tail = 0;
    q->cuts_head = n;
    return true;
}

static void add_cut(struct send_queue *q, size_t len, size_t emss)
{
    uint32_t *last;

    if (cut_count(q)) {
        last = &q->cuts[(q->cuts_head - 1) & q->cuts_mask];
        if (*last + len <= emss) {
            *last += (uint32_t)len;
            return;
        }
    }
    q->cuts[q->cuts_head++ & q->cuts_mask] = (uint32_t)len;
}

bool stream_send(struct sg_stream *base, const struct iovec *iov, unsigned n, bool more)
{
    struct stream *s = of_base(base);
    size_t len = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        len += iov[i].iov_len;
    }
    make_room(of_base(base), len);
    if (len > stream_room(base) || !make_cut(&s->tx, s->port->net.account)) {
        s->wanted = MAX(s->wanted, len);
        return false;
    }
    if (len) {
        ring_write(&s->tx, iov, n);
        add_cut(&s->tx, len, stream_emss(base));
    }
    if (!more) {
        stream_push(base);
    }
    return true;
}

void stream_push(struct sg_stream *base)
{
    struct stream *s = of_base(base);

    if (s->pcb && s->connected) {
        if (sg_stack.active != s->port) {
            clock_update(s->port);
        }
        stream_pump(s);
        if (sg_stack.active != s->port) {
            clock_arm(s->port);
        }
    }
}

/* lwIP's queues of a connection, set aside while a batch is being made; see write_cut(). */
struct batch {
    struct tcp_seg *unsent, *unacked;
    struct tcp_seg *first, *last; /* the new ones */
    unsigned queuelen;
};

static void batch_begin(struct batch *b, struct tcp_pcb *pcb)
{
    *b = (struct batch){
        .unsent = pcb->unsent,
        .unacked = pcb->unacked,
        .queuelen = pcb->snd_queuelen,
    };
}

static void batch_collect(struct batch *b, struct tcp_pcb *pcb)
{
    struct tcp_seg *seg;

    for (seg = pcb->unsent; seg; seg = seg->next) {
        if (b->last) {
            b->last->next = seg;
        } else {
            b->first = seg;
        }
        b->last = seg;
    }
    b->queuelen += pcb->snd_queuelen;
}

static void batch_end(struct batch *b, struct tcp_pcb *pcb)
{
    struct tcp_seg **tail = &b->unsent;

    while (*tail) {
        tail = &(*tail)->next;
    }
    *tail = b->first;
    pcb->unsent = b->unsent;
    pcb->unacked = b->unacked;
    pcb->snd_queuelen = (u16_t)b->queuelen;
}

/*
 * Passes the next 'len' octets to lwIP as one segment, in two pieces at the end of the ring.  lwIP
 * would fill up the last unsent segment first, and search for it from the front, so its queues
 * are empty meanwhile.  Returns what it took: less than len if it has no memory.
 */
static size_t write_cut(struct stream *s, struct batch *b, size_t len, bool last)
{
    struct send_queue *q = &s->tx;
    struct tcp_pcb *pcb = s->pcb;
    size_t done = 0;

    pcb->unsent = pcb->unacked = NULL;
    pcb->snd_queuelen = 0;
    while (done < len) {
        size_t at = place_of(q, q->next + done);
        size_t piece = MIN(len - done, q->size - at);
        bool push = last && done + piece == len;

        if (tcp_write(pcb, q->ring + at, (u16_t)piece, push ? 0 : TCP_WRITE_FLAG_MORE) != ERR_OK) {
            break;
        }
        done += piece;
    }
    batch_collect(b, pcb);
    return done;
}

/* The peer's window and the congestion window. */
static bool window_allows(const struct tcp_pcb *pcb, const struct batch *b, size_t len)
{
    if (!b->unsent && !b->unacked && !b->first) {
        return true;
    }
    return (u32_t)(pcb->snd_lbb - pcb->lastack) + len <= pcb->snd_wnd &&
           b->queuelen + PBUFS_PER_CUT <= QUEUELEN_MAX && recovery_has_room(flow_of(pcb)) &&
           recovery_allows(flow_of(pcb), pcb->snd_lbb - pcb->snd_nxt, (u32_t)len);
}

/* True: something was passed to lwIP. */
static bool submit(struct stream *s)
{
    struct send_queue *q = &s->tx;
    size_t emss = stream_emss(&s->base), len, done;
    uint64_t limit = q->next + BATCH_OCTETS;
    struct batch b;

    batch_begin(&b, s->pcb);
    if (!b.unsent) {
        s->flow->recovery.handed = 0;
    }
    while (cut_count(q) && q->next < limit) {
        uint32_t *cut = &q->cuts[q->cuts_tail & q->cuts_mask];

        len = MIN(*cut, emss);
        if (!window_allows(s->pcb, &b, len)) {
            break;
        }
        done = write_cut(s, &b, len, cut_count(q) == 1 && len == *cut);
        s->flow->recovery.handed += done > 0;
        q->next += done;
        *cut -= (uint32_t)done;
        if (*cut == 0) {
            q->cuts_tail++;
        }
        if (done < len) {
            recovery_try_again(s->flow);
            break;
        }
    }
    batch_end(&b, s->pcb);
    return b.first != NULL;
}

static bool uplink_takes(struct stream *s)
{
    struct sg_port *port = s->port;

    if (port->ops->can_send && !port->ops->can_send(port->opaque)) {
        if (link_alone(&s->blocked)) {
            link_append(&port->blocked, &s->blocked);
        }
        return false;
    }
    return true;
}

void stream_pump(struct stream *s)
{
    if (!s->connected || s->fin) {
        return;
    }
    pcb_list_wake(s->flow);
    while (cut_count(&s->tx) && uplink_takes(s) && submit(s)) {
        recovery_output(s->flow);
        if (tcp_input_pcb == s->pcb) {
            return; /* nothing was sent yet; demux.c calls again when lwIP is done */
        }
    }
    if (s->shut && cut_count(&s->tx) == 0) {
        s->fin = true;
        tcp_shutdown(s->pcb, 0, 1);
    }
}

/* A stream that is stopped again is appended behind 'last'. */
void stream_pump_blocked(struct sg_port *port)
{
    struct link *last = port->blocked.prev, *l;
    bool more = !link_alone(&port->blocked);

    port->uplink_ready = false;
    while (more) {
        struct stream *s = link_entry(l = port->blocked.next, struct stream, blocked);

        more = l != last;
        link_remove(l);
        if (s->pcb) {
            stream_pump(s);
        }
    }
}

void sg_port_uplink_ready(struct sg_port *port)
{
    if (link_alone(&port->blocked)) {
        return;
    }
    if (sg_stack.active || sg_stack.sending) {
        port->uplink_ready = true;
        port_kick(port);
        return;
    }
    clock_update(port);
    stream_pump_blocked(port);
    clock_arm(port);
}
