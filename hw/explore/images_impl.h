/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The images of a run, shared by images.c (crash points and plans), image_lines.c (what differs)
 * and image_files.c (what is written).
 */
#ifndef SG_EXPLORE_IMAGES_IMPL_H
#define SG_EXPLORE_IMAGES_IMPL_H

#include "crash/cluster.h"
#include "images.h"

enum {
    IMAGE_NAME = 33, /* 32 digits */
    /* Deviations and lost stores that are kept of an image, and of all of them. */
    DEVIATIONS_EACH = 4096,
    DEVIATIONS_ALL = 1 << 20,
};

/* Lines of 4 KiB of the machine's addresses that the trace touches. */
struct touched {
    uint64_t page, lines;
};

struct identity {
    uint64_t half[2];
};

/*
 * An image with what is demanded of it, and how a cut leaves it on some platforms.  Each platform
 * is in one occurrence, that of the first crash point at which it has the image.
 */
struct occurrence {
    struct occurrence *next; /* of the same image and demands, on other platforms */
    struct identity id;
    uint64_t promises; /* how many are in force */
    uint64_t behind;
    uint64_t instant;   /* with want.instants: the crash point, from 1 on; images differ by it */
    unsigned platforms; /* a set */
    char *plan;
    GArray *early; /* struct sg_crash_answer: the past (past.h) */
    guint number;  /* of --plans: the plan's; of a bug, from 1 on */
    /* NULL: too many, of which there would be so many. */
    struct sg_crash_deviations *deviations;
    guint omitted;
};

/* Crash points of each platform, without those that their clusters leave out. */
struct spread {
    uint64_t seen[SG_CRASH_PLATFORMS]; /* so far */
    bool again;                        /* the trace is read once more, because not all fitted: */
    uint64_t count[SG_CRASH_PLATFORMS], chosen[SG_CRASH_PLATFORMS]; /* of the run; of these */
    uint64_t done, all; /* chosen ones so far, and all, of all platforms */
};

struct sg_explore_images {
    char *folder; /* of the results */
    struct sg_explore_wanted want;
    const struct sg_crash_explorer *explorer;
    const struct sg_crash_issuers *issuers;
    struct sg_crash_clusters clusters[SG_CRASH_PLATFORMS];
    GArray *losers; /* uint32_t: issuers at the crash point at hand */
    struct spread spread;
    uint64_t allowed; /* images, up to the end of this crash point */
    guint next_plan;  /* of want.plans: the first one of this crash point or a later one */
    struct sg_crash_deviations deviations; /* of the last cut */
    uint64_t listed, unlisted;             /* deviations and lost stores; images without a list */
    GHashTable *touched;                   /* page to its index + 1 in pages */
    GArray *pages;                         /* struct touched; ascending from the beginning on */
    struct sg_crash_image_head head;
    struct sg_explore_mapping base[SG_TRACE_EXTENTS];
    char *base_file[SG_TRACE_EXTENTS]; /* relative to the folder */
    const char *target;
    struct sg_explore_memories copies[SG_CRASH_PLATFORMS]; /* a clone's */
    const struct sg_crash_promise *promise;
    uint64_t promises;
    uint64_t in_force; /* of them at the crash point */
    GArray *lines;     /* uint64_t: addresses that differ in the image at hand */
    GHashTable *known; /* struct identity: files written */
    GHashTable *where; /* the first struct occurrence by image and demands */
    GPtrArray *all;    /* all of them, in their order */
    uint64_t demanded; /* images with what is demanded of them: those in all without a former one */
    uint64_t cuts, ways_cuts;
    /* At the crash point at hand: */
    const struct sg_persist *p;
    unsigned platform;
    const struct sg_explore_memories *memories; /* of all pasts */
    unsigned memory;                            /* the past's, by number */
    const GArray *early;
    struct sg_explore_images_counts counts[SG_CRASH_PLATFORMS];
};

bool images_complain(const char *path);

/* ---- images.c ---- */

/* A clone at one outcome of the crash point at hand; the platform's copies have its media. */
struct sg_persist *images_cut(struct sg_explore_images *x, const struct sg_persist_policy *policy);
void images_unmap_copies(struct sg_explore_images *x, unsigned platform);
/* Notes the image of a plan, of one that is given in any case.  False: a file is not written. */
bool images_note(struct sg_explore_images *x, struct sg_crash_planner *plan,
                 const struct sg_explore_plan *given, uint64_t behind,
                 const struct sg_persist *clone);

/* ---- image_bugs.c ---- */

/* The image of a bug, if there is one at the crash point at hand. */
enum sg_explore_status images_by_bug(struct sg_explore_images *x, struct sg_explore_plan *given,
                                     uint64_t behind);

/* ---- image_points.c ---- */

/* Is the crash point at hand explored?  Counts it if not, and sets x->allowed if it is. */
bool images_wants_point(struct sg_explore_images *x);

/* ---- image_lines.c ---- */

/* Pages that events touched, in the order of their addresses. */
void images_sort_pages(struct sg_explore_images *x);
/* What differs from the base: fills x->lines. */
struct identity images_compare(struct sg_explore_images *x, const struct sg_explore_memories *c);
/* Lines that cannot be read are part of the image: struct sg_persist_bad, by address. */
GArray *images_bad_lines(const struct sg_persist *p, struct identity *id);
void images_name(const struct identity *id, char text[IMAGE_NAME]);

/* ---- image_files.c ---- */

/* Makes the folders, and writes the base of each extent. */
bool images_write_base(struct sg_explore_images *x, const struct sg_explore_content *content);
bool images_write_image(struct sg_explore_images *x, const struct sg_explore_memories *c,
                        const GArray *bad, const struct identity *id);
/* images.json */
bool images_write_list(const struct sg_explore_images *x, const struct sg_crash_platform *platform);

#endif
