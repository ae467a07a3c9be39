/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults on demand in the device (docs/manual/faults.md): the properties "faults" and
 * "faults-state", the virtual clock, MSI-X, and what is refused.  What each effect does is tested
 * natively (tests/unit/verbs/test_faults.c).
 */
#include <glib.h>
#include <linux/pci_regs.h>
#include <string.h>

#include "driver.h"
#include "tap.h"

static struct machine *m;
static struct function *f;
static struct md md;

/* 'rules': of the command line, or NULL. */
static void start(const char *rules)
{
    g_autofree char *extra = rules ? g_strdup_printf(",faults='%s'", rules) : g_strdup("");

    m = machine_start(1, extra, "");
    f = &m->f[0];
    driver_attach(&md, f);
}

static void stop(void)
{
    machine_stop(m);
}

static char *set(const char *rules)
{
    return qtest_qmp(m->q,
                     "{\"execute\": \"qom-set\", \"arguments\": {\"path\": \"a0\", "
                     "\"property\": \"faults\", \"value\": \"%s\"}}",
                     rules);
}

static void accepts(const char *rules)
{
    g_autofree char *answer = set(rules);

    T_CONTEXT("%s: %s", rules, answer);
    T_TRUE(strstr(answer, "\"return\": {}"));
}

static bool property_has(const char *name, const char *part)
{
    g_autofree char *answer = qtest_qmp(m->q,
                                        "{\"execute\": \"qom-get\", \"arguments\": "
                                        "{\"path\": \"a0\", \"property\": \"%s\"}}",
                                        name);

    return strstr(answer, part) != NULL;
}

/* Set before there is an adapter, with times that count from the start of the machine. */
static void command_line(void)
{
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };

    start("command op=NOP fail=EBUSY nth=2; interrupt vector=3 lost");
    driver_start(&md, f);
    T_TRUE(property_has("faults", "command op=NOP fail=EBUSY nth=2; interrupt vector=3 lost"));
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    T_TRUE(property_has("faults-state", "\\\"seen\\\": 1, \\\"applied\\\": 0"));
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_EBUSY);
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    T_TRUE(property_has("faults-state", "\\\"applied\\\": 1, \\\"spent\\\": true"));
    function_writel(f, SG_REG_TEST_IRQ, 3);
    machine_settle(m);
    T_TRUE(!function_raised(f, 3));
    function_writel(f, SG_REG_TEST_IRQ, 3);
    machine_settle(m);
    T_TRUE(function_raised(f, 3));
    stop();
}

static void refused_at_start(void)
{
    static const struct {
        const char *rules, *why;
    } rows[] = {
        { "nonsense", "fault rule 1, 'nonsense': it begins with nonsense" },
        { "command fail; command slow=soon",
          "fault rule 2, 'command slow=soon': slow takes a time" },
        { "command op=WHAT fail", "op takes a command such as REG_MR" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *args =
            g_strdup_printf("-device pcie-root-port,id=rp0,chassis=1 -netdev hubport,id=n0,hubid=0 "
                            "-device staghorn,bus=rp0,netdev=n0,faults='%s'",
                            rows[i].rules);
        g_autofree char *err = NULL;

        T_CONTEXT("%s", rows[i].rules);
        T_EQ_INT(qtest_refused(args, &err), 1);
        T_TRUE(strstr(err, rows[i].why));
    }
}

static void refused_later(void)
{
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };
    g_autofree char *answer = NULL;

    start(NULL);
    driver_start(&md, f);
    T_TRUE(property_has("faults", "\"return\": \"\""));
    accepts("command op=NOP fail");
    answer = set("command op=NOP silent; interrupt lost lost");
    T_TRUE(strstr(answer, "lost is a second effect: a rule has one"));
    T_TRUE(property_has("faults", "\"return\": \"command op=NOP fail\"")); /* as before */
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_ENOMEM);
    accepts("");
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    stop();
}

/* Late and spurious interrupts come by the virtual clock, on an adapter that nobody touches. */
static void interrupts_in_time(void)
{
    start(NULL);
    driver_start(&md, f);
    accepts("interrupt vector=2 late=5ms; interrupt spurious=4 after=20ms; "
            "interrupt vector=5 wrong=6");
    function_writel(f, SG_REG_TEST_IRQ, 2);
    machine_pass(m, 4);
    T_TRUE(!function_raised(f, 2));
    machine_pass(m, 2);
    T_TRUE(function_raised(f, 2));
    machine_pass(m, 12);
    T_TRUE(!function_raised(f, 4));
    machine_pass(m, 4);
    T_TRUE(function_raised(f, 4));
    function_writel(f, SG_REG_TEST_IRQ, 5);
    machine_settle(m);
    T_TRUE(!function_raised(f, 5) && function_raised(f, 6));
    /* A vector that the function does not have. */
    accepts("interrupt wrong=63; interrupt spurious=62");
    function_writel(f, SG_REG_TEST_IRQ, 1);
    machine_pass(m, 2);
    T_TRUE(!function_raised(f, 1));
    stop();
}

static void slow_command(void)
{
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };
    struct sg_admin_rsp rsp;

    start(NULL);
    driver_start(&md, f);
    accepts("command op=NOP slow=8ms; command op=NOP stuck nth=2");
    md_submit(&md, &c, sizeof(c));
    machine_pass(m, 7);
    T_TRUE(!md_reap(&md, &rsp));
    machine_pass(m, 2);
    T_TRUE(md_reap(&md, &rsp));
    md_submit(&md, &c, sizeof(c));
    machine_pass(m, 100);
    T_TRUE(!md_reap(&md, &rsp));
    accepts("");
    machine_settle(m);
    T_TRUE(md_reap(&md, &rsp));
    stop();
}

/* Neither registers nor configuration space; nothing of it has changed when it is over. */
static void unreachable(void)
{
    start(NULL);
    driver_start(&md, f);
    accepts("registers ones after=3ms");
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    machine_pass(m, 4);
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), UINT32_MAX);
    T_EQ_U64(function_readq(f, SG_REG_STATUS), UINT64_MAX);
    T_EQ_U64(function_config_readl(f, PCI_VENDOR_ID), UINT32_MAX);
    T_EQ_U64(function_config_readw(f, PCI_VENDOR_ID), UINT16_MAX);
    T_EQ_U64(function_config_readb(f, PCI_REVISION_ID), UINT8_MAX);
    function_config_writew(f, PCI_COMMAND, 0);
    function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
    T_TRUE(property_has("fatal", "\"return\": false"));
    accepts("");
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    T_EQ_U64(function_readl(f, SG_REG_STATUS) & SG_STATUS_READY, SG_STATUS_READY);
    T_EQ_U64(function_config_readw(f, PCI_VENDOR_ID), SG_PCI_VENDOR_ID);
    stop();
}

/* No reset ends a rule. */
static void outlives_resets(void)
{
    start(NULL);
    driver_start(&md, f);
    accepts("registers ones offset=0 times=always");
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), UINT32_MAX);
    T_EQ_U64(function_config_readw(f, PCI_VENDOR_ID), SG_PCI_VENDOR_ID); /* only this register */
    function_flr(f);
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), UINT32_MAX);
    machine_reset(m);
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), UINT32_MAX);
    accepts("");
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    stop();
}

/* A transfer of the test registers. */
static uint32_t transfer(uint32_t cmd, uint64_t addr)
{
    function_writeq(f, SG_REG_TEST_DMA_LO, addr);
    function_writel(f, SG_REG_TEST_DMA_LEN, 64);
    function_writel(f, SG_REG_TEST_DMA_CMD, cmd);
    return function_readl(f, SG_REG_TEST_DMA_STATUS);
}

static void memory(void)
{
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };
    struct sg_admin_rsp rsp;
    uint64_t addr;

    start(NULL);
    addr = machine_alloc(m, 4096, 4096);
    accepts("dma refuse dir=read nth=2; dma refuse dir=write nth=3");
    T_EQ_U64(transfer(SG_TEST_DMA_FILL, addr), SG_OK);       /* a write */
    T_EQ_U64(transfer(SG_TEST_DMA_INVERT, addr), SG_OK);     /* a read and a write */
    T_EQ_U64(transfer(SG_TEST_DMA_INVERT, addr), SG_EFAULT); /* the second read */
    T_EQ_U64(transfer(SG_TEST_DMA_FILL, addr), SG_EFAULT);   /* the third write */
    T_EQ_U64(transfer(SG_TEST_DMA_FILL, addr), SG_OK);
    accepts("");
    /* The ring of answers does not respond: that is fatal. */
    driver_start(&md, f);
    accepts("dma refuse dir=write");
    md_submit(&md, &c, sizeof(c));
    machine_settle(m);
    T_TRUE(!md_reap(&md, &rsp));
    T_EQ_U64(function_readl(f, SG_REG_FATAL), SG_FATAL_DMA);
    driver_start(&md, f);
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    stop();
}

static bool link_is_up(void)
{
    return function_readl(f, SG_REG_STATUS) & SG_STATUS_LINK_UP;
}

static void link_flaps(void)
{
    struct sg_eqe e;

    start(NULL);
    driver_start(&md, f);
    T_TRUE(link_is_up());
    accepts("link down=4ms after=2ms period=20ms times=2");
    machine_pass(m, 1);
    T_TRUE(link_is_up());
    for (unsigned i = 0; i < 2; i++) {
        machine_pass(m, 2);
        T_TRUE(!link_is_up());
        T_TRUE(md_next_async(&md, &e) && e.event == SG_EV_PORT_DOWN);
        machine_pass(m, 5);
        T_TRUE(link_is_up());
        T_TRUE(md_next_async(&md, &e) && e.event == SG_EV_PORT_UP);
        machine_pass(m, 13);
    }
    T_TRUE(!md_next_async(&md, &e));
    /* The end of the rules brings it up. */
    accepts("link down=3600s");
    machine_pass(m, 1);
    T_TRUE(!link_is_up());
    accepts("");
    machine_pass(m, 1);
    T_TRUE(link_is_up());
    stop();
}

static void errors(void)
{
    unsigned aer;

    start(NULL);
    driver_start(&md, f);
    aer = function_find_ext_cap(f, PCI_EXT_CAP_ID_ERR);
    T_TRUE(aer != 0);
    accepts("error correctable after=1ms; error nonfatal after=3ms; error fatal after=5ms");
    T_EQ_U64(function_config_readl(f, aer + PCI_ERR_COR_STATUS), 0);
    machine_pass(m, 2);
    T_EQ_U64(function_config_readl(f, aer + PCI_ERR_COR_STATUS), PCI_ERR_COR_BAD_TLP);
    T_EQ_U64(function_config_readl(f, aer + PCI_ERR_UNCOR_STATUS), 0);
    machine_pass(m, 2);
    T_EQ_U64(function_config_readl(f, aer + PCI_ERR_UNCOR_STATUS), PCI_ERR_UNC_COMP_TIME);
    machine_pass(m, 2);
    T_EQ_U64(function_config_readl(f, aer + PCI_ERR_UNCOR_STATUS),
             PCI_ERR_UNC_COMP_TIME | PCI_ERR_UNC_DLP);
    /* The severities are those that the manual names. */
    T_EQ_U64(function_config_readl(f, aer + PCI_ERR_UNCOR_SEVER) &
                 (PCI_ERR_UNC_COMP_TIME | PCI_ERR_UNC_DLP),
             PCI_ERR_UNC_DLP);
    stop();
}

/* Rules that are set while the machine is stopped act when it continues. */
static void stopped(void)
{
    start(NULL);
    driver_start(&md, f);
    qtest_qmp_ok(m->q, "{\"execute\": \"stop\"}");
    accepts("interrupt spurious=3 after=1ms");
    T_TRUE(!function_raised(f, 3));
    qtest_qmp_ok(m->q, "{\"execute\": \"cont\"}");
    machine_pass(m, 2);
    T_TRUE(function_raised(f, 3));
    stop();
}

static const struct t_case cases[] = {
    { "rules on the command line", command_line },
    { "nonsense is refused before the machine starts", refused_at_start },
    { "nonsense is refused while it runs, and changes nothing", refused_later },
    { "interrupts that are late or spurious", interrupts_in_time },
    { "a command that is slow, and one that is stuck", slow_command },
    { "a function that is unreachable", unreachable },
    { "rules outlive resets", outlives_resets },
    { "rules for a machine that is stopped", stopped },
    { "memory that refuses an access", memory },
    { "a link that flaps", link_flaps },
    { "errors of PCI Express", errors },
};

T_MAIN(cases)
