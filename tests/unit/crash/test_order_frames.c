/* SPDX-License-Identifier: GPL-2.0-or-later */
/* crash/order_frames.c: the table of all frames, beyond each of its sizes. */
#include "base/prng.h"
#include "crash/order_impl.h"
#include "tap.h"

enum { MACHINES = 2, FEW = 5000, MANY = 100000, MOST = 700000, STRANGERS = 20000 };

static uint64_t key_of(uint64_t number)
{
    return crash_mix(number + 1);
}

/* Of frames that nobody sends: may one be sent?  Rarely. */
static unsigned mistaken(const struct crash_frames *f)
{
    unsigned n = 0;

    for (unsigned i = 0; i < STRANGERS; i++) {
        n += crash_frames_find(f, i % MACHINES, key_of(1ull << 40 | i)) != FRAMES_NEVER;
    }
    return n;
}

/* Each machine sends half of so many frames; then all are sent. */
static void send_all(unsigned frames)
{
    struct crash_frames *f = crash_frames_new();
    unsigned repeated = 0, later = 0, before = 0;

    for (unsigned i = 0; i < frames; i++) {
        repeated += crash_frames_add(f, i % MACHINES, key_of(i));
    }
    T_TRUE(repeated <= frames / 1000);
    for (unsigned i = 0; i < frames; i++) {
        later += crash_frames_find(f, i % MACHINES, key_of(i)) == FRAMES_LATER;
        crash_frames_sent(f, i % MACHINES, key_of(i));
        before += crash_frames_find(f, i % MACHINES, key_of(i)) == FRAMES_BEFORE;
    }
    T_EQ_U64(later, frames);
    T_TRUE(before >= frames - frames / 1000);
    T_TRUE(mistaken(f) <= STRANGERS / 1000);
    crash_frames_rewind(f);
    T_EQ_INT(crash_frames_find(f, 0, key_of(0)), FRAMES_LATER);
    crash_frames_free(f);
}

static void sizes(void)
{
    send_all(FEW);
    send_all(MANY);
    send_all(MOST);
}

/* What is known of a frame does not get lost when the table grows. */
static void growth(void)
{
    struct crash_frames *f = crash_frames_new();

    for (unsigned i = 0; i < 3; i++) {
        T_EQ_INT(crash_frames_add(f, 0, key_of(0)), i > 0);
    }
    T_FALSE(crash_frames_add(f, 1, key_of(0)));
    for (unsigned i = 1; i < MOST; i++) {
        crash_frames_add(f, 0, key_of(i));
    }
    for (unsigned i = 0; i < 3; i++) {
        T_EQ_INT(crash_frames_find(f, 0, key_of(0)), FRAMES_LATER);
        crash_frames_sent(f, 0, key_of(0));
    }
    T_EQ_INT(crash_frames_find(f, 0, key_of(0)), FRAMES_BEFORE);
    T_EQ_INT(crash_frames_find(f, 1, key_of(0)), FRAMES_LATER);
    crash_frames_free(f);
}

/* A bucket that overflows knows nothing for certain: whatever comes there may be sent. */
static void overflow(void)
{
    struct crash_frames *f = crash_frames_new();

    for (uint64_t i = 0; i < 20; i++) {
        crash_frames_add(f, 0, i); /* contents that begin with the same bits */
    }
    for (uint64_t i = 0; i < 20; i++) {
        T_EQ_INT(crash_frames_find(f, 0, i), FRAMES_LATER);
    }
    T_EQ_INT(crash_frames_find(f, 1, 100), FRAMES_LATER);
    T_EQ_INT(crash_frames_find(f, 1, ~0ull), FRAMES_NEVER);
    crash_frames_free(f);
}

static const struct t_case cases[] = {
    { "frames are found, and strangers are not, in tables of each size", sizes },
    { "counts stay when the table grows", growth },
    { "a bucket that overflows is not trusted", overflow },
};

T_MAIN(cases)
