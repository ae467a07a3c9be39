/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts aimed at registers and configuration space.  An MSI-X message is a write to an address
 * that the guest chose, so it may reset or remove the adapter that sends it, or start work on a
 * second one.  The cases combine each cause of an interrupt with each target.  QEMU must survive,
 * the target must have taken the write as hardware would, and the devices that remain must work.
 */
#include <glib.h>
#include <linux/pci_regs.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

enum { BUS_RESET_AT = PCI_BRIDGE_CONTROL - 2, HIDDEN_HOST = 100 };
static const uint64_t config_window = 0xb0000000; /* as machine.c sets it up */

static struct machine *m, *peers;
static struct qtest_side a, peer; /* on function 0; on function 1 of the peers' machine */
static struct md other;           /* on function 1 */

static uint64_t config_of(const struct function *f, unsigned offset)
{
    return config_window + ((uint64_t)f->bus << 20) + offset;
}

static uint64_t port_of(const struct function *f, unsigned offset)
{
    return config_window + ((2 + f->number) << 15) + offset;
}

static void aim(struct function *f, unsigned vector, uint64_t addr, uint32_t data)
{
    uint64_t entry = f->msix_table + vector * PCI_MSIX_ENTRY_SIZE;

    qtest_writel(m->q, entry + PCI_MSIX_ENTRY_LOWER_ADDR, (uint32_t)addr);
    qtest_writel(m->q, entry + PCI_MSIX_ENTRY_UPPER_ADDR, addr >> 32);
    qtest_writel(m->q, entry + PCI_MSIX_ENTRY_DATA, data);
}

static bool is_plugged(struct function *f)
{
    return function_config_readw(f, PCI_VENDOR_ID) == SG_PCI_VENDOR_ID;
}

static bool is_ready(struct function *f)
{
    return function_readl(f, SG_REG_STATUS) & SG_STATUS_READY;
}

/* ---- targets ---- */

static uint64_t at_slot(const struct function *f)
{
    return port_of(f, port_find_cap((struct function *)f, PCI_CAP_ID_EXP) + PCI_EXP_SLTCTL);
}

static uint32_t power_off(struct function *f)
{
    return port_config_readw(f, port_find_cap(f, PCI_CAP_ID_EXP) + PCI_EXP_SLTCTL) |
           PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF;
}

static void aim_slot(void)
{
    aim(&m->f[0], 0, at_slot(&m->f[0]), power_off(&m->f[0]));
}
static void aim_other_slot(void)
{
    aim(&m->f[0], 0, at_slot(&m->f[1]), power_off(&m->f[1]));
}

static void aim_flr(void)
{
    aim(&m->f[0], 0, config_of(&m->f[0], m->f[0].cap_express + PCI_EXP_DEVCTL),
        PCI_EXP_DEVCTL_BCR_FLR);
}

static void aim_other_flr(void)
{
    aim(&m->f[0], 0, config_of(&m->f[1], m->f[1].cap_express + PCI_EXP_DEVCTL),
        PCI_EXP_DEVCTL_BCR_FLR);
}

static void aim_command(void)
{
    aim(&m->f[0], 0, config_of(&m->f[0], PCI_COMMAND), 0);
}
static void aim_bar(void)
{
    aim(&m->f[0], 0, config_of(&m->f[0], PCI_BASE_ADDRESS_0), 0);
}

static void aim_msix(void)
{
    aim(&m->f[0], 0, config_of(&m->f[0], m->f[0].cap_msix), 0);
}

static void aim_bus_reset(void)
{
    aim(&m->f[0], 0, port_of(&m->f[0], BUS_RESET_AT), PCI_BRIDGE_CTL_BUS_RESET << 16);
}

static void aim_ctrl(void)
{
    aim(&m->f[0], 0, m->f[0].regs + SG_REG_CTRL, SG_CTRL_RESET);
}
static void aim_admin(void)
{
    aim(&m->f[0], 0, m->f[0].regs + SG_REG_ADMIN_DB, 0x7000);
}
static void aim_irq(void)
{
    aim(&m->f[0], 0, m->f[0].regs + SG_REG_TEST_IRQ, 0);
}
static void aim_doorbell(void)
{
    aim(&m->f[0], 0, m->f[0].doorbells + SG_DB_SQ, 1);
}

static void aim_table(void)
{
    aim(&m->f[0], 0, m->f[0].msix_table + PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
}

static void aim_other_ctrl(void)
{
    aim(&m->f[0], 0, m->f[1].regs + SG_REG_CTRL, SG_CTRL_RESET);
}
static void aim_other_admin(void)
{
    aim(&m->f[0], 0, m->f[1].regs + SG_REG_ADMIN_DB, 0x7000);
}
static void aim_other_irq(void)
{
    aim(&m->f[0], 0, m->f[1].regs + SG_REG_TEST_IRQ, 2);
}

/* The interrupt of each function raises that of the other. */
static void aim_in_circles(void)
{
    aim(&m->f[0], 0, m->f[1].regs + SG_REG_TEST_IRQ, 0);
    aim(&m->f[1], 0, m->f[0].regs + SG_REG_TEST_IRQ, 0);
}

static void expect_unplugged(void)
{
    T_FALSE(is_plugged(&m->f[0]));
}
static void expect_other_unplugged(void)
{
    T_FALSE(is_plugged(&m->f[1]));
}

/* The function was reset: once set up again it is as after power-on. */
static void expect_reset(void)
{
    T_EQ_U64(function_config_readw(&m->f[0], PCI_COMMAND), 0);
    function_setup(&m->f[0]);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_CTRL), 0);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_STATUS) & ~SG_STATUS_LINK_UP, 0);
    T_EQ_U64(function_readq(&m->f[0], SG_REG_ASQ_BASE_LO), 0);
}

static void expect_bus_reset(void)
{
    qtest_writel(m->q, port_of(&m->f[0], BUS_RESET_AT), 0);
    expect_reset();
}

static void expect_other_reset(void)
{
    T_EQ_U64(function_config_readw(&m->f[1], PCI_COMMAND), 0);
    function_setup(&m->f[1]);
    T_FALSE(is_ready(&m->f[1]));
}

static void expect_silent(void)
{
    T_EQ_U64(function_config_readw(&m->f[0], PCI_COMMAND), 0);
}
static void expect_moved(void)
{
    T_TRUE(function_readl(&m->f[0], SG_REG_MAGIC) != SG_MAGIC);
}

static void expect_no_msix(void)
{
    T_EQ_U64(function_config_readw(&m->f[0], m->f[0].cap_msix + PCI_MSIX_FLAGS) &
                 PCI_MSIX_FLAGS_ENABLE,
             0);
}

static void expect_nothing(void)
{
    T_EQ_U64(function_readl(&m->f[0], SG_REG_MAGIC), SG_MAGIC);
}
static void expect_other_disabled(void)
{
    T_FALSE(is_ready(&m->f[1]));
}

static void expect_other_fatal(void)
{
    T_EQ_U64(function_readl(&m->f[1], SG_REG_FATAL), SG_FATAL_ADMIN_INDEX);
}

static void expect_other_raised(void)
{
    T_TRUE(function_raised(&m->f[1], 2));
}

static void expect_an_end(void)
{
    function_config_writew(&m->f[0], m->f[0].cap_msix + PCI_MSIX_FLAGS, 0);
    machine_settle(m);
}

static const struct reentry_target {
    const char *name;
    void (*aim)(void);
    void (*expect)(void);
    bool config; /* it is in configuration space */
} targets[] = {
    { "own slot's power", aim_slot, expect_unplugged, true },
    { "other slot's power", aim_other_slot, expect_other_unplugged, true },
    { "own FLR", aim_flr, expect_reset, true },
    { "other FLR", aim_other_flr, expect_other_reset, true },
    { "reset of the bus", aim_bus_reset, expect_bus_reset, true },
    { "own COMMAND", aim_command, expect_silent, true },
    { "own BAR0", aim_bar, expect_moved, true },
    { "MSI-X itself", aim_msix, expect_no_msix, true },
    { "own CTRL", aim_ctrl, expect_nothing },
    { "own ADMIN_DB", aim_admin, expect_nothing },
    { "own TEST_IRQ", aim_irq, expect_nothing },
    { "own doorbell", aim_doorbell, expect_nothing },
    { "own MSI-X table", aim_table, expect_nothing },
    { "other CTRL", aim_other_ctrl, expect_other_disabled },
    { "other ADMIN_DB", aim_other_admin, expect_other_fatal },
    { "other TEST_IRQ", aim_other_irq, expect_other_raised },
    { "each other", aim_in_circles, expect_an_end },
};

/* ---- sources ---- */

static void test_irq(void)
{
    function_writel(&m->f[0], SG_REG_TEST_IRQ, 0);
}

static void command(void)
{
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };

    md_submit(&a.md, &c, sizeof(c));
}

/* Copies the target of vector 0 to vector 1, which belongs to the completion event queue. */
static void aim_both(void)
{
    uint64_t entry = m->f[0].msix_table;
    unsigned i;

    for (i = 0; i < PCI_MSIX_ENTRY_VECTOR_CTRL; i += 4) {
        qtest_writel(m->q, entry + PCI_MSIX_ENTRY_SIZE + i, qtest_readl(m->q, entry + i));
    }
}

/* A queue pair in ERROR flushes what is posted, in the turn of the doorbell. */
static void prepare_doorbell(void)
{
    T_EQ_U64(md_modify_qp(&a.qp, SG_QP_ERROR), SG_OK);
    md_arm_eq(&a.md, 1);
    md_arm(&a.cq, false);
}

static void doorbell(void)
{
    md_post_send(&a.qp, &(struct md_wr){
                            .opcode = SG_WR_SEND,
                            .addr = a.buffer,
                            .len = 8,
                            .lkey = a.stag,
                        });
}

/* The completion is there already when the queue is armed. */
static void prepare_arming(void)
{
    T_EQ_U64(md_modify_qp(&a.qp, SG_QP_ERROR), SG_OK);
    md_arm_eq(&a.md, 1);
    doorbell();
    machine_settle(m);
}

static void arming(void)
{
    md_arm(&a.cq, false);
}

/* The frame comes from a socket, so its reception is not within another call. */
static void prepare_frame(void)
{
    peers = machine_start_beside(2, "", "");
    machines_join(m, peers);
    side_start(&peer, &peers->f[1]);
    sides_connect(&peer, &a, 4000);
    md_post_recv(&a.qp, 1, a.buffer, 64, a.stag);
    md_arm_eq(&a.md, 1);
    md_arm(&a.cq, false);
}

static void frame(void)
{
    md_post_send(&peer.qp, &(struct md_wr){
                               .opcode = SG_WR_SEND,
                               .addr = peer.buffer,
                               .len = 8,
                               .lkey = peer.stag,
                           });
    machine_settle(m);
}

/* No answer comes, so the timer ends it. */
static void prepare_timer(void)
{
    struct sg_cmd_connect c = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(0, 0),
        .remote = driver_addr(HIDDEN_HOST, 4000),
    };

    sg_put_le32(&c.qpn, a.qp.qpn);
    T_EQ_U64(md_cmd(&a.md, &c, sizeof(c), NULL), SG_OK);
    md_arm_eq(&a.md, 0);
}

static void timer(void)
{
    unsigned i;

    for (i = 0; i < 25; i++) {
        qtest_clock_step(m->q, 500000000);
        machine_settle(m);
    }
}

static void prepare_async(void)
{
    md_arm_eq(&a.md, 0);
}

static void fault(void)
{
    qtest_qmp_ok(m->q, "{\"execute\": \"qom-set\", \"arguments\": {\"path\": "
                       "\"/machine/peripheral/a0\", \"property\": \"fatal\", \"value\": true}}");
}

static void link_down(void)
{
    qtest_qmp_ok(m->q, "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"a0\", "
                       "\"up\": false}}");
}

/* Pending first: unmasking, or switching MSI-X on, sends it. */
static void prepare_mask(void)
{
    qtest_writel(m->q, m->f[0].msix_table + PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    test_irq();
}

static void unmask(void)
{
    qtest_writel(m->q, m->f[0].msix_table + PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
}

static void prepare_enable(void)
{
    function_config_writew(&m->f[0], m->f[0].cap_msix + PCI_MSIX_FLAGS,
                           PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
    test_irq();
}

static void enable(void)
{
    function_config_writew(&m->f[0], m->f[0].cap_msix + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
}

/* ---- all of them ---- */

static void start(void)
{
    m = machine_start(2, "", "");
    peers = NULL;
    side_start(&a, &m->f[0]);
    driver_start(&other, &m->f[1]);
}

/* QEMU refuses a nested access to configuration space. */
static bool is_within_reach(const struct reentry_target *t, void (*fire)(void))
{
    return !(t->config && fire == enable);
}

static void meet(const char *source, const struct reentry_target *t, void (*prepare)(void),
                 void (*fire)(void))
{
    unsigned i;

    T_CONTEXT("%s at %s", source, t->name);
    start();
    if (prepare) {
        prepare();
    }
    t->aim();
    aim_both();
    fire();
    machine_settle(m);
    if (is_within_reach(t, fire)) {
        t->expect();
    }
    machine_pass(m, 2);
    for (i = 0; i < 2; i++) {
        if (is_plugged(&m->f[i])) {
            function_setup(&m->f[i]);
            function_writel(&m->f[i], SG_REG_CTRL, SG_CTRL_RESET);
            side_start(&a, &m->f[i]);
        }
    }
    if (peers) {
        machines_part(m);
        machine_stop(peers);
    }
    machine_stop(m);
}

/* In a short run each source meets a few targets, and all sources together meet all. */
static void meet_all(const char *source, void (*prepare)(void), void (*fire)(void))
{
    static unsigned sources;
    unsigned i, stride = t_stride(1);

    for (i = sources++ % stride; i < G_N_ELEMENTS(targets); i += stride) {
        meet(source, &targets[i], prepare, fire);
    }
}

static void by_register(void)
{
    meet_all("TEST_IRQ", NULL, test_irq);
}
static void by_command(void)
{
    meet_all("a command", prepare_async, command);
}
static void by_doorbell(void)
{
    meet_all("a doorbell", prepare_doorbell, doorbell);
}
static void by_arming(void)
{
    meet_all("an armed queue", prepare_arming, arming);
}
static void by_frame(void)
{
    meet_all("a frame", prepare_frame, frame);
}
static void by_timer(void)
{
    meet_all("a timer", prepare_timer, timer);
}
static void by_fault(void)
{
    meet_all("a fault", prepare_async, fault);
}
static void by_link(void)
{
    meet_all("the link", prepare_async, link_down);
}
static void by_unmasking(void)
{
    meet_all("an unmasked vector", prepare_mask, unmask);
}
static void by_enabling(void)
{
    meet_all("MSI-X enabled", prepare_enable, enable);
}

static const struct t_case cases[] = {
    { "interrupts by TEST_IRQ at every target", by_register },
    { "interrupts by a command's completion at every target", by_command },
    { "interrupts by a doorbell's turn at every target", by_doorbell },
    { "interrupts by arming a queue at every target", by_arming },
    { "interrupts by a received frame at every target", by_frame },
    { "interrupts by a timer at every target", by_timer },
    { "interrupts by a fault at every target", by_fault },
    { "interrupts by the link at every target", by_link },
    { "interrupts by an unmasked vector at every target", by_unmasking },
    { "interrupts by MSI-X enabled at every target", by_enabling },
};

T_MAIN(cases)
