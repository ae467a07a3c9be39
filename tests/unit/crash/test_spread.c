/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Some of many things in a row: how many, and at which distances. */
#include "crash/spread.h"
#include "base/bytes.h"
#include "tap.h"

static void of_few(void)
{
    static const char *const want[] = { "", "4", "04", "024", "0124", "01234", "01234" };

    for (unsigned chosen = 0; chosen < SG_ARRAY_SIZE(want); chosen++) {
        char got[6] = "";

        for (unsigned i = 0; i < 5; i++) {
            if (sg_crash_spread(i, 5, chosen)) {
                got[strlen(got)] = (char)('0' + i);
            }
        }
        T_CONTEXT("%u of 5", chosen);
        T_EQ_STR(got, want[chosen]);
    }
}

static void of_many(void)
{
    for (uint64_t count = 2; count < 100; count++) {
        for (uint64_t chosen = 2; chosen <= count; chosen++) {
            uint64_t n = 0, last = 0, least = count, most = 0;

            for (uint64_t i = 0; i < count; i++) {
                if (sg_crash_spread(i, count, chosen)) {
                    least = n ? SG_MIN(least, i - last) : least;
                    most = n ? SG_MAX(most, i - last) : most;
                    last = i;
                    n++;
                }
            }
            T_CONTEXT("%" PRIu64 " of %" PRIu64, chosen, count);
            T_TRUE(sg_crash_spread(0, count, chosen));
            T_EQ_U64(last, count - 1);
            T_EQ_U64(n, chosen);
            T_TRUE(most - least <= 1);
        }
    }
}

static const struct t_case cases[] = {
    { "of five", of_few },
    { "of many: the first, the last, at equal distances", of_many },
};

T_MAIN(cases)
