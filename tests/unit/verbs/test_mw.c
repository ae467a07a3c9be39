/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows.  Side 1 has them: over a region with MW_BIND and LOCAL_WRITE that grants peers
 * nothing itself.  Side 0 accesses it through the window.
 */
#include "pair_rig.h"

enum { BASE = 8192, LEN = 16384 };

static const uint32_t region_rights = SG_ACCESS_MW_BIND | SG_ACCESS_LOCAL_WRITE;
static const uint32_t all_rights = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE;
static uint32_t region, window;

static uint32_t alloc_mw(uint32_t pd, uint8_t type)
{
    return md_alloc_mw(&pair.side[1].md, pd, type);
}

static enum sg_status command(enum sg_admin_opcode op, uint32_t id)
{
    return md_cmd_id(&pair.side[1].md, op, id);
}

static void begin_with_window(uint8_t type, uint32_t flags)
{
    struct pair_side *s = &pair.side[1];

    begin(&(struct md_qp_params){ .flags = flags });
    region = md_reg_mr(&s->md, s->pd, s->buf + BASE, LEN, region_rights);
    window = alloc_mw(s->pd, type);
}

static void end_with_window(void)
{
    struct sg_adapter_census c;

    T_EQ_U64(command(SG_ADMIN_DEALLOC_MW, window), SG_OK);
    T_EQ_U64(command(SG_ADMIN_DEALLOC_MW, window), SG_ENOENT);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_OK);
    sg_adapter_census(pair.side[1].md.a, &c);
    T_EQ_U64(c.mws, 0);
    T_EQ_U64(c.mrs, 1);
    end();
}

struct bind {
    uint32_t stag, region, access;
    uint64_t off, length; /* off: within the region, whose first octet is at BASE of the buffer */
};

static void post_bind(struct md_qp *qp, const struct bind *b)
{
    struct sg_wqe_hdr *h = md_sq_entry(qp);
    struct sg_wqe_bind *w = (struct sg_wqe_bind *)(h + 1);

    h->opcode = SG_WR_BIND_MW;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le64(&h->wr_id, 500);
    sg_put_le32(&w->stag, b->stag);
    sg_put_le32(&w->mr_stag, b->region);
    sg_put_le32(&w->access, b->access);
    sg_put_le64(&w->va, pair.side[1].buf + BASE + b->off);
    sg_put_le64(&w->length, b->length);
    md_sq_doorbell(qp);
}

static void bind_ok(uint32_t stag, uint32_t access, uint64_t off, uint64_t length)
{
    const struct bind b = { stag, region, access, off, length };

    post_bind(&pair.side[1].qp, &b);
    T_EQ_U64(expect(1, 500, SG_WC_SUCCESS).opcode, SG_WC_BIND_MW);
}

/* Side 0 accesses len octets at Tagged Offset to of stag. */
static void access_by_peer(uint8_t opcode, uint32_t stag, uint64_t to, uint32_t len)
{
    struct md_wr w = wr(0, opcode, 600, 0, len, 0);

    w.rkey = stag;
    w.raddr = to;
    post(0, w);
}

static void expect_access_error(void)
{
    struct sg_eqe e = pair_expect(&pair, 1, SG_EV_QP_ACCESS_ERR);

    T_EQ_U64(sg_get_le32(&e.id), pair.side[1].qp.qpn);
}

static uint64_t at(uint64_t off)
{
    return pair.side[1].buf + BASE + off;
}

static void use_it(uint8_t type)
{
    begin_with_window(type, 0);
    bind_ok(window + 1, all_rights, 100, 1000);
    fill(0, 0, 1000, 5);
    access_by_peer(SG_WR_WRITE, window + 1, at(100), 1000);
    expect(0, 600, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + BASE + 100, pair_buf(&pair, 0), 1000);
    fill(1, BASE, LEN, 9);
    access_by_peer(SG_WR_READ, window + 1, at(1090), 10);
    expect(0, 600, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1) + BASE + 1090, 10);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_EBUSY);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, window + 1), SG_ENOENT);
    T_EQ_U64(command(SG_ADMIN_DEALLOC_MW, region), SG_ENOENT);
    end_with_window();
}

static void type_1(void)
{
    use_it(SG_MW_TYPE_1);
}

static void type_2(void)
{
    use_it(SG_MW_TYPE_2);
}

static void zero_based(void)
{
    begin_with_window(SG_MW_TYPE_2, 0);
    bind_ok(window, all_rights | SG_ACCESS_ZERO_BASED, 5000, 4096);
    fill(0, 0, 4096, 77);
    access_by_peer(SG_WR_WRITE, window, 0, 4096);
    expect(0, 600, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + BASE + 5000, pair_buf(&pair, 0), 4096);
    access_by_peer(SG_WR_READ, window, 4096, 1);
    expect_no_access(0, 600, 0x01010000);
    end_with_window();
}

/* Accesses that a peer may not make: no memory changes, and the Terminate says why. */
static void refused(void)
{
    static const struct {
        const char *name;
        uint32_t access, key;
        int64_t off;
        uint32_t len;
        uint8_t opcode;
        uint32_t term; /* layer, type, code */
    } rows[] = {
        { "SEC-03 octet before it", SG_ACCESS_REMOTE_WRITE, 0, 99, 8, SG_WR_WRITE, 0x11010000 },
        { "SEC-03 octet behind it", SG_ACCESS_REMOTE_WRITE, 0, 1093, 8, SG_WR_WRITE, 0x11010000 },
        { "wraps", SG_ACCESS_REMOTE_WRITE, 0, INT64_MIN, 8, SG_WR_WRITE, 0x11030000 },
        { "Read: wraps", SG_ACCESS_REMOTE_READ, 0, INT64_MIN, 8, SG_WR_READ, 0x01040000 },
        { "wrong key", SG_ACCESS_REMOTE_WRITE, 1, 100, 8, SG_WR_WRITE, 0x11000000 },
        { "Read: octet behind it", SG_ACCESS_REMOTE_READ, 0, 1093, 8, SG_WR_READ, 0x01010000 },
        { "Read: wrong key", SG_ACCESS_REMOTE_READ, 1, 100, 8, SG_WR_READ, 0x01000000 },
        { "Read without right", SG_ACCESS_REMOTE_WRITE, 0, 100, 8, SG_WR_READ, 0x01020000 },
        { "Write without right", SG_ACCESS_REMOTE_READ, 0, 100, 8, SG_WR_WRITE, 0x11000000 },
    };
    static uint8_t before[LEN];
    uint64_t to;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin_with_window(SG_MW_TYPE_1 + i % 2, 0);
        T_CONTEXT("%s", rows[i].name);
        bind_ok(window, rows[i].access, 100, 1000);
        fill(0, 0, 64, 0x11);
        memcpy(before, pair_buf(&pair, 1) + BASE, LEN);
        to = rows[i].off == INT64_MIN ? UINT64_MAX - 3 : at((uint64_t)rows[i].off);
        pair.side[0].md.hold = true;
        access_by_peer(rows[i].opcode, window ^ rows[i].key, to, rows[i].len);
        post(0, wr(0, SG_WR_READ, 601, 4096, 64, 0)); /* fails if the Write before it does */
        pair.side[0].md.hold = false;
        md_settle(&pair.side[0].md);
        if (rows[i].opcode == SG_WR_WRITE) {
            expect(0, 600, SG_WC_SUCCESS);
        }
        expect_no_access(0, rows[i].opcode == SG_WR_READ ? 600 : 601, rows[i].term);
        T_EQ_MEM(pair_buf(&pair, 1) + BASE, before, LEN);
        expect_access_error();
        end_with_window();
    }
}

static void post_ok(struct md_qp *qp, const struct bind *b)
{
    struct sg_cqe c;

    post_bind(qp, b);
    md_settle(qp->md);
    T_TRUE(md_poll(qp->scq, &c));
    T_EQ_U64(c.status, SG_WC_SUCCESS);
}

enum odd {
    NORMAL,
    NO_BIND,
    NO_WRITE,
    OTHER_PD,
    WINDOW,
    GONE,
    WHOLE,
    WINDOW_OF_OTHER_PD,
    REGION_AS_MW
};

static uint32_t whole_memory(void)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(pair.side[1].pd, 0, 0, SG_ACCESS_LOCAL_WRITE);

    c.flags = SG_MR_WHOLE_MEMORY;
    return md_make(&pair.side[1].md, &c, sizeof(c));
}

/* Puts a wrong window or region into *b. */
static void make_odd(struct bind *b, enum odd what)
{
    struct pair_side *s = &pair.side[1];
    uint32_t pd2 = md_create_pd(&s->md);
    uint32_t other = md_reg_mr(&s->md, what == OTHER_PD ? pd2 : s->pd, s->buf + BASE, LEN,
                               what == NO_BIND    ? SG_ACCESS_LOCAL_WRITE
                               : what == NO_WRITE ? SG_ACCESS_MW_BIND
                                                  : region_rights);

    switch (what) {
    case NORMAL:
        break;
    case NO_BIND:
    case NO_WRITE:
    case OTHER_PD:
        b->region = other;
        break;
    case WINDOW:
        b->region = alloc_mw(s->pd, SG_MW_TYPE_1);
        post_ok(&s->qp, &(struct bind){ b->region, other, all_rights, 0, 64 });
        break;
    case GONE:
        b->region = other ^ 1;
        break;
    case WHOLE:
        b->region = whole_memory();
        break;
    case WINDOW_OF_OTHER_PD:
        b->stag = alloc_mw(pd2, SG_MW_TYPE_1);
        break;
    case REGION_AS_MW:
        b->stag = other;
        break;
    }
}

/* Faulty BIND_MW entries. */
static void refused_binds(void)
{
    static const struct {
        const char *name;
        uint32_t access;
        uint64_t off, length;
        enum odd what;
    } rows[] = {
        { "before the region", SG_ACCESS_REMOTE_READ, UINT64_MAX, 8, NORMAL },
        { "behind the region", SG_ACCESS_REMOTE_READ, LEN - 7, 8, NORMAL },
        { "longer than the region", SG_ACCESS_REMOTE_READ, 0, LEN + 1, NORMAL },
        { "longest", SG_ACCESS_REMOTE_READ, 0, UINT64_MAX, NORMAL },
        { "local write", SG_ACCESS_LOCAL_WRITE, 0, 8, NORMAL },
        { "bind of binds", SG_ACCESS_MW_BIND, 0, 8, NORMAL },
        { "verify", SG_ACCESS_VERIFY, 0, 8, NORMAL },
        { "unknown right", 0x200, 0, 8, NORMAL },
        { "flush of volatile memory", SG_ACCESS_FLUSH_PERSISTENT, 0, 8, NORMAL },
        { "region without MW_BIND", SG_ACCESS_REMOTE_READ, 0, 8, NO_BIND },
        { "write, region without LOCAL_WRITE", SG_ACCESS_REMOTE_WRITE, 0, 8, NO_WRITE },
        { "atomics, region without LOCAL_WRITE", SG_ACCESS_REMOTE_ATOMIC, 0, 8, NO_WRITE },
        { "region of another PD", SG_ACCESS_REMOTE_READ, 0, 8, OTHER_PD },
        { "window over a window", SG_ACCESS_REMOTE_READ, 0, 8, WINDOW },
        { "no such region", SG_ACCESS_REMOTE_READ, 0, 8, GONE },
        { "all bus addresses", SG_ACCESS_REMOTE_READ, 0, 8, WHOLE },
        { "window of another PD", SG_ACCESS_REMOTE_READ, 0, 8, WINDOW_OF_OTHER_PD },
        { "a region is no window", SG_ACCESS_REMOTE_READ, 0, 8, REGION_AS_MW },
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bind b;

        begin_with_window(SG_MW_TYPE_1 + i % 2, SG_QP_KERNEL);
        T_CONTEXT("%s", rows[i].name);
        b = (struct bind){ window, region, rows[i].access, rows[i].off, rows[i].length };
        make_odd(&b, rows[i].what);
        post_bind(&pair.side[1].qp, &b);
        expect(1, 500, SG_WC_MW_BIND_ERR);
        T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_OK); /* nothing is bound to it */
        pair_close(&pair);
        pair_stop(&pair);
    }
}

static void rebinding(void)
{
    begin_with_window(SG_MW_TYPE_1, 0);
    bind_ok(window, all_rights, 0, 64);
    bind_ok(window + 1, all_rights, 4096, 64); /* moves the window */
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_EBUSY);
    access_by_peer(SG_WR_READ, window + 1, at(4096), 64);
    expect(0, 600, SG_WC_SUCCESS);
    bind_ok(window + 2, 0, 0, 0); /* unbinds it */
    bind_ok(window + 3, 0, 0, 0);
    access_by_peer(SG_WR_READ, window + 1, at(4096), 64);
    expect_no_access(0, 600, 0x01000000);
    end_with_window();
}

static void type_2_states(void)
{
    struct bind b;

    begin_with_window(SG_MW_TYPE_2, 0);
    bind_ok(window, all_rights, 0, 64);
    b = (struct bind){ window + 1, region, all_rights, 0, 64 };
    post_bind(&pair.side[1].qp, &b); /* bound already */
    expect(1, 500, SG_WC_MW_BIND_ERR);
    pair_close(&pair);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_OK); /* the binding ended with its queue pair */
    pair_stop(&pair);
    begin_with_window(SG_MW_TYPE_2, 0);
    b = (struct bind){ window, region, 0, 0, 0 };
    post_bind(&pair.side[1].qp, &b); /* no length */
    expect(1, 500, SG_WC_MW_BIND_ERR);
    end_with_window();
}

/* A window of type 2, invalidated from both sides; a queue pair of a process may do it. */
static void invalidation(void)
{
    struct sg_cqe c;
    struct md_wr w;

    begin_with_window(SG_MW_TYPE_2, 0);
    bind_ok(window, all_rights, 0, 64);
    post(1, (struct md_wr){ .opcode = SG_WR_LOCAL_INV, .wr_id = 1, .inv_stag = window });
    expect(1, 1, SG_WC_SUCCESS);
    bind_ok(window + 9, all_rights, 0, 64);
    if (!pair_wire()->invalidates) {
        T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_EBUSY);
        pair_close(&pair);
        pair_stop(&pair);
        return;
    }
    recv(1, 2, 0, 64);
    w = wr(0, SG_WR_SEND_INV, 3, 0, 64, 0);
    w.inv_stag = window + 9;
    post(0, w);
    c = expect(1, 2, SG_WC_SUCCESS);
    T_TRUE(c.flags_phase & SG_CQE_WITH_INV);
    T_EQ_U64(sg_get_le32(&c.inv_stag), window + 9);
    expect(0, 3, SG_WC_SUCCESS);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_OK);
    region = md_reg_mr(&pair.side[1].md, pair.side[1].pd, at(0), LEN, region_rights);
    bind_ok(window, all_rights, 0, 64);
    /* The peer cannot invalidate the region itself. */
    recv(1, 4, 0, 64);
    w.inv_stag = region;
    post(0, w);
    expect(0, 3, SG_WC_SUCCESS); /* it was sent */
    expect_access_error();
    expect(1, 4, SG_WC_FLUSH_ERR);
    end_with_window();
}

static void type_1_stays(void)
{
    struct md_wr w;

    begin_with_window(SG_MW_TYPE_1, 0);
    bind_ok(window, all_rights, 0, 64);
    recv(1, 2, 0, 64);
    w = wr(0, SG_WR_SEND_INV, 3, 0, 64, 0);
    w.inv_stag = window;
    post(0, w);
    pair_expect(&pair, 1, SG_EV_QP_ACCESS_ERR);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_EBUSY);
    pair_close(&pair);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_EBUSY); /* bound for the whole PD */
    T_EQ_U64(command(SG_ADMIN_DEALLOC_MW, window), SG_OK);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, region), SG_OK);
    pair_stop(&pair);
    begin_with_window(SG_MW_TYPE_1, 0);
    bind_ok(window, all_rights, 0, 64);
    post(1, (struct md_wr){ .opcode = SG_WR_LOCAL_INV, .wr_id = 1, .inv_stag = window });
    expect(1, 1, SG_WC_MW_BIND_ERR);
    end_with_window();
}

/* SEC-07: another queue pair of the same domain neither uses nor ends a window of type 2. */
static void association(void)
{
    static const uint8_t opcodes[] = { SG_WR_WRITE, SG_WR_READ, SG_WR_SEND_INV, SG_WR_LOCAL_INV };
    struct pair_side *s = &pair.side[1];
    struct md_qp other;
    struct md_wr w;
    size_t i;

    for (i = 0; i < sizeof(opcodes); i++) {
        if (opcodes[i] == SG_WR_SEND_INV && !pair_wire()->invalidates) {
            continue;
        }
        begin_with_window(SG_MW_TYPE_2, 0);
        T_CONTEXT("opcode %u", opcodes[i]);
        md_create_qp(&s->md, &other,
                     &(struct md_qp_params){
                         .pd = s->pd,
                         .scq = &s->cq,
                         .rcq = &s->cq,
                     });
        /* The first queue pair binds and loses its connection, the second gets one. */
        bind_ok(window, all_rights, 0, 64);
        {
            struct md_qp first = s->qp, active;
            enum sg_status status;
            struct sg_eqe e;

            md_create_qp(&pair.side[0].md, &active,
                         &(struct md_qp_params){
                             .pd = pair.side[0].pd,
                             .scq = &pair.side[0].cq,
                             .rcq = &pair.side[0].cq,
                         });
            pair_connect_cmd(&pair, &active, 4, 4, NULL, &status);
            T_EQ_U64(status, SG_OK);
            e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
            T_EQ_U64(
                pair_answer(&pair, SG_ADMIN_ACCEPT, other.qpn, sg_get_le32(&e.conn), 4, 4, NULL),
                SG_OK);
            pair_expect(&pair, 0, SG_EV_CM_REPLY);
            pair_expect(&pair, 1, SG_EV_CM_ESTABLISHED);
            if (opcodes[i] == SG_WR_LOCAL_INV) {
                md_post_send(&other, &(struct md_wr){
                                         .opcode = SG_WR_LOCAL_INV,
                                         .wr_id = 1,
                                         .inv_stag = window,
                                     });
            } else {
                md_post_recv(&other, 2, s->buf, 64, s->stag);
                w = wr(0, opcodes[i], 3, 0, 64, 0);
                w.rkey = w.inv_stag = window;
                w.raddr = at(0);
                md_post_send(&active, &w);
            }
            pair_settle(&pair);
            T_TRUE(md_qp_state(&other) >= SG_QP_TERMINATE);
            T_EQ_U64(md_qp_state(&first), SG_QP_RTS);
            while (md_poll(&pair.side[0].cq, &(struct sg_cqe){ 0 })) {
            }
            while (md_poll(&s->cq, &(struct sg_cqe){ 0 })) {
            }
            access_by_peer(SG_WR_READ, window, at(0), 64); /* still valid for the first */
            expect(0, 600, SG_WC_SUCCESS);
            T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, active.qpn), SG_OK);
            T_EQ_U64(command(SG_ADMIN_DESTROY_QP, other.qpn), SG_OK);
        }
        end_with_window();
    }
}

/* A window cannot be a local key. */
static void not_local(void)
{
    struct md_wr w;

    begin_with_window(SG_MW_TYPE_1, 0);
    bind_ok(window, all_rights, 0, 64);
    w = wr(1, SG_WR_SEND, 1, BASE, 64, 0);
    w.lkey = window;
    post(1, w);
    expect(1, 1, SG_WC_LOC_PROT_ERR);
    end_with_window();
}

/* A fast-registered region stays valid while windows are bound to it. */
static void over_fast_region(void)
{
    struct pair_side *s = &pair.side[1];
    struct sg_wqe_hdr *h;
    struct sg_wqe_reg *r;
    uint32_t fast;
    uint64_t pbl;

    begin_with_window(SG_MW_TYPE_1, SG_QP_KERNEL);
    fast = md_alloc_mr(&s->md, s->pd, 8);
    pbl = test_host_alloc(&s->h, 8, 8);
    sg_put_le64(test_host_ptr(&s->h, pbl), s->buf + BASE);
    h = md_sq_entry(&s->qp);
    r = (struct sg_wqe_reg *)(h + 1);
    h->opcode = SG_WR_REG_MR;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le32(&r->stag, fast);
    sg_put_le32(&r->access, region_rights | SG_ACCESS_ZERO_BASED);
    sg_put_le64(&r->length, 4096);
    sg_put_le64(&r->pbl_addr, pbl);
    sg_put_le32(&r->npages, 1);
    r->page_shift = 12;
    md_sq_doorbell(&s->qp);
    expect(1, 0, SG_WC_SUCCESS);
    /* The region is zero-based, so the window's address is an offset in it. */
    h = md_sq_entry(&s->qp);
    {
        struct sg_wqe_bind *w = (struct sg_wqe_bind *)(h + 1);

        h->opcode = SG_WR_BIND_MW;
        h->flags = SG_WQE_SIGNALED;
        sg_put_le64(&h->wr_id, 1);
        sg_put_le32(&w->stag, window);
        sg_put_le32(&w->mr_stag, fast);
        sg_put_le32(&w->access, all_rights);
        sg_put_le64(&w->va, 1000);
        sg_put_le64(&w->length, 96);
        md_sq_doorbell(&s->qp);
    }
    expect(1, 1, SG_WC_SUCCESS);
    fill(0, 0, 96, 3);
    access_by_peer(SG_WR_WRITE, window, 1000, 96);
    expect(0, 600, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + BASE + 1000, pair_buf(&pair, 0), 96);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, fast), SG_EBUSY);
    post(1, (struct md_wr){ .opcode = SG_WR_LOCAL_INV, .wr_id = 4, .inv_stag = fast });
    expect(1, 4, SG_WC_MW_BIND_ERR);
    T_EQ_U64(command(SG_ADMIN_DEALLOC_MW, window), SG_OK);
    T_EQ_U64(command(SG_ADMIN_DEREG_MR, fast), SG_OK);
    pair_close(&pair);
    pair_stop(&pair);
}

static void commands(void)
{
    struct sg_cmd_alloc_mw c = { .hdr.opcode = SG_ADMIN_ALLOC_MW };
    struct sg_adapter_config config;
    struct sg_admin_rsp rsp;
    struct md *md = &pair.side[1].md;
    int type;

    sg_adapter_default_config(&config);
    config.max_mr = 3;
    pair_start(&pair, &config, NULL);
    sg_put_le32(&c.pd, pair.side[1].pd);
    for (type = 0; type < 256; type++) {
        c.type = (uint8_t)type;
        if (type != SG_MW_TYPE_1 && type != SG_MW_TYPE_2) {
            T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EINVAL);
        }
    }
    c.type = SG_MW_TYPE_1;
    sg_put_le32(&c.pd, 99);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_ENOENT);
    sg_put_le32(&c.pd, pair.side[1].pd);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), &rsp), SG_OK);
    T_TRUE(sg_get_le32(&rsp.id) & 0xff); /* a random key */
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_ENOMEM);
    T_EQ_U64(command(SG_ADMIN_DEALLOC_MW, 0), SG_ENOENT);
    T_EQ_U64(command(SG_ADMIN_DEALLOC_MW, UINT32_MAX), SG_ENOENT);
    T_EQ_U64(command(SG_ADMIN_DESTROY_PD, pair.side[1].pd), SG_EBUSY);
    T_EQ_U64(command(SG_ADMIN_DEALLOC_MW, sg_get_le32(&rsp.id) ^ 0xff), SG_OK); /* any key */
    pair_stop(&pair);
    config.features = ~SG_FEATURE_MW;
    pair_start(&pair, &config, NULL);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EOPCODE);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "type 1: Write and Read through it", type_1 },
    { "type 2: Write and Read through it", type_2 },
    { "zero-based", zero_based },
    { "what a peer may not do", refused },
    { "faulty binds", refused_binds },
    { "type 1 moves and ends by binding", rebinding },
    { "type 2 is bound once, and goes with its queue pair", type_2_states },
    { "type 2: LOCAL_INV, and Send with Invalidate", invalidation },
    { "type 1: nobody invalidates it", type_1_stays, pair_wire_invalidates },
    { "type 2 belongs to its queue pair", association },
    { "not for local use", not_local },
    { "over a region of fast registration", over_fast_region },
    { "commands", commands },
};

T_MAIN(cases)
