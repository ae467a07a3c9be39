// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues (io.h, struct sg_cqe; docs/manual/queues.md).
 *
 * The device writes entries into a ring of ours; the phase bit in the last word of an entry marks
 * it as new.  We read them in order and, after each batch, write our progress to the control
 * record behind the ring: the slots before that index belong to the device again.  So no part of an
 * entry may be read after the record has moved past it.  A poll makes no system call and accesses
 * no register.
 *
 * An entry also frees slots of a work queue: its wr_index completes all entries up to it.  For
 * this the queue pair is looked up by number.  Entries of a queue pair that was destroyed before
 * they were polled have SGP_QPN_NONE (sgp_cq_purge) and are skipped.
 *
 * Resizing: the device switches to the new ring at once, so unread entries of the old ring are
 * copied aside, and read before the new ring.  All of this is under the queue's lock; only arming
 * takes no lock, and may give the device an index of the old ring.  So resizing repeats the last
 * arming.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include <ccan/minmax.h>
#include <util/udma_barrier.h>

#include "provider.h"
#include "doorbell.h"
#include "wc.h"
#include "wqe.h"

enum sgp_cq_limits {
	SGP_CQ_SIZE_MIN = 32,	   /* with the record, fits in one page */
	SGP_CQ_SIZE_MAX = 1 << 24, /* bounds our own arithmetic; the kernel has the real limit */
};

/* In sgp_cq.armed: a bit that is neither number nor SOLICITED. */
#define SGP_CQ_ARMED 0x40000000u

static inline _Atomic(uint32_t) *record_word(struct sgp_cq *cq)
{
	return (_Atomic(uint32_t) *)(void *)&cq->record->consumer_index;
}

/* The index up to which the device knows that we have read. */
static inline uint32_t published(struct sgp_cq *cq)
{
	return atomic_load_explicit(&cq->recorded, memory_order_relaxed);
}

/* Returns the slots of everything taken so far to the device. */
static inline void publish(struct sgp_cq *cq)
{
	if (unlikely(cq->backlog.entries && cq->backlog.pos == cq->backlog.num)) {
		free(cq->backlog.entries);
		cq->backlog.entries = NULL;
	}
	if (cq->ci == published(cq))
		return;
	/*
	 * The entries must be read before the device may reuse them: loads before a store, even if
	 * a device is outside of the processors' coherence domain.
	 */
	udma_from_device_barrier();
	atomic_store_explicit(record_word(cq), (__force uint32_t)htole32(cq->ci),
			      memory_order_release);
	atomic_store_explicit(&cq->recorded, cq->ci, memory_order_relaxed);
}

/* Frees slots of a work queue for a completion. */
static inline void release_slots(struct sgp_qp *qp, uint64_t tail)
{
	if (!(sgp_cqe_flags(tail) & SG_CQE_RECV))
		sgp_ring_release(&qp->sq, sgp_cqe_wr_index(tail));
	else if (!qp->srq)
		sgp_ring_release(&qp->rq.ring, sgp_cqe_wr_index(tail));
	else
		sgp_ring_release_count(&qp->srq->rq.ring, sgp_cqe_wr_index(tail) + 1);
}

/* The next entry of the backlog or of the ring. */
static inline const struct sg_cqe *next_cqe(struct sgp_cq *cq)
{
	const struct sg_cqe *cqe;

	if (unlikely(cq->backlog.entries && cq->backlog.pos < cq->backlog.num))
		return &cq->backlog.entries[cq->backlog.pos++];
	cqe = &cq->ring[cq->ci & (cq->size - 1)];
	if (!sgp_cqe_is_new(sgp_cqe_tail(cqe), cq->ci, cq->size))
		return NULL;
	/* The rest of the entry was written before the word that was just read. */
	udma_from_device_barrier();
	cq->ci++;
	return cqe;
}

/*
 * Takes the next entry from the ring, or returns NULL.  *tail: its last word.  The entry stays
 * readable until publish().
 */
static const struct sg_cqe *take_cqe(struct sgp_cq *cq, uint64_t *tail)
{
	struct sgp_context *ctx = to_sgp_context(cq->vcq.cq.context);

	/* The loop ends: the device cannot pass the record, which does not move here. */
	for (;;) {
		const struct sg_cqe *cqe = next_cqe(cq);
		struct sgp_qp *qp;
		uint64_t word;

		if (!cqe)
			return NULL;
		word = sgp_cqe_tail(cqe);
		qp = sgp_qp_lookup(ctx, le32toh(cqe->qpn));
		if (unlikely(!qp))
			continue;
		release_slots(qp, word);
		*tail = word;
		return cqe;
	}
}

static inline void fill_wc(struct ibv_wc *wc, const struct sg_cqe *cqe, uint64_t tail)
{
	wc->wr_id = le64toh(cqe->wr_id);
	wc->status = to_wc_status(tail);
	wc->opcode = to_wc_opcode(tail);
	wc->vendor_err = le32toh(cqe->vendor_err);
	wc->byte_len = le32toh(cqe->byte_len);
	if (sgp_cqe_flags(tail) & SG_CQE_WITH_IMM)
		sg_cqe_get_imm(cqe, &wc->imm_data);
	else
		wc->invalidated_rkey = le32toh(cqe->inv_stag);
	wc->qp_num = le32toh(cqe->qpn);
	wc->src_qp = 0;
	wc->wc_flags = to_wc_flags(tail);
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
}

int sgp_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct sgp_cq *cq = to_sgp_cq(ibcq);
	const struct sg_cqe *cqe;
	uint64_t tail;
	int n;

	sgp_lock(&cq->lock);
	for (n = 0; n < num_entries; n++) {
		cqe = take_cqe(cq, &tail);
		if (!cqe)
			break;
		fill_wc(&wc[n], cqe, tail);
	}
	publish(cq);
	sgp_unlock(&cq->lock);
	return n;
}

/*
 * The index tells the device what we have read: if there are more entries already, the event is
 * raised at once.  The index also frees slots, so it must not be ahead of the record.  No lock is
 * taken, because the application may arm within an extended poll.
 */
int sgp_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct sgp_cq *cq = to_sgp_cq(ibcq);
	uint32_t low = cq->cqn & SG_CQ_ARM_CQN_MASK;

	if (solicited_only)
		low |= SG_CQ_ARM_SOLICITED;
	/* Bit 31 and the number may be 0: SGP_CQ_ARMED keeps the value from being 0. */
	atomic_store(&cq->armed, low | SGP_CQ_ARMED);
	/* In this order, because sgp_resize_cq() relies on it. */
	sgp_doorbell(to_sgp_context(ibcq->context)->db, SG_DB_CQ_ARM, low,
		     atomic_load(&cq->recorded));
	return 0;
}

/* libibverbs has fetched an event. */
void sgp_cq_event(struct ibv_cq *ibcq)
{
	atomic_store(&to_sgp_cq(ibcq)->armed, 0);
}

static void purge_cqe(struct sg_cqe *cqe, struct sgp_qp *qp)
{
	if (le32toh(cqe->qpn) != qp->qpn)
		return;
	/* The slots of a shared receive queue are freed elsewhere. */
	if (qp->srq)
		release_slots(qp, sgp_cqe_tail(cqe));
	cqe->qpn = htole32(SGP_QPN_NONE);
}

void sgp_cq_purge(struct sgp_cq *cq, struct sgp_qp *qp)
{
	uint32_t i;

	sgp_lock(&cq->lock);
	/* Ends after at most size entries: after one round the same slot has the wrong phase. */
	for (i = cq->ci;; i++) {
		struct sg_cqe *cqe = &cq->ring[i & (cq->size - 1)];

		if (!sgp_cqe_is_new(sgp_cqe_tail(cqe), i, cq->size))
			break;
		udma_from_device_barrier();
		purge_cqe(cqe, qp);
	}
	for (i = cq->backlog.pos; cq->backlog.entries && i < cq->backlog.num; i++)
		purge_cqe(&cq->backlog.entries[i], qp);
	sgp_unlock(&cq->lock);
}

/* Extended poll: the lock is held from a successful start_poll to end_poll. */
static int step(struct sgp_cq *cq)
{
	cq->cur = take_cqe(cq, &cq->cur_tail);
	if (!cq->cur)
		return ENOENT;
	cq->vcq.cq_ex.wr_id = le64toh(cq->cur->wr_id);
	cq->vcq.cq_ex.status = to_wc_status(cq->cur_tail);
	return 0;
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct sgp_cq *cq = to_sgp_cq_ex(ibcq);
	int ret;

	if (unlikely(attr->comp_mask))
		return EINVAL;
	sgp_lock(&cq->lock);
	ret = step(cq);
	if (ret) {
		publish(cq);
		sgp_unlock(&cq->lock);
	}
	return ret;
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	return step(to_sgp_cq_ex(ibcq));
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct sgp_cq *cq = to_sgp_cq_ex(ibcq);

	publish(cq);
	sgp_unlock(&cq->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ibcq)
{
	return to_wc_opcode(to_sgp_cq_ex(ibcq)->cur_tail);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_sgp_cq_ex(ibcq)->cur->vendor_err);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return to_wc_flags(to_sgp_cq_ex(ibcq)->cur_tail);
}

static uint32_t read_byte_len(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_sgp_cq_ex(ibcq)->cur->byte_len);
}

/* libibverbs also reads the invalidated STag with this function. */
static __be32 read_imm_data(struct ibv_cq_ex *ibcq)
{
	const struct sgp_cq *cq = to_sgp_cq_ex(ibcq);
	__be32 imm_data;

	if (!(sgp_cqe_flags(cq->cur_tail) & SG_CQE_WITH_IMM))
		return (__force __be32)le32toh(cq->cur->inv_stag);
	sg_cqe_get_imm(cq->cur, &imm_data);
	return imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_sgp_cq_ex(ibcq)->cur->qpn);
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ibcq)
{
	return le64toh(to_sgp_cq_ex(ibcq)->cur->timestamp);
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ibcq)
{
	struct sgp_cq *cq = to_sgp_cq_ex(ibcq);

	return sgp_clock_to_wall(to_sgp_context(ibcq->context)->db, &cq->wall,
				 le64toh(cq->cur->timestamp));
}

/* Fields of InfiniBand addressing: iWARP has none, so they read as zero. */
static uint32_t read_zero_u32(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint8_t read_zero_u8(struct ibv_cq_ex *ibcq)
{
	return 0;
}

enum {
	WC_FLAGS_SUPPORTED = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	CQ_FLAGS_SUPPORTED = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
};

static void set_poll_ops(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cq->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq->read_src_qp = read_zero_u32;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cq->read_slid = read_zero_u32;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cq->read_sl = read_zero_u8;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->read_dlid_path_bits = read_zero_u8;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

/* Room for a ring of that size and its record; 0 or an errno value. */
static int alloc_ring(struct sgp_buf *buf, struct ibv_pd *pd, uint32_t size)
{
	return sgp_buf_alloc(buf, pd, SGDV_RESOURCE_CQ,
			     (size_t)size * sizeof(struct sg_cqe) + sizeof(struct sg_cq_record));
}

static uint32_t ring_size(uint32_t cqe)
{
	return max_t(uint32_t, sgp_pow2_at_least(cqe), SGP_CQ_SIZE_MIN);
}

static void set_ring(struct sgp_cq *cq, const struct sgp_buf *buf, uint32_t size)
{
	cq->buf = *buf;
	cq->size = size;
	cq->ring = buf->addr;
	cq->record = (struct sg_cq_record *)(cq->ring + size);
	cq->ci = 0;
	atomic_store_explicit(&cq->recorded, 0, memory_order_relaxed);
}

/* pd: a parent domain or NULL */
static struct sgp_cq *create_cq(struct ibv_context *context, struct ibv_pd *pd,
				const struct ibv_cq_init_attr_ex *attr)
{
	struct sgp_create_cq_resp resp = {};
	struct sgp_create_cq cmd = {};
	struct sgp_buf buf = {};
	struct sgp_cq *cq;
	int ret;

	if (attr->cqe < 1 || attr->cqe > SGP_CQ_SIZE_MAX) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	ret = alloc_ring(&buf, pd, ring_size(attr->cqe));
	if (ret)
		goto err_free;
	set_ring(cq, &buf, ring_size(attr->cqe));

	cmd.drv_payload.buf = (uintptr_t)cq->buf.addr;
	cmd.drv_payload.buf_len = (uint32_t)cq->buf.length;
	cmd.drv_payload.entries = cq->size;
	ret = ibv_cmd_create_cq_ex(context, attr, &cq->vcq, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp), 0);
	if (ret)
		goto err_buf;
	cq->cqn = resp.drv_payload.cqn;
	sgp_lock_init(&cq->lock, false);
	return cq;

err_buf:
	sgp_buf_free(&cq->buf);
err_free:
	free(cq);
	errno = ret;
	return NULL;
}

struct ibv_cq *sgp_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};
	struct sgp_cq *cq;

	if (cqe < 1) {
		errno = EINVAL;
		return NULL;
	}
	attr.cqe = (uint32_t)cqe;
	cq = create_cq(context, NULL, &attr);
	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *sgp_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	/* The kernel's part, without timestamps and the single-threaded flag. */
	struct ibv_cq_init_attr_ex plain = {
		.cqe = attr->cqe,
		.channel = attr->channel,
		.comp_vector = attr->comp_vector,
	};
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	bool has_pd = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD;
	struct sgp_cq *cq;

	if (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    flags & ~CQ_FLAGS_SUPPORTED || attr->wc_flags & ~(uint64_t)WC_FLAGS_SUPPORTED) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (has_pd && (!attr->parent_domain || !to_sgp_pd(attr->parent_domain)->base)) {
		errno = EINVAL;
		return NULL;
	}
	cq = create_cq(context, has_pd ? attr->parent_domain : NULL, &plain);
	if (!cq)
		return NULL;
	cq->lock.promised = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED ||
			    (has_pd && sgp_pd_promised(attr->parent_domain));
	set_poll_ops(&cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/*
 * After the device has left the old ring at index end: copies its unread entries behind
 * the rest of an earlier backlog.  room: memory for all of these.
 */
static void keep_unread(struct sgp_cq *cq, struct sg_cqe *room, uint32_t end)
{
	struct sgp_backlog *old = &cq->backlog;
	uint32_t n = 0;

	udma_from_device_barrier();
	while (old->entries && old->pos < old->num)
		room[n++] = old->entries[old->pos++];
	for (; cq->ci != end; cq->ci++)
		room[n++] = cq->ring[cq->ci & (cq->size - 1)];
	free(old->entries);
	*old = (struct sgp_backlog){ .entries = room, .num = n };
}

/* Under the lock; buf is taken over on success. */
static int resize_in_kernel(struct sgp_cq *cq, int cqe, const struct sgp_buf *buf, uint32_t size)
{
	uint32_t left = cq->backlog.entries ? cq->backlog.num - cq->backlog.pos : 0;
	struct sgp_resize_cq_resp resp = {};
	struct sgp_resize_cq cmd = {};
	struct sg_cqe *room;
	int ret;

	room = calloc(left + cq->size, sizeof(*room));
	if (!room)
		return ENOMEM;
	publish(cq);
	cmd.drv_payload.buf = (uintptr_t)buf->addr;
	cmd.drv_payload.buf_len = (uint32_t)buf->length;
	cmd.drv_payload.entries = size;
	ret = ibv_cmd_resize_cq(&cq->vcq.cq, cqe, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	/* It cannot have written more than the ring holds. */
	if (!ret && resp.drv_payload.old_producer - cq->ci > cq->size)
		ret = EIO;
	if (ret) {
		free(room);
		return ret;
	}
	keep_unread(cq, room, resp.drv_payload.old_producer);
	return 0;
}

int sgp_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct sgp_cq *cq = to_sgp_cq(ibcq);
	struct sgp_buf buf = {}, old;
	uint32_t size, armed;
	int ret;

	if (cqe < 1 || cqe > SGP_CQ_SIZE_MAX)
		return EINVAL;
	size = ring_size((uint32_t)cqe);
	ret = alloc_ring(&buf, cq->buf.owner ? &cq->buf.owner->ibpd : NULL, size);
	if (ret)
		return ret;
	sgp_lock(&cq->lock);
	ret = resize_in_kernel(cq, cqe, &buf, size);
	if (!ret) {
		old = cq->buf;
		set_ring(cq, &buf, size);
		buf = old;
	}
	/* If another thread armed with an index of the old ring (refused), we see it here. */
	atomic_thread_fence(memory_order_seq_cst);
	armed = atomic_load(&cq->armed);
	if (!ret && armed)
		sgp_doorbell(to_sgp_context(ibcq->context)->db, SG_DB_CQ_ARM, armed & ~SGP_CQ_ARMED,
			     0);
	sgp_unlock(&cq->lock);
	sgp_buf_free(&buf);
	return ret;
}

int sgp_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

int sgp_destroy_cq(struct ibv_cq *ibcq)
{
	struct sgp_cq *cq = to_sgp_cq(ibcq);
	int ret = ibv_cmd_destroy_cq(ibcq);

	if (ret)
		return ret;
	/* The device no longer uses the memory. */
	sgp_buf_free(&cq->buf);
	free(cq->backlog.entries);
	sgp_lock_fini(&cq->lock);
	free(cq);
	return 0;
}
