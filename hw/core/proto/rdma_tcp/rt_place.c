/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Incoming messages of RDMA/TCP of 2000: their sequence and order, placement, delivery.
 *
 * Each type has a handler.  It first compares the segment with what must come next, then asks verbs
 * to place it, and only then changes the state, so that a segment that has to wait can be taken
 * again as if it had not been there.
 *
 * Order.  What arrives in order follows everything of its direction.  All that may be unprocessed
 * are Reads of the peer that we have not answered; a Send or Write that does not leave them out
 * waits until they are.
 */
#include "proto/rdma_tcp/rt.h"

uint64_t rt_tagged_offset(const struct sg_rt_seg *seg)
{
    uint64_t upper = seg->control.len ? sg_get_be32(seg->control.p) : 0;

    return upper << 32 | seg->h.buffer_offset;
}

uint32_t rt_oldest_open(const struct sg_conn *c)
{
    const struct rt_conn *rt = c->rt;

    if (c->peer.count) {
        return requests_head(c)->h.msn;
    }
    return rt->rx.now.open ? rt->rx.now.number : rt->rx.next;
}

bool rt_order_allows(const struct sg_conn *c, uint32_t number, uint16_t order)
{
    return order == SG_RT_AT_ONCE || number - rt_oldest_open(c) <= order;
}

void rt_answered(struct sg_conn *c)
{
    if (c->rt->rx.waits && c->stall) {
        c->rt->rx.waits = false;
        timers_start(c, &c->rt->rx.resume, conn_now(c)); /* not inside a call of verbs */
    }
}

/* The order of a segment in sequence. */
static bool must_wait(struct sg_conn *c, const struct sg_rt_hdr *h)
{
    c->rt->rx.waits = c->peer.count && !rt_order_allows(c, h->number, h->order);
    return c->rt->rx.waits;
}

static int fault(struct sg_conn *c, const char *what)
{
    rt_fault(c, SG_FAULT_FORM, what);
    return SEG_OK;
}

/* After an upcall that placed tagged data. */
static int placed_memory(struct sg_conn *c, enum sg_mem_status st)
{
    switch (st) {
    case SG_MEM_OK:
        return SEG_OK;
    case SG_MEM_LATER:
        return SEG_LATER;
    case SG_MEM_CLOSED:
        return SEG_CLOSED;
    case SG_MEM_FAULT:
        rt_local_failed(c);
        return SEG_OK;
    default:
        rt_fault(c, SG_FAULT_ACCESS, "STag, rights or bounds");
        return SEG_OK;
    }
}

/* As in rdmap_rx.c: messages are counted by their first segments. */
static void count(struct sg_conn *c, uint64_t *ordinal)
{
    if (!*ordinal) {
        *ordinal = ++c->rx.begun;
    }
    c->rx.now = *ordinal;
}

/* A segment of group 1: does it begin or continue a message as it must?  NULL: yes. */
static const char *out_of_sequence(const struct sg_conn *c, const struct sg_rt_hdr *h)
{
    const struct rt_message *now = &c->rt->rx.now;

    if (h->begin == now->open) {
        return now->open ? "a message begins within another" : "a message without its beginning";
    }
    if (h->begin) {
        return h->number == c->rt->rx.next ? NULL : "Message Number";
    }
    return h->number == now->number && h->type == now->type ? NULL
                                                            : "a message goes on as another one";
}

/* The segment was taken. */
static void advance(struct sg_conn *c, const struct sg_rt_seg *seg)
{
    struct rt_message *now = &c->rt->rx.now;

    if (seg->h.begin) {
        *now = (struct rt_message){
            .open = true,
            .type = seg->h.type,
            .number = seg->h.number,
            .buffer_id = seg->h.buffer_id,
            .rdma_len = seg->h.rdma_len,
            .to = rt_tagged_offset(seg),
        };
        c->rt->rx.next = seg->h.number + 1;
    }
    now->done += (uint32_t)seg->payload.len;
    now->open = !seg->h.end;
}

/* ---- Write ---- */

static const char *write_fault(const struct sg_conn *c, const struct sg_rt_seg *seg)
{
    const struct rt_message *now = &c->rt->rx.now;
    uint32_t done = seg->h.begin ? 0 : now->done;

    if (!seg->h.begin && (seg->h.buffer_id != now->buffer_id || seg->h.rdma_len != now->rdma_len ||
                          rt_tagged_offset(seg) != now->to + done)) {
        return "Buffer ID, Buffer Offset or RDMA Length";
    }
    if (seg->payload.len > seg->h.rdma_len - done ||
        (seg->h.end && seg->payload.len != seg->h.rdma_len - done)) {
        return "the payload is not of RDMA Length";
    }
    return NULL;
}

static int take_write(struct sg_conn *c, const struct sg_rt_seg *seg, bool placed)
{
    const struct sg_engine_ops *ops = c->e->ops;
    const char *what = write_fault(c, seg);

    if (what) {
        return fault(c, what);
    }
    count(c, &c->rx.write);
    if (seg->payload.len && !placed) {
        enum sg_mem_status st;

        if (must_wait(c, &seg->h)) {
            return SEG_LATER;
        }
        st = ops->place_write(c->user, seg->h.buffer_id, rt_tagged_offset(seg), seg->payload.p,
                              seg->payload.len);
        if (conn_dead(c) || st != SG_MEM_OK) {
            return conn_dead(c) ? SEG_OK : placed_memory(c, st);
        }
    }
    advance(c, seg);
    if (seg->h.end) {
        c->e->stats.rx_writes++;
        c->rx.write = 0;
        if (seg->h.rdma_len && ops->write_placed) {
            ops->write_placed(c->user);
        }
    }
    return SEG_OK;
}

/* ---- Send ---- */

static int refused_receive(struct sg_conn *c, enum sg_recv_status st)
{
    switch (st) {
    case SG_RECV_LATER:
        return SEG_LATER;
    case SG_RECV_CLOSED:
        return SEG_CLOSED;
    case SG_RECV_NO_BUFFER:
        return fault(c, "a Send without a Receive");
    case SG_RECV_TOO_LONG:
        return fault(c, "a Send that is longer than its Receive");
    default: /* verbs have reported it */
        rt_local_failed(c);
        return SEG_OK;
    }
}

static int take_send(struct sg_conn *c, const struct sg_rt_seg *seg, bool placed)
{
    const struct sg_engine_ops *ops = c->e->ops;
    uint32_t done = seg->h.begin ? 0 : c->rt->rx.now.done;
    struct sg_recv_info info = { .msn = c->rt->rx.msn };
    enum sg_recv_status st;

    if (seg->h.data_offset != done) {
        return fault(c, "Data Offset");
    }
    if (seg->payload.len > UINT32_MAX - done) {
        return fault(c, "a Send of more than 2^32 octets");
    }
    count(c, &c->rx.send);
    if (!placed && must_wait(c, &seg->h)) {
        return SEG_LATER;
    }
    if (!placed) {
        st = ops->place_recv(c->user, info.msn, done, seg->payload.p, seg->payload.len);
        if (conn_dead(c) || st != SG_RECV_OK) {
            return conn_dead(c) ? SEG_OK : refused_receive(c, st);
        }
    }
    advance(c, seg);
    if (seg->h.end) {
        c->rx.send = 0;
        c->rt->rx.msn++;
        c->e->stats.rx_sends++;
        info.length = c->rt->rx.now.done;
        info.solicited = seg->h.res & SG_RT_RES_SE;
        ops->recv_done(c->user, &info);
    }
    return SEG_OK;
}

/* ---- Reads ---- */

static int take_read_request(struct sg_conn *c, const struct sg_rt_seg *seg)
{
    struct conn_irrq r = {
        .kind = SG_MSG_READ_REQ,
        .h.msn = seg->h.number,
        .read = { .src_stag = seg->h.buffer_id,
                  .src_to = rt_tagged_offset(seg),
                  .size = seg->h.rdma_len },
    };

    if (!seg->h.begin || !seg->h.end) {
        return fault(c, "a Read Request of several segments");
    }
    if (c->peer.count >= c->setup.ird) {
        return fault(c, "more Read Requests than IRD");
    }
    c->rx.now = ++c->rx.begun;
    if (r.read.size) {
        enum sg_mem_status st =
            c->e->ops->check_source(c->user, r.read.src_stag, r.read.src_to, r.read.size);

        if (conn_dead(c) || st != SG_MEM_OK) {
            return conn_dead(c) ? SEG_OK : placed_memory(c, st);
        }
    }
    advance(c, seg);
    c->e->stats.rx_reads++;
    requests_accept(c, &r);
    return SEG_OK;
}

static const char *response_fault(const struct sg_conn *c, const struct sg_rt_seg *seg,
                                  const struct conn_orq *r)
{
    if (!r || seg->h.number != r->id) {
        return "a Response to no Read, or out of order";
    }
    if (seg->h.begin == c->rt->rx.response || seg->h.data_offset != c->rx.read_off) {
        return "Data Offset or beginning of a Response";
    }
    if (seg->payload.len > r->length - c->rx.read_off ||
        (seg->h.end && seg->payload.len != r->length - c->rx.read_off)) {
        return "a Response of another length than its Read";
    }
    return NULL;
}

static int take_read_response(struct sg_conn *c, const struct sg_rt_seg *seg, bool placed)
{
    struct conn_orq *r = requests_oldest_read(c);
    const char *what = response_fault(c, seg, r);

    if (what) {
        return fault(c, what);
    }
    count(c, &c->rx.response);
    if (seg->payload.len && !placed) {
        enum sg_mem_status st = c->e->ops->place_read(c->user, &r->sink, c->rx.read_off,
                                                      seg->payload.p, seg->payload.len);

        if (conn_dead(c) || st != SG_MEM_OK) {
            return conn_dead(c) ? SEG_OK : placed_memory(c, st);
        }
    }
    c->rt->rx.response = !seg->h.end;
    c->rx.read_off += (uint32_t)seg->payload.len;
    if (seg->h.end) {
        c->rx.read_off = 0;
        c->rx.response = 0;
        c->e->stats.rx_read_responses += !r->confirm;
        requests_answered(c, r);
    }
    return SEG_OK;
}

int rt_take(struct sg_conn *c, const struct sg_rt_seg *seg, bool placed)
{
    const char *what;

    if (seg->h.type == SG_RT_READ_RESP) {
        return take_read_response(c, seg, placed);
    }
    what = out_of_sequence(c, &seg->h);
    if (what) {
        return fault(c, what);
    }
    switch (seg->h.type) {
    case SG_RT_SEND:
        return take_send(c, seg, placed);
    case SG_RT_WRITE:
        return take_write(c, seg, placed);
    default:
        return take_read_request(c, seg);
    }
}
