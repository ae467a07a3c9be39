/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adapters behind an IOMMU whose tables the guest writes: QEMU's model of Intel's (VT-d
 * specification, legacy mode, four levels).  RAM has the same addresses for the adapters as for
 * the CPUs, so that the mini driver's rings need no care; the cases map the rest.
 *
 * An access that the tables refuse has the status of memory that does not respond.  Tables cost
 * the guest nothing and can name one page 2^28 times, so no lookup of a range may walk all of them.
 */
#include <glib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "persist_rig.h"
#include "tap.h"

enum {
    GCMD = 0x18,
    GSTS = 0x1c,
    RTADDR = 0x20,
    CCMD = 0x28,
    FSTS = 0x34,
    IOTLB = 0xf8, /* registers */
    READ = 1,
    WRITE = 2,
    LARGE = 0x80, /* of a table's entry */
    LARGE_PAGE = 2 << 20,
    PATIENCE_S = 15, /* for work that takes a few milliseconds on an idle machine */
};

#define IOMMU 0xfed90000ull
#define TRANSLATE (1u << 31)
#define SET_ROOT (1u << 30)
#define INVALIDATE (1ull << 63)
#define INVALIDATE_CONTEXTS (INVALIDATE | 1ull << 61)
#define INVALIDATE_PAGES (INVALIDATE | 1ull << 60)
#define CONTEXT_4_LEVELS 2u
#define SPACE (1ull << 39) /* bus addresses of the cases: the second entry of the top table */
#define DEVICE "-device intel-iommu,aw-bits=48,intremap=off "

static struct machine *m;
static uint64_t root, top;

static void put(uint64_t table, unsigned i, uint64_t value)
{
    sg_put_le64((uint8_t *)machine_ptr(m, table) + 8 * i, value);
}

static uint64_t get(uint64_t table, unsigned i)
{
    return sg_get_le64((uint8_t *)machine_ptr(m, table) + 8 * i);
}

static uint64_t new_page(void)
{
    return machine_alloc(m, SG_PAGE_SIZE, SG_PAGE_SIZE);
}

/* The table of the level below, made if it is missing. */
static uint64_t below(uint64_t table, unsigned i)
{
    if (!get(table, i)) {
        put(table, i, new_page() | READ | WRITE);
    }
    return get(table, i) & ~(SG_PAGE_SIZE - 1ull);
}

static unsigned part(uint64_t bus, unsigned level)
{
    return bus >> (12 + 9 * level) & 511;
}

static void map(uint64_t bus, uint64_t page, unsigned rights)
{
    uint64_t middle = below(below(top, part(bus, 3)), part(bus, 2));

    put(below(middle, part(bus, 1)), part(bus, 0), page | rights);
}

static void forget(void)
{
    qtest_writeq(m->q, IOMMU + CCMD, INVALIDATE_CONTEXTS);
    qtest_writeq(m->q, IOMMU + IOTLB, INVALIDATE_PAGES);
}

static void switch_on(void)
{
    uint64_t large, at;
    unsigned i;

    top = new_page();
    large = below(below(top, 0), 0);
    for (at = 0; at < MACHINE_RAM; at += LARGE_PAGE) {
        put(large, at / LARGE_PAGE, at | LARGE | READ | WRITE);
    }
    root = new_page();
    for (i = 0; i < m->n; i++) {
        uint64_t contexts = new_page();

        put(root, 2 * m->f[i].bus, contexts | 1);
        put(contexts, 0, top | 1);
        put(contexts, 1, CONTEXT_4_LEVELS | (i + 1) << 8); /* a domain of its own */
    }
    qtest_writeq(m->q, IOMMU + RTADDR, root);
    qtest_writel(m->q, IOMMU + GCMD, SET_ROOT);
    forget();
    qtest_writel(m->q, IOMMU + GCMD, TRANSLATE);
    T_TRUE(qtest_readl(m->q, IOMMU + GSTS) & TRANSLATE);
}

static void start(struct qtest_side *a, struct qtest_side *b)
{
    m = machine_start(b ? 2 : 1, "", DEVICE);
    switch_on();
    side_start(a, &m->f[0]);
    if (b) {
        side_start(b, &m->f[1]);
    }
}

/* The IOMMU has recorded that it refused an access. */
static bool refused(void)
{
    return qtest_readl(m->q, IOMMU + FSTS) & 3;
}

/* Pages that are adjacent only for the adapter. */
enum { PAGES = 9, OFFSET = 1234, LENGTH = 7 * SG_PAGE_SIZE };

static void map_scattered(uint64_t bus, uint64_t pages[PAGES], unsigned rights)
{
    unsigned i;

    for (i = PAGES; i > 0; i--) {
        new_page();
        pages[i - 1] = new_page();
        map(bus + (i - 1) * SG_PAGE_SIZE, pages[i - 1], rights);
    }
}

static uint8_t *at(const uint64_t pages[PAGES], unsigned i)
{
    return (uint8_t *)machine_ptr(m, pages[i / SG_PAGE_SIZE]) + i % SG_PAGE_SIZE;
}

static void write_scattered(struct qtest_side *a, uint32_t lkey, uint32_t rkey)
{
    md_post_send(&a->qp, &(struct md_wr){
                             .opcode = SG_WR_WRITE,
                             .addr = SPACE + OFFSET,
                             .len = LENGTH,
                             .lkey = lkey,
                             .raddr = 2 * SPACE + OFFSET,
                             .rkey = rkey,
                         });
}

/* All work of an adapter, with scattered pages; its interrupts also pass the IOMMU. */
static void traffic(void)
{
    uint64_t from[PAGES], to[PAGES];
    uint32_t access = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE, lkey, rkey;
    struct qtest_side a, b;
    unsigned i;

    start(&a, &b);
    map_scattered(SPACE, from, READ);
    map_scattered(2 * SPACE, to, WRITE);
    lkey = md_reg_mr(&a.md, a.pd, SPACE, PAGES * SG_PAGE_SIZE, 0);
    rkey = md_reg_mr(&b.md, b.pd, 2 * SPACE, PAGES * SG_PAGE_SIZE, access);
    for (i = 0; i < PAGES * SG_PAGE_SIZE; i++) {
        *at(from, i) = (uint8_t)(i * 7 + i / SG_PAGE_SIZE);
    }
    sides_connect(&a, &b, 4000);
    write_scattered(&a, lkey, rkey);
    T_EQ_U64(side_completion(&a, 100).status, SG_WC_SUCCESS);
    machine_pass(m, 5);
    for (i = 0; i < PAGES * SG_PAGE_SIZE; i++) {
        bool inside = i >= OFFSET && i < OFFSET + LENGTH;

        T_EQ_U64(*at(to, i), inside ? *at(from, i) : 0);
    }
    function_raised(a.f, 0);
    function_writel(a.f, SG_REG_TEST_IRQ, 0);
    machine_settle(m);
    T_TRUE(function_raised(a.f, 0));
    T_FALSE(refused());
    machine_stop(m);
}

static enum sg_status query_caps_to(struct qtest_side *s, uint64_t addr)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_CAPS };

    sg_put_le64(&c.out_addr, addr);
    sg_put_le32(&c.out_len, 64);
    return md_cmd(&s->md, &c, sizeof(c), NULL);
}

/* A region of three pages whose list is at this bus address. */
static enum sg_status register_by_list(struct qtest_side *s, uint64_t list)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(s->pd, 0x10000, 3 * SG_PAGE_SIZE, 0);

    c.pages = (struct sg_page_list){ .page_shift = 12, .levels = 1 };
    sg_put_le64(&c.pages.addr, list);
    sg_put_le32(&c.pages.count, 3);
    return md_cmd(&s->md, &c, sizeof(c), NULL);
}

/* Commands: an answer needs a page that may be written, a list one that may be read. */
static void commands(void)
{
    static const struct {
        uint64_t bus;
        enum sg_status answer, list;
    } rows[] = {
        { SPACE + 0x0000, SG_OK, SG_OK },         /* both */
        { SPACE + 0x1000, SG_EFAULT, SG_OK },     /* may be read */
        { SPACE + 0x2000, SG_OK, SG_EFAULT },     /* may be written */
        { SPACE + 0x3000, SG_EFAULT, SG_EFAULT }, /* not there */
        { SPACE + 0x1ff0, SG_EFAULT, SG_EFAULT }, /* its end is in the next page */
        { 3 * SPACE, SG_EFAULT, SG_EFAULT },      /* nor is there a table for it */
        { 1ull << 48, SG_EFAULT, SG_EFAULT },     /* too wide for the tables */
        { UINT64_MAX - 63, SG_EFAULT, SG_EFAULT },
        { 0xfee00000, SG_EFAULT, SG_EFAULT }, /* interrupts */
    };
    uint64_t page;
    struct qtest_side s;
    unsigned i;

    start(&s, NULL);
    page = new_page();
    map(SPACE, page, READ | WRITE);
    map(SPACE + 0x1000, page, READ);
    map(SPACE + 0x2000, page, WRITE);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("row %u", i);
        memset(machine_ptr(m, page), 0, SG_PAGE_SIZE);
        T_EQ_U64(register_by_list(&s, rows[i].bus), rows[i].list);
        T_EQ_U64(query_caps_to(&s, rows[i].bus), rows[i].answer);
        T_TRUE(function_readl(s.f, SG_REG_STATUS) & SG_STATUS_READY);
    }
    T_TRUE(refused());
    machine_stop(m);
}

/* Memory that is unmapped, or never existed, while messages are on their way to and from it. */
static void work_requests(void)
{
    static const struct {
        unsigned from, to; /* rights to the fifth page of the scattered ones */
        bool sent;
    } rows[] = {
        { READ, WRITE, true }, { 0, WRITE, false },  { WRITE, WRITE, false },
        { READ, 0, true },     { READ, READ, true },
    };
    uint64_t from[PAGES], to[PAGES];
    uint32_t access = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE, lkey, rkey;
    struct qtest_side a, b;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        bool placed = rows[i].sent && rows[i].to & WRITE;

        T_CONTEXT("row %u", i);
        start(&a, &b);
        map_scattered(SPACE, from, READ);
        map_scattered(2 * SPACE, to, WRITE);
        lkey = md_reg_mr(&a.md, a.pd, SPACE, PAGES * SG_PAGE_SIZE, 0);
        rkey = md_reg_mr(&b.md, b.pd, 2 * SPACE, PAGES * SG_PAGE_SIZE, access);
        sides_connect(&a, &b, 4000);
        map(SPACE + 4 * SG_PAGE_SIZE, from[4], rows[i].from);
        map(2 * SPACE + 4 * SG_PAGE_SIZE, to[4], rows[i].to);
        forget();
        *at(from, 4 * SG_PAGE_SIZE) = 0x77;
        write_scattered(&a, lkey, rkey);
        T_EQ_U64(side_completion(&a, 100).status,
                 rows[i].sent ? SG_WC_SUCCESS : SG_WC_LOC_PROT_ERR);
        machine_pass(m, 50);
        T_EQ_U64(*at(to, 4 * SG_PAGE_SIZE), placed ? 0x77 : 0);
        T_EQ_U64(md_qp_state(&a.qp), placed ? SG_QP_RTS : SG_QP_ERROR);
        T_EQ_U64(md_qp_state(&b.qp), placed ? SG_QP_RTS : SG_QP_ERROR);
        T_EQ_U64(query_caps_to(&b, b.buffer), SG_OK);
        T_EQ_U64(refused(), !placed);
        machine_stop(m);
    }
}

/* The adapter's own rings are unmapped: that is fatal, and a reset repairs it. */
static void rings(void)
{
    struct qtest_side a, b;
    uint64_t entry;

    start(&a, &b);
    sides_connect(&a, &b, 4000);
    entry = get(root, 2 * b.f->bus);
    put(root, 2 * b.f->bus, 0);
    forget();
    function_writel(b.f, SG_REG_ADMIN_DB, b.md.asq.prod + 1);
    machine_pass(m, 20);
    T_TRUE(function_readl(b.f, SG_REG_STATUS) & SG_STATUS_FATAL);
    T_EQ_U64(function_readl(b.f, SG_REG_FATAL), SG_FATAL_DMA);
    function_raised(b.f, 0);
    function_writel(b.f, SG_REG_TEST_IRQ, 0); /* the message does not arrive */
    machine_settle(m);
    T_FALSE(function_raised(b.f, 0));
    T_TRUE(refused());

    put(root, 2 * b.f->bus, entry);
    forget();
    side_start(&a, a.f);
    side_start(&b, b.f);
    sides_connect(&a, &b, 4001);
    machine_stop(m);
}

/*
 * One page of ordinary memory, as often as the tables can name it: 2^28 times.  A query whether
 * such a range is persistent gets "maybe" if it covers more than thousands of pages.
 */
static uint64_t map_one_page_everywhere(void)
{
    uint64_t lower = new_page();
    unsigned level, i;

    for (level = 0; level < 3; level++) {
        uint64_t table = new_page();

        for (i = 0; i < 512; i++) {
            put(table, i, lower | READ | WRITE);
        }
        lower = table;
    }
    put(top, 2, lower | READ | WRITE);
    put(top, 3, lower | READ | WRITE);
    return 2 * SPACE;
}

/* A range of 2^40 octets at once, or a list of pages of a GiB each. */
static enum sg_status register_huge(struct qtest_side *s, uint64_t bus, uint32_t access,
                                    bool listed)
{
    uint64_t pages = listed ? 16 : 1024, list = new_page(), i;
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(s->pd, bus, pages << 30, access);

    c.pages = (struct sg_page_list){ .page_shift = 30, .levels = listed };
    for (i = 0; i < 16; i++) {
        put(list, i, bus + (i << 30));
    }
    sg_put_le64(&c.pages.addr, listed ? list : bus);
    sg_put_le32(&c.pages.count, (uint32_t)pages);
    return md_cmd(&s->md, &c, sizeof(c), NULL);
}

static void one_page_everywhere(void)
{
    uint32_t access = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ;
    g_autofree char *args = NULL;
    struct qtest_side s;
    int64_t began;
    uint64_t bus;
    unsigned i;

    rig_make_media(PM_MIB);
    args = g_strdup_printf(DEVICE
                           "-machine nvdimm=on -m slots=4,maxmem=8G "
                           "-object staghorn-domain,id=dom0 -object memory-backend-file,id=mem1,"
                           "size=%uM,share=off,mem-path=%s -device nvdimm,memdev=mem1 ",
                           PM_MIB, rig.media);
    m = machine_start(1, "", args);
    switch_on();
    side_start(&s, &m->f[0]);
    bus = map_one_page_everywhere();
    for (i = 0; i < 2; i++) {
        T_CONTEXT("%s", i ? "by a list" : "at once");
        began = g_get_monotonic_time();
        T_EQ_U64(register_huge(&s, bus, access, i), SG_OK);
        T_EQ_U64(register_huge(&s, bus, access | SG_ACCESS_FLUSH_PERSISTENT, i), SG_ENOTPMEM);
        T_TRUE(g_get_monotonic_time() - began < (int64_t)PATIENCE_S * G_USEC_PER_SEC);
    }
    machine_stop(m);
    unlink(rig.media);
}

static const struct t_case cases[] = {
    { "IOMMU: scattered pages, interrupts", traffic },
    { "IOMMU: commands, and pages that are refused", commands },
    { "IOMMU: messages, and pages that are refused", work_requests },
    { "IOMMU: rings that are refused", rings },
    { "IOMMU: one page 2^28 times", one_page_everywhere },
};

T_MAIN(cases)
