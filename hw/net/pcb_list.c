/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lwIP's lists of connections, and the entries that lwIP finds in them.
 *
 * lwIP searches its lists for each segment and walks through them in each timer.  Idle connections
 * would slow down every doorbell and every SYN.  So its lists are empty between its calls, and each
 * connection is in one of our lists:
 *
 *   busy        lwIP's timers have something to do for it, or had until a moment ago
 *   idle        nothing is in flight, unsent, unacknowledged or out of order
 *   time_wait   in the order in which they end
 *
 * tcp_input() sees only the connection that flow.c has found, or the listener.  The timers see the
 * busy ones.  lwIP removes a connection from any list, and accepts that it is in none.  So a
 * connection may end at any time; it leaves our list in flow_destroyed().
 *
 * A connection that sends or receives becomes busy; the next tick finds that it is idle again.  The
 * only work of lwIP for an idle connection is to probe a silent peer (RFC 9293, section 3.8.4).
 * The timing wheel makes the connection busy for the tick in which that is due.
 */
#include "net_priv.h"

#define TIME_WAIT_TICKS (2 * TCP_MSL / TCP_SLOW_INTERVAL)

void pcb_list_init(struct sg_port *port)
{
    unsigned i;

    link_init(&port->lists.busy);
    link_init(&port->lists.time_wait);
    for (i = 0; i < IDLE_SLOTS; i++) {
        link_init(&port->lists.idle[i]);
    }
}

void pcb_list_add(struct flow *flow)
{
    link_append(&flow->port->lists.busy, &flow->list);
}

void pcb_list_remove(struct flow *flow)
{
    link_remove(&flow->list);
}

void pcb_list_wake(struct flow *flow)
{
    if (flow->idle) {
        flow->idle = false;
        link_remove(&flow->list);
        link_append(&flow->port->lists.busy, &flow->list);
    }
}

void pcb_list_settle(struct flow *flow)
{
    if (flow->pcb->state != TIME_WAIT) {
        return;
    }
    if (!flow->time_wait || flow->pcb->tmr == tcp_ticks) { /* TIME-WAIT begins, or restarts */
        flow->time_wait = true;
        link_remove(&flow->list);
        link_append(&flow->port->lists.time_wait, &flow->list);
    }
}

void pcb_list_hide(void)
{
    tcp_active_pcbs = tcp_tw_pcbs = NULL;
    tcp_listen_pcbs.pcbs = NULL;
}

void pcb_list_show(struct flow *flow, struct tcp_pcb *listener)
{
    pcb_list_hide();
    if (flow) {
        flow->port->count.visits++;
        pcb_list_wake(flow);
        flow->pcb->next = NULL;
        *(flow->pcb->state == TIME_WAIT ? &tcp_tw_pcbs : &tcp_active_pcbs) = flow->pcb;
    } else if (listener) {
        listener->next = NULL;
        tcp_listen_pcbs.pcbs = listener;
    }
}

void pcb_list_show_busy(void)
{
    struct sg_port *port;
    struct link *l;

    pcb_list_hide();
    for (port = sg_stack.ports; port; port = port->next) {
        for (l = port->lists.busy.next; l != &port->lists.busy; l = l->next) {
            struct tcp_pcb *pcb = link_entry(l, struct flow, list)->pcb;

            port->count.visits++;
            pcb->next = tcp_active_pcbs;
            tcp_active_pcbs = pcb;
        }
    }
}

/* Is probing a silent peer the only work left for lwIP's timers? */
static bool is_idle(const struct tcp_pcb *pcb)
{
    bool open = pcb->state == ESTABLISHED || pcb->state == CLOSE_WAIT ||
                (pcb->state == FIN_WAIT_2 && !(pcb->flags & TF_RXCLOSED));

    return open && !pcb->unsent && !pcb->unacked && !pcb->ooseq && !pcb->refused_data &&
           pcb->persist_backoff == 0 && pcb->keep_cnt_sent == 0 && pcb->rtime < 0 &&
           !(pcb->flags & (TF_ACK_DELAY | TF_ACK_NOW | TF_CLOSEPEND));
}

/* Ticks from 'now' to the one in which lwIP probes the peer; 0: it may be now. */
static unsigned ticks_to_go(const struct tcp_pcb *pcb, u32_t now)
{
    u32_t silent = now - pcb->tmr, patience = pcb->keep_idle / TCP_SLOW_INTERVAL + 1;

    if (!ip_get_option(pcb, SOF_KEEPALIVE) || pcb->state == FIN_WAIT_2) {
        return IDLE_SLOTS - 1;
    }
    return silent < patience ? MIN(patience - silent, IDLE_SLOTS - 1) : 0;
}

static void sleep_or_stay(struct flow *flow, u32_t now)
{
    unsigned ticks = is_idle(flow->pcb) ? ticks_to_go(flow->pcb, now) : 0;
    struct pcb_lists *lists = &flow->port->lists;

    flow->port->count.visits++;
    link_remove(&flow->list);
    flow->idle = ticks > 0;
    link_append(ticks ? &lists->idle[(now + ticks) % IDLE_SLOTS] : &lists->busy, &flow->list);
}

/* Calls sleep_or_stay() for the present entries of the list. */
static void sort(struct link *list, u32_t now)
{
    struct link *last = list->prev, *l = list->next, *next;
    bool more = l != list;

    for (; more; l = next) {
        more = l != last;
        next = l->next;
        sleep_or_stay(link_entry(l, struct flow, list), now);
    }
}

void pcb_list_wake_due(void)
{
    u32_t now = tcp_ticks + 1;
    struct sg_port *port;

    for (port = sg_stack.ports; port; port = port->next) {
        sort(&port->lists.idle[now % IDLE_SLOTS], now);
    }
}

static void end_time_wait(struct sg_port *port)
{
    struct link *list = &port->lists.time_wait;

    while (!link_alone(list)) {
        struct tcp_pcb *pcb = link_entry(list->next, struct flow, list)->pcb;

        if ((u32_t)(tcp_ticks - pcb->tmr) <= TIME_WAIT_TICKS) {
            return;
        }
        port->count.visits++;
        tcp_abort(pcb); /* which sends nothing in this state */
    }
}

void pcb_list_sleep_idle(void)
{
    struct sg_port *port;

    pcb_list_hide();
    for (port = sg_stack.ports; port; port = port->next) {
        sort(&port->lists.busy, tcp_ticks);
        end_time_wait(port);
    }
}

struct flow *pcb_list_oldest_time_wait(const struct sg_port *port)
{
    const struct link *list = &port->lists.time_wait;
    struct flow *oldest = link_alone(list) ? NULL : link_entry(list->next, struct flow, list);

    return oldest && !oldest->stream ? oldest : NULL;
}

void pcb_list_forget_listener(struct tcp_listener *of, const struct tcp_pcb *listener)
{
    struct link *l;

    for (l = of->half_open.next; l != &of->half_open; l = l->next) {
        struct tcp_pcb *pcb = link_entry(l, struct flow, half_open)->pcb;

        if ((const void *)pcb->listener == (const void *)listener) {
            pcb->listener = NULL;
        }
    }
}
