/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest-driver/provider: shared receive queues, with the sources as shipped, between the models of
 * kernel and device in model.h.
 */
#include "model.h"

/* ---- shared receive queues ---- */

static struct sg_srq *make_srq(uint32_t wrs, uint32_t sges)
{
    struct ibv_srq_init_attr attr = { .attr = { wrs, sges, 0 } };
    struct ibv_srq *srq;

    w.ctx->features |= SG_FEATURE_SRQ;
    srq = sg_create_srq(&w.pd, &attr);
    T_NOT_NULL(srq);
    return to_sg_srq(srq);
}

static struct sg_qp *make_srq_qp(struct sg_srq *srq)
{
    struct ibv_qp_init_attr_ex attr = qp_attr(4, 1, 0);
    struct ibv_qp *qp;

    attr.srq = &srq->vsrq.srq;
    attr.cap.max_recv_sge = 1000; /* means nothing */
    qp = sg_create_qp_ex(w.pd.context, &attr);
    T_NOT_NULL(qp);
    T_EQ_U64(attr.cap.max_recv_wr, 0);
    T_EQ_U64(attr.cap.max_recv_sge, 0);
    return to_sg_qp(qp);
}

static void post(struct sg_srq *srq, uint64_t wr_id, int want)
{
    struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad = NULL;

    T_EQ_INT(sg_post_srq_recv(&srq->vsrq.srq, &wr, &bad), want);
    T_TRUE(bad == (want ? &wr : NULL));
}

static void srq__tells_the_kernel(void)
{
    struct ibv_srq_init_attr attr = { .attr = { 5, 4, 2 } };
    struct ibv_srq *srq;
    struct sg_qp *qp;

    world_init();
    w.ctx->features |= SG_FEATURE_SRQ;
    srq = sg_create_srq(&w.pd, &attr);
    T_NOT_NULL(srq);
    T_EQ_U64(kernel.srq.entries, 8);
    T_EQ_U64(kernel.srq.stride, 128);
    T_EQ_U64(kernel.srq.max_sge, 4);
    T_EQ_U64(kernel.srq.reserved, 0);
    T_EQ_U64(kernel.srq.buf % 4096, 0);
    T_EQ_U64(kernel.srq_attr.srq_limit, 2);
    T_EQ_U64(attr.attr.max_wr, 8);
    T_EQ_U64(attr.attr.max_sge, 4);
    qp = make_srq_qp(to_sg_srq(srq));
    T_EQ_U64(kernel.qp.rq_buf, 0);
    T_EQ_U64(kernel.qp.rq_entries, 0);
    T_EQ_U64(kernel.qp.rq_stride, 0);
    T_EQ_U64(kernel.qp.rq_max_sge, 0);
    T_EQ_INT(sg_modify_srq(srq, &(struct ibv_srq_attr){ .srq_limit = 3 }, IBV_SRQ_LIMIT), 0);
    T_EQ_U64(kernel.srq_attr.srq_limit, 3);
    T_EQ_INT(sg_query_srq(srq, &attr.attr), 0);
    T_EQ_U64(attr.attr.srq_limit, 3);
    sg_destroy_qp(&qp->vqp.qp);
    T_EQ_INT(sg_destroy_srq(srq), 0);
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
    T_NULL(sg_create_srq(&w.pd, &attr));
    T_EQ_INT(errno, EOPNOTSUPP);
    w.ctx->features |= SG_FEATURE_SRQ;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        attr.attr = rows[i].attr;
        kernel.fail_srq = rows[i].fail;
        errno = 0;
        T_NULL(sg_create_srq(&w.pd, &attr));
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
    struct sg_srq *srq;
    struct sg_qp *qp;

    world_init();
    srq = make_srq(4, 2);
    qp = make_srq_qp(srq);
    T_EQ_INT(sg_post_srq_recv(&srq->vsrq.srq, wr, &bad), EINVAL);
    T_TRUE(bad == &wr[1]);
    T_EQ_U64(db(SG_DB_SRQ), db_of(0x77, 1));
    T_EQ_U64(db(SG_DB_RQ), 0);
    /* It has no receive queue of its own. */
    T_EQ_INT(sg_post_recv(&qp->vqp.qp, &own, &bad), EINVAL);
    T_TRUE(bad == &own);
    sg_destroy_qp(&qp->vqp.qp);
    sg_destroy_srq(&srq->vsrq.srq);
    world_fini();
}

/* Room comes by the count of completions, whatever their order and queue pair. */
static void srq__room_by_count(void)
{
    struct sg_srq *srq;
    struct sg_qp *a, *b;
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
    T_EQ_INT(sg_poll_cq(w.cq, 8, wc), 1);
    post(srq, 4, 0);
    post(srq, 5, ENOMEM);
    complete(b->qpn, 0, 2, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    complete(a->qpn, 1, 1, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    T_EQ_INT(sg_poll_cq(w.cq, 8, wc), 2);
    T_EQ_U64(wc[0].wr_id, 0);
    T_EQ_U64(wc[0].qp_num, b->qpn);
    T_EQ_U64(wc[1].wr_id, 1);
    post(srq, 5, 0);
    post(srq, 6, 0);
    post(srq, 7, ENOMEM);
    /* Sends have their own queue. */
    complete(a->qpn, 9, 3, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sg_poll_cq(w.cq, 8, wc), 1);
    post(srq, 7, ENOMEM);
    /* What a destroyed queue pair has completed counts, though nobody hears of it. */
    complete(a->qpn, 3, 3, SG_WC_RECV, SG_CQE_RECV, SG_WC_FLUSH_ERR);
    T_EQ_INT(sg_destroy_qp(&a->vqp.qp), 0);
    post(srq, 7, 0);
    post(srq, 8, ENOMEM);
    T_EQ_INT(sg_poll_cq(w.cq, 8, wc), 0);
    sg_destroy_qp(&b->vqp.qp);
    sg_destroy_srq(&srq->vsrq.srq);
    world_fini();
}

static void srq__count_wraps(void)
{
    struct sg_ring ring = { .size = 4 };

    ring.head = 2;
    atomic_init(&ring.tail, UINT32_MAX - 1);
    T_TRUE(sg_ring_full(&ring, ring.head));
    sg_ring_release_count(&ring, 1);
    T_EQ_U64(atomic_load(&ring.tail), 1);
    sg_ring_release_count(&ring, UINT32_MAX);
    T_EQ_U64(atomic_load(&ring.tail), 1);
    T_FALSE(sg_ring_full(&ring, ring.head));
}

static const struct t_case cases[] = {
    { "srq: creation tells the kernel", srq__tells_the_kernel },
    { "srq: what cannot be", srq__refusals },
    { "srq: posting", srq__posting },
    { "srq: room comes by count", srq__room_by_count },
    { "srq: the count wraps", srq__count_wraps },
};

T_MAIN(cases)
