// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Flush, Atomic Write, atomics, fast registration, a shared receive queue that changes size, and
 * a queue pair that is destroyed while iw_cm still refers to it, in a kernel module.
 *
 * insmod kmpe.ko server=10.77.0.2 runs against mpe_server, and fails if a check fails; the log says
 * which.  Everything happens in the module's initialisation.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "flush_wr.h"
#include "mpe_wire.h"

#define BUF_SIZE (4 * PAGE_SIZE)
#define AT 0x3008
#define WAIT_MS 30000

static char *server;
module_param(server, charp, 0);

static struct {
	struct rdma_cm_id *id;
	struct completion step;
	enum rdma_cm_event_type event;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;
	u8 *buf;
	u64 dma;
	struct mpe_table table;
} k;

/* Reports each failed check with its line. */
#define CHECK(cond)                                                               \
	do {                                                                      \
		if (!(cond)) {                                                    \
			pr_err("kmpe: line %d: not true: %s\n", __LINE__, #cond); \
			return -EIO;                                              \
		}                                                                 \
	} while (0)

static int cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	k.event = event->event;
	complete(&k.step);
	return 0;
}

static int wait_for(enum rdma_cm_event_type event)
{
	CHECK(wait_for_completion_timeout(&k.step, msecs_to_jiffies(WAIT_MS)));
	if (k.event != event)
		pr_err("kmpe: %s instead of %s\n", rdma_event_msg(k.event), rdma_event_msg(event));
	CHECK(k.event == event);
	return 0;
}

static int take(struct ib_wc *wc)
{
	int i, n = 0;

	for (i = 0; i < WAIT_MS && !n; i++) {
		n = ib_poll_cq(k.cq, 1, wc);
		if (!n)
			usleep_range(1000, 1500);
	}
	CHECK(n == 1);
	return 0;
}

static int expect(enum ib_wc_status status, enum ib_wc_opcode opcode)
{
	struct ib_wc wc;

	if (take(&wc))
		return -EIO;
	if (wc.status != status)
		pr_err("kmpe: %s, vendor error 0x%08x\n", ib_wc_status_msg(wc.status),
		       wc.vendor_err);
	CHECK(wc.status == status);
	CHECK(wc.status != IB_WC_SUCCESS || wc.opcode == opcode);
	return 0;
}

static struct ib_sge sge_of(u32 offset, u32 length)
{
	return (struct ib_sge){ k.dma + offset, length, k.pd->local_dma_lkey };
}

/* 0 or an errno value. */
static int post(const struct ib_send_wr *wr)
{
	const struct ib_send_wr *bad;

	return -ib_post_send(k.id->qp, wr, &bad);
}

static int post_rdma(enum ib_wr_opcode opcode, u64 at, struct ib_sge *sge, int flags)
{
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode,
			.sg_list = sge,
			.num_sge = 1,
			.send_flags = IB_SEND_SIGNALED | flags },
		.remote_addr = k.table.regions[R_CRC32C].addr + at,
		.rkey = k.table.regions[R_CRC32C].rkey,
	};

	return post(&wr.wr);
}

static struct sgh_flush_wr flush_of(u8 type, u8 level)
{
	return (struct sgh_flush_wr){
		.wr = { .opcode = IB_WR_FLUSH, .send_flags = IB_SEND_SIGNALED },
		.remote_addr = k.table.regions[R_CRC32C].addr + AT,
		.rkey = k.table.regions[R_CRC32C].rkey,
		.length = PAGE_SIZE,
		.type = type,
		.level = level,
	};
}

static int test_flush(void)
{
	struct ib_sge sge = sge_of(0, PAGE_SIZE), back = sge_of(2 * PAGE_SIZE, PAGE_SIZE);
	struct sgh_flush_wr range = flush_of(IB_FLUSH_GLOBAL, IB_FLUSH_RANGE);
	struct sgh_flush_wr region = flush_of(IB_FLUSH_GLOBAL, IB_FLUSH_MR);

	get_random_bytes(k.buf, PAGE_SIZE);
	CHECK(!post_rdma(IB_WR_RDMA_WRITE, AT, &sge, 0));
	CHECK(!post(&range.wr));
	CHECK(!post(&region.wr));
	CHECK(!post_rdma(IB_WR_RDMA_READ, AT, &back, 0));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_RDMA_WRITE));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_FLUSH));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_FLUSH));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_RDMA_READ));
	CHECK(!memcmp(k.buf, k.buf + 2 * PAGE_SIZE, PAGE_SIZE));
	return 0;
}

static int test_flush_arguments(void)
{
	struct ib_sge sge = sge_of(0, 8);
	struct sgh_flush_wr wr;

	wr = flush_of(0, IB_FLUSH_RANGE);
	CHECK(post(&wr.wr) == EINVAL);
	wr = flush_of(IB_FLUSH_GLOBAL | 4, IB_FLUSH_RANGE);
	CHECK(post(&wr.wr) == EINVAL);
	wr = flush_of(IB_FLUSH_GLOBAL, IB_FLUSH_MR + 1);
	CHECK(post(&wr.wr) == EINVAL);
	wr = flush_of(IB_FLUSH_GLOBAL, IB_FLUSH_RANGE);
	wr.wr.sg_list = &sge;
	wr.wr.num_sge = 1;
	CHECK(post(&wr.wr) == EINVAL);
	wr = flush_of(IB_FLUSH_GLOBAL, IB_FLUSH_RANGE);
	wr.wr.send_flags |= IB_SEND_INLINE;
	CHECK(post(&wr.wr) == EINVAL);
	return 0;
}

static int test_atomic_write(void)
{
	u64 inlined = 0x1122334455667788;
	struct ib_sge by_value = { (uintptr_t)&inlined, 8, 0 };
	struct ib_sge sge = sge_of(8, 8), back = sge_of(64, 16), four = sge_of(0, 4);

	memset(k.buf, 0x5a, 16);
	CHECK(!post_rdma(IB_WR_ATOMIC_WRITE, AT, &by_value, IB_SEND_INLINE));
	CHECK(!post_rdma(IB_WR_ATOMIC_WRITE, AT + 8, &sge, 0));
	CHECK(!post_rdma(IB_WR_RDMA_READ, AT, &back, 0));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_ATOMIC_WRITE));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_ATOMIC_WRITE));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_RDMA_READ));
	CHECK(!memcmp(k.buf + 64, &inlined, 8));
	CHECK(!memcmp(k.buf + 72, k.buf + 8, 8));
	CHECK(post_rdma(IB_WR_ATOMIC_WRITE, AT, &four, 0) == EINVAL);
	by_value.length = 4;
	CHECK(post_rdma(IB_WR_ATOMIC_WRITE, AT, &by_value, IB_SEND_INLINE) == EINVAL);
	return 0;
}

/* One operation on the word at AT; its former value is at octet 64 of the buffer. */
static int atomic(enum ib_wr_opcode opcode, u64 compare_add, u64 swap, u64 compare_add_mask,
		  u64 swap_mask)
{
	struct ib_sge sge = sge_of(64, 8);
	struct ib_atomic_wr wr = {
		.wr = { .opcode = opcode,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IB_SEND_SIGNALED },
		.remote_addr = k.table.regions[R_CRC32C].addr + AT,
		.rkey = k.table.regions[R_CRC32C].rkey,
		.compare_add = compare_add,
		.swap = swap,
		.compare_add_mask = compare_add_mask,
		.swap_mask = swap_mask,
	};
	bool add =
		opcode == IB_WR_ATOMIC_FETCH_AND_ADD || opcode == IB_WR_MASKED_ATOMIC_FETCH_AND_ADD;

	CHECK(!post(&wr.wr));
	return expect(IB_WC_SUCCESS, add ? IB_WC_FETCH_ADD : IB_WC_COMP_SWAP);
}

static int test_atomics(void)
{
	u64 zero = 0, *old = (u64 *)(k.buf + 64);
	struct ib_sge by_value = { (uintptr_t)&zero, 8, 0 }, four = sge_of(64, 4);
	struct ib_atomic_wr bad = {
		.wr = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &four, .num_sge = 1 }
	};

	CHECK(!post_rdma(IB_WR_ATOMIC_WRITE, AT, &by_value, IB_SEND_INLINE));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_ATOMIC_WRITE));
	CHECK(!atomic(IB_WR_ATOMIC_FETCH_AND_ADD, 5, 99, 99, 99) && *old == 0);
	CHECK(!atomic(IB_WR_ATOMIC_CMP_AND_SWP, 5, 0x1234, 0, 0) && *old == 5);
	CHECK(!atomic(IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 0x34, 0xab00, 0xff, 0xff00) &&
	      *old == 0x1234);
	CHECK(!atomic(IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, 0xff, 0, 0x80, 0) && *old == 0xab34);
	CHECK(!atomic(IB_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 0, 0) && *old == 0xab33);
	CHECK(post(&bad.wr) == EINVAL);
	return 0;
}

/* Registers the region, whose memory is not persistent; the adapter checks the rights. */
static int reg(struct ib_mr *mr, int access, enum ib_wc_status status)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	CHECK(!post(&wr.wr));
	CHECK(!expect(status, IB_WC_REG_MR));
	return 0;
}

static int test_fast_registration(void)
{
	const int rights = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED };
	struct scatterlist sg;
	struct ib_mr *mr;
	int ret = -EIO;

	mr = ib_alloc_mr(k.pd, IB_MR_TYPE_MEM_REG, 4);
	CHECK(!IS_ERR(mr));
	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = k.dma;
	sg_dma_len(&sg) = BUF_SIZE;
	inv.ex.invalidate_rkey = mr->rkey;
	if (ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE) == 1 &&
	    !reg(mr, rights | IB_ACCESS_FLUSH_GLOBAL, IB_WC_SUCCESS) && !post(&inv) &&
	    !expect(IB_WC_SUCCESS, IB_WC_LOCAL_INV) &&
	    !reg(mr, rights | IB_ACCESS_FLUSH_PERSISTENT, IB_WC_MW_BIND_ERR))
		ret = 0;
	ib_dereg_mr(mr);
	return ret;
}

/* The longest page list; nothing accesses its memory.  The kernel may have no room for the list. */
static int test_longest_list(void)
{
	const u32 most = k.id->device->attrs.max_fast_reg_page_list_len;
	struct scatterlist sg;
	struct ib_mr *mr;
	int ret = -EIO;

	CHECK(most == 262144);
	mr = ib_alloc_mr(k.pd, IB_MR_TYPE_MEM_REG, most + 1);
	CHECK(PTR_ERR_OR_ZERO(mr) == -EINVAL);
	mr = ib_alloc_mr(k.pd, IB_MR_TYPE_MEM_REG, most);
	if (PTR_ERR_OR_ZERO(mr) == -ENOMEM) {
		pr_info("kmpe: no memory for a list of %u pages\n", most);
		return 0;
	}
	CHECK(!IS_ERR(mr));
	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = k.dma & PAGE_MASK;
	sg_dma_len(&sg) = most * PAGE_SIZE;
	if (ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE) == 1 && mr->length == most * PAGE_SIZE &&
	    !reg(mr, IB_ACCESS_LOCAL_WRITE, IB_WC_SUCCESS))
		ret = 0;
	ib_dereg_mr(mr);
	return ret;
}

static int make_queues(void)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 64 };
	struct ib_srq_init_attr srq_attr = { .attr = { .max_wr = 32, .max_sge = 1 } };
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 32, .max_send_sge = 1, .max_inline_data = 8 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
	};

	k.pd = ib_alloc_pd(k.id->device, 0);
	CHECK(!IS_ERR(k.pd));
	k.cq = ib_create_cq(k.id->device, NULL, NULL, NULL, &cq_attr);
	CHECK(!IS_ERR(k.cq));
	k.srq = ib_create_srq(k.pd, &srq_attr);
	CHECK(!IS_ERR(k.srq));
	attr.srq = k.srq;
	attr.send_cq = k.cq;
	attr.recv_cq = k.cq;
	CHECK(!rdma_create_qp(k.id, k.pd, &attr));
	k.dma = ib_dma_map_single(k.id->device, k.buf, BUF_SIZE, DMA_BIDIRECTIONAL);
	CHECK(!ib_dma_mapping_error(k.id->device, k.dma));
	return 0;
}

static int resize(u32 max_wr)
{
	struct ib_srq_attr attr = { .max_wr = max_wr };

	return -ib_modify_srq(k.srq, &attr, IB_SRQ_MAX_WR);
}

/* Only the oldest of the receives uses the beginning of the buffer. */
static int post_receives(int n)
{
	struct ib_recv_wr wr = { .num_sge = 1 };
	struct ib_sge sge = sge_of(0, sizeof(k.table));

	BUILD_BUG_ON(sizeof(k.table) > PAGE_SIZE);
	for (wr.sg_list = &sge; n; n--) {
		CHECK(!ib_post_srq_recv(k.srq, &wr, NULL));
		sge = sge_of(PAGE_SIZE, sizeof(k.table));
	}
	return 0;
}

/* Receives posted before the queue changes its size are still there afterwards, in order. */
static int test_sizes(void)
{
	struct ib_recv_wr wr = {};

	CHECK(!post_receives(20));
	CHECK(resize(16) == EINVAL);
	CHECK(resize(0) == EINVAL);
	CHECK(resize(INT_MAX) == EINVAL);
	CHECK(!resize(1000));
	CHECK(!resize(60));
	CHECK(!resize(32));
	while (!ib_post_srq_recv(k.srq, &wr, NULL))
		wr.wr_id++;
	CHECK(wr.wr_id == 12);
	return 0;
}

static int connect_to_server(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(MPE_PORT) };
	struct rdma_conn_param param = { .initiator_depth = 8, .responder_resources = 8 };

	CHECK(server && in4_pton(server, -1, (u8 *)&sin.sin_addr, -1, NULL));
	CHECK(!rdma_resolve_addr(k.id, NULL, (struct sockaddr *)&sin, WAIT_MS));
	CHECK(!wait_for(RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(!rdma_resolve_route(k.id, WAIT_MS));
	CHECK(!wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED));
	CHECK(!make_queues());
	CHECK(!test_sizes());
	CHECK(!rdma_connect(k.id, &param));
	CHECK(!wait_for(RDMA_CM_EVENT_ESTABLISHED));
	CHECK(!expect(IB_WC_SUCCESS, IB_WC_RECV));
	memcpy(&k.table, k.buf, sizeof(k.table));
	return 0;
}

static int destroy(void *arg)
{
	struct ib_qp *qp = arg;

	ib_destroy_qp(qp);
	complete(&k.step);
	return 0;
}

/* The caller's reference keeps the queue pair, whose number is free again. */
static int modify_destroyed(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int i;

	for (i = 0; i < WAIT_MS && qp->device->ops.iw_get_qp(qp->device, qp->qp_num); i++) {
		qp->device->ops.iw_rem_ref(qp);
		usleep_range(1000, 1500);
	}
	CHECK(i < WAIT_MS);
	/* The driver refuses; the adapter would not find the number, or another queue pair. */
	CHECK(ib_modify_qp(qp, &attr, IB_QP_STATE) == -EINVAL);
	return 0;
}

/* iw_cm still refers to a queue pair that is being destroyed. */
static int test_destroyed(void)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.send_cq = k.cq,
		.recv_cq = k.cq,
		.srq = k.srq,
		.qp_type = IB_QPT_RC,
	};
	struct task_struct *task;
	struct ib_qp *qp;
	int ret;

	qp = ib_create_qp(k.pd, &attr);
	CHECK(!IS_ERR(qp));
	CHECK(qp->device->ops.iw_get_qp(qp->device, qp->qp_num) == qp); /* takes a reference */
	task = kthread_run(destroy, qp, "kmpe");
	ret = IS_ERR(task) ? -EIO : modify_destroyed(qp);
	qp->device->ops.iw_rem_ref(qp);
	if (IS_ERR(task))
		ib_destroy_qp(qp);
	else
		wait_for_completion(&k.step);
	return ret;
}

static void clean_up(void)
{
	if (!IS_ERR_OR_NULL(k.id)) {
		rdma_disconnect(k.id);
		if (k.id->qp)
			rdma_destroy_qp(k.id);
		if (k.dma)
			ib_dma_unmap_single(k.id->device, k.dma, BUF_SIZE, DMA_BIDIRECTIONAL);
		if (!IS_ERR_OR_NULL(k.srq))
			ib_destroy_srq(k.srq);
		if (!IS_ERR_OR_NULL(k.cq))
			ib_destroy_cq(k.cq);
		if (!IS_ERR_OR_NULL(k.pd))
			ib_dealloc_pd(k.pd);
		rdma_destroy_id(k.id);
	}
	kfree(k.buf);
}

static int run(void)
{
	init_completion(&k.step);
	k.buf = kzalloc(BUF_SIZE, GFP_KERNEL);
	CHECK(k.buf);
	k.id = rdma_create_id(&init_net, cm_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	CHECK(!IS_ERR(k.id));
	CHECK(!connect_to_server());
	CHECK(!test_flush());
	CHECK(!test_flush_arguments());
	CHECK(!test_atomic_write());
	CHECK(!test_atomics());
	CHECK(!test_longest_list());
	CHECK(!test_destroyed());
	CHECK(!test_fast_registration()); /* ends in an error, so it is the last one */
	return 0;
}

static int __init kmpe_init(void)
{
	int ret = run();

	clean_up();
	pr_info("kmpe: %s\n", ret ? "failed" : "all is well");
	return ret;
}

static void __exit kmpe_exit(void)
{
}

module_init(kmpe_init);
module_exit(kmpe_exit);
MODULE_DESCRIPTION("Test of memory placement extensions by a kernel consumer");
MODULE_LICENSE("GPL");
