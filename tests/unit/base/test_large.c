/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/large.h: arrays of zeros, small ones and those that get huge pages. */
#include <glib.h>

#include "base/bytes.h"
#include "base/large.h"
#include "tap.h"

static bool is_zero(const uint8_t *p, size_t len)
{
    size_t i = 0;

    while (i < len && !p[i]) {
        i++;
    }
    return i == len;
}

/* Twice, because the second one may get the memory of the first. */
static void zeros_of(size_t count, size_t size)
{
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *p = sg_large_new0(count, size);

        T_TRUE(is_zero(p, count * size));
        memset(p, 0xa5, count * size);
        T_TRUE(!is_zero(p, 1) && !is_zero(p + count * size - 1, 1));
        g_free(p);
    }
}

static void zeros(void)
{
    zeros_of(1, 1);
    zeros_of(1000, 24);
    zeros_of((2 << 20) - 1, 1);
    zeros_of(2 << 20, 1);
    zeros_of((2 << 20) / 8 + 1, 8);
    zeros_of(3000001, 24);
}

static const struct t_case cases[] = {
    { "an array of any size is of zeros, and can be written", zeros },
};

T_MAIN(cases)
