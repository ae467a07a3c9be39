/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moving octets between the wire and guest memory that the protection table names.
 */
#ifndef SG_VERBS_MEMORY_MEM_H
#define SG_VERBS_MEMORY_MEM_H

#include <sys/uio.h>

#include "base/bytes.h"

struct sg_adapter;
struct sg_mr;
struct sg_qp;

enum sg_mem_limits {
    SG_SCRATCH_SIZE = 256 * 1024, /* octets gathered by copying at any time, per adapter */
    SG_COPY_MAX = 1024,           /* pieces up to this are copied rather than mapped */
};

/* Room for gathered octets that are not mapped; empty again when all pieces were released. */
struct sg_scratch {
    uint8_t *buf;
    size_t used;
    unsigned live; /* pieces not released */
};

/* Write n octets, come in by qp, at Tagged Offset to, which was checked.  False: DMA failed. */
bool sg_mem_place(struct sg_qp *qp, const struct sg_mr *mr, uint64_t to, const uint8_t *p,
                  size_t n);
/* Read n octets from Tagged Offset to, which was checked.  False: DMA failed. */
bool sg_mem_fetch(struct sg_adapter *a, const struct sg_mr *mr, uint64_t to, uint8_t *p, size_t n);

/* A list of pieces being gathered. */
struct sg_gather {
    struct iovec *iov;
    int n, max;
};

/*
 * Append len octets at Tagged Offset to, which was checked: mapped, or copied into the scratch
 * buffer.  False: DMA failed or the scratch buffer is full; pieces so far stay in the list.
 */
bool sg_mem_gather(struct sg_adapter *a, struct sg_gather *g, const struct sg_mr *mr, uint64_t to,
                   size_t len);
/* Append octets of our own, copied. */
bool sg_mem_gather_bytes(struct sg_adapter *a, struct sg_gather *g, const uint8_t *p, size_t len);
void sg_mem_release(struct sg_adapter *a, struct iovec *iov, int n);

#endif
