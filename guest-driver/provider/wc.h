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

#include "staghorndv.h"
#include "wqe.h"

static const enum ibv_wc_status wc_status[] = {
	[SG_WC_SUCCESS] = IBV_WC_SUCCESS,
	[SG_WC_LOC_LEN_ERR] = IBV_WC_LOC_LEN_ERR,
	[SG_WC_LOC_QP_OP_ERR] = IBV_WC_LOC_QP_OP_ERR,
	[SG_WC_LOC_PROT_ERR] = IBV_WC_LOC_PROT_ERR,
	[SG_WC_FLUSH_ERR] = IBV_WC_WR_FLUSH_ERR,
	[SG_WC_REM_INV_REQ_ERR] = IBV_WC_REM_INV_REQ_ERR,
	[SG_WC_REM_ACCESS_ERR] = IBV_WC_REM_ACCESS_ERR,
	[SG_WC_REM_OP_ERR] = IBV_WC_REM_OP_ERR,
	[SG_WC_MW_BIND_ERR] = IBV_WC_MW_BIND_ERR,
	[SG_WC_FATAL_ERR] = IBV_WC_FATAL_ERR,
	[SG_WC_GENERAL_ERR] = IBV_WC_GENERAL_ERR,
	[SG_WC_RETRY_EXC_ERR] = IBV_WC_RETRY_EXC_ERR,
};

static const enum ibv_wc_opcode wc_send_opcode[] = {
	[SG_WC_SEND] = IBV_WC_SEND,
	[SG_WC_WRITE] = IBV_WC_RDMA_WRITE,
	[SG_WC_READ] = IBV_WC_RDMA_READ,
	[SG_WC_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[SG_WC_REG_MR] = IBV_WC_DRIVER3, /* kernel only */
	[SG_WC_BIND_MW] = IBV_WC_BIND_MW,
	[SG_WC_SEND_IMM] = IBV_WC_SEND,
	[SG_WC_WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[SG_WC_FETCH_ADD] = IBV_WC_FETCH_ADD,
	[SG_WC_CMP_SWAP] = IBV_WC_COMP_SWAP,
	[SG_WC_FLUSH] = IBV_WC_FLUSH,
	[SG_WC_VERIFY] = SGDV_WC_VERIFY,
	[SG_WC_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
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
	return likely(opcode < ARRAY_SIZE(wc_send_opcode)) ? wc_send_opcode[opcode] :
							     IBV_WC_DRIVER3;
}

static inline unsigned int to_wc_flags(uint64_t tail)
{
	uint8_t flags = sgp_cqe_flags(tail);

	return (flags & SG_CQE_WITH_INV ? IBV_WC_WITH_INV : 0) |
	       (flags & SG_CQE_WITH_IMM ? IBV_WC_WITH_IMM : 0);
}

#endif
