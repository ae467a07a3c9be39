/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The impaired link: how often each impairment happens, replay of a seed, order, bounds, and
 * settings out of range.  The n-th frame carries the number n.
 */
#include <string.h>

#include <glib.h>

#include "tap.h"
#include "base/bytes.h"
#include "impair.h"

enum { MS = 1000000, FRAME = 100, MANY = 50000, TURN = 64 };

struct sink {
    struct sg_impair *t;
    uint64_t now;
    uint32_t *numbers;
    uint64_t *times;
    uint64_t hash;
    size_t count, room, damaged, short_ones;
    uint32_t tag;
};

static void took(void *opaque, const uint8_t *frame, size_t len, uint32_t tag)
{
    struct sink *s = opaque;
    unsigned bits = 0;
    size_t i;

    for (i = 4; i < len; i++) {
        bits += (unsigned)__builtin_popcount(frame[i] ^ 0x5a);
    }
    s->damaged += bits != 0;
    T_TRUE(bits <= 1);
    T_TRUE(s->count < s->room);
    s->numbers[s->count] = sg_get_be32(frame);
    s->times[s->count] = s->now;
    s->hash = (s->hash ^ sg_get_be32(frame) ^ (s->now << 20) ^ len) * 0x100000001b3ull;
    s->tag = tag;
    s->count++;
}

static void sink_init(struct sink *s, const struct sg_impair_config *c, size_t room)
{
    memset(s, 0, sizeof(*s));
    s->t = sg_impair_new(c);
    T_NOT_NULL(s->t);
    s->room = room;
    s->numbers = g_new0(uint32_t, room);
    s->times = g_new0(uint64_t, room);
}

static void sink_free(struct sink *s)
{
    sg_impair_free(s->t);
    g_free(s->numbers);
    g_free(s->times);
}

static void input(struct sink *s, uint32_t number, size_t len)
{
    uint8_t frame[2000];
    struct iovec iov[] = { { frame, 4 }, { NULL, 0 }, { frame + 4, len - 4 } };

    memset(frame, 0x5a, sizeof(frame));
    sg_put_be32(frame, number);
    if (sg_impair_input(s->t, iov, 3, 4, number ^ 7, s->now)) {
        took(s, frame, len, number ^ 7);
    }
}

/* Lets the time pass until 'end', stopping at each instant at which something is due. */
static void run_until(struct sink *s, uint64_t end)
{
    uint64_t next;

    while ((next = sg_impair_next(s->t)) <= end) {
        s->now = MAX(s->now, next);
        sg_impair_output(s->t, s->now, TURN, took, s);
    }
    s->now = end;
}

static void balance(const struct sink *s, struct sg_impair_counters *c)
{
    sg_impair_counters(s->t, c);
    T_EQ_U64(c->frames + c->duplicated,
             c->passed + c->lost + c->dropped + c->overflowed + c->waiting);
    T_EQ_U64(c->passed, s->count);
}

/* Sends 'count' frames, one each 'gap' ns, and then runs until none waits. */
static void traffic(struct sink *s, unsigned count, uint64_t gap, struct sg_impair_counters *c)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        input(s, i, FRAME);
        run_until(s, s->now + gap);
    }
    run_until(s, s->now + 2 * SG_IMPAIR_DELAY_MAX);
    balance(s, c);
    T_EQ_U64(c->waiting, 0);
}

static void as_it_is(void)
{
    struct sg_impair_config config = { .seed = 1 };
    struct sg_impair_counters c;
    struct sink s;
    unsigned i;

    sink_init(&s, &config, 1000);
    for (i = 0; i < 1000; i++) {
        input(&s, i, FRAME);
        T_EQ_U64(s.count, i + 1);
        T_EQ_U64(sg_impair_next(s.t), SG_IMPAIR_NEVER);
        T_EQ_U64(s.tag, i ^ 7);
    }
    balance(&s, &c);
    T_EQ_U64(c.passed, 1000);
    T_EQ_U64(s.damaged, 0);
    sink_free(&s);
}

/* Within five standard deviations of the binomial distribution. */
static void about(uint64_t got, uint64_t trials, uint32_t millionths)
{
    double p = millionths / 1e6, mean = trials * p, variance = mean * (1 - p);
    double off = (double)got - mean;

    T_CONTEXT("%" PRIu64 " of %" PRIu64 " at %u millionths", got, trials, millionths);
    T_TRUE(off * off <= 25 * variance);
}

static void as_often_as_said(void)
{
    static const uint32_t odds[] = { 0, 100, 1000, 10000, 50000, 500000, 999999, SG_IMPAIR_ALWAYS };
    struct sg_impair_counters c;
    unsigned i, seed;
    struct sink s;

    for (i = 0; i < G_N_ELEMENTS(odds); i++) {
        for (seed = 0; seed < 3; seed++) {
            struct sg_impair_config config = {
                .seed = seed,
                .duplicate = odds[i],
                .corrupt = odds[i],
                .loss = odds[i] / 2,
            };

            sink_init(&s, &config, 2 * MANY);
            traffic(&s, MANY, 1000, &c);
            about(c.lost, MANY, odds[i] / 2);
            about(c.duplicated, MANY - c.lost, odds[i]);
            about(c.corrupted, MANY - c.lost + c.duplicated, odds[i]);
            T_EQ_U64(s.damaged, c.corrupted);
            T_EQ_U64(c.reordered, 0);
            sink_free(&s);
        }
    }
}

/* Losses of neighbouring frames are independent. */
static void independent(void)
{
    struct sg_impair_config config = { .seed = 3, .loss = 100000 };
    struct sg_impair_counters c;
    uint64_t pairs = 0, i, gaps = 0;
    struct sink s;

    sink_init(&s, &config, MANY);
    traffic(&s, MANY, 0, &c);
    for (i = 1; i < s.count; i++) {
        gaps += s.numbers[i] > s.numbers[i - 1] + 1;
        pairs += s.numbers[i] > s.numbers[i - 1] + 2;
    }
    about(pairs, gaps, 100000);
    sink_free(&s);
}

static const struct sg_impair_config everything = {
    .loss = 10000,
    .duplicate = 20000,
    .corrupt = 15000,
    .reorder = 30000,
    .delay = 5 * MS,
    .jitter = MS,
    .rate = 100000000,
    .seed = 42,
};

static uint64_t fate(const struct sg_impair_config *config, unsigned frames)
{
    struct sg_impair_counters c;
    struct sink s;
    uint64_t hash;

    sink_init(&s, config, 2 * frames);
    traffic(&s, frames, 20000, &c);
    hash = s.hash;
    sink_free(&s);
    return hash;
}

static void replays(void)
{
    struct sg_impair_config other = everything;
    struct sg_impair_counters c;
    struct sink s;
    uint64_t first;
    size_t half;

    T_EQ_U64(fate(&everything, 20000), fate(&everything, 20000));
    other.seed++;
    T_TRUE(fate(&everything, 20000) != fate(&other, 20000));

    /* Again from the first frame, in the same link. */
    other = (struct sg_impair_config){ .loss = 300000, .seed = 9 };
    sink_init(&s, &other, 2000);
    traffic(&s, 1000, 0, &c);
    half = s.count;
    first = s.hash;
    s.hash = 0;
    s.now = 0;
    sg_impair_restart(s.t);
    traffic(&s, 1000, 0, &c);
    T_EQ_U64(s.count, 2 * half);
    T_EQ_MEM(s.numbers, s.numbers + half, half * sizeof(*s.numbers));
    T_TRUE(first != 0);
    sink_free(&s);
}

/* Which frames are lost does not depend on the other impairments. */
static void separate(void)
{
    struct sg_impair_config plain = { .loss = 50000, .seed = 5 }, more = everything;
    struct sg_impair_counters c;
    struct sink a, b;
    bool *seen = g_new0(bool, 5000);
    unsigned i, count = 0;

    more.loss = plain.loss;
    more.seed = plain.seed;
    sink_init(&a, &plain, 5000);
    sink_init(&b, &more, 10000);
    traffic(&a, 5000, 50000, &c);
    traffic(&b, 5000, 50000, &c);
    T_EQ_U64(c.dropped, 0);
    for (i = 0; i < b.count; i++) {
        count += !seen[b.numbers[i]];
        seen[b.numbers[i]] = true;
    }
    T_EQ_U64(count, a.count);
    for (i = 0; i < a.count; i++) {
        T_TRUE(seen[a.numbers[i]]);
    }
    sink_free(&a);
    sink_free(&b);
    g_free(seen);
}

static void delayed_in_order(void)
{
    struct sg_impair_config config = {
        .delay = 5 * MS,
        .jitter = 2 * MS,
        .duplicate = 100000,
        .seed = 6,
    };
    static const uint64_t gaps[] = { 100000, 10 * MS };
    struct sg_impair_counters c;
    struct sink s;
    unsigned i, k;

    for (k = 0; k < G_N_ELEMENTS(gaps); k++) {
        uint64_t least = UINT64_MAX, most = 0;

        sink_init(&s, &config, 20000);
        traffic(&s, 10000, gaps[k], &c);
        for (i = 0; i < s.count; i++) {
            uint64_t took_ns = s.times[i] - s.numbers[i] * gaps[k];

            T_TRUE(i == 0 || s.numbers[i] >= s.numbers[i - 1]);
            least = MIN(least, took_ns);
            most = MAX(most, took_ns);
        }
        T_TRUE(least >= 3 * MS && most <= 7 * MS);
        T_TRUE(most > 6.9 * MS);
        /* Frames close to each other wait for each other, those far apart do not. */
        T_TRUE(k == 0 || least < 3.1 * MS);
        T_EQ_U64(c.reordered, 0);
        sink_free(&s);
    }

    /* A jitter larger than the delay does not make a frame leave before it came. */
    config = (struct sg_impair_config){ .delay = 10, .jitter = 1000, .seed = 6 };
    sink_init(&s, &config, 1000);
    traffic(&s, 1000, 5000, &c);
    for (i = 0; i < 1000; i++) {
        T_TRUE(s.times[i] - i * 5000ull <= 1010);
    }
    sink_free(&s);
}

static void reordered(void)
{
    struct sg_impair_config config = { .reorder = 10000, .seed = 8 };
    unsigned i, late = 0, furthest = 0;
    struct sg_impair_counters c;
    uint32_t highest = 0;
    struct sink s;

    sink_init(&s, &config, MANY);
    traffic(&s, MANY, 100000, &c);
    T_EQ_U64(s.count, MANY);
    for (i = 0; i < s.count; i++) {
        if (s.numbers[i] < highest) {
            late++;
            furthest = MAX(furthest, highest - s.numbers[i]);
        }
        highest = MAX(highest, s.numbers[i]);
    }
    T_EQ_U64(late, c.reordered);
    about(late, MANY, 10000);
    /* Three pass a frame; one or two of those that it overtakes may be late themselves. */
    T_TRUE(furthest >= SG_IMPAIR_OVERTAKERS_MAX && furthest <= 2 * SG_IMPAIR_OVERTAKERS_MAX);
    sink_free(&s);

    /* No frame overtakes it: it leaves in the end. */
    config.reorder = SG_IMPAIR_ALWAYS;
    sink_init(&s, &config, 2);
    input(&s, 0, FRAME);
    T_EQ_U64(s.count, 0);
    T_EQ_U64(sg_impair_next(s.t), SG_IMPAIR_LATE_NS);
    run_until(&s, SG_IMPAIR_LATE_NS - 1);
    T_EQ_U64(s.count, 0);
    run_until(&s, SG_IMPAIR_LATE_NS);
    T_EQ_U64(s.count, 1);
    balance(&s, &c);
    T_EQ_U64(c.reordered, 0);
    sink_free(&s);
}

static void at_a_rate(void)
{
    /* 100 octets at 1 Mbit/s are 800 us; 1000 octets wait behind the one being sent. */
    struct sg_impair_config config = { .rate = 1000000, .queue = 1100, .delay = MS, .seed = 1 };
    struct sg_impair_counters c;
    struct sink s;
    unsigned i;

    sink_init(&s, &config, 30);
    for (i = 0; i < 30; i++) {
        input(&s, i, FRAME);
    }
    sg_impair_counters(s.t, &c);
    T_EQ_U64(c.dropped, 30 - 11);
    run_until(&s, 1000 * MS);
    T_EQ_U64(s.count, 11);
    for (i = 0; i < 11; i++) {
        T_EQ_U64(s.numbers[i], i);
        T_EQ_U64(s.times[i], MS + (i + 1) * 800000ull);
    }
    /* An idle link takes a frame larger than its queue. */
    input(&s, 99, 2000);
    run_until(&s, 2000 * MS);
    T_EQ_U64(s.count, 12);
    balance(&s, &c);
    sink_free(&s);
}

/* A slow consumer: at most 'max' frames a call, and then the rest. */
static void in_turns(void)
{
    struct sg_impair_config config = { .delay = MS, .seed = 1 };
    struct sink s;
    unsigned i;

    sink_init(&s, &config, 100);
    for (i = 0; i < 100; i++) {
        input(&s, i, FRAME);
    }
    s.now = MS;
    for (i = 10; i <= 100; i += 10) {
        T_EQ_U64(sg_impair_next(s.t), MS);
        sg_impair_output(s.t, s.now, 10, took, &s);
        T_EQ_U64(s.count, i);
    }
    T_EQ_U64(sg_impair_next(s.t), SG_IMPAIR_NEVER);
    sink_free(&s);
}

static void bounded(void)
{
    struct sg_impair_config config = {
        .delay = SG_IMPAIR_DELAY_MAX,
        .seed = 1,
        .duplicate = SG_IMPAIR_ALWAYS,
    };
    uint64_t large = 64 << 10;
    struct sg_impair_counters c;
    uint8_t *frame = g_malloc0(large);
    struct iovec iov = { frame, large };
    struct sink s;
    unsigned i;

    sink_init(&s, &config, 2 * SG_IMPAIR_FRAMES_MAX);
    for (i = 0; i < SG_IMPAIR_FRAMES_MAX; i++) {
        input(&s, i, 10);
    }
    sg_impair_counters(s.t, &c);
    T_EQ_U64(c.waiting, SG_IMPAIR_FRAMES_MAX);
    T_EQ_U64(c.overflowed, SG_IMPAIR_FRAMES_MAX);
    sg_impair_flush(s.t, took, &s);
    balance(&s, &c);
    T_EQ_U64(c.waiting, 0);
    sink_free(&s);

    sink_init(&s, &config, 1);
    for (i = 0; i < 1000; i++) {
        sg_impair_input(s.t, &iov, 1, 0, 0, 0);
    }
    sg_impair_counters(s.t, &c);
    T_EQ_U64(c.waiting, SG_IMPAIR_OCTETS_MAX / large);
    balance(&s, &c);
    sink_free(&s);

    /* Each frame should be overtaken, but the link holds back only a few at a time. */
    config = (struct sg_impair_config){ .reorder = SG_IMPAIR_ALWAYS };
    sink_init(&s, &config, 1000);
    traffic(&s, 1000, 0, &c);
    T_EQ_U64(s.count, 1000);
    sink_free(&s);
    g_free(frame);
}

static void back_in_time(void)
{
    struct sg_impair_config config = { .delay = 5 * MS, .rate = 1000000, .seed = 1 };
    struct sink s;

    sink_init(&s, &config, 10);
    s.now = 3600000ull * MS;
    input(&s, 0, FRAME);
    s.now = 1000 * MS; /* an older snapshot */
    sg_impair_output(s.t, s.now, TURN, took, &s);
    T_EQ_U64(s.count, 0);
    T_EQ_U64(sg_impair_next(s.t), s.now + 5 * MS + 800000);
    input(&s, 1, FRAME);
    run_until(&s, 1100 * MS);
    T_EQ_U64(s.count, 2);
    T_EQ_U64(s.times[1], 1000 * MS + 5 * MS + 1600000);
    s.now = 0; /* before anything */
    input(&s, 2, FRAME);
    run_until(&s, 100 * MS);
    T_EQ_U64(s.count, 3);
    sink_free(&s);
}

static void changed_meanwhile(void)
{
    struct sg_impair_config config = { .delay = 100 * MS, .seed = 1 };
    struct sink s;

    sink_init(&s, &config, 10);
    input(&s, 0, FRAME);
    config.delay = 0;
    T_TRUE(sg_impair_set(s.t, &config));
    input(&s, 1, FRAME); /* keeps its place behind the first */
    T_EQ_U64(s.count, 0);
    run_until(&s, 100 * MS);
    T_EQ_U64(s.count, 2);
    T_EQ_U64(s.numbers[0], 0);
    input(&s, 2, FRAME); /* nothing waits any more */
    T_EQ_U64(s.count, 3);
    sink_free(&s);
}

/* The receiver answers into the same link, and calls the link again from within. */
static void echo(void *opaque, const uint8_t *frame, size_t len, uint32_t tag)
{
    struct sink *s = opaque;

    took(s, frame, len, tag);
    sg_impair_output(s->t, s->now, TURN, took, s);
    sg_impair_flush(s->t, took, s);
    if (s->count < 5) {
        input(s, sg_get_be32(frame) + 1, len);
    }
}

static void entered_again(void)
{
    struct sg_impair_config config = { .delay = MS, .seed = 1 };
    struct sink s;
    unsigned i;

    sink_init(&s, &config, 10);
    input(&s, 0, FRAME);
    for (i = 1; i <= 5; i++) {
        s.now = i * MS;
        sg_impair_output(s.t, s.now, TURN, echo, &s);
        T_EQ_U64(s.count, i);
    }
    config.delay = 0;
    T_TRUE(sg_impair_set(s.t, &config));
    sink_free(&s);
    config.delay = MS;
    sink_init(&s, &config, 10);
    input(&s, 0, FRAME);
    sg_impair_flush(s.t, echo, &s); /* not what it adds */
    T_EQ_U64(s.count, 1);
    sink_free(&s);
}

static void refused(void)
{
    static const struct {
        const char *field;
        struct sg_impair_config config;
    } rows[] = {
        { "loss", { .loss = SG_IMPAIR_ALWAYS + 1 } },
        { "duplicate", { .duplicate = UINT32_MAX } },
        { "corrupt", { .corrupt = SG_IMPAIR_ALWAYS + 1 } },
        { "reorder", { .reorder = SG_IMPAIR_ALWAYS + 1 } },
        { "delay", { .delay = SG_IMPAIR_DELAY_MAX + 1 } },
        { "jitter", { .jitter = UINT64_MAX } },
        { "rate", { .rate = SG_IMPAIR_RATE_MAX + 1 } },
        { "rate", { .rate = SG_IMPAIR_RATE_MIN - 1 } },
        { "queue", { .queue = SG_IMPAIR_QUEUE_MAX + 1 } },
        { NULL,
          { .loss = SG_IMPAIR_ALWAYS,
            .duplicate = SG_IMPAIR_ALWAYS,
            .corrupt = SG_IMPAIR_ALWAYS,
            .reorder = SG_IMPAIR_ALWAYS,
            .delay = SG_IMPAIR_DELAY_MAX,
            .jitter = SG_IMPAIR_DELAY_MAX,
            .rate = SG_IMPAIR_RATE_MIN,
            .queue = SG_IMPAIR_QUEUE_MAX,
            .seed = UINT64_MAX } },
        { NULL, { .rate = SG_IMPAIR_RATE_MAX } },
    };
    struct sg_impair_config good = { .loss = SG_IMPAIR_ALWAYS };
    struct sg_impair_counters c;
    struct sink s;
    unsigned i;

    sink_init(&s, &good, 10);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct sg_impair *t = sg_impair_new(&rows[i].config);

        T_CONTEXT("row %u", i);
        if (rows[i].field) {
            T_EQ_STR(sg_impair_check(&rows[i].config), rows[i].field);
            T_NULL(t);
            T_FALSE(sg_impair_set(s.t, &rows[i].config));
        } else {
            T_NULL(sg_impair_check(&rows[i].config));
            T_NOT_NULL(t);
        }
        sg_impair_free(t);
    }
    input(&s, 0, FRAME); /* a refused setting changes nothing */
    balance(&s, &c);
    T_EQ_U64(c.lost, 1);
    sink_free(&s);
}

static const struct t_case cases[] = {
    { "nothing asked for: frames pass at once, as they are", as_it_is },
    { "loss, duplication and damage are as frequent as asked for", as_often_as_said },
    { "loss of one frame says nothing about the next", independent },
    { "a seed replays, another one does not", replays },
    { "what is lost does not depend on the other settings", separate },
    { "delay and jitter keep the order, and are within their limits", delayed_in_order },
    { "reordering: a few frames overtake, and nobody waits for ever", reordered },
    { "rate: each frame takes its time, a full queue drops the last", at_a_rate },
    { "output in turns", in_turns },
    { "frames, octets and late ones that wait are bounded", bounded },
    { "a clock that goes back", back_in_time },
    { "settings changed while frames wait", changed_meanwhile },
    { "a receiver that sends, and calls again", entered_again },
    { "settings out of range are refused", refused },
};

T_MAIN(cases)
