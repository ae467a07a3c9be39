/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest-driver/provider: posting, polling, creation and destruction, with the sources as shipped,
 * between the models of kernel and device in model.h.
 */
#include "model.h"

/* ---- creation ---- */

static void create__tells_the_kernel(void)
{
    struct sgp_qp *qp;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    world_init();
    T_EQ_U64(kernel.cq.entries, 64);
    T_TRUE(kernel.cq.buf_len >= 64 * 64 + 64);
    T_EQ_U64(kernel.cq.buf % 4096, 0);
    qp = make_qp(100, 3, 60);
    T_EQ_U64(kernel.qp.sq_entries, 128);
    T_EQ_U64(kernel.qp.rq_entries, 128);
    T_EQ_U64(kernel.qp.sq_stride, 128);
    T_EQ_U64(kernel.qp.rq_stride, 64);
    T_EQ_U64(kernel.qp.sq_max_sge, 5);
    T_EQ_U64(kernel.qp.rq_max_sge, 3);
    T_EQ_U64(kernel.qp.max_inline, 80);
    T_EQ_U64(kernel.qp.sq_buf % 4096, 0);
    T_EQ_U64(kernel.qp.rq_buf % 4096, 0);
    T_EQ_INT(sgp_query_qp(&qp->vqp.qp, &attr, IBV_QP_CAP, &init), 0);
    T_EQ_U64(init.cap.max_send_wr, 128);
    T_EQ_U64(attr.cap.max_inline_data, 80);
    T_TRUE(qp->vqp.comp_mask & VERBS_QP_EX);
    T_EQ_INT(sgp_destroy_qp(&qp->vqp.qp), 0);
    world_fini();
}

static void create__refusals(void)
{
    struct ibv_qp_init_attr_ex attr;

    world_init();
#define REFUSED(err, ...)                                    \
    do {                                                     \
        attr = qp_attr(4, 1, 0);                             \
        __VA_ARGS__;                                         \
        errno = 0;                                           \
        T_NULL(sgp_create_qp_ex(w.spd.ibpd.context, &attr)); \
        T_EQ_INT(errno, err);                                \
    } while (0)
    REFUSED(EOPNOTSUPP, attr.qp_type = IBV_QPT_UD);
    REFUSED(EOPNOTSUPP, attr.send_ops_flags |= IBV_QP_EX_WITH_FLUSH);
    REFUSED(EOPNOTSUPP, attr.send_ops_flags |= IBV_QP_EX_WITH_SEND_WITH_IMM);
    REFUSED(EOPNOTSUPP, attr.comp_mask |= IBV_QP_INIT_ATTR_XRCD);
    REFUSED(EINVAL, attr.cap.max_send_sge = SG_SQ_MAX_SGE + 1);
    REFUSED(EINVAL, attr.cap.max_recv_sge = SG_RQ_MAX_SGE + 1);
    REFUSED(EINVAL, attr.cap.max_inline_data = SG_MAX_INLINE + 1);
    REFUSED(EINVAL, attr.cap.max_send_wr = UINT32_MAX);
    REFUSED(EINVAL, attr.comp_mask = 0);
    REFUSED(ENOSPC, kernel.fail_qp = ENOSPC);
    kernel.fail_qp = 0;
    REFUSED(EOVERFLOW, kernel.next_qpn = 1 << SGP_QPN_BITS);
    errno = 0;
    T_NULL(sgp_create_cq(w.spd.ibpd.context, 0, NULL, 0));
    T_EQ_INT(errno, EINVAL);
    world_fini();
}

/* ---- ibv_post_* ---- */

static void post__list_and_one_doorbell(void)
{
    struct ibv_sge sge[2] = { { 0x1000, 10, 1 }, { 0x2000, 20, 2 } };
    struct ibv_send_wr wr[3] = {
        { .wr_id = 1,
          .next = &wr[1],
          .opcode = IBV_WR_SEND,
          .sg_list = sge,
          .num_sge = 2,
          .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED },
        { .wr_id = 2,
          .next = &wr[2],
          .opcode = IBV_WR_RDMA_WRITE,
          .sg_list = sge,
          .num_sge = 1,
          .send_flags = IBV_SEND_FENCE | IBV_SEND_SOLICITED,
          .wr.rdma = { .remote_addr = 0x9000, .rkey = 77 } },
        { .wr_id = 3, .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = 88 },
    };
    struct ibv_send_wr *bad;
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(8, 2, 0);
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, wr, &bad), 0);
    T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, 3));
    T_EQ_U64(sqe(qp, 0)->opcode, SG_WR_SEND);
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_SIGNALED | SG_WQE_SOLICITED);
    T_EQ_U64(sqe(qp, 0)->num_sge, 2);
    T_EQ_U64(le32toh(sg_wqe_sge(sqe(qp, 0))[1].lkey), 2);
    T_EQ_U64(sqe(qp, 1)->flags, SG_WQE_FENCE);
    T_EQ_U64(le64toh(sqe(qp, 1)->remote_addr), 0x9000);
    T_EQ_U64(le32toh(sqe(qp, 1)->rkey), 77);
    T_EQ_U64(le32toh(sqe(qp, 1)->index), 1);
    T_EQ_U64(le32toh(sqe(qp, 2)->inv_stag), 88);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void post__bad_request(void)
{
    static char data[300];
    struct ibv_sge sge[3] = { { (uintptr_t)data, 200, 1 }, { (uintptr_t)data, 100, 1 } };
    struct ibv_send_wr good = { .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 1 };
    struct ibv_send_wr bad, *at;
    struct sgp_qp *qp;
    uint32_t posted = 0;

    world_init();
    qp = make_qp(64, 2, 256);
    qp->sq_max_sge = 2;
    qp->max_inline = 256;
#define BAD(err, ...)                                              \
    do {                                                           \
        bad = (struct ibv_send_wr){ .sg_list = sge, __VA_ARGS__ }; \
        good.next = &bad;                                          \
        at = NULL;                                                 \
        T_EQ_INT(sgp_post_send(&qp->vqp.qp, &good, &at), err);     \
        T_TRUE(at == &bad);                                        \
        T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, ++posted));          \
    } while (0)
    BAD(EINVAL, .opcode = IBV_WR_SEND, .num_sge = 3);
    BAD(EINVAL, .opcode = IBV_WR_SEND, .num_sge = -1);
    BAD(EINVAL, .opcode = IBV_WR_RDMA_READ, .num_sge = 3);
    BAD(EINVAL, .opcode = IBV_WR_RDMA_READ, .num_sge = 1, .send_flags = IBV_SEND_INLINE);
    BAD(EINVAL, .opcode = IBV_WR_SEND, .num_sge = 2, .send_flags = IBV_SEND_INLINE);
    BAD(EOPNOTSUPP, .opcode = IBV_WR_LOCAL_INV);
    BAD(EOPNOTSUPP, .opcode = IBV_WR_SEND_WITH_IMM);
    BAD(EOPNOTSUPP, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD);
    BAD(EOPNOTSUPP, .opcode = IBV_WR_FLUSH);
    BAD(EOPNOTSUPP, .opcode = (enum ibv_wr_opcode) - 1);
    BAD(EOPNOTSUPP, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_IP_CSUM);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void post__inline_is_copied(void)
{
    char data[32] = "payload that soon changes";
    struct ibv_sge sge = { (uintptr_t)data, 25, 0 };
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
                              .send_flags = IBV_SEND_INLINE, }, *bad;
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(8, 1, 32);
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), 0);
    memset(data, 0, sizeof(data));
    T_EQ_MEM(sqe(qp, 0) + 1, "payload that soon changes", 25);
    T_EQ_U64(le16toh(sqe(qp, 0)->inline_len), 25);
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_INLINE);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void post__full_until_completion(void)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
    struct ibv_recv_wr rwr = { .wr_id = 5 }, *rbad;
    struct ibv_wc wc[4];
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(4, 1, 0);
    for (int i = 0; i < 4; i++) {
        T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), 0);
        T_EQ_INT(sgp_post_recv(&qp->vqp.qp, &rwr, &rbad), 0);
    }
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), ENOMEM);
    T_TRUE(bad == &wr);
    T_EQ_INT(sgp_post_recv(&qp->vqp.qp, &rwr, &rbad), ENOMEM);
    T_TRUE(rbad == &rwr);
    T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, 4));
    T_EQ_U64(db(SG_DB_RQ), db_of(qp->qpn, 4));
    /* One completion for the first three sends; none for the receives. */
    complete(qp->qpn, 7, 2, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 4, wc), 1);
    for (int i = 0; i < 3; i++) {
        T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), 0);
    }
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), ENOMEM);
    T_EQ_INT(sgp_post_recv(&qp->vqp.qp, &rwr, &rbad), ENOMEM);
    complete(qp->qpn, 5, 0, SG_WC_RECV, SG_CQE_RECV, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 4, wc), 1);
    T_EQ_INT(sgp_post_recv(&qp->vqp.qp, &rwr, &rbad), 0);
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), ENOMEM);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

/* ---- ibv_wr_* ---- */

static void wr__list_and_one_doorbell(void)
{
    struct ibv_data_buf bufs[2] = { { (void *)"abc", 3 }, { (void *)"de", 2 } };
    struct ibv_sge sges[2] = { { 0x10, 1, 2 }, { 0x20, 3, 4 } };
    struct ibv_qp_ex *ex;
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(8, 2, 16);
    ex = &qp->vqp.qp_ex;
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    ibv_wr_send(ex);
    ibv_wr_set_inline_data_list(ex, 2, bufs);
    ex->wr_id = 2;
    ex->wr_flags = IBV_SEND_FENCE;
    ibv_wr_rdma_read(ex, 5, 0x5000);
    ibv_wr_set_sge(ex, 6, 0x6000, 64);
    ex->wr_id = 3;
    ex->wr_flags = 0;
    ibv_wr_rdma_write(ex, 7, 0x7000);
    ibv_wr_set_sge_list(ex, 2, sges);
    ibv_wr_send_inv(ex, 0x99);
    T_EQ_U64(db(SG_DB_SQ), 0);
    T_EQ_INT(ibv_wr_complete(ex), 0);
    T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, 4));
    T_EQ_MEM(sqe(qp, 0) + 1, "abcde", 5);
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_SIGNALED | SG_WQE_INLINE);
    T_EQ_U64(sqe(qp, 1)->opcode, SG_WR_READ);
    T_EQ_U64(sqe(qp, 1)->num_sge, 1);
    T_EQ_U64(le32toh(sg_wqe_sge(sqe(qp, 1))->length), 64);
    T_EQ_U64(sqe(qp, 2)->num_sge, 2);
    T_EQ_U64(le64toh(sqe(qp, 2)->wr_id), 3);
    T_EQ_U64(le32toh(sqe(qp, 3)->inv_stag), 0x99);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void wr__error_or_abort_posts_nothing(void)
{
    static char data[SG_MAX_INLINE + 1];
    struct ibv_sge sges[3] = { { 0 } };
    struct ibv_qp_ex *ex;
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(4, 2, 16);
    qp->sq_max_sge = 2;
    ex = &qp->vqp.qp_ex;
    ex->wr_flags = 0;
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_abort(ex);
    ibv_wr_start(ex);
    ibv_wr_rdma_read(ex, 0, 0);
    ibv_wr_set_sge_list(ex, 3, sges);
    ibv_wr_send(ex); /* skipped after an error */
    ibv_wr_set_sge(ex, 0, 0, 0);
    T_EQ_INT(ibv_wr_complete(ex), EINVAL);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_inline_data(ex, data, sizeof(data));
    T_EQ_INT(ibv_wr_complete(ex), EINVAL);
    ibv_wr_start(ex);
    for (int i = 0; i < 5; i++) {
        ibv_wr_send(ex);
    }
    T_EQ_INT(ibv_wr_complete(ex), ENOMEM);
    T_EQ_U64(db(SG_DB_SQ), 0);
    ibv_wr_start(ex);
    T_EQ_INT(ibv_wr_complete(ex), 0);
    T_EQ_U64(db(SG_DB_SQ), 0);
    ibv_wr_start(ex);
    for (int i = 0; i < 4; i++) {
        ibv_wr_send(ex);
    }
    T_EQ_INT(ibv_wr_complete(ex), 0);
    T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, 4));
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void wr__all_signaled(void)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = NULL,
        .cap = { 4, 4, 1, 1, 0 },
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
    struct sgp_qp *qp;

    world_init();
    attr.send_cq = attr.recv_cq = w.cq;
    qp = to_sgp_qp(sgp_create_qp(&w.spd.ibpd, &attr));
    T_FALSE(qp->vqp.comp_mask & VERBS_QP_EX);
    T_EQ_U64(attr.cap.max_inline_data, 16);
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), 0);
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_SIGNALED);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

/* ---- polling ---- */

static void poll__fields(void)
{
    struct ibv_wc wc[4];
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(8, 1, 0);
    T_EQ_INT(sgp_poll_cq(w.cq, 4, wc), 0);
    complete(qp->qpn, 11, 0, SG_WC_RECV, SG_CQE_RECV | SG_CQE_WITH_INV, SG_WC_SUCCESS);
    complete(qp->qpn, 12, 0, SG_WC_READ, 0, SG_WC_REM_ACCESS_ERR);
    complete(qp->qpn, 13, 1, SG_WC_WRITE, 0, 200);
    memset(wc, 0xee, sizeof(wc));
    T_EQ_INT(sgp_poll_cq(w.cq, 4, wc), 3);
    T_EQ_U64(wc[0].wr_id, 11);
    T_EQ_U64(wc[0].opcode, IBV_WC_RECV);
    T_EQ_U64(wc[0].wc_flags, IBV_WC_WITH_INV);
    T_EQ_U64(wc[0].invalidated_rkey, 0x55);
    T_EQ_U64(wc[0].byte_len, 100);
    T_EQ_U64(wc[0].qp_num, qp->qpn);
    T_EQ_U64(wc[1].opcode, IBV_WC_RDMA_READ);
    T_EQ_U64(wc[1].status, IBV_WC_REM_ACCESS_ERR);
    T_EQ_U64(wc[2].opcode, IBV_WC_RDMA_WRITE);
    T_EQ_U64(wc[2].status, IBV_WC_GENERAL_ERR);
    T_EQ_U64(record(), 3);
    T_EQ_INT(sgp_req_notify_cq(w.cq, 1), 0);
    T_EQ_U64(db(SG_DB_CQ_ARM), db_of(0x123 | SG_CQ_ARM_SOLICITED, 3));
    T_EQ_INT(sgp_req_notify_cq(w.cq, 0), 0);
    T_EQ_U64(db(SG_DB_CQ_ARM), db_of(0x123, 3));
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void poll__many_laps(void)
{
    struct ibv_wc wc[64];
    struct sgp_qp *qp;
    uint64_t written = 0, read = 0;

    world_init();
    qp = make_qp(64, 1, 0);
    for (int round = 0; round < 100; round++) {
        int n = round * 7 % 64 + 1, got;

        for (int i = 0; i < n; i++, written++) {
            complete(qp->qpn, written, (uint32_t)written, SG_WC_SEND, 0, SG_WC_SUCCESS);
        }
        got = sgp_poll_cq(w.cq, 64, wc);
        T_EQ_INT(got, n);
        for (int i = 0; i < got; i++, read++) {
            T_EQ_U64(wc[i].wr_id, read);
        }
        T_EQ_U64(record(), written);
    }
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void poll__destroyed_queue_pair(void)
{
    struct ibv_wc wc[8];
    struct sgp_qp *a, *b, *c;
    uint32_t qpn;

    world_init();
    a = make_qp(8, 1, 0);
    b = make_qp(8, 1, 0);
    T_EQ_U64(b->qpn, 0x1fff);
    qpn = a->qpn;
    complete(a->qpn, 1, 0, SG_WC_SEND, 0, SG_WC_SUCCESS);
    complete(b->qpn, 2, 0, SG_WC_SEND, 0, SG_WC_SUCCESS);
    complete(a->qpn, 3, 1, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_destroy_qp(&a->vqp.qp), 0);
    /* Its number is reused at once. */
    kernel.next_qpn = qpn;
    c = make_qp(8, 1, 0);
    T_EQ_U64(c->qpn, qpn);
    complete(c->qpn, 4, 0, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 2);
    T_EQ_U64(wc[0].wr_id, 2);
    T_EQ_U64(wc[1].wr_id, 4);
    T_EQ_U64(record(), 4);
    T_EQ_U64(atomic_load(&c->sq.tail), 1);
    /* Only void entries: nothing is reported, but their slots are freed. */
    complete(b->qpn, 5, 1, SG_WC_SEND, 0, SG_WC_SUCCESS);
    complete(0x00ffffff, 6, 1, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_destroy_qp(&b->vqp.qp), 0);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 0);
    T_EQ_U64(record(), 6);
    qpn = c->qpn;
    T_EQ_INT(sgp_destroy_qp(&c->vqp.qp), 0);
    complete(qpn, 7, 1, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(sgp_poll_cq(w.cq, 8, wc), 0);
    world_fini();
}

static void poll__reset_frees_the_queues(void)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
    struct ibv_wc wc[2];
    struct sgp_qp *qp;

    world_init();
    qp = make_qp(2, 1, 0);
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), 0);
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), 0);
    complete(qp->qpn, 1, 0, SG_WC_SEND, 0, SG_WC_FLUSH_ERR);
    T_EQ_INT(sgp_modify_qp(&qp->vqp.qp, &attr, IBV_QP_STATE), 0);
    T_EQ_INT(sgp_poll_cq(w.cq, 2, wc), 0);
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), 0);
    T_EQ_U64(le32toh(sqe(qp, 2)->index), 2);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static void poll__extended(void)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 8,
        .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
        .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
    };
    struct ibv_poll_cq_attr poll = { 0 };
    struct ibv_cq_ex *ex;
    struct sgp_qp *qp;

    world_init();
    sgp_destroy_cq(w.cq);
    attr.wc_flags |= IBV_WC_EX_WITH_CVLAN;
    T_NULL(sgp_create_cq_ex(w.spd.ibpd.context, &attr));
    T_EQ_INT(errno, EOPNOTSUPP);
    attr.wc_flags &= ~(uint64_t)IBV_WC_EX_WITH_CVLAN;
    ex = sgp_create_cq_ex(w.spd.ibpd.context, &attr);
    T_NOT_NULL(ex);
    w.cq = ibv_cq_ex_to_cq(ex);
    qp = make_qp(8, 1, 0);

    T_EQ_INT(ibv_start_poll(ex, &poll), ENOENT);
    T_EQ_INT(ibv_start_poll(ex, &poll), ENOENT); /* and the lock is released */
    complete(qp->qpn, 21, 0, SG_WC_RECV, SG_CQE_RECV | SG_CQE_WITH_INV, SG_WC_SUCCESS);
    complete(0x00ffffff, 0, 0, SG_WC_SEND, 0, SG_WC_SUCCESS);
    complete(qp->qpn, 22, 0, SG_WC_WRITE, 0, SG_WC_FLUSH_ERR);
    T_EQ_INT(ibv_start_poll(ex, &poll), 0);
    T_EQ_U64(ex->wr_id, 21);
    T_EQ_U64(ex->status, IBV_WC_SUCCESS);
    T_EQ_U64(ibv_wc_read_opcode(ex), IBV_WC_RECV);
    T_EQ_U64(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_INV);
    T_EQ_U64(ibv_wc_read_invalidated_rkey(ex), 0x55);
    T_EQ_U64(ibv_wc_read_byte_len(ex), 100);
    T_EQ_U64(ibv_wc_read_qp_num(ex), qp->qpn);
    T_EQ_U64(ibv_wc_read_completion_ts(ex), 1000);
    T_EQ_U64(ibv_wc_read_slid(ex), 0);
    T_EQ_U64(record(), 0); /* the entry is not released yet, also not by arming */
    T_EQ_INT(sgp_req_notify_cq(w.cq, 0), 0);
    T_EQ_U64(db(SG_DB_CQ_ARM), db_of(0x124, 0));
    T_EQ_INT(ibv_next_poll(ex), 0);
    T_EQ_U64(ex->wr_id, 22);
    T_EQ_U64(ex->status, IBV_WC_WR_FLUSH_ERR);
    T_EQ_INT(ibv_next_poll(ex), ENOENT);
    ibv_end_poll(ex);
    T_EQ_U64(record(), 3);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static uint64_t wall(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void poll__wall_clock(void)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 8,
        .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
    };
    const uint64_t adapter = 77000000000;
    struct ibv_poll_cq_attr poll = { 0 };
    uint64_t before, after, first;
    struct ibv_cq_ex *ex;
    struct sgp_qp *qp;

    world_init();
    sgp_destroy_cq(w.cq);
    ex = sgp_create_cq_ex(w.spd.ibpd.context, &attr);
    T_NOT_NULL(ex);
    w.cq = ibv_cq_ex_to_cq(ex);
    qp = make_qp(8, 1, 0);
    w.db[SG_DB_CLOCK / 8] = htole64(adapter);
    complete(qp->qpn, 1, 0, SG_WC_SEND, 0, SG_WC_SUCCESS);
    complete(qp->qpn, 2, 1, SG_WC_SEND, 0, SG_WC_SUCCESS);
    T_EQ_INT(ibv_start_poll(ex, &poll), 0);
    before = wall();
    first = ibv_wc_read_completion_wallclock_ns(ex);
    after = wall();
    T_TRUE(first >= before - adapter + 1000);
    T_TRUE(first <= after - adapter + 1000);
    /* The offset between the clocks is measured at most once in a second. */
    w.db[SG_DB_CLOCK / 8] = 0;
    T_EQ_INT(ibv_next_poll(ex), 0);
    T_EQ_U64(ibv_wc_read_completion_wallclock_ns(ex), first + 1);
    to_sgp_cq(w.cq)->wall.measured -= 1100000000;
    T_TRUE(ibv_wc_read_completion_wallclock_ns(ex) >= before);
    ibv_end_poll(ex);
    sgp_destroy_qp(&qp->vqp.qp);
    world_fini();
}

static const struct t_case cases[] = {
    { "creation tells the kernel sizes that fit", create__tells_the_kernel },
    { "creation refuses what cannot be", create__refusals },
    { "a list of sends and one doorbell", post__list_and_one_doorbell },
    { "a bad request ends the list", post__bad_request },
    { "inline data is copied when posted", post__inline_is_copied },
    { "queues are full until completions come", post__full_until_completion },
    { "extended: a list and one doorbell", wr__list_and_one_doorbell },
    { "extended: an error or abort posts nothing", wr__error_or_abort_posts_nothing },
    { "signal-all marks every entry", wr__all_signaled },
    { "fields of completions, arming", poll__fields },
    { "polling over many laps", poll__many_laps },
    { "completions of a destroyed queue pair are void", poll__destroyed_queue_pair },
    { "back in reset the queues are empty", poll__reset_frees_the_queues },
    { "extended polling", poll__extended },
    { "extended poll: the time of the wall clock", poll__wall_clock },
};

T_MAIN(cases)
