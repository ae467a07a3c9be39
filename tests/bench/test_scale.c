/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The promised numbers of connected queue pairs, regions and outstanding requests: each object
 * works, and takes no more memory than documented.  The test only counts; the benchmark
 * (bench_scale.c) measures time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "many.h"
#include "tcp_link.h"
#include "tap.h"

enum {
    FIRST = 64, /* queue pairs before memory is measured: tables have their first size */
    ALL = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE,
};

static struct many m;

/* Guest memory of one side, registered as one region. */
struct area {
    uint64_t addr;
    uint32_t stag;
    uint8_t *octets;
};

static struct area new_area(int side, size_t len)
{
    struct pair_side *s = &m.pair.side[side];
    struct area a = { .addr = test_host_alloc(&s->h, len, SG_PAGE_SIZE) };

    a.stag = md_reg_mr(&s->md, s->pd, a.addr, len, ALL);
    a.octets = test_host_ptr(&s->h, a.addr);
    return a;
}

static void fill(uint8_t *octets, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        sg_put_le64(octets + i, sg_prng(&seed));
    }
}

static void expect_completion(struct md_cq *cq, const struct md_qp *qp, uint8_t opcode,
                              uint64_t wr_id)
{
    struct sg_cqe c;

    T_TRUE(md_poll(cq, &c));
    T_EQ_INT(c.status, SG_WC_SUCCESS);
    T_EQ_INT(c.opcode, opcode);
    T_EQ_INT(sg_get_le32(&c.qpn), qp->qpn);
    T_EQ_U64(sg_get_le64(&c.wr_id), wr_id);
}

/* ---- queue pairs ---- */

/* One write on each queue pair of a side, to a place of its own. */
static void write_on_each(int side, const struct area *from, const struct area *to)
{
    struct pair_side *s = &m.pair.side[side];

    for (unsigned first = 0; first < MANY_QPS; first += MANY_TURN) {
        s->md.hold = true;
        for (unsigned i = first; i < first + MANY_TURN; i++) {
            struct sg_sge sge = many_sge(from->addr + (uint64_t)i * MANY_LEN, from->stag);

            many_put(&m.qp[side][i], SG_WR_WRITE, i, &sge, to->addr + (uint64_t)i * MANY_LEN,
                     to->stag);
            md_sq_doorbell(&m.qp[side][i]);
        }
        s->md.hold = false;
        pair_settle(&m.pair);
        for (unsigned i = first; i < first + MANY_TURN; i++) {
            T_CONTEXT("side %d, queue pair %u", side, i);
            expect_completion(&s->cq, &m.qp[side][i], SG_WC_WRITE, i);
        }
    }
    T_CONTEXT("data of side %d", side);
    T_EQ_MEM(to->octets, from->octets, (size_t)MANY_QPS * MANY_LEN);
}

static void connected_at_once(bool tcp)
{
    size_t len = (size_t)MANY_QPS * MANY_LEN;
    struct area from[2], to[2];
    double before, each, promised = tcp ? MANY_TCP_QP_OCTETS : MANY_QP_OCTETS;

    (tcp ? many_start_tcp : many_start)(&m, MANY_QPS, 2 * len);
    for (int side = 0; side < 2; side++) {
        from[side] = new_area(side, len);
        to[side] = new_area(side, len);
        fill(from[side].octets, len, 1 + side);
    }
    many_connect(&m, FIRST);
    before = many_allocated();
    many_connect(&m, MANY_QPS);
    each = (many_allocated() - before) / (MANY_QPS - FIRST) / 2;
    each -= tcp ? MANY_TCP_RING : 0;
    write_on_each(0, &from[0], &to[1]);
    write_on_each(1, &from[1], &to[0]);
    for (int side = 0; side < 2; side++) {
        for (unsigned i = 0; i < MANY_QPS; i++) {
            T_CONTEXT("side %d, queue pair %u", side, i);
            T_EQ_INT(md_qp_state(&m.qp[side][i]), SG_QP_RTS);
        }
    }
    T_NOTE("a connected queue pair: %.0f octets", each);
    T_CONTEXT("octets of a queue pair, of which %.0f are promised", promised);
    T_TRUE(each > 0 && each <= promised);
    many_stop(&m);
}

static void queue_pairs__connected_at_once(void)
{
    connected_at_once(false);
}

static void queue_pairs__connected_over_tcp(void)
{
    connected_at_once(true);
}

static uint64_t visits(void)
{
    struct sg_port_counters c[2];

    for (int side = 0; side < 2; side++) {
        sg_port_counters(tcp_link_port(m.pair.link, side), &c[side]);
    }
    return c[0].visits + c[1].visits;
}

/* Connections that TCP examines for one write, from doorbell to a second after completion. */
static uint64_t visits_for_a_write(unsigned connected)
{
    struct pair_side *s = &m.pair.side[0];
    struct sg_sge sge = many_sge(s->buf, s->stag);
    uint64_t before;

    many_connect(&m, connected);
    pair_pass(&m.pair, 1000000000); /* they become idle */
    before = visits();
    many_put(&m.qp[0][0], SG_WR_WRITE, 7, &sge, m.pair.side[1].buf, m.pair.side[1].stag);
    md_sq_doorbell(&m.qp[0][0]);
    pair_settle(&m.pair);
    expect_completion(&s->cq, &m.qp[0][0], SG_WC_WRITE, 7);
    pair_pass(&m.pair, 1000000000);
    return visits() - before;
}

static void queue_pairs__idle_over_tcp(void)
{
    uint64_t one;

    many_start_tcp(&m, 2048, 0);
    one = visits_for_a_write(1);
    T_TRUE(one > 0);
    T_EQ_U64(visits_for_a_write(2048), one);
    many_stop(&m);
}

/* ---- regions ---- */

/* One write through each region, all of which are at different places. */
static void write_through_each(const uint32_t *stag, const struct area *from, uint64_t to)
{
    struct pair_side *s = &m.pair.side[0];

    for (unsigned first = 0; first < MANY_MRS; first += MANY_ENTRIES) {
        s->md.hold = true;
        for (unsigned i = first; i < first + MANY_ENTRIES; i++) {
            struct sg_sge sge = many_sge(from->addr + (uint64_t)i * MANY_LEN, from->stag);

            many_put(&m.qp[0][0], SG_WR_WRITE, i, &sge, to + (uint64_t)i * MANY_LEN, stag[i]);
        }
        md_sq_doorbell(&m.qp[0][0]);
        s->md.hold = false;
        pair_settle(&m.pair);
        for (unsigned i = first; i < first + MANY_ENTRIES; i++) {
            T_CONTEXT("region %u", i);
            expect_completion(&s->cq, &m.qp[0][0], SG_WC_WRITE, i);
        }
    }
}

static void regions__registered_at_once(void)
{
    size_t len = (size_t)MANY_MRS * MANY_LEN;
    uint32_t *stag = calloc(MANY_MRS, sizeof(*stag));
    struct pair_side *s = &m.pair.side[1];
    struct area from;
    double before, each;
    uint64_t to;

    many_start(&m, 1, len);
    many_connect(&m, 1);
    from = new_area(0, len);
    fill(from.octets, len, 3);
    to = test_host_alloc(&s->h, len, SG_PAGE_SIZE);
    before = many_allocated();
    for (unsigned i = 0; i < MANY_MRS; i++) {
        stag[i] = md_reg_mr(&s->md, s->pd, to + (uint64_t)i * MANY_LEN, MANY_LEN, ALL);
    }
    each = (many_allocated() - before) / MANY_MRS;
    write_through_each(stag, &from, to);
    T_CONTEXT("data");
    T_EQ_MEM(test_host_ptr(&s->h, to), from.octets, len);
    for (unsigned i = 0; i < MANY_MRS; i++) {
        T_CONTEXT("region %u", i);
        T_EQ_INT(md_cmd_id(&s->md, SG_ADMIN_DEREG_MR, stag[i]), SG_OK);
    }
    T_NOTE("a region: %.0f octets", each);
    T_CONTEXT("octets of a region, of which %d are promised", MANY_MR_OCTETS);
    T_TRUE(each > 0 && each <= MANY_MR_OCTETS);
    many_stop(&m);
    free(stag);
}

/* ---- depth ---- */

static void requests__outstanding(void)
{
    struct pair_side *s = &m.pair.side[0], *peer = &m.pair.side[1];
    struct md_qp qp[2];
    struct md_cq cq[2];
    struct sg_cqe c;

    _Static_assert(MANY_DEPTH * MANY_LEN <= PAIR_BUF, "a place for each");
    many_start(&m, 1, 0);
    many_deep(&m, qp, cq);
    fill(pair_buf(&m.pair, 1), PAIR_BUF, 4);
    for (unsigned i = 0; i < MANY_DEPTH; i++) {
        struct sg_sge sink = many_sge(s->buf + (uint64_t)i * MANY_LEN, s->stag);

        many_put(&qp[0], SG_WR_READ, i, &sink, peer->buf + (uint64_t)i * MANY_LEN, peer->stag);
    }
    md_sq_doorbell(&qp[0]); /* only this side runs */
    T_FALSE(md_poll(&cq[0], &c));
    pair_settle(&m.pair);
    for (unsigned i = 0; i < MANY_DEPTH; i++) {
        T_CONTEXT("Read %u", i);
        expect_completion(&cq[0], &qp[0], SG_WC_READ, i);
    }
    T_EQ_MEM(pair_buf(&m.pair, 0), pair_buf(&m.pair, 1), MANY_DEPTH * MANY_LEN);
    many_stop(&m);
}

static void receives__outstanding(void)
{
    struct pair_side *s = &m.pair.side[0], *peer = &m.pair.side[1];
    struct md_qp qp[2];
    struct md_cq cq[2];

    many_start(&m, 1, 0);
    many_deep(&m, qp, cq);
    fill(pair_buf(&m.pair, 0), PAIR_BUF, 5);
    for (unsigned i = 0; i < MANY_DEPTH; i++) {
        md_post_recv(&qp[1], i, peer->buf + (uint64_t)i * MANY_LEN, MANY_LEN, peer->stag);
    }
    for (unsigned i = 0; i < MANY_DEPTH; i++) {
        struct sg_sge source = many_sge(s->buf + (uint64_t)i * MANY_LEN, s->stag);

        many_put(&qp[0], SG_WR_SEND, i, &source, 0, 0);
    }
    md_sq_doorbell(&qp[0]);
    pair_settle(&m.pair);
    for (unsigned i = 0; i < MANY_DEPTH; i++) {
        T_CONTEXT("Send %u", i);
        expect_completion(&cq[0], &qp[0], SG_WC_SEND, i);
        expect_completion(&cq[1], &qp[1], SG_WC_RECV, i);
    }
    T_EQ_MEM(pair_buf(&m.pair, 1), pair_buf(&m.pair, 0), MANY_DEPTH * MANY_LEN);
    many_stop(&m);
}

static const struct t_case cases[] = {
    { "16,384 queue pairs connected at once: data on each, both ways, and memory",
      queue_pairs__connected_at_once },
    { "16,384 queue pairs connected over TCP: data on each, both ways, and memory",
      queue_pairs__connected_over_tcp },
    { "2,048 queue pairs idle over TCP: a write makes as much work as with none",
      queue_pairs__idle_over_tcp },
    { "262,144 regions at once: data through each, and memory", regions__registered_at_once },
    { "4,096 requests outstanding on a queue pair", requests__outstanding },
    { "4,096 receives outstanding on a queue pair", receives__outstanding },
};

T_MAIN(cases)
