/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FPDU geometry, assembly and disassembly (RFC 5044 section 4).
 *
 * "Content" is the FPDU without its markers: length field, ULPDU, pad, CRC,
 * always a multiple of 4.  A marker stands before a content octet whose
 * position is a multiple of 512, so one that is due just after the CRC belongs
 * to the next FPDU.  Since FPDUs start at multiples of 4, a marker never
 * splits the length field or the CRC.  All covered octets, markers included,
 * are contiguous from the start of the FPDU to its CRC field.
 */
#include "base/crc32c.h"
#include "wire/fpdu.h"

/* Content octets between two markers. */
#define INTERVAL (SG_FPDU_MARKER_EVERY - SG_FPDU_MARKER)

size_t sg_fpdu_wire_len(size_t ulpdu_len, uint32_t pos, unsigned flags)
{
    size_t content = sg_fpdu_len(ulpdu_len);
    size_t gap = sg_marker_gap(pos);

    if (!(flags & SG_FPDU_MARKERS) || gap >= content) {
        return content;
    }
    return content + SG_FPDU_MARKER * ((content - gap + INTERVAL - 1) / INTERVAL);
}

uint32_t sg_mulpdu(uint32_t emss, bool markers)
{
    uint64_t overhead = SG_FPDU_LEN_FIELD + SG_FPDU_CRC + emss % 4;

    if (markers) {
        overhead +=
            SG_FPDU_MARKER * (((uint64_t)emss + SG_FPDU_MARKER_EVERY - 1) / SG_FPDU_MARKER_EVERY);
    }
    if (emss < overhead + SG_MULPDU_MIN) {
        return SG_MULPDU_MIN;
    }
    return (uint32_t)SG_MIN(emss - overhead, (uint64_t)SG_MULPDU_MAX);
}

void sg_marker_emit(uint8_t *buf, uint16_t fpduptr)
{
    sg_put_be16(buf, 0);
    sg_put_be16(buf + 2, fpduptr & 0xfffc);
}

enum sg_wire_err sg_marker_parse(struct sg_span in, uint16_t *fpduptr)
{
    const uint8_t *p = sg_span_get(in, 0, SG_FPDU_MARKER);

    if (!p) {
        return SG_WIRE_MORE;
    }
    *fpduptr = sg_get_be16(p + 2) & 0xfffc;
    return SG_WIRE_OK;
}

size_t sg_fpdu_trailer_emit(uint8_t *buf, size_t ulpdu_len, bool crc_on, uint32_t crc)
{
    size_t pad = sg_fpdu_pad(ulpdu_len);

    memset(buf, 0, pad);
    sg_put_le32(buf + pad, crc_on ? sg_crc32c(crc, buf, pad) : 0);
    return pad + SG_FPDU_CRC;
}

/* An FPDU under construction. */
struct builder {
    uint8_t *out;   /* next octet to write */
    uint32_t pos;   /* its position */
    uint32_t start; /* position of the length field, once written */
    bool started;
    unsigned flags;
    uint32_t crc;
};

static void put_raw(struct builder *b, const void *p, size_t n)
{
    if (b->flags & SG_FPDU_CRC_ON) {
        b->crc = sg_crc32c_copy(b->crc, b->out, p, n);
    } else if (n) {
        memcpy(b->out, p, n);
    }
    b->out += n;
    b->pos += (uint32_t)n;
}

/* Write the marker if one is due here. */
static void put_marker(struct builder *b)
{
    uint8_t marker[SG_FPDU_MARKER];

    if (b->flags & SG_FPDU_MARKERS && sg_marker_gap(b->pos) == 0) {
        sg_marker_emit(marker, b->started ? (uint16_t)(b->pos - b->start) : 0);
        put_raw(b, marker, sizeof(marker));
    }
}

/* Write content, with markers before and between its octets. */
static void put_content(struct builder *b, const uint8_t *p, size_t n)
{
    while (n) {
        size_t part = n;

        put_marker(b);
        if (b->flags & SG_FPDU_MARKERS) {
            part = SG_MIN(part, (size_t)(SG_FPDU_MARKER_EVERY - b->pos % SG_FPDU_MARKER_EVERY));
        }
        if (!b->started) {
            b->start = b->pos;
            b->started = true;
        }
        put_raw(b, p, part);
        p += part;
        n -= part;
    }
}

size_t sg_fpdu_emit(uint8_t *buf, uint32_t pos, unsigned flags, const struct sg_span *parts,
                    size_t nparts)
{
    static const uint8_t zeros[SG_FPDU_PAD_MAX];
    struct builder b = { .out = buf, .pos = pos, .flags = flags };
    uint8_t len_field[SG_FPDU_LEN_FIELD];
    size_t ulpdu_len = 0;

    for (size_t i = 0; i < nparts; i++) {
        ulpdu_len += parts[i].len;
    }
    sg_assert(ulpdu_len <= SG_MULPDU_MAX);
    sg_assert(!(flags & SG_FPDU_MARKERS) || pos % 4 == 0);

    sg_put_be16(len_field, (uint16_t)ulpdu_len);
    put_content(&b, len_field, sizeof(len_field));
    for (size_t i = 0; i < nparts; i++) {
        put_content(&b, parts[i].p, parts[i].len);
    }
    put_content(&b, zeros, sg_fpdu_pad(ulpdu_len));
    /* A marker between pad and CRC is still covered. */
    put_marker(&b);
    sg_put_le32(b.out, flags & SG_FPDU_CRC_ON ? b.crc : 0);
    return (size_t)(b.out + SG_FPDU_CRC - buf);
}

enum sg_wire_err sg_fpdu_peek(struct sg_span in, uint32_t pos, unsigned flags, size_t *ulpdu_len,
                              size_t *wire_len)
{
    bool leading = flags & SG_FPDU_MARKERS && sg_marker_gap(pos) == 0;
    const uint8_t *p = sg_span_get(in, leading ? SG_FPDU_MARKER : 0, SG_FPDU_LEN_FIELD);

    if (!p) {
        return SG_WIRE_MORE;
    }
    *ulpdu_len = sg_get_be16(p);
    *wire_len = sg_fpdu_wire_len(*ulpdu_len, pos, flags);
    return SG_WIRE_OK;
}

/*
 * Check the markers of the complete FPDU @in at @pos and collect its ULPDU at
 * @to.  The pointers are compared modulo 2^16, as the field wraps.
 */
static enum sg_wire_err strip_markers(struct sg_span in, uint32_t pos, size_t ulpdu_len,
                                      uint8_t *to)
{
    size_t off = 0, content = 0, start = 0;

    while (off < in.len) {
        size_t part, first, end;

        if (sg_marker_gap(pos + (uint32_t)off) == 0) {
            uint16_t ptr = sg_get_be16(in.p + off + 2) & 0xfffc;

            if (ptr != (content ? (uint16_t)(off - start) : 0)) {
                return SG_WIRE_BAD_MARKER;
            }
            off += SG_FPDU_MARKER;
        }
        if (content == 0) {
            start = off;
        }
        part = SG_FPDU_MARKER_EVERY - (pos + (uint32_t)off) % SG_FPDU_MARKER_EVERY;
        part = SG_MIN(part, in.len - off);
        /* The share of this run of content that is ULPDU. */
        first = SG_MAX(content, (size_t)SG_FPDU_LEN_FIELD);
        end = SG_MIN(content + part, SG_FPDU_LEN_FIELD + ulpdu_len);
        if (first < end) {
            memcpy(to + first - SG_FPDU_LEN_FIELD, in.p + off + (first - content), end - first);
        }
        content += part;
        off += part;
    }
    return SG_WIRE_OK;
}

enum sg_wire_err sg_fpdu_parse(struct sg_span in, uint32_t pos, unsigned flags, uint8_t *scratch,
                               struct sg_fpdu *out)
{
    size_t ulpdu_len, wire_len, covered;
    enum sg_wire_err err;

    memset(out, 0, sizeof(*out));
    sg_assert(!(flags & SG_FPDU_MARKERS) || pos % 4 == 0);
    err = sg_fpdu_peek(in, pos, flags, &ulpdu_len, &wire_len);
    if (err) {
        return err;
    }
    if (in.len < wire_len) {
        return SG_WIRE_MORE;
    }
    in = sg_span_head(in, wire_len);
    covered = wire_len - SG_FPDU_CRC;
    if (flags & SG_FPDU_CRC_ON && sg_crc32c(0, in.p, covered) != sg_get_le32(in.p + covered)) {
        return SG_WIRE_BAD_CRC;
    }
    if (flags & SG_FPDU_MARKERS) {
        err = strip_markers(in, pos, ulpdu_len, scratch);
        if (err) {
            return err;
        }
        out->ulpdu = sg_span_of(scratch, ulpdu_len);
    } else {
        out->ulpdu = sg_span_of(in.p + SG_FPDU_LEN_FIELD, ulpdu_len);
    }
    out->wire_len = wire_len;
    return SG_WIRE_OK;
}
