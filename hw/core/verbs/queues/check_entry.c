/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver checker's view of entries.  When a doorbell covers an entry it is read, and a sum of
 * it is taken; entries in small slots are read several at once.  When the adapter has copied the
 * entry a second sum is taken of the copy.  Only what is behind its first SG_WQE_STRIDE_MIN octets
 * is read once more.  What lies behind an entry in its slot is the driver's, and is not compared.
 *
 * An entry that does not have its index was not in memory before its doorbell: a write barrier, or
 * the write-back of a cache, is missing.  It is reported once, and not compared later.
 */
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"
#include "verbs/state/adapter_state.h"

/* Octets of a send entry, at most those of its slot; its opcode may be anything. */
static size_t send_octets(const uint8_t *e)
{
    const struct sg_wqe_hdr *h = (const void *)e;
    const struct sg_wqe_place *place = (const void *)(h + 1);
    size_t len = sizeof(*h);

    if (h->opcode == SG_WR_REG_MR || h->opcode == SG_WR_BIND_MW) {
        return len +
               (h->opcode == SG_WR_REG_MR ? sizeof(struct sg_wqe_reg) : sizeof(struct sg_wqe_bind));
    }
    if (h->opcode == SG_WR_FLUSH || h->opcode == SG_WR_VERIFY) {
        len += sizeof(*place) + place->hash_len;
    } else if (h->opcode == SG_WR_FETCH_ADD || h->opcode == SG_WR_CMP_SWAP) {
        len += sizeof(struct sg_wqe_atomic);
    }
    return len + (h->flags & SG_WQE_INLINE ? sg_get_le16(&h->inline_len)
                                           : h->num_sge * sizeof(struct sg_sge));
}

static size_t recv_octets(const uint8_t *e)
{
    const struct sg_rqe_hdr *h = (const void *)e;

    return sizeof(*h) + h->num_sge * sizeof(struct sg_sge);
}

static uint32_t index_of(const uint8_t *e, bool send)
{
    return send ? sg_get_le32(&((const struct sg_wqe_hdr *)(const void *)e)->index)
                : sg_get_le32(&((const struct sg_rqe_hdr *)(const void *)e)->index);
}

static size_t octets_of(const struct sg_ring *r, bool send, const uint8_t *e)
{
    return SG_MIN(send ? send_octets(e) : recv_octets(e), (size_t)1 << r->stride_shift);
}

/*
 * The sum of the entry at 'index', 0: it cannot be read.  e: SG_WQE_STRIDE_MAX octets, of which
 * the first SG_WQE_STRIDE_MIN are copied.
 */
static uint32_t sum_entry(const struct sg_adapter *a, const struct sg_ring *r, bool send,
                          uint32_t index, uint8_t *e)
{
    const size_t len = octets_of(r, send, e), have = SG_WQE_STRIDE_MIN;

    if (len > have && !sg_ring_fetch(r, &a->host, index, have, e + have, len - have)) {
        return 0;
    }
    return sg_check_sum(e, len);
}

/* How many small slots from 'index' lie behind each other, at most 'most' and TOGETHER octets. */
enum { TOGETHER = SG_WQE_STRIDE_MAX, SMALL = 2 * SG_WQE_STRIDE_MIN };

static uint32_t run_of(const struct sg_ring *r, uint32_t index, uint32_t most)
{
    const uint32_t in_page = SG_PAGE_SIZE >> r->stride_shift, slot = index & (r->entries - 1);
    const uint32_t n = SG_MIN(r->entries - slot, in_page - (slot & (in_page - 1)));

    return 1u << r->stride_shift > SMALL ? 1 : SG_MIN(SG_MIN(n, most), TOGETHER >> r->stride_shift);
}

static void note(struct sg_adapter *a, struct sg_check_sums *s, bool send, uint32_t index,
                 const uint8_t *e, uint32_t sum, struct sg_object o)
{
    const uint32_t found = index_of(e, send);

    if (sum && found != index) {
        sg_check_found(a, SG_RULE_ENTRY_INDEX, o,
                       "%s entry %u is not in memory at its doorbell: it has index %u",
                       send ? "send" : "receive", index, found);
        sum = 0;
    }
    s->sum[index & (s->entries - 1)] = sum;
}

static void posted(struct sg_adapter *a, const struct sg_ring *r, struct sg_check_sums *s,
                   bool send, uint32_t before, struct sg_object o)
{
    const uint32_t end = before + SG_MIN(r->prod - before, (uint32_t)SG_CHECK_POSTED);
    _Alignas(8) uint8_t e[TOGETHER];
    uint32_t i, n, k;

    for (i = before; i != end; i += n) {
        n = run_of(r, i, end - i);
        if (!sg_ring_fetch(r, &a->host, i, 0, e,
                           n == 1 ? SG_WQE_STRIDE_MIN : (size_t)n << r->stride_shift)) {
            for (k = 0; k < n; k++) {
                s->sum[(i + k) & (s->entries - 1)] = 0;
            }
        } else if (n == 1) {
            note(a, s, send, i, e, sum_entry(a, r, send, i, e), o);
        } else {
            for (k = 0; k < n; k++) {
                const uint8_t *one = e + ((size_t)k << r->stride_shift);

                note(a, s, send, i + k, one, sg_check_sum(one, octets_of(r, send, one)), o);
            }
        }
    }
    for (; i != r->prod; i++) {
        s->sum[i & (s->entries - 1)] = 0;
    }
}

/* copy: what the adapter has of the entry, SG_WQE_STRIDE_MIN octets at least. */
static void fetched(struct sg_adapter *a, const struct sg_ring *r, struct sg_check_sums *s,
                    bool send, uint32_t index, const uint8_t *copy, struct sg_object o)
{
    uint32_t *then = &s->sum[index & (s->entries - 1)], now;
    const size_t len = octets_of(r, send, copy);

    s->changed = false;
    if (!*then) {
        return;
    }
    if (len <= SG_WQE_STRIDE_MIN) {
        now = sg_check_sum(copy, len);
    } else { /* the adapter may have refused it before it copied the rest */
        _Alignas(8) uint8_t e[SG_WQE_STRIDE_MAX];

        memcpy(e, copy, SG_WQE_STRIDE_MIN);
        now = sum_entry(a, r, send, index, e);
    }
    if (now && now != *then) {
        s->changed = true;
        *then = now;
        sg_check_found(a, SG_RULE_ENTRY_CHANGED, o,
                       "%s entry %u was changed between its doorbell and its completion",
                       send ? "send" : "receive", index);
    }
}

/* More entries than the ring has slots whose completion the driver knows. */
static void check_told(struct sg_adapter *a, const struct sg_ring *r, const struct sg_check_sums *s,
                       const char *queue, struct sg_object o)
{
    if (r->prod - s->told > r->entries) {
        sg_check_found(a, SG_RULE_RING_UNTOLD, o,
                       "%s queue: posted up to %u, reported as complete up to %u, %u entries",
                       queue, r->prod, s->told, r->entries);
    }
}

void sg_check_sq_posted(struct sg_qp *qp, uint32_t before)
{
    struct sg_check_sums *s = sg_qp_sums(qp)->sq;
    struct sg_ring *r = &qp->sq.ring;

    sg_checked(qp->adapter, sg_qp_object(qp), SG_DID_POST, r->prod, before);
    if (s) {
        check_told(qp->adapter, r, s, "send", sg_qp_object(qp));
        posted(qp->adapter, r, s, true, before, sg_qp_object(qp));
    }
}

void sg_check_sq_fetched(struct sg_qp *qp)
{
    struct sg_check_sums *s = sg_qp_sums(qp)->sq;

    if (s) {
        fetched(qp->adapter, &qp->sq.ring, s, true, qp->sq.next, qp->sq.cur, sg_qp_object(qp));
    }
}

void sg_check_rq_posted(struct sg_qp *qp, uint32_t before)
{
    struct sg_check_sums *s = sg_qp_sums(qp)->rq;
    struct sg_ring *r = &qp->rq.ring;

    sg_checked(qp->adapter, sg_qp_object(qp), SG_DID_POST_RECV, r->prod, before);
    if (s) {
        check_told(qp->adapter, r, s, "receive", sg_qp_object(qp));
        posted(qp->adapter, r, s, false, before, sg_qp_object(qp));
    }
}

void sg_check_rq_fetched(struct sg_qp *qp)
{
    struct sg_check_sums *s = sg_qp_sums(qp)->rq;

    if (s) {
        fetched(qp->adapter, &qp->rq.ring, s, false, qp->rq.ring.cons, qp->rq.cur,
                sg_qp_object(qp));
    }
}

bool sg_check_sq_changed(struct sg_qp *qp)
{
    return sg_checking(qp->adapter) && sg_qp_sums(qp)->sq && sg_qp_sums(qp)->sq->changed;
}

bool sg_check_rq_changed(struct sg_qp *qp)
{
    const struct sg_check_sums *s;

    if (!sg_checking(qp->adapter)) {
        return false;
    }
    s = qp->srq ? qp->srq->sums : sg_qp_sums(qp)->rq;
    return s && s->changed;
}

void sg_check_srq_posted(struct sg_adapter *a, struct sg_srq *srq, uint32_t before)
{
    sg_checked(a, sg_srq_object(srq), SG_DID_POST, srq->ring.prod, before);
    if (srq->sums) {
        posted(a, &srq->ring, srq->sums, false, before, sg_srq_object(srq));
    }
}

void sg_check_srq_fetched(struct sg_qp *qp, uint32_t index)
{
    fetched(qp->adapter, &qp->srq->ring, qp->srq->sums, false, index, qp->rq.cur,
            sg_srq_object(qp->srq));
}

void sg_check_qp_told(struct sg_qp *qp, const struct sg_wc *wc)
{
    const bool recv = wc->flags & SG_CQE_RECV;
    struct sg_check_sums *s = recv ? sg_qp_sums(qp)->rq : sg_qp_sums(qp)->sq;

    sg_checked(qp->adapter, sg_qp_object(qp), SG_DID_COMPLETE, wc->wr_index, wc->status);
    if (s) {
        s->told = wc->wr_index + 1;
    }
}
