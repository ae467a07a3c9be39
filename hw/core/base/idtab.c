/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slots in chunks that never move.  Slots below `fresh` are either in use or on
 * the free list, a doubly linked FIFO by slot index; those from `fresh` up have
 * never been touched and their chunks need not exist.
 */
#include <glib.h>

#include "base/idtab.h"

#define CHUNK_SLOTS 512u
#define NIL UINT32_MAX

struct sg_idtab_slot {
    void *obj;     /* NULL: on the free list */
    uint32_t next; /* free list neighbours, NIL at the ends */
    uint32_t prev;
    uint32_t generation;
};

static struct sg_idtab_slot *slot_at(const struct sg_idtab *t, uint32_t index)
{
    return &t->chunks[index / CHUNK_SLOTS][index % CHUNK_SLOTS];
}

/* The slot of @id if it was ever touched, else NULL. */
static struct sg_idtab_slot *slot_of(const struct sg_idtab *t, uint32_t id)
{
    uint32_t index = id - t->first;

    /* An id below first wraps to a large index. */
    return id >= t->first && index < t->fresh ? slot_at(t, index) : NULL;
}

static void free_list_append(struct sg_idtab *t, uint32_t index)
{
    struct sg_idtab_slot *slot = slot_at(t, index);

    slot->next = NIL;
    slot->prev = t->free_tail;
    if (t->free_tail == NIL) {
        t->free_head = index;
    } else {
        slot_at(t, t->free_tail)->next = index;
    }
    t->free_tail = index;
}

static void free_list_remove(struct sg_idtab *t, uint32_t index)
{
    struct sg_idtab_slot *slot = slot_at(t, index);

    if (slot->prev == NIL) {
        t->free_head = slot->next;
    } else {
        slot_at(t, slot->prev)->next = slot->next;
    }
    if (slot->next == NIL) {
        t->free_tail = slot->prev;
    } else {
        slot_at(t, slot->next)->prev = slot->prev;
    }
}

static bool add_chunk(struct sg_idtab *t, uint32_t chunk)
{
    struct sg_idtab_slot **chunks = t->chunks;

    /* The array of chunks doubles, so that its growth is O(1) on average. */
    if (sg_is_pow2(chunk) || chunk == 0) {
        chunks = g_try_renew(struct sg_idtab_slot *, chunks, chunk ? 2 * chunk : 1);
        if (!chunks) {
            return false;
        }
        t->chunks = chunks;
    }
    chunks[chunk] = g_try_new0(struct sg_idtab_slot, CHUNK_SLOTS);
    return chunks[chunk] != NULL;
}

/* Bring one more slot into being and put it on the free list; false: no memory. */
static bool add_fresh_slot(struct sg_idtab *t)
{
    uint32_t index = t->fresh;

    if (index % CHUNK_SLOTS == 0 && !add_chunk(t, index / CHUNK_SLOTS)) {
        return false;
    }
    t->fresh++;
    free_list_append(t, index);
    return true;
}

void sg_idtab_init(struct sg_idtab *t, uint32_t first, uint32_t capacity)
{
    sg_assert(capacity >= 1 && capacity <= 1u << 31);
    sg_assert((uint64_t)first + capacity <= (uint64_t)1 << 32);
    memset(t, 0, sizeof(*t));
    t->first = first;
    t->capacity = capacity;
    t->free_head = NIL;
    t->free_tail = NIL;
}

void sg_idtab_fini(struct sg_idtab *t)
{
    for (uint32_t i = 0; i < t->fresh; i += CHUNK_SLOTS) {
        g_free(t->chunks[i / CHUNK_SLOTS]);
    }
    g_free(t->chunks);
    memset(t, 0, sizeof(*t));
}

static uint32_t take(struct sg_idtab *t, uint32_t index, void *obj)
{
    sg_assert(obj);
    free_list_remove(t, index);
    slot_at(t, index)->obj = obj;
    t->count++;
    return t->first + index;
}

bool sg_idtab_alloc(struct sg_idtab *t, void *obj, uint32_t *id)
{
    if (t->free_head == NIL) {
        if (t->fresh == t->capacity || !add_fresh_slot(t)) {
            return false;
        }
    }
    *id = take(t, t->free_head, obj);
    return true;
}

bool sg_idtab_alloc_fresh(struct sg_idtab *t, void *obj, uint32_t *id)
{
    if (t->fresh == t->capacity) {
        return sg_idtab_alloc(t, obj, id);
    }
    if (!add_fresh_slot(t)) {
        return false;
    }
    *id = take(t, t->free_tail, obj);
    return true;
}

bool sg_idtab_alloc_at(struct sg_idtab *t, uint32_t id, void *obj)
{
    uint32_t index = id - t->first;

    if (id < t->first || index >= t->capacity) {
        return false;
    }
    while (t->fresh <= index) {
        if (!add_fresh_slot(t)) {
            return false;
        }
    }
    if (slot_at(t, index)->obj) {
        return false;
    }
    take(t, index, obj);
    return true;
}

void *sg_idtab_get(const struct sg_idtab *t, uint32_t id)
{
    const struct sg_idtab_slot *slot = slot_of(t, id);

    return slot ? slot->obj : NULL;
}

void *sg_idtab_free(struct sg_idtab *t, uint32_t id)
{
    struct sg_idtab_slot *slot = slot_of(t, id);
    void *obj = slot ? slot->obj : NULL;

    if (obj) {
        slot->obj = NULL;
        slot->generation++;
        t->count--;
        free_list_append(t, id - t->first);
    }
    return obj;
}

uint32_t sg_idtab_generation(const struct sg_idtab *t, uint32_t id)
{
    const struct sg_idtab_slot *slot = slot_of(t, id);

    return slot ? slot->generation : 0;
}

void *sg_idtab_next(const struct sg_idtab *t, uint32_t *cursor, uint32_t *id)
{
    while (*cursor < t->fresh) {
        uint32_t index = (*cursor)++;
        void *obj = slot_at(t, index)->obj;

        if (obj) {
            if (id) {
                *id = t->first + index;
            }
            return obj;
        }
    }
    return NULL;
}
