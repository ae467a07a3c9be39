/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Large tables that are read in no order.
 *
 * Each access to such a table misses the processor's caches, and with pages of 4 KiB its address
 * translation as well.  The operating system is asked for huge pages; without them only the speed
 * differs.
 */
#ifndef SG_LARGE_H
#define SG_LARGE_H

#include <stddef.h>

/* An array of zeros, for g_free(), as from g_new0(). */
void *sg_large_new0(size_t count, size_t size);

#endif
