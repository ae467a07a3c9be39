/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events_rig.h"

void er_init(struct er *r, unsigned machines)
{
    *r = (struct er){ .machines = machines };
    for (unsigned i = 0; i < machines; i++) {
        r->list[i].events = g_array_new(FALSE, TRUE, sizeof(struct sg_trace_event));
        r->list[i].data = g_ptr_array_new_with_free_func(g_free);
    }
}

void er_free(struct er *r)
{
    for (unsigned i = 0; i < r->machines; i++) {
        g_array_free(r->list[i].events, TRUE);
        g_ptr_array_free(r->list[i].data, TRUE);
    }
}

uint64_t er_add(struct er *r, unsigned machine, struct sg_trace_event e)
{
    struct er_list *l = &r->list[machine];

    e.number = l->events->len + 1;
    if (e.data) {
        e.data = g_memdup2(e.data, e.len);
        g_ptr_array_add(l->data, (void *)e.data);
    }
    g_array_append_val(l->events, e);
    return e.number;
}

static uint64_t frame(struct er *r, unsigned machine, uint64_t content, unsigned sent)
{
    return er_add(r, machine,
                  (struct sg_trace_event){
                      .kind = SG_TRACE_FRAME,
                      .value = (uint32_t)(content * 0x9e3779b1),
                      .len = 60 + content % 7,
                      .arg = sent,
                  });
}

uint64_t er_sent(struct er *r, unsigned machine, uint64_t content)
{
    return frame(r, machine, content, 1);
}

uint64_t er_received(struct er *r, unsigned machine, uint64_t content)
{
    return frame(r, machine, content, 0);
}

uint64_t er_local(struct er *r, unsigned machine)
{
    return er_add(r, machine, (struct sg_trace_event){ .kind = SG_TRACE_DEVICE_FENCE });
}

uint64_t er_connected(struct er *r, unsigned machine, uint32_t qpn, unsigned port, unsigned peer,
                      unsigned peer_port)
{
    uint8_t payload[36] = { 0 };

    payload[15] = (uint8_t)(machine + 1);
    payload[31] = (uint8_t)(peer + 1);
    sg_put_be16(payload + 32, (uint16_t)port);
    sg_put_be16(payload + 34, (uint16_t)peer_port);
    return er_add(r, machine,
                  (struct sg_trace_event){
                      .kind = SG_TRACE_CONNECTED,
                      .qpn = qpn,
                      .data = payload,
                      .len = sizeof(payload),
                  });
}

static const char *const names[] = { NULL, "acknowledged", "durable", "state", "other" };

uint64_t er_mark(struct er *r, unsigned machine, const char *name, const char *text)
{
    struct sg_trace_event e = {
        .kind = SG_TRACE_MARK,
        .data = (const uint8_t *)text,
        .len = strlen(text),
    };

    while (strcmp(names[++e.name], name) != 0) {
        sg_assert(e.name + 1 < SG_ARRAY_SIZE(names));
    }
    return er_add(r, machine, e);
}

const char *er_name(const struct sg_trace_event *e)
{
    return e->kind == SG_TRACE_MARK ? names[e->name] : NULL;
}

static const struct sg_trace_event *next(void *opaque)
{
    struct er_list *l = opaque;

    return l->next < l->events->len ? &g_array_index(l->events, struct sg_trace_event, l->next++)
                                    : NULL;
}

static bool complete(void *opaque)
{
    return !((struct er_list *)opaque)->cut_short;
}

struct sg_crash_source er_source(struct er *r, unsigned machine)
{
    r->list[machine].next = 0;
    return (struct sg_crash_source){ next, complete, &r->list[machine] };
}

struct sg_crash_order *er_run(struct er *r, er_begin *begin, sg_crash_ordered ordered, void *opaque)
{
    struct sg_crash_order *o = sg_crash_order_new(r->machines);
    struct sg_crash_source source[SG_CRASH_MACHINES];

    for (unsigned i = 0; i < r->machines; i++) {
        sg_crash_order_scan(o, i, er_source(r, i));
    }
    do {
        for (unsigned i = 0; i < r->machines; i++) {
            source[i] = er_source(r, i);
        }
        begin(opaque);
        sg_assert(sg_crash_order_counts(o)->runs < SG_CRASH_RUNS);
    } while (!sg_crash_order_run(o, source, ordered, opaque));
    return o;
}
