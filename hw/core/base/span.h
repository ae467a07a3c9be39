/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run of read-only octets with its length, and the one accessor through
 * which received bytes are looked at.  A span borrows: it owns nothing and is
 * valid as long as the memory under it.
 */
#ifndef SG_BASE_SPAN_H
#define SG_BASE_SPAN_H

#include "base/bytes.h"

struct sg_span {
    const uint8_t *p; /* may be NULL when len is 0 */
    size_t len;       /* octets */
};

#define SG_SPAN_NONE ((struct sg_span){ NULL, 0 })

static inline struct sg_span sg_span_of(const void *p, size_t len)
{
    return (struct sg_span){ p, len };
}

/* Octets @off .. @off + @len - 1 of @s, or NULL if not all of them exist. */
static inline const uint8_t *sg_span_get(struct sg_span s, size_t off, size_t len)
{
    if (!sg_range_ok(off, len, s.len) || !s.p) {
        return NULL;
    }
    return s.p + off;
}

/* The part of @s that starts at @off; empty when @off is at or past the end. */
static inline struct sg_span sg_span_from(struct sg_span s, size_t off)
{
    if (off >= s.len || !s.p) {
        return SG_SPAN_NONE;
    }
    return sg_span_of(s.p + off, s.len - off);
}

/* The first @len octets of @s, or all of it when it is shorter. */
static inline struct sg_span sg_span_head(struct sg_span s, size_t len)
{
    return sg_span_of(s.p, SG_MIN(s.len, len));
}

#endif /* SG_BASE_SPAN_H */
