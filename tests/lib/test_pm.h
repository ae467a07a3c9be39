/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small model of persistent memory for a test host: one range of guest memory with a medium
 * behind it, and a record of the adapter's calls.
 *
 * The medium changes by pm_flush with SG_FLUSH_PERSISTENT only.  With 'hold', placed octets wait
 * until their connection is settled and are then written youngest first: the worst that an adapter
 * may do.  All ranges that the adapter gives must lie within the range, as base/host.h promises.
 */
#ifndef SG_TESTS_TEST_PM_H
#define SG_TESTS_TEST_PM_H

#include "test_host.h"

enum test_pm_op {
    TEST_PM_PLACE,
    TEST_PM_SETTLE,
    TEST_PM_FLUSH,
    TEST_PM_READ,
    TEST_PM_STORE,
    TEST_PM_POISON,
    TEST_PM_MILESTONE,
    TEST_PM_CMPXCHG
};

struct test_pm_call {
    enum test_pm_op op;
    struct sg_pm_who who;
    uint64_t addr, len;
    unsigned what; /* FLUSH: flags; MILESTONE: which */
};

enum { TEST_PM_CALLS = 1024 };

struct test_pm {
    struct test_host *h;
    uint64_t lo, hi; /* bus addresses */
    uint8_t *media;  /* hi - lo octets */
    bool hold;
    unsigned later;          /* each pm_flush is postponed this many times, */
    uint64_t later_ns;       /* by this time */
    unsigned put_off;        /* how often the one in progress was postponed */
    int fail_flush;          /* this many flushes succeed, then one fails; -1: never */
    uint64_t bad_lo, bad_hi; /* unreadable media */
    unsigned count;          /* calls so far; the first ones are kept */
    struct test_pm_call calls[TEST_PM_CALLS];
    struct test_pm_held *held;
};

/* The range [lo, hi) of h becomes persistent; its medium has the present content. */
void test_pm_init(struct test_pm *pm, struct test_host *h, uint64_t lo, uint64_t hi);
/* Octets that are held back are lost. */
void test_pm_fini(struct test_pm *pm);
/* The medium at a bus address within the range. */
uint8_t *test_pm_media(struct test_pm *pm, uint64_t addr);
/* Index of the first call of this kind from 'from' on, or -1. */
int test_pm_find(const struct test_pm *pm, unsigned from, enum test_pm_op op);
unsigned test_pm_count(const struct test_pm *pm, enum test_pm_op op);

#endif
