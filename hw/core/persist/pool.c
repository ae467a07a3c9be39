/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Elements of one size, named by number: chunks of memory and a free list. */
#include <glib.h>

#include "persist/pool.h"

void sg_dom_pool_init(struct pool *pool, uint32_t element_size)
{
    sg_assert(element_size >= sizeof(uint32_t));
    *pool = (struct pool){ .size = element_size, .fresh = 1 };
}

/* Frees all elements at once; the pool can be used again. */
void sg_dom_pool_fini(struct pool *pool)
{
    for (uint32_t i = 0; i < pool->chunk_count; i++) {
        g_free(pool->chunks[i]);
    }
    g_free(pool->chunks);
    sg_dom_pool_init(pool, pool->size);
}

uint32_t sg_dom_pool_grow(struct pool *pool)
{
    uint32_t n = pool->fresh++;

    sg_assert(n);
    if (n / SG_DOM_CHUNK >= pool->chunk_count) {
        pool->chunks = g_renew(uint8_t *, pool->chunks, pool->chunk_count + 1);
        pool->chunks[pool->chunk_count++] = g_malloc((size_t)SG_DOM_CHUNK * pool->size);
    }
    return n;
}
