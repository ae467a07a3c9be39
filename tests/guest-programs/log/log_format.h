/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A log in persistent memory that another machine appends to.
 *
 * The tail, one atom at LOG_TAIL, has the session and the number of records; record n is at
 * LOG_RECORDS + n * LOG_RECORD.  The content of a record follows from session and number, so a
 * reader can recognise an intact one, and a record of an earlier session does not count.  Only the
 * writer writes; the machine that has the memory only reads.
 */
#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    LOG_TAIL = 64,
    LOG_RECORDS = 4096,
    LOG_RECORD = 128, /* two lines of a cache */
};

struct log_record {
    uint32_t session;
    uint32_t number;
    uint64_t payload[LOG_RECORD / 8 - 1];
};

_Static_assert(sizeof(struct log_record) == LOG_RECORD, "a record's size");

static inline uint64_t log_tail(uint32_t session, uint32_t records)
{
    return (uint64_t)session << 32 | records;
}

static inline void log_make(struct log_record *record, uint32_t session, uint32_t number)
{
    uint64_t x = ((uint64_t)session << 32 | number) ^ UINT64_C(0x9e3779b97f4a7c15);

    record->session = session;
    record->number = number;
    for (unsigned i = 0; i < sizeof(record->payload) / 8; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        record->payload[i] = x;
    }
}

static inline bool log_intact(const void *found, uint32_t session, uint32_t number)
{
    struct log_record wanted;

    log_make(&wanted, session, number);
    return memcmp(found, &wanted, sizeof(wanted)) == 0;
}

/* The number of records for which a memory of that size has room. */
static inline uint32_t log_room(uint64_t size)
{
    return (uint32_t)((size - LOG_RECORDS) / LOG_RECORD);
}

#endif
