/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory contexts, and the transfer of octets between the wire and guest memory that the protection
 * table names.
 */
#ifndef SG_VERBS_MEMORY_MEM_H
#define SG_VERBS_MEMORY_MEM_H

#include <sys/uio.h>

#include "base/list.h"
#include "verbs/memory/odp.h"

struct sg_adapter;
struct sg_mr;
struct sg_pd;

/*
 * The memory context of a queue pair: which memory it and its peer may use, and what this layer
 * records about it.
 */
struct sg_mem_ctx {
    struct sg_adapter *adapter;
    struct sg_pd *pd;
    uint32_t qpn;           /* for the host and for messages */
    uint64_t ordinal;       /* for the host: of the peer's message that has arrived */
    uint32_t access;        /* SG_ACCESS_*: what the peer may do at most */
    bool kernel;            /* SG_QP_KERNEL: may name all bus addresses */
    struct sg_list windows; /* sg_mr: windows of type 2 that it has bound */
    struct sg_odp_wait waits[SG_ODP_SIDES];
    struct sg_link paging_link; /* in sg_adapter.paging */
    struct sg_link deferred_writes_link;
};

/* The operations that memory needs from the layer above. */
struct sg_mem_ops {
    /* Pages of a region are missing: requests them from the driver. */
    void (*page_fault)(struct sg_adapter *a, uint32_t stag, bool write, uint64_t first,
                       uint32_t count);
    /* The pages that it waits for have come, or will not: it tries again. */
    void (*resume)(struct sg_mem_ctx *ctx);
};

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

/* Write n octets that came in at Tagged Offset to, which was checked.  False: DMA failed. */
bool sg_mem_place(struct sg_mem_ctx *ctx, const struct sg_mr *mr, uint64_t to, const uint8_t *p,
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
