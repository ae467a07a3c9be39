/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the lines about the adapter and the losses of the last power cut.
 */
#include "lines.h"
#include "staghorn/regs.h"

static void put_text(const char *text)
{
    while (*text) {
        put_char(*text++);
    }
}

static void put_hex(u32 value, int digits)
{
    while (digits--) {
        u32 digit = value >> (4 * digits) & 15;

        put_char(digit < 10 ? '0' + digit : 'a' + digit - 10);
    }
}

static void put_number(u32 value)
{
    u32 unit = 1;

    while (value / unit > 9) {
        unit *= 10;
    }
    for (; unit; unit /= 10) {
        put_char('0' + value / unit % 10);
    }
}

static void put_end(void)
{
    put_text("\r\n");
}

static void put_mac(reg_place at)
{
    u32 lo = reg_read(at, SG_REG_MAC_LO), hi = reg_read(at, SG_REG_MAC_HI);

    for (int i = 0; i < 6; i++) {
        put_hex(i < 4 ? lo >> (8 * i) : hi >> (8 * (i - 4)), 2);
        if (i < 5) {
            put_char(':');
        }
    }
}

static void put_version(u32 word)
{
    put_number(word >> 16 & 255);
    put_char('.');
    put_number(word >> 8 & 255);
    put_char('.');
    put_number(word & 255);
}

static void put_state(reg_place at)
{
    u32 status = reg_read(at, SG_REG_STATUS);

    put_text("  MAC ");
    put_mac(at);
    if (status & SG_STATUS_LINK_UP) {
        put_text(", link up, ");
        put_number(reg_read(at, SG_REG_LINK_SPEED));
        put_text(" Mbit/s");
    } else {
        put_text(", link down");
    }
    put_end();
    if (status & SG_STATUS_FATAL) {
        put_text("  fatal error ");
        put_number(reg_read(at, SG_REG_FATAL));
        put_text(": the adapter does nothing until it is reset");
        put_end();
    }
}

static void put_power_cut(reg_place at)
{
    u32 cuts = reg_read(at, SG_REG_POWER_CUTS);

    if (!cuts) {
        return;
    }
    put_text("  power cut ");
    put_number(cuts);
    put_text(": persistent memory kept ");
    put_number(reg_read(at, SG_REG_POWER_KEPT));
    put_text(" lines that were under way, lost ");
    put_number(reg_read(at, SG_REG_POWER_LOST));
    put_end();
}

void say_adapter(reg_place at, u32 bdf)
{
    put_text("Staghorn iWARP RDMA adapter at ");
    put_hex(bdf >> 8 & 255, 2);
    put_char(':');
    put_hex(bdf >> 3 & 31, 2);
    put_char('.');
    put_hex(bdf & 7, 1);
    if (!at || reg_read(at, SG_REG_MAGIC) != SG_MAGIC) {
        put_text(": its registers do not answer");
        put_end();
        return;
    }
    put_text(", firmware ");
    put_version(reg_read(at, SG_REG_FW_VERSION));
    put_end();
    put_state(at);
    put_power_cut(at);
}
