/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator of power cuts: a few machines, each with an adapter and an NVDIMM, run programs that
 * write into each other's NVDIMM, while their power fails.
 *
 * power_world.c  one run: scenario, loop, cuts, counters
 * power_host.c   a machine: memory, NVDIMM (hw/core/persist), adapter; power off and on
 * power_flow.c   a writer, its connection, and the target's work for it
 * power_post.c   the writer's requests
 * power_cpu.c    a program that stores into the NVDIMM of its own machine
 * power_trace.c  the trace of a machine, and its replay
 * power_match.c  the traces of all machines: what belongs together
 * power_promise.c  what they promise
 * power_model.c  the oracle: which contents of an NVDIMM are allowed after a cut
 * power_main.c   the test cases
 *
 * One seed is one run.  The machines are the test hosts of tests/lib; their persistent memory is
 * the domain model itself, reached through the same host operations as in QEMU.
 */
#ifndef SG_TESTS_POWER_H
#define SG_TESTS_POWER_H

#include <glib.h>
#include <inttypes.h>

#include "base/prng.h"
#include "mini_driver.h"
#include "persist/persist.h"
#include "stream_mem.h"
#include "trace/event.h"

enum pw_sizes {
    PW_HOSTS = 3,
    PW_FLOWS = 4,
    PW_RAM = 384 * 1024,  /* ordinary memory of a machine */
    PW_BOOT = 64 * 1024,  /* of PW_RAM: for the driver; then */
    PW_ARENA = 72 * 1024, /* for each writer with an end on this machine */
    PW_PM = 32 * 1024,    /* its NVDIMM, behind it */
    PW_AREA = 8 * 1024,   /* of the NVDIMM, for one writer */
    PW_AREAS = PW_PM / PW_AREA,
    PW_REGION_LEN = 1000, /* with SG_FLUSH_REGION the length is any below */
    PW_RECORD = 1400,     /* octets of the longest record */
    PW_DEPTH = 4,         /* maximum of a writer's outstanding transactions */
    PW_OPS = 64,          /* work requests of a writer: its queue's entries */
    PW_TAIL = 64,         /* octets at the start of an area: the pointer to the last record */
    PW_TXS = 256,         /* transactions that are remembered */
    PW_PORT = 7000,       /* and following, one per writer */
};

/* What a writer accepts as proof that a record is persistent. */
enum pw_habit {
    PW_FLUSH,      /* Write, Flush P, Verify, Atomic Write, Flush P: the right way */
    PW_FLUSH_ONLY, /* Write, Flush P */
    PW_VERIFY,     /* Write, Verify with the expected hash: also correct */
    PW_NOTHING,    /* completion of the Write */
    PW_GLOBAL,     /* Flush G */
    PW_READ,       /* Write, Read */
    PW_SEND,       /* Write, Send; the peer answers when it sees the Send */
    PW_SEND_CPU,   /* the same, and the peer's CPU flushes before it answers */
    PW_ATOMIC,     /* Write, Atomic Write */
    PW_HABITS,
};

/* The same for a program on the target machine itself. */
enum pw_cpu_habit {
    PW_CPU_NONE,
    PW_CPU_CLWB,        /* stores, CLWB, SFENCE */
    PW_CPU_NT,          /* non-temporal stores, SFENCE */
    PW_CPU_STORE,       /* stores */
    PW_CPU_NO_FENCE,    /* stores, CLWB */
    PW_CPU_NT_NO_FENCE, /* non-temporal stores */
    PW_CPU_HABITS,
};

/* The stage that data have certainly reached when the proof arrives. */
enum pw_proof {
    PW_ANYWHERE,
    PW_POSTED,   /* S1 or later */
    PW_VISIBLE,  /* DMA: S2 or later, or S3 or later */
    PW_BUFFERED, /* S2' or later */
    PW_CACHED,   /* S2 or later */
    PW_QUEUED,   /* S3 or later */
    PW_MEDIA,    /* whatever the domain keeps */
};

/* ---- The oracle (power_model.c) ---- */

/* What one store or placement changed in one line. */
struct pw_frag {
    struct pw_frag *next;
    uint64_t order; /* number among all changes, ascending */
    uint64_t seq;   /* of the writer's request */
    uint32_t epoch; /* placements of one epoch may have been reordered */
    uint8_t off, len;
    bool believed;
    uint8_t data[SG_PERSIST_LINE];
};

struct pw_line {
    struct pw_frag *head, *tail;
    uint8_t base[SG_PERSIST_LINE];   /* the content before these changes */
    uint64_t base_order;             /* of the last change that was merged into it */
    uint32_t floor[SG_PERSIST_LINE]; /* unordered: oldest epoch that an octet may show */
};

struct pw_model {
    bool unordered; /* placement out of order: see power_model.c */
    uint64_t order;
    struct pw_line line[PW_PM / SG_PERSIST_LINE];
};

struct pw_verdict {
    const char *wrong;  /* NULL: allowed */
    uint64_t off;       /* of the line, in the NVDIMM */
    bool believed_lost; /* its writer relied on it, but we did not acknowledge it */
    unsigned dropped;   /* lines with a loss */
};

void pw_model_store(struct pw_model *m, uint64_t off, const uint8_t *buf, size_t len, uint64_t seq,
                    uint32_t epoch);
/* From now on all that requests before seq changed in the range must survive (acknowledged). */
void pw_model_ack(struct pw_model *m, uint64_t off, uint64_t len, uint64_t seq);
/* The writer believes that, but may be wrong. */
void pw_model_believe(struct pw_model *m, uint64_t off, uint64_t len, uint64_t seq);
/*
 * May a cut leave this content of [off, off + len)?  now: its first octet.
 * fifo: only S0 and S1 may lose, so that the range as a whole must be a prefix.
 */
void pw_model_judge(const struct pw_model *m, const uint8_t *now, uint64_t off, uint64_t len,
                    bool fifo, struct pw_verdict *v);
/* The cut left this content. */
void pw_model_rebase(struct pw_model *m, const uint8_t *now, uint64_t off, uint64_t len);
void pw_model_free(struct pw_model *m);

/* ---- Machines ---- */

/* Deliberate faults of the machine, which the oracle must detect. */
enum pw_mutant {
    PW_SOUND,
    PW_FLUSH_DOES_NOTHING,
    PW_FLUSH_SKIPS_LINE, /* the last line of each range */
    PW_FLUSH_SKIPS_S0,   /* data in the adapter */
    PW_VERIFY_READS_CACHE,
    PW_TEARS_ATOM,
    PW_TEARS_LINE, /* the surviving part of a line is not a prefix */
    PW_KEEPS_ALL,  /* cuts lose nothing */
    PW_MUTANTS,
};

struct pw_world;

struct pw_host {
    struct pw_world *w;
    unsigned index;
    struct test_host h;
    const struct sg_host_ops *plain; /* ordinary operations */
    struct md md;
    bool enabled;
    struct sg_endpoint at;
    uint32_t pd;
    struct sg_persist *p;
    struct sg_persist_limits limits;
    struct sg_persist_config first; /* the initial one */
    uint8_t *media;
    uint64_t pm;    /* bus address */
    uint64_t split; /* octets of the first of two NVDIMMs, or all */
    struct sg_persist_config config;
    bool powered_off; /* an armed cut is due: the machine has no power */
    uint64_t events_before;
    uint64_t life_steps; /* steps since power on, and the latest time of the next cut */
    uint64_t life_end;
    struct pw_model model;
    struct pw_trace *trace;  /* NULL: this run is not recorded */
    bool bare;               /* its trace is that of a machine without an NVDIMM: none is used */
    struct pw_model program; /* of the area of its own program */

    enum pw_cpu_habit cpu;
    uint64_t cpu_seq, cpu_at;
    uint64_t cpu_commits; /* since power on */
};

enum pw_conn { PW_DOWN, PW_CONNECTING, PW_UP };

struct pw_op {
    uint8_t opcode;
    uint64_t seq;
    uint32_t off, len; /* in the area */
    uint64_t tx;
    bool last; /* of its transaction */
};

/* A Write or Atomic Write that has not arrived completely at the target. */
struct pw_wait {
    uint64_t seq;
    uint32_t off, len, done;
};

struct pw_waits {
    struct pw_wait wait[PW_OPS * 2];
    uint32_t head, tail;
};

struct pw_tx {
    uint64_t number;
    uint32_t off, len;
    uint64_t data_seq; /* a request behind its Writes */
};

struct pw_end {
    struct md_cq cq;
    struct md_qp qp;
    bool made;
    uint32_t conn;
    uint64_t buf;  /* ordinary memory: address, */
    uint32_t stag; /* and STag */
    size_t brk;    /* address of the queues of a new connection */
};

struct pw_flow {
    struct pw_world *w;
    unsigned index;
    struct pw_host *from, *to;
    enum pw_habit habit;
    unsigned depth;
    bool deep;         /* PW_SEND_CPU: the peer's CPU flushes to the media */
    uint64_t tx_limit; /* transactions in this life of the target; 0: any number */

    enum pw_conn state;
    uint64_t retry_ns;
    struct pw_end a, b; /* requester, target */
    uint32_t listener;
    uint64_t area; /* offset in the target's NVDIMM */
    uint32_t rkey;
    uint8_t hash_alg;

    uint64_t seq;      /* of the last request; never restarts */
    uint64_t tx_next;  /* number of the next transaction, from 1; never restarts */
    uint64_t tx_first; /* the first one in this life of the target */
    uint64_t tx_done;  /* all up to this one have ended */
    uint32_t ring;     /* next free octet of the area */
    struct pw_op op[PW_OPS];
    uint32_t posted, polled;
    struct pw_tx tx[PW_TXS];
    struct pw_waits waits[2]; /* [1]: Atomic Writes; a Write may overtake an earlier one */
    uint32_t epoch;
    unsigned connection;     /* number */
    uint8_t mirror[PW_AREA]; /* what the writer wrote */
    uint64_t commits;        /* in this life of the target */
    uint64_t believed_seq;
};

/* ---- A run ---- */

struct pw_options {
    uint64_t seed;
    bool verbose;
    enum pw_mutant mutant;
    unsigned lives;                         /* cuts; 0: random */
    bool sweep;                             /* cut after event 1, 2, 3... of the first machine */
    const struct sg_persist_config *config; /* NULL: random, for each life */
    int habit, cpu;                         /* enum pw_habit, enum pw_cpu_habit; -1: random */
    int outcome;                            /* enum sg_persist_outcome; -1: random */
    uint64_t tx_limit;                      /* of a writer, in one life; 0: any number */
    unsigned previews;                      /* percent of the steps; has no effect on the run */
};

/* Sums over runs. */
struct pw_sums {
    uint64_t steps, events, cuts, armed, previews, replays, commits, acks, connections, broken;
    uint64_t traces, trace_events, trace_octets, matched, frames, promised;
    uint64_t dropped;                                /* lines with a loss */
    uint64_t lost[PW_HABITS][SG_PERSIST_DOMAINS][2]; /* cuts; [2]: ddio */
    uint64_t safe[PW_HABITS][SG_PERSIST_DOMAINS][2]; /* cuts where it could not lose */
    uint64_t cpu_lost[PW_CPU_HABITS][SG_PERSIST_DOMAINS];
    uint64_t cpu_safe[PW_CPU_HABITS][SG_PERSIST_DOMAINS];
    uint64_t stage_lost[SG_PERSIST_STAGES]; /* reports: octets or lines */
};

struct pw_world {
    struct pw_options opt;
    uint64_t random;
    uint64_t preview_random; /* separate state, so that previews have no effect */
    uint64_t now_ns;
    struct sg_mem_switch *sw;
    unsigned hosts, flows;
    bool net_bad;                   /* connections may break */
    bool faults;                    /* flushes may fail */
    struct sg_engine_config engine; /* of all adapters */
    struct pw_host host[PW_HOSTS];
    struct pw_flow flow[PW_FLOWS];
    unsigned cuts, lives;
    uint64_t sweep_at; /* next cut of a sweep */
    bool sweep_over;
    uint64_t end_step;
    struct pw_sums *sums;
    struct pw_known *known; /* power_promise.c */
    char failed[300];       /* the first error */
};

/* power_world.c */
void pw_run(struct pw_world *w, const struct pw_options *opt, struct pw_sums *sums);
uint64_t pw_prng(struct pw_world *w);
uint32_t pw_below(struct pw_world *w, uint32_t n);
bool pw_chance(struct pw_world *w, unsigned percent);
void pw_note(struct pw_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Records an error; the run ends at its next step. */
void pw_fail(struct pw_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Can a cut lose data that have certainly reached this stage? */
bool pw_may_lose(const struct sg_persist_config *c, enum pw_proof proof);

#define PW_CHECK(w, cond, ...)       \
    do {                             \
        if (!(cond)) {               \
            pw_fail(w, __VA_ARGS__); \
        }                            \
    } while (0)

/* power_host.c */
void pw_host_init(struct pw_host *x, struct pw_world *w, unsigned index);
/* Replays the domain's log, if it was kept, to the same memories.  The adapter has stopped. */
void pw_host_replay(struct pw_host *x);
void pw_host_free(struct pw_host *x);
/* Power on: the driver starts.  The NVDIMM has what survived. */
void pw_host_boot(struct pw_host *x);
/* Power off, at once or at the armed event that is due. */
void pw_host_cut(struct pw_host *x);
void pw_host_tick(struct pw_host *x);
uint64_t pw_host_events(const struct pw_host *x);
static inline uint8_t *pw_ptr(struct pw_host *x, uint64_t addr)
{
    return test_host_ptr(&x->h, addr);
}

/* power_trace.c: nothing happens if the run is not recorded */
struct pw_trace_what {
    uint64_t addr, len, arg, status, value, swap, found, ordinal;
    const uint8_t *data;
};
/* Is this run recorded? */
bool pw_trace_on(const struct pw_world *w);
/* The domain has its extents. */
void pw_trace_begin(struct pw_host *x);
/* The domain has done this; source NULL: nobody's. */
void pw_trace_input(struct pw_host *x, enum sg_trace_kind kind,
                    const struct sg_persist_source *source, const struct pw_trace_what *what);
void pw_trace_configure(struct pw_host *x, const struct sg_persist_faults *faults);
void pw_trace_cut(struct pw_host *x, const struct sg_persist_policy *policy);
/* The adapter's operation 'observe'. */
void pw_trace_observe(void *host, const struct sg_observed *o);
/* Frames of all machines are recorded; opaque: the world. */
sg_mem_frame_tap pw_trace_frame;
/* Replays the trace to the same memories.  The adapter has stopped. */
void pw_trace_end(struct pw_host *x);
/* The octets of the trace, after its end; NULL: this run is not recorded. */
const GByteArray *pw_trace_file(const struct pw_host *x);
/* Events so far. */
uint64_t pw_trace_events(const struct pw_host *x);
void pw_trace_free(struct pw_host *x);
#define PW_TRACE(x, kind, source, ...) \
    pw_trace_input(x, kind, source, &(struct pw_trace_what){ __VA_ARGS__ })

/* power_match.c: finds the cause of each event of all machines in another one's trace. */
void pw_match(struct pw_world *w);

/* power_promise.c: the promises of the traces against these; nothing if they are not recorded. */
/* A placement that this request made; traced: its event is the last one. */
void pw_known_placed(struct pw_flow *f, uint64_t off, uint64_t len, uint64_t seq, bool traced);
/* The writer saw a request complete. */
void pw_known_flushed(struct pw_flow *f, const struct pw_op *op);
void pw_promises(struct pw_world *w);

/* power_flow.c */
void pw_flow_step(struct pw_flow *f);
/* Its connection has ended; both ends that have power forget it. */
void pw_flow_down(struct pw_flow *f, const struct pw_host *without_power);
/* Events of connections of this machine. */
void pw_host_listen(struct pw_host *x);
enum pw_proof pw_flow_proof(const struct pw_flow *f);
/* The flow whose target queue pair this is, or NULL. */
struct pw_flow *pw_flow_of(struct pw_host *to, uint32_t qpn);
/* Actions of the target's adapter for a flow (called by power_host.c). */
void pw_flow_placed(struct pw_flow *f, uint64_t off, const uint8_t *buf, size_t len, bool atom,
                    bool traced);
/* The first request that has not arrived completely; UINT64_MAX: all have. */
uint64_t pw_flow_missing(const struct pw_flow *f);
/* An epoch ends: later placements cannot be reordered before earlier ones. */
void pw_flow_settled(struct pw_flow *f);
/* Polls the writer's completions.  False: one of them is an error. */
bool pw_flow_poll(struct pw_flow *f);
/* Judges what a cut left of its area ('now'; for_good: true), or would leave (false). */
void pw_flow_judge(struct pw_flow *f, const uint8_t *now, bool for_good);

/* power_post.c */
/* One transaction, if there is room. */
void pw_flow_post(struct pw_flow *f);
/* Octet i of the data of request seq. */
uint8_t pw_octet(const struct pw_flow *f, uint64_t seq, uint32_t i);
/* The next entry of the writer's queue. */
struct sg_wqe_hdr *pw_post_entry(struct pw_flow *f, uint8_t opcode, uint32_t off, uint32_t len);
void pw_post_recv(struct pw_end *e, unsigned slot);
enum {
    PW_MESSAGE = 32,
    PW_RECVS = 8,
    PW_RECV_AT = 8192,
    PW_SEND_AT = 9216,
    PW_SINK_AT = 10240,
    PW_BUF = 12288,
};

/* power_cpu.c */
void pw_cpu_step(struct pw_host *x);
/* The target's CPU makes [off, off + len) of its NVDIMM persistent. */
void pw_cpu_flush(struct pw_host *x, uint64_t off, uint64_t len, bool deep);
void pw_cpu_judge(struct pw_host *x, const uint8_t *now, bool for_good);
enum pw_proof pw_cpu_proof(enum pw_cpu_habit habit, const struct sg_persist_config *c);

#endif
