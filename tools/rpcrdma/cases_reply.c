/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cases.h"

enum { CHUNK = 4096, LARGE = 20003, FEW_SEGMENTS = 16, MANY_SEGMENTS = 128 };

static struct rr_findings *findings(struct rr_session *s)
{
    return &s->verdict->findings;
}

/* ---- Chunks that the Reply does not need ---- */

static void null_with(struct rr_session *s, unsigned chunks, size_t len, size_t piece, bool reply)
{
    bool done = rr_begin(s, (struct rr_request){ .want = RR_WANT_NULL });

    for (unsigned i = 0; i < chunks && done; i++) {
        done = rr_offer(s, len, piece, false);
    }
    if (done && (!reply || rr_offer(s, CHUNK, piece, true)) && rr_send(s)) {
        rr_expect_reply(s);
    }
}

static void unused_chunk(struct rr_session *s)
{
    null_with(s, 1, CHUNK, 0, false);
}

static void unused_segments(struct rr_session *s)
{
    null_with(s, 1, CHUNK, 1000, false);
}

static void unused_chunks(struct rr_session *s)
{
    null_with(s, 3, CHUNK, 2048, false);
}

static void empty_chunk(struct rr_session *s)
{
    null_with(s, 1, 0, 0, false);
}

static void reply_chunk(struct rr_session *s)
{
    null_with(s, 0, 0, 0, true);
}

static void reply_chunk_segments(struct rr_session *s)
{
    null_with(s, 0, 0, 128, true);
}

/*
 * Each responder takes 16 segments: Linux's clients send so many.  What is the limit?  More than it
 * takes may get ERR_CHUNK.
 */
static void many_segments(struct rr_session *s)
{
    unsigned most = 0;

    for (unsigned n = FEW_SEGMENTS; n <= MANY_SEGMENTS; n += FEW_SEGMENTS / 2) {
        if (!rr_begin(s, (struct rr_request){ .want = RR_WANT_NULL }) ||
            !rr_offer(s, n * (size_t)32, 32, true) || rr_call_octets(s) > s->call_threshold ||
            !rr_send(s)) {
            break;
        }
        if (rr_hear(s, s->o->reply_ms) != RR_HEARD_MESSAGE) {
            rr_find(findings(s), RPC_34, "a Reply chunk of %u segments got no answer", n);
            break;
        }
        if (s->fault == RR_OK && s->reply.proc == RR_ERROR && most) {
            break;
        }
        if (!rr_judge_reply(s)) {
            break;
        }
        most = n;
    }
    rr_note(s, "the server takes Reply chunks of %u segments", most);
}

static void both_lists(struct rr_session *s)
{
    null_with(s, 1, CHUNK, 1024, true);
}

/* ---- Results ---- */

/* What the server has at @offset, read inline in pieces. */
static bool read_inline(struct rr_session *s, uint8_t *to, uint32_t len)
{
    uint32_t piece = s->reply_threshold / 2;

    for (uint32_t at = 0; at < len; at += piece) {
        uint32_t part = SG_MIN(piece, len - at);
        struct rr_results results;

        if (!rr_begin(s, (struct rr_request){ RR_WANT_READ, .offset = at, .count = part }) ||
            !rr_send(s) || !rr_expect_reply(s) || !rr_results(s, &results)) {
            return false;
        }
        if (!rr_result_octets(s, &results, 0, to + at, part)) {
            return rr_trouble(s, "the server has no %u octets to read; give it a longer file",
                              at + part);
        }
    }
    return true;
}

/* The results that came are those that the server has; @want is of the first result. */
static void compare(struct rr_session *s, unsigned n, uint32_t len, const uint8_t *want)
{
    static uint8_t got[LARGE];
    struct rr_results results;

    if (!rr_results(s, &results)) {
        return;
    }
    if (!rr_result_octets(s, &results, n, got, len)) {
        rr_find(findings(s), RPC_15, "result %u does not have %u octets", n, len);
    } else if (memcmp(got, want, len) != 0) {
        rr_find(findings(s), RPC_15, "result %u has other octets than the server's memory", n);
    }
}

/* A result of @len octets, with a Write chunk of @room octets in segments of @piece. */
static void read_chunk(struct rr_session *s, const uint8_t *want, uint32_t len, size_t room,
                       size_t piece)
{
    if (rr_begin(s, (struct rr_request){ RR_WANT_READ, .count = len }) &&
        rr_offer(s, room, piece, false) && rr_send(s) && rr_expect_reply(s)) {
        if (room && !rr_chunk_octets(&s->reply, &s->reply.chunk[0])) {
            rr_find(findings(s), RPC_28, "a result of %u octets is inline", len);
        }
        compare(s, 0, len, want);
    }
}

static void result(struct rr_session *s)
{
    static const uint32_t sizes[] = { 4, 1, 2, 3, 5, 1021, 4099 };
    static uint8_t want[LARGE];

    if (!read_inline(s, want, 4099)) {
        return;
    }

    for (size_t i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
        read_chunk(s, want, sizes[i], sizes[i] + (size_t)CHUNK, 0); /* more than is needed */
        read_chunk(s, want, sizes[i], sg_align_up(sizes[i], 4), 0); /* a pad would be seen */
        read_chunk(s, want, sizes[i], sizes[i], 0);                 /* a pad would not fit */
    }
}

static void result_segments(struct rr_session *s)
{
    static uint8_t want[LARGE];

    if (read_inline(s, want, LARGE)) {
        read_chunk(s, want, 1001, 4000, 500);
        read_chunk(s, want, 1001, 1001, 77);
        read_chunk(s, want, 1000, 3000, 1000);
        read_chunk(s, want, LARGE, LARGE, 4096);
    }
}

static void result_empty_chunk(struct rr_session *s)
{
    static uint8_t want[LARGE];

    if (read_inline(s, want, 500)) {
        read_chunk(s, want, 500, 0, 0);
    }
}

/* Two results: the second uses the second chunk. */
static void two_results(struct rr_session *s, uint32_t first, size_t room, size_t second_room)
{
    static uint8_t want[LARGE];
    enum { SECOND = 703 };

    if (!read_inline(s, want, SECOND) ||
        !rr_begin(s, (struct rr_request){ RR_WANT_TWO, .count = first, .second = SECOND }) ||
        !rr_offer(s, room, 0, false) || (second_room && !rr_offer(s, second_room, 0, false)) ||
        !rr_send(s) || !rr_expect_reply(s)) {
        return;
    }
    compare(s, 0, first, want);
    compare(s, 1, SECOND, want);
}

static void results(struct rr_session *s)
{
    two_results(s, 501, 1024, 1024); /* each in its chunk */
    two_results(s, 501, 1024, 0);    /* one chunk: the second result is inline */
    two_results(s, 501, 0, 1024);    /* an empty chunk is for the first result */
}

/* NFS may also return less than was asked for, or an error of its own. */
static void chunk_too_small(struct rr_session *s)
{
    enum { ASKED = 1000, ROOM = 900 };

    if (!rr_begin(s, (struct rr_request){ RR_WANT_READ, .count = ASKED }) ||
        !rr_offer(s, ROOM, 0, false) || !rr_send(s)) {
        return;
    }
    if (s->o->service == &rr_service_echo) {
        rr_expect_error(s, RPC_36, s->xid, RR_VERSION, RR_ERR_CHUNK);
    } else if (rr_hear(s, s->o->reply_ms) != RR_HEARD_MESSAGE) {
        rr_find(findings(s), RPC_36, "no answer within %u ms", s->o->reply_ms);
    } else if (s->reply.proc == RR_ERROR || rr_judge_reply(s)) {
        rr_null(s);
    }
}

/* ---- Long Replies ---- */

static uint32_t beyond(const struct rr_session *s)
{
    return s->reply_threshold + 200;
}

static void list(struct rr_session *s, size_t room, size_t piece)
{
    struct rr_results got;

    if (!rr_begin(s, (struct rr_request){ RR_WANT_LIST, .count = beyond(s) }) ||
        !rr_offer(s, room, piece, true) || !rr_send(s) || !rr_expect_reply(s)) {
        return;
    }
    if (s->reply.proc != RR_NOMSG) {
        rr_find(findings(s), RPC_19, "a Reply of more than %u octets is in RDMA_MSG", beyond(s));
    }
    rr_results(s, &got);
}

static void long_reply(struct rr_session *s)
{
    list(s, beyond(s) + CHUNK, 0);
}

static void long_reply_segments(struct rr_session *s)
{
    list(s, beyond(s) + CHUNK, 1000);
    list(s, beyond(s) + CHUNK, 541);
}

static void long_reply_without(struct rr_session *s)
{
    if (rr_begin(s, (struct rr_request){ RR_WANT_LIST, .count = beyond(s) }) && rr_send(s)) {
        rr_expect_error(s, RPC_36, s->xid, RR_VERSION, RR_ERR_CHUNK);
    }
}

static void reply_chunk_too_small(struct rr_session *s)
{
    if (rr_begin(s, (struct rr_request){ RR_WANT_LIST, .count = beyond(s) }) &&
        rr_offer(s, 200, 0, true) && rr_send(s)) {
        rr_expect_error(s, RPC_36, s->xid, RR_VERSION, RR_ERR_CHUNK);
    }
}

static const struct rr_case cases[] = {
    { "unused-chunk", "a Write chunk that is not needed comes back unused", RPC_30, unused_chunk },
    { "unused-segments", "also one of several segments", RPC_15, unused_segments },
    { "unused-chunks", "three of them come back", RPC_30, unused_chunks },
    { "empty-chunk", "a Write chunk without segments comes back so", RPC_32, empty_chunk },
    { "reply-chunk", "a Reply chunk comes back, used or not", RPC_34, reply_chunk },
    { "reply-chunk-segments", "also one of many short segments", RPC_34, reply_chunk_segments },
    { "many-segments", "a Reply chunk of 16 segments comes back", RPC_34, many_segments },
    { "both-lists", "a Write chunk and a Reply chunk come back together", RPC_34, both_lists },
    { "result", "a result is in its Write chunk, without pad", RPC_16, result },
    { "result-segments", "also over several segments", RPC_15, result_segments },
    { "result-empty-chunk", "an empty Write chunk asks for an inline result", RPC_32,
      result_empty_chunk },
    { "results", "of two results each uses its own Write chunk", RPC_29, results },
    { "chunk-too-small", "a Write chunk that is too small gets ERR_CHUNK", RPC_36,
      chunk_too_small },
    { "long-reply", "a Reply above the threshold is in the Reply chunk", RPC_19, long_reply },
    { "long-reply-segments", "also over several segments", RPC_34, long_reply_segments },
    { "long-reply-without", "without a Reply chunk it gets ERR_CHUNK", RPC_36, long_reply_without },
    { "reply-chunk-too-small", "a Reply chunk that is too small gets ERR_CHUNK", RPC_36,
      reply_chunk_too_small },
};

const struct rr_cases rr_cases_reply = { cases, SG_ARRAY_SIZE(cases) };
