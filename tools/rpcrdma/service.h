/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RPC program by which a server is examined: its Calls, and where its Replies have what.  There
 * are two: `echo`, the program of `rpcrdma serve`, and `nfs`, NFS version 4.0 with one file in the
 * root of the export, as user 0.
 */
#ifndef RPCRDMA_SERVICE_H
#define RPCRDMA_SERVICE_H

#include "stream.h"

enum rr_service_limits { RR_SERVICE_FILE = 32 * 1024, RR_LONG_NAME = 200 };

/* What `read` says while the server waits for clients of an earlier run. */
#define RR_GRACE "NFS4ERR_GRACE: the server waits for clients of an earlier run"

/* What `make` shall make. */
enum rr_want {
    RR_WANT_NULL,
    RR_WANT_LONG_NULL, /* NULL with credentials of about 250 octets */
    RR_WANT_READ,      /* @count octets from @offset: a DDP-eligible result */
    RR_WANT_WRITE,     /* @count octets of @data to @offset: a DDP-eligible argument */
    RR_WANT_LIST,      /* a Reply of more than @count octets without an eligible result */
    RR_WANT_TWO,       /* two eligible results, of @count and of @second octets */
    RR_WANT_COMMIT,    /* what was written becomes stable */
};

/* How stable written octets are: what a WRITE asks for, and what its Reply says (RFC 7530). */
enum rr_stable {
    RR_UNSTABLE,
    RR_DATA_SYNC,
    RR_FILE_SYNC,
};

enum { RR_VERIFIER = 8 }; /* octets that change when the server loses what is unstable */

struct rr_request {
    enum rr_want want;
    uint32_t offset, count, second;
    const uint8_t *data;
    enum rr_stable stable; /* of RR_WANT_WRITE */
};

/* Where a Reply's stream has its eligible results.  They are inline unless they were reduced. */
struct rr_results {
    unsigned count;
    struct rr_result {
        size_t at;    /* in the stream that came */
        uint32_t len; /* what its count says */
    } result[RR_STREAM_ITEMS];
    size_t end;                    /* where the stream should end */
    enum rr_stable stable;         /* of RR_WANT_WRITE */
    uint8_t verifier[RR_VERIFIER]; /* of RR_WANT_WRITE and RR_WANT_COMMIT */
    bool refused; /* the program says that the Call failed: no matter of the transport */
};

struct rr_service {
    const char *name;
    /* False: this program has no such Call. */
    bool (*make)(const struct rr_service *service, const struct rr_request *request, uint32_t xid,
                 struct rr_stream *stream);
    /*
     * Reads an accepted Reply.  @reduced has a bit for each eligible result that is not in the
     * stream.  False: the Call failed or the stream is too short, which @why then says.
     */
    bool (*read)(const struct rr_service *service, const struct rr_request *request,
                 struct sg_span stream, size_t body, unsigned reduced, struct rr_results *results,
                 const char **why);
    const char *file; /* nfs */
};

extern const struct rr_service rr_service_echo;
extern const struct rr_service rr_service_nfs;

#endif
