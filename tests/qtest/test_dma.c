/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The adapter's DMA reaches memory only.  If it reached configuration space or registers, a guest
 * could reset the function, or remove it from its slot, in the middle of a command.
 */
#include <glib.h>
#include <linux/pci_regs.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

static const uint64_t config_window = 0xb0000000; /* as machine.c sets it up */

static uint64_t config_page(const struct function *f)
{
    return config_window + ((uint64_t)f->bus << 20);
}

static enum sg_status query_caps_to(struct qtest_side *s, uint64_t addr, uint32_t len)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_CAPS };

    sg_put_le64(&c.out_addr, addr);
    sg_put_le32(&c.out_len, len);
    return md_cmd(&s->md, &c, sizeof(c), NULL);
}

/* The capabilities' third word, 0x8000, would be a function level reset. */
static void reset_by_own_dma(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    struct qtest_side s;

    side_start(&s, f);
    T_EQ_U64(query_caps_to(&s, config_page(f) + f->cap_express, 10), SG_EFAULT);
    T_TRUE(function_readl(f, SG_REG_STATUS) & SG_STATUS_READY);
    T_EQ_U64(query_caps_to(&s, s.buffer, 10), SG_OK);
    T_EQ_U64(sg_get_le32(side_ptr(&s, 8)), 0x8000);
    machine_stop(m);
}

/* Registers of our own and of a second adapter. */
static void registers(void)
{
    struct machine *m = machine_start(2, "", "");
    struct qtest_side a, b;

    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    T_EQ_U64(query_caps_to(&a, m->f[0].regs + SG_REG_CTRL, 8), SG_EFAULT);
    T_EQ_U64(query_caps_to(&a, m->f[1].regs + SG_REG_CTRL, 8), SG_EFAULT);
    T_EQ_U64(query_caps_to(&a, m->f[1].doorbells, 8), SG_EFAULT);
    T_EQ_U64(query_caps_to(&a, m->f[1].msix_table, 8), SG_EFAULT);
    sides_connect(&a, &b, 4000);
    machine_stop(m);
}

/* DMA does not read from there either, neither little (copied) nor much (mapped). */
static void send_from_configuration_space(void)
{
    static const uint32_t sizes[] = { 8, 4096 };
    struct machine *m;
    struct qtest_side a, b;
    struct sg_cqe c;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint64_t addr;
        uint32_t stag;

        T_CONTEXT("%u octets", sizes[i]);
        m = machine_start(2, "", "");
        side_start(&a, &m->f[0]);
        side_start(&b, &m->f[1]);
        addr = config_page(&m->f[0]);
        stag = md_reg_mr(&a.md, a.pd, addr, 4096, 0);
        sides_connect(&a, &b, 4000);
        md_post_send(&a.qp, &(struct md_wr){
                                .opcode = SG_WR_WRITE,
                                .addr = addr,
                                .len = sizes[i],
                                .lkey = stag,
                                .raddr = b.buffer,
                                .rkey = b.stag,
                            });
        c = side_completion(&a, 100);
        T_EQ_U64(c.status, SG_WC_LOC_PROT_ERR);
        T_EQ_U64(sg_get_le64(side_ptr(&b, 0)), 0);
        machine_stop(m);
    }
}

static const struct t_case cases[] = {
    { "a command's answer does not reset the function", reset_by_own_dma },
    { "a command's answer does not reach registers", registers },
    { "a Write does not read configuration space", send_from_configuration_space },
};

T_MAIN(cases)
