/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bitmap, so that each page is in the list once. */
#include "persist/certain.h"
#include "persist/domain_impl.h"

static size_t words(size_t page_count)
{
    return (page_count + 63) / 64;
}

void sg_dom_touched_begin(struct sg_dom_touched *t, size_t page_count)
{
    sg_dom_touched_end(t);
    t->map = g_new0(uint64_t, words(page_count));
    t->number = g_array_new(FALSE, FALSE, sizeof(uint64_t));
}

void sg_dom_touched_end(struct sg_dom_touched *t)
{
    if (t->map) {
        g_free(t->map);
        g_array_unref(t->number);
    }
    *t = (struct sg_dom_touched){ .map = NULL };
}

void sg_dom_touched_copy(struct sg_dom_touched *t, const struct sg_dom_touched *from,
                         size_t page_count)
{
    *t = (struct sg_dom_touched){ .map = NULL };
    if (from->map) {
        t->map = g_memdup2(from->map, words(page_count) * sizeof(*from->map));
        t->number = g_array_copy(from->number);
    }
}

void sg_dom_touched_add(struct sg_dom_touched *t, size_t page_no)
{
    uint64_t number = page_no;

    if (!sg_dom_was_touched(t, page_no)) {
        t->map[page_no / 64] |= 1ull << (page_no % 64);
        g_array_append_val(t->number, number);
    }
}

void sg_dom_touch_range(struct sg_dom_touched *t, uint64_t off, uint64_t len)
{
    for (uint64_t at = sg_align_down(off, SG_PERSIST_PAGE); t->map && at < off + len;
         at += SG_PERSIST_PAGE) {
        sg_dom_touched_add(t, at / SG_PERSIST_PAGE);
    }
}

/* ---- Interface ---- */

void sg_persist_note_touched(struct sg_persist *p, bool on)
{
    for (unsigned i = 0; i < p->extent_count; i++) {
        if (on && p->extent[i].used) {
            sg_dom_touched_begin(&p->extent[i].touched, p->extent[i].page_count);
        } else {
            sg_dom_touched_end(&p->extent[i].touched);
        }
    }
}

const uint64_t *sg_persist_touched(const struct sg_persist *p, unsigned extent, size_t *count)
{
    const GArray *number = p->extent[extent].touched.number;

    *count = number ? number->len : 0;
    return number ? (const uint64_t *)(const void *)number->data : NULL;
}

bool sg_persist_was_touched(const struct sg_persist *p, unsigned extent, uint64_t page_no)
{
    const struct sg_dom_touched *t = &p->extent[extent].touched;

    return t->map && sg_dom_was_touched(t, page_no);
}
