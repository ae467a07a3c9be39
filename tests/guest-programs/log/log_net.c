// SPDX-License-Identifier: GPL-2.0-or-later
/* See log_net.h. */
#include "log_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMEOUT_MS = 5000, MESSAGES = LOG_RQ + 1, USER = 4096 };

_Static_assert(MESSAGES *LOG_MESSAGE <= USER, "messages fit before the user's octets");

void log_die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "refused");
    exit(1);
}

double log_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fill_table(uint32_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++) {
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0x82f63b78) : 0);
        }
    }
}

uint32_t log_crc32c(const void *data, size_t len)
{
    static uint32_t table[256];
    const uint8_t *at = data;
    uint32_t crc = UINT32_MAX;

    if (!table[1]) {
        fill_table(table);
    }
    while (len--) {
        crc = crc >> 8 ^ table[(crc ^ *at++) & 0xff];
    }
    return ~crc;
}

/* ---- both ends ---- */

static void make_memory(struct log_net *net, size_t size)
{
    void *memory = NULL;

    net->size = size;
    if (posix_memalign(&memory, USER, USER + size)) {
        log_die("memory");
    }
    net->buf = memset(memory, 0, USER + size);
    net->mr = ibv_reg_mr(net->pd, net->buf, USER + size, IBV_ACCESS_LOCAL_WRITE);
    if (!net->mr) {
        log_die("local region");
    }
}

static void make_qp(struct log_net *net)
{
    struct ibv_qp_init_attr_ex attr = {
        .cap = { LOG_SQ, LOG_RQ, 1, 1, LOG_MESSAGE },
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_FLUSH |
                          IBV_QP_EX_WITH_ATOMIC_WRITE,
    };

    net->comp = ibv_create_comp_channel(net->id->verbs);
    net->cq = net->comp ? ibv_create_cq(net->id->verbs, LOG_SQ + LOG_RQ, NULL, net->comp, 0) : NULL;
    if (!net->cq) {
        log_die("completion queue");
    }
    attr.send_cq = attr.recv_cq = net->cq;
    attr.pd = net->pd;
    if (rdma_create_qp_ex(net->id, &attr)) {
        log_die("queue pair");
    }
    net->qp = ibv_qp_to_qp_ex(net->id->qp);
    for (unsigned n = 0; n < LOG_RQ; n++) {
        if (log_post_receive(net, n)) {
            log_die("receive");
        }
    }
}

uint8_t *log_user(struct log_net *net)
{
    return net->buf + USER;
}

uint8_t *log_received(struct log_net *net, unsigned n)
{
    return net->buf + n * LOG_MESSAGE;
}

int log_post_receive(struct log_net *net, unsigned n)
{
    struct ibv_sge sge = { (uintptr_t)log_received(net, n), LOG_MESSAGE, net->mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 }, *bad;

    return ibv_post_recv(net->id->qp, &wr, &bad);
}

int log_send(struct log_net *net, const void *message, size_t len)
{
    ibv_wr_start(net->qp);
    net->qp->wr_id = 0;
    net->qp->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    ibv_wr_send(net->qp);
    ibv_wr_set_inline_data(net->qp, (void *)message, len);
    return ibv_wr_complete(net->qp);
}

void log_close(struct log_net *net)
{
    rdma_disconnect(net->id);
    rdma_destroy_qp(net->id);
    ibv_destroy_cq(net->cq);
    ibv_destroy_comp_channel(net->comp);
    ibv_dereg_mr(net->mr);
    free(net->buf);
    rdma_destroy_id(net->id);
    memset(net, 0, sizeof(*net));
}

/* ---- client ---- */

void log_connect(struct log_net *net, const char *address, size_t size)
{
    struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(LOG_PORT) };
    struct rdma_conn_param param = {
        .initiator_depth = LOG_DEPTH,
        .responder_resources = LOG_DEPTH,
    };

    memset(net, 0, sizeof(*net));
    if (inet_pton(AF_INET, address, &sin.sin_addr) != 1 ||
        rdma_create_id(NULL, &net->id, NULL, RDMA_PS_TCP) ||
        rdma_resolve_addr(net->id, NULL, (struct sockaddr *)&sin, TIMEOUT_MS) ||
        rdma_resolve_route(net->id, TIMEOUT_MS)) {
        log_die(address);
    }
    net->pd = ibv_alloc_pd(net->id->verbs);
    if (!net->pd) {
        log_die("protection domain");
    }
    make_memory(net, size);
    make_qp(net);
    if (rdma_connect(net->id, &param)) {
        log_die("connection");
    }
    if (!net->id->event || net->id->event->param.conn.private_data_len < sizeof(net->peer)) {
        errno = EPROTO;
        log_die("the server's region");
    }
    memcpy(&net->peer, net->id->event->param.conn.private_data, sizeof(net->peer));
}

/* ---- server ---- */

void log_accept(struct log_net *net, struct rdma_cm_id *id, const struct log_offer *offer,
                struct ibv_pd *pd)
{
    struct rdma_conn_param param = {
        .private_data = offer,
        .private_data_len = sizeof(*offer),
        .initiator_depth = LOG_DEPTH,
        .responder_resources = LOG_DEPTH,
    };

    memset(net, 0, sizeof(*net));
    net->id = id;
    net->pd = pd;
    make_memory(net, 0);
    make_qp(net);
    if (rdma_accept(id, &param)) {
        log_die("accept");
    }
}
