/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"

/* NULL if any octet of the range does not respond. */
static uint8_t *reach(struct test_host *h, uint64_t addr, size_t len)
{
    uint64_t off = addr - TEST_HOST_BASE;

    if (addr < TEST_HOST_BASE || !sg_range_ok(off, len, h->size)) {
        return NULL;
    }
    if (addr < h->fault_hi && addr + len > h->fault_lo) {
        return NULL;
    }
    return h->mem + off;
}

static void record(struct test_host *h, int what, uint64_t addr, size_t len)
{
    if (h->step_count < TEST_HOST_STEPS) {
        h->steps[h->step_count] = (struct test_host_step){ what, addr, len };
    }
    h->step_count++;
}

int test_host_step(const struct test_host *h, unsigned from, int what, uint64_t addr)
{
    unsigned i;

    for (i = from; i < h->step_count && i < TEST_HOST_STEPS; i++) {
        const struct test_host_step *s = &h->steps[i];

        if ((int)s->what == what && addr - s->addr < (what == TEST_HOST_RAISE ? 1 : s->len)) {
            return (int)i;
        }
    }
    return -1;
}

static bool op_dma_read(void *host, uint64_t addr, void *buf, size_t len)
{
    struct test_host *h = host;
    uint8_t *p = reach(h, addr, len);

    h->dma_reads++;
    h->now_ns += h->dma_ns;
    if (p) {
        memcpy(buf, p, len);
    }
    return p;
}

static bool op_dma_write(void *host, uint64_t addr, const void *buf, size_t len)
{
    struct test_host *h = host;
    uint8_t *p = reach(h, addr, len);

    h->dma_writes++;
    h->now_ns += h->dma_ns;
    record(h, TEST_HOST_WRITE, addr, len);
    if (p) {
        memcpy(p, buf, len);
    }
    return p;
}

static bool op_dma_store64(void *host, uint64_t addr, uint64_t value)
{
    uint8_t *p = reach(host, addr, 8);

    sg_assert(addr % 8 == 0);
    record(host, TEST_HOST_STORE64, addr, 8);
    if (p) {
        sg_put_le64(p, value);
    }
    return p;
}

static bool op_dma_cmpxchg64(void *host, uint64_t addr, uint64_t *value, uint64_t desired)
{
    struct test_host *h = host;
    uint8_t *p = reach(h, addr, 8);
    uint64_t found;

    sg_assert(addr % 8 == 0);
    if (!p) {
        return false;
    }
    if (h->interfere) {
        h->interfere--;
        sg_put_le64(p, sg_get_le64(p) + 1);
    }
    found = sg_get_le64(p);
    if (found == *value) {
        sg_put_le64(p, desired);
    }
    *value = found;
    return true;
}

static void *op_map(void *host, uint64_t addr, size_t *len, bool for_write)
{
    struct test_host *h = host;
    uint8_t *p;

    (void)for_write;
    if (h->map_limit && *len > h->map_limit) {
        *len = h->map_limit;
    }
    p = h->deny_map ? NULL : reach(h, addr, *len);
    h->mapped += p != NULL;
    return p;
}

static void op_unmap(void *host, void *p, size_t len, bool for_write)
{
    struct test_host *h = host;

    (void)for_write;
    sg_assert((uint8_t *)p >= h->mem && (uint8_t *)p + len <= h->mem + h->size);
    h->mapped--;
}

static uint64_t op_now(void *host)
{
    return ((struct test_host *)host)->now_ns;
}

static void op_arm_timer(void *host, uint64_t deadline_ns)
{
    ((struct test_host *)host)->timer_ns = deadline_ns;
}

static void op_kick(void *host)
{
    ((struct test_host *)host)->kicked = true;
}

static void op_raise(void *host, unsigned vector)
{
    struct test_host *h = host;

    sg_assert(vector < TEST_HOST_VECTORS);
    h->raised[vector]++;
    record(h, TEST_HOST_RAISE, vector, 0);
}

static void op_random(void *host, void *buf, size_t len)
{
    struct test_host *h = host;
    uint8_t *p = buf;

    while (len--) {
        *p++ = (uint8_t)sg_prng(&h->random);
    }
}

static bool op_log_enabled(void *host, enum sg_log_class cls)
{
    struct test_host *h = host;

    h->guest_errors += cls == SG_LOG_GUEST_ERROR;
    return h->log_on[cls];
}

static void op_log(void *host, enum sg_log_class cls, const char *line)
{
    static const char *const names[] = {
        [SG_LOG_GUEST_ERROR] = "guest error",
        [SG_LOG_PEER_ERROR] = "peer error",
        [SG_LOG_FAILURE] = "failure",
        [SG_LOG_STATE] = "state",
        [SG_LOG_CHECK] = "check",
        [SG_LOG_TRACE] = "trace",
    };
    struct test_host *h = host;

    snprintf(h->log[h->log_count++ % TEST_HOST_LOG_LINES], TEST_HOST_LOG_LEN, "%s", line);
    if (h->echo) {
        fprintf(stderr, "# %p %s: %s\n", host, names[cls], line);
    }
}

static const struct sg_host_ops host_ops = {
    .dma_read = op_dma_read,
    .dma_write = op_dma_write,
    .dma_store64 = op_dma_store64,
    .dma_cmpxchg64 = op_dma_cmpxchg64,
    .map = op_map,
    .unmap = op_unmap,
    .now = op_now,
    .arm_timer = op_arm_timer,
    .kick = op_kick,
    .raise = op_raise,
    .random = op_random,
    .log_enabled = op_log_enabled,
    .log = op_log,
};

void test_host_init(struct test_host *h, size_t size, uint64_t seed)
{
    const char *echo = getenv("SG_TEST_LOG");

    memset(h, 0, sizeof(*h));
    h->ops = host_ops;
    h->host.ops = &h->ops;
    h->host.opaque = h;
    h->mem = calloc(1, size);
    sg_assert(h->mem);
    h->size = size;
    h->random = seed;
    h->timer_ns = SG_NEVER;
    h->log_on[SG_LOG_GUEST_ERROR] = h->log_on[SG_LOG_PEER_ERROR] = true;
    h->log_on[SG_LOG_CHECK] = echo != NULL;
    h->log_on[SG_LOG_FAILURE] = h->log_on[SG_LOG_STATE] = true;
    h->echo = echo != NULL;
    h->log_on[SG_LOG_TRACE] = echo && strcmp(echo, "trace") == 0;
}

unsigned test_host_check(void)
{
    const char *mode = getenv("SG_TEST_CHECK");

    if (!mode || strcmp(mode, "off") == 0) {
        return 0;
    }
    sg_assert(strcmp(mode, "warn") == 0 || strcmp(mode, "strict") == 0);
    return mode[0] == 'w' ? 1 : 2;
}

void test_host_fini(struct test_host *h)
{
    sg_assert(h->mapped == 0);
    free(h->mem);
    h->mem = NULL;
}

uint64_t test_host_alloc(struct test_host *h, size_t len, size_t align)
{
    size_t at = sg_align_up(h->brk, align);

    sg_assert(sg_range_ok(at, len, h->size));
    h->brk = at + len;
    memset(h->mem + at, 0, len);
    return TEST_HOST_BASE + at;
}

void *test_host_ptr(struct test_host *h, uint64_t addr)
{
    sg_assert(addr >= TEST_HOST_BASE && addr - TEST_HOST_BASE < h->size);
    return h->mem + (addr - TEST_HOST_BASE);
}

bool test_host_logged(const struct test_host *h, const char *part)
{
    unsigned i;

    for (i = 0; i < TEST_HOST_LOG_LINES && i < h->log_count; i++) {
        if (strstr(h->log[i], part)) {
            return true;
        }
    }
    return false;
}

bool test_host_take_kick(struct test_host *h)
{
    bool kicked = h->kicked;

    h->kicked = false;
    return kicked;
}
