/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of the core with many objects: two adapters in one process and an in-memory stream, as
 * in bench_core.c; and the same over TCP, as between two VMs.  With TCP the clock advances 10 us
 * with each write, so that the timers of the connections count.
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
 * The factor is idle divided by one: the cost of a write that the other connections cause.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "many.h"
#include "tcp_link.h"

enum {
    TIMES = 3,
    FEW = 64,
    PASS_NS = 10000,
    BETWEEN = 256, /* writes between two reads of the clock; a read costs as much as a write */
};

static struct many m;

struct scale {
    double one_ns, idle_ns, few_ns, all_ns, qp_octets;
};

struct numbers {
    struct scale mem, tcp;
    double mr_octets, mr_ns, deep_ns;
    double syn_one_ns, syn_idle_ns;
};

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* other processes run, too */
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
            if (m.pair.link) {
                pair_pass(&m.pair, PASS_NS);
            }
            next = next + 1 == count ? 0 : next + 1;
        }
        at = now();
    } while (at < end);
    return (double)(at - begin) / (double)n;
}

static double best(double seconds, unsigned count)
{
    double least = run(seconds / 4, count); /* also warms up */

    for (unsigned i = 0; i < TIMES; i++) {
        least = SG_MIN(least, run(seconds, count));
    }
    return least;
}

static void many_qps(unsigned count, double seconds, struct scale *r)
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

/* ---- an unknown peer's SYN ---- */

/* RFC 1071; 'len' is even. */
static uint16_t checksum(const uint8_t *p, size_t len, uint32_t sum)
{
    for (size_t i = 0; i < len; i += 2) {
        sum += sg_get_be16(p + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~((sum & 0xffff) + (sum >> 16));
}

/* A peer at an address of its own; its RST removes the half-open connection again. */
static void unknown_peer(uint8_t flags, uint32_t seq)
{
    uint8_t f[54] = { 0 }, *ip = f + 14, *tcp = ip + 20;
    uint32_t pseudo_header = 6 + 20; /* the protocol, the length */

    tcp_link_mac(f, 1);
    tcp_link_mac(f + 6, 0);
    sg_put_be16(f + 12, 0x0800);
    ip[0] = 0x45;
    sg_put_be16(ip + 2, 40);
    ip[8] = 64;
    ip[9] = 6;
    memcpy(ip + 12, (uint8_t[]){ 10, 0, 0, 77 }, 4);
    memcpy(ip + 16, m.pair.side[1].at.ip, 4);
    sg_put_be16(ip + 10, checksum(ip, 20, 0));
    sg_put_be16(tcp, 4000);
    sg_put_be16(tcp + 2, PAIR_PORT);
    sg_put_be32(tcp + 4, seq);
    tcp[12] = 0x50;
    tcp[13] = flags;
    sg_put_be16(tcp + 14, 0xffff);
    for (unsigned i = 12; i < 20; i += 2) {
        pseudo_header += sg_get_be16(ip + i);
    }
    sg_put_be16(tcp + 16, checksum(tcp, 20, pseudo_header));
    tcp_link_inject(m.pair.link, 1, f, sizeof(f));
}

/* ns of a SYN and of the RST that follows. */
static double best_syn(void)
{
    double least = 1e9;
    struct sg_port_counters c;

    unknown_peer(2, 1000);
    sg_port_counters(tcp_link_port(m.pair.link, 1), &c);
    if (c.connections != m.count + 1) {
        fprintf(stderr, "bench_scale: the SYN opened nothing\n");
        exit(1);
    }
    unknown_peer(4, 1001);
    for (unsigned i = 0; i < TIMES; i++) {
        uint64_t begin = now();

        for (unsigned k = 0; k < 4096; k++) {
            unknown_peer(2, 1000);
            unknown_peer(4, 1001);
        }
        least = SG_MIN(least, (double)(now() - begin) / 4096);
        pair_settle(&m.pair);
    }
    return least;
}

static void over_tcp(unsigned count, double seconds, struct numbers *r)
{
    many_start_tcp(&m, count, 0);
    many_connect(&m, 1);
    r->syn_one_ns = best_syn();
    many_qps(count, seconds, &r->tcp);
    r->tcp.qp_octets -= MANY_TCP_RING;
    pair_pass(&m.pair, 1000000000);
    r->syn_idle_ns = best_syn();
    many_stop(&m);
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
        md_reg_mr(&s->md, s->pd, page, SG_PAGE_SIZE,
                  SG_ACCESS_REMOTE_WRITE | SG_ACCESS_LOCAL_WRITE);
    }
    r->mr_ns = (double)(now() - begin) / count;
    r->mr_octets = (many_allocated() - before) / count;
}

static void print_json(const struct numbers *r, unsigned qps, unsigned mrs)
{
    const struct scale *kinds[] = { &r->mem, &r->tcp };

    printf("{\"qps\": %u, \"mrs\": %u, \"few\": %d, \"depth\": %d, \"deep_ns\": %.1f, "
           "\"mr_octets\": %.0f, \"mr_ns\": %.0f, \"syn_one_ns\": %.0f, \"syn_idle_ns\": %.0f",
           qps, mrs, FEW, MANY_DEPTH, r->deep_ns, r->mr_octets, r->mr_ns, r->syn_one_ns,
           r->syn_idle_ns);
    for (int i = 0; i < 2; i++) {
        printf(", \"%s\": {\"one_ns\": %.1f, \"idle_ns\": %.1f, \"few_ns\": %.1f, "
               "\"all_ns\": %.1f, \"factor\": %.3f, \"qp_octets\": %.0f}",
               i ? "tcp" : "mem", kinds[i]->one_ns, kinds[i]->idle_ns, kinds[i]->few_ns,
               kinds[i]->all_ns, kinds[i]->idle_ns / kinds[i]->one_ns, kinds[i]->qp_octets);
    }
    printf("}\n");
}

static void print_scale(const char *how, const struct scale *r, unsigned qps)
{
    printf("# %s: write of %d octets, 1 connected   %7.0f ns\n", how, MANY_LEN, r->one_ns);
    printf("# %5u connected, 1 writes                 %7.0f ns, factor %.2f\n", qps, r->idle_ns,
           r->idle_ns / r->one_ns);
    printf("# %5u connected, %d in turn               %7.0f ns\n", qps, FEW, r->few_ns);
    printf("# %5u connected, all in turn              %7.0f ns\n", qps, r->all_ns);
    printf("# a connected queue pair                    %7.0f octets\n", r->qp_octets);
}

static void print(const struct numbers *r, unsigned qps, unsigned mrs)
{
    print_scale("in memory", &r->mem, qps);
    print_scale("over TCP", &r->tcp, qps);
    printf("# an unknown peer's SYN and RST, 1 connected     %7.0f ns\n", r->syn_one_ns);
    printf("# %5u connected                           %7.0f ns\n", qps, r->syn_idle_ns);
    printf("# %d outstanding on one                  %7.0f ns each\n", MANY_DEPTH, r->deep_ns);
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
    many_qps(qps, seconds, &r.mem);
    deep(&r);
    many_mrs(mrs, &r);
    many_stop(&m);
    over_tcp(qps, seconds, &r);
    if (json) {
        print_json(&r, qps, mrs);
    } else {
        print(&r, qps, mrs);
        printf("ok 1 - %u queue pairs, %u regions\n", qps, mrs);
    }
    return 0;
}
