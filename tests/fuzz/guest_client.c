/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tests/lib/qtest_client.h with QEMU in the same process, so that libFuzzer sees what an input
 * reaches, and runs some hundred inputs a second.  There is one QEMU, until the process ends.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "inproc.h"
#include "qtest_client.h"
#include "tap.h"

struct qtest {
    bool started;
};

static struct qtest only;

struct qtest *qtest_start_beside(const char *args)
{
    const char *firmware = getenv("SG_FIRMWARE");
    GError *error = NULL;
    char *line, **argv;

    T_FALSE(only.started);
    line = g_strdup_printf("fuzz-guest -accel qtest -machine q35 -nodefaults -display none "
                           "-no-user-config -D /dev/null %s %s %s",
                           firmware && *firmware ? "-L" : "", firmware ? firmware : "", args);
    if (!g_shell_parse_argv(line, NULL, &argv, &error)) {
        T_FAIL("%s: %s", args, error->message);
    }
    g_free(line);
    sg_inproc_start((int)g_strv_length(argv), argv);
    only.started = true;
    return &only;
}

struct qtest *qtest_start(const char *args)
{
    return qtest_start_beside(args);
}

void qtest_end_leftovers(void)
{
}
void qtest_stop(struct qtest *q)
{
    (void)q;
}
void qtest_kill(struct qtest *q)
{
    (void)q;
}
void qtest_stderr_drop(struct qtest *q)
{
    (void)q;
}

char *qtest_stderr(struct qtest *q)
{
    (void)q;
    return g_strdup("");
}

/* ---- bus; the machine is little-endian, and so is this one ---- */

static uint64_t read_number(uint64_t addr, size_t len)
{
    uint64_t v = 0;

    sg_inproc_read(addr, &v, len);
    return v;
}

uint8_t qtest_readb(struct qtest *q, uint64_t addr)
{
    (void)q;
    return read_number(addr, 1);
}
uint16_t qtest_readw(struct qtest *q, uint64_t addr)
{
    (void)q;
    return read_number(addr, 2);
}
uint32_t qtest_readl(struct qtest *q, uint64_t addr)
{
    (void)q;
    return read_number(addr, 4);
}
uint64_t qtest_readq(struct qtest *q, uint64_t addr)
{
    (void)q;
    return read_number(addr, 8);
}

void qtest_writeb(struct qtest *q, uint64_t addr, uint8_t value)
{
    (void)q;
    sg_inproc_write(addr, &value, 1);
}

void qtest_writew(struct qtest *q, uint64_t addr, uint16_t value)
{
    (void)q;
    sg_inproc_write(addr, &value, 2);
}

void qtest_writel(struct qtest *q, uint64_t addr, uint32_t value)
{
    (void)q;
    sg_inproc_write(addr, &value, 4);
}

void qtest_writeq(struct qtest *q, uint64_t addr, uint64_t value)
{
    (void)q;
    sg_inproc_write(addr, &value, 8);
}

void qtest_outl(struct qtest *q, uint16_t port, uint32_t value)
{
    (void)q;
    sg_inproc_out(port, value);
}

uint32_t qtest_inl(struct qtest *q, uint16_t port)
{
    (void)q;
    return sg_inproc_in(port);
}

bool qtest_round(struct qtest *q)
{
    (void)q;
    return sg_inproc_round();
}

uint64_t qtest_clock_step(struct qtest *q, uint64_t ns)
{
    (void)q;
    return sg_inproc_clock_step(ns);
}

/* ---- QMP ---- */

static char *qmp_va(const char *fmt, va_list ap)
{
    char *text = g_strdup_vprintf(fmt, ap), *answer;

    if (strstr(text, "\"system_reset\"")) {
        sg_inproc_reset();
        answer = g_strdup("{\"return\": {}}");
    } else {
        answer = sg_inproc_qmp(text);
    }
    g_free(text);
    return answer;
}

char *qtest_qmp(struct qtest *q, const char *fmt, ...)
{
    char *answer;
    va_list ap;

    (void)q;
    va_start(ap, fmt);
    answer = qmp_va(fmt, ap);
    va_end(ap);
    return answer;
}

void qtest_qmp_ok(struct qtest *q, const char *fmt, ...)
{
    char *answer;
    va_list ap;

    (void)q;
    va_start(ap, fmt);
    answer = qmp_va(fmt, ap);
    va_end(ap);
    if (strstr(answer, "\"error\":")) {
        T_FAIL("QEMU: %s", answer);
    }
    g_free(answer);
}

/* Does not wait: a command has done its work when it returns, except for what RCU defers. */
void qtest_qmp_event(struct qtest *q, const char *name)
{
    (void)q;
    (void)name;
    sg_inproc_drain();
}
