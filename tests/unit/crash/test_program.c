/* SPDX-License-Identifier: GPL-2.0-or-later */
/* staghorn-explore as a program: its files, exit statuses and messages. */
#include <glib.h>

#include "program_rig.h"

enum { LOG = 0, STATUS = 8192 };

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
    pr_save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    pr_save("client.trace", r.machine[XR_CLIENT].file->data, r.machine[XR_CLIENT].file->len);
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
    pr_save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    pr_save("client.trace", r.machine[XR_CLIENT].file->data, r.machine[XR_CLIENT].file->len);
    xr_free(&r);
}

static void verdicts(void)
{
    make_traces(false, true);
    pr_expect("--out out target.trace client.trace", 0, "memory-controller");
    pr_expect_in("out/result.json", "\"verdict\": \"good\"");
    make_traces(true, true);
    pr_expect("--out out client.trace target.trace", 1, "Bug 1: the store at 0x401000");
    pr_expect_in("out/result.json", "\"verdict\": \"bugs\"");
    pr_expect_in("out/result.json", "\"pc\": \"0x401000\"");
    pr_expect_in("out/result.json", "\"least-platform\": \"adr,ddio=on\"");
    pr_expect("--out out --domain eadr,whole client.trace target.trace", 0, "whole,ddio=off");
    make_traces(false, false);
    pr_expect("--out out target.trace client.trace", 4, "Nothing was promised");
    pr_expect_in("out/result.json", "\"verdict\": \"none\"");
    pr_expect("--out out --acks write target.trace client.trace", 4, "Nothing was promised");
}

static void arguments(void)
{
    make_traces(false, true);
    pr_expect("--help", 0, "usage:");
    pr_expect("target.trace", 2, "--out is missing");
    pr_expect("--out out", 2, "no trace");
    pr_expect("--out out --domain adrr target.trace", 2, "unknown domain");
    pr_expect("--out out --ddio maybe target.trace", 2, "DDIO is on, off or all");
    pr_expect("--out out --arrivals never target.trace", 2, "late, early or any");
    pr_expect("--out out --arrivals early --strategy only target.trace", 2, "no images");
    pr_expect("--out out --acks flash target.trace", 2, "unknown kind of acknowledgement");
    pr_expect("--out out --strategy some target.trace", 2, "unknown strategy");
    pr_expect("--out out --strategy random:x target.trace", 2, "unknown strategy");
    pr_expect("--out out --max-images 0 target.trace", 2, "--max-images");
    pr_expect("--out out --base pmem target.trace", 2, "--base");
    pr_expect("--out out --what target.trace", 2, "--what");
    pr_expect("--out out --target nobody target.trace", 3, "no trace of a machine nobody");
    pr_expect("--out out --target client target.trace client.trace", 3, "no persistent memory");
    pr_expect("--out out client.trace", 3, "no machine has persistent memory");
    pr_expect("--out out target.trace target.trace", 3, "second trace of the same machine");
    pr_expect("--out target.trace/out target.trace", 5, "target.trace/out");
}

static void repeated_frames(void)
{
    make_repeated();
    pr_expect("--out out client.trace target.trace", 0, "memory-controller");
    pr_expect_in("out/result.json", "\"promises\": 1");
    pr_expect_in("out/result.json", "\"ambiguous\": 2");
}

/* A trace with another octet somewhere, or of another length. */
static void damaged(size_t at, uint8_t octet, gssize len)
{
    gsize size;
    char *text = pr_contents("target.trace", &size);

    if (at < size) {
        text[at] = (char)octet;
    }
    pr_save("damaged.trace", (const uint8_t *)text, (size_t)(len < 0 ? (gssize)size + len : len));
    g_free(text);
}

static void bad_traces(void)
{
    gsize size;

    make_traces(true, true);
    g_free(pr_contents("target.trace", &size));
    pr_expect("--out out missing.trace", 3, "missing.trace");
    pr_expect("--out out .", 3, ".");
    damaged(SIZE_MAX, 0, 0);
    pr_expect("--out out damaged.trace client.trace", 3, "damaged.trace");
    damaged(0, 'x', (gssize)size);
    pr_expect("--out out damaged.trace client.trace", 3, "damaged.trace");
    damaged(8, 2, (gssize)size);
    pr_expect("--out out damaged.trace client.trace", 3, "version");
    damaged(size - 100, 0xff, (gssize)size);
    pr_expect("--out out damaged.trace client.trace", 3, "damaged.trace");
    /* Without all of its last block it is a beginning. */
    damaged(SIZE_MAX, 0, -1);
    pr_expect("--out out damaged.trace client.trace", 1, "cut short");
    pr_expect_in("out/result.json", "\"status\": \"cut-short\"");
}

/* A trace without the content at the start is explored from the content that it began with. */
static void other_base(void)
{
    static uint8_t content[XR_SIZE], other[XR_SIZE];
    struct xr r;

    memset(content, 0x5a, sizeof(content));
    xr_init_content(&r, "", content, false);
    xr_store(&r, 0x401000, 0, 1, 0);
    xr_durable(&r, 0, 8);
    pr_save_traces(&r);
    pr_save("right.raw", content, sizeof(content));
    pr_save("other.raw", other, sizeof(other));
    pr_save("short.raw", content, sizeof(content) - 64);
    pr_expect("--out out --base pmem=right.raw --domain adr target.trace client.trace", 1, "Bug 1");
    pr_expect("--out out --base pmem=other.raw target.trace client.trace", 3,
              "the trace begins with another content");
    pr_expect("--out out --base pmem=short.raw target.trace client.trace", 3,
              "short.raw: it has 16320 octets, and the extent has 16384");
    pr_expect("--out out --base nvdimm=right.raw target.trace client.trace", 2,
              "give it by --base pmem=FILE");
    pr_expect("--out out target.trace client.trace", 2, "give it by --base pmem=FILE");
}

static void same_octets(const char *name)
{
    char *first = g_build_filename("a", name, NULL), *second = g_build_filename("b", name, NULL);
    gsize first_len, second_len;
    char *x = pr_contents(first, &first_len), *y = pr_contents(second, &second_len);

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
    char *images = pr_path("a/images");
    GDir *dir;
    const char *name;
    unsigned count = 0;

    make_traces(true, true);
    pr_expect(a, 1, "Bug 1");
    pr_expect(b, 1, "Bug 1");
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
    pr_expect("--out out --strategy exhaustive --max-images 3 target.trace client.trace", 1,
              "Bug 1");
    pr_expect_in("out/result.json", "\"occurrences\": 3");
    pr_expect("--out out --strategy exhaustive --max-images 3 target.trace client.trace", 1,
              "left out");
}

/* Three states of each of 256 lines: the number has all of its digits, on paper and in JSON. */
static void hundred_digits(void)
{
    enum { LINES = XR_SIZE / 64, DIGITS = 123 }; /* 3^256 has so many */
    struct json_value *result;
    const struct json_value *platform, *images;
    char *row;
    struct xr r;

    xr_init(&r, "");
    for (unsigned i = 0; i < 2 * LINES; i++) {
        xr_store(&r, 0x401000, i % LINES * 64, i + 1, 0);
    }
    xr_sfence(&r);
    xr_durable(&r, 0, 8);
    xr_end(&r);
    pr_save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    xr_free(&r);
    pr_expect("--out out --domain adr --ddio on --strategy only target.trace", 1, "Bug 1");
    result = pr_json("out/result.json");
    platform = pr_item(json_member(result, "platforms", JSON_ARRAY), 0);
    images = json_member(platform, "images", JSON_OBJECT);
    row = g_strdup_printf(" %s ways;", json_member(images, "ways", JSON_TEXT)->text);
    T_EQ_U64(strspn(row + 1, "0123456789"), DIGITS);
    pr_expect("--out out --domain adr --ddio on --strategy only target.trace", 1, row);
    g_free(row);
    json_free(result);
}

static const struct t_case cases[] = {
    { "verdicts and their statuses", verdicts },
    { "wrong arguments", arguments },
    { "traces that cannot be used, or are cut short", bad_traces },
    { "a base that the trace did not begin with", other_base },
    { "a promise begins behind all that may be its causes", repeated_frames },
    { "the same traces twice: the same octets", same_twice },
    { "what --max-images leaves out is said", limited },
    { "numbers are printed with all digits", hundred_digits },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
