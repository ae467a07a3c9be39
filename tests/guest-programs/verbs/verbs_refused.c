/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the wire has no message for: it is announced nowhere, and refused when a queue pair is
 * created for it, when memory is registered for it, and when it is posted.  For adapters on
 * RDMA/TCP of 2000.
 *
 * verbs_refused ADDRESS [PART-OF-NAME]...: ADDRESS is that of this machine's adapter.
 */
#include "verbs_pair.h"

#include <rdma/ib_user_verbs.h>

#define EX_BITS                                                          \
    (IB_UVERBS_DEVICE_FLUSH_GLOBAL | IB_UVERBS_DEVICE_FLUSH_PERSISTENT | \
     IB_UVERBS_DEVICE_ATOMIC_WRITE)

static void offer__nothing_of_it(void)
{
    struct sgdv_device_attr attr = { 0 };

    T_EQ_U64(w.attr.orig_attr.atomic_cap, IBV_ATOMIC_NONE);
    T_EQ_U64(w.attr.orig_attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS, 0);
    T_EQ_U64(w.attr.device_cap_flags_ex & EX_BITS, 0);
    T_EQ_INT(sgdv_query_device(w.ctx, &attr, sizeof(attr)), 0);
    T_EQ_U64(attr.caps & (SGDV_CAP_FLUSH_GLOBAL | SGDV_CAP_VERIFY | SGDV_CAP_ATOMIC_WRITE), 0);
    /* Others are still there. */
    T_TRUE(w.attr.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    T_TRUE(w.attr.orig_attr.max_srq > 0);
}

static const struct ex_row {
    const char *what;
    uint64_t flag;
} ex_rows[] = {
    { "Send with Invalidate", IBV_QP_EX_WITH_SEND_WITH_INV },
    { "Send with immediate", IBV_QP_EX_WITH_SEND_WITH_IMM },
    { "Write with immediate", IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
    { "CmpSwap", IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
    { "FetchAdd", IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
    { "Flush", IBV_QP_EX_WITH_FLUSH },
    { "Atomic Write", IBV_QP_EX_WITH_ATOMIC_WRITE },
};

static void queue_pair__none_for_it(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .cap = { 4, 4, 1, 1, 0 },
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = w.pd,
    };
    struct ibv_qp *qp;

    pair_connect(NULL);
    attr.send_cq = attr.recv_cq = w.a.cq;
    for (size_t i = 0; i < sizeof(ex_rows) / sizeof(ex_rows[0]); i++) {
        T_CONTEXT("%s", ex_rows[i].what);
        attr.send_ops_flags = IBV_QP_EX_WITH_SEND | ex_rows[i].flag;
        errno = 0;
        T_NULL(ibv_create_qp_ex(w.ctx, &attr));
        T_EQ_INT(errno, EOPNOTSUPP);
    }
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
    qp = ibv_create_qp_ex(w.ctx, &attr);
    T_NOT_NULL(qp);
    T_EQ_INT(ibv_destroy_qp(qp), 0);
}

static void region__no_right_to_flush(void)
{
    static const unsigned int rights[] = { IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT };

    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        T_CONTEXT("right %x", rights[i]);
        errno = 0;
        T_NULL(ibv_reg_mr(w.pd, w.a.buf, 4096, IBV_ACCESS_LOCAL_WRITE | rights[i]));
        T_EQ_INT(errno, EOPNOTSUPP);
    }
}

/* Data still pass, in both directions, and no completion of a refused request is there. */
static void goes_on(void)
{
    T_EQ_INT(pair_recv(&w.b, 0, 64), 0);
    T_EQ_INT(pair_send(&w.a, 0, 64), 0);
    pair_expect_ok(w.a.cq, IBV_WC_SEND);
    pair_expect_ok(w.b.cq, IBV_WC_RECV);
    T_EQ_INT(pair_rdma(&w.b, IBV_WR_RDMA_READ, 0, 64, w.a.mr->rkey, (uintptr_t)w.a.buf), 0);
    pair_expect_ok(w.b.cq, IBV_WC_RDMA_READ);
    T_TRUE(pair_quiet(w.a.cq, 20));
    T_TRUE(pair_quiet(w.b.cq, 0));
    T_TRUE(pair_no_event());
}

static void post__refused(void)
{
    static const enum ibv_wr_opcode ops[] = {
        IBV_WR_SEND_WITH_INV,
        IBV_WR_SEND_WITH_IMM,
        IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD,
        IBV_WR_ATOMIC_WRITE,
        IBV_WR_FLUSH,
    };

    pair_connect(NULL);
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct ibv_sge sge = { (uintptr_t)w.a.buf, 8, w.a.mr->lkey };
        struct ibv_send_wr second = { .wr_id = 2, .opcode = ops[i], .sg_list = &sge, .num_sge = 1 };
        struct ibv_send_wr first = {
            .wr_id = 1,
            .next = &second,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_SIGNALED,
            .sg_list = &sge,
            .num_sge = 1,
        };
        struct ibv_send_wr *bad = NULL;

        T_CONTEXT("opcode %d", ops[i]);
        first.wr.rdma.rkey = second.wr.rdma.rkey = w.b.mr->rkey;
        first.wr.rdma.remote_addr = second.wr.rdma.remote_addr = (uintptr_t)w.b.buf;
        if (ops[i] == IBV_WR_SEND_WITH_IMM) {
            second.num_sge = 0;
        }
        T_EQ_INT(ibv_post_send(w.a.qp, &first, &bad), EOPNOTSUPP);
        T_TRUE(bad == &second);
        T_EQ_U64(pair_expect_ok(w.a.cq, IBV_WC_RDMA_WRITE).wr_id, 1);
    }
    goes_on();
}

static void post__ours_refused(void)
{
    const struct sgdv_verify verify = {
        .rkey = w.b.mr->rkey,
        .remote_addr = (uintptr_t)w.b.buf,
        .length = 64,
    };
    const struct sgdv_cmp_swp swap = { 0 };

    pair_connect(NULL);
    for (int i = 0; i < 3; i++) {
        T_CONTEXT("request %d", i);
        ibv_wr_start(w.a.qpx);
        w.a.qpx->wr_id = 1;
        w.a.qpx->wr_flags = IBV_SEND_SIGNALED;
        if (i == 0) {
            sgdv_wr_verify(w.a.qpx, &verify);
        } else if (i == 1) {
            sgdv_wr_masked_cmp_swp(w.a.qpx, w.b.mr->rkey, (uintptr_t)w.b.buf, &swap);
        } else {
            sgdv_wr_invalidate(w.a.qpx, w.b.mr->rkey);
        }
        T_EQ_INT(ibv_wr_complete(w.a.qpx), EOPNOTSUPP);
    }
    goes_on();
}

static const struct t_case cases[] = {
    { "offer: nothing of it is announced", offer__nothing_of_it },
    { "queue pair: none for such operations", queue_pair__none_for_it },
    { "region: no right to flush", region__no_right_to_flush },
    { "post: refused, and the queue pair goes on", post__refused },
    { "post: requests of staghorndv.h as well", post__ours_refused },
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    pair_open(argv[1]);
    return t_main(cases, sizeof(cases) / sizeof(cases[0]), argc - 1, argv + 1);
}
