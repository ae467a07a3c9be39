/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules drawn from a seed.
 *
 * A lot is a text of the ordinary grammar, so it can be read, and given again one rule at a time.
 * The n-th rule depends on the seed, on n and on the time within which it begins, and on nothing
 * else.  Every drawn rule ends by itself: an effect from which an adapter does not recover without
 * a reset (a command that is stuck or not answered, an interrupt that is lost) happens once.
 */
#include "faults/fault_rules.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/prng.h"

enum { OCCURRENCES = 16, US_MAX = 20000, VECTORS = 8 };

enum lot_kind {
    LOT_FAIL,
    LOT_SLOW,
    LOT_SILENT,
    LOT_STUCK,
    LOT_LATE,
    LOT_LOST,
    LOT_WRONG,
    LOT_SPURIOUS,
    LOT_ONE_READ,
    LOT_READS,
    LOT_DMA,
    LOT_COMPLETION,
    LOT_OUTBOUND,
    LOT_INBOUND,
    LOT_LINK,
    LOT_ERROR,
    LOTS,
};

static uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(sg_prng(state) % n);
}

void sg_fault_draw(const struct sg_fault_lot *lot, unsigned n, char text[SG_FAULT_TEXT])
{
    uint64_t state = lot->seed ^ (n + 1) * 0x9e3779b97f4a7c15ull;
    const unsigned kind = below(&state, LOTS), us = 1 + below(&state, US_MAX);
    const unsigned nth = 1 + below(&state, OCCURRENCES), vector = below(&state, VECTORS);
    const uint64_t after = lot->within / 1000 ? sg_prng(&state) % (lot->within / 1000) : 0;
    static const char *const errors[] = { "correctable", "nonfatal", "fatal" };
    static const char *const ends[] = { "terminate", "fin", "rst", "mute" };
    char when[60];

    snprintf(when, sizeof(when), "nth=%u after=%" PRIu64 "us", nth, after);
    switch (kind) {
    case LOT_FAIL:
        snprintf(text, SG_FAULT_TEXT, "command fail %s", when);
        break;
    case LOT_SLOW:
        snprintf(text, SG_FAULT_TEXT, "command slow=%uus %s", us, when);
        break;
    case LOT_SILENT:
    case LOT_STUCK:
        snprintf(text, SG_FAULT_TEXT, "command %s %s", kind == LOT_STUCK ? "stuck" : "silent",
                 when);
        break;
    case LOT_LATE:
        snprintf(text, SG_FAULT_TEXT, "interrupt late=%uus %s", us, when);
        break;
    case LOT_LOST:
        snprintf(text, SG_FAULT_TEXT, "interrupt lost %s", when);
        break;
    case LOT_WRONG:
        snprintf(text, SG_FAULT_TEXT, "interrupt wrong=%u %s", vector, when);
        break;
    case LOT_SPURIOUS:
        snprintf(text, SG_FAULT_TEXT, "interrupt spurious=%u after=%" PRIu64 "us", vector, after);
        break;
    case LOT_ONE_READ:
        snprintf(text, SG_FAULT_TEXT, "registers ones times=1 %s", when);
        break;
    case LOT_DMA:
        snprintf(text, SG_FAULT_TEXT, "dma refuse dir=%s %s", us % 2 ? "read" : "write", when);
        break;
    case LOT_COMPLETION:
        snprintf(text, SG_FAULT_TEXT, "completion late=%uus %s", us, when);
        break;
    case LOT_OUTBOUND:
    case LOT_INBOUND:
        snprintf(text, SG_FAULT_TEXT, "%s %s %s", kind == LOT_INBOUND ? "inbound" : "outbound",
                 ends[us % 4], when);
        break;
    case LOT_LINK:
        snprintf(text, SG_FAULT_TEXT, "link down=%uus after=%" PRIu64 "us", us, after);
        break;
    case LOT_ERROR:
        snprintf(text, SG_FAULT_TEXT, "error %s after=%" PRIu64 "us", errors[us % 3], after);
        break;
    default:
        snprintf(text, SG_FAULT_TEXT, "registers ones after=%" PRIu64 "us for=%uus", after, us);
        break;
    }
}
