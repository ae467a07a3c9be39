/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listening endpoints.
 *
 * A listener on "any" has one lwIP listener per address of the port, so that it never accepts for
 * another port of the process.  Where two of our listeners share a local port, one on "any" and
 * one on an address, the latter gets that address; refresh() maintains this when listeners and
 * addresses come and go.  lwIP's own checks for addresses in use do not know ports: bypass them.
 *
 * Half-open connections are bounded for each listener.  When there is one more, the oldest is
 * dropped, if it has had time for a round trip.  It gets no RST, because its address may be spoofed
 * (RFC 4987, section 3.4).  If all are younger, many peers connect at once, and the SYN is dropped:
 * the answers of the others are on their way, and would be answered by a RST.  While the user has
 * no room for more (pause), SYNs are dropped, too.  Peers send them again, as they do with a
 * listener of Linux.
 */
#include <string.h>

#include "net_priv.h"

enum { HALF_OPEN_MIN = 64, HALF_OPEN_MAX = 1024 };

#define ROUND_TRIP_NS 100000000u /* time for an answer; a host that is busy needs most of it */

static struct tcp_listener *listener_of(struct sg_stream_listener *base)
{
    return link_entry(base, struct tcp_listener, base);
}

static void add_half_open(struct tcp_listener *l, struct flow *flow)
{
    flow->listener = l;
    link_append(&l->half_open, &flow->half_open);
    l->half_open_count++;
}

/* A SYN has arrived: the connection is half-open from here on. */
static err_t passive_open(u8_t id, struct tcp_pcb_listen *lpcb, struct tcp_pcb *cpcb)
{
    struct tcp_listener *l = lpcb->callback_arg;
    struct address *addr = NULL;
    struct flow_key key = { .family = l->local.family };
    struct flow *flow;
    unsigned i;

    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        if (l->pcb[i] == (struct tcp_pcb *)(void *)lpcb) {
            addr = &l->port->addrs[i];
        }
    }
    g_assert(addr);
    stack_ip_get(key.local_ip, &cpcb->local_ip);
    stack_ip_get(key.remote_ip, &cpcb->remote_ip);
    key.vlan = addr->ip.vlan;
    key.local_port = cpcb->local_port;
    key.remote_port = cpcb->remote_port;
    flow = flow_new(l->port, addr, &key, cpcb);
    if (!flow) {
        return ERR_MEM;
    }
    route_back(flow);
    tcp_nagle_disable(cpcb);
    cpcb->tos = l->local.tos;
    add_half_open(l, flow_of(cpcb));
    return ERR_OK;
}

static const struct tcp_ext_arg_callbacks listener_callbacks = {
    .passive_open = passive_open,
};

static err_t accepted(void *arg, struct tcp_pcb *pcb, err_t err)
{
    if (err != ERR_OK || !pcb) {
        return ERR_VAL;
    }
    listener_opened(flow_of(pcb));
    pcb->listener = NULL; /* the listener may end before the connection */
    return stream_accepted(arg, flow_of(pcb));
}

void listener_opened(struct flow *flow)
{
    if (!link_alone(&flow->half_open)) {
        link_remove(&flow->half_open);
        flow->listener->half_open_count--;
        flow->listener = NULL;
    }
}

/* Makes room for one more, if one of them has had its time. */
static bool drop_oldest(struct tcp_listener *l)
{
    struct flow *oldest = link_entry(l->half_open.next, struct flow, half_open);

    if (sg_stack.now - oldest->created < ROUND_TRIP_NS) {
        return false;
    }
    tcp_abandon(oldest->pcb, 0);
    return true;
}

bool listener_admits(const struct tcp_pcb *listener, unsigned flags)
{
    struct tcp_listener *l = listener->callback_arg;

    if ((flags & (TCP_SYN | TCP_ACK | TCP_RST)) != TCP_SYN) {
        return true; /* it opens nothing */
    }
    if (l->paused) {
        l->port->count.syns_dropped++;
        return false;
    }
    if (l->half_open_count >= l->half_open_max) {
        l->port->count.syns_dropped++;
        return drop_oldest(l);
    }
    return true;
}

void listener_pause(struct sg_stream_net *net, struct sg_stream_listener *base, bool paused)
{
    listener_of(base)->paused = paused;
}

static struct tcp_pcb *open_pcb(struct tcp_listener *l, struct address *addr)
{
    struct tcp_pcb *pcb = tcp_new(), *lpcb;

    if (!pcb) {
        return NULL;
    }
    tcp_bind_netif(pcb, &addr->netif);
    stack_ip_set(&pcb->local_ip, addr->ip.family, addr->ip.ip);
    pcb->local_port = l->local.port;
    TCP_REG(&tcp_bound_pcbs, pcb);
    lpcb = tcp_listen(pcb);
    if (!lpcb) {
        tcp_abort(pcb);
        return NULL;
    }
    tcp_arg(lpcb, l);
    tcp_accept(lpcb, accepted);
    tcp_ext_arg_set_callbacks(lpcb, sg_stack.ext_id, &listener_callbacks);
    return lpcb;
}

static void close_pcb(struct tcp_listener *l, unsigned slot)
{
    if (l->pcb[slot]) {
        pcb_list_forget_listener(l, l->pcb[slot]);
        tcp_close(l->pcb[slot]);
        l->pcb[slot] = NULL;
    }
}

static bool concerns(const struct tcp_listener *l, const struct address *a)
{
    return a->used && l->local.family == a->ip.family &&
           (endpoint_is_any(&l->local) ||
            (memcmp(l->local.ip, a->ip.ip, 16) == 0 && l->local.vlan == a->ip.vlan));
}

static struct tcp_listener *best_for(const struct sg_port *port, const struct address *a,
                                     uint16_t local_port)
{
    struct tcp_listener *l, *best = NULL;

    for (l = port->listeners; l; l = l->next) {
        if (l->local.port == local_port && concerns(l, a) &&
            (!best || !endpoint_is_any(&l->local))) {
            best = l;
        }
    }
    return best;
}

/* False: no memory for some address. */
static bool refresh(struct sg_port *port, uint16_t local_port)
{
    struct tcp_listener *l, *best;
    bool good = true;
    unsigned slot;

    for (slot = 0; slot < SG_PORT_ADDR_MAX; slot++) {
        best = best_for(port, &port->addrs[slot], local_port);
        for (l = port->listeners; l; l = l->next) {
            if (l->local.port == local_port && l != best) {
                close_pcb(l, slot);
            }
        }
        if (best && !best->pcb[slot]) {
            best->pcb[slot] = open_pcb(best, &port->addrs[slot]);
            good = good && best->pcb[slot];
        }
    }
    return good;
}

void listener_refresh_all(struct sg_port *port)
{
    struct tcp_listener *l;

    for (l = port->listeners; l; l = l->next) {
        refresh(port, l->local.port);
    }
}

void listener_forget_address(struct sg_port *port, const struct address *addr)
{
    struct tcp_listener *l;

    for (l = port->listeners; l; l = l->next) {
        close_pcb(l, (unsigned)(addr - port->addrs));
    }
}

struct tcp_pcb *listener_find(const struct sg_port *port, const struct address *addr,
                              uint16_t local_port)
{
    struct tcp_listener *l = NULL;

    if (port->listening[local_port / 8] & (1u << local_port % 8)) {
        l = best_for(port, addr, local_port);
    }
    return l ? l->pcb[addr - port->addrs] : NULL;
}

static void note_listening(struct sg_port *port, uint16_t local_port)
{
    struct tcp_listener *l;

    port->listening[local_port / 8] &= (uint8_t)~(1u << local_port % 8);
    for (l = port->listeners; l; l = l->next) {
        if (l->local.port == local_port) {
            port->listening[local_port / 8] |= (uint8_t)(1u << local_port % 8);
        }
    }
}

static bool in_use(const struct sg_port *port, const struct sg_endpoint *local)
{
    struct tcp_listener *l;

    for (l = port->listeners; l; l = l->next) {
        if (l->local.port == local->port && l->local.family == local->family &&
            memcmp(l->local.ip, local->ip, 16) == 0 && l->local.vlan == local->vlan) {
            return true;
        }
    }
    return false;
}

struct sg_stream_listener *listener_new(struct sg_stream_net *net, const struct sg_endpoint *local,
                                        unsigned backlog, sg_stream_accept accept, void *user,
                                        enum sg_stream_end *why)
{
    struct sg_port *port = port_of_net(net);
    bool any = endpoint_is_any(local);
    struct address *addr = any ? NULL : address_named(port, local);
    struct tcp_listener *l;

    if ((local->family != 4 && local->family != 6) || (!any && !addr)) {
        *why = SG_STREAM_UNREACHABLE;
        return NULL;
    }
    l = sg_account_object(net->account, sizeof(*l));
    if (!l) {
        *why = SG_STREAM_NORES;
        return NULL;
    }
    l->port = port;
    l->local.family = local->family;
    if (addr) {
        l->local = addr->ip;
    }
    l->local.port = local->port;
    l->local.tos = local->tos;
    l->half_open_max = CLAMP(backlog, HALF_OPEN_MIN, HALF_OPEN_MAX);
    link_init(&l->half_open);
    l->base.accept = accept;
    l->base.user = user;
    if (local->port == 0 || in_use(port, &l->local)) {
        *why = SG_STREAM_UNREACHABLE;
        sg_account_object_free(net->account, l, sizeof(*l));
        return NULL;
    }
    l->next = port->listeners;
    port->listeners = l;
    port->count.listeners++;
    if (!refresh(port, local->port)) {
        *why = SG_STREAM_NORES;
        listener_free(net, &l->base);
        return NULL;
    }
    note_listening(port, local->port);
    return &l->base;
}

void listener_free(struct sg_stream_net *net, struct sg_stream_listener *base)
{
    struct tcp_listener *l = listener_of(base);
    struct sg_port *port = port_of_net(net);
    struct tcp_listener **p;
    unsigned slot;

    for (p = &port->listeners; *p != l; p = &(*p)->next) {
        g_assert(*p);
    }
    *p = l->next;
    for (slot = 0; slot < SG_PORT_ADDR_MAX; slot++) {
        close_pcb(l, slot);
    }
    while (!link_alone(&l->half_open)) { /* these end when their peers answer */
        listener_opened(link_entry(l->half_open.next, struct flow, half_open));
    }
    refresh(port, l->local.port);
    note_listening(port, l->local.port);
    port->count.listeners--;
    sg_account_object_free(net->account, l, sizeof(*l));
}
