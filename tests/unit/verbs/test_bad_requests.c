/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send queue entries with one wrong field, for every opcode.  The entry completes with the
 * status of its row, its queue pair is in error and the peer's too; no octet of either
 * buffer has changed, the adapter has the same objects as before, and the receive posted at
 * the peer is flushed, not used.
 */
#include "pair_rig.h"

enum { FR_PAGES = 2, ENTRY = SG_WQE_STRIDE_MAX, AT = 4096, ALL_OPCODES = SG_WR_ATOMIC_WRITE + 1 };

static const uint64_t nowhere = 0x7000000000;

/* Objects of side 0 that entries name. */
static struct {
    uint32_t fast, valid_fast, window, region, read_only;
    uint64_t list;
} o;

static uint8_t before[2][PAIR_BUF];

/* The parts of an entry, each at its place. */
struct entry {
    struct sg_wqe_hdr h;
    union {
        struct sg_sge sge[SG_SQ_MAX_SGE];
        struct sg_wqe_reg reg;
        struct sg_wqe_bind bind;
        struct {
            struct sg_wqe_atomic op;
            struct sg_sge sge;
        } atomic;
        struct {
            struct sg_wqe_place op;
            struct sg_sge sge;
        } place;
        uint8_t octets[ENTRY - sizeof(struct sg_wqe_hdr)];
    };
};

static void put_sge(struct sg_sge *e, uint64_t off, uint32_t len)
{
    sg_put_le64(&e->addr, pair.side[0].buf + off);
    sg_put_le32(&e->length, len);
    sg_put_le32(&e->lkey, pair.side[0].stag);
}

static void reg_entry(struct entry *e, uint32_t stag)
{
    sg_put_le32(&e->reg.stag, stag);
    sg_put_le32(&e->reg.access, SG_ACCESS_LOCAL_WRITE);
    sg_put_le64(&e->reg.va, pair.side[0].buf);
    sg_put_le64(&e->reg.length, SG_PAGE_SIZE);
    sg_put_le64(&e->reg.pbl_addr, o.list);
    sg_put_le32(&e->reg.npages, FR_PAGES);
    e->reg.page_shift = SG_PAGE_SHIFT;
}

/* A correct entry of that opcode. */
static void good_entry(struct entry *e, uint8_t opcode)
{
    memset(e, 0, sizeof(*e));
    e->h.opcode = opcode;
    e->h.flags = SG_WQE_SIGNALED;
    sg_put_le64(&e->h.wr_id, 42);
    sg_put_le64(&e->h.remote_addr, pair.side[1].buf + AT);
    sg_put_le32(&e->h.rkey, pair.side[1].stag);
    switch (opcode) {
    case SG_WR_SEND:
    case SG_WR_WRITE:
    case SG_WR_WRITE_IMM:
    case SG_WR_READ:
        e->h.num_sge = 2;
        put_sge(&e->sge[0], AT, 40);
        put_sge(&e->sge[1], AT + 100, 24);
        break;
    case SG_WR_LOCAL_INV:
        sg_put_le32(&e->h.inv_stag, o.valid_fast);
        break;
    case SG_WR_REG_MR:
        reg_entry(e, o.fast);
        break;
    case SG_WR_READ_INV:
        e->h.num_sge = 1;
        put_sge(&e->sge[0], 0, 64);
        sg_put_le32(&e->sge[0].lkey, o.valid_fast);
        break;
    case SG_WR_BIND_MW:
        sg_put_le32(&e->bind.stag, o.window);
        sg_put_le32(&e->bind.mr_stag, o.region);
        sg_put_le32(&e->bind.access, SG_ACCESS_REMOTE_READ);
        sg_put_le64(&e->bind.va, pair.side[0].buf);
        sg_put_le64(&e->bind.length, SG_PAGE_SIZE);
        break;
    case SG_WR_FETCH_ADD:
    case SG_WR_CMP_SWAP:
        e->h.num_sge = 1;
        put_sge(&e->atomic.sge, AT, 8);
        break;
    case SG_WR_FLUSH:
        sg_put_le32(&e->place.op.flags, SG_FLUSH_GLOBAL);
        sg_put_le32(&e->place.op.length, 64);
        break;
    case SG_WR_VERIFY:
        e->h.num_sge = 1;
        sg_put_le32(&e->place.op.length, 64);
        put_sge(&e->place.sge, AT, SG_HASH_MAX);
        break;
    case SG_WR_ATOMIC_WRITE:
        e->h.num_sge = 1;
        put_sge(&e->sge[0], AT, 8);
        break;
    default:
        break;
    }
}

/* Side 0 registers its fast region, which then stays valid. */
static void make_valid(void)
{
    struct entry *e = (void *)md_sq_entry(&pair.side[0].qp);
    uint32_t index = sg_get_le32(&e->h.index);

    good_entry(e, SG_WR_REG_MR);
    reg_entry(e, o.valid_fast);
    sg_put_le32(&e->h.index, index);
    sg_put_le64(&e->h.wr_id, 7);
    md_sq_doorbell(&pair.side[0].qp);
    expect(0, 7, SG_WC_SUCCESS);
}

static void begin_row(void)
{
    const uint32_t peer = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC |
                          SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_VERIFY;
    struct pair_side *s = &pair.side[0];
    struct sg_cmd_reg_mr c;
    __le64 *list;
    int i;

    begin(&(struct md_qp_params){ .flags = SG_QP_KERNEL, .access = peer });
    o.list = test_host_alloc(&s->h, 64, 64);
    list = test_host_ptr(&s->h, o.list);
    for (i = 0; i < FR_PAGES; i++) {
        sg_put_le64(&list[i], s->buf + i * SG_PAGE_SIZE);
    }
    o.fast = md_alloc_mr(&s->md, s->pd, FR_PAGES);
    o.valid_fast = md_alloc_mr(&s->md, s->pd, FR_PAGES);
    o.window = md_alloc_mw(&s->md, s->pd, SG_MW_TYPE_2);
    o.region = md_reg_mr(&s->md, s->pd, s->buf, 8192, SG_ACCESS_MW_BIND | SG_ACCESS_LOCAL_WRITE);
    o.read_only = md_reg_mr(&s->md, s->pd, s->buf, PAIR_BUF, 0);
    /* The peer's whole buffer again, with all that requests may want. */
    c = md_reg_mr_cmd(pair.side[1].pd, pair.side[1].buf, PAIR_BUF, SG_ACCESS_LOCAL_WRITE | peer);
    c.hash_alg = SG_HASH_SHA256;
    pair.side[1].stag = md_make(&pair.side[1].md, &c, sizeof(c));
    make_valid();
    fill(0, 0, PAIR_BUF, 3);
    fill(1, 0, PAIR_BUF, 5);
    recv(1, 9, 0, 4096);
    for (i = 0; i < 2; i++) {
        memcpy(before[i], pair_buf(&pair, i), PAIR_BUF);
    }
}

static void end_row(void)
{
    pair_stop(&pair);
}

struct bad_requests_row {
    uint8_t opcode;
    const char *name;
    size_t offset, size;
    uint64_t value;
    uint8_t status;
};

#define FIELD(member) #member, offsetof(struct entry, member), sizeof(((struct entry *)0)->member)

static void post_entry(const struct entry *e)
{
    struct entry *slot = (void *)md_sq_entry(&pair.side[0].qp);
    uint32_t index = sg_get_le32(&slot->h.index);
    struct entry own = *e;

    sg_put_le32(&own.h.index, index + sg_get_le32(&e->h.index));
    memcpy(slot, &own, ENTRY);
    md_sq_doorbell(&pair.side[0].qp);
}

static void refuse(const struct bad_requests_row *r)
{
    struct sg_adapter_census was[2], now;
    struct entry e;
    uint8_t le[8];
    int i;

    begin_row();
    good_entry(&e, r->opcode);
    sg_put_le64(le, r->value);
    memcpy((uint8_t *)&e + r->offset, le, r->size);
    for (i = 0; i < 2; i++) {
        sg_adapter_census(pair.side[i].md.a, &was[i]);
    }
    post_entry(&e);
    expect(0, 42, r->status);
    pair_pass(&pair, 20000000000ull);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
    expect(1, 9, SG_WC_FLUSH_ERR);
    for (i = 0; i < 2; i++) {
        sg_adapter_census(pair.side[i].md.a, &now);
        now.conns = was[i].conns; /* the connection has ended */
        T_EQ_MEM(&now, &was[i], sizeof(now));
        T_EQ_MEM(pair_buf(&pair, i), before[i], PAIR_BUF);
    }
    end_row();
}

static void refuse_rows(const struct bad_requests_row *rows, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        T_CONTEXT("opcode 0x%02x, %s = 0x%" PRIx64, rows[i].opcode, rows[i].name, rows[i].value);
        refuse(&rows[i]);
    }
}

#define REFUSE(rows) refuse_rows(rows, SG_ARRAY_SIZE(rows))

/* ---- the header ---- */

/* The entries that the rows below change do work. */
static void good_ones(void)
{
    for (unsigned op = 0; op < ALL_OPCODES; op++) {
        struct entry e;

        T_CONTEXT("opcode 0x%02x", op);
        begin_row();
        good_entry(&e, op);
        if (op == SG_WR_SEND_INV) {
            end_row(); /* takes a region of the peer's: test_fast_mr.c */
            continue;
        }
        post_entry(&e);
        expect(0, 42, SG_WC_SUCCESS);
        end_row();
    }
}

static void header(void)
{
    static const struct bad_requests_row rows[] = {
        { 0, FIELD(h.flags), 0x10 | SG_WQE_SIGNALED, SG_WC_LOC_QP_OP_ERR },
        { 0, FIELD(h.flags), 0x80, SG_WC_LOC_QP_OP_ERR },
        { 0, FIELD(h.reserved_88), 1, SG_WC_LOC_QP_OP_ERR },
        { 0, FIELD(h.reserved_88), 0x80, SG_WC_LOC_QP_OP_ERR },
        { 0, FIELD(h.index), 1, SG_WC_LOC_QP_OP_ERR },
        { 0, FIELD(h.index), UINT32_MAX, SG_WC_LOC_QP_OP_ERR },
        { 0, FIELD(h.index), 16, SG_WC_LOC_QP_OP_ERR }, /* of the next pass */
    };
    struct bad_requests_row r;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        r = rows[i];
        for (unsigned op = r.opcode; op < ALL_OPCODES; op++) {
            r.opcode = (uint8_t)op;
            refuse_rows(&r, 1);
        }
    }
}

static void unknown_opcodes(void)
{
    unsigned op;

    for (op = ALL_OPCODES; op < 256; op++) {
        const struct bad_requests_row r = { SG_WR_SEND, FIELD(h.opcode), op, SG_WC_LOC_QP_OP_ERR };

        refuse_rows(&r, 1);
    }
}

/* INLINE with opcodes that send no payload, and with too much payload. */
static void inline_data(void)
{
    static const bool allowed[ALL_OPCODES] = {
        [SG_WR_SEND] = true,      [SG_WR_SEND_INV] = true,     [SG_WR_WRITE] = true,
        [SG_WR_WRITE_IMM] = true, [SG_WR_ATOMIC_WRITE] = true,
    };
    for (unsigned op = 0; op < ALL_OPCODES; op++) {
        const struct bad_requests_row length = { (uint8_t)op, FIELD(h.inline_len),
                                                 SG_MAX_INLINE + 1, SG_WC_LOC_LEN_ERR };
        struct bad_requests_row r = { (uint8_t)op, FIELD(h.flags), SG_WQE_SIGNALED | SG_WQE_INLINE,
                                      SG_WC_LOC_QP_OP_ERR };

        if (!allowed[op]) {
            refuse_rows(&r, 1);
            continue;
        }
        /* One row sets both flags and inline_len, with the octets between them. */
        r = length;
        r.name = "flags INLINE, inline_len";
        r.offset = offsetof(struct entry, h.flags);
        r.size = 5;
        r.value = SG_WQE_SIGNALED | SG_WQE_INLINE | (uint64_t)(SG_MAX_INLINE + 1) << 24;
        refuse_rows(&r, 1);
        r.value |= 0xffffull << 24;
        refuse_rows(&r, 1);
    }
}

/* ---- elements ---- */

static void elements(void)
{
    static const uint8_t ops[] = { SG_WR_SEND, SG_WR_WRITE, SG_WR_WRITE_IMM, SG_WR_READ };
    static const struct bad_requests_row rows[] = {
        { 0, FIELD(h.num_sge), SG_SQ_MAX_SGE + 1, SG_WC_LOC_LEN_ERR },
        { 0, FIELD(h.num_sge), 255, SG_WC_LOC_LEN_ERR },
        { 0, FIELD(sge[0].lkey), 1, SG_WC_LOC_PROT_ERR },
        { 0, FIELD(sge[1].lkey), UINT32_MAX, SG_WC_LOC_PROT_ERR },
        { 0, FIELD(sge[0].addr), 0, SG_WC_LOC_PROT_ERR },
        { 0, FIELD(sge[1].addr), UINT64_MAX, SG_WC_LOC_PROT_ERR },
        { 0, FIELD(sge[1].addr), UINT64_MAX - 10, SG_WC_LOC_PROT_ERR },
        { 0, FIELD(sge[0].length), PAIR_BUF, SG_WC_LOC_PROT_ERR },
        { 0, FIELD(sge[1].length), UINT32_MAX, SG_WC_LOC_PROT_ERR },
    };
    size_t i, k;

    for (i = 0; i < SG_ARRAY_SIZE(ops); i++) {
        for (k = 0; k < SG_ARRAY_SIZE(rows); k++) {
            struct bad_requests_row r = rows[k];

            r.opcode = ops[i];
            refuse_rows(&r, 1);
        }
    }
}

/* Sinks of answers. */
static void sinks(void)
{
    static const struct {
        uint8_t opcode;
        size_t sge;
    } ops[] = {
        { SG_WR_READ, offsetof(struct entry, sge[1]) },
        { SG_WR_FETCH_ADD, offsetof(struct entry, atomic.sge) },
        { SG_WR_CMP_SWAP, offsetof(struct entry, atomic.sge) },
        { SG_WR_VERIFY, offsetof(struct entry, place.sge) },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(ops); i++) {
        struct bad_requests_row r = { ops[i].opcode,
                                      "lkey without LOCAL_WRITE",
                                      ops[i].sge + offsetof(struct sg_sge, lkey),
                                      4,
                                      0,
                                      SG_WC_LOC_PROT_ERR };

        begin_row(); /* numbers are the same in each world */
        r.value = o.read_only;
        end_row();
        refuse_rows(&r, 1);
        r.name = "address";
        r.offset = ops[i].sge;
        r.size = 8;
        r.value = nowhere;
        refuse_rows(&r, 1);
        r.value = UINT64_MAX - 3;
        refuse_rows(&r, 1);
    }
}

/* ---- one opcode each ---- */

static void regions(void)
{
    static const struct bad_requests_row rows[] = {
        { SG_WR_READ_INV, FIELD(h.num_sge), 2, SG_WC_LOC_LEN_ERR },
        { SG_WR_READ_INV, FIELD(sge[0].lkey), 1, SG_WC_LOC_PROT_ERR },
        { SG_WR_LOCAL_INV, FIELD(h.inv_stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_LOCAL_INV, FIELD(h.inv_stag), UINT32_MAX, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.stag), UINT32_MAX, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.access), 0x200, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.access), SG_ACCESS_VERIFY, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.access), SG_ACCESS_FLUSH_PERSISTENT, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.access), UINT32_MAX, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.va), UINT64_MAX - 4000, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.length), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.length), FR_PAGES * SG_PAGE_SIZE + 1, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.length), UINT64_MAX, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.pbl_addr), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.pbl_addr), TEST_HOST_BASE + 4, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.pbl_addr), UINT64_MAX - 7, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.npages), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.npages), FR_PAGES + 1, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.npages), UINT32_MAX, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.page_shift), 11, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.page_shift), 30, SG_WC_MW_BIND_ERR }, /* pages not aligned */
        { SG_WR_REG_MR, FIELD(reg.page_shift), 31, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.page_shift), 255, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.stag), UINT32_MAX, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.mr_stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.access), SG_ACCESS_LOCAL_WRITE, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.access), SG_ACCESS_VERIFY, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.access), 1u << 31, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.reserved_96), 1, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_BIND_MW, FIELD(bind.va), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.va), UINT64_MAX, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.length), 0, SG_WC_MW_BIND_ERR }, /* type 2 */
        { SG_WR_BIND_MW, FIELD(bind.length), 8193, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.length), UINT64_MAX, SG_WC_MW_BIND_ERR },
    };

    REFUSE(rows);
}

/* Names of objects of another kind. */
static void kinds(void)
{
    struct bad_requests_row rows[] = {
        { SG_WR_LOCAL_INV, FIELD(h.inv_stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_REG_MR, FIELD(reg.stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.mr_stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.mr_stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_BIND_MW, FIELD(bind.mr_stag), 0, SG_WC_MW_BIND_ERR },
        { SG_WR_SEND, FIELD(sge[0].lkey), 0, SG_WC_LOC_PROT_ERR },
        { SG_WR_SEND, FIELD(sge[0].lkey), 0, SG_WC_LOC_PROT_ERR },
    };

    begin_row();
    rows[0].value = o.region;
    rows[1].value = o.region;
    rows[2].value = o.window;
    rows[3].value = o.valid_fast; /* is registered */
    rows[4].value = o.region;
    rows[5].value = o.window;
    rows[6].value = o.fast;      /* is not registered */
    rows[7].value = o.read_only; /* without MW_BIND */
    rows[8].value = o.window;
    rows[9].value = o.fast;
    end_row();
    REFUSE(rows);
}

static void extensions(void)
{
    static const struct bad_requests_row rows[] = {
        { SG_WR_SEND_IMM, FIELD(h.num_sge), 1, SG_WC_LOC_LEN_ERR },
        { SG_WR_SEND_IMM, FIELD(h.num_sge), 255, SG_WC_LOC_LEN_ERR },
        { SG_WR_FETCH_ADD, FIELD(h.num_sge), 0, SG_WC_LOC_LEN_ERR },
        { SG_WR_FETCH_ADD, FIELD(h.num_sge), 2, SG_WC_LOC_LEN_ERR },
        { SG_WR_FETCH_ADD, FIELD(atomic.sge.length), 0, SG_WC_LOC_LEN_ERR },
        { SG_WR_FETCH_ADD, FIELD(atomic.sge.length), 7, SG_WC_LOC_LEN_ERR },
        { SG_WR_CMP_SWAP, FIELD(atomic.sge.length), 9, SG_WC_LOC_LEN_ERR },
        { SG_WR_CMP_SWAP, FIELD(atomic.sge.length), UINT32_MAX, SG_WC_LOC_PROT_ERR },
        { SG_WR_FLUSH, FIELD(h.num_sge), 1, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_FLUSH, FIELD(h.inv_stag), 1, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_FLUSH, FIELD(place.op.flags), 0, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_FLUSH, FIELD(place.op.flags), SG_FLUSH_REGION, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_FLUSH, FIELD(place.op.flags), 8 | SG_FLUSH_GLOBAL, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_FLUSH, FIELD(place.op.flags), UINT32_MAX, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_FLUSH, FIELD(place.op.hash_len), 1, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_FLUSH, FIELD(place.op.hash_len), 255, SG_WC_LOC_LEN_ERR },
        { SG_WR_VERIFY, FIELD(h.num_sge), 2, SG_WC_LOC_LEN_ERR },
        { SG_WR_VERIFY, FIELD(h.inv_stag), 1, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_VERIFY, FIELD(place.op.flags), 1, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_VERIFY, FIELD(place.op.hash_len), SG_HASH_MAX + 1, SG_WC_LOC_LEN_ERR },
        { SG_WR_VERIFY, FIELD(place.sge.length), 0, SG_WC_LOC_LEN_ERR },
        { SG_WR_ATOMIC_WRITE, FIELD(h.num_sge), 0, SG_WC_LOC_LEN_ERR },
        { SG_WR_ATOMIC_WRITE, FIELD(h.num_sge), 2, SG_WC_LOC_LEN_ERR },
        { SG_WR_ATOMIC_WRITE, FIELD(h.inv_stag), 1, SG_WC_LOC_QP_OP_ERR },
        { SG_WR_ATOMIC_WRITE, FIELD(sge[0].length), 7, SG_WC_LOC_LEN_ERR },
        { SG_WR_ATOMIC_WRITE, FIELD(sge[0].length), 9, SG_WC_LOC_LEN_ERR },
        { SG_WR_ATOMIC_WRITE, FIELD(sge[0].lkey), 1, SG_WC_LOC_PROT_ERR },
    };

    REFUSE(rows);
}

/* ---- the peer's memory ---- */

/* The peer's adapter refuses these: its Terminate gives the status, and it touched no memory. */
static void remote_fields(void)
{
    static const struct {
        uint8_t opcode, status;
    } ops[] = {
        { SG_WR_READ, SG_WC_REM_ACCESS_ERR },     { SG_WR_FETCH_ADD, SG_WC_REM_ACCESS_ERR },
        { SG_WR_CMP_SWAP, SG_WC_REM_ACCESS_ERR }, { SG_WR_FLUSH, SG_WC_REM_ACCESS_ERR },
        { SG_WR_VERIFY, SG_WC_REM_ACCESS_ERR },   { SG_WR_ATOMIC_WRITE, SG_WC_REM_ACCESS_ERR },
    };
    static const struct bad_requests_row rows[] = {
        { 0, FIELD(h.rkey), 0, 0 },
        { 0, FIELD(h.rkey), UINT32_MAX, 0 },
        { 0, FIELD(h.remote_addr), 0, 0 },
        { 0, FIELD(h.remote_addr), UINT64_MAX - 3, 0 }, /* wraps */
        { 0, FIELD(h.remote_addr), UINT64_MAX - 4095, 0 },
    };
    size_t i, k;

    for (i = 0; i < SG_ARRAY_SIZE(ops); i++) {
        for (k = 0; k < SG_ARRAY_SIZE(rows); k++) {
            struct bad_requests_row r = rows[k];

            r.opcode = ops[i].opcode;
            r.status = ops[i].status;
            refuse_rows(&r, 1);
        }
    }
}

static const struct t_case cases[] = {
    { "entries with which nothing is wrong", good_ones },
    { "each field of the header, of every opcode", header },
    { "opcodes that there are not", unknown_opcodes },
    { "INLINE: where it may not be, and too long", inline_data },
    { "each field of an element", elements },
    { "sinks that may not be written", sinks },
    { "regions and windows: each field", regions },
    { "regions and windows: of another kind", kinds },
    { "Atomics, Immediate Data, Flush, Verify, Atomic Write: each field", extensions },
    { "the peer's STag and Tagged Offset", remote_fields },
};

T_MAIN(cases)
