/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flush to persistence, and Verify of what is on the medium, between two machines.
 *
 * MPE_SERVER=ADDRESS mpe_pmem [PART-OF-NAME]...; the server has a devdax device.
 */
#include "mpe_ops.h"

static void begin_pmem(void)
{
    begin();
    if (!c.table.regions[R_PMEM].rkey) {
        T_SKIP("the server has no persistent memory");
    }
}

static void pmem__flush(void)
{
    static const uint8_t types[] = { IBV_FLUSH_PERSISTENT, IBV_FLUSH_GLOBAL,
                                     IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT };
    uint8_t hash[SGDV_HASH_MAX], want[64];

    for (size_t i = 0; i < sizeof(types); i++) {
        begin_pmem();
        T_CONTEXT("type %u", types[i]);
        write_fresh(R_PMEM, AT, LEN);
        post_flush(R_PMEM, AT, LEN, types[i]);
        expect_ok(IBV_WC_FLUSH);
        if (types[i] & IBV_FLUSH_PERSISTENT) {
            post_verify(R_PMEM, AT, LEN, hash, judge(R_PMEM, LEN, hash));
            expect_ok(SGDV_WC_VERIFY);
        }
        memcpy(want, c.buf, sizeof(want));
        expect_content(R_PMEM, AT, want, sizeof(want));
    }
}

static void pmem__flush_of_the_region(void)
{
    uint8_t hash[SGDV_HASH_MAX];

    begin_pmem();
    write_fresh(R_PMEM, AT, LEN);
    T_EQ_INT(try_flush(region(R_PMEM)->rkey, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR), 0);
    expect_ok(IBV_WC_FLUSH);
    post_verify(R_PMEM, AT, LEN, hash, judge(R_PMEM, LEN, hash));
    expect_ok(SGDV_WC_VERIFY);
}

static void pmem__one_memory_two_regions(void)
{
    uint8_t hash[SGDV_HASH_MAX];

    begin_pmem();
    write_fresh(R_PMEM_VIEW, AT, LEN);
    post_flush(R_PMEM, AT, LEN, IBV_FLUSH_PERSISTENT);
    expect_ok(IBV_WC_FLUSH);
    post_verify(R_PMEM, AT, LEN, hash, judge(R_PMEM, LEN, hash));
    expect_ok(SGDV_WC_VERIFY);
    post_verify(R_PMEM_VIEW, AT, LEN, hash, judge(R_PMEM_VIEW, LEN, hash));
    expect_ok(SGDV_WC_VERIFY);
    /* The other region has no right to persistence. */
    post_flush(R_PMEM_VIEW, AT, LEN, IBV_FLUSH_PERSISTENT);
    expect_refused(IBV_WC_REM_ACCESS_ERR, 1, 0x02);
}

/* Data are cached and not flushed: the medium has other data, and Verify says so. */
static void pmem__verify_sees_the_medium(void)
{
    uint8_t hash[SGDV_HASH_MAX];

    begin_pmem();
    write_fresh(R_PMEM, AT, LEN);
    post_verify(R_PMEM, AT, LEN, hash, judge(R_PMEM, LEN, hash));
    expect_refused(IBV_WC_REM_OP_ERR, 2, 0x07);
}

static const struct t_case cases[] = {
    { "pmem: flush of each type", pmem__flush },
    { "pmem: flush of the region", pmem__flush_of_the_region },
    { "pmem: two regions over one memory", pmem__one_memory_two_regions },
    { "pmem: unflushed data is not verified (lossy)", pmem__verify_sees_the_medium },
};

T_MAIN(cases)
