/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The separation that RFC 5042 requires: streams with domains of their own, the room for inbound
 * Reads, completion queues of different user contexts, and who creates completion queues.
 *
 * Streams 0 and 1 join two adapters.  Each has its own protection domain at side 1, where the
 * memory is.
 */
#include "pair_rig.h"
#include "rig.h"

enum { STREAMS = 2, PART = 64 * 1024 };

struct isolation_stream {
    struct md_qp qp[2];
    struct md_cq cq[2];
    uint32_t pd;   /* of side 1 */
    uint32_t stag; /* in pd: octets PART * number to PART * (number + 1) of side 1's buffer */
};

static struct isolation_stream streams[STREAMS];

/* Joins the queue pairs of a stream; side 1 takes 'ird' Reads at a time. */
static void join(struct isolation_stream *t, uint16_t ird)
{
    enum sg_status status;
    struct sg_eqe e;

    pair_connect_cmd(&pair, &t->qp[0], 16, 16, NULL, &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, t->qp[1].qpn, sg_get_le32(&e.conn), ird, 1, NULL),
             SG_OK);
    e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
    T_EQ_U64(e.cm_status, SG_CM_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_ESTABLISHED);
    T_EQ_U64(e.cm_status, SG_CM_OK);
}

static void begin_streams(uint16_t ird)
{
    const uint32_t all = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE;
    int n, i;

    pair_start(&pair, NULL, NULL);
    for (n = 0; n < STREAMS; n++) {
        struct isolation_stream *t = &streams[n];

        t->pd = md_create_pd(&pair.side[1].md);
        t->stag = md_reg_mr(&pair.side[1].md, t->pd, pair.side[1].buf + n * PART, PART, all);
        for (i = 0; i < 2; i++) {
            md_create_cq(&pair.side[i].md, &t->cq[i], 64);
            md_create_qp(&pair.side[i].md, &t->qp[i],
                         &(struct md_qp_params){
                             .pd = i ? t->pd : pair.side[0].pd,
                             .scq = &t->cq[i],
                             .rcq = &t->cq[i],
                         });
        }
        join(t, ird);
    }
}

static void end_streams(void)
{
    int n, i;

    for (n = 0; n < STREAMS; n++) {
        for (i = 0; i < 2; i++) {
            T_EQ_U64(md_cmd_id(&pair.side[i].md, SG_ADMIN_DESTROY_QP, streams[n].qp[i].qpn), SG_OK);
        }
    }
    pair_pass(&pair, 10000000000ull);
    pair_stop(&pair);
}

/* Stream n asks for 'opcode' with an STag of stream 'of'. */
static void ask(int n, int of, uint8_t opcode, uint64_t id)
{
    const struct md_wr w = {
        .opcode = opcode,
        .wr_id = id,
        .addr = pair.side[0].buf + n * PART,
        .len = 64,
        .lkey = pair.side[0].stag,
        .raddr = pair.side[1].buf + of * PART,
        .rkey = streams[of].stag,
    };

    md_post_send(&streams[n].qp[0], &w);
}

static struct sg_cqe outcome(int n, uint64_t id, enum sg_wc_status status)
{
    struct sg_cqe c;

    pair_settle(&pair);
    T_TRUE(md_poll(&streams[n].cq[0], &c));
    T_EQ_U64(sg_get_le64(&c.wr_id), id);
    T_EQ_U64(c.status, status);
    return c;
}

/* If a domain has one queue pair, its STags belong to one stream. */
static void stags_of_one_stream(void)
{
    static const struct {
        uint8_t opcode;
        uint32_t vendor; /* of a Read: the Terminate, "not associated" */
    } rows[] = { { SG_WR_WRITE, 0 }, { SG_WR_READ, 0x01030000 } };
    struct sg_cqe c;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("opcode %u", rows[i].opcode);
        begin_streams(4);
        memset(pair_buf(&pair, 0), 0x5a, PAIR_BUF);
        memset(pair_buf(&pair, 1), 0xa5, PAIR_BUF);
        ask(1, 1, rows[i].opcode, 1);
        outcome(1, 1, SG_WC_SUCCESS);
        T_EQ_MEM(pair_buf(&pair, 0) + PART, pair_buf(&pair, 1) + PART, 64);
        ask(1, 0, rows[i].opcode, 2);
        if (rows[i].opcode == SG_WR_WRITE) {
            outcome(1, 2, SG_WC_SUCCESS); /* it was sent; the answer is a Terminate */
            T_SHOWS("SEC-02") {
                T_EQ_U64(pair_buf(&pair, 1)[0], 0xa5);
            }
            pair_expect(&pair, 1, SG_EV_QP_ACCESS_ERR);
        } else {
            c = outcome(1, 2, SG_WC_REM_ACCESS_ERR);
            T_SHOWS("SEC-02") {
                T_EQ_U64(sg_get_le32(&c.vendor_err), rows[i].vendor);
            }
            T_EQ_U64(pair_buf(&pair, 0)[PART + 63], 0xa5); /* of the Read that was allowed */
        }
        T_EQ_U64(md_qp_state(&streams[1].qp[0]), SG_QP_ERROR);
        /* The STag's own stream still works. */
        ask(0, 0, rows[i].opcode, 3);
        outcome(0, 3, SG_WC_SUCCESS);
        T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1), 64);
        end_streams();
    }
}

/* Each stream has room for one inbound Read; a full stream does not use the other's room. */
static void read_room_is_not_shared(void)
{
    struct sg_cqe c;
    int n;

    begin_streams(1);
    fill(1, 0, 2 * PART, 3);
    for (n = 0; n < STREAMS; n++) {
        pair.side[0].md.hold = true;
        ask(n, n, SG_WR_READ, (uint64_t)n);
        pair.side[0].md.hold = false;
    }
    /* Both Requests arrive before side 1 has a turn to answer either. */
    while (sg_adapter_run(pair.side[0].md.a, 1 << 20)) {
    }
    for (n = 0; n < STREAMS; n++) {
        T_FALSE(md_poll(&streams[n].cq[0], &c));
    }
    for (n = 0; n < STREAMS; n++) {
        T_CONTEXT("stream %d", n);
        outcome(n, (uint64_t)n, SG_WC_SUCCESS);
        T_SHOWS("SEC-17") {
            T_EQ_MEM(pair_buf(&pair, 0) + n * PART, pair_buf(&pair, 1) + n * PART, 64);
        }
    }
    end_streams();
}

static uint32_t create_cq_at(struct md *md, uint32_t uar)
{
    struct sg_cmd_create_cq c = md_create_cq_cmd(md, 16);

    sg_put_le32(&c.uar, uar);
    return md_make(md, &c, sizeof(c));
}

/* Page 0 is the kernel driver's; the others are user contexts, which do not trust each other. */
static void foreign_cqs(void)
{
    static const struct {
        uint32_t qp, send, recv;
        enum sg_status want;
    } rows[] = {
        { 5, 5, 5, SG_OK }, { 5, 5, 6, SG_EPERM }, { 5, 6, 5, SG_EPERM }, { 6, 5, 5, SG_EPERM },
        { 0, 0, 0, SG_OK }, { 0, 5, 0, SG_EPERM }, { 0, 0, 5, SG_EPERM }, { 5, 0, 0, SG_OK },
    };
    static struct solo s;
    uint32_t cqn[7] = { 0 }, pd;
    struct md_cq any;
    size_t i;

    solo_new(&s, NULL, true);
    pd = md_create_pd(&s.md);
    md_create_cq(&s.md, &any, 16);
    cqn[0] = any.cqn;
    cqn[5] = create_cq_at(&s.md, 5);
    cqn[6] = create_cq_at(&s.md, 6);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sg_cmd_create_qp c = md_create_qp_cmd(&s.md, &(struct md_qp_params){
                                                                .pd = pd,
                                                                .scq = &any,
                                                                .rcq = &any,
                                                                .uar = rows[i].qp,
                                                            });

        T_CONTEXT("page %u, queues of %u and %u", rows[i].qp, rows[i].send, rows[i].recv);
        sg_put_le32(&c.send_cqn, cqn[rows[i].send]);
        sg_put_le32(&c.recv_cqn, cqn[rows[i].recv]);
        T_SHOWS(rows[i].want == SG_EPERM ? "SEC-09 SEC-14" : NULL) {
            T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), rows[i].want);
        }
    }
    solo_end(&s);
}

/* A process has only doorbell pages, which can neither create nor enlarge completion queues. */
static void cq_space(void)
{
    struct sg_adapter_census before, after;
    struct sg_adapter_config config;
    struct sg_cmd_resize_cq larger = { .hdr.opcode = SG_ADMIN_RESIZE_CQ };
    struct sg_cmd_create_cq c;
    static struct solo s;
    uint32_t page, offset;
    int i;

    sg_adapter_default_config(&config);
    config.max_cq = 3;
    config.max_cqe = 64;
    solo_new(&s, &config, true);
    c = md_create_cq_cmd(&s.md, 128);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EINVAL);
    for (i = 0; i < 3; i++) {
        c = md_create_cq_cmd(&s.md, 64);
        sg_put_le32(&c.uar, 7);
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    }
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOMEM);
    sg_adapter_census(s.md.a, &before);
    for (page = 6; page < 9; page++) {
        for (offset = 0; offset < SG_UAR_SIZE; offset += 8) {
            sg_adapter_doorbell(s.md.a, page, offset, 1 | 128ull << 32, 8);
        }
    }
    sg_adapter_census(s.md.a, &after);
    T_SHOWS("SEC-13 SEC-16") {
        T_EQ_MEM(&after, &before, sizeof(before));
    }
    sg_put_le32(&larger.cqn, 1);
    sg_put_le32(&larger.entries, 128);
    larger.pages = c.pages;
    sg_put_le64(&larger.record, sg_get_le64(&c.record));
    T_EQ_U64(md_cmd(&s.md, &larger, sizeof(larger), NULL), SG_EINVAL);
    solo_end(&s);
}

static const struct t_case cases[] = {
    { "STags of one stream's domain are useless on another stream", stags_of_one_stream },
    { "streams do not share the room for inbound Reads", read_room_is_not_shared },
    { "no completion queue of another user context", foreign_cqs },
    { "completion queues are made by command and bounded", cq_space },
};

T_MAIN(cases)
