/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One power failure of two machines: a client notes in its own memory what the target has.
 *
 * A right client notes a record when its Flush has completed, so a note without its record must
 * not be found; a wrong one notes it before it sends.  What pairs of images may have of both is
 * known here by reasoning, and compared in both directions.
 */
#include "program_rig.h"

enum { NOTES = 0, RECORDS = 8192, MOST = 4 };

#define TOLD "persistence-domain=memory-controller\n"
#define TRACES " target.trace client.trace"
#define BOTH "--target client --together target --domain adr --ddio on "

/* The client writes to its memory. */
static void store(struct xr *r, uint64_t addr, uint64_t value)
{
    const uint64_t octets = GUINT64_TO_LE(value);

    xr_event(r, XR_CLIENT,
             (struct sg_trace_event){
                 .kind = SG_TRACE_STORE,
                 .at = 0x402000,
                 .root = 0x1000,
                 .addr = addr,
                 .data = (const uint8_t *)&octets,
                 .len = sizeof(value),
                 .arg = SG_PERSIST_STORE_ANNOUNCED,
             });
}

/* The client makes a note durable. */
static void put_note(struct xr *r, unsigned record)
{
    const uint64_t addr = XR_BASE + NOTES + 64 * record;

    store(r, addr, record + 1);
    xr_event(r, XR_CLIENT,
             (struct sg_trace_event){
                 .kind = SG_TRACE_CPU_FLUSH, .addr = addr, .arg = SG_PERSIST_CLWB });
    xr_event(r, XR_CLIENT,
             (struct sg_trace_event){ .kind = SG_TRACE_CPU_FENCE, .arg = SG_PERSIST_SFENCE });
}

static void record(unsigned records, bool right, bool loose)
{
    struct xr r;

    xr_init_both(&r, TOLD);
    xr_connect(&r, 1, 7000);
    if (loose) { /* never flushed, so the client's images are twice as many */
        store(&r, XR_BASE + 4096, 1);
    }
    for (unsigned i = 0; i < records; i++) {
        if (!right) {
            put_note(&r, i);
        }
        xr_write(&r, 1, RECORDS + 64 * i, i + 1, false);
        xr_flush(&r, 1, RECORDS + 64 * i, 8);
        if (right) {
            put_note(&r, i);
        }
    }
    xr_end(&r);
    pr_save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    pr_save("client.trace", r.machine[XR_CLIENT].file->data, r.machine[XR_CLIENT].file->len);
    xr_free(&r);
}

/* ---- What pairs have ---- */

struct both {
    struct json_value *pairs, *images[2];
    const struct json_value *list;
};

static void load(struct both *b, const char *folder)
{
    const char *const file[] = { "first/images.json", "second/images.json" };
    char *name = g_build_filename(folder, "pairs.json", NULL);

    b->pairs = pr_json(name);
    b->list = json_member(b->pairs, "pairs", JSON_ARRAY);
    g_free(name);
    for (unsigned k = 0; k < 2; k++) {
        name = g_build_filename(folder, file[k], NULL);
        b->images[k] = pr_json(name);
        g_free(name);
    }
}

static void drop(struct both *b)
{
    json_free(b->pairs);
    json_free(b->images[0]);
    json_free(b->images[1]);
}

static const struct json_value *image_of(const struct both *b, guint pair, unsigned k)
{
    const struct json_value *images = json_member(pr_item(b->list, pair), "images", JSON_ARRAY);

    return pr_item(json_member(b->images[k], "images", JSON_ARRAY),
                   (guint)pr_item(images, k)->number);
}

/* The records that one machine's image has, as a set. */
static unsigned records_of(const struct both *b, const char *folder, guint pair, unsigned k)
{
    const char *image = json_member(image_of(b, pair, k), "image", JSON_TEXT)->text;
    char *place = g_build_filename(folder, k ? "second" : "first", NULL);
    static uint8_t memory[XR_SIZE] __attribute__((aligned(8)));
    unsigned set = 0;

    pr_image(place, image, memory);
    g_free(place);
    for (unsigned i = 0; i < MOST; i++) {
        set |= (memory[(k ? RECORDS : NOTES) + 64 * i] != 0) << i;
    }
    return set;
}

/* All combinations of notes and records that pairs have: a bit for each. */
static uint64_t combinations(const char *folder)
{
    struct both b;
    uint64_t found = 0;

    load(&b, folder);
    for (guint i = 0; i < b.list->items->len; i++) {
        unsigned notes = records_of(&b, folder, i, 0), records = records_of(&b, folder, i, 1);

        T_TRUE(notes < 8 && records < 8);
        found |= 1ull << (notes << 3 | records);
    }
    drop(&b);
    return found;
}

static uint64_t bit(unsigned notes, unsigned records)
{
    return 1ull << (notes << 3 | records);
}

/*
 * Up to two records.  Record i is on its way to the target, or was flushed; its note is on its way
 * to the media, or fenced.  What is behind a fence or a Flush is there.
 */
static void right_and_wrong(void)
{
    const uint64_t right = bit(0, 0) | bit(0, 1) | bit(1, 1) | bit(1, 3) | bit(3, 3);
    const uint64_t wrong = bit(0, 0) | bit(1, 0) | bit(1, 1) | bit(3, 1) | bit(3, 3);

    record(2, true, false);
    pr_expect(BOTH "--out right --strategy exhaustive" TRACES, 0, "one power failure of both");
    T_EQ_U64(combinations("right"), right);
    record(2, false, false);
    pr_expect(BOTH "--out wrong --strategy exhaustive" TRACES, 0, "pairs of images");
    T_EQ_U64(combinations("wrong"), wrong);
    /* Other strategies, and the machines the other way round, find the same here. */
    pr_expect(BOTH "--out plain --strategy only,all-but" TRACES, 0, "pairs of images");
    T_EQ_U64(combinations("plain"), wrong);
}

/* Platforms that keep less than a guest was told have pairs only if they are wanted. */
static void not_claimed(void)
{
#define WORDS "--target client --together target --domain none,eadr --ddio on --strategy only"
    struct both b;

    record(1, true, false);
    pr_expect(WORDS " --out claimed" TRACES, 0, "eadr,ddio=on");
    load(&b, "claimed");
    for (guint i = 0; i < b.list->items->len; i++) {
        const struct json_value *on = json_member(pr_item(b.list, i), "platforms", JSON_ARRAY);

        T_EQ_U64(on->items->len, 1);
        T_EQ_STR(pr_item(on, 0)->text, "eadr,ddio=on");
    }
    T_TRUE(b.list->items->len > 0);
    drop(&b);
    pr_expect(WORDS " --not-claimed --out all" TRACES, 0, "none,ddio=on");
    load(&b, "all");
    T_TRUE(pr_number(pr_item(json_member(b.pairs, "platforms", JSON_ARRAY), 0), "point-pairs"));
    drop(&b);
}

/* ---- Numbers ---- */

static uint64_t count(const struct json_value *v, const char *key)
{
    return g_ascii_strtoull(json_member(v, key, JSON_TEXT)->text, NULL, 10);
}

/* What is possible, explored and left out; a limit chooses among all of the run, by a seed. */
static void limits(void)
{
    const struct json_value *platform;
    struct both b;
    uint64_t all, last;
    char *text, *other;

    record(3, true, true);
    pr_expect(BOTH "--out out --strategy exhaustive" TRACES, 0, "explored");
    load(&b, "out");
    all = count(b.pairs, "image-pairs");
    T_EQ_U64(pr_number(b.pairs, "image-pairs-explored"), all);
    T_EQ_U64(pr_number(b.pairs, "point-pairs-without-images"), 0);
    T_EQ_U64(pr_number(b.pairs, "point-pairs-contrary"), 0);
    T_TRUE(b.list->items->len <= all && all > count(b.pairs, "image-pairs-one-sided"));
    platform = pr_item(json_member(b.pairs, "platforms", JSON_ARRAY), 0);
    T_EQ_U64(pr_number(platform, "point-pairs"), pr_number(platform, "point-pairs-explored"));
    T_EQ_U64(pr_number(platform, "intervals-alone"), 0);
    T_TRUE(count(platform, "cuts") > pr_number(platform, "point-pairs"));
    last = pr_number(image_of(&b, b.list->items->len - 1, 0), "behind");
    drop(&b);

    pr_expect(BOTH "--out few --max-pairs 6 --strategy exhaustive" TRACES, 0, "6 explored");
    load(&b, "few");
    T_EQ_U64(pr_number(b.pairs, "image-pairs-explored"), 6);
    T_TRUE(b.list->items->len <= 6);
    T_TRUE(pr_number(image_of(&b, b.list->items->len - 1, 0), "behind") >= last / 2);
    drop(&b);
    text = pr_contents("few/pairs.json", NULL);
    pr_expect(BOTH "--out few2 --max-pairs 6 --strategy exhaustive" TRACES, 0, "6 explored");
    other = pr_contents("few2/pairs.json", NULL);
    T_EQ_STR(text, other);
    g_free(other);
    pr_expect(BOTH "--out few3 --max-pairs 6 --pair-seed 2 --strategy exhaustive" TRACES, 0, "6");
    other = pr_contents("few3/pairs.json", NULL);
    T_TRUE(strcmp(text, other) != 0);
    g_free(other);
    g_free(text);
    /* Images that are left out leave pairs out, and that is said. */
    pr_expect(BOTH "--out bare --max-images 3 --strategy exhaustive" TRACES, 0,
              "have no pair of images");
}

/* Plans of all images of a machine that are listed: of each on its first platform. */
static void save_plans(const struct json_value *images)
{
    GString *out = g_string_new("{\"version\": 1, \"plans\": [");

    for (guint i = 0; i < images->items->len; i++) {
        const struct json_value *one = pr_item(images, i);
        const struct json_value *list = json_member(one, "deviations", JSON_ARRAY);

        g_string_append_printf(out, "%s{\"behind\": %" PRIu64 ", \"platform\": \"%s\", ",
                               i ? ", " : "", pr_number(one, "behind"),
                               pr_item(json_member(one, "platforms", JSON_ARRAY), 0)->text);
        g_string_append(out, "\"deviations\": [");
        for (guint k = 0; k < list->items->len; k++) {
            g_string_append_printf(out, "%s{\"question\": %" PRIu64 ", \"answer\": %" PRIu64 "}",
                                   k ? ", " : "", pr_number(pr_item(list, k), "question"),
                                   pr_number(pr_item(list, k), "answer"));
        }
        g_string_append(out, "]}");
    }
    g_string_append(out, "]}");
    pr_save("plans.json", (const uint8_t *)out->str, out->len);
    g_string_free(out, TRUE);
}

/* Explores one machine alone, with late data, and returns images.json; the caller frees it. */
static struct json_value *alone(const char *machine, const char *words)
{
    char *all =
        g_strdup_printf("--target %s --arrivals late --out alone %s" TRACES, machine, words);
    struct pr_ran ran = pr_run(all);

    T_CONTEXT("%s: %s", all, ran.err);
    T_TRUE(ran.status == 0 || ran.status == 4); /* nothing is promised of the client's memory */
    g_free(ran.out);
    g_free(ran.err);
    g_free(all);
    return pr_json("alone/images.json");
}

/* How many images of a list are at none of the instants of the other one. */
static unsigned elsewhere(const struct json_value *list, const struct json_value *other)
{
    unsigned count = 0;

    for (guint i = 0; i < list->items->len; i++) {
        uint64_t behind = pr_number(pr_item(list, i), "behind");
        bool found = false;

        for (guint k = 0; k < other->items->len; k++) {
            found |= pr_number(pr_item(other, k), "behind") == behind;
        }
        count += !found;
    }
    return count;
}

/*
 * Images of pairs are of instants that are no crash points of their machine alone, such as those
 * that the other machine limits.  Each can be made again from its plan, to make it smaller.
 */
static void again(void)
{
    const char *const machine[] = { "client", "target" };
    struct both b;
    unsigned beside = 0;

    record(2, false, true);
    pr_expect(BOTH "--out out --strategy exhaustive" TRACES, 0, "explored");
    load(&b, "out");
    for (unsigned k = 0; k < 2; k++) {
        const struct json_value *images = json_member(b.images[k], "images", JSON_ARRAY), *list;
        struct json_value *file = alone(machine[k], "--domain adr --ddio on --strategy exhaustive");

        beside += elsewhere(images, json_member(file, "images", JSON_ARRAY));
        json_free(file);
        save_plans(images);
        file = alone(machine[k], "--plans plans.json");
        list = json_member(file, "images", JSON_ARRAY);
        T_EQ_U64(list->items->len, images->items->len);
        for (guint i = 0; i < list->items->len; i++) {
            const struct json_value *x = pr_item(images, i), *y = pr_item(list, i);

            T_EQ_STR(json_member(x, "image", JSON_TEXT)->text,
                     json_member(y, "image", JSON_TEXT)->text);
            T_EQ_U64(pr_number(x, "behind"), pr_number(y, "behind"));
        }
        json_free(file);
    }
    T_TRUE(beside > 0);
    drop(&b);
}

/* The promises of a machine say how far the other one must have come. */
static void promises(void)
{
    struct json_value *file;
    const struct json_value *list, *one;

    record(1, true, false);
    pr_expect(BOTH "--out out --strategy only" TRACES, 0, "explored");
    pr_expect_in("out/first/result.json", "\"arrivals\": \"late\"");
    file = pr_json("out/second/promises.json");
    list = json_member(file, "promises", JSON_ARRAY);
    T_EQ_U64(list->items->len, 1);
    one = pr_item(list, 0);
    T_EQ_STR(json_member(one, "machine", JSON_TEXT)->text, "client");
    T_EQ_U64(pr_number(one, "binds-behind-other"), pr_number(one, "event"));
    T_TRUE(pr_number(one, "binds-behind") > 0);
    json_free(file);
}

static void refusals(void)
{
    record(1, true, false);
    pr_expect("--out x --together target --strategy only" TRACES, 2, "needs --target");
    pr_expect("--out x --target target --together target --strategy only" TRACES, 2, "another");
    pr_expect(BOTH "--out x" TRACES, 2, "needs --strategy");
    pr_expect(BOTH "--out x --strategy only --arrivals any" TRACES, 2, "without --arrivals any");
    pr_expect(BOTH "--out x --strategy only,cluster" TRACES, 2, "without reads, cluster and bugs");
    pr_expect(BOTH "--out x --strategy only --max-pairs 0" TRACES, 2, "--max-pairs");
    pr_expect("--out x --target client --together nobody --strategy only" TRACES, 3,
              "no trace of a machine nobody");
}

static const struct t_case cases[] = {
    { "pairs have what one power failure of both may leave, and nothing else", right_and_wrong },
    { "pairs are of platforms that both machines claim", not_claimed },
    { "pairs are counted, and chosen by a seed", limits },
    { "images of instants beside crash points are made again from plans", again },
    { "promises say how far the other machine must have come", promises },
    { "what does not go together with pairs is refused", refusals },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
