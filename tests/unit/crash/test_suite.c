/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small programs, right and wrong, each explored by every strategy: each finds wrong images on the
 * platforms on which the exhaustive one finds some, and on no other.
 *
 * A program is a text of letters.  It stores records and says of each that it is durable; a record
 * is eight octets.  An image is wrong if it lacks a record that was promised, or if a flag is set
 * whose record is missing.
 */
#include <glib.h>

#include "program_rig.h"

enum { DATA = 0, FLAG = 8192, ELSEWHERE = 12288, LINE = 64, ROUNDS = 2, PORT = 4791 };

#define TOLD "persistence-domain=memory-controller\n"
#define ADR "adr,ddio=on adr,ddio=off "
#define BUFFERED ADR "eadr,ddio=on eadr,ddio=off "
#define ALL BUFFERED "whole,ddio=on whole,ddio=off "

/*
 * s, n  store, non-temporal store of the record       S     store of its flag
 * c     CLWB of the record                            C     CLWB of the flag
 * f     SFENCE                                        T     store of a flag in the record's line
 * w     RDMA Write of the record by queue pair 1      W     RDMA Write of its flag
 * F     RDMA Flush of the record; G: by queue pair 2  H     RDMA Flush of another range
 * d     mark: the record is durable                   a     mark of the client: acknowledged
 */
static const struct {
    const char *name, *program, *wrong;
} programs[] = {
    { "a record that is flushed", "scfd", "" },
    { "no flush", "sfd", ADR },
    { "no fence", "scd", BUFFERED },
    { "flushed too early", "csfd", ADR },
    { "non-temporal", "nfd", "" },
    { "non-temporal, no fence", "nd", BUFFERED },
    { "a flag behind its record", "scfSCfd", "" },
    { "a flag and its record by one fence", "scSCfd", ADR },
    { "a flag before its record", "SCfscfd", ALL },
    { "a flag whose record is not flushed", "sSCfcfd", ADR },
    { "a flag in the record's line", "sTcfd", "" },
    { "the same, written first", "Tscfd", ALL },
    { "a remote log", "wFa", "" },
    { "without Flush", "wa", ALL },
    { "a Flush of another range", "wHa", "adr,ddio=on " },
    { "a Flush by another queue pair", "wGa", ALL },
    { "a remote flag behind its Flush", "wFWa", "" },
    { "a remote flag before it", "wWFa", ALL },
};

static void step(struct xr *r, char what, unsigned i)
{
    uint64_t record = DATA + 2 * LINE * i, flag = FLAG + LINE * i;

    switch (what) {
    case 's':
    case 'n':
        xr_store(r, 0x401000, record, i + 1, what == 'n' ? SG_PERSIST_STORE_NT : 0);
        break;
    case 'S':
        xr_store(r, 0x402000, flag, i + 1, 0);
        break;
    case 'T':
        xr_store(r, 0x403000, record + 32, i + 1, 0);
        break;
    case 'c':
    case 'C':
        xr_clwb(r, what == 'c' ? record : flag);
        break;
    case 'f':
        xr_sfence(r);
        break;
    case 'w':
    case 'W':
        xr_write(r, 1, what == 'w' ? record : flag, i + 1, true);
        break;
    case 'F':
    case 'G':
        xr_flush(r, what == 'F' ? 1 : 2, record, LINE);
        break;
    case 'H':
        xr_flush(r, 1, ELSEWHERE, LINE);
        break;
    case 'd':
        xr_durable(r, record, 8);
        break;
    default:
        xr_mark(r, XR_CLIENT, "acknowledged", "");
        xr_frame(r, XR_CLIENT);
    }
}

static void record(const char *program)
{
    struct xr r;

    xr_init(&r, TOLD);
    xr_connect(&r, 1, PORT);
    xr_connect(&r, 2, PORT);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (const char *c = program; *c; c++) {
            step(&r, *c, i);
        }
    }
    xr_end(&r);
    pr_save("target.trace", r.machine[XR_TARGET].file->data, r.machine[XR_TARGET].file->len);
    pr_save("client.trace", r.machine[XR_CLIENT].file->data, r.machine[XR_CLIENT].file->len);
    xr_free(&r);
}

static bool is_there(const uint8_t *memory, uint64_t off, unsigned i)
{
    return memory[off] == i + 1;
}

/* The first so many records are promised. */
static bool is_wrong(const uint8_t *memory, unsigned promised)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t at = DATA + 2 * LINE * i;
        bool there = is_there(memory, at, i);
        bool flagged = is_there(memory, FLAG + LINE * i, i) || is_there(memory, at + 32, i);

        if (!there && (i < promised || flagged)) {
            return true;
        }
    }
    return false;
}

/* How many records the first so many promises are about: each record has one mark. */
static unsigned records_of(const struct json_value *promises, uint64_t count)
{
    unsigned marks = 0;

    for (guint k = 0; k < count; k++) {
        const char *kind = json_member(pr_item(promises, k), "acknowledgement", JSON_TEXT)->text;

        marks += !strcmp(kind, "durable") || !strcmp(kind, "acknowledged");
    }
    return marks;
}

/* The platforms with a wrong image, each with a space behind it. */
static char *explore(const char *strategy)
{
    static const char *const platforms[] = { "adr,ddio=on",   "adr,ddio=off",  "eadr,ddio=on",
                                             "eadr,ddio=off", "whole,ddio=on", "whole,ddio=off" };
    char *line = g_strdup_printf("--out out --domain adr,eadr,whole --strategy %s target.trace "
                                 "client.trace",
                                 strategy);
    struct pr_ran ran = pr_run(line);
    struct json_value *file = pr_json("out/images.json"), *said = pr_json("out/promises.json");
    const struct json_value *images = json_member(file, "images", JSON_ARRAY);
    const struct json_value *promises = json_member(said, "promises", JSON_ARRAY);
    GString *found = g_string_new("");
    uint8_t memory[XR_SIZE];
    unsigned wrong = 0;

    if (ran.status >= 2) {
        T_FAIL("status %d: %s", ran.status, ran.err);
    }
    for (guint i = 0; i < images->items->len; i++) {
        const struct json_value *one = pr_item(images, i);
        const struct json_value *on = json_member(one, "platforms", JSON_ARRAY);

        pr_image("out", json_member(one, "image", JSON_TEXT)->text, memory);
        if (!is_wrong(memory, records_of(promises, pr_number(one, "promises")))) {
            continue;
        }
        for (guint k = 0; k < on->items->len; k++) {
            for (unsigned n = 0; n < G_N_ELEMENTS(platforms); n++) {
                wrong |= (unsigned)!strcmp(pr_item(on, k)->text, platforms[n]) << n;
            }
        }
    }
    for (unsigned n = 0; n < G_N_ELEMENTS(platforms); n++) {
        if (wrong >> n & 1) {
            g_string_append_printf(found, "%s ", platforms[n]);
        }
    }
    json_free(file);
    json_free(said);
    g_free(ran.out);
    g_free(ran.err);
    g_free(line);
    return g_string_free(found, FALSE);
}

/* In part, where all takes long: then each strategy has another part of the programs. */
static void suite(void)
{
    static const char *const strategies[] = {
        "exhaustive",
        "only",
        "all-but",
        "reads --reads all.reads",
        "cluster,exhaustive",
        "cluster,all-but",
        "random:60:1",
    };

    pr_save("all.reads", (const uint8_t *)"0x100000000 16384\n", 18);
    for (unsigned i = 0; i < G_N_ELEMENTS(programs); i++) {
        T_CONTEXT("%s (%s)", programs[i].name, programs[i].program);
        record(programs[i].program);
        for (unsigned s = 0; s < G_N_ELEMENTS(strategies); s++) {
            char *found;

            if ((i + s) % t_stride(3)) {
                continue;
            }
            T_CONTEXT("%s (%s), %s", programs[i].name, programs[i].program, strategies[s]);
            found = explore(strategies[s]);
            T_EQ_STR(found, programs[i].wrong);
            g_free(found);
        }
    }
}

/* The image of a bug has nothing where its octet may be lost: each place is stored to once. */
static void expect_image(const struct json_value *bug, const struct json_value *one, guint number)
{
    const struct json_value *on = pr_item(json_member(bug, "platforms", JSON_ARRAY), 0);
    const char *image = json_member(one, "image", JSON_TEXT)->text;
    char *plan = g_strdup_printf("bug %u", number);
    uint8_t memory[XR_SIZE];

    T_EQ_STR(json_member(bug, "image", JSON_TEXT)->text, image);
    T_EQ_STR(json_member(one, "plan", JSON_TEXT)->text, plan);
    pr_image("out", image, memory);
    T_EQ_INT(memory[g_ascii_strtoull(json_member(on, "addr", JSON_TEXT)->text, NULL, 16) - XR_BASE],
             0);
    g_free(plan);
}

/* Strategy "bugs": every bug of the explorer has an image, and nothing else has one. */
static void bugs(void)
{
    unsigned all = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(programs); i++) {
        struct json_value *result, *file;
        const struct json_value *found, *images;
        struct pr_ran ran;

        T_CONTEXT("%s (%s)", programs[i].name, programs[i].program);
        record(programs[i].program);
        ran = pr_run("--out out --strategy bugs target.trace client.trace");
        result = pr_json("out/result.json");
        file = pr_json("out/images.json");
        found = json_member(result, "bugs", JSON_ARRAY);
        images = json_member(file, "images", JSON_ARRAY);
        T_EQ_INT(ran.status, found->items->len ? 1 : 0);
        T_EQ_U64(images->items->len, found->items->len);
        for (guint k = 0; k < found->items->len; k++) {
            expect_image(pr_item(found, k), pr_item(images, k), k + 1);
            T_NOT_NULL(strstr(ran.out, "  image: "));
        }
        all += found->items->len;
        json_free(result);
        json_free(file);
        g_free(ran.out);
        g_free(ran.err);
    }
    T_TRUE(all >= G_N_ELEMENTS(programs) / 2);
}

/* Images of other strategies come before them, and stay. */
static void bugs_besides(void)
{
    struct json_value *alone, *both;
    const struct json_value *images;
    guint count;

    record("sfd");
    pr_expect("--out out --strategy all-but target.trace client.trace", 1, "Bug 1");
    pr_expect("--out both --strategy all-but,bugs target.trace client.trace", 1, "  image: ");
    alone = pr_json("out/images.json");
    both = pr_json("both/images.json");
    images = json_member(both, "images", JSON_ARRAY);
    count = json_member(alone, "images", JSON_ARRAY)->items->len;
    T_TRUE(images->items->len > count);
    T_EQ_STR(json_member(pr_item(images, count), "plan", JSON_TEXT)->text, "bug 1");
    json_free(alone);
    json_free(both);
    pr_expect("--out both --strategy all-but,bugs --max-images 3 target.trace client.trace", 1,
              "  image: ");
    pr_expect("--out both --strategy bugs --target target --together client target.trace "
              "client.trace",
              2, "without reads, cluster and bugs");
}

/* More causes than are followed and told: that is said, and nothing is claimed of the others. */
static void many_bugs(void)
{
    enum { CAUSES = 70 };
    struct pr_ran ran;
    struct xr r;

    xr_init(&r, "");
    for (unsigned i = 0; i < CAUSES; i++) {
        xr_store(&r, 0x401000 + i, (uint64_t)i * 8, i + 1, 0);
        xr_durable(&r, (uint64_t)i * 8, 8);
    }
    pr_save_traces(&r);
    ran = pr_run("--out out --strategy bugs --domain adr --ddio on target.trace client.trace");
    T_EQ_INT(ran.status, 1);
    T_NOT_NULL(strstr(ran.out, "\nBug 70: "));
    T_NOT_NULL(strstr(ran.out, "  image: not looked for\n"));
    T_NOT_NULL(strstr(ran.out, "  until: not known\n"));
    T_NOT_NULL(strstr(ran.out, "Of 70 causes the first 64 are told"));
    T_NOT_NULL(strstr(ran.out, "adr,ddio=on: of 38 causes of 70 it is not known until when they "
                               "last: 32 at a time are followed"));
    g_free(ran.out);
    g_free(ran.err);
}

static const struct t_case cases[] = {
    { "each strategy finds what the exhaustive one finds, on the same platforms", suite },
    { "each bug has an image that shows it", bugs },
    { "images of bugs beside those of strategies", bugs_besides },
    { "what limits leave out of many bugs is said", many_bugs },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
