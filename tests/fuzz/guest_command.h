/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hostile guest's addresses, page lists and admin commands in target "guest"; all are made from
 * the input.
 */
#ifndef SG_TESTS_FUZZ_GUEST_COMMAND_H
#define SG_TESTS_FUZZ_GUEST_COMMAND_H

#include "guest_world.h"

enum { GUEST_LIST = 64 }; /* entries of a page list at most */

/* A register of a device that an interrupt or a DMA of the adapter may hit. */
uint64_t guest_register(void);
/* Guest memory that this input has allocated. */
uint64_t guest_memory(void);
/* Any of these, persistent memory, an address that is not memory, or an edge. */
uint64_t guest_place(void);
/* A small number, or a place. */
uint64_t guest_value(void);
/* A list of page addresses in guest memory, good ones and others. */
uint64_t guest_page_list(void);

/* One command: of some kind, mostly plausible, with a field or two changed at times. */
void guest_command(void);

#endif
