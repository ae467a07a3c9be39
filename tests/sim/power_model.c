/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The oracle for power cuts.
 *
 * It does not know stages.  Each line of an NVDIMM has a base and the list of its later changes, in
 * order of arrival.  A cut must leave a line in one of these states:
 *
 *   ordered     base with the first n changes and the first atoms, ascending, of the next one:
 *               stores of a line persist in order, an atom never tears.  Where only S0 and S1 may
 *               lose, the same holds for all lines of an area together.
 *   unordered   (the adapter places out of order)  octet by octet, base or any of the changes; atom
 *               by atom, if all of them wrote whole atoms there.  Epochs limit the disorder: an
 *               executed Flush, Verify, Read or Atomic Write is between two epochs.
 *
 * An acknowledgement merges earlier changes into the base, so that less is no longer allowed;
 * unordered, it removes older epochs from the octets.  A writer's mere belief is marked, and its
 * loss is counted.
 *
 * Each line belongs to one writer.
 */
#include "power.h"

enum { ATOM = SG_PERSIST_ATOM, LINE = SG_PERSIST_LINE, ATOMS = LINE / ATOM };

static void append(struct pw_line *l, struct pw_frag *f)
{
    if (l->tail) {
        l->tail->next = f;
    } else {
        l->head = f;
    }
    l->tail = f;
}

static void drop_head(struct pw_line *l)
{
    struct pw_frag *f = l->head;

    l->head = f->next;
    if (!l->head) {
        l->tail = NULL;
    }
    g_free(f);
}

static void drop_all(struct pw_line *l)
{
    while (l->head) {
        drop_head(l);
    }
}

void pw_model_free(struct pw_model *m)
{
    unsigned i;

    for (i = 0; i < SG_ARRAY_SIZE(m->line); i++) {
        drop_all(&m->line[i]);
    }
}

void pw_model_store(struct pw_model *m, uint64_t off, const uint8_t *buf, size_t len, uint64_t seq,
                    uint32_t epoch)
{
    while (len) {
        struct pw_frag *f = g_malloc(sizeof(*f));
        unsigned in = off % LINE;
        size_t n = SG_MIN(len, (size_t)(LINE - in));

        f->next = NULL;
        f->order = ++m->order;
        f->seq = seq;
        f->epoch = epoch;
        f->off = (uint8_t)in;
        f->len = (uint8_t)n;
        f->believed = false;
        memcpy(f->data, buf, n);
        append(&m->line[off / LINE], f);
        off += n;
        buf += n;
        len -= n;
    }
}

/* ---- acknowledgements ---- */

static bool covers(const struct pw_frag *f, unsigned octet)
{
    return octet >= f->off && octet < f->off + f->len;
}

/* Does the change touch [lo, hi), and is it of a request before seq? */
static bool meant(const struct pw_frag *f, unsigned lo, unsigned hi, uint64_t seq)
{
    return f->seq < seq && f->off < hi && f->off + f->len > lo;
}

static void ack_ordered(struct pw_line *l, unsigned lo, unsigned hi, uint64_t seq)
{
    struct pw_frag *f, *last = NULL;

    for (f = l->head; f; f = f->next) {
        if (meant(f, lo, hi, seq)) {
            last = f;
        }
    }
    while (last) {
        f = l->head;
        memcpy(l->base + f->off, f->data, f->len);
        l->base_order = f->order;
        if (f == last) {
            last = NULL;
        }
        drop_head(l);
    }
}

static bool outdated(const struct pw_line *l, const struct pw_frag *f)
{
    unsigned i;

    for (i = f->off; i < f->off + f->len; i++) {
        if (f->epoch >= l->floor[i]) {
            return false;
        }
    }
    return true;
}

static void ack_unordered(struct pw_line *l, unsigned lo, unsigned hi, uint64_t seq)
{
    struct pw_frag *f;
    unsigned i;

    for (f = l->head; f; f = f->next) {
        if (!meant(f, lo, hi, seq)) {
            continue;
        }
        for (i = SG_MAX(lo, f->off); i < SG_MIN(hi, (unsigned)(f->off + f->len)); i++) {
            l->floor[i] = SG_MAX(l->floor[i], f->epoch);
        }
    }
    while (l->head && outdated(l, l->head)) {
        drop_head(l);
    }
}

/* Calls for each line of a range; lo and hi: the range's part of it. */
#define FOR_LINES(off, len, i, lo, hi)                                                        \
    for (uint64_t i = (off) / LINE, lo = (off) % LINE, hi;                                    \
         i * LINE < (off) + (len) && (hi = SG_MIN((off) + (len) - i * LINE, (uint64_t)LINE)); \
         i++, lo = 0)

void pw_model_ack(struct pw_model *m, uint64_t off, uint64_t len, uint64_t seq)
{
    FOR_LINES(off, len, i, lo, hi) {
        (m->unordered ? ack_unordered : ack_ordered)(&m->line[i], lo, hi, seq);
    }
}

void pw_model_believe(struct pw_model *m, uint64_t off, uint64_t len, uint64_t seq)
{
    FOR_LINES(off, len, i, lo, hi) {
        struct pw_frag *f;

        for (f = m->line[i].head; f; f = f->next) {
            f->believed |= meant(f, lo, hi, seq);
        }
    }
}

/* ---- judgement, ordered ---- */

/* For the lines of an area: changes up to 'least' are there, changes from 'most' on are not. */
struct prefix {
    uint64_t least, most;
};

/* Which of a line's states its content matches. */
struct match {
    bool any;
    uint64_t least, most;       /* as in struct prefix, of the first and the last match */
    const struct pw_frag *next; /* the change that is incomplete at the last match */
};

static void matched(struct match *x, uint64_t here, uint64_t next, const struct pw_frag *partial)
{
    if (!x->any) {
        x->least = here;
    }
    x->any = true;
    x->most = next;
    x->next = partial;
}

static bool same_atom(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, ATOM) == 0;
}

/* The atoms, one bit each, where the state differs from the present content. */
static unsigned differences(const uint8_t *state, const uint8_t *now)
{
    unsigned i, differs = 0;

    for (i = 0; i < ATOMS; i++) {
        differs |= (unsigned)!same_atom(state + i * ATOM, now + i * ATOM) << i;
    }
    return differs;
}

/* Walks through the states of a line. */
static struct match walk(const struct pw_line *l, const uint8_t *now)
{
    struct match x = { .any = false };
    unsigned differs = differences(l->base, now);
    const struct pw_frag *f;
    uint8_t state[LINE];

    if (!differs) {
        matched(&x, l->base_order, l->head ? l->head->order : UINT64_MAX, l->head);
    }
    memcpy(state, l->base, LINE);
    for (f = l->head; f; f = f->next) {
        unsigned at = f->off, end = f->off + f->len;

        while (at < end) {
            unsigned atom = at / ATOM, n = SG_MIN(end - at, ATOM - at % ATOM);

            memcpy(state + at, f->data + (at - f->off), n);
            at += n;
            differs &= ~(1u << atom);
            differs |= (unsigned)!same_atom(state + atom * ATOM, now + atom * ATOM) << atom;
            if (differs) {
                continue;
            }
            if (at < end) {
                matched(&x, f->order, f->order + 1, f);
            } else {
                matched(&x, f->order, f->next ? f->next->order : UINT64_MAX, f->next);
            }
        }
    }
    return x;
}

static void judge_ordered(const struct pw_line *l, const uint8_t *now, struct prefix *p,
                          struct pw_verdict *v)
{
    struct match x = walk(l, now);
    const struct pw_frag *f;

    if (!x.any) {
        v->wrong = "an acknowledged octet is lost, an atom is torn, or stores are out of order";
        return;
    }
    p->least = SG_MAX(p->least, x.least);
    p->most = SG_MIN(p->most, x.most);
    for (f = x.next; f; f = f->next) {
        v->believed_lost |= f->believed;
    }
    v->dropped += x.next != NULL;
}

/* ---- judgement, unordered ---- */

static bool octet_allowed(const struct pw_line *l, unsigned i, uint8_t now, bool *believed_lost)
{
    uint32_t found = 0, believed = 0;
    bool any = l->floor[i] == 0 && l->base[i] == now;
    const struct pw_frag *f;

    for (f = l->head; f; f = f->next) {
        if (!covers(f, i) || f->epoch < l->floor[i]) {
            continue;
        }
        if (f->data[i - f->off] == now) {
            any = true;
            found = SG_MAX(found, f->epoch);
        }
        if (f->believed) {
            believed = SG_MAX(believed, f->epoch);
        }
    }
    *believed_lost |= found < believed;
    return any;
}

/* An atom that was only ever written as a whole. */
static bool atom_torn(const struct pw_line *l, unsigned at, const uint8_t *now)
{
    bool equal = memcmp(l->base + at, now, ATOM) == 0;
    const struct pw_frag *f;

    for (f = l->head; f; f = f->next) {
        bool low = covers(f, at), high = covers(f, at + ATOM - 1);

        if (f->off + f->len <= (int)at || f->off >= at + ATOM) {
            continue;
        }
        if (!low || !high) {
            return false;
        }
        equal |= memcmp(f->data + (at - f->off), now, ATOM) == 0;
    }
    return !equal;
}

static void judge_unordered(const struct pw_line *l, const uint8_t *now, struct pw_verdict *v)
{
    unsigned i;

    if (!l->head && memcmp(l->base, now, LINE) == 0) {
        return;
    }
    for (i = 0; i < LINE; i++) {
        if (!octet_allowed(l, i, now[i], &v->believed_lost)) {
            v->wrong = "an acknowledged octet is lost, or is none that was written";
        }
    }
    for (i = 0; i < LINE && !v->wrong; i += ATOM) {
        if (atom_torn(l, i, now + i)) {
            v->wrong = "an atom is torn";
        }
    }
    v->dropped += l->tail && memcmp(now + l->tail->off, l->tail->data, l->tail->len) != 0;
}

void pw_model_judge(const struct pw_model *m, const uint8_t *now, uint64_t off, uint64_t len,
                    bool fifo, struct pw_verdict *v)
{
    struct prefix p = { .least = 0, .most = UINT64_MAX };
    uint64_t at;

    for (at = 0; at < len && !v->wrong; at += LINE) {
        const struct pw_line *l = &m->line[(off + at) / LINE];

        v->off = off + at;
        if (m->unordered) {
            judge_unordered(l, now + at, v);
        } else {
            judge_ordered(l, now + at, &p, v);
        }
    }
    if (!v->wrong && fifo && !m->unordered && p.least >= p.most) {
        v->wrong = "what survived of the adapter's queues is not a prefix";
    }
}

void pw_model_rebase(struct pw_model *m, const uint8_t *now, uint64_t off, uint64_t len)
{
    uint64_t at;

    for (at = 0; at < len; at += LINE) {
        struct pw_line *l = &m->line[(off + at) / LINE];

        drop_all(l);
        memcpy(l->base, now + at, LINE);
        memset(l->floor, 0, sizeof(l->floor));
        l->base_order = 0;
    }
}
