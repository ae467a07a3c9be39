/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings that go wrong: files that cannot be written, a killed QEMU, wrong commands, machines
 * that are saved; what they leave, and what the machine's owner is told.
 */
#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "persist_rig.h"
#include "tap.h"
#include "trace_rig.h"

static void refused(char *answer, const char *why)
{
    if (!strstr(answer, "\"error\"") || !strstr(answer, why)) {
        T_FAIL("not \"%s\": %s", why, answer);
    }
    g_free(answer);
}

static void says(char *answer, const char *what)
{
    if (!strstr(answer, what)) {
        T_FAIL("not \"%s\": %s", what, answer);
    }
    g_free(answer);
}

static bool exists(const char *path)
{
    struct stat st;

    return !stat(path, &st);
}

/* ---- Commands ---- */

static void wrong_arguments(void)
{
    static const char *const ids[] = { "", "12", TRACE_RUN "00",
                                       "0011223344556677889900aabbccddeg" };
    g_autofree char *path = trace_path();
    g_autofree char *folder = g_strdup_printf("%s/x", path);
    struct qtest *q;

    rig_start(1, PM_MIB, "");
    q = rig.m->q;
    for (unsigned i = 0; i < G_N_ELEMENTS(ids); i++) {
        refused(trace_try_start(q, path, ids[i], "vm1"), "hexadecimal");
    }
    refused(trace_try_start(q, path, TRACE_RUN, ""), "not a name");
    refused(trace_try_start(q, path, TRACE_RUN, "\\u0001"), "not a name");
    refused(trace_try_start(q, folder, TRACE_RUN, "vm1"), "No such file");
    refused(trace_try_start(q, "/tmp", TRACE_RUN, "vm1"), "cannot make");
    T_TRUE(!exists(path));
    T_TRUE(g_file_set_contents(path, "mine", 4, NULL));
    refused(trace_try_start(q, path, TRACE_RUN, "vm1"), "File exists");
    unlink(path);
    refused(trace_try_stop(q), "no recording runs");
    says(trace_query(q), "\"none\"");
    trace_start(q, path); /* nothing of all this is in the way */
    trace_stop(q);
    unlink(path);
    rig_stop();
}

static void one_at_a_time(void)
{
    g_autofree char *path = trace_path(), *other = trace_path();
    struct trace_seen seen = { 0 };

    rig_pair("");
    trace_start(rig.m->q, path);
    says(trace_query(rig.m->q), "\"running\"");
    refused(trace_try_start(rig.m->q, other, TRACE_RUN, "vm1"), "a recording runs already");
    T_TRUE(!exists(other));
    refused(rig_try_set("cpu-tracking", "true"), "cpu-tracking");
    trace_stop(rig.m->q);
    says(trace_query(rig.m->q), "\"complete\"");
    refused(trace_try_stop(rig.m->q), "no recording runs");
    trace_start(rig.m->q, other);
    rig_write(0, 1);
    trace_stop(rig.m->q);
    for (unsigned i = 0; i < 2; i++) {
        trace_read(&seen, i ? other : path);
        T_EQ_INT(seen.status, SG_TRACE_END);
        T_TRUE(seen.end_hash_fits && !seen.kind[SG_TRACE_PLACE] == !i);
        trace_seen_free(&seen);
        unlink(i ? other : path);
    }
    rig_stop();
}

static void not_while_saved(void)
{
    g_autofree char *path = trace_path();
    struct qtest *q;

    rig_start(1, PM_MIB, "");
    q = rig.m->q;
    trace_start(q, path);
    refused(
        qtest_qmp(q, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"file:/dev/null\"}}"),
        "a recording of the machine runs");
    trace_stop(q);
    qtest_qmp_ok(q, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"file:%s\"}}", path);
    refused(trace_try_start(q, "/dev/null", TRACE_RUN, "vm1"), "migration");
    unlink(path);
    rig_stop();
}

/* The answer to a line of the human monitor is empty, or has this text. */
static void monitor(struct qtest *q, const char *line, const char *text)
{
    g_autofree char *answer = qtest_qmp(q,
                                        "{\"execute\": \"human-monitor-command\", \"arguments\": "
                                        "{\"command-line\": \"%s\"}}",
                                        line);

    if (!strstr(answer, text ? text : "\"return\": \"\"")) {
        T_FAIL("%s: %s", line, answer);
    }
}

/* An empty qcow2 image, which holds the state. */
static void add_image(struct qtest *q, const char *file)
{
    bool done;

    qtest_qmp_ok(q,
                 "{\"execute\": \"blockdev-add\", \"arguments\": {\"driver\": \"file\", "
                 "\"node-name\": \"f0\", \"filename\": \"%s\"}}",
                 file);
    qtest_qmp_ok(q, "{\"execute\": \"blockdev-create\", \"arguments\": {\"job-id\": \"j0\", "
                    "\"options\": {\"driver\": \"qcow2\", \"file\": \"f0\", \"size\": 1048576}}}");
    do { /* until the job has concluded */
        g_autofree char *answer =
            qtest_qmp(q, "{\"execute\": \"job-dismiss\", \"arguments\": {\"id\": \"j0\"}}");

        done = strstr(answer, "\"return\"") != NULL;
        g_usleep(1000);
    } while (!done);
    qtest_qmp_ok(q, "{\"execute\": \"blockdev-add\", \"arguments\": {\"driver\": \"qcow2\", "
                    "\"node-name\": \"q0\", \"file\": \"f0\"}}");
}

/* What was recorded before is not how the machine came to its new state. */
static void is_put_back(void)
{
    g_autofree char *path = trace_path(), *image = g_strdup_printf("%s.qcow2", path);
    struct trace_seen seen = { 0 };
    struct machine *m;

    T_TRUE(g_file_set_contents(image, "", 0, NULL));
    m = machine_start(1, "", "");
    add_image(m->q, image);
    monitor(m->q, "savevm s0", NULL);
    trace_start(m->q, path);
    monitor(m->q, "savevm s1", "a recording of the machine runs");
    monitor(m->q, "loadvm s0", NULL);
    says(trace_query(m->q), "the machine was put into another state");
    refused(trace_try_stop(m->q), "no recording runs");
    trace_read(&seen, path);
    T_EQ_INT(seen.status, SG_TRACE_CUT_SHORT);
    trace_seen_free(&seen);
    monitor(m->q, "savevm s1", NULL);
    unlink(path);
    unlink(image);
    machine_stop(m);
}

/* ---- Files ---- */

static void nothing_written(void)
{
    rig_pair("");
    refused(trace_try_start(rig.m->q, "/dev/full", TRACE_RUN, "vm1"), "No space left");
    says(trace_query(rig.m->q), "\"none\"");
    rig_write(0, 1);
    T_EQ_U64(rig_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    T_TRUE(exists("/dev/full"));
    rig_stop();
}

static void content_too_long(void)
{
    const struct rlimit room = { 256 << 10, 256 << 10 };
    g_autofree char *path = trace_path(), *noise = g_malloc(4 << 20);

    for (unsigned i = 0; i < 4 << 20; i++) {
        noise[i] = (char)(i * 2654435761u >> 13);
    }
    rig_make_media(PM_MIB);
    T_TRUE(g_file_set_contents(rig.media, noise, 4 << 20, NULL));
    T_TRUE(!truncate(rig.media, (off_t)PM_MIB << 20));
    rig_restart(1, PM_MIB, "");
    T_TRUE(!prlimit(qtest_pid(rig.m->q), RLIMIT_FSIZE, &room, NULL));
    refused(trace_try_start(rig.m->q, path, TRACE_RUN, "vm1"), "File too large");
    T_TRUE(!exists(path));
    rig_stop();
}

/* The machine goes on; what was written is a beginning that can be read. */
static void becomes_full(void)
{
    const struct rlimit room = { 256 << 10, 256 << 10 };
    g_autofree char *path = trace_path();
    struct trace_seen seen = { 0 };
    char *answer = NULL;

    rig_pair("");
    trace_start(rig.m->q, path);
    T_TRUE(!prlimit(qtest_pid(rig.m->q), RLIMIT_FSIZE, &room, NULL));
    for (unsigned i = 0; i < 2000 && !(answer && strstr(answer, "failed")); i++) {
        g_free(answer);
        rig_write(LEN * (i % 16), (uint8_t)(i + 1));
        answer = trace_query(rig.m->q);
    }
    T_TRUE(strstr(answer, "\"failed\"") && strstr(answer, "File too large"));
    g_free(answer);
    rig_write(0, 3);
    T_EQ_U64(rig_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    says(trace_try_stop(rig.m->q), "File too large");
    says(trace_query(rig.m->q), "\"failed\"");
    trace_read(&seen, path);
    T_EQ_INT(seen.status, SG_TRACE_CUT_SHORT);
    T_TRUE(seen.kind[SG_TRACE_PLACE] > 10);
    trace_seen_free(&seen);
    unlink(path);
    rig_stop();
}

/* What was recorded a while ago is in the file. */
static void is_killed(void)
{
    g_autofree char *path = trace_path();
    struct trace_seen seen = { 0 };

    rig_pair("");
    trace_start(rig.m->q, path);
    for (unsigned i = 0; i < 100; i++) {
        rig_write(LEN * (i % 16), (uint8_t)(i + 1));
    }
    g_usleep(1500000);
    machine_settle(rig.m);
    g_usleep(100000);
    machine_kill(rig.m);
    trace_read(&seen, path);
    T_EQ_INT(seen.status, SG_TRACE_CUT_SHORT);
    T_TRUE(seen.kind[SG_TRACE_PLACE] >= 100);
    trace_seen_free(&seen);
    unlink(path);
    unlink(rig.media);
}

/* ---- A file that is slow ---- */

enum { STORES = 20, STORE = 1 << 20, QUEUE_STORES = 16, QUIET_MS = 500, QUIET_MAX = 60000 };

/*
 * A terminal takes a few thousand octets, and no more until somebody reads its other end: nobody
 * does, until the machine has not gone on for a while.
 */
struct slow_file {
    int end;    /* the one that is read */
    gint done;  /* atomic: stores that the machine has done */
    gint stuck; /* how many there were when it was held back; -1: it was not */
    GByteArray *octets;
};

static char *open_terminal(struct slow_file *f, int *line)
{
    struct termios raw;

    f->end = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    T_TRUE(f->end >= 0 && !grantpt(f->end) && !unlockpt(f->end));
    *line = open(ptsname(f->end), O_RDWR | O_NOCTTY | O_CLOEXEC);
    T_TRUE(*line >= 0 && !tcgetattr(*line, &raw));
    cfmakeraw(&raw);
    T_TRUE(!tcsetattr(*line, TCSANOW, &raw));
    return g_strdup(ptsname(f->end));
}

/* Reads once the machine is stuck, until QEMU has closed the file. */
static gpointer read_late(gpointer opaque)
{
    struct slow_file *f = opaque;
    gint before = -1, now = g_atomic_int_get(&f->done);
    uint8_t buf[65536];
    ssize_t n;

    for (unsigned ms = 0;
         now < STORES && (now < QUEUE_STORES - 1 || now != before) && ms < QUIET_MAX;
         ms += QUIET_MS) {
        before = now;
        g_usleep(QUIET_MS * 1000);
        now = g_atomic_int_get(&f->done);
    }
    f->stuck = now == before ? now : -1;
    while ((n = read(f->end, buf, sizeof(buf))) > 0) {
        g_byte_array_append(f->octets, buf, (guint)n);
    }
    return NULL;
}

static void is_slow(void)
{
    struct slow_file f = { .octets = g_byte_array_new() };
    g_autofree char *path = trace_path(), *terminal = NULL;
    struct trace_seen seen = { 0 };
    GThread *reader;
    int line;

    rig_start(1, PM_MIB, "");
    terminal = open_terminal(&f, &line);
    trace_start(rig.m->q, terminal);
    close(line);
    reader = g_thread_new("reader", read_late, &f);
    for (unsigned i = 1; i <= STORES; i++) {
        rig_store(0, (uint8_t)i, STORE); /* waits while the machine is held back */
        g_atomic_int_inc(&f.done);
    }
    trace_stop(rig.m->q);
    g_thread_join(reader);
    close(f.end);
    T_NOTE("held back behind %d of %d stores", f.stuck, STORES);
    T_TRUE(f.stuck >= QUEUE_STORES - 1 && f.stuck <= QUEUE_STORES);
    T_TRUE(g_file_set_contents(path, (const char *)f.octets->data, f.octets->len, NULL));
    trace_read(&seen, path);
    T_EQ_INT(seen.status, SG_TRACE_END);
    T_TRUE(seen.end_hash_fits);
    T_EQ_U64(seen.kind[SG_TRACE_OTHER_WRITE], STORES * STORE / 65536);
    trace_seen_free(&seen);
    g_byte_array_unref(f.octets);
    unlink(path);
    rig_stop();
}

static const struct t_case cases[] = {
    { "wrong arguments", wrong_arguments },
    { "one recording at a time", one_at_a_time },
    { "a machine that is recorded is not saved", not_while_saved },
    { "a machine that is put into another state", is_put_back },
    { "a file that takes nothing", nothing_written },
    { "a file that does not take the content", content_too_long },
    { "a file that becomes full", becomes_full },
    { "a file that is slow holds the machine back, and lacks nothing", is_slow },
    { "QEMU is killed", is_killed },
};

T_MAIN(cases)
