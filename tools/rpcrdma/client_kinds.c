/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which Call suits a case.  Its Reply is there already. */
#include "client_cases.h"

enum { VERIFIER_MAX = 400, AUTH_SYS_FLAVOR = 1, FLAVOR_AT = 24 };

/* Operations that change no state of the client, and after which it asks again. */
static const char *const nfs_harmless[] = { "SEQUENCE",   "PUTFH",  "PUTROOTFH", "GETATTR",
                                            "ACCESS",     "READ",   "READLINK",  "LOOKUP",
                                            "GETFH",      "SAVEFH", "RESTOREFH", "READDIR",
                                            "WRITE",      "COMMIT", "FSSTAT",    "FSINFO",
                                            "READDIRPLUS" };

bool rr_is_harmless(const struct rr_client *c, const struct rr_pending *p)
{
    g_auto(GStrv) words = NULL;
    unsigned known = 0;

    if (p->rpc.prog == RR_PROG_ECHO) {
        return true;
    }
    if (p->rpc.prog != RR_PROG_NFS || !p->rpc.proc) {
        return false;
    }
    words = g_strsplit(p->info.name, " ", -1);
    for (char **word = words + 1; *words && *word; word++) {
        bool harmless = false;

        for (size_t i = 0; i < SG_ARRAY_SIZE(nfs_harmless); i++) {
            harmless |= strcmp(*word, nfs_harmless[i]) == 0;
        }
        if (!harmless) {
            return false;
        }
        /* A SEQUENCE alone keeps a lease alive. */
        known += strcmp(*word, "SEQUENCE") != 0;
    }
    return known;
}

bool rr_is_plain(const struct rr_client *c, const struct rr_pending *p)
{
    return p->call.proc == RR_MSG && !p->call.reads && !p->call.segments && rr_is_harmless(c, p);
}

/* Octets of the first eligible result; 0: there is none. */
static uint32_t result_of(const struct rr_client *c, const struct rr_pending *p)
{
    const struct rr_stream *s = c->codec->stream;

    rr_client_load(c, p);
    return s->items ? s->item[0].len : 0;
}

/* Octets of an inline Reply with this stream. */
static size_t inline_octets(const struct rr_pending *p, size_t stream)
{
    const struct rr_header *h = &p->call;

    return stream + RR_HEADER_MIN + 8 * (size_t)h->chunks + (h->has_reply ? 4 : 0) +
           16 * (size_t)h->segments;
}

/* The result copies the whole Reply, and comes last. */
bool rr_has_result(const struct rr_client *c, const struct rr_pending *p)
{
    uint32_t len;

    if (p->call.chunks != 1 || !rr_is_harmless(c, p)) {
        return false;
    }
    len = result_of(c, p);
    return len && len <= rr_chunk_octets(&p->call, &p->call.chunk[0]);
}

bool rr_has_unused_segment(const struct rr_client *c, const struct rr_pending *p)
{
    const struct rr_chunk *chunk = &p->call.chunk[0];

    return p->call.chunks && chunk->count > 1 && rr_has_result(c, p) &&
           result_of(c, p) <= rr_chunk_octets(&p->call, chunk) -
                                  p->call.segment[chunk->first + chunk->count - 1].length;
}

bool rr_has_small_result(const struct rr_client *c, const struct rr_pending *p)
{
    return inline_octets(p, p->reply->len) <= c->codec->reply_threshold && rr_has_result(c, p);
}

/* With a Reply chunk, in which the whole Reply would fit. */
static bool has_reply_chunk(const struct rr_pending *p)
{
    return p->call.has_reply && !p->call.chunks &&
           p->reply->len <= rr_chunk_octets(&p->call, &p->call.reply);
}

bool rr_has_spare_reply_chunk(const struct rr_client *c, const struct rr_pending *p)
{
    return has_reply_chunk(p) && inline_octets(p, p->reply->len) <= c->codec->reply_threshold &&
           rr_is_harmless(c, p);
}

bool rr_needs_reply_chunk(const struct rr_client *c, const struct rr_pending *p)
{
    return has_reply_chunk(p) && inline_octets(p, p->reply->len) > c->codec->reply_threshold &&
           rr_is_harmless(c, p);
}

/* Clients accept verifiers with octets for AUTH_SYS; echo has none, and its client takes any. */
bool rr_can_fill(const struct rr_client *c, const struct rr_pending *p)
{
    size_t octets = inline_octets(p, p->reply->len);
    bool sys = p->rpc.prog == RR_PROG_ECHO ||
               (p->stream->len >= FLAVOR_AT + 4 &&
                sg_get_be32(p->stream->data + FLAVOR_AT) == AUTH_SYS_FLAVOR);

    return sys && octets < c->codec->reply_threshold &&
           c->codec->reply_threshold - octets <= VERIFIER_MAX && rr_is_plain(c, p);
}
