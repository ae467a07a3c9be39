/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What both ways of posting (post.c, wr.c) know about send operations.
 */
#ifndef STAGHORN_PROVIDER_OPS_H
#define STAGHORN_PROVIDER_OPS_H

#include <stdint.h>

#include <infiniband/verbs.h>

enum sg_send_ops {
	SG_SEND_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
	SG_READ_MAX_SGE = 1, /* RFC 5040 section 5.2: a Read has one sink buffer */
	SG_ATOM = 8,         /* octets of an Atomic Write */
};

/* SG_WQE_* of each combination of SG_SEND_FLAGS, which are the low three bits. */
extern const uint8_t sg_wqe_flags[SG_SEND_FLAGS + 1];

#endif
