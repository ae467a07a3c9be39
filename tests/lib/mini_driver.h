/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small driver: it brings an adapter up through its registers as a real driver would, with the
 * shared headers, and wraps queues so that tests are short.
 *
 * It reaches the adapter through struct md_ops: md_new() takes a test host and the core itself; the
 * qtest suite brings its own, which reach the device in a QEMU.
 *
 * Functions that return enum sg_status pass on what the device said; those that return a number
 * assert that the device said SG_OK.
 */
#ifndef SG_TESTS_MINI_DRIVER_H
#define SG_TESTS_MINI_DRIVER_H

#include "base/bytes.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"
#include "test_host.h"
#include "verbs/adapter.h"

enum { MD_ADMIN_SIZE = 16, MD_AEQ_SIZE = 64, MD_EQ_SIZE = 64 };

/* A ring that the driver writes or reads: contiguous. */
struct md_ring {
    uint64_t base;
    uint32_t entries, stride;
    uint32_t prod, cons;
};

/* How to reach an adapter and its machine. */
struct md_ops {
    uint64_t (*reg_read)(void *opaque, uint32_t offset, unsigned size);
    void (*reg_write)(void *opaque, uint32_t offset, uint64_t value, unsigned size);
    void (*doorbell)(void *opaque, uint32_t page, uint32_t offset, uint64_t value);
    /* Zeroed guest memory, and a pointer to guest memory that exists. */
    uint64_t (*alloc)(void *opaque, size_t len, size_t align);
    void *(*ptr)(void *opaque, uint64_t addr);
    /* Let the adapter work; false: it has nothing to do any more. */
    bool (*settle)(void *opaque);
};

struct md {
    const struct md_ops *ops;
    void *opaque;
    struct test_host *h; /* with md_new() and md_start() only */
    struct sg_adapter *a;
    struct md_ring asq, acq, aeq, eq; /* eq: event queue 1, vector 1 */
    uint16_t cookie;
    bool hold; /* do not run the adapter after doorbells */
};

struct md_cq {
    struct md *md;
    uint32_t cqn;
    struct md_ring ring;
    uint64_t record;
};

struct md_qp {
    struct md *md;
    uint32_t qpn;
    struct md_ring sq, rq;
    struct md_cq *scq, *rcq;
};

struct md_srq {
    struct md *md;
    uint32_t srqn;
    struct md_ring ring;
};

/* Maps to the fields of CREATE_QP; zero means a default. */
struct md_qp_params {
    uint32_t pd;
    struct md_cq *scq, *rcq;
    uint32_t entries; /* 16 */
    uint32_t stride;  /* 512 */
    uint32_t access;  /* remote read and write */
    uint32_t flags;
    uint32_t uar;
    struct md_srq *srq; /* NULL: a receive queue of its own */
};

/* Enabled adapter with event queue 1.  *md is filled in. */
void md_start(struct md *md, struct test_host *h, struct sg_stream_net *net,
              const struct sg_adapter_config *config);
/* The adapter only, nothing written to it. */
void md_new(struct md *md, struct test_host *h, struct sg_stream_net *net,
            const struct sg_adapter_config *config);
/* The same through other operations: the adapter exists, nothing was written to it. */
void md_attach(struct md *md, const struct md_ops *ops, void *opaque);
void md_setup_rings(struct md *md);
/* Rings, CTRL.ENABLE, event queue 1. */
void md_enable(struct md *md);
/* A ring in guest memory. */
struct md_ring md_new_ring(struct md *md, uint32_t entries, uint32_t stride);
void md_stop(struct md *md);

/* Turns until nothing more is to be done now. */
void md_settle(struct md *md);

uint32_t md_read(struct md *md, uint32_t reg);
void md_write(struct md *md, uint32_t reg, uint32_t value);
void md_doorbell(struct md *md, uint32_t page, uint32_t offset, uint32_t lo, uint32_t hi);

/* Posts a command of any kind and waits for its completion; rsp may be NULL. */
enum sg_status md_cmd(struct md *md, const void *cmd, size_t len, struct sg_admin_rsp *rsp);
enum sg_status md_cmd_id(struct md *md, enum sg_admin_opcode op, uint32_t id);
/* A command that creates an object, and must succeed; returns the object's number. */
uint32_t md_make(struct md *md, const void *cmd, size_t len);
/* Posts without waiting; md_reap() takes one completion if there is one. */
void md_submit(struct md *md, const void *cmd, size_t len);
bool md_reap(struct md *md, struct sg_admin_rsp *rsp);

uint32_t md_create_pd(struct md *md);
/* Registers guest memory as one MR with va = bus address; returns the STag. */
uint32_t md_reg_mr(struct md *md, uint32_t pd, uint64_t addr, uint64_t len, uint32_t access);
/* Returns the command that registers [addr, addr + len) in this way. */
struct sg_cmd_reg_mr md_reg_mr_cmd(uint32_t pd, uint64_t addr, uint64_t len, uint32_t access);

/* A region for fast registration; a window (SG_MW_TYPE_*).  Both have key 1. */
uint32_t md_alloc_mr(struct md *md, uint32_t pd, uint32_t max_pages);
uint32_t md_alloc_mw(struct md *md, uint32_t pd, uint8_t type);

struct sg_cmd_create_cq md_create_cq_cmd(struct md *md, uint32_t entries);
void md_create_cq(struct md *md, struct md_cq *cq, uint32_t entries);
/* The next completion, or false. */
bool md_poll(struct md_cq *cq, struct sg_cqe *out);
void md_arm(struct md_cq *cq, bool solicited);

struct sg_cmd_create_qp md_create_qp_cmd(struct md *md, const struct md_qp_params *p);
void md_create_qp(struct md *md, struct md_qp *qp, const struct md_qp_params *p);
struct sg_cmd_create_srq md_create_srq_cmd(struct md *md, uint32_t pd, uint32_t entries);
void md_create_srq(struct md *md, struct md_srq *srq, uint32_t pd, uint32_t entries);
struct sg_rqe_hdr *md_srq_entry(struct md_srq *srq);
void md_srq_doorbell(struct md_srq *srq);
void md_post_srq(struct md_srq *srq, uint64_t wr_id, uint64_t addr, uint32_t len, uint32_t lkey);

enum sg_status md_modify_qp(struct md_qp *qp, enum sg_qp_state state);
uint32_t md_qp_state(struct md_qp *qp);

/* The entry at the producer index, zeroed, with its index; fill it in, then ring the doorbell. */
struct sg_wqe_hdr *md_sq_entry(struct md_qp *qp);
struct sg_rqe_hdr *md_rq_entry(struct md_qp *qp);
void md_sq_doorbell(struct md_qp *qp);
void md_rq_doorbell(struct md_qp *qp);
/* One signaled entry with one element; doorbell included. */
struct md_wr {
    uint8_t opcode, flags; /* SG_WQE_SIGNALED is added unless 'quiet' */
    bool quiet;
    uint64_t wr_id;
    uint64_t addr;
    uint32_t len, lkey;
    uint64_t raddr;
    uint32_t rkey;
    uint32_t inv_stag;
};
void md_post_send(struct md_qp *qp, const struct md_wr *wr);
void md_post_recv(struct md_qp *qp, uint64_t wr_id, uint64_t addr, uint32_t len, uint32_t lkey);

/* The next entry of the async queue (SG_EV_ADMIN skipped) or of event queue 1; or false. */
bool md_next_async(struct md *md, struct sg_eqe *out);
bool md_next_event(struct md *md, struct sg_eqe *out);
/* Writes the consumer index and arms. */
void md_arm_eq(struct md *md, uint32_t eqn);

struct sg_sockaddr md_addr(const struct sg_endpoint *ep, uint16_t port);

#endif
