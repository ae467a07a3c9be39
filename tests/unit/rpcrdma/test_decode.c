/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The decoder on sound traffic: what it reports, and what TCP and iWARP may do on the way. */
#include "exchanges.h"
#include "tap.h"

static struct maker m;

static const struct read3 read_whole = {
    .count = 1001, .offered = 1004, .result = 1001, .placed = 1001, .returned = 1001
};
static const struct write3 write_whole = { .count = 5001,
                                           .chunk = 5001,
                                           .position = WRITE3_POSITION };
static const struct long3 long_whole = {
    .call_proc = RR_NOMSG, .reply_proc = RR_NOMSG, .reply_chunk = true, .reply_octets = 8000
};

static void traffic(void)
{
    null3(&m, 1);
    read3(&m, 2, &read_whole);
    write3(&m, 3, &write_whole);
    long3(&m, 4, &long_whole);
}

enum { TRAFFIC = 4 };

static void expect(uint64_t connections, uint64_t transactions, uint64_t findings)
{
    if (m.report.connections != connections || m.report.transactions != transactions ||
        m.report.findings != findings) {
        printf("# %s\n", m.out->str);
    }
    T_EQ_U64(m.report.connections, connections);
    T_EQ_U64(m.report.transactions, transactions);
    T_EQ_U64(m.report.findings, findings);
}

static void contains(const char *text)
{
    if (!strstr(m.out->str, text)) {
        printf("# %s\n", m.out->str);
        T_FAIL("the report lacks \"%s\"", text);
    }
    T_TRUE(true);
}

/* ---- Reports ---- */

static void text__transactions(void)
{
    maker_init(&m);
    maker_open(&m);
    traffic();
    maker_finish(&m);
    expect(1, TRAFFIC, 0);
    contains("192.0.2.11 port ");
    contains(" to 192.0.2.22 port 20049, MPA revision 1\n");
    contains("private data of the client: send 4096, receive 4096, R (f6ab0e1801010303)\n");
    contains("inline thresholds: to the server 4096, to the client 4096\n");
    contains("XID 0x00000001 from the client: NFS3 NULL\n");
    contains("XID 0x00000002 from the client: NFS3 READ\n");
    contains("invalidates STag 0x1111\n");
    contains("write 0: STag 0x1111, 502 octets at 0x10000, returned 502, moved 502 in 1 segments");
    contains("write 0: STag 0x1111, 502 octets at 0x101f6, returned 499, moved 499 in 1 segments");
    contains("XID 0x00000003 from the client: NFS3 WRITE\n");
    contains("read 96: STag 0x2222, 5001 octets at 0x20000, moved 5001 in 4 segments\n");
    contains("XID 0x00000004 from the client: NFS3 GETATTR\n");
    contains("RDMA_NOMSG of ");
    contains("reply 0: STag 0x3333, 5000 octets at 0x30000, returned 5000, moved 5000 in 4 seg");
    contains("4 transactions, 0 without a Reply, 0 breaches\n");
    maker_free(&m);
}

static void json__transactions(void)
{
    maker_init(&m);
    m.report.json = true;
    maker_open(&m);
    traffic();
    null_call(&m, RR_OUT, 5);
    null_call(&m, RR_OUT, 6);
    null_reply(&m, RR_BACK, 6, 0);
    maker_finish(&m);
    contains("{\"connection\": {\"number\": 1, \"client\": \"192.0.2.11 port ");
    contains("{\"transaction\": {\"connection\": 1, \"from\": \"client\", \"xid\": \"0x2\", "
             "\"name\": \"NFS3 READ\", \"call\": \"RDMA_MSG\", ");
    contains("{\"kind\": \"write\", \"chunk\": 0, \"stag\": \"0x1111\", \"length\": 502, "
             "\"offset\": \"0x10000\", \"returned\": 502, \"moved\": 502, \"segments\": 1}");
    contains("\"kind\": \"read\", \"position\": 96");
    contains("\"invalidated\": \"0x1111\", \"findings\": []}}\n");
    contains("\"findings\": [{\"rule\": \"RPC-02\", \"section\": \"3.3.1\", \"text\": ");
    contains("\"transactions\": 6, \"without_reply\": 1, \"breaches\": 1, "
             "\"rules\": {\"RPC-02\": 1}}}\n");
    maker_free(&m);
}

/* The server calls on the client's connection, with an XID that the client uses, too. */
static void callbacks__by_direction(void)
{
    maker_init(&m);
    maker_open(&m);
    null3(&m, 1);
    null_call(&m, RR_OUT, 7);
    callback_call(&m, 7);
    null_reply(&m, RR_OUT, 7, 1);
    null_reply(&m, RR_BACK, 7, GRANT);
    maker_finish(&m);
    contains("XID 0x00000007 from the client: NFS3 NULL\n");
    contains("XID 0x00000007 from the server: NFS4 callback CB_COMPOUND CB_SEQUENCE CB_RECALL\n");
    contains("3 transactions, 0 without a Reply, 0 breaches\n");
    maker_free(&m);
}

static void only_what_is_broken(void)
{
    maker_init(&m);
    m.report.all = false;
    maker_open(&m);
    traffic();
    null_call(&m, RR_OUT, 6);
    null_reply(&m, RR_BACK, 6, 0);
    maker_finish(&m);
    expect(1, TRAFFIC + 1, 1);
    contains("XID 0x00000006");
    contains("  RPC-02 (RFC 8166 3.3.1): a grant of zero credits\n");
    T_NULL(strstr(m.out->str, "XID 0x00000002"));
    maker_free(&m);
}

/* ---- Private data ---- */

/* What a side may send, and what that means. */
static const struct private_form {
    const char *octets;
    uint32_t send, receive;
    bool r;
} forms[] = {
    { "", 1024, 1024, false },
    { "f6ab0e1801000000", 1024, 1024, false },
    { "f6ab0e1801010000", 1024, 1024, true },
    { "f6ab0e1801010303", 4096, 4096, true },
    { "f6ab0e1801000307", 4096, 8192, false },
    { "f6ab0e180101ffff", 262144, 262144, true },
    { "f6ab0e18010103", 1024, 1024, false },
    { "f6ab0e1802010303", 1024, 1024, false },
    { "0011223344556677", 1024, 1024, false },
    { "004d41f6ab0e18010107ff99", 8192, 262144, true },
};

/* The client's form, the server's, and an invalidation, which needs R of both. */
static void exchange_forms(const struct private_form *client, const struct private_form *server)
{
    static const uint8_t none;
    uint8_t octets[2][32];
    const struct private_form *by_side[] = { client, server };
    struct read3 read = read_whole;

    for (unsigned dir = 0; dir < 2; dir++) {
        size_t len = rr_private_from_hex(by_side[dir]->octets, octets[dir], sizeof(octets[dir]));

        m.raw[dir] = len ? sg_span_of(octets[dir], len) : sg_span_of(&none, 0);
    }
    maker_open(&m);
    read.opcode = SG_OP_SEND_INV;
    read.stag = WRITE_STAG;
    read3(&m, 1, &read);
    maker_fin(&m, RR_OUT);
}

static void check_forms(const struct private_form *client, const struct private_form *server)
{
    char text[120];

    T_CONTEXT("client \"%s\", server \"%s\"", client->octets, server->octets);
    maker_init(&m);
    exchange_forms(client, server);
    maker_finish(&m);
    snprintf(text, sizeof(text), "inline thresholds: to the server %u, to the client %u\n",
             SG_MIN(client->send, server->receive), SG_MIN(server->send, client->receive));
    T_SHOWS("PVT-06 PVT-07 PVT-08 PVT-09") {
        contains(text);
    }
    T_SHOWS("PVT-05") {
        T_EQ_U64(m.report.broken[PVT_05], !(client->r && server->r));
        T_EQ_U64(m.report.findings, m.report.broken[PVT_05]);
    }
    if (client->octets[0]) {
        snprintf(text, sizeof(text), "(%s)\n", client->octets);
        contains(text);
    }
    maker_free(&m);
}

static void all_forms(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(forms) * SG_ARRAY_SIZE(forms); i++) {
        check_forms(&forms[i / SG_ARRAY_SIZE(forms)], &forms[i % SG_ARRAY_SIZE(forms)]);
    }
}

/* The client comes again, from the same port, with another form each time. */
static void forms_change(void)
{
    maker_init(&m);
    m.report.json = true;
    for (size_t i = 0; i < SG_ARRAY_SIZE(forms); i++) {
        exchange_forms(&forms[i], &forms[5]);
    }
    maker_finish(&m);
    T_SHOWS("PVT-01") {
        T_EQ_U64(m.report.connections, SG_ARRAY_SIZE(forms));
        for (size_t i = 0; i < SG_ARRAY_SIZE(forms); i++) {
            char text[200];

            snprintf(text, sizeof(text), "\"client_private_data\": {\"octets\": \"%s\", ",
                     forms[i].octets);
            contains(text);
            snprintf(text, sizeof(text),
                     "\"threshold_to_server\": %u, \"threshold_to_client\": %u}", forms[i].send,
                     forms[i].receive);
            contains(text);
        }
    }
    maker_free(&m);
}

/* ---- Links, IP, MPA ---- */

static void links_and_startup(void)
{
    for (unsigned bits = 0; bits < 64; bits++) {
        T_CONTEXT("settings 0x%02x", bits);
        maker_init(&m);
        m.ipv6 = bits & 1;
        m.vlan = bits & 2;
        m.crc = bits & 4;
        m.markers = bits & 8;
        m.rev = bits & 16 ? SG_MPA_REV_2 : SG_MPA_REV_1;
        m.p2p = (bits & 48) == 48;
        maker_open(&m);
        traffic();
        maker_finish(&m);
        expect(1, TRAFFIC, 0);
        maker_free(&m);
    }
}

static void other_connections(void)
{
    maker_init(&m);
    m.client.present = m.server.present = false;
    m.server_port = 4420;
    maker_open(&m);
    traffic();
    maker_finish(&m);
    expect(0, 0, 0);
    contains("0 connections with RPC-over-RDMA, 1 others, 0 without their start\n");
    maker_free(&m);
}

static void other_port(void)
{
    const uint16_t ports[] = { 4420 };

    maker_init(&m);
    rr_decode_free(m.decode);
    m.decode = rr_decode_new(&m.report, ports, 1);
    m.client = m.server = rr_private_parse(SG_SPAN_NONE);
    m.server_port = 4420;
    maker_open(&m);
    null3(&m, 1);
    maker_finish(&m);
    expect(1, 1, 0);
    contains("private data of the client: none\n");
    contains("inline thresholds: to the server 1024, to the client 1024\n");
    maker_free(&m);
}

/* ---- TCP ---- */

/* The traffic in frames that arrive as @shuffle says: their numbers, changed in place. */
static void arrive(void (*shuffle)(size_t *order, size_t count))
{
    size_t order[256];

    maker_init(&m);
    m.hold = true;
    maker_open(&m);
    traffic();
    T_TRUE(m.held->len < SG_ARRAY_SIZE(order));
    for (size_t i = 0; i < m.held->len; i++) {
        order[i] = i;
    }
    shuffle(order, m.held->len);
    maker_release(&m, order, m.held->len);
    maker_finish(&m);
}

/* Everything behind startup changes places: segments overtake others, answers their questions. */
static void swap_pairs(size_t *order, size_t count)
{
    for (size_t i = 4; i + 1 < count; i += 2) {
        order[i] = i + 1;
        order[i + 1] = i;
    }
}

static void reverse_all(size_t *order, size_t count)
{
    for (size_t i = 4; i < count; i++) {
        order[i] = count + 3 - i;
    }
}

static void reordered(void)
{
    arrive(swap_pairs);
    expect(1, TRAFFIC, 0);
    maker_free(&m);
    arrive(reverse_all);
    expect(1, TRAFFIC, 0);
    maker_free(&m);
}

/* Retransmissions: each frame comes again after the next one. */
static void repeated(void)
{
    size_t order[256];

    maker_init(&m);
    m.hold = true;
    maker_open(&m);
    traffic();
    for (size_t i = 0; i < m.held->len; i++) {
        order[2 * i] = i;
        order[2 * i + 1] = i ? i - 1 : 0;
    }
    maker_release(&m, order, 2 * m.held->len);
    maker_finish(&m);
    expect(1, TRAFFIC, 0);
    maker_free(&m);
}

/* Whichever frame is missing: that is said, and what depends on it is not judged. */
static size_t lost_frame;

static void lose_one(size_t *order, size_t count)
{
    order[lost_frame] = SIZE_MAX;
}

static void lost(void)
{
    /* Nobody can miss the last one. */
    for (lost_frame = 4; lost_frame < 27; lost_frame++) {
        T_CONTEXT("frame %zu", lost_frame);
        arrive(lose_one);
        T_EQ_U64(m.report.findings, 0);
        contains("octets are missing from the capture");
        maker_free(&m);
    }
}

static void lose_start(size_t *order, size_t count)
{
    order[0] = order[1] = order[2] = SIZE_MAX;
}

static void without_start(void)
{
    arrive(lose_start);
    expect(0, 0, 0);
    contains("1 without their start\n");
    maker_free(&m);
}

static void lose_syns(size_t *order, size_t count)
{
    order[0] = order[1] = SIZE_MAX;
}

static void without_syn(void)
{
    arrive(lose_syns);
    expect(1, TRAFFIC, 0);
    maker_free(&m);
}

/* Two connections at once, and a third between the ports of the first. */
static void several_connections(void)
{
    struct maker second;

    maker_init(&m);
    maker_open(&m);
    second = m;
    second.client_port = 9999;
    maker_open(&second);
    null_call(&m, RR_OUT, 1);
    null_call(&second, RR_OUT, 1);
    null_reply(&second, RR_BACK, 1, GRANT);
    null_reply(&m, RR_BACK, 1, GRANT);
    null_call(&m, RR_OUT, 2);
    maker_fin(&m, RR_OUT);
    maker_open(&m);
    traffic();
    maker_finish(&m);
    expect(3, 3 + TRAFFIC, 0);
    contains("1 without a Reply");
    maker_free(&m);
}

/* A flipped bit fails the CRC: nothing behind it is believed. */
static void bad_crc(void)
{
    size_t order[256];

    maker_init(&m);
    m.hold = true;
    maker_open(&m);
    null3(&m, 1);
    ((GByteArray *)m.held->pdata[5])->data[100] ^= 1;
    for (size_t i = 0; i < m.held->len; i++) {
        order[i] = i;
    }
    maker_release(&m, order, m.held->len);
    null3(&m, 2);
    maker_finish(&m);
    T_EQ_U64(m.report.findings, 0);
    contains("cannot be followed further");
    maker_free(&m);
}

static const struct t_case cases[] = {
    { "text: chunks, placements, invalidation", text__transactions },
    { "JSON", json__transactions },
    { "callbacks are told from Calls by their direction", callbacks__by_direction },
    { "without --transactions only what is broken is printed", only_what_is_broken },
    { "private data of both sides, present, absent and unsound", all_forms },
    { "other private data after a reconnect", forms_change },
    { "IPv4, IPv6, VLANs, CRC, markers, both revisions", links_and_startup },
    { "connections that are not RPC-over-RDMA", other_connections },
    { "--port", other_port },
    { "reordered segments", reordered },
    { "repeated segments", repeated },
    { "a missing segment", lost },
    { "a capture without the connection's start", without_start },
    { "a capture that begins behind the SYN", without_syn },
    { "several connections, and reconnects", several_connections },
    { "a damaged FPDU", bad_crc },
};

T_MAIN(cases)
