/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invalid input from the guest and from the wire to the device in QEMU: invalid descriptors, rings
 * and doorbells, DMA to devices and to unmapped addresses, floods of register accesses and frames.
 * The adapter must report a clear status where one is due, must not harm other queue pairs, and
 * must work again after a reset at the latest.
 */
#include <glib.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

struct garbage_pair {
    struct machine *m;
    struct qtest_side a, b;
};

static struct garbage_pair pair;
static uint64_t random_state;

static uint32_t rnd(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % below;
}

static void start(void)
{
    random_state = 1;
    pair.m = machine_start(2, "", "");
    side_start(&pair.a, &pair.m->f[0]);
    side_start(&pair.b, &pair.m->f[1]);
}

/* Brings both sides up anew, whatever their state is. */
static void start_over(void)
{
    side_start(&pair.a, &pair.m->f[0]);
    side_start(&pair.b, &pair.m->f[1]);
    sides_connect(&pair.a, &pair.b, 4000);
}

static struct md_wr good_send(void)
{
    return (struct md_wr){
        .opcode = SG_WR_SEND,
        .wr_id = 42,
        .addr = pair.a.buffer,
        .len = 64,
        .lkey = pair.a.stag,
    };
}

/* Checks that a Send arrives. */
static void expect_working(void)
{
    struct md_wr w = good_send();
    struct sg_cqe c;

    memset(side_ptr(&pair.a, 0), 0x33, 64);
    memset(side_ptr(&pair.b, 0), 0, 64);
    md_post_recv(&pair.b.qp, 1, pair.b.buffer, 64, pair.b.stag);
    md_post_send(&pair.a.qp, &w);
    c = side_completion(&pair.a, 100);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    c = side_completion(&pair.b, 100);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    T_EQ_MEM(side_ptr(&pair.b, 0), side_ptr(&pair.a, 0), 64);
}

/* ---- send queue entries ---- */

static struct sg_sge *first_sge(struct sg_wqe_hdr *h)
{
    return (struct sg_sge *)(h + 1);
}

static void opcode_bind_mw(struct sg_wqe_hdr *h)
{
    h->opcode = SG_WR_BIND_MW;
}
static void opcode_flush(struct sg_wqe_hdr *h)
{
    h->opcode = SG_WR_FLUSH;
}
static void opcode_atomic_write(struct sg_wqe_hdr *h)
{
    h->opcode = SG_WR_ATOMIC_WRITE;
}
static void opcode_unknown(struct sg_wqe_hdr *h)
{
    h->opcode = 0xff;
}
static void opcode_reg_mr(struct sg_wqe_hdr *h)
{
    h->opcode = SG_WR_REG_MR;
}
static void flags_unknown(struct sg_wqe_hdr *h)
{
    h->flags |= 0x80;
}
static void reserved(struct sg_wqe_hdr *h)
{
    h->reserved_88 = 1;
}
static void index_ahead(struct sg_wqe_hdr *h)
{
    sg_put_le32(&h->index, 1);
}
static void index_old(struct sg_wqe_hdr *h)
{
    sg_put_le32(&h->index, UINT32_MAX);
}
static void elements_17(struct sg_wqe_hdr *h)
{
    h->num_sge = SG_SQ_MAX_SGE + 1;
}
static void elements_255(struct sg_wqe_hdr *h)
{
    h->num_sge = 255;
}
static void lkey_0(struct sg_wqe_hdr *h)
{
    sg_put_le32(&first_sge(h)->lkey, 0);
}
static void lkey_wrong(struct sg_wqe_hdr *h)
{
    first_sge(h)->lkey ^= GUINT32_TO_LE(1u << 24);
}
static void address_wraps(struct sg_wqe_hdr *h)
{
    sg_put_le64(&first_sge(h)->addr, -10ull);
}
static void length_huge(struct sg_wqe_hdr *h)
{
    sg_put_le32(&first_sge(h)->length, ~0u);
}

static void inline_long(struct sg_wqe_hdr *h)
{
    h->flags |= SG_WQE_INLINE;
    sg_put_le16(&h->inline_len, SG_MAX_INLINE + 1);
}

static void inline_read(struct sg_wqe_hdr *h)
{
    h->opcode = SG_WR_READ;
    h->flags |= SG_WQE_INLINE;
}

static void read_inv_two(struct sg_wqe_hdr *h)
{
    h->opcode = SG_WR_READ_INV;
    h->num_sge = 2;
}

static void address_below(struct sg_wqe_hdr *h)
{
    sg_put_le64(&first_sge(h)->addr, pair.a.buffer - 1);
}

static void address_behind(struct sg_wqe_hdr *h)
{
    sg_put_le64(&first_sge(h)->addr, pair.a.buffer + SIDE_BUFFER - 63);
}

static void send_entries(void)
{
    static const struct {
        const char *name;
        void (*spoil)(struct sg_wqe_hdr *h);
        uint8_t status;
    } rows[] = {
        { "opcode BIND_MW", opcode_bind_mw, SG_WC_LOC_QP_OP_ERR },
        { "opcode FLUSH", opcode_flush, SG_WC_LOC_QP_OP_ERR },
        { "opcode ATOMIC_WRITE", opcode_atomic_write, SG_WC_LOC_LEN_ERR }, /* 64 octets */
        { "opcode 0xff", opcode_unknown, SG_WC_LOC_QP_OP_ERR },
        { "opcode REG_MR without KERNEL", opcode_reg_mr, SG_WC_LOC_QP_OP_ERR },
        { "unknown flag", flags_unknown, SG_WC_LOC_QP_OP_ERR },
        { "reserved octet", reserved, SG_WC_LOC_QP_OP_ERR },
        { "index ahead", index_ahead, SG_WC_LOC_QP_OP_ERR },
        { "index of another pass", index_old, SG_WC_LOC_QP_OP_ERR },
        { "17 elements", elements_17, SG_WC_LOC_LEN_ERR },
        { "255 elements", elements_255, SG_WC_LOC_LEN_ERR },
        { "inline too long", inline_long, SG_WC_LOC_LEN_ERR },
        { "inline Read", inline_read, SG_WC_LOC_QP_OP_ERR },
        { "Read with invalidate into two elements", read_inv_two, SG_WC_LOC_LEN_ERR },
        { "lkey 0", lkey_0, SG_WC_LOC_PROT_ERR },
        { "lkey of nothing", lkey_wrong, SG_WC_LOC_PROT_ERR },
        { "address below", address_below, SG_WC_LOC_PROT_ERR },
        { "address behind", address_behind, SG_WC_LOC_PROT_ERR },
        { "address wraps", address_wraps, SG_WC_LOC_PROT_ERR },
        { "length 2^32 - 1", length_huge, SG_WC_LOC_PROT_ERR },
    };
    unsigned i;

    start();
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct sg_wqe_hdr *slot;
        struct sg_cqe c;
        struct md_wr w;

        T_CONTEXT("%s", rows[i].name);
        start_over();
        w = good_send();
        slot = md_sq_entry(&pair.a.qp); /* where md_post_send() puts it ... */
        pair.a.qp.sq.prod--;
        pair.a.md.hold = true;
        md_post_recv(&pair.a.qp, 5, pair.a.buffer, 64, pair.a.stag);
        pair.a.qp.sq.prod++;
        slot->opcode = w.opcode;
        slot->flags = SG_WQE_SIGNALED;
        slot->num_sge = 1;
        sg_put_le64(&slot->wr_id, w.wr_id);
        sg_put_le64(&first_sge(slot)->addr, w.addr);
        sg_put_le32(&first_sge(slot)->length, w.len);
        sg_put_le32(&first_sge(slot)->lkey, w.lkey);
        rows[i].spoil(slot);
        pair.a.md.hold = false;
        md_sq_doorbell(&pair.a.qp);
        c = side_completion(&pair.a, 100);
        T_EQ_U64(c.status, rows[i].status);
        T_EQ_U64(sg_get_le64(&c.wr_id), w.wr_id);
        c = side_completion(&pair.a, 100);
        T_EQ_U64(c.status, SG_WC_FLUSH_ERR); /* the receive behind it */
        T_EQ_U64(md_qp_state(&pair.a.qp), SG_QP_ERROR);
        T_FALSE(md_poll(&pair.b.cq, &c));
        side_event(&pair.b, SG_EV_QP_FATAL, 100);
    }
    machine_stop(pair.m);
}

/* ---- memory that is not memory ---- */

static const uint64_t own_config = MACHINE_CONFIG_0;

static unsigned strange_places(uint64_t *at)
{
    return machine_strange_places(pair.m, at);
}

/* Unless the guest has just overwritten its own configuration space, the function answers. */
static void expect_alive(struct function *f, uint64_t place)
{
    uint32_t magic = function_readl(f, SG_REG_MAGIC);

    T_TRUE(magic == SG_MAGIC || place == own_config);
}

static uint32_t try_reg_mr(struct qtest_side *s, uint64_t at)
{
    struct sg_cmd_reg_mr c =
        md_reg_mr_cmd(s->pd, at, SG_PAGE_SIZE,
                      SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE);
    struct sg_admin_rsp rsp;

    return md_cmd(&s->md, &c, sizeof(c), &rsp) == SG_OK ? sg_get_le32(&rsp.id) : 0;
}

/* Payload read from, and placed into, strange places, at both ends. */
static void strange_payload(void)
{
    uint64_t places[MACHINE_PLACES];
    unsigned n, i, k;

    start();
    n = strange_places(places);
    for (i = 0; i < n; i++) {
        T_CONTEXT("memory at 0x%" PRIx64, places[i]);
        for (k = 0; k < 4; k++) {
            uint32_t here, there;
            struct sg_cqe c;

            start_over();
            here = try_reg_mr(&pair.a, places[i]);
            there = try_reg_mr(&pair.b, places[i]);
            md_post_recv(&pair.b.qp, 1, k == 1 ? places[i] : pair.b.buffer, 4000,
                         k == 1 ? there : pair.b.stag);
            md_post_send(&pair.a.qp, &(struct md_wr){
                                         .opcode = k < 2    ? SG_WR_SEND
                                                   : k == 2 ? SG_WR_WRITE
                                                            : SG_WR_READ,
                                         .addr = k == 0 ? places[i] : pair.a.buffer,
                                         .len = 4000,
                                         .lkey = k == 0 ? here : pair.a.stag,
                                         .raddr = places[i],
                                         .rkey = there,
                                     });
            if (!side_has_completion(&pair.a, &c, 20)) {
                T_EQ_U64(places[i], own_config);
            }
            machine_pass(pair.m, 2);
            expect_alive(&pair.m->f[0], places[i]);
            if (places[i] == own_config) {
                machine_reset(pair.m);
            }
        }
        /* A write may have hit any register of any device on the way. */
        machine_reset(pair.m);
    }
    start_over();
    expect_working();
    machine_stop(pair.m);
}

static void strange_rings(void)
{
    uint64_t places[MACHINE_PLACES];
    unsigned n, i;

    start();
    n = strange_places(places);
    for (i = 0; i < n; i++) {
        struct sg_cmd_create_cq cq;
        struct sg_cmd_create_qp qp;
        struct sg_cmd_create_eq eq = { .hdr.opcode = SG_ADMIN_CREATE_EQ };
        struct sg_admin_rsp rsp;

        T_CONTEXT("rings at 0x%" PRIx64, places[i]);
        start_over();
        sg_put_le64(&eq.base, places[i]);
        sg_put_le32(&eq.entries, 64);
        sg_put_le32(&eq.eqn, 2);
        md_cmd(&pair.a.md, &eq, sizeof(eq), NULL);
        cq = md_create_cq_cmd(&pair.a.md, 64);
        sg_put_le64(&cq.pages.addr, places[i]);
        sg_put_le64(&cq.record, places[i]);
        if (md_cmd(&pair.a.md, &cq, sizeof(cq), &rsp) != SG_OK) {
            continue;
        }
        qp = md_create_qp_cmd(&pair.a.md, &(struct md_qp_params){
                                              .pd = pair.a.pd,
                                              .scq = &pair.a.cq,
                                              .rcq = &pair.a.cq,
                                              .entries = 2,
                                              .stride = 64,
                                          });
        sg_put_le32(&qp.send_cqn, sg_get_le32(&rsp.id));
        sg_put_le64(&qp.rq_pages.addr, places[i]);
        if (md_cmd(&pair.a.md, &qp, sizeof(qp), &rsp) == SG_OK) {
            struct md_qp q = { .md = &pair.a.md, .qpn = sg_get_le32(&rsp.id) };

            /* In error, so that entries are fetched, flushed and completed. */
            md_modify_qp(&q, SG_QP_ERROR);
            md_doorbell(&pair.a.md, 0, SG_DB_RQ, q.qpn, 2);
            md_doorbell(&pair.a.md, 0, SG_DB_SQ, q.qpn, 2);
            machine_pass(pair.m, 2);
        }
        expect_alive(&pair.m->f[0], places[i]);
        machine_reset(pair.m);
    }
    start_over();
    expect_working();
    machine_stop(pair.m);
}

/* Answers of commands, and admin and event rings, in the adapter's own BARs. */
static void strange_answers(void)
{
    uint64_t places[MACHINE_PLACES];
    unsigned n, i, k;

    start();
    n = strange_places(places);
    for (i = 0; i < n; i++) {
        struct sg_cmd_query q = { .hdr.opcode = SG_ADMIN_QUERY_STATS };
        struct function *f = &pair.m->f[0];
        struct sg_admin_rsp rsp = { 0 };

        T_CONTEXT("answers at 0x%" PRIx64, places[i]);
        side_start(&pair.a, f);
        sg_put_le64(&q.out_addr, places[i]);
        sg_put_le32(&q.out_len, 4096);
        md_submit(&pair.a.md, &q, sizeof(q));
        machine_settle(pair.m);
        if (md_reap(&pair.a.md, &rsp)) {
            T_TRUE(rsp.status == SG_OK || rsp.status == SG_EFAULT);
        } else {
            T_EQ_U64(places[i], own_config);
            machine_reset(pair.m);
        }
        for (k = 0; k < 3; k++) {
            function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
            md_setup_rings(&pair.a.md);
            function_writeq(f,
                            k == 0   ? SG_REG_ASQ_BASE_LO
                            : k == 1 ? SG_REG_ACQ_BASE_LO
                                     : SG_REG_AEQ_BASE_LO,
                            places[i]);
            function_writel(f, SG_REG_CTRL, SG_CTRL_ENABLE);
            function_writel(f, SG_REG_EQ_DB, SG_EQ_DB_ARM);
            function_writel(f, SG_REG_ADMIN_DB, 3);
            machine_pass(pair.m, 2);
            expect_alive(f, places[i]);
        }
        machine_reset(pair.m);
    }
    start_over();
    expect_working();
    machine_stop(pair.m);
}

/* ---- doorbells ---- */

static void doorbells_of_others(void)
{
    struct md_qp mine;
    struct sg_cqe c;
    unsigned i;

    start();
    start_over();
    md_create_qp(&pair.a.md, &mine,
                 &(struct md_qp_params){
                     .pd = pair.a.pd,
                     .scq = &pair.a.cq,
                     .rcq = &pair.a.cq,
                     .uar = 5,
                 });
    T_EQ_U64(md_modify_qp(&mine, SG_QP_ERROR), SG_OK);
    machine_guest_errors(pair.m);
    for (i = 0; i < SG_UAR_COUNT; i += i < 10 ? 1 : 101) {
        if (i != 5) {
            T_CONTEXT("page %u", i);
            function_doorbell(pair.a.f, i, SG_DB_SQ, mine.qpn | 1ull << 32);
            function_doorbell(pair.a.f, i, SG_DB_RQ, mine.qpn | 1ull << 32);
            T_EQ_U64(machine_guest_errors(pair.m), 2);
            T_FALSE(side_has_completion(&pair.a, &c, 0));
        }
    }
    function_doorbell(pair.a.f, 1, SG_DB_CQ_ARM, pair.a.cq.cqn);
    T_EQ_U64(machine_guest_errors(pair.m), 1);
    function_doorbell(pair.a.f, 5, SG_DB_RQ, mine.qpn | 1ull << 32);
    machine_settle(pair.m);
    T_TRUE(side_has_completion(&pair.a, &c, 1));
    T_EQ_U64(c.status, SG_WC_FLUSH_ERR);
    expect_working();
    machine_stop(pair.m);
}

static void doorbells_odd(void)
{
    uint64_t at;
    unsigned i;

    start();
    start_over();
    at = pair.a.f->doorbells;
    machine_guest_errors(pair.m);
    for (i = 0; i < SG_UAR_SIZE; i += 8) {
        qtest_writeb(pair.m->q, at + i, 0xff);
        qtest_writew(pair.m->q, at + i + 2, 0xffff);
        qtest_writel(pair.m->q, at + i + 4, UINT32_MAX);
        if (i > SG_DB_CQ_ARM) {
            qtest_writeq(pair.m->q, at + i, pair.a.qp.qpn | 1ull << 32);
        }
    }
    T_EQ_U64(machine_guest_errors(pair.m), 4 * (SG_UAR_SIZE / 8) - 4);
    for (i = 0; i < 4; i++) {
        T_CONTEXT("doorbell %u of nobody", i);
        function_doorbell(pair.a.f, 0, 8 * i, UINT64_MAX);
        function_doorbell(pair.a.f, 0, 8 * i, 0);
        T_EQ_U64(machine_guest_errors(pair.m), 2);
    }
    expect_working();
    machine_stop(pair.m);
}

/* A producer index beyond the ring ends its queue pair, and no other. */
static void indices_beyond(void)
{
    static const uint32_t ahead[] = { 17, 100, 0x7fffffff };
    struct md_qp other;
    unsigned i, k;

    start();
    for (i = 0; i < G_N_ELEMENTS(ahead); i++) {
        for (k = 0; k < 2; k++) {
            struct sg_eqe e;

            T_CONTEXT("%s index %u ahead", k ? "receive" : "send", ahead[i]);
            start_over();
            md_create_qp(&pair.a.md, &other,
                         &(struct md_qp_params){
                             .pd = pair.a.pd,
                             .scq = &pair.a.cq,
                             .rcq = &pair.a.cq,
                         });
            function_doorbell(pair.a.f, 0, k ? SG_DB_RQ : SG_DB_SQ,
                              other.qpn | (uint64_t)ahead[i] << 32);
            e = side_event(&pair.a, SG_EV_QP_FATAL, 10);
            T_EQ_U64(sg_get_le32(&e.id), other.qpn);
            T_EQ_U64(md_qp_state(&other), SG_QP_ERROR);
            expect_working();
        }
    }
    machine_stop(pair.m);
}

/* ---- storms ---- */

static void registers_at_random(void)
{
    unsigned i;

    start();
    start_over();
    for (i = 0; i < 6000; i++) {
        struct function *f = &pair.m->f[0];
        uint32_t offset = rnd(4) ? rnd(0x100) : SG_REG_EQ_DB + rnd(0x110);
        uint64_t value = (uint64_t)rnd(UINT32_MAX) << 32 | (rnd(2) ? rnd(256) : rnd(UINT32_MAX));

        if (rnd(2)) {
            offset &= ~3u;
        }
        switch (rnd(8)) {
        case 0:
            qtest_readl(pair.m->q, f->regs + offset);
            break;
        case 1:
            qtest_readq(pair.m->q, f->regs + offset);
            break;
        case 2:
            qtest_writeb(pair.m->q, f->regs + offset, value);
            break;
        case 3:
            qtest_writeq(pair.m->q, f->regs + offset, value);
            break;
        case 4:
            qtest_writeq(pair.m->q, f->doorbells + rnd(SG_DOORBELL_SIZE / 8) * 8, value);
            break;
        default:
            qtest_writel(pair.m->q, f->regs + offset, value);
        }
    }
    function_flr(&pair.m->f[0]);
    start_over();
    expect_working();
    machine_stop(pair.m);
}

/* All queues of one side are overwritten while they are in use. */
static void rings_at_random(void)
{
    unsigned i, k;

    start();
    for (k = 0; k < 12; k++) {
        struct md_ring *rings[] = { &pair.a.md.asq,  &pair.a.md.acq, &pair.a.md.aeq, &pair.a.md.eq,
                                    &pair.a.cq.ring, &pair.a.qp.sq,  &pair.a.qp.rq };

        T_CONTEXT("round %u", k);
        start_over();
        for (i = 0; i < 60; i++) {
            struct md_ring *r = rings[rnd(G_N_ELEMENTS(rings))];
            uint8_t *p = machine_ptr(pair.m, r->base);
            unsigned n = 1 + rnd(64);

            while (n--) {
                p[rnd(r->entries * r->stride)] = rnd(256);
            }
            function_writel(&pair.m->f[0], SG_REG_ADMIN_DB, ++pair.a.md.asq.prod);
            function_writel(&pair.m->f[0], SG_REG_ADMIN_CI, ++pair.a.md.acq.cons);
            function_doorbell(&pair.m->f[0], 0, SG_DB_SQ,
                              pair.a.qp.qpn | (uint64_t)++pair.a.qp.sq.prod << 32);
            function_doorbell(&pair.m->f[0], 0, SG_DB_RQ,
                              pair.a.qp.qpn | (uint64_t)++pair.a.qp.rq.prod << 32);
            function_doorbell(&pair.m->f[0], 0, SG_DB_CQ_ARM,
                              pair.a.cq.cqn | (uint64_t)rnd(8) << 32);
        }
        machine_pass(pair.m, 3);
        T_FALSE(function_readl(&pair.m->f[1], SG_REG_STATUS) & SG_STATUS_FATAL);
    }
    start_over();
    expect_working();
    machine_stop(pair.m);
}

static struct {
    uint8_t frame[16][2048];
    size_t len[16];
    unsigned n;
} seen;

static void keep_frame(struct machine *m, const uint8_t *frame, size_t len)
{
    unsigned slot = seen.n++ % 16;

    (void)m;
    seen.len[slot] = SG_MIN(len, sizeof(seen.frame[0]));
    memcpy(seen.frame[slot], frame, seen.len[slot]);
}

/* Foreign frames, and changed frames of the connection: TCP and CRC detect them. */
static void frames_at_random(void)
{
    uint8_t frame[2048];
    unsigned i, k;

    start();
    pair.m->tap = keep_frame;
    start_over();
    for (i = 0; i < 1500; i++) {
        size_t len = 14 + rnd(1500);

        if (seen.n && rnd(3)) {
            unsigned from = rnd(SG_MIN(seen.n, 16u));

            len = seen.len[from];
            memcpy(frame, seen.frame[from], len);
            for (k = rnd(6); k; k--) {
                frame[rnd(len)] ^= 1 << rnd(8);
            }
            len = rnd(8) ? len : 1 + rnd(len);
        } else {
            for (k = 0; k < len; k++) {
                frame[k] = rnd(256);
            }
            memcpy(frame, "\x52\x54\0\0\0", 5);
            frame[5] = 1 + rnd(2);
            sg_put_be16(frame + 12, rnd(2) ? 0x0800 : 0x0806);
        }
        machine_wire_send(pair.m, frame, len);
        if (i % 50 == 0) {
            machine_settle(pair.m);
            expect_working();
        }
    }
    machine_settle(pair.m);
    expect_working();
    machine_stop(pair.m);
}

static const struct t_case cases[] = {
    { "descriptors: send entries wrong in one way", send_entries },
    { "DMA: payload in devices, in unmapped memory", strange_payload },
    { "DMA: queues in devices, in unmapped memory", strange_rings },
    { "DMA: admin and event rings in devices, in unmapped memory", strange_answers },
    { "doorbells: of other pages", doorbells_of_others },
    { "doorbells: odd sizes, holes, queues of nobody", doorbells_odd },
    { "doorbells: indices beyond the ring end one queue pair", indices_beyond },
    { "storm: registers and doorbells", registers_at_random },
    { "storm: rings overwritten in use", rings_at_random },
    { "storm: frames on the wire", frames_at_random },
};

T_MAIN(cases)
