/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A replay, for replay.c and replay_clone.c only. */
#ifndef SG_CRASH_REPLAY_IMPL_H
#define SG_CRASH_REPLAY_IMPL_H

#include <glib.h>

#include "crash/replay.h"

struct sg_crash_replay {
    struct sg_persist *p;
    struct sg_trace_header header; /* its texts are not used after creation */
    unsigned extents;
    struct sg_persist_extent extent[SG_PERSIST_EXTENTS];
    bool is_cut;         /* and not restarted */
    bool elsewhere;      /* sg_crash_replay_new_for() */
    GHashTable *flushes; /* (adapter, QP) to struct flush_under_way */
};

/* A Flush under way. */
struct flush_under_way {
    struct sg_pm_op op;
    struct sg_persist_flush_note note;
};

#endif
