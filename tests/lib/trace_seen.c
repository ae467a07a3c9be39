/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <glib.h>
#include <inttypes.h>
#include <string.h>

#include "trace_seen.h"

struct replayed {
    struct trace_seen *seen;
    struct sg_trace_reader *reader;
    uint8_t *visible[SG_PERSIST_EXTENTS];
};

/* The memories are made when the first page of one comes. */
static void make_memory(struct replayed *x, unsigned extent)
{
    const struct sg_trace_extent *e = &sg_trace_header(x->reader)->extent[extent];

    if (!x->visible[extent]) {
        x->seen->size[extent] = e->size;
        x->seen->base[extent] = e->base;
        x->seen->media[extent] = g_malloc0(sg_trace_pages(e->size) * SG_TRACE_PAGE);
        x->visible[extent] = g_malloc0(sg_trace_pages(e->size) * SG_TRACE_PAGE);
    }
}

static void take_page(void *opaque, unsigned extent, uint64_t number,
                      const uint8_t page[SG_TRACE_PAGE])
{
    struct replayed *x = opaque;

    make_memory(x, extent);
    memcpy(x->seen->media[extent] + number * SG_TRACE_PAGE, page, SG_TRACE_PAGE);
    memcpy(x->visible[extent] + number * SG_TRACE_PAGE, page, SG_TRACE_PAGE);
}

/* A trace without persistent memory has nothing to replay. */
static struct sg_crash_replay *begin(struct replayed *x, const char **wrong)
{
    const struct sg_trace_header *h = sg_trace_header(x->reader);
    struct sg_crash_replay *again = h->extent_count ? sg_crash_replay_new(h, wrong) : NULL;

    x->seen->extents = h->extent_count;
    x->seen->platform = g_strdup(h->text[SG_TRACE_PLATFORM]);
    x->seen->config = g_strdup(h->text[SG_TRACE_CONFIG]);
    for (unsigned i = 0; again && i < h->extent_count; i++) {
        make_memory(x, i);
        sg_crash_replay_add(again, x->visible[i], x->seen->media[i]);
    }
    return again;
}

static char *replay_all(struct replayed *x)
{
    const char *wrong = NULL;
    struct sg_crash_replay *again = begin(x, &wrong);
    const struct sg_trace_event *e;
    char *text = wrong ? g_strdup(wrong) : NULL;

    while (!text && (e = sg_trace_next(x->reader))) {
        wrong = again ? sg_crash_replay_event(again, e, sg_trace_name(x->reader, e->name)) : NULL;
        if (wrong) {
            text = g_strdup_printf("event %" PRIu64 ", %s: %s", e->number,
                                   sg_trace_row(e->kind)->name, wrong);
        }
        x->seen->events++;
        x->seen->kind[e->kind]++;
        if (x->seen->each) {
            x->seen->each(e);
        }
    }
    sg_crash_replay_free(again);
    return text;
}

static void look_at_end(struct replayed *x)
{
    struct trace_seen *seen = x->seen;
    uint8_t hash[SG_TRACE_HASH];

    seen->end_hash_fits = true;
    for (unsigned i = 0; i < seen->extents; i++) {
        const uint8_t *end = sg_trace_end_hash(x->reader, i);

        sg_trace_hash_memory(seen->media[i], seen->size[i], hash);
        seen->end_hash_fits = seen->end_hash_fits && end && !memcmp(hash, end, SG_TRACE_HASH);
    }
}

char *trace_seen_read(struct trace_seen *seen, const char *path)
{
    struct replayed x = { .seen = seen };
    GMappedFile *file = g_mapped_file_new(path, FALSE, NULL);
    struct sg_trace_octets octets;
    char *wrong = NULL;

    *seen = (struct trace_seen){ .each = seen->each };
    if (!file) {
        return g_strdup("cannot be opened");
    }
    octets.p = (const uint8_t *)g_mapped_file_get_contents(file);
    octets.len = g_mapped_file_get_length(file);
    x.reader = sg_trace_reader_new(sg_trace_read_octets, &octets);
    if (sg_trace_open(x.reader, take_page, &x) == SG_TRACE_GOOD) {
        wrong = replay_all(&x);
    }
    seen->status = sg_trace_status(x.reader);
    seen->message = g_strdup(sg_trace_message(x.reader));
    if (!wrong && seen->status == SG_TRACE_END) {
        look_at_end(&x);
    }
    sg_trace_reader_free(x.reader);
    for (unsigned i = 0; i < SG_PERSIST_EXTENTS; i++) {
        g_free(x.visible[i]);
    }
    g_mapped_file_unref(file);
    return wrong;
}

void trace_seen_free(struct trace_seen *seen)
{
    for (unsigned i = 0; i < SG_PERSIST_EXTENTS; i++) {
        g_free(seen->media[i]);
    }
    g_free(seen->message);
    g_free(seen->platform);
    g_free(seen->config);
}
