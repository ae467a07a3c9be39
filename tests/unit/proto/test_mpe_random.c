/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads, Flushes, Verifies and Atomic Writes in any mixture, seeded, compared with a model that is
 * a list: the peer sees requests in order and within ORD, may answer the two kinds of queues out of
 * step, and completions come in order; the engine answers the peer's requests in order, and each
 * Read and Verify sees all earlier Atomic Writes and no later one.
 */
#include <string.h>

#include "base/crc32c.h"
#include "tap.h"
#include "rig.h"

enum { ROUNDS = 400, REQUESTS = 40, ATOMS = 8, BASE = 0x1000 };

static uint64_t state;

static uint32_t prng(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static enum sg_msg_kind random_kind(void)
{
    static const enum sg_msg_kind kinds[] = { SG_MSG_READ_REQ, SG_MSG_FLUSH, SG_MSG_VERIFY,
                                              SG_MSG_ATOMIC_WRITE };

    return kinds[prng(4)];
}

/* A request of ours, the Nth. */
static struct sg_msg random_request(unsigned n)
{
    struct sg_msg m = { .kind = random_kind() };

    if (m.kind == SG_MSG_READ_REQ) {
        m.read.length = 4;
        m.read.stag = 7;
        m.read.sink_stag = RIG_STAG_RW;
        m.read.sink_to = BASE + 4 * n;
        return m;
    }
    m.mpe.stag = 7;
    m.mpe.length = 8;
    if (m.kind == SG_MSG_FLUSH) {
        m.mpe.args.flags = SG_FLUSH_PERSISTENT;
    }
    return m;
}

/* A ULPDU, framed. */
static void say(const uint8_t *ulpdu, size_t n)
{
    uint8_t f[256];
    size_t len = n + 2;

    sg_put_be16(f, (uint16_t)n);
    memcpy(f + 2, ulpdu, n);
    while (len % 4) {
        f[len++] = 0;
    }
    sg_put_le32(f + len, sg_crc32c(0, f, len));
    rig_say_octets(f, len + 4);
}

static size_t untagged(uint8_t *u, uint8_t op, uint32_t qn, uint32_t msn)
{
    memset(u, 0, 18);
    u[0] = 0x41;
    u[1] = (uint8_t)(0x40 | op);
    sg_put_be32(u + 6, qn);
    sg_put_be32(u + 10, msn);
    return 18;
}

/* The next ULPDU that the engine sent, or NULL. */
static const uint8_t *heard(size_t *n)
{
    const uint8_t *p = rig->in + rig->in_used;

    if (rig->in_len == rig->in_used) {
        return NULL;
    }
    *n = sg_get_be16(p);
    rig->in_used += (*n + 2 + 3) / 4 * 4 + 4;
    T_TRUE(rig->in_used <= rig->in_len);
    return p + 2;
}

/* ---- the engine asks ---- */

struct mpe_random_asked {
    enum sg_msg_kind kind;
    bool answered;
};

static struct mpe_random_asked asked[REQUESTS];
static unsigned asked_count, told; /* requests on the wire; completions reported */
static uint32_t answers;           /* on queue 3 */

static void hear_requests(unsigned ord)
{
    static const uint8_t ops[SG_MSG_KINDS] = {
        [SG_MSG_READ_REQ] = 0x41,
        [SG_MSG_FLUSH] = 0x4c,
        [SG_MSG_VERIFY] = 0x4e,
        [SG_MSG_ATOMIC_WRITE] = 0x50,
    };
    const uint8_t *u;
    size_t n;

    while ((u = heard(&n))) {
        T_TRUE(asked_count < REQUESTS);
        T_EQ_U64(u[1], ops[asked[asked_count].kind]);
        T_EQ_U64(sg_get_be32(u + 6), 1);
        T_EQ_U64(sg_get_be32(u + 10), asked_count + 1);
        asked_count++;
        T_TRUE(asked_count - told <= ord);
    }
}

/* Completions may have come up to the first request that is not answered. */
static void hear_completions(void)
{
    char want[2048] = "";
    size_t at = 0;

    for (; told < asked_count && asked[told].answered; told++) {
        const char *blank = at ? " " : "";

        if (asked[told].kind == SG_MSG_READ_REQ) {
            at += (size_t)sprintf(want + at, "%sread_done(4)", blank);
        } else if (asked[told].kind == SG_MSG_VERIFY) {
            at += (size_t)sprintf(want + at, "%smpe_done(V,%08x)", blank, told);
        } else {
            at += (size_t)sprintf(want + at, "%smpe_done(%c)", blank,
                                  asked[told].kind == SG_MSG_FLUSH ? 'F' : 'A');
        }
    }
    T_EQ_STR(rig_log(), want);
}

/* Answers the oldest Read, or the oldest of the others; false: there is none. */
static bool answer(bool read)
{
    uint8_t u[64];
    unsigned i;
    size_t n;

    for (i = told; i < asked_count; i++) {
        if (!asked[i].answered && (asked[i].kind == SG_MSG_READ_REQ) == read) {
            break;
        }
    }
    if (i == asked_count) {
        return false;
    }
    asked[i].answered = true;
    if (read) {
        memset(u, 0, sizeof(u));
        u[0] = 0xc1;
        u[1] = 0x42;
        sg_put_be32(u + 2, RIG_STAG_RW);
        sg_put_be64(u + 6, BASE + 4 * i);
        sg_put_be32(u + 14, i);
        say(u, 18);
        T_EQ_U64(sg_get_be32(rig->mem + BASE + 4 * i), i);
        return true;
    }
    n = untagged(u,
                 asked[i].kind == SG_MSG_FLUSH    ? 0x0d
                 : asked[i].kind == SG_MSG_VERIFY ? 0x0f
                                                  : 0x11,
                 3, ++answers);
    if (asked[i].kind == SG_MSG_VERIFY) {
        sg_put_be32(u + n, i);
        n += 4;
    }
    say(u, n);
    return true;
}

static void one_requester(void)
{
    struct sg_engine_config config = rig_config();
    unsigned posted = 0;

    config.mpe_draft = (uint8_t)(1 + prng(2));
    config.max_ord = (uint16_t)(1 + prng(8));
    rig_start(&config);
    rig_active("4d504120 49442052 65702046 72616d65 50020004 00080008");
    rig_log();
    rig->in_used = rig->in_len;
    asked_count = told = answers = 0;
    while (told < REQUESTS) {
        if (posted < REQUESTS && prng(3)) {
            const struct sg_msg m = random_request(posted);

            asked[posted++] = (struct mpe_random_asked){ m.kind, false };
            rig_post(&m);
            rig_settle();
        } else {
            bool read = prng(2);

            if (!answer(read)) {
                answer(!read);
            }
        }
        hear_completions();
        hear_requests(config.max_ord);
    }
    T_EQ_U64(rig->outstanding, 0);
    rig_stop();
}

static void requester(void)
{
    unsigned round;

    for (round = 0; round < ROUNDS; round++) {
        T_CONTEXT("round %u", round);
        state = round;
        one_requester();
    }
}

/* ---- the peer asks ---- */

static uint8_t want[REQUESTS][ATOMS * 8 + 18]; /* the ULPDU of each answer */
static size_t want_len[REQUESTS];
static uint8_t model[ATOMS * 8];

static size_t target(uint8_t *u, size_t n, uint32_t len, uint64_t to)
{
    sg_put_be32(u + n, RIG_STAG_RW);
    sg_put_be32(u + n + 4, len);
    sg_put_be64(u + n + 8, to);
    return n + 16;
}

/* Sends request number i and notes what must come back. */
static void ask(unsigned i, uint32_t *queue3)
{
    static const uint8_t ops[SG_MSG_KINDS] = {
        [SG_MSG_READ_REQ] = 0x01,
        [SG_MSG_FLUSH] = 0x0c,
        [SG_MSG_VERIFY] = 0x0e,
        [SG_MSG_ATOMIC_WRITE] = 0x10,
    };
    enum sg_msg_kind kind = random_kind();
    uint8_t u[128], *w = want[i];
    size_t n = untagged(u, ops[kind], 1, i + 1);
    uint32_t at;

    if (kind == SG_MSG_READ_REQ) {
        memset(u + n, 0, 28);
        sg_put_be32(u + n, 0xa);
        sg_put_be64(u + n + 4, i);
        sg_put_be32(u + n + 12, sizeof(model));
        sg_put_be32(u + n + 16, RIG_STAG_RW);
        sg_put_be64(u + n + 20, BASE);
        n += 28;
        w[0] = 0xc1;
        w[1] = 0x42;
        sg_put_be32(w + 2, 0xa);
        sg_put_be64(w + 6, i);
        memcpy(w + 14, model, sizeof(model));
        want_len[i] = 14 + sizeof(model);
        say(u, n);
        return;
    }
    want_len[i] = untagged(w, (uint8_t)(ops[kind] + 1), 3, ++*queue3);
    if (kind == SG_MSG_ATOMIC_WRITE) {
        at = 8 * prng(ATOMS);
        n = target(u, n, 8, BASE + at);
        sg_put_be64(u + n, state);
        n += 8;
        sg_put_le64(model + at, state);
    } else {
        n = target(u, n, sizeof(model), BASE);
    }
    if (kind == SG_MSG_FLUSH) {
        sg_put_be32(u + n, prng(4));
        n += 4;
    } else if (kind == SG_MSG_VERIFY) {
        sg_put_le32(w + 18, sg_crc32c(0, model, sizeof(model)));
        want_len[i] += 4;
        if (prng(2)) {
            memcpy(u + n, w + 18, 4);
            n += 4;
        }
    }
    say(u, n);
}

static unsigned hear_answers(unsigned answered)
{
    const uint8_t *u;
    size_t n;

    while ((u = heard(&n))) {
        if (n == 18 + 5 && u[1] == 0x43) {
            continue; /* a Send of the engine's own side */
        }
        T_TRUE(answered < REQUESTS);
        T_EQ_U64(n, want_len[answered]);
        T_EQ_MEM(u, want[answered], n);
        answered++;
    }
    return answered;
}

static void one_responder(void)
{
    struct sg_engine_config config = rig_config();
    unsigned sent = 0, answered = 0;
    uint32_t queue3 = 0;

    config.mpe_draft = (uint8_t)(1 + prng(2));
    rig_start(&config);
    rig_passive();
    memcpy(model, rig->mem + BASE, sizeof(model));
    while (answered < REQUESTS) {
        rig->exec_later = prng(3) ? 0 : prng(3);
        if (sent < REQUESTS && sent - answered < 8 && prng(4)) {
            ask(sent++, &queue3);
        } else if (prng(3)) {
            rig_pass(prng(3));
        } else {
            rig_send(0, 5);
            rig_settle();
        }
        answered = hear_answers(answered);
        rig_log();
    }
    T_EQ_MEM(rig->mem + BASE, model, sizeof(model));
    rig_stop();
}

static void responder(void)
{
    unsigned round;

    for (round = 0; round < ROUNDS; round++) {
        T_CONTEXT("round %u", round);
        state = round + 1000000;
        one_responder();
    }
}

static const struct t_case cases[] = {
    { "FLU-35 requests of ours in any mixture", requester },
    { "FLU-34 requests of the peer in any mixture", responder },
};

T_MAIN(cases)
