/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports and events of the driver checker; check.h has the bounds.
 */
#include "verbs/check/check.h"

#include <stdio.h>

#include <glib.h>

#include "base/bytes.h"
#include "verbs/check/check_impl.h"

struct sg_check *sg_check_new(const struct sg_host *host, enum sg_check_mode mode)
{
    struct sg_check *c = g_try_new0(struct sg_check, 1);

    if (c) {
        c->host = host;
        c->mode = mode;
    }
    return c;
}

void sg_check_free(struct sg_check *c)
{
    sg_assert(!c || !c->sum_octets); /* all queues are gone */
    g_free(c);
}

void sg_check_reset(struct sg_check *c)
{
    memset(c->highest, 0, sizeof(c->highest));
    memset(c->stags, 0, sizeof(c->stags));
    c->event_end = 0;
    c->end_count = 0;
    c->end_adapter = false;
}

enum sg_check_mode sg_check_mode(const struct sg_check *c)
{
    return c->mode;
}

static uint64_t now(const struct sg_check *c)
{
    return c->host->ops->now(c->host->opaque);
}

void sg_check_event(struct sg_check *c, struct sg_object o, enum sg_check_what what, uint32_t a,
                    uint32_t b)
{
    c->event[c->event_end++ % SG_CHECK_EVENTS] = (struct sg_check_event){
        .ns = now(c),
        .id = o.id,
        .kind = o.kind,
        .what = (uint8_t)what,
        .a = a,
        .b = b,
    };
}

void sg_check_made(struct sg_check *c, enum sg_object_kind kind, uint32_t id)
{
    c->highest[kind] = SG_MAX(c->highest[kind], id);
}

bool sg_check_was(const struct sg_check *c, enum sg_object_kind kind, uint32_t id)
{
    unsigned i;

    if (kind != SG_OBJECT_MR) {
        return id && id <= c->highest[kind];
    }
    for (i = 0; i < SG_CHECK_STAGS; i++) {
        if (id && c->stags[i] == id) {
            return true;
        }
    }
    return false;
}

void sg_check_stag_ended(struct sg_check *c, uint32_t stag)
{
    c->stags[c->stag_end++ % SG_CHECK_STAGS] = stag;
}

/* ---- reports ---- */

void sg_check_range(const struct sg_check *c, uint64_t *first, uint64_t *end)
{
    *end = c->report_end + 1;
    *first = *end - SG_MIN(c->report_end, (uint64_t)SG_CHECK_REPORTS);
}

static struct sg_check_report *slot(struct sg_check *c, uint64_t number)
{
    return &c->report[number % SG_CHECK_REPORTS];
}

const struct sg_check_report *sg_check_get(const struct sg_check *c, uint64_t number)
{
    const struct sg_check_report *r = &c->report[number % SG_CHECK_REPORTS];

    return number && r->number == number ? r : NULL;
}

static struct sg_check_report *same(struct sg_check *c, enum sg_rule rule, struct sg_object o)
{
    uint64_t first, n;

    for (sg_check_range(c, &first, &n); n-- > first;) {
        struct sg_check_report *r = slot(c, n);

        if (r->rule == rule && r->object.kind == o.kind && r->object.id == o.id) {
            return r;
        }
    }
    return NULL;
}

/* The last events of the object, the oldest first. */
static void copy_events(const struct sg_check *c, struct sg_check_report *r)
{
    uint64_t first = c->event_end - SG_MIN(c->event_end, (uint64_t)SG_CHECK_EVENTS);
    uint64_t found[SG_CHECK_LAST], n;
    unsigned count = 0;

    for (n = c->event_end; n-- > first && count < SG_CHECK_LAST;) {
        const struct sg_check_event *e = &c->event[n % SG_CHECK_EVENTS];

        if (e->kind == r->object.kind && e->id == r->object.id) {
            found[count++] = n;
        }
    }
    while (count) {
        r->event[r->events++] = c->event[found[--count] % SG_CHECK_EVENTS];
    }
}

static void announce(const struct sg_check *c, const struct sg_check_report *r)
{
    const struct sg_rule_info *info = sg_rule_info(r->rule);
    char name[32], at[48] = "";

    sg_check_name(r->object, name, sizeof(name));
    if (r->has_where) {
        snprintf(at, sizeof(at), ", cpu %u at 0x%llx", r->where.cpu,
                 (unsigned long long)r->where.pc);
    }
    sg_log(c->host, SG_LOG_CHECK, "check: %s: %s: %s%s (%s)", info->name, name, r->text, at,
           info->section);
}

static bool to_be_ended(struct sg_check *c, enum sg_rule rule, struct sg_object o)
{
    const uint8_t end = sg_rule_info(rule)->end;

    if (c->mode != SG_CHECK_STRICT || (end != SG_RULE_ENDS && end != SG_RULE_FATAL)) {
        return false;
    }
    if (end == SG_RULE_FATAL && o.user) {
        return false; /* a process must not end the adapter of others */
    }
    if (end == SG_RULE_FATAL || c->end_count == SG_CHECK_ENDS) {
        c->end_adapter = true;
    } else {
        c->end[c->end_count++] = o;
    }
    return true;
}

bool sg_check_add(struct sg_check *c, enum sg_rule rule, struct sg_object o, const char *fmt,
                  va_list ap)
{
    struct sg_check_report *r = same(c, rule, o);

    if (rule == SG_RULE_NONE) {
        return false;
    }
    if (r) {
        r->count++;
        r->last_ns = now(c);
        return to_be_ended(c, rule, o);
    }
    r = slot(c, ++c->report_end);
    memset(r, 0, sizeof(*r));
    r->number = c->report_end;
    r->ns = r->last_ns = now(c);
    r->count = 1;
    r->rule = (uint16_t)rule;
    r->object = o;
    r->has_where = c->host->ops->where && c->host->ops->where(c->host->opaque, &r->where);
    vsnprintf(r->text, sizeof(r->text), fmt, ap);
    copy_events(c, r);
    announce(c, r);
    return to_be_ended(c, rule, o);
}

bool sg_check_next_end(struct sg_check *c, struct sg_object *o, bool *adapter)
{
    *adapter = c->end_adapter;
    if (c->end_adapter) {
        c->end_adapter = false;
        c->end_count = 0;
        return true;
    }
    if (!c->end_count) {
        return false;
    }
    *o = c->end[--c->end_count];
    return true;
}
