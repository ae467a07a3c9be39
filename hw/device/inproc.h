/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU within the calling process, for the fuzz target "guest": the operations of the qtest
 * protocol without a socket.  Not part of QEMU proper; tools/fuzz_guest.py builds it.  Its users
 * need no header of QEMU.
 *
 * Only the thread that called sg_inproc_start() may use it.
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

/* One round of the main loop; false: there was no work. */
bool sg_inproc_round(void);
/* Advances the virtual clock and runs the timers that are due.  Returns the new time, ns. */
uint64_t sg_inproc_clock_step(uint64_t ns);
/* Resets the machine. */
void sg_inproc_reset(void);
/* Frees unplugged devices. */
void sg_inproc_drain(void);
/* One QMP command in JSON, none that runs in a coroutine; the answer, free with g_free. */
char *sg_inproc_qmp(const char *text);

#endif
