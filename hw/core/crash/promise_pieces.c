/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Placements that no promise has yet: in the order of arrival, and by page.
 *
 * A program that places without end and has nothing promised would make them without end, mostly
 * at the same places.  So an old piece is dropped when a newer one covers it and every promise that
 * can still come has the newer one as well: its request has completed, and no Flush is under way.
 * Only a mark that names an old request by its wr_id would promise the old one alone: it is kept
 * for CRASH_RECENT messages.
 */
#include "crash/promise_impl.h"

enum {
    BUCKETS = 1 << 18,
    LOOKS = 64, /* at pieces of a bucket that may cover an old one */
    FIRST_ROOM = 1024,
};

void crash_pieces_init(struct crash_pieces *all)
{
    *all = (struct crash_pieces){ .used = 1, .room = FIRST_ROOM };
    all->all = g_new0(struct crash_piece, all->room);
    all->bucket = g_new0(uint32_t, BUCKETS);
}

void crash_pieces_fini(struct crash_pieces *all)
{
    g_free(all->all);
    g_free(all->bucket);
}

static uint32_t *bucket_of(struct crash_pieces *all, uint32_t end, uint64_t addr)
{
    uint64_t page = addr / CRASH_PAGE;

    /* A page that is behind another one is also there in the table. */
    return &all->bucket[(crash_mix(end + (page >> 8 << 20)) + page) % BUCKETS];
}

/* 0: a limit. */
static uint32_t new_piece(struct crash_pieces *all)
{
    uint32_t n = all->free_head;

    if (all->count == SG_CRASH_PENDING) {
        return 0;
    }
    all->count++;
    if (n) {
        all->free_head = all->all[n].next;
        return n;
    }
    if (all->used == all->room) {
        all->room *= 2;
        all->all = g_renew(struct crash_piece, all->all, all->room);
    }
    return all->used++;
}

/* ---- Lists ---- */

static void list_append(struct crash_pieces *all, struct crash_end *t, enum crash_list list,
                        uint32_t n)
{
    struct crash_piece *x = &all->all[n];

    x->next = 0;
    x->prev = t->tail[list];
    if (x->prev) {
        all->all[x->prev].next = n;
    } else {
        t->head[list] = n;
    }
    t->tail[list] = n;
}

static void list_remove(struct crash_pieces *all, struct crash_end *t, enum crash_list list,
                        uint32_t n)
{
    struct crash_piece *x = &all->all[n];

    *(x->prev ? &all->all[x->prev].next : &t->head[list]) = x->next;
    *(x->next ? &all->all[x->next].prev : &t->tail[list]) = x->prev;
}

static void bucket_push(struct crash_pieces *all, uint32_t n)
{
    struct crash_piece *x = &all->all[n];
    uint32_t *bucket = bucket_of(all, x->end, x->addr);

    x->b_prev = 0;
    x->b_next = *bucket;
    if (x->b_next) {
        all->all[x->b_next].b_prev = n;
    }
    *bucket = n;
}

static void bucket_remove(struct crash_pieces *all, uint32_t n)
{
    struct crash_piece *x = &all->all[n];

    *(x->b_prev ? &all->all[x->b_prev].b_next : bucket_of(all, x->end, x->addr)) = x->b_next;
    if (x->b_next) {
        all->all[x->b_next].b_prev = x->b_prev;
    }
}

static void flushed_append(struct crash_pieces *all, struct crash_end *t, uint32_t n)
{
    struct crash_piece *x = &all->all[n];

    x->b_next = 0;
    x->b_prev = t->tail[LIST_FLUSHED];
    *(x->b_prev ? &all->all[x->b_prev].b_next : &t->head[LIST_FLUSHED]) = n;
    t->tail[LIST_FLUSHED] = n;
}

static void flushed_remove(struct crash_pieces *all, struct crash_end *t, uint32_t n)
{
    struct crash_piece *x = &all->all[n];

    *(x->b_prev ? &all->all[x->b_prev].b_next : &t->head[LIST_FLUSHED]) = x->b_next;
    *(x->b_next ? &all->all[x->b_next].b_prev : &t->tail[LIST_FLUSHED]) = x->b_prev;
}

void crash_piece_free(struct sg_crash_promises *p, struct crash_end *t, uint32_t n)
{
    struct crash_pieces *all = &p->pieces;
    struct crash_piece *x = &all->all[n];

    if (x->flush) {
        flushed_remove(all, t, n);
    } else {
        bucket_remove(all, n);
    }
    if (x->len) {
        enum crash_list list = x->atom ? LIST_ATOMS : LIST_WRITES;

        t->sweep[list] = t->sweep[list] == n ? x->next : t->sweep[list];
        list_remove(all, t, list, n);
    }
    x->next = all->free_head;
    all->free_head = n;
    all->count--;
    t->piece_count--;
}

/* ---- A placement ---- */

static bool covers(const struct crash_piece *a, const struct crash_piece *b)
{
    return a->end == b->end && a->addr <= b->addr && b->addr + b->len <= a->addr + a->len;
}

/* Is there a newer piece that every promise that can still come has as well? */
static bool is_covered(struct crash_pieces *all, const struct crash_end *q,
                       const struct crash_piece *old)
{
    uint32_t n = *bucket_of(all, old->end, old->addr);

    for (unsigned i = 0; n && i < LOOKS; i++, n = all->all[n].b_next) {
        const struct crash_piece *x = &all->all[n];

        if (x->ordinal > old->ordinal && x->ordinal <= q->completed && covers(x, old)) {
            return true;
        }
    }
    return false;
}

/* Looks at the next piece of a list, from the oldest one to those that are too new. */
static void sweep(struct sg_crash_promises *p, struct crash_end *t, enum crash_list list)
{
    const struct crash_end *q = t->peer;
    uint32_t n = t->sweep[list] ? t->sweep[list] : t->head[list];
    const struct crash_piece *x = &p->pieces.all[n];

    if (!n || x->ordinal > q->completed || q->completed - x->ordinal < CRASH_RECENT) {
        t->sweep[list] = 0;
        return;
    }
    t->sweep[list] = x->next;
    if (!x->flush && q->flush_started <= t->flush_done && is_covered(&p->pieces, q, x)) {
        crash_piece_free(p, t, n);
    }
}

static bool placed_in_page(struct sg_crash_promises *p, struct crash_end *t,
                           const struct crash_piece *like)
{
    struct crash_pieces *all = &p->pieces;
    uint32_t n;

    for (unsigned list = LIST_WRITES; list <= LIST_ATOMS; list++) {
        sweep(p, t, list);
        sweep(p, t, list);
    }
    n = new_piece(all);
    if (n) {
        all->all[n] = *like;
        t->piece_count++;
        list_append(all, t, like->atom ? LIST_ATOMS : LIST_WRITES, n);
        bucket_push(all, n);
    }
    return n;
}

void crash_piece_placed(struct sg_crash_promises *p, struct crash_end *t, uint64_t addr,
                        uint64_t len, uint64_t ordinal, uint64_t event, bool atom)
{
    bool room = true;

    while (len && room) {
        struct crash_piece piece = {
            .addr = addr,
            .ordinal = ordinal,
            .placed = event,
            .end = t->number,
            .len = (uint16_t)SG_MIN(len, CRASH_PAGE - addr % CRASH_PAGE),
            .atom = atom,
        };

        room = placed_in_page(p, t, &piece);
        addr += piece.len;
        len -= piece.len;
    }
    p->counts.dropped += !room;
}

/* ---- A Flush ---- */

/* A piece like this one, of [addr, addr + len); in the bucket.  0: a limit. */
static uint32_t split_off(struct crash_pieces *all, uint32_t n, uint64_t addr, uint64_t len,
                          struct crash_end *t)
{
    uint32_t part = new_piece(all), after;
    struct crash_piece *x = &all->all[n];
    enum crash_list list = x->atom ? LIST_ATOMS : LIST_WRITES;

    if (part) {
        t->piece_count++;
        after = x->next;
        all->all[part] = *x;
        all->all[part].addr = addr;
        all->all[part].len = (uint16_t)len;
        all->all[part].prev = n;
        all->all[part].next = after;
        x->next = part;
        *(after ? &all->all[after].prev : &t->tail[list]) = part;
        bucket_push(all, part);
    }
    return part;
}

/* The part of the piece in [from, to) is covered by the Flush that is under way. */
static void flush_piece(struct sg_crash_promises *p, struct crash_end *t, uint32_t n, uint64_t from,
                        uint64_t to)
{
    struct crash_pieces *all = &p->pieces;
    struct crash_piece x = all->all[n];
    uint64_t start = SG_MAX(from, x.addr), end = SG_MIN(to, x.addr + x.len);

    if (start >= end || x.flush || x.ordinal >= t->flush.ordinal || x.placed >= t->flush.event) {
        return;
    }
    if (x.addr < start && !split_off(all, n, x.addr, start - x.addr, t)) {
        p->counts.dropped++;
    }
    if (end < x.addr + x.len && !split_off(all, n, end, x.addr + x.len - end, t)) {
        p->counts.dropped++;
    }
    bucket_remove(all, n);
    all->all[n].addr = start;
    all->all[n].len = (uint16_t)(end - start);
    all->all[n].flush = t->flush.ordinal;
    flushed_append(all, t, n);
}

static void flush_pages(struct sg_crash_promises *p, struct crash_end *t, uint64_t from,
                        uint64_t to)
{
    struct crash_pieces *all = &p->pieces;
    uint64_t last = to > from ? (to - 1) / CRASH_PAGE : 0;
    uint32_t next, n;

    for (uint64_t page = from / CRASH_PAGE; from < to && page <= last; page++) {
        for (n = *bucket_of(all, t->number, page * CRASH_PAGE); n; n = next) {
            if (!crash_step(p, 1)) {
                p->counts.dropped++;
                return;
            }
            next = all->all[n].b_next;
            if (all->all[n].end == t->number && all->all[n].addr / CRASH_PAGE == page) {
                flush_piece(p, t, n, from, to);
            }
        }
    }
}

static void flush_list(struct sg_crash_promises *p, struct crash_end *t, enum crash_list list,
                       uint64_t from, uint64_t to)
{
    uint32_t next;

    for (uint32_t n = t->head[list]; n; n = next) {
        if (!crash_step(p, 1)) {
            p->counts.dropped++;
            return;
        }
        next = p->pieces.all[n].next;
        flush_piece(p, t, n, from, to);
    }
}

void crash_piece_flushed(struct sg_crash_promises *p, struct crash_end *t)
{
    struct crash_pieces *all = &p->pieces;
    uint64_t from = t->flush.addr;
    uint64_t to = from + SG_MIN(t->flush.len, UINT64_MAX - from);
    uint32_t n;

    if ((to - from) / CRASH_PAGE < t->piece_count) {
        flush_pages(p, t, from, to);
    } else {
        flush_list(p, t, LIST_WRITES, from, to);
        flush_list(p, t, LIST_ATOMS, from, to);
    }
    n = new_piece(all); /* the Flush itself */
    if (n) {
        all->all[n] = (struct crash_piece){ .end = t->number, .flush = t->flush.ordinal };
        t->piece_count++;
        flushed_append(all, t, n);
    } else {
        p->counts.dropped++;
    }
}
