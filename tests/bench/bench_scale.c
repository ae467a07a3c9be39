/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of the core with many objects: two adapters in one process and an in-memory stream, as
 * in bench_core.c.
 *
 *     bench_scale [--json] [--seconds S] [--qps N] [--mrs N]
 *
 * Memory is what malloc() has given out, both adapters and the stream between them together, per
 * queue pair of one side; rings are the guest's and do not count.  Time is that of one RDMA Write
 * of 64 octets from doorbell to completion, one doorbell each:
 *
 *   one      one queue pair is connected
 *   idle     all are connected, one writes
 *   few      64 are connected and write in turn
 *   all      all are connected and write in turn: each finds its state out of the CPU's caches
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pair.h"

enum {
    LEN = 64, TURN = 64, DEEP = 4096, RINGS = 3 * SG_PAGE_SIZE,
    QPS = 16384, MRS = 262144,
};

static struct pair pair;
static struct md_qp *qps[2];

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

static double allocated(void)
{
    struct mallinfo2 m = mallinfo2();

    return (double)m.uordblks + (double)m.hblkhd;
}

/* ---- queue pairs ---- */

static void open_one(unsigned i, uint32_t entries)
{
    for (int side = 0; side < 2; side++) {
        struct pair_side *s = &pair.side[side];

        md_create_qp(&s->md, &qps[side][i], &(struct md_qp_params){
            .pd = s->pd, .scq = &s->cq, .rcq = &s->cq, .entries = entries, .stride = 64,
        });
        s->qp = qps[side][i];
    }
    pair_connect(&pair);
    for (int side = 0; side < 2; side++) {
        qps[side][i] = pair.side[side].qp;
        md_arm_eq(&pair.side[side].md, 0);
    }
}

static void put_write(struct md_qp *qp, uint64_t off)
{
    struct pair_side *s = &pair.side[0];
    struct sg_wqe_hdr *h = md_sq_entry(qp);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);

    h->opcode = SG_WR_WRITE;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = 1;
    sg_put_le64(&h->remote_addr, pair.side[1].buf + off);
    sg_put_le32(&h->rkey, pair.side[1].stag);
    sg_put_le64(&sge->addr, s->buf + off);
    sg_put_le32(&sge->length, LEN);
    sg_put_le32(&sge->lkey, s->stag);
}

static void reap(struct md_cq *cq, unsigned count)
{
    struct sg_cqe c;

    pair_settle(&pair);
    for (unsigned i = 0; i < count; i++) {
        if (!md_poll(cq, &c) || c.status != SG_WC_SUCCESS) {
            fprintf(stderr, "bench_scale: completion %u of %u: status %u\n", i, count, c.status);
            exit(1);
        }
    }
}

/* TURN writes on so many queue pairs in turn from *first on, a doorbell each. */
static void turn(unsigned *first, unsigned count)
{
    pair.side[0].md.hold = true;
    for (unsigned i = 0; i < TURN; i++) {
        struct md_qp *qp = &qps[0][*first];

        *first = (*first + 1) % count;
        put_write(qp, (uint64_t)i * LEN);
        md_sq_doorbell(qp);
    }
    pair.side[0].md.hold = false;
    reap(&pair.side[0].cq, TURN);
}

static void single(void)
{
    put_write(&qps[0][0], 0);
    md_sq_doorbell(&qps[0][0]);
    reap(&pair.side[0].cq, 1);
}

/* ns of a write; count 0: one after the other on the first queue pair. */
static double cost(double seconds, unsigned count)
{
    uint64_t begin = now(), end = begin + (uint64_t)(seconds * 1e9), at, n = 0;
    unsigned first = 0;

    do {
        if (count) {
            turn(&first, count);
            n += TURN;
        } else {
            single();
            n++;
        }
        at = now();
    } while (at < end);
    return (double)(at - begin) / (double)n;
}

static void many_qps(unsigned count, double seconds, struct numbers *r)
{
    double before;

    qps[0] = calloc(count, sizeof(struct md_qp));
    qps[1] = calloc(count, sizeof(struct md_qp));
    open_one(0, 4);
    cost(seconds / 4, 0);
    r->one_ns = cost(seconds, 0);
    for (unsigned i = 1; i < TURN; i++) {
        open_one(i, 4);
    }
    cost(seconds / 4, TURN);
    r->few_ns = cost(seconds, TURN);
    before = allocated();
    for (unsigned i = TURN; i < count; i++) {
        open_one(i, 4);
    }
    r->qp_octets = (allocated() - before) / (count - TURN) / 2;
    r->idle_ns = cost(seconds, 0);
    cost(seconds / 4, count);
    r->all_ns = cost(seconds, count);
}

/* ---- depth ---- */

static void deep(struct numbers *r)
{
    struct pair_side *s = &pair.side[0];
    struct md_qp shallow = qps[0][0];
    struct md_cq cq;
    uint64_t begin;

    md_create_cq(&s->md, &cq, DEEP);
    for (int side = 0; side < 2; side++) {
        md_create_qp(&pair.side[side].md, &pair.side[side].qp, &(struct md_qp_params){
            .pd = pair.side[side].pd, .scq = side ? &pair.side[1].cq : &cq,
            .rcq = side ? &pair.side[1].cq : &cq, .entries = DEEP, .stride = 64,
        });
    }
    pair_connect(&pair);
    s->md.hold = true;
    for (unsigned i = 0; i < DEEP; i++) {
        put_write(&s->qp, (uint64_t)(i % TURN) * LEN);
    }
    begin = now();
    md_sq_doorbell(&s->qp);
    s->md.hold = false;
    reap(&cq, DEEP);
    r->deep_ns = (double)(now() - begin) / DEEP;
    s->qp = shallow;
}

/* ---- regions ---- */

static void many_mrs(unsigned count, struct numbers *r)
{
    struct pair_side *s = &pair.side[1];
    uint64_t page = test_host_alloc(&s->h, SG_PAGE_SIZE, SG_PAGE_SIZE);
    double before = allocated();
    uint64_t begin = now();

    for (unsigned i = 0; i < count; i++) {
        md_reg_mr(&s->md, s->pd, page, SG_PAGE_SIZE, SG_ACCESS_REMOTE_WRITE |
                  SG_ACCESS_LOCAL_WRITE);
    }
    r->mr_ns = (double)(now() - begin) / count;
    r->mr_octets = (allocated() - before) / count;
}

static void print(const struct numbers *r, unsigned qp_count, unsigned mr_count, bool json)
{
    if (json) {
        printf("{\"qps\": %u, \"mrs\": %u, \"one_ns\": %.1f, \"idle_ns\": %.1f, "
               "\"few_ns\": %.1f, \"all_ns\": %.1f, \"qp_octets\": %.0f, \"mr_octets\": %.0f, "
               "\"mr_ns\": %.0f, \"deep_ns\": %.1f}\n", qp_count, mr_count, r->one_ns, r->idle_ns,
               r->few_ns, r->all_ns, r->qp_octets, r->mr_octets, r->mr_ns, r->deep_ns);
        return;
    }
    printf("# write of %d octets, 1 of 1 queue pair      %7.0f ns\n", LEN, r->one_ns);
    printf("# 1 of %5u                                %7.0f ns, factor %.2f\n", qp_count,
           r->idle_ns, r->idle_ns / r->one_ns);
    printf("# %d in turn                                 %7.0f ns\n", TURN, r->few_ns);
    printf("# %5u in turn                              %7.0f ns, factor %.2f\n", qp_count,
           r->all_ns, r->all_ns / r->few_ns);
    printf("# a connected queue pair                    %7.0f octets\n", r->qp_octets);
    printf("# %d writes outstanding                   %7.0f ns each\n", DEEP, r->deep_ns);
    printf("# one of %6u regions of a page            %7.0f octets, registered in %.0f ns\n",
           mr_count, r->mr_octets, r->mr_ns);
}

int main(int argc, char **argv)
{
    struct sg_adapter_config config;
    static const struct sg_mem_options net;
    struct numbers r = { 0 };
    unsigned qp_count = QPS, mr_count = MRS;
    double seconds = 0.5;
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            json = true;
        } else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) {
            seconds = atof(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--qps")) {
            qp_count = (unsigned)strtoul(argv[++i], NULL, 0);
        } else if (i + 1 < argc && !strcmp(argv[i], "--mrs")) {
            mr_count = (unsigned)strtoul(argv[++i], NULL, 0);
        } else {
            fprintf(stderr, "bench_scale [--json] [--seconds S] [--qps N] [--mrs N]\n");
            return 2;
        }
    }
    if (qp_count <= TURN) {
        fprintf(stderr, "bench_scale: more than %d queue pairs are needed\n", TURN);
        return 2;
    }
    if (!json) {
        printf("1..1\n");
    }
    pair_default_config(&config);
    pair_start_sized(&pair, &config, &net, PAIR_MEM + 8 * (size_t)DEEP * 64 +
                     (size_t)qp_count * RINGS + (size_t)SG_PRIVATE_DATA_MAX);
    for (int side = 0; side < 2; side++) {
        memset(pair.side[side].h.log_on, 0, sizeof(pair.side[side].h.log_on));
    }
    many_qps(qp_count, seconds, &r);
    deep(&r);
    many_mrs(mr_count, &r);
    print(&r, qp_count, mr_count, json);
    if (!json) {
        printf("ok 1 - %u queue pairs, %u regions\n", qp_count, mr_count);
    }
    pair_stop(&pair);
    free(qps[0]);
    free(qps[1]);
    return 0;
}
