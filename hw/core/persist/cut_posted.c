/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * S0 and S1 at a cut.
 *
 * Of each device's S1 a prefix arrives.  Only if that is all of it, what its connections have in S0
 * may have left it at the last moment, behind it: of each connection a prefix, in random order of
 * its pieces any of them, of which the last one may be incomplete.  The queues of several devices,
 * and those of the connections of one, arrive in any order; it matters where they share lines.
 */
#include "persist/cut_impl.h"
#include "persist/segments.h"

/* Data that arrive in their order. */
struct posted_stream {
    struct fifo *from;
    unsigned device;
    bool placed;    /* from S0: begins when the device's S1 has arrived */
    uint32_t atoms; /* that are still to arrive */
};

static void piece_lost(struct cut *c, const struct piece *x, unsigned stage)
{
    sg_dom_cut_lost(
        c, &(struct sg_persist_lost){
               .what = stage == SG_PERSIST_S1 ? SG_PERSIST_CHOICE_POSTED : SG_PERSIST_CHOICE_PLACED,
               .unit = x->source.unit,
               .qpn = x->source.qpn,
               .seq = x->seq,
           });
}

void sg_dom_cut_piece_row(struct cut *c, const struct piece *x, unsigned stage, uint64_t kept)
{
    struct sg_persist_loss row = {
        .addr = x->addr,
        .len = x->len,
        .stage = stage,
        .extent = SG_PERSIST_NO_EXTENT,
        .fate = kept == 0       ? SG_PERSIST_LOST
                : kept < x->len ? SG_PERSIST_PARTLY
                                : SG_PERSIST_KEPT,
        .stores = (x->len + SG_PERSIST_ATOM - 1) / SG_PERSIST_ATOM,
        .stores_kept = kept / SG_PERSIST_ATOM,
        .source = x->source,
        .seq = x->seq,
    };

    c->report->count[stage][SG_PERSIST_KEPT] += kept;
    c->report->count[stage][SG_PERSIST_LOST] += x->len - kept;
    sg_dom_report_add(c->p, c->report, &row, 0);
}

uint32_t sg_dom_atoms_of(const struct piece *x)
{
    return (x->addr + x->len - 1) / SG_PERSIST_ATOM - x->addr / SG_PERSIST_ATOM + 1;
}

uint32_t sg_dom_octets_of(const struct piece *x, uint32_t atoms)
{
    uint64_t end = sg_align_down(x->addr, SG_PERSIST_ATOM) + (uint64_t)atoms * SG_PERSIST_ATOM;

    return atoms ? SG_MIN(end - x->addr, x->len) : 0;
}

/* Rows of a queue, of which so many atoms arrive. */
static void queue_rows(struct cut *c, const struct fifo *f, unsigned stage, uint32_t left)
{
    for (const struct piece *x = f->head; x; x = x->next) {
        uint32_t atoms = SG_MIN(left, sg_dom_atoms_of(x));

        left -= atoms;
        sg_dom_cut_piece_row(c, x, stage, sg_dom_octets_of(x, atoms));
        if (atoms < sg_dom_atoms_of(x)) {
            piece_lost(c, x, stage);
        }
    }
}

/*
 * Atoms of a queue that arrive; for WORST_FOR, all before the first write to the range.  q: what
 * is asked, without the number of alternatives.
 */
static uint32_t prefix(struct cut *c, const struct fifo *f, struct sg_persist_choice q, bool *all)
{
    uint32_t atoms = 0, taken;
    bool clear = true;

    for (const struct piece *x = f->head; x; x = x->next) {
        clear = clear && !sg_dom_cut_in_range(c, x->addr, x->len);
        atoms += sg_dom_atoms_of(x);
        q.worst = clear ? atoms : q.worst;
    }
    q.n = atoms + 1;
    taken = c->domain == SG_PERSIST_WHOLE && q.what == SG_PERSIST_CHOICE_POSTED
                ? atoms
                : sg_dom_cut_ask(c, &q);
    *all = taken == atoms;
    return taken;
}

/* The piece that leaves S0 next, as a number from 1; 0: none does. */
static uint32_t next_piece(struct cut *c, const struct fifo *f, struct sg_persist_choice q)
{
    uint32_t number = 1;

    q.n = f->count + 1;
    for (const struct piece *x = f->head; x && !q.worst; x = x->next, number++) {
        q.worst = sg_dom_cut_in_range(c, x->addr, x->len) ? 0 : number;
    }
    return sg_dom_cut_ask(c, &q);
}

/* The same for a connection whose pieces leave in any order: brings them in that order. */
static uint32_t any_pieces(struct cut *c, struct fifo *f, const struct sg_persist_choice *q)
{
    struct fifo left = { .head = NULL };
    uint32_t atoms = 0, number;
    bool complete = true;

    while (f->head && complete && (number = next_piece(c, f, *q)) != 0) {
        struct sg_persist_choice part = *q;
        struct piece *prev = NULL, *x;

        while (--number) {
            prev = prev ? prev->next : f->head;
        }
        x = sg_dom_fifo_take(f, prev);
        part.n = sg_dom_atoms_of(x);
        part.worst = part.n - 1;
        part.n = 1 + sg_dom_cut_ask(c, &part);
        complete = part.n == sg_dom_atoms_of(x);
        atoms += part.n;
        sg_dom_fifo_push(&left, x);
    }
    while (f->head) {
        sg_dom_fifo_push(&left, sg_dom_fifo_take(f, NULL));
    }
    *f = left;
    return atoms;
}

/* What of a connection's S0 left it at the last moment. */
static uint32_t placed(struct cut *c, struct sg_dom_conn *conn)
{
    const struct sg_persist_choice q = {
        .what = SG_PERSIST_CHOICE_PLACED,
        .unit = conn->device,
        .qpn = conn->qpn,
    };
    bool all;

    return c->p->config.placement_order == SG_PERSIST_RANDOM_ORDER ? any_pieces(c, &conn->s0, &q)
                                                                   : prefix(c, &conn->s0, q, &all);
}

static void add_stream(GArray *streams, const struct posted_stream *s)
{
    if (s->atoms) {
        g_array_append_val(streams, *s);
    }
}

/* Decides how much of each queue arrives. */
static GArray *streams_of(struct cut *c)
{
    GArray *streams = g_array_new(FALSE, FALSE, sizeof(struct posted_stream));
    struct sg_persist *p = c->p;
    uint64_t incomplete = 0;

    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        const struct sg_persist_choice q = { .what = SG_PERSIST_CHOICE_POSTED, .unit = d };
        struct posted_stream s = { .from = &p->s1[d], .device = d };
        bool all = true;

        if (s.from->head) {
            s.atoms = prefix(c, s.from, q, &all);
            queue_rows(c, s.from, SG_PERSIST_S1, s.atoms);
            add_stream(streams, &s);
        }
        incomplete |= (uint64_t)!all << d;
    }
    for (unsigned i = 0; i < p->conn_order->len; i++) {
        struct sg_dom_conn *conn = g_ptr_array_index(p->conn_order, i);
        struct posted_stream s = { .from = &conn->s0, .device = conn->device, .placed = true };

        s.atoms = incomplete >> conn->device & 1 ? 0 : placed(c, conn);
        queue_rows(c, s.from, SG_PERSIST_S0, s.atoms);
        add_stream(streams, &s);
    }
    return streams;
}

/* Do several of them touch one line?  Then their order matters. */
static bool lines_are_shared(const GArray *streams)
{
    GHashTable *owner = g_hash_table_new(g_direct_hash, g_direct_equal);
    bool shared = false;

    for (unsigned i = 0; i < streams->len && streams->len > 1; i++) {
        const struct piece *x = g_array_index(streams, struct posted_stream, i).from->head;

        for (; x; x = x->next) {
            for (uint64_t line = x->addr / SG_PERSIST_LINE;
                 line <= (x->addr + x->len - 1) / SG_PERSIST_LINE; line++) {
                gpointer key = (gpointer)(uintptr_t)line, was = g_hash_table_lookup(owner, key);

                shared |= was && GPOINTER_TO_UINT(was) != i + 1;
                g_hash_table_insert(owner, key, GUINT_TO_POINTER(i + 1));
            }
        }
    }
    g_hash_table_destroy(owner);
    return shared;
}

/* May the next atom of this one arrive now? */
static bool is_ready(const GArray *streams, const struct posted_stream *s)
{
    for (unsigned i = 0; i < streams->len && s->placed; i++) {
        const struct posted_stream *other = &g_array_index(streams, struct posted_stream, i);

        if (!other->placed && other->device == s->device && other->atoms) {
            return false;
        }
    }
    return s->atoms;
}

/* The stream whose next atom arrives; NULL: all has arrived. */
static struct posted_stream *next_stream(struct cut *c, GArray *streams, bool shared)
{
    struct sg_persist_choice q = { .what = SG_PERSIST_CHOICE_ORDER };
    unsigned skip, i = 0;

    for (; i < streams->len; i++) {
        q.n += is_ready(streams, &g_array_index(streams, struct posted_stream, i));
    }
    if (!q.n) {
        return NULL;
    }
    skip = shared ? sg_dom_cut_ask(c, &q) : 0;
    for (i = 0; !is_ready(streams, &g_array_index(streams, struct posted_stream, i)) || skip--;) {
        i++;
    }
    return &g_array_index(streams, struct posted_stream, i);
}

void sg_dom_cut_posted(struct cut *c)
{
    struct posted_stream *s;
    GArray *streams;
    bool shared;

    if (sg_dom_any_order(c->p)) {
        sg_dom_cut_segments(c);
        return;
    }
    streams = streams_of(c);
    shared = lines_are_shared(streams);
    while ((s = next_stream(c, streams, shared)) != NULL) {
        uint32_t atoms = shared ? 1 : SG_MIN(s->atoms, sg_dom_atoms_of(s->from->head));

        sg_dom_arrive(c->p, s->from, sg_dom_octets_of(s->from->head, atoms));
        s->atoms -= atoms;
    }
    g_array_free(streams, TRUE);
}
