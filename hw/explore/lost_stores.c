/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store that an image lost is told as if it were a bug: what is asked at each event is whether
 * its first octet in the lost line is certain.
 */
#include <stdio.h>
#include <stdlib.h>

#include "json_read.h"
#include "lost_stores.h"
#include "output.h"
#include "plans.h"
#include "timeline_json.h"

#define TIMELINES "timelines.json"

/* ---- The file that names them ---- */

static void clear_store(gpointer opaque)
{
    g_array_unref(((struct sg_explore_lost_store *)opaque)->breach.early);
}

static bool read_address(const struct json_value *v, uint64_t *address)
{
    char *end = NULL;

    if (!v || !g_str_has_prefix(v->text, "0x")) {
        return false;
    }
    *address = g_ascii_strtoull(v->text, &end, 16);
    return end > v->text + 2 && !*end;
}

/* NULL, or what is wrong. */
static const char *read_store(struct sg_explore_lost_store *store, const struct json_value *v,
                              const struct sg_explore_options *o)
{
    const struct json_value *event = json_member(v, "event", JSON_NUMBER);
    const struct json_value *address = json_member(v, "addr", JSON_TEXT);
    const struct json_value *behind = json_member(v, "behind", JSON_NUMBER);
    const struct json_value *name = json_member(v, "platform", JSON_TEXT);
    const struct json_value *promises = json_member(v, "promises", JSON_NUMBER);

    if (!event || !behind || !name || !read_address(address, &store->breach.addr)) {
        return "it needs the numbers \"event\" and \"behind\", and the texts \"platform\" and "
               "\"addr\", with 0x";
    }
    if (!event->number || event->number > behind->number) {
        return "the power fails before its store";
    }
    if (!sg_explore_find_platform(name->text, o->platform, o->platforms, &store->platform)) {
        return "its platform is not explored: see --domain and --ddio";
    }
    store->behind = behind->number;
    store->promises = promises ? promises->number : 0;
    store->breach.kind = SG_CRASH_ACK_WRITE; /* this store alone, and no older one */
    store->breach.placed = store->breach.lost = event->number;
    return sg_explore_read_arrivals(store->breach.early, v);
}

static char *read_stores(GArray *stores, const struct json_value *file,
                         const struct sg_explore_options *o)
{
    const struct json_value *version = json_member(file, "version", JSON_NUMBER);
    const struct json_value *list = json_member(file, "stores", JSON_ARRAY);

    if (!version || version->number != 1 || !list) {
        return g_strdup("it is no file of stores: it needs \"version\": 1 and a list \"stores\"");
    }
    if (list->items->len > SG_CRASH_STORIES) {
        return g_strdup_printf("it has more than %d stores", SG_CRASH_STORIES);
    }
    for (guint i = 0; i < list->items->len; i++) {
        struct sg_explore_lost_store store = {
            .breach.early = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_answer)),
        };
        const char *wrong = read_store(&store, g_ptr_array_index(list->items, i), o);

        g_array_append_val(stores, store);
        if (wrong) {
            return g_strdup_printf("store %u: %s", i, wrong);
        }
    }
    return NULL;
}

/* ---- The pass ---- */

/* What pass 3 tells; NULL, or what is wrong. */
static char *make_bugs(struct sg_explore_session *s)
{
    uint64_t count;

    sg_crash_promises_of(s->promises, s->target, &count);
    s->bugs = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_bug));
    for (guint i = 0; i < s->lost->len; i++) {
        const struct sg_explore_lost_store *store =
            &g_array_index(s->lost, struct sg_explore_lost_store, i);
        struct sg_crash_bug bug = {
            .kind = store->breach.kind,
            .promise = store->promises ? store->promises - 1 : SG_CRASH_NO_PROMISE,
            .lost = store->breach.lost,
            .fails = store->behind,
            .least = store->platform,
        };

        if (store->promises > count) {
            return g_strdup_printf("store %u: the run has %" G_GUINT64_FORMAT " promises", i,
                                   count);
        }
        bug.on[store->platform] = &store->breach;
        g_array_append_val(s->bugs, bug);
    }
    return NULL;
}

int sg_explore_pass_lost(struct sg_explore_session *s)
{
    char *wrong = NULL;
    struct json_value *file = json_read_file(s->o.timelines, &wrong);

    s->lost = g_array_new(FALSE, FALSE, sizeof(struct sg_explore_lost_store));
    g_array_set_clear_func(s->lost, clear_store);
    if (file) {
        wrong = read_stores(s->lost, file, &s->o);
    }
    json_free(file);
    if (!wrong) {
        wrong = make_bugs(s);
    }
    if (wrong) {
        fprintf(stderr, "staghorn-explore: %s: %s\n", s->o.timelines, wrong);
        g_free(wrong);
        return SG_EXPLORE_USAGE;
    }
    return sg_explore_read_content(s);
}

/* ---- The result ---- */

int sg_explore_write_timelines(struct sg_explore_session *s)
{
    struct json j = { .out = g_string_new(NULL) };
    bool good;

    json_open(&j, NULL, '{');
    json_number(&j, "version", 1);
    json_text(&j, "target", s->trace[s->target].machine);
    json_open(&j, "stores", '[');
    for (guint i = 0; i < s->lost->len; i++) {
        const struct sg_explore_lost_store *store =
            &g_array_index(s->lost, struct sg_explore_lost_store, i);

        json_open(&j, NULL, '{');
        json_number(&j, "event", store->breach.lost);
        json_hex(&j, "addr", store->breach.addr);
        sg_explore_put_timeline(&j, s, i);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    g_string_append_c(j.out, '\n');
    good = sg_explore_write(s->o.out, TIMELINES, j.out->str, j.out->len);
    g_string_free(j.out, TRUE);
    return good ? SG_EXPLORE_GOOD : SG_EXPLORE_FAILED;
}
