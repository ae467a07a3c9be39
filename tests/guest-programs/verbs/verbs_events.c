/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asynchronous events of queue pairs and shared receive queues after a fault of the peer or of the
 * owner, and events of completion queues armed for solicited completions.
 *
 * verbs_events ADDRESS [PART-OF-NAME]...: ADDRESS is that of this machine's adapter.
 */
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <staghorn/abi.h>
#include <staghorn/regs.h>

#include "verbs_pair.h"

/* ---- the peer is at fault ---- */

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    T_EQ_INT(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

static void ends_in_error(struct ibv_qp *qp)
{
    for (int i = 0; i < 6000 && state_of(qp) != IBV_QPS_ERR; i++) {
        usleep(5000);
    }
    T_EQ_U64(state_of(qp), IBV_QPS_ERR);
}

/*
 * b refuses a's request: b's owner gets the event, and a's owner a failed completion, or QP_FATAL
 * if the request had already completed because TCP had taken it.  On a wire without a message for
 * errors a's owner sees only that the connection ends.
 */
static void refused(enum ibv_event_type event, enum ibv_wc_status status)
{
    const struct pair_told told[] = {
        { event, w.b.qp },
        { IBV_EVENT_QP_FATAL, w.a.qp },
    };
    struct ibv_wc wc = pair_wait(w.a.cq);

    if (wc.status != IBV_WC_SUCCESS) {
        T_EQ_U64(wc.status, pair_terminates() ? status : IBV_WC_WR_FLUSH_ERR);
    }
    pair_events(told, wc.status == IBV_WC_SUCCESS && pair_terminates() ? 2 : 1);
    ends_in_error(w.a.qp);
    ends_in_error(w.b.qp);
    T_TRUE(pair_no_event());
    pair_close();
}

static void peer__protection(void)
{
    static const struct {
        const char *what;
        enum ibv_wr_opcode op;
        uint64_t at;   /* offset in the region */
        uint32_t flip; /* change of the key */
    } rows[] = {
        { "a Write beyond the end", IBV_WR_RDMA_WRITE, PAIR_BUF - 7, 0 },
        { "a Write before the beginning", IBV_WR_RDMA_WRITE, (uint64_t)-1, 0 },
        { "a Write with another key", IBV_WR_RDMA_WRITE, 0, 1 },
        { "a Read beyond the end", IBV_WR_RDMA_READ, PAIR_BUF - 7, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].what);
        pair_connect(NULL);
        T_EQ_INT(pair_rdma(&w.a, rows[i].op, 0, 8, w.b.mr->rkey ^ rows[i].flip,
                           (uintptr_t)w.b.buf + rows[i].at),
                 0);
        refused(IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
    }
}

static void peer__request(void)
{
    T_CONTEXT("a Send that finds no receive");
    pair_connect(NULL);
    T_EQ_INT(pair_send(&w.a, 0, 8), 0);
    refused(IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
    T_CONTEXT("a Send that is too long");
    pair_connect(NULL);
    T_EQ_INT(pair_recv(&w.b, 0, 7), 0);
    T_EQ_INT(pair_send(&w.a, 0, 8), 0);
    refused(IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
}

/* ---- the owner is at fault ---- */

enum { FAR = 1 << 16 }; /* entries ahead, more than any queue here has */

/* Maps the process's own page a second time. */
static volatile uint64_t *doorbells(void)
{
    for (off_t i = 0; i < SG_UAR_COUNT; i++) {
        void *p = mmap(NULL, SG_UAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, w.ctx->cmd_fd,
                       i * SG_UAR_SIZE);

        if (p != MAP_FAILED) {
            return p;
        }
    }
    T_FAIL("no doorbell page");
}

static void ring(volatile uint64_t *page, uint32_t at, uint32_t number, uint32_t index)
{
    page[at / 8] = (uint64_t)index << 32 | number;
}

static void doorbell__queue_pair(void)
{
    volatile uint64_t *page = doorbells();

    for (int receive = 0; receive < 2; receive++) {
        T_CONTEXT("%s queue", receive ? "receive" : "send");
        pair_connect(NULL);
        T_TRUE(pair_no_event());
        ring(page, receive ? SG_DB_RQ : SG_DB_SQ, w.a.qp->qp_num, FAR);
        pair_event(IBV_EVENT_QP_FATAL, w.a.qp);
        ends_in_error(w.a.qp);
        ends_in_error(w.b.qp);
    }
    pair_close();
    T_EQ_INT(munmap((void *)page, SG_UAR_SIZE), 0);
}

/* libibverbs does not know the queue, so the event is read directly from the kernel. */
static void doorbell__srq(void)
{
    enum { ENTRIES = 64, STRIDE = 64 };
    uint8_t answer[64] __attribute__((aligned(8))) = { 0 };
    struct ib_uverbs_create_srq core = {
        .response = (uintptr_t)answer,
        .user_handle = 0x5ca1ab1e,
        .max_wr = 32,
        .max_sge = 1,
    };
    struct sg_abi_create_srq req = { .entries = ENTRIES, .stride = STRIDE, .max_sge = 1 };
    const struct ib_uverbs_create_srq_resp *resp = (const void *)answer;
    const struct sg_abi_create_srq_resp *more = (const void *)(resp + 1);
    struct ib_uverbs_destroy_srq end = { .response = (uintptr_t)answer };
    struct pollfd pfd = { .fd = w.ctx->async_fd, .events = POLLIN };
    volatile uint64_t *page = doorbells();
    struct ib_uverbs_async_event_desc event;
    void *entries =
        mmap(NULL, ENTRIES * STRIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    pair_close();
    T_TRUE(entries != MAP_FAILED);
    core.pd_handle = w.pd->handle;
    req.buf = (uintptr_t)entries;
    T_EQ_INT(command(IB_USER_VERBS_CMD_CREATE_SRQ, &core, sizeof(core), &req, sizeof(req),
                     sizeof(*resp) + sizeof(*more)),
             0);
    end.srq_handle = resp->srq_handle;
    ring(page, SG_DB_SRQ, more->srqn, FAR);
    do {
        T_EQ_INT(poll(&pfd, 1, 30000), 1);
        T_EQ_INT(read(pfd.fd, &event, sizeof(event)), sizeof(event));
        T_NOTE("%s", ibv_event_type_str((enum ibv_event_type)event.event_type));
    } while (event.event_type != IBV_EVENT_SRQ_ERR);
    T_EQ_U64(event.element, core.user_handle);
    T_EQ_INT(command(IB_USER_VERBS_CMD_DESTROY_SRQ, &end, sizeof(end), NULL, 0,
                     sizeof(struct ib_uverbs_destroy_srq_resp)),
             0);
    T_EQ_INT(munmap(entries, ENTRIES * STRIDE), 0);
    T_EQ_INT(munmap((void *)page, SG_UAR_SIZE), 0);
}

/* ---- completion events ---- */

static const struct armed_row {
    const char *what;
    int only_solicited;
    unsigned int flags;
    bool told, fails;
} armed_rows[] = {
    { "plain, armed for solicited", 1, 0, false, false },
    { "solicited, armed before", 1, IBV_SEND_SOLICITED, true, false },
    { "plain, armed for all", 0, 0, true, false },
    { "solicited, armed for all", 0, IBV_SEND_SOLICITED, true, false },
    { "solicited, armed for solicited", 1, IBV_SEND_SOLICITED, true, false },
    { "failed, armed for solicited", 1, 0, true, true },
};

/* A receive of a completes, or fails; a's completion queue is armed as the row says. */
static void arrives(const struct armed_row *row)
{
    struct ibv_sge sge = { (uintptr_t)w.b.buf, 16, w.b.mr->lkey };
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_SEND,
        .send_flags = row->flags,
        .sg_list = &sge,
        .num_sge = 1,
    };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    if (row->fails) {
        T_EQ_INT(ibv_modify_qp(w.a.qp, &attr, IBV_QP_STATE), 0);
        pair_expect(w.a.cq, IBV_WC_WR_FLUSH_ERR);
        return;
    }
    T_EQ_INT(pair_post(&w.b, &wr), 0);
    pair_expect_ok(w.b.cq, IBV_WC_SEND);
    pair_expect_ok(w.a.cq, IBV_WC_RECV);
}

/* A queue armed for solicited completions reports only these and failed ones. */
static void completion__solicited(void)
{
    struct ibv_comp_channel *events = ibv_create_comp_channel(w.ctx);
    struct pollfd pfd = { .fd = events->fd, .events = POLLIN };
    struct pair_want want = { .cq_a = ibv_create_cq(w.ctx, 64, NULL, events, 0) };
    struct ibv_cq *cq;
    void *context;

    pair_connect(&want);
    for (size_t i = 0; i < sizeof(armed_rows) / sizeof(armed_rows[0]); i++) {
        const struct armed_row *row = &armed_rows[i];

        T_CONTEXT("%s", row->what);
        T_EQ_INT(pair_recv(&w.a, 0, 64), 0);
        T_EQ_INT(ibv_req_notify_cq(want.cq_a, row->only_solicited), 0);
        arrives(row);
        T_EQ_INT(poll(&pfd, 1, row->told ? 30000 : 300), row->told);
        if (row->told) {
            T_EQ_INT(ibv_get_cq_event(events, &cq, &context), 0);
            T_TRUE(cq == want.cq_a);
            ibv_ack_cq_events(cq, 1);
        }
    }
    pair_close();
    ibv_destroy_comp_channel(events);
}

static const struct t_case cases[] = {
    { "peer: violates protection", peer__protection },
    { "peer: asks for what cannot be", peer__request },
    { "doorbell: beyond the queues of a queue pair", doorbell__queue_pair },
    { "doorbell: beyond a shared receive queue", doorbell__srq },
    { "completion: solicited", completion__solicited },
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    pair_open(argv[1]);
    return t_main(cases, sizeof(cases) / sizeof(cases[0]), argc - 1, argv + 1);
}
