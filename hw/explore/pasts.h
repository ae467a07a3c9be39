/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memories of a platform's pasts (crash/past.h): each takes what was touched in it.
 *
 * As long as there is one past, its memories are shared mappings of the platform's files.  While
 * there are several, these files stay as they were, and the memories of each past are private
 * mappings of them; so a copy of a past is a mapping more, with the pages that its domain has
 * touched.  When there is one again, its pages are written to the files.
 *
 * Memories that nobody needs keep a few pages of their own, so that the next past that gets them
 * finds them mapped: to give a page back to the kernel costs more than to copy it.
 *
 * @m are the memories of all numbers; 0 owns the files, whosever memories they are.
 */
#ifndef SG_EXPLORE_PASTS_H
#define SG_EXPLORE_PASTS_H

#include "memory.h"
#include "persist/certain.h"

/* As sg_crash_fork(), sg_crash_drop() and sg_crash_unite() of crash/past.h, for so many extents. */
bool sg_explore_pasts_fork(struct sg_explore_memories *m, unsigned extents,
                           const struct sg_persist *p, unsigned from, unsigned to);
void sg_explore_pasts_drop(struct sg_explore_memories *m, unsigned extents,
                           const struct sg_persist *p, unsigned number);
bool sg_explore_pasts_unite(struct sg_explore_memories *m, unsigned extents,
                            const struct sg_persist *p, unsigned number);
/* How many pages a domain has touched. */
size_t sg_explore_pasts_touched(const struct sg_persist *p, unsigned extents);
/*
 * Private copies of a past's memories, for one cut after another; @to: none, or such copies, of
 * which only the pages are copied again that have been changed: sg_explore_pasts_changed() is told
 * of the pages that a clone of the domain has touched in them.
 */
bool sg_explore_pasts_copy(struct sg_explore_memories *to, const struct sg_explore_memories *m,
                           unsigned extents, const struct sg_persist *p, unsigned from);
void sg_explore_pasts_changed(struct sg_explore_memories *copy, unsigned extents,
                              const struct sg_persist *clone);

#endif
