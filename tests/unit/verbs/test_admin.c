/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admin commands: every field out of range, limits, references, the queue itself. */
#include "field_row.h"
#include "rig.h"
#include "tap.h"
#include "verbs/state/adapter_state.h"

static struct solo s;
static struct md_cq cq;
static uint32_t pd;

static void begin(const struct sg_adapter_config *config)
{
    solo_new(&s, config, true);
    pd = md_create_pd(&s.md);
    md_create_cq(&s.md, &cq, 16);
}

/* The unchanged command works; with each row it fails and has no effect. */
static void try_fields(const void *good, size_t len, const struct field_row *rows, size_t count)
{
    struct sg_adapter_census before, after;
    uint8_t cmd[SG_ADMIN_CMD_SIZE];
    size_t i;

    T_EQ_U64(md_cmd(&s.md, good, len, NULL), SG_OK);
    for (i = 0; i < count; i++) {
        T_CONTEXT("%s = 0x%" PRIx64, rows[i].name, rows[i].value);
        memcpy(cmd, good, len);
        field_put(cmd, &rows[i]);
        sg_adapter_census(s.md.a, &before);
        T_EQ_U64(md_cmd(&s.md, cmd, len, NULL), rows[i].status);
        sg_adapter_census(s.md.a, &after);
        T_EQ_MEM(&after, &before, sizeof(after));
    }
}

#define TRY(good, rows) try_fields(&(good), sizeof(good), rows, sizeof(rows) / sizeof(rows[0]))

static void opcodes(void)
{
    static const uint8_t reserved[] = {
        0x09, 0x1d, 0x24, 0x2d, 0x36, 0x3c, 0x3f, 0x40, 0x80, 0xff
    };
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };
    size_t i;

    begin(NULL);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    for (i = 0; i < sizeof(reserved); i++) {
        T_CONTEXT("opcode 0x%02x", reserved[i]);
        c.opcode = reserved[i];
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EOPCODE);
    }
    solo_end(&s);
}

static void create_eq(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_create_eq, eqn), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, eqn), SG_EQ_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, eqn), 1, SG_EBUSY },
        { FIELD(sg_cmd_create_eq, eqn), 0xffffffff, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, vector), 8, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), 63, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), 32, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), 1 << 17, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, base), TEST_HOST_BASE + 8, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, base), 0, SG_EINVAL },
    };
    struct sg_cmd_create_eq c = { .hdr.opcode = SG_ADMIN_CREATE_EQ };

    begin(NULL);
    sg_put_le64(&c.base, test_host_alloc(&s.h, 4096, 4096));
    sg_put_le32(&c.entries, 64);
    sg_put_le32(&c.eqn, 2);
    sg_put_le32(&c.vector, 7);
    TRY(c, rows);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_EQ, 2), SG_OK);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_EQ, 2), SG_ENOENT);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_EQ, 0), SG_ENOENT);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_EQ, 1000), SG_ENOENT);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_EQ, 1), SG_EBUSY);
    solo_end(&s);
}

static void create_cq(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_create_cq, entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, entries), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, entries), 65, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, entries), 128, SG_EINVAL }, /* list too short */
        { FIELD(sg_cmd_create_cq, entries), 1u << 31, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, eqn), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, eqn), 64, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, eqn), 5, SG_ENOENT },
        { FIELD(sg_cmd_create_cq, uar), SG_UAR_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, record), TEST_HOST_BASE + 4, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.addr), TEST_HOST_BASE + 64, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.addr), UINT64_MAX, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.levels), 3, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.page_shift), 13, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.count), 0, SG_EINVAL },
    };
    struct sg_cmd_create_cq c;
    struct sg_page_list l;

    begin(NULL);
    c = md_create_cq_cmd(&s.md, 64);
    TRY(c, rows);
    /* Lists of lists: unreadable, and with a page that is not aligned. */
    l = c.pages;
    c.pages.levels = 1;
    sg_put_le64(&c.pages.addr, 8);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EFAULT);
    sg_put_le64(&c.pages.addr, test_host_alloc(&s.h, 64, 64));
    sg_put_le64(test_host_ptr(&s.h, sg_get_le64(&c.pages.addr)), 0x123);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EINVAL);
    sg_put_le64(test_host_ptr(&s.h, sg_get_le64(&c.pages.addr)), sg_get_le64(&l.addr));
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    c.pages.levels = 2;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK); /* an empty leaf: page 0 is legal */
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_CQ, 12345), SG_ENOENT);
    solo_end(&s);
}

static void create_qp(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_create_qp, pd), 0, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, pd), 99, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, send_cqn), 99, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, recv_cqn), 0xffffffff, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, srqn), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, uar), SG_UAR_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_entries), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_entries), 12, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_entries), 32, SG_EINVAL }, /* list too short */
        { FIELD(sg_cmd_create_qp, sq_entries), 1 << 20, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_entries), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_entries), 1u << 31, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_stride), 32, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_stride), 1024, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_stride), 96, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_stride), 64, SG_EINVAL }, /* 16 elements */
        { FIELD(sg_cmd_create_qp, rq_stride), 256, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_max_sge), SG_SQ_MAX_SGE + 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_max_sge), 255, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, max_inline), SG_MAX_INLINE + 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, access), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, access), 0x200, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, flags), SG_QP_SRQ, SG_EINVAL }, /* with its own queue */
        { FIELD(sg_cmd_create_qp, flags), 8, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_pages.levels), 9, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_pages.addr), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_pages.count), 1, SG_EINVAL },
    };
    struct sg_cmd_create_qp c;

    begin(NULL);
    c = md_create_qp_cmd(&s.md, &(struct md_qp_params){ .pd = pd, .scq = &cq, .rcq = &cq });
    TRY(c, rows);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_QP, 0), SG_ENOENT);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_QUERY_QP, 9999), SG_ENOENT);
    solo_end(&s);
}

static void reg_mr(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_reg_mr, pd), 99, SG_ENOENT },
        { FIELD(sg_cmd_reg_mr, access), 0x200, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_VERIFY, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, length), 0, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, length), 12289, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, length), UINT64_MAX, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, va), UINT64_MAX - 100, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, va), TEST_HOST_BASE + 1, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 11, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 31, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 255, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.count), 2, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.levels), 3, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.addr), TEST_HOST_BASE + 512, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, flags), 2, SG_EINVAL },
    };
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;

    begin(NULL);
    c = md_reg_mr_cmd(pd, TEST_HOST_BASE, 12288, SG_ACCESS_LOCAL_WRITE);
    TRY(c, rows);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), &rsp), SG_OK);
    T_EQ_U64(sg_get_le32(&rsp.id) & 0xff, 0x5a);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DEREG_MR, sg_get_le32(&rsp.id) ^ 1), SG_ENOENT);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DEREG_MR, sg_get_le32(&rsp.id)), SG_OK);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DEREG_MR, sg_get_le32(&rsp.id)), SG_ENOENT);
    /* Whole memory: no remote rights. */
    c.flags = SG_MR_WHOLE_MEMORY;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    sg_put_le32(&c.access, SG_ACCESS_REMOTE_READ);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EINVAL);
    solo_end(&s);
}

static void alloc_mr(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_alloc_mr, pd), 77, SG_ENOENT },
        { FIELD(sg_cmd_alloc_mr, max_pages), 0, SG_EINVAL },
        { FIELD(sg_cmd_alloc_mr, max_pages), 262145, SG_EINVAL },
    };
    struct sg_cmd_alloc_mr c = { .hdr.opcode = SG_ADMIN_ALLOC_MR, .key = 9 };

    begin(NULL);
    sg_put_le32(&c.pd, pd);
    sg_put_le32(&c.max_pages, 512);
    TRY(c, rows);
    solo_end(&s);
}

static void modify_qp(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_modify_qp, qpn), 0, SG_ENOENT },
        { FIELD(sg_cmd_modify_qp, mask), 0, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, mask), 4, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, state), SG_QP_RTS, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, state), SG_QP_TERMINATE, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, state), 99, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, state), SG_QP_CLOSING, SG_ESTATE },
        { FIELD(sg_cmd_modify_qp, access), 0x1000, SG_EINVAL },
    };
    struct sg_cmd_modify_qp c = { .hdr.opcode = SG_ADMIN_MODIFY_QP };
    struct md_qp qp;

    begin(NULL);
    md_create_qp(&s.md, &qp, &(struct md_qp_params){ .pd = pd, .scq = &cq, .rcq = &cq });
    sg_put_le32(&c.qpn, qp.qpn);
    sg_put_le32(&c.mask, SG_QP_MOD_STATE | SG_QP_MOD_ACCESS);
    sg_put_le32(&c.state, SG_QP_IDLE);
    TRY(c, rows);
    T_EQ_U64(md_modify_qp(&qp, SG_QP_ERROR), SG_OK);
    T_EQ_U64(md_qp_state(&qp), SG_QP_ERROR);
    T_EQ_U64(md_modify_qp(&qp, SG_QP_ERROR), SG_OK);
    T_EQ_U64(md_modify_qp(&qp, SG_QP_CLOSING), SG_ESTATE);
    T_EQ_U64(md_modify_qp(&qp, SG_QP_IDLE), SG_OK);
    solo_end(&s);
}

static void connect_fields(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_connect, qpn), 0, SG_ENOENT },
        { FIELD(sg_cmd_connect, local.family), 5, SG_EINVAL },
        { FIELD(sg_cmd_connect, remote.family), 6, SG_EINVAL },
        { FIELD(sg_cmd_connect, remote.port), 0, SG_EINVAL },
        { FIELD(sg_cmd_connect, pdata_len), 509, SG_EINVAL },
        { FIELD(sg_cmd_connect, pdata_addr), 1, SG_EFAULT },
        { FIELD(sg_cmd_connect, ird), 129, SG_EINVAL },
        { FIELD(sg_cmd_connect, ord), 65535, SG_EINVAL },
        { FIELD(sg_cmd_connect, flags), 4, SG_EINVAL },
        { FIELD(sg_cmd_connect, flags), 0, SG_ESTATE }, /* connecting already */
    };
    const struct sg_endpoint local = { .family = 4, .ip = { 10, 0, 0, 1 } };
    const struct sg_endpoint remote = { .family = 4, .ip = { 10, 0, 0, 9 } };
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };
    uint8_t cmd[SG_ADMIN_CMD_SIZE];
    struct md_qp qp;
    size_t i;

    begin(NULL);
    md_create_qp(&s.md, &qp, &(struct md_qp_params){ .pd = pd, .scq = &cq, .rcq = &cq });
    sg_put_le32(&c.qpn, qp.qpn);
    c.local = md_addr(&local, 0);
    c.remote = md_addr(&remote, 99);
    sg_put_le64(&c.pdata_addr, TEST_HOST_BASE);
    sg_put_le16(&c.pdata_len, 10);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].name);
        if (rows[i].status == SG_ESTATE) {
            enum sg_status first = md_cmd(&s.md, &c, sizeof(c), NULL);

            T_TRUE(first == SG_OK);
            md_settle(&s.md);
            T_EQ_U64(md_modify_qp(&qp, SG_QP_ERROR), SG_OK);
        }
        memcpy(cmd, &c, sizeof(c));
        field_put(cmd, &rows[i]);
        T_EQ_U64(md_cmd(&s.md, cmd, sizeof(c), NULL), rows[i].status);
    }
    sg_put_le32(&c.conn, 4711);
    c.hdr.opcode = SG_ADMIN_ACCEPT;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOENT);
    c.hdr.opcode = SG_ADMIN_REJECT;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOENT);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_UNLISTEN, 1), SG_ENOENT);
    solo_end(&s);
}

static void listen_fields(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_listen, local.family), 0, SG_EINVAL },
        { FIELD(sg_cmd_listen, local.port), 0, SG_EINVAL },
        { FIELD(sg_cmd_listen, backlog), 0, SG_EINVAL },
        { FIELD(sg_cmd_listen, backlog), 1025, SG_EINVAL },
        { FIELD(sg_cmd_listen, reserved_288), 0, SG_EADDR }, /* the port is in use */
    };
    const struct sg_endpoint local = { .family = 4, .ip = { 10, 0, 0, 1 } };
    struct sg_cmd_listen c = { .hdr.opcode = SG_ADMIN_LISTEN };

    begin(NULL);
    c.local = md_addr(&local, 5);
    sg_put_le32(&c.backlog, 1024);
    TRY(c, rows);
    solo_end(&s);
}

static void port_fields(void)
{
    static const struct field_row mtu_rows[] = {
        { FIELD(sg_cmd_set_port, mtu), 575, SG_EINVAL },
        { FIELD(sg_cmd_set_port, mtu), 9001, SG_EINVAL },
    };
    static const struct field_row addr_rows[] = {
        { FIELD(sg_cmd_set_addr, op), 0, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, op), 9, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, addr.family), 7, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, prefix_len), 33, SG_EINVAL },
    };
    struct sg_cmd_set_port p = { .hdr.opcode = SG_ADMIN_SET_PORT };
    struct sg_cmd_set_addr a = { .hdr.opcode = SG_ADMIN_SET_ADDR };

    begin(NULL);
    sg_put_le32(&p.mtu, 9000);
    TRY(p, mtu_rows);
    a.op = SG_ADDR_ADD;
    a.prefix_len = 24;
    a.addr = md_addr(&(struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 77 } }, 0);
    TRY(a, addr_rows);
    solo_end(&s);
}

/* The whole of an address counts, and of an IPv4 one nothing but its four octets. */
static void addresses(void)
{
    static const struct {
        struct sg_endpoint add, del;
        enum sg_status status;
    } rows[] = {
        { { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 } },
          { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 2 } },
          SG_ENOENT },
        { { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 } },
          { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 } },
          SG_OK },
        { { .family = 4, .ip = { 10, 0, 0, 77, 5, [15] = 9 } },
          { .family = 4, .ip = { 10, 0, 0, 77 } },
          SG_OK },
    };
    struct sg_cmd_set_addr c = { .hdr.opcode = SG_ADMIN_SET_ADDR, .prefix_len = 24 };
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %u", i);
        begin(NULL);
        c.op = SG_ADDR_ADD;
        c.addr = md_addr(&rows[i].add, 0);
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
        c.op = SG_ADDR_DEL;
        c.addr = md_addr(&rows[i].del, 0);
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), rows[i].status);
        solo_end(&s);
    }
}

static void references(void)
{
    struct md_qp qp;
    uint32_t stag;

    begin(NULL);
    md_create_qp(&s.md, &qp, &(struct md_qp_params){ .pd = pd, .scq = &cq, .rcq = &cq });
    stag = md_reg_mr(&s.md, pd, TEST_HOST_BASE, 4096, 0);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_PD, pd), SG_EBUSY);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_CQ, cq.cqn), SG_EBUSY);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_QP, qp.qpn), SG_OK);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_PD, pd), SG_EBUSY);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_CQ, cq.cqn), SG_OK);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DEREG_MR, stag), SG_OK);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_PD, pd), SG_OK);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_PD, pd), SG_ENOENT);
    solo_end(&s);
}

static void limits(void)
{
    struct sg_adapter_config config;
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_CREATE_PD };
    struct sg_cmd_reg_mr mr;
    int i;

    sg_adapter_default_config(&config);
    config.max_pd = 3;
    config.max_mr = 5;
    begin(&config);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOMEM);
    mr = md_reg_mr_cmd(pd, TEST_HOST_BASE, 4096, 0);
    for (i = 0; i < 5; i++) {
        T_EQ_U64(md_cmd(&s.md, &mr, sizeof(mr), NULL), SG_OK);
    }
    T_EQ_U64(md_cmd(&s.md, &mr, sizeof(mr), NULL), SG_ENOMEM);
    solo_end(&s);
}

/* As many queue pairs as QUERY_CAPS promises; here they may share memory. */
static void all_queue_pairs(void)
{
    struct sg_adapter_census census;
    struct sg_cmd_create_qp c;
    struct sg_admin_rsp rsp;
    uint32_t i;

    begin(NULL);
    c = md_create_qp_cmd(&s.md, &(struct md_qp_params){ .pd = pd, .scq = &cq, .rcq = &cq });
    for (i = 0; i < 65536; i++) {
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), &rsp), SG_OK);
    }
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOMEM);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_QP, sg_get_le32(&rsp.id)), SG_OK);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), &rsp), SG_OK);
    sg_adapter_census(s.md.a, &census);
    T_EQ_U64(census.qps, 65536);
    solo_end(&s);
}

/* A late event of a destroyed object must not be taken for an event of the next object. */
static void numbers_are_fresh(void)
{
    struct sg_cmd_create_srq srq;
    struct sg_cmd_create_qp qp;
    struct sg_admin_rsp rsp;
    uint32_t first, i;

    begin(NULL);
    qp = md_create_qp_cmd(&s.md, &(struct md_qp_params){ .pd = pd, .scq = &cq, .rcq = &cq });
    srq = md_create_srq_cmd(&s.md, pd, 16);
    for (i = 0; i < 3; i++) {
        const uint8_t destroy[] = { SG_ADMIN_DESTROY_QP, SG_ADMIN_DESTROY_SRQ,
                                    SG_ADMIN_DESTROY_CQ };
        struct md_cq other;

        T_CONTEXT("opcode 0x%02x", destroy[i]);
        if (i < 2) {
            T_EQ_U64(md_cmd(&s.md, i ? (void *)&srq : &qp, i ? sizeof(srq) : sizeof(qp), &rsp),
                     SG_OK);
            first = sg_get_le32(&rsp.id);
        } else {
            md_create_cq(&s.md, &other, 16);
            first = other.cqn;
        }
        T_EQ_U64(md_cmd_id(&s.md, destroy[i], first), SG_OK);
        if (i < 2) {
            T_EQ_U64(md_cmd(&s.md, i ? (void *)&srq : &qp, i ? sizeof(srq) : sizeof(qp), &rsp),
                     SG_OK);
            T_TRUE(sg_get_le32(&rsp.id) != first);
        } else {
            md_create_cq(&s.md, &other, 16);
            T_TRUE(other.cqn != first);
        }
    }
    solo_end(&s);
}

static void queries(void)
{
    struct sg_cmd_query q = { .hdr.opcode = SG_ADMIN_QUERY_CAPS };
    struct sg_caps *caps;
    uint64_t out;

    begin(NULL);
    out = test_host_alloc(&s.h, 4096, 8);
    caps = test_host_ptr(&s.h, out);
    sg_put_le64(&q.out_addr, out);
    sg_put_le32(&q.out_len, sizeof(*caps));
    T_EQ_U64(md_cmd(&s.md, &q, sizeof(q), NULL), SG_OK);
    T_EQ_U64(sg_get_le32(&caps->version), SG_VERSION);
    T_EQ_U64(sg_get_le32(&caps->max_qp), 65536);
    T_EQ_U64(sg_get_le32(&caps->max_sq_sge), 32);
    T_EQ_U64(sg_get_le32(&caps->max_inline), 512);
    T_EQ_U64(sg_get_le32(&caps->max_fr_pages), 262144);
    T_EQ_U64(sg_get_le64(&caps->page_size_mask), 0x7ffff000);
    /* A short buffer gets a short answer. */
    memset(caps, 0xaa, sizeof(*caps));
    sg_put_le32(&q.out_len, 8);
    T_EQ_U64(md_cmd(&s.md, &q, sizeof(q), NULL), SG_OK);
    T_EQ_U64(sg_get_le32(&caps->max_pd), 0xaaaaaaaa);
    sg_put_le32(&q.out_len, 0);
    T_EQ_U64(md_cmd(&s.md, &q, sizeof(q), NULL), SG_EINVAL);
    sg_put_le32(&q.out_len, 8);
    sg_put_le64(&q.out_addr, 0);
    T_EQ_U64(md_cmd(&s.md, &q, sizeof(q), NULL), SG_EFAULT);
    q.hdr.opcode = SG_ADMIN_CM_DATA;
    sg_put_le32(&q.id, 1);
    T_EQ_U64(md_cmd(&s.md, &q, sizeof(q), NULL), SG_ENOENT);
    solo_end(&s);
}

/* Execution stops while the completion ring is full, and nothing is lost. */
static void ring_pressure(void)
{
    struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
    struct sg_admin_rsp rsp;
    uint16_t first;
    int i, round;

    begin(NULL);
    for (round = 0; round < 5; round++) {
        first = s.md.cookie + 1;
        for (i = 0; i < MD_ADMIN_SIZE; i++) {
            md_submit(&s.md, &nop, sizeof(nop));
        }
        md_settle(&s.md);
        for (i = 0; i < MD_ADMIN_SIZE; i++) {
            md_submit(&s.md, &nop, sizeof(nop)); /* room for it, not for its completion */
        }
        md_settle(&s.md);
        for (i = 0; i < 2 * MD_ADMIN_SIZE; i++) {
            T_TRUE(md_reap(&s.md, &rsp));
            T_EQ_U64(sg_get_le16(&rsp.cookie), (uint16_t)(first + i));
            md_settle(&s.md);
        }
        T_FALSE(md_reap(&s.md, &rsp));
    }
    solo_end(&s);
}

static void admin_events(void)
{
    struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
    uint64_t before;

    begin(NULL);
    before = s.h.raised[0];
    T_EQ_U64(md_cmd(&s.md, &nop, sizeof(nop), NULL), SG_OK);
    T_EQ_U64(s.h.raised[0], before); /* not armed: polling */
    md_arm_eq(&s.md, 0);
    T_EQ_U64(md_cmd(&s.md, &nop, sizeof(nop), NULL), SG_OK);
    T_EQ_U64(s.h.raised[0], before + 1);
    T_EQ_U64(md_cmd(&s.md, &nop, sizeof(nop), NULL), SG_OK);
    T_EQ_U64(s.h.raised[0], before + 1); /* disarmed by the first */
    /* A completion that came before arming and is unread raises the vector at once. */
    md_submit(&s.md, &nop, sizeof(nop));
    md_settle(&s.md);
    s.md.aeq.cons++; /* the event above */
    md_arm_eq(&s.md, 0);
    T_EQ_U64(s.h.raised[0], before + 2);
    solo_end(&s);
}

/* REG_MR with a page list that repeats one leaf page of zeros. */
static struct sg_cmd_reg_mr long_command(uint32_t pages)
{
    uint32_t top_entries = pages / 512, i;
    struct sg_cmd_reg_mr c;
    uint64_t top, leaf;

    top = test_host_alloc(&s.h, top_entries * 8, 8);
    leaf = test_host_alloc(&s.h, 4096, 4096);
    for (i = 0; i < top_entries; i++) {
        sg_put_le64((uint8_t *)test_host_ptr(&s.h, top) + 8 * i, leaf);
    }
    c = md_reg_mr_cmd(pd, 0, (uint64_t)pages << 12, 0);
    c.pages.levels = 2;
    c.pages.page_shift = 12;
    sg_put_le64(&c.pages.addr, top);
    sg_put_le32(&c.pages.count, pages);
    return c;
}

/* A turn reads a limited number of page addresses; a longer list continues in the next turn. */
static void long_commands(void)
{
    enum { PAGES = 1 << 17, COMMANDS = 3, TURNS = PAGES / SG_TURN_PAGES };
    const struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp = { 0 };
    unsigned i;

    begin(NULL);
    c = long_command(PAGES);
    for (i = 0; i < COMMANDS; i++) {
        md_submit(&s.md, &c, sizeof(c));
    }
    md_submit(&s.md, &nop, sizeof(nop));
    for (i = 1; i <= COMMANDS * TURNS; i++) {
        uint64_t before = s.h.dma_reads;

        T_CONTEXT("turn %u", i);
        T_TRUE(sg_adapter_run(s.md.a, 65536));
        /* Two reads for 512 pages (a leaf and its address), and one for the command. */
        T_TRUE(s.h.dma_reads - before <= 2 * SG_TURN_PAGES / 512 + 1);
        T_TRUE(md_reap(&s.md, &rsp) == (i % TURNS == 0));
        T_EQ_U64(rsp.status, SG_OK);
    }
    T_FALSE(sg_adapter_run(s.md.a, 65536));
    T_TRUE(md_reap(&s.md, &rsp));
    solo_end(&s);
}

/* Between two turns of a REG_MR: the list becomes unreadable, or the adapter is disabled. */
static void long_command_ends(void)
{
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    struct sg_adapter_census census;
    int round;

    for (round = 0; round < 3; round++) {
        T_CONTEXT("round %d", round);
        begin(NULL);
        c = long_command(1 << 18);
        md_submit(&s.md, &c, sizeof(c));
        T_TRUE(sg_adapter_run(s.md.a, 65536));
        T_FALSE(md_reap(&s.md, &rsp));
        sg_adapter_census(s.md.a, &census);
        T_EQ_U64(census.mrs, 0);
        T_TRUE(sg_adapter_host_memory(s.md.a) >= 8 << 18);
        if (round == 0) { /* the command itself was copied, its list was not */
            s.h.fault_lo = sg_get_le64(&c.pages.addr);
            s.h.fault_hi = s.h.fault_lo + 8 * 512;
            md_settle(&s.md);
            T_TRUE(md_reap(&s.md, &rsp));
            T_EQ_U64(rsp.status, SG_EFAULT);
        } else if (round == 1) {
            md_write(&s.md, SG_REG_CTRL, 0);
        } else {
            sg_adapter_break(s.md.a);
            md_settle(&s.md);
        }
        solo_end(&s); /* it asserts that all memory came back */
    }
}

static const struct t_case cases[] = {
    { "unknown and reserved opcodes", opcodes },
    { "CREATE_EQ: every field", create_eq },
    { "CREATE_CQ: every field", create_cq },
    { "CREATE_QP: every field", create_qp },
    { "SEC-15 REG_MR: every field", reg_mr },
    { "ALLOC_MR: every field", alloc_mr },
    { "MODIFY_QP: every field", modify_qp },
    { "CONNECT, ACCEPT, REJECT: every field", connect_fields },
    { "LISTEN: every field", listen_fields },
    { "SET_PORT, SET_ADDR: every field", port_fields },
    { "SET_ADDR: the whole address", addresses },
    { "objects in use are busy", references },
    { "SEC-13 limits of objects", limits },
    { "65536 queue pairs", all_queue_pairs },
    { "numbers are not given again at once", numbers_are_fresh },
    { "queries write no more than their room", queries },
    { "full completion ring delays, nothing is lost", ring_pressure },
    { "admin events only while armed", admin_events },
    { "long commands take several turns", long_commands },
    { "a long command ends between two turns", long_command_ends },
};

T_MAIN(cases)
