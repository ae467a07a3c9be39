/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks, and the work requests that they name by wr_id.
 *
 * Of each machine the last requests are known, by wr_id: those that began, because a request that
 * is not signalled has no completion, and those that completed, because a program may use a wr_id
 * again.  A request without messages completes in its turn: it stands for those before it.
 */
#include "crash/promise_impl.h"
#include "staghorn/io.h"

enum { WAYS = 4 };

/* ---- Requests ---- */

static struct crash_request *bucket_of(struct crash_request *table, uint64_t wr_id)
{
    uint64_t hash = wr_id * 0x9e3779b97f4a7c15ull;

    return &table[(hash >> 32) % (CRASH_REQUESTS / WAYS) * WAYS];
}

/* The newest one; NULL: none. */
static struct crash_request *find(struct crash_request *table, uint64_t wr_id)
{
    struct crash_request *bucket = table ? bucket_of(table, wr_id) : NULL, *found = NULL;

    for (unsigned i = 0; bucket && i < WAYS; i++) {
        if (bucket[i].stamp && bucket[i].wr_id == wr_id &&
            (!found || bucket[i].stamp > found->stamp)) {
            found = &bucket[i];
        }
    }
    return found;
}

/* In the place of the oldest one. */
static void put(struct sg_crash_promises *p, struct crash_request **table,
                const struct crash_end *q, uint64_t wr_id, uint64_t first, uint64_t last)
{
    struct crash_request *bucket, *at;

    if (!*table) {
        *table = g_new0(struct crash_request, CRASH_REQUESTS);
    }
    at = bucket = bucket_of(*table, wr_id);
    for (unsigned i = 1; i < WAYS; i++) {
        at = bucket[i].stamp < at->stamp ? &bucket[i] : at;
    }
    *at = (struct crash_request){
        .wr_id = wr_id,
        .stamp = ++p->machine[q->machine].stamp,
        .first = first,
        .last = last,
        .born = q->born,
        .end = q->number,
    };
}

static bool is_of(const struct crash_request *r, const struct crash_end *q)
{
    return r && r->end == q->number && r->born == q->born;
}

void crash_work(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e)
{
    struct crash_end *q = crash_end_of(p, machine, e->unit, e->qpn);
    struct crash_request **table = &p->machine[machine].started;
    struct crash_request *r;

    if (!q) {
        return;
    }
    q->started = SG_MAX(q->started, e->ordinal);
    if (e->arg == SG_WR_FLUSH) {
        q->flush_started = SG_MAX(q->flush_started, e->ordinal);
    }
    if (!e->ordinal) {
        put(p, table, q, e->value, 0, q->started);
        return;
    }
    r = e->arg == SG_WR_WRITE_IMM ? find(*table, e->value) : NULL;
    if (is_of(r, q) && r->last + 1 == e->ordinal) {
        r->last++; /* the Immediate Data of the same request */
    } else if (p->acks & 1u << SG_CRASH_ACK_ACKNOWLEDGED) {
        put(p, table, q, e->value, e->ordinal, e->ordinal);
    }
}

bool crash_completed_request(struct sg_crash_promises *p, struct crash_end *q,
                             const struct sg_trace_event *e, uint64_t *ordinal)
{
    struct crash_machine *m = &p->machine[q->machine];
    const struct crash_request *r;

    *ordinal = e->ordinal;
    if (!*ordinal) {
        r = find(m->started, e->value);
        *ordinal = is_of(r, q) && !r->first ? r->last : 0;
    } else if (p->acks & 1u << SG_CRASH_ACK_ACKNOWLEDGED) {
        put(p, &m->completed, q, e->value, *ordinal - (e->arg == SG_WC_WRITE_IMM && *ordinal > 1),
            *ordinal);
    }
    return *ordinal;
}

/* ---- The text of a mark ---- */

struct words {
    const uint8_t *at, *end;
    bool bad;
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || !c;
}

static int digit_of(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A number that all the octets are: decimal, or hexadecimal behind 0x. */
static bool number_of(const uint8_t *p, const uint8_t *end, uint64_t *value)
{
    bool hex = end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    unsigned base = hex ? 16 : 10;

    p += hex ? 2 : 0;
    *value = 0;
    if (p == end) {
        return false;
    }
    for (; p < end; p++) {
        int digit = digit_of(*p);

        if (digit < 0 || (unsigned)digit >= base ||
            *value > (UINT64_MAX - (unsigned)digit) / base) {
            return false;
        }
        *value = *value * base + (unsigned)digit;
    }
    return true;
}

/* The next word, NAME=NUMBER, which must have one of these names; returns its number, or -1. */
static int next_word(struct words *w, const char *const names[], uint64_t *value)
{
    const uint8_t *from;
    size_t len;

    while (w->at < w->end && is_blank(*w->at)) {
        w->at++;
    }
    from = w->at;
    while (w->at < w->end && !is_blank(*w->at)) {
        w->at++;
    }
    for (int i = 0; from < w->at && names[i]; i++) {
        len = strlen(names[i]);
        if ((size_t)(w->at - from) > len && memcmp(from, names[i], len) == 0 &&
            number_of(from + len, w->at, value)) {
            return i;
        }
    }
    w->bad |= from < w->at;
    return -1;
}

/* ---- "acknowledged" ---- */

struct mark {
    struct crash_said said;
    uint32_t promise[SG_CRASH_MACHINES]; /* by target */
    uint32_t pieces;
    enum sg_crash_unmatched why; /* if there are none */
};

/* Messages of this end that have completed. */
static void acknowledge(struct sg_crash_promises *p, struct mark *m, struct crash_end *q,
                        uint64_t first, uint64_t last)
{
    struct crash_end *t = q->peer;
    uint32_t *promise;

    if (!t) {
        m->why = SG_CRASH_NO_PEER;
    } else if (!p->machine[t->machine].target) {
        m->why = SG_CRASH_NO_TARGET;
    } else if (m->said.past[t->machine] == SG_CRASH_BEYOND) {
        m->why = SG_CRASH_BEHIND_END;
    } else {
        promise = &m->promise[t->machine];
        m->why = SG_CRASH_NOTHING_PLACED;
        m->pieces += crash_take(p, t, &m->said, first, last, promise);
        crash_expect(p, t, &m->said, first, last, *promise);
    }
}

static void acknowledge_all(struct sg_crash_promises *p, struct mark *m, unsigned machine)
{
    struct crash_end *q;

    while ((q = p->machine[machine].dirty)) {
        crash_end_clean(p, q);
        acknowledge(p, m, q, 1, q->completed);
    }
}

static void acknowledge_qpn(struct sg_crash_promises *p, struct mark *m, unsigned machine,
                            uint64_t qpn)
{
    struct crash_end *q;

    m->why = SG_CRASH_NO_CONNECTION;
    for (unsigned unit = 0; unit < 64 && qpn <= UINT32_MAX; unit++) {
        q = p->machine[machine].units >> unit & 1 ? crash_end_of(p, machine, unit, qpn) : NULL;
        if (q && q->completed) {
            crash_end_clean(p, q);
            acknowledge(p, m, q, 1, q->completed);
        }
    }
}

static void acknowledge_wr_id(struct sg_crash_promises *p, struct mark *m, unsigned machine,
                              uint64_t wr_id)
{
    struct crash_machine *x = &p->machine[machine];
    const struct crash_request *r = find(x->completed, wr_id);
    struct crash_end *q = NULL;

    if (!r) {
        r = find(x->started, wr_id);
    }
    if (r && r->first) {
        q = g_ptr_array_index(p->by_number, r->end);
    }
    if (q && is_of(r, q) && r->last <= q->completed) {
        acknowledge(p, m, q, r->first, r->last);
    } else {
        m->why = SG_CRASH_NO_MESSAGE;
    }
}

static void acknowledged(struct sg_crash_promises *p, struct mark *m, unsigned machine,
                         const struct sg_trace_event *e)
{
    static const char *const names[] = { "wr_id=", "qpn=", NULL };
    const struct words all = { e->data, e->data + e->len, false };
    struct words w = all;
    unsigned count = 0;
    uint64_t value;
    int name;

    while (next_word(&w, names, &value) >= 0) {
        count++;
    }
    m->why = SG_CRASH_NOTHING_PLACED;
    if (w.bad) {
        m->why = SG_CRASH_BAD_MARK;
    } else if (count > CRASH_MARK_WORDS || !crash_step(p, count * CRASH_STEPS)) {
        m->why = SG_CRASH_LIMIT;
    } else if (!count) {
        acknowledge_all(p, m, machine);
    } else {
        for (w = all; (name = next_word(&w, names, &value)) >= 0;) {
            (name ? acknowledge_qpn : acknowledge_wr_id)(p, m, machine, value);
        }
    }
    crash_count(p, SG_CRASH_ACK_ACKNOWLEDGED, m->pieces ? SG_CRASH_UNMATCHED : m->why);
}

/* ---- "durable", "state" ---- */

/* The next range; false: there is none, or it is wrong (w->bad). */
static bool next_range(struct words *w, struct sg_crash_range *range)
{
    static const char *const names[] = { "phys=", "len=", NULL };
    int name = next_word(w, names, &range->addr);

    if (name < 0) {
        return false;
    }
    w->bad |= name != 0 || next_word(w, names, &range->len) != 1 || !range->len ||
              range->len - 1 > UINT64_MAX - range->addr;
    return !w->bad;
}

static void durable(struct sg_crash_promises *p, struct mark *m, unsigned machine,
                    const struct sg_trace_event *e)
{
    const struct words all = { e->data, e->data + e->len, false };
    struct words w = all;
    struct sg_crash_range range = { .placed = e->number };
    unsigned count = 0;

    while (next_range(&w, &range)) {
        count++;
    }
    m->why = !p->machine[machine].target ? SG_CRASH_NO_TARGET
             : w.bad || !count           ? SG_CRASH_BAD_MARK
                                         : SG_CRASH_LIMIT;
    if (m->why == SG_CRASH_LIMIT && count <= CRASH_MARK_WORDS) {
        for (w = all; next_range(&w, &range); m->pieces++) {
            crash_promise_add(p, &m->promise[machine], machine, &m->said, e->number, &range);
        }
    }
    crash_count(p, SG_CRASH_ACK_DURABLE, m->pieces ? SG_CRASH_UNMATCHED : m->why);
}

static void state(struct sg_crash_promises *p, struct mark *m, unsigned machine,
                  const struct sg_trace_event *e)
{
    m->why = SG_CRASH_NO_TARGET;
    for (unsigned t = 0; t < p->machines; t++) {
        uint64_t from = m->said.past[t];

        if (!p->machine[t].target) {
            continue;
        }
        if (from == SG_CRASH_BEYOND) {
            m->why = SG_CRASH_BEHIND_END;
        } else if (!crash_promise_add(p, &m->promise[t], t, &m->said, from, NULL)) {
            m->why = SG_CRASH_LIMIT;
        } else {
            m->pieces++;
        }
    }
    crash_count(p, SG_CRASH_ACK_STATE, m->pieces ? SG_CRASH_UNMATCHED : m->why);
}

void crash_mark(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                const char *name, const uint64_t *past)
{
    typedef void of_kind(struct sg_crash_promises *, struct mark *, unsigned,
                         const struct sg_trace_event *);
    static of_kind *const kinds[SG_CRASH_ACKS] = {
        [SG_CRASH_ACK_ACKNOWLEDGED] = acknowledged,
        [SG_CRASH_ACK_DURABLE] = durable,
        [SG_CRASH_ACK_STATE] = state,
    };
    struct mark m = { .said = { .event = e->number, .past = past, .by = (uint8_t)machine } };

    for (unsigned kind = 0; name && kind < SG_CRASH_ACKS; kind++) {
        if (kinds[kind] && p->acks >> kind & 1 &&
            strcmp(name, sg_crash_ack_name((enum sg_crash_ack)kind)) == 0) {
            m.said.kind = (uint8_t)kind;
            kinds[kind](p, &m, machine, e);
        }
    }
}
