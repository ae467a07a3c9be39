/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Calls of a requester: one of each form in turn.  WRITE writes what the memory of echo.h has
 * from the start, so each READ can be compared.
 */
#include "exchange.h"
#include "requester_impl.h"

enum workload_kind {
    JOB_NULL,
    JOB_READ_INLINE, /* a Reply that nearly fills the threshold */
    JOB_READ_CHUNK,  /* a Write chunk of several segments, the last of which is not needed */
    JOB_WRITE_INLINE,
    JOB_WRITE_CHUNK, /* a Read chunk; by turns WRITE and PUT */
    JOB_LIST_LONG,   /* a Reply that needs its Reply chunk */
    JOB_LIST_SHORT,  /* a Reply that does not need it */
    JOB_LONG_CALL,   /* the whole Call at Position 0 */
    JOB_READ_SMALL,  /* a Write chunk whose result would fit inline */
    JOBS,
};

enum {
    PIECE = 2048, /* octets of a segment */
    READ_LARGE = 5003,
    READ_ROOM = 8192,
    READ_SMALL = 101,
    WRITE_SMALL = 333,
    WRITE_LARGE = 5001,
    LIST_LONG = 2000,
    LIST_SHORT = 3,
    REPLY_HEAD = 28, /* of an accepted RPC Reply, and the count of its data */
    LONG_NAME = 200,
};

static struct rr_segment segment_of(const struct rr_region *r, size_t at, size_t len)
{
    return (struct rr_segment){ r->stag, (uint32_t)len, (uintptr_t)r->octets + at };
}

static bool lend(struct rr_requester *q, struct rr_job *job, size_t len, unsigned access)
{
    sg_assert(len <= RR_JOB_ROOM);
    job->lent.len = len;
    job->lent.access = access;
    return q->port->ops->reg(q->port, &job->lent);
}

static bool offer(struct rr_requester *q, struct rr_job *job, size_t len, bool reply)
{
    if (!lend(q, job, len, RR_MAY_WRITE)) {
        return false;
    }
    if (reply) {
        rr_open_reply(&job->call);
    } else {
        rr_open_chunk(&job->call);
    }
    for (size_t at = 0; at < len; at += PIECE) {
        rr_add_segment(&job->call, segment_of(&job->lent, at, SG_MIN(PIECE, len - at)));
    }
    return true;
}

/* Moves octets of the stream into a Read chunk at that Position. */
static bool move_out(struct rr_requester *q, struct rr_job *job, uint32_t at, size_t len,
                     size_t whole)
{
    struct rr_stream *s = q->stream;

    if (!lend(q, job, len, RR_MAY_READ)) {
        return false;
    }
    memcpy(job->lent.octets, s->octets + at, len);
    for (size_t done = 0; done < len; done += PIECE) {
        rr_add_read(&job->call, at, segment_of(&job->lent, done, SG_MIN(PIECE, len - done)));
    }
    memmove(s->octets + at, s->octets + at + whole, s->len - at - whole);
    s->len -= whole;
    return true;
}

static void begin(struct rr_requester *q, const struct rr_job *job, enum rr_echo proc)
{
    rr_stream_call(q->stream, job->call.xid, RR_ECHO, RR_ECHO_VERSION, proc);
}

static void make_read(struct rr_requester *q, struct rr_job *job, uint32_t count)
{
    job->count = count;
    begin(q, job, RR_ECHO_READ);
    rr_put_word(q->stream, job->offset);
    rr_put_word(q->stream, count);
}

static void make_write(struct rr_requester *q, struct rr_job *job, uint32_t count)
{
    job->count = count;
    begin(q, job, RR_ECHO_WRITE);
    rr_put_word(q->stream, job->offset);
    rr_put_eligible(q->stream, sg_span_of(q->remote.octets + job->offset, count));
}

static void make_put(struct rr_requester *q, struct rr_job *job, uint32_t count)
{
    job->count = count;
    begin(q, job, RR_ECHO_PUT);
    rr_put_word(q->stream, job->offset);
    rr_put_word(q->stream, RR_PUT_DATA);
    rr_put_word(q->stream, true); /* there is data */
    rr_put_eligible(q->stream, sg_span_of(q->remote.octets + job->offset, count));
}

static void make_list(struct rr_requester *q, struct rr_job *job, uint32_t count)
{
    job->count = count;
    begin(q, job, RR_ECHO_LIST);
    rr_put_word(q->stream, count);
}

bool rr_job_make(struct rr_requester *q, struct rr_job *job)
{
    job->kind = (unsigned)(q->made % JOBS);
    job->offset = (uint32_t)(q->made * 4 % (RR_ECHO_MEMORY / 2));
    job->count = 0;
    switch (job->kind) {
    case JOB_READ_INLINE:
        make_read(q, job, SG_MIN(q->reply_threshold, 4096) - RR_HEADER_MIN - REPLY_HEAD - 40);
        return true;
    case JOB_READ_CHUNK:
        make_read(q, job, READ_LARGE);
        return offer(q, job, READ_ROOM, false);
    case JOB_WRITE_INLINE:
        make_write(q, job, WRITE_SMALL);
        return true;
    case JOB_WRITE_CHUNK:
        (q->made / JOBS % 2 ? make_put : make_write)(q, job, WRITE_LARGE);
        return move_out(q, job, q->stream->item[0].at, WRITE_LARGE, sg_align_up(WRITE_LARGE, 4));
    case JOB_LIST_LONG:
    case JOB_LIST_SHORT:
        make_list(q, job, job->kind == JOB_LIST_LONG ? LIST_LONG : LIST_SHORT);
        return offer(q, job, 4 * LIST_LONG + REPLY_HEAD, true);
    case JOB_LONG_CALL:
        rr_stream_call_sys(q->stream, job->call.xid, RR_ECHO, RR_ECHO_VERSION, RR_ECHO_NULL,
                           LONG_NAME);
        job->call.proc = RR_NOMSG;
        return move_out(q, job, 0, q->stream->len, q->stream->len);
    case JOB_READ_SMALL:
        make_read(q, job, READ_SMALL);
        return offer(q, job, READ_SMALL, false);
    default:
        begin(q, job, RR_ECHO_NULL);
        return true;
    }
}

/* ---- Results ---- */

/* The Reply's stream, wherever it is; nothing: there is none. */
static struct sg_span stream_of(const struct rr_requester *q, const struct rr_job *job,
                                struct sg_span payload)
{
    const struct rr_header *h = &q->reply;

    if (h->proc == RR_MSG) {
        return payload;
    }
    return h->has_reply
               ? sg_span_of(job->lent.octets, SG_MIN(rr_chunk_octets(h, &h->reply), job->lent.len))
               : SG_SPAN_NONE;
}

static bool read_fits(const struct rr_requester *q, const struct rr_job *job, struct rr_reader *in,
                      struct sg_span stream)
{
    const struct rr_header *h = &q->reply;
    uint64_t placed = h->chunks ? rr_chunk_octets(h, &h->chunk[0]) : 0;
    const uint8_t *octets = job->lent.octets;

    if (rr_get_word(in) != job->count || (placed && placed != job->count)) {
        return false;
    }
    if (!placed) {
        octets = sg_span_get(stream, in->at, job->count);
        rr_skip(in, job->count);
    }
    return octets && memcmp(octets, q->remote.octets + job->offset, job->count) == 0;
}

static bool list_fits(const struct rr_job *job, struct rr_reader *in)
{
    bool fits = rr_get_word(in) == job->count;

    for (uint32_t i = 0; i < job->count && fits; i++) {
        fits = rr_get_word(in) == i;
    }
    return fits;
}

static bool fits(const struct rr_requester *q, const struct rr_job *job, struct rr_reader *in,
                 struct sg_span stream)
{
    switch (job->kind) {
    case JOB_READ_INLINE:
    case JOB_READ_CHUNK:
    case JOB_READ_SMALL:
        return read_fits(q, job, in, stream);
    case JOB_WRITE_INLINE:
    case JOB_WRITE_CHUNK:
        return rr_get_word(in) == job->count;
    case JOB_LIST_LONG:
    case JOB_LIST_SHORT:
        return list_fits(job, in);
    default:
        return true;
    }
}

enum rr_job_end rr_job_end(struct rr_requester *q, const struct rr_job *job, struct sg_span payload)
{
    struct rr_exchange e = { .call = &job->call, .reply = &q->reply };
    struct sg_span stream = stream_of(q, job, payload);
    struct rr_reader in = { .in = stream, .fine = true };
    struct rr_findings findings = { 0 };
    struct rr_rpc rpc;

    rr_chunks_check(&findings, &e);
    if (findings.count || q->reply.reads || !rr_rpc_parse(stream, &rpc) || rpc.type != RR_REPLY ||
        rpc.xid != job->call.xid) {
        return RR_JOB_BAD_REPLY;
    }
    if (!rpc.accepted) {
        return RR_JOB_REFUSED;
    }
    in.at = rpc.body;
    return fits(q, job, &in, stream) && in.fine && in.at == stream.len ? RR_JOB_ANSWERED
                                                                       : RR_JOB_WRONG;
}
