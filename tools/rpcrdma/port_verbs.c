/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queues are polled: a test waits for one message at a time, and interrupts would only hide when
 * something came.
 */
#include "port_verbs.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SENDS = 4, NAP_US = 100, BACKLOG = 16, READS_AT_ONCE = 16 };

struct verbs_port {
    struct rr_port port;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *sends, *receives;
    struct ibv_mr *mr; /* of the receives */
    uint8_t *memory;
    unsigned count;
    size_t size;
    uint8_t reads; /* RDMA Reads at once that the device can do, in both directions */
    bool windows;  /* what is lent is a memory window, which the peer can invalidate */
    bool over;
};

/* Registered memory; what is lent through a window has one. */
struct verbs_memory {
    struct ibv_mr *mr;
    struct ibv_mw *mw;
};

struct rr_listener {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
};

static struct verbs_port *of(struct rr_port *port)
{
    return (struct verbs_port *)port;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void nap(const struct verbs_port *p)
{
    if (p->port.eager) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){ .tv_nsec = NAP_US * 1000 }, NULL);
}

__attribute__((format(printf, 2, 3))) static bool say_why(char *why, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(why, RR_WHY, format, ap);
    va_end(ap);
    return false;
}

/* ---- Events of the connection manager ---- */

/* Whether an event is there within the time. */
static bool event_waits(struct rdma_event_channel *channel, unsigned ms)
{
    struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

    return poll(&fd, 1, (int)ms) == 1;
}

/* Waits for the event that a step ends with; keeps the private data of the peer. */
static bool expect_event(struct verbs_port *p, enum rdma_cm_event_type type, char *why)
{
    struct rdma_cm_event *event;
    bool right;

    if (!event_waits(p->channel, RR_CONNECT_LIMIT_MS)) {
        return say_why(why, "no %s within %d ms", rdma_event_str(type), RR_CONNECT_LIMIT_MS);
    }
    if (rdma_get_cm_event(p->channel, &event)) {
        return say_why(why, "no event: %s", strerror(errno));
    }
    right = event->event == type;
    if (event->event == RDMA_CM_EVENT_REJECTED) {
        say_why(why, "the peer refuses (status %d): perhaps nobody listens there", event->status);
    } else if (!right) {
        say_why(why, "%s (status %d) instead of %s", rdma_event_str(event->event), event->status,
                rdma_event_str(type));
    } else if (type == RDMA_CM_EVENT_ESTABLISHED && event->param.conn.private_data &&
               !p->port.peer_len) {
        p->port.peer_len = event->param.conn.private_data_len;
        memcpy(p->port.peer, event->param.conn.private_data, p->port.peer_len);
    }
    rdma_ack_cm_event(event);
    return right;
}

/* Has the peer ended the connection? */
static bool has_ended(struct verbs_port *p)
{
    struct rdma_cm_event *event;

    if (!p->over && event_waits(p->channel, 0) && !rdma_get_cm_event(p->channel, &event)) {
        p->over = event->event == RDMA_CM_EVENT_DISCONNECTED ||
                  event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
        rdma_ack_cm_event(event);
    }
    return p->over;
}

/* ---- Work ---- */

static bool post_receive(struct verbs_port *p, unsigned slot)
{
    struct ibv_sge sge = { .addr = (uintptr_t)p->memory + slot * p->size,
                           .length = (uint32_t)p->size,
                           .lkey = p->mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;
    int error = ibv_post_recv(p->id->qp, &wr, &bad);

    return error ? rr_port_fails(&p->port, "cannot post a receive: %s", strerror(error)) : true;
}

static bool verbs_repost(struct rr_port *port, unsigned slot)
{
    return post_receive(of(port), slot);
}

static bool complete(struct verbs_port *p)
{
    int64_t end = now_ms() + RR_WORK_LIMIT_MS;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(p->sends, 1, &wc)) == 0) {
        if (now_ms() > end) {
            return rr_port_fails(&p->port, "not complete within %d ms", RR_WORK_LIMIT_MS);
        }
        nap(p);
    }
    if (n < 0) {
        return rr_port_fails(&p->port, "cannot poll the completion queue");
    }
    if (wc.status != IBV_WC_SUCCESS) {
        /* So siw says that TCP's connection was over when it sent. */
        p->port.gone = wc.status == IBV_WC_LOC_QP_OP_ERR;
        return rr_port_fails(&p->port, "a work request ended with \"%s\"",
                             ibv_wc_status_str(wc.status));
    }
    return true;
}

static bool verbs_post(struct rr_port *port, const struct rr_post *post)
{
    static const enum ibv_wr_opcode opcodes[] = {
        [RR_WORK_SEND] = IBV_WR_SEND,
        [RR_WORK_SEND_INV] = IBV_WR_SEND_WITH_INV,
        [RR_WORK_WRITE] = IBV_WR_RDMA_WRITE,
        [RR_WORK_READ] = IBV_WR_RDMA_READ,
    };
    struct verbs_port *p = of(port);
    const struct verbs_memory *memory = post->local->own;
    struct ibv_sge sge = { .addr = (uintptr_t)post->local->octets + post->at,
                           .length = (uint32_t)post->len,
                           .lkey = memory->mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge,
                              .num_sge = post->len ? 1 : 0,
                              .opcode = opcodes[post->work],
                              .send_flags = IBV_SEND_SIGNALED };
    struct ibv_send_wr *bad;
    int error;

    /* Who has left cannot be blamed for memory that is not there any more. */
    port->gone = post->work >= RR_WORK_WRITE && has_ended(p);
    if (port->gone) {
        return rr_port_fails(port, "the connection is over");
    }
    if (post->work == RR_WORK_SEND_INV) {
        wr.invalidate_rkey = post->stag;
    } else if (post->work != RR_WORK_SEND) {
        wr.wr.rdma.remote_addr = post->offset;
        wr.wr.rdma.rkey = post->stag;
    }
    error = ibv_post_send(p->id->qp, &wr, &bad);
    if (error) {
        return rr_port_fails(port, "cannot post: %s", strerror(error));
    }
    return complete(p);
}

/* Binds a window to the region; its key is the STag. */
static bool bind_window(struct verbs_port *p, struct rr_region *region, unsigned access)
{
    struct verbs_memory *m = region->own;
    struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
    int error;

    m->mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
    if (!m->mw) {
        return rr_port_fails(&p->port, "no memory window: %s", strerror(errno));
    }
    wr.bind_mw.mw = m->mw;
    wr.bind_mw.rkey = ibv_inc_rkey(m->mw->rkey);
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ .mr = m->mr,
                                                      .addr = (uintptr_t)region->octets,
                                                      .length = region->len,
                                                      .mw_access_flags = access };
    error = ibv_post_send(p->id->qp, &wr, &bad);
    if (error) {
        return rr_port_fails(&p->port, "cannot bind a memory window: %s", strerror(error));
    }
    region->stag = wr.bind_mw.rkey;
    return complete(p);
}

static bool verbs_dereg(struct rr_port *port, struct rr_region *region)
{
    struct verbs_memory *m = region->own;
    int error = m && m->mw ? ibv_dealloc_mw(m->mw) : 0;

    if (m && m->mr && !error) {
        error = ibv_dereg_mr(m->mr);
    }
    free(m);
    region->own = NULL;
    region->valid = false;
    return !error || rr_port_fails(port, "cannot take memory back: %s", strerror(error));
}

static bool verbs_reg(struct rr_port *port, struct rr_region *region)
{
    struct verbs_port *p = of(port);
    bool window = p->windows && region->access && region->len;
    unsigned access = region->access & RR_MAY_READ ? IBV_ACCESS_REMOTE_READ : 0;
    struct verbs_memory *m = calloc(1, sizeof(*m));

    access |= region->access & RR_MAY_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0;
    region->own = m;
    if (m) {
        m->mr = ibv_reg_mr(p->pd, region->octets, SG_MAX(region->len, 1),
                           IBV_ACCESS_LOCAL_WRITE | (window ? IBV_ACCESS_MW_BIND : access));
    }
    if (!m || !m->mr) {
        verbs_dereg(port, region);
        return rr_port_fails(port, "cannot register %zu octets: %s", region->len, strerror(errno));
    }
    region->stag = m->mr->rkey;
    region->valid = !window || bind_window(p, region, access);
    if (!region->valid) {
        verbs_dereg(port, region);
        return false;
    }
    return true;
}

static bool received(struct verbs_port *p, struct rr_event *event)
{
    struct ibv_wc wc;

    if (ibv_poll_cq(p->receives, 1, &wc) != 1) {
        return false;
    }
    if (wc.status != IBV_WC_SUCCESS) {
        p->over = true;
        return rr_port_fails(&p->port, "a receive ended with \"%s\"", ibv_wc_status_str(wc.status));
    }
    *event = (struct rr_event){
        .octets = sg_span_of(p->memory + wc.wr_id * p->size, wc.byte_len),
        .slot = (unsigned)wc.wr_id,
        .invalidated = wc.wc_flags & IBV_WC_WITH_INV,
        .stag = wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : 0,
    };
    return true;
}

static enum rr_event_kind verbs_poll(struct rr_port *port, unsigned ms, struct rr_event *event)
{
    struct verbs_port *p = of(port);
    int64_t end = now_ms() + ms;

    for (;;) {
        bool ended = has_ended(p);

        /* What came before the end is still there. */
        if (received(p, event)) {
            return RR_EVENT_RECEIVED;
        }
        if (ended || p->over) {
            return RR_EVENT_CLOSED;
        }
        if (now_ms() >= end) {
            return RR_EVENT_NONE;
        }
        nap(p);
    }
}

/* ---- Making and ending a connection ---- */

static void verbs_close(struct rr_port *port)
{
    struct verbs_port *p = of(port);

    if (p->id && p->id->qp) {
        rdma_disconnect(p->id);
        rdma_destroy_qp(p->id);
    }
    if (p->mr) {
        ibv_dereg_mr(p->mr);
    }
    if (p->sends) {
        ibv_destroy_cq(p->sends);
    }
    if (p->receives) {
        ibv_destroy_cq(p->receives);
    }
    if (p->pd) {
        ibv_dealloc_pd(p->pd);
    }
    if (p->id) {
        rdma_destroy_id(p->id);
    }
    if (p->channel) {
        rdma_destroy_event_channel(p->channel);
    }
    free(p->memory);
    free(p);
}

static const struct rr_port_ops verbs_ops = {
    .post = verbs_post,
    .repost = verbs_repost,
    .reg = verbs_reg,
    .dereg = verbs_dereg,
    .poll = verbs_poll,
    .close = verbs_close,
};

static struct verbs_port *new_port(char *why)
{
    struct verbs_port *p = calloc(1, sizeof(*p));

    if (!p) {
        say_why(why, "no memory");
        return NULL;
    }
    p->port.ops = &verbs_ops;
    p->channel = rdma_create_event_channel();
    if (!p->channel) {
        say_why(why, "no RDMA connection manager: %s; load the kernel module rdma_ucm",
                strerror(errno));
        free(p);
        return NULL;
    }
    return p;
}

/* The queues; all receives are posted before the connection can carry anything. */
static bool prepare(struct verbs_port *p, const struct rr_port_side *side, char *why)
{
    struct ibv_qp_init_attr qp = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = SENDS, .max_send_sge = 1, .max_recv_sge = 1 },
    };
    struct ibv_device_attr device;

    p->count = side->receives;
    p->size = side->receive_size;
    p->memory = calloc(p->count, p->size);
    if (ibv_query_device(p->id->verbs, &device)) {
        return say_why(why, "cannot query the device: %s", strerror(errno));
    }
    p->reads =
        (uint8_t)SG_MIN(READS_AT_ONCE, SG_MIN(device.max_qp_rd_atom, device.max_qp_init_rd_atom));
    p->windows =
        device.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    p->pd = ibv_alloc_pd(p->id->verbs);
    p->sends = ibv_create_cq(p->id->verbs, SENDS, NULL, NULL, 0);
    p->receives = ibv_create_cq(p->id->verbs, (int)p->count, NULL, NULL, 0);
    if (p->pd && p->memory) {
        p->mr = ibv_reg_mr(p->pd, p->memory, p->count * p->size, IBV_ACCESS_LOCAL_WRITE);
    }
    if (!p->sends || !p->receives || !p->mr) {
        return say_why(why, "no protection domain, completion queues or memory: %s",
                       strerror(errno));
    }
    qp.send_cq = p->sends;
    qp.recv_cq = p->receives;
    qp.cap.max_recv_wr = p->count;
    if (rdma_create_qp(p->id, p->pd, &qp)) {
        return say_why(why, "cannot create a queue pair: %s", strerror(errno));
    }
    for (unsigned i = 0; i < p->count; i++) {
        if (!post_receive(p, i)) {
            return say_why(why, "%s", p->port.why);
        }
    }
    return true;
}

static struct rdma_conn_param parameters(const struct verbs_port *p,
                                         const struct rr_port_side *side)
{
    return (struct rdma_conn_param){
        .private_data = side->private_len ? side->private_data : NULL,
        .private_data_len = (uint8_t)side->private_len,
        .responder_resources = p->reads,
        .initiator_depth = p->reads,
        .retry_count = 7,
        .rnr_retry_count = 7,
    };
}

static bool connect_to(struct verbs_port *p, const struct rr_verbs_dialer *d,
                       const struct rr_port_side *side, char *why)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
    struct rdma_conn_param param;
    int error = getaddrinfo(d->host, d->service, &hints, &found);

    if (error) {
        return say_why(why, "%s: %s", d->host, gai_strerror(error));
    }
    error = rdma_create_id(p->channel, &p->id, NULL, RDMA_PS_TCP) ||
            rdma_resolve_addr(p->id, NULL, found->ai_addr, RR_CONNECT_LIMIT_MS);
    freeaddrinfo(found);
    if (error) {
        return say_why(why, "no RDMA device leads to %s: %s", d->host, strerror(errno));
    }
    if (!expect_event(p, RDMA_CM_EVENT_ADDR_RESOLVED, why)) {
        return false;
    }
    if (rdma_resolve_route(p->id, RR_CONNECT_LIMIT_MS)) {
        return say_why(why, "no route to %s: %s", d->host, strerror(errno));
    }
    if (!expect_event(p, RDMA_CM_EVENT_ROUTE_RESOLVED, why) || !prepare(p, side, why)) {
        return false;
    }
    param = parameters(p, side);
    if (rdma_connect(p->id, &param)) {
        return say_why(why, "cannot connect: %s", strerror(errno));
    }
    return expect_event(p, RDMA_CM_EVENT_ESTABLISHED, why);
}

static struct rr_port *dial(struct rr_dialer *dialer, const struct rr_port_side *side)
{
    struct verbs_port *p = new_port(dialer->why);

    if (p && !connect_to(p, (const struct rr_verbs_dialer *)dialer, side, dialer->why)) {
        verbs_close(&p->port);
        p = NULL;
    }
    dialer->invalidates = p && p->windows;
    return p ? &p->port : NULL;
}

void rr_verbs_dialer_init(struct rr_verbs_dialer *dialer, const char *host, unsigned port)
{
    memset(dialer, 0, sizeof(*dialer));
    dialer->dialer.dial = dial;
    dialer->host = host;
    snprintf(dialer->service, sizeof(dialer->service), "%u", port);
}

/* ---- Clients ---- */

struct rr_listener *rr_listen(const char *address, unsigned port, char *why)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
    struct rr_listener *l = calloc(1, sizeof(*l));
    char service[8];
    int error;

    if (!l) {
        say_why(why, "no memory");
        return NULL;
    }
    snprintf(service, sizeof(service), "%u", port);
    error = getaddrinfo(address, service, &hints, &found);
    if (error) {
        say_why(why, "%s: %s", address, gai_strerror(error));
        free(l);
        return NULL;
    }
    l->channel = rdma_create_event_channel();
    if (!l->channel || rdma_create_id(l->channel, &l->id, NULL, RDMA_PS_TCP) ||
        rdma_bind_addr(l->id, found->ai_addr) || rdma_listen(l->id, BACKLOG)) {
        say_why(why, "cannot listen at port %u: %s", port, strerror(errno));
        rr_listener_free(l);
        l = NULL;
    }
    freeaddrinfo(found);
    return l;
}

void rr_listener_free(struct rr_listener *listener)
{
    if (listener->id) {
        rdma_destroy_id(listener->id);
    }
    if (listener->channel) {
        rdma_destroy_event_channel(listener->channel);
    }
    free(listener);
}

/* The request's identifier gets a channel of its own, as those that we dial with have. */
static bool take(struct verbs_port *p, struct rdma_cm_event *event, const struct rr_port_side *side,
                 char *why)
{
    struct rdma_conn_param param;

    p->id = event->id;
    if (event->param.conn.private_data) {
        p->port.peer_len = event->param.conn.private_data_len;
        memcpy(p->port.peer, event->param.conn.private_data, p->port.peer_len);
    }
    rdma_ack_cm_event(event);
    if (rdma_migrate_id(p->id, p->channel)) {
        return say_why(why, "cannot take a connection: %s", strerror(errno));
    }
    if (!prepare(p, side, why)) {
        return false;
    }
    /* A responder lends nothing: the sinks of its RDMA Reads are its own. */
    p->windows = false;
    param = parameters(p, side);
    if (rdma_accept(p->id, &param)) {
        return say_why(why, "cannot accept a connection: %s", strerror(errno));
    }
    return expect_event(p, RDMA_CM_EVENT_ESTABLISHED, why);
}

struct rr_port *rr_accept(struct rr_listener *listener, const struct rr_port_side *side,
                          unsigned ms, char *why)
{
    struct rdma_cm_event *event;
    struct verbs_port *p;

    why[0] = '\0';
    if (!event_waits(listener->channel, ms) || rdma_get_cm_event(listener->channel, &event)) {
        return NULL;
    }
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        rdma_ack_cm_event(event);
        return NULL;
    }
    p = new_port(why);
    if (!p) {
        rdma_reject(event->id, NULL, 0);
        rdma_ack_cm_event(event);
    } else if (!take(p, event, side, why)) {
        verbs_close(&p->port);
        p = NULL;
    }
    return p ? &p->port : NULL;
}
