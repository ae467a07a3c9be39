// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters for "rdma statistic" and details for "rdma resource show".  SG_STATS determines names
 * and order of those of the adapter; behind them are those of the driver.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>

#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "srq.h"
#include "stats.h"

static const struct rdma_stat_desc sgh_stat_descs[] = {
#define X(counter, where) { .name = #counter },
	SG_STATS(X)
#undef X
		{ .name = "lost_interrupts" },
};

#define SGH_ADAPTER_STATS (ARRAY_SIZE(sgh_stat_descs) - 1)

static_assert(sizeof(struct sg_stats) == SGH_ADAPTER_STATS * sizeof(__le64));

struct rdma_hw_stats *sgh_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(sgh_stat_descs, ARRAY_SIZE(sgh_stat_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int sgh_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct sgh_dev *dev = to_sgh(ibdev);
	__le64 raw[SGH_ADAPTER_STATS];
	int ret, i;

	if (port != 1)
		return -EINVAL;
	ret = sgh_admin_query(dev, SG_ADMIN_QUERY_STATS, 0, raw, sizeof(raw));
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(raw); i++)
		stats->value[i] = le64_to_cpu(raw[i]);
	stats->value[SGH_ADAPTER_STATS] = READ_ONCE(dev->lost_irqs);
	return stats->num_counters;
}

static const char *const sgh_mr_stat_names[] = {
#define X(counter) #counter,
	SG_MR_STATS(X)
#undef X
};

static_assert(sizeof(struct sg_mr_stats) == ARRAY_SIZE(sgh_mr_stat_names) * sizeof(__le64));

/* Operations of peers on the region. */
int sgh_fill_stat_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	__le64 raw[ARRAY_SIZE(sgh_mr_stat_names)];
	struct nlattr *table;
	int ret, i;

	/* Regions for fast registration change their key. */
	ret = sgh_admin_query(to_sgh(ibmr->device), SG_ADMIN_QUERY_MR_STATS, ibmr->rkey, raw,
			      sizeof(raw));
	if (ret)
		return 0;
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < ARRAY_SIZE(raw); i++) {
		if (rdma_nl_stat_hwcounter_entry(msg, sgh_mr_stat_names[i], le64_to_cpu(raw[i]))) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

/* Adds the driver's part of a resource: pairs of a name and a number. */
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
		{ "srqn", ibqp->srq ? to_sgh_srq(ibqp->srq)->srqn : 0 },
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

int sgh_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct sgh_mr *mr = to_sgh_mr(ibmr);
	const struct sgh_detail d[] = {
		{ "access", mr->access },	{ "page_size", ibmr->page_size },
		{ "max_pages", mr->max_pages }, { "hash_alg", mr->hash_alg },
		{ "mem_type", mr->mem_type },	{ "mem_mode", mr->mem_mode },
	};

	return sgh_put_details(msg, d, ARRAY_SIZE(d));
}

int sgh_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct sgh_srq *srq = to_sgh_srq(ibsrq);
	const struct sgh_detail d[] = {
		{ "number", srq->srqn },
		{ "entries", srq->wq.entries },
		{ "stride", 1u << srq->wq.stride_shift },
		{ "max_sge", srq->wq.max_sge },
	};

	return sgh_put_details(msg, d, ARRAY_SIZE(d));
}
