/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lock of a persistence domain.
 *
 * It is held around all use of the model of hw/core/persist, and around changes of the persistent
 * memory that the model observes: by vCPU threads around each store (cpu_track.c, without QEMU's
 * big lock), by the adapter's and the main thread around everything else.  It is the innermost
 * lock: its holder does not wait for QEMU's big lock, run a callback of QEMU's or block.  A store
 * holds it for some ten nanoseconds, a cut for milliseconds at most.  So waiting starts with
 * spinning, for little longer than a store takes, and then sleeps.
 */
#ifndef SG_DEVICE_DOMAIN_LOCK_H
#define SG_DEVICE_DOMAIN_LOCK_H

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
