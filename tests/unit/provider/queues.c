/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest-driver/provider: shared receive queues, resizing and moderation of completion queues,
 * thread and parent domains, the clock; with the sources as shipped, between the models of kernel
 * and device in model.h.
 */
#include "model.h"
#include "staghorndv.h"

/* ---- shared receive queues ---- */

static struct sgp_srq *make_srq(uint32_t wrs, uint32_t sges)
{
    struct ibv_srq_init_attr attr = { .attr = { wrs, sges, 0 } };
    struct ibv_srq *srq;

    w.ctx->features |= SG_FEATURE_SRQ;
    srq = sgp_create_srq(&w.spd.ibpd, &attr);
    T_NOT_NULL(srq);
    return to_sgp_srq(srq);
}

static struct sgp_qp *make_srq_qp(struct sgp_srq *srq)
{
    struct ibv_qp_init_attr_ex attr = qp_attr(4, 1, 0);
    struct ibv_qp *qp;

    attr.srq = &srq->vsrq.srq;
    attr.cap.max_recv_sge = 1000; /* ignored */
    qp = sgp_create_qp_ex(w.spd.ibpd.context, &attr);
    T_NOT_NULL(qp);
    T_EQ_U64(attr.cap.max_recv_wr, 0);
    T_EQ_U64(attr.cap.max_recv_sge, 0);
    return to_sgp_qp(qp);
}

static void post(struct sgp_srq *srq, uint64_t wr_id, int want)
{
    struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad = NULL;

    T_EQ_INT(sgp_post_srq_recv(&srq->vsrq.srq, &wr, &bad), want);
    T_TRUE(bad == (want ? &wr : NULL));
}

static void srq__tells_the_kernel(void)
{
    struct ibv_srq_init_attr attr = { .attr = { 5, 4, 2 } };
    struct ibv_srq *srq;
    struct sgp_qp *qp;

    world_init();
    w.ctx->features |= SG_FEATURE_SRQ;
    srq = sgp_create_srq(&w.spd.ibpd, &attr);
    T_NOT_NULL(srq);
    T_EQ_U64(kernel.srq.entries, 8);
    T_EQ_U64(kernel.srq.stride, 128);
    T_EQ_U64(kernel.srq.max_sge, 4);
    T_EQ_U64(kernel.srq.reserved, 0);
    T_EQ_U64(kernel.srq.buf % 4096, 0);
    T_EQ_U64(kernel.srq_attr.srq_limit, 2);
    T_EQ_U64(attr.attr.max_wr, 8);
    T_EQ_U64(attr.attr.max_sge, 4);
    qp = make_srq_qp(to_sgp_srq(srq));
    T_EQ_U64(kernel.qp.rq_buf, 0);
    T_EQ_U64(kernel.qp.rq_entries, 0);
    T_EQ_U64(kernel.qp.rq_stride, 0);
    T_EQ_U64(kernel.qp.rq_max_sge, 0);
    T_EQ_INT(sgp_modify_srq(srq, &(struct ibv_srq_attr){ .srq_limit = 3 }, IBV_SRQ_LIMIT), 0);
    T_EQ_U64(kernel.srq_attr.srq_limit, 3);
    T_EQ_INT(sgp_query_srq(srq, &attr.attr), 0);
    T_EQ_U64(attr.attr.srq_limit, 3);
    sgp_destroy_qp(&qp->vqp.qp);
    T_EQ_INT(sgp_destroy_srq(srq), 0);
    world_fini();
}

static void srq__refusals(void)
{
    static const struct {
        struct ibv_srq_attr attr;
        int fail, want;
    } rows[] = {
        { { 0, 1, 0 }, 0, EINVAL },
        { { UINT32_MAX, 1, 0 }, 0, EINVAL },
        { { 4, SG_RQ_MAX_SGE + 1, 0 }, 0, EINVAL },
        { { 4, UINT32_MAX, 0 }, 0, EINVAL },
        { { 4, 1, 0 }, ENOSPC, ENOSPC },
    };
    struct ibv_srq_init_attr attr = { .attr = { 4, 1, 0 } };

    world_init();
    T_NULL(sgp_create_srq(&w.spd.ibpd, &attr));
    T_EQ_INT(errno, EOPNOTSUPP);
    w.ctx->features |= SG_FEATURE_SRQ;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        attr.attr = rows[i].attr;
        kernel.fail_srq = rows[i].fail;
        errno = 0;
        T_NULL(sgp_create_srq(&w.spd.ibpd, &attr));
        T_EQ_INT(errno, rows[i].want);
    }
    world_fini();
}

static void srq__posting(void)
{
    struct ibv_sge sge[2] = { { 0x1000, 10, 1 }, { 0x2000, 20, 2 } };
    struct ibv_recv_wr wr[2] = {
        { .wr_id = 1, .next = &wr[1], .sg_list = sge, .num_sge = 2 },
        { .wr_id = 2, .sg_list = sge, .num_sge = 3 },
    };
    struct ibv_recv_wr own = { 0 }, *bad;
    struct sgp_srq *srq;
    struct sgp_qp *qp;

    world_init();
    srq = make_srq(4, 2);
    qp = make_srq_qp(srq);
    T_EQ_INT(sgp_post_srq_recv(&srq->vsrq.srq, wr, &bad), EINVAL);
    T_TRUE(bad == &wr[1]);
    T_EQ_U64(db(SG_DB_SRQ), db_of(0x77, 1));
    T_EQ_U64(db(SG_DB_RQ), 0);
    /* It has no receive queue of its own. */
    T_EQ_INT(sgp_post_recv(&qp->vqp.qp, &own, &bad), EINVAL);
    T_TRUE(bad == &own);
    sgp_destroy_qp(&qp->vqp.qp);
    sgp_destroy_srq(&srq->vsrq.srq);
    world_fini();
}

/* Room comes by the count of completions, whatever their order and queue pair. */
static void srq__room_by_count(void)
{
    struct sgp_srq *srq;
    struct sgp_qp *a, *b;
    struct ibv_wc wc[8];

    world_init();
    srq = make_srq(4, 1);
    a = make_srq_qp(srq);
    b = make_srq_qp(srq);
    for (uint64_t i = 0; i < 4; i++) {
        post(srq, i, 0);
    }
    post(srq, 4, ENOMEM);
    /* The third and the second entry are done; then an older count comes after a newer one. */
    complete(a->qpn, 2, 0, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 1);
    post(srq, 4, 0);
    post(srq, 5, ENOMEM);
    complete(b->qpn, 0, 2, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    complete(a->qpn, 1, 1, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 2);
    T_EQ_U64(wc[0].wr_id, 0);
    T_EQ_U64(wc[0].qp_num, b->qpn);
    T_EQ_U64(wc[1].wr_id, 1);
    post(srq, 5, 0);
    post(srq, 6, 0);
    post(srq, 7, ENOMEM);
    /* Sends have their own queue. */
    complete(a->qpn, 9, 3, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 1);
    post(srq, 7, ENOMEM);
    /* Completions of a destroyed queue pair count, although they are not reported. */
    complete(a->qpn, 3, 3, SG_WC_RECV, SG_CQE_RECV, SG_WC_FLUSH_ERR);
    T_EQ_INT(sgp_destroy_qp(&a->vqp.qp), 0);
    post(srq, 7, 0);
    post(srq, 8, ENOMEM);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 0);
    sgp_destroy_qp(&b->vqp.qp);
    sgp_destroy_srq(&srq->vsrq.srq);
    world_fini();
}

static void srq__count_wraps(void)
{
    struct sgp_ring ring = { .size = 4 };

    ring.head = 2;
    atomic_init(&ring.tail, UINT32_MAX - 1);
    T_TRUE(sgp_ring_full(&ring, ring.head));
    sgp_ring_release_count(&ring, 1);
    T_EQ_U64(atomic_load(&ring.tail), 1);
    sgp_ring_release_count(&ring, UINT32_MAX);
    T_EQ_U64(atomic_load(&ring.tail), 1);
    T_FALSE(sgp_ring_full(&ring, ring.head));
}

static int resize_srq(struct sgp_srq *srq, uint32_t max_wr, int more)
{
    struct ibv_srq_attr attr = { .max_wr = max_wr, .srq_limit = 1 };

    return sgp_modify_srq(&srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR | more);
}

/* The new ring has this entry in the slot of its index. */
static void expect_entry(uint32_t index, uint64_t wr_id)
{
    const uint8_t *ring = (const uint8_t *)(uintptr_t)kernel.srq_resize.buf;
    const struct sg_rqe_hdr *h =
        (const void *)(ring + 64 * (index & (kernel.srq_resize.entries - 1)));

    T_EQ_U64(le32toh(h->index), index);
    T_EQ_U64(le64toh(h->wr_id), wr_id);
}

/* Entries that the device has perhaps not taken move to the new ring; indices continue. */
static void srq__another_size(void)
{
    struct sgp_srq *srq;
    struct ibv_wc wc[8];
    struct sgp_qp *qp;
    uint64_t i;

    world_init();
    w.ctx->features |= SG_FEATURE_SRQ_RESIZE;
    srq = make_srq(4, 1);
    qp = make_srq_qp(srq);
    for (i = 0; i < 4; i++) {
        post(srq, i, 0);
    }
    for (i = 0; i < 3; i++) {
        complete(qp->qpn, (uint32_t)i, i, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    }
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 3);
    post(srq, 4, 0);
    post(srq, 5, 0); /* 3, 4 and 5 are posted: slots 3, 0 and 1 */
    T_EQ_INT(resize_srq(srq, 2, 0), EINVAL);
    T_EQ_U64(kernel.srq_resize.entries, 0);
    T_EQ_INT(resize_srq(srq, 9, 0), 0);
    T_EQ_U64(kernel.srq_resize.entries, 16);
    T_EQ_U64(kernel.srq_resize.reserved, 0);
    T_EQ_U64(kernel.srq_resize.buf % 4096, 0);
    T_EQ_INT(kernel.srq_mask, IBV_SRQ_MAX_WR);
    for (i = 6; i < 19; i++) {
        post(srq, i, 0);
    }
    post(srq, 19, ENOMEM);
    T_EQ_U64(db(SG_DB_SRQ), db_of(0x77, 19));
    for (i = 3; i < 19; i++) {
        expect_entry((uint32_t)i, i);
    }
    /* Smaller, with the limit in the same call; the count of completions frees as before. */
    complete(qp->qpn, 16, 16, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 1);
    T_EQ_INT(resize_srq(srq, 1, IBV_SRQ_LIMIT), 0);
    T_EQ_U64(kernel.srq_resize.entries, 2);
    T_EQ_INT(kernel.srq_mask, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
    T_EQ_U64(kernel.srq_attr.srq_limit, 1);
    expect_entry(17, 17);
    expect_entry(18, 18);
    post(srq, 19, ENOMEM);
    complete(qp->qpn, 17, 17, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 1);
    post(srq, 19, 0);
    expect_entry(19, 19);
    sgp_destroy_qp(&qp->vqp.qp);
    sgp_destroy_srq(&srq->vsrq.srq);
    world_fini();
}

/* The old ring stays in use. */
static void srq__size_refused(void)
{
    struct sgp_srq *srq;

    world_init();
    srq = make_srq(2, 1);
    T_EQ_INT(resize_srq(srq, 8, 0), EOPNOTSUPP);
    w.ctx->features |= SG_FEATURE_SRQ_RESIZE;
    post(srq, 0, 0);
    T_EQ_INT(resize_srq(srq, 0, 0), EINVAL);
    T_EQ_INT(resize_srq(srq, UINT32_MAX, 0), EINVAL);
    kernel.fail_srq_modify = ENOMEM;
    T_EQ_INT(resize_srq(srq, 8, 0), ENOMEM);
    kernel.fail_srq_modify = 0;
    post(srq, 1, 0);
    post(srq, 2, ENOMEM);
    T_EQ_U64(kernel.live_bufs, 2); /* this ring, and the completion queue's */
    sgp_destroy_srq(&srq->vsrq.srq);
    world_fini();
}

/* ---- completion queues ---- */

static void resize__unread_comes_first(void)
{
    struct ibv_wc wc[64];
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(64, 1, 0);
    for (uint32_t i = 0; i < 5; i++) {
        complete(qp->qpn, i, i, SG_WC_SEND, 0, SG_WC_SUCCESS);
    }
    T_EQ_INT(sgp_poll_cq(w.cq, 2, wc), 2);
    T_EQ_INT(sgp_req_notify_cq(w.cq, 1), 0);
    T_EQ_U64(db(SG_DB_CQ_ARM), db_of(0x123 | SG_CQ_ARM_SOLICITED, 2));
    T_EQ_INT(sgp_resize_cq(w.cq, 100), 0);
    T_EQ_U64(kernel.resize.entries, 128);
    T_TRUE(kernel.resize.buf_len >= 128 * 64 + 64);
    T_EQ_U64(kernel.resize.buf % 4096, 0);
    /* An armed queue stays armed in the new ring. */
    T_EQ_U64(db(SG_DB_CQ_ARM), db_of(0x123 | SG_CQ_ARM_SOLICITED, 0));
    T_EQ_U64(record(), 0);
    complete(qp->qpn, 5, 5, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 1, wc), 1);
    T_EQ_U64(wc[0].wr_id, 2);
    /* Again, with entries left from the first resize; the queue is no longer armed. */
    sgp_cq_event(w.cq);
    w.db[SG_DB_CQ_ARM / 8] = 0;
    T_EQ_INT(sgp_resize_cq(w.cq, 1), 0);
    T_EQ_U64(kernel.resize.entries, 32);
    T_EQ_U64(db(SG_DB_CQ_ARM), 0);
    complete(qp->qpn, 6, 6, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 64, wc), 4);
    for (uint64_t i = 0; i < 4; i++) {
        T_EQ_U64(wc[i].wr_id, i + 3);
    }
    T_EQ_U64(record(), 1);
    T_EQ_U64(atomic_load(&qp->sq.tail), 7);
    T_EQ_INT(sgp_poll_cq(w.cq, 64, wc), 0);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void resize__forgets_the_destroyed(void)
{
    struct ibv_wc wc[4];
    struct sgp_qp *a, *b;

    world_init();
    a = make_qp(8, 1, 0);
    b = make_qp(8, 1, 0);
    complete(a->qpn, 1, 0, SG_WC_SEND, 0, SG_WC_SUCCESS);
    complete(b->qpn, 2, 0, SG_WC_SEND, 0, SG_WC_SUCCESS);
    complete(a->qpn, 3, 1, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_resize_cq(w.cq, 64), 0);
    sgp_destroy_qp(&a->vqp.qp);
    T_EQ_INT(sgp_poll_cq(w.cq, 4, wc), 1);
    T_EQ_U64(wc[0].wr_id, 2);
    sgp_destroy_qp(&b->vqp.qp);
    /* The last saved entry has no queue pair, and is freed unread with the completion queue. */
    world_fini();
}

static void resize__refusals(void)
{
    struct ibv_wc wc[4];
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(8, 1, 0);
    complete(qp->qpn, 1, 0, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_resize_cq(w.cq, 0), EINVAL);
    T_EQ_INT(sgp_resize_cq(w.cq, -1), EINVAL);
    T_EQ_INT(sgp_resize_cq(w.cq, 1 << 30), EINVAL);
    kernel.fail_resize = ENOSPC;
    T_EQ_INT(sgp_resize_cq(w.cq, 64), ENOSPC);
    /* Impossible answers of the kernel are rejected. */
    kernel.fail_resize = 0;
    w.device_pi += 1000;
    T_EQ_INT(sgp_resize_cq(w.cq, 64), EIO);
    w.device_pi = 1;
    /* The old ring is still in use. */
    T_EQ_INT(sgp_poll_cq(w.cq, 4, wc), 1);
    T_EQ_U64(record(), 1);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void cq__moderation_and_clock(void)
{
    struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 16, 8 } };
    struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 7 };

    world_init();
    T_EQ_INT(sgp_modify_cq(w.cq, &attr), 0);
    T_EQ_U64(kernel.moderate.cq_count, 16);
    T_EQ_U64(kernel.moderate.cq_period, 8);
    w.db[SG_DB_CLOCK / 8] = htole64(0x123456789abcdef0);
    T_EQ_INT(sgp_query_rt_values(w.spd.ibpd.context, &values), 0);
    T_EQ_U64(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
    T_EQ_U64((uint64_t)values.raw_clock.tv_nsec, 0x123456789abcdef0);
    T_EQ_U64((uint64_t)values.raw_clock.tv_sec, 0);
    values = (struct ibv_values_ex){ .raw_clock.tv_nsec = 5 };
    T_EQ_INT(sgp_query_rt_values(w.spd.ibpd.context, &values), 0);
    T_EQ_U64(values.comp_mask, 0);
    T_EQ_U64((uint64_t)values.raw_clock.tv_nsec, 5);
    world_fini();
}

/* ---- domains ---- */

/* A scripted allocator, and a record of its calls. */
static struct {
    unsigned asked[SGDV_RESOURCE_SRQ + 1], held;
    enum { GIVES, GIVES_ODD, HAS_NONE, LEAVES_IT } mood;
} owner;

static void *owner_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
                         uint64_t type)
{
    char *p;

    T_TRUE(context == &owner);
    T_TRUE(to_sgp_pd(pd)->base);
    T_EQ_U64(size % 4096, 0);
    T_EQ_U64(alignment, 4096);
    owner.asked[type]++;
    if (owner.mood >= HAS_NONE) {
        return owner.mood == HAS_NONE ? NULL : IBV_ALLOCATOR_USE_DEFAULT;
    }
    owner.held++;
    p = aligned_alloc(alignment, size + alignment);
    memset(p, 0xee, size + alignment);
    return owner.mood == GIVES_ODD ? p + 64 : p;
}

static void owner_free(struct ibv_pd *pd, void *context, void *p, uint64_t type)
{
    (void)pd, (void)context, (void)type;
    owner.held--;
    free((void *)((uintptr_t)p & ~(uintptr_t)4095));
}

static void domains__allocators(void)
{
    struct ibv_parent_domain_init_attr attr = {
        .comp_mask =
            IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
        .alloc = owner_alloc,
        .pd_context = &owner,
    };
    struct ibv_qp_init_attr_ex qa;
    struct ibv_pd *pd, *parent;
    struct ibv_qp *qp;

    world_init();
    memset(&owner, 0, sizeof(owner));
    pd = sgp_alloc_pd(w.spd.ibpd.context);
    pd->context = w.spd.ibpd.context;
    attr.pd = pd;
    T_NULL(sgp_alloc_parent_domain(pd->context, &attr)); /* both or neither */
    T_EQ_INT(errno, EINVAL);
    attr.free = owner_free;
    parent = sgp_alloc_parent_domain(pd->context, &attr);
    T_NOT_NULL(parent);

    qa = qp_attr(4, 1, 0);
    qa.pd = parent;
    qp = sgp_create_qp_ex(pd->context, &qa);
    T_NOT_NULL(qp);
    T_EQ_U64(owner.asked[SGDV_RESOURCE_QP], 2);
    T_EQ_U64(owner.held, 2);
    T_EQ_U64(*(uint64_t *)to_sgp_qp(qp)->sq_buf.addr, 0); /* it was cleared */
    T_EQ_INT(sgp_dealloc_pd(parent), EBUSY);              /* still owns the memory */
    sgp_destroy_qp(qp);
    T_EQ_U64(owner.held, 0);

    owner.mood = LEAVES_IT;
    qp = sgp_create_qp_ex(pd->context, &qa);
    T_NOT_NULL(qp);
    sgp_destroy_qp(qp);
    owner.mood = HAS_NONE;
    T_NULL(sgp_create_qp_ex(pd->context, &qa));
    T_EQ_INT(errno, ENOMEM);
    owner.mood = GIVES_ODD;
    T_NULL(sgp_create_qp_ex(pd->context, &qa));
    T_EQ_INT(errno, EINVAL);
    T_EQ_U64(owner.held, 0);
    T_EQ_INT(sgp_dealloc_pd(parent), 0);
    T_EQ_INT(sgp_dealloc_pd(pd), 0);
    world_fini();
}

static void domains__promise_and_refer(void)
{
    struct ibv_parent_domain_init_attr attr = { 0 };
    struct ibv_td_init_attr td_attr = { 0 };
    struct ibv_cq_init_attr_ex cq_attr = { .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
    struct ibv_qp_init_attr_ex qa;
    struct ibv_pd *pd, *parent, *plain;
    struct ibv_cq_ex *cq;
    struct ibv_td *td;
    struct ibv_qp *qp;

    world_init();
    pd = sgp_alloc_pd(w.spd.ibpd.context);
    pd->context = w.spd.ibpd.context;
    pd->handle = 9;
    T_NULL(sgp_alloc_td(pd->context, &(struct ibv_td_init_attr){ .comp_mask = 1 }));
    T_EQ_INT(errno, EOPNOTSUPP);
    td = sgp_alloc_td(pd->context, &td_attr);
    T_NULL(sgp_alloc_parent_domain(pd->context, &attr));
    T_EQ_INT(errno, EINVAL);
    attr.pd = pd;
    attr.comp_mask = 1u << 31;
    T_NULL(sgp_alloc_parent_domain(pd->context, &attr));
    T_EQ_INT(errno, EOPNOTSUPP);
    attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    plain = sgp_alloc_parent_domain(pd->context, &attr);
    attr.td = td;
    parent = sgp_alloc_parent_domain(pd->context, &attr);
    T_NOT_NULL(parent);
    T_EQ_U64(parent->handle, 9);
    T_FALSE(sgp_pd_promised(pd));
    T_FALSE(sgp_pd_promised(plain));
    T_TRUE(sgp_pd_promised(parent));
    attr.pd = parent; /* not a parent of a parent */
    T_NULL(sgp_alloc_parent_domain(pd->context, &attr));
    T_EQ_INT(errno, EINVAL);
    T_EQ_INT(sgp_dealloc_pd(pd), EBUSY);
    T_EQ_INT(sgp_dealloc_td(td), EBUSY);

    qa = qp_attr(4, 1, 0);
    qa.pd = parent;
    qp = sgp_create_qp_ex(pd->context, &qa);
    T_TRUE(to_sgp_qp(qp)->sq_lock.promised);
    T_TRUE(to_sgp_qp(qp)->rq.lock.promised);
    sgp_destroy_qp(qp);
    cq_attr.parent_domain = pd;
    T_NULL(sgp_create_cq_ex(pd->context, &cq_attr));
    T_EQ_INT(errno, EINVAL);
    cq_attr.parent_domain = parent;
    cq = sgp_create_cq_ex(pd->context, &cq_attr);
    T_TRUE(to_sgp_cq_ex(cq)->lock.promised);
    sgp_destroy_cq(ibv_cq_ex_to_cq(cq));

    T_EQ_INT(sgp_dealloc_pd(parent), 0);
    T_EQ_INT(sgp_dealloc_td(td), 0);
    T_EQ_INT(sgp_dealloc_pd(pd), EBUSY);
    T_EQ_INT(sgp_dealloc_pd(plain), 0);
    T_EQ_INT(sgp_dealloc_pd(pd), 0);
    world_fini();
}

static const struct t_case cases[] = {
    { "srq: creation tells the kernel", srq__tells_the_kernel },
    { "srq: what cannot be", srq__refusals },
    { "srq: posting", srq__posting },
    { "srq: room comes by count", srq__room_by_count },
    { "srq: the count wraps", srq__count_wraps },
    { "srq: another size", srq__another_size },
    { "srq: another size that is refused", srq__size_refused },
    { "resize: what is unread comes first", resize__unread_comes_first },
    { "resize: completions of a destroyed queue pair", resize__forgets_the_destroyed },
    { "resize: what cannot be", resize__refusals },
    { "moderation, and the clock", cq__moderation_and_clock },
    { "domains: what they promise and refer to", domains__promise_and_refer },
    { "domains: allocators of queue memory", domains__allocators },
};

T_MAIN(cases)
