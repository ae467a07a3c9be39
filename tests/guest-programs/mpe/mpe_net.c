/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See mpe_net.h. */
#include "mpe_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_alg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const uint8_t mpe_key[MPE_KEY_LEN] = "twenty octets of key";

enum { TIMEOUT_MS = 5000, WAIT_S = 30 };

void mpe_die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    fflush(stdout);
    exit(1);
}

/* ---- hashes ---- */

uint32_t mpe_hash(enum sgdv_hash hash, const void *data, size_t len, uint8_t *out)
{
    static const char *const names[] = {
        [SGDV_HASH_CRC32C] = "crc32c",
        [SGDV_HASH_SHA256] = "sha256",
        [SGDV_HASH_SHA512] = "sha512",
        [SGDV_HASH_HMAC_SHA256] = "hmac(sha256)",
    };
    struct sockaddr_alg sa = { .salg_family = AF_ALG, .salg_type = "hash" };
    const uint8_t *at = data;
    int tfm, op;
    ssize_t n;

    snprintf((char *)sa.salg_name, sizeof(sa.salg_name), "%s", names[hash]);
    tfm = socket(AF_ALG, SOCK_SEQPACKET, 0);
    if (tfm < 0 || bind(tfm, (struct sockaddr *)&sa, sizeof(sa))) {
        mpe_die(names[hash]);
    }
    if (hash == SGDV_HASH_HMAC_SHA256 &&
        setsockopt(tfm, SOL_ALG, ALG_SET_KEY, mpe_key, sizeof(mpe_key))) {
        mpe_die("hash key");
    }
    op = accept(tfm, NULL, 0);
    if (op < 0) {
        mpe_die("hash");
    }
    for (; len; len -= (size_t)n, at += n) {
        n = send(op, at, len, MSG_MORE);
        if (n <= 0) {
            mpe_die("hash input");
        }
    }
    n = read(op, out, SGDV_HASH_MAX);
    close(op);
    close(tfm);
    if (n <= 0) {
        mpe_die("hash output");
    }
    return (uint32_t)n;
}

/* ---- both ends ---- */

static uint8_t *get_memory(void)
{
    void *p = mmap(NULL, MPE_SIZE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (p == MAP_FAILED) {
        mpe_die("memory");
    }
    return p;
}

static void make_qp(struct mpe_conn *c, uint32_t max_inline)
{
    struct ibv_qp_init_attr_ex attr = {
        .cap = { MPE_SQ, 4, 1, 1, max_inline },
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_FLUSH |
                          IBV_QP_EX_WITH_ATOMIC_WRITE,
    };

    c->cq = ibv_create_cq(c->id->verbs, 2 * MPE_SQ, NULL, NULL, 0);
    if (!c->cq) {
        mpe_die("completion queue");
    }
    attr.send_cq = attr.recv_cq = c->cq;
    attr.pd = c->pd;
    if (rdma_create_qp_ex(c->id, &attr)) {
        mpe_die("queue pair");
    }
    c->qpx = ibv_qp_to_qp_ex(c->id->qp);
}

static struct sockaddr_in to_sockaddr(const char *address)
{
    struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(MPE_PORT) };

    if (inet_pton(AF_INET, address, &sin.sin_addr) != 1) {
        mpe_die(address);
    }
    return sin;
}

void mpe_wait(struct mpe_conn *c, struct ibv_wc *wc)
{
    struct timespec now;
    time_t limit;
    int n;

    clock_gettime(CLOCK_MONOTONIC, &now);
    limit = now.tv_sec + WAIT_S;
    do {
        n = ibv_poll_cq(c->cq, 1, wc);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > limit) {
            errno = ETIMEDOUT;
            n = -1;
        }
    } while (!n);
    if (n < 0) {
        mpe_die("completion");
    }
}

/* ---- client ---- */

static void take_table(struct mpe_conn *c)
{
    struct ibv_sge sge = { (uintptr_t)c->buf, sizeof(c->table), c->mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
    struct rdma_conn_param param = { .initiator_depth = 8, .responder_resources = 8 };
    struct ibv_wc wc;

    if (ibv_post_recv(c->id->qp, &wr, &bad) || rdma_connect(c->id, &param)) {
        mpe_die("connection");
    }
    mpe_wait(c, &wc);
    if (wc.status != IBV_WC_SUCCESS || wc.byte_len != sizeof(c->table)) {
        mpe_die("the server's table");
    }
    memcpy(&c->table, c->buf, sizeof(c->table));
}

void mpe_connect(struct mpe_conn *c, const char *address, uint32_t max_inline)
{
    struct sockaddr_in sin = to_sockaddr(address);

    memset(c, 0, sizeof(*c));
    if (rdma_create_id(NULL, &c->id, NULL, RDMA_PS_TCP) ||
        rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&sin, TIMEOUT_MS) ||
        rdma_resolve_route(c->id, TIMEOUT_MS)) {
        mpe_die("route");
    }
    if (!sgdv_is_supported(c->id->verbs->device)) {
        mpe_die("another adapter");
    }
    c->buf = get_memory();
    c->pd = ibv_alloc_pd(c->id->verbs);
    c->mr = c->pd ? ibv_reg_mr(c->pd, c->buf, MPE_SIZE, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!c->mr) {
        mpe_die("local region");
    }
    make_qp(c, max_inline);
    take_table(c);
}

void mpe_close(struct mpe_conn *c)
{
    rdma_disconnect(c->id);
    rdma_destroy_qp(c->id);
    ibv_destroy_cq(c->cq);
    ibv_dereg_mr(c->mr);
    munmap(c->buf, MPE_SIZE);
    ibv_dealloc_pd(c->pd);
    rdma_destroy_id(c->id);
}

/* ---- server ---- */

#define ALL                                                                      \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL)

static const struct recipe {
    int access;
    enum sgdv_hash hash;
    bool on_dax;
} recipes[R_COUNT] = {
    [R_CRC32C] = { ALL, SGDV_HASH_CRC32C, false },
    [R_SHA256] = { ALL, SGDV_HASH_SHA256, false },
    [R_SHA512] = { ALL, SGDV_HASH_SHA512, false },
    [R_HMAC] = { ALL, SGDV_HASH_HMAC_SHA256, false },
    [R_WRITE] = { IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, SGDV_HASH_NONE, false },
    [R_READ] = { IBV_ACCESS_REMOTE_READ, SGDV_HASH_NONE, false },
    [R_FLUSH_ONLY] = { IBV_ACCESS_FLUSH_GLOBAL, SGDV_HASH_NONE, false },
    [R_PMEM] = { ALL | IBV_ACCESS_FLUSH_PERSISTENT, SGDV_HASH_SHA256, true },
    [R_PMEM_VIEW] = { ALL, SGDV_HASH_CRC32C, true },
};

static struct ibv_mr *regs[R_COUNT];

static void make_region(struct ibv_pd *pd, enum mpe_region r, uint8_t *memory, struct mpe_entry *e)
{
    const struct recipe *how = &recipes[r];
    bool keyed = how->hash == SGDV_HASH_HMAC_SHA256;
    struct sgdv_mr_attr attr = {
        .hash = how->hash,
        .key = keyed ? mpe_key : NULL,
        .key_len = keyed ? MPE_KEY_LEN : 0,
        .mem_type = how->on_dax ? SGDV_MEM_PERSISTENT : SGDV_MEM_VOLATILE,
    };

    regs[r] = sgdv_reg_mr(pd, memory, MPE_SIZE, how->access, &attr);
    if (!regs[r]) {
        fprintf(stderr, "region %d: ", r);
        mpe_die("region");
    }
    *e = (struct mpe_entry){
        .addr = (uintptr_t)memory,
        .length = MPE_SIZE,
        .rkey = regs[r]->rkey,
        .hash = how->hash,
    };
}

static void make_regions(struct mpe_conn *c, uint8_t *memory, uint8_t *pmem)
{
    memset(&c->table, 0, sizeof(c->table));
    for (int r = 0; r < R_COUNT; r++) {
        if (!recipes[r].on_dax) {
            make_region(c->pd, r, memory, &c->table.regions[r]);
        } else if (pmem) {
            make_region(c->pd, r, pmem, &c->table.regions[r]);
        }
    }
}

/* Sends the table; then serves the client until it is gone. */
static void serve_one(struct mpe_conn *c)
{
    struct rdma_conn_param param = { .initiator_depth = 8, .responder_resources = 8 };
    struct rdma_cm_event *event;
    struct ibv_wc wc;
    bool gone = false;

    if (rdma_accept(c->id, &param)) {
        perror("accept");
        return;
    }
    memcpy(c->buf, &c->table, sizeof(c->table));
    ibv_wr_start(c->qpx);
    c->qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(c->qpx);
    ibv_wr_set_sge(c->qpx, c->mr->lkey, (uintptr_t)c->buf, sizeof(c->table));
    if (ibv_wr_complete(c->qpx)) {
        mpe_die("table");
    }
    mpe_wait(c, &wc);
    while (!gone && !rdma_get_cm_event(c->id->channel, &event)) {
        gone = event->event == RDMA_CM_EVENT_DISCONNECTED;
        rdma_ack_cm_event(event);
    }
}

void mpe_serve(const char *address, const char *dax)
{
    struct sockaddr_in sin = to_sockaddr(address);
    struct mpe_conn c = { 0 };
    struct rdma_cm_id *listener;
    uint8_t *memory = get_memory(), *pmem = NULL;

    if (dax) {
        int fd = open(dax, O_RDWR);

        pmem = mmap(NULL, MPE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (pmem == MAP_FAILED) {
            mpe_die(dax);
        }
    }
    if (rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) ||
        rdma_bind_addr(listener, (struct sockaddr *)&sin) || rdma_listen(listener, 4)) {
        mpe_die("listener");
    }
    c.buf = get_memory();
    c.pd = ibv_alloc_pd(listener->verbs);
    c.mr = c.pd ? ibv_reg_mr(c.pd, c.buf, MPE_SIZE, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!c.mr) {
        mpe_die("local region");
    }
    make_regions(&c, memory, pmem);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        if (rdma_get_request(listener, &c.id)) {
            mpe_die("request");
        }
        make_qp(&c, 0);
        serve_one(&c);
        rdma_destroy_qp(c.id);
        ibv_destroy_cq(c.cq);
        rdma_destroy_id(c.id);
    }
}
