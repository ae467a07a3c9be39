/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU within the calling process, for the fuzz target "guest": what the qtest protocol offers,
 * without a socket between.  Not part of QEMU proper; tools/fuzz_guest.py builds it.  No header of
 * QEMU is needed to use it.
 *
 * All of it is for the thread that called sg_inproc_start().
 */
#ifndef SG_DEVICE_INPROC_H
#define SG_DEVICE_INPROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* QEMU's command line; once in a process. */
void sg_inproc_start(int argc, char **argv);

/* An access of a CPU to physical memory or MMIO. */
void sg_inproc_read(uint64_t addr, void *buf, size_t len);
void sg_inproc_write(uint64_t addr, const void *buf, size_t len);
void sg_inproc_out(uint16_t port, uint32_t value);
uint32_t sg_inproc_in(uint16_t port);

/* One round of the main loop; false: nothing was to be done. */
bool sg_inproc_round(void);
/* The virtual clock goes on, and runs the timers that are due.  Returns the new time, ns. */
uint64_t sg_inproc_clock_step(uint64_t ns);
/* The machine is reset. */
void sg_inproc_reset(void);
/* What was unplugged is freed. */
void sg_inproc_drain(void);
/* One QMP command in JSON, none that runs in a coroutine; the answer, free with g_free. */
char *sg_inproc_qmp(const char *text);

#endif
