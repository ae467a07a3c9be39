/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RPC-over-RDMA exchanges with NFS version 3, sound unless their parameters say otherwise.  Each
 * rule's breach is a row of parameters (test_rules.c).
 */
#ifndef SG_TESTS_RPCRDMA_EXCHANGES_H
#define SG_TESTS_RPCRDMA_EXCHANGES_H

#include "wire_maker.h"

enum {
    NFS3_NULL = 0,
    NFS3_GETATTR = 1,
    NFS3_READ = 6,
    NFS3_WRITE = 7,
    GRANT = 8,

    WRITE_STAG = 0x1111,
    READ_STAG = 0x2222,
    REPLY_STAG = 0x3333,
    WRITE3_POSITION = 96, /* of the data in the Call that write3() makes */
};

/* The octets of a message, header first; the caller frees them. */
GByteArray *message(const struct rr_header *h, const GByteArray *rpc);
/* Sends it in an ordinary Send, and frees both. */
void send_message(struct maker *m, enum rr_dir dir, const struct rr_header *h, GByteArray *rpc);
void send_octets(struct maker *m, enum rr_dir dir, const char *hex_text);

/* Appends 32-bit numbers; the list ends with END. */
#define END UINT64_MAX
void words(GByteArray *to, ...);
void filler(GByteArray *to, size_t octets);

GByteArray *call3(uint32_t xid, uint32_t proc);
GByteArray *reply3(uint32_t xid);

/* An empty header: no chunks, GRANT credits. */
struct rr_header *header(uint32_t xid, uint32_t proc);

/* NFS NULL: Call and Reply.  They are also sent apart. */
void null_call(struct maker *m, enum rr_dir dir, uint32_t xid);
/* CB_SEQUENCE and CB_RECALL, from the server. */
void callback_call(struct maker *m, uint32_t xid);
void null_reply(struct maker *m, enum rr_dir dir, uint32_t xid, uint32_t credit);
void null3(struct maker *m, uint32_t xid);

/* NFS READ of `count` octets; the numbers are octets, -1: no Write chunk. */
struct read3 {
    uint32_t count;
    int offered;        /* of the Write chunk; halves go to two segments */
    uint32_t result;    /* the length in the Reply */
    uint32_t placed;    /* by RDMA Writes */
    uint32_t returned;  /* of the Write chunk in the Reply; -1: no chunk comes back */
    uint32_t inlined;   /* octets of data that follow in the Reply */
    uint8_t opcode;     /* of the Reply; 0: Send with Invalidate if both sides set R */
    uint32_t stag;      /* to invalidate */
    uint32_t back_stag; /* of the returned chunk's first segment, if it is another */
    bool no_back;       /* no Write chunk comes back */
    bool empty;         /* the Write chunk is offered with no segment */
    bool spare;         /* another Write chunk is offered in front, and not used */
    bool draft07;       /* unused segments are left out */
    bool getattr;       /* the Call is a GETATTR */
};
void read3(struct maker *m, uint32_t xid, const struct read3 *p);

/* NFS WRITE of `count` octets. */
struct write3 {
    uint32_t count;
    uint32_t chunk;    /* octets of the Read chunk */
    uint32_t position; /* of the Read chunk */
    uint32_t pad;      /* octets that follow the reduced item */
    uint32_t inlined;  /* octets of data in the stream */
    bool getattr;      /* the Call is a GETATTR */
    bool uncounted;    /* the data's count is not in the stream */
};
void write3(struct maker *m, uint32_t xid, const struct write3 *p);

/* echo's PUT; its Read chunk begins @moved octets before the data, and has these, too. */
struct put {
    uint32_t moved;
    bool nothing; /* a PUT without data, and with a Read chunk where they would be */
};
void put(struct maker *m, uint32_t xid, const struct put *p);

/* NFS GETATTR with a Long Call or a Long Reply. */
struct long3 {
    uint32_t call_proc, reply_proc; /* RR_MSG, RR_NOMSG */
    int call_position;              /* of the Read chunk; -1: none */
    uint32_t call_more;             /* octets that the Read chunk is longer than the Call */
    bool reply_chunk;               /* a Reply chunk is offered */
    bool no_back;                   /* it does not come back */
    uint32_t reply_octets;          /* of the Reply's RPC message behind its header */
    int returned_more;              /* octets added to the returned length */
    uint32_t back_stag;
    uint32_t rpc_xid; /* added to the XID in the long messages */
};
void long3(struct maker *m, uint32_t xid, const struct long3 *p);

#endif
