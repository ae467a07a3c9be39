/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PCIe function, as docs/manual/registers.md describes it under "PCI function" and "Reset".
 */
#include <glib.h>
#include <linux/pci_regs.h>

#include "driver.h"
#include "staghorn/regs.h"
#include "tap.h"

static void identity(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];

    T_EQ_U64(function_config_readw(f, PCI_VENDOR_ID), SG_PCI_VENDOR_ID);
    T_EQ_U64(function_config_readw(f, PCI_DEVICE_ID), SG_PCI_DEVICE_ID);
    T_EQ_U64(function_config_readw(f, PCI_SUBSYSTEM_VENDOR_ID), SG_PCI_VENDOR_ID);
    T_EQ_U64(function_config_readw(f, PCI_SUBSYSTEM_ID), SG_PCI_SUBSYSTEM_ID);
    T_EQ_U64(function_config_readw(f, PCI_CLASS_DEVICE), SG_PCI_CLASS);
    T_EQ_U64(function_config_readb(f, PCI_CLASS_PROG), 0);
    T_EQ_U64(function_config_readb(f, PCI_REVISION_ID), SG_PCI_REVISION);
    T_EQ_U64(function_config_readb(f, PCI_HEADER_TYPE), PCI_HEADER_TYPE_NORMAL);
    T_EQ_U64(function_config_readb(f, PCI_INTERRUPT_PIN), 0);
    machine_stop(m);
}

static void bars(void)
{
    static const struct {
        unsigned bar;
        uint64_t size;
        uint32_t flags;
    } rows[] = {
        { SG_BAR_REGS, SG_REGS_SIZE, 0 },
        { SG_BAR_DOORBELL, SG_DOORBELL_SIZE,
          PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH },
        { SG_BAR_MSIX, 4096, 0 },
    };
    struct machine *m = machine_start(1, "", "");
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint32_t flags;
        uint64_t size = function_bar_size(&m->f[0], rows[i].bar, &flags);

        T_CONTEXT("BAR %u", rows[i].bar);
        T_EQ_U64(size, rows[i].size);
        T_EQ_U64(flags, rows[i].flags);
    }
    T_EQ_U64(function_config_readl(&m->f[0], PCI_BASE_ADDRESS_1), 0);
    T_EQ_U64(function_config_readl(&m->f[0], PCI_BASE_ADDRESS_5), 0);
    T_EQ_U64(function_config_readl(&m->f[0], PCI_ROM_ADDRESS), 0);
    machine_stop(m);
}

static void capabilities(void)
{
    struct machine *m = machine_start(1, ",vectors=5", "");
    struct function *f = &m->f[0];
    uint32_t devcap;

    T_TRUE(f->cap_express && f->cap_msix && f->cap_pm);
    T_EQ_U64(function_find_cap(f, PCI_CAP_ID_MSI), 0);
    T_EQ_U64(function_config_readw(f, f->cap_express + PCI_EXP_FLAGS) & PCI_EXP_FLAGS_TYPE,
             PCI_EXP_TYPE_ENDPOINT << 4);
    devcap = function_config_readl(f, f->cap_express + PCI_EXP_DEVCAP);
    T_TRUE(devcap & PCI_EXP_DEVCAP_FLR);
    T_TRUE(devcap & PCI_EXP_DEVCAP_RBER);
    T_EQ_U64(f->vectors, 5);
    T_EQ_U64(function_readl(f, SG_REG_VECTORS), 5);
    T_EQ_U64(function_config_readl(f, f->cap_msix + PCI_MSIX_PBA) & PCI_MSIX_PBA_BIR, SG_BAR_MSIX);
    T_TRUE((function_config_readw(f, f->cap_pm + PCI_PM_PMC) & PCI_PM_CAP_VER_MASK) >= 2);
    T_TRUE(function_find_ext_cap(f, PCI_EXT_CAP_ID_ERR));
    machine_stop(m);
}

/* A guest has to enable error reports, or AER has no effect. */
static void error_reporting(void)
{
    const uint16_t all =
        PCI_EXP_DEVCTL_CERE | PCI_EXP_DEVCTL_NFERE | PCI_EXP_DEVCTL_FERE | PCI_EXP_DEVCTL_URRE;
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    uint16_t at = f->cap_express + PCI_EXP_DEVCTL;

    function_config_writew(f, at, function_config_readw(f, at) | all);
    T_EQ_U64(function_config_readw(f, at) & all, all);
    machine_stop(m);
}

/* The serial number is the EUI-64 of the MAC, as is the default node GUID. */
static void serial_number(void)
{
    struct machine *m = machine_start(2, "", "");
    uint64_t numbers[2];
    unsigned i, at;

    for (i = 0; i < 2; i++) {
        at = function_find_ext_cap(&m->f[i], PCI_EXT_CAP_ID_DSN);
        T_TRUE(at);
        numbers[i] = function_config_readl(&m->f[i], at + 4) |
                     (uint64_t)function_config_readl(&m->f[i], at + 8) << 32;
        T_EQ_U64(numbers[i], 0x505400fffe000001 + i);
        T_EQ_U64(function_readq(&m->f[i], SG_REG_GUID_LO), numbers[i]);
    }
    T_TRUE(numbers[0] != numbers[1]);
    machine_stop(m);
}

/* A disabled memory space or a sleeping function does not decode its BARs. */
static void decoding(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];

    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    function_config_writew(f, PCI_COMMAND, 0);
    T_TRUE(function_readl(f, SG_REG_MAGIC) != SG_MAGIC);
    function_config_writew(f, PCI_COMMAND, PCI_COMMAND_MEMORY);
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    machine_stop(m);
}

/* Without bus mastering neither DMA nor MSI-X leaves the function. */
static void bus_mastering(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    uint64_t buf = machine_alloc(m, 4096, 4096);
    uint8_t *p = machine_ptr(m, buf);

    function_config_writew(f, PCI_COMMAND, PCI_COMMAND_MEMORY);
    function_writeq(f, SG_REG_TEST_DMA_LO, buf);
    function_writel(f, SG_REG_TEST_DMA_LEN, 16);
    function_writel(f, SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL);
    T_EQ_U64(function_readl(f, SG_REG_TEST_DMA_STATUS), SG_EFAULT);
    T_EQ_U64(p[1], 0);
    function_writel(f, SG_REG_TEST_IRQ, 0);
    T_FALSE(function_raised(f, 0));

    function_config_writew(f, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    function_writel(f, SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL);
    T_EQ_U64(function_readl(f, SG_REG_TEST_DMA_STATUS), 0);
    T_EQ_U64(p[1], 1);
    machine_stop(m);
}

/* A masked vector is pending until it is unmasked. */
static void msix_mask(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    uint64_t entry = f->msix_table + 3 * PCI_MSIX_ENTRY_SIZE;
    uint32_t pba = function_config_readl(f, f->cap_msix + PCI_MSIX_PBA) & PCI_MSIX_PBA_OFFSET;

    qtest_writel(m->q, entry + PCI_MSIX_ENTRY_VECTOR_CTRL, PCI_MSIX_ENTRY_CTRL_MASKBIT);
    function_writel(f, SG_REG_TEST_IRQ, 3);
    T_FALSE(function_raised(f, 3));
    T_EQ_U64(qtest_readl(m->q, f->msix + pba), 1 << 3);
    qtest_writel(m->q, entry + PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    T_TRUE(function_raised(f, 3));
    T_EQ_U64(qtest_readl(m->q, f->msix + pba), 0);
    function_writel(f, SG_REG_TEST_IRQ, 3);
    T_TRUE(function_raised(f, 3));
    T_FALSE(function_raised(f, 2));
    machine_stop(m);
}

static void check_power_on(struct function *f)
{
    T_EQ_U64(function_readl(f, SG_REG_CTRL), 0);
    T_EQ_U64(function_readl(f, SG_REG_STATUS), SG_STATUS_LINK_UP);
    T_EQ_U64(function_readl(f, SG_REG_TEST_SCRATCH), UINT32_MAX);
    T_EQ_U64(function_readq(f, SG_REG_ASQ_BASE_LO), 0);
    T_EQ_U64(function_readl(f, SG_REG_AEQ_SIZE), 0);
}

enum reset_kind { RESET_CTRL, RESET_FLR, RESET_MACHINE };

static void reset_by(enum reset_kind kind)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    uint64_t guid = function_readq(f, SG_REG_GUID_LO);
    struct qtest_side s;

    check_power_on(f);
    side_start(&s, f);
    function_writel(f, SG_REG_TEST_SCRATCH, 0x1234);
    T_TRUE(function_readl(f, SG_REG_STATUS) & SG_STATUS_READY);
    switch (kind) {
    case RESET_CTRL:
        function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
        break;
    case RESET_FLR:
        function_flr(f);
        break;
    case RESET_MACHINE:
        machine_reset(m);
        break;
    }
    check_power_on(f);
    T_EQ_U64(function_readq(f, SG_REG_GUID_LO), guid);
    /* It works again like a new one. */
    side_start(&s, f);
    T_EQ_U64(md_qp_state(&s.qp), SG_QP_IDLE);
    machine_stop(m);
}

static void reset_by_register(void)
{
    reset_by(RESET_CTRL);
}

static void reset_by_flr(void)
{
    reset_by(RESET_FLR);
}

static void reset_by_machine(void)
{
    reset_by(RESET_MACHINE);
}

/* CTRL.RESET does not change configuration space, which belongs to the bus. */
static void register_reset_keeps_the_bus(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];

    function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
    T_EQ_U64(function_config_readl(f, PCI_BASE_ADDRESS_0) & PCI_BASE_ADDRESS_MEM_MASK, f->regs);
    function_writel(f, SG_REG_TEST_IRQ, 1);
    T_TRUE(function_raised(f, 1));
    machine_stop(m);
}

static void unplug(struct function *f)
{
    qtest_qmp_ok(f->m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a%u\"}}",
                 f->number);
    function_slot_off(f);
    qtest_qmp_event(f->m->q, "DEVICE_DELETED");
    T_EQ_U64(function_config_readl(f, PCI_VENDOR_ID), UINT32_MAX);
}

static void unplug_idle(void)
{
    struct machine *m = machine_start(1, "", "");

    unplug(&m->f[0]);
    machine_settle(m);
    machine_stop(m);
}

static void unplug_with_objects(void)
{
    struct machine *m = machine_start(1, "", "");
    struct qtest_side s;

    side_start(&s, &m->f[0]);
    unplug(&m->f[0]);
    machine_pass(m, 20);
    machine_stop(m);
}

/* Both ends of a connection are removed, one after the other; the remaining end gets an event. */
static void unplug_while_connected(void)
{
    struct machine *m = machine_start(2, "", "");
    struct qtest_side a, b;

    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
    unplug(&m->f[0]);
    side_event(&b, SG_EV_CM_DISCONNECT, 100);
    side_event(&b, SG_EV_CM_CLOSED, 100);
    T_EQ_U64(md_qp_state(&b.qp), SG_QP_ERROR);
    unplug(&m->f[1]);
    machine_pass(m, 20);
    machine_stop(m);
}

/* The MAC is free again once its adapter is gone. */
static void plug_again(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    unsigned express = port_find_cap(f, PCI_CAP_ID_EXP);
    char *answer;

    unplug(f);
    answer =
        qtest_qmp(m->q, "{\"execute\": \"device_add\", \"arguments\": {\"driver\": "
                        "\"staghorn\", \"id\": \"a0\", \"bus\": \"rp0\", \"netdev\": \"net0\", "
                        "\"mac\": \"52:54:00:00:00:01\"}}");
    T_TRUE(strstr(answer, "\"return\""));
    g_free(answer);
    port_config_writew(f, express + PCI_EXP_SLTCTL, PCI_EXP_SLTCTL_PWR_IND_ON);
    function_setup(f);
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    check_power_on(f);
    machine_stop(m);
}

static const struct t_case cases[] = {
    { "identity: ids, class, revision, no INTx", identity },
    { "bars: sizes and kinds as in the manual, no others", bars },
    { "capabilities: Express endpoint with FLR, MSI-X, PM, AER", capabilities },
    { "capabilities: the reports of AER can be switched on", error_reporting },
    { "serial number: EUI-64 of the MAC, unique", serial_number },
    { "command: BARs answer only while memory space is enabled", decoding },
    { "command: no DMA and no MSI-X without bus mastering", bus_mastering },
    { "msix: masked vectors become pending", msix_mask },
    { "reset: CTRL.RESET gives the power-on state", reset_by_register },
    { "reset: FLR gives the power-on state", reset_by_flr },
    { "reset: machine reset gives the power-on state", reset_by_machine },
    { "reset: CTRL.RESET leaves the bus alone", register_reset_keeps_the_bus },
    { "unplug: an adapter that nobody uses", unplug_idle },
    { "unplug: an adapter with live objects", unplug_with_objects },
    { "unplug: both ends of a connection, one by one", unplug_while_connected },
    { "unplug: the slot and the MAC can be used again", plug_again },
};

T_MAIN(cases)
