/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IPv6 neighbour discovery (RFC 4861): the MAC address of a next hop.
 *
 * The port's addresses are the guest's as well, and the guest's stack does for them what a node
 * must do: it answers solicitations, detects duplicates, listens to routers.  So this file has only
 * what a sender needs.  It solicits, and learns from the advertisements and solicitations that the
 * demultiplexer passes to it; the guest gets all of them too.
 *
 *                 NA            30 s without confirmation, and used       NA
 *   INCOMPLETE ---------> REACHABLE -------------------------> PROBE ---------> REACHABLE
 *       | 3 unanswered       ^ |  NA of another MAC              | 3 unanswered
 *       v                    | v                                 v
 *     (gone, frames lost)   STALE -- used --> PROBE            (gone)
 *
 * There is no DELAY state (section 7.3.2): it saves a solicitation where upper layers confirm, and
 * costs a timer.  Frames still go to the old MAC address while it is probed.
 *
 * An entry belongs to a link: the port, or a VLAN on it.  The number of entries is bounded; the
 * least recently used one is evicted.  The number of frames that wait for an answer is bounded too.
 *
 * lwIP's own IPv6 neighbour code is not compiled, because it knows one link only.  Its functions
 * that other parts of lwIP call are at the end of this file.
 */
#include <string.h>

#include "net_priv.h"
#include "base/bytes.h"
#include "lwip/nd6.h"

enum {
    BUCKETS = 256,
    ENTRIES_MAX = 1024,
    WAITING_MAX = 8, /* frames per entry */
    TRIES = 3,       /* MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT; one a second */
    IPV6_HEAD = 40,
    ND_LEN = 24, /* ICMPv6 header, flags, target */
    TYPE_NS = 135,
    TYPE_NA = 136,
    OPT_SOURCE = 1, /* link-layer address options */
    OPT_TARGET = 2,
    FLAG_SOLICITED = 0x40,
    FLAG_OVERRIDE = 0x20,
    PROTO_ICMP6 = 58,
    NS_FRAME = SIZEOF_ETH_HDR + IPV6_HEAD + ND_LEN + 8,
};

#define REACHABLE_NS (30000 * NS_PER_MS) /* REACHABLE_TIME */
#define RETRANS_NS (1000 * NS_PER_MS)    /* RETRANS_TIMER, made longer by the tick's grain */

enum state { INCOMPLETE, REACHABLE, STALE, PROBE };

struct waiting {
    struct pbuf *p; /* without Ethernet header */
    struct address *from;
};

struct neighbour {
    struct neighbour *next; /* in its bucket */
    uint8_t ip[16];
    uint16_t vlan;
    enum state state;
    uint8_t mac[6];
    uint64_t confirmed, used; /* ns */
    unsigned tries;           /* solicitations sent in this state */
    uint64_t asked;           /* ns: the last solicitation */
    struct address *via;      /* the last sender; solicitations come from it */
    unsigned waiting;
    struct waiting frames[WAITING_MAX]; /* oldest first */
};

struct neigh_table {
    struct neighbour *buckets[BUCKETS];
    unsigned count;
};

struct neigh_table *neigh6_new(void)
{
    return g_new0(struct neigh_table, 1);
}

static struct neighbour **bucket_of(struct sg_port *port, const uint8_t *ip, uint16_t vlan)
{
    uint64_t low, high, h = port->flows.seed ^ vlan;

    memcpy(&low, ip, 8);
    memcpy(&high, ip + 8, 8);
    h = (h ^ low) * 0x9e3779b97f4a7c15ull;
    h = ((h ^ h >> 29) ^ high) * 0x9e3779b97f4a7c15ull;
    return &port->neigh->buckets[(h >> 40) % BUCKETS];
}

static struct neighbour *find(struct sg_port *port, const uint8_t *ip, uint16_t vlan)
{
    struct neighbour *e;

    for (e = *bucket_of(port, ip, vlan); e; e = e->next) {
        if (e->vlan == vlan && memcmp(e->ip, ip, 16) == 0) {
            return e;
        }
    }
    return NULL;
}

static void drop_frames(struct neighbour *e)
{
    while (e->waiting) {
        pbuf_free(e->frames[--e->waiting].p);
    }
}

static void forget(struct sg_port *port, struct neighbour *e)
{
    struct neighbour **p;

    for (p = bucket_of(port, e->ip, e->vlan); *p != e; p = &(*p)->next) {
        g_assert(*p);
    }
    *p = e->next;
    port->neigh->count--;
    drop_frames(e);
    g_free(e);
}

/* Visits every entry; the function may forget the one it is given. */
static void for_each(struct sg_port *port, void (*fn)(struct sg_port *, struct neighbour *, void *),
                     void *data)
{
    struct neighbour *e, *next;
    unsigned i;

    for (i = 0; i < BUCKETS; i++) {
        for (e = port->neigh->buckets[i]; e; e = next) {
            next = e->next;
            fn(port, e, data);
        }
    }
}

static void note_oldest(struct sg_port *port, struct neighbour *e, void *data)
{
    struct neighbour **oldest = data;

    (void)port;
    if (!*oldest || e->used < (*oldest)->used) {
        *oldest = e;
    }
}

/* NULL: the host has no memory. */
static struct neighbour *create(struct sg_port *port, const uint8_t *ip, uint16_t vlan,
                                enum state state)
{
    struct neighbour *e = NULL, **bucket;

    if (port->neigh->count == ENTRIES_MAX) {
        for_each(port, note_oldest, &e);
        forget(port, e);
    }
    e = g_try_new0(struct neighbour, 1);
    if (!e) {
        return NULL;
    }
    memcpy(e->ip, ip, 16);
    e->vlan = vlan;
    e->state = state;
    e->used = sg_stack.now;
    bucket = bucket_of(port, ip, vlan);
    e->next = *bucket;
    *bucket = e;
    port->neigh->count++;
    return e;
}

uint16_t neigh6_icmp_sum(const uint8_t *ip, size_t icmp_len)
{
    uint64_t sum = sg_net_chksum(ip + 8, 32);

    sum += sg_net_chksum(ip + IPV6_HEAD, (int)icmp_len);
    sum += lwip_htons((u16_t)icmp_len);
    sum += PP_HTONS(PROTO_ICMP6);
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum; /* in memory order */
}

/* RFC 4861, section 4.3; to the neighbour itself when its MAC address is known. */
static void solicit(struct neighbour *e, bool unicast)
{
    static const uint8_t group[13] = { 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff };
    struct sg_port *port = e->via->port;
    uint8_t f[NS_FRAME] = { 0x33, 0x33, 0xff }, *ip = f + SIZEOF_ETH_HDR, *nd = ip + IPV6_HEAD;
    struct iovec iov = { f, sizeof(f) };
    uint16_t sum;

    memcpy(ip + 24, group, sizeof(group));
    memcpy(ip + 24 + sizeof(group), e->ip + 13, 3);
    memcpy(f + 3, e->ip + 13, 3);
    if (unicast) {
        memcpy(ip + 24, e->ip, 16);
        memcpy(f, e->mac, 6);
    }
    memcpy(f + 6, port->mac, 6);
    sg_put_be16(f + 12, ETHTYPE_IPV6);
    ip[0] = 0x60;
    sg_put_be16(ip + 4, ND_LEN + 8);
    ip[6] = PROTO_ICMP6;
    ip[7] = 255;
    memcpy(ip + 8, e->via->ip.ip, 16);
    nd[0] = TYPE_NS;
    memcpy(nd + 8, e->ip, 16);
    nd[ND_LEN] = OPT_SOURCE;
    nd[ND_LEN + 1] = 1;
    memcpy(nd + ND_LEN + 2, port->mac, 6);
    sum = neigh6_icmp_sum(ip, ND_LEN + 8);
    memcpy(nd + 2, &sum, 2);
    e->tries++;
    e->asked = sg_stack.now;
    port_send(e->via, &iov, 1);
}

static void send_waiting(struct neighbour *e)
{
    struct waiting frames[WAITING_MAX];
    unsigned i, n = e->waiting;
    struct eth_addr mac;

    /* The entry may change while frames are sent. */
    memcpy(frames, e->frames, sizeof(frames));
    memcpy(mac.addr, e->mac, 6);
    e->waiting = 0;
    for (i = 0; i < n; i++) {
        struct netif *netif = &frames[i].from->netif;

        ethernet_output(netif, frames[i].p, (const struct eth_addr *)netif->hwaddr, &mac,
                        ETHTYPE_IPV6);
        pbuf_free(frames[i].p);
    }
}

/* Keeps a copy, because the memory of the payload may be gone when the answer arrives. */
static err_t wait_for_answer(struct neighbour *e, struct address *from, struct pbuf *p)
{
    struct pbuf *copy = pbuf_clone(PBUF_LINK, PBUF_RAM, p);

    if (!copy) {
        return ERR_MEM;
    }
    if (e->waiting == WAITING_MAX) {
        pbuf_free(e->frames[0].p);
        e->waiting--;
        memmove(e->frames, e->frames + 1, e->waiting * sizeof(e->frames[0]));
    }
    e->frames[e->waiting++] = (struct waiting){ copy, from };
    return ERR_OK;
}

err_t neigh6_output(struct address *a, struct pbuf *p, const uint8_t next_hop[16])
{
    struct neighbour *e = find(a->port, next_hop, a->ip.vlan);
    bool fresh = !e;

    if (fresh) {
        e = create(a->port, next_hop, a->ip.vlan, INCOMPLETE);
        if (!e) {
            return ERR_MEM;
        }
    }
    e->via = a;
    e->used = sg_stack.now;
    if (e->state == INCOMPLETE) {
        err_t result = wait_for_answer(e, a, p);

        if (fresh) {
            solicit(e, false);
        }
        return result;
    }
    if (e->state == REACHABLE && sg_stack.now - e->confirmed >= REACHABLE_NS) {
        e->state = STALE;
    }
    if (e->state == STALE) {
        e->state = PROBE;
        e->tries = 0;
        solicit(e, true);
    }
    return ethernet_output(&a->netif, p, (const struct eth_addr *)a->netif.hwaddr,
                           (const struct eth_addr *)e->mac, ETHTYPE_IPV6);
}

static void tick(struct sg_port *port, struct neighbour *e, void *data)
{
    (void)data;
    if ((e->state != INCOMPLETE && e->state != PROBE) || sg_stack.now - e->asked < RETRANS_NS) {
        return;
    }
    if (e->tries >= TRIES) {
        forget(port, e);
    } else {
        solicit(e, e->state == PROBE);
    }
}

void neigh6_tick(struct sg_port *port)
{
    for_each(port, tick, NULL);
}

static void forget_via(struct sg_port *port, struct neighbour *e, void *data)
{
    bool concerned = e->via == data;
    unsigned i;

    for (i = 0; i < e->waiting; i++) {
        concerned |= e->frames[i].from == data;
    }
    if (concerned) {
        forget(port, e);
    }
}

void neigh6_forget_address(struct address *a)
{
    for_each(a->port, forget_via, a);
}

static void forget_any(struct sg_port *port, struct neighbour *e, void *data)
{
    (void)data;
    forget(port, e);
}

void neigh6_free(struct sg_port *port)
{
    for_each(port, forget_any, NULL);
    g_free(port->neigh);
    port->neigh = NULL;
}

/* Finds the link-layer address option of that type; false: an option is malformed (section 7.1). */
static bool find_option(const uint8_t *p, size_t len, uint8_t type, const uint8_t **mac)
{
    *mac = NULL;
    while (len) {
        size_t n = len >= 2 ? p[1] * 8u : 0;

        if (n == 0 || n > len) {
            return false;
        }
        if (p[0] == type && n == 8) {
            *mac = p + 2;
        }
        p += n;
        len -= n;
    }
    return true;
}

/* Section 7.2.5. */
static void advertised(struct neighbour *e, uint8_t flags, const uint8_t *mac)
{
    bool changed = mac && memcmp(e->mac, mac, 6) != 0;

    if (e->state == INCOMPLETE) {
        if (!mac) {
            return;
        }
    } else if (changed && !(flags & FLAG_OVERRIDE)) {
        if (e->state == REACHABLE) {
            e->state = STALE;
        }
        return;
    }
    if (changed || e->state == INCOMPLETE) {
        memcpy(e->mac, mac, 6);
        e->state = STALE;
    }
    if (flags & FLAG_SOLICITED) {
        e->state = REACHABLE;
        e->confirmed = sg_stack.now;
    }
    send_waiting(e);
}

/* Section 7.2.3: a node that asks for one of our addresses will soon expect frames. */
static void solicited(struct sg_port *port, uint16_t vlan, const uint8_t *ip, const uint8_t *mac)
{
    struct neighbour *e = find(port, ip + 8, vlan);

    if (!mac || !address_find(port, 6, ip + IPV6_HEAD + 8, vlan)) {
        return;
    }
    if (!e) {
        e = create(port, ip + 8, vlan, STALE);
        if (!e) {
            return;
        }
    } else if (e->state != INCOMPLETE && memcmp(e->mac, mac, 6) == 0) {
        return;
    }
    memcpy(e->mac, mac, 6);
    e->state = STALE;
    send_waiting(e);
}

static bool is_any(const uint8_t *ip)
{
    static const uint8_t any[16];

    return memcmp(ip, any, 16) == 0;
}

bool neigh6_input(struct sg_port *port, uint16_t vlan, const uint8_t *ip, size_t len)
{
    size_t icmp_len = len - IPV6_HEAD;
    const uint8_t *nd = ip + IPV6_HEAD, *mac;
    struct neighbour *e;

    if (ip[6] != PROTO_ICMP6 || ip[7] != 255 || icmp_len < ND_LEN ||
        (nd[0] != TYPE_NS && nd[0] != TYPE_NA) || nd[1] != 0 || nd[8] == 0xff ||
        !find_option(nd + ND_LEN, icmp_len - ND_LEN, nd[0] == TYPE_NS ? OPT_SOURCE : OPT_TARGET,
                     &mac) ||
        (mac && (mac[0] & 1)) || neigh6_icmp_sum(ip, icmp_len) != 0) {
        return false;
    }
    if (nd[0] == TYPE_NS) {
        if (is_any(ip + 8) || ip[8] == 0xff) {
            return false; /* detection of duplicates */
        }
        solicited(port, vlan, ip, mac);
        return true;
    }
    if (ip[24] == 0xff && (nd[4] & FLAG_SOLICITED)) {
        return false;
    }
    e = find(port, nd + 8, vlan);
    if (e) {
        advertised(e, nd[4], mac);
    }
    return true;
}

/* ---- functions of lwIP's neighbour code that the rest of lwIP calls ---- */

struct netif *nd6_find_route(const ip6_addr_t *ip6addr)
{
    (void)ip6addr;
    return NULL; /* connections are bound to their interface */
}

u16_t nd6_get_destination_mtu(const ip6_addr_t *ip6addr, struct netif *netif)
{
    (void)ip6addr;
    return netif ? netif->mtu : SG_PORT_MTU_MIN;
}

void nd6_tmr(void)
{
    /* clock.c calls neigh6_tick(). */
}

void nd6_cleanup_netif(struct netif *netif)
{
    (void)netif;
}

void nd6_restart_netif(struct netif *netif)
{
    (void)netif;
}
