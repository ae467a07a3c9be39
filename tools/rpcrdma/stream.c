/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stream.h"

#include "rpc_xdr.h"

enum {
    RPC_VERSION = 2,
    AUTH_SYS_FLAVOR = 1,
    REPLY_ACCEPTED = 0,
    AUTH_BODY_MAX = 400,
    HEADER_MAX = 24 + 2 * (8 + AUTH_BODY_MAX), /* six words, credential and verifier */
};

/* An XDR stream for what comes next, of at most so many octets: ASan looks at all of its room. */
static void begin(struct rr_stream *s, XDR *x, size_t most)
{
    size_t room = SG_MIN(most, sizeof(s->octets) - s->len);

    xdrmem_create(x, (char *)s->octets + s->len, (u_int)room, XDR_ENCODE);
}

static void end(struct rr_stream *s, XDR *x, bool done)
{
    s->full |= !done;
    s->len += xdr_getpos(x);
    xdr_destroy(x);
}

static void put_call(struct rr_stream *s, rr_xdr_call *call)
{
    XDR x;

    s->len = 0;
    s->full = false;
    s->items = 0;
    call->type = RR_CALL;
    call->rpcvers = RPC_VERSION;
    begin(s, &x, HEADER_MAX);
    end(s, &x, xdr_rr_xdr_call(&x, call));
}

void rr_stream_call(struct rr_stream *s, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc)
{
    rr_xdr_call call = { .xid = xid, .prog = prog, .vers = vers, .proc = proc };

    put_call(s, &call);
}

void rr_stream_call_sys(struct rr_stream *s, uint32_t xid, uint32_t prog, uint32_t vers,
                        uint32_t proc, size_t name)
{
    rr_xdr_call call = { .xid = xid, .prog = prog, .vers = vers, .proc = proc };
    char body[AUTH_BODY_MAX] = { 0 };
    uint8_t *machine = (uint8_t *)body + 8;

    /* Stamp, machine name, user, group, no further groups. */
    sg_assert(8 + sg_align_up(name, 4) + 12 <= sizeof(body));
    sg_put_be32((uint8_t *)body + 4, (uint32_t)name);
    memset(machine, 'r', name);
    call.cred.flavor = AUTH_SYS_FLAVOR;
    call.cred.body.body_val = body;
    call.cred.body.body_len = (u_int)(8 + sg_align_up(name, 4) + 12);
    put_call(s, &call);
}

void rr_stream_reply(struct rr_stream *s, uint32_t xid, uint32_t accept_stat)
{
    rr_xdr_reply reply = { .xid = xid, .type = RR_REPLY };
    XDR x;

    s->len = 0;
    s->full = false;
    s->items = 0;
    reply.body.stat = REPLY_ACCEPTED;
    reply.body.rr_xdr_reply_body_u.accepted.stat = accept_stat;
    begin(s, &x, HEADER_MAX);
    end(s, &x, xdr_rr_xdr_reply(&x, &reply));
}

void rr_put_word(struct rr_stream *s, uint32_t word)
{
    u_int value = word;
    XDR x;

    begin(s, &x, 4);
    end(s, &x, xdr_u_int(&x, &value));
}

void rr_put_hyper(struct rr_stream *s, uint64_t hyper)
{
    rr_put_word(s, (uint32_t)(hyper >> 32));
    rr_put_word(s, (uint32_t)hyper);
}

void rr_put_fixed(struct rr_stream *s, struct sg_span octets)
{
    XDR x;

    if (!octets.len) {
        return;
    }
    begin(s, &x, sg_align_up(octets.len, 4));
    /* libtirpc only reads what it encodes. */
    end(s, &x, xdr_opaque(&x, (char *)octets.p, (u_int)octets.len));
}

void rr_put_counted(struct rr_stream *s, struct sg_span octets)
{
    rr_put_word(s, (uint32_t)octets.len);
    rr_put_fixed(s, octets);
}

void rr_put_eligible(struct rr_stream *s, struct sg_span octets)
{
    sg_assert(s->items < RR_STREAM_ITEMS);
    rr_put_word(s, (uint32_t)octets.len);
    s->item[s->items++] = (struct rr_reducible){ (uint32_t)s->len, (uint32_t)octets.len };
    rr_put_fixed(s, octets);
}

uint32_t rr_get_word(struct rr_reader *r)
{
    const uint8_t *word = sg_span_get(r->in, r->at, 4);

    if (!word) {
        r->fine = false;
        return 0;
    }
    r->at += 4;
    return sg_get_be32(word);
}

void rr_skip(struct rr_reader *r, size_t octets)
{
    size_t whole = sg_align_up(octets, 4);

    r->fine &= octets <= r->in.len && sg_range_ok(r->at, whole, r->in.len);
    r->at += r->fine ? whole : 0;
}
