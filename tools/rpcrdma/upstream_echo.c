/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of echo.h as an upstream: each Reply waits in a queue until it is fetched. */
#include <glib.h>

#include "echo.h"
#include "upstream.h"

enum { REPLIES_MAX = 1024 };

struct echo {
    struct rr_upstream upstream;
    struct rr_echo_memory memory;
    struct rr_stream stream;
    GQueue replies;      /* of GBytes */
    GBytes *handed_over; /* the one that poll() returned last */
};

static bool echo_send(struct rr_upstream *upstream, struct sg_span message)
{
    struct echo *e = (struct echo *)upstream;
    struct rr_rpc rpc;

    if (!rr_rpc_parse(message, &rpc) || rpc.type != RR_CALL) {
        return true; /* an answer to a Call that this program never makes */
    }
    if (g_queue_get_length(&e->replies) == REPLIES_MAX) {
        g_strlcpy(upstream->why, "too many Replies wait", sizeof(upstream->why));
        return false;
    }
    rr_echo_answer(&e->memory, &rpc, message, &e->stream);
    g_queue_push_tail(&e->replies, g_bytes_new(e->stream.octets, e->stream.len));
    return true;
}

static enum rr_upstream_kind echo_poll(struct rr_upstream *upstream, struct sg_span *message)
{
    struct echo *e = (struct echo *)upstream;
    gsize len;

    g_clear_pointer(&e->handed_over, g_bytes_unref);
    e->handed_over = g_queue_pop_head(&e->replies);
    if (!e->handed_over) {
        return RR_UPSTREAM_NOTHING;
    }
    message->p = g_bytes_get_data(e->handed_over, &len);
    message->len = len;
    return RR_UPSTREAM_MESSAGE;
}

static void echo_close(struct rr_upstream *upstream)
{
    struct echo *e = (struct echo *)upstream;

    g_clear_pointer(&e->handed_over, g_bytes_unref);
    g_queue_clear_full(&e->replies, (GDestroyNotify)g_bytes_unref);
    g_free(e);
}

static struct rr_upstream *echo_open(const struct rr_source *source, char *why)
{
    struct echo *e = g_new0(struct echo, 1);

    e->upstream = (struct rr_upstream){ echo_send, echo_poll, echo_close, "" };
    g_queue_init(&e->replies);
    rr_echo_start(&e->memory);
    return &e->upstream;
}

const struct rr_source rr_source_echo = { .open = echo_open };
