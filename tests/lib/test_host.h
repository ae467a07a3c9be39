/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine for the adapter without QEMU: flat guest memory, a clock that the test moves, recorded
 * interrupts and log lines.  Implements base/host.h; used by unit tests, simulation and benchmark.
 *
 * Guest memory is at bus addresses TEST_HOST_BASE .. TEST_HOST_BASE + size - 1; all other addresses
 * do not respond.  One range can be made to fail as well.
 *
 * There is no persistent memory, unless the pm_* operations are filled in, as test_pm.h does.
 */
#ifndef SG_TESTS_TEST_HOST_H
#define SG_TESTS_TEST_HOST_H

#include "base/host.h"

#define TEST_HOST_BASE 0x100000ull

enum {
    TEST_HOST_VECTORS = 64,
    TEST_HOST_LOG_LINES = 64,
    TEST_HOST_LOG_LEN = 200,
    TEST_HOST_STEPS = 1024,
};

/* Externally visible actions of the adapter, in order. */
struct test_host_step {
    enum { TEST_HOST_WRITE, TEST_HOST_STORE64, TEST_HOST_RAISE } what;
    uint64_t addr; /* RAISE: the vector */
    size_t len;
};

struct test_host {
    struct sg_host host;    /* pass this to the adapter */
    struct sg_host_ops ops; /* host's operations: ours, or replaced one by one */
    void *pm;               /* for the provider of pm_* */
    uint8_t *mem;
    size_t size;
    size_t brk; /* next free octet, for test_host_alloc() */
    uint64_t now_ns;
    uint64_t timer_ns; /* last arm_timer */
    bool kicked;       /* since the last test_host_take_kick() */
    uint64_t raised[TEST_HOST_VECTORS];
    uint64_t random;             /* state of the generator; the seed at first */
    bool deny_map;               /* map() always fails */
    size_t map_limit;            /* longest mapping, 0: no limit */
    uint64_t fault_lo, fault_hi; /* bus addresses that do not respond */
    unsigned interfere;          /* for this many exchanges, a CPU adds 1 just before */
    long mapped;                 /* mappings not released */
    uint64_t dma_reads, dma_writes;
    uint64_t dma_ns;     /* each read and write of memory advances the clock by this */
    unsigned step_count; /* since a test set it to 0; only the first ones are kept */
    struct test_host_step steps[TEST_HOST_STEPS];
    bool log_on[SG_LOG_CLASSES]; /* by enum sg_log_class; all but SG_LOG_TRACE */
    bool echo;                   /* to stderr, from the environment variable SG_TEST_LOG */
    unsigned log_count;          /* lines so far; only the last ones are kept */
    unsigned guest_errors;       /* lines of that class, including those not kept */
    char log[TEST_HOST_LOG_LINES][TEST_HOST_LOG_LEN];
};

void test_host_init(struct test_host *h, size_t size, uint64_t seed);
void test_host_fini(struct test_host *h);

/* Zeroed guest memory; align is a power of two.  Aborts when there is no more. */
uint64_t test_host_alloc(struct test_host *h, size_t len, size_t align);
/* Pointer to guest memory at a bus address that must exist. */
void *test_host_ptr(struct test_host *h, uint64_t addr);
/* Is there a kept log line that contains this? */
bool test_host_logged(const struct test_host *h, const char *part);
bool test_host_take_kick(struct test_host *h);
/* The driver checker's mode for adapters of tests, from SG_TEST_CHECK (off, warn, strict). */
unsigned test_host_check(void);
/*
 * Index of the first kept step from 'from' on that raised vector 'addr', or wrote or stored the
 * octet at addr; -1: none.
 */
int test_host_step(const struct test_host *h, unsigned from, int what, uint64_t addr);

#endif
