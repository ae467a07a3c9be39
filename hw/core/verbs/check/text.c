/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports as text: one line of JSON each, for tools on the host.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "verbs/check/check.h"

static const char *kind_name(uint8_t kind)
{
    static const char *const names[SG_OBJECTS] = {
        [SG_OBJECT_ADAPTER] = "adapter",
        [SG_OBJECT_ADMIN] = "admin queue",
        [SG_OBJECT_EQ] = "eq",
        [SG_OBJECT_PD] = "pd",
        [SG_OBJECT_CQ] = "cq",
        [SG_OBJECT_QP] = "qp",
        [SG_OBJECT_SRQ] = "srq",
        [SG_OBJECT_MR] = "mr",
        [SG_OBJECT_LISTENER] = "listener",
    };

    return kind < SG_OBJECTS ? names[kind] : "?";
}

void sg_check_name(struct sg_object o, char *buf, size_t len)
{
    if (o.kind == SG_OBJECT_ADAPTER || o.kind == SG_OBJECT_ADMIN) {
        snprintf(buf, len, "%s", kind_name(o.kind));
    } else {
        snprintf(buf, len, o.kind == SG_OBJECT_MR ? "%s 0x%x" : "%s %u", kind_name(o.kind), o.id);
    }
}

/* How an event reads; its numbers are a and b. */
static const char *const did[SG_DIDS] = {
    [SG_DID_COMMAND] = "command, opcode 0x%02x, status %u",
    [SG_DID_POST] = "doorbell: producer index %u, before %u",
    [SG_DID_POST_RECV] = "receive doorbell: producer index %u, before %u",
    [SG_DID_ARM] = "armed: consumer index %u, producer index %u",
    [SG_DID_COMPLETE] = "completion of entry %u, status %u",
    [SG_DID_RAISE] = "interrupt: vector %u, producer index %u",
    [SG_DID_ANSWER] = "doorbell: consumer index %u, producer index %u",
    [SG_DID_REGISTER] = "register 0x%04x: 0x%x",
};

struct out {
    char *buf;
    size_t len, at;
};

static __attribute__((format(printf, 2, 3))) void add(struct out *o, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(o->buf + o->at, o->len - o->at, fmt, ap);
    va_end(ap);
    o->at = SG_MIN(o->at + (n > 0 ? (size_t)n : 0), o->len - 1);
}

/* Texts are ours: ASCII, but the octets of JSON's syntax. */
static void add_string(struct out *o, const char *s)
{
    add(o, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') {
            add(o, "\\%c", *s);
        } else if ((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f) {
            add(o, "%c", *s);
        } else {
            add(o, "?");
        }
    }
    add(o, "\"");
}

static void add_event(struct out *o, const struct sg_check_event *e)
{
    char text[80];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), did[e->what < SG_DIDS ? e->what : 0], e->a, e->b);
#pragma GCC diagnostic pop
    add(o, "{\"ns\": %" PRIu64 ", \"text\": ", e->ns);
    add_string(o, text);
    add(o, "}");
}

/* What the caller of the instruction is found from, by tools. */
static void add_stack(struct out *o, const struct sg_where *w)
{
    unsigned i;

    add(o, ", \"sp\": \"0x%" PRIx64 "\", \"bp\": \"0x%" PRIx64 "\", \"stack\": \"", w->sp, w->bp);
    for (i = 0; i < w->stack_octets; i++) {
        add(o, "%02x", w->stack[i]);
    }
    add(o, "\"");
}

size_t sg_check_json(const struct sg_check_report *r, char *buf, size_t len)
{
    const struct sg_rule_info *info = sg_rule_info(r->rule);
    struct out o = { .buf = buf, .len = len };
    char name[32];
    unsigned i;

    sg_assert(len);
    buf[0] = 0;
    sg_check_name(r->object, name, sizeof(name));
    add(&o, "{\"number\": %" PRIu64 ", \"rule\": \"%s\", \"section\": \"%s\"", r->number,
        info->name, info->section);
    add(&o, ", \"strict\": \"%s\", \"object\": \"%s\", \"text\": ", sg_rule_end_name(info->end),
        name);
    add_string(&o, r->text);
    add(&o, ", \"ns\": %" PRIu64 ", \"last_ns\": %" PRIu64 ", \"count\": %" PRIu64, r->ns,
        r->last_ns, r->count);
    if (r->has_where) {
        add(&o, ", \"cpu\": %u, \"pc\": \"0x%" PRIx64 "\"", r->where.cpu, r->where.pc);
    }
    if (r->has_where && r->where.stack_octets) {
        add_stack(&o, &r->where);
    }
    add(&o, ", \"events\": [");
    for (i = 0; i < r->events; i++) {
        add(&o, "%s", i ? ", " : "");
        add_event(&o, &r->event[i]);
    }
    add(&o, "]}");
    return o.at;
}
