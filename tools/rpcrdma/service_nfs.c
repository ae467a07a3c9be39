/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NFS version 4.0 (RFC 7530): COMPOUNDs that begin at the root.  Reads and writes name the
 * anonymous stateid, so nothing has to be opened.
 */
#include "service.h"

enum nfs4 {
    NFS_VERSION = 4,
    PROC_NULL = 0,
    PROC_COMPOUND = 1,
    OP_COMMIT = 5,
    OP_GETATTR = 9,
    OP_LOOKUP = 15,
    OP_PUTROOTFH = 24,
    OP_READ = 25,
    OP_WRITE = 38,
    BITMAP_MAX = 8,    /* words */
    ATTRIBUTES = 100,  /* octets of the result of one GETATTR */
    LIST_OPS_MAX = 48, /* servers limit the operations of a COMPOUND; Linux: to 50 */
    /* Words of the bit map of attributes: type, change, size, fsid, fileid; mode, links, times. */
    ATTRIBUTES_LOW = 0x0010011a,
    ATTRIBUTES_HIGH = 0x0030000a,
};

static void compound(struct rr_stream *s, uint32_t xid, uint32_t operations)
{
    rr_stream_call_sys(s, xid, RR_PROG_NFS, NFS_VERSION, PROC_COMPOUND, 4);
    rr_put_counted(s, SG_SPAN_NONE); /* tag */
    rr_put_word(s, 0);               /* minor version */
    rr_put_word(s, operations);
    rr_put_word(s, OP_PUTROOTFH);
}

static void lookup(const struct rr_service *service, struct rr_stream *s)
{
    rr_put_word(s, OP_LOOKUP);
    rr_put_counted(s, sg_span_of(service->file, strlen(service->file)));
}

static void anonymous(struct rr_stream *s)
{
    static const uint8_t stateid[16];

    rr_put_fixed(s, sg_span_of(stateid, sizeof(stateid)));
}

static uint32_t list_operations(const struct rr_request *q)
{
    return SG_MIN(q->count / ATTRIBUTES + 1, LIST_OPS_MAX);
}

static bool nfs_make(const struct rr_service *service, const struct rr_request *q, uint32_t xid,
                     struct rr_stream *s)
{
    switch (q->want) {
    case RR_WANT_NULL:
        rr_stream_call(s, xid, RR_PROG_NFS, NFS_VERSION, PROC_NULL);
        return true;
    case RR_WANT_LONG_NULL:
        rr_stream_call_sys(s, xid, RR_PROG_NFS, NFS_VERSION, PROC_NULL, RR_LONG_NAME);
        return true;
    case RR_WANT_READ:
    case RR_WANT_WRITE:
        if (!service->file) {
            return false;
        }
        compound(s, xid, 3);
        lookup(service, s);
        rr_put_word(s, q->want == RR_WANT_READ ? OP_READ : OP_WRITE);
        anonymous(s);
        rr_put_hyper(s, q->offset);
        if (q->want == RR_WANT_READ) {
            rr_put_word(s, q->count);
        } else {
            rr_put_word(s, q->stable);
            rr_put_eligible(s, sg_span_of(q->data, q->count));
        }
        return true;
    case RR_WANT_COMMIT:
        if (!service->file) {
            return false;
        }
        compound(s, xid, 3);
        lookup(service, s);
        rr_put_word(s, OP_COMMIT);
        rr_put_hyper(s, 0);
        rr_put_word(s, 0); /* the whole file */
        return true;
    case RR_WANT_LIST:
        compound(s, xid, 1 + list_operations(q));
        for (uint32_t i = 0; i < list_operations(q); i++) {
            rr_put_word(s, OP_GETATTR);
            rr_put_word(s, 2);
            rr_put_word(s, ATTRIBUTES_LOW);
            rr_put_word(s, ATTRIBUTES_HIGH);
        }
        return true;
    default:
        return false;
    }
}

static bool operation(struct rr_reader *in, uint32_t expected)
{
    uint32_t op = rr_get_word(in), status = rr_get_word(in);

    in->fine &= op == expected && status == 0;
    return in->fine;
}

static void attributes(struct rr_reader *in)
{
    if (operation(in, OP_GETATTR)) {
        uint32_t words = rr_get_word(in);

        rr_skip(in, 4 * (size_t)SG_MIN(words, BITMAP_MAX));
        rr_skip(in, rr_get_word(in));
    }
}

static void verifier(struct rr_reader *in, struct rr_results *out)
{
    const uint8_t *octets = sg_span_get(in->in, in->at, RR_VERIFIER);

    rr_skip(in, RR_VERIFIER);
    if (octets) {
        memcpy(out->verifier, octets, RR_VERIFIER);
    }
}

static void data(const struct rr_request *q, struct rr_reader *in, unsigned reduced,
                 struct rr_results *out)
{
    if (q->want == RR_WANT_READ && operation(in, OP_READ)) {
        rr_get_word(in); /* end of file */
        out->count = 1;
        out->result[0].len = rr_get_word(in);
        out->result[0].at = in->at;
        if (!reduced) {
            rr_skip(in, out->result[0].len);
        }
    } else if (q->want == RR_WANT_WRITE && operation(in, OP_WRITE)) {
        in->fine &= rr_get_word(in) == q->count;
        out->stable = rr_get_word(in);
        in->fine &= out->stable <= RR_FILE_SYNC;
        verifier(in, out);
    } else if (q->want == RR_WANT_COMMIT && operation(in, OP_COMMIT)) {
        verifier(in, out);
    }
}

static const char *status_name(uint32_t status)
{
    static const struct {
        uint32_t status;
        const char *name;
    } rows[] = {
        { 2, "NFS4ERR_NOENT: the root of the export has no file of that name" },
        { 13, "NFS4ERR_ACCESS: user 0 may not; export it with no_root_squash" },
        { 30, "NFS4ERR_ROFS: the export is read-only" },
        { 10008, "NFS4ERR_DELAY" },
        { 10013, RR_GRACE },
        { 10016, "NFS4ERR_WRONGSEC: export it with sec=sys" },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        if (rows[i].status == status) {
            return rows[i].name;
        }
    }
    return "the COMPOUND failed";
}

static bool nfs_read(const struct rr_service *service, const struct rr_request *q,
                     struct sg_span stream, size_t body, unsigned reduced, struct rr_results *out,
                     const char **why)
{
    struct rr_reader in = { .in = stream, .at = body, .fine = true };
    uint32_t status;

    memset(out, 0, sizeof(*out));
    if (q->want != RR_WANT_NULL && q->want != RR_WANT_LONG_NULL) {
        status = rr_get_word(&in);
        if (in.fine && status) {
            *why = status_name(status);
            out->refused = true;
            return false;
        }
        rr_skip(&in, rr_get_word(&in)); /* tag */
        rr_get_word(&in);               /* operations */
        operation(&in, OP_PUTROOTFH);
        for (uint32_t i = 0; q->want == RR_WANT_LIST && i < list_operations(q) && in.fine; i++) {
            attributes(&in);
        }
        if (q->want != RR_WANT_LIST && operation(&in, OP_LOOKUP)) {
            data(q, &in, reduced, out);
        }
    }
    out->end = in.at;
    *why = "the results of the COMPOUND are not those of its operations";
    return in.fine;
}

const struct rr_service rr_service_nfs = {
    .name = "nfs",
    .make = nfs_make,
    .read = nfs_read,
};
