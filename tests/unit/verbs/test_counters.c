/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Diagnosis: counters of queue pairs and regions, faults, recovery. */
#include "pair_rig.h"
#include "rig.h"

static enum sg_status query(int side, enum sg_admin_opcode op, uint32_t id, void *out, size_t len)
{
    struct sg_cmd_query c = { .hdr.opcode = (uint8_t)op };
    uint64_t at = test_host_alloc(&pair.side[side].h, 256, 64);
    enum sg_status status;

    sg_put_le64(&c.out_addr, at);
    sg_put_le32(&c.out_len, (uint32_t)len);
    sg_put_le32(&c.id, id);
    status = md_cmd(&pair.side[side].md, &c, sizeof(c), NULL);
    memcpy(out, test_host_ptr(&pair.side[side].h, at), len);
    return status;
}

static struct sg_qp_stats qp_stats(int side)
{
    struct sg_qp_stats s;

    T_EQ_U64(query(side, SG_ADMIN_QUERY_QP_STATS, pair.side[side].qp.qpn, &s, sizeof(s)), SG_OK);
    return s;
}

static struct sg_mr_stats mr_stats(int side, uint32_t stag)
{
    struct sg_mr_stats s;

    T_EQ_U64(query(side, SG_ADMIN_QUERY_MR_STATS, stag, &s, sizeof(s)), SG_OK);
    return s;
}

#define COUNT(s, field) sg_get_le64(&(s).field)

static void counting(void)
{
    const uint32_t rights = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ;
    struct pair_side *s1 = &pair.side[1];
    struct sg_qp_stats q;
    struct sg_mr_stats m;
    uint32_t read_only;
    struct md_wr w;

    begin(NULL);
    read_only = md_reg_mr(&s1->md, s1->pd, s1->buf, 4096, rights);
    recv(1, 1, 0, 1000);
    post(0, wr(0, SG_WR_SEND, 2, 0, 1000, 0));
    post(0, wr(0, SG_WR_WRITE, 3, 0, 100000, 0));
    post(0, wr(0, SG_WR_READ, 4, 0, 5000, 0));
    pair_settle(&pair);
    q = qp_stats(0);
    T_EQ_U64(COUNT(q, tx_octets), 101000);
    T_EQ_U64(COUNT(q, rx_octets), 5000);
    T_EQ_U64(COUNT(q, tx_requests), 3);
    T_EQ_U64(COUNT(q, rx_requests), 0);
    T_EQ_U64(COUNT(q, completions), 3);
    T_EQ_U64(COUNT(q, errors), 0);
    q = qp_stats(1);
    T_EQ_U64(COUNT(q, tx_octets), 5000);
    T_EQ_U64(COUNT(q, rx_octets), 101000);
    T_EQ_U64(COUNT(q, tx_requests), 0);
    T_SHOWS("SEC-18") {
        T_EQ_U64(COUNT(q, rx_requests), 3);
    }
    T_EQ_U64(COUNT(q, completions), 1);
    m = mr_stats(1, s1->stag);
    T_EQ_U64(COUNT(m, remote_writes), 1);
    T_EQ_U64(COUNT(m, remote_reads), 1);
    T_EQ_U64(COUNT(m, remote_atomics), 0);
    T_EQ_U64(COUNT(m, refused), 0);
    m = mr_stats(1, read_only);
    T_EQ_U64(COUNT(m, remote_reads), 0);
    w = wr(0, SG_WR_WRITE, 5, 0, 64, 0);
    w.rkey = read_only;
    post(0, w);
    w.opcode = SG_WR_READ;
    post(0, w); /* not executed: the Write ends the stream */
    pair_settle(&pair);
    m = mr_stats(1, read_only);
    T_EQ_U64(COUNT(m, refused), 1);
    T_EQ_U64(COUNT(m, remote_writes), 0);
    q = qp_stats(0);
    T_EQ_U64(COUNT(q, completions), 5);
    T_EQ_U64(COUNT(q, errors), 1);
    end();
}

static void queries(void)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_QP_STATS };
    uint8_t out[64];

    begin(NULL);
    T_EQ_U64(query(0, SG_ADMIN_QUERY_QP_STATS, 0, out, 48), SG_ENOENT);
    T_EQ_U64(query(0, SG_ADMIN_QUERY_QP_STATS, UINT32_MAX, out, 48), SG_ENOENT);
    T_EQ_U64(query(0, SG_ADMIN_QUERY_MR_STATS, 0, out, 40), SG_ENOENT);
    T_EQ_U64(query(0, SG_ADMIN_QUERY_MR_STATS, pair.side[0].stag ^ 1, out, 40), SG_ENOENT);
    sg_put_le32(&c.id, pair.side[0].qp.qpn);
    T_EQ_U64(md_cmd(&pair.side[0].md, &c, sizeof(c), NULL), SG_EINVAL); /* no room */
    sg_put_le32(&c.out_len, 48);
    sg_put_le64(&c.out_addr, ~0ull);
    T_EQ_U64(md_cmd(&pair.side[0].md, &c, sizeof(c), NULL), SG_EFAULT);
    end();
}

/* A fault of a running adapter: event, status, no more writes; after a reset it works again. */
static void fault_and_recovery(void)
{
    struct pair_side *s = &pair.side[1];
    struct sg_cqe c;
    struct sg_eqe e;

    begin(NULL);
    recv(1, 1, 0, 64);
    sg_adapter_break(s->md.a);
    T_TRUE(md_next_async(&s->md, &e));
    T_EQ_U64(e.event, SG_EV_DEVICE_FATAL);
    T_TRUE(md_read(&s->md, SG_REG_STATUS) & SG_STATUS_FATAL);
    T_EQ_U64(md_read(&s->md, SG_REG_FATAL), SG_FATAL_INJECTED);
    pair_settle(&pair);
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    pair_settle(&pair);
    T_FALSE(md_poll(&s->cq, &c)); /* it writes nothing any more */
    pair_pass(&pair, 10000000000ull);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR); /* the peer saw a reset */
    sg_adapter_break(s->md.a);
    T_FALSE(md_next_async(&s->md, &e)); /* only one event */
    md_write(&s->md, SG_REG_CTRL, SG_CTRL_RESET);
    T_EQ_U64(md_read(&s->md, SG_REG_FATAL), SG_FATAL_NONE);
    sg_adapter_break(s->md.a); /* not enabled: no effect */
    T_EQ_U64(md_read(&s->md, SG_REG_STATUS) & SG_STATUS_FATAL, 0);
    md_enable(&s->md);
    s->pd = md_create_pd(&s->md);
    md_create_cq(&s->md, &s->cq, 16);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, pair.side[0].qp.qpn), SG_OK);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "queue pairs and regions count", counting },
    { "queries of nothing", queries },
    { "an injected fault, and recovery", fault_and_recovery },
};

T_MAIN(cases)
