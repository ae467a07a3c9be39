/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of the driver checker: for each a driver with just that mistake.  It is reported, with
 * its object, and nothing else is.  A strict checker ends the object or the adapter, as the table
 * of rules says.  A driver without a mistake is not reported.
 */
#include "pair_rig.h"

#include "staghorn/wqe.h"
#include "verbs/check/check.h"

#define S (&pair.side[0])
#define MD (&pair.side[0].md)
#define QP (&pair.side[0].qp)
#define CQ (&pair.side[0].cq)

enum { MS = 1000000 };

static struct md_qp other; /* of side 0, not connected */
static struct md_cq small; /* four entries */

/* ---- mistakes ---- */

static void reg_width(void)
{
    MD->ops->reg_read(MD->opaque, SG_REG_STATUS, 2);
}

static void reg_unknown(void)
{
    md_read(MD, 0xf0);
}

static void reg_read_only(void)
{
    md_write(MD, SG_REG_STATUS, 1);
}

static void reg_setup(void)
{
    md_write(MD, SG_REG_ADMIN_SIZE, 32);
}

static void reg_bits(void)
{
    md_write(MD, SG_REG_CTRL, SG_CTRL_ENABLE | 0x10);
}

static void reg_vector(void)
{
    md_write(MD, SG_REG_TEST_IRQ, 64);
}

static void db_width(void)
{
    sg_adapter_doorbell(MD->a, 0, SG_DB_SQ, QP->qpn, 4);
}

static void db_page(void)
{
    md_doorbell(MD, 3, SG_DB_SQ, QP->qpn, QP->sq.prod);
}

static void make_other(uint32_t entries)
{
    struct md_qp_params p = { .pd = S->pd, .scq = &small, .rcq = &small, .entries = entries };

    md_create_cq(MD, &small, 4);
    md_create_qp(MD, &other, &p);
}

static void db_gone(void)
{
    make_other(16);
    T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DESTROY_QP, other.qpn), SG_OK);
    md_doorbell(MD, 0, SG_DB_SQ, other.qpn, 1);
}

static void db_unknown(void)
{
    md_doorbell(MD, 0, SG_DB_RQ, 999, 1);
}

static void db_shared(void)
{
    struct md_qp_params p = { .pd = S->pd, .scq = CQ, .rcq = CQ };
    struct md_srq srq;

    md_create_srq(MD, &srq, S->pd, 16);
    p.srq = &srq;
    md_create_qp(MD, &other, &p);
    md_doorbell(MD, 0, SG_DB_RQ, other.qpn, 1);
}

static void ring_beyond(void)
{
    md_doorbell(MD, 0, SG_DB_SQ, QP->qpn, QP->sq.prod + 17);
}

static void recv_beyond(void)
{
    md_doorbell(MD, 0, SG_DB_RQ, QP->qpn, QP->rq.prod + 17);
}

static void ring_back(void)
{
    md_doorbell(MD, 0, SG_DB_SQ, QP->qpn, QP->sq.prod - 17);
}

/* Every entry is executed, so there is room, but the driver cannot know it. */
static void ring_untold(void)
{
    struct md_wr w = wr(0, SG_WR_WRITE, 1, 0, 64, 0);

    w.quiet = true;
    for (int i = 0; i < 17; i++) {
        post(0, w);
        pair_settle(&pair);
    }
}

/* As without a write barrier: the doorbell overtakes the entry. */
static void entry_index(void)
{
    struct sg_wqe_hdr *h;

    MD->hold = true;
    post(0, wr(0, SG_WR_WRITE, 1, 0, 64, 0));
    h = md_sq_entry(QP);
    sg_put_le32(&h->index, 0);
    md_sq_doorbell(QP);
    h->opcode = SG_WR_WRITE;
    sg_put_le32(&h->index, QP->sq.prod - 1);
    MD->hold = false;
}

static void entry_index_for_good(void)
{
    struct sg_wqe_hdr *h = md_sq_entry(QP);

    h->opcode = SG_WR_WRITE;
    sg_put_le32(&h->index, 7);
    md_sq_doorbell(QP);
}

static void entry_changed(void)
{
    struct sg_wqe_hdr *h;

    MD->hold = true;
    h = md_sq_entry(QP);
    h->opcode = SG_WR_WRITE;
    md_sq_doorbell(QP);
    sg_put_le64(&h->wr_id, 77);
    MD->hold = false;
}

static void entry_changed_to_rubbish(void)
{
    struct sg_wqe_hdr *h;

    MD->hold = true;
    h = md_sq_entry(QP);
    md_sq_doorbell(QP);
    h->opcode = 0x70;
    MD->hold = false;
}

static void receive_changed(void)
{
    struct sg_rqe_hdr *h = md_rq_entry(QP);

    md_rq_doorbell(QP);
    sg_put_le64(&h->wr_id, 78);
    post(1, wr(1, SG_WR_SEND, 1, 0, 0, 0));
}

static void entry_form(void)
{
    struct md_wr w = wr(0, SG_WR_SEND, 1, 0, 8, 0);

    w.flags = 0x80;
    post(0, w);
}

static void entry_access(void)
{
    struct md_wr w = wr(0, SG_WR_WRITE, 1, 0, 8, 0);

    w.lkey ^= 1;
    post(0, w);
}

/* Entries of a queue pair that is flushed complete into four slots. */
static void cq_overrun(void)
{
    make_other(16);
    T_EQ_INT(md_modify_qp(&other, SG_QP_ERROR), SG_OK);
    for (int i = 0; i < 5; i++) {
        md_post_recv(&other, i, S->buf, 8, S->stag);
    }
}

static void cq_arm(void)
{
    md_doorbell(MD, 0, SG_DB_CQ_ARM, CQ->cqn, CQ->ring.cons + 5);
}

static void cq_record(void)
{
    sg_put_le32(test_host_ptr(&S->h, CQ->record), 1000);
    md_arm(CQ, false);
}

static void flush_one(void)
{
    md_post_recv(&other, 1, S->buf, 8, S->stag);
    md_settle(MD);
}

static void cq_record_back(void)
{
    struct sg_cqe c;

    make_other(16);
    T_EQ_INT(md_modify_qp(&other, SG_QP_ERROR), SG_OK);
    for (int i = 0; i < 3; i++) {
        flush_one();
        T_TRUE(md_poll(&small, &c));
        md_arm(&small, false);
    }
    sg_put_le32(test_host_ptr(&S->h, small.record), 1);
    md_arm(&small, false);
}

/* The consumer takes completions and arms, but never stores its index. */
static void cq_record_stale(void)
{
    struct sg_cqe c;

    make_other(16);
    T_EQ_INT(md_modify_qp(&other, SG_QP_ERROR), SG_OK);
    for (int i = 0; i < 5; i++) {
        flush_one();
        T_TRUE(md_poll(&small, &c));
        sg_put_le32(test_host_ptr(&S->h, small.record), 0);
        md_arm(&small, false);
    }
}

static void eq_index(void)
{
    md_write(MD, SG_REG_EQ_DB + 4, 50);
}

static void one_event(void)
{
    md_arm(CQ, false);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 8, 0));
    expect(0, 1, SG_WC_SUCCESS);
}

static void eq_back(void)
{
    one_event();
    md_write(MD, SG_REG_EQ_DB + 4, 1);
    md_write(MD, SG_REG_EQ_DB + 4, 0);
}

static void eq_unknown(void)
{
    md_write(MD, SG_REG_EQ_DB + 4 * 9, SG_EQ_DB_ARM);
}

static void irq_unanswered(void)
{
    md_arm_eq(MD, 1);
    one_event();
    pair_pass(&pair, (SG_CHECK_ANSWER_MS + 1000ull) * MS);
}

static void admin_beyond(void)
{
    md_write(MD, SG_REG_ADMIN_DB, MD->asq.prod + 100);
}

static const struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };

static void admin_back(void)
{
    md_submit(MD, &nop, sizeof(nop));
    md_submit(MD, &nop, sizeof(nop));
    md_write(MD, SG_REG_ADMIN_DB, MD->asq.prod - 1);
    md_settle(MD);
}

static struct sg_admin_hdr *last_command(void)
{
    uint32_t slot = (MD->asq.prod - 1) % MD->asq.entries;

    return test_host_ptr(&S->h, MD->asq.base + (uint64_t)slot * MD->asq.stride);
}

static void admin_changed(void)
{
    md_submit(MD, &nop, sizeof(nop));
    last_command()->opcode = SG_ADMIN_CREATE_PD;
    md_settle(MD);
}

static void admin_ci(void)
{
    md_write(MD, SG_REG_ADMIN_CI, MD->acq.cons + 50);
}

static void admin_ci_back(void)
{
    md_write(MD, SG_REG_ADMIN_CI, MD->acq.cons - 1);
}

static void admin_reserved(void)
{
    struct sg_admin_hdr h = { .opcode = SG_ADMIN_NOP, .reserved_8 = 1 };

    md_submit(MD, &h, sizeof(h));
    md_settle(MD);
}

static void admin_opcode(void)
{
    struct sg_admin_hdr h = { .opcode = 0x3f };

    T_EQ_INT(md_cmd(MD, &h, sizeof(h), NULL), SG_EOPCODE);
}

static void admin_field(void)
{
    struct sg_cmd_create_cq c = md_create_cq_cmd(MD, 4);

    sg_put_le32(&c.entries, 3);
    T_EQ_INT(md_cmd(MD, &c, sizeof(c), NULL), SG_EINVAL);
}

static void admin_memory(void)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_CAPS };

    sg_put_le64(&c.out_addr, 16);
    sg_put_le32(&c.out_len, sizeof(struct sg_caps));
    T_EQ_INT(md_cmd(MD, &c, sizeof(c), NULL), SG_EFAULT);
}

static void admin_gone(void)
{
    uint32_t pd = md_create_pd(MD);

    T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DESTROY_PD, pd), SG_OK);
    T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DESTROY_PD, pd), SG_ENOENT);
}

static void admin_gone_region(void)
{
    uint32_t stag = md_reg_mr(MD, S->pd, S->buf, 64, 0);

    T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DEREG_MR, stag), SG_OK);
    T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DEREG_MR, stag), SG_ENOENT);
}

static void admin_unknown(void)
{
    T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DESTROY_SRQ, 777), SG_ENOENT);
}

static void admin_busy(void)
{
    T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DESTROY_CQ, CQ->cqn), SG_EBUSY);
}

static void ring_stale(void)
{
    struct sg_cmd_create_cq c = md_create_cq_cmd(MD, 4);

    ((uint8_t *)test_host_ptr(&S->h, sg_get_le64(&c.pages.addr)))[3 * 64 + 63] = 1;
    md_submit(MD, &c, sizeof(c));
    md_settle(MD);
}

static void record_stale(void)
{
    struct sg_cmd_create_cq c = md_create_cq_cmd(MD, 4);

    sg_put_le32(test_host_ptr(&S->h, sg_get_le64(&c.record)), 4);
    md_submit(MD, &c, sizeof(c));
    md_settle(MD);
}

static void take_away(uint64_t addr, uint64_t len)
{
    S->h.fault_lo = addr;
    S->h.fault_hi = addr + len;
}

static void dma_ring(void)
{
    struct md_wr w = wr(0, SG_WR_WRITE, 1, 0, 8, 0);

    take_away(QP->sq.base, SG_PAGE_SIZE);
    post(0, w);
}

static void dma_memory(void)
{
    take_away(S->buf, SG_PAGE_SIZE);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 8, 0));
}

static void dma_memory_of_a_peer(void)
{
    take_away(S->buf, SG_PAGE_SIZE);
    post(1, wr(1, SG_WR_WRITE, 1, 0, 8, 0));
}

static void dma_memory_of_a_receive(void)
{
    recv(0, 5, 0, 64);
    take_away(S->buf, SG_PAGE_SIZE);
    post(1, wr(1, SG_WR_SEND, 1, 0, 8, 0));
}

static void reset_left(void)
{
    md_write(MD, SG_REG_CTRL, SG_CTRL_RESET);
}

static void reset_enable(void)
{
    md_write(MD, SG_REG_CTRL, SG_CTRL_RESET);
    md_write(MD, SG_REG_CTRL, SG_CTRL_ENABLE);
}

static void db_reset(void)
{
    md_write(MD, SG_REG_CTRL, SG_CTRL_RESET);
    md_doorbell(MD, 0, SG_DB_SQ, 1, 1);
}

static void admin_ring_stale(void)
{
    md_write(MD, SG_REG_CTRL, SG_CTRL_RESET);
    md_setup_rings(MD);
    ((uint8_t *)test_host_ptr(&S->h, MD->acq.base))[63] = 1;
    md_write(MD, SG_REG_CTRL, SG_CTRL_ENABLE);
    md_settle(MD);
}

/* ---- the table ---- */

enum { BARE = 1, USER = 2 }; /* no objects; a process made the mistake */

static const struct mistake_row {
    enum sg_rule rule;
    void (*mistake)(void);
    uint8_t kind; /* enum sg_object_kind of the report */
    uint8_t flags;
} rows[] = {
    { SG_RULE_REG_WIDTH, reg_width, SG_OBJECT_ADAPTER, 0 },
    { SG_RULE_REG_UNKNOWN, reg_unknown, SG_OBJECT_ADAPTER, 0 },
    { SG_RULE_REG_UNKNOWN, reg_read_only, SG_OBJECT_ADAPTER, 0 },
    { SG_RULE_REG_SETUP, reg_setup, SG_OBJECT_ADAPTER, 0 },
    { SG_RULE_REG_BITS, reg_bits, SG_OBJECT_ADAPTER, 0 },
    { SG_RULE_REG_VECTOR, reg_vector, SG_OBJECT_ADAPTER, 0 },
    { SG_RULE_REG_ENABLE, reset_enable, SG_OBJECT_ADAPTER, BARE },
    { SG_RULE_RESET_LEFT, reset_left, SG_OBJECT_ADAPTER, 0 },
    { SG_RULE_DB_WIDTH, db_width, SG_OBJECT_ADAPTER, 0 },
    { SG_RULE_DB_PAGE, db_page, SG_OBJECT_QP, USER },
    { SG_RULE_DB_GONE, db_gone, SG_OBJECT_QP, 0 },
    { SG_RULE_DB_UNKNOWN, db_unknown, SG_OBJECT_QP, 0 },
    { SG_RULE_DB_RESET, db_reset, SG_OBJECT_ADAPTER, BARE },
    { SG_RULE_DB_SHARED, db_shared, SG_OBJECT_QP, 0 },
    { SG_RULE_RING_BEYOND, ring_beyond, SG_OBJECT_QP, 0 },
    { SG_RULE_RING_BEYOND, recv_beyond, SG_OBJECT_QP, 0 },
    { SG_RULE_RING_BACK, ring_back, SG_OBJECT_QP, 0 },
    { SG_RULE_RING_UNTOLD, ring_untold, SG_OBJECT_QP, 0 },
    { SG_RULE_ENTRY_INDEX, entry_index, SG_OBJECT_QP, 0 },
    { SG_RULE_ENTRY_INDEX, entry_index_for_good, SG_OBJECT_QP, 0 },
    { SG_RULE_ENTRY_CHANGED, entry_changed, SG_OBJECT_QP, 0 },
    { SG_RULE_ENTRY_CHANGED, entry_changed_to_rubbish, SG_OBJECT_QP, 0 },
    { SG_RULE_ENTRY_CHANGED, receive_changed, SG_OBJECT_QP, 0 },
    { SG_RULE_ENTRY_FORM, entry_form, SG_OBJECT_QP, 0 },
    { SG_RULE_ENTRY_ACCESS, entry_access, SG_OBJECT_QP, 0 },
    { SG_RULE_CQ_OVERRUN, cq_overrun, SG_OBJECT_CQ, 0 },
    { SG_RULE_CQ_ARM, cq_arm, SG_OBJECT_CQ, 0 },
    { SG_RULE_CQ_RECORD, cq_record, SG_OBJECT_CQ, 0 },
    { SG_RULE_CQ_RECORD_BACK, cq_record_back, SG_OBJECT_CQ, 0 },
    { SG_RULE_CQ_RECORD_STALE, cq_record_stale, SG_OBJECT_CQ, 0 },
    { SG_RULE_EQ_INDEX, eq_index, SG_OBJECT_EQ, 0 },
    { SG_RULE_EQ_BACK, eq_back, SG_OBJECT_EQ, 0 },
    { SG_RULE_EQ_UNKNOWN, eq_unknown, SG_OBJECT_EQ, 0 },
    { SG_RULE_IRQ_UNANSWERED, irq_unanswered, SG_OBJECT_EQ, 0 },
    { SG_RULE_ADMIN_BEYOND, admin_beyond, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_BACK, admin_back, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_CHANGED, admin_changed, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_CI, admin_ci, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_CI_BACK, admin_ci_back, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_RESERVED, admin_reserved, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_OPCODE, admin_opcode, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_FIELD, admin_field, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_MEMORY, admin_memory, SG_OBJECT_ADMIN, 0 },
    { SG_RULE_ADMIN_GONE, admin_gone, SG_OBJECT_PD, 0 },
    { SG_RULE_ADMIN_GONE, admin_gone_region, SG_OBJECT_MR, 0 },
    { SG_RULE_ADMIN_UNKNOWN, admin_unknown, SG_OBJECT_SRQ, 0 },
    { SG_RULE_ADMIN_BUSY, admin_busy, SG_OBJECT_CQ, 0 },
    { SG_RULE_RING_STALE, ring_stale, SG_OBJECT_CQ, 0 },
    { SG_RULE_RING_STALE, record_stale, SG_OBJECT_CQ, 0 },
    { SG_RULE_RING_STALE, admin_ring_stale, SG_OBJECT_ADAPTER, BARE },
    { SG_RULE_DMA_RING, dma_ring, SG_OBJECT_QP, 0 },
    { SG_RULE_DMA_MEMORY, dma_memory, SG_OBJECT_MR, 0 },
    { SG_RULE_DMA_MEMORY, dma_memory_of_a_peer, SG_OBJECT_MR, 0 },
    { SG_RULE_DMA_MEMORY, dma_memory_of_a_receive, SG_OBJECT_MR, 0 },
};

/* ---- the runs ---- */

static void begin_checked(enum sg_check_mode mode, bool bare)
{
    struct sg_adapter_config config;

    pair_default_config(&config);
    config.check = mode;
    pair_start(&pair, &config, NULL);
    if (!bare) {
        pair_open(&pair, NULL);
        pair_connect(&pair);
    } else {
        T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DEREG_MR, S->stag), SG_OK);
        T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DESTROY_CQ, CQ->cqn), SG_OK);
        T_EQ_INT(md_cmd_id(MD, SG_ADMIN_DESTROY_PD, S->pd), SG_OK);
    }
}

/* Work as a driver should do it: all queues, several times around, with and without events. */
static void work(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        recv(0, 100 + i, 4096, 64);
        recv(1, 200 + i, 4096, 64);
        md_arm(CQ, false);
        md_arm_eq(MD, 1);
        post(0, wr(0, SG_WR_SEND, 300 + i, 0, 64, 0));
        expect(0, 300 + i, SG_WC_SUCCESS);
        expect(1, 200 + i, SG_WC_SUCCESS);
        post(1, wr(1, SG_WR_SEND, 400 + i, 0, 64, 0));
        expect(1, 400 + i, SG_WC_SUCCESS);
        expect(0, 100 + i, SG_WC_SUCCESS);
        post(0, wr(0, SG_WR_READ, 500 + i, 8192, 64, 8192));
        expect(0, 500 + i, SG_WC_SUCCESS);
        MD->eq.cons += (uint32_t)(i == 0);
    }
}

static uint64_t reports(int side)
{
    uint64_t first, end;

    sg_check_range(sg_adapter_check(pair.side[side].md.a), &first, &end);
    return end - first;
}

/* At least one report, and all of them of this rule; the first names the kind of object. */
static void reported_only(const struct mistake_row *row)
{
    const struct sg_check *c = sg_adapter_check(MD->a);
    uint64_t first, end, n;

    sg_check_range(c, &first, &end);
    T_TRUE(end > first);
    T_EQ_U64(sg_check_get(c, first)->object.kind, row->kind);
    for (n = first; n < end; n++) {
        T_EQ_STR(sg_rule_info(sg_check_get(c, n)->rule)->name, sg_rule_info(row->rule)->name);
    }
    T_EQ_U64(reports(1), 0);
}

static void stop(void)
{
    take_away(0, 0);
    pair_stop(&pair);
}

static void each_mistake_is_reported_and_nothing_else(void)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %u, %s", i, sg_rule_info(rows[i].rule)->name);
        begin_checked(SG_CHECK_WARN, rows[i].flags & BARE);
        rows[i].mistake();
        pair_settle(&pair);
        reported_only(&rows[i]);
        stop();
    }
}

static bool qp_failed(void)
{
    struct sg_eqe e;
    bool found = false;

    while (md_next_async(MD, &e)) {
        found = found || e.event == SG_EV_QP_FATAL || e.event == SG_EV_CQ_ERROR;
    }
    return found;
}

static void strict_ends_what_the_table_says(void)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct sg_rule_info *info = sg_rule_info(rows[i].rule);
        bool fatal = info->end == SG_RULE_FATAL && !(rows[i].flags & USER);

        T_CONTEXT("row %u, %s", i, info->name);
        begin_checked(SG_CHECK_STRICT, rows[i].flags & BARE);
        qp_failed();
        rows[i].mistake();
        pair_settle(&pair);
        reported_only(&rows[i]);
        T_EQ_INT(md_read(MD, SG_REG_FATAL) == SG_FATAL_CHECK, fatal);
        if (info->end == SG_RULE_ENDS) {
            T_TRUE(qp_failed());
        }
        if (info->end == SG_RULE_ADVICE) {
            T_EQ_INT(md_read(MD, SG_REG_FATAL), SG_FATAL_NONE);
        }
        stop();
    }
}

/* The rules that the table above does not have need a machine that it does not have, or say why. */
static void every_rule_has_a_driver(void)
{
    static const enum sg_rule elsewhere[] = {
        SG_RULE_DMA_SELF,    /* test_check.c */
        SG_RULE_AEQ_OVERRUN, /* test_check.c */
    };
    bool seen[SG_RULES] = { true };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        seen[rows[i].rule] = true;
    }
    for (unsigned i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
        seen[elsewhere[i]] = true;
    }
    for (unsigned i = 0; i < SG_RULES; i++) {
        T_CONTEXT("%s", sg_rule_info(i)->name);
        T_TRUE(seen[i]);
    }
}

static void a_good_driver_is_not_reported(void)
{
    for (int mode = SG_CHECK_WARN; mode <= SG_CHECK_STRICT; mode++) {
        begin_checked(mode, false);
        work(50);
        T_EQ_U64(reports(0) + reports(1), 0);
        T_EQ_INT(md_read(MD, SG_REG_FATAL), SG_FATAL_NONE);
        end();
    }
}

/* Without the checker the same mistakes have the effects of the other tests, and no report. */
static void off_is_off(void)
{
    if (test_host_check()) {
        T_SKIP("SG_TEST_CHECK gives each adapter a checker");
    }
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %u, %s", i, sg_rule_info(rows[i].rule)->name);
        begin_checked(SG_CHECK_OFF, rows[i].flags & BARE);
        rows[i].mistake();
        pair_settle(&pair);
        T_TRUE(md_read(MD, SG_REG_FATAL) != SG_FATAL_CHECK);
        T_TRUE(!sg_adapter_check(MD->a));
        stop();
    }
}

static const struct t_case cases[] = {
    { "each mistake is reported, and nothing else", each_mistake_is_reported_and_nothing_else },
    { "a strict checker ends what the table says", strict_ends_what_the_table_says },
    { "every rule has a driver that breaks it", every_rule_has_a_driver },
    { "a good driver is not reported", a_good_driver_is_not_reported },
    { "without the checker nothing is reported or ended", off_is_off },
};

T_MAIN(cases)
