/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Joins the layers: frame.h, flow.h, iwarp.h, track.h, report.h.  A connection that is not iWARP,
 * or not RPC-over-RDMA, is counted and no longer looked at.
 */
#include "decode.h"

#include <arpa/inet.h>

struct rr_decode {
    struct rr_report *report;
    uint16_t ports[RR_PORTS_MAX];
    unsigned port_count;
    struct rr_flows *flows;
    struct rr_totals totals;
    uint64_t number; /* of the connection that began last */
};

struct rr_conn {
    struct rr_decode *d;
    struct rr_who who;
    uint16_t port; /* of the responder */
    struct rr_iwarp *iwarp;
    struct rr_track *track; /* NULL: before startup, or not RPC-over-RDMA */
    bool ignored;
    bool closed[2];
};

static void transaction(void *opaque, const struct rr_transaction *t)
{
    struct rr_conn *c = opaque;

    rr_report_transaction(c->d->report, &c->who, t);
}

static void findings(void *opaque, const struct rr_findings *f)
{
    struct rr_conn *c = opaque;

    rr_report_findings(c->d->report, &c->who, f);
}

static const struct rr_track_ops track_ops = { transaction, findings };

/* ---- From iwarp.h ---- */

static bool is_ours(const struct rr_conn *c, const struct rr_startup *s)
{
    bool known = s->client.present || s->server.present || c->port == RR_PORT_NFS;

    for (unsigned i = 0; i < c->d->port_count; i++) {
        known |= c->port == c->d->ports[i];
    }
    return known;
}

static void startup(void *opaque, const struct sg_mpa_frame *request,
                    const struct sg_mpa_frame *reply)
{
    struct rr_conn *c = opaque;
    struct rr_startup s = {
        .request = *request,
        .reply = *reply,
        .client = rr_private_parse(request->pd),
        .server = rr_private_parse(reply->pd),
    };
    struct rr_findings f = { 0 };

    if (!is_ours(c, &s)) {
        c->ignored = true;
        c->d->totals.others++;
        return;
    }
    s.threshold[RR_OUT] = rr_threshold(&s.client, &s.server);
    s.threshold[RR_BACK] = rr_threshold(&s.server, &s.client);
    c->who.number = ++c->d->number;
    rr_report_connection(c->d->report, &c->who, &s);
    if (s.client.reserved) {
        rr_find(&f, PVT_02, "reserved bits 0x%02x from the client", s.client.reserved);
    }
    if (s.server.reserved) {
        rr_find(&f, PVT_02, "reserved bits 0x%02x from the server", s.server.reserved);
    }
    if (f.count) {
        findings(c, &f);
    }
    c->track = rr_track_new(&track_ops, c, &s);
    for (unsigned dir = 0; dir < 2; dir++) {
        if (c->closed[dir]) {
            rr_track_closed(c->track, dir);
        }
    }
}

static void segment(void *opaque, enum rr_dir dir, const struct sg_ddp_hdr *ddp, uint8_t opcode,
                    struct sg_span payload)
{
    struct rr_conn *c = opaque;

    if (c->track) {
        rr_track_segment(c->track, dir, ddp, opcode, payload);
    }
}

static void broken(void *opaque, enum rr_dir dir, const char *why)
{
    struct rr_conn *c = opaque;

    if (!c->track && !c->ignored) {
        c->ignored = true;
        c->d->totals.others++;
    } else if (c->track) {
        c->d->totals.incomplete++;
        rr_report_broken(c->d->report, &c->who, dir, why);
        rr_track_incomplete(c->track);
    }
}

static const struct rr_iwarp_ops iwarp_ops = { startup, segment, broken };

/* ---- From flow.h ---- */

static void name_end(const struct rr_tcp *tcp, const struct rr_end *end, char *out, size_t len)
{
    char address[INET6_ADDRSTRLEN];

    inet_ntop(tcp->ipv6 ? AF_INET6 : AF_INET, end->address, address, sizeof(address));
    snprintf(out, len, "%s port %u", address, end->port);
}

static void *open_conn(void *opaque, const struct rr_tcp *first)
{
    struct rr_conn *c = g_new0(struct rr_conn, 1);

    c->d = opaque;
    c->port = first->to.port;
    c->iwarp = rr_iwarp_new(&iwarp_ops, c);
    name_end(first, &first->from, c->who.client, sizeof(c->who.client));
    name_end(first, &first->to, c->who.server, sizeof(c->who.server));
    return c;
}

static void octets(void *conn, enum rr_dir dir, struct sg_span in)
{
    struct rr_conn *c = conn;

    if (!c->ignored) {
        rr_iwarp_input(c->iwarp, dir, in);
    }
}

static void gap(void *conn, enum rr_dir dir)
{
    broken(conn, dir, "octets are missing from the capture");
}

static void closed(void *conn, enum rr_dir dir)
{
    struct rr_conn *c = conn;

    c->closed[dir] = true;
    if (c->track) {
        rr_track_closed(c->track, dir);
    }
}

static void end(void *conn)
{
    struct rr_conn *c = conn;

    if (c->track) {
        rr_track_free(c->track);
    } else if (!c->ignored) {
        c->d->totals.others++;
    }
    rr_iwarp_free(c->iwarp);
    g_free(c);
}

static const struct rr_flow_ops flow_ops = { open_conn, octets, gap, closed, end };

struct rr_decode *rr_decode_new(struct rr_report *report, const uint16_t *ports,
                                unsigned port_count)
{
    struct rr_decode *d = g_new0(struct rr_decode, 1);

    sg_assert(port_count <= RR_PORTS_MAX);
    d->report = report;
    for (unsigned i = 0; i < port_count; i++) {
        d->ports[i] = ports[i];
    }
    d->port_count = port_count;
    d->flows = rr_flows_new(&flow_ops, d);
    return d;
}

void rr_decode_frame(struct rr_decode *d, enum rr_link link, struct sg_span frame, size_t wire)
{
    struct rr_tcp tcp;

    d->totals.frames++;
    if (rr_frame_parse(link, frame, wire, &tcp)) {
        rr_flows_input(d->flows, &tcp);
    }
}

void rr_decode_free(struct rr_decode *d)
{
    d->totals.unknown = rr_flows_unknown(d->flows);
    rr_flows_free(d->flows);
    rr_report_summary(d->report, &d->totals);
    g_free(d);
}
