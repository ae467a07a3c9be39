/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images: at each crash point of each platform, what cuts leave by the plans of the strategies.
 *
 * An image is what differs from the content at the start.  The same content is one file,
 * images/HASH.image, however many plans lead to it.  images.json has for each image the crash
 * points at which it occurs, the platforms, a plan, and what is demanded of it there.  Where
 * neither an image nor the demands differ from an earlier crash point, it occurs once.
 *
 * Memory: a bit for each line that the trace touches, the lines of one image, and a line of text
 * for each occurrence, of which there are at most --max-images.
 */
#ifndef SG_EXPLORE_IMAGES_H
#define SG_EXPLORE_IMAGES_H

#include "crash/count.h"
#include "crash/crash_image.h"
#include "crash/explore.h"
#include "crash/plan.h"
#include "memory.h"
#include "options.h"
#include "plans.h"

struct sg_explore_images;

enum { SG_EXPLORE_CUT_SHORT = 16 };

struct sg_explore_images_counts {
    uint64_t points;    /* crash points that were explored */
    uint64_t left_out;  /* crash points that were not, or not to the end: --max-images */
    uint64_t clustered; /* crash points that are like others */
    uint64_t cut_short; /* crash points at which "reads" had more plans than allowed; the first: */
    uint64_t cut_behind[SG_EXPLORE_CUT_SHORT];
    uint64_t plans[SG_CRASH_STRATEGIES]; /* cuts */
    uint64_t found[SG_CRASH_STRATEGIES]; /* images that no strategy before it found there */
    /* Ways to answer the questions of a cut, all crash points together: as many images, at most. */
    struct sg_crash_count ways;
    uint64_t uncounted; /* crash points of which there are more ways than were counted */
};

/* Which images.  All of it outlives the images. */
struct sg_explore_wanted {
    const struct sg_crash_strategies *strategies;
    GArray *plans; /* struct sg_explore_plan: exactly these, and no strategy; NULL: strategies */
    bool instants; /* an image is listed at each crash point at which it occurs */
};

/* folder: that of the results. */
struct sg_explore_images *sg_explore_images_new(const char *folder,
                                                const struct sg_explore_wanted *want);
void sg_explore_images_free(struct sg_explore_images *x);
/* An event of the target, in pass 1: its lines may differ from the base. */
void sg_explore_images_touch(struct sg_explore_images *x, const struct sg_trace_event *e);
/* So may those of a range that the start has otherwise than the base. */
void sg_explore_images_touch_range(struct sg_explore_images *x, uint64_t addr, uint64_t len);
/*
 * Before the first crash point: writes the base of the images.  target_name, promises and explorer
 * outlive the images.  False: no memory, or a file cannot be written; a message is on stderr.
 */
bool sg_explore_images_begin(struct sg_explore_images *x, const struct sg_crash_image_head *head,
                             const struct sg_explore_content *base,
                             const struct sg_crash_exploration *what,
                             const struct sg_crash_explorer *explorer, const char *target_name);
/* Is there a plan of want.plans for the instant behind this event?  Instants come in order. */
bool sg_explore_images_planned(struct sg_explore_images *x, uint64_t behind);
/*
 * A crash point of a platform, or an instant of a plan, in one past; the memories of all of its
 * pasts.  Not SG_EXPLORE_GOOD: an image cannot be written, or a plan is wrong; a message is on
 * stderr.
 */
enum sg_explore_status sg_explore_images_point(struct sg_explore_images *x, unsigned platform,
                                               const struct sg_persist *p, uint64_t behind,
                                               const struct sg_explore_memories *memories);
/*
 * After the last crash point: do not all crash points fit?  Then they are to come once more, from
 * another explorer of the same (NULL: to ask only), which outlives the images.
 */
bool sg_explore_images_again(struct sg_explore_images *x, const struct sg_crash_explorer *explorer);
/*
 * After that: images of bugs (struct sg_explore_plan with `loses`) are wanted besides, behind the
 * events of these plans, which are to come once more.  They outlive the images.
 */
void sg_explore_images_of_bugs(struct sg_explore_images *x, GArray *plans);
/* The image of a bug, by the number of its plan; NULL: there is none.  The caller frees it. */
char *sg_explore_images_of_bug(const struct sg_explore_images *x, guint number);
/* After the last crash point: writes images.json.  The status as above. */
enum sg_explore_status sg_explore_images_end(struct sg_explore_images *x,
                                             const struct sg_crash_platform *platform);
/* Distinct contents; and occurrences. */
uint64_t sg_explore_images_count(const struct sg_explore_images *x, uint64_t *occurrences);
/*
 * Each element of the list in images.json, by its number there: behind which event, on which
 * platforms (a set), and does everything survive?
 */
typedef void sg_explore_occurrence(void *opaque, guint number, uint64_t behind, unsigned platforms,
                                   bool everything);
void sg_explore_images_each(const struct sg_explore_images *x, sg_explore_occurrence *each,
                            void *opaque);
/* Are the crash points that were explored spread over the run, because not all fitted? */
bool sg_explore_images_spread(const struct sg_explore_images *x);
uint64_t sg_explore_images_clusters(const struct sg_explore_images *x, unsigned platform);
/* How many of them have no list of deviations in images.json. */
uint64_t sg_explore_images_unlisted(const struct sg_explore_images *x);
const struct sg_explore_images_counts *sg_explore_images_counts(const struct sg_explore_images *x,
                                                                unsigned platform);

#endif
