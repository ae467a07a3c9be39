/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "trace_rig.h"

char *trace_path(void)
{
    static unsigned number;
    char *path = g_strdup_printf("/tmp/sg-trace-%d-%u", getpid(), number++);

    unlink(path);
    return path;
}

/* ---- QMP ---- */

char *trace_try_start(struct qtest *q, const char *path, const char *run, const char *machine)
{
    return qtest_qmp(q,
                     "{\"execute\": \"staghorn-record-start\", \"arguments\": {\"file\": \"%s\", "
                     "\"run-id\": \"%s\", \"machine\": \"%s\"}}",
                     path, run, machine);
}

void trace_start(struct qtest *q, const char *path)
{
    g_autofree char *answer = trace_try_start(q, path, TRACE_RUN, "vm1");

    if (!strstr(answer, "\"return\"")) {
        T_FAIL("start: %s", answer);
    }
}

char *trace_try_stop(struct qtest *q)
{
    return qtest_qmp(q, "{\"execute\": \"staghorn-record-stop\"}");
}

void trace_stop(struct qtest *q)
{
    g_autofree char *answer = trace_try_stop(q);

    if (!strstr(answer, "\"complete\"")) {
        T_FAIL("stop: %s", answer);
    }
}

char *trace_query(struct qtest *q)
{
    return qtest_qmp(q, "{\"execute\": \"query-staghorn-record\"}");
}

/* ---- The trace ---- */

void trace_read(struct trace_seen *seen, const char *path)
{
    char *wrong = trace_seen_read(seen, path);

    if (wrong) {
        T_FAIL("%s: %s", path, wrong);
    }
    T_NOTE("%s", seen->message);
}
