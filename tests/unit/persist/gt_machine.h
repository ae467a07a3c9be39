/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine of the ground truth: where its data are, and how they may move.  Shared by gt_machine.c
 * (one machine), gt_set.c (all of them), gt_steps.c and ground_truth.c (what the trace does to
 * them) only.
 */
#ifndef SG_TESTS_PERSIST_GT_MACHINE_H
#define SG_TESTS_PERSIST_GT_MACHINE_H

#include "ground_truth.h"
#include "persist/persist.h"

/* Consecutive halves of one line. */
struct gt_part {
    uint8_t at, units, value, cpu;
    uint8_t kind;            /* enum gt_buffered */
    uint8_t event;           /* its number in the trace */
    bool more;               /* in the store buffer: the next entry is of the same store and line */
    uint8_t after;           /* non-temporal: so many entries of the store buffer leave before it */
    uint8_t segment, number; /* of a segment: which one, and its number in it */
};

enum gt_buffered { BUFFERED_STORE, BUFFERED_NOTE, BUFFERED_CLFLUSH };

struct gt_machine {
    uint64_t placed[GT_QUEUES]; /* at the cut: parts of S0 that arrived; bits */
    uint8_t media[GT_WORLD], queue[GT_WORLD], cache[GT_WORLD];
    uint8_t version[GT_LINES], queued[GT_LINES]; /* stores that reached the line, and S3 */
    uint8_t note[GT_CPUS][GT_LINES];             /* version that the next fence makes certain */
    uint8_t arrived[GT_DEVICES];                 /* at the cut: atoms of S1 */
    uint8_t drained[GT_CPUS];                    /* entries of the store buffers */
    uint8_t written[GT_LINES];                   /* with bad lines: version on the media */
    uint8_t poisoned[GT_LINES];                  /* 0 or 1 */
    uint8_t unused[4];
    uint8_t came[GT_EVENTS]; /* parts of the segments that arrived and are not proved */
    uint32_t left;           /* non-temporal stores: bits */
};

/* A segment on its way, where segments are placed in any order. */
struct gt_segment {
    uint8_t device, conn, event;
    bool settled;           /* it is in S1 */
    uint8_t when;           /* settled: since this event */
    uint8_t parts, arrived; /* in every machine */
    struct gt_part part[GT_LINE];
};

struct gt_world {
    const struct gt_trace *t;
    GArray *machines; /* struct gt_machine, all different */
    GHashTable *known;
    unsigned most;
    bool too_many, cutting;
    bool between; /* two events: segments arrive */
    bool bad;     /* the trace has bad lines: who has written them matters */
    bool uncorrectable[GT_LINES];
    /* Of a line that becomes bad: the versions that all machines have in the queue, written. */
    uint8_t least_queued[GT_LINES], least_written[GT_LINES];
    struct gt_part buffer[GT_CPUS][64], nt[GT_PARTS];
    unsigned buffered[GT_CPUS], nts, now;
    struct gt_part s0[GT_QUEUES][64], s1[GT_DEVICES][64]; /* a connection's, an adapter's */
    unsigned s0_count[GT_QUEUES], s1_count[GT_DEVICES];
    uint8_t memory[GT_WORLD]; /* that of the run: the newest of each half in the trace */
    struct gt_segment segment[GT_EVENTS]; /* instead, with gt_in_any_order() */
    unsigned segments;
};

unsigned gt_line_of(const struct gt_part *x);
/* Does the domain keep the cache? */
bool gt_keeps_cache(const struct gt_world *w);
bool gt_has_left(const struct gt_machine *m, unsigned nt);
/* E6; E12. */
void gt_evict(const struct gt_world *w, struct gt_machine *m, unsigned line);
void gt_drain(const struct gt_world *w, struct gt_machine *m, unsigned line);
/* Does it matter what of the cache was written back? */
bool gt_has_queue(const struct gt_world *w);
void gt_reach_cache(struct gt_machine *m, const struct gt_part *x);
/* E8 of the non-temporal store with this number. */
bool gt_may_leave(const struct gt_world *w, const struct gt_machine *m, unsigned nt);
void gt_leave(const struct gt_world *w, struct gt_machine *m, unsigned nt);
/* A plain store of the same CPU to the line goes to the cache: its older ones are there then. */
void gt_fold(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x);
/* All non-temporal stores of a CPU to a line have left; cpu -1: of all CPUs, but not of @but. */
bool gt_line_left(const struct gt_world *w, const struct gt_machine *m, unsigned line, int cpu,
                  int but);
/* A CLWB: the next fence makes certain what the line has now. */
void gt_note(const struct gt_world *w, struct gt_machine *m, unsigned cpu, unsigned line);
/* The next entry of a CPU's store buffer leaves; false: it cannot. */
bool gt_leave_buffer(const struct gt_world *w, struct gt_machine *m, unsigned cpu);
/* The plain stores to a line have left all buffers but this CPU's. */
bool gt_stores_left(const struct gt_world *w, const struct gt_machine *m, unsigned line, int but);
/* At the cut: part i of a connection's S0 may leave it now, past S1. */
bool gt_may_place(const struct gt_world *w, const struct gt_machine *m, unsigned queue, unsigned i);
/* DMA of one part becomes visible. */
void gt_arrive_one(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x);

/* ---- gt_segments.c ---- */

/* Are segments placed in any order, and is that followed? */
bool gt_in_any_order(const struct gt_world *w);
/* Is a in S1 since before b came to the adapter?  Then it arrives before b. */
bool gt_is_before(const struct gt_world *w, unsigned a, unsigned b);
/* At the cut: the next part of a segment may arrive. */
bool gt_may_come(const struct gt_world *w, const struct gt_machine *m, unsigned segment);
/* Between two events: likewise, with the stores that are older in its line out of processors. */
bool gt_may_be_early(const struct gt_world *w, const struct gt_machine *m, unsigned segment);
/* All that is in S1 has arrived. */
bool gt_all_came(const struct gt_world *w, const struct gt_machine *m);

/* ---- gt_set.c ---- */

void gt_begin(struct gt_world *w);
void gt_end(struct gt_world *w);
void gt_add(struct gt_world *w, const struct gt_machine *m);
const struct gt_machine *gt_machine_at(const struct gt_world *w, unsigned i);
/* Adds what spontaneous moves make of each. */
void gt_close(struct gt_world *w);
/* What an event does to a machine; false: this machine's past contradicts it. */
typedef bool machine_step(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x);
/* Does it to all of them, and closes the set. */
void gt_step(struct gt_world *w, machine_step *what, const struct gt_part *x);
/* Adds copies of all of them to an array of struct gt_machine; makes such an array the set. */
void gt_copy_all(const struct gt_world *w, GArray *to);
void gt_replace_all(struct gt_world *w, const GArray *by);

#endif
