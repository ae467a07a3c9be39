/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two adapters with LINKS connections between them, whose queue pairs on side 1 share one receive
 * queue.
 */
#ifndef SG_TESTS_VERBS_SRQ_RIG_H
#define SG_TESTS_VERBS_SRQ_RIG_H

#include "pair_rig.h"
#include "verbs/state/adapter_state.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"

enum { LINKS = 3, ENTRIES = 8 };

struct joint {
    struct md_qp qp[2];
};

static struct joint joints[LINKS];
static struct md_srq srq;

static T_UNUSED void join(struct joint *t)
{
    enum sg_status status;
    struct sg_eqe e;

    pair_connect_cmd(&pair, &t->qp[0], 4, 4, NULL, &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, t->qp[1].qpn, sg_get_le32(&e.conn), 4, 4, NULL),
             SG_OK);
    pair_expect(&pair, 0, SG_EV_CM_REPLY);
    pair_expect(&pair, 1, SG_EV_CM_ESTABLISHED);
}

static T_UNUSED void begin_shared(void)
{
    int n, i;

    pair_start(&pair, NULL, NULL);
    md_create_srq(&pair.side[1].md, &srq, pair.side[1].pd, ENTRIES);
    for (n = 0; n < LINKS; n++) {
        for (i = 0; i < 2; i++) {
            struct pair_side *s = &pair.side[i];

            md_create_qp(&s->md, &joints[n].qp[i],
                         &(struct md_qp_params){
                             .pd = s->pd,
                             .scq = &s->cq,
                             .rcq = &s->cq,
                             .srq = i ? &srq : NULL,
                         });
        }
        join(&joints[n]);
    }
}

static T_UNUSED void end_shared(void)
{
    struct sg_adapter_census c;
    int n, i;

    for (n = 0; n < LINKS; n++) {
        for (i = 0; i < 2; i++) {
            md_cmd_id(&pair.side[i].md, SG_ADMIN_DESTROY_QP, joints[n].qp[i].qpn);
        }
    }
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_SRQ, srq.srqn), SG_OK);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_SRQ, srq.srqn), SG_ENOENT);
    sg_adapter_census(pair.side[1].md.a, &c);
    T_EQ_U64(c.srqs, 0);
    pair_pass(&pair, 10000000000ull);
    pair_stop(&pair);
}

static T_UNUSED void supply(uint64_t id, uint32_t len)
{
    md_post_srq(&srq, id, pair.side[1].buf + 4096 * (id % 32), len, pair.side[1].stag);
}

static T_UNUSED void send_on(int n, uint64_t id, uint32_t len)
{
    struct md_wr w = wr(0, SG_WR_SEND, id, 4096 * (uint32_t)(id % 32), len, 0);

    md_post_send(&joints[n].qp[0], &w);
    pair_settle(&pair);
}

static T_UNUSED struct sg_cqe got(int side, int n, uint64_t id, enum sg_wc_status status)
{
    struct sg_cqe c;

    pair_settle(&pair);
    T_TRUE(md_poll(&pair.side[side].cq, &c));
    T_EQ_U64(sg_get_le64(&c.wr_id), id);
    T_EQ_U64(c.status, status);
    T_EQ_U64(sg_get_le32(&c.qpn), joints[n].qp[side].qpn);
    return c;
}

static T_UNUSED struct sg_admin_rsp query(void)
{
    struct sg_cmd_id c = { .hdr.opcode = SG_ADMIN_QUERY_SRQ };
    struct sg_admin_rsp rsp;

    sg_put_le32(&c.id, srq.srqn);
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp), SG_OK);
    return rsp;
}

static T_UNUSED enum sg_status set_limit(uint32_t limit)
{
    struct sg_cmd_modify_srq c = { .hdr.opcode = SG_ADMIN_MODIFY_SRQ };

    sg_put_le32(&c.srqn, srq.srqn);
    sg_put_le32(&c.limit, limit);
    return md_cmd(&pair.side[1].md, &c, sizeof(c), NULL);
}

static T_UNUSED bool no_event(int side)
{
    struct sg_eqe e;

    pair_settle(&pair);
    return !md_next_async(&pair.side[side].md, &e);
}

/* Only the first segment of a message arrives by connection n. */
static T_UNUSED void begin_message(int n)
{
    struct sg_adapter *a = pair.side[1].md.a;
    struct sg_qp *qp = sg_idtab_get(&a->qps, joints[n].qp[1].qpn);
    uint8_t octets[100];

    memset(octets, 0xa0 + n, sizeof(octets));
    T_EQ_U64(sg_rq_place(qp, 1, 0, octets, sizeof(octets)), SG_RECV_OK);
}

#endif
