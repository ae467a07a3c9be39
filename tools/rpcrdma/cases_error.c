/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cases.h"

enum { ROOM = 512 };

/* A message of words, which the case puts together itself. */
struct hand_made {
    uint8_t octets[ROOM];
    size_t len;
};

static void put(struct hand_made *w, uint32_t word)
{
    sg_assert(w->len + 4 <= ROOM);
    sg_put_be32(w->octets + w->len, word);
    w->len += 4;
}

/* The four fixed fields with a new XID, then @count words. */
static struct hand_made start(struct rr_session *s, uint32_t vers, uint32_t proc, unsigned count,
                              ...)
{
    struct hand_made w = { .len = 0 };
    va_list ap;

    s->xid++;
    put(&w, s->xid);
    put(&w, vers);
    put(&w, RR_ASKED_CREDITS);
    put(&w, proc);
    va_start(ap, count);
    for (unsigned i = 0; i < count; i++) {
        put(&w, va_arg(ap, uint32_t));
    }
    va_end(ap);
    return w;
}

static bool say(struct rr_session *s, const struct hand_made *w, const char *what)
{
    return rr_send_octets(s, sg_span_of(w->octets, w->len), what);
}

/* A NULL call behind a header, for messages whose payload is sound. */
static void put_null(struct rr_session *s, struct hand_made *w)
{
    uint32_t xid = s->xid;

    if (rr_begin(s, (struct rr_request){ .want = RR_WANT_NULL })) {
        sg_put_be32(s->stream.octets, xid);
        memcpy(w->octets + w->len, s->stream.octets, s->stream.len);
        w->len += s->stream.len;
    }
    s->xid = xid;
}

static void expect_chunk_error(struct rr_session *s, const struct hand_made *w, const char *what)
{
    uint32_t xid = s->xid;

    if (say(s, w, what)) {
        rr_expect_error(s, RPC_39, xid, RR_VERSION, RR_ERR_CHUNK);
    }
}

/* ---- Versions ---- */

static void versions(struct rr_session *s)
{
    static const uint32_t other[] = { 2, 0, 3, 0x100, UINT32_MAX };

    for (size_t i = 0; i < SG_ARRAY_SIZE(other); i++) {
        struct hand_made w = start(s, other[i], RR_MSG, 3, 0u, 0u, 0u);
        uint32_t xid = s->xid;

        put_null(s, &w);
        if (!say(s, &w, "RDMA_MSG of another version")) {
            return;
        }
        rr_expect_error(s, RPC_38, xid, other[i], RR_ERR_VERS);
    }
}

/* ---- Procedures ---- */

static void msgp(struct rr_session *s)
{
    /* Alignment and threshold are the two fields that only RDMA_MSGP has. */
    struct hand_made w = start(s, RR_VERSION, RR_MSGP, 5, 16u, 4096u, 0u, 0u, 0u);
    uint32_t xid = s->xid;

    put_null(s, &w);
    if (say(s, &w, "RDMA_MSGP")) {
        rr_expect_error(s, RPC_41, xid, RR_VERSION, RR_ERR_CHUNK);
    }
}

/* Revision 06 of the draft answers it (its section 5.6.2), revision 07 and RFC 8166 drop it. */
static void done(struct rr_session *s)
{
    struct hand_made w = start(s, RR_VERSION, RR_DONE, 3, 0u, 0u, 0u);
    uint32_t xid = s->xid;

    if (!say(s, &w, "RDMA_DONE")) {
        return;
    }
    if (!s->o->any_edition && s->o->edition == RR_EDITION_06) {
        rr_expect_error(s, RPC_42, xid, RR_VERSION, RR_ERR_CHUNK);
    } else {
        rr_expect_silence(s, RPC_42);
    }
}

static void error_of_requester(struct rr_session *s)
{
    struct hand_made w = start(s, RR_VERSION, RR_ERROR, 3, (uint32_t)RR_ERR_CHUNK, 0u, 0u);

    if (say(s, &w, "RDMA_ERROR, ERR_CHUNK")) {
        rr_expect_silence(s, RPC_26);
    }
    w = start(s, RR_VERSION, RR_ERROR, 3, (uint32_t)RR_ERR_VERS, 1u, 1u);
    if (say(s, &w, "RDMA_ERROR, ERR_VERS")) {
        rr_expect_silence(s, RPC_26);
    }
}

static void unknown_procedures(struct rr_session *s)
{
    static const uint32_t procs[] = { 5, 6, 0x100, UINT32_MAX };

    for (size_t i = 0; i < SG_ARRAY_SIZE(procs); i++) {
        struct hand_made w = start(s, RR_VERSION, procs[i], 3, 0u, 0u, 0u);

        put_null(s, &w);
        expect_chunk_error(s, &w, "an unknown procedure");
    }
}

/* ---- Lengths ---- */

static void short_messages(struct rr_session *s)
{
    static const uint8_t lengths[] = { 27, 24, 16, 15, 4, 3, 0 };

    for (size_t i = 0; i < SG_ARRAY_SIZE(lengths); i++) {
        struct hand_made w = start(s, RR_VERSION, RR_MSG, 3, 0u, 0u, 0u);

        w.len = lengths[i];
        if (!say(s, &w, "a message that is cut off")) {
            return;
        }
        rr_expect_silence(s, RPC_35);
    }
}

/* ---- Lists ---- */

/* Each runs past the end of the message, in one of the three lists. */
static void cut_lists(struct rr_session *s)
{
    struct hand_made w = start(s, RR_VERSION, RR_MSG, 4, 1u, 0u, 7u, 100u);

    expect_chunk_error(s, &w, "a Read list that is cut off");
    w = start(s, RR_VERSION, RR_MSG, 4, 0u, 1u, 9u, 7u);
    expect_chunk_error(s, &w, "a Write list that is cut off");
    w = start(s, RR_VERSION, RR_NOMSG, 5, 0u, 0u, 1u, 2u, 7u);
    expect_chunk_error(s, &w, "a Reply chunk that is cut off");
}

/* A count of segments that no message can hold. */
static void huge_counts(struct rr_session *s)
{
    struct hand_made w = start(s, RR_VERSION, RR_MSG, 7, 0u, 1u, UINT32_MAX, 7u, 8u, 0u, 0u);

    expect_chunk_error(s, &w, "a Write chunk of 2^32 - 1 segments");
    w = start(s, RR_VERSION, RR_NOMSG, 7, 0u, 0u, 1u, 0x10000000u, 7u, 0u, 0u);
    expect_chunk_error(s, &w, "a Reply chunk of 2^28 segments");
}

/* An optional-data flag is 0 or 1. */
static void flags(struct rr_session *s)
{
    struct hand_made w = start(s, RR_VERSION, RR_MSG, 3, 2u, 0u, 0u);

    put_null(s, &w);
    expect_chunk_error(s, &w, "a Read list with the flag 2");
    w = start(s, RR_VERSION, RR_MSG, 3, 0u, UINT32_MAX, 0u);
    put_null(s, &w);
    expect_chunk_error(s, &w, "a Write list with the flag 2^32 - 1");
    w = start(s, RR_VERSION, RR_MSG, 3, 0u, 0u, 2u);
    put_null(s, &w);
    expect_chunk_error(s, &w, "a Reply chunk with the flag 2");
}

static void nomsg_without_chunks(struct rr_session *s)
{
    struct hand_made w = start(s, RR_VERSION, RR_NOMSG, 3, 0u, 0u, 0u);

    expect_chunk_error(s, &w, "RDMA_NOMSG without chunks");
}

/* A Reply on a connection on which the server has called nothing. */
static void stray_reply(struct rr_session *s)
{
    struct hand_made w = start(s, RR_VERSION, RR_MSG, 3, 0u, 0u, 0u);

    put(&w, s->xid);
    put(&w, RR_REPLY);
    for (unsigned i = 0; i < 4; i++) {
        put(&w, 0);
    }
    if (say(s, &w, "a Reply that nobody waits for")) {
        rr_expect_silence(s, RPC_37);
    }
}

static const struct rr_case cases[] = {
    { "versions", "another version gets ERR_VERS, with the range 1 to 1", RPC_38, versions },
    { "msgp", "RDMA_MSGP gets ERR_CHUNK", RPC_41, msgp },
    { "done", "RDMA_DONE gets no answer (in revision 06: ERR_CHUNK)", RPC_42, done },
    { "error-of-requester", "RDMA_ERROR gets no answer", RPC_26, error_of_requester },
    { "unknown-procedure", "an unknown procedure gets ERR_CHUNK", RPC_39, unknown_procedures },
    { "short", "fewer than 28 octets get no answer", RPC_35, short_messages },
    { "cut-list", "a list past the end gets ERR_CHUNK", RPC_39, cut_lists },
    { "huge-count", "a count that cannot be true gets ERR_CHUNK", RPC_39, huge_counts },
    { "flag", "an optional-data flag above 1 gets ERR_CHUNK", RPC_39, flags },
    { "nomsg-without-chunks", "RDMA_NOMSG without a message gets ERR_CHUNK", RPC_39,
      nomsg_without_chunks },
    { "stray-reply", "a Reply that answers no Call gets no answer", RPC_37, stray_reply },
};

const struct rr_cases rr_cases_error = { cases, SG_ARRAY_SIZE(cases) };
