// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Protection domains, thread domains, and parent domains, which combine one of each.
 *
 * A parent domain is not an object of the kernel: it has the handle of the protection domain below
 * it and keeps that alive.  Objects created in one with a thread domain take no locks.  Queues
 * created in one with allocators get their memory from these, and keep the domain alive.
 */
#include <errno.h>
#include <stdlib.h>

#include "provider.h"

struct ibv_pd *sgp_alloc_pd(struct ibv_context *context)
{
	struct sgp_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct sgp_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ret = ibv_cmd_alloc_pd(context, &pd->ibpd, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->ibpd;
}

struct ibv_td *sgp_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct sgp_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibtd.context = context;
	return &td->ibtd;
}

int sgp_dealloc_td(struct ibv_td *ibtd)
{
	struct sgp_td *td = container_of(ibtd, struct sgp_td, ibtd);

	if (atomic_load(&td->parents))
		return EBUSY;
	free(td);
	return 0;
}

struct ibv_pd *sgp_alloc_parent_domain(struct ibv_context *context,
				       struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	bool asked = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	struct sgp_pd *parent, *base;

	if (attr->comp_mask & ~known) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	base = attr->pd ? to_sgp_pd(attr->pd) : NULL;
	if (!base || base->base || (asked && !attr->alloc != !attr->free)) {
		errno = EINVAL;
		return NULL;
	}
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return NULL;
	ibv_initialize_parent_domain(&parent->ibpd, &base->ibpd);
	parent->base = base;
	atomic_fetch_add(&base->parents, 1);
	if (attr->td) {
		parent->td = container_of(attr->td, struct sgp_td, ibtd);
		atomic_fetch_add(&parent->td->parents, 1);
	}
	if (asked) {
		parent->alloc = attr->alloc;
		parent->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		parent->alloc_context = attr->pd_context;
	return &parent->ibpd;
}

/* For both kinds. */
int sgp_dealloc_pd(struct ibv_pd *ibpd)
{
	struct sgp_pd *pd = to_sgp_pd(ibpd);
	int ret;

	if (atomic_load(&pd->parents))
		return EBUSY;
	if (pd->base) {
		atomic_fetch_sub(&pd->base->parents, 1);
		if (pd->td)
			atomic_fetch_sub(&pd->td->parents, 1);
		free(pd);
		return 0;
	}
	ret = ibv_cmd_dealloc_pd(ibpd);
	if (ret)
		return ret;
	free(pd);
	return 0;
}
