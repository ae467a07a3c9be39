/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest-driver/provider: atomic operations, immediate data and memory windows, with the sources as
 * shipped, between the models of kernel and device in model.h.
 */
#include "model.h"
#include "staghorndv.h"

#define NEW_OPS                                                                \
    (IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM |       \
     IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
     IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)

static struct sgp_qp *make(uint64_t ops)
{
    struct ibv_qp_init_attr_ex attr = qp_attr(16, 2, 0);

    attr.send_ops_flags |= ops;
    return to_sgp_qp(sgp_create_qp_ex(w.spd.ibpd.context, &attr));
}

static struct sgp_qp *begin(void)
{
    world_init();
    w.ctx->features = SG_FEATURE_ATOMICS | SG_FEATURE_IMM | SG_FEATURE_MW | SG_FEATURE_SEND_INV;
    return make(NEW_OPS);
}

static void end(struct sgp_qp *qp)
{
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static const struct sg_wqe_atomic *atomic_of(struct sgp_qp *qp, uint32_t index)
{
    return sg_wqe_atomic(sqe(qp, index));
}

/* ---- creation ---- */

static void create__follows_features(void)
{
    static const struct {
        uint32_t feature;
        uint64_t ops;
        uint32_t stride; /* of a queue pair with these operations and one element */
    } rows[] = {
        { SG_FEATURE_ATOMICS, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, 128 },
        { SG_FEATURE_ATOMICS, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, 128 },
        { SG_FEATURE_SEND_INV, IBV_QP_EX_WITH_SEND_WITH_INV, 64 },
        { SG_FEATURE_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, 64 },
        { SG_FEATURE_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM, 64 },
        { SG_FEATURE_MW, IBV_QP_EX_WITH_LOCAL_INV, 64 },
        { SG_FEATURE_MW, IBV_QP_EX_WITH_BIND_MW, 128 },
    };

    world_init();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp_init_attr_ex attr = qp_attr(4, 1, 0);
        struct ibv_qp *qp;

        T_CONTEXT("row %zu", i);
        attr.send_ops_flags = rows[i].ops;
        w.ctx->features = ~rows[i].feature;
        errno = 0;
        T_NULL(sgp_create_qp_ex(w.spd.ibpd.context, &attr));
        T_EQ_INT(errno, EOPNOTSUPP);
        w.ctx->features = rows[i].feature;
        qp = sgp_create_qp_ex(w.spd.ibpd.context, &attr);
        T_NOT_NULL(qp);
        T_EQ_U64(kernel.qp.sq_stride, rows[i].stride);
        sgp_destroy_qp(qp);
        /* A program that names no operations can post them all. */
        attr = qp_attr(4, 1, 0);
        attr.comp_mask &= ~IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        qp = sgp_create_qp_ex(w.spd.ibpd.context, &attr);
        T_NOT_NULL(qp);
        T_EQ_U64(kernel.qp.sq_stride,
                 rows[i].feature & (SG_FEATURE_IMM | SG_FEATURE_SEND_INV) ? 64 : 128);
        sgp_destroy_qp(qp);
    }
    world_fini();
}

/* ---- atomics ---- */

static void atomic__posted(void)
{
    struct ibv_sge sge = { 0x1000, 8, 7 };
    struct ibv_send_wr wr[2] = {
        { .wr_id = 1,
          .next = &wr[1],
          .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
          .sg_list = &sge,
          .num_sge = 1,
          .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
          .wr.atomic = { .remote_addr = 0x9000, .compare_add = 5, .swap = 99, .rkey = 77 } },
        { .wr_id = 2,
          .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
          .sg_list = &sge,
          .num_sge = 1,
          .wr.atomic = { .remote_addr = 0x9008, .compare_add = 5, .swap = 6, .rkey = 78 } },
    };
    struct ibv_send_wr *bad;
    struct sgp_qp *qp = begin();

    T_EQ_INT(sgp_post_send(&qp->vqp.qp, wr, &bad), 0);
    T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, 2));
    T_EQ_U64(sqe(qp, 0)->opcode, SG_WR_FETCH_ADD);
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_SIGNALED);
    T_EQ_U64(sqe(qp, 0)->num_sge, 1);
    T_EQ_U64(le64toh(sqe(qp, 0)->remote_addr), 0x9000);
    T_EQ_U64(le32toh(sqe(qp, 0)->rkey), 77);
    T_EQ_U64(le64toh(atomic_of(qp, 0)->data), 5);
    T_EQ_U64(atomic_of(qp, 0)->data_mask, 0);
    T_EQ_U64(atomic_of(qp, 0)->compare, 0);
    T_EQ_U64(atomic_of(qp, 0)->compare_mask, 0);
    T_TRUE((uint8_t *)sg_wqe_sge(sqe(qp, 0)) == (uint8_t *)sqe(qp, 0) + 80);
    T_EQ_U64(le32toh(sg_wqe_sge(sqe(qp, 0))->lkey), 7);
    T_EQ_U64(sqe(qp, 1)->opcode, SG_WR_CMP_SWAP);
    T_EQ_U64(le64toh(atomic_of(qp, 1)->data), 6);
    T_EQ_U64(atomic_of(qp, 1)->data_mask, UINT64_MAX);
    T_EQ_U64(le64toh(atomic_of(qp, 1)->compare), 5);
    T_EQ_U64(atomic_of(qp, 1)->compare_mask, UINT64_MAX);
    end(qp);
}

static void atomic__extended_and_masked(void)
{
    struct sgdv_cmp_swp cs = { 1, 2, 3, 4 };
    struct sgp_qp *qp = begin();
    struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_FENCE | IBV_SEND_SOLICITED;
    ibv_wr_atomic_cmp_swp(ex, 7, 0x70, 10, 11);
    ibv_wr_set_sge(ex, 1, 0x10, 8);
    ibv_wr_atomic_fetch_add(ex, 8, 0x80, 12);
    ibv_wr_set_sge_list(ex, 1, &(struct ibv_sge){ 0x20, 8, 2 });
    sgdv_wr_masked_cmp_swp(ex, 9, 0x90, &cs);
    ibv_wr_set_sge(ex, 3, 0x30, 8);
    sgdv_wr_masked_fetch_add(ex, 9, 0x90, 5, 0x8000000080000000);
    ibv_wr_set_sge(ex, 4, 0x40, 8);
    T_EQ_INT(ibv_wr_complete(ex), 0);
    T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, 4));
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_FENCE);
    T_EQ_U64(le64toh(atomic_of(qp, 0)->data), 11);
    T_EQ_U64(le64toh(atomic_of(qp, 0)->compare), 10);
    T_EQ_U64(atomic_of(qp, 0)->compare_mask, UINT64_MAX);
    T_EQ_U64(sqe(qp, 1)->opcode, SG_WR_FETCH_ADD);
    T_EQ_U64(le64toh(atomic_of(qp, 1)->data), 12);
    T_EQ_U64(le32toh(sg_wqe_sge(sqe(qp, 1))->lkey), 2);
    T_EQ_U64(le64toh(atomic_of(qp, 2)->compare), 1);
    T_EQ_U64(le64toh(atomic_of(qp, 2)->compare_mask), 2);
    T_EQ_U64(le64toh(atomic_of(qp, 2)->data), 3);
    T_EQ_U64(le64toh(atomic_of(qp, 2)->data_mask), 4);
    T_EQ_U64(sqe(qp, 3)->opcode, SG_WR_FETCH_ADD);
    T_EQ_U64(le64toh(atomic_of(qp, 3)->data_mask), 0x8000000080000000);
    T_EQ_U64(atomic_of(qp, 3)->compare, 0);
    end(qp);
}

/* ---- immediates ---- */

static void imm__octets_as_they_are(void)
{
    static const uint8_t octets[8] = { 0xde, 0xad, 0xbe, 0xef };
    struct ibv_sge sge = { 0x1000, 10, 1 }, none = { 0x1000, 0, 1 };
    struct ibv_send_wr wr[2] = {
        { .next = &wr[1],
          .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
          .sg_list = &sge,
          .num_sge = 1,
          .imm_data = htobe32(0xdeadbeef),
          .send_flags = IBV_SEND_SOLICITED,
          .wr.rdma = { .remote_addr = 0x9000, .rkey = 77 } },
        { .opcode = IBV_WR_SEND_WITH_IMM,
          .sg_list = &none,
          .num_sge = 1,
          .imm_data = htobe32(0xdeadbeef) },
    };
    struct sgp_qp *qp = begin();
    struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
    struct ibv_send_wr *bad;

    T_EQ_INT(sgp_post_send(&qp->vqp.qp, wr, &bad), 0);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SOLICITED;
    ibv_wr_rdma_write_imm(ex, 6, 0x60, htobe32(0xdeadbeef));
    ibv_wr_set_inline_data(ex, (void *)"ab", 2);
    ibv_wr_send_imm(ex, htobe32(0xdeadbeef));
    ibv_wr_set_sge(ex, 0, 0, 0);
    ibv_wr_send_imm(ex, htobe32(0xdeadbeef));
    T_EQ_INT(ibv_wr_complete(ex), 0);
    for (uint32_t i = 0; i < 5; i++) {
        bool write = i == 0 || i == 2;

        T_CONTEXT("entry %u", i);
        T_EQ_MEM(&sqe(qp, i)->imm, octets, 8);
        T_EQ_U64(sqe(qp, i)->opcode, write ? SG_WR_WRITE_IMM : SG_WR_SEND_IMM);
        T_EQ_U64(sqe(qp, i)->num_sge, i == 0);
        T_EQ_U64(sqe(qp, i)->flags, i == 1   ? 0
                                    : i == 2 ? SG_WQE_SOLICITED | SG_WQE_INLINE
                                             : SG_WQE_SOLICITED);
    }
    T_EQ_U64(le64toh(sqe(qp, 0)->remote_addr), 0x9000);
    T_EQ_U64(le32toh(sqe(qp, 2)->rkey), 6);
    end(qp);
}

static void imm__completions(void)
{
    struct ibv_wc wc[4];
    struct sgp_qp *qp = begin();
    struct sgp_cq *cq = to_sgp_cq(w.cq);

    complete(qp->qpn, 1, 0, SG_WC_RECV_IMM, SG_CQE_RECV | SG_CQE_WITH_IMM, SG_WC_SUCCESS);
    memcpy(&cq->ring[0].imm, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
    complete(qp->qpn, 2, 0, SG_WC_WRITE_IMM, 0, SG_WC_SUCCESS);
    complete(qp->qpn, 3, 1, SG_WC_SEND_IMM, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 4, wc), 3);
    T_EQ_U64(wc[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    T_EQ_U64(wc[0].wc_flags, IBV_WC_WITH_IMM);
    T_EQ_U64(be32toh(wc[0].imm_data), 0x01020304);
    T_EQ_U64(wc[1].opcode, IBV_WC_RDMA_WRITE);
    T_EQ_U64(wc[1].wc_flags, 0);
    T_EQ_U64(wc[2].opcode, IBV_WC_SEND);
    end(qp);
}

static void imm__extended_poll(void)
{
    struct ibv_cq_init_attr_ex attr = { .cqe = 8, .wc_flags = IBV_WC_EX_WITH_IMM };
    struct ibv_poll_cq_attr poll = { 0 };
    struct ibv_cq_ex *ex;
    struct sgp_qp *qp;

    world_init();
    sgp_destroy_cq(w.cq);
    ex = sgp_create_cq_ex(w.spd.ibpd.context, &attr);
    w.cq = ibv_cq_ex_to_cq(ex);
    qp = make_qp(4, 1, 0);
    complete(qp->qpn, 1, 0, SG_WC_RECV_IMM, SG_CQE_RECV | SG_CQE_WITH_IMM, SG_WC_SUCCESS);
    memcpy(&to_sgp_cq(w.cq)->ring[0].imm, "\x01\x02\x03\x04", 4);
    complete(qp->qpn, 2, 1, SG_WC_RECV, SG_CQE_RECV | SG_CQE_WITH_INV, SG_WC_SUCCESS);
    T_EQ_INT(ibv_start_poll(ex, &poll), 0);
    T_EQ_U64(ibv_wc_read_opcode(ex), IBV_WC_RECV_RDMA_WITH_IMM);
    T_EQ_U64(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_IMM);
    T_EQ_U64(be32toh(ibv_wc_read_imm_data(ex)), 0x01020304);
    T_EQ_INT(ibv_next_poll(ex), 0);
    T_EQ_U64(ibv_wc_read_invalidated_rkey(ex), 0x55);
    ibv_end_poll(ex);
    end(qp);
}

static void atomic__completions(void)
{
    struct ibv_wc wc[4];
    struct sgp_qp *qp = begin();

    complete(qp->qpn, 1, 0, SG_WC_FETCH_ADD, 0, SG_WC_SUCCESS);
    complete(qp->qpn, 2, 1, SG_WC_CMP_SWAP, 0, SG_WC_REM_OP_ERR);
    complete(qp->qpn, 3, 2, SG_WC_BIND_MW, 0, SG_WC_MW_BIND_ERR);
    complete(qp->qpn, 4, 3, SG_WC_LOCAL_INV, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 4, wc), 4);
    T_EQ_U64(wc[0].opcode, IBV_WC_FETCH_ADD);
    T_EQ_U64(wc[1].opcode, IBV_WC_COMP_SWAP);
    T_EQ_U64(wc[1].status, IBV_WC_REM_OP_ERR);
    T_EQ_U64(wc[2].opcode, IBV_WC_BIND_MW);
    T_EQ_U64(wc[2].status, IBV_WC_MW_BIND_ERR);
    T_EQ_U64(wc[3].opcode, IBV_WC_LOCAL_INV);
    end(qp);
}

/* ---- windows ---- */

static void window__bound(void)
{
    struct ibv_mr mr = { .pd = &w.spd.ibpd, .lkey = 0x1122 };
    struct ibv_mw_bind bind = {
        .wr_id = 5,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = { &mr, 0x8000, 0x100, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED },
    };
    struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;
    struct sgp_qp *qp = begin();
    struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
    struct ibv_mw *one = sgp_alloc_mw(&w.spd.ibpd, IBV_MW_TYPE_1);
    struct ibv_mw *two = sgp_alloc_mw(&w.spd.ibpd, IBV_MW_TYPE_2);
    const struct sg_wqe_bind *b;

    T_EQ_INT(sgp_bind_mw(&qp->vqp.qp, one, &bind), 0);
    T_EQ_U64(one->rkey, 0x4401);
    T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, 1));
    T_EQ_U64(sqe(qp, 0)->opcode, SG_WR_BIND_MW);
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_SIGNALED);
    b = sg_wqe_bind(sqe(qp, 0));
    T_EQ_U64(le32toh(b->stag), 0x4401);
    T_EQ_U64(le32toh(b->mr_stag), 0x1122);
    T_EQ_U64(le32toh(b->access), SG_ACCESS_REMOTE_READ | SG_ACCESS_ZERO_BASED);
    T_EQ_U64(le64toh(b->va), 0x8000);
    T_EQ_U64(le64toh(b->length), 0x100);
    /* Unbound: nothing but the window is named. */
    bind.bind_info.length = 0;
    bind.bind_info.mr = NULL;
    T_EQ_INT(sgp_bind_mw(&qp->vqp.qp, one, &bind), 0);
    b = sg_wqe_bind(sqe(qp, 1));
    T_EQ_U64(le32toh(b->stag), 0x4402);
    T_EQ_U64(b->mr_stag, 0);
    T_EQ_U64(b->access, 0);
    T_EQ_U64(b->length, 0);
    /* Type 2: the program chooses the key; mw->rkey is unchanged. */
    wr.bind_mw.mw = two;
    wr.bind_mw.rkey = 0x44aa;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ &mr, 0x9000, 8, IBV_ACCESS_REMOTE_ATOMIC };
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), 0);
    T_EQ_U64(le32toh(sg_wqe_bind(sqe(qp, 2))->stag), 0x44aa);
    T_EQ_U64(le32toh(sg_wqe_bind(sqe(qp, 2))->access), SG_ACCESS_REMOTE_ATOMIC);
    T_EQ_U64(two->rkey, 0x4400);
    ibv_wr_start(ex);
    ex->wr_flags = 0;
    ibv_wr_bind_mw(ex, two, 0x44bb, &wr.bind_mw.bind_info);
    ibv_wr_local_inv(ex, 0x44bb);
    T_EQ_INT(ibv_wr_complete(ex), 0);
    T_EQ_U64(le32toh(sg_wqe_bind(sqe(qp, 3))->stag), 0x44bb);
    T_EQ_U64(sqe(qp, 4)->opcode, SG_WR_LOCAL_INV);
    T_EQ_U64(le32toh(sqe(qp, 4)->inv_stag), 0x44bb);
    T_EQ_INT(sgp_dealloc_mw(one), 0);
    T_EQ_INT(sgp_dealloc_mw(two), 0);
    end(qp);
}

static void window__refused(void)
{
    struct ibv_pd other = { .handle = 1 };
    struct ibv_mr mr = { .pd = &w.spd.ibpd }, foreign = { .pd = &other };
    const struct {
        struct ibv_mw_bind_info info;
        int type, want;
    } rows[] = {
        { { &mr, 0, 8, IBV_ACCESS_ON_DEMAND }, 1, EINVAL },
        { { &mr, 0, 8, IBV_ACCESS_MW_BIND }, 2, EINVAL },
        { { &mr, 0, 8, 1u << 31 }, 2, EINVAL },
        { { NULL, 0, 8, IBV_ACCESS_REMOTE_READ }, 1, EINVAL },
        { { NULL, 0, 8, IBV_ACCESS_REMOTE_READ }, 2, EINVAL },
        { { &mr, 0, 0, IBV_ACCESS_REMOTE_READ }, 2, EINVAL },
        { { &foreign, 0, 8, IBV_ACCESS_REMOTE_READ }, 1, EPERM },
        { { &foreign, 0, 8, IBV_ACCESS_REMOTE_READ }, 2, EPERM },
    };
    struct sgp_qp *qp = begin();
    struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_mw *mw =
            sgp_alloc_mw(&w.spd.ibpd, rows[i].type == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
        struct ibv_mw_bind bind = { .bind_info = rows[i].info };
        struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;

        T_CONTEXT("row %zu", i);
        wr.bind_mw.mw = mw;
        wr.bind_mw.bind_info = rows[i].info;
        if (rows[i].type == 1) {
            T_EQ_INT(sgp_bind_mw(&qp->vqp.qp, mw, &bind), rows[i].want);
            T_EQ_U64(mw->rkey, 0x4400);
        } else {
            T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), rows[i].want);
            ibv_wr_start(ex);
            ibv_wr_bind_mw(ex, mw, 1, &rows[i].info);
            T_EQ_INT(ibv_wr_complete(ex), rows[i].want);
        }
        /* A window of type 1 cannot be bound by a posted request. */
        if (rows[i].type == 1) {
            T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
        }
        sgp_dealloc_mw(mw);
    }
    T_EQ_U64(db(SG_DB_SQ), 0);
    kernel.fail_mw = ENOMEM;
    T_NULL(sgp_alloc_mw(&w.spd.ibpd, IBV_MW_TYPE_1));
    T_EQ_INT(errno, ENOMEM);
    w.ctx->features = 0;
    T_NULL(sgp_alloc_mw(&w.spd.ibpd, IBV_MW_TYPE_1));
    T_EQ_INT(errno, EOPNOTSUPP);
    end(qp);
}

/* ---- refusals ---- */

static void post__refused(void)
{
    static char data[8];
    struct ibv_sge sge[2] = { { (uintptr_t)data, 8, 1 }, { (uintptr_t)data, 4, 1 } };
    const struct {
        struct ibv_send_wr wr;
        int want;
    } rows[] = {
        { { .opcode = IBV_WR_SEND_WITH_IMM, .sg_list = sge, .num_sge = 1 }, EOPNOTSUPP },
        { { .opcode = IBV_WR_SEND_WITH_IMM,
            .sg_list = sge,
            .num_sge = 1,
            .send_flags = IBV_SEND_INLINE },
          EOPNOTSUPP },
        { { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge, .num_sge = 0 }, EINVAL },
        { { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge, .num_sge = 2 }, EINVAL },
        { { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .sg_list = sge + 1, .num_sge = 1 }, EINVAL },
        { { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
            .sg_list = sge,
            .num_sge = 1,
            .send_flags = IBV_SEND_INLINE },
          EINVAL },
        { { .opcode = IBV_WR_LOCAL_INV, .sg_list = sge, .num_sge = 1 }, EINVAL },
        { { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .sg_list = sge, .num_sge = 1000 }, EINVAL },
    };
    struct sgp_qp *qp = begin(), *small;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_send_wr wr = rows[i].wr, *bad = NULL;

        T_CONTEXT("row %zu", i);
        T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), rows[i].want);
        T_TRUE(bad == &wr);
        qp->features = 0;
        T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), EOPNOTSUPP);
        qp->features = w.ctx->features;
    }
    T_EQ_U64(db(SG_DB_SQ), 0);
    /* Operations that the queue pair was not made for do not fit in its slots. */
    small = make(0);
    T_EQ_U64(kernel.qp.sq_stride, 128); /* two elements */
    sgp_destroy_qp(&small->vqp.qp);
    end(qp);
}

static void wr__refused(void)
{
    struct ibv_sge two[2] = { { 0, 8, 0 }, { 0, 8, 0 } };
    struct sgdv_cmp_swp cs = { 0 };
    struct sgp_qp *qp = begin();
    struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

#define REFUSED(err, ...)                   \
    do {                                    \
        ibv_wr_start(ex);                   \
        __VA_ARGS__;                        \
        T_EQ_INT(ibv_wr_complete(ex), err); \
    } while (0)
    ex->wr_flags = 0;
    REFUSED(EINVAL, ibv_wr_atomic_fetch_add(ex, 0, 0, 0), ibv_wr_set_sge(ex, 0, 0, 4));
    REFUSED(EINVAL, ibv_wr_atomic_fetch_add(ex, 0, 0, 0), ibv_wr_set_sge_list(ex, 2, two));
    REFUSED(EINVAL, ibv_wr_atomic_cmp_swp(ex, 0, 0, 0, 0), ibv_wr_set_inline_data(ex, two, 8));
    REFUSED(EOPNOTSUPP, ibv_wr_send_imm(ex, 0), ibv_wr_set_sge(ex, 0, 0, 1));
    REFUSED(EOPNOTSUPP, ibv_wr_send_imm(ex, 0), ibv_wr_set_sge_list(ex, 2, two));
    REFUSED(EOPNOTSUPP, ibv_wr_send_imm(ex, 0), ibv_wr_set_inline_data(ex, two, 1));
    qp->features &= ~SG_FEATURE_ATOMICS;
    REFUSED(EOPNOTSUPP, sgdv_wr_masked_cmp_swp(ex, 0, 0, &cs));
    qp->features |= SG_FEATURE_ATOMICS;
    qp->sq_room = 16;
    REFUSED(EOPNOTSUPP, sgdv_wr_masked_fetch_add(ex, 0, 0, 0, 0));
    T_EQ_U64(db(SG_DB_SQ), 0);
    end(qp);
}

static const struct t_case cases[] = {
    { "creation follows features; room for operands", create__follows_features },
    { "atomics by ibv_post_send", atomic__posted },
    { "atomics, extended and masked", atomic__extended_and_masked },
    { "opcodes of completions", atomic__completions },
    { "immediates: the octets as they are", imm__octets_as_they_are },
    { "immediates: completions", imm__completions },
    { "immediates: extended polling", imm__extended_poll },
    { "windows of both types are bound", window__bound },
    { "windows: what cannot be bound", window__refused },
    { "what ibv_post_send refuses", post__refused },
    { "what ibv_wr_complete refuses", wr__refused },
};

T_MAIN(cases)
