/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging.  Each side has a region of PAGES pages, none of them mapped at first; page i,
 * when mapped, is page ORDER(i) of the side's buffer, so that the pages are not contiguous.
 */
#include "pair_rig.h"

enum { PAGES = 16, PAGE = 4096 };

#define ORDER(i) (((i) * 7 + 3) % PAGES)

static const uint64_t va = 0x7f1234567000ull;
static const uint32_t every_right = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ |
                                    SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC |
                                    SG_ACCESS_MW_BIND | SG_ACCESS_FLUSH_GLOBAL;
static uint32_t odp[2];

static struct sg_cmd_reg_mr odp_cmd(int side, uint64_t length, uint32_t access)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(pair.side[side].pd, 0, 4096, access);

    c.flags = SG_MR_ODP;
    c.pages = (struct sg_page_list){ .page_shift = 12 };
    sg_put_le64(&c.va, va);
    sg_put_le64(&c.length, length);
    return c;
}

static void begin_paging(void)
{
    int i;

    begin(&(struct md_qp_params){ .access =
                                      every_right & ~(SG_ACCESS_LOCAL_WRITE | SG_ACCESS_MW_BIND) });
    for (i = 0; i < 2; i++) {
        struct sg_cmd_reg_mr c = odp_cmd(i, PAGES * PAGE, every_right);

        odp[i] = md_make(&pair.side[i].md, &c, sizeof(c));
    }
}

static enum sg_status page_cmd(int side, uint32_t op, uint64_t first, uint64_t count, bool writable)
{
    struct sg_cmd_map_pages c = { .hdr.opcode = SG_ADMIN_MAP_PAGES };
    struct pair_side *s = &pair.side[side];
    uint64_t list = test_host_alloc(&s->h, PAGES * 8, 8), i;
    enum sg_status status;

    for (i = 0; i < count && i < PAGES; i++) {
        sg_put_le64((uint8_t *)test_host_ptr(&s->h, list) + 8 * i,
                    (s->buf + ORDER(first + i) * PAGE) | writable);
    }
    sg_put_le32(&c.stag, odp[side]);
    sg_put_le32(&c.op, op);
    sg_put_le64(&c.first_page, first);
    sg_put_le64(&c.count, count);
    sg_put_le64(&c.list, op == SG_MAP_PAGES ? list : 0);
    status = md_cmd(&s->md, &c, sizeof(c), NULL);
    pair_settle(&pair);
    return status;
}

static void map(int side, uint64_t first, uint64_t count)
{
    T_EQ_U64(page_cmd(side, SG_MAP_PAGES, first, count, true), SG_OK);
}

/* The next event is this page fault. */
static void fault(int side, uint64_t page, uint32_t count, bool write)
{
    struct sg_eqe e = pair_expect(&pair, side, SG_EV_PAGE_FAULT);

    T_EQ_U64(sg_get_le32(&e.id), odp[side]);
    T_EQ_U64(sg_get_le64(&e.page), page);
    T_EQ_U64(sg_get_le32(&e.aux), count);
    T_EQ_U64(sg_get_le32(&e.conn), write);
}

static void no_fault(int side)
{
    struct sg_eqe e;

    pair_settle(&pair);
    T_FALSE(md_next_async(&pair.side[side].md, &e));
}

/* Maps all requested pages until there is no request. */
static void serve(void)
{
    struct sg_eqe e;
    bool any;
    int i;

    do {
        any = false;
        pair_settle(&pair);
        for (i = 0; i < 2; i++) {
            while (md_next_async(&pair.side[i].md, &e)) {
                T_EQ_U64(e.event, SG_EV_PAGE_FAULT);
                map(i, sg_get_le64(&e.page), sg_get_le32(&e.aux));
                any = true;
            }
        }
    } while (any);
}

static uint8_t *octet(int side, uint64_t off)
{
    return pair_buf(&pair, side) + ORDER(off / PAGE) * PAGE + off % PAGE;
}

/* Octets that lie in the region as fill() would put them. */
static void put(int side, uint32_t off, uint32_t len, uint8_t seed)
{
    uint32_t i;

    for (i = 0; i < len; i++) {
        *octet(side, off + i) = (uint8_t)(seed + i * 7 + (i >> 8));
    }
}

static void check(int side, uint32_t off, uint32_t len, uint8_t seed)
{
    uint32_t i;

    for (i = 0; i < len; i++) {
        T_CONTEXT("octet %u of side %d", off + i, side);
        T_EQ_U64(*octet(side, off + i), (uint8_t)(seed + i * 7 + (i >> 8)));
    }
}

/* A request between ordinary memory of side 0 and the region of side 1. */
static struct md_wr to_region(uint8_t opcode, uint64_t id, uint32_t off, uint32_t len)
{
    struct md_wr w = wr(0, opcode, id, 128 * 1024, len, 0);

    w.rkey = odp[1];
    w.raddr = va + off;
    return w;
}

static void inbound_write(void)
{
    begin_paging();
    fill(0, 128 * 1024, 10000, 1);
    post(0, to_region(SG_WR_WRITE, 1, 4000, 10000));
    fault(1, 0, 4, true);
    expect(0, 1, SG_WC_SUCCESS); /* it was sent */
    recv(1, 9, 200 * 1024, 64);
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    expect(0, 2, SG_WC_SUCCESS);
    expect_none(1); /* the Send behind it waits */
    map(1, 0, 1);
    expect_none(1);
    no_fault(1); /* requested only once */
    map(1, 2, 1);
    expect_none(1);
    map(1, 1, 3);
    expect(1, 9, SG_WC_SUCCESS);
    check(1, 4000, 10000, 1);
    no_fault(1);
    end();
}

static void inbound_read(void)
{
    begin_paging();
    put(1, 8000, 9000, 3);
    post(0, to_region(SG_WR_READ, 1, 8000, 9000));
    fault(1, 1, 4, false);
    /* Messages in the other direction do not wait for it. */
    recv(0, 5, 0, 64);
    post(1, wr(1, SG_WR_SEND, 6, 200 * 1024, 64, 0));
    expect(1, 6, SG_WC_SUCCESS);
    expect(0, 5, SG_WC_SUCCESS);
    expect_none(0);
    T_EQ_U64(page_cmd(1, SG_MAP_PAGES, 0, 8, false), SG_OK); /* readable is enough */
    expect(0, 1, SG_WC_SUCCESS);
    fill(0, 0, 9000, 3);
    T_EQ_MEM(pair_buf(&pair, 0) + 128 * 1024, pair_buf(&pair, 0), 9000);
    /* A Write needs more. */
    post(0, to_region(SG_WR_WRITE, 2, 8000, 8));
    fault(1, 1, 1, true);
    map(1, 1, 1);
    expect(0, 2, SG_WC_SUCCESS);
    no_fault(1);
    end();
}

/* Missing pages in local elements: of a Send, of a receive, of a Read. */
static void local_elements(void)
{
    struct md_wr w;

    begin_paging();
    put(0, 100, 12000, 5);
    recv(1, 1, 0, 16384);
    w = wr(0, SG_WR_SEND, 2, 0, 12000, 0);
    w.lkey = odp[0];
    w.addr = va + 100;
    post(0, w);
    fault(0, 0, 3, false);
    expect_none(0);
    /* The peer is served meanwhile. */
    post(1, wr(1, SG_WR_READ, 3, 100000, 64, 0));
    expect(1, 3, SG_WC_SUCCESS);
    map(0, 0, 2);
    expect_none(0);
    map(0, 2, 1);
    expect(0, 2, SG_WC_SUCCESS);
    expect(1, 1, SG_WC_SUCCESS);
    T_EQ_U64(pair_buf(&pair, 1)[0], 5);
    md_post_recv(&pair.side[1].qp, 4, va + 4000, 8000, odp[1]);
    fill(0, 128 * 1024, 8000, 9);
    post(0, wr(0, SG_WR_SEND, 5, 128 * 1024, 8000, 0));
    expect(0, 5, SG_WC_SUCCESS);
    fault(1, 0, 3, true);
    expect_none(1);
    map(1, 0, 3);
    expect(1, 4, SG_WC_SUCCESS);
    check(1, 4000, 8000, 9);
    w = wr(0, SG_WR_READ, 6, 0, 5000, 0);
    w.lkey = odp[0];
    w.addr = va + 40000;
    fill(1, 0, 5000, 11);
    post(0, w);
    fault(0, 9, 2, true);
    expect_none(0);
    map(0, 9, 2);
    expect(0, 6, SG_WC_SUCCESS);
    check(0, 40000, 5000, 11);
    end();
}

/* Atomics and Atomic Writes whose memory is missing; a Flush of ordinary memory. */
static void requests(void)
{
    struct sg_wqe_hdr *h;
    struct sg_wqe_atomic *a;
    struct sg_wqe_place *p;
    struct sg_sge *sge;

    begin_paging();
    h = md_sq_entry(&pair.side[0].qp);
    a = (struct sg_wqe_atomic *)(h + 1);
    sge = (struct sg_sge *)(a + 1);
    h->opcode = SG_WR_FETCH_ADD;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = 1;
    sg_put_le64(&h->wr_id, 1);
    sg_put_le64(&h->remote_addr, va + 5 * PAGE + 8);
    sg_put_le32(&h->rkey, odp[1]);
    sg_put_le64(&a->data, 5);
    sg_put_le64(&sge->addr, va + 16);
    sg_put_le32(&sge->length, 8);
    sg_put_le32(&sge->lkey, odp[0]);
    md_sq_doorbell(&pair.side[0].qp);
    fault(0, 0, 1, true);
    no_fault(1); /* not sent before the result's page is there */
    sg_put_le64(octet(1, 5 * PAGE + 8), 37);
    map(0, 0, 1);
    fault(1, 5, 1, true);
    expect_none(0);
    map(1, 5, 1);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le64(octet(0, 16)), 37);
    T_EQ_U64(sg_get_le64(octet(1, 5 * PAGE + 8)), 42);
    /* A Flush of ordinary memory requests no pages. */
    h = md_sq_entry(&pair.side[0].qp);
    p = (struct sg_wqe_place *)(h + 1);
    h->opcode = SG_WR_FLUSH;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le64(&h->wr_id, 2);
    sg_put_le64(&h->remote_addr, va);
    sg_put_le32(&h->rkey, odp[1]);
    sg_put_le32(&p->length, PAGES * PAGE);
    sg_put_le32(&p->flags, SG_FLUSH_GLOBAL);
    md_sq_doorbell(&pair.side[0].qp);
    expect(0, 2, SG_WC_SUCCESS);
    no_fault(1);
    h = md_sq_entry(&pair.side[0].qp);
    h->opcode = SG_WR_ATOMIC_WRITE;
    h->flags = SG_WQE_SIGNALED | SG_WQE_INLINE;
    sg_put_le16(&h->inline_len, 8);
    sg_put_le64(&h->wr_id, 3);
    sg_put_le64(&h->remote_addr, va + 6 * PAGE);
    sg_put_le32(&h->rkey, odp[1]);
    memset(h + 1, 0x3c, 8);
    md_sq_doorbell(&pair.side[0].qp);
    fault(1, 6, 1, true);
    expect_none(0);
    map(1, 6, 1);
    expect(0, 3, SG_WC_SUCCESS);
    T_EQ_U64(*octet(1, 6 * PAGE + 7), 0x3c);
    end();
}

/* Work that waits for unavailable pages gets a protection error; later accesses ask again. */
static void failing(void)
{
    static const struct {
        const char *name;
        int side;   /* where the pages are */
        bool local; /* they are an element of side 0 */
        uint8_t opcode;
        enum sg_wc_status want;
    } rows[] = {
        { "inbound Write", 1, false, SG_WR_WRITE, SG_WC_SUCCESS },
        { "inbound Read", 1, false, SG_WR_READ, SG_WC_REM_ACCESS_ERR },
        { "gathered", 0, true, SG_WR_SEND, SG_WC_LOC_PROT_ERR },
        { "read into", 0, true, SG_WR_READ, SG_WC_LOC_PROT_ERR },
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct md_wr w = { 0 };

        T_CONTEXT("%s", rows[i].name);
        begin_paging();
        if (rows[i].local) {
            w = wr(0, rows[i].opcode, 1, 0, 64, 0);
            w.lkey = odp[0];
            w.addr = va;
        } else {
            w = to_region(rows[i].opcode, 1, 0, 64);
        }
        recv(1, 2, 0, 64);
        post(0, w);
        fault(rows[i].side, 0, 1,
              rows[i].opcode == SG_WR_WRITE || (rows[i].local && rows[i].opcode == SG_WR_READ));
        T_EQ_U64(page_cmd(rows[i].side, SG_MAP_FAIL, 5, 1, false), SG_OK); /* others' pages */
        T_EQ_U64(md_qp_state(&pair.side[rows[i].side].qp), SG_QP_RTS);
        T_EQ_U64(page_cmd(rows[i].side, SG_MAP_FAIL, 0, PAGES, false), SG_OK);
        expect(0, 1, rows[i].want);
        T_TRUE(md_qp_state(&pair.side[rows[i].side].qp) >= SG_QP_TERMINATE);
        end();
    }
}

static void two_elements(struct sg_sge *sge, int side)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        sg_put_le64(&sge[i].addr, va + (i ? 5 * PAGE : 0));
        sg_put_le32(&sge[i].length, 32);
        sg_put_le32(&sge[i].lkey, odp[side]);
    }
}

static void post_two_elements(uint8_t opcode)
{
    struct sg_wqe_hdr *h = md_sq_entry(&pair.side[0].qp);

    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = 2;
    sg_put_le64(&h->wr_id, 1);
    if (opcode == SG_WR_READ) {
        sg_put_le64(&h->remote_addr, pair.side[1].buf);
        sg_put_le32(&h->rkey, pair.side[1].stag);
    }
    two_elements((struct sg_sge *)(h + 1), 0);
    md_sq_doorbell(&pair.side[0].qp);
}

/* The second element's page fails; the first element is there and is checked again. */
static void failing_second_element(void)
{
    static const struct {
        const char *name;
        int side;       /* where the pages are */
        uint8_t opcode; /* of side 0 */
        bool whole;     /* page 4 is mapped, too, and MAP_FAIL names all pages */
    } rows[] = {
        { "gathered", 0, SG_WR_SEND, false },
        { "received into", 1, SG_WR_SEND, false },
        { "read into", 0, SG_WR_READ, false },
        { "gathered, a range", 0, SG_WR_SEND, true },
        { "received into, a range", 1, SG_WR_SEND, true },
        { "read into, a range", 0, SG_WR_READ, true },
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int side = rows[i].side;
        struct sg_rqe_hdr *h;
        struct sg_eqe e;

        T_CONTEXT("%s", rows[i].name);
        begin_paging();
        map(side, 0, 1);
        if (side == 1) {
            h = md_rq_entry(&pair.side[1].qp);
            sg_put_le64(&h->wr_id, 1);
            h->num_sge = 2;
            two_elements((struct sg_sge *)(h + 1), 1);
            md_rq_doorbell(&pair.side[1].qp);
            post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
        } else {
            recv(1, 2, 0, 64);
            post_two_elements(rows[i].opcode);
        }
        fault(side, 5, 1, side == 1 || rows[i].opcode == SG_WR_READ);
        if (rows[i].whole) {
            map(side, 4, 1);
            no_fault(side);
        }
        T_EQ_U64(
            page_cmd(side, SG_MAP_FAIL, rows[i].whole ? 0 : 5, rows[i].whole ? PAGES : 1, false),
            SG_OK);
        if (side == 1) {
            expect(0, 2, SG_WC_SUCCESS);
        }
        expect(side, 1, SG_WC_LOC_PROT_ERR);
        while (md_next_async(&pair.side[side].md, &e)) { /* only its end is reported */
            T_TRUE(e.event != SG_EV_PAGE_FAULT);
        }
        T_TRUE(md_qp_state(&pair.side[side].qp) >= SG_QP_TERMINATE);
        end();
    }
}

/* MAP_FAIL applies to work that waits, not to later work when the pages are mapped. */
static void failing_and_mapped_again(void)
{
    begin_paging();
    map(0, 0, 1);
    recv(1, 2, 0, 64);
    recv(1, 3, 0, 64);
    post_two_elements(SG_WR_SEND);
    fault(0, 5, 1, false);
    map(0, 5, 1);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(page_cmd(0, SG_MAP_FAIL, 0, PAGES, false), SG_OK); /* no work waits */
    T_EQ_U64(page_cmd(0, SG_UNMAP_PAGES, 0, PAGES, false), SG_OK);
    post_two_elements(SG_WR_SEND);
    fault(0, 0, 1, false);
    map(0, 0, 1);
    fault(0, 5, 1, false);
    map(0, 5, 1);
    expect(0, 1, SG_WC_SUCCESS);
    no_fault(0);
    end();
}

static void unmapping(void)
{
    begin_paging();
    map(1, 0, PAGES);
    post(0, to_region(SG_WR_WRITE, 1, 0, PAGES * PAGE));
    expect(0, 1, SG_WC_SUCCESS);
    no_fault(1);
    T_EQ_U64(page_cmd(1, SG_UNMAP_PAGES, 3, 2, false), SG_OK);
    memset(octet(1, 3 * PAGE), 0xee, PAGE); /* now another owner's */
    fill(0, 128 * 1024, 2 * PAGE, 8);
    post(0, to_region(SG_WR_WRITE, 2, 3 * PAGE - 100, 200));
    fault(1, 3, 1, true);
    T_EQ_U64(*octet(1, 3 * PAGE), 0xee);
    /* Unmapped before it was mapped: work that waits for it still waits. */
    T_EQ_U64(page_cmd(1, SG_UNMAP_PAGES, 0, PAGES, false), SG_OK);
    no_fault(1);
    map(1, 3, 1);
    fault(1, 2, 1, true);
    map(1, 2, 1);
    expect(0, 2, SG_WC_SUCCESS);
    check(1, 3 * PAGE - 100, 200, 8);
    no_fault(1);
    end();
}

/* The region is deregistered while work waits for its pages, on either side of the stream. */
static void gone_meanwhile(void)
{
    struct md_wr w;

    begin_paging();
    post(0, to_region(SG_WR_READ, 1, 0, 64));
    fault(1, 0, 1, false);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DEREG_MR, odp[1]), SG_OK);
    expect(0, 1, SG_WC_REM_ACCESS_ERR);
    end();
    begin_paging();
    w = wr(0, SG_WR_SEND, 1, 0, 64, 0);
    w.lkey = odp[0];
    w.addr = va;
    post(0, w);
    fault(0, 0, 1, false);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DEREG_MR, odp[0]), SG_OK);
    expect(0, 1, SG_WC_LOC_PROT_ERR);
    end();
    /* The same with the queue pair: destroyed, aborted, reset. */
    begin_paging();
    post(0, to_region(SG_WR_WRITE, 1, 0, 64));
    fault(1, 0, 1, true);
    end();
    begin_paging();
    post(0, to_region(SG_WR_WRITE, 1, 0, 64));
    fault(1, 0, 1, true);
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_ERROR), SG_OK);
    map(1, 0, 1);
    pair_close(&pair);
    sg_adapter_reset(pair.side[1].md.a);
    pair_stop(&pair);
}

/* A FIN behind octets that wait is handled after them. */
static void fin_waits(void)
{
    begin_paging();
    fill(0, 128 * 1024, 64, 6);
    post(0, to_region(SG_WR_WRITE, 1, 0, 64));
    fault(1, 0, 1, true);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    pair_settle(&pair);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_RTS);
    map(1, 0, 1);
    pair_expect(&pair, 1, SG_EV_CM_DISCONNECT);
    check(1, 0, 64, 6);
    end();
}

/* Many messages both ways; no page is mapped at first, and pages are unmapped in between. */
static void under_load(void)
{
    const uint32_t len = 3 * PAGE;
    uint32_t i;

    begin_paging();
    for (i = 0; i < 40; i++) {
        uint32_t off = (i * 5 % (PAGES - 4)) * PAGE + i * 13;
        struct md_wr w;

        T_CONTEXT("round %u", i);
        fill(0, 128 * 1024, len, (uint8_t)i);
        post(0, to_region(SG_WR_WRITE, 1, off, len));
        w = to_region(SG_WR_READ, 2, off, len);
        w.addr = va + off;
        w.lkey = odp[0];
        post(0, w);
        md_post_recv(&pair.side[1].qp, 3, va + off, len, odp[1]);
        w.opcode = SG_WR_SEND;
        w.wr_id = 4;
        w.flags = SG_WQE_FENCE;
        post(0, w);
        serve();
        expect(0, 1, SG_WC_SUCCESS);
        expect(0, 2, SG_WC_SUCCESS);
        expect(0, 4, SG_WC_SUCCESS);
        expect(1, 3, SG_WC_SUCCESS);
        check(0, off, len, (uint8_t)i);
        check(1, off, len, (uint8_t)i);
        T_EQ_U64(
            page_cmd((int)i % 2, SG_UNMAP_PAGES, i % PAGES, 1 + i % (PAGES - i % PAGES), false),
            SG_OK);
    }
    end();
}

static void window_over_it(void)
{
    struct sg_wqe_hdr *h;
    struct sg_wqe_bind *b;
    uint32_t window;
    struct md_wr w;

    begin_paging();
    window = md_alloc_mw(&pair.side[1].md, pair.side[1].pd, SG_MW_TYPE_2);
    h = md_sq_entry(&pair.side[1].qp);
    b = (struct sg_wqe_bind *)(h + 1);
    h->opcode = SG_WR_BIND_MW;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le32(&b->stag, window);
    sg_put_le32(&b->mr_stag, odp[1]);
    sg_put_le32(&b->access, SG_ACCESS_REMOTE_WRITE | SG_ACCESS_ZERO_BASED);
    sg_put_le64(&b->va, va + 6000);
    sg_put_le64(&b->length, 6000);
    md_sq_doorbell(&pair.side[1].qp);
    expect(1, 0, SG_WC_SUCCESS);
    no_fault(1);
    fill(0, 128 * 1024, 6000, 2);
    w = to_region(SG_WR_WRITE, 1, 0, 6000);
    w.rkey = window;
    w.raddr = 0;
    post(0, w);
    fault(1, 1, 2, true); /* of the region */
    map(1, 1, 2);
    expect(0, 1, SG_WC_SUCCESS);
    check(1, 6000, 6000, 2);
    end();
}

static void registration(void)
{
    struct sg_cmd_map_pages m = { .hdr.opcode = SG_ADMIN_MAP_PAGES };
    struct md *md = &pair.side[0].md;
    struct sg_cmd_reg_mr c;
    struct sg_admin_rsp rsp;

    begin_paging();
    c = odp_cmd(0, 1ull << 63, every_right);
    sg_put_le64(&c.va, 0);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_OK); /* the longest region */
    sg_put_le64(&c.length, (1ull << 63) + 1);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EINVAL);
    c = odp_cmd(0, 0, every_right);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EINVAL);
    c = odp_cmd(0, 8192, every_right);
    sg_put_le64(&c.va, UINT64_MAX - 100);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EINVAL);
    c = odp_cmd(0, 8192, every_right);
    sg_put_le32(&c.pages.count, 1); /* too few */
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EINVAL);
    c = odp_cmd(0, 8192, every_right);
    c.pages.page_shift = 31;
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EINVAL);
    c.pages.page_shift = 30; /* the largest that QUERY_CAPS offers */
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_OK);
    c = odp_cmd(0, 8192, every_right);
    sg_put_le64(&c.pages.addr, 4096);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EINVAL);
    c = odp_cmd(0, 8192, every_right);
    c.flags |= SG_MR_WHOLE_MEMORY;
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_EINVAL);
    c = odp_cmd(0, 8192, every_right | SG_ACCESS_FLUSH_PERSISTENT);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_ENOTPMEM);
    c = odp_cmd(0, 8192, SG_ACCESS_REMOTE_READ | SG_ACCESS_VERIFY);
    c.hash_alg = SG_HASH_SHA256;
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_ENOTSUP);
    /* MAP_PAGES */
    T_EQ_U64(page_cmd(0, 0, 0, 1, true), SG_EINVAL);
    T_EQ_U64(page_cmd(0, 4, 0, 1, true), SG_EINVAL);
    T_EQ_U64(page_cmd(0, SG_MAP_PAGES, 0, 0, true), SG_EINVAL);
    T_EQ_U64(page_cmd(0, SG_MAP_PAGES, PAGES, 1, true), SG_EINVAL);
    T_EQ_U64(page_cmd(0, SG_MAP_PAGES, UINT64_MAX, 2, true), SG_EINVAL);
    T_EQ_U64(page_cmd(0, SG_UNMAP_PAGES, 1, UINT64_MAX, true), SG_EINVAL);
    sg_put_le32(&m.stag, pair.side[0].stag);
    sg_put_le32(&m.op, SG_UNMAP_PAGES);
    sg_put_le64(&m.count, 1);
    T_EQ_U64(md_cmd(md, &m, sizeof(m), NULL), SG_EINVAL); /* an ordinary region */
    sg_put_le32(&m.stag, odp[0] ^ 1);
    T_EQ_U64(md_cmd(md, &m, sizeof(m), NULL), SG_ENOENT);
    sg_put_le32(&m.stag, odp[0]);
    sg_put_le32(&m.op, SG_MAP_PAGES);
    sg_put_le64(&m.list, 4);
    T_EQ_U64(md_cmd(md, &m, sizeof(m), NULL), SG_EINVAL);
    sg_put_le64(&m.list, ~7ull);
    T_EQ_U64(md_cmd(md, &m, sizeof(m), NULL), SG_EINVAL);
    sg_put_le64(&m.list, 8);
    T_EQ_U64(md_cmd(md, &m, sizeof(m), NULL), SG_EFAULT);
    sg_put_le64(&m.list, pair.side[0].buf);
    sg_put_le64(pair_buf(&pair, 0), pair.side[0].buf + 2); /* an unknown bit */
    T_EQ_U64(md_cmd(md, &m, sizeof(m), &rsp), SG_EINVAL);
    end();
}

static const struct t_case cases[] = {
    { "an inbound Write waits, and what is behind it", inbound_write },
    { "an inbound Read waits, our messages do not; read-only pages", inbound_read },
    { "elements of our own", local_elements },
    { "Atomics, Atomic Write, Flush", requests },
    { "pages that cannot be had", failing },
    { "pages of a second element that cannot be had", failing_second_element },
    { "pages that can be had again", failing_and_mapped_again },
    { "pages that go", unmapping },
    { "the region or the queue pair goes meanwhile", gone_meanwhile },
    { "FIN waits for the octets before it", fin_waits },
    { "everything at once, again and again", under_load },
    { "through a window", window_over_it },
    { "REG_MR and MAP_PAGES, every field", registration },
};

T_MAIN(cases)
