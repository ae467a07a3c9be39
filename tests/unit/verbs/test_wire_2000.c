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
                             SG_FEATURE_FLUSH | SG_FEATURE_VERIFY | SG_FEATURE_ATOMIC_WRITE |
                             SG_FEATURE_SEND_INV;
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
    T_EQ_U64(sg_get_le32(&caps->wire), SG_WIRE_ID_RDMA_TCP_2000);
    T_EQ_U64(sg_get_le32(&caps->max_private_data), SG_PRIVATE_DATA_MAX);
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

/* Side 0 makes a fault: side 1 learns which, side 0 only that the connection has ended. */
static void faults_of_the_peer(void)
{
    static const struct {
        const char *what;
        uint8_t opcode, posted; /* by side 0, and how that completes */
        uint32_t stag_xor, recv;
        uint8_t event;
    } rows[] = {
        { "Write, STag", SG_WR_WRITE, SG_WC_SUCCESS, 0x100, 0, SG_EV_QP_ACCESS_ERR },
        { "Read, STag", SG_WR_READ, SG_WC_FLUSH_ERR, 0x100, 0, SG_EV_QP_ACCESS_ERR },
        { "no Receive", SG_WR_SEND, SG_WC_SUCCESS, 0, 0, SG_EV_QP_REQ_ERR },
        { "Receive too short", SG_WR_SEND, SG_WC_SUCCESS, 0, 99, SG_EV_QP_REQ_ERR },
    };
    struct sg_eqe e;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct md_wr w;

        T_CONTEXT("%s", rows[i].what);
        begin_2000(false);
        fill(1, 0, 300, 1);
        if (rows[i].recv) {
            recv(1, 6, 0, rows[i].recv);
        }
        w = wr(0, rows[i].opcode, 5, 400, 100, 0);
        w.rkey ^= rows[i].stag_xor;
        post(0, w);
        pair_settle(&pair);
        T_TRUE(md_next_async(&pair.side[1].md, &e));
        T_EQ_U64(e.event, rows[i].event);
        T_EQ_U64(sg_get_le32(&e.id), pair.side[1].qp.qpn);
        e = pair_expect(&pair, 1, SG_EV_CM_DISCONNECT);
        T_EQ_U64(e.cm_status, SG_CM_PROTOCOL);
        e = pair_expect(&pair, 0, SG_EV_CM_DISCONNECT);
        T_EQ_U64(e.cm_status, SG_CM_CLOSED);
        expect(0, 5, rows[i].posted);
        pair_pass(&pair, 20000000000ull);
        T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
        T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
        T_EQ_U64(pair_buf(&pair, 1)[0], 1);
        T_EQ_U64(sg_engine_stats(pair.side[1].md.a->engine)->protection_errors,
                 rows[i].event == SG_EV_QP_ACCESS_ERR);
        end();
    }
}

/* DMA fails where a Write of the peer goes: the peer is not to blame. */
static void memory_of_ours(void)
{
    struct sg_eqe e;

    begin_2000(false);
    pair.side[1].h.fault_lo = pair.side[1].buf;
    pair.side[1].h.fault_hi = pair.side[1].buf + 4096;
    post(0, wr(0, SG_WR_WRITE, 5, 400, 100, 0));
    pair_settle(&pair);
    T_TRUE(md_next_async(&pair.side[1].md, &e));
    T_EQ_U64(e.event, SG_EV_QP_FATAL);
    T_EQ_U64(sg_engine_stats(pair.side[1].md.a->engine)->protection_errors, 0);
    end();
}

/* RFC 5044 makes a responder wait for the initiator's first message; here it need not. */
static void server_sends_first(void)
{
    begin_2000(false);
    fill(1, 0, 64, 3);
    recv(0, 1, 100, 64);
    post(1, wr(1, SG_WR_SEND, 2, 0, 64, 0));
    expect(0, 1, SG_WC_SUCCESS);
    expect(1, 2, SG_WC_SUCCESS);
    T_EQ_MEM(pair_buf(&pair, 0) + 100, pair_buf(&pair, 1), 64);
    end();
}

/* Each end names its own protocol; neither takes what the other one says. */
static void two_wires(void)
{
    const struct sg_adapter_config new = wire_config();
    struct sg_adapter_config iwarp;
    enum sg_status status;
    struct sg_eqe e;
    int i;

    sg_adapter_default_config(&iwarp);
    for (i = 0; i < 2; i++) {
        T_CONTEXT("%s connects", i ? "iWARP" : "RDMA/TCP of 2000");
        pair_start_two(&pair, i ? &iwarp : &new, i ? &new : &iwarp);
        pair_open(&pair, NULL);
        pair_connect_cmd(&pair, &pair.side[0].qp, 1, 1, NULL, &status);
        T_EQ_U64(status, SG_OK);
        e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
        T_TRUE(e.cm_status == SG_CM_RESET || e.cm_status == SG_CM_PROTOCOL);
        T_FALSE(md_next_async(&pair.side[1].md, &e)); /* the listener's driver hears nothing */
        T_EQ_U64(sg_engine_stats(pair.side[1].md.a->engine)->protocol_errors, 1);
        end();
    }
}

/* All 512 octets of private data are the program's: there is no MPA header among them. */
static void private_data(void)
{
    struct sg_cmd_query q = { .hdr.opcode = SG_ADMIN_CM_DATA };
    char text[SG_PRIVATE_DATA_MAX + 2];
    const struct sg_adapter_config c = wire_config();
    struct sg_cm_data *d;
    enum sg_status status;
    struct sg_eqe e;
    uint64_t out;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    pair_start(&pair, &c, NULL);
    pair_open(&pair, NULL);
    pair_connect_cmd(&pair, &pair.side[0].qp, 3, 5, text, &status);
    T_EQ_U64(status, SG_EINVAL);
    text[SG_PRIVATE_DATA_MAX] = 0;
    pair_connect_cmd(&pair, &pair.side[0].qp, 3, 5, text, &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    out = test_host_alloc(&pair.side[1].h, sizeof(*d), 8);
    sg_put_le64(&q.out_addr, out);
    sg_put_le32(&q.out_len, sizeof(*d));
    q.id = e.conn;
    T_EQ_U64(md_cmd(&pair.side[1].md, &q, sizeof(q), NULL), SG_OK);
    d = test_host_ptr(&pair.side[1].h, out);
    T_EQ_U64(sg_get_le16(&d->pdata_len), SG_PRIVATE_DATA_MAX);
    T_EQ_MEM(d->pdata, text, SG_PRIVATE_DATA_MAX);
    T_EQ_U64(d->mpa_rev, 0);
    T_EQ_U64(sg_get_le16(&d->peer_ird), 3);
    T_EQ_U64(sg_get_le16(&d->peer_ord), 5);
    pair_close(&pair);
    pair_stop(&pair);
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
    { "faults of the peer: what each side is told", faults_of_the_peer },
    { "memory of ours fails under a Write", memory_of_ours },
    { "the two wires do not connect", two_wires },
    { "private data", private_data },
    { "the server sends first", server_sends_first },
    { "a wire that does not exist", no_such_wire },
};

T_MAIN(cases)
