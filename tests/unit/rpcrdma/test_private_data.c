/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tools/rpcrdma/private_data.h: private data as a peer may send it, and what follows from it. */
#include "hex.h"
#include "private_data.h"
#include "tap.h"

struct private_row {
    const char *shows, *what, *octets;
    bool present, remote_inv;
    uint32_t send, recv;
    size_t at;
};

static const struct private_row rows[] = {
    { "", "alone", "f6ab0e18 01 01 03 07", true, true, 4096, 8192, 0 },
    { "", "the smallest sizes, no R", "f6ab0e18 01 00 00 00", true, false, 1024, 1024, 0 },
    { "", "the largest sizes", "f6ab0e18 01 00 ff ff", true, false, 262144, 262144, 0 },
    { "PVT-09", "one octet in front", "00 f6ab0e18 01 01 03 03", true, true, 4096, 4096, 1 },
    { "PVT-09", "two", "f6ab f6ab0e18 01 01 03 03", true, true, 4096, 4096, 2 },
    { "PVT-09", "three", "f6ab0e f6ab0e18 01 01 03 03", true, true, 4096, 4096, 3 },
    { "PVT-09", "an MPA header in front", "c0208010 f6ab0e18 01 01 03 03", true, true, 4096, 4096,
      4 },
    { "", "octets behind", "f6ab0e18 01 01 03 03 ffff", true, true, 4096, 4096, 0 },
    { "PVT-03", "reserved bits are set", "f6ab0e18 01 fe 03 03", true, false, 4096, 4096, 0 },
    { "PVT-03", "reserved bits and R are set", "f6ab0e18 01 ff 03 03", true, true, 4096, 4096, 0 },
    { "PVT-06", "nothing", "", false, false, 1024, 1024, 0 },
    { "PVT-07", "foreign data", "0011223344556677 8899aabb", false, false, 1024, 1024, 0 },
    { "PVT-07", "nearly the identifier", "f6ab0e19 01 01 03 03", false, false, 1024, 1024, 0 },
    { "PVT-08 PVT-06", "version 2", "f6ab0e18 02 01 03 03", false, false, 1024, 1024, 0 },
    { "PVT-08 PVT-06", "version 0", "f6ab0e18 00 01 03 03", false, false, 1024, 1024, 0 },
    { "PVT-08 PVT-06", "an octet is missing", "f6ab0e18 01 01 03", false, false, 1024, 1024, 0 },
    { "PVT-08 PVT-06", "only the identifier", "f6ab0e18", false, false, 1024, 1024, 0 },
    { "PVT-08", "version 2 first, then version 1", "f6ab0e18 02 00 f6ab0e18 01 01 01 01", true,
      true, 2048, 2048, 6 },
};

static void parse__rows(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        const struct private_row *r = &rows[i];
        uint8_t buf[64];
        struct rr_private p = rr_private_parse(hex(r->octets, buf, sizeof(buf)));

        T_CONTEXT("%s", r->what);
        T_SHOWS(r->shows) {
            T_EQ_INT(p.present, r->present);
            T_EQ_INT(p.remote_inv, r->remote_inv);
            T_EQ_U64(p.send_size, r->send);
            T_EQ_U64(p.recv_size, r->recv);
            T_EQ_U64(p.at, r->at);
        }
    }
}

static void parse__every_alignment(void)
{
    for (size_t at = 0; at + RR_PRIVATE_LEN <= 512; at++) {
        uint8_t pd[512] = { 0 };
        struct rr_private p = { .remote_inv = true, .send_size = 4096, .recv_size = 65536 };

        rr_private_emit(&p, pd + at);
        T_CONTEXT("at octet %zu", at);
        p = rr_private_parse(sg_span_of(pd, sizeof(pd)));
        T_SHOWS("PVT-09") {
            T_TRUE(p.present);
            T_EQ_U64(p.at, at);
            T_EQ_U64(p.recv_size, 65536);
        }
    }
}

static void emit__sizes_and_reserved_bits(void)
{
    static const struct {
        uint32_t octets;
        uint8_t code;
    } sizes[] = { { 1024, 0 },     { 2047, 0 }, { 2048, 1 }, { 4096, 3 },        { 262143, 254 },
                  { 262144, 255 }, { 0, 0 },    { 1023, 0 }, { UINT32_MAX, 255 } };

    for (size_t i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
        struct rr_private p = { .send_size = sizes[i].octets, .recv_size = 1024, .reserved = 0xfe };
        uint8_t buf[RR_PRIVATE_LEN];

        memset(buf, 0xa5, sizeof(buf));
        rr_private_emit(&p, buf);
        T_CONTEXT("%u octets", sizes[i].octets);
        T_EQ_U64(buf[6], sizes[i].code);
        T_SHOWS("PVT-02") {
            T_EQ_U64(buf[5], 0);
        }
    }
}

/* Each direction has the smaller of what its sender sends and its receiver receives. */
static void thresholds(void)
{
    struct rr_private client = { .send_size = 4096, .recv_size = 1024, .remote_inv = true };
    struct rr_private server = { .send_size = 65536, .recv_size = 2048, .remote_inv = true };
    struct rr_private absent = rr_private_parse(SG_SPAN_NONE);

    T_EQ_U64(rr_threshold(&client, &server), 2048);
    T_EQ_U64(rr_threshold(&server, &client), 1024);
    T_TRUE(rr_may_invalidate(&client, &server));
    T_SHOWS("PVT-06") {
        T_EQ_U64(rr_threshold(&client, &absent), 1024);
        T_EQ_U64(rr_threshold(&absent, &server), 1024);
        T_FALSE(rr_may_invalidate(&client, &absent));
        T_FALSE(rr_may_invalidate(&absent, &server));
    }
}

static void hex_text(void)
{
    static const struct {
        const char *text;
        size_t len;
    } texts[] = { { "f6AB 0e18", 4 }, { "0", 0 },         { "f6 a", 0 }, { "", 0 },
                  { "0x12", 0 },      { "000102030", 0 }, { "12g4", 0 }, { "0001020304", 0 } };
    uint8_t out[4] = { 0 };

    for (size_t i = 0; i < SG_ARRAY_SIZE(texts); i++) {
        T_CONTEXT("\"%s\"", texts[i].text);
        T_EQ_U64(rr_private_from_hex(texts[i].text, out, sizeof(out)), texts[i].len);
        if (i == 0) {
            T_EQ_U64(sg_get_be32(out), 0xf6ab0e18);
        }
    }
}

static const struct t_case cases[] = {
    { "private data as peers send it", parse__rows },
    { "private data at every alignment", parse__every_alignment },
    { "sizes are rounded down, reserved bits are 0", emit__sizes_and_reserved_bits },
    { "octets as hex", hex_text },
    { "thresholds and invalidation of two sides", thresholds },
};

T_MAIN(cases)
