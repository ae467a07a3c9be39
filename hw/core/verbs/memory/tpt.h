/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translation and protection table: from STags to memory and rights.
 */
#ifndef SG_VERBS_MEMORY_TPT_H
#define SG_VERBS_MEMORY_TPT_H

#include "base/idtab.h"
#include "base/list.h"
#include "proto/engine.h"
#include "staghorn/io.h"
#include "verbs/memory/pagelist.h"

struct sg_adapter;
struct sg_odp;
struct sg_mem_ctx;

/* A protection domain is a name and a count of the objects in it. */
struct sg_pd {
    uint32_t pdn;
    uint32_t users;
};

#define SG_ACCESS_FLUSH (SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_FLUSH_PERSISTENT)
#define SG_ACCESS_KNOWN                                                                     \
    (SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE |               \
     SG_ACCESS_REMOTE_ATOMIC | SG_ACCESS_MW_BIND | SG_ACCESS_ZERO_BASED | SG_ACCESS_FLUSH | \
     SG_ACCESS_VERIFY)
/*
 * Rights that may be requested.  The rights of operations that the adapter does not have are
 * accepted and grant nothing.
 */
uint32_t sg_access_offered(const struct sg_adapter *a);

enum sg_mr_kind {
    SG_MR_MEMORY, /* registered by command, valid until deregistered */
    SG_MR_FAST,   /* registered by work requests, may be invalidated by them and by the peer */
    SG_MR_WINDOW, /* part of a region, for peers (mw.c) */
    SG_MR_WHOLE,  /* all bus addresses; local use by kernel queue pairs only */
};

/* Accesses of peers since the row became valid (QUERY_MR_STATS). */
struct sg_mr_counters {
    uint64_t remote_writes, remote_reads, remote_atomics, refused, page_faults;
};

/* A row of the table.  The fields that every access needs come first. */
struct sg_mr {
    struct sg_pd *pd;
    uint32_t stag;   /* index << 8 | key */
    uint32_t access; /* SG_ACCESS_* */
    uint8_t kind;    /* enum sg_mr_kind */
    bool valid;
    uint8_t pm;               /* SG_PM_*, the host's answer at registration */
    uint8_t mode;             /* enum sg_mem_mode */
    uint64_t serial;          /* changes each time that it becomes valid; never repeated */
    uint64_t base;            /* Tagged Offset of the first octet */
    uint64_t length;          /* octets; base + length <= 2^64 - 1 */
    uint64_t skip;            /* offset of that octet in the first page */
    struct sg_mem_ctx *owner; /* WINDOW of type 2, while it is bound */
    struct sg_mr *region;     /* WINDOW, while it is bound: whose pages it has */
    struct sg_odp *odp;       /* pages that come and go (odp.c), or NULL; pages.shift counts */
    struct sg_pages pages;    /* taken from the account */
    struct sg_mr_counters counters;
    uint32_t id;        /* in the table; not what the wire sees */
    uint32_t max_pages; /* FAST */
    uint32_t windows;   /* bound to it */
    uint8_t type;       /* WINDOW: enum sg_mw_type */
    uint8_t hash_alg;   /* enum sg_hash; with SG_ACCESS_VERIFY */
    uint8_t hash_key_len;
    uint8_t *hash_key;      /* owned, or NULL */
    struct sg_link qp_link; /* in sg_mem_ctx.windows */
};

/* The region that has the pages: a window's, or the row itself. */
static inline const struct sg_mr *sg_mr_root(const struct sg_mr *mr)
{
    return mr->region ? mr->region : mr;
}

#define SG_TPT_PAGES_MAX (1ull << 26) /* addresses in all: 512 MiB of host memory */

/* The table from before a reset. */
struct sg_tpt_retired {
    struct sg_idtab tab;
    uint32_t cursor;
    bool full;
};

struct sg_tpt {
    struct sg_idtab tab;
    uint32_t round_key[4];  /* of the permutation from row to index */
    uint32_t count;         /* rows in use */
    uint32_t windows;       /* of them */
    uint64_t epoch;         /* changes whenever a row becomes invalid: ends cached look-ups */
    uint64_t serial;        /* of the latest registration */
    uint64_t pages;         /* addresses held by all rows */
    struct sg_mr local_dma; /* the row of local key 0 */
    struct sg_tpt_retired retired;
};

void sg_tpt_init(struct sg_adapter *a);
/* Drops all rows; sg_tpt_run() frees their memory, a part at each call. */
void sg_tpt_fini(struct sg_adapter *a);
/* False: nothing is left. */
bool sg_tpt_run(struct sg_adapter *a);

/* A new invalid row with a fresh STag, or NULL (table full).  key 0: a random one. */
struct sg_mr *sg_tpt_alloc(struct sg_adapter *a, enum sg_mr_kind kind, struct sg_pd *pd,
                           uint8_t key);
void sg_tpt_free(struct sg_adapter *a, struct sg_mr *mr);
/* By index alone or by the whole STag; NULL if there is none.  Validity is not checked. */
struct sg_mr *sg_tpt_find_index(struct sg_adapter *a, uint32_t stag);
struct sg_mr *sg_tpt_find(struct sg_adapter *a, uint32_t stag);
/* As its owner names it: by index if work requests can change the key, else by STag. */
struct sg_mr *sg_tpt_find_owned(struct sg_adapter *a, uint32_t stag);

/* The range for a row: address, length, rights, pages (taken over on success). */
struct sg_mr_range {
    uint64_t va;
    uint64_t length;
    uint32_t access;
    uint8_t mem_type; /* enum sg_mem_type, validated */
    uint8_t mem_mode; /* enum sg_mem_mode, validated */
    uint8_t hash_alg; /* enum sg_hash, validated */
    uint8_t hash_key_len;
    const uint8_t *hash_key; /* copied */
    struct sg_pages pages;
    bool odp;    /* no pages yet: only pages.shift counts */
    unsigned pm; /* SG_PM_* of the pages; with odp: of all there are */
};
/* Do the pages cover it? */
bool sg_mr_range_covered(const struct sg_mr_range *range);
/*
 * SG_EINVAL: the pages do not cover it; SG_ENOMEM: too many addresses held in all; SG_ENOTPMEM: the
 * rights or the claimed type are not for this memory.
 */
enum sg_status sg_tpt_set(struct sg_adapter *a, struct sg_mr *mr, const struct sg_mr_range *range);
/* Changes a valid row: another domain, other rights.  SG_ENOTPMEM: not for this memory. */
enum sg_status sg_tpt_modify(struct sg_adapter *a, struct sg_mr *mr, struct sg_pd *pd,
                             uint32_t access);
/* Makes the row invalid; a FAST row keeps its index. */
void sg_tpt_invalidate(struct sg_adapter *a, struct sg_mr *mr);

/* May the peer of this queue pair do this (SG_ACCESS_REMOTE_*) to len > 0 octets at to? */
enum sg_mem_status sg_tpt_check_remote(const struct sg_mem_ctx *ctx, uint32_t stag, uint64_t to,
                                       uint64_t len, uint32_t rights, struct sg_mr **out);
/*
 * The same rights for a Flush, Verify or Atomic Write, without the range; with 'any' one of the
 * rights is enough.  *mr is set whenever the STag is good.
 */
enum sg_mem_status sg_tpt_check_mpe(const struct sg_mem_ctx *ctx, uint32_t stag, uint32_t rights,
                                    bool any, struct sg_mr **out);
/* Is the range in the region?  With len 0 'to' may be the region's end. */
enum sg_mem_status sg_mr_check_range(const struct sg_mr *mr, uint64_t to, uint64_t len);
/* May this queue pair's own work request read (rights 0) or write (SG_ACCESS_LOCAL_WRITE)? */
enum sg_mem_status sg_tpt_check_local(const struct sg_mem_ctx *ctx, uint32_t lkey, uint64_t addr,
                                      uint64_t len, uint32_t rights, struct sg_mr **out);
/*
 * Send with Invalidate, LOCAL_INV, READ_INV: only FAST rows of the same PD without windows, and
 * windows of type 2 that no other queue pair has bound.
 */
enum sg_mem_status sg_tpt_check_invalidate(const struct sg_mem_ctx *ctx, uint32_t stag,
                                           struct sg_mr **out);

/*
 * mw.c: the window stands for a part of a region, as the work request says; false: it may not.
 */
bool sg_mw_bind(struct sg_mem_ctx *ctx, struct sg_mr *mw, const struct sg_wqe_bind *b);
/* Windows of type 2 that this context has bound are not bound any more. */
void sg_mw_release(struct sg_mem_ctx *ctx);
/* The window is invalid and of no region any more; whether it was bound does not matter. */
void sg_mw_unbind(struct sg_adapter *a, struct sg_mr *mw);

/*
 * Bus address of Tagged Offset to, which was checked and is there (odp.h), and how many of the next
 * len octets follow it contiguously (at least 1).
 */
uint64_t sg_mr_run(const struct sg_mr *mr, uint64_t to, uint64_t len, uint64_t *bus);

#endif
