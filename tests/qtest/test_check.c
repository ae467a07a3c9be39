/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver checker of the device (docs/manual/checker.md): property "check", reports through
 * QMP, and what a strict checker does to an adapter whose driver makes mistakes.  The rules
 * themselves are tested natively (tests/unit/verbs/test_check_rules.c).
 */
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"
#include "tap.h"

/* A property of function 0 as QEMU gives it, without the backslashes of the outer JSON. */
static char *property(struct machine *m, const char *name)
{
    char *answer = qtest_qmp(m->q,
                             "{\"execute\": \"qom-get\", \"arguments\": "
                             "{\"path\": \"a0\", \"property\": \"%s\"}}",
                             name);
    char *to = answer;

    for (const char *from = answer; *from; from++) {
        if (*from != '\\') {
            *to++ = *from;
        }
    }
    *to = 0;
    return answer;
}

static unsigned reports(struct machine *m)
{
    g_autofree char *all = property(m, "check-reports");
    unsigned n = 0;

    for (const char *at = all; (at = strstr(at, "\"rule\": ")); at++) {
        n++;
    }
    return n;
}

/* There are 'n' reports, and one of them has this text. */
static void expect_report(struct machine *m, unsigned n, const char *part)
{
    g_autofree char *all = property(m, "check-reports");

    T_CONTEXT("%s", part);
    T_EQ_U64(reports(m), n);
    if (!strstr(all, part)) {
        T_FAIL("not in: %s", all);
    }
}

static uint32_t state_of(struct machine *m)
{
    return function_readl(&m->f[0], SG_REG_STATUS) & (SG_STATUS_READY | SG_STATUS_FATAL);
}

static void write_read_only(struct machine *m)
{
    function_writel(&m->f[0], SG_REG_VERSION, 7);
    machine_settle(m);
}

static void off(void)
{
    static const char *const rows[] = { "", ",check=off" };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct machine *m = machine_start(1, rows[i], "");
        g_autofree char *mode = property(m, "check");
        struct md md;

        T_CONTEXT("'%s'", rows[i]);
        T_TRUE(strstr(mode, "\"off\""));
        driver_start(&md, &m->f[0]);
        write_read_only(m);
        T_EQ_U64(reports(m), 0);
        T_EQ_U64(state_of(m), SG_STATUS_READY);
        machine_stop(m);
    }
}

/* The access is a qtest's and no processor's: the report has neither. */
static void warn(void)
{
    struct machine *m = machine_start(1, ",check=warn", "");
    g_autofree char *all = NULL;
    struct md md;

    driver_start(&md, &m->f[0]);
    T_EQ_U64(reports(m), 0);
    write_read_only(m);
    expect_report(m, 1,
                  "\"number\": 1, \"rule\": \"REG-UNKNOWN\", \"section\": "
                  "\"registers.md#access-rules\", \"strict\": \"fatal\", \"object\": "
                  "\"adapter\"");
    write_read_only(m);
    expect_report(m, 1, "\"count\": 2");
    all = property(m, "check-reports");
    T_FALSE(strstr(all, "\"pc\""));
    T_EQ_U64(state_of(m), SG_STATUS_READY);
    T_EQ_U64(md_cmd_id(&md, SG_ADMIN_NOP, 0), SG_OK);
    machine_stop(m);
}

static void strict_register(void)
{
    struct machine *m = machine_start(1, ",check=strict", "");
    struct md md;

    driver_start(&md, &m->f[0]);
    T_EQ_U64(md_cmd_id(&md, SG_ADMIN_NOP, 0), SG_OK);
    write_read_only(m);
    expect_report(m, 1, "REG-UNKNOWN");
    T_TRUE(state_of(m) & SG_STATUS_FATAL);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_FATAL), SG_FATAL_CHECK);
    machine_stop(m);
}

/* "refused" and "advice": no more than without a checker. */
static void strict_refused(void)
{
    struct machine *m = machine_start(1, ",check=strict", "");
    struct qtest_side a;

    side_start(&a, &m->f[0]);
    T_EQ_U64(reports(m), 0);
    function_doorbell(&m->f[0], 0, SG_DB_SQ, a.qp.qpn | (uint64_t)1000 << 32);
    side_event(&a, SG_EV_QP_FATAL, 100);
    T_EQ_U64(md_qp_state(&a.qp), SG_QP_ERROR);
    expect_report(m, 1, "\"rule\": \"RING-BEYOND\"");
    T_EQ_U64(state_of(m), SG_STATUS_READY);
    function_writel(&m->f[0], SG_REG_CTRL, SG_CTRL_RESET);
    expect_report(m, 2, "\"rule\": \"RESET-LEFT\"");
    driver_start(&a.md, &m->f[0]);
    T_EQ_U64(state_of(m), SG_STATUS_READY);
    machine_stop(m);
}

/* An index that is not in the ring: without a checker it is ignored. */
static void arm_with_bad_index(const char *extra, bool ends)
{
    struct machine *m = machine_start(1, extra, "");
    struct qtest_side a;
    struct sg_eqe e;

    T_CONTEXT("%s", extra);
    side_start(&a, &m->f[0]);
    function_doorbell(&m->f[0], 0, SG_DB_CQ_ARM, a.cq.cqn | (uint64_t)9 << 32);
    machine_settle(m);
    if (ends) {
        e = side_event(&a, SG_EV_CQ_ERROR, 100);
        T_EQ_U64(sg_get_le32(&e.id), a.cq.cqn);
    } else {
        T_FALSE(md_next_async(&a.md, &e));
    }
    expect_report(m, 1, "\"rule\": \"CQ-ARM\"");
    T_EQ_U64(state_of(m), SG_STATUS_READY);
    machine_stop(m);
}

static void strict_object(void)
{
    arm_with_bad_index(",check=warn", false);
    arm_with_bad_index(",check=strict", true);
}

/* Another doorbell page belongs to a process, which must not end the adapter of all others. */
static void strict_process(void)
{
    struct machine *m = machine_start(1, ",check=strict", "");
    struct md md;

    driver_start(&md, &m->f[0]);
    function_doorbell(&m->f[0], 1, SG_DB_SQ, 77);
    machine_settle(m);
    expect_report(m, 1, "\"rule\": \"DB-UNKNOWN\"");
    T_EQ_U64(state_of(m), SG_STATUS_READY);
    function_doorbell(&m->f[0], 0, SG_DB_SQ, 78);
    machine_settle(m);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_FATAL), SG_FATAL_CHECK);
    machine_stop(m);
}

/* A reset ends what a strict checker has ended; reports stay, and numbers go on. */
static void reset(void)
{
    struct machine *m = machine_start(1, ",check=strict", "");
    struct md md;

    driver_start(&md, &m->f[0]);
    write_read_only(m);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_FATAL), SG_FATAL_CHECK);
    driver_start(&md, &m->f[0]);
    T_EQ_U64(state_of(m), SG_STATUS_READY);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_FATAL), SG_FATAL_NONE);
    T_EQ_U64(md_cmd_id(&md, SG_ADMIN_NOP, 0), SG_OK);
    T_EQ_U64(reports(m), 1);
    function_writel(&m->f[0], SG_REG_TEST_IRQ, 60);
    expect_report(m, 2, "\"number\": 2, \"rule\": \"REG-VECTOR\"");
    machine_stop(m);
}

/* Resets that the driver did not ask for are not its mistakes, nor are doorbells behind them. */
static void foreign_resets(void)
{
    struct machine *m = machine_start(1, ",check=strict", "");
    struct qtest_side a;

    side_start(&a, &m->f[0]);
    function_flr(&m->f[0]);
    function_doorbell(&m->f[0], 0, SG_DB_SQ, a.qp.qpn | (uint64_t)1 << 32);
    T_EQ_U64(reports(m), 0);
    side_start(&a, &m->f[0]);
    machine_reset(m);
    function_doorbell(&m->f[0], 0, SG_DB_SQ, a.qp.qpn | (uint64_t)1 << 32);
    T_EQ_U64(reports(m), 0);
    machine_stop(m);
}

/* The checker is the machine's and not part of the state; neither are its reports. */
static void migration(void)
{
    g_autofree char *uri = g_strdup_printf("unix:/tmp/sg-check-%d", getpid());
    struct machine *m = machine_start(1, ",check=warn", ""), *to;
    g_autofree char *mode = NULL;
    struct qtest_side a;

    to = machine_start_beside(1, ",check=strict", "-incoming defer ");
    side_start(&a, &m->f[0]);
    write_read_only(m);
    T_EQ_U64(reports(m), 1);
    qtest_qmp_ok(to->q, "{\"execute\": \"migrate-incoming\", \"arguments\": {\"uri\": \"%s\"}}",
                 uri);
    qtest_qmp_ok(m->q, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"%s\"}}", uri);
    qtest_qmp_event(to->q, "RESUME");
    unlink(uri + strlen("unix:"));
    T_EQ_U64(reports(to), 0);
    mode = property(to, "check");
    T_TRUE(strstr(mode, "strict"));
    /* The driver learns of the move later than its queues end. */
    function_doorbell(&to->f[0], 0, SG_DB_SQ, a.qp.qpn | (uint64_t)1 << 32);
    T_EQ_U64(reports(to), 0);
    write_read_only(to);
    expect_report(to, 1, "\"number\": 1, \"rule\": \"REG-UNKNOWN\"");
    machine_stop(m);
    machine_stop(to);
}

static const struct t_case cases[] = {
    { "off: the default; nothing is reported", off },
    { "warn: a mistake is reported and changes nothing", warn },
    { "strict: a wrong register access ends the adapter", strict_register },
    { "strict: what is refused anyway, and advice, end no more", strict_refused },
    { "strict: a completion queue ends, and the adapter goes on", strict_object },
    { "strict: a process does not end the adapter", strict_process },
    { "reset: the adapter starts again, the reports stay", reset },
    { "reset: function level reset and the machine's are no mistakes", foreign_resets },
    { "migration: reports stay behind", migration },
};

T_MAIN(cases)
