/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What no sound server sends.  Most Calls that serve here have no chunks: a client that ends such a
 * Call, which it should not, has then nothing to lose, and the sound Reply that follows answers
 * nothing.
 *
 * From outside one sees that the client does not answer, that the connection stays, and that Calls
 * go on.  Whether the Call's caller was told of a failure only the client's side can say.
 */
#include "client_cases.h"

enum bad {
    BAD_SHORT, /* fewer octets than a header has */
    BAD_EMPTY, /* none at all */
    BAD_CUT,   /* a list past the end */
    BAD_COUNT, /* a Write chunk of 2^32 - 1 segments */
    BAD_FLAG,  /* an optional-data flag of 2 */
    BAD_VERSION,
    BAD_PROC,      /* procedure 5 */
    BAD_READ_LIST, /* a Reply with a Read list */
    BAD_NOMSG,     /* RDMA_NOMSG without a Reply chunk */
    BAD_CHUNKS,    /* a Write chunk that nobody offered */
    BAD_MSGP,
    BAD_DONE,
    BAD_BODY,      /* RDMA_MSG without an RPC message */
    BAD_ERROR,     /* RDMA_ERROR with an unknown error */
    BAD_ERROR_CUT, /* ERR_VERS without its versions */
    BAD_XID,       /* a sound Reply to nobody */
    BAD_XID_ERROR, /* RDMA_ERROR for nobody */
};

enum { ROOM = 512, WORDS_MAX = 9 };

/* A message of words, which the case puts together itself. */
struct bad_octets {
    uint8_t octets[ROOM];
    size_t len;
};

static void put(struct bad_octets *w, uint32_t word)
{
    sg_assert(w->len + 4 <= ROOM);
    sg_put_be32(w->octets + w->len, word);
    w->len += 4;
}

struct bad_form {
    const char *what;
    uint32_t version, proc;
    unsigned words; /* behind the four fixed fields; those that are not named are 0 */
    uint32_t word[WORDS_MAX];
    bool body;  /* the RPC Reply follows */
    size_t cut; /* octets in all; 0: as many as there are */
};

static const struct bad_form forms[] = {
    [BAD_SHORT] = { "24 octets", 1, RR_MSG, 2, .cut = 24 },
    [BAD_EMPTY] = { "3 octets", 1, RR_MSG, 0, .cut = 3 },
    [BAD_CUT] = { "a Read list past the end", 1, RR_MSG, 4, { 1, 0, 7, 8 } },
    [BAD_COUNT] = { "a Write chunk of 2^32 - 1 segments",
                    1,
                    RR_MSG,
                    7,
                    { 0, 1, UINT32_MAX, 7, 8, 0, 9 },
                    .body = true },
    [BAD_FLAG] = { "a flag of 2", 1, RR_MSG, 3, { 0, 2, 0 }, .body = true },
    [BAD_VERSION] = { "version 2", 2, RR_MSG, 3, .body = true },
    [BAD_PROC] = { "procedure 5", 1, 5, 3, .body = true },
    [BAD_READ_LIST] = { "a Reply with a Read list",
                        1,
                        RR_MSG,
                        9,
                        { 1, 0, 0x7777, 16, 0, 0x1000 },
                        .body = true },
    [BAD_NOMSG] = { "RDMA_NOMSG without a chunk", 1, RR_NOMSG, 3 },
    [BAD_CHUNKS] = { "a Write chunk that nobody offered",
                     1,
                     RR_MSG,
                     8,
                     { 0, 1, 1, 0x7777, 16, 0, 0x1000 },
                     .body = true },
    [BAD_MSGP] = { "RDMA_MSGP", 1, RR_MSGP, 5, { 16, 4096 }, .body = true },
    [BAD_DONE] = { "RDMA_DONE", 1, RR_DONE, 3 },
    [BAD_BODY] = { "RDMA_MSG without an RPC message", 1, RR_MSG, 3 },
    [BAD_ERROR] = { "RDMA_ERROR 7", 1, RR_ERROR, 3, { 7 } },
    [BAD_ERROR_CUT] = { "ERR_VERS without versions", 1, RR_ERROR, 1, { 1 } },
    [BAD_XID] = { "a Reply that nobody waits for", 1, RR_MSG, 3, .body = true },
    [BAD_XID_ERROR] = { "RDMA_ERROR that nobody waits for", 1, RR_ERROR, 1, { 2 } },
};

static struct bad_octets make(const struct rr_client *c, const struct rr_pending *p, unsigned bad)
{
    const struct bad_form *f = &forms[bad];
    struct bad_octets w = { .len = 0 };
    bool stray = bad == BAD_XID || bad == BAD_XID_ERROR;
    /* Far from all that the client has open. */
    uint32_t xid = stray ? p->call.xid ^ 0x55550000 : p->call.xid;
    size_t body = SG_MIN(p->reply->len, 64u);

    put(&w, xid);
    put(&w, f->version);
    put(&w, c->credits);
    put(&w, f->proc);
    for (unsigned i = 0; i < f->words; i++) {
        put(&w, f->word[i]);
    }
    if (f->body) {
        memcpy(w.octets + w.len, p->reply->data, body);
        sg_put_be32(w.octets + w.len, xid);
        w.len += body;
    }
    w.len = f->cut ? f->cut : w.len;
    return w;
}

/* The message, silence, and then the sound Reply. */
static void dropped(struct rr_client *c)
{
    struct rr_pending *p = rr_client_victim(c, rr_is_plain, "Call without chunks");
    struct bad_octets w;

    if (!p) {
        return;
    }
    w = make(c, p, c->arg);
    if (!rr_client_send(c, sg_span_of(w.octets, w.len), forms[c->arg].what)) {
        rr_client_lost(c);
    } else if (rr_client_quiet(c)) {
        rr_client_answer_and_go_on(c, p);
    }
}

/* What is changed in the first segment of a returned Write chunk. */
enum altered { ALTERED_HANDLE, ALTERED_OFFSET, ALTERED_LENGTH };

static const char *alter(struct rr_segment *back, const struct rr_segment *offered, unsigned what)
{
    switch (what) {
    case ALTERED_HANDLE:
        back->handle ^= 1;
        return "a Write chunk with another handle";
    case ALTERED_OFFSET:
        back->offset += 4;
        return "a Write chunk with another offset";
    default:
        back->length = offered->length + 4;
        return "a Write chunk that is longer than the offered one";
    }
}

/*
 * The result is in the Write chunk, but the Reply does not return the chunk that was offered.  The
 * sound Reply follows; nothing is written again, because a client that has taken the first Reply
 * has its memory back.
 */
static void altered(struct rr_client *c)
{
    struct rr_pending *p = rr_client_victim(c, rr_has_result, "Call with a Write chunk");
    g_autoptr(GByteArray) sound = g_byte_array_new();
    struct rr_header *h = &c->message;
    const char *what;
    size_t len;

    if (!p) {
        return;
    }
    if (!rr_client_build(c, p, &len)) {
        rr_client_lost(c);
        return;
    }
    g_byte_array_append(sound, c->codec->send.octets, (guint)len);
    sg_assert(rr_header_parse(sg_span_of(sound->data, len), h) == RR_OK && h->chunks);
    what = alter(&h->segment[h->chunk[0].first], &p->call.segment[p->call.chunk[0].first], c->arg);
    if (!rr_client_send_message(c, h, sg_span_of(sound->data + h->len, len - h->len), what)) {
        rr_client_lost(c);
    } else if (rr_client_quiet(c)) {
        if (rr_client_send(c, sg_span_of(sound->data, len), "the sound Reply")) {
            rr_client_granted(c, c->credits);
            rr_client_forget(c, p);
            rr_client_goes_on(c, false);
        } else {
            rr_client_lost(c);
        }
    }
}

/* RDMA_ERROR: the Call has failed, and the client does not answer. */
static void failed(struct rr_client *c)
{
    struct rr_pending *p = rr_client_victim(c, rr_is_plain, "Call without chunks");
    struct rr_header *h = &c->message;

    if (!p) {
        return;
    }
    memset(h, 0, sizeof(*h));
    h->xid = p->call.xid;
    h->vers = RR_VERSION;
    h->credit = c->credits;
    h->proc = RR_ERROR;
    h->err = c->arg;
    h->low = h->high = c->arg == RR_ERR_VERS ? 2 : 0;
    if (!rr_client_send_message(c, h, SG_SPAN_NONE,
                                c->arg == RR_ERR_VERS ? "ERR_VERS (2 to 2)" : "ERR_CHUNK")) {
        rr_client_lost(c);
        return;
    }
    rr_client_granted(c, h->credit);
    rr_client_forget(c, p);
    rr_client_goes_on(c, true);
}

#define DROPPED(name, rule_id, kind, what) { name, what, rule_id, dropped, .arg = kind }

static const struct rr_client_case cases[] = {
    DROPPED("client-short", RPC_35, BAD_SHORT, "fewer than 28 octets get no answer"),
    DROPPED("client-shortest", RPC_35, BAD_EMPTY, "fewer than 4 octets get no answer"),
    DROPPED("client-cut-list", RPC_37, BAD_CUT, "a list past the end is dropped"),
    DROPPED("client-huge-count", RPC_37, BAD_COUNT, "a count that cannot be true is dropped"),
    DROPPED("client-flag", RPC_37, BAD_FLAG, "an optional-data flag above 1 is dropped"),
    DROPPED("client-version", RPC_37, BAD_VERSION, "a Reply of another version is dropped"),
    DROPPED("client-procedure", RPC_37, BAD_PROC, "an unknown procedure is dropped"),
    DROPPED("client-read-list", RPC_37, BAD_READ_LIST, "a Reply with a Read list is dropped"),
    DROPPED("client-nomsg", RPC_37, BAD_NOMSG, "RDMA_NOMSG without a message is dropped"),
    DROPPED("client-other-chunk", RPC_37, BAD_CHUNKS, "a chunk that nobody offered is dropped"),
    { "client-other-handle", "an offered chunk with another handle is dropped", RPC_37, altered,
      .arg = ALTERED_HANDLE },
    { "client-other-offset", "an offered chunk with another offset is dropped", RPC_37, altered,
      .arg = ALTERED_OFFSET },
    { "client-longer-chunk", "an offered chunk that got longer is dropped", RPC_37, altered,
      .arg = ALTERED_LENGTH },
    DROPPED("client-no-message", RPC_37, BAD_BODY, "RDMA_MSG without an RPC message is dropped"),
    DROPPED("client-msgp", RPC_41, BAD_MSGP, "RDMA_MSGP is dropped"),
    DROPPED("client-done", RPC_42, BAD_DONE, "RDMA_DONE is dropped"),
    DROPPED("client-unknown-xid", RPC_37, BAD_XID, "a Reply that nobody waits for is dropped"),
    DROPPED("client-stray-error", RPC_25, BAD_XID_ERROR,
            "RDMA_ERROR that nobody waits for is dropped"),
    DROPPED("client-unknown-error", RPC_37, BAD_ERROR, "an unknown RDMA_ERROR is dropped"),
    DROPPED("client-cut-error", RPC_37, BAD_ERROR_CUT, "ERR_VERS without versions is dropped"),
    { "client-err-chunk", "ERR_CHUNK ends its Call, without an answer", RPC_25, failed,
      .arg = RR_ERR_CHUNK },
    { "client-err-vers", "ERR_VERS ends its Call, without an answer", RPC_25, failed,
      .arg = RR_ERR_VERS },
};

const struct rr_client_cases rr_client_cases_bad = { cases, SG_ARRAY_SIZE(cases) };
