/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queues of every kind: shared receive queues, completion queues that change size or are moderated,
 * timestamps, domains, states, events.
 *
 * verbs_queues ADDRESS [PART-OF-NAME]...: ADDRESS is that of this machine's adapter.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "verbs_pair.h"

/* ---- shared receive queues ---- */

static struct ibv_srq *make_srq(uint32_t wrs, uint32_t limit)
{
    struct ibv_srq_init_attr attr = { .attr = { wrs, 1, limit } };
    struct ibv_srq *srq = ibv_create_srq(w.pd, &attr);

    T_NOT_NULL(srq);
    T_TRUE(attr.attr.max_wr >= wrs);
    return srq;
}

static void srq__attributes(void)
{
    struct ibv_srq_attr attr = { .srq_limit = 3 };
    struct ibv_srq *srq;

    pair_close();
    T_TRUE(w.attr.orig_attr.max_srq > 0 && w.attr.orig_attr.max_srq_wr > 0);
    srq = make_srq(10, 2);
    T_EQ_INT(ibv_query_srq(srq, &attr), 0);
    T_EQ_U64(attr.max_wr, 16);
    T_EQ_U64(attr.srq_limit, 2);
    /* With fewer entries the limit would be passed at once. */
    for (uint64_t i = 0; i < 6; i++) {
        T_EQ_INT(pair_recv_srq(srq, i, 0, 0), 0);
    }
    attr.srq_limit = 5;
    T_EQ_INT(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    T_EQ_INT(ibv_query_srq(srq, &attr), 0);
    T_EQ_U64(attr.srq_limit, 5);
    attr.srq_limit = 17;
    T_EQ_INT(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    T_EQ_INT(ibv_destroy_srq(srq), 0);
}

/* Resizes, with six receives posted and a limit of five. */
static void srq__sizes(void)
{
    const uint32_t most = (uint32_t)w.attr.orig_attr.max_srq_wr;
    const struct {
        uint32_t max_wr, limit;
        int mask, want;
        uint32_t now; /* entries afterwards */
    } rows[] = {
        { 100, 0, IBV_SRQ_MAX_WR, 0, 128 },
        { 8, 0, IBV_SRQ_MAX_WR, 0, 8 },
        { 4, 0, IBV_SRQ_MAX_WR, EINVAL, 8 },
        { 0, 0, IBV_SRQ_MAX_WR, EINVAL, 8 },
        { most + 1, 0, IBV_SRQ_MAX_WR, EINVAL, 8 },
        { UINT32_MAX, 0, IBV_SRQ_MAX_WR, EINVAL, 8 },
        { most, 0, IBV_SRQ_MAX_WR, 0, most },
        { 6, 9, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, EINVAL, most },
        { 6, 6, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 0, 8 },
        { 16, 0, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT | 4, EOPNOTSUPP, 8 },
    };
    uint32_t limit = 5;
    struct ibv_srq *srq;

    pair_close();
    T_TRUE(w.attr.orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
    srq = make_srq(10, limit);
    for (uint64_t i = 0; i < 6; i++) {
        T_EQ_INT(pair_recv_srq(srq, i, 0, 0), 0);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_srq_attr attr = { .max_wr = rows[i].max_wr, .srq_limit = rows[i].limit };

        T_CONTEXT("row %zu", i);
        T_EQ_INT(ibv_modify_srq(srq, &attr, rows[i].mask), rows[i].want);
        limit = !rows[i].want && rows[i].mask & IBV_SRQ_LIMIT ? rows[i].limit : limit;
        T_EQ_INT(ibv_query_srq(srq, &attr), 0);
        T_EQ_U64(attr.max_wr, rows[i].now);
        T_EQ_U64(attr.srq_limit, limit);
    }
    T_EQ_INT(pair_recv_srq(srq, 6, 0, 0), 0);
    T_EQ_INT(pair_recv_srq(srq, 7, 0, 0), 0);
    T_EQ_INT(pair_recv_srq(srq, 8, 0, 0), ENOMEM);
    T_TRUE(pair_no_event());
    T_EQ_INT(ibv_destroy_srq(srq), 0);
}

enum { RESIZED_POSTED = 8, RESIZED_TIMES = 40 };

static struct {
    struct ibv_srq *srq;
    atomic_bool stop;
    atomic_int times, error;
} resized;

static void *keep_resizing(void *unused)
{
    static const uint32_t sizes[] = { 64, RESIZED_POSTED, 1024, 16, RESIZED_POSTED, 4096 };

    while (!atomic_load(&resized.stop) && !atomic_load(&resized.error)) {
        struct ibv_srq_attr attr = { .max_wr = sizes[atomic_load(&resized.times) % 6] };

        atomic_store(&resized.error, ibv_modify_srq(resized.srq, &attr, IBV_SRQ_MAX_WR));
        atomic_fetch_add(&resized.times, 1);
    }
    return unused;
}

/* One thread sends, receives and posts; the other resizes all the while. */
static void srq__resized_under_traffic(void)
{
    struct pair_want want = { .srq = make_srq(RESIZED_POSTED, 0) };
    uint64_t sent = 0, posted = 0, i;
    struct ibv_wc wc;
    pthread_t thread;

    resized.srq = want.srq;
    atomic_store(&resized.stop, false);
    atomic_store(&resized.times, 0);
    pair_connect(&want);
    for (; posted < RESIZED_POSTED; posted++) {
        T_EQ_INT(pair_recv_srq(want.srq, posted, posted * 64, 64), 0);
    }
    T_EQ_INT(pthread_create(&thread, NULL, keep_resizing, NULL), 0);
    while (!atomic_load(&resized.error) &&
           (sent < 400 || atomic_load(&resized.times) < RESIZED_TIMES)) {
        for (i = sent; i < sent + RESIZED_POSTED; i++) {
            w.a.buf[i % RESIZED_POSTED * 64] = (uint8_t)i;
            T_EQ_INT(pair_send(&w.a, i % RESIZED_POSTED * 64, 40), 0);
        }
        for (; sent < i; sent++) {
            pair_expect_ok(w.a.cq, IBV_WC_SEND);
            wc = pair_expect_ok(w.b.cq, IBV_WC_RECV);
            T_EQ_U64(wc.wr_id, sent);
            T_EQ_U64(wc.byte_len, 40);
            T_EQ_U64(w.b.buf[sent % RESIZED_POSTED * 64], (uint8_t)sent);
            T_EQ_INT(pair_recv_srq(want.srq, posted++, sent % RESIZED_POSTED * 64, 64), 0);
        }
    }
    atomic_store(&resized.stop, true);
    T_EQ_INT(pthread_join(thread, NULL), 0);
    T_EQ_INT(atomic_load(&resized.error), 0);
    T_EQ_U64(posted - sent, RESIZED_POSTED);
    T_TRUE(pair_no_event());
    T_TRUE(pair_quiet(w.b.cq, 50));
    pair_close();
    T_EQ_INT(ibv_destroy_srq(want.srq), 0);
}

static void srq__cannot_be(void)
{
    const struct ibv_srq_attr rows[] = {
        { 0, 1, 0 },
        { (uint32_t)w.attr.orig_attr.max_srq_wr + 1, 1, 0 },
        { 16, (uint32_t)w.attr.orig_attr.max_srq_sge + 1, 0 },
        { 16, 1, 17 },
    };

    pair_close();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_srq_init_attr attr = { .attr = rows[i] };

        T_CONTEXT("row %zu", i);
        errno = 0;
        T_NULL(ibv_create_srq(w.pd, &attr));
        T_EQ_INT(errno, EINVAL);
    }
}

/* Receives are consumed in order, over many laps; the limit event comes once. */
static void srq__receives(void)
{
    struct pair_want want = { .srq = make_srq(8, 0) };
    struct ibv_srq_attr attr = { .srq_limit = 3 };
    struct ibv_wc wc;

    pair_connect(&want);
    T_EQ_INT(ibv_destroy_srq(want.srq), EBUSY);
    for (uint64_t i = 0; i < 8; i++) {
        T_EQ_INT(pair_recv_srq(want.srq, i, i * 64, 64), 0);
    }
    T_EQ_INT(pair_recv_srq(want.srq, 8, 0, 64), ENOMEM);
    for (uint64_t i = 0; i < 40; i++) {
        w.a.buf[0] = (uint8_t)i;
        T_EQ_INT(pair_send(&w.a, 0, 33), 0);
        pair_expect_ok(w.a.cq, IBV_WC_SEND);
        wc = pair_expect_ok(w.b.cq, IBV_WC_RECV);
        T_EQ_U64(wc.wr_id, i);
        T_EQ_U64(wc.byte_len, 33);
        T_EQ_U64(wc.qp_num, w.b.qp->qp_num);
        T_EQ_U64(w.b.buf[i % 8 * 64], i);
        T_EQ_INT(pair_recv_srq(want.srq, i + 8, i % 8 * 64, 64), 0);
    }
    T_EQ_INT(ibv_modify_srq(want.srq, &attr, IBV_SRQ_LIMIT), 0);
    for (int i = 0; i < 5; i++) {
        T_EQ_INT(pair_send(&w.a, 0, 1), 0);
        pair_expect_ok(w.a.cq, IBV_WC_SEND);
        pair_expect_ok(w.b.cq, IBV_WC_RECV);
    }
    T_TRUE(pair_no_event());
    T_EQ_INT(pair_send(&w.a, 0, 1), 0);
    pair_expect_ok(w.b.cq, IBV_WC_RECV);
    pair_event(IBV_EVENT_SRQ_LIMIT_REACHED, want.srq);
    T_EQ_INT(ibv_query_srq(want.srq, &attr), 0);
    T_EQ_U64(attr.srq_limit, 0);
    pair_close();
    T_EQ_INT(ibv_destroy_srq(want.srq), 0);
}

static void srq__queue_pair_in_error(void)
{
    struct pair_want want = { .srq = make_srq(8, 0) };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    struct ibv_recv_wr wr = { 0 }, *bad;

    pair_connect(&want);
    T_EQ_INT(ibv_post_recv(w.b.qp, &wr, &bad), EINVAL);
    T_EQ_INT(pair_recv_srq(want.srq, 1, 0, 64), 0);
    T_EQ_INT(ibv_modify_qp(w.b.qp, &attr, IBV_QP_STATE), 0);
    pair_event(IBV_EVENT_QP_LAST_WQE_REACHED, w.b.qp);
    /* The receives remain for other queue pairs. */
    T_TRUE(pair_quiet(w.b.cq, 50));
    pair_close();
    T_EQ_INT(ibv_destroy_srq(want.srq), 0);
}

/* ---- completion queues ---- */

static void cq__resize(void)
{
    struct pair_want want = { .cq_entries = 40 };

    pair_connect(&want);
    for (int i = 0; i < 10; i++) {
        T_EQ_INT(pair_rdma(&w.a, IBV_WR_RDMA_WRITE, 0, 8, w.b.mr->rkey, (uintptr_t)w.b.buf), 0);
    }
    pair_expect_ok(w.a.cq, IBV_WC_RDMA_WRITE);
    usleep(20000);
    T_EQ_INT(ibv_resize_cq(w.a.cq, 1000), 0);
    T_TRUE(w.a.cq->cqe >= 1000);
    for (int i = 0; i < 10; i++) {
        T_EQ_INT(pair_rdma(&w.a, IBV_WR_RDMA_READ, 0, 8, w.b.mr->rkey, (uintptr_t)w.b.buf), 0);
    }
    for (int i = 0; i < 9; i++) {
        pair_expect_ok(w.a.cq, IBV_WC_RDMA_WRITE);
    }
    for (int i = 0; i < 10; i++) {
        pair_expect_ok(w.a.cq, IBV_WC_RDMA_READ);
    }
    T_EQ_INT(ibv_resize_cq(w.a.cq, 1), 0);
    T_EQ_INT(pair_rdma(&w.a, IBV_WR_RDMA_READ, 0, 8, w.b.mr->rkey, (uintptr_t)w.b.buf), 0);
    pair_expect_ok(w.a.cq, IBV_WC_RDMA_READ);
    T_EQ_INT(ibv_resize_cq(w.a.cq, w.attr.orig_attr.max_cqe + 1), EINVAL);
    T_EQ_INT(ibv_resize_cq(w.a.cq, 0), EINVAL);
}

/* An event comes for a full batch, or for a smaller one when the period is over. */
static void cq__moderation(void)
{
    struct ibv_comp_channel *events = ibv_create_comp_channel(w.ctx);
    struct ibv_modify_cq_attr attr = {
        .attr_mask = IBV_CQ_ATTR_MODERATE,
        .moderate = { 4, 60000 },
    };
    struct pair_want want = { 0 };
    struct pollfd pfd = { .fd = events->fd, .events = POLLIN };
    struct ibv_cq *cq;
    void *context;

    T_TRUE(w.attr.cq_mod_caps.max_cq_count > 0 && w.attr.cq_mod_caps.max_cq_period > 0);
    want.cq_a = ibv_create_cq(w.ctx, 64, NULL, events, 0);
    T_EQ_INT(ibv_modify_cq(want.cq_a, &attr), 0);
    pair_connect(&want);
    for (int round = 0; round < 2; round++) {
        T_EQ_INT(ibv_req_notify_cq(want.cq_a, 0), 0);
        for (int i = 0; i < 3 + round; i++) {
            T_EQ_INT(pair_rdma(&w.a, IBV_WR_RDMA_READ, 0, 8, w.b.mr->rkey, (uintptr_t)w.b.buf), 0);
        }
        for (int i = 0; i < 3 + round; i++) {
            pair_expect_ok(want.cq_a, IBV_WC_RDMA_READ);
        }
        T_EQ_INT(poll(&pfd, 1, 10000), 1);
        T_EQ_INT(ibv_get_cq_event(events, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
    }
    pair_close();
    ibv_destroy_comp_channel(events);
}

static uint64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Completions have timestamps of the raw clock and of the wall clock. */
static void cq__timestamps(void)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 64,
        .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
    };
    const uint64_t slack = 1000000000; /* the guest's clock may be set while it boots */
    uint64_t wall, posted;
    struct ibv_cq_ex *cq = ibv_create_cq_ex(w.ctx, &attr);
    struct ibv_values_ex before = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK }, after = before;
    struct ibv_poll_cq_attr poll_attr = { 0 };
    struct pair_want want = { 0 };
    uint64_t last, stamp;

    T_NOT_NULL(cq);
    T_TRUE(w.attr.completion_timestamp_mask != 0);
    T_EQ_U64(w.attr.hca_core_clock, 1000000); /* kHz: ns */
    want.cq_a = ibv_cq_ex_to_cq(cq);
    pair_connect(&want);
    T_EQ_INT(ibv_query_rt_values_ex(w.ctx, &before), 0);
    T_EQ_U64(before.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
    last = (uint64_t)before.raw_clock.tv_nsec;
    posted = wall_ns();
    for (int i = 0; i < 5; i++) {
        T_EQ_INT(pair_rdma(&w.a, IBV_WR_RDMA_READ, 0, 8, w.b.mr->rkey, (uintptr_t)w.b.buf), 0);
    }
    for (int i = 0; i < 5; i++) {
        while (ibv_start_poll(cq, &poll_attr) == ENOENT) {
        }
        T_EQ_U64(cq->status, IBV_WC_SUCCESS);
        T_EQ_U64(ibv_wc_read_opcode(cq), IBV_WC_RDMA_READ);
        T_EQ_U64(ibv_wc_read_qp_num(cq), w.a.qp->qp_num);
        stamp = ibv_wc_read_completion_ts(cq);
        wall = ibv_wc_read_completion_wallclock_ns(cq);
        ibv_end_poll(cq);
        T_TRUE(wall + slack > posted && wall < wall_ns() + slack);
        T_TRUE(stamp >= last);
        last = stamp;
    }
    T_EQ_INT(ibv_query_rt_values_ex(w.ctx, &after), 0);
    T_TRUE((uint64_t)after.raw_clock.tv_nsec >= last);
    T_TRUE((uint64_t)after.raw_clock.tv_nsec > (uint64_t)before.raw_clock.tv_nsec);
    pair_close();
}

/* A queue without room for a completion fails: the owner gets an event. */
static void cq__overflow(void)
{
    struct pair_want want = { .cq_entries = 1 };
    struct ibv_cq *cq;

    pair_connect(&want);
    cq = w.a.cq;
    for (int i = 0; i < 2 * PAIR_WRS &&
                    !pair_rdma(&w.a, IBV_WR_RDMA_WRITE, 0, 8, w.b.mr->rkey, (uintptr_t)w.b.buf);
         i++) {
    }
    T_EQ_INT(pair_recv(&w.a, 0, 8), 0);
    for (int i = 1; i < PAIR_WRS && !pair_recv(&w.a, 0, 8); i++) {
    }
    rdma_disconnect(w.b.id);
    pair_event(IBV_EVENT_CQ_ERR, cq);
}

/* ---- domains, states ---- */

static void domains__queue_pairs_in_them(void)
{
    struct ibv_td_init_attr td_attr = { 0 };
    struct ibv_td *td = ibv_alloc_td(w.ctx, &td_attr);
    struct ibv_parent_domain_init_attr attr = { .pd = w.pd, .td = td };
    struct pair_want want = { .pd = ibv_alloc_parent_domain(w.ctx, &attr) };

    T_NOT_NULL(td);
    T_NOT_NULL(want.pd);
    pair_connect(&want);
    T_EQ_INT(pair_recv(&w.b, 0, 64), 0);
    T_EQ_INT(pair_send(&w.a, 0, 64), 0);
    pair_expect_ok(w.a.cq, IBV_WC_SEND);
    pair_expect_ok(w.b.cq, IBV_WC_RECV);
    T_EQ_INT(ibv_dealloc_td(td), EBUSY);
    pair_close();
    T_EQ_INT(ibv_dealloc_pd(want.pd), 0);
    T_EQ_INT(ibv_dealloc_td(td), 0);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    T_EQ_INT(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
    T_EQ_U64(init.qp_type, IBV_QPT_RC);
    T_TRUE(init.cap.max_send_wr >= PAIR_WRS);
    return attr.qp_state;
}

static void qp__true_state(void)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    struct ibv_qp_init_attr init = { .cap = { PAIR_WRS, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
    struct ibv_qp *qp;

    pair_connect(NULL);
    T_EQ_U64(state_of(w.a.qp), IBV_QPS_RTS);
    T_EQ_U64(state_of(w.b.qp), IBV_QPS_RTS);
    T_EQ_INT(ibv_modify_qp(w.a.qp, &attr, IBV_QP_STATE), 0);
    T_EQ_U64(state_of(w.a.qp), IBV_QPS_ERR);
    for (int i = 0; i < 1000 && state_of(w.b.qp) == IBV_QPS_RTS; i++) {
        usleep(5000);
    }
    T_EQ_U64(state_of(w.b.qp), IBV_QPS_ERR);
    init.send_cq = init.recv_cq = w.a.cq;
    qp = ibv_create_qp(w.pd, &init);
    T_NOT_NULL(qp);
    T_EQ_U64(state_of(qp), IBV_QPS_INIT); /* as all iWARP devices report for a new one */
    T_EQ_INT(ibv_destroy_qp(qp), 0);
}

/* ---- a Read with several elements ---- */

static void read__two_elements(void)
{
    struct ibv_sge sge[2] = { { 0, 100, 0 }, { 0, 5000, 0 } };
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ, .sg_list = sge, .num_sge = 2 };

    pair_connect(NULL);
    T_TRUE(w.attr.orig_attr.max_sge_rd >= 2);
    for (uint32_t i = 0; i < PAIR_BUF; i++) {
        w.b.buf[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    sge[0].addr = (uintptr_t)w.a.buf + 6000;
    sge[1].addr = (uintptr_t)w.a.buf + 10;
    sge[0].lkey = sge[1].lkey = w.a.mr->lkey;
    wr.wr.rdma.remote_addr = (uintptr_t)w.b.buf + 3;
    wr.wr.rdma.rkey = w.b.mr->rkey;
    for (int extended = 0; extended < 2; extended++) {
        memset(w.a.buf, 0, PAIR_BUF);
        if (extended) {
            ibv_wr_start(w.a.qpx);
            w.a.qpx->wr_flags = IBV_SEND_SIGNALED;
            ibv_wr_rdma_read(w.a.qpx, w.b.mr->rkey, (uintptr_t)w.b.buf + 3);
            ibv_wr_set_sge_list(w.a.qpx, 2, sge);
            T_EQ_INT(ibv_wr_complete(w.a.qpx), 0);
        } else {
            T_EQ_INT(pair_post(&w.a, &wr), 0);
        }
        pair_expect_ok(w.a.cq, IBV_WC_RDMA_READ);
        T_EQ_MEM(w.a.buf + 6000, w.b.buf + 3, 100);
        T_EQ_MEM(w.a.buf + 10, w.b.buf + 103, 5000);
        T_EQ_U64(w.a.buf[9] + w.a.buf[5010] + w.a.buf[5999] + w.a.buf[6100], 0);
    }
    pair_close();
}

/* ---- the limits of one request ---- */

enum { PIECE = 100, APART = 1000 };

static void pieces(struct ibv_sge *sge, const struct verbs_side *s, uint32_t from)
{
    for (int i = 0; i < PAIR_SGES; i++) {
        sge[i] = (struct ibv_sge){ (uintptr_t)s->buf + from + i * APART, PIECE, s->mr->lkey };
    }
}

static void compare_pieces(const struct verbs_side *to, const struct verbs_side *from, uint32_t at)
{
    for (int i = 0; i < PAIR_SGES; i++) {
        T_EQ_MEM(to->buf + i * APART, from->buf + at + i * APART, PIECE);
    }
}

static void large__elements_and_inline(void)
{
    struct pair_want want = { .large = true };
    struct ibv_sge from[PAIR_SGES], to[PAIR_SGES];
    struct ibv_send_wr wr = { .sg_list = from, .num_sge = PAIR_SGES };
    struct ibv_recv_wr rwr = { .sg_list = to, .num_sge = PAIR_SGES }, *bad;
    struct ibv_send_wr *bad_send;

    pair_connect(&want);
    T_EQ_INT(w.attr.orig_attr.max_sge, PAIR_SGES);
    T_EQ_INT(w.attr.orig_attr.max_sge_rd, PAIR_SGES);
    for (uint32_t i = 0; i < PAIR_BUF; i++) {
        w.a.buf[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    pieces(from, &w.a, 5);
    pieces(to, &w.b, 0);
    memset(w.b.buf, 0, PAIR_BUF);
    T_EQ_INT(ibv_post_recv(w.b.qp, &rwr, &bad), 0);
    wr.opcode = IBV_WR_SEND;
    T_EQ_INT(pair_post(&w.a, &wr), 0);
    pair_expect_ok(w.a.cq, IBV_WC_SEND);
    T_EQ_U64(pair_expect_ok(w.b.cq, IBV_WC_RECV).byte_len, PAIR_SGES * PIECE);
    compare_pieces(&w.b, &w.a, 5);
    /* The data that b has received go back in one Read. */
    memset(w.a.buf, 0, PAIR_BUF);
    pieces(from, &w.a, 0);
    wr.opcode = IBV_WR_RDMA_READ;
    wr.wr.rdma.remote_addr = (uintptr_t)w.b.buf;
    wr.wr.rdma.rkey = w.b.mr->rkey;
    T_EQ_INT(pair_post(&w.a, &wr), 0);
    pair_expect_ok(w.a.cq, IBV_WC_RDMA_READ);
    for (int i = 0; i < PAIR_SGES; i++) {
        T_EQ_MEM(w.a.buf + i * APART, w.b.buf + i * PIECE, PIECE);
    }
    wr.num_sge = PAIR_SGES + 1;
    T_EQ_INT(ibv_post_send(w.a.qp, &wr, &bad_send), EINVAL);
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_INLINE;
    from[0].length = PAIR_INLINE;
    memset(w.b.buf, 0, PAIR_BUF);
    memset(w.a.buf + PIECE, 0x5b, PAIR_INLINE);
    T_EQ_INT(pair_recv(&w.b, 4096, 8), 0);
    T_EQ_INT(pair_post(&w.a, &wr), 0);
    T_EQ_INT(pair_send(&w.a, 0, 8), 0);
    pair_expect_ok(w.a.cq, IBV_WC_RDMA_WRITE);
    pair_expect_ok(w.b.cq, IBV_WC_RECV); /* so the Write has been placed */
    T_EQ_MEM(w.b.buf, w.a.buf, PAIR_INLINE);
    T_EQ_U64(w.b.buf[PAIR_INLINE], 0);
    from[0].length = PAIR_INLINE + 1;
    T_EQ_INT(ibv_post_send(w.a.qp, &wr, &bad_send), EINVAL);
    pair_close();
}

/* ---- a lost adapter ---- */

/* This is the last case, because the process cannot use its device afterwards. */
static void fatal__told_and_gone(void)
{
    struct pollfd pfd = { .fd = w.ctx->async_fd, .events = POLLIN };
    struct ibv_async_event event = { 0 };
    char path[200];
    int fd, i;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/reset",
             ibv_get_device_name(w.ctx->device));
    pair_connect(NULL);
    T_EQ_INT(pair_recv(&w.b, 0, 64), 0);
    fd = open(path, O_WRONLY);
    T_TRUE(fd >= 0);
    T_EQ_INT(write(fd, "1", 1), 1);
    close(fd);
    for (i = 0; i < 10 && event.event_type != IBV_EVENT_DEVICE_FATAL; i++) {
        T_EQ_INT(poll(&pfd, 1, 10000), 1);
        T_EQ_INT(ibv_get_async_event(w.ctx, &event), 0);
        ibv_ack_async_event(&event);
    }
    T_EQ_U64(event.event_type, IBV_EVENT_DEVICE_FATAL);
    errno = 0;
    T_NULL(ibv_alloc_pd(w.ctx));
    T_EQ_INT(errno, EIO);
    /* Posting has no effect, and does no harm. */
    T_EQ_INT(pair_send(&w.a, 0, 8), 0);
    w.a.id = w.b.id = NULL;
}

static const struct t_case cases[] = {
    { "srq: attributes and their change", srq__attributes },
    { "srq: what cannot be", srq__cannot_be },
    { "srq: other sizes", srq__sizes },
    { "srq: resized under traffic", srq__resized_under_traffic },
    { "srq: receives, limit", srq__receives },
    { "srq: a queue pair in error", srq__queue_pair_in_error },
    { "cq: another size", cq__resize },
    { "cq: moderation", cq__moderation },
    { "cq: timestamps", cq__timestamps },
    { "cq: overflow", cq__overflow },
    { "domains: queue pairs in them", domains__queue_pairs_in_them },
    { "read: two elements", read__two_elements },
    { "large: 32 elements, 512 octets inline", large__elements_and_inline },
    { "qp: true state", qp__true_state },
    { "fatal: told and gone", fatal__told_and_gone },
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    pair_open(argv[1]);
    return t_main(cases, sizeof(cases) / sizeof(cases[0]), argc - 1, argv + 1);
}
