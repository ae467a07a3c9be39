// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_server ADDRESS DEVICE [CONNECTIONS]: the machine with the memory of crash_log.
 *
 * It offers a devdax device, accepts that many connections (1), and does what their messages ask
 * for until the first connection ends.  Some of these services have a deliberate mistake
 * (crash_wire.h): the crash laboratory has to find it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "crash_wire.h"
#include "log_net.h"
#include "staghorn_mark.h"

enum { REGION = 2 << 20, CONNECTIONS = 2 };

static uint8_t *memory;

static uint8_t *map_device(const char *name)
{
    int fd = open(name, O_RDWR);
    uint8_t *start;

    if (fd < 0) {
        log_die(name);
    }
    start = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (start == MAP_FAILED) {
        log_die("mmap");
    }
    return start;
}

static struct ibv_mr *register_memory(struct ibv_pd *pd)
{
    const struct sgdv_mr_attr attr = { .mem_type = SGDV_MEM_PERSISTENT };
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;

    return sgdv_reg_mr(pd, memory, REGION, access, &attr);
}

static struct rdma_cm_id *listen_at(const char *address)
{
    struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(LOG_PORT) };
    struct rdma_cm_id *id;

    if (inet_pton(AF_INET, address, &sin.sin_addr) != 1 ||
        rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ||
        rdma_bind_addr(id, (struct sockaddr *)&sin) || rdma_listen(id, CONNECTIONS)) {
        log_die(address);
    }
    return id;
}

/* ---- services ---- */

static void clwb(void *p, size_t len)
{
    uintptr_t at = (uintptr_t)p & ~(uintptr_t)(CRASH_LINE - 1);

    for (; at < (uintptr_t)p + len; at += CRASH_LINE) {
        _mm_clwb((void *)at);
    }
}

static void persist(void *p, size_t len)
{
    clwb(p, len);
    _mm_sfence();
}

static void raise_flag(uint64_t *flag, uint32_t session)
{
    __atomic_store_n(flag, crash_flag(session), __ATOMIC_RELEASE);
}

/* Placement has no order over the segments of a message: the last octet proves nothing. */
static void serve_long(uint32_t number)
{
    uint8_t *record = memory + LOG_RECORDS + (size_t)number * CRASH_LONG;
    const volatile uint8_t *last = record + CRASH_LONG - 1;

    while (*last != crash_octet(number)) {
        _mm_pause();
    }
    persist(record, CRASH_LONG);
}

static void serve_flag(const struct log_request *request, uint8_t *record, uint64_t *flag)
{
    enum crash_service service = request->service;
    bool early = service == CRASH_FLAG_EARLY || service == CRASH_INLINE_EARLY;

    if (service == CRASH_FLAG_FIRST) {
        raise_flag(flag, request->session);
        persist(flag, sizeof(*flag));
        persist(record, LOG_RECORD);
    } else {
        persist(record, LOG_RECORD);
        if (early) {
            clwb(flag, sizeof(*flag));
        }
        raise_flag(flag, request->session);
        if (service == CRASH_FLAG || service == CRASH_INLINE) {
            clwb(flag, sizeof(*flag));
        }
        _mm_sfence();
    }
    sg_mark_durable(flag, sizeof(*flag));
}

static void serve_one(const struct log_request *request, uint32_t number)
{
    uint8_t *record = memory + LOG_RECORDS + (size_t)number * LOG_RECORD;
    uint64_t *flag = (uint64_t *)(memory + CRASH_FLAGS + (size_t)number * CRASH_LINE);

    switch (request->service) {
    case CRASH_NOTHING:
        return;
    case CRASH_POLL:
        serve_long(number);
        return;
    case CRASH_PERSIST:
        persist(record, LOG_RECORD);
        return;
    case CRASH_INLINE:
    case CRASH_INLINE_DIRTY:
    case CRASH_INLINE_EARLY:
        flag = (uint64_t *)(record + LOG_RECORD - sizeof(*flag));
        /* fall through */
    default:
        serve_flag(request, record, flag);
    }
}

/* ---- connections ---- */

static bool answer(struct log_net *net, unsigned receive, const struct log_request *request)
{
    for (uint32_t i = 0; i < request->count; i++) {
        struct log_request done = *request;

        done.number += i;
        serve_one(request, done.number);
        if (log_send(net, &done, sizeof(done))) {
            return false;
        }
    }
    return !log_post_receive(net, receive);
}

/* One completion of a connection, if there is one.  False: the connection is over. */
static bool serve(struct log_net *net)
{
    struct log_request request;
    struct ibv_wc wc;
    int n = ibv_poll_cq(net->cq, 1, &wc);

    if (n <= 0) {
        return n == 0;
    }
    if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV) {
        return wc.status == IBV_WC_SUCCESS;
    }
    memcpy(&request, log_received(net, wc.wr_id), sizeof(request));
    if (wc.byte_len != sizeof(request) || request.service >= CRASH_SERVICES ||
        request.count > CRASH_RECORDS_MAX || request.number > CRASH_RECORDS_MAX - request.count) {
        errno = EPROTO;
        log_die("a message of the client");
    }
    return answer(net, wc.wr_id, &request);
}

int main(int argc, char **argv)
{
    unsigned connections = argc > 3 ? strtoul(argv[3], NULL, 0) : 1;
    struct log_net net[CONNECTIONS];
    struct rdma_cm_id *listener, *id;
    struct log_offer offer;
    struct ibv_pd *pd;
    struct ibv_mr *mr;

    if (argc < 3 || argc > 4 || !connections || connections > CONNECTIONS) {
        fprintf(stderr, "usage: crash_server ADDRESS DEVICE [1..%d connections]\n", CONNECTIONS);
        return 2;
    }
    setlinebuf(stdout);
    memory = map_device(argv[2]);
    listener = listen_at(argv[1]);
    pd = ibv_alloc_pd(listener->verbs);
    mr = pd ? register_memory(pd) : NULL;
    if (!mr) {
        log_die("region with flush to persistence");
    }
    offer = (struct log_offer){ (uintptr_t)memory, REGION, mr->rkey, 1 };
    printf("listening\n");
    for (unsigned i = 0; i < connections; i++) {
        if (rdma_get_request(listener, &id)) {
            log_die("rdma_get_request");
        }
        log_accept(&net[i], id, &offer, pd);
    }
    while (serve(&net[0]) && (connections < 2 || serve(&net[1]))) {
    }
    for (unsigned i = 0; i < connections; i++) {
        log_close(&net[i]);
    }
    return 0;
}
