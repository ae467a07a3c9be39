/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mini_driver.h"

#include "base/bytes.h"
#include "staghorn/ring.h"
#include "staghorn/wqe.h"

/* ---- direct access to the core ---- */

static uint64_t direct_reg_read(void *opaque, uint32_t offset, unsigned size)
{
    return sg_adapter_reg_read(((struct md *)opaque)->a, offset, size);
}

static void direct_reg_write(void *opaque, uint32_t offset, uint64_t value, unsigned size)
{
    sg_adapter_reg_write(((struct md *)opaque)->a, offset, value, size);
}

static void direct_doorbell(void *opaque, uint32_t page, uint32_t offset, uint64_t value)
{
    sg_adapter_doorbell(((struct md *)opaque)->a, page, offset, value, 8);
}

static uint64_t direct_alloc(void *opaque, size_t len, size_t align)
{
    return test_host_alloc(((struct md *)opaque)->h, len, align);
}

static void *direct_ptr(void *opaque, uint64_t addr)
{
    return test_host_ptr(((struct md *)opaque)->h, addr);
}

static bool direct_settle(void *opaque)
{
    struct md *md = opaque;
    unsigned turns = 0;

    test_host_take_kick(md->h);
    while (sg_adapter_run(md->a, 1 << 20) || test_host_take_kick(md->h)) {
        sg_assert(++turns < 1000000);
    }
    return false;
}

static const struct md_ops direct_ops = {
    .reg_read = direct_reg_read,
    .reg_write = direct_reg_write,
    .doorbell = direct_doorbell,
    .alloc = direct_alloc,
    .ptr = direct_ptr,
    .settle = direct_settle,
};

/* ---- bring-up ---- */

void md_attach(struct md *md, const struct md_ops *ops, void *opaque)
{
    *md = (struct md){ .ops = ops, .opaque = opaque };
}

struct md_ring md_new_ring(struct md *md, uint32_t entries, uint32_t stride)
{
    return (struct md_ring){
        .base = md->ops->alloc(md->opaque, (size_t)entries * stride, SG_PAGE_SIZE),
        .entries = entries,
        .stride = stride,
    };
}

static void *ring_slot(struct md *md, const struct md_ring *r, uint32_t index)
{
    uint64_t offset = (uint64_t)sg_index_slot(index, r->entries) * r->stride;

    return md->ops->ptr(md->opaque, r->base + offset);
}

/* Is there a new entry at the consumer index?  The phase bit is in its last octet. */
static bool ring_has(struct md *md, const struct md_ring *r)
{
    const uint8_t *e = ring_slot(md, r, r->cons);

    return sg_index_is_new(e[r->stride - 1], r->cons, r->entries);
}

static void write64(struct md *md, uint32_t reg, uint64_t value)
{
    md->ops->reg_write(md->opaque, reg, value, 8);
}

void md_new(struct md *md, struct test_host *h, struct sg_stream_net *net,
            const struct sg_adapter_config *config)
{
    struct sg_adapter_config c = *config;

    md_attach(md, &direct_ops, md);
    md->h = h;
    if (c.check == SG_CHECK_OFF) {
        c.check = (uint8_t)test_host_check();
    }
    md->a = sg_adapter_new(&h->host, net, &c);
}

void md_setup_rings(struct md *md)
{
    md->asq = md_new_ring(md, MD_ADMIN_SIZE, SG_ADMIN_CMD_SIZE);
    md->acq = md_new_ring(md, MD_ADMIN_SIZE, SG_ADMIN_RSP_SIZE);
    md->aeq = md_new_ring(md, MD_AEQ_SIZE, sizeof(struct sg_eqe));
    write64(md, SG_REG_ASQ_BASE_LO, md->asq.base);
    write64(md, SG_REG_ACQ_BASE_LO, md->acq.base);
    write64(md, SG_REG_AEQ_BASE_LO, md->aeq.base);
    md_write(md, SG_REG_ADMIN_SIZE, MD_ADMIN_SIZE);
    md_write(md, SG_REG_AEQ_SIZE, MD_AEQ_SIZE);
}

void md_start(struct md *md, struct test_host *h, struct sg_stream_net *net,
              const struct sg_adapter_config *config)
{
    md_new(md, h, net, config);
    md_enable(md);
}

void md_enable(struct md *md)
{
    struct sg_cmd_create_eq c = { .hdr.opcode = SG_ADMIN_CREATE_EQ };

    md_setup_rings(md);
    md_write(md, SG_REG_CTRL, SG_CTRL_ENABLE);
    sg_assert(md_read(md, SG_REG_STATUS) & SG_STATUS_READY);
    md->eq = md_new_ring(md, MD_EQ_SIZE, sizeof(struct sg_eqe));
    sg_put_le64(&c.base, md->eq.base);
    sg_put_le32(&c.entries, MD_EQ_SIZE);
    sg_put_le32(&c.eqn, 1);
    sg_put_le32(&c.vector, 1);
    sg_assert(md_cmd(md, &c, sizeof(c), NULL) == SG_OK);
}

void md_stop(struct md *md)
{
    sg_adapter_free(md->a);
    md->a = NULL;
}

void md_settle(struct md *md)
{
    while (md->ops->settle(md->opaque)) {
    }
}

uint32_t md_read(struct md *md, uint32_t reg)
{
    return (uint32_t)md->ops->reg_read(md->opaque, reg, 4);
}

void md_write(struct md *md, uint32_t reg, uint32_t value)
{
    md->ops->reg_write(md->opaque, reg, value, 4);
}

void md_doorbell(struct md *md, uint32_t page, uint32_t offset, uint32_t lo, uint32_t hi)
{
    md->ops->doorbell(md->opaque, page, offset, lo | (uint64_t)hi << 32);
    if (!md->hold) {
        md_settle(md);
    }
}

/* ---- admin queue ---- */

void md_submit(struct md *md, const void *cmd, size_t len)
{
    uint8_t *slot = ring_slot(md, &md->asq, md->asq.prod);

    memset(slot, 0, md->asq.stride);
    memcpy(slot, cmd, len);
    sg_put_le16(&((struct sg_admin_hdr *)(void *)slot)->cookie, ++md->cookie);
    md_write(md, SG_REG_ADMIN_DB, ++md->asq.prod);
}

bool md_reap(struct md *md, struct sg_admin_rsp *rsp)
{
    if (!ring_has(md, &md->acq)) {
        return false;
    }
    *rsp = *(struct sg_admin_rsp *)ring_slot(md, &md->acq, md->acq.cons);
    md_write(md, SG_REG_ADMIN_CI, ++md->acq.cons);
    return true;
}

enum sg_status md_cmd(struct md *md, const void *cmd, size_t len, struct sg_admin_rsp *rsp)
{
    struct sg_admin_rsp own;

    rsp = rsp ? rsp : &own;
    md_submit(md, cmd, len);
    md_settle(md);
    sg_assert(md_reap(md, rsp));
    sg_assert(sg_get_le16(&rsp->cookie) == md->cookie);
    return rsp->status;
}

enum sg_status md_cmd_id(struct md *md, enum sg_admin_opcode op, uint32_t id)
{
    struct sg_cmd_id c = { .hdr.opcode = op };

    sg_put_le32(&c.id, id);
    return md_cmd(md, &c, sizeof(c), NULL);
}

uint32_t md_make(struct md *md, const void *cmd, size_t len)
{
    struct sg_admin_rsp rsp;

    sg_assert(md_cmd(md, cmd, len, &rsp) == SG_OK);
    return sg_get_le32(&rsp.id);
}

static struct sg_page_list contiguous(uint64_t addr, uint64_t len)
{
    struct sg_page_list l = { .page_shift = SG_PAGE_SHIFT };
    uint64_t first = sg_align_down(addr, SG_PAGE_SIZE);

    sg_put_le64(&l.addr, first);
    sg_put_le32(&l.count, (addr + len - first + SG_PAGE_SIZE - 1) >> SG_PAGE_SHIFT);
    return l;
}

uint32_t md_create_pd(struct md *md)
{
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_CREATE_PD };

    return md_make(md, &c, sizeof(c));
}

struct sg_cmd_reg_mr md_reg_mr_cmd(uint32_t pd, uint64_t addr, uint64_t len, uint32_t access)
{
    struct sg_cmd_reg_mr c = { .hdr.opcode = SG_ADMIN_REG_MR };

    sg_put_le32(&c.pd, pd);
    sg_put_le32(&c.access, access);
    sg_put_le64(&c.va, addr);
    sg_put_le64(&c.length, len);
    c.pages = contiguous(addr, len);
    c.key = 0x5a;
    return c;
}

uint32_t md_reg_mr(struct md *md, uint32_t pd, uint64_t addr, uint64_t len, uint32_t access)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(pd, addr, len, access);

    return md_make(md, &c, sizeof(c));
}

uint32_t md_alloc_mr(struct md *md, uint32_t pd, uint32_t max_pages)
{
    struct sg_cmd_alloc_mr c = { .hdr.opcode = SG_ADMIN_ALLOC_MR, .key = 1 };

    sg_put_le32(&c.pd, pd);
    sg_put_le32(&c.max_pages, max_pages);
    return md_make(md, &c, sizeof(c));
}

uint32_t md_alloc_mw(struct md *md, uint32_t pd, uint8_t type)
{
    struct sg_cmd_alloc_mw c = { .hdr.opcode = SG_ADMIN_ALLOC_MW, .type = type, .key = 1 };

    sg_put_le32(&c.pd, pd);
    return md_make(md, &c, sizeof(c));
}

/* ---- completion queues ---- */

struct sg_cmd_create_cq md_create_cq_cmd(struct md *md, uint32_t entries)
{
    struct sg_cmd_create_cq c = { .hdr.opcode = SG_ADMIN_CREATE_CQ };
    uint64_t base = md->ops->alloc(md->opaque, (size_t)entries * 64 + 64, SG_PAGE_SIZE);

    sg_put_le32(&c.entries, entries);
    sg_put_le32(&c.eqn, 1);
    c.pages = contiguous(base, (uint64_t)entries * 64);
    sg_put_le64(&c.record, base + (uint64_t)entries * 64);
    return c;
}

void md_create_cq(struct md *md, struct md_cq *cq, uint32_t entries)
{
    struct sg_cmd_create_cq c = md_create_cq_cmd(md, entries);

    *cq = (struct md_cq){ .md = md };
    cq->ring = (struct md_ring){
        .base = sg_get_le64(&c.pages.addr),
        .entries = entries,
        .stride = 64,
    };
    cq->record = sg_get_le64(&c.record);
    cq->cqn = md_make(md, &c, sizeof(c));
}

bool md_poll(struct md_cq *cq, struct sg_cqe *out)
{
    if (!ring_has(cq->md, &cq->ring)) {
        return false;
    }
    *out = *(struct sg_cqe *)ring_slot(cq->md, &cq->ring, cq->ring.cons);
    cq->ring.cons++;
    sg_put_le32(cq->md->ops->ptr(cq->md->opaque, cq->record), cq->ring.cons);
    return true;
}

void md_arm(struct md_cq *cq, bool solicited)
{
    md_doorbell(cq->md, 0, SG_DB_CQ_ARM, cq->cqn | (solicited ? SG_CQ_ARM_SOLICITED : 0),
                cq->ring.cons);
}

/* ---- queue pairs ---- */

struct sg_cmd_create_qp md_create_qp_cmd(struct md *md, const struct md_qp_params *p)
{
    struct sg_cmd_create_qp c = { .hdr.opcode = SG_ADMIN_CREATE_QP };
    uint32_t entries = p->entries ? p->entries : 16, stride = p->stride ? p->stride : 512;
    uint32_t sges = (stride - sizeof(struct sg_wqe_hdr)) / sizeof(struct sg_sge);
    uint64_t size = (uint64_t)entries * stride;

    sg_put_le32(&c.pd, p->pd);
    sg_put_le32(&c.send_cqn, p->scq->cqn);
    sg_put_le32(&c.recv_cqn, p->rcq->cqn);
    sg_put_le32(&c.uar, p->uar);
    sg_put_le32(&c.sq_entries, entries);
    sg_put_le32(&c.rq_entries, entries);
    sg_put_le16(&c.sq_stride, stride);
    sg_put_le16(&c.rq_stride, stride);
    c.sq_max_sge = c.rq_max_sge = SG_MIN(sges, SG_SQ_MAX_SGE);
    sg_put_le16(&c.max_inline, SG_MIN(stride - sizeof(struct sg_wqe_hdr), SG_MAX_INLINE));
    sg_put_le32(&c.access, p->access ? p->access : SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE);
    sg_put_le32(&c.flags, p->flags);
    c.sq_pages = contiguous(md->ops->alloc(md->opaque, size, SG_PAGE_SIZE), size);
    if (p->srq) {
        sg_put_le32(&c.srqn, p->srq->srqn);
        sg_put_le32(&c.flags, p->flags | SG_QP_SRQ);
        sg_put_le32(&c.rq_entries, 0);
        sg_put_le16(&c.rq_stride, 0);
        c.rq_max_sge = 0;
    } else {
        c.rq_pages = contiguous(md->ops->alloc(md->opaque, size, SG_PAGE_SIZE), size);
    }
    return c;
}

void md_create_qp(struct md *md, struct md_qp *qp, const struct md_qp_params *p)
{
    struct sg_cmd_create_qp c = md_create_qp_cmd(md, p);

    *qp = (struct md_qp){ .md = md, .scq = p->scq, .rcq = p->rcq };
    qp->sq = (struct md_ring){
        .base = sg_get_le64(&c.sq_pages.addr),
        .entries = sg_get_le32(&c.sq_entries),
        .stride = sg_get_le16(&c.sq_stride),
    };
    qp->rq = qp->sq;
    qp->rq.base = sg_get_le64(&c.rq_pages.addr);
    qp->qpn = md_make(md, &c, sizeof(c));
}

enum sg_status md_modify_qp(struct md_qp *qp, enum sg_qp_state state)
{
    struct sg_cmd_modify_qp c = { .hdr.opcode = SG_ADMIN_MODIFY_QP };

    sg_put_le32(&c.qpn, qp->qpn);
    sg_put_le32(&c.mask, SG_QP_MOD_STATE);
    sg_put_le32(&c.state, state);
    return md_cmd(qp->md, &c, sizeof(c), NULL);
}

uint32_t md_qp_state(struct md_qp *qp)
{
    struct sg_cmd_id c = { .hdr.opcode = SG_ADMIN_QUERY_QP };
    struct sg_admin_rsp rsp;

    sg_put_le32(&c.id, qp->qpn);
    sg_assert(md_cmd(qp->md, &c, sizeof(c), &rsp) == SG_OK);
    return sg_get_le32(&rsp.data[0]);
}

struct sg_wqe_hdr *md_sq_entry(struct md_qp *qp)
{
    struct sg_wqe_hdr *h = ring_slot(qp->md, &qp->sq, qp->sq.prod);

    memset(h, 0, qp->sq.stride);
    sg_put_le32(&h->index, qp->sq.prod++);
    return h;
}

struct sg_rqe_hdr *md_rq_entry(struct md_qp *qp)
{
    struct sg_rqe_hdr *h = ring_slot(qp->md, &qp->rq, qp->rq.prod);

    memset(h, 0, qp->rq.stride);
    sg_put_le32(&h->index, qp->rq.prod++);
    return h;
}

void md_sq_doorbell(struct md_qp *qp)
{
    md_doorbell(qp->md, 0, SG_DB_SQ, qp->qpn, qp->sq.prod);
}

void md_rq_doorbell(struct md_qp *qp)
{
    md_doorbell(qp->md, 0, SG_DB_RQ, qp->qpn, qp->rq.prod);
}

void md_post_send(struct md_qp *qp, const struct md_wr *wr)
{
    struct sg_wqe_hdr *h = md_sq_entry(qp);

    sg_put_le64(&h->wr_id, wr->wr_id);
    h->opcode = wr->opcode;
    h->flags = wr->flags | (wr->quiet ? 0 : SG_WQE_SIGNALED);
    sg_put_le32(&h->inv_stag, wr->inv_stag);
    sg_put_le64(&h->remote_addr, wr->raddr);
    sg_put_le32(&h->rkey, wr->rkey);
    if (wr->len) {
        h->num_sge = 1;
        sg_sge_set((struct sg_sge *)(h + 1), wr->addr, wr->len, wr->lkey);
    }
    md_sq_doorbell(qp);
}

void md_post_recv(struct md_qp *qp, uint64_t wr_id, uint64_t addr, uint32_t len, uint32_t lkey)
{
    struct sg_rqe_hdr *h = md_rq_entry(qp);

    sg_put_le64(&h->wr_id, wr_id);
    if (len) {
        h->num_sge = 1;
        sg_sge_set(sg_rqe_sge(h), addr, len, lkey);
    }
    md_rq_doorbell(qp);
}

/* ---- shared receive queues ---- */

struct sg_cmd_create_srq md_create_srq_cmd(struct md *md, uint32_t pd, uint32_t entries)
{
    struct sg_cmd_create_srq c = { .hdr.opcode = SG_ADMIN_CREATE_SRQ, .max_sge = 7 };
    uint64_t size = (uint64_t)entries * 128;

    sg_put_le32(&c.pd, pd);
    sg_put_le32(&c.entries, entries);
    sg_put_le16(&c.stride, 128);
    c.pages = contiguous(md->ops->alloc(md->opaque, size, SG_PAGE_SIZE), size);
    return c;
}

void md_create_srq(struct md *md, struct md_srq *srq, uint32_t pd, uint32_t entries)
{
    struct sg_cmd_create_srq c = md_create_srq_cmd(md, pd, entries);

    *srq = (struct md_srq){ .md = md };
    srq->ring = (struct md_ring){
        .base = sg_get_le64(&c.pages.addr),
        .entries = entries,
        .stride = 128,
    };
    srq->srqn = md_make(md, &c, sizeof(c));
}

struct sg_rqe_hdr *md_srq_entry(struct md_srq *srq)
{
    struct sg_rqe_hdr *h = ring_slot(srq->md, &srq->ring, srq->ring.prod);

    memset(h, 0, srq->ring.stride);
    sg_put_le32(&h->index, srq->ring.prod++);
    return h;
}

void md_srq_doorbell(struct md_srq *srq)
{
    md_doorbell(srq->md, 0, SG_DB_SRQ, srq->srqn, srq->ring.prod);
}

void md_post_srq(struct md_srq *srq, uint64_t wr_id, uint64_t addr, uint32_t len, uint32_t lkey)
{
    struct sg_rqe_hdr *h = md_srq_entry(srq);

    sg_put_le64(&h->wr_id, wr_id);
    if (len) {
        h->num_sge = 1;
        sg_sge_set(sg_rqe_sge(h), addr, len, lkey);
    }
    md_srq_doorbell(srq);
}

/* ---- events ---- */

static bool next_eqe(struct md *md, struct md_ring *r, struct sg_eqe *out)
{
    if (!ring_has(md, r)) {
        return false;
    }
    *out = *(struct sg_eqe *)ring_slot(md, r, r->cons);
    r->cons++;
    return true;
}

bool md_next_async(struct md *md, struct sg_eqe *out)
{
    while (next_eqe(md, &md->aeq, out)) {
        md_write(md, SG_REG_EQ_DB, md->aeq.cons & SG_EQ_DB_CI_MASK);
        if (out->event != SG_EV_ADMIN) {
            return true;
        }
    }
    return false;
}

bool md_next_event(struct md *md, struct sg_eqe *out)
{
    if (!next_eqe(md, &md->eq, out)) {
        return false;
    }
    md_write(md, SG_REG_EQ_DB + 4, md->eq.cons & SG_EQ_DB_CI_MASK);
    return true;
}

void md_arm_eq(struct md *md, uint32_t eqn)
{
    uint32_t cons = eqn ? md->eq.cons : md->aeq.cons;

    md_write(md, SG_REG_EQ_DB + 4 * eqn, (cons & SG_EQ_DB_CI_MASK) | SG_EQ_DB_ARM);
}

struct sg_sockaddr md_addr(const struct sg_endpoint *ep, uint16_t port)
{
    struct sg_sockaddr sa = { .family = ep->family };

    sg_put_be16(&sa.port, port);
    memcpy(sa.ip, ep->ip, sizeof(sa.ip));
    return sa;
}
