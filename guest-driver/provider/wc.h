/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The words of a completion entry (io.h, struct sg_cqe) in the terms of libibverbs.  An
 * adapter newer than this provider may report unknown values: they become a general error, and an
 * opcode that no program requests.
 */
#ifndef STAGHORN_PROVIDER_WC_H
#define STAGHORN_PROVIDER_WC_H

#include <stdint.h>

#include <ccan/array_size.h>
#include <infiniband/verbs.h>
#include <util/compiler.h>

#include <staghorn/io.h>

#include "compat.h"
#include "staghorndv.h"
#include "wqe.h"

static const enum ibv_wc_status wc_status[] = {
#define X(name, number, verbs) [number] = IBV_WC_##verbs,
	SG_WC_STATUSES(X)
#undef X
};

static const enum ibv_wc_opcode wc_send_opcode[] = {
#define X(name, number, verbs) [number] = IBV_WC_##verbs,
	SG_WC_SEND_OPCODES(X)
#undef X
		[SG_WC_REG_MR] = IBV_WC_DRIVER3, /* the kernel's alone */
	[SG_WC_VERIFY] = SGDV_WC_VERIFY,
};

static inline enum ibv_wc_status to_wc_status(uint64_t tail)
{
	uint8_t status = sgp_cqe_status(tail);

	return likely(status < ARRAY_SIZE(wc_status)) ? wc_status[status] : IBV_WC_GENERAL_ERR;
}

static inline enum ibv_wc_opcode to_wc_opcode(uint64_t tail)
{
	uint8_t opcode = sgp_cqe_opcode(tail);

	if (sgp_cqe_flags(tail) & SG_CQE_RECV)
		return opcode == SG_WC_RECV_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	return likely(opcode < ARRAY_SIZE(wc_send_opcode)) ? wc_send_opcode[opcode]
							   : IBV_WC_DRIVER3;
}

static inline unsigned int to_wc_flags(uint64_t tail)
{
	uint8_t flags = sgp_cqe_flags(tail);

	return (flags & SG_CQE_WITH_INV ? IBV_WC_WITH_INV : 0) |
	       (flags & SG_CQE_WITH_IMM ? IBV_WC_WITH_IMM : 0);
}

#endif
