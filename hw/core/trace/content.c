/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The content of memories in a trace: their hash, and pages packed without their zeros.
 *
 * A packed page is a list of pieces: count of zeros, count of octets that follow, these octets.
 * Both counts have two octets.  Zeros at the end have no piece.  A page that would not become
 * shorter is stored as it is.
 */
#include "trace/format.h"

enum {
    PIECE = 4,  /* the two counts */
    WORTH = 16, /* zeros in a row that end a piece */
};

bool sg_trace_page_is_zero(const uint8_t page[SG_TRACE_PAGE])
{
    return page[0] == 0 && memcmp(page, page + 1, SG_TRACE_PAGE - 1) == 0;
}

/* Zeros from 'at' on. */
static size_t zeros(const uint8_t *page, size_t at)
{
    size_t end = at;

    while (end < SG_TRACE_PAGE && page[end] == 0) {
        end++;
    }
    return end - at;
}

/* Octets from 'at' to the next zeros that are worth a new piece. */
static size_t octets(const uint8_t *page, size_t at)
{
    size_t end = at, run;

    while (end < SG_TRACE_PAGE) {
        run = page[end] ? 0 : zeros(page, end);
        if (run >= WORTH || end + run == SG_TRACE_PAGE) {
            break;
        }
        end += run ? run : 1;
    }
    return end - at;
}

size_t sg_trace_pack_page(uint8_t out[SG_TRACE_PAGE], const uint8_t page[SG_TRACE_PAGE])
{
    size_t len = 0, at = 0;

    while (at < SG_TRACE_PAGE) {
        size_t gap = zeros(page, at), n;

        at += gap;
        n = octets(page, at);
        if (n && len + PIECE + n >= SG_TRACE_PAGE) {
            memcpy(out, page, SG_TRACE_PAGE);
            return SG_TRACE_PAGE;
        }
        if (n) {
            sg_put_le16(out + len, (uint16_t)gap);
            sg_put_le16(out + len + 2, (uint16_t)n);
            memcpy(out + len + PIECE, page + at, n);
            len += PIECE + n;
            at += n;
        }
    }
    return len;
}

bool sg_trace_unpack_page(uint8_t page[SG_TRACE_PAGE], const uint8_t *p, size_t len)
{
    size_t at = 0;

    if (len == SG_TRACE_PAGE) {
        memcpy(page, p, SG_TRACE_PAGE);
        return true;
    }
    memset(page, 0, SG_TRACE_PAGE);
    while (len >= PIECE) {
        size_t gap = sg_get_le16(p), n = sg_get_le16(p + 2);

        if (gap > SG_TRACE_PAGE - at || n > SG_TRACE_PAGE - at - gap || n > len - PIECE) {
            return false;
        }
        memcpy(page + at + gap, p + PIECE, n);
        at += gap + n;
        p += PIECE + n;
        len -= PIECE + n;
    }
    return len == 0 && at > 0;
}

void sg_trace_hasher_init(struct sg_trace_hasher *h)
{
    sg_hasher_init(&h->sha, SG_HASH_SHA256, NULL, 0);
}

void sg_trace_hasher_page(struct sg_trace_hasher *h, uint64_t number,
                          const uint8_t page[SG_TRACE_PAGE])
{
    uint8_t octets_of_number[8];

    if (!sg_trace_page_is_zero(page)) {
        sg_put_le64(octets_of_number, number);
        sg_hasher_add(&h->sha, octets_of_number, sizeof(octets_of_number));
        sg_hasher_add(&h->sha, page, SG_TRACE_PAGE);
    }
}

void sg_trace_hasher_end(struct sg_trace_hasher *h, uint64_t size, uint8_t out[SG_TRACE_HASH])
{
    uint8_t octets_of_size[8], full[SG_HASHER_OUT];

    sg_put_le64(octets_of_size, size);
    sg_hasher_add(&h->sha, octets_of_size, sizeof(octets_of_size));
    sg_hasher_end(&h->sha, full);
    memcpy(out, full, SG_TRACE_HASH);
}

void sg_trace_hash_memory(const uint8_t *memory, uint64_t size, uint8_t out[SG_TRACE_HASH])
{
    uint8_t last[SG_TRACE_PAGE] = { 0 };
    struct sg_trace_hasher h;
    uint64_t at;

    sg_trace_hasher_init(&h);
    for (at = 0; size - at >= SG_TRACE_PAGE; at += SG_TRACE_PAGE) {
        sg_trace_hasher_page(&h, at / SG_TRACE_PAGE, memory + at);
    }
    memcpy(last, memory + at, size - at);
    sg_trace_hasher_page(&h, at / SG_TRACE_PAGE, last);
    sg_trace_hasher_end(&h, size, out);
}
