/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The requester of `rpcrdma call` by itself, against our responder: how it ends, and Calls back. */
#include <glib.h>

#include "echo.h"
#include "port_memory.h"
#include "requester.h"
#include "tap.h"

enum { STEPS = 400, ROUND = 9, BACK_XID = 0x4711 };

/* A connection; the responder may be told not to work. */
static struct {
    struct rr_pair *pair;
    struct rr_requester *q;
    struct rr_responder *r;
} o;

static void start_within(uint64_t count, unsigned limit_ms)
{
    struct rr_requester_settings mine = rr_requester_defaults();
    struct rr_settings theirs = rr_settings_default();
    struct rr_port_side here, there;

    mine.count = count;
    mine.limit_ms = limit_ms;
    rr_requester_side(&mine, &here);
    rr_responder_side(&theirs, &there);
    o.pair = rr_pair_new(&here, &there);
    o.q = rr_requester_new(&mine, rr_pair_port(o.pair, 0));
    o.r = rr_responder_new(&theirs, rr_pair_port(o.pair, 1));
    T_TRUE(o.q && o.r);
}

static void start(uint64_t count)
{
    start_within(count, RR_CALL_LIMIT_MS);
}

static void finish(void)
{
    rr_requester_free(o.q);
    rr_responder_free(o.r);
    rr_pair_free(o.pair);
}

static void respond(void)
{
    while (rr_responder_step(o.r, 0) == RR_EVENT_RECEIVED) {
    }
}

/* So many messages to the requester, each after the responder has worked. */
static void work(unsigned steps)
{
    for (unsigned i = 0; i < steps && !rr_requester_done(o.q); i++) {
        T_TRUE(rr_requester_step(o.q, 0) != RR_EVENT_CLOSED);
        respond();
    }
}

/* Who stops makes no new Calls, and is done when those that are open have their Replies. */
static void stop__waits_for_replies(void)
{
    struct rr_requester_counts n;

    start(0);
    work(ROUND);
    T_TRUE(rr_requester_counts(o.q).open > 0);
    rr_requester_stop(o.q);
    T_FALSE(rr_requester_done(o.q));
    n = rr_requester_counts(o.q);
    work(STEPS);
    T_TRUE(rr_requester_done(o.q));
    T_EQ_INT(rr_requester_counts(o.q).calls, n.calls);
    T_EQ_INT(rr_requester_counts(o.q).answered, n.calls);
    T_EQ_INT(rr_requester_counts(o.q).open, 0);
    finish();
}

static void stop__before_the_first_call(void)
{
    start(0);
    rr_requester_stop(o.q);
    T_TRUE(rr_requester_done(o.q));
    T_EQ_INT(rr_requester_step(o.q, 0), RR_EVENT_NONE);
    T_EQ_INT(rr_requester_counts(o.q).calls, 0);
    finish();
}

/* Calls that nobody answers stay in the counts, and in the sum over connections. */
static void open_calls__are_counted(void)
{
    struct rr_requester_counts sum = { 0 };

    for (unsigned i = 1; i <= 2; i++) {
        struct rr_port *port;

        start(100);
        work(ROUND);
        port = rr_pair_port(o.pair, 1);
        port->ops->close(port);
        while (rr_requester_step(o.q, 0) != RR_EVENT_CLOSED) {
        }
        rr_requester_counts_add(&sum, rr_requester_counts(o.q));
        finish();
        T_TRUE(sum.open >= i);
        T_EQ_INT(sum.calls, sum.answered + sum.open);
    }
}

/* A Call without a Reply has a credit still: before the first Reply there is no other. */
static void expired_call__ends_the_connection(void)
{
    enum { LIMIT_MS = 1, WAIT_US = 3000 };
    struct rr_requester_counts n;

    start_within(100, LIMIT_MS);
    T_EQ_INT(rr_requester_step(o.q, 0), RR_EVENT_NONE);
    g_usleep(WAIT_US);
    T_SHOWS("RPC-05") {
        T_EQ_INT(rr_requester_step(o.q, 0), RR_EVENT_CLOSED);
        n = rr_requester_counts(o.q);
        T_EQ_INT(n.calls, 1);
    }
    T_EQ_INT(n.expired, 1);
    T_EQ_INT(n.open, 0);
    finish();
}

/* The responder's side calls WRITE: other octets, over all of the requester's memory. */
static void write_back(uint32_t offset, uint32_t count)
{
    static struct rr_stream s;
    static uint8_t other[RR_ECHO_MEMORY], octets[RR_SIZE_MIN * 4];
    struct rr_region region = { .octets = octets, .len = sizeof(octets) };
    struct rr_header h = { .xid = BACK_XID, .vers = RR_VERSION, .credit = 1, .proc = RR_MSG };
    struct rr_port *port = rr_pair_port(o.pair, 1);
    struct rr_post post = { .work = RR_WORK_SEND, .local = &region };
    size_t head = rr_header_emit(&h, octets, sizeof(octets));

    memset(other, 0x33, sizeof(other));
    rr_stream_call(&s, BACK_XID, RR_ECHO, RR_ECHO_VERSION, RR_ECHO_WRITE);
    rr_put_word(&s, offset);
    rr_put_counted(&s, sg_span_of(other, count));
    memcpy(octets + head, s.octets, s.len);
    post.len = head + s.len;
    T_TRUE(port->ops->post(port, &post));
}

/* What the other side writes here has nothing to do with what its own program has. */
static void writes_back__change_no_comparison(void)
{
    enum { COUNT = 2048 };
    struct rr_requester_counts n;

    start(4 * ROUND);
    for (uint32_t at = 0; at < RR_ECHO_MEMORY; at += COUNT) {
        write_back(at, COUNT);
        work(2);
    }
    work(STEPS);
    n = rr_requester_counts(o.q);
    T_EQ_INT(n.back, RR_ECHO_MEMORY / COUNT);
    T_EQ_INT(n.wrong, 0);
    T_EQ_INT(n.answered, 4 * ROUND);
    finish();
}

static bool keeps_memory(struct rr_port *port, struct rr_region *region)
{
    return false;
}

/* The other side could still read and change memory that cannot be taken back. */
static void memory_that_stays__ends_connection(void)
{
    enum rr_event_kind kind = RR_EVENT_NONE;
    struct rr_requester_counts n;
    struct rr_port_ops ops;

    start(ROUND);
    ops = *rr_pair_port(o.pair, 0)->ops;
    ops.dereg = keeps_memory;
    rr_pair_port(o.pair, 0)->ops = &ops;
    for (unsigned i = 0; i < STEPS && kind != RR_EVENT_CLOSED; i++) {
        respond();
        kind = rr_requester_step(o.q, 0);
    }
    n = rr_requester_counts(o.q);
    T_SHOWS("RPC-40") {
        T_EQ_INT(kind, RR_EVENT_CLOSED);
        /* A Reply has come, but its results are not used. */
        T_TRUE(n.open >= 1);
        T_EQ_INT(n.calls, n.answered + n.open);
    }
    finish();
}

static const struct t_case cases[] = {
    { "a requester that stops waits for its Replies", stop__waits_for_replies },
    { "or is done at once", stop__before_the_first_call },
    { "a Call without a Reply ends the connection", expired_call__ends_the_connection },
    { "Calls that stay open are counted", open_calls__are_counted },
    { "memory that cannot be taken back ends the connection", memory_that_stays__ends_connection },
    { "WRITEs of the other side change no comparison", writes_back__change_no_comparison },
};

T_MAIN(cases)
