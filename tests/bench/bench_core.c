/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of the core alone: two adapters in one process and an immediate in-memory stream.
 *
 * The measurement contains all that the adapter does for a real guest: the driver writes entries
 * into rings and rings a doorbell; the adapter fetches and checks each entry, and frames its data
 * with CRC; the other adapter checks CRC, headers, STag and rights, and places the octets;
 * completions are written and polled.  Both ends and both drivers run on one CPU, so a rate
 * is one CPU's work for sending and receiving.
 *
 * memcpy is measured in the same run, over the same buffers in the same order.  "hot" uses one
 * buffer that stays in the cache, "cold" walks through 64 MiB.
 *
 *     bench_core [--json] [--seconds S] [--rounds N]
 *
 * Each number is the median of N rounds of S seconds of CPU time; in JSON, 0 is "not measured".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pair.h"

enum { AREA = 64 << 20, ENTRIES = 1024, BATCH = 64, MAX_ROUNDS = 99, COPY_MIN = 4096 };

static struct pair pair;
static uint64_t area[2]; /* registered memory of both sides */
static uint32_t stag[2];

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* other processes run, too */
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* pair_start() with room for the big areas. */
static void start(bool crc, uint32_t emss)
{
    const uint32_t all = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_READ;
    const struct sg_mem_options net = { .emss = emss };
    struct sg_adapter_config config;
    int i;

    pair_default_config(&config);
    config.engine.crc = crc;
    pair_start_sized(&pair, &config, &net, PAIR_MEM + AREA);
    pair_open(&pair, &(struct md_qp_params){ .entries = ENTRIES, .stride = 64 });
    pair_connect(&pair);
    for (i = 0; i < 2; i++) {
        area[i] = test_host_alloc(&pair.side[i].h, AREA, SG_PAGE_SIZE);
        memset(test_host_ptr(&pair.side[i].h, area[i]), i + 1, AREA);
        stag[i] = md_reg_mr(&pair.side[i].md, pair.side[i].pd, area[i], AREA, all);
        memset(pair.side[i].h.log_on, 0, sizeof(pair.side[i].h.log_on));
    }
}

static void stop(void)
{
    pair_close(&pair);
    pair_stop(&pair);
}

static void put_entry(struct md_qp *qp, uint8_t opcode, uint64_t off, uint32_t len, bool signaled)
{
    struct sg_wqe_hdr *h = md_sq_entry(qp);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);

    h->opcode = opcode;
    h->flags = signaled ? SG_WQE_SIGNALED : 0;
    h->num_sge = 1;
    sg_put_le64(&h->remote_addr, area[1] + off);
    sg_put_le32(&h->rkey, stag[1]);
    sg_put_le64(&sge->addr, area[0] + off);
    sg_put_le32(&sge->length, len);
    sg_put_le32(&sge->lkey, stag[0]);
}

/* Posts 'batch' entries of 'len' octets, waits for all completions; every one is signaled. */
static void round_trip(uint8_t opcode, uint32_t len, uint32_t batch, uint64_t *off, uint64_t span)
{
    struct pair_side *s = &pair.side[0];
    struct sg_cqe c;
    uint32_t i;

    for (i = 0; i < batch; i++) {
        put_entry(&s->qp, opcode, *off, len, true);
        *off = *off + len + len > span ? 0 : *off + len;
    }
    pair.side[0].h.now_ns = pair.side[1].h.now_ns = now();
    s->md.hold = true;
    md_sq_doorbell(&s->qp);
    s->md.hold = false;
    pair_settle(&pair);
    for (i = 0; i < batch; i++) {
        if (!md_poll(&s->cq, &c) || c.status != SG_WC_SUCCESS) {
            fprintf(stderr, "bench_core: completion %u: status %u\n", i, c.status);
            exit(1);
        }
    }
}

struct options {
    double seconds;
    int rounds;
    bool json;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), compare);
    return v[n / 2];
}

/* One round: operations per second. */
static double rate(double seconds, uint8_t opcode, uint32_t len, uint32_t batch, uint64_t span,
                   uint64_t *off)
{
    uint64_t begin = now(), end = begin + (uint64_t)(seconds * 1e9), at, n = 0;

    do {
        round_trip(opcode, len, batch, off, span);
        n += batch;
        at = now();
    } while (at < end);
    return (double)n * 1e9 / (double)(at - begin);
}

static double memcpy_rate(double seconds, uint32_t len, uint64_t span, uint64_t *off)
{
    uint8_t *dst = test_host_ptr(&pair.side[1].h, area[1]);
    const uint8_t *src = test_host_ptr(&pair.side[0].h, area[0]);
    uint64_t begin = now(), end = begin + (uint64_t)(seconds * 1e9), at, n = 0;

    do {
        memcpy(dst + *off, src + *off, len);
        __asm__ volatile("" : : "r"(dst) : "memory");
        *off = *off + len + len > span ? 0 : *off + len;
        n++;
        at = now();
    } while (at < end);
    return (double)n * 1e9 / (double)(at - begin);
}

struct bench_core_row {
    const char *name;
    uint8_t opcode;
    uint32_t len, batch;
    uint64_t span;
    bool crc;
    uint32_t emss;
};

static const struct bench_core_row rows[] = {
    { "write 64 B", SG_WR_WRITE, 64, BATCH, 64 * BATCH, true, 65535 },
    { "write 64 B, no CRC", SG_WR_WRITE, 64, BATCH, 64 * BATCH, false, 65535 },
    { "write 64 B, one at a time", SG_WR_WRITE, 64, 1, 64 * BATCH, true, 65535 },
    { "read 64 B", SG_WR_READ, 64, BATCH, 64 * BATCH, true, 65535 },
    { "write 64 KiB hot", SG_WR_WRITE, 65536, 4, 65536 * 4, true, 65535 },
    { "write 1 MiB cold", SG_WR_WRITE, 1 << 20, 4, AREA, true, 65535 },
    { "write 1 MiB cold, EMSS 8948", SG_WR_WRITE, 1 << 20, 4, AREA, true, 8948 },
    { "write 1 MiB cold, EMSS 1448", SG_WR_WRITE, 1 << 20, 4, AREA, true, 1448 },
    { "write 1 MiB cold, no CRC", SG_WR_WRITE, 1 << 20, 4, AREA, false, 65535 },
    { "read 1 MiB cold", SG_WR_READ, 1 << 20, 4, AREA, true, 65535 },
};

/* Rounds of both kinds alternate, so that a busy machine slows them alike. */
static void run_row(const struct options *o, const struct bench_core_row *row, bool last)
{
    double ops[MAX_ROUNDS], copy[MAX_ROUNDS], part[MAX_ROUNDS], gbs;
    uint64_t at = 0, copy_at = 0;
    int r;

    start(row->crc, row->emss);
    for (r = 0; r < o->rounds; r++) {
        ops[r] = rate(o->seconds, row->opcode, row->len, row->batch, row->span, &at);
        /* memcpy of a few octets would measure the clock. */
        copy[r] = row->len < COPY_MIN ? 0 : memcpy_rate(o->seconds, row->len, row->span, &copy_at);
        part[r] = copy[r] ? ops[r] / copy[r] : 0;
    }
    stop();
    ops[0] = median(ops, o->rounds);
    copy[0] = median(copy, o->rounds) * row->len / 1e9;
    part[0] = median(part, o->rounds);
    gbs = ops[0] * row->len / 1e9;
    if (o->json) {
        printf("  {\"name\": \"%s\", \"octets\": %u, \"crc\": %s, \"emss\": %u, "
               "\"ops_per_s\": %.0f, \"gb_per_s\": %.3f, \"memcpy_gb_per_s\": %.3f, "
               "\"part_of_memcpy\": %.3f}%s\n",
               row->name, row->len, row->crc ? "true" : "false", row->emss, ops[0], gbs, copy[0],
               part[0], last ? "" : ",");
    } else if (copy[0] == 0) {
        printf("%-30s %12.0f %10.2f %12s %9s\n", row->name, ops[0], gbs, "-", "-");
    } else {
        printf("%-30s %12.0f %10.2f %12.2f %7.0f %%\n", row->name, ops[0], gbs, copy[0],
               100 * part[0]);
    }
    fflush(stdout);
}

static int usage(void)
{
    fputs("usage: bench_core [--json] [--seconds S] [--rounds N]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct options o = { .seconds = 0.3, .rounds = 5 };
    size_t i, count = sizeof(rows) / sizeof(rows[0]);
    int a;

    for (a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--json") == 0) {
            o.json = true;
        } else if (strcmp(argv[a], "--seconds") == 0 && a + 1 < argc) {
            o.seconds = atof(argv[++a]);
        } else if (strcmp(argv[a], "--rounds") == 0 && a + 1 < argc) {
            o.rounds = atoi(argv[++a]);
        } else {
            return usage();
        }
    }
    if (o.rounds < 1 || o.rounds > MAX_ROUNDS || o.seconds <= 0) {
        return usage();
    }
    if (o.json) {
        puts("[");
    } else {
        printf("%-30s %12s %10s %12s %9s\n", "", "per second", "GB/s", "memcpy GB/s", "of it");
    }
    for (i = 0; i < count; i++) {
        run_row(&o, &rows[i], i + 1 == count);
    }
    if (o.json) {
        puts("]");
    }
    return 0;
}
