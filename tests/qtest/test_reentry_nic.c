/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Another NIC of the guest receives a frame of ours in the middle of a call into the core.  It
 * raises an interrupt at once, aimed at the objects that the call is using.  The NIC is an e1000e,
 * on the adapters' hub or behind "a0.eth", with a ring of receive descriptors and one MSI-X
 * message.
 */
#include <glib.h>
#include <linux/pci_regs.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

enum {
    NIC_RCTL = 0x100,
    NIC_IMS = 0xd0,
    NIC_RDBAL = 0x2800,
    NIC_RDBAH = 0x2804,
    NIC_RDLEN = 0x2808,
    NIC_RDH = 0x2810,
    NIC_RDT = 0x2818,
    NIC_RCTL_ALL = 0x801a, /* enabled, all unicast, multicast and broadcast */
    NIC_RING = 64,
    NIC_BUFFER = 2048,
    NIC_SLOT = 10,
    HIDDEN_HOST = 100,
};
static const uint64_t config_window = 0xb0000000; /* as machine.c sets it up */
static const uint64_t nic_config = config_window + (NIC_SLOT << 15);
static const uint64_t nic_regs = 0xd8000000;

static struct machine *m;
static struct qtest_side a, b;

/* ---- the NIC ---- */

static unsigned nic_find_cap(uint8_t id)
{
    unsigned at = qtest_readb(m->q, nic_config + PCI_CAPABILITY_LIST), n;

    for (n = 0; at && n < 48; n++) {
        if (qtest_readb(m->q, nic_config + at) == id) {
            return at;
        }
        at = qtest_readb(m->q, nic_config + at + PCI_CAP_LIST_NEXT);
    }
    T_FAIL("the NIC has no capability 0x%02x", id);
}

/* From now on the next frame raises the message. */
static void nic_start(uint64_t addr, uint16_t data)
{
    uint64_t ring = machine_alloc(m, NIC_RING * 16, 4096);
    uint64_t buffers = machine_alloc(m, NIC_RING * NIC_BUFFER, 4096);
    uint64_t cap;
    unsigned i;

    for (i = 0; i < NIC_RING; i++) {
        sg_put_le64(machine_ptr(m, ring + 16 * i), buffers + i * NIC_BUFFER);
    }
    qtest_writel(m->q, nic_config + PCI_BASE_ADDRESS_0, (uint32_t)nic_regs);
    qtest_writew(m->q, nic_config + PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    cap = nic_config + nic_find_cap(PCI_CAP_ID_MSI);
    qtest_writel(m->q, cap + PCI_MSI_ADDRESS_LO, (uint32_t)addr);
    qtest_writel(m->q, cap + PCI_MSI_ADDRESS_HI, addr >> 32);
    qtest_writew(m->q, cap + PCI_MSI_DATA_64, data);
    qtest_writew(m->q, cap + PCI_MSI_FLAGS, PCI_MSI_FLAGS_64BIT | PCI_MSI_FLAGS_ENABLE);
    qtest_writel(m->q, nic_regs + NIC_RDBAL, (uint32_t)ring);
    qtest_writel(m->q, nic_regs + NIC_RDBAH, ring >> 32);
    qtest_writel(m->q, nic_regs + NIC_RDLEN, NIC_RING * 16);
    qtest_writel(m->q, nic_regs + NIC_RDH, 0);
    qtest_writel(m->q, nic_regs + NIC_RDT, NIC_RING - 1);
    qtest_writel(m->q, nic_regs + NIC_IMS, UINT32_MAX);
    qtest_writel(m->q, nic_regs + NIC_RCTL, NIC_RCTL_ALL);
}

static bool nic_has_received(void)
{
    return qtest_readl(m->q, nic_regs + NIC_RDH) != 0;
}

/* ---- targets ---- */

static uint64_t config_of(const struct function *f, unsigned offset)
{
    return config_window + ((uint64_t)f->bus << 20) + offset;
}

static bool is_plugged(struct function *f)
{
    return function_config_readw(f, PCI_VENDOR_ID) == SG_PCI_VENDOR_ID;
}

static void aim_slot(struct function *f)
{
    unsigned at = port_find_cap(f, PCI_CAP_ID_EXP) + PCI_EXP_SLTCTL;

    nic_start(config_window + ((2 + f->number) << 15) + at,
              port_config_readw(f, at) | PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF);
}

static void aim_flr(struct function *f)
{
    nic_start(config_of(f, f->cap_express + PCI_EXP_DEVCTL), PCI_EXP_DEVCTL_BCR_FLR);
}

static void aim_command(struct function *f)
{
    nic_start(config_of(f, PCI_COMMAND), 0);
}
static void aim_ctrl(struct function *f)
{
    nic_start(f->regs + SG_REG_CTRL, SG_CTRL_RESET);
}
static void aim_disable(struct function *f)
{
    nic_start(f->regs + SG_REG_CTRL, 0);
}
static void aim_admin(struct function *f)
{
    nic_start(f->regs + SG_REG_ADMIN_DB, 0x7000);
}
static void aim_irq(struct function *f)
{
    nic_start(f->regs + SG_REG_TEST_IRQ, 3);
}

/* A doorbell of a queue that does not exist: ignored. */
static void aim_doorbell(struct function *f)
{
    nic_start(f->doorbells + SG_DB_SQ, 0xffff);
}

static void expect_unplugged(struct function *f)
{
    T_FALSE(is_plugged(f));
}

static void expect_silent(struct function *f)
{
    T_EQ_U64(function_config_readw(f, PCI_COMMAND), 0);
}

static void expect_disabled(struct function *f)
{
    T_EQ_U64(function_readl(f, SG_REG_STATUS) & SG_STATUS_READY, 0);
}

static void expect_reset(struct function *f)
{
    expect_silent(f);
    function_setup(f);
    expect_disabled(f);
}

static void expect_fatal(struct function *f)
{
    T_EQ_U64(function_readl(f, SG_REG_FATAL), SG_FATAL_ADMIN_INDEX);
}

static void expect_raised(struct function *f)
{
    T_TRUE(function_raised(f, 3));
}

static void expect_alive(struct function *f)
{
    T_TRUE(function_readl(f, SG_REG_STATUS) & SG_STATUS_READY);
}

static const struct reentry_nic_target {
    const char *name;
    void (*aim)(struct function *f);
    void (*expect)(struct function *f);
} targets[] = {
    { "slot", aim_slot, expect_unplugged },          { "FLR", aim_flr, expect_reset },
    { "COMMAND", aim_command, expect_silent },       { "CTRL.RESET", aim_ctrl, expect_disabled },
    { "CTRL.ENABLE", aim_disable, expect_disabled }, { "ADMIN_DB", aim_admin, expect_fatal },
    { "TEST_IRQ", aim_irq, expect_raised },          { "a doorbell", aim_doorbell, expect_alive },
};

/* ---- ways to a frame ---- */

/* Some segments in the turn of a doorbell; the rest of them after the message. */
static void doorbell(void)
{
    md_post_send(&a.qp, &(struct md_wr){
                            .opcode = SG_WR_WRITE,
                            .addr = a.buffer,
                            .len = SIDE_BUFFER,
                            .lkey = a.stag,
                            .raddr = b.buffer,
                            .rkey = b.stag,
                        });
}

/* An ARP request for an address that nobody has; it is repeated each second. */
static void connect_by(struct qtest_side *s)
{
    struct sg_cmd_connect c = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(s->f->number, 0),
        .remote = driver_addr(HIDDEN_HOST, 4000),
    };
    struct md_qp qp;

    md_create_qp(&s->md, &qp, &(struct md_qp_params){ .pd = s->pd, .scq = &s->cq, .rcq = &s->cq });
    sg_put_le32(&c.qpn, qp.qpn);
    md_submit(&s->md, &c, sizeof(c));
}

/* In the turn of ADMIN_DB. */
static void command(void)
{
    connect_by(&a);
}

/* Both ends close: by a reset, and by a removal. */
static void reset(void)
{
    function_writel(&m->f[0], SG_REG_CTRL, SG_CTRL_RESET);
}

/* The last frames follow at once, and their effects may unplug the adapter. */
static void flr(void)
{
    struct function *f = &m->f[0];

    function_config_writew(f, f->cap_express + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
}

static void removal(void)
{
    qtest_qmp_ok(m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a0\"}}");
    function_slot_off(&m->f[0]);
}

/* A broadcast frame from the wire, which the hub gives to each in turn. */
static void broadcast(void)
{
    uint8_t frame[60] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, [11] = 0x77, [12] = 0x88, 0xcc,
    };

    machine_wire_send(m, frame, sizeof(frame));
}

/* The timer of one adapter serves the connections of both. */
static void timer(void)
{
    unsigned i;

    for (i = 0; i < 20 && !nic_has_received(); i++) {
        qtest_clock_step(m->q, 250000000);
        machine_settle(m);
    }
}

/* ---- all of them ---- */

static void start_on_hub(void)
{
    m = machine_start(2, "",
                      "-netdev hubport,id=nich,hubid=0 "
                      "-device e1000e,netdev=nich,bus=pcie.0,addr=a.0");
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
    machine_settle(m);
}

static void finish(void)
{
    unsigned i;

    machine_pass(m, 3);
    qtest_writew(m->q, nic_config + PCI_COMMAND, 0); /* no more messages */
    for (i = 0; i < m->n; i++) {
        if (is_plugged(&m->f[i])) {
            function_setup(&m->f[i]);
            side_start(&a, &m->f[i]);
        }
    }
    machine_stop(m);
}

static void meet(const char *way, const struct reentry_nic_target *t, unsigned victim,
                 void (*fire)(void), bool certain)
{
    T_CONTEXT("%s, %s of adapter %u", way, t->name, victim);
    start_on_hub();
    t->aim(&m->f[victim]);
    fire();
    machine_settle(m);
    T_TRUE(nic_has_received());
    if (certain) {
        t->expect(&m->f[victim]);
    }
    finish();
}

/* In a short run each way meets a few targets, and other ways meet others. */
static void meet_all(const char *way, void (*fire)(void), bool certain)
{
    static unsigned ways;
    unsigned i, stride = t_stride(1);

    for (i = ways++ % stride; i < 2 * G_N_ELEMENTS(targets); i += stride) {
        meet(way, &targets[i / 2], i % 2, fire, certain);
    }
}

static void in_a_doorbell(void)
{
    meet_all("a doorbell", doorbell, true);
}
static void in_a_command(void)
{
    meet_all("a command", command, true);
}
static void in_a_broadcast(void)
{
    meet_all("a broadcast", broadcast, true);
}
/* The visible result depends on the order. */
static void in_a_reset(void)
{
    meet_all("a reset", reset, false);
}
static void in_an_flr(void)
{
    meet_all("an FLR", flr, false);
}
static void in_a_removal(void)
{
    meet_all("a removal", removal, false);
}

/* Requests of both adapters are repeated by whichever adapter's timer is first. */
static void in_a_timer(void)
{
    unsigned i, stride = t_stride(1);

    for (i = 6 % stride; i < 2 * G_N_ELEMENTS(targets); i += stride) {
        const struct reentry_nic_target *t = &targets[i / 2];

        T_CONTEXT("a timer, %s of adapter %u", t->name, i % 2);
        start_on_hub();
        connect_by(&a);
        connect_by(&b);
        machine_settle(m);
        t->aim(&m->f[i % 2]);
        timer();
        T_TRUE(nic_has_received());
        t->expect(&m->f[i % 2]);
        finish();
    }
}

/* The NIC behind the port gets its frame from the middle of our reception. */
static void behind_the_port(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(targets); i++) {
        T_CONTEXT("a frame for a0.eth, %s", targets[i].name);
        m = machine_start(1, " -device e1000e,netdev=a0.eth,bus=pcie.0,addr=a.0", "");
        side_start(&a, &m->f[0]);
        targets[i].aim(&m->f[0]);
        broadcast();
        machine_settle(m);
        T_TRUE(nic_has_received());
        targets[i].expect(&m->f[0]);
        finish();
    }
}

static const struct t_case cases[] = {
    { "another NIC's interrupt in a doorbell's turn", in_a_doorbell },
    { "another NIC's interrupt in a command", in_a_command },
    { "another NIC's interrupt in the reception of a frame", in_a_broadcast },
    { "another NIC's interrupt in a reset's last frames", in_a_reset },
    { "another NIC's interrupt in an FLR's last frames", in_an_flr },
    { "another NIC's interrupt in a removal's last frames", in_a_removal },
    { "another NIC's interrupt in the timer of two adapters", in_a_timer },
    { "the interrupt of the NIC behind the port", behind_the_port },
};

T_MAIN(cases)
