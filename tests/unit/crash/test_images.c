/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What staghorn-explore writes for those who judge images: bases, images, images.json. */
#include <glib.h>

#include "crash/crash_image.h"
#include "json_read.h"
#include "program_rig.h"

enum { LOG = 0, STATUS = 8192 };

#define TOLD "persistence-domain=memory-controller\n"

static const uint8_t start_of_zeros[XR_SIZE];
static uint64_t status_event;
static uint8_t content[XR_SIZE] __attribute__((aligned(8)));

/* Two records and a status that may be lost. */
static void record(void)
{
    struct xr r;

    for (unsigned i = 0; i < XR_SIZE; i++) {
        content[i] = i % 4096 < 64 ? (uint8_t)(i / 4096 + 1) : 0;
    }
    xr_init_content(&r, TOLD, content, true);
    xr_connect(&r, 1, 7000);
    xr_write(&r, 1, LOG, 0x1111, false);
    xr_write(&r, 1, LOG + 64, 0x2222, false);
    xr_flush(&r, 1, LOG, 128);
    status_event = xr_store(&r, 0x401000, STATUS, 1, 0);
    xr_sfence(&r);
    xr_durable(&r, STATUS, 8);
    pr_save_traces(&r);
}

static char *hex(const uint8_t *octets, unsigned len)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < len; i++) {
        g_string_append_printf(text, "%02x", octets[i]);
    }
    return g_string_free(text, FALSE);
}

/* An image of the folder is a difference from this memory. */
static void expect_based(const char *name, const uint8_t hash[SG_TRACE_HASH])
{
    char *leaf = g_build_filename("out/images", name, NULL);
    struct sg_crash_image image;
    struct sg_crash_image_run run;
    gsize len;
    char *octets = pr_contents(leaf, &len);

    T_NULL(sg_crash_image_open(&image, (const uint8_t *)octets, len));
    T_EQ_MEM(image.head.base[0], hash, SG_TRACE_HASH);
    while (sg_crash_image_next(&image, &run)) {
        T_TRUE(memcmp(content + (run.addr - XR_BASE), run.octets, run.len) != 0);
    }
    sg_crash_image_clear(&image);
    g_free(octets);
    g_free(leaf);
}

static void base(void)
{
    uint8_t hash[SG_TRACE_HASH];
    char *octets, *text, *folder;
    const char *name;
    unsigned count = 0;
    gsize len;
    GDir *dir;

    record();
    pr_expect("--out out --strategy only target.trace client.trace", 1, "Bug 1");
    octets = pr_contents("out/base/pmem.raw", &len);
    T_EQ_U64(len, XR_SIZE);
    T_EQ_MEM(octets, content, XR_SIZE);
    sg_trace_hash_memory(content, XR_SIZE, hash);
    text = hex(hash, SG_TRACE_HASH);
    pr_expect_in("out/images.json", text);
    pr_expect_in("out/images.json", "\"name\": \"pmem\"");
    pr_expect_in("out/images.json", "\"address\": \"0x100000000\"");
    pr_expect_in("out/images.json", "\"size\": 16384");
    pr_expect_in("out/images.json", "\"file\": \"base/pmem.raw\"");
    pr_expect_in("out/images.json", "\"target\": \"target\"");
    pr_expect_in("out/images.json", "\"run\": \"01000000000000000000000000000000\"");
    folder = pr_path("out/images");
    dir = g_dir_open(folder, 0, NULL);
    while ((name = g_dir_read_name(dir))) {
        expect_based(name, hash);
        count++;
    }
    T_TRUE(count > 2);
    g_dir_close(dir);
    g_free(folder);
    g_free(text);
    g_free(octets);
}

/* ---- Plans ---- */

static struct json_value *read_json(const char *name)
{
    gsize len;
    char *wrong, *text = pr_contents(name, &len);
    struct json_value *v = json_read(text, len, &wrong);

    T_CONTEXT("%s: %s", name, wrong ? wrong : "");
    T_NOT_NULL(v);
    g_free(text);
    return v;
}

static const struct json_value *images_of(const struct json_value *file)
{
    return json_member(file, "images", JSON_ARRAY);
}

static const struct json_value *item(const struct json_value *list, guint i)
{
    return i < list->items->len ? g_ptr_array_index(list->items, i) : NULL;
}

static const char *image_of(const struct json_value *entry)
{
    return json_member(entry, "image", JSON_TEXT)->text;
}

static uint64_t number_of(const struct json_value *v, const char *key)
{
    return json_member(v, key, JSON_NUMBER)->number;
}

static const struct json_value *platforms_of(const struct json_value *entry)
{
    return json_member(entry, "platforms", JSON_ARRAY);
}

static void put_answers(GString *out, const struct json_value *list)
{
    for (guint k = 0; list && k < list->items->len; k++) {
        g_string_append_printf(out, "%s{\"question\": %" PRIu64 ", \"answer\": %" PRIu64 "}",
                               k ? ", " : "", number_of(item(list, k), "question"),
                               number_of(item(list, k), "answer"));
    }
}

/* All plans of an images.json as a file of plans: of each platform, in the reverse order. */
static void save_plans(const struct json_value *file)
{
    const struct json_value *images = images_of(file);
    GString *out = g_string_new("{\"version\": 1, \"plans\": [");

    for (guint i = images->items->len; i--;) {
        const struct json_value *entry = item(images, i);
        const struct json_value *list = json_member(entry, "deviations", JSON_ARRAY);

        for (guint n = 0; n < platforms_of(entry)->items->len; n++) {
            g_string_append_printf(out, "%s{\"behind\": %" PRIu64 ", \"platform\": \"%s\", ",
                                   out->str[out->len - 1] == '[' ? "" : ", ",
                                   number_of(entry, "behind"), item(platforms_of(entry), n)->text);
            g_string_append(out, "\"deviations\": [");
            put_answers(out, list);
            g_string_append(out, "], \"arrivals\": [");
            put_answers(out, json_member(entry, "arrivals", JSON_ARRAY));
            g_string_append(out, "]}");
        }
    }
    g_string_append(out, "]}");
    pr_save("plans.json", (const uint8_t *)out->str, out->len);
    g_string_free(out, TRUE);
}

/*
 * Explores so, and makes each image again, with the same --arrivals ("": the default); returns how
 * many have early arrivals.
 */
static unsigned explore_again(const char *arrivals, const char *options)
{
    char *traces = g_strconcat(arrivals, " target.trace client.trace", NULL);
    char *explore = g_strconcat(options, traces, NULL);
    char *plans = g_strconcat("--out again --plans plans.json ", traces, NULL);
    struct json_value *first, *second;
    const struct json_value *a, *b;
    unsigned empty = 0, early = 0;
    guint at = 0;

    pr_expect(explore, 1, "Bug 1");
    first = read_json("out/images.json");
    save_plans(first);
    pr_expect(plans, 1, "Bug 1");
    second = read_json("again/images.json");
    a = images_of(first);
    b = images_of(second);
    T_TRUE(a->items->len > 4);
    for (guint i = a->items->len; i--;) {
        const struct json_value *x = item(a, i);
        guint deviations = json_member(x, "deviations", JSON_ARRAY)->items->len;

        for (guint n = 0; n < platforms_of(x)->items->len; n++, at++) {
            const struct json_value *y = item(b, at);

            T_CONTEXT("%s on %s", image_of(x), item(platforms_of(x), n)->text);
            T_NOT_NULL(y);
            T_EQ_STR(image_of(x), image_of(y));
            T_EQ_U64(number_of(x, "behind"), number_of(y, "behind"));
            T_EQ_U64(deviations, json_member(y, "deviations", JSON_ARRAY)->items->len);
        }
        empty += !deviations;
        early += json_member(x, "arrivals", JSON_ARRAY) != NULL;
    }
    T_EQ_U64(at, b->items->len);
    T_TRUE(empty > 0);
    json_free(first);
    json_free(second);
    g_free(traces);
    g_free(explore);
    g_free(plans);
    return early;
}

#define ALL_STRATEGIES "--out out --strategy only,all-but,random:20,exhaustive "

static void again(void)
{
    record();
    T_EQ_INT(explore_again("", ALL_STRATEGIES), 0);
    T_EQ_INT(explore_again("--arrivals late", ALL_STRATEGIES), 0);
}

/* Data of an adapter, and stores beside them: in several orders. */
static void record_pasts(void)
{
    struct xr r;

    xr_init(&r, TOLD);
    xr_connect(&r, 1, 7000);
    for (unsigned i = 0; i < 3; i++) {
        xr_write(&r, 1, LOG + 64 * i, 0x1111 * (i + 1), false);
        xr_store(&r, 0x401000, LOG + 64 * i + 8, i + 1, 0);
    }
    xr_sfence(&r);
    xr_event(&r, XR_TARGET, (struct sg_trace_event){ .kind = SG_TRACE_SETTLE, .qpn = 1 });
    xr_event(&r, XR_TARGET, (struct sg_trace_event){ .kind = SG_TRACE_DEVICE_FENCE });
    xr_durable(&r, LOG + 8, 8);
    pr_save_traces(&r);
}

/* More images than those of late data, and each once more from its plan. */
static void pasts(void)
{
    struct json_value *late, *any;
    guint few;

    record_pasts();
    pr_expect("--out out --domain adr --ddio off --strategy exhaustive --arrivals late "
              "target.trace client.trace",
              0, "");
    late = read_json("out/images.json");
    few = images_of(late)->items->len;
    T_TRUE(explore_again("", "--out out --domain adr --ddio off --strategy exhaustive ") > 0);
    any = read_json("out/images.json");
    T_TRUE(images_of(any)->items->len > few);
    pr_expect_in("out/result.json", "\"arrivals\": \"any\"");
    pr_expect_in("out/result.json", "\"pasts\": 8");
    pr_expect_in("out/result.json", "\"stores-with-pasts-left-out\": 0");
    json_free(late);
    json_free(any);
}

/* An image with its demands, crash point and answers. */
static char *text_of(const struct json_value *entry)
{
    const struct json_value *list = json_member(entry, "deviations", JSON_ARRAY);
    GString *text = g_string_new(image_of(entry));

    g_string_append_printf(text, " %" PRIu64 " %" PRIu64, number_of(entry, "promises"),
                           number_of(entry, "behind"));
    for (guint i = 0; i < list->items->len; i++) {
        g_string_append_printf(text, " %" PRIu64 "=%" PRIu64, number_of(item(list, i), "question"),
                               number_of(item(list, i), "answer"));
    }
    return g_string_free(text, FALSE);
}

/* What an images.json has of a platform. */
static GHashTable *images_on(const struct json_value *file, const char *platform)
{
    GHashTable *all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const struct json_value *images = images_of(file);

    for (guint i = 0; i < images->items->len; i++) {
        const struct json_value *list = platforms_of(item(images, i));

        for (guint n = 0; n < list->items->len; n++) {
            if (strcmp(item(list, n)->text, platform) == 0) {
                T_TRUE(g_hash_table_add(all, text_of(item(images, i))));
            }
        }
    }
    return all;
}

/* The same as those of an exploration of this platform alone?  Returns how many. */
static guint expect_alone(const struct json_value *all, const char *domain, const char *ddio)
{
    char *name = g_strdup_printf("%s,ddio=%s", domain, ddio);
    char *line = g_strdup_printf("--out alone --strategy only,all-but --domain %s --ddio %s "
                                 "target.trace client.trace",
                                 domain, ddio);
    struct json_value *file;
    GHashTable *here, *alone;
    GHashTableIter it;
    gpointer key;
    guint count;
    struct pr_ran ran = pr_run(line);

    file = read_json("alone/images.json");
    here = images_on(all, name);
    alone = images_on(file, name);
    g_hash_table_iter_init(&it, alone);
    while (g_hash_table_iter_next(&it, &key, NULL)) {
        T_CONTEXT("%s: %s", name, (const char *)key);
        T_TRUE(g_hash_table_contains(here, key));
    }
    count = g_hash_table_size(here);
    T_EQ_U64(count, g_hash_table_size(alone));
    g_hash_table_destroy(here);
    g_hash_table_destroy(alone);
    json_free(file);
    g_free(ran.out);
    g_free(ran.err);
    g_free(line);
    g_free(name);
    return count;
}

/* What a platform has does not depend on the platforms that are explored with it. */
static void platforms(void)
{
    static const char *const domain[] = { "none", "adr", "eadr", "whole" };
    struct json_value *all;

    record();
    pr_expect("--out out --strategy only,all-but target.trace client.trace", 1, "Bug 1");
    all = read_json("out/images.json");
    for (unsigned i = 0; i < G_N_ELEMENTS(domain); i++) {
        T_TRUE(expect_alone(all, domain[i], "on") > 2);
        T_TRUE(expect_alone(all, domain[i], "off") > 2);
    }
    json_free(all);
}

/* The status is lost by one deviation of some image, about its line. */
static void lost(void)
{
    const struct json_value *images, *list, *d = NULL;
    struct json_value *file;

    record();
    pr_expect("--out out --domain adr --ddio on --strategy all-but target.trace client.trace", 1,
              "Bug 1");
    file = read_json("out/images.json");
    images = images_of(file);
    for (guint i = 0; i < images->items->len; i++) {
        list = json_member(item(images, i), "deviations", JSON_ARRAY);
        if (list->items->len == 1) {
            d = item(list, 0);
        }
    }
    T_NOT_NULL(d);
    T_EQ_STR(json_member(d, "what", JSON_TEXT)->text, "line");
    T_EQ_STR(json_member(d, "addr", JSON_TEXT)->text, "0x100002000");
    T_EQ_U64(json_member(d, "lost", JSON_ARRAY)->items->len, 1);
    T_EQ_U64(item(json_member(d, "lost", JSON_ARRAY), 0)->number, status_event);
    json_free(file);
}

static void refuse(const char *plans, const char *why)
{
    pr_save("plans.json", (const uint8_t *)plans, strlen(plans));
    pr_expect("--out out --domain adr --plans plans.json target.trace client.trace", 2, why);
}

#define PLAN(text) "{\"version\": 1, \"plans\": [" text "]}"
#define AT(n) "\"behind\": " n ", \"platform\": \"adr,ddio=on\", "

static void wrong_plans(void)
{
    record();
    refuse("{\"version\": 1", "line 1: no comma");
    refuse("{\"version\": 2, \"plans\": []}", "it is no file of plans");
    refuse(PLAN("{\"behind\": 1.5}"), "not whole");
    refuse(PLAN("{}"), "plan 0: it needs");
    refuse(PLAN("{\"behind\": 1, \"platform\": \"eadr,ddio=on\", \"deviations\": []}"),
           "plan 0: its platform is not explored");
    refuse(PLAN("{" AT("99999") "\"deviations\": []}"), "plan 0: its platform is not judged");
    refuse(PLAN("{" AT("9") "\"deviations\": [{\"question\": 1}]}"), "\"answer\"");
    refuse(PLAN("{" AT("9") "\"deviations\": [{\"question\": 1, \"answer\": 0}, {\"question\": 1, "
                            "\"answer\": 1}]}"),
           "same question");
    refuse(PLAN("{" AT("9") "\"deviations\": [{\"question\": 99, \"answer\": 0}]}"),
           "plan 0: it answers question 99");
    refuse(PLAN("{" AT("4") "\"deviations\": []}, {" AT(
               "9") "\"deviations\": [{\"question\": 0, \"answer\": 99}]}"),
           "plan 1: it gives answer 99 to question 0");
    pr_expect("--out out --plans missing.json target.trace", 2, "missing.json");
    pr_expect("--out out --plans plans.json --strategy only target.trace", 2, "do not go together");
}

/* ---- A second cut ---- */

/* Changes what the status' line has, in a machine that begins with this content. */
static void record_again(const uint8_t start[XR_SIZE], bool within)
{
    struct xr r;

    xr_init_content(&r, TOLD, start, within);
    xr_store(&r, 0x402000, STATUS + 128, 2, 0);
    xr_sfence(&r);
    xr_durable(&r, STATUS + 128, 8);
    pr_save_traces(&r);
}

/* The memory with an image of a folder on the base. */
static void load(const char *folder, const char *name, uint8_t memory[XR_SIZE],
                 const uint8_t hash[SG_TRACE_HASH])
{
    char *leaf = g_strdup_printf("%s/images/%s.image", folder, name);
    struct sg_crash_image image;
    struct sg_crash_image_run run;
    gsize len;
    char *octets = pr_contents(leaf, &len);

    memcpy(memory, content, XR_SIZE);
    T_NULL(sg_crash_image_open(&image, (const uint8_t *)octets, len));
    T_EQ_MEM(image.head.base[0], hash, SG_TRACE_HASH);
    while (sg_crash_image_next(&image, &run)) {
        memcpy(memory + (run.addr - XR_BASE), run.octets, run.len);
    }
    sg_crash_image_clear(&image);
    g_free(octets);
    g_free(leaf);
}

/* All images of the second run differ from the first one's only where it stored. */
static void expect_nested(const uint8_t start[XR_SIZE], const uint8_t hash[SG_TRACE_HASH])
{
    struct json_value *file = read_json("again/images.json");
    const struct json_value *images = images_of(file);
    unsigned stored = 0;

    for (guint i = 0; i < images->items->len; i++) {
        uint8_t memory[XR_SIZE];

        load("again", image_of(item(images, i)), memory, hash);
        stored += memory[STATUS + 128] == 2;
        memset(memory + STATUS + 128, 0, 8);
        T_EQ_MEM(memory, start, XR_SIZE);
    }
    T_TRUE(stored > 0 && stored < images->items->len);
    json_free(file);
}

static void nested(void)
{
    uint8_t start[XR_SIZE] __attribute__((aligned(8))), hash[SG_TRACE_HASH];
    struct json_value *file;
    char *again, *text;

    record();
    pr_expect("--out out --strategy only --domain adr target.trace client.trace", 1, "Bug 1");
    sg_trace_hash_memory(content, XR_SIZE, hash);
    file = read_json("out/images.json");
    again = g_strdup_printf("--out again --domain adr --strategy exhaustive --base "
                            "pmem=out/base/pmem.raw --onto out/images/%s.image target.trace",
                            image_of(item(images_of(file), 3)));
    load("out", image_of(item(images_of(file), 3)), start, hash);
    T_TRUE(memcmp(start, content, XR_SIZE) != 0);
    for (unsigned within = 0; within < 2; within++) {
        record_again(start, within);
        pr_expect(again, 1, "Bug 1");
        text = hex(hash, SG_TRACE_HASH);
        pr_expect_in("again/images.json", text);
        g_free(text);
        text = pr_contents("again/base/pmem.raw", NULL);
        T_EQ_MEM(text, content, XR_SIZE);
        g_free(text);
        expect_nested(start, hash);
    }
    record_again(content, true);
    pr_expect(again, 3, "does not begin with the image");
    g_free(again);
    json_free(file);
}

static void wrong_nesting(void)
{
    struct json_value *file;
    char *onto, *line;

    record();
    pr_expect("--out out --strategy only --domain adr target.trace client.trace", 1, "Bug 1");
    file = read_json("out/images.json");
    onto = g_strdup_printf("--out again --strategy only --onto out/images/%s.image target.trace",
                           image_of(item(images_of(file), 0)));
    pr_expect(onto, 2, "give it by --base pmem=FILE");
    pr_save("zeros", start_of_zeros, XR_SIZE);
    line = g_strconcat(onto, " --base pmem=zeros", NULL);
    pr_expect(line, 3, "is not the base of the image");
    g_free(line);
    g_free(onto);
    pr_expect("--out again --onto missing target.trace", 2, "missing");
    pr_expect("--out again --onto target.trace target.trace", 2, "it is no image");
    json_free(file);
}

static const struct t_case cases[] = {
    { "the base of the images is written", base },
    { "deviations make the same images again", again },
    { "each past has its images, and plans that make them again", pasts },
    { "each platform has its images, plans and crash points", platforms },
    { "deviations name what they lose", lost },
    { "plans that are wrong are refused", wrong_plans },
    { "images of a run that began with an image", nested },
    { "an image that a run did not begin with", wrong_nesting },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
