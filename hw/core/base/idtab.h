/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A table from small numbers to objects, for QPs, CQs, memory regions and all
 * else that a guest names by number.  Every operation is O(1) except growth.
 *
 * Numbers run from @first to @first + @capacity - 1.  Memory is taken in
 * chunks as numbers are used, never more than the capacity needs, and objects
 * never move between slots.  Freed numbers are reused oldest first, which
 * makes it likely that use of a stale number is noticed; the generation counts
 * the reuses of each number.
 */
#ifndef SG_BASE_IDTAB_H
#define SG_BASE_IDTAB_H

#include "base/bytes.h"

struct sg_idtab_slot;

struct sg_idtab {
    struct sg_idtab_slot **chunks;
    uint32_t first;     /* lowest number */
    uint32_t capacity;  /* how many numbers there are */
    uint32_t fresh;     /* slots handed to the free list or used so far */
    uint32_t count;     /* numbers in use */
    uint32_t free_head; /* slot index; oldest freed */
    uint32_t free_tail;
};

/* @first + @capacity must not exceed 2^32; @capacity 1 .. 2^31. */
void sg_idtab_init(struct sg_idtab *t, uint32_t first, uint32_t capacity);

/* Release the table's memory.  The objects are the caller's. */
void sg_idtab_fini(struct sg_idtab *t);

/*
 * Give @obj (not NULL) a number in *@id.  False when all numbers are in use, or
 * there is no memory; *@id is then untouched.
 */
bool sg_idtab_alloc(struct sg_idtab *t, void *obj, uint32_t *id);

/* The same, but numbers are reused only when all of them have been used once. */
bool sg_idtab_alloc_fresh(struct sg_idtab *t, void *obj, uint32_t *id);

/*
 * Give @obj the stated number, for fixed numbers and restored state.  False if it is out of range
 * or in use, or there is no memory.  The time is O(distance) from the highest number so far.
 */
bool sg_idtab_alloc_at(struct sg_idtab *t, uint32_t id, void *obj);

/* The object called @id, or NULL; @id may be anything at all. */
void *sg_idtab_get(const struct sg_idtab *t, uint32_t id);

/* Free @id and return its object, or NULL if it was not in use. */
void *sg_idtab_free(struct sg_idtab *t, uint32_t id);

/* How often @id was freed so far, modulo 2^32; 0 for a number never used. */
uint32_t sg_idtab_generation(const struct sg_idtab *t, uint32_t id);

static inline uint32_t sg_idtab_count(const struct sg_idtab *t)
{
    return t->count;
}

/*
 * Walk the objects in order of their numbers: start with *@cursor = 0; each
 * call returns the next object and its number in *@id (if not NULL), then
 * NULL.  The object just returned may be freed during the walk.
 */
void *sg_idtab_next(const struct sg_idtab *t, uint32_t *cursor, uint32_t *id);

#endif /* SG_BASE_IDTAB_H */
