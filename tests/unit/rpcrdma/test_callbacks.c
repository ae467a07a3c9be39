/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls to the client: those of the server behind a relay, and how a client announces them. */
#include "client_cases.h"
#include "loopback_client.h"
#include "tap.h"

enum { WAIT_MS = 100, QUIET_MS = 5, TICK_US = 20 };

static gint64 now_us;

static gint64 tick(void)
{
    return now_us += TICK_US;
}

enum { CALLBACKS = 6, FIRST_XID = 0x4000 };

/* The program echo, which also calls: all at once. */
struct caller {
    struct rr_upstream upstream;
    struct rr_upstream *echo;
    struct rr_stream call;
    unsigned called, answered;
    bool open[CALLBACKS];
};

static struct caller caller;

static bool caller_send(struct rr_upstream *upstream, struct sg_span message)
{
    uint32_t n = sg_get_be32(message.p) - FIRST_XID;

    if (sg_get_be32(message.p + 4) == RR_CALL) {
        return caller.echo->send(caller.echo, message);
    }
    T_TRUE(n < CALLBACKS && caller.open[n]);
    caller.open[n] = false;
    caller.answered++;
    return true;
}

static enum rr_upstream_kind caller_poll(struct rr_upstream *upstream, struct sg_span *message)
{
    if (caller.called == CALLBACKS) {
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

/* Each Call of the upstream reaches the client, as its credits allow, and each Reply comes back. */
static void callbacks__are_relayed(void)
{
    static const struct rr_source source = { .open = caller_open };
    struct rr_requester_settings settings = rr_requester_defaults();
    struct rr_client client = { .settings = rr_settings_default() };
    struct rr_client_options options;
    struct rr_verdict v;
    struct rr_client_loopback loopback;

    rr_client_loopback_init(&loopback, &settings);
    options = (struct rr_client_options){ .acceptor = &loopback.acceptor,
                                          .source = &source,
                                          .wait_ms = WAIT_MS,
                                          .quiet_ms = QUIET_MS,
                                          .now = tick };
    client.o = &options;
    rr_run_client_case(&client, rr_client_case_of("client-calls"), &v);
    T_EQ_INT(v.findings.count, 0);
    T_EQ_STR(v.trouble, "");
    T_EQ_INT(caller.answered, CALLBACKS);
    T_EQ_INT(rr_requester_counts(loopback.requester).back, CALLBACKS);
    T_EQ_INT(client.reverse_grant, RR_BACK_CREDITS);
    /* The first one alone, because nothing was granted yet. */
    T_SHOWS("RPC-01 RPC-05") {
        const char *first = strstr(v.log->str, "a Call of the server behind");

        T_NOT_NULL(first);
        T_TRUE(strstr(first, "the Reply to our Call") < strstr(first + 1, "a Call of the server"));
    }
    g_string_free(v.log, true);
    rr_client_close(&client);
    rr_client_loopback_clear(&loopback);
}

/* CREATE_SESSION names the program of the client's callbacks, behind two channels' attributes. */
static void callbacks__are_announced(void)
{
    static struct rr_stream s;
    struct rr_verdict v;
    struct rr_client client = { .verdict = &v };
    struct rr_pending p = { .stream = g_byte_array_new() };

    rr_verdict_init(&v);
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
    { "callbacks are announced by CREATE_SESSION", callbacks__are_announced },
};

T_MAIN(cases)
