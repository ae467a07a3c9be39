/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wire/fpdu.h: geometry, markers, building and taking apart. */
#include "base/crc32c.h"
#include "hex.h"
#include "tap.h"
#include "wire/fpdu.h"

#define BOTH (SG_FPDU_MARKERS | SG_FPDU_CRC_ON)

static uint8_t ulpdu[SG_ULPDU_FIELD_MAX];
static uint8_t out[SG_FPDU_WIRE_MAX + 8];
static uint8_t ref[SG_FPDU_WIRE_MAX + 8];
static uint8_t scratch[SG_ULPDU_FIELD_MAX];

static void fill_ulpdu(void)
{
    for (size_t i = 0; i < sizeof(ulpdu); i++) {
        ulpdu[i] = (uint8_t)(i * 7 + i / 251);
    }
}

/*
 * An FPDU one octet at a time, straight from RFC 5044 section 4: the reference
 * for everything else here.
 */
static size_t reference(uint8_t *to, uint32_t pos, unsigned flags, size_t len)
{
    size_t body = 2 + len + sg_fpdu_pad(len);
    size_t n = 0, start = 0;
    bool started = false;
    uint32_t crc;

    for (size_t i = 0; i <= body; i++) {
        if (flags & SG_FPDU_MARKERS && (pos + n) % 512 == 0) {
            size_t ptr = started ? n - start : 0;

            to[n] = to[n + 1] = 0;
            to[n + 2] = (uint8_t)(ptr >> 8);
            to[n + 3] = (uint8_t)ptr;
            n += 4;
        }
        if (i == body) {
            break;
        }
        if (!started) {
            start = n;
            started = true;
        }
        to[n++] = i == 0        ? (uint8_t)(len >> 8)
                  : i == 1      ? (uint8_t)len
                  : i < 2 + len ? ulpdu[i - 2]
                                : 0;
    }
    crc = flags & SG_FPDU_CRC_ON ? sg_crc32c(0, to, n) : 0;
    to[n++] = (uint8_t)crc;
    to[n++] = (uint8_t)(crc >> 8);
    to[n++] = (uint8_t)(crc >> 16);
    to[n++] = (uint8_t)(crc >> 24);
    return n;
}

/* Emits in three pieces, with a guard octet behind them. */
static size_t emit(uint32_t pos, unsigned flags, size_t len)
{
    struct sg_span parts[3] = {
        sg_span_of(ulpdu, len / 3),
        sg_span_of(ulpdu + len / 3, 0),
        sg_span_of(ulpdu + len / 3, len - len / 3),
    };
    size_t room = sg_fpdu_wire_len(len, pos, flags);
    size_t n;

    memset(out, 0xa5, room + 1);
    n = sg_fpdu_emit(out, pos, flags, parts, 3);
    T_EQ_U64(n, room);
    T_EQ_U64(out[n], 0xa5);
    return n;
}

static void padding(void)
{
    static const size_t pads[4] = { 2, 1, 0, 3 };

    fill_ulpdu();
    memset(ulpdu, 0xff, 300);
    for (size_t len = 0; len < 300; len++) {
        size_t n = emit(0, 0, len);

        T_CONTEXT("length %zu", len);
        T_EQ_U64(sg_fpdu_pad(len), pads[len % 4]);
        T_EQ_U64(n, sg_fpdu_len(len));
        T_EQ_U64(n % 4, 0);
        T_EQ_U64(n, 2 + len + pads[len % 4] + 4);
        for (size_t i = 2 + len; i < n - 4; i++) {
            T_EQ_U64(out[i], 0);
        }
    }
}

static void mulpdu_table(void)
{
    static const struct {
        uint32_t emss, plain, markers;
        const char *shows;
    } t[] = {
        { 536, 530, 522, "MPA-35 MPA-36" },
        { 1448, 1442, 1430 },
        { 1460, 1454, 1442 },
        { 8948, 8942, 8870 },
        { 1461, 1454, 1442 },
        { 1463, 1454, 1442 },
        { 512, 506, 502 },
        { 513, 506, 498 },
        { 0, 128, 128, "MPA-37" },
        { 1, 128, 128 },
        { 127, 128, 128 },
        { 134, 128, 128, "MPA-38" },
        { 136, 130, 128 },
        { 140, 134, 130 },
        { 64774, 64766, 64258 },
        { 64776, 64768, 64262, "MPA-03" },
        { 65535, 64768, 64768 },
        { 1000000, 64768, 64768 },
        { UINT32_MAX, 64768, 64768 },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(t); i++) {
        T_CONTEXT("EMSS %u", t[i].emss);
        T_SHOWS(t[i].shows) {
            T_EQ_U64(sg_mulpdu(t[i].emss, false), t[i].plain);
            T_EQ_U64(sg_mulpdu(t[i].emss, true), t[i].markers);
        }
    }
}

/* The promise behind the formula: such an FPDU fits the segment wherever it starts. */
static void mulpdu_fits(void)
{
    for (uint32_t emss = 148; emss < 9100; emss += 37) {
        T_CONTEXT("EMSS %u", emss);
        T_TRUE(sg_fpdu_len(sg_mulpdu(emss, false)) <= emss);
        for (uint32_t pos = 0; pos < 512; pos += 4) {
            T_TRUE(sg_fpdu_wire_len(sg_mulpdu(emss, true), pos, SG_FPDU_MARKERS) <= emss);
        }
    }
}

static void figure_5(void)
{
    uint8_t hdr[18];
    struct sg_span parts[2] = {
        hex("4143 00000000 00000000 00000001 00000000", hdr, sizeof(hdr)),
        sg_span_of((uint8_t[24]){ 0 }, 24),
    };
    uint8_t want[0x34];

    hex("00000000 002a 4143 00000000 00000000 00000001 00000000"
        "000000000000000000000000000000000000000000000000 52239983",
        want, sizeof(want));
    memset(out, 0xa5, 64);
    T_EQ_U64(sg_fpdu_emit(out, 0, BOTH, parts, 2), sizeof(want));
    T_EQ_MEM(out, want, sizeof(want));
    /* This would be the CRC without the marker. */
    T_EQ_U64(sg_crc32c(0, out + 4, 44), 0xc33e24b7);
}

static void figure_6(void)
{
    uint8_t hdr[18];
    struct sg_span parts[2] = {
        hex("4143 00000000 00000000 00000002 00000000", hdr, sizeof(hdr)),
        sg_span_of((uint8_t[24]){ 0 }, 24),
    };
    uint8_t want[0x34];
    struct sg_fpdu f;

    hex("002a 4143 00000000 00000000 00000002 00000000 00000014"
        "000000000000000000000000000000000000000000000000 84925898",
        want, sizeof(want));
    memset(out, 0xa5, 64);
    T_EQ_U64(sg_fpdu_emit(out, 0x1ec, BOTH, parts, 2), sizeof(want));
    T_EQ_MEM(out, want, sizeof(want));
    T_EQ_INT(sg_fpdu_parse(sg_span_of(want, sizeof(want)), 0x1ec, BOTH, scratch, &f), SG_WIRE_OK);
    T_EQ_U64(f.ulpdu.len, 42);
    T_EQ_MEM(f.ulpdu.p, hdr, sizeof(hdr));
}

/* Lengths and positions of interest for the comparison with the reference. */
static const size_t some_lens[] = { 0,   1,    2,    3,    14,   18,   42,   482,  490,
                                    500, 501,  502,  503,  504,  505,  506,  507,  508,
                                    510, 1010, 1012, 1014, 1016, 1442, 8870, 64768 };

static void emit_matches_reference(void)
{
    fill_ulpdu();
    for (size_t i = 0; i < SG_ARRAY_SIZE(some_lens); i++) {
        uint32_t step = some_lens[i] > 2000 ? 100 : 4;

        for (uint32_t pos = 0; pos <= 1024; pos += step) {
            size_t len = some_lens[i];
            size_t n = reference(ref, pos, BOTH, len);

            T_CONTEXT("length %zu at %u", len, pos);
            T_EQ_U64(emit(pos, BOTH, len), n);
            T_EQ_MEM(out, ref, n);
        }
    }
}

static void parse_inverts_emit(void)
{
    static const unsigned flag_sets[] = { 0, SG_FPDU_CRC_ON, SG_FPDU_MARKERS, BOTH };
    struct sg_fpdu f;

    fill_ulpdu();
    for (size_t i = 0; i < SG_ARRAY_SIZE(some_lens); i++) {
        for (size_t k = 0; k < SG_ARRAY_SIZE(flag_sets); k++) {
            for (uint32_t pos = 0; pos < 512; pos += some_lens[i] > 2000 ? 68 : 4) {
                size_t n = emit(pos, flag_sets[k], some_lens[i]);

                T_CONTEXT("length %zu at %u, flags %x", some_lens[i], pos, flag_sets[k]);
                /* One octet more, which belongs to the next FPDU. */
                T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n + 1), pos, flag_sets[k], scratch, &f),
                         SG_WIRE_OK);
                T_EQ_U64(f.wire_len, n);
                T_EQ_U64(f.ulpdu.len, some_lens[i]);
                T_EQ_MEM(f.ulpdu.p, ulpdu, some_lens[i]);
                T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n - 1), pos, flag_sets[k], scratch, &f),
                         SG_WIRE_MORE);
            }
        }
    }
}

static void markers_follow_the_stream(void)
{
    uint32_t pos = 0, start;

    /* FPDUs back to back: each marker at its place, pointing to its own FPDU. */
    fill_ulpdu();
    for (unsigned i = 0; i < 400; i++) {
        size_t len = i * 53 % 1700;
        size_t n = emit(pos, BOTH, len);
        unsigned seen = 0;

        T_CONTEXT("FPDU %u at %u", i, pos);
        start = pos % 512 ? pos : pos + 4;
        for (uint32_t m = pos + sg_marker_gap(pos); m < pos + n; m += 512) {
            uint16_t ptr;

            T_EQ_U64(m % 512, 0);
            T_EQ_INT(sg_marker_parse(sg_span_of(out + (m - pos), 4), &ptr), SG_WIRE_OK);
            T_EQ_U64(ptr, m == pos ? 0 : m - start);
            T_EQ_U64(sg_get_be16(out + (m - pos)), 0);
            seen++;
        }
        T_EQ_U64(n, sg_fpdu_len(len) + 4 * seen);
        pos += (uint32_t)n;
    }
}

static void marker_between_fpdus(void)
{
    struct sg_fpdu f;

    fill_ulpdu();
    /* This FPDU ends exactly at 512: the marker there is the next one's. */
    T_EQ_U64(emit(480, BOTH, 26), 32);
    T_EQ_U64(emit(512, BOTH, 26), 36);
    T_EQ_MEM(out, "\0\0\0\0\0\x1a", 6);
    T_EQ_U64(sg_get_le32(out + 32), sg_crc32c(0, out, 32));
    T_EQ_INT(sg_fpdu_parse(sg_span_of(out, 36), 512, BOTH, scratch, &f), SG_WIRE_OK);
    /* Position 0 begins the stream with a marker. */
    T_EQ_U64(emit(0, BOTH, 26), 36);
    T_EQ_MEM(out, "\0\0\0\0\0\x1a", 6);
}

static void marker_before_crc(void)
{
    fill_ulpdu();
    /* Content of 28 octets before the CRC, so that the marker is due at the CRC's place. */
    T_EQ_U64(emit(512 - 28, BOTH, 25), 36);
    T_EQ_U64(out[27], 0);
    T_EQ_U64(sg_get_be32(out + 28), 28);
    T_EQ_U64(sg_get_le32(out + 32), sg_crc32c(0, out, 32));
}

static void sequence_wrap(void)
{
    struct sg_fpdu f;
    uint32_t pos = UINT32_MAX - 1023 - 40;

    fill_ulpdu();
    T_EQ_U64(pos % 4, 0);
    for (unsigned i = 0; i < 6; i++) {
        size_t n = emit(pos, BOTH, 700);

        T_CONTEXT("at %u", pos);
        T_EQ_U64(n, reference(ref, pos, BOTH, 700));
        T_EQ_MEM(out, ref, n);
        T_SHOWS("MPA-22") {
            T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), pos, BOTH, scratch, &f), SG_WIRE_OK);
        }
        T_EQ_MEM(f.ulpdu.p, ulpdu, 700);
        pos += (uint32_t)n;
    }
    T_TRUE(pos < 8192); /* it did wrap */
}

static void marker_codec(void)
{
    uint8_t m[5] = { 0xa5, 0xa5, 0xa5, 0xa5, 0xa5 };
    uint16_t ptr;

    sg_marker_emit(m, 0x1237);
    T_EQ_MEM(m, "\0\0\x12\x34\xa5", 5);
    memcpy(m, "\xff\xff\x12\x37", 4);
    T_EQ_INT(sg_marker_parse(sg_span_of(m, 4), &ptr), SG_WIRE_OK);
    T_EQ_U64(ptr, 0x1234);
    for (size_t n = 0; n < 4; n++) {
        T_EQ_INT(sg_marker_parse(sg_span_of(m, n), &ptr), SG_WIRE_MORE);
    }
    T_EQ_U64(sg_marker_gap(0), 0);
    T_EQ_U64(sg_marker_gap(1), 511);
    T_EQ_U64(sg_marker_gap(511), 1);
    T_EQ_U64(sg_marker_gap(UINT32_MAX), 1);
}

/* A marker's reserved half and low bits may have any value; the CRC covers what was sent. */
static void marker_tolerance(void)
{
    struct sg_fpdu f;
    size_t n;

    fill_ulpdu();
    n = emit(496, BOTH, 100);
    out[16] = 0xde;
    out[17] = 0xad;
    out[19] |= 3;
    T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), 496, BOTH, scratch, &f), SG_WIRE_BAD_CRC);
    sg_put_le32(out + n - 4, sg_crc32c(0, out, n - 4));
    T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), 496, BOTH, scratch, &f), SG_WIRE_OK);
    T_EQ_MEM(f.ulpdu.p, ulpdu, 100);
    /* A wrong pointer with a good CRC is error 3. */
    out[19] += 4;
    sg_put_le32(out + n - 4, sg_crc32c(0, out, n - 4));
    T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), 496, BOTH, scratch, &f), SG_WIRE_BAD_MARKER);
    T_EQ_U64(f.ulpdu.len, 0);
    /* A marker at the start of an FPDU must be 0. */
    n = emit(512, BOTH, 100);
    out[3] = 4;
    sg_put_le32(out + n - 4, sg_crc32c(0, out, n - 4));
    T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), 512, BOTH, scratch, &f), SG_WIRE_BAD_MARKER);
}

static void crc_catches_each_octet(void)
{
    static const uint32_t positions[] = { 0, 4, 480, 496 };
    struct sg_fpdu f;

    fill_ulpdu();
    for (size_t k = 0; k < SG_ARRAY_SIZE(positions); k++) {
        uint32_t pos = positions[k];
        size_t n = emit(pos, BOTH, 101);
        size_t len_at = pos % 512 ? 0 : 4;

        for (size_t i = 0; i < n; i++) {
            if (i == len_at || i == len_at + 1) {
                continue; /* this would change the length */
            }
            out[i] ^= 0x10;
            T_CONTEXT("octet %zu at %u", i, pos);
            T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), pos, BOTH, scratch, &f), SG_WIRE_BAD_CRC);
            T_EQ_U64(f.ulpdu.len, 0);
            out[i] ^= 0x10;
        }
        T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), pos, BOTH, scratch, &f), SG_WIRE_OK);
    }
}

static void crc_off(void)
{
    struct sg_fpdu f;
    size_t n;

    fill_ulpdu();
    n = emit(4, 0, 21);
    T_EQ_MEM(out + n - 4, "\0\0\0\0", 4);
    memcpy(out + n - 4, "\xde\xad\xbe\xef", 4);
    out[n - 5] = 0x99; /* pad */
    T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), 4, 0, NULL, &f), SG_WIRE_OK);
    T_EQ_U64(f.wire_len, n);
    T_TRUE(f.ulpdu.p == out + 2);
    T_EQ_MEM(f.ulpdu.p, ulpdu, 21);
}

static void pad_is_only_for_the_crc(void)
{
    struct sg_fpdu f;
    size_t n;

    fill_ulpdu();
    n = emit(4, SG_FPDU_CRC_ON, 21);
    out[n - 5] = 0x99;
    T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), 4, SG_FPDU_CRC_ON, NULL, &f), SG_WIRE_BAD_CRC);
    sg_put_le32(out + n - 4, sg_crc32c(0, out, n - 4));
    T_EQ_INT(sg_fpdu_parse(sg_span_of(out, n), 4, SG_FPDU_CRC_ON, NULL, &f), SG_WIRE_OK);
    T_EQ_U64(f.ulpdu.len, 21);
}

static void trailer(void)
{
    fill_ulpdu();
    for (size_t len = 0; len < 100; len++) {
        for (int crc_on = 0; crc_on < 2; crc_on++) {
            size_t n = emit(4, crc_on ? SG_FPDU_CRC_ON : 0, len);
            uint8_t t[SG_FPDU_TRAILER_MAX + 1];

            memset(t, 0xa5, sizeof(t));
            T_CONTEXT("length %zu crc %d", len, crc_on);
            T_EQ_U64(sg_fpdu_trailer_emit(t, len, crc_on, sg_crc32c(0, out, 2 + len)), n - 2 - len);
            T_EQ_MEM(t, out + 2 + len, n - 2 - len);
            T_EQ_U64(t[n - 2 - len], 0xa5);
        }
    }
}

static void peek(void)
{
    size_t len, wire;

    memcpy(out, "\0\0\0\0\x01\x00", 6);
    T_EQ_INT(sg_fpdu_peek(sg_span_of(out, 5), 0, SG_FPDU_MARKERS, &len, &wire), SG_WIRE_MORE);
    T_EQ_INT(sg_fpdu_peek(sg_span_of(out, 6), 0, SG_FPDU_MARKERS, &len, &wire), SG_WIRE_OK);
    T_EQ_U64(len, 256);
    T_EQ_U64(wire, 4 + 2 + 256 + 2 + 4);
    T_EQ_INT(sg_fpdu_peek(sg_span_of(out + 4, 1), 4, 0, &len, &wire), SG_WIRE_MORE);
    T_EQ_INT(sg_fpdu_peek(SG_SPAN_NONE, 4, 0, &len, &wire), SG_WIRE_MORE);
    T_EQ_INT(sg_fpdu_peek(sg_span_of(out + 4, 2), 4, 0, &len, &wire), SG_WIRE_OK);
    T_EQ_U64(len, 256);
    T_EQ_U64(wire, 264);
}

/* Peers may use the whole length field: 65535 octets, with and without markers. */
static void largest_from_a_peer(void)
{
    static const unsigned flag_sets[] = { SG_FPDU_CRC_ON, BOTH };
    struct sg_fpdu f;

    fill_ulpdu();
    for (size_t k = 0; k < SG_ARRAY_SIZE(flag_sets); k++) {
        size_t n = reference(ref, 512, flag_sets[k], SG_ULPDU_FIELD_MAX);

        T_TRUE(n <= SG_FPDU_WIRE_MAX);
        T_EQ_U64(sg_fpdu_wire_len(SG_ULPDU_FIELD_MAX, 512, flag_sets[k]), n);
        T_EQ_INT(sg_fpdu_parse(sg_span_of(ref, n), 512, flag_sets[k], scratch, &f), SG_WIRE_OK);
        T_EQ_U64(f.ulpdu.len, SG_ULPDU_FIELD_MAX);
        T_EQ_MEM(f.ulpdu.p, ulpdu, SG_ULPDU_FIELD_MAX);
    }
}

static const struct t_case cases[] = {
    { "padding", padding },
    { "MULPDU values", mulpdu_table },
    { "an FPDU of MULPDU octets fits the segment", mulpdu_fits },
    { "RFC 5044 figure 5", figure_5 },
    { "RFC 5044 figure 6", figure_6 },
    { "FPDUs match the reference", emit_matches_reference },
    { "parsing is the inverse of emitting", parse_inverts_emit },
    { "markers along a stream", markers_follow_the_stream },
    { "marker between FPDUs", marker_between_fpdus },
    { "marker between pad and CRC", marker_before_crc },
    { "marker arithmetic over the sequence wrap", sequence_wrap },
    { "marker octets", marker_codec },
    { "marker contents on receipt", marker_tolerance },
    { "any changed octet is noticed", crc_catches_each_octet },
    { "CRC off: field present, content accepted", crc_off },
    { "pad matters to the CRC only", pad_is_only_for_the_crc },
    { "trailer for zero-copy senders", trailer },
    { "length field decides where the FPDU ends", peek },
    { "largest length that a peer can state", largest_from_a_peer },
};

T_MAIN(cases)
