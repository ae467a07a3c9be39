/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "random_trace.h"

#include <string.h>

#include "base/host.h"
#include "persist/persist.h"

enum { EVENTS = 9, MIXED = 6 };

static uint64_t rng;

static unsigned below(unsigned n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (rng >> 11) % n;
}

/* Mostly the first two atoms; now and then the end of a line and the next one. */
static unsigned place(void)
{
    switch (below(8)) {
    case 0:
        return GT_LINE - 2 + below(3);
    case 1:
        return GT_LINE + below(3);
    default:
        return below(5);
    }
}

static struct gt_event dma_event(const struct gt_trace *t)
{
    struct gt_event e = { .kind = GT_WRITE, .who = below(6) == 0, .at = place() };

    e.units = 1 + below(4);
    switch (below(t->s0 || t->s1 ? 14 : 11)) {
    case 0:
        e.kind = GT_FLUSH;
        e.how = 1 + below(3);
        break;
    case 1:
        e.kind = GT_READ;
        break;
    case 2:
        e.kind = GT_OTHER;
        e.units = 2 - e.at % 2;
        e.who = 0;
        break;
    case 3:
        e.kind = GT_ATOM;
        break;
    case 4:
        e.kind = GT_SWAP;
        e.how = below(3) == 0;
        break;
    case 11:
        e.kind = GT_SETTLE;
        break;
    case 12:
    case 13:
        e.kind = GT_FENCE_DEVICE;
        break;
    }
    if (e.kind == GT_WRITE && below(16) == 0) {
        e.at = 0; /* a line as a whole; the live model merges the third */
        e.units = GT_LINE;
    }
    if (t->reorder && t->exact == GT_LIVE &&
        (e.kind == GT_FLUSH || e.kind == GT_ATOM || e.kind == GT_SETTLE)) {
        e.kind = GT_WRITE; /* only the model knows in which order it settles */
        e.how = 0;
    }
    e.conn = e.kind != GT_OTHER && below(4) == 0;
    if (e.kind == GT_ATOM || e.kind == GT_SWAP) {
        e.at &= ~1;
        e.units = 2;
    }
    return e;
}

static struct gt_event cpu_event(void)
{
    struct gt_event e = { .kind = GT_STORE, .who = below(5) == 0, .at = place() };

    e.units = 1 + below(3);
    switch (below(12)) {
    case 10:
    case 11:
        e.kind = GT_LOAD;
        break;
    case 0:
    case 1:
        e.kind = GT_CPU_FENCE;
        e.how = below(SG_PERSIST_CPU_FENCES);
        break;
    case 2:
    case 3:
        e.kind = GT_CPU_FLUSH;
        e.units = 1;
        e.how = below(SG_PERSIST_CPU_FLUSHES);
        break;
    case 4:
    case 5:
    case 6:
        e.kind = GT_STORE_NT;
        break;
    }
    return e;
}

static void fill(struct gt_trace *t, unsigned who, enum gt_report report)
{
    for (unsigned i = 0, lines = 0; i < t->count; i++) {
        bool cpu = who == 1 || (who == 0 && below(2));
        struct gt_event *e = &t->event[i];

        *e = cpu ? cpu_event() : dma_event(t);
        if (below(24) == 0) {
            e->kind = below(2) ? GT_SYNC : GT_DEEP_FLUSH;
            e->who = 0;
        }
        e->value = below(8) ? i + 1 : 0;
        if (e->kind == GT_STORE || e->kind == GT_STORE_NT) {
            e->how = report;
        }
        lines += e->units == GT_LINE;
        if (e->units == GT_LINE && lines > (t->exact ? 4 : 2)) {
            e->units = 2;
        }
    }
}

void gt_random_trace(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    rng = seed * 0x9e3779b97f4a7c15ull + 1;
    *t = (struct gt_trace){
        .domain = below(SG_PERSIST_DOMAINS),
        .ddio = below(4) > 0,
        .s0 = below(4) == 0,
        .s1 = below(3) == 0,
        .store_buffer = below(3) == 0,
        .count = 2 + below(EVENTS - 1),
    };
    t->reorder = t->s0 && below(3) == 0;
    t->exact = report == GT_TOLD_AFTER ? GT_LIVE : below(GT_EXACTS);
    fill(t, who, report);
}

void gt_random_segments(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    rng = seed * 0x9e3779b97f4a7c15ull + 1;
    *t = (struct gt_trace){
        .domain = below(SG_PERSIST_DOMAINS),
        .ddio = below(4) > 0,
        .s0 = true,
        .s1 = below(4) > 0,
        .store_buffer = below(3) == 0,
        .count = 2 + below(EVENTS - 2),
        .reorder = true,
        .exact = 1 + below(GT_EXACTS - 1),
    };
    fill(t, who, report);
}

static struct gt_event racing_event(enum gt_report report)
{
    struct gt_event e = {
        .kind = GT_WRITE, .who = below(4) == 0, .conn = below(2), .at = below(3)
    };

    e.units = 1 + below(3);
    switch (below(9)) {
    case 0:
    case 1:
    case 2:
        e.kind = GT_FLUSH;
        e.at = 0;
        e.units = 6;
        e.how = SG_FLUSH_PERSISTENT;
        break;
    case 3:
        e.kind = GT_SETTLE;
        break;
    case 4:
        e.kind = GT_FENCE_DEVICE;
        break;
    case 5:
        e.kind = GT_STORE;
        e.conn = 0;
        e.how = report;
        break;
    case 6:
        e.kind = GT_LOAD;
        e.conn = 0;
        break;
    }
    return e;
}

void gt_random_races(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    (void)who;
    rng = seed * 0x9e3779b97f4a7c15ull + 1;
    *t = (struct gt_trace){
        .domain = below(SG_PERSIST_DOMAINS),
        .ddio = below(4) > 0,
        .s0 = true,
        .s1 = below(4) > 0,
        .count = 3 + below(EVENTS - 3),
        .reorder = below(2),
        .exact = 1 + below(GT_EXACTS - 1),
    };
    for (unsigned i = 0; i < t->count; i++) {
        t->event[i] = racing_event(report);
        t->event[i].value = i + 1;
    }
}

/* Where the lines meet, so that a segment has something for both, or in one of them. */
static struct gt_event shared_event(enum gt_report report)
{
    struct gt_event e = { .kind = GT_WRITE, .who = below(3) == 0, .conn = below(2) };

    e.at = GT_LINE - 4 + below(6);
    e.units = 1 + below(e.at < GT_LINE ? 6 : 3);
    switch (below(10)) {
    case 0:
        e.kind = GT_FLUSH;
        e.how = 1 + below(3);
        break;
    case 1:
        e.kind = GT_SETTLE;
        break;
    case 2:
    case 3:
        e.kind = GT_FENCE_DEVICE;
        break;
    case 4:
        e = cpu_event();
        e.at = GT_LINE - 2 + below(4);
        e.how = e.kind == GT_STORE || e.kind == GT_STORE_NT ? report : e.how;
        break;
    }
    return e;
}

void gt_random_shared(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    gt_random_segments(t, 3 * seed + who, 2, report);
    for (unsigned i = 0; i < t->count; i++) {
        t->event[i] = shared_event(report);
        t->event[i].value = i + 1;
    }
}

/* Only the first segment for a line stays; others become stores of CPUs. */
static void one_segment_per_line(struct gt_trace *t)
{
    bool used[GT_LINES] = { false };

    for (unsigned i = 0; i < t->count; i++) {
        struct gt_event *e = &t->event[i];
        unsigned first = e->at / GT_LINE, last = (e->at + e->units - 1) / GT_LINE;

        if (e->kind != GT_WRITE && e->kind != GT_ATOM) {
            continue;
        }
        if (used[first] || used[last]) {
            *e = (struct gt_event){
                .kind = below(2) ? GT_STORE : GT_STORE_NT,
                .who = below(4) == 0,
                .at = first * GT_LINE + below(GT_LINE - 1),
                .units = 1 + below(2),
                .value = e->value,
                .how = GT_TOLD_BOTH,
            };
        }
        used[first] = used[last] = true;
    }
}

void gt_random_mixed(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    gt_random_segments(t, 3 * seed + who, 0, report);
    t->count = t->count > MIXED ? MIXED : t->count;
    for (unsigned i = 0; i < t->count; i++) {
        struct gt_event *e = &t->event[i];

        if (e->kind == GT_LOAD || e->kind == GT_READ) {
            *e = cpu_event();
            e->value = i + 1;
            e->how = e->kind == GT_STORE || e->kind == GT_STORE_NT ? report : e->how;
        }
        if (e->kind == GT_WRITE && below(2)) {
            e->units += below(4);
        }
        if (e->at + e->units > GT_LINE && below(2)) {
            e->at = e->at % GT_LINE;
            e->units = e->units > GT_WORLD - e->at ? GT_WORLD - e->at : e->units;
        }
    }
    one_segment_per_line(t);
}

void gt_random_bad(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    static const uint8_t kinds[] = {
        GT_POISON, GT_POISON, GT_POISON, GT_UNCORRECTABLE, GT_UNCORRECTABLE, GT_CLEAR_BAD,
    };

    gt_random_trace(t, seed, who, report);
    for (unsigned n = 1 + below(2); n; n--) {
        unsigned i = below(t->count + 1);
        struct gt_event e = { .kind = kinds[below(sizeof(kinds))] };

        e.at = place() / 2 * 2;
        e.units = below(6) ? 1 : GT_LINE;
        e.at = e.units > 1 ? GT_LINE / 2 : e.at; /* both lines */
        memmove(&t->event[i + 1], &t->event[i], (t->count - i) * sizeof(e));
        t->event[i] = e;
        t->count++;
    }
    for (unsigned i = 0; i < t->count; i++) {
        t->event[i].value = i + 1;
        if (t->event[i].kind == GT_FLUSH && below(2)) { /* of both lines */
            t->event[i].at = GT_LINE / 2;
            t->event[i].units = GT_LINE;
        }
    }
}
