/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cases.h"

enum { LARGE = 20003, PIECE_MAX = 2048 };

/* Octets that differ from those of the server's memory, and from run to run of a case. */
static void fill(uint8_t *octets, uint32_t len, unsigned seed)
{
    for (uint32_t i = 0; i < len; i++) {
        octets[i] = (uint8_t)(i * 13 + seed * 31 + 5);
    }
}

static void long_null(struct rr_session *s, size_t piece)
{
    if (rr_begin(s, (struct rr_request){ .want = RR_WANT_LONG_NULL }) && rr_make_long(s, piece) &&
        rr_send(s)) {
        rr_expect_reply(s);
    }
}

static void long_call(struct rr_session *s)
{
    long_null(s, 0);
}

static void long_call_segments(struct rr_session *s)
{
    long_null(s, 100);
    long_null(s, 33);
}

/* Reads back inline what was written, in pieces that fit, and compares. */
static void compare(struct rr_session *s, const uint8_t *octets, uint32_t len)
{
    uint32_t piece = SG_MIN(s->reply_threshold / 2, PIECE_MAX);
    uint8_t got[PIECE_MAX];

    for (uint32_t at = 0; at < len; at += piece) {
        uint32_t part = SG_MIN(piece, len - at);
        struct rr_results results;

        if (!rr_begin(s, (struct rr_request){ RR_WANT_READ, .offset = at, .count = part }) ||
            !rr_send(s) || !rr_expect_reply(s) || !rr_results(s, &results)) {
            return;
        }
        if (!rr_result_octets(s, &results, 0, got, part) || memcmp(got, octets + at, part) != 0) {
            rr_find(&s->verdict->findings, RPC_11,
                    "octets %u to %u of the argument did not arrive as they were sent", at,
                    at + part - 1);
            return;
        }
    }
}

enum form { INLINE_FORM, REDUCED, REDUCED_WITH_PAD, LONG_FORM };

static void write_octets(struct rr_session *s, uint32_t len, enum form form, size_t piece)
{
    static uint8_t data[LARGE];
    struct rr_results results;

    fill(data, len, len + form);
    if (!rr_begin(s, (struct rr_request){ RR_WANT_WRITE, .count = len, .data = data }) ||
        (form == LONG_FORM && !rr_make_long(s, piece)) ||
        ((form == REDUCED || form == REDUCED_WITH_PAD) &&
         !rr_reduce(s, piece, form == REDUCED_WITH_PAD))) {
        return;
    }
    if (rr_send(s) && rr_expect_reply(s) && rr_results(s, &results)) {
        compare(s, data, len);
    }
}

static const uint32_t sizes[] = { 4, 1, 2, 3, 5, 1021, 4099 };

static void argument_inline(struct rr_session *s)
{
    for (uint32_t len = 1; len < 8; len++) {
        write_octets(s, len, INLINE_FORM, 0);
    }
}

static void argument(struct rr_session *s)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
        write_octets(s, sizes[i], REDUCED, 0);
    }
}

static void argument_pad(struct rr_session *s)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
        write_octets(s, sizes[i], REDUCED_WITH_PAD, 0);
    }
}

static void argument_segments(struct rr_session *s)
{
    write_octets(s, 4099, REDUCED, 1000);
    write_octets(s, 4099, REDUCED, 333);
    write_octets(s, 1003, REDUCED_WITH_PAD, 101);
}

static void argument_large(struct rr_session *s)
{
    write_octets(s, LARGE, REDUCED, 4096);
}

/* Above every inline threshold there is by default: the whole message is in the chunk. */
static void argument_long_call(struct rr_session *s)
{
    write_octets(s, 6001, LONG_FORM, 0);
    write_octets(s, 6002, LONG_FORM, 1001);
}

static const struct rr_case cases[] = {
    { "long-call", "a Call in a Read chunk at Position 0 is read", RPC_18, long_call },
    { "long-call-segments", "also in several segments, of odd lengths", RPC_18,
      long_call_segments },
    { "argument-inline", "an argument inline is taken with its pad", RPC_21, argument_inline },
    { "argument", "an argument in a Read chunk without its pad is taken", RPC_13, argument },
    { "argument-pad", "an argument in a Read chunk with its pad is taken", RPC_13, argument_pad },
    { "argument-segments", "also in several segments, of odd lengths", RPC_13, argument_segments },
    { "argument-large", "an argument of 20003 octets is taken", RPC_13, argument_large },
    { "argument-long-call", "a long Call with an argument of 6001 octets", RPC_20,
      argument_long_call },
};

const struct rr_cases rr_cases_call = { cases, SG_ARRAY_SIZE(cases) };
