/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host memory that a guest makes the adapter allocate: all of it is charged to one account, a
 * request beyond the limit is refused like one at the limit of a table, and everything is released.
 * The release is asserted wherever an adapter is freed, so in all tests of this folder.
 */
#include "pair_rig.h"
#include "verbs/state/adapter_state.h"

enum { LIMIT = 2 << 20, DEEP = 32768 };

static struct sg_account *account(int side)
{
    return &pair.side[side].md.a->account;
}

/* Sets the limit to what is in use, so that nothing more fits. */
static void exhaust(int side)
{
    account(side)->limit = account(side)->used;
}

static void relax(int side)
{
    account(side)->limit = 1 << 30;
}

/* A page list that repeats one page, and so costs the guest no memory. */
static struct sg_page_list cheap_list(struct md *md, uint32_t pages)
{
    uint64_t top = md->ops->alloc(md->opaque, pages / 512 * 8ull + 8, 8);
    uint64_t leaf = md->ops->alloc(md->opaque, 4096, 4096);
    struct sg_page_list l = { .page_shift = 12, .levels = 2 };
    uint32_t i;

    for (i = 0; i <= pages / 512; i++) {
        sg_put_le64((uint8_t *)md->ops->ptr(md->opaque, top) + 8 * i, leaf);
    }
    sg_put_le64(&l.addr, top);
    sg_put_le32(&l.count, pages);
    return l;
}

static struct sg_cmd_create_qp deep_qp(struct pair_side *s)
{
    struct sg_cmd_create_qp c = md_create_qp_cmd(&s->md, &(struct md_qp_params){
                                                             .pd = s->pd,
                                                             .scq = &s->cq,
                                                             .rcq = &s->cq,
                                                         });

    c.sq_pages = c.rq_pages = cheap_list(&s->md, DEEP / 8);
    sg_put_le32(&c.sq_entries, DEEP);
    sg_put_le32(&c.rq_entries, DEEP);
    return c;
}

/* Queue pairs whose rings cost the guest nothing end at the limit, not at the host's memory. */
static void rings_are_bounded(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_adapter_config config;
    struct sg_cmd_create_qp c;
    struct sg_admin_rsp rsp;
    uint32_t made[100], n = 0, round;
    uint64_t before;

    pair_default_config(&config);
    config.max_host_memory = LIMIT;
    pair_start_two(&pair, &config, &config);
    c = deep_qp(s);
    before = sg_adapter_host_memory(s->md.a);
    for (round = 0; round < 2; round++) {
        while (md_cmd(&s->md, &c, sizeof(c), &rsp) == SG_OK) {
            made[n++] = sg_get_le32(&rsp.id);
            T_TRUE(n < SG_ARRAY_SIZE(made));
        }
        T_EQ_U64(rsp.status, SG_ENOMEM);
        T_TRUE(n * 2ull * DEEP <= LIMIT); /* 8 octets for a page of 8 entries */
        T_TRUE((n + 1) * 2.1 * DEEP > LIMIT);
        T_TRUE(sg_adapter_host_memory(s->md.a) <= LIMIT);
        while (n) {
            T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, made[--n]), SG_OK);
        }
        T_EQ_U64(sg_adapter_host_memory(s->md.a), before);
    }
    pair_stop(&pair);
}

/* Raises the limit step by step, so that later and later allocations of the command fail. */
static void refused_until_it_fits(struct pair_side *s, const void *cmd, size_t len, uint64_t used)
{
    uint64_t room;

    for (room = 8; room < 4096; room += room / 4 + 8) {
        enum sg_status st;

        account(0)->limit = used + room;
        st = md_cmd(&s->md, cmd, len, NULL);
        if (st == SG_OK) {
            break; /* a small object fits now */
        }
        T_EQ_U64(st, SG_ENOMEM);
        T_EQ_U64(account(0)->used, used);
    }
}

/* Every command that creates or enlarges an object. */
static void commands_are_refused(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_cmd_create_cq cq;
    struct sg_cmd_create_qp qp;
    struct sg_cmd_create_srq srq;
    struct sg_cmd_reg_mr mr, odp, listed;
    struct sg_cmd_alloc_mr fast = { .hdr.opcode = SG_ADMIN_ALLOC_MR };
    struct sg_cmd_alloc_mw mw = { .hdr.opcode = SG_ADMIN_ALLOC_MW, .type = SG_MW_TYPE_1 };
    struct sg_cmd_resize_cq resize = { .hdr.opcode = SG_ADMIN_RESIZE_CQ };
    const struct sg_admin_hdr pd = { .opcode = SG_ADMIN_CREATE_PD };
    const struct {
        const char *name;
        const void *cmd;
        size_t len;
    } rows[] = {
        { "CREATE_PD", &pd, sizeof(pd) },
        { "CREATE_CQ", &cq, sizeof(cq) },
        { "CREATE_QP", &qp, sizeof(qp) },
        { "CREATE_SRQ", &srq, sizeof(srq) },
        { "REG_MR", &mr, sizeof(mr) },
        { "REG_MR, on demand", &odp, sizeof(odp) },
        { "REG_MR of a list", &listed, sizeof(listed) },
        { "ALLOC_MR", &fast, sizeof(fast) },
        { "ALLOC_MW", &mw, sizeof(mw) },
        { "RESIZE_CQ", &resize, sizeof(resize) },
    };
    uint64_t used;
    size_t i;

    begin(NULL);
    cq = md_create_cq_cmd(&s->md, 16);
    qp = deep_qp(s);
    srq = md_create_srq_cmd(&s->md, s->pd, 16);
    mr = odp = listed = md_reg_mr_cmd(s->pd, s->buf, 8192, 0);
    sg_put_le64(&odp.pages.addr, 0);
    odp.flags |= SG_MR_ODP;
    listed.pages = cheap_list(&s->md, 512);
    sg_put_le64(&listed.length, 512 * 4096);
    sg_put_le32(&fast.pd, s->pd);
    sg_put_le32(&fast.max_pages, 8);
    sg_put_le32(&mw.pd, s->pd);
    sg_put_le32(&resize.cqn, s->cq.cqn);
    sg_put_le32(&resize.entries, 4096);
    sg_put_le64(&resize.record, s->cq.record);
    resize.pages = cheap_list(&s->md, 64);
    exhaust(0);
    used = account(0)->used;
    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].name);
        T_EQ_U64(md_cmd(&s->md, rows[i].cmd, rows[i].len, NULL), SG_ENOMEM);
        T_EQ_U64(account(0)->used, used);
        refused_until_it_fits(s, rows[i].cmd, rows[i].len, used);
        used = account(0)->used;
        exhaust(0);
    }
    relax(0);
    for (i = 0; i < SG_ARRAY_SIZE(rows) - 1; i++) {
        T_CONTEXT("%s", rows[i].name);
        T_EQ_U64(md_cmd(&s->md, rows[i].cmd, rows[i].len, NULL), SG_OK);
    }
    pair_stop(&pair); /* frees all objects that are left */
}

/* Neither side gets a connection that it has no memory for, and both continue. */
static void connections_are_refused(void)
{
    struct sg_admin_rsp rsp;
    enum sg_status status;
    struct sg_eqe e;
    int side;

    for (side = 0; side < 2; side++) {
        T_CONTEXT("side %d", side);
        pair_start(&pair, NULL, NULL);
        pair_open(&pair, NULL);
        exhaust(side);
        if (side == 0) {
            T_EQ_U64(pair_connect_cmd(&pair, &pair.side[0].qp, 4, 4, NULL, &status), 0);
            T_EQ_U64(status, SG_ENOMEM);
        } else {
            pair_connect_cmd(&pair, &pair.side[0].qp, 4, 4, NULL, &status);
            T_EQ_U64(status, SG_OK);
            e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
            T_TRUE(e.cm_status != SG_CM_OK);
            T_FALSE(md_next_async(&pair.side[1].md, &e));
        }
        relax(side);
        pair_connect(&pair);
        end();
    }
    (void)rsp;
}

/* A connection that later gets no memory that it needs is dropped; nothing else fails. */
static void connections_that_grow(void)
{
    static const struct {
        const char *name;
        uint8_t opcode;
        int poor; /* the side that has no memory left */
    } rows[] = {
        { "the peer's Read", SG_WR_READ, 1 },
        { "a Read of ours", SG_WR_READ, 0 },
        { "records of requests", SG_WR_WRITE, 0 },
    };
    struct sg_cqe c;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].name);
        begin(NULL);
        exhaust(rows[i].poor);
        post(0, wr(0, rows[i].opcode, 1, 0, 100, 0));
        pair_pass(&pair, 1000000000);
        T_EQ_U64(md_qp_state(&pair.side[rows[i].poor].qp), SG_QP_ERROR);
        if (md_poll(&pair.side[0].cq, &c)) {
            T_TRUE(c.status != SG_WC_SUCCESS);
        }
        T_EQ_U64(md_read(&pair.side[0].md, SG_REG_STATUS) & SG_STATUS_FATAL, 0);
        T_EQ_U64(md_read(&pair.side[1].md, SG_REG_STATUS) & SG_STATUS_FATAL, 0);
        T_TRUE(account(rows[i].poor)->used <= account(rows[i].poor)->limit);
        relax(rows[i].poor);
        end();
    }
}

/* A Read with several elements keeps a copy of them. */
static void elements_of_a_read(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_wqe_hdr *h;
    struct sg_sge *sge;
    int i;

    begin(NULL);
    post(0, wr(0, SG_WR_READ, 1, 0, 8, 0)); /* allocates records and ring */
    expect(0, 1, SG_WC_SUCCESS);
    exhaust(0);
    h = md_sq_entry(&s->qp);
    h->opcode = SG_WR_READ;
    h->num_sge = 2;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le64(&h->wr_id, 2);
    sg_put_le32(&h->rkey, pair.side[1].stag);
    sg_put_le64(&h->remote_addr, pair.side[1].buf);
    sge = (struct sg_sge *)(h + 1);
    for (i = 0; i < 2; i++) {
        sg_put_le64(&sge[i].addr, s->buf + 4096 * i);
        sg_put_le32(&sge[i].length, 8);
        sg_put_le32(&sge[i].lkey, s->stag);
    }
    md_sq_doorbell(&s->qp);
    T_EQ_U64(pair_expect(&pair, 0, SG_EV_QP_FATAL).event, SG_EV_QP_FATAL);
    expect(0, 2, SG_WC_FLUSH_ERR);
    relax(0);
    end();
}

static const struct t_case cases[] = {
    { "rings that cost the guest nothing are bounded", rings_are_bounded },
    { "commands are refused with ENOMEM", commands_are_refused },
    { "connections are refused", connections_are_refused },
    { "connections that grow are dropped", connections_that_grow },
    { "elements of a Read", elements_of_a_read },
};

T_MAIN(cases)
