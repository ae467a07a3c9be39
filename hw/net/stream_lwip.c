/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams over lwIP: opening, events, closing.
 *
 * lwIP calls back from deep inside its input path.  Three events are passed to the user from there,
 * because they must not wait: accept, connected, receive.  The others (writable, peer_closed,
 * closed) are recorded in the stream and delivered by stream_work(), when lwIP has returned, at the
 * end of sg_port_input() or 'run'.  So an error that lwIP reports during a call of the user never
 * becomes an upcall inside that call.
 *
 * A user may abort a stream in any upcall.  The stream then loses its pcb at once; the callback
 * that made the upcall sees that and returns ERR_ABRT, which lwIP needs to know; the memory is
 * freed when the last upcall of this stream has returned ('busy').
 *
 *   lwIP's event                              upcall to the user
 *   connected                                 connected
 *   recv with data / without                  receive / peer_closed
 *   err RST while connecting / later          closed REFUSED / RESET
 *   err CLSD (last ACK of our FIN came), or
 *   the connection is in TIME-WAIT            closed CLOSED
 *   err ABRT (retransmission gave up)         closed TIMEOUT
 *   nothing until connect_until               closed TIMEOUT
 */
#include <string.h>

#include "net_priv.h"

enum {
    EPHEMERAL_FIRST = 49152, /* RFC 6335, section 6 */
    EPHEMERAL_COUNT = 65536 - EPHEMERAL_FIRST,
    ACK_PARTS = 8, /* of the window: no acknowledgement is delayed for more than one part */
};

static struct stream *of_base(struct sg_stream *base)
{
    return link_entry(base, struct stream, base);
}

static void stream_free(struct stream *s)
{
    link_remove(&s->all);
    link_remove(&s->connecting);
    link_remove(&s->blocked);
    link_remove(&s->work);
    link_remove(&s->ack);
    send_queue_free(&s->tx, s->port->net.account);
    s->port->count.streams--;
    sg_account_object_free(s->port->net.account, s, sizeof(*s));
}

/* Separates lwIP and the stream; the pcb stays. */
static void detach(struct stream *s)
{
    if (s->pcb) {
        tcp_arg(s->pcb, NULL);
        tcp_recv(s->pcb, NULL);
        tcp_sent(s->pcb, NULL);
        tcp_err(s->pcb, NULL);
        s->pcb = NULL;
    }
    link_remove(&s->ack);
    link_remove(&s->connecting);
    link_remove(&s->blocked);
    if (s->flow) {
        s->flow->stream = NULL;
        s->flow = NULL;
    }
}

void stream_enqueue_work(struct stream *s)
{
    if (link_alone(&s->work)) {
        link_append(&s->port->work, &s->work);
        if (sg_stack.active != s->port) {
            port_kick(s->port);
        }
    }
}

void stream_end(struct stream *s, enum sg_stream_end why)
{
    if (s->ended || s->gone) {
        return;
    }
    detach(s);
    s->ended = true;
    s->end = why;
    stream_enqueue_work(s);
}

void stream_upcall_done(struct stream *s)
{
    if (--s->busy == 0 && s->gone) {
        stream_free(s);
    }
}

static void deliver(struct stream *s)
{
    s->busy++;
    link_remove(&s->work);
    if (s->peer_fin && !s->gone) {
        s->peer_fin = false;
        s->base.events->peer_closed(&s->base);
    }
    if (!s->ended && !s->gone && stream_is_writable_again(s)) {
        s->wanted = 0;
        s->base.events->writable(&s->base);
    }
    if (s->ended && !s->gone) {
        s->gone = true;
        s->base.events->closed(&s->base, s->end);
    }
    stream_upcall_done(s);
}

void stream_work(struct sg_port *port)
{
    while (!link_alone(&port->work)) {
        deliver(link_entry(port->work.next, struct stream, work));
    }
}

void stream_settle(struct stream *s)
{
    if (!s->pcb) {
        return;
    }
    stream_pump(s);
    if (s->pcb->state == TIME_WAIT) {
        stream_end(s, SG_STREAM_CLOSED);
    } else if (stream_is_writable_again(s)) {
        stream_enqueue_work(s);
    }
}

/* lwIP's callbacks. */

/*
 * Limits lwIP's largest window to the port's.  At most 64 KiB have been announced so far: the
 * window of a SYN is not scaled (RFC 7323, section 2.2).
 */
static void limit_window(struct stream *s)
{
    u32_t window = (u32_t)s->port->config.window;

    s->pcb->rcv_wnd = MIN(s->pcb->rcv_wnd, window);
    s->pcb->rcv_ann_wnd = MIN(s->pcb->rcv_ann_wnd, window);
    s->pcb->rcv_ann_right_edge = s->pcb->rcv_nxt + UINT16_MAX;
}

static err_t connected_cb(void *arg, struct tcp_pcb *pcb, err_t err)
{
    struct stream *s = arg;
    err_t result;

    limit_window(s);
    s->connected = true;
    link_remove(&s->connecting);
    s->busy++;
    s->base.events->connected(&s->base);
    if (s->pcb) {
        stream_pump(s);
    }
    result = s->pcb ? ERR_OK : ERR_ABRT;
    stream_upcall_done(s);
    return result;
}

/*
 * Frames come from the uplink several at a time, and each acknowledgement costs as much as a
 * frame and wakes the peer.  So the acknowledgement that RFC 9293, section 3.8.6.3, requires for
 * every second segment waits until the host calls 'run', when it has passed on all of its frames;
 * like that of hosts whose interface merges segments, it then covers all of them.  lwIP's delayed
 * acknowledgement stays armed behind it.  Segments out of order, and those that fill a hole, are
 * acknowledged at once (RFC 5681, section 4.2); lwIP would delay every second one of the latter.
 */
static void hold_ack(struct stream *s, unsigned octets)
{
    struct tcp_pcb *pcb = s->pcb;

    s->held_octets += octets;
    if (s->flow->gap) {
        tcp_ack_now(pcb);
        return;
    }
    if (!(pcb->flags & TF_ACK_NOW) || pcb->state != ESTABLISHED) {
        return;
    }
    if (s->held_octets >= s->port->config.window / ACK_PARTS) {
        s->held_octets = 0;
        return;
    }
    tcp_clear_flags(pcb, TF_ACK_NOW);
    tcp_set_flags(pcb, TF_ACK_DELAY);
    if (link_alone(&s->ack)) {
        link_append(&s->port->acks, &s->ack);
        port_kick(s->port);
    }
}

void stream_send_acks(struct sg_port *port)
{
    while (!link_alone(&port->acks)) {
        struct stream *s = link_entry(port->acks.next, struct stream, ack);

        link_remove(&s->ack);
        s->held_octets = 0;
        if (s->pcb && (s->pcb->flags & TF_ACK_DELAY)) {
            tcp_ack_now(s->pcb);
            tcp_output(s->pcb);
        }
    }
}

static err_t recv_cb(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
    struct stream *s = arg;
    unsigned octets, opens;
    struct pbuf *q;
    err_t result;

    if (!p) {
        s->peer_fin = true;
        stream_enqueue_work(s);
        return ERR_OK;
    }
    s->busy++;
    s->flow->heard = true;
    opens = stream_opens_window(s, p);
    if (s->held) {
        s->unread += opens;
    } else {
        tcp_recved(pcb, (u16_t)opens);
    }
    for (q = p; q && s->pcb; q = q->next) {
        if (q->len) {
            s->base.events->receive(&s->base, q->payload, q->len);
        }
    }
    octets = p->tot_len;
    pbuf_free(p);
    if (s->pcb) {
        hold_ack(s, octets);
    }
    result = s->pcb ? ERR_OK : ERR_ABRT;
    stream_upcall_done(s);
    return result;
}

static err_t sent_cb(void *arg, struct tcp_pcb *pcb, u16_t len)
{
    struct send_queue *q = &((struct stream *)arg)->tx;

    q->tail += len;
    g_assert(q->tail <= q->next);
    if (q->tail == q->head) { /* start at the beginning, where the cache is warm */
        q->tail = q->next = q->head = 0;
    }
    return ERR_OK;
}

/* lwIP frees the pcb, or has freed it. */
static void err_cb(void *arg, err_t err)
{
    struct stream *s = arg;

    s->pcb = NULL;
    switch (err) {
    case ERR_CLSD:
        stream_end(s, SG_STREAM_CLOSED);
        break;
    case ERR_RST:
        stream_end(s, s->connected ? SG_STREAM_RESET : SG_STREAM_REFUSED);
        break;
    default:
        stream_end(s, SG_STREAM_TIMEOUT);
        break;
    }
}

static void attach(struct stream *s, struct flow *flow)
{
    struct tcp_pcb *pcb = flow->pcb;

    s->flow = flow;
    s->pcb = pcb;
    flow->stream = s;
    tcp_arg(pcb, s);
    tcp_recv(pcb, recv_cb);
    tcp_sent(pcb, sent_cb);
    tcp_err(pcb, err_cb);
    tcp_nagle_disable(pcb);
}

/* Data received meanwhile open the window again; lwIP takes 16 bits at a time. */
static void stream_hold(struct sg_stream *base, bool held)
{
    struct stream *s = of_base(base);

    s->held = held;
    if (!held && s->unread && sg_stack.active != s->port) {
        clock_update(s->port);
    }
    if (!held && s->unread && s->flow) {
        pcb_list_wake(s->flow);
    }
    while (!held && s->unread && s->pcb) {
        u16_t part = (u16_t)(s->unread < UINT16_MAX ? s->unread : UINT16_MAX);

        s->unread -= part;
        tcp_recved(s->pcb, part);
    }
}

static void endpoint_of_key(struct sg_endpoint *e, const struct flow_key *key, const uint8_t ip[16],
                            uint16_t port)
{
    memset(e, 0, sizeof(*e));
    e->family = (uint8_t)key->family;
    e->port = port;
    memcpy(e->ip, ip, sizeof(e->ip));
    e->vlan = endpoint_is_link_local(e) ? key->vlan : 0;
}

static void stream_endpoints(struct sg_stream *base, struct sg_endpoint *local,
                             struct sg_endpoint *remote)
{
    struct stream *s = of_base(base);

    static const struct flow_key none;
    const struct flow_key *key = s->flow ? &s->flow->key : &none;

    endpoint_of_key(local, key, key->local_ip, key->local_port);
    endpoint_of_key(remote, key, key->remote_ip, key->remote_port);
}

static void stream_set_next_hop(struct sg_stream *base, const uint8_t next_hop[16])
{
    struct stream *s = of_base(base);

    if (s->flow) {
        route_name(s->flow, next_hop);
    }
}

static const struct sg_stream_ops stream_ops = {
    .room = stream_room,
    .send = stream_send,
    .push = stream_push,
    .shutdown = stream_shutdown,
    .unacked = stream_unacked,
    .abort = stream_abort,
    .emss = stream_emss,
    .hold = stream_hold,
    .set_next_hop = stream_set_next_hop,
    .endpoints = stream_endpoints,
};

/* NULL: no memory. */
static struct stream *stream_new(struct sg_port *port, struct flow *flow)
{
    struct stream *s = sg_account_object(port->net.account, sizeof(*s));

    if (!s) {
        return NULL;
    }
    send_queue_init(&s->tx, port->config.send_buffer, port->net.account);
    if (!s->tx.ring || !scoreboard_reserve(&flow->recovery.sent, 1)) {
        send_queue_free(&s->tx, port->net.account);
        sg_account_object_free(port->net.account, s, sizeof(*s));
        return NULL;
    }
    s->base.ops = &stream_ops;
    s->port = port;
    s->connect_until = SG_NEVER;
    link_append(&port->streams, &s->all);
    link_init(&s->connecting);
    link_init(&s->blocked);
    link_init(&s->work);
    link_init(&s->ack);
    port->count.streams++;
    attach(s, flow);
    return s;
}

/* Called by lwIP for an established connection; its return value is lwIP's. */
err_t stream_accepted(struct tcp_listener *l, struct flow *flow)
{
    struct stream *s = stream_new(flow->port, flow);
    err_t result;
    bool taken;

    if (!s) {
        return ERR_MEM;
    }
    limit_window(s);
    s->connected = true;
    s->busy++;
    taken = l->base.accept(l->base.user, &s->base);
    result = s->pcb ? ERR_OK : ERR_ABRT;
    if (!taken && !s->gone) {
        if (s->pcb) {
            result = ERR_VAL; /* lwIP resets it */
        }
        detach(s);
        s->gone = true;
    }
    stream_upcall_done(s);
    return result;
}

static uint16_t free_local_port(struct sg_port *port, const struct address *addr,
                                struct flow_key *key)
{
    unsigned start = 0, i;

    port->ops->random(port->opaque, &start, sizeof(start));
    for (i = 0; i < EPHEMERAL_COUNT; i++) {
        key->local_port = (uint16_t)(EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT);
        if (!flow_find(&port->flows, key) && !listener_find(port, addr, key->local_port)) {
            return key->local_port;
        }
    }
    return 0;
}

static struct address *local_address(struct sg_port *port, const struct sg_endpoint *local,
                                     const struct sg_endpoint *remote)
{
    struct address *own = address_named(port, remote);
    struct sg_endpoint hop = *remote;
    struct address *addr;

    if (!own && route_is_set(remote->next_hop)) {
        memcpy(hop.ip, remote->next_hop, sizeof(hop.ip));
        if (!endpoint_is_any(local)) {
            return endpoint_is_unicast(&hop) ? address_named(port, local) : NULL;
        }
    }
    addr = own ? own : address_towards(port, &hop);

    if (endpoint_is_any(local) || !addr) {
        return addr;
    }
    addr = address_named(port, local);
    if (addr && endpoint_is_link_local(remote) && addr->ip.vlan != remote->vlan) {
        return NULL;
    }
    return addr;
}

static struct flow *open_flow(struct sg_port *port, struct address *addr, struct flow_key *key)
{
    struct flow *old = flow_find(&port->flows, key);
    struct tcp_pcb *pcb;
    struct flow *flow;

    /*
     * Users name the local port and choose one that is free for them; one in TIME-WAIT is.  As the
     * peer may reopen such a connection (demux.c), so may we: both ends have closed the old
     * connection, and the new one has a new sequence number.
     */
    if (old && !old->stream && old->pcb->state == TIME_WAIT) {
        tcp_abort(old->pcb);
        old = flow_find(&port->flows, key);
    }
    if (old) {
        return NULL;
    }
    pcb = tcp_new();
    if (!pcb) {
        return NULL;
    }
    tcp_bind_netif(pcb, &addr->netif);
    stack_ip_set(&pcb->local_ip, addr->ip.family, addr->ip.ip);
    pcb->local_port = key->local_port;
    TCP_REG(&tcp_bound_pcbs, pcb);
    flow = flow_new(port, addr, key, pcb);
    if (!flow) {
        tcp_abort(pcb);
    }
    return flow;
}

struct sg_stream *stream_connect(struct sg_stream_net *net, const struct sg_endpoint *local,
                                 const struct sg_endpoint *remote,
                                 const struct sg_stream_events *events, void *user,
                                 enum sg_stream_end *why)
{
    struct sg_port *port = port_of_net(net);
    struct flow_key key = {
        .family = remote->family,
        .remote_port = remote->port,
        .local_port = local->port,
    };
    struct address *addr;
    struct stream *s;
    struct flow *flow;
    ip_addr_t to;

    *why = SG_STREAM_UNREACHABLE;
    if (remote->port == 0 || local->family != remote->family || !endpoint_is_unicast(remote)) {
        return NULL;
    }
    addr = local_address(port, local, remote);
    if (!addr) {
        return NULL;
    }
    *why = SG_STREAM_NORES;
    clock_update(port);
    memcpy(key.local_ip, addr->ip.ip, 16);
    memcpy(key.remote_ip, remote->ip, remote->family == 4 ? 4 : 16);
    key.vlan = addr->ip.vlan;
    if (key.local_port == 0 && free_local_port(port, addr, &key) == 0) {
        return NULL;
    }
    flow = open_flow(port, addr, &key);
    if (!flow) {
        return NULL;
    }
    s = stream_new(port, flow);
    if (!s) {
        tcp_abort(flow->pcb);
        return NULL;
    }
    route_name(flow, remote->next_hop);
    s->pcb->tos = local->tos;
    s->base.events = events;
    s->base.user = user;
    s->connect_until = sg_stack.now + port->config.connect_timeout_ms * NS_PER_MS;
    stack_ip_set(&to, remote->family, remote->ip);
    if (tcp_connect(s->pcb, &to, remote->port, connected_cb) != ERR_OK) {
        stream_abort(&s->base);
        return NULL;
    }
    pcb_list_hide();
    link_append(&port->connecting, &s->connecting);
    clock_arm(port);
    return &s->base;
}

/* All streams have the same time limit, so the first in the list began first. */
void stream_check_connect_timeouts(struct sg_port *port)
{
    while (!link_alone(&port->connecting)) {
        struct stream *s = link_entry(port->connecting.next, struct stream, connecting);
        struct tcp_pcb *pcb = s->pcb;

        if (sg_stack.now < s->connect_until) {
            return;
        }
        stream_end(s, SG_STREAM_TIMEOUT);
        tcp_abort(pcb);
    }
}

void stream_abort(struct sg_stream *base)
{
    struct stream *s = of_base(base);
    struct tcp_pcb *pcb = s->pcb;

    if (s->gone) {
        return;
    }
    s->gone = true;
    detach(s);
    if (pcb) {
        clock_update(s->port);
        tcp_abort(pcb);
    }
    s->busy++;
    stream_upcall_done(s);
}

void stream_shutdown(struct sg_stream *base)
{
    struct stream *s = of_base(base);

    s->shut = true;
    stream_push(base);
}
