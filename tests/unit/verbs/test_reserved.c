/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule for reserved fields of docs/manual/driver.md: the adapter ignores them, but for those
 * few that the manual names; and undefined bits are refused.
 */
#include "pair_rig.h"

#define DIRTY(field) memset(&(field), 0xff, sizeof(field))

/* Posts a command with all reserved octets of its header, and all octets behind it, set. */
static enum sg_status dirty(const void *cmd, size_t len, struct sg_admin_rsp *rsp)
{
    uint8_t slot[SG_ADMIN_CMD_SIZE];
    struct sg_admin_hdr *hdr = (void *)slot;
    struct sg_admin_rsp own;

    memset(slot, 0xff, sizeof(slot));
    memcpy(slot, cmd, len);
    DIRTY(hdr->reserved_8);
    DIRTY(hdr->reserved_32);
    return md_cmd(&pair.side[0].md, slot, sizeof(slot), rsp ? rsp : &own);
}

static void destroy(enum sg_admin_opcode op, const struct sg_admin_rsp *rsp)
{
    struct sg_cmd_id c = { .hdr.opcode = (uint8_t)op, .id = rsp->id };

    T_EQ_U64(dirty(&c, sizeof(c), NULL), SG_OK);
}

static void of_ports_and_event_queues(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_cmd_set_addr addr = { .hdr.opcode = SG_ADMIN_SET_ADDR, .op = SG_ADDR_ADD };
    struct sg_cmd_set_port port = { .hdr.opcode = SG_ADMIN_SET_PORT };
    struct sg_cmd_create_eq eq = { .hdr.opcode = SG_ADMIN_CREATE_EQ };
    struct sg_cmd_listen listen = { .hdr.opcode = SG_ADMIN_LISTEN };
    struct sg_admin_rsp rsp;

    begin(NULL);
    addr.addr = md_addr(&s->at, 0);
    DIRTY(addr.addr.reserved_176);
    DIRTY(addr.reserved_288);
    T_EQ_U64(dirty(&addr, sizeof(addr), NULL), SG_OK);

    sg_put_le32(&port.mtu, 1500);
    DIRTY(port.reserved);
    T_EQ_U64(dirty(&port, sizeof(port), NULL), SG_OK);

    sg_put_le64(&eq.base, md_new_ring(&s->md, 64, sizeof(struct sg_eqe)).base);
    sg_put_le32(&eq.entries, 64);
    sg_put_le32(&eq.eqn, 2);
    DIRTY(eq.reserved_224);
    T_EQ_U64(dirty(&eq, sizeof(eq), &rsp), SG_OK);
    destroy(SG_ADMIN_DESTROY_EQ, &rsp);

    listen.local = md_addr(&s->at, 99);
    DIRTY(listen.local.reserved_176);
    sg_put_le32(&listen.backlog, 1);
    DIRTY(listen.reserved_288);
    T_EQ_U64(dirty(&listen, sizeof(listen), &rsp), SG_OK);
    destroy(SG_ADMIN_UNLISTEN, &rsp);
    end();
}

static void of_memory(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_admin_hdr pd = { .opcode = SG_ADMIN_CREATE_PD };
    struct sg_cmd_alloc_mr fast = { .hdr.opcode = SG_ADMIN_ALLOC_MR };
    struct sg_cmd_alloc_mw mw = { .hdr.opcode = SG_ADMIN_ALLOC_MW, .type = SG_MW_TYPE_1 };
    struct sg_cmd_reg_mr mr;
    struct sg_admin_rsp rsp;

    begin(NULL);
    T_EQ_U64(dirty(&pd, sizeof(pd), &rsp), SG_OK);
    destroy(SG_ADMIN_DESTROY_PD, &rsp);

    mr = md_reg_mr_cmd(s->pd, s->buf, 4096, SG_ACCESS_LOCAL_WRITE);
    DIRTY(mr.pages.reserved_112);
    DIRTY(mr.reserved_432);
    DIRTY(mr.hash_key); /* not used without a hash */
    T_EQ_U64(dirty(&mr, sizeof(mr), &rsp), SG_OK);
    destroy(SG_ADMIN_DEREG_MR, &rsp);
    mr.flags = 0x80;
    T_EQ_U64(dirty(&mr, sizeof(mr), NULL), SG_EINVAL);
    mr.flags = 0;
    sg_put_le32(&mr.access, 0x8000);
    T_EQ_U64(dirty(&mr, sizeof(mr), NULL), SG_EINVAL);

    sg_put_le32(&fast.pd, s->pd);
    sg_put_le32(&fast.max_pages, 1);
    DIRTY(fast.reserved_136);
    T_EQ_U64(dirty(&fast, sizeof(fast), &rsp), SG_OK);
    destroy(SG_ADMIN_DEREG_MR, &rsp);

    sg_put_le32(&mw.pd, s->pd);
    DIRTY(mw.reserved_112);
    T_EQ_U64(dirty(&mw, sizeof(mw), &rsp), SG_OK);
    destroy(SG_ADMIN_DEALLOC_MW, &rsp);
    end();
}

static void of_queues(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_cmd_modify_qp modify = { .hdr.opcode = SG_ADMIN_MODIFY_QP };
    struct md_qp_params params = { 0 };
    struct sg_cmd_create_cq cq;
    struct sg_cmd_create_srq srq;
    struct sg_cmd_create_qp qp;
    struct sg_admin_rsp rsp, srq_rsp;

    begin(NULL);
    cq = md_create_cq_cmd(&s->md, 4);
    DIRTY(cq.reserved_160);
    DIRTY(cq.pages.reserved_112);
    T_EQ_U64(dirty(&cq, sizeof(cq), &rsp), SG_OK);
    destroy(SG_ADMIN_DESTROY_CQ, &rsp);

    srq = md_create_srq_cmd(&s->md, s->pd, 4);
    DIRTY(srq.reserved_184);
    DIRTY(srq.reserved_224);
    DIRTY(srq.pages.reserved_112);
    T_EQ_U64(dirty(&srq, sizeof(srq), &srq_rsp), SG_OK);

    params.pd = s->pd;
    params.scq = params.rcq = &s->cq;
    qp = md_create_qp_cmd(&s->md, &params);
    DIRTY(qp.reserved_640);
    DIRTY(qp.sq_pages.reserved_112);
    DIRTY(qp.rq_pages.reserved_112);
    T_EQ_U64(dirty(&qp, sizeof(qp), &rsp), SG_OK);
    modify.qpn = rsp.id;
    sg_put_le32(&modify.mask, SG_QP_MOD_ACCESS);
    DIRTY(modify.reserved_208);
    DIRTY(modify.state); /* not named by the mask */
    T_EQ_U64(dirty(&modify, sizeof(modify), NULL), SG_OK);
    sg_put_le32(&modify.mask, 0x40);
    T_EQ_U64(dirty(&modify, sizeof(modify), NULL), SG_EINVAL);
    destroy(SG_ADMIN_DESTROY_QP, &rsp);
    sg_put_le32(&qp.flags, 0x80);
    T_EQ_U64(dirty(&qp, sizeof(qp), NULL), SG_EINVAL);

    /* The first exception: with a shared receive queue there is no list at all. */
    sg_put_le32(&qp.flags, SG_QP_SRQ);
    qp.srqn = srq_rsp.id;
    qp.rq_entries = 0;
    qp.rq_stride = 0;
    qp.rq_max_sge = 0;
    memset(&qp.rq_pages, 0, sizeof(qp.rq_pages));
    DIRTY(qp.rq_pages.reserved_112);
    T_EQ_U64(dirty(&qp, sizeof(qp), NULL), SG_EINVAL);
    memset(&qp.rq_pages, 0, sizeof(qp.rq_pages));
    T_EQ_U64(dirty(&qp, sizeof(qp), &rsp), SG_OK);
    destroy(SG_ADMIN_DESTROY_QP, &rsp);
    destroy(SG_ADMIN_DESTROY_SRQ, &srq_rsp);
    end();
}

/* An entry at side 0, signaled, with the reserved fields set that are ignored. */
static struct sg_wqe_hdr *entry(uint8_t opcode)
{
    struct sg_wqe_hdr *h = md_sq_entry(&pair.side[0].qp);

    sg_put_le64(&h->wr_id, opcode);
    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    DIRTY(h->reserved_112);
    DIRTY(h->reserved_288);
    return h;
}

static void finish(uint8_t opcode, enum sg_wc_status status)
{
    md_sq_doorbell(&pair.side[0].qp);
    expect(0, opcode, status);
}

/* What the opcode does not use is ignored, too. */
static void of_work_requests(void)
{
    struct pair_side *s = &pair.side[1];
    struct sg_wqe_place *place;
    struct sg_wqe_hdr *h;
    struct sg_rqe_hdr *r;

    begin(&(struct md_qp_params){ .access = SG_ACCESS_FLUSH_GLOBAL });
    h = entry(SG_WR_WRITE);
    DIRTY(h->imm);
    DIRTY(h->inv_stag);
    DIRTY(h->inline_len);
    h->flags |= SG_WQE_SOLICITED;
    finish(SG_WR_WRITE, SG_WC_SUCCESS);

    h = entry(SG_WR_FLUSH);
    place = (struct sg_wqe_place *)(void *)(h + 1);
    sg_put_le32(&place->flags, SG_FLUSH_GLOBAL);
    DIRTY(place->reserved);
    sg_put_le32(&h->rkey, md_reg_mr(&s->md, s->pd, s->buf, 64, SG_ACCESS_FLUSH_GLOBAL));
    sg_put_le64(&h->remote_addr, s->buf);
    finish(SG_WR_FLUSH, SG_WC_SUCCESS);

    r = md_rq_entry(&s->qp);
    DIRTY(r->reserved);
    md_rq_doorbell(&s->qp);
    entry(SG_WR_SEND);
    finish(SG_WR_SEND, SG_WC_SUCCESS);
    expect(1, 0, SG_WC_SUCCESS);
    end();
}

static void refused_header(void)
{
    begin(NULL);
    entry(SG_WR_WRITE)->reserved_88 = 1;
    finish(SG_WR_WRITE, SG_WC_LOC_QP_OP_ERR);
    end();
}

static void refused_flags(void)
{
    begin(NULL);
    entry(SG_WR_WRITE)->flags |= 0x10;
    finish(SG_WR_WRITE, SG_WC_LOC_QP_OP_ERR);
    end();
}

static void refused_bind(void)
{
    struct sg_wqe_bind *bind;

    begin(NULL);
    bind = (struct sg_wqe_bind *)(void *)(entry(SG_WR_BIND_MW) + 1);
    sg_put_le32(&bind->reserved_96, 1);
    finish(SG_WR_BIND_MW, SG_WC_LOC_QP_OP_ERR);
    end();
}

static const struct t_case cases[] = {
    { "commands of ports and event queues ignore reserved fields", of_ports_and_event_queues },
    { "commands of memory do", of_memory },
    { "commands of queues do, but one", of_queues },
    { "work requests and receives do", of_work_requests },
    { "one reserved octet of the header is refused", refused_header },
    { "undefined flags of an entry are refused", refused_flags },
    { "a reserved field of BIND_MW is refused", refused_bind },
};

T_MAIN(cases)
