/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * See guest_command.h.  Most commands are those of a driver, so that objects are created; their
 * page lists, and the fields that the input changes, are hostile.
 */
#include <linux/pci_regs.h>

#include "guest_command.h"
#include "staghorn/flash.h"
#include "tap.h"

/* ---- addresses and numbers ---- */

uint64_t guest_register(void)
{
    struct function *f = &w.m->f[fuzz_below(&w.in, 2)];
    unsigned n = f->number;

    switch (fuzz_below(&w.in, 12)) {
    case 0:
        return f->regs + SG_REG_CTRL;
    case 1:
        return f->regs + SG_REG_ADMIN_DB;
    case 2:
        return f->regs + SG_REG_TEST_IRQ;
    case 3:
        return f->regs + SG_REG_EQ_DB + 4 * fuzz_below(&w.in, 4);
    case 4:
        return f->doorbells + 8 * fuzz_below(&w.in, 5);
    case 5:
        return f->msix_table + 4 * fuzz_below(&w.in, 32);
    case 6:
        return world_config(n, PCI_COMMAND);
    case 7:
        return world_config(n, f->cap_msix + PCI_MSIX_FLAGS);
    case 8:
        return world_config(n, f->cap_express + PCI_EXP_DEVCTL);
    case 9:
        return world_config(n, PCI_BASE_ADDRESS_0 + 4 * fuzz_below(&w.in, 6));
    case 10:
        return world_port_config(n, port_find_cap(f, PCI_CAP_ID_EXP) + PCI_EXP_SLTCTL);
    default:
        return world_port_config(n, PCI_BRIDGE_CONTROL);
    }
}

uint64_t guest_memory(void)
{
    return w.first + fuzz_u32(&w.in) % (uint32_t)(w.m->alloc_next - w.first);
}

uint64_t guest_place(void)
{
    uint64_t strange[MACHINE_PLACES];

    switch (fuzz_below(&w.in, 8)) {
    case 0:
        return guest_memory();
    case 1:
    case 2:
        return guest_memory() & ~(uint64_t)(SG_PAGE_SIZE - 1);
    case 3:
        return WORLD_PM + fuzz_u32(&w.in) % (WORLD_PM_MIB << 20);
    case 4:
        machine_strange_places(w.m, strange);
        return strange[fuzz_below(&w.in, MACHINE_PLACES)] + fuzz_u8(&w.in);
    case 5:
        return guest_register();
    default:
        return fuzz_edgy(&w.in);
    }
}

uint64_t guest_value(void)
{
    return fuzz_below(&w.in, 3) ? fuzz_u8(&w.in) & 15 : guest_place();
}

/* ---- commands ---- */

union guest_any_command {
    uint8_t octets[SG_ADMIN_CMD_SIZE];
    struct sg_admin_hdr hdr;
    struct sg_cmd_query query;
    struct sg_cmd_create_eq eq;
    struct sg_cmd_create_cq cq;
    struct sg_cmd_resize_cq resize_cq;
    struct sg_cmd_create_qp qp;
    struct sg_cmd_modify_qp modify;
    struct sg_cmd_create_srq srq;
    struct sg_cmd_reg_mr mr;
    struct sg_cmd_alloc_mw mw;
    struct sg_cmd_map_pages map;
    struct sg_cmd_connect connect;
    struct sg_cmd_listen listen;
    struct sg_cmd_flash flash;
    struct sg_cmd_id id;
};

uint64_t guest_page_list(void)
{
    uint64_t at = machine_alloc(w.m, GUEST_LIST * 8, SG_PAGE_SIZE);
    unsigned i, n = fuzz_below(&w.in, GUEST_LIST);

    for (i = 0; i < n; i++) {
        uint64_t page = fuzz_rarely(&w.in, 8) ? guest_place() : guest_memory() & ~0xfffull;

        sg_put_le64((uint8_t *)machine_ptr(w.m, at) + 8 * i, page);
    }
    return at;
}

static void put_list(struct sg_page_list *l)
{
    if (fuzz_below(&w.in, 3) == 0) {
        sg_put_le64(&l->addr, guest_page_list());
        l->levels = 1 + fuzz_below(&w.in, 2);
    }
}

static void query_command(union guest_any_command *c)
{
    static const uint8_t opcodes[] = { SG_ADMIN_QUERY_CAPS,     SG_ADMIN_QUERY_STATS,
                                       SG_ADMIN_QUERY_QP_STATS, SG_ADMIN_QUERY_MR_STATS,
                                       SG_ADMIN_CM_DATA,        SG_ADMIN_FLASH_INFO };

    c->hdr.opcode = opcodes[fuzz_below(&w.in, sizeof(opcodes))];
    sg_put_le64(&c->query.out_addr, guest_place());
    sg_put_le32(&c->query.out_len, fuzz_u16(&w.in));
    sg_put_le32(&c->query.id, fuzz_below(&w.in, 2) ? w.a.qp.qpn : w.a.stag);
}

static void flash_command(union guest_any_command *c)
{
    uint64_t at = machine_alloc(w.m, SG_FLASH_CHUNK_MAX, SG_PAGE_SIZE);
    size_t n = fuzz_u8(&w.in);

    memcpy(machine_ptr(w.m, at), fuzz_bytes(&w.in, &n), n);
    w.flash_touched = true;
    c->hdr.opcode = SG_ADMIN_FLASH_READ + fuzz_below(&w.in, 3);
    sg_put_le64(&c->flash.addr, fuzz_rarely(&w.in, 8) ? guest_place() : at);
    sg_put_le32(&c->flash.len, fuzz_u16(&w.in));
    sg_put_le32(&c->flash.offset, fuzz_below(&w.in, 2) ? 0 : fuzz_u16(&w.in));
}

static void region_command(union guest_any_command *c)
{
    uint64_t at = fuzz_below(&w.in, 2) ? w.a.buffer : guest_place();

    c->mr = md_reg_mr_cmd(w.a.pd, at, 1 + fuzz_u16(&w.in), fuzz_u16(&w.in) & 0x1ff);
    put_list(&c->mr.pages);
    switch (fuzz_below(&w.in, 4)) {
    case 0:
        c->mr.flags = SG_MR_ODP;
        sg_put_le64(&c->mr.pages.addr, 0);
        break;
    case 1:
        c->mr.hash_alg = fuzz_below(&w.in, SG_HASH_COUNT + 1);
        c->mr.mem_type = fuzz_u8(&w.in) & 3;
        break;
    }
}

static void queue_command(union guest_any_command *c)
{
    switch (fuzz_below(&w.in, 5)) {
    case 0:
        c->cq = md_create_cq_cmd(&w.a.md, 2u << fuzz_below(&w.in, 8));
        put_list(&c->cq.pages);
        break;
    case 1: {
        struct sg_cmd_create_cq like = md_create_cq_cmd(&w.a.md, 2u << fuzz_below(&w.in, 8));

        c->hdr.opcode = SG_ADMIN_RESIZE_CQ;
        sg_put_le32(&c->resize_cq.cqn, w.a.cq.cqn);
        c->resize_cq.entries = like.entries;
        c->resize_cq.pages = like.pages;
        c->resize_cq.record = like.record;
        break;
    }
    case 2:
        c->srq = md_create_srq_cmd(&w.a.md, w.a.pd, 2u << fuzz_below(&w.in, 5));
        put_list(&c->srq.pages);
        break;
    case 3:
        c->hdr.opcode = SG_ADMIN_CREATE_EQ;
        sg_put_le64(&c->eq.base, guest_place());
        sg_put_le32(&c->eq.entries, 64);
        sg_put_le32(&c->eq.eqn, fuzz_below(&w.in, 4));
        sg_put_le32(&c->eq.vector, fuzz_below(&w.in, 4));
        break;
    default:
        c->qp = md_create_qp_cmd(&w.a.md, &(struct md_qp_params){
                                              .pd = w.a.pd,
                                              .scq = &w.a.cq,
                                              .rcq = &w.a.cq,
                                              .entries = 2u << fuzz_below(&w.in, 6),
                                              .stride = 64u << fuzz_below(&w.in, 5),
                                              .flags = fuzz_below(&w.in, 4),
                                              .access = WORLD_RIGHTS,
                                          });
        put_list(&c->qp.sq_pages);
    }
}

static void connection_command(union guest_any_command *c)
{
    c->hdr.opcode = fuzz_below(&w.in, 2) ? SG_ADMIN_CONNECT : SG_ADMIN_LISTEN;
    if (c->hdr.opcode == SG_ADMIN_LISTEN) {
        c->listen.local = driver_addr(0, fuzz_u16(&w.in));
        sg_put_le32(&c->listen.backlog, 1 + fuzz_u8(&w.in));
        return;
    }
    sg_put_le32(&c->connect.qpn, w.a.qp.qpn + fuzz_below(&w.in, 3));
    c->connect.local = driver_addr(0, 0);
    c->connect.remote = driver_addr(fuzz_below(&w.in, 3), WORLD_PORT + fuzz_below(&w.in, 2));
    sg_put_le64(&c->connect.pdata_addr, guest_place());
    sg_put_le16(&c->connect.pdata_len, fuzz_u16(&w.in) % 600);
    sg_put_le16(&c->connect.flags, fuzz_below(&w.in, 4));
}

static void object_command(union guest_any_command *c)
{
    switch (fuzz_below(&w.in, 4)) {
    case 0:
        c->hdr.opcode = SG_ADMIN_ALLOC_MW;
        c->mw.type = 1 + fuzz_below(&w.in, 2);
        sg_put_le32(&c->mw.pd, w.a.pd);
        break;
    case 1:
        c->hdr.opcode = SG_ADMIN_MAP_PAGES;
        sg_put_le32(&c->map.stag, w.paged);
        sg_put_le32(&c->map.op, 1 + fuzz_below(&w.in, 3));
        sg_put_le64(&c->map.first_page, fuzz_u8(&w.in) % 20);
        sg_put_le64(&c->map.count, fuzz_u8(&w.in) % 20);
        sg_put_le64(&c->map.list, guest_page_list());
        break;
    case 2:
        c->hdr.opcode = SG_ADMIN_MODIFY_QP;
        sg_put_le32(&c->modify.qpn, w.a.qp.qpn);
        sg_put_le32(&c->modify.mask, 1 + fuzz_below(&w.in, SG_QP_MOD_KNOWN));
        sg_put_le32(&c->modify.state, fuzz_below(&w.in, 6));
        break;
    default: /* mostly destroys something */
        c->hdr.opcode = fuzz_below(&w.in, SG_ADMIN_OPCODE_COUNT);
        sg_put_le32(&c->id.id, fuzz_below(&w.in, 4) ? fuzz_u8(&w.in) & 7 : w.a.stag);
    }
}

void guest_command(void)
{
    static void (*const kinds[])(union guest_any_command *) = { query_command,  flash_command,
                                                                region_command, region_command,
                                                                queue_command,  connection_command,
                                                                object_command, object_command };
    union guest_any_command c = { .octets = { 0 } };
    struct sg_admin_rsp rsp;
    unsigned i;

    kinds[fuzz_below(&w.in, SG_ARRAY_SIZE(kinds))](&c);
    for (i = fuzz_below(&w.in, 3); i > 1; i--) {
        sg_put_le32(c.octets + 4 * fuzz_below(&w.in, sizeof(c) / 4), (uint32_t)guest_value());
    }
    if (fuzz_rarely(&w.in, 16)) { /* the answer is not read, and nothing runs in between */
        md_submit(&w.a.md, &c, sizeof(c));
    } else if (world_cmd(&w.a, &c, sizeof(c), &rsp)) {
        if (c.hdr.opcode == SG_ADMIN_ALLOC_MW) {
            w.window = sg_get_le32(&rsp.id);
        } else if (c.hdr.opcode == SG_ADMIN_REG_MR && c.mr.flags & SG_MR_ODP) {
            w.paged = sg_get_le32(&rsp.id);
        }
    }
}
