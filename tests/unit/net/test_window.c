/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Windows, segment sizes and acknowledgements with a hand-made peer: the test chooses its
 * windows and options, and lets it send beyond our window.
 */
#include <string.h>

#include "tap.h"
#include "raw.h"
#include "base/account.h"

/* RFC 9293, section 3.7.1: the option means something in a SYN only. */
static void mss__behind_the_syn(void)
{
    struct raw r;

    raw_open(&r, 1500, 10, OPTIONS("\2\4\5\264"));
    raw_send(&r, 20);
    T_EQ_U64(raw_taken(&r), 0);
    raw_say(&r, ACK, 0, 0, OPTIONS("\2\4\0\5"));
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(raw_taken(&r), 10); /* what the window allows */
    raw_take(&r, 1000);
    raw_close(&r);

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    raw_acknowledge(&r, 8000);
    raw_send(&r, 100);
    raw_acknowledge(&r, 1000);
    raw_send(&r, 1448);
    T_EQ_U64(raw_taken(&r), 100);
    raw_say(&r, ACK | PSH, 0, 0, OPTIONS("\1\1\1\2\4\1\54\0")); /* 300, misaligned */
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(raw_taken(&r), 1100);
    raw_take(&r, 8000);
    raw_send(&r, 1448);
    T_EQ_U64(r.largest, 1448);
    raw_close(&r);
}

/* A window of exactly 64 KiB opens for a segment that waited at a small one. */
static void window__a_multiple_of_64_kib(void)
{
    struct raw r;

    raw_open(&r, 1500, 4000, OPTIONS("\2\4\0\144\1\3\3\2"));
    raw_say(&r, ACK, 0, 0, OPTIONS("\2\4\5\264"));
    raw_shrink(&r, 300 / 4);
    raw_send(&r, 1448);
    raw_acknowledge(&r, 65536 / 4);
    wire_settle(r.w, 3 * WIRE_S);
    raw_take(&r, 65536 / 4);
    T_TRUE(r.largest <= 256); /* the SYN says 100, the smallest MSS is 256 */
    raw_close(&r);

    /* The congestion window for the SYN's segment size is less than one segment of 256 octets. */
    raw_open(&r, 1500, 4000, OPTIONS("\2\4\0\24\1\3\3\2"));
    raw_shrink(&r, 60 / 4);
    raw_send(&r, 256);
    T_EQ_U64(raw_taken(&r), 0);
    raw_acknowledge(&r, 65536 / 4);
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(raw_taken(&r), 256);
    raw_close(&r);
}

/* As above, but without a small window: nothing is in flight whose acknowledgement could help. */
static void mss__less_than_any(void)
{
    struct raw r;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\0\1"));
    raw_send(&r, 1000);
    raw_take(&r, 8000);
    raw_close(&r);
}

static void mtu__shrinks_under_a_waiting_segment(void)
{
    struct raw r;

    raw_open(&r, 9000, 20000 / 4, OPTIONS("\2\4\43\0\1\3\3\2"));
    raw_acknowledge(&r, 20000 / 4);
    raw_send(&r, 100);
    raw_acknowledge(&r, 5000 / 4);
    raw_send(&r, 8900);
    T_EQ_U64(raw_taken(&r), 100);
    r.w->host[1].net->ops->set_mtu(r.w->host[1].net, 1500);
    T_EQ_U64(r.b.s->ops->emss(r.b.s), 1460);
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(raw_taken(&r), 5100);
    raw_take(&r, 20000 / 4);
    raw_close(&r);
}

/* The MTU falls below the size of a lost segment, which is sent again unchanged. */
static void mtu__shrinks_under_a_lost_segment(void)
{
    struct raw r;

    raw_open(&r, 9000, 20000 / 4, OPTIONS("\2\4\43\0\1\3\3\2"));
    raw_acknowledge(&r, 20000 / 4);
    r.lossy = true;
    raw_send(&r, 8900);
    T_EQ_INT(r.frames, 1);
    r.w->host[1].net->ops->set_mtu(r.w->host[1].net, 1500);
    T_EQ_U64(r.b.s->ops->emss(r.b.s), 1460);
    r.lossy = false;
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(raw_taken(&r), 8900);
    raw_take(&r, 20000 / 4);
    raw_close(&r);
}

/* The end of the stream comes behind its last octet, however a small window cuts it. */
static void fin__behind_a_cut_segment(void)
{
    struct raw r;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    raw_send(&r, 100);
    raw_acknowledge(&r, 300);
    raw_send(&r, 1000);
    peer_shutdown(&r.b);
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(raw_taken(&r), 400);
    T_FALSE(r.fin);
    raw_take(&r, 8000);
    T_TRUE(r.fin);
    raw_close(&r);
}

/* The window closes before the fast retransmission, and then admits only the first segment. */
static void fast_retransmission__forbidden(void)
{
    struct raw r;
    unsigned i;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    r.lossy = true;
    raw_send(&r, 1448);
    raw_send(&r, 1448);
    peer_shutdown(&r.b);
    wire_settle(r.w, 10 * WIRE_MS);
    T_EQ_INT(r.frames, 2);
    raw_shrink(&r, 0);
    for (i = 0; i < 3; i++) {
        raw_acknowledge(&r, 0);
    }
    r.lossy = false;
    wire_settle(r.w, 5 * WIRE_S);
    T_TRUE(raw_taken(&r) <= 1); /* a probe */
    raw_acknowledge(&r, 2000);
    wire_settle(r.w, 20 * WIRE_S);
    T_EQ_U64(raw_taken(&r), 1448);
    raw_take(&r, 8000);
    T_TRUE(r.fin);
    raw_close(&r);
}

/* Octets beyond our window are not kept when they arrive out of order. */
static void beyond__out_of_order(void)
{
    const size_t edge = UNSCALED_WINDOW, step = 1400;
    struct raw r;
    size_t at;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    raw_say(&r, ACK, edge - 1, 100, NO_OPTIONS);
    for (at = step; at < edge - 1; at += step) {
        raw_say(&r, ACK, at, MIN(step, edge - 1 - at), NO_OPTIONS);
    }
    raw_say(&r, ACK | FIN, edge - 1, 1, NO_OPTIONS); /* the FIN is beyond it */
    raw_say(&r, ACK, 0, step, NO_OPTIONS);
    T_EQ_U64(r.b.received, edge - 1);
    raw_say(&r, ACK | FIN, edge - 1, 1000, NO_OPTIONS);
    T_EQ_U64(r.b.received, edge + 999);
    T_EQ_INT(r.b.peer_closes, 1);
    raw_close(&r);
}

/* Likewise in the segment that completes the handshake. */
static void beyond__with_the_handshake(void)
{
    struct raw r;
    size_t at;

    raw_open(&r, 1500, 8000, NO_OPTIONS);
    peer_abort(&r.b);
    wire_settle(r.w, 10 * WIRE_MS);
    r.base = 0;
    r.first = 0x71000000;
    r.ack = 0;
    raw_say(&r, SYN, 0, 0, NO_OPTIONS);
    r.first++;
    T_TRUE(r.base != 0);
    raw_say(&r, ACK, UNSCALED_WINDOW - 1, 1000, NO_OPTIONS);
    r.next = r.first;
    raw_acknowledge(&r, 8000);
    T_EQ_INT(r.b.connects, 2);
    for (at = 1000; at < UNSCALED_WINDOW; at += 1000) {
        raw_say(&r, ACK, at, MIN(1000, UNSCALED_WINDOW - 1 - at), NO_OPTIONS);
    }
    raw_say(&r, ACK, 0, 1000, NO_OPTIONS);
    T_EQ_U64(r.b.received, UNSCALED_WINDOW - 1);
    raw_close(&r);
}

/* Octets behind a FIN that arrived out of order. */
static void beyond__the_end(void)
{
    size_t at, left = 1000;
    struct raw r;

    raw_open(&r, 1500, 8000, NO_OPTIONS);
    r.b.s->ops->hold(r.b.s, true); /* nothing opens the window again */
    for (at = 0; at < UNSCALED_WINDOW - left; at += 1000) {
        raw_say(&r, ACK, at, MIN(1000, UNSCALED_WINDOW - left - at), NO_OPTIONS);
    }
    at = UNSCALED_WINDOW - left;
    T_EQ_U64(r.b.received, at);
    raw_say(&r, ACK | FIN, at + 10, 0, NO_OPTIONS);
    raw_say(&r, ACK, at, left, NO_OPTIONS); /* fills the window to its edge */
    T_EQ_U64(r.b.received, at);
    raw_say(&r, ACK, at, 10, NO_OPTIONS);
    T_EQ_U64(r.b.received, at + 10);
    T_EQ_INT(r.b.peer_closes, 1);
    raw_close(&r);
}

/*
 * A held stream does not open its window further, so the data that wait for a stalled user are
 * bounded by the open window (RFC 9293, section 3.8.6.2.2: the right edge stays).
 */
static void held__the_window_stays(void)
{
    struct raw r;
    uint32_t edge;
    size_t i;

    raw_open(&r, 9000, 65535, OPTIONS("\3\3\7\1"));
    raw_say(&r, ACK, 0, 1, NO_OPTIONS);
    wire_settle(r.w, 100 * WIRE_MS); /* it is acknowledged */
    r.b.s->ops->hold(r.b.s, true);
    edge = r.edge;
    for (i = 0; i < 20; i++) {
        raw_say(&r, ACK, 1 + i * 8000, 8000, NO_OPTIONS);
        wire_settle(r.w, 100 * WIRE_MS);
        T_CONTEXT("segment %zu", i);
        T_EQ_U64(r.b.received, 1 + (i + 1) * 8000);
        /* The scale rounds; it may even retract the edge a little (RFC 7323, section 2.4). */
        T_TRUE((int32_t)(r.edge - edge) < 1 << r.scale);
        T_TRUE((int32_t)(edge - r.edge) < 1 << r.scale);
    }
    r.b.s->ops->hold(r.b.s, false);
    raw_say(&r, ACK, 1 + i * 8000, 1, NO_OPTIONS);
    wire_settle(r.w, 100 * WIRE_MS);
    T_TRUE(r.edge - edge + (1u << r.scale) >= 20 * 8000);
    raw_close(&r);
}

/*
 * A segment that fills a part of a hole is acknowledged at once (RFC 5681, section 4.2): the sender
 * recovers by these.  What is in order may wait for the turn's end.
 */
static void hole__its_filling_is_acknowledged(void)
{
    struct raw r;

    raw_open(&r, 1500, 65535, NO_OPTIONS);
    T_EQ_INT(raw_answers_at_once(&r, ACK, 0, 1000), 0);
    T_EQ_INT(raw_answers_at_once(&r, ACK, 1000, 1000), 0);
    wire_settle(r.w, WIRE_S);
    T_EQ_INT(raw_answers_at_once(&r, ACK, 4000, 1000), 1);
    T_EQ_INT(raw_answers_at_once(&r, ACK, 2000, 1000), 1);
    T_EQ_U64(r.b.received, 3000);
    T_EQ_INT(raw_answers_at_once(&r, ACK, 3000, 1000), 1); /* all of it */
    T_EQ_U64(r.b.received, 5000);
    T_EQ_INT(raw_answers_at_once(&r, ACK, 5000, 1000), 0);
    raw_close(&r);
}

static void give(struct raw *r, size_t n)
{
    uint8_t buf[2000];
    struct iovec iov = { buf, n };
    size_t i;

    for (i = 0; i < n; i++) {
        buf[i] = raw_pattern(r->b.sent + i);
    }
    T_TRUE(r->b.s->ops->send(r->b.s, &iov, 1, true));
    r->b.sent += n;
}

/* RFC 5044, section 5.1: a segment begins where a send began; two that just do not fit stay two. */
static void pieces__join_up_to_the_emss(void)
{
    static const struct {
        int over;
        unsigned frames;
    } rows[] = { { 0, 1 }, { 1, 2 } };
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct raw r;
        size_t emss;

        T_CONTEXT("%d octets more than the EMSS", rows[i].over);
        raw_open(&r, 1500, 65535, OPTIONS("\2\4\5\xb4"));
        emss = r.b.s->ops->emss(r.b.s);
        give(&r, emss - 10);
        give(&r, (size_t)rows[i].over + 10);
        r.b.s->ops->push(r.b.s);
        wire_settle(r.w, WIRE_MS);
        T_EQ_INT(r.frames, rows[i].frames);
        T_EQ_U64(r.first_frame, rows[i].over ? emss - 10 : emss);
        T_EQ_U64(raw_taken(&r), emss + (size_t)rows[i].over);
        T_FALSE(r.damaged);
        raw_close(&r);
    }
}

/* RFC 6928, section 2: ten segments, or 14600 octets, but two of the largest. */
static void initial__window(void)
{
    static const struct {
        const char *mss;
        unsigned want;
    } rows[] = {
        { "\2\4\2\30\1\3\3\2", 10 },  /* 536 */
        { "\2\4\5\264\1\3\3\2", 10 }, /* 1460 */
        { "\2\4\17\240\1\3\3\2", 3 }, /* 4000 */
        { "\2\4\43\0\1\3\3\2", 2 },   /* 8960 */
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raw r;

        T_CONTEXT("row %zu", i);
        raw_open(&r, 9000, 65535, rows[i].mss, 8);
        raw_acknowledge(&r, 65535);
        r.b.unit = r.b.to_send = 40000;
        peer_send(&r.b);
        wire_settle(r.w, WIRE_MS);
        T_EQ_INT(r.frames, rows[i].want);
        raw_take(&r, 65535);
        raw_close(&r);
    }
}

/* RFC 9293, section 3.8.6.3: the ACK of a single segment is delayed, as another may follow. */
static void lone__segment_is_acknowledged_later(void)
{
    unsigned before;
    struct raw r;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    raw_acknowledge(&r, 8000);
    wire_settle(r.w, WIRE_S);
    before = r.bare;
    raw_say(&r, ACK | PSH, 0, 100, NO_OPTIONS);
    T_EQ_INT(r.bare - before, 0);
    T_EQ_U64(r.b.received, 100);
    wire_settle(r.w, 500 * WIRE_MS);
    T_EQ_INT(r.bare - before, 1);
    raw_close(&r);
}

/*
 * Segments in order and acknowledgements need no memory: without memory they do not make the stream
 * drop out-of-order data.
 */
static void no_memory__what_waits_stays(void)
{
    struct sg_account account = { .limit = 1 << 20 };
    struct raw r;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    raw_acknowledge(&r, 8000);
    raw_say(&r, ACK | PSH, 0, 10, NO_OPTIONS);
    r.w->host[1].net->account = &account;
    raw_say(&r, ACK | PSH, 110, 100, NO_OPTIONS);
    T_TRUE(account.used > 0);
    account.limit = account.used;
    raw_say(&r, ACK, 10, 0, NO_OPTIONS);
    raw_say(&r, ACK | PSH, 10, 20, NO_OPTIONS);
    raw_say(&r, ACK, 30, 0, NO_OPTIONS);
    T_EQ_U64(account.refused, 0);
    raw_say(&r, ACK | PSH, 30, 80, NO_OPTIONS);
    T_EQ_U64(r.b.received, 210);
    T_EQ_U64(account.used, 0);
    r.w->host[1].net->account = NULL;
    raw_close(&r);
}

static const struct t_case cases[] = {
    { "an MSS option behind the SYN is nothing", mss__behind_the_syn },
    { "a window of 64 KiB for a segment that waited", window__a_multiple_of_64_kib },
    { "an MSS below the least", mss__less_than_any },
    { "a smaller MTU, while a larger segment waits", mtu__shrinks_under_a_waiting_segment },
    { "a smaller MTU, while a larger segment is lost", mtu__shrinks_under_a_lost_segment },
    { "FIN behind a segment that a window cuts", fin__behind_a_cut_segment },
    { "a fast retransmission that the window forbids", fast_retransmission__forbidden },
    { "beyond our window, out of order", beyond__out_of_order },
    { "beyond our window, with the handshake", beyond__with_the_handshake },
    { "beyond the end of the stream", beyond__the_end },
    { "a held stream: the window stays", held__the_window_stays },
    { "a hole: its filling is acknowledged at once", hole__its_filling_is_acknowledged },
    { "pieces: join up to the EMSS and not beyond", pieces__join_up_to_the_emss },
    { "the initial window", initial__window },
    { "a lone segment: is acknowledged later", lone__segment_is_acknowledged_later },
    { "no memory: what waits out of order stays", no_memory__what_waits_stays },
};

T_MAIN(cases)
