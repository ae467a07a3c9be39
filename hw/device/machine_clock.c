/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock of adapters, of their ports and of the persistence domain (machine_clock.h). */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/timer.h"
#include "machine_clock.h"

static int64_t clock_ahead;     /* of QEMU's virtual clock */
static int64_t clock_held = -1; /* its value meanwhile */

int64_t staghorn_clock_ns(void)
{
    int64_t held = qatomic_read(&clock_held);

    return held >= 0 ? held : qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + qatomic_read(&clock_ahead);
}

int64_t staghorn_clock_virtual(int64_t ns)
{
    return ns - qatomic_read(&clock_ahead);
}

void staghorn_clock_hold(bool hold)
{
    int64_t held = staghorn_clock_ns();

    if (!hold) {
        qatomic_set(&clock_ahead, held - qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    }
    qatomic_set(&clock_held, hold ? held : -1);
}
