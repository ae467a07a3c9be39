/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes the frames of RPC-over-RDMA connections and passes them to a decoder.  The frames are made
 * by the encoders of hw/core/wire, and are well-formed up to DDP; what RPC-over-RDMA is in them is
 * up to the test.
 */
#ifndef SG_TESTS_RPCRDMA_WIRE_MAKER_H
#define SG_TESTS_RPCRDMA_WIRE_MAKER_H

#include <glib.h>

#include "decode.h"
#include "wire/fpdu.h"

enum { MAKER_SEGMENT = 1400, MAKER_PORT = 20049 };

struct maker {
    struct rr_decode *decode;
    struct rr_report report;
    GString *out;

    /* Of the connection; the caller may change what comes first before maker_open(). */
    struct rr_private client, server; /* not present: no private data */
    struct sg_span raw[2];            /* if set, private data by enum rr_dir, as they are */
    uint8_t reserved;                 /* set in the client's private data */
    bool crc, markers, p2p, ipv6, vlan;
    unsigned rev;
    unsigned opened; /* connections so far */
    uint16_t client_port, server_port;
    uint32_t seq[2]; /* by enum rr_dir: of the next octet */
    uint32_t pos[2]; /* in the stream of FPDUs */
    uint32_t msn[2], read_msn[2];

    /* Frames that wait for maker_release(), if hold is set. */
    bool hold;
    GPtrArray *held; /* of GByteArray */
};

void maker_init(struct maker *m);
/* SYN, SYN and ACK, MPA startup. */
void maker_open(struct maker *m);
void maker_startup(struct maker *m);
void maker_fin(struct maker *m, enum rr_dir dir);

/* Octets of TCP, in one frame. */
void maker_tcp(struct maker *m, enum rr_dir dir, uint8_t flags, struct sg_span octets);
/* One message. */
void maker_send(struct maker *m, enum rr_dir dir, uint8_t opcode, uint32_t stag,
                struct sg_span octets);
void maker_write(struct maker *m, enum rr_dir dir, uint32_t stag, uint64_t to,
                 struct sg_span octets);
/* @dir reads octets of the other side: Request and Response. */
void maker_read(struct maker *m, enum rr_dir dir, uint32_t stag, uint64_t to,
                struct sg_span octets);
void maker_terminate(struct maker *m, enum rr_dir dir, uint8_t layer, uint8_t etype, uint8_t code,
                     uint16_t seg_len);

/* Lets the held frames go, in this order of their numbers; SIZE_MAX is not passed on. */
void maker_release(struct maker *m, const size_t *order, size_t count);

/* Ends the capture; m->report and m->out have the result. */
void maker_finish(struct maker *m);
void maker_free(struct maker *m);

#endif
