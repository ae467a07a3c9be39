/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection between log_server, which offers persistent memory, and the programs that write
 * into it.  It is made by rdma_cm, with one extended queue pair at each end; the server describes
 * its region in the private data of the accept.
 */
#ifndef LOG_NET_H
#define LOG_NET_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/staghorndv.h>
#include <rdma/rdma_cma.h>

enum {
    LOG_PORT = 7480,
    LOG_SQ = 512, /* entries of the send queue */
    LOG_RQ = 16,
    LOG_DEPTH = 128,  /* requests with an answer in flight (ORD, IRD) */
    LOG_MESSAGE = 64, /* maximum octets of a Send */
};

/* The server's description of its region; hosts of this adapter are little-endian. */
struct log_offer {
    uint64_t addr;
    uint64_t length;
    uint32_t rkey;
    uint32_t persistent; /* flush to persistence is possible */
};

/* A Send to the server: make that range persistent.  The server answers with the same message. */
struct log_persist {
    uint64_t offset; /* offset into the region */
    uint64_t length;
};

struct log_net {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_comp_channel *comp;
    struct ibv_cq *cq;
    struct ibv_qp_ex *qp;
    struct ibv_mr *mr;     /* of buf */
    uint8_t *buf;          /* LOG_RQ + 1 messages (the last is sent), then the user's octets */
    size_t size;           /* of the user's octets */
    struct log_offer peer; /* client: the server's region */
};

/* All of these end the program with a message on failure. */

void log_die(const char *what);
void log_connect(struct log_net *net, const char *address, size_t size);
/* Server: completes a connection request, with the region on offer. */
void log_accept(struct log_net *net, struct rdma_cm_id *id, const struct log_offer *offer,
                struct ibv_pd *pd);
void log_close(struct log_net *net);

/* The user's octets, and their address for a work request. */
uint8_t *log_user(struct log_net *net);
/* Posts receive buffer n, 0 to LOG_RQ - 1, again.  0 or an errno value. */
int log_post_receive(struct log_net *net, unsigned n);
uint8_t *log_received(struct log_net *net, unsigned n);
/* Sends a copy of that message; its completion is ignored. */
int log_send(struct log_net *net, const void *message, size_t len);

uint32_t log_crc32c(const void *data, size_t len);
double log_seconds(void); /* since an arbitrary moment */

#endif
