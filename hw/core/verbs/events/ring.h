/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One ring of guest memory: the same object serves send, receive, completion, event and admin
 * queues.  It knows where a slot is, what the phase of an index is, and how far both sides are: of
 * its two indices the guest moves one, and sg_ring_take() checks its values.
 */
#ifndef SG_VERBS_EVENTS_RING_H
#define SG_VERBS_EVENTS_RING_H

#include "base/bytes.h"
#include "base/host.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "staghorn/ring.h"
#include "verbs/check/check.h"

struct sg_ring {
    uint64_t *pages; /* 4 KiB each, from the account; NULL: contiguous from base */
    uint64_t base;
    uint32_t entries;     /* power of two */
    uint8_t stride_shift; /* 5..10: an entry never crosses a page */
    uint32_t prod, cons;  /* they count for ever: [cons, prod) is in use */
};

static inline uint32_t sg_ring_used(const struct sg_ring *r)
{
    return sg_index_used(r->prod, r->cons);
}

static inline bool sg_ring_full(const struct sg_ring *r)
{
    return sg_ring_used(r) >= r->entries;
}

/*
 * Which index of a ring the guest moves.  Doorbells of several threads arrive in any order, so a
 * value below the present one is a late one; registers and records are written in order.
 */
enum sg_ring_index {
    SG_RING_PROD = 0,
    SG_RING_CONS = 1,
    SG_RING_IN_ORDER = 2, /* or-ed in */
};

enum sg_ring_verdict {
    SG_RING_NEW,  /* the ring has it now */
    SG_RING_LATE, /* ignored */
    SG_RING_BAD,  /* the ring cannot have it: ignored, too */
};

/* Takes an index from the guest, if the ring can have it. */
enum sg_ring_verdict sg_ring_take(struct sg_ring *r, unsigned index, uint32_t value);

/* What a producer index that was refused is: beyond the ring, or behind it. */
enum sg_rule sg_ring_rule(const struct sg_ring *r, uint32_t prod);
/* A ring that the adapter will write: are all phase bits 0?  Looks at SG_CHECK_FRESH entries. */
bool sg_ring_fresh(const struct sg_ring *r, const struct sg_host *host);

/* Contiguous ring; entries and stride are powers of two (asserted). */
void sg_ring_init(struct sg_ring *r, uint64_t base, uint32_t entries, uint32_t stride);
/* Ring over a page list of the guest, which is read and validated. */
enum sg_status sg_ring_init_pages(struct sg_ring *r, const struct sg_host *host,
                                  const struct sg_page_list *list, uint32_t entries,
                                  uint32_t stride);
void sg_ring_fini(struct sg_ring *r, const struct sg_host *host);

static inline uint64_t sg_ring_slot(const struct sg_ring *r, uint32_t index)
{
    uint64_t off = (uint64_t)sg_index_slot(index, r->entries) << r->stride_shift;

    if (r->pages) {
        return r->pages[off >> SG_PAGE_SHIFT] + (off & ((1u << SG_PAGE_SHIFT) - 1));
    }
    return r->base + off;
}

/* Phase bit of a new entry at this index: 1 in the first pass over the ring. */
static inline uint8_t sg_ring_phase(const struct sg_ring *r, uint32_t index)
{
    return sg_index_phase(index, r->entries);
}

/* Copy octets [off, off + len) of an entry; false: DMA failed. */
static inline bool sg_ring_fetch(const struct sg_ring *r, const struct sg_host *host,
                                 uint32_t index, size_t off, void *buf, size_t len)
{
    return host->ops->dma_read(host->opaque, sg_ring_slot(r, index) + off, buf, len);
}

/*
 * Write the next entry, of len octets (multiple of 8), whose last octet holds the phase in bit 0
 * (or-ed in here).  The last 64-bit word goes last, as one store.  There is room (the caller has
 * seen to that).  False: DMA failed, and the index stays.  told: NULL, or what the host is told
 * before the consumer can see the entry.
 */
bool sg_ring_post(struct sg_ring *r, const struct sg_host *host, void *entry, size_t len,
                  const struct sg_observed *told);

#endif
