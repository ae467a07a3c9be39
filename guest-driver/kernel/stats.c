// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters for "rdma statistic" and details for "rdma resource show".  The names are those of
 * SG_STATS, the order too.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>

#include "staghorn.h"

static const struct rdma_stat_desc sgh_stat_descs[] = {
#define X(counter) { .name = #counter },
	SG_STATS(X)
#undef X
};

static_assert(sizeof(struct sg_stats) == ARRAY_SIZE(sgh_stat_descs) * sizeof(__le64));

struct rdma_hw_stats *sgh_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(sgh_stat_descs, ARRAY_SIZE(sgh_stat_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int sgh_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct sgh_dev *sg = to_sgh(ibdev);
	__le64 raw[ARRAY_SIZE(sgh_stat_descs)];
	int ret, i;

	if (port != 1)
		return -EINVAL;
	ret = sgh_admin_query(sg, SG_ADMIN_QUERY_STATS, 0, raw, sizeof(raw));
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(raw); i++)
		stats->value[i] = le64_to_cpu(raw[i]);
	return stats->num_counters;
}

/* Puts the driver's part of a resource: pairs of a name and a number. */
struct sgh_detail {
	const char *name;
	u32 value;
};

static int sgh_put_details(struct sk_buff *msg, const struct sgh_detail *d, int n)
{
	struct nlattr *table;
	int i;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < n; i++) {
		if (rdma_nl_put_driver_u32(msg, d[i].name, d[i].value)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

int sgh_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct sgh_qp *qp = to_sgh_qp(ibqp);
	const struct sgh_detail d[] = {
		{ "sq_entries", qp->sq.entries },
		{ "sq_stride", 1u << qp->sq.stride_shift },
		{ "rq_entries", qp->rq.entries },
		{ "rq_stride", 1u << qp->rq.stride_shift },
		{ "max_inline", qp->max_inline },
	};

	return sgh_put_details(msg, d, ARRAY_SIZE(d));
}

int sgh_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	const struct sgh_cq *cq = to_sgh_cq(ibcq);
	const struct sgh_detail d[] = {
		{ "entries", cq->ring.entries },
		{ "eqn", cq->eq->eqn },
		{ "vector", cq->eq->vector },
	};

	return sgh_put_details(msg, d, ARRAY_SIZE(d));
}
