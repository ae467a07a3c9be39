/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hand-made peer: the test chooses its sequence numbers, windows and options, and it accepts data
 * in order.  Host 1 is the adapter; host 0 has only a MAC address and ARP.
 */
#ifndef SG_TEST_NET_RAW_H
#define SG_TEST_NET_RAW_H

#include "peer.h"

enum {
    RAW_PORT = 4791,
    RAW_OTHER = 700,
    FIN = 1,
    SYN = 2,
    RST = 4,
    PSH = 8,
    ACK = 16,
    UNSCALED_WINDOW = 65535,
};

struct raw {
    struct wire *w;
    struct peer b; /* the adapter's user */
    struct sg_stream_listener *l;
    uint32_t first, next; /* our sequence numbers: of the first octet, of the next one */
    uint32_t base, ack;   /* the adapter's, likewise; base 0: none yet */
    uint16_t window;      /* as in the header, unscaled */
    bool lossy;           /* drops all data */
    bool damaged, fin;
    unsigned frames;    /* with data */
    size_t first_frame; /* octets of the first of them */
    unsigned bare;      /* frames without data */
    unsigned scale;     /* of the adapter's window */
    uint32_t edge;      /* right edge of that window */
    size_t largest;
};

#define OPTIONS(text) (text), sizeof(text) - 1
#define NO_OPTIONS NULL, 0

/* Octet number 'at' of the pattern that both send. */
uint8_t raw_pattern(uint64_t at);
/* Octets received in order. */
size_t raw_taken(const struct raw *r);
/* A segment of 'n' octets of the pattern whose first one is number 'at' of ours. */
void raw_say(struct raw *r, uint8_t flags, size_t at, size_t n, const char *options,
             size_t options_len);
/* How many frames without data answer it at once, before the port's next turn. */
unsigned raw_answers_at_once(struct raw *r, uint8_t flags, size_t at, size_t n);
void raw_acknowledge(struct raw *r, unsigned window);
/* Sends an octet first, so that the adapter accepts a smaller window, too. */
void raw_shrink(struct raw *r, unsigned window);
/* 'window': in the SYN and in the acknowledgement that follows. */
void raw_open(struct raw *r, unsigned mtu, unsigned window, const char *options,
              size_t options_len);
void raw_close(struct raw *r);
/* The adapter's user sends. */
void raw_send(struct raw *r, size_t n);
/* Receives all data, with that window, until there is no more. */
void raw_take(struct raw *r, unsigned window);

#endif
