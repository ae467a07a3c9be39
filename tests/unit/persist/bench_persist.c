/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of a persistence domain's events.  Not a test: build and run it by hand. */
#include <time.h>

#include <sys/mman.h>

#include "base/bytes.h"
#include "persist/persist.h"

#define GIB (1ull << 30)
#define P SG_FLUSH_PERSISTENT

static struct sg_persist *p;
static uint8_t *visible, *media;
static struct sg_persist_source nic = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
static struct sg_persist_source vcpu = { .agent = SG_PERSIST_CPU };

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* other processes may be busy */
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void row(const char *what, double start, double count, const char *unit)
{
    printf("%-52s %12.1f ns per %s\n", what, (seconds() - start) * 1e9 / count, unit);
}

static void flush(uint64_t off, uint64_t len)
{
    struct sg_pm_op op = { .len = len, .flags = P };

    if (sg_persist_flush(p, &nic, off, &op) != SG_PM_DONE) {
        abort();
    }
}

static void writes(const uint8_t *buf)
{
    enum { N = 4096, SIZE = 65536, WINDOW = 256 };
    double t = seconds();

    for (unsigned i = 0; i < N; i++) {
        memcpy(visible + (i % WINDOW) * (uint64_t)SIZE, buf, SIZE);
    }
    row("memcpy of 64 KiB (16 MiB window)", t, N, "write");
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned lines = 0; lines < 2; lines++) {
            t = seconds();
            for (unsigned i = 0; i < N; i++) {
                sg_persist_dma_write(p, &nic, (i % WINDOW) * (uint64_t)SIZE, buf, SIZE);
                if (lines) {
                    flush((i % WINDOW) * (uint64_t)SIZE, SIZE);
                }
            }
            row(lines ? "DMA write of 64 KiB, then Flush of it"
                      : "DMA write of 64 KiB, dirty again",
                t, N, "write");
        }
    }
    t = seconds();
    for (unsigned i = 0; i < 1000000; i++) {
        sg_persist_dma_write(p, &nic, (i % 4096) * 4096ull, buf, 64);
        flush((i % 4096) * 4096ull, 64);
    }
    row("DMA write of 64 octets and Flush of them", t, 1e6, "pair");
}

static void stores(void)
{
    const unsigned n = 10000000;
    uint64_t value = 1;
    const unsigned triples = n / 10;
    double t = seconds();

    for (unsigned i = 0; i < n; i++) {
        sg_persist_cpu_store(p, &vcpu, i % 2097152 * 8, &value, 8, SG_PERSIST_STORE_WRITE);
    }
    row("CPU store of 8 octets, running through 16 MiB", t, n, "store");
    sg_persist_orderly(p);
    t = seconds();
    for (unsigned i = 0; i < n; i++) {
        sg_persist_cpu_store(p, &vcpu, i % 8 * 8, &value, 8, SG_PERSIST_STORE_WRITE);
    }
    row("CPU store of 8 octets, always to one line", t, n, "store");
    sg_persist_orderly(p);
    t = seconds();
    for (unsigned i = 0; i < triples; i++) {
        sg_persist_cpu_store(p, &vcpu, i % 262144 * 64, &value, 8, SG_PERSIST_STORE_WRITE);
        sg_persist_cpu_flush(p, &vcpu, i % 262144 * 64, SG_PERSIST_CLWB);
        sg_persist_cpu_fence(p, &vcpu, SG_PERSIST_SFENCE);
    }
    row("store, CLWB, SFENCE", t, triples, "triple");
    t = seconds();
    for (unsigned i = 0; i < n; i++) {
        sg_persist_cpu_fence(p, &vcpu, SG_PERSIST_LOCKED);
    }
    row("fence with nothing to do", t, n, "fence");
}

static void big_ranges(void)
{
    double t;
    uint64_t value = 1;
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_LOSE_ALL };

    for (uint64_t len = 64; len <= GIB; len *= 64) {
        char what[64];

        t = seconds();
        for (unsigned i = 0; i < 1000; i++) {
            sg_persist_dma_write(p, &nic, len - 64, &value, 8);
            flush(0, len);
        }
        snprintf(what, sizeof(what), "Flush of %llu octets, one dirty line",
                 (unsigned long long)len);
        row(what, t, 1000, "flush");
    }
    for (uint64_t off = 0; off < GIB; off += 65536) {
        sg_persist_dma_write(p, &nic, off, media + GIB - 65536, 65536);
    }
    t = seconds();
    flush(0, GIB);
    row("Flush of 1 GiB, all dirty", t, 1, "flush");
    for (uint64_t off = 0; off < GIB; off += 65536) {
        sg_persist_dma_write(p, &nic, off, media + GIB - 65536, 65536);
    }
    t = seconds();
    sg_persist_report_free(sg_persist_cut(p, &policy));
    row("cut of 1 GiB, all dirty, lose-all", t, 1, "cut");
    sg_persist_restart(p);
}

static uint8_t *memory(void)
{
    uint8_t *m =
        mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (m == MAP_FAILED) {
        abort();
    }
    return m;
}

int main(void)
{
    struct sg_persist_config config;
    struct sg_persist_extent extent = { .size = GIB };
    uint8_t *buf = g_malloc(65536);

    memset(buf, 7, 65536);
    extent.visible = visible = memory();
    extent.media = media = memory();
    sg_persist_config_init(&config);
    config.placement_delay_ns = 0;
    config.posted_drain = SG_PERSIST_EAGER;
    config.cpu_tracking = true;
    p = sg_persist_new(&config, NULL, NULL, NULL);
    sg_persist_add(p, &extent);
    writes(buf);
    stores();
    big_ranges();
    sg_persist_free(p);
    g_free(buf);
    return 0;
}
