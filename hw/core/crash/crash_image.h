/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A crash image: what a power cut left of persistent memory, as differences from a base;
 * docs/image-format.md describes the file.
 *
 * Differences are runs of whole lines, in ascending order, with at least one line between two of
 * them (or the border of two extents).  Lines that cannot be read after the cut are listed as
 * ranges of their own: all of them, not only those that were good in the base.  So images with the
 * same head and the same content are the same octets.
 *
 * Written into an array and read from memory (a mapped file), without I/O.  An image may come from
 * anybody: the reader examines all of it before it delivers the first run.
 */
#ifndef SG_CRASH_CRASH_IMAGE_H
#define SG_CRASH_CRASH_IMAGE_H

#include <glib.h>

#include "persist/persist.h"
#include "trace/format.h"

enum sg_crash_image_sizes {
    SG_CRASH_IMAGE_VERSION = 1,
    SG_CRASH_IMAGE_TEXT_MAX = 65536, /* octets */
};

struct sg_crash_image_head {
    uint8_t run[SG_TRACE_ID];     /* those of the trace that it was made from, or zeros */
    uint8_t machine[SG_TRACE_ID]; /* the start of the VM */
    unsigned extent_count;        /* 1 to SG_TRACE_EXTENTS */
    struct sg_trace_extent extent[SG_TRACE_EXTENTS]; /* has_content means nothing here */
    uint8_t base[SG_TRACE_EXTENTS][SG_TRACE_HASH];   /* of the base's content (sg_trace_hasher) */
    const char *text; /* lines NAME=VALUE about where it comes from; NULL: none */
};

/* A run of lines, or a range of lines that cannot be read. */
struct sg_crash_image_run {
    uint64_t addr, len;    /* machine address; multiples of 64, within one extent */
    const uint8_t *octets; /* the run's content; NULL: a range that cannot be read */
    uint8_t bad;           /* enum sg_persist_bad_kind; 0: a run */
};

/* ---- Writing ---- */

/* The order of calls: begin, differences, bad ranges, end.  Owns nothing. */
struct sg_crash_image_writer {
    GByteArray *out;
    struct sg_crash_image_head head;
    size_t last;             /* offset of the last run */
    uint64_t next, next_bad; /* addresses behind the last run and the last bad range */
    uint64_t runs, bad_ranges;
};

/*
 * The head must be right (sg_crash_image_head_wrong()).  The array becomes the file; an array has
 * at most 4 GiB.
 */
void sg_crash_image_begin(struct sg_crash_image_writer *w, GByteArray *out,
                          const struct sg_crash_image_head *head);
/* Lines that differ, within one extent, behind all that were added before. */
void sg_crash_image_add(struct sg_crash_image_writer *w, uint64_t addr, const uint8_t *octets,
                        uint64_t len);
/* Those lines of a range that differ between the two memories of len octets. */
void sg_crash_image_add_differing(struct sg_crash_image_writer *w, uint64_t addr,
                                  const uint8_t *base, const uint8_t *now, uint64_t len);
/* After all runs; behind all ranges that were added before.  Lines within one extent. */
void sg_crash_image_add_bad(struct sg_crash_image_writer *w, uint64_t addr, uint64_t len,
                            enum sg_persist_bad_kind kind);
void sg_crash_image_end(struct sg_crash_image_writer *w);

/* NULL, or what is wrong, as a static text. */
const char *sg_crash_image_head_wrong(const struct sg_crash_image_head *head);

/* ---- Reading ---- */

struct sg_crash_image {
    struct sg_crash_image_head head; /* its text belongs to this structure */
    uint64_t runs, lines;            /* that differ */
    uint64_t bad_ranges;
    /* private: */
    char *text;
    const uint8_t *first, *at, *end;
    uint64_t passed;
};

/*
 * Examines the file and sets everything.  The octets must stay while the image is used.  NULL, or a
 * static text that says why it is refused; then there is nothing to clear.
 */
const char *sg_crash_image_open(struct sg_crash_image *image, const uint8_t *octets, size_t len);
void sg_crash_image_clear(struct sg_crash_image *image);
/* The next run, then the bad ranges; false: none is left, and the next call begins anew. */
bool sg_crash_image_next(struct sg_crash_image *image, struct sg_crash_image_run *run);

#endif
