/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flush, Verify and Atomic Write as the responder's verbs execute them. */
#include "mpe_rig.h"

/* ---- Flush ---- */

static void flush_persistent(void)
{
    struct sg_cqe c;
    uint32_t stag;

    place_begin(NULL, NULL);
    stag = region(1, 0, PM_LEN, ALL_RIGHTS & ~SG_ACCESS_VERIFY, 0);
    fill(0, 0, 10000, 3);
    write_to(1, stag, 0, 10000, 100);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + 100, pair_buf(&pair, 0), 10000);
    T_EQ_U64(media(1, 100)[1], 0);
    /* Exactly what was asked for, to the octet. */
    ask(flush_of(2, stag, 101, 5000, P));
    c = expect(0, 2, SG_WC_SUCCESS);
    T_EQ_U64(c.opcode, SG_WC_FLUSH);
    T_EQ_U64(sg_get_le32(&c.byte_len), 0);
    T_SHOWS("FLU-12") {
        T_EQ_MEM(media(1, 101), pair_buf(&pair, 0) + 1, 5000);
        T_EQ_U64(media(1, 100)[0], 0);
        T_EQ_U64(media(1, 5101)[0], 0);
    }
    expect_none(1);
    place_end();
}

static void flush_global(void)
{
    uint32_t stag, ordinary;
    int at_call;

    place_begin(NULL, NULL);
    pm[1].hold = true;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS & ~SG_ACCESS_VERIFY, 0);
    ordinary = region(1, PM_LEN, 8192, SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_REMOTE_WRITE, 0);
    fill(0, 0, 4096, 5);
    write_to(1, stag, 0, 4096, 0);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(pair_buf(&pair, 1)[1], 0);
    ask(flush_of(2, stag, 0, 4096, G));
    expect(0, 2, SG_WC_SUCCESS);
    T_SHOWS("FLU-12") {
        T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 4096);
    }
    T_EQ_U64(media(1, 0)[1], 0);
    at_call = test_pm_find(&pm[1], 0, TEST_PM_FLUSH);
    T_TRUE(at_call >= 0);
    T_EQ_U64(pm[1].calls[at_call].what, G);
    /* Ordinary memory: it works without any action of the host. */
    write_to(3, ordinary, 0, 4096, PM_LEN);
    expect(0, 3, SG_WC_SUCCESS);
    ask(flush_of(4, ordinary, PM_LEN, 4096, G));
    expect(0, 4, SG_WC_SUCCESS);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 1);
    ask(flush_of(5, stag, 0, 4096, G | P));
    expect(0, 5, SG_WC_SUCCESS);
    T_EQ_MEM(media(1, 0), pair_buf(&pair, 0), 4096);
    place_end();
}

/* A region of scattered pages, one of them ordinary memory in the second round. */
static void flush_region(void)
{
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    uint32_t i, round, last, stag;
    struct ask q;
    uint64_t list;

    for (round = 0; round < 2; round++) {
        place_begin(NULL, NULL);
        list = test_host_alloc(&pair.side[1].h, 4096, 4096);
        for (i = 0; i < 4; i++) {
            last = round && i == 3 ? PM_LEN : 4096 * (2 * i + 2);
            sg_put_le64(test_host_ptr(&pair.side[1].h, list + 8 * i), at(1, last));
        }
        c = region_cmd(1, 4096 + 8, 3 * 4096, round ? SG_ACCESS_FLUSH_GLOBAL : ALL_FLUSH, 0);
        c.pages.levels = 1;
        sg_put_le64(&c.pages.addr, list);
        sg_put_le32(&c.pages.count, 4);
        T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp), SG_OK);
        stag = sg_get_le32(&rsp.id);
        fill(1, 0, PM_LEN, 7);
        /* Length and offset are invalid, and ignored. */
        q = flush_of(1, stag, 0, 0xffffffff, R | (round ? G : P | G));
        q.raddr = UINT64_MAX - 3;
        ask(q);
        expect(0, 1, SG_WC_SUCCESS);
        T_SHOWS("FLU-09 FLU-10") {
            T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), round ? 3 : 4);
        }
        for (i = 0; i < 3; i++) {
            uint32_t page = 4096 * (2 * i + 2), skip = i ? 0 : 8;

            T_CONTEXT("round %u, page %u", round, i);
            if (round) {
                T_EQ_U64(media(1, page)[100], 0);
                continue;
            }
            T_EQ_MEM(media(1, page + skip), pair_buf(&pair, 1) + page + skip, 4096 - skip);
            T_EQ_U64(media(1, page + 4096)[1], 0);
        }
        if (!round) {
            T_EQ_MEM(media(1, 4096 * 8), pair_buf(&pair, 1) + 4096 * 8, 8);
            T_EQ_U64(media(1, 4096 * 8)[8], 0);
        }
        place_end();
    }
}

/* ---- rights ---- */

struct right_row {
    const char *name;
    uint32_t mr, qp; /* rights */
    uint8_t opcode;
    uint32_t flush;
    bool works;
};

static const struct right_row right_rows[] = {
#define V SG_ACCESS_VERIFY
#define W SG_ACCESS_REMOTE_WRITE
#define FP SG_ACCESS_FLUSH_PERSISTENT
#define FG SG_ACCESS_FLUSH_GLOBAL
    { "FLU-12 P granted", FP, FP, SG_WR_FLUSH, P, true },
    { "G granted", FG, FG, SG_WR_FLUSH, G, true },
    { "both granted", ALL_FLUSH, ALL_FLUSH, SG_WR_FLUSH, P | G, true },
    { "whole region", ALL_FLUSH, ALL_FLUSH, SG_WR_FLUSH, P | G | R, true },
    { "no flush right", ALL_RIGHTS & ~ALL_FLUSH, ALL_RIGHTS, SG_WR_FLUSH, P, false },
    { "no flush right, G", ALL_RIGHTS & ~ALL_FLUSH, ALL_RIGHTS, SG_WR_FLUSH, G, false },
    { "P of a G region", FG | V | W, ALL_RIGHTS, SG_WR_FLUSH, P, false },
    { "G of a P region", FP | V | W, ALL_RIGHTS, SG_WR_FLUSH, G, false },
    { "both of a P region", FP, ALL_RIGHTS, SG_WR_FLUSH, P | G, false },
    { "both of a G region", FG, ALL_RIGHTS, SG_WR_FLUSH, P | G, false },
    { "whole region, P of G", FG, ALL_RIGHTS, SG_WR_FLUSH, P | R, false },
    { "queue pair without P", ALL_RIGHTS, ALL_RIGHTS & ~FP, SG_WR_FLUSH, P, false },
    { "queue pair without G", ALL_RIGHTS, ALL_RIGHTS & ~FG, SG_WR_FLUSH, P | G, false },
    { "verify granted", V, V, SG_WR_VERIFY, 0, true },
    { "no verify right", ALL_RIGHTS & ~V, ALL_RIGHTS, SG_WR_VERIFY, 0, false },
    { "queue pair without verify", ALL_RIGHTS, ALL_RIGHTS & ~V, SG_WR_VERIFY, 0, false },
    { "read does not verify", SG_ACCESS_REMOTE_READ, ALL_RIGHTS, SG_WR_VERIFY, 0, false },
    { "write granted", W, W, SG_WR_ATOMIC_WRITE, 0, true },
    { "no write right", ALL_RIGHTS & ~W, ALL_RIGHTS, SG_WR_ATOMIC_WRITE, 0, false },
    { "queue pair without write", ALL_RIGHTS, ALL_RIGHTS & ~W, SG_WR_ATOMIC_WRITE, 0, false },
#undef V
#undef W
#undef FP
#undef FG
};

/* A request of this kind about 8 octets at 'off' of side 1. */
static struct ask any_of(uint8_t opcode, uint32_t rkey, uint32_t off, uint32_t flush)
{
    switch (opcode) {
    case SG_WR_FLUSH:
        return flush_of(1, rkey, off, 8, flush);
    case SG_WR_VERIFY:
        return verify_of(1, rkey, off, 8);
    default:
        return atomic_of(1, rkey, off, 0x1122334455667788);
    }
}

/* Side 1's memory and media are unchanged. */
static void expect_untouched(void)
{
    uint32_t i;

    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 0);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_READ), 0);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_STORE), 0);
    for (i = 0; i < PAIR_BUF; i++) {
        T_EQ_U64(pair_buf(&pair, 1)[i], 0x5a);
    }
    for (i = 0; i < PM_LEN; i++) {
        T_EQ_U64(pm[1].media[i], 0);
    }
}

/* The ids of the checklist for refusing this opcode. */
static const char *refusal_shows(uint8_t opcode)
{
    return opcode == SG_WR_FLUSH ? "FLU-11" : opcode == SG_WR_VERIFY ? "FLU-17" : "FLU-25";
}

static void rights(void)
{
    struct md_qp_params params = { 0 };
    uint32_t stag;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(right_rows); i++) {
        const struct right_row *row = &right_rows[i];

        T_CONTEXT("%s", row->name);
        params.access = row->qp;
        place_begin(NULL, &params);
        stag = region(1, 0, PM_LEN, row->mr, row->mr & SG_ACCESS_VERIFY ? SG_HASH_SHA256 : 0);
        memset(pair_buf(&pair, 1), 0x5a, PAIR_BUF);
        ask(any_of(row->opcode, stag, 64, row->flush));
        if (row->works) {
            expect(0, 1, SG_WC_SUCCESS);
        } else {
            T_SHOWS(refusal_shows(row->opcode)) {
                expect_refused(1, SG_WC_REM_ACCESS_ERR, 0, 1, 2);
                T_EQ_U64(pair_expect(&pair, 1, SG_EV_QP_ACCESS_ERR).event, SG_EV_QP_ACCESS_ERR);
                expect_untouched();
            }
        }
        place_end();
    }
}

/* ---- STag, association, bounds ---- */

static void bounds(void)
{
    static const struct {
        const char *name;
        int32_t off; /* from the region's start, which is at 4096 */
        uint32_t len;
        uint32_t stag_xor;
        uint8_t code;       /* 0xff: it works */
        bool far, other_pd; /* offset near the end of all offsets; region of another domain */
    } rows[] = {
        { "all of it", 0, 8192, 0, 0xff, false, false },
        { "last octets", 8184, 8, 0, 0xff, false, false },
        { "one beyond", 8188, 8, 0, 0x01, false, false },
        { "before it", -8, 8, 0, 0x01, false, false },
        { "far beyond", 1 << 20, 8, 0, 0x01, false, false },
        { "too long", 0, 8193, 0, 0x01, false, false },
        { "longest", 0, 0xffffffff, 0, 0x01, false, false },
        { "wraps", 0, 64, 0, 0x04, true, false },
        { "wrong key", 0, 8, 0x01, 0x00, false, false },
        { "wrong index", 0, 8, 0x100, 0x00, false, false },
        { "other domain", 0, 8, 0, 0x03, false, true },
    };
    static const uint8_t opcodes[] = { SG_WR_FLUSH, SG_WR_VERIFY, SG_WR_ATOMIC_WRITE };
    uint32_t stag;
    size_t i, k;
    struct ask q;

    for (i = 0; i < SG_ARRAY_SIZE(rows) * SG_ARRAY_SIZE(opcodes); i++) {
        k = i / SG_ARRAY_SIZE(opcodes);
        q = any_of(opcodes[i % SG_ARRAY_SIZE(opcodes)], 0, 0, P);
        if (q.opcode == SG_WR_ATOMIC_WRITE && rows[k].len > 64) {
            continue; /* its length is fixed */
        }
        T_CONTEXT("%s, opcode %u", rows[k].name, q.opcode);
        place_begin(NULL, NULL);
        if (rows[k].other_pd) {
            pair.side[1].pd = md_create_pd(&pair.side[1].md);
        }
        stag = region(1, 4096, 8192, ALL_RIGHTS, SG_HASH_SHA512);
        memset(pair_buf(&pair, 1), 0x5a, PAIR_BUF);
        q.rkey = stag ^ rows[k].stag_xor;
        q.raddr = rows[k].far ? UINT64_MAX - 4 : at(1, 4096) + (int64_t)rows[k].off;
        q.len = rows[k].len;
        ask(q);
        if (rows[k].code == 0xff) {
            expect(0, 1, SG_WC_SUCCESS);
        } else {
            expect_refused(1, SG_WC_REM_ACCESS_ERR, 0, 1, rows[k].code);
            expect_untouched();
        }
        place_end();
    }
}

/* Requests of no octets are checked as others, except for their bounds. */
static void no_octets(void)
{
    struct sg_cqe c;
    uint32_t stag;

    place_begin(NULL, NULL);
    stag = region(1, 4096, 8192, ALL_RIGHTS, SG_HASH_CRC32C);
    ask(flush_of(1, stag, 4096 + 8192, 0, P));
    expect(0, 1, SG_WC_SUCCESS);
    ask(verify_of(2, stag, 4096, 0));
    c = expect(0, 2, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le32(&c.byte_len), 4);
    T_EQ_MEM(hash_sink(), "\0\0\0\0", 4);
    ask(flush_of(3, stag, 4096 + 8193, 0, P));
    expect_refused(3, SG_WC_REM_ACCESS_ERR, 0, 1, 1);
    place_end();
}

/* ---- order ---- */

static int call_after(int from, enum test_pm_op op)
{
    int i = test_pm_find(&pm[1], (unsigned)(from + 1), op);

    T_TRUE(i > from);
    return i;
}

/* Write, Flush, Verify, Atomic Write without waiting: each sees all earlier ones, in order. */
static void pipeline(void)
{
    uint64_t mark = 0x0102030405060708;
    uint32_t data, verified;
    uint8_t sum[64];
    int i;

    place_begin(NULL, NULL);
    pm[1].hold = true;
    pm[1].later = 3;
    pm[1].later_ns = 1000;
    data = region(1, 0, 65536, SG_ACCESS_REMOTE_WRITE | ALL_FLUSH, 0);
    verified = region(1, 0, 65536, SG_ACCESS_VERIFY, SG_HASH_SHA256);
    fill(0, 0, 20000, 11);
    fill(1, PM_LEN, 20000, 11); /* the same octets in ordinary memory, for their hash */
    ask((struct ask){
        .opcode = SG_WR_VERIFY,
        .id = 9,
        .len = 20000,
        .addr = at(0, PAIR_BUF - 64),
        .room = 64,
        .raddr = at(1, PM_LEN),
        .rkey = region(1, PM_LEN, 20000, SG_ACCESS_VERIFY, SG_HASH_SHA256),
    });
    expect(0, 9, SG_WC_SUCCESS);
    memcpy(sum, hash_sink(), 32);

    pair.side[0].md.hold = true;
    write_to(1, data, 0, 20000, 0);
    ask(flush_of(2, data, 0, 20000, P | G));
    {
        struct ask q = verify_of(3, verified, 0, 20000);

        q.hash = sum;
        q.hash_len = 32;
        ask(q);
    }
    ask(atomic_of(4, data, 32768, mark));
    ask(flush_of(5, data, 32768, 8, P));
    pair.side[0].md.hold = false;
    pair_settle(&pair);
    expect(0, 1, SG_WC_SUCCESS);
    expect_none(0); /* the Flush is put off */
    pair_pass(&pair, 100000);
    for (i = 2; i <= 5; i++) {
        expect(0, (uint64_t)i, SG_WC_SUCCESS);
    }
    T_EQ_MEM(media(1, 0), pair_buf(&pair, 0), 20000);
    T_EQ_U64(sg_get_le64(media(1, 32768)), mark);
    i = call_after(-1, TEST_PM_SETTLE);
    T_TRUE(i > test_pm_find(&pm[1], 0, TEST_PM_PLACE));
    i = call_after(i, TEST_PM_FLUSH);
    for (int n = 0; n < 3; n++) {
        i = call_after(i, TEST_PM_FLUSH);
    }
    i = call_after(i, TEST_PM_READ);
    i = call_after(i, TEST_PM_STORE);
    i = call_after(i, TEST_PM_FLUSH);
    T_EQ_U64(pm[1].calls[i].len, 8);
    place_end();
}

/* Earlier writes are settled before a Read is answered, a Send completes or a region ends. */
static void settled_before(void)
{
    struct md_wr w;
    uint32_t stag;

    place_begin(NULL, NULL);
    pm[1].hold = true;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
    fill(0, 0, 30000, 1);
    write_to(1, stag, 0, 30000, 0);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(pair_buf(&pair, 1)[1], 0);
    w = wr(0, SG_WR_READ, 2, 65536, 30000, 0);
    w.rkey = stag;
    post(0, w);
    expect(0, 2, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 0) + 65536, pair_buf(&pair, 0), 30000);

    fill(0, 0, 30000, 2);
    recv(1, 50, PM_LEN, 64);
    write_to(3, stag, 0, 30000, 0);
    expect(0, 3, SG_WC_SUCCESS);
    T_TRUE(memcmp(pair_buf(&pair, 1), pair_buf(&pair, 0), 30000));
    post(0, wr(0, SG_WR_SEND, 4, 0, 64, 0));
    expect(0, 4, SG_WC_SUCCESS);
    expect(1, 50, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 30000);

    /* The region is deregistered: no write arrives later. */
    fill(0, 0, 30000, 3);
    write_to(5, stag, 0, 30000, 0);
    expect(0, 5, SG_WC_SUCCESS);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DEREG_MR, stag), SG_OK);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 30000);
    T_SHOWS("SEC-06") {
        T_NULL(pm[1].held);
    }
    place_end();
}

/* When a connection or its queue pair ends, all that came in by it is placed. */
static void settled_at_the_end(void)
{
    uint32_t stag;
    int i;

    place_begin(NULL, NULL);
    pm[1].hold = true;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
    fill(0, 0, 3000, 1);
    write_to(1, stag, 0, 3000, 0);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    for (i = 0; i < 2; i++) {
        pair_expect(&pair, i, SG_EV_CM_DISCONNECT);
        T_TRUE(!i || !memcmp(pair_buf(&pair, 1), pair_buf(&pair, 0), 3000)); /* placed before */
        pair_expect(&pair, i, SG_EV_CM_CLOSED);
        T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_IDLE), SG_OK);
    }
    pair_connect(&pair);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 3000);
    fill(0, 0, 3000, 2);
    write_to(2, stag, 0, 3000, 0);
    expect(0, 2, SG_WC_SUCCESS);
    T_TRUE(memcmp(pair_buf(&pair, 1), pair_buf(&pair, 0), 3000));
    pair_close(&pair);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 3000);
    T_NULL(pm[1].held);
    pair_stop(&pair);
    test_pm_fini(&pm[0]);
    test_pm_fini(&pm[1]);
}

/* Sends and Read Responses into persistent memory pass through the domain as Writes do. */
static void other_placement(void)
{
    struct md_wr w;
    uint32_t stag;

    place_begin(NULL, NULL);
    pm[1].hold = true;
    stag = region(1, 0, PM_LEN, SG_ACCESS_LOCAL_WRITE, 0);
    fill(0, 0, 5000, 8);
    md_post_recv(&pair.side[1].qp, 50, at(1, 0), 5000, stag);
    post(0, wr(0, SG_WR_SEND, 1, 0, 5000, 0));
    expect(0, 1, SG_WC_SUCCESS);
    expect(1, 50, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 5000);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_PLACE), 1);
    w = wr(1, SG_WR_READ, 2, 8192, 5000, 0);
    w.lkey = stag;
    post(1, w);
    expect(1, 2, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + 8192, pair_buf(&pair, 0), 5000);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_PLACE), 2);
    place_end();
}

/* The kernel's region of all bus addresses: its memory may be of either kind. */
static void whole_memory(void)
{
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    struct sg_sge *sge;
    struct sg_rqe_hdr *r;
    int i;

    place_begin(NULL, &params);
    pm[1].hold = true;
    c = md_reg_mr_cmd(pair.side[1].pd, 0, 0, SG_ACCESS_LOCAL_WRITE);
    c.flags = SG_MR_WHOLE_MEMORY;
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp), SG_OK);
    fill(0, 0, 30000, 4);
    r = md_rq_entry(&pair.side[1].qp);
    sg_put_le64(&r->wr_id, 50);
    r->num_sge = 3;
    sge = (struct sg_sge *)(r + 1);
    for (i = 0; i < 3; i++) { /* persistent, ordinary, both */
        sg_put_le64(&sge[i].addr, at(1, i == 0 ? 100 : i == 1 ? PM_LEN + 20000 : PM_LEN - 5000));
        sg_put_le32(&sge[i].length, 10000);
        sg_put_le32(&sge[i].lkey, sg_get_le32(&rsp.id));
    }
    md_rq_doorbell(&pair.side[1].qp);
    post(0, wr(0, SG_WR_SEND, 1, 0, 30000, 0));
    expect(0, 1, SG_WC_SUCCESS);
    expect(1, 50, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + 100, pair_buf(&pair, 0), 10000);
    T_EQ_MEM(pair_buf(&pair, 1) + PM_LEN + 20000, pair_buf(&pair, 0) + 10000, 10000);
    T_EQ_MEM(pair_buf(&pair, 1) + PM_LEN - 5000, pair_buf(&pair, 0) + 20000, 10000);
    T_TRUE(test_pm_count(&pm[1], TEST_PM_PLACE) >= 2);
    place_end();
}

static void milestones(void)
{
    static const struct {
        enum sg_pm_milestone what;
        uint32_t msn, off;
    } want[] = {
        { SG_PM_WRITE_PLACED, 0, 512 },         { SG_PM_WRITE_PLACED, 0, 4096 },
        { SG_PM_BEFORE_FLUSH_ANSWER, 1, 4096 }, { SG_PM_AFTER_FLUSH_ANSWER, 1, 4096 },
        { SG_PM_BEFORE_ATOMIC_WRITE, 2, 64 },   { SG_PM_AFTER_ATOMIC_WRITE, 2, 64 },
    };
    uint32_t stag;
    size_t i;
    int k = -1;

    place_begin(NULL, NULL);
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
    write_to(0, stag, 0, 100, 512);
    expect(0, 0, SG_WC_SUCCESS);
    write_to(1, stag, 0, 60000, 4096);
    expect(0, 1, SG_WC_SUCCESS);
    ask(flush_of(2, stag, 4096, 60000, P));
    expect(0, 2, SG_WC_SUCCESS);
    ask(atomic_of(3, stag, 64, 1));
    expect(0, 3, SG_WC_SUCCESS);
    for (i = 0; i < SG_ARRAY_SIZE(want); i++) {
        T_CONTEXT("milestone %zu", i);
        k = call_after(k, TEST_PM_MILESTONE);
        T_EQ_U64(pm[1].calls[k].what, want[i].what);
        T_EQ_U64(pm[1].calls[k].who.qpn, pair.side[1].qp.qpn);
        T_EQ_U64(pm[1].calls[k].who.msn, want[i].msn);
        T_EQ_U64(pm[1].calls[k].who.to, at(1, want[i].off));
    }
    T_EQ_INT(test_pm_find(&pm[1], (unsigned)k + 1, TEST_PM_MILESTONE), -1);
    place_end();
}

/* ---- Atomic Write ---- */

/* Returns in how many steps side 1's adapter wrote these octets, and the last step in *last. */
static unsigned steps_at(uint32_t off, size_t len, struct test_host_step *last)
{
    const struct test_host *h = &pair.side[1].h;
    unsigned i, n = 0;

    T_TRUE(h->step_count <= TEST_HOST_STEPS);
    for (i = 0; i < h->step_count; i++) {
        const struct test_host_step *s = &h->steps[i];

        if (s->what != TEST_HOST_RAISE && s->addr < at(1, off) + len &&
            s->addr + s->len > at(1, off)) {
            n++;
            *last = *s;
        }
    }
    return n;
}

static void atomic_write(void)
{
    static const uint8_t octets[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct test_host_step step = { 0 };
    struct ask q;
    uint32_t stag, ordinary;
    struct sg_cqe c;

    place_begin(NULL, NULL);
    stag = region(1, 0, PM_LEN, SG_ACCESS_REMOTE_WRITE, 0);
    ordinary = region(1, PM_LEN, 4096, SG_ACCESS_REMOTE_WRITE, 0);
    ask(atomic_of(1, stag, 4088, 0x8877665544332211));
    c = expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(c.opcode, SG_WC_ATOMIC_WRITE);
    T_EQ_U64(sg_get_le64(pair_buf(&pair, 1) + 4088), 0x8877665544332211);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_STORE), 1);
    T_EQ_U64(sg_get_le64(media(1, 4088)), 0); /* not persistent without a Flush */
    /* From memory, across a page, unaligned; the octets arrive in their order. */
    memcpy(pair_buf(&pair, 0) + 4093, octets, 8);
    q = atomic_of(2, ordinary, PM_LEN + 16, 0);
    q.addr = at(0, 4093);
    q.room = 8;
    pair.side[1].h.step_count = 0;
    ask(q);
    expect(0, 2, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + PM_LEN + 16, octets, 8);
    T_SHOWS("FLU-27") { /* one store of all eight, so nobody sees a part */
        T_EQ_U64(steps_at(PM_LEN + 16, 8, &step), 1);
        T_EQ_INT(step.what, TEST_HOST_STORE64);
        T_EQ_U64(step.addr, at(1, PM_LEN + 16));
    }
    place_end();
}

/* The address counts, not the offset: a zero-based region may begin anywhere. */
static void alignment(void)
{
    static const struct {
        uint32_t skip, to;
        bool works;
    } rows[] = {
        { 0, 0, true },  { 0, 8, true },  { 0, 4, false }, { 0, 1, false }, { 0, 7, false },
        { 3, 0, false }, { 3, 8, false }, { 3, 5, true },  { 3, 13, true },
    };
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    struct ask q;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("region at %u, offset %u", rows[i].skip, rows[i].to);
        place_begin(NULL, NULL);
        c = region_cmd(1, rows[i].skip, 4096, SG_ACCESS_REMOTE_WRITE | SG_ACCESS_ZERO_BASED, 0);
        T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp), SG_OK);
        memset(pair_buf(&pair, 1), 0x5a, PAIR_BUF);
        q = atomic_of(1, sg_get_le32(&rsp.id), 0, 0x1111111111111111);
        q.raddr = rows[i].to;
        ask(q);
        if (rows[i].works) {
            expect(0, 1, SG_WC_SUCCESS);
            T_EQ_U64(sg_get_le64(pair_buf(&pair, 1) + rows[i].skip + rows[i].to),
                     0x1111111111111111);
        } else {
            expect_refused(1, SG_WC_REM_OP_ERR, 0, 2, 7);
            expect_untouched();
        }
        place_end();
    }
}

static const struct t_case cases[] = {
    { "Flush to persistence, to the octet", flush_persistent },
    { "Flush to visibility; ordinary memory", flush_global },
    { "Flush of a whole region", flush_region },
    { "rights of region and queue pair", rights },
    { "STag, association, wrap, bounds", bounds },
    { "requests of no octets", no_octets },
    { "FLU-34 FLU-36 Write, Flush, Verify, Atomic Write without waiting", pipeline },
    { "FLU-36 what makes placed octets visible", settled_before },
    { "nothing waits for a connection that is over", settled_at_the_end },
    { "placement of Sends and Read Responses", other_placement },
    { "placement by a region of all memory", whole_memory },
    { "milestones", milestones },
    { "FLU-27 Atomic Write", atomic_write },
    { "FLU-23 alignment of an Atomic Write", alignment },
};

T_MAIN(cases)
