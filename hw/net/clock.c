/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Time.
 *
 *   TCP tick     every 50 ms while lwIP has connections (TIME-WAIT included): delayed
 *                acknowledgements; every fourth one SYN, persist, TIME-WAIT timers
 *   recovery     retransmission and probes, per connection (recovery.c), to the ns
 *   ARP tick     every second while the TCP tick runs, with missed seconds made up for; it also
 *                drives IPv6's neighbours, but they skip missed seconds
 *   connect      config.connect_timeout_ms per stream, checked with the TCP tick
 *
 * The cost of a tick depends on the connections that have something under way; idle connections
 * cost nothing (pcb_list.c).
 *
 * An emulated machine may stall for long, and so may the peer's machine, without losing frames.
 * Therefore the timer of a SYN is at least a second (RFC 6298, section 2.4), and retransmission
 * pauses while the uplink is congested, though not for ever: frames that wait there are not lost,
 * and a retransmission would wait behind them.
 *
 * With no connection there is no deadline, so an idle machine sleeps.  The timers belong to the
 * shared instance: the first port that runs at a deadline does the work for all.  Events of other
 * ports' streams wait for the 'run' of those ports, which it requests by a kick.
 */
#include <string.h>

#include "net_priv.h"

#define TCP_TICK_NS (TCP_FAST_INTERVAL * NS_PER_MS)
#define ARP_TICK_NS (1000 * NS_PER_MS)

enum {
    SLOW_TICK = TCP_SLOW_INTERVAL / TCP_FAST_INTERVAL,
    /*
     * Ticks made up for at once.  Not more: after a pause of this machine, acknowledgements still
     * wait to be read, and their segments must not count as lost.
     */
    TCP_TICKS_MAX = 2,
    ARP_TICKS_MAX = 300,                    /* the lifetime of an entry */
    DEFERRED_FRAMES_MAX = 512,              /* per run */
    RTO_MIN = 1000 / TCP_SLOW_INTERVAL + 1, /* slow ticks; the first one is a part of one */
    STALL_MAX = 10000 / TCP_SLOW_INTERVAL,  /* slow ticks with a congested uplink */
};

static u32_t number_of(const struct tcp_seg *seg)
{
    return lwip_ntohl(seg->tcphdr->seqno);
}

/*
 * Prepares for the persist timer, before each slow tick.  lwIP asserts
 *
 *   - that the timer runs only with something unsent and nothing in flight.  An acknowledgement of
 *     a window probe can remove the unsent octet without stopping the timer;
 *   - when it splits the unsent segment to fit the window: that the window is not 0 in its low 16
 *     bits and not beyond pcb->mss.  But the timer continues while only the congestion window
 *     blocks, whatever the peer's window has become, and pcb->mss may have shrunk since the segment
 *     was made (set_mtu).
 *
 * With nothing in flight the congestion window is at least a segment (RFC 5681, section 3.1), even
 * one that is larger than today's segments; otherwise it would never open.  So the first segment
 * goes out if the peer's window has room, and the timer is for a smaller window.  pcb->mss is
 * stream_emss()'s again before anything else is split by it.
 */
static void mend_sender(struct tcp_pcb *pcb)
{
    const struct tcp_seg *first;
    u32_t need;

    first = pcb->unacked ? pcb->unacked : pcb->unsent;
    if (pcb->persist_backoff && (!pcb->unsent || pcb->unacked)) {
        pcb->persist_backoff = 0;
    }
    if (!first || first->len == 0) {
        return;
    }
    pcb->mss = MAX(pcb->mss, first->len); /* also what is left of cwnd on a retransmission */
    if (pcb->unacked || (pcb->persist_backoff == 0 && pcb->rtime >= 0)) {
        return;
    }
    need = number_of(first) - pcb->lastack + first->len;
    pcb->cwnd = MAX(pcb->cwnd, need);
    if (pcb->snd_wnd >= need) {
        pcb->persist_backoff = 0;
    }
    if (pcb->persist_backoff == 0) {
        tcp_output(pcb);
    }
}

static void prepare_slow_tick(void)
{
    struct sg_port *port;
    struct tcp_pcb *pcb;

    for (port = sg_stack.ports; port; port = port->next) {
        bool free = !port->ops->can_send || port->ops->can_send(port->opaque);

        port->stalled = free ? 0 : MIN(port->stalled + 1, STALL_MAX + 1);
    }
    for (pcb = tcp_active_pcbs; pcb; pcb = pcb->next) {
        struct flow *flow = flow_of(pcb);

        mend_sender(pcb);
        pcb->rto = MAX(pcb->rto, RTO_MIN);
        if (pcb->state >= ESTABLISHED) {
            pcb->rtime = -1; /* off: recovery.c has its own timer */
        } else if (flow && flow->port->stalled && flow->port->stalled <= STALL_MAX) {
            pcb->rtime = MIN(pcb->rtime, 0);
        }
    }
}

bool clock_waits_for_uplink(const struct sg_port *port)
{
    return port->stalled <= STALL_MAX && port->ops->can_send && !port->ops->can_send(port->opaque);
}

static bool timers_needed(void)
{
    return sg_stack.flows > 0;
}

static void tick_arp(void)
{
    struct sg_port *port;
    unsigned n = 0;

    if (sg_stack.arp_tick != SG_NEVER && sg_stack.now >= sg_stack.arp_tick) {
        for (port = sg_stack.ports; port; port = port->next) {
            neigh6_tick(port);
        }
    }

    if (sg_stack.arp_tick == SG_NEVER) {
        sg_stack.arp_tick = sg_stack.now + ARP_TICK_NS;
    }
    for (; sg_stack.now >= sg_stack.arp_tick && n < ARP_TICKS_MAX; n++) {
        etharp_tmr();
        sg_stack.arp_tick += ARP_TICK_NS;
    }
    if (sg_stack.now >= sg_stack.arp_tick) {
        sg_stack.arp_tick = sg_stack.now + ARP_TICK_NS;
    }
}

/*
 * While nothing needed timers, the ARP entries have not aged.  They age here, before a new
 * connection makes its first request, which must not age with them.
 */
static void set_now(uint64_t now)
{
    if (now > sg_stack.now) {
        sg_stack.now = now;
    }
    if (!timers_needed()) {
        sg_stack.tcp_tick = SG_NEVER;
        tick_arp();
    }
}

/* Must be called before anything that may use lwIP. */
void clock_update(struct sg_port *port)
{
    set_now(port->ops->now(port->opaque));
}

static void tick(void)
{
    static unsigned ticks;
    unsigned n = 0;

    if (!timers_needed()) {
        sg_stack.tcp_tick = SG_NEVER;
        return;
    }
    if (sg_stack.tcp_tick == SG_NEVER) {
        sg_stack.tcp_tick = sg_stack.now + TCP_TICK_NS;
    }
    for (; sg_stack.now >= sg_stack.tcp_tick && n < TCP_TICKS_MAX; n++) {
        pcb_list_show_busy();
        tcp_fasttmr();
        if (++ticks % SLOW_TICK == 0) {
            pcb_list_wake_due();
            pcb_list_show_busy();
            prepare_slow_tick();
            tcp_slowtmr();
        }
        pcb_list_sleep_idle();
        sg_stack.tcp_tick += TCP_TICK_NS;
    }
    if (sg_stack.now >= sg_stack.tcp_tick) {
        sg_stack.tcp_tick = sg_stack.now + TCP_TICK_NS;
    }
    tick_arp();
}

static uint64_t next_deadline(const struct sg_port *port)
{
    return timers_needed() ? MIN(sg_stack.tcp_tick, sg_timerq_next(&port->timers)) : SG_NEVER;
}

void clock_arm(struct sg_port *port)
{
    if (timers_needed() && sg_stack.tcp_tick == SG_NEVER) {
        sg_stack.tcp_tick = sg_stack.now + TCP_TICK_NS;
    }
    if (port->deadline > next_deadline(port)) {
        port->deadline = next_deadline(port);
        port_kick(port);
    }
}

/* Only the frames present on entry, so that two streams of one port cannot loop here for ever. */
static void process_deferred_frames(struct sg_port *port)
{
    unsigned n;

    for (n = 0; n < DEFERRED_FRAMES_MAX && port->deferred_head; n++) {
        struct deferred_frame *k = port_next_deferred(port);

        demux_frame(port, k->data, k->len, memcmp(k->data + 6, port->mac, 6) == 0);
        g_free(k);
    }
    if (port->deferred_head) {
        port_kick(port);
    }
}

uint64_t clock_run(struct sg_stream_net *net, uint64_t now_ns)
{
    struct sg_port *port = port_of_net(net);

    set_now(now_ns);
    if (sg_stack.active || sg_stack.sending) { /* called from a callback: defer */
        port_kick(port);
        return port->deadline;
    }
    sg_stack.active = port;
    stream_send_acks(port);
    process_deferred_frames(port);
    tick();
    sg_timerq_run(&port->timers, sg_stack.now);
    stream_check_connect_timeouts(port);
    if (port->uplink_ready) {
        stream_pump_blocked(port);
    }
    stream_work(port);
    sg_stack.active = NULL;
    if (timers_needed() && sg_stack.tcp_tick == SG_NEVER) {
        sg_stack.tcp_tick = sg_stack.now + TCP_TICK_NS;
    }
    port->deadline = next_deadline(port);
    return port->deadline;
}
