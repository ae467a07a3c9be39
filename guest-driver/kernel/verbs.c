// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The RDMA device as ib_core sees it: operations table, limits, port, user contexts, protection
 * domains.  netdev.c registers it once the network interface is known, because the address
 * resolution of rdma_cm assumes that there is an interface.
 */
#include <linux/etherdevice.h>
#include <linux/rcupdate.h>

#include "cm.h"
#include "compat_ops.h"
#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "rendezvous.h"
#include "srq.h"
#include "stats.h"

struct sgh_mmap_entry {
	struct rdma_user_mmap_entry rdma;
	phys_addr_t page;
};

/* "major.minor.patch" in three fields of 16 bits. */
static u64 sgh_fw_number(const char *text)
{
	u16 major = 0, minor = 0, patch = 0;

	if (sscanf(text, "%hu.%hu.%hu", &major, &minor, &patch) < 1)
		return 0;
	return (u64)major << 32 | (u32)minor << 16 | patch;
}

/*
 * The adapter's features as device capabilities of verbs.  They describe requests to a peer:
 * flush to persistence is possible whether or not this machine has such memory itself.
 */
static u64 sgh_device_caps(const struct sgh_dev *dev)
{
	static const struct {
		u32 feature;
		u64 cap;
	} map[] = {
		{ SG_FEATURE_FLUSH, IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_FLUSH_PERSISTENT },
		{ SG_FEATURE_ATOMIC_WRITE, IB_DEVICE_ATOMIC_WRITE },
		{ SG_FEATURE_MW, IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B },
		{ SG_FEATURE_SRQ_RESIZE, IB_DEVICE_SRQ_RESIZE },
	};
	u64 caps = 0;
	int i;

	/*
	 * One bit for all three: fast registration, its end by LOCAL_INV, Send with Invalidate.
	 * Kernel consumers have the last one in any case (sgh_send_op_of()); the provider takes
	 * the bit away if the wire has no such message.
	 */
	if (dev->caps.max_fr_pages)
		caps |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	for (i = 0; i < ARRAY_SIZE(map); i++) {
		if (sgh_has(dev, map[i].feature))
			caps |= map[i].cap;
	}
	return caps;
}

/* For the log: iWARP is what people expect. */
static const char *sgh_wire_note(const struct sgh_dev *dev)
{
	switch (dev->caps.wire) {
	case SG_WIRE_ID_IWARP:
		return "";
	case SG_WIRE_ID_RDMA_TCP_2000:
		return ", wire RDMA/TCP of 2000";
	default:
		return ", a wire that this driver does not know";
	}
}

static u32 sgh_odp_caps(const struct sgh_dev *dev)
{
	return IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE |
	       IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV |
	       (sgh_has(dev, SG_FEATURE_FLUSH) ? SGH_ODP_FLUSH : 0) |
	       (sgh_has(dev, SG_FEATURE_ATOMIC_WRITE) ? SGH_ODP_ATOMIC_WRITE : 0);
}

static int sgh_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	struct sgh_dev *dev = to_sgh(ibdev);
	const struct sgh_caps *c = &dev->caps;

	/* Linux 7 asks without udata for itself, earlier kernels with an empty one. */
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = sgh_fw_number(c->fw_version);
	attr->sys_image_guid = ibdev->node_guid;
	attr->max_mr_size = c->max_mr_size;
	attr->page_size_cap = c->page_size_mask;
	attr->vendor_id = dev->pdev->vendor;
	attr->vendor_part_id = dev->pdev->device;
	attr->hw_ver = dev->pdev->revision;
	attr->max_qp = c->max_qp;
	attr->max_qp_wr = c->max_qp_wr;
	attr->device_cap_flags = sgh_device_caps(dev);
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	if (SGH_HAS_ODP && sgh_has(dev, SG_FEATURE_ODP)) {
		attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
		attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
		attr->odp_caps.per_transport_caps.rc_odp_caps = sgh_odp_caps(dev);
	}
	attr->max_send_sge = c->max_sq_sge;
	attr->max_recv_sge = c->max_rq_sge;
	attr->max_sge_rd = c->max_sq_sge;
	attr->max_cq = c->max_cq;
	attr->max_cqe = c->max_cqe;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	attr->max_mr = c->max_mr;
	attr->max_pd = c->max_pd;
	if (sgh_has(dev, SG_FEATURE_SRQ)) {
		attr->max_srq = c->max_srq;
		attr->max_srq_wr = c->max_srq_wr;
		attr->max_srq_sge = c->max_srq_sge;
	}
	/* Consumers pass these to rdma_cm, which counts in eight bits. */
	attr->max_qp_rd_atom = min_t(u32, c->max_ird, U8_MAX);
	attr->max_qp_init_rd_atom = min_t(u32, c->max_ord, U8_MAX);
	attr->max_res_rd_atom = min_t(u64, (u64)c->max_qp * attr->max_qp_rd_atom, INT_MAX);
	/*
	 * Atomic to each other, to those of other adapters of the machine and to locked
	 * instructions of its CPUs, but not to what its other devices do, as GLOB would say.
	 */
	attr->atomic_cap = sgh_has(dev, SG_FEATURE_ATOMICS) ? IB_ATOMIC_HCA : IB_ATOMIC_NONE;
	attr->masked_atomic_cap = attr->atomic_cap;
	if (sgh_has(dev, SG_FEATURE_MW))
		attr->max_mw = c->max_mw;
	attr->max_fast_reg_page_list_len = c->max_fr_pages;
	attr->timestamp_mask = U64_MAX;	     /* of a completion: ns in 64 bits */
	attr->hca_core_clock = USEC_PER_SEC; /* in kHz */
	return 0;
}

/* The nearest nominal speed of InfiniBand that is not faster. */
static void sgh_port_speed(u32 mbit, struct ib_port_attr *attr)
{
	static const struct {
		u32 mbit;
		u8 width;
		u16 speed;
	} speeds[] = {
		{ 200000, IB_WIDTH_4X, IB_SPEED_HDR },	{ 100000, IB_WIDTH_4X, IB_SPEED_EDR },
		{ 40000, IB_WIDTH_4X, IB_SPEED_FDR10 }, { 25000, IB_WIDTH_1X, IB_SPEED_EDR },
		{ 10000, IB_WIDTH_1X, IB_SPEED_FDR10 }, { 0, IB_WIDTH_1X, IB_SPEED_SDR },
	};
	int i = 0;

	while (mbit < speeds[i].mbit)
		i++;
	attr->active_width = speeds[i].width;
	attr->active_speed = speeds[i].speed;
}

static int sgh_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct sgh_dev *dev = to_sgh(ibdev);

	if (port != 1)
		return -EINVAL;
	attr->gid_tbl_len = SGH_GIDS;
	attr->max_msg_sz = 0x7fffffff;
	attr->port_cap_flags = IB_PORT_CM_SUP | IB_PORT_DEVICE_MGMT_SUP;
	attr->max_mtu = ib_mtu_int_to_enum(dev->link_mtu);
	attr->active_mtu = ib_mtu_int_to_enum(READ_ONCE(dev->mtu));
	attr->phys_mtu = READ_ONCE(dev->mtu);
	sgh_port_speed(dev->link_speed, attr);
	if (READ_ONCE(dev->port_active)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	} else {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	}
	return 0;
}

static int sgh_get_port_immutable(struct ib_device *ibdev, u32 port,
				  struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = SGH_GIDS;
	immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

static void sgh_get_fw_str(struct ib_device *ibdev, char *str)
{
	strscpy(str, to_sgh(ibdev)->caps.fw_version, IB_FW_VERSION_NAME_MAX);
}

/*
 * User contexts: a doorbell page each.  A page of the kernel may be larger than that; then a
 * context gets all doorbell pages in its page, and uses the first.  Page 0 is the kernel's.
 */
#define SGH_UARS_IN_PAGE ((u32)(PAGE_SIZE / SG_UAR_SIZE))

static int sgh_alloc_uar(struct sgh_dev *dev, struct sgh_ucontext *ctx)
{
	u32 pages = dev->caps.num_uar / SGH_UARS_IN_PAGE;
	int ret;

	if (pages < 2)
		return -ENOMEM;
	ret = ida_alloc_range(&dev->uars, 1, pages - 1, GFP_KERNEL);
	if (ret < 0)
		return ret == -ENOSPC ? -ENOMEM : ret;
	ctx->uar = ret * SGH_UARS_IN_PAGE;
	return 0;
}

static void sgh_free_uar(struct sgh_dev *dev, struct sgh_ucontext *ctx)
{
	ida_free(&dev->uars, ctx->uar / SGH_UARS_IN_PAGE);
}

static int sgh_map_uar(struct sgh_dev *dev, struct sgh_ucontext *ctx)
{
	struct sgh_mmap_entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	int ret;

	if (!entry)
		return -ENOMEM;
	entry->page = pci_resource_start(dev->pdev, SG_BAR_DOORBELL) +
		      (phys_addr_t)ctx->uar * SG_UAR_SIZE;
	ret = rdma_user_mmap_entry_insert(&ctx->ibucontext, &entry->rdma, PAGE_SIZE);
	if (ret) {
		kfree(entry);
		return ret;
	}
	ctx->db_entry = &entry->rdma;
	return 0;
}

static int sgh_alloc_ucontext(struct ib_ucontext *ibctx, struct ib_udata *udata)
{
	struct sgh_ucontext *ctx = container_of(ibctx, struct sgh_ucontext, ibucontext);
	struct sgh_dev *dev = to_sgh(ibctx->device);
	struct sg_abi_alloc_ucontext_resp resp = {};
	int ret;

	if (sgh_dead(dev))
		return -EIO;
	ret = sgh_alloc_uar(dev, ctx);
	if (ret)
		return ret;
	ret = sgh_map_uar(dev, ctx);
	if (ret)
		goto err_uar;

	resp.db_mmap_key = rdma_user_mmap_get_offset(ctx->db_entry);
	resp.uar = ctx->uar;
	resp.max_inline = dev->caps.max_inline;
	resp.max_sq_sge = dev->caps.max_sq_sge;
	resp.max_rq_sge = dev->caps.max_rq_sge;
	resp.features = dev->caps.features;
	resp.hash_mask = dev->caps.hash_mask;
	ret = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (ret)
		goto err_map;
	return 0;

err_map:
	rdma_user_mmap_entry_remove(ctx->db_entry);
err_uar:
	sgh_free_uar(dev, ctx);
	return ret;
}

static void sgh_dealloc_ucontext(struct ib_ucontext *ibctx)
{
	struct sgh_ucontext *ctx = container_of(ibctx, struct sgh_ucontext, ibucontext);

	rdma_user_mmap_entry_remove(ctx->db_entry);
	sgh_free_uar(to_sgh(ibctx->device), ctx);
}

/* ib_core removes the mappings; the presence of this operation says that the driver supports it. */
static void sgh_disassociate_ucontext(struct ib_ucontext *ibctx)
{
}

static int sgh_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma;
	struct sgh_mmap_entry *entry;
	int ret;

	rdma = rdma_user_mmap_entry_get(ibctx, vma);
	if (!rdma)
		return -EINVAL;
	entry = container_of(rdma, struct sgh_mmap_entry, rdma);
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		ret = -EINVAL;
	else
		ret = rdma_user_mmap_io(ibctx, vma, PHYS_PFN(entry->page), PAGE_SIZE,
					pgprot_noncached(vma->vm_page_prot), rdma);
	rdma_user_mmap_entry_put(rdma);
	return ret;
}

static void sgh_mmap_free(struct rdma_user_mmap_entry *rdma)
{
	kfree(container_of(rdma, struct sgh_mmap_entry, rdma));
}

static int sgh_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct sgh_pd *pd = container_of(ibpd, struct sgh_pd, ibpd);
	struct sgh_dev *dev = to_sgh(ibpd->device);
	struct sg_abi_alloc_pd_resp resp = {};
	struct sg_admin_hdr cmd = {};
	struct sg_admin_rsp rsp;
	int ret;

	ret = sgh_admin(dev, SG_ADMIN_CREATE_PD, &cmd, sizeof(cmd), &rsp);
	if (ret)
		return ret;
	pd->pdn = le32_to_cpu(rsp.id);
	if (udata) {
		resp.pdn = pd->pdn;
		ret = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
		if (ret)
			sgh_admin_destroy(dev, SG_ADMIN_DESTROY_PD, pd->pdn);
	}
	return ret;
}

static int sgh_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return sgh_admin_destroy(to_sgh(ibpd->device), SG_ADMIN_DESTROY_PD, to_sgh_pd(ibpd)->pdn);
}

static const struct ib_device_ops sgh_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = SG_ABI_VERSION,

	.advise_mr = sgh_advise_mr,
	.alloc_hw_port_stats = sgh_alloc_hw_port_stats,
	.alloc_mr = sgh_alloc_mr,
	.alloc_mw = sgh_alloc_mw,
	.alloc_pd = sgh_alloc_pd,
	.alloc_ucontext = sgh_alloc_ucontext,
	.counter_alloc_stats = sgh_counter_alloc_stats,
	.counter_dealloc = sgh_counter_dealloc,
	.counter_update_stats = sgh_counter_update_stats,
	.create_cq = sgh_create_cq,
	.create_qp = sgh_create_qp,
	.create_srq = sgh_create_srq,
	.dealloc_mw = sgh_dealloc_mw,
	.dealloc_pd = sgh_dealloc_pd,
	.dealloc_ucontext = sgh_dealloc_ucontext,
	.dereg_mr = sgh_dereg_mr,
	.destroy_cq = sgh_destroy_cq,
	.destroy_qp = sgh_destroy_qp,
	.destroy_srq = sgh_destroy_srq,
	.disassociate_ucontext = sgh_disassociate_ucontext,
	.fill_res_cm_id_entry = sgh_fill_res_cm_id,
	.fill_res_cq_entry = sgh_fill_res_cq,
	.fill_res_cq_entry_raw = sgh_fill_res_cq_raw,
	.fill_res_mr_entry = sgh_fill_res_mr,
	.fill_res_mr_entry_raw = sgh_fill_res_mr_raw,
	.fill_res_qp_entry = sgh_fill_res_qp,
	.fill_res_qp_entry_raw = sgh_fill_res_qp_raw,
	.fill_stat_mr_entry = sgh_fill_stat_mr,
	.get_dev_fw_str = sgh_get_fw_str,
	.get_dma_mr = sgh_get_dma_mr,
	.get_hw_stats = sgh_get_hw_stats,
	.get_port_immutable = sgh_get_port_immutable,
	.iw_accept = sgh_iw_accept,
	.iw_add_ref = sgh_iw_add_ref,
	.iw_connect = sgh_iw_connect,
	.iw_create_listen = sgh_iw_create_listen,
	.iw_destroy_listen = sgh_iw_destroy_listen,
	.iw_get_qp = sgh_iw_get_qp,
	.iw_reject = sgh_iw_reject,
	.iw_rem_ref = sgh_iw_rem_ref,
	.map_mr_sg = sgh_map_mr_sg,
	.mmap = sgh_mmap,
	.mmap_free = sgh_mmap_free,
	.modify_cq = sgh_modify_cq,
	.modify_qp = sgh_modify_qp,
	.modify_srq = sgh_modify_srq,
	.poll_cq = sgh_poll_cq,
	.post_recv = sgh_post_recv,
	.post_send = sgh_post_send,
	.post_srq_recv = sgh_post_srq_recv,
	.query_device = sgh_query_device,
	.query_gid = sgh_query_gid,
	.query_port = sgh_query_port,
	.query_qp = sgh_query_qp,
	.query_srq = sgh_query_srq,
	.req_notify_cq = sgh_req_notify_cq,
	.rereg_user_mr = sgh_rereg_user_mr,

	INIT_RDMA_OBJ_SIZE(ib_cq, sgh_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, sgh_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, sgh_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, sgh_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, sgh_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, sgh_ucontext, ibucontext),
};

int sgh_ib_register(struct sgh_dev *dev)
{
	struct ib_device *ibdev;
	struct sgh_ibdev *ib;
	int ret;

	ib = ib_alloc_device(sgh_ibdev, ibdev);
	if (!ib)
		return -ENOMEM;
	ib->dev = dev;
	ibdev = &ib->ibdev;
	ibdev->node_type = RDMA_NODE_RNIC;
	ibdev->node_guid = cpu_to_be64(dev->guid);
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->num_ceqs;
	ibdev->local_dma_lkey = 0;
	ibdev->iw_driver_flags = IW_F_NO_PORT_MAP;
	strscpy(ibdev->iw_ifname, dev->netdev->name, sizeof(ibdev->iw_ifname));
	strscpy(ibdev->node_desc, "Staghorn", sizeof(ibdev->node_desc));
	ibdev->dev.parent = &dev->pdev->dev; /* user space finds its provider by the PCI ids */
	ib_set_device_ops(ibdev, &sgh_ops);
	ib_set_device_ops(ibdev, &sgh_version_ops);

	ret = ib_device_set_netdev(ibdev, dev->netdev, 1);
	if (ret)
		goto err;
	ret = ib_register_device(ibdev, SGH_NAME "%d", &dev->pdev->dev);
	if (ret)
		goto err;
	dev->ib = ib;
	ibdev_info(ibdev, "on %s, firmware %s%s\n", netdev_name(dev->netdev), dev->caps.fw_version,
		   sgh_wire_note(dev));
	return 0;

err:
	ib_dealloc_device(ibdev);
	return dev_err_probe(&dev->pdev->dev, ret, "RDMA device cannot be registered\n");
}

/*
 * rdma_cm drops an identifier's device first and its entry of the GID table right after
 * (cma_release_dev()); unregistration waits only for the former.  A task between the two would then
 * queue a work of ib_core that uses the table of a freed device.  As a task does not sleep
 * voluntarily between the two, a grace period of RCU tasks waits for all of them.
 */
static void sgh_await_gid_entries(void)
{
	synchronize_rcu_tasks();
	flush_workqueue(ib_wq);
}

/* Returns when no consumer and no process uses the device any more. */
void sgh_ib_unregister(struct sgh_dev *dev)
{
	struct sgh_ibdev *ib = dev->ib;

	if (!ib)
		return;
	ib_unregister_device(&ib->ibdev);
	/* Queue pairs are freed before the last events of their connections reach iw_cm. */
	flush_workqueue(dev->event_wq);
	sgh_cm_drain(dev);
	sgh_rdv_unlisten(dev);
	dev->ib = NULL;
	sgh_await_gid_entries();
	ib_dealloc_device(&ib->ibdev);
}

static void sgh_ib_event(struct sgh_dev *dev, enum ib_event_type type)
{
	struct ib_event event = { .event = type };

	if (!dev->ib)
		return;
	event.device = &dev->ib->ibdev;
	event.element.port_num = 1;
	ib_dispatch_event(&event);
}

/* Called only by the work of netdev.c, which also registers and unregisters. */
void sgh_ib_port_event(struct sgh_dev *dev)
{
	sgh_ib_event(dev, dev->port_active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

/*
 * ib_core reads the table again, in a work of its own, but leaves the event about it to RoCE's GID
 * management.  Here the driver has to send it, when the new table can be seen.
 */
void sgh_ib_gid_event(struct sgh_dev *dev)
{
	struct ib_event event = { .event = IB_EVENT_GID_CHANGE };
	struct ib_event_handler *handler;
	struct ib_device *ibdev;

	if (!dev->ib)
		return;
	sgh_ib_event(dev, IB_EVENT_GID_CHANGE);
	flush_workqueue(ib_wq);
	ibdev = &dev->ib->ibdev;
	event.device = ibdev;
	event.element.port_num = 1;
	down_read(&ibdev->event_handler_rwsem);
	list_for_each_entry(handler, &ibdev->event_handler_list, list)
		handler->handler(handler, &event);
	up_read(&ibdev->event_handler_rwsem);
}

void sgh_ib_fatal_event(struct sgh_dev *dev)
{
	sgh_ib_event(dev, IB_EVENT_DEVICE_FATAL);
}
