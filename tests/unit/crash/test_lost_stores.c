/* SPDX-License-Identifier: GPL-2.0-or-later */
/* staghorn-explore --timelines: what happened to stores that an image lost. */
#include <glib.h>

#include "program_rig.h"

enum { LOG = 0, STATUS = 8192, LINE = 64 };

#define TRACES " target.trace client.trace"
#define RUN "--out out --timelines stores.json" TRACES

/* Of the run: events of the target. */
static uint64_t placed, promised, stored, last;

/* A record that is flushed, one that is not, and a status of the target's CPU. */
static void record(void)
{
    struct xr r;

    xr_init(&r, "persistence-domain=memory-controller\n");
    xr_connect(&r, 1, 7000);
    xr_write(&r, 1, LOG, 0x1111, true);
    xr_flush(&r, 1, LOG, LINE);
    placed = xr_write(&r, 1, LOG + LINE, 0x2222, true);
    xr_mark(&r, XR_TARGET, "note", "");
    stored = xr_store(&r, 0x401000, STATUS, 1, 0);
    xr_sfence(&r);
    xr_durable(&r, STATUS, 8);
    promised = stored + 2;
    xr_clwb(&r, STATUS);
    xr_mark(&r, XR_TARGET, "note", "end");
    last = stored + 4;
    xr_write(&r, 1, LOG + LINE, 0x3333, true);
    pr_save_traces(&r);
}

static void save_stores(const char *stores)
{
    char *text = g_strdup_printf("{\"version\": 1, \"stores\": [%s]}", stores);

    pr_save("stores.json", (const uint8_t *)text, strlen(text));
    g_free(text);
}

/* "{...}" of a store on adr with DDIO; more: further members. */
static char *store_of(uint64_t event, uint64_t off, uint64_t behind, const char *more)
{
    return g_strdup_printf("{\"event\": %" G_GUINT64_FORMAT ", \"addr\": \"0x%llx\", "
                           "\"behind\": %" G_GUINT64_FORMAT ", \"platform\": \"adr,ddio=on\"%s}",
                           event, XR_BASE + off, behind, more);
}

static void save_store(uint64_t event, uint64_t off, uint64_t behind, const char *more)
{
    char *store = store_of(event, off, behind, more);

    save_stores(store);
    g_free(store);
}

static const struct json_value *lines_of(const struct json_value *file, guint i)
{
    const struct json_value *stores = json_member(file, "stores", JSON_ARRAY);

    return json_member(pr_item(stores, i), "timeline", JSON_ARRAY);
}

/* The rows of a timeline, "client: the request is sent", with the stage. */
static char *text_of(const struct json_value *rows)
{
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < rows->items->len; i++) {
        const struct json_value *row = pr_item(rows, i);
        const struct json_value *stage = json_member(row, "stage-behind", JSON_TEXT);

        g_string_append_printf(out, "%s: %s%s%s\n", json_member(row, "machine", JSON_TEXT)->text,
                               json_member(row, "what", JSON_TEXT)->text, stage ? ", " : "",
                               stage ? stage->text : "");
    }
    return g_string_free(out, FALSE);
}

static void expect_rows(guint store, const char *wanted)
{
    struct json_value *file = pr_json("out/timelines.json");
    char *text = text_of(lines_of(file, store));

    T_EQ_STR(text, wanted);
    g_free(text);
    json_free(file);
}

/* The record's own Flush is missing.  What the client does at the same time is there. */
static void of_adapter(void)
{
    record();
    save_store(placed, LOG + LINE, last, ", \"promises\": 1");
    pr_expect(RUN, 0, "");
    expect_rows(0, "client: the acknowledgement\n"
                   "client: the request is sent\n"
                   "target: the store, S0\n"
                   "target: a mark, S0\n"
                   "target: a mark, S0\n"
                   "target: the last event before the power fails, S0\n"
                   "client: the request's completion, S0\n");
    pr_expect_in("out/timelines.json", "\"target\": \"target\"");
    pr_expect_in("out/timelines.json", "\"acknowledgement\": {");
}

/* The second store, with its own octet; nothing has been promised. */
static void of_cpu(void)
{
    char *first = store_of(placed, LOG + LINE, placed, ""),
         *second = store_of(stored, STATUS, promised, ""),
         *both = g_strconcat(first, ", ", second, NULL);

    record();
    save_stores(both);
    pr_expect(RUN, 0, "");
    expect_rows(0, "client: the request is sent\n"
                   "target: the store, S0\n");
    expect_rows(1, "target: the store, S2'\n"
                   "target: it moves on, S2\n"
                   "target: the last event before the power fails, S2\n");
    g_free(first);
    g_free(second);
    g_free(both);
}

/* What the store became is known from the past in which the image was made. */
static void pasts(void)
{
    struct sg_trace_event data = { .kind = SG_TRACE_PLACE,
                                   .addr = XR_BASE,
                                   .len = 8,
                                   .qpn = 1,
                                   .data = (const uint8_t *)"datadata",
                                   .ordinal = 1 };
    struct sg_trace_event read = { .kind = SG_TRACE_DMA_READ, .addr = XR_BASE, .len = 8, .qpn = 1 };
    char *late, *early, *both;
    struct json_value *file;
    struct xr r;

    xr_init(&r, "");
    xr_event(&r, XR_TARGET, data);
    stored = xr_store(&r, 0x401000, 8, 1, 0);
    xr_sfence(&r);
    last = xr_event(&r, XR_TARGET, read);
    pr_save_traces(&r);
    late = store_of(stored, 8, last, "");
    early = store_of(stored, 8, last, ", \"arrivals\": [{\"question\": 0, \"answer\": 1}]");
    both = g_strconcat(early, ", ", late, NULL);
    save_stores(both);
    pr_expect(RUN, 0, "");
    file = pr_json("out/timelines.json");
    T_TRUE(lines_of(file, 0)->items->len > 1);
    T_NULL(lines_of(file, 1)); /* one past of a platform is told */
    json_free(file);
    g_free(late);
    g_free(early);
    g_free(both);
}

static void wrong_files(void)
{
    GString *many = g_string_new(NULL);
    char *one = store_of(1, 0, 1, "");

    record();
    pr_expect("--out out --timelines nothing.json" TRACES, 2, "nothing.json");
    pr_save("stores.json", (const uint8_t *)"{}", 2);
    pr_expect(RUN, 2, "no file of stores");
    save_stores("{\"event\": 1}");
    pr_expect(RUN, 2, "store 0: it needs");
    save_store(placed, LOG, placed - 1, "");
    pr_expect(RUN, 2, "the power fails before its store");
    save_store(0, LOG, 1, "");
    pr_expect(RUN, 2, "the power fails before its store");
    save_store(placed, LOG, last, ", \"promises\": 3");
    pr_expect(RUN, 2, "store 0: the run has 2 promises");
    save_store(placed, LOG, last, ", \"arrivals\": [1]");
    pr_expect(RUN, 2, "early arrivals");
    save_store(placed, LOG, last, "");
    pr_expect("--out out --domain eadr --timelines stores.json" TRACES, 2, "not explored");
    pr_expect("--out out --strategy only --timelines stores.json" TRACES, 2, "goes without");
    for (unsigned i = 0; i <= SG_CRASH_STORIES; i++) {
        g_string_append_printf(many, "%s%s", i ? ", " : "", one);
    }
    save_stores(many->str);
    pr_expect(RUN, 2, "more than 64 stores");
    g_string_free(many, TRUE);
    g_free(one);
}

/* Numbers that the run does not have: no row is made, and nothing else happens. */
static void strange(void)
{
    record();
    save_store(1ull << 40, LOG, 1ull << 50, "");
    pr_expect(RUN, 0, "");
    expect_rows(0, "");
    save_store(placed, 1ull << 40, last, "");
    pr_expect(RUN, 0, "");
}

/* A replay of a trace that cannot be ends there. */
static void impossible(void)
{
    struct xr r;

    xr_init(&r, "");
    stored = xr_store(&r, 0x401000, STATUS, 1, 0);
    last = xr_store(&r, 0x401000, XR_SIZE, 1, 0) + 1;
    xr_sfence(&r);
    pr_save_traces(&r);
    save_store(stored, STATUS, last, "");
    pr_expect(RUN, 3, "target.trace: event 2");
}

/* A trace without its content: the file that is given has to be it. */
static void content(void)
{
    static const uint8_t zeros[XR_SIZE];
    uint8_t start[XR_SIZE] = { 7 };
    struct xr r;

    xr_init_content(&r, "", start, false);
    stored = xr_store(&r, 0x401000, STATUS, 1, 0);
    last = stored + 1;
    xr_sfence(&r);
    pr_save_traces(&r);
    pr_save("start", start, XR_SIZE);
    pr_save("zeros", zeros, XR_SIZE);
    save_store(stored, STATUS, last, "");
    pr_expect("--base pmem=start " RUN, 0, "");
    expect_rows(0, "target: the store, S2'\n"
                   "target: it moves on, S2\n");
    pr_expect("--base pmem=zeros " RUN, 3, "target.trace");
    pr_expect(RUN, 2, "give it by --base pmem=FILE");
}

static const struct t_case cases[] = {
    { "a placement that an image lost, with the promise in force", of_adapter },
    { "a store of a CPU, and one behind which the power fails at once", of_cpu },
    { "stores in different pasts", pasts },
    { "files that are refused", wrong_files },
    { "events and addresses that the run does not have", strange },
    { "an event that its machine cannot have", impossible },
    { "the content at the start", content },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
