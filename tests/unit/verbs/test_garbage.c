/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that writes garbage: registers, doorbells, commands, descriptors, page lists, memory.
 *
 * Each seed connects two adapters and lets side 0 misbehave for some hundred steps, from single
 * damaged fields to random octets.  The sanitizers check that host memory is not accessed; the
 * test checks that the other side's memory is unchanged outside what was granted, that its
 * adapter still works, and that reset restores side 0.
 */
#include "pair.h"
#include "tap.h"
#include "test_pm.h"

enum {
    SEEDS = 300,
    STEPS = 600,
    GRANTED = 4096,
    ACCESS = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_READ |
             SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_FLUSH_PERSISTENT | SG_ACCESS_VERIFY,
};

static struct pair p;
static struct test_pm pm[2];
static uint64_t rng;
static uint32_t last_srq, last_mw, last_odp;             /* of side 0; 0: none yet */
static struct md_ring srq_ring;                          /* of last_srq */
static uint32_t srq_used;                                /* the one of side 0's queue pair, or 0 */
static unsigned mapped, shares, resizes;                 /* commands that succeeded */
static unsigned revived, seen[2][TEST_PM_MILESTONE + 1]; /* calls of the domains */

static uint32_t rnd(uint32_t below)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((rng >> 33) % below);
}

static uint64_t rnd64(void)
{
    static const uint64_t odd[] = { 0,          1,          UINT64_MAX, 0x80000000,
                                    0xffffffff, 0x7fffffff, 4096,       TEST_HOST_BASE };

    switch (rnd(4)) {
    case 0:
        return odd[rnd(8)];
    case 1:
        return TEST_HOST_BASE + rnd(PAIR_MEM);
    case 2:
        return rnd(64);
    default:
        return (uint64_t)rnd(0x7fffffff) << 32 | (uint64_t)rnd(0x7fffffff) << rnd(16);
    }
}

static void bad_register(struct md *md)
{
    /* No reset or disable before the end, so that most of a run has an effect. */
    uint32_t reg = rnd(2) ? rnd(0x100 / 4) * 4 : SG_REG_EQ_DB + rnd(80) * 4;

    if (reg != SG_REG_CTRL && (reg != SG_REG_ADMIN_DB || rnd(50) == 0)) {
        sg_adapter_reg_write(md->a, reg, rnd64(), rnd(8) ? 4 : 8);
    }
    sg_adapter_reg_read(md->a, rnd(SG_REGS_SIZE), rnd(3) ? 4 : 8);
}

/* A window, or a region with pages that come and go, or pages for it, or a shared queue. */
static void make_command(struct md *md, uint8_t *cmd)
{
    struct sg_cmd_create_srq *srq = (void *)cmd, like;
    struct sg_cmd_resize_srq *resize = (void *)cmd;
    struct sg_cmd_alloc_mw *mw = (void *)cmd;
    struct sg_cmd_map_pages *map = (void *)cmd;
    struct sg_cmd_reg_mr *mr = (void *)cmd;
    uint64_t list;
    uint32_t i;

    switch (rnd(7)) {
    case 0:
        *srq = md_create_srq_cmd(md, p.side[0].pd, 16);
        break;
    case 3:
        like = md_create_srq_cmd(md, p.side[0].pd, 2u << rnd(6));
        *resize = (struct sg_cmd_resize_srq){ .hdr.opcode = SG_ADMIN_RESIZE_SRQ };
        sg_put_le32(&resize->srqn, last_srq);
        resize->entries = like.entries;
        resize->pages = like.pages;
        break;
    case 1:
        *mw = (struct sg_cmd_alloc_mw){ .hdr.opcode = SG_ADMIN_ALLOC_MW, .type = 1 + rnd(2) };
        sg_put_le32(&mw->pd, p.side[0].pd);
        break;
    case 2:
        *mr = md_reg_mr_cmd(p.side[0].pd, p.side[0].buf, 8 * SG_PAGE_SIZE, rnd(128));
        mr->flags = SG_MR_ODP;
        sg_put_le64(&mr->pages.addr, 0);
        break;
    default:
        list = test_host_alloc(md->h, 64, 8);
        for (i = 0; i < 8; i++) {
            sg_put_le64((uint8_t *)test_host_ptr(md->h, list) + 8 * i,
                        p.side[0].buf + rnd(64) * SG_PAGE_SIZE + (rnd(4) > 0));
        }
        *map = (struct sg_cmd_map_pages){ .hdr.opcode = SG_ADMIN_MAP_PAGES };
        sg_put_le32(&map->stag, last_odp);
        sg_put_le32(&map->op, rnd(3) ? SG_MAP_PAGES : SG_UNMAP_PAGES + rnd(2));
        sg_put_le64(&map->first_page, rnd(4));
        sg_put_le64(&map->count, 1 + rnd(5));
        sg_put_le64(&map->list, list);
    }
}

static uint64_t srq_of(const uint8_t *cmd)
{
    return sg_get_le64(&((const struct sg_cmd_create_srq *)(const void *)cmd)->pages.addr);
}

/* A damaged command may have put its ring anywhere. */
static bool in_memory(uint64_t addr)
{
    return addr >= TEST_HOST_BASE && addr - TEST_HOST_BASE < PAIR_MEM - 16 * 128;
}

/* Entries are not copied from the old ring, which the adapter no longer reads. */
static void remember_resized(const struct sg_cmd_resize_srq *c)
{
    uint64_t base = sg_get_le64(&c->pages.addr);

    if (sg_get_le32(&c->srqn) == last_srq && in_memory(base)) {
        srq_ring.base = base;
        srq_ring.entries = SG_MIN(sg_get_le32(&c->entries), 16);
    }
    resizes++;
}

/* Keeps the number that a successful answer returns. */
static void remember(const uint8_t *cmd, const struct sg_admin_rsp *rsp)
{
    uint32_t id = sg_get_le32(&rsp->id);

    if (rsp->status != SG_OK) {
        return;
    }
    if (cmd[0] == SG_ADMIN_CREATE_SRQ && in_memory(srq_of(cmd))) {
        last_srq = id;
        srq_ring = (struct md_ring){ srq_of(cmd), 16, 128, 0, 0 };
        shares++;
    } else if (cmd[0] == SG_ADMIN_RESIZE_SRQ) {
        remember_resized((const void *)cmd);
    } else if (cmd[0] == SG_ADMIN_ALLOC_MW) {
        last_mw = id;
    } else if (cmd[0] == SG_ADMIN_REG_MR &&
               ((const struct sg_cmd_reg_mr *)(const void *)cmd)->flags & SG_MR_ODP) {
        last_odp = id;
    } else if (cmd[0] == SG_ADMIN_MAP_PAGES) {
        mapped++;
    }
}

static void bad_command(struct md *md)
{
    static const uint8_t opcodes[] = {
        SG_ADMIN_QUERY_CAPS,     SG_ADMIN_QUERY_STATS,    SG_ADMIN_CREATE_EQ, SG_ADMIN_DESTROY_EQ,
        SG_ADMIN_SET_ADDR,       SG_ADMIN_SET_PORT,       SG_ADMIN_CREATE_PD, SG_ADMIN_DESTROY_PD,
        SG_ADMIN_REG_MR,         SG_ADMIN_DEREG_MR,       SG_ADMIN_ALLOC_MR,  SG_ADMIN_CREATE_CQ,
        SG_ADMIN_DESTROY_CQ,     SG_ADMIN_CREATE_QP,      SG_ADMIN_MODIFY_QP, SG_ADMIN_QUERY_QP,
        SG_ADMIN_DESTROY_QP,     SG_ADMIN_LISTEN,         SG_ADMIN_UNLISTEN,  SG_ADMIN_CONNECT,
        SG_ADMIN_ACCEPT,         SG_ADMIN_REJECT,         SG_ADMIN_CM_DATA,   SG_ADMIN_CREATE_SRQ,
        SG_ADMIN_MODIFY_SRQ,     SG_ADMIN_DESTROY_SRQ,    SG_ADMIN_QUERY_SRQ, SG_ADMIN_ALLOC_MW,
        SG_ADMIN_DEALLOC_MW,     SG_ADMIN_MAP_PAGES,      SG_ADMIN_RESIZE_CQ, SG_ADMIN_MODIFY_CQ,
        SG_ADMIN_QUERY_QP_STATS, SG_ADMIN_QUERY_MR_STATS, SG_ADMIN_MODIFY_MR, SG_ADMIN_RESIZE_SRQ
    };
    _Alignas(8) uint8_t cmd[SG_ADMIN_CMD_SIZE] = { 0 };
    struct sg_admin_rsp rsp;
    struct sg_cmd_create_qp *qp = (void *)cmd;
    struct sg_cmd_reg_mr *mr = (void *)cmd;
    uint32_t i;

    if (md->asq.prod - md->acq.cons >= MD_ADMIN_SIZE - 1) {
        return; /* the adapter does not answer any more */
    }
    switch (rnd(5)) {
    case 0:
        *qp = md_create_qp_cmd(md, &(struct md_qp_params){
                                       .pd = p.side[0].pd,
                                       .scq = &p.side[0].cq,
                                       .rcq = &p.side[0].cq,
                                       .flags = rnd(4),
                                   });
        break;
    case 1:
        *mr = md_reg_mr_cmd(p.side[0].pd, p.side[0].buf + rnd(9000), 1 + rnd(9000), rnd(512));
        mr->hash_alg = rnd(3) ? rnd(6) : 0;
        mr->hash_key_len = rnd(4) ? 0 : rnd(70);
        mr->mem_type = rnd(4) ? 0 : rnd(4);
        mr->mem_mode = rnd(4);
        break;
    case 2:
        make_command(md, cmd);
        break;
    default:
        cmd[0] = opcodes[rnd(sizeof(opcodes))];
        for (i = 8; i + 4 <= sizeof(cmd); i += 4) {
            sg_put_le32(cmd + i, (uint32_t)rnd64());
        }
    }
    for (i = rnd(4); i; i--) {
        sg_put_le32(cmd + 4 * rnd(sizeof(cmd) / 4), (uint32_t)rnd64());
    }
    md_submit(md, cmd, sizeof(cmd));
    pair_settle(&p);
    while (md_reap(md, &rsp)) {
        remember(cmd, &rsp);
    }
    if (md->h->brk > PAIR_MEM - (1 << 20)) {
        md->h->brk = p.base_brk[0] + (1 << 18); /* reuses memory that may be in use */
    }
}

/* Fields of a Flush or Verify, roughly right; the header is as bad_entry left it. */
static void put_place(struct sg_wqe_hdr *h, bool sane)
{
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);
    struct sg_sge *sge = (struct sg_sge *)(place + 1);
    bool verify = h->opcode == SG_WR_VERIFY;

    h->num_sge = sane || rnd(4) ? verify && rnd(2) : rnd(256);
    sg_put_le32(&place->length, sane || rnd(3) ? rnd(GRANTED) : (uint32_t)rnd64());
    sg_put_le32(&place->flags, verify ? !sane && rnd(8) == 0 : 1 + rnd(sane ? 7 : 9));
    place->hash_len = sane && rnd(40) ? 0 : rnd(80);
    sg_put_le64(&sge->addr, p.side[0].buf + rnd(PAIR_BUF));
    sg_put_le32(&sge->length, sane ? 64 : rnd(80));
    sg_put_le32(&sge->lkey, sane || rnd(5) ? p.side[0].stag : rnd(1 << 30));
}

static void put_bind(struct sg_wqe_hdr *h, bool sane)
{
    struct sg_wqe_bind *b = (struct sg_wqe_bind *)(h + 1);
    uint32_t off = rnd(7 * SG_PAGE_SIZE);

    sg_put_le32(&b->stag, last_mw);
    sg_put_le32(&b->mr_stag, rnd(2) ? last_odp : p.side[0].stag);
    sg_put_le32(&b->access, sane ? SG_ACCESS_REMOTE_READ : rnd(512));
    sg_put_le64(&b->va, sane ? p.side[0].buf + off : rnd64());
    sg_put_le64(&b->length, sane ? rnd(SG_PAGE_SIZE) : rnd64());
}

static void bad_entry(struct pair_side *s)
{
    static const uint8_t known[] = { SG_WR_SEND,   SG_WR_WRITE,        SG_WR_READ,   SG_WR_FLUSH,
                                     SG_WR_VERIFY, SG_WR_ATOMIC_WRITE, SG_WR_BIND_MW };
    bool sane = rnd(3);
    struct md_wr w = {
        .opcode = sane ? known[rnd(sizeof(known))] : rnd(16),
        .flags = sane ? 0 : rnd(32),
        .wr_id = rnd64(),
        .addr = s->buf + rnd(PAIR_BUF),
        .len = sane || rnd(3) ? rnd(2000) : (uint32_t)rnd64(),
        .lkey = sane || rnd(5) ? s->stag : rnd(1 << 30),
        .raddr = p.side[1].buf + (sane ? rnd(GRANTED) : rnd(3) * rnd(GRANTED)),
        .rkey = rnd(sane ? 40 : 4) ? p.side[1].conn : 0,
        .inv_stag = sane ? 0 : s->stag,
    };
    uint8_t *slot;

    if (last_odp && rnd(4) == 0) {
        w.lkey = last_odp;
        w.addr = s->buf + rnd(7 * SG_PAGE_SIZE);
    }
    if (sane && w.opcode == SG_WR_ATOMIC_WRITE) {
        w.len = 8;
        w.raddr &= ~(uint64_t)(rnd(4) ? 7 : 0);
    }
    s->md.hold = true; /* until the entry is damaged */
    if (rnd(3) == 0) {
        md_post_recv(&s->qp, rnd64(), w.addr, w.len, w.lkey);
        if (srq_used) {
            md_doorbell(&s->md, 0, SG_DB_SRQ, srq_used, s->qp.rq.prod);
        }
    } else {
        slot = (uint8_t *)md_sq_entry(&s->qp);
        s->qp.sq.prod--;
        md_post_send(&s->qp, &w);
        if (w.opcode == SG_WR_FLUSH || w.opcode == SG_WR_VERIFY) {
            put_place((struct sg_wqe_hdr *)slot, sane);
        } else if (w.opcode == SG_WR_BIND_MW) {
            put_bind((struct sg_wqe_hdr *)slot, sane);
        }
        if (rnd(sane ? 40 : 6) == 0) {
            slot[rnd(96)] ^= 1 << rnd(8);
        }
    }
    s->md.hold = false;
}

static void bad_doorbell(struct md *md)
{
    bool hold = md->hold;

    md->hold = true;
    sg_adapter_doorbell(md->a, rnd(4) ? rnd(3) : rnd(SG_UAR_COUNT), rnd(8) * 8,
                        rnd(2) ? rnd64() : rnd(6) | (uint64_t)rnd(40) << 32, rnd(9) ? 8 : 4);
    md->hold = hold;
}

static void bad_memory(struct test_host *h)
{
    uint32_t i, n = 1 + rnd(64), at = rnd(2) ? rnd(PAIR_MEM - 64) : rnd((uint32_t)h->brk);

    for (i = 0; i < n && at + i < PAIR_MEM; i++) {
        h->mem[at + i] = (uint8_t)rnd(256);
    }
}

static void drain(struct pair_side *s)
{
    struct sg_eqe e;
    struct sg_cqe c;
    int n = 0;

    while (n++ < 1000 && md_next_async(&s->md, &e)) {
    }
    while (n++ < 1000 && md_poll(&s->cq, &c)) {
    }
}

/* As md_cmd, but the adapter may not answer any more. */
static bool try_cmd(struct md *md, const void *cmd, size_t len, struct sg_admin_rsp *rsp)
{
    bool any = false;

    if (md->asq.prod - md->acq.cons >= MD_ADMIN_SIZE - 1) {
        return false;
    }
    md_submit(md, cmd, len);
    pair_settle(&p);
    while (md_reap(md, rsp)) {
        any = true;
    }
    return any && rsp->status == SG_OK && sg_get_le16(&rsp->cookie) == md->cookie;
}

/* New queue pairs, connected: most garbage ends the old ones quickly. */
static void revive(void)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };
    struct sg_admin_rsp rsp;
    struct md_srq shared = { .srqn = last_srq };
    struct sg_eqe e;
    int i, n;

    for (i = 0; i < 2; i++) {
        struct pair_side *s = &p.side[i];
        struct sg_cmd_id d = { .hdr.opcode = SG_ADMIN_DESTROY_QP };
        struct sg_cmd_create_qp q;

        drain(s);
        sg_put_le32(&d.id, s->qp.qpn);
        try_cmd(&s->md, &d, sizeof(d), &rsp);
        s->h.brk = p.base_brk[i] + (1 << 16) * rnd(4);
        q = md_create_qp_cmd(&s->md, &(struct md_qp_params){
                                         .pd = s->pd,
                                         .scq = &s->cq,
                                         .rcq = &s->cq,
                                         .flags = i ? 0 : rnd(4),
                                         .access = ACCESS,
                                         .srq = !i && last_srq && rnd(2) ? &shared : NULL,
                                     });
        if (!try_cmd(&s->md, &q, sizeof(q), &rsp)) {
            return;
        }
        s->qp.qpn = sg_get_le32(&rsp.id);
        s->qp.sq = (struct md_ring){ sg_get_le64(&q.sq_pages.addr), 16, 512, 0, 0 };
        s->qp.rq = (struct md_ring){ sg_get_le64(&q.rq_pages.addr), 16, 512, 0, 0 };
        if (!i) {
            srq_used = sg_get_le32(&q.srqn);
            s->qp.rq = srq_used ? srq_ring : s->qp.rq;
        }
    }
    sg_put_le32(&c.qpn, p.side[0].qp.qpn);
    c.local = md_addr(&p.side[0].at, 0);
    c.remote = md_addr(&p.side[1].at, PAIR_PORT);
    sg_put_le16(&c.ird, rnd(20));
    sg_put_le16(&c.ord, rnd(20));
    if (!try_cmd(&p.side[0].md, &c, sizeof(c), &rsp)) {
        return;
    }
    for (n = 0; n < 100 && md_next_async(&p.side[1].md, &e); n++) {
        if (e.event == SG_EV_CM_REQUEST) {
            pair_answer(&p, SG_ADMIN_ACCEPT, p.side[1].qp.qpn, sg_get_le32(&e.conn), 16, 16, NULL);
        }
    }
    pair_settle(&p);
    revived += md_qp_state(&p.side[1].qp) == SG_QP_RTS;
}

static void step(uint32_t mix)
{
    struct pair_side *s = &p.side[0];

    if (rnd(20) == 0) {
        revive();
    }
    switch (rnd(12)) {
    case 0:
        bad_register(&s->md);
        break;
    case 1:
    case 2:
        bad_command(&s->md);
        break;
    case 3:
    case 4:
        bad_doorbell(&s->md);
        break;
    case 5:
        if (mix & 1) {
            bad_memory(&s->h);
        }
        break;
    case 6:
        drain(s);
        break;
    case 7:
        pair_pass(&p, rnd(2) ? 1000000 : 3000000000u);
        break;
    case 8:
        md_post_recv(&p.side[1].qp, 1, p.side[1].buf, GRANTED, p.side[1].stag);
        md_post_send(&p.side[1].qp, &(struct md_wr){
                                        /* zero octets: takes a receive */
                                        .opcode = SG_WR_SEND,
                                        .wr_id = 5,
                                    });
        drain(&p.side[1]);
        break;
    default:
        bad_entry(s);
    }
    pair_settle(&p);
}

static void misbehave(uint32_t seed)
{
    struct pair_side *good = &p.side[1], *bad = &p.side[0];
    struct sg_mem_options net = { 0 };
    struct sg_cmd_reg_mr grant;
    struct sg_admin_rsp rsp;
    uint8_t *before;
    uint32_t i, n;

    rng = seed * 2654435761u + 17;
    for (i = 0; i < 8; i++) {
        rnd(2);
    }
    last_srq = last_mw = last_odp = srq_used = 0;
    pair_start(&p, NULL, &net);
    for (i = 0; i < 2; i++) {
        test_pm_init(&pm[i], &p.side[i].h, p.side[i].buf, p.side[i].buf + GRANTED * (1 + 8 * i));
        pm[i].hold = rnd(2);
        pm[i].later = rnd(3);
        pm[i].later_ns = rnd(2) * 1000;
    }
    pair_open(&p, &(struct md_qp_params){ .flags = rnd(4), .entries = 16, .access = ACCESS });
    pair_connect(&p);
    /* What side 1 grants: the first octets of its buffer. */
    grant = md_reg_mr_cmd(good->pd, good->buf, GRANTED, ACCESS);
    grant.hash_alg = SG_HASH_CRC32C + rnd(3);
    T_EQ_U64(md_cmd(&good->md, &grant, sizeof(grant), &rsp), SG_OK);
    good->conn = sg_get_le32(&rsp.id);
    memset(pair_buf(&p, 1), 0x5a, PAIR_BUF);
    before = malloc(PAIR_BUF);
    memcpy(before, pair_buf(&p, 1), PAIR_BUF);
    bad->h.log_on[SG_LOG_GUEST_ERROR] = rnd(2);
    for (i = 0; i < STEPS; i++) {
        step(seed);
    }
    bad->h.fault_lo = TEST_HOST_BASE + rnd(PAIR_MEM);
    bad->h.fault_hi = bad->h.fault_lo + rnd(1 << 20);
    for (i = 0; i < STEPS / 4; i++) {
        step(seed);
    }
    T_EQ_MEM(pair_buf(&p, 1) + GRANTED, before + GRANTED, PAIR_BUF - GRANTED);
    T_EQ_U64(md_read(&good->md, SG_REG_STATUS), SG_STATUS_READY);
    T_EQ_INT(bad->h.mapped, 0);
    md_write(&bad->md, SG_REG_CTRL, SG_CTRL_RESET);
    T_EQ_U64(md_read(&bad->md, SG_REG_STATUS), 0);
    pair_settle(&p);
    free(before);
    pair_stop(&p);
    for (i = 0; i < 2; i++) {
        for (n = 0; n < pm[i].count && n < TEST_PM_CALLS; n++) {
            seen[i][pm[i].calls[n].op]++;
        }
        test_pm_fini(&pm[i]);
    }
}

static void garbage(void)
{
    const char *only = getenv("SG_SEED");
    uint32_t seed, seeds = t_seeds(SEEDS, SEEDS);

    for (seed = only ? (uint32_t)atoi(only) : 1; seed <= seeds || only; seed++) {
        T_CONTEXT("seed %u: set SG_SEED to replay", seed);
        misbehave(seed);
        if (only) {
            break;
        }
    }
    T_NOTE("%u connections; at the peer %u placed, %u flushed, %u read, %u stored", revived,
           seen[1][TEST_PM_PLACE], seen[1][TEST_PM_FLUSH], seen[1][TEST_PM_READ],
           seen[1][TEST_PM_STORE]);
    T_NOTE("%u times pages came or went, %u shared queues, %u resized", mapped, shares, resizes);
    T_TRUE(only || (mapped > seeds && shares > seeds && resizes > seeds));
    T_TRUE(only || revived > seeds); /* else most of the test ran without connections */
    T_TRUE(only || (seen[1][TEST_PM_FLUSH] > seeds && seen[1][TEST_PM_READ] > seeds &&
                    seen[1][TEST_PM_STORE] > seeds));
}

static const struct t_case cases[] = {
    { "garbage from the guest hurts nobody else", garbage },
};

T_MAIN(cases)
