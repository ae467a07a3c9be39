/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One iWARP connection in a capture: MPA startup, FPDUs, DDP segments, by the codecs of
 * hw/core/wire.  Octets wait until their FPDU is complete, and until both startup frames were seen,
 * because these say whether there are CRCs and markers.
 */
#ifndef RPCRDMA_IWARP_H
#define RPCRDMA_IWARP_H

#include "flow.h"
#include "wire/mpa_frame.h"
#include "wire/rdmap.h"

struct rr_iwarp_ops {
    /* Both frames were seen; the connection is in use if the Reply does not reject it. */
    void (*startup)(void *opaque, const struct sg_mpa_frame *request,
                    const struct sg_mpa_frame *reply);
    void (*segment)(void *opaque, enum rr_dir dir, const struct sg_ddp_hdr *ddp, uint8_t opcode,
                    struct sg_span payload);
    /* The direction cannot be followed any further.  Before startup: this is not iWARP. */
    void (*broken)(void *opaque, enum rr_dir dir, const char *why);
};

struct rr_iwarp;

struct rr_iwarp *rr_iwarp_new(const struct rr_iwarp_ops *ops, void *opaque);
void rr_iwarp_input(struct rr_iwarp *w, enum rr_dir dir, struct sg_span octets);
void rr_iwarp_free(struct rr_iwarp *w);

#endif
