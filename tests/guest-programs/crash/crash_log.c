// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_log ADDRESS METHOD [RECORDS [SESSION [FIRST [DEVICE]]]]
 *
 * Writes records FIRST (0), FIRST + 1... into crash_server's memory, one after the other, and marks
 * each as acknowledged (sg_mark) once the method says that it is durable.  Methods, in groups of a
 * right one and what people mistake for it:
 *
 *   flush          Write, Flush of the record; the Flush's completion
 *   completion     ... the Write's completion, without a Flush
 *   wrong-range    ... the Flush of its first line only
 *   other-qp       ... the Flush on another connection
 *   one-write      Write of record and flag at once, then the Flush: right for who counts
 *                  acknowledgements, wrong for who trusts the flag
 *
 *   noted          as flush; then a note of the record in persistent memory of this machine, DEVICE
 *   noted-first    ... the note before the Write: wrong for who takes it for the record
 *   noted-dirty    ... the note is not flushed: wrong for who counts notes here
 *
 *   persist        Write, Send; the server flushes the record and answers
 *   visible        ... the server answers, because it has seen the message
 *   poll           ... without a Send: the server waits for the record's last octet
 *
 *   flag, inline   as persist; then the server stores and flushes a flag, in another line, or in
 *                  the record's last atom
 *   flag-dirty, flag-early, flag-first, inline-dirty, inline-early
 *                  ... it does not flush the flag; flushes before the store; flushes the flag
 *                  before the record
 */
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "crash_wire.h"
#include "log_net.h"
#include "staghorn_mark.h"

enum { RECORDS = 100, PATIENCE_S = 20, NOTES = 2 << 20 };

/* A mark names a Write by its wr_id, so no other request has it: Sends have 0. */
#define FLUSH_ID (UINT64_C(1) << 32)

enum crash_flush { FLUSH_NOTHING, FLUSH_RECORD, FLUSH_FIRST_LINE, FLUSH_ELSEWHERE };

enum crash_note { NOTE_NEVER, NOTE_LAST, NOTE_FIRST, NOTE_DIRTY };

struct crash_method {
    const char *name;
    uint8_t flush;   /* enum crash_flush */
    uint8_t note;    /* enum crash_note */
    bool ask, flag;  /* send a message to the server; the record ends with a flag */
    uint8_t service; /* enum crash_service of the message */
};

static const struct crash_method methods[] = {
    { "flush", .flush = FLUSH_RECORD },
    { "completion", .flush = FLUSH_NOTHING },
    { "wrong-range", .flush = FLUSH_FIRST_LINE },
    { "other-qp", .flush = FLUSH_ELSEWHERE },
    { "one-write", .flush = FLUSH_RECORD, .flag = true },
    { "noted", .flush = FLUSH_RECORD, .note = NOTE_LAST },
    { "noted-first", .flush = FLUSH_RECORD, .note = NOTE_FIRST },
    { "noted-dirty", .flush = FLUSH_RECORD, .note = NOTE_DIRTY },
    { "persist", .ask = true, .service = CRASH_PERSIST },
    { "visible", .ask = true, .service = CRASH_NOTHING },
    { "poll", .service = CRASH_POLL },
    { "flag", .ask = true, .service = CRASH_FLAG },
    { "flag-dirty", .ask = true, .service = CRASH_FLAG_DIRTY },
    { "flag-early", .ask = true, .service = CRASH_FLAG_EARLY },
    { "flag-first", .ask = true, .service = CRASH_FLAG_FIRST },
    { "inline", .ask = true, .service = CRASH_INLINE },
    { "inline-dirty", .ask = true, .service = CRASH_INLINE_DIRTY },
    { "inline-early", .ask = true, .service = CRASH_INLINE_EARLY },
};

static const struct crash_method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (!strcmp(methods[i].name, name)) {
            return &methods[i];
        }
    }
    fprintf(stderr, "crash_log: %s is no method; these are:", name);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        fprintf(stderr, " %s", methods[i].name);
    }
    fprintf(stderr, "\n");
    exit(2);
}

/* Waits for the completion of that kind; others are dropped. */
static void wait_for(struct log_net *net, enum ibv_wc_opcode opcode)
{
    double start = log_seconds();
    struct ibv_wc wc;

    do {
        int n = ibv_poll_cq(net->cq, 1, &wc);

        if (n < 0 || (n == 0 && log_seconds() - start > PATIENCE_S)) {
            errno = ETIMEDOUT;
            log_die("completion");
        }
        if (n == 0) {
            continue;
        }
        if (wc.status != IBV_WC_SUCCESS) {
            fprintf(stderr, "crash_log: %s\n", ibv_wc_status_str(wc.status));
            exit(1);
        }
        if (wc.opcode == IBV_WC_RECV && log_post_receive(net, wc.wr_id)) {
            log_die("receive");
        }
        if (wc.opcode == opcode) {
            return;
        }
    } while (true);
}

static void post_flush(struct log_net *net, uint32_t number, uint64_t addr, size_t len)
{
    ibv_wr_start(net->qp);
    net->qp->wr_id = FLUSH_ID + number;
    net->qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_flush(net->qp, net->peer.rkey, addr, len, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
    if (ibv_wr_complete(net->qp)) {
        log_die("Flush");
    }
}

static void post_write(struct log_net *net, uint32_t number, uint64_t addr, uint32_t len,
                       bool signalled)
{
    ibv_wr_start(net->qp);
    net->qp->wr_id = number + 1;
    net->qp->wr_flags = signalled ? IBV_SEND_SIGNALED : 0;
    ibv_wr_rdma_write(net->qp, net->peer.rkey, addr);
    ibv_wr_set_sge(net->qp, net->mr->lkey, (uintptr_t)log_user(net), len);
    if (ibv_wr_complete(net->qp)) {
        log_die("Write");
    }
}

static void ask(struct log_net *net, const struct log_request *request)
{
    if (log_send(net, request, sizeof(*request))) {
        log_die("Send");
    }
}

/* ---- notes in persistent memory of this machine ---- */

static uint8_t *notes; /* NULL: there is none */

static void map_notes(const char *name)
{
    int fd = open(name, O_RDWR);

    notes = fd < 0 ? MAP_FAILED : mmap(NULL, NOTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (notes == MAP_FAILED) {
        log_die(name);
    }
}

/* Not inlined, so that an explanation can name it. */
__attribute__((noinline)) static void note(const struct log_request *request, bool flush)
{
    uint64_t *at = (uint64_t *)(notes + (size_t)request->number * CRASH_LINE);

    __atomic_store_n(at, crash_flag(request->session), __ATOMIC_RELEASE);
    if (flush) {
        _mm_clwb(at);
    }
    _mm_sfence();
}

/* ---- records ---- */

static void acknowledge(uint32_t number)
{
    char text[32];

    snprintf(text, sizeof(text), "wr_id=%u", number + 1);
    sg_mark("acknowledged", text);
}

/* Makes a record in our memory; returns its length. */
static uint32_t make_record(struct log_net *net, const struct crash_method *method,
                            const struct log_request *request)
{
    struct log_record *record = (struct log_record *)log_user(net);

    if (method->service == CRASH_POLL) {
        memset(record, crash_octet(request->number), CRASH_LONG);
        return CRASH_LONG;
    }
    log_make(record, request->session, request->number);
    if (method->flag) {
        record->payload[LOG_RECORD / 8 - 2] = crash_flag(request->session);
    }
    return LOG_RECORD;
}

/* One record, until the method takes it for durable. */
static void append(struct log_net *net, struct log_net *other, const struct crash_method *method,
                   const struct log_request *request)
{
    uint32_t number = request->number, len = make_record(net, method, request);
    uint64_t addr = net->peer.addr + LOG_RECORDS + (uint64_t)number * len;
    bool flush = method->flush == FLUSH_RECORD || method->flush == FLUSH_FIRST_LINE;
    bool answered = method->ask || method->service == CRASH_POLL;

    if (method->note == NOTE_FIRST) {
        note(request, true);
    }
    post_write(net, number, addr, len, !flush);
    if (flush) {
        post_flush(net, number, addr, method->flush == FLUSH_RECORD ? LOG_RECORD : CRASH_LINE);
    }
    if (method->ask) {
        ask(net, request);
    }
    wait_for(net, flush ? IBV_WC_FLUSH : answered ? IBV_WC_RECV : IBV_WC_RDMA_WRITE);
    if (method->flush == FLUSH_ELSEWHERE) {
        post_flush(other, number, addr, LOG_RECORD);
        wait_for(other, IBV_WC_FLUSH);
    }
    if (method->note == NOTE_LAST || method->note == NOTE_DIRTY) {
        note(request, method->note == NOTE_LAST);
    }
    acknowledge(number);
}

int main(int argc, char **argv)
{
    uint32_t records = argc > 3 ? strtoul(argv[3], NULL, 0) : RECORDS;
    uint32_t first = argc > 5 ? strtoul(argv[5], NULL, 0) : 0;
    struct log_request request = { .count = 1, .session = 1 };
    const struct crash_method *method;
    struct log_net net, other;
    double start;

    if (argc < 3 || argc > 7 || !records || first > CRASH_RECORDS_MAX ||
        records > CRASH_RECORDS_MAX - first) {
        fprintf(stderr,
                "usage: crash_log ADDRESS METHOD [RECORDS [SESSION [FIRST [DEVICE]]]], "
                "of %d\n",
                CRASH_RECORDS_MAX);
        return 2;
    }
    method = find_method(argv[2]);
    if ((method->note != NOTE_NEVER) != (argc == 7)) {
        fprintf(stderr, "crash_log: the methods noted, noted-first and noted-dirty need DEVICE\n");
        return 2;
    }
    if (argc == 7) {
        map_notes(argv[6]);
    }
    request.session = argc > 4 ? strtoul(argv[4], NULL, 0) : 1;
    request.service = method->service;
    log_connect(&net, argv[1], CRASH_LONG);
    if (method->flush == FLUSH_ELSEWHERE) {
        log_connect(&other, argv[1], LOG_RECORD);
    }
    if (method->service == CRASH_POLL) {
        ask(&net, &(struct log_request){ CRASH_POLL, first, records, request.session });
    }
    start = log_seconds();
    for (request.number = first; request.number < first + records; request.number++) {
        append(&net, &other, method, &request);
    }
    printf("seconds %.6f\n", log_seconds() - start);
    printf("acknowledged %u\n", records);
    log_close(&net);
    if (method->flush == FLUSH_ELSEWHERE) {
        log_close(&other);
    }
    return 0;
}
