/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control registers: access kinds, test registers, bring-up, reset, fatal errors. */
#include "rig.h"
#include "tap.h"

static void identity(void)
{
    struct solo s;

    solo_new(&s, NULL, false);
    T_EQ_U64(md_read(&s.md, SG_REG_MAGIC), SG_MAGIC);
    T_EQ_U64(md_read(&s.md, SG_REG_VERSION), SG_VERSION);
    T_EQ_U64(md_read(&s.md, SG_REG_VECTORS), 8);
    T_EQ_U64(md_read(&s.md, SG_REG_MAC_LO), 0x53005452);
    T_EQ_U64(md_read(&s.md, SG_REG_MAC_HI), 0x0147);
    T_EQ_U64(sg_adapter_reg_read(s.md.a, SG_REG_GUID_LO, 8), 0x525400fffe534701);
    T_EQ_U64(sg_adapter_reg_read(s.md.a, SG_REG_MAGIC, 8), SG_MAGIC | (uint64_t)SG_VERSION << 32);
    T_EQ_U64(md_read(&s.md, SG_REG_STATUS), 0);
    T_EQ_U64(s.h.guest_errors, 0);
    solo_end(&s);
}

/* Every offset: those not listed are holes; read-only ones keep their value. */
static void holes_and_read_only(void)
{
    static const uint32_t readable[] = {
        SG_REG_MAGIC,           SG_REG_VERSION,     SG_REG_CTRL,        SG_REG_STATUS,
        SG_REG_FATAL,           SG_REG_VECTORS,     SG_REG_MAC_LO,      SG_REG_MAC_HI,
        SG_REG_GUID_LO,         SG_REG_GUID_HI,     SG_REG_LINK_SPEED,  SG_REG_LINK_MTU,
        SG_REG_FW_VERSION,      SG_REG_POWER_CUTS,  SG_REG_POWER_KEPT,  SG_REG_POWER_LOST,
        SG_REG_TEST_SCRATCH,    SG_REG_TEST_DMA_LO, SG_REG_TEST_DMA_HI, SG_REG_TEST_DMA_LEN,
        SG_REG_TEST_DMA_STATUS, SG_REG_ASQ_BASE_LO, SG_REG_ASQ_BASE_HI, SG_REG_ACQ_BASE_LO,
        SG_REG_ACQ_BASE_HI,     SG_REG_ADMIN_SIZE,  SG_REG_AEQ_BASE_LO, SG_REG_AEQ_BASE_HI,
        SG_REG_AEQ_SIZE
    };
    uint32_t offset, i, before;
    struct solo s;

    solo_new(&s, NULL, false);
    for (offset = 0; offset < SG_REGS_SIZE; offset += 4) {
        bool known = false;

        for (i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
            known |= readable[i] == offset;
        }
        T_CONTEXT("offset 0x%04x", offset);
        before = s.h.guest_errors;
        if (!known) {
            T_EQ_U64(md_read(&s.md, offset), 0);
        } else {
            md_read(&s.md, offset);
        }
        T_EQ_U64(s.h.guest_errors, before + !known);
    }
    for (offset = 0; offset <= SG_REG_POWER_LOST; offset += 4) {
        if (offset != SG_REG_CTRL) {
            T_CONTEXT("write offset 0x%04x", offset);
            before = md_read(&s.md, offset);
            md_write(&s.md, offset, ~before);
            T_EQ_U64(md_read(&s.md, offset), before);
        }
    }
    solo_end(&s);
}

static void wrong_access(void)
{
    struct solo s;

    solo_new(&s, NULL, false);
    T_EQ_U64(sg_adapter_reg_read(s.md.a, SG_REG_MAGIC + 1, 4), 0);
    T_EQ_U64(sg_adapter_reg_read(s.md.a, SG_REG_MAGIC, 2), 0);
    T_EQ_U64(sg_adapter_reg_read(s.md.a, SG_REG_VERSION, 8), 0);
    T_EQ_U64(sg_adapter_reg_read(s.md.a, SG_REGS_SIZE, 4), 0);
    sg_adapter_reg_write(s.md.a, SG_REG_TEST_SCRATCH, 7, 1);
    T_EQ_U64(md_read(&s.md, SG_REG_TEST_SCRATCH), 0xffffffff);
    T_EQ_U64(s.h.guest_errors, 5);
    solo_end(&s);
}

static void test_registers(void)
{
    uint64_t buf;
    uint8_t *p;
    struct solo s;
    uint32_t i;

    solo_new(&s, NULL, false);
    buf = test_host_alloc(&s.h, SG_TEST_DMA_MAX, 1) + 3;
    md_write(&s.md, SG_REG_TEST_SCRATCH, 0x12345678);
    T_EQ_U64(md_read(&s.md, SG_REG_TEST_SCRATCH), ~0x12345678u);
    md_write(&s.md, SG_REG_TEST_IRQ, 3);
    T_EQ_U64(s.h.raised[3], 1);
    md_write(&s.md, SG_REG_TEST_IRQ, 8);
    T_EQ_U64(s.h.guest_errors, 1);

    sg_adapter_reg_write(s.md.a, SG_REG_TEST_DMA_LO, buf, 8);
    md_write(&s.md, SG_REG_TEST_DMA_LEN, 5000);
    md_write(&s.md, SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL);
    T_EQ_U64(md_read(&s.md, SG_REG_TEST_DMA_STATUS), SG_OK);
    p = test_host_ptr(&s.h, buf);
    for (i = 0; i < 5000; i++) {
        T_EQ_U64(p[i], i & 0xff);
    }
    T_EQ_U64(p[5000], 0);
    md_write(&s.md, SG_REG_TEST_DMA_CMD, SG_TEST_DMA_INVERT);
    T_EQ_U64(p[4999], (uint8_t)~4999);
    solo_end(&s);
}

static void test_dma_errors(void)
{
    static const struct {
        uint64_t addr;
        uint32_t len, cmd, status;
    } rows[] = {
        { TEST_HOST_BASE, 0, SG_TEST_DMA_FILL, SG_EINVAL },
        { TEST_HOST_BASE, SG_TEST_DMA_MAX + 1, SG_TEST_DMA_FILL, SG_EINVAL },
        { TEST_HOST_BASE, 16, 0, SG_EINVAL },
        { TEST_HOST_BASE, 16, 3, SG_EINVAL },
        { 0, 16, SG_TEST_DMA_FILL, SG_EFAULT },
        { 0, 16, SG_TEST_DMA_INVERT, SG_EFAULT },
        { UINT64_MAX - 7, 16, SG_TEST_DMA_FILL, SG_EINVAL },
        { TEST_HOST_BASE, SG_TEST_DMA_MAX, SG_TEST_DMA_FILL, SG_OK },
    };
    struct solo s;
    size_t i;

    solo_new(&s, NULL, false);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        sg_adapter_reg_write(s.md.a, SG_REG_TEST_DMA_LO, rows[i].addr, 8);
        md_write(&s.md, SG_REG_TEST_DMA_LEN, rows[i].len);
        md_write(&s.md, SG_REG_TEST_DMA_CMD, rows[i].cmd);
        T_EQ_U64(md_read(&s.md, SG_REG_TEST_DMA_STATUS), rows[i].status);
    }
    solo_end(&s);
}

static void bad_setup(void)
{
    static const struct {
        uint32_t reg, value;
    } rows[] = {
        { SG_REG_ADMIN_SIZE, 0 },          { SG_REG_ADMIN_SIZE, 1 },
        { SG_REG_ADMIN_SIZE, 3 },          { SG_REG_ADMIN_SIZE, 512 },
        { SG_REG_ADMIN_SIZE, 0x80000000 }, { SG_REG_AEQ_SIZE, 32 },
        { SG_REG_AEQ_SIZE, 100 },          { SG_REG_AEQ_SIZE, 131072 },
        { SG_REG_ASQ_BASE_LO, 0 },         { SG_REG_ASQ_BASE_LO, 0x100800 },
        { SG_REG_ACQ_BASE_LO, 0x100001 },  { SG_REG_AEQ_BASE_LO, 0 },
    };
    struct solo s;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        solo_new(&s, NULL, false);
        md_setup_rings(&s.md);
        md_write(&s.md, rows[i].reg, rows[i].value);
        md_write(&s.md, SG_REG_CTRL, SG_CTRL_ENABLE);
        T_EQ_U64(md_read(&s.md, SG_REG_STATUS), SG_STATUS_FATAL);
        T_EQ_U64(md_read(&s.md, SG_REG_FATAL), SG_FATAL_BAD_SETUP);
        md_settle(&s.md);
        /* Reset repairs it. */
        md_write(&s.md, SG_REG_CTRL, SG_CTRL_RESET);
        T_EQ_U64(md_read(&s.md, SG_REG_STATUS), 0);
        md_setup_rings(&s.md);
        md_write(&s.md, SG_REG_CTRL, SG_CTRL_ENABLE);
        T_EQ_U64(md_read(&s.md, SG_REG_STATUS), SG_STATUS_READY);
        solo_end(&s);
    }
}

static void setup_is_locked(void)
{
    uint32_t before;
    struct solo s;

    solo_new(&s, NULL, true);
    before = md_read(&s.md, SG_REG_ADMIN_SIZE);
    md_write(&s.md, SG_REG_ADMIN_SIZE, 4);
    T_EQ_U64(md_read(&s.md, SG_REG_ADMIN_SIZE), before);
    T_TRUE(test_host_logged(&s.h, "while enabled"));
    solo_end(&s);
}

/* The log names the bits. */
static void unknown_control_bits(void)
{
    struct solo s;

    solo_new(&s, NULL, false);
    md_write(&s.md, SG_REG_CTRL, 0x80);
    T_EQ_U64(md_read(&s.md, SG_REG_CTRL), 0);
    T_EQ_U64(s.h.guest_errors, 1);
    T_TRUE(test_host_logged(&s.h, "CTRL: unknown bits 0x80"));
    solo_end(&s);
}

static void fatal_admin_index(void)
{
    struct sg_eqe e;
    struct solo s;

    solo_new(&s, NULL, true);
    md_write(&s.md, SG_REG_ADMIN_DB, s.md.asq.prod + MD_ADMIN_SIZE + 1);
    T_EQ_U64(md_read(&s.md, SG_REG_FATAL), SG_FATAL_ADMIN_INDEX);
    T_TRUE(md_read(&s.md, SG_REG_STATUS) & SG_STATUS_FATAL);
    T_EQ_U64(s.h.raised[0], 1);
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_DEVICE_FATAL);
    md_settle(&s.md);
    /* It is the last event, because the driver then removes the queue. */
    sg_adapter_set_link(s.md.a, false);
    sg_adapter_set_link(s.md.a, true);
    T_FALSE(md_next_async(&s.md, &e));
    solo_end(&s);
}

static void fatal_dma(void)
{
    struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
    struct solo s;

    solo_new(&s, NULL, true);
    s.h.fault_lo = s.md.asq.base;
    s.h.fault_hi = s.md.asq.base + 4096;
    memset(test_host_ptr(&s.h, s.md.asq.base), 0, 4096);
    md_write(&s.md, SG_REG_ADMIN_DB, s.md.asq.prod + 1);
    (void)nop;
    md_settle(&s.md);
    T_EQ_U64(md_read(&s.md, SG_REG_FATAL), SG_FATAL_DMA);
    solo_end(&s);
}

static void reset_frees_all(void)
{
    struct sg_adapter_census census;
    struct md_qp_params params = { 0 };
    struct md_cq cq;
    struct md_qp qp;
    struct solo s;

    solo_new(&s, NULL, true);
    md_create_cq(&s.md, &cq, 16);
    params.pd = md_create_pd(&s.md);
    params.scq = params.rcq = &cq;
    md_create_qp(&s.md, &qp, &params);
    md_reg_mr(&s.md, params.pd, TEST_HOST_BASE, 8192, 0);
    sg_adapter_census(s.md.a, &census);
    T_EQ_U64(census.pds + census.mrs + census.cqs + census.qps, 4);
    T_EQ_U64(census.eqs, 2);
    md_write(&s.md, SG_REG_CTRL, SG_CTRL_RESET);
    sg_adapter_census(s.md.a, &census);
    T_EQ_U64(census.pds + census.mrs + census.cqs + census.qps + census.eqs, 0);
    T_EQ_U64(md_read(&s.md, SG_REG_ADMIN_SIZE), 0);
    T_EQ_U64(md_read(&s.md, SG_REG_CTRL), 0);
    solo_end(&s);
}

static void link_events(void)
{
    struct sg_eqe e;
    struct solo s;

    solo_new(&s, NULL, true);
    sg_adapter_set_link(s.md.a, true);
    T_TRUE(md_read(&s.md, SG_REG_STATUS) & SG_STATUS_LINK_UP);
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_PORT_UP);
    sg_adapter_set_link(s.md.a, true);
    T_FALSE(md_next_async(&s.md, &e));
    sg_adapter_set_link(s.md.a, false);
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_PORT_DOWN);
    solo_end(&s);
}

static void config_ranges(void)
{
    struct sg_adapter_config c;
    char buf[128];

    sg_adapter_default_config(&c);
    T_NULL(sg_adapter_check_config(&c, buf, sizeof(buf)));
    c.vectors = 0;
    T_EQ_STR(sg_adapter_check_config(&c, buf, sizeof(buf)), "vectors is 0, must be from 1 to 64");
    sg_adapter_default_config(&c);
    c.mac[0] = 1;
    T_NOT_NULL(sg_adapter_check_config(&c, buf, sizeof(buf)));
    sg_adapter_default_config(&c);
    c.engine.mpa_rev = 3;
    T_NOT_NULL(sg_adapter_check_config(&c, buf, sizeof(buf)));
    sg_adapter_default_config(&c);
    c.max_sge = SG_SQ_MAX_SGE + 1;
    T_NOT_NULL(sg_adapter_check_config(&c, buf, sizeof(buf)));
}

/* The default times of docs/manual/properties.md, in ms. */
static void documented_times(void)
{
    struct sg_adapter_config c;

    sg_adapter_default_config(&c);
    T_EQ_U64(c.engine.reply_timeout_ms, 60 * 1000);
    T_EQ_U64(c.engine.startup_timeout_ms, 10 * 1000);
    T_EQ_U64(c.engine.close_timeout_ms, 5000);
    T_EQ_U64(c.engine.linger_timeout_ms, 60000);
}

static const struct t_case cases[] = {
    { "identity registers", identity },
    { "holes read as zero, read-only registers keep their value", holes_and_read_only },
    { "accesses of wrong width or alignment are refused", wrong_access },
    { "test registers", test_registers },
    { "test DMA: errors", test_dma_errors },
    { "ENABLE with unusable rings is fatal, reset repairs", bad_setup },
    { "ring registers are locked while enabled", setup_is_locked },
    { "unknown bits of CTRL are a guest error", unknown_control_bits },
    { "admin doorbell beyond the ring is fatal", fatal_admin_index },
    { "admin ring that does not respond is fatal", fatal_dma },
    { "reset frees every object and clears the registers", reset_frees_all },
    { "link changes raise port events", link_events },
    { "configuration ranges", config_ranges },
    { "times are those of the manual", documented_times },
};

T_MAIN(cases)
