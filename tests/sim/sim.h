/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator of the iWARP engine: two engines, a few connections between them, a network whose
 * behaviour the seed determines, and above each end a small model of verbs that knows what has to
 * arrive.
 *
 * One seed is one run: the seed determines the scenario (policies, sizes, delays, damage, ends),
 * every action and every delay, so a failing seed replays exactly.
 */
#ifndef SG_TESTS_SIM_H
#define SG_TESTS_SIM_H

#include <inttypes.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "proto/engine.h"
#include "stream_mem.h"

enum sim_limits {
    SIM_PAIRS = 3,
    SIM_OPS = 96,       /* per side */
    SIM_AREA = 8192,    /* octets that the peer writes */
    SIM_SOURCE = 65536, /* octets that the peer reads */
    SIM_RECV = 12000,   /* octets of every Receive */
    SIM_PDATA = 508,
    SIM_EXTRA = 6, /* STags that can be invalidated */
    SIM_WORDS = 8, /* that the peer's Atomics change */
};

enum sim_stag {
    SIM_STAG_AREA = 0x1000,
    SIM_STAG_SOURCE = 0x2000,
    SIM_STAG_SINK = 0x3000,
    SIM_STAG_EXTRA = 0x4000, /* and following: the area under another STag */
    SIM_STAG_WORDS = 0x5000,
    SIM_STAG_NONE = 0x9999,
};

/* An application's mistake; each has its Terminate. */
enum sim_fault {
    SIM_SOUND,
    SIM_BAD_WRITE_STAG,
    SIM_BAD_WRITE_BOUNDS,
    SIM_BAD_READ_STAG,
    SIM_BAD_READ_BOUNDS,
    SIM_SEND_TOO_LONG,
    SIM_BAD_INVALIDATE,
    SIM_GATHER_FAILS,
    SIM_MISALIGNED,
    SIM_UNSPOKEN, /* the peer does not know RFC 7306 */
    SIM_FAULTS,
};

struct sim_op {
    struct sg_msg msg;
    enum sim_fault fault;
    uint32_t at;                /* offset in the peer's area or source */
    bool read_back;             /* a Read of the area: no Write is posted until it is complete */
    bool words;                 /* an Atomic, or a Read of the words; it has: */
    uint64_t before[SIM_WORDS]; /* the peer's words when it is executed */
    unsigned seq;
    uint64_t ordinal, response; /* sim_ordinal.c; 0: not started, not answered */
};

struct sim_side {
    struct sim_pair *pair;
    struct sim_side *peer;
    unsigned node; /* 0 active, 1 passive */
    struct sg_conn *c;
    bool up, down, over; /* streaming; no more inbound messages; last upcall seen */
    bool tx_ready;
    bool close_asked, close_done;
    bool left;    /* the peer closed: the engine gets nothing more */
    bool aborted; /* by the model itself */
    enum sg_conn_end end;
    uint16_t ird, ord;

    struct sim_op ops[SIM_OPS];
    unsigned posted, taken; /* taken: passed to the engine */
    unsigned completed;     /* Sends and Writes reported as sent, by index of the next */
    unsigned answered;      /* index of the next op that may get an answer */
    unsigned executed;      /* index of the peer's op to check for its next Atomic */
    unsigned reads_out;
    bool fenced;
    bool extra_valid[SIM_EXTRA];

    uint8_t *area, *shadow;           /* what the peer wrote, and what it must be */
    uint8_t *remote;                  /* the peer's area once our taken Writes have been placed */
    uint64_t words[SIM_WORDS];        /* changed by the peer's Atomics, little-endian */
    uint64_t remote_words[SIM_WORDS]; /* the peer's, once all taken ones are executed */
    uint64_t started;                 /* ordinal of the last op that was */
    unsigned later;                   /* how often the oldest Atomic was postponed */
    uint8_t *source, *sink;
    uint8_t *recv;
    unsigned applied;  /* ops of the peer included in the shadow */
    unsigned received; /* Sends delivered here */
    unsigned lent;

    uint8_t pdata[SIM_PDATA];
    uint16_t pdata_len;
    const struct sim_op *fatal; /* our own op that must end the connection */
    bool term_sent, term_received;
};

struct sim_pair {
    struct sim_world *w;
    unsigned index;
    struct sim_side side[2];
    bool requested, answered;
    bool early;     /* closed before all was sent */
    bool refused;   /* the answer was a rejection, or there was none */
    bool disturbed; /* something happened that may lose messages */
};

struct sim_scenario {
    struct sg_engine_config config[2];
    struct sg_mem_options net;
    unsigned pairs, ops;
    uint32_t size_max;
    uint16_t depth[2];
    bool corrupt, breaks, faults, aborts, early_close, moody; /* moody: rejects, ignores */
};

struct sim_world {
    uint64_t seed, random;
    enum sg_engine_wire wire;
    bool verbose;
    uint64_t now_ns;
    struct sg_host host;
    struct sg_mem_switch *sw;
    struct sg_stream_net *net[2];
    struct sg_engine *engine[2];
    struct sg_engine_listener *listener;
    struct sg_endpoint at[2];
    struct sim_scenario sc;
    struct sim_pair pair[SIM_PAIRS];
    uint8_t lend[1 << 17];
    uint64_t delivered; /* messages, for the summary */
};

/* sim_world.c */
void sim_run(struct sim_world *w, uint64_t seed, enum sg_engine_wire wire, bool verbose);
uint64_t sim_prng(struct sim_world *w);
uint32_t sim_below(struct sim_world *w, uint32_t n);
bool sim_chance(struct sim_world *w, unsigned percent);
void sim_note(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints what is wrong and how to reproduce it, and ends the program. */
void sim_fail(struct sim_world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

#define SIM_CHECK(w, cond, ...)       \
    do {                              \
        if (!(cond)) {                \
            sim_fail(w, __VA_ARGS__); \
        }                             \
    } while (0)

/* sim_apps.c */
void sim_side_init(struct sim_side *s);
void sim_side_free(struct sim_side *s);
void sim_post(struct sim_side *s);

/* sim_verbs.c */
extern const struct sg_engine_ops sim_ops;
void sim_abort(struct sim_side *s);
/* Called first in every upcall about a connection. */
struct sim_side *sim_heard(void *user, const char *what, bool inbound);
/* Sometimes aborts in the middle of an upcall; true: the connection is gone. */
bool sim_tantrum(struct sim_side *s);
/* Memory behind an STag. */
enum sg_mem_status sim_area_of(struct sim_side *s, uint32_t stag, uint64_t to, uint64_t n,
                               uint8_t **p);
/* Checks that everything taken has arrived and is complete. */
void sim_check_complete(struct sim_side *s);

/* sim_ordinal.c */
void sim_up_started(void *user, const struct sg_msg *msg, uint64_t ordinal);
void sim_up_answered(void *user, const struct sg_answer *r);
/* The peer's operation whose segment has arrived. */
const struct sim_op *sim_arriving(struct sim_side *s);
/* The response to this operation of ours has arrived. */
void sim_check_response(struct sim_side *s, const struct sim_op *op);

/* sim_atomic.c */
bool sim_is_atomic(const struct sim_op *op);
/* The new value of the word. */
uint64_t sim_atomic_result(enum sg_msg_kind kind, const struct sg_atomic_args *a, uint64_t v);
enum sg_exec_result sim_up_atomic(void *user, const struct sg_atomic_call *r, uint64_t *original,
                                  enum sg_mem_status *why, uint64_t *token, uint64_t *again_ns);

#endif
