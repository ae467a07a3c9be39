/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Octets written as hex digits, blanks anywhere between octets. */
#ifndef SG_TESTS_HEX_H
#define SG_TESTS_HEX_H

#include "base/span.h"

static inline int hex_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Decode @text into @buf of @size octets; returns the octets. */
static inline struct sg_span hex(const char *text, uint8_t *buf, size_t size)
{
    size_t n = 0;

    while (*text) {
        if (*text == ' ') {
            text++;
            continue;
        }
        sg_assert(n < size && text[1]);
        buf[n++] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
        text += 2;
    }
    return sg_span_of(buf, n);
}

#endif /* SG_TESTS_HEX_H */
