/* SPDX-License-Identifier: GPL-2.0-or-later */
/* docs/crash-laboratory-points.md lists the members. */
#include <arpa/inet.h>
#include <string.h>

#include "timeline_json.h"

/* The fields that an event's kind has. */
void sg_explore_put_event(struct json *j, const char *key, const char *machine,
                          const struct sg_explore_detail *d)
{
    const struct sg_trace_row *row = sg_trace_row(d->e.kind);

    json_open(j, key, '{');
    json_text(j, "machine", machine);
    json_number(j, "event", d->e.number);
    json_text(j, "kind", row->name);
    for (const uint8_t *f = row->field; *f; f++) {
        const char *name = sg_trace_field_name((enum sg_trace_field) * f);

        if (*f == SG_TRACE_ADDR || *f == SG_TRACE_AT || *f == SG_TRACE_ROOT ||
            *f == SG_TRACE_VALUE || *f == SG_TRACE_SWAP || *f == SG_TRACE_FOUND) {
            json_hex(j, name, d->e.field[*f]);
        } else if (*f == SG_TRACE_NAME) {
            json_text(j, name, d->name ? d->name : "");
        } else {
            json_number(j, name, d->e.field[*f]);
        }
    }
    if (d->text) {
        json_text(j, "text", d->text);
    }
    json_close(j, '}');
}

/* ---- Timelines ---- */

static void put_address(struct json *j, const char *key, const uint8_t *address,
                        const uint8_t *port)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    bool v4 = memcmp(address, mapped, sizeof(mapped)) == 0;
    char text[INET6_ADDRSTRLEN] = "";

    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? address + sizeof(mapped) : address, text, sizeof(text));
    json_open(j, key, '{');
    json_text(j, "address", text);
    json_number(j, "port", (uint64_t)port[0] << 8 | port[1]);
    json_close(j, '}');
}

/* A machine's last frames before an event, and the connection that one of them belongs to. */
static void put_carriers(struct json *j, const struct sg_explore_session *s, const char *key,
                         const struct sg_crash_carriers *c)
{
    if (!c->known) {
        return;
    }
    json_open(j, key, '{');
    json_text(j, "machine", s->trace[c->machine].machine);
    put_address(j, "own", c->ends, c->ends + 32);
    put_address(j, "peer", c->ends + 16, c->ends + 34);
    json_open(j, "received", '[');
    for (unsigned i = 0; i < c->count; i++) {
        json_open(j, NULL, '{');
        json_number(j, "event", c->frame[i].event);
        json_number(j, "len", c->frame[i].len);
        json_hex(j, "crc32c", c->frame[i].crc);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void put_row(struct json *j, const struct sg_explore_session *s,
                    const struct sg_crash_timeline_event *e)
{
    const struct sg_explore_detail *d = sg_explore_detail(s, e->machine, e->event);

    json_open(j, NULL, '{');
    json_text(j, "machine", s->trace[e->machine].machine);
    json_text(j, "what", e->what);
    if (e->stage == SG_CRASH_NO_STAGE) {
        json_null(j, "stage-behind");
    } else {
        json_text(j, "stage-behind",
                  e->stage == SG_CRASH_CERTAIN ? "certain" : sg_crash_stage_name(e->stage));
    }
    if (e->cause) {
        json_number(j, "cause", e->cause - 1u);
    }
    if (d) {
        sg_explore_put_event(j, "event", s->trace[e->machine].machine, d);
    }
    json_close(j, '}');
}

void sg_explore_put_timeline(struct json *j, const struct sg_explore_session *s, unsigned bug)
{
    const struct sg_crash_timeline *line = sg_crash_timeline(s->timelines, bug);

    if (!line) {
        return;
    }
    json_open(j, "timeline", '[');
    for (guint i = 0; i < line->events->len; i++) {
        put_row(j, s, &g_array_index(line->events, struct sg_crash_timeline_event, i));
    }
    json_close(j, ']');
    json_number(j, "timeline-omitted", line->omitted);
    json_open(j, "frames", '{');
    put_carriers(j, s, "lost", &line->store);
    put_carriers(j, s, "acknowledgement", &line->acknowledgement);
    json_close(j, '}');
}
