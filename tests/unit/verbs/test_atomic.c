/* SPDX-License-Identifier: GPL-2.0-or-later */
/* FETCH_ADD and CMP_SWAP as work requests, and as the responder's verbs execute them. */
#include "mpe_rig.h"

enum { RIGHTS = ALL_RIGHTS | SG_ACCESS_REMOTE_ATOMIC, SINK = PAIR_BUF - 64, WORD = 8 };

static const uint64_t all_ones = UINT64_MAX;

/* An Atomic of side 0 on side 1's memory; sink: where the original value goes. */
struct atomic_op {
    uint8_t opcode, flags;
    uint64_t id;
    uint32_t rkey;
    uint64_t raddr;
    uint64_t data, mask, cmp, cmp_mask;
    uint32_t sink, room; /* offset in side 0's buffer; 0: SINK, 8 octets */
};

/* Returns the entry, for which the doorbell is not yet rung. */
static struct sg_wqe_hdr *build_op(const struct atomic_op *o)
{
    struct pair_side *s = &pair.side[0];
    struct sg_wqe_hdr *h = md_sq_entry(&s->qp);
    struct sg_wqe_atomic *w = (struct sg_wqe_atomic *)(h + 1);
    struct sg_sge *sge = (struct sg_sge *)(w + 1);

    sg_put_le64(&h->wr_id, o->id);
    h->opcode = o->opcode;
    h->flags = o->flags | SG_WQE_SIGNALED;
    h->num_sge = 1;
    sg_put_le64(&h->remote_addr, o->raddr);
    sg_put_le32(&h->rkey, o->rkey);
    sg_put_le64(&w->data, o->data);
    sg_put_le64(&w->data_mask, o->mask);
    sg_put_le64(&w->compare, o->cmp);
    sg_put_le64(&w->compare_mask, o->cmp_mask);
    sg_put_le64(&sge->addr, at(0, o->sink ? o->sink : SINK));
    sg_put_le32(&sge->length, o->room ? o->room : WORD);
    sg_put_le32(&sge->lkey, s->stag);
    return h;
}

static void operate(struct atomic_op o)
{
    build_op(&o);
    md_sq_doorbell(&pair.side[0].qp);
}

static struct atomic_op add_of(uint64_t id, uint32_t rkey, uint32_t off, uint64_t n)
{
    return (struct atomic_op){
        .opcode = SG_WR_FETCH_ADD,
        .id = id,
        .rkey = rkey,
        .raddr = at(1, off),
        .data = n,
    };
}

static struct atomic_op swap_of(uint64_t id, uint32_t rkey, uint32_t off, uint64_t cmp,
                                uint64_t data)
{
    return (struct atomic_op){
        .opcode = SG_WR_CMP_SWAP,
        .id = id,
        .rkey = rkey,
        .raddr = at(1, off),
        .data = data,
        .mask = all_ones,
        .cmp = cmp,
        .cmp_mask = all_ones,
    };
}

static uint64_t word(int side, uint32_t off)
{
    return sg_get_le64(pair_buf(&pair, side) + off);
}

static void set_word(int side, uint32_t off, uint64_t value)
{
    sg_put_le64(pair_buf(&pair, side) + off, value);
}

/* ---- what they do ---- */

static void arithmetic(void)
{
    static const struct {
        const char *name;
        uint8_t opcode;
        uint64_t before, data, mask, cmp, cmp_mask, after;
    } rows[] = {
#define ADD SG_WR_FETCH_ADD
#define CAS SG_WR_CMP_SWAP
        { "add", ADD, 40, 2, 0, 0, 0, 42 },
        { "add nothing", ADD, 40, 0, 0, 0, 0, 40 },
        { "add, all 64 bits", ADD, UINT64_MAX, 2, 0, 0, 0, 1 },
        { "add, mask of the top bit", ADD, UINT64_MAX, 2, 1ull << 63, 0, 0, 1 },
        { "two fields of 32", ADD, 0x00000001ffffffff, 0x0000000200000001, 1ull << 31, 0, 0,
          0x0000000300000000 },
        { "eight fields of 8", ADD, 0xff01ff02ff03ff04, 0x0102010201020102, 0x8080808080808080, 0,
          0, 0x0003000400050006 },
        { "fields of one bit", ADD, 0xf0f0, 0xffff, UINT64_MAX, 0, 0, 0x0f0f },
        { "swap, equal", CAS, 7, 9, UINT64_MAX, 7, UINT64_MAX, 9 },
        { "swap, not equal", CAS, 8, 9, UINT64_MAX, 7, UINT64_MAX, 8 },
        { "swap, nothing compared", CAS, 8, 9, UINT64_MAX, 7, 0, 9 },
        { "swap, low half compared", CAS, 0x1234500000007, 9, UINT64_MAX, 7, UINT32_MAX, 9 },
        { "swap of one octet", CAS, 0x1122334455667788, 0xaabb, 0xff, 0, 0, 0x11223344556677bb },
        { "swap of nothing", CAS, 5, 9, 0, 5, UINT64_MAX, 5 },
#undef ADD
#undef CAS
    };
    struct sg_cqe c;
    uint32_t stag;
    size_t i;

    place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS });
    stag = region(1, 0, PAIR_BUF, SG_ACCESS_REMOTE_ATOMIC, 0);
    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        uint32_t off = i & 1 ? 24 : PM_LEN + 24; /* persistent memory, ordinary memory */

        T_CONTEXT("%s", rows[i].name);
        set_word(1, off - 8, 0x5a5a5a5a5a5a5a5a);
        set_word(1, off + 8, 0x5a5a5a5a5a5a5a5a);
        set_word(1, off, rows[i].before);
        set_word(0, SINK, 0);
        operate((struct atomic_op){
            .opcode = rows[i].opcode,
            .id = i,
            .rkey = stag,
            .raddr = at(1, off),
            .data = rows[i].data,
            .mask = rows[i].mask,
            .cmp = rows[i].cmp,
            .cmp_mask = rows[i].cmp_mask,
        });
        c = expect(0, i, SG_WC_SUCCESS);
        T_EQ_U64(c.opcode, rows[i].opcode == SG_WR_FETCH_ADD ? SG_WC_FETCH_ADD : SG_WC_CMP_SWAP);
        T_EQ_U64(sg_get_le32(&c.byte_len), WORD);
        T_EQ_U64(word(1, off), rows[i].after);
        T_EQ_U64(word(0, SINK), rows[i].before);
        T_EQ_U64(word(1, off - 8), 0x5a5a5a5a5a5a5a5a);
        T_EQ_U64(word(1, off + 8), 0x5a5a5a5a5a5a5a5a);
    }
    expect_none(1);
    place_end();
}

/* CPUs change the word meanwhile: none of their changes is lost, and each turn is bounded. */
static void interference(void)
{
    static const unsigned times[] = { 1, 63, 64, 1000 };
    uint32_t stag, off;
    size_t i;

    place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS });
    stag = region(1, 0, PAIR_BUF, SG_ACCESS_REMOTE_ATOMIC, 0);
    for (i = 0; i < 2 * SG_ARRAY_SIZE(times); i++) {
        unsigned n = times[i / 2];

        T_CONTEXT("%u times", n);
        off = i & 1 ? 0 : PM_LEN;
        set_word(1, off, 100);
        pair.side[1].h.interfere = n;
        operate(add_of(i, stag, off, 1000));
        expect(0, i, SG_WC_SUCCESS);
        T_EQ_U64(word(1, off), 1100 + n);
        T_EQ_U64(word(0, SINK), 100 + n);
    }
    place_end();
}

/* On persistent memory the domain executes an Atomic, after all earlier writes. */
static void persistent(void)
{
    struct sg_cqe c;
    uint32_t stag;
    int settled, done;

    place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS });
    stag = region(1, 0, PM_LEN, RIGHTS, SG_HASH_CRC32C);
    pm[1].hold = true;
    set_word(0, 0, 30);
    write_to(1, stag, 0, WORD, 64);
    operate(add_of(2, stag, 64, 12));
    expect(0, 1, SG_WC_SUCCESS);
    c = expect(0, 2, SG_WC_SUCCESS);
    T_EQ_U64(c.opcode, SG_WC_FETCH_ADD);
    T_EQ_U64(word(0, SINK), 30);
    T_EQ_U64(word(1, 64), 42);
    T_EQ_U64(sg_get_le64(media(1, 64)), 0);
    settled = test_pm_find(&pm[1], 0, TEST_PM_SETTLE);
    done = test_pm_find(&pm[1], 0, TEST_PM_CMPXCHG);
    T_TRUE(settled >= 0 && done > settled);
    T_EQ_U64(pm[1].calls[done].addr, at(1, 64));
    T_EQ_U64(pm[1].calls[done].who.qpn, pair.side[1].qp.qpn);
    T_EQ_U64(pm[1].calls[done].who.msn, 1);
    T_EQ_U64(pm[1].calls[done].who.to, at(1, 64));
    ask(flush_of(3, stag, 64, 8, P));
    expect(0, 3, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le64(media(1, 64)), 42);
    place_end();
}

/* ---- rights, STag, bounds, alignment ---- */

static void refused(void)
{
    static const struct {
        const char *name;
        int32_t off;               /* from the region's start, which is at 4096 */
        uint32_t stag_xor, mr, qp; /* mr, qp: rights, 0: all */
        uint8_t type, code;        /* of the Terminate, layer 0; type 0: it works */
        bool far, other_pd;
    } rows[] = {
#define ATOMIC SG_ACCESS_REMOTE_ATOMIC
        { "first word", 0, 0, 0, 0, 0, 0, false, false },
        { "last word", 8184, 0, 0, 0, 0, 0, false, false },
        { "atomic right alone", 0, 0, ATOMIC, ATOMIC, 0, 0, false, false },
        { "no right", 0, 0, RIGHTS & ~ATOMIC, 0, 1, 2, false, false },
        { "no right of the queue pair", 0, 0, 0, RIGHTS & ~ATOMIC, 1, 2, false, false },
        { "beyond", 8192, 0, 0, 0, 1, 1, false, false },
        { "before", -8, 0, 0, 0, 1, 1, false, false },
        { "half beyond", 8188, 0, 0, 0, 1, 1, false, false },
        { "wraps", 0, 0, 0, 0, 1, 4, true, false },
        { "wrong key", 0, 1, 0, 0, 1, 0, false, false },
        { "wrong index", 0, 0x100, 0, 0, 1, 0, false, false },
        { "other domain", 0, 0, 0, 0, 1, 3, false, true },
        { "EXT-06 EXT-08 EXT-32 one octet off", 1, 0, 0, 0, 2, 7, false, false },
        { "EXT-06 EXT-08 EXT-32 four octets off", 4, 0, 0, 0, 2, 7, false, false },
        { "EXT-06 EXT-08 EXT-32 seven octets off", 4095, 0, 0, 0, 2, 7, false, false },
#undef ATOMIC
    };
    static uint8_t untouched[PAIR_BUF];
    uint32_t stag, k;
    struct atomic_op o;
    size_t i;

    memset(untouched, 0x5a, sizeof(untouched));
    for (i = 0; i < 2 * SG_ARRAY_SIZE(rows); i++) {
        k = (uint32_t)i / 2;
        T_CONTEXT("%s, %s", rows[k].name, i & 1 ? "swap" : "add");
        place_begin(NULL, &(struct md_qp_params){ .access = rows[k].qp ? rows[k].qp : RIGHTS });
        if (rows[k].other_pd) {
            pair.side[1].pd = md_create_pd(&pair.side[1].md);
        }
        stag = region(1, 4096, 8192, rows[k].mr ? rows[k].mr : RIGHTS,
                      rows[k].mr == SG_ACCESS_REMOTE_ATOMIC ? 0 : SG_HASH_SHA256);
        memset(pair_buf(&pair, 1), 0x5a, PAIR_BUF);
        o = i & 1 ? swap_of(1, stag ^ rows[k].stag_xor, 0, 0x5a5a5a5a5a5a5a5a, 1)
                  : add_of(1, stag ^ rows[k].stag_xor, 0, 1);
        o.raddr = rows[k].far ? UINT64_MAX - 3 : at(1, 4096) + (int64_t)rows[k].off;
        operate(o);
        if (!rows[k].type) {
            expect(0, 1, SG_WC_SUCCESS);
            place_end();
            continue;
        }
        expect_refused(1, rows[k].type == 1 ? SG_WC_REM_ACCESS_ERR : SG_WC_REM_OP_ERR, 0,
                       rows[k].type, rows[k].code);
        T_EQ_U64(test_pm_count(&pm[1], TEST_PM_CMPXCHG), 0);
        T_EQ_U64(pair_expect(&pair, 1, rows[k].type == 1 ? SG_EV_QP_ACCESS_ERR : SG_EV_QP_REQ_ERR)
                         .event != 0,
                 true);
        T_EQ_MEM(pair_buf(&pair, 1), untouched, PAIR_BUF);
        place_end();
    }
}

/* Zero-based regions: what must be aligned is the address, not the Tagged Offset. */
static void alignment_of_address(void)
{
    static const struct {
        uint32_t start;
        uint64_t to;
        bool works;
    } rows[] = {
        { 4096, 0, true },  { 4096, 4, false }, { 4100, 4, true },
        { 4100, 0, false }, { 4097, 7, true },  { 4097, 8, false },
    };
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;
    struct atomic_op o;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("region at %u, offset %u", rows[i].start, (unsigned)rows[i].to);
        place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS });
        c = region_cmd(1, rows[i].start, 64, SG_ACCESS_REMOTE_ATOMIC | SG_ACCESS_ZERO_BASED, 0);
        T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp), SG_OK);
        o = add_of(1, sg_get_le32(&rsp.id), 0, 5);
        o.raddr = rows[i].to;
        operate(o);
        if (rows[i].works) {
            expect(0, 1, SG_WC_SUCCESS);
            T_EQ_U64(word(1, rows[i].start + (uint32_t)rows[i].to), 5);
        } else {
            expect_refused(1, SG_WC_REM_OP_ERR, 0, 2, 7);
        }
        place_end();
    }
}

/* Memory that does not respond, before and during the exchange. */
static void dead_memory(void)
{
    uint32_t stag;

    place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS });
    stag = region(1, 0, PAIR_BUF, SG_ACCESS_REMOTE_ATOMIC, 0);
    pair.side[1].h.fault_lo = at(1, PM_LEN);
    pair.side[1].h.fault_hi = at(1, PM_LEN + 8);
    operate(add_of(1, stag, PM_LEN, 1));
    expect_refused(1, SG_WC_REM_OP_ERR, 0, 2, 7);
    place_end();
}

/* ---- malformed entries ---- */

enum atomic_field { F_SGES, F_ROOM, F_FLAGS, F_SINK };

static void malformed(void)
{
    static const struct {
        const char *name;
        enum atomic_field field;
        uint32_t value;
        enum sg_wc_status status;
    } rows[] = {
        { "no element", F_SGES, 0, SG_WC_LOC_LEN_ERR },
        { "two elements", F_SGES, 2, SG_WC_LOC_LEN_ERR },
        { "element of 7", F_ROOM, 7, SG_WC_LOC_LEN_ERR },
        { "element of 16", F_ROOM, 16, SG_WC_LOC_LEN_ERR },
        { "element beyond its region", F_ROOM, 1 << 20, SG_WC_LOC_PROT_ERR },
        { "inline", F_FLAGS, SG_WQE_INLINE, SG_WC_LOC_QP_OP_ERR },
        { "unknown flag", F_FLAGS, 0x80, SG_WC_LOC_QP_OP_ERR },
        { "no such sink", F_SINK, 0x12345678, SG_WC_LOC_PROT_ERR },
    };
    struct sg_wqe_hdr *h;
    struct sg_sge *sge;
    uint32_t stag;
    struct atomic_op o;
    size_t i;

    for (i = 0; i < 2 * SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s, %s", rows[i / 2].name, i & 1 ? "swap" : "add");
        place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS });
        stag = region(1, 0, PAIR_BUF, SG_ACCESS_REMOTE_ATOMIC, 0);
        o = i & 1 ? swap_of(7, stag, 0, 0, 1) : add_of(7, stag, 0, 1);
        h = build_op(&o);
        sge = (struct sg_sge *)((struct sg_wqe_atomic *)(h + 1) + 1);
        switch (rows[i / 2].field) {
        case F_SGES:
            h->num_sge = (uint8_t)rows[i / 2].value;
            break;
        case F_ROOM:
            sg_put_le32(&sge->length, rows[i / 2].value);
            break;
        case F_FLAGS:
            h->flags |= (uint8_t)rows[i / 2].value;
            break;
        case F_SINK:
            sg_put_le32(&sge->lkey, rows[i / 2].value);
            break;
        }
        md_sq_doorbell(&pair.side[0].qp);
        expect(0, 7, rows[i / 2].status);
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        T_EQ_U64(word(1, 0), 0);
        place_end();
    }
}

/* Entries as long as their stride allows: 96 octets do not fit into 64. */
static void strides(void)
{
    static const uint16_t stride[] = { 64, 128 };
    uint32_t stag;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(stride); i++) {
        T_CONTEXT("stride %u", stride[i]);
        place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS, .stride = stride[i] });
        stag = region(1, 0, PAIR_BUF, SG_ACCESS_REMOTE_ATOMIC, 0);
        operate(add_of(1, stag, 0, 1));
        expect(0, 1, stride[i] == 64 ? SG_WC_LOC_LEN_ERR : SG_WC_SUCCESS);
        place_end();
    }
}

/* The sink is deregistered while the answer is on its way. */
static void sink_gone(void)
{
    uint32_t sink, stag;
    struct atomic_op o;

    place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS });
    stag = region(1, 0, PAIR_BUF, SG_ACCESS_REMOTE_ATOMIC, 0);
    sink = region(0, 0, 4096, SG_ACCESS_LOCAL_WRITE, 0);
    o = add_of(1, stag, 0, 1);
    pair.side[0].md.hold = true;
    sg_put_le32(&((struct sg_sge *)((struct sg_wqe_atomic *)(build_op(&o) + 1) + 1))->lkey, sink);
    sg_put_le64(
        &((struct sg_sge *)((struct sg_wqe_atomic *)((struct sg_wqe_hdr *)test_host_ptr(
                                                         &pair.side[0].h, pair.side[0].qp.sq.base) +
                                                     1) +
                            1))
             ->addr,
        at(0, 0));
    md_sq_doorbell(&pair.side[0].qp);
    sg_adapter_run(pair.side[0].md.a, 1 << 20);
    pair.side[0].md.hold = false;
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DEREG_MR, sink), SG_OK);
    expect(0, 1, SG_WC_LOC_PROT_ERR);
    T_EQ_U64(word(1, 0), 1);
    place_end();
}

/* ---- order and credits ---- */

/* Many requests of all kinds, more than ORD: in order of submission, each done once. */
static void credits(void)
{
    enum { N = 120 };
    static const uint8_t kinds[] = { SG_WR_FETCH_ADD, SG_WR_READ,  SG_WR_CMP_SWAP,
                                     SG_WR_WRITE,     SG_WR_FLUSH, SG_WR_FETCH_ADD };
    uint64_t counter = 0;
    uint32_t i, stag;

    place_begin(NULL, &(struct md_qp_params){ .entries = 128, .access = RIGHTS });
    pm[1].later = 1;
    pm[1].later_ns = 10000;
    stag = region(1, 0, PM_LEN, RIGHTS, SG_HASH_CRC32C);
    pair.side[0].md.hold = true;
    for (i = 0; i < N; i++) {
        uint8_t kind = kinds[i % SG_ARRAY_SIZE(kinds)];
        struct atomic_op o = add_of(i, stag, 0, 1);

        o.sink = 4096 + 8 * i;
        if (kind == SG_WR_FETCH_ADD) {
            operate(o);
        } else if (kind == SG_WR_CMP_SWAP) {
            o = swap_of(i, stag, 0, i / 3 + (i % 6 > 0), 2 * i);
            o.sink = 4096 + 8 * i;
            operate(o);
        } else if (kind == SG_WR_FLUSH) {
            ask(flush_of(i, stag, 0, 64, P));
        } else {
            post(0, wr(0, kind, i, 2048, 64, 8192));
        }
    }
    pair.side[0].md.hold = false;
    pair_pass(&pair, 1000000000);
    for (i = 0; i < N; i++) {
        uint8_t kind = kinds[i % SG_ARRAY_SIZE(kinds)];
        struct sg_cqe c = expect(0, i, SG_WC_SUCCESS);

        T_EQ_U64(sg_get_le32(&c.wr_index), i);
        if (kind != SG_WR_FETCH_ADD && kind != SG_WR_CMP_SWAP) {
            continue;
        }
        T_EQ_U64(word(0, 4096 + 8 * i), counter);
        if (kind == SG_WR_FETCH_ADD) {
            counter++;
        } else if (counter == i / 3 + (i % 6 > 0)) {
            counter = 2 * i;
        }
    }
    T_EQ_U64(word(1, 0), counter);
    expect_none(0);
    place_end();
}

/* FENCE waits for an Atomic; without it a Write overtakes. */
static void fence(void)
{
    struct md_wr w;
    uint32_t stag;
    int fenced;

    for (fenced = 0; fenced < 2; fenced++) {
        T_CONTEXT("%s", fenced ? "fenced" : "not fenced");
        place_begin(NULL, &(struct md_qp_params){ .access = RIGHTS });
        pm[1].later = 1;
        pm[1].later_ns = 1000000;
        stag = region(1, 0, PM_LEN, RIGHTS, SG_HASH_CRC32C);
        pair_buf(&pair, 0)[0] = 0x99;
        ask(flush_of(1, stag, 0, 64, P)); /* the Atomic waits behind it */
        operate(add_of(2, stag, 64, 1));
        w = wr(0, SG_WR_WRITE, 3, 0, 8, PM_LEN);
        w.flags = fenced ? SG_WQE_FENCE : 0;
        post(0, w);
        pair_settle(&pair);
        T_SHOWS(fenced ? "EXT-23" : NULL) {
            T_EQ_U64(pair_buf(&pair, 1)[PM_LEN], fenced ? 0 : 0x99);
        }
        T_EQ_U64(word(1, 64), 0);
        pair_pass(&pair, 2000000);
        T_EQ_U64(pair_buf(&pair, 1)[PM_LEN], 0x99);
        T_EQ_U64(word(1, 64), 1);
        expect(0, 1, SG_WC_SUCCESS);
        expect(0, 2, SG_WC_SUCCESS);
        expect(0, 3, SG_WC_SUCCESS);
        place_end();
    }
}

/* A second connection between the two sides. */
static void second_connection(struct md_qp qp[2])
{
    enum sg_status status;
    struct sg_eqe e;
    int i;

    for (i = 0; i < 2; i++) {
        struct pair_side *s = &pair.side[i];

        md_create_qp(&s->md, &qp[i],
                     &(struct md_qp_params){
                         .pd = s->pd,
                         .scq = &s->cq,
                         .rcq = &s->cq,
                         .entries = 64,
                         .access = RIGHTS,
                     });
    }
    pair_connect_cmd(&pair, &qp[0], 8, 8, NULL, &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, qp[1].qpn, sg_get_le32(&e.conn), 8, 8, NULL),
             SG_OK);
    pair_expect(&pair, 0, SG_EV_CM_REPLY);
}

/* Two streams and a CPU increment one counter: none is lost, and no two find the same value. */
static void two_streams(void)
{
    enum { N = 50 };
    struct md_qp second[2], first;
    bool seen[2 * N + 8] = { false };
    struct sg_cqe c;
    uint32_t i, stag;

    place_begin(NULL, &(struct md_qp_params){ .entries = 64, .access = RIGHTS });
    second_connection(second);
    stag = region(1, 0, PAIR_BUF, SG_ACCESS_REMOTE_ATOMIC, 0);
    pair.side[0].md.hold = true;
    pair.side[1].h.interfere = 7;
    for (i = 0; i < 2 * N; i++) {
        struct atomic_op o = add_of(i, stag, PM_LEN, 1);

        o.sink = 4096 + 8 * i;
        first = pair.side[0].qp;
        if (i & 1) {
            pair.side[0].qp = second[0];
        }
        operate(o);
        if (i & 1) {
            second[0] = pair.side[0].qp;
            pair.side[0].qp = first;
        }
    }
    pair.side[0].md.hold = false;
    pair_settle(&pair);
    for (i = 0; i < 2 * N; i++) {
        T_TRUE(md_poll(&pair.side[0].cq, &c));
        T_EQ_U64(c.status, SG_WC_SUCCESS);
    }
    T_SHOWS("EXT-02") { /* no two found the same value */
        for (i = 0; i < 2 * N; i++) {
            uint64_t found = word(0, 4096 + 8 * i);

            T_TRUE(found < SG_ARRAY_SIZE(seen) && !seen[found]);
            seen[found] = true;
        }
    }
    T_SHOWS("EXT-22") {
        T_EQ_U64(word(1, PM_LEN), 2 * N + 7);
    }
    for (i = 0; i < 2; i++) {
        T_EQ_U64(md_cmd_id(&pair.side[i].md, SG_ADMIN_DESTROY_QP, second[i].qpn), SG_OK);
    }
    place_end();
}

static const struct t_case cases[] = {
    { "add and swap, with masks", arithmetic },
    { "EXT-02 CPUs that come in between", interference },
    { "EXT-02 two streams and a CPU", two_streams },
    { "an Atomic on persistent memory", persistent },
    { "rights, bounds, alignment", refused },
    { "it is the address that must be aligned", alignment_of_address },
    { "memory that does not respond", dead_memory },
    { "malformed entries", malformed },
    { "strides", strides },
    { "a sink that goes away", sink_gone },
    { "more than ORD, with all else", credits },
    { "fence", fence },
};

T_MAIN(cases)
