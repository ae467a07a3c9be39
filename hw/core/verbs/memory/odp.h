/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging: regions whose pages come and go.
 */
#ifndef SG_VERBS_MEMORY_ODP_H
#define SG_VERBS_MEMORY_ODP_H

#include "base/bytes.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "verbs/memory/tpt.h"

struct sg_mem_ctx;

/* The parts of a queue pair that can wait for pages, independently. */
enum sg_odp_side {
    SG_ODP_RECEIVE, /* placement: the stream is held */
    SG_ODP_ANSWER,  /* the peer's oldest request */
    SG_ODP_SEND,    /* our message, or the next entry to be started */
    SG_ODP_SIDES,
};

enum sg_odp_status {
    SG_ODP_READY,
    SG_ODP_WAIT,   /* the fault was raised; sg_conn_resume() comes */
    SG_ODP_FAILED, /* the driver says that there is no such page */
};

/* The pages that one side waits for, or the result. */
struct sg_odp_wait {
    uint64_t serial; /* of the region's registration; 0: nothing */
    bool failed;
    uint64_t first, count; /* pages */
};

/* A page table without pages; NULL: no memory. */
struct sg_odp *sg_odp_new(struct sg_adapter *a);
/* It may be NULL. */
void sg_odp_free(struct sg_adapter *a, struct sg_odp *odp);

enum sg_odp_status sg_odp_check(struct sg_mem_ctx *ctx, enum sg_odp_side side,
                                const struct sg_mr *mr, uint64_t to, uint64_t len, bool write);
/* Are the pages of len > 0 octets at 'to', which was checked, there?  If not, requests them. */
static inline enum sg_odp_status sg_odp_ready(struct sg_mem_ctx *ctx, enum sg_odp_side side,
                                              const struct sg_mr *mr, uint64_t to, uint64_t len,
                                              bool write)
{
    return sg_mr_root(mr)->odp ? sg_odp_check(ctx, side, mr, to, len, write) : SG_ODP_READY;
}
/* The same for an element of an entry; its errors are reported later, when the entry starts. */
enum sg_odp_status sg_odp_element(struct sg_mem_ctx *ctx, const struct sg_sge *sge, bool write);
/* Are they there?  Has no effect. */
bool sg_odp_there(const struct sg_mr *mr, uint64_t to, uint64_t len, bool write);
/* Bus address of a page that is there, by its number in the region; false: it is not. */
bool sg_odp_page(const struct sg_odp *odp, uint64_t page, uint64_t *bus);

/* MAP_PAGES: 'count' pages from 'first' on, which are the region's. */
enum sg_status sg_odp_map(struct sg_adapter *a, struct sg_mr *mr, uint64_t first, uint64_t count,
                          uint64_t addr);
void sg_odp_unmap(struct sg_adapter *a, struct sg_mr *mr, uint64_t first, uint64_t count);
/* There are no such pages: accesses that wait for them fail. */
void sg_odp_fail(struct sg_adapter *a, struct sg_mr *mr, uint64_t first, uint64_t count);
/* The region of this serial number is gone: accesses that wait for it retry and find out. */
void sg_odp_region_gone(struct sg_adapter *a, uint64_t serial);
/* The queue pair is reset. */
void sg_odp_forget(struct sg_mem_ctx *ctx);

#endif
