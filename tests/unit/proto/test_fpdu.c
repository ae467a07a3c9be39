/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Framing by the engine: segmentation of the stream, CRC, markers, MULPDU
 * (RFC 5044 sections 4 to 6).  The reference for markers is a second implementation, by position.
 */
#include <string.h>

#include "aborts.h"
#include "base/crc32c.h"
#include "tap.h"
#include "rig.h"

#define REQ "4d504120 49442052 65712046 72616d65 "
#define REP "4d504120 49442052 65702046 72616d65 "

/* One FPDU with the markers that its position requires; independent of wire/fpdu.c. */
static size_t mark(uint8_t *out, uint32_t *pos, const uint8_t *ulpdu, size_t n)
{
    uint8_t plain[66000];
    size_t len = 0, at = 0, i, start;
    bool leading = *pos % 512 == 0;

    sg_put_be16(plain, (uint16_t)n);
    memcpy(plain + 2, ulpdu, n);
    len = n + 2;
    while (len % 4) {
        plain[len++] = 0;
    }
    if (leading) {
        memset(out, 0, 4);
        at = 4;
    }
    start = at;
    for (i = 0; i < len; i++) {
        if (at > start && (*pos + at) % 512 == 0) {
            sg_put_be16(out + at, 0);
            sg_put_be16(out + at + 2, (uint16_t)(at - start));
            at += 4;
        }
        out[at++] = plain[i];
    }
    if ((*pos + at) % 512 == 0) {
        sg_put_be16(out + at, 0);
        sg_put_be16(out + at + 2, (uint16_t)(at - start));
        at += 4;
    }
    sg_put_le32(out + at, sg_crc32c(0, out, at));
    at += 4;
    *pos += (uint32_t)at;
    return at;
}

/* A Send of n octets 'b' as ULPDU. */
static size_t send_ulpdu(uint8_t *buf, uint32_t msn, uint32_t mo, bool last, size_t n, uint8_t b)
{
    memset(buf, 0, 18);
    buf[0] = last ? 0x41 : 0x01;
    buf[1] = 0x43;
    sg_put_be32(buf + 10, msn);
    sg_put_be32(buf + 14, mo);
    memset(buf + 18, b, n);
    return 18 + n;
}

static size_t plain_fpdu(uint8_t *out, const uint8_t *ulpdu, size_t n)
{
    sg_put_be16(out, (uint16_t)n);
    memcpy(out + 2, ulpdu, n);
    n += 2;
    while (n % 4) {
        out[n++] = 0xee; /* pad need not be zero for a receiver */
    }
    sg_put_le32(out + n, sg_crc32c(0, out, n));
    return n + 4;
}

/* The same five FPDUs, cut once at each position, and into pieces of each size up to 90 octets. */
static void any_segmentation(void)
{
    static uint8_t stream[1024];
    uint8_t ulpdu[256];
    size_t n = 0, cut, at;
    unsigned i;

    for (i = 1; i <= 5; i++) {
        n += plain_fpdu(stream + n, ulpdu, send_ulpdu(ulpdu, i, 0, true, i * 13, (uint8_t)i));
    }
    for (cut = 1; cut < n; cut++) {
        T_CONTEXT("cut at %zu", cut);
        rig_start(NULL);
        rig->recvs = 5;
        rig_passive();
        if (cut <= 90) {
            for (at = 0; at < n; at += cut) {
                rig_say_octets(stream + at, SG_MIN(cut, n - at));
            }
        } else {
            rig_say_octets(stream, cut);
            rig_say_octets(stream + cut, n - cut);
        }
        T_SHOWS("MPA-05 MPA-09 MPA-23 MPA-39 MPA-40 MPA-42") {
            T_EQ_STR(rig_log(), "recv(1,13) recv(2,26) recv(3,39) recv(4,52) recv(5,65)");
        }
        T_EQ_INT(rig->recv_buf[4 * RIG_RECV_ROOM + 64], 5);
        rig_stop();
    }
}

/* A change of any bit of an FPDU behind its length field is detected, whole or split. */
static void every_bit_counts(void)
{
    uint8_t ulpdu[64], fpdu[64], bad[64];
    size_t n = plain_fpdu(fpdu, ulpdu, send_ulpdu(ulpdu, 1, 0, true, 3, 'x'));
    size_t bit;

    for (bit = 16; bit < n * 8; bit++) {
        T_CONTEXT("bit %zu", bit);
        rig_start(NULL);
        rig->recvs = 1;
        rig_passive();
        memcpy(bad, fpdu, n);
        bad[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
        if (bit & 1) {
            rig_say_octets(bad, n);
        } else {
            rig_say_octets(bad, 5);
            rig_say_octets(bad + 5, n - 5);
        }
        T_SHOWS("MPA-24 MPA-33 MPA-41 MPA-70") {
            T_EQ_STR(rig_log(), "terminated(sent,2/0/02) disconnected(TERMINATED)");
        }
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 20020000");
        T_SHOWS("MPA-73") {
            T_FALSE(rig->peer_over);
        }
        T_EQ_U64(sg_engine_stats(rig->e)->crc_errors, 1);
        rig_stop();
    }
}

static void largest_ulpdu(void)
{
    static uint8_t ulpdu[65535], fpdu[65600];
    struct sg_mem_options net = { .emss = 65535 };
    unsigned split;

    for (split = 0; split < 2; split++) {
        size_t n;

        rig_start_net(NULL, &net);
        rig_passive();
        memset(ulpdu, 0, sizeof(ulpdu));
        ulpdu[0] = 0xc1;
        ulpdu[1] = 0x40;
        sg_put_be32(ulpdu + 2, RIG_STAG_RW);
        memset(ulpdu + 14, 0x77, sizeof(ulpdu) - 14);
        n = plain_fpdu(fpdu, ulpdu, sizeof(ulpdu));
        rig_say_octets(fpdu, split ? 3 : n);
        if (split) {
            rig_say_octets(fpdu + 3, n - 3);
        }
        T_EQ_STR(rig_log(), "");
        T_EQ_INT(rig->mem[65535 - 15], 0x77);
        T_EQ_U64(sg_engine_stats(rig->e)->rx_writes, 2);
        rig_stop();
    }
}

/* The sizes of our segments for an EMSS; each begins with its ULPDU_Length. */
static void mulpdu_follows_emss(void)
{
    static const struct {
        uint32_t emss;
        bool markers;
        unsigned mulpdu;
        const char *shows;
    } rows[] = {
        { 536, false, 530, "MPA-36" },
        { 1448, false, 1442, "MPA-36" },
        { 1460, false, 1454 },
        { 8948, false, 8942 },
        { 65535, false, 64768, "MPA-03 MPA-04" },
        { 100, false, 128, "MPA-03 MPA-37" },
        { 1, false, 128, "MPA-37" },
        { 536, true, 522, "MPA-35" },
        { 1448, true, 1430, "MPA-35" },
        { 1460, true, 1442 },
        { 8948, true, 8870 },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct sg_mem_options net = { .emss = rows[i].emss };
        unsigned want = rows[i].mulpdu, got;

        T_CONTEXT("EMSS %u, markers %d", rows[i].emss, rows[i].markers);
        rig_start_net(NULL, &net);
        rig_active(rows[i].markers ? REP "d0020004 00080008" : REP "50020004 00080008");
        rig_log();
        rig->in_used = rig->in_len;
        rig_send(0, 65000);
        rig_settle();
        T_EQ_STR(rig_log(), "sent(65000)");
        got = sg_get_be16(rig->in + rig->in_used + (rows[i].markers ? 4 : 0));
        T_SHOWS(rows[i].shows) {
            T_EQ_U64(got, want);
        }
        rig_stop();
    }
}

/* The engine's output with markers equals that of the reference, octet by octet. */
static void markers_sent(void)
{
    static uint8_t want[200000], ulpdu[2000];
    static const uint32_t lengths[] = { 24, 24, 448, 0, 1, 488, 490, 5000, 462, 7, 1400 };
    uint32_t pos = 0, msn = 0, off;
    size_t n = 0, i;

    rig_start(NULL);
    rig_active(REP "d0020004 00080008");
    rig->in_used = rig->in_len;
    for (i = 0; i < SG_ARRAY_SIZE(lengths); i++) {
        rig_send(0, lengths[i]);
        msn++;
        off = 0;
        do {
            uint32_t len = SG_MIN(lengths[i] - off, 1442 - 18);

            send_ulpdu(ulpdu, msn, off, off + len == lengths[i], 0, 0);
            memcpy(ulpdu + 18, rig->mem + off, len);
            n += mark(want + n, &pos, ulpdu, 18 + len);
            off += len;
        } while (off < lengths[i]);
    }
    rig_settle();
    T_EQ_U64(rig->in_len - rig->in_used, n);
    T_SHOWS("MPA-12 MPA-15 MPA-16 MPA-17 MPA-18 MPA-19 MPA-20 MPA-21 MPA-31 MPA-50") {
        T_EQ_MEM(rig->in + rig->in_used, want, n);
    }
    rig_stop();
}

/* Figures 5 and 6 of RFC 5044: the first FPDU and one at offset 0x1ec. */
static void markers_of_the_rfc(void)
{
    static const char tail5[] = "52239983", tail6[] = "84925898";
    struct sg_msg m = { .kind = SG_MSG_SEND, .cookie = 0, .send = { .length = 24 } };
    uint8_t crc[4];

    rig_start(NULL);
    rig_active(REP "d0020004 00080008");
    memset(rig->mem, 0, 4096);
    rig->in_used = rig->in_len;
    rig_post(&m);
    rig_settle();
    T_EQ_U64(rig->in_len - rig->in_used, 4 + 2 + 42 + 4);
    sscanf(tail5, "%2hhx%2hhx%2hhx%2hhx", crc, crc + 1, crc + 2, crc + 3);
    T_EQ_MEM(rig->in + rig->in_len - 4, crc, 4);
    rig_stop();
    rig_start(NULL);
    rig_active(REP "d0020004 00080008");
    memset(rig->mem, 0, 4096);
    rig->in_used = rig->in_len;
    m.send.length = 492 - 4 - 2 - 18 - 4; /* so that the next one starts at 0x1ec */
    rig_post(&m);
    m.send.length = 24;
    rig_post(&m);
    rig_settle();
    T_EQ_U64(rig->in_len - rig->in_used, 492 + 4 + 2 + 42 + 4);
    T_SHOWS("MPA-16") {
        T_EQ_MEM(rig->in + rig->in_used + 0x200, "\0\0\0\x14", 4);
    }
    sscanf(tail6, "%2hhx%2hhx%2hhx%2hhx", crc, crc + 1, crc + 2, crc + 3);
    T_SHOWS("MPA-24 MPA-30 MPA-32") {
        T_EQ_MEM(rig->in + rig->in_len - 4, crc, 4);
    }
    rig_stop();
}

/* Markers that we requested, received in pieces of every size. */
static void markers_received(void)
{
    static uint8_t stream[16384], ulpdu[4096];
    static const uint32_t lengths[] = { 24, 458, 24, 0, 1500, 486, 488, 1, 2, 3 };
    struct sg_engine_config cfg = rig_config();
    uint32_t pos = 0;
    size_t n = 0, i, size, at;
    char want[400] = "";

    cfg.markers = true;
    n = mark(stream, &pos, (const uint8_t *)"\xc1\x40\0\0\0\1\0\0\0\0\0\0\0\0", 14);
    for (i = 0; i < SG_ARRAY_SIZE(lengths); i++) {
        n += mark(stream + n, &pos, ulpdu,
                  send_ulpdu(ulpdu, (uint32_t)i + 1, 0, true, lengths[i], (uint8_t)i));
        snprintf(want + strlen(want), sizeof(want) - strlen(want), " recv(%zu,%u)", i + 1,
                 lengths[i]);
    }
    for (size = 1; size <= n; size += size < 600 ? 1 : 97) {
        T_CONTEXT("pieces of %zu", size);
        rig_start(&cfg);
        rig->recvs = SG_ARRAY_SIZE(lengths);
        rig_request(REQ "50020004 80080008");
        rig_accept(8, 8, NULL);
        T_EQ_INT(rig->in[16] & 0x80, 0x80);
        rig_log();
        for (at = 0; at < n; at += size) {
            rig_say_octets(stream + at, SG_MIN(size, n - at));
        }
        T_SHOWS("MPA-23 MPA-39") {
            T_EQ_STR(strchr(rig_log(), ')') + 1, want);
        }
        T_EQ_INT(rig->recv_buf[4 * RIG_RECV_ROOM + 1499], 4);
        rig_stop();
    }
}

static void bad_marker(void)
{
    uint8_t ulpdu[700], stream[800];
    struct sg_engine_config cfg = rig_config();
    uint32_t pos = 0;
    size_t n;

    cfg.markers = true;
    rig_start(&cfg);
    rig->recvs = 1;
    rig_request(REQ "40010000");
    rig_accept(8, 8, NULL);
    rig->in_used = rig->in_len;
    n = mark(stream, &pos, ulpdu, send_ulpdu(ulpdu, 1, 0, true, 600, 1));
    rig_log();
    /* The pointer's low bits and the reserved half are ignored, as long as the CRC is right. */
    stream[512] = 0xff;
    stream[515] |= 3;
    sg_put_le32(stream + n - 4, sg_crc32c(0, stream, n - 4));
    rig_say_octets(stream, n);
    T_SHOWS("MPA-13 MPA-14") {
        T_EQ_STR(rig_log(), "recv(1,600)");
    }
    n = mark(stream, &pos, ulpdu, send_ulpdu(ulpdu, 2, 0, true, 600, 1));
    stream[1024 - (pos - n) + 3] ^= 4;
    sg_put_le32(stream + n - 4, sg_crc32c(0, stream, n - 4));
    rig_say_octets(stream, n);
    T_SHOWS("MPA-70") {
        T_EQ_STR(rig_log(), "terminated(sent,2/0/03) disconnected(TERMINATED)");
    }
    rig_stop();
}

/* The pad is zero, and the CRC field is there even if CRC is not used. */
static void sent_octets(void)
{
    struct sg_engine_config cfg = rig_config();

    cfg.crc = false;
    rig_start(&cfg);
    rig_active(REP "10020004 00080008");
    rig->in_used = rig->in_len;
    memset(rig->mem, 0xff, 16);
    rig_send(0, 1);
    rig_send(0, 2);
    rig_send(0, 3);
    rig_send(0, 4);
    rig_settle();
    T_SHOWS("MPA-01 MPA-07 MPA-08 MPA-10 MPA-29 MPA-49") {
        rig_expect("00134143 00000000 00000000 00000001 00000000 ff000000 00000000"
                   "00144143 00000000 00000000 00000002 00000000 ffff0000 00000000"
                   "00154143 00000000 00000000 00000003 00000000 ffffff00 00000000"
                   "00164143 00000000 00000000 00000004 00000000 ffffffff 00000000");
    }
    rig_stop();
}

static void send_one(void *arg)
{
    rig_send(0, 100);
    rig_settle();
}

/* Pieces shorter than the segment end the process: the peer would get wrong data. */
static void pieces_too_short(void)
{
    rig_start(NULL);
    rig_active(REP "50020004 00080008");
    rig->gather_short = true;
    T_TRUE(t_aborts(send_one, NULL));
    rig_stop();
}

static const struct t_case cases[] = {
    { "any segmentation, any pad", any_segmentation },
    { "MPA-26 one flipped bit anywhere: Terminate 2/0/02", every_bit_counts },
    { "ULPDU of 65535 octets, whole and split", largest_ulpdu },
    { "MPA-02 MULPDU from the EMSS", mulpdu_follows_emss },
    { "markers sent", markers_sent },
    { "figures 5 and 6 of RFC 5044", markers_of_the_rfc },
    { "markers received in pieces of any size", markers_received },
    { "a marker that disagrees: Terminate 2/0/03", bad_marker },
    { "pad is zero, the CRC field always there", sent_octets },
    { "gathered pieces are checked", pieces_too_short },
};

T_MAIN(cases)
