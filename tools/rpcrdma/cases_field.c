/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Headers that are sound XDR, but one field of which says what is not so. */
#include "cases.h"

enum { ARGUMENT = 64, RESULT = 4096 };

/* A Call that cannot be executed, ready to be sent; @arg is the maker's. */
typedef bool rr_maker(struct rr_session *s, uint32_t arg);

/*
 * Such a Call on a connection of its own, which ends or not.  The server goes on in any case, and
 * takes the next connection.
 */
static void refused(struct rr_session *s, rr_maker *make, uint32_t arg, bool may_end)
{
    if (!rr_open_usual(s)) {
        return;
    }
    if (rr_null(s) && make(s, arg) && rr_send(s)) {
        rr_expect_refusal(s, RPC_36, may_end);
    }
    rr_hang_up(s);
    if (s->verdict->skipped[0]) {
        return;
    }
    if (rr_open_usual(s)) {
        rr_null(s);
    } else {
        rr_find(&s->verdict->findings, s->rule, "the server takes no further connection: %s",
                s->dialer->why);
    }
    rr_hang_up(s);
}

/* ---- Positions ---- */

/* A WRITE whose argument is in a Read chunk. */
static bool make_write(struct rr_session *s)
{
    static const uint8_t data[ARGUMENT];

    return rr_begin(s, (struct rr_request){ RR_WANT_WRITE, .count = ARGUMENT, .data = data }) &&
           rr_reduce(s, 0, false);
}

/* The argument comes last: its Position is the end of the inline part. */
static bool displaced(struct rr_session *s, uint32_t by)
{
    if (!make_write(s)) {
        return false;
    }
    s->call.read[0].position += by;
    rr_note(s, "the Read chunk has Position %u", s->call.read[0].position);
    return true;
}

static void position_odd(struct rr_session *s)
{
    static const uint32_t by[] = { 1, 2, 3, UINT32_MAX };

    for (size_t i = 0; i < SG_ARRAY_SIZE(by) && !s->verdict->skipped[0]; i++) {
        refused(s, displaced, by[i], false);
    }
}

static void position_beyond(struct rr_session *s)
{
    static const uint32_t by[] = { 4, 1024, 0x100000, 0x7ffffff0 };

    for (size_t i = 0; i < SG_ARRAY_SIZE(by) && !s->verdict->skipped[0]; i++) {
        refused(s, displaced, by[i], false);
    }
}

/* ---- XIDs ---- */

/* The RPC message has another XID than the header. */
static bool begin_other_xid(struct rr_session *s)
{
    if (!rr_begin(s, (struct rr_request){ .want = RR_WANT_LONG_NULL })) {
        return false;
    }
    sg_put_be32(s->stream.octets, s->xid ^ 0x00550000);
    return true;
}

static void expect_chunk_error(struct rr_session *s)
{
    if (rr_send(s)) {
        rr_expect_error(s, RPC_39, s->call.xid, RR_VERSION, RR_ERR_CHUNK);
    }
}

static void other_xid(struct rr_session *s)
{
    if (begin_other_xid(s)) {
        expect_chunk_error(s);
    }
    if (!s->ended && begin_other_xid(s) && rr_make_long(s, 0)) {
        expect_chunk_error(s);
    }
}

/* ---- STags ---- */

/* The memory that was lent last is no longer there; the Call still has its STag. */
static bool withdraw(struct rr_session *s)
{
    s->port->ops->dereg(s->port, &s->loan[s->loans - 1]);
    rr_note(s, "the STag of the chunk is no longer valid");
    return true;
}

static bool argument_gone(struct rr_session *s, uint32_t arg)
{
    return make_write(s) && withdraw(s);
}

static bool result_gone(struct rr_session *s, uint32_t arg)
{
    return rr_begin(s, (struct rr_request){ RR_WANT_READ, .count = RESULT }) &&
           rr_offer(s, RESULT, 0, false) && withdraw(s);
}

static bool reply_gone(struct rr_session *s, uint32_t arg)
{
    uint32_t octets = s->reply_threshold + 200;

    return rr_begin(s, (struct rr_request){ RR_WANT_LIST, .count = octets }) &&
           rr_offer(s, octets + (size_t)RESULT, 0, true) && withdraw(s);
}

/* The RDMA operation fails, and that is fatal to the connection (RFC 8166 section 4.5.3). */
static void read_stag(struct rr_session *s)
{
    refused(s, argument_gone, 0, true);
}

static void write_stag(struct rr_session *s)
{
    refused(s, result_gone, 0, true);
}

static void reply_stag(struct rr_session *s)
{
    refused(s, reply_gone, 0, true);
}

static const struct rr_case cases[] = {
    { "position-odd", "a Position that is no multiple of 4 is refused", RPC_36, position_odd,
      true },
    { "position-beyond", "a Position beyond the message is refused", RPC_36, position_beyond,
      true },
    { "xid-differs", "another XID in the header than in the Call gets ERR_CHUNK", RPC_39,
      other_xid },
    { "read-stag", "a Read chunk that cannot be read harms nobody else", RPC_36, read_stag, true },
    { "write-stag", "a Write chunk that cannot be written harms nobody else", RPC_36, write_stag,
      true },
    { "reply-stag", "a Reply chunk that cannot be written harms nobody else", RPC_36, reply_stag,
      true },
};

const struct rr_cases rr_cases_field = { cases, SG_ARRAY_SIZE(cases) };
