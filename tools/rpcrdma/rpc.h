/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RPC messages (RFC 5531) and the arguments of NFS, as far as the rules of RPC-over-RDMA need them:
 * names for people, and the data items that may go into chunks (RFC 8267).
 *
 * A stream that is reduced lacks the items whose Read chunks stand in the header.  Positions count
 * in the stream as it was before.
 */
#ifndef RPCRDMA_RPC_H
#define RPCRDMA_RPC_H

#include "header.h"

enum rr_rpc_limits {
    RR_CALL = 0,
    RR_REPLY = 1,
    RR_PROG_NFS = 100003,
    RR_PROG_NFS_CALLBACK = 0x40000000,
    RR_PROG_NFSACL = 100227,
    RR_PROG_ECHO = 0x20008166, /* echo.h */
    RR_ITEMS_MAX = 8,
    RR_OPS_MAX = 64, /* of a COMPOUND; more are not looked at */
    RR_NAME_MAX = 200,
};

struct rr_rpc {
    uint32_t xid;
    uint32_t type; /* RR_CALL, RR_REPLY */
    uint32_t prog; /* Calls: */
    uint32_t vers;
    uint32_t proc;
    bool accepted; /* Replies: executed, results follow */
    size_t body;   /* where arguments or results begin */
};

/* False: too short, or no RPC message. */
bool rr_rpc_parse(struct sg_span in, struct rr_rpc *rpc);

enum rr_eligible {
    RR_UNKNOWN, /* a procedure or an operation that is not known here */
    RR_NONE,
    RR_SOME,
};

/* What has to stay in the stream, beside an eligible argument. */
enum rr_stays {
    RR_COUNT, /* of its octets */
    RR_FLAG,  /* of optional data */
    RR_UNION, /* whose arm it is */
    RR_STAYS,
};

/* What a Call says. */
struct rr_call_info {
    char name[RR_NAME_MAX];     /* "NFS4 SEQUENCE PUTFH READ GETATTR" */
    enum rr_eligible arguments; /* does the Call have DDP-eligible arguments? */
    enum rr_eligible results;   /* may its Reply have DDP-eligible results? */
    uint64_t result_max;        /* octets of the largest, if its Call limits it; else 0 */
    unsigned items;             /* eligible arguments that were found */
    struct rr_item {
        uint32_t position;
        uint32_t length; /* without pad */
        bool reduced;    /* a Read chunk has this Position */
        size_t behind;   /* where the reduced stream goes on */
    } item[RR_ITEMS_MAX];
    uint32_t moved;      /* what went into a Read chunk and has to stay: its Position; else 0 */
    enum rr_stays stays; /* what that is */
    bool complete;       /* all arguments are known */
    bool missing;        /* an item is neither in the stream nor in a chunk with its Position */
    bool last;           /* nothing follows the item that was found last */
};

/* @stream is the reduced stream of the Call, possibly only its beginning; @h has the chunks. */
void rr_call_describe(const struct rr_rpc *rpc, struct sg_span stream, const struct rr_header *h,
                      struct rr_call_info *info);

/*
 * The length of the DDP-eligible result of NFS version 3, as the inline part of its Reply says, and
 * how many octets follow it there; false for other procedures and for failed Calls.
 */
bool rr_result_length(const struct rr_rpc *call, const struct rr_rpc *reply, struct sg_span stream,
                      uint32_t *length, size_t *behind);

#endif
