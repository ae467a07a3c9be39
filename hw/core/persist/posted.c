/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * S1: posted writes on their way to visibility, and FIFOs of pieces.
 *
 * S1 is one FIFO per device, as PCIe orders posted writes.  The root complex takes the head
 * spontaneously (posted_drain), because the device does other DMA, which is ordered behind it, or
 * because somebody has read what it brought.
 */
#include "persist/segments.h"

/* ---- FIFOs of pieces ---- */

struct piece *sg_dom_new_piece(const struct sg_persist_source *source, uint64_t addr,
                               const void *buf, uint32_t len, uint64_t seq)
{
    struct piece *x = g_malloc(sizeof(*x) + len);

    *x = (struct piece){ .source = *source, .addr = addr, .len = len, .seq = seq };
    x->settled = SG_NEVER;
    memcpy(x->data, buf, len);
    return x;
}

void sg_dom_fifo_push(struct fifo *f, struct piece *x)
{
    x->next = NULL;
    if (f->tail) {
        f->tail->next = x;
    } else {
        f->head = x;
    }
    f->tail = x;
    f->octets += x->len;
    f->count++;
}

void sg_dom_fifo_insert(struct fifo *f, struct piece *x)
{
    struct piece **at = &f->head;

    if (!f->tail || f->tail->seq < x->seq) {
        sg_dom_fifo_push(f, x);
        return;
    }
    while ((*at)->seq < x->seq) {
        at = &(*at)->next;
    }
    x->next = *at;
    *at = x;
    f->octets += x->len;
    f->count++;
}

/* Takes out the piece after prev; NULL: the head. */
struct piece *sg_dom_fifo_take(struct fifo *f, struct piece *prev)
{
    struct piece *x = prev ? prev->next : f->head;

    if (prev) {
        prev->next = x->next;
    } else {
        f->head = x->next;
    }
    if (f->tail == x) {
        f->tail = prev;
    }
    f->octets -= x->len;
    f->count--;
    return x;
}

void sg_dom_fifo_clear(struct fifo *f)
{
    while (f->head) {
        g_free(sg_dom_fifo_take(f, NULL));
    }
}

/* ---- S1 ---- */

/* E3 of one write. */
void sg_dom_become_visible(struct sg_persist *p, uint64_t addr, const uint8_t *buf, size_t len,
                           uint64_t seq, uint8_t mode)
{
    bool cached = mode == SG_MEM_MODE_CACHED || (p->config.ddio && mode != SG_MEM_MODE_DIRECT);

    while (len) {
        uint64_t off, n;
        struct extent *e = sg_dom_extent(p, addr, 1, &off);

        if (!e) {
            return; /* the extent was removed meanwhile */
        }
        n = SG_MIN(len, e->size - off);
        sg_dom_forget_inverted(p, addr, n);
        sg_dom_visible_write(p, e, off, buf, n, seq);
        if (!cached) {
            sg_dom_advance_range(p, e, off, n, SG_DOM_TO_S3, true);
        }
        sg_dom_pace(p, e, off, n);
        addr += n;
        buf += n;
        len -= n;
    }
}

/*
 * Its own, if nothing happened since but that it was posted.  Not in an exact domain: there the
 * beginning of a Flush, and what makes way for somebody else's store, have no number, so between
 * the input and this instant a Flush may have begun that does not cover the piece.
 */
uint64_t sg_dom_visible_seq(struct sg_persist *p, const struct piece *x, uint32_t octets)
{
    uint64_t seq;

    if (!p->limits.exact &&
        (p->seq == x->seq ||
         (p->seq == x->seq + 1 && sg_dom_log_last(p)->kind == SG_PERSIST_EV_POSTED))) {
        return x->seq;
    }
    seq = sg_dom_log(p, SG_PERSIST_EV_VISIBLE, &x->source, x->addr, octets, 0);
    sg_dom_origin_add(p, seq, x);
    return seq;
}

/* The first octets of the head of a queue become visible, by this event. */
static void arrive(struct sg_persist *p, struct fifo *f, uint32_t octets, uint64_t seq)
{
    struct piece *x = f->head;
    GArray *differ = sg_dom_any_order(p) ? sg_dom_segment_arrives(p, x, octets) : NULL;

    sg_dom_become_visible(p, x->addr, x->data, octets, seq, x->source.mode);
    sg_dom_note_inverted(p, differ);
    if (octets == x->len) {
        g_free(sg_dom_fifo_take(f, NULL));
        return;
    }
    x->addr += octets;
    x->len -= octets;
    f->octets -= octets;
    memmove(x->data, x->data + octets, x->len);
}

void sg_dom_arrive(struct sg_persist *p, struct fifo *f, uint32_t octets)
{
    arrive(p, f, octets, f->head->seq);
}

/* The head of a device's S1 becomes visible, or its first octets. */
static void post_visible(struct sg_persist *p, unsigned device, uint32_t octets)
{
    struct fifo *f = &p->s1[device];

    sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
    arrive(p, f, octets, sg_dom_visible_seq(p, f->head, octets));
    p->s1_devices &= ~((uint64_t)!f->head << device);
}

static void post_head_visible(struct sg_persist *p, unsigned device)
{
    post_visible(p, device, p->s1[device].head->len);
}

bool sg_dom_drain_posted(struct sg_persist *p, unsigned device)
{
    if (!p->s1[device].head) {
        return false;
    }
    if (sg_dom_any_order(p)) {
        sg_dom_segments_fenced(p, device);
        return true;
    }
    while (p->s1[device].head) {
        post_head_visible(p, device);
    }
    return true;
}

void sg_dom_pass(struct sg_persist *p, struct piece *x)
{
    struct fifo alone = { .head = NULL };

    sg_dom_fifo_push(&alone, x);
    sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
    arrive(p, &alone, x->len, sg_dom_visible_seq(p, x, x->len));
}

/* Of S1 what was there, and what the connection has brought there since. */
void sg_dom_noted_arrives(struct sg_persist *p, const struct sg_persist_source *source,
                          const struct sg_persist_flush_note *note, const struct sg_dom_flushed *of)
{
    const struct fifo *f = &p->s1[source->unit];
    uint64_t since = p->posted[source->unit] - note->posted;
    uint64_t old = f->count > since ? f->count - since : 0, n = 0, until = 0;

    if (sg_dom_any_order(p)) {
        sg_dom_segments_noted(p, source, note, of);
        return;
    }
    for (const struct piece *x = f->head; x; x = x->next) {
        n++;
        if (n <= old || (x->source.qpn == source->qpn && x->seq <= note->seq)) {
            until = n;
        }
    }
    while (until--) {
        post_head_visible(p, source->unit);
    }
    sg_dom_noted_leaves_s0(p, source, note);
}

/* The device posts a piece. */
void sg_dom_post(struct sg_persist *p, struct piece *x)
{
    unsigned device = x->source.unit;
    struct fifo *f = &p->s1[device];

    sg_dom_log(p, SG_PERSIST_EV_POSTED, &x->source, x->addr, x->len, 0);
    x->settled = p->seq;
    if (sg_dom_any_order(p)) {
        sg_dom_fifo_insert(f, x); /* what arrives by an event does so in the order of the inputs */
    } else {
        sg_dom_fifo_push(f, x);
    }
    p->posted[device]++;
    p->s1_devices |= 1ull << device;
    p->merged += f->octets > p->limits.s1_octets;
    while (f->head &&
           (p->config.posted_drain == SG_PERSIST_EAGER || f->octets > p->limits.s1_octets)) {
        post_head_visible(p, device);
    }
    if (p->config.posted_drain == SG_PERSIST_RANDOM) {
        if (f->head && sg_dom_below(&p->rng, p->config.one_in) == 0) {
            for (uint64_t n = 1 + sg_dom_below(&p->rng, f->count); n; n--) {
                post_head_visible(p, device);
            }
        }
        p->posted_due_ns = SG_MIN(p->posted_due_ns, p->now_ns + SG_DOM_POSTED_DUE_NS);
    }
}

struct piece *sg_dom_fifo_last_for(const struct fifo *f, uint64_t lo, uint64_t last)
{
    struct piece *found = NULL;

    for (struct piece *x = f->head; x; x = x->next) {
        if (sg_dom_piece_is_for(x, lo, last)) {
            found = x;
        }
    }
    return found;
}

/* What of S1 is for these lines has arrived, and what is before it. */
void sg_dom_leave_s1(struct sg_persist *p, uint64_t lo, uint64_t last)
{
    const struct piece *until[SG_PERSIST_DEVICES] = { NULL };
    uint64_t left = 0;

    for (uint64_t m = p->s1_devices; m; m &= m - 1) {
        unsigned d = __builtin_ctzll(m);

        until[d] = sg_dom_fifo_last_for(&p->s1[d], lo, last);
        left |= (uint64_t)(until[d] != NULL) << d;
    }
    while (left) {
        unsigned d = __builtin_ctzll(left);
        const struct piece *x;

        for (uint64_t m = left; m; m &= m - 1) {
            unsigned other = __builtin_ctzll(m);

            d = p->s1[other].head->seq < p->s1[d].head->seq ? other : d;
        }
        x = p->s1[d].head;
        left &= ~((uint64_t)(x == until[d]) << d);
        post_visible(p, d, x == until[d] ? SG_MIN(x->len, last + 1 - x->addr) : x->len);
    }
}
