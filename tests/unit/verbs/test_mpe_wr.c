/* SPDX-License-Identifier: GPL-2.0-or-later */
/* FLUSH, VERIFY and ATOMIC_WRITE as work requests: form, order, drafts, no domain. */
#include "mpe_rig.h"

static void set_draft(struct sg_adapter_config *config, uint8_t draft)
{
    pair_default_config(config);
    config->engine.mpe_draft = draft;
}

/* ---- malformed entries ---- */

enum mpe_wr_field {
    F_NONE,
    F_FLAGS,
    F_HASH_LEN,
    F_NUM_SGE,
    F_INV_STAG,
    F_WQE_FLAGS,
    F_ROOM,
    F_INLINE
};

static const struct {
    const char *name;
    uint8_t opcode;
    enum mpe_wr_field field;
    uint32_t value;
    enum sg_wc_status status;
} bad_rows[] = {
    { "flush of neither kind", SG_WR_FLUSH, F_FLAGS, 0, SG_WC_LOC_QP_OP_ERR },
    { "flush, R alone", SG_WR_FLUSH, F_FLAGS, R, SG_WC_LOC_QP_OP_ERR },
    { "flush, unknown flag", SG_WR_FLUSH, F_FLAGS, P | 8, SG_WC_LOC_QP_OP_ERR },
    { "flush, unknown flag 31", SG_WR_FLUSH, F_FLAGS, P | 0x80000000, SG_WC_LOC_QP_OP_ERR },
    { "flush with a hash", SG_WR_FLUSH, F_HASH_LEN, 4, SG_WC_LOC_QP_OP_ERR },
    { "flush with an element", SG_WR_FLUSH, F_NUM_SGE, 1, SG_WC_LOC_QP_OP_ERR },
    { "flush with two elements", SG_WR_FLUSH, F_NUM_SGE, 2, SG_WC_LOC_LEN_ERR },
    { "flush, inline", SG_WR_FLUSH, F_WQE_FLAGS, SG_WQE_INLINE, SG_WC_LOC_QP_OP_ERR },
    { "FLU-03 flush that invalidates", SG_WR_FLUSH, F_INV_STAG, 0x100, SG_WC_LOC_QP_OP_ERR },
    { "verify with flags", SG_WR_VERIFY, F_FLAGS, P, SG_WC_LOC_QP_OP_ERR },
    { "verify, hash too long", SG_WR_VERIFY, F_HASH_LEN, 65, SG_WC_LOC_LEN_ERR },
    { "verify, hash of 255", SG_WR_VERIFY, F_HASH_LEN, 255, SG_WC_LOC_LEN_ERR },
    { "verify with two elements", SG_WR_VERIFY, F_NUM_SGE, 2, SG_WC_LOC_LEN_ERR },
    { "verify, inline", SG_WR_VERIFY, F_WQE_FLAGS, SG_WQE_INLINE, SG_WC_LOC_QP_OP_ERR },
    { "FLU-03 verify that invalidates", SG_WR_VERIFY, F_INV_STAG, 0x100, SG_WC_LOC_QP_OP_ERR },
    { "FLU-22 atomic write of 7", SG_WR_ATOMIC_WRITE, F_INLINE, 7, SG_WC_LOC_LEN_ERR },
    { "FLU-22 atomic write of 9", SG_WR_ATOMIC_WRITE, F_INLINE, 9, SG_WC_LOC_LEN_ERR },
    { "FLU-22 atomic write of nothing", SG_WR_ATOMIC_WRITE, F_INLINE, 0, SG_WC_LOC_LEN_ERR },
    { "FLU-22 atomic write, element of 7", SG_WR_ATOMIC_WRITE, F_ROOM, 7, SG_WC_LOC_LEN_ERR },
    { "FLU-22 atomic write, element of 16", SG_WR_ATOMIC_WRITE, F_ROOM, 16, SG_WC_LOC_LEN_ERR },
    { "atomic write, element beyond", SG_WR_ATOMIC_WRITE, F_ROOM, 1 << 20, SG_WC_LOC_PROT_ERR },
    { "atomic write, two elements", SG_WR_ATOMIC_WRITE, F_NUM_SGE, 2, SG_WC_LOC_LEN_ERR },
    { "FLU-03 atomic write that invalidates", SG_WR_ATOMIC_WRITE, F_INV_STAG, 0x100,
      SG_WC_LOC_QP_OP_ERR },
};

static struct ask plain(uint8_t opcode, uint64_t id, uint32_t stag)
{
    switch (opcode) {
    case SG_WR_FLUSH:
        return flush_of(id, stag, 0, 64, P);
    case SG_WR_VERIFY:
        return verify_of(id, stag, 0, 64);
    default:
        return atomic_of(id, stag, 0, id);
    }
}

static void spoil(struct sg_wqe_hdr *h, enum mpe_wr_field field, uint32_t value)
{
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);

    switch (field) {
    case F_FLAGS:
        sg_put_le32(&place->flags, value);
        break;
    case F_HASH_LEN:
        place->hash_len = (uint8_t)value;
        break;
    case F_NUM_SGE:
        h->num_sge = (uint8_t)value;
        h->flags &= ~SG_WQE_INLINE;
        break;
    case F_INV_STAG:
        sg_put_le32(&h->inv_stag, value);
        break;
    case F_WQE_FLAGS:
        h->flags |= (uint8_t)value;
        break;
    case F_ROOM:
        h->flags &= ~SG_WQE_INLINE;
        h->num_sge = 1;
        sg_put_le64(&sge->addr, at(0, 0));
        sg_put_le32(&sge->length, value);
        sg_put_le32(&sge->lkey, pair.side[0].stag);
        break;
    case F_INLINE:
        sg_put_le16(&h->inline_len, (uint16_t)value);
        break;
    case F_NONE:
        break;
    }
}

static void malformed(void)
{
    struct ask q;
    uint32_t stag;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(bad_rows); i++) {
        T_CONTEXT("%s", bad_rows[i].name);
        place_begin(NULL, NULL);
        stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
        memset(pair_buf(&pair, 1), 0x5a, 64);
        q = plain(bad_rows[i].opcode, 7, stag);
        spoil(build(&q), bad_rows[i].field, bad_rows[i].value);
        md_sq_doorbell(&pair.side[0].qp);
        expect(0, 7, bad_rows[i].status);
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        T_TRUE(pair.side[0].h.guest_errors > 0);
        /* No part of it was sent. */
        T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 0);
        T_EQ_U64(test_pm_count(&pm[1], TEST_PM_READ), 0);
        T_EQ_U64(pair_buf(&pair, 1)[0], 0x5a);
        place_end();
    }
}

/* An entry as short as its stride allows. */
static void short_strides(void)
{
    const struct md_qp_params params = { .stride = 64 };
    struct ask q;
    uint32_t stag;

    place_begin(NULL, &params);
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
    ask(flush_of(1, stag, 0, 64, P));
    expect(0, 1, SG_WC_SUCCESS);
    q = verify_of(2, stag, 0, 64);
    q.addr = 0;
    ask(q);
    expect(0, 2, SG_WC_SUCCESS);
    ask(atomic_of(3, stag, 0, 5));
    expect(0, 3, SG_WC_SUCCESS);
    q = verify_of(4, stag, 0, 64);
    q.addr = 0;
    q.hash_len = 1; /* beyond the stride */
    ask(q);
    expect(0, 4, SG_WC_LOC_LEN_ERR);
    place_end();
}

/* ---- order and credits ---- */

/* Many of all kinds, more than ORD: completions in order of submission (FLU-35). */
static void credits(void)
{
    enum { N = 120 };
    static const uint8_t kinds[] = { SG_WR_READ,   SG_WR_FLUSH,        SG_WR_WRITE,
                                     SG_WR_VERIFY, SG_WR_ATOMIC_WRITE, SG_WR_READ };
    const struct md_qp_params params = { .entries = 128 };
    uint32_t i, stag;

    place_begin(NULL, &params);
    pm[1].later = 1;
    pm[1].later_ns = 10000;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
    pair.side[0].md.hold = true;
    for (i = 0; i < N; i++) {
        uint8_t kind = kinds[i % SG_ARRAY_SIZE(kinds)];

        if (kind == SG_WR_READ || kind == SG_WR_WRITE) {
            post(0, wr(0, kind, i, 64 * i, 64, 64 * i));
        } else {
            ask(plain(kind, i, stag));
        }
    }
    pair.side[0].md.hold = false;
    pair_pass(&pair, 1000000000);
    for (i = 0; i < N; i++) {
        struct sg_cqe c = expect(0, i, SG_WC_SUCCESS);

        T_EQ_U64(sg_get_le32(&c.wr_index), i);
    }
    expect_none(0);
    place_end();
}

/* With one credit, one request is out at a time. */
static void one_credit(void)
{
    struct sg_adapter_config config;
    uint32_t stag, i;

    pair_default_config(&config);
    config.engine.max_ird = config.engine.max_ord = 1;
    place_start(&config);
    pair_open(&pair, &(struct md_qp_params){ .access = ALL_RIGHTS });
    {
        enum sg_status status;
        struct sg_eqe e;

        pair.side[0].conn = pair_connect_cmd(&pair, &pair.side[0].qp, 1, 1, NULL, &status);
        e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
        pair.side[1].conn = sg_get_le32(&e.conn);
        pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, pair.side[1].conn, 1, 1, NULL);
        pair_expect(&pair, 0, SG_EV_CM_REPLY);
    }
    pm[1].later = 1;
    pm[1].later_ns = 1000000;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
    for (i = 0; i < 3; i++) {
        ask(flush_of(i, stag, 64 * i, 64, P));
    }
    post(0, wr(0, SG_WR_READ, 3, 0, 64, 0));
    pair_settle(&pair);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 1);
    for (i = 0; i < 3; i++) {
        expect_none(0);
        pair_pass(&pair, 1000000);
        expect(0, i, SG_WC_SUCCESS);
    }
    expect(0, 3, SG_WC_SUCCESS);
    place_end();
}

/* FENCE waits for these requests as for Reads; without it a Write overtakes them. */
static void fence(void)
{
    struct md_wr w;
    uint32_t stag;
    int fenced;

    for (fenced = 0; fenced < 2; fenced++) {
        place_begin(NULL, NULL);
        pm[1].later = 1;
        pm[1].later_ns = 1000000;
        stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
        pair_buf(&pair, 0)[0] = 0x99;
        ask(flush_of(1, stag, 0, 64, P));
        w = wr(0, SG_WR_WRITE, 2, 0, 8, PM_LEN);
        w.flags = fenced ? SG_WQE_FENCE : 0;
        post(0, w);
        pair_settle(&pair);
        T_EQ_U64(pair_buf(&pair, 1)[PM_LEN], fenced ? 0 : 0x99);
        pair_pass(&pair, 2000000);
        T_EQ_U64(pair_buf(&pair, 1)[PM_LEN], 0x99);
        expect(0, 1, SG_WC_SUCCESS);
        expect(0, 2, SG_WC_SUCCESS);
        place_end();
    }
}

/* Atomic Write sends what the source held when the request started. */
static void source_of_atom(void)
{
    struct ask q;
    uint32_t stag;

    place_begin(NULL, NULL);
    pm[1].later = 1;
    pm[1].later_ns = 1000000;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
    ask(flush_of(1, stag, 0, 64, P));
    q = atomic_of(2, stag, 8, 0);
    q.addr = at(0, 0);
    q.room = 8;
    sg_put_le64(pair_buf(&pair, 0), 1111);
    ask(q);
    pair_settle(&pair);
    sg_put_le64(pair_buf(&pair, 0), 2222);
    pair_pass(&pair, 2000000);
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le64(pair_buf(&pair, 1) + 8), 1111);
    /* A source that does not respond. */
    q.id = 3;
    pair.side[0].h.fault_lo = at(0, 4);
    pair.side[0].h.fault_hi = at(0, 5);
    ask(q);
    expect(0, 3, SG_WC_LOC_PROT_ERR);
    place_end();
}

/* ---- drafts and machines ---- */

static void extension_off(void)
{
    static const uint8_t opcodes[] = { SG_WR_FLUSH, SG_WR_VERIFY, SG_WR_ATOMIC_WRITE };
    struct sg_adapter_config config;
    struct md_qp_params params = {
        .access = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE,
    };
    size_t i;

    set_draft(&config, SG_MPE_DRAFT_OFF);
    for (i = 0; i < SG_ARRAY_SIZE(opcodes); i++) {
        T_CONTEXT("opcode %u", opcodes[i]);
        place_begin(&config, &params);
        ask(plain(opcodes[i], 1, pair.side[1].stag));
        expect(0, 1, SG_WC_LOC_QP_OP_ERR);
        place_end();
    }
}

static void draft_01(void)
{
    struct sg_adapter_config config;
    struct ask q;
    uint32_t stag;

    set_draft(&config, SG_MPE_DRAFT_01);
    place_begin(&config, NULL);
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
    ask(flush_of(1, stag, 0, 64, P | G));
    expect(0, 1, SG_WC_SUCCESS);
    ask(verify_of(2, stag, 0, 64));
    expect(0, 2, SG_WC_SUCCESS);
    ask(atomic_of(3, stag, 0, 77));
    expect(0, 3, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le64(pair_buf(&pair, 1)), 77);
    ask(flush_of(4, stag, 0, 64, P | R));
    expect(0, 4, SG_WC_LOC_QP_OP_ERR);
    place_end();

    /* The request may name an STag, which is invalidated at the end; so it must be a valid one. */
    place_begin(&config, NULL);
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
    q = flush_of(1, stag, 0, 64, P);
    q.inv_stag = md_alloc_mr(&pair.side[1].md, pair.side[1].pd, 4); /* not valid yet */
    ask(q);
    expect_refused(1, SG_WC_REM_ACCESS_ERR, 0, 1, 9);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 1);
    place_end();
}

/* By draft -01 the named region is invalidated after the request, which may be about it. */
static void draft_01_invalidates(void)
{
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    struct sg_adapter_config config;
    struct sg_wqe_hdr *h;
    struct sg_wqe_reg *r;
    uint64_t pbl;
    uint32_t stag;
    struct ask q;

    set_draft(&config, SG_MPE_DRAFT_01);
    place_begin(&config, &params);
    stag = md_alloc_mr(&pair.side[1].md, pair.side[1].pd, 1);
    pbl = test_host_alloc(&pair.side[1].h, 8, 8);
    sg_put_le64(test_host_ptr(&pair.side[1].h, pbl), at(1, 0));
    h = md_sq_entry(&pair.side[1].qp);
    h->opcode = SG_WR_REG_MR;
    h->flags = SG_WQE_SIGNALED;
    r = (struct sg_wqe_reg *)(h + 1);
    sg_put_le32(&r->stag, stag);
    sg_put_le32(&r->access, ALL_FLUSH | SG_ACCESS_REMOTE_WRITE);
    sg_put_le64(&r->va, at(1, 0));
    sg_put_le64(&r->length, 4096);
    sg_put_le64(&r->pbl_addr, pbl);
    sg_put_le32(&r->npages, 1);
    r->page_shift = 12;
    md_sq_doorbell(&pair.side[1].qp);
    expect(1, 0, SG_WC_SUCCESS);
    pm[1].hold = true;
    fill(0, 0, 4096, 5);
    write_to(1, stag, 0, 4096, 0);
    q = flush_of(2, stag, 0, 4096, P);
    q.inv_stag = stag;
    ask(q);
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_SUCCESS);
    T_EQ_MEM(media(1, 0), pair_buf(&pair, 0), 4096);
    ask(flush_of(3, stag, 0, 4096, P));
    expect_refused(3, SG_WC_REM_ACCESS_ERR, 0, 1, 0);
    place_end();
}

/* A fast-registered region may be flushed; its memory is checked as with REG_MR. */
static void fast_registered(void)
{
    static const struct {
        uint32_t off, access;
        enum sg_wc_status status;
    } rows[] = {
        { 0, ALL_FLUSH, SG_WC_SUCCESS },
        { PM_LEN, SG_ACCESS_FLUSH_GLOBAL, SG_WC_SUCCESS },
        { PM_LEN, SG_ACCESS_FLUSH_PERSISTENT, SG_WC_MW_BIND_ERR },
        { 0, SG_ACCESS_VERIFY, SG_WC_MW_BIND_ERR },
    };
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    struct sg_wqe_hdr *h;
    struct sg_wqe_reg *r;
    uint32_t stag;
    uint64_t pbl;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("row %zu", i);
        place_begin(NULL, &params);
        stag = md_alloc_mr(&pair.side[1].md, pair.side[1].pd, 1);
        pbl = test_host_alloc(&pair.side[1].h, 8, 8);
        sg_put_le64(test_host_ptr(&pair.side[1].h, pbl), at(1, rows[i].off));
        h = md_sq_entry(&pair.side[1].qp);
        h->opcode = SG_WR_REG_MR;
        h->flags = SG_WQE_SIGNALED;
        r = (struct sg_wqe_reg *)(h + 1);
        sg_put_le32(&r->stag, stag);
        sg_put_le32(&r->access, rows[i].access);
        sg_put_le64(&r->va, at(1, rows[i].off));
        sg_put_le64(&r->length, 4096);
        sg_put_le64(&r->pbl_addr, pbl);
        sg_put_le32(&r->npages, 1);
        r->page_shift = 12;
        md_sq_doorbell(&pair.side[1].qp);
        expect(1, 0, rows[i].status);
        if (rows[i].status == SG_WC_SUCCESS) {
            ask(flush_of(1, stag, rows[i].off, 4096,
                         rows[i].access & SG_ACCESS_FLUSH_PERSISTENT ? P | G : G));
            expect(0, 1, SG_WC_SUCCESS);
        }
        place_end();
    }
}

/* Without any domain, global visibility, hashes and Atomic Writes still work. */
static void no_domain(void)
{
    uint32_t stag;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, &(struct md_qp_params){ .access = ALL_RIGHTS });
    pair_connect(&pair);
    stag = region(1, 0, 65536, ALL_RIGHTS & ~SG_ACCESS_FLUSH_PERSISTENT, SG_HASH_CRC32C);
    memcpy(pair_buf(&pair, 0), "123456789", 9);
    write_to(1, stag, 0, 9, 64);
    expect(0, 1, SG_WC_SUCCESS);
    ask(flush_of(2, stag, 64, 9, G));
    expect(0, 2, SG_WC_SUCCESS);
    ask(verify_of(3, stag, 64, 9));
    expect(0, 3, SG_WC_SUCCESS);
    T_EQ_MEM(hash_sink(), "\x83\x92\x06\xe3", 4);
    ask(atomic_of(4, stag, 128, 0x0807060504030201));
    expect(0, 4, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + 128, "\1\2\3\4\5\6\7\10", 8);
    ask(flush_of(5, stag, 64, 9, P));
    expect_refused(5, SG_WC_REM_ACCESS_ERR, 0, 1, 2);
    end();
}

/* ---- counters ---- */

static struct sg_stats stats(int side)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_STATS };
    uint64_t out = test_host_alloc(&pair.side[side].h, sizeof(struct sg_stats), 8);

    sg_put_le64(&c.out_addr, out);
    sg_put_le32(&c.out_len, sizeof(struct sg_stats));
    T_EQ_U64(md_cmd(&pair.side[side].md, &c, sizeof(c), NULL), SG_OK);
    return *(struct sg_stats *)test_host_ptr(&pair.side[side].h, out);
}

static void counters(void)
{
    struct sg_stats s;
    uint32_t stag;
    int i;

    place_begin(NULL, NULL);
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
    for (i = 0; i < 6; i++) {
        ask(plain(i < 3 ? SG_WR_FLUSH : i < 5 ? SG_WR_VERIFY : SG_WR_ATOMIC_WRITE, i, stag));
        expect(0, i, SG_WC_SUCCESS);
    }
    s = stats(0);
    T_EQ_U64(sg_get_le64(&s.tx_flushes), 3);
    T_EQ_U64(sg_get_le64(&s.tx_verifies), 2);
    T_EQ_U64(sg_get_le64(&s.tx_atomic_writes), 1);
    T_EQ_U64(sg_get_le64(&s.rx_flushes), 0);
    T_EQ_U64(sg_get_le64(&s.tx_reads), 0);
    s = stats(1);
    T_EQ_U64(sg_get_le64(&s.rx_flushes), 3);
    T_EQ_U64(sg_get_le64(&s.rx_verifies), 2);
    T_EQ_U64(sg_get_le64(&s.rx_atomic_writes), 1);
    T_EQ_U64(sg_get_le64(&s.tx_flushes), 0);
    T_EQ_U64(sg_get_le64(&s.tx_read_responses), 0);
    place_end();
}

static const struct t_case cases[] = {
    { "malformed entries", malformed },
    { "entries within short strides", short_strides },
    { "FLU-35 credits shared with Reads; completions in order", credits },
    { "FLU-35 one credit", one_credit },
    { "fence", fence },
    { "source of an Atomic Write", source_of_atom },
    { "the extension switched off", extension_off },
    { "draft -01: no R, an STag to invalidate", draft_01 },
    { "draft -01 invalidates when done", draft_01_invalidates },
    { "fast-registered regions", fast_registered },
    { "a machine without a domain", no_domain },
    { "counters", counters },
};

T_MAIN(cases)
