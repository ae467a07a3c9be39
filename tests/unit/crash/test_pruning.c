/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strategies that leave much out: what they find of a run with one right and one wrong method.
 *
 * The program stores a record rightly, marks it, stores another one without a flush, marks it, and
 * so on.  An image is wrong if a record is missing whose mark is in force.
 */
#include <glib.h>

#include "program_rig.h"

enum { RIGHT = 0, WRONG = 8192, PC_RIGHT = 0x401000, PC_WRONG = 0x402000 };

#define TOLD "persistence-domain=memory-controller\n"
#define TRACES " target.trace client.trace"

static void record(unsigned rounds)
{
    struct xr r;

    xr_init(&r, TOLD);
    for (unsigned i = 0; i < rounds; i++) {
        xr_store(&r, PC_RIGHT, RIGHT + i * 64, i + 1, 0);
        xr_clwb(&r, RIGHT + i * 64);
        xr_sfence(&r);
        xr_durable(&r, RIGHT + i * 64, 8);
        xr_store(&r, PC_WRONG, WRONG + i * 64, i + 1, 0);
        xr_sfence(&r);
        xr_durable(&r, WRONG + i * 64, 8);
    }
    xr_end(&r);
    pr_save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    pr_save("client.trace", r.machine[XR_CLIENT].file->data, r.machine[XR_CLIENT].file->len);
    xr_free(&r);
}

struct judged {
    unsigned images, right, wrong; /* in which a record of the method is missing */
    uint64_t first, last;          /* crash points */
    unsigned points;
    uint64_t gap; /* the greatest between two of them */
};

/* What an exploration found. */
static struct judged judge(const char *folder)
{
    char *leaf = g_strdup_printf("%s/images.json", folder);
    struct json_value *file = pr_json(leaf);
    const struct json_value *list = json_member(file, "images", JSON_ARRAY);
    struct judged found = { .images = list->items->len };
    uint8_t memory[XR_SIZE];

    for (guint i = 0; i < list->items->len; i++) {
        uint64_t promises = pr_number(pr_item(list, i), "promises");
        uint64_t behind = pr_number(pr_item(list, i), "behind");
        bool right = false, wrong = false;

        pr_image(folder, json_member(pr_item(list, i), "image", JSON_TEXT)->text, memory);
        for (unsigned k = 0; k < promises; k++) {
            right |= k % 2 == 0 && !memory[RIGHT + k / 2 * 64];
            wrong |= k % 2 == 1 && !memory[WRONG + k / 2 * 64];
        }
        found.right += right;
        found.wrong += wrong;
        if (!found.points || behind > found.last) {
            found.first = found.points ? found.first : behind;
            found.gap = found.points ? MAX(found.gap, behind - found.last) : 0;
            found.last = behind;
            found.points++;
        }
    }
    json_free(file);
    g_free(leaf);
    return found;
}

static struct judged explore(const char *options)
{
    char *line = g_strconcat("--out out --domain adr --ddio on ", options, TRACES, NULL);

    T_CONTEXT("%s", options);
    pr_expect(line, 1, "Bug 1");
    g_free(line);
    return judge("out");
}

/* Losing one line is enough: the linear strategies find it, and the others. */
static void same_bugs(void)
{
    static const char *const options[] = {
        "--strategy exhaustive",
        "--strategy only",
        "--strategy all-but",
        "--strategy reads --reads wrong.reads",
        "--strategy cluster:1,exhaustive",
        "--strategy cluster,all-but",
        "--strategy cluster:2,reads --reads wrong.reads",
    };

    record(4);
    pr_save("wrong.reads", (const uint8_t *)"0x100002000 256\n", 16);
    for (unsigned i = 0; i < G_N_ELEMENTS(options); i++) {
        struct judged found = explore(options[i]);

        T_TRUE(found.wrong > 0);
        T_EQ_INT(found.right, 0);
    }
}

/* What nobody reads is kept. */
static void reads(void)
{
    struct judged all, some;

    record(4);
    pr_save("right.reads", (const uint8_t *)"4294967296 0x8\n\n 0x100000040 128 \n", 33);
    pr_save("wrong.reads", (const uint8_t *)"0x100002000 65\n", 15);
    pr_save("no.reads", (const uint8_t *)"\n", 1);
    some = explore("--strategy reads --reads no.reads");
    T_TRUE(some.points > 1);
    T_EQ_U64(some.images, some.points);
    T_EQ_INT(some.wrong + some.right, 0);
    some = explore("--strategy reads --reads right.reads");
    T_EQ_INT(some.wrong, 0);
    some = explore("--strategy reads --reads wrong.reads");
    T_TRUE(some.wrong > 0);
    pr_expect_in("out/result.json", "\"lines-read\": 2");
    pr_expect_in("out/result.json", "\"points-cut-short\": 0");
    all = explore("--strategy exhaustive");
    T_TRUE(some.images < all.images);
    explore("--strategy reads --reads wrong.reads --reads-per-point 1");
    pr_expect_in("out/result.json", "\"cut-short-behind\": [\n");
    pr_expect_in("out/result.json", "--reads-per-point");
}

static void wrong_reads(void)
{
    record(1);
    pr_save("bad.reads", (const uint8_t *)"0x1000 64\n0x1000\n", 17);
    pr_expect("--out out --strategy reads --reads bad.reads" TRACES, 2, "line 2");
    pr_save("bad.reads", (const uint8_t *)"0x1000 0\n", 9);
    pr_expect("--out out --strategy reads --reads bad.reads" TRACES, 2, "line 1");
    pr_expect("--out out --strategy reads --reads missing" TRACES, 2, "missing");
    pr_expect("--out out --strategy reads" TRACES, 2, "--reads FILE go together");
    pr_expect("--out out --strategy only --reads bad.reads" TRACES, 2, "go together");
    pr_expect("--out out --strategy only --reads-per-point 0" TRACES, 2, "--reads-per-point");
}

static void cluster(void)
{
    struct judged all, some;
    char *text;

    record(6);
    all = explore("--strategy all-but");
    some = explore("--strategy cluster:1,all-but");
    T_TRUE(some.wrong > 0);
    T_TRUE(some.points < all.points);
    text = pr_contents("out/result.json", NULL);
    T_NULL(strstr(text, "\"points-like-others\": 0"));
    T_NOT_NULL(strstr(text, "(cluster:1)"));
    T_NOT_NULL(strstr(text, "\"points-left-out\": 0"));
    g_free(text);
    pr_expect("--out out --strategy cluster" TRACES, 2, "name another strategy");
    pr_expect("--out out --strategy cluster:0,only" TRACES, 2, "unknown strategy");
    pr_expect("--out out --strategy clusters,only" TRACES, 2, "unknown strategy");
}

/* The folder has the files that images.json names, and no other. */
static void expect_files(const struct judged *found)
{
    char *path = pr_path("out/images"), *list = pr_contents("out/images.json", NULL);
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name;
    unsigned count = 0;

    while ((name = g_dir_read_name(dir))) {
        char *image = g_strndup(name, 32);

        T_NOT_NULL(strstr(list, image));
        g_free(image);
        count++;
    }
    T_TRUE(count > 0 && count <= found->images);
    g_dir_close(dir);
    g_free(list);
    g_free(path);
}

static void spread(void)
{
    struct judged all, some;
    char *first, *second;

    record(24);
    all = explore("--strategy all-but");
    pr_expect_in("out/result.json", "\"points-spread\": false");
    g_spawn_command_line_sync("rm -rf out", NULL, NULL, NULL, NULL);
    some = explore("--strategy all-but --max-images 40");
    T_TRUE(some.images <= 40 && some.images > 20);
    T_EQ_U64(some.first, all.first);
    T_EQ_U64(some.last, all.last);
    T_TRUE(some.points >= 4 && 2 * some.points <= some.images); /* some, not a bit of each */
    T_TRUE(some.gap <= 2 * (all.last - all.first) / (some.points - 1));
    pr_expect_in("out/result.json", "\"points-spread\": true");
    expect_files(&some);
    first = pr_contents("out/images.json", NULL);
    explore("--strategy all-but --max-images 40");
    second = pr_contents("out/images.json", NULL);
    T_EQ_STR(first, second);
    g_free(first);
    g_free(second);
}

static const struct t_case cases[] = {
    { "all strategies find a store that is not flushed", same_bugs },
    { "reads: lines that nobody reads survive", reads },
    { "reads: wrong files", wrong_reads },
    { "cluster: crash points with the same issuers", cluster },
    { "crash points are spread over the run", spread },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
