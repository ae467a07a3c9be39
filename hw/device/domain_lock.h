/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lock of a persistence domain.
 *
 * Whoever enters the model of hw/core/persist, or changes persistent memory that it watches,
 * holds it: vCPU threads around each store (cpu_track.c, without QEMU's big lock), the adapter's
 * and the main thread around everything else.  It comes last: nobody waits for QEMU's big lock,
 * runs a callback of QEMU's or blocks while holding it.  Held for some ten nanoseconds by a store
 * and for milliseconds by a cut at most, which is why waiting starts with spinning, for little
 * more than a store takes, and goes on sleeping.
 */
#ifndef STAGHORN_DEVICE_DOMAIN_LOCK_H
#define STAGHORN_DEVICE_DOMAIN_LOCK_H

#include "qemu/atomic.h"
#include "qemu/processor.h"

/* All zero: free. */
typedef struct StaghornDomainLock {
    int held;
} StaghornDomainLock;

enum { SG_LOCK_SPINS = 64, SG_LOCK_YIELDS = 16, SG_LOCK_NAP_US = 50 };

static inline void staghorn_domain_lock(StaghornDomainLock *lock)
{
    for (unsigned tries = 0; unlikely(qatomic_xchg(&lock->held, 1)); tries++) {
        while (qatomic_read(&lock->held)) {
            if (++tries < SG_LOCK_SPINS) {
                cpu_relax();
            } else if (tries < SG_LOCK_SPINS + SG_LOCK_YIELDS) {
                sched_yield();
            } else {
                g_usleep(SG_LOCK_NAP_US);
            }
        }
    }
}

static inline void staghorn_domain_unlock(StaghornDomainLock *lock)
{
    qatomic_store_release(&lock->held, 0);
}

#endif
