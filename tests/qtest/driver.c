/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "driver.h"

#include "base/bytes.h"
#include "tap.h"

/* ---- the mini driver's operations ---- */

static uint64_t reg_read(void *opaque, uint32_t offset, unsigned size)
{
    return size == 8 ? function_readq(opaque, offset) : function_readl(opaque, offset);
}

static void reg_write(void *opaque, uint32_t offset, uint64_t value, unsigned size)
{
    if (size == 8) {
        function_writeq(opaque, offset, value);
    } else {
        function_writel(opaque, offset, value);
    }
}

static void doorbell(void *opaque, uint32_t page, uint32_t offset, uint64_t value)
{
    function_doorbell(opaque, page, offset, value);
}

static uint64_t alloc(void *opaque, size_t len, size_t align)
{
    return machine_alloc(((struct function *)opaque)->m, len, align);
}

static void *ptr(void *opaque, uint64_t addr)
{
    return machine_ptr(((struct function *)opaque)->m, addr);
}

static bool settle(void *opaque)
{
    machine_settle(((struct function *)opaque)->m);
    return false;
}

static const struct md_ops ops = {
    .reg_read = reg_read,
    .reg_write = reg_write,
    .doorbell = doorbell,
    .alloc = alloc,
    .ptr = ptr,
    .settle = settle,
};

void driver_attach(struct md *md, struct function *f)
{
    md_attach(md, &ops, f);
}

void driver_start(struct md *md, struct function *f)
{
    driver_attach(md, f);
    md_write(md, SG_REG_CTRL, SG_CTRL_RESET);
    md_enable(md);
}

/* ---- addresses ---- */

struct sg_sockaddr driver_addr(unsigned i, uint16_t port)
{
    struct sg_sockaddr sa = { .family = 4, .ip = { 10, 0, 0, i + 1 } };

    sg_put_be16(&sa.port, port);
    return sa;
}

void driver_set_addr(struct md *md, unsigned i)
{
    struct sg_cmd_set_addr c = {
        .hdr.opcode = SG_ADMIN_SET_ADDR,
        .op = SG_ADDR_ADD,
        .prefix_len = 24,
        .addr = driver_addr(i, 0),
    };

    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_OK);
}

/* ---- sides ---- */

void side_start(struct qtest_side *s, struct function *f)
{
    uint32_t access = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE;

    memset(s, 0, sizeof(*s));
    s->f = f;
    driver_start(&s->md, f);
    driver_set_addr(&s->md, f->number);
    s->pd = md_create_pd(&s->md);
    s->buffer = machine_alloc(f->m, SIDE_BUFFER, SG_PAGE_SIZE);
    s->stag = md_reg_mr(&s->md, s->pd, s->buffer, SIDE_BUFFER, access);
    md_create_cq(&s->md, &s->cq, 64);
    md_create_qp(&s->md, &s->qp,
                 &(struct md_qp_params){
                     .pd = s->pd,
                     .scq = &s->cq,
                     .rcq = &s->cq,
                 });
}

uint8_t *side_ptr(struct qtest_side *s, uint64_t offset)
{
    return machine_ptr(s->f->m, s->buffer + offset);
}

struct sg_eqe side_event(struct qtest_side *s, enum sg_event event, unsigned ms)
{
    struct sg_eqe e;

    while (!md_next_async(&s->md, &e)) {
        if (!ms--) {
            T_FAIL("adapter %u: event 0x%02x does not come", s->f->number, event);
        }
        machine_pass(s->f->m, 1);
    }
    if (e.event != event) {
        T_FAIL("adapter %u: event 0x%02x (status %u) instead of 0x%02x", s->f->number, e.event,
               e.cm_status, event);
    }
    return e;
}

bool side_has_completion(struct qtest_side *s, struct sg_cqe *out, unsigned ms)
{
    while (!md_poll(&s->cq, out)) {
        if (!ms--) {
            return false;
        }
        machine_pass(s->f->m, 1);
    }
    return true;
}

struct sg_cqe side_completion(struct qtest_side *s, unsigned ms)
{
    struct sg_cqe e;

    if (!side_has_completion(s, &e, ms)) {
        T_FAIL("adapter %u: no completion comes", s->f->number);
    }
    return e;
}

void sides_connect(struct qtest_side *a, struct qtest_side *b, uint16_t port)
{
    struct sg_cmd_listen listen = {
        .hdr.opcode = SG_ADMIN_LISTEN,
        .local = driver_addr(b->f->number, port),
    };
    struct sg_cmd_connect connect = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(a->f->number, 0),
        .remote = driver_addr(b->f->number, port),
    };
    struct sg_cmd_connect accept = { .hdr.opcode = SG_ADMIN_ACCEPT };
    struct sg_admin_rsp rsp;
    struct sg_eqe e;

    sg_put_le32(&listen.backlog, 4);
    T_EQ_U64(md_cmd(&b->md, &listen, sizeof(listen), NULL), SG_OK);
    sg_put_le32(&connect.qpn, a->qp.qpn);
    sg_put_le16(&connect.ird, 4);
    sg_put_le16(&connect.ord, 4);
    T_EQ_U64(md_cmd(&a->md, &connect, sizeof(connect), &rsp), SG_OK);
    a->conn = sg_get_le32(&rsp.id);
    e = side_event(b, SG_EV_CM_REQUEST, 100);
    b->conn = sg_get_le32(&e.conn);
    sg_put_le32(&accept.qpn, b->qp.qpn);
    sg_put_le32(&accept.conn, b->conn);
    sg_put_le16(&accept.ird, 4);
    sg_put_le16(&accept.ord, 4);
    T_EQ_U64(md_cmd(&b->md, &accept, sizeof(accept), NULL), SG_OK);
    e = side_event(a, SG_EV_CM_REPLY, 100);
    T_EQ_U64(e.cm_status, SG_CM_OK);
    T_EQ_U64(sg_get_le32(&e.id), a->qp.qpn);
    e = side_event(b, SG_EV_CM_ESTABLISHED, 100);
    T_EQ_U64(e.cm_status, SG_CM_OK);
    T_EQ_U64(md_qp_state(&a->qp), SG_QP_RTS);
    T_EQ_U64(md_qp_state(&b->qp), SG_QP_RTS);
}
