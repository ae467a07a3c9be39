/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Both ends of the programs that test Flush, Verify and Atomic Write in VMs: connections through
 * rdma_cm, the server's regions, and hashes by an implementation that the adapter does not use.
 */
#ifndef SG_TESTS_MPE_NET_H
#define SG_TESTS_MPE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/staghorndv.h>
#include <rdma/rdma_cma.h>

#include "mpe_wire.h"

enum {
    MPE_SQ = 64, /* entries of a send queue */
    MPE_KEY_LEN = 20,
};

extern const uint8_t mpe_key[MPE_KEY_LEN]; /* key of HMAC regions */

/* One connection.  Requests use buf; at most one request fails, the last one. */
struct mpe_conn {
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp_ex *qpx;
    struct ibv_mr *mr;
    uint8_t *buf; /* MPE_SIZE octets, with local and remote write */
    struct mpe_table table;
};

/* These end the program with a message on an error of the environment. */
_Noreturn void mpe_die(const char *what);
void mpe_connect(struct mpe_conn *c, const char *address, uint32_t max_inline);
void mpe_close(struct mpe_conn *c);
void mpe_wait(struct mpe_conn *c, struct ibv_wc *wc);
/* Runs for ever.  dax: path of a devdax device, or NULL. */
_Noreturn void mpe_serve(const char *address, const char *dax);

/* Uses the kernel's implementation; returns the hash's length. */
uint32_t mpe_hash(enum sgdv_hash hash, const void *data, size_t len, uint8_t *out);

#endif
