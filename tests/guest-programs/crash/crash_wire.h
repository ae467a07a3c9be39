/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What crash_log asks of crash_server, in a Send; the server answers with the same message.
 *
 * Record n of log/log_format.h is in the log's place.  What the server's CPU stores for it, a flag
 * that says that the record is valid, is in a line of its own at CRASH_FLAGS, or in the record's
 * last atom.  CRASH_POLL has longer records: each octet is the record's number, and not 0.
 *
 * crash_log may note records in persistent memory of its own machine: note n is the flag of record
 * n, in a line of its own.
 */
#ifndef CRASH_WIRE_H
#define CRASH_WIRE_H

#include <stdint.h>

#include "log_format.h"

enum {
    CRASH_FLAGS = 1 << 20, /* offset into the region */
    CRASH_LINE = 64,
    CRASH_LONG = 4096, /* octets of a record of CRASH_POLL: several segments */
    CRASH_RECORDS_MAX = 200,
};

/* The flag of a record, different in each session. */
static inline uint64_t crash_flag(uint32_t session)
{
    return (uint64_t)session << 32 | 1;
}

/* What the server does before it answers.  Each row but the first of a group has a mistake. */
enum crash_service {
    CRASH_NOTHING,      /* it has seen the message: visible is not durable */
    CRASH_PERSIST,      /* CLWB and SFENCE of the record */
    CRASH_POLL,         /* the same for COUNT records, as soon as the last octet of each is there */
    CRASH_FLAG,         /* persists the record, then the flag */
    CRASH_FLAG_DIRTY,   /* forgets to flush the flag */
    CRASH_FLAG_EARLY,   /* flushes the flag's line, then stores the flag */
    CRASH_FLAG_FIRST,   /* persists the flag, then the record */
    CRASH_INLINE,       /* as CRASH_FLAG, with the flag in the record */
    CRASH_INLINE_DIRTY, /* as CRASH_FLAG_DIRTY */
    CRASH_INLINE_EARLY, /* as CRASH_FLAG_EARLY */
    CRASH_SERVICES,
};

struct log_request {
    uint32_t service; /* enum crash_service */
    uint32_t number;  /* of the record; for CRASH_POLL the first one */
    uint32_t count;
    uint32_t session;
};

/* The octets of a long record. */
static inline uint8_t crash_octet(uint32_t number)
{
    return (uint8_t)(number + 1);
}

_Static_assert(CRASH_RECORDS_MAX *CRASH_LINE <= 2 << 20, "notes fit");
_Static_assert(LOG_RECORDS + CRASH_RECORDS_MAX * CRASH_LONG <= CRASH_FLAGS, "records fit");
_Static_assert(CRASH_RECORDS_MAX < 255, "no octet of a long record is 0");

#endif
