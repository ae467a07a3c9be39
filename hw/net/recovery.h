/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loss recovery and congestion control of an established connection.
 *
 * lwIP builds and keeps the segments; this code decides what to send when: SACK (RFC 2018), RACK
 * and tail loss probes (RFC 8985), proportional rate reduction (RFC 6937), the retransmission timer
 * (RFC 6298), CUBIC (RFC 9438), and undoing a spurious reduction (Eifel: RFC 3522; D-SACK: RFC
 * 3708).  docs/decisions/0009 says why lwIP's own code is not used.
 *
 * lwIP's own recovery is kept idle: it never counts a third duplicate acknowledgement, its
 * retransmission timer does not run, and its congestion window never limits.
 *
 *   event                                     function
 *   lwIP transmits a segment                  recovery_segment_out()
 *   a segment arrives, before lwIP sees it    recovery_segment_in()
 *   lwIP has processed it                     recovery_input_done()
 *   new data: how much may leave?             recovery_allows()
 *   a timer is due                            timer_expired(), from clock_run()
 */
#ifndef SG_NET_RECOVERY_H
#define SG_NET_RECOVERY_H

#include "cubic.h"
#include "scoreboard.h"
#include "base/timerq.h"

struct flow;
struct sg_port;
struct tcp_hdr;
struct tcp_pcb;

enum recovery_state {
    RECOVERY_OPEN, /* nothing is known to be lost */
    RECOVERY_FAST, /* losses were seen through acknowledgements */
    RECOVERY_RTO,  /* the retransmission timer has expired */
};

enum { SACK_BLOCKS_MAX = 4 }; /* 40 octets of options hold no more */

/* The content of the segment being processed. */
struct ack_seen {
    bool valid;
    bool bare; /* no data */
    bool has_echo;
    uint32_t echo;   /* TSecr, ms */
    uint32_t window; /* the peer's window before it */
    unsigned blocks;
    struct {
        uint32_t start, end;
    } block[SACK_BLOCKS_MAX];
};

/* RFC 8985, section 5.3. */
struct rack {
    uint64_t sent; /* of the delivered segments, the one sent last: its time, */
    uint32_t end;  /* its end, */
    uint64_t rtt;  /* and its round trip */
    uint32_t fack; /* the highest sequence number delivered */
    bool reordered;
    unsigned window_mult, window_persist;
    uint32_t mult_until; /* no second increment before this is acknowledged */
};

struct recovery {
    struct sg_timer timer;
    struct scoreboard sent;
    struct cubic cubic;
    enum recovery_state state;
    uint32_t una;   /* the oldest sequence number not acknowledged */
    uint32_t high;  /* the end of the newest octet sent */
    uint32_t point; /* the state ends when this is acknowledged */
    uint32_t cwnd, ssthresh;
    unsigned handed;     /* segments that lwIP has and the scoreboard has not: not sent yet */
    bool starved;        /* the scoreboard had no memory for a segment that was sent */
    bool limited;        /* by the congestion window, since the last acknowledgement */
    bool urgent;         /* the first retransmission need not wait for the congestion window */
    bool extra;          /* a probe: one segment beyond the congestion window */
    unsigned duplicates; /* without SACK: duplicate acknowledgements (RFC 5681, section 2), */
    uint32_t left;       /* and the octets that they report as delivered */

    uint32_t prr_delivered, prr_out, prr_flight;

    uint64_t srtt, rttvar, min_rtt; /* ns; 0: not measured */
    unsigned backoff;               /* retransmission timeouts in a row */

    struct rack rack;

    bool probing;
    bool probe_again; /* the probe was a retransmission */
    uint32_t probe_end;
    uint32_t probe_stamp; /* ms */

    /* The state before the reduction, while it may turn out to be spurious. */
    bool may_undo;
    uint32_t undo_cwnd, undo_ssthresh;
    struct cubic undo_cubic;
    uint32_t again_stamp; /* ms, of the first retransmission; valid with 'again' */
    bool again;
    unsigned undo_segments; /* retransmitted, not reported as duplicates */

    uint64_t rto_at, probe_at, reorder_at;
    bool postponed;

    struct ack_seen in;
    /* Of the acknowledgement being processed. */
    uint32_t delivered;
    uint64_t sample;
    uint32_t fack;
};

void recovery_init(struct flow *f);
void recovery_free(struct flow *f);
/* The handshake is complete: a first round trip. */
void recovery_handshake(struct flow *f, const struct tcp_pcb *pcb);
void recovery_segment_out(struct flow *f, const struct tcp_pcb *pcb, const struct tcp_hdr *hdr,
                          uint32_t len);
void recovery_segment_in(struct flow *f, struct tcp_pcb *pcb, const struct tcp_hdr *hdr,
                         uint32_t len);
void recovery_input_done(struct flow *f);
/*
 * Is there memory for one more segment?  A connection with something in flight can wait for
 * memory.
 */
bool recovery_has_room(struct flow *f);
/* May 'len' new octets be sent, when 'handed' others have not been sent yet? */
bool recovery_allows(struct flow *f, uint32_t handed, uint32_t len);
/* All segments in flight become unsent again; false: a frame of one still waits to be sent. */
bool recovery_withdraw(struct flow *f);
/* lwIP had no memory for new data: the stream retries soon, whatever else happens. */
void recovery_try_again(struct flow *f);
/* tcp_output() for new data. */
void recovery_output(struct flow *f);

/* congestion.c */
#define SG_CWND_MAX (64u * 1024 * 1024)
uint32_t congestion_mss(const struct flow *f);
/* Octets in flight, as far as is known. */
uint32_t congestion_flight(const struct recovery *r);
void congestion_begin(struct flow *f);
/* A reduction follows that may turn out to be spurious. */
void congestion_remember(struct recovery *r);
void congestion_enter_fast(struct flow *f);
void congestion_leave(struct recovery *r);
/* In FAST, for the delivered octets. */
void congestion_reduce(struct flow *f, bool progress);
/* In the other states.  'flight': octets in flight before the acknowledgement. */
void congestion_grow(struct flow *f, uint32_t flight);
/* Was the reduction spurious?  By the timestamp, or by a report that a segment arrived twice. */
void congestion_check_echo(struct recovery *r, bool oldest_again);
void congestion_check_duplicate(struct recovery *r);

/* sack.c */
/* The lengths of the options have been checked. */
void sack_read_options(struct ack_seen *in, const struct tcp_hdr *hdr);
/* Passes the blocks to the scoreboard.  True: the peer reports a duplicate. */
bool sack_read_blocks(struct recovery *r);

/* rack.c */
void rack_init(struct rack *k);
void rack_delivered(struct recovery *r, const struct sent_segment *s, uint64_t now);
/* The peer has received something twice: reordering was mistaken for loss. */
void rack_spurious(struct recovery *r);
/* Moves lost segments to the list of lost segments, and sets reorder_at for possible ones. */
void rack_detect(struct recovery *r, uint64_t now);

/* rtt.c */
void rtt_sample(struct recovery *r, uint64_t rtt);
/* The retransmission timeout, with backoff. */
uint64_t rtt_timeout(const struct recovery *r, uint64_t min);
/* When the tail loss probe is due. */
uint64_t rtt_probe(const struct recovery *r);

#endif
