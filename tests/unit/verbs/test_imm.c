/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 7306 as the driver sees it: Immediate Data, reports, and a peer without it. */
#include "mpe_rig.h"

enum { RIGHTS = ALL_RIGHTS | SG_ACCESS_REMOTE_ATOMIC };

static const uint8_t imm_octets[8] = { 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4 };

/* A SEND_IMM or WRITE_IMM of side 0, for which the doorbell is not yet rung. */
static struct sg_wqe_hdr *build_imm(uint8_t opcode, uint64_t id, uint32_t len)
{
    struct sg_wqe_hdr *h = md_sq_entry(&pair.side[0].qp);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);

    sg_put_le64(&h->wr_id, id);
    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    memcpy(&h->imm, imm_octets, sizeof(imm_octets));
    if (opcode == SG_WR_WRITE_IMM) {
        h->num_sge = 1;
        sg_put_le64(&h->remote_addr, at(1, 0));
        sg_put_le32(&h->rkey, pair.side[1].stag);
        sg_put_le64(&sge->addr, at(0, 0));
        sg_put_le32(&sge->length, len);
        sg_put_le32(&sge->lkey, pair.side[0].stag);
    }
    return h;
}

static void ring(void)
{
    md_sq_doorbell(&pair.side[0].qp);
}

static void expect_imm(uint64_t id, uint32_t len, uint8_t flags)
{
    struct sg_cqe c = expect(1, id, SG_WC_SUCCESS);

    T_EQ_U64(c.opcode, SG_WC_RECV_IMM);
    T_EQ_U64(c.flags_phase & ~SG_CQE_PHASE, SG_CQE_RECV | SG_CQE_WITH_IMM | flags);
    T_EQ_MEM(&c.imm, imm_octets, sizeof(imm_octets));
    T_EQ_U64(sg_get_le32(&c.byte_len), len);
    T_EQ_U64(sg_get_le32(&c.inv_stag), 0);
}

static void send_imm(void)
{
    struct sg_cqe c;

    begin(NULL);
    memset(pair_buf(&pair, 1), 0x5a, 64);
    recv(1, 100, 0, 64);
    recv(1, 101, 0, 0);
    build_imm(SG_WR_SEND_IMM, 1, 0);
    ring();
    c = expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(c.opcode, SG_WC_SEND_IMM);
    T_EQ_U64(sg_get_le64(&c.imm), 0);
    expect_imm(100, 0, 0);
    build_imm(SG_WR_SEND_IMM, 2, 0)->flags |= SG_WQE_SOLICITED;
    ring();
    expect(0, 2, SG_WC_SUCCESS);
    expect_imm(101, 0, SG_CQE_SOLICITED);
    T_EQ_U64(pair_buf(&pair, 1)[0], 0x5a);
    expect_none(0);
    expect_none(1);
    end();
}

/* A completion queue armed for solicited completions raises events for these only. */
static void solicited(void)
{
    struct sg_eqe e;
    int i;

    begin(NULL);
    for (i = 0; i < 3; i++) {
        recv(1, (uint64_t)i, 0, 0);
    }
    md_arm_eq(&pair.side[1].md, 1);
    while (md_next_event(&pair.side[1].md, &e)) {
    }
    md_arm(&pair.side[1].cq, true);
    build_imm(SG_WR_SEND_IMM, 1, 0);
    ring();
    pair_settle(&pair);
    T_FALSE(md_next_event(&pair.side[1].md, &e));
    build_imm(SG_WR_WRITE_IMM, 2, 8)->flags |= SG_WQE_SOLICITED;
    ring();
    pair_settle(&pair);
    T_TRUE(md_next_event(&pair.side[1].md, &e));
    T_EQ_U64(e.event, SG_EV_COMPLETION);
    T_EQ_U64(sg_get_le32(&e.id), pair.side[1].cq.cqn);
    end();
}

static void write_imm(void)
{
    static const uint32_t lens[] = { 0, 1, 8, 1460, 100000 };
    struct sg_cqe c;
    size_t i;

    begin(NULL);
    fill(0, 0, 100000, 3);
    for (i = 0; i < SG_ARRAY_SIZE(lens); i++) {
        T_CONTEXT("%u octets", lens[i]);
        memset(pair_buf(&pair, 1), 0, 100001);
        recv(1, 100 + i, 200000, 16);
        build_imm(SG_WR_WRITE_IMM, i, lens[i]);
        ring();
        c = expect(0, i, SG_WC_SUCCESS);
        T_EQ_U64(c.opcode, SG_WC_WRITE_IMM);
        expect_imm(100 + i, lens[i], 0);
        T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), lens[i]);
        T_EQ_U64(pair_buf(&pair, 1)[lens[i]], 0);
        expect_none(0);
    }
    /* From the entry itself. */
    recv(1, 200, 0, 0);
    {
        struct sg_wqe_hdr *h = build_imm(SG_WR_WRITE_IMM, 9, 0);

        h->flags |= SG_WQE_INLINE;
        sg_put_le16(&h->inline_len, 5);
        memcpy(h + 1, "hello", 5);
        ring();
    }
    expect(0, 9, SG_WC_SUCCESS);
    expect_imm(200, 5, 0);
    T_EQ_MEM(pair_buf(&pair, 1), "hello", 5);
    end();
}

/* Among other work: one completion each, in order; none for unsignaled entries. */
static void in_order(void)
{
    enum { N = 60 };
    uint32_t i, len;
    struct sg_cqe c;

    begin(&(struct md_qp_params){ .entries = 64 });
    pair.side[0].md.hold = pair.side[1].md.hold = true;
    for (i = 0; i < N; i++) {
        recv(1, i, 0, 64);
    }
    for (i = 0; i < N; i++) {
        if (i % 4 == 0) {
            post(0, wr(0, SG_WR_WRITE, i, 0, 700, 0));
        } else if (i % 4 == 2) {
            post(0, wr(0, SG_WR_SEND, i, 0, 30, 0));
        } else {
            build_imm(i % 4 == 1 ? SG_WR_SEND_IMM : SG_WR_WRITE_IMM, i, i)->flags =
                i % 8 == 1 ? 0 : SG_WQE_SIGNALED;
            md_sq_doorbell(&pair.side[0].qp);
        }
    }
    pair.side[0].md.hold = pair.side[1].md.hold = false;
    for (i = 0; i < N; i++) {
        if (i % 8 != 1) {
            c = expect(0, i, SG_WC_SUCCESS);
            T_EQ_U64(sg_get_le32(&c.wr_index), i);
        }
    }
    for (i = 0, len = 0; i < N; i++) {
        if (i % 4 == 2) {
            c = expect(1, len++, SG_WC_SUCCESS);
            T_EQ_U64(c.opcode, SG_WC_RECV);
            T_EQ_U64(sg_get_le64(&c.imm), 0);
        } else if (i % 4) {
            expect_imm(len++, i % 4 == 1 ? 700 : i, 0); /* a Write precedes each SEND_IMM */
        }
    }
    expect_none(0);
    expect_none(1);
    end();
}

/* When Immediate Data completes, all of the Write is visible, in any kind of memory. */
static void persistent(void)
{
    uint32_t stag;

    place_begin(NULL, NULL);
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
    pm[1].hold = true;
    fill(0, 0, 5000, 9);
    recv(1, 100, PM_LEN, 64);
    sg_put_le32(&build_imm(SG_WR_WRITE_IMM, 1, 5000)->rkey, stag);
    ring();
    expect(0, 1, SG_WC_SUCCESS);
    expect_imm(100, 5000, 0);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 5000);
    place_end();
}

enum imm_field { F_SGES, F_FLAGS, F_LKEY, F_RKEY, F_RESERVED };

static void malformed(void)
{
    static const struct {
        const char *name;
        uint8_t opcode;
        enum imm_field field;
        uint32_t value;
        enum sg_wc_status status;
    } rows[] = {
        { "send with an element", SG_WR_SEND_IMM, F_SGES, 1, SG_WC_LOC_LEN_ERR },
        { "send with elements", SG_WR_SEND_IMM, F_SGES, 17, SG_WC_LOC_LEN_ERR },
        { "send, inline", SG_WR_SEND_IMM, F_FLAGS, SG_WQE_INLINE, SG_WC_LOC_QP_OP_ERR },
        { "send, unknown flag", SG_WR_SEND_IMM, F_FLAGS, 0x40, SG_WC_LOC_QP_OP_ERR },
        { "send, reserved octet", SG_WR_SEND_IMM, F_RESERVED, 1, SG_WC_LOC_QP_OP_ERR },
        { "write, too many elements", SG_WR_WRITE_IMM, F_SGES, SG_SQ_MAX_SGE + 1,
          SG_WC_LOC_LEN_ERR },
        { "write, no such lkey", SG_WR_WRITE_IMM, F_LKEY, 0x4711, SG_WC_LOC_PROT_ERR },
    };
    struct sg_wqe_hdr *h;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].name);
        begin(NULL);
        recv(1, 100, 0, 64);
        h = build_imm(rows[i].opcode, 7, 8);
        switch (rows[i].field) {
        case F_SGES:
            h->num_sge = (uint8_t)rows[i].value;
            break;
        case F_FLAGS:
            h->flags |= (uint8_t)rows[i].value;
            break;
        case F_LKEY:
            sg_put_le32(&((struct sg_sge *)(h + 1))->lkey, rows[i].value);
            break;
        case F_RKEY:
            sg_put_le32(&h->rkey, rows[i].value);
            break;
        case F_RESERVED:
            h->reserved_88 = (uint8_t)rows[i].value;
            break;
        }
        ring();
        expect(0, 7, rows[i].status);
        expect(1, 100, SG_WC_FLUSH_ERR); /* nothing came */
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        end();
    }
}

/* Refused by the peer: nothing posted there, or the Write is not allowed. */
static void refused(void)
{
    begin(NULL);
    build_imm(SG_WR_SEND_IMM, 1, 0);
    ring();
    pair_settle(&pair);
    T_EQ_U64(pair_expect(&pair, 1, SG_EV_QP_REQ_ERR).event, SG_EV_QP_REQ_ERR);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    end();
    begin(NULL);
    recv(1, 100, 0, 64);
    sg_put_le32(&build_imm(SG_WR_WRITE_IMM, 1, 8)->rkey, 0x1234);
    ring();
    pair_settle(&pair);
    T_EQ_U64(pair_expect(&pair, 1, SG_EV_QP_ACCESS_ERR).event, SG_EV_QP_ACCESS_ERR);
    expect(1, 100, SG_WC_FLUSH_ERR);
    end();
}

/* Closing sends both messages of what was posted before. */
static void closing(void)
{
    begin(NULL);
    recv(1, 100, 0, 64);
    fill(0, 0, 3000, 1);
    pair.side[0].md.hold = true;
    build_imm(SG_WR_WRITE_IMM, 1, 3000);
    ring();
    pair.side[0].md.hold = false;
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    expect(0, 1, SG_WC_SUCCESS);
    expect_imm(100, 3000, 0);
    end();
}

/* A queue pair that lost its connection between the two messages does not resume there. */
static void torn(void)
{
    struct sg_eqe e;
    struct sg_cqe c;

    begin(NULL);
    fill(0, 0, 70000, 1);
    pair.side[0].md.hold = true;
    build_imm(SG_WR_WRITE_IMM, 1, 70000);
    ring();
    sg_adapter_run(pair.side[0].md.a, 70000); /* most of the Write, or all of it, but no more */
    pair.side[0].md.hold = false;
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_ERROR), SG_OK);
    pair_settle(&pair);
    while (md_poll(&pair.side[0].cq, &c)) {
    }
    pair_pass(&pair, 10000000000);
    while (md_next_async(&pair.side[0].md, &e) || md_next_async(&pair.side[1].md, &e)) {
    }
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_ERROR), SG_OK);
    pair_settle(&pair);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_IDLE), SG_OK);
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_IDLE), SG_OK);
    pair_connect(&pair);
    recv(1, 100, 0, 64);
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    expect(0, 2, SG_WC_SUCCESS);
    c = expect(1, 100, SG_WC_SUCCESS);
    T_EQ_U64(c.opcode, SG_WC_RECV);
    expect_none(1);
    end();
}

/* ---- features and counters ---- */

/* The answer to a query of this kind. */
static const void *query(int side, uint8_t opcode, uint32_t len)
{
    struct sg_cmd_query q = { .hdr.opcode = opcode };
    struct test_host *h = &pair.side[side].h;
    uint64_t out = test_host_alloc(h, len, 64);

    sg_put_le64(&q.out_addr, out);
    sg_put_le32(&q.out_len, len);
    T_EQ_U64(md_cmd(&pair.side[side].md, &q, sizeof(q), NULL), SG_OK);
    return test_host_ptr(h, out);
}

static uint32_t features(int side)
{
    const struct sg_caps *c = query(side, SG_ADMIN_QUERY_CAPS, sizeof(*c));

    return sg_get_le32(&c->features);
}

static struct sg_stats stats(int side)
{
    return *(const struct sg_stats *)query(side, SG_ADMIN_QUERY_STATS, sizeof(struct sg_stats));
}

static void counters(void)
{
    struct sg_stats s;
    int i;

    begin(NULL);
    T_EQ_U64(features(0) & (SG_FEATURE_IMM | SG_FEATURE_ATOMICS),
             SG_FEATURE_IMM | SG_FEATURE_ATOMICS);
    for (i = 0; i < 3; i++) {
        recv(1, (uint64_t)i, 0, 0);
        build_imm(i ? SG_WR_WRITE_IMM : SG_WR_SEND_IMM, (uint64_t)i, 8);
        ring();
        expect(0, (uint64_t)i, SG_WC_SUCCESS);
        expect(1, (uint64_t)i, SG_WC_SUCCESS);
    }
    s = stats(0);
    T_EQ_U64(sg_get_le64(&s.tx_imms), 3);
    T_EQ_U64(sg_get_le64(&s.tx_writes), 2);
    T_EQ_U64(sg_get_le64(&s.tx_sends), 0);
    T_EQ_U64(sg_get_le64(&s.tx_atomics), 0);
    s = stats(1);
    T_EQ_U64(sg_get_le64(&s.rx_imms), 3);
    T_EQ_U64(sg_get_le64(&s.rx_writes), 3); /* one is the RTR message */
    T_EQ_U64(sg_get_le64(&s.rx_sends), 0);
    end();
}

/* Entry of any of the four kinds; the Atomics' sink is at 512. */
static void build_any(uint8_t opcode)
{
    struct sg_wqe_hdr *h = build_imm(opcode, 1, 8);
    struct sg_sge *sge = (struct sg_sge *)((struct sg_wqe_atomic *)(h + 1) + 1);

    if (opcode == SG_WR_FETCH_ADD || opcode == SG_WR_CMP_SWAP) {
        h->num_sge = 1;
        sg_put_le64(&h->remote_addr, at(1, 0));
        sg_put_le32(&h->rkey, pair.side[1].stag);
        sg_put_le64(&sge->addr, at(0, 512));
        sg_put_le32(&sge->length, 8);
        sg_put_le32(&sge->lkey, pair.side[0].stag);
    }
}

/* Disabled here: such entries are malformed.  Disabled at the peer: it ends the stream. */
static void lesser(void)
{
    static const uint8_t opcodes[] = { SG_WR_SEND_IMM, SG_WR_WRITE_IMM, SG_WR_FETCH_ADD,
                                       SG_WR_CMP_SWAP };
    struct sg_adapter_config off, on;
    struct sg_cqe c;
    size_t i;

    pair_default_config(&on);
    pair_default_config(&off);
    off.engine.rfc7306 = false;
    for (i = 0; i < 2 * SG_ARRAY_SIZE(opcodes); i++) {
        uint8_t opcode = opcodes[i / 2];

        T_CONTEXT("opcode %u, off %s", opcode, i & 1 ? "there" : "here");
        pair_start_two(&pair, i & 1 ? &on : &off, i & 1 ? &off : &on);
        T_EQ_U64(features((int)(i & 1)) & (SG_FEATURE_IMM | SG_FEATURE_ATOMICS), 0);
        pair_open(&pair, NULL);
        pair_connect(&pair);
        recv(1, 100, 0, 64);
        build_any(opcode);
        ring();
        pair_settle(&pair);
        T_TRUE(md_poll(&pair.side[0].cq, &c));
        if (!(i & 1)) {
            T_EQ_U64(c.status, SG_WC_LOC_QP_OP_ERR);
        } else if (opcode == SG_WR_FETCH_ADD || opcode == SG_WR_CMP_SWAP) {
            T_EQ_U64(c.status, SG_WC_REM_INV_REQ_ERR);
            T_EQ_U64(sg_get_le32(&c.vendor_err), 0x02060000);
        } else { /* sent, and so complete (RFC 5040 section 5.5, rule 9) */
            T_EQ_U64(c.status, SG_WC_SUCCESS);
        }
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        expect(1, 100, SG_WC_FLUSH_ERR);
        end();
    }
}

static const struct t_case cases[] = {
    { "SEND_IMM", send_imm },
    { "solicited events", solicited },
    { "WRITE_IMM", write_imm },
    { "among other work", in_order },
    { "persistent memory", persistent },
    { "malformed entries", malformed },
    { "refused by the peer", refused },
    { "closing", closing },
    { "a connection lost between the two messages", torn },
    { "features and counters", counters },
    { "a side that does not speak RFC 7306", lesser },
};

T_MAIN(cases)
