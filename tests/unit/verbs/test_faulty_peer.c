/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A peer that misbehaves at a chosen message: side 0 has the fault rules, side 1 sees what comes.
 */
#include "faults/faults.h"
#include "pair_rig.h"

enum { SECOND = 1000000000, SENDS = 6, OCTETS = 64 };

static struct sg_faults *faults;

static void set(const char *text)
{
    char err[256] = "";

    T_TRUE(sg_faults_set(faults, text, pair.side[0].h.now_ns, err, sizeof(err)));
    sg_adapter_set_faults(pair.side[0].md.a, faults);
    pair_settle(&pair);
}

/* A connection, with receives at both sides. */
static void start(const char *rules)
{
    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    pair_connect(&pair);
    for (unsigned i = 0; i < SENDS; i++) {
        for (unsigned side = 0; side < 2; side++) {
            struct pair_side *s = &pair.side[side];

            md_post_recv(&s->qp, 100 + i, s->buf + 4096ull * i, OCTETS, s->stag);
        }
    }
    faults = sg_faults_new(&sg_adapter_fault_words);
    set(rules);
}

static void stop(void)
{
    pair_stop(&pair);
    sg_faults_free(faults);
}

static void send(int from, uint8_t opcode, uint64_t wr_id)
{
    struct pair_side *s = &pair.side[from], *to = &pair.side[!from];

    md_post_send(&s->qp, &(struct md_wr){
                             .opcode = opcode,
                             .wr_id = wr_id,
                             .addr = s->buf + 65536,
                             .len = OCTETS,
                             .lkey = s->stag,
                             .raddr = to->buf + 131072,
                             .rkey = to->stag,
                         });
    pair_settle(&pair);
}

/* Completions of this side with success, and with any other status. */
static void completions(int side, unsigned *good, unsigned *bad)
{
    struct sg_cqe e;

    *good = *bad = 0;
    while (md_poll(&pair.side[side].cq, &e)) {
        *(e.status == SG_WC_SUCCESS ? good : bad) += 1;
    }
}

/* How the connection ended for side 1, which is told by this event; others may come before it. */
static uint8_t ended(enum sg_event event)
{
    struct sg_eqe e;

    do {
        T_TRUE(md_next_async(&pair.side[1].md, &e));
    } while (e.event != event);
    return e.cm_status;
}

/* The third Send of side 0 is not sent; side 1 gets 'status' instead. */
static void outbound(const char *rules, uint8_t status)
{
    unsigned good, bad;

    start(rules);
    for (unsigned i = 1; i <= 4; i++) {
        send(0, SG_WR_SEND, i);
    }
    T_EQ_U64(ended(SG_EV_CM_DISCONNECT), status);
    pair_pass(&pair, SECOND);
    completions(0, &good, &bad);
    T_EQ_U64(good, 2);
    T_EQ_U64(bad, 2 + SENDS); /* two Sends, and the receives */
    completions(1, &good, &bad);
    T_EQ_U64(good, 2);
    T_EQ_U64(bad, SENDS - 2);
    stop();
}

static void out_terminate(void)
{
    outbound("outbound terminate nth=3", SG_CM_TERMINATED);
}

static void out_fin(void)
{
    outbound("outbound fin nth=3", SG_CM_CLOSED);
}

/* An RST has no event of its own: TCP is gone at once. */
static void out_rst(void)
{
    unsigned good, bad;

    start("outbound rst nth=2");
    send(0, SG_WR_SEND, 1);
    send(0, SG_WR_WRITE, 2);
    T_EQ_U64(ended(SG_EV_CM_CLOSED), SG_CM_RESET);
    completions(0, &good, &bad);
    T_EQ_U64(good, 1);
    T_EQ_U64(bad, 1 + SENDS);
    stop();
}

/* A Read that is never answered, and nothing else comes either. */
static void in_mute(void)
{
    unsigned good, bad;

    start("inbound mute nth=2");
    send(1, SG_WR_SEND, 1);
    send(1, SG_WR_READ, 2);
    send(0, SG_WR_SEND, 3);
    pair_pass(&pair, 10ull * SECOND);
    completions(1, &good, &bad);
    T_EQ_U64(good, 1); /* the Send; neither the Read nor a receive */
    T_EQ_U64(bad, 0);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_RTS);
    set(""); /* the connection stays as it is */
    pair_pass(&pair, SECOND);
    completions(1, &good, &bad);
    T_EQ_U64(good + bad, 0);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, pair.side[0].qp.qpn), SG_OK);
    pair_pass(&pair, 1000ull * SECOND);
    T_TRUE(md_qp_state(&pair.side[1].qp) != SG_QP_RTS); /* all ends in the end */
    stop();
}

/* What has arrived counts: Writes and Reads like Sends; it was placed before the end. */
static void in_ends(void)
{
    static const struct {
        const char *rules;
        uint8_t event, status;
    } rows[] = {
        { "inbound terminate nth=3", SG_EV_CM_DISCONNECT, SG_CM_TERMINATED },
        { "inbound fin nth=3", SG_EV_CM_DISCONNECT, SG_CM_CLOSED },
        { "inbound rst nth=3", SG_EV_CM_CLOSED, SG_CM_RESET },
    };
    static const uint8_t opcodes[] = { SG_WR_SEND, SG_WR_WRITE, SG_WR_READ };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned last = 0; last < sizeof(opcodes); last++) {
            T_CONTEXT("%s, the last one is %u", rows[i].rules, last);
            start(rows[i].rules);
            for (unsigned n = 1; n <= 3; n++) {
                memset(pair_buf(&pair, 1) + 65536, 0x5a, OCTETS); /* a Read has changed it */
                send(1, opcodes[(last + n) % 3], n);
            }
            T_EQ_U64(ended(rows[i].event), rows[i].status);
            T_EQ_U64(pair_buf(&pair, 0)[131072], 0x5a);
            pair_pass(&pair, SECOND);
            stop();
        }
    }
}

/* Only this queue pair; and messages of a connection pass when the rules are about others. */
static void other(void)
{
    unsigned good, bad;
    char rules[80];

    start("outbound rst qp=4711 times=always; inbound fin qp=4711 times=always");
    snprintf(rules, sizeof(rules), "outbound fin qp=%u nth=2", pair.side[0].qp.qpn);
    send(0, SG_WR_SEND, 1);
    send(1, SG_WR_SEND, 2);
    send(1, SG_WR_READ, 3);
    completions(1, &good, &bad);
    T_EQ_U64(good, 3);
    T_EQ_U64(bad, 0);
    set(rules);
    send(0, SG_WR_SEND, 4);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_RTS);
    send(0, SG_WR_SEND, 5);
    T_EQ_U64(ended(SG_EV_CM_DISCONNECT), SG_CM_CLOSED);
    stop();
}

static const struct t_case cases[] = {
    { "a Terminate instead of a message", out_terminate },
    { "a FIN instead of a message", out_fin },
    { "an RST instead of a message", out_rst },
    { "silence after a message", in_mute },
    { "an end after a message", in_ends },
    { "only the queue pair of the rule", other },
};

T_MAIN(cases)
