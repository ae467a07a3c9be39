/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * XDR filters work in both directions, so each function here parses or emits, as its XDR stream
 * says.  The lists are walked item by item, with the bounds of enum rr_limits.
 */
#include "header.h"

#include "header_xdr.h"

const char *rr_fault_name(enum rr_fault fault)
{
    static const char *const names[] = {
        [RR_OK] = "sound",
        [RR_SHORT] = "shorter than a header",
        [RR_VERS] = "of another version",
        [RR_BAD_PROC] = "of an unknown procedure",
        [RR_CUT] = "cut off in a list",
        [RR_BAD_FLAG] = "with a flag that is neither 0 nor 1",
        [RR_BAD_ERR] = "with an unknown error",
        [RR_TOO_MANY] = "with more segments than this program holds",
    };

    return names[fault];
}

const char *rr_proc_name(uint32_t proc)
{
    static const char *const names[] = { "RDMA_MSG", "RDMA_NOMSG", "RDMA_MSGP", "RDMA_DONE",
                                         "RDMA_ERROR" };

    return proc < SG_ARRAY_SIZE(names) ? names[proc] : "unknown procedure";
}

bool rr_add_read(struct rr_header *h, uint32_t position, struct rr_segment s)
{
    if (h->reads == RR_READS_MAX) {
        return false;
    }
    h->read[h->reads++] = (struct rr_read){ position, s };
    return true;
}

bool rr_open_chunk(struct rr_header *h)
{
    if (h->chunks == RR_CHUNKS_MAX) {
        return false;
    }
    h->chunk[h->chunks++] = (struct rr_chunk){ .first = h->segments };
    return true;
}

bool rr_open_reply(struct rr_header *h)
{
    h->has_reply = true;
    h->reply = (struct rr_chunk){ .first = h->segments };
    return true;
}

bool rr_add_segment(struct rr_header *h, struct rr_segment s)
{
    struct rr_chunk *c = h->has_reply ? &h->reply : &h->chunk[h->chunks - 1];

    if (h->segments == RR_SEGMENTS_MAX) {
        return false;
    }
    h->segment[h->segments++] = s;
    c->count++;
    return true;
}

uint64_t rr_chunk_octets(const struct rr_header *h, const struct rr_chunk *c)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < c->count; i++) {
        sum += h->segment[c->first + i].length;
    }
    return sum;
}

uint64_t rr_position_octets(const struct rr_header *h, uint32_t position)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < h->reads; i++) {
        if (h->read[i].position == position) {
            sum += h->read[i].segment.length;
        }
    }
    return sum;
}

/* ---- One piece ---- */

static bool code_segment(XDR *x, struct rr_segment *s)
{
    rr_xdr_segment piece = { s->handle, s->length, s->offset };
    bool done = xdr_rr_xdr_segment(x, &piece);

    *s = (struct rr_segment){ piece.handle, piece.length, piece.offset };
    return done;
}

static bool code_read(XDR *x, struct rr_read *r)
{
    rr_xdr_read piece = { r->position,
                          { r->segment.handle, r->segment.length, r->segment.offset } };
    bool done = xdr_rr_xdr_read(x, &piece);

    r->position = piece.position;
    r->segment =
        (struct rr_segment){ piece.segment.handle, piece.segment.length, piece.segment.offset };
    return done;
}

/* The flag in front of an item of a list; *more is what it says. */
static enum rr_fault code_flag(XDR *x, bool *more)
{
    u_int flag = *more;

    if (!xdr_u_int(x, &flag)) {
        return RR_CUT;
    }
    *more = flag == 1;
    return flag > 1 ? RR_BAD_FLAG : RR_OK;
}

/* ---- Lists ---- */

static enum rr_fault parse_reads(XDR *x, struct rr_header *h)
{
    bool more = false;
    enum rr_fault fault;

    while ((fault = code_flag(x, &more)) == RR_OK && more) {
        struct rr_read r = { 0 };

        if (!code_read(x, &r)) {
            return RR_CUT;
        }
        if (!rr_add_read(h, r.position, r.segment)) {
            return RR_TOO_MANY;
        }
    }
    return fault;
}

/* The count and the segments of the chunk that was opened last. */
static enum rr_fault parse_segments(XDR *x, struct rr_header *h)
{
    u_int count;

    if (!xdr_u_int(x, &count)) {
        return RR_CUT;
    }
    for (u_int i = 0; i < count; i++) {
        struct rr_segment s = { 0 };

        if (!code_segment(x, &s)) {
            return RR_CUT;
        }
        if (!rr_add_segment(h, s)) {
            return RR_TOO_MANY;
        }
    }
    return RR_OK;
}

static enum rr_fault parse_lists(XDR *x, struct rr_header *h)
{
    enum rr_fault fault = parse_reads(x, h);
    bool more = false;

    while (!fault && (fault = code_flag(x, &more)) == RR_OK && more) {
        fault = rr_open_chunk(h) ? parse_segments(x, h) : RR_TOO_MANY;
    }
    if (!fault && (fault = code_flag(x, &more)) == RR_OK && more) {
        rr_open_reply(h);
        fault = parse_segments(x, h);
    }
    return fault;
}

static enum rr_fault parse_error(XDR *x, struct rr_header *h)
{
    rr_xdr_error e = { 0 };

    if (!xdr_rr_xdr_error(x, &e)) {
        return e.err != RR_ERR_VERS && e.err != RR_ERR_CHUNK ? RR_BAD_ERR : RR_CUT;
    }
    h->err = e.err;
    if (e.err == RR_ERR_VERS) {
        h->low = e.rr_xdr_error_u.versions.low;
        h->high = e.rr_xdr_error_u.versions.high;
    }
    return RR_OK;
}

enum rr_fault rr_header_parse(struct sg_span in, struct rr_header *h)
{
    rr_xdr_fixed fixed;
    enum rr_fault fault;
    XDR x;

    memset(h, 0, offsetof(struct rr_header, read));
    h->chunks = h->segments = 0;
    h->has_reply = false;
    h->err = h->low = h->high = 0;
    h->len = 0;
    if (in.len < RR_ERR_CHUNK_LEN) {
        return RR_SHORT;
    }
    /* libtirpc's streams only read what they decode from. */
    xdrmem_create(&x, (char *)in.p, (u_int)SG_MIN(in.len, INT32_MAX), XDR_DECODE);
    sg_assert(xdr_rr_xdr_fixed(&x, &fixed));
    h->xid = fixed.xid;
    h->vers = fixed.vers;
    h->credit = fixed.credit;
    h->proc = fixed.proc;
    if (h->proc == RR_ERROR) {
        fault = parse_error(&x, h);
    } else if (in.len < RR_HEADER_MIN) {
        fault = RR_SHORT;
    } else if (h->vers != RR_VERSION) {
        fault = RR_VERS;
    } else if (h->proc > RR_ERROR) {
        fault = RR_BAD_PROC;
    } else {
        fault = parse_lists(&x, h);
    }
    h->len = xdr_getpos(&x);
    xdr_destroy(&x);
    return fault;
}

/* ---- Emission ---- */

static bool emit_segments(XDR *x, const struct rr_header *h, const struct rr_chunk *c)
{
    u_int count = c->count;
    bool done = xdr_u_int(x, &count);

    for (unsigned i = 0; done && i < c->count; i++) {
        struct rr_segment s = h->segment[c->first + i];

        done = code_segment(x, &s);
    }
    return done;
}

static bool emit_lists(XDR *x, const struct rr_header *h)
{
    bool yes = true, no = false;

    for (unsigned i = 0; i < h->reads; i++) {
        struct rr_read r = h->read[i];

        if (code_flag(x, &yes) || !code_read(x, &r)) {
            return false;
        }
    }
    if (code_flag(x, &no)) {
        return false;
    }
    for (unsigned i = 0; i < h->chunks; i++) {
        if (code_flag(x, &yes) || !emit_segments(x, h, &h->chunk[i])) {
            return false;
        }
    }
    if (code_flag(x, &no)) {
        return false;
    }
    if (!h->has_reply) {
        return !code_flag(x, &no);
    }
    return !code_flag(x, &yes) && emit_segments(x, h, &h->reply);
}

static bool emit_error(XDR *x, const struct rr_header *h)
{
    rr_xdr_error e = { .err = h->err };

    e.rr_xdr_error_u.versions = (rr_xdr_versions){ h->low, h->high };
    return xdr_rr_xdr_error(x, &e);
}

size_t rr_header_emit(const struct rr_header *h, uint8_t *buf, size_t room)
{
    rr_xdr_fixed fixed = { h->xid, h->vers, h->credit, h->proc };
    size_t len = 0;
    XDR x;

    xdrmem_create(&x, (char *)buf, (u_int)SG_MIN(room, INT32_MAX), XDR_ENCODE);
    if (xdr_rr_xdr_fixed(&x, &fixed) &&
        (h->proc == RR_ERROR ? emit_error(&x, h) : emit_lists(&x, h))) {
        len = xdr_getpos(&x);
    }
    xdr_destroy(&x);
    return len;
}
