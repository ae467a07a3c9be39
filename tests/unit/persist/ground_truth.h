/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the contract of docs/persistence.md lets a power cut leave: all of it, for a short trace.
 *
 * The world has two lines of sixteen halves of an atom; a half holds one octet's value.  A trace is
 * a list of events.  ground_truth() follows every machine that the contract allows, with caches,
 * buffers and queues as such, and collects what each has on its media after the cut.  It knows
 * nothing of histories, and shares no code with hw/core/persist.
 *
 * Visible memory is that of the trace: E1 and E3 happen where the trace has them (GT_SETTLE,
 * GT_FENCE_DEVICE...), or at the cut.  Segments that are followed exactly also arrive between two
 * events, at any instant.
 */
#ifndef SG_TESTS_PERSIST_GROUND_TRUTH_H
#define SG_TESTS_PERSIST_GROUND_TRUTH_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum gt_sizes {
    GT_LINES = 2,
    GT_LINE = 16, /* halves */
    GT_WORLD = GT_LINES * GT_LINE,
    GT_CPUS = 2,
    GT_DEVICES = 2,
    GT_CONNS = 2, /* of each */
    GT_QUEUES = GT_DEVICES * GT_CONNS,
    GT_EVENTS = 16,
    GT_BAD = 0xff, /* in an image: in a line that nobody can read */
    GT_PARTS = 32, /* non-temporal atoms in a trace, at most */
};

enum gt_kind {
    GT_WRITE,        /* adapter who */
    GT_ATOM,         /* Atomic Write of adapter who, after what its connection has in S0 */
    GT_SWAP,         /* Compare-and-Swap of adapter who; how: it finds another value */
    GT_SETTLE,       /* adapter who: S0 to S1 */
    GT_FENCE_DEVICE, /* adapter who: all of S1 becomes visible */
    GT_READ,         /* adapter who reads */
    GT_FLUSH,        /* RDMA Flush of adapter who; how: SG_FLUSH_* */
    GT_OTHER,        /* a device that is no adapter writes (half of) an atom */
    GT_STORE,        /* vCPU who; how: enum gt_report */
    GT_STORE_NT,
    GT_LOAD,      /* vCPU who */
    GT_CPU_FLUSH, /* vCPU who; how: enum sg_persist_cpu_flush */
    GT_CPU_FENCE,
    GT_SYNC, /* a CPU tells a device something */
    GT_DEEP_FLUSH,
    GT_POISON, /* the lines of a range */
    GT_UNCORRECTABLE,
    GT_CLEAR_BAD,
    GT_KINDS,
};

/* When the model learns of a store; the contract does not care. */
enum gt_report { GT_TOLD_BEFORE, GT_TOLD_BOTH, GT_TOLD_AFTER, GT_REPORTS };

/* How long plain stores stay in the buffers, and in which order visible memory changes. */
enum gt_exact {
    GT_LIVE,      /* another agent acts: they leave */
    GT_EXACT,     /* another CPU or another device; S1 before somebody else writes its octets */
    GT_ALL_LOADS, /* somebody else accesses their line */
    GT_EXACTS,
};

struct gt_event {
    uint8_t kind, who;
    uint8_t conn;      /* of the adapter, for GT_WRITE, GT_ATOM, GT_SETTLE, GT_FLUSH */
    uint8_t at, units; /* halves; the line of at for GT_CPU_FLUSH */
    uint8_t value;     /* written to each half */
    uint8_t how;
};

/* A rule of the ground truth that is wrong on purpose: the comparison must notice each. */
enum gt_slip {
    GT_RIGHT,
    GT_CLWB_OF_LATER_STORES, /* a fence makes certain what its line has at the fence */
    GT_CLWB_AT_ONCE,
    GT_NT_IN_ORDER,
    GT_NT_KEPT_FROM_READERS, /* a read proves nothing */
    GT_NT_LEAVES_ANY_TIME_ANOTHER_ACTS,
    GT_FENCE_FORGETS_NT,
    GT_QUEUE_HOLDS_LINES, /* domain none: S3 keeps no older generation */
    GT_POSTED_ANY_ORDER,
    GT_DDIO_NEVER,
    GT_FLUSH_OF_CACHE_ONLY, /* a Flush leaves S1 alone */
    GT_BUFFER_ANY_ORDER,
    GT_LINES_TEAR, /* no order within a line */
    GT_ADAPTER_LOSES_S0,
    GT_S0_OVERTAKES_S1,
    GT_LOAD_PROVES_NOTHING,
    GT_LOAD_OF_OWN_STORES,     /* a CPU that loads its own store has waited for it */
    GT_LOAD_OF_ITS_OCTETS,     /* not of the lines */
    GT_ADAPTERS_DRAIN_BUFFERS, /* with GT_EXACT */
    GT_LINES_STAY_IN_BUFFERS,  /* with GT_ALL_LOADS: who writes the line does not wait */
    GT_WBINVD_IS_A_FENCE,
    GT_SLIPS_OF_SEGMENTS,                        /* in any order; from here on: */
    GT_SEGMENTS_IN_ORDER = GT_SLIPS_OF_SEGMENTS, /* who has read one has proved those before it */
    GT_SEGMENTS_PLACED_SO,                       /* they arrive as they were sent */
    GT_SETTLING_FORGETS,     /* what comes later may overtake what has settled */
    GT_S0_BEHIND_S1,         /* what is in S0 comes behind all that has settled since */
    GT_SEGMENTS_COME_AS_ONE, /* never a part of one */
    GT_NOTHING_IS_EARLY,     /* a store to a line comes before what is under way to it */
    GT_EARLY_OVERTAKES,      /* what comes before a store does so past older writes to its atoms */
    GT_LOAD_SEES_ANYTHING,   /* also what the memory of the run did not have */
    GT_SLIPS_OF_BAD_LINES,   /* from here on: */
    GT_POISON_STAYS = GT_SLIPS_OF_BAD_LINES,
    GT_POISON_AT_ANY_TIME, /* what was written back before it does not heal */
    GT_UNCORRECTABLE_HEALS,
    GT_FLUSH_OF_UNCORRECTABLE, /* moves the range and then fails */
    GT_SLIPS,
};

enum gt_medium {
    GT_SOUND,
    GT_READ_ONLY,
    GT_WORN_OUT,
    GT_WEARS_OUT, /* and from here on: takes so many lines more */
};

struct gt_trace {
    uint8_t domain; /* enum sg_persist_domain */
    bool ddio, s0, s1, store_buffer;
    uint8_t exact;  /* enum gt_exact */
    bool reorder;   /* segments leave S0 in any order; GT_LIVE: the trace then settles nothing */
    uint8_t plan;   /* of the model: what is early; 0: everything that may be, 1: nothing */
    uint8_t slip;   /* enum gt_slip */
    uint8_t medium; /* enum gt_medium; of the model, ground_truth() ignores it */
    unsigned count;
    struct gt_event event[GT_EVENTS];
};

/*
 * Does a trace have bad lines?  Then an image has GT_BAD in those that nobody can read.
 */
static inline bool gt_has_bad(const struct gt_trace *trace)
{
    for (unsigned i = 0; i < trace->count; i++) {
        if (trace->event[i].kind >= GT_POISON && trace->event[i].kind <= GT_CLEAR_BAD) {
            return true;
        }
    }
    return false;
}

/*
 * The set of images (GT_WORLD octets each, owned by the set), or NULL if there are more than @most
 * machines to follow.
 */
GHashTable *ground_truth(const struct gt_trace *trace, unsigned most);

/*
 * The same behind each number of events, from 0 to all: at[0 .. trace->count], NULL before.  False:
 * there are more machines; those sets that are there are to be freed as well.  For traces without
 * bad lines.
 */
bool ground_truth_all(const struct gt_trace *trace, unsigned most, GHashTable **at);

guint gt_hash(const uint8_t *octets, size_t len);
/* A set of images. */
GHashTable *gt_set_new(void);
void gt_set_add(GHashTable *set, const uint8_t image[GT_WORLD]);
bool gt_set_has(GHashTable *set, const uint8_t image[GT_WORLD]);

/* Appends the trace, one event a line, and an image as text. */
void gt_print(GString *out, const struct gt_trace *trace);
void gt_print_image(GString *out, const uint8_t image[GT_WORLD]);

#endif
