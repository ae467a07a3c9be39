/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of the persistence domain, and by nobody else.
 *
 * Functions are grouped by file; domain.c explains all of it.
 */
#ifndef SG_PERSIST_DOMAIN_IMPL_H
#define SG_PERSIST_DOMAIN_IMPL_H

#include "base/bytes.h"
#include "base/prng.h"
#include "persist/persist.h"
#include "persist/pool.h"
#include "persist/touched.h"

enum sg_dom_limits {
    SG_DOM_PAGE_LINES = SG_PERSIST_PAGE / SG_PERSIST_LINE,
    SG_DOM_LINE_ATOMS = SG_PERSIST_LINE / SG_PERSIST_ATOM,
    SG_DOM_CPU_FLUSHES = 65536, /* flushes that wait for a vCPU's fence; the oldest are executed */
    SG_DOM_POSTED_DUE_NS = 20000, /* RANDOM root complex: the latest time at which it drains */
    SG_DOM_REORDER_NS = 10000,    /* placement in random order without a delay */
    SG_DOM_VERSIONS = 16, /* stores of a line; from then on a DMA overwrite ends its history */
};

/* ---- Stores of one line (line.c) ---- */

enum rec_flags {
    REC_GLUE = 0x1, /* a cut keeps neither or both: this store and the next */
    REC_SB = 0x2,   /* plain store, in the store buffer */
    REC_WC = 0x4,   /* non-temporal, in a write-combining buffer */
    REC_S2P = REC_SB | REC_WC,
    /* This store and the next left the processor in any order, unless they are to one atom. */
    REC_LOOSE = 0x8,
    REC_MERGED = 0x10, /* limits.line_stores: of several stores, seq is that of the oldest */
};

/* One store to one atom. */
struct rec {
    uint64_t seq; /* of its event */
    uint8_t data[SG_PERSIST_ATOM];
    uint32_t next; /* in the pool; 0: last */
    uint32_t late; /* how many events later it left S2' and was in the cache; UINT32_MAX: or more */
    uint8_t atom;  /* 0..7 */
    uint8_t mask;  /* octets of data that count */
    uint8_t flags; /* enum rec_flags */
    uint8_t unused;
    uint16_t cpu; /* the vCPU, + 1, whose store it is; 0: nobody's, or not known */
};

/* A line's history: media + recs in order = visible, except for untracked CPUs. */
struct line {
    uint32_t first, last; /* recs; 0: none */
    uint16_t count;
    uint16_t wpq_count;   /* leading recs that are in S3; only in domain NONE, and at a cut */
    uint16_t nt_cpu;      /* the vCPU, + 1, that has recs of the line in its WC buffers; 0: none */
    uint16_t lost;        /* at a cut: stores that stayed in S2' */
    uint32_t lost_seq;    /* of the newest of them */
    uint32_t walked_last; /* the last of the leading recs that walks pass over: those in S3 that */
    uint16_t walked; /* sg_dom_line_to_wpq() put there; how many; 0: walks begin at the first */
    uint64_t merged; /* with limits.exact: newest input of a store that was merged; 0: none was */
};

/* ---- What is dirty (page.c) ---- */

/* 64 lines; exists while one of them is dirty. */
struct page {
    uint32_t number; /* in the pool */
    uint64_t dirty;
    uint64_t has_history;    /* has a struct line */
    uint64_t all_or_nothing; /* no history: a cut keeps all of the line or nothing */
    uint64_t in_wpq;         /* no history: in S3 */
    uint64_t noted;          /* no history: a CLWB or CLFLUSHOPT came since it is dirty */
    /* With a history: number of the struct line; without: low 32 bits of its first event's seq. */
    uint32_t ref[SG_DOM_PAGE_LINES];
};

struct extent {
    bool used;
    uint64_t base, size;
    uint8_t *visible, *media;
    char *name;
    size_t page_count;
    struct page **pages; /* NULL: clean */
    uint64_t *map;       /* one bit per page that is not NULL */
    uint64_t *top;       /* one bit per word of map that is not 0 */
    struct sg_persist_faults faults;
    struct sg_dom_touched touched;
};

/* ---- Under way (placement.c, posted.c) ---- */

/* One piece of a connection's payload in S0, or one in a device's S1. */
struct piece {
    struct piece *next;
    struct sg_persist_source source;
    uint64_t addr, seq, due_ns;
    uint64_t settled; /* in S1: the newest event when it came there; in S0: SG_NEVER */
    uint32_t len;
    /* While segments.c and early.c look for what arrives: */
    uint32_t arrives; /* so many of its first octets */
    bool near;        /* they may come between what arrives, or what arrives brings them along */
    uint64_t proved;  /* what it has below this address arrives in any case */
    uint8_t data[];
};

/* The range of a Flush that ends. */
struct sg_dom_flushed {
    uint64_t addr, len; /* 0: it persists nothing */
};

struct fifo {
    struct piece *head, *tail;
    uint64_t octets;
    uint32_t count;
};

struct sg_dom_conn {
    struct fifo s0;
    unsigned device;
    uint32_t qpn;
};

/* ---- CPUs (cpu.c) ---- */

struct cpu_entry {
    uint64_t addr; /* of the line */
    uint64_t seq;  /* covers stores up to this event */
    bool flush;    /* store buffer: a CLFLUSH */
};

struct cpu_ring {
    struct cpu_entry *at;
    unsigned size, head, count;
};

struct cpu {
    struct cpu_ring sb, wc; /* store buffer; lines in write-combining buffers */
    unsigned unit;
    GArray *flushes;       /* struct cpu_entry: CLWB, CLFLUSHOPT since the last fence */
    unsigned flushes_done; /* leading ones that were executed early */
};

struct sg_dom_bad_ranges {
    struct sg_persist_bad *range; /* sorted, disjoint */
    unsigned count;
};

/* What it points to, clone.c copies one by one. */
struct sg_persist {
    struct sg_persist_config config;
    struct sg_persist_limits limits;
    const struct sg_persist_ops *ops;
    void *opaque;
    uint64_t rng;
    uint64_t now_ns;
    bool frozen, cut_done;

    struct extent extent[SG_PERSIST_EXTENTS];
    unsigned extent_count; /* highest in use + 1 */
    unsigned extent_hint;  /* of the last look-up */
    struct pool pages, lines, recs;

    GHashTable *conns;     /* key to struct sg_dom_conn, those with something in S0 */
    GPtrArray *conn_order; /* the same, oldest first, so that runs repeat */
    struct fifo s1[SG_PERSIST_DEVICES];
    uint64_t s1_devices;                 /* bits: those with something in S1 */
    uint64_t posted[SG_PERSIST_DEVICES]; /* pieces that ever came to S1 */
    uint64_t place_due_ns;               /* no piece of S0 is due earlier */
    uint64_t posted_due_ns;
    sg_persist_choose *arrivals; /* NULL: as late as possible */
    void *arrivals_opaque;
    GArray *overtaken;     /* octets of segments that newer ones have overtaken (overtaken.c) */
    GHashTable *inverted;  /* octets that have another value than in the recorded memory */
    GArray *origins;       /* inputs of stores that waited in S0 or S1 (origin.c) */
    uint64_t origins_full; /* entries in it at which it is pruned */

    struct cpu *cpu[SG_PERSIST_VCPUS];
    unsigned cpu_count;                   /* no vCPU with this number or above has been there */
    uint64_t busy[SG_PERSIST_VCPUS / 64]; /* bits: those with something in their store buffer */
    unsigned busy_cpus;                   /* how many */
    unsigned nt_lines;                    /* lines with stores in write-combining buffers */
    uint64_t announced, announced_len;    /* sg_persist_will_change() */

    struct sg_dom_bad_ranges bad[2]; /* by kind - 1 */
    uint64_t bad_generation;

    struct sg_persist_arm arm;
    bool armed_hit;

    struct sg_persist_event *log; /* seq & log_mask */
    uint64_t log_mask, seq, inputs;
    uint8_t *log_data;
    uint64_t log_data_end; /* octets ever written to it */

    uint64_t acknowledged;
    uint64_t flushes, flushes_failed, lines_persisted, media_refusals, merged;
    uint64_t shared; /* of these: stores of several inputs have one number, in unknown lines */
};

/* ---- Randomness ---- */

static inline uint64_t sg_dom_random(uint64_t *state)
{
    return sg_prng(state);
}

/* 0 .. n - 1; n at least 1. */
static inline uint64_t sg_dom_below(uint64_t *state, uint64_t n)
{
    return sg_dom_random(state) % n;
}

/* ---- domain.c ---- */

static inline bool sg_dom_extent_holds(const struct extent *e, uint64_t addr, uint64_t len)
{
    return e->used && addr >= e->base && sg_range_ok(addr - e->base, len, e->size);
}
struct extent *sg_dom_find_extent(struct sg_persist *p, uint64_t addr, uint64_t len, uint64_t *off);
/* The extent that holds [addr, addr + len), or NULL; *off is the offset in it.  Mostly the last. */
static inline struct extent *sg_dom_extent(struct sg_persist *p, uint64_t addr, uint64_t len,
                                           uint64_t *off)
{
    struct extent *e = &p->extent[p->extent_hint];

    if (sg_dom_extent_holds(e, addr, len)) {
        *off = addr - e->base;
        return e;
    }
    return sg_dom_find_extent(p, addr, len, off);
}
static inline int sg_dom_extent_number(const struct sg_persist *p, const struct extent *e)
{
    return e - p->extent;
}
/*
 * An input event is complete: an armed cut may be due now.  In a call with several, it is due at
 * the end of the call: a trace has one event for it, and a replay cannot stop in its middle.
 */
void sg_dom_input_done(struct sg_persist *p);
void sg_dom_step_done(struct sg_persist *p);
void sg_dom_call_done(struct sg_persist *p);
void sg_dom_freeze(struct sg_persist *p);

/* ---- event_log.c ---- */

void sg_dom_log_init(struct sg_persist *p);
/* Returns the event's sequence number.  source may be NULL. */
uint64_t sg_dom_log(struct sg_persist *p, unsigned kind, const struct sg_persist_source *source,
                    uint64_t addr, uint64_t len, uint32_t arg);
/* The same with payload. */
uint64_t sg_dom_log_payload(struct sg_persist *p, unsigned kind,
                            const struct sg_persist_source *source, uint64_t addr, const void *buf,
                            size_t len, uint32_t arg);
/* The newest event, to be completed by its writer. */
static inline struct sg_persist_event *sg_dom_log_last(struct sg_persist *p)
{
    return &p->log[p->seq & p->log_mask];
}
void sg_dom_log_config(struct sg_persist *p);
/* The event with these low 32 bits of its number, if the log still has it. */
const struct sg_persist_event *sg_dom_log_find32(const struct sg_persist *p, uint32_t low);
/* The configuration that a CONFIGURE event records. */
void sg_dom_log_unpack_config(const struct sg_persist_event *e, struct sg_persist_config *config);

/* ---- page.c ---- */

/* The page, created if necessary; the caller makes a line of it dirty. */
struct page *sg_dom_page(struct sg_persist *p, struct extent *e, size_t page_no);
/* The page has no dirty line any more. */
void sg_dom_page_free(struct sg_persist *p, struct extent *e, size_t page_no);
/* The first dirty page at or after page_no, or page_count. */
size_t sg_dom_page_next(const struct extent *e, size_t page_no);
/* Dirty lines of the page that lie in [off, off + len) of the extent. */
uint64_t sg_dom_page_mask(size_t page_no, uint64_t off, uint64_t len);
void sg_dom_extent_clear(struct sg_persist *p, struct extent *e);

static inline struct line *sg_dom_line(const struct sg_persist *p, const struct page *g, unsigned i)
{
    return sg_dom_pool_at(&p->lines, g->ref[i]);
}

static inline struct rec *sg_dom_rec(const struct sg_persist *p, uint32_t n)
{
    return sg_dom_pool_at(&p->recs, n);
}

/* A loop over the dirty pages of a range; a page may become clean in the body. */
#define SG_DOM_FOR_PAGES(e, page_no, off, len)                                             \
    for (size_t page_no = sg_dom_page_next(e, (off) / SG_PERSIST_PAGE);                    \
         page_no < (e)->page_count && (uint64_t)page_no * SG_PERSIST_PAGE < (off) + (len); \
         page_no = sg_dom_page_next(e, page_no + 1))

/* ---- line.c ---- */

/* A store of [in, in + len) to a line. */
struct sg_dom_store {
    unsigned in, len;    /* octets of the line */
    const uint8_t *data; /* len octets */
    uint64_t seq;
    uint8_t flags; /* REC_SB or REC_WC or 0 */
    bool written;  /* data are in visible memory already */
    uint16_t cpu;  /* the vCPU, + 1; 0: no CPU's */
};
/* Adds a store to a line of page_no, which then has a history. */
void sg_dom_line_store(struct sg_persist *p, struct extent *e, size_t page_no, unsigned i,
                       const struct sg_dom_store *store);
/*
 * The same for a plain CPU store at 'off' of the extent, in its most frequent case: it is in one
 * atom, nothing is in S2', and the line is clean or has a history with room for more.  False:
 * nothing is done.
 */
bool sg_dom_line_append(struct sg_persist *p, struct extent *e, uint64_t off,
                        const struct sg_dom_store *store);
/* Octets become visible in S2: writes visible memory, marks lines.  Range within the extent. */
void sg_dom_visible_write(struct sg_persist *p, struct extent *e, uint64_t off, const void *buf,
                          size_t len, uint64_t seq);
/* The same for octets that are already visible, in unknown order. */
void sg_dom_visible_mark(struct sg_persist *p, struct extent *e, uint64_t off, size_t len,
                         uint64_t seq);
/*
 * The change by an untracked CPU in a line with a history becomes its last group of stores, with
 * event seq (0: unknown).  False: there is none.
 */
bool sg_dom_line_adopt(struct sg_persist *p, struct extent *e, size_t page_no, unsigned i,
                       uint64_t seq);
/* Begins a line's history; pre: its visible content before the next store. */
struct line *sg_dom_line_begin_history(struct sg_persist *p, struct extent *e, size_t page_no,
                                       unsigned i, const uint8_t *pre);
/* Lines of the range that are dirty without a history get one: they are about to be changed. */
void sg_dom_tell_apart(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len);
/* Has the page at 'off' no such line? */
static inline bool sg_dom_is_apart(const struct extent *e, uint64_t off)
{
    const struct page *g = e->pages[off / SG_PERSIST_PAGE];

    return !g || !(g->dirty & ~g->has_history);
}
/* The event with these low bits of its number, of the last 2^32. */
static inline uint64_t sg_dom_full_seq(const struct sg_persist *p, uint32_t low)
{
    uint64_t seq = (p->seq & ~0xffffffffull) | low;

    return seq > p->seq && seq > UINT32_MAX ? seq - (1ull << 32) : seq;
}
/* No cut point is left within what is in S3, nor within what is in S2. */
void sg_dom_line_join(struct sg_persist *p, struct line *l);
/* The line has no stores in write-combining buffers any more, whatever their marks. */
static inline void sg_dom_line_forget_nt(struct sg_persist *p, struct line *l)
{
    p->nt_lines -= l->nt_cpu != 0;
    l->nt_cpu = 0;
}

/* ---- walk.c: how far the stores of a line have come ---- */

/* Leading stores that are not in S2', and those up to an event (rounded up over glue). */
unsigned sg_dom_line_cached(const struct sg_persist *p, const struct line *l);
unsigned sg_dom_line_upto(const struct sg_persist *p, const struct line *l, uint64_t seq);
/*
 * Those that a flush by a vCPU with this event covers: its own up to this event, and of others what
 * was in the cache by then.
 */
unsigned sg_dom_line_flushed(const struct sg_persist *p, const struct line *l, uint64_t seq,
                             unsigned vcpu);
/* S2' -> S2 of the first k stores. */
void sg_dom_line_leave_cpu(struct sg_persist *p, struct line *l, unsigned k);
/* Those that a noted Flush of this source covers: of CPUs what had left the processors by then. */
unsigned sg_dom_line_noted(const struct sg_persist *p, const struct line *l,
                           const struct sg_persist_source *source,
                           const struct sg_persist_flush_note *note);
/* The first k stores are in the write-pending queue. */
void sg_dom_line_to_wpq(const struct sg_persist *p, struct line *l, unsigned k);
/* Walks begin at the first store: the list, or what of it is in S3, was changed. */
static inline void sg_dom_line_begin_walks(struct line *l)
{
    l->walked = 0;
}
/* A cut may keep exactly the first k stores (or k is 0). */
bool sg_dom_line_cut_point(const struct sg_persist *p, const struct line *l, unsigned k);

/* ---- advance.c: towards the media ---- */

enum sg_dom_target { SG_DOM_TO_S3, SG_DOM_TO_S4 };
/* Moves the first k stores of a history, whole groups.  False: refused; nothing changed. */
bool sg_dom_advance_line(struct sg_persist *p, struct extent *e, size_t page_no, unsigned i,
                         unsigned k, enum sg_dom_target to);
/* Moves lines of a page; all: including S2'.  False: some were refused. */
bool sg_dom_advance_page(struct sg_persist *p, struct extent *e, size_t page_no, uint64_t mask,
                         enum sg_dom_target to, bool all);
bool sg_dom_advance_range(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len,
                          enum sg_dom_target to, bool all);
/* Moves of a range what a noted Flush covers. */
bool sg_dom_advance_noted(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len,
                          enum sg_dom_target to, const struct sg_persist_source *source,
                          const struct sg_persist_flush_note *note);
/* Moves data in S3 to S4 (domain NONE). */
bool sg_dom_drain_range(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len);
/* Data in S3 that could not go to the media return to S2: there is no queue any more. */
void sg_dom_empty_wpq(struct sg_persist *p, struct extent *e);
/*
 * Moves the stores up to an event, in the line of a machine address, to S3 or further; of those in
 * S2' only this vCPU's.  flush: of others only what was in the cache by then.
 */
bool sg_dom_advance_upto(struct sg_persist *p, uint64_t addr, uint64_t seq, unsigned vcpu,
                         bool flush);
/* How many of these lines may be written to the media?  Counts them as wear. */
size_t sg_dom_media_take(struct sg_persist *p, struct extent *e, size_t lines);
void sg_dom_refused(struct sg_persist *p, struct extent *e, uint64_t off);
/* Writes stores to media memory, atom by atom. */
void sg_dom_media_rec(uint8_t *media_line, const struct rec *r);
/* After something was written to [off, off + len): eviction and draining as configured. */
void sg_dom_pace(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len);

/* ---- posted.c ---- */

struct piece *sg_dom_new_piece(const struct sg_persist_source *source, uint64_t addr,
                               const void *buf, uint32_t len, uint64_t seq);
void sg_dom_fifo_push(struct fifo *f, struct piece *x);
/* Takes out the piece after prev; NULL: the head. */
struct piece *sg_dom_fifo_take(struct fifo *f, struct piece *prev);
void sg_dom_fifo_clear(struct fifo *f);
/* Behind those with older events. */
void sg_dom_fifo_insert(struct fifo *f, struct piece *x);
/* The event that made the first octets of a piece visible; logged if it is not the piece's own. */
uint64_t sg_dom_visible_seq(struct sg_persist *p, const struct piece *x, uint32_t octets);
/* Is the piece for one of the lines [lo, last]? */
static inline bool sg_dom_piece_is_for(const struct piece *x, uint64_t lo, uint64_t last)
{
    return x->addr <= last && lo <= x->addr + (x->len - 1);
}
/* The last piece that is; NULL: none is. */
struct piece *sg_dom_fifo_last_for(const struct fifo *f, uint64_t lo, uint64_t last);
/* The device posts a piece. */
void sg_dom_post(struct sg_persist *p, struct piece *x);
/* E3 of one write. */
void sg_dom_become_visible(struct sg_persist *p, uint64_t addr, const uint8_t *buf, size_t len,
                           uint64_t seq, uint8_t mode);
/* What of S1 is for these lines has arrived, and what is before it. */
void sg_dom_leave_s1(struct sg_persist *p, uint64_t lo, uint64_t last);
bool sg_dom_drain_posted(struct sg_persist *p, unsigned device);
/* What a noted Flush of this source covers becomes visible: its S1, its connection's S0. */
void sg_dom_noted_arrives(struct sg_persist *p, const struct sg_persist_source *source,
                          const struct sg_persist_flush_note *note, const struct sg_dom_flushed *f);
void sg_dom_noted_leaves_s0(struct sg_persist *p, const struct sg_persist_source *source,
                            const struct sg_persist_flush_note *note);
/* A piece that is in no queue becomes visible. */
void sg_dom_pass(struct sg_persist *p, struct piece *x);
/* At a cut: the next octets of a queue, all of its head at most, become visible. */
void sg_dom_arrive(struct sg_persist *p, struct fifo *f, uint32_t octets);

/* ---- origin.c ---- */

void sg_dom_origin_init(struct sg_persist *p);
/* What the event, the newest one, made visible is what this piece brought. */
void sg_dom_origin_add(struct sg_persist *p, uint64_t arrival, const struct piece *x);
/* The input that brought a store with this event. */
uint64_t sg_dom_origin(const struct sg_persist *p, uint64_t seq);
/* All that is known of it: input and when it settled are numbers, settled may be SG_NEVER. */
struct sg_dom_arrival {
    uint64_t input, settled;
    uint32_t qpn;
    uint16_t unit;
};
void sg_dom_origin_get(const struct sg_persist *p, uint64_t seq, struct sg_dom_arrival *out);
/*
 * Does a noted Flush cover a write with this event?  If it was visible when the Flush began; or in
 * the S1 of the Flush's adapter, or in the S0 of its connection.
 */
bool sg_dom_was_noted(const struct sg_persist *p, uint64_t seq,
                      const struct sg_persist_source *source,
                      const struct sg_persist_flush_note *note);

/* ---- placement.c ---- */

/* sg_persist_dma_read() as a part of another call. */
void sg_dom_dma_read(struct sg_persist *p, unsigned device, uint64_t addr, uint64_t len);
/* Is anything for lines [lo, last] in S0 or S1?  Who has read them proves that it is not. */
bool sg_dom_posted_sees(const struct sg_persist *p, uint64_t lo, uint64_t last);
/* With limits.exact: somebody else writes to a range, after what was posted to its atoms. */
void sg_dom_posted_before(struct sg_persist *p, uint64_t addr, uint64_t len);
void sg_dom_posted_seen(struct sg_persist *p, uint64_t lo, uint64_t last);
/* A connection that had nothing in S0; the caller gives it something. */
struct sg_dom_conn *sg_dom_make_conn(struct sg_persist *p, unsigned device, uint32_t qpn);
void sg_dom_place_clear(struct sg_persist *p);
/* Connections that have nothing in S0 any more. */
void sg_dom_drop_empty(struct sg_persist *p);
void sg_dom_settle(struct sg_persist *p, unsigned device, uint32_t qpn);

/* ---- rdma_flush.c ---- */

void sg_dom_flush_begin(struct sg_persist *p, const struct sg_persist_source *source);
bool sg_dom_flush_finish(struct sg_persist *p, const struct sg_persist_source *source,
                         uint64_t addr, uint64_t len, unsigned flags,
                         const struct sg_persist_flush_note *note);
/* In arg of a FLUSH event. */
enum sg_dom_flush_halves { SG_DOM_FLUSH_BEGIN = 0x100, SG_DOM_FLUSH_FINISH = 0x200 };

/* ---- untracked.c ---- */

/*
 * Next run of octets, line by line, where visible memory and media differ although the line is
 * clean: changed by an untracked CPU.  Searches [*off, end); returns its length or 0.
 */
uint64_t sg_dom_untracked_next(struct sg_persist *p, struct extent *e, uint64_t *off, uint64_t end);
/* All such lines of [off, off + len) become dirty, of an unknown event. */
void sg_dom_mark_untracked(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len);

/*
 * To be called before DMA changes these lines of a page, and before the media side is read: with
 * untracked = keep, changes by CPUs in lines that are clean or have a history go to the
 * media.  (In other dirty lines they cannot be distinguished from the DMA's.)
 */
void sg_dom_keep_untracked(struct sg_persist *p, struct extent *e, size_t page_no, uint64_t mask);

/* ---- cpu.c ---- */

static inline struct cpu_entry *sg_dom_ring_at(const struct cpu_ring *r, unsigned i)
{
    return &r->at[(r->head + i) % r->size];
}
static inline bool sg_dom_is_busy(const struct sg_persist *p, unsigned vcpu)
{
    return p->busy[vcpu / 64] >> (vcpu % 64) & 1;
}
struct cpu *sg_dom_cpu_at(struct sg_persist *p, unsigned unit);
void sg_dom_cpu_free(struct sg_persist *p, unsigned unit);
/* The first busy vCPU from this one on, or SG_PERSIST_VCPUS. */
unsigned sg_dom_next_busy(const struct sg_persist *p, unsigned vcpu);

/* Who acts, other than the vCPU that is given with it (-1: none). */
enum sg_dom_actor { SG_DOM_PROCESSOR, SG_DOM_ADAPTER, SG_DOM_ANYBODY };
/* Another agent acts: drains the store buffers of the others, unless they are exact. */
void sg_dom_others_drain(struct sg_persist *p, int vcpu, enum sg_dom_actor actor);
/* It accesses these lines: the others' stores to them have left. */
void sg_dom_others_leave(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len,
                         int vcpu);
void sg_dom_cpu_drain(struct sg_persist *p, int vcpu);
/* Is anything of a range in S2' of another vCPU?  Who reads the range proves that it is not. */
bool sg_dom_cpu_sees(const struct sg_persist *p, uint64_t addr, uint64_t len, int vcpu);
/* It was read: the others' stores to its lines have left S2', and so have earlier plain stores. */
void sg_dom_cpu_seen(struct sg_persist *p, uint64_t addr, uint64_t len, int vcpu);
/* Executes all of a vCPU's store buffer; its write-combining buffers stay. */
void sg_dom_cpu_drain_stores(struct sg_persist *p, struct cpu *c);
/* Executes the oldest entry of the store buffer. */
void sg_dom_cpu_drain_one(struct sg_persist *p, struct cpu *c);
/* sg_persist_cpu_sync() as a part of another call. */
void sg_dom_cpu_sync(struct sg_persist *p);
void sg_dom_cpu_clear(struct sg_persist *p);
/* Somebody is about to change a range, and will report it.  Was this change announced? */
void sg_dom_announce(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len);
bool sg_dom_was_announced(struct sg_persist *p, uint64_t addr, uint64_t len);
/* Every vCPU's flushes and stores so far, as if each had executed a fence. */
void sg_dom_cpu_fence_all(struct sg_persist *p);

/* ---- fault.c ---- */

bool sg_dom_bad(const struct sg_persist *p, uint64_t addr, uint64_t len, unsigned kinds);
void sg_dom_heal(struct sg_persist *p, uint64_t addr, uint64_t len);

/* ---- report.c ---- */

struct sg_persist_report *sg_dom_report_new(struct sg_persist *p,
                                            const struct sg_persist_policy *policy);
/* Adds a row, or extends the last one if it is of the same kind and adjacent. */
void sg_dom_report_add(struct sg_persist *p, struct sg_persist_report *r,
                       const struct sg_persist_loss *add, uint32_t seq_low);
#endif
