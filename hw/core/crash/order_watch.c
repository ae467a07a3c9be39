/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receptions that were decided although a later sending may be what was received.
 *
 * A later sending is not it if the reception is certainly among its causes: by frames of which
 * there is only one.  Else its past belongs to the reception's.  The events behind that have been
 * delivered by then, so there is another run, until nothing is added; pasts only grow.
 */
#include "crash/order_impl.h"

enum { MACHINE_SHIFT = 56 };

static uint64_t place_of(unsigned machine, uint64_t number)
{
    return (uint64_t)machine << MACHINE_SHIFT | number;
}

static unsigned machine_of(const struct crash_watch *x)
{
    return (unsigned)(x->place >> MACHINE_SHIFT);
}

static uint64_t number_of(const struct crash_watch *x)
{
    return x->place & ((1ull << MACHINE_SHIFT) - 1);
}

void crash_watches_init(struct crash_watches *w)
{
    *w = (struct crash_watches){
        .by_place = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free),
        .by_key = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
        .repeated = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
    };
}

void crash_watches_fini(struct crash_watches *w)
{
    g_hash_table_destroy(w->by_place);
    g_hash_table_destroy(w->by_key);
    g_hash_table_destroy(w->repeated);
}

static gboolean forget(void *key, void *value, void *opaque)
{
    struct crash_watch *x = value;

    memset(x->had, 0, sizeof(x->had));
    memset(x->late, 0, sizeof(x->late));
    return !x->raised;
}

void crash_watches_rewind(struct crash_watches *w)
{
    g_hash_table_remove_all(w->by_key);
    g_hash_table_foreach_remove(w->by_place, forget, NULL);
}

void crash_repeated_add(struct crash_watches *w, uint64_t key)
{
    if (g_hash_table_size(w->repeated) == CRASH_REPEATED_MAX) {
        w->all_repeated = true;
    } else if (!g_hash_table_contains(w->repeated, &key)) {
        g_hash_table_add(w->repeated, g_memdup2(&key, sizeof(key)));
    }
}

bool crash_is_repeated(const struct crash_watches *w, uint64_t key)
{
    return w->all_repeated || g_hash_table_contains(w->repeated, &key);
}

struct crash_watch *crash_watch_find(struct crash_watches *w, unsigned machine, uint64_t number)
{
    uint64_t place = place_of(machine, number);

    return g_hash_table_size(w->by_place) ? g_hash_table_lookup(w->by_place, &place) : NULL;
}

struct crash_watch *crash_watch(struct crash_watches *w, unsigned machine, uint64_t number,
                                uint64_t key, unsigned open)
{
    struct crash_watch *first = g_hash_table_lookup(w->by_key, &key), *x;
    unsigned count = 0;

    for (x = first; x; x = x->next) {
        count++;
    }
    x = crash_watch_find(w, machine, number);
    if (count == CRASH_WATCHED_KEY || (!x && g_hash_table_size(w->by_place) == CRASH_WATCHED_MAX) ||
        number >> MACHINE_SHIFT) {
        return NULL;
    }
    if (!x) {
        x = g_new0(struct crash_watch, 1);
        x->place = place_of(machine, number);
        g_hash_table_insert(w->by_place, &x->place, x);
    }
    x->key = key;
    x->open = open;
    x->next = first;
    g_hash_table_replace(w->by_key, g_memdup2(&key, sizeof(key)), x);
    return x;
}

/* Nothing more can be added to it in this run. */
static void close_watch(struct crash_watches *w, struct crash_watch *x)
{
    bool kept = x->raised;

    for (unsigned i = 0; i < SG_CRASH_MACHINES; i++) {
        kept |= x->late[i] > 0;
    }
    if (!kept) {
        g_hash_table_remove(w->by_place, &x->place);
    }
}

void crash_watch_sent(struct crash_watches *w, unsigned machine, unsigned machines, uint64_t key,
                      const uint64_t *past, const uint64_t *certain)
{
    struct crash_watch *first, *x, *next, **at;

    if (!g_hash_table_size(w->by_key)) {
        return;
    }
    first = g_hash_table_lookup(w->by_key, &key);
    if (!first) {
        return;
    }
    at = &first;
    for (x = first; x; x = next) {
        next = x->next;
        if (machine_of(x) == machine) {
            /* A machine does not receive what it sends. */
        } else if (certain[machine_of(x)] >= number_of(x)) {
            x->open &= ~(1u << machine);
        } else {
            for (unsigned i = 0; i < machines; i++) {
                x->late[i] = SG_MAX(x->late[i], past[i]);
            }
        }
        if (x->open) {
            at = &x->next;
        } else {
            *at = next;
            close_watch(w, x);
        }
    }
    if (first) {
        g_hash_table_replace(w->by_key, g_memdup2(&key, sizeof(key)), first);
    } else {
        g_hash_table_remove(w->by_key, &key);
    }
}

bool crash_watches_settled(struct crash_watches *w, unsigned machines)
{
    GHashTableIter at;
    void *value;
    bool settled = true;

    w->runs++;
    g_hash_table_iter_init(&at, w->by_place);
    while (g_hash_table_iter_next(&at, NULL, &value)) {
        struct crash_watch *x = value;

        for (unsigned i = 0; i < machines; i++) {
            if (i != machine_of(x) && x->late[i] > x->had[i]) {
                x->raise[i] = w->runs < CRASH_RUNS_MAX ? x->late[i] : SG_CRASH_BEYOND;
                x->raised = true;
                settled = false;
            }
        }
    }
    return settled;
}
