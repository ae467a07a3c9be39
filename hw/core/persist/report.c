/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report of a cut: what was dirty, in which stage, its source and its fate.
 *
 * Rows are runs of neighbouring lines with the same stage, fate and source event; the log knows
 * the source, if it still has the event.  Counts cover everything, rows the first
 * SG_PERSIST_REPORT_ROWS.
 */
#include <inttypes.h>

#include "persist/domain_impl.h"

struct sg_persist_report *sg_dom_report_new(struct sg_persist *p,
                                            const struct sg_persist_policy *policy)
{
    struct sg_persist_report *r = g_new0(struct sg_persist_report, 1);
    uint64_t oldest, newest;

    *r = (struct sg_persist_report){
        .now_ns = p->now_ns,
        .events = p->inputs,
        .config = p->config,
        .policy = *policy,
        .armed = p->armed_hit,
        .arm = p->arm,
        .acknowledged = p->acknowledged,
    };
    sg_persist_log_bounds(p, &oldest, &newest);
    if (newest >= SG_PERSIST_REPORT_EVENTS + oldest) {
        oldest = newest - SG_PERSIST_REPORT_EVENTS + 1;
    }
    r->recent = g_new(struct sg_persist_event, newest - oldest + 1);
    for (uint64_t seq = oldest; seq && seq <= newest; seq++) {
        r->recent[r->recent_count++] = p->log[seq & p->log_mask];
    }
    for (unsigned i = 0; i < p->extent_count; i++) {
        r->extent_name[i] = g_strdup(p->extent[i].name);
    }
    return r;
}

void sg_persist_report_free(struct sg_persist_report *r)
{
    if (!r) {
        return;
    }
    for (unsigned i = 0; i < SG_PERSIST_EXTENTS; i++) {
        g_free(r->extent_name[i]);
    }
    g_free(r->rows);
    g_free(r->recent);
    g_free(r);
}

static bool continues(const struct sg_persist_loss *last, const struct sg_persist_loss *row)
{
    return row->lines && last->lines && last->extent == row->extent &&
           last->addr + last->len == row->addr && last->stage == row->stage &&
           last->fate == row->fate && last->seq == row->seq &&
           last->source.agent == row->source.agent;
}

void sg_dom_report_add(struct sg_persist *p, struct sg_persist_report *r,
                       const struct sg_persist_loss *add, uint32_t seq_low)
{
    struct sg_persist_loss *last = r->row_count ? &r->rows[r->row_count - 1] : NULL;
    const struct sg_persist_event *e = sg_dom_log_find32(p, seq_low);
    struct sg_persist_loss row = *add;

    if (e) {
        row.seq = e->seq;
        row.source = (struct sg_persist_source){
            .agent = e->agent,
            .unit = e->unit,
            .qpn = e->qpn,
            .msn = e->msn,
            .at = e->at,
        };
    }
    if (last && continues(last, &row)) {
        last->len += row.len;
        last->lines += row.lines;
        last->stores += row.stores;
        last->stores_kept += row.stores_kept;
    } else if (r->row_count < SG_PERSIST_REPORT_ROWS) {
        if (!(r->row_count & (r->row_count - 1))) {
            /* It is full: its size is 0, or the power of two that row_count has reached. */
            r->rows = g_renew(struct sg_persist_loss, r->rows, SG_MAX(2 * r->row_count, 1u));
        }
        r->rows[r->row_count++] = row;
    } else {
        r->rows_omitted++;
    }
}

/* ---- JSON ---- */

static void json_string(GString *out, const char *s)
{
    g_string_append_c(out, '"');
    for (; *s; s++) {
        unsigned char ch = *s;

        if (ch == '"' || ch == '\\') {
            g_string_append_c(out, '\\');
            g_string_append_c(out, ch);
        } else if (ch < 0x20) {
            g_string_append_printf(out, "\\u%04x", ch);
        } else {
            g_string_append_c(out, ch);
        }
    }
    g_string_append_c(out, '"');
}

static void json_source(GString *out, const struct sg_persist_source *s)
{
    switch (s->agent) {
    case SG_PERSIST_ADAPTER:
        g_string_append_printf(out,
                               "{\"agent\": \"adapter\", \"device\": %u, \"qpn\": %" PRIu32
                               ", \"msn\": %" PRIu32 ", \"to\": %" PRIu64 "}",
                               s->unit, s->qpn, s->msn, s->at);
        break;
    case SG_PERSIST_CPU:
        if (s->unit == UINT16_MAX) {
            g_string_append(out, "{\"agent\": \"cpu\"}");
        } else {
            g_string_append_printf(out, "{\"agent\": \"cpu\", \"vcpu\": %u, \"pc\": %" PRIu64 "}",
                                   s->unit, s->at);
        }
        break;
    case SG_PERSIST_OTHER:
        g_string_append(out, "{\"agent\": \"other\"}");
        break;
    default:
        g_string_append(out, "{\"agent\": \"unknown\"}");
    }
}

/* With the names of the properties. */
static void json_config(GString *out, const struct sg_persist_config *c)
{
    g_string_append_printf(
        out,
        "{\"domain\": \"%s\", \"ddio\": %s, \"cpu-tracking\": %s, \"store-buffer\": %s,"
        " \"untracked\": \"%s\", \"placement-delay\": %" PRIu64 ", \"placement-order\": \"%s\","
        " \"eviction\": \"%s\", \"drain\": \"%s\", \"posted-drain\": \"%s\"}",
        sg_persist_domain_name(c->domain), c->ddio ? "true" : "false",
        c->cpu_tracking ? "true" : "false", c->store_buffer ? "true" : "false",
        sg_persist_untracked_name(c->untracked), c->placement_delay_ns,
        sg_persist_order_name(c->placement_order), sg_persist_pace_name(c->eviction),
        sg_persist_pace_name(c->drain), sg_persist_pace_name(c->posted_drain));
}

static void json_fates(GString *out, const uint64_t count[SG_PERSIST_FATES])
{
    for (unsigned f = 0; f < SG_PERSIST_FATES; f++) {
        g_string_append_printf(out, "%s\"%s\": %" PRIu64, f ? ", " : "{", sg_persist_fate_name(f),
                               count[f]);
    }
    g_string_append_c(out, '}');
}

static void json_row(const struct sg_persist_report *r, const struct sg_persist_loss *x,
                     GString *out)
{
    g_string_append_printf(out,
                           "{\"addr\": %" PRIu64 ", \"len\": %" PRIu64
                           ", \"stage\": \"%s\", \"fate\": \"%s\", \"extent\": ",
                           x->addr, x->len, sg_persist_stage_name(x->stage),
                           sg_persist_fate_name(x->fate));
    if (x->extent >= 0) {
        json_string(out, r->extent_name[x->extent]);
    } else {
        g_string_append(out, "null");
    }
    g_string_append_printf(out,
                           ", \"lines\": %" PRIu32 ", \"stores\": %" PRIu32
                           ", \"stores-kept\": %" PRIu32 ", \"event\": %" PRIu64 ", \"source\": ",
                           x->lines, x->stores, x->stores_kept, x->seq);
    json_source(out, &x->source);
    g_string_append_c(out, '}');
}

static void json_event(const struct sg_persist_event *e, GString *out)
{
    struct sg_persist_source who = {
        .agent = e->agent,
        .unit = e->unit,
        .qpn = e->qpn,
        .msn = e->msn,
        .at = e->at,
    };

    g_string_append_printf(
        out,
        "{\"event\": %" PRIu64 ", \"time-ns\": %" PRIu64 ", \"kind\": \"%s\", \"addr\": %" PRIu64
        ", \"len\": %" PRIu32 ", \"arg\": %" PRIu32 ", \"source\": ",
        e->seq, e->now_ns, sg_persist_event_name(e->kind), e->addr, e->len, e->arg);
    json_source(out, &who);
    g_string_append_c(out, '}');
}

void sg_persist_report_json(const struct sg_persist_report *r, GString *out)
{
    g_string_append_printf(out,
                           "{\"version\": 1, \"time-ns\": %" PRIu64 ", \"events\": %" PRIu64
                           ", \"acknowledged-flushes\": %" PRIu64 ", \"armed\": %s,\n"
                           " \"policy\": {\"outcome\": \"%s\", \"seed\": %" PRIu64
                           ", \"addr\": %" PRIu64 ", \"len\": %" PRIu64 "},\n \"config\": ",
                           r->now_ns, r->events, r->acknowledged, r->armed ? "true" : "false",
                           sg_persist_outcome_name(r->policy.outcome), r->policy.seed,
                           r->policy.addr, r->policy.len);
    json_config(out, &r->config);
    if (sg_persist_doubt(&r->config)) {
        g_string_append_printf(out, ",\n \"not-trusted\": \"%s\"", sg_persist_doubt(&r->config));
    }
    g_string_append(out, ",\n \"stages\": {");
    for (unsigned s = 0; s < SG_PERSIST_STAGES; s++) {
        g_string_append_printf(out, "%s\"%s\": ", s ? ", " : "", sg_persist_stage_name(s));
        json_fates(out, r->count[s]);
    }
    g_string_append_printf(out, "},\n \"untracked-counted\": %s, \"untracked\": ",
                           r->untracked_counted ? "true" : "false");
    json_fates(out, r->untracked);
    g_string_append_printf(out, ",\n \"rows-omitted\": %" PRIu64 ", \"rows\": [", r->rows_omitted);
    for (size_t i = 0; i < r->row_count; i++) {
        g_string_append(out, i ? ",\n  " : "\n  ");
        json_row(r, &r->rows[i], out);
    }
    g_string_append(out, "],\n \"recent\": [");
    for (size_t i = 0; i < r->recent_count; i++) {
        g_string_append(out, i ? ",\n  " : "\n  ");
        json_event(&r->recent[i], out);
    }
    g_string_append(out, "]}\n");
}

/* ---- Text ---- */

enum { TEXT_ROWS = 40, TEXT_EVENTS = 12 };

static void text_source(GString *out, const struct sg_persist_source *s)
{
    switch (s->agent) {
    case SG_PERSIST_ADAPTER:
        g_string_append_printf(out, "adapter %u qp %" PRIu32, s->unit, s->qpn);
        if (s->msn) {
            g_string_append_printf(out, " msn %" PRIu32, s->msn);
        }
        if (s->at) {
            g_string_append_printf(out, " to 0x%" PRIx64, s->at);
        }
        break;
    case SG_PERSIST_CPU:
        if (s->unit == UINT16_MAX) {
            g_string_append(out, "a CPU, untracked");
        } else {
            g_string_append_printf(out, "vcpu %u pc 0x%" PRIx64, s->unit, s->at);
        }
        break;
    case SG_PERSIST_OTHER:
        g_string_append(out, "another device");
        break;
    default:
        g_string_append(out, "unknown (older than the log)");
    }
}

static void text_counts(const struct sg_persist_report *r, GString *out)
{
    bool any = false;

    g_string_append(out, "stage      unit         lost     partly       kept    refused\n");
    for (unsigned s = 0; s < SG_PERSIST_STAGES; s++) {
        const uint64_t *n = r->count[s];

        if (n[0] | n[1] | n[2] | n[3]) {
            g_string_append_printf(
                out, "%-10s %-6s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n",
                sg_persist_stage_name(s), s <= SG_PERSIST_S1 ? "octets" : "lines",
                n[SG_PERSIST_LOST], n[SG_PERSIST_PARTLY], n[SG_PERSIST_KEPT],
                n[SG_PERSIST_REFUSED]);
            any = true;
        }
    }
    if (!any) {
        g_string_append(out, "(nothing was on its way)\n");
    }
    if (r->stays) {
        g_string_append(out, "Lines changed by CPUs were not tracked and not counted: all kept.\n");
    } else if (!r->config.cpu_tracking && !r->untracked_counted) {
        g_string_append(out, "Lines changed by CPUs were not tracked and not counted: all lost.\n");
    } else if (!r->config.cpu_tracking) {
        g_string_append_printf(out,
                               "Lines changed by CPUs, untracked: %" PRIu64 " lost, %" PRIu64
                               " kept, %" PRIu64 " refused.\n",
                               r->untracked[SG_PERSIST_LOST], r->untracked[SG_PERSIST_KEPT],
                               r->untracked[SG_PERSIST_REFUSED]);
    }
    if (sg_persist_doubt(&r->config)) {
        g_string_append_printf(out, "Not to be trusted: %s.\n", sg_persist_doubt(&r->config));
    }
}

static void text_row(const struct sg_persist_report *r, const struct sg_persist_loss *x,
                     GString *out)
{
    g_string_append_printf(out, "  %-3s %-7s 0x%012" PRIx64 " +0x%" PRIx64,
                           sg_persist_stage_name(x->stage), sg_persist_fate_name(x->fate), x->addr,
                           x->len);
    if (x->fate == SG_PERSIST_PARTLY) {
        g_string_append_printf(out, " (%" PRIu32 " of %" PRIu32 " stores)", x->stores_kept,
                               x->stores);
    }
    if (x->extent >= 0) {
        g_string_append_printf(out, " %s", r->extent_name[x->extent]);
    }
    g_string_append(out, " from ");
    text_source(out, &x->source);
    g_string_append_c(out, '\n');
}

static void text_event(const struct sg_persist_event *e, GString *out)
{
    struct sg_persist_source who = {
        .agent = e->agent,
        .unit = e->unit,
        .qpn = e->qpn,
        .msn = e->msn,
        .at = e->at,
    };

    g_string_append_printf(out, "  %8" PRIu64 " %-12s", e->seq, sg_persist_event_name(e->kind));
    if (e->len) {
        g_string_append_printf(out, " 0x%" PRIx64 " +0x%" PRIx32, e->addr, e->len);
    }
    if (e->agent != SG_PERSIST_NOBODY) {
        g_string_append(out, " by ");
        text_source(out, &who);
    }
    g_string_append_c(out, '\n');
}

void sg_persist_report_text(const struct sg_persist_report *r, GString *out)
{
    size_t first = r->recent_count > TEXT_EVENTS ? r->recent_count - TEXT_EVENTS : 0;

    g_string_append_printf(out,
                           "Power cut%s after %" PRIu64 " events, domain %s, ddio %s, "
                           "policy %s",
                           r->armed ? " (armed)" : "", r->events,
                           sg_persist_domain_name(r->config.domain), r->config.ddio ? "on" : "off",
                           sg_persist_outcome_name(r->policy.outcome));
    if (r->policy.outcome >= SG_PERSIST_OUTCOME_RANDOM) {
        g_string_append_printf(out, " seed %" PRIu64, r->policy.seed);
    }
    if (r->policy.outcome == SG_PERSIST_WORST_FOR) {
        g_string_append_printf(out, " 0x%" PRIx64 " +0x%" PRIx64, r->policy.addr, r->policy.len);
    }
    g_string_append_printf(out,
                           "\n%" PRIu64 " flushes to persistence acknowledged since the last "
                           "start.\n\n",
                           r->acknowledged);
    text_counts(r, out);
    if (r->row_count) {
        g_string_append(out, "\nWhat was dirty:\n");
    }
    for (size_t i = 0; i < SG_MIN(r->row_count, TEXT_ROWS); i++) {
        text_row(r, &r->rows[i], out);
    }
    if (r->row_count > TEXT_ROWS) {
        g_string_append_printf(out, "  ... and %" PRIu64 " more rows\n",
                               r->row_count - TEXT_ROWS + r->rows_omitted);
    }
    if (r->recent_count) {
        g_string_append(out, "\nLast events:\n");
    }
    for (size_t i = first; i < r->recent_count; i++) {
        text_event(&r->recent[i], out);
    }
}
