/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How `rpcrdma check` waits until a server is ready. */
#include "check.h"
#include "liar.h"
#include "tap.h"

/* A server whose first connections are over before it has answered. */
struct shy {
    struct rr_loopback loopback;
    struct rr_port *(*dial)(struct rr_dialer *dialer, const struct rr_port_side *side);
    unsigned mute, dials;
};

static struct rr_port *dial_shy(struct rr_dialer *dialer, const struct rr_port_side *side)
{
    struct shy *s = (struct shy *)dialer;

    if (++s->dials > s->mute) {
        s->loopback.wrap = NULL;
    }
    return s->dial(dialer, side);
}

static void ready__is_asked_again(void)
{
    static const struct {
        unsigned mute, dials;
    } rows[] = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 9, RR_READY_SILENT } };
    const struct lie lie = { .mute = true, .edition = RR_EDITION_RFC };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct shy s = { .mute = rows[i].mute };
        struct rr_book book = { .target = "test", .out = g_string_new(NULL) };
        struct rr_check_run run = {
            .options = { .service = &rr_service_echo, .reply_ms = 10, .quiet_ms = 10 },
            .dialer = &s.loopback.dialer,
            .book = &book,
        };
        struct liar liar;

        T_CONTEXT("%u mute connections", rows[i].mute);
        liar_init(&liar, &s.loopback, &lie);
        s.dial = s.loopback.dialer.dial;
        s.loopback.dialer.dial = dial_shy;
        rr_wait_ready(&run);
        T_EQ_INT(s.dials, rows[i].dials);
        g_string_free(book.out, true);
        rr_loopback_clear(&s.loopback);
    }
}

static const struct t_case cases[] = {
    { "a server that does not answer is asked again whether it is ready", ready__is_asked_again },
};

T_MAIN(cases)
