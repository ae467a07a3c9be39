/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises against an oracle: machines with connections that come and go, with Writes, Atomic
 * Writes and Flushes that overtake each other where the protocol lets them, completions that are
 * signalled or not, and marks.  The oracle knows which message did what, keeps vector clocks, and
 * has for each octet that was placed the event of its machine from which it is promised.
 */
#include "base/prng.h"
#include "crash/promise.h"
#include "events_rig.h"
#include "staghorn/io.h"
#include "tap.h"

enum { MACHINES = 3, CONNS = 64, ALIVE = 6, OPS = 400, OCTETS = 96, STEPS = 700, SEEDS = 600 };

struct op {
    uint8_t opcode;
    uint64_t ordinal, wr_id, addr, len;
    bool signalled, persistent;
    bool answered;  /* or needs no answer */
    unsigned parts; /* of a Write that have not arrived */
};

/* A frame on its way, with the clock of its sending. */
struct flying {
    uint64_t content;
    uint64_t clock[MACHINES];
    unsigned op;
};

struct placement {
    uint64_t ordinal, addr, len, event;
};

/* Placements of messages first to last are promised from this event on. */
struct rule {
    uint64_t first, last, from;
};

struct conn {
    unsigned q, t; /* machines */
    uint32_t qpn_q, qpn_t;
    bool alive;
    struct op op[OPS];
    unsigned posted, completed; /* ops */
    uint64_t ordinal, done;     /* ordinals: posted, completed as delivered */
    GArray *to_t, *to_q;        /* struct flying */
    GArray *waiting;            /* unsigned: requests that the target executes later */
    GArray *placed;             /* struct placement */
    GArray *rules;
    GArray *flushes; /* struct flush */
};

struct flush {
    uint64_t ordinal, addr, len, begin;
};

struct world {
    struct er er;
    uint64_t random;
    uint64_t clock[MACHINES][MACHINES];
    struct conn conn[CONNS];
    unsigned conns;
    uint64_t content, wr_id;
    unsigned acks;
    GHashTable *promised; /* by machine, octet, event: from */
};

static unsigned below(struct world *w, unsigned limit)
{
    return (unsigned)(sg_prng(&w->random) % limit);
}

static uint64_t add(struct world *w, unsigned machine, struct sg_trace_event e)
{
    return w->clock[machine][machine] = er_add(&w->er, machine, e);
}

/* ---- The oracle ---- */

static void promise(struct world *w, const struct conn *c, uint64_t octet, uint64_t event,
                    uint64_t from)
{
    uint64_t key = (uint64_t)c->t << 56 | octet << 32 | event;
    uint64_t *known = g_hash_table_lookup(w->promised, &key);

    if (!known) {
        g_hash_table_insert(w->promised, g_memdup2(&key, 8), g_memdup2(&from, 8));
    } else {
        *known = SG_MIN(*known, from);
    }
}

static void promise_range(struct world *w, const struct conn *c, const struct placement *p,
                          uint64_t from, uint64_t addr, uint64_t len)
{
    for (uint64_t i = p->addr; i < p->addr + p->len; i++) {
        if (i >= addr && i - addr < len) {
            promise(w, c, i, p->event, from);
        }
    }
}

static void flushes_acknowledged(struct world *w, struct conn *c, uint64_t last, uint64_t from)
{
    for (unsigned i = 0; i < c->flushes->len; i++) {
        const struct flush *f = &g_array_index(c->flushes, struct flush, i);

        for (unsigned j = 0; f->ordinal <= last && j < c->placed->len; j++) {
            const struct placement *p = &g_array_index(c->placed, struct placement, j);

            if (p->ordinal < f->ordinal && p->event < f->begin) {
                promise_range(w, c, p, from, f->addr, f->len);
            }
        }
    }
}

static void oracle_end(struct world *w)
{
    for (unsigned i = 0; i < w->conns; i++) {
        struct conn *c = &w->conn[i];

        for (unsigned j = 0; j < c->placed->len; j++) {
            const struct placement *p = &g_array_index(c->placed, struct placement, j);

            for (unsigned k = 0; k < c->rules->len; k++) {
                const struct rule *r = &g_array_index(c->rules, struct rule, k);

                if (r->first <= p->ordinal && p->ordinal <= r->last) {
                    promise_range(w, c, p, r->from, p->addr, p->len);
                }
            }
        }
    }
}

/* ---- Frames ---- */

static void transmit(struct world *w, unsigned from, GArray *to, unsigned op)
{
    struct flying f = { .content = ++w->content, .op = op };

    w->clock[from][from] = er_sent(&w->er, from, f.content);
    memcpy(f.clock, w->clock[from], sizeof(f.clock));
    g_array_append_val(to, f);
}

static struct flying arrive(struct world *w, unsigned at, GArray *from)
{
    struct flying f = g_array_index(from, struct flying, 0);

    g_array_remove_index(from, 0);
    for (unsigned i = 0; i < MACHINES; i++) {
        w->clock[at][i] = SG_MAX(w->clock[at][i], f.clock[i]);
    }
    w->clock[at][at] = er_received(&w->er, at, f.content);
    return f;
}

/* ---- Connections ---- */

static void pass(struct world *w, unsigned from, unsigned to)
{
    GArray *one = g_array_new(FALSE, FALSE, sizeof(struct flying));

    if (from != to) {
        transmit(w, from, one, 0);
        arrive(w, to, one);
    }
    g_array_free(one, TRUE);
}

static void open_end(struct world *w, const struct conn *c, bool target, unsigned port)
{
    unsigned machine = target ? c->t : c->q;

    er_connected(&w->er, machine, target ? c->qpn_t : c->qpn_q, target ? 7000 : port,
                 target ? c->q : c->t, target ? port : 7000);
    w->clock[machine][machine]++;
}

static void close_end(struct world *w, unsigned machine, uint32_t qpn)
{
    add(w, machine, (struct sg_trace_event){ .kind = SG_TRACE_DISCONNECTED, .qpn = qpn });
}

static void connect_pair(struct world *w)
{
    struct conn *c = &w->conn[w->conns];
    unsigned alive = 0, port;

    for (unsigned i = 0; i < w->conns; i++) {
        alive += w->conn[i].alive;
    }
    if (w->conns == CONNS || alive == ALIVE) {
        return;
    }
    *c = (struct conn){
        .q = below(w, MACHINES),
        .t = below(w, MACHINES),
        .qpn_q = 2 * (1 + w->conns % 9),
        .qpn_t = 2 * (1 + w->conns % 9) + 1,
        .alive = true,
    };
    for (unsigned i = 0; i < w->conns; i++) {
        if (w->conn[i].alive && w->conn[i].qpn_q == c->qpn_q) {
            return;
        }
    }
    c->to_t = g_array_new(FALSE, FALSE, sizeof(struct flying));
    c->to_q = g_array_new(FALSE, FALSE, sizeof(struct flying));
    c->waiting = g_array_new(FALSE, FALSE, sizeof(unsigned));
    c->placed = g_array_new(FALSE, FALSE, sizeof(struct placement));
    c->rules = g_array_new(FALSE, FALSE, sizeof(struct rule));
    c->flushes = g_array_new(FALSE, FALSE, sizeof(struct flush));
    w->conns++;
    port = 100 + c->qpn_q; /* free again, as its number */
    if (below(w, 4) == 0) {
        /* An attempt that only the target saw. */
        open_end(w, c, true, port);
        close_end(w, c->t, c->qpn_t);
    }
    open_end(w, c, true, port);
    pass(w, c->t, c->q);
    open_end(w, c, false, port);
    pass(w, c->q, c->t);
}

static void disconnect_pair(struct world *w, struct conn *c)
{
    c->alive = false;
    if (below(w, 2)) {
        close_end(w, c->q, c->qpn_q);
    }
    pass(w, c->q, c->t);
    close_end(w, c->t, c->qpn_t);
    pass(w, c->t, c->q);
}

/* ---- Requests ---- */

static void post(struct world *w, struct conn *c)
{
    static const uint8_t opcodes[] = { SG_WR_WRITE, SG_WR_WRITE,        SG_WR_WRITE, SG_WR_SEND,
                                       SG_WR_FLUSH, SG_WR_ATOMIC_WRITE, SG_WR_FLUSH };
    struct op *o = &c->op[c->posted];

    if (c->posted == OPS || c->posted - c->completed > 12) {
        return;
    }
    *o = (struct op){
        .opcode = opcodes[below(w, SG_ARRAY_SIZE(opcodes))],
        .ordinal = ++c->ordinal,
        .wr_id = ++w->wr_id,
        .addr = 1000 + below(w, OCTETS),
        .len = 1 + below(w, 24),
        .signalled = below(w, 3),
        .persistent = below(w, 5),
        .parts = 1,
    };
    if (o->opcode == SG_WR_ATOMIC_WRITE) {
        o->len = 8;
        o->addr &= ~7ull;
    } else if (o->opcode == SG_WR_WRITE && o->len > 1) {
        o->parts = 1 + below(w, 2);
    }
    o->answered = o->opcode == SG_WR_WRITE || o->opcode == SG_WR_SEND;
    for (unsigned i = 0; i < o->parts; i++) {
        transmit(w, c->q, c->to_t, c->posted);
    }
    add(w, c->q,
        (struct sg_trace_event){
            .kind = SG_TRACE_WORK,
            .qpn = c->qpn_q,
            .ordinal = o->ordinal,
            .arg = o->opcode,
            .value = o->wr_id,
        });
    c->posted++;
}

static void place(struct world *w, struct conn *c, const struct op *o, enum sg_trace_kind kind,
                  uint64_t from, uint64_t to)
{
    struct placement p = { o->ordinal, o->addr + from, to - from, 0 };

    p.event = add(w, c->t,
                  (struct sg_trace_event){
                      .kind = kind,
                      .qpn = c->qpn_t,
                      .ordinal = o->ordinal,
                      .addr = p.addr,
                      .len = p.len,
                  });
    g_array_append_val(c->placed, p);
}

static void target_receives(struct world *w, struct conn *c)
{
    unsigned number = arrive(w, c->t, c->to_t).op;
    struct op *o = &c->op[number];

    if (o->opcode == SG_WR_WRITE) {
        uint64_t half = o->len / 2;

        if (o->parts == 2) {
            place(w, c, o, SG_TRACE_PLACE, 0, half);
            o->parts = 3;
        } else {
            place(w, c, o, SG_TRACE_PLACE, o->parts == 3 ? half : 0, o->len);
        }
    } else if (o->opcode != SG_WR_SEND) {
        g_array_append_val(c->waiting, number);
    }
}

static void target_executes(struct world *w, struct conn *c)
{
    unsigned number = g_array_index(c->waiting, unsigned, 0);
    struct op *o = &c->op[number];
    struct sg_trace_event e = {
        .kind = SG_TRACE_FLUSH_BEGIN,
        .qpn = c->qpn_t,
        .ordinal = o->ordinal,
        .addr = o->addr,
        .len = o->len,
        .arg = o->persistent ? SG_FLUSH_PERSISTENT : SG_FLUSH_GLOBAL,
    };
    struct flush f = { o->ordinal, o->addr, o->len, 0 };

    g_array_remove_index(c->waiting, 0);
    if (o->opcode == SG_WR_ATOMIC_WRITE) {
        place(w, c, o, SG_TRACE_ATOMIC_WRITE, 0, 8);
    } else {
        f.begin = add(w, c->t, e);
        e.kind = SG_TRACE_FLUSH_END;
        add(w, c->t, e);
        if (o->persistent) {
            g_array_append_val(c->flushes, f);
        }
    }
    transmit(w, c->t, c->to_q, number);
}

static bool is_chosen(const struct world *w, uint8_t opcode)
{
    enum sg_crash_ack kind = opcode == SG_WR_WRITE  ? SG_CRASH_ACK_WRITE
                             : opcode == SG_WR_SEND ? SG_CRASH_ACK_SEND
                                                    : SG_CRASH_ACK_ATOMIC;

    return opcode != SG_WR_FLUSH && w->acks >> kind & 1;
}

static void complete(struct world *w, struct conn *c)
{
    const struct op *o = &c->op[c->completed];
    bool wrong = below(w, 40) == 0;
    struct rule r = { 1, o->ordinal, 0 };

    if (c->completed == c->posted || !o->answered) {
        return;
    }
    c->completed++;
    if (!o->signalled && !wrong) {
        return;
    }
    add(w, c->q,
        (struct sg_trace_event){
            .kind = SG_TRACE_COMPLETED,
            .qpn = c->qpn_q,
            .ordinal = o->ordinal,
            .arg = o->opcode,
            .value = o->wr_id,
            .status = wrong ? SG_WC_FLUSH_ERR : SG_WC_SUCCESS,
        });
    if (wrong) {
        disconnect_pair(w, c);
        return;
    }
    c->done = o->ordinal;
    r.from = w->clock[c->q][c->t];
    if (w->acks >> SG_CRASH_ACK_FLUSH & 1) {
        flushes_acknowledged(w, c, o->ordinal, r.from);
    }
    if (is_chosen(w, o->opcode)) {
        g_array_append_val(c->rules, r);
    }
}

static void mark(struct world *w)
{
    struct conn *only = w->conns ? &w->conn[below(w, w->conns)] : NULL;
    unsigned machine = only ? only->q : 0, how = below(w, 3);
    const struct op *o = only && only->posted ? &only->op[below(w, only->posted)] : NULL;
    char text[40] = "";

    if (!only || !(w->acks >> SG_CRASH_ACK_ACKNOWLEDGED & 1) || (how == 2 && !o)) {
        return;
    }
    /* The ends that are over are known by their numbers until these are used again. */
    if (how && !only->alive) {
        return;
    }
    if (how) {
        snprintf(text, sizeof(text), how == 1 ? "qpn=%" PRIu64 : "wr_id=%" PRIu64,
                 how == 1 ? only->qpn_q : o->wr_id);
    }
    w->clock[machine][machine] = er_mark(&w->er, machine, "acknowledged", text);
    for (unsigned i = 0; i < w->conns; i++) {
        struct conn *c = &w->conn[i];
        struct rule r = { 1, c->done, w->clock[machine][c->t] };

        if (c->q != machine || (how && c != only)) {
            continue;
        }
        if (how == 2) {
            r.first = r.last = o->ordinal <= c->done ? o->ordinal : 0;
        }
        g_array_append_val(c->rules, r);
    }
}

static void step(struct world *w)
{
    struct conn *c = w->conns ? &w->conn[below(w, w->conns)] : NULL;
    unsigned what = below(w, 32);

    if (what == 0) {
        connect_pair(w);
    } else if (what == 1) {
        mark(w);
    } else if (!c || !c->alive) {
        return;
    } else if (what < 10) {
        post(w, c);
    } else if (what < 18 && c->to_t->len) {
        target_receives(w, c);
    } else if (what < 23 && c->waiting->len) {
        target_executes(w, c);
    } else if (what < 27 && c->to_q->len) {
        c->op[arrive(w, c->q, c->to_q).op].answered = true;
    } else if (what == 31 && below(w, 8) == 0) {
        disconnect_pair(w, c);
    } else {
        complete(w, c);
    }
}

/* ---- The comparison ---- */

static void begin(void *opaque)
{
    struct sg_crash_promises **p = opaque;

    sg_crash_promises_free(p[0]);
    p[0] = sg_crash_promises_new(MACHINES, (1 << MACHINES) - 1, *(unsigned *)p[1]);
}

static void ordered(void *opaque, unsigned machine, const struct sg_trace_event *e,
                    const uint64_t *past)
{
    sg_crash_promises_event(*(struct sg_crash_promises **)opaque, machine, e, er_name(e), past);
}

static GHashTable *promises_of(const struct sg_crash_promises *p)
{
    GHashTable *all = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);

    for (unsigned t = 0; t < MACHINES; t++) {
        uint64_t count, before = 0;
        const struct sg_crash_promise *x = sg_crash_promises_of(p, t, &count);

        for (; count; count--, x++) {
            const struct sg_crash_range *r = sg_crash_promise_ranges(p, x);

            T_TRUE(x->from >= before && x->target == t);
            before = x->from;
            for (unsigned i = 0; i < x->range_count; i++) {
                for (uint64_t octet = r[i].addr; octet < r[i].addr + r[i].len; octet++) {
                    uint64_t key = (uint64_t)t << 56 | octet << 32 | r[i].placed;
                    const uint64_t *known = g_hash_table_lookup(all, &key);

                    if (!known || *known > x->from) {
                        g_hash_table_replace(all, g_memdup2(&key, 8), g_memdup2(&x->from, 8));
                    }
                }
            }
        }
    }
    return all;
}

/* Is each promise of a implied by one of b: the same octet, as placed then or later, not later? */
static void implies(GHashTable *b, GHashTable *a, const char *what)
{
    GHashTableIter i;
    void *k, *v;

    g_hash_table_iter_init(&i, a);
    while (g_hash_table_iter_next(&i, &k, &v)) {
        uint64_t key = *(uint64_t *)k, from = *(uint64_t *)v, other;
        bool found = false;

        for (other = key; !found && (uint32_t)other < 3000; other++) {
            const uint64_t *known = g_hash_table_lookup(b, &other);

            found = known && *known <= from;
        }
        if (!found) {
            T_FAIL("%s: machine %u, octet %u, placed by %u, from %" PRIu64, what,
                   (unsigned)(key >> 56), (unsigned)(key >> 32 & 0xffffff), (unsigned)key, from);
        }
    }
    T_TRUE(true);
}

static void free_world(struct world *w)
{
    for (unsigned i = 0; i < w->conns; i++) {
        struct conn *c = &w->conn[i];
        GArray *const all[] = { c->to_t, c->to_q, c->waiting, c->placed, c->rules, c->flushes };

        for (unsigned j = 0; j < SG_ARRAY_SIZE(all); j++) {
            g_array_free(all[j], TRUE);
        }
    }
    g_hash_table_destroy(w->promised);
    er_free(&w->er);
    g_free(w);
}

static void promise__random(void)
{
    uint64_t all = 0, acknowledgements = 0;

    for (uint64_t seed = 1; seed <= t_seeds(SEEDS, SEEDS / 20); seed++) {
        struct world *w = g_new0(struct world, 1);
        struct sg_crash_promises *p = NULL;
        void *opaque[2];
        GHashTable *got;

        T_CONTEXT("seed %" PRIu64, seed);
        w->random = seed;
        w->acks = seed % 3 ? SG_CRASH_ACK_DEFAULT : (unsigned)sg_prng(&w->random) % 256;
        w->promised = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
        er_init(&w->er, MACHINES);
        for (unsigned i = 0; i < STEPS; i++) {
            step(w);
        }
        oracle_end(w);
        opaque[0] = NULL;
        opaque[1] = &w->acks;
        sg_crash_order_free(er_run(&w->er, begin, ordered, opaque));
        p = opaque[0];
        sg_crash_promises_end(p);
        got = promises_of(p);
        implies(got, w->promised, "missing");
        implies(w->promised, got, "too much");
        all += g_hash_table_size(got);
        acknowledgements += sg_crash_promise_counts(p)->acknowledgements;
        T_EQ_U64(sg_crash_promise_counts(p)->dropped, 0);
        g_hash_table_destroy(got);
        sg_crash_promises_free(p);
        free_world(w);
    }
    T_NOTE("%" PRIu64 " octets, %" PRIu64 " acknowledgements", all, acknowledgements);
    T_TRUE(all > 5000);
}

static const struct t_case cases[] = {
    { "promise: random runs", promise__random },
};

T_MAIN(cases)
