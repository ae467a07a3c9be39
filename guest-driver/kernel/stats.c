// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters for "rdma statistic" of the port and of regions.  SG_STATS determines names and order of
 * those of the adapter; behind them are those of the driver.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>

#include "dev.h"
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
