/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: rpcrdma, whose input anybody may have captured.
 *
 * A header or private data: arbitrary octets, or valid ones with some octets changed.  A header
 * that parses is emitted again, as the same octets.  A capture: a connection with sound and with
 * random exchanges, messages, Writes, Reads and Terminates, in frames of which some are changed,
 * cut, lost or repeated.  The decoder must end, and report what it saw.
 */
#include <inttypes.h>

#include "exchanges.h"
#include "fuzz.h"

enum { MESSAGE_MAX = 600, STEPS_MAX = 24, FRAMES_MAX = 2048 };

static uint64_t headers, refused, found_private, captures, transactions, breaches, incomplete;

/* A copy of its own size, so that a sanitizer sees reads past the end. */
static void check_header(const uint8_t *octets, size_t len)
{
    static struct rr_header h;
    static uint8_t out[RR_HEADER_ROOM];
    uint8_t *copy = g_memdup2(octets, len);

    if (rr_header_parse(sg_span_of(copy, len), &h) == RR_OK) {
        sg_assert(h.len <= len && rr_header_emit(&h, out, sizeof(out)) == h.len);
        sg_assert(memcmp(out, copy, h.len) == 0);
        headers++;
    } else {
        refused++;
    }
    g_free(copy);
}

static void check_private(const uint8_t *octets, size_t len)
{
    uint8_t *copy = g_memdup2(octets, len);
    struct rr_private p = rr_private_parse(sg_span_of(copy, len));

    sg_assert(p.send_size >= RR_SIZE_MIN && p.send_size <= RR_SIZE_MAX);
    sg_assert(p.recv_size >= RR_SIZE_MIN && p.recv_size <= RR_SIZE_MAX);
    sg_assert(!p.present || p.at + RR_PRIVATE_LEN <= len);
    found_private += p.present;
    g_free(copy);
}

/* A header with random lists, as octets of which some are changed. */
static GByteArray *random_message(struct fuzz_in *in)
{
    struct rr_header *h = header(fuzz_below(in, 8), fuzz_below(in, 6));
    size_t len = fuzz_u8(in);
    GByteArray *rpc = g_byte_array_new(), *octets;

    h->vers = fuzz_rarely(in, 16) ? 2 : RR_VERSION;
    h->credit = fuzz_below(in, 9);
    h->err = fuzz_below(in, 4);
    for (unsigned n = fuzz_below(in, 3); n; n--) {
        rr_add_read(h, fuzz_u8(in), (struct rr_segment){ READ_STAG, fuzz_u8(in), fuzz_u16(in) });
    }
    for (unsigned n = fuzz_below(in, 3); n; n--) {
        rr_open_chunk(h);
        rr_add_segment(h, (struct rr_segment){ WRITE_STAG, fuzz_u8(in), fuzz_u16(in) });
    }
    if (fuzz_rarely(in, 3)) {
        rr_open_reply(h);
        rr_add_segment(h, (struct rr_segment){ REPLY_STAG, fuzz_u16(in), fuzz_u16(in) });
    }
    if (h->proc == RR_ERROR && h->err != RR_ERR_VERS) {
        h->err = RR_ERR_CHUNK;
    }
    words(rpc, (uint64_t)h->xid, (uint64_t)fuzz_below(in, 2), END);
    g_byte_array_append(rpc, in->p, (guint)SG_MIN(len, in->len));
    fuzz_bytes(in, &len);
    octets = message(h, rpc);
    for (unsigned n = fuzz_below(in, 3); n && octets->len; n--) {
        octets->data[fuzz_u16(in) % octets->len] = fuzz_u8(in);
    }
    g_byte_array_free(rpc, true);
    return octets;
}

static void random_header(struct fuzz_in *in)
{
    GByteArray *octets = random_message(in);

    check_header(octets->data, octets->len);
    g_byte_array_free(octets, true);
}

static void random_private(struct fuzz_in *in)
{
    uint8_t pd[64] = { 0 };
    size_t len = fuzz_below(in, 64), at = fuzz_below(in, 64);

    memcpy(pd, in->p, SG_MIN(len, in->len));
    if (at + RR_PRIVATE_LEN <= sizeof(pd)) {
        rr_private_emit(&(struct rr_private){ .send_size = fuzz_u32(in) }, pd + at);
    }
    check_private(pd, len);
}

/* ---- Captures ---- */

static void exchange(struct maker *m, struct fuzz_in *in, uint32_t xid)
{
    struct read3 r = { .count = fuzz_u16(in), .offered = fuzz_u16(in) % 4000 + 2 };
    struct write3 w = { .count = fuzz_u16(in) % 4000 };
    struct long3 l = { .call_proc = fuzz_below(in, 2), .reply_proc = fuzz_below(in, 2) };

    switch (fuzz_below(in, 4)) {
    case 0:
        r.result = r.placed = r.returned = fuzz_u16(in) % (uint32_t)r.offered;
        read3(m, xid, &r);
        break;
    case 1:
        w.chunk = w.count + fuzz_below(in, 2);
        w.position = WRITE3_POSITION + 4 * fuzz_rarely(in, 4);
        write3(m, xid, &w);
        break;
    case 2:
        l.call_position = (int)fuzz_below(in, 2) - 1;
        l.reply_chunk = fuzz_u8(in) & 1;
        l.reply_octets = fuzz_u16(in) % 8000;
        long3(m, xid, &l);
        break;
    default:
        null3(m, xid);
    }
}

static void step(struct maker *m, struct fuzz_in *in)
{
    enum rr_dir dir = fuzz_below(in, 2);
    uint32_t stag = WRITE_STAG * (1 + fuzz_below(in, 3));
    size_t len = fuzz_u8(in);
    const uint8_t *octets;
    GByteArray *sent;

    switch (fuzz_below(in, 8)) {
    case 0:
        octets = fuzz_bytes(in, &len);
        maker_write(m, dir, stag, fuzz_u32(in), sg_span_of(octets, len));
        break;
    case 1:
        octets = fuzz_bytes(in, &len);
        maker_read(m, dir, stag, fuzz_u32(in), sg_span_of(octets, len));
        break;
    case 2:
        maker_terminate(m, dir, 1, 2, fuzz_below(in, 6), fuzz_u16(in));
        break;
    case 3:
    case 4:
        exchange(m, in, fuzz_below(in, 8));
        break;
    default:
        sent = random_message(in);
        maker_send(m, dir, SG_OP_SEND + fuzz_below(in, 4), stag, sg_span_of(sent->data, sent->len));
        g_byte_array_free(sent, true);
    }
}

/* Frames change, shrink, vanish and come again. */
static void damage(struct maker *m, struct fuzz_in *in)
{
    static size_t order[FRAMES_MAX];
    size_t count = SG_MIN(m->held->len, FRAMES_MAX / 2), n = 0;

    for (size_t i = 0; i < count; i++) {
        GByteArray *frame = m->held->pdata[i];
        uint8_t what = in->len ? fuzz_u8(in) : 255;

        order[n++] = what == 0 ? SIZE_MAX : i;
        if (what == 1 && i) {
            order[n++] = i - 1;
        } else if (what == 2) {
            g_byte_array_set_size(frame, fuzz_u16(in) % (frame->len + 1));
        } else if (what == 3 && frame->len) {
            frame->data[fuzz_u16(in) % frame->len] ^= fuzz_u8(in);
        } else if (what == 4 && i) {
            order[n - 1] = order[n - 2];
            order[n - 2] = i;
        }
    }
    maker_release(m, order, n);
}

static void capture(struct fuzz_in *in)
{
    struct maker m;
    uint8_t bits = fuzz_u8(in);

    maker_init(&m);
    m.report.json = bits & 1;
    m.crc = bits & 2; /* without CRC more damage reaches the messages */
    m.markers = bits & 4;
    m.rev = bits & 8 ? SG_MPA_REV_2 : SG_MPA_REV_1;
    m.p2p = (bits & 24) == 24;
    m.ipv6 = bits & 32;
    m.client.present = bits & 64;
    m.server.remote_inv = bits & 128;
    m.hold = true;
    maker_open(&m);
    for (unsigned n = fuzz_below(in, STEPS_MAX); n && in->len; n--) {
        step(&m, in);
    }
    damage(&m, in);
    maker_finish(&m);
    captures++;
    transactions += m.report.transactions;
    breaches += m.report.findings;
    incomplete += strstr(m.out->str, "followed further") || strstr(m.out->str, "{\"incomplete\"");
    maker_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = { data, size };

    check_header(data, SG_MIN(size, MESSAGE_MAX));
    check_private(data, SG_MIN(size, MESSAGE_MAX));
    while (in.len) {
        switch (fuzz_below(&in, 4)) {
        case 0:
            random_header(&in);
            break;
        case 1:
            random_private(&in);
            break;
        default:
            capture(&in);
        }
    }
    return 0;
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len,
             "headers %" PRIu64 " refused %" PRIu64 " private %" PRIu64 " captures %" PRIu64
             " transactions %" PRIu64 " breaches %" PRIu64 " incomplete %" PRIu64,
             headers, refused, found_private, captures, transactions, breaches, incomplete);
    return headers && refused && found_private && captures && transactions && breaches &&
           incomplete;
}
