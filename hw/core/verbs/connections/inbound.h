/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Upcalls of the engine for received messages; as in struct sg_engine_ops, user is a struct sg_cm.
 */
#ifndef SG_VERBS_CONNECTIONS_INBOUND_H
#define SG_VERBS_CONNECTIONS_INBOUND_H

#include "proto/engine.h"

enum sg_mem_status sg_in_place_write(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                     size_t n);
void sg_in_write_placed(void *user);
enum sg_mem_status sg_in_place_read(void *user, const struct sg_read_sink *sink, uint32_t off,
                                    const uint8_t *p, size_t n);
enum sg_recv_status sg_in_place_recv(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                     size_t n);
void sg_in_recv_done(void *user, const struct sg_recv_info *info);
enum sg_mem_status sg_in_invalidate(void *user, uint32_t stag);
enum sg_mem_status sg_in_check_source(void *user, uint32_t stag, uint64_t to, uint32_t len);
int sg_in_gather_source(void *user, uint32_t stag, uint64_t to, uint32_t len, struct iovec *iov,
                        enum sg_mem_status *why);
enum sg_exec_result sg_in_mpe(void *user, const struct sg_mpe_req *r, uint8_t hash[64],
                              uint8_t *hash_len, enum sg_mem_status *why, uint64_t *token,
                              uint64_t *again_ns);
void sg_in_answered(void *user, const struct sg_answer *r);
enum sg_exec_result sg_in_atomic(void *user, const struct sg_atomic_call *r, uint64_t *original,
                                 enum sg_mem_status *why, uint64_t *token, uint64_t *again_ns);

#endif
