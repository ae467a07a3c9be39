/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One overwritten little-endian field of a structure (a command, an entry of a ring), for tables of
 * wrong values and the adapter's answers to them.
 */
#ifndef SG_TESTS_FIELD_ROW_H
#define SG_TESTS_FIELD_ROW_H

#include <stddef.h>
#include <stdint.h>

struct field_row {
    const char *name;
    size_t offset, size;
    uint64_t value;
    uint8_t status; /* enum sg_status of a command, enum sg_wc_status of an entry */
};

/* The first three members of a row. */
#define FIELD(type, member) \
    #member, offsetof(struct type, member), sizeof(((struct type *)0)->member)

/* Octets of the field from the ninth on are 0. */
static inline void field_put(void *what, const struct field_row *row)
{
    uint8_t *p = (uint8_t *)what + row->offset;
    size_t i;

    for (i = 0; i < row->size; i++) {
        p[i] = i < 8 ? (uint8_t)(row->value >> (8 * i)) : 0;
    }
}

#endif
