/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BAR0 as docs/manual/registers.md describes it: reset values, kinds of access, holes, widths, and
 * the test registers.
 */
#include <glib.h>

#include "driver.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"
#include "tap.h"

enum regs_kind { RO, RW, WO };

static const struct {
    const char *name;
    uint32_t offset;
    enum regs_kind kind;
    uint32_t reset;
} rows[] = {
    { "MAGIC", SG_REG_MAGIC, RO, SG_MAGIC },
    { "VERSION", SG_REG_VERSION, RO, SG_VERSION },
    { "STATUS", SG_REG_STATUS, RO, SG_STATUS_LINK_UP },
    { "FATAL", SG_REG_FATAL, RO, SG_FATAL_NONE },
    { "VECTORS", SG_REG_VECTORS, RO, 7 },
    { "MAC_LO", SG_REG_MAC_LO, RO, 0x00005452 },
    { "MAC_HI", SG_REG_MAC_HI, RO, 0x0100 },
    { "GUID_LO", SG_REG_GUID_LO, RO, 0xcafe0001 },
    { "GUID_HI", SG_REG_GUID_HI, RO, 0x02aabbcc },
    { "TEST_SCRATCH", SG_REG_TEST_SCRATCH, RW, UINT32_MAX },
    { "TEST_IRQ", SG_REG_TEST_IRQ, WO, 0 },
    { "TEST_DMA_LO", SG_REG_TEST_DMA_LO, RW, 0 },
    { "TEST_DMA_HI", SG_REG_TEST_DMA_HI, RW, 0 },
    { "TEST_DMA_LEN", SG_REG_TEST_DMA_LEN, RW, 0 },
    { "TEST_DMA_CMD", SG_REG_TEST_DMA_CMD, WO, 0 },
    { "TEST_DMA_STATUS", SG_REG_TEST_DMA_STATUS, RO, 0 },
    { "ASQ_BASE_LO", SG_REG_ASQ_BASE_LO, RW, 0 },
    { "ASQ_BASE_HI", SG_REG_ASQ_BASE_HI, RW, 0 },
    { "ACQ_BASE_LO", SG_REG_ACQ_BASE_LO, RW, 0 },
    { "ACQ_BASE_HI", SG_REG_ACQ_BASE_HI, RW, 0 },
    { "ADMIN_SIZE", SG_REG_ADMIN_SIZE, RW, 0 },
    { "ADMIN_DB", SG_REG_ADMIN_DB, WO, 0 },
    { "ADMIN_CI", SG_REG_ADMIN_CI, WO, 0 },
    { "AEQ_BASE_LO", SG_REG_AEQ_BASE_LO, RW, 0 },
    { "AEQ_BASE_HI", SG_REG_AEQ_BASE_HI, RW, 0 },
    { "AEQ_SIZE", SG_REG_AEQ_SIZE, RW, 0 },
    { "EQ_DB[0]", SG_REG_EQ_DB, WO, 0 },
    { "EQ_DB[63]", SG_REG_EQ_DB + 4 * (SG_EQ_COUNT - 1), WO, 0 },
};

static struct machine *start(void)
{
    return machine_start(1, ",vectors=7,guid=0x02aabbcccafe0001", "");
}

static bool is_register(uint32_t offset)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].offset == offset) {
            return true;
        }
    }
    return offset == SG_REG_CTRL || offset == SG_REG_LINK_SPEED || offset == SG_REG_LINK_MTU ||
           (offset >= SG_REG_FW_VERSION && offset <= SG_REG_POWER_LOST) ||
           (offset >= SG_REG_EQ_DB && offset < SG_REG_EQ_DB + 4 * SG_EQ_COUNT);
}

static void reset_values(void)
{
    struct machine *m = start();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("%s", rows[i].name);
        T_EQ_U64(function_readl(&m->f[0], rows[i].offset), rows[i].reset);
    }
    T_EQ_U64(function_readl(&m->f[0], SG_REG_CTRL), 0);
    T_TRUE(function_readl(&m->f[0], SG_REG_LINK_SPEED) > 0);
    T_TRUE(function_readl(&m->f[0], SG_REG_LINK_MTU) >= 1500);
    machine_stop(m);
}

static void access_kinds(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint32_t value = 0xa5a55a5a;
        uint32_t after = rows[i].kind == RO ? rows[i].reset : rows[i].kind == WO ? 0 : value;

        T_CONTEXT("%s", rows[i].name);
        function_writel(f, rows[i].offset, value);
        if (rows[i].offset == SG_REG_TEST_SCRATCH) {
            after = ~value;
        } else if (rows[i].offset == SG_REG_TEST_DMA_STATUS) {
            after = SG_EINVAL; /* of the TEST_DMA_CMD just written */
        }
        T_EQ_U64(function_readl(f, rows[i].offset), after);
    }
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    machine_stop(m);
}

/* All of the first two pages and a sample of the rest. */
static void holes(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    uint32_t offset;

    for (offset = 0; offset < SG_REGS_SIZE; offset += offset < 0x2000 ? 4 : 0x3fc) {
        if (!is_register(offset)) {
            T_CONTEXT("offset 0x%04x", offset);
            function_writel(f, offset, UINT32_MAX);
            T_EQ_U64(function_readl(f, offset), 0);
        }
    }
    T_EQ_U64(function_readl(f, SG_REG_CTRL), 0);
    T_EQ_U64(function_readl(f, SG_REG_STATUS), SG_STATUS_LINK_UP);
    machine_stop(m);
}

static void wide_access(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];

    T_EQ_U64(function_readq(f, SG_REG_MAGIC), SG_MAGIC | (uint64_t)SG_VERSION << 32);
    T_EQ_U64(function_readq(f, SG_REG_GUID_LO), 0x02aabbcccafe0001);
    function_writeq(f, SG_REG_ASQ_BASE_LO, 0x123456789abcd000);
    T_EQ_U64(function_readl(f, SG_REG_ASQ_BASE_LO), 0x9abcd000);
    T_EQ_U64(function_readl(f, SG_REG_ASQ_BASE_HI), 0x12345678);
    function_writel(f, SG_REG_ACQ_BASE_LO, 0x11111000);
    function_writel(f, SG_REG_ACQ_BASE_HI, 0x22222222);
    T_EQ_U64(function_readq(f, SG_REG_ACQ_BASE_LO), 0x2222222211111000);
    machine_stop(m);
}

/* Narrow and misaligned accesses: no effect, zero, one line in the log each. */
static void wrong_widths(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    uint64_t scratch = f->regs + SG_REG_TEST_SCRATCH;
    unsigned before;

    function_writel(f, SG_REG_TEST_SCRATCH, 0x11223344);
    machine_guest_errors(m);
    T_EQ_U64(qtest_readb(m->q, scratch), 0);
    T_EQ_U64(qtest_readw(m->q, scratch), 0);
    qtest_writeb(m->q, scratch, 0xff);
    qtest_writew(m->q, scratch + 2, 0xffff);
    qtest_writel(m->q, scratch + 2, UINT32_MAX);
    qtest_writeq(m->q, scratch + 4, UINT64_MAX);
    before = machine_guest_errors(m);
    T_EQ_U64(function_readl(f, SG_REG_TEST_SCRATCH), ~0x11223344u);
    T_EQ_U64(before, 6);
    T_EQ_U64(qtest_readl(m->q, f->regs + SG_REG_MAGIC + 2), 0);
    T_EQ_U64(qtest_readq(m->q, f->regs + SG_REG_MAGIC + 4), 0);
    /* The very last octets of the BAR. */
    T_EQ_U64(qtest_readl(m->q, f->regs + SG_REGS_SIZE - 4), 0);
    T_EQ_U64(qtest_readb(m->q, f->regs + SG_REGS_SIZE - 1), 0);
    machine_stop(m);
}

static void scratch(void)
{
    static const uint32_t values[] = { 0, 1, 0x80000000, 0xdeadbeef, UINT32_MAX };
    struct machine *m = start();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(values); i++) {
        function_writel(&m->f[0], SG_REG_TEST_SCRATCH, values[i]);
        T_EQ_U64(function_readl(&m->f[0], SG_REG_TEST_SCRATCH), (uint32_t)~values[i]);
    }
    machine_stop(m);
}

static void test_irq(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    unsigned v, w;

    for (v = 0; v < f->vectors; v++) {
        function_writel(f, SG_REG_TEST_IRQ, v);
        for (w = 0; w < f->vectors; w++) {
            T_CONTEXT("vector %u, looking at %u", v, w);
            T_TRUE(function_raised(f, w) == (v == w));
        }
    }
    machine_guest_errors(m);
    function_writel(f, SG_REG_TEST_IRQ, f->vectors);
    function_writel(f, SG_REG_TEST_IRQ, UINT32_MAX);
    T_EQ_U64(machine_guest_errors(m), 2);
    for (w = 0; w < f->vectors; w++) {
        T_FALSE(function_raised(f, w));
    }
    machine_stop(m);
}

static uint32_t test_dma(struct function *f, uint64_t addr, uint32_t len, uint32_t cmd)
{
    function_writeq(f, SG_REG_TEST_DMA_LO, addr);
    function_writel(f, SG_REG_TEST_DMA_LEN, len);
    function_writel(f, SG_REG_TEST_DMA_CMD, cmd);
    return function_readl(f, SG_REG_TEST_DMA_STATUS);
}

static void test_dma_works(void)
{
    static const struct {
        uint64_t offset;
        uint32_t len;
    } places[] = { { 0, 1 }, { 0, SG_TEST_DMA_MAX }, { 4095, 2 }, { 13, 4099 } };
    struct machine *m = start();
    uint64_t buf = machine_alloc(m, 2 * SG_TEST_DMA_MAX, 4096);
    uint8_t *p = machine_ptr(m, buf);
    unsigned i, k;

    for (i = 0; i < G_N_ELEMENTS(places); i++) {
        uint8_t *at = p + 64 + places[i].offset;
        uint64_t addr = buf + 64 + places[i].offset;

        T_CONTEXT("%u octets at offset %u", places[i].len, (unsigned)places[i].offset);
        memset(p, 0x77, 2 * SG_TEST_DMA_MAX);
        T_EQ_U64(test_dma(&m->f[0], addr, places[i].len, SG_TEST_DMA_FILL), 0);
        for (k = 0; k < places[i].len; k++) {
            T_EQ_U64(at[k], k & 0xff);
        }
        T_EQ_U64(test_dma(&m->f[0], addr, places[i].len, SG_TEST_DMA_INVERT), 0);
        for (k = 0; k < places[i].len; k++) {
            T_EQ_U64(at[k], ~k & 0xff);
        }
        T_EQ_U64(at[-1], 0x77);
        T_EQ_U64(at[places[i].len], 0x77);
    }
    machine_stop(m);
}

static void test_dma_refuses(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    uint64_t buf = machine_alloc(m, 4096, 4096);

    T_EQ_U64(test_dma(f, buf, 0, SG_TEST_DMA_FILL), SG_EINVAL);
    T_EQ_U64(test_dma(f, buf, SG_TEST_DMA_MAX + 1, SG_TEST_DMA_FILL), SG_EINVAL);
    T_EQ_U64(test_dma(f, buf, UINT32_MAX, SG_TEST_DMA_INVERT), SG_EINVAL);
    T_EQ_U64(test_dma(f, buf, 16, 0), SG_EINVAL);
    T_EQ_U64(test_dma(f, buf, 16, 3), SG_EINVAL);
    T_EQ_U64(test_dma(f, UINT64_MAX - 7, 16, SG_TEST_DMA_FILL), SG_EINVAL);
    T_EQ_U64(test_dma(f, 0x7000000000, 16, SG_TEST_DMA_FILL), SG_EFAULT);
    T_EQ_U64(test_dma(f, 0x7000000000, 16, SG_TEST_DMA_INVERT), SG_EFAULT);
    T_EQ_U64(*(uint64_t *)machine_ptr(m, buf), 0);
    T_EQ_U64(test_dma(f, buf, 16, SG_TEST_DMA_FILL), 0);
    machine_stop(m);
}

/* DMA that the guest aims at our own BARs must not enter the device a second time. */
static void test_dma_at_ourselves(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    uint64_t targets[] = { f->regs,
                           f->regs + SG_REG_TEST_DMA_CMD,
                           f->regs + SG_REG_CTRL,
                           f->regs + SG_REG_EQ_DB,
                           f->doorbells,
                           f->doorbells + SG_DOORBELL_SIZE - 64,
                           f->msix_table };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(targets); i++) {
        T_CONTEXT("target %u", i);
        test_dma(f, targets[i], 64, SG_TEST_DMA_FILL);
        test_dma(f, targets[i], 64, SG_TEST_DMA_INVERT);
        T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
        T_EQ_U64(function_readl(f, SG_REG_CTRL), 0);
    }
    function_setup(f);
    T_EQ_U64(test_dma(f, machine_alloc(m, 64, 64), 64, SG_TEST_DMA_FILL), 0);
    machine_stop(m);
}

static void setup_is_locked_while_enabled(void)
{
    static const uint32_t locked[] = { SG_REG_ASQ_BASE_LO, SG_REG_ASQ_BASE_HI, SG_REG_ACQ_BASE_LO,
                                       SG_REG_ACQ_BASE_HI, SG_REG_ADMIN_SIZE,  SG_REG_AEQ_BASE_LO,
                                       SG_REG_AEQ_BASE_HI, SG_REG_AEQ_SIZE };
    struct machine *m = start();
    struct function *f = &m->f[0];
    struct md md;
    unsigned i;

    driver_start(&md, f);
    machine_guest_errors(m);
    for (i = 0; i < G_N_ELEMENTS(locked); i++) {
        uint32_t before = function_readl(f, locked[i]);

        T_CONTEXT("register 0x%03x", locked[i]);
        function_writel(f, locked[i], ~before);
        T_EQ_U64(function_readl(f, locked[i]), before);
        T_EQ_U64(machine_guest_errors(m), 1);
    }
    md_create_pd(&md);
    machine_stop(m);
}

/* ENABLE with impossible rings: FATAL, and only RESET works. */
static void bad_setup(void)
{
    static const struct {
        const char *name;
        uint64_t asq, acq, aeq;
        uint32_t admin_size, aeq_size;
    } bad[] = {
        { "nothing set", 0, 0, 0, 0, 0 },
        { "ASQ 0", 0, 0x200000, 0x300000, 16, 64 },
        { "ASQ misaligned", 0x100800, 0x200000, 0x300000, 16, 64 },
        { "ACQ 0", 0x100000, 0, 0x300000, 16, 64 },
        { "ACQ misaligned", 0x100000, 0x200040, 0x300000, 16, 64 },
        { "AEQ 0", 0x100000, 0x200000, 0, 16, 64 },
        { "AEQ misaligned", 0x100000, 0x200000, 0x300001, 16, 64 },
        { "admin size 0", 0x100000, 0x200000, 0x300000, 0, 64 },
        { "admin size 1", 0x100000, 0x200000, 0x300000, 1, 64 },
        { "admin size 3", 0x100000, 0x200000, 0x300000, 3, 64 },
        { "admin size 512", 0x100000, 0x200000, 0x300000, 512, 64 },
        { "admin size 2^31", 0x100000, 0x200000, 0x300000, 0x80000000, 64 },
        { "AEQ size 32", 0x100000, 0x200000, 0x300000, 16, 32 },
        { "AEQ size 65", 0x100000, 0x200000, 0x300000, 16, 65 },
        { "AEQ size 131072", 0x100000, 0x200000, 0x300000, 16, 131072 },
    };
    struct machine *m = start();
    struct function *f = &m->f[0];
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        T_CONTEXT("%s", bad[i].name);
        function_writeq(f, SG_REG_ASQ_BASE_LO, bad[i].asq);
        function_writeq(f, SG_REG_ACQ_BASE_LO, bad[i].acq);
        function_writeq(f, SG_REG_AEQ_BASE_LO, bad[i].aeq);
        function_writel(f, SG_REG_ADMIN_SIZE, bad[i].admin_size);
        function_writel(f, SG_REG_AEQ_SIZE, bad[i].aeq_size);
        function_writel(f, SG_REG_CTRL, SG_CTRL_ENABLE);
        T_EQ_U64(function_readl(f, SG_REG_STATUS), SG_STATUS_FATAL | SG_STATUS_LINK_UP);
        T_EQ_U64(function_readl(f, SG_REG_FATAL), SG_FATAL_BAD_SETUP);
        function_writel(f, SG_REG_ADMIN_DB, 1);
        function_writel(f, SG_REG_EQ_DB, SG_EQ_DB_ARM);
        function_doorbell(f, 0, SG_DB_SQ, 1);
        function_writel(f, SG_REG_CTRL, 0);
        function_writel(f, SG_REG_CTRL, SG_CTRL_ENABLE);
        T_TRUE(function_readl(f, SG_REG_STATUS) & SG_STATUS_FATAL);
        function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
        T_EQ_U64(function_readl(f, SG_REG_STATUS), SG_STATUS_LINK_UP);
        T_EQ_U64(function_readl(f, SG_REG_FATAL), SG_FATAL_NONE);
    }
    machine_stop(m);
}

/* Rings that are well formed but not in memory. */
static void unreachable_rings(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    unsigned i;

    for (i = 0; i < 3; i++) {
        uint64_t nowhere = 0x7000000000;

        T_CONTEXT("ring %u", i);
        function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
        function_writeq(f, SG_REG_ASQ_BASE_LO, i == 0 ? nowhere : machine_alloc(m, 4096, 4096));
        function_writeq(f, SG_REG_ACQ_BASE_LO, i == 1 ? nowhere : machine_alloc(m, 4096, 4096));
        function_writeq(f, SG_REG_AEQ_BASE_LO, i == 2 ? nowhere : machine_alloc(m, 4096, 4096));
        function_writel(f, SG_REG_ADMIN_SIZE, 16);
        function_writel(f, SG_REG_AEQ_SIZE, 64);
        function_writel(f, SG_REG_CTRL, SG_CTRL_ENABLE);
        function_writel(f, SG_REG_EQ_DB, SG_EQ_DB_ARM);
        function_writel(f, SG_REG_ADMIN_DB, 1);
        machine_settle(m);
        T_EQ_U64(function_readl(f, SG_REG_FATAL), SG_FATAL_DMA);
        T_TRUE(function_readl(f, SG_REG_STATUS) & SG_STATUS_FATAL);
    }
    machine_stop(m);
}

/* ENABLE is cleared: the objects are freed, the registers stay and can be written again. */
static void disable(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    uint64_t asq;
    struct qtest_side s;

    side_start(&s, f);
    asq = function_readq(f, SG_REG_ASQ_BASE_LO);
    function_writel(f, SG_REG_CTRL, 0);
    T_EQ_U64(function_readl(f, SG_REG_STATUS), SG_STATUS_LINK_UP);
    T_EQ_U64(function_readq(f, SG_REG_ASQ_BASE_LO), asq);
    function_writeq(f, SG_REG_ASQ_BASE_LO, asq + 4096);
    T_EQ_U64(function_readq(f, SG_REG_ASQ_BASE_LO), asq + 4096);
    driver_attach(&s.md, f);
    md_enable(&s.md);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_QUERY_QP, s.qp.qpn), SG_ENOENT);
    machine_stop(m);
}

/* In FATAL nothing is executed, but the test registers tell whether the bus still works. */
static void fatal_state(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    uint64_t buf = machine_alloc(m, 4096, 4096);
    struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
    struct sg_admin_rsp rsp;
    struct md md;

    driver_start(&md, f);
    function_writel(f, SG_REG_ADMIN_DB, md.asq.prod + 1000);
    T_TRUE(function_readl(f, SG_REG_STATUS) & SG_STATUS_FATAL);
    machine_settle(m);
    function_raised(f, 0);
    md_submit(&md, &nop, sizeof(nop));
    md_settle(&md);
    T_FALSE(md_reap(&md, &rsp));
    T_EQ_U64(test_dma(f, buf, 16, SG_TEST_DMA_FILL), 0);
    function_writel(f, SG_REG_TEST_IRQ, 0);
    T_TRUE(function_raised(f, 0));
    function_writel(f, SG_REG_TEST_SCRATCH, 5);
    T_EQ_U64(function_readl(f, SG_REG_TEST_SCRATCH), ~5u);
    driver_start(&md, f);
    T_EQ_U64(md_cmd(&md, &nop, sizeof(nop), NULL), SG_OK);
    machine_stop(m);
}

static void doorbells_read_as_zero(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];

    T_EQ_U64(qtest_readq(m->q, f->doorbells), 0);
    T_EQ_U64(qtest_readl(m->q, f->doorbells + SG_UAR_SIZE - 4), 0);
    T_EQ_U64(qtest_readb(m->q, f->doorbells + SG_DOORBELL_SIZE - 1), 0);
    machine_stop(m);
}

static void link_state(void)
{
    struct machine *m = start();
    struct function *f = &m->f[0];
    struct md md;
    struct sg_eqe e;

    driver_start(&md, f);
    qtest_qmp_ok(m->q, "{\"execute\": \"set_link\", \"arguments\": "
                       "{\"name\": \"net0\", \"up\": false}}");
    T_FALSE(function_readl(f, SG_REG_STATUS) & SG_STATUS_LINK_UP);
    T_TRUE(md_next_async(&md, &e));
    T_EQ_U64(e.event, SG_EV_PORT_DOWN);
    qtest_qmp_ok(m->q, "{\"execute\": \"set_link\", \"arguments\": "
                       "{\"name\": \"net0\", \"up\": true}}");
    T_TRUE(function_readl(f, SG_REG_STATUS) & SG_STATUS_LINK_UP);
    T_TRUE(md_next_async(&md, &e));
    T_EQ_U64(e.event, SG_EV_PORT_UP);
    machine_stop(m);
}

static const struct t_case cases[] = {
    { "registers: reset values as in the manual", reset_values },
    { "registers: RO ignores writes, RW stores, WO reads as 0", access_kinds },
    { "registers: holes read as 0 and ignore writes", holes },
    { "registers: 64-bit access is two registers", wide_access },
    { "registers: other widths and misalignment have no effect", wrong_widths },
    { "test registers: scratch reads back inverted", scratch },
    { "test registers: TEST_IRQ raises exactly the vector written", test_irq },
    { "test registers: DMA fills and inverts exactly the buffer", test_dma_works },
    { "test registers: DMA refuses bad lengths, commands, addresses", test_dma_refuses },
    { "test registers: DMA aimed at our own BARs", test_dma_at_ourselves },
    { "setup: ring registers are locked while enabled", setup_is_locked_while_enabled },
    { "setup: unusable rings are fatal until RESET", bad_setup },
    { "setup: rings in unmapped memory are fatal", unreachable_rings },
    { "setup: clearing ENABLE resets all but the registers", disable },
    { "fatal: nothing is executed, the test registers work", fatal_state },
    { "doorbells: read as 0", doorbells_read_as_zero },
    { "link: set_link shows in STATUS and as events", link_state },
};

T_MAIN(cases)
