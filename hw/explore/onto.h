/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --onto: the trace was recorded in a VM that had been put back with an image.  What it had at the
 * start is that image on its base.  The images of this exploration differ from the same base.
 */
#ifndef SG_EXPLORE_ONTO_H
#define SG_EXPLORE_ONTO_H

#include "crash/crash_image.h"
#include "memory.h"
#include "trace/reader.h"

struct sg_explore_onto {
    const char *path;
    char *octets;
    struct sg_crash_image image;
};

/* False: a message is on stderr. */
bool sg_explore_onto_open(struct sg_explore_onto *o, const char *path);
void sg_explore_onto_close(struct sg_explore_onto *o);
/*
 * An extent of the trace: is its content at the start the image on this base?  An extent that has
 * none in the trace gets it.  False: as above.
 */
bool sg_explore_onto_extent(struct sg_explore_onto *o, const struct sg_trace_reader *reader,
                            unsigned extent, const struct sg_explore_content *base,
                            struct sg_explore_content *content);

#endif
