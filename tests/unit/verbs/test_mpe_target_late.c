/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flushes that fail, Flushes that take time, and what may happen meanwhile. */
#include "mpe_rig.h"

static void flush_fails(void)
{
    uint32_t stag;
    unsigned i;

    place_begin(NULL, NULL);
    pm[1].fail_flush = 1;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
    fill(0, 0, 4096, 3);
    pair.side[0].md.hold = true;
    write_to(1, stag, 0, 4096, 0);
    ask(flush_of(2, stag, 0, 64, P));
    ask(flush_of(3, stag, 64, 64, P)); /* fails */
    ask(flush_of(4, stag, 128, 64, P));
    ask(verify_of(5, stag, 0, 64));
    ask(atomic_of(6, stag, 8192, 77));
    pair.side[0].md.hold = false;
    recv(0, 50, 0, 64);
    pair_settle(&pair);
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_SUCCESS);
    expect_refused(3, SG_WC_REM_OP_ERR, 0, 2, 7);
    for (i = 4; i <= 6; i++) {
        expect(0, i, SG_WC_FLUSH_ERR);
    }
    expect(0, 50, SG_WC_FLUSH_ERR);
    expect_none(0);
    T_EQ_U64(pair_expect(&pair, 1, SG_EV_QP_REQ_ERR).event, SG_EV_QP_REQ_ERR);
    /* Requests behind it were not executed. */
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 2);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_READ), 0);
    T_EQ_U64(pair_buf(&pair, 1)[8192], 0);
    T_EQ_U64(media(1, 64)[1], 0);
    place_end();
}

static void flush_takes_time(void)
{
    uint32_t stag;

    place_begin(NULL, NULL);
    pm[1].later = 5;
    pm[1].later_ns = 1000000;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
    fill(0, 0, 4096, 3);
    write_to(1, stag, 0, 4096, 0);
    expect(0, 1, SG_WC_SUCCESS);
    ask(flush_of(2, stag, 0, 4096, P));
    pair_pass(&pair, 4900000);
    expect_none(0);
    T_EQ_U64(media(1, 0)[1], 0);
    /* Meanwhile the connection works in both directions; only requests behind the Flush wait. */
    write_to(3, stag, 0, 8, 8192);
    recv(0, 50, 4096, 64);
    post(1, wr(1, SG_WR_SEND, 51, 0, 64, 0));
    expect(1, 51, SG_WC_SUCCESS);
    expect(0, 50, SG_WC_SUCCESS);
    expect_none(0);
    pair_pass(&pair, 200000);
    expect(0, 2, SG_WC_SUCCESS);
    expect(0, 3, SG_WC_SUCCESS);
    T_EQ_MEM(media(1, 0), pair_buf(&pair, 0), 4096);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 6);
    place_end();
}

/* A region of 'pages' pages of 'area', with a page list in reverse order. */
static uint32_t scattered(uint32_t pages, uint64_t area, uint32_t access, uint8_t alg)
{
    struct pair_side *s = &pair.side[1];
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(s->pd, area, (uint64_t)pages * 4096, access);
    uint64_t list = test_host_alloc(&s->h, 8 * pages, 4096);
    uint32_t i;

    for (i = 0; i < pages; i++) { /* no two are contiguous */
        sg_put_le64(test_host_ptr(&s->h, list + 8 * i), area + 4096ull * (pages - 1 - i));
    }
    c.hash_alg = alg;
    c.pages.levels = 1;
    sg_put_le64(&c.pages.addr, list);
    return md_make(&s->md, &c, sizeof(c));
}

/* More runs of pages than a turn handles, flushed and, after a wrong hash, poisoned. */
static void many_runs(void)
{
    enum { PAGES = 300, LEN = PAGES * 4096 };
    static uint8_t wrong[32];
    uint64_t area;
    uint32_t stag, i;
    struct ask q;

    pair_start_sized(&pair, NULL, NULL, 8 << 20);
    area = test_host_alloc(&pair.side[1].h, LEN, 4096);
    pair.base_brk[1] = pair.side[1].h.brk;
    test_pm_init(&pm[1], &pair.side[1].h, area, area + LEN);
    pair_open(&pair, &(struct md_qp_params){ .access = ALL_RIGHTS });
    pair_connect(&pair);
    stag = scattered(PAGES, area, ALL_RIGHTS, SG_HASH_SHA256);
    memset(test_host_ptr(&pair.side[1].h, area), 0x3c, LEN);
    q = flush_of(1, stag, 0, LEN - 2, P);
    q.raddr = area + 1;
    T_TRUE(turns_of(q) >= PAGES / 64);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), PAGES);
    pm[1].count = 0;
    pm[1].later = 1;
    ask(q);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 2 * PAGES);
    for (i = 0; i < LEN; i++) {
        /* The first octet of the region is in the last page, its last in the first. */
        bool out = i == LEN - 4096 || i == 4095;

        T_EQ_U64(pm[1].media[i], out ? 0 : 0x3c);
    }
    q = verify_of(2, stag, 0, LEN);
    q.raddr = area;
    q.hash = wrong;
    q.hash_len = sizeof(wrong);
    pm[1].count = 0;
    T_TRUE(turns_of(q) >= LEN / (256 * 1024) + PAGES / 64);
    expect_refused(2, SG_WC_REM_OP_ERR, 0, 2, 7);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_READ), PAGES);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_POISON), PAGES);
    end();
    test_pm_fini(&pm[1]);
}

/* The machine has lost its power: the adapter exists, but does nothing any more. */
static void flush_never_done(void)
{
    uint32_t stag;

    place_begin(NULL, NULL);
    pm[1].later = 1000000;
    pm[1].later_ns = SG_NEVER - pair.side[1].h.now_ns;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
    ask(flush_of(1, stag, 0, 4096, P));
    write_to(2, stag, 0, 8, 8192);
    pair_pass(&pair, 5000000000);
    expect_none(0);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 1);
    place_end();
}

/* Between two turns of a request its region is deregistered, or its STag becomes another's. */
static void region_goes(void)
{
    uint32_t stag, again;
    int round;

    for (round = 0; round < 3; round++) {
        T_CONTEXT("round %d", round);
        place_begin(NULL, NULL);
        pm[1].later = 1;
        pm[1].later_ns = 1000000;
        stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
        ask(flush_of(1, stag, 0, 4096, P));
        expect_none(0);
        if (round) {
            T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DEREG_MR, stag), SG_OK);
        }
        if (round == 2) {
            again = region(1, 0, 8192, ALL_RIGHTS, SG_HASH_SHA256);
            T_EQ_U64(again, stag); /* the only free row, with the same key */
        }
        pair_pass(&pair, 2000000);
        if (round) {
            expect_refused(1, SG_WC_REM_ACCESS_ERR, 0, 1, 0);
            T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 1);
        } else {
            expect(0, 1, SG_WC_SUCCESS);
        }
        place_end();
    }
}

/* The queue pair is destroyed, or the connection dies, in the middle of a request. */
static void responder_goes(void)
{
    uint32_t stag;
    int round;

    for (round = 0; round < 2; round++) {
        T_CONTEXT("round %d", round);
        place_begin(NULL, NULL);
        pm[1].later = 1;
        pm[1].later_ns = 1000000;
        stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
        ask(flush_of(1, stag, 0, 4096, P));
        expect_none(0);
        T_EQ_U64(md_modify_qp(&pair.side[round].qp, SG_QP_ERROR), SG_OK);
        pair_pass(&pair, 2000000);
        /* The request was valid, so it is flushed, whichever side ended the connection. */
        expect(0, 1, SG_WC_FLUSH_ERR);
        T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 1);
        place_end();
    }
}

static const struct t_case cases[] = {
    { "FLU-06 FLU-30 FLU-33 a Flush that fails", flush_fails },
    { "FLU-07 a Flush that takes time", flush_takes_time },
    { "requests over many scattered pages", many_runs },
    { "FLU-07 a Flush that is never done, because the power went", flush_never_done },
    { "FLU-07 the region goes while a Flush is under way", region_goes },
    { "the connection goes while a Flush is under way", responder_goes },
};

T_MAIN(cases)
