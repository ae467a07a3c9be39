/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An impaired link, see impair.h.
 *
 * Waiting frames are in two lists: 'line', in the order of arrival, whose times never decrease,
 * and 'late', the few frames that are to be overtaken.
 */
#include <string.h>

#include <glib.h>

#include "base/prng.h"
#include "impair.h"

#define NS_PER_S 1000000000ull

/* Random choices for a frame; those for a copy of it begin at COPY. */
enum {
    PRNG_LOSS,
    PRNG_DUPLICATE,
    PRNG_CORRUPT,
    PRNG_BIT,
    PRNG_DELAY,
    PRNG_REORDER,
    PRNG_OVERTAKERS,
    PRNG_COPY = 8,
    PRNGS = 16,
};

struct held_frame {
    struct held_frame *next;
    uint64_t number; /* in the order of arrival */
    uint64_t due;
    unsigned overtakers; /* in 'late': how many frames still have to overtake it */
    bool overtaken;
    uint32_t tag;
    size_t len;
    uint8_t octets[];
};

struct sg_impair {
    struct sg_impair_config config;
    struct sg_impair_counters counters;
    struct held_frame *line, **line_end;
    struct held_frame *late;
    unsigned late_count;
    uint64_t octets;    /* of the waiting frames */
    uint64_t number;    /* of the next frame, counted from the seed's beginning */
    uint64_t arrivals;  /* entries of both lists so far */
    uint64_t now;       /* latest time seen */
    uint64_t last_due;  /* of the frame that arrived last */
    uint64_t link_free; /* when the link with a rate has sent everything */
    bool delivering;
};

const char *sg_impair_check(const struct sg_impair_config *c)
{
    const struct {
        const char *name;
        uint64_t value, max;
    } fields[] = {
        { "loss", c->loss, SG_IMPAIR_ALWAYS },
        { "duplicate", c->duplicate, SG_IMPAIR_ALWAYS },
        { "corrupt", c->corrupt, SG_IMPAIR_ALWAYS },
        { "reorder", c->reorder, SG_IMPAIR_ALWAYS },
        { "delay", c->delay, SG_IMPAIR_DELAY_MAX },
        { "jitter", c->jitter, SG_IMPAIR_DELAY_MAX },
        { "rate", c->rate, SG_IMPAIR_RATE_MAX },
        { "queue", c->queue, SG_IMPAIR_QUEUE_MAX },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (fields[i].value > fields[i].max) {
            return fields[i].name;
        }
    }
    return c->rate && c->rate < SG_IMPAIR_RATE_MIN ? "rate" : NULL;
}

struct sg_impair *sg_impair_new(const struct sg_impair_config *config)
{
    struct sg_impair *t;

    if (sg_impair_check(config)) {
        return NULL;
    }
    t = g_new0(struct sg_impair, 1);
    t->config = *config;
    t->line_end = &t->line;
    return t;
}

static void free_list(struct held_frame *f)
{
    struct held_frame *next;

    for (; f; f = next) {
        next = f->next;
        g_free(f);
    }
}

void sg_impair_free(struct sg_impair *t)
{
    if (!t) {
        return;
    }
    g_assert(!t->delivering);
    free_list(t->line);
    free_list(t->late);
    g_free(t);
}

bool sg_impair_set(struct sg_impair *t, const struct sg_impair_config *config)
{
    if (sg_impair_check(config)) {
        return false;
    }
    if (config->seed != t->config.seed) {
        sg_impair_restart(t);
    }
    t->config = *config;
    return true;
}

void sg_impair_restart(struct sg_impair *t)
{
    t->number = 0;
}

/* 64 random bits that depend on the seed, the frame's number and their purpose. */
static uint64_t random_of(const struct sg_impair *t, unsigned what)
{
    uint64_t seed = t->config.seed, state;

    state = sg_prng(&seed) + t->number * PRNGS + what;
    return sg_prng(&state);
}

static bool happens(const struct sg_impair *t, unsigned what, uint32_t millionths)
{
    return (random_of(t, what) >> 32) * SG_IMPAIR_ALWAYS >> 32 < millionths;
}

/* ---- time ---- */

static uint64_t back(uint64_t time, uint64_t by)
{
    return time > by ? time - by : 0;
}

static void follow_clock(struct sg_impair *t, uint64_t now)
{
    struct held_frame *f;
    uint64_t by;

    if (now < t->now) {
        by = t->now - now;
        for (f = t->line; f; f = f->next) {
            f->due = back(f->due, by);
        }
        for (f = t->late; f; f = f->next) {
            f->due = back(f->due, by);
        }
        t->last_due = back(t->last_due, by);
        t->link_free = back(t->link_free, by);
    }
    t->now = now;
}

/* When the link with a rate has sent the frame; false: its queue is full. */
static bool serialise(struct sg_impair *t, size_t len, uint64_t *sent)
{
    uint64_t rate = t->config.rate;
    uint64_t room = t->config.queue ? t->config.queue : SG_IMPAIR_QUEUE_DEFAULT;
    uint64_t busy = t->link_free > t->now ? t->link_free - t->now : 0;

    *sent = t->now;
    if (!rate) {
        return true;
    }
    if (busy && (unsigned __int128)busy * rate / (8 * NS_PER_S) + len > room) {
        return false;
    }
    t->link_free = t->now + busy + (uint64_t)((unsigned __int128)len * 8 * NS_PER_S / rate);
    *sent = t->link_free;
    return true;
}

static uint64_t delay_of(const struct sg_impair *t, unsigned which)
{
    uint64_t low = back(t->config.delay, t->config.jitter);
    uint64_t high = t->config.delay + t->config.jitter;

    return low + random_of(t, which + PRNG_DELAY) % (high - low + 1);
}

/* ---- arriving frames ---- */

static struct held_frame *copy_frame(const struct iovec *iov, unsigned n, size_t len)
{
    struct held_frame *f = g_try_malloc(sizeof(*f) + len);
    size_t at = 0;
    unsigned i;

    if (!f) {
        return NULL;
    }
    memset(f, 0, sizeof(*f));
    for (i = 0; i < n; i++) {
        if (iov[i].iov_len) {
            memcpy(f->octets + at, iov[i].iov_base, iov[i].iov_len);
        }
        at += iov[i].iov_len;
    }
    f->len = len;
    return f;
}

static void turn_bit(const struct sg_impair *t, unsigned which, struct held_frame *f, size_t lead)
{
    uint64_t bit = random_of(t, which + PRNG_BIT) % ((f->len - lead) * 8);

    f->octets[lead + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void enqueue(struct sg_impair *t, unsigned which, struct held_frame *f)
{
    f->number = t->arrivals++;
    t->octets += f->len;
    t->counters.waiting++;
    if (t->late_count < SG_IMPAIR_LATE_MAX && happens(t, which + PRNG_REORDER, t->config.reorder)) {
        f->overtakers = 1 + random_of(t, which + PRNG_OVERTAKERS) % SG_IMPAIR_OVERTAKERS_MAX;
        f->next = t->late;
        t->late = f;
        t->late_count++;
        return;
    }
    *t->line_end = f;
    t->line_end = &f->next;
}

struct arrival {
    const struct iovec *iov;
    unsigned n;
    size_t len, lead;
    uint32_t tag;
};

/*
 * Admits the frame ('which' is 0) or a copy of it (PRNG_COPY).  True: the frame passes at once.  A
 * copy never does, or the caller would have two frames to pass on.
 */
static bool admit(struct sg_impair *t, unsigned which, const struct arrival *a)
{
    bool damaged = a->len > a->lead && happens(t, which + PRNG_CORRUPT, t->config.corrupt);
    uint64_t due;
    struct held_frame *f;

    if (!serialise(t, a->len, &due)) {
        t->counters.dropped++;
        return false;
    }
    due = MAX(due + delay_of(t, which), t->last_due);
    if (which == 0 && due <= t->now && !damaged && !t->counters.waiting && !t->delivering &&
        !happens(t, which + PRNG_REORDER, t->config.reorder)) {
        t->counters.passed++;
        return true;
    }
    if (t->counters.waiting >= SG_IMPAIR_FRAMES_MAX || a->len > SG_IMPAIR_OCTETS_MAX - t->octets ||
        !(f = copy_frame(a->iov, a->n, a->len))) {
        t->counters.overflowed++;
        return false;
    }
    f->due = t->last_due = due;
    f->tag = a->tag;
    if (damaged) {
        turn_bit(t, which, f, a->lead);
        t->counters.corrupted++;
    }
    enqueue(t, which, f);
    return false;
}

bool sg_impair_input(struct sg_impair *t, const struct iovec *iov, unsigned n, size_t lead,
                     uint32_t tag, uint64_t now)
{
    struct arrival a = { .iov = iov, .n = n, .lead = lead, .tag = tag };
    bool at_once = false;
    unsigned i;

    for (i = 0; i < n; i++) {
        a.len += iov[i].iov_len;
    }
    follow_clock(t, now);
    t->counters.frames++;
    if (happens(t, PRNG_LOSS, t->config.loss)) {
        t->counters.lost++;
    } else {
        at_once = admit(t, 0, &a);
        if (happens(t, PRNG_DUPLICATE, t->config.duplicate)) {
            t->counters.duplicated++;
            admit(t, PRNG_COPY, &a);
        }
    }
    t->number++;
    return at_once;
}

/* ---- departing frames ---- */

static uint64_t deadline(const struct held_frame *late)
{
    return late->due + SG_IMPAIR_LATE_NS;
}

/* In 'late': the link that points to the frame that must leave first. */
static struct held_frame **first_late(struct held_frame **list)
{
    struct held_frame **best = list, **p;

    for (p = list; *p; p = &(*p)->next) {
        if (((*p)->overtakers == 0) != ((*best)->overtakers == 0)) {
            best = (*p)->overtakers == 0 ? p : best;
        } else if ((*p)->number < (*best)->number) {
            best = p;
        }
    }
    return best;
}

static uint64_t late_due(const struct held_frame *f)
{
    return f->overtakers ? deadline(f) : f->due;
}

uint64_t sg_impair_next(const struct sg_impair *t)
{
    uint64_t next = t->line ? t->line->due : SG_IMPAIR_NEVER;
    struct held_frame *list = t->late;

    return list ? MIN(next, late_due(*first_late(&list))) : next;
}

static void overtake(struct sg_impair *t, const struct held_frame *passing)
{
    struct held_frame *f;

    for (f = t->late; f; f = f->next) {
        if (passing->number > f->number && f->overtakers) {
            f->overtakers--;
            f->overtaken = true;
        }
    }
}

/* Takes the next frame that is due by 'now' out of its list. */
static struct held_frame *take(struct sg_impair *t, uint64_t now)
{
    struct held_frame *f = t->line, **late = t->late ? first_late(&t->late) : NULL;

    if (late && (!f || late_due(*late) <= f->due)) {
        f = *late;
        if (late_due(f) > now) {
            return NULL;
        }
        *late = f->next;
        t->late_count--;
        return f;
    }
    if (!f || f->due > now) {
        return NULL;
    }
    t->line = f->next;
    if (!t->line) {
        t->line_end = &t->line;
    }
    overtake(t, f);
    return f;
}

static void deliver_until(struct sg_impair *t, uint64_t now, unsigned max,
                          sg_impair_deliver *deliver, void *opaque)
{
    struct held_frame *f;

    if (t->delivering) {
        return;
    }
    t->delivering = true;
    for (; max && (f = take(t, now)); max--) {
        t->octets -= f->len;
        t->counters.waiting--;
        t->counters.passed++;
        t->counters.reordered += f->overtaken;
        deliver(opaque, f->octets, f->len, f->tag);
        g_free(f);
    }
    t->delivering = false;
}

void sg_impair_output(struct sg_impair *t, uint64_t now, unsigned max, sg_impair_deliver *deliver,
                      void *opaque)
{
    if (t->delivering) {
        return;
    }
    follow_clock(t, now);
    deliver_until(t, now, max, deliver, opaque);
}

void sg_impair_flush(struct sg_impair *t, sg_impair_deliver *deliver, void *opaque)
{
    /* Not the frames that 'deliver' adds, or two links could feed each other for ever. */
    deliver_until(t, SG_IMPAIR_NEVER, t->counters.waiting, deliver, opaque);
    t->last_due = t->link_free = t->now;
}

void sg_impair_counters(const struct sg_impair *t, struct sg_impair_counters *out)
{
    *out = t->counters;
}
