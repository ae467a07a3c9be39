/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the adapter or the NIC gets a frame.  Malformed frames have no effect on the adapter.
 */
#include "tap.h"
#include "peer.h"
#include "base/bytes.h"

enum {
    LISTENING = 4791,
    FIN = 1,
    SYN = 2,
    RST = 4,
    PSH = 8,
    ACK = 16,
    A = SG_PORT_TO_ADAPTER,
    N = SG_PORT_TO_NIC,
};

struct demux_fixture {
    struct wire *w;
    struct peer a, b, late; /* late: accepted by the listener */
    struct sg_stream_listener *l;
    struct sg_endpoint local, remote; /* of b's stream, on host 1 */
};

static void set_up(struct demux_fixture *f, uint64_t seed)
{
    struct sg_endpoint any = { .family = 4, .port = LISTENING };
    enum sg_stream_end why;

    *f = (struct demux_fixture){ 0 };
    f->w = wire_new(seed, 1500, NULL);
    T_TRUE(peer_pair(f->w, &f->a, &f->b, 700));
    f->b.s->ops->endpoints(f->b.s, &f->local, &f->remote);
    f->l = f->w->host[1].net->ops->listen(f->w->host[1].net, &any, 8, peer_accept, &f->late, &why);
    f->late.wire = f->w;
    wire_settle(f->w, 1000 * WIRE_MS);
}

static size_t segment(struct demux_fixture *f, uint8_t *frame, uint16_t from, uint16_t to,
                      uint8_t flags)
{
    struct wire_segment s = {
        .dst_mac = f->w->host[1].mac,
        .src_mac = f->w->host[0].mac,
        .src = f->remote,
        .dst = f->local,
        .flags = flags,
        .seq = 1,
        .ack = 1,
        .window = 1000,
    };

    s.src.port = from;
    s.dst.port = to;
    return wire_build(frame, &s);
}

static unsigned input(struct demux_fixture *f, const uint8_t *frame, size_t len)
{
    return sg_port_input(f->w->host[1].port, frame, len);
}

static void verdict__table(void)
{
    struct demux_fixture f;
    uint8_t frame[128], broken[128];
    size_t n, i;

    set_up(&f, 1);
    static const struct {
        uint16_t to;
        bool known_peer;
        uint8_t flags;
        unsigned want;
    } rows[] = {
        { 700, true, ACK, A },
        { 700, true, RST, A },
        { 700, false, ACK, N }, /* same local port, another peer's */
        { 700, false, SYN, N }, /* its listener is gone */
        { LISTENING, false, SYN, A },
        { LISTENING, false, ACK, A },
        { LISTENING + 1, false, SYN, N },
        { 22, false, SYN, N },
    };
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        n = segment(&f, frame, rows[i].known_peer ? f.remote.port : 9, rows[i].to, rows[i].flags);
        frame[50] ^= 1; /* a bad checksum does not change who gets it */
        T_EQ_INT(input(&f, frame, n), rows[i].want);
    }
    n = segment(&f, frame, f.remote.port, 700, ACK);
    frame[50] ^= 1;
    T_EQ_INT(input(&f, frame, n), A);
#define VARIANT(change, want)                 \
    do {                                      \
        T_CONTEXT("%s", #change);             \
        memcpy(broken, frame, sizeof(frame)); \
        change;                               \
        T_EQ_INT(input(&f, broken, n), want); \
    } while (0)
    VARIANT(broken[5] ^= 1, N);                       /* another station's MAC address */
    VARIANT(broken[12] = 0x86, N);                    /* not IPv4 */
    VARIANT(sg_put_be16(broken + 12, 0x8100), N);     /* tagged */
    VARIANT(broken[33] ^= 1, N);                      /* not our IP address */
    VARIANT(broken[23] = 17, N);                      /* UDP */
    VARIANT(broken[20] = 0x20, A);                    /* a first fragment: dropped */
    VARIANT(broken[21] = 1, N);                       /* a later one */
    VARIANT(broken[14] = 0x44, N);                    /* IP header too short */
    VARIANT(broken[14] = 0x4f, N);                    /* IP header longer than the packet */
    VARIANT(broken[46] = 0x40, N);                    /* TCP header too short */
    VARIANT(broken[46] = 0xf0, N);                    /* TCP header longer than the packet */
    VARIANT(sg_put_be16(broken + 16, 1400), N);       /* longer than the frame */
    VARIANT(sg_put_be16(broken + 12, 0x0806), A | N); /* malformed ARP */
    n = 20;
    VARIANT((void)0, N);
    n = 0;
    VARIANT((void)0, N);
    wire_free(f.w);
}

/*
 * The stack behind the NIC would reassemble a segment of ours, know no such connection, and reset
 * it (RFC 9293, section 3.5.2).  So the first fragment is dropped; without it the others cannot be
 * reassembled.
 */
static void fragments__of_ours_never_reach_the_nic(void)
{
    static const struct {
        uint16_t to;
        bool known_peer;
        uint16_t bits;
        unsigned want;
    } rows[] = {
        { 700, true, 0x2000, A },  { LISTENING, false, 0x2000, A }, { 22, false, 0x2000, N },
        { 700, false, 0x2000, N }, { 700, true, 0x2001, N }, /* a later one, without ports */
        { 700, true, 0x0001, N },                            /* the last one */
    };
    struct demux_fixture f;
    struct sg_port_counters c;
    uint8_t frame[128];
    size_t n, i, dropped = 0;

    set_up(&f, 45);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        n = segment(&f, frame, rows[i].known_peer ? f.remote.port : 9, rows[i].to, ACK);
        sg_put_be16(frame + 20, rows[i].bits);
        T_EQ_INT(input(&f, frame, n), rows[i].want);
        dropped += rows[i].want == A;
        sg_port_counters(f.w->host[1].port, &c);
        T_EQ_U64(c.fragments, dropped);
    }
    n = segment(&f, frame, f.remote.port, 700, ACK); /* eight octets of TCP */
    sg_put_be16(frame + 20, 0x2000);
    sg_put_be16(frame + 16, 28);
    T_EQ_INT(input(&f, frame, n), A);
    T_EQ_INT(f.b.closes, 0);
    wire_free(f.w);
}

static void verdict__time_wait_belongs_to_the_adapter(void)
{
    struct sg_port_counters c;
    struct demux_fixture f;
    uint8_t frame[128];
    size_t n;

    set_up(&f, 2);
    peer_shutdown(&f.b); /* closes first, so it enters TIME-WAIT */
    f.a.shut_on_peer_close = true;
    wire_settle(f.w, 1000 * WIRE_MS);
    T_EQ_INT(f.b.closes, 1);
    n = segment(&f, frame, f.remote.port, 700, RST); /* not the expected sequence number */
    T_EQ_INT(input(&f, frame, n), A);
    sg_port_counters(f.w->host[1].port, &c);
    T_EQ_INT(c.connections, 1);
    n = segment(&f, frame, f.remote.port, 700, ACK | FIN);
    T_EQ_INT(input(&f, frame, n), A);
    wire_settle(f.w, 60 * WIRE_S);
    T_EQ_INT(input(&f, frame, n), N);
    wire_free(f.w);
}

static void checksum__bad_ones_are_dropped(void)
{
    struct demux_fixture f;
    struct sg_port_counters c;
    uint8_t frame[128];
    size_t n, i;

    set_up(&f, 3);
    for (i = 0; i < 20; i++) { /* every octet of the TCP header */
        n = segment(&f, frame, 9, LISTENING, SYN);
        frame[34 + i] ^= 0x10;
        if (i < 4 || i == 12) { /* ports, header length: another verdict */
            continue;
        }
        T_EQ_INT(input(&f, frame, n), A);
    }
    sg_port_counters(f.w->host[1].port, &c);
    T_EQ_U64(c.checksum_errors, 15);
    T_EQ_INT(c.connections, 1);
    n = segment(&f, frame, 9, LISTENING, SYN);
    T_EQ_INT(input(&f, frame, n), A);
    sg_port_counters(f.w->host[1].port, &c);
    T_EQ_INT(c.connections, 2);
    wire_free(f.w);
}

static unsigned connections(const struct demux_fixture *f)
{
    struct sg_port_counters c;

    sg_port_counters(f->w->host[1].port, &c);
    return c.connections;
}

/*
 * Somebody sends SYNs and nothing else.  The number of half-open connections is bounded, and yet a
 * client whose answer comes within a round trip gets through: the oldest one that has had that time
 * makes room (RFC 4987, section 3.4), without a RST, which would go to whoever has the address.
 */
static void half_open__the_oldest_makes_room(void)
{
    struct demux_fixture f;
    struct sg_port_counters c;
    struct sg_endpoint to;
    struct peer honest = { 0 };
    enum sg_stream_end why;
    uint8_t frame[128];
    size_t n;
    unsigned i;

    set_up(&f, 4);
    f.remote.ip[3] = 77; /* no such host */
    for (i = 0; i < 200; i++) {
        n = segment(&f, frame, (uint16_t)(1000 + i), LISTENING, SYN);
        T_EQ_INT(input(&f, frame, n), A);
        T_EQ_INT(connections(&f), 1 + MIN(i + 1, 64)); /* the backlog is 8 */
        wire_settle(f.w, 2 * WIRE_MS);
    }
    sg_port_counters(f.w->host[1].port, &c);
    T_EQ_U64(c.syns_dropped, 200 - 64);
    to = wire_endpoint(&f.w->host[1], LISTENING);
    T_TRUE(peer_connect(f.w, &honest, 0, &to, &why));
    wire_settle(f.w, 10 * WIRE_MS);
    T_EQ_INT(honest.connects, 1);
    wire_settle(f.w, 50 * WIRE_S);
    T_EQ_INT(connections(&f), 2);
    wire_free(f.w);
}

/*
 * Many peers connect in one instant, more than may be half-open.  None of them is dropped after its
 * SYN was answered, so none is reset: TCP of those whose SYN was dropped tries again.
 */
enum { MANY = 300 };

static struct peer honest[MANY], servers[MANY];
static unsigned taken;

static bool take_next(void *user, struct sg_stream *s)
{
    T_TRUE(user == servers && taken < MANY);
    return peer_accept(&servers[taken++], s);
}

static void half_open__many_at_once(void)
{
    struct sg_endpoint to = { .family = 4, .port = LISTENING + 1 };
    struct sg_stream_net *net;
    enum sg_stream_end why;
    struct demux_fixture f;
    unsigned i;

    set_up(&f, 4);
    net = f.w->host[1].net;
    T_NOT_NULL(net->ops->listen(net, &to, 8, take_next, servers, &why));
    to = wire_endpoint(&f.w->host[1], to.port);
    for (i = 0; i < MANY; i++) {
        servers[i].wire = f.w;
        T_TRUE(peer_connect(f.w, &honest[i], 0, &to, &why));
    }
    wire_settle(f.w, 20 * WIRE_S);
    for (i = 0; i < MANY; i++) {
        T_CONTEXT("client %u", i);
        T_EQ_INT(honest[i].connects, 1);
        T_EQ_INT(honest[i].closes, 0);
    }
    wire_free(f.w);
}

/* A paused listener drops SYNs, as Linux does when its queue is full; the peers send them again. */
static void paused__a_client_tries_again(void)
{
    struct demux_fixture f;
    struct sg_stream_net *net;
    struct sg_port_counters c;
    struct sg_endpoint to;
    struct peer client = { 0 };
    enum sg_stream_end why;

    set_up(&f, 44);
    net = f.w->host[1].net;
    net->ops->pause(net, f.l, true);
    to = wire_endpoint(&f.w->host[1], LISTENING);
    T_TRUE(peer_connect(f.w, &client, 0, &to, &why));
    wire_settle(f.w, 500 * WIRE_MS);
    T_EQ_INT(client.connects + client.closes, 0);
    sg_port_counters(f.w->host[1].port, &c);
    T_EQ_U64(c.syns_dropped, 1);
    net->ops->pause(net, f.l, false);
    wire_settle(f.w, 3 * WIRE_S);
    T_EQ_INT(client.connects, 1);
    T_EQ_INT(client.closes, 0);
    wire_free(f.w);
}

static uint8_t answer_flags;
static uint32_t answer_ack;

static void keep_answer(struct wire *w, int from, const uint8_t *frame, size_t len)
{
    if (from == 1 && len >= 54 && sg_get_be16(frame + 12) == 0x0800) {
        answer_flags = frame[47];
        answer_ack = sg_get_be32(frame + 42);
    }
}

/*
 * A duplicate of an old SYN does not reopen a connection in TIME-WAIT: only one beyond the last
 * sequence number may (RFC 9293, section 3.10.7.4, MAY-2), or old segments would count in the new
 * connection (RFC 6191).
 */
static void reopening__old_syns_do_not(void)
{
    static const struct {
        int32_t beyond;
        uint8_t want;
    } rows[] = {
        { -1000000, ACK },
        { -1, ACK },
        { 0, ACK },
        { 1, SYN | ACK },
    };
    struct sg_endpoint any = { .family = 4, .port = 700 };
    struct wire_segment s = { .flags = SYN, .window = 1000 };
    enum sg_stream_end why;
    struct demux_fixture f;
    uint8_t frame[128];
    uint32_t last;
    unsigned i;

    set_up(&f, 46);
    T_NOT_NULL(
        f.w->host[1].net->ops->listen(f.w->host[1].net, &any, 8, peer_accept, &f.late, &why));
    f.w->tap = keep_answer;
    peer_shutdown(&f.b);
    f.a.shut_on_peer_close = true;
    wire_settle(f.w, 10 * WIRE_MS);
    T_EQ_INT(f.b.closes, 1);
    last = answer_ack;
    f.w->host[0].drops_all = true;
    s.dst_mac = f.w->host[1].mac;
    s.src_mac = f.w->host[0].mac;
    s.src = f.remote;
    s.dst = f.local;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%d beyond", rows[i].beyond);
        s.seq = last + (uint32_t)rows[i].beyond;
        answer_flags = 0;
        T_EQ_INT(input(&f, frame, wire_build(frame, &s)), A);
        T_EQ_INT(answer_flags & (SYN | ACK), rows[i].want);
        T_EQ_INT(connections(&f), 1);
    }
    wire_free(f.w);
}

static void reopening__new_syn_ends_time_wait(void)
{
    struct demux_fixture f;
    struct sg_port_counters c;
    uint8_t frame[128];
    struct wire_segment s = { .flags = SYN, .window = 1000, .seq = 0 };
    struct sg_endpoint any = { .family = 4, .port = 700 };
    enum sg_stream_end why;
    struct peer late = { 0 };
    bool opened = false;
    unsigned i;

    set_up(&f, 5);
    late.wire = f.w;
    T_NOT_NULL(f.w->host[1].net->ops->listen(f.w->host[1].net, &any, 8, peer_accept, &late, &why));
    f.w->tap = keep_answer;
    peer_shutdown(&f.b);
    f.a.shut_on_peer_close = true;
    wire_settle(f.w, 10 * WIRE_MS);
    T_EQ_INT(f.b.closes, 1);
    f.w->host[0].drops_all = true;
    s.dst_mac = f.w->host[1].mac;
    s.src_mac = f.w->host[0].mac;
    s.src = f.remote;
    s.dst = f.local;
    for (i = 0; i < 4; i++) { /* one of these is beyond the old sequence numbers */
        s.seq = i << 30;
        answer_flags = 0;
        T_EQ_INT(input(&f, frame, wire_build(frame, &s)), A);
        wire_settle(f.w, WIRE_MS);
        opened |= (answer_flags & (SYN | ACK)) == (SYN | ACK);
    }
    T_TRUE(opened);
    wire_settle(f.w, 60 * WIRE_S);
    sg_port_counters(f.w->host[1].port, &c);
    T_EQ_INT(c.connections, 0); /* the new one was half-open, and has timed out */
    wire_free(f.w);
}

static void arp__reply_and_announcement_stay_inside(void)
{
    struct demux_fixture f;
    uint8_t request[42] = { 0 };
    struct sg_port_counters before, after;

    set_up(&f, 6);
    memset(request, 0xff, 6);
    memcpy(request + 6, f.w->host[0].mac, 6);
    sg_put_be16(request + 12, 0x0806);
    memcpy(request + 14, (uint8_t[]){ 0, 1, 8, 0, 6, 4, 0, 1 }, 8);
    memcpy(request + 22, f.w->host[0].mac, 6);
    memcpy(request + 28, f.w->host[0].ip.ip, 4);
    memcpy(request + 38, f.w->host[1].ip.ip, 4);
    sg_port_counters(f.w->host[1].port, &before);
    T_EQ_INT(input(&f, request, sizeof(request)), A | N);
    sg_port_counters(f.w->host[1].port, &after);
    T_EQ_U64(after.frames_out, before.frames_out);
    wire_free(f.w);
}

/* Segments with random headers and options, at a living connection, a listener and a half-open. */
static void hostile__random_segments(void)
{
    uint64_t seed;

    for (seed = 1; seed <= 40; seed++) {
        struct demux_fixture f;
        uint8_t frame[2048], payload[1400];
        unsigned i;

        T_CONTEXT("seed %" PRIu64, seed);
        set_up(&f, 100 + seed);
        memset(payload, 0x55, sizeof(payload));
        f.a.to_send = 2000;
        f.b.to_send = 100000;
        peer_send(&f.b);
        for (i = 0; i < 1500; i++) {
            struct wire_segment s = {
                .dst_mac = f.w->host[1].mac,
                .src_mac = f.w->host[0].mac,
                .src = f.remote,
                .dst = f.local,
                .payload = payload,
            };
            uint64_t r = wire_random(f.w);
            size_t n, tcp_len;

            s.flags = (uint8_t)(r % 64);
            s.seq = (uint32_t)(wire_random(f.w) >> (r % 31));
            s.ack = (uint32_t)(wire_random(f.w) >> (r % 29));
            s.window = (uint16_t)(wire_random(f.w) >> (r % 20));
            s.payload_len = wire_random(f.w) % 3 ? wire_random(f.w) % 1400 : 0;
            if (r % 5 == 0) {
                s.dst.port = LISTENING;
                s.src.port = (uint16_t)(r % 7 + 1);
            }
            n = wire_build(frame, &s);
            tcp_len = n - 34;
            if (r % 3 == 0 && s.payload_len >= 40) { /* options */
                uint8_t *tcp = frame + 34;
                unsigned k;

                tcp[12] = (uint8_t)((5 + wire_random(f.w) % 11) << 4);
                for (k = 0; k < 40; k++) {
                    static const uint8_t kinds[] = { 0, 1, 2, 3, 4, 5, 8, 10, 4, 3, 2, 1, 255 };

                    tcp[20 + k] = kinds[wire_random(f.w) % sizeof(kinds)];
                }
                tcp[16] = tcp[17] = 0;
                sg_put_be16(tcp + 16,
                            wire_checksum(tcp, tcp_len, wire_pseudo_header(frame + 14, tcp_len)));
            }
            input(&f, frame, n);
            if (i % 16 == 0) {
                wire_settle(f.w, 200 * WIRE_MS);
            }
        }
        wire_free(f.w);
    }
}

/*
 * An attacker on the path changes one thing in otherwise correct segments.  A desynchronised pair
 * acknowledges for ever, so the wire loses enough to end that, and the changes are limited.
 */
enum { MUTATIONS_MAX = 300 };

static unsigned mutations;

static void hostile__mutated_traffic_tap(struct wire *w, int from, const uint8_t *frame, size_t len)
{
    uint8_t copy[2048];
    uint8_t *tcp = copy + 34;
    unsigned i, n = wire_random(w) % 3;

    if (sg_get_be16(frame + 12) != 0x0800 || len > sizeof(copy) || wire_random(w) % 4 ||
        mutations++ >= MUTATIONS_MAX) {
        return;
    }
    memcpy(copy, frame, len);
    for (i = 0; i <= n; i++) {
        size_t at = 4 + wire_random(w) % ((tcp[12] >> 4) * 4u - 4);

        if (at != 12) {
            tcp[at] = (uint8_t)wire_random(w);
        }
    }
    tcp[16] = tcp[17] = 0;
    sg_put_be16(tcp + 16, wire_checksum(tcp, len - 34, wire_pseudo_header(copy + 14, len - 34)));
    sg_port_input(w->host[!from].port, copy, len); /* ahead of the true one */
}

static void hostile__mutated_traffic(void)
{
    uint64_t seed;

    for (seed = 1; seed <= 40; seed++) {
        struct demux_fixture f;

        T_CONTEXT("seed %" PRIu64, seed);
        set_up(&f, 200 + seed);
        f.w->tap = hostile__mutated_traffic_tap;
        f.w->faults.loss = 100;
        mutations = 0;
        f.a.to_send = f.b.to_send = 1000000;
        if (f.a.s) {
            peer_send(&f.a);
        }
        if (f.b.s) {
            peer_send(&f.b);
        }
        wire_settle(f.w, 20 * WIRE_S);
        f.w->tap = NULL;
        wire_free(f.w);
    }
}

static const struct t_case cases[] = {
    { "verdict: table", verdict__table },
    { "fragments: of ours never reach the NIC", fragments__of_ours_never_reach_the_nic },
    { "verdict: TIME-WAIT belongs to the adapter", verdict__time_wait_belongs_to_the_adapter },
    { "checksum: bad ones are dropped", checksum__bad_ones_are_dropped },
    { "half-open connections: the oldest makes room", half_open__the_oldest_makes_room },
    { "half-open connections: many peers at once", half_open__many_at_once },
    { "a paused listener: a client tries again", paused__a_client_tries_again },
    { "reopening: old SYNs do not", reopening__old_syns_do_not },
    { "reopening: a new SYN ends TIME-WAIT", reopening__new_syn_ends_time_wait },
    { "ARP: replies and announcements stay inside", arp__reply_and_announcement_stay_inside },
    { "hostile: random segments", hostile__random_segments },
    { "hostile: mutated traffic", hostile__mutated_traffic },
};

T_MAIN(cases)
