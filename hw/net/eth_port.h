/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet port of an adapter: TCP/IP for the adapter's streams, and the demultiplexer that
 * divides what the uplink delivers between the adapter and the NIC that shares the port.
 *
 * The host (QEMU glue or a test) owns the uplink.  It passes every frame from the uplink to
 * sg_port_input(), which consumes the adapter's frames and says whether the NIC behind the
 * port gets the frame too.  Frames from that NIC go to the uplink directly.
 *
 * All ports of a process share one TCP/IP instance: the host serialises the calls of all ports and
 * of the adapters above them.  A frame that arrives while another one is being sent or processed
 * (an uplink that delivers at once) is queued and processed in the next sg_stream_net_ops.run.
 */
#ifndef SG_NET_ETH_PORT_H
#define SG_NET_ETH_PORT_H

#include "proto/stream.h"
#include "staghorn/admin.h"

#define SG_PORT_MTU_MIN 576u
#define SG_PORT_MTU_MAX 65521u /* an Ethernet frame of 65535 octets */

#define SG_PORT_PEER_TIMEOUT_MIN 2000u /* ms */
#define SG_PORT_PEER_TIMEOUT_MAX 3600000u
#define SG_PORT_PEER_TIMEOUT_NONE UINT32_MAX

#define SG_PORT_RTO_MIN_MAX 10000u /* ms */

#define SG_PORT_WINDOW_MIN (256u * 1024) /* octets */
#define SG_PORT_WINDOW_MAX (16u * 1024 * 1024)
#define SG_PORT_SEND_BUFFER_MIN (64u * 1024)
#define SG_PORT_SEND_BUFFER_MAX (16u * 1024 * 1024)

struct sg_port;

/* The operations of a port's host.  None of them may call back into this or another port. */
struct sg_port_ops {
    /*
     * Sends one Ethernet frame (header first, no FCS) to the uplink.  The memory is valid during
     * the call.  A frame that the uplink cannot take must be queued or dropped; TCP repairs a loss.
     * An uplink that calls sg_port_input() of any port from here is tolerated.
     */
    void (*send_frame)(void *opaque, const struct iovec *iov, unsigned n);
    /*
     * May be NULL (always).  False: the uplink is congested; streams submit no further segments
     * until sg_port_uplink_ready().  Acknowledgements and retransmissions are sent nevertheless.
     */
    bool (*can_send)(void *opaque);
    /* Monotonic time, ns; the clock that is also passed to 'run'. */
    uint64_t (*now)(void *opaque);
    /* Unpredictable octets: sequence numbers, local ports. */
    void (*random)(void *opaque, void *buf, size_t len);
    /* Call sg_stream_net_ops.run soon, from a fresh stack.  May be called often. */
    void (*kick)(void *opaque);
};

/* Zero in a field: the default. */
struct sg_port_config {
    unsigned mtu;                /* octets, SG_PORT_MTU_MIN to _MAX; 1500 */
    unsigned max_connections;    /* streams, half-open and closing ones included; 66560 */
    size_t send_buffer;          /* octets per stream, power of two, _MIN to _MAX; 1 MiB */
    size_t window;               /* receive window, octets, _MIN to _MAX; 1 MiB */
    unsigned connect_timeout_ms; /* 1 to 12000; 10000 */
    /*
     * A peer that is silent for this time counts as dead: SG_PORT_PEER_TIMEOUT_MIN to _MAX;
     * 60000.  NONE: an idle connection is not watched; one with something to send gives up
     * after about four minutes of retransmissions.
     */
    unsigned peer_timeout_ms;
    /* Minimum margin of the retransmission timeout above the round trip: 1 to 10000 ms; 200. */
    unsigned rto_min_ms;
};

enum sg_port_verdict {
    SG_PORT_TO_ADAPTER = 1, /* consumed by sg_port_input() */
    SG_PORT_TO_NIC = 2,     /* the host passes the frame to the NIC behind the port */
};

struct sg_port_counters {
    uint64_t frames_in; /* frames of the adapter */
    uint64_t frames_out;
    uint64_t checksum_errors;  /* segments dropped for a bad TCP checksum */
    uint64_t dropped;          /* frames dropped because the queue of frames was full */
    uint64_t uplink_dropped;   /* of frames_out: dropped by the uplink */
    uint64_t retransmits;      /* segments */
    uint64_t syns_dropped;     /* no room at a listener: new ones, or half-open ones */
    uint64_t fragments;        /* dropped fragments of segments for the adapter */
    uint64_t path_mtu_reports; /* accepted reports of routers */
    uint64_t visits;           /* connections examined, for timers or to find one: the cost */
    unsigned streams;          /* now: streams with a user */
    unsigned connections;      /* now: TCP connections, half-open and TIME-WAIT included */
    unsigned listeners;        /* now */
};

/*
 * Creates a port without addresses.  'ops' and 'opaque' must outlive it; 'config' may be NULL.
 * NULL: a field of 'config' is out of range.
 */
struct sg_port *sg_port_new(const struct sg_port_ops *ops, void *opaque, const uint8_t mac[6],
                            const struct sg_port_config *config);

/* Ends everything (streams get RST, their users no event) and frees the port. */
void sg_port_free(struct sg_port *port);

/* The stream factory for the adapter; lives as long as the port. */
struct sg_stream_net *sg_port_stream_net(struct sg_port *port);

/*
 * A frame from the uplink, without FCS.  Returns the union of enum sg_port_verdict.  Events of
 * streams run inside this call.  The frame is not modified and may be freed on return.
 */
unsigned sg_port_input(struct sg_port *port, const uint8_t *frame, size_t len);

/* The uplink can take frames again. */
void sg_port_uplink_ready(struct sg_port *port);

/*
 * Drops all connections, listeners and addresses, as sg_port_free() does, but keeps the port:
 * for a reset of the adapter.
 */
void sg_port_reset(struct sg_port *port);

/* The uplink has dropped a frame of send_frame(). */
void sg_port_count_dropped(struct sg_port *port);

/* Changes max_connections; connections beyond the limit continue, and no new ones are accepted. */
void sg_port_set_max_connections(struct sg_port *port, unsigned n);

void sg_port_set_mac(struct sg_port *port, const uint8_t mac[6]);
void sg_port_counters(const struct sg_port *port, struct sg_port_counters *out);

#endif
