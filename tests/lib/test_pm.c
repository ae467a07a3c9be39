/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test_pm.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Placed octets that are held back; the youngest first. */
struct test_pm_held {
    struct test_pm_held *next;
    uint32_t qpn;
    uint64_t addr;
    size_t len;
    uint8_t octets[];
};

static const uint32_t flush_persistent = 0x1; /* SG_FLUSH_PERSISTENT */

static struct test_pm *pm_of(void *host)
{
    return ((struct test_host *)host)->pm;
}

static void record(struct test_pm *pm, struct test_pm_call call)
{
    if (pm->count < TEST_PM_CALLS) {
        pm->calls[pm->count] = call;
    }
    pm->count++;
}

static bool inside(const struct test_pm *pm, uint64_t addr, uint64_t len)
{
    return addr >= pm->lo && sg_range_ok(addr - pm->lo, len, pm->hi - pm->lo);
}

static unsigned op_query(void *host, uint64_t addr, uint64_t len)
{
    const struct test_pm *pm = pm_of(host);

    if (inside(pm, addr, len)) {
        return SG_PM_PERSISTENT | SG_PM_SOME;
    }
    return addr < pm->hi && addr + len > pm->lo ? SG_PM_SOME : 0;
}

static bool op_place(void *host, const struct sg_pm_who *who, uint64_t addr, const void *buf,
                     size_t len)
{
    struct test_pm *pm = pm_of(host);
    struct test_pm_held *held;

    sg_assert(inside(pm, addr, len));
    record(pm, (struct test_pm_call){ TEST_PM_PLACE, *who, addr, len, 0 });
    if (addr < pm->h->fault_hi && addr + len > pm->h->fault_lo) {
        return false;
    }
    if (!pm->hold) {
        memcpy(test_host_ptr(pm->h, addr), buf, len);
        return true;
    }
    held = malloc(sizeof(*held) + len);
    sg_assert(held);
    *held = (struct test_pm_held){ .next = pm->held, .qpn = who->qpn, .addr = addr, .len = len };
    memcpy(held->octets, buf, len);
    pm->held = held;
    return true;
}

static void op_complete_writes(void *host, uint32_t qpn)
{
    struct test_pm *pm = pm_of(host);
    struct test_pm_held **at = &pm->held, *held;

    record(pm, (struct test_pm_call){ .op = TEST_PM_SETTLE, .who.qpn = qpn });
    while ((held = *at)) {
        if (held->qpn != qpn) {
            at = &held->next;
            continue;
        }
        *at = held->next;
        memcpy(test_host_ptr(pm->h, held->addr), held->octets, held->len);
        free(held);
    }
}

static enum sg_pm_result op_flush(void *host, struct sg_pm_op *op)
{
    struct test_pm *pm = pm_of(host);

    sg_assert(inside(pm, op->addr, op->len) && op->len && op->flags);
    record(pm, (struct test_pm_call){ TEST_PM_FLUSH, op->who, op->addr, op->len, op->flags });
    if (op->phase == SG_PM_NEW) {
        pm->put_off = 0;
    }
    if (pm->put_off < pm->later) {
        pm->put_off++;
        op->phase = SG_PM_UNDER_WAY;
        op->due_ns = pm->h->now_ns + pm->later_ns;
        return SG_PM_LATER;
    }
    if (pm->fail_flush >= 0 && pm->fail_flush-- == 0) {
        return SG_PM_FAILED;
    }
    if (op->flags & flush_persistent) {
        memcpy(test_pm_media(pm, op->addr), test_host_ptr(pm->h, op->addr), op->len);
    }
    return SG_PM_DONE;
}

static enum sg_pm_result op_media_read(void *host, uint64_t addr, void *buf, size_t len)
{
    struct test_pm *pm = pm_of(host);

    sg_assert(inside(pm, addr, len));
    record(pm, (struct test_pm_call){ .op = TEST_PM_READ, .addr = addr, .len = len });
    if (addr < pm->bad_hi && addr + len > pm->bad_lo) {
        return SG_PM_FAILED;
    }
    memcpy(buf, test_pm_media(pm, addr), len);
    return SG_PM_DONE;
}

static bool op_store(void *host, const struct sg_pm_who *who, uint64_t addr, const uint8_t atom[8])
{
    struct test_pm *pm = pm_of(host);

    sg_assert(inside(pm, addr, 8) && addr % 8 == 0);
    record(pm, (struct test_pm_call){ TEST_PM_STORE, *who, addr, 8, 0 });
    memcpy(test_host_ptr(pm->h, addr), atom, 8);
    return true;
}

static bool op_cmpxchg64(void *host, const struct sg_pm_who *who, uint64_t addr, uint64_t *value,
                         uint64_t desired)
{
    struct test_pm *pm = pm_of(host);

    sg_assert(inside(pm, addr, 8) && addr % 8 == 0);
    record(pm, (struct test_pm_call){ TEST_PM_CMPXCHG, *who, addr, 8, 0 });
    return pm->h->ops.dma_cmpxchg64(host, addr, value, desired);
}

static void op_poison(void *host, uint64_t addr, uint64_t len)
{
    struct test_pm *pm = pm_of(host);

    sg_assert(inside(pm, addr, len));
    record(pm, (struct test_pm_call){ .op = TEST_PM_POISON, .addr = addr, .len = len });
}

static void op_milestone(void *host, const struct sg_pm_who *who, enum sg_pm_milestone what)
{
    record(pm_of(host), (struct test_pm_call){ TEST_PM_MILESTONE, *who, 0, 0, what });
}

void test_pm_init(struct test_pm *pm, struct test_host *h, uint64_t lo, uint64_t hi)
{
    memset(pm, 0, sizeof(*pm));
    pm->h = h;
    pm->lo = lo;
    pm->hi = hi;
    pm->fail_flush = -1;
    pm->media = malloc(hi - lo);
    sg_assert(pm->media);
    memcpy(pm->media, test_host_ptr(h, lo), hi - lo);
    h->pm = pm;
    h->ops.pm_query = op_query;
    h->ops.pm_place = op_place;
    h->ops.pm_complete_writes = op_complete_writes;
    h->ops.pm_flush = op_flush;
    h->ops.pm_media_read = op_media_read;
    h->ops.pm_store = op_store;
    h->ops.pm_cmpxchg64 = op_cmpxchg64;
    h->ops.pm_poison = op_poison;
    h->ops.pm_milestone = op_milestone;
}

void test_pm_fini(struct test_pm *pm)
{
    while (pm->held) {
        struct test_pm_held *held = pm->held;

        pm->held = held->next;
        free(held);
    }
    free(pm->media);
    pm->media = NULL;
}

uint8_t *test_pm_media(struct test_pm *pm, uint64_t addr)
{
    sg_assert(inside(pm, addr, 1));
    return pm->media + (addr - pm->lo);
}

int test_pm_find(const struct test_pm *pm, unsigned from, enum test_pm_op op)
{
    unsigned i;

    for (i = from; i < pm->count && i < TEST_PM_CALLS; i++) {
        if (pm->calls[i].op == op) {
            return (int)i;
        }
    }
    return -1;
}

unsigned test_pm_count(const struct test_pm *pm, enum test_pm_op op)
{
    unsigned i, n = 0;

    for (i = 0; i < pm->count && i < TEST_PM_CALLS; i++) {
        n += pm->calls[i].op == op;
    }
    return n;
}
