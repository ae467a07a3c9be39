// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters of queue pairs, for "rdma statistic qp".
 *
 * The adapter counts for each queue pair.  A counter of the RDMA core is bound to any number of
 * queue pairs and shows what they did while they were bound: the count at binding is subtracted,
 * the count at unbinding is kept.  The core holds the counter's lock in each of these functions,
 * and unbinds a queue pair before it is destroyed.  A reference and its mutex keep each other queue
 * pair while it is examined.
 */
#include "qp.h"
#include "stats.h"

static const struct rdma_stat_desc sgh_qp_stat_descs[] = {
#define X(counter) { .name = #counter },
	SG_QP_STATS(X)
#undef X
};

#define SGH_QP_STATS ARRAY_SIZE(sgh_qp_stat_descs)

static_assert(sizeof(struct sg_qp_stats) == SGH_QP_STATS * sizeof(__le64));

/* Modulo 2^64: the sum of the bound queue pairs' counters plus this is what the counter shows. */
struct sgh_counter {
	u64 offset[SGH_QP_STATS];
};

static int sgh_qp_counts(struct sgh_dev *dev, u32 qpn, u64 *counts)
{
	__le64 raw[SGH_QP_STATS];
	int ret, i;

	ret = sgh_admin_query(dev, SG_ADMIN_QUERY_QP_STATS, qpn, raw, sizeof(raw));
	for (i = 0; !ret && i < SGH_QP_STATS; i++)
		counts[i] = le64_to_cpu(raw[i]);
	return ret;
}

static int sgh_counter_new(struct sgh_dev *dev, struct rdma_counter *counter)
{
	struct sgh_counter *c = kzalloc(sizeof(*c), GFP_KERNEL);
	int ret;

	if (!c)
		return -ENOMEM;
	ret = xa_alloc(&dev->counters, &counter->id, c, XA_LIMIT(1, INT_MAX), GFP_KERNEL);
	if (ret)
		kfree(c);
	return ret;
}

int sgh_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp)
{
	struct sgh_dev *dev = to_sgh(ibqp->device);
	u64 counts[SGH_QP_STATS];
	struct sgh_counter *c;
	bool is_new = !counter->id;
	int ret, i;

	if (is_new) {
		ret = sgh_counter_new(dev, counter);
		if (ret)
			return ret;
	}
	ret = sgh_qp_counts(dev, to_sgh_qp(ibqp)->qpn, counts);
	if (ret) {
		/* ib_core drops a counter that is bound to nothing without telling us. */
		if (is_new) {
			sgh_counter_dealloc(counter);
			counter->id = 0;
		}
		return ret;
	}
	c = xa_load(&dev->counters, counter->id);
	for (i = 0; i < SGH_QP_STATS; i++)
		c->offset[i] -= counts[i];
	ibqp->counter = counter;
	return 0;
}

int sgh_counter_unbind_qp(struct ib_qp *ibqp)
{
	struct sgh_dev *dev = to_sgh(ibqp->device);
	u64 counts[SGH_QP_STATS] = {};
	struct sgh_counter *c;
	int i;

	/* A lost adapter has no counts; the queue pair is unbound all the same. */
	sgh_qp_counts(dev, to_sgh_qp(ibqp)->qpn, counts);
	c = xa_load(&dev->counters, ibqp->counter->id);
	for (i = 0; c && i < SGH_QP_STATS; i++)
		c->offset[i] += counts[i];
	ibqp->counter = NULL;
	return 0;
}

int sgh_counter_dealloc(struct rdma_counter *counter)
{
	kfree(xa_erase(&to_sgh(counter->device)->counters, counter->id));
	return 0;
}

struct rdma_hw_stats *sgh_counter_alloc_stats(struct rdma_counter *counter)
{
	return rdma_alloc_hw_stats_struct(sgh_qp_stat_descs, SGH_QP_STATS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int sgh_counter_update_stats(struct rdma_counter *counter)
{
	struct sgh_dev *dev = to_sgh(counter->device);
	struct sgh_counter *c = xa_load(&dev->counters, counter->id);
	u64 counts[SGH_QP_STATS];
	unsigned long qpn;
	struct sgh_qp *qp;
	int ret = 0, i;

	if (!c)
		return -ENOENT;
	memcpy(counter->stats->value, c->offset, sizeof(c->offset));
	/* One by one, so that others can be created and destroyed in between. */
	xa_for_each(&dev->qps, qpn, qp) {
		qp = sgh_qp_find(dev, qpn);
		if (!qp)
			continue;
		mutex_lock(&qp->mutex);
		memset(counts, 0, sizeof(counts));
		if (!qp->gone && READ_ONCE(qp->ibqp.counter) == counter)
			ret = sgh_qp_counts(dev, qpn, counts);
		mutex_unlock(&qp->mutex);
		sgh_qp_put(qp);
		if (ret)
			break;
		for (i = 0; i < SGH_QP_STATS; i++)
			counter->stats->value[i] += counts[i];
	}
	return ret;
}
