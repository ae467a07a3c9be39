/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The next hop of CONNECT and ACCEPT reaches the network. */
#include "pair_rig.h"
#include "verbs/state/adapter_state.h"

static const uint8_t hop[2][16] = { { 10, 0, 0, 7, 1, 2, 3 }, { 10, 0, 0, 8, 4, 5, 6 } };

static struct {
    const struct sg_stream_net_ops *net;
    const struct sg_stream_ops *stream;
    sg_stream_accept accept;
    uint8_t connect[16], accepted[16];
    unsigned times;
} spy;

static struct sg_stream *spy_connect(struct sg_stream_net *net, const struct sg_endpoint *local,
                                     const struct sg_endpoint *remote,
                                     const struct sg_stream_events *events, void *user,
                                     enum sg_stream_end *why)
{
    memcpy(spy.connect, remote->next_hop, sizeof(spy.connect));
    return spy.net->connect(net, local, remote, events, user, why);
}

static void spy_set_next_hop(struct sg_stream *s, const uint8_t next_hop[16])
{
    (void)s;
    memcpy(spy.accepted, next_hop, sizeof(spy.accepted));
    spy.times++;
}

static bool spy_accept(void *user, struct sg_stream *s)
{
    static struct sg_stream_ops ops;

    ops = *s->ops;
    ops.set_next_hop = spy_set_next_hop;
    s->ops = &ops;
    return spy.accept(user, s);
}

static struct sg_stream_listener *spy_listen(struct sg_stream_net *net,
                                             const struct sg_endpoint *local, unsigned backlog,
                                             sg_stream_accept accept, void *user,
                                             enum sg_stream_end *why)
{
    spy.accept = accept;
    return spy.net->listen(net, local, backlog, spy_accept, user, why);
}

static void start(void)
{
    struct sg_cmd_listen listen = { .hdr.opcode = SG_ADMIN_LISTEN };
    static struct sg_stream_net_ops ops[2];
    struct sg_admin_rsp rsp;
    int i;

    memset(&spy, 0, sizeof(spy));
    pair_start(&pair, NULL, NULL);
    for (i = 0; i < 2; i++) {
        struct sg_stream_net *net = pair.side[i].md.a->net;

        spy.net = net->ops;
        ops[i] = *net->ops;
        ops[i].connect = spy_connect;
        ops[i].listen = spy_listen;
        net->ops = &ops[i];
    }
    pair_open(&pair, NULL);
    /* The existing listener uses the original network operations. */
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_UNLISTEN, pair.listener), SG_OK);
    listen.local = md_addr(&(struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 2 } }, PAIR_PORT);
    sg_put_le32(&listen.backlog, 4);
    T_EQ_U64(md_cmd(&pair.side[1].md, &listen, sizeof(listen), &rsp), SG_OK);
    pair.listener = sg_get_le32(&rsp.id);
}

static enum sg_status command(int side, enum sg_admin_opcode op, uint32_t conn,
                              const uint8_t *next_hop)
{
    struct sg_cmd_connect c = { .hdr.opcode = op };

    sg_put_le32(&c.qpn, pair.side[side].qp.qpn);
    sg_put_le32(&c.conn, conn);
    if (op == SG_ADMIN_CONNECT) {
        struct sg_endpoint to = { .family = 4, .ip = { 10, 0, 0, 2 } };

        c.local = md_addr(&(struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 1 } }, 0);
        c.remote = md_addr(&to, PAIR_PORT);
    }
    if (next_hop) {
        memcpy(c.next_hop, next_hop, sizeof(c.next_hop));
    }
    return md_cmd(&pair.side[side].md, &c, sizeof(c), NULL);
}

static void go(const uint8_t *connect, const uint8_t *accept)
{
    struct sg_eqe e;

    T_EQ_U64(command(0, SG_ADMIN_CONNECT, 0, connect), SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(command(1, SG_ADMIN_ACCEPT, sg_get_le32(&e.conn), accept), SG_OK);
    e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
    T_EQ_U64(e.cm_status, SG_CM_OK);
}

static void named(void)
{
    uint8_t want[16] = { 10, 0, 0, 7 }; /* four octets of IPv4; the rest is 0 */

    start();
    go(hop[0], hop[1]);
    T_EQ_MEM(spy.connect, want, 16);
    T_EQ_INT(spy.times, 1);
    T_EQ_MEM(spy.accepted, hop[1], 4);
    end();
}

static void not_named(void)
{
    static const uint8_t none[16];

    start();
    go(NULL, NULL);
    T_EQ_MEM(spy.connect, none, 16);
    T_EQ_INT(spy.times, 0); /* the SYN's source is a better guess than the gateway */
    end();
}

static const struct t_case cases[] = {
    { "CONNECT and ACCEPT name a next hop", named },
    { "they name none", not_named },
};

T_MAIN(cases)
