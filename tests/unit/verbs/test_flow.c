/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flow: what a host that wants it is told of each step of a work request, and that it may begin
 * and end to want it at any time.
 *
 * The lines of a side are kept as one text.  tests/build/test_timeline.py has the parser of them.
 */
#include "srq_rig.h"

enum { TEXT = 16384 };

static char text[2][TEXT];
/* What segments that a side has sent, or received, are called from their kind on. */
static char sent[2][TEXT], received[2][TEXT];

static void append(char *p, const char *line, size_t len)
{
    size_t used = strlen(p);

    T_TRUE(used + len + 2 < TEXT);
    snprintf(p + used, TEXT - used, "%.*s\n", (int)len, line);
}

/* The end of a segment's line, its connection, is kept in the second place only. */
static void note(void *host, const char *line)
{
    int side = host == &pair.side[1].h;
    const char *out = strstr(line, ": sent "), *in = strstr(line, ": received ");
    const char *link = strstr(line, ", segment ");

    T_EQ_INT(link != NULL, out || in);
    if (out) {
        append(sent[side], out + strlen(": sent "), strlen(out + strlen(": sent ")));
    }
    if (in) {
        append(received[side], in + strlen(": received "), strlen(in + strlen(": received ")));
    }
    append(text[side], line, link ? (size_t)(link - line) : strlen(line));
}

static void want(bool on)
{
    for (int i = 0; i < 2; i++) {
        pair.side[i].h.ops.flow = on ? note : NULL;
        text[i][0] = sent[i][0] = received[i][0] = 0;
    }
}

/* Takes the text of the format, which is a prefix of what is left. */
static void told(int side, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void told(int side, const char *format, ...)
{
    char line[300], *end = strchr(text[side], '\n');
    va_list ap;

    va_start(ap, format);
    vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    T_TRUE(end != NULL);
    if (end) {
        *end = 0;
        T_EQ_STR(text[side], line);
        memmove(text[side], end + 1, strlen(end + 1) + 1);
    }
}

static void nothing_more(void)
{
    T_EQ_STR(text[0], "");
    T_EQ_STR(text[1], "");
}

static unsigned qpn(int side)
{
    return pair.side[side].qp.qpn;
}

static unsigned cqn(int side)
{
    return pair.side[side].cq.cqn;
}

/* A Send and the receive that it fills, on both sides. */
static void send_and_receive(void)
{
    begin(NULL);
    want(true);
    recv(1, 7, 0, 4096);
    post(0, wr(0, SG_WR_SEND, 1, 0, 100, 0));
    expect(0, 1, SG_WC_SUCCESS);
    expect(1, 7, SG_WC_SUCCESS);
    told(0, "qp %u: fetched send entry 0, SEND", qpn(0));
    told(0, "qp %u: sent Send, MSN 1, offset 0, 100 octets, last", qpn(0));
    told(0, "qp %u: completed send entry 0, SUCCESS, cq %u", qpn(0), cqn(0));
    told(1, "qp %u: received Send, MSN 1, offset 0, 100 octets, last", qpn(1));
    told(1, "qp %u: fetched receive entry 0", qpn(1));
    told(1, "qp %u: completed receive entry 0, SUCCESS, 100 octets, cq %u", qpn(1), cqn(1));
    nothing_more();
    end();
}

/* Tagged segments: a Write, then a Read with request and response. */
static void write_and_read(void)
{
    begin(NULL);
    want(true);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 64, 128));
    expect(0, 1, SG_WC_SUCCESS);
    told(0, "qp %u: fetched send entry 0, WRITE", qpn(0));
    told(0, "qp %u: sent RDMA Write, STag 0x%08x, TO 0x%llx, 64 octets, last", qpn(0),
         pair.side[1].stag, (unsigned long long)pair.side[1].buf + 128);
    told(0, "qp %u: completed send entry 0, SUCCESS, cq %u", qpn(0), cqn(0));
    told(1, "qp %u: received RDMA Write, STag 0x%08x, TO 0x%llx, 64 octets, last", qpn(1),
         pair.side[1].stag, (unsigned long long)pair.side[1].buf + 128);
    nothing_more();
    post(0, wr(0, SG_WR_READ, 2, 256, 32, 128));
    expect(0, 2, SG_WC_SUCCESS);
    told(0, "qp %u: fetched send entry 1, READ", qpn(0));
    told(0, "qp %u: sent RDMA Read Request, MSN 1, offset 0, 28 octets, last", qpn(0));
    told(0, "qp %u: received RDMA Read Response, STag 0x%08x, TO 0x%llx, 32 octets, last", qpn(0),
         pair.side[0].stag, (unsigned long long)pair.side[0].buf + 256);
    told(0, "qp %u: completed send entry 1, SUCCESS, cq %u", qpn(0), cqn(0));
    told(1, "qp %u: received RDMA Read Request, MSN 1, offset 0, 28 octets, last", qpn(1));
    told(1, "qp %u: sent RDMA Read Response, STag 0x%08x, TO 0x%llx, 32 octets, last", qpn(1),
         pair.side[0].stag, (unsigned long long)pair.side[0].buf + 256);
    nothing_more();
    end();
}

static unsigned count(const char *in, const char *what)
{
    unsigned n = 0;

    for (; (in = strstr(in, what)); in++) {
        n++;
    }
    return n;
}

/* Messages of several segments: the last one of each is called so. */
static void segments(void)
{
    begin_slow(0);
    want(true);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 20000, 0));
    post(0, wr(0, SG_WR_WRITE, 2, 0, 20000, 0));
    pair_pass(&pair, 1000000000);
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_SUCCESS);
    T_EQ_U64(count(text[0], " sent RDMA Write, "), 6);
    T_EQ_U64(count(text[1], " received RDMA Write, "), 6);
    T_EQ_U64(count(text[1], " octets, last\n"), 2);
    end();
}

/*
 * The same words at both ends tell which segment of which connection it is, also if a trace begins
 * in the middle of it, and the same Write comes again.
 */
static void linked(void)
{
    char line[200];
    unsigned long first;

    begin_slow(0);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 20000, 0));
    pair_pass(&pair, 1000000000);
    expect(0, 1, SG_WC_SUCCESS);
    want(true);
    post(0, wr(0, SG_WR_WRITE, 2, 0, 20000, 0));
    post(0, wr(0, SG_WR_WRITE, 3, 0, 64, 0));
    post(0, wr(0, SG_WR_WRITE, 4, 0, 64, 0));
    post(0, wr(0, SG_WR_READ, 5, 256, 32, 128));
    pair_pass(&pair, 1000000000);
    expect(0, 2, SG_WC_SUCCESS);
    expect(0, 3, SG_WC_SUCCESS);
    expect(0, 4, SG_WC_SUCCESS);
    expect(0, 5, SG_WC_SUCCESS);
    T_EQ_U64(count(sent[0], "\n"), 6);
    T_EQ_STR(sent[0], received[1]);
    T_EQ_U64(count(sent[1], "\n"), 1);
    T_EQ_STR(sent[1], received[0]);
    first = strtoul(strstr(sent[0], ", segment ") + strlen(", segment "), NULL, 10);
    T_TRUE(first > 3); /* those of the first Write came before */
    for (unsigned i = 0; i < 6; i++) {
        snprintf(line, sizeof(line), ", segment %lu, ", first + i);
        T_EQ_U64(count(sent[0], line), 1);
    }
    end();
}

/* An entry of a shared receive queue names the queue. */
static void shared(void)
{
    uint32_t number;

    begin_shared();
    number = joints[1].qp[1].qpn;
    want(true);
    supply(5, 4096);
    send_on(1, 1, 8);
    got(0, 1, 1, SG_WC_SUCCESS);
    got(1, 1, 5, SG_WC_SUCCESS);
    told(1, "qp %u: received Send, MSN 1, offset 0, 8 octets, last", number);
    told(1, "qp %u: fetched receive entry 0 of srq %u", number, srq.srqn);
    told(1, "qp %u: completed receive entry 0, SUCCESS, 8 octets, cq %u", number, cqn(1));
    T_EQ_STR(text[1], "");
    end_shared();
}

/* What the peer refuses has arrived all the same, and the completion tells it. */
static void refused(void)
{
    struct md_wr bad;

    begin(NULL);
    want(true);
    bad = wr(0, SG_WR_WRITE, 1, 0, 8, 0);
    bad.rkey ^= 0x100;
    post(0, bad);
    pair_settle(&pair);
    T_TRUE(strstr(text[1], "received RDMA Write"));
    T_TRUE(strstr(text[1], "sent Terminate, MSN 1, offset 0, "));
    T_TRUE(strstr(text[0], "received Terminate, MSN 1, offset 0, "));
    pair_stop(&pair);
}

/* It is wanted from one call to the next, and no longer. */
static void switched(void)
{
    begin(NULL);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 8, 0));
    expect(0, 1, SG_WC_SUCCESS);
    want(true);
    post(0, wr(0, SG_WR_WRITE, 2, 0, 8, 0));
    expect(0, 2, SG_WC_SUCCESS);
    told(0, "qp %u: fetched send entry 1, WRITE", qpn(0));
    want(false);
    post(0, wr(0, SG_WR_WRITE, 3, 0, 8, 0));
    expect(0, 3, SG_WC_SUCCESS);
    nothing_more();
    end();
}

static bool on_iwarp(void)
{
    return pair_wire()->invalidates;
}

static bool on_2000(void)
{
    return !on_iwarp();
}

/* The other wire has segments of its own; numbers of messages begin anywhere. */
static void wire_2000(void)
{
    char line[200];

    begin_slow(0);
    want(true);
    recv(1, 7, 0, 4096);
    post(0, wr(0, SG_WR_SEND, 1, 0, 100, 0));
    post(0, wr(0, SG_WR_WRITE, 2, 0, 20000, 128));
    post(0, wr(0, SG_WR_READ, 3, 256, 32, 128));
    pair_pass(&pair, 1000000000);
    for (int i = 0; i < 2; i++) {
        const char *did = i ? "received" : "sent", *answer = i ? "sent" : "received";

        snprintf(line, sizeof(line), "qp %u: %s Send, MSN ", qpn(i), did);
        T_EQ_U64(count(text[i], line), 1);
        T_EQ_U64(count(text[i], ", offset 0, 100 octets, last\n"), 1);
        snprintf(line, sizeof(line), "qp %u: %s Write, STag 0x%08x, TO 0x", qpn(i), did,
                 pair.side[1].stag);
        T_EQ_U64(count(text[i], line), 3);
        snprintf(line, sizeof(line), "qp %u: %s Read Request, STag 0x%08x, TO 0x", qpn(i), did,
                 pair.side[1].stag);
        T_EQ_U64(count(text[i], line), 1);
        T_EQ_U64(count(text[i], " 0 octets, last\n"), 1);
        snprintf(line, sizeof(line), "qp %u: %s Read Response, MSN ", qpn(i), answer);
        T_EQ_U64(count(text[i], line), 1);
        T_EQ_U64(count(text[i], ", offset 0, 32 octets, last\n"), 1);
    }
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "a Send and its receive", send_and_receive, on_iwarp },
    { "a Write and a Read", write_and_read, on_iwarp },
    { "messages of several segments", segments, on_iwarp },
    { "both ends name a segment alike", linked, NULL },
    { "a shared receive queue", shared, on_iwarp },
    { "a Write that is refused", refused, on_iwarp },
    { "wanted for a time", switched, NULL },
    { "segments of RDMA/TCP of 2000", wire_2000, on_2000 },
};

T_MAIN(cases)
