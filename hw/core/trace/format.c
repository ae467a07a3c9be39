/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a header of a trace may be.  The writer's owner and the author of a file that is read have
 * to keep to the same rules.
 */
#include "trace/format.h"

enum { ALIGNMENT = 64 };

bool sg_trace_is_text(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((p[i] < ' ' && p[i] != '\n') || p[i] >= 0x7f) {
            return false;
        }
    }
    return true;
}

static const char *extent_wrong(const struct sg_trace_header *h, unsigned i)
{
    const struct sg_trace_extent *x = &h->extent[i];

    if (!x->size || x->size > SG_TRACE_EXTENT_SIZE_MAX || x->base % ALIGNMENT ||
        x->size % ALIGNMENT || x->base + x->size < x->base) {
        return "an extent of an address or a size that cannot be";
    }
    for (unsigned other = 0; other < i; other++) {
        const struct sg_trace_extent *y = &h->extent[other];

        if (x->base < y->base + y->size && y->base < x->base + x->size) {
            return "extents that overlap";
        }
    }
    return sg_trace_is_text((const uint8_t *)x->name, strlen(x->name))
               ? NULL
               : "an extent's name that is no text";
}

const char *sg_trace_header_wrong(const struct sg_trace_header *h)
{
    const char *wrong = h->extent_count > SG_TRACE_EXTENTS ? "too many extents" : NULL;

    for (unsigned i = 0; i < h->extent_count && !wrong; i++) {
        wrong = extent_wrong(h, i);
    }
    for (unsigned i = 0; i < SG_TRACE_TEXTS && !wrong; i++) {
        size_t len = h->text[i] ? strlen(h->text[i]) : 0;

        if (len > SG_TRACE_TEXT_MAX || !sg_trace_is_text((const uint8_t *)h->text[i], len)) {
            wrong = "a text of the header that is too long or no text";
        }
    }
    return wrong;
}
