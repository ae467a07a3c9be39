/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Target "verbs": a guest that does what the input says, at one end of a connection whose other end
 * behaves well.
 *
 * The input writes registers, doorbells, admin commands, descriptors, rings and memory, makes
 * memory stop responding, and advances the clock.  The other side grants four kilobytes of its
 * persistent memory.  The rest of its memory must not change, its adapter must stay alive, and a
 * reset must free all objects of the bad side.
 */
#include <stdio.h>

#include "fuzz.h"
#include "pair.h"
#include "test_pm.h"

enum {
    STEPS = 250,
    GRANTED = 4096,
    RIGHTS = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE |
             SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_FLUSH_PERSISTENT | SG_ACCESS_VERIFY,
};

static struct pair p;
static struct test_pm pm[2];
static struct fuzz_in in;
static uint32_t granted, window, paged; /* the last two of side 0; 0: none */
static unsigned long long mapped, connected, completions, errors, fatals, flushes, hashed, stores;

/* Sizes, addresses, edges. */
static uint64_t value(void)
{
    switch (fuzz_below(&in, 4)) {
    case 0:
        return TEST_HOST_BASE + fuzz_u32(&in) % PAIR_MEM;
    case 1:
        return TEST_HOST_BASE + (fuzz_u16(&in) % (PAIR_MEM / SG_PAGE_SIZE)) * SG_PAGE_SIZE;
    case 2:
        return fuzz_u8(&in);
    default:
        return fuzz_edgy(&in);
    }
}

static void settle(void)
{
    pair_settle(&p);
}

static bool fatal(const struct md *md)
{
    return sg_adapter_reg_read(md->a, SG_REG_STATUS, 4) & SG_STATUS_FATAL;
}

/* Sends a command if the ring has room; the last answer is in rsp.  False: none came. */
static bool try_cmd(struct md *md, const void *cmd, size_t len, struct sg_admin_rsp *rsp)
{
    bool any = false;

    if (md->asq.prod - md->acq.cons >= MD_ADMIN_SIZE - 1) {
        return false;
    }
    md_submit(md, cmd, len);
    settle();
    while (md_reap(md, rsp)) {
        any = true;
    }
    return any && rsp->status == SG_OK && sg_get_le16(&rsp->cookie) == md->cookie;
}

static void register_write(struct md *md)
{
    uint32_t reg = fuzz_u8(&in) & 1 ? SG_REG_EQ_DB + 4 * fuzz_below(&in, SG_EQ_COUNT + 2)
                                    : 4 * fuzz_below(&in, 0x100 / 4);

    if (fuzz_rarely(&in, 16)) {
        reg = fuzz_u16(&in);
    }
    /* CTRL and ADMIN_DB end most activity, so they are left to other steps, or rare. */
    if (reg / 4 != SG_REG_CTRL / 4 && (reg / 4 != SG_REG_ADMIN_DB / 4 || fuzz_rarely(&in, 32))) {
        unsigned size = fuzz_rarely(&in, 8) ? 8 : 4;

        if (size == 8 && reg / 4 + 1 == SG_REG_ADMIN_DB / 4) {
            size = 4;
        }
        sg_adapter_reg_write(md->a, reg, value(), size);
    }
}

static void register_read(struct md *md)
{
    static const uint8_t sizes[] = { 4, 8, 4, 1, 2, 4, 8, 3 };
    uint16_t offset = fuzz_u16(&in);

    sg_adapter_reg_read(md->a, offset, sizes[fuzz_below(&in, 8)]);
}

static void doorbell(struct pair_side *s)
{
    uint32_t page = fuzz_rarely(&in, 8) ? fuzz_below(&in, SG_UAR_COUNT) : 0;
    uint32_t offset = fuzz_rarely(&in, 16) ? fuzz_u16(&in) % SG_UAR_SIZE : 8 * fuzz_below(&in, 5);
    uint32_t number = fuzz_rarely(&in, 4)      ? (uint32_t)value()
                      : offset == SG_DB_CQ_ARM ? s->cq.cqn
                                               : s->qp.qpn;
    uint32_t index =
        fuzz_rarely(&in, 4) ? (uint32_t)fuzz_edgy(&in) : s->qp.sq.prod + fuzz_below(&in, 8);

    if (offset == SG_DB_CQ_ARM && fuzz_rarely(&in, 2)) {
        number |= SG_CQ_ARM_SOLICITED;
    }
    sg_adapter_doorbell(s->md.a, page, offset, number | (uint64_t)index << 32,
                        fuzz_rarely(&in, 16) ? 4 : 8);
}

union verbs_any_command {
    uint8_t octets[SG_ADMIN_CMD_SIZE];
    struct sg_admin_hdr hdr;
    struct sg_cmd_create_qp qp;
    struct sg_cmd_create_cq cq;
    struct sg_cmd_reg_mr mr;
    struct sg_cmd_connect connect;
    struct sg_cmd_listen listen;
    struct sg_cmd_id id;
    struct sg_cmd_create_srq srq;
    struct sg_cmd_resize_srq resize;
    struct sg_cmd_alloc_mw mw;
    struct sg_cmd_map_pages map;
};

/* A shared queue or a new ring for it, a window, a region with on-demand paging, or its pages. */
static void make_object(struct pair_side *s, union verbs_any_command *c)
{
    struct sg_cmd_create_srq like;

    switch (fuzz_below(&in, 5)) {
    case 3:
        like = md_create_srq_cmd(&s->md, s->pd, 2u << fuzz_below(&in, 5));
        c->hdr.opcode = SG_ADMIN_RESIZE_SRQ;
        sg_put_le32(&c->resize.srqn, 1 + fuzz_below(&in, 2));
        sg_put_le32(&c->resize.flags, fuzz_below(&in, 2));
        sg_put_le32(&c->resize.limit, fuzz_u8(&in) & 15);
        c->resize.entries = like.entries;
        c->resize.pages = like.pages;
        break;
    case 0:
        c->srq = md_create_srq_cmd(&s->md, s->pd, 2u << fuzz_below(&in, 5));
        sg_put_le32(&c->srq.limit, fuzz_u8(&in) & 15);
        break;
    case 1:
        c->mw = (struct sg_cmd_alloc_mw){ .hdr.opcode = SG_ADMIN_ALLOC_MW };
        c->mw.type = 1 + fuzz_below(&in, 2);
        sg_put_le32(&c->mw.pd, s->pd);
        break;
    case 2:
        c->mr = md_reg_mr_cmd(s->pd, s->buf, 1 + fuzz_u16(&in), fuzz_u16(&in) & 0x7f);
        c->mr.flags = SG_MR_ODP;
        sg_put_le64(&c->mr.pages.addr, 0);
        break;
    default:
        c->hdr.opcode = SG_ADMIN_MAP_PAGES;
        sg_put_le32(&c->map.stag, paged);
        sg_put_le32(&c->map.op, 1 + fuzz_below(&in, 3));
        sg_put_le64(&c->map.first_page, fuzz_below(&in, 8));
        sg_put_le64(&c->map.count, 1 + fuzz_below(&in, 8));
        sg_put_le64(&c->map.list, s->buf + PAIR_BUF / 2); /* zeros, or whatever is there */
        break;
    }
}

/* Remembers the objects that a command created, for later requests. */
static void remember(const union verbs_any_command *c, const struct sg_admin_rsp *rsp)
{
    if (c->hdr.opcode == SG_ADMIN_ALLOC_MW) {
        window = sg_get_le32(&rsp->id);
    } else if (c->hdr.opcode == SG_ADMIN_REG_MR && c->mr.flags & SG_MR_ODP) {
        paged = sg_get_le32(&rsp->id);
    } else if (c->hdr.opcode == SG_ADMIN_MAP_PAGES) {
        mapped++;
    }
}

/* A valid command, or random numbers; then a few fields are changed. */
static void command(struct pair_side *s)
{
    union verbs_any_command c = { 0 };
    struct sg_admin_rsp rsp;
    unsigned i;

    s->h.brk = SG_MIN(s->h.brk, (size_t)PAIR_MEM - (1 << 20));
    switch (fuzz_below(&in, 12)) {
    case 0:
        c.qp = md_create_qp_cmd(
            &s->md, &(struct md_qp_params){
                        .pd = s->pd,
                        .scq = &s->cq,
                        .rcq = &s->cq,
                        .flags = fuzz_below(&in, 4),
                        .access = RIGHTS,
                        .srq = fuzz_below(&in, 2) ? &(struct md_srq){ .srqn = 1 } : NULL,
                    });
        break;
    case 1:
        c.mr = md_reg_mr_cmd(s->pd, s->buf, 1 + fuzz_u16(&in), fuzz_u16(&in) & 0x1ff);
        c.mr.pages.levels = fuzz_rarely(&in, 2) ? fuzz_below(&in, 3) : 0;
        c.mr.hash_alg = fuzz_below(&in, SG_HASH_COUNT + 1);
        c.mr.hash_key_len = fuzz_rarely(&in, 4) ? fuzz_u8(&in) : 0;
        c.mr.mem_type = fuzz_rarely(&in, 4) ? fuzz_u8(&in) & 3 : 0;
        break;
    case 2:
        c.cq = md_create_cq_cmd(&s->md, 2u << fuzz_below(&in, 8));
        break;
    case 3:
        c.hdr.opcode = SG_ADMIN_LISTEN;
        c.listen.local = md_addr(&s->at, fuzz_u16(&in));
        sg_put_le32(&c.listen.backlog, 1 + fuzz_u8(&in));
        break;
    case 4:
        c.hdr.opcode = SG_ADMIN_CONNECT;
        sg_put_le32(&c.connect.qpn, s->qp.qpn + fuzz_below(&in, 3));
        c.connect.local = md_addr(&s->at, 0);
        c.connect.remote = md_addr(&p.side[1].at, PAIR_PORT + fuzz_below(&in, 2));
        sg_put_le64(&c.connect.pdata_addr, value());
        sg_put_le16(&c.connect.pdata_len, fuzz_u16(&in) % 600);
        sg_put_le16(&c.connect.flags, fuzz_below(&in, 4));
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        make_object(s, &c);
        break;
    case 5:
        c.hdr.opcode = fuzz_below(&in, SG_ADMIN_OPCODE_COUNT);
        sg_put_le32(&c.id.id, fuzz_u8(&in));
        break;
    default:
        c.hdr.opcode = fuzz_below(&in, SG_ADMIN_OPCODE_COUNT);
        for (i = sizeof(c.hdr); i + 4 <= sizeof(c); i += 4) {
            sg_put_le32(c.octets + i, (uint32_t)value());
        }
    }
    for (i = fuzz_below(&in, 3); i; i--) {
        uint32_t at = 4 * fuzz_below(&in, sizeof(c) / 4);

        sg_put_le32(c.octets + at, (uint32_t)value());
    }
    if (try_cmd(&s->md, &c, sizeof(c), &rsp)) {
        remember(&c, &rsp);
    }
}

/* The part of a bind after its header. */
static void put_bind(struct pair_side *s, struct sg_wqe_hdr *h)
{
    struct sg_wqe_bind *b = (struct sg_wqe_bind *)(h + 1);

    sg_put_le32(&b->stag, window);
    sg_put_le32(&b->mr_stag, fuzz_below(&in, 2) ? paged : s->stag);
    sg_put_le32(&b->access, fuzz_u16(&in) & 0x17f);
    sg_put_le64(&b->va, s->buf + fuzz_u16(&in));
    sg_put_le64(&b->length, fuzz_u16(&in));
}

/* The part of a Flush or Verify after its header. */
static void put_place(struct pair_side *s, struct sg_wqe_hdr *h)
{
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);
    struct sg_sge *sge = (struct sg_sge *)(place + 1);
    uint8_t how = fuzz_u8(&in);

    h->num_sge = h->opcode == SG_WR_VERIFY && how & 1;
    sg_put_le32(&place->length, how & 2 ? fuzz_u16(&in) % GRANTED : (uint32_t)fuzz_edgy(&in));
    sg_put_le32(&place->flags, h->opcode == SG_WR_FLUSH ? 1 + (how >> 2 & 7) : 0);
    place->hash_len = how & 32 || h->opcode == SG_WR_FLUSH ? 0 : fuzz_u8(&in) % 80;
    sg_put_le64(&sge->addr, s->buf + fuzz_u16(&in));
    sg_put_le32(&sge->length, 4 + (how >> 6) * 20);
    sg_put_le32(&sge->lkey, s->stag);
}

static void send_entry(struct pair_side *s)
{
    static const uint8_t ops[] = { SG_WR_SEND,   SG_WR_SEND_INV, SG_WR_WRITE,
                                   SG_WR_READ,   SG_WR_READ_INV, SG_WR_LOCAL_INV,
                                   SG_WR_REG_MR, SG_WR_WRITE,    SG_WR_FLUSH,
                                   SG_WR_FLUSH,  SG_WR_VERIFY,   SG_WR_ATOMIC_WRITE,
                                   SG_WR_BIND_MW };
    struct md_wr w = {
        .opcode = fuzz_rarely(&in, 8) ? fuzz_u8(&in) : ops[fuzz_below(&in, sizeof(ops))],
        .flags = fuzz_rarely(&in, 8) ? fuzz_u8(&in) : fuzz_below(&in, 8),
        .wr_id = 7,
        .addr = s->buf,
        .lkey = fuzz_rarely(&in, 4) ? paged : s->stag,
        .inv_stag = fuzz_rarely(&in, 2) ? window : s->stag,
        .raddr = p.side[1].buf,
        .rkey = granted,
    };
    uint8_t *slot;
    unsigned i;

    w.addr += fuzz_rarely(&in, 8) ? value() : fuzz_u16(&in);
    w.len = fuzz_rarely(&in, 8) ? (uint32_t)fuzz_edgy(&in) : fuzz_u16(&in) % 3000;
    w.raddr += fuzz_rarely(&in, 8) ? value() : fuzz_u16(&in) % (2 * GRANTED);
    w.rkey ^= fuzz_rarely(&in, 8) ? fuzz_u32(&in) : 0;
    w.lkey ^= fuzz_rarely(&in, 8) ? fuzz_u32(&in) : 0;
    if (w.opcode >= SG_WR_FLUSH && w.opcode <= SG_WR_ATOMIC_WRITE) {
        w.flags &= SG_WQE_FENCE;
        w.inv_stag = fuzz_rarely(&in, 16) ? w.inv_stag : 0;
        w.len = w.opcode == SG_WR_ATOMIC_WRITE ? 8 : w.len;
        w.raddr = fuzz_rarely(&in, 8) ? w.raddr : w.raddr & ~7ull;
    }
    s->md.hold = true;
    slot = (uint8_t *)md_sq_entry(&s->qp);
    s->qp.sq.prod--;
    md_post_send(&s->qp, &w);
    if (w.opcode == SG_WR_FLUSH || w.opcode == SG_WR_VERIFY) {
        put_place(s, (struct sg_wqe_hdr *)slot);
    } else if (w.opcode == SG_WR_BIND_MW) {
        put_bind(s, (struct sg_wqe_hdr *)slot);
    }
    for (i = fuzz_rarely(&in, 4) ? 4 : 0; i; i--) {
        uint32_t at = fuzz_below(&in, 128);

        slot[at] = fuzz_u8(&in);
    }
    s->md.hold = false;
}

static void receive_entry(struct pair_side *s)
{
    uint64_t addr = s->buf + (fuzz_rarely(&in, 8) ? value() : fuzz_u16(&in));
    uint32_t len = fuzz_rarely(&in, 8) ? (uint32_t)fuzz_edgy(&in) : fuzz_u16(&in);
    uint8_t *slot = (uint8_t *)md_rq_entry(&s->qp);
    unsigned i;

    s->qp.rq.prod--;
    s->md.hold = true;
    md_post_recv(&s->qp, 3, addr, len, fuzz_rarely(&in, 8) ? fuzz_u32(&in) : s->stag);
    for (i = fuzz_rarely(&in, 4) ? 3 : 0; i; i--) {
        uint32_t at = fuzz_below(&in, 64);

        slot[at] = fuzz_u8(&in);
    }
    s->md.hold = false;
}

static void scribble(struct test_host *h)
{
    uint32_t at = fuzz_u32(&in) % (fuzz_rarely(&in, 2) ? PAIR_MEM : (uint32_t)h->brk);
    size_t n = fuzz_u8(&in), room = PAIR_MEM - at;
    const uint8_t *from = fuzz_bytes(&in, &n);

    if (n) {
        memcpy(h->mem + at, from, SG_MIN(n, room));
    }
}

static void break_memory(struct test_host *h)
{
    switch (fuzz_below(&in, 4)) {
    case 0:
        h->deny_map = !h->deny_map;
        break;
    case 1:
        h->map_limit = fuzz_u16(&in);
        break;
    case 2:
        h->fault_lo = TEST_HOST_BASE + fuzz_u32(&in) % PAIR_MEM;
        h->fault_hi = h->fault_lo + fuzz_u16(&in);
        break;
    default:
        h->fault_lo = h->fault_hi = 0;
    }
}

static void drain(struct pair_side *s)
{
    struct sg_eqe e;
    struct sg_cqe c;
    int n = 0;

    /* The entries may be the guest's own random data, so there may be no end of them. */
    while (n++ < 500 && md_next_async(&s->md, &e)) {
        if (s == &p.side[1] && e.event == SG_EV_CM_REQUEST) {
            struct sg_cmd_connect a = { .hdr.opcode = SG_ADMIN_ACCEPT };
            struct sg_admin_rsp rsp;

            sg_put_le32(&a.qpn, s->qp.qpn);
            a.conn = e.conn;
            sg_put_le16(&a.flags, fuzz_below(&in, 4));
            connected += try_cmd(&s->md, &a, sizeof(a), &rsp);
        }
    }
    while (n++ < 500 && md_poll(&s->cq, &c)) {
        completions++;
        errors += c.status != SG_WC_SUCCESS;
    }
}

/* Side 1 continues to work: it posts receives, and messages that side 0 may not be ready for. */
static void good_side(void)
{
    struct pair_side *s = &p.side[1];
    static const uint8_t ops[] = { SG_WR_SEND, SG_WR_WRITE, SG_WR_READ };

    drain(s);
    md_post_recv(&s->qp, 1, s->buf, GRANTED, s->stag);
    md_post_send(&s->qp, &(struct md_wr){
                             .opcode = ops[fuzz_below(&in, 3)],
                             .addr = s->buf,
                             .len = fuzz_u16(&in) % GRANTED,
                             .lkey = s->stag,
                             .raddr = p.side[0].buf,
                             .rkey = p.side[0].stag,
                         });
}

static void new_qp(struct pair_side *s, uint32_t flags)
{
    struct sg_cmd_id d = { .hdr.opcode = SG_ADMIN_DESTROY_QP };
    struct sg_cmd_create_qp c;
    struct sg_admin_rsp rsp;

    sg_put_le32(&d.id, s->qp.qpn);
    try_cmd(&s->md, &d, sizeof(d), &rsp);
    s->h.brk = p.base_brk[s - p.side];
    c = md_create_qp_cmd(&s->md, &(struct md_qp_params){
                                     .pd = s->pd,
                                     .scq = &s->cq,
                                     .rcq = &s->cq,
                                     .flags = flags,
                                     .access = RIGHTS,
                                 });
    if (try_cmd(&s->md, &c, sizeof(c), &rsp)) {
        s->qp.qpn = sg_get_le32(&rsp.id);
        s->qp.sq = (struct md_ring){ sg_get_le64(&c.sq_pages.addr), 16, 512, 0, 0 };
        s->qp.rq = (struct md_ring){ sg_get_le64(&c.rq_pages.addr), 16, 512, 0, 0 };
    }
}

/* New queue pairs, and a connection between them. */
static void reconnect(void)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };
    struct sg_admin_rsp rsp;

    drain(&p.side[1]);
    new_qp(&p.side[0], fuzz_below(&in, 4));
    new_qp(&p.side[1], 0);
    c.local = md_addr(&p.side[0].at, 0);
    c.remote = md_addr(&p.side[1].at, PAIR_PORT);
    sg_put_le32(&c.qpn, p.side[0].qp.qpn);
    sg_put_le16(&c.ird, 8);
    sg_put_le16(&c.ord, 8);
    sg_put_le16(&c.flags, fuzz_below(&in, 4)); /* STAY, CONFIRM */
    try_cmd(&p.side[0].md, &c, sizeof(c), &rsp);
    drain(&p.side[1]);
    settle();
}

/* A reset of some kind; then creates the objects again, as a driver would. */
static void bring_up(void)
{
    struct pair_side *s = &p.side[0];
    struct md *md = &s->md;

    fatals += fatal(md);
    s->h.fault_lo = s->h.fault_hi = 0;
    s->h.brk = 0;
    if (fuzz_u8(&in) & 1) {
        sg_adapter_reset(md->a);
    } else {
        md_write(md, SG_REG_CTRL, SG_CTRL_RESET);
    }
    md_enable(md);
    s->pd = md_create_pd(md);
    md_create_cq(md, &s->cq, PAIR_CQE);
    s->buf = test_host_alloc(&s->h, PAIR_BUF, SG_PAGE_SIZE);
    s->stag = md_reg_mr(md, s->pd, s->buf, PAIR_BUF,
                        SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE);
    p.base_brk[0] = s->h.brk;
    reconnect();
}

static void step(void)
{
    struct pair_side *s = &p.side[0];

    switch (fuzz_below(&in, 20)) {
    case 0:
        register_write(&s->md);
        break;
    case 1:
        register_read(&s->md);
        break;
    case 2:
    case 3:
        doorbell(s);
        break;
    case 4:
    case 5:
    case 6:
        command(s);
        break;
    case 7:
        receive_entry(s);
        break;
    case 8:
        scribble(&s->h);
        break;
    case 9:
        break_memory(&s->h);
        break;
    case 10:
        drain(s);
        break;
    case 11:
        pair_pass(&p, (uint64_t)1 << fuzz_below(&in, 34));
        break;
    case 12:
        if (fuzz_rarely(&in, 4) || fatal(&s->md)) {
            bring_up();
        }
        break;
    case 13:
        reconnect();
        break;
    case 14:
        sg_adapter_set_link(s->md.a, fuzz_u8(&in) & 1);
        break;
    case 15:
    case 16:
        good_side();
        break;
    default:
        send_entry(s);
    }
    settle();
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len,
             "connections %llu, completions %llu, %llu of them in error, fatal %llu, "
             "flushed %llu, hashed %llu, stored %llu, paged %llu",
             connected, completions, errors, fatals, flushes, hashed, stores, mapped);
    return mapped && connected && completions > errors && errors && fatals && flushes && hashed &&
           stores;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pair_side *good = &p.side[1], *bad = &p.side[0];
    struct sg_adapter_census census;
    struct sg_cmd_reg_mr grant;
    struct sg_admin_rsp rsp;
    unsigned i;

    in = (struct fuzz_in){ data, size };
    window = paged = 0;
    pair_start(&p, NULL, NULL);
    for (i = 0; i < 2; i++) {
        uint8_t how = fuzz_u8(&in);

        test_pm_init(&pm[i], &p.side[i].h, p.side[i].buf, p.side[i].buf + 8 * GRANTED);
        pm[i].hold = how & 1;
        pm[i].later = how >> 1 & 3;
        pm[i].later_ns = how;
        pm[i].fail_flush = how & 8 ? how >> 4 : -1;
        p.side[i].h.log_on[SG_LOG_GUEST_ERROR] = i;
        p.side[i].h.log_on[SG_LOG_STATE] = false;
        p.side[i].h.log_on[SG_LOG_FAILURE] = i;
    }
    pair_open(&p, &(struct md_qp_params){ .flags = fuzz_u8(&in) & 3 });
    grant = md_reg_mr_cmd(good->pd, good->buf, GRANTED, RIGHTS);
    grant.hash_alg = SG_HASH_CRC32C + fuzz_below(&in, 3);
    sg_assert(md_cmd(&good->md, &grant, sizeof(grant), &rsp) == SG_OK);
    granted = sg_get_le32(&rsp.id);
    memset(pair_buf(&p, 1) + GRANTED, 0x5a, PAIR_BUF - GRANTED);
    reconnect();
    for (i = 0; i < STEPS && in.len; i++) {
        step();
    }
    for (i = GRANTED; i < PAIR_BUF; i++) {
        sg_assert(pair_buf(&p, 1)[i] == 0x5a);
    }
    sg_assert(sg_adapter_reg_read(good->md.a, SG_REG_STATUS, 4) == SG_STATUS_READY);
    sg_assert(bad->h.mapped == 0);
    sg_adapter_reset(bad->md.a);
    sg_adapter_census(bad->md.a, &census);
    sg_assert(!census.srqs && !census.mws);
    sg_assert(!census.pds && !census.mrs && !census.cqs && !census.qps && !census.eqs &&
              !census.conns && !census.listeners);
    pair_stop(&p);
    flushes += test_pm_count(&pm[1], TEST_PM_FLUSH);
    hashed += test_pm_count(&pm[1], TEST_PM_READ);
    stores += test_pm_count(&pm[1], TEST_PM_STORE);
    test_pm_fini(&pm[0]);
    test_pm_fini(&pm[1]);
    return 0;
}
