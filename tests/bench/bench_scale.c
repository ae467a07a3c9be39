/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of the core with many objects: two adapters in one process and an in-memory stream, as
 * in bench_core.c.
 *
 *     bench_scale [--json] [--seconds S] [--qps N] [--mrs N]
 *
 * Memory is what malloc() has given out, both adapters and the stream between them together, per
 * queue pair of one side; rings are the guest's and do not count.  Time is that of one RDMA Write
 * of 64 octets from doorbell to completion, one at a time, as CPU time and the best of three:
 *
 *   one      one queue pair is connected
 *   idle     all are connected, one writes
 *   few      all are connected, 64 write in turn
 *   all      all are connected, all write in turn: each finds its state out of the CPU's caches
 *
 * The factor is idle by one: what a write pays for the number of connections.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "many.h"

enum {
    TIMES = 3, FEW = 64,
    BETWEEN = 256, /* writes between two looks at the clock, which costs as much as one */
};

static struct many m;

struct numbers {
    double one_ns, idle_ns, few_ns, all_ns;
    double qp_octets, mr_octets, mr_ns, deep_ns;
};

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* others use the machine, too */
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void put_write(struct md_qp *qp, uint64_t off)
{
    struct pair_side *s = &m.pair.side[0];
    struct sg_sge sge = many_sge(s->buf + off, s->stag);

    many_put(qp, SG_WR_WRITE, 0, &sge, m.pair.side[1].buf + off, m.pair.side[1].stag);
}

static void reap(struct md_cq *cq, unsigned count)
{
    struct sg_cqe c = { .status = 0xff };

    pair_settle(&m.pair);
    for (unsigned i = 0; i < count; i++) {
        if (!md_poll(cq, &c) || c.status != SG_WC_SUCCESS) {
            fprintf(stderr, "bench_scale: completion %u of %u: status %u\n", i, count, c.status);
            exit(1);
        }
    }
}

/* ---- queue pairs ---- */

/* ns of a write, when the first *count* queue pairs write in turn. */
static double run(double seconds, unsigned count)
{
    uint64_t begin = now(), end = begin + (uint64_t)(seconds * 1e9), at, n = 0;
    unsigned next = 0;

    do {
        for (unsigned i = 0; i < BETWEEN; i++, n++) {
            struct md_qp *qp = &m.qp[0][next];

            put_write(qp, 0);
            md_sq_doorbell(qp);
            reap(&m.pair.side[0].cq, 1);
            next = next + 1 == count ? 0 : next + 1;
        }
        at = now();
    } while (at < end);
    return (double)(at - begin) / (double)n;
}

static double best(double seconds, unsigned count)
{
    double least = run(seconds / 4, count); /* to warm up; a run like the others otherwise */

    for (unsigned i = 0; i < TIMES; i++) {
        least = SG_MIN(least, run(seconds, count));
    }
    return least;
}

static void many_qps(unsigned count, double seconds, struct numbers *r)
{
    double before;

    many_connect(&m, 1);
    r->one_ns = best(seconds, 1);
    many_connect(&m, FEW);
    before = many_allocated();
    many_connect(&m, count);
    r->qp_octets = (many_allocated() - before) / (count - FEW) / 2;
    r->idle_ns = best(seconds, 1);
    r->few_ns = best(seconds, FEW);
    r->all_ns = best(seconds, count);
}

/* ---- depth ---- */

static void deep(struct numbers *r)
{
    struct md_qp qp[2];
    struct md_cq cq[2];
    uint64_t begin;

    many_deep(&m, qp, cq);
    for (unsigned i = 0; i < MANY_DEPTH; i++) {
        put_write(&qp[0], (uint64_t)i * MANY_LEN);
    }
    begin = now();
    md_sq_doorbell(&qp[0]);
    reap(&cq[0], MANY_DEPTH);
    r->deep_ns = (double)(now() - begin) / MANY_DEPTH;
}

/* ---- regions ---- */

static void many_mrs(unsigned count, struct numbers *r)
{
    struct pair_side *s = &m.pair.side[1];
    uint64_t page = test_host_alloc(&s->h, SG_PAGE_SIZE, SG_PAGE_SIZE);
    double before = many_allocated();
    uint64_t begin = now();

    for (unsigned i = 0; i < count; i++) {
        md_reg_mr(&s->md, s->pd, page, SG_PAGE_SIZE, SG_ACCESS_REMOTE_WRITE |
                  SG_ACCESS_LOCAL_WRITE);
    }
    r->mr_ns = (double)(now() - begin) / count;
    r->mr_octets = (many_allocated() - before) / count;
}

static void print(const struct numbers *r, unsigned qps, unsigned mrs, bool json)
{
    if (json) {
        printf("{\"qps\": %u, \"mrs\": %u, \"one_ns\": %.1f, \"idle_ns\": %.1f, "
               "\"few\": %d, \"few_ns\": %.1f, \"all_ns\": %.1f, \"factor\": %.3f, "
               "\"depth\": %d, \"deep_ns\": %.1f, \"qp_octets\": %.0f, \"mr_octets\": %.0f, "
               "\"mr_ns\": %.0f}\n", qps, mrs, r->one_ns, r->idle_ns, FEW, r->few_ns, r->all_ns,
               r->idle_ns / r->one_ns, MANY_DEPTH, r->deep_ns, r->qp_octets, r->mr_octets,
               r->mr_ns);
        return;
    }
    printf("# write of %d octets, 1 connected            %7.0f ns\n", MANY_LEN, r->one_ns);
    printf("# %5u connected, 1 writes                 %7.0f ns, factor %.2f\n", qps, r->idle_ns,
           r->idle_ns / r->one_ns);
    printf("# %5u connected, %d in turn               %7.0f ns\n", qps, FEW, r->few_ns);
    printf("# %5u connected, all in turn              %7.0f ns\n", qps, r->all_ns);
    printf("# %d outstanding on one                  %7.0f ns each\n", MANY_DEPTH, r->deep_ns);
    printf("# a connected queue pair                    %7.0f octets\n", r->qp_octets);
    printf("# one of %6u regions of a page            %7.0f octets, registered in %.0f ns\n", mrs,
           r->mr_octets, r->mr_ns);
}

int main(int argc, char **argv)
{
    struct numbers r = { 0 };
    unsigned qps = MANY_QPS, mrs = MANY_MRS;
    double seconds = 0.5;
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            json = true;
        } else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) {
            seconds = atof(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--qps")) {
            qps = (unsigned)strtoul(argv[++i], NULL, 0);
        } else if (i + 1 < argc && !strcmp(argv[i], "--mrs")) {
            mrs = (unsigned)strtoul(argv[++i], NULL, 0);
        } else {
            fprintf(stderr, "bench_scale [--json] [--seconds S] [--qps N] [--mrs N]\n");
            return 2;
        }
    }
    if (qps <= FEW || !mrs) {
        fprintf(stderr, "bench_scale: more than %d queue pairs and a region are needed\n", FEW);
        return 2;
    }
    if (!json) {
        printf("1..1\n");
    }
    many_start(&m, qps, 0);
    many_qps(qps, seconds, &r);
    deep(&r);
    many_mrs(mrs, &r);
    print(&r, qps, mrs, json);
    if (!json) {
        printf("ok 1 - %u queue pairs, %u regions\n", qps, mrs);
    }
    many_stop(&m);
    return 0;
}
