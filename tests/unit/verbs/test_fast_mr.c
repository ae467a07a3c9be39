/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two adapters: fast registration, invalidation, the local DMA key. */
#include "pair_rig.h"

#include "verbs/state/adapter_state.h"
#include "verbs/memory/pagelist.h"
#include "verbs/queues/qp.h"

/* Fast registration in kernel style: register, advertise, use, invalidate, register again. */
static uint32_t alloc_fast(uint32_t pages)
{
    return md_alloc_mr(&pair.side[0].md, pair.side[0].pd, pages);
}

static void post_reg_at(int side, uint32_t stag, uint32_t npages, uint32_t access, uint64_t va)
{
    struct sg_wqe_hdr *h = md_sq_entry(&pair.side[side].qp);
    struct sg_wqe_reg *r = (struct sg_wqe_reg *)(h + 1);
    uint64_t pbl = test_host_alloc(&pair.side[side].h, SG_MAX(npages, 1u) * 8, 8);
    uint32_t i;

    for (i = 0; i < npages; i++) { /* the buffer's pages in reverse order, repeatedly */
        sg_put_le64((uint8_t *)test_host_ptr(&pair.side[side].h, pbl) + 8 * i,
                    pair.side[side].buf + (npages - 1 - i) * 4096 % PAIR_BUF);
    }
    h->opcode = SG_WR_REG_MR;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le64(&h->wr_id, 900);
    sg_put_le32(&r->stag, stag);
    sg_put_le32(&r->access, access);
    sg_put_le64(&r->va, va);
    sg_put_le64(&r->length, npages * 4096);
    sg_put_le64(&r->pbl_addr, pbl);
    sg_put_le32(&r->npages, npages);
    r->page_shift = 12;
    md_sq_doorbell(&pair.side[side].qp);
}

static void post_reg(int side, uint32_t stag, uint32_t npages, uint32_t access)
{
    post_reg_at(side, stag, npages, access, 0x10000);
}

/* Side 1 writes to the region from its own octet 0 on. */
static void peer_writes(uint64_t id, uint32_t stag, uint64_t to, uint32_t len)
{
    struct md_wr w = wr(1, SG_WR_WRITE, id, 0, len, 0);

    w.rkey = stag;
    w.raddr = to;
    post(1, w);
    expect(1, id, SG_WC_SUCCESS);
}

static void fast_registration(void)
{
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    const uint32_t all = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_READ;
    struct sg_cqe c;
    struct md_wr w;
    uint32_t fast;
    int round;

    begin(&params);
    fast = alloc_fast(8);
    for (round = 0; round < 3; round++) {
        T_CONTEXT("round %d", round);
        fast++; /* a new key every time */
        post_reg(0, fast, 3, all);
        c = expect(0, 900, SG_WC_SUCCESS);
        T_EQ_U64(c.opcode, SG_WC_REG_MR);
        fill(1, 0, 10000, (uint8_t)round);
        peer_writes(1, fast, 0x10000, 10000);
        T_EQ_MEM(pair_buf(&pair, 0) + 8192, pair_buf(&pair, 1), 4096);
        T_EQ_MEM(pair_buf(&pair, 0) + 4096, pair_buf(&pair, 1) + 4096, 4096);
        T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1) + 8192, 10000 - 8192);
        if (round == 0 && pair_wire()->invalidates) { /* the peer takes it back */
            recv(0, 2, 20000, 64);
            w = wr(1, SG_WR_SEND_INV, 3, 0, 64, 0);
            w.inv_stag = fast;
            post(1, w);
            c = expect(0, 2, SG_WC_SUCCESS);
            T_TRUE(c.flags_phase & SG_CQE_WITH_INV);
            T_EQ_U64(sg_get_le32(&c.inv_stag), fast);
            expect(1, 3, SG_WC_SUCCESS);
        } else if (round < 2) { /* its owner does */
            post(0, (struct md_wr){ .opcode = SG_WR_LOCAL_INV, .wr_id = 4, .inv_stag = fast });
            c = expect(0, 4, SG_WC_SUCCESS);
            T_EQ_U64(c.opcode, SG_WC_LOCAL_INV);
        } else { /* a Read that uses it as its sink does */
            w = (struct md_wr){
                .opcode = SG_WR_READ_INV,
                .wr_id = 5,
                .addr = 0x10000,
                .len = 12288,
                .lkey = fast,
                .raddr = pair.side[1].buf,
                .rkey = pair.side[1].stag,
            };
            post(0, w);
            c = expect(0, 5, SG_WC_SUCCESS);
            T_EQ_U64(sg_get_le32(&c.byte_len), 12288);
            T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1) + 8192, 4096);
        }
    }
    /* It is invalid now: another access ends the stream. */
    w = wr(1, SG_WR_READ, 6, 0, 8, 0);
    w.rkey = fast;
    w.raddr = 0x10000;
    post(1, w);
    expect_no_access(1, 6, 0x01000000);
    end();
}

/* Zero-based: Tagged Offset 0 is the first octet, for the peer and for elements of our own. */
static void zero_based(void)
{
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    const uint32_t all = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_READ;
    struct md_wr w;
    uint32_t fast;

    begin(&params);
    fast = alloc_fast(8);
    post_reg_at(0, fast, 3, all | SG_ACCESS_ZERO_BASED, 0x7fff0000);
    expect(0, 900, SG_WC_SUCCESS);
    fill(1, 0, 12288, 1);
    peer_writes(1, fast, 0, 12288);
    T_EQ_MEM(pair_buf(&pair, 0) + 8192, pair_buf(&pair, 1), 4096);
    T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1) + 8192, 4096);
    w = wr(0, SG_WR_WRITE, 2, 0, 100, 100000);
    w.lkey = fast;
    w.addr = 4000;
    post(0, w);
    expect(0, 2, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + 100000, pair_buf(&pair, 1) + 4000, 100);
    w = wr(1, SG_WR_READ, 3, 0, 1, 0); /* one octet behind its end */
    w.rkey = fast;
    w.raddr = 12288;
    post(1, w);
    expect_no_access(1, 3, 0x01010000);
    end();
}

static void fast_registration_errors(void)
{
    static const struct {
        const char *name;
        uint32_t stag_xor, npages, access;
    } rows[] = {
        { "too many pages", 0, 9, 0 },
        { "no pages", 0, 0, 0 },
        { "other index", 0x100, 1, 0 },
        { "right that needs a hash", 0, 1, SG_ACCESS_VERIFY },
    };
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].name);
        begin(&params);
        post_reg(0, alloc_fast(8) ^ rows[i].stag_xor, rows[i].npages, rows[i].access);
        expect(0, 900, SG_WC_MW_BIND_ERR);
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        end();
    }
    /* Nothing there to invalidate. */
    begin(&params);
    post(0, (struct md_wr){ .opcode = SG_WR_LOCAL_INV, .wr_id = 1, .inv_stag = 0x12300 });
    expect(0, 1, SG_WC_MW_BIND_ERR);
    end();
    /* Registered already. */
    begin(&params);
    {
        uint32_t fast = alloc_fast(8);

        post_reg(0, fast, 1, 0);
        expect(0, 900, SG_WC_SUCCESS);
        post_reg(0, fast, 1, 0);
        expect(0, 900, SG_WC_MW_BIND_ERR);
    }
    end();
}

/* What side 1 may do to side 0's memory, through the queue pair of side 0. */
static enum sg_mem_status may(uint32_t stag, uint64_t to, uint64_t len, uint32_t rights)
{
    struct sg_adapter *a = pair.side[0].md.a;
    struct sg_qp *qp = sg_idtab_get(&a->qps, pair.side[0].qp.qpn);
    struct sg_mr *mr;

    return sg_tpt_check_remote(&qp->mem, stag, to, len, rights, &mr);
}

/* Each way to change or to withdraw what an STag stands for. */
static void stag_changes(void)
{
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    const uint32_t r = SG_ACCESS_REMOTE_READ, w = SG_ACCESS_REMOTE_WRITE;
    struct sg_cmd_modify_qp m = { .hdr.opcode = SG_ADMIN_MODIFY_QP };
    struct md *md;
    uint32_t fast, other;

    begin(&params);
    md = &pair.side[0].md;
    fast = alloc_fast(8);
    T_EQ_U64(may(fast, 0x10000, 1, r), SG_MEM_STAG);
    post_reg(0, fast, 2, r | w);
    expect(0, 900, SG_WC_SUCCESS);
    T_EQ_U64(may(fast, 0x10000, 8192, w), SG_MEM_OK);
    T_EQ_U64(may(fast, 0x10000, 8193, w), SG_MEM_BOUNDS);
    /* Validity. */
    post(0, (struct md_wr){ .opcode = SG_WR_LOCAL_INV, .wr_id = 1, .inv_stag = fast });
    expect(0, 1, SG_WC_SUCCESS);
    T_SHOWS("DDP-51 SEC-04") {
        T_EQ_U64(may(fast, 0x10000, 1, r), SG_MEM_STAG);
    }
    /* Range, rights and key. */
    post_reg_at(0, fast + 1, 1, r, 0x50000);
    expect(0, 900, SG_WC_SUCCESS);
    T_EQ_U64(may(fast, 0x50000, 1, r), SG_MEM_STAG);
    T_SHOWS("DDP-51 SEC-04") {
        T_EQ_U64(may(fast + 1, 0x50000, 4096, r), SG_MEM_OK);
        T_EQ_U64(may(fast + 1, 0x10000, 1, r), SG_MEM_BOUNDS);
        T_EQ_U64(may(fast + 1, 0x50000, 1, w), SG_MEM_ACCESS);
    }
    /* Rights of the stream: its queue pair grants none any more. */
    sg_put_le32(&m.qpn, pair.side[0].qp.qpn);
    sg_put_le32(&m.mask, SG_QP_MOD_ACCESS);
    T_EQ_U64(md_cmd(md, &m, sizeof(m), NULL), SG_OK);
    T_EQ_U64(may(fast + 1, 0x50000, 1, r), SG_MEM_ACCESS);
    sg_put_le32(&m.access, r | w);
    T_EQ_U64(md_cmd(md, &m, sizeof(m), NULL), SG_OK);
    T_EQ_U64(may(fast + 1, 0x50000, 1, r), SG_MEM_OK);
    /* Another domain: the STag is not this stream's any more. */
    T_EQ_U64(md_cmd_id(md, SG_ADMIN_DEREG_MR, fast + 1), SG_OK);
    T_EQ_U64(may(fast + 1, 0x50000, 1, r), SG_MEM_STAG);
    other = md_reg_mr(md, md_create_pd(md), pair.side[0].buf, 4096, r | w);
    T_SHOWS("DDP-51") {
        T_EQ_U64(may(other, pair.side[0].buf, 1, r), SG_MEM_ASSOC);
    }
    end();
}

/* A user's queue pair cannot make regions valid or invalid, not even in its own domain. */
static void kernel_only(void)
{
    static const uint8_t opcodes[] = { SG_WR_REG_MR, SG_WR_LOCAL_INV };
    const struct md_qp_params kernel = { .flags = SG_QP_KERNEL };
    struct sg_qp *qp;
    uint32_t fast;
    size_t i;

    for (i = 0; i < sizeof(opcodes); i++) {
        T_CONTEXT("opcode %u", opcodes[i]);
        begin(&kernel);
        fast = alloc_fast(8);
        post_reg(0, fast, 1, SG_ACCESS_REMOTE_READ);
        expect(0, 900, SG_WC_SUCCESS);
        qp = sg_idtab_get(&pair.side[0].md.a->qps, pair.side[0].qp.qpn);
        qp->flags &= ~SG_QP_KERNEL;
        if (opcodes[i] == SG_WR_REG_MR) {
            post_reg(0, alloc_fast(8), 1, SG_ACCESS_REMOTE_READ);
            expect(0, 900, SG_WC_LOC_QP_OP_ERR);
        } else {
            post(0, (struct md_wr){ .opcode = opcodes[i], .wr_id = 1, .inv_stag = fast });
            expect(0, 1, SG_WC_LOC_QP_OP_ERR);
        }
        T_EQ_U64(may(fast, 0x10000, 4096, SG_ACCESS_REMOTE_READ), SG_MEM_OK);
        end();
    }
}

/* A plain region is shared by its domain's streams, so no peer may invalidate it. */
static void invalidate_refused(void)
{
    struct md_wr w;
    struct sg_eqe e;

    begin(NULL);
    recv(1, 1, 0, 64);
    w = wr(0, SG_WR_SEND_INV, 2, 0, 8, 0);
    w.inv_stag = pair.side[1].stag;
    post(0, w);
    expect(0, 2, SG_WC_SUCCESS);
    expect(1, 1, SG_WC_FLUSH_ERR);
    e = pair_expect(&pair, 1, SG_EV_QP_ACCESS_ERR);
    T_EQ_U64(sg_get_le32(&e.id), pair.side[1].qp.qpn);
    end();
}

/* Kernel queue pairs name bus addresses with key 0, for local elements only. */
static void local_dma_key(void)
{
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    struct md_wr w;

    begin(&params);
    fill(0, 0, 5000, 8);
    w = wr(0, SG_WR_WRITE, 1, 0, 5000, 0);
    w.lkey = 0;
    post(0, w);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 5000);
    w = wr(0, SG_WR_READ, 2, 0, 64, 0);
    w.rkey = 0;
    post(0, w);
    expect(0, 2, pair_wire()->refused);
    end();
}

/* As many pages as one registration can have: the first, and the last two are written to. */
static void longest_list(void)
{
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    uint32_t fast;

    begin(&params);
    fast = alloc_fast(SG_FR_PAGES_MAX) + 1;
    post_reg(0, fast, SG_FR_PAGES_MAX, SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE);
    expect(0, 900, SG_WC_SUCCESS);
    memset(pair_buf(&pair, 0), 0, PAIR_BUF);
    fill(1, 0, 8192, 3);
    peer_writes(1, fast, 0x10000, 4096);
    T_EQ_MEM(pair_buf(&pair, 0) + (SG_FR_PAGES_MAX - 1) * 4096 % PAIR_BUF, pair_buf(&pair, 1),
             4096);
    peer_writes(2, fast, 0x10000 + (SG_FR_PAGES_MAX - 2) * 4096, 8192);
    T_EQ_MEM(pair_buf(&pair, 0) + 4096, pair_buf(&pair, 1), 4096);
    T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1) + 4096, 4096);
    end();
}

/* A turn reads page lists only as far as its budget allows, not a whole queue of them. */
static void long_lists_take_turns(void)
{
    enum { LISTS = 6, PAGES = SG_TURN_QUANTUM / 8 }; /* a list that ends a queue pair's turn */
    const struct md_qp_params params = { .flags = SG_QP_KERNEL };
    uint32_t fast[LISTS], i;
    struct sg_adapter *a;
    struct sg_cqe c;

    begin(&params);
    a = pair.side[0].md.a;
    for (i = 0; i < LISTS; i++) {
        fast[i] = alloc_fast(PAGES);
    }
    pair.side[0].md.hold = true;
    for (i = 0; i < LISTS; i++) {
        post_reg(0, fast[i], PAGES, SG_ACCESS_LOCAL_WRITE);
    }
    for (i = 0; i < LISTS; i++) {
        T_FALSE(md_poll(&pair.side[0].cq, &c));
        T_TRUE(sg_adapter_run(a, PAGES * 8));
        T_TRUE(md_poll(&pair.side[0].cq, &c));
        T_EQ_U64(c.status, SG_WC_SUCCESS);
    }
    T_FALSE(sg_adapter_run(a, PAGES * 8));
    pair.side[0].md.hold = false;
    expect_none(0);
    end();
}

static const struct t_case cases[] = {
    { "a zero-based region", zero_based },
    { "SEC-23 fast registration and three ways to end it", fast_registration },
    { "fast registration of the longest page list", longest_list },
    { "fast registration: long page lists take turns", long_lists_take_turns },
    { "fast registration: errors", fast_registration_errors },
    { "range, validity, rights and stream of an STag change", stag_changes },
    { "REG_MR and LOCAL_INV are for kernel queue pairs", kernel_only },
    { "a peer cannot invalidate a plain region", invalidate_refused, pair_wire_invalidates },
    { "key 0 is local and for kernel queue pairs", local_dma_key },
};

T_MAIN(cases)
