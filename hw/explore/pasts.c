/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private mappings of the same files, and the pages in which they differ from these. */
#include <string.h>

#include "pasts.h"

enum { OWN_PAGES = 256 }; /* more of them are given back */

struct page_of {
    uint64_t off;
    size_t len;
    unsigned extent;
};

size_t sg_explore_pasts_touched(const struct sg_persist *p, unsigned extents)
{
    size_t all = 0, count;

    for (unsigned i = 0; i < extents; i++) {
        sg_persist_touched(p, i, &count);
        all += count;
    }
    return all;
}

/* The pages that a domain has touched. */
static GArray *touched_pages(const struct sg_persist *p, const struct sg_explore_memories *m,
                             unsigned extents)
{
    GArray *pages = g_array_new(FALSE, FALSE, sizeof(struct page_of));

    for (unsigned i = 0; i < extents; i++) {
        uint64_t size = m->visible[i].size;
        size_t count;
        const uint64_t *number = sg_persist_touched(p, i, &count);

        for (size_t k = 0; k < count; k++) {
            struct page_of page = { .off = number[k] * SG_PERSIST_PAGE, .extent = i };

            page.len = SG_MIN(size - page.off, SG_PERSIST_PAGE);
            g_array_append_val(pages, page);
        }
    }
    return pages;
}

/* ---- Copies ---- */

static void copy_page(struct sg_explore_memories *to, const struct sg_explore_memories *from,
                      const struct page_of *x)
{
    memcpy(to->visible[x->extent].octets + x->off, from->visible[x->extent].octets + x->off,
           x->len);
    memcpy(to->media[x->extent].octets + x->off, from->media[x->extent].octets + x->off, x->len);
}

static void copy_touched(struct sg_explore_memories *to, const struct sg_explore_memories *from,
                         unsigned extents, const struct sg_persist *p)
{
    GArray *pages = touched_pages(p, from, extents);

    for (guint i = 0; i < pages->len; i++) {
        copy_page(to, from, &g_array_index(pages, struct page_of, i));
    }
    g_array_unref(pages);
}

/* Private mappings, where there are none yet. */
static bool map_private(struct sg_explore_memories *to, const struct sg_explore_memories *files,
                        unsigned extents)
{
    for (unsigned i = 0; i < extents; i++) {
        if ((!to->visible[i].octets && !sg_explore_map_copy(&to->visible[i], &files->visible[i])) ||
            (!to->media[i].octets && !sg_explore_map_copy(&to->media[i], &files->media[i]))) {
            return false;
        }
    }
    to->apart = true;
    return true;
}

static void give_back(struct sg_explore_memories *m, unsigned extents)
{
    for (unsigned i = 0; i < extents; i++) {
        sg_explore_map_reset(&m->visible[i]);
        sg_explore_map_reset(&m->media[i]);
    }
}

/* ---- Pages of their own ---- */

static void forget_own(struct sg_explore_memories *m)
{
    if (m->own) {
        g_array_unref(m->own);
        m->own = NULL;
    }
}

static gint by_place(gconstpointer a, gconstpointer b)
{
    const struct page_of *x = a, *y = b;

    return x->extent != y->extent ? (x->extent > y->extent) - (x->extent < y->extent)
                                  : (x->off > y->off) - (x->off < y->off);
}

/* More pages that memories have of their own. */
static void add_own(struct sg_explore_memories *m, GArray *pages)
{
    guint kept = 0;

    if (m->own) {
        g_array_append_vals(pages, m->own->data, m->own->len);
        g_array_unref(m->own);
    }
    g_array_sort(pages, by_place);
    for (guint i = 0; i < pages->len; i++) {
        struct page_of *x = &g_array_index(pages, struct page_of, i);

        if (!kept || by_place(x, &g_array_index(pages, struct page_of, kept - 1)) != 0) {
            g_array_index(pages, struct page_of, kept++) = *x;
        }
    }
    g_array_set_size(pages, kept);
    m->own = pages;
}

/* ---- Copies for cuts ---- */

bool sg_explore_pasts_copy(struct sg_explore_memories *to, const struct sg_explore_memories *m,
                           unsigned extents, const struct sg_persist *p, unsigned from)
{
    if (!to->apart && !map_private(to, m, extents)) {
        return false;
    }
    if (to->own && to->own->len > OWN_PAGES) {
        give_back(to, extents);
        forget_own(to);
    }
    for (guint i = 0; to->own && i < to->own->len; i++) {
        copy_page(to, &m[from], &g_array_index(to->own, struct page_of, i));
    }
    if (m[from].apart) {
        copy_touched(to, &m[from], extents, p);
        add_own(to, touched_pages(p, to, extents));
    }
    return true;
}

void sg_explore_pasts_changed(struct sg_explore_memories *copy, unsigned extents,
                              const struct sg_persist *clone)
{
    add_own(copy, touched_pages(clone, copy, extents));
}

/* ---- Several pasts ---- */

static void drop_fresh(const struct sg_explore_memories *files, unsigned extents, void *fresh[])
{
    for (unsigned i = 0; i < extents; i++) {
        sg_explore_map_drop(&files->visible[i], fresh[2 * i]);
        sg_explore_map_drop(&files->media[i], fresh[2 * i + 1]);
    }
}

/*
 * Shared mappings of the files become private ones, or the reverse.  All are made before one is
 * used, so if there is no memory for them, nothing has changed.
 */
static bool turn(struct sg_explore_memories *m, const struct sg_explore_memories *files,
                 unsigned extents, bool private)
{
    void *fresh[2 * SG_TRACE_EXTENTS] = { NULL };

    for (unsigned i = 0; i < extents; i++) {
        fresh[2 * i] = sg_explore_map_fresh(&files->visible[i], private);
        fresh[2 * i + 1] = sg_explore_map_fresh(&files->media[i], private);
        if (!fresh[2 * i] || !fresh[2 * i + 1]) {
            drop_fresh(files, extents, fresh);
            return false;
        }
    }
    for (unsigned i = 0; i < extents; i++) {
        sg_explore_map_replace(&m->visible[i], fresh[2 * i]);
        sg_explore_map_replace(&m->media[i], fresh[2 * i + 1]);
    }
    m->apart = private;
    forget_own(m);
    return true;
}

bool sg_explore_pasts_fork(struct sg_explore_memories *m, unsigned extents,
                           const struct sg_persist *p, unsigned from, unsigned to)
{
    if ((!m[from].apart && !turn(&m[from], m, extents, true)) || !map_private(&m[to], m, extents)) {
        return false;
    }
    for (guint i = 0; m[to].own && i < m[to].own->len; i++) {
        const struct page_of *x = &g_array_index(m[to].own, struct page_of, i);

        if (!sg_persist_was_touched(p, x->extent, x->off / SG_PERSIST_PAGE)) {
            copy_page(&m[to], &m[from], x);
        }
    }
    copy_touched(&m[to], &m[from], extents, p);
    return true;
}

void sg_explore_pasts_drop(struct sg_explore_memories *m, unsigned extents,
                           const struct sg_persist *p, unsigned number)
{
    add_own(&m[number], touched_pages(p, m, extents));
    if (m[number].own->len > OWN_PAGES) {
        give_back(&m[number], extents);
        forget_own(&m[number]);
    }
}

/* ---- One again ---- */

bool sg_explore_pasts_unite(struct sg_explore_memories *m, unsigned extents,
                            const struct sg_persist *p, unsigned number)
{
    GArray *pages;
    bool good = true;

    if (!m[number].apart) {
        return true;
    }
    pages = touched_pages(p, m, extents);
    for (guint i = 0; i < pages->len && good; i++) {
        const struct page_of *x = &g_array_index(pages, struct page_of, i);
        unsigned k = x->extent;

        good = sg_explore_map_save(&m[number].visible[k], m->visible[k].fd, x->off, x->len) &&
               sg_explore_map_save(&m[number].media[k], m->media[k].fd, x->off, x->len);
    }
    g_array_unref(pages);
    return good && turn(&m[number], m, extents, false);
}
