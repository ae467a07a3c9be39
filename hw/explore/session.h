/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One exploration from the command line to its results.
 */
#ifndef SG_EXPLORE_SESSION_H
#define SG_EXPLORE_SESSION_H

#include "crash/timeline.h"
#include "images.h"
#include "input.h"
#include "memory.h"
#include "onto.h"
#include "options.h"

/* What the reading of a trace came to. */
struct sg_explore_reading {
    enum sg_trace_status status;
    char *message;
    uint64_t events;
};

/* What one of two machines has to know, whose power fails at once (together.c). */
struct sg_explore_half {
    unsigned other;                       /* the other machine */
    GArray *steps[SG_CRASH_MACHINES];     /* struct sg_crash_step: of each, about the other */
    GArray *bounds[SG_CRASH_PLATFORMS];   /* uint64_t: ascending (crash/pairs.h) */
    GArray *instants[SG_CRASH_PLATFORMS]; /* uint64_t, ascending: where images are made */
    guint next[SG_CRASH_PLATFORMS];       /* of these */
    bool chosen;                          /* they are known */
};

struct sg_explore_session {
    struct sg_explore_options o;
    struct sg_explore_trace trace[SG_CRASH_MACHINES];
    struct sg_explore_reading reading[SG_CRASH_MACHINES];
    unsigned target;
    uint8_t run[SG_TRACE_ID];
    char *told; /* the header's text SG_TRACE_PLATFORM */
    char *config;

    struct sg_crash_order *ordering; /* of pass 1; pass 3 uses it again */
    struct sg_crash_order_counts order;
    struct sg_crash_promises *promises;
    struct sg_crash_issuers issuers;

    struct sg_explore_content content; /* at the start */
    struct sg_explore_content base;    /* with --onto: of its image */
    struct sg_explore_onto onto;
    struct sg_crash_reads reads; /* of --reads */
    /* Of each past of each platform. */
    struct sg_explore_memories memories[SG_CRASH_PLATFORMS][SG_CRASH_PASTS];
    struct sg_crash_explorer *explorer;
    GArray *plans;                    /* struct sg_explore_plan; NULL: none are given */
    struct sg_explore_images *images; /* NULL: none are wanted */
    struct sg_explore_half *half;     /* NULL: the power of one machine fails */
    enum sg_explore_status images_status;
    GArray *lost;                         /* struct sg_explore_lost_store (lost_stores.h) */
    GArray *bugs;                         /* struct sg_crash_bug; or of these stores */
    struct sg_crash_teller *teller;       /* NULL: no bugs */
    struct sg_crash_timelines *timelines; /* likewise */
    GHashTable *details;                  /* of machine and event to struct sg_explore_detail */
};

/* An event that a result names. */
struct sg_explore_detail {
    struct sg_trace_event e; /* without payload */
    char *name;              /* of a mark; or NULL */
    char *text;              /* of a mark; or NULL */
};

/* Never NULL. */
struct sg_explore_session *sg_explore_start(void);
void sg_explore_finish(struct sg_explore_session *s);
/* Makes the folder of the results; which images are wanted.  The status, as below. */
int sg_explore_prepare(struct sg_explore_session *s);
/* result.json, and promises.json if there are images; the summary goes to stdout. */
int sg_explore_write_results(struct sg_explore_session *s);

/* All traces from their beginnings, for the order; false: a message is on stderr. */
bool sg_explore_sources(struct sg_explore_session *s, struct sg_crash_source *source);
/* Reads all traces: promises, issuers.  The functions return an enum sg_explore_status. */
int sg_explore_pass_1(struct sg_explore_session *s);
/* The content at the start, from the target's trace and --base. */
int sg_explore_read_content(struct sg_explore_session *s);
/* The memories of a platform with the content at the start; those of other pasts are gone. */
int sg_explore_map_memories(struct sg_explore_session *s, unsigned platform);
/* Is the mapped content of an extent what the trace begins with?  False: a message is on stderr. */
bool sg_explore_begins_with(struct sg_explore_session *s, unsigned platform, unsigned extent);
/* A message on stderr; the status. */
int sg_explore_no_memory(const char *what);
/* Reads the target's trace: verdicts, images. */
int sg_explore_pass_2(struct sg_explore_session *s);
/* Reads it again, with half->instants: images. */
int sg_explore_pass_images(struct sg_explore_session *s);
/* Reads what bugs name. */
int sg_explore_pass_3(struct sg_explore_session *s);
/*
 * promises.json: all promises in the order in which they bind, for checkers of images.  False: a
 * message is on stderr.
 */
bool sg_explore_write_promises(const struct sg_explore_session *s);
/* The detail of an event; NULL: it was not asked for. */
const struct sg_explore_detail *sg_explore_detail(const struct sg_explore_session *s,
                                                  unsigned machine, uint64_t event);

/* The exit status that the verdicts amount to. */
int sg_explore_verdict(const struct sg_explore_session *s);
/* Appends result.json, and the summary for people. */
void sg_explore_result(const struct sg_explore_session *s, GString *out);
void sg_explore_summary(const struct sg_explore_session *s, GString *out);
/* Why a verdict is less than it seems, as sentences; the caller frees them (g_strfreev()). */
char **sg_explore_notes(const struct sg_explore_session *s);

/* A long pass tells its progress on stderr, every few seconds. */
void sg_explore_progress(const char *what, uint64_t done, uint64_t all);

#endif
