/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace of a machine: all inputs of its domain, replayed at the end of the run, and what its
 * connections do (power_match.c).
 *
 * Every eighth seed is recorded.  Recording has no effect on the run: it uses none of its random
 * numbers.  The trace of a machine whose NVDIMM nobody uses is that of one without: a requester's.
 */
#include "crash/record.h"
#include "crash/replay.h"
#include "crash/setting_text.h"
#include "power.h"

enum { ONE_IN = 8 };

struct pw_trace {
    struct sg_trace_writer *writer;
    GByteArray *file;
    bool frozen; /* the event that says so is written */
};

static bool sink(void *opaque, const uint8_t *octets, size_t len)
{
    g_byte_array_append(opaque, octets, (guint)len);
    return true;
}

bool pw_trace_on(const struct pw_world *w)
{
    return w->opt.seed % ONE_IN == 0 && !w->opt.mutant;
}

static bool uses_nvdimm(const struct pw_host *x)
{
    bool used = x->cpu != PW_CPU_NONE;

    for (unsigned i = 0; i < x->w->flows; i++) {
        used |= x->w->flow[i].to == x;
    }
    return used;
}

static void begin_bare(struct pw_host *x)
{
    const struct sg_trace_header header = { .extent_count = 0 };

    x->trace->writer = sg_trace_writer_new(&header, sink, x->trace->file);
    sg_trace_writer_start(x->trace->writer, NULL);
}

void pw_trace_begin(struct pw_host *x)
{
    struct sg_trace_header header = { .extent_count = x->split < PW_PM ? 2 : 1 };
    GString *text = g_string_new(NULL);

    x->bare = !uses_nvdimm(x);
    if (pw_trace_on(x->w)) {
        x->trace = g_new0(struct pw_trace, 1);
        x->trace->file = g_byte_array_new();
    }
    if (x->trace && x->bare) {
        begin_bare(x);
    } else if (x->trace) {
        sg_crash_settings_text(&x->config, &x->limits, text);
        header.text[SG_TRACE_CONFIG] = text->str;
        header.extent[0] = (struct sg_trace_extent){ x->pm, x->split, true, "first" };
        header.extent[1] =
            (struct sg_trace_extent){ x->pm + x->split, PW_PM - x->split, true, "second" };
        x->trace->writer = sg_trace_writer_new(&header, sink, x->trace->file);
        for (unsigned i = 0; i < header.extent_count; i++) {
            sg_trace_writer_content(x->trace->writer, i, x->media + (i ? x->split : 0));
        }
        sg_trace_writer_start(x->trace->writer, NULL);
    }
    g_string_free(text, TRUE);
}

static void write_event(struct pw_host *x, const struct sg_trace_event *e)
{
    struct sg_trace_event freeze = { .kind = SG_TRACE_FREEZE };
    bool frozen = !x->bare && sg_persist_frozen(x->p);

    sg_trace_write(x->trace->writer, e);
    if (frozen && !x->trace->frozen && e->kind != SG_TRACE_CUT) {
        sg_trace_write(x->trace->writer, &freeze);
    }
    x->trace->frozen = frozen;
}

void pw_trace_input(struct pw_host *x, enum sg_trace_kind kind,
                    const struct sg_persist_source *source, const struct pw_trace_what *what)
{
    static const struct sg_persist_source nobody = { .agent = SG_PERSIST_NOBODY };
    struct sg_trace_event e;

    if (x->trace && (!x->bare || kind == SG_TRACE_TICK)) {
        e = sg_crash_event(kind, source ? source : &nobody, what->addr, what->len);
        e.data = what->data;
        e.arg = what->arg;
        e.status = what->status;
        e.value = what->value;
        e.swap = what->swap;
        e.found = what->found;
        e.ordinal = what->ordinal;
        e.now_ns = x->w->now_ns;
        write_event(x, &e);
    }
}

void pw_trace_configure(struct pw_host *x, const struct sg_persist_faults *faults)
{
    struct sg_trace_event e = { .kind = SG_TRACE_CONFIGURE };
    GString *text;

    if (x->trace && !x->bare) {
        text = g_string_new(NULL);
        sg_crash_settings_text(&x->config, NULL, text);
        e.name = sg_trace_writer_name(x->trace->writer, text->str);
        write_event(x, &e);
        g_string_free(text, TRUE);
        e = sg_crash_faults_event(0, faults);
        write_event(x, &e);
    }
}

void pw_trace_cut(struct pw_host *x, const struct sg_persist_policy *policy)
{
    const struct sg_trace_event cut = sg_crash_cut_event(policy);
    const struct sg_trace_event reset = { .kind = SG_TRACE_RESET };

    if (x->trace) {
        write_event(x, x->bare ? &reset : &cut);
    }
}

void pw_trace_observe(void *host, const struct sg_observed *o)
{
    struct pw_host *x = ((struct test_host *)host)->pm;
    struct sg_trace_event e;

    if (x->trace) {
        e = sg_crash_observed(o);
        e.addr = o->addr;
        write_event(x, &e);
    }
}

void pw_trace_frame(void *opaque, const struct sg_endpoint *at, bool sent, uint32_t crc, size_t len)
{
    struct pw_world *w = opaque;
    const struct sg_trace_event e = {
        .kind = SG_TRACE_FRAME,
        .value = crc,
        .len = len,
        .arg = sent,
    };

    for (unsigned i = 0; i < w->hosts; i++) {
        if (memcmp(w->host[i].at.ip, at->ip, sizeof(at->ip)) == 0) {
            write_event(&w->host[i], &e);
        }
    }
}

/* ---- The end ---- */

/* All that is replayed begins with zeros, so pages of the content are an error. */
static void no_page(void *opaque, unsigned extent, uint64_t number,
                    const uint8_t page[SG_TRACE_PAGE])
{
    struct pw_host *x = opaque;

    PW_CHECK(x->w, false, "machine %u: its trace begins with something else than zeros", x->index);
}

static const char *replay_into(struct pw_host *x, struct sg_trace_reader *r,
                               struct sg_crash_replay *again, uint8_t *visible, uint8_t *media)
{
    const struct sg_trace_event *e;
    const char *wrong = NULL;

    sg_crash_replay_add(again, visible, media);
    if (x->split < PW_PM) {
        sg_crash_replay_add(again, visible + x->split, media + x->split);
    }
    while (!wrong && (e = sg_trace_next(r))) {
        wrong = sg_crash_replay_event(again, e, sg_trace_name(r, e->name));
    }
    return wrong;
}

static void replay(struct pw_host *x)
{
    struct sg_trace_octets octets = { x->trace->file->data, x->trace->file->len };
    struct sg_trace_reader *r = sg_trace_reader_new(sg_trace_read_octets, &octets);
    uint8_t *visible = g_malloc0(PW_PM), *media = g_malloc0(PW_PM);
    struct sg_crash_replay *again = NULL;
    const char *wrong = NULL;

    if (sg_trace_open(r, no_page, x) == SG_TRACE_GOOD) {
        again = sg_crash_replay_new(sg_trace_header(r), &wrong);
    }
    if (again) {
        wrong = replay_into(x, r, again, visible, media);
    }
    PW_CHECK(x->w, !wrong, "machine %u: its trace does not replay: %s", x->index, wrong);
    PW_CHECK(x->w, wrong || sg_trace_status(r) == SG_TRACE_END, "machine %u: %s", x->index,
             sg_trace_message(r));
    PW_CHECK(x->w, memcmp(media, x->media, PW_PM) == 0,
             "machine %u: its trace replays to other media", x->index);
    PW_CHECK(x->w, memcmp(visible, pw_ptr(x, x->pm), PW_PM) == 0,
             "machine %u: its trace replays to other visible memory", x->index);
    x->w->sums->traces++;
    x->w->sums->trace_events += sg_trace_writer_events(x->trace->writer);
    x->w->sums->trace_octets += x->trace->file->len;
    sg_crash_replay_free(again);
    sg_trace_reader_free(r);
    g_free(visible);
    g_free(media);
}

void pw_trace_end(struct pw_host *x)
{
    if (x->trace) {
        sg_trace_writer_end(x->trace->writer, NULL);
        if (!x->bare) {
            replay(x);
        }
    }
}

const GByteArray *pw_trace_file(const struct pw_host *x)
{
    return x->trace ? x->trace->file : NULL;
}

uint64_t pw_trace_events(const struct pw_host *x)
{
    return x->trace ? sg_trace_writer_events(x->trace->writer) : 0;
}

void pw_trace_free(struct pw_host *x)
{
    if (x->trace) {
        sg_trace_writer_free(x->trace->writer);
        g_byte_array_free(x->trace->file, TRUE);
        g_free(x->trace);
    }
}
