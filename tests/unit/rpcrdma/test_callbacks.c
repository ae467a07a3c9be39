/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls to the client: those of the server behind a relay, and how a client announces them. */
#include "client_cases.h"
#include "liar.h"
#include "loopback_client.h"
#include "tap.h"

enum { WAIT_MS = 100, QUIET_MS = 5, TICK_US = 20 };

static gint64 now_us;

static gint64 tick(void)
{
    return now_us += TICK_US;
}

enum { CALLBACKS = 6, CALLBACKS_MAX = 32, FIRST_XID = 0x4000 };

/* The program echo, which also calls, as many as may wait at once. */
static struct caller {
    struct rr_upstream upstream;
    struct rr_upstream *echo;
    struct rr_stream call;
    unsigned called, answered;
    bool open[CALLBACKS_MAX];
} caller;

static unsigned callbacks;      /* that it makes */
static struct rr_client client; /* which it waits for ... */
static bool in_case;            /* ... until a case calls, too */

static unsigned most_open; /* Calls to the client */

static bool case_calls(void)
{
    unsigned open = 0;
    bool calls = false;

    for (unsigned i = 0; i < client.reverses; i++) {
        open += !client.reverse[i].answered;
        calls |= !client.reverse[i].relayed && !client.reverse[i].answered;
    }
    most_open = SG_MAX(most_open, open);
    return calls;
}

static bool caller_send(struct rr_upstream *upstream, struct sg_span message)
{
    uint32_t n = sg_get_be32(message.p) - FIRST_XID;

    if (sg_get_be32(message.p + 4) == RR_CALL) {
        return caller.echo->send(caller.echo, message);
    }
    T_TRUE(n < CALLBACKS_MAX && caller.open[n]);
    caller.open[n] = false;
    caller.answered++;
    return true;
}

static enum rr_upstream_kind caller_poll(struct rr_upstream *upstream, struct sg_span *message)
{
    bool calls = case_calls();

    if (caller.called == callbacks || (in_case && !calls) ||
        g_queue_get_length(&client.waiting) == RR_REVERSE_MAX) {
        return caller.echo->poll(caller.echo, message);
    }
    rr_stream_call(&caller.call, FIRST_XID + caller.called, RR_PROG_ECHO, 1, 0);
    caller.open[caller.called++] = true;
    *message = sg_span_of(caller.call.octets, caller.call.len);
    return RR_UPSTREAM_MESSAGE;
}

static void caller_close(struct rr_upstream *upstream)
{
    caller.echo->close(caller.echo);
}

static struct rr_upstream *caller_open(const struct rr_source *source, char *why)
{
    memset(&caller, 0, sizeof(caller));
    caller.upstream = (struct rr_upstream){ caller_send, caller_poll, caller_close, "" };
    caller.echo = rr_source_echo.open(&rr_source_echo, why);
    return &caller.upstream;
}

static struct rr_client_loopback loopback;
static struct liar liar;

static struct rr_port *wrap(struct rr_port *port, void *arg)
{
    liar_wrap(&liar, arg, port);
    return &liar.port;
}

/* A case while the server behind makes that many Calls; close_client() ends it. */
static void run_case(const char *id, unsigned calls, const struct lie *lie, struct rr_verdict *v)
{
    static const struct rr_source source = { .open = caller_open };
    static struct rr_client_options options;
    struct rr_requester_settings settings = rr_requester_defaults();

    callbacks = calls;
    most_open = 0;
    rr_client_loopback_init(&loopback, &settings);
    if (lie) {
        loopback.wrap = wrap;
        loopback.wrap_arg = (void *)lie;
    }
    options = (struct rr_client_options){ .acceptor = &loopback.acceptor,
                                          .source = &source,
                                          .wait_ms = WAIT_MS,
                                          .quiet_ms = QUIET_MS,
                                          .now = tick };
    memset(&client, 0, sizeof(client));
    client.o = &options;
    rr_run_client_case(&client, rr_client_case_of(id), v);
}

static void expect_clean(const struct rr_verdict *v)
{
    T_EQ_STR(v->findings.count ? v->findings.found[0].text : "", "");
    T_EQ_STR(v->trouble, "");
}

static void close_client(struct rr_verdict *v)
{
    g_string_free(v->log, true);
    rr_client_close(&client);
    rr_client_loopback_clear(&loopback);
}

/* Each Call of the upstream reaches the client, as its credits allow, and each Reply comes back. */
static void callbacks__are_relayed(void)
{
    struct rr_verdict v;

    in_case = false;
    run_case("client-calls", CALLBACKS, NULL, &v);
    expect_clean(&v);
    T_EQ_INT(caller.answered, CALLBACKS);
    T_EQ_INT(rr_requester_counts(loopback.requester).back, CALLBACKS);
    T_EQ_INT(client.reverse_grant, RR_BACK_CREDITS);
    /* The first one alone, because nothing was granted yet. */
    T_SHOWS("RPC-01 RPC-05") {
        const char *first = strstr(v.log->str, "a Call of the server behind");

        T_NOT_NULL(first);
        T_TRUE(strstr(first, "the Reply to our Call") < strstr(first + 1, "a Call of the server"));
    }
    close_client(&v);
}

/*
 * Calls of the upstream when a case makes its own, before it or meanwhile: all are answered, and
 * together they are never more than the client grants.
 */
static void callbacks__in_a_case(void)
{
    static const char *const ids[] = { "client-reverse-null", "client-reverse-many" };
    struct rr_verdict v;

    for (unsigned i = 0; i < 4 * CALLBACKS; i++) {
        unsigned calls = 1 + i / 4;

        in_case = i & 1;
        T_CONTEXT("%s, %u Calls %s", ids[i / 2 % 2], calls, in_case ? "meanwhile" : "before");
        run_case(ids[i / 2 % 2], calls, NULL, &v);
        expect_clean(&v);
        T_EQ_INT(caller.called, calls);
        T_EQ_INT(caller.answered, calls);
        T_TRUE(most_open <= RR_BACK_CREDITS);
        close_client(&v);
    }
}

/*
 * A client that answers no Call before it has got a Reply, as Linux's: one case is about that, and
 * the others do not fail for it, though each is the first on its connection here.
 */
static void cases__wait_for_a_reply(void)
{
    static const char *const ids[] = { "client-reverse-null", "client-reverse-call",
                                       "client-reverse-proc", "client-reverse-xid",
                                       "client-reverse-many" };
    static const struct lie lie = { .name = "liar_replies_first", .receives = liar_replies_first };
    struct rr_verdict v;

    in_case = false;
    for (size_t i = 0; i < SG_ARRAY_SIZE(ids); i++) {
        T_CONTEXT("%s", ids[i]);
        liar_replies = 0;
        run_case(ids[i], 0, &lie, &v);
        expect_clean(&v);
        close_client(&v);
    }
    liar_replies = 0;
    run_case("client-reverse-first", 0, &lie, &v);
    T_TRUE(rr_found(&v.findings, RPC_22));
    close_client(&v);
}

static void grants_many(struct liar_message *m)
{
    if (m->rest_len >= 8 && sg_get_be32(m->rest + 4) == RR_REPLY) {
        m->h.credit = 1000;
    }
}

/* A client may grant more than are relayed at once: the others wait. */
static void callbacks__have_a_bound(void)
{
    static const struct lie lie = { .name = "grants_many", .sends = grants_many };
    struct rr_verdict v;

    in_case = false;
    run_case("client-calls", CALLBACKS_MAX, &lie, &v);
    expect_clean(&v);
    T_EQ_INT(caller.answered, CALLBACKS_MAX);
    T_EQ_INT(client.reverse_grant, RR_REVERSE_MAX);
    close_client(&v);
}

static void answers_with_error(struct liar_message *m)
{
    if (m->rest_len >= 8 && sg_get_be32(m->rest + 4) == RR_REPLY) {
        m->h.proc = RR_ERROR;
        m->h.err = RR_ERR_CHUNK;
        m->rest_len = 0;
    }
}

/* RDMA_ERROR is an answer, though a wrong one: nobody waits for another one. */
static void an_error__ends_its_call(void)
{
    static const struct lie lie = { .name = "answers_with_error", .sends = answers_with_error };
    struct rr_verdict v;

    in_case = false;
    run_case("client-reverse-proc", 0, &lie, &v);
    T_EQ_INT(v.findings.count, 1);
    T_NOT_NULL(strstr(v.findings.found[0].text, "was answered with RDMA_ERROR"));
    close_client(&v);
    run_case("client-calls", CALLBACKS, &lie, &v);
    T_EQ_INT(v.findings.count, CALLBACKS);
    close_client(&v);
}

/* CREATE_SESSION names the program of the client's callbacks, behind two channels' attributes. */
static void callbacks__are_announced(void)
{
    static struct rr_stream s;
    struct rr_verdict v;
    struct rr_pending p = { .stream = g_byte_array_new() };

    rr_verdict_init(&v);
    client.verdict = &v;
    for (uint32_t op = 43; op >= 42; op--) {
        rr_stream_call_sys(&s, 1, RR_PROG_NFS, 4, 1, 4);
        rr_put_counted(&s, sg_span_of("tag", 3));
        rr_put_word(&s, 1); /* minor version */
        rr_put_word(&s, 1); /* operations */
        rr_put_word(&s, op);
        for (unsigned i = 0; i < 4 + 6; i++) {
            rr_put_word(&s, i); /* client id, sequence, flags; the first channel */
        }
        rr_put_word(&s, 1); /* for RDMA */
        rr_put_word(&s, 7);
        for (unsigned i = 0; i < 6; i++) {
            rr_put_word(&s, i); /* the second */
        }
        rr_put_word(&s, 0);
        rr_put_word(&s, 0x40001234);
        g_byte_array_set_size(p.stream, 0);
        g_byte_array_append(p.stream, s.octets, (guint)s.len);
        T_TRUE(rr_rpc_parse(sg_span_of(s.octets, s.len), &p.rpc));
        client.callback = 0;
        rr_client_learn(&client, &p);
        T_EQ_INT(client.callback, op == 43 ? 0x40001234 : 0);
        p.stream->len -= 4; /* the program is missing */
        client.callback = 0;
        rr_client_learn(&client, &p);
        T_EQ_INT(client.callback, 0);
    }
    g_byte_array_free(p.stream, true);
    g_string_free(v.log, true);
}

static const struct t_case cases[] = {
    { "callbacks are relayed, as credits allow", callbacks__are_relayed },
    { "callbacks stay open when a case is done", callbacks__in_a_case },
    { "cases wait for a Reply on the connection", cases__wait_for_a_reply },
    { "callbacks have a bound, whatever is granted", callbacks__have_a_bound },
    { "RDMA_ERROR ends a Call to the client", an_error__ends_its_call },
    { "callbacks are announced by CREATE_SESSION", callbacks__are_announced },
};

T_MAIN(cases)
