/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Work requests for kernel consumers that the kernel's verbs name but do not define.
 *
 * Linux 6.12 has IB_WR_FLUSH, IB_WC_FLUSH and the constants for type and level (ib_user_verbs.h),
 * but no struct for posting a Flush from the kernel.  A consumer of this adapter includes this
 * file, fills the struct and posts &flush.wr with ib_post_send().  No elements, not inline.
 *
 * IB_WR_ATOMIC_WRITE needs nothing new: struct ib_rdma_wr with 8 octets, inline or in one element.
 */
#ifndef SGH_FLUSH_WR_H
#define SGH_FLUSH_WR_H

#include <rdma/ib_user_verbs.h>
#include <rdma/ib_verbs.h>

struct sgh_flush_wr {
	struct ib_send_wr wr; /* opcode IB_WR_FLUSH, num_sge 0 */
	u64 remote_addr;      /* of the peer's range; with IB_FLUSH_MR ignored, as is length */
	u32 rkey;
	u32 length; /* octets */
	u8 type;    /* IB_FLUSH_GLOBAL, IB_FLUSH_PERSISTENT or both */
	u8 level;   /* IB_FLUSH_RANGE or IB_FLUSH_MR */
};

static inline const struct sgh_flush_wr *sgh_flush_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct sgh_flush_wr, wr);
}

#endif
