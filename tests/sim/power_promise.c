/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises of Flushes, from the traces of all machines alone, against what the simulator knows:
 * which request each placement belongs to, and which Flushes the writers saw complete.
 *
 * Both directions: a Flush that a writer saw complete promises each octet that earlier requests of
 * its connection placed in its range; and no promise has anything else.  It begins no later than
 * the writer saw the completion.
 */
#include "crash/promise.h"
#include "power.h"
#include "trace/reader.h"

/* What the simulator knows; numbers of events are of the machine named. */
struct known_placement {
    unsigned flow, connection;
    uint64_t seq, addr, len, event; /* of the target */
};

struct known_flush {
    unsigned flow, connection;
    uint64_t seq, addr, len;
    uint64_t wr_id, qpn;
    uint64_t seen, target_seen; /* events of requester and target by then */
    uint64_t event;             /* of its completion, or 0 */
};

struct pw_known {
    GArray *placements, *flushes;
};

struct delivered {
    uint64_t number, qpn, wr_id;
};

struct promise_check {
    struct pw_world *w;
    struct sg_crash_promises *p;
    GArray *delivered[PW_HOSTS]; /* successful completions */
    struct sg_trace_octets octets[PW_HOSTS];
    struct sg_trace_reader *reader[PW_HOSTS];
};

static struct pw_known *known_of(struct pw_world *w)
{
    if (!w->known) {
        w->known = g_new0(struct pw_known, 1);
        w->known->placements = g_array_new(FALSE, FALSE, sizeof(struct known_placement));
        w->known->flushes = g_array_new(FALSE, FALSE, sizeof(struct known_flush));
    }
    return w->known;
}

void pw_known_placed(struct pw_flow *f, uint64_t off, uint64_t len, uint64_t seq, bool traced)
{
    struct known_placement x = {
        .flow = f->index,
        .connection = f->connection,
        .seq = seq,
        .addr = f->to->pm + off,
        .len = len,
        .event = pw_trace_events(f->to) + !traced,
    };

    if (f->to->trace) {
        g_array_append_val(known_of(f->w)->placements, x);
    }
}

void pw_known_flushed(struct pw_flow *f, const struct pw_op *op)
{
    struct known_flush x = {
        .flow = f->index,
        .connection = f->connection,
        .seq = op->seq,
        .addr = f->to->pm + f->area + op->off,
        .len = op->len,
        .wr_id = f->polled - 1,
        .qpn = f->a.qp.qpn,
        .seen = pw_trace_events(f->from),
        .target_seen = pw_trace_events(f->to),
    };

    if (f->to->trace && op->opcode == SG_WR_FLUSH && f->habit != PW_GLOBAL) {
        g_array_append_val(known_of(f->w)->flushes, x);
    }
}

/* ---- The traces ---- */

static void take(void *opaque, unsigned machine, const struct sg_trace_event *e,
                 const uint64_t *past)
{
    struct promise_check *c = opaque;
    struct delivered d = { e->number, e->qpn, e->value };

    sg_crash_promises_event(c->p, machine, e, NULL, past);
    if (e->kind == SG_TRACE_COMPLETED && e->arg < SG_WC_RECV && !e->status) {
        g_array_append_val(c->delivered[machine], d);
    }
}

/* New readers of all traces. */
static void open_all(struct promise_check *c, struct sg_crash_source *source)
{
    for (unsigned i = 0; i < c->w->hosts; i++) {
        const GByteArray *file = pw_trace_file(&c->w->host[i]);

        c->octets[i] = (struct sg_trace_octets){ file->data, file->len };
        sg_trace_reader_free(c->reader[i]);
        c->reader[i] = sg_trace_reader_new(sg_trace_read_octets, &c->octets[i]);
        sg_assert(sg_trace_open(c->reader[i], NULL, NULL) == SG_TRACE_GOOD);
        source[i] = sg_crash_reader_source(c->reader[i]);
    }
}

static void run(struct promise_check *c)
{
    struct sg_crash_order *o = sg_crash_order_new(c->w->hosts);
    struct sg_crash_source source[PW_HOSTS];

    open_all(c, source);
    for (unsigned i = 0; i < c->w->hosts; i++) {
        sg_crash_order_scan(o, i, source[i]);
    }
    do {
        PW_CHECK(c->w, sg_crash_order_counts(o)->runs < SG_CRASH_RUNS, "the order never settles");
        open_all(c, source);
        for (unsigned i = 0; i < c->w->hosts; i++) {
            g_array_set_size(c->delivered[i], 0);
        }
        sg_crash_promises_free(c->p);
        c->p =
            sg_crash_promises_new(c->w->hosts, (1u << c->w->hosts) - 1, 1u << SG_CRASH_ACK_FLUSH);
    } while (!sg_crash_order_run(o, source, take, c));
    sg_crash_promises_end(c->p);
    PW_CHECK(c->w, !sg_crash_order_counts(o)->unmatched, "frames from nobody");
    PW_CHECK(c->w, !sg_crash_promise_counts(c->p)->dropped, "promises were dropped");
    sg_crash_order_free(o);
}

/* ---- The comparison ---- */

/* The event of the completion that the writer saw. */
static void find_event(struct promise_check *c, struct known_flush *f)
{
    const GArray *all = c->delivered[c->w->flow[f->flow].from->index];

    for (unsigned i = all->len; i-- > 0 && !f->event;) {
        const struct delivered *d = &g_array_index(all, struct delivered, i);

        if (d->number <= f->seen && d->qpn == f->qpn && d->wr_id == f->wr_id) {
            f->event = d->number;
        }
    }
    PW_CHECK(c->w, f->event, "writer %u: a Flush without completion in the trace", f->flow);
}

static bool covers(const struct known_flush *f, const struct known_placement *x, uint64_t addr)
{
    return f->flow == x->flow && f->connection == x->connection && x->seq < f->seq &&
           addr - f->addr < f->len && addr - x->addr < x->len;
}

/* Is the octet, as placed by this event, promised by a completion up to this one? */
static bool is_promised(struct promise_check *c, const struct known_flush *f,
                        const struct known_placement *x, uint64_t addr)
{
    const struct pw_flow *flow = &c->w->flow[f->flow];
    uint64_t count;
    const struct sg_crash_promise *p = sg_crash_promises_of(c->p, flow->to->index, &count);

    for (; count; count--, p++) {
        const struct sg_crash_range *r = sg_crash_promise_ranges(c->p, p);

        if (p->by != flow->from->index || p->event > f->event || p->from > f->target_seen) {
            continue;
        }
        for (unsigned i = 0; i < p->range_count; i++) {
            if (r[i].placed == x->event && addr - r[i].addr < r[i].len) {
                return true;
            }
        }
    }
    return false;
}

static void check_known(struct promise_check *c, const struct pw_known *known)
{
    for (unsigned i = 0; i < known->flushes->len; i++) {
        struct known_flush *f = &g_array_index(known->flushes, struct known_flush, i);

        find_event(c, f);
        for (unsigned j = 0; j < known->placements->len && !*c->w->failed; j++) {
            const struct known_placement *x =
                &g_array_index(known->placements, struct known_placement, j);
            uint64_t addr = SG_MAX(f->addr, x->addr), last = x->addr + x->len - 1;

            last = SG_MIN(last, f->addr + f->len - 1);
            if (addr <= last && covers(f, x, addr)) {
                PW_CHECK(c->w, is_promised(c, f, x, addr) && is_promised(c, f, x, last),
                         "writer %u: request %" PRIu64 " is not promised by Flush %" PRIu64,
                         f->flow, x->seq, f->seq);
                c->w->sums->promised++;
            }
        }
    }
}

/* Is it known that this octet is promised by a Flush whose completion is this event or earlier? */
static bool is_known(struct promise_check *c, const struct pw_known *known,
                     const struct sg_crash_promise *p, uint64_t placed, uint64_t addr)
{
    for (unsigned j = 0; j < known->placements->len; j++) {
        const struct known_placement *x =
            &g_array_index(known->placements, struct known_placement, j);

        for (unsigned i = 0; x->event == placed && i < known->flushes->len; i++) {
            const struct known_flush *f = &g_array_index(known->flushes, struct known_flush, i);
            const struct pw_flow *flow = &c->w->flow[f->flow];

            if (flow->from->index == p->by && flow->to->index == p->target &&
                f->event <= p->event && covers(f, x, addr)) {
                return true;
            }
        }
    }
    return false;
}

static bool was_seen(struct promise_check *c, const struct pw_known *known,
                     const struct sg_crash_promise *p)
{
    for (unsigned i = 0; i < known->flushes->len; i++) {
        const struct known_flush *f = &g_array_index(known->flushes, struct known_flush, i);

        if (f->event == p->event && c->w->flow[f->flow].from->index == p->by) {
            return true;
        }
    }
    return false;
}

/* What was delivered, but not seen before the requester lost its power, is not known. */
static void check_promises(struct promise_check *c, const struct pw_known *known)
{
    for (unsigned t = 0; t < c->w->hosts; t++) {
        uint64_t count;
        const struct sg_crash_promise *p = sg_crash_promises_of(c->p, t, &count);

        for (; count && !*c->w->failed; count--, p++) {
            const struct sg_crash_range *r = sg_crash_promise_ranges(c->p, p);

            for (unsigned i = 0; i < p->range_count && was_seen(c, known, p); i++) {
                PW_CHECK(c->w,
                         is_known(c, known, p, r[i].placed, r[i].addr) &&
                             is_known(c, known, p, r[i].placed, r[i].addr + r[i].len - 1),
                         "machine %u: a promise of event %" PRIu64 " that nobody made", t,
                         r[i].placed);
                PW_CHECK(c->w, p->from > r[i].placed, "machine %u: a promise too early", t);
            }
        }
    }
}

void pw_promises(struct pw_world *w)
{
    struct promise_check c = { .w = w };

    if (!pw_trace_file(&w->host[0])) {
        return;
    }
    for (unsigned i = 0; i < w->hosts; i++) {
        c.delivered[i] = g_array_new(FALSE, FALSE, sizeof(struct delivered));
    }
    run(&c);
    check_known(&c, known_of(w));
    check_promises(&c, known_of(w));
    sg_crash_promises_free(c.p);
    for (unsigned i = 0; i < w->hosts; i++) {
        g_array_free(c.delivered[i], TRUE);
        sg_trace_reader_free(c.reader[i]);
    }
    g_array_free(w->known->placements, TRUE);
    g_array_free(w->known->flushes, TRUE);
    g_free(w->known);
    w->known = NULL;
}
