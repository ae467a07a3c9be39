/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Masked FetchAdd and CmpSwap: results computed by hand, and a second implementation. */
#include "base/bytes.h"
#include "base/masked_atomic.h"
#include "base/prng.h"
#include "tap.h"

enum { ROUNDS = 20000 };

static const uint64_t ALL = UINT64_MAX;

static void add__rows(void)
{
    static const struct {
        uint64_t value, addend, tops, sum;
    } rows[] = {
        { 1, 2, 0, 3 },
        { UINT64_MAX, 1, 0, 0 },
        { UINT64_MAX, 1, UINT64_C(1) << 63, 0 },
        { 0x00ff, 0x0001, 0x0080, 0x0000 }, /* the carry stays in the low octet */
        { 0xff7f, 0x0101, 0x8080, 0x0080 },
        { 0xffffffffffffffff, 0x0101010101010101, 0x8080808080808080, 0 },
        { 0x7f, 0x01, UINT64_MAX, 0x7e }, /* fields of one bit */
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("row %zu", i);
        T_EQ_U64(sg_masked_add(rows[i].value, rows[i].addend, rows[i].tops), rows[i].sum);
    }
}

/* Bit by bit: a carry continues unless it comes from the top of a field. */
static uint64_t slow_add(uint64_t a, uint64_t b, uint64_t tops)
{
    uint64_t sum = 0;
    unsigned i, carry = 0;

    for (i = 0; i < 64; i++) {
        unsigned bits = (a >> i & 1) + (b >> i & 1) + carry;

        sum |= (uint64_t)(bits & 1) << i;
        carry = tops >> i & 1 ? 0 : bits >> 1;
    }
    return sum;
}

static void add__as_bit_by_bit(void)
{
    uint64_t seed = 1;
    unsigned i;

    for (i = 0; i < ROUNDS; i++) {
        uint64_t a = sg_prng(&seed), b = sg_prng(&seed), tops = sg_prng(&seed);

        T_EQ_U64(sg_masked_add(a, b, tops), slow_add(a, b, tops));
    }
}

static void swap__rows(void)
{
    T_EQ_U64(sg_masked_swap(5, 7, ALL, 5, ALL), 7);
    T_EQ_U64(sg_masked_swap(5, 7, ALL, 4, ALL), 5);
    T_EQ_U64(sg_masked_swap(5, 7, ALL, 4, 0), 7); /* nothing is compared */
    T_EQ_U64(sg_masked_swap(0xff05, 7, ALL, 5, 0xff), 7);
    T_EQ_U64(sg_masked_swap(0xff05, 0x1234, 0xff00, 5, 0xff), 0x1205);
    T_EQ_U64(sg_masked_swap(0xff05, 0x1234, 0, 5, 0xff), 0xff05);
}

static const struct t_case cases[] = {
    { "FetchAdd: rows", add__rows },
    { "FetchAdd: as bit by bit", add__as_bit_by_bit },
    { "CmpSwap: rows", swap__rows },
};

T_MAIN(cases)
