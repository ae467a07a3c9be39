/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text and the JSON of a transaction have the same members in the same order: a line of text
 * for the Call, the Reply, each chunk and each finding.
 */
#include "report.h"

#include <inttypes.h>

static const char *const sides[] = { "client", "server" };

/* ---- JSON, on one line ---- */

static void member(GString *out, const char *key)
{
    char last = out->len ? out->str[out->len - 1] : '{';

    if (last != '{' && last != '[' && last != '\n') {
        g_string_append(out, ", ");
    }
    if (key) {
        g_string_append_printf(out, "\"%s\": ", key);
    }
}

static void open_member(GString *out, const char *key, char bracket)
{
    member(out, key);
    g_string_append_c(out, bracket);
}

static void number(GString *out, const char *key, uint64_t value)
{
    member(out, key);
    g_string_append_printf(out, "%" PRIu64, value);
}

static void hex(GString *out, const char *key, uint64_t value)
{
    member(out, key);
    g_string_append_printf(out, "\"0x%" PRIx64 "\"", value);
}

static void truth(GString *out, const char *key, bool value)
{
    member(out, key);
    g_string_append(out, value ? "true" : "false");
}

/* Our texts are ASCII; names of procedures too. */
static void text(GString *out, const char *key, const char *value)
{
    member(out, key);
    g_string_append_c(out, '"');
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') {
            g_string_append_c(out, '\\');
        }
        g_string_append_c(out, *value);
    }
    g_string_append_c(out, '"');
}

static void findings_json(GString *out, const struct rr_findings *f)
{
    open_member(out, "findings", '[');
    for (unsigned i = 0; i < f->count; i++) {
        open_member(out, NULL, '{');
        text(out, "rule", rr_rule(f->found[i].rule)->id);
        text(out, "section", rr_rule(f->found[i].rule)->section);
        text(out, "text", f->found[i].text);
        g_string_append_c(out, '}');
    }
    g_string_append_c(out, ']');
}

/* ---- Connections ---- */

static void octets_hex(GString *out, struct sg_span octets)
{
    for (size_t i = 0; i < octets.len; i++) {
        g_string_append_printf(out, "%02x", octets.p[i]);
    }
}

/* @octets: all private data of that side, as they came. */
static void private_json(GString *out, const char *key, const struct rr_private *p,
                         struct sg_span octets)
{
    open_member(out, key, '{');
    member(out, "octets");
    g_string_append_c(out, '"');
    octets_hex(out, octets);
    g_string_append_c(out, '"');
    truth(out, "present", p->present);
    truth(out, "remote_invalidation", p->remote_inv);
    number(out, "send_size", p->send_size);
    number(out, "receive_size", p->recv_size);
    g_string_append_c(out, '}');
}

static void private_text(GString *out, const char *whose, const struct rr_private *p,
                         struct sg_span octets)
{
    if (p->present) {
        g_string_append_printf(out, "  private data of the %s: send %u, receive %u%s", whose,
                               p->send_size, p->recv_size, p->remote_inv ? ", R" : "");
    } else {
        g_string_append_printf(out, "  private data of the %s: none", whose);
    }
    if (octets.len) {
        g_string_append(out, " (");
        octets_hex(out, octets);
        g_string_append_c(out, ')');
    }
    g_string_append_c(out, '\n');
}

void rr_report_connection(struct rr_report *r, const struct rr_who *who, const struct rr_startup *s)
{
    GString *out = r->out;

    r->connections++;
    if (!r->json) {
        g_string_append_printf(out, "connection %" PRIu64 ": %s to %s, MPA revision %u%s\n",
                               who->number, who->client, who->server, s->reply.rev,
                               s->reply.reject ? ", rejected" : "");
        private_text(out, sides[0], &s->client, s->request.pd);
        private_text(out, sides[1], &s->server, s->reply.pd);
        g_string_append_printf(out, "  inline thresholds: to the server %u, to the client %u\n",
                               s->threshold[RR_OUT], s->threshold[RR_BACK]);
        return;
    }
    open_member(out, NULL, '{');
    open_member(out, "connection", '{');
    number(out, "number", who->number);
    text(out, "client", who->client);
    text(out, "server", who->server);
    number(out, "mpa_revision", s->reply.rev);
    truth(out, "rejected", s->reply.reject);
    private_json(out, "client_private_data", &s->client, s->request.pd);
    private_json(out, "server_private_data", &s->server, s->reply.pd);
    number(out, "threshold_to_server", s->threshold[RR_OUT]);
    number(out, "threshold_to_client", s->threshold[RR_BACK]);
    g_string_append(out, "}}\n");
}

void rr_report_broken(struct rr_report *r, const struct rr_who *who, enum rr_dir dir,
                      const char *why)
{
    if (!r->json) {
        g_string_append_printf(
            r->out, "connection %" PRIu64 ": cannot be followed further from the %s: %s\n",
            who->number, sides[dir], why);
        return;
    }
    open_member(r->out, NULL, '{');
    open_member(r->out, "incomplete", '{');
    number(r->out, "connection", who->number);
    text(r->out, "from", sides[dir]);
    text(r->out, "why", why);
    g_string_append(r->out, "}}\n");
}

/* ---- Transactions ---- */

/* One segment: what was offered, what came back (NULL: nothing), what was moved. */
static void segment(struct rr_report *r, const char *kind, unsigned chunk,
                    const struct rr_segment *offered, const struct rr_segment *back,
                    const struct rr_place *moved)
{
    GString *out = r->out;

    if (!r->json) {
        g_string_append_printf(out, "    %s %u: STag 0x%x, %u octets at 0x%" PRIx64, kind, chunk,
                               offered->handle, offered->length, offered->offset);
        if (back) {
            g_string_append_printf(out, ", returned %u", back->length);
        }
        g_string_append_printf(out, ", moved %" PRIu64 " in %u segments\n", moved->octets,
                               moved->segments);
        return;
    }
    open_member(out, NULL, '{');
    text(out, "kind", kind);
    number(out, strcmp(kind, "read") == 0 ? "position" : "chunk", chunk);
    hex(out, "stag", offered->handle);
    number(out, "length", offered->length);
    hex(out, "offset", offered->offset);
    if (back) {
        number(out, "returned", back->length);
    }
    number(out, "moved", moved->octets);
    number(out, "segments", moved->segments);
    g_string_append_c(out, '}');
}

static void chunk(struct rr_report *r, const char *kind, unsigned n, const struct rr_transaction *t,
                  const struct rr_chunk *offered, const struct rr_chunk *back)
{
    for (unsigned i = 0; i < offered->count; i++) {
        segment(r, kind, n, &t->call->segment[offered->first + i],
                back && i < back->count ? &t->reply->segment[back->first + i] : NULL,
                &t->written[offered->first + i]);
    }
}

static void chunks(struct rr_report *r, const struct rr_transaction *t)
{
    const struct rr_header *call = t->call, *reply = t->reply;

    for (unsigned i = 0; i < call->reads; i++) {
        segment(r, "read", call->read[i].position, &call->read[i].segment, NULL, &t->read[i]);
    }
    for (unsigned i = 0; i < call->chunks; i++) {
        chunk(r, "write", i, t, &call->chunk[i],
              reply && i < reply->chunks ? &reply->chunk[i] : NULL);
    }
    if (call->has_reply) {
        chunk(r, "reply", 0, t, &call->reply, reply && reply->has_reply ? &reply->reply : NULL);
    }
}

static void transaction_json(struct rr_report *r, const struct rr_who *who,
                             const struct rr_transaction *t)
{
    GString *out = r->out;

    open_member(out, NULL, '{');
    open_member(out, "transaction", '{');
    number(out, "connection", who->number);
    text(out, "from", sides[t->caller]);
    hex(out, "xid", t->call->xid);
    text(out, "name", t->name);
    text(out, "call", rr_proc_name(t->call->proc));
    number(out, "call_octets", t->call_len);
    number(out, "credits_requested", t->call->credit);
    open_member(out, "chunks", '[');
    chunks(r, t);
    g_string_append_c(out, ']');
    if (t->reply) {
        text(out, "reply", rr_proc_name(t->reply->proc));
        number(out, "reply_octets", t->reply_len);
        number(out, "credits_granted", t->reply->credit);
        if (t->reply->proc == RR_ERROR) {
            number(out, "error", t->reply->err);
        }
    }
    if (t->invalidates) {
        hex(out, "invalidated", t->invalidated);
    }
    findings_json(out, &t->findings);
    g_string_append(out, "}}\n");
}

static void findings_text(GString *out, const struct rr_findings *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        const struct rr_rule_row *row = rr_rule(f->found[i].rule);

        g_string_append_printf(out, "  %s (%s %s): %s\n    %s\n", row->id,
                               f->found[i].rule < PVT_01 ? "RFC 8166" : "RFC 8797", row->section,
                               f->found[i].text, row->text);
    }
    if (f->left_out) {
        g_string_append_printf(out, "  and %u more\n", f->left_out);
    }
}

static void transaction_text(struct rr_report *r, const struct rr_who *who,
                             const struct rr_transaction *t)
{
    GString *out = r->out;

    g_string_append_printf(out, "%" PRIu64 ": XID 0x%08x from the %s: %s\n", who->number,
                           t->call->xid, sides[t->caller], *t->name ? t->name : "unknown");
    g_string_append_printf(out, "  %s of %zu octets, asks for %u credits\n",
                           rr_proc_name(t->call->proc), t->call_len, t->call->credit);
    if (!t->reply) {
        g_string_append(out, "  no Reply\n");
    } else {
        g_string_append_printf(out, "  %s of %zu octets, grants %u credits",
                               rr_proc_name(t->reply->proc), t->reply_len, t->reply->credit);
        if (t->reply->proc == RR_ERROR) {
            g_string_append_printf(out, ", error %u", t->reply->err);
        }
        if (t->invalidates) {
            g_string_append_printf(out, ", invalidates STag 0x%x", t->invalidated);
        }
        g_string_append_c(out, '\n');
    }
    chunks(r, t);
    findings_text(out, &t->findings);
}

static void note(struct rr_report *r, const struct rr_findings *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        r->broken[f->found[i].rule]++;
    }
    r->findings += f->count + f->left_out;
}

void rr_report_transaction(struct rr_report *r, const struct rr_who *who,
                           const struct rr_transaction *t)
{
    r->transactions++;
    r->unanswered += !t->reply;
    note(r, &t->findings);
    if (!r->all && !t->findings.count) {
        return;
    }
    if (r->json) {
        transaction_json(r, who, t);
    } else {
        transaction_text(r, who, t);
    }
}

void rr_report_findings(struct rr_report *r, const struct rr_who *who, const struct rr_findings *f)
{
    note(r, f);
    if (!r->json) {
        g_string_append_printf(r->out, "%" PRIu64 ":\n", who->number);
        findings_text(r->out, f);
        return;
    }
    open_member(r->out, NULL, '{');
    open_member(r->out, "finding", '{');
    number(r->out, "connection", who->number);
    findings_json(r->out, f);
    g_string_append(r->out, "}}\n");
}

void rr_report_summary(struct rr_report *r, const struct rr_totals *t)
{
    GString *out = r->out;

    if (!r->json) {
        g_string_append_printf(out,
                               "%" PRIu64 " frames, %" PRIu64
                               " connections with RPC-over-RDMA, %" PRIu64 " others, %" PRIu64
                               " without their start\n",
                               t->frames, r->connections, t->others, t->unknown);
        g_string_append_printf(
            out, "%" PRIu64 " transactions, %" PRIu64 " without a Reply, %" PRIu64 " breaches\n",
            r->transactions, r->unanswered, r->findings);
        for (unsigned i = 0; i < RR_RULES; i++) {
            if (r->broken[i]) {
                g_string_append_printf(out, "  %s: %" PRIu64 "\n", rr_rule(i)->id, r->broken[i]);
            }
        }
        return;
    }
    open_member(out, NULL, '{');
    open_member(out, "summary", '{');
    number(out, "frames", t->frames);
    number(out, "connections", r->connections);
    number(out, "other_connections", t->others);
    number(out, "connections_without_start", t->unknown);
    number(out, "incomplete_directions", t->incomplete);
    number(out, "transactions", r->transactions);
    number(out, "without_reply", r->unanswered);
    number(out, "breaches", r->findings);
    open_member(out, "rules", '{');
    for (unsigned i = 0; i < RR_RULES; i++) {
        if (r->broken[i]) {
            number(out, rr_rule(i)->id, r->broken[i]);
        }
    }
    g_string_append(out, "}}}\n");
}
