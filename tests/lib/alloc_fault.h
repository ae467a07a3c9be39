/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulates a host without memory.  A program that links alloc_fault.c gets GLib's allocators from
 * it instead of the library: all of the core, of hw/net and of lwIP allocates through them.
 *
 * While it is armed, allocations that may fail are counted, and 'fail_count' of them fail,
 * beginning with number 'fail_at'.  An allocation that must not fail would end QEMU if there were
 * no memory; while armed each of them is counted in 'fatal'.
 */
#ifndef SG_TESTS_ALLOC_FAULT_H
#define SG_TESTS_ALLOC_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct alloc_fault {
    bool armed;
    uint64_t seen;
    uint64_t fail_at, fail_count; /* numbers begin with 1; 0: none fails */
    uint64_t failed;
    unsigned fatal;
    void *fatal_at; /* the caller of the first of them */
    int64_t live;   /* allocated pieces, armed or not */
};

extern struct alloc_fault alloc_fault;

/* From now on; the counts restart at 0. */
void alloc_fault_arm(uint64_t fail_at, uint64_t fail_count);
void alloc_fault_disarm(void);

#endif
