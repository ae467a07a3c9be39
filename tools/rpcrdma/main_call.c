/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rpcrdma call HOST[:PORT] [OPTION]...: a client of the program echo, which calls until it has made
 * all its Calls, its time is over, or a signal ends it; then it waits for the last Replies.  It
 * comes back if the server ends the connection.
 *
 * Status 0: all Calls were answered with the right results; 1: some were not; 2: wrong arguments,
 * or no connection.
 */
#include <signal.h>
#include <stdio.h>

#include "commands.h"
#include "port_verbs.h"
#include "requester.h"

enum { WAIT_MS = 20, RETRY_MS = 200, RETRIES_MAX = 50 };

static volatile sig_atomic_t ended;

/* A second one ends the program at once. */
static void on_signal(int number)
{
    ended = number;
    signal(number, SIG_DFL);
}

/*
 * One connection, until it ends or all is done.  When the time is over, Calls that are open are
 * waited for: a Call without a Reply is one that the server owes, not one that was cut off.  False:
 * there was no connection.
 */
static bool visit(struct rr_dialer *dialer, struct rr_requester_settings settings, gint64 end,
                  struct rr_requester_counts *sum)
{
    struct rr_port_side side;
    struct rr_requester *q;
    struct rr_port *port;

    rr_requester_side(&settings, &side);
    port = dialer->dial(dialer, &side);
    if (!port) {
        return false;
    }
    q = rr_requester_new(&settings, port);
    if (!q) {
        g_strlcpy(dialer->why, port->why, sizeof(dialer->why));
        port->ops->close(port);
        return false;
    }
    while (!rr_requester_done(q) && rr_requester_step(q, WAIT_MS) != RR_EVENT_CLOSED) {
        if (ended || g_get_monotonic_time() >= end) {
            rr_requester_stop(q);
        }
    }
    rr_requester_counts_add(sum, rr_requester_counts(q));
    rr_requester_free(q);
    port->ops->close(port);
    return true;
}

static int run(const char *target, struct rr_requester_settings settings, int seconds)
{
    g_autofree char *copy = g_strdup(target);
    struct rr_requester_counts n = { 0 };
    gint64 end = g_get_monotonic_time() + G_USEC_PER_SEC * (gint64)seconds;
    unsigned port = RR_PORT_DEFAULT, failures = 0, visits = 0;
    uint64_t count = settings.count;
    struct rr_verbs_dialer dialer;
    const char *host;

    if (!split_target(copy, &host, &port)) {
        return trouble("%s is no HOST, HOST:PORT or [ADDRESS]:PORT", target);
    }
    rr_verbs_dialer_init(&dialer, host, port);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!ended && g_get_monotonic_time() < end && (!count || n.calls < count)) {
        settings.count = count ? count - n.calls : 0;
        settings.invalidate = dialer.dialer.invalidates; /* known from the second connection on */
        if (visit(&dialer.dialer, settings, end, &n)) {
            visits++;
            failures = 0;
        } else if (!visits || ++failures == RETRIES_MAX) {
            break;
        } else {
            g_usleep(1000 * RETRY_MS);
        }
    }
    if (!visits) {
        return trouble("no connection: %s", dialer.dialer.why);
    }
    printf("%" G_GUINT64_FORMAT " Calls on %u connections: %" G_GUINT64_FORMAT
           " answered, %" G_GUINT64_FORMAT " ended by RDMA_ERROR, %" G_GUINT64_FORMAT
           " refused, %" G_GUINT64_FORMAT " with wrong results, %" G_GUINT64_FORMAT
           " without a Reply; %" G_GUINT64_FORMAT " messages dropped, %" G_GUINT64_FORMAT
           " Calls of the server answered\n",
           n.calls, visits, n.answered, n.failed, n.refused, n.wrong, n.expired + n.open, n.dropped,
           n.back);
    if (fflush(stdout)) {
        return trouble("cannot write to standard output");
    }
    return n.answered == n.calls ? STATUS_FINE : STATUS_BROKEN;
}

int rr_main_call(int argc, char **argv)
{
    enum { COUNT = 100, SECONDS = 60, SECONDS_MAX = 86400 };
    struct rr_requester_settings settings = rr_requester_defaults();
    int count = COUNT, seconds = SECONDS, at_once = RR_AT_ONCE_DEFAULT, size = RR_INLINE_DEFAULT;
    gboolean no_private = false;
    GOptionEntry entries[] = {
        { "count", 0, 0, G_OPTION_ARG_INT, &count, "make so many Calls (100); 0: without end",
          "N" },
        { "seconds", 0, 0, G_OPTION_ARG_INT, &seconds, "end after this time (60)", "N" },
        { "at-once", 0, 0, G_OPTION_ARG_INT, &at_once,
          "have at most so many Calls open, 1 to 32 (8); credits permitting", "N" },
        { "inline", 0, 0, G_OPTION_ARG_INT, &size,
          "octets of a Send, 1024 to 262144 by 1024 (4096)", "N" },
        { "no-private-data", 0, 0, G_OPTION_ARG_NONE, &no_private,
          "send none and ignore the server's", NULL },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new("HOST[:PORT] - a client");
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        return trouble("%s", error->message);
    }
    if (argc != 2) {
        return trouble("call takes HOST[:PORT]; see rpcrdma call --help");
    }
    if (count < 0) {
        return trouble("--count takes a number from 0");
    }
    if (seconds < 1 || seconds > SECONDS_MAX) {
        return trouble("--seconds takes a number from 1 to %d", SECONDS_MAX);
    }
    if (at_once < 1 || at_once > RR_AT_ONCE_MAX) {
        return trouble("--at-once takes a number from 1 to %d", RR_AT_ONCE_MAX);
    }
    if (size < RR_SIZE_MIN || size > RR_SIZE_MAX || size % RR_SIZE_UNIT) {
        return trouble("--inline takes a multiple of 1024 from 1024 to 262144");
    }
    settings.count = (uint64_t)count;
    settings.at_once = (unsigned)at_once;
    settings.inline_size = (uint32_t)size;
    settings.private_data = !no_private;
    return run(argv[1], settings, seconds);
}
