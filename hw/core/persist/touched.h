/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of an extent that something was done to since somebody asked for it: a store, data that
 * became visible or moved on, a flush that covers something.
 *
 * What is not among them is as it was, in both memories and in what is known of its lines.  A page
 * too many costs its owner time, and nothing else.  A bit for each page of the extent, and a number
 * for each one that was touched; nothing where nobody asks.
 */
#ifndef SG_PERSIST_TOUCHED_H
#define SG_PERSIST_TOUCHED_H

#include <glib.h>

#include "base/bytes.h"

struct sg_dom_touched {
    uint64_t *map;  /* a bit per page; NULL: nobody asks */
    GArray *number; /* uint64_t: of these pages, in any order */
};

void sg_dom_touched_begin(struct sg_dom_touched *t, size_t page_count);
void sg_dom_touched_end(struct sg_dom_touched *t);
void sg_dom_touched_copy(struct sg_dom_touched *t, const struct sg_dom_touched *from,
                         size_t page_count);
void sg_dom_touched_add(struct sg_dom_touched *t, size_t page_no);

static inline bool sg_dom_was_touched(const struct sg_dom_touched *t, size_t page_no)
{
    return t->map[page_no / 64] >> (page_no % 64) & 1;
}

/* Something is about to be done to a page. */
static inline void sg_dom_touch(struct sg_dom_touched *t, size_t page_no)
{
    if (t->map) {
        sg_dom_touched_add(t, page_no);
    }
}

/* Something was or will be done to a range, which may be empty. */
void sg_dom_touch_range(struct sg_dom_touched *t, uint64_t off, uint64_t len);

#endif
