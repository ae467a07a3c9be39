// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory windows.  The kernel allocates the STag; binding is a work request like any other.  Its
 * index comes from that STag, and the consumer chooses its key.
 *
 * Type 1: ibv_bind_mw() chooses the next key.  Type 2: the caller of IBV_WR_BIND_MW does.  The
 * device checks region, rights and bounds, and reports errors by a completion; this file only
 * refuses requests without a meaning.
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/array_size.h>

#include "provider.h"
#include "doorbell.h"
#include "ops.h"
#include "wqe.h"

struct ibv_mw *sgp_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct ibv_alloc_mw cmd = {};
	struct ibv_mw *mw;
	int ret;

	if (!(to_sgp_context(pd->context)->features & SG_FEATURE_MW)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	ret = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(mw);
		errno = ret;
		return NULL;
	}
	return mw;
}

int sgp_dealloc_mw(struct ibv_mw *mw)
{
	int ret = ibv_cmd_dealloc_mw(mw);

	if (ret)
		return ret;
	free(mw);
	return 0;
}

/* SG_ACCESS_* of a window, or -1: not possible for a window; local rights have no meaning. */
static int window_access(unsigned int flags)
{
	static const struct {
		unsigned int ibv;
		int sg;
	} map[] = {
		{ IBV_ACCESS_REMOTE_READ, SG_ACCESS_REMOTE_READ },
		{ IBV_ACCESS_REMOTE_WRITE, SG_ACCESS_REMOTE_WRITE },
		{ IBV_ACCESS_REMOTE_ATOMIC, SG_ACCESS_REMOTE_ATOMIC },
#ifdef SGP_HAVE_FLUSH
		{ IBV_ACCESS_FLUSH_GLOBAL, SG_ACCESS_FLUSH_GLOBAL },
		{ IBV_ACCESS_FLUSH_PERSISTENT, SG_ACCESS_FLUSH_PERSISTENT },
#endif
		{ IBV_ACCESS_ZERO_BASED, SG_ACCESS_ZERO_BASED },
	};
	unsigned int i;
	int access = 0;

	flags &= ~(unsigned int)IBV_ACCESS_LOCAL_WRITE;
	for (i = 0; i < ARRAY_SIZE(map); i++) {
		if (flags & map[i].ibv)
			access |= map[i].sg;
		flags &= ~map[i].ibv;
	}
	return flags ? -1 : access;
}

int sgp_set_bind(struct sg_wqe_hdr *wqe, const struct ibv_mw *mw, uint32_t rkey,
		 const struct ibv_mw_bind_info *info)
{
	int access = window_access(info->mw_access_flags);

	if (access < 0 || (info->length && !info->mr) ||
	    (!info->length && mw->type != IBV_MW_TYPE_1))
		return EINVAL;
	if (info->mr && info->mr->pd->handle != mw->pd->handle)
		return EPERM;
	sg_wqe_set_bind(wqe, rkey, info->length ? info->mr->lkey : 0, (uint32_t)access, info->addr,
			info->length);
	return 0;
}

/* Type 1; libibverbs has checked the type. */
int sgp_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct sgp_qp *qp = to_sgp_qp(ibqp);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct sg_wqe_hdr *wqe;
	int ret = 0;

	if (bind->send_flags & ~(unsigned int)SGP_SEND_FLAGS)
		return EOPNOTSUPP;
	if (sizeof(struct sg_wqe_bind) > qp->sq_room)
		return EOPNOTSUPP;
	sgp_lock(&qp->sq_lock);
	if (sgp_ring_full(&qp->sq, qp->sq.head)) {
		ret = ENOMEM;
		goto out;
	}
	wqe = sgp_ring_slot(&qp->sq, qp->sq.head);
	sg_wqe_init(wqe, qp->sq.head, SG_WR_BIND_MW,
		    sgp_wqe_flags[bind->send_flags & SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED] |
			    qp->sq_flags,
		    bind->wr_id);
	ret = sgp_set_bind(wqe, mw, rkey, &bind->bind_info);
	if (ret)
		goto out;
	mw->rkey = rkey;
	qp->sq.head++;
	sgp_doorbell(qp->db, SG_DB_SQ, qp->qpn, qp->sq.head);
out:
	sgp_unlock(&qp->sq_lock);
	return ret;
}
