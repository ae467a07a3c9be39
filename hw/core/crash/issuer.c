/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table of issuers, and the number of its issuer for each event. */
#include "crash/issuer.h"

enum { PORTS_AT = 32 }; /* in a CONNECTED event: own port, the peer's port */

static const char *const kind_name[SG_CRASH_ISSUER_KINDS] = {
    [SG_CRASH_NOBODY] = "nobody",
    [SG_CRASH_BY_CPU] = "cpu",
    [SG_CRASH_BY_WRITE] = "write",
    [SG_CRASH_BY_SEND] = "send",
    [SG_CRASH_BY_ATOMIC_WRITE] = "atomic-write",
    [SG_CRASH_BY_ATOMIC] = "atomic",
    [SG_CRASH_BY_DEVICE] = "device",
};

static guint hash(gconstpointer key)
{
    const struct sg_crash_issuer *x = key;
    uint64_t h = x->pc ^ x->root << 17 ^ (uint64_t)x->port << 40 ^ (uint64_t)x->unit << 8 ^ x->kind;

    h *= 0x9e3779b97f4a7c15ull;
    return (guint)(h ^ h >> 32);
}

static gboolean equal(gconstpointer a, gconstpointer b)
{
    const struct sg_crash_issuer *x = a, *y = b;

    return x->kind == y->kind && x->unit == y->unit && x->port == y->port && x->pc == y->pc &&
           x->root == y->root;
}

static uint64_t connection(const struct sg_trace_event *e)
{
    return e->unit << 32 | e->qpn;
}

void sg_crash_issuers_init(struct sg_crash_issuers *x)
{
    struct sg_crash_issuer nobody = { .kind = SG_CRASH_NOBODY };

    *x = (struct sg_crash_issuers){
        .of_event = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
        .all = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_issuer)),
        .known = g_hash_table_new_full(hash, equal, g_free, NULL),
        .ports = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
    };
    g_array_append_val(x->all, nobody);
}

void sg_crash_issuers_fini(struct sg_crash_issuers *x)
{
    if (x->all) {
        g_array_unref(x->of_event);
        g_array_unref(x->all);
        g_hash_table_destroy(x->known);
        g_hash_table_destroy(x->ports);
    }
    *x = (struct sg_crash_issuers){ 0 };
}

/* The port of the passive side, which is the same for all connections of a service. */
static void add_connection(struct sg_crash_issuers *x, const struct sg_trace_event *e)
{
    uint64_t key = connection(e);
    const uint8_t *port = e->data + PORTS_AT + (e->arg ? 0 : 2);

    g_hash_table_insert(x->ports, g_memdup2(&key, sizeof(key)),
                        GUINT_TO_POINTER((guint)port[0] << 8 | port[1]));
}

static struct sg_crash_issuer message(struct sg_crash_issuers *x, const struct sg_trace_event *e,
                                      uint8_t kind)
{
    uint64_t key = connection(e);

    return (struct sg_crash_issuer){
        .kind = kind,
        .unit = (uint32_t)e->unit,
        .port = GPOINTER_TO_UINT(g_hash_table_lookup(x->ports, &key)),
    };
}

static struct sg_crash_issuer issuer_of(struct sg_crash_issuers *x, const struct sg_trace_event *e)
{
    switch (e->kind) {
    case SG_TRACE_STORE:
        return (struct sg_crash_issuer){
            .kind = SG_CRASH_BY_CPU,
            .pc = e->at,
            .root = e->at >> 63 ? 0 : e->root,
        };
    case SG_TRACE_PLACE:
        return message(x, e, e->msn ? SG_CRASH_BY_SEND : SG_CRASH_BY_WRITE);
    case SG_TRACE_ATOMIC_WRITE:
        return message(x, e, SG_CRASH_BY_ATOMIC_WRITE);
    case SG_TRACE_ATOMIC:
        return message(x, e, SG_CRASH_BY_ATOMIC);
    case SG_TRACE_OTHER_WRITE:
        return (struct sg_crash_issuer){ .kind = SG_CRASH_BY_DEVICE, .unit = (uint32_t)e->unit };
    default:
        return (struct sg_crash_issuer){ .kind = SG_CRASH_NOBODY };
    }
}

static uint32_t number_of(struct sg_crash_issuers *x, const struct sg_crash_issuer *who)
{
    gpointer n;

    if (equal(who, sg_crash_issuers_at(x, x->last))) {
        return x->last;
    }
    if (!g_hash_table_lookup_extended(x->known, who, NULL, &n)) {
        n = GUINT_TO_POINTER(x->all->len);
        g_hash_table_insert(x->known, g_memdup2(who, sizeof(*who)), n);
        g_array_append_vals(x->all, who, 1);
    }
    x->last = GPOINTER_TO_UINT(n);
    return x->last;
}

void sg_crash_issuers_add(struct sg_crash_issuers *x, const struct sg_trace_event *e)
{
    struct sg_crash_issuer who = issuer_of(x, e);
    uint32_t n = who.kind == SG_CRASH_NOBODY ? 0 : number_of(x, &who);

    if (e->kind == SG_TRACE_CONNECTED) {
        add_connection(x, e);
    }
    g_array_append_val(x->of_event, n);
}

uint32_t sg_crash_issuers_of(const struct sg_crash_issuers *x, uint64_t event)
{
    return event && event <= x->of_event->len ? g_array_index(x->of_event, uint32_t, event - 1) : 0;
}

const struct sg_crash_issuer *sg_crash_issuers_at(const struct sg_crash_issuers *x, uint32_t n)
{
    return &g_array_index(x->all, struct sg_crash_issuer, n);
}

const char *sg_crash_issuer_kind_name(unsigned kind)
{
    return kind < SG_CRASH_ISSUER_KINDS ? kind_name[kind] : "?";
}

void sg_crash_issuer_text(const struct sg_crash_issuer *x, GString *out)
{
    static const char *const what[SG_CRASH_ISSUER_KINDS] = {
        [SG_CRASH_NOBODY] = "an unknown store",
        [SG_CRASH_BY_WRITE] = "an RDMA Write",
        [SG_CRASH_BY_SEND] = "a Send",
        [SG_CRASH_BY_ATOMIC_WRITE] = "an Atomic Write",
        [SG_CRASH_BY_ATOMIC] = "a Fetch-and-Add or Compare-and-Swap",
    };

    if (x->kind == SG_CRASH_BY_CPU) {
        g_string_append_printf(out, "the store at 0x%" G_GINT64_MODIFIER "x", x->pc);
    } else if (x->kind == SG_CRASH_BY_DEVICE) {
        g_string_append_printf(out, "DMA of device %u", x->unit);
    } else {
        g_string_append(out, what[x->kind]);
        if (x->port) {
            g_string_append_printf(out, " to port %u", x->port);
        }
    }
}
