/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Protection table: rights, bounds, association, keys, translation. */
#include "rig.h"
#include "tap.h"

#include "verbs/memory/mem.h"
#include "verbs/state/adapter_state.h"
#include "verbs/queues/qp.h"

static struct solo s;
static uint32_t pd;

static void begin(void)
{
    solo_new(&s, NULL, true);
    pd = md_create_pd(&s.md);
}

/* The memory context of a queue pair, without a queue pair. */
static struct sg_mem_ctx ctx_of(uint32_t pdn, uint32_t access, bool kernel)
{
    return (struct sg_mem_ctx){
        .adapter = s.md.a,
        .pd = sg_idtab_get(&s.md.a->pds, pdn),
        .access = access,
        .kernel = kernel,
    };
}

enum { R = SG_ACCESS_REMOTE_READ, W = SG_ACCESS_REMOTE_WRITE, L = SG_ACCESS_LOCAL_WRITE };

static void remote_rights(void)
{
    const uint64_t base = TEST_HOST_BASE + 0x1003, len = 0x2345, end = base + len;
    const struct {
        const char *name;
        uint64_t to, len;
        uint32_t mr, qp, ask;
        enum sg_mem_status want;
        const char *shows;
    } rows[] = {
        { "all of it", base, len, R, R | W, R, SG_MEM_OK },
        { "first octet", base, 1, R, R | W, R, SG_MEM_OK },
        { "last octet", end - 1, 1, R, R | W, R, SG_MEM_OK },
        { "octet before", base - 1, 1, R, R | W, R, SG_MEM_BOUNDS },
        { "octet behind", end, 1, R, R | W, R, SG_MEM_BOUNDS, .shows = "DDP-43 SEC-03" },
        { "one too long", base, len + 1, R, R | W, R, SG_MEM_BOUNDS },
        { "straddles the start", base - 1, 2, R, R | W, R, SG_MEM_BOUNDS },
        { "straddles the end", end - 1, 2, R, R | W, R, SG_MEM_BOUNDS },
        { "zero", 0, 1, R, R | W, R, SG_MEM_BOUNDS },
        { "wraps", UINT64_MAX, 2, R, R | W, R, SG_MEM_WRAP, .shows = "DDP-44" },
        { "wraps by one", UINT64_MAX - 9, 11, R, R | W, R, SG_MEM_WRAP },
        { "up to the top", UINT64_MAX - 9, 10, R, R | W, R, SG_MEM_BOUNDS },
        { "read, write-only region", base, 1, W, R | W, R, SG_MEM_ACCESS, .shows = "SEC-05" },
        { "write, read-only region", base, 1, R, R | W, W, SG_MEM_ACCESS,
          .shows = "DDP-42 SEC-05" },
        { "write, local write only", base, 1, L, R | W, W, SG_MEM_ACCESS },
        { "write, queue pair without", base, 1, W, R, W, SG_MEM_ACCESS },
        { "read, queue pair without", base, 1, R, W, R, SG_MEM_ACCESS },
        { "write, both", base, 1, W, W, W, SG_MEM_OK },
        { "rights come before bounds", end, 1, W, R, R, SG_MEM_ACCESS },
    };
    struct sg_mr *mr;
    size_t i;

    begin();
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sg_mem_ctx ctx = ctx_of(pd, rows[i].qp, false);
        uint32_t stag = md_reg_mr(&s.md, pd, base, len, rows[i].mr);

        T_CONTEXT("%s", rows[i].name);
        T_SHOWS(rows[i].shows) {
            T_EQ_U64(sg_tpt_check_remote(&ctx, stag, rows[i].to, rows[i].len, rows[i].ask, &mr),
                     rows[i].want);
        }
        T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DEREG_MR, stag), SG_OK);
        T_SHOWS("SEC-06") {
            T_EQ_U64(sg_tpt_check_remote(&ctx, stag, base, 1, rows[i].ask, &mr), SG_MEM_STAG);
        }
    }
    solo_end(&s);
}

static void association(void)
{
    uint32_t other, stag, bit;
    struct sg_mem_ctx mine, alien;
    struct sg_mr *mr;

    begin();
    other = md_create_pd(&s.md);
    stag = md_reg_mr(&s.md, pd, TEST_HOST_BASE, 4096, R | W | L);
    mine = ctx_of(pd, R | W, false);
    alien = ctx_of(other, R | W, false);
    T_EQ_U64(sg_tpt_check_remote(&mine, stag, TEST_HOST_BASE, 1, R, &mr), SG_MEM_OK);
    T_SHOWS("DDP-49 DDP-50 SEC-01") {
        T_EQ_U64(sg_tpt_check_remote(&alien, stag, TEST_HOST_BASE, 1, R, &mr), SG_MEM_ASSOC);
    }
    T_EQ_U64(sg_tpt_check_local(&mine, stag, TEST_HOST_BASE, 1, L, &mr), SG_MEM_OK);
    T_EQ_U64(sg_tpt_check_local(&alien, stag, TEST_HOST_BASE, 1, 0, &mr), SG_MEM_ASSOC);
    /* Any other key or index is no STag at all. */
    for (bit = 0; bit < 32; bit++) {
        T_CONTEXT("bit %u", bit);
        T_EQ_U64(sg_tpt_check_remote(&mine, stag ^ 1u << bit, TEST_HOST_BASE, 1, R, &mr),
                 SG_MEM_STAG);
    }
    solo_end(&s);
}

static void special_stags(void)
{
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    struct sg_mem_ctx user, kernel;
    struct sg_mr *mr;
    uint32_t whole;

    begin();
    user = ctx_of(pd, R | W, false);
    kernel = ctx_of(pd, R | W, true);
    c = md_reg_mr_cmd(pd, TEST_HOST_BASE, 4096, L);
    c.flags = SG_MR_WHOLE_MEMORY;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), &rsp), SG_OK);
    whole = sg_get_le32(&rsp.id);
    T_EQ_U64(sg_tpt_check_local(&kernel, 0, 0x1234, 99, L, &mr), SG_MEM_OK);
    T_EQ_U64(sg_tpt_check_local(&kernel, whole, 0x1234, 99, L, &mr), SG_MEM_OK);
    T_EQ_U64(sg_tpt_check_local(&user, 0, 0x1234, 99, 0, &mr), SG_MEM_STAG);
    T_EQ_U64(sg_tpt_check_local(&user, whole, 0x1234, 99, 0, &mr), SG_MEM_STAG);
    T_EQ_U64(sg_tpt_check_remote(&kernel, 0, 0x1234, 99, R, &mr), SG_MEM_STAG);
    T_EQ_U64(sg_tpt_check_remote(&kernel, whole, 0x1234, 99, R, &mr), SG_MEM_STAG);
    T_EQ_U64(sg_tpt_check_local(&kernel, 0, UINT64_MAX, 2, 0, &mr), SG_MEM_WRAP);
    solo_end(&s);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* 4096 STags: all different, none 0, far apart, and different with another seed. */
static void unpredictable(void)
{
    enum { N = 4096 };
    static uint32_t stags[2][N];
    uint32_t i, run, close_by = 0, same = 0;

    for (run = 0; run < 2; run++) {
        begin();
        s.h.random += run * 12345;
        md_write(&s.md, SG_REG_CTRL, SG_CTRL_RESET);
        md_setup_rings(&s.md);
        s.md.cookie = 0;
        md_write(&s.md, SG_REG_CTRL, SG_CTRL_ENABLE);
        pd = md_create_pd(&s.md);
        for (i = 0; i < N; i++) {
            stags[run][i] = md_reg_mr(&s.md, pd, TEST_HOST_BASE, 4096, 0);
            T_TRUE(stags[run][i] >> 8 != 0);
        }
        solo_end(&s);
    }
    for (i = 0; i < N; i++) {
        same += stags[0][i] == stags[1][i];
        close_by += i && (stags[0][i] >> 8) - (stags[0][i - 1] >> 8) + 16 < 32;
    }
    T_SHOWS("SEC-08") {
        T_TRUE(same < 8);
        T_TRUE(close_by < 8);
    }
    qsort(stags[0], N, sizeof(stags[0][0]), compare);
    for (i = 1; i < N; i++) {
        T_TRUE(stags[0][i] >> 8 != stags[0][i - 1] >> 8);
    }
}

static void drawn_keys(void)
{
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    unsigned seen[256] = { 0 }, i, distinct = 0;

    begin();
    c = md_reg_mr_cmd(pd, TEST_HOST_BASE, 4096, 0);
    c.key = 0;
    for (i = 0; i < 512; i++) {
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), &rsp), SG_OK);
        seen[sg_get_le32(&rsp.id) & 0xff]++;
    }
    T_EQ_U64(seen[0], 0);
    for (i = 0; i < 256; i++) {
        distinct += seen[i] != 0;
    }
    T_TRUE(distinct > 150);
    solo_end(&s);
}

/* Page lists of every level and several sizes, checked octet by octet. */
static void translation(void)
{
    static const struct {
        uint8_t levels, shift;
        uint32_t pages, skip;
    } rows[] = {
        { 0, 12, 5, 0 },     { 0, 12, 5, 4095 },  { 1, 12, 9, 17 },
        { 1, 12, 600, 1 },   { 2, 12, 3, 5 },     { 2, 12, 1100, 4000 },
        { 1, 14, 5, 12345 }, { 2, 16, 4, 65535 }, { 0, 16, 3, 0 },
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t size = 1ull << rows[i].shift, len = rows[i].pages * size - rows[i].skip - 3;
        uint64_t list, top, pool, off, bus, run;
        struct sg_cmd_reg_mr c;
        struct sg_admin_rsp rsp;
        struct sg_mr *mr;
        uint64_t *phys;
        uint32_t p;

        T_CONTEXT("levels %u shift %u pages %u", rows[i].levels, rows[i].shift, rows[i].pages);
        begin();
        pool = test_host_alloc(&s.h, rows[i].pages * size, size);
        list = test_host_alloc(&s.h, rows[i].pages * 8 + 4096, 4096);
        top = test_host_alloc(&s.h, 4096, 4096);
        phys = calloc(rows[i].pages, sizeof(*phys));
        for (p = 0; p < rows[i].pages; p++) {
            /* Pairs of pages swapped: runs of one and of two pages. */
            bool swap = rows[i].levels && p % 3 && (p ^ 1) < rows[i].pages;

            phys[p] = pool + (swap ? p ^ 1 : p) * size;
            sg_put_le64((uint8_t *)test_host_ptr(&s.h, list) + p * 8, phys[p]);
        }
        for (p = 0; p < (rows[i].pages + 511) / 512; p++) {
            sg_put_le64((uint8_t *)test_host_ptr(&s.h, top) + p * 8, list + p * 4096);
        }
        c = md_reg_mr_cmd(pd, pool, 1, L);
        sg_put_le64(&c.va, 0x700000000000 + rows[i].skip);
        sg_put_le64(&c.length, len);
        sg_put_le64(&c.pages.addr, rows[i].levels == 0 ? pool : rows[i].levels == 1 ? list : top);
        sg_put_le32(&c.pages.count, rows[i].pages);
        c.pages.levels = rows[i].levels;
        c.pages.page_shift = rows[i].shift;
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), &rsp), SG_OK);
        mr = sg_tpt_find(s.md.a, sg_get_le32(&rsp.id));
        T_NOT_NULL(mr);
        for (off = 0; off < len; off += run) {
            uint64_t at = off + rows[i].skip;

            run = sg_mr_run(mr, mr->base + off, len - off, &bus);
            T_TRUE(run >= 1 && run <= len - off);
            T_EQ_U64(bus, phys[at / size] + at % size);
            T_EQ_U64(sg_mr_run(mr, mr->base + off + run - 1, 1, &bus), 1);
            T_EQ_U64(bus, phys[(at + run - 1) / size] + (at + run - 1) % size);
        }
        free(phys);
        solo_end(&s);
    }
}

static void zero_based(void)
{
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    struct sg_mem_ctx ctx;
    struct sg_mr *mr;
    uint64_t bus;

    begin();
    c = md_reg_mr_cmd(pd, TEST_HOST_BASE + 0x123, 100, R | SG_ACCESS_ZERO_BASED);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), &rsp), SG_OK);
    ctx = ctx_of(pd, R, false);
    T_EQ_U64(sg_tpt_check_remote(&ctx, sg_get_le32(&rsp.id), 0, 100, R, &mr), SG_MEM_OK);
    T_EQ_U64(sg_tpt_check_remote(&ctx, sg_get_le32(&rsp.id), 1, 100, R, &mr), SG_MEM_BOUNDS);
    T_EQ_U64(sg_mr_run(mr, 5, 10, &bus), 10);
    T_EQ_U64(bus, TEST_HOST_BASE + 0x128);
    solo_end(&s);
}

static void invalidation_rules(void)
{
    struct sg_mem_ctx mine, alien;
    struct sg_mr *mr;
    uint32_t stag, fast;

    begin();
    stag = md_reg_mr(&s.md, pd, TEST_HOST_BASE, 4096, R);
    fast = md_alloc_mr(&s.md, pd, 4);
    mine = ctx_of(pd, R, false);
    alien = ctx_of(md_create_pd(&s.md), R, false);
    T_SHOWS("SEC-07") {
        T_EQ_U64(sg_tpt_check_invalidate(&mine, stag, &mr), SG_MEM_STAG);
    }
    T_EQ_U64(sg_tpt_check_invalidate(&mine, 0, &mr), SG_MEM_STAG);
    T_SHOWS("RDM-67") {
        T_EQ_U64(sg_tpt_check_invalidate(&mine, fast ^ 1, &mr), SG_MEM_STAG);
    }
    T_EQ_U64(sg_tpt_check_invalidate(&alien, fast, &mr), SG_MEM_ASSOC);
    T_EQ_U64(sg_tpt_check_invalidate(&mine, fast, &mr), SG_MEM_OK);
    /* Allocated is not registered. */
    T_EQ_U64(sg_tpt_check_remote(&mine, fast, 0, 1, R, &mr), SG_MEM_STAG);
    solo_end(&s);
}

/* A region cannot exceed max_mr_size of QUERY_CAPS, even with enough pages. */
static void longest_region(void)
{
    struct sg_adapter_config config;
    struct sg_cmd_reg_mr c;
    uint64_t area;

    sg_adapter_default_config(&config);
    config.max_mr_size = 1 << 20;
    solo_new(&s, &config, true);
    pd = md_create_pd(&s.md);
    area = test_host_alloc(&s.h, 2 << 20, 4096);
    c = md_reg_mr_cmd(pd, area, 1 << 20, L);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    c = md_reg_mr_cmd(pd, area, (1 << 20) + 1, L);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EINVAL);
    c = md_reg_mr_cmd(pd, area, 2 << 20, L);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EINVAL);
    solo_end(&s);
}

/* A piece without room is refused: without it the message would be too short. */
static void full_scratch(void)
{
    struct iovec iov[4];
    struct sg_gather g = { .iov = iov, .max = 4 };
    static const uint8_t octets[64];

    begin();
    s.md.a->scratch->used = SG_SCRATCH_SIZE - 64;
    T_TRUE(sg_mem_gather_bytes(s.md.a, &g, octets, 64));
    T_FALSE(sg_mem_gather_bytes(s.md.a, &g, octets, 1));
    T_EQ_INT(g.n, 1);
    T_EQ_U64(iov[0].iov_len, 64);
    sg_mem_release(s.md.a, iov, g.n);
    T_TRUE(sg_mem_gather_bytes(s.md.a, &g, octets, 1)); /* all room was released */
    sg_mem_release(s.md.a, iov + 1, 1);
    solo_end(&s);
}

static const struct t_case cases[] = {
    { "remote rights and bounds", remote_rights },
    { "association with a protection domain", association },
    { "STag 0 and whole memory are local, for kernel queue pairs", special_stags },
    { "STags are sparse and differ between adapters", unpredictable },
    { "keys are drawn on request", drawn_keys },
    { "translation through page lists", translation },
    { "zero-based regions", zero_based },
    { "what may be invalidated", invalidation_rules },
    { "regions are as long as the adapter says, at most", longest_region },
    { "gathering into a full scratch buffer", full_scratch },
};

T_MAIN(cases)
