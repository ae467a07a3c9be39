/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Damaged messages: to the responder of `rpcrdma serve`, and to the requester of `rpcrdma check`.
 * Each side answers as the protocol says or drops them, and goes on.
 */
#include "base/prng.h"
#include "check.h"
#include "echo.h"
#include "liar.h"
#include "tap.h"

enum { SEEDS = 20000, CHECK_SEEDS = 60, LENT = 2048, AROUND = 64, SEND_ROOM = 4096, CALL = 40 };

static uint64_t prng;

static uint32_t any(uint32_t below)
{
    return (uint32_t)(sg_prng(&prng) % below);
}

/* ---- To the responder ---- */

struct requester {
    struct rr_loopback loopback;
    struct rr_port *port;
    struct rr_region out, lent;
    uint8_t send[SEND_ROOM];
    uint8_t memory[AROUND + LENT + AROUND];
};

static void start(struct requester *q)
{
    struct rr_port_side side = { .receives = 8, .receive_size = SEND_ROOM };

    q->port = q->loopback.dialer.dial(&q->loopback.dialer, &side);
    q->out = (struct rr_region){ .octets = q->send, .len = sizeof(q->send) };
    q->lent = (struct rr_region){ .octets = q->memory + AROUND,
                                  .len = LENT,
                                  .access = RR_MAY_READ | RR_MAY_WRITE };
    memset(q->memory, RR_FILL, sizeof(q->memory));
    T_TRUE(q->port->ops->reg(q->port, &q->lent));
}

static struct rr_segment segment(const struct requester *q)
{
    uint32_t at = any(LENT);

    return (struct rr_segment){ any(16) ? q->lent.stag : any(UINT32_MAX), any(LENT - at + 1),
                                (uintptr_t)q->lent.octets + at };
}

/* A Call of a random procedure, with random lists, and then damage at random octets. */
static size_t make(struct requester *q, uint32_t xid)
{
    static struct rr_stream stream;
    static struct rr_header h;
    size_t len;

    memset(&h, 0, sizeof(h));
    h.xid = xid;
    h.vers = RR_VERSION;
    h.credit = 32;
    h.proc = any(8) ? RR_MSG : any(6);
    for (uint32_t i = any(4); i-- > 0;) {
        rr_add_read(&h, any(2) ? CALL + 4 * any(4) : 0, segment(q));
    }
    for (uint32_t i = any(3); i-- > 0;) {
        rr_open_chunk(&h);
        for (uint32_t n = any(4); n-- > 0;) {
            rr_add_segment(&h, segment(q));
        }
    }
    if (any(2)) {
        rr_open_reply(&h);
        for (uint32_t n = any(4); n-- > 0;) {
            rr_add_segment(&h, segment(q));
        }
    }
    rr_stream_call(&stream, xid, RR_ECHO, RR_ECHO_VERSION, any(RR_ECHO_PROCS + 1));
    rr_put_word(&stream, any(200));
    rr_put_word(&stream, any(600));
    len = rr_header_emit(&h, q->send, sizeof(q->send));
    memcpy(q->send + len, stream.octets, stream.len);
    len += stream.len;
    for (uint32_t i = any(3) * any(4); i-- > 0;) {
        q->send[4 + any((uint32_t)len - 4)] ^= 1u << any(8);
    }
    return any(4) ? len : any((uint32_t)len + 1);
}

/* Sends it; whether the connection is still there.  At most one answer, with the XID. */
static bool exchange(struct requester *q, size_t len, uint32_t xid, unsigned *answers)
{
    struct rr_post post = { .work = RR_WORK_SEND, .local = &q->out, .len = len };
    enum rr_event_kind kind;
    struct rr_event event;

    *answers = 0;
    T_TRUE(q->port->ops->post(q->port, &post));
    while ((kind = q->port->ops->poll(q->port, 0, &event)) == RR_EVENT_RECEIVED) {
        T_TRUE(event.octets.len >= RR_ERR_CHUNK_LEN);
        T_EQ_U64(sg_get_be32(event.octets.p), xid);
        T_EQ_INT(q->port->ops->repost(q->port, event.slot), true);
        ++*answers;
    }
    T_TRUE(*answers <= 1);
    for (unsigned i = 0; i < AROUND; i++) {
        T_EQ_INT(q->memory[i], RR_FILL);
        T_EQ_INT(q->memory[AROUND + LENT + i], RR_FILL);
    }
    return kind != RR_EVENT_CLOSED;
}

static size_t make_null(struct requester *q, uint32_t xid)
{
    static struct rr_stream stream;
    struct rr_header *h = g_new0(struct rr_header, 1);
    size_t len;

    h->xid = xid;
    h->vers = RR_VERSION;
    h->credit = 32;
    len = rr_header_emit(h, q->send, sizeof(q->send));
    g_free(h);
    rr_stream_call(&stream, xid, RR_ECHO, RR_ECHO_VERSION, RR_ECHO_NULL);
    memcpy(q->send + len, stream.octets, stream.len);
    return len + stream.len;
}

static void damaged_calls__one_answer(void)
{
    struct rr_settings settings = rr_settings_default();
    struct requester *q = g_new0(struct requester, 1);
    unsigned answers, answered = 0, ended = 0, seeds = t_seeds(SEEDS, SEEDS / 8);

    rr_loopback_init(&q->loopback, &settings);
    start(q);
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        T_CONTEXT("seed %u", seed);
        prng = seed;
        if (exchange(q, make(q, seed), seed, &answers)) {
            answered += answers;
            T_TRUE(exchange(q, make_null(q, UINT32_MAX - seed), UINT32_MAX - seed, &answers));
            T_EQ_INT(answers, 1);
        } else {
            ended++;
            start(q);
        }
    }
    /* Neither refuses the responder all, nor does a wrong STag remain without consequence. */
    T_TRUE(answered > seeds / 4);
    T_TRUE(ended > seeds / 100 && ended < seeds / 2);
    rr_loopback_clear(&q->loopback);
    g_free(q);
}

/* ---- To the requester ---- */

static void damage(uint8_t *octets, size_t *len)
{
    if (any(3)) {
        return;
    }
    for (uint32_t i = 1 + any(4); i-- > 0;) {
        octets[any((uint32_t)SG_MIN(*len, 120))] ^= 1u << any(8);
    }
    *len = any(4) ? *len : any((uint32_t)*len + 1);
}

static void damaged_replies__are_findings(void)
{
    static const struct lie lie = { .name = "damage",
                                    .damages = damage,
                                    .edition = RR_EDITION_RFC };
    unsigned failed = 0, seeds = CHECK_SEEDS / t_stride(4);

    for (uint32_t seed = 1; seed <= seeds; seed++) {
        struct rr_check_run run = {
            .options = { .service = &rr_service_echo,
                         .any_edition = true,
                         .reply_ms = 1,
                         .quiet_ms = 1 },
        };
        struct rr_book book = { .target = "damage", .out = g_string_new(NULL) };
        struct rr_loopback loopback;
        struct liar liar;

        T_CONTEXT("seed %u", seed);
        prng = seed;
        liar_init(&liar, &loopback, &lie);
        run.dialer = &loopback.dialer;
        run.book = &book;
        rr_check_all(&run);
        T_EQ_INT(book.skipped, 0);
        failed += book.failed;
        rr_loopback_clear(&loopback);
        g_string_free(book.out, true);
    }
    T_TRUE(failed > seeds * 20);
}

static const struct t_case cases[] = {
    { "damaged Calls get one answer at most", damaged_calls__one_answer },
    { "damaged Replies are findings", damaged_replies__are_findings },
};

T_MAIN(cases)
