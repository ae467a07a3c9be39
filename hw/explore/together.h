/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two machines whose power fails at once: pairs of images, one of each.
 *
 * Each machine is a session of its own, whose results are in the folders "first" and "second".  On
 * both, the trace is read for the bounds of its intervals; pairs of crash points are chosen
 * (crash/pairs.h); each machine's images are made at its points of these, by the strategies; pairs
 * of these images are chosen.  pairs.json has them.  Both machines are of one platform.
 *
 * If a pair of crash points has a images of one machine and b of the other, the a + b - 1 pairs in
 * which one machine loses nothing come before the other (a - 1)(b - 1).
 *
 * Memory: two explorations, and 48 octets for each pair that --max-pairs allows.
 */
#ifndef SG_EXPLORE_TOGETHER_H
#define SG_EXPLORE_TOGETHER_H

#include "crash/pairs.h"
#include "session.h"

enum { SG_EXPLORE_SIDES = 2 };

struct sg_explore_pair {
    guint image[SG_EXPLORE_SIDES]; /* their numbers in images.json of each side */
    unsigned platforms;            /* a set */
};

struct sg_explore_both {
    struct sg_explore_session *side[SG_EXPLORE_SIDES];
    struct sg_crash_pairs pairs[SG_CRASH_PLATFORMS]; /* of crash points */
    uint64_t explored[SG_CRASH_PLATFORMS];           /* of these */
    uint64_t bare;              /* explored ones without images of a side: --max-images */
    uint64_t contrary;          /* whose pasts are too great to agree */
    GArray *points;             /* struct pair_point (together.c): explored ones */
    uint64_t one_sided, others; /* pairs of images at these */
    uint64_t taken;             /* of them */
    GArray *rows;               /* struct sg_explore_pair: what they are, each once */
    bool begun;                 /* pairs is there */
};

/* From the options to pairs.json.  The exit status. */
int sg_explore_together(const struct sg_explore_options *o);

/* pairs.json, and a summary to stdout.  False: a message is on stderr. */
bool sg_explore_write_pairs(const struct sg_explore_both *x, const char *folder);

#endif
