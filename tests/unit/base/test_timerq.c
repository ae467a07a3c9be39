/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/timerq.h: order, cancelling, callbacks that change the queue, and a model. */
#include "base/bytes.h"
#include "base/timerq.h"
#include "tap.h"

#define MAX_TIMERS 300

static struct sg_timerq q;
static struct sg_timer timers[MAX_TIMERS];
static int fired[4 * MAX_TIMERS];
static size_t n_fired;

static void record(struct sg_timer *t, uint64_t now)
{
    T_TRUE(t->deadline_ns <= now);
    T_FALSE(sg_timer_armed(t));
    T_TRUE(n_fired < SG_ARRAY_SIZE(fired));
    fired[n_fired++] = (int)(t - timers);
}

static void setup(void)
{
    sg_timerq_init(&q);
    for (size_t i = 0; i < MAX_TIMERS; i++) {
        sg_timer_init(&timers[i], record, NULL);
    }
    n_fired = 0;
}

static void order(void)
{
    setup();
    T_EQ_U64(sg_timerq_next(&q), SG_TIME_NEVER);
    T_EQ_U64(sg_timerq_run(&q, UINT64_MAX - 1), 0);
    sg_timerq_arm(&q, &timers[0], 30);
    sg_timerq_arm(&q, &timers[1], 10);
    sg_timerq_arm(&q, &timers[2], 20);
    sg_timerq_arm(&q, &timers[3], 10);
    T_EQ_U64(sg_timerq_next(&q), 10);
    T_EQ_U64(sg_timerq_run(&q, 9), 0);
    T_EQ_U64(sg_timerq_run(&q, 20), 3);
    T_EQ_INT(fired[0], 1);
    T_EQ_INT(fired[1], 3); /* equal deadlines: in the order of arming */
    T_EQ_INT(fired[2], 2);
    T_EQ_U64(sg_timerq_next(&q), 30);
    T_EQ_U64(q.count, 1);
}

static void cancel_and_move(void)
{
    setup();
    sg_timerq_cancel(&q, &timers[0]);
    sg_timerq_arm(&q, &timers[0], 10);
    sg_timerq_arm(&q, &timers[1], 20);
    sg_timerq_cancel(&q, &timers[0]);
    sg_timerq_cancel(&q, &timers[0]);
    T_EQ_U64(sg_timerq_next(&q), 20);
    sg_timerq_arm(&q, &timers[1], 50);
    T_EQ_U64(sg_timerq_next(&q), 50);
    sg_timerq_arm(&q, &timers[1], 5);
    T_EQ_U64(sg_timerq_next(&q), 5);
    sg_timerq_arm(&q, &timers[1], SG_TIME_NEVER);
    T_FALSE(sg_timer_armed(&timers[1]));
    T_EQ_U64(sg_timerq_run(&q, 100), 0);
    T_EQ_U64(q.count, 0);
}

static void rearm_self(struct sg_timer *t, uint64_t now)
{
    record(t, now);
    sg_timerq_arm(&q, t, 0);
}

static void rearming_does_not_loop(void)
{
    setup();
    sg_timer_init(&timers[0], rearm_self, NULL);
    sg_timerq_arm(&q, &timers[0], 5);
    sg_timerq_arm(&q, &timers[1], 6);
    T_EQ_U64(sg_timerq_run(&q, 10), 2);
    T_EQ_INT(fired[1], 1);
    T_TRUE(sg_timer_armed(&timers[0]));
    T_EQ_U64(sg_timerq_next(&q), 0);
    T_EQ_U64(sg_timerq_run(&q, 10), 1);
}

static void cancel_others(struct sg_timer *t, uint64_t now)
{
    record(t, now);
    sg_timerq_cancel(&q, &timers[1]); /* due in this run */
    sg_timerq_arm(&q, &timers[2], 7);
    sg_timerq_arm(&q, &timers[3], 8);
    sg_timerq_cancel(&q, &timers[2]); /* held for the next run */
}

static void callbacks_cancel(void)
{
    setup();
    sg_timer_init(&timers[0], cancel_others, NULL);
    sg_timerq_arm(&q, &timers[0], 5);
    sg_timerq_arm(&q, &timers[1], 6);
    T_EQ_U64(sg_timerq_run(&q, 10), 1);
    T_EQ_U64(q.count, 1);
    T_EQ_U64(sg_timerq_run(&q, 10), 1);
    T_EQ_INT(fired[1], 3);
}

/* Random operations against an array searched from end to end. */
static void against_model(void)
{
    static uint64_t deadline[MAX_TIMERS], seq[MAX_TIMERS];
    uint64_t x = 88172645463325252u, now = 0, stamp = 0;

    setup();
    for (size_t i = 0; i < MAX_TIMERS; i++) {
        deadline[i] = SG_TIME_NEVER;
    }
    for (unsigned step = 0; step < 20000; step++) {
        size_t i;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        i = x % MAX_TIMERS;
        T_CONTEXT("step %u", step);
        if ((x >> 20) % 8 < 5) {
            deadline[i] = now + (x >> 32) % 1000;
            seq[i] = stamp++;
            sg_timerq_arm(&q, &timers[i], deadline[i]);
        } else if ((x >> 20) % 8 < 7) {
            deadline[i] = SG_TIME_NEVER;
            sg_timerq_cancel(&q, &timers[i]);
        } else {
            now += (x >> 32) % 100;
            n_fired = 0;
            sg_timerq_run(&q, now);
            for (size_t k = 0; k < n_fired; k++) {
                size_t best = 0;

                for (size_t j = 1; j < MAX_TIMERS; j++) {
                    if (deadline[j] < deadline[best] ||
                        (deadline[j] == deadline[best] && seq[j] < seq[best])) {
                        best = j;
                    }
                }
                T_EQ_INT(fired[k], (int)best);
                deadline[best] = SG_TIME_NEVER;
            }
        }
        uint64_t next = SG_TIME_NEVER;
        for (size_t j = 0; j < MAX_TIMERS; j++) {
            next = SG_MIN(next, deadline[j]);
        }
        T_EQ_U64(sg_timerq_next(&q), next);
    }
}

static void count_one(struct sg_timer *t, uint64_t now)
{
    (void)now;
    ++*(unsigned *)t->opaque;
}

/* More timers at one instant than one run executes: the rest stays due at that instant. */
static void many_at_once(void)
{
    enum { MANY = SG_TIMERQ_RUN_MAX + 10 };
    static struct sg_timer t[MANY];
    unsigned count = 0;

    sg_timerq_init(&q);
    for (size_t i = 0; i < MANY; i++) {
        sg_timer_init(&t[i], count_one, &count);
        sg_timerq_arm(&q, &t[i], 5);
    }
    T_EQ_U64(sg_timerq_run(&q, 7), SG_TIMERQ_RUN_MAX);
    T_EQ_U64(sg_timerq_next(&q), 5);
    T_EQ_U64(sg_timerq_run(&q, 7), 10);
    T_EQ_U64(count, MANY);
    T_EQ_U64(sg_timerq_next(&q), SG_TIME_NEVER);
}

static const struct t_case cases[] = {
    { "very many at one instant", many_at_once },
    { "timerq fires in order of deadline, then of arming", order },
    { "timerq cancel and move", cancel_and_move },
    { "timerq rearming callback does not loop", rearming_does_not_loop },
    { "timerq callback cancels others", callbacks_cancel },
    { "timerq agrees with a model", against_model },
};

T_MAIN(cases)
