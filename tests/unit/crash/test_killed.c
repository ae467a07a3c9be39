/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An exploration that is killed, or whose files have no room, again and again at other moments:
 * there is no result until all of it is there, and the next one leaves the octets of one that
 * nobody disturbed.
 */
#include <glib.h>
#include <signal.h>
#include <sys/resource.h>
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
        xr_store(&r, 0x401000 + i, i * 64, i + 1, 0); /* each is a bug of its own */
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

/* ---- No room ---- */

static void limit_files(gpointer octets)
{
    const struct rlimit room = { *(const rlim_t *)octets, RLIM_INFINITY };

    setrlimit(RLIMIT_FSIZE, &room);
}

/* Explores where no file may be longer; the caller frees *err. */
static int explore_within(rlim_t octets, const char *options, char **err)
{
    char *line = g_strconcat(getenv("SG_EXPLORE"), " --out small", options, NULL), *out;
    char **words = g_strsplit(line, " ", 0);
    int status;

    T_TRUE(g_spawn_sync(NULL, words, NULL, G_SPAWN_DEFAULT, limit_files, &octets, &out, err,
                        &status, NULL));
    T_CONTEXT("%" PRIu64 " octets,%s: %s", (uint64_t)octets, options, *err);
    T_TRUE(WIFEXITED(status)); /* a signal says nothing to anybody */
    T_TRUE(WEXITSTATUS(status) != 5 || !*out);
    g_strfreev(words);
    g_free(line);
    g_free(out);
    return WEXITSTATUS(status);
}

static void fails_within(rlim_t octets, const char *options, const char *why)
{
    char *err, *path = pr_path("small/result.json");

    explore("small"); /* its result must not stay */
    T_EQ_INT(explore_within(octets, options, &err), 5);
    T_NOT_NULL(strstr(err, why));
    T_TRUE(!g_file_test(path, G_FILE_TEST_EXISTS));
    T_EQ_INT(system("test -z \"$(find small -name '*.new')\""), 0);
    g_free(path);
    g_free(err);
}

/* Memory is a file, too; with images their list is longer than the result. */
static void no_room(void)
{
    char *err;

    record();
    explore("whole");
    fails_within(XR_SIZE - 1, OPTIONS, "no memory");
    fails_within(XR_SIZE, OPTIONS,
                 "cannot write small/images.json: File too large; --out names another folder");
    fails_within(XR_SIZE, " --domain adr target.trace",
                 "cannot write small/result.json: File too large; --out names another folder");
    T_EQ_INT(explore_within(1 << 20, OPTIONS, &err), 1);
    T_EQ_INT(system("diff -r whole small"), 0);
    g_free(err);
}

/* What nobody could read was not reported. */
static void no_output(void)
{
    char *line =
        g_strconcat(getenv("SG_EXPLORE"), " --out full", OPTIONS " 2> said > /dev/full", NULL);

    record();
    T_EQ_INT(WEXITSTATUS(system(line)), 5);
    pr_expect_in("said", "cannot write the standard output: No space left on device");
    g_free(line);
}

static const struct t_case cases[] = {
    { "an exploration that is killed leaves no half result", killed },
    { "nor does one whose files have no room, and it says so", no_room },
    { "a full standard output is said", no_output },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
