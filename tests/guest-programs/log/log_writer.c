// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * log_writer ADDRESS SESSION [--no-flush] [--no-verify] [--window N] [--seconds S]
 *
 * Appends records to the log in log_server's memory, as fast as it can, until the time is over or
 * the server no longer answers.  Each transaction is posted as a whole, without waiting in between:
 *
 *   Write           the record
 *   Flush           of the record, to persistence
 *   Verify          of the record by its CRC32C: the medium has what was written
 *   Atomic Write    the tail, which counts one record more
 *   Flush           of the tail, to persistence
 *
 * N transactions are in flight at a time; the last completion of each acknowledges its record.
 * With --no-flush only Write and Atomic Write remain, as in a program that mistakes completion for
 * persistence.  Last line: "acknowledged N posted M seconds S".  The exit status is 0, also
 * if the server is gone.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "log_format.h"
#include "log_net.h"

#define SILENCE_S 2.5 /* without a completion: then the server is gone */
#define GOING 100     /* acknowledged records after which "going" is printed */

struct writer {
    struct log_net net;
    uint32_t session, window, room;
    uint32_t posted, acknowledged;
    bool flush, verify;
    double seconds;
};

static void flush(struct writer *w, uint64_t addr, size_t length)
{
    ibv_wr_flush(w->net.qp, w->net.peer.rkey, addr, length, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

static void verify(struct writer *w, const struct log_record *record, uint64_t addr)
{
    uint32_t crc = log_crc32c(record, sizeof(*record));
    struct sgdv_verify request = {
        .remote_addr = addr,
        .rkey = w->net.peer.rkey,
        .length = sizeof(*record),
        .expected = &crc,
        .expected_len = sizeof(crc),
    };

    sgdv_wr_verify(w->net.qp, &request);
}

/* Posts the transaction of the next record. */
static void append(struct writer *w)
{
    struct ibv_qp_ex *qp = w->net.qp;
    uint32_t rkey = w->net.peer.rkey, number = w->posted;
    uint64_t addr = w->net.peer.addr + LOG_RECORDS + (uint64_t)number * LOG_RECORD;
    uint64_t tail = log_tail(w->session, number + 1);
    struct log_record *record = (struct log_record *)log_user(&w->net) + number % w->window;

    log_make(record, w->session, number);
    ibv_wr_start(qp);
    qp->wr_id = number;
    qp->wr_flags = 0;
    ibv_wr_rdma_write(qp, rkey, addr);
    ibv_wr_set_sge(qp, w->net.mr->lkey, (uintptr_t)record, sizeof(*record));
    if (w->flush) {
        flush(w, addr, sizeof(*record));
    }
    if (w->verify) {
        verify(w, record, addr);
    }
    qp->wr_flags = w->flush ? 0 : IBV_SEND_SIGNALED;
    ibv_wr_atomic_write(qp, rkey, w->net.peer.addr + LOG_TAIL, &tail);
    if (w->flush) {
        qp->wr_flags = IBV_SEND_SIGNALED;
        flush(w, w->net.peer.addr + LOG_TAIL, sizeof(tail));
    }
    errno = ibv_wr_complete(qp);
    if (errno) {
        log_die("post");
    }
    w->posted++;
}

/* Takes completions; false when the connection is over. */
static bool collect(struct writer *w, double *heard)
{
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(w->net.cq, 16, wc);

    for (int i = 0; i < n; i++) {
        if (wc[i].status != IBV_WC_SUCCESS) {
            fprintf(stderr, "record %u: %s (%#x)\n", (unsigned)wc[i].wr_id,
                    ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
            return false;
        }
        if (wc[i].wr_id != w->acknowledged) {
            fprintf(stderr, "completion %u out of order\n", (unsigned)wc[i].wr_id);
            exit(1);
        }
        w->acknowledged++;
        if (w->acknowledged == GOING) {
            printf("going\n");
        }
    }
    if (n) {
        *heard = log_seconds();
    }
    return n >= 0 && log_seconds() - *heard < SILENCE_S;
}

static void run(struct writer *w)
{
    double start = log_seconds(), heard = start;

    while (collect(w, &heard)) {
        bool more = heard - start < w->seconds && w->posted < w->room;

        while (more && w->posted - w->acknowledged < w->window) {
            append(w);
            more = w->posted < w->room;
        }
        if (!more && w->posted == w->acknowledged) {
            break;
        }
    }
    printf("acknowledged %u posted %u seconds %.3f\n", w->acknowledged, w->posted, heard - start);
}

static void options(struct writer *w, int argc, char **argv)
{
    static const struct option known[] = {
        { "no-flush", no_argument, NULL, 'f' },
        { "no-verify", no_argument, NULL, 'v' },
        { "window", required_argument, NULL, 'w' },
        { "seconds", required_argument, NULL, 's' },
        { 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'f':
            w->flush = w->verify = false;
            break;
        case 'v':
            w->verify = false;
            break;
        case 'w':
            w->window = strtoul(optarg, NULL, 0);
            break;
        case 's':
            w->seconds = strtod(optarg, NULL);
            break;
        default:
            exit(2);
        }
    }
    if (argc - optind != 2 || w->window < 1 || w->window > LOG_SQ / 8) {
        fprintf(stderr,
                "usage: log_writer ADDRESS SESSION [--no-flush] [--no-verify] "
                "[--window 1..%d] [--seconds S]\n",
                LOG_SQ / 8);
        exit(2);
    }
    w->session = strtoul(argv[optind + 1], NULL, 0);
}

int main(int argc, char **argv)
{
    struct writer w = { .window = 16, .flush = true, .verify = true, .seconds = 3600 };

    setlinebuf(stdout);
    options(&w, argc, argv);
    log_connect(&w.net, argv[optind], (size_t)w.window * LOG_RECORD);
    w.room = log_room(w.net.peer.length);
    run(&w);
    return 0;
}
