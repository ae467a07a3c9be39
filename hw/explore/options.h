/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of staghorn-explore. */
#ifndef SG_EXPLORE_OPTIONS_H
#define SG_EXPLORE_OPTIONS_H

#include "crash/plan.h"
#include "crash/platform.h"

/* Exit statuses; docs/crash-laboratory-points.md has them. */
enum sg_explore_status {
    SG_EXPLORE_GOOD,    /* every promise is kept on each platform that claims it */
    SG_EXPLORE_BUGS,    /* some are not */
    SG_EXPLORE_USAGE,   /* wrong arguments */
    SG_EXPLORE_TRACE,   /* a trace that cannot be read, or is none */
    SG_EXPLORE_NOTHING, /* no verdict: nothing was promised, or nothing could be judged */
    SG_EXPLORE_FAILED,  /* the output cannot be written, or memory be had */
};

struct sg_explore_options {
    const char *out;      /* folder */
    const char *target;   /* a machine's name; NULL: the only one with persistent memory */
    const char *together; /* another machine, whose power fails at the same time; NULL: none */
    bool not_claimed;     /* pairs on platforms as well that a guest was told more of */
    uint64_t max_pairs, pair_seed; /* of images of both */
    struct sg_crash_platform platform[SG_CRASH_PLATFORMS];
    unsigned platforms;
    uint8_t arrivals; /* of each: enum sg_crash_arrivals */
    unsigned acks;    /* set of bits 1 << enum sg_crash_ack */
    struct sg_crash_strategies strategies;
    const char *base[SG_TRACE_EXTENTS]; /* "NAME=FILE" */
    unsigned bases;
    const char *plans;     /* file; NULL: strategies */
    const char *reads;     /* file; of that strategy */
    const char *timelines; /* file; of stores whose timelines are wanted, and nothing else */
    const char *onto;      /* image that the trace begins with; NULL: with its base */
    char **trace;
    unsigned traces;
};

/* False: a message is on stderr (or help is on stdout), and *status is the exit status. */
bool sg_explore_options(int argc, char **argv, struct sg_explore_options *o, int *status);

#endif
