/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two adapters with many queue pairs connected between them, in memory or over TCP, for the
 * benchmark of scale and its test (test_scale.c).  All queue pairs of a side share one completion
 * queue.
 */
#ifndef SG_TESTS_MANY_H
#define SG_TESTS_MANY_H

#include "pair.h"

enum {
    MANY_QPS = 16384,
    MANY_MRS = 262144,
    MANY_DEPTH = 4096, /* entries of the queues of many_deep() */
    MANY_TURN = 64,    /* writes under way at once, at most: the completion queue has room */
    MANY_LEN = 64,     /* octets of a write */
    MANY_ENTRIES = 4,  /* of each queue */
    /* What docs/benchmarks.md promises: octets of the host's memory at one side. */
    MANY_QP_OCTETS = 2304,
    MANY_MR_OCTETS = 256,
    /* Over TCP, without the send ring, of which only used pages take memory. */
    MANY_TCP_QP_OCTETS = 4608,
    MANY_TCP_RING = 65536,
};

struct many {
    struct pair pair;
    unsigned count;      /* connected so far */
    struct md_qp *qp[2]; /* [side][number] */
};

/* Adapters for up to 'qps' queue pairs, with 'extra' more octets of guest memory. */
void many_start(struct many *m, unsigned qps, size_t extra);
/* The same over TCP (tcp_link.h). */
void many_start_tcp(struct many *m, unsigned qps, size_t extra);
void many_stop(struct many *m);
/* Connects queue pairs until there are 'count'; ends the program if that fails. */
void many_connect(struct many *m, unsigned count);
/* One connected pair of queue pairs with queues and completion queues of MANY_DEPTH entries. */
void many_deep(struct many *m, struct md_qp qp[2], struct md_cq cq[2]);

/* Puts a signaled RDMA Write or Read of MANY_LEN octets into the send queue, without doorbell. */
void many_put(struct md_qp *qp, uint8_t opcode, uint64_t wr_id, const struct sg_sge *local,
              uint64_t raddr, uint32_t rkey);
struct sg_sge many_sge(uint64_t addr, uint32_t lkey);

/* Octets that malloc() has allocated, for both adapters and the stream between them. */
double many_allocated(void);

#endif
