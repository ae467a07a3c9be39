/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of images of ground_truth.h, and traces and images as text. */
#include <string.h>

#include "ground_truth.h"

guint gt_hash(const uint8_t *octets, size_t len)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (; len >= sizeof(h); octets += sizeof(h), len -= sizeof(h)) {
        uint64_t eight;

        memcpy(&eight, octets, sizeof(eight));
        h = (h ^ eight) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 29;
    }
    for (size_t i = 0; i < len; i++) {
        h = (h ^ octets[i]) * 0x100000001b3ull;
    }
    return h ^ h >> 32;
}

static guint image_hash(gconstpointer x)
{
    return gt_hash(x, GT_WORLD);
}

static gboolean image_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, GT_WORLD) == 0;
}

GHashTable *gt_set_new(void)
{
    return g_hash_table_new_full(image_hash, image_equal, g_free, NULL);
}

void gt_set_add(GHashTable *set, const uint8_t image[GT_WORLD])
{
    if (!g_hash_table_contains(set, image)) {
        g_hash_table_add(set, g_memdup2(image, GT_WORLD));
    }
}

bool gt_set_has(GHashTable *set, const uint8_t image[GT_WORLD])
{
    return g_hash_table_contains(set, image);
}

void gt_print(GString *out, const struct gt_trace *t)
{
    static const char *const name[GT_KINDS] = {
        "write",     "atom",  "swap",       "settle",   "fence-device",  "read",
        "flush",     "other", "store",      "store-nt", "load",          "cpu-flush",
        "cpu-fence", "sync",  "deep-flush", "poison",   "uncorrectable", "clear-bad",
    };

    g_string_append_printf(
        out, "domain %u ddio %d s0 %d s1 %d store-buffer %d reorder %d exact %u:", t->domain,
        t->ddio, t->s0, t->s1, t->store_buffer, t->reorder, t->exact);
    for (unsigned i = 0; i < t->count; i++) {
        const struct gt_event *e = &t->event[i];

        g_string_append_printf(out, "\n#   %s %u.%u: %u+%u = %u, how %u", name[e->kind], e->who,
                               e->conn, e->at, e->units, e->value, e->how);
    }
}

void gt_print_image(GString *out, const uint8_t image[GT_WORLD])
{
    for (unsigned i = 0; i < GT_WORLD; i++) {
        g_string_append(out, i == GT_LINE ? " | " : i ? " " : "");
        g_string_append_printf(out, image[i] == GT_BAD ? "bad" : "%u", image[i]);
    }
}
