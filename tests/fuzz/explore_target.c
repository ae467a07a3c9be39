/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target "explore": runs of two machines as nobody would record them.
 *
 * The input chooses events of a target and a client: any that the format allows, among those of
 * machines that make sense.  Order, promises, explorer, stories and timelines must take them: a
 * run is refused with a sentence, or explored on all platforms to its end.  Numbers of a result
 * must agree, and the same run once more must have the same result.
 */
#include <glib.h>

#include "explore_rig.h"
#include "fuzz.h"
#include "staghorn/io.h"
#include "tap.h"

enum { EVENTS_MAX = 120, LONG = 5000 };

static unsigned long long explored, refused, bugs, kept, repeated;

/* ---- Events ---- */

/* Addresses of persistent memory, small numbers, edges. */
static uint64_t number(struct fuzz_in *in, uint64_t max)
{
    uint64_t n;

    switch (fuzz_below(in, 4)) {
    case 0:
        n = fuzz_edgy(in);
        break;
    case 1:
        n = XR_BASE + fuzz_below(in, XR_SIZE + 64);
        break;
    default:
        n = fuzz_below(in, 6);
    }
    return n > max ? n % (max + 1) : n;
}

static void any_event(struct xr *r, struct fuzz_in *in, unsigned machine)
{
    static uint8_t payload[SG_TRACE_DATA_MAX];
    static const char *const names[] = { "durable", "state", "domain=adr", "acknowledged" };
    struct sg_trace_event e = { .kind = (uint8_t)(1 + fuzz_below(in, SG_TRACE_KINDS - 1)) };
    const struct sg_trace_row *row = sg_trace_row(e.kind);

    for (const uint8_t *f = row->field; *f; f++) {
        e.field[*f] = number(in, sg_trace_field_max[*f]);
    }
    if (row->arg_limit) {
        e.arg %= row->arg_limit;
    }
    if (row->has_data) {
        uint64_t most = fuzz_rarely(in, 16) ? LONG : 80;

        most = SG_MAX(SG_MIN(most, row->len_max), row->len_min);
        e.len = row->len_min + fuzz_u16(in) % (most - row->len_min + 1);
        e.data = payload;
    } else if (!fuzz_rarely(in, 8)) {
        e.len %= 4096;
    }
    if (e.kind == SG_TRACE_CONFIGURE || e.kind == SG_TRACE_MARK) {
        e.name = sg_trace_writer_name(r->machine[machine].writer,
                                      names[fuzz_below(in, G_N_ELEMENTS(names))]);
    }
    sg_assert(!sg_trace_event_wrong(&e));
    xr_event(r, machine, e);
}

/* A frame again that some machine sent: the order has to choose. */
static void old_frame(struct xr *r, struct fuzz_in *in)
{
    struct sg_trace_event e = { .kind = SG_TRACE_FRAME, .len = 100, .arg = fuzz_below(in, 2) };

    e.value = fuzz_below(in, 4);
    repeated++;
    xr_event(r, fuzz_below(in, XR_MACHINES), e);
}

static void some_event(struct xr *r, struct fuzz_in *in, bool hostile)
{
    uint64_t off = (uint64_t)fuzz_below(in, XR_SIZE / 8) * 8;
    uint32_t qpn = fuzz_below(in, XR_QPS);

    if (hostile && fuzz_rarely(in, 6)) {
        any_event(r, in, fuzz_below(in, XR_MACHINES));
        return;
    }
    switch (fuzz_below(in, 11)) {
    case 0:
        xr_connect(r, qpn, 7000);
        break;
    case 1:
    case 2:
        xr_write(r, qpn, off, fuzz_u8(in), fuzz_below(in, 2));
        break;
    case 3:
        xr_flush(r, qpn, off & ~63ull, 64);
        break;
    case 4:
    case 5:
        xr_store(r, 0x401000 + fuzz_below(in, 4), off, fuzz_u8(in), fuzz_below(in, 2));
        break;
    case 6:
        xr_clwb(r, off);
        break;
    case 7:
        xr_sfence(r);
        break;
    case 8:
        xr_durable(r, off, 1 + fuzz_u8(in));
        break;
    case 9:
        old_frame(r, in);
        break;
    default:
        xr_mark(r, XR_CLIENT, "acknowledged", "");
    }
}

/* ---- What came of it ---- */

/* A platform's counts; and its causes, which no platform may have more often than promises. */
static void add_platform(const struct xr *r, unsigned i, uint64_t promises, GString *out)
{
    const struct sg_crash_verdict *v = sg_crash_explorer_verdict(r->explorer, i);
    uint64_t judged = v->in_doubt + v->not_judged, broken = 0, listed = v->unlisted;

    for (unsigned k = 0; k < SG_CRASH_ACKS; k++) {
        sg_assert(v->broken[k] <= v->promises[k]);
        judged += v->promises[k];
        broken += v->broken[k];
    }
    for (guint k = 0; k < v->breaches->len; k++) {
        const struct sg_crash_breach *b = &g_array_index(v->breaches, struct sg_crash_breach, k);

        sg_assert(b->count && b->promise < promises && b->stage <= SG_CRASH_NOT_PLACED);
        listed += b->count;
    }
    sg_assert(r->wrong || (judged == promises && listed == broken));
    kept += !broken && promises;
    g_string_append_printf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u|", v->points, judged,
                           broken, v->breaches->len, v->pasts);
}

static char *outcome(const uint8_t *data, size_t size)
{
    struct fuzz_in in = { data, size };
    GString *out = g_string_new(NULL);
    bool hostile = fuzz_below(&in, 4) == 0;
    uint64_t promises;
    struct xr r;

    xr_init(&r, fuzz_below(&in, 2) ? "persistence-domain=cpu-cache\n" : "");
    for (unsigned i = 0; i < EVENTS_MAX && in.len; i++) {
        some_event(&r, &in, hostile);
    }
    xr_explore(&r, "all", "all", (1u << SG_CRASH_ACKS) - 1);
    sg_crash_promises_of(r.promises, XR_TARGET, &promises);
    sg_assert(!r.wrong || r.wrong[0]);
    for (unsigned i = 0; i < r.platforms; i++) {
        add_platform(&r, i, promises, out);
    }
    if (!r.wrong && r.bugs->len) {
        xr_tell(&r);
    }
    for (guint i = 0; i < r.bugs->len; i++) {
        const struct sg_crash_bug *b = &g_array_index(r.bugs, struct sg_crash_bug, i);

        g_string_append_printf(out, "%u %u %" PRIu64 " %" PRIu64 "|", b->kind, b->issuer,
                               b->promise, b->lost);
        sg_crash_issuer_text(sg_crash_issuers_at(&r.issuers, b->issuer), out);
    }
    explored += !r.wrong;
    refused += r.wrong != NULL;
    bugs += r.bugs->len;
    xr_free(&r);
    return g_string_free(out, FALSE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *first, *again;

    if (setjmp(t_state.leave)) { /* a check of the rig */
        abort();
    }
    first = outcome(data, size);
    again = size % 8 ? g_strdup(first) : outcome(data, size);
    sg_assert(strcmp(first, again) == 0);
    g_free(first);
    g_free(again);
    return 0;
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len, "explored %llu, refused %llu, bugs %llu, without one %llu, old frames %llu",
             explored, refused, bugs, kept, repeated);
    return explored && refused && bugs && kept && repeated;
}
