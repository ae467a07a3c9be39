/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order in which the guest sees writes: a driver relies on the word with the phase being the
 * last of an entry, and on interrupts coming after what they announce.
 */
#include "mpe_rig.h"
#include "verbs/state/adapter_state.h"
#include "verbs/queues/qp.h"

static struct test_host *host_of(int side)
{
    return &pair.side[side].h;
}

/* Index of the step, which must be there. */
static int step(int side, int what, uint64_t addr)
{
    int i = test_host_step(host_of(side), 0, what, addr);

    T_TRUE(i >= 0);
    return i;
}

/* The entry at 'addr' was written before its last word, which was one store. */
static int entry_then_phase(int side, uint64_t addr, size_t size)
{
    int phase = step(side, TEST_HOST_STORE64, addr + size - 8);

    T_TRUE(step(side, TEST_HOST_WRITE, addr) < phase);
    T_TRUE(step(side, TEST_HOST_WRITE, addr + size - 9) < phase);
    T_EQ_INT(test_host_step(host_of(side), 0, TEST_HOST_WRITE, addr + size - 1), -1);
    return phase;
}

static void phase_comes_last(void)
{
    const struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
    struct md *md = &pair.side[1].md;
    int cqe, eqe;

    begin(NULL);
    md_arm_eq(md, 1);
    md_arm(&pair.side[1].cq, false);
    recv(1, 1, 0, 64);
    host_of(1)->step_count = 0;
    post(0, wr(0, SG_WR_SEND, 2, 4096, 64, 0));
    pair_settle(&pair);
    cqe = entry_then_phase(1, pair.side[1].cq.ring.base, sizeof(struct sg_cqe));
    eqe = entry_then_phase(1, md->eq.base, sizeof(struct sg_eqe));
    T_TRUE(step(1, TEST_HOST_WRITE, pair.side[1].buf) < cqe); /* the message itself */
    T_TRUE(cqe < eqe);
    T_TRUE(eqe < step(1, TEST_HOST_RAISE, 1));
    expect(0, 2, SG_WC_SUCCESS);
    expect(1, 1, SG_WC_SUCCESS);
    host_of(1)->step_count = 0;
    md_cmd(md, &nop, sizeof(nop), NULL);
    entry_then_phase(
        1, md->acq.base + (md->acq.cons - 1) % MD_ADMIN_SIZE * sizeof(struct sg_admin_rsp),
        sizeof(struct sg_admin_rsp));
    end();
}

/* If events are unread when a driver arms, the vector is raised at once: else it would sleep. */
static void arming_with_events_unread(void)
{
    struct pair_side *s = &pair.side[1];
    uint64_t before;
    struct sg_eqe e;

    begin(NULL);
    md_arm(&s->cq, false);
    recv(1, 1, 0, 64);
    before = s->h.raised[1];
    post(0, wr(0, SG_WR_SEND, 2, 4096, 64, 0));
    expect(0, 2, SG_WC_SUCCESS);
    T_EQ_U64(s->h.raised[1], before); /* not armed */
    md_arm_eq(&s->md, 1);
    T_EQ_U64(s->h.raised[1], before + 1);
    T_TRUE(md_next_event(&s->md, &e));
    md_arm_eq(&s->md, 1);
    T_EQ_U64(s->h.raised[1], before + 1);
    expect(1, 1, SG_WC_SUCCESS);
    end();
}

/* Two threads arm one queue, one for any completion, then one for solicited ones. */
static void any_beats_solicited(void)
{
    struct sg_eqe e;

    begin(NULL);
    md_arm(&pair.side[1].cq, false);
    md_arm(&pair.side[1].cq, true);
    recv(1, 1, 0, 64);
    post(0, wr(0, SG_WR_SEND, 2, 4096, 64, 0));
    expect(1, 1, SG_WC_SUCCESS);
    T_TRUE(md_next_event(&pair.side[1].md, &e));
    expect(0, 2, SG_WC_SUCCESS);
    end();
}

/* After a fatal error the adapter writes no memory and raises no interrupt, whatever is due. */
static void dead_adapter_is_silent(void)
{
    struct sg_cmd_modify_cq c = { .hdr.opcode = SG_ADMIN_MODIFY_CQ };
    struct pair_side *s = &pair.side[1];

    begin(NULL);
    sg_put_le32(&c.cqn, s->cq.cqn);
    sg_put_le16(&c.count, 100);
    sg_put_le16(&c.period, 1000);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    md_arm_eq(&s->md, 1);
    md_arm(&s->cq, false);
    recv(1, 1, 0, 64);
    post(0, wr(0, SG_WR_SEND, 2, 4096, 64, 0));
    expect(1, 1, SG_WC_SUCCESS);
    T_EQ_U64(s->h.raised[1], 0); /* the event is put off */
    sg_adapter_break(s->md.a);
    pair_settle(&pair);
    s->h.step_count = 0;
    pair_pass(&pair, 10000000);
    T_EQ_U64(s->h.step_count, 0);
    pair_stop(&pair);
}

/* An element that is only partly in its region is refused, even if the message would fit. */
static void whole_element_must_be_good(void)
{
    begin(NULL);
    recv(1, 1, PAIR_BUF - 64, 128);
    post(0, wr(0, SG_WR_SEND, 2, 0, 32, 0));
    expect(1, 1, SG_WC_LOC_PROT_ERR);
    T_EQ_U64(pair_buf(&pair, 1)[PAIR_BUF - 64], 0);
    expect(0, 2, SG_WC_SUCCESS);
    end();
}

/* A receive with more elements than CREATE_QP said, though its slot has room for them. */
static void too_many_elements(void)
{
    struct pair_side *s = &pair.side[1];
    struct sg_qp *qp;
    struct sg_rqe_hdr *h;
    struct sg_sge *sge;
    unsigned i;

    begin(NULL);
    qp = sg_idtab_get(&s->md.a->qps, s->qp.qpn);
    qp->rq.max_sge = 2;
    h = md_rq_entry(&s->qp);
    sge = (struct sg_sge *)(h + 1);
    h->num_sge = 3;
    sg_put_le64(&h->wr_id, 1);
    for (i = 0; i < 3; i++) {
        sg_put_le64(&sge[i].addr, s->buf + 64 * i);
        sg_put_le32(&sge[i].length, 64);
        sg_put_le32(&sge[i].lkey, s->stag);
    }
    md_rq_doorbell(&s->qp);
    post(0, wr(0, SG_WR_SEND, 2, 4096, 32, 0));
    expect(1, 1, SG_WC_LOC_LEN_ERR);
    expect(0, 2, SG_WC_SUCCESS);
    end();
}

/* The sum of a request's elements has 33 bits. */
static void elements_of_4_gib(void)
{
    static const uint32_t last[] = { 0x80000000, 0x80000001, UINT32_MAX };
    size_t i, k;

    for (i = 0; i < SG_ARRAY_SIZE(last); i++) {
        struct sg_wqe_hdr *h;
        struct sg_sge *sge;

        T_CONTEXT("row %zu", i);
        begin(&(struct md_qp_params){ .flags = SG_QP_KERNEL });
        h = md_sq_entry(&pair.side[0].qp);
        sge = (struct sg_sge *)(h + 1);
        h->opcode = SG_WR_WRITE;
        h->num_sge = 2;
        h->flags = SG_WQE_SIGNALED;
        sg_put_le64(&h->wr_id, 1);
        sg_put_le32(&h->rkey, pair.side[1].stag);
        sg_put_le64(&h->remote_addr, pair.side[1].buf);
        for (k = 0; k < 2; k++) { /* local key 0: all memory, so the protection check passes */
            sg_put_le64(&sge[k].addr, pair.side[0].buf);
            sg_put_le32(&sge[k].length, k ? last[i] : 0x80000000);
        }
        md_sq_doorbell(&pair.side[0].qp);
        expect(0, 1, SG_WC_LOC_LEN_ERR);
        end();
    }
}

static struct sg_adapter *reentered;
static uint64_t bell;

static bool ringing_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct test_host *h = opaque;

    if (reentered) { /* the guest pointed the adapter's DMA at its doorbell page */
        struct sg_adapter *a = reentered;

        reentered = NULL;
        sg_adapter_doorbell(a, 0, SG_DB_SQ, bell, 8);
    }
    memcpy(buf, test_host_ptr(h, addr), len);
    return true;
}

static void doorbell_within_a_turn(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_qp *qp;
    unsigned before;

    begin(NULL);
    qp = sg_idtab_get(&s->md.a->qps, s->qp.qpn);
    s->md.hold = true;
    recv(1, 1, 0, 64);
    post(0, wr(0, SG_WR_SEND, 2, 4096, 64, 0));
    s->md.hold = false;
    bell = s->qp.qpn | (uint64_t)(s->qp.sq.prod + 1) << 32;
    before = s->h.guest_errors;
    reentered = s->md.a;
    s->h.ops.dma_read = ringing_read;
    expect(0, 2, SG_WC_SUCCESS);
    T_FALSE(reentered);
    T_EQ_U64(s->h.guest_errors, before + 1);
    T_EQ_U64(qp->sq.ring.prod, s->qp.sq.prod);
    expect(1, 1, SG_WC_SUCCESS);
    end();
}

/* Contiguous pages end where the bus addresses do. */
static void pages_that_wrap(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_cmd_reg_mr c;

    begin(NULL);
    c = md_reg_mr_cmd(s->pd, 0, 8192, 0);
    sg_put_le32(&c.pages.count, 2);
    sg_put_le64(&c.pages.addr, UINT64_MAX - 4095);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_EINVAL);
    sg_put_le64(&c.pages.addr, UINT64_MAX - 8191);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    pair_stop(&pair);
}

/* Memory that does not answer: no completion says that the octets are there. */
static void memory_does_not_answer(void)
{
    static const uint8_t ops[] = { SG_WR_SEND, SG_WR_WRITE, SG_WR_READ };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(ops); i++) {
        int sink = ops[i] == SG_WR_READ ? 0 : 1;
        struct sg_cqe c;

        T_CONTEXT("opcode %u", ops[i]);
        begin(NULL);
        recv(1, 1, 0, 64);
        host_of(sink)->fault_lo = pair.side[sink].buf;
        host_of(sink)->fault_hi = pair.side[sink].buf + 64;
        post(0, wr(0, ops[i], 2, ops[i] == SG_WR_READ ? 0 : 4096, 64,
                   ops[i] == SG_WR_READ ? 4096 : 0));
        pair_pass(&pair, 20000000000ull);
        T_TRUE(md_poll(&pair.side[0].cq, &c));
        T_TRUE(ops[i] != SG_WR_READ || c.status != SG_WC_SUCCESS);
        T_TRUE(md_poll(&pair.side[1].cq, &c));
        T_TRUE(c.status != SG_WC_SUCCESS);
        T_EQ_U64(md_qp_state(&pair.side[sink].qp), SG_QP_ERROR);
        end();
    }
}

/* FLU-27: the eight octets of an Atomic Write are one store, whatever the memory is. */
static void atomic_write_is_one_store(void)
{
    uint64_t addr;
    uint32_t stag;

    place_begin(NULL, NULL);
    stag = region(1, 0, PAIR_BUF, ALL_RIGHTS & ~SG_ACCESS_FLUSH_PERSISTENT, SG_HASH_SHA256);
    addr = at(1, PM_LEN + 64); /* ordinary memory */
    host_of(1)->step_count = 0;
    ask(atomic_of(1, stag, PM_LEN + 64, 0x1122334455667788));
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le64(test_host_ptr(host_of(1), addr)), 0x1122334455667788);
    step(1, TEST_HOST_STORE64, addr);
    T_EQ_INT(test_host_step(host_of(1), 0, TEST_HOST_WRITE, addr), -1);
    T_EQ_INT(test_host_step(host_of(1), 0, TEST_HOST_WRITE, addr + 4), -1);
    place_end();
}

/* Octets that the machine still holds back are placed before a page returns to its owner. */
static void pages_go_when_all_has_landed(void)
{
    const uint64_t va = 0x700000000000;
    struct sg_cmd_map_pages m = { .hdr.opcode = SG_ADMIN_MAP_PAGES };
    struct pair_side *s = &pair.side[1];
    struct sg_cmd_reg_mr c;
    struct md_wr w;
    uint64_t list;
    uint32_t stag;

    place_begin(NULL, NULL);
    pm[1].hold = true;
    c = md_reg_mr_cmd(s->pd, 0, 4096, SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE);
    c.flags = SG_MR_ODP;
    c.pages = (struct sg_page_list){ .page_shift = 12 };
    sg_put_le64(&c.va, va);
    stag = md_make(&s->md, &c, sizeof(c));
    list = test_host_alloc(&s->h, 8, 8);
    sg_put_le64(test_host_ptr(&s->h, list), s->buf | 1);
    sg_put_le32(&m.stag, stag);
    sg_put_le32(&m.op, SG_MAP_PAGES);
    sg_put_le64(&m.count, 1);
    sg_put_le64(&m.list, list);
    T_EQ_U64(md_cmd(&s->md, &m, sizeof(m), NULL), SG_OK);
    fill(0, 0, 64, 5);
    w = wr(0, SG_WR_WRITE, 1, 0, 64, 0);
    w.rkey = stag;
    w.raddr = va;
    post(0, w);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_U64(pair_buf(&pair, 1)[1], 0); /* still held back */
    sg_put_le32(&m.op, SG_UNMAP_PAGES);
    sg_put_le64(&m.list, 0);
    T_EQ_U64(md_cmd(&s->md, &m, sizeof(m), NULL), SG_OK);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 64);
    memset(pair_buf(&pair, 1), 0xee, 64); /* now another owner's */
    pair_close(&pair);
    T_EQ_U64(pair_buf(&pair, 1)[1], 0xee);
    pair_stop(&pair);
    test_pm_fini(&pm[0]);
    test_pm_fini(&pm[1]);
}

static const struct t_case cases[] = {
    { "an entry, its phase, its event, the interrupt", phase_comes_last },
    { "arming with events unread", arming_with_events_unread },
    { "arming for any completion beats arming for solicited ones", any_beats_solicited },
    { "a dead adapter is silent", dead_adapter_is_silent },
    { "the whole element of a receive must be good", whole_element_must_be_good },
    { "a receive with too many elements", too_many_elements },
    { "elements of 4 GiB and more in all", elements_of_4_gib },
    { "a doorbell within a turn", doorbell_within_a_turn },
    { "pages that wrap", pages_that_wrap },
    { "memory that does not answer", memory_does_not_answer },
    { "FLU-27 an Atomic Write is one store", atomic_write_is_one_store },
    { "on-demand pages go when all has landed", pages_go_when_all_has_landed },
};

T_MAIN(cases)
