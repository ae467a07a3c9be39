// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pmem_bench ADDRESS WAY SIZE ITERATIONS [DIRTY]: measures the cost of remote persistence.
 *
 * It performs one operation after the other on log_server's memory, and waits for each:
 *
 *   flush     Write of SIZE, Flush to persistence
 *   read      Write of SIZE, Read of 8 octets: common practice without Flush
 *   message   Write of SIZE, Send; the server's CPU persists and answers
 *   write     Write of SIZE alone
 *   range     Flush of SIZE octets, after the first DIRTY of them were written and placed; only
 *             the Flush is timed
 *
 * Prints "median M p99 P" in microseconds.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_net.h"

enum { BUFFER = 1 << 20, LIMIT_S = 20 };

struct pmem_bench {
    struct log_net net;
    uint64_t size, dirty;
};

static void finish(struct pmem_bench *b, enum ibv_wc_opcode opcode)
{
    double limit = log_seconds() + LIMIT_S;
    struct ibv_wc wc;

    do {
        int n = ibv_poll_cq(b->net.cq, 1, &wc);

        if (n < 0 || (n == 0 && log_seconds() > limit)) {
            errno = ETIMEDOUT;
            log_die("completion");
        }
        if (n && wc.status != IBV_WC_SUCCESS) {
            fprintf(stderr, "%s (%#x)\n", ibv_wc_status_str(wc.status), wc.vendor_err);
            exit(1);
        }
        if (n && wc.opcode == opcode) {
            break;
        }
    } while (true);
    if (opcode == IBV_WC_RECV && log_post_receive(&b->net, wc.wr_id)) {
        log_die("receive");
    }
}

/* Posts a Write of any length, in pieces as large as the local buffer. */
static void write_octets(struct pmem_bench *b, uint64_t length, unsigned flags)
{
    struct ibv_qp_ex *qp = b->net.qp;

    for (uint64_t at = 0; at < length; at += BUFFER) {
        uint64_t piece = length - at < BUFFER ? length - at : BUFFER;
        bool last = at + piece == length;

        ibv_wr_start(qp);
        qp->wr_flags = last ? flags : 0;
        ibv_wr_rdma_write(qp, b->net.peer.rkey, b->net.peer.addr + at);
        ibv_wr_set_sge(qp, b->net.mr->lkey, (uintptr_t)log_user(&b->net), piece);
        if (ibv_wr_complete(qp)) {
            log_die("write");
        }
        if (!last && at / BUFFER % 64 == 63) {
            errno = EMSGSIZE;
            log_die("too much at once");
        }
    }
}

static void flush(struct pmem_bench *b, uint64_t length)
{
    struct ibv_qp_ex *qp = b->net.qp;

    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_flush(qp, b->net.peer.rkey, b->net.peer.addr, length, IBV_FLUSH_PERSISTENT,
                 IBV_FLUSH_RANGE);
    if (ibv_wr_complete(qp)) {
        log_die("flush");
    }
    finish(b, IBV_WC_FLUSH);
}

static void read_octets(struct pmem_bench *b)
{
    struct ibv_qp_ex *qp = b->net.qp;

    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(qp, b->net.peer.rkey, b->net.peer.addr);
    ibv_wr_set_sge(qp, b->net.mr->lkey, (uintptr_t)log_user(&b->net) + BUFFER, 8);
    if (ibv_wr_complete(qp)) {
        log_die("read");
    }
    finish(b, IBV_WC_RDMA_READ);
}

static void by_flush(struct pmem_bench *b)
{
    write_octets(b, b->size, 0);
    flush(b, b->size);
}

static void by_read(struct pmem_bench *b)
{
    write_octets(b, b->size, 0);
    read_octets(b);
}

static void by_message(struct pmem_bench *b)
{
    struct log_persist request = { 0, b->size };

    write_octets(b, b->size, 0);
    if (log_send(&b->net, &request, sizeof(request))) {
        log_die("send");
    }
    finish(b, IBV_WC_RECV);
}

static void by_write(struct pmem_bench *b)
{
    write_octets(b, b->size, IBV_SEND_SIGNALED);
    finish(b, IBV_WC_RDMA_WRITE);
}

static void dirty_range(struct pmem_bench *b)
{
    if (b->dirty) {
        memset(log_user(&b->net), rand(), BUFFER);
        write_octets(b, b->dirty, 0);
    }
    read_octets(b);
}

static void flush_range(struct pmem_bench *b)
{
    flush(b, b->size);
}

static const struct way {
    const char *name;
    void (*before)(struct pmem_bench *b); /* not timed */
    void (*timed)(struct pmem_bench *b);
} ways[] = {
    { "flush", NULL, by_flush },           { "read", NULL, by_read },
    { "message", NULL, by_message },       { "write", NULL, by_write },
    { "range", dirty_range, flush_range },
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void run(struct pmem_bench *b, const struct way *way, unsigned long count)
{
    double *times = calloc(count, sizeof(*times));

    if (!times) {
        log_die("memory");
    }
    for (unsigned long i = 0; i < count; i++) {
        double start;

        if (way->before) {
            way->before(b);
        }
        start = log_seconds();
        way->timed(b);
        times[i] = (log_seconds() - start) * 1e6;
    }
    qsort(times, count, sizeof(*times), compare);
    printf("median %.1f p99 %.1f\n", times[count / 2], times[count * 99 / 100]);
    free(times);
}

int main(int argc, char **argv)
{
    const struct way *way = NULL;
    struct pmem_bench b = { 0 };
    unsigned long count;

    for (size_t i = 0; argc >= 5 && i < sizeof(ways) / sizeof(ways[0]); i++) {
        way = strcmp(argv[2], ways[i].name) ? way : &ways[i];
    }
    count = argc >= 5 ? strtoul(argv[4], NULL, 0) : 0;
    if (!way || argc > 6 || !count) {
        fprintf(stderr, "usage: pmem_bench ADDRESS flush|read|message|write|range SIZE ITERATIONS "
                        "[DIRTY]\n");
        return 2;
    }
    b.size = strtoull(argv[3], NULL, 0);
    b.dirty = argc > 5 ? strtoull(argv[5], NULL, 0) : 0;
    log_connect(&b.net, argv[1], BUFFER + 4096);
    if (b.size > b.net.peer.length || b.dirty > b.size) {
        fprintf(stderr, "the server has only %llu octets\n", (unsigned long long)b.net.peer.length);
        return 2;
    }
    run(&b, way, count);
    log_close(&b.net);
    return 0;
}
