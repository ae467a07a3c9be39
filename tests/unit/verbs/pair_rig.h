/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two connected adapters and helpers for the tests that use them: post, recv, expect.
 */
#ifndef SG_TESTS_VERBS_PAIR_RIG_H
#define SG_TESTS_VERBS_PAIR_RIG_H

#include "pair.h"
#include "tap.h"

static struct pair pair;

static T_UNUSED void begin(const struct md_qp_params *params)
{
    pair_start(&pair, NULL, NULL);
    pair_open(&pair, params);
    pair_connect(&pair);
}

static T_UNUSED void reconnect_slow(void)
{
    enum sg_status status;
    struct sg_eqe e;

    pair.side[0].conn = pair_connect_cmd(&pair, &pair.side[0].qp, 4, 4, NULL, &status);
    pair_pass(&pair, 100000000);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(
        pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, sg_get_le32(&e.conn), 4, 4, NULL),
        SG_OK);
    pair_pass(&pair, 100000000);
    pair_expect(&pair, 0, SG_EV_CM_REPLY);
}

/* Octets arrive after a millisecond, so pair_pass() is needed; flags: SG_CONNECT_*. */
static T_UNUSED void begin_slow(uint16_t flags)
{
    const struct sg_mem_options slow = {
        .queued = true,
        .seed = 3,
        .room = 70000,
        .emss = 9000,
        .delay_min_ns = 1000000,
        .delay_max_ns = 1000000,
    };

    pair_start(&pair, NULL, &slow);
    pair.connect_flags = flags;
    pair_open(&pair, NULL);
    reconnect_slow();
}

static T_UNUSED void end(void)
{
    struct sg_adapter_census c;
    int i;

    pair_close(&pair);
    for (i = 0; i < 2; i++) {
        sg_adapter_census(pair.side[i].md.a, &c);
        T_EQ_U64(c.qps, 0);
        T_EQ_U64(c.conns, 0);
        T_EQ_INT(pair.side[i].h.mapped, 0);
    }
    pair_stop(&pair);
}

static T_UNUSED struct sg_cqe expect(int side, uint64_t wr_id, enum sg_wc_status status)
{
    struct sg_cqe c;

    pair_settle(&pair);
    T_TRUE(md_poll(&pair.side[side].cq, &c));
    T_EQ_U64(sg_get_le64(&c.wr_id), wr_id);
    T_EQ_U64(c.status, status);
    T_EQ_U64(sg_get_le32(&c.qpn), pair.side[side].qp.qpn);
    return c;
}

/* A request of ours that the peer refused; 'term': layer, type and code of its Terminate. */
static T_UNUSED void expect_no_access(int side, uint64_t wr_id, uint32_t term)
{
    struct sg_cqe c = expect(side, wr_id, pair_wire()->refused);

    T_EQ_U64(sg_get_le32(&c.vendor_err), pair_wire()->terminates ? term : 0);
}

static T_UNUSED void expect_none(int side)
{
    struct sg_cqe c;

    pair_settle(&pair);
    T_FALSE(md_poll(&pair.side[side].cq, &c));
}

static T_UNUSED void fill(int side, uint32_t off, uint32_t len, uint8_t seed)
{
    uint8_t *p = pair_buf(&pair, side) + off;
    uint32_t i;

    for (i = 0; i < len; i++) {
        p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
    }
}

static T_UNUSED struct md_wr wr(int side, uint8_t opcode, uint64_t id, uint32_t off, uint32_t len,
                                uint32_t roff)
{
    return (struct md_wr){
        .opcode = opcode,
        .wr_id = id,
        .addr = pair.side[side].buf + off,
        .len = len,
        .lkey = pair.side[side].stag,
        .raddr = pair.side[!side].buf + roff,
        .rkey = pair.side[!side].stag,
    };
}

static T_UNUSED void post(int side, struct md_wr w)
{
    md_post_send(&pair.side[side].qp, &w);
}

static T_UNUSED void recv(int side, uint64_t id, uint32_t off, uint32_t len)
{
    md_post_recv(&pair.side[side].qp, id, pair.side[side].buf + off, len, pair.side[side].stag);
}

#endif
