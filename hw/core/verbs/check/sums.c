/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums of the entries that a doorbell covers, to be compared when the adapter copies them.
 */
#include <glib.h>

#include "base/bytes.h"
#include "verbs/check/check_impl.h"

static size_t octets_of(uint32_t entries)
{
    return sizeof(struct sg_check_sums) + entries * sizeof(uint32_t);
}

struct sg_check_sums *sg_check_sums_new(struct sg_check *c, uint32_t entries)
{
    struct sg_check_sums *s;

    if (!c || octets_of(entries) > SG_CHECK_SUM_OCTETS - c->sum_octets) {
        return NULL;
    }
    s = g_try_malloc0(octets_of(entries));
    if (s) {
        s->entries = entries;
        c->sum_octets += octets_of(entries);
    }
    return s;
}

void sg_check_sums_free(struct sg_check *c, struct sg_check_sums *s)
{
    if (s) {
        c->sum_octets -= octets_of(s->entries);
        g_free(s);
    }
}
