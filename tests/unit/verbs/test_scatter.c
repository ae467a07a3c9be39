/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads with several sink elements: what one message fills, and what must stay unchanged. */
#include "pair_rig.h"

enum { ELEMENTS = SG_SQ_MAX_SGE, GAP = 64, PATTERN = 0xa5 };

/* Lengths of the elements of one Read; they lie GAP octets apart from 'at' on. */
struct shape {
    const char *name;
    unsigned n;
    uint32_t len[ELEMENTS];
};

static const struct shape shapes[] = {
    { "two", 2, { 8, 8 } },
    { "octets", 5, { 1, 1, 1, 1, 1 } },
    { "holes", 6, { 0, 100, 0, 0, 7, 0 } },
    { "nothing", 3, { 0, 0, 0 } },
    { "over segments", 3, { 1, 5000, 70001 } },
    { "sixteen", 16, { 3, 1448, 1, 4096, 0, 17, 9000, 2, 2, 2, 333, 64, 64, 1, 20000, 5 } },
    { "thirty-two", 32, { 3, 1448, 1, 4096, 0, 17, 9000, 2, 2, 2, 333, 64, 64, 1, 20000, 5,
                          7, 1460, 2, 4095, 9, 16, 8999, 3, 0, 1, 332, 63, 65, 2, 20001, 6 } },
};

static uint32_t total(const struct shape *s)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < s->n; i++) {
        sum += s->len[i];
    }
    return sum;
}

/* Posts a Read of the octets at 'source' of side 1 into elements of side 0 from 'at' on. */
static void scatter(const struct shape *s, uint64_t id, uint8_t opcode, uint32_t at,
                    uint32_t source, uint32_t lkey)
{
    struct sg_wqe_hdr *h = md_sq_entry(&pair.side[0].qp);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);

    sg_put_le64(&h->wr_id, id);
    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = (uint8_t)s->n;
    sg_put_le64(&h->remote_addr, pair.side[1].buf + source);
    sg_put_le32(&h->rkey, pair.side[1].stag);
    for (unsigned i = 0; i < s->n; i++) {
        sg_put_le64(&sge[i].addr, pair.side[0].buf + at);
        sg_put_le32(&sge[i].length, s->len[i]);
        sg_put_le32(&sge[i].lkey, i == s->n - 1 ? lkey : pair.side[0].stag);
        at += s->len[i] + GAP;
    }
    md_sq_doorbell(&pair.side[0].qp);
}

/* Every octet is where it belongs, and the gaps are as they were. */
static void check(const struct shape *s, uint32_t at, uint32_t source)
{
    const uint8_t *sink = pair_buf(&pair, 0) + at, *from = pair_buf(&pair, 1) + source;

    for (unsigned i = 0; i < s->n; i++) {
        T_CONTEXT("%s, element %u", s->name, i);
        T_EQ_MEM(sink, from, s->len[i]);
        sink += s->len[i];
        from += s->len[i];
        for (unsigned k = 0; k < GAP; k++) {
            T_EQ_U64(sink[k], PATTERN);
        }
        sink += GAP;
    }
}

static void all_shapes(void)
{
    const struct md_qp_params params = { .stride = SG_WQE_STRIDE_MAX };
    struct sg_cqe c;

    begin(&params);
    fill(1, 0, 100000, 5);
    for (size_t i = 0; i < SG_ARRAY_SIZE(shapes); i++) {
        T_CONTEXT("%s", shapes[i].name);
        memset(pair_buf(&pair, 0), PATTERN, 120000);
        scatter(&shapes[i], i, SG_WR_READ, 100, 3, pair.side[0].stag);
        c = expect(0, i, SG_WC_SUCCESS);
        T_EQ_U64(c.opcode, SG_WC_READ);
        T_EQ_U64(sg_get_le32(&c.byte_len), total(&shapes[i]));
        check(&shapes[i], 100, 3);
    }
    end();
}

/* Reads with one and with several elements alternate: each fills exactly its own elements. */
static void in_turn_with_plain_reads(void)
{
    const struct shape s = { "turn", 3, { 40, 50, 60 } };
    const struct md_qp_params params = { .entries = 64 };

    begin(&params);
    fill(1, 0, 20000, 8);
    memset(pair_buf(&pair, 0), PATTERN, 60000);
    pair.side[0].md.hold = true;
    for (uint32_t i = 0; i < 40; i++) {
        if (i % 2) {
            scatter(&s, i, SG_WR_READ, i / 8 * 1000, i * 200, pair.side[0].stag);
        } else {
            post(0, wr(0, SG_WR_READ, i, i / 8 * 1000, 150, i * 200));
        }
    }
    pair.side[0].md.hold = false;
    for (uint32_t i = 0; i < 40; i++) {
        expect(0, i, SG_WC_SUCCESS);
    }
    for (uint32_t i = 7; i < 40; i += 8) { /* the last of eight with the same sink */
        const uint8_t *sink = pair_buf(&pair, 0) + i / 8 * 1000;
        const uint8_t *from = pair_buf(&pair, 1) + i * 200, *before = from - 200;

        T_EQ_MEM(sink, from, 40);
        T_EQ_MEM(sink + 40, before + 40, 64);
        T_EQ_MEM(sink + 104, from + 40, 46);
        T_EQ_MEM(sink + 218, from + 90, 60);
    }
    end();
}

static void refused(void)
{
    static const struct {
        const char *name;
        uint8_t opcode;
        bool right;
        enum sg_wc_status status;
    } rows[] = {
        { "an element without LOCAL_WRITE", SG_WR_READ, false, SG_WC_LOC_PROT_ERR },
        { "Read with invalidate", SG_WR_READ_INV, true, SG_WC_LOC_LEN_ERR },
        { "Verify", SG_WR_VERIFY, true, SG_WC_LOC_LEN_ERR },
        { "atomic", SG_WR_FETCH_ADD, true, SG_WC_LOC_LEN_ERR },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        uint32_t lkey;

        T_CONTEXT("%s", rows[i].name);
        begin(NULL);
        lkey = md_reg_mr(&pair.side[0].md, pair.side[0].pd, pair.side[0].buf, 200000,
                         rows[i].right ? SG_ACCESS_LOCAL_WRITE : 0);
        memset(pair_buf(&pair, 0), PATTERN, 1000);
        scatter(&shapes[0], 1, rows[i].opcode, 0, 0, lkey);
        expect(0, 1, rows[i].status);
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        for (unsigned k = 0; k < 1000; k++) {
            T_EQ_U64(pair_buf(&pair, 0)[k], PATTERN);
        }
        T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DEREG_MR, lkey), SG_OK);
        end();
    }
}

/* The last element's region is deregistered between Request and Response. */
static void revoked_while_asked(void)
{
    uint32_t lkey;

    begin_slow(0);
    fill(1, 0, 1000, 8);
    memset(pair_buf(&pair, 0), PATTERN, 1000);
    lkey = md_reg_mr(&pair.side[0].md, pair.side[0].pd, pair.side[0].buf, 200000,
                     SG_ACCESS_LOCAL_WRITE);
    scatter(&shapes[0], 1, SG_WR_READ, 0, 0, lkey);
    expect_none(0);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DEREG_MR, lkey), SG_OK);
    pair_pass(&pair, 1000000000);
    expect(0, 1, SG_WC_LOC_PROT_ERR);
    T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1), 8);
    for (unsigned i = 8; i < 1000; i++) {
        T_EQ_U64(pair_buf(&pair, 0)[i], PATTERN);
    }
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    pair_close(&pair);
    pair_stop(&pair);
}

/* Reads that are never answered: flushed, or destroyed with their queue pair. */
static void never_answered(void)
{
    for (int flush = 0; flush < 2; flush++) {
        begin_slow(0);
        for (uint64_t id = 1; id <= 3; id++) {
            scatter(&shapes[5], id, SG_WR_READ, 0, 0, pair.side[0].stag);
        }
        expect_none(0);
        if (flush) {
            T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_ERROR), SG_OK);
            for (uint64_t id = 1; id <= 3; id++) {
                expect(0, id, SG_WC_FLUSH_ERR);
            }
        }
        pair_close(&pair);
        pair_stop(&pair);
    }
}

/*
 * Memory that the host maps octet by octet makes more pieces than a segment can have: the rest is
 * copied, and appended to the octets that were copied before it.
 */
static void sent_in_many_pieces(void)
{
    static const uint32_t len[] = { 3000, 200, 1, 400 };
    struct sg_wqe_hdr *h;
    struct sg_sge *sge;
    struct sg_cqe c;
    uint32_t at = 0;

    begin(NULL);
    fill(0, 0, 3601, 9);
    recv(1, 1, 0, 4096);
    pair.side[0].h.map_limit = 1;
    h = md_sq_entry(&pair.side[0].qp);
    sge = (struct sg_sge *)(h + 1);
    sg_put_le64(&h->wr_id, 2);
    h->opcode = SG_WR_SEND;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = SG_ARRAY_SIZE(len);
    for (unsigned i = 0; i < SG_ARRAY_SIZE(len); at += len[i++]) {
        sg_put_le64(&sge[i].addr, pair.side[0].buf + at);
        sg_put_le32(&sge[i].length, len[i]);
        sg_put_le32(&sge[i].lkey, pair.side[0].stag);
    }
    md_sq_doorbell(&pair.side[0].qp);
    expect(0, 2, SG_WC_SUCCESS);
    c = expect(1, 1, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le32(&c.byte_len), 3601);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 3601);
    end();
}

static const struct t_case cases[] = {
    { "elements of all lengths are filled in their order, and nothing else", all_shapes },
    { "Reads with one and several elements, outstanding at once", in_turn_with_plain_reads },
    { "refused: rights, and messages with one element only", refused },
    { "an element's region goes away while the Read is out", revoked_while_asked },
    { "flushed and destroyed while the Read is out", never_answered },
    { "a Send from more pieces than a segment has", sent_in_many_pieces },
};

T_MAIN(cases)
