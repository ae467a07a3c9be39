/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A reliable octet stream (TCP), as MPA sees it.
 *
 * Two implementations: hw/net/stream_lwip.c (TCP/IP on Ethernet frames) and
 * tests/lib/stream_mem.c (in memory, for simulation and benchmarks).
 *
 * Rules.  (1) An event callback never runs inside a call made by the user of the same stream,
 * except 'receive' of the *other* end of an in-memory pair.  (2) A callback may call any operation,
 * including 'abort'; the implementation must support this.  (3) 'receive' takes all octets; a user
 * that cannot place them must abort.  (4) After 'closed' has run or 'abort' has returned the stream
 * no longer exists and must not be used.
 */
#ifndef SG_PROTO_STREAM_H
#define SG_PROTO_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct sg_endpoint {
    uint8_t family; /* 4 or 6 */
    uint16_t port;  /* host order */
    uint8_t ip[16]; /* network order; IPv4 in the first four octets; all zero: any */
    /* 802.1Q identifier, 0: none; for a link-local IPv6 address and in add_addr, else ignored. */
    uint16_t vlan;
    /* Type of service of outgoing packets; in the local endpoint of connect and listen. */
    uint8_t tos;
    /*
     * In the remote endpoint of connect: the next hop on the local address's link,
     * of the same family; all zero: determined by the local address's prefix and gateway.
     */
    uint8_t next_hop[16];
};

enum sg_stream_end {
    SG_STREAM_CLOSED,      /* both halves closed gracefully */
    SG_STREAM_REFUSED,     /* connect: RST from the peer */
    SG_STREAM_TIMEOUT,     /* connect or retransmission gave up */
    SG_STREAM_RESET,       /* RST while established */
    SG_STREAM_UNREACHABLE, /* no route, no such local address */
    SG_STREAM_NORES,       /* memory or connection table exhausted */
};

struct sg_stream {
    const struct sg_stream_ops *ops;       /* set by the implementation */
    const struct sg_stream_events *events; /* set at connect or in 'accepted' */
    void *user;
};

struct sg_stream_events {
    void (*connected)(struct sg_stream *s);
    /* n octets in order; the memory is valid during the call. */
    void (*receive)(struct sg_stream *s, const uint8_t *p, size_t n);
    /* 'room' has grown after a send was refused or fell short. */
    void (*writable)(struct sg_stream *s);
    /* The peer closed its half (FIN), after all its octets. */
    void (*peer_closed)(struct sg_stream *s);
    /* The stream is over; it is freed when this returns. */
    void (*closed)(struct sg_stream *s, enum sg_stream_end why);
    /*
     * n octets that came behind a gap: 'ahead' octets follow what 'receive' had so far, then these.
     * The whole payload of a TCP segment; 'receive' gets them again in their turn.  True: the user
     * needs none of them any more.  Then the implementation need not keep them: 'receive' gets as
     * many octets, which may be any, and the window need not count them.  NULL: nobody wants to see
     * them.  An implementation need not call this.
     */
    bool (*receive_early)(struct sg_stream *s, uint32_t ahead, const uint8_t *p, size_t n);
};

struct sg_stream_ops {
    /* Octets that 'send' accepts now. */
    size_t (*room)(struct sg_stream *s);
    /*
     * Takes all n elements (total <= room) or, when room is short, nothing and returns false:
     * 'writable' follows later.  The caller may reuse the memory on return.  'more': further sends
     * follow in this turn, the implementation may wait for 'push'.
     */
    bool (*send)(struct sg_stream *s, const struct iovec *iov, unsigned n, bool more);
    void (*push)(struct sg_stream *s);
    /* Closes our half after everything sent (FIN). */
    void (*shutdown)(struct sg_stream *s);
    /* RST, at once; no event follows. */
    void (*abort)(struct sg_stream *s);
    /* Largest TCP payload of a segment now (EMSS, octets, options already deducted). */
    size_t (*emss)(struct sg_stream *s);
    /* Octets that 'send' took and the peer's TCP has not acknowledged yet. */
    size_t (*unacked)(struct sg_stream *s);
    /*
     * Held: the window does not open.  What fits the present one may still arrive.  NULL: not
     * supported.
     */
    void (*hold)(struct sg_stream *s, bool held);
    /*
     * Sends through this neighbour from now on, of the peer's family; all zero: as the prefix and
     * gateway say.  Until then, an accepted stream answers an address beyond its link through the
     * neighbour that its segments come from.  NULL: there are no routes.
     */
    void (*set_next_hop)(struct sg_stream *s, const uint8_t next_hop[16]);
    /* Local and remote address; family 0 once the connection is gone. */
    void (*endpoints)(struct sg_stream *s, struct sg_endpoint *local, struct sg_endpoint *remote);
};

/*
 * A new inbound connection: set s->events and s->user and return true, or return false (then it is
 * reset).  The stream is already established.
 */
typedef bool (*sg_stream_accept)(void *user, struct sg_stream *s);

/* The first member of an implementation's listener, which owns it. */
struct sg_stream_listener {
    sg_stream_accept accept;
    void *user;
};

/* The stream factory of an adapter. */
struct sg_stream_net {
    const struct sg_stream_net_ops *ops;
    /*
     * The account of the adapter above, which sets and clears it, or NULL.  Memory for data in
     * flight is charged to it; without room for the minimum no stream is made (SG_STREAM_NORES).
     */
    struct sg_account *account;
};

/* Since the creation of the network. */
struct sg_net_counters {
    uint64_t tx_frames, rx_frames;  /* Ethernet frames of our streams, ARP included */
    uint64_t tx_dropped_frames;     /* of tx_frames: dropped before the wire */
    uint64_t tcp_retransmits;       /* TCP segments sent again */
    uint64_t tcp_dropped_syns;      /* a listener had no room: new ones, or half-open ones */
    uint64_t tcp_dropped_fragments; /* of segments to our connections and listeners */
    uint64_t path_mtu_reports;      /* accepted reports of routers */
};

struct sg_stream_net_ops {
    /* NULL: no memory or no such local address (*why).  'connected' or 'closed' follows. */
    struct sg_stream *(*connect)(struct sg_stream_net *net, const struct sg_endpoint *local,
                                 const struct sg_endpoint *remote,
                                 const struct sg_stream_events *events, void *user,
                                 enum sg_stream_end *why);
    /* NULL: address in use or not ours (UNREACHABLE), or no memory; local->ip all zero: any. */
    struct sg_stream_listener *(*listen)(struct sg_stream_net *net, const struct sg_endpoint *local,
                                         unsigned backlog, sg_stream_accept accept, void *user,
                                         enum sg_stream_end *why);
    void (*unlisten)(struct sg_stream_net *net, struct sg_stream_listener *l);
    /*
     * May be NULL.  Paused: new peers have to try again, without being refused, as
     * with a TCP that drops SYNs.  Half-open connections may still be accepted.
     */
    void (*pause)(struct sg_stream_net *net, struct sg_stream_listener *l, bool paused);
    /*
     * Port addresses, from SET_ADDR; false: table full, or no such address, or (add) it
     * exists on another VLAN.  An existing address gets the new prefix and gateway.
     */
    bool (*add_addr)(struct sg_stream_net *net, const struct sg_endpoint *addr, unsigned prefix_len,
                     const uint8_t gateway[16]);
    bool (*del_addr)(struct sg_stream_net *net, const struct sg_endpoint *addr);
    void (*clear_addrs)(struct sg_stream_net *net);
    /*
     * May be NULL.  Ends up to 'max' connections that no longer have a stream; false: there
     * is none left.  Called so that clear_addrs, which ends them all, finds few.
     */
    bool (*end_some)(struct sg_stream_net *net, unsigned max);
    void (*set_mtu)(struct sg_stream_net *net, unsigned mtu);
    /* Timers: does what is due at 'now'; returns the next deadline (ns) or SG_NEVER. */
    uint64_t (*run)(struct sg_stream_net *net, uint64_t now_ns);
    /* For statistics; counters that an implementation does not have are zero. */
    void (*counters)(struct sg_stream_net *net, struct sg_net_counters *out);
};

#endif
