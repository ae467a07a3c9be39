/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private data in every form.  What the server took from it shows in its Replies: above the
 * threshold that follows from it they must be long.
 */
#include "cases.h"

/* A list whose Reply is between the two thresholds: long with one of them only. */
static void list_of(struct rr_session *s, uint32_t octets)
{
    struct rr_results results;

    if (rr_begin(s, (struct rr_request){ RR_WANT_LIST, .count = octets }) &&
        rr_offer(s, octets + (size_t)4096, 0, true) && rr_send(s) && rr_expect_reply(s)) {
        rr_results(s, &results);
    }
}

/* One connection: NULL, a Reply around each threshold, a Call with a chunk. */
static void use(struct rr_session *s, const struct rr_opening *opening)
{
    if (!rr_open(s, opening)) {
        return;
    }
    if (rr_null(s)) {
        list_of(s, 400);
        list_of(s, 1200);
        list_of(s, 2200);
        if (rr_begin(s, (struct rr_request){ .want = RR_WANT_LONG_NULL }) && rr_make_long(s, 0) &&
            rr_send(s)) {
            rr_expect_reply(s);
        }
    }
    rr_hang_up(s);
}

static void sizes(struct rr_session *s, uint32_t send, uint32_t receive, bool invalidate)
{
    struct rr_opening o = {
        .ours = { .present = true,
                  .remote_inv = invalidate,
                  .send_size = send,
                  .recv_size = receive },
    };

    use(s, &o);
}

static void absent(struct rr_session *s)
{
    struct rr_opening o = { .ours = { .present = false } };

    use(s, &o);
}

static void smallest(struct rr_session *s)
{
    sizes(s, RR_SIZE_MIN, RR_SIZE_MIN, false);
}

static void unequal(struct rr_session *s)
{
    sizes(s, 4096, 1024, false);
    sizes(s, 1024, 4096, false);
    sizes(s, 2048, 3072, false);
}

/* One octet has the size: its ends, and where a signed one would turn negative. */
static void all_sizes(struct rr_session *s)
{
    static const uint32_t units[] = { 1, 2, 3, 5, 8, 64, 127, 128, 129, 255, 256 };

    for (size_t i = 0; i < SG_ARRAY_SIZE(units); i++) {
        sizes(s, units[i] * RR_SIZE_UNIT, units[i] * RR_SIZE_UNIT, false);
    }
}

static void largest(struct rr_session *s)
{
    sizes(s, RR_SIZE_MAX, 65536, false);
}

static bool can_invalidate(struct rr_session *s)
{
    if (!s->dialer->invalidates) {
        snprintf(s->verdict->skipped, sizeof(s->verdict->skipped),
                 "the server cannot invalidate memory of this RDMA device");
    }
    return s->dialer->invalidates;
}

static void invalidation(struct rr_session *s)
{
    if (can_invalidate(s)) {
        sizes(s, 4096, 4096, true);
        sizes(s, 4096, 4096, false);
    }
}

/* Two long Calls, each with a Read chunk of its own; false: they could not be sent. */
static bool two_calls(struct rr_session *s)
{
    if (!rr_begin(s, (struct rr_request){ .want = RR_WANT_LONG_NULL }) || !rr_make_long(s, 0) ||
        !rr_send(s)) {
        return false;
    }
    /* What rr_begin() would do, but the first Call keeps its memory. */
    s->call.xid = ++s->xid;
    sg_put_be32(s->stream.octets, s->xid);
    s->call.reads = 0;
    return rr_make_long(s, 0) && rr_send(s);
}

/* rr_hear() judges the STag that a Reply invalidates. */
static void own_stag(struct rr_session *s)
{
    struct rr_opening o = rr_opening_default();

    if (!can_invalidate(s)) {
        return;
    }
    o.ours.remote_inv = true;
    if (!rr_open(s, &o)) {
        return;
    }
    if (rr_null(s) && s->granted < 2) {
        snprintf(s->verdict->skipped, sizeof(s->verdict->skipped), "the server grants one credit");
    } else if (!s->ended && two_calls(s)) {
        for (unsigned i = 0; i < 2; i++) {
            if (rr_hear(s, s->o->reply_ms) != RR_HEARD_MESSAGE) {
                rr_find(&s->verdict->findings, RPC_22, "%u of 2 Calls were answered", i);
                break;
            }
            rr_judge_reply(s);
        }
    }
    rr_hang_up(s);
}

/* Octets as they are; the peer is to find in them what rr_private_parse() finds. */
static void octets(struct rr_session *s, const uint8_t *data, size_t len)
{
    struct sg_span span = sg_span_of(data, len);
    struct rr_opening o = { .octets = &span };

    use(s, &o);
}

/* Where the sound form has 4096 octets, no R. */
#define SOUND 0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3

static void behind_foreign(struct rr_session *s)
{
    static const uint8_t even[] = { 1, 2, 3, 4, SOUND };
    static const uint8_t odd[] = { 0xf6, SOUND, 9, 9 };
    static const uint8_t thrice[] = { 0xab, 0xf6, 0xab, SOUND };

    octets(s, even, sizeof(even));
    octets(s, odd, sizeof(odd));
    octets(s, thrice, sizeof(thrice));
}

static void foreign(struct rr_session *s)
{
    static const uint8_t other[] = { 0xf6, 0xab, 0x0e, 0x19, 1, 0, 3, 3, 0, 0, 0, 0 };
    static const uint8_t swapped[] = { 0x18, 0x0e, 0xab, 0xf6, 1, 0, 3, 3 };

    octets(s, other, sizeof(other));
    octets(s, swapped, sizeof(swapped));
}

static void other_version(struct rr_session *s)
{
    static const uint8_t two[] = { 0xf6, 0xab, 0x0e, 0x18, 2, 0, 3, 3 };
    static const uint8_t zero[] = { 0xf6, 0xab, 0x0e, 0x18, 0, 0, 3, 3 };

    octets(s, two, sizeof(two));
    octets(s, zero, sizeof(zero));
}

static void truncated(struct rr_session *s)
{
    static const uint8_t sound[] = { SOUND };

    octets(s, sound, 7);
    octets(s, sound, 6);
    octets(s, sound, 4);
    octets(s, sound, 3);
}

static void reserved_bits(struct rr_session *s)
{
    static const uint8_t bits[] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0xfe, 3, 3 };

    octets(s, bits, sizeof(bits));
}

static void reconnect(struct rr_session *s)
{
    sizes(s, 4096, 4096, false);
    absent(s);
    sizes(s, 4096, 4096, false);
    smallest(s);
}

static const struct rr_case cases[] = {
    { "private-absent", "without private data the thresholds are 1024", PVT_06, absent, true },
    { "private-smallest", "sizes of 1024 are kept", RPC_43, smallest, true },
    { "private-unequal", "each direction has its own threshold", RPC_43, unequal, true },
    { "private-sizes", "a size may be anything from 1024 to 262144", RPC_43, all_sizes, true },
    { "private-largest", "sizes above the server's own are harmless", RPC_43, largest, true },
    { "private-invalidation", "only both sides' R allow to invalidate", PVT_05, invalidation,
      true },
    { "private-invalidation-xid", "a Reply invalidates only memory of its own Call", PVT_04,
      own_stag, true },
    { "private-offset", "private data is found behind other octets", PVT_09, behind_foreign, true },
    { "private-foreign", "foreign private data is none", PVT_07, foreign, true },
    { "private-version", "private data of another version is none", PVT_08, other_version, true },
    { "private-truncated", "private data that is cut off is none", PVT_08, truncated, true },
    { "private-reserved", "reserved bits are ignored", PVT_03, reserved_bits, true },
    { "private-reconnect", "each connection has settings of its own", PVT_01, reconnect, true },
};

const struct rr_cases rr_cases_private = { cases, SG_ARRAY_SIZE(cases) };
