/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cluster's key is its sorted set of issuers, as octets. */
#include "crash/cluster.h"

void sg_crash_clusters_init(struct sg_crash_clusters *c)
{
    c->seen =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, g_free);
}

void sg_crash_clusters_fini(struct sg_crash_clusters *c)
{
    if (c->seen) {
        g_hash_table_destroy(c->seen);
    }
    c->seen = NULL;
}

static gint by_number(gconstpointer a, gconstpointer b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorted, each once. */
static void make_set(GArray *issuers)
{
    guint kept = 0;

    g_array_sort(issuers, by_number);
    for (guint i = 0; i < issuers->len; i++) {
        uint32_t n = g_array_index(issuers, uint32_t, i);

        if (!kept || n != g_array_index(issuers, uint32_t, kept - 1)) {
            g_array_index(issuers, uint32_t, kept++) = n;
        }
    }
    g_array_set_size(issuers, kept);
}

bool sg_crash_clusters_take(struct sg_crash_clusters *c, GArray *issuers, uint64_t most)
{
    uint64_t *count;
    GBytes *key;

    make_set(issuers);
    key = g_bytes_new(issuers->data, issuers->len * sizeof(uint32_t));
    count = g_hash_table_lookup(c->seen, key);
    if (!count) {
        count = g_new0(uint64_t, 1);
        g_hash_table_insert(c->seen, key, count);
    } else {
        g_bytes_unref(key);
    }
    return ++*count <= most;
}

uint64_t sg_crash_clusters_count(const struct sg_crash_clusters *c)
{
    return g_hash_table_size(c->seen);
}
