/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark: staghorn-explore on a long run, on one platform and on all.
 *
 *     SG_EXPLORE=PATH build/native/tests/unit/crash/bench-explore [EVENTS [RUN [OPTION...]]]
 *
 * A server on 64 MiB: records come by RDMA Writes with a Flush for each eight; its CPU looks at
 * them, writes an index entry, and says by a mark that it is durable; besides, it has a log of its
 * own with CLWB and SFENCE.  Prints the program's time, elapsed and of the processor, all passes
 * together.  tools/bench/bench-explore has the targets.
 *
 * RUN is "plain", that is this run; "beside": a record of 56 octets for each Flush, and before it
 * the CPU stores 8 octets in the same line, with a fence; "full": the same, and the memory has
 * content; "open": without the fence, so that pasts stay different.  Further arguments are options
 * of the program.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/prng.h"
#include "persist/persist.h"
#include "staghorn/io.h"
#include "trace/writer.h"

enum { SIZE = 64 << 20, QPN = 1, RECORD = 64, RECORDS = 8, STORES = 12, HALF = SIZE / 2 };

#define BASE 0x100000000ull

struct side {
    struct sg_trace_writer *w;
    FILE *file;
};

static struct side target, client;
static uint64_t frames, ordinal, wr_id;
static unsigned records = RECORDS, record = RECORD; /* for each Flush; octets of one */
static bool beside, full, open_end;

static bool sink(void *opaque, const uint8_t *octets, size_t len)
{
    return fwrite(octets, 1, len, opaque) == len;
}

static void put(struct side *m, struct sg_trace_event e)
{
    sg_assert(sg_trace_write(m->w, &e));
}

static void frame(struct side *from, struct side *to)
{
    struct sg_trace_event e = { .kind = SG_TRACE_FRAME, .len = 1500, .arg = 1 };

    e.value = (uint32_t)(frames++ * 0x9e3779b1u);
    put(from, e);
    e.arg = 0;
    put(to, e);
}

static void connect_both(void)
{
    uint8_t ends[36] = { [15] = 1, [31] = 2, [33] = 1, [35] = 2 };
    struct sg_trace_event e = { .kind = SG_TRACE_CONNECTED, .qpn = QPN, .data = ends, .len = 36 };

    put(&client, e);
    frame(&client, &target);
    ends[15] = ends[33] = 2;
    ends[31] = ends[35] = 1;
    e.arg = 1;
    put(&target, e);
}

static void store(uint64_t pc, uint64_t at, uint64_t value)
{
    put(&target, (struct sg_trace_event){ .kind = SG_TRACE_STORE,
                                          .at = pc,
                                          .addr = BASE + at,
                                          .data = (const uint8_t *)&value,
                                          .len = sizeof(value),
                                          .arg = SG_PERSIST_STORE_ANNOUNCED });
}

/* Records and their Flush. */
static void remote(uint64_t at)
{
    static const uint8_t payload[RECORD] = { 1, 2, 3 };
    struct sg_trace_event e;

    for (unsigned i = 0; i < records; i++) {
        e = (struct sg_trace_event){ .kind = SG_TRACE_WORK,
                                     .value = ++wr_id,
                                     .qpn = QPN,
                                     .ordinal = ++ordinal,
                                     .len = record,
                                     .arg = SG_WR_WRITE };
        put(&client, e);
        frame(&client, &target);
        put(&target, (struct sg_trace_event){ .kind = SG_TRACE_PLACE,
                                              .qpn = QPN,
                                              .len = record,
                                              .ordinal = ordinal,
                                              .data = payload,
                                              .addr = BASE + at + i * RECORD });
        if (beside) {
            store(0x401080, at + i * RECORD + record, ordinal);
            if (!open_end) {
                put(&target, (struct sg_trace_event){ .kind = SG_TRACE_CPU_FENCE, .at = 0x401085 });
            }
        }
    }
    e = (struct sg_trace_event){ .kind = SG_TRACE_WORK,
                                 .value = ++wr_id,
                                 .qpn = QPN,
                                 .ordinal = ++ordinal,
                                 .arg = SG_WR_FLUSH };
    put(&client, e);
    frame(&client, &target);
    e.kind = SG_TRACE_FLUSH_BEGIN;
    e.value = 0;
    e.msn = (uint32_t)wr_id;
    e.addr = BASE + at;
    e.len = (uint64_t)records * RECORD;
    e.arg = SG_FLUSH_PERSISTENT;
    put(&target, e);
    e.kind = SG_TRACE_FLUSH_END;
    put(&target, e);
    frame(&target, &client);
    put(&client, (struct sg_trace_event){ .kind = SG_TRACE_COMPLETED,
                                          .value = wr_id,
                                          .qpn = QPN,
                                          .ordinal = ordinal,
                                          .arg = SG_WC_FLUSH });
}

static void flush_lines(uint64_t at, uint64_t len)
{
    for (uint64_t line = at & ~63ull; line < at + len; line += SG_PERSIST_LINE) {
        put(&target, (struct sg_trace_event){
                         .kind = SG_TRACE_CPU_FLUSH, .at = 0x401090, .addr = BASE + line });
    }
    put(&target, (struct sg_trace_event){ .kind = SG_TRACE_CPU_FENCE, .at = 0x401095 });
}

/* What the server's CPU does about the records, and for itself. */
static void local(uint64_t at, uint64_t log, uint64_t *random)
{
    char text[64];

    put(&target, (struct sg_trace_event){
                     .kind = SG_TRACE_LOAD, .at = 0x401000, .addr = BASE + at, .len = 8 });
    for (unsigned i = 0; i < STORES; i++) {
        store(0x402000, HALF + log + 8 * i, sg_prng(random));
    }
    flush_lines(HALF + log, 8 * STORES);
    store(0x401010, HALF - 4096, at); /* one line, again and again */
    flush_lines(HALF - 4096, 8);
    g_snprintf(text, sizeof(text), "phys=0x%llx len=%u", BASE + HALF + log, 8 * STORES);
    put(&target, (struct sg_trace_event){ .kind = SG_TRACE_MARK,
                                          .name = sg_trace_writer_name(target.w, "durable"),
                                          .data = (const uint8_t *)text,
                                          .len = strlen(text) });
}

static void write_traces(uint64_t events)
{
    uint64_t random = 1, at = 0, log = 0;

    connect_both();
    while (sg_trace_writer_events(target.w) < events) {
        remote(at);
        local(at, log, &random);
        at = (at + records * RECORD) % (HALF - 8192);
        log = (log + 8 * STORES) % (HALF - 4096);
    }
    sg_trace_writer_end(target.w, NULL);
    sg_trace_writer_end(client.w, NULL);
    sg_assert(fclose(target.file) == 0 && fclose(client.file) == 0);
}

/* All of the content at the start, if there is some. */
static void write_content(void)
{
    uint8_t page[SG_TRACE_PAGE];

    memset(page, 0xa5, sizeof(page));
    for (uint64_t i = 0; full && i < SIZE / SG_TRACE_PAGE; i++) {
        sg_assert(sg_trace_writer_page(target.w, 0, i, page));
    }
}

static void begin(void)
{
    struct sg_trace_header header = {
        .extent_count = 1,
        .extent = { { .base = BASE, .size = SIZE, .has_content = true, .name = "pmem" } },
        .text = { "target", "", "cpu-tracking=on\n" },
    };

    target.file = fopen("target.trace", "wb");
    client.file = fopen("client.trace", "wb");
    sg_assert(target.file && client.file);
    target.w = sg_trace_writer_new(&header, sink, target.file);
    header.extent_count = 0;
    header.text[SG_TRACE_MACHINE] = "client";
    header.text[SG_TRACE_CONFIG] = "";
    client.w = sg_trace_writer_new(&header, sink, client.file);
    write_content();
    sg_trace_writer_start(target.w, NULL);
    sg_trace_writer_start(client.w, NULL);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor time of all programs that have ended. */
static double worked(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* The most memory that one of them had, in MiB. */
static long most_memory(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return u.ru_maxrss / 1024;
}

static bool explore(const char *explorer, const char *what, const char *arguments,
                    const char *options)
{
    char *line = g_strdup_printf("%s --out out %s %s target.trace client.trace", explorer,
                                 arguments, options);
    double before = now(), begun = worked();
    char *out = NULL;
    int status = -1;
    bool good = g_spawn_command_line_sync(line, &out, NULL, &status, NULL) && WIFEXITED(status) &&
                WEXITSTATUS(status) < 2;

    printf("%-14s %6.1f s, %6.1f s of processor time%s\n", what, now() - before, worked() - begun,
           good ? "" : ", failed");
    printf("%-14s %6ld MiB of memory at most\n", "", most_memory());
    fflush(stdout);
    if (!good && out) {
        fputs(out, stdout);
    }
    g_free(out);
    g_free(line);
    return good;
}

/* The arguments; false: wrong ones. */
static bool parse(int argc, char **argv, uint64_t *events)
{
    const char *run = argc > 2 ? argv[2] : "plain";

    *events = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    full = strcmp(run, "full") == 0;
    open_end = strcmp(run, "open") == 0;
    beside = full || open_end || strcmp(run, "beside") == 0;
    if (beside) {
        records = 1;
        record = RECORD - 8;
    }
    return beside || strcmp(run, "plain") == 0;
}

int main(int argc, char **argv)
{
    char *options = argc > 3 ? g_strjoinv(" ", argv + 3) : g_strdup("");
    char *folder = g_dir_make_tmp("sg-bench-XXXXXX", NULL), *clean, *explorer;
    const char *given = getenv("SG_EXPLORE");
    uint64_t events;
    bool good;

    explorer = given ? g_canonicalize_filename(given, NULL) : NULL; /* before the folder changes */
    if (!parse(argc, argv, &events) || !folder || g_chdir(folder) < 0 || !explorer) {
        puts("bench-explore: wrong arguments, no folder, or no SG_EXPLORE");
        return 1;
    }
    begin();
    write_traces(events);
    printf("%llu events of the target\n", (unsigned long long)sg_trace_writer_events(target.w));
    sg_trace_writer_free(target.w);
    sg_trace_writer_free(client.w);
    good = explore(explorer, "one platform", "--domain adr --ddio on", options);
    good = explore(explorer, "all platforms", "", options) && good;
    clean = g_strdup_printf("rm -rf %s", folder);
    g_spawn_command_line_sync(clean, NULL, NULL, NULL, NULL);
    g_free(clean);
    g_free(options);
    g_free(explorer);
    g_free(folder);
    return good ? 0 : 1;
}
