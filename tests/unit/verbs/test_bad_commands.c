/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands with one wrong field, on an adapter in use: a queue pair is connected, another
 * peer has asked to connect, and there is one object of each kind.  A refused command has no
 * effect: no object more or less, and no octet of guest memory changed except the answer.
 *
 * The last case tries all opcodes, words and boundary values, whatever the status is.
 */
#include "field_row.h"
#include "pair_rig.h"

enum { MEM = 1 << 20, ODP_PAGES = 8, FR_PAGES = 4 };

static const uint64_t nowhere = 0x7000000000; /* does not respond */

static struct {
    uint32_t srqn, window, region, odp, fast, bound_window;
    uint32_t conn;       /* requested by side 0 and not answered yet */
    uint32_t idle_qp;    /* to accept it with */
    uint64_t room;       /* a page for lists and answers */
    struct md_qp asking; /* of side 0 */
} o;

static struct sg_adapter_census count;
static uint8_t memory[MEM];

static struct md *md(void)
{
    return &pair.side[1].md;
}

static struct sg_cmd_reg_mr odp_cmd(void)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(pair.side[1].pd, 0, ODP_PAGES * SG_PAGE_SIZE,
                                           SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE);

    c.flags = SG_MR_ODP;
    sg_put_le64(&c.pages.addr, 0);
    return c;
}

static void bind_window(uint32_t region)
{
    struct sg_wqe_hdr *h = md_sq_entry(&pair.side[1].qp);
    struct sg_wqe_bind *b = (struct sg_wqe_bind *)(h + 1);

    h->opcode = SG_WR_BIND_MW;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le32(&b->stag, o.bound_window);
    sg_put_le32(&b->mr_stag, region);
    sg_put_le32(&b->access, SG_ACCESS_REMOTE_READ);
    sg_put_le64(&b->va, pair.side[1].buf);
    sg_put_le64(&b->length, 64);
    md_sq_doorbell(&pair.side[1].qp);
    expect(1, 0, SG_WC_SUCCESS);
}

/* Side 0 requests a second connection, which side 1 does not answer. */
static void ask(void)
{
    struct pair_side *s = &pair.side[0];
    enum sg_status status;
    struct sg_eqe e;

    md_create_qp(&s->md, &o.asking,
                 &(struct md_qp_params){
                     .pd = s->pd,
                     .scq = &s->cq,
                     .rcq = &s->cq,
                 });
    pair_connect_cmd(&pair, &o.asking, 4, 4, "who are you", &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    o.conn = sg_get_le32(&e.conn);
}

static void begin_busy(void)
{
    struct pair_side *s = &pair.side[1];
    struct sg_cmd_reg_mr paged;
    struct md_qp idle;
    struct md_srq srq;

    pair_start_sized(&pair, NULL, NULL, MEM);
    pair_open(&pair, NULL);
    pair_connect(&pair);
    md_create_srq(&s->md, &srq, s->pd, 16);
    o.srqn = srq.srqn;
    o.region = md_reg_mr(&s->md, s->pd, s->buf, 4096, SG_ACCESS_MW_BIND | SG_ACCESS_LOCAL_WRITE);
    o.window = md_alloc_mw(md(), s->pd, SG_MW_TYPE_2);
    o.bound_window = md_alloc_mw(md(), s->pd, SG_MW_TYPE_1);
    bind_window(o.region);
    paged = odp_cmd();
    o.odp = md_make(md(), &paged, sizeof(paged));
    o.fast = md_alloc_mr(md(), s->pd, FR_PAGES);
    o.room = test_host_alloc(&s->h, SG_PAGE_SIZE, SG_PAGE_SIZE);
    md_create_qp(&s->md, &idle,
                 &(struct md_qp_params){
                     .pd = s->pd,
                     .scq = &s->cq,
                     .rcq = &s->cq,
                 });
    o.idle_qp = idle.qpn;
    ask();
}

static void end_busy(void)
{
    pair_stop(&pair);
}

/* ---- nothing has changed ---- */

static void remember(void)
{
    sg_adapter_census(md()->a, &count);
    memcpy(memory, pair.side[1].h.mem, MEM);
}

/* The rings of commands and answers are not compared. */
static void skip_ring(const struct md_ring *r)
{
    size_t at = r->base - TEST_HOST_BASE;

    memcpy(memory + at, pair.side[1].h.mem + at, (size_t)r->entries * r->stride);
}

static void expect_same(void)
{
    struct sg_adapter_census now;

    skip_ring(&md()->asq);
    skip_ring(&md()->acq);
    sg_adapter_census(md()->a, &now);
    T_EQ_MEM(&now, &count, sizeof(now));
    /* For each command, so not octet by octet unless there is something to show. */
    if (memcmp(pair.side[1].h.mem, memory, MEM) != 0) {
        T_EQ_MEM(pair.side[1].h.mem, memory, MEM);
    }
}

/* Each row is refused; then the good command does what it says. */
static void refuse(const void *good, size_t len, const struct field_row *rows, size_t n)
{
    const struct sg_admin_hdr *hdr = good;
    uint8_t cmd[SG_ADMIN_CMD_SIZE];
    size_t i;

    for (i = 0; i < n; i++) {
        T_CONTEXT("opcode 0x%02x, %s = 0x%" PRIx64, hdr->opcode, rows[i].name, rows[i].value);
        memcpy(cmd, good, len);
        field_put(cmd, &rows[i]);
        remember();
        T_EQ_U64(md_cmd(md(), cmd, len, NULL), rows[i].status);
        pair_settle(&pair);
        expect_same();
    }
    T_CONTEXT("opcode 0x%02x, the good command", hdr->opcode);
    T_EQ_U64(md_cmd(md(), good, len, NULL), SG_OK);
}

#define REFUSE(good, rows) refuse(&(good), sizeof(good), rows, SG_ARRAY_SIZE(rows))

/* ---- memory ---- */

static void whole_memory(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_REMOTE_READ, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_REMOTE_WRITE, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_REMOTE_ATOMIC, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_ZERO_BASED, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_FLUSH_GLOBAL, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_FLUSH_PERSISTENT, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_VERIFY, SG_EINVAL }, /* without a hash */
        { FIELD(sg_cmd_reg_mr, access), 1u << 31, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pd), 0, SG_ENOENT },
        { FIELD(sg_cmd_reg_mr, flags), SG_MR_WHOLE_MEMORY | SG_MR_ODP, SG_EINVAL },
    };
    struct sg_cmd_reg_mr c = {
        .hdr.opcode = SG_ADMIN_REG_MR,
        .flags = SG_MR_WHOLE_MEMORY,
    };

    begin_busy();
    sg_put_le32(&c.pd, pair.side[1].pd);
    sg_put_le32(&c.access, SG_ACCESS_LOCAL_WRITE);
    REFUSE(c, rows);
    end_busy();
}

static void on_demand(void)
{
    static const struct field_row regions[] = {
        { FIELD(sg_cmd_reg_mr, pd), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_reg_mr, access), 0x200, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, access), SG_ACCESS_FLUSH_PERSISTENT, SG_ENOTPMEM },
        { FIELD(sg_cmd_reg_mr, va), UINT64_MAX, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, va), 1, SG_EINVAL }, /* a page more */
        { FIELD(sg_cmd_reg_mr, length), 0, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, length), (1ull << 63) + 1, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, length), UINT64_MAX, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.addr), 4096, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.count), ODP_PAGES - 1, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.levels), 1, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 11, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, pages.page_shift), 31, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, mem_type), SG_MEM_TYPE_VOLATILE, SG_ENOTPMEM },
        { FIELD(sg_cmd_reg_mr, hash_alg), SG_HASH_SHA256, SG_EINVAL },
        { FIELD(sg_cmd_reg_mr, flags), 0x80 | SG_MR_ODP, SG_EINVAL },
    };
    struct sg_cmd_reg_mr c;

    begin_busy();
    c = odp_cmd();
    REFUSE(c, regions);
    end_busy();
}

static void map_pages(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_map_pages, stag), 0, SG_ENOENT },
        { FIELD(sg_cmd_map_pages, stag), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_map_pages, op), 0, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, op), SG_MAP_FAIL + 1, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, op), UINT32_MAX, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, first_page), ODP_PAGES - 1, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, first_page), ODP_PAGES, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, first_page), UINT64_MAX, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, count), 0, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, count), ODP_PAGES + 1, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, count), UINT64_MAX, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, count), 1ull << 61, SG_EINVAL }, /* 8 times that is 2^64 */
        { FIELD(sg_cmd_map_pages, list), TEST_HOST_BASE + 4, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, list), UINT64_MAX - 7, SG_EINVAL },
        { FIELD(sg_cmd_map_pages, list), nowhere, SG_EFAULT },
    };
    struct sg_cmd_map_pages c = { .hdr.opcode = SG_ADMIN_MAP_PAGES };
    __le64 *list;
    size_t i;

    begin_busy();
    list = test_host_ptr(&pair.side[1].h, o.room);
    sg_put_le64(&list[0], pair.side[1].buf | 1);
    sg_put_le64(&list[1], pair.side[1].buf + SG_PAGE_SIZE);
    sg_put_le32(&c.stag, o.odp);
    sg_put_le32(&c.op, SG_MAP_PAGES);
    sg_put_le64(&c.count, 2);
    sg_put_le64(&c.list, o.room);
    REFUSE(c, rows);
    for (i = 0; i < 4; i++) {
        const uint32_t stags[] = { o.region, o.fast, o.window, o.bound_window };
        const enum sg_status want[] = { SG_EINVAL, SG_ENOENT, SG_ENOENT, SG_EINVAL };
        struct sg_cmd_map_pages other = c;

        T_CONTEXT("STag of another kind, %zu", i);
        sg_put_le32(&other.stag, stags[i]);
        remember();
        T_EQ_U64(md_cmd(md(), &other, sizeof(other), NULL), want[i]);
        expect_same();
    }
    T_CONTEXT("a page in the list that is not aligned");
    sg_put_le64(&list[1], pair.side[1].buf + 2);
    remember();
    T_EQ_U64(md_cmd(md(), &c, sizeof(c), NULL), SG_EINVAL);
    expect_same();
    end_busy();
}

static void windows(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_alloc_mw, pd), 0, SG_ENOENT },
        { FIELD(sg_cmd_alloc_mw, pd), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_alloc_mw, type), 0, SG_EINVAL },
        { FIELD(sg_cmd_alloc_mw, type), 3, SG_EINVAL },
    };
    struct sg_cmd_alloc_mw c = { .hdr.opcode = SG_ADMIN_ALLOC_MW, .type = SG_MW_TYPE_1 };

    begin_busy();
    sg_put_le32(&c.pd, pair.side[1].pd);
    REFUSE(c, rows);
    end_busy();
}

static void changed_regions(void)
{
    struct sg_cmd_modify_mr c = { .hdr.opcode = SG_ADMIN_MODIFY_MR };
    struct sg_cmd_reg_mr with_hash;
    uint32_t hashed;

    begin_busy();
    with_hash = md_reg_mr_cmd(pair.side[1].pd, pair.side[1].buf, 4096,
                              SG_ACCESS_VERIFY | SG_ACCESS_REMOTE_READ);
    with_hash.hash_alg = SG_HASH_SHA256;
    hashed = md_make(md(), &with_hash, sizeof(with_hash));
    sg_put_le32(&c.stag, pair.side[1].stag);
    sg_put_le32(&c.mask, SG_MR_MOD_PD | SG_MR_MOD_ACCESS);
    sg_put_le32(&c.pd, pair.side[1].pd);
    const struct field_row rows[] = {
        { FIELD(sg_cmd_modify_mr, stag), 0, SG_ENOENT },
        { FIELD(sg_cmd_modify_mr, stag), pair.side[1].stag ^ 1, SG_ENOENT },
        { FIELD(sg_cmd_modify_mr, stag), o.window, SG_ENOENT },
        { FIELD(sg_cmd_modify_mr, stag), o.fast, SG_ENOENT },
        { FIELD(sg_cmd_modify_mr, stag), o.region, SG_EBUSY },
        { FIELD(sg_cmd_modify_mr, stag), hashed, SG_EINVAL },
        { FIELD(sg_cmd_modify_mr, mask), 0, SG_EINVAL },
        { FIELD(sg_cmd_modify_mr, mask), 4, SG_EINVAL },
        { FIELD(sg_cmd_modify_mr, pd), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_modify_mr, access), SG_ACCESS_ZERO_BASED, SG_EINVAL },
        { FIELD(sg_cmd_modify_mr, access), SG_ACCESS_VERIFY | SG_ACCESS_REMOTE_READ, SG_EINVAL },
        { FIELD(sg_cmd_modify_mr, access), 0x80000000, SG_EINVAL },
        { FIELD(sg_cmd_modify_mr, access), SG_ACCESS_FLUSH_PERSISTENT, SG_ENOTPMEM },
    };
    REFUSE(c, rows);
    end_busy();
}

/* ---- queues ---- */

static void shared_queues(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_modify_srq, srqn), 0, SG_ENOENT },
        { FIELD(sg_cmd_modify_srq, srqn), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_modify_srq, limit), 17, SG_EINVAL },
        { FIELD(sg_cmd_modify_srq, limit), UINT32_MAX, SG_EINVAL },
    };
    struct sg_cmd_modify_srq c = { .hdr.opcode = SG_ADMIN_MODIFY_SRQ };

    begin_busy();
    sg_put_le32(&c.srqn, o.srqn);
    REFUSE(c, rows);
    end_busy();
}

/* User contexts share only the objects that the kernel created. */
static void foreign_queues(void)
{
    struct pair_side *s = &pair.side[1];
    struct sg_cmd_create_qp c;
    struct sg_cmd_create_cq cq;
    struct sg_cmd_create_srq srq;
    struct sg_admin_rsp rsp;
    uint32_t cqn, srqn, other_pd;

    begin_busy();
    c = md_create_qp_cmd(md(), &(struct md_qp_params){
                                   .pd = s->pd,
                                   .scq = &s->cq,
                                   .rcq = &s->cq,
                                   .uar = 2,
                               });
    cq = md_create_cq_cmd(md(), 16);
    sg_put_le32(&cq.uar, 1);
    cqn = md_make(md(), &cq, sizeof(cq));
    other_pd = md_create_pd(md());
    srq = md_create_srq_cmd(md(), other_pd, 16);
    srqn = md_make(md(), &srq, sizeof(srq));
    {
        const struct field_row rows[] = {
            { FIELD(sg_cmd_create_qp, send_cqn), cqn, SG_EPERM },
            { FIELD(sg_cmd_create_qp, recv_cqn), cqn, SG_EPERM },
            { FIELD(sg_cmd_create_qp, pd), 0, SG_ENOENT },
            { FIELD(sg_cmd_create_qp, srqn), srqn, SG_EINVAL }, /* without the flag */
        };

        REFUSE(c, rows);
    }
    T_CONTEXT("a shared queue of another domain");
    sg_put_le32(&c.flags, SG_QP_SRQ);
    sg_put_le32(&c.srqn, srqn);
    sg_put_le32(&c.rq_entries, 0);
    sg_put_le16(&c.rq_stride, 0);
    c.rq_max_sge = 0;
    memset(&c.rq_pages, 0, sizeof(c.rq_pages));
    remember();
    T_EQ_U64(md_cmd(md(), &c, sizeof(c), &rsp), SG_EPERM);
    expect_same();
    end_busy();
}

static void queries(void)
{
    static const uint8_t ops[] = { SG_ADMIN_QUERY_CAPS, SG_ADMIN_QUERY_STATS,
                                   SG_ADMIN_QUERY_QP_STATS, SG_ADMIN_QUERY_MR_STATS,
                                   SG_ADMIN_CM_DATA };
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_query, out_len), 0, SG_EINVAL },
        { FIELD(sg_cmd_query, out_addr), nowhere, SG_EFAULT },
        { FIELD(sg_cmd_query, out_addr), 0, SG_EFAULT },
        { FIELD(sg_cmd_query, out_addr), UINT64_MAX, SG_EFAULT },
        { FIELD(sg_cmd_query, out_addr), UINT64_MAX - 15, SG_EFAULT },
        { FIELD(sg_cmd_query, out_addr), TEST_HOST_BASE + MEM - 8, SG_EFAULT },
    };
    size_t i;

    begin_busy();
    for (i = 0; i < SG_ARRAY_SIZE(ops); i++) {
        struct sg_cmd_query c = { .hdr.opcode = ops[i] };

        sg_put_le64(&c.out_addr, o.room);
        sg_put_le32(&c.out_len, SG_PAGE_SIZE);
        sg_put_le32(&c.id, ops[i] == SG_ADMIN_QUERY_QP_STATS   ? pair.side[1].qp.qpn
                           : ops[i] == SG_ADMIN_QUERY_MR_STATS ? o.region
                           : ops[i] == SG_ADMIN_CM_DATA        ? o.conn
                                                               : 0);
        REFUSE(c, rows);
    }
    end_busy();
}

/* ---- connections ---- */

static struct sg_cmd_connect answer_cmd(uint8_t op)
{
    struct sg_cmd_connect c = { .hdr.opcode = op };

    sg_put_le32(&c.qpn, o.idle_qp);
    sg_put_le32(&c.conn, o.conn);
    sg_put_le64(&c.pdata_addr, o.room);
    sg_put_le16(&c.pdata_len, 100);
    return c;
}

#define ANSWER_ROWS                                                    \
    { FIELD(sg_cmd_connect, conn), 0, SG_ENOENT },                     \
        { FIELD(sg_cmd_connect, conn), UINT32_MAX, SG_ENOENT },        \
        { FIELD(sg_cmd_connect, conn), pair.side[1].conn, SG_ESTATE }, \
        { FIELD(sg_cmd_connect, pdata_len), 509, SG_EINVAL },          \
        { FIELD(sg_cmd_connect, pdata_len), UINT16_MAX, SG_EINVAL },   \
        { FIELD(sg_cmd_connect, pdata_addr), nowhere, SG_EFAULT },     \
        { FIELD(sg_cmd_connect, pdata_addr), UINT64_MAX, SG_EFAULT },  \
        { FIELD(sg_cmd_connect, ird), 129, SG_EINVAL },                \
        { FIELD(sg_cmd_connect, ord), UINT16_MAX, SG_EINVAL },         \
        { FIELD(sg_cmd_connect, flags), 4, SG_EINVAL },                \
    {                                                                  \
        FIELD(sg_cmd_connect, flags), 0x8000, SG_EINVAL                \
    }

/* After a refused ACCEPT or REJECT the peer still waits, and a correct one reaches it. */
static void answers(void)
{
    struct sg_cmd_connect c;

    begin_busy();
    {
        const struct field_row rows[] = {
            ANSWER_ROWS,
            { FIELD(sg_cmd_connect, qpn), 0, SG_ENOENT },
            { FIELD(sg_cmd_connect, qpn), UINT32_MAX, SG_ENOENT },
            { FIELD(sg_cmd_connect, qpn), pair.side[1].qp.qpn, SG_ESTATE },
        };

        c = answer_cmd(SG_ADMIN_ACCEPT);
        REFUSE(c, rows);
    }
    T_EQ_U64(pair_expect(&pair, 0, SG_EV_CM_REPLY).cm_status, SG_CM_OK);
    T_EQ_U64(md_qp_state(&o.asking), SG_QP_RTS);
    end_busy();

    begin_busy();
    {
        const struct field_row rows[] = { ANSWER_ROWS };

        c = answer_cmd(SG_ADMIN_REJECT);
        REFUSE(c, rows);
    }
    T_EQ_U64(pair_expect(&pair, 0, SG_EV_CM_REPLY).cm_status, SG_CM_REJECTED);
    end_busy();
}

/* The peer's FIN on a refused connection is read, and the adapter is reset before it answers. */
static void reset_after_refusal(void)
{
    const struct sg_adapter_census none = { 0 };
    struct sg_adapter_census c;

    begin_busy();
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_REJECT, 0, o.conn, 0, 0, NULL), SG_OK);
    md_write(md(), SG_REG_CTRL, SG_CTRL_RESET);
    sg_adapter_census(md()->a, &c);
    T_EQ_MEM(&c, &none, sizeof(c));
    end_busy();
}

static void states(void)
{
    enum { S = SG_QP_MOD_STATE, U = SG_QP_MOD_UNREACHABLE, A = SG_QP_MOD_ACCESS };
    static const struct {
        bool connected;
        uint32_t mask, state, access;
        enum sg_status status;
    } rows[] = {
        { true, S, SG_QP_IDLE, 0, SG_ESTATE },
        { true, S, SG_QP_RTS, 0, SG_EINVAL },
        { true, S, SG_QP_TERMINATE, 0, SG_EINVAL },
        { true, S, 5, 0, SG_EINVAL },
        { true, S | A, SG_QP_IDLE, SG_ACCESS_REMOTE_READ, SG_ESTATE },
        { true, U, SG_QP_ERROR, 0, SG_EINVAL },
        { true, S | U, SG_QP_CLOSING, 0, SG_EINVAL },
        { true, S | U, SG_QP_IDLE, 0, SG_EINVAL },
        { true, A, 0, 0x200, SG_EINVAL },
        { true, 0, 0, 0, SG_EINVAL },
        { true, UINT32_MAX, SG_QP_ERROR, 0, SG_EINVAL },
        { false, S, SG_QP_CLOSING, 0, SG_ESTATE },
        { false, S, SG_QP_RTS, 0, SG_EINVAL },
    };
    size_t i;

    begin_busy();
    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct sg_cmd_modify_qp c = { .hdr.opcode = SG_ADMIN_MODIFY_QP };

        T_CONTEXT("row %zu", i);
        sg_put_le32(&c.qpn, rows[i].connected ? pair.side[1].qp.qpn : o.idle_qp);
        sg_put_le32(&c.mask, rows[i].mask);
        sg_put_le32(&c.state, rows[i].state);
        sg_put_le32(&c.access, rows[i].access);
        remember();
        T_EQ_U64(md_cmd(md(), &c, sizeof(c), NULL), rows[i].status);
        pair_settle(&pair);
        expect_same();
        T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_RTS);
    }
    /* The rights are unchanged: the peer can still write. */
    fill(0, 0, 64, 1);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 64, 8192));
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 1) + 8192, pair_buf(&pair, 0), 64);
    end_busy();
}

/* ---- everything ---- */

static const uint32_t edges[] = { 0, 1, 2, 0x1000, 0x7fffffff, 0x80000000, UINT32_MAX };

/* A command that is nearly right, so that the one wrong word decides. */
static void nearly(uint8_t op, uint8_t cmd[SG_ADMIN_CMD_SIZE])
{
    struct pair_side *s = &pair.side[1];
    const struct md_qp_params params = { .pd = s->pd, .scq = &s->cq, .rcq = &s->cq };
    const struct sg_cmd_query query = { .hdr.opcode = op };

    memset(cmd, 0, SG_ADMIN_CMD_SIZE);
    switch (op) {
    case SG_ADMIN_REG_MR:
        *(struct sg_cmd_reg_mr *)(void *)cmd =
            md_reg_mr_cmd(s->pd, s->buf, 8192, SG_ACCESS_LOCAL_WRITE);
        break;
    case SG_ADMIN_CREATE_CQ:
        *(struct sg_cmd_create_cq *)(void *)cmd = md_create_cq_cmd(md(), 16);
        break;
    case SG_ADMIN_CREATE_QP:
        *(struct sg_cmd_create_qp *)(void *)cmd = md_create_qp_cmd(md(), &params);
        break;
    case SG_ADMIN_CREATE_SRQ:
        *(struct sg_cmd_create_srq *)(void *)cmd = md_create_srq_cmd(md(), s->pd, 16);
        break;
    case SG_ADMIN_ACCEPT:
    case SG_ADMIN_REJECT:
        *(struct sg_cmd_connect *)(void *)cmd = answer_cmd(op);
        break;
    default:
        memcpy(cmd, &query, sizeof(query));
        sg_put_le64(cmd + 8, o.room);
        sg_put_le32(cmd + 16, 64);
    }
}

static void every_word(void)
{
    uint8_t good[SG_ADMIN_CMD_SIZE], cmd[SG_ADMIN_CMD_SIZE];
    unsigned op, word, i, refused = 0;

    for (op = 0; op < SG_ADMIN_OPCODE_COUNT; op++) {
        begin_busy();
        nearly((uint8_t)op, good);
        for (word = 2; word < SG_ADMIN_CMD_SIZE / 4; word++) {
            for (i = 0; i < SG_ARRAY_SIZE(edges); i++) {
                T_CONTEXT("opcode 0x%02x, word %u = 0x%x", op, word, edges[i]);
                memcpy(cmd, good, sizeof(cmd));
                sg_put_le32(cmd + 4 * word, edges[i]);
                remember();
                if (md_cmd(md(), cmd, sizeof(cmd), NULL) != SG_OK) {
                    expect_same();
                    refused++;
                }
            }
        }
        end_busy();
    }
    T_TRUE(refused > 1000);
}

static const struct t_case cases[] = {
    { "SEC-15 REG_MR of all memory: each field", whole_memory },
    { "REG_MR of pages on demand: each field", on_demand },
    { "MAP_PAGES: each field, and pages of another kind of region", map_pages },
    { "ALLOC_MW: each field", windows },
    { "MODIFY_MR: each field", changed_regions },
    { "MODIFY_SRQ: each field", shared_queues },
    { "queues of another context, of another domain", foreign_queues },
    { "queries: each field, room that is not there", queries },
    { "ACCEPT, REJECT of a request that waits: each field", answers },
    { "reset while a refused connection says good-bye", reset_after_refusal },
    { "MODIFY_QP: states that cannot be", states },
    { "every word of every command at its edges", every_word },
};

T_MAIN(cases)
