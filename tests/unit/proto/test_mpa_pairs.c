/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Startup between two engines: every combination of an administrator's settings, and every corner
 * case of the depths, compared with a second formulation of the rules (RFC 5044 section 7.1, RFC
 * 6581 section 9).  If a connection must come up, messages go both ways, including Reads as far as
 * the depths allow; if it must not, both sides report it and nothing is left.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "proto/engine.h"
#include "stream_mem.h"
#include "tap.h"

enum { PORT = 4791, QUEUE = 4, DATA = 1500 };

struct policy {
    uint8_t rev, rtr; /* rtr: SG_RTR_* */
    bool crc, markers, p2p;
    uint16_t max_ird, max_ord; /* of the adapter */
    uint16_t ird, ord;         /* asked for by the program */
};

/* The expected result. */
struct outcome {
    bool up;
    uint16_t ird[2], ord[2]; /* initiator, responder */
    uint8_t rtr;             /* the first message's kind; 0: none */
};

struct mpa_pairs_side {
    struct sg_engine *e;
    struct sg_conn *c;
    struct sg_msg queue[QUEUE];
    unsigned head, tail, reads_out;
    bool up, failed, over, tx_ready;
    uint16_t ird, ord;
    uint8_t mpa_rev;
    unsigned recvs, received, read_done, early; /* early: Sends before 'established' */
    uint8_t mem[2][DATA], sink[DATA], got[DATA];
};

static struct mpa_pairs_side sides[2]; /* 0: initiator */
static uint64_t now_ns;
static struct policy granted; /* what the responder's program asks for */

/* ---- the rules ---- */

static uint16_t least(uint16_t a, uint16_t b)
{
    return a < b ? a : b;
}

/* Revision 2: what each side may do, and the message that opens the connection. */
static void negotiate(const struct policy *i, const struct policy *r, struct outcome *o)
{
    uint8_t able = r->rtr ? r->rtr : SG_RTR_WRITE, mine = i->rtr ? i->rtr : SG_RTR_WRITE, common;

    if (i->p2p) {
        if (!r->max_ird) {
            able &= (uint8_t)~SG_RTR_READ; /* a Read finds no buffer there */
            able = able ? able : SG_RTR_WRITE;
        }
        common = able & mine;
        if ((common ? common : able) & SG_RTR_READ && !o->ird[1]) {
            o->ird[1] = 1; /* for the message itself */
        }
        if (!o->ird[1]) {
            common &= (uint8_t)~SG_RTR_READ;
        }
        o->up = common;
        o->rtr = common & SG_RTR_WRITE ? SG_RTR_WRITE : common & SG_RTR_READ ? SG_RTR_READ : common;
    }
    /* Each side asks for no more than the other grants (section 9.1). */
    o->ord[1] = least(o->ord[1], o->ird[0]);
    o->ord[0] = least(o->ord[0], o->ird[1]);
}

static struct outcome rules(const struct policy *i, const struct policy *r)
{
    struct outcome o = {
        .up = i->rev <= r->rev,
        .ird = { least(i->ird, i->max_ird), least(r->ird, r->max_ird) },
        .ord = { least(i->ord, i->max_ord), least(r->ord, r->max_ord) },
    };

    if (o.up && i->rev == 2) {
        negotiate(i, r, &o);
    }
    return o;
}

/* ---- two engines ---- */

static uint64_t host_now(void *h)
{
    (void)h;
    return now_ns;
}

static void host_kick(void *h)
{
    (void)h;
}

static bool host_log_enabled(void *h, enum sg_log_class cls)
{
    (void)h, (void)cls;
    return false;
}

static const struct sg_host_ops host_ops = {
    .now = host_now,
    .kick = host_kick,
    .log_enabled = host_log_enabled,
};

static void up_request(void *listener_user, struct sg_conn *c, const struct sg_conn_params *p)
{
    const struct sg_conn_params answer = { .ird = granted.ird, .ord = granted.ord };

    (void)p;
    sides[1].c = c;
    sides[1].mpa_rev = p->mpa_rev;
    T_TRUE(sg_conn_accept(c, listener_user, &answer));
}

static void up_request_gone(struct sg_conn *c, void *request_user, enum sg_conn_end why)
{
    (void)c, (void)request_user, (void)why;
    T_FAIL("a Request vanished");
}

static void up_reply(void *user, enum sg_conn_end end, const struct sg_conn_params *p)
{
    struct mpa_pairs_side *s = user;

    s->failed = end != SG_CONN_OK;
    s->up = !s->failed;
    s->c = s->up ? s->c : NULL;
    s->ird = p->ird;
    s->ord = p->ord;
}

static void up_established(void *user, const struct sg_conn_params *p)
{
    struct mpa_pairs_side *s = user;

    s->up = true;
    s->ird = p->ird;
    s->ord = p->ord;
    s->early = s->received;
}

static void up_disconnected(void *user, enum sg_conn_end why)
{
    (void)user, (void)why;
}

static void up_closed(void *user, enum sg_conn_end why)
{
    struct mpa_pairs_side *s = user;

    (void)why;
    s->over = true;
    s->c = NULL;
}

static void up_terminated(void *user, const struct sg_term_info *t)
{
    (void)user, (void)t;
}

static void up_tx_ready(void *user)
{
    ((struct mpa_pairs_side *)user)->tx_ready = true;
}

static bool up_next(void *user, struct sg_msg *msg, unsigned reads_room)
{
    struct mpa_pairs_side *s = user;

    if (s->head == s->tail || (s->queue[s->head].kind == SG_MSG_READ_REQ && !reads_room)) {
        return false;
    }
    *msg = s->queue[s->head++];
    return true;
}

static int up_gather(void *user, const struct sg_msg *msg, uint32_t off, uint32_t len,
                     struct iovec *iov)
{
    struct mpa_pairs_side *s = user;

    (void)msg;
    iov[0] = (struct iovec){ s->mem[0] + off, len };
    return 1;
}

static void up_gathered(void *user, struct iovec *iov, int n)
{
    (void)user, (void)iov, (void)n;
}

static void up_sent(void *user, const struct sg_msg *msg)
{
    (void)user, (void)msg;
}

static void up_read_done(void *user, uint32_t octets)
{
    T_EQ_U64(octets, DATA);
    ((struct mpa_pairs_side *)user)->read_done++;
}

static enum sg_mem_status up_place_write(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                         size_t n)
{
    (void)user, (void)stag, (void)to, (void)p, (void)n;
    T_FAIL("nobody writes");
    return SG_MEM_STAG;
}

static enum sg_mem_status up_place_read(void *user, const struct sg_read_sink *sink, uint32_t off,
                                        const uint8_t *p, size_t n)
{
    memcpy(((struct mpa_pairs_side *)user)->sink + sink->to + off, p, n);
    return SG_MEM_OK;
}

static enum sg_recv_status up_place_recv(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                         size_t n)
{
    (void)msn;
    T_TRUE(mo + n <= DATA);
    if (n) {
        memcpy(((struct mpa_pairs_side *)user)->got + mo, p, n);
    }
    return SG_RECV_OK;
}

static void up_recv_done(void *user, const struct sg_recv_info *info)
{
    struct mpa_pairs_side *s = user;

    s->received++;
    s->recvs += info->length == DATA;
}

static enum sg_mem_status up_invalidate(void *user, uint32_t stag)
{
    (void)user, (void)stag;
    return SG_MEM_STAG;
}

static enum sg_mem_status up_check_source(void *user, uint32_t stag, uint64_t to, uint32_t len)
{
    (void)user, (void)stag, (void)to, (void)len;
    return SG_MEM_OK;
}

static int up_gather_source(void *user, uint32_t stag, uint64_t to, uint32_t len, struct iovec *iov,
                            enum sg_mem_status *why)
{
    (void)stag, (void)why;
    iov[0] = (struct iovec){ ((struct mpa_pairs_side *)user)->mem[1] + to, len };
    return 1;
}

static const struct sg_engine_ops ops = {
    .request = up_request,
    .request_gone = up_request_gone,
    .reply = up_reply,
    .established = up_established,
    .disconnected = up_disconnected,
    .closed = up_closed,
    .terminated = up_terminated,
    .tx_ready = up_tx_ready,
    .next = up_next,
    .gather = up_gather,
    .gathered = up_gathered,
    .sent = up_sent,
    .read_done = up_read_done,
    .place_write = up_place_write,
    .place_read = up_place_read,
    .place_recv = up_place_recv,
    .recv_done = up_recv_done,
    .invalidate = up_invalidate,
    .check_source = up_check_source,
    .gather_source = up_gather_source,
};

static struct sg_engine_config config_of(const struct policy *p)
{
    return (struct sg_engine_config){
        .mpa_rev = p->rev,
        .crc = p->crc,
        .markers = p->markers,
        .peer_to_peer = p->p2p,
        .rtr_mask = p->rtr,
        .max_ird = p->max_ird,
        .max_ord = p->max_ord,
        .reply_timeout_ms = 1000,
        .startup_timeout_ms = 1000,
        .close_timeout_ms = 1000,
        .linger_timeout_ms = 1000,
        .close_limit_ms = 10000,
    };
}

static void settle(struct sg_mem_switch *sw)
{
    unsigned quiet = 0, i;

    while (quiet < 3) {
        bool busy = sg_mem_switch_run(sw, now_ns) <= now_ns;

        for (i = 0; i < 2; i++) {
            struct mpa_pairs_side *s = &sides[i];

            sg_engine_run(s->e, now_ns);
            while (s->tx_ready && s->c) {
                s->tx_ready = false;
                s->tx_ready |= sg_conn_transmit(s->c, 100000);
                busy = true;
            }
        }
        quiet = busy ? 0 : quiet + 1;
    }
}

static void post(struct mpa_pairs_side *s, enum sg_msg_kind kind)
{
    struct sg_msg *m = &s->queue[s->tail++];

    *m = (struct sg_msg){ .kind = kind };
    if (kind == SG_MSG_READ_REQ) {
        m->read.length = DATA;
        m->read.stag = m->read.sink_stag = 1;
    } else {
        m->send.length = DATA;
    }
    sg_conn_wake(s->c);
}

/* Messages both ways: the responder's are posted first and wait for the initiator's. */
static void talk(struct sg_mem_switch *sw, const struct outcome *o, const struct policy *i)
{
    uint64_t before = sg_engine_stats(sides[0].e)->rx_sends;
    unsigned k;

    post(&sides[1], SG_MSG_SEND);
    settle(sw);
    /* RFC 5044 section 7.1.2, rule 4: not before a valid FPDU has come. */
    T_EQ_U64(sg_engine_stats(sides[0].e)->rx_sends - before, o->rtr != 0);
    post(&sides[0], SG_MSG_SEND);
    settle(sw);
    for (k = 0; k < 2; k++) {
        T_EQ_U64(sides[k].recvs, 1);
        T_EQ_MEM(sides[k].got, sides[!k].mem[0], DATA);
        if (o->ord[k] && (i->rev == 2 || o->ird[!k])) {
            post(&sides[k], SG_MSG_READ_REQ);
            settle(sw);
            T_EQ_U64(sides[k].read_done, 1);
            T_EQ_MEM(sides[k].sink, sides[!k].mem[1], DATA);
        }
    }
}

/* The message that opened the connection, as the responder counted it. */
static void check_opening(const struct outcome *o)
{
    const struct sg_engine_stats *st = sg_engine_stats(sides[1].e);

    T_EQ_U64(st->rx_writes, o->rtr == SG_RTR_WRITE);
    T_EQ_U64(st->rx_reads, o->rtr == SG_RTR_READ);
    T_EQ_U64(st->rx_sends, o->rtr == SG_RTR_SEND);
    T_EQ_U64(sg_engine_stats(sides[0].e)->rx_sends, 0);
}

/* A Send of 1500 octets is 1524 on the wire; each Marker adds four, and there are two or three. */
static void check_markers(struct sg_mem_switch *sw, const struct policy *i, const struct policy *r)
{
    const struct policy *receiver[2] = { r, i };
    unsigned k;

    for (k = 0; k < 2; k++) {
        uint64_t before = sg_engine_stats(sides[k].e)->tx_octets;

        sides[k].head = sides[k].tail = 0;
        post(&sides[k], SG_MSG_SEND);
        settle(sw);
        T_EQ_INT(sg_engine_stats(sides[k].e)->tx_octets - before > 1524, receiver[k]->markers);
    }
}

static void run(const struct policy *i, const struct policy *r)
{
    static const struct sg_mem_options immediate = { .emss = 8000 };
    const struct sg_host host = { .ops = &host_ops };
    struct sg_endpoint at[2] = {
        { .family = 4, .ip = { 10, 0, 0, 1 } },
        { .family = 4, .ip = { 10, 0, 0, 2 } },
    };
    const struct policy *policy[2] = { i, r };
    const struct sg_conn_params p = { .ird = i->ird, .ord = i->ord };
    const struct outcome o = rules(i, r);
    struct sg_mem_switch *sw = sg_mem_switch_new(&immediate);
    struct sg_stream_net *net[2];
    enum sg_conn_end why;
    unsigned k, n;

    memset(sides, 0, sizeof(sides));
    granted = *r;
    for (k = 0; k < 2; k++) {
        const struct sg_engine_config config = config_of(policy[k]);

        net[k] = sg_mem_switch_port(sw, &at[k]);
        sides[k].e = sg_engine_new(&host, net[k], &config, &ops);
        for (n = 0; n < DATA; n++) {
            sides[k].mem[0][n] = (uint8_t)(n * 3 + k);
            sides[k].mem[1][n] = (uint8_t)(n * 5 + k);
        }
    }
    at[1].port = PORT;
    T_NOT_NULL(sg_engine_listen(sides[1].e, &at[1], 2, &sides[1], &why));
    sides[0].c = sg_engine_connect(sides[0].e, &at[0], &at[1], &p, &sides[0], &why);
    T_NOT_NULL(sides[0].c);
    settle(sw);
    T_EQ_INT(sides[0].up, o.up);
    T_EQ_INT(sides[0].failed, !o.up);
    if (o.up) {
        for (k = 0; k < 2; k++) {
            T_TRUE(sides[k].up);
            T_EQ_U64(sides[k].ird, o.ird[k]);
            T_EQ_U64(sides[k].ord, o.ord[k]);
        }
        check_opening(&o);
        talk(sw, &o, i);
        check_markers(sw, i, r);
        sg_conn_close(sides[0].c);
        settle(sw);
        if (sides[1].c) {
            sg_conn_close(sides[1].c);
        }
    }
    for (n = 0; n < 3; n++) {
        now_ns += 2000000000;
        settle(sw);
    }
    for (k = 0; k < 2; k++) {
        T_EQ_U64(sg_engine_stats(sides[k].e)->conns, 0);
        sg_engine_free(sides[k].e);
    }
    sg_mem_switch_free(sw);
}

static const char *text_of(const struct policy *p)
{
    static char text[2][100];
    static unsigned which;
    char *out = text[which++ % 2];

    snprintf(out, sizeof(text[0]),
             "rev %u, RTR %u, crc %d, markers %d, p2p %d, limits %u/%u, "
             "asks %u/%u",
             p->rev, p->rtr, p->crc, p->markers, p->p2p, p->max_ird, p->max_ord, p->ird, p->ord);
    return out;
}

static void run_named(const struct policy *i, const struct policy *r)
{
    const char *ours = text_of(i);

    T_CONTEXT("initiator: %s; responder: %s", ours, text_of(r));
    run(i, r);
}

/* Number n of all policies: 2 * 2 * 2 * 2 * 8. */
enum { POLICIES = 128 };

static struct policy policy_of(unsigned n)
{
    return (struct policy){
        .rev = n & 1 ? 2 : 1,
        .crc = n & 2,
        .markers = n & 4,
        .p2p = n & 8,
        .rtr = (uint8_t)(n >> 4),
        .max_ird = 8,
        .max_ord = 8,
        .ird = 4,
        .ord = 4,
    };
}

static void every_policy(void)
{
    unsigned i, r;

    for (i = 0; i < POLICIES; i++) {
        for (r = 0; r < POLICIES; r++) {
            struct policy a = policy_of(i), b = policy_of(r);

            run_named(&a, &b);
        }
    }
}

/* Markers and CRC of each side, both revisions: data both ways each time. */
static void every_framing(void)
{
    unsigned n;

    for (n = 0; n < 64; n++) {
        struct policy a = policy_of(n & 7), b = policy_of(n >> 3);

        a.rtr = b.rtr = SG_RTR_WRITE;
        run_named(&a, &b);
    }
}

/* Depths: none, one, few, the limit, beyond it; for each way to open the connection. */
static void every_depth(void)
{
    static const uint16_t depths[] = { 0, 1, 5, 8, 300 };
    enum { N = SG_ARRAY_SIZE(depths) };
    static const struct {
        bool p2p;
        uint8_t rtr;
    } opening[] = {
        { false, SG_RTR_WRITE },
        { true, SG_RTR_WRITE },
        { true, SG_RTR_READ },
        { true, SG_RTR_SEND },
        { true, SG_RTR_READ | SG_RTR_SEND },
    };
    unsigned n, k;

    for (k = 0; k < SG_ARRAY_SIZE(opening); k++) {
        for (n = 0; n < N * N * N * N; n++) {
            struct policy a = {
                .rev = 2,
                .crc = true,
                .p2p = opening[k].p2p,
                .rtr = opening[k].rtr,
                .max_ird = 8,
                .max_ord = 8,
                .ird = depths[n % N],
                .ord = depths[n / N % N],
            };
            struct policy b = a;

            b.ird = depths[n / N / N % N];
            b.ord = depths[n / N / N / N];
            run_named(&a, &b);
        }
    }
}

/* Adapters that have no room for Reads at all, on either side. */
static void no_reads_at_all(void)
{
    unsigned n;

    for (n = 0; n < 8 * 16; n++) {
        struct policy a = {
            .rev = 2,
            .p2p = true,
            .rtr = (uint8_t)(n >> 4),
            .ird = 4,
            .ord = 4,
            .max_ird = n & 1 ? 8 : 0,
            .max_ord = n & 2 ? 8 : 0,
        };
        struct policy b = a;

        b.rtr = SG_RTR_READ | (n & 8 ? SG_RTR_WRITE : 0);
        b.max_ird = n & 4 ? 8 : 0;
        b.max_ord = n & 8 ? 8 : 0;
        run_named(&a, &b);
    }
}

static const struct t_case cases[] = {
    { "MPA-46 MPA-47 MP2-05 MP2-10 MP2-13 MP2-19 MP2-20 every policy against every other",
      every_policy },
    { "MPA-25 MPA-27 MPA-28 every framing", every_framing },
    { "MP2-08 MP2-09 MP2-11 MP2-12 RDM-53 every pair of depths", every_depth },
    { "MP2-11 RDM-53 adapters without room for Reads", no_reads_at_all },
};

T_MAIN(cases)
