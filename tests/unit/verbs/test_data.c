/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two adapters: messages of all kinds, and forbidden ones. */
#include "pair_rig.h"

static void send_both_ways(void)
{
    static const uint32_t sizes[] = { 0, 1, 64, 1000, 1500, 4096, 65536, 130000 };
    struct sg_cqe c;
    size_t i;
    int side;

    begin(NULL);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (side = 0; side < 2; side++) {
            T_CONTEXT("%u octets from side %d", sizes[i], side);
            fill(side, 0, sizes[i], (uint8_t)(i + side));
            recv(!side, 100 + i, 0, 131072);
            post(side, wr(side, SG_WR_SEND, 200 + i, 0, sizes[i], 0));
            c = expect(side, 200 + i, SG_WC_SUCCESS);
            T_EQ_U64(c.opcode, SG_WC_SEND);
            c = expect(!side, 100 + i, SG_WC_SUCCESS);
            T_EQ_U64(c.opcode, SG_WC_RECV);
            T_EQ_U64(sg_get_le32(&c.byte_len), sizes[i]);
            T_TRUE(c.flags_phase & SG_CQE_RECV);
            T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1), sizes[i]);
        }
    }
    end();
}

static void write_and_read(void)
{
    struct sg_cqe c;

    begin(NULL);
    fill(0, 0, 100000, 1);
    post(0, wr(0, SG_WR_WRITE, 1, 5, 99990, 7));
    c = expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(c.opcode, SG_WC_WRITE);
    T_EQ_MEM(pair_buf(&pair, 1) + 7, pair_buf(&pair, 0) + 5, 99990);
    expect_none(1);
    fill(1, 0, 80000, 3);
    post(0, wr(0, SG_WR_READ, 2, 130000, 80000, 0));
    c = expect(0, 2, SG_WC_SUCCESS);
    T_EQ_U64(c.opcode, SG_WC_READ);
    T_EQ_U64(sg_get_le32(&c.byte_len), 80000);
    T_EQ_MEM(pair_buf(&pair, 0) + 130000, pair_buf(&pair, 1), 80000);
    /* Zero octets: nothing is checked, everything completes. */
    post(0, (struct md_wr){ .opcode = SG_WR_WRITE, .wr_id = 3, .rkey = 0xdeadbe00 });
    expect(0, 3, SG_WC_SUCCESS);
    post(0, (struct md_wr){ .opcode = SG_WR_READ, .wr_id = 4, .rkey = 0xdeadbe00 });
    c = expect(0, 4, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le32(&c.byte_len), 0);
    end();
}

/* More Reads than ORD, mixed with Writes, half of them unsignaled: order of submission. */
static void completions_in_order(void)
{
    const struct md_qp_params params = { .entries = 128 };
    struct sg_cqe c;
    uint32_t i;

    begin(&params);
    pair.side[0].md.hold = true;
    for (i = 0; i < 120; i++) {
        struct md_wr w = wr(0, i % 3 ? SG_WR_READ : SG_WR_WRITE, i, i * 64, 64, i * 64);

        w.quiet = i % 2;
        post(0, w);
    }
    pair.side[0].md.hold = false;
    for (i = 0; i < 120; i += 2) {
        c = expect(0, i, SG_WC_SUCCESS);
        T_EQ_U64(sg_get_le32(&c.wr_index), i);
    }
    expect_none(0);
    end();
}

static void gather_scatter_inline(void)
{
    enum { N = SG_SQ_MAX_SGE };
    const struct md_qp_params params = { .stride = SG_WQE_STRIDE_MAX };
    struct sg_wqe_hdr *h;
    struct sg_rqe_hdr *r;
    struct sg_sge *sge;
    struct sg_cqe c;
    uint32_t i;

    begin(&params);
    fill(0, 0, N * 1024, 9);
    r = md_rq_entry(&pair.side[1].qp);
    sg_put_le64(&r->wr_id, 50);
    r->num_sge = N;
    sge = (struct sg_sge *)(r + 1);
    for (i = 0; i < N; i++) {
        sg_put_le64(&sge[i].addr, pair.side[1].buf + i * 3000);
        sg_put_le32(&sge[i].length, i == N - 1 ? 100000 : 333);
        sg_put_le32(&sge[i].lkey, pair.side[1].stag);
    }
    md_rq_doorbell(&pair.side[1].qp);
    h = md_sq_entry(&pair.side[0].qp);
    h->flags = SG_WQE_SIGNALED | SG_WQE_SOLICITED;
    h->num_sge = N;
    sge = (struct sg_sge *)(h + 1);
    for (i = 0; i < N; i++) {
        sg_put_le64(&sge[i].addr, pair.side[0].buf + 1024 * i);
        sg_put_le32(&sge[i].length, 1024);
        sg_put_le32(&sge[i].lkey, pair.side[0].stag);
    }
    md_sq_doorbell(&pair.side[0].qp);
    c = expect(1, 50, SG_WC_SUCCESS);
    T_TRUE(c.flags_phase & SG_CQE_SOLICITED);
    T_EQ_U64(sg_get_le32(&c.byte_len), N * 1024);
    for (i = 0; i < N - 1; i++) {
        T_EQ_MEM(pair_buf(&pair, 1) + i * 3000, pair_buf(&pair, 0) + i * 333, 333);
    }
    T_EQ_MEM(pair_buf(&pair, 1) + 3000 * (N - 1), pair_buf(&pair, 0) + (N - 1) * 333,
             N * 1024 - (N - 1) * 333);
    expect(0, 0, SG_WC_SUCCESS);

    recv(1, 51, 0, 4096);
    h = md_sq_entry(&pair.side[0].qp);
    h->flags = SG_WQE_SIGNALED | SG_WQE_INLINE;
    sg_put_le16(&h->inline_len, SG_MAX_INLINE);
    memset(h + 1, 0x77, SG_MAX_INLINE);
    md_sq_doorbell(&pair.side[0].qp);
    c = expect(1, 51, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le32(&c.byte_len), SG_MAX_INLINE);
    T_EQ_U64(pair_buf(&pair, 1)[SG_MAX_INLINE - 1], 0x77);
    end();
}

/* The adapter copies if the host maps no memory, or little. */
static void without_mapping(void)
{
    begin(NULL);
    pair.side[0].h.deny_map = true;
    pair.side[1].h.map_limit = 700;
    fill(0, 0, 200000, 4);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 200000, 11));
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + 11, pair_buf(&pair, 0), 200000);
    fill(1, 0, 200000, 5);
    post(1, wr(1, SG_WR_WRITE, 2, 0, 200000, 0));
    expect(1, 2, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1), 200000);
    end();
}

struct bad_wr {
    const char *name;
    uint8_t opcode, flags, num_sge;
    uint16_t inline_len;
    uint32_t index_off;
    uint8_t status;
};

static void faulty_entries(void)
{
    static const struct bad_wr rows[] = {
        { "reserved opcode", 0x0f, 0, 0, 0, 0, SG_WC_LOC_QP_OP_ERR },
        { "unknown opcode", 0xff, 0, 0, 0, 0, SG_WC_LOC_QP_OP_ERR },
        { "kernel opcode", SG_WR_REG_MR, 0, 0, 0, 0, SG_WC_LOC_QP_OP_ERR },
        { "unknown flag", SG_WR_SEND, 0x80, 0, 0, 0, SG_WC_LOC_QP_OP_ERR },
        { "wrong index", SG_WR_SEND, 0, 0, 0, 1, SG_WC_LOC_QP_OP_ERR },
        { "inline Read", SG_WR_READ, SG_WQE_INLINE, 0, 8, 0, SG_WC_LOC_QP_OP_ERR },
        { "too many elements", SG_WR_SEND, 0, SG_SQ_MAX_SGE + 1, 0, 0, SG_WC_LOC_LEN_ERR },
        { "Read with too many", SG_WR_READ, 0, SG_SQ_MAX_SGE + 1, 0, 0, SG_WC_LOC_LEN_ERR },
        { "too much inline", SG_WR_SEND, SG_WQE_INLINE, 0, SG_MAX_INLINE + 1, 0,
          SG_WC_LOC_LEN_ERR },
        { "unknown lkey", SG_WR_SEND, 0, 1, 0, 0, SG_WC_LOC_PROT_ERR },
        { "kernel opcode: invalidate", SG_WR_LOCAL_INV, 0, 0, 0, 0, SG_WC_LOC_QP_OP_ERR },
    };
    struct sg_wqe_hdr *h;
    struct sg_eqe e;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].name);
        begin(NULL);
        recv(0, 77, 0, 64);
        h = md_sq_entry(&pair.side[0].qp);
        sg_put_le64(&h->wr_id, 5);
        h->opcode = rows[i].opcode;
        h->flags = rows[i].flags;
        h->num_sge = rows[i].num_sge;
        sg_put_le16(&h->inline_len, rows[i].inline_len);
        sg_put_le32(&h->index, sg_get_le32(&h->index) + rows[i].index_off);
        if (rows[i].num_sge == 1) {
            sg_put_le32(&((struct sg_sge *)(h + 1))->length, 8);
            sg_put_le32(&((struct sg_sge *)(h + 1))->lkey, 0x12345678);
        }
        pair.side[0].md.hold = true;
        md_sq_doorbell(&pair.side[0].qp);
        pair.side[0].md.hold = false;
        post(0, wr(0, SG_WR_WRITE, 6, 0, 64, 0));
        expect(0, 5, rows[i].status);
        expect(0, 6, SG_WC_FLUSH_ERR);
        expect(0, 77, SG_WC_FLUSH_ERR);
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        e = pair_expect(&pair, 0, SG_EV_CM_DISCONNECT);
        T_EQ_U64(e.cm_status, pair_wire()->own_fault);
        if (pair_wire()->terminates) {
            pair_expect(&pair, 1, SG_EV_QP_FATAL);
        }
        e = pair_expect(&pair, 1, SG_EV_CM_DISCONNECT);
        T_EQ_U64(e.cm_status, pair_wire()->peer_fault);
        T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
        end();
    }
}

struct remote_row {
    const char *name;
    uint8_t opcode;
    uint32_t stag_xor;
    int64_t to_off;
    uint32_t access;
    uint8_t event;
    uint32_t vendor; /* upper octets, from the Terminate that the requester sees */
};

/* Accesses that the peer must refuse, and what is reported at each side. */
static void remote_protection(void)
{
    const uint32_t w = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE;
    const uint32_t r = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ;
    const struct remote_row rows[] = {
        { "write, key", SG_WR_WRITE, 1, 0, w, SG_EV_QP_ACCESS_ERR, 0x11000000 },
        { "write, index", SG_WR_WRITE, 0x100, 0, w, SG_EV_QP_ACCESS_ERR, 0x11000000 },
        { "write, below", SG_WR_WRITE, 0, -1, w, SG_EV_QP_ACCESS_ERR, 0x11010000 },
        { "write, beyond", SG_WR_WRITE, 0, 4033, w, SG_EV_QP_ACCESS_ERR, 0x11010000 },
        { "write, right", SG_WR_WRITE, 0, 0, r, 0, 0 },
        { "read, key", SG_WR_READ, 1, 0, r, SG_EV_QP_ACCESS_ERR, 0x01000000 },
        { "read, below", SG_WR_READ, 0, -1, r, SG_EV_QP_ACCESS_ERR, 0x01010000 },
        { "read, beyond", SG_WR_READ, 0, 4033, r, SG_EV_QP_ACCESS_ERR, 0x01010000 },
        { "read, right", SG_WR_READ, 0, 0, w, SG_EV_QP_ACCESS_ERR, 0x01020000 },
    };
    struct sg_eqe e;
    uint32_t stag;
    uint64_t at;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct md_wr x;

        T_CONTEXT("%s", rows[i].name);
        begin(NULL);
        at = pair.side[1].buf + 8192;
        stag = md_reg_mr(&pair.side[1].md, pair.side[1].pd, at, 4096, rows[i].access);
        memset(pair_buf(&pair, 0), 0xee, 64);
        x = wr(0, rows[i].opcode, 9, 0, 64, 0);
        x.raddr = at + (uint64_t)rows[i].to_off;
        x.rkey = stag ^ rows[i].stag_xor;
        post(0, x);
        pair_settle(&pair);
        T_TRUE(md_next_async(&pair.side[1].md, &e));
        if (rows[i].event) {
            T_EQ_U64(e.event, rows[i].event);
        } else {
            T_TRUE(e.event == SG_EV_QP_ACCESS_ERR || e.event == SG_EV_QP_REQ_ERR);
        }
        if (rows[i].opcode == SG_WR_READ) {
            expect_no_access(0, 9, rows[i].vendor);
        } else {
            expect(0, 9, SG_WC_SUCCESS); /* a Write's completion only says that it was sent */
            if (pair_wire()->terminates) {
                pair_expect(&pair, 0, SG_EV_QP_FATAL);
            }
            T_EQ_U64(pair_buf(&pair, 1)[8192], 0);
            T_EQ_U64(pair_buf(&pair, 1)[8191], 0);
            T_EQ_U64(pair_buf(&pair, 1)[12288], 0);
        }
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
        end();
    }
}

static void no_receive(void)
{
    struct sg_eqe e;

    begin(NULL);
    recv(0, 1, 0, 64);
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    expect(0, 2, SG_WC_SUCCESS);
    expect(0, 1, SG_WC_FLUSH_ERR);
    e = pair_expect(&pair, 1, SG_EV_QP_REQ_ERR);
    T_EQ_U64(sg_get_le32(&e.id), pair.side[1].qp.qpn);
    pair_expect(&pair, 1, SG_EV_CM_DISCONNECT);
    end();
}

static void receive_too_short(void)
{
    begin(NULL);
    recv(1, 1, 0, 63);
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    expect(0, 2, SG_WC_SUCCESS);
    expect(1, 1, SG_WC_FLUSH_ERR);
    pair_expect(&pair, 1, SG_EV_QP_REQ_ERR);
    end();
}

static void receive_faulty(void)
{
    begin(NULL);
    md_post_recv(&pair.side[1].qp, 1, pair.side[1].buf, 64, 0x77777777);
    recv(1, 2, 0, 64);
    post(0, wr(0, SG_WR_SEND, 3, 0, 64, 0));
    expect(1, 1, SG_WC_LOC_PROT_ERR);
    expect(1, 2, SG_WC_FLUSH_ERR);
    expect(0, 3, SG_WC_SUCCESS);
    end();
}

/* FENCE: a Send that follows a Read waits for its data. */
static void fence(void)
{
    struct md_wr w;
    struct sg_cqe c;
    int i;

    begin(NULL);
    recv(1, 50, 4096, 4096);
    fill(1, 0, 4096, 7);
    memset(pair_buf(&pair, 0), 0, 8192);
    pair.side[0].md.hold = true;
    post(0, wr(0, SG_WR_READ, 1, 0, 4096, 0));
    w = wr(0, SG_WR_SEND, 2, 0, 4096, 0);
    w.flags = SG_WQE_FENCE;
    post(0, w);
    pair.side[0].md.hold = false;
    for (i = 1; i <= 2; i++) {
        c = expect(0, i, SG_WC_SUCCESS);
    }
    c = expect(1, 50, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le32(&c.byte_len), 4096);
    T_EQ_MEM(pair_buf(&pair, 1) + 4096, pair_buf(&pair, 1), 4096);
    end();
}

static enum sg_status modify_mr(int side, uint32_t stag, uint32_t mask, uint32_t pd,
                                uint32_t access)
{
    struct sg_cmd_modify_mr c = { .hdr.opcode = SG_ADMIN_MODIFY_MR };

    sg_put_le32(&c.stag, stag);
    sg_put_le32(&c.mask, mask);
    sg_put_le32(&c.pd, pd);
    sg_put_le32(&c.access, access);
    return md_cmd(&pair.side[side].md, &c, sizeof(c), NULL);
}

/* The source is deregistered between two segments of a message, and is not read any more. */
static void revoked_in_flight(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_adapter_census census;
    uint32_t stag, other;
    struct md_wr w;
    int moved;

    for (moved = 0; moved < 2; moved++) {
        T_CONTEXT("%s", moved ? "to another domain" : "deregistered");
        begin_slow(0);
        stag = md_reg_mr(&s->md, s->pd, s->buf, 200000, 0);
        other = md_create_pd(&s->md);
        w = wr(0, SG_WR_WRITE, 1, 0, 200000, 0);
        w.lkey = stag;
        post(0, w);
        pair_settle(&pair); /* the stream is full now */
        T_EQ_U64(moved ? modify_mr(0, stag, SG_MR_MOD_PD, other, 0)
                       : md_cmd_id(&s->md, SG_ADMIN_DEREG_MR, stag),
                 SG_OK);
        pair_pass(&pair, 1000000000);
        expect(0, 1, SG_WC_LOC_PROT_ERR);
        pair_close(&pair);
        sg_adapter_census(s->md.a, &census);
        T_EQ_U64(census.conns, 0);
        pair_stop(&pair);
    }
}

/* Rights and domain change, the STag does not; revoked rights end at once. */
static void region_changes(void)
{
    const uint32_t all = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE;
    int i;

    for (i = 0; i < 2; i++) {
        uint32_t other, stag;

        begin(NULL);
        stag = pair.side[1].stag;
        other = md_create_pd(&pair.side[1].md);
        post(0, wr(0, SG_WR_READ, 1, 0, 64, 0));
        expect(0, 1, SG_WC_SUCCESS);
        T_EQ_U64(i ? modify_mr(1, stag, SG_MR_MOD_PD, other, 0)
                   : modify_mr(1, stag, SG_MR_MOD_ACCESS, UINT32_MAX, SG_ACCESS_REMOTE_WRITE),
                 SG_OK);
        T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_PD, other), i ? SG_EBUSY : SG_OK);
        post(0, wr(0, SG_WR_READ, 2, 0, 64, 0));
        expect(0, 2, pair_wire()->refused);
        T_EQ_U64(modify_mr(1, stag, SG_MR_MOD_PD | SG_MR_MOD_ACCESS, pair.side[1].pd, all), SG_OK);
        T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_ERROR), SG_OK);
        T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_ERROR), SG_OK);
        end();
    }
}

static const struct t_case cases[] = {
    { "rights and domain of a region change", region_changes },
    { "Sends of all sizes, both ways", send_both_ways },
    { "RDM-17 Write and Read, also of nothing", write_and_read },
    { "completions leave in order of submission", completions_in_order },
    { "32 elements on both sides, inline data, solicited", gather_scatter_inline },
    { "memory that cannot be mapped is copied", without_mapping },
    { "faulty send entries: status, Terminate, flush", faulty_entries },
    { "remote protection", remote_protection },
    { "Send without Receive", no_receive },
    { "Send longer than its Receive", receive_too_short },
    { "faulty receive entry", receive_faulty },
    { "fence", fence },
    { "memory revoked in the middle of a message", revoked_in_flight },
};

T_MAIN(cases)
