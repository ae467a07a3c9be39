/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SG_EXPLORE_OUTPUT_H
#define SG_EXPLORE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A file of a folder.  It is written under another name first: what is there under its own name is
 * whole.  False: a message is on stderr.
 */
bool sg_explore_write(const char *folder, const char *name, const void *octets, size_t len);
/* The message, for a call that has just set errno.  Returns false. */
bool sg_explore_not_written(const char *path);

#endif
