/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "trace_rig.h"

char *trace_path(void)
{
    static unsigned number;
    char *path = g_strdup_printf("/tmp/sg-trace-%d-%u", getpid(), number++);

    unlink(path);
    return path;
}

/* ---- QMP ---- */

char *trace_try_start(struct qtest *q, const char *path, const char *run, const char *machine)
{
    return qtest_qmp(q,
                     "{\"execute\": \"staghorn-record-start\", \"arguments\": {\"file\": \"%s\", "
                     "\"run-id\": \"%s\", \"machine\": \"%s\"}}",
                     path, run, machine);
}

void trace_start(struct qtest *q, const char *path)
{
    g_autofree char *answer = trace_try_start(q, path, TRACE_RUN, "vm1");

    if (!strstr(answer, "\"return\"")) {
        T_FAIL("start: %s", answer);
    }
}

char *trace_try_stop(struct qtest *q)
{
    return qtest_qmp(q, "{\"execute\": \"staghorn-record-stop\"}");
}

void trace_stop(struct qtest *q)
{
    g_autofree char *answer = trace_try_stop(q);

    if (!strstr(answer, "\"complete\"")) {
        T_FAIL("stop: %s", answer);
    }
}

char *trace_query(struct qtest *q)
{
    return qtest_qmp(q, "{\"execute\": \"query-staghorn-record\"}");
}

/* ---- The trace ---- */

struct replayed {
    struct trace_seen *seen;
    uint8_t *visible[SG_PERSIST_EXTENTS], *media[SG_PERSIST_EXTENTS];
    uint64_t size[SG_PERSIST_EXTENTS];
    GArray *pages; /* struct first_page: the memories are made after them */
};

struct first_page {
    unsigned extent;
    uint64_t number;
    uint8_t octets[SG_TRACE_PAGE];
};

static void take_page(void *opaque, unsigned extent, uint64_t number,
                      const uint8_t page[SG_TRACE_PAGE])
{
    struct replayed *x = opaque;
    struct first_page p = { extent, number, { 0 } };

    memcpy(p.octets, page, SG_TRACE_PAGE);
    g_array_append_val(x->pages, p);
}

static struct sg_crash_replay *begin(struct replayed *x, const struct sg_trace_header *h)
{
    const char *wrong = NULL;
    struct sg_crash_replay *again = sg_crash_replay_new(h, &wrong);

    if (!again) {
        T_FAIL("replay: %s", wrong);
    }
    for (unsigned i = 0; i < h->extent_count; i++) {
        x->size[i] = h->extent[i].size;
        x->media[i] = g_malloc0(x->size[i]);
        x->visible[i] = g_malloc0(x->size[i]);
    }
    for (unsigned i = 0; i < x->pages->len; i++) {
        const struct first_page *p = &g_array_index(x->pages, struct first_page, i);

        memcpy(x->media[p->extent] + p->number * SG_TRACE_PAGE, p->octets, SG_TRACE_PAGE);
        memcpy(x->visible[p->extent] + p->number * SG_TRACE_PAGE, p->octets, SG_TRACE_PAGE);
    }
    for (unsigned i = 0; i < h->extent_count; i++) {
        sg_crash_replay_add(again, x->visible[i], x->media[i]);
    }
    return again;
}

static void replay_all(struct replayed *x, struct sg_trace_reader *r)
{
    struct sg_crash_replay *again = begin(x, sg_trace_header(r));
    const struct sg_trace_event *e;

    while ((e = sg_trace_next(r))) {
        const char *wrong = sg_crash_replay_event(again, e, sg_trace_name(r, e->name));

        if (wrong) {
            T_FAIL("event %" PRIu64 ", %s: %s", e->number, sg_trace_row(e->kind)->name, wrong);
        }
        x->seen->events++;
        x->seen->kind[e->kind]++;
        if (e->kind == SG_TRACE_FRAME) {
            x->seen->frames[e->arg]++;
        }
    }
    sg_crash_replay_free(again);
}

static void look_at_end(struct replayed *x, const struct sg_trace_reader *r)
{
    uint8_t hash[SG_TRACE_HASH];

    x->seen->end_hash_fits = true;
    for (unsigned i = 0; i < x->seen->extents; i++) {
        const uint8_t *end = sg_trace_end_hash(r, i);

        sg_trace_hash_memory(x->media[i], x->size[i], hash);
        x->seen->end_hash_fits = x->seen->end_hash_fits && end && !memcmp(hash, end, SG_TRACE_HASH);
    }
}

void trace_read(struct trace_seen *seen, const char *path)
{
    struct replayed x = { .seen = seen,
                          .pages = g_array_new(FALSE, FALSE, sizeof(struct first_page)) };
    struct sg_trace_octets octets;
    struct sg_trace_reader *r;
    char *file = NULL;
    gsize len = 0;

    memset(seen, 0, sizeof(*seen));
    T_TRUE(g_file_get_contents(path, &file, &len, NULL));
    octets = (struct sg_trace_octets){ (uint8_t *)file, len };
    r = sg_trace_reader_new(sg_trace_read_octets, &octets);
    if (sg_trace_open(r, take_page, &x) == SG_TRACE_GOOD) {
        const struct sg_trace_header *h = sg_trace_header(r);

        seen->extents = h->extent_count;
        seen->base = h->extent[0].base;
        seen->size = h->extent[0].size;
        seen->platform = g_strdup(h->text[SG_TRACE_PLATFORM]);
        seen->config = g_strdup(h->text[SG_TRACE_CONFIG]);
        if (h->extent_count) {
            replay_all(&x, r);
        } else {
            for (const struct sg_trace_event *e; (e = sg_trace_next(r));) {
                seen->events++;
                seen->kind[e->kind]++;
            }
        }
    }
    seen->status = sg_trace_status(r);
    if (seen->status == SG_TRACE_END) {
        look_at_end(&x, r);
    }
    T_NOTE("%s", sg_trace_message(r));
    sg_trace_reader_free(r);
    seen->media = x.media[0];
    for (unsigned i = 0; i < SG_PERSIST_EXTENTS; i++) {
        g_free(x.visible[i]);
        g_free(i ? x.media[i] : NULL);
    }
    g_array_free(x.pages, TRUE);
    g_free(file);
}

void trace_seen_free(struct trace_seen *seen)
{
    g_free(seen->media);
    g_free(seen->platform);
    g_free(seen->config);
}
