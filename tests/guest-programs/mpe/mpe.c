/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flush, Verify and Atomic Write between two machines, through libibverbs and staghorndv.h.
 *
 * MPE_SERVER=ADDRESS mpe [PART-OF-NAME]...; the server is mpe_server.c.
 */
#include "mpe_ops.h"

/* ---- Flush ---- */

static void flush__range(void)
{
    begin();
    write_fresh(R_CRC32C, AT, LEN);
    post_flush(R_CRC32C, AT, LEN, IBV_FLUSH_GLOBAL);
    expect_ok(IBV_WC_FLUSH);
    post_flush(R_CRC32C, 0, MPE_SIZE, IBV_FLUSH_GLOBAL);
    post_flush(R_FLUSH_ONLY, 7, 1, IBV_FLUSH_GLOBAL);
    post_flush(R_CRC32C, 0, 0, IBV_FLUSH_GLOBAL);
    expect_ok(IBV_WC_FLUSH);
    expect_ok(IBV_WC_FLUSH);
    expect_ok(IBV_WC_FLUSH);
}

static void flush__region(void)
{
    struct sgdv_device_attr attr;

    begin();
    T_EQ_INT(sgdv_query_device(c.id->verbs, &attr, sizeof(attr)), 0);
    /* Address and length are ignored. */
    if (attr.caps & SGDV_CAP_FLUSH_MR) {
        T_EQ_INT(try_flush(region(R_CRC32C)->rkey, 1, SIZE_MAX, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR), 0);
        expect_ok(IBV_WC_FLUSH);
    } else {
        T_EQ_INT(try_flush(region(R_CRC32C)->rkey, 1, SIZE_MAX, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR),
                 EOPNOTSUPP);
    }
}

static void flush__refused_here(void)
{
    static const struct {
        uint8_t type, level;
        size_t len;
    } rows[] = {
        { 0, IBV_FLUSH_RANGE, 8 },
        { 4, IBV_FLUSH_RANGE, 8 },
        { IBV_FLUSH_GLOBAL, 2, 8 },
        { IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, (size_t)1 << 32 },
    };

    begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        T_EQ_INT(try_flush(region(R_CRC32C)->rkey, region(R_CRC32C)->addr, rows[i].len,
                           rows[i].type, rows[i].level),
                 EINVAL);
        done_id++;
    }
    post_flush(R_CRC32C, 0, 8, IBV_FLUSH_GLOBAL);
    expect_ok(IBV_WC_FLUSH);
}

/* A Flush that the peer must refuse, and the Terminate with which it does so. */
static void flush__refused_there(void)
{
    static const struct {
        const char *what;
        enum mpe_region region;
        uint32_t rkey_xor;
        uint64_t at;
        size_t len;
        uint8_t type;
        unsigned int code;
    } rows[] = {
        { "no right", R_WRITE, 0, 0, 8, IBV_FLUSH_GLOBAL, 0x02 },
        { "no right to persistence", R_CRC32C, 0, 0, 8, IBV_FLUSH_PERSISTENT, 0x02 },
        { "one right of two", R_CRC32C, 0, 0, 8, IBV_FLUSH_PERSISTENT | IBV_FLUSH_GLOBAL, 0x02 },
        { "key", R_CRC32C, 0xff, 0, 8, IBV_FLUSH_GLOBAL, 0x00 },
        { "beyond", R_CRC32C, 0, MPE_SIZE - 7, 8, IBV_FLUSH_GLOBAL, 0x01 },
        { "before", R_CRC32C, 0, (uint64_t)-1, 8, IBV_FLUSH_GLOBAL, 0x01 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct mpe_entry *e;

        begin();
        e = region(rows[i].region);
        T_CONTEXT("%s", rows[i].what);
        T_EQ_INT(try_flush(e->rkey ^ rows[i].rkey_xor, e->addr + rows[i].at, rows[i].len,
                           rows[i].type, IBV_FLUSH_RANGE),
                 0);
        expect_refused(IBV_WC_REM_ACCESS_ERR, 1, rows[i].code);
    }
}

/* ---- Verify ---- */

static const enum mpe_region hashed[] = { R_CRC32C, R_SHA256, R_SHA512, R_HMAC };

#define HASHED (sizeof(hashed) / sizeof(hashed[0]))

static void verify__equal(void)
{
    static const uint32_t lengths[] = { 1, 64, LEN, MPE_SIZE / 2 };
    uint8_t hash[SGDV_HASH_MAX];

    begin();
    for (size_t i = 0; i < 4 * HASHED; i++) {
        enum mpe_region r = hashed[i / 4];
        uint32_t len = lengths[i % 4], hash_len;
        struct sgdv_verify v;

        T_CONTEXT("hash %u, %u octets", region(r)->hash, len);
        write_fresh(r, AT, len);
        post_flush(r, AT, len, IBV_FLUSH_GLOBAL);
        expect_ok(IBV_WC_FLUSH);
        hash_len = judge(r, len, hash);
        v = verify_of(r, AT, len);
        v.expected = hash;
        v.expected_len = hash_len;
        T_EQ_INT(try_verify(&v), 0);
        T_EQ_U64(expect_ok(SGDV_WC_VERIFY).byte_len, hash_len);
        /* The hash goes to a sink, which is larger, without an expected hash and with one. */
        for (int expecting = 0; expecting < 2; expecting++) {
            uint8_t *sink = c.buf + MPE_SIZE - 128;

            memset(sink, 0xee, 128);
            v.expected_len = expecting ? hash_len : 0;
            v.sink_addr = (uintptr_t)sink;
            v.sink_len = 128;
            T_EQ_INT(try_verify(&v), 0);
            T_EQ_U64(expect_ok(SGDV_WC_VERIFY).byte_len, hash_len);
            T_EQ_MEM(sink, hash, hash_len);
            T_EQ_U64(sink[hash_len], 0xee);
        }
    }
}

static void verify__differs(void)
{
    for (size_t i = 0; i < HASHED; i++) {
        enum mpe_region r = hashed[i];
        uint8_t hash[SGDV_HASH_MAX];
        uint32_t hash_len;

        begin();
        T_CONTEXT("hash %u", region(r)->hash);
        write_fresh(r, AT, LEN);
        hash_len = judge(r, LEN, hash);
        hash[hash_len - 1] ^= 1;
        post_verify(r, AT, LEN, hash, hash_len);
        expect_refused(IBV_WC_REM_OP_ERR, 2, 0x07);
    }
}

/* An expected hash that is shorter, longer, or of another algorithm than the region's. */
static void verify__wrong_length(void)
{
    uint8_t hash[SGDV_HASH_MAX] = { 0 };
    uint32_t len;

    for (int i = 0; i < 3; i++) {
        begin();
        T_CONTEXT("row %d", i);
        write_fresh(R_SHA256, AT, LEN);
        len = judge(i < 2 ? R_SHA256 : R_SHA512, LEN, hash);
        post_verify(R_SHA256, AT, LEN, hash, i == 0 ? len - 1 : i == 1 ? len + 1 : len);
        expect_refused(IBV_WC_REM_OP_ERR, 2, 0x07);
    }
}

static void verify__refused_there(void)
{
    static const struct {
        const char *what;
        enum mpe_region region;
        uint32_t rkey_xor;
        uint64_t at;
        unsigned int code;
    } rows[] = {
        { "no right, though write", R_WRITE, 0, 0, 0x02 },
        { "no right, though read", R_READ, 0, 0, 0x02 },
        { "no right, though flush", R_FLUSH_ONLY, 0, 0, 0x02 },
        { "key", R_SHA256, 0xff, 0, 0x00 },
        { "beyond", R_SHA256, 0, MPE_SIZE - 7, 0x01 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sgdv_verify v;

        begin();
        T_CONTEXT("%s", rows[i].what);
        v = verify_of(rows[i].region, rows[i].at, 8);
        v.rkey ^= rows[i].rkey_xor;
        T_EQ_INT(try_verify(&v), 0);
        expect_refused(IBV_WC_REM_ACCESS_ERR, 1, rows[i].code);
    }
}

static void verify__refused_here(void)
{
    uint8_t hash[SGDV_HASH_MAX] = { 0 };
    struct sgdv_verify v;

    /* The sink is too short for the hash in the answer. */
    begin();
    v = verify_of(R_SHA256, 0, 8);
    v.sink_addr = (uintptr_t)c.buf;
    v.sink_len = 31;
    T_EQ_INT(try_verify(&v), 0);
    expect(IBV_WC_LOC_LEN_ERR);
    /* ... or for the expected hash; or the region does not have all of it. */
    begin();
    v = verify_of(R_SHA256, 0, 8);
    v.sink_addr = (uintptr_t)c.buf;
    v.sink_len = 31;
    v.expected = hash;
    v.expected_len = 32;
    T_EQ_INT(try_verify(&v), 0);
    expect(IBV_WC_LOC_LEN_ERR);
    begin();
    v = verify_of(R_SHA256, 0, 8);
    v.sink_addr = (uintptr_t)c.buf + MPE_SIZE - 31;
    v.sink_len = 32;
    T_EQ_INT(try_verify(&v), 0);
    expect(IBV_WC_LOC_PROT_ERR);
    /* A queue pair without room for the hash. */
    begin_with(0);
    v = verify_of(R_SHA512, 0, 8);
    v.expected = hash;
    v.expected_len = 64;
    T_EQ_INT(try_verify(&v), EINVAL);
    v.expected_len = 65;
    T_EQ_INT(try_verify(&v), EINVAL);
}

/* ---- Atomic Write ---- */

static void atomic__value_arrives(void)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_ATOMIC_WRITE, .sg_list = &sge, .num_sge = 1,
        .send_flags = IBV_SEND_SIGNALED,
    }, *bad;
    uint64_t value = 0x1122334455667788, want[3] = { 0 };

    begin();
    memset(c.buf, 0, 24);
    post_write(R_CRC32C, 0x1000, 0, 24);
    expect_ok(IBV_WC_RDMA_WRITE);
    post_atomic(R_CRC32C, 0x1008, value);
    expect_ok(IBV_WC_ATOMIC_WRITE);
    want[1] = value;
    expect_content(R_CRC32C, 0x1000, want, sizeof(want));
    /* By ibv_post_send, from a region: the right to write is enough. */
    memset(c.buf, 0x77, 8);
    sge = (struct ibv_sge){ (uintptr_t)c.buf, 8, c.mr->lkey };
    wr.wr_id = next_id++;
    wr.wr.rdma.rkey = region(R_WRITE)->rkey;
    wr.wr.rdma.remote_addr = region(R_WRITE)->addr + 0x1000;
    T_EQ_INT(ibv_post_send(c.id->qp, &wr, &bad), 0);
    expect_ok(IBV_WC_ATOMIC_WRITE);
    memset(want, 0x77, 8);
    expect_content(R_CRC32C, 0x1000, want, sizeof(want));
}

static void atomic__refused_there(void)
{
    static const struct {
        const char *what;
        enum mpe_region region;
        uint64_t at;
        enum ibv_wc_status status;
        unsigned int type, code;
    } rows[] = {
        { "misaligned by 4", R_CRC32C, 0x1004, IBV_WC_REM_OP_ERR, 2, 0x07 },
        { "misaligned by 1, across pages", R_CRC32C, 0x1ff9, IBV_WC_REM_OP_ERR, 2, 0x07 },
        { "no right", R_READ, 0x1000, IBV_WC_REM_ACCESS_ERR, 1, 0x02 },
        { "beyond", R_CRC32C, MPE_SIZE, IBV_WC_REM_ACCESS_ERR, 1, 0x01 },
    };
    uint8_t before[0x2000];

    begin();
    fill(c.buf, sizeof(before));
    memcpy(before, c.buf, sizeof(before));
    post_write(R_CRC32C, 0x1000, 0, sizeof(before));
    expect_ok(IBV_WC_RDMA_WRITE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        T_CONTEXT("%s", rows[i].what);
        post_atomic(rows[i].region, rows[i].at, 0x0101010101010101);
        expect_refused(rows[i].status, rows[i].type, rows[i].code);
        expect_content(R_CRC32C, 0x1000, before, sizeof(before));
    }
}

/* ---- all together ---- */

/* Write, Flush, Verify, and Atomic Write of the count, many times without waiting. */
static void pipeline__in_order(void)
{
    enum { ROUNDS = 200, RECORD = 1000, DEEP = MPE_SQ / 4 - 1 };
    static const enum ibv_wc_opcode order[] = { IBV_WC_RDMA_WRITE, IBV_WC_FLUSH, SGDV_WC_VERIFY,
                                                IBV_WC_ATOMIC_WRITE };
    uint8_t hash[SGDV_HASH_MAX];
    uint64_t last = ROUNDS;

    begin();
    fill(c.buf, ROUNDS * RECORD);
    for (uint64_t i = 0, done = 0; done < ROUNDS; i++) {
        uint64_t at = 4096 + i * RECORD;

        if (i < ROUNDS) {
            uint32_t len = mpe_hash(SGDV_HASH_SHA256, c.buf + i * RECORD, RECORD, hash);

            post_write(R_SHA256, at, i * RECORD, RECORD);
            post_flush(R_SHA256, at, RECORD, IBV_FLUSH_GLOBAL);
            post_verify(R_SHA256, at, RECORD, hash, len);
            post_atomic(R_SHA256, 0, i + 1);
        }
        for (; done + DEEP <= i || (i >= ROUNDS && done < ROUNDS); done++) {
            for (size_t k = 0; k < 4; k++) {
                expect_ok(order[k]);
            }
        }
    }
    expect_content(R_CRC32C, 0, &last, sizeof(last));
}

/* A failed request flushes those behind it, and an Atomic Write among them does not happen. */
static void pipeline__stops_at_a_failure(void)
{
    uint8_t hash[SGDV_HASH_MAX] = { 1 };
    uint64_t zero = 0;

    begin();
    post_atomic(R_SHA256, 0, 0);
    expect_ok(IBV_WC_ATOMIC_WRITE);
    fill(c.buf, LEN);
    post_write(R_SHA256, 4096, 0, LEN);
    post_flush(R_SHA256, 4096, LEN, IBV_FLUSH_GLOBAL);
    post_verify(R_SHA256, 4096, LEN, hash, 32);
    post_atomic(R_SHA256, 0, 5);
    post_flush(R_SHA256, 0, 8, IBV_FLUSH_GLOBAL);
    expect_ok(IBV_WC_RDMA_WRITE);
    expect_ok(IBV_WC_FLUSH);
    T_EQ_U64(sgdv_terminate_code(expect(IBV_WC_REM_OP_ERR).vendor_err), 0x07);
    expect(IBV_WC_WR_FLUSH_ERR);
    expect(IBV_WC_WR_FLUSH_ERR);
    expect_content(R_CRC32C, 0, &zero, sizeof(zero));
}

/* ---- registration ---- */

static int try_reg(int access, const struct sgdv_mr_attr *attr)
{
    struct ibv_mr *mr;

    errno = 0;
    mr =
        attr ? sgdv_reg_mr(c.pd, c.buf, 8192, access, attr) : ibv_reg_mr(c.pd, c.buf, 8192, access);
    if (!mr) {
        return errno;
    }
    T_EQ_INT(ibv_dereg_mr(mr), 0);
    return 0;
}

static void reg__refusals(void)
{
    struct sgdv_mr_attr none = { 0 }, crc = { .hash = SGDV_HASH_CRC32C };
    struct sgdv_mr_attr sha = { .hash = SGDV_HASH_SHA256 };
    struct sgdv_mr_attr pmem = { .mem_type = SGDV_MEM_PERSISTENT };
    struct sgdv_mr_attr odd = { .hash = 9 };
    struct sgdv_device_attr attr;

    begin();
    T_EQ_INT(sgdv_query_device(c.id->verbs, &attr, sizeof(attr)), 0);
    T_EQ_INT(try_reg(IBV_ACCESS_FLUSH_GLOBAL, NULL), 0);
    T_EQ_INT(try_reg(0, &none), 0);
    T_EQ_INT(try_reg(IBV_ACCESS_REMOTE_READ, &crc), 0);
    T_EQ_INT(try_reg(0, &crc), EACCES);
    T_EQ_INT(try_reg(0, &sha), 0);
    T_EQ_INT(try_reg(0, &odd), EOPNOTSUPP);
    T_EQ_INT(try_reg(0, &pmem), EINVAL);
    T_EQ_INT(try_reg(IBV_ACCESS_FLUSH_PERSISTENT, NULL), EINVAL);
}

/*
 * Draft -01's Invalidate STag: the peer refuses to invalidate a region that it registered by
 * ibv_reg_mr(), which shows that the request arrived.  The other draft has no such field.
 */
static void invalidate__asked_for(void)
{
    struct sgdv_device_attr attr;
    int want;

    begin();
    T_EQ_INT(sgdv_query_device(c.id->verbs, &attr, sizeof(attr)), 0);
    want = attr.draft == 1 ? 0 : EOPNOTSUPP;
    post_flush(R_CRC32C, AT, LEN, IBV_FLUSH_GLOBAL);
    expect_ok(IBV_WC_FLUSH);
    ibv_wr_flush(start(), region(R_CRC32C)->rkey, region(R_CRC32C)->addr + AT, LEN,
                 IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
    sgdv_wr_invalidate(c.qpx, region(R_CRC32C)->rkey);
    T_EQ_INT(ibv_wr_complete(c.qpx), want);
    if (!want) {
        expect_refused(IBV_WC_REM_ACCESS_ERR, 1, 0x09);
    }
}

static void device__capabilities(void)
{
    struct ibv_device_attr_ex ex;
    struct sgdv_device_attr attr;

    begin();
    T_EQ_INT(ibv_query_device_ex(c.id->verbs, NULL, &ex), 0);
    T_EQ_INT(sgdv_query_device(c.id->verbs, &attr, sizeof(attr)), 0);
    T_EQ_INT(!!(ex.device_cap_flags_ex & 1ull << 38), !!(attr.caps & SGDV_CAP_FLUSH_GLOBAL));
    T_EQ_INT(!!(ex.device_cap_flags_ex & 1ull << 39), !!(attr.caps & SGDV_CAP_FLUSH_GLOBAL));
    T_EQ_INT(!!(ex.device_cap_flags_ex & 1ull << 40), !!(attr.caps & SGDV_CAP_ATOMIC_WRITE));
    T_TRUE(attr.caps & SGDV_CAP_VERIFY);
    T_EQ_U64(attr.hash_mask, 0x1e);
    T_NOTE("draft %u, capabilities 0x%x", attr.draft, attr.caps);
}

static const struct t_case cases[] = {
    { "device: capabilities agree", device__capabilities },
    { "reg: what cannot be registered", reg__refusals },
    { "flush: ranges", flush__range },
    { "flush: a whole region", flush__region },
    { "flush: bad arguments are refused here", flush__refused_here },
    { "flush: the peer refuses", flush__refused_there },
    { "verify: equal, all algorithms", verify__equal },
    { "verify: a hash that differs", verify__differs },
    { "verify: a hash of another length", verify__wrong_length },
    { "verify: the peer refuses", verify__refused_there },
    { "verify: sinks and queues that do not fit", verify__refused_here },
    { "invalidate: asked for", invalidate__asked_for },
    { "atomic: the value arrives", atomic__value_arrives },
    { "atomic: the peer refuses", atomic__refused_there },
    { "pipeline: a log without waiting", pipeline__in_order },
    { "pipeline: stops at a failure", pipeline__stops_at_a_failure },
};

T_MAIN(cases)
