/* SPDX-License-Identifier: GPL-2.0-or-later */
/* staghorn-explore as a program: its files, exit statuses and messages. */
#include <glib/gstdio.h>
#include <sys/wait.h>

#include "crash/crash_image.h"
#include "explore_rig.h"
#include "tap.h"

enum { LOG = 0, STATUS = 8192 };

static char *folder;

static char *path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static void save(const char *name, const uint8_t *octets, size_t len)
{
    char *path = path_of(name);

    T_TRUE(g_file_set_contents(path, (const char *)octets, (gssize)len, NULL));
    g_free(path);
}

/* A right remote log; broken: its server marks a record without a flush. */
static void make_traces(bool broken, bool promises)
{
    struct xr r;

    xr_init(&r, "persistence-domain=memory-controller\n");
    xr_connect(&r, 1, 7000);
    xr_write(&r, 1, LOG, 0x1111, false);
    xr_write(&r, 1, LOG + 64, 0x2222, false);
    if (promises) {
        xr_flush(&r, 1, LOG, 128);
    }
    xr_store(&r, 0x401000, STATUS, 1, 0);
    if (broken) {
        xr_sfence(&r);
        xr_durable(&r, STATUS, 8);
    }
    xr_end(&r);
    save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    save("client.trace", r.machine[XR_CLIENT].file->data, r.machine[XR_CLIENT].file->len);
    xr_free(&r);
}

/*
 * Both machines send a frame twice, of which one arrives.  What the client received may have been
 * sent after the data became certain.
 */
static void make_repeated(void)
{
    struct sg_trace_event frame = { .kind = SG_TRACE_FRAME, .len = 60, .arg = 1 };
    struct sg_trace_event load = { .kind = SG_TRACE_LOAD, .addr = XR_BASE + LOG, .len = 8 };
    struct xr r;

    xr_init(&r, "persistence-domain=memory-controller\n");
    xr_connect(&r, 1, 7000);
    xr_event(&r, XR_CLIENT, frame);
    xr_write(&r, 1, LOG, 0x1111, true);
    xr_mark(&r, XR_CLIENT, "acknowledged", "");
    frame.value = 0;
    xr_event(&r, XR_CLIENT, frame);
    frame.arg = 0;
    xr_event(&r, XR_TARGET, frame);
    xr_event(&r, XR_TARGET, load);
    xr_clwb(&r, LOG);
    xr_sfence(&r);
    frame.arg = 1;
    frame.value = r.frames - 1;
    xr_event(&r, XR_TARGET, frame);
    xr_end(&r);
    save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    save("client.trace", r.machine[XR_CLIENT].file->data, r.machine[XR_CLIENT].file->len);
    xr_free(&r);
}

struct ran {
    int status;
    char *out, *err;
};

static struct ran run(const char *arguments)
{
    char *line = g_strdup_printf("%s %s", getenv("SG_EXPLORE"), arguments);
    struct ran ran;

    T_TRUE(g_spawn_command_line_sync(line, &ran.out, &ran.err, &ran.status, NULL));
    T_TRUE(WIFEXITED(ran.status));
    ran.status = WEXITSTATUS(ran.status);
    T_CONTEXT("%s: %s", arguments, ran.err);
    g_free(line);
    return ran;
}

/* Runs, and expects a status and a piece of what is printed. */
static void expect(const char *arguments, int status, const char *piece)
{
    struct ran ran = run(arguments);

    T_EQ_INT(ran.status, status);
    T_TRUE(strstr(ran.out, piece) || strstr(ran.err, piece));
    T_TRUE(status > 1 || !*ran.err);
    g_free(ran.out);
    g_free(ran.err);
}

static char *contents(const char *name, gsize *len)
{
    char *path = path_of(name), *text;

    T_CONTEXT("%s", name);
    T_TRUE(g_file_get_contents(path, &text, len, NULL));
    g_free(path);
    return text;
}

static void expect_in(const char *name, const char *piece)
{
    char *text = contents(name, NULL);

    T_CONTEXT("%s: %s", name, text);
    T_NOT_NULL(strstr(text, piece));
    g_free(text);
}

static void verdicts(void)
{
    make_traces(false, true);
    expect("--out out target.trace client.trace", 0, "memory-controller");
    expect_in("out/result.json", "\"verdict\": \"good\"");
    make_traces(true, true);
    expect("--out out client.trace target.trace", 1, "Bug 1: the store at 0x401000");
    expect_in("out/result.json", "\"verdict\": \"bugs\"");
    expect_in("out/result.json", "\"pc\": \"0x401000\"");
    expect_in("out/result.json", "\"least-platform\": \"adr,ddio=on\"");
    expect("--out out --domain eadr,whole client.trace target.trace", 0, "whole,ddio=off");
    make_traces(false, false);
    expect("--out out target.trace client.trace", 4, "Nothing was promised");
    expect_in("out/result.json", "\"verdict\": \"none\"");
    expect("--out out --acks write target.trace client.trace", 4, "Nothing was promised");
}

static void arguments(void)
{
    make_traces(false, true);
    expect("--help", 0, "usage:");
    expect("target.trace", 2, "--out is missing");
    expect("--out out", 2, "no trace");
    expect("--out out --domain adrr target.trace", 2, "unknown domain");
    expect("--out out --ddio maybe target.trace", 2, "DDIO is on, off or all");
    expect("--out out --acks flash target.trace", 2, "unknown kind of acknowledgement");
    expect("--out out --strategy some target.trace", 2, "unknown strategy");
    expect("--out out --strategy random:x target.trace", 2, "unknown strategy");
    expect("--out out --max-images 0 target.trace", 2, "--max-images");
    expect("--out out --base pmem target.trace", 2, "--base");
    expect("--out out --what target.trace", 2, "--what");
    expect("--out out --target nobody target.trace", 3, "no trace of a machine nobody");
    expect("--out out --target client target.trace client.trace", 3, "no persistent memory");
    expect("--out out client.trace", 3, "no machine has persistent memory");
    expect("--out out target.trace target.trace", 3, "second trace of the same machine");
    expect("--out target.trace/out target.trace", 5, "target.trace/out");
}

static void repeated_frames(void)
{
    make_repeated();
    expect("--out out client.trace target.trace", 0, "memory-controller");
    expect_in("out/result.json", "\"promises\": 1");
    expect_in("out/result.json", "\"ambiguous\": 2");
}

/* A trace with another octet somewhere, or of another length. */
static void damaged(size_t at, uint8_t octet, gssize len)
{
    gsize size;
    char *text = contents("target.trace", &size);

    if (at < size) {
        text[at] = (char)octet;
    }
    save("damaged.trace", (const uint8_t *)text, (size_t)(len < 0 ? (gssize)size + len : len));
    g_free(text);
}

static void bad_traces(void)
{
    gsize size;

    make_traces(true, true);
    g_free(contents("target.trace", &size));
    expect("--out out missing.trace", 3, "missing.trace");
    expect("--out out .", 3, ".");
    damaged(SIZE_MAX, 0, 0);
    expect("--out out damaged.trace client.trace", 3, "damaged.trace");
    damaged(0, 'x', (gssize)size);
    expect("--out out damaged.trace client.trace", 3, "damaged.trace");
    damaged(8, 2, (gssize)size);
    expect("--out out damaged.trace client.trace", 3, "version");
    damaged(size - 100, 0xff, (gssize)size);
    expect("--out out damaged.trace client.trace", 3, "damaged.trace");
    /* Without all of its last block it is a beginning. */
    damaged(SIZE_MAX, 0, -1);
    expect("--out out damaged.trace client.trace", 1, "cut short");
    expect_in("out/result.json", "\"status\": \"cut-short\"");
}

static void same_octets(const char *name)
{
    char *first = g_build_filename("a", name, NULL), *second = g_build_filename("b", name, NULL);
    gsize first_len, second_len;
    char *x = contents(first, &first_len), *y = contents(second, &second_len);

    T_EQ_U64(first_len, second_len);
    T_EQ_MEM(x, y, first_len);
    g_free(x);
    g_free(y);
    g_free(first);
    g_free(second);
}

static void same_twice(void)
{
    const char *all = "--strategy only,all-but,random:20:7,exhaustive target.trace client.trace";
    char *a = g_strconcat("--out a ", all, NULL), *b = g_strconcat("--out b ", all, NULL);
    char *images = path_of("a/images");
    GDir *dir;
    const char *name;
    unsigned count = 0;

    make_traces(true, true);
    expect(a, 1, "Bug 1");
    expect(b, 1, "Bug 1");
    same_octets("result.json");
    same_octets("images.json");
    same_octets("promises.json");
    dir = g_dir_open(images, 0, NULL);
    while ((name = g_dir_read_name(dir))) {
        char *leaf = g_build_filename("images", name, NULL);

        same_octets(leaf);
        g_free(leaf);
        count++;
    }
    T_TRUE(count > 2);
    g_dir_close(dir);
    g_free(images);
    g_free(a);
    g_free(b);
}

/* What is left out is said. */
static void limited(void)
{
    make_traces(true, true);
    expect("--out out --strategy exhaustive --max-images 3 target.trace client.trace", 1, "Bug 1");
    expect_in("out/result.json", "\"occurrences\": 3");
    expect("--out out --strategy exhaustive --max-images 3 target.trace client.trace", 1,
           "left out");
}

static const struct t_case cases[] = {
    { "verdicts and their statuses", verdicts },
    { "wrong arguments", arguments },
    { "traces that cannot be used, or are cut short", bad_traces },
    { "a promise begins behind all that may be its causes", repeated_frames },
    { "the same traces twice: the same octets", same_twice },
    { "what --max-images leaves out is said", limited },
};

int main(int argc, char **argv)
{
    char *top = g_get_current_dir();
    int status;

    folder = g_dir_make_tmp("sg-explore-XXXXXX", NULL);
    if (!folder || !getenv("SG_EXPLORE") || g_chdir(folder) < 0) {
        puts("Bail out! no folder, or no SG_EXPLORE");
        return 1;
    }
    status = t_main(cases, G_N_ELEMENTS(cases), argc, argv);
    if (g_chdir(top) == 0) {
        char *line = g_strdup_printf("rm -rf %s", folder);

        g_spawn_command_line_sync(line, NULL, NULL, NULL, NULL);
        g_free(line);
    }
    g_free(folder);
    g_free(top);
    return status;
}
