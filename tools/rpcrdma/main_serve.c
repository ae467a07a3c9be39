/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rpcrdma serve [OPTION]...: a responder for clients, until a signal ends it. */
#include <signal.h>
#include <stdio.h>

#include "commands.h"
#include "port_verbs.h"
#include "responder.h"

enum { CONNECTIONS_MAX = 16, WAIT_MS = 5, PORT = 20049, PER_TURN = 8 };

struct server {
    struct rr_settings settings;
    struct rr_port_side side;
    struct rr_listener *listener;
    struct connection {
        struct rr_port *port;
        struct rr_responder *responder;
        unsigned number;
    } connection[CONNECTIONS_MAX];
    unsigned open;
    unsigned number;
};

static volatile sig_atomic_t ended;

static void on_signal(int signal)
{
    ended = signal;
}

static void end(struct server *s, unsigned i)
{
    struct connection *c = &s->connection[i];
    struct rr_counts n = rr_responder_counts(c->responder);

    printf("connection %u: the end; %u Replies, %u RDMA_ERRORs, %u dropped\n", c->number, n.replies,
           n.errors, n.dropped);
    rr_responder_free(c->responder);
    c->port->ops->close(c->port);
    *c = s->connection[--s->open];
}

/* The next client, if there is one. */
static void accept_one(struct server *s)
{
    char why[RR_WHY];
    struct rr_port *port;
    struct rr_responder *responder;
    struct rr_private p;

    if (s->open == CONNECTIONS_MAX) {
        return;
    }
    port = rr_accept(s->listener, &s->side, s->open ? 0 : WAIT_MS, why);
    if (!port) {
        if (why[0]) {
            fprintf(stderr, "rpcrdma: %s\n", why);
        }
        return;
    }
    responder = rr_responder_new(&s->settings, port);
    if (!responder) {
        fprintf(stderr, "rpcrdma: %s\n", port->why);
        port->ops->close(port);
        return;
    }
    p = rr_private_parse(sg_span_of(port->peer, port->peer_len));
    s->connection[s->open++] = (struct connection){ port, responder, ++s->number };
    printf("connection %u: private data %s (R=%d, send %u, receive %u)\n", s->number,
           p.present ? "present" : "absent", p.remote_inv, p.send_size, p.recv_size);
}

static void serve(struct server *s)
{
    while (!ended) {
        accept_one(s);
        for (unsigned i = 0; i < s->open; i++) {
            enum rr_event_kind kind = RR_EVENT_RECEIVED;

            for (unsigned n = 0; n < PER_TURN && kind == RR_EVENT_RECEIVED; n++) {
                kind = rr_responder_step(s->connection[i].responder, n == 0 && s->open == 1);
            }
            if (kind == RR_EVENT_CLOSED) {
                end(s, i--);
            }
        }
        fflush(stdout);
    }
    while (s->open) {
        end(s, s->open - 1);
    }
}

static int run(const struct rr_settings *settings, const char *address, int port)
{
    struct server s = { .settings = *settings };
    char why[RR_WHY];

    rr_responder_side(&s.settings, &s.side);
    s.listener = rr_listen(address, (unsigned)port, why);
    if (!s.listener) {
        return trouble("%s", why);
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    printf("listening at port %d: credits %u, inline %zu, private data %s\n", port,
           settings->credits, s.side.receive_size, s.side.private_len ? "sent" : "not sent");
    fflush(stdout);
    serve(&s);
    rr_listener_free(s.listener);
    return fflush(stdout) ? trouble("cannot write to standard output") : STATUS_FINE;
}

int rr_main_serve(int argc, char **argv)
{
    struct rr_settings settings = rr_settings_default();
    char *rules = NULL, *address = NULL, *octets = NULL;
    int port = PORT, size = RR_INLINE_DEFAULT, credits = RR_CREDITS_DEFAULT;
    gboolean no_private = false, invalidate = false;
    GOptionEntry entries[] = {
        { "address", 0, 0, G_OPTION_ARG_STRING, &address, "listen at this address only",
          "ADDRESS" },
        { "port", 0, 0, G_OPTION_ARG_INT, &port, "listen at this port (20049)", "N" },
        { "rules", 0, 0, G_OPTION_ARG_STRING, &rules,
          "rfc8166 (default), or revision 06 or 07 of its draft", "EDITION" },
        { "inline", 0, 0, G_OPTION_ARG_INT, &size,
          "octets of a Send, 1024 to 262144 by 1024 (4096)", "N" },
        { "credits", 0, 0, G_OPTION_ARG_INT, &credits, "grant so many, 1 to 255 (32)", "N" },
        { "no-private-data", 0, 0, G_OPTION_ARG_NONE, &no_private,
          "send none and ignore the client's", NULL },
        { "private-data", 0, 0, G_OPTION_ARG_STRING, &octets,
          "send these octets instead, sound or not: f6ab0e1801000303", "HEX" },
        { "invalidate", 0, 0, G_OPTION_ARG_NONE, &invalidate,
          "set R: invalidate memory of clients that set it too", NULL },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new("- a responder for clients");
    g_autoptr(GError) error = NULL;
    int status;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        status = trouble("%s", error->message);
    } else if (argc != 1) {
        status = trouble("serve takes no argument such as %s; see rpcrdma serve --help", argv[1]);
    } else if (rules && rr_edition_of(rules) == RR_EDITIONS) {
        status = trouble("--rules takes rfc8166, 07 or 06, not %s", rules);
    } else if (port < 1 || port > UINT16_MAX) {
        status = trouble("--port takes a number from 1 to 65535");
    } else if (size < RR_SIZE_MIN || size > RR_SIZE_MAX || size % RR_SIZE_UNIT) {
        status = trouble("--inline takes a multiple of 1024 from 1024 to 262144");
    } else if (credits < 1 || credits > RR_CREDITS_MAX) {
        status = trouble("--credits takes a number from 1 to %d", RR_CREDITS_MAX);
    } else if (octets && (no_private || invalidate || size != RR_INLINE_DEFAULT)) {
        status = trouble("--private-data says it all: without --no-private-data, --invalidate and "
                         "--inline");
    } else if (octets && !(settings.octets_len = rr_private_from_hex(octets, settings.octets,
                                                                     sizeof(settings.octets)))) {
        status = trouble("--private-data takes 1 to %d octets as hex", RR_PRIVATE_ROOM);
    } else {
        settings.edition = rules ? rr_edition_of(rules) : RR_EDITION_RFC;
        settings.inline_size = (uint32_t)size;
        settings.credits = (uint32_t)credits;
        settings.private_data = !no_private;
        settings.invalidate = invalidate;
        status = run(&settings, address, port);
    }
    g_free(rules);
    g_free(address);
    g_free(octets);
    return status;
}
