/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder: the order of events, and their time.
 *
 * Time.  The model's clock advances with nearly each access of an adapter.  An event says so only
 * when another one follows: a row of ticks does the same as the last of them, because nothing is
 * delayed while a recording runs.
 *
 * An armed cut freezes the model in the middle of a call, which is recorded when it returns.  So
 * the event that says so waits for that one, unless it was the clock that made the cut due.
 */
#include "qemu/osdep.h"
#include "recorder_impl.h"

bool staghorn_recording;
void (*staghorn_record_switched)(bool on);

static struct {
    StaghornDomainLock lock;
    struct sg_trace_writer *writer; /* NULL: no recording */
    uint64_t now_ns, told_ns;
    bool due;
    char *name; /* the last one that was asked for, or NULL, and its number */
    uint32_t name_number;
} recorder;

static void tell_time(void)
{
    struct sg_trace_event tick = { .kind = SG_TRACE_TICK, .now_ns = recorder.now_ns };

    if (recorder.now_ns != recorder.told_ns) {
        recorder.told_ns = recorder.now_ns;
        sg_trace_write(recorder.writer, &tick);
    }
}

static void tell_freeze(void)
{
    static const struct sg_trace_event freeze = { .kind = SG_TRACE_FREEZE };

    if (recorder.due) {
        recorder.due = false;
        sg_trace_write(recorder.writer, &freeze);
    }
}

/* What connections, the port and guests did has no part in the model. */
static bool is_input(enum sg_trace_kind kind)
{
    return kind < SG_TRACE_CONNECTED || kind > SG_TRACE_MARK;
}

void staghorn_record(const struct sg_trace_event *e)
{
    staghorn_domain_lock(&recorder.lock);
    if (recorder.writer) {
        tell_time();
        sg_trace_write(recorder.writer, e);
        if (is_input(e->kind)) {
            tell_freeze();
        }
    }
    staghorn_domain_unlock(&recorder.lock);
}

void staghorn_record_store(const struct sg_trace_store *s)
{
    staghorn_domain_lock(&recorder.lock);
    if (recorder.writer) {
        tell_time();
        sg_trace_write_store(recorder.writer, s);
        tell_freeze();
    }
    staghorn_domain_unlock(&recorder.lock);
}

static void forget_name(void)
{
    g_free(recorder.name);
    recorder.name = NULL;
}

static uint32_t find_name(const char *text)
{
    g_autofree char *name = g_strndup(text, SG_TRACE_NAME_MAX);

    for (char *c = name; *c; c++) {
        if (!sg_trace_is_text((const uint8_t *)c, 1)) {
            *c = '?';
        }
    }
    return sg_trace_writer_name(recorder.writer, name);
}

/* Marks of a program mostly have the name of the mark before. */
uint32_t staghorn_record_name(const char *text)
{
    uint32_t number = 0;

    staghorn_domain_lock(&recorder.lock);
    if (recorder.writer && text) {
        if (!recorder.name || strcmp(recorder.name, text) != 0) {
            forget_name();
            recorder.name = g_strdup(text);
            recorder.name_number = find_name(text);
        }
        number = recorder.name_number;
    }
    staghorn_domain_unlock(&recorder.lock);
    return number;
}

void staghorn_record_time(uint64_t now_ns)
{
    staghorn_domain_lock(&recorder.lock);
    recorder.now_ns = MAX(recorder.now_ns, now_ns);
    if (recorder.writer && recorder.due) {
        tell_time();
        tell_freeze();
    }
    staghorn_domain_unlock(&recorder.lock);
}

void staghorn_record_due(void)
{
    recorder.due = true;
}

/* ---- For the other files ---- */

void staghorn_recorder_open(struct sg_trace_writer *writer)
{
    staghorn_domain_lock(&recorder.lock);
    recorder.writer = writer;
    recorder.now_ns = recorder.told_ns = 0;
    recorder.due = false;
    staghorn_domain_unlock(&recorder.lock);
}

void staghorn_recorder_close(void)
{
    staghorn_domain_lock(&recorder.lock);
    forget_name();
    recorder.writer = NULL;
    staghorn_domain_unlock(&recorder.lock);
}

void staghorn_recorder_flush(void)
{
    staghorn_domain_lock(&recorder.lock);
    if (recorder.writer) {
        sg_trace_writer_flush(recorder.writer);
    }
    staghorn_domain_unlock(&recorder.lock);
}

const char *staghorn_recorder_count(uint64_t *events, uint64_t *octets)
{
    const char *error;

    staghorn_domain_lock(&recorder.lock);
    *events = sg_trace_writer_events(recorder.writer);
    *octets = sg_trace_writer_octets(recorder.writer);
    error = sg_trace_writer_error(recorder.writer);
    staghorn_domain_unlock(&recorder.lock);
    return error;
}
