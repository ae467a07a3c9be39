/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands with one field wrong at a time.
 *
 * There is a valid form of each command.  A row of the table names a field of it, a bad value and
 * the status that docs/manual/commands.md promises.  After each row no object was created or
 * destroyed, and an invalid command was counted as a guest error; at the end of the table the valid
 * form still succeeds.
 */
#include <glib.h>
#include <stddef.h>

#include "base/bytes.h"
#include "driver.h"
#include "field_row.h"
#include "tap.h"

/* Each command has the size of the largest. */
union admin_fields_command {
    uint8_t octets[SG_ADMIN_CMD_SIZE];
    struct sg_admin_hdr hdr;
    struct sg_cmd_query query;
    struct sg_cmd_create_eq create_eq;
    struct sg_cmd_set_addr set_addr;
    struct sg_cmd_set_port set_port;
    struct sg_cmd_reg_mr reg_mr;
    struct sg_cmd_alloc_mr alloc_mr;
    struct sg_cmd_create_cq create_cq;
    struct sg_cmd_create_qp create_qp;
    struct sg_cmd_modify_qp modify_qp;
    struct sg_cmd_listen listen;
    struct sg_cmd_connect connect;
    struct sg_cmd_id id;
};

static const uint64_t nowhere = 0x7000000000;

static void get_stats(struct qtest_side *s, struct sg_stats *out)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_STATS };
    uint64_t at = machine_alloc(s->f->m, sizeof(*out), 64);

    sg_put_le64(&c.out_addr, at);
    sg_put_le32(&c.out_len, sizeof(*out));
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    memcpy(out, machine_ptr(s->f->m, at), sizeof(*out));
}

static void expect_same_objects(const struct sg_stats *a, const struct sg_stats *b)
{
    T_EQ_U64(sg_get_le64(&b->pds), sg_get_le64(&a->pds));
    T_EQ_U64(sg_get_le64(&b->mrs), sg_get_le64(&a->mrs));
    T_EQ_U64(sg_get_le64(&b->cqs), sg_get_le64(&a->cqs));
    T_EQ_U64(sg_get_le64(&b->qps), sg_get_le64(&a->qps));
    T_EQ_U64(sg_get_le64(&b->conns), sg_get_le64(&a->conns));
    T_EQ_U64(sg_get_le64(&b->listeners), sg_get_le64(&a->listeners));
}

/* 'good' is run at the end, unless it cannot be undone. */
static void try_rows(struct qtest_side *s, const union admin_fields_command *good,
                     const struct field_row *rows, size_t n, enum sg_status good_status)
{
    struct sg_stats before, after;
    uint64_t errors;
    size_t i;

    get_stats(s, &before);
    for (i = 0; i < n; i++) {
        union admin_fields_command c = *good;

        T_CONTEXT("opcode 0x%02x, %s = 0x%" PRIx64, good->hdr.opcode, rows[i].name, rows[i].value);
        field_put(&c, &rows[i]);
        T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), rows[i].status);
        get_stats(s, &after);
        expect_same_objects(&before, &after);
        errors = sg_get_le64(&after.guest_errors) - sg_get_le64(&before.guest_errors);
        if (rows[i].status == SG_EINVAL || rows[i].status == SG_EFAULT) {
            T_TRUE(errors >= 1); /* the other statuses are answers, not guest errors */
        }
        before = after;
    }
    T_CONTEXT("opcode 0x%02x, the good command", good->hdr.opcode);
    T_EQ_U64(md_cmd(&s->md, good, sizeof(*good), NULL), good_status);
}

#define TRY(s, good, rows) try_rows(s, good, rows, G_N_ELEMENTS(rows), SG_OK)

static struct machine *start(struct qtest_side *s)
{
    struct machine *m = machine_start(1, "", "");

    side_start(s, &m->f[0]);
    return m;
}

static void opcodes(void)
{
    static const uint8_t known[] = { SG_ADMIN_NOP,
                                     SG_ADMIN_QUERY_CAPS,
                                     SG_ADMIN_QUERY_STATS,
                                     SG_ADMIN_CREATE_EQ,
                                     SG_ADMIN_DESTROY_EQ,
                                     SG_ADMIN_SET_ADDR,
                                     SG_ADMIN_SET_PORT,
                                     SG_ADMIN_CREATE_PD,
                                     SG_ADMIN_DESTROY_PD,
                                     SG_ADMIN_REG_MR,
                                     SG_ADMIN_DEREG_MR,
                                     SG_ADMIN_ALLOC_MR,
                                     SG_ADMIN_CREATE_CQ,
                                     SG_ADMIN_DESTROY_CQ,
                                     SG_ADMIN_CREATE_QP,
                                     SG_ADMIN_MODIFY_QP,
                                     SG_ADMIN_QUERY_QP,
                                     SG_ADMIN_DESTROY_QP,
                                     SG_ADMIN_LISTEN,
                                     SG_ADMIN_UNLISTEN,
                                     SG_ADMIN_CONNECT,
                                     SG_ADMIN_ACCEPT,
                                     SG_ADMIN_REJECT,
                                     SG_ADMIN_CM_DATA,
                                     SG_ADMIN_QUERY_QP_STATS,
                                     SG_ADMIN_QUERY_MR_STATS,
                                     SG_ADMIN_ALLOC_MW,
                                     SG_ADMIN_DEALLOC_MW,
                                     SG_ADMIN_MAP_PAGES,
                                     SG_ADMIN_RESIZE_CQ,
                                     SG_ADMIN_MODIFY_CQ,
                                     SG_ADMIN_CREATE_SRQ,
                                     SG_ADMIN_MODIFY_SRQ,
                                     SG_ADMIN_DESTROY_SRQ,
                                     SG_ADMIN_QUERY_SRQ,
                                     SG_ADMIN_FLASH_INFO,
                                     SG_ADMIN_FLASH_READ,
                                     SG_ADMIN_FLASH_WRITE,
                                     SG_ADMIN_FLASH_COMMIT,
                                     SG_ADMIN_MODIFY_MR,
                                     SG_ADMIN_RESIZE_SRQ };
    struct qtest_side s;
    struct machine *m = start(&s);
    unsigned op;

    for (op = 0; op < 256; op++) {
        union admin_fields_command c = { .hdr.opcode = op };
        bool is_known = memchr(known, op, sizeof(known));
        uint8_t status;

        T_CONTEXT("opcode 0x%02x", op);
        if (op == SG_ADMIN_NOP || op == SG_ADMIN_CREATE_PD) {
            continue;
        }
        /* Every command is refused if all of its fields are 0, and unknown ones as SG_EOPCODE. */
        status = md_cmd(&s.md, &c, sizeof(c), NULL);
        T_TRUE(status != SG_OK);
        T_TRUE((status == SG_EOPCODE) == !is_known);
    }
    machine_stop(m);
}

static void ids(void)
{
    static const uint8_t ops[] = { SG_ADMIN_DESTROY_EQ, SG_ADMIN_DESTROY_PD, SG_ADMIN_DEREG_MR,
                                   SG_ADMIN_DESTROY_CQ, SG_ADMIN_QUERY_QP,   SG_ADMIN_DESTROY_QP,
                                   SG_ADMIN_UNLISTEN,   SG_ADMIN_DEALLOC_MW, SG_ADMIN_DESTROY_SRQ,
                                   SG_ADMIN_QUERY_SRQ,  SG_ADMIN_MODIFY_SRQ, SG_ADMIN_MODIFY_CQ,
                                   SG_ADMIN_RESIZE_SRQ };
    static const uint32_t wrong[] = { 0, 63, 64, 12345, 0x00ffffff, 0x7fffffff, UINT32_MAX };
    struct qtest_side s;
    struct machine *m = start(&s);
    unsigned i, k;

    for (i = 0; i < G_N_ELEMENTS(ops); i++) {
        for (k = 0; k < G_N_ELEMENTS(wrong); k++) {
            T_CONTEXT("opcode 0x%02x, id 0x%x", ops[i], wrong[k]);
            T_EQ_U64(md_cmd_id(&s.md, ops[i], wrong[k]), SG_ENOENT);
        }
    }
    machine_stop(m);
}

static void queries(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_query, out_len), 0, SG_EINVAL },
        { FIELD(sg_cmd_query, out_addr), 0x7000000000, SG_EFAULT },
        { FIELD(sg_cmd_query, out_addr), UINT64_MAX, SG_EFAULT },
        { FIELD(sg_cmd_query, out_addr), UINT64_MAX - 63, SG_EFAULT },
    };
    static const uint8_t ops[] = { SG_ADMIN_QUERY_CAPS, SG_ADMIN_QUERY_STATS };
    struct qtest_side s;
    struct machine *m = start(&s);
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(ops); i++) {
        union admin_fields_command c = { .hdr.opcode = ops[i] };

        sg_put_le64(&c.query.out_addr, machine_alloc(m, 4096, 4096));
        sg_put_le32(&c.query.out_len, 4096);
        TRY(&s, &c, rows);
    }
    machine_stop(m);
}

static void create_eq(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_create_eq, base), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, base), 0x100800, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), SG_AEQ_SIZE_MIN / 2, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), SG_AEQ_SIZE_MIN + 1, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), 2 * SG_EQ_SIZE_MAX, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, entries), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, eqn), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, eqn), 1, SG_EBUSY },
        { FIELD(sg_cmd_create_eq, eqn), SG_EQ_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, eqn), UINT32_MAX, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, vector), 8, SG_EINVAL },
        { FIELD(sg_cmd_create_eq, vector), UINT32_MAX, SG_EINVAL },
    };
    union admin_fields_command c = { .hdr.opcode = SG_ADMIN_CREATE_EQ };
    struct qtest_side s;
    struct machine *m = start(&s);

    sg_put_le64(&c.create_eq.base, machine_alloc(m, 4096, 4096));
    sg_put_le32(&c.create_eq.entries, SG_AEQ_SIZE_MIN);
    sg_put_le32(&c.create_eq.eqn, SG_EQ_COUNT - 1);
    sg_put_le32(&c.create_eq.vector, 7);
    TRY(&s, &c, rows);
    machine_stop(m);
}

static void port(void)
{
    static const struct field_row addr[] = {
        { FIELD(sg_cmd_set_addr, op), 0, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, op), 4, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, op), 255, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, op), SG_ADDR_DEL, SG_ENOENT },
        { FIELD(sg_cmd_set_addr, prefix_len), 33, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, prefix_len), 255, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, addr.family), 0, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, addr.family), 5, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, addr.ip), 0, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, vlan), 4095, SG_EINVAL },
        { FIELD(sg_cmd_set_addr, vlan), 65535, SG_EINVAL },
    };
    static const struct field_row mtu[] = {
        { FIELD(sg_cmd_set_port, mtu), 0, SG_EINVAL },
        { FIELD(sg_cmd_set_port, mtu), 575, SG_EINVAL },
        { FIELD(sg_cmd_set_port, mtu), 65536, SG_EINVAL },
        { FIELD(sg_cmd_set_port, mtu), UINT32_MAX, SG_EINVAL },
    };
    union admin_fields_command c = {
        .set_addr = { .hdr.opcode = SG_ADMIN_SET_ADDR,
                      .op = SG_ADDR_ADD,
                      .prefix_len = 24,
                      .addr = { .family = 4, .ip = { 192, 168, 1, 1 } } },
    };
    union admin_fields_command p = { .hdr.opcode = SG_ADMIN_SET_PORT };
    struct qtest_side s;
    struct machine *m = start(&s);

    TRY(&s, &c, addr);
    c.set_addr.op = SG_ADDR_DEL;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    sg_put_le32(&p.set_port.mtu, 1500);
    TRY(&s, &p, mtu);
    machine_stop(m);
}

static void reg_mr(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_reg_mr, pd), 0, SG_ENOENT },
        { FIELD(sg_cmd_reg_mr, pd), 999, SG_ENOENT },
        { FIELD(sg_cmd_reg_mr, pd), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_reg_mr, access), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_FLUSH_PERSISTENT, SG_ENOTPMEM },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_VERIFY, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, hash_alg), SG_HASH_SHA256, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, hash_key_len), 1, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, mem_type), 3, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, mem_type), SG_MEM_TYPE_PERSISTENT, SG_ENOTPMEM },
        { FIELD(sg_cmd_reg_mr, mem_mode), 3, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, length), 0, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, length), 3 * SG_PAGE_SIZE, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, length), UINT64_MAX, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, va), UINT64_MAX - 100, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, va), 0xfff, SG_EINVAL }, /* crosses into a third page */
        { FIELD(sg_cmd_reg_mr, pages.count), 0, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.count), 1, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.levels), 3, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.levels), 255, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 0, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 11, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 31, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 64, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 255, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.addr), 0x100010, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.addr), UINT64_MAX - 4095, SG_EINVAL }, /* wraps */
        { FIELD(sg_cmd_reg_mr, flags), 0x80, SG_EINVAL },
    };
    static const struct field_row lists[] = {
        { FIELD(sg_cmd_reg_mr, pages.addr), 0x7000000000, SG_EFAULT },
        { FIELD(sg_cmd_reg_mr, pages.addr), 0x100004, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.addr), UINT64_MAX - 7, SG_EINVAL },
    };
    static const struct field_row whole[] = {
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_REMOTE_WRITE, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_REMOTE_READ, SG_EINVAL },
    };
    union admin_fields_command c = { 0 };
    struct qtest_side s;
    struct machine *m = start(&s);
    uint64_t buf = machine_alloc(m, 2 * SG_PAGE_SIZE, SG_PAGE_SIZE);
    uint64_t list = machine_alloc(m, SG_PAGE_SIZE, SG_PAGE_SIZE);
    __le64 *entries = machine_ptr(m, list);

    c.reg_mr = md_reg_mr_cmd(s.pd, buf, 2 * SG_PAGE_SIZE, SG_ACCESS_LOCAL_WRITE);
    TRY(&s, &c, rows);
    sg_put_le64(&c.reg_mr.pages.addr, list);
    c.reg_mr.pages.levels = 1;
    sg_put_le64(&entries[0], buf);
    sg_put_le64(&entries[1], buf);
    TRY(&s, &c, lists);
    c.reg_mr.pages.levels = 2;
    sg_put_le64(&entries[0], list + 8 * 64);
    sg_put_le64(&entries[64], buf);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EINVAL); /* leaves are pages */
    sg_put_le64(&entries[0], nowhere);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EFAULT);
    c.reg_mr.flags = SG_MR_WHOLE_MEMORY;
    TRY(&s, &c, whole);
    machine_stop(m);
}

/* Registration for Flush and Verify on a machine without persistent memory. */
static void reg_mr_place(void)
{
    enum { V = SG_ACCESS_VERIFY, VR = V | SG_ACCESS_REMOTE_READ };
    static const struct field_row crc[] = {
        { FIELD(sg_cmd_reg_mr, access), V, SG_ENOVERIFY },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_REMOTE_READ, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), VR | SG_ACCESS_FLUSH_PERSISTENT, SG_ENOTPMEM },
        { FIELD(sg_cmd_reg_mr, hash_alg), SG_HASH_NONE, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, hash_alg), SG_HASH_HMAC_SHA256, SG_EINVAL }, /* no key */
        { FIELD(sg_cmd_reg_mr, hash_alg), SG_HASH_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, hash_alg), 255, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, hash_key_len), 20, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, mem_type), SG_MEM_TYPE_PERSISTENT, SG_ENOTPMEM },
        { FIELD(sg_cmd_reg_mr, mem_type), 255, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, mem_mode), 255, SG_EINVAL },
    };
    static const struct field_row hmac[] = {
        { FIELD(sg_cmd_reg_mr, hash_key_len), 0, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, hash_key_len), SG_HASH_KEY_MAX + 1, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, hash_alg), SG_HASH_SHA512, SG_EINVAL },
    };
    union admin_fields_command c = { 0 };
    struct qtest_side s;
    struct machine *m = start(&s);
    uint64_t buf = machine_alloc(m, SG_PAGE_SIZE, SG_PAGE_SIZE);

    c.reg_mr = md_reg_mr_cmd(s.pd, buf, SG_PAGE_SIZE, VR | SG_ACCESS_FLUSH_GLOBAL);
    c.reg_mr.hash_alg = SG_HASH_CRC32C;
    TRY(&s, &c, crc);
    sg_put_le32(&c.reg_mr.access, V);
    c.reg_mr.hash_alg = SG_HASH_SHA512;
    c.reg_mr.mem_type = SG_MEM_TYPE_VOLATILE;
    c.reg_mr.mem_mode = SG_MEM_MODE_DIRECT;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    c.reg_mr.hash_alg = SG_HASH_HMAC_SHA256;
    c.reg_mr.hash_key_len = SG_HASH_KEY_MAX;
    TRY(&s, &c, hmac);
    c.reg_mr.flags = SG_MR_WHOLE_MEMORY;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOVERIFY);
    machine_stop(m);
}

static void alloc_mr(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_alloc_mr, pd), 0, SG_ENOENT },
        { FIELD(sg_cmd_alloc_mr, pd), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_alloc_mr, max_pages), 0, SG_EINVAL },
        { FIELD(sg_cmd_alloc_mr, max_pages), UINT32_MAX, SG_EINVAL },
    };
    union admin_fields_command c = { .hdr.opcode = SG_ADMIN_ALLOC_MR };
    struct qtest_side s;
    struct machine *m = start(&s);

    sg_put_le32(&c.alloc_mr.pd, s.pd);
    sg_put_le32(&c.alloc_mr.max_pages, 4);
    TRY(&s, &c, rows);
    machine_stop(m);
}

static void create_cq(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_create_cq, entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, entries), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, entries), 63, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, entries), 128, SG_EINVAL }, /* more than its pages hold */
        { FIELD(sg_cmd_create_cq, entries), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, eqn), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, eqn), 2, SG_ENOENT },
        { FIELD(sg_cmd_create_cq, eqn), SG_EQ_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, eqn), UINT32_MAX, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, uar), SG_UAR_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, uar), UINT32_MAX, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, record), 0x100020, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.count), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.levels), 3, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.page_shift), 13, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.page_shift), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_cq, pages.addr), 0x100040, SG_EINVAL },
    };
    union admin_fields_command c = { 0 };
    struct qtest_side s;
    struct machine *m = start(&s);

    c.create_cq = md_create_cq_cmd(&s.md, 64);
    TRY(&s, &c, rows);
    machine_stop(m);
}

static void create_qp(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_create_qp, pd), 0, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, pd), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, send_cqn), 0, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, recv_cqn), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, srqn), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, uar), SG_UAR_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, uar), UINT32_MAX, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_entries), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_entries), 12, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_entries), 32, SG_EINVAL }, /* more than its pages hold */
        { FIELD(sg_cmd_create_qp, sq_entries), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_entries), 3, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_entries), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_stride), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_stride), SG_WQE_STRIDE_MIN / 2, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_stride), SG_WQE_STRIDE_MIN, SG_EINVAL }, /* elements */
        { FIELD(sg_cmd_create_qp, sq_stride), 500, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_stride), 2 * SG_WQE_STRIDE_MAX, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_stride), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_stride), 0x8000, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_max_sge), SG_SQ_MAX_SGE + 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_max_sge), 255, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, max_inline), SG_MAX_INLINE + 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, max_inline), 0xffff, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, access), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, flags), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_pages.levels), 7, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, sq_pages.count), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_pages.page_shift), 30, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_pages.addr), 0x100001, SG_EINVAL },
    };
    struct md_qp_params params = { 0 };
    union admin_fields_command c = { 0 };
    struct qtest_side s;
    struct machine *m = start(&s);

    params.pd = s.pd;
    params.scq = params.rcq = &s.cq;
    c.create_qp = md_create_qp_cmd(&s.md, &params);
    TRY(&s, &c, rows);
    machine_stop(m);
}

static void modify_qp(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_modify_qp, qpn), 0, SG_ENOENT },
        { FIELD(sg_cmd_modify_qp, qpn), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_modify_qp, mask), 0, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, mask), 0x80000001, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, state), SG_QP_RTS, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, state), SG_QP_TERMINATE, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, state), SG_QP_CLOSING, SG_ESTATE }, /* not connected */
        { FIELD(sg_cmd_modify_qp, state), 17, SG_EINVAL },
        { FIELD(sg_cmd_modify_qp, state), UINT32_MAX, SG_EINVAL },
    };
    union admin_fields_command c = { .hdr.opcode = SG_ADMIN_MODIFY_QP };
    struct qtest_side s;
    struct machine *m = start(&s);

    sg_put_le32(&c.modify_qp.qpn, s.qp.qpn);
    sg_put_le32(&c.modify_qp.mask, SG_QP_MOD_STATE);
    sg_put_le32(&c.modify_qp.state, SG_QP_ERROR);
    TRY(&s, &c, rows);
    T_EQ_U64(md_qp_state(&s.qp), SG_QP_ERROR);
    sg_put_le32(&c.modify_qp.state, SG_QP_IDLE);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(md_qp_state(&s.qp), SG_QP_IDLE);
    machine_stop(m);
}

static void listen_and_connect(void)
{
    static const struct field_row listens[] = {
        { FIELD(sg_cmd_listen, backlog), 0, SG_EINVAL },
        { FIELD(sg_cmd_listen, backlog), 1025, SG_EINVAL },
        { FIELD(sg_cmd_listen, backlog), UINT32_MAX, SG_EINVAL },
        { FIELD(sg_cmd_listen, local.family), 0, SG_EINVAL },
        { FIELD(sg_cmd_listen, local.family), 255, SG_EINVAL },
        { FIELD(sg_cmd_listen, local.port), 0, SG_EINVAL },
        { FIELD(sg_cmd_listen, local.ip), 0x01020304, SG_EADDR },
    };
    static const struct field_row connects[] = {
        { FIELD(sg_cmd_connect, qpn), 0, SG_ENOENT },
        { FIELD(sg_cmd_connect, qpn), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_connect, local.family), 0, SG_EINVAL },
        { FIELD(sg_cmd_connect, local.family), 6, SG_EINVAL },
        { FIELD(sg_cmd_connect, local.ip), 0x01020304, SG_EADDR },
        { FIELD(sg_cmd_connect, remote.family), 9, SG_EINVAL },
        { FIELD(sg_cmd_connect, remote.port), 0, SG_EINVAL },
        { FIELD(sg_cmd_connect, pdata_len), SG_PRIVATE_DATA_MAX - 3, SG_EINVAL },
        { FIELD(sg_cmd_connect, pdata_len), 0xffff, SG_EINVAL },
        { FIELD(sg_cmd_connect, pdata_addr), 0x7000000000, SG_EFAULT },
        { FIELD(sg_cmd_connect, ird), 0xffff, SG_EINVAL },
        { FIELD(sg_cmd_connect, ord), 0xffff, SG_EINVAL },
    };
    union admin_fields_command l = {
        .listen = { .hdr.opcode = SG_ADMIN_LISTEN, .local = driver_addr(0, 4000) },
    };
    union admin_fields_command c = {
        .connect = { .hdr.opcode = SG_ADMIN_CONNECT,
                     .local = driver_addr(0, 0),
                     .remote = driver_addr(5, 4000) },
    };
    struct qtest_side s;
    struct machine *m = start(&s);

    sg_put_le32(&l.listen.backlog, 1);
    TRY(&s, &l, listens);
    T_EQ_U64(md_cmd(&s.md, &l, sizeof(l), NULL), SG_EADDR); /* in use */
    sg_put_le32(&c.connect.qpn, s.qp.qpn);
    sg_put_le64(&c.connect.pdata_addr, s.buffer);
    sg_put_le16(&c.connect.pdata_len, 100);
    TRY(&s, &c, connects);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ESTATE); /* under way already */
    machine_stop(m);
}

/* ACCEPT, REJECT and CM_DATA for connections that wait for no answer. */
static void answers_without_request(void)
{
    static const uint32_t conns[] = { 0, 1, 77, UINT32_MAX };
    union admin_fields_command c = { 0 };
    struct qtest_side s;
    struct machine *m = start(&s);
    unsigned i;

    sg_put_le32(&c.connect.qpn, s.qp.qpn);
    for (i = 0; i < G_N_ELEMENTS(conns); i++) {
        T_CONTEXT("connection 0x%x", conns[i]);
        sg_put_le32(&c.connect.conn, conns[i]);
        c.hdr.opcode = SG_ADMIN_ACCEPT;
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOENT);
        c.hdr.opcode = SG_ADMIN_REJECT;
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOENT);
    }
    memset(&c, 0, sizeof(c));
    c.hdr.opcode = SG_ADMIN_CM_DATA;
    sg_put_le64(&c.query.out_addr, s.buffer);
    sg_put_le32(&c.query.out_len, 4096);
    sg_put_le32(&c.query.id, 1);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOENT);
    machine_stop(m);
}

static const struct t_case cases[] = {
    { "opcodes: unknown and reserved ones; known ones with nothing but zeros", opcodes },
    { "ids: objects that do not exist", ids },
    { "QUERY_CAPS, QUERY_STATS: each field", queries },
    { "CREATE_EQ: each field", create_eq },
    { "SET_ADDR, SET_PORT: each field", port },
    { "REG_MR: each field, page lists of each level", reg_mr },
    { "REG_MR: Flush and Verify", reg_mr_place },
    { "ALLOC_MR: each field", alloc_mr },
    { "CREATE_CQ: each field", create_cq },
    { "CREATE_QP: each field", create_qp },
    { "MODIFY_QP: each field", modify_qp },
    { "LISTEN, CONNECT: each field", listen_and_connect },
    { "ACCEPT, REJECT, CM_DATA: nothing to answer", answers_without_request },
};

T_MAIN(cases)
