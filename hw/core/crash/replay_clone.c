/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A replay once more, at the same event. */
#include "crash/replay_impl.h"

struct sg_crash_replay *sg_crash_replay_clone(const struct sg_crash_replay *x,
                                              const struct sg_persist_memory *memory)
{
    struct sg_crash_replay *c = g_memdup2(x, sizeof(*x));
    GHashTableIter it;
    gpointer key, flush;

    c->p = sg_persist_clone(x->p, memory);
    for (unsigned i = 0; i < c->extents; i++) {
        c->extent[i].visible = memory[i].visible;
        c->extent[i].media = memory[i].media;
    }
    c->flushes = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    g_hash_table_iter_init(&it, x->flushes);
    while (g_hash_table_iter_next(&it, &key, &flush)) {
        g_hash_table_insert(c->flushes, g_memdup2(key, sizeof(uint64_t)),
                            g_memdup2(flush, sizeof(struct flush_under_way)));
    }
    return c;
}

bool sg_crash_replay_same_flushes(const struct sg_crash_replay *x, const struct sg_crash_replay *y,
                                  sg_persist_number *number, void *of_x, void *of_y)
{
    GHashTableIter it;
    gpointer key, flush;

    if (g_hash_table_size(x->flushes) != g_hash_table_size(y->flushes)) {
        return false;
    }
    g_hash_table_iter_init(&it, x->flushes);
    while (g_hash_table_iter_next(&it, &key, &flush)) {
        const struct flush_under_way *f = flush, *g = g_hash_table_lookup(y->flushes, key);

        if (!g || number(of_x, f->note.seq) != number(of_y, g->note.seq)) {
            return false;
        }
    }
    return true;
}
