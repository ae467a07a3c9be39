/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by rpma_client and rpma_server: their two messages while they connect and two afterwards,
 * the pattern of the data, and short forms of librpma calls that must succeed.
 */
#ifndef RPMA_PAIR_H
#define RPMA_PAIR_H

#include <inttypes.h>
#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAIR_PORT "7471"
#define PAIR_GREETING "staghorn rpma pair 1"
#define PAIR_ATOM_OFFSET 64u /* in the server's memory; the data begins behind it */
#define PAIR_DATA_OFFSET 4096u
#define PAIR_SERVER (16u << 20) /* octets of the server's memory */
#define PAIR_MESSAGE_OFFSET 0u  /* of the message in a message buffer */
#define PAIR_BUFFER 4096u

/* Server to client, as private data of the accept: its memory and the rights on it. */
struct pair_hello {
    uint8_t mr_desc_size;
    uint8_t pcfg_desc_size;
    uint8_t desc[120]; /* the region's descriptor, then the peer configuration's */
};

/* Client to server: what it has written; server to client: what the server saw of it. */
struct pair_message {
    uint64_t seed;
    uint64_t length; /* octets from PAIR_DATA_OFFSET; in the answer: octets that are right */
    uint64_t atom;
};

static inline void must(int ret, const char *what)
{
    if (ret != 0) {
        fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
        exit(1);
    }
}

static inline void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static inline void *pages(size_t size)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, size) != 0) {
        fail("no memory");
    }
    return memset(memory, 0, size);
}

/* Octet i of a seed's data. */
static inline uint8_t pattern(uint64_t seed, uint64_t i)
{
    uint64_t x = (seed + i / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);

    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (uint8_t)(x >> (8 * (i % 8)));
}

static inline uint64_t right_octets(const uint8_t *data, uint64_t length, uint64_t seed)
{
    uint64_t right = 0;

    for (uint64_t i = 0; i < length; i++) {
        right += data[i] == pattern(seed, i);
    }
    return right;
}

/* The next completion of a queue, which must be a success; sleeps until there is one. */
static inline struct ibv_wc completion(struct rpma_cq *cq)
{
    struct ibv_wc wc;
    int ret;

    while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) {
        ret = rpma_cq_wait(cq);
        if (ret != RPMA_E_NO_COMPLETION) {
            must(ret, "rpma_cq_wait");
        }
    }
    must(ret, "rpma_cq_get_wc");
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "operation %" PRIu64 " failed: %s\n", wc.wr_id,
                ibv_wc_status_str(wc.status));
        exit(1);
    }
    return wc;
}

static inline void expect_event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

    must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
    if (event != wanted) {
        fprintf(stderr, "connection event %s instead of %s\n", rpma_utils_conn_event_2str(event),
                rpma_utils_conn_event_2str(wanted));
        exit(1);
    }
}

static inline struct rpma_peer *make_peer(const char *address, enum rpma_util_ibv_context_type type)
{
    struct ibv_context *context = NULL;
    struct rpma_peer *peer = NULL;

    must(rpma_utils_get_ibv_context(address, type, &context), "rpma_utils_get_ibv_context");
    printf("device: %s\n", ibv_get_device_name(context->device));
    must(rpma_peer_new(context, &peer), "rpma_peer_new");
    return peer;
}

#endif
