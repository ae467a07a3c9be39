/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Segments behind a gap (docs/wire-2000.md, "Loss").
 *
 * The stream shows octets that it cannot deliver yet, and delivers them later.  If they are a
 * segment beyond doubt, and its order allows it, its payload is placed now.  Nothing else happens:
 * no message is delivered, no state changes, no fault is raised.  Position and header are
 * remembered, and when the segment's turn comes, the header passes all checks, but the payload is
 * not placed again.  Its octets are not looked at then: the stream may have dropped them, which
 * saves the memory and lets its window open.
 */
#include "base/account.h"
#include "proto/rdma_tcp/rt.h"

enum { TABLE = RT_EARLY_MAX * sizeof(struct rt_early) };

void rt_early_free(struct sg_conn *c)
{
    sg_account_free(c->e->host->account, c->rt->rx.early, TABLE);
    c->rt->rx.early = NULL;
    c->rt->rx.early_count = 0;
}

/* Forgets the places in front of the next segment to be taken. */
static void forget(struct sg_conn *c)
{
    struct rt_conn *rt = c->rt;
    unsigned i, kept = 0;

    for (i = 0; i < rt->rx.early_count; i++) {
        if ((int32_t)(rt->rx.early[i].pos - rt->rx.pos) >= 0) {
            rt->rx.early[kept++] = rt->rx.early[i];
        }
    }
    rt->rx.early_count = kept;
    if (!kept) {
        rt_early_free(c);
    }
}

static const struct rt_early *find(const struct rt_conn *rt, uint32_t pos)
{
    unsigned i;

    for (i = 0; i < rt->rx.early_count; i++) {
        if (rt->rx.early[i].pos == pos) {
            return &rt->rx.early[i];
        }
    }
    return NULL;
}

/* It stays in the table: if the segment has to wait, it is taken again. */
const struct rt_early *rt_early_now(struct sg_conn *c)
{
    if (!c->rt->rx.early) {
        return NULL;
    }
    forget(c);
    return find(c->rt, c->rt->rx.pos);
}

/* Room for one more; false: the table is full, or there is no memory for it. */
static bool has_room(struct sg_conn *c)
{
    struct rt_conn *rt = c->rt;

    if (!rt->rx.early) {
        rt->rx.early = sg_account_new(c->e->host->account, TABLE);
    }
    return rt->rx.early && rt->rx.early_count < RT_EARLY_MAX;
}

static void remember(struct rt_conn *rt, uint32_t pos, size_t whole, const struct sg_rt_seg *seg)
{
    struct rt_early *e = &rt->rx.early[rt->rx.early_count++];

    *e = (struct rt_early){
        .pos = pos, .len = (uint32_t)whole, .payload = (uint32_t)seg->payload.len, .h = seg->h
    };
    memcpy(e->control, seg->control.p, seg->control.len); /* place() has checked the length */
}

static bool place_write(struct sg_conn *c, const struct sg_rt_seg *seg)
{
    const struct rt_message *now = &c->rt->rx.now;
    uint64_t to = rt_tagged_offset(seg);

    if (seg->h.clen > 1 || seg->payload.len > seg->h.rdma_len ||
        !rt_order_allows(c, seg->h.number, seg->h.order)) {
        return false;
    }
    if (now->open && seg->h.number == now->number &&
        (now->type != SG_RT_WRITE || seg->h.begin || seg->h.buffer_id != now->buffer_id ||
         to - now->to > now->rdma_len - seg->payload.len)) {
        return false;
    }
    return c->e->ops->place_write(c->user, seg->h.buffer_id, to, seg->payload.p,
                                  seg->payload.len) == SG_MEM_OK;
}

/* Only of the Send under way: which Receive another one takes is not known. */
static bool place_send(struct sg_conn *c, const struct sg_rt_seg *seg)
{
    const struct rt_message *now = &c->rt->rx.now;

    if (!now->open || seg->h.number != now->number || now->type != SG_RT_SEND || seg->h.begin ||
        seg->h.clen || seg->h.res & SG_RT_RES_SETUP || c->peer.count) {
        return false;
    }
    return c->e->ops->place_recv(c->user, c->rt->rx.msn, seg->h.data_offset, seg->payload.p,
                                 seg->payload.len) == SG_RECV_OK;
}

static bool place_response(struct sg_conn *c, const struct sg_rt_seg *seg)
{
    unsigned before;
    const struct conn_orq *r = requests_find_read(c, seg->h.number, &before);

    if (!r || seg->h.clen || (seg->h.order != SG_RT_AT_ONCE && before > seg->h.order) ||
        !sg_range_ok(seg->h.data_offset, seg->payload.len, r->length)) {
        return false;
    }
    return c->e->ops->place_read(c->user, &r->sink, seg->h.data_offset, seg->payload.p,
                                 seg->payload.len) == SG_MEM_OK;
}

/* Places the payload if that is right now; false: it waits, or there is none. */
static bool place(struct sg_conn *c, const struct sg_rt_seg *seg)
{
    const struct rt_conn *rt = c->rt;
    uint32_t present = rt->rx.now.open ? rt->rx.now.number : rt->rx.next;

    if (!seg->payload.len) {
        return false;
    }
    if (seg->h.type == SG_RT_READ_RESP) {
        return place_response(c, seg);
    }
    if (seg->h.number - present >= RT_AHEAD_MAX) {
        return false;
    }
    return seg->h.type == SG_RT_WRITE ? place_write(c, seg) : place_send(c, seg);
}

/* One segment that begins with p, at 'pos'; returns its length, 0: it has to wait. */
static size_t take_early(struct sg_conn *c, uint32_t pos, const uint8_t *p, size_t n)
{
    struct rt_conn *rt = c->rt;
    struct sg_rt_seg seg;
    size_t whole;

    if (sg_rt_parse(sg_span_of(p, n), true, &seg) != SG_WIRE_OK || seg.h.version != SG_RT_VERSION ||
        seg.h.conn_id != rt->conn_id) {
        return 0; /* no segment begins here */
    }
    whole = sg_rt_wire_len((size_t)(seg.payload.p + seg.payload.len - p));
    if (find(rt, pos)) {
        return whole;
    }
    if (has_room(c) && place(c, &seg) && !conn_dead(c)) {
        remember(rt, pos, whole, &seg);
        c->e->stats.rx_early++;
    }
    return whole;
}

bool rt_receive_early(struct sg_conn *c, uint32_t ahead, const uint8_t *p, size_t n)
{
    uint32_t pos = c->rt->rx.seen + ahead;
    bool all = true;

    if (c->rt->rx.early) {
        forget(c);
    }
    while (n) {
        size_t whole;

        if (!rt_receiving(c) || c->stall || conn_observed(c)) {
            return false;
        }
        whole = take_early(c, pos, p, n);
        all = all && whole && !conn_dead(c) && find(c->rt, pos);
        if (!whole) {
            return false;
        }
        pos += (uint32_t)whole;
        p += whole;
        n -= whole;
    }
    return all;
}
