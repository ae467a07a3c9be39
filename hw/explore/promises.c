/* SPDX-License-Identifier: GPL-2.0-or-later */
/* promises.json: what images are judged by, in the order in which it binds. */
#include "crash/pairs.h"
#include "json.h"
#include "output.h"
#include "session.h"

static void put_promise(struct json *j, const struct sg_explore_session *s,
                        const struct sg_crash_promise *p)
{
    const struct sg_crash_range *range = sg_crash_promise_ranges(s->promises, p);
    const struct sg_explore_detail *mark = sg_explore_detail(s, p->by, p->event);

    json_open(j, NULL, '{');
    json_text(j, "acknowledgement", sg_crash_ack_name((enum sg_crash_ack)p->kind));
    json_number(j, "binds-behind", p->from);
    if (s->half) { /* and the other machine must have come so far */
        json_number(j, "binds-behind-other",
                    p->by == s->half->other ? p->event
                                            : sg_crash_steps_past(s->half->steps[p->by], p->event));
    }
    json_text(j, "machine", s->trace[p->by].machine);
    json_number(j, "event", p->event);
    if (mark && mark->text) {
        json_text(j, "text", mark->text);
    } else {
        json_hex(j, "wr-id", p->wr_id);
        json_number(j, "qpn", p->qpn);
    }
    json_open(j, "ranges", '[');
    for (uint32_t i = 0; i < p->range_count; i++) {
        json_open(j, NULL, '{');
        json_hex(j, "addr", range[i].addr);
        json_number(j, "len", range[i].len);
        json_number(j, "placed", range[i].placed);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

bool sg_explore_write_promises(const struct sg_explore_session *s)
{
    struct json j = { .out = g_string_new(NULL) };
    const struct sg_crash_promise *promise;
    uint64_t count;
    bool good;

    promise = sg_crash_promises_of(s->promises, s->target, &count);
    json_open(&j, NULL, '{');
    json_number(&j, "version", 1);
    json_open(&j, "promises", '[');
    for (uint64_t i = 0; i < count; i++) {
        put_promise(&j, s, &promise[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    g_string_append_c(j.out, '\n');
    good = sg_explore_write(s->o.out, "promises.json", j.out->str, j.out->len);
    g_string_free(j.out, TRUE);
    return good;
}
