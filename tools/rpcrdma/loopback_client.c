/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "loopback_client.h"

/* A requester whose Calls are all answered at once makes new ones: leave them for the next poll. */
enum { STEPS_MAX = 64 };

static void end(struct rr_client_loopback *l)
{
    if (l->requester) {
        rr_requester_counts_add(&l->before, rr_requester_counts(l->requester));
        rr_requester_free(l->requester);
        l->requester = NULL;
    }
    rr_pair_free(l->pair);
    l->pair = NULL;
}

static void pump(void *arg)
{
    struct rr_client_loopback *l = arg;
    enum rr_event_kind kind = RR_EVENT_RECEIVED;

    for (unsigned i = 0; i < STEPS_MAX && kind == RR_EVENT_RECEIVED; i++) {
        kind = rr_requester_step(l->requester, 0);
    }
    if (kind == RR_EVENT_CLOSED) {
        struct rr_port *port = rr_pair_port(l->pair, 1);

        port->ops->close(port);
    }
}

static struct rr_port *accept_one(struct rr_acceptor *acceptor, const struct rr_port_side *side,
                                  unsigned ms)
{
    struct rr_client_loopback *l = (struct rr_client_loopback *)acceptor;
    struct rr_port_side there;
    struct rr_port *port;

    end(l);
    rr_requester_side(&l->settings, &there);
    l->pair = rr_pair_new(side, &there);
    port = rr_pair_port(l->pair, 1);
    l->requester = rr_requester_new(&l->settings, l->wrap ? l->wrap(port, l->wrap_arg) : port);
    sg_assert(l->requester);
    rr_pair_pump(l->pair, pump, l);
    return rr_pair_port(l->pair, 0);
}

void rr_client_loopback_init(struct rr_client_loopback *loopback,
                             const struct rr_requester_settings *settings)
{
    memset(loopback, 0, sizeof(*loopback));
    loopback->acceptor.accept = accept_one;
    loopback->settings = *settings;
    loopback->settings.invalidate = settings->private_data; /* memory ports can */
}

void rr_client_loopback_clear(struct rr_client_loopback *loopback)
{
    end(loopback);
}
