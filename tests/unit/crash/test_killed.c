/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An exploration that is killed, again and again at other moments: there is no result until all of
 * it is there, and the next one leaves the octets of one that nobody disturbed.
 */
#include <glib.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/prng.h"
#include "program_rig.h"

enum { STORES = 12, KILLS = 12, KILLS_SANITIZED = 4 };

#define OPTIONS " --domain adr,eadr --strategy only,all-but target.trace"

static void record(void)
{
    struct xr r;

    xr_init(&r, "persistence-domain=memory-controller\n");
    for (unsigned i = 0; i < STORES; i++) {
        xr_store(&r, 0x401000, i * 64, i + 1, 0);
        xr_sfence(&r);
        xr_durable(&r, i * 64, 8);
    }
    xr_end(&r);
    pr_save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    xr_free(&r);
}

/* Microseconds of one exploration. */
static uint64_t explore(const char *folder)
{
    char *line = g_strconcat("--out ", folder, OPTIONS, NULL);
    gint64 start = g_get_monotonic_time();

    pr_expect(line, 1, "Bug 1");
    g_free(line);
    return (uint64_t)(g_get_monotonic_time() - start);
}

/* Starts one and kills it; returns whether it had ended before. */
static bool explore_and_kill(uint64_t delay_us)
{
    char *line = g_strconcat(getenv("SG_EXPLORE"), " --out killed", OPTIONS, NULL);
    char **words = g_strsplit(line, " ", 0);
    GPid pid;
    int status;

    T_TRUE(g_spawn_async(NULL, words, NULL,
                         G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL |
                             G_SPAWN_STDERR_TO_DEV_NULL,
                         NULL, NULL, &pid, NULL));
    g_usleep(delay_us);
    kill(pid, SIGKILL);
    T_EQ_INT(waitpid(pid, &status, 0), pid);
    g_strfreev(words);
    g_free(line);
    return WIFEXITED(status);
}

static bool same(const char *name)
{
    char *a = g_strconcat("whole/", name, NULL), *b = g_strconcat("killed/", name, NULL);
    gsize a_len, b_len;
    char *x = pr_contents(a, &a_len), *y = pr_contents(b, &b_len);
    bool equal = a_len == b_len && !memcmp(x, y, a_len);

    g_free(x);
    g_free(y);
    g_free(a);
    g_free(b);
    return equal;
}

static void killed(void)
{
    const unsigned kills = t_not_sanitized() ? KILLS : KILLS_SANITIZED;
    uint64_t seed = 1, us, ended = 0;
    char *path;

    record();
    us = explore("whole");
    path = pr_path("killed/result.json");
    for (unsigned i = 0; i < kills; i++) {
        g_spawn_command_line_sync("rm -rf killed/result.json", NULL, NULL, NULL, NULL);
        T_CONTEXT("kill %u", i);
        ended += explore_and_kill(sg_prng(&seed) % (us + us / 4));
        if (g_file_test(path, G_FILE_TEST_EXISTS)) {
            T_TRUE(same("result.json") && same("images.json") && same("promises.json"));
        }
    }
    T_TRUE(ended < kills);
    g_free(path);
    explore("killed");
    T_EQ_INT(system("diff -r whole killed"), 0);
}

static const struct t_case cases[] = {
    { "an exploration that is killed leaves no half result", killed },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
