/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Why a queue pair went to error, in one line of SG_LOG_FAILURE: its number, its previous state,
 * and the reason.  That line is logged by default, states are not.
 */
#include "pair_rig.h"
#include "verbs/state/adapter_state.h"
#include "verbs/queues/qp.h"

enum { MS = 1000000 };

/* From now on only lines of SG_LOG_FAILURE are kept. */
static void failures_only(void)
{
    for (int i = 0; i < 2; i++) {
        struct test_host *h = &pair.side[i].h;

        memset(h->log_on, 0, sizeof(h->log_on));
        h->log_on[SG_LOG_FAILURE] = true;
        h->log_count = 0;
        memset(h->log, 0, sizeof(h->log));
    }
}

/* These are the side's lines; each begins with "qp %u: " and its queue pair's number. */
static void said(int side, const char *const *lines)
{
    struct test_host *h = &pair.side[side].h;
    char line[TEST_HOST_LOG_LEN];
    unsigned n;

    for (n = 0; lines[n]; n++) {
        T_TRUE(n < h->log_count);
        snprintf(line, sizeof(line), "qp %u: %s", pair.side[side].qp.qpn, lines[n]);
        T_EQ_STR(h->log[n], line);
    }
    T_EQ_U64(h->log_count, n);
}

static void finish(void)
{
    struct sg_eqe e;
    struct sg_cqe c;

    for (int i = 0; i < 2; i++) {
        while (md_next_async(&pair.side[i].md, &e)) {
        }
        while (md_poll(&pair.side[i].cq, &c)) {
        }
    }
    end();
}

#define SAID(side, ...) said(side, (const char *const[]){ __VA_ARGS__, NULL })

static void terminate_names_its_reason(void)
{
    struct md_wr w;

    begin(NULL);
    failures_only();
    w = wr(0, SG_WR_WRITE, 1, 0, 64, 0);
    w.rkey ^= 1;
    post(0, w);
    pair_settle(&pair);
    SAID(0, "RTS -> TERMINATE: Terminate received: DDP, tagged buffer, invalid STag",
         "TERMINATE -> ERROR: a Terminate ended the connection");
    SAID(1, "RTS -> TERMINATE: Terminate sent: DDP, tagged buffer, invalid STag",
         "TERMINATE -> ERROR: a Terminate ended the connection");
    finish();
}

static void own_fault(void)
{
    char line[80];
    struct md_wr w;

    begin(NULL);
    failures_only();
    pair.side[0].h.log_on[SG_LOG_GUEST_ERROR] = true;
    w = wr(0, SG_WR_SEND, 1, 0, 64, 0);
    w.lkey ^= 1;
    post(0, w);
    pair_settle(&pair);
    snprintf(line, sizeof(line), "qp %u: send entry 0, opcode %u: LOC_PROT_ERR",
             pair.side[0].qp.qpn, SG_WR_SEND);
    T_TRUE(test_host_logged(&pair.side[0].h, line));
    T_TRUE(test_host_logged(&pair.side[0].h, ": RTS -> TERMINATE: faulty work request"));
    SAID(1,
         "RTS -> TERMINATE: Terminate received: RDMA, local catastrophic, "
         "local catastrophic error",
         "TERMINATE -> ERROR: a Terminate ended the connection");
    finish();
}

/* An entry whose header is refused: the line of the guest's error says why. */
static void refused_header(void)
{
    static const struct {
        uint8_t opcode, flags;
        const char *why;
    } rows[] = {
        { 0x7f, 0, "unknown opcode" },
        { SG_WR_SEND, 0x80, "unknown flags" },
        { SG_WR_READ, SG_WQE_INLINE, "no inline data with this opcode" },
        { SG_WR_REG_MR, 0, "the queue pair is not the kernel's" },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct md_wr w;
        char line[100];

        T_CONTEXT("%s", rows[i].why);
        begin(NULL);
        failures_only();
        pair.side[0].h.log_on[SG_LOG_GUEST_ERROR] = true;
        w = wr(0, rows[i].opcode, 1, 0, 64, 0);
        w.flags = rows[i].flags;
        post(0, w);
        pair_settle(&pair);
        snprintf(line, sizeof(line), "qp %u: send entry 0, opcode %u: LOC_QP_OP_ERR, %s",
                 pair.side[0].qp.qpn, rows[i].opcode, rows[i].why);
        T_TRUE(test_host_logged(&pair.side[0].h, line));
        finish();
    }
}

static void connection_ends(void)
{
    begin(NULL);
    failures_only();
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    pair_settle(&pair);
    SAID(0, "CLOSING -> ERROR: the peer closed the connection");
    SAID(1, "RTS -> ERROR: the peer closed the connection");
    finish();
}

/* One side aborts in the middle of a message, so the other side's connection is reset. */
static void connection_is_reset(void)
{
    begin_slow(0);
    failures_only();
    post(0, wr(0, SG_WR_WRITE, 1, 0, PAIR_BUF, 0));
    pair_settle(&pair);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_ERROR), SG_OK);
    pair_pass(&pair, 100ull * MS);
    SAID(0, "RTS -> ERROR: aborted by its owner");
    SAID(1, "RTS -> ERROR: the connection was reset");
    finish();
}

static void doorbell_beyond(void)
{
    begin(NULL);
    failures_only();
    md_doorbell(&pair.side[0].md, 0, SG_DB_SQ, pair.side[0].qp.qpn, 12345);
    pair_settle(&pair);
    SAID(0, "RTS -> ERROR: send doorbell beyond the queue");
    finish();
}

static void success_is_silent(void)
{
    pair_start(&pair, NULL, NULL);
    failures_only();
    pair_open(&pair, NULL);
    pair_connect(&pair);
    T_EQ_U64(pair.side[0].h.log_count, 0);
    T_EQ_U64(pair.side[1].h.log_count, 0);
    finish();
}

static void names(void)
{
    T_EQ_STR(sg_conn_end_text(SG_CONN_TIMEOUT), "the connection timed out");
    T_EQ_STR(sg_conn_end_text(SG_CONN_NORES), "no memory for the connection");
    T_EQ_STR(sg_wc_status_name(SG_WC_SUCCESS), "SUCCESS");
    T_EQ_STR(sg_wc_status_name(SG_WC_RETRY_EXC_ERR), "RETRY_EXC_ERR");
    T_EQ_STR(sg_wc_status_name(SG_WC_RETRY_EXC_ERR + 1), "?");
}

static const struct t_case cases[] = {
    { "a Terminate, sent or received, is named", terminate_names_its_reason },
    { "a fault of our own is named with its entry", own_fault },
    { "a header that is refused, and why", refused_header },
    { "a connection that is closed", connection_ends },
    { "a connection that is reset, and by whom", connection_is_reset },
    { "a doorbell beyond the queue", doorbell_beyond },
    { "what does not fail is not logged so", success_is_silent },
    { "names of ends and statuses", names },
};

T_MAIN(cases)
