/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "loopback.h"

static void end(struct rr_loopback *l)
{
    if (l->responder) {
        rr_responder_free(l->responder);
        l->responder = NULL;
    }
    rr_pair_free(l->pair);
    l->pair = NULL;
}

/* As many steps as there are messages: each takes one, and none is made here. */
static void pump(void *arg)
{
    struct rr_loopback *l = arg;
    enum rr_event_kind kind;

    do {
        kind = rr_responder_step(l->responder, 0);
    } while (kind == RR_EVENT_RECEIVED);
    if (kind == RR_EVENT_CLOSED) {
        struct rr_port *port = rr_pair_port(l->pair, 1);

        port->ops->close(port);
    }
}

static struct rr_port *dial(struct rr_dialer *dialer, const struct rr_port_side *side)
{
    struct rr_loopback *l = (struct rr_loopback *)dialer;
    struct rr_port_side there;
    struct rr_port *port;

    end(l);
    rr_responder_side(&l->settings, &there);
    l->pair = rr_pair_new(side, &there);
    port = rr_pair_port(l->pair, 1);
    l->responder = rr_responder_new(&l->settings, l->wrap ? l->wrap(port, l->wrap_arg) : port);
    sg_assert(l->responder);
    rr_pair_pump(l->pair, pump, l);
    return rr_pair_port(l->pair, 0);
}

void rr_loopback_init(struct rr_loopback *loopback, const struct rr_settings *settings)
{
    memset(loopback, 0, sizeof(*loopback));
    loopback->dialer.dial = dial;
    loopback->dialer.invalidates = true;
    loopback->settings = *settings;
}

void rr_loopback_clear(struct rr_loopback *loopback)
{
    end(loopback);
}
