/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A spin lock that is optional: an application that created the object for a single thread, or in a
 * parent domain with a thread domain, has promised to serialise its calls.
 */
#ifndef STAGHORN_PROVIDER_LOCK_H
#define STAGHORN_PROVIDER_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct sgp_lock {
	pthread_spinlock_t spin;
	bool promised; /* set before the object is used, if at all */
};

static inline void sgp_lock_init(struct sgp_lock *lock, bool promised)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->promised = promised;
}

static inline void sgp_lock_fini(struct sgp_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void sgp_lock(struct sgp_lock *lock)
{
	if (!lock->promised)
		pthread_spin_lock(&lock->spin);
}

static inline void sgp_unlock(struct sgp_lock *lock)
{
	if (!lock->promised)
		pthread_spin_unlock(&lock->spin);
}

#endif
