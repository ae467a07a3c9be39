/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the rows of a table of faults; see fault_table.h. */
#include <string.h>

#include "tap.h"
#include "fault_table.h"

static unsigned octets(const char *hex)
{
    unsigned digits = 0;

    for (; *hex; hex++) {
        digits += *hex != ' ';
    }
    return digits / 2;
}

void fault_start(uint8_t speaks)
{
    rig_passive_with(speaks & ~SPEAKS_7306, speaks & SPEAKS_7306);
    rig->recvs = 4;
}

/* After the fault, valid messages and a Write have no effect any more. */
static void say_more(void)
{
    rig_say_fpdu("4150 00000000 00000001 00000002 00000000 "
                 "00000100 00000008 0000000000000000 0123456789abcdef");
    rig_say_fpdu("414a 00000000 00000001 00000002 00000000 00000000 00000001 00000100 "
                 "0000000000000020 0000000000000005 0000000000000000 0000000000000000 "
                 "0000000000000000");
    rig_say_fpdu("4148 00000000 00000000 00000001 00000000 0102030405060708");
    rig_say_fpdu("c140 00000100 0000000000000000 ffffffff");
}

static void run_row(const struct fault_row *r)
{
    static uint8_t before[RIG_MEM], buffers[sizeof(rig->recv_buf)];
    const char *log, *c = r->lec;
    char text[512], end[80];

    T_CONTEXT("%s", r->what);
    fault_start(r->speaks);
    memcpy(before, rig->mem, sizeof(before));
    memcpy(buffers, rig->recv_buf, sizeof(buffers));
    snprintf(text, sizeof(text), "%s %s", r->header, r->body);
    rig_say_fpdu(text);
    snprintf(text, sizeof(text), "4147 00000000 00000002 00000001 00000000 %c%c%c%cc000 %04x %s",
             c[0], c[2], c[4], c[5], octets(r->header) + octets(r->body), r->header);
    T_SHOWS(r->shows) {
        rig_expect_fpdu(text);
        log = rig_log();
        snprintf(end, sizeof(end), "terminated(sent,%s) disconnected(TERMINATED)", r->lec);
        T_TRUE(strlen(log) >= strlen(end));
        T_EQ_STR(log + strlen(log) - strlen(end), end);
        T_EQ_INT(strstr(log, "mpe(") || strstr(log, "atomic("), r->asked);
        T_NULL(strstr(log, "answered("));
        T_NULL(strstr(log, "imm("));
        T_NULL(strstr(log, "done("));

        say_more();
        rig_expect_nothing();
        T_EQ_STR(rig_log(), "");
        T_EQ_MEM(rig->mem, before, sizeof(before));
        T_EQ_MEM(rig->recv_buf, buffers, sizeof(buffers));
    }
    T_EQ_U64(sg_engine_stats(rig->e)->tx_terminates, 1);
    rig_stop();
}

void fault_run(const struct fault_row *rows, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        run_row(&rows[i]);
    }
}
