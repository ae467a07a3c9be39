/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pair of adapters whose machines have persistent memory: the first half of each side's buffer.
 * Helpers for regions with the rights of draft-talpey-rdma-commit, and for its requests.
 *
 * Side 0 is the requester, side 1 the responder, unless a test says otherwise.
 */
#ifndef SG_TESTS_VERBS_MPE_RIG_H
#define SG_TESTS_VERBS_MPE_RIG_H

#include "pair_rig.h"
#include "test_pm.h"

enum {
    PM_LEN = PAIR_BUF / 2, /* persistent: [0, PM_LEN) of the buffer; ordinary: the rest */
    ALL_FLUSH = SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_FLUSH_PERSISTENT,
    ALL_RIGHTS = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE |
                 ALL_FLUSH | SG_ACCESS_VERIFY,
    P = SG_FLUSH_PERSISTENT,
    G = SG_FLUSH_GLOBAL,
    R = SG_FLUSH_REGION,
};

static struct test_pm pm[2];

static T_UNUSED void place_start(const struct sg_adapter_config *config)
{
    int i;

    pair_start(&pair, config, NULL);
    for (i = 0; i < 2; i++) {
        test_pm_init(&pm[i], &pair.side[i].h, pair.side[i].buf, pair.side[i].buf + PM_LEN);
    }
}

/* params: NULL, or what to change; rights default to all. */
static T_UNUSED void place_begin(const struct sg_adapter_config *config,
                                 const struct md_qp_params *params)
{
    struct md_qp_params own = params ? *params : (struct md_qp_params){ 0 };

    own.access = own.access ? own.access : ALL_RIGHTS;
    place_start(config);
    pair_open(&pair, &own);
    pair_connect(&pair);
}

static T_UNUSED void place_end(void)
{
    int i;

    end();
    for (i = 0; i < 2; i++) {
        test_pm_fini(&pm[i]);
    }
}

/* A region of [off, off + len) of the buffer.  va is the bus address unless zero-based. */
static T_UNUSED struct sg_cmd_reg_mr region_cmd(int side, uint32_t off, uint32_t len,
                                                uint32_t access, uint8_t alg)
{
    struct pair_side *s = &pair.side[side];
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(s->pd, s->buf + off, len, access);

    c.hash_alg = alg;
    if (alg == SG_HASH_HMAC_SHA256) {
        c.hash_key_len = 20;
        memset(c.hash_key, 0x0b, 20);
    }
    return c;
}

static T_UNUSED uint32_t region(int side, uint32_t off, uint32_t len, uint32_t access, uint8_t alg)
{
    struct sg_cmd_reg_mr c = region_cmd(side, off, len, access, alg);

    return md_make(&pair.side[side].md, &c, sizeof(c));
}

static T_UNUSED uint64_t at(int side, uint32_t off)
{
    return pair.side[side].buf + off;
}

/* A request of side 'from' about the other side's memory.  SIGNALED is added to the flags. */
struct ask {
    int from;
    uint8_t opcode, flags;
    uint64_t id;
    uint32_t rkey;
    uint64_t raddr;
    uint32_t len;
    uint32_t flush;      /* FLUSH: SG_FLUSH_* */
    const uint8_t *hash; /* VERIFY: expected, or NULL */
    uint8_t hash_len;
    uint64_t addr; /* VERIFY: sink, ATOMIC_WRITE: source; 0: none, inline */
    uint32_t room; /* octets of that element */
    uint32_t lkey; /* 0: the buffer's */
    uint64_t atom;
    uint32_t inv_stag;
};

/* Returns the entry, for which the doorbell is not yet rung. */
static T_UNUSED struct sg_wqe_hdr *build(const struct ask *q)
{
    struct pair_side *s = &pair.side[q->from];
    struct sg_wqe_hdr *h = md_sq_entry(&s->qp);
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);
    bool wants = q->opcode != SG_WR_ATOMIC_WRITE;

    sg_put_le64(&h->wr_id, q->id);
    h->opcode = q->opcode;
    h->flags = q->flags | SG_WQE_SIGNALED;
    sg_put_le64(&h->remote_addr, q->raddr);
    sg_put_le32(&h->rkey, q->rkey);
    sg_put_le32(&h->inv_stag, q->inv_stag);
    if (wants) {
        sg_put_le32(&place->length, q->len);
        sg_put_le32(&place->flags, q->flush);
        place->hash_len = q->hash_len;
        sge = (struct sg_sge *)(place + 1);
    }
    if (q->addr) {
        h->num_sge = 1;
        sg_put_le64(&sge->addr, q->addr);
        sg_put_le32(&sge->length, q->room);
        sg_put_le32(&sge->lkey, q->lkey ? q->lkey : s->stag);
        sge++;
    } else if (!wants) {
        h->flags |= SG_WQE_INLINE;
        sg_put_le16(&h->inline_len, 8);
        sg_put_le64(sge, q->atom);
    }
    if (q->hash) {
        memcpy(sge, q->hash, q->hash_len);
    }
    return h;
}

static T_UNUSED void ask(const struct ask q)
{
    build(&q);
    md_sq_doorbell(&pair.side[q.from].qp);
}

/* Posts the request and counts the turns of side 1 until nothing moves there. */
static T_UNUSED unsigned turns_of(const struct ask q)
{
    struct pair_side *s = &pair.side[1];
    unsigned n;

    pair.side[0].md.hold = true;
    ask(q);
    test_host_take_kick(&pair.side[0].h);
    while (sg_adapter_run(pair.side[0].md.a, 1 << 20)) {
    }
    sg_mem_switch_run(pair.sw, pair.side[0].h.now_ns);
    pair.side[0].md.hold = false;
    for (n = 0; s->h.timer_ns <= s->h.now_ns || test_host_take_kick(&s->h); n++) {
        s->h.kicked |= sg_adapter_run(s->md.a, 1 << 20);
        T_TRUE(n < 1000);
    }
    return n;
}

static T_UNUSED struct ask flush_of(uint64_t id, uint32_t rkey, uint32_t off, uint32_t len,
                                    uint32_t flags)
{
    return (struct ask){
        .opcode = SG_WR_FLUSH,
        .id = id,
        .rkey = rkey,
        .raddr = at(1, off),
        .len = len,
        .flush = flags,
    };
}

static T_UNUSED struct ask verify_of(uint64_t id, uint32_t rkey, uint32_t off, uint32_t len)
{
    return (struct ask){
        .opcode = SG_WR_VERIFY,
        .id = id,
        .rkey = rkey,
        .raddr = at(1, off),
        .len = len,
        .addr = at(0, PAIR_BUF - 64),
        .room = 64,
    };
}

static T_UNUSED struct ask atomic_of(uint64_t id, uint32_t rkey, uint32_t off, uint64_t atom)
{
    return (struct ask){
        .opcode = SG_WR_ATOMIC_WRITE,
        .id = id,
        .rkey = rkey,
        .raddr = at(1, off),
        .atom = atom,
    };
}

/* Write of len octets from side 0's 'off' to side 1's 'roff', through a region there. */
static T_UNUSED void write_to(uint64_t id, uint32_t rkey, uint32_t off, uint32_t len, uint32_t roff)
{
    struct md_wr w = wr(0, SG_WR_WRITE, id, off, len, roff);

    w.rkey = rkey;
    post(0, w);
}

/* The request fails at side 0 by a Terminate of this kind; both queue pairs are in error. */
static T_UNUSED void expect_refused(uint64_t id, enum sg_wc_status status, unsigned layer,
                                    unsigned type, unsigned code)
{
    struct sg_cqe c = expect(0, id, status);

    T_EQ_U64(sg_get_le32(&c.vendor_err), layer << 28 | type << 24 | code << 16);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
}

static T_UNUSED uint8_t *hash_sink(void)
{
    return pair_buf(&pair, 0) + PAIR_BUF - 64;
}

static T_UNUSED uint8_t *media(int side, uint32_t off)
{
    return test_pm_media(&pm[side], at(side, off));
}

#endif
