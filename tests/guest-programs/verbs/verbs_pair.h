/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two queue pairs of one process, connected through rdma_cm over the adapter's own address, for the
 * cases of verbs_*.c.  A case sees both ends.
 */
#ifndef SG_TESTS_VERBS_PAIR_H
#define SG_TESTS_VERBS_PAIR_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/staghorndv.h>
#include <rdma/rdma_cma.h>

#include "tap.h"

enum {
    PAIR_BUF = 1 << 20, /* octets of memory of each side */
    PAIR_WRS = 32,
    PAIR_SGES = 32, /* of a large queue pair */
    PAIR_INLINE = 512,
};

#define PAIR_ALL                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
     IBV_ACCESS_REMOTE_ATOMIC)

struct verbs_side {
    struct rdma_cm_id *id;
    struct ibv_qp *qp;
    struct ibv_qp_ex *qpx;
    struct ibv_cq *cq; /* of both queues */
    struct ibv_mr *mr; /* all of buf, with PAIR_ALL and MW_BIND */
    uint8_t *buf;
};

/* Changes of the defaults; a field that is 0 changes nothing. */
struct pair_want {
    struct ibv_srq *srq; /* of b */
    struct ibv_pd *pd;   /* of both, NULL: w.pd */
    struct ibv_cq *cq_a; /* NULL: one is made, with room for all */
    int cq_entries;
    bool large; /* both: as many elements and as much inline data as there may be */
};

struct pair_world {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr_ex attr;
    struct verbs_side a, b;
};

extern struct pair_world w;

/* Whether a side learns why the other one refused its request.  No verb says so, hence the
 * environment does: VERBS_WIRE=rdma-tcp-2000 is a wire without such a message. */
bool pair_terminates(void);
/* Whether the adapter has Send with Invalidate. */
bool pair_invalidates(void);

/* These end the program with a message on an error of the environment. */
_Noreturn void pair_die(const char *what);
void pair_open(const char *address);
/* Makes a new connection, a is the active side; closes the previous one. */
void pair_connect(const struct pair_want *want);
void pair_close(void);

/* One completion, within 30 s. */
struct ibv_wc pair_wait(struct ibv_cq *cq);
struct ibv_wc pair_expect(struct ibv_cq *cq, enum ibv_wc_status status);
struct ibv_wc pair_expect_ok(struct ibv_cq *cq, enum ibv_wc_opcode opcode);
/* True: no completion came for so long. */
bool pair_quiet(struct ibv_cq *cq, unsigned int ms);
/* Acknowledges the next async event, within 30 s.  QP_FATAL of others may come before. */
void pair_event(enum ibv_event_type type, const void *element);
struct pair_told {
    enum ibv_event_type type;
    const void *element;
};
/* All of these, in any order, each within 30 s, and no other; at most 8. */
void pair_events(const struct pair_told *told, size_t n);
bool pair_no_event(void);

/* By ibv_post_send; the requests are signaled. */
int pair_post(struct verbs_side *s, struct ibv_send_wr *wr);
int pair_send(struct verbs_side *s, uint64_t at, uint32_t len);
int pair_rdma(struct verbs_side *s, enum ibv_wr_opcode op, uint64_t at, uint32_t len, uint32_t rkey,
              uint64_t remote_addr);
int pair_recv(struct verbs_side *s, uint64_t at, uint32_t len);
int pair_recv_srq(struct ibv_srq *srq, uint64_t wr_id, uint64_t at, uint32_t len);

/* Sends a command without libibverbs: the core's part, then the driver's.  0 or an errno value. */
int command(uint32_t number, const void *core, size_t core_len, const void *driver,
            size_t driver_len, size_t answer_len);

#endif
