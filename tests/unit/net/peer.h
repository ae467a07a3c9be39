/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A user of a stream, for tests: counts events, compares received data with a known pattern, and
 * sends as much of that pattern as the test requests.
 */
#ifndef SG_TESTS_NET_PEER_H
#define SG_TESTS_NET_PEER_H

#include "wire.h"

enum { PEER_TAKES = 256 };

struct peer {
    struct sg_stream *s; /* NULL: none, or closed */
    struct wire *wire;
    unsigned connects, peer_closes, closes, writables;
    enum sg_stream_end end;
    uint64_t received;
    uint64_t early;  /* octets shown behind a gap */
    bool take_early; /* needs them no more; in their turn their content is not looked at */
    unsigned takes;
    struct {
        uint64_t from, to;
    } taken[PEER_TAKES]; /* which of these are still to come */
    bool damaged;        /* what arrived is not the pattern */
    uint64_t to_send, sent;
    size_t unit;         /* octets per send; 0: random */
    bool in_call;        /* a call of ours is on the stack */
    bool upcall_in_call; /* rule 1 of stream.h was broken */
    /* Abort in this event. */
    bool abort_on_connect, abort_on_receive, abort_on_close, abort_on_early;
    bool shut_on_peer_close;
    bool refuse; /* as listener: do not take the connection */
};

extern const struct sg_stream_events peer_events;

void peer_send(struct peer *p); /* continues by itself when there is room */
void peer_abort(struct peer *p);
void peer_shutdown(struct peer *p);
bool peer_accept(void *user, struct sg_stream *s); /* user: struct peer */
/* Connects 'a' on host 0 to a listener of 'b' on host 1; true when both know. */
bool peer_pair(struct wire *w, struct peer *a, struct peer *b, uint16_t port);
/* Likewise, to that address of host 1. */
bool peer_pair_at(struct wire *w, struct peer *a, struct peer *b, const struct sg_endpoint *to);
bool peer_connect(struct wire *w, struct peer *a, int host, const struct sg_endpoint *to,
                  enum sg_stream_end *why);

#endif
