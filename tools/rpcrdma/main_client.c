/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rpcrdma check client [OPTION]...: listens, and examines the client that comes.  One connection is
 * examined at a time; others wait.  A case that needs other private data ends the connection: a
 * client comes back.
 */
#include <stdio.h>

#include "client_cases.h"
#include "commands.h"
#include "port_verbs.h"

enum { NFS_TCP_PORT = 2049 };

struct verbs_acceptor {
    struct rr_acceptor acceptor;
    struct rr_listener *listener;
};

/* A connection that fails before it is there has a successor, perhaps. */
static struct rr_port *accept_one(struct rr_acceptor *acceptor, const struct rr_port_side *side,
                                  unsigned ms)
{
    struct verbs_acceptor *v = (struct verbs_acceptor *)acceptor;
    gint64 end = g_get_monotonic_time() + 1000 * (gint64)ms, now;
    struct rr_port *port = NULL;
    char why[RR_WHY];

    acceptor->why[0] = '\0';
    while (!port && (now = g_get_monotonic_time()) < end) {
        port = rr_accept(v->listener, side, (unsigned)((end - now) / 1000) + 1, why);
        if (!port && why[0]) {
            g_strlcpy(acceptor->why, why, sizeof(acceptor->why));
        }
    }
    return port;
}

int rr_check_client(const struct rr_check_arguments *a, struct rr_book *book)
{
    bool nfs = a->program && strcmp(a->program, "nfs") == 0;
    g_autofree char *target = g_strdup(a->nfs ? a->nfs : "127.0.0.1");
    struct verbs_acceptor v = { .acceptor = { .accept = accept_one } };
    struct rr_client_run run = { .only = a->only, .book = book };
    struct rr_source source = rr_source_echo;
    unsigned port = NFS_TCP_PORT;
    char service[8], why[RR_WHY];
    const char *host;

    if (a->nfs && !nfs) {
        return trouble("--nfs needs --program nfs");
    }
    if (!split_target(target, &host, &port)) {
        return trouble("%s is no HOST, HOST:PORT or [ADDRESS]:PORT", a->nfs);
    }
    snprintf(service, sizeof(service), "%u", port);
    if (nfs) {
        source = rr_source_tcp(host, service);
    }
    v.listener = rr_listen(a->address, (unsigned)a->port, why);
    if (!v.listener) {
        return trouble("%s", why);
    }
    fprintf(stderr, "rpcrdma: listening at port %d; the client has to call all the time\n",
            a->port);
    run.options = (struct rr_client_options){
        .acceptor = &v.acceptor,
        .source = &source,
        .wait_ms = a->reply_ms != RR_UNSET ? (unsigned)a->reply_ms : RR_CLIENT_WAIT_MS,
        .quiet_ms = a->quiet_ms != RR_UNSET ? (unsigned)a->quiet_ms : RR_CLIENT_QUIET_MS,
    };
    rr_book_open(book, rr_client_check_count(&run));
    rr_client_check_all(&run);
    rr_listener_free(v.listener);
    return STATUS_FINE;
}
