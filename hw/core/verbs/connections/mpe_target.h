/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Execution of the peer's Flush, Verify and Atomic Write (draft-talpey-rdma-commit).
 */
#ifndef SG_VERBS_CONNECTIONS_MPE_TARGET_H
#define SG_VERBS_CONNECTIONS_MPE_TARGET_H

#include "proto/engine.h"

struct sg_cm;
struct sg_hasher;

enum { SG_HASH_PIECE = 64 * 1024 }; /* octets that Verify reads at once */

/* Of one connection: the request under way, from its first turn to its last. */
struct sg_mpe_target {
    uint64_t serial;     /* of the region's registration */
    bool poisoning;      /* the hash differs: the range is being marked */
    uint64_t to, length; /* the range; with R, all of the region */
    uint64_t off;        /* octets of it that are complete */
    struct sg_pm_op op;  /* the run whose flush is in progress */
    struct sg_hasher *hasher;
};

/* As sg_engine_ops.mpe.  The connection has its queue pair. */
enum sg_exec_result sg_mpe_target_run(struct sg_cm *cm, const struct sg_mpe_req *r,
                                      uint8_t hash[64], uint8_t *hash_len, enum sg_mem_status *why,
                                      uint64_t *token, uint64_t *again_ns);
/* Drops the current request. */
void sg_mpe_target_drop(struct sg_cm *cm);

#endif
