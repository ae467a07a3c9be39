/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The traces of all machines of a run: what happened in one machine because of another must have
 * exactly one cause in that one's trace, found by connection and ordinal alone.
 *
 *   placement, Flush, Verify, Atomic   the peer's work request, whose range contains it
 *   response                           the peer's request, of that kind
 *   completion                         the machine's own work request, or the message that a
 *                                      receive took
 *   frame received                     one that another machine has sent
 */
#include "power.h"
#include "trace/reader.h"

struct match_conn {
    unsigned host;
    uint64_t qpn;
    uint8_t addresses[SG_OBSERVED_ADDRESSES];
    bool passive, gone;
    GArray *works, *effects; /* struct sg_trace_event, without payload */
};

struct match {
    struct pw_world *w;
    GArray *conns; /* struct match_conn, in the order of each trace */
    GHashTable *sent[PW_HOSTS], *received[PW_HOSTS]; /* counts of frames, by length and CRC */
};

/* The latest connection of a queue pair. */
static struct match_conn *latest(struct match *m, unsigned host, uint64_t qpn)
{
    for (unsigned i = m->conns->len; i-- > 0;) {
        struct match_conn *c = &g_array_index(m->conns, struct match_conn, i);

        if (c->host == host && c->qpn == qpn) {
            return c;
        }
    }
    return NULL;
}

static struct match_conn *peer_of(struct match *m, const struct match_conn *c)
{
    uint8_t mirrored[SG_OBSERVED_ADDRESSES];
    struct match_conn *found = NULL;

    memcpy(mirrored, c->addresses + 16, 16);
    memcpy(mirrored + 16, c->addresses, 16);
    memcpy(mirrored + 32, c->addresses + 34, 2);
    memcpy(mirrored + 34, c->addresses + 32, 2);
    for (unsigned i = 0; i < m->conns->len; i++) {
        struct match_conn *d = &g_array_index(m->conns, struct match_conn, i);

        if (memcmp(d->addresses, mirrored, sizeof(mirrored)) == 0) {
            PW_CHECK(m->w, !found && d->passive != c->passive, "two connections with one address");
            found = d;
        }
    }
    return found;
}

static void connected(struct match *m, unsigned host, const struct sg_trace_event *e)
{
    struct match_conn c = { .host = host, .qpn = e->qpn, .passive = e->arg };
    const struct match_conn *before = latest(m, host, e->qpn);

    PW_CHECK(m->w, !before || before->gone, "queue pair %" PRIu64 " is connected twice", e->qpn);
    memcpy(c.addresses, e->data, sizeof(c.addresses));
    c.works = g_array_new(FALSE, FALSE, sizeof(*e));
    c.effects = g_array_new(FALSE, FALSE, sizeof(*e));
    g_array_append_val(m->conns, c);
}

/* The work request with that ordinal; exactly one has it, or none. */
static const struct sg_trace_event *work_of(struct match *m, const struct match_conn *c,
                                            uint64_t ordinal)
{
    const struct sg_trace_event *found = NULL;

    for (unsigned i = 0; ordinal && i < c->works->len; i++) {
        const struct sg_trace_event *e = &g_array_index(c->works, struct sg_trace_event, i);

        if (e->ordinal == ordinal) {
            PW_CHECK(m->w, !found, "two work requests have the ordinal %" PRIu64, ordinal);
            found = e;
        }
    }
    return found;
}

static void work(struct match *m, struct match_conn *c, const struct sg_trace_event *e)
{
    const GArray *works = c->works;

    PW_CHECK(m->w, !c->gone, "queue pair %" PRIu64 " works without a connection", c->qpn);
    PW_CHECK(m->w,
             !works->len || !e->ordinal ||
                 e->ordinal > g_array_index(works, struct sg_trace_event, works->len - 1).ordinal,
             "ordinal %" PRIu64 " comes too late", e->ordinal);
    g_array_append_val(c->works, *e);
}

static void completed(struct match *m, struct match_conn *c, const struct sg_trace_event *e)
{
    const struct sg_trace_event *own;

    if (e->arg >= SG_WC_RECV) {
        g_array_append_val(c->effects, *e);
        return;
    }
    own = work_of(m, c, e->ordinal);
    PW_CHECK(m->w, own ? own->value == e->value : e->status && !e->ordinal,
             "queue pair %" PRIu64 ": a completion of number %" PRIu64 ", status %" PRIu64
             ", without work",
             c->qpn, e->ordinal, e->status);
    m->w->sums->matched += own != NULL;
}

static void count_frame(struct match *m, unsigned host, const struct sg_trace_event *e)
{
    GHashTable *t = e->arg ? m->sent[host] : m->received[host];
    gpointer key = GSIZE_TO_POINTER(e->len << 32 | e->value);

    g_hash_table_insert(t, key,
                        GUINT_TO_POINTER(GPOINTER_TO_UINT(g_hash_table_lookup(t, key)) + 1));
}

static void take(struct match *m, unsigned host, const struct sg_trace_event *e)
{
    struct match_conn *c = e->qpn ? latest(m, host, e->qpn) : NULL;

    switch (e->kind) {
    case SG_TRACE_CONNECTED:
        connected(m, host, e);
        break;
    case SG_TRACE_FRAME:
        count_frame(m, host, e);
        break;
    case SG_TRACE_DISCONNECTED:
    case SG_TRACE_WORK:
    case SG_TRACE_COMPLETED:
    case SG_TRACE_ANSWERED:
    case SG_TRACE_PLACE:
    case SG_TRACE_ATOMIC_WRITE:
    case SG_TRACE_ATOMIC:
    case SG_TRACE_FLUSH_BEGIN:
    case SG_TRACE_FLUSH_END:
    case SG_TRACE_VERIFY:
        PW_CHECK(m->w, c, "machine %u: %s of a queue pair without a connection", host,
                 sg_trace_row(e->kind)->name);
        if (!c) {
            break;
        }
        if (e->kind == SG_TRACE_DISCONNECTED) {
            PW_CHECK(m->w, !c->gone, "queue pair %" PRIu64 " is gone twice", c->qpn);
            c->gone = true;
        } else if (e->kind == SG_TRACE_WORK) {
            work(m, c, e);
        } else if (e->kind == SG_TRACE_COMPLETED) {
            completed(m, c, e);
        } else {
            g_array_append_val(c->effects, *e);
        }
        break;
    default:
        break;
    }
}

/* Can this be the effect of that work request of the peer? */
static bool caused(const struct sg_trace_event *e, const struct sg_trace_event *cause)
{
    uint64_t len = e->kind == SG_TRACE_ATOMIC   ? SG_PERSIST_ATOM
                   : e->kind == SG_TRACE_VERIFY ? e->value
                                                : e->len;

    switch (e->kind) {
    case SG_TRACE_PLACE:
        if (cause->arg != SG_WR_WRITE && cause->arg != SG_WR_WRITE_IMM) {
            return false;
        }
        break;
    case SG_TRACE_ATOMIC_WRITE:
        if (cause->arg != SG_WR_ATOMIC_WRITE) {
            return false;
        }
        break;
    case SG_TRACE_ATOMIC:
        if (cause->arg != SG_WR_FETCH_ADD && cause->arg != SG_WR_CMP_SWAP) {
            return false;
        }
        break;
    case SG_TRACE_FLUSH_BEGIN:
    case SG_TRACE_FLUSH_END:
        if (cause->arg != SG_WR_FLUSH) {
            return false;
        }
        if (cause->len < PW_REGION_LEN && sg_range_ok(e->at - cause->at, len, PW_AREA)) {
            return true; /* SG_FLUSH_REGION: the work request's length says nothing */
        }
        break;
    case SG_TRACE_VERIFY:
        if (cause->arg != SG_WR_VERIFY) {
            return false;
        }
        break;
    case SG_TRACE_COMPLETED:
        return cause->arg == SG_WR_SEND && cause->len == e->len;
    default: /* answered */
        return cause->arg == e->arg;
    }
    return e->at >= cause->at && sg_range_ok(e->at - cause->at, len, cause->len);
}

static void match_conn(struct match *m, const struct match_conn *c)
{
    const struct match_conn *peer = c->effects->len ? peer_of(m, c) : NULL;

    for (unsigned i = 0; i < c->effects->len; i++) {
        const struct sg_trace_event *e = &g_array_index(c->effects, struct sg_trace_event, i);
        const struct sg_trace_event *cause;

        if (e->kind == SG_TRACE_COMPLETED && !e->ordinal) {
            PW_CHECK(m->w, e->status, "a receive without a message succeeds");
            continue;
        }
        cause = peer ? work_of(m, peer, e->ordinal) : NULL;
        /* An RTR message is a Read that nobody has asked for. */
        if (!cause && e->kind == SG_TRACE_ANSWERED && e->arg == SG_WR_READ && e->ordinal == 1) {
            continue;
        }
        PW_CHECK(m->w, cause && caused(e, cause),
                 "machine %u: %s, number %" PRIu64 " of queue pair %" PRIu64 ", has %s cause",
                 c->host, sg_trace_row(e->kind)->name, e->ordinal, c->qpn,
                 cause ? "another" : "no");
        m->w->sums->matched++;
    }
}

/* Each frame that this machine received was sent by another one. */
static void match_frames(struct match *m, unsigned host)
{
    GHashTableIter it;
    gpointer key, count;

    g_hash_table_iter_init(&it, m->received[host]);
    while (g_hash_table_iter_next(&it, &key, &count)) {
        unsigned sent = 0;

        for (unsigned i = 0; i < m->w->hosts; i++) {
            sent += i == host ? 0 : GPOINTER_TO_UINT(g_hash_table_lookup(m->sent[i], key));
        }
        PW_CHECK(m->w, sent >= GPOINTER_TO_UINT(count), "machine %u receives what nobody sent",
                 host);
        m->w->sums->frames += GPOINTER_TO_UINT(count);
    }
}

static void no_page(void *opaque, unsigned extent, uint64_t number,
                    const uint8_t page[SG_TRACE_PAGE])
{
}

static void read_trace(struct match *m, unsigned host)
{
    const GByteArray *file = pw_trace_file(&m->w->host[host]);
    struct sg_trace_octets octets = { file->data, file->len };
    struct sg_trace_reader *r = sg_trace_reader_new(sg_trace_read_octets, &octets);
    const struct sg_trace_event *e;

    m->sent[host] = g_hash_table_new(NULL, NULL);
    m->received[host] = g_hash_table_new(NULL, NULL);
    if (sg_trace_open(r, no_page, NULL) == SG_TRACE_GOOD) {
        while ((e = sg_trace_next(r))) {
            take(m, host, e);
        }
    }
    PW_CHECK(m->w, sg_trace_status(r) == SG_TRACE_END, "machine %u: %s", host, sg_trace_message(r));
    sg_trace_reader_free(r);
}

void pw_match(struct pw_world *w)
{
    struct match m = { .w = w };
    unsigned i;

    if (!pw_trace_file(&w->host[0])) {
        return;
    }
    m.conns = g_array_new(FALSE, FALSE, sizeof(struct match_conn));
    for (i = 0; i < w->hosts; i++) {
        read_trace(&m, i);
    }
    for (i = 0; i < m.conns->len; i++) {
        match_conn(&m, &g_array_index(m.conns, struct match_conn, i));
    }
    for (i = 0; i < w->hosts; i++) {
        match_frames(&m, i);
    }
    for (i = 0; i < w->hosts; i++) {
        g_hash_table_destroy(m.sent[i]);
        g_hash_table_destroy(m.received[i]);
    }
    for (i = 0; i < m.conns->len; i++) {
        g_array_free(g_array_index(m.conns, struct match_conn, i).works, TRUE);
        g_array_free(g_array_index(m.conns, struct match_conn, i).effects, TRUE);
    }
    g_array_free(m.conns, TRUE);
}
