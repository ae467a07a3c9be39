/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Schoolbook arithmetic, with carries of at most 64 bits. */
#include "crash/count.h"

enum { BASE = 1000000000 };

static uint32_t *at(const struct sg_crash_count *c, guint n)
{
    return &g_array_index(c->word, uint32_t, n);
}

/* Appends what is left over behind the highest word. */
static void carry(struct sg_crash_count *c, uint64_t left)
{
    for (; left; left /= BASE) {
        uint32_t word = (uint32_t)(left % BASE);

        g_array_append_val(c->word, word);
    }
}

void sg_crash_count_init(struct sg_crash_count *c, uint64_t value)
{
    c->word = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    carry(c, value);
}

void sg_crash_count_fini(struct sg_crash_count *c)
{
    if (c->word) {
        g_array_unref(c->word);
    }
    c->word = NULL;
}

void sg_crash_count_set(struct sg_crash_count *c, uint64_t value)
{
    g_array_set_size(c->word, 0);
    carry(c, value);
}

void sg_crash_count_multiply(struct sg_crash_count *c, uint32_t by)
{
    uint64_t left = 0;

    if (!by) {
        g_array_set_size(c->word, 0);
    }
    for (guint i = 0; i < c->word->len; i++) {
        left += (uint64_t)*at(c, i) * by;
        *at(c, i) = (uint32_t)(left % BASE);
        left /= BASE;
    }
    carry(c, left);
}

void sg_crash_count_add(struct sg_crash_count *c, const struct sg_crash_count *other)
{
    uint64_t left = 0;

    for (guint i = 0; i < c->word->len || i < other->word->len; i++) {
        left += i < other->word->len ? *at(other, i) : 0;
        if (i == c->word->len) {
            uint32_t zero = 0;

            g_array_append_val(c->word, zero);
        }
        left += *at(c, i);
        *at(c, i) = (uint32_t)(left % BASE);
        left /= BASE;
    }
    carry(c, left);
}

void sg_crash_count_text(const struct sg_crash_count *c, GString *out)
{
    guint n = c->word->len;

    g_string_append_printf(out, "%u", n ? *at(c, n - 1) : 0);
    for (guint i = n ? n - 1 : 0; i--;) {
        g_string_append_printf(out, "%09u", *at(c, i));
    }
}

uint64_t sg_crash_count_value(const struct sg_crash_count *c, uint64_t most)
{
    uint64_t value = 0;

    for (guint i = c->word->len; i--;) {
        if (value > most / BASE) {
            return most + 1;
        }
        value = value * BASE + *at(c, i);
    }
    return value <= most ? value : most + 1;
}
