/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine whose state is kept (rewind-keep).  Recordings: its media are private then, so what
 * they have is not in their file.  And when loads of CPUs cannot be noted (rewind-reads).
 */
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "persist_rig.h"
#include "tap.h"
#include "trace_rig.h"

enum { IN_FILE = 3 * LEN, LAST = (PM_MIB << 20) - LEN };

static struct trace_seen seen;
static char *path;

static void begin(void)
{
    rig_start_anonymous(128, PM_MIB, "");
    rig_store(IN_FILE, 1, LEN);
    rig_set("rewind-keep", "true");
    T_EQ_U64(rig_count_media(IN_FILE, 1, LEN), LEN);
    path = trace_path();
}

static void look(void)
{
    trace_stop(rig.m->q);
    trace_read(&seen, path);
    T_EQ_INT(seen.status, SG_TRACE_END);
    T_TRUE(seen.end_hash_fits);
}

static void finish(void)
{
    trace_seen_free(&seen);
    unlink(path);
    g_free(path);
    rig_stop_anonymous();
}

/* Octets of this value from the offset on. */
static size_t count(uint64_t offset, uint8_t value)
{
    size_t found = 0;

    for (size_t i = 0; i < LEN; i++) {
        found += seen.media[0][offset + i] == value;
    }
    return found;
}

/* What was stored since, also where the file has holes, is the content at the start. */
static void has_private_pages(void)
{
    begin();
    rig_store(LEN, 2, LEN);
    rig_store(IN_FILE, 3, LEN / 2);
    rig_store(LAST, 4, LEN);
    trace_start(rig.m->q, path);
    look();
    T_EQ_U64(rig_count_media(LEN, 0, LEN), LEN);
    T_EQ_U64(count(LEN, 2), LEN);
    T_EQ_U64(count(IN_FILE, 3), LEN / 2);
    T_EQ_U64(count(IN_FILE, 1), LEN / 2);
    T_EQ_U64(count(LAST, 4), LEN);
    finish();
}

/* Where nothing was stored, it is what the file has. */
static void has_file(void)
{
    begin();
    rig_store(LEN, 2, LEN);
    rig_set("rewind", "\"\"");
    trace_start(rig.m->q, path);
    look();
    T_EQ_U64(count(LEN, 0), LEN);
    T_EQ_U64(count(IN_FILE, 1), LEN);
    T_EQ_U64(count(LAST, 0), LEN);
    finish();
}

/* A machine that is recorded is not put back. */
static void is_not_put_back(void)
{
    static const char *const property[] = { "rewind", "rewind-keep", "rewind-keep" };
    static const char *const value[] = { "\"\"", "false", "true" };

    begin();
    trace_start(rig.m->q, path);
    for (unsigned i = 0; i < G_N_ELEMENTS(value); i++) {
        g_autofree char *answer = rig_try_set(property[i], value[i]);

        T_TRUE(strstr(answer, "a recording runs") != NULL);
    }
    look();
    rig_set("rewind", "\"\"");
    finish();
}

static void refuses(const char *value, const char *words)
{
    g_autofree char *answer = rig_try_set("rewind-reads", value);

    if (!strstr(answer, words)) {
        T_FAIL("rewind-reads=%s: %s", value, answer);
    }
}

/* Loads of CPUs are noted in a kept state only, and with TCG only. */
static void notes_no_loads(void)
{
    g_autofree char *lines = NULL;

    rig_start_anonymous(128, PM_MIB, "");
    refuses("true", "no state is kept");
    rig_set("rewind-reads", "false");
    rig_set("rewind-keep", "true");
    refuses("true", "-accel tcg only");
    lines = rig_get("rewind-lines");
    T_TRUE(strstr(lines, "loads are not noted") != NULL);
    rig_set("rewind", "\"\"");
    rig_set("rewind-keep", "false");
    rig_stop_anonymous();
}

static const struct t_case cases[] = {
    { "a recording has the private pages of a kept state", has_private_pages },
    { "a recording has the file's pages of a kept state", has_file },
    { "a machine that is recorded is not put back", is_not_put_back },
    { "loads are noted in a kept state, with TCG", notes_no_loads },
};

T_MAIN(cases)
