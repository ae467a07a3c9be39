/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Properties of send operations, shared by both ways of posting (post.c, wr.c).
 */
#ifndef STAGHORN_PROVIDER_OPS_H
#define STAGHORN_PROVIDER_OPS_H

#include <stdint.h>

#include <infiniband/verbs.h>

enum sgp_send_ops {
	SGP_SEND_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
};

/* SG_WQE_* of each combination of SGP_SEND_FLAGS, which are the low three bits. */
extern const uint8_t sgp_wqe_flags[SGP_SEND_FLAGS + 1];

struct ibv_mw;
struct ibv_mw_bind_info;
struct sg_wqe_hdr;

/* mw.c: sets the part after the header of a BIND_MW entry.  0, EINVAL or EPERM. */
int sgp_set_bind(struct sg_wqe_hdr *wqe, const struct ibv_mw *mw, uint32_t rkey,
		 const struct ibv_mw_bind_info *info);

#endif
