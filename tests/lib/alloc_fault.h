/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that the host does not have.  A program that links alloc_fault.c has GLib's allocators in
 * it, in front of the library's: all of the core, of hw/net and of lwIP allocates by them.
 *
 * While it is armed, allocations that may fail are counted, and those from number 'fail_at' on do
 * fail, 'fail_count' of them.  An allocation that must not fail ends QEMU where there is no memory;
 * while armed each of them is counted in 'fatal'.
 */
#ifndef SG_TESTS_ALLOC_FAULT_H
#define SG_TESTS_ALLOC_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct alloc_fault {
    bool armed;
    uint64_t seen;
    uint64_t fail_at, fail_count; /* from 1 on; 0: none fails */
    uint64_t failed;
    unsigned fatal;
    void *fatal_at;               /* where the first of them was called */
    int64_t live;                 /* pieces of memory, armed or not */
};

extern struct alloc_fault alloc_fault;

/* From now on; the counts begin anew. */
void alloc_fault_arm(uint64_t fail_at, uint64_t fail_count);
void alloc_fault_disarm(void);

#endif
