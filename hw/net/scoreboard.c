/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scoreboard of a connection; see scoreboard.h.
 */
#include "scoreboard.h"

#include <stddef.h>

#include "base/account.h"

/* TCP_COST: approximately what lwIP allocates for a segment besides its payload. */
enum { FIRST_ENTRIES = 16, TCP_COST = 256 };

static bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static uint32_t index_of(const struct scoreboard *b, const struct sent_segment *s)
{
    return b->tail + (((uint32_t)(s - b->ring) - b->tail) & b->mask);
}

static uint64_t cost_of_tcp(uint32_t entries)
{
    return entries > FIRST_ENTRIES ? (uint64_t)entries * TCP_COST : 0;
}

static void ring_free(struct scoreboard *b)
{
    uint32_t entries = b->mask + 1;

    if (b->ring) {
        sg_account_give(b->account, cost_of_tcp(entries));
        sg_account_free(b->account, b->ring, entries * sizeof(*b->ring));
    }
}

void scoreboard_free(struct scoreboard *b)
{
    ring_free(b);
    b->ring = NULL;
    b->mask = b->tail = b->head = 0;
}

struct sent_segment *scoreboard_newest(const struct scoreboard *b)
{
    return scoreboard_count(b) ? scoreboard_at(b, b->head - 1) : NULL;
}

static void list_add(struct scoreboard *b, struct sent_segment *s, enum segment_state state,
                     bool first)
{
    struct segment_list *l = &b->list[state];
    uint32_t i = index_of(b, s);

    s->state = (uint8_t)state;
    l->octets += s->end - s->seq;
    if (l->count++ == 0) {
        l->first = l->last = i;
        return;
    }
    if (state == SEGMENT_SACKED) {
        return;
    }
    if (first) {
        s->next = l->first;
        scoreboard_at(b, l->first)->prev = i;
        l->first = i;
    } else {
        s->prev = l->last;
        scoreboard_at(b, l->last)->next = i;
        l->last = i;
    }
}

static void list_remove(struct scoreboard *b, struct sent_segment *s)
{
    struct segment_list *l = &b->list[s->state];
    uint32_t i = index_of(b, s);

    l->octets -= s->end - s->seq;
    l->count--;
    if (s->state == SEGMENT_SACKED || l->count == 0) {
        return;
    }
    if (i == l->first) {
        l->first = s->next;
    } else if (i == l->last) {
        l->last = s->prev;
    } else {
        scoreboard_at(b, s->prev)->next = s->next;
        scoreboard_at(b, s->next)->prev = s->prev;
    }
}

static bool grow(struct scoreboard *b)
{
    uint32_t i, entries = b->ring ? (b->mask + 1) * 2 : FIRST_ENTRIES;
    struct sent_segment *ring;

    if (!sg_account_take(b->account, cost_of_tcp(entries))) {
        return false;
    }
    ring = sg_account_new(b->account, entries * sizeof(*ring));
    if (!ring) {
        sg_account_give(b->account, cost_of_tcp(entries));
        return false;
    }
    for (i = b->tail; i != b->head; i++) {
        ring[i & (entries - 1)] = *scoreboard_at(b, i);
    }
    ring_free(b);
    b->ring = ring;
    b->mask = entries - 1;
    return true;
}

bool scoreboard_reserve(struct scoreboard *b, uint32_t segments)
{
    while (!b->ring || segments > b->mask + 1) {
        if (!grow(b)) {
            return false;
        }
    }
    return true;
}

/* The first segment that does not begin before 'seq'; b->head if there is none. */
static uint32_t find(const struct scoreboard *b, uint32_t seq)
{
    uint32_t low = 0, high = scoreboard_count(b);

    while (low < high) {
        uint32_t mid = (low + high) / 2;

        if (before(scoreboard_at(b, b->tail + mid)->seq, seq)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return b->tail + low;
}

static struct sent_segment *append(struct scoreboard *b)
{
    if (!scoreboard_reserve(b, scoreboard_count(b) + 1)) {
        return NULL;
    }
    return scoreboard_at(b, b->head++);
}

struct sent_segment *scoreboard_sent(struct scoreboard *b, uint32_t seq, uint32_t end, uint64_t now,
                                     void *owner)
{
    const struct sent_segment *newest = scoreboard_newest(b);
    struct sent_segment *s;
    bool again = false;

    if (!newest || !before(seq, newest->end)) {
        s = append(b);
        if (!s) {
            return NULL;
        }
    } else {
        uint32_t i = find(b, seq);

        s = scoreboard_at(b, i);
        if (i == b->head || s->seq != seq || (s->end != end && i + 1 != b->head)) {
            return NULL;
        }
        list_remove(b, s);
        again = true;
    }
    *s = (struct sent_segment){
        .seq = seq,
        .end = end,
        .sent = now,
        .owner = owner,
        .again = again,
        .run = 1,
    };
    list_add(b, s, SEGMENT_IN_FLIGHT, false);
    return s;
}

void scoreboard_ack(struct scoreboard *b, uint32_t ack)
{
    while (b->tail != b->head) {
        struct sent_segment *s = scoreboard_at(b, b->tail);

        if (before(ack, s->end)) {
            return;
        }
        if (s->state != SEGMENT_SACKED) {
            b->delivered(b->user, s);
        }
        list_remove(b, s);
        b->tail++;
    }
}

/* Skips SACKed segments from 'i' on, and shortens the run for later walks. */
static uint32_t pass_over(struct scoreboard *b, uint32_t i)
{
    uint32_t at = i, to = i;

    while (to != b->head && scoreboard_at(b, to)->state == SEGMENT_SACKED) {
        to += scoreboard_at(b, to)->run;
    }
    while (at != to) {
        struct sent_segment *s = scoreboard_at(b, at);

        at += s->run;
        s->run = to - index_of(b, s);
    }
    return to;
}

uint32_t scoreboard_sack(struct scoreboard *b, uint32_t start, uint32_t end)
{
    uint32_t i = find(b, start), octets = 0;

    while ((i = pass_over(b, i)) != b->head) {
        struct sent_segment *s = scoreboard_at(b, i);

        if (before(end, s->end)) {
            break;
        }
        b->delivered(b->user, s);
        list_remove(b, s);
        s->run = 1;
        list_add(b, s, SEGMENT_SACKED, false);
        octets += s->end - s->seq;
        i++;
    }
    pass_over(b, find(b, start));
    return octets;
}

/* The oldest data is sent again first, because all later data waits for it at the peer. */
void scoreboard_lose(struct scoreboard *b, struct sent_segment *s)
{
    const struct sent_segment *first = scoreboard_first(b, SEGMENT_LOST);

    list_remove(b, s);
    list_add(b, s, SEGMENT_LOST, first && before(s->seq, first->seq));
}

void scoreboard_lose_all(struct scoreboard *b)
{
    uint32_t i;

    for (i = b->tail; i != b->head; i++) {
        struct sent_segment *s = scoreboard_at(b, i);

        if (s->state != SEGMENT_SACKED) {
            list_remove(b, s);
            list_add(b, s, SEGMENT_LOST, false);
        }
    }
}

void scoreboard_renege(struct scoreboard *b)
{
    uint32_t i;

    for (i = b->tail; i != b->head; i++) {
        struct sent_segment *s = scoreboard_at(b, i);

        list_remove(b, s);
        s->run = 1;
        list_add(b, s, SEGMENT_LOST, false);
    }
}

void scoreboard_restore(struct scoreboard *b)
{
    struct segment_list *l = &b->list[SEGMENT_LOST];
    uint32_t n = l->count;

    /* The newest first: each goes before those that are in flight, as it was sent before them. */
    while (n--) {
        struct sent_segment *s = scoreboard_at(b, l->last);

        list_remove(b, s);
        list_add(b, s, SEGMENT_IN_FLIGHT, true);
    }
}
