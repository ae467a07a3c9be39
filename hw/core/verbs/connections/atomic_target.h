/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Execution of the peer's Atomics (RFC 7306).
 */
#ifndef SG_VERBS_CONNECTIONS_ATOMIC_TARGET_H
#define SG_VERBS_CONNECTIONS_ATOMIC_TARGET_H

#include "proto/engine.h"

struct sg_qp;

/* As sg_engine_ops.atomic.  The queue pair is connected. */
enum sg_exec_result sg_atomic_target_run(struct sg_qp *qp, const struct sg_atomic_call *r,
                                         uint64_t *original, enum sg_mem_status *why,
                                         uint64_t *token, uint64_t *again_ns);

#endif
