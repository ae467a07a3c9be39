/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Building blocks of the cases in mpe.c and mpe_pmem.c: a connection to the server that the
 * environment names (MPE_SERVER), requests that are posted one by one and signaled, and the
 * expected completions.  A request that the server refuses ends its connection.
 */
#ifndef SG_TESTS_MPE_OPS_H
#define SG_TESTS_MPE_OPS_H

#include <errno.h>
#include <sys/random.h>

#include "mpe_net.h"
#include "tap.h"

enum { LEN = 100000, AT = 0x1238 };

static struct mpe_conn c;
static bool open_conn;
static uint64_t next_id, done_id;

static T_UNUSED void begin_with(uint32_t max_inline)
{
    const char *server = getenv("MPE_SERVER");

    if (!server) {
        T_SKIP("MPE_SERVER is not set");
    }
    if (open_conn) {
        mpe_close(&c);
    }
    open_conn = false;
    mpe_connect(&c, server, max_inline);
    open_conn = true;
    next_id = done_id = 0;
}

static T_UNUSED void begin(void)
{
    begin_with(SGDV_VERIFY_INLINE(SGDV_HASH_MAX));
}

static T_UNUSED const struct mpe_entry *region(enum mpe_region r)
{
    return &c.table.regions[r];
}

/*
 * Different octets at each call and in each run, because octets of an earlier one would prove
 * nothing.  Two runs may begin in the same second, so the seed is not the time of day.
 */
static T_UNUSED void fill(uint8_t *p, size_t len)
{
    static uint32_t x;

    if (!x) {
        T_TRUE(getrandom(&x, sizeof(x), 0) == sizeof(x));
        x |= 1;
    }
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        p[i] = (uint8_t)x;
    }
}

/* ---- requests: each is signaled, and posted alone ---- */

static T_UNUSED struct ibv_qp_ex *start(void)
{
    ibv_wr_start(c.qpx);
    c.qpx->wr_id = next_id++;
    c.qpx->wr_flags = IBV_SEND_SIGNALED;
    return c.qpx;
}

static T_UNUSED void post_write(enum mpe_region r, uint64_t at, uint64_t from, uint32_t len)
{
    ibv_wr_rdma_write(start(), region(r)->rkey, region(r)->addr + at);
    ibv_wr_set_sge(c.qpx, c.mr->lkey, (uintptr_t)c.buf + from, len);
    T_EQ_INT(ibv_wr_complete(c.qpx), 0);
}

static T_UNUSED void post_read(enum mpe_region r, uint64_t at, uint64_t to, uint32_t len)
{
    ibv_wr_rdma_read(start(), region(r)->rkey, region(r)->addr + at);
    ibv_wr_set_sge(c.qpx, c.mr->lkey, (uintptr_t)c.buf + to, len);
    T_EQ_INT(ibv_wr_complete(c.qpx), 0);
}

static T_UNUSED int try_flush(uint32_t rkey, uint64_t addr, size_t len, uint8_t type, uint8_t level)
{
    ibv_wr_flush(start(), rkey, addr, len, type, level);
    return ibv_wr_complete(c.qpx);
}

static T_UNUSED void post_flush(enum mpe_region r, uint64_t at, size_t len, uint8_t type)
{
    T_EQ_INT(try_flush(region(r)->rkey, region(r)->addr + at, len, type, IBV_FLUSH_RANGE), 0);
}

static T_UNUSED void post_atomic(enum mpe_region r, uint64_t at, uint64_t value)
{
    ibv_wr_atomic_write(start(), region(r)->rkey, region(r)->addr + at, &value);
    T_EQ_INT(ibv_wr_complete(c.qpx), 0);
}

/* Verifies the range, with or without an expected hash, and with or without a sink at c.buf. */
static T_UNUSED struct sgdv_verify verify_of(enum mpe_region r, uint64_t at, uint32_t len)
{
    return (struct sgdv_verify){
        .rkey = region(r)->rkey,
        .remote_addr = region(r)->addr + at,
        .length = len,
        .sink_lkey = c.mr->lkey,
    };
}

static T_UNUSED int try_verify(const struct sgdv_verify *v)
{
    sgdv_wr_verify(start(), v);
    return ibv_wr_complete(c.qpx);
}

static T_UNUSED void post_verify(enum mpe_region r, uint64_t at, uint32_t len, const uint8_t *hash,
                                 uint32_t hash_len)
{
    struct sgdv_verify v = verify_of(r, at, len);

    v.expected = hash;
    v.expected_len = hash_len;
    T_EQ_INT(try_verify(&v), 0);
}

static T_UNUSED struct ibv_wc expect(enum ibv_wc_status status)
{
    struct ibv_wc wc;

    mpe_wait(&c, &wc);
    T_EQ_U64(wc.wr_id, done_id);
    done_id++;
    if (wc.status != status) {
        T_NOTE("request %" PRIu64 ": %s instead of %s, vendor error 0x%08x", wc.wr_id,
               ibv_wc_status_str(wc.status), ibv_wc_status_str(status), wc.vendor_err);
    }
    T_EQ_U64(wc.status, status);
    return wc;
}

static T_UNUSED struct ibv_wc expect_ok(enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = expect(IBV_WC_SUCCESS);

    T_EQ_U64(wc.opcode, opcode);
    return wc;
}

/* The next request failed by the peer's Terminate, and the one behind it is flushed. */
static T_UNUSED void expect_refused(enum ibv_wc_status status, unsigned int type, unsigned int code)
{
    struct ibv_wc wc = expect(status);

    T_EQ_U64(sgdv_terminate_layer(wc.vendor_err), 0);
    T_EQ_U64(sgdv_terminate_type(wc.vendor_err), type);
    T_EQ_U64(sgdv_terminate_code(wc.vendor_err), code);
    (void)try_flush(1, 0, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
    expect(IBV_WC_WR_FLUSH_ERR);
}

/* Reads the server's memory by a separate connection. */
static T_UNUSED void expect_content(enum mpe_region r, uint64_t at, const void *want, uint32_t len)
{
    begin();
    post_read(r, at, MPE_SIZE / 2, len);
    expect_ok(IBV_WC_RDMA_READ);
    T_EQ_MEM(c.buf + MPE_SIZE / 2, want, len);
}

static T_UNUSED void write_fresh(enum mpe_region r, uint64_t at, uint32_t len)
{
    fill(c.buf, len);
    post_write(r, at, 0, len);
    expect_ok(IBV_WC_RDMA_WRITE);
}

/* The hash that the region should have over the content of c.buf; returns its length. */
static T_UNUSED uint32_t judge(enum mpe_region r, uint32_t len, uint8_t *hash)
{
    uint32_t hash_len = mpe_hash(region(r)->hash, c.buf, len, hash);

    T_EQ_U64(hash_len, sgdv_hash_len(region(r)->hash));
    return hash_len;
}

#endif
