/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clock of adapters, of their ports and of the persistence domain.
 *
 * It is QEMU's virtual clock, which stops with the machine, but it never goes back: not even when
 * a machine gets an earlier state, with that state's virtual clock (persist/domain_boot.c).
 */
#ifndef SG_DEVICE_MACHINE_CLOCK_H
#define SG_DEVICE_MACHINE_CLOCK_H

/* Nanoseconds; any thread. */
int64_t staghorn_clock_ns(void);
/* The time on QEMU's virtual clock, for its timers. */
int64_t staghorn_clock_virtual(int64_t ns);
/*
 * The clock stands still while the machine, which is stopped, gets another state, and goes on from
 * there.  With the big lock.
 */
void staghorn_clock_hold(bool hold);

#endif
