/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Elements of one size, named by number: of pages, lines and stores. */
#ifndef SG_PERSIST_POOL_H
#define SG_PERSIST_POOL_H

#include "base/bytes.h"

/* Elements of one size, named by number from 1 on; it grows, and is freed as a whole. */
struct pool {
    uint8_t **chunks;
    uint32_t size;  /* of one element */
    uint32_t fresh; /* next number never used */
    uint32_t chunk_count;
    uint32_t free; /* list through the elements' first octets; 0: none */
    uint32_t live; /* elements in use */
};

enum { SG_DOM_CHUNK = 64 };
void sg_dom_pool_init(struct pool *pool, uint32_t element_size);
void sg_dom_pool_fini(struct pool *pool);
uint32_t sg_dom_pool_grow(struct pool *pool);

static inline void *sg_dom_pool_at(const struct pool *pool, uint32_t n)
{
    return pool->chunks[n / SG_DOM_CHUNK] + (size_t)(n % SG_DOM_CHUNK) * pool->size;
}

/* Not zeroed. */
static inline uint32_t sg_dom_pool_get(struct pool *pool)
{
    uint32_t n = pool->free;

    pool->live++;
    if (!n) {
        return sg_dom_pool_grow(pool);
    }
    memcpy(&pool->free, sg_dom_pool_at(pool, n), sizeof(pool->free));
    return n;
}

static inline void sg_dom_pool_put(struct pool *pool, uint32_t n)
{
    memcpy(sg_dom_pool_at(pool, n), &pool->free, sizeof(pool->free));
    pool->free = n;
    pool->live--;
}

#endif
