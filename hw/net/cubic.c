/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CUBIC congestion control (RFC 9438) in integer arithmetic.
 *
 *   W_cubic(t) = C (t - K)^3 + W_max        C = 0.4 segments / s^3     (figure 1)
 *   K = cubic root of ((W_max - cwnd) / C)                            (figure 2)
 *
 * where a loss reduces the window to 0.7 of its size.
 */
#include <glib.h>

#include "cubic.h"

#define NS_PER_MS 1000000ull
#define AGE_MAX_MS 100000

enum {
    BETA_PERCENT = 70,
    FAST_CONVERGENCE_PERCENT = 85, /* (1 + beta) / 2: section 4.7 */
    /* alpha, section 4.3: 3 (1 - beta) / (1 + beta) = 9/17 */
    ALPHA_OF = 9,
    ALPHA_BY = 17,
    SEGMENTS_MIN = 2,
};

static uint32_t percent(uint32_t of, unsigned n)
{
    return (uint32_t)((uint64_t)of * n / 100);
}

static uint64_t cubic_root(uint64_t v)
{
    uint64_t low = 0, high = 2642245; /* its third power is just below 2^64 */

    while (low < high) {
        uint64_t mid = (low + high + 1) / 2;

        if (mid * mid * mid <= v) {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    return low;
}

uint32_t cubic_reduce(struct cubic *c, uint32_t cwnd, uint32_t mss)
{
    c->epoch = 0;
    c->prior = cwnd;
    c->w_max = cwnd < c->w_max ? percent(cwnd, FAST_CONVERGENCE_PERCENT) : cwnd;
    return MAX(percent(cwnd, BETA_PERCENT), SEGMENTS_MIN * mss);
}

static void begin(struct cubic *c, uint32_t cwnd, uint32_t mss, uint64_t now)
{
    c->epoch = now;
    c->part = c->est_part = 0;
    c->w_est = cwnd;
    if (c->w_max > cwnd) {
        /* ms^3; 1 / C = 2.5 */
        c->k = cubic_root((uint64_t)(c->w_max - cwnd) * 2500000000ull / mss);
    } else {
        c->w_max = cwnd;
        c->k = 0;
    }
}

/* W_cubic() after 'ms', within what 32 bits hold. */
static uint32_t w_cubic(const struct cubic *c, uint64_t ms, uint32_t mss)
{
    int64_t t = (int64_t)MIN(ms, AGE_MAX_MS) - (int64_t)MIN(c->k, AGE_MAX_MS);
    int64_t w = t * t * t / 1000 * 2 * (int64_t)mss / 5000000 + (int64_t)c->w_max;

    return (uint32_t)CLAMP(w, (int64_t)mss, (int64_t)UINT32_MAX / 2);
}

/* Section 4.3: never slower than Reno. */
static void grow_estimate(struct cubic *c, uint32_t cwnd, uint32_t acked, uint32_t mss)
{
    bool caught_up = c->w_est >= c->prior;
    uint64_t add = (uint64_t)acked * mss;

    c->est_part += caught_up ? add : add * ALPHA_OF / ALPHA_BY;
    c->w_est += (uint32_t)(c->est_part / cwnd);
    c->est_part %= cwnd;
}

uint32_t cubic_grow(struct cubic *c, uint32_t cwnd, uint32_t acked, uint32_t mss, uint64_t now,
                    uint64_t rtt)
{
    uint64_t ms;
    uint32_t target;

    if (!c->epoch) {
        begin(c, cwnd, mss, now);
    }
    ms = (now - c->epoch) / NS_PER_MS;
    grow_estimate(c, cwnd, acked, mss);
    if (w_cubic(c, ms, mss) < c->w_est) {
        return MAX(cwnd, c->w_est);
    }
    target = w_cubic(c, ms + rtt / NS_PER_MS, mss);
    target = CLAMP(target, cwnd, cwnd + cwnd / 2);
    c->part += (uint64_t)(target - cwnd) * acked;
    cwnd += (uint32_t)(c->part / cwnd);
    c->part %= cwnd;
    return cwnd;
}
