// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Registers and the admin queue.
 *
 * A command takes a slot (at most SGH_ADMIN_ENTRIES are in flight; more callers wait) and is copied
 * into the submission ring.  Its caller sleeps until the completion with the slot's cookie is
 * read: by the interrupt of vector 0, or by the caller itself, which polls now and then, so that a
 * lost interrupt costs time and not the machine.  ib_core calls everything that needs a command
 * from process context (posting and polling need none), so commands may sleep.
 *
 * A command without an answer means that the adapter is lost.  It is reset, so that memory it knew
 * about can be freed safely, and every command from then on fails with -EIO.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>

#include "cm.h"
#include "cq.h"
#include "dev.h"
#include "qp.h"
#include "trace.h"

#define SGH_RESET_US (5 * USEC_PER_SEC)
#define SGH_ADMIN_SECONDS 30
#define SGH_HEALTH_PERIOD (2 * HZ)
#define SGH_DESTROY_TRIES 2

static int sgh_errno(u8 status)
{
	static const int table[] = {
		[SG_OK] = 0,
		[SG_EOPCODE] = -EOPNOTSUPP,
		[SG_EINVAL] = -EINVAL,
		[SG_ENOENT] = -ENOENT,
		[SG_ENOMEM] = -ENOMEM,
		[SG_EBUSY] = -EBUSY,
		[SG_EFAULT] = -EFAULT,
		[SG_ESTATE] = -EINVAL,
		[SG_EADDR] = -EADDRNOTAVAIL,
		[SG_EPERM] = -EPERM,
		[SG_ENOTSUP] = -EOPNOTSUPP,
		/* rxe returns this if memory is registered as persistent and is not. */
		[SG_ENOTPMEM] = -EINVAL,
		[SG_ENOVERIFY] = -EACCES,
	};

	return status < ARRAY_SIZE(table) ? table[status] : -EIO;
}

static void sgh_write64(struct sgh_dev *dev, u32 reg, u64 value)
{
	sgh_write(dev, reg, lower_32_bits(value));
	sgh_write(dev, reg + 4, upper_32_bits(value));
}

/* The kernel's doorbell page; a write is ordered after earlier writes to queue memory. */
void sgh_doorbell(struct sgh_dev *dev, u32 bell, u32 number, u32 index)
{
	trace_sgh_doorbell(dev, bell, number, index);
	writeq((u64)index << 32 | number, dev->db + bell);
}

int sgh_hw_reset(struct sgh_dev *dev)
{
	struct device *device = &dev->pdev->dev;
	u32 ctrl, magic, version;

	magic = sgh_read(dev, SG_REG_MAGIC);
	if (magic != SG_MAGIC)
		return dev_err_probe(device, -ENODEV, "no adapter behind BAR 0 (magic 0x%08x)\n",
				     magic);
	version = sgh_read(dev, SG_REG_VERSION);
	if (version >> 16 != SG_VERSION_MAJOR)
		return dev_err_probe(device, -ENODEV,
				     "adapter has interface %u.%u, this driver knows %u.x\n",
				     version >> 16, version & 0xffff, SG_VERSION_MAJOR);

	sgh_write(dev, SG_REG_CTRL, SG_CTRL_RESET);
	if (read_poll_timeout(sgh_read, ctrl, !(ctrl & (SG_CTRL_RESET | SG_CTRL_ENABLE)), 100,
			      SGH_RESET_US, true, dev, SG_REG_CTRL))
		return dev_err_probe(device, -EIO, "adapter does not leave reset\n");
	return 0;
}

void sgh_hw_identity(struct sgh_dev *dev)
{
	u32 lo = sgh_read(dev, SG_REG_MAC_LO), hi = sgh_read(dev, SG_REG_MAC_HI);
	int i;

	for (i = 0; i < 4; i++)
		dev->mac[i] = lo >> (8 * i);
	dev->mac[4] = hi;
	dev->mac[5] = hi >> 8;
	dev->guid = (u64)sgh_read(dev, SG_REG_GUID_HI) << 32 | sgh_read(dev, SG_REG_GUID_LO);
	dev->link_speed = sgh_read(dev, SG_REG_LINK_SPEED);
	dev->link_mtu = sgh_read(dev, SG_REG_LINK_MTU);
	dev->num_vectors = sgh_read(dev, SG_REG_VECTORS);
}

static int sgh_test_dma(struct sgh_dev *dev, const u8 *buf, dma_addr_t dma, u32 cmd, u8 invert)
{
	u32 i, status;

	sgh_write64(dev, SG_REG_TEST_DMA_LO, dma);
	sgh_write(dev, SG_REG_TEST_DMA_LEN, PAGE_SIZE);
	sgh_write(dev, SG_REG_TEST_DMA_CMD, cmd);
	status = sgh_read(dev, SG_REG_TEST_DMA_STATUS);
	if (status)
		return dev_err_probe(&dev->pdev->dev, -EIO, "DMA test %u fails with status %u\n",
				     cmd, status);
	dma_rmb();
	for (i = 0; i < PAGE_SIZE; i++) {
		if (buf[i] != (u8)(i ^ invert))
			return dev_err_probe(&dev->pdev->dev, -EIO,
					     "DMA test %u: octet %u is 0x%02x\n", cmd, i, buf[i]);
	}
	return 0;
}

/* Register access and DMA, before anything depends on them. */
int sgh_hw_self_test(struct sgh_dev *dev)
{
	static const u32 patterns[] = { 0x00000000, 0xffffffff, 0x5aa5c33c };
	struct device *device = &dev->pdev->dev;
	dma_addr_t dma;
	u32 i, got;
	int ret;
	u8 *buf;

	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		sgh_write(dev, SG_REG_TEST_SCRATCH, patterns[i]);
		got = sgh_read(dev, SG_REG_TEST_SCRATCH);
		if (got != ~patterns[i])
			return dev_err_probe(device, -EIO, "scratch: wrote %#010x, read %#010x\n",
					     patterns[i], got);
	}

	buf = dma_alloc_coherent(device, PAGE_SIZE, &dma, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	ret = sgh_test_dma(dev, buf, dma, SG_TEST_DMA_FILL, 0);
	if (!ret)
		ret = sgh_test_dma(dev, buf, dma, SG_TEST_DMA_INVERT, 0xff);
	dma_free_coherent(device, PAGE_SIZE, buf, dma);
	return ret;
}

/* The rings are allocated; vector 0 is requested. */
int sgh_hw_enable(struct sgh_dev *dev)
{
	struct device *device = &dev->pdev->dev;
	u32 status;

	sgh_write64(dev, SG_REG_ASQ_BASE_LO, dev->admin.sq_dma);
	sgh_write64(dev, SG_REG_ACQ_BASE_LO, dev->admin.cq_dma);
	sgh_write(dev, SG_REG_ADMIN_SIZE, SGH_ADMIN_ENTRIES);
	sgh_write64(dev, SG_REG_AEQ_BASE_LO, dev->aeq.dma);
	sgh_write(dev, SG_REG_AEQ_SIZE, dev->aeq.entries);
	sgh_write(dev, SG_REG_CTRL, SG_CTRL_ENABLE);

	if (read_poll_timeout(sgh_read, status, status & (SG_STATUS_READY | SG_STATUS_FATAL), 100,
			      SGH_RESET_US, false, dev, SG_REG_STATUS))
		return dev_err_probe(device, -EIO, "adapter does not become ready\n");
	if (status & SG_STATUS_FATAL)
		return dev_err_probe(device, -EIO, "adapter refuses its setup (reason %u)\n",
				     sgh_read(dev, SG_REG_FATAL));
	sgh_write(dev, SG_REG_EQ_DB, SG_EQ_DB_ARM);
	return 0;
}

static void sgh_fatal_work(struct work_struct *work)
{
	struct sgh_dev *dev = container_of(work, struct sgh_dev, fatal_work);

	sgh_cm_abort_all(dev);
	sgh_cq_kick_all(dev);
	sgh_qp_last_wqe_all(dev);
	sgh_net_kick(dev);
	sgh_recover(dev);
}

static void sgh_health_work(struct work_struct *work)
{
	struct sgh_dev *dev = container_of(to_delayed_work(work), struct sgh_dev, health_work);
	u32 status = sgh_read(dev, SG_REG_STATUS);

	if (sgh_dead(dev))
		return;
	if (status == ~0u)
		sgh_fatal(dev, "it does not answer");
	else if (status & SG_STATUS_FATAL)
		sgh_fatal(dev, "it reports a fatal error");
	else if (!(status & SG_STATUS_READY))
		sgh_fatal(dev, "somebody else has reset it");
	if (sgh_dead(dev))
		return;
	sgh_eq_check_all(dev);
	schedule_delayed_work(&dev->health_work, SGH_HEALTH_PERIOD);
}

/* From now on a silent or failed adapter is detected even without commands. */
void sgh_health_start(struct sgh_dev *dev)
{
	schedule_delayed_work(&dev->health_work, SGH_HEALTH_PERIOD);
}

int sgh_admin_init(struct sgh_dev *dev)
{
	struct device *device = &dev->pdev->dev;
	struct sgh_admin *q = &dev->admin;
	int i;

	spin_lock_init(&q->lock);
	sema_init(&q->room, SGH_ADMIN_ENTRIES);
	for (i = 0; i < SGH_ADMIN_ENTRIES; i++)
		init_completion(&q->slots[i].done);
	q->pi = 0;
	q->ci = 0;
	INIT_WORK(&dev->fatal_work, sgh_fatal_work);
	INIT_DELAYED_WORK(&dev->health_work, sgh_health_work);

	q->sq = dma_alloc_coherent(device, SGH_ADMIN_ENTRIES * SG_ADMIN_CMD_SIZE, &q->sq_dma,
				   GFP_KERNEL);
	if (!q->sq)
		return -ENOMEM;
	q->cq = dma_alloc_coherent(device, SGH_ADMIN_ENTRIES * SG_ADMIN_RSP_SIZE, &q->cq_dma,
				   GFP_KERNEL);
	if (!q->cq) {
		dma_free_coherent(device, SGH_ADMIN_ENTRIES * SG_ADMIN_CMD_SIZE, q->sq, q->sq_dma);
		return -ENOMEM;
	}
	return 0;
}

void sgh_admin_fini(struct sgh_dev *dev)
{
	struct device *device = &dev->pdev->dev;
	struct sgh_admin *q = &dev->admin;

	dma_free_coherent(device, SGH_ADMIN_ENTRIES * SG_ADMIN_RSP_SIZE, q->cq, q->cq_dma);
	dma_free_coherent(device, SGH_ADMIN_ENTRIES * SG_ADMIN_CMD_SIZE, q->sq, q->sq_dma);
}

static bool sgh_admin_take(struct sgh_admin *q)
{
	struct sg_admin_rsp *rsp = &q->cq[sg_index_slot(q->ci, SGH_ADMIN_ENTRIES)];
	struct sgh_admin_slot *slot;
	u16 cookie;

	if (!sg_index_is_new(READ_ONCE(rsp->phase), q->ci, SGH_ADMIN_ENTRIES))
		return false;
	dma_rmb();
	q->ci++;
	cookie = le16_to_cpu(rsp->cookie);
	slot = cookie < SGH_ADMIN_ENTRIES ? &q->slots[cookie] : NULL;
	if (slot && slot->busy) {
		slot->rsp = *rsp;
		complete(&slot->done);
	}
	return true;
}

/* Any context.  Passes every new completion to its waiter. */
void sgh_admin_poll(struct sgh_dev *dev)
{
	struct sgh_admin *q = &dev->admin;
	unsigned long flags;
	bool any = false;

	spin_lock_irqsave(&q->lock, flags);
	if (!sgh_dead(dev)) {
		while (sgh_admin_take(q))
			any = true;
		if (any)
			sgh_write(dev, SG_REG_ADMIN_CI, q->ci);
	}
	spin_unlock_irqrestore(&q->lock, flags);
}

static void *sgh_admin_entry(const struct sgh_admin *q, u32 index)
{
	return q->sq + sg_index_slot(index, SGH_ADMIN_ENTRIES) * SG_ADMIN_CMD_SIZE;
}

/* Returns the slot, or -1 if the adapter is lost. */
static int sgh_admin_post(struct sgh_dev *dev, struct sg_admin_hdr *cmd, size_t len)
{
	struct sgh_admin *q = &dev->admin;
	unsigned long flags;
	int i = -1;
	u8 *entry;

	spin_lock_irqsave(&q->lock, flags);
	if (sgh_dead(dev))
		goto out;
	for (i = 0; q->slots[i].busy; i++)
		;
	q->slots[i].busy = true;
	q->slots[i].aborted = false;
	reinit_completion(&q->slots[i].done);
	cmd->cookie = cpu_to_le16(i);

	q->slots[i].at = q->pi;
	entry = sgh_admin_entry(q, q->pi);
	memcpy(entry, cmd, len);
	memset(entry + len, 0, SG_ADMIN_CMD_SIZE - len);
	q->pi++;
	trace_sgh_command_begin(dev, cmd->opcode, q->pi);
	dma_wmb();
	sgh_write(dev, SG_REG_ADMIN_DB, q->pi);
out:
	spin_unlock_irqrestore(&q->lock, flags);
	return i;
}

static void sgh_admin_wait(struct sgh_dev *dev, struct sgh_admin_slot *slot)
{
	unsigned long end = jiffies + SGH_ADMIN_SECONDS * HZ;

	for (;;) {
		if (wait_for_completion_timeout(&slot->done, HZ / 10))
			return;
		sgh_admin_poll(dev);
		if (try_wait_for_completion(&slot->done))
			return;
		if (time_after(jiffies, end)) {
			/* Completes this slot, and all others. */
			sgh_fatal(dev, "an admin command has no answer");
			wait_for_completion(&slot->done);
			return;
		}
	}
}

/* The object that a command is about: the one that it has made, or the one that it names. */
static u32 sgh_admin_subject(u8 opcode, const void *cmd, const struct sg_admin_rsp *rsp)
{
	switch (opcode) {
	case SG_ADMIN_QUERY_CAPS:
	case SG_ADMIN_QUERY_STATS:
	case SG_ADMIN_QUERY_QP_STATS:
	case SG_ADMIN_QUERY_MR_STATS:
	case SG_ADMIN_CM_DATA:
	case SG_ADMIN_FLASH_INFO:
		return le32_to_cpu(((const struct sg_cmd_query *)cmd)->id);
	case SG_ADMIN_ACCEPT:
	case SG_ADMIN_REJECT:
		return le32_to_cpu(((const struct sg_cmd_connect *)cmd)->conn);
	case SG_ADMIN_CREATE_PD:
	case SG_ADMIN_REG_MR:
	case SG_ADMIN_ALLOC_MR:
	case SG_ADMIN_ALLOC_MW:
	case SG_ADMIN_CREATE_CQ:
	case SG_ADMIN_CREATE_QP:
	case SG_ADMIN_CREATE_SRQ:
	case SG_ADMIN_LISTEN:
	case SG_ADMIN_CONNECT:
		return le32_to_cpu(rsp->id);
	case SG_ADMIN_CREATE_EQ:
		return le32_to_cpu(((const struct sg_cmd_create_eq *)cmd)->eqn);
	case SG_ADMIN_NOP:
	case SG_ADMIN_SET_ADDR:
	case SG_ADMIN_SET_PORT:
	case SG_ADMIN_FLASH_READ:
	case SG_ADMIN_FLASH_WRITE:
	case SG_ADMIN_FLASH_COMMIT:
		return 0;
	default: /* the others begin with it */
		return le32_to_cpu(((const struct sg_cmd_id *)cmd)->id);
	}
}

/*
 * Executes one command.  cmd starts with struct sg_admin_hdr, whose fields are filled in here; len
 * is at most SG_ADMIN_CMD_SIZE.  rsp may be NULL.  May sleep.  Returns 0 or a negative errno, -EIO
 * once the adapter is lost.
 */
int sgh_admin(struct sgh_dev *dev, u8 opcode, void *cmd, size_t len, struct sg_admin_rsp *rsp)
{
	struct sgh_admin *q = &dev->admin;
	struct sg_admin_hdr *hdr = cmd;
	struct sgh_admin_slot *slot;
	unsigned long flags;
	u64 begin;
	int i, ret;

	might_sleep();
	hdr->opcode = opcode;
	ret = sgh_fail_admin(dev, opcode);
	if (ret)
		return ret;
	down(&q->room);
	begin = ktime_get_ns();
	i = sgh_admin_post(dev, hdr, len);
	if (i < 0) {
		up(&q->room);
		return -EIO;
	}
	slot = &q->slots[i];
	sgh_admin_wait(dev, slot);

	spin_lock_irqsave(&q->lock, flags);
	if (slot->aborted) {
		ret = -EIO;
	} else {
		ret = sgh_errno(slot->rsp.status);
		if (rsp)
			*rsp = slot->rsp;
	}
	trace_sgh_command_end(dev, opcode, slot->at + 1,
			      slot->aborted ? 0 : sgh_admin_subject(opcode, cmd, &slot->rsp),
			      slot->aborted ? -1 : slot->rsp.status, ktime_get_ns() - begin);
	/*
	 * The entry may have the key of a hash: erase it.  If another command has overwritten the
	 * entry, the key is gone; that of an aborted command is freed with the ring.
	 */
	if (opcode == SG_ADMIN_REG_MR && !slot->aborted && q->pi - slot->at <= SGH_ADMIN_ENTRIES)
		memzero_explicit(sgh_admin_entry(q, slot->at), SG_ADMIN_CMD_SIZE);
	slot->busy = false;
	spin_unlock_irqrestore(&q->lock, flags);
	up(&q->room);

	if (ret)
		dev_dbg(&dev->pdev->dev, "admin command 0x%02x: %d\n", opcode, ret);
	return ret;
}

int sgh_admin_id(struct sgh_dev *dev, u8 opcode, u32 id, struct sg_admin_rsp *rsp)
{
	struct sg_cmd_id cmd = { .id = cpu_to_le32(id) };

	return sgh_admin(dev, opcode, &cmd, sizeof(cmd), rsp);
}

/*
 * A lost adapter was reset and holds no objects, so destruction has succeeded.  Kernel consumers
 * ignore a failure, and the object would stay for ever, so what should not fail is tried again.
 */
int sgh_admin_destroy(struct sgh_dev *dev, u8 opcode, u32 id)
{
	int ret, i;

	for (i = 0; i < SGH_DESTROY_TRIES; i++) {
		ret = sgh_admin_id(dev, opcode, id, NULL);
		if (!ret || ret == -EBUSY || sgh_dead(dev))
			break;
	}
	if (ret && sgh_dead(dev))
		return 0;
	/* A process can cause "busy" itself. */
	if (ret && ret != -EBUSY)
		dev_warn_ratelimited(&dev->pdev->dev, "admin command 0x%02x for object 0x%x: %d\n",
				     opcode, id, ret);
	return ret;
}

static struct xarray *sgh_table(struct sgh_dev *dev, const struct sgh_kind *kind)
{
	return (struct xarray *)((u8 *)dev + kind->table);
}

/*
 * Creates an object and enters it in its table.  *id is set before others can find it there.  After
 * a failure the adapter does not have the object's memory: an adapter that keeps it is lost.
 */
int sgh_object_create(struct sgh_dev *dev, const struct sgh_kind *kind, void *cmd, size_t len,
		      void *object, u32 *id)
{
	struct sg_admin_rsp rsp;
	int ret;

	mutex_lock(&dev->id_mutex);
	ret = sgh_admin(dev, kind->create, cmd, len, &rsp);
	if (ret)
		goto out;
	*id = le32_to_cpu(rsp.id);
	ret = xa_err(xa_store(sgh_table(dev, kind), *id, object, GFP_KERNEL));
	if (ret && sgh_admin_destroy(dev, kind->destroy, *id))
		sgh_fatal(dev, kind->kept);
out:
	mutex_unlock(&dev->id_mutex);
	return ret;
}

/* Destroys an object and takes it out of its table; after a failure it stays in both. */
int sgh_object_destroy(struct sgh_dev *dev, const struct sgh_kind *kind, u32 id)
{
	int ret;

	mutex_lock(&dev->id_mutex);
	ret = sgh_admin_destroy(dev, kind->destroy, id);
	if (!ret)
		xa_erase(sgh_table(dev, kind), id);
	mutex_unlock(&dev->id_mutex);
	return ret;
}

/* A command whose answer of up to len octets is copied to out. */
int sgh_admin_query(struct sgh_dev *dev, u8 opcode, u32 id, void *out, size_t len)
{
	struct device *device = &dev->pdev->dev;
	struct sg_cmd_query cmd = {};
	dma_addr_t dma;
	void *buf;
	int ret;

	buf = dma_alloc_coherent(device, len, &dma, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	cmd.out_addr = cpu_to_le64(dma);
	cmd.out_len = cpu_to_le32(len);
	cmd.id = cpu_to_le32(id);
	ret = sgh_admin(dev, opcode, &cmd, sizeof(cmd), NULL);
	if (!ret)
		memcpy(out, buf, len);
	dma_free_coherent(device, len, buf, dma);
	return ret;
}

int sgh_query_caps(struct sgh_dev *dev)
{
	struct sgh_caps *c = &dev->caps;
	struct sg_caps raw;
	int ret;

	ret = sgh_admin_query(dev, SG_ADMIN_QUERY_CAPS, 0, &raw, sizeof(raw));
	if (ret)
		return dev_err_probe(&dev->pdev->dev, ret, "capabilities cannot be read\n");

	c->features = le32_to_cpu(raw.features);
	c->hash_mask = le32_to_cpu(raw.hash_mask);
	c->max_pd = le32_to_cpu(raw.max_pd);
	c->max_mr = le32_to_cpu(raw.max_mr);
	c->max_cq = le32_to_cpu(raw.max_cq);
	/* Rings have 2^n entries. */
	c->max_cqe = rounddown_pow_of_two(max_t(u32, le32_to_cpu(raw.max_cqe), 1));
	c->max_qp = le32_to_cpu(raw.max_qp);
	c->max_qp_wr = rounddown_pow_of_two(max_t(u32, le32_to_cpu(raw.max_qp_wr), 1));
	c->max_sq_sge = min_t(u32, le32_to_cpu(raw.max_sq_sge), SG_SQ_MAX_SGE);
	c->max_rq_sge = min_t(u32, le32_to_cpu(raw.max_rq_sge), SG_RQ_MAX_SGE);
	c->max_inline = min_t(u32, le32_to_cpu(raw.max_inline), SG_MAX_INLINE);
	c->max_ird = le32_to_cpu(raw.max_ird);
	c->max_ord = le32_to_cpu(raw.max_ord);
	c->max_fr_pages = le32_to_cpu(raw.max_fr_pages);
	c->num_uar = min_t(u32, le32_to_cpu(raw.num_uar),
			   pci_resource_len(dev->pdev, SG_BAR_DOORBELL) / SG_UAR_SIZE);
	c->num_eq = min_t(u32, le32_to_cpu(raw.num_eq), SG_EQ_COUNT);
	c->max_private_data = min_t(u32, le32_to_cpu(raw.max_private_data), SG_PRIVATE_DATA_MAX);
	c->max_srq = le32_to_cpu(raw.max_srq);
	c->max_srq_wr = rounddown_pow_of_two(max_t(u32, le32_to_cpu(raw.max_srq_wr), 1));
	c->max_srq_sge = min_t(u32, le32_to_cpu(raw.max_srq_sge), SG_RQ_MAX_SGE);
	c->max_mw = le32_to_cpu(raw.max_mw);
	c->wire = le32_to_cpu(raw.wire);
	c->max_mr_size = le64_to_cpu(raw.max_mr_size);
	c->page_size_mask = le64_to_cpu(raw.page_size_mask);
	memcpy(c->fw_version, raw.fw_version, sizeof(raw.fw_version));
	if (!(c->features & SG_FEATURE_FAST_REG))
		c->max_fr_pages = 0;
	return 0;
}

/*
 * The adapter is lost (or, without a reason, must be silenced).  Any context, once: resets it, so
 * that it no longer accesses memory, fails the commands in progress, and leaves to fatal_work what
 * needs process context: connections end, kernel queues are flushed, consumers are notified.
 */
void sgh_fatal(struct sgh_dev *dev, const char *why)
{
	struct sgh_admin *q = &dev->admin;
	u32 status, reason, aborted = 0;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&q->lock, flags);
	if (sgh_dead(dev)) {
		spin_unlock_irqrestore(&q->lock, flags);
		return;
	}
	status = sgh_read(dev, SG_REG_STATUS);
	reason = sgh_read(dev, SG_REG_FATAL);
	sgh_write(dev, SG_REG_CTRL, SG_CTRL_RESET);
	sgh_read(dev, SG_REG_CTRL); /* the write has arrived */
	/* Code that sees this bit frees memory, so the reset must be complete before. */
	smp_mb__before_atomic();
	set_bit(SGH_DEAD, &dev->flags);
	for (i = 0; i < SGH_ADMIN_ENTRIES; i++) {
		if (q->slots[i].busy) {
			q->slots[i].aborted = true;
			aborted++;
			complete(&q->slots[i].done);
		}
	}
	spin_unlock_irqrestore(&q->lock, flags);
	if (!why)
		return;
	sgh_health_lost(dev, why, status, reason, aborted);
	dev_err(&dev->pdev->dev, "adapter is lost: %s (status 0x%x, reason %u)\n", why, status,
		reason);
	queue_work(dev->event_wq, &dev->fatal_work);
}
