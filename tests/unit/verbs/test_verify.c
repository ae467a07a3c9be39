/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verify: hashes of regions, the memory that they cover, and where they are written. */
#include "base/crc32c.h"
#include "mpe_rig.h"

static const char *const hex_digits = "0123456789abcdef";

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n;

    for (n = 0; hex[2 * n]; n++) {
        out[n] = (uint8_t)((strchr(hex_digits, hex[2 * n]) - hex_digits) << 4 |
                           (strchr(hex_digits, hex[2 * n + 1]) - hex_digits));
    }
    return n;
}

/* FIPS 180-4 and RFC 4231 examples; CRC32c of nine digits as in RFC 7143, octets as on the wire. */
static const struct {
    uint8_t alg;
    const char *text, *hex;
} vectors[] = {
    { SG_HASH_CRC32C, "123456789", "839206e3" },
    { SG_HASH_SHA256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { SG_HASH_SHA512, "abc",
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
      "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f" },
    { SG_HASH_HMAC_SHA256, "Hi There",
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
};

/* One region for each algorithm over the same octets, in persistent or ordinary memory. */
static void algorithms(void)
{
    uint32_t stag[SG_ARRAY_SIZE(vectors)], off, len;
    struct sg_cqe c;
    uint8_t want[64];
    struct ask q;
    size_t i, n;
    int where;

    for (where = 0; where < 2; where++) {
        off = where ? PM_LEN + 777 : 777;
        place_begin(NULL, NULL);
        for (i = 0; i < SG_ARRAY_SIZE(vectors); i++) {
            stag[i] = region(1, off, 64, SG_ACCESS_VERIFY | SG_ACCESS_REMOTE_READ, vectors[i].alg);
        }
        for (i = 0; i < SG_ARRAY_SIZE(vectors); i++) {
            T_CONTEXT("algorithm %u, memory %d", vectors[i].alg, where);
            len = (uint32_t)strlen(vectors[i].text);
            n = from_hex(vectors[i].hex, want);
            memcpy(pair_buf(&pair, 1) + off, vectors[i].text, len);
            if (!where) {
                memcpy(media(1, off), vectors[i].text, len);
            }
            memset(hash_sink(), 0xee, 64);
            q = verify_of(i, stag[i], off, len);
            q.room = (uint32_t)n;
            ask(q);
            c = expect(0, i, SG_WC_SUCCESS);
            T_EQ_U64(c.opcode, SG_WC_VERIFY);
            T_EQ_U64(sg_get_le32(&c.byte_len), n);
            T_SHOWS("FLU-18") {
                T_EQ_MEM(hash_sink(), want, n);
            }
            T_TRUE(n == 64 || hash_sink()[n] == 0xee);
            /* The same with an expected hash. */
            q = verify_of(100 + i, stag[i], off, len);
            q.hash = want;
            q.hash_len = (uint8_t)n;
            ask(q);
            expect(0, 100 + i, SG_WC_SUCCESS);
        }
        place_end();
    }
}

static void mismatch(void)
{
    static const struct {
        const char *name;
        uint8_t flip, len; /* octet that is wrong (0xff: none), octets sent */
        bool works;
    } rows[] = {
        { "right", 0xff, 32, true },
        { "first octet", 0, 32, false },
        { "last octet", 31, 32, false },
        { "too short", 0xff, 31, false },
        { "one octet", 0xff, 1, false },
        { "too long", 0xff, 33, false },
        { "another algorithm's length", 0xff, 64, false },
    };
    struct ask q;
    uint32_t stag;
    uint8_t want[64];
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].name);
        place_begin(NULL, NULL);
        stag = region(1, 4096, 8192, SG_ACCESS_VERIFY, SG_HASH_SHA256);
        memcpy(media(1, 4096), "abc", 3);
        memset(want, 0, sizeof(want));
        from_hex(vectors[1].hex, want);
        if (rows[i].flip != 0xff) {
            want[rows[i].flip] ^= 0x80;
        }
        memset(hash_sink(), 0xee, 64);
        pair.side[0].md.hold = true;
        q = verify_of(1, stag, 4096, 3);
        q.hash = want;
        q.hash_len = rows[i].len;
        ask(q);
        ask(verify_of(2, stag, 4096, 3));
        post(0, wr(0, SG_WR_READ, 3, 0, 64, 0));
        pair.side[0].md.hold = false;
        if (rows[i].works) {
            expect(0, 1, SG_WC_SUCCESS);
            expect(0, 2, SG_WC_SUCCESS);
            expect(0, 3, SG_WC_SUCCESS);
            T_EQ_U64(test_pm_count(&pm[1], TEST_PM_POISON), 0);
        } else {
            expect_refused(1, SG_WC_REM_OP_ERR, 0, 2, 7);
            expect(0, 2, SG_WC_FLUSH_ERR);
            expect(0, 3, SG_WC_FLUSH_ERR);
            T_EQ_U64(hash_sink()[0], 0xee);
            T_EQ_U64(test_pm_count(&pm[1], TEST_PM_POISON), 1);
            T_EQ_U64(pm[1].calls[test_pm_find(&pm[1], 0, TEST_PM_POISON)].len, 3);
            T_EQ_U64(test_pm_count(&pm[1], TEST_PM_READ), 1);
        }
        place_end();
    }
}

/* The hash covers the media: no write that is not placed, nothing that only caches hold. */
static void media_side(void)
{
    static const char text[] = "123456789";
    uint8_t unwritten[4] = { 0 }, now[4];
    uint32_t stag;
    int hold;

    for (hold = 0; hold < 2; hold++) {
        T_CONTEXT("hold %d", hold);
        place_begin(NULL, NULL);
        pm[1].hold = hold;
        stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
        ask(verify_of(1, stag, 64, 9));
        expect(0, 1, SG_WC_SUCCESS);
        memcpy(unwritten, hash_sink(), 4);
        memcpy(pair_buf(&pair, 0), text, 9);
        write_to(2, stag, 0, 9, 64);
        expect(0, 2, SG_WC_SUCCESS);
        ask(verify_of(3, stag, 64, 9));
        expect(0, 3, SG_WC_SUCCESS);
        T_SHOWS("FLU-19") {
            T_EQ_MEM(hash_sink(), unwritten, 4);
        }
        ask(flush_of(4, stag, 64, 9, G));
        expect(0, 4, SG_WC_SUCCESS);
        ask(verify_of(5, stag, 64, 9));
        expect(0, 5, SG_WC_SUCCESS);
        T_EQ_MEM(hash_sink(), unwritten, 4);
        ask(flush_of(6, stag, 64, 9, P));
        expect(0, 6, SG_WC_SUCCESS);
        ask(verify_of(7, stag, 64, 9));
        expect(0, 7, SG_WC_SUCCESS);
        from_hex(vectors[0].hex, now);
        T_EQ_MEM(hash_sink(), now, 4);
        place_end();
    }
}

/* A region over both kinds of memory. */
static void mixed_memory(void)
{
    uint32_t stag, crc;

    place_begin(NULL, NULL);
    stag =
        region(1, PM_LEN - 8192, 16384, SG_ACCESS_VERIFY | SG_ACCESS_REMOTE_READ, SG_HASH_CRC32C);
    fill(1, PM_LEN - 8192, 16384, 5);
    memset(media(1, PM_LEN - 8192), 0x77, 8192); /* the media differ from visible memory */
    ask(verify_of(1, stag, PM_LEN - 6000, 12000));
    expect(0, 1, SG_WC_SUCCESS);
    crc = sg_crc32c(0, media(1, PM_LEN - 6000), 6000);
    crc = sg_crc32c(crc, pair_buf(&pair, 1) + PM_LEN, 6000);
    T_EQ_U64(sg_get_le32(hash_sink()), crc);
    place_end();
}

static void media_fault(void)
{
    uint32_t stag;

    place_begin(NULL, NULL);
    stag = region(1, 0, PM_LEN, SG_ACCESS_VERIFY, SG_HASH_SHA512);
    pm[1].bad_lo = at(1, 70000);
    pm[1].bad_hi = at(1, 70001);
    ask(verify_of(1, stag, 0, 70000));
    expect(0, 1, SG_WC_SUCCESS);
    ask(verify_of(2, stag, 0, 70001));
    T_SHOWS("FLU-16") {
        expect_refused(2, SG_WC_REM_OP_ERR, 0, 2, 7);
    }
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_POISON), 0);
    place_end();
    /* Ordinary memory that does not respond. */
    place_begin(NULL, NULL);
    stag = region(1, PM_LEN, 8192, SG_ACCESS_VERIFY, SG_HASH_SHA512);
    pair.side[1].h.fault_lo = at(1, PM_LEN + 5000);
    pair.side[1].h.fault_hi = at(1, PM_LEN + 5001);
    ask(verify_of(1, stag, PM_LEN, 8192));
    expect_refused(1, SG_WC_REM_OP_ERR, 0, 2, 7);
    place_end();
}

/* Large ranges take many turns, and do not delay other connections' work for long. */
static void many_turns(void)
{
    enum { LEN = 3 << 20 };
    const struct sg_adapter_config *config = NULL;
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    uint64_t area;
    uint32_t crc;
    struct ask q;

    pair_start_sized(&pair, config, NULL, 8 << 20);
    pair_open(&pair, &(struct md_qp_params){ .access = ALL_RIGHTS });
    pair_connect(&pair);
    area = test_host_alloc(&pair.side[1].h, LEN, 4096);
    memset(test_host_ptr(&pair.side[1].h, area), 0x31, LEN);
    c = md_reg_mr_cmd(pair.side[1].pd, area, LEN, SG_ACCESS_VERIFY | SG_ACCESS_REMOTE_READ);
    c.hash_alg = SG_HASH_SHA256;
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp), SG_OK);
    q = verify_of(1, sg_get_le32(&rsp.id), 0, LEN);
    q.raddr = area;
    T_TRUE(turns_of(q) >= LEN / (256 * 1024));
    expect(0, 1, SG_WC_SUCCESS);

    c.hash_alg = SG_HASH_CRC32C;
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp), SG_OK);
    q.id = 2;
    q.rkey = sg_get_le32(&rsp.id);
    ask(q);
    expect(0, 2, SG_WC_SUCCESS);
    crc = sg_crc32c(0, test_host_ptr(&pair.side[1].h, area), LEN);
    T_EQ_U64(sg_get_le32(hash_sink()), crc);
    end();
}

/* Many connections that all want hashes share one turn's budget. */
static void shared_turns(void)
{
    enum { N = 12, LEN = 1 << 20, BUDGET = 1 << 20 };
    static struct md_qp qp[2][N];
    struct pair_side *s = &pair.side[1];
    uint64_t before, most = 0;
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    struct sg_cqe cqe;
    uint64_t area;
    struct ask q;
    int i, n;

    pair_start_sized(&pair, NULL, NULL, 8 << 20);
    area = test_host_alloc(&s->h, LEN, 4096);
    c = md_reg_mr_cmd(s->pd, area, LEN, SG_ACCESS_VERIFY);
    c.hash_alg = SG_HASH_SHA256;
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), &rsp), SG_OK);
    q = verify_of(1, sg_get_le32(&rsp.id), 0, LEN);
    q.raddr = area;
    pair.base_brk[1] = s->h.brk;
    for (n = 0; n < N; n++) {
        pair_open(&pair, &(struct md_qp_params){ .access = ALL_RIGHTS });
        pair_connect(&pair);
        for (i = 0; i < 2; i++) {
            qp[i][n] = pair.side[i].qp;
            pair.base_brk[i] = pair.side[i].h.brk;
        }
    }
    pair.side[0].md.hold = true;
    for (n = 0; n < N; n++) {
        pair.side[0].qp = qp[0][n];
        ask(q);
        qp[0][n] = pair.side[0].qp;
    }
    pair.side[0].md.hold = false;
    test_host_take_kick(&pair.side[0].h);
    while (sg_adapter_run(pair.side[0].md.a, BUDGET)) {
    }
    sg_mem_switch_run(pair.sw, pair.side[0].h.now_ns);
    while (s->h.timer_ns <= s->h.now_ns || test_host_take_kick(&s->h)) {
        before = s->h.dma_reads;
        s->h.kicked |= sg_adapter_run(s->md.a, BUDGET);
        most = SG_MAX(most, s->h.dma_reads - before);
    }
    /* Pieces of 64 KiB; the last connection may exceed the budget by as much as it may do alone. */
    T_TRUE(most > 4 && most <= BUDGET / 65536 + 4);
    pair_settle(&pair);
    for (n = 0; n < N; n++) {
        T_TRUE(md_poll(&pair.side[0].cq, &cqe));
        T_EQ_U64(cqe.status, SG_WC_SUCCESS);
    }
    pair_stop(&pair);
}

/* ---- the requester's side of it ---- */

static void sinks(void)
{
    enum { NOWHERE = 0x123456 };
    static const struct {
        const char *name;
        uint32_t room, lkey; /* room 0: no element */
        uint8_t hash_len;
        enum sg_wc_status status;
        bool sent; /* the failure comes with the answer */
    } rows[] = {
        { "no element", 0, 0, 0, SG_WC_SUCCESS, true },
        { "no element, hash expected", 0, 0, 32, SG_WC_SUCCESS, true },
        { "exact", 32, 0, 0, SG_WC_SUCCESS, true },
        { "too short for the answer", 31, 0, 0, SG_WC_LOC_LEN_ERR, true },
        { "too short for the expected hash", 31, 0, 32, SG_WC_LOC_LEN_ERR, false },
        { "unknown key", 32, NOWHERE, 0, SG_WC_LOC_PROT_ERR, false },
        { "beyond the region", 65, 0, 0, SG_WC_LOC_PROT_ERR, false },
    };
    struct ask q;
    uint32_t stag;
    uint8_t want[64];
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].name);
        place_begin(NULL, NULL);
        from_hex(vectors[1].hex, want);
        memcpy(media(1, 0), "abc", 3);
        stag = region(1, 0, 4096, SG_ACCESS_VERIFY, SG_HASH_SHA256);
        q = verify_of(1, stag, 0, 3);
        q.room = rows[i].room;
        q.addr = rows[i].room ? q.addr : 0;
        q.lkey = rows[i].lkey;
        q.hash = want;
        q.hash_len = rows[i].hash_len;
        memset(hash_sink(), 0xee, 64);
        ask(q);
        expect(0, 1, rows[i].status);
        T_EQ_U64(test_pm_count(&pm[1], TEST_PM_READ), rows[i].sent);
        if (rows[i].status != SG_WC_SUCCESS || !rows[i].room) {
            T_EQ_U64(hash_sink()[0], 0xee);
        }
        T_EQ_U64(md_qp_state(&pair.side[0].qp),
                 rows[i].status == SG_WC_SUCCESS ? SG_QP_RTS : SG_QP_ERROR);
        place_end();
    }
}

/* A sink of length 0 holds no hash; one without the right to write is refused at once. */
static void sinks_without_right(void)
{
    struct ask q;
    uint32_t stag, readable;

    place_begin(NULL, NULL);
    stag = region(1, 0, 4096, SG_ACCESS_VERIFY, SG_HASH_SHA256);
    readable = region(0, 0, 4096, SG_ACCESS_REMOTE_READ, 0);
    q = verify_of(1, stag, 0, 3);
    q.addr = at(0, 0);
    q.lkey = readable;
    ask(q);
    expect(0, 1, SG_WC_LOC_PROT_ERR);
    place_end();
    place_begin(NULL, NULL);
    stag = region(1, 0, 4096, SG_ACCESS_VERIFY, SG_HASH_SHA256);
    q = verify_of(1, stag, 0, 3);
    q.rkey = stag;
    q.room = 0;
    ask(q);
    expect(0, 1, SG_WC_LOC_LEN_ERR);
    place_end();
}

/* A sink in persistent memory: the hash is there when the completion is. */
static void persistent_sink(void)
{
    struct ask q;
    uint32_t stag, sink;

    place_begin(NULL, NULL);
    pm[0].hold = true;
    memcpy(media(1, 0), "abc", 3);
    stag = region(1, 0, 4096, SG_ACCESS_VERIFY, SG_HASH_SHA256);
    sink = region(0, 0, 4096, SG_ACCESS_LOCAL_WRITE, 0);
    q = verify_of(1, stag, 0, 3);
    q.addr = at(0, 0);
    q.lkey = sink;
    ask(q);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_be32(pair_buf(&pair, 0)), 0xba7816bf);
    T_EQ_U64(test_pm_count(&pm[0], TEST_PM_PLACE), 1);
    place_end();
}

/* The sink is deregistered while the hash is being computed. */
static void sink_goes(void)
{
    struct ask q;
    uint32_t stag, sink;

    place_begin(NULL, NULL);
    pm[1].later = 1;
    pm[1].later_ns = 1000000;
    stag = region(1, 0, 4096, ALL_FLUSH | SG_ACCESS_VERIFY, SG_HASH_SHA256);
    sink = region(0, 0, 4096, SG_ACCESS_LOCAL_WRITE, 0);
    ask(flush_of(1, stag, 0, 64, P));
    q = verify_of(2, stag, 0, 64);
    q.addr = at(0, 0);
    q.lkey = sink;
    ask(q);
    expect_none(0);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DEREG_MR, sink), SG_OK);
    pair_pass(&pair, 2000000);
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_LOC_PROT_ERR);
    T_EQ_U64(pair_buf(&pair, 0)[0], 0);
    place_end();
}

static void map_sink(uint32_t stag, uint64_t page, bool writable)
{
    struct sg_cmd_map_pages c = { .hdr.opcode = SG_ADMIN_MAP_PAGES };
    struct pair_side *s = &pair.side[0];
    uint64_t list = test_host_alloc(&s->h, 8, 8);

    sg_put_le64(test_host_ptr(&s->h, list), page | writable);
    sg_put_le32(&c.stag, stag);
    sg_put_le32(&c.op, SG_MAP_PAGES);
    sg_put_le64(&c.count, 1);
    sg_put_le64(&c.list, list);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
}

/* With on-demand paging the sink's page becomes read-only meanwhile: it may be another's now. */
static void sink_becomes_read_only(void)
{
    struct sg_cmd_reg_mr c;
    uint32_t stag, sink;
    bool writable;
    struct ask q;

    for (int again = 0; again < 2; again++) {
        T_CONTEXT("again %d", again);
        writable = again == 0;
        place_begin(NULL, NULL);
        pm[1].later = 1;
        pm[1].later_ns = 1000000;
        c = md_reg_mr_cmd(pair.side[0].pd, 0, 4096, SG_ACCESS_LOCAL_WRITE);
        c.flags = SG_MR_ODP;
        c.pages = (struct sg_page_list){ .page_shift = 12 };
        sink = md_make(&pair.side[0].md, &c, sizeof(c));
        map_sink(sink, at(0, PM_LEN), true);
        stag = region(1, 0, 4096, ALL_FLUSH | SG_ACCESS_VERIFY, SG_HASH_SHA256);
        ask(flush_of(1, stag, 0, 64, P));
        q = verify_of(2, stag, 0, 64);
        q.addr = 512;
        q.lkey = sink;
        ask(q);
        expect_none(0);
        map_sink(sink, at(0, PM_LEN), writable);
        pair_pass(&pair, 2000000);
        expect(0, 1, SG_WC_SUCCESS);
        expect(0, 2, writable ? SG_WC_SUCCESS : SG_WC_LOC_PROT_ERR);
        T_EQ_INT(sg_get_be32(pair_buf(&pair, 0) + PM_LEN + 512) != 0, writable);
        place_end();
    }
}

static const struct t_case cases[] = {
    { "algorithms, several regions over one memory", algorithms },
    { "hashes that differ", mismatch },
    { "the media side is hashed", media_side },
    { "a region over both kinds of memory", mixed_memory },
    { "memory that cannot be read", media_fault },
    { "Verify of a large range, in turns", many_turns },
    { "many connections' Verifies in shared turns", shared_turns },
    { "sinks of the hash", sinks },
    { "sinks without the right, without room", sinks_without_right },
    { "a sink in persistent memory", persistent_sink },
    { "a sink that goes away", sink_goes },
    { "a sink that becomes read-only", sink_becomes_read_only },
};

T_MAIN(cases)
