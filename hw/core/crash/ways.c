/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One odometer for queues, and one for each line. */
#include "crash/ways.h"

/* Answers that are enumerated: the last one changes first. */
struct odometer {
    GArray *taken, *of; /* uint32_t: answers; how many there are */
    guint at;           /* question of the cut under way */
    uint32_t turns;     /* so many combinations so far */
    bool done;
};

struct ways {
    struct odometer queues;
    GHashTable *lines; /* address to struct odometer */
};

static uint32_t *number(GArray *a, guint i)
{
    return &g_array_index(a, uint32_t, i);
}

static void init(struct odometer *o)
{
    *o = (struct odometer){
        .taken = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
        .of = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
    };
}

static void fini(struct odometer *o)
{
    g_array_unref(o->taken);
    g_array_unref(o->of);
}

static void free_odometer(gpointer o)
{
    fini(o);
    g_free(o);
}

static uint32_t answer(struct odometer *o, uint32_t n)
{
    if (o->at == o->taken->len) {
        uint32_t first = 0;

        g_array_append_val(o->taken, first);
        g_array_append_val(o->of, n);
    }
    return *number(o->taken, o->at++);
}

/* The next combination.  False: that was the last one. */
static bool turn(struct odometer *o)
{
    guint n = o->taken->len;

    o->turns++;
    o->at = 0;
    while (n && *number(o->taken, n - 1) + 1 == *number(o->of, n - 1)) {
        n--;
    }
    g_array_set_size(o->taken, n);
    g_array_set_size(o->of, n);
    if (n) {
        ++*number(o->taken, n - 1);
    }
    return n;
}

static struct odometer *line_of(struct ways *w, uint64_t addr)
{
    struct odometer *o = g_hash_table_lookup(w->lines, &addr);

    if (!o) {
        o = g_new(struct odometer, 1);
        init(o);
        g_hash_table_insert(w->lines, g_memdup2(&addr, sizeof(addr)), o);
    }
    return o;
}

static uint32_t choose(void *opaque, const struct sg_persist_choice *q)
{
    struct ways *w = opaque;

    return answer(q->what == SG_PERSIST_CHOICE_LINE ? line_of(w, q->addr) : &w->queues, q->n);
}

/* Turns the odometers of all lines that are not done; false: all are. */
static bool turn_lines(struct ways *w)
{
    GHashTableIter it;
    gpointer o;
    bool more = false;

    g_hash_table_iter_init(&it, w->lines);
    while (g_hash_table_iter_next(&it, NULL, &o)) {
        struct odometer *line = o;

        if (line->done) {
            line->at = 0;
            g_array_set_size(line->taken, 0); /* any answers */
            g_array_set_size(line->of, 0);
        } else {
            line->done = !turn(line);
            more |= !line->done;
        }
    }
    return more;
}

/* The product over the lines, the answers about queues being given. */
static void add_product(struct ways *w, struct sg_crash_count *sum)
{
    struct sg_crash_count product;
    GHashTableIter it;
    gpointer o;

    sg_crash_count_init(&product, 1);
    g_hash_table_iter_init(&it, w->lines);
    while (g_hash_table_iter_next(&it, NULL, &o)) {
        sg_crash_count_multiply(&product, ((struct odometer *)o)->turns);
    }
    sg_crash_count_add(sum, &product);
    sg_crash_count_fini(&product);
    g_hash_table_remove_all(w->lines);
}

bool sg_crash_ways(sg_crash_cut *cut, void *opaque, unsigned most, struct sg_crash_count *sum,
                   unsigned *cuts)
{
    struct ways w = {
        .lines = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_odometer),
    };
    struct sg_persist_policy policy = { .choose = choose, .opaque = &w };
    bool more = true;

    init(&w.queues);
    *cuts = 0;
    while (more && *cuts < most) {
        w.queues.at = 0;
        cut(opaque, &policy);
        ++*cuts;
        if (!turn_lines(&w)) {
            add_product(&w, sum);
            more = turn(&w.queues);
        }
    }
    if (more) {
        add_product(&w, sum); /* what was found so far */
    }
    g_hash_table_destroy(w.lines);
    fini(&w.queues);
    return !more;
}
