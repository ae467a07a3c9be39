/* SPDX-License-Identifier: GPL-2.0-or-later */
/* firmware/rom/lines.h: the lines of the expansion ROM for an adapter in each of its states. */
#include <glib.h>

#include "lines.h"
#include "staghorn/regs.h"
#include "tap.h"

enum { HERE = 0x1000, BDF = 0x2b1f, LINE_MAX_COLUMNS = 79 };

static const u32 healthy[16] = {
    [SG_REG_MAGIC / 4] = SG_MAGIC,    [SG_REG_STATUS / 4] = SG_STATUS_READY | SG_STATUS_LINK_UP,
    [SG_REG_MAC_LO / 4] = 0x1d16fe02, [SG_REG_MAC_HI / 4] = 0x45f0,
    [SG_REG_LINK_SPEED / 4] = 10000,  [SG_REG_FW_VERSION / 4] = 0x010aff,
};

static u32 regs[16];
static GString *said;

u32 reg_read(reg_place at, u32 reg)
{
    T_EQ_U64(at, HERE);
    T_TRUE(reg % 4 == 0 && reg < sizeof(regs));
    return regs[reg / 4];
}

void put_char(char c)
{
    g_string_append_c(said, c);
}

#define HEAD "Staghorn iWARP RDMA adapter at 2b:03.7"
#define FIRST HEAD ", firmware 1.10.255\r\n"
#define UP "  MAC 02:fe:16:1d:f0:45, link up, 10000 Mbit/s\r\n"

static void says(reg_place at, const char *wanted)
{
    said = g_string_new("");
    say_adapter(at, BDF);
    T_EQ_STR(said->str, wanted);
    for (char **lines = g_strsplit(said->str, "\r\n", -1), **line = lines;; line++) {
        if (!*line) {
            g_strfreev(lines);
            break;
        }
        T_TRUE(strlen(*line) <= LINE_MAX_COLUMNS);
    }
    g_string_free(said, TRUE);
}

static void in_order(void)
{
    memcpy(regs, healthy, sizeof(regs));
    says(HERE, FIRST UP);
}

static void no_link(void)
{
    memcpy(regs, healthy, sizeof(regs));
    regs[SG_REG_STATUS / 4] &= ~SG_STATUS_LINK_UP;
    says(HERE, FIRST "  MAC 02:fe:16:1d:f0:45, link down\r\n");
}

static void fatal(void)
{
    memcpy(regs, healthy, sizeof(regs));
    regs[SG_REG_STATUS / 4] |= SG_STATUS_FATAL;
    regs[SG_REG_FATAL / 4] = SG_FATAL_DMA;
    says(HERE, FIRST UP "  fatal error 2: the adapter does nothing until it is reset\r\n");
}

static void power_cut(void)
{
    memcpy(regs, healthy, sizeof(regs));
    regs[SG_REG_POWER_CUTS / 4] = 10;
    says(HERE, FIRST UP "  power cut 10: persistent memory kept 0 lines that were under way, "
                        "lost 0\r\n");
    regs[SG_REG_POWER_KEPT / 4] = 409;
    regs[SG_REG_POWER_LOST / 4] = 90;
    says(HERE, FIRST UP "  power cut 10: persistent memory kept 409 lines that were under way, "
                        "lost 90\r\n");
}

static void large_numbers(void)
{
    memcpy(regs, healthy, sizeof(regs));
    regs[SG_REG_LINK_SPEED / 4] = UINT32_MAX;
    says(HERE, FIRST "  MAC 02:fe:16:1d:f0:45, link up, 4294967295 Mbit/s\r\n");
}

static void no_answer(void)
{
    says(0, HEAD ": its registers do not answer\r\n");
    memset(regs, 0xff, sizeof(regs));
    says(HERE, HEAD ": its registers do not answer\r\n");
}

static const struct t_case cases[] = {
    { "an adapter in order", in_order },
    { "no link", no_link },
    { "fatal", fatal },
    { "after a power cut", power_cut },
    { "large numbers", large_numbers },
    { "registers that do not answer", no_answer },
};

T_MAIN(cases)
