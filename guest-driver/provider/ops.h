/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Properties of send operations, shared by both ways of posting (post.c, wr.c).
 */
#ifndef STAGHORN_PROVIDER_OPS_H
#define STAGHORN_PROVIDER_OPS_H

#include <stdint.h>

#include <infiniband/verbs.h>

enum sg_send_ops {
	SG_SEND_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
	SG_ATOM = 8,         /* octets of an Atomic Write; of what an atomic operation fetches */
};

/* SG_WQE_* of each combination of SG_SEND_FLAGS, which are the low three bits. */
extern const uint8_t sg_wqe_flags[SG_SEND_FLAGS + 1];

struct ibv_mw;
struct ibv_mw_bind_info;
struct sg_wqe_hdr;

/* mw.c: sets the part after the header of a BIND_MW entry.  0, EINVAL or EPERM. */
int sg_set_bind(struct sg_wqe_hdr *wqe, const struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info);

#endif
