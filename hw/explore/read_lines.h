/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of --reads: ranges of addresses, one a line. */
#ifndef SG_EXPLORE_READ_LINES_H
#define SG_EXPLORE_READ_LINES_H

#include "crash/reads.h"

enum { READS_MAX = 1 << 20 }; /* ranges */

/* Fills it; false: a message is on stderr. */
bool sg_explore_read_lines(const char *path, struct sg_crash_reads *reads);

#endif
