/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The switch under streams in memory: ports with their addresses and listeners, and time.
 *
 * A port is what an adapter is given as its network.  Addresses are looked up in the order in
 * which the ports were made.  Each port has its own timers, so a port's 'run' makes upcalls to the
 * users of that port only, save 'accept', which belongs to the port that was called.
 */
#include <glib.h>

#include "mem_priv.h"

enum {
    ROOM_DEFAULT = 256 * 1024,
    ROOM_MIN = 1024, /* one FPDU of the smallest MULPDU */
    EMSS_DEFAULT = 65535,
    PORT_FIRST = 49152, /* ephemeral ports */
};

static bool same_ip(const struct sg_endpoint *a, const struct sg_endpoint *b)
{
    return a->family == b->family && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

static bool any_ip(const struct sg_endpoint *a)
{
    static const uint8_t zero[sizeof(a->ip)];

    return memcmp(a->ip, zero, sizeof(zero)) == 0;
}

static bool port_has(const struct mem_port *port, const struct sg_endpoint *addr)
{
    unsigned i;

    for (i = 0; i < port->addr_count; i++) {
        if (same_ip(&port->addrs[i], addr)) {
            return true;
        }
    }
    return false;
}

struct mem_listener *mem_find_listener(struct sg_mem_switch *sw, const struct sg_endpoint *to,
                                       struct mem_port **where)
{
    struct mem_listener *l;

    for (*where = sw->ports; *where; *where = (*where)->next) {
        if (!port_has(*where, to)) {
            continue;
        }
        for (l = (*where)->listeners; l; l = l->next) {
            if (l->at.port == to->port && (any_ip(&l->at) || same_ip(&l->at, to))) {
                return l;
            }
        }
        break;
    }
    return NULL;
}

/* Operations of a port. */

static struct mem_port *port_of(struct sg_stream_net *net)
{
    return sg_container_of(net, struct mem_port, net);
}

static struct sg_stream *net_connect(struct sg_stream_net *net, const struct sg_endpoint *local,
                                     const struct sg_endpoint *remote,
                                     const struct sg_stream_events *events, void *user,
                                     enum sg_stream_end *why)
{
    struct mem_port *port = port_of(net);
    struct sg_endpoint from;

    if (!port->addr_count || (!any_ip(local) && !port_has(port, local))) {
        *why = SG_STREAM_UNREACHABLE;
        return NULL;
    }
    from = any_ip(local) ? port->addrs[0] : *local;
    from.port = local->port;
    if (!from.port) {
        from.port = port->sw->next_port++;
        port->sw->next_port = SG_MAX(port->sw->next_port, PORT_FIRST);
    }
    return mem_end_connect(port, &from, remote, events, user);
}

static struct sg_stream_listener *net_listen(struct sg_stream_net *net,
                                             const struct sg_endpoint *local, unsigned backlog,
                                             sg_stream_accept accept, void *user,
                                             enum sg_stream_end *why)
{
    struct mem_port *port = port_of(net);
    struct mem_listener *l;

    (void)backlog;
    if (!any_ip(local) && !port_has(port, local)) {
        *why = SG_STREAM_UNREACHABLE;
        return NULL;
    }
    for (l = port->listeners; l; l = l->next) {
        if (l->at.port == local->port && same_ip(&l->at, local)) {
            *why = SG_STREAM_UNREACHABLE;
            return NULL;
        }
    }
    l = g_new0(struct mem_listener, 1);
    l->at = *local;
    l->base.accept = accept;
    l->base.user = user;
    l->next = port->listeners;
    port->listeners = l;
    return &l->base;
}

static void net_unlisten(struct sg_stream_net *net, struct sg_stream_listener *base)
{
    struct mem_listener *l = sg_container_of(base, struct mem_listener, base);
    struct mem_listener **at = &port_of(net)->listeners;

    while (*at != l) {
        at = &(*at)->next;
    }
    *at = l->next;
    g_free(l);
}

static bool net_add_addr(struct sg_stream_net *net, const struct sg_endpoint *addr,
                         unsigned prefix_len, const uint8_t gateway[16])
{
    struct mem_port *port = port_of(net);

    (void)prefix_len;
    (void)gateway;
    if (port_has(port, addr)) {
        return true;
    }
    if (port->addr_count == MEM_ADDRS_MAX) {
        return false;
    }
    port->addrs[port->addr_count] = *addr;
    port->addrs[port->addr_count++].port = 0;
    return true;
}

static bool net_del_addr(struct sg_stream_net *net, const struct sg_endpoint *addr)
{
    struct mem_port *port = port_of(net);
    unsigned i;

    for (i = 0; i < port->addr_count; i++) {
        if (same_ip(&port->addrs[i], addr)) {
            port->addrs[i] = port->addrs[--port->addr_count];
            return true;
        }
    }
    return false;
}

static void net_clear_addrs(struct sg_stream_net *net)
{
    port_of(net)->addr_count = 0;
}

static void net_set_mtu(struct sg_stream_net *net, unsigned mtu)
{
    (void)net;
    (void)mtu; /* the switch's option 'emss' says it */
}

static uint64_t net_run(struct sg_stream_net *net, uint64_t now_ns)
{
    struct mem_port *port = port_of(net);

    port->sw->now_ns = now_ns;
    sg_timerq_run(&port->timers, now_ns);
    return sg_timerq_next(&port->timers);
}

/* There are no frames, and nothing is lost. */
static void net_counters(struct sg_stream_net *net, struct sg_net_counters *out)
{
    (void)net;
    *out = (struct sg_net_counters){ 0 };
}

static const struct sg_stream_net_ops net_ops = {
    .connect = net_connect,
    .listen = net_listen,
    .unlisten = net_unlisten,
    .add_addr = net_add_addr,
    .del_addr = net_del_addr,
    .clear_addrs = net_clear_addrs,
    .set_mtu = net_set_mtu,
    .run = net_run,
    .counters = net_counters,
};

struct sg_mem_switch *sg_mem_switch_new(const struct sg_mem_options *options)
{
    struct sg_mem_switch *sw = g_new0(struct sg_mem_switch, 1);

    sw->opt = *options;
    sw->random = options->seed;
    sw->next_port = PORT_FIRST;
    if (!sw->opt.emss) {
        sw->opt.emss = EMSS_DEFAULT;
    }
    if (!sw->opt.room) {
        sw->opt.room = ROOM_DEFAULT;
    }
    /* One FPDU must fit, or nothing would ever move. */
    sw->opt.room = SG_MAX(sw->opt.room, SG_MAX(sw->opt.emss, ROOM_MIN));
    sw->opt.delay_max_ns = SG_MAX(sw->opt.delay_max_ns, sw->opt.delay_min_ns);
    return sw;
}

void sg_mem_switch_tap(struct sg_mem_switch *sw, sg_mem_frame_tap *tap, void *opaque)
{
    sw->tap = tap;
    sw->tap_opaque = opaque;
}

void sg_mem_switch_free(struct sg_mem_switch *sw)
{
    while (sw->ports) {
        struct mem_port *port = sw->ports;

        while (port->listeners) {
            net_unlisten(&port->net, &port->listeners->base);
        }
        sw->ports = port->next;
        g_free(port);
    }
    g_free(sw);
}

struct sg_stream_net *sg_mem_switch_port(struct sg_mem_switch *sw, const struct sg_endpoint *addr)
{
    struct mem_port *port = g_new0(struct mem_port, 1);
    struct mem_port **at = &sw->ports;

    while (*at) {
        at = &(*at)->next;
    }
    *at = port;
    port->net.ops = &net_ops;
    port->sw = sw;
    sg_timerq_init(&port->timers);
    net_add_addr(&port->net, addr, 0, NULL);
    return &port->net;
}

uint64_t sg_mem_switch_run(struct sg_mem_switch *sw, uint64_t now_ns)
{
    uint64_t next = SG_NEVER;
    struct mem_port *port;

    for (port = sw->ports; port; port = port->next) {
        net_run(&port->net, now_ns);
    }
    for (port = sw->ports; port; port = port->next) {
        next = SG_MIN(next, sg_timerq_next(&port->timers));
    }
    return next;
}
