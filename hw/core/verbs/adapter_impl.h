/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files above the layers of verbs: adapter.c, ending.c and regs.c.
 */
#ifndef SG_VERBS_ADAPTER_IMPL_H
#define SG_VERBS_ADAPTER_IMPL_H

#include "verbs/state/adapter_state.h"

/* The objects from before a reset. */
struct sg_ending {
    struct sg_idtab conns, listeners, qps, srqs, cqs, pds;
    uint32_t cursor; /* in the table of this stage */
    uint8_t stage;
    bool under_way;
};

/* CTRL.ENABLE set and cleared. */
void sg_adapter_enable(struct sg_adapter *a);
void sg_adapter_disable(struct sg_adapter *a);
/* doorbell.c: chooses what doorbells do: is there a checker, are there fault rules? */
void sg_adapter_hang_bells(struct sg_adapter *a);

/* check_turn.c; only if there is a checker. */
void sg_check_end_due(struct sg_adapter *a);
void sg_check_enabled(struct sg_adapter *a);
/* The driver resets the adapter. */
void sg_check_left(struct sg_adapter *a);

/* ending.c: destroys everything in the following turns; for the guest it is gone at once. */
void sg_ending_begin(struct sg_adapter *a);
/* Does a part of it; false: nothing is left. */
bool sg_ending_run(struct sg_adapter *a);

#endif
