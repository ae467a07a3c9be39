/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two adapters on RDMA/TCP of 2000: what they offer, what they refuse, and that data arrive. */
#include "pair_rig.h"
#include "tcp_link.h"
#include "verbs/state/adapter_state.h"

static struct sg_adapter_config wire_config(void)
{
    struct sg_adapter_config c;

    sg_adapter_default_config(&c);
    c.engine.wire = SG_ENGINE_RDMA_TCP_2000;
    return c;
}

static void begin_2000(bool tcp)
{
    const struct sg_adapter_config c = wire_config();

    if (tcp) {
        pair_start_on(&pair, &c, tcp_link_new(NULL), PAIR_MEM);
    } else {
        pair_start(&pair, &c, NULL);
    }
    pair_open(&pair, NULL);
    pair_connect(&pair);
}

static void exchange(void)
{
    unsigned i;

    for (i = 0; i < 20; i++) {
        uint32_t len = i * i * 300;
        struct sg_cqe c;

        T_CONTEXT("%u octets", len);
        fill(0, 0, len, (uint8_t)i);
        recv(1, 100 + i, 0, 131072);
        post(0, wr(0, SG_WR_SEND, 1, 0, len, 0));
        pair_pass(&pair, 1000000000);
        expect(0, 1, SG_WC_SUCCESS);
        c = expect(1, 100 + i, SG_WC_SUCCESS);
        T_EQ_U64(sg_get_le32(&c.byte_len), len);
        T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), len);
        fill(0, 0, len, (uint8_t)(i + 50));
        post(0, wr(0, SG_WR_WRITE, 2, 0, len, 3));
        post(0, wr(0, SG_WR_READ, 3, 131072, len, 3)); /* sees the Write */
        pair_pass(&pair, 1000000000);
        expect(0, 2, SG_WC_SUCCESS);
        expect(0, 3, SG_WC_SUCCESS);
        T_EQ_MEM(pair_buf(&pair, 1) + 3, pair_buf(&pair, 0), len);
        T_EQ_MEM(pair_buf(&pair, 0) + 131072, pair_buf(&pair, 0), len);
    }
}

static bool lose_some(void *opaque, int from, const uint8_t *frame, size_t len)
{
    unsigned *n = opaque;

    (void)from;
    (void)frame;
    return len > 1000 && ++*n % 23 == 0;
}

static void data_over_lossy_tcp(void)
{
    const struct sg_adapter_config c = wire_config();
    unsigned n = 0;
    struct tcp_link_options options = { .delay_ns = 50000, .lose = lose_some, .opaque = &n };

    pair_start_on(&pair, &c, tcp_link_new(&options), PAIR_MEM);
    pair_open(&pair, NULL);
    pair_connect(&pair);
    exchange();
    T_SHOWS("WIL-22 WIL-11") {
        T_TRUE(sg_engine_stats(pair.side[0].md.a->engine)->rx_early > 20);
        T_TRUE(sg_engine_stats(pair.side[1].md.a->engine)->rx_early > 20);
    }
    pair_close(&pair);
    pair_stop(&pair);
}

static void data(void)
{
    begin_2000(false);
    exchange();
    end();
}

static void data_over_tcp(void)
{
    begin_2000(true);
    exchange();
    pair_close(&pair);
    pair_stop(&pair);
}

static void capabilities(void)
{
    const uint32_t without = SG_FEATURE_MPA_V2 | SG_FEATURE_ATOMICS | SG_FEATURE_IMM |
                             SG_FEATURE_FLUSH | SG_FEATURE_VERIFY | SG_FEATURE_ATOMIC_WRITE;
    struct sg_cmd_query q = { .hdr.opcode = SG_ADMIN_QUERY_CAPS };
    struct pair_side *s = &pair.side[0];
    struct sg_caps *caps;
    uint64_t out;

    begin_2000(false);
    out = test_host_alloc(&s->h, 4096, 8);
    caps = test_host_ptr(&s->h, out);
    sg_put_le64(&q.out_addr, out);
    sg_put_le32(&q.out_len, sizeof(*caps));
    T_EQ_U64(md_cmd(&s->md, &q, sizeof(q), NULL), SG_OK);
    T_EQ_U64(sg_get_le32(&caps->features) & without, 0);
    T_TRUE(sg_get_le32(&caps->features) & SG_FEATURE_SRQ);
    pair_close(&pair);
    pair_stop(&pair);
}

/* They fail when they are posted, and nothing goes to the peer. */
static void refused(void)
{
    static const uint8_t ops[] = { SG_WR_SEND_INV,  SG_WR_SEND_IMM,    SG_WR_WRITE_IMM,
                                   SG_WR_FETCH_ADD, SG_WR_CMP_SWAP,    SG_WR_FLUSH,
                                   SG_WR_VERIFY,    SG_WR_ATOMIC_WRITE };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(ops); i++) {
        T_CONTEXT("opcode 0x%02x", ops[i]);
        begin_2000(false);
        recv(1, 9, 0, 1000);
        post(0, wr(0, ops[i], 7, 0, 8, 0));
        expect(0, 7, SG_WC_LOC_QP_OP_ERR);
        pair_pass(&pair, 20000000000ull);
        expect(1, 9, SG_WC_FLUSH_ERR);
        end();
    }
}

/* The peer's mistake is its own: our queue pair ends, too, but its memory is untouched. */
static void wrong_stag(void)
{
    struct md_wr w;

    begin_2000(false);
    fill(1, 0, 100, 1);
    w = wr(0, SG_WR_WRITE, 5, 200, 100, 0);
    w.rkey ^= 0x100;
    post(0, w);
    expect(0, 5, SG_WC_SUCCESS); /* TCP has it */
    pair_pass(&pair, 20000000000ull);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
    T_EQ_U64(sg_engine_stats(pair.side[1].md.a->engine)->protection_errors, 1);
    end();
}

static void no_such_wire(void)
{
    struct sg_adapter_config c = wire_config();
    char buf[128];

    T_NULL(sg_adapter_check_config(&c, buf, sizeof(buf)));
    c.engine.wire = SG_ENGINE_WIRES;
    T_EQ_STR(sg_adapter_check_config(&c, buf, sizeof(buf)), "wire is 2, must be from 0 to 1");
}

static const struct t_case cases[] = {
    { "Sends, Writes and Reads", data },
    { "the same over TCP", data_over_tcp },
    { "over TCP with losses: segments behind a gap are placed", data_over_lossy_tcp },
    { "capabilities", capabilities },
    { "work requests without a message", refused },
    { "a wrong STag", wrong_stag },
    { "a wire that does not exist", no_such_wire },
};

T_MAIN(cases)
