/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memories of extents, in files that exist in memory only (memfd).
 *
 * The content at the start is kept once.  Each platform has a visible memory and media of its own,
 * shared mappings of a file each, so that a private mapping of the same file is a copy that costs
 * only what is changed in it.  Pages of zeros take no memory.
 */
#ifndef SG_EXPLORE_MEMORY_H
#define SG_EXPLORE_MEMORY_H

#include <glib.h>
#include <stdbool.h>

#include "trace/format.h"

struct sg_explore_mapping {
    int fd;
    uint8_t *octets;
    uint64_t size;
};

/* Both memories of all extents. */
struct sg_explore_memories {
    struct sg_explore_mapping visible[SG_TRACE_EXTENTS], media[SG_TRACE_EXTENTS];
    bool apart; /* private mappings of files (pasts.h) */
    /* Likewise: pages that may differ from these, of memories that nobody needs and of copies for
     * cuts; NULL: none. */
    GArray *own;
};

struct sg_explore_content {
    int fd[SG_TRACE_EXTENTS]; /* -1: nothing yet */
    bool failed;
};

void sg_explore_content_init(struct sg_explore_content *c);
void sg_explore_content_fini(struct sg_explore_content *c);
/* A page of the content, as sg_trace_page; opaque: the content. */
void sg_explore_content_page(void *opaque, unsigned extent, uint64_t number,
                             const uint8_t page[SG_TRACE_PAGE]);
/* An extent's content is in a file, of so many octets at least.  False: a message is on stderr. */
bool sg_explore_content_file(struct sg_explore_content *c, unsigned extent, const char *path,
                             uint64_t size);

/*
 * Writes an extent's content to a file of this size; what is zero stays a hole.  False: errno says
 * why.
 */
bool sg_explore_content_save(const struct sg_explore_content *c, unsigned extent, uint64_t size,
                             const char *path);

/* A memory with the content of an extent of this size; false: there is no memory. */
bool sg_explore_map(struct sg_explore_mapping *m, const struct sg_explore_content *c,
                    unsigned extent, uint64_t size);
void sg_explore_memories_init(struct sg_explore_memories *m);
void sg_explore_memories_fini(struct sg_explore_memories *m);
/* A private copy of a memory; false: likewise. */
bool sg_explore_map_copy(struct sg_explore_mapping *m, const struct sg_explore_mapping *of);
/* The copy is equal to the memory again. */
void sg_explore_map_reset(struct sg_explore_mapping *m);
/* The file of another memory of the same size, mapped once more; NULL: likewise. */
void *sg_explore_map_fresh(const struct sg_explore_mapping *of, bool private);
/* A fresh mapping takes the place of a memory, at the memory's address. */
void sg_explore_map_replace(struct sg_explore_mapping *m, void *fresh);
void sg_explore_map_drop(const struct sg_explore_mapping *of, void *fresh);
/* Writes some octets of a memory to the same place of a file; false: there is no memory. */
bool sg_explore_map_save(const struct sg_explore_mapping *m, int fd, uint64_t off, size_t len);
void sg_explore_unmap(struct sg_explore_mapping *m);

#endif
