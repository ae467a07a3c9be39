/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flow.h"

#include <glib.h>

#include "wire/mpa_frame.h"

/* A segment that came early. */
struct early {
    uint32_t seq, ack;
    size_t len;
    uint8_t octets[];
};

struct half {
    bool known;    /* next is valid */
    bool dead;     /* a gap was reported */
    uint32_t next; /* the sequence number that comes next */
    uint32_t first;
    GQueue waiting; /* of struct early, by sequence number */
    size_t waiting_octets;
};

/* The two ends, the smaller one first. */
struct key {
    struct rr_end low, high;
};

struct rr_flow {
    struct key key;
    struct rr_end opener;
    void *conn; /* NULL: not followed, because its start is missing */
    struct half half[2];
};

struct rr_flows {
    const struct rr_flow_ops *ops;
    void *opaque;
    GHashTable *current; /* struct key of a flow to the flow */
    GPtrArray *all;
    uint64_t unknown;
};

static guint key_hash(gconstpointer p)
{
    const uint8_t *octets = p;
    guint hash = 5381;

    for (size_t i = 0; i < sizeof(struct key); i++) {
        hash = hash * 33 + octets[i];
    }
    return hash;
}

static gboolean key_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(struct key)) == 0;
}

static struct key key_of(const struct rr_tcp *tcp)
{
    bool swap = memcmp(&tcp->from, &tcp->to, sizeof(tcp->from)) > 0;

    return (struct key){ swap ? tcp->to : tcp->from, swap ? tcp->from : tcp->to };
}

struct rr_flows *rr_flows_new(const struct rr_flow_ops *ops, void *opaque)
{
    struct rr_flows *f = g_new0(struct rr_flows, 1);

    f->ops = ops;
    f->opaque = opaque;
    f->current = g_hash_table_new(key_hash, key_equal);
    f->all = g_ptr_array_new();
    return f;
}

static void drop_waiting(struct half *h)
{
    g_queue_clear_full(&h->waiting, g_free);
    h->waiting_octets = 0;
}

static struct rr_flow *open_flow(struct rr_flows *f, const struct rr_tcp *tcp, bool follow)
{
    struct rr_flow *flow = g_new0(struct rr_flow, 1);

    flow->key = key_of(tcp);
    flow->opener = tcp->from;
    flow->conn = follow ? f->ops->open(f->opaque, tcp) : NULL;
    f->unknown += !follow;
    g_queue_init(&flow->half[0].waiting);
    g_queue_init(&flow->half[1].waiting);
    g_hash_table_replace(f->current, &flow->key, flow);
    g_ptr_array_add(f->all, flow);
    return flow;
}

static bool opens_startup(const struct rr_tcp *tcp)
{
    struct sg_mpa_frame frame;
    size_t used;

    return tcp->payload.len >= SG_MPA_KEY_LEN &&
           sg_mpa_frame_parse(tcp->payload, SG_MPA_REQUEST, &frame, &used) <= SG_WIRE_MORE;
}

/* The flow that the segment belongs to, a new one if it opens one. */
static struct rr_flow *find_flow(struct rr_flows *f, const struct rr_tcp *tcp)
{
    struct key key = key_of(tcp);
    struct rr_flow *flow = g_hash_table_lookup(f->current, &key);
    bool syn = (tcp->flags & (RR_SYN | RR_ACK)) == RR_SYN;

    if (flow && syn && (!flow->half[RR_OUT].known || flow->half[RR_OUT].first != tcp->seq + 1)) {
        flow = NULL;
    }
    if (flow && !flow->conn && !syn && opens_startup(tcp)) {
        flow = NULL;
    }
    if (!flow) {
        flow = open_flow(f, tcp, syn || opens_startup(tcp));
    }
    return flow;
}

/* ---- Order ---- */

static bool is_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

/*
 * Does the segment come too early?  Octets in front of it are missing, or its sender had received
 * octets of the other side that have not been seen.  A FIN counts as an octet.
 */
static bool is_early(const struct rr_flow *flow, enum rr_dir dir, uint32_t seq, uint32_t ack)
{
    const struct half *h = &flow->half[dir], *other = &flow->half[!dir];

    return is_after(seq, h->next) ||
           (other->known && !other->dead && is_after(ack, other->next + 1));
}

/* What is new of octets that start at or before the next one. */
static void deliver(struct rr_flows *f, struct rr_flow *flow, enum rr_dir dir, uint32_t seq,
                    struct sg_span octets)
{
    struct half *h = &flow->half[dir];

    octets = sg_span_from(octets, h->next - seq);
    h->next += (uint32_t)octets.len;
    if (octets.len) {
        f->ops->octets(flow->conn, dir, octets);
    }
}

static void put_early(struct half *h, const struct rr_tcp *tcp)
{
    struct early *e = g_malloc(sizeof(*e) + tcp->payload.len);
    GList *at = h->waiting.tail;

    e->seq = tcp->seq;
    e->ack = tcp->ack;
    e->len = tcp->payload.len;
    memcpy(e->octets, tcp->payload.p, tcp->payload.len);
    while (at && is_after(((struct early *)at->data)->seq, e->seq)) {
        at = at->prev;
    }
    if (at) {
        g_queue_insert_after(&h->waiting, at, e);
    } else {
        g_queue_push_head(&h->waiting, e);
    }
    h->waiting_octets += e->len;
}

/* Delivers one waiting segment, if it is no longer early. */
static bool deliver_waiting(struct rr_flows *f, struct rr_flow *flow, enum rr_dir dir)
{
    struct half *h = &flow->half[dir];
    struct early *e = g_queue_peek_head(&h->waiting);

    if (!e || is_early(flow, dir, e->seq, e->ack)) {
        return false;
    }
    g_queue_pop_head(&h->waiting);
    h->waiting_octets -= e->len;
    deliver(f, flow, dir, e->seq, sg_span_of(e->octets, e->len));
    g_free(e);
    return true;
}

/* Each round delivers a segment, so the loop ends. */
static void drain(struct rr_flows *f, struct rr_flow *flow)
{
    while (deliver_waiting(f, flow, RR_OUT) || deliver_waiting(f, flow, RR_BACK)) {
    }
}

static void gap(struct rr_flows *f, struct rr_flow *flow, enum rr_dir dir)
{
    struct half *h = &flow->half[dir];

    if (!h->dead) {
        f->ops->gap(flow->conn, dir);
    }
    h->dead = true;
    drop_waiting(h);
    drain(f, flow);
}

/* What the waiting segments of this direction wait for will not come. */
static void give_up(struct rr_flows *f, struct rr_flow *flow, enum rr_dir dir)
{
    const struct half *h = &flow->half[dir];
    const struct early *e = g_queue_peek_head(&flow->half[dir].waiting);

    gap(f, flow, is_after(e->seq, h->next) ? dir : !dir);
}

static void data(struct rr_flows *f, struct rr_flow *flow, enum rr_dir dir,
                 const struct rr_tcp *tcp)
{
    struct half *h = &flow->half[dir];

    if (!h->known) {
        h->known = true;
        h->next = h->first = tcp->seq;
    }
    if (is_early(flow, dir, tcp->seq, tcp->ack)) {
        put_early(h, tcp);
        if (h->waiting_octets > RR_WAITING_MAX) {
            give_up(f, flow, dir);
        }
        return;
    }
    deliver(f, flow, dir, tcp->seq, tcp->payload);
    if (tcp->cut && !is_after(h->next, tcp->seq + (uint32_t)tcp->payload.len)) {
        gap(f, flow, dir);
    }
    drain(f, flow);
}

void rr_flows_input(struct rr_flows *f, const struct rr_tcp *tcp)
{
    struct rr_flow *flow = find_flow(f, tcp);
    bool back = memcmp(&tcp->from, &flow->opener, sizeof(tcp->from)) != 0;
    enum rr_dir dir = back ? RR_BACK : RR_OUT;
    struct half *h = &flow->half[dir];

    if (!flow->conn || h->dead) {
        return;
    }
    if (tcp->flags & RR_SYN) {
        h->known = true;
        h->next = h->first = tcp->seq + 1;
    } else if (tcp->payload.len || tcp->cut) {
        data(f, flow, dir, tcp);
    }
    if (tcp->flags & (RR_FIN | RR_RST)) {
        f->ops->closed(flow->conn, dir);
    }
}

uint64_t rr_flows_unknown(const struct rr_flows *f)
{
    return f->unknown;
}

void rr_flows_free(struct rr_flows *f)
{
    for (guint i = 0; i < f->all->len; i++) {
        struct rr_flow *flow = f->all->pdata[i];

        /* At most twice: each time one direction is dead. */
        for (unsigned dir = 0; dir < 4; dir++) {
            if (!g_queue_is_empty(&flow->half[dir % 2].waiting)) {
                give_up(f, flow, dir % 2);
            }
        }
        if (flow->conn) {
            f->ops->end(flow->conn);
        }
        g_free(flow);
    }
    g_ptr_array_free(f->all, true);
    g_hash_table_destroy(f->current);
    g_free(f);
}
