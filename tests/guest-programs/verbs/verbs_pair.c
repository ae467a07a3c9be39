/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See verbs_pair.h. */
#include "verbs_pair.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

enum { TIMEOUT_MS = 5000, WAIT_S = 30, PORT = 7471 };

struct pair_world w;

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;
static struct sockaddr_in server;

void pair_die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    fflush(stdout);
    exit(1);
}

bool pair_terminates(void)
{
    const char *wire = getenv("VERBS_WIRE");

    return !wire || strcmp(wire, "rdma-tcp-2000") != 0;
}

bool pair_invalidates(void)
{
    return w.attr.orig_attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
}

static uint8_t *get_memory(void)
{
    void *p = mmap(NULL, PAIR_BUF, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (p == MAP_FAILED) {
        pair_die("memory");
    }
    return p;
}

void pair_open(const char *address)
{
    server = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
    channel = rdma_create_event_channel();
    if (!channel || inet_pton(AF_INET, address, &server.sin_addr) != 1 ||
        rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
        rdma_bind_addr(listener, (struct sockaddr *)&server) || rdma_listen(listener, 4)) {
        pair_die(address);
    }
    w.ctx = listener->verbs;
    w.pd = ibv_alloc_pd(w.ctx);
    if (!w.pd || ibv_query_device_ex(w.ctx, NULL, &w.attr)) {
        pair_die("protection domain");
    }
    w.a.buf = get_memory();
    w.b.buf = get_memory();
    if (fcntl(w.ctx->async_fd, F_SETFL, O_NONBLOCK)) {
        pair_die("async events");
    }
}

static void make_qp(struct verbs_side *s, struct rdma_cm_id *id, const struct pair_want *want)
{
    int mw = w.attr.orig_attr.max_mw ? IBV_ACCESS_MW_BIND : 0;
    struct ibv_qp_init_attr_ex attr = {
        .cap = { PAIR_WRS, PAIR_WRS, 2, 2, 64 },
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = want->pd ? want->pd : w.pd,
        .send_ops_flags =
            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ,
    };

    if (want->large) {
        attr.cap.max_send_sge = attr.cap.max_recv_sge = PAIR_SGES;
        attr.cap.max_inline_data = PAIR_INLINE;
    }
    if (w.attr.orig_attr.atomic_cap != IBV_ATOMIC_NONE) {
        attr.send_ops_flags |= IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                               IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                               IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM;
    }
    if (mw) {
        attr.send_ops_flags |= IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
    }
    s->id = id;
    s->cq = s == &w.a && want->cq_a
                ? want->cq_a
                : ibv_create_cq(w.ctx, want->cq_entries ? want->cq_entries : 4 * PAIR_WRS, NULL,
                                NULL, 0);
    s->mr = ibv_reg_mr(attr.pd, s->buf, PAIR_BUF, PAIR_ALL | mw);
    attr.send_cq = attr.recv_cq = s->cq;
    attr.srq = s == &w.b ? want->srq : NULL;
    if (!s->cq || !s->mr || rdma_create_qp_ex(id, &attr)) {
        pair_die("queue pair");
    }
    s->qp = id->qp;
    s->qpx = ibv_qp_to_qp_ex(id->qp);
}

/* Handles the event; counts the connected sides. */
static void follow(struct rdma_cm_event *event, const struct pair_want *want, int *connected)
{
    struct rdma_conn_param param = { .initiator_depth = 8, .responder_resources = 8 };
    int ret = 0;

    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        ret = rdma_resolve_route(event->id, TIMEOUT_MS);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        make_qp(&w.a, event->id, want);
        ret = rdma_connect(event->id, &param);
        break;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        make_qp(&w.b, event->id, want);
        ret = rdma_accept(event->id, &param);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        (*connected)++;
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break; /* of the connection before */
    default:
        errno = event->status < 0 ? -event->status : EPROTO;
        pair_die(rdma_event_str(event->event));
    }
    if (ret) {
        pair_die(rdma_event_str(event->event));
    }
}

void pair_connect(const struct pair_want *want)
{
    static const struct pair_want plain;
    struct rdma_cm_event *event, copy;
    struct rdma_cm_id *id;
    int connected = 0;

    pair_close();
    memset(w.a.buf, 0, PAIR_BUF);
    memset(w.b.buf, 0, PAIR_BUF);
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
        rdma_resolve_addr(id, NULL, (struct sockaddr *)&server, TIMEOUT_MS)) {
        pair_die("route");
    }
    while (connected < 2) {
        if (rdma_get_cm_event(channel, &event)) {
            pair_die("connection");
        }
        copy = *event;
        rdma_ack_cm_event(event);
        follow(&copy, want ? want : &plain, &connected);
    }
}

static void close_side(struct verbs_side *s, bool active)
{
    if (!s->id) {
        return;
    }
    if (active) {
        rdma_disconnect(s->id);
    }
    rdma_destroy_qp(s->id);
    ibv_destroy_cq(s->cq);
    ibv_dereg_mr(s->mr);
    s->qp = NULL;
}

static void end_side(struct verbs_side *s)
{
    if (s->id) {
        rdma_destroy_id(s->id);
    }
    s->id = NULL;
}

void pair_close(void)
{
    struct rdma_cm_event *event;
    struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

    close_side(&w.a, true);
    close_side(&w.b, false);
    /* Events are acknowledged before the identifiers are destroyed. */
    while (poll(&pfd, 1, 0) > 0 && !rdma_get_cm_event(channel, &event)) {
        rdma_ack_cm_event(event);
    }
    end_side(&w.a);
    end_side(&w.b);
}

/* ---- completions, events ---- */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct ibv_wc pair_wait(struct ibv_cq *cq)
{
    int64_t limit = now_ms() + WAIT_S * 1000;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        if (now_ms() > limit) {
            T_FAIL("no completion in %d s", WAIT_S);
        }
        sched_yield();
    }
    T_EQ_INT(n, 1);
    return wc;
}

struct ibv_wc pair_expect(struct ibv_cq *cq, enum ibv_wc_status status)
{
    struct ibv_wc wc = pair_wait(cq);

    if (wc.status != status) {
        T_NOTE("%s instead of %s, vendor error 0x%08x", ibv_wc_status_str(wc.status),
               ibv_wc_status_str(status), wc.vendor_err);
    }
    T_EQ_U64(wc.status, status);
    return wc;
}

struct ibv_wc pair_expect_ok(struct ibv_cq *cq, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = pair_expect(cq, IBV_WC_SUCCESS);

    T_EQ_U64(wc.opcode, opcode);
    return wc;
}

bool pair_quiet(struct ibv_cq *cq, unsigned int ms)
{
    int64_t limit = now_ms() + ms;
    struct ibv_wc wc;

    do {
        if (ibv_poll_cq(cq, 1, &wc)) {
            return false;
        }
        usleep(1000);
    } while (now_ms() < limit);
    return true;
}

/*
 * The next event that is not the port's own (addresses come and go while a VM boots), or false
 * when none came within @ms milliseconds. It has been acknowledged.
 */
static bool next_event(struct ibv_async_event *event, int ms)
{
    struct pollfd pfd = { .fd = w.ctx->async_fd, .events = POLLIN };

    while (poll(&pfd, 1, ms) == 1 && !ibv_get_async_event(w.ctx, event)) {
        ibv_ack_async_event(event);
        switch (event->event_type) {
        case IBV_EVENT_GID_CHANGE:
        case IBV_EVENT_PORT_ACTIVE:
        case IBV_EVENT_PORT_ERR:
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE:
            T_NOTE("event of the port: %s", ibv_event_type_str(event->event_type));
            continue;
        default:
            return true;
        }
    }
    return false;
}

void pair_event(enum ibv_event_type type, const void *element)
{
    struct ibv_async_event event;

    do {
        if (!next_event(&event, 30000)) {
            T_FAIL("no event %s", ibv_event_type_str(type));
        }
        /* Events about ended connections may come, too. */
    } while (event.event_type == IBV_EVENT_QP_FATAL &&
             (event.event_type != type || (const void *)event.element.qp != element));
    if (event.event_type != type) {
        T_NOTE("event %s instead of %s", ibv_event_type_str(event.event_type),
               ibv_event_type_str(type));
    }
    T_EQ_U64(event.event_type, type);
    T_TRUE((const void *)event.element.qp == element);
}

void pair_events(const struct pair_told *told, size_t n)
{
    struct ibv_async_event event;
    uint32_t missing = (1u << n) - 1;
    size_t i;

    while (missing) {
        if (!next_event(&event, 30000)) {
            T_FAIL("no event %s", ibv_event_type_str(told[__builtin_ctz(missing)].type));
        }
        for (i = 0; i < n && (event.event_type != told[i].type ||
                              (const void *)event.element.qp != told[i].element);
             i++) {
        }
        if (i == n || !(missing & 1u << i)) {
            T_FAIL("unexpected event %s", ibv_event_type_str(event.event_type));
        }
        missing &= ~(1u << i);
    }
}

bool pair_no_event(void)
{
    struct ibv_async_event event;

    if (!next_event(&event, 0)) {
        return true;
    }
    T_NOTE("event %s", ibv_event_type_str(event.event_type));
    return false;
}

/* ---- requests ---- */

int pair_post(struct verbs_side *s, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->send_flags |= IBV_SEND_SIGNALED;
    return ibv_post_send(s->qp, wr, &bad);
}

int pair_send(struct verbs_side *s, uint64_t at, uint32_t len)
{
    struct ibv_sge sge = { (uintptr_t)s->buf + at, len, s->mr->lkey };
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 };

    return pair_post(s, &wr);
}

int pair_rdma(struct verbs_side *s, enum ibv_wr_opcode op, uint64_t at, uint32_t len, uint32_t rkey,
              uint64_t remote_addr)
{
    struct ibv_sge sge = { (uintptr_t)s->buf + at, len, s->mr->lkey };
    struct ibv_send_wr wr = { .opcode = op, .sg_list = &sge, .num_sge = 1 };

    wr.wr.rdma.rkey = rkey;
    wr.wr.rdma.remote_addr = remote_addr;
    return pair_post(s, &wr);
}

int pair_recv(struct verbs_side *s, uint64_t at, uint32_t len)
{
    struct ibv_sge sge = { (uintptr_t)s->buf + at, len, s->mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

    return ibv_post_recv(s->qp, &wr, &bad);
}

int pair_recv_srq(struct ibv_srq *srq, uint64_t wr_id, uint64_t at, uint32_t len)
{
    struct ibv_sge sge = { (uintptr_t)w.b.buf + at, len, w.b.mr ? w.b.mr->lkey : 0 };
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

    return ibv_post_srq_recv(srq, &wr, &bad);
}

/* ---- commands ---- */

int command(uint32_t number, const void *core, size_t core_len, const void *driver,
            size_t driver_len, size_t answer_len)
{
    struct ib_uverbs_cmd_hdr hdr = { .command = number };
    uint8_t raw[512] = { 0 };
    size_t len = sizeof(hdr) + core_len + driver_len;

    hdr.in_words = (__u16)(len / 4);
    hdr.out_words = (__u16)(answer_len / 4);
    memcpy(raw, &hdr, sizeof(hdr));
    memcpy(raw + sizeof(hdr), core, core_len);
    memcpy(raw + sizeof(hdr) + core_len, driver, driver_len);
    return write(w.ctx->cmd_fd, raw, len) == (ssize_t)len ? 0 : errno;
}
