/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All TCP connections of a port that lwIP owns, by 4-tuple.
 *
 * The demultiplexer looks up every TCP segment of the shared port, so the table is a hash with a
 * seed that peers cannot know.  Entries follow lwIP's connections through the callbacks of its
 * "extension arguments": passive_open (half-open ones included) and destroy.  This is also where
 * the number of connections is bounded, because lwIP allocates from libc.
 */
#include <string.h>

#include "net_priv.h"
#include "lwip_hooks.h"

enum { FIRST_BUCKETS = 64, KEEPALIVES = 5, UNKNOWN_PEER_OCTETS = 65536 };

/* Charged to the account, including lwIP's part. */
enum { FLOW_OCTETS = sizeof(struct flow) + sizeof(struct tcp_pcb) };

void flow_table_init(struct flow_table *t, uint64_t seed)
{
    t->buckets = g_new0(struct flow *, FIRST_BUCKETS);
    t->mask = FIRST_BUCKETS - 1;
    t->count = 0;
    t->seed = seed;
}

void flow_table_free(struct flow_table *t)
{
    g_assert(t->count == 0);
    g_free(t->buckets);
    t->buckets = NULL;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

static unsigned hash_of(const struct flow_table *t, const struct flow_key *key)
{
    uint64_t h = t->seed, v;
    const uint8_t *p = (const uint8_t *)key;
    size_t i;

    G_STATIC_ASSERT(sizeof(*key) == 40);
    for (i = 0; i < sizeof(*key); i += sizeof(v)) {
        memcpy(&v, p + i, sizeof(v));
        h = mix(h, v);
    }
    return (unsigned)(h >> 20);
}

static unsigned bucket_of(const struct flow_table *t, const struct flow_key *key)
{
    return hash_of(t, key) & t->mask;
}

struct flow *flow_find(const struct flow_table *t, const struct flow_key *key)
{
    struct flow *f;

    for (f = t->buckets[bucket_of(t, key)]; f; f = f->next) {
        if (memcmp(&f->key, key, sizeof(*key)) == 0) {
            return f;
        }
    }
    return NULL;
}

/* Adds buckets if there is memory for them; the charge of each flow covers one. */
static void grow(struct flow_table *t)
{
    struct flow **old = t->buckets;
    unsigned i, old_count = t->mask + 1;
    struct flow **buckets = g_try_new0(struct flow *, old_count * 2);
    struct flow *f, *next;

    if (!buckets) {
        return;
    }
    t->mask = old_count * 2 - 1;
    t->buckets = buckets;
    for (i = 0; i < old_count; i++) {
        for (f = old[i]; f; f = next) {
            unsigned b = bucket_of(t, &f->key);

            next = f->next;
            f->next = t->buckets[b];
            t->buckets[b] = f;
        }
    }
    g_free(old);
}

struct flow *flow_of(const struct tcp_pcb *pcb)
{
    return tcp_ext_arg_get(pcb, sg_stack.ext_id);
}

/* Bounds what a connection without an MPA Request (proto/listener.c) makes us keep. */
u32_t sg_net_out_of_order_max(const struct tcp_pcb *pcb)
{
    const struct flow *flow = flow_of(pcb);

    return flow && flow->heard ? UINT32_MAX : UNKNOWN_PEER_OCTETS;
}

/* lwIP frees the pcb. */
static void flow_destroyed(u8_t id, void *data)
{
    struct flow *f = data, **p;
    struct flow_table *t;

    if (!f) {
        return;
    }
    t = &f->port->flows;
    for (p = &t->buckets[bucket_of(t, &f->key)]; *p != f; p = &(*p)->next) {
        g_assert(*p);
    }
    *p = f->next;
    listener_opened(f);
    t->count--;
    sg_stack.flows--;
    pcb_list_remove(f);
    recovery_free(f);
    route_set(f, WAY_ADDRESS, NULL);
    if (f->stream) {
        f->stream->flow = NULL;
    }
    sg_account_give(f->port->net.account, FLOW_OCTETS - sizeof(*f));
    sg_account_object_free(f->port->net.account, f, sizeof(*f));
}

static struct flow *take_memory(struct sg_port *port)
{
    struct sg_account *account = port->net.account;
    struct flow *f = NULL;

    if (sg_account_take(account, FLOW_OCTETS - sizeof(*f))) {
        f = sg_account_object(account, sizeof(*f));
        if (!f) {
            sg_account_give(account, FLOW_OCTETS - sizeof(*f));
        }
    }
    return f;
}

static const struct tcp_ext_arg_callbacks flow_callbacks = {
    .destroy = flow_destroyed,
};

/* Frees the oldest TIME-WAIT connection of this port. */
static bool reclaim_time_wait(struct sg_port *port)
{
    struct flow *oldest = pcb_list_oldest_time_wait(port);

    if (oldest) {
        tcp_abort(oldest->pcb);
    }
    return oldest != NULL;
}

/*
 * lwIP's keep-alive (RFC 9293, section 3.8.4), which every received segment restarts: after half
 * of the time it probes, five times, and at its end it resets the connection, whether something is
 * outstanding or not.  So a peer has at least half of the time to answer after a long silence.
 * Each connection has a different time, up to an eighth shorter, so that thousands of connections
 * that fell silent together do not all probe in one turn.
 */
static void watch_peer(struct tcp_pcb *pcb, unsigned timeout_ms, unsigned hash)
{
    if (timeout_ms == SG_PORT_PEER_TIMEOUT_NONE) {
        return;
    }
    pcb->keep_cnt = KEEPALIVES;
    pcb->keep_idle = timeout_ms / 2 - hash % (timeout_ms / 8);
    pcb->keep_intvl = (timeout_ms - pcb->keep_idle) / KEEPALIVES;
    ip_set_option(pcb, SOF_KEEPALIVE);
}

struct flow *flow_new(struct sg_port *port, struct address *addr, const struct flow_key *key,
                      struct tcp_pcb *pcb)
{
    struct flow_table *t = &port->flows;
    struct flow *f;
    unsigned b;

    if (t->count >= port->config.max_connections && !reclaim_time_wait(port)) {
        return NULL;
    }
    if (t->count > t->mask) {
        grow(t);
    }
    f = take_memory(port);
    if (!f) {
        return NULL;
    }
    link_init(&f->half_open);
    f->key = *key;
    f->port = port;
    f->addr = addr;
    f->pcb = pcb;
    f->created = sg_stack.now;
    recovery_init(f);
    b = bucket_of(t, key);
    f->next = t->buckets[b];
    t->buckets[b] = f;
    t->count++;
    sg_stack.flows++;
    pcb_list_add(f);
    tcp_ext_arg_set_callbacks(pcb, sg_stack.ext_id, &flow_callbacks);
    tcp_ext_arg_set(pcb, sg_stack.ext_id, f);
    watch_peer(pcb, port->config.peer_timeout_ms, hash_of(t, key));
    return f;
}

bool flow_end_some(struct sg_stream_net *net, unsigned max)
{
    struct sg_port *port = port_of_net(net);
    struct link *list = &port->lists.time_wait;

    clock_update(port);
    while (!link_alone(list) && max--) { /* the last of many; others end soon, or are half open */
        struct flow *f = link_entry(list->next, struct flow, list);

        if (f->stream) {
            return false;
        }
        tcp_abort(f->pcb);
    }
    return !link_alone(list);
}

void flow_abort_all(struct sg_port *port, const struct address *addr, enum sg_stream_end why)
{
    struct flow_table *t = &port->flows;
    unsigned i;

    for (i = 0; i <= t->mask; i++) {
        struct flow *f = t->buckets[i];

        while (f) {
            if (addr && f->addr != addr) {
                f = f->next;
                continue;
            }
            if (f->stream) {
                stream_end(f->stream, why);
            }
            tcp_err(f->pcb, NULL);
            tcp_abort(f->pcb);
            f = t->buckets[i]; /* the chain has changed */
        }
    }
}
