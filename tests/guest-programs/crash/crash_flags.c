// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_flags DEVICE [FIRST [RECORDS]]: trusts the flags of crash_server's memory.
 *
 * A record counts if it has a flag, in the flags' lines or in its last atom (crash_wire.h).  Then
 * it has to be intact.  Prints the records that are broken; the status is 1 if there are any.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "crash_wire.h"

enum { REGION = 2 << 20, LAST = LOG_RECORD / 8 - 2 };

/* The session of a flag; 0: it is none. */
static uint32_t session_of(uint64_t flag)
{
    uint32_t session = flag >> 32;

    return flag == crash_flag(session) ? session : 0;
}

/* A record whose flag is in a line of its own, or else in the record. */
static bool is_broken(const uint8_t *memory, uint32_t number)
{
    const struct log_record *record =
        (const struct log_record *)(memory + LOG_RECORDS + (size_t)number * LOG_RECORD);
    const uint64_t *flag = (const uint64_t *)(memory + CRASH_FLAGS + (size_t)number * CRASH_LINE);
    uint32_t session = session_of(*flag);
    struct log_record wanted;

    if (session) {
        return !log_intact(record, session, number);
    }
    session = session_of(record->payload[LAST]);
    log_make(&wanted, session, number);
    wanted.payload[LAST] = record->payload[LAST];
    return session && memcmp(record, &wanted, sizeof(wanted)) != 0;
}

int main(int argc, char **argv)
{
    uint32_t first = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
    uint32_t records = argc > 3 ? strtoul(argv[3], NULL, 0) : CRASH_RECORDS_MAX - first;
    const uint8_t *memory;
    unsigned broken = 0;
    int fd;

    if (argc < 2 || argc > 4 || first >= CRASH_RECORDS_MAX || !records ||
        records > CRASH_RECORDS_MAX - first) {
        fprintf(stderr, "usage: crash_flags DEVICE [FIRST [RECORDS]], of %d records\n",
                CRASH_RECORDS_MAX);
        return 2;
    }
    fd = open(argv[1], O_RDWR);
    memory = fd < 0 ? MAP_FAILED : mmap(NULL, REGION, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        perror(argv[1]);
        return 2;
    }
    for (uint32_t i = first; i < first + records; i++) {
        if (is_broken(memory, i)) {
            printf("record %u is broken\n", i);
            broken++;
        }
    }
    printf("broken %u\n", broken);
    return broken != 0;
}
