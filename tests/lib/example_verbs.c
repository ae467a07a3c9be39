/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The example driver: objects, data, connections, events.
 */
#include "example_driver.h"

/* ---- objects ---- */

static bool lost(void *opaque)
{
    return ex_lost(opaque);
}

static void get_caps(void *opaque, struct bu_caps *caps)
{
    *caps = ((struct ex_driver *)opaque)->caps;
}

static int guest_errors(void *opaque, uint64_t *count)
{
    struct sg_stats s;
    int result = ex_query(opaque, SG_ADMIN_QUERY_STATS, 0, &s, sizeof(s));

    *count = result == BU_OK ? sg_get_le64(&s.guest_errors) : 0;
    return result;
}

static int set_addr(void *opaque, const uint8_t ip[4], unsigned prefix_len)
{
    struct sg_cmd_set_addr c = { .hdr.opcode = SG_ADMIN_SET_ADDR, .op = SG_ADDR_ADD };
    struct sg_admin_rsp rsp;

    c.addr.family = 4;
    memcpy(c.addr.ip, ip, 4);
    c.prefix_len = (uint8_t)prefix_len;
    return ex_command(opaque, &c, sizeof(c), &rsp);
}

static int pd_create(void *opaque, uint32_t *pd)
{
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_CREATE_PD };

    return ex_make(opaque, &c, sizeof(c), pd);
}

static int pd_destroy(void *opaque, uint32_t pd)
{
    return ex_command_id(opaque, SG_ADMIN_DESTROY_PD, pd);
}

static int mr_create(void *opaque, uint32_t pd, uint64_t bus, uint64_t octets, uint32_t access,
                     uint32_t *stag)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(pd, bus, octets, access);

    return ex_make(opaque, &c, sizeof(c), stag);
}

static int mr_destroy(void *opaque, uint32_t stag)
{
    return ex_command_id(opaque, SG_ADMIN_DEREG_MR, stag);
}

static struct ex_cq *find_cq(struct ex_driver *d, uint32_t cqn)
{
    struct ex_cq *cq = d->cqs;

    while (cq < d->cqs + EX_QUEUES && !(cq->used && cq->md.cqn == cqn)) {
        cq++;
    }
    return cq < d->cqs + EX_QUEUES ? cq : NULL;
}

static int cq_create(void *opaque, uint32_t entries, uint32_t *cqn)
{
    struct ex_driver *d = opaque;
    struct sg_cmd_create_cq c = md_create_cq_cmd(&d->md, entries);
    int result = ex_make(d, &c, sizeof(c), cqn);
    struct ex_cq *cq = d->cqs;

    if (result != BU_OK) {
        ex_free(d, sg_get_le64(&c.pages.addr));
        return result;
    }
    while (cq->used) {
        sg_assert(++cq < d->cqs + EX_QUEUES);
    }
    *cq = (struct ex_cq){ .used = true };
    cq->md = (struct md_cq){
        .md = &d->md,
        .cqn = *cqn,
        .record = sg_get_le64(&c.record),
        .ring = { .base = sg_get_le64(&c.pages.addr),
                  .entries = entries,
                  .stride = sizeof(struct sg_cqe) },
    };
    return BU_OK;
}

static int cq_destroy(void *opaque, uint32_t cqn)
{
    struct ex_driver *d = opaque;
    int result = ex_command_id(d, SG_ADMIN_DESTROY_CQ, cqn);
    struct ex_cq *cq = find_cq(d, cqn);

    if (cq && result == BU_OK) {
        ex_free(d, cq->md.ring.base);
        cq->used = false;
    }
    return result;
}

static struct ex_qp *find_qp(struct ex_driver *d, uint32_t qpn)
{
    struct ex_qp *qp = d->qps;

    while (qp < d->qps + EX_QUEUES && !(qp->used && qp->md.qpn == qpn)) {
        qp++;
    }
    return qp < d->qps + EX_QUEUES ? qp : NULL;
}

/* Octets of a slot: a power of two that holds the header and the longer of the two bodies. */
static uint32_t stride_for(uint32_t max_sge, uint32_t max_inline)
{
    size_t body = SG_MAX(max_sge * sizeof(struct sg_sge), (size_t)max_inline);
    uint32_t stride = SG_WQE_STRIDE_MIN;

    while (stride < sizeof(struct sg_wqe_hdr) + body) {
        stride *= 2;
    }
    return stride;
}

static int qp_create(void *opaque, const struct bu_qp_params *p, uint32_t *qpn)
{
    struct ex_driver *d = opaque;
    struct ex_cq *scq = find_cq(d, p->send_cq), *rcq = find_cq(d, p->recv_cq);
    struct md_qp_params params = {
        .pd = p->pd,
        .scq = &scq->md,
        .rcq = &rcq->md,
        .entries = p->entries,
        .stride = stride_for(p->max_sge, p->max_inline),
        .access = p->access,
    };
    struct sg_cmd_create_qp c = md_create_qp_cmd(&d->md, &params);
    struct ex_qp *qp = d->qps;
    int result;

    c.sq_max_sge = c.rq_max_sge = (uint8_t)p->max_sge;
    sg_put_le16(&c.max_inline, (uint16_t)p->max_inline);
    result = ex_make(d, &c, sizeof(c), qpn);
    if (result != BU_OK) {
        ex_free(d, sg_get_le64(&c.sq_pages.addr));
        ex_free(d, sg_get_le64(&c.rq_pages.addr));
        return result;
    }
    while (qp->used) {
        sg_assert(++qp < d->qps + EX_QUEUES);
    }
    *qp = (struct ex_qp){ .used = true };
    qp->md = (struct md_qp){ .md = &d->md, .qpn = *qpn, .scq = &scq->md, .rcq = &rcq->md };
    qp->md.sq = (struct md_ring){
        .base = sg_get_le64(&c.sq_pages.addr),
        .entries = p->entries,
        .stride = params.stride,
    };
    qp->md.rq = qp->md.sq;
    qp->md.rq.base = sg_get_le64(&c.rq_pages.addr);
    return BU_OK;
}

static int qp_modify(void *opaque, uint32_t qpn, uint32_t state)
{
    struct sg_cmd_modify_qp c = { .hdr.opcode = SG_ADMIN_MODIFY_QP };
    struct sg_admin_rsp rsp;

    sg_put_le32(&c.qpn, qpn);
    sg_put_le32(&c.mask, SG_QP_MOD_STATE);
    sg_put_le32(&c.state, state);
    return ex_command(opaque, &c, sizeof(c), &rsp);
}

static int qp_state(void *opaque, uint32_t qpn, uint32_t *state)
{
    struct sg_cmd_id c = { .hdr.opcode = SG_ADMIN_QUERY_QP };
    struct sg_admin_rsp rsp;
    int result;

    sg_put_le32(&c.id, qpn);
    result = ex_command(opaque, &c, sizeof(c), &rsp);
    *state = result == BU_OK ? sg_get_le32(&rsp.data[0]) : 0;
    return result;
}

static int qp_destroy(void *opaque, uint32_t qpn)
{
    struct ex_driver *d = opaque;
    int result = ex_command_id(d, SG_ADMIN_DESTROY_QP, qpn);
    struct ex_qp *qp = find_qp(d, qpn);

    if (qp && result == BU_OK) {
        ex_free(d, qp->md.sq.base);
        ex_free(d, qp->md.rq.base);
        qp->used = false;
    }
    return result;
}

/* ---- data ---- */

static void put_elements(struct sg_sge *out, const struct bu_wr *wr)
{
    unsigned i;

    for (i = 0; i < wr->num_sge; i++, out++) {
        sg_put_le64(&out->addr, wr->sge[i].addr);
        sg_put_le32(&out->length, wr->sge[i].length);
        sg_put_le32(&out->lkey, wr->sge[i].lkey);
    }
}

static int post_send(void *opaque, uint32_t qpn, const struct bu_wr *wr)
{
    struct ex_qp *qp = find_qp(opaque, qpn);
    struct sg_wqe_hdr *h;

    if (qp->md.sq.prod - qp->sq_freed >= qp->md.sq.entries) {
        return BU_FULL;
    }
    h = md_sq_entry(&qp->md); /* zeroed, with its index */
    sg_put_le64(&h->wr_id, wr->wr_id);
    h->opcode = wr->opcode;
    h->flags = wr->flags;
    sg_put_le32(&h->inv_stag, wr->inv_stag);
    sg_put_le64(&h->remote_addr, wr->remote_addr);
    sg_put_le32(&h->rkey, wr->rkey);
    if (wr->flags & SG_WQE_INLINE) {
        sg_put_le16(&h->inline_len, (uint16_t)wr->payload_len);
        memcpy(h + 1, wr->payload, wr->payload_len);
    } else {
        h->num_sge = (uint8_t)wr->num_sge;
        put_elements((struct sg_sge *)(void *)(h + 1), wr);
    }
    /* A write barrier belongs here, where processor and adapter work at the same time. */
    md_sq_doorbell(&qp->md);
    return BU_OK;
}

static int post_recv(void *opaque, uint32_t qpn, const struct bu_wr *wr)
{
    struct ex_qp *qp = find_qp(opaque, qpn);
    struct sg_rqe_hdr *h;

    if (qp->md.rq.prod - qp->rq_freed >= qp->md.rq.entries) {
        return BU_FULL;
    }
    h = md_rq_entry(&qp->md);
    sg_put_le64(&h->wr_id, wr->wr_id);
    h->num_sge = (uint8_t)wr->num_sge;
    put_elements((struct sg_sge *)(void *)(h + 1), wr);
    md_rq_doorbell(&qp->md);
    return BU_OK;
}

static bool cq_poll(void *opaque, uint32_t cqn, struct bu_wc *wc)
{
    struct ex_driver *d = opaque;
    struct ex_cq *cq = find_cq(d, cqn);
    struct ex_qp *qp;
    struct sg_cqe e;

    if (!md_poll(&cq->md, &e)) {
        return false;
    }
    *wc = (struct bu_wc){
        .wr_id = sg_get_le64(&e.wr_id),
        .qp = sg_get_le32(&e.qpn),
        .byte_len = sg_get_le32(&e.byte_len),
        .vendor_err = sg_get_le32(&e.vendor_err),
        .status = e.status,
        .opcode = e.opcode,
        .flags = e.flags_phase & (uint8_t)~SG_CQE_PHASE,
    };
    qp = find_qp(d, wc->qp);
    if (qp) { /* else it was destroyed meanwhile */
        *(e.flags_phase & SG_CQE_RECV ? &qp->rq_freed : &qp->sq_freed) =
            sg_get_le32(&e.wr_index) + 1;
    }
    return true;
}

/* ---- events ---- */

/* Event queue 1 carries completions of all queues. */
static void take_completion_events(struct ex_driver *d)
{
    struct sg_eqe e;

    while (md_next_event(&d->md, &e)) {
        struct ex_cq *cq = find_cq(d, sg_get_le32(&e.id));

        if (cq) {
            cq->notified = true;
        }
    }
}

static int cq_wait(void *opaque, uint32_t cqn, unsigned ms)
{
    struct ex_driver *d = opaque;
    struct ex_cq *cq = find_cq(d, cqn);
    uint64_t end = ex_limit(d, ms);

    if (ex_lost(d)) {
        return BU_LOST;
    }
    md_arm(&cq->md, false);
    for (;;) {
        take_completion_events(d);
        if (cq->notified) {
            cq->notified = false;
            return BU_OK;
        }
        md_arm_eq(&d->md, 1); /* if one came in between, the vector is raised at once */
        if (!d->m->msix_wait(d->m, EX_VECTOR, ex_left(d, end))) {
            return ex_lost(d) ? BU_LOST : BU_TIMEOUT;
        }
    }
}

static int next_event(void *opaque, struct bu_event *event, unsigned ms)
{
    struct ex_driver *d = opaque;
    uint64_t end = ex_limit(d, ms);
    struct sg_eqe e;

    while (!md_next_async(&d->md, &e)) {
        if (ex_lost(d)) {
            return BU_LOST; /* that raises vector 0, too */
        }
        md_arm_eq(&d->md, 0);
        if (!d->m->msix_wait(d->m, 0, ex_left(d, end))) {
            return ex_lost(d) ? BU_LOST : BU_TIMEOUT;
        }
    }
    *event = (struct bu_event){
        .event = e.event,
        .status = e.cm_status,
        .id = sg_get_le32(&e.id),
        .conn = sg_get_le32(&e.conn),
        .aux = sg_get_le32(&e.aux),
    };
    return BU_OK;
}

/* ---- connections ---- */

static struct sg_sockaddr address(const struct bu_addr *at)
{
    struct sg_sockaddr sa = { .family = 4 };

    sg_put_be16(&sa.port, at->port);
    memcpy(sa.ip, at->ip, 4);
    return sa;
}

static int cm_listen(void *opaque, const struct bu_addr *at, uint32_t backlog, uint32_t *listener)
{
    struct sg_cmd_listen c = { .hdr.opcode = SG_ADMIN_LISTEN, .local = address(at) };

    sg_put_le32(&c.backlog, backlog);
    return ex_make(opaque, &c, sizeof(c), listener);
}

static int unlisten(void *opaque, uint32_t listener)
{
    return ex_command_id(opaque, SG_ADMIN_UNLISTEN, listener);
}

/* CONNECT, ACCEPT or REJECT; the adapter has read the private data when the command completes. */
static int answer(struct ex_driver *d, struct sg_cmd_connect *c, const struct bu_pdata *pdata,
                  uint32_t *conn)
{
    uint64_t bus = 0;
    int result;

    if (pdata && pdata->len) {
        memcpy(ex_memory(d, pdata->len, 8, &bus), pdata->octets, pdata->len);
        sg_put_le64(&c->pdata_addr, bus);
        sg_put_le16(&c->pdata_len, (uint16_t)pdata->len);
    }
    result = ex_make(d, c, sizeof(*c), conn);
    if (bus) {
        ex_free(d, bus);
    }
    return result;
}

static int cm_connect(void *opaque, uint32_t qpn, const struct bu_addr *from,
                      const struct bu_addr *to, const struct bu_pdata *pdata, uint32_t *conn)
{
    struct sg_cmd_connect c = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = address(from),
        .remote = address(to),
    };

    sg_put_le32(&c.qpn, qpn);
    sg_put_le16(&c.ird, 16);
    sg_put_le16(&c.ord, 16);
    return answer(opaque, &c, pdata, conn);
}

static int cm_accept(void *opaque, uint32_t conn, uint32_t qpn, const struct bu_pdata *pdata)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_ACCEPT };

    sg_put_le32(&c.qpn, qpn);
    sg_put_le32(&c.conn, conn);
    sg_put_le16(&c.ird, 16);
    sg_put_le16(&c.ord, 16);
    return answer(opaque, &c, pdata, &conn);
}

static int cm_reject(void *opaque, uint32_t conn, const struct bu_pdata *pdata)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_REJECT };

    sg_put_le32(&c.conn, conn);
    return answer(opaque, &c, pdata, &conn);
}

static int get_pdata(void *opaque, uint32_t conn, struct bu_pdata *pdata)
{
    struct sg_cm_data data;
    int result = ex_query(opaque, SG_ADMIN_CM_DATA, conn, &data, sizeof(data));

    pdata->len = 0;
    if (result == BU_OK) {
        pdata->len = sg_get_le16(&data.pdata_len);
        memcpy(pdata->octets, data.pdata, pdata->len);
    }
    return result;
}

const struct bu_driver bu_driver = {
    .name = "example",
    .size = sizeof(struct ex_driver),
    .start = ex_start,
    .stop = ex_stop,
    .lost = lost,
    .caps = get_caps,
    .guest_errors = guest_errors,
    .set_addr = set_addr,
    .pd_create = pd_create,
    .pd_destroy = pd_destroy,
    .mr_create = mr_create,
    .mr_destroy = mr_destroy,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .qp_create = qp_create,
    .qp_modify = qp_modify,
    .qp_state = qp_state,
    .qp_destroy = qp_destroy,
    .post_send = post_send,
    .post_recv = post_recv,
    .cq_poll = cq_poll,
    .cq_wait = cq_wait,
    .listen = cm_listen,
    .unlisten = unlisten,
    .connect = cm_connect,
    .accept = cm_accept,
    .reject = cm_reject,
    .pdata = get_pdata,
    .next_event = next_event,
};
