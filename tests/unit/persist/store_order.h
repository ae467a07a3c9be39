/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which store of a trace reached memory before which other one, octet by octet: read from the log
 * and from visible memory while the trace runs.  Each store has a value of its own, its number.
 */
#ifndef SG_TESTS_PERSIST_STORE_ORDER_H
#define SG_TESTS_PERSIST_STORE_ORDER_H

#include "model_images.h"

/* Of the stores of a trace, by value (1 .. GT_EVENTS); number 0 is what was there at first. */
struct store_order {
    const struct gt_trace *trace;
    uint64_t logged;                           /* events of the log that are taken in */
    uint64_t seq[GT_EVENTS + 1];               /* its input; 0: not yet, or it stored nothing */
    uint64_t post[GT_EVENTS + 1];              /* the event that brought it to S1; 0: none */
    uint64_t visible[GT_EVENTS + 1][GT_WORLD]; /* twice the event, + 1: after it; 0: it is not */
    bool writes[GT_EVENTS + 1][GT_WORLD];
};

void store_order_init(struct store_order *s, const struct gt_trace *trace);
/* Takes in event number value - 1 of the trace, which has just happened. */
void store_order_add(struct store_order *s, const struct dom_rig *r, unsigned value);
/*
 * A cut left x in a half to which t was stored: does that prove that t was lost?  Not if x reached
 * memory after t.
 */
bool store_order_is_lost(const struct store_order *s, unsigned half, unsigned t, unsigned x);

#endif
