/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Structures shared by the files of this folder.
 *
 *   stack.c        the shared lwIP instance: initialisation, hooks
 *   checksum.c     the Internet checksum, vectorised
 *   clock.c        time: TCP and ARP timers, connect timeouts, deadlines, 'run'
 *   flow.c         table of all TCP connections that lwIP owns, by 4-tuple
 *   pcb_list.c     which of them are in lwIP's lists, and when
 *   eth_port.c     the port: life cycle, output path, queued frames
 *   address.c      addresses, one lwIP interface each
 *   neigh6.c       neighbours over IPv6
 *   path_mtu.c     reports of routers about the path MTU
 *   demux.c        frames from the uplink: for the adapter or the NIC?
 *   rx_ip.c        TCP segments in IP packets
 *   rx_frame.c     lwIP's view of a received frame, without copying the payload
 *   tcp_listener.c listening endpoints
 *   stream_lwip.c  streams: connect, accept, events, close
 *   stream_early.c streams: what comes behind a gap
 *   stream_send.c  streams: send ring, segments
 *   recovery.c     loss recovery: states and timers
 *   congestion.c   the congestion window
 *   cubic.c        its growth
 *   route.c        the next hop of a connection
 *   sack.c         the peer's reports of segments behind a hole
 *   rack.c         which segments are lost
 *   rtt.c          round-trip times, timeouts
 *   scoreboard.c   what has been sent and not acknowledged
 *
 * Ownership: a flow lives exactly as long as lwIP's connection (pcb), including TIME-WAIT.  A
 * stream is the user's object; it loses its pcb when the connection ends and is freed after
 * 'closed' or 'abort'.  flow->stream and stream->flow become NULL when the other one is freed.
 */
#ifndef SG_NET_PRIV_H
#define SG_NET_PRIV_H

#include <glib.h>

#include "base/account.h"
#include "base/host.h"
#include "eth_port.h"
#include "recovery.h"

#include "lwip/opt.h"
#include "lwip/etharp.h"
#include "lwip/ip6.h"
#include "lwip/netif.h"
#include "lwip/tcp.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/prot/tcp.h"
#include "netif/ethernet.h"

/* lwIP's flag bits of struct tcp_hdr are macros named TCP_*; these names are ours. */

#define NS_PER_MS 1000000ull

/* An intrusive list. */
struct link {
    struct link *prev, *next;
};

struct flow_key {
    uint8_t local_ip[16]; /* network order, IPv4 in the first four octets */
    uint8_t remote_ip[16];
    uint16_t local_port; /* host order */
    uint16_t remote_port;
    uint16_t vlan;   /* of the local address */
    uint16_t family; /* 4 or 6 */
};

/* The next hop of a connection's frames (route.c). */
enum flow_way {
    WAY_ADDRESS,  /* determined by its address's prefix and gateway */
    WAY_NEXT_HOP, /* the neighbour that the user named */
    WAY_BACK,     /* the neighbour that forwards the peer's segments */
};

struct flow {
    struct flow_key key;
    struct flow *next;             /* in its hash bucket */
    struct link list;              /* in one of port->lists */
    bool idle;                     /* in lists.idle */
    bool time_wait;                /* in lists.time_wait */
    struct link half_open;         /* in the listener's list, or alone */
    struct tcp_listener *listener; /* while it is in that list */
    struct sg_port *port;
    struct address *addr;
    struct tcp_pcb *pcb;
    struct stream *stream;                  /* NULL: half-open, or its user has closed it */
    bool heard;                             /* something in order has arrived */
    bool gap;                               /* segments are missing before the current one */
    uint16_t path_mtu;                      /* 0: the port's */
    uint16_t full_mss;                      /* MSS without that limit; 0: pcb->mss */
    unsigned reports;                       /* of a smaller path MTU, since: */
    uint64_t reports_since, path_mtu_until; /* ns */
    uint64_t challenges_since;              /* ns; see sg_net_segment_in() */
    unsigned challenges;
    uint64_t created; /* ns */
    struct recovery recovery;
    uint8_t way; /* enum flow_way */
    union {
        uint8_t next_hop[16]; /* WAY_NEXT_HOP */
        uint8_t mac[6];       /* WAY_BACK */
    };
};

struct flow_table {
    struct flow **buckets;
    unsigned mask;
    unsigned count;
    uint64_t seed;
};

/*
 * All connections of a port; each is in one of these.  The slots of 'idle' are a timing wheel with
 * the tick of lwIP's slow timer as its unit.
 */
enum { IDLE_SLOTS = 256 };

struct pcb_lists {
    struct link busy;             /* lwIP's timers see them */
    struct link idle[IDLE_SLOTS]; /* by the tick at which they become busy */
    struct link time_wait;        /* in the order in which they end */
};

/* One address of a port.  lwIP knows one IPv4 address per interface, so each has an interface. */
struct address {
    struct netif netif;
    struct sg_port *port;
    bool used;
    struct sg_endpoint ip; /* port 0; the VLAN of its link, whatever the address is */
    unsigned prefix_len;
    uint8_t gateway[16]; /* all zero: none */
};

struct tcp_listener {
    struct sg_stream_listener base;
    struct tcp_listener *next;
    struct sg_port *port;
    struct sg_endpoint local;
    bool paused;
    struct link half_open; /* connections, the oldest first */
    unsigned half_open_count, half_open_max;
    /* By address slot; NULL where a listener for exactly that address takes precedence. */
    struct tcp_pcb *pcb[SG_PORT_ADDR_MAX];
};

struct send_queue {
    uint8_t *ring;
    uint64_t head; /* octets taken from the user so far */
    uint64_t next; /* of these, passed to lwIP */
    uint64_t tail; /* of these, acknowledged */
    /* The octets between 'next' and 'head', divided into segments. */
    uint32_t *cuts;
    unsigned cuts_mask;
    unsigned cuts_head, cuts_tail;
    uint32_t size;  /* of the ring: power of two */
    uint32_t taken; /* octets of the ring, from its beginning, that are in use */
    uint32_t base;  /* low bits of the number of the octet at its beginning */
};

struct stream {
    struct sg_stream base;
    struct sg_port *port;
    struct flow *flow;   /* NULL: the connection is over */
    struct tcp_pcb *pcb; /* likewise */
    struct send_queue tx;
    size_t wanted;          /* octets of the send that was refused; 0: none */
    uint64_t connect_until; /* ns, while connecting */
    struct link all;        /* in port->streams */
    struct link connecting; /* in port->connecting, or alone */
    struct link blocked;    /* in port->blocked, or alone */
    struct link work;       /* in port->work, or alone */
    struct link ack;        /* in port->acks, or alone */
    unsigned unread;        /* octets received that do not open the window, while 'held' */
    uint32_t ahead;         /* octets taken early, by which the window is larger */
    unsigned held_octets;   /* received since an acknowledgement was delayed */
    unsigned busy;          /* upcalls on the stack */
    bool held;              /* by the user: the window does not open */
    bool connected;
    bool shut;     /* the user closed its half */
    bool fin;      /* and lwIP knows */
    bool peer_fin; /* 'peer_closed' is due */
    bool ended;    /* 'closed' is due */
    bool gone;     /* closed or aborted: free when not busy */
    enum sg_stream_end end;
};

struct deferred_frame {
    struct deferred_frame *next;
    size_t len;
    uint8_t data[];
};

struct sg_port {
    struct sg_stream_net net;
    struct sg_port *next;
    const struct sg_port_ops *ops;
    void *opaque;
    uint8_t mac[6];
    struct sg_port_config config;
    struct address addrs[SG_PORT_ADDR_MAX];
    struct flow_table flows;
    struct pcb_lists lists;
    unsigned routed; /* flows with a way other than WAY_ADDRESS */
    struct neigh_table *neigh;
    struct tcp_listener *listeners;
    uint8_t listening[65536 / 8]; /* by local port: is there any listener? */
    struct link streams;
    struct link connecting;  /* streams; the first one times out first */
    struct link blocked;     /* streams that met can_send() == false */
    struct link work;        /* streams with something to deliver or to send */
    struct link acks;        /* streams with a delayed acknowledgement */
    unsigned stalled;        /* slow ticks in a row with can_send() == false */
    bool uplink_ready;       /* the uplink has room again, but lwIP was at work */
    struct sg_timerq timers; /* of the flows' recovery */
    struct deferred_frame *deferred_head, **deferred_tail;
    size_t deferred_octets;
    uint64_t deadline; /* the last result of 'run' */
    struct sg_port_counters count;
};

enum { ISN_KEY_LEN = 32 };

struct stack {
    bool ready;
    struct sg_port *ports;
    unsigned flows;    /* of all ports */
    uint64_t now;      /* ns */
    uint64_t tcp_tick; /* ns of the next one, SG_NEVER when off */
    uint64_t arp_tick;
    unsigned sending;             /* send_frame() calls on the stack */
    const uint8_t *sender;        /* MAC address, while lwIP reads a segment; else NULL */
    struct sg_port *active;       /* the port whose input or 'run' is on the stack, or NULL */
    u8_t ext_id;                  /* lwIP's slot for our pointer in a pcb */
    uint8_t isn_key[ISN_KEY_LEN]; /* new whenever a first port is created */
};

extern struct stack sg_stack;

/* lists */
static inline void link_init(struct link *l)
{
    l->prev = l->next = l;
}

static inline bool link_alone(const struct link *l)
{
    return l->next == l;
}

static inline void link_append(struct link *list, struct link *l)
{
    l->prev = list->prev;
    l->next = list;
    list->prev->next = l;
    list->prev = l;
}

static inline void link_remove(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    link_init(l);
}

#define link_entry(l, type, member) ((type *)(void *)((char *)(l) - offsetof(type, member)))

/* stack.c */
void stack_init(const struct sg_port_ops *ops, void *opaque);
ip4_addr_t stack_ip4(const uint8_t ip[16]);
/* Between lwIP's form of an address and ours; octets behind IPv4 become zero. */
void stack_ip_set(ip_addr_t *to, unsigned family, const uint8_t ip[16]);
void stack_ip_get(uint8_t to[16], const ip_addr_t *ip);

/* clock.c */
void clock_update(struct sg_port *port);
uint64_t clock_run(struct sg_stream_net *net, uint64_t now_ns);
/* Starts the timers if they are needed, and makes the host call 'run' if it does not know. */
void clock_arm(struct sg_port *port);
/* Is the uplink congested, but not for so long that it may be dead? */
bool clock_waits_for_uplink(const struct sg_port *port);

/* flow.c */
void flow_table_init(struct flow_table *t, uint64_t seed);
void flow_table_free(struct flow_table *t);
struct flow *flow_find(const struct flow_table *t, const struct flow_key *key);
/* NULL: the table is full (after an attempt to drop a connection in TIME-WAIT), or no memory. */
struct flow *flow_new(struct sg_port *port, struct address *addr, const struct flow_key *key,
                      struct tcp_pcb *pcb);
/* Ends connections in TIME-WAIT; as sg_stream_net_ops.end_some. */
bool flow_end_some(struct sg_stream_net *net, unsigned max);
/* Ends all connections of 'addr' (NULL: of the port); their streams end with 'why'. */
void flow_abort_all(struct sg_port *port, const struct address *addr, enum sg_stream_end why);
struct flow *flow_of(const struct tcp_pcb *pcb);

/* pcb_list.c */
void pcb_list_init(struct sg_port *port);
/* A new connection, which is busy; a connection that lwIP frees. */
void pcb_list_add(struct flow *flow);
void pcb_list_remove(struct flow *flow);
/* To be called before anything that may send or change its state. */
void pcb_list_wake(struct flow *flow);
/* To be called after a segment for it. */
void pcb_list_settle(struct flow *flow);
/* Shows tcp_input() this connection, this listener, or nothing.  Then hides it again. */
void pcb_list_show(struct flow *flow, struct tcp_pcb *listener);
void pcb_list_hide(void);
/* Around lwIP's timers: puts all busy connections of all ports into tcp_active_pcbs. */
void pcb_list_show_busy(void);
void pcb_list_wake_due(void);   /* before tcp_slowtmr(), and before they are shown */
void pcb_list_sleep_idle(void); /* after each tick; hides them */
/* The oldest connection in TIME-WAIT that no user holds, or NULL. */
struct flow *pcb_list_oldest_time_wait(const struct sg_port *port);
/* The listener is gone: half-open connections drop their reference. */
void pcb_list_forget_listener(struct tcp_listener *of, const struct tcp_pcb *listener);

/* route.c */
void route_set(struct flow *f, enum flow_way way, const uint8_t *to);
/* The user names a next hop; all zero: none. */
void route_name(struct flow *f, const uint8_t next_hop[16]);
/* Both while lwIP reads a segment of this flow: the first one, which creates it; a later one. */
void route_back(struct flow *f);
void route_learn(struct flow *f);
err_t route_output(struct address *addr, struct pbuf *p, const ip4_addr_t *to);
err_t route_output6(struct address *addr, struct pbuf *p, const uint8_t to[16]);
bool route_is_set(const uint8_t next_hop[16]);

/* eth_port.c */
struct sg_port *port_of_net(struct sg_stream_net *net);
err_t port_netif_init(struct netif *netif);
/* Sends a frame that begins with an untagged Ethernet header, tagged as the address requires. */
void port_send(struct address *addr, const struct iovec *iov, unsigned n);
void port_defer_frame(struct sg_port *port, const struct iovec *iov, unsigned n);
struct deferred_frame *port_next_deferred(struct sg_port *port);
void port_kick(struct sg_port *port);

/* address.c */
bool address_add(struct sg_stream_net *net, const struct sg_endpoint *addr, unsigned prefix_len,
                 const uint8_t gateway[16]);
bool address_del(struct sg_stream_net *net, const struct sg_endpoint *addr);
void address_clear(struct sg_stream_net *net);
void address_set_mtu(struct sg_stream_net *net, unsigned mtu);
/* The address on exactly that VLAN. */
struct address *address_find(struct sg_port *port, unsigned family, const uint8_t *ip,
                             uint16_t vlan);
/* The address that a user names: if it is not link-local, on whatever VLAN. */
struct address *address_named(struct sg_port *port, const struct sg_endpoint *e);
/* The address from which 'remote' is reached, or NULL. */
struct address *address_towards(struct sg_port *port, const struct sg_endpoint *remote);
bool endpoint_is_any(const struct sg_endpoint *e);
bool endpoint_is_link_local(const struct sg_endpoint *e);
/* Can it be an end of a connection: not a group address, not loopback, not the zero address? */
bool endpoint_is_unicast(const struct sg_endpoint *e);
/* Is 'ip', of the address's family, on its link? */
bool address_on_link(const struct address *a, const uint8_t *ip);

/* neigh6.c */
struct neigh_table *neigh6_new(void);
void neigh6_free(struct sg_port *port);
err_t neigh6_output(struct address *a, struct pbuf *p, const uint8_t next_hop[16]);
void neigh6_tick(struct sg_port *port); /* once a second */
void neigh6_forget_address(struct address *a);
/* An IPv6 packet of 'len' octets, including its header.  True: a message about neighbours. */
bool neigh6_input(struct sg_port *port, uint16_t vlan, const uint8_t *ip, size_t len);

/* 0: correct.  'ip' is a packet with 'icmp_len' octets of ICMPv6. */
uint16_t neigh6_icmp_sum(const uint8_t *ip, size_t icmp_len);

/* path_mtu.c */
unsigned path_mtu(struct flow *flow);
/* An ICMP or ICMPv6 message; a report about one of our connections counts if it is plausible. */
void path_mtu_ip4(struct sg_port *port, uint16_t vlan, const uint8_t *ip, size_t len);
void path_mtu_ip6(struct sg_port *port, uint16_t vlan, const uint8_t *ip, size_t len);

/* demux.c */
unsigned demux_frame(struct sg_port *port, const uint8_t *frame, size_t len, bool looped);

/* rx_frame.c */
/* A user that may take a payload which lwIP has queued: 'take' returns true if it did. */
struct rx_early {
    bool (*take)(const void *opaque);
    const void *opaque;
};
/*
 * Runs lwIP on one frame: untagged headers, which are copied, and the payload.  What lwIP queues is
 * offered to 'early', which may be NULL, and copied if that does not take it.  False: there is no
 * memory for the copy; lwIP's queue points at the caller's memory.
 */
bool rx_frame_input(struct address *addr, const uint8_t *headers, size_t head, const uint8_t *body,
                    size_t len, const struct rx_early *early);
/* Octets of a payload, at p, that was taken: they have a number, but no content. */
bool rx_frame_was_taken(const void *p);

/* tcp_listener.c */
struct sg_stream_listener *listener_new(struct sg_stream_net *net, const struct sg_endpoint *local,
                                        unsigned backlog, sg_stream_accept accept, void *user,
                                        enum sg_stream_end *why);
void listener_free(struct sg_stream_net *net, struct sg_stream_listener *base);
/* NULL: there is no listener. */
struct tcp_pcb *listener_find(const struct sg_port *port, const struct address *addr,
                              uint16_t local_port);
/* A segment that belongs to no connection: may it open one now? */
bool listener_admits(const struct tcp_pcb *listener, unsigned flags);
/* It is no longer half open. */
void listener_opened(struct flow *flow);
void listener_pause(struct sg_stream_net *net, struct sg_stream_listener *base, bool paused);
/* The addresses have changed. */
void listener_refresh_all(struct sg_port *port);
void listener_forget_address(struct sg_port *port, const struct address *addr);

/* stream_lwip.c */
struct sg_stream *stream_connect(struct sg_stream_net *net, const struct sg_endpoint *local,
                                 const struct sg_endpoint *remote,
                                 const struct sg_stream_events *events, void *user,
                                 enum sg_stream_end *why);
err_t stream_accepted(struct tcp_listener *l, struct flow *flow);
void stream_abort(struct sg_stream *base);
void stream_shutdown(struct sg_stream *base);
/* The connection is over: 'closed' follows from stream_work(). */
void stream_end(struct stream *s, enum sg_stream_end why);
/* To be called after lwIP ran for this stream: finds what it can now send or report. */
void stream_settle(struct stream *s);
void stream_enqueue_work(struct stream *s);
/* After an upcall, around which the user counts in s->busy: frees the stream if it is gone. */
void stream_upcall_done(struct stream *s);
/* Sends the acknowledgements that were delayed for a batch of frames. */
void stream_send_acks(struct sg_port *port);
/* Delivers all events that are due; must not be called inside lwIP. */
void stream_work(struct sg_port *port);
void stream_check_connect_timeouts(struct sg_port *port);

/* stream_early.c */
/*
 * A segment with this number and these octets has arrived, and lwIP has queued it.  True: the user
 * has taken them; lwIP's queue needs their number only.
 */
bool stream_take_early(struct stream *s, uint32_t seq, const uint8_t *p, size_t n);
/* How many octets of p, which came in order, open the window. */
uint32_t stream_opens_window(struct stream *s, const struct pbuf *p);

/* stream_send.c */
/* account: the adapter's, or NULL, in both functions. */
void send_queue_init(struct send_queue *q, size_t size, struct sg_account *account);
void send_queue_free(struct send_queue *q, struct sg_account *account);
size_t stream_room(struct sg_stream *base);
bool stream_send(struct sg_stream *base, const struct iovec *iov, unsigned n, bool more);
void stream_push(struct sg_stream *base);
size_t stream_emss(struct sg_stream *base);
size_t stream_unacked(struct sg_stream *base);
void stream_pump(struct stream *s);
/* Pumps the streams that the uplink's congestion has stopped. */
void stream_pump_blocked(struct sg_port *port);
bool stream_is_writable_again(const struct stream *s);

#endif
