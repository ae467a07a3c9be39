/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Platforms: what of a machine decides which data survive a power cut, and what its guest was told
 * about that.
 *
 * A trace is explored on each platform at its laziest: data stay in S0, S1, S2' and the caches for
 * as long as nothing in the trace proves the opposite.  A cut may still find them further on, since
 * each of its questions has that alternative.
 */
#ifndef SG_CRASH_PLATFORM_H
#define SG_CRASH_PLATFORM_H

#include <glib.h>

#include "persist/persist.h"
#include "trace/format.h"

/* Has what is under way to a line arrived when somebody else stores to it? */
enum sg_crash_arrivals {
    SG_CRASH_LATE,  /* nothing of it */
    SG_CRASH_EARLY, /* all of it */
    SG_CRASH_ANY,   /* in one past this, in another one that: past.h */
    SG_CRASH_ARRIVALS,
};

struct sg_crash_platform {
    uint8_t domain; /* enum sg_persist_domain */
    bool ddio;
    uint8_t arrivals; /* enum sg_crash_arrivals */
};

enum {
    SG_CRASH_PLATFORMS = 2 * SG_PERSIST_DOMAINS,
    SG_CRASH_PLATFORM_NAME = 24, /* octets of a name with its end */
};

const char *sg_crash_arrivals_name(enum sg_crash_arrivals arrivals); /* "late", "early", "any" */
/* Negative: unknown. */
int sg_crash_arrivals_parse(const char *name);

/* "adr,ddio=on" */
void sg_crash_platform_name(const struct sg_crash_platform *platform,
                            char name[SG_CRASH_PLATFORM_NAME]);

/*
 * All combinations of two lists, "none,adr" and "on,off", where "all" stands for all; the weakest
 * domain first.  Returns their number; 0: a list is empty or has an unknown word, *wrong says
 * which.
 */
unsigned sg_crash_platforms_parse(const char *domains, const char *ddio,
                                  struct sg_crash_platform out[SG_CRASH_PLATFORMS],
                                  const char **wrong);

/* The settings of a domain that is this platform, at its laziest. */
void sg_crash_platform_settings(const struct sg_crash_platform *platform,
                                struct sg_persist_config *config, struct sg_persist_limits *limits);

/* ---- What the guest was told ---- */

/* What ACPI's NFIT says that the platform flushes at a power failure. */
enum sg_crash_told {
    SG_CRASH_TOLD_NOTHING,
    SG_CRASH_TOLD_QUEUE, /* "memory-controller": what has reached the memory controller */
    SG_CRASH_TOLD_CACHE, /* "cpu-cache": CPU caches, too */
    SG_CRASH_TOLD_UNKNOWN,
};

/* From the header's text SG_TRACE_PLATFORM: its line persistence-domain=... */
enum sg_crash_told sg_crash_told_parse(const char *text);
const char *sg_crash_told_name(enum sg_crash_told told); /* "not-told", "memory-controller"... */
/* Does the platform keep at least what the guest was told that it keeps? */
bool sg_crash_platform_claims(const struct sg_crash_platform *platform, enum sg_crash_told told);

#endif
