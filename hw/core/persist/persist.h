/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The persistence domain of one machine: what a power cut would leave of its persistent memory.
 *
 * A domain covers any number of extents (NVDIMMs), each with two memories of equal size: the
 * *visible* one, which CPUs and devices read, and the *media*, which survives.  Between them data
 * pass through stages; events move them on; a cut keeps of each stage what the configured platform
 * keeps.  docs/persistence.md has the model in words, domain.c the numbered invariants.
 *
 *   S0  in the adapter, per connection        not visible      sg_persist_dma_write()
 *   S1  PCIe posted writes, FIFO per device   not visible      sg_persist_settle()
 *   S2' store and write-combining buffers     visible          sg_persist_cpu_store()
 *   S2  coherent cache                        visible          DMA with ddio, CPU stores
 *   S3  write-pending queue of the memory     visible          eviction, CPU flushes, DMA w/o ddio
 *   S4  media
 *
 * Discipline.  No clock, thread or I/O; all randomness comes from seeds.  Calls are serialised by
 * the owner.  Functions call back only through struct sg_persist_ops, and none of these
 * operations may call into the domain.  Addresses are those of the machine (guest-physical = bus
 * address); a range given to a function that writes must lie within extents wholly or the call is
 * refused and has no effect.  Memories belong to the owner and outlive their extent; only
 * the domain writes the media.
 *
 * certain.h has more: what all cuts would leave, and copies of a domain.
 *
 * The life of a domain: sg_persist_new(), sg_persist_add() per NVDIMM, events; then for a cut
 * sg_persist_cut(), the owner makes every visible memory equal to its media (drops the private
 * pages, or copies), sg_persist_restart(), events.
 */
#ifndef SG_PERSIST_PERSIST_H
#define SG_PERSIST_PERSIST_H

#include <glib.h>

#include "base/host.h"
#include "persist/log.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"

struct sg_persist_report;

enum sg_persist_sizes {
    SG_PERSIST_ATOM = 8, /* octets that never tear */
    SG_PERSIST_LINE = 64,
    SG_PERSIST_PAGE = 4096,
    SG_PERSIST_EXTENTS = 16, /* NVDIMMs per machine */
    SG_PERSIST_DEVICES = 64, /* adapters: source.unit of a device is below */
    SG_PERSIST_VCPUS = 1024, /* source.unit of a vCPU is below */
    SG_PERSIST_NO_EXTENT = -1,
};

/* ---- Sources ---- */

enum sg_persist_agent {
    SG_PERSIST_NOBODY,  /* unknown, or older than the log */
    SG_PERSIST_ADAPTER, /* unit: adapter number; qpn, msn, at = Tagged Offset */
    SG_PERSIST_CPU,     /* unit: vCPU; at = program counter */
    SG_PERSIST_OTHER,   /* another device or QEMU itself */
    SG_PERSIST_AGENTS,
};

/* The cause of an event. */
struct sg_persist_source {
    uint8_t agent; /* enum sg_persist_agent */
    uint8_t mode;  /* enum sg_mem_mode: S1 to S2 (CACHED), S3 (DIRECT), as ddio says */
    uint16_t unit;
    uint32_t qpn;
    uint32_t msn;
    uint64_t at;
};

/* ---- Configuration ---- */

enum sg_persist_domain {
    SG_PERSIST_NONE,  /* nothing before the media survives */
    SG_PERSIST_ADR,   /* S3 survives */
    SG_PERSIST_EADR,  /* S2 survives too */
    SG_PERSIST_WHOLE, /* all but S0 survives */
    SG_PERSIST_DOMAINS,
};

/* How readily data move on spontaneously. */
enum sg_persist_pace { SG_PERSIST_NEVER, SG_PERSIST_RANDOM, SG_PERSIST_EAGER, SG_PERSIST_PACES };

/* In which order a connection's Writes leave S0. */
enum sg_persist_order { SG_PERSIST_IN_ORDER, SG_PERSIST_RANDOM_ORDER, SG_PERSIST_ORDERS };

/* With cpu_tracking off: the fate of lines that CPUs changed (when and how is unknown). */
enum sg_persist_untracked {
    SG_PERSIST_UNTRACKED_AT_RISK, /* as if none was flushed: any subset of whole lines survives */
    SG_PERSIST_UNTRACKED_KEEP,    /* as if all were flushed: no false alarm, and no alarm at all */
    SG_PERSIST_UNTRACKED_KINDS,
};

/* All of it may be changed at any time; sg_persist_config_init() has the defaults. */
struct sg_persist_config {
    uint8_t domain;    /* enum sg_persist_domain; default ADR */
    uint8_t untracked; /* enum sg_persist_untracked; default AT_RISK */
    bool ddio;         /* DMA allocates in the cache (S1 -> S2), else S1 -> S3; on */
    bool cpu_tracking; /* the owner reports CPU stores, flushes and fences; off */
    /*
     * Plain CPU stores and CLFLUSH wait in a modelled store buffer (S2') until it is full, a fence
     * comes, another agent acts, or sg_persist_cpu_sync(); off: they reach S2 at once.  The owner
     * must then call sg_persist_cpu_sync() whenever a CPU writes to a device (doorbells).
     */
    bool store_buffer;
    uint8_t placement_order; /* S0 -> S1 within a connection: enum sg_persist_order; IN_ORDER */
    bool poison_on_mismatch; /* sg_persist_poison() has an effect; off */
    uint8_t eviction;        /* S2 -> S3; enum sg_persist_pace; default NEVER */
    uint8_t drain;           /* S3 -> S4, matters for domain NONE only; default NEVER */
    uint8_t posted_drain;    /* S1 -> visible; default RANDOM; EAGER: S1 is always empty */
    uint32_t one_in;         /* RANDOM moves something at one in so many events; 1.., default 8 */
    uint64_t placement_delay_ns; /* so long in S0 at most; 0 and in order: not at all; 200 us */
    uint64_t flush_latency_ns;   /* latency of an RDMA Flush with P; 0 and 0: answered at once */
    uint64_t flush_latency_random_ns; /* up to so much more, uniformly */
    /*
     * cpu_tracking off: an RDMA Flush with P also finds and persists lines changed by CPUs if its
     * range is at most so many octets (they are found by comparing); default 1 MiB.
     */
    uint64_t untracked_flush_max;
};

/* Constant after creation; sg_persist_limits_init() has the defaults. */
struct sg_persist_limits {
    uint64_t seed;          /* of everything that RANDOM decides; default 1 */
    uint32_t log_events;    /* kept by the log, rounded up to a power of two; default 65536 */
    uint32_t log_data;      /* octets of payload kept by the log; default 0: not kept */
    uint32_t s0_octets;     /* of one connection; the oldest move on at more; default 1 MiB */
    uint32_t s1_octets;     /* of one device; likewise; default 64 KiB */
    uint32_t line_stores;   /* in one line's history; older ones merge; 8.., default 64 */
    uint32_t stores;        /* in all histories; then 8 in each; default 1 Mi (32 MiB) */
    uint32_t buffer_stores; /* in a vCPU's store buffer; the oldest drains; 1.., default 56 */
    uint32_t nt_lines;      /* in its write-combining buffers; likewise; default 64 */
    bool check;             /* sg_assert_persist_state() after every event: slow; off */
    /*
     * For whoever explores recorded inputs: nothing merges or moves on to save memory, except at
     * the other limits (struct sg_persist_stats counts it), and adapters' acts leave store buffers
     * alone.  The inputs are in the order of visible memory: before somebody else writes to atoms,
     * what adapters have posted to them arrives, with what is before it.  So each change that is
     * reported after the fact has to be announced (sg_persist_will_change()).  Different events
     * never share a line without a history.  In random order S0 and S1 are sets.
     */
    bool exact;
    /*
     * With exact: whatever a CPU or device learns from another CPU's store, it learns by reading
     * persistent memory, and each such load is an input.  So a plain store stays in its CPU until
     * somebody else accesses its line, or its CPU executes a fence.  Wrong for programs that use
     * locks or flags in other memory.
     */
    bool all_loads;
};

void sg_persist_config_init(struct sg_persist_config *config);
void sg_persist_limits_init(struct sg_persist_limits *limits);
/* Defaults of an explorer: exact, without log, limits that few traces reach. */
void sg_persist_limits_exact(struct sg_persist_limits *limits);

/* Operations of the owner; each may be NULL. */
struct sg_persist_ops {
    /* An armed cut is due and the domain is frozen; call sg_persist_cut() soon, not from here. */
    void (*cut_due)(void *opaque);
    /*
     * Bounds comparisons of visible memory and media when CPUs are not tracked.  From offset @from
     * of an extent: the next run of pages that may differ; returns its offset and its length in
     * *len, or the extent's size if there is none.  NULL: all may differ.
     */
    uint64_t (*next_differing)(void *opaque, int extent, uint64_t from, uint64_t *len);
    /* The owner knows report.stays: a cut need not copy what untracked CPUs changed and is kept. */
    bool may_stay;
};

/* Never NULL; config and limits NULL: defaults.  ops is kept by reference and may be NULL. */
struct sg_persist *sg_persist_new(const struct sg_persist_config *config,
                                  const struct sg_persist_limits *limits,
                                  const struct sg_persist_ops *ops, void *opaque);
/* Persists nothing: as if the machine were killed. */
void sg_persist_free(struct sg_persist *p);

/* NULL, or a static text that says what is wrong; the old configuration then stays. */
const char *sg_persist_configure(struct sg_persist *p, const struct sg_persist_config *config);
const struct sg_persist_config *sg_persist_config(const struct sg_persist *p);

/*
 * Which verdicts of a cut are not to be trusted because CPUs are not tracked, as a sentence; NULL:
 * none.
 */
const char *sg_persist_doubt(const struct sg_persist_config *config);

/* Names as in properties and reports ("none", "adr"...); the reverse is -1 for an unknown name. */
const char *sg_persist_domain_name(enum sg_persist_domain domain);
const char *sg_persist_pace_name(enum sg_persist_pace pace);
const char *sg_persist_order_name(enum sg_persist_order order);
const char *sg_persist_untracked_name(enum sg_persist_untracked untracked);
int sg_persist_domain_parse(const char *name);
int sg_persist_pace_parse(const char *name);
int sg_persist_order_parse(const char *name);
int sg_persist_untracked_parse(const char *name);

/* ---- Extents ---- */

struct sg_persist_extent {
    uint64_t base;    /* machine address, multiple of 64 */
    uint64_t size;    /* octets, multiple of 64, not 0 */
    uint8_t *visible; /* aligned to 8; equal to media when added */
    uint8_t *media;   /* aligned to 8 */
    const char *name; /* for reports; copied; NULL: "extentN" */
};

/* Number of the new extent, or SG_PERSIST_NO_EXTENT: overlap, alignment, too many. */
int sg_persist_add(struct sg_persist *p, const struct sg_persist_extent *x);
/* Drops an extent and everything pending for it (as sg_persist_free()). */
void sg_persist_remove(struct sg_persist *p, int extent);
/* SG_PM_* of a range of machine addresses (base/host.h); 0 for an empty range. */
unsigned sg_persist_query(const struct sg_persist *p, uint64_t addr, uint64_t len);
/* The extent that holds all of the range, and the offset in it; or SG_PERSIST_NO_EXTENT. */
int sg_persist_find(const struct sg_persist *p, uint64_t addr, uint64_t len, uint64_t *offset);

/* ---- Time ---- */

/* Time is now_ns (never backwards): does delayed placements.  Stamps the events that follow. */
void sg_persist_tick(struct sg_persist *p, uint64_t now_ns);
/* When to call sg_persist_tick() next, or SG_NEVER; may change with every event. */
uint64_t sg_persist_next_due(const struct sg_persist *p);

/* ---- Events of adapters; source.agent is SG_PERSIST_ADAPTER ---- */

/*
 * E1: payload of a Write.  It waits in S0 as configured, then in S1, and is written to visible
 * memory by E3.  With the default configuration it is visible on return.  False: refused.
 */
bool sg_persist_dma_write(struct sg_persist *p, const struct sg_persist_source *source,
                          uint64_t addr, const void *buf, size_t len);
/* E14: one aligned atom, past S0; call sg_persist_settle() before. */
bool sg_persist_atom_store(struct sg_persist *p, const struct sg_persist_source *source,
                           uint64_t addr, const uint8_t atom[SG_PERSIST_ATOM]);
/*
 * E15: compare and exchange of an aligned atom, a little-endian number, by the root complex in
 * coherent memory: if it is *value it becomes 'desired'.  *value becomes the value found.  All that
 * the device posted before is visible, and the outcome is: S2 with ddio, else S3.  False: refused.
 */
bool sg_persist_atomic(struct sg_persist *p, const struct sg_persist_source *source, uint64_t addr,
                       uint64_t *value, uint64_t desired);
/* Everything that this connection has in S0 moves to S1. */
void sg_persist_settle(struct sg_persist *p, unsigned device, uint32_t qpn);
/* The connection is gone: drops its data in S0 (for which its peer had no promise). */
void sg_persist_forget(struct sg_persist *p, unsigned device, uint32_t qpn);
/*
 * E4: the device does any other DMA (a read, a completion entry, ordinary payload): everything
 * that it posted before becomes visible.  Cheap if there is nothing.
 */
void sg_persist_device_fence(struct sg_persist *p, unsigned device);
/*
 * The device reads a range, which may reach beyond extents, after E4: what it may have seen of a
 * CPU's stores has left S2'.  Cheap when S2' has none of it.  SG_PERSIST_DEVICES: a reader that has
 * nothing in S1.  The second function: has S2' anything at all?
 */
void sg_persist_dma_read(struct sg_persist *p, unsigned device, uint64_t addr, uint64_t len);
bool sg_persist_cpu_waits(const struct sg_persist *p);
/* May a store to a range make anything of S0 or S1 arrive?  What is for its atoms does. */
bool sg_persist_posted_waits(const struct sg_persist *p, uint64_t addr, uint64_t len);
/*
 * E9, E10: RDMA Flush of op->len octets at this machine address (op->addr is the adapter's), as
 * op->flags say.  Settles the connection and fences the device itself.  SG_PM_DONE: the range is
 * where the flags promise.  SG_PM_LATER: call again at op->due_ns (or any time later) with the same
 * arguments; SG_NEVER: the machine has no power, drop it.  SG_PM_FAILED: refused by the medium,
 * range not in extents, or no flags; nothing is promised.
 */
enum sg_pm_result sg_persist_flush(struct sg_persist *p, const struct sg_persist_source *source,
                                   uint64_t addr, struct sg_pm_op *op);
/*
 * A Flush of a recorded run that takes time.  It takes effect at some instant between its two ends,
 * nobody knows at which: so nothing of it is certain before its end, and then what was there at its
 * beginning is.  sg_persist_flush_begins() notes what is there; sg_persist_flush_ends() does the
 * Flush of that, and leaves what came later where it is.  The latency counts for nothing, and the
 * log cannot replay it.
 */
struct sg_persist_flush_note {
    uint64_t seq, posted;
};
void sg_persist_flush_begins(const struct sg_persist *p, unsigned device,
                             struct sg_persist_flush_note *note);
enum sg_pm_result sg_persist_flush_ends(struct sg_persist *p,
                                        const struct sg_persist_source *source, uint64_t addr,
                                        const struct sg_pm_op *op,
                                        const struct sg_persist_flush_note *note);
/*
 * What a cut at this instant would certainly leave of a range: the media, with S3 where the domain
 * keeps S3, with S2 where it keeps S2.  Does not settle or fence: the caller does if it must.
 * SG_PM_FAILED: uncorrectable or poisoned octets, or range not in extents; buf undefined.
 */
enum sg_pm_result sg_persist_media_read(struct sg_persist *p, uint64_t addr, void *buf, size_t len);
/* A Verify of the range failed.  With poison_on_mismatch it is unreadable until rewritten. */
void sg_persist_poison(struct sg_persist *p, uint64_t addr, uint64_t len);

/*
 * A write by another device, already in visible memory: S2 with ddio, else S3.  A line's octets, in
 * unknown order, share their fate.  False: refused.
 */
bool sg_persist_other_write(struct sg_persist *p, const struct sg_persist_source *source,
                            uint64_t addr, uint64_t len);

/* ---- Events of CPUs; source.agent is SG_PERSIST_CPU.  Ignored while cpu_tracking is off ---- */

enum sg_persist_store_flags {
    SG_PERSIST_STORE_NT = 0x1,        /* non-temporal: S2' until a fence, may drain early */
    SG_PERSIST_STORE_WRITE = 0x2,     /* buf is not in visible memory yet: the domain writes it */
    SG_PERSIST_STORE_ANNOUNCED = 0x4, /* in logs and traces: after sg_persist_will_change() */
};

/*
 * Somebody is about to change a range within one extent in visible memory, and will report it: as a
 * CPU's store without SG_PERSIST_STORE_WRITE, or with sg_persist_other_write().  Only so can the
 * change be told from what was dirty in its lines before.  The report is the next event.
 */
void sg_persist_will_change(struct sg_persist *p, uint64_t addr, uint64_t len);

/*
 * One store instruction, 1..64 octets (longer ones: several calls in address order).  Within an
 * atom it is indivisible, across atoms ascending.  False: not in an extent.  With
 * SG_PERSIST_STORE_WRITE the bytes are written even when cpu_tracking is off or the domain frozen.
 */
bool sg_persist_cpu_store(struct sg_persist *p, const struct sg_persist_source *source,
                          uint64_t addr, const void *buf, size_t len, unsigned flags);

enum sg_persist_cpu_flush {
    SG_PERSIST_CLWB,       /* E7: certain at the next fence of this vCPU */
    SG_PERSIST_CLFLUSHOPT, /* likewise */
    SG_PERSIST_CLFLUSH,    /* in order with stores: done at once, or when the buffer drains */
    SG_PERSIST_CPU_FLUSHES,
};
/* Flush the line that contains addr; addresses outside of extents are ignored. */
void sg_persist_cpu_flush(struct sg_persist *p, const struct sg_persist_source *source,
                          uint64_t addr, enum sg_persist_cpu_flush kind);

enum sg_persist_cpu_fence {
    SG_PERSIST_SFENCE,
    SG_PERSIST_MFENCE,
    SG_PERSIST_LOCKED,    /* locked instruction, XCHG with memory */
    SG_PERSIST_SERIALIZE, /* CPUID, uncached access, interrupt: as a fence */
    SG_PERSIST_WBINVD,    /* and WBNOINVD: as a fence; then all that the cache has goes to S3 */
    SG_PERSIST_CPU_FENCES,
};
/* E7, E8: moves what this vCPU flushed and stored non-temporally to S3.  Cheap if there is none. */
void sg_persist_cpu_fence(struct sg_persist *p, const struct sg_persist_source *source,
                          enum sg_persist_cpu_fence kind);
/*
 * E5: a CPU has loaded a range, which may reach beyond extents, and has seen what was there.  So
 * what adapters posted to its lines has arrived, with all that is before it in their S1, and, as
 * far as it has to leave S0 for that, what is before it in the S0 of its connection; adapters in
 * the order of their posting.  What other CPUs stored to these lines has left S2', and their
 * earlier plain stores.  Counts with cpu_tracking off, too.  Cheap when nothing waits.  A source
 * that is no CPU has nothing in S2' itself.
 */
void sg_persist_cpu_load(struct sg_persist *p, const struct sg_persist_source *source,
                         uint64_t addr, uint64_t len);
/*
 * Drains all store buffers: a device is about to act for a CPU.  Non-temporal stores stay: they are
 * not ordered with the write that tells the device.
 */
void sg_persist_cpu_sync(struct sg_persist *p);
/* An orderly end of the machine: everything visible goes to the media, S0 too. */
void sg_persist_orderly(struct sg_persist *p);
/*
 * CPUs that are not tracked write back the range, which lies in one extent: what they changed is on
 * the media.  What adapters placed stays where it is.
 */
void sg_persist_write_back(struct sg_persist *p, uint64_t addr, uint64_t len);
/* E13: S3 -> S4 of the range (flush hint). */
void sg_persist_deep_flush(struct sg_persist *p, uint64_t addr, uint64_t len);

/* ---- Faults, per extent ---- */

struct sg_persist_faults {
    bool read_only; /* no write reaches the media */
    bool flush_fails_always;
    uint32_t flush_fails; /* the next so many RDMA Flushes with P fail; counts down */
    bool wears_out;       /* the media takes so many more lines, then refuses: */
    uint64_t lines_left;  /* counts down */
};
void sg_persist_set_faults(struct sg_persist *p, int extent, const struct sg_persist_faults *f);
/* Present values. */
void sg_persist_get_faults(const struct sg_persist *p, int extent, struct sg_persist_faults *f);

enum sg_persist_bad_kind {
    SG_PERSIST_UNCORRECTABLE = 1, /* stays until cleared; a Flush that covers it fails */
    SG_PERSIST_POISONED = 2,      /* healed when the line is persisted anew */
};
/*
 * Limit of each kind; more are refused.  At the limit, so is clearing or healing in the
 * middle of a range, which would split it: those lines stay bad.
 */
enum { SG_PERSIST_BAD_RANGES = 1024 };
struct sg_persist_bad {
    uint64_t addr, len; /* whole lines */
    uint8_t kind;       /* enum sg_persist_bad_kind */
};
/* Marks all lines that the range touches.  False: too many ranges, or not within one extent. */
bool sg_persist_mark_bad(struct sg_persist *p, uint64_t addr, uint64_t len,
                         enum sg_persist_bad_kind kind);
void sg_persist_clear_bad(struct sg_persist *p, uint64_t addr, uint64_t len);
/* The i-th bad range, by kind and address; false at the end. */
bool sg_persist_bad_range(const struct sg_persist *p, unsigned i, struct sg_persist_bad *bad);
/* Changes whenever a bad range is added, removed or changed. */
uint64_t sg_persist_bad_generation(const struct sg_persist *p);
/*
 * A processor loads the range, which lies within one extent: is one of its lines bad?  A line that
 * was changed since is not: the cache has it.  *line is the first bad line's address.
 */
bool sg_persist_load_fails(const struct sg_persist *p, uint64_t addr, uint64_t len, uint64_t *line);

/* ---- Milestones and armed cuts ---- */

/* The adapter passed a point of the protocol; logged, and may make an armed cut due. */
void sg_persist_milestone(struct sg_persist *p, const struct sg_persist_source *source,
                          enum sg_pm_milestone what);

enum sg_persist_arm_kind {
    SG_PERSIST_ARM_OFF,
    SG_PERSIST_ARM_EVENT,     /* after the call with the count-th event (sg_persist_events()) */
    SG_PERSIST_ARM_MILESTONE, /* at the count-th milestone of this kind from now on */
};
struct sg_persist_arm {
    uint8_t kind;
    uint8_t milestone; /* enum sg_pm_milestone */
    uint64_t count;    /* 1.. */
};
void sg_persist_arm(struct sg_persist *p, const struct sg_persist_arm *arm);
/*
 * A cut is due or done: the machine stopped at that instant.  Until sg_persist_restart() events
 * have no effect on what survives: writes are dropped, a Flush answers SG_PM_LATER for ever.
 */
bool sg_persist_frozen(const struct sg_persist *p);
/* Input events so far: writes, stores, flushes, fences, placements, milestones. */
uint64_t sg_persist_events(const struct sg_persist *p);

/* ---- The cut ---- */

enum sg_persist_outcome {
    SG_PERSIST_LOSE_ALL,       /* lose everything that can be lost */
    SG_PERSIST_KEEP_ALL,       /* keep everything that can be kept */
    SG_PERSIST_OUTCOME_RANDOM, /* "random", from the seed */
    /*
     * Inside the range lose everything that can be lost; outside it keep everything that can then
     * be kept.  With a seed other than 0 lines inside are torn: random, but never kept whole.
     */
    SG_PERSIST_WORST_FOR,
    SG_PERSIST_OUTCOMES,
};

/* What a cut asks: which of several permitted things happened. */
enum sg_persist_choice_what {
    SG_PERSIST_CHOICE_BUFFER, /* unit: vCPU; so many of its buffered stores left the processor */
    SG_PERSIST_CHOICE_POSTED, /* unit: adapter; so many atoms of its S1 arrived */
    /*
     * unit, qpn: so many atoms of the connection's S0 left it at the last moment and arrived.  In
     * random order two questions in turn: which piece does (0: none), how many atoms of it.
     */
    SG_PERSIST_CHOICE_PLACED,
    /* Sets (segments.c): unit, qpn, addr: its event; so many atoms of a segment arrived. */
    SG_PERSIST_CHOICE_SEGMENT,
    SG_PERSIST_CHOICE_ORDER, /* which queue's next atom arrived first; no alternative is less */
    SG_PERSIST_CHOICE_LINE,  /* addr: the line; in which of its states it is */
    SG_PERSIST_CHOICE_EARLY, /* not of a cut: sg_persist_arrivals(); so is this: */
    SG_PERSIST_CHOICE_STOP,  /* which line stops next, of those of several segments; 0: none */
    SG_PERSIST_CHOICES,
};
struct sg_persist_choice {
    uint8_t what; /* enum sg_persist_choice_what */
    uint16_t unit;
    uint32_t qpn;
    uint32_t n; /* alternatives, at least 2; 0 keeps the least, n - 1 the most */
    /*
     * The alternative that WORST_FOR takes: with the least of the policy's range and the most of
     * all else.  inside: of a line in that range; part: the line loses something in any case.
     */
    uint32_t worst;
    bool inside, part;
    uint64_t addr;
};
/*
 * Answers 0 .. n - 1.  All answers in all cuts of one state lead to all images that are permitted,
 * some more than once; the questions of a cut depend on the state and on the answers before only.
 */
typedef uint32_t sg_persist_choose(void *opaque, const struct sg_persist_choice *choice);
/* A store that a cut does not leave as a whole, and the question that decides about it. */
struct sg_persist_lost {
    uint8_t what; /* enum sg_persist_choice_what; as in the choice: */
    uint16_t unit;
    uint32_t qpn;
    uint64_t addr;
    uint64_t seq; /* the store's input in the log, 0 unknown */
};
/* May come several times for one store. */
typedef void sg_persist_lose(void *opaque, const struct sg_persist_lost *lost);

struct sg_persist_policy {
    uint8_t outcome; /* enum sg_persist_outcome */
    uint64_t seed;
    uint64_t addr, len; /* WORST_FOR */
    /* Not NULL: decides, instead of outcome and seed.  Such a cut cannot be replayed. */
    sg_persist_choose *choose;
    sg_persist_lose *lose; /* not NULL: is told what is lost; only with choose */
    void *opaque;
};
const char *sg_persist_outcome_name(enum sg_persist_outcome outcome);
int sg_persist_outcome_parse(const char *name); /* "lose-all", "keep-all", "random", "worst-for" */

/*
 * The power fails.  The media get exactly what the policy lets survive; everything under way is
 * gone.  Visible memory is undefined until the owner has made it equal to the media, unless the
 * report says that it stays.  The caller owns the report (sg_persist_report_free()).  The domain is
 * frozen.
 */
struct sg_persist_report *sg_persist_cut(struct sg_persist *p,
                                         const struct sg_persist_policy *policy);
enum { SG_PERSIST_PREVIEW_MAX = 1 << 20 };
/*
 * What sg_persist_cut() would leave of a range now; p does not change.  What is still in an adapter
 * or on its way to memory (S0, S1) counts as lost.  False: range empty, longer than
 * SG_PERSIST_PREVIEW_MAX or not within one extent, or the domain is frozen.
 */
bool sg_persist_preview(const struct sg_persist *p, const struct sg_persist_policy *policy,
                        uint64_t addr, void *buf, size_t len);
/* Visible memories equal the media again; events count.  Faults, bad ranges, log, arming stay. */
void sg_persist_restart(struct sg_persist *p);

enum sg_persist_stage {
    SG_PERSIST_S0,
    SG_PERSIST_S1,
    SG_PERSIST_SB, /* S2' */
    SG_PERSIST_S2,
    SG_PERSIST_S3,
    SG_PERSIST_STAGES,
};
const char *sg_persist_stage_name(enum sg_persist_stage stage); /* "S0", "S1", "S2'"... */

enum sg_persist_fate {
    SG_PERSIST_LOST,
    SG_PERSIST_PARTLY, /* an in-order prefix of the line's stores survived */
    SG_PERSIST_KEPT,
    SG_PERSIST_REFUSED, /* would have survived, but the medium refused it */
    SG_PERSIST_FATES,
};
const char *sg_persist_fate_name(enum sg_persist_fate fate); /* "lost", "partly", "kept"... */

/* A run of neighbouring lines (S2', S2, S3) or one queued piece (S0, S1) with one fate. */
struct sg_persist_loss {
    uint64_t addr, len; /* octets; whole lines for S2', S2, S3 */
    uint8_t stage;      /* of the newest store in it */
    uint8_t fate;
    int16_t extent;
    uint32_t lines;
    uint32_t stores; /* in its lines' histories */
    uint32_t stores_kept;
    struct sg_persist_source source; /* of the newest store, if the log still knows */
    uint64_t seq;                    /* its event in the log, 0 unknown */
};

enum { SG_PERSIST_REPORT_ROWS = 4096, SG_PERSIST_REPORT_EVENTS = 64 };

struct sg_persist_report {
    uint64_t now_ns, events; /* at the cut */
    struct sg_persist_config config;
    struct sg_persist_policy policy;
    bool armed; /* an armed cut, not a command */
    struct sg_persist_arm arm;
    /* Lines (S2', S2, S3) and octets (S0, S1) by stage and fate. */
    uint64_t count[SG_PERSIST_STAGES][SG_PERSIST_FATES];
    uint64_t untracked[SG_PERSIST_FATES]; /* lines changed by CPUs with tracking off */
    bool untracked_counted;               /* false: not compared, because nothing depended on it */
    /*
     * Visible memory is already correct, and the owner must not change it.  Changes by untracked
     * CPUs stay there and still differ from the media: sg_persist_write_back().
     */
    bool stays;
    uint64_t acknowledged;        /* RDMA Flushes with P done since the last restart */
    struct sg_persist_loss *rows; /* by extent and address; at most SG_PERSIST_REPORT_ROWS */
    size_t row_count;
    uint64_t rows_omitted;
    struct sg_persist_event *recent; /* the last events of the log before the cut, oldest first */
    size_t recent_count;
    char *extent_name[SG_PERSIST_EXTENTS]; /* NULL: no such extent */
};
void sg_persist_report_free(struct sg_persist_report *r);
/* One JSON object; docs/persistence.md lists its members.  Appends. */
void sg_persist_report_json(const struct sg_persist_report *r, GString *out);
/* The same as text for people. */
void sg_persist_report_text(const struct sg_persist_report *r, GString *out);

/* What is dirty now, without a cut.  The cost depends on what is dirty. */
struct sg_persist_stats {
    uint64_t stage[SG_PERSIST_STAGES]; /* octets in S0 and S1, lines elsewhere (newest store) */
    uint64_t events, flushes, flushes_failed, lines_persisted, media_refusals;
    /* Times that a limit, or a store that was not announced, took away permitted outcomes. */
    uint64_t merged;
};
void sg_persist_stats(const struct sg_persist *p, struct sg_persist_stats *stats);

/* Checks the invariants of domain.c; deep also compares memories.  Aborts on a violation. */
void sg_assert_persist_state(const struct sg_persist *p, bool deep);

#endif
