/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which lines may differ from the base, which do, and the identity of an image. */
#include "images_impl.h"

enum { PAGE_LINES = SG_PERSIST_PAGE / SG_PERSIST_LINE };

/* ---- Touched lines ---- */

static struct touched *touched_page(struct sg_explore_images *x, uint64_t page)
{
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(x->touched, &page));
    struct touched new = { .page = page };

    if (!n) {
        g_array_append_val(x->pages, new);
        n = x->pages->len;
        g_hash_table_insert(x->touched, g_memdup2(&page, sizeof(page)), GUINT_TO_POINTER(n));
    }
    return &g_array_index(x->pages, struct touched, n - 1);
}

void sg_explore_images_touch_range(struct sg_explore_images *x, uint64_t addr, uint64_t len)
{
    for (uint64_t at = 0; at < len;) {
        uint64_t line = (addr + at) / SG_PERSIST_LINE;

        touched_page(x, line / PAGE_LINES)->lines |= 1ull << line % PAGE_LINES;
        at = (line + 1) * SG_PERSIST_LINE - addr;
    }
}

void sg_explore_images_touch(struct sg_explore_images *x, const struct sg_trace_event *e)
{
    uint64_t len = e->kind == SG_TRACE_ATOMIC ? SG_PERSIST_ATOM : e->len;
    bool stores = e->kind == SG_TRACE_STORE || e->kind == SG_TRACE_PLACE ||
                  e->kind == SG_TRACE_ATOMIC_WRITE || e->kind == SG_TRACE_ATOMIC ||
                  e->kind == SG_TRACE_OTHER_WRITE;

    if (stores) { /* at most DATA_MAX octets */
        sg_explore_images_touch_range(x, e->addr, len);
    }
}

static gint by_page(gconstpointer a, gconstpointer b)
{
    const struct touched *x = a, *y = b;

    return x->page < y->page ? -1 : x->page > y->page;
}

void images_sort_pages(struct sg_explore_images *x)
{
    g_array_sort(x->pages, by_page);
}

/* ---- One image ---- */

static uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    return h ^ h >> 31;
}

/* The identity of an image is the sum over its lines, so their order does not matter. */
static void add_line(struct identity *id, uint64_t addr, const uint8_t *octets)
{
    for (unsigned half = 0; half < 2; half++) {
        uint64_t h = mix(addr + half * 0x9e3779b97f4a7c15ull), word;

        for (unsigned i = 0; i < SG_PERSIST_LINE; i += sizeof(word)) {
            memcpy(&word, octets + i, sizeof(word));
            h = mix(h * 31 + word);
        }
        id->half[half] += h;
    }
}

static void compare_page(struct sg_explore_images *x, const struct touched *t, unsigned extent,
                         const uint8_t *media, struct identity *id)
{
    uint64_t start = t->page * SG_PERSIST_PAGE, base = x->head.extent[extent].base;

    for (uint64_t m = t->lines; m; m &= m - 1) {
        uint64_t addr = start + (uint64_t)__builtin_ctzll(m) * SG_PERSIST_LINE;

        if (addr - base < x->head.extent[extent].size &&
            memcmp(media + addr - base, x->base[extent].octets + addr - base, SG_PERSIST_LINE)) {
            add_line(id, addr, media + addr - base);
            g_array_append_val(x->lines, addr);
        }
    }
}

struct identity images_compare(struct sg_explore_images *x, const struct sg_explore_memories *c)
{
    struct identity id = { { 0, 0 } };

    g_array_set_size(x->lines, 0);
    for (guint i = 0; i < x->pages->len; i++) {
        const struct touched *t = &g_array_index(x->pages, struct touched, i);

        for (unsigned k = 0; k < x->head.extent_count; k++) {
            const struct sg_trace_extent *e = &x->head.extent[k];

            if (t->page * SG_PERSIST_PAGE < e->base + e->size &&
                e->base < (t->page + 1) * SG_PERSIST_PAGE) {
                compare_page(x, t, k, c->media[k].octets, &id);
            }
        }
    }
    return id;
}

static gint by_addr(gconstpointer a, gconstpointer b)
{
    const struct sg_persist_bad *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

GArray *images_bad_lines(const struct sg_persist *p, struct identity *id)
{
    GArray *bad = g_array_new(FALSE, FALSE, sizeof(struct sg_persist_bad));
    struct sg_persist_bad b;
    uint64_t end = 0;

    for (unsigned i = 0; sg_persist_bad_range(p, i, &b); i++) {
        g_array_append_val(bad, b);
    }
    g_array_sort(bad, by_addr);
    for (guint i = 0; i < bad->len;) {
        struct sg_persist_bad *at = &g_array_index(bad, struct sg_persist_bad, i);

        if (at->addr < end) { /* of both kinds: once */
            g_array_remove_index(bad, i);
            continue;
        }
        end = at->addr + at->len;
        id->half[0] += mix(at->addr ^ at->kind);
        id->half[1] += mix(at->len ^ (uint64_t)at->kind << 32);
        i++;
    }
    return bad;
}

void images_name(const struct identity *id, char text[IMAGE_NAME])
{
    g_snprintf(text, IMAGE_NAME, "%016" G_GINT64_MODIFIER "x%016" G_GINT64_MODIFIER "x",
               id->half[0], id->half[1]);
}
