/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Counters and resource details for rdma(8): stats.c, counter.c, res.c. */
#ifndef SGH_STATS_H
#define SGH_STATS_H

#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

/* stats.c */
struct rdma_hw_stats *sgh_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int sgh_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);
int sgh_fill_stat_mr(struct sk_buff *msg, struct ib_mr *ibmr);

/* counter.c */
int sgh_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp);
int sgh_counter_unbind_qp(struct ib_qp *ibqp);
int sgh_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *sgh_counter_alloc_stats(struct rdma_counter *counter);
int sgh_counter_update_stats(struct rdma_counter *counter);

/* res.c */
struct rdma_cm_id;
int sgh_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int sgh_fill_res_mr_raw(struct sk_buff *msg, struct ib_mr *ibmr);
int sgh_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq);
int sgh_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int sgh_fill_res_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int sgh_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int sgh_fill_res_cq_raw(struct sk_buff *msg, struct ib_cq *ibcq);
int sgh_fill_res_cm_id(struct sk_buff *msg, struct rdma_cm_id *id);

#endif
