// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * log_server ADDRESS DEVICE: offers a devdax device to one writer after the other.
 *
 * The region has every right: write, read, flush of both types, Verify by CRC32C.  The server does
 * nothing with the memory unless a writer without Flush asks by a message: then its CPU makes the
 * range persistent, by libpmem2, and answers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libpmem2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_net.h"

#define SPIN_S 0.005 /* the server polls so long after a message, then it sleeps */

struct log_server_memory {
    struct pmem2_map *map;
    uint8_t *start;
    size_t size;
};

static struct log_server_memory map_device(const char *name)
{
    struct pmem2_source *source = NULL;
    struct pmem2_config *config = NULL;
    struct log_server_memory memory = { 0 };
    int fd = open(name, O_RDWR);

    if (fd < 0) {
        log_die(name);
    }
    if (pmem2_source_from_fd(&source, fd) || pmem2_config_new(&config) ||
        pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_CACHE_LINE) ||
        pmem2_map_new(&memory.map, config, source)) {
        fprintf(stderr, "%s: %s\n", name, pmem2_errormsg());
        exit(1);
    }
    memory.start = pmem2_map_get_address(memory.map);
    memory.size = pmem2_map_get_size(memory.map);
    return memory;
}

static struct rdma_cm_id *listen_at(const char *address)
{
    struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(LOG_PORT) };
    struct rdma_cm_id *id;

    if (inet_pton(AF_INET, address, &sin.sin_addr) != 1 ||
        rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ||
        rdma_bind_addr(id, (struct sockaddr *)&sin) || rdma_listen(id, 2)) {
        log_die(address);
    }
    return id;
}

static struct ibv_mr *register_memory(struct ibv_pd *pd, struct log_server_memory memory)
{
    const struct sgdv_mr_attr attr = {
        .hash = SGDV_HASH_CRC32C,
        .mem_type = SGDV_MEM_PERSISTENT,
    };
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
    struct ibv_mr *mr = sgdv_reg_mr(pd, memory.start, memory.size, access, &attr);

    if (!mr) {
        log_die("region with flush to persistence");
    }
    return mr;
}

/* Handles one message: true if the connection continues. */
static bool serve(struct log_net *net, struct log_server_memory memory, const struct ibv_wc *wc)
{
    struct log_persist request;

    if (wc->status != IBV_WC_SUCCESS) {
        return false;
    }
    if (wc->opcode != IBV_WC_RECV) {
        return true;
    }
    memcpy(&request, log_received(net, wc->wr_id), sizeof(request));
    if (wc->byte_len != sizeof(request) || request.offset > memory.size ||
        request.length > memory.size - request.offset) {
        return false;
    }
    pmem2_get_persist_fn(memory.map)(memory.start + request.offset, request.length);
    return !log_post_receive(net, wc->wr_id) && !log_send(net, &request, sizeof(request));
}

static void sleep_for_message(struct log_net *net)
{
    struct ibv_cq *cq;
    void *context;

    if (!ibv_get_cq_event(net->comp, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
    }
}

static void serve_all(struct log_net *net, struct log_server_memory memory)
{
    double last = log_seconds();
    bool armed = false, open = true;

    while (open) {
        struct ibv_wc wc;
        int n = ibv_poll_cq(net->cq, 1, &wc);

        if (n < 0) {
            return;
        }
        if (n > 0) {
            open = serve(net, memory, &wc);
            last = log_seconds();
            continue;
        }
        if (armed) {
            sleep_for_message(net);
            armed = false;
        } else if (log_seconds() - last > SPIN_S) {
            armed = !ibv_req_notify_cq(net->cq, 0);
        }
    }
}

int main(int argc, char **argv)
{
    struct rdma_cm_id *listener, *id;
    struct log_server_memory memory;
    struct log_offer offer;
    struct ibv_pd *pd = NULL;
    struct ibv_mr *mr = NULL;
    struct log_net net;

    if (argc != 3) {
        fprintf(stderr, "usage: log_server ADDRESS DEVICE\n");
        return 2;
    }
    setlinebuf(stdout);
    memory = map_device(argv[2]);
    listener = listen_at(argv[1]);
    pd = ibv_alloc_pd(listener->verbs);
    mr = pd ? register_memory(pd, memory) : NULL;
    if (!mr) {
        log_die("protection domain");
    }
    offer = (struct log_offer){ (uintptr_t)memory.start, memory.size, mr->rkey, 1 };
    printf("listening with %zu octets\n", memory.size);
    while (!rdma_get_request(listener, &id)) {
        log_accept(&net, id, &offer, pd);
        serve_all(&net, memory);
        log_close(&net);
    }
    log_die("rdma_get_request");
}
